"""Effects of two features as a heat map."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.display._axis import FeatureAxis, dress_axis
from fastpd_sklearn.display._style import DIVERGING, effect_label

MOST_DOTS = 400
"""Rows that are drawn as dots, evenly spaced where there are more."""

_SPREAD = (0.7548776662, 0.5698402910)
"""Steps that fill a square evenly: of the plastic number, as the golden ratio does a line."""


def effect_limits(values: np.ndarray) -> dict:
    """Limits of colours, with no effect in their middle."""
    largest = float(np.nanmax(np.abs(values)))
    largest = largest if largest > 0 else 1.0
    return {"vmin": -largest, "vmax": largest}


def draw_heatmap(ax, axes, values: np.ndarray, limits: dict, heatmap_kw: dict | None):
    """Draw an effect over the product of two features.

    Parameters
    ----------
    ax : matplotlib Axes
    axes : pair of FeatureAxis
        The horizontal one and the vertical one.
    values : ndarray of shape (n_points of the first, n_points of the second)
    limits : dict
        From :func:`effect_limits`.
    heatmap_kw : dict or None
        For ``Axes.pcolormesh``, instead of our own.

    Returns
    -------
    matplotlib QuadMesh
    """
    horizontal, vertical = axes
    cells = horizontal.with_gap(vertical.with_gap(values, 1), 0)
    look = {"cmap": DIVERGING, "rasterized": True, **limits, **(heatmap_kw or {})}
    mesh = ax.pcolormesh(horizontal.cells, vertical.cells, np.ma.masked_invalid(cells.T), **look)
    dress_axis(ax, horizontal, "x")
    dress_axis(ax, vertical, "y")
    return mesh


def draw_colorbar(mesh, ax, response: str):
    """Say what the colours mean.

    Parameters
    ----------
    mesh : matplotlib QuadMesh
    ax : matplotlib Axes, or list of them
        Whose place it takes a part of.
    response : str

    Returns
    -------
    matplotlib Colorbar
    """
    colorbar = mesh.figure.colorbar(mesh, ax=ax, fraction=0.05, pad=0.02)
    colorbar.set_label(effect_label("joint effect", response), size="small")
    return colorbar


def draw_dots(ax, axes, chosen: np.ndarray, scatter_kw: dict | None):
    """Draw rows as dots, so that one sees where a heat map rests on data.

    Parameters
    ----------
    ax : matplotlib Axes
    axes : pair of FeatureAxis
    chosen : ndarray of shape (n_rows,), bool
        The rows that may be drawn.
    scatter_kw : dict or None
        For ``Axes.scatter``, instead of our own.

    Returns
    -------
    matplotlib PathCollection
    """
    rows = np.flatnonzero(chosen)
    if len(rows) > MOST_DOTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_DOTS).astype(np.intp)]
    x, y = (_spread(axis, rows, k) for k, axis in enumerate(axes))
    look = {"s": 6, "color": "0.15", "alpha": 0.5, "edgecolors": "white", "linewidths": 0.3}
    return ax.scatter(x, y, **{**look, **(scatter_kw or {})})


def _spread(axis: FeatureAxis, rows: np.ndarray, k: int) -> np.ndarray:
    """Where rows are on an axis; rows of one category beside each other."""
    places = axis.places()[rows]
    if axis.edges is not None:
        return places
    return places + 0.7 * ((np.arange(len(rows)) * _SPREAD[k]) % 1.0 - 0.5)
