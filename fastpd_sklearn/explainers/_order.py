"""Numbers by rank: of a column in memory, or of one whose rows come in passes.

Quantiles of rows that do not fit into memory are found by going through the rows several times.
The first pass counts numbers by value, and once there are many by the first bits that they have in
common with their neighbours, so that memory stays bounded. What is asked for then lies in some of
these cells, and only those are looked at more closely in the next pass. The result is exact: the
number that has the rank, not one near it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

MOST_CELLS = 2**16
"""Cells of a column that are counted at a time."""

QUICK_BITS = 18
"""Bits of keys by which they are counted without sorting, in a cache."""

MANY = 2**13
"""Numbers that it is worth for."""

MOST_LOOKED_UP = 2**20
"""Cells that are looked up in a table."""

_SIGN = np.uint64(1 << 63)
_ALL = 64


class NotYetError(Exception):
    """What is asked for takes another pass over the rows."""


class Numbers(Protocol):
    """The numbers of a column, in ascending order.

    Attributes
    ----------
    n : int
        How many there are.
    """

    n: int

    def few(self, most: int) -> np.ndarray | None:
        """All different numbers, ascending; None if they are more than ``most``."""

    def distinct(self) -> np.ndarray:
        """All different numbers, ascending, however many."""

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """The numbers of some ranks, from 0 on."""


class HeldNumbers:
    """Numbers in memory.

    Parameters
    ----------
    values : ndarray of shape (n_values,), float64
        None of them missing.
    """

    def __init__(self, values: np.ndarray) -> None:
        self._unsorted, self.n = values, len(values)

    @cached_property
    def _values(self) -> np.ndarray:
        return np.sort(self._unsorted)

    def few(self, most: int) -> np.ndarray | None:
        """See :class:`Numbers`."""
        found = self.distinct()
        return found if len(found) <= most else None

    def distinct(self) -> np.ndarray:
        """See :class:`Numbers`."""
        values = self._values
        return values[np.append(True, values[1:] != values[:-1])[: len(values)]]

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """See :class:`Numbers`."""
        return self._values[ranks]


@dataclass(frozen=True, eq=False)
class Scope:
    """Which numbers a pass is to count, and into how many cells at most.

    Parameters
    ----------
    cells : ndarray of shape (n_cells,), uint64, ascending, or None
        Keys above ``shift`` of the cells to look into; None for all numbers.
    shift : int
        Bits of a key that tell numbers of such a cell apart.
    most : int or None
        None for no limit.
    """

    cells: np.ndarray | None
    shift: int
    most: int | None

    def keys(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray | slice]:
        """The keys of those of some numbers that are in the scope, and which these are."""
        keys = _keys_of(values)
        if self.cells is None:
            return keys, slice(None)
        cell = keys >> np.uint64(self.shift)
        n_between = int(self.cells[-1] - self.cells[0]) + 1
        if n_between <= MOST_LOOKED_UP:
            listed = np.zeros(n_between + 1, bool)
            listed[(self.cells - self.cells[0]).astype(np.intp)] = True
            cell -= self.cells[0]  # those below become large numbers
            inside = np.flatnonzero(listed[np.minimum(cell, n_between)])
        else:
            place = np.minimum(np.searchsorted(self.cells, cell), len(self.cells) - 1)
            inside = np.flatnonzero(self.cells[place] == cell)
        return keys[inside], inside


@dataclass(frozen=True, eq=False)
class Tally:
    """Numbers counted by cells; those of other rows are added.

    Parameters
    ----------
    cells : ndarray of shape (n_cells,), uint64, ascending
        What the keys of the numbers have in common above ``shift``.
    counts : ndarray of shape (n_cells,), int64, or None
        None for one each, of cells that need not differ.
    weights : ndarray of shape (n_cells,), float64, or None
        None where all numbers weigh 1.
    shift : int
    most : int or None
    """

    cells: np.ndarray
    counts: np.ndarray | None
    weights: np.ndarray | None
    shift: int
    most: int | None

    @classmethod
    def of(cls, values: np.ndarray, weights: np.ndarray | None, scope: Scope) -> Tally:
        """Count some numbers."""
        keys, inside = scope.keys(values)
        weights = None if weights is None else weights[inside]
        shift = _quick_shift(keys, scope)
        if shift is not None:
            return cls._quickly(keys, weights, shift, scope.most)._compact()
        if weights is None:
            keys.sort()
            return cls(keys, None, None, 0, scope.most)._compact()
        return cls(keys, None, weights, 0, scope.most)._ordered()._compact()

    @classmethod
    def _quickly(cls, keys: np.ndarray, weights, shift: int, most: int) -> Tally:
        """Count without sorting."""
        cells = keys >> np.uint64(shift)
        low = cells.min()
        cells = (cells - low).astype(np.intp)
        counts = np.bincount(cells)
        found = np.flatnonzero(counts)
        sums = None if weights is None else np.bincount(cells, weights)[found]
        return cls(found.astype(np.uint64) + low, counts[found], sums, shift, most)

    def __add__(self, other: Tally) -> Tally:
        shift = max(self.shift, other.shift)
        cells = [one.cells >> np.uint64(shift - one.shift) for one in (self, other)]
        weights = None
        if self.weights is not None or other.weights is not None:
            weights = np.concatenate([one.all_weights() for one in (self, other)])
        counts = np.concatenate([self.counts, other.counts])
        both = Tally(np.concatenate(cells), counts, weights, shift, self.most)
        return both._ordered()._compact()

    def all_weights(self) -> np.ndarray:
        """The weight of each cell, also where numbers have none of their own."""
        return self.counts.astype(np.float64) if self.weights is None else self.weights

    def _ordered(self) -> Tally:
        order = np.argsort(self.cells, kind="stable")
        counts = None if self.counts is None else self.counts[order]
        weights = None if self.weights is None else self.weights[order]
        return Tally(self.cells[order], counts, weights, self.shift, self.most)

    def _compact(self) -> Tally:
        """Equal cells as one, of ascending ones, and cells so wide that they are not too many."""
        more = 0
        if self.most is not None and _n_cells(self.cells, 0) > self.most:
            low, high = 0, _ALL - self.shift - 1
            while high - low > 1:
                middle = (low + high) // 2
                if _n_cells(self.cells, middle) > self.most:
                    low = middle
                else:
                    high = middle
            more = high
        cells = self.cells >> np.uint64(more)
        first = np.flatnonzero(np.append(True, cells[1:] != cells[:-1])[: len(cells)])
        counts, weights = self.counts, self.weights
        if counts is None:
            counts = np.diff(np.append(first, len(cells)))
        elif len(first) < len(cells):
            counts = np.add.reduceat(counts, first)
        if weights is not None and len(first) < len(cells):
            weights = np.add.reduceat(weights, first)
        return Tally(cells[first], counts, weights, self.shift + more, self.most)


class PassedNumbers:
    """Numbers of rows that come in passes.

    Asked for what the passes so far do not tell, it raises :class:`NotYetError`; ``scope`` is then
    what the next pass is to count, for :meth:`refine`.

    Attributes
    ----------
    scope : Scope
    """

    def __init__(self) -> None:
        self.scope = Scope(None, _ALL, MOST_CELLS)
        self._low = np.empty(0, np.uint64)  # the smallest key of each cell
        self._shift = np.empty(0, np.uint8)
        self._counts, self._weights = np.empty(0, np.int64), None

    def refine(self, tally: Tally) -> None:
        """Take notice of a pass over all rows."""
        low = tally.cells << np.uint64(tally.shift)
        shift = np.full(len(low), tally.shift, np.uint8)
        if self.scope.cells is None:
            self._low, self._shift = low, shift
            self._counts, self._weights = tally.counts, tally.weights
            return
        kept = ~(
            (self._shift == self.scope.shift)
            & np.isin(self._low >> np.uint64(self.scope.shift), self.scope.cells)
        )
        low = np.concatenate([self._low[kept], low])
        order = np.argsort(low, kind="stable")
        self._low = low[order]
        self._shift = np.concatenate([self._shift[kept], shift])[order]
        self._counts = np.concatenate([self._counts[kept], tally.counts])[order]
        if self._weights is not None:
            weights = np.concatenate([self._weights[kept], tally.all_weights()])
            self._weights = weights[order]

    @property
    def n(self) -> int:
        """See :class:`Numbers`."""
        return int(self._counts.sum())

    def few(self, most: int) -> np.ndarray | None:
        """See :class:`Numbers`."""
        if len(self._low) > most:
            return None
        return self._exactly(np.arange(len(self._low)))

    def distinct(self) -> np.ndarray:
        """See :class:`Numbers`."""
        if self._shift.any():
            self.scope = Scope(None, _ALL, None)
            raise NotYetError
        return _numbers_of(self._low)

    def at(self, ranks: np.ndarray) -> np.ndarray:
        """See :class:`Numbers`."""
        return self._found(np.cumsum(self._counts), np.asarray(ranks) + 1)

    @property
    def total(self) -> float:
        """The weight of all numbers."""
        return float(self._behind()[-1])

    def at_weights(self, wanted: np.ndarray) -> np.ndarray:
        """The smallest numbers up to which there is at least some weight."""
        return self._found(self._behind(), wanted)

    def _behind(self) -> np.ndarray:
        """The weight up to the end of each cell."""
        return np.cumsum(
            self._counts.astype(np.float64) if self._weights is None else self._weights
        )

    def _found(self, total: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        return self._exactly(np.minimum(np.searchsorted(total, wanted), len(total) - 1))

    def _exactly(self, place: np.ndarray) -> np.ndarray:
        """The numbers in some cells, if those hold one each."""
        widest = self._shift[place].max(initial=0)
        if widest:
            # Cells of one width at a time: what they are cut into is then narrower than each.
            cells = np.unique(self._low[place[self._shift[place] == widest]] >> np.uint64(widest))
            self.scope = Scope(cells, int(widest), max(MOST_CELLS, 4 * len(cells)))
            raise NotYetError
        return _numbers_of(self._low[place])


def _quick_shift(keys: np.ndarray, scope: Scope) -> int | None:
    """Bits to cut keys at so that they can be counted without sorting; None if that is no use."""
    if scope.most is None or len(keys) < MANY:
        return None
    probe = np.sort(keys[:: max(1, len(keys) // 1024)])
    if _n_cells(probe, 0) < len(probe) // 2:
        return None  # they may be few enough to be told apart
    n_bits = int(keys.max() - keys.min()).bit_length()
    shift = max(0, n_bits - QUICK_BITS)
    return shift if shift < scope.shift else None


def inverse_ranks(shares: np.ndarray, n: int) -> np.ndarray:
    """Ranks of the quantiles of the inverse distribution function: "inverted_cdf" of NumPy."""
    return np.clip(np.ceil(n * shares - 1), 0, n - 1).astype(np.intp)


def _n_cells(cells: np.ndarray, shift: int) -> int:
    """How many different cells there are among ascending ones, if cut at some bits."""
    wide = cells >> np.uint64(shift)
    return int(np.count_nonzero(wide[1:] != wide[:-1])) + min(1, len(cells))


def _keys_of(values: np.ndarray) -> np.ndarray:
    """Integers that are ordered as numbers are, none of which is missing."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 is 0.0
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _numbers_of(keys: np.ndarray) -> np.ndarray:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
