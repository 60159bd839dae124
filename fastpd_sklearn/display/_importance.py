"""Importance of features, terms and orders as bars."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.decomposition import Importance
from fastpd_sklearn.display import _checks, _style, _text
from fastpd_sklearn.display._source import fit_explainer, mean_size, open_source
from fastpd_sklearn.display._ticks import set_numbers
from fastpd_sklearn.explainers import Explanation
from fastpd_sklearn.explainers._checks import check_choice, check_confidence, check_weights
from fastpd_sklearn.forest import _rows

BY = ("feature", "term", "order")

BLOCK_BYTES = 2**27
"""Size of the values that are explained at a time: each time costs something by itself."""

BAR_HEIGHT = 0.26
"""Of a bar with the space above it, in inches."""

MARK = "mean |SHAP value|"
MARK_LOOK = {"linestyle": "", "marker": "D", "color": "black", "markersize": 4, "label": MARK}

ZERO = 1e-9
"""A remainder that is no more than rounding, relative to all importances."""


class ImportanceDisplay:
    """Mean absolute contributions as bars: of features, of terms, or of orders.

    * By feature: the mean absolute SHAP value.
    * By term: the mean absolute component ``m_S``, of main effects and interactions alike.
    * By order: the sum of these over all terms of as many features. It says how far the model
      is from an additive one.

    Where components of larger sets were left out (``max_order``), a last hatched bar is the
    mean absolute sum of these, which is a lower bound of what they amount to one by one; it has
    no error bar.

    With ``n_jackknife`` groups of the background, error bars show what the importances would vary
    by if the background were drawn anew: its error, not that of the model.

    Make it by :meth:`from_estimator`, :meth:`from_explainer`, :meth:`from_explanation`, or, with
    the shares that main effects and interactions have in each feature, by :meth:`from_importance`.

    Parameters
    ----------
    importances : ndarray of shape (n_bars, n_outputs)
        In the unit of the response.
    terms : tuple of tuple of str
        What each bar is: the features of a term, or one name of an order.
    output_names : tuple of str
        One an output; the parts of each bar. Of components by feature these may be orders.
    by : {"feature", "term", "order"}
    remainder : ndarray of shape (n_outputs,), default=None
        What larger sets amount to; None if none was left out.
    response : str, default="response"
        What is explained, for the label of the axis.
    quantity : str, default=None
        What the bars are, for the label of the axis; None for mean absolute SHAP values of features
        and else components.
    marks : ndarray of shape (n_bars,), default=None
        Mean absolute SHAP values, to be drawn beside bars of components.
    deviations : ndarray of shape (n_groups, n_bars, n_outputs), default=None
        Of which the sum of squares over the groups of the background is the squared standard
        error, of any sum of bars too.
    margin : float, default=0.0
        Half the width of the error bars, in standard errors.
    confidence : float, default=0.95
        What that amounts to.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    bars_ : list of matplotlib BarContainer
        One an output, from the top bar to the bottom.
    marks_ : matplotlib Line2D, or None
        The mean absolute SHAP values beside components.
    errors_ : matplotlib ErrorbarContainer, or None
        Of the bars as a whole, where they have any.
    texts_ : list of matplotlib Text
        The numbers at the bars.
    names_ : list of str
        What each bar is, from the top: a name, or a sum of those that are too many.

    See Also
    --------
    MainEffectDisplay : In which direction a feature works.
    WaterfallDisplay : The terms of a single row.

    References
    ----------
    S. M. Lundberg et al., "From local explanations to global understanding with explainable AI
    for trees", Nature Machine Intelligence 2 (2020), for the mean absolute SHAP value.

    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023, section 4.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> from fastpd_sklearn.display import ImportanceDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
    >>> ImportanceDisplay.from_estimator(model, X, max_bars=3).names_
    ['bmi', 's5', '8 others']
    """

    def __init__(
        self,
        importances,
        terms,
        output_names,
        *,
        by,
        remainder=None,
        response="response",
        quantity=None,
        marks=None,
        deviations=None,
        margin=0.0,
        confidence=0.95,
    ):
        self.importances = importances
        self.terms = terms
        self.output_names = output_names
        self.by = by
        self.remainder = remainder
        self.response = response
        self.quantity = quantity
        self.marks = marks
        self.deviations = deviations
        self.margin = margin
        self.confidence = confidence

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        by="feature",
        max_order=2,
        target=None,
        groups=None,
        sample_weight=None,
        n_jackknife=0,
        confidence=0.95,
        response_method="auto",
        n_jobs=None,
        ax=None,
        max_bars=20,
        bar_kw=None,
        text_kw=None,
    ):
        """Explain a fitted tree ensemble exactly, over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` reads.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the rows over which contributions are averaged.
        by : {"feature", "term", "order"}, default="feature"
            What a bar is.
        max_order : int or None, default=2
            The most features in a term; None for no limit. Not used by feature.
        target : object, default=None
            A class label, or the number or name of an output; None for all, a part of each bar.
        groups : dict of str to list of int or str, default=None
            Columns that play together as one feature.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        n_jackknife : int, default=0
            Groups of the background for error bars, such as 20; 0 for none.
        confidence : float, default=0.95
            Of the error bars.
        response_method : str, default="auto"
            The response, as of :class:`~fastpd_sklearn.FastPDExplainer`: "predict_proba" explains
            the probability of a boosted classifier in place of its margin,
            by term or order.
        n_jobs : int or None, default=None
            Number of threads.
        ax : matplotlib Axes, default=None
            None for a new figure that is as high as the bars need.
        max_bars : int, default=20
            Most bars of features or terms; the smallest are added up in one.
        bar_kw : dict, default=None
            For ``Axes.barh``.
        text_kw : dict, default=None
            For ``Axes.text``, which writes the numbers.

        Returns
        -------
        ImportanceDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        TypeError
            If the model is no tree ensemble; the message says what to do.
        ValueError
            For an unknown ``by`` or target.
        """
        check_choice("by", by, BY)
        is_shap = by == "feature"
        explainer = fit_explainer(
            estimator,
            X,
            sample_weight=sample_weight,
            output="shap" if is_shap else "component",
            max_order="auto" if is_shap else max_order,
            target=target,
            groups=groups,
            n_jackknife=n_jackknife,
            response_method=response_method,
            n_jobs=n_jobs,
        )
        return cls.from_explainer(
            explainer,
            X,
            by=by,
            sample_weight=sample_weight,
            confidence=confidence,
            ax=ax,
            max_bars=max_bars,
            bar_kw=bar_kw,
            text_kw=text_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        *,
        by=None,
        target=None,
        sample_weight=None,
        confidence=0.95,
        ax=None,
        max_bars=20,
        bar_kw=None,
        text_kw=None,
    ):
        """Explain rows by a fitted explainer, in blocks.

        Parameters
        ----------
        explainer : BaseExplainer
            Fitted, with ``output="shap"`` by feature and ``output="component"`` by term or
            order.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows over which contributions are averaged.
        by : {"feature", "term", "order"}, default=None
            What a bar is; None is "feature" for SHAP values and "term" for components.
        target : object, default=None
            One of the explainer's outputs; None for all.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        confidence : float, default=0.95
            Of the error bars, which are drawn if the explainer was fitted with ``n_jackknife``.
        ax, max_bars, bar_kw, text_kw : object
            See :meth:`plot`.

        Returns
        -------
        ImportanceDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        ValueError
            If the explainer's output does not go with ``by``.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import ImportanceDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer(output="component").fit(model, X)
        >>> display = ImportanceDisplay.from_explainer(explainer, X, by="order")
        >>> display.names_
        ['main effects', '2-way interactions', 'larger sets, together']
        """
        source = open_source(explainer, X, target=target, sample_weight=sample_weight)
        by = _check_by(by, explainer.output)
        check_confidence(confidence)
        n_rows = source.X.shape[0]
        weights = np.ones(n_rows) if source.weights is None else source.weights
        block = max(1, BLOCK_BYTES // (8 * len(explainer.terms_) * len(explainer.intercept_)))
        total, rest = 0.0, 0.0
        for start in range(0, n_rows, block):
            part = slice(start, min(n_rows, start + block))
            if np.any(weights[part]):
                explanation = explainer.explain(_rows.take(source.X, part))
                sizes = _mean_sizes(explanation, source.outputs, weights[part])
                share = weights[part].sum() / weights.sum()
                total, rest = total + share * sizes[0], rest + share * sizes[1]
        display = cls._made(
            explanation.terms,
            total,
            rest,
            source.output_names,
            by=by,
            response=source.response,
            deviations=source.mean_abs_deviations(),
            margin=source.margin(confidence),
            confidence=confidence,
        )
        return display.plot(ax=ax, max_bars=max_bars, bar_kw=bar_kw, text_kw=text_kw)

    @classmethod
    def from_explanation(
        cls,
        explanation,
        *,
        by=None,
        sample_weight=None,
        ax=None,
        max_bars=20,
        bar_kw=None,
        text_kw=None,
    ):
        """Average an explanation that there is already.

        Parameters
        ----------
        explanation : Explanation
            With ``output="shap"`` by feature and ``output="component"`` by term or order.
        by : {"feature", "term", "order"}, default=None
            What a bar is; None is "feature" for SHAP values and "term" for components.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.
        ax, max_bars, bar_kw, text_kw : object
            See :meth:`plot`.

        Returns
        -------
        ImportanceDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import ImportanceDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explanation = FastPDExplainer(output="shap").fit(model, X).explain(X)
        >>> ImportanceDisplay.from_explanation(explanation, max_bars=3).names_
        ['bmi', 's5', '8 others']
        """
        _checks.check_explanation(explanation)
        by = _check_by(by, explanation.output)
        weights = check_weights(sample_weight, len(explanation))
        outputs = np.arange(len(explanation.output_names))
        sizes = _mean_sizes(explanation, outputs, weights)
        display = cls._made(explanation.terms, *sizes, explanation.output_names, by=by)
        return display.plot(ax=ax, max_bars=max_bars, bar_kw=bar_kw, text_kw=text_kw)

    @classmethod
    def from_importance(
        cls,
        importance,
        *,
        by="feature",
        ax=None,
        max_bars=20,
        bar_kw=None,
        text_kw=None,
    ):
        """Draw what :func:`fastpd_sklearn.decomposition.importance` has found.

        Parameters
        ----------
        importance : fastpd_sklearn.decomposition.Importance
        by : {"feature", "term", "order"}, default="feature"
            What a bar is. Features have the mean absolute components that they take part in,
            each shared among its features, with main effects and interactions as parts of the bar
            if there is one output; and their mean absolute SHAP value as a mark.
        ax, max_bars, bar_kw, text_kw : object
            See :meth:`plot`.

        Returns
        -------
        ImportanceDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn.decomposition import importance
        >>> from fastpd_sklearn.display import ImportanceDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> ImportanceDisplay.from_importance(importance(model, X), max_bars=3).names_
        ['bmi', 's5', '8 others']
        """
        if not isinstance(importance, Importance):
            raise TypeError(
                "from_importance takes what decomposition.importance(model, X) returns, and got a "
                f"{type(importance).__name__}; HStatistics are drawn from their to_frame()"
            )
        check_choice("by", by, BY)
        rest = np.atleast_1d(importance.remainder_importance)
        if by == "term":
            bars, terms = importance.term_importances, importance.terms
        elif by == "order":
            bars = importance.order_importances
            terms = tuple((_order_name(n + 1),) for n in range(len(bars)))
        else:
            return cls._by_feature(importance).plot(
                ax=ax, max_bars=max_bars, bar_kw=bar_kw, text_kw=text_kw
            )
        bars = bars.reshape(len(terms), -1)
        remainder = _if_left_out(rest, bars)
        display = cls(bars, terms, importance.output_names, by=by, remainder=remainder)
        return display.plot(ax=ax, max_bars=max_bars, bar_kw=bar_kw, text_kw=text_kw)

    @classmethod
    def _by_feature(cls, importance):
        """Bars of features in parts: orders, or outputs where there are several."""
        bars, names = importance.feature_importances, importance.output_names
        marks, rest = importance.shap_importances, np.atleast_1d(importance.remainder_importance)
        remainder = _if_left_out(rest, bars)
        if len(names) == 1:
            bars = importance.feature_order_importances
            names = tuple(_order_name(n + 1) for n in range(bars.shape[1]))
            if remainder is not None:  # which has a colour of its own, as orders have
                remainder = np.append(np.zeros(len(names)), remainder)
                bars, names = np.pad(bars, ((0, 0), (0, 1))), (*names, "larger sets")
        elif marks is not None:
            marks = marks.sum(axis=1)
        return cls(
            bars,
            tuple((name,) for name in importance.feature_names),
            names,
            by="feature",
            remainder=remainder,
            quantity="mean |component|, shared by its features",
            marks=marks,
        )

    @classmethod
    def _made(
        cls,
        terms,
        total: np.ndarray,
        rest: np.ndarray,
        output_names,
        *,
        by,
        deviations: np.ndarray | None = None,
        **more,
    ):
        if by == "order":
            sizes = np.array([len(term) for term in terms])
            orders = range(1, sizes.max() + 1)
            total = np.array([total[sizes == n].sum(axis=0) for n in orders])
            if deviations is not None:
                parts = [deviations[:, sizes == n].sum(axis=1) for n in orders]
                deviations = np.stack(parts, axis=1)
            terms = tuple((_order_name(n),) for n in orders)
        remainder = None if by == "feature" else _if_left_out(rest, total)
        return cls(
            total, terms, output_names, by=by, remainder=remainder, deviations=deviations, **more
        )

    def plot(self, ax=None, *, max_bars=20, bar_kw=None, text_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None for a new figure that is as high as the bars need.
        max_bars : int, default=20
            Most bars of features or terms; the smallest are added up in one.
        bar_kw : dict, default=None
            For ``Axes.barh``.
        text_kw : dict, default=None
            For ``Axes.text``, which writes the numbers.

        Returns
        -------
        self : ImportanceDisplay
        """
        self.names_, sizes, margins, n_single = self._bars(
            _checks.check_count("max_bars", max_bars)
        )
        parts = self.output_names if self.marks is None else (*self.output_names, MARK)
        height = 0.8 + BAR_HEIGHT * len(sizes) + _style.legend_height(parts, 6.4)
        height += _style.NOTE_HEIGHT * (self.deviations is not None)
        self.figure_, axes = _style.make_axes(ax, 1, 1, (6.4, height), type(self).__name__)
        self.ax_ = axes.flat[0]
        places = np.arange(len(sizes))
        left = np.zeros(len(sizes))
        self.bars_ = []
        for k, name in enumerate(self.output_names):
            look = {**_style.bar_style(k), "height": 0.72, "label": name}
            bars = self.ax_.barh(places, sizes[:, k], left=left, **{**look, **(bar_kw or {})})
            for bar in bars[n_single:]:
                bar.set(hatch="////", alpha=0.45)
            self.bars_.append(bars)
            left = left + sizes[:, k]
        self._draw_marks(max_bars)
        ends = left + np.nan_to_num(margins)
        self.errors_ = None
        if self.deviations is not None:
            self.errors_ = self.ax_.errorbar(
                left, places, xerr=margins, fmt="none", **_style.ERROR_BAR
            )
            _style.tell_confidence(self.figure_, self.ax_, self.confidence, ax is None)
        self.texts_ = [
            self.ax_.text(end, place, f" {_text.short_number(size)}", **_text_look(text_kw))
            for place, size, end in zip(places, left, ends, strict=True)
        ]
        self._dress(places, ends.max(), parts, ax is None)
        return self

    def _bars(self, most: int) -> tuple[list[str], np.ndarray, np.ndarray, int]:
        """Names, sizes and margins of the bars from the top; how many of them are no sums."""
        sizes, terms = self.importances, self.terms
        shown, others = self._split(most)
        names = dict.fromkeys(name for term in terms for name in term)
        labels = _text.term_labels([terms[i] for i in shown], names, 34)
        parts = [*shown[:, None], *([others] if len(others) else [])]
        bars = [sizes[part].sum(axis=0) for part in parts]
        margins = [self._margin_of(part) for part in parts]
        if len(others):
            labels.append(f"{len(others)} others")
        if self.remainder is not None:
            labels.append("larger sets, together")
            bars.append(self.remainder)
            margins.append(np.nan)
        return labels, np.array(bars), np.array(margins), len(shown)

    def _margin_of(self, terms: np.ndarray) -> float:
        """Half the width of the confidence interval of a sum of bars, over all outputs."""
        if self.deviations is None:
            return np.nan
        deviations = self.deviations[:, terms].sum(axis=(1, 2))
        return self.margin * np.sqrt(deviations @ deviations)

    def _split(self, most: int) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of those that have a bar, from the top, and of those that are added up."""
        order = np.arange(len(self.terms))
        if self.by != "order":
            order = np.argsort(-self.importances.sum(axis=1), kind="stable")
        n_shown = len(order) if len(order) <= most else most - 1
        return order[:n_shown], order[n_shown:]

    def _draw_marks(self, most: int) -> None:
        """SHAP values, where there are any, on the bars of components."""
        self.marks_ = None
        if self.marks is None:
            return
        shown, others = self._split(most)
        marks = list(self.marks[shown])
        if len(others):
            marks.append(self.marks[others].sum())
        (self.marks_,) = self.ax_.plot(marks, np.arange(len(marks)), **MARK_LOOK)

    def _dress(
        self, places: np.ndarray, largest: float, parts: tuple[str, ...], is_own_figure: bool
    ) -> None:
        ax = self.ax_
        ax.set_yticks(places, _text.plain_all(self.names_))
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(places) - 0.4, -0.6)
        ax.set_xlim(0.0, 1.18 * largest if largest > 0 else 1.0)
        set_numbers(ax.xaxis)
        what = "SHAP value" if self.by == "feature" else "component"
        total = "total mean" if self.by == "order" else "mean"
        quantity = self.quantity or f"{total} |{what}|"
        unit = f"in units of the {_text.plain(_text.shorten(self.response, 30))}"
        ax.set_xlabel(f"{quantity}, {unit}", loc="right")
        _style.tidy(ax)
        if len(parts) > 1:
            handles = [*self.bars_, *([] if self.marks_ is None else [self.marks_])]
            _style.draw_legend(self.figure_, ax, handles, parts, is_own_figure)


def _text_look(text_kw: dict | None) -> dict:
    return {"va": "center", "ha": "left", "size": "small", "color": "0.3", **(text_kw or {})}


def _if_left_out(rest: np.ndarray, bars: np.ndarray) -> np.ndarray | None:
    """What larger sets amount to, if that is more than rounding."""
    return rest if rest.max() > ZERO * max(bars.max(), rest.max()) else None


def _order_name(n: int) -> str:
    return "main effects" if n == 1 else f"{n}-way interactions"


def _check_by(by, output: str) -> str:
    """What a bar is, where it goes with the explainer's ``output``."""
    possible = {"shap": BY[:1], "component": BY[1:]}.get(output, ())
    if not possible:
        raise ValueError(
            f"output={output!r} has no importances that add up; explain with output='shap' for "
            "those of features, or output='component' for those of terms and orders"
        )
    if by is None:
        return possible[0]
    check_choice("by", by, BY)
    if by not in possible:
        needed = "shap" if by == "feature" else "component"
        raise ValueError(f"by={by!r} needs output={needed!r}, and this is output={output!r}")
    return by


def _mean_sizes(explanation: Explanation, outputs: np.ndarray, weights) -> tuple:
    """Mean absolute values, shape (n_terms, n_outputs), and remainder, shape (n_outputs,)."""
    n_rows = len(explanation)
    values = explanation.values.reshape(n_rows, len(explanation.terms), -1)[:, :, outputs]
    rest = explanation.remainder.reshape(n_rows, -1)[:, outputs]
    return mean_size(values, weights), mean_size(rest, weights)
