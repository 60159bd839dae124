"""How the figures look, and the axes that they are drawn in."""

from __future__ import annotations

from numbers import Integral

import numpy as np

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's colours, which colour-blind people can tell apart, the darker ones first."""

DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
"""Line styles of lines beyond the number of colours."""

POSITIVE, NEGATIVE = "#D55E00", "#0072B2"
"""Of bars that raise the response and of those that lower it."""

REFERENCE = {"color": "0.55", "linewidth": 0.8, "zorder": 0.5}
"""Lines of no effect."""

DIVERGING = "RdBu_r"
"""The colour map of effects, with the same meaning: red raises, blue lowers."""

DENSITY_HEIGHT = 0.12
"""Height of the data's density at the bottom of an axes, as a fraction of it."""

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
    if isinstance(n_cols, bool) or not isinstance(n_cols, Integral) or n_cols < 1:
        raise ValueError(f"n_cols={n_cols!r} should be a positive int")
    n_cols = min(int(n_cols), n_panels)
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


def draw_density(ax, values, weights=None, edges=None):
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
    return ax.stairs(
        DENSITY_HEIGHT * counts / counts.max(),
        edges,
        fill=True,
        color="0.8",
        zorder=0,
        transform=ax.get_xaxis_transform(),
    )


def shorten(name, width: int) -> str:
    """A name of at most so many characters: start and end, where names differ.

    Parameters
    ----------
    name : object
    width : int

    Returns
    -------
    str
    """
    name = str(name)
    if len(name) <= width:
        return name
    end = (width - 1) // 2
    return f"{name[: width - 1 - end]}…{name[len(name) - end :]}"


def shorten_all(names, width: int) -> list[str]:
    """Short names that are still different from each other where the names are.

    Parameters
    ----------
    names : iterable of object
    width : int

    Returns
    -------
    list of str
        Where two would come out the same they are left as they are.
    """
    names = [str(name) for name in names]
    short = [shorten(name, width) for name in names]
    owner: dict[str, str] = {}
    clashes = {s for s, name in zip(short, names, strict=True) if owner.setdefault(s, name) != name}
    return [name if s in clashes else s for s, name in zip(short, names, strict=True)]


def short_number(value) -> str:
    """A number with four digits at most."""
    return f"{value:.4g}".replace("-", "−")
