"""Accumulated local effects: curves with confidence bands, bars, and heat maps of pairs."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.display import _style, _text
from fastpd_sklearn.display._axis import FeatureAxis, dress_axis, extra_height
from fastpd_sklearn.display._heatmap import draw_colorbar, effect_limits
from fastpd_sklearn.display._rows import place_rows
from fastpd_sklearn.display._source import output_names, response_name
from fastpd_sklearn.display._ticks import set_numbers
from fastpd_sklearn.explainers import ALECurve, ALEExplainer
from fastpd_sklearn.explainers._checks import check_rows, check_weights

PANEL_SIZE, WIDE_SIZE = (3.2, 2.6), (3.9, 2.9)
"""Of panels in inches; wide ones leave room for a bar of colours."""

MOST_DOTS = 400
"""Rows that are drawn over a heat map, evenly spaced where there are more."""


class ALEDisplay:
    """Accumulated local effects of features and of pairs.

    The effect of a number is drawn as a line with its confidence band, from edge to edge of the
    bins that it was made of; that of categories as bars in the order in which it was
    accumulated. The joint effect of two numbers beyond their own ones is a heat map; cells in
    which there are no rows are hatched, for they only repeat their neighbours. The grey bars
    and the dots are the rows of ``X``.

    Make it by :meth:`from_estimator` or :meth:`from_explainer`.

    Parameters
    ----------
    effects : list of ALECurve and ALESurface
        One a panel; one a panel and output where there are heat maps.
    rows : list of tuple of ndarray
        The values of each effect's columns in the rows of the data; of categories their
        places on the axis.
    output_names : tuple of str
    response : str, default="response"
        What is explained, for the label of the vertical axis.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows in the density.
    confidence : float, default=None
        Of the effects' limits, which a note below the panels tells; None for no note.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_rows, n_cols), object
        Axes; None where a row has fewer panels than the others.
    lines_, bands_, bars_ : ndarray of shape (n_panels, n_outputs), object
        Curves, their confidence bands, and containers of bars; None where there is none.
    heatmaps_ : list
        Of each panel; None where there is a curve.
    colorbars_ : list
        Of each panel; None where there is no heat map.
    densities_ : list
        The grey bars or dots of each panel; None where no row is to be seen.

    See Also
    --------
    ICEDisplay : The curves of single rows.
    MainEffectDisplay : Exact main effects of tree ensembles.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from fastpd_sklearn.display import ALEDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> display = ALEDisplay.from_estimator(model, X, ["bmi", ("bmi", "s5")])
    >>> display.axes_.shape
    (1, 2)
    """

    def __init__(
        self,
        effects,
        rows,
        output_names,
        *,
        response="response",
        sample_weight=None,
        confidence=None,
    ):
        self.effects = effects
        self.rows = rows
        self.output_names = output_names
        self.response = response
        self.sample_weight = sample_weight
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        features,
        *,
        sample_weight=None,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        band_kw=None,
        bar_kw=None,
        heatmap_kw=None,
        density_kw=None,
        **params,
    ):
        """Explain a fitted model over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model of any kind.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the data of the density.
        features : list of int, str, or tuples of two of them
            Columns by number or name; tuples for joint effects.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a panel, or one whose place they share. None for a new figure.
        n_cols : int, default=3
            Most panels side by side.
        sharey : bool, default=True
            Whether all panels of curves have the same vertical limits, so that effects compare.
        line_kw, band_kw, bar_kw, heatmap_kw, density_kw : dict, default=None
            For ``Axes.plot``, ``Axes.fill_between``, ``Axes.bar``, ``Axes.pcolormesh`` and
            ``Axes.stairs``, which draw the curves, their bands, the effects of categories, the
            heat maps and the density.
        **params : dict
            Further parameters of :class:`~fastpd_sklearn.ALEExplainer`, such as ``n_bins`` or
            ``response_method``.

        Returns
        -------
        ALEDisplay
            Drawn; :meth:`plot` draws it anew.
        """
        explainer = ALEExplainer(features=features, **params)
        explainer.fit(estimator, X, sample_weight=sample_weight)
        return cls.from_explainer(
            explainer,
            X,
            sample_weight=sample_weight,
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            band_kw=band_kw,
            bar_kw=bar_kw,
            heatmap_kw=heatmap_kw,
            density_kw=density_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        *,
        sample_weight=None,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        band_kw=None,
        bar_kw=None,
        heatmap_kw=None,
        density_kw=None,
    ):
        """Show what a fitted explainer says.

        Parameters
        ----------
        explainer : ALEExplainer
            Fitted.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows that tell the density.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        ax, n_cols, sharey, line_kw, band_kw, bar_kw, heatmap_kw, density_kw : object
            See :meth:`plot`.

        Returns
        -------
        ALEDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import ALEExplainer
        >>> from fastpd_sklearn.display import ALEDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = ALEExplainer(features=["bmi"]).fit(model, X)
        >>> ALEDisplay.from_explainer(explainer, X).axes_.shape
        (1, 1)
        """
        if not isinstance(explainer, ALEExplainer):
            raise TypeError(
                f"from_explainer takes a fitted ALEExplainer, and got a "
                f"{type(explainer).__name__}; of a model make the display by from_estimator"
            )
        check_is_fitted(explainer)
        X = check_rows(X)
        effects = list(explainer.effects_)
        names = output_names(explainer, effects[0].output_names)
        rows = [
            tuple(
                place_rows(X, j, points if is_categorical(effect) else None)
                for j, points in zip(effect.columns, effect.grid_values, strict=True)
            )
            for effect in effects
        ]
        display = cls(
            effects,
            rows,
            names,
            response=response_name(explainer, names),
            sample_weight=check_weights(sample_weight, X.shape[0]),
            confidence=explainer.confidence if any(map(_has_limits, effects)) else None,
        )
        return display.plot(
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            band_kw=band_kw,
            bar_kw=bar_kw,
            heatmap_kw=heatmap_kw,
            density_kw=density_kw,
        )

    def plot(
        self,
        ax=None,
        *,
        n_cols=3,
        sharey=True,
        line_kw=None,
        band_kw=None,
        bar_kw=None,
        heatmap_kw=None,
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
            Whether all panels of curves have the same vertical limits, so that effects compare.
        line_kw, band_kw, bar_kw, heatmap_kw, density_kw : dict, default=None
            For ``Axes.plot``, ``Axes.fill_between``, ``Axes.bar``, ``Axes.pcolormesh`` and
            ``Axes.stairs``, which draw the curves, their bands, the effects of categories, the
            heat maps and the density.

        Returns
        -------
        self : ALEDisplay
        """
        panels = self._panels()
        axes = [_category_axis(effect, rows) for effect, rows, _ in panels]
        has_map = any(output is not None for _, _, output in panels)
        width, height = WIDE_SIZE if has_map else PANEL_SIZE
        height += extra_height([axis for axis in axes if axis is not None], PANEL_SIZE[0])
        height += _style.NOTE_HEIGHT * (self.confidence is not None)
        self.figure_, self.axes_ = _style.make_axes(
            ax, len(panels), n_cols, (width, height), type(self).__name__
        )
        places = [place for place in self.axes_.flat if place is not None]
        shape = (len(panels), len(self.output_names))
        self.lines_, self.bands_, self.bars_ = (np.full(shape, None, object) for _ in range(3))
        self.heatmaps_, self.colorbars_ = [None] * len(panels), [None] * len(panels)
        self.densities_ = []
        for i, (place, axis, panel) in enumerate(zip(places, axes, panels, strict=True)):
            effect, rows, output = panel
            if output is not None:
                self._draw_surface(place, i, effect, rows, output, heatmap_kw)
            elif axis is not None:
                self._draw_bars(place, i, effect, axis, bar_kw, density_kw)
            else:
                self._draw_curve(place, i, effect, rows[0], line_kw, band_kw, density_kw)
        self._finish(places, panels, sharey, ax is None)
        self._fit_categories(places, axes)
        return self

    def _panels(self) -> list[tuple]:
        """Effect, rows and the output of each panel; no output where all share the panel."""
        panels = []
        for effect, rows in zip(self.effects, self.rows, strict=True):
            is_curve = isinstance(effect, ALECurve)
            outputs = [None] if is_curve else range(len(self.output_names))
            panels += [(effect, rows, output) for output in outputs]
        return panels

    def _draw_curve(self, ax, i, effect, rows, line_kw, band_kw, density_kw) -> None:
        from matplotlib.collections import PolyCollection
        from matplotlib.lines import Line2D

        points = effect.grid_values[0]
        ax.axhline(0.0, **_style.REFERENCE)
        for k, name in enumerate(self.output_names):
            look = {**_style.line_style(k), "linewidth": 1.8, "label": name}
            look["marker"] = "o" if len(points) == 1 else None
            (line,) = ax.plot(points, effect.effect[k], **_style.style(look, line_kw, Line2D))
            self.lines_[i, k] = line
            if _has_limits(effect, k):
                look = {"color": line.get_color(), "alpha": 0.2, "linewidth": 0}
                look = _style.style(look, band_kw, PolyCollection)
                self.bands_[i, k] = ax.fill_between(
                    points, effect.lower[k], effect.upper[k], **look
                )
        if len(points) > 1:
            ax.set_xlim(points[0], points[-1])
        ax.set_xlabel(_text.plain(_text.shorten(effect.features[0], 34)))
        set_numbers(ax.xaxis)
        edges = np.linspace(*ax.get_xlim(), _style.N_BINS + 1)
        self.densities_.append(_style.draw_density(ax, rows, self.sample_weight, edges, density_kw))

    def _draw_bars(self, ax, i, effect, axis, bar_kw, density_kw) -> None:
        n_outputs, n_points = effect.effect.shape
        width = 0.7 / n_outputs
        ax.axhline(0.0, **_style.REFERENCE)
        for k, name in enumerate(self.output_names):
            places = np.arange(n_points) + (k - (n_outputs - 1) / 2) * width
            look = {"color": _style.line_style(k)["color"], "width": width, "label": name}
            if _has_limits(effect, k):
                look["yerr"] = effect.upper[k] - effect.effect[k]
                look["error_kw"] = {"ecolor": "0.25", "elinewidth": 1.0}
            self.bars_[i, k] = ax.bar(places, effect.effect[k], **{**look, **(bar_kw or {})})
        dress_axis(ax, axis, "x")
        self.densities_.append(
            _style.draw_density(
                ax, axis.places(), self.sample_weight, axis.density_edges(), density_kw
            )
        )

    def _draw_surface(self, ax, i, effect, rows, output, heatmap_kw) -> None:
        values = effect.effect[output]
        first, second = effect.grid_values
        look = {"cmap": _style.DIVERGING, "shading": "gouraud", "rasterized": True}
        look = {**look, **effect_limits(values), **(heatmap_kw or {})}
        mesh = ax.pcolormesh(first, second, values.T, **look)
        _hatch(ax, first, second, effect.is_filled)
        name = self.output_names[output] if len(self.output_names) > 1 else None
        if name is not None:
            ax.set_title(_text.plain(_text.shorten(name, 30)), fontsize="medium")
        ax.set_xlabel(_text.plain(_text.shorten(effect.features[0], 34)))
        ax.set_ylabel(_text.plain(_text.shorten(effect.features[1], 30)))
        set_numbers(ax.xaxis)
        seen = np.flatnonzero(np.isfinite(rows[0]) & np.isfinite(rows[1]))
        if len(seen) > MOST_DOTS:
            seen = seen[np.linspace(0, len(seen) - 1, MOST_DOTS).astype(np.intp)]
        dots = {"s": 6, "color": "0.15", "alpha": 0.5, "edgecolors": "white", "linewidths": 0.3}
        self.densities_.append(ax.scatter(rows[0][seen], rows[1][seen], **dots))
        ax.set_xlim(first[0], first[-1])
        ax.set_ylim(second[0], second[-1])
        self.heatmaps_[i] = mesh
        self.colorbars_[i] = draw_colorbar(mesh, ax, self.response)

    def _finish(self, places, panels, sharey: bool, is_own_figure: bool) -> None:
        curves = [k for k, (_, _, output) in enumerate(panels) if output is None]
        ranges = {k: _range(panels[k][0]) for k in curves}
        if sharey and ranges:
            low, high = min(r[0] for r in ranges.values()), max(r[1] for r in ranges.values())
            ranges = dict.fromkeys(ranges, (low, high))
        for k in curves:
            _style.leave_room(places[k], *ranges[k])
            _style.tidy(places[k])
        word = _text.plain(_text.shorten(self.response, 28))
        firsts = list(self.axes_[:, 0]) if self.axes_.ndim == 2 else places[:1]
        for k in curves:
            if places[k] in firsts or not sharey or not is_own_figure:
                places[k].set_ylabel(f"ALE on {word}")
        if self.confidence is not None:
            _style.tell_confidence(self.figure_, places[0], self.confidence, is_own_figure)
        if len(self.output_names) > 1 and curves:
            k = curves[0]
            handles = self.bars_[k] if self.lines_[k, 0] is None else self.lines_[k]
            _style.draw_legend(
                self.figure_, places[k], list(handles), self.output_names, is_own_figure
            )

    def _fit_categories(self, places, axes) -> None:
        """Dress axes of categories again, now that bars of colours have taken their room."""
        if any(axis is not None for axis in axes) and any(self.colorbars_):
            self.figure_.draw_without_rendering()
            for place, axis in zip(places, axes, strict=True):
                if axis is not None:
                    dress_axis(place, axis, "x")


