"""Rows and columns of arrays, sparse matrices and data frames, without changing them."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames


def column_names(X) -> list[str] | None:
    """Names of the columns if all of them are strings, else None."""
    if not _frames.is_frame(X):
        return None
    names = list(X.columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def take(X, rows):
    """The given rows of ``X``.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    rows : ndarray of int, or slice

    Returns
    -------
    The same type as ``X``; a view where the type gives one.
    """
    if _frames.is_pandas(X):
        return X.iloc[rows]
    return X.tocsr()[rows] if sparse.issparse(X) else X[rows]


def with_columns(X, source, columns):
    """``X`` with some columns taken from another container of as many rows.

    The types of values survive: a frame's column keeps the dtype that it has in ``source``,
    an array is widened rather than rounded, an entry that is absent from a sparse ``source``
    is absent from a sparse result.

    Parameters
    ----------
    X, source : array, sparse matrix or data frame of shape (n_rows, n_columns)
    columns : iterable of int

    Returns
    -------
    The same type as ``X``, a copy.
    """
    if _frames.is_pandas(X):
        return _replace_pandas(X, {j: _pandas_values(source, j) for j in columns})
    if _frames.is_frame(X):
        return _replace_polars(X, {j: _polars_values(source, j) for j in columns})
    if sparse.issparse(X):
        return _replace_sparse(X, {j: _sparse_column(source, j) for j in columns})
    return _replace_array(X, {j: column_array(source, j) for j in columns})


def with_values(X, values):
    """``X`` with some columns set to given values.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    values : dict of int to ndarray of shape (n_rows,)
        In a frame they become the column's dtype where that loses nothing.

    Returns
    -------
    The same type as ``X``, a copy.

    Raises
    ------
    ValueError
        If a label is none of the categories of a column.
    """
    if _frames.is_pandas(X):
        return _replace_pandas(X, {j: _cast_pandas(X.iloc[:, j], v) for j, v in values.items()})
    if _frames.is_frame(X):
        return _replace_polars(X, {j: _cast_polars(X.to_series(j), v) for j, v in values.items()})
    if sparse.issparse(X):
        return _replace_sparse(X, {j: _stored(np.asarray(v)) for j, v in values.items()})
    return _replace_array(X, {j: np.asarray(v) for j, v in values.items()})


def column_array(X, j: int) -> np.ndarray:
    """Column ``j`` as an array: numbers as numbers, all else as objects."""
    if _frames.is_frame(X):
        series = _frames.column(X, j)
        if _frames.labels(series) is None and _frames.is_numeric(series):
            plain = np.asarray(series)
            return plain if plain.dtype.kind in "biuf" else _frames.to_float(series)
        return _frames.values(series)
    if sparse.issparse(X):
        return X.tocsc()[:, [j]].toarray().ravel()
    return X[:, j]


def to_array(X) -> np.ndarray:
    """All columns as one array, of floats where all are numbers."""
    if not _frames.is_frame(X):
        return X.toarray() if sparse.issparse(X) else X
    columns = [column_array(X, j) for j in range(X.shape[1])]
    plain = all(column.dtype != object for column in columns)
    return np.column_stack([c.astype(np.float64 if plain else object) for c in columns])


def distinct_rows(X, columns) -> tuple[np.ndarray, np.ndarray]:
    """Rows of ``X`` that differ within some columns.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    columns : iterable of int

    Returns
    -------
    rows : ndarray of shape (n_distinct,), int
        One row of each kind.
    kind : ndarray of shape (n_rows,), int
        Which of ``rows`` each row equals.
    """
    if sparse.issparse(X):  # an absent entry may differ from a stored zero
        return np.arange(X.shape[0]), np.arange(X.shape[0])
    codes = np.column_stack([_codes(column_array(X, j)) for j in columns])
    _, rows, kind = np.unique(codes, axis=0, return_index=True, return_inverse=True)
    return rows, kind.reshape(-1)


def _codes(values: np.ndarray) -> np.ndarray:
    if values.dtype == object:
        seen: dict = {}
        # The type is part of the key since 1 == True == 1.0; NaN is keyed by identity.
        return np.array([seen.setdefault((type(v), v), len(seen)) for v in values.tolist()])
    if values.dtype in (np.float32, np.float64):  # by their bits: 1 / -0.0 is not 1 / 0.0
        values = np.ascontiguousarray(values).view(f"i{values.itemsize}")
    return np.unique(values, return_inverse=True)[1]


def _replace_pandas(X, columns):
    out = X.copy(deep=False).reset_index(drop=True)
    for j, values in columns.items():
        out.isetitem(j, values)
    return out


def _pandas_values(source, j: int):
    # The bare array: a series would be aligned by its index.
    return source.iloc[:, j].array if _frames.is_pandas(source) else column_array(source, j)


def _cast_pandas(series, values):
    import pandas as pd

    values = np.asarray(values)
    if isinstance(series.dtype, pd.CategoricalDtype):
        _check_labels(values, series.dtype.categories.tolist(), series.name)
        return pd.Categorical(values, dtype=series.dtype)
    if not _frames.is_numeric(series):
        return pd.array(values.astype(object), dtype=series.dtype)
    return _cast_numbers(values, np.result_type(_frames.to_float(series[:0])), series.dtype)


def _cast_numbers(values: np.ndarray, floating, dtype):
    """Numbers in a frame column's dtype if it is a NumPy one that holds them, else floats."""
    if isinstance(dtype, np.dtype):
        with np.errstate(invalid="ignore"):
            cast = values.astype(dtype)
        if np.array_equal(cast, values, equal_nan=True):
            return cast
    return values.astype(np.promote_types(floating, np.result_type(values.dtype, np.float64)))


