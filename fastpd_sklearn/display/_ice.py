"""Curves of single rows along features, and their mean."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.display import _style, _text
from fastpd_sklearn.display._axis import FeatureAxis, dress_axis, extra_height
from fastpd_sklearn.display._rows import place_rows
from fastpd_sklearn.display._source import output_names, response_name
from fastpd_sklearn.explainers import ICEExplainer
from fastpd_sklearn.explainers._checks import check_rows, check_weights
from fastpd_sklearn.explainers._columns import read_column
from fastpd_sklearn.forest import _rows

PANEL_SIZE = (3.2, 2.6)


class ICEDisplay:
    """The response of single rows along features, and its mean.

    Thin lines are rows, the thick one is their mean: the partial dependence, if all rows are
    averaged. Lines that are not parallel tell of an interaction; centred lines and slopes show
    that best. Exact curves of tree ensembles are drawn with all their steps. Categories are dots
    on a line a row, in their order, and so are the two values of a column that has no others.
    What a missing number would give stands to the right. The grey bars are the rows.

    Make it by :meth:`from_estimator` or :meth:`from_explainer`.

    Parameters
    ----------
    curves : list of sklearn.utils.Bunch
        One a feature, as :meth:`ICEExplainer.explain` gives them, for the rows to draw; their
        ``average`` is that of all rows.
    rows : list of ndarray of shape (n_rows,)
        The values of each feature in all rows; of categories their places on the axis.
    output_names : tuple of str
        One an output; each has a panel of its own.
    response : str, default="response"
        What is drawn, for the label of the vertical axis.
    is_relative : bool, default=False
        Whether zero means something: of changes and slopes.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows in the density.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_rows, n_cols), object
        Axes; None where a row has fewer panels than the others.
    lines_ : list
        A collection of the rows' lines a panel.
    average_lines_ : list
        The line of the mean of each panel.
    densities_ : list
        The grey bars of each panel; None where no row is to be seen.

    See Also
    --------
    ALEDisplay : Effects of features that go together with others.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from fastpd_sklearn.display import ICEDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> display = ICEDisplay.from_estimator(model, X, ["bmi", "s5"], centered=True)
    >>> display.axes_.shape
    (1, 2)
    """

    def __init__(
        self,
        curves,
        rows,
        output_names,
        *,
        response="response",
        is_relative=False,
        sample_weight=None,
    ):
        self.curves = curves
        self.rows = rows
        self.output_names = output_names
        self.response = response
        self.is_relative = is_relative
        self.sample_weight = sample_weight

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        features,
        *,
        subsample=200,
        random_state=None,
        sample_weight=None,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        average_kw=None,
        density_kw=None,
        **params,
    ):
        """Draw curves of a fitted model.

        Parameters
        ----------
        estimator : object
            A fitted model of any kind.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The rows.
        features : list of int or str
            Columns by number or name.
        subsample : int, float or None, default=200
            How many rows have a line: a number, a share of all, or None for all. The mean is
            that of all rows.
        random_state : int, RandomState instance or None, default=None
            Chooses the rows.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in the mean and the density.
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a panel, or one whose place they share. None for a new figure.
        n_cols : int, default=3
            Most panels side by side.
        sharey : bool, default=True
            Whether all panels have the same vertical limits.
        line_kw : dict, default=None
            For the ``LineCollection`` of the rows.
        average_kw : dict, default=None
            For ``Axes.plot``, which draws the mean.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density.
        **params : dict
            Further parameters of :class:`~fastpd_sklearn.ICEExplainer`, such as
            ``grid_resolution="exact"``, ``centered`` or ``derivative``. ``missing`` is true by
            default, but for slopes.

        Returns
        -------
        ICEDisplay
            Drawn; :meth:`plot` draws it anew.
        """
        params = {"missing": not params.get("derivative", False), **params}
        explainer = ICEExplainer(features=features, **params).fit(estimator, X)
        return cls.from_explainer(
            explainer,
            X,
            subsample=subsample,
            random_state=random_state,
            sample_weight=sample_weight,
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            average_kw=average_kw,
            density_kw=density_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        *,
        subsample=200,
        random_state=None,
        sample_weight=None,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        average_kw=None,
        density_kw=None,
    ):
        """Show what a fitted explainer says of rows.

        Parameters
        ----------
        explainer : ICEExplainer
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        subsample, random_state, sample_weight : object
            See :meth:`from_estimator`.
        ax, n_cols, sharey, line_kw, average_kw, density_kw : object
            See :meth:`plot`.

        Returns
        -------
        ICEDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import ICEExplainer
        >>> from fastpd_sklearn.display import ICEDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = ICEExplainer(features=["bmi"]).fit(model, X)
        >>> ICEDisplay.from_explainer(explainer, X, subsample=50).axes_.shape
        (1, 1)
        """
        if not isinstance(explainer, ICEExplainer):
            raise TypeError(
                f"from_explainer takes a fitted ICEExplainer, and got a "
                f"{type(explainer).__name__}; of a model make the display by from_estimator"
            )
        check_is_fitted(explainer)
        X = check_rows(X)
        chosen = _choose(X.shape[0], subsample, random_state)
        curves = explainer.explain(_rows.take(X, chosen))
        averages = explainer.average(X, sample_weight=sample_weight)
        for curve, average in zip(curves, averages, strict=True):
            curve["average"] = average.average
        if not explainer.derivative:
            curves = [_with_few_values(curve, X) for curve in curves]
        names = output_names(explainer, curves[0].output_names)
        response = response_name(explainer, names)
        if explainer.derivative:
            response = f"slope of {response}"
        elif explainer.centered is not False:
            response = f"change of {response}"
        rows = [
            place_rows(X, c.column, c.grid_values[0] if c.is_categorical else None) for c in curves
        ]
        weights = check_weights(sample_weight, X.shape[0])
        is_relative = explainer.derivative or explainer.centered is not False
        display = cls(
            curves,
            rows,
            names,
            response=response,
            is_relative=is_relative,
            sample_weight=weights,
        )
        return display.plot(
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            average_kw=average_kw,
            density_kw=density_kw,
        )

    def plot(
        self,
        ax=None,
        *,
        n_cols=3,
        sharey=True,
        line_kw=None,
        average_kw=None,
        density_kw=None,
    ):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a panel, or one whose place they share. None for a new figure.
        n_cols : int, default=3
            Most panels side by side.
        sharey : bool, default=True
            Whether all panels have the same vertical limits.
        line_kw : dict, default=None
            For the ``LineCollection`` of the rows.
        average_kw : dict, default=None
            For ``Axes.plot``, which draws the mean.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density.

        Returns
        -------
        self : ICEDisplay
        """
        panels = [(i, k) for i in range(len(self.curves)) for k in range(len(self.output_names))]
        axes = [_make_axis(*both) for both in zip(self.curves, self.rows, strict=True)]
        width, height = PANEL_SIZE
        height += extra_height(axes, width)
        self.figure_, self.axes_ = _style.make_axes(
            ax, len(panels), n_cols, (width, height), type(self).__name__
        )
        places = [place for place in self.axes_.flat if place is not None]
        self.lines_, self.average_lines_, self.densities_ = [], [], []
        ranges = []
        for place, (i, k) in zip(places, panels, strict=True):
            ranges.append(self._draw(place, i, k, axes[i], line_kw, average_kw, density_kw))
            if len(self.output_names) > 1:
                name = _text.shorten(self.output_names[k], 30)
                place.set_title(_text.plain(name), fontsize="medium")
        if sharey:
            ranges = [(min(r[0] for r in ranges), max(r[1] for r in ranges))] * len(ranges)
        firsts = list(self.axes_[:, 0]) if self.axes_.ndim == 2 else places[:1]
        for place, limits in zip(places, ranges, strict=True):
            _style.leave_room(place, *limits)
            _style.tidy(place)
            if place in firsts or not sharey:
                place.set_ylabel(_text.plain(_text.shorten(self.response, 32)))
            elif ax is None:
                place.tick_params(labelleft=False)
        return self

    def _draw(self, ax, i, k, axis, line_kw, average_kw, density_kw) -> tuple[float, float]:
        """One panel; the range of what is drawn."""
        from matplotlib.collections import LineCollection
        from matplotlib.lines import Line2D

        curve = self.curves[i]
        x, kept, missing = _places(curve)
        all_lines = np.asarray(curve.individual[k], dtype=np.float64)
        lines, mean = all_lines[:, kept], curve.average[k][kept]
        if curve.breaks is not None:
            x, lines, mean = _steps(curve.breaks, self.rows[i], x, lines, mean)
        if self.is_relative:
            ax.axhline(0.0, **_style.REFERENCE)
        segments = list(np.stack([np.broadcast_to(x, lines.shape), lines], axis=2))
        if axis.has_missing:
            ends = np.broadcast_to(axis.cells[-2:], (len(lines), 2))
            heights = np.repeat(all_lines[:, missing], 2, axis=1)
            segments += list(np.stack([ends, heights], axis=2))
        alpha = float(np.clip(12 / max(len(lines), 1), 0.06, 0.5))
        look = {"colors": _style.COLOURS[0], "linewidths": 0.7, "alpha": alpha}
        look = {**look, "rasterized": True, **(line_kw or {})}
        self.lines_.append(ax.add_collection(LineCollection(segments, **look)))
        look = {"color": _style.POSITIVE, "linewidth": 2.2, "zorder": 4}
        look["marker"] = "o" if curve.is_categorical or len(x) == 1 else None
        look = _style.style(look, average_kw, Line2D)
        self.average_lines_ += ax.plot(x, mean, **look)
        if axis.has_missing:
            look = {**look, "marker": "D", "markersize": 5, "linestyle": "none"}
            ax.plot([axis.missing_place], curve.average[k][missing], **look)
        dress_axis(ax, axis, "x")
        self.densities_.append(
            _style.draw_density(
                ax, axis.places(), self.sample_weight, axis.density_edges(), density_kw
            )
        )
        shown = np.concatenate([s[:, 1] for s in segments] + [curve.average[k]])
        return np.nanmin(shown), np.nanmax(shown)


