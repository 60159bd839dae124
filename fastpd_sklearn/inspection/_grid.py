"""Where partial dependence is evaluated: the points of each feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np
from scipy.stats.mstats import mquantiles

from fastpd_sklearn.explainers import LinearCurve, StepCurve
from fastpd_sklearn.forest import _frames, _rows
from fastpd_sklearn.inspection._columns import find_column

EXACT = "exact"
"""The ``grid_resolution`` that asks for every step of the model."""

DECILES = np.arange(0.1, 1.0, 0.1)

BEYOND = 0.02
"""How far the points of steps go beyond an end that is a break, as a share of the range."""


@dataclass(frozen=True, eq=False)
class Column:
    """A column of ``X`` as grids see it.

    Parameters
    ----------
    values : ndarray of shape (n_rows,)
        Numbers, or objects where it holds labels.
    labelled : bool
        Whether it holds labels rather than numbers.
    order : list or None
        The labels in their order where they are ordered.
    """

    values: np.ndarray
    labelled: bool
    order: list | None = None

    def finite(self) -> np.ndarray:
        """The numbers that are neither missing nor infinite."""
        return self.values[np.isfinite(self.values)]

    def categories(self) -> np.ndarray:
        """The values that occur, in order; missing last, if it occurs."""
        if not self.labelled:
            return np.unique(self.values)  # NaN once, and last
        missing = [_frames.is_missing(value) for value in self.values.tolist()]
        found = {v for v, gone in zip(self.values.tolist(), missing, strict=True) if not gone}
        known = [] if self.order is None else [label for label in self.order if label in found]
        rest = sorted(found.difference(known), key=lambda label: (type(label).__name__, label))
        return _objects([*known, *rest, *([np.nan] if any(missing) else [])])

    def deciles(self) -> np.ndarray:
        """The deciles of the numbers, of shape (9,); empty if there are none."""
        values = self.finite().astype(np.float64)
        return np.asarray(mquantiles(values, prob=DECILES)) if len(values) else values


def read_column(X, j: int) -> Column:
    """Column ``j`` of ``X``.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    j : int

    Returns
    -------
    Column
    """
    values = _rows.column_array(X, j)
    order = _order(_frames.column(X, j)) if _frames.is_frame(X) else None
    if values.dtype.kind in "biuf":
        return Column(values, False)
    present = [value for value in values.tolist() if not _frames.is_missing(value)]
    is_frame_label = _frames.is_frame(X) and _frames.is_categorical(_frames.column(X, j))
    if not is_frame_label and all(isinstance(value, Real) for value in present):
        numbers = [np.nan if _frames.is_missing(value) else value for value in values.tolist()]
        return Column(np.array(numbers, dtype=np.float64), False)
    return Column(values if values.dtype == object else _objects(values.tolist()), True, order)


def _order(series) -> list | None:
    """Labels of a frame's column that says in which order they are."""
    if not _frames.is_categorical(series):
        return None
    # A pandas dtype says whether its labels are in order; a polars Enum is a list of them.
    is_ordered = series.cat.ordered if hasattr(series, "iloc") else _frames.has_codes(series)
    return list(_frames.labels(series)) if is_ordered else None


