"""``PartialDependenceDisplay`` with the arguments and the look of scikit-learn's."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterable, Mapping
from numbers import Integral, Real

import numpy as np
from sklearn import inspection

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.explainers._models import classes_of, kind_of
from fastpd_sklearn.inspection import _drawing
from fastpd_sklearn.inspection._grid import read_column
from fastpd_sklearn.inspection._partial_dependence import KINDS, Request, make_request


class PartialDependenceDisplay(inspection.PartialDependenceDisplay):
    """Partial dependence and single rows' curves, drawn.

    A :class:`sklearn.inspection.PartialDependenceDisplay` whose results are those of
    :func:`fastpd_sklearn.inspection.partial_dependence`: make one by :meth:`from_estimator`.
    What can be done with the one can be done with the other.

    Parameters
    ----------
    pd_results : list of Bunch
        One result of :func:`partial_dependence` a panel.
    features : list of (int,) or (int, int)
        The columns of each panel.
    feature_names : list of str
        Names of all columns.
    target_idx : int
        The output that is drawn.
    deciles : dict of int to ndarray of shape (9,)
        Deciles of the columns that are drawn, by column.
    kind : {"average", "individual", "both"} or list of such str, default="average"
        What is drawn, in all panels or in each.
    subsample : float, int or None, default=1000
        How many rows' curves are drawn, as a share of the rows if it is a float; None for all.
    random_state : int, RandomState instance or None, default=None
        Which rows are drawn, where not all are.
    is_categorical : list of (bool,) or (bool, bool), default=None
        For each panel, whether its columns hold categories; None: no column does.

    Attributes
    ----------
    bounding_ax_ : matplotlib Axes or None
        The axes within which the panels are, or None if each panel was given its own.
    axes_ : ndarray of matplotlib Axes
        The panels.
    lines_ : ndarray of matplotlib Line2D
        Curves, by panel, and by row if single rows are drawn.
    deciles_vlines_, deciles_hlines_ : ndarray of matplotlib LineCollection
        Ticks at the deciles.
    contours_ : ndarray of matplotlib ContourSet
        Surfaces of pairs.
    bars_, heatmaps_ : ndarray of matplotlib artists
        Of categories, and of pairs of them.
    figure_ : matplotlib Figure

    See Also
    --------
    partial_dependence : What is drawn.

    Examples
    --------
    >>> import matplotlib; matplotlib.use("Agg")
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> from fastpd_sklearn.inspection import PartialDependenceDisplay
    >>> X, y = make_friedman1(random_state=0)
    >>> model = GradientBoostingRegressor(random_state=0).fit(X, y)
    >>> display = PartialDependenceDisplay.from_estimator(
    ...     model, X, [3, (0, 1)], grid_resolution="exact")
    >>> display.axes_.shape
    (1, 2)
    """

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        features,
        *,
        sample_weight=None,
        categorical_features=None,
        feature_names=None,
        target=None,
        response_method="auto",
        n_cols=3,
        grid_resolution=100,
        percentiles=(0.05, 0.95),
        custom_values=None,
        method="auto",
        n_jobs=None,
        verbose=0,
        line_kw=None,
        ice_lines_kw=None,
        pd_line_kw=None,
        contour_kw=None,
        ax=None,
        kind="average",
        centered=False,
        subsample=1000,
        random_state=None,
    ):
        """Compute partial dependence and draw it.

        Parameters
        ----------
        estimator, X : object
            As in :func:`partial_dependence`, and so are ``sample_weight``,
            ``categorical_features``, ``feature_names``, ``response_method``, ``percentiles``,
            ``grid_resolution``, ``custom_values`` and ``method``.
        features : list of int, str, or pairs of them
            One panel an entry: a curve for a column, a surface for a pair.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows in averages.
        categorical_features : array-like, default=None
            Columns that are drawn as bars. Columns of labels are without being named.
        feature_names : array-like of shape (n_columns,), default=None
            Names of the columns.
        target : object, default=None
            A class label where there are more than two classes, or the number of an output
            where there are several. A binary classifier shows ``classes_[1]``, whatever
            ``target`` is.
        response_method : str, default="auto"
            The response.
        n_cols : int, default=3
            The most panels side by side.
        grid_resolution : int or "exact", default=100
            Points of a curve. "exact": all of its steps, drawn as steps.
        percentiles : tuple of two float, default=(0.05, 0.95)
            Ends of a curve.
        custom_values : dict of int or str to array-like, default=None
            Points of a feature. NaN among them is drawn as a dotted line across the panel.
        method : {"auto", "recursion", "brute"}, default="auto"
            How to compute.
        n_jobs : int or None, default=None
            Threads of the explainers; None is the OpenMP default, -1 all processors. The
            result does not depend on it.
        verbose : int, default=0
            Whether to print which panels are done.
        line_kw, ice_lines_kw, pd_line_kw, contour_kw : dict, default=None
            As in :meth:`plot`.
        ax : matplotlib Axes or array-like of Axes, default=None
            As in :meth:`plot`.
        kind : {"average", "individual", "both"} or list of such str, default="average"
            What to draw, in all panels or in each. A pair takes "average" alone, and so does a
            column of categories.
        centered : bool, default=False
            Whether curves begin at zero.
        subsample : float, int or None, default=1000
            How many rows' curves are drawn, as a share of the rows if it is a float.
        random_state : int, RandomState instance or None, default=None
            Which rows are drawn, where not all are.

        Returns
        -------
        PartialDependenceDisplay

        Raises
        ------
        ValueError, TypeError
            For bad input; the message names the argument and the remedy.
        """
        _drawing.needs_matplotlib(f"{cls.__name__}.from_estimator")
        features = _as_panels(features)
        kinds = _one_kind_each(kind, features)
        _check_subsample(subsample)
        _check_axes(ax, len(features))
        _checks.check_verbose(verbose)
        _check_columns(n_cols)
        classes = classes_of(estimator)
        many_classes = classes is not None and len(classes) > 2
        if many_classes:
            target_idx = _find_class(target, classes)
        request, columns = make_request(
            estimator,
            X,
            features,
            sample_weight=sample_weight,
            categorical_features=categorical_features,
            feature_names=feature_names,
            response_method=response_method,
            percentiles=percentiles,
            grid_resolution=grid_resolution,
            custom_values=custom_values,
            method=method,
            kinds=kinds,
            n_jobs=n_jobs,
            stacklevel=3,
        )
        data = {j: read_column(request.X, j) for each in columns for j in each}
        is_categorical = [
            tuple(data[j].labelled or j in request.categorical for j in each) for each in columns
        ]
        _check_panels(request, columns, kinds, is_categorical)
        results = []
        for each, panel_kind in zip(columns, kinds, strict=True):
            results.append(request.answer(each, panel_kind))
            if verbose:
                print(f"[{cls.__name__}] {len(results)} of {len(columns)} panels")
        if not many_classes:
            first = results[0].average if kinds[0] == "average" else results[0].individual
            target_idx = _find_output(target, len(first), classes, kind_of(estimator))
        deciles = {
            j: data[j].deciles()
            for each, categories in zip(columns, is_categorical, strict=True)
            for j, is_category in zip(each, categories, strict=True)
            if not is_category
        }
        display = cls(
            pd_results=results,
            features=columns,
            feature_names=request.names,
            target_idx=target_idx,
            deciles=deciles,
            kind=kind,
            subsample=subsample,
            random_state=random_state,
            is_categorical=is_categorical,
        )
        return display.plot(
            ax=ax,
            n_cols=n_cols,
            line_kw=line_kw,
            ice_lines_kw=ice_lines_kw,
            pd_line_kw=pd_line_kw,
            contour_kw=contour_kw,
            centered=centered,
        )

    def plot(
        self,
        *,
        ax=None,
        n_cols=3,
        line_kw=None,
        ice_lines_kw=None,
        pd_line_kw=None,
        contour_kw=None,
        bar_kw=None,
        heatmap_kw=None,
        pdp_lim=None,
        centered=False,
    ):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or array-like of Axes, default=None
            Axes to fill with a grid of panels, or the axes of each panel. None: a figure with
            room for them.
        n_cols : int, default=3
            The most panels side by side.
        line_kw : dict, default=None
            For all lines, as ``matplotlib.pyplot.plot`` takes it.
        ice_lines_kw, pd_line_kw : dict, default=None
            For the lines of single rows and of averages; they go before ``line_kw``.
        contour_kw : dict, default=None
            For the surfaces of pairs, as ``matplotlib.pyplot.contourf`` takes it.
        bar_kw, heatmap_kw : dict, default=None
            For categories and pairs of them, as ``bar`` and ``imshow`` take it.
        pdp_lim : dict of int to (float, float), default=None
            The range of all curves at key 1, of all surfaces at key 2; None: what they span.
        centered : bool, default=False
            Whether curves begin at zero.

        Returns
        -------
        PartialDependenceDisplay
            The display itself.
        """
        _check_columns(n_cols)
        n_panels = len(self.features)
        kinds = [self.kind] * n_panels if isinstance(self.kind, str) else list(self.kind)
        categorical = self._categories()
        drawn = copy.copy(self)
        drawn.pd_results = [
            _drawing.drawable(result, categories)
            for result, categories in zip(self.pd_results, categorical, strict=True)
        ]
        if pdp_lim is None and len(kinds) == n_panels:
            pdp_lim = _drawing.limits(drawn.pd_results, kinds, self.target_idx, centered)
        own_figure = ax is None
        if own_figure:
            ax = _drawing.new_axes(n_panels, n_cols)
        before = _artists_on(ax)
        super(PartialDependenceDisplay, drawn).plot(
            ax=ax,
            n_cols=n_cols,
            line_kw=line_kw,
            ice_lines_kw=ice_lines_kw,
            pd_line_kw=pd_line_kw,
            contour_kw=contour_kw,
            bar_kw=bar_kw,
            heatmap_kw=heatmap_kw,
            pdp_lim=pdp_lim,
            centered=centered,
        )
        style = _drawing.LineStyle.of(line_kw, ice_lines_kw, pd_line_kw)
        panels = drawn.axes_.ravel()[:n_panels]  # a grid may have more places than panels
        for k, (panel, categories) in enumerate(zip(panels, categorical, strict=True)):
            artists = [artist for artist in panel.get_children() if artist not in before]
            self._finish(
                panel, k, categories, artists, drawn.pd_results[k] if centered else None, style
            )
        for panel in _drawing.unnumbered(drawn.axes_, [len(each) for each in self.features]):
            _drawing.number_axis(panel)
        for panel, marks in zip(panels, drawn.deciles_hlines_.ravel(), strict=False):
            if marks is not None:
                _drawing.place_deciles(panel, marks)
        if own_figure and n_panels > 1:
            _drawing.fold_labels(panels)
        vars(self).update({k: v for k, v in vars(drawn).items() if k.endswith("_")})
        return self

    def _finish(self, panel, k: int, categories, artists: list, centered, style) -> None:
        """Make legible what is drawn in a panel."""
        result = self.pd_results[k]
        if categories == (False,):
            base = 0.0
            if centered is not None and "average" in result:
                base = centered.average[self.target_idx, 0]
            _drawing.finish_curve(panel, artists, result, self.target_idx, base, style)
        elif categories == (True,):
            _drawing.finish_bars(panel, len(result.grid_values[0]))
        elif categories == (True, True):
            _drawing.finish_heatmap(panel, tuple(map(len, result.grid_values[::-1])))
        elif categories == (False, False):
            _drawing.finish_surface(panel, artists, result)

    def _categories(self) -> list[tuple[bool, ...]]:
        """For each panel, whether its columns hold categories."""
        if self.is_categorical is None:
            return [(False,) * len(each) for each in self.features]
        return [tuple(map(bool, each)) for each in self.is_categorical]


