"""A tree ensemble that stands in for a model which is none: trained on its answers."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import check_random_state

from fastpd_sklearn.explainers import _models
from fastpd_sklearn.explainers._response import Response, choose_method
from fastpd_sklearn.forest import Head, _frames, _rows, find_reader

LEAST_ROWS = 8
"""Rows of a background below which none can be held out."""

LEAST_SCORE = 0.9
"""R squared on rows held out, below which a warning says so."""

LEAST_MIXED, MOST_MIXED = 2_000, 50_000
"""Mixed rows to train on, beside four for each row of the background."""

N_MIXTURES = 64
"""Different sets of columns that mixed rows have from other rows."""


@dataclass(frozen=True, eq=False)
class StandIn:
    """A trained surrogate in place of a model.

    Parameters
    ----------
    model : object
        A fitted tree ensemble.
    head : Head
        What its outputs mean: the answers of the model that it stands in for.
    score : float
        R squared of its predictions of these answers on rows held out.
    """

    model: object
    head: Head
    score: float


def check_surrogate(surrogate) -> None:
    """Refuse a ``surrogate`` that is not None, True, "auto" or an estimator that can be fitted."""
    if surrogate is None or _is_default(surrogate):
        return
    if isinstance(surrogate, type) or not (
        hasattr(surrogate, "fit") and callable(getattr(type(surrogate), "predict", None))
    ):
        raise TypeError(
            f"surrogate={surrogate!r} should be None, True, 'auto' or an unfitted tree ensemble, "
            "such as HistGradientBoostingRegressor()"
        )


def _is_default(surrogate) -> bool:
    return surrogate is True or _is_auto(surrogate)


def _is_auto(surrogate) -> bool:
    return isinstance(surrogate, str) and surrogate == "auto"


def needs_surrogate(surrogate, model) -> bool:
    """Whether a surrogate is to be trained for a model: with "auto" if the model is no forest."""
    if not _is_auto(surrogate):
        return surrogate is not None
    reader = find_reader(model)
    if reader is None:
        return True
    try:
        reader.read(model)
    except NotFittedError:
        raise
    except ValueError:  # a model that is no sum of trees, or has a part that cannot be read
        return True
    return False


def train_surrogate(
    surrogate, model, X, sample_weight: np.ndarray | None, response_method: str, random_state
) -> StandIn:
    """Train a tree ensemble on a model's answers.

    It is trained on three quarters of the rows, and on mixtures of them: an explanation asks for
    the answers to rows that have some columns from one row and the others from another. Of the last
    quarter, as it is and mixed in the same way, it gets to see nothing.

    Parameters
    ----------
    surrogate : True, "auto" or object
        The unfitted ensemble; otherwise one of histogram gradient boosting.
    model : object
        Any fitted model.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        The background.
    sample_weight : ndarray of shape (n_rows,), float64, or None
        Rows are mixed as often as they weigh.
    response_method : str
    random_state : int, RandomState instance or None

    Returns
    -------
    StandIn
    """
    rng = check_random_state(random_state)
    weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    rows = rng.permutation(np.flatnonzero(weights))
    if len(rows) < LEAST_ROWS:
        raise ValueError(
            f"surrogate: a background of {len(rows)} rows; a minimum of {LEAST_ROWS} is required "
            "to train a surrogate and to tell how good it is"
        )
    if response_method == "auto":  # the model is called, even if its trees could be read
        response_method = choose_method(model, response_method)
    respond = Response(model, response_method)
    held, seen = np.split(rows, [len(rows) // 4])
    n_mixed = max(LEAST_MIXED, min(4 * len(seen), MOST_MIXED))
    train = _with_mixtures(X, seen, weights, n_mixed, rng)
    test = _with_mixtures(X, held, weights, max(len(held), N_MIXTURES), rng)
    answers = respond(train)
    fitted = _unfitted(surrogate, train, answers.shape[1], rng)
    fitted.fit(train, answers[:, 0] if answers.shape[1] == 1 else answers)
    _check_readable(fitted)
    score = _r_squared(respond(test), np.asarray(fitted.predict(test), np.float64))
    if score < LEAST_SCORE:
        warnings.warn(
            f"the surrogate follows {type(model).__name__} with R squared {score:.2f} on rows held "
            f"out, less than {LEAST_SCORE}: explanations of it may not be those of the model. Give "
            "more background rows or a larger surrogate, or explain the model itself with "
            "VanillaPDExplainer",
            UserWarning,
            stacklevel=4,
        )
    return StandIn(fitted, respond.head, score)


def _with_mixtures(X, rows: np.ndarray, weights: np.ndarray, n_mixed: int, rng):
    """Some rows, and mixed rows, each with random columns of another one."""
    share = weights[rows] / weights[rows].sum()
    own, other = (rng.choice(rows, n_mixed, p=share) for _ in range(2))
    parts = [_rows.take(X, rows)]
    for part in np.array_split(np.arange(n_mixed), min(N_MIXTURES, n_mixed)):
        columns = np.flatnonzero(rng.random(X.shape[1]) < rng.random())
        mixed = _rows.take(X, own[part])
        parts.append(_rows.with_columns(mixed, _rows.take(X, other[part]), columns))
    return _stacked(parts)


def _stacked(parts):
    """Containers of the same kind, one below the other."""
    if _frames.is_pandas(parts[0]):
        import pandas as pd

        return pd.concat(parts, ignore_index=True)
    if _frames.is_frame(parts[0]):
        import polars as pl

        return pl.concat(parts)
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts).tocsr()
    return np.concatenate(parts)


def _unfitted(surrogate, X, n_outputs: int, rng):
    """The ensemble to train, for several outputs if need be."""
    seed = int(rng.randint(2**31 - 1))
    if _is_default(surrogate):
        return _boosting(X, n_outputs, seed)
    model = clone(surrogate)
    if "random_state" in model.get_params() and model.get_params()["random_state"] is None:
        model.set_params(random_state=seed)
    tags = _models.tags_of(model)
    several = tags is None or tags.target_tags.multi_output
    return model if n_outputs == 1 or several else MultiOutputRegressor(model)


def _boosting(X, n_outputs: int, seed: int):
    """Histogram gradient boosting, with labels of columns as categories."""
    columns = range(0 if sparse.issparse(X) else X.shape[1])
    labelled = [j for j in columns if _rows.column_array(X, j).dtype == object]
    model = HistGradientBoostingRegressor(
        max_iter=300,
        min_samples_leaf=5,
        categorical_features=list(range(len(labelled))) or None,
        early_stopping=False,
        random_state=seed,
    )
    model = model if n_outputs == 1 else MultiOutputRegressor(model)
    if not labelled:
        return model
    encoder = OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=254
    )
    return make_pipeline(
        make_column_transformer((encoder, labelled), remainder="passthrough"), model
    )


def _check_readable(model) -> None:
    reader = find_reader(model)
    if reader is None or "predict" not in reader.read(model).head.additive:
        raise ValueError(
            f"surrogate={model!r} is no tree ensemble whose trees add up to its predictions; take "
            "a regressor of trees with squared error, such as HistGradientBoostingRegressor()"
        )


def _r_squared(answers: np.ndarray, predicted: np.ndarray) -> float:
    """Share of the answers' variance, over all outputs, that is predicted."""
    error = np.sum((answers - predicted.reshape(answers.shape)) ** 2)
    spread = np.sum((answers - answers.mean(axis=0)) ** 2)
    rounding = 1e-24 * np.sum(answers**2)
    return float(1.0 - error / spread) if spread > rounding else float(error <= rounding)
