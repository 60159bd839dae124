"""Explanations of Dask collections: maps over their chunks, and means of these."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.distributed import _tasks
from fastpd_sklearn.distributed._lazy import LazyExplanation
from fastpd_sklearn.distributed._parts import Part, checked, is_array, parts_of, reduced, shipped
from fastpd_sklearn.explainers._outputs import ADDITIVE


def transform_lazily(explainer, X):
    """The explanation of a collection as another one, yet to be computed.

    Parameters
    ----------
    explainer : explainer
        Fitted. It is sent to each worker once.
    X : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame

    Returns
    -------
    dask.array.Array of shape (n_rows, n_columns_out), or dask.dataframe.DataFrame
        Of float64, with the chunks of ``X``; a data frame with its index and divisions, and the
        columns that ``get_feature_names_out`` names.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> values = FastPDExplainer().fit(model, X).transform(rows)  # calls this function
    >>> values.chunks
    ((100, 100, 100, 100, 42), (10,))
    """
    names = explainer.get_feature_names_out()
    X, shared = _opened(explainer, X)
    if not is_array(X):
        return _transformed_frame(shared, X, names)
    return X.map_blocks(
        _transformed_block,
        explainer=shared,
        chunks=(X.chunks[0], (len(names),)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
    )


def map_lazily(explainer, X, function, tail: tuple[int, ...], dtype=np.float64):
    """What a function gives for the chunks of a collection, one value or more a row.

    Parameters
    ----------
    explainer : explainer or FeatureRemover
        Fitted. It is sent to each worker once.
    X : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame
    function : callable
        From the explainer and rows to an ndarray of shape ``(n_rows,) + tail``.
    tail : tuple of int
    dtype : dtype, default=float64

    Returns
    -------
    dask.array.Array of shape ``(n_rows,) + tail``
        Yet to be computed, with the chunks of ``X``; of a data frame their sizes are unknown.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> explainer = FastPDExplainer(output="shap", n_jackknife=5).fit(model, X)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> explainer.standard_error(rows).chunks  # calls this function
    ((100, 100, 100, 100, 42), (10,))
    """
    X, shared = _opened(explainer, X)
    return _stacked(
        [
            _delayed_part(_tasks.apply, shared, part, function, tail, dtype)
            for part in parts_of(X, None)
        ],
        X,
        tail,
        dtype,
    )


def explain_lazily(explainer, X) -> LazyExplanation:
    """The explanation of a collection, yet to be computed.

    Parameters
    ----------
    explainer : BaseExplainer
        Fitted. It is sent to each worker once.
    X : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame

    Returns
    -------
    LazyExplanation

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> explainer = FastPDExplainer(output="component").fit(model, X)
    >>> explanation = explainer.explain(rows)  # calls this function
    >>> explanation["x2"].chunks, explanation[("x2", "x8")].dtype
    (((100, 100, 100, 100, 42),), dtype('float64'))
    >>> float(abs(explanation.remainder).max()) < 1e-9
    False
    >>> explanation.compute()["x2"].shape
    (442,)
    """
    X, shared = _opened(explainer, X)
    parts = [_delayed_part(_tasks.explain, shared, part) for part in parts_of(X, None)]
    fitted = explainer._fitted
    outputs = (len(fitted.intercept),) if len(fitted.intercept) > 1 else ()
    tail = (len(fitted.terms), *outputs)
    remainder = None
    if fitted.output in ADDITIVE:
        remainder = _stacked(
            [_delayed_item(part, "remainder", outputs) for part in parts], X, outputs
        )
    return LazyExplanation(
        values=_stacked([_delayed_item(part, "values", tail) for part in parts], X, tail),
        base_values=fitted.intercept if outputs else float(fitted.intercept[0]),
        data=X,
        terms=explainer.terms_,
        feature_names=fitted.players.names,
        output_names=fitted.selection.names,
        output=fitted.output,
        remainder=remainder,
        parts=tuple(parts),
    )


def sum_over(explainer, X, sample_weight, function):
    """What a function gives for the chunks of a collection, added up by a tree.

    Parameters
    ----------
    explainer : explainer
        Fitted. It is sent to each worker once.
    X : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame
    sample_weight : dask.array.Array, dask.dataframe.Series, array-like, str or None
    function : callable
        From the explainer, rows and their weights to what can be added.

    Returns
    -------
    What the function gives

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> size = FastPDExplainer(output="shap").fit(model, X).mean_abs(rows)  # calls this function
    >>> size.shape
    (10,)
    """
    from dask import delayed

    shared = shipped(_tasks.without_model(explainer))
    parts = parts_of(X, sample_weight)
    total = reduced(_tasks.total, [delayed(_tasks.add)(shared, function, *part) for part in parts])
    found = total.compute()
    if found is None:
        raise ValueError(f"X has no row with weight: its {len(parts)} chunks are empty")
    return found


def _opened(explainer, X) -> tuple:
    """The collection, checked, and the explainer as one task."""
    X = checked(X)
    if is_array(X):
        explainer._check_columns(np.empty((1, X.shape[1])))
    else:
        explainer._check_columns(_bare_frame(X.columns, X.index.dtype, X.index.name))
    return X, shipped(_tasks.without_model(explainer))


def _delayed_part(function, shared, part: Part, *args):
    """A function of the explainer and a chunk as a task."""
    from dask import delayed

    return delayed(function)(shared, part.number, part.rows, *args)


def _delayed_item(part, name: str, tail: tuple[int, ...]):
    """An array of the explanation of a chunk as a task."""
    from dask import delayed

    return delayed(_tasks.item)(part, name, tail)


def _stacked(blocks: list, X, tail: tuple[int, ...], dtype=np.float64):
    """Tasks that make arrays as one lazy array."""
    import dask.array as da

    sizes = X.chunks[0] if is_array(X) else [np.nan] * len(blocks)
    return da.concatenate(
        [
            da.from_delayed(block, (size, *tail), meta=np.empty((0,) * (1 + len(tail)), dtype))
            for block, size in zip(blocks, sizes, strict=True)
        ],
        allow_unknown_chunksizes=True,
    )


def _transformed_block(X, explainer, block_id=(0,)) -> np.ndarray:
    return _tasks.transform(explainer, block_id[0], X)


def _transformed_frame(shared, X, names):
    """One partition after the other, with its number, which maps over frames do not tell."""
    import dask.dataframe as dd
    from dask import delayed

    return dd.from_delayed(
        [
            delayed(_transformed_partition)(shared, number, part, names)
            for number, part in enumerate(X.to_delayed())
        ],
        meta=_bare_frame(names, X.index.dtype, X.index.name),
        divisions=X.divisions if X.known_divisions else None,
    )


def _transformed_partition(explainer, number: int, X, names):
    import pandas as pd

    return pd.DataFrame(_tasks.transform(explainer, number, X), index=X.index, columns=names)


def _bare_frame(names, index_dtype, index_name):
    """A data frame of floats without rows."""
    import pandas as pd

    index = pd.Index([], dtype=index_dtype, name=index_name)
    return pd.DataFrame(np.empty((0, len(names))), index=index, columns=list(names))
