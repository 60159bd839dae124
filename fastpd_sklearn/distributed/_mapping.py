"""Explanations of Dask collections: maps over their chunks, and means of these."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.distributed import _tasks
from fastpd_sklearn.distributed._parts import checked, is_array, parts_of, reduced, shipped


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
    X = checked(X)
    names = explainer.get_feature_names_out()
    shared = shipped(_tasks.without_model(explainer))
    if not is_array(X):
        explainer._check_columns(_bare_frame(X.columns, X.index.dtype, X.index.name))
        return _transformed_frame(shared, X, names)
    explainer._check_columns(np.empty((1, X.shape[1])))
    return X.map_blocks(
        _transformed_block,
        explainer=shared,
        chunks=(X.chunks[0], (len(names),)),
        dtype=np.float64,
        meta=np.empty((0, 0)),
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
