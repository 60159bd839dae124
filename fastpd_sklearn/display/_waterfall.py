"""One row's decomposition as a waterfall, from the mean response to its own."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from fastpd_sklearn.display import _checks, _style, _text
from fastpd_sklearn.display._source import fit_explainer, open_source
from fastpd_sklearn.display._ticks import set_numbers
from fastpd_sklearn.explainers._outputs import share
from fastpd_sklearn.forest import _rows

BAR_HEIGHT = 0.32
"""Of a bar with the space above it, in inches."""

LINE_LETTERS = 38
"""Letters of a label that fit on one line."""

ZERO = 1e-9
"""A contribution that is no more than rounding, relative to the largest."""


class WaterfallDisplay:
    """How the mean response becomes that of one row, term by term.

    The first line is the mean response over the background, the last one the row's own.
    Between them each bar is a term, the largest first: a main effect, an interaction, or a SHAP
    value, with the row's values of its features. Small terms are added up in one bar, and so
    are the terms that were left out (``max_order``).

    Make it by :meth:`from_estimator`, :meth:`from_explainer` or :meth:`from_explanation`.

    Parameters
    ----------
    values : ndarray of shape (n_terms,)
        What each term adds.
    terms : tuple of tuple of str
        The features of each term.
    base_value : float
        The mean response.
    row_values : dict of str to str, default=None
        What the features are in the row, for labels; those that are not here go without.
    remainder : float, default=0.0
        What the terms that were left out add.
    response : str, default="response"
        What is explained, for the label of the axis.

    Attributes
    ----------
    figure_ : matplotlib Figure
    ax_ : matplotlib Axes
    bars_ : matplotlib BarContainer
        Of the terms, from the top.
    texts_ : list of matplotlib Text
        The numbers at the bars.
    lines_ : list of matplotlib Line2D
        At the mean response, between the bars, and at the row's response.
    labels_ : list of str
        What each bar is, from the top.

    See Also
    --------
    ImportanceDisplay : The terms of all rows.

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
    >>> from fastpd_sklearn.display import WaterfallDisplay
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    >>> model = RandomForestRegressor(n_estimators=5, max_depth=2, random_state=0).fit(X, y)
    >>> display = WaterfallDisplay.from_estimator(model, X, row=3)
    >>> display.labels_[0]
    'bmi = 25.3'
    """

    def __init__(
        self, values, terms, base_value, *, row_values=None, remainder=0.0, response="response"
    ):
        self.values = values
        self.terms = terms
        self.base_value = base_value
        self.row_values = row_values
        self.remainder = remainder
        self.response = response

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        *,
        row=0,
        max_order=2,
        target=None,
        groups=None,
        sample_weight=None,
        response_method="auto",
        n_jobs=None,
        ax=None,
        max_terms=12,
        bar_kw=None,
        line_kw=None,
        text_kw=None,
    ):
        """Explain a row of ``X`` by a fitted tree ensemble, over ``X`` as the background.

        Parameters
        ----------
        estimator : object
            A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` reads.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            The background, and the row to explain.
        row : int, default=0
            The position of the row in ``X``.
        max_order : int or None, default=2
            The most features in a term; None for no limit.
        target : object, default=None
            A class label, or the number or name of an output; needed if there are several.
        groups : dict of str to list of int or str, default=None
            Columns that play together as one feature.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows of the background.
        response_method : str, default="auto"
            The response, as of :class:`~fastpd_sklearn.FastPDExplainer`: "predict_proba" explains
            the probability of a boosted classifier in place of its margin.
        n_jobs : int or None, default=None
            Number of threads.
        ax : matplotlib Axes, default=None
            None for a new figure that is as high as the bars need.
        max_terms : int, default=12
            Most bars of single terms; the smaller ones are added up in one.
        bar_kw : dict, default=None
            For ``Axes.barh``.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws the lines at and between the bars.
        text_kw : dict, default=None
            For ``Axes.text``, which writes the numbers.

        Returns
        -------
        WaterfallDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        TypeError
            If the model is no tree ensemble; the message says what to do.
        ValueError
            For an unknown target, several outputs without one, or a row that ``X`` lacks.
        """
        explainer = fit_explainer(
            estimator,
            X,
            sample_weight=sample_weight,
            output="component",
            max_order=max_order,
            target=target,
            groups=groups,
            response_method=response_method,
            n_jobs=n_jobs,
        )
        return cls.from_explainer(
            explainer,
            X,
            row=row,
            ax=ax,
            max_terms=max_terms,
            bar_kw=bar_kw,
            line_kw=line_kw,
            text_kw=text_kw,
        )

    @classmethod
    def from_explainer(
        cls,
        explainer,
        X,
        *,
        row=0,
        target=None,
        ax=None,
        max_terms=12,
        bar_kw=None,
        line_kw=None,
        text_kw=None,
    ):
        """Explain a row by a fitted explainer.

        Parameters
        ----------
        explainer : BaseExplainer
            Fitted, with an output that adds up: "component", "shap" or "shap_interaction".
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Rows, of which one is shown.
        row : int, default=0
            Its position in ``X``.
        target : object, default=None
            One of the explainer's outputs; needed if it has several.
        ax, max_terms, bar_kw, line_kw, text_kw : object
            See :meth:`plot`.

        Returns
        -------
        WaterfallDisplay
            Drawn; :meth:`plot` draws it anew.

        Raises
        ------
        ValueError
            If the explainer's output does not add up to the response.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import WaterfallDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer(output="shap").fit(model, X)
        >>> display = WaterfallDisplay.from_explainer(explainer, X, row=3, max_terms=3)
        >>> len(display.labels_)
        4
        """
        source = open_source(explainer, X, target=target).one_output(cls.__name__)
        row = _check_row(row, source.X.shape[0])
        explanation = explainer.explain(_rows.take(source.X, slice(row, row + 1)))
        display = cls._of_row(explanation, 0, int(source.outputs[0]), source.response)
        return display.plot(
            ax=ax, max_terms=max_terms, bar_kw=bar_kw, line_kw=line_kw, text_kw=text_kw
        )

    @classmethod
    def from_explanation(
        cls,
        explanation,
        *,
        row=0,
        target=None,
        ax=None,
        max_terms=12,
        bar_kw=None,
        line_kw=None,
        text_kw=None,
    ):
        """Show a row of an explanation that there is already.

        Parameters
        ----------
        explanation : Explanation
            With an output that adds up: "component", "shap" or "shap_interaction".
        row : int, default=0
            The position of the row.
        target : str, default=None
            The name of an output; needed if there are several.
        ax, max_terms, bar_kw, line_kw, text_kw : object
            See :meth:`plot`.

        Returns
        -------
        WaterfallDisplay
            Drawn; :meth:`plot` draws it anew.

        Examples
        --------
        >>> import matplotlib
        >>> matplotlib.use("Agg")
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.display import WaterfallDisplay
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
        >>> model = RandomForestRegressor(n_estimators=5, max_depth=4, random_state=0).fit(X, y)
        >>> explanation = FastPDExplainer(output="shap").fit(model, X[:50]).explain(X[:2])
        >>> WaterfallDisplay.from_explanation(explanation, row=1, max_terms=3).labels_[0]
        'bmi = 21.6'
        """
        _checks.check_explanation(explanation)
        names = explanation.output_names
        if len(names) > 1 if target is None else str(target) not in names:
            raise ValueError(
                f"target={target!r}: WaterfallDisplay shows one output; name one of "
                f"{', '.join(map(repr, names))}"
            )
        output = 0 if target is None else names.index(str(target))
        display = cls._of_row(explanation, _check_row(row, len(explanation)), output, "response")
        return display.plot(
            ax=ax, max_terms=max_terms, bar_kw=bar_kw, line_kw=line_kw, text_kw=text_kw
        )

    @classmethod
    def _of_row(cls, explanation, row: int, output: int, response: str):
        if explanation.remainder is None:
            raise ValueError(
                f"output={explanation.output!r} does not add up to the response; explain with "
                "output='component', 'shap' or 'shap_interaction'"
            )
        values = explanation.values[row].reshape(len(explanation.terms), -1)[:, output]
        times = np.array([share(explanation.output, term) for term in explanation.terms])
        return cls(
            times * values,
            explanation.terms,
            float(np.ravel(explanation.base_values)[output]),
            row_values=_row_values(explanation, row),
            remainder=float(explanation.remainder[row].ravel()[output]),
            response=response,
        )

    def plot(self, ax=None, *, max_terms=12, bar_kw=None, line_kw=None, text_kw=None):
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            None for a new figure that is as high as the bars need.
        max_terms : int, default=12
            Most bars of single terms; the smaller ones are added up in one.
        bar_kw : dict, default=None
            For ``Axes.barh``.
        line_kw : dict, default=None
            For ``Axes.plot``, which draws the lines at and between the bars.
        text_kw : dict, default=None
            For ``Axes.text``, which writes the numbers.

        Returns
        -------
        self : WaterfallDisplay
        """
        self.labels_, steps = self._steps(_checks.check_count("max_terms", max_terms))
        height = 1.1 + BAR_HEIGHT * (len(steps) + 2)
        self.figure_, axes = _style.make_axes(ax, 1, 1, (6.4, height), type(self).__name__)
        self.ax_ = axes.flat[0]
        levels = self.base_value + np.append(0.0, np.cumsum(steps))
        starts, ends = levels[:-1], levels[1:]
        places = np.arange(1, len(steps) + 1)
        colours = [_style.POSITIVE if step > 0 else _style.NEGATIVE for step in steps]
        look = {"color": colours, "height": 0.66, **(bar_kw or {})}
        self.bars_ = self.ax_.barh(places, steps, left=starts, **look)
        self._draw_lines(levels, line_kw)
        self._write(places, starts, ends, steps, text_kw)
        self._dress(len(steps))
        return self

    def _steps(self, most: int) -> tuple[list[str], np.ndarray]:
        """Labels and values of the bars, from the top."""
        order = np.argsort(-np.abs(self.values), kind="stable")
        zero = ZERO * max(np.abs(self.values).max(), abs(self.remainder), abs(self.base_value))
        order = [i for i in order if abs(self.values[i]) > zero]
        shown = order if len(order) <= most + 1 else order[:most]
        others = order[len(shown) :]
        labels = self._term_labels([self.terms[i] for i in shown])
        steps = [self.values[i] for i in shown]
        if others:
            labels.append(f"{len(others)} smaller terms")
            steps.append(self.values[others].sum())
        if abs(self.remainder) > zero:
            labels.append("larger sets, together")
            steps.append(self.remainder)
        return labels, np.array(steps)

    def _term_labels(self, terms: list[tuple[str, ...]]) -> list[str]:
        """Features and their values, on two lines where one is too short."""
        names = dict.fromkeys(name for term in self.terms for name in term)
        short = {n: _text.short_names(names, n, 30) for n in {len(term) for term in terms}}
        shown = self.row_values or {}
        labels = []
        for term in terms:
            ends = [f" = {shown[name]}" if name in shown else "" for name in term]
            parts = [short[len(term)][name] + end for name, end in zip(term, ends, strict=True)]
            half = -(-len(parts) // 2)
            lines = [" × ".join(parts[:half]), " × ".join(parts[half:])]
            is_long = half < len(parts) and sum(map(len, parts)) > LINE_LETTERS
            labels.append(" ×\n".join(lines) if is_long else " × ".join(parts))
        return labels

    def _draw_lines(self, levels: np.ndarray, line_kw) -> None:
        """From each bar to the next, starting at the mean and ending at the response."""
        from matplotlib.lines import Line2D

        look = _style.style({"color": "0.4", "linewidth": 0.8}, line_kw, Line2D)
        self.lines_ = [
            self.ax_.plot([level, level], [place - 0.33, place + 1.33], **look)[0]
            for place, level in enumerate(levels)
        ]

    def _write(self, places, starts, ends, steps, text_kw) -> None:
        look = {"va": "center", "ha": "left", "size": "small", **(text_kw or {})}
        self.texts_ = []
        for place, start, end, step in zip(places, starts, ends, steps, strict=True):
            sign = "+" if step > 0 else ""
            text = f" {sign}{_text.short_number(step)}"
            self.texts_.append(self.ax_.text(max(start, end), place, text, **look))

    def _dress(self, n_steps: int) -> None:
        ax = self.ax_
        prediction = self.base_value + self.values.sum() + self.remainder
        first = f"mean: {_text.short_number(self.base_value)}"
        last = f"this row: {_text.short_number(prediction)}"
        labels = _text.plain_all([first, *self.labels_, last])
        ax.set_yticks(np.arange(n_steps + 2), labels)
        for text in ax.get_yticklabels():
            text.set_size("small" if "\n" in text.get_text() else "medium")
            text.set_fontweight("bold" if text.get_text() in (first, last) else "normal")
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(n_steps + 1.5, -0.5)
        ax.margins(x=0.0)
        low, high = ax.get_xlim()
        size = (high - low) or 1.0
        ax.set_xlim(low - 0.04 * size, high + 0.2 * size)
        set_numbers(ax.xaxis)
        ax.set_xlabel(_text.plain(_text.shorten(self.response, 50)), loc="right")
        _style.tidy(ax)


def _check_row(row, n_rows: int) -> int:
    is_int = isinstance(row, Integral) and not isinstance(row, bool)
    if not is_int or not -n_rows <= row < n_rows:
        found = repr(row) if isinstance(row, int | float | str) else f"a {type(row).__name__}"
        raise ValueError(
            f"row={found} should be the position of one of {n_rows} rows, such as row=0; rows "
            "that are not of the background go into from_explainer(explainer, rows)"
        )
    return int(row) % n_rows


def _row_values(explanation, row: int) -> dict[str, str]:
    """The row's value of each feature that is a single column."""
    X = _rows.take(explanation.data, slice(row, row + 1))
    shown = {}
    for name, columns in zip(explanation.feature_names, explanation.columns, strict=True):
        if len(columns) == 1:
            shown[name] = _text.short_value(_rows.column_array(X, columns[0]).tolist()[0])
    return shown
