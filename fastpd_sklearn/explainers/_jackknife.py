"""Standard errors that come from the background, by deleting one group of its rows at a time.

Every row of a background belongs to one of ``G`` groups at random, and each group has an engine of
its own beside that of all rows. With ``f`` the share of a group in the weight, the estimate without
it, of whatever is computed from a background, tells how far the group moves it, and

    variance = G / (G - 1)  sum over groups of  ((1 - f) (estimate without it - estimate))^2.

For a mean over the background that is unbiased for the variance of the mean, however unequal the
groups are, since each row joins a group independently of all others; and there the estimate
without a group follows from that of the group alone: their deviations are as ``f`` to ``1 - f``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from scipy import sparse, stats

from fastpd_sklearn.explainers._protocol import Engine
from fastpd_sklearn.forest import _rows

SURE = 1e-4
"""Chance below which groups are no longer taken for random ones."""


class Replicate(NamedTuple):
    """An engine that stands for the background without one group.

    Parameters
    ----------
    engine : Engine
    share : float
        Of the group in the weight of the background.
    step : float
        The value without the group is ``value + step * (value by the engine - value)``.
    """

    engine: Engine
    share: float
    step: float


@dataclass(frozen=True, eq=False)
class Jackknife:
    """The groups of a background.

    Parameters
    ----------
    empty : Engine
        Without a background.
    parts : tuple of Engine or None
        One a group; None for a group without rows.
    weight : ndarray of shape (n_groups,)
    squares : float
        Sum of the squared weights of all rows.
    """

    empty: Engine
    parts: tuple[Engine | None, ...]
    weight: np.ndarray
    squares: float

    @classmethod
    def of(cls, empty: Engine, n_groups: int) -> Jackknife:
        """Groups without rows."""
        return cls(empty, (None,) * n_groups, np.zeros(n_groups), 0.0)

    @property
    def n_groups(self) -> int:
        """Number of groups, those without rows among them."""
        return len(self.parts)

    def with_rows(self, X, sample_weight: np.ndarray | None) -> Jackknife:
        """The groups after rows have been added to them.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        sample_weight : ndarray of shape (n_rows,), float64, or None

        Returns
        -------
        Jackknife
        """
        group = random_groups(X, self.n_groups)
        weights = np.ones(len(group)) if sample_weight is None else sample_weight
        parts = list(self.parts)
        for g in np.unique(group[weights > 0]):
            rows = np.flatnonzero((group == g) & (weights > 0))
            part = copy(self.empty if parts[g] is None else parts[g])
            part.update(_rows.take(X, rows), None if sample_weight is None else weights[rows])
            parts[g] = part
        weight = self.weight + np.bincount(group, weights, self.n_groups)
        return replace(
            self, parts=tuple(parts), weight=weight, squares=self.squares + (weights**2).sum()
        )

    def merged(self, other: Jackknife) -> Jackknife:
        """The groups of two backgrounds, each with its like."""
        return replace(
            self,
            parts=tuple(map(_together, self.parts, other.parts)),
            weight=self.weight + other.weight,
            squares=self.squares + other.squares,
        )

    def counted(self) -> Jackknife:
        """The same groups in engines that others can be merged with."""
        parts = tuple(part and part.counted() for part in self.parts)
        return replace(self, empty=self.empty.counted(), parts=parts)

    def replicates(self) -> Iterator[Replicate]:
        """The background without one group after the other."""
        share = self.weight / self.weight.sum()
        if self.empty.is_mean:
            for part, f in zip(self.parts, share, strict=True):
                if part is not None:
                    yield Replicate(part, f, -f / (1 - f))
            return
        # What lies before each group and what after it, so that no two parts are taken apart.
        before, after = None, [None]
        for part in reversed(self.parts):
            after.append(_together(part, after[-1]))
        for part, f, rest in zip(self.parts, share, after[-2::-1], strict=True):
            if part is not None:
                yield Replicate(_together(before, rest), f, 1.0)
            before = _together(before, part)

    def scaled(self, share: float, deviation: np.ndarray) -> np.ndarray:
        """What a group adds to the standard error, of which the square is the sum of squares.

        Parameters
        ----------
        share : float
            Of the group in the weight.
        deviation : ndarray
            The estimate without the group less the estimate.

        Returns
        -------
        ndarray
            Those of sums of estimates are sums of theirs.
        """
        return np.sqrt(self.n_groups / (self.n_groups - 1)) * (1 - share) * deviation

    def quantile(self, confidence: float) -> float:
        """Half the width of a confidence interval, in standard errors: Student's t."""
        return float(stats.t.ppf((1 + confidence) / 2, self.n_filled - 1))

    @property
    def n_filled(self) -> int:
        """Number of groups that have rows."""
        return np.count_nonzero(self.weight)

    def check(self) -> None:
        """Refuse a single group, and tell groups that are no random ones.

        Raises
        ------
        ValueError
            If all rows are in one group.
        """
        if self.n_filled < 2:
            raise ValueError(
                "the rows of the background that have weight are all in one of the "
                f"{self.n_groups} groups, so that they tell no standard error; add rows"
            )
        excess = self.weight - self.weight.mean()
        ratio = (excess @ excess) / (self.squares * (1 - 1 / self.n_groups))
        if (self.n_groups - 1) * ratio > stats.chi2.isf(SURE, self.n_groups - 1):
            warnings.warn(
                "rows of the background occur again and again in parts that were added one by one, "
                "and rows that are alike are in one group; standard errors are too large, by a "
                f"factor of about {np.sqrt(ratio):.2g}. Add the background in fewer, larger parts",
                UserWarning,
                stacklevel=5,
            )


