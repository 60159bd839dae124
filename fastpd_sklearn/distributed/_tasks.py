"""What a worker does with a chunk of rows. Nothing that a task is given is changed by it."""

from __future__ import annotations

import operator
from contextlib import contextmanager
from functools import reduce

import numpy as np
from threadpoolctl import threadpool_limits

from fastpd_sklearn.explainers import _sources


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
    new = twin(explainer).set_output(transform="default")
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
