"""Forests with linear leaves: what a number is multiplied by is a forest of its own.

Such a forest predicts ``f(x) = g(x) + sum over j of x_j h_j(x)``, where ``g`` and all ``h_j`` are
forests of one value a leaf and ``h_j`` is zero where ``x_j`` is missing. Let ``b`` be a row of the
background, and let ``v`` be a game for the row ``x`` in which the players ``S`` have the values of
``x`` and all others those of ``b``. Then the game that ``x_j h_j`` plays is

    x_j  times the game of h_j on (x, b without j)   +   b_j  times that on (x without j, b),

where "without j" means that the value is missing. For if the player of ``j`` is in ``S``, the
second game is zero and the first is what ``h_j`` says, and the other way round if it is not. So all
that is known of the games of ordinary forests holds: coverage by rows, indices, step functions,
individual curves. The background counts twice, once without ``j`` and once with the weights
``b_j``: first moments of the column, by leaf and mask.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fastpd_sklearn.core import counting
from fastpd_sklearn.core.background import (
    MOST_COUNTS,
    KeptCoverage,
    KeptRows,
    MaskCounts,
    check_array,
    n_masks,
    pack_rows,
    unpack_rows,
)
from fastpd_sklearn.core.coverage import Coverage, EmpiricalCoverage
from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.walk_model import WalkModel


class LinearRows:
    """Rows as codes, with the numbers that slopes multiply.

    Parameters
    ----------
    codes : BinnedRows
    numbers : ndarray of shape (n_factors, n_rows), float64
        Zero where they are missing.
    """

    def __init__(self, codes: BinnedRows, numbers: np.ndarray) -> None:
        self.codes, self.numbers = codes, numbers

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.codes.n_rows


def without(codes: BinnedRows, slot: int) -> BinnedRows:
    """Rows with one column missing."""
    out = BinnedRows(codes.data.copy(), codes.offset, codes.width, codes.n_rows)
    column = out.column(slot)
    column[:] = np.iinfo(column.dtype).max
    return out


class Factor(NamedTuple):
    """What a number is multiplied by.

    Parameters
    ----------
    slot : int
        The number's binned column.
    player : int
        Whose column it is.
    model : CoreModel
    tested : frozenset of int
        The players that it tests.
    """

    slot: int
    player: int
    model: CoreModel
    tested: frozenset[int]

    def among(self, terms) -> list[int]:
        """Numbers of the terms whose players are all tested: other terms have no value."""
        return [k for k, term in enumerate(terms) if self.tested.issuperset(term)]

    def counts(self, masks: MaskCounts) -> np.ndarray:
        """Whether the leaf of each entry has a value, bool of shape (n_entries,)."""
        return np.repeat(self.model.leaf_value.any(axis=1), np.diff(masks.start))

    def has_number(self, masks: MaskCounts) -> np.ndarray:
        """Whether each entry meets the side of the number's player, bool of shape (n_entries,).

        One that does not plays no game against rows without the number.
        """
        geometry = self.model.geometry
        first, size = geometry.player_start[:-1], geometry.leaf_sizes
        leaf = np.repeat(np.arange(geometry.n_leaves), size)
        own = geometry.player == self.player
        bit = np.zeros(geometry.n_leaves, np.int64)
        bit[leaf[own]] = np.flatnonzero(own) - first[leaf[own]]
        bit = np.repeat(bit, np.diff(masks.start))
        word = masks.mask[np.arange(len(bit)), bit // 64]
        return (word >> (bit % 64).astype(np.uint64) & np.uint64(1)).astype(bool)


class LinearCoverage:
    """What a background says of a forest with linear leaves.

    Parameters
    ----------
    constants : Coverage
    held : list of Coverage
        By factor: of the background without the factor's number.
    moments : list of Coverage
        By factor: of the background with that number for a weight.
    """

    def __init__(self, constants: Coverage, held: list[Coverage], moments: list[Coverage]) -> None:
        self.constants, self.held, self.moments = constants, held, moments


class LinearModel:
    """What the kernels need to know of a forest with linear leaves and of the players.

    It is used as :class:`CoreModel` is, with :class:`LinearRows` for rows.

    Parameters
    ----------
    forest : Forest
        The whole of it; its values are those of ``g``.
    factors : sequence of (int, Forest, ndarray of int)
        An input, the forest that it is multiplied by, and the node of the whole forest that
        tests what each of its nodes does.
    player_of_input : ndarray of shape (n_inputs,), int32
    n_players : int
    zero : float
        See :class:`CoreModel`.

    Attributes
    ----------
    constants : CoreModel
    factors : list of Factor
    inputs : list of int
        The input of each factor.
    """

    def __init__(
        self, forest, factors, player_of_input: np.ndarray, n_players: int, zero: float
    ) -> None:
        self._made_from = (forest, factors, player_of_input, n_players, zero)
        self.constants = CoreModel(forest, player_of_input, n_players, zero)
        self.bins, self.geometry = self.constants.bins, self.constants.geometry
        self.inputs = [column for column, _, _ in factors]
        self.factors = []
        self._slope_start = np.searchsorted(forest.slope_node, np.arange(forest.n_nodes + 1))
        self._slope_number = np.searchsorted(self.inputs, forest.slope_input)
        self._slope = np.ascontiguousarray(forest.slope)
        for column, part, node in factors:
            model = CoreModel(part, player_of_input, n_players, zero, self.bins.of_nodes(node))
            slot = int(np.searchsorted(self.bins.columns, column))
            tested = frozenset(model.geometry.player.tolist())
            self.factors.append(Factor(slot, int(player_of_input[column]), model, tested))

    def __reduce__(self):
        return LinearModel, self._made_from

    @property
    def walks(self) -> WalkModel:
        """The constants, as rows walk through them."""
        return self.constants.walks

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return self.constants.n_outputs

    def make_background(self) -> LinearCounts | LinearKeptRows:
        """An empty background of the kind that suits the forest; see :mod:`core.background`."""
        masks = n_masks(self.geometry).sum()
        masks += 2 * sum(n_masks(factor.model.geometry).sum() for factor in self.factors)
        return LinearCounts(self) if masks <= MOST_COUNTS else LinearKeptRows()

    def predict(self, rows: LinearRows, n_threads: int) -> np.ndarray:
        """Raw prediction, float64 of shape (n_rows, n_outputs)."""
        out = self.constants.predict(rows.codes, n_threads)
        counting.add_lines(
            rows.codes,
            self.bins.tests,
            self.geometry,
            self._slope_start,
            self._slope_number,
            self._slope,
            rows.numbers,
            self.constants.tree_output,
            out,
            n_threads,
        )
        return out

    def mean(self, coverage: LinearCoverage) -> np.ndarray:
        """Mean raw prediction over the background, shape (n_outputs,)."""
        parts = [(self.constants, coverage.constants)]
        parts += zip((factor.model for factor in self.factors), coverage.moments, strict=True)
        return sum(
            model.mean(part.near_full(model.geometry.leaf_sizes)[0]) for model, part in parts
        )

    def attribute(
        self,
        rows: LinearRows,
        coverage: LinearCoverage,
        index: str,
        terms: list[tuple[int, ...]],
        n_threads: int,
    ) -> np.ndarray:
        """Values of terms under an index, shape (n_terms, n_outputs, n_rows); as `CoreModel`."""
        out = self.constants.attribute(rows.codes, coverage.constants, index, terms, n_threads)
        self._add_factors(rows, coverage, index, terms, n_threads, out)
        return out

    def _add_factors(self, rows, coverage, index, terms, n_threads, out) -> None:
        for k, factor in enumerate(self.factors):
            own = factor.among(terms)
            if not own:
                continue
            named, blank = [terms[i] for i in own], without(rows.codes, factor.slot)
            out[own] += factor.model.attribute(blank, coverage.moments[k], index, named, n_threads)
            if index == "component":  # of a set without the player there is none
                own = [i for i in own if factor.player in terms[i]]
                named = [terms[i] for i in own]
            values = factor.model.attribute(rows.codes, coverage.held[k], index, named, n_threads)
            values *= rows.numbers[k]
            out[own] += values

    def attribute_blocks(
        self,
        rows: LinearRows,
        coverage: LinearCoverage,
        index: str,
        terms: list[tuple[int, ...]],
        n_values: int,
        n_threads: int,
    ):
        """What `attribute` gives, some terms at a time; as `CoreModel`."""
        blocks = self.constants.attribute_blocks(
            rows.codes, coverage.constants, index, terms, n_values, n_threads
        )
        for numbers, values in blocks:
            named = [terms[k] for k in numbers]
            self._add_factors(rows, coverage, index, named, n_threads, values)
            yield numbers, values

    def levels(self, coverage: LinearCoverage, player: int) -> np.ndarray | None:
        """The component of one player at zero, by the codes of its column; as `CoreModel`.

        Parameters
        ----------
        coverage : LinearCoverage
        player : int

        Returns
        -------
        ndarray of shape (n_outputs, n_codes + 1), or None
            The component itself is what :meth:`slopes` gives times the number, plus this.
        """
        out = self.constants.levels(coverage.constants, player)
        for factor, part in zip(self.factors, coverage.moments, strict=True):
            if out is not None and player in factor.tested:
                level = factor.model.levels(part, player)
                out += level[:, -1:] if player == factor.player else level
        return out

    def slopes(self, coverage: LinearCoverage, player: int) -> np.ndarray | None:
        """What one player's number is multiplied by in its component, by the codes of its column.

        Parameters
        ----------
        coverage : LinearCoverage
        player : int
            Of one column.

        Returns
        -------
        ndarray of shape (n_outputs, n_codes + 1), or None
            None for a player in none of whose columns a leaf is linear.
        """
        for factor, part in zip(self.factors, coverage.held, strict=True):
            if player == factor.player:
                return factor.model.levels(part, player)
        return None

    def pair_grid(
        self,
        rows: LinearRows,
        coverage: LinearCoverage,
        pairs: list[tuple[int, int]],
        n_threads: int,
    ) -> np.ndarray | None:
        """Components of pairs on the product of the rows with themselves; as `CoreModel`."""
        out = self.constants.pair_grid(rows.codes, coverage.constants, pairs, n_threads)
        for k, factor in enumerate(self.factors if out is not None else []):
            own = factor.among(pairs)
            named = [pairs[i] for i in own]
            blank = without(rows.codes, factor.slot)
            out[own] += factor.model.pair_grid(blank, coverage.moments[k], named, n_threads)
            own = [i for i in own if factor.player in pairs[i]]
            named = [pairs[i] for i in own]
            values = factor.model.pair_grid(rows.codes, coverage.held[k], named, n_threads)
            for i, pair, value in zip(own, named, values, strict=True):
                is_first = pair[0] == factor.player
                number = rows.numbers[k][:, None] if is_first else rows.numbers[k]
                out[i] += number * value
        return out


class LinearCounts:
    """The weight of the background by leaf and occurring mask, and the moments of its numbers.

    Parameters
    ----------
    core : LinearModel

    Attributes
    ----------
    constants : MaskCounts
    held, moments : list of MaskCounts
        By factor; see :class:`LinearCoverage`.
    """

    def __init__(self, core: LinearModel) -> None:
        self.constants = MaskCounts()
        self.held = [MaskCounts() for _ in core.factors]
        self.moments = [MaskCounts() for _ in core.factors]

    def add(self, core: LinearModel, rows: LinearRows, sample_weight, n_threads: int) -> None:
        """Add rows, as `MaskCounts.add`."""
        self.constants.add(core.constants, rows.codes, sample_weight, n_threads)
        for k, factor in enumerate(core.factors):
            held, moments = self.held[k], self.moments[k]
            blank = without(rows.codes, factor.slot)
            held.add(factor.model, blank, sample_weight, n_threads)
            held.keep(factor.counts(held))
            weight = _moments(rows.numbers[k], sample_weight)
            moments.add(factor.model, rows.codes, weight, n_threads)
            moments.keep(factor.counts(moments) & factor.has_number(moments))

    def joined(self, core: LinearModel, other: LinearCounts) -> LinearCounts:
        """The counts of both backgrounds together."""
        out = LinearCounts(core)
        out.constants = self.constants.joined(other.constants)
        for k in range(len(core.factors)):
            out.held[k] = self.held[k].joined(other.held[k])
            out.moments[k] = self.moments[k].joined(other.moments[k])
        return out

    def coverage(self, core: LinearModel) -> LinearCoverage:
        """The coverage that the counts say."""
        total = float(self.constants.total)
        held, moments = (
            [EmpiricalCoverage(part.start, part.mask, part.weight, total) for part in parts]
            for parts in (self.held, self.moments)
        )
        return LinearCoverage(self.constants.coverage(core.constants), held, moments)

    def mean(self, core: LinearModel, coverage: LinearCoverage) -> np.ndarray:
        """Mean raw prediction over the background, shape (n_outputs,)."""
        return core.mean(coverage)

    def packed(self) -> dict[str, np.ndarray]:
        """All there is, as arrays."""
        out = dict(self.constants.packed())
        for name, parts in (("held", self.held), ("moments", self.moments)):
            for k, part in enumerate(parts):
                out |= {f"{name}/{k}/{key}": array for key, array in part.packed().items()}
        return out

    @classmethod
    def unpacked(cls, core: LinearModel, arrays: dict[str, np.ndarray]) -> LinearCounts:
        """Counts from arrays, which may come from anywhere; as `MaskCounts.unpacked`."""
        out = cls(core)
        out.constants = MaskCounts.unpacked(core.constants, arrays)
        for k, factor in enumerate(core.factors):
            held, moments = _below(arrays, f"held/{k}/"), _below(arrays, f"moments/{k}/")
            out.held[k] = MaskCounts.unpacked_part(factor.model, held, is_weight=False)
            out.moments[k] = MaskCounts.unpacked_part(factor.model, moments, is_weight=False)
            if np.any(out.held[k].weight < 0):
                raise ValueError("the array 'weight' has a negative weight")
        return out


def _below(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with a prefix, without it."""
    found = {name: array for name, array in arrays.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): array for name, array in found.items()}


