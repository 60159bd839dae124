"""What a worker does with a chunk of rows. Nothing that a task is given is changed by it."""

from __future__ import annotations

import operator
from contextlib import contextmanager
from functools import reduce

import numpy as np
from threadpoolctl import threadpool_limits

from fastpd_sklearn.explainers import _sources
from fastpd_sklearn.explainers._passes import Passed, Place


def prepare(explainer, model, number: int, X, weights):
    """An explainer that has read its model and seen the first rows, and counts none yet.

    Parameters
    ----------
    explainer : BaseExplainer
        Not fitted.
    model : object
    number : int
        Of the chunk.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : array-like, str or None

    Returns
    -------
    BaseExplainer or None
        Without its model if it does without; None if the chunk has no row that counts.
    """
    with _at_work(number, "background"):
        chunk = _chunk(number, X, weights)
        if chunk is None:
            return None
        explainer = twin(explainer)
        explainer._fitted, _, _ = explainer._prepare_first(model, chunk)
        return without_model(explainer)


def draft(explainer, model, number: int, X, weights):
    """What an explainer says of a model and the first rows; None if no row counts.

    Parameters
    ----------
    explainer : LocalExplainer
        Not fitted.
    model : object
    number : int
        Of the chunk.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : array-like, str or None

    Returns
    -------
    draft : Draft
    checker : LocalExplainer
        Without the model: checks the rows of other chunks.
    """
    with _at_work(number, "background"):
        chunk = _chunk(number, X, weights)
        if chunk is None:
            return None
        checker = twin(explainer)
        made, _, _ = checker._draft(model, chunk.X, chunk.weights)
        return made, checker.detach()


def pass_over(shared: tuple, number: int, X, weights) -> Passed | None:
    """What a function gives for a chunk; None if it has no row that counts.

    Parameters
    ----------
    shared : tuple
        An explainer that checks rows, the function, and the number of each chunk's first row.
    number : int
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : array-like, str or None
    """
    checker, function, starts = shared
    with _at_work(number, "background"):
        chunk = _chunk(number, X, weights)
        if chunk is None:
            return None
        rows, weights = checker._open_chunk(chunk.X, chunk.weights)
        return Passed.of(function, rows, weights, Place(number, starts.get(number, 0)))


def count(explainer, number: int, X, weights):
    """An explainer with the rows of a chunk; None if it has no row that counts."""
    with _at_work(number, "background"):
        chunk = _chunk(number, X, weights)
        if chunk is None:
            return None
        return twin(explainer).partial_fit(chunk.X, sample_weight=chunk.weights)


def merge(explainers: list):
    """Explainers of parts of a background as one; None for no rows."""
    found = [one for one in explainers if one is not None]
    if len(found) < 2:
        return found[0] if found else None
    with threadpool_limits(1, user_api="openmp"):
        return reduce(lambda one, other: one.merge(other), found[1:], twin(found[0]))


def transform(explainer, number: int, X) -> np.ndarray:
    """The explanation of a chunk, shape (n_rows, n_columns_out)."""
    with _at_work(number, "rows"):
        if not X.shape[0]:
            return np.empty((0, len(explainer.get_feature_names_out())))
        return np.asarray(explainer.transform(X))


def apply(explainer, number: int, X, function, tail: tuple[int, ...], dtype) -> np.ndarray:
    """What a function gives for a chunk, shape (n_rows, *tail)."""
    with _at_work(number, "rows"):
        if not X.shape[0]:
            return np.empty((0, *tail), dtype)
        return np.asarray(function(explainer, X))


def explain(explainer, number: int, X):
    """The explanation of a chunk; None if it has no rows."""
    with _at_work(number, "rows"):
        return explainer.explain(X) if X.shape[0] else None


def item(explanation, name: str, tail: tuple[int, ...]) -> np.ndarray:
    """An array of an explanation, shape (n_rows, *tail); of no rows if there is none."""
    return np.empty((0, *tail)) if explanation is None else getattr(explanation, name)


def add(explainer, function, number: int, X, weights):
    """What a function gives for a chunk; None if it has no row that counts."""
    with _at_work(number, "rows"):
        chunk = _chunk(number, X, weights)
        return None if chunk is None else explainer._of_rows(chunk.X, chunk.weights, function)


def total(several: list):
    """The sum of what there is of several lots of rows; None if there is nothing."""
    found = [one for one in several if one is not None]
    return reduce(operator.add, found) if found else None


def twin(explainer):
    """A shallow copy."""
    new = type(explainer).__new__(type(explainer))
    vars(new).update(vars(explainer))
    return new


def without_model(explainer):
    """A copy to be sent, without the model if it does without, and with arrays as its output."""
    new = twin(explainer)
    if hasattr(new, "set_output"):
        new.set_output(transform="default")
    return new.detach() if new._packed_names else new


def _chunk(number: int, X, weights):
    if isinstance(weights, str):
        X, weights = _sources.split_weights(X, weights)
    return _sources.make_chunk(number, X, weights)


@contextmanager
def _at_work(number: int, what: str):
    """Name the chunk in errors; take one thread, since as many tasks as threads are at work."""
    with _sources.naming(number, what), threadpool_limits(1, user_api="openmp"):
        yield