def _replace_polars(X, columns):
    import polars as pl

    return X.with_columns(
        [pl.Series(X.columns[j], values, strict=False) for j, values in columns.items()]
    )


def _polars_values(source, j: int):
    import polars as pl

    return source.to_series(j) if isinstance(source, pl.DataFrame) else column_array(source, j)


def _cast_polars(series, values):
    import polars as pl

    values = np.asarray(values)
    known = _frames.labels(series)
    if known is not None and _frames.has_codes(series):
        _check_labels(values, known.tolist(), series.name)
    if known is None and _frames.is_numeric(series):
        held = _frames.to_float(series[:0]).dtype
        return pl.Series(_cast_numbers(values, held, held))
    labels = [None if _is_missing(v) else v for v in values.tolist()]
    return pl.Series(labels, dtype=series.dtype)


def _check_labels(values: np.ndarray, known: list, name) -> None:
    unknown = [v for v in values.tolist() if not _is_missing(v) and v not in known]
    if unknown:
        raise ValueError(
            f"{unknown[0]!r} is not a category of column {name!r}; its categories are {known}"
        )


def _is_missing(value) -> bool:
    return value is None or value is np.nan or value != value


def _sparse_column(source, j: int):
    if sparse.issparse(source):
        return source.tocsc()[:, [j]]
    return _stored(column_array(source, j))


def _stored(values: np.ndarray):
    """A sparse column in which every value is stored, zeros too."""
    rows = np.arange(len(values), dtype=np.int32)  # scikit-learn's trees take no wider index
    return sparse.csc_array((values, (rows, np.zeros_like(rows))), shape=(len(rows), 1))


def _replace_sparse(X, columns):
    matrix = X.tocsc()
    parts = [columns.get(j, matrix[:, [j]]) for j in range(matrix.shape[1])]
    return type(X)(sparse.hstack(parts, format="csc"))


def _replace_array(X, columns):
    dtype = np.result_type(X.dtype, *(values.dtype for values in columns.values()))
    out = X.astype(dtype)
    for j, values in columns.items():
        out[:, j] = values
    return out
