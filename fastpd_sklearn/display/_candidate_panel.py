"""One feature of the candidates of a search: its axis, and the lines that are drawn along it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fastpd_sklearn.display._axis import (
    MOST_CATEGORIES,
    FeatureAxis,
    draw_curve,
    most_frequent,
    with_cells,
)
from fastpd_sklearn.display._style import style
from fastpd_sklearn.display._text import short_value, shorten, shorten_all
from fastpd_sklearn.explainers import CategoryCurve, LinearCurve, StepCurve
from fastpd_sklearn.forest import _frames

FEATURE_WIDTH, TICK_WIDTH = 34, 18
"""Characters of a feature's name, and of a category's."""


def lay_out(name: str, curve, values: np.ndarray, grid: np.ndarray) -> FeatureAxis:
    """The axis of a feature, from its smallest value to its largest, or of its categories.

    Two values are categories as well: nothing lies between them.

    Parameters
    ----------
    name : str
    curve : StepCurve, LinearCurve, CategoryCurve or None
        Of any candidate: all have the same background.
    values : ndarray of shape (n_rows,)
        The feature's column of the background.
    grid : ndarray of shape (n_points,)
        Where the feature is evaluated if it has no exact curve.

    Returns
    -------
    FeatureAxis
        Of numbers it has a single piece; each candidate has its own.
    """
    name = shorten(name, FEATURE_WIDTH)
    if isinstance(curve, CategoryCurve):
        return _category_axis(name, curve.categories, values)
    numbers = np.asarray(values, dtype=np.float64)
    finite = numbers[np.isfinite(numbers)]
    distinct = np.unique(finite)
    if len(distinct) == 2 and (isinstance(curve, StepCurve) or np.isin(distinct, grid).all()):
        known = [bool(v) if values.dtype == bool else v for v in distinct.tolist()]
        if len(finite) < len(numbers) and isinstance(curve, StepCurve):
            known.append(np.nan)
        return _category_axis(name, np.array(known, dtype=object), values)
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    has_missing = isinstance(curve, StepCurve | LinearCurve) and bool(np.isnan(numbers).any())
    points = np.array([low, np.nan] if has_missing else [low])
    return FeatureAxis(name, points, np.array([low, high]), None, numbers)


def _category_axis(name: str, categories: np.ndarray, values: np.ndarray) -> FeatureAxis:
    rows = [_key(value) for value in values.tolist()]
    known = [c for c in categories.tolist() if not _frames.is_missing(c) or None in rows]
    place = {_key(category): k for k, category in enumerate(known)}
    codes = np.array([place.get(row, -1) for row in rows], dtype=np.intp)
    shown = most_frequent(codes, len(known), MOST_CATEGORIES)
    rank = np.full(len(known) + 1, np.nan)  # the last is for values without a place
    rank[shown] = np.arange(len(shown))
    points = np.empty(len(shown), dtype=object)
    points[:] = [known[k] for k in shown]
    labels = tuple(shorten_all([short_value(point) for point in points], TICK_WIDTH))
    return FeatureAxis(name, points, None, labels, rank[codes], n_categories=len(known))


def _key(value):
    return None if _frames.is_missing(value) else value


def draw_line(ax, axis: FeatureAxis, curve, grid, average, look: dict, line_kw: dict):
    """Draw the curve of one fit.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : FeatureAxis
        From :func:`lay_out`.
    curve : StepCurve, LinearCurve, CategoryCurve or None
    grid, average : ndarray of shape (n_points,)
        What is drawn where there is no exact curve.
    look : dict
        Our own keyword arguments of ``Axes.plot``.
    line_kw : dict
        The user's.

    Returns
    -------
    line : matplotlib Line2D
    marker : matplotlib Line2D or None
        Of missing values.
    """
    from matplotlib.lines import Line2D

    if axis.edges is None:
        look = style({"marker": "o", "markersize": 4, **look}, line_kw, Line2D)
        return ax.plot(np.arange(len(axis.points)), _at(axis, curve, grid, average), **look)[
            0
        ], None
    if curve is None:
        finite = np.isfinite(grid)
        axis = replace(axis, points=grid[finite], is_step=False)
        return draw_curve(ax, axis, average[finite], look, line_kw)
    low, high = axis.edges
    if isinstance(curve, LinearCurve):
        points, edges = with_cells(curve.corners(low, high)[0])
    else:
        inner = curve.breaks[(curve.breaks > low) & (curve.breaks < high)]
        edges = np.concatenate([[low], inner, [high]])
        points = edges[:-1] if curve.strict else edges[1:]
    if axis.has_missing:
        points = np.append(points, np.nan)
    axis = replace(axis, points=points, edges=edges, is_step=isinstance(curve, StepCurve))
    return draw_curve(ax, axis, curve(points)[0], look, line_kw)


def _at(axis: FeatureAxis, curve, grid, average) -> np.ndarray:
    """The curve at the categories of an axis."""
    if isinstance(curve, CategoryCurve):
        return curve(axis.points)[0]
    points = axis.points.astype(np.float64)
    if curve is None:
        return np.array([average[np.flatnonzero(grid == point)[0]] for point in points])
    return curve(points)[0]