def _as_panels(features) -> list:
    if isinstance(features, str | Integral | Mapping) or not isinstance(features, Iterable):
        raise TypeError(
            f"features={features!r} should be a list with one entry a panel, such as [{features!r}]"
        )
    panels = [each.tolist() if isinstance(each, np.ndarray) else each for each in features]
    if not panels:
        raise ValueError("features is empty; name at least one column")
    for each in panels:
        if not isinstance(each, str | Integral) and (
            not isinstance(each, tuple | list) or not 1 <= len(each) <= 2
        ):
            raise ValueError(
                "Each entry in features must be either an int, a string, or an iterable of size "
                f"at most 2, got {each!r}"
            )
    return panels


def _one_kind_each(kind, features: list) -> list[str]:
    if isinstance(kind, str):
        return [kind] * len(features)
    if not isinstance(kind, list | tuple | np.ndarray):
        raise TypeError(f"kind={kind!r} should be one of {KINDS}, or a list with one a panel")
    kinds = list(kind)
    if len(kinds) != len(features):
        raise ValueError(
            "When `kind` is provided as a list of strings, it should contain as many elements as "
            f"`features`. `kind` contains {len(kinds)} element(s) and `features` contains "
            f"{len(features)} element(s)."
        )
    return kinds


def _check_subsample(subsample) -> None:
    if subsample is None:
        return
    if isinstance(subsample, bool) or not isinstance(subsample, Real):
        raise TypeError(f"subsample={subsample!r} should be an int, a float or None")
    if isinstance(subsample, Integral) and subsample <= 0:
        raise ValueError(f"When an integer, subsample={subsample} should be positive.")
    if not isinstance(subsample, Integral) and not 0 < subsample < 1:
        raise ValueError(
            f"When a floating-point, subsample={subsample} should be in the (0, 1) range; None "
            "draws all rows"
        )


