"""What hyperparameters do to a model's curves, as a picture."""

from __future__ import annotations

import textwrap

import numpy as np

from fastpd_sklearn.display._axis import dress_axis
from fastpd_sklearn.display._candidate_colours import Scale, colour_scale, is_number
from fastpd_sklearn.display._candidate_panel import draw_line, lay_out
from fastpd_sklearn.display._style import (
    draw_density,
    import_pyplot,
    leave_room,
    make_axes,
    style,
    tidy,
)
from fastpd_sklearn.display._text import plain, short_number, shorten
from fastpd_sklearn.model_selection import candidate_curves

LETTERS_PER_INCH = 11
"""Of the legend, at the size of matplotlib's default font."""

MARK = "#E69F00"
"""Rim of the chosen candidate's lines, a colour that no scale of ours has."""

PANEL_SIZE = (3.4, 3.2)
"""Inches of a panel."""

VALUE_WIDTH = 20
"""Characters of the value of a hyperparameter."""


class CandidateCurvesDisplay:
    """Partial dependence of all candidates of a search, one line a fit.

    Lines are coloured by score, or by one of the hyperparameters, and drawn from the worst to the
    best; the candidate that the search has chosen is marked and on top. Curves have all their
    steps. Grey bars show how the data lie.

    Parameters
    ----------
    result : Bunch
        Of :func:`fastpd_sklearn.model_selection.candidate_curves`.

    Attributes
    ----------
    figure_ : matplotlib Figure
    axes_ : ndarray of matplotlib Axes
        One a feature; None where the grid of axes has more places.
    lines_ : ndarray of shape (n_features, n_candidates, n_fits), of matplotlib Line2D
    missing_ : ndarray of shape (n_features, n_candidates, n_fits), of matplotlib Line2D or None
        Where features have missing values, marks at the right of the axes.
    densities_ : list of matplotlib StepPatch, or None
        One a feature.
    colorbar_ : matplotlib Colorbar
    legend_ : matplotlib Legend

    See Also
    --------
    fastpd_sklearn.model_selection.candidate_curves : Fits and explains the candidates.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.display import CandidateCurvesDisplay
    >>> X, y = make_friedman1(200, n_features=5, random_state=0)
    >>> search = GridSearchCV(DecisionTreeRegressor(random_state=0), {"max_depth": [1, 4]})
    >>> display = CandidateCurvesDisplay.from_search(search.fit(X, y), X, y, features=[3, 4])
    >>> display.lines_.shape
    (2, 2, 1)
    """

    def __init__(self, result):
        self.result = result

    @classmethod
    def from_search(
        cls,
        search,
        X,
        y=None,
        features=None,
        *,
        cv=None,
        top=None,
        scoring=None,
        grid=None,
        target=None,
        sample_weight=None,
        n_jobs=None,
        verbose=0,
        color_by="score",
        ax=None,
        n_cols=3,
        line_kw=None,
        best_line_kw=None,
    ):
        """Refit, explain and draw the candidates of a search.

        Parameters
        ----------
        search, X, y, features, cv, top, scoring, grid, target, sample_weight, n_jobs, verbose
            See :func:`fastpd_sklearn.model_selection.candidate_curves`.
        color_by, ax, n_cols, line_kw, best_line_kw
            See :meth:`plot`.

        Returns
        -------
        CandidateCurvesDisplay
        """
        result = candidate_curves(
            search,
            X,
            y,
            features,
            cv=cv,
            top=top,
            scoring=scoring,
            grid=grid,
            target=target,
            sample_weight=sample_weight,
            n_jobs=n_jobs,
            verbose=verbose,
        )
        return cls(result).plot(
            color_by=color_by, ax=ax, n_cols=n_cols, line_kw=line_kw, best_line_kw=best_line_kw
        )

    def plot(self, *, color_by="score", ax=None, n_cols=3, line_kw=None, best_line_kw=None):
        """Draw.

        Parameters
        ----------
        color_by : str, default="score"
            "score", or the name of a hyperparameter of the search. Where there is one fit a
            fold, "score" is that of the fold.
        ax : matplotlib Axes or array-like of Axes, default=None
            One axes, which is divided if there are several features, or one a feature.
        n_cols : int, default=3
            Most panels side by side.
        line_kw : dict, default=None
            Of all lines, for ``matplotlib.axes.Axes.plot``.
        best_line_kw : dict, default=None
            Of the lines of the candidate that the search has chosen.

        Returns
        -------
        self : object
        """
        result = self.result
        import_pyplot(type(self).__name__)
        if len(result.output_names) > 1:
            raise ValueError(
                f"there is a curve for each of {', '.join(result.output_names)}; choose one by "
                "`target` of candidate_curves or from_search"
            )
        scale = colour_scale(result, color_by)
        n_features, caller = len(result.features), type(self).__name__
        self.figure_, self.axes_ = make_axes(ax, n_features, n_cols, PANEL_SIZE, caller)
        panels = [panel for panel in self.axes_.flat if panel is not None]
        self.lines_ = np.full((n_features, *scale.numbers.shape), None, dtype=object)
        self.missing_ = self.lines_.copy()
        self.densities_ = []
        for i, panel in enumerate(panels):
            axis = lay_out(
                result.features[i],
                result.curves[i][0][0],
                result.feature_values[i],
                result.grid_values[i],
            )
            dress_axis(panel, axis, "x")
            self._draw_lines(panel, i, axis, scale, line_kw or {}, best_line_kw or {})
            self.densities_.append(draw_density(panel, axis.places(), edges=axis.density_edges()))
            _label_heights(panel)
        for panel in panels:
            leave_room(panel, *_extent([*self.lines_.flat, *self.missing_.flat]))
        self.colorbar_ = scale.add_to(self.figure_, panels)
        self.legend_ = self._add_legend(panels[0], own_figure=ax is None)
        return self

    def _draw_lines(self, panel, i: int, axis, scale: Scale, line_kw, best_line_kw) -> None:
        """The candidates of one feature, the chosen one last."""
        from matplotlib.lines import Line2D

        result = self.result
        n_candidates, n_fits = scale.numbers.shape
        others = [k for k in reversed(range(n_candidates)) if k != result.best]
        for k in [*others, result.best]:
            given = style(line_kw, best_line_kw if k == result.best else {}, Line2D)
            look = _emphasis(n_fits) if k == result.best else {"linewidth": 1.0}
            for fit in range(n_fits):
                self.lines_[i, k, fit], self.missing_[i, k, fit] = draw_line(
                    panel,
                    axis,
                    result.curves[i][k][fit],
                    result.grid_values[i],
                    result.average[i][k, fit, 0],
                    {**look, "color": scale.colour(k, fit)},
                    given,
                )

    def _add_legend(self, axis, own_figure: bool):
        """Which candidate the marked line is."""
        best = self.result.best
        params = [f"{name} = {_short(v)}" for name, v in self.result.params[best].items()]
        handles = [self.lines_[0, best, 0]]
        if not own_figure:
            label = "\n".join(["chosen:", *params])
            return axis.legend(handles, [plain(label)], fontsize="small")
        whole = [param.replace(" ", "\N{NO-BREAK SPACE}") for param in params]
        width = int(self.figure_.get_figwidth() * LETTERS_PER_INCH)
        label = textwrap.fill(f"chosen: {', '.join(whole)}", width, subsequent_indent="    ")
        place = {"loc": "outside upper left", "frameon": False}
        return self.figure_.legend(handles, [plain(label)], **place)


def _short(value) -> str:
    return short_number(value) if is_number(value) else shorten(value, VALUE_WIDTH)


def _emphasis(n_fits: int) -> dict:
    """A line with a bright rim, narrower where there is one a fold."""
    from matplotlib.patheffects import Normal, Stroke

    width = 2.0 if n_fits == 1 else 1.3
    return {
        "linewidth": width,
        "path_effects": [Stroke(linewidth=width + 3.5, foreground=MARK), Normal()],
    }


def _extent(lines) -> tuple[float, float]:
    heights = np.concatenate([line.get_ydata() for line in lines if line is not None])
    return float(np.nanmin(heights)), float(np.nanmax(heights))


def _label_heights(panel) -> None:
    place = panel.get_subplotspec()
    if place is None or place.is_first_col():
        panel.set_ylabel("partial dependence")
    tidy(panel)
