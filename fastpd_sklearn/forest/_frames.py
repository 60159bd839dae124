"""One function per operation on data frames, for pandas and polars alike."""

from __future__ import annotations

import sys

import numpy as np


def _is_pandas(X) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(X, pandas.DataFrame)


def _is_polars(X) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(X, polars.DataFrame)


def is_frame(X) -> bool:
    """Whether ``X`` is a pandas or polars data frame (neither library is imported for it)."""
    return _is_pandas(X) or _is_polars(X)


def column(X, j: int):
    """Column ``j`` of a frame as that library's series."""
    return X.iloc[:, j] if _is_pandas(X) else X.to_series(j)


def labels(series) -> np.ndarray | None:
    """Labels of a categorical series in the order of its codes; None for other dtypes."""
    if hasattr(series, "cat") and hasattr(series.cat, "categories"):
        return np.asarray(series.cat.categories)
    if _is_polars_categorical(series):
        return series.cat.get_categories().to_numpy()
    return None


def _is_polars_categorical(series) -> bool:
    polars = sys.modules.get("polars")
    return (
        polars is not None
        and isinstance(series, polars.Series)
        and series.dtype
        in (
            polars.Categorical,
            polars.Enum,
        )
    )


def values(series) -> np.ndarray:
    """Values as an object array, missing ones as None or NaN."""
    if hasattr(series, "to_list"):
        return np.array(series.to_list(), dtype=object)
    return np.asarray(series, dtype=object)


def is_numeric(series) -> bool:
    """Whether the series holds numbers or booleans (nullable dtypes included)."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(series, polars.Series):
        return series.dtype.is_numeric() or series.dtype == polars.Boolean
    return series.dtype.kind in "biuf" if hasattr(series.dtype, "kind") else False


def to_float(series) -> np.ndarray:
    """Numeric series as a float array (float32 stays float32), NaN for missing."""
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(series, polars.Series):
        dtype = polars.Float32 if series.dtype == polars.Float32 else polars.Float64
        return series.cast(dtype).fill_null(float("nan")).to_numpy()
    dtype = np.float32 if str(series.dtype).lower().startswith("float32") else np.float64
    return series.to_numpy(dtype=dtype, na_value=np.nan)
