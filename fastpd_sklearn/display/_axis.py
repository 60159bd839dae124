"""How a feature is laid out on an axis: as numbers in pieces, or as categories."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.display._source import Source
from fastpd_sklearn.display._style import ERROR_BAR, LETTER, N_BINS, SMALL_LETTER, style
from fastpd_sklearn.display._text import plain, plain_all, short_number, short_value, shorten_all
from fastpd_sklearn.display._ticks import set_numbers
from fastpd_sklearn.explainers import CategoryCurve, LinearCurve, StepCurve
from fastpd_sklearn.forest import _frames

MOST_CATEGORIES = 20
"""Categories on an axis; of more the most frequent are shown."""

STEEP = 0.35
"""Room of a label in inches below which it stands upright."""

_GAP, _BAND = 0.03, 0.06
"""Of the range of the numbers, what lies between them and missing ones, and what these take."""


@dataclass(frozen=True, eq=False)
class FeatureAxis:
    """Where a feature is evaluated, and where that is drawn.

    Parameters
    ----------
    name : str
        Short, but different from those of other features.
    points : ndarray of shape (n_points,), or (n_points, n_columns) of a group
        What the feature is set to: one number within each piece, missing last, or the
        categories.
    edges : ndarray of shape (n_pieces + 1,), or None
        Of the pieces; None for categories.
    labels : tuple of str, or None
        Of the categories; None for numbers.
    rows : ndarray of shape (n_rows,), float
        Where the rows of the data are: their number, or the position of their category; NaN
        for those that are not on the axis.
    is_step : bool
        Whether effects are constant within the pieces.
    n_categories : int
        How many there are, shown or not.
    """

    name: str
    points: np.ndarray
    edges: np.ndarray | None
    labels: tuple[str, ...] | None
    rows: np.ndarray
    is_step: bool = True
    n_categories: int = 0

    @property
    def has_missing(self) -> bool:
        """Whether missing numbers have a place of their own, behind the others."""
        return self.edges is not None and len(self.points) == len(self.edges)

    @property
    def limits(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        if self.edges is None:
            return -0.5, len(self.labels) - 0.5
        low, high = self.edges[0], self.edges[-1]
        return low, (self._band[1] if self.has_missing else high)

    @property
    def missing_place(self) -> float:
        """Where missing numbers are."""
        return sum(self._band) / 2

    @property
    def _band(self) -> tuple[float, float]:
        low, high = self.edges[0], self.edges[-1]
        return high + _GAP * (high - low), high + (_GAP + _BAND) * (high - low)

    @property
    def cells(self) -> np.ndarray:
        """Edges of the cells of a heat map; one of them is the gap before missing numbers."""
        if self.edges is None:
            return np.arange(len(self.labels) + 1) - 0.5
        return np.append(self.edges, self._band) if self.has_missing else self.edges

    def with_gap(self, values: np.ndarray, dimension: int) -> np.ndarray:
        """Values at the points, as those of the cells: NaN in the gap."""
        if not self.has_missing:
            return values
        return np.insert(values, len(self.points) - 1, np.nan, axis=dimension)

    def density_edges(self) -> np.ndarray:
        """Edges of bars that show how the rows lie."""
        if self.edges is None:
            centres = np.arange(len(self.labels))
            return np.column_stack([centres - 0.4, centres + 0.4]).ravel()
        bars = np.linspace(self.edges[0], self.edges[-1], N_BINS + 1)
        return np.append(bars, self._band) if self.has_missing else bars

    def places(self) -> np.ndarray:
        """Where the rows are on the axis, missing numbers included."""
        if not self.has_missing:
            return self.rows
        return np.where(np.isnan(self.rows), self.missing_place, self.rows)

    @property
    def is_ordered(self) -> bool:
        """Whether the points are numbers, if only a few that are shown as categories."""
        return all(isinstance(point, int | float) for point in self.points.tolist())

    def sliced(self, n: int) -> FeatureAxis:
        """Some values as categories: quantiles of numbers, or the most frequent categories.

        The rows are those that are nearest to each.
        """
        if self.labels is None:
            inner = np.quantile(self.rows[np.isfinite(self.rows)], (np.arange(n) + 0.5) / n)
            points = np.unique(inner)
            nearest = np.abs(self.rows[:, None] - points).argmin(axis=1).astype(np.float64)
            rows = np.where(np.isfinite(self.rows), nearest, np.nan)
            labels = tuple(map(short_number, points))
            return FeatureAxis(self.name, points, None, labels, rows, n_categories=len(points))
        shown = most_frequent(self.rows[~np.isnan(self.rows)].astype(np.intp), len(self.labels), n)
        rank = np.full(len(self.labels) + 1, np.nan)
        rank[shown] = np.arange(len(shown))
        rows = rank[np.where(np.isnan(self.rows), -1, self.rows).astype(np.intp)]
        labels = tuple(self.labels[i] for i in shown)
        points = self.points[shown]
        return FeatureAxis(self.name, points, None, labels, rows, n_categories=self.n_categories)

    @property
    def title(self) -> str:
        """The feature's name, and how much of it is shown."""
        if self.labels is None or self.n_categories == len(self.labels):
            return self.name
        return f"{self.name}\n({len(self.labels)} most frequent of {self.n_categories})"


