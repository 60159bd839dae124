"""How the figures look, and the axes that they are drawn in."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.display._checks import check_count
from fastpd_sklearn.display._text import plain, plain_all, shorten, shorten_all

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind people can tell apart, the darker ones first."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
"""Line styles of lines beyond the number of colours."""

POSITIVE, NEGATIVE = "#D55E00", "#0072B2"
"""Of bars that raise the response and of those that lower it."""

REFERENCE = {"color": "0.55", "linewidth": 0.8, "zorder": 0.5}
"""Lines of no effect."""

ERROR_BAR = {"ecolor": "0.2", "elinewidth": 1.0, "capsize": 2.0}
"""Lines of confidence intervals."""

DIVERGING = "RdBu_r"
"""The colour map of effects, with the same meaning: red raises, blue lowers."""

DENSITY_HEIGHT = 0.12
"""Height of the data's density at the bottom of an axes, as a fraction of it."""

LEGEND_WIDTH = 3.4
"""Of a legend above a panel, in inches."""

LETTER, SMALL_LETTER = 0.076, 0.063
"""Width of a letter of a label, in inches."""

N_BINS = 40
"""Bars of the data's density."""


def import_pyplot(caller: str):
    """``matplotlib.pyplot``, which only drawing needs.

    Parameters
    ----------
    caller : str
        Who draws, for the message.

    Returns
    -------
    module

    Raises
    ------
    ImportError
        If matplotlib is not installed; the message says how to install it.
    """
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            f"{caller} draws with matplotlib, which is not installed; install it by "
            "`pip install 'fastpd-sklearn[plot]'`"
        ) from error
    return plt


