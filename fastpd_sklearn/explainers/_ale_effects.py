"""From local effects, the differences of responses within bins, to accumulated ones."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.special import ndtri

from fastpd_sklearn.explainers._ale_bins import Bins


@dataclass
class LocalEffects:
    """Weighted moments of local effects by bin, of rows that come in parts.

    Parameters
    ----------
    n_bins, n_outputs : int

    Attributes
    ----------
    counts : ndarray of shape (n_bins,), int64
        Local effects, with weight or without.
    weight, square_weight : ndarray of shape (n_bins,)
        Sums of the weights and of their squares.
    mean, spread : ndarray of shape (n_outputs, n_bins)
        Mean local effect and the sum of squares about it.
    """

    n_bins: int
    n_outputs: int
    counts: np.ndarray = field(init=False)
    weight: np.ndarray = field(init=False)
    square_weight: np.ndarray = field(init=False)
    mean: np.ndarray = field(init=False)
    spread: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        self.counts = np.zeros(self.n_bins, np.int64)
        self.weight, self.square_weight = np.zeros((2, self.n_bins))
        self.mean, self.spread = np.zeros((2, self.n_outputs, self.n_bins))

    def add(self, place: np.ndarray, effects: np.ndarray, weights: np.ndarray | None) -> None:
        """Add rows.

        Parameters
        ----------
        place : ndarray of shape (n_rows,), int
            Bins; -1 for rows in none.
        effects : ndarray of shape (n_rows, n_outputs)
        weights : ndarray of shape (n_rows,), or None
        """
        if np.any(place < 0):
            kept = place >= 0
            place, effects = place[kept], effects[kept]
            weights = None if weights is None else weights[kept]
        more = LocalEffects(self.n_bins, self.n_outputs)
        more.counts += np.bincount(place, minlength=self.n_bins)
        more.weight += more.counts if weights is None else self._sums(place, weights)
        more.square_weight += more.weight if weights is None else self._sums(place, weights**2)
        filled = np.where(more.weight > 0, more.weight, 1.0)
        for k in range(self.n_outputs):
            mean = self._sums(place, effects[:, k], weights) / filled
            more.mean[k] = mean
            more.spread[k] = self._sums(place, (effects[:, k] - mean[place]) ** 2, weights)
        self.merge(more)

    def merge(self, other: LocalEffects) -> None:
        """Add the rows of others."""
        # The moments of two samples together (Chan, Golub and LeVeque 1983): sums of raw squares
        # would lose a spread that is small beside the mean.
        total = self.weight + other.weight
        share = other.weight / np.where(total > 0, total, 1.0)
        shift = other.mean - self.mean
        self.spread += other.spread + shift**2 * self.weight * share
        self.mean += shift * share
        self.counts += other.counts
        self.square_weight += other.square_weight
        self.weight = total

    def _sums(self, place: np.ndarray, values: np.ndarray, weights=None) -> np.ndarray:
        """Sums over the rows of each bin."""
        values = values if weights is None else values * weights
        return np.bincount(place, values, self.n_bins)

    def deviation(self) -> np.ndarray:
        """Standard deviation of the local effects, shape (n_outputs, n_bins).

        Unbiased variances; of a bin with one row the mean variance of the others, NaN if there
        is none.
        """
        effective = self._effective()
        several = effective > 1 + 1e-9
        freedom = np.where(several, self.weight * (1 - 1 / np.where(several, effective, 2.0)), 1.0)
        variance = np.where(several, self.spread / freedom, np.nan)
        if several.any() and not several.all():
            pooled = np.average(variance[:, several], axis=1, weights=self.weight[several])
            variance = np.where(several, variance, pooled[:, None])
        return np.sqrt(variance)

    def mean_variance(self) -> np.ndarray:
        """Variance of the mean of each bin, shape (n_outputs, n_bins)."""
        return self.deviation() ** 2 / self._effective()

    def _effective(self) -> np.ndarray:
        """Rows that would tell as much if they had equal weights (Kish)."""
        return self.weight**2 / np.where(self.square_weight > 0, self.square_weight, 1.0)


def centring(weight: np.ndarray, inside: np.ndarray | None) -> np.ndarray:
    """How much of each bin's step the mean row has behind it.

    Parameters
    ----------
    weight : ndarray of shape (n_bins,), or (n_labels,)
        Of the rows in each bin of numbers, or with each label.
    inside : ndarray of shape (n_bins,), or None
        The sum of weight times the place within the bin; None for labels.

    Returns
    -------
    ndarray of shape (n_bins,), or (n_labels - 1,)
        The mean accumulated effect of the rows is the sum of the bins' local effects times this.
    """
    from_here = np.cumsum(weight[::-1])[::-1]
    if inside is None:  # the row with label b has the steps before b behind it
        return from_here[1:] / weight.sum()
    return (from_here - weight + inside) / weight.sum()


def accumulate(local: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """The accumulated effect at the points, zero in the mean of the data.

    Parameters
    ----------
    local : ndarray of shape (..., n_bins)
        Mean local effects.
    centre : ndarray of shape (n_bins,)
        From :func:`centring`.

    Returns
    -------
    ndarray of shape (..., n_bins + 1)
    """
    start = np.zeros((*local.shape[:-1], 1))
    total = np.concatenate([start, np.cumsum(local, axis=-1)], axis=-1)
    return total - (local @ centre)[..., None]


def standard_error(variance: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Standard error of the accumulated effect at the points.

    The effect at a point is a sum of the bins' means with the weights ``1 - centre`` before the
    point and ``-centre`` after it; means of different bins are of different rows.

    Parameters
    ----------
    variance : ndarray of shape (n_outputs, n_bins)
        Of the bins' means.
    centre : ndarray of shape (n_bins,)

    Returns
    -------
    ndarray of shape (n_outputs, n_bins + 1)
    """
    n_bins = len(centre)
    behind = np.arange(n_bins + 1)[:, None] > np.arange(n_bins)
    return np.sqrt(variance @ ((behind - centre) ** 2).T)