def _check_columns(n_cols) -> None:
    if isinstance(n_cols, bool) or not isinstance(n_cols, Integral) or n_cols < 1:
        raise ValueError(f"n_cols={n_cols!r} should be an int of at least 1")


def _check_axes(ax, n_panels: int) -> None:
    if ax is None or hasattr(ax, "plot"):
        return
    n_axes = np.asarray(ax, dtype=object).size
    if n_axes != n_panels:
        raise ValueError(
            f"Expected ax to have {n_panels} axes, got {n_axes}: one for each of `features`"
        )


def _check_panels(request: Request, columns, kinds, is_categorical) -> None:
    """Refuse what cannot be drawn."""
    names = request.names
    for each, kind, categories in zip(columns, kinds, is_categorical, strict=True):
        called = " and ".join(repr(names[j]) for j in each)
        if len(each) == 2 and kind != "average":
            raise ValueError(
                "ICE plot cannot be rendered for 2-way feature interactions. 2-way feature "
                "interactions mandates PD plots using the 'average' kind: "
                f"{called} should be configured to use kind='average', not {kind!r}."
            )
        if any(categories) and kind != "average":
            raise ValueError(
                "It is not possible to display individual effects for categorical features, such "
                f"as {called}; take kind='average' for it, not {kind!r}"
            )
        if len(set(categories)) > 1:
            raise ValueError(
                "Two-way partial dependence plots are not supported for pairs of continuous and "
                f"categorical features, such as {called}; partial_dependence gives the numbers"
            )


