"""Curves of single rows along features, and their mean."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.display import _style, _text
from fastpd_sklearn.display._axis import FeatureAxis, dress_axis, extra_height
from fastpd_sklearn.display._rows import place_rows
from fastpd_sklearn.display._source import output_names, response_name
from fastpd_sklearn.display._ticks import set_numbers
from fastpd_sklearn.explainers import ICEExplainer
from fastpd_sklearn.explainers._checks import check_rows, check_weights
from fastpd_sklearn.forest import _rows

PANEL_SIZE = (3.2, 2.6)


class ICEDisplay:
    """The response of single rows along features, and its mean.

    Thin lines are rows, the thick one is their mean: the partial dependence, if all rows are
    averaged. Lines that are not parallel tell of an interaction; centred lines and slopes show
    that best. Exact curves of tree ensembles are drawn with all their steps. Categories are dots
    on a line a row, in their order. The grey bars are the rows.

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
            ``grid_resolution="exact"``, ``centered`` or ``derivative``.

        Returns
        -------
        ICEDisplay
            Drawn; :meth:`plot` draws it anew.
        """
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
        axes = [
            _category_axis(curve, rows) for curve, rows in zip(self.curves, self.rows, strict=True)
        ]
        width, height = PANEL_SIZE
        height += extra_height([axis for axis in axes if axis is not None], width)
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
        x, kept = _places(curve)
        lines = np.asarray(curve.individual[k], dtype=np.float64)[:, kept]
        mean = curve.average[k][kept]
        if curve.breaks is not None and axis is None:
            x, lines, mean = _steps(curve.breaks, self.rows[i], x, lines, mean)
        if self.is_relative:
            ax.axhline(0.0, **_style.REFERENCE)
        segments = np.stack([np.broadcast_to(x, lines.shape), lines], axis=2)
        alpha = float(np.clip(12 / max(len(lines), 1), 0.06, 0.5))
        look = {"colors": _style.COLOURS[0], "linewidths": 0.7, "alpha": alpha}
        look = {**look, "rasterized": True, **(line_kw or {})}
        self.lines_.append(ax.add_collection(LineCollection(segments, **look)))
        look = {"color": _style.POSITIVE, "linewidth": 2.2, "zorder": 4}
        look["marker"] = "o" if axis is not None or len(x) == 1 else None
        self.average_lines_ += ax.plot(x, mean, **_style.style(look, average_kw, Line2D))
        if axis is not None:
            dress_axis(ax, axis, "x")
            edges, values = axis.density_edges(), axis.places()
        else:
            if len(x) > 1:
                ax.set_xlim(x.min(), x.max())
            ax.set_xlabel(_text.plain(_text.shorten(curve.feature, 34)))
            set_numbers(ax.xaxis)
            edges, values = np.linspace(*ax.get_xlim(), _style.N_BINS + 1), self.rows[i]
        self.densities_.append(
            _style.draw_density(ax, values, self.sample_weight, edges, density_kw)
        )
        return min(np.nanmin(lines), np.nanmin(mean)), max(np.nanmax(lines), np.nanmax(mean))


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


def _places(curve) -> tuple[np.ndarray, np.ndarray]:
    """Where the points lie on the horizontal axis, and which of them do."""
    points = curve.grid_values[0]
    if curve.is_categorical:
        return np.arange(len(points), dtype=np.float64), np.arange(len(points))
    # Missing has no place among numbers.
    kept = np.flatnonzero(~np.isnan(points))
    kept = kept[np.argsort(points[kept], kind="stable")]
    return points[kept], kept


def _steps(breaks, rows, x, lines, mean):
    """Exact curves with both ends of each piece, within the range of the rows."""
    finite = rows[np.isfinite(rows)]
    low, high = (finite.min(), finite.max()) if len(finite) else (x[0], x[-1])
    inner = np.flatnonzero((breaks > low) & (breaks < high))
    pieces = np.arange(inner[0], inner[-1] + 2) if len(inner) else [np.searchsorted(breaks, low)]
    ends = np.concatenate([[low], np.repeat(breaks[inner], 2), [high]])
    return ends, np.repeat(lines[:, pieces], 2, axis=1), np.repeat(mean[pieces], 2)


def _category_axis(curve, rows) -> FeatureAxis | None:
    """How categories are laid out; None for numbers."""
    if not curve.is_categorical:
        return None
    points = curve.grid_values[0]
    labels = _text.shorten_all([_text.short_value(v) for v in points.tolist()], 18)
    name = _text.shorten(curve.feature, 34)
    return FeatureAxis(name, points, None, tuple(labels), rows, n_categories=len(points))