def make_axes(ax, n_panels: int, n_cols: int, panel_size: tuple[float, float], caller: str):
    """Axes for some panels.

    Parameters
    ----------
    ax : None, matplotlib Axes, or array-like of Axes
        None for a new figure that is large enough for all panels. A single axes is used as it
        is for one panel, and gives up its place for several. Of an array each takes one panel.
    n_panels : int
    n_cols : int
        Most panels side by side.
    panel_size : tuple of float
        Width and height of a panel in inches.
    caller : str
        Who draws, for messages.

    Returns
    -------
    figure : matplotlib Figure
    axes : ndarray of shape (n_rows, n_cols), object
        None where there is no panel; in the shape of ``ax`` if that is an array.

    Raises
    ------
    ValueError
        If there are more or fewer axes than panels, or ``n_cols`` is no positive int.
    """
    n_cols = min(check_count("n_cols", n_cols), n_panels)
    n_rows = -(-n_panels // n_cols)
    plt = import_pyplot(caller)
    if ax is None:
        size = (panel_size[0] * n_cols, panel_size[1] * n_rows)
        figure = plt.figure(figsize=size, layout="constrained")
        return figure, _fill(figure, figure.add_gridspec(n_rows, n_cols), n_panels)
    if not hasattr(ax, "get_subplotspec"):
        return _given_axes(ax, n_panels)
    if n_panels == 1:
        return ax.figure, np.array([[ax]], dtype=object)
    spec = ax.get_subplotspec()
    if spec is None:
        raise ValueError(
            f"ax is no part of a grid that {n_panels} panels could divide; pass {n_panels} axes, "
            "or one that was made by plt.subplots()"
        )
    ax.set_axis_off()
    return ax.figure, _fill(ax.figure, spec.subgridspec(n_rows, n_cols), n_panels)


def _given_axes(ax, n_panels: int):
    axes = np.asarray(ax, dtype=object)
    if axes.size != n_panels or not all(hasattr(one, "get_subplotspec") for one in axes.flat):
        raise ValueError(
            f"ax: expected None, one axes or {n_panels} axes, one a panel, got {axes.size} items "
            f"of {type(ax).__name__}"
        )
    return axes.flat[0].figure, axes


def _fill(figure, grid, n_panels: int) -> np.ndarray:
    axes = np.full((grid.nrows, grid.ncols), None, dtype=object)
    for k in range(n_panels):
        axes.flat[k] = figure.add_subplot(grid[k // grid.ncols, k % grid.ncols])
    return axes


def style(defaults: dict, given: dict | None, artist: type) -> dict:
    """Keyword arguments of an artist: our own, overruled by the user's.

    Parameters
    ----------
    defaults : dict
    given : dict or None
        The user's, in which ``c`` and ``color``, say, mean the same.
    artist : type
        The class of matplotlib that knows such aliases.

    Returns
    -------
    dict
    """
    from matplotlib.cbook import normalize_kwargs

    return {**normalize_kwargs(defaults, artist), **normalize_kwargs(given, artist)}


def line_style(k: int) -> dict:
    """Colour and dashes of the ``k``-th of several lines."""
    return {"color": COLOURS[k % len(COLOURS)], "linestyle": DASHES[k // len(COLOURS) % 7]}


def bar_style(k: int) -> dict:
    """Colour of the ``k``-th of several bars, with a pattern where colours come again."""
    return {"color": COLOURS[k % len(COLOURS)], "hatch": ("", "xx", "..")[k // len(COLOURS) % 3]}


def line_styles(n: int, is_ordered: bool) -> list[dict]:
    """Looks of several lines; from dark to light where they have an order."""
    if not is_ordered:
        return [line_style(k) for k in range(n)]
    import matplotlib

    shades = matplotlib.colormaps["viridis"](np.linspace(0.0, 0.85, n))
    return [{"color": tuple(shade)} for shade in shades]


def tidy(ax) -> None:
    """Take away the sides of a frame that hold no ticks."""
    ax.spines[["top", "right"]].set_visible(False)


def leave_room(ax, low: float, high: float) -> None:
    """Set the limits of the vertical axis so that the density below touches no curve.

    Parameters
    ----------
    ax : matplotlib Axes
    low, high : float
        The smallest and the largest value that is drawn.
    """
    size = high - low
    if not size > 0:
        size = abs(high) or 1.0
    ax.set_ylim(low - size * (DENSITY_HEIGHT + 0.08), high + 0.06 * size)


def draw_legend(figure, ax, handles, names, is_own_figure: bool):
    """A legend for all panels: above them in a figure of our own, else in the first panel.

    Parameters
    ----------
    figure : matplotlib Figure
    ax : matplotlib Axes
        The first panel.
    handles : list of matplotlib artists
    names : iterable of str
        One a handle.
    is_own_figure : bool

    Returns
    -------
    matplotlib Legend
    """
    labels = shorten_all(names, 24)
    look = _legend_look(labels, figure.get_figwidth())
    if not is_own_figure:
        return ax.legend(handles, plain_all(labels), **{**look, "ncols": 1})
    return figure.legend(handles, plain_all(labels), loc="outside upper center", **look)


def draw_legend_above(ax, handles, labels, title: str, is_own_figure: bool):
    """A legend of one panel: above it in a figure of our own, else where there is room."""
    look = {**_legend_look(labels, LEGEND_WIDTH), "title": plain(title)}
    if not is_own_figure:
        return ax.legend(handles, plain_all(labels), **{**look, "ncols": 1})
    place = {"loc": "lower left", "bbox_to_anchor": (0.0, 0.98)}
    return ax.legend(handles, plain_all(labels), **look, **place)


def legend_height(names, width: float) -> float:
    """Height of the legend of a figure of some width, in inches; 0 for a single name."""
    labels = shorten_all(names, 24)
    if len(labels) == 1:
        return 0.0
    return 0.1 + 0.19 * -(-len(labels) // _legend_look(labels, width)["ncols"])


def effect_label(what: str, response: str) -> str:
    """Label of an axis of effects: on two lines, for an axis is not long."""
    return f"{what} on\n{plain(shorten(response, 28))}"


def _legend_look(labels, width: float) -> dict:
    """As many columns as fit into some inches."""
    n_cols = int(width // (SMALL_LETTER * (max(map(len, labels)) + 9)))
    n_cols = min(max(1, n_cols), len(labels))
    return {"frameon": False, "fontsize": "small", "title_fontsize": "small", "ncols": n_cols}


NOTE_HEIGHT = 0.2
"""Of the line that says what intervals are, in inches."""


def tell_confidence(figure, ax, confidence: float, is_own_figure: bool) -> None:
    """Say what bands and error bars are, and whose error they show.

    Parameters
    ----------
    figure : matplotlib Figure
    ax : matplotlib Axes
        The first panel.
    confidence : float
    is_own_figure : bool
        Whether there is room below the panels, and not only above the first one.
    """
    text = f"{100 * confidence:.4g}% intervals: error of the background, not of the model"
    look = {"fontsize": "small", "color": "0.35"}
    broken = text.replace(": ", ":\n")
    if is_own_figure:
        is_narrow = SMALL_LETTER * len(text) > 0.95 * figure.get_figwidth()
        figure.supxlabel(broken if is_narrow else text, x=0.99, ha="right", **look)
    else:
        ax.set_title(broken, loc="left", **look)


def draw_density(ax, values, weights=None, edges=None, density_kw=None):
    """Draw how the data lie, as bars at the bottom of an axes.

    Parameters
    ----------
    ax : matplotlib Axes
        Its horizontal axis has the unit of the values.
    values : ndarray of shape (n_rows,), float
        Missing and infinite ones are left out.
    weights : ndarray of shape (n_rows,), default=None
    edges : ndarray of shape (n_bars + 1,), default=None
        Of the bars; None for bars of equal width within the limits of the axes.
    density_kw : dict, default=None
        For ``Axes.stairs``, instead of our own.

    Returns
    -------
    matplotlib StepPatch, or None if no value is to be seen
    """
    values = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(values)
    if edges is None:
        edges = np.linspace(*ax.get_xlim(), N_BINS + 1)
    counts, edges = np.histogram(
        values[finite], bins=edges, weights=None if weights is None else weights[finite]
    )
    if not np.any(counts > 0):
        return None
    look = {"fill": True, "color": "0.8", "zorder": 0, "transform": ax.get_xaxis_transform()}
    heights = DENSITY_HEIGHT * counts / counts.max()
    return ax.stairs(heights, edges, **{**look, **(density_kw or {})})
