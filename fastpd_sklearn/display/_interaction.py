"""Two-way interactions: what two features do together beyond what each does alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.display import _checks, _style
from fastpd_sklearn.display._axis import (
    FeatureAxis,
    draw_curve,
    dress_axis,
    extra_height,
    make_axis,
)
from fastpd_sklearn.display._heatmap import draw_colorbar, draw_dots, draw_heatmap, effect_limits
from fastpd_sklearn.display._source import (
    fit_explainer,
    open_source,
    ranked_terms,
)

PANEL_SIZE = (4.4, 3.2)

MOST_LINES = 6
"""Values of a partner that get a line each."""


@dataclass(frozen=True, eq=False)
class Interaction:
    """The joint effect of two features.

    Parameters
    ----------
    axes : pair of FeatureAxis
    values : ndarray of shape (n_points of the first, n_points of the second)
        The component ``m_kl`` on the product of their points.
    """

    axes: tuple[FeatureAxis, FeatureAxis]
    values: np.ndarray

    @property
    def as_lines(self) -> Interaction | None:
        """The same with the feature first along which lines are drawn; None for a heat map."""
        first, second = self.axes
        if first.labels is None and _is_few(second):
            return self
        if second.labels is None and _is_few(first):
            return Interaction((second, first), self.values.T)
        return None


def _is_few(axis: FeatureAxis) -> bool:
    return axis.labels is not None and len(axis.labels) <= MOST_LINES


class InteractionDisplay:
    """Two-way interactions ``m_kl``: joint effects beyond both main effects.

    Along numbers, each value of a partner that has at most six is a line; all other pairs are
    heat maps, white where the two features just add up, red where they raise the response
    together and blue where they lower it. Heat maps show the steps of trees as they are, and
    rows of ``X`` as dots: there is little to be said where none is.

    Make it by :meth:`from_estimator` or :meth:`from_explainer`.

    Parameters
    ----------
    interactions : list of Interaction
        One a panel.
    response : str, default="response"
        What is explained, for labels.
    sample_weight : ndarray of shape (n_rows,), default=None
        Weights of the rows in the density; rows without weight are no dots.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_rows, n_cols), object
        Axes; None where a row has fewer panels than the others.
    lines_ : list of list of matplotlib Line2D
        The lines of each panel; empty for a heat map.
    heatmaps_ : list of matplotlib QuadMesh
        None where there are lines.
    colorbars_ : list of matplotlib Colorbar
        None where there are lines.
    dots_ : list of matplotlib PathCollection
        The rows; None where there are lines.

    See Also
    --------
    MainEffectDisplay : What each feature does by itself.
    ThreeWayDisplay : What three features do together.

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
    >>> from fastpd_sklearn.display import InteractionDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> display = InteractionDisplay.from_estimator(model, X, features=[("bmi", "s5")])
    >>> type(display.heatmaps_[0]).__name__
    'QuadMesh'
    """

    def __init__(self, interactions, *, response="response", sample_weight=None):
        self.interactions = interactions
        self.response = response
        self.sample_weight = sample_weight

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
        grid_resolution=100,
        max_panels=4,
        response_method="auto",
        n_jobs=None,
        ax=None,
        n_cols=2,
        line_kw=None,
        heatmap_kw=None,
        scatter_kw=None,
        density_kw=None,
    ):
        """Explain a fitted tree ensemble exactly, over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` reads.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the data that are shown.
        features : list of tuple of int or str, default=None
            Pairs of columns by number or name, of groups by name. None: the ``max_panels``
            pairs with the largest mean absolute component.
        target : object, default=None
            A class label, or the number or name of an output; needed if there are several.
        groups : dict of str to list of int or str, default=None
            Columns that play together as one feature. One is shown if its rows take few
            different values, as those of indicators of one category do.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        percentiles : tuple of float, default=(0.01, 0.99)
            The quantiles of a column of numbers between which it is shown.
        grid_resolution : int, default=100
            A column with at most so many steps is shown with all of them, others at so many
            evenly spaced points.
        max_panels : int, default=4
            How many pairs ``features=None`` shows at most.
        response_method : str, default="auto"
            The response, as of :class:`~fastpd_sklearn.FastPDExplainer`: "predict_proba" shows
            the probability of a boosted classifier in place of its margin.
        n_jobs : int or None, default=None
            Number of threads.
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a pair, or one whose place they share. None for a new figure.
        n_cols : int, default=2
            Most panels side by side.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws lines.
        heatmap_kw : dict, default=None
            For ``Axes.pcolormesh``, which draws heat maps.
        scatter_kw : dict, default=None
            For ``Axes.scatter``, which draws the rows on a heat map.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density below lines.

        Returns
        -------
        InteractionDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        TypeError
            If the model is no tree ensemble; the message says what to do.
        ValueError
            For an unknown feature or target, and for several outputs without a target.
        """
        explainer = fit_explainer(
            estimator,
            X,
            sample_weight=sample_weight,
            output="component",
            max_order=2,
            target=target,
            groups=groups,
            response_method=response_method,
            n_jobs=n_jobs,
        )
        return cls.from_explainer(
            explainer,
            X,
            features,
            sample_weight=sample_weight,
            percentiles=percentiles,
            grid_resolution=grid_resolution,
            max_panels=max_panels,
            ax=ax,
            n_cols=n_cols,
            line_kw=line_kw,
            heatmap_kw=heatmap_kw,
            scatter_kw=scatter_kw,
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
        grid_resolution=100,
        max_panels=4,
        ax=None,
        n_cols=2,
        line_kw=None,
        heatmap_kw=None,
        scatter_kw=None,
        density_kw=None,
    ):
        """Show what a fitted explainer says, whatever its model.

        Parameters
        ----------
        explainer : BaseExplainer
            Fitted. With ``features=None`` its ``output`` has to be "component" and its
            ``max_order`` at least 2.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows that tell the range of the features and where the data are.
        features : list of tuple of int or str, default=None
            See :meth:`from_estimator`.
        target : object, default=None
            One of the explainer's outputs; needed if it has several.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        percentiles : tuple of float, default=(0.01, 0.99)
            See :meth:`from_estimator`.
        grid_resolution : int, default=100
            See :meth:`from_estimator`.
        max_panels : int, default=4
            See :meth:`from_estimator`.
        ax, n_cols, line_kw, heatmap_kw, scatter_kw, density_kw : object
            See :meth:`plot`.

        Returns
        -------
        InteractionDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import InteractionDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer().fit(model, X)
        >>> InteractionDisplay.from_explainer(explainer, X, [("bmi", "s5")]).axes_.shape
        (1, 1)
        """
        source = open_source(explainer, X, target=target, sample_weight=sample_weight)
        source.one_output(cls.__name__)
        layout = {
            "percentiles": _checks.check_percentiles(percentiles),
            "resolution": _checks.check_count("grid_resolution", grid_resolution),
            "few": MOST_LINES,
        }
        if features is None:
            pairs = ranked_terms(source, 2, _checks.check_count("max_panels", max_panels))
        else:
            pairs = [source.find_set(feature, 2) for feature in _listed(features)]
        interactions = []
        for pair in pairs:
            axes = tuple(make_axis(source, k, **layout) for k in pair)
            values = source.component(pair, [axis.points for axis in axes])[0]
            interactions.append(Interaction(axes, values))
        display = cls(interactions, response=source.response, sample_weight=source.weights)
        return display.plot(
            ax=ax,
            n_cols=n_cols,
            line_kw=line_kw,
            heatmap_kw=heatmap_kw,
            scatter_kw=scatter_kw,
            density_kw=density_kw,
        )

    def plot(
        self, ax=None, *, n_cols=2, line_kw=None, heatmap_kw=None, scatter_kw=None, density_kw=None
    ):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a pair, or one whose place they share. None for a new figure.
        n_cols : int, default=2
            Most panels side by side.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws lines.
        heatmap_kw : dict, default=None
            For ``Axes.pcolormesh``, which draws heat maps.
        scatter_kw : dict, default=None
            For ``Axes.scatter``, which draws the rows on a heat map.
        density_kw : dict, default=None
            For ``Axes.stairs``, which draws the density below lines.

        Returns
        -------
        self : InteractionDisplay
        """
        width, height = PANEL_SIZE
        height += extra_height([interaction.axes[0] for interaction in self.interactions], width)
        self.figure_, self.axes_ = _style.make_axes(
            ax, len(self.interactions), n_cols, (width, height), type(self).__name__
        )
        self.lines_, self.heatmaps_, self.colorbars_, self.dots_ = [], [], [], []
        panels = [panel for panel in self.axes_.flat if panel is not None]
        for panel, interaction in zip(panels, self.interactions, strict=True):
            lined = interaction.as_lines
            if lined is None:
                self._draw_heatmap(panel, interaction, heatmap_kw, scatter_kw)
            else:
                self._draw_lines(panel, lined, ax is None, line_kw, density_kw)
        return self

    def _draw_heatmap(self, ax, interaction: Interaction, heatmap_kw, scatter_kw) -> None:
        limits = effect_limits(interaction.values)
        mesh = draw_heatmap(ax, interaction.axes, interaction.values, limits, heatmap_kw)
        chosen = np.ones(len(interaction.axes[0].rows), dtype=bool)
        if self.sample_weight is not None:
            chosen = self.sample_weight > 0
        self.lines_.append([])
        self.heatmaps_.append(mesh)
        self.colorbars_.append(draw_colorbar(mesh, ax, self.response))
        self.dots_.append(draw_dots(ax, interaction.axes, chosen, scatter_kw))

    def _draw_lines(
        self, ax, interaction: Interaction, is_own_figure: bool, line_kw, density_kw
    ) -> None:
        along, partner = interaction.axes
        ax.axhline(0.0, **_style.REFERENCE)
        looks = _style.line_styles(len(partner.labels), is_ordered=partner.is_ordered)
        lines = []
        for levels, label, look in zip(interaction.values.T, partner.labels, looks, strict=True):
            look = {"linewidth": 1.8, "label": label, **look}
            lines.append(draw_curve(ax, along, levels, look, line_kw)[0])
        values = interaction.values
        _style.leave_room(ax, min(0.0, np.nanmin(values)), max(0.0, np.nanmax(values)))
        dress_axis(ax, along, "x")
        _style.draw_density(
            ax, along.places(), self.sample_weight, along.density_edges(), density_kw
        )
        _style.tidy(ax)
        ax.set_ylabel(_style.effect_label("joint effect", self.response))
        _style.draw_legend_above(ax, lines, partner.labels, partner.name, is_own_figure)
        self.lines_.append(lines)
        self.heatmaps_.append(None)
        self.colorbars_.append(None)
        self.dots_.append(None)


def _listed(features) -> list:
    """Pairs, also where only one is given."""
    if not isinstance(features, tuple | list) or not features:
        raise ValueError(
            f"features={features!r} should be a list of pairs, or None for the strongest ones"
        )
    is_pair = len(features) == 2 and not any(isinstance(f, tuple | list) for f in features)
    return [features] if is_pair else list(features)
