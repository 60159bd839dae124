"""What a display asks of a fitted explainer: names, values and components on grids."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import BaseExplainer, FastPDExplainer
from fastpd_sklearn.explainers._checks import check_rows, check_weights
from fastpd_sklearn.explainers._dependence import average_dependence
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.forest import _rows

BLOCK_VALUES = 2**21
"""Values of a block of terms."""

RANKED_ROWS = 2000
"""Rows at which terms are compared, where a display is to choose them; evenly spaced."""

_RESPONSES = {
    "predict": "prediction",
    "predict_proba": "probability",
    "decision_function": "decision function",
    "raw": "raw prediction",
}


@dataclass(frozen=True, eq=False)
class Source:
    """A fitted explainer, rows, and what both are called.

    Parameters
    ----------
    explainer : BaseExplainer
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,), or None
        Of the rows.
    players : Players
        Features by name and column.
    outputs : ndarray of int
        The explainer's outputs that are shown.
    output_names : tuple of str
        One an output that is shown.
    response : str
        What is explained, in words.
    """

    explainer: BaseExplainer
    X: object
    weights: np.ndarray | None
    players: Players
    outputs: np.ndarray
    output_names: tuple[str, ...]
    response: str

    def values(self, player: int) -> np.ndarray:
        """A feature in all rows, shape (n_rows,), or (n_rows, n_columns) of a group."""
        columns = [_rows.column_array(self.X, int(j)) for j in self.players.columns[player]]
        if len(columns) == 1:
            return columns[0]
        plain = all(column.dtype.kind in "biuf" for column in columns)
        return np.column_stack([c.astype(np.float64 if plain else object) for c in columns])

    def component(self, term: tuple[int, ...], points: list[np.ndarray]) -> np.ndarray:
        """A component on a grid: partial dependence less all that smaller sets explain.

        Parameters
        ----------
        term : tuple of int
            Features in any order.
        points : list of ndarray of shape (n_points,), or (n_points, n_columns) of a group

        Returns
        -------
        ndarray of shape (n_outputs, n_points of the first feature, ...)
        """
        return self._component(self.explainer._fitted, term, points)

    def component_margin(
        self, term: tuple[int, ...], points: list[np.ndarray], confidence: float
    ) -> np.ndarray | None:
        """Half the width of confidence intervals of a component; None without groups of rows."""
        fitted = self.explainer._fitted
        if fitted.jackknife is None:
            return None
        error = fitted.standard_error(lambda one: self._component(one, term, points))
        return self.margin(confidence) * error

    def margin(self, confidence: float) -> float:
        """Half the width of confidence intervals in standard errors; 0 without groups of rows."""
        groups = self.explainer._fitted.jackknife
        return 0.0 if groups is None else groups.quantile(confidence)

    def mean_abs_deviations(self) -> np.ndarray | None:
        """What groups add to the error of all terms' mean absolute values; None without groups."""
        fitted = self.explainer._fitted
        if fitted.jackknife is None:
            return None
        weights = np.ones(self.X.shape[0]) if self.weights is None else self.weights
        return fitted.mean_abs_deviations(self.X, weights, BLOCK_VALUES)[1][:, :, self.outputs]

    def _component(self, fitted: Fitted, term, points: list[np.ndarray]) -> np.ndarray:
        size = len(term)
        out = np.zeros((len(self.outputs), *(len(p) for p in points)))
        out += (-1.0) ** size * fitted.intercept[self.outputs].reshape(-1, *(1,) * size)
        for n in range(1, size + 1):
            for part in combinations(range(size), n):
                names = tuple(self.players.names[term[i]] for i in part)
                grids = [points[i] for i in part]
                value = average_dependence(fitted, names, grids)[self.outputs]
                rest = tuple(1 + i for i in range(size) if i not in part)
                out += (-1.0) ** (size - n) * np.expand_dims(value, rest)
        return out

    def find_set(self, features, size: int) -> tuple[int, ...]:
        """So many features together, in the order given."""
        is_set = isinstance(features, tuple | list) and len(features) == size
        if not is_set:
            raise ValueError(
                f"features: expected sets of {size} columns or names, such as "
                f"{self.players.names[:size]}, got {features!r}"
            )
        return self.players.find_term(tuple(features))

    def thinned(self) -> Source:
        """The same with at most ``RANKED_ROWS`` of the rows."""
        rows = np.arange(self.X.shape[0])
        if len(rows) <= RANKED_ROWS:
            return self
        if self.weights is not None:
            rows = np.flatnonzero(self.weights)
        places = np.linspace(0, len(rows) - 1, min(RANKED_ROWS, len(rows)))
        chosen = rows[places.astype(np.intp)]
        weights = None if self.weights is None else self.weights[chosen]
        return replace(self, X=_rows.take(self.X, chosen), weights=weights)

    def one_output(self, display: str) -> Source:
        """The same, if there is one output to show; else ``ValueError``."""
        if len(self.outputs) > 1:
            raise ValueError(
                f"{display} shows one output, and there are {len(self.outputs)}: "
                f"{', '.join(map(repr, self.output_names))}; choose one by target="
            )
        return self