def _find_class(target, classes: np.ndarray) -> int:
    labels = classes.tolist()
    if target is None:
        raise ValueError(f"target must be specified for multi-class: one of {labels}")
    if target not in labels:
        raise ValueError(f"target not in est.classes_, got {target}; they are {labels}")
    return labels.index(target)


def _find_output(target, n_outputs: int, classes, kind: str | None) -> int:
    """The output to draw of a model without many classes."""
    if n_outputs == 1:
        shown = None if classes is None else classes.tolist()[-1]
        if target is not None and classes is not None and target != shown:
            warnings.warn(
                f"target={target!r} is ignored: a binary classifier shows the response of its "
                f"second class, {shown!r}",
                UserWarning,
                stacklevel=3,
            )
        return 0
    if target is None:
        what = "multi-output regressors" if kind == "regressor" else "models of several outputs"
        raise ValueError(f"target must be specified for {what}: a number below {n_outputs}")
    if isinstance(target, bool) or not isinstance(target, Integral) or not 0 <= target < n_outputs:
        raise ValueError(
            f"target must be in [0, n_tasks], got {target!r}; the {n_outputs} outputs are numbered "
            "from 0"
        )
    return int(target)


def _artists_on(ax) -> set:
    """What is on the axes of panels already; a bounding axes has no panels yet."""
    if hasattr(ax, "plot"):
        return set()
    return {
        artist for axis in np.asarray(ax, dtype=object).ravel() for artist in axis.get_children()
    }