def _choose(n_rows: int, subsample, random_state) -> np.ndarray:
    """Rows that have a line, in their order."""
    if subsample is None:
        return np.arange(n_rows)
    is_count = isinstance(subsample, Integral) and not isinstance(subsample, bool)
    if is_count and subsample >= 1:
        n = min(n_rows, int(subsample))
    elif isinstance(subsample, float) and 0 < subsample <= 1:
        n = max(1, round(subsample * n_rows))
    else:
        raise ValueError(
            f"subsample={subsample!r} should be a positive int, a share of the rows between 0 and "
            "1, or None for all of them"
        )
    return np.sort(check_random_state(random_state).choice(n_rows, n, replace=False))


def _with_few_values(curve, X):
    """The curve of a column that takes two values, as one over categories."""
    points = curve.grid_values[0]
    if curve.is_categorical or curve.breaks is not None:
        return curve
    values = _rows.column_array(X, curve.column)
    is_bool = values.dtype == bool
    known = np.unique(points[~np.isnan(points)])
    occurring = read_column(X, curve.column).values
    occurring = np.unique(occurring[~np.isnan(occurring)])
    if not is_bool and not (len(occurring) == 2 and np.array_equal(known, occurring)):
        return curve
    if is_bool and not np.isin(known, (0, 1)).all():
        return curve
    categories = np.empty(len(points), dtype=object)
    categories[:] = [bool(p) if is_bool else p for p in points.tolist()]
    return Bunch(**{**curve, "grid_values": [categories], "is_categorical": True})