def _together(one: Engine | None, other: Engine | None) -> Engine | None:
    """An engine with the backgrounds of two."""
    if one is None or other is None:
        return other if one is None else one
    both = copy(one)
    both.merge(other)
    return both


# ------------------------------------------------------------------------ which group
# A row's group follows from its values alone, so that it does not matter in which order and in
# which parts rows come. Rows that occur more than once in a part are told apart by their number
# and by the part: put into one group they would pass for a single row of their weight.


def random_groups(X, n_groups: int) -> np.ndarray:
    """The group of every row.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    n_groups : int

    Returns
    -------
    ndarray of shape (n_rows,), intp
        Independent of the order of the rows.
    """
    bits = row_bits(X)
    order = np.argsort(bits, kind="stable")
    ordered = bits[order]
    is_first = np.ones(len(bits), bool)
    is_first[1:] = ordered[1:] != ordered[:-1]
    start = np.flatnonzero(is_first)
    count = np.diff(np.append(start, len(bits)))
    number = np.empty(len(bits), np.uint64)
    number[order] = np.arange(len(bits)) - np.repeat(start, count)
    again = np.empty(len(bits), bool)
    again[order] = np.repeat(count > 1, count)
    part = np.add.reduce(_mixed(bits ^ _mixed(number)))
    bits[again] ^= _mixed(number[again] + part)
    return (_mixed(bits) % np.uint64(n_groups)).astype(np.intp)


def row_bits(X) -> np.ndarray:
    """64 bits of every row, which its values decide.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_rows,), uint64
    """
    X = X.tocsc() if sparse.issparse(X) else X
    bits = np.zeros(X.shape[0], np.uint64)
    for j in range(X.shape[1]):
        bits = _mixed(bits ^ _value_bits(_rows.column_array(X, j)))
    return bits


def _value_bits(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "biuf":
        numbers = values.astype(np.float64) + 0.0  # so that -0.0 is 0.0
        numbers[np.isnan(numbers)] = np.nan
        return numbers.view(np.uint64)
    known: dict[str, int] = {}
    words = [str(value) for value in values.tolist()]
    for word in words:
        if word not in known:
            known[word] = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
    return np.array([known[word] for word in words], np.uint64)


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Bits of which each depends on all: the finaliser of SplitMix64 (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        bits = bits + np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))
