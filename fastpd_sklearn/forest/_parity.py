"""The check that a model has been read as its own library predicts it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import joblib
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from fastpd_sklearn.forest._made_rows import MISSING, PLAIN, UNSEEN, made_rows
from fastpd_sklearn.forest._pipeline import PipelineMap, PipelineReader
from fastpd_sklearn.forest._registry import Reader, Reading, rounding_of
from fastpd_sklearn.forest._rows import take

_MOST_BACKGROUND_ROWS = 200
_MOST_ALIKE = 0.95

_FEW_PATHS = 2**18
"""Rows times trees that take no longer in one thread than joblib takes to wait for several."""


def check_reading(
    reader: Reader,
    model,
    reading: Reading,
    X,
    predict: Callable[[np.ndarray], np.ndarray],
    *,
    random_state=None,
) -> None:
    """Refuse a model whose parsed forest does not predict what its library predicts.

    The raw predictions are compared on some rows of ``X`` and on rows made from the forest
    itself: thresholds and their float neighbours, missing values, every category and an
    unseen one. Made rows that the library does not take are left out.

    Parameters
    ----------
    reader : Reader
        The reader that takes the model.
    model : object
        The fitted model.
    reading : Reading
        What the reader made of it.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The background; at most 200 of its rows are used, and none is changed.
    predict : callable
        From forest inputs, an ndarray of shape (n_rows, n_inputs) and type float64, to the
        forest's raw prediction, of shape (n_rows, n_outputs).
    random_state : int, RandomState instance or None, default=None
        Chooses the rows; None is the same choice every time.

    Raises
    ------
    ValueError
        If a prediction differs by more than rounding: ``reader.tolerance``, relative to
        :meth:`Forest.scale`, or what the reading itself says.
    """
    if model is reading.forest and not model.is_linear:
        return  # it predicts by the core, and so does `predict`
    rng = check_random_state(0 if random_state is None else random_state)

    def compare(rows, raw: np.ndarray, n_given: int = 0) -> None:
        inputs = reading.input_map.open(rows).to_array()
        error, allowed = np.abs(predict(inputs) - raw), rounding_of(reader, reading)
        if reading.forest.is_linear:
            allowed = allowed + reader.tolerance * reading.forest.slope_scale(inputs)
        _refuse_if_misread(model, reader.name, error, allowed, n_given)

    X = X if hasattr(X, "shape") else np.asarray(X)
    n_rows = X.shape[0]
    chosen = sample_without_replacement(
        n_rows, min(n_rows, _MOST_BACKGROUND_ROWS), random_state=rng
    )
    background = take(X, np.sort(chosen))
    n_given, raw = background.shape[0], None
    rows, made = _with_made_rows(reader, reading, background, rng)
    if made is not None:
        raw = _prediction_if_taken(reader, model, reading, rows)
    if raw is None:
        rows, made = background, None
        raw = _predict_raw(reader, model, reading, rows)
    compare(rows, raw, n_given)
    if callable(reading.head.link):
        _refuse_if_mixed_otherwise(model, reader.name, reading.head, raw[:n_given], background)
    if isinstance(reader, PipelineReader):
        # Rows are made for the columns that the trees test.
        reader, model, reading, background = reader.last_step(model, reading, background)
    if isinstance(reading.input_map, PipelineMap):
        return  # a pipeline within another model, which predicts from raw rows alone
    for furthest in (UNSEEN, MISSING, PLAIN):
        for rows in made or made_rows(reading, background, furthest, rng):
            raw = _prediction_if_taken(reader, model, reading, rows)
            if raw is None:
                made = None
                break
            compare(rows, raw)
        else:
            return


def _with_made_rows(
    reader: Reader, reading: Reading, background, rng: np.random.RandomState
) -> tuple[np.ndarray | None, Iterator | None]:
    """The background and made rows in one array, and more of these.

    The library's threads are then woken once. None where rows of different types, or for different
    steps of a pipeline, cannot be predicted together.
    """
    in_pipeline = isinstance(reader, PipelineReader) or isinstance(reading.input_map, PipelineMap)
    if in_pipeline or not isinstance(background, np.ndarray):
        return None, None
    made = made_rows(reading, background, UNSEEN, rng)
    first = next(made, background[:0])
    if first.dtype != background.dtype:
        return None, None
    return np.concatenate([background, first]), made


def _predict_raw(reader: Reader, model, reading: Reading, rows) -> np.ndarray:
    """The library's raw prediction."""
    if rows.shape[0] * reading.forest.n_trees > _FEW_PATHS:
        return reader.predict_raw(model, rows)
    with joblib.parallel_config(backend="sequential"):
        return reader.predict_raw(model, rows)


def _prediction_if_taken(reader: Reader, model, reading: Reading, rows) -> np.ndarray | None:
    """The library's raw prediction, or None if it does not take such rows."""
    try:
        # What is odd about made rows is of no interest to the user.
        with np.errstate(all="ignore"):
            return _predict_raw(reader, model, reading, rows)
    except Exception:  # every library has its own exceptions
        return None


def _refuse_if_mixed_otherwise(model, library: str, head, raw: np.ndarray, X) -> None:
    """Compare a response that is made of several models with the library's own.

    Isotonic curves may be steep, so that rounding in a row or two is no sign of misreading.
    """
    found = head.respond(raw)
    truth = np.asarray(getattr(model, head.link_method)(X)).reshape(len(raw), -1)
    truth = truth[:, -found.shape[1] :]  # of two classes the second is shown
    close = np.isclose(found, truth, rtol=1e-4, atol=1e-5, equal_nan=True).all(axis=1)
    if close.mean() < _MOST_ALIKE:
        raise ValueError(
            f"{type(model).__name__} has been misread: on {(~close).sum()} of {len(close)} rows of "
            f"the background its {head.link_method} is not that of {library}; this version of "
            f"{library} may be newer than fastpd_sklearn knows, please report it"
        )


def _refuse_if_misread(
    model, library: str, error: np.ndarray, allowed: np.ndarray, n_given: int
) -> None:
    """Refuse errors beyond rounding; so many rows, the first ones, are those of the background."""
    wrong = ~np.all(error <= allowed, axis=1)
    parts = {
        "rows of the background": slice(n_given),
        "rows made from its thresholds and categories": slice(n_given, None),
    }
    for kind, part in parts.items():
        if wrong[part].any():
            raise ValueError(
                f"{type(model).__name__} has been misread: on {wrong[part].sum()} of "
                f"{len(wrong[part])} {kind} its raw prediction differs from that of {library}, by "
                f"up to {error[part].max():.3g}; this version of {library} may be newer than "
                "fastpd_sklearn knows, please report it"
            )