def make_axis(
    source: Source,
    player: int,
    *,
    percentiles,
    few: int,
    resolution: int | None = None,
    name_width: int = 34,
) -> FeatureAxis:
    """Lay a feature out.

    Parameters
    ----------
    source : Source
    player : int
    percentiles : tuple of float
        Between which quantiles of the rows numbers are shown.
    few : int
        Numbers that take at most so many different values are categories.
    resolution : int, default=None
        Most pieces; None for all.
    name_width : int, default=34
        Letters of the feature's name that there is room for.

    Returns
    -------
    FeatureAxis

    Raises
    ------
    ValueError
        For a group of columns that takes too many different values for categories.
    """
    name, values = shorten_all(source.players.names, name_width)[player], source.values(player)
    if values.ndim == 2:
        return _group_axis(source, player, name, values)
    feature = source.players.names[player]
    curve = source.explainer.partial_dependence(feature, grid=values[:1]).get("curve")
    if isinstance(curve, CategoryCurve):
        return _category_axis(name, values, _occurring(curve.categories, values))
    numbers = values.astype(np.float64)
    distinct = np.unique(numbers[np.isfinite(numbers)])
    has_missing = bool(np.isnan(numbers).any())
    if len(distinct) <= few:
        known = [bool(v) for v in distinct] if values.dtype == bool else distinct.tolist()
        known += [np.nan] if has_missing else []
        return _category_axis(name, values, known)
    low, high = _range(distinct, numbers, percentiles)
    if isinstance(curve, StepCurve):
        points, edges = _pieces(curve, low, high, resolution)
    elif isinstance(curve, LinearCurve) and resolution is None:
        points, edges = with_cells(curve.corners(low, high)[0])
    else:
        points, edges = _smooth_points(distinct, low, high, resolution)
    points = np.append(points, np.nan) if has_missing else points
    is_step = isinstance(curve, StepCurve)
    return FeatureAxis(name, points, edges, None, numbers, is_step=is_step)


def _range(distinct, numbers, percentiles) -> tuple[float, float]:
    low, high = np.quantile(numbers[np.isfinite(numbers)], percentiles)
    return (low, high) if low < high else (distinct[0], distinct[-1])


def _pieces(curve: StepCurve, low: float, high: float, resolution) -> tuple:
    """A number within each piece of a step function, and where the pieces end."""
    inner = curve.breaks[(curve.breaks > low) & (curve.breaks < high)]
    if resolution is not None and len(inner) >= resolution:
        return _even_pieces(low, high, resolution)
    edges = np.concatenate([[low], inner, [high]])
    return (edges[:-1] if curve.strict else edges[1:]), edges


