"""One function per operation on data frames, for pandas and polars alike."""

from __future__ import annotations

import sys

import numpy as np


def is_pandas(X) -> bool:
    """Whether ``X`` is a pandas data frame (pandas is not imported for it)."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _is_polars(X, kind: str = "Series") -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, getattr(polars, kind))


def is_frame(X) -> bool:
    """Whether ``X`` is a pandas or polars data frame (neither library is imported for it)."""
    return is_pandas(X) or _is_polars(X, "DataFrame")


def column(X, j: int):
    """Column ``j`` of a frame as that library's series."""
    return X.iloc[:, j] if is_pandas(X) else X.to_series(j)


def is_categorical(series) -> bool:
    """Whether the series has a categorical dtype."""
    if _is_polars(series):
        import polars

        return series.dtype in (polars.Categorical, polars.Enum)
    return hasattr(series, "cat") and hasattr(series.cat, "categories")


def has_codes(series) -> bool:
    """Whether a categorical series has codes of its own, which a model may be trained on."""
    if _is_polars(series):
        import polars

        return series.dtype == polars.Enum
    return True


def is_pooled(series) -> bool:
    """Whether the series is a polars ``Categorical``, whose codes belong to the process."""
    if not _is_polars(series):
        return False
    import polars

    return series.dtype == polars.Categorical


def as_text(series):
    """A polars series as one of strings."""
    import polars

    return series.cast(polars.String)


def labels(series) -> np.ndarray | None:
    """Labels of a categorical series in the order of its codes; None for other dtypes.

    A polars ``Categorical`` has no list of labels of its own, but shares one with the whole
    process: those are the labels that occur, sorted.
    """
    if not is_categorical(series):
        return None
    if not _is_polars(series):
        return np.asarray(series.cat.categories)
    return np.array(_polars_labels(series), dtype=object)


def values(series) -> np.ndarray:
    """Values as an object array, missing ones as None or NaN."""
    array = np.empty(len(series), dtype=object)
    array[:] = series.to_list()
    return array


def codes(series) -> tuple[np.ndarray, list]:
    """The series as codes and the labels that they stand for.

    Parameters
    ----------
    series : series of any dtype

    Returns
    -------
    codes : ndarray of shape (n_rows,), int
        -1 for missing values.
    labels : list
        Of a categorical series all of :func:`labels`, otherwise the values that occur.
    """
    if _is_polars(series):
        return _polars_codes(series)
    if is_categorical(series):
        return series.cat.codes.to_numpy(), list(series.cat.categories)
    found, distinct = series.factorize()
    return found, list(distinct)


def is_numeric(series) -> bool:
    """Whether the dtype is one of numbers or booleans (nullable dtypes included)."""
    if _is_polars(series):
        import polars

        return series.dtype.is_numeric() or series.dtype == polars.Boolean
    return getattr(series.dtype, "kind", "O") in "biuf"


def is_floating(series) -> bool:
    """Whether the dtype is one of floats."""
    if _is_polars(series):
        return series.dtype.is_float()
    return getattr(series.dtype, "kind", "O") == "f"


def as_array(X) -> np.ndarray | None:
    """A pandas frame of numbers as a float array, float32 if all of them are.

    Parameters
    ----------
    X : data frame of shape (n_rows, n_columns)

    Returns
    -------
    ndarray of shape (n_rows, n_columns), or None
        Maybe a view. None if a column is no NumPy array of numbers, and for a polars frame.
    """
    if not is_pandas(X):
        return None
    dtypes = set(X.dtypes)
    if not all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in dtypes):
        return None
    return X.to_numpy(dtype=np.float32 if dtypes == {np.dtype(np.float32)} else np.float64)


def from_array(array: np.ndarray, X):
    """A pandas frame that has the columns of another one, and the values of an array."""
    import pandas

    return pandas.DataFrame(array, columns=X.columns, copy=False)


