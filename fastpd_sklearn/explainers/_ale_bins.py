"""Bins of accumulated local effects: where their edges are and which rows lie in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers._order import PassedNumbers

ROUNDING = 1e-12
"""Of a share of the weight: so much below a row's own share it still means this row."""


FEW_EDGES = 40
"""So few edges are looked at one by one, which processors do for many rows at once."""


@dataclass(frozen=True, eq=False)
class Bins:
    """The bins of one column, and the rows of a background in them.

    Parameters
    ----------
    points : ndarray of shape (n_points,)
        Edges of bins, ascending; or labels in the order in which they are accumulated.
    place : ndarray of shape (n_rows,), int
        Of numbers the bin, bin ``b`` being ``(points[b], points[b + 1]]``, the first one closed;
        of labels the place among the points. -1 for rows that are in none.
    share : ndarray of shape (n_rows,), float64, or None
        Where within its bin each number lies: 0 at the lower edge, 1 at the upper one. None
        for labels.
    n_outside : int
        Rows that are in none: missing, infinite or beyond the edges.
    """

    points: np.ndarray
    place: np.ndarray
    share: np.ndarray | None
    n_outside: int

    @property
    def n_bins(self) -> int:
        """Number of steps between neighbouring points."""
        return len(self.points) - 1


def quantile_edges(values: np.ndarray, weights: np.ndarray | None, n_bins: int) -> np.ndarray:
    """Edges that part the data into bins of about the same weight.

    Parameters
    ----------
    values : ndarray of shape (n_rows,), float64, finite, at least one
    weights : ndarray of shape (n_rows,), positive, or None
    n_bins : int
        The most bins.

    Returns
    -------
    ndarray of shape (n_edges,), float64, ascending
        Values that occur, the smallest and the largest among them: all of them if they are
        at most ``n_bins + 1``; otherwise the quantiles of the inverse empirical distribution
        function, each once. No bin is empty, since its upper edge lies in it.
    """
    if weights is None:
        edges = _quick_edges(values, n_bins)
        if edges is not None:
            return edges
        values = np.sort(values)
        total = np.arange(1.0, len(values) + 1)
    else:
        order = np.argsort(values, kind="stable")
        values, total = values[order], np.cumsum(weights[order])
    is_last = np.append(values[1:] != values[:-1], True)
    if np.count_nonzero(is_last) <= n_bins + 1:
        return values[is_last]
    return np.unique(values[np.searchsorted(total, _wanted(n_bins, total[-1]))])


def _wanted(n_bins: int, total: float) -> np.ndarray:
    """Weights up to the edges, from the lowest value on."""
    return np.linspace(0, 1, n_bins + 1) * total * (1 - ROUNDING)


def _quick_edges(values: np.ndarray, n_bins: int) -> np.ndarray | None:
    """The edges without sorting all values; None where that does not tell them.

    Values are put into buckets, by which they are in order but for those within a bucket; only
    buckets that hold an edge are sorted.
    """
    bucket = _buckets(values)
    count = np.bincount(bucket)
    filled = np.flatnonzero(count)
    if len(filled) <= n_bins + 1:  # and so may be the values
        one = np.zeros(len(count))
        one[bucket] = values
        return one[filled] if np.array_equal(one[bucket], values) else None
    wanted = _wanted(n_bins, float(len(values)))
    rank = np.maximum(np.ceil(wanted).astype(np.intp) - 1, 0)
    behind = np.cumsum(count[filled])
    place = np.searchsorted(behind, rank, side="right")
    holds_edge = np.zeros(len(filled), bool)
    holds_edge[place] = True
    left_out = np.cumsum(np.where(holds_edge, 0, count[filled]))
    is_sorted = np.zeros(len(count), bool)
    is_sorted[filled] = holds_edge
    return np.unique(np.sort(values[is_sorted[bucket]])[rank - left_out[place]])


def _buckets(values: np.ndarray) -> np.ndarray:
    """Numbers from 0 on that ascend with the values: the first 16 bits of a float32."""
    with np.errstate(over="ignore", under="ignore"):
        bits = (values.astype(np.float32) + np.float32(0)).view(np.int32)  # -0.0 is 0.0
    first = (bits ^ ((bits >> 31) & 0x7FFFFFFF)) >> 16
    return (first - first.min()).astype(np.intp)


def passed_edges(numbers: PassedNumbers, n_bins: int) -> np.ndarray:
    """What :func:`quantile_edges` gives, of numbers that come in passes."""
    edges = numbers.few(n_bins + 1)
    if edges is not None:
        return edges
    return np.unique(numbers.at_weights(_wanted(n_bins, numbers.total)))


def number_bins(values: np.ndarray, edges: np.ndarray) -> Bins:
    """Rows in the bins of a column of numbers.

    Parameters
    ----------
    values : ndarray of shape (n_rows,), float64
    edges : ndarray of shape (n_edges,), float64, ascending

    Returns
    -------
    Bins
    """
    within = (values >= edges[0]) & (values <= edges[-1])
    place = _ranks(values, edges[1:-1])
    share = np.zeros(len(values))
    if len(edges) > 1:
        share = (values - edges[place]) / np.diff(edges)[place]
    if within.all():
        return Bins(edges, place, share, 0)
    place[~within], share[~within] = -1, 0.0
    return Bins(edges, place, share, int(np.count_nonzero(~within)))


def _ranks(values: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """How many of some numbers lie below each value."""
    if len(inner) >= FEW_EDGES:
        return np.searchsorted(inner, values)
    rank = np.zeros(len(values), np.int8)
    for edge in inner:
        rank += values > edge
    return rank.astype(np.intp)


def given_edges(name: str, given) -> np.ndarray:
    """Edges that a user gave for a column of numbers, checked."""
    try:
        edges = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"custom_values: {name!r} is a column of numbers, and its edges should be numbers, "
            f"got {given!r}; columns that are categories are named in `categorical_features`"
        ) from error
    if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all():
        raise ValueError(
            f"custom_values: expected at least two finite edges of bins for {name!r}, got {given!r}"
        )
    if np.any(np.diff(edges) <= 0):
        raise ValueError(f"custom_values: the edges for {name!r} do not ascend: {given!r}")
    return edges


def filled_bins(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """Which bins have rows, bool of shape (n_bins,)."""
    place = number_bins(values, edges).place
    return np.bincount(place[place >= 0], minlength=len(edges) - 1) > 0


def without_empty(edges: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Edges of which each that closes an empty bin is left out; see :func:`filled_bins`."""
    if not filled.any():
        return edges[:0]
    # The upper edge of an empty bin goes, so that the bin becomes a part of the next one; the
    # bins above the last filled one go for good.
    last = np.flatnonzero(filled)[-1]
    kept = np.concatenate([[True], filled[: last + 1]])
    return edges[: last + 2][kept]