@dataclass(frozen=True)
class GridOptions:
    """How grids are made where the user gives no points.

    Parameters
    ----------
    resolution : int or "exact"
        Points of a feature.
    percentiles : tuple of two float
        The lowest and the highest point, as shares of the values below them.

    Raises
    ------
    ValueError
        If they are no numbers of that kind.
    """

    resolution: int | str
    percentiles: tuple[float, float]

    def __post_init__(self) -> None:
        low_high = self.percentiles
        if (
            isinstance(low_high, str)
            or not isinstance(low_high, Iterable)
            or len(tuple(low_high)) != 2
            or not all(isinstance(p, Real) and 0 <= p <= 1 for p in low_high)
        ):
            raise ValueError(
                f"percentiles={low_high!r} should be two numbers in [0, 1], such as (0.05, 0.95)"
            )
        if low_high[0] >= low_high[1]:
            raise ValueError(
                f"percentiles={tuple(low_high)!r}: percentiles[0] must be strictly less than "
                "percentiles[1]"
            )
        if isinstance(self.resolution, str) and self.resolution == EXACT:
            return
        if not isinstance(self.resolution, Integral) or self.resolution < 2:
            raise ValueError(
                f"grid_resolution={self.resolution!r} must be an int strictly greater than 1, or "
                f"{EXACT!r} for every step of a tree ensemble"
            )

    @property
    def exact(self) -> bool:
        """Whether every step is asked for."""
        return self.resolution == EXACT

    def points(self, column: Column) -> np.ndarray:
        """Points of a column of numbers: its values if they are few, else evenly spaced ones.

        Missing and infinite values are not among them, and do not move the percentiles.

        Parameters
        ----------
        column : Column

        Returns
        -------
        ndarray of shape (n_points,), ascending
            NaN alone for a column without any number.
        """
        values = column.finite()
        distinct = np.unique(values)
        if not len(distinct):
            return np.array([np.nan])
        if len(distinct) < self.resolution:
            return distinct
        low, high = mquantiles(values.astype(np.float64), prob=self.percentiles)
        if low < high:
            return np.unique(np.linspace(low, high, self.resolution))
        # Most values are the same number: show some of the others too.
        chosen = np.linspace(0, len(distinct) - 1, self.resolution).round().astype(np.intp)
        return distinct[chosen]


def step_points(curve: StepCurve | LinearCurve, column: Column) -> np.ndarray:
    """One point on each step of a curve that the values of a column reach, or all its corners.

    Parameters
    ----------
    curve : StepCurve or LinearCurve
    column : Column

    Returns
    -------
    ndarray of shape (n_points,), ascending
        The smallest value, all breaks up to the largest one, and the largest value. Where an
        end is a break itself, a point a little beyond it shows what is on its other side. What
        the curve is at a point it is from there to the next point if ``curve.strict``, else
        from the point before up to there.
    """
    values = column.finite()
    if not len(values):
        return np.array([np.nan])
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.array([low])
    if isinstance(curve, LinearCurve):
        return curve.corners(low, high)[0]
    beyond = BEYOND * (high - low)
    low = low - beyond if _is_break(low, curve) else low
    high = high + beyond if _is_break(high, curve) else high
    within = (curve.breaks > low) & (curve.breaks < high)
    return np.unique(np.concatenate([[low], curve.breaks[within], [high]]))


def _is_break(value: float, curve: StepCurve) -> bool:
    return bool(np.any(curve.breaks == (np.float32(value) if curve.single else value)))


def custom_points(custom_values, names: list) -> dict[int, np.ndarray]:
    """The points that a user gave, by the number of the column.

    Parameters
    ----------
    custom_values : mapping of int or str to array-like of shape (n_points,), or None
    names : list
        Names of the columns.

    Returns
    -------
    dict of int to ndarray of shape (n_points,)

    Raises
    ------
    ValueError, TypeError
        If there is no such column, or the points are not a list of values.
    """
    if custom_values is None:
        return {}
    if not isinstance(custom_values, Mapping):
        raise TypeError(
            f"custom_values={custom_values!r} should be a dict from a feature to its points"
        )
    found = {}
    for key, given in custom_values.items():
        found[find_column(key, names, "custom_values")] = _as_points(key, given)
    return found


def _as_points(key, given) -> np.ndarray:
    if np.ndim(given) != 1 or len(given) == 0:
        raise ValueError(
            "The custom grid for some features is not a one-dimensional array. Feature "
            f"{key}: {np.ndim(given)} dimensions and shape {np.shape(given)}; custom_values takes "
            "a list of at least one point a feature"
        )
    items = list(given)
    plain = all(isinstance(v, Real) or _frames.is_missing(v) for v in items)
    if not plain:
        return _objects(items)
    if any(_frames.is_missing(v) for v in items):
        return np.array([np.nan if _frames.is_missing(v) else v for v in items], dtype=np.float64)
    return np.asarray(items)


def _objects(items: list) -> np.ndarray:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out