def fit_explainer(model, X, *, sample_weight, **params) -> FastPDExplainer:
    """Explain a fitted model over rows as its background, for ``from_estimator``."""
    return FastPDExplainer(**params).fit(model, X, sample_weight=sample_weight)


def open_source(explainer, X, *, target=None, sample_weight=None) -> Source:
    """Look at a fitted explainer and rows.

    Parameters
    ----------
    explainer : BaseExplainer
        Fitted.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
    target : object, default=None
        A class label, or the number or name of an output; None for all.
    sample_weight : array-like of shape (n_rows,), default=None

    Returns
    -------
    Source

    Raises
    ------
    TypeError
        If it is no explainer.
    ValueError
        If there is no such target.
    """
    if not isinstance(explainer, BaseExplainer):
        raise TypeError(
            f"from_explainer takes a fitted explainer, such as FastPDExplainer().fit(model, X), "
            f"and got a {type(explainer).__name__}; of a model make the display by from_estimator"
        )
    check_is_fitted(explainer)
    X = check_rows(X)
    weights = check_weights(sample_weight, X.shape[0])
    first = explainer.explain(_rows.take(X, slice(0, 1)))
    columns = tuple(np.array(columns, dtype=np.intp) for columns in first.columns)
    n_columns = explainer.n_features_in_
    column_names = getattr(explainer, "feature_names_in_", [f"x{j}" for j in range(n_columns)])
    players = Players(first.feature_names, columns, tuple(column_names))
    names = output_names(explainer, first.output_names)
    outputs = np.arange(len(names)) if target is None else _find_output(explainer, names, target)
    return Source(
        explainer=explainer,
        X=X,
        weights=weights,
        players=players,
        outputs=outputs,
        output_names=tuple(names[k] for k in outputs),
        response=response_name(explainer, [names[k] for k in outputs]),
    )


def output_names(explainer, names: tuple[str, ...]) -> tuple[str, ...]:
    classes = getattr(explainer, "classes_", None)
    if classes is not None and len(names) == 1 and explainer.target is None:
        return (str(classes[-1]),)  # the one output of a binary classifier
    return names


def _find_output(explainer, names: tuple[str, ...], target) -> np.ndarray:
    classes = getattr(explainer, "classes_", None)
    known = [] if classes is None else classes.tolist()
    if len(known) == len(names) and target in known:
        return np.array([known.index(target)])
    if (isinstance(target, str) or target in known) and str(target) in names:
        return np.array([names.index(str(target))])
    is_number = isinstance(target, int | np.integer) and not isinstance(target, bool)
    if classes is None and is_number and 0 <= target < len(names):
        return np.array([int(target)])
    raise ValueError(
        f"target={target!r} is none of the explainer's outputs, which are "
        f"{', '.join(map(repr, names))}; fit the explainer with another target to show it"
    )


def response_name(explainer, names: list[str]) -> str:
    word = _RESPONSES[explainer.response_method_]
    is_class = getattr(explainer, "classes_", None) is not None
    return f"{word} of {names[0]}" if is_class and len(names) == 1 else word


def mean_size(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """Mean absolute value over rows, the first axis; of all outputs."""
    return np.average(np.abs(values), axis=0, weights=weights)


def ranked_terms(source: Source, size: int, n: int) -> list[tuple[int, ...]]:
    """The sets of so many features whose components are largest on average.

    Parameters
    ----------
    source : Source
        Of an explainer of components.
    size : int
        Features in a set.
    n : int
        Most sets.

    Returns
    -------
    list of tuple of int
        The largest first.

    Raises
    ------
    ValueError
        If the explainer has no such components.
    """
    explainer = source.explainer
    if explainer.output != "component":
        raise ValueError(
            f"features=None: an explainer with output={explainer.output!r} does not say which sets "
            f"of {size} features matter; name them, or fit one with output='component' and "
            f"max_order={size}"
        )
    ranked = source.thinned()
    explanation = explainer.explain(ranked.X)
    values = explanation.values.reshape(len(explanation), len(explanation.terms), -1)
    mean = mean_size(values[:, :, source.outputs], ranked.weights).mean(axis=1)
    found = [i for i in np.argsort(-mean, kind="stable") if len(explanation.terms[i]) == size]
    found = [i for i in found if mean[i] > 0][:n] or found[:n]
    if not found:
        raise ValueError(
            f"features=None: no set of {size} features has a component in this explainer; its "
            f"model has no such interaction, or its max_order={explainer.max_order!r} is too small"
        )
    place = {name: k for k, name in enumerate(source.players.names)}
    return [tuple(place[name] for name in explanation.terms[i]) for i in found]