def unpacked(core: LinearModel, arrays: dict[str, np.ndarray]) -> LinearCounts | LinearKeptRows:
    """The background that `packed` of either kind has packed.

    Parameters
    ----------
    core : LinearModel
    arrays : dict of str to ndarray
        From anywhere.

    Returns
    -------
    LinearCounts or LinearKeptRows

    Raises
    ------
    ValueError, KeyError
        If they are none of this forest.
    """
    return (LinearCounts if "mask" in arrays else LinearKeptRows).unpacked(core, arrays)


def _moments(number: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
    return number if sample_weight is None else number * sample_weight


class LinearKeptRows:
    """The rows of the background as codes, and their numbers.

    Attributes
    ----------
    kept : KeptRows
    numbers : ndarray of shape (n_factors, n_rows), float64, or None
        None before there are rows.
    response : ndarray of shape (n_outputs,)
        Weighted sum of the raw predictions.
    """

    def __init__(self) -> None:
        self.kept = KeptRows()
        self.numbers = None
        self.response: np.ndarray | float = 0.0

    def add(self, core: LinearModel, rows: LinearRows, sample_weight, n_threads: int) -> None:
        """Add rows, as `MaskCounts.add`."""
        predicted = core.predict(rows, n_threads)
        if sample_weight is not None:
            predicted *= sample_weight[:, None]
        self.response = self.response + predicted.sum(axis=0)
        self.kept.add(core.constants, rows.codes, sample_weight, n_threads)
        numbers = [rows.numbers] if self.numbers is None else [self.numbers, rows.numbers]
        self.numbers = np.concatenate(numbers, axis=1)

    def joined(self, core: LinearModel, other: LinearKeptRows) -> LinearKeptRows:
        """The rows of both backgrounds, those of the other at the end."""
        out = LinearKeptRows()
        out.kept = self.kept.joined(core.constants, other.kept)
        out.numbers = np.concatenate([self.numbers, other.numbers], axis=1)
        out.response = self.response + other.response
        return out

    def packed(self) -> dict[str, np.ndarray]:
        """All there is, as arrays."""
        kept = pack_rows(self.kept.rows, self.kept.sample_weight)
        return {**kept, "numbers": self.numbers, "response": self.response}

    @classmethod
    def unpacked(cls, core: LinearModel, arrays: dict[str, np.ndarray]) -> LinearKeptRows:
        """Rows from arrays, which may come from anywhere; as `KeptRows.unpacked`."""
        codes, weights = unpack_rows(core.bins, arrays)
        check_array("numbers", arrays["numbers"], "float64", (len(core.factors), codes.n_rows))
        check_array("response", arrays["response"], "float64", (core.n_outputs,))
        out = cls()
        out.kept.add(core.constants, codes, weights, 1)
        out.numbers, out.response = arrays["numbers"], arrays["response"]
        return out

    def coverage(self, core: LinearModel) -> LinearCoverage:
        """The coverage that the rows say."""
        kept, total = self.kept, float(self.kept.total)
        held = [
            _HeldCoverage(factor.model, kept.rows, kept.sample_weight, total, factor.slot)
            for factor in core.factors
        ]
        moments = [
            KeptCoverage(factor.model, kept.rows, _moments(number, kept.sample_weight), total)
            for factor, number in zip(core.factors, self.numbers, strict=True)
        ]
        return LinearCoverage(kept.coverage(core.constants), held, moments)

    def mean(self, core: LinearModel, coverage: LinearCoverage) -> np.ndarray:
        """Mean raw prediction over the background, shape (n_outputs,)."""
        return self.response / self.kept.total


class _HeldCoverage(KeptCoverage):
    """A coverage by rows of which one column is missing, which are made when they are asked for."""

    def __init__(self, core, rows: BinnedRows, sample_weight, total: float, slot: int) -> None:
        super().__init__(core, rows, sample_weight, total)
        self._slot = slot

    @property
    def rows(self) -> BinnedRows:
        """The background without the column."""
        return without(self._rows, self._slot)

    @rows.setter
    def rows(self, rows: BinnedRows) -> None:
        self._rows = rows
