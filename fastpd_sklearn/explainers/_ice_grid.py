"""Points along which curves of single rows are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Real

import numpy as np

from fastpd_sklearn.explainers._columns import Column
from fastpd_sklearn.explainers._order import HeldNumbers, Numbers, inverse_ranks

STRATEGIES = ("uniform", "quantile", "unique")


@dataclass(frozen=True, eq=False)
class Axis:
    """The points of one column.

    Parameters
    ----------
    column : int
    name : str
    points : ndarray of shape (n_points,)
        Numbers or labels; NaN stands for missing.
    breaks : ndarray of shape (n_breaks,), or None
        With an exact grid, where the curves may jump: there is a point in each piece.
    anchor : object
        The value at which centred curves are zero; None if they are not centred.
    is_categorical : bool
    """

    column: int
    name: str
    points: np.ndarray
    breaks: np.ndarray | None
    anchor: object
    is_categorical: bool

    @property
    def all_points(self) -> np.ndarray:
        """The points, followed by the anchor if there is one."""
        if self.anchor is None:
            return self.points
        last = np.empty(1, dtype=self.points.dtype)
        last[0] = self.anchor
        return np.concatenate([self.points, last])

    def labels(self) -> list[str]:
        """What the columns of ``transform`` are about, such as ``"age=35.0"``."""
        return [f"{self.name}={point}" for point in self.points.tolist()]


@dataclass(frozen=True, eq=False)
class Facts:
    """What points are made of: the values of a column over the background.

    Parameters
    ----------
    labels : ndarray of shape (n_labels,), or None
        Those that occur; None for a column of numbers.
    has_missing : bool
    numbers : Numbers or None
        The finite ones.
    """

    labels: np.ndarray | None
    has_missing: bool
    numbers: Numbers | None

    @classmethod
    def of(cls, column: Column) -> Facts:
        """Those of a column in memory."""
        numbers = None
        if column.labels is None:
            numbers = HeldNumbers(column.values[np.isfinite(column.values)])
        return cls(column.labels, bool(column.missing.any()), numbers)


def make_points(
    facts: Facts, resolution: int, percentiles: tuple[float, float], strategy: str
) -> np.ndarray:
    """Points of a column.

    Parameters
    ----------
    facts : Facts
    resolution : int
        The most points, but for labels and for ``strategy="unique"``.
    percentiles : tuple of float
        Shares of the data below the ends of the grid.
    strategy : {"uniform", "quantile", "unique"}

    Returns
    -------
    ndarray of shape (n_points,)
        The labels that occur, and NaN if a label is missing; of numbers all that occur if
        they are fewer than ``resolution``, as scikit-learn has it. Missing and infinite
        numbers count for nothing.
    """
    if facts.labels is not None:
        gap = np.full(int(facts.has_missing), np.nan, dtype=facts.labels.dtype)
        return np.concatenate([facts.labels, gap])
    numbers = facts.numbers
    if strategy == "unique":
        return numbers.distinct()
    few = numbers.few(resolution - 1)
    if few is not None:
        return few
    if strategy == "quantile":
        return np.unique(
            numbers.at(inverse_ranks(np.linspace(*percentiles, resolution), numbers.n))
        )
    low, high = _between(numbers, np.array(percentiles))
    if low < high:
        return np.linspace(low, high, resolution)
    # Nearly all values are tied: no two percentiles tell an interval to divide.
    distinct = numbers.distinct()
    return distinct[np.linspace(0, len(distinct) - 1, resolution).round().astype(np.intp)]


def _between(numbers: Numbers, shares: np.ndarray) -> np.ndarray:
    """Quantiles between two numbers, as `scipy.stats.mstats.mquantiles` has them."""
    place = np.clip(numbers.n * shares + 0.4 + 0.2 * shares, 1, max(1, numbers.n - 1))
    lower = np.floor(place).astype(np.intp)
    upper_share = np.clip(numbers.n * shares + 0.4 + 0.2 * shares - lower, 0, 1)
    below, above = numbers.at(np.concatenate([lower - 1, lower])).reshape(2, -1)
    return (1 - upper_share) * below + upper_share * above


def given_points(points, is_labelled: bool, name: str) -> np.ndarray:
    """Points that a user gave for a column.

    Parameters
    ----------
    points : array-like of shape (n_points,)
    is_labelled : bool
        Whether the column is one of labels.
    name : str
        For messages.

    Returns
    -------
    ndarray of shape (n_points,)
    """
    try:
        found = np.asarray(points, dtype=object if is_labelled else np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"custom_values: {name!r} takes numbers, got {points!r}") from error
    if found.ndim != 1 or not len(found):
        raise ValueError(
            f"custom_values: expected the points of {name!r} as a non-empty array of one "
            f"dimension, got shape {found.shape}"
        )
    twice = [point for point, n in Counter(found.tolist()).items() if n > 1]
    if twice:
        raise ValueError(
            f"custom_values: {twice[0]!r} occurs twice among the points of {name!r}; name each once"
        )
    return found


def check_percentiles(percentiles) -> None:
    """Refuse what are not two ascending shares."""
    ok = isinstance(percentiles, tuple | list | np.ndarray) and len(percentiles) == 2
    if not ok or not all(isinstance(p, Real) for p in percentiles):
        raise ValueError(f"percentiles={percentiles!r} should be two numbers, such as (0.05, 0.95)")
    if not 0 <= percentiles[0] < percentiles[1] <= 1:
        raise ValueError(f"percentiles={percentiles!r} should ascend and lie between 0 and 1")


def slopes(curves: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Derivatives by central differences, at the ends by differences of second order.

    Parameters
    ----------
    curves : ndarray of shape (..., n_points)
    points : ndarray of shape (n_points,)
        Ascending numbers; NaN, for missing, comes last if it is there.

    Returns
    -------
    ndarray of shape (..., n_points)
        NaN at a missing point; exact for parabolas.
    """
    n = len(points) - int(np.isnan(points[-1]))
    out = np.full(curves.shape, np.nan)
    order = 2 if n > 2 else 1
    out[..., :n] = np.gradient(curves[..., :n], points[:n], axis=-1, edge_order=order)
    return out
