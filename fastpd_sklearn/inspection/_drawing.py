"""Partial dependence as scikit-learn's display draws it best: limits, labels, steps."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap

import numpy as np
from sklearn.utils import Bunch

from fastpd_sklearn.forest import _frames

MARGIN = 0.05
"""Room above and below the curves, as a share of what they span."""

PANEL = (3.4, 3.0)
"""Width and height in inches of a panel in a figure of our own."""

LABEL = "Partial dependence"
"""What scikit-learn writes beside its curves."""

MISSING = "missing"
"""What missing values are called on an axis."""

LINE = 30
"""Letters of a name that have room along a side of such a panel; the rest goes below."""

AVERAGE_COLOR, AVERAGE_WIDTH = "tab:orange", 2.0
"""Of an average over the curves of single rows, which are thin and blue."""

FEW_NUMBERS, MOST_NUMBERS = (3, 8), (6, 14)
"""Columns and rows of a heat map up to which its numbers have their full size, and any."""

SMALL_TEXT = 7.0
"""Size of numbers in points that are neither few nor too many."""

POINTS = 72.0
"""In an inch."""

TINY_TEXT = 4.0
"""Size of letters in points below which nobody reads them."""


def needs_matplotlib(what: str):
    """``matplotlib.pyplot``, or an error that says how to get it.

    Parameters
    ----------
    what : str
        What needs it.

    Returns
    -------
    module
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{what} draws with matplotlib, which is not installed: pip install matplotlib"
        ) from error
    return plt


