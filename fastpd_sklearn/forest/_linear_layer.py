"""Estimators that are affine functions of their input, and which ones."""

from __future__ import annotations

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._members import NoSumOfTreesError

_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler)
_N_PROBES = 8
_AFFINE = 1e-9
_LINKS = ("logit", "softmax", "multi_logit")


def linear_layer(model, method: str, n_columns: int, reach: float):
    """The final estimator of a stacking ensemble as ``coef @ columns + offset``.

    Parameters
    ----------
    model : StackingRegressor or StackingClassifier
    method : {"predict", "decision_function"}
        Of the final estimator.
    n_columns : int
        Number of columns that it is given.
    reach : float
        How large these can be.

    Returns
    -------
    coef : ndarray of shape (n_outputs, n_columns)
    offset : ndarray of shape (n_outputs,)

    Raises
    ------
    NoSumOfTreesError
        If it is not affine.
    """
    final = model.final_estimator_
    found = None
    if _is_linear(final) and hasattr(final, method):
        found = affine_map(getattr(final, method), n_columns, reach)
    if found is None:
        raise NoSumOfTreesError(
            f"the final estimator of this {type(model).__name__}, a {type(final).__name__}, has no "
            f"linear {method}, so that the prediction is no sum of its members' trees; fit it "
            "with a linear final estimator, such as RidgeCV or LogisticRegression, or explain it "
            "by prediction with VanillaPDExplainer"
        )
    return found


def _is_linear(estimator) -> bool:
    if isinstance(estimator, Pipeline):
        *steps, last = (step for _, step in estimator.steps)
        return all(_is_affine(step) for step in steps) and _is_linear(last)
    return hasattr(estimator, "coef_") and hasattr(estimator, "intercept_")


def _is_affine(transformer) -> bool:
    """Whether a transformer is affine by its kind."""
    if isinstance(transformer, FunctionTransformer):
        return transformer.func is None
    passed = isinstance(transformer, str) and transformer == "passthrough"
    return passed or transformer is None or isinstance(transformer, _SCALERS)


def has_affine_inverse(transformer) -> bool:
    """Whether a transformer of targets has an affine inverse by its kind."""
    if isinstance(transformer, FunctionTransformer):
        return transformer.inverse_func is None
    return isinstance(transformer, _SCALERS)


def affine_map(function, n_columns: int, reach: float):
    """An affine function's coefficients, from its values.

    Parameters
    ----------
    function : callable
        From an ndarray of shape (n_rows, n_columns) to one of n_rows rows.
    n_columns : int
    reach : float
        How large the columns can be; it is tried so far out.

    Returns
    -------
    coef : ndarray of shape (n_outputs, n_columns)
    offset : ndarray of shape (n_outputs,)
        Or None in place of both if the function is not affine there.
    """
    step = 2.0 ** np.ceil(np.log2(max(reach, np.finfo(np.float32).tiny)))
    corners = np.vstack([np.zeros((1, n_columns)), step * np.eye(n_columns)])
    offset, *ends = _rows(function, corners)
    coef = (np.array(ends) - offset).T / step
    inside = step * np.random.RandomState(0).uniform(-1, 1, size=(_N_PROBES, n_columns))
    error = np.abs(_rows(function, inside) - (inside @ coef.T + offset))
    size = np.abs(offset) + step * np.abs(coef).sum(axis=1)
    return (coef, offset) if np.all(error <= _AFFINE * size) else None


def _rows(function, X: np.ndarray) -> np.ndarray:
    values = np.asarray(function(X), dtype=np.float64)
    return values.reshape(len(X), -1)


def find_link(classifier, n_columns: int) -> str | None:
    """The inverse link between a classifier's decision function and its probabilities, if any.

    Parameters
    ----------
    classifier : estimator
    n_columns : int

    Returns
    -------
    str or None
        A link of :class:`Head`.
    """
    if not hasattr(classifier, "predict_proba"):
        return None
    X = np.random.RandomState(0).uniform(-2, 2, size=(_N_PROBES, n_columns))
    margins = _rows(classifier.decision_function, X)
    proba = classifier.predict_proba(X)
    shown = proba[:, 1:] if proba.shape[1] == 2 else proba
    for link in _LINKS:
        if link == "logit" and margins.shape[1] > 1:
            continue
        if np.allclose(Head(("raw",), link=link).respond(margins), shown, rtol=1e-9, atol=1e-12):
            return link
    return None