def quantile_of_normal(confidence: float) -> float:
    """Half-width, in standard errors, of an interval that holds so much of a normal variable."""
    return float(ndtri(0.5 + confidence / 2))


# -------------------------------------------------------------------- second order


def fill_empty(local: np.ndarray, is_empty: np.ndarray, points) -> np.ndarray:
    """Local effects in which each empty cell has those of the nearest cell that is not.

    Parameters
    ----------
    local : ndarray of shape (n_outputs, n_first, n_second)
    is_empty : ndarray of shape (n_first, n_second), bool
    points : tuple of two ndarray
        Edges of the bins; distances are between the cells' centres, relative to the range.

    Returns
    -------
    ndarray of shape (n_outputs, n_first, n_second)
        Of cells that are equally near the first, row by row.
    """
    if not is_empty.any():
        return local
    middles = [(p[1:] + p[:-1]) / 2 / (p[-1] - p[0]) for p in points]
    full, empty = np.argwhere(~is_empty), np.argwhere(is_empty)
    centre = [np.column_stack([middles[k][cells[:, k]] for k in (0, 1)]) for cells in (full, empty)]
    filled = local.copy()
    for cell, middle in zip(empty, centre[1], strict=True):
        nearest = full[np.argmin(((centre[0] - middle) ** 2).sum(axis=1))]
        filled[:, cell[0], cell[1]] = local[:, nearest[0], nearest[1]]
    return filled


@dataclass(frozen=True, eq=False)
class CellShares:
    """Where in their cells the rows lie: sums over the rows of each cell.

    Parameters
    ----------
    weight, first, second, both : ndarray of shape (n_first, n_second)
        Sums of the weights, and of these times the row's place within its bin of the first
        column, of the second, and times both.
    """

    weight: np.ndarray
    first: np.ndarray
    second: np.ndarray
    both: np.ndarray

    def __add__(self, other: CellShares) -> CellShares:
        return CellShares(
            self.weight + other.weight,
            self.first + other.first,
            self.second + other.second,
            self.both + other.both,
        )


def cell_shares(first: Bins, second: Bins, weights: np.ndarray | None) -> CellShares:
    """The rows of a background in the cells of two columns.

    Parameters
    ----------
    first, second : Bins
        Of columns of numbers.
    weights : ndarray of shape (n_rows,), or None

    Returns
    -------
    CellShares
    """
    shape = (first.n_bins, second.n_bins)
    within = (first.place >= 0) & (second.place >= 0)
    cell = first.place[within] * shape[1] + second.place[within]
    weights = np.ones(len(cell)) if weights is None else weights[within]
    u, v = first.share[within], second.share[within]
    size = shape[0] * shape[1]
    sums = [np.bincount(cell, weights * w, size).reshape(shape) for w in (1.0, u, v, u * v)]
    return CellShares(*sums)


def interaction(local: np.ndarray, shares: CellShares) -> np.ndarray:
    """The accumulated second-order effect without the main effects that it holds.

    Parameters
    ----------
    local : ndarray of shape (n_outputs, n_first, n_second)
        Mean second differences of the cells, without gaps.
    shares : CellShares

    Returns
    -------
    ndarray of shape (n_outputs, n_first + 1, n_second + 1)
        At the edges. Interpolated bilinearly, it has first-order effects of zero in either
        column, and the mean zero over the rows.
    """
    total = np.zeros((len(local), local.shape[1] + 1, local.shape[2] + 1))
    total[:, 1:, 1:] = local.cumsum(axis=1).cumsum(axis=2)
    # What a step along one column adds at a row: the steps at both ends of the row's bin of the
    # other column, by its place therein.
    main_first = _main(np.diff(total, axis=1), shares.weight, shares.second)
    main_second = _main(np.diff(total, axis=2).transpose(0, 2, 1), shares.weight.T, shares.first.T)
    total[:, 1:] -= main_first.cumsum(axis=1)[:, :, None]
    total[:, :, 1:] -= main_second.cumsum(axis=1)[:, None, :]
    return total - _mean(total, shares)[:, None, None]


def _main(step: np.ndarray, weight: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Mean step over the rows of each bin, shape (n_outputs, n_bins)."""
    lower, upper = step[:, :, :-1], step[:, :, 1:]
    total = (lower * (weight - share) + upper * share).sum(axis=2)
    row_weight = weight.sum(axis=1)
    return total / np.where(row_weight > 0, row_weight, 1.0)


def _mean(total: np.ndarray, shares: CellShares) -> np.ndarray:
    """Mean of a bilinear surface over the rows, shape (n_outputs,)."""
    w, u, v, uv = shares.weight, shares.first, shares.second, shares.both
    corner = {
        (0, 0): w - u - v + uv,
        (1, 0): u - uv,
        (0, 1): v - uv,
        (1, 1): uv,
    }
    n_first, n_second = w.shape
    value = sum(
        (total[:, i : i + n_first, j : j + n_second] * c).sum(axis=(1, 2))
        for (i, j), c in corner.items()
    )
    return value / w.sum()