def is_categorical(effect) -> bool:
    """Whether an effect is that of one categorical feature."""
    return isinstance(effect, ALECurve) and effect.is_categorical


def _has_limits(effect, output=slice(None)) -> bool:
    """Whether the effect on an output, or on all of them, has limits to be drawn."""
    return (
        isinstance(effect, ALECurve)
        and effect.lower is not None
        and bool(np.isfinite(effect.lower[output]).all())
    )


def _category_axis(effect, rows) -> FeatureAxis | None:
    """How categories are laid out; None for effects of numbers."""
    if not is_categorical(effect):
        return None
    points = effect.grid_values[0]
    labels = _text.shorten_all([_text.short_value(v) for v in points.tolist()], 18)
    name = _text.shorten(effect.features[0], 34)
    return FeatureAxis(name, points, None, tuple(labels), rows[0], n_categories=len(points))


def _hatch(ax, first, second, is_filled: np.ndarray) -> None:
    """Mark the cells that have no rows."""
    if not is_filled.any():
        return
    cells = np.ma.masked_where(~is_filled.T, np.zeros(is_filled.T.shape))
    ax.pcolor(first, second, cells, hatch="////", facecolor="none", edgecolor="0.45", linewidth=0.0)


def _range(effect: ALECurve) -> tuple[float, float]:
    parts = [part for part in (effect.effect, effect.lower, effect.upper) if part is not None]
    finite = np.concatenate([[0.0], *(part[np.isfinite(part)] for part in parts)])
    return finite.min(), finite.max()
