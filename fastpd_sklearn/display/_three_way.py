"""Three-way interactions, as heat maps at some values of the third feature."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.display import _checks, _style, _text
from fastpd_sklearn.display._axis import extra_height, make_axis
from fastpd_sklearn.display._heatmap import draw_colorbar, draw_dots, draw_heatmap, effect_limits
from fastpd_sklearn.display._source import (
    fit_explainer,
    open_source,
    ranked_terms,
)

PANEL_SIZE = (3.0, 2.7)
"""Width and height in inches."""

NAME_WIDTH = 24
"""Letters of a name along a side of a panel, which shares its place with the other labels."""

MOST_SLICES = 6
"""Values of the third feature that get a panel each, where it has no more than that."""


class ThreeWayDisplay:
    """A three-way interaction ``m_klm``: a joint effect beyond all pairs and main effects.

    A row of heat maps over two of the features, each at one value of the third: of a feature
    with at most six values all of them, otherwise some quantiles. All panels have the same
    colours: white where nothing is added to the pairs, red where the response is raised and
    blue where it is lowered. The dots of a panel are the rows that are nearest to its value.

    Make it by :meth:`from_estimator` or :meth:`from_explainer`.

    Parameters
    ----------
    axes : pair of FeatureAxis
        Of the features that span each panel.
    slices : FeatureAxis
        Of the third feature, laid out as categories; a panel each.
    values : ndarray of shape (n_slices, n_points of the first, n_points of the second)
        The component ``m_klm``.
    response : str, default="response"
        What is explained, for the label of the colours.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of shape (n_rows, n_cols), object
        Axes; None where a row has fewer panels than the others.
    heatmaps_ : list of matplotlib QuadMesh
    dots_ : list of matplotlib PathCollection
        The rows of each panel.
    colorbar_ : matplotlib Colorbar
        Of all panels.

    See Also
    --------
    InteractionDisplay : What two features do together.

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
    >>> from fastpd_sklearn.display import ThreeWayDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> display = ThreeWayDisplay.from_estimator(model, X, features=("bmi", "s5", "bp"))
    >>> display.axes_.shape
    (1, 4)
    """

    def __init__(self, axes, slices, values, *, response="response"):
        self.axes = axes
        self.slices = slices
        self.values = values
        self.response = response

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
        grid_resolution=60,
        n_slices=4,
        n_jobs=None,
        ax=None,
        n_cols=4,
        heatmap_kw=None,
        scatter_kw=None,
    ):
        """Explain a fitted tree ensemble exactly, over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` reads.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the data that are shown.
        features : tuple of three int or str, default=None
            Columns by number or name, groups by name. The last one with at most six values
            gets a panel for each of them; if there is none, the last gets ``n_slices``. None:
            the three with the largest mean absolute component.
        target : object, default=None
            A class label, or the number or name of an output; needed if there are several.
        groups : dict of str to list of int or str, default=None
            Columns that play together as one feature. One is shown if its rows take few
            different values, as those of indicators of one category do.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows of the background.
        percentiles : tuple of float, default=(0.01, 0.99)
            The quantiles of a column of numbers between which it is shown.
        grid_resolution : int, default=60
            A column with at most so many steps is shown with all of them, others at so many
            evenly spaced points.
        n_slices : int, default=4
            Panels of a third feature with many values: quantiles of numbers, or the most
            frequent categories.
        n_jobs : int or None, default=None
            Number of threads.
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a value of the third feature, or one whose place they share. None for a new
            figure.
        n_cols : int, default=4
            Most panels side by side.
        heatmap_kw : dict, default=None
            For ``Axes.pcolormesh``, which draws the heat maps.
        scatter_kw : dict, default=None
            For ``Axes.scatter``, which draws the rows.

        Returns
        -------
        ThreeWayDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        TypeError
            If the model is no tree ensemble; the message says what to do.
        ValueError
            For an unknown feature or target, for several outputs without a target, and with
            ``features=None`` if the model has no three-way interaction.
        """
        explainer = fit_explainer(
            estimator,
            X,
            sample_weight=sample_weight,
            output="component",
            max_order=3,
            target=target,
            groups=groups,
            n_jobs=n_jobs,
        )
        return cls.from_explainer(
            explainer,
            X,
            features,
            percentiles=percentiles,
            grid_resolution=grid_resolution,
            n_slices=n_slices,
            ax=ax,
            n_cols=n_cols,
            heatmap_kw=heatmap_kw,
            scatter_kw=scatter_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        features=None,
        *,
        target=None,
        percentiles=(0.01, 0.99),
        grid_resolution=60,
        n_slices=4,
        ax=None,
        n_cols=4,
        heatmap_kw=None,
        scatter_kw=None,
    ):
        """Show what a fitted explainer says, whatever its model.

        Parameters
        ----------
        explainer : BaseExplainer
            Fitted. With ``features=None`` its ``output`` has to be "component" and its
            ``max_order`` at least 3.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows that tell the range of the features and where the data are.
        features : tuple of three int or str, default=None
            See :meth:`from_estimator`.
        target : object, default=None
            One of the explainer's outputs; needed if it has several.
        percentiles : tuple of float, default=(0.01, 0.99)
            See :meth:`from_estimator`.
        grid_resolution : int, default=60
            See :meth:`from_estimator`.
        n_slices : int, default=4
            See :meth:`from_estimator`.
        ax, n_cols, heatmap_kw, scatter_kw : object
            See :meth:`plot`.

        Returns
        -------
        ThreeWayDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import ThreeWayDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer().fit(model, X)
        >>> display = ThreeWayDisplay.from_explainer(explainer, X, ("bmi", "s5", "bp"), n_slices=3)
        >>> display.axes_.shape
        (1, 3)
        """
        source = open_source(explainer, X, target=target)
        source.one_output(cls.__name__)
        n_slices = _checks.check_count("n_slices", n_slices)
        layout = {
            "percentiles": _checks.check_percentiles(percentiles),
            "resolution": _checks.check_count("grid_resolution", grid_resolution),
            "few": MOST_SLICES,
            "name_width": NAME_WIDTH,
        }
        term = ranked_terms(source, 3, 1)[0] if features is None else source.find_set(features, 3)
        axes = [make_axis(source, k, **layout) for k in term]
        few = [i for i in range(3) if axes[i].labels and len(axes[i].labels) <= MOST_SLICES]
        sliced = few[-1] if few else 2
        order = [i for i in range(3) if i != sliced]
        slices = axes[sliced] if few else axes[sliced].sliced(n_slices)
        points = [slices.points, *(axes[i].points for i in order)]
        values = source.component((term[sliced], *(term[i] for i in order)), points)[0]
        display = cls((axes[order[0]], axes[order[1]]), slices, values, response=source.response)
        return display.plot(ax=ax, n_cols=n_cols, heatmap_kw=heatmap_kw, scatter_kw=scatter_kw)

    def plot(self, ax=None, *, n_cols=4, heatmap_kw=None, scatter_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, array-like of Axes, default=None
            An axes a value of the third feature, or one whose place they share. None for a new
            figure.
        n_cols : int, default=4
            Most panels side by side.
        heatmap_kw : dict, default=None
            For ``Axes.pcolormesh``, which draws the heat maps.
        scatter_kw : dict, default=None
            For ``Axes.scatter``, which draws the rows.

        Returns
        -------
        self : ThreeWayDisplay
        """
        width, height = PANEL_SIZE
        height += extra_height([self.axes[0]], width)
        self.figure_, self.axes_ = _style.make_axes(
            ax, len(self.values), n_cols, (width, height), type(self).__name__
        )
        panels = [panel for panel in self.axes_.flat if panel is not None]
        limits = effect_limits(self.values)
        self.heatmaps_, self.dots_ = [], []
        name = _text.shorten(self.slices.name, 20)
        titles = _text.plain_all(f"{name} = {label}" for label in self.slices.labels)
        for k, (panel, values) in enumerate(zip(panels, self.values, strict=True)):
            self.heatmaps_.append(draw_heatmap(panel, self.axes, values, limits, heatmap_kw))
            self.dots_.append(draw_dots(panel, self.axes, self.slices.rows == k, scatter_kw))
            panel.set_title(titles[k], size="medium")
        if ax is None:
            _share_labels(self.axes_)
        self.colorbar_ = draw_colorbar(self.heatmaps_[0], panels, self.response)
        return self


def _share_labels(axes: np.ndarray) -> None:
    """Label the left and the lower panels only: all have the same axes."""
    for (row, column), panel in np.ndenumerate(axes):
        if panel is None:
            continue
        if column > 0:
            panel.set_ylabel("")
            panel.tick_params(labelleft=False)
        if row + 1 < len(axes) and axes[row + 1, column] is not None:
            panel.set_xlabel("")
            panel.tick_params(labelbottom=False)
