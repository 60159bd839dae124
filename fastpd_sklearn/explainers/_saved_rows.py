"""A single row of data as plain values: what an explainer has kept of its first background."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames

_PANDAS = ("bool", "boolean", "object", "str", "string")
_POLARS = ("Boolean", "String", "Categorical", "Enum")
"""Types of columns, beside numbers, that are written."""


def encode_row(row) -> dict:
    """A row as plain values, for `_archive.encode`.

    Parameters
    ----------
    row : array, sparse matrix or data frame of shape (1, n_columns)

    Returns
    -------
    dict

    Raises
    ------
    TypeError
        For a data frame with a column of a type that is not written, such as a date.
    """
    if sparse.issparse(row):
        made = sparse.csr_array(row)
        return {"kind": "sparse", "indices": made.indices, "data": made.data, "size": row.shape[1]}
    if not _frames.is_frame(row):
        return {"kind": "array", "values": row}
    library = "pandas" if _frames.is_pandas(row) else "polars"
    columns = [_frames.column(row, j) for j in range(row.shape[1])]
    return {
        "kind": library,
        "names": list(row.columns),
        "columns": [_encode_series(series, library) for series in columns],
    }


def _encode_series(series, library: str) -> dict:
    value = series.to_list()[0]
    if library == "pandas" and _frames.is_categorical(series):
        labels = list(series.cat.categories)
        index = series.cat.categories.dtype.name
        value = None if series.cat.codes.iloc[0] < 0 else value
        dtype = ["category", index, labels, bool(series.cat.ordered)]
        return {"dtype": dtype, "value": value}
    if library == "pandas":
        name = series.dtype.name
        if not _frames.is_numeric(series) and name not in _PANDAS:
            raise TypeError(f"a column of {name}, {series.name!r}, can't be saved")
        is_missing = name != "object" and series.isna().iloc[0]
        return {"dtype": [name], "value": None if is_missing else value}
    name = type(series.dtype).__name__
    if (not series.dtype.is_numeric() and name not in _POLARS) or name == "Decimal":
        raise TypeError(f"a column of {series.dtype}, {series.name!r}, can't be saved")
    dtype = [name, series.dtype.categories.to_list()] if name == "Enum" else [name]
    return {"dtype": dtype, "value": value}


def decode_row(found: dict):
    """The row that :func:`encode_row` was given.

    Raises
    ------
    ImportError
        If the row is a data frame of a library that is not installed.
    """
    kind = found["kind"]
    if kind == "array":
        row = found["values"]
        if row.ndim != 2 or len(row) != 1:
            raise ValueError("its row of the background is no row")
        return row
    if kind == "sparse":
        indices, data, size = found["indices"], found["data"], found["size"]
        row = sparse.csr_array((data, indices, [0, len(indices)]), shape=(1, size))
        row.check_format()
        return row
    if kind == "pandas":
        return _pandas_row(found["names"], found["columns"])
    if kind == "polars":
        return _polars_row(found["names"], found["columns"])
    raise ValueError(f"its row of the background is of the unknown kind {kind!r}")


def _pandas_row(names: list, columns: list[dict]):
    import pandas as pd

    made = []
    for column in columns:
        name, *more = column["dtype"]
        if name == "category":
            index, labels, ordered = more
            _check_type(index, _PANDAS)
            dtype = pd.CategoricalDtype(pd.Index(labels, dtype=index), ordered)
        else:
            dtype = _check_type(name, _PANDAS)
        made.append(pd.Series([column["value"]], dtype=dtype))
    frame = pd.concat(made, axis=1) if made else pd.DataFrame(index=[0])
    frame.columns = names
    return frame


def _polars_row(names: list, columns: list[dict]):
    import polars as pl

    made = []
    for name, column in zip(names, columns, strict=True):
        kind, *more = column["dtype"]
        dtype = getattr(pl, _check_type(kind, _POLARS))
        made.append(pl.Series(name, [column["value"]], dtype(*more)))
    return pl.DataFrame(made)


def _check_type(name: str, known: tuple[str, ...]) -> str:
    """A name of a type that may be made: one of those, or of numbers."""
    stem = name.lower().lstrip("u").rstrip("0123456789")
    if name not in known and not (
        stem in ("int", "float") and np.dtype(name.lower()).kind in "iuf"
    ):
        raise ValueError(f"its row of the background has the unknown type {name!r}")
    return name
