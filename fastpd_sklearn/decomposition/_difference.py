"""What sets two explanations apart: of two models, of two backgrounds, of new data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import BaseExplainer, Explanation, _checks, _outputs
from fastpd_sklearn.explainers._base import BLOCK_BYTES
from fastpd_sklearn.explainers._fitted import ZERO, Fitted

ANSWERS = ("predict", "predict_proba")
"""Responses of which others are not on the scale."""


def explain_difference(old, new, X) -> Explanation:
    """What a new explainer says of rows, less what an old one says.

    With two models on one background, the change from one model to the other; with one model on
    two backgrounds, what the other background makes of the same predictions.

    Parameters
    ----------
    old, new : fitted explainers
        With the same ``output``, features and outputs. They may be of different types.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

    Returns
    -------
    Explanation
        ``values``, ``base_values`` and ``remainder`` are differences. It has the terms of both: a
        term that one of them lacks is worked out for it.

    Raises
    ------
    TypeError, ValueError
        If the explainers are about different things.

    Notes
    -----
    All values are linear in the model and in the background, so that the difference of two
    explanations *is* the explanation of the difference of the models. It adds up to
    ``new_model(x) - old_model(x)``. With one model that is zero: what the mean response gains from
    another background, the terms lose.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.decomposition import explain_difference
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> old = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 6.0])
    >>> new = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 10.0])
    >>> explainers = [FastPDExplainer(output="component").fit(model, X) for model in (old, new)]
    >>> change = explain_difference(*explainers, X)
    >>> change.base_values, change["x0", "x1"]
    (1.0, array([ 1., -1., -1.,  1.]))
    """
    for explainer in (old, new):
        if not isinstance(explainer, BaseExplainer):
            raise TypeError(
                "explain_difference takes two fitted explainers, and got a "
                f"{type(explainer).__name__}; fit one to each model or background"
            )
        check_is_fitted(explainer)
    _check_alike(old, new)
    X = old._check_X(X)
    new._check_columns(X)
    terms = sorted({*old._fitted.terms, *new._fitted.terms}, key=_outputs.by_size)
    before, after = (_with_terms(explainer._fitted, terms) for explainer in (old, new))
    old_values, new_values = (fitted.evaluate(X, fitted.recipe) for fitted in (before, after))
    old_rest, old_complete = before.remainder(X, old_values)
    new_rest, new_complete = after.remainder(X, new_values)
    return _make_explanation(
        after,
        X,
        new_values - old_values,
        after.intercept - before.intercept,
        None if new_rest is None else new_rest - old_rest,
        old_complete and new_complete,
    )


def _check_alike(old: BaseExplainer, new: BaseExplainer) -> None:
    for what, one, other in (
        ("output", old._fitted.output, new._fitted.output),
        ("features", _features(old), _features(new)),
        ("outputs", old._fitted.selection.names, new._fitted.selection.names),
    ):
        if one != other:
            raise ValueError(f"the two explainers have different {what}: {one!r} and {other!r}")
    one, other = old.response_method_, new.response_method_
    if one != other and (one in ANSWERS or other in ANSWERS):
        raise ValueError(
            f"the two explainers explain different responses, {one!r} and {other!r}; set "
            "response_method of both"
        )


def _features(explainer: BaseExplainer) -> dict[str, list[int]]:
    players = explainer._fitted.players
    return {n: c.tolist() for n, c in zip(players.names, players.columns, strict=True)}


def _with_terms(fitted: Fitted, terms) -> Fitted:
    """What an explainer works with, showing other terms."""
    recipe = _outputs.make_recipe(fitted.output, terms, fitted.engine)
    return replace(fitted, terms=terms, recipe=recipe)


def _make_explanation(fitted: Fitted, data, values, base, remainder, complete) -> Explanation:
    single = len(base) == 1
    return Explanation(
        values=values[:, :, 0] if single else values,
        base_values=float(base[0]) if single else base,
        data=data,
        terms=tuple(map(fitted.players.name, fitted.terms)),
        feature_names=fitted.players.names,
        output_names=fitted.selection.names,
        output=fitted.output,
        remainder=remainder[:, 0] if single and remainder is not None else remainder,
        complete=complete,
        columns=tuple(tuple(columns.tolist()) for columns in fitted.players.columns),
    )


def explain_drift(explainer, old, new, *, old_weight=None, new_weight=None) -> Explanation:
    """Which terms moved the mean response from old data to new data.

    Parameters
    ----------
    explainer : fitted explainer
        With an ``output`` that adds up to the response: "component", "shap" or
        "shap_interaction". Its background would mostly be the old data.
    old, new : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The data; there may be more of it than its values would fit into memory.
    old_weight, new_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    Explanation
        Of one row, the mean of the new data: its ``values`` say by how much the mean of each term
        has changed, its ``base_values`` are the mean response over the old data. They add up,
        with the remainder, to the mean response over the new data. There is no ``data``.

    Raises
    ------
    TypeError, ValueError
        If it is no fitted explainer, or its values do not add up.

    Notes
    -----
    By components, a change of how one feature is distributed moves its main effect and its
    interactions; where features have only become more, or less, dependent on each other, main
    effects stay as they were and the interactions move.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.decomposition import explain_drift
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 10.0])
    >>> explainer = FastPDExplainer(output="component").fit(model, X)
    >>> drift = explain_drift(explainer, X, [[1.0, 0.0], [1.0, 1.0]])
    >>> drift.base_values, drift.terms, drift.values
    (4.0, (('x0',), ('x1',), ('x0', 'x1')), array([[3., 0., 0.]]))
    """
    if not isinstance(explainer, BaseExplainer):
        raise TypeError(f"explain_drift takes a fitted explainer, got a {type(explainer).__name__}")
    check_is_fitted(explainer)
    fitted = explainer._fitted
    if fitted.output not in _outputs.ADDITIVE:
        raise ValueError(
            f"output={fitted.output!r}: its values do not add up to the response; take "
            "output='component', 'shap' or 'shap_interaction'"
        )
    (before, base), (after, mean) = (
        _means(fitted, explainer._check_X(X), weight, name)
        for X, weight, name in ((old, old_weight, "old_weight"), (new, new_weight, "new_weight"))
    )
    values = after - before
    factors = np.array([_outputs.share(fitted.output, term) for term in fitted.terms])
    remainder = mean - base - factors @ values
    zero = ZERO * max(np.abs(base).max(), np.abs(mean).max())
    complete = bool(np.all(np.abs(remainder) <= zero))
    return _make_explanation(fitted, None, values[None], base, remainder[None], complete)


def _means(fitted: Fitted, X, sample_weight, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Means over rows of all terms, (n_terms, n_outputs), and of the response, (n_outputs,)."""
    try:
        weights = _checks.check_weights(sample_weight, X.shape[0])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    share = np.full(X.shape[0], 1 / X.shape[0]) if weights is None else weights / weights.sum()
    values = np.empty((len(fitted.terms), len(fitted.selection.outputs)))
    for numbers, block in fitted.blocks(X, BLOCK_BYTES // 8):
        values[numbers] = block.transpose(1, 2, 0) @ share
    return values, share @ fitted.selection.response(fitted.engine.predict(X))
