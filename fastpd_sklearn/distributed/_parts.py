"""Dask collections as one task a chunk of rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

FAN_IN = 8
"""How many results are put together at a time: no worker has to hold more of them."""


class Part(NamedTuple):
    """A chunk of rows that is yet to be computed.

    Parameters
    ----------
    number : int
    rows : dask.delayed.Delayed
    weights : dask.delayed.Delayed or str or None
        A name: the column of the weights.
    """

    number: int
    rows: object
    weights: object


def parts_of(X, sample_weight) -> list[Part]:
    """The chunks of a collection, each with its weights.

    Parameters
    ----------
    X : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame
    sample_weight : dask.array.Array, dask.dataframe.Series, array-like, str or None

    Returns
    -------
    list of Part
    """
    X = checked(X)
    rows = X.to_delayed().ravel().tolist() if is_array(X) else X.to_delayed()
    weights = _weights_of(X, sample_weight, len(rows))
    return [Part(number, *pair) for number, pair in enumerate(zip(rows, weights, strict=True))]


def is_array(X) -> bool:
    """Whether a collection is an array, and not a data frame."""
    import dask.array as da

    return isinstance(X, da.Array)


def checked(X):
    """The collection with all of its columns in each chunk.

    Raises
    ------
    ValueError
        If it has other than two dimensions, or categories that Dask does not know.
    """
    if is_array(X):
        if X.ndim != 2:
            raise ValueError(f"X is a Dask array of {X.ndim} dimensions, and rows have two")
        return X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    for name, dtype in X.dtypes.items():
        if dtype == "category" and not X[name].cat.known:
            raise ValueError(
                f"Dask does not know the categories of column {name!r} of X, so that they may be "
                "others in each partition; call X.categorize() first"
            )
    return X


def _weights_of(X, sample_weight, n_parts: int) -> list:
    import dask.array as da
    import dask.dataframe as dd

    if sample_weight is None or isinstance(sample_weight, str):
        return [sample_weight] * n_parts
    if not isinstance(sample_weight, da.Array | dd.Series):
        sample_weight = _as_chunked(X, np.asarray(sample_weight))
    if sample_weight.ndim != 1:
        raise ValueError(f"sample_weight has {sample_weight.ndim} dimensions, expected one")
    if isinstance(sample_weight, da.Array) and is_array(X):
        sample_weight = _aligned(X, sample_weight)
    weights = list(sample_weight.to_delayed())
    divisions = getattr(X, "divisions", None), getattr(sample_weight, "divisions", None)
    cut_alike = None in divisions or divisions[0] == divisions[1]
    if len(weights) != n_parts or not cut_alike:
        raise ValueError(
            f"sample_weight is cut into {len(weights)} chunks and X into {n_parts}, or at other "
            "rows; rechunk or repartition one of them so that their chunks are alike"
        )
    return weights


def _as_chunked(X, sample_weight: np.ndarray):
    """Weights in memory, cut like a Dask array."""
    import dask.array as da

    if not is_array(X) or np.isnan(X.shape[0]) or sample_weight.shape != X.shape[:1]:
        raise ValueError(
            f"sample_weight is an array of shape {sample_weight.shape}, and X a Dask collection "
            f"of {X.shape[0] if is_array(X) else 'unknown'} rows: pass a Dask array or series with "
            "the same chunks, or of a data frame the name of the column"
        )
    return da.from_array(sample_weight, chunks=(X.chunks[0],))


def _aligned(X, sample_weight):
    """The weights with the chunks of the rows, where the sizes of both are known."""
    if np.isnan(X.shape[0]) or np.isnan(sample_weight.shape[0]):
        return sample_weight
    if sample_weight.shape != X.shape[:1]:
        raise ValueError(
            f"sample_weight.shape == {sample_weight.shape}, expected {X.shape[:1]}: one weight "
            "a row"
        )
    return sample_weight.rechunk((X.chunks[0],))


def shipped(explainer):
    """An explainer as one task, which all others share: it is sent once to each worker.

    Parameters
    ----------
    explainer : explainer

    Returns
    -------
    dask.delayed.Delayed
        Should the worker that holds it die, the scheduler makes it again.
    """
    import cloudpickle
    from dask import delayed

    return delayed(cloudpickle.loads, pure=True)(cloudpickle.dumps(explainer))


def reduced(function, results: list):
    """A tree of tasks that put results together.

    Parameters
    ----------
    function : callable
        From a list of results to one.
    results : list of dask.delayed.Delayed

    Returns
    -------
    dask.delayed.Delayed
    """
    from dask import delayed

    while len(results) > 1:
        results = [delayed(function)(some) for some in _batches(results)]
    return results[0]


def _batches(items: list) -> Iterator[list]:
    for start in range(0, len(items), FAN_IN):
        yield items[start : start + FAN_IN]