def new_axes(n_panels: int, n_cols: int):
    """Axes of a figure that has room for some panels.

    Parameters
    ----------
    n_panels, n_cols : int

    Returns
    -------
    matplotlib.axes.Axes
        To be filled with panels.
    """
    plt = needs_matplotlib("PartialDependenceDisplay")
    if n_panels == 1:
        return plt.subplots(layout="constrained")[1]
    n_cols = min(n_cols, n_panels)
    n_rows = -(-n_panels // n_cols)
    size = (PANEL[0] * n_cols, PANEL[1] * n_rows)
    return plt.subplots(figsize=size, layout="constrained")[1]


def fold_labels(panels) -> None:
    """Break long names of columns over several lines, so that none runs into its neighbour.

    Parameters
    ----------
    panels : iterable of matplotlib.axes.Axes
        Of a figure of our own, in which there is room below them.
    """
    for panel in panels:
        for side in (panel.xaxis, panel.yaxis):
            if len(name := side.get_label_text()) > LINE:
                side.set_label_text("\n".join(wrap(name, LINE)))


def drawable(result: Bunch, categorical: tuple[bool, ...]) -> Bunch:
    """A result that lines, bars and contours can be drawn of.

    Parameters
    ----------
    result : Bunch
    categorical : tuple of bool
        For each feature, whether its points are categories.

    Returns
    -------
    Bunch
        Categories that are not plain numbers are text; points without a place on the axis are
        left out; what two points are needed for has two.
    """
    axes = [
        _as_text(axis) if is_category else axis
        for axis, is_category in zip(result.grid_values, categorical, strict=True)
    ]
    drawn = Bunch(grid_values=axes)
    for key in [key for key in ("average", "individual") if key in result]:
        drawn[key] = np.asarray(result[key])
    steps = result.get("steps", (None,) * len(axes))
    for k, is_category in enumerate(categorical):
        if is_category:
            continue
        _keep(drawn, k, ~missing_points(drawn.grid_values[k]))
        if len(axes) == 2:
            _widen(drawn, k, steps[k])
    return drawn


def missing_points(axis: np.ndarray) -> np.ndarray:
    """Which points of an axis of numbers are missing, unless all are."""
    missing = np.array([_frames.is_missing(value) for value in axis.tolist()])
    return missing & ~missing.all()


def limits(results: list[Bunch], kinds: list[str], target: int, centered: bool) -> dict:
    """The range of all curves, by the number of features, with some room.

    Parameters
    ----------
    results : list of Bunch
    kinds : list of str
    target : int
        The output that is drawn.
    centered : bool
        Whether curves are drawn from their first point.

    Returns
    -------
    dict of int to (float, float)
        Never empty ranges: a curve that is constant has some room too.
    """
    found: dict[int, tuple[float, float]] = {}
    for result, kind in zip(results, kinds, strict=True):
        values = (result.average if kind == "average" else result.individual)[target]
        if centered:
            values = values - (values[:1] if kind == "average" else values[:, :1])
        low, high = float(np.nanmin(values)), float(np.nanmax(values))
        room = MARGIN * (high - low) or MARGIN * abs(high) or 1.0
        n_features = len(result.grid_values)
        before = found.get(n_features, (np.inf, -np.inf))
        found[n_features] = (min(before[0], low - room), max(before[1], high + room))
    return found


def _as_text(axis: np.ndarray) -> np.ndarray:
    """Categories to write below bars; numbers stay numbers, to be drawn at their place."""
    values = axis.tolist()
    missing = [_frames.is_missing(value) for value in values]
    if axis.dtype.kind in "iuf" and not any(missing):
        return axis
    text = [MISSING if gone else str(v) for v, gone in zip(values, missing, strict=True)]
    return np.array(text, dtype=object)


def _keep(drawn: Bunch, k: int, kept: np.ndarray) -> None:
    """Keep some points of axis ``k``."""
    if kept.all():
        return
    _reindex(drawn, k, np.flatnonzero(kept))
    drawn.grid_values[k] = drawn.grid_values[k][kept]


def _widen(drawn: Bunch, k: int, steps: str | None) -> None:
    """Give axis ``k`` of a pair what a surface needs: both ends of each of its steps."""
    axis = np.asarray(drawn.grid_values[k], dtype=np.float64)
    if len(axis) == 1:
        half = 0.5 * (abs(axis[0]) or 1.0)
        drawn.grid_values[k] = axis[0] + np.array([-half, half])
        _reindex(drawn, k, np.array([0, 0]))
    elif steps is not None:
        drawn.grid_values[k] = np.repeat(axis, 2)[1:-1]
        pieces = np.arange(len(axis) - 1) + (steps == "pre")
        _reindex(drawn, k, np.repeat(pieces, 2))


def _reindex(drawn: Bunch, k: int, places: np.ndarray) -> None:
    if "average" in drawn:
        drawn["average"] = np.take(drawn["average"], places, axis=1 + k)
    if "individual" in drawn:
        drawn["individual"] = np.take(drawn["individual"], places, axis=2 + k)


@dataclass(frozen=True)
class LineStyle:
    """What the user says of lines, and what is therefore left as it is.

    Parameters
    ----------
    of_average, of_all : frozenset of str
        Names of the properties that are set for averages, and for all lines.
    """

    of_average: frozenset[str]
    of_all: frozenset[str]

    @classmethod
    def of(cls, line_kw, ice_lines_kw, pd_line_kw) -> LineStyle:
        """The style that the arguments of a plot mean."""
        line, ice, average = (set(style or {}) for style in (line_kw, ice_lines_kw, pd_line_kw))
        return cls(frozenset(line | average), frozenset(line | ice | average))


def finish_curve(panel, artists: list, result: Bunch, target: int, base: float, style) -> None:
    """Make a curve's steps, its average, single points and missing values visible.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    artists : list of matplotlib.artist.Artist
        What was drawn of ``result``.
    result : Bunch
        As it was computed.
    target : int
        The output that is drawn.
    base : float
        What the average was lowered by when it was drawn.
    style : LineStyle
    """
    from matplotlib.lines import Line2D

    lines = [artist for artist in artists if isinstance(artist, Line2D)]
    steps = result.get("steps", (None,))[0]
    for line in lines:
        if steps is not None and not style.of_all & {"drawstyle", "ds"}:
            line.set_drawstyle(f"steps-{steps}")
        if len(line.get_xdata()) == 1 and not style.of_all & {"marker"}:
            line.set_marker("o")
    if "average" in result and "individual" in result:
        _set_off(panel, lines[-1], style)
    elif "average" in result:
        _set_alone(lines, artists, style)
    missing = missing_points(result.grid_values[0])
    if "average" in result and missing.any():
        level = result.average[target, np.argmax(missing)] - base
        panel.axhline(level, color=lines[-1].get_color(), linestyle=":", label=MISSING)
        low, high = panel.get_ylim()
        panel.set_ylim(min(low, level), max(high, level))
        panel.legend()


def _set_off(panel, average, style: LineStyle) -> None:
    """Tell the average from the rows that it is drawn over."""
    if not style.of_average & {"color", "c"}:
        average.set_color(AVERAGE_COLOR)
    if not style.of_average & {"linewidth", "lw"}:
        average.set_linewidth(AVERAGE_WIDTH)
    if panel.get_legend() is not None:
        panel.legend()  # which shows lines as they were


def _set_alone(lines: list, artists: list, style: LineStyle) -> None:
    """Undo what scikit-learn does to an average because there are rows in other panels."""
    from matplotlib.legend import Legend

    legends = [artist for artist in artists if isinstance(artist, Legend)]
    if not legends or "label" in style.of_average:
        return
    legends[0].remove()
    if not style.of_average & {"linestyle", "ls"}:
        lines[-1].set_linestyle("-")


def finish_surface(panel, artists: list, result: Bunch) -> None:
    """Give a surface with edges, or one that is flat one way, colours alone and their scale.

    Its contours would run along the edges one over the other, and their numbers too.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    artists : list of matplotlib.artist.Artist
        What was drawn of ``result``.
    result : Bunch
        As it was computed.
    """
    from matplotlib.contour import ContourSet
    from matplotlib.text import Text

    if "steps" not in result and min(map(len, result.grid_values)) > 1:
        return
    for artist in artists:
        if isinstance(artist, ContourSet) and artist.filled:
            panel.figure.colorbar(artist, ax=panel)
        elif isinstance(artist, ContourSet) or (isinstance(artist, Text) and artist in panel.texts):
            artist.remove()


def unnumbered(axes: np.ndarray, sizes: list[int]) -> list:
    """Panels of curves that have no numbers and no neighbour on the left to take them from.

    Parameters
    ----------
    axes : ndarray of matplotlib.axes.Axes
        The panels.
    sizes : list of int
        Number of features of each panel.

    Returns
    -------
    list of matplotlib.axes.Axes
        The first curve of each row of panels that begins with a surface.
    """
    n_cols = axes.shape[1] if axes.ndim == 2 else 1
    found = []
    for start in range(0, len(sizes), n_cols):
        row = sizes[start : start + n_cols]
        if row[0] == 2 and 1 in row:
            found.append(axes.ravel()[start + row.index(1)])
    return found


def number_axis(panel) -> None:
    """Give the vertical axis of a curve its numbers and its label.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    """
    from matplotlib.ticker import AutoLocator, ScalarFormatter

    panel.yaxis.set_major_locator(AutoLocator())
    panel.yaxis.set_major_formatter(ScalarFormatter())
    panel.set_ylabel(LABEL)


def place_deciles(panel, marks) -> None:
    """Put the deciles of the vertical column of a surface along its left side.

    scikit-learn (up to 1.9) draws them with heights for widths: amid the surface, or outside.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    marks : matplotlib.collections.LineCollection
    """
    from matplotlib.transforms import blended_transform_factory

    marks.set_transform(blended_transform_factory(panel.transAxes, panel.transData))


def finish_bars(panel, n: int) -> None:
    """Fit the upright labels of many categories to their room.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    n : int
        Number of categories.
    """
    room = POINTS * panel.get_window_extent().width / panel.figure.dpi / n
    for text in panel.get_xticklabels():
        text.set_fontsize(min(text.get_fontsize(), max(room, TINY_TEXT)))


def finish_heatmap(panel, shape: tuple[int, int]) -> None:
    """Fit the numbers in the cells of a heat map to their room; none where there is none.

    Parameters
    ----------
    panel : matplotlib.axes.Axes
    shape : tuple of int
        Numbers of columns and rows of cells.
    """
    small, hidden = (
        any(n > most for n, most in zip(shape, mosts, strict=True))
        for mosts in (FEW_NUMBERS, MOST_NUMBERS)
    )
    for text in panel.texts:
        text.set_visible(not hidden)
        if small:
            text.set_fontsize(SMALL_TEXT)