def _places(curve) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where the points lie on the axis, which of them do, and which are missing numbers."""
    points = curve.grid_values[0]
    if curve.is_categorical:
        n_points = len(points)
        return np.arange(n_points, dtype=np.float64), np.arange(n_points), np.empty(0, np.intp)
    kept = np.flatnonzero(~np.isnan(points))
    kept = kept[np.argsort(points[kept], kind="stable")]
    return points[kept], kept, np.flatnonzero(np.isnan(points))[:1]


def _steps(breaks, rows, x, lines, mean):
    """Exact curves with both ends of each piece, within the range of the rows."""
    finite = rows[np.isfinite(rows)]
    low, high = (finite.min(), finite.max()) if len(finite) else (x[0], x[-1])
    inner = np.flatnonzero((breaks > low) & (breaks < high))
    pieces = np.arange(inner[0], inner[-1] + 2) if len(inner) else [np.searchsorted(breaks, low)]
    ends = np.concatenate([[low], np.repeat(breaks[inner], 2), [high]])
    return ends, np.repeat(lines[:, pieces], 2, axis=1), np.repeat(mean[pieces], 2)


def _make_axis(curve, rows) -> FeatureAxis:
    """How a feature is laid out: as categories, or as numbers with missing ones behind."""
    points, name = curve.grid_values[0], _text.shorten(curve.feature, 34)
    if curve.is_categorical:
        labels = _text.shorten_all([_text.short_value(v) for v in points.tolist()], 18)
        return FeatureAxis(name, points, None, tuple(labels), rows, n_categories=len(points))
    x, kept, missing = _places(curve)
    if curve.breaks is not None:
        nothing = np.zeros((1, len(kept)))
        x = _steps(curve.breaks, rows, x, nothing, nothing[0])[0]
    low, high = (x.min(), x.max()) if len(x) else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    points = np.array([low, np.nan] if len(missing) else [low])
    return FeatureAxis(name, points, np.array([low, high]), None, rows)
