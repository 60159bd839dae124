"""Points along which curves of single rows are drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from numbers import Real

import numpy as np

from fastpd_sklearn.explainers._columns import Column

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


def make_points(
    column: Column, resolution: int, percentiles: tuple[float, float], strategy: str
) -> np.ndarray:
    """Points of a column.

    Parameters
    ----------
    column : Column
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
    if column.labels is not None:
        gap = np.full(int(column.missing.any()), np.nan, dtype=column.labels.dtype)
        return np.concatenate([column.labels, gap])
    values = column.values[np.isfinite(column.values)]
    distinct = np.unique(values)
    if strategy == "unique" or len(distinct) < resolution:
        return distinct
    if strategy == "quantile":
        shares = np.linspace(*percentiles, resolution)
        return np.unique(np.quantile(values, shares, method="inverted_cdf"))
    from scipy.stats.mstats import mquantiles

    low, high = np.asarray(mquantiles(values, prob=percentiles))
    if low < high:
        return np.linspace(low, high, resolution)
    # Nearly all values are tied: no two percentiles tell an interval to divide.
    return distinct[np.linspace(0, len(distinct) - 1, resolution).round().astype(np.intp)]


def given_points(points, column: Column, name: str) -> np.ndarray:
    """Points that a user gave for a column.

    Parameters
    ----------
    points : array-like of shape (n_points,)
    column : Column
    name : str
        For messages.

    Returns
    -------
    ndarray of shape (n_points,)
    """
    try:
        found = np.asarray(points, dtype=np.float64 if column.labels is None else object)
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
