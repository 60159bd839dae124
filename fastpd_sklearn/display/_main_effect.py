"""Main effects: what each feature does by itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from fastpd_sklearn.display import _checks, _style
from fastpd_sklearn.display._axis import (
    MOST_CATEGORIES,
    FeatureAxis,
    draw_band,
    draw_curve,
    dress_axis,
    extra_height,
    has_axis,
    make_axis,
)
from fastpd_sklearn.display._source import Source, fit_explainer, mean_size, open_source
from fastpd_sklearn.explainers._checks import check_confidence

PANEL_SIZE = (3.2, 2.6)


@dataclass(frozen=True, eq=False)
class Effect:
    """The main effect of one feature.

    Parameters
    ----------
    axis : FeatureAxis
    levels : ndarray of shape (n_outputs, n_points)
        The component ``m_k`` at the points of the axis.
    margin : ndarray of shape (n_outputs, n_points), default=None
        Half the width of the confidence intervals of the levels.
    """

    axis: FeatureAxis
    levels: np.ndarray
    margin: np.ndarray | None = None


class MainEffectDisplay:
    """Main effects ``m_k`` of features, with all steps of their curves.

    The main effect of a feature is its partial dependence less the mean response: how far a
    value moves the response from its mean, averaged over the other features. Numbers are drawn
    as the step functions that they are for trees (as lines for other models), categories as
    bars, missing values as a marker at the right. The grey bars below are the rows of ``X``.
    With ``n_jackknife`` groups of the background, bands show what the effects would vary by if the
    background were drawn anew: its error, not that of the model.

    Make it by :meth:`from_estimator` or :meth:`from_explainer`.

    Parameters
    ----------
    effects : list of Effect
        One a panel.
    output_names : tuple of str
        One an output; each is a line of its own.
    response : str, default="response"
        What is explained, for the label of the vertical axis.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows in the density.
    confidence : float, default=0.95
        That of the margins of the effects, where they have some.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_rows, n_cols), object
        Axes; None where a row has fewer panels than the others.
    lines_ : ndarray of shape (n_effects, n_outputs), object
        The curves; None where there are bars.
    markers_ : ndarray of shape (n_effects, n_outputs), object
        The effects of missing numbers; None where there are none.
    bars_ : ndarray of shape (n_effects, n_outputs), object
        Containers of the bars of categories; None where there is a curve.
    bands_ : ndarray of shape (n_effects, n_outputs), object
        The confidence bands of curves; None where there is none.
    densities_ : list
        The grey bars of each panel; None where no row is to be seen.

    See Also
    --------
    InteractionDisplay : What two features do together beyond that.
    ImportanceDisplay : How much each feature matters.

    References
    ----------
    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from fastpd_sklearn.display import MainEffectDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> display = MainEffectDisplay.from_estimator(model, X, features=["bmi", "sex"])
    >>> display.axes_.shape
    (1, 2)
    """

    def __init__(
        self, effects, output_names, *, response="response", sample_weight=None, confidence=0.95
    ):
        self.effects = effects
        self.output_names = output_names
        self.response = response
        self.sample_weight = sample_weight
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        features=None,
        *,
        target=None,
        groups=None,
        sample_weight=None,
        percentiles=(0.01, 0.99),
        max_panels=9,
        n_jackknife=0,
        confidence=0.95,
        response_method="auto",
        n_jobs=None,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        band_kw=None,
        bar_kw=None,
        density_kw=None,
    ):
        """Explain a fitted tree ensemble exactly, over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` reads.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the data of the density.
        features : list of int or str, default=None
            Columns by number or name, groups by name. None: the ``max_panels`` features with
            the largest mean absolute effect; a warning names the groups that have no axis.
        target : object, default=None
            A class label, or the number or name of an output; None for all, a line each.
        groups : dict of str to list of int or str, default=None
            Columns that play together as one feature. One is shown if its rows take few
            different values, as those of indicators of one category do.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        percentiles : tuple of float, default=(0.01, 0.99)
            The quantiles of a column of numbers between which its curve is shown.
        max_panels : int, default=9
            How many features ``features=None`` shows at most.
        n_jackknife : int, default=0
            Groups of the background for confidence bands, such as 20; 0 for no bands.
        confidence : float, default=0.95
            Of the bands, point by point.
        response_method : str, default="auto"
            The response, as of :class:`~fastpd_sklearn.FastPDExplainer`: "predict_proba" shows
            the probability of a boosted classifier in place of its margin.
        n_jobs : int or None, default=None
            Number of threads.
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a feature, or one whose place they share. None for a new figure.
        n_cols : int, default=3
            Most panels side by side.
        sharey : bool, default=True
            Whether all panels have the same vertical limits, so that effects compare.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws the curves and markers.
        band_kw : dict, default=None
            For ``Axes.fill_between``, which draws the confidence bands.
        bar_kw : dict, default=None
            For ``Axes.bar``, which draws the effects of categories.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density.

        Returns
        -------
        MainEffectDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        TypeError
            If the model is no tree ensemble; the message says what to do.
        ValueError
            For an unknown feature or target.
        """
        explainer = fit_explainer(
            estimator,
            X,
            sample_weight=sample_weight,
            target=target,
            groups=groups,
            n_jackknife=n_jackknife,
            response_method=response_method,
            n_jobs=n_jobs,
        )
        return cls.from_explainer(
            explainer,
            X,
            features,
            sample_weight=sample_weight,
            percentiles=percentiles,
            max_panels=max_panels,
            confidence=confidence,
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            band_kw=band_kw,
            bar_kw=bar_kw,
            density_kw=density_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        features=None,
        *,
        target=None,
        sample_weight=None,
        percentiles=(0.01, 0.99),
        max_panels=9,
        confidence=0.95,
        ax=None,
        n_cols=3,
        sharey=True,
        line_kw=None,
        band_kw=None,
        bar_kw=None,
        density_kw=None,
    ):
        """Show what a fitted explainer says, whatever its ``output`` and its model.

        Parameters
        ----------
        explainer : BaseExplainer
            Fitted: a ``FastPDExplainer``, ``PathDependentExplainer`` or
            ``VanillaPDExplainer``.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows that tell the range of the features and their density.
        features : list of int or str, default=None
            See :meth:`from_estimator`.
        target : object, default=None
            One of the explainer's outputs; None for all.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        percentiles : tuple of float, default=(0.01, 0.99)
            See :meth:`from_estimator`.
        max_panels : int, default=9
            See :meth:`from_estimator`.
        confidence : float, default=0.95
            Of the bands, which are drawn if the explainer was fitted with ``n_jackknife``.
        ax, n_cols, sharey, line_kw, band_kw, bar_kw, density_kw : object
            See :meth:`plot`.

        Returns
        -------
        MainEffectDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import MainEffectDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer().fit(model, X)
        >>> MainEffectDisplay.from_explainer(explainer, X, ["bmi", "bp"]).axes_.shape
        (1, 2)
        """
        source = open_source(explainer, X, target=target, sample_weight=sample_weight)
        low, high = _checks.check_percentiles(percentiles)
        check_confidence(confidence)
        if features is None:
            players = _strongest(source, max_panels)
        else:
            features = [features] if isinstance(features, str | Integral) else features
            players = [source.players.find(feature) for feature in features]
        if not players:
            raise ValueError("features is empty; name at least one feature, or None for all")
        axes = [make_axis(source, k, percentiles=(low, high), few=2) for k in players]
        effects = [
            Effect(
                axis,
                source.component((k,), [axis.points]),
                source.component_margin((k,), [axis.points], confidence),
            )
            for k, axis in zip(players, axes, strict=True)
        ]
        display = cls(
            effects,
            source.output_names,
            response=source.response,
            sample_weight=source.weights,
            confidence=confidence,
        )
        return display.plot(
            ax=ax,
            n_cols=n_cols,
            sharey=sharey,
            line_kw=line_kw,
            band_kw=band_kw,
            bar_kw=bar_kw,
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
        density_kw=None,
    ):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a feature, or one whose place they share. None for a new figure.
        n_cols : int, default=3
            Most panels side by side.
        sharey : bool, default=True
            Whether all panels have the same vertical limits, so that effects compare.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws the curves and markers.
        band_kw : dict, default=None
            For ``Axes.fill_between``, which draws the confidence bands.
        bar_kw : dict, default=None
            For ``Axes.bar``, which draws the effects of categories.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density.

        Returns
        -------
        self : MainEffectDisplay
        """
        width, height = PANEL_SIZE
        height += extra_height([effect.axis for effect in self.effects], width)
        n_cols = min(_checks.check_count("n_cols", n_cols), len(self.effects))
        n_rows = -(-len(self.effects) // n_cols)
        notes = _style.legend_height(self.output_names, n_cols * width)
        notes += _style.NOTE_HEIGHT * (self.effects[0].margin is not None)
        height += notes / n_rows
        self.figure_, self.axes_ = _style.make_axes(
            ax, len(self.effects), n_cols, (width, height), type(self).__name__
        )
        shape = (len(self.effects), len(self.output_names))
        made = (np.full(shape, None, object) for _ in range(4))
        self.lines_, self.markers_, self.bars_, self.bands_ = made
        self.densities_ = []
        panels = [panel for panel in self.axes_.flat if panel is not None]
        for i, (panel, effect) in enumerate(zip(panels, self.effects, strict=True)):
            self._draw_effect(panel, i, effect, line_kw, band_kw, bar_kw)
            dress_axis(panel, effect.axis, "x")
            density = _style.draw_density(
                panel,
                effect.axis.places(),
                self.sample_weight,
                effect.axis.density_edges(),
                density_kw,
            )
            self.densities_.append(density)
        self._set_limits(panels, sharey)
        self._label(panels, ax is None, sharey)
        return self

    def _draw_effect(self, ax, i: int, effect: Effect, line_kw, band_kw, bar_kw) -> None:
        axis = effect.axis
        ax.axhline(0.0, **_style.REFERENCE)
        n_outputs = len(self.output_names)
        for k, (name, levels) in enumerate(zip(self.output_names, effect.levels, strict=True)):
            look = {**_style.line_style(k), "linewidth": 1.8, "label": name}
            if axis.labels is None:
                drawn = draw_curve(ax, axis, levels, look, line_kw)
                self.lines_[i, k], self.markers_[i, k] = drawn
                if effect.margin is not None:
                    look = {"color": drawn[0].get_color(), "alpha": 0.2, "linewidth": 0}
                    margin = effect.margin[k]
                    self.bands_[i, k] = draw_band(ax, axis, levels, margin, look, band_kw)
            else:
                width = 0.7 / n_outputs
                places = np.arange(len(levels)) + (k - (n_outputs - 1) / 2) * width
                look = {**_style.bar_style(k), "width": width, "label": name}
                if effect.margin is not None:
                    look |= {"yerr": effect.margin[k], "error_kw": _style.ERROR_BAR}
                self.bars_[i, k] = ax.bar(places, levels, **{**look, **(bar_kw or {})})

    def _set_limits(self, panels, sharey: bool) -> None:
        ranges = [_range(effect) for effect in self.effects]
        if sharey:
            ranges = [(min(low for low, _ in ranges), max(high for _, high in ranges))] * len(
                ranges
            )
        for panel, (low, high) in zip(panels, ranges, strict=True):
            _style.leave_room(panel, low, high)

    def _label(self, panels, is_own_figure: bool, sharey: bool) -> None:
        for panel in panels:
            _style.tidy(panel)
        firsts = list(self.axes_[:, 0] if self.axes_.ndim == 2 else panels[:1])
        for panel in firsts:
            panel.set_ylabel(_style.effect_label("effect", self.response))
        if is_own_figure and sharey:
            for panel in panels:
                panel.tick_params(labelleft=panel in firsts)
        if self.effects[0].margin is not None:
            _style.tell_confidence(self.figure_, panels[0], self.confidence, is_own_figure)
        if len(self.output_names) > 1:
            first = self.bars_[0] if self.lines_[0, 0] is None else self.lines_[0]
            _style.draw_legend(
                self.figure_, panels[0], list(first), self.output_names, is_own_figure
            )


def _range(effect: Effect) -> tuple[float, float]:
    margin = 0.0 if effect.margin is None else effect.margin
    low, high = effect.levels - margin, effect.levels + margin
    return min(0.0, np.nanmin(low)), max(0.0, np.nanmax(high))


def _strongest(source: Source, n: int) -> list[int]:
    """The features whose main effects are largest on average, the largest first."""
    n = _checks.check_count("max_panels", n)
    ranked = source.thinned()
    size, left_out = {}, []
    for k in range(len(source.players)):
        if has_axis(source, k):
            effect = ranked.component((k,), [ranked.values(k)])
            size[k] = mean_size(effect.T, ranked.weights).mean()
        else:
            left_out.append(source.players.names[k])
    if left_out:
        _tell_left_out(left_out, is_all=not size)
    order = sorted(size, key=size.get, reverse=True)
    return [k for k in order if size[k] > 0][:n] or order[:n]


def _tell_left_out(names: list[str], is_all: bool) -> None:
    """Name the groups that cannot be shown; an error if there is nothing else."""
    message = (
        f"features=None shows no {', '.join(map(repr, names))}: groups of columns that take more "
        f"than {MOST_CATEGORIES} different values together have no common axis. ImportanceDisplay "
        "shows how much they matter; columns that no step mixes can be explained apart"
    )
    if is_all:
        raise ValueError(message)
    warnings.warn(message, UserWarning, stacklevel=4)