def _even_pieces(low: float, high: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    edges = np.linspace(low, high, n + 1)
    return (edges[1:] + edges[:-1]) / 2, edges


def _smooth_points(distinct, low: float, high: float, resolution) -> tuple:
    """Points on a curve that is no step function, and cells around them."""
    points = distinct[(distinct >= low) & (distinct <= high)]
    most = 100 if resolution is None else resolution
    if len(points) > most:
        points = np.linspace(low, high, most)
    return with_cells(points)


def with_cells(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points that are joined by lines, and the edges of cells around them."""
    middles = (points[1:] + points[:-1]) / 2
    return points, np.concatenate([points[:1], middles, points[-1:]])


def _occurring(categories: np.ndarray, values: np.ndarray) -> list:
    """All categories; missing is one only if there are missing values."""
    is_missing = any(map(_frames.is_missing, values.tolist()))
    return [c for c in categories.tolist() if is_missing or not _frames.is_missing(c)]


def _category_axis(name: str, values: np.ndarray, known: list) -> FeatureAxis:
    place = {_key(category): i for i, category in enumerate(known)}
    codes = np.array([place.get(_key(v), -1) for v in values.tolist()], dtype=np.intp)
    shown = most_frequent(codes, len(known), MOST_CATEGORIES)
    rank = np.full(len(known) + 1, np.nan)
    rank[shown] = np.arange(len(shown))
    points = np.empty(len(shown), dtype=object)
    points[:] = [known[i] for i in shown]
    labels = shorten_all([short_value(known[i]) for i in shown], 18)
    return FeatureAxis(name, points, None, tuple(labels), rank[codes], n_categories=len(known))


def most_frequent(codes: np.ndarray, n: int, most: int) -> np.ndarray:
    """The most frequent of ``n`` categories, in their order."""
    counts = np.bincount(codes[codes >= 0], minlength=n)
    return np.sort(np.argsort(-counts, kind="stable")[:most])


def _group_axis(source: Source, player: int, name: str, values: np.ndarray) -> FeatureAxis:
    """The different rows of a group as categories."""
    place: dict[tuple, int] = {}
    codes = [place.setdefault(tuple(map(_key, row)), len(place)) for row in values.tolist()]
    if len(place) > MOST_CATEGORIES:
        raise ValueError(
            f"{source.players.names[player]!r} is a group of {values.shape[1]} columns whose rows "
            f"take {len(place)} different values, which have no common axis; {MOST_CATEGORIES} can "
            "be shown as categories. Name other features, or explain the columns apart"
        )
    _, first = np.unique(codes, return_index=True)
    columns = [source.players.column_names[j] for j in source.players.columns[player]]
    labels = shorten_all([_row_label(columns, values[i]) for i in first], 18)
    rows = np.asarray(codes, dtype=np.float64)
    return FeatureAxis(name, values[first], None, tuple(labels), rows, n_categories=len(place))


def _row_label(columns: list[str], row: np.ndarray) -> str:
    """What a group is in a row: of indicators the one that is on, else all values."""
    items = row.tolist()
    if all(isinstance(v, int | float) and v in (0, 1) for v in items) and sum(items) <= 1:
        return columns[items.index(1)] if sum(items) == 1 else "none"
    return ", ".join(short_value(v) for v in items)


def _key(value):
    return None if _frames.is_missing(value) else value


def has_axis(source: Source, player: int) -> bool:
    """Whether a feature can be laid out: all but groups of too many different values."""
    values = source.values(player)
    if values.ndim == 1:
        return True
    return len({tuple(map(_key, row)) for row in values.tolist()}) <= MOST_CATEGORIES


def draw_curve(ax, axis: FeatureAxis, levels: np.ndarray, look: dict, line_kw: dict | None):
    """Draw an effect along numbers, with a marker for missing ones.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : FeatureAxis
        Of numbers.
    levels : ndarray of shape (n_points,)
    look : dict
        Our own keyword arguments of ``Axes.plot``.
    line_kw : dict or None
        The user's.

    Returns
    -------
    line : matplotlib Line2D
    marker : matplotlib Line2D or None
    """
    from matplotlib.lines import Line2D

    look = style(look, line_kw, Line2D)
    numbers = levels[:-1] if axis.has_missing else levels
    if axis.is_step:
        look.setdefault("drawstyle", "steps-post")
        (line,) = ax.plot(axis.edges, np.append(numbers, numbers[-1]), **look)
    else:
        (line,) = ax.plot(axis.points[: len(numbers)], numbers, **look)
    if not axis.has_missing:
        return line, None
    look = {"color": line.get_color(), "marker": "D", "markersize": 5, "linestyle": "none"}
    return line, ax.plot([axis.missing_place], levels[-1:], **look)[0]


def draw_band(ax, axis: FeatureAxis, levels, margin, look: dict, band_kw: dict | None):
    """Draw the confidence band of an effect along numbers, with a bar for missing ones.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : FeatureAxis
        Of numbers.
    levels, margin : ndarray of shape (n_points,)
        The effect, and half the width of the band.
    look : dict
        Our own keyword arguments of ``Axes.fill_between``.
    band_kw : dict or None
        The user's.

    Returns
    -------
    matplotlib PolyCollection
    """
    from matplotlib.collections import PolyCollection

    look = style(look, band_kw, PolyCollection)
    if axis.has_missing:
        ax.errorbar([axis.missing_place], levels[-1:], margin[-1:], fmt="none", **ERROR_BAR)
        levels, margin = levels[:-1], margin[:-1]
    ends = np.array([levels - margin, levels + margin])
    if not axis.is_step:
        return ax.fill_between(axis.points[: len(levels)], *ends, **look)
    ends = np.append(ends, ends[:, -1:], axis=1)
    return ax.fill_between(axis.edges, *ends, step="post", **look)


def dress_axis(ax, axis: FeatureAxis, which: str) -> None:
    """Limits, ticks and title of the horizontal or vertical axis that shows a feature.

    Parameters
    ----------
    ax : matplotlib Axes
    axis : FeatureAxis
    which : {"x", "y"}
    """
    side = getattr(ax, f"{which}axis")
    getattr(ax, f"set_{which}lim")(*axis.limits)
    side.set_label_text(plain(axis.title))
    if axis.labels is not None:
        side.set_ticks(np.arange(len(axis.labels)), plain_all(axis.labels))
        side.set_tick_params(length=0)
        _fit_labels(ax, side, axis.labels, which)
    else:
        set_numbers(side, (axis.edges[-1], axis.missing_place) if axis.has_missing else None)


def extra_height(axes, width: float) -> float:
    """What turned labels need below panels of some width, in inches.

    Parameters
    ----------
    axes : iterable of FeatureAxis
        Those that lie horizontally.
    width : float
        Of a panel, in inches.

    Returns
    -------
    float
        Of the axis that needs most.
    """
    return max(
        (_turned_height(axis.labels, 0.8 * width) for axis in axes if axis.labels), default=0
    )


def _turned_height(labels: tuple[str, ...], width: float) -> float:
    longest, room = SMALL_LETTER * max(map(len, labels)), width / len(labels)
    if longest <= 0.8 * room:
        return 0.0
    return longest if room < STEEP else 0.6 * longest


def _fit_labels(ax, side, labels: tuple[str, ...], which: str) -> None:
    """Make the labels of categories smaller, and turn them, where they would not fit."""
    longest = max(map(len, labels))
    room = ax.get_window_extent().width / ax.figure.dpi / len(labels)
    if len(labels) > 12 or (which == "x" and LETTER * longest > 0.75 * room):
        side.set_tick_params(labelsize="small")
    if which == "x" and SMALL_LETTER * longest > 0.8 * room:
        is_steep = room < STEEP
        for text in side.get_ticklabels():
            text.set_rotation(90 if is_steep else 35)
            text.set_horizontalalignment("center" if is_steep else "right")
            text.set_rotation_mode("default" if is_steep else "anchor")