def holds_numbers(series) -> bool:
    """Whether the series is numeric, or one of objects that are numbers all the same."""
    if is_numeric(series):
        return True
    if series.dtype != object:
        return False
    try:
        to_float(series)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def to_float(series) -> np.ndarray:
    """Numeric series as a float array (float32 stays float32), NaN for missing."""
    if _is_polars(series):
        import polars

        dtype = polars.Float32 if series.dtype == polars.Float32 else polars.Float64
        return series.cast(dtype).fill_null(float("nan")).to_numpy()
    dtype = np.float32 if str(series.dtype).lower().startswith("float32") else np.float64
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        return np.asarray(series, dtype=dtype)
    return series.to_numpy(dtype=dtype, na_value=np.nan)


def _polars_labels(series) -> list:
    import polars

    if series.dtype == polars.Enum:
        return series.dtype.categories.to_list()
    if series.dtype == polars.Categorical:
        # Its own order is that of the process-wide codes.
        return sorted(series.drop_nulls().unique().to_list())
    return series.drop_nulls().unique().to_list()


def _polars_codes(series) -> tuple[np.ndarray, list]:
    import polars

    if series.dtype in (polars.String, polars.Categorical):
        # An enumeration's codes are its own, whatever other columns of the process hold.
        known = sorted(series.drop_nulls().unique().to_list())
        series = series.cast(polars.String).cast(polars.Enum(known))
    if series.dtype == polars.Enum:
        codes = series.to_physical().cast(polars.Int64).fill_null(-1).to_numpy()
        return codes, _polars_labels(series)
    return _factorize_list(series.to_list())


def _factorize_list(items: list) -> tuple[np.ndarray, list]:
    place: dict = {}
    found = [-1 if v is None else place.setdefault(v, len(place)) for v in items]
    return np.array(found, dtype=np.int64), list(place)


def with_columns(X, columns):
    """The frame with some columns replaced.

    Parameters
    ----------
    X : data frame of shape (n_rows, n_columns)
    columns : dict of int to series or ndarray of shape (n_rows,)
        By the column's number.

    Returns
    -------
    data frame
        A new one of the same kind.
    """
    if not is_pandas(X):
        import polars

        return X.with_columns([polars.Series(X.columns[j], v) for j, v in columns.items()])
    out = X.copy(deep=False)
    for j, new in columns.items():
        # The bare values: a series would be aligned by its index.
        out.isetitem(j, getattr(new, "array", new))
    return out


def series_like(series, values: np.ndarray):
    """A series of the same dtype, a categorical one with further categories where needed.

    Parameters
    ----------
    series : series
    values : ndarray of shape (n_rows,), object
        Missing ones as None or NaN.

    Returns
    -------
    series of the same library
    """
    if _is_polars(series):
        return _polars_like(series, values)
    import pandas

    if is_numeric(series):
        return pandas.Series([np.nan if is_missing(v) else v for v in values], dtype=np.float64)
    if not is_categorical(series):
        return pandas.Series(values, dtype=series.dtype)
    known = series.cat.categories
    further = [v for v in dict.fromkeys(values.tolist()) if not is_missing(v) and v not in known]
    dtype = pandas.CategoricalDtype([*known, *further], ordered=series.cat.ordered)
    return pandas.Series(pandas.Categorical(values, dtype=dtype))


def _polars_like(series, values: np.ndarray):
    import polars

    items = [None if is_missing(v) else v for v in values.tolist()]
    dtype = series.dtype
    if dtype == polars.Enum:
        known = dtype.categories.to_list()
        dtype = polars.Enum(list(dict.fromkeys([*known, *(v for v in items if v is not None)])))
    elif dtype.is_numeric():
        dtype = polars.Float64
    return polars.Series(series.name, items, dtype=dtype)


def is_missing(value) -> bool:
    """Whether a value that a series holds is None, NaN or pandas' NA."""
    equal = value == value
    # pandas' NA is neither equal to itself nor different.
    return value is None or not isinstance(equal, (bool, np.bool_)) or not equal
