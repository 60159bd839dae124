"""Checks of what users pass in, each with an error that says what to do."""

from __future__ import annotations

import os
from numbers import Integral, Real

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from fastpd_sklearn.forest import _frames

SMALLEST_TOTAL, LARGEST_TOTAL = 1e-280, 1e280
"""What weights may add up to, so that neither sums nor shares leave the range of floats."""


def check_choice(name: str, value, choices) -> None:
    """Refuse a parameter that is none of some strings."""
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name}={value!r} is none of {', '.join(repr(c) for c in choices)}")


def check_max_order(max_order) -> None:
    """Refuse a ``max_order`` that is not "auto", None or a positive int."""
    if max_order is None or (isinstance(max_order, str) and max_order == "auto"):
        return
    if isinstance(max_order, bool) or not isinstance(max_order, Integral):
        raise TypeError(f"max_order={max_order!r} should be 'auto', a positive int or None")
    if max_order < 1:
        raise ValueError(f"max_order={max_order}: should be at least 1, or None for no limit")


def check_n_jobs(n_jobs) -> None:
    """Refuse an ``n_jobs`` that is not None or an int other than 0."""
    if n_jobs is None:
        return
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral):
        raise TypeError(f"n_jobs={n_jobs!r} should be an int or None")
    if n_jobs == 0:
        raise ValueError("n_jobs=0 means no thread at all; take None, or -1 for all of them")


def check_n_groups(n_jackknife) -> None:
    """Refuse an ``n_jackknife`` that is not 0 or an int from 2 on."""
    is_number = isinstance(n_jackknife, Integral) and not isinstance(n_jackknife, bool)
    if not is_number or n_jackknife < 0 or n_jackknife == 1:
        raise ValueError(
            f"n_jackknife={n_jackknife!r} should be 0 for no standard errors, or a number of "
            "groups of at least 2, such as 20"
        )


def check_confidence(confidence) -> None:
    """Refuse a ``confidence`` that is not strictly between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} should be a number between 0 and 1")


def check_resolution(grid_resolution) -> None:
    """Refuse a number of grid points that is not an int from 2 on."""
    if not isinstance(grid_resolution, Integral) or grid_resolution < 2:
        raise ValueError(f"grid_resolution={grid_resolution!r} should be an int of at least 2")


def check_positive(name: str, value, least: int = 1) -> None:
    """Refuse an argument that is not an int from ``least``, or 1, on."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name}={value!r} should be an int of at least {least}")


def check_verbose(verbose) -> None:
    """Refuse a ``verbose`` that is not a bool or a number from 0 on."""
    if not isinstance(verbose, Integral) or verbose < 0:
        raise ValueError(f"verbose={verbose!r} should be 0 for silence, or a positive int")


_TABLE_DOORS = ("__dataframe__", "__arrow_c_stream__", "__arrow_c_array__")
"""By which tables hand themselves over to other libraries."""


def check_rows(X):
    """``X`` as a matrix or a data frame.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

    Returns
    -------
    array, sparse matrix or data frame
        Data frames as they are; the values are for the model to check.

    Raises
    ------
    TypeError
        If it is no array, sparse matrix, data frame or list.
    ValueError
        If it has no rows, no columns, or other than two dimensions.
    """
    if _frames.is_frame(X):
        if X.shape[0] == 0 or X.shape[1] == 0:
            raise ValueError(f"X is empty: a data frame of shape {X.shape}; give at least one row")
        return X
    if isinstance(X, list | tuple) and any(isinstance(part, str | os.PathLike) for part in X):
        raise TypeError(
            "X is a list of paths: give the folder of the files, or "
            "pyarrow.dataset.dataset(paths), where rows in chunks are taken"
        )
    if any(hasattr(X, door) for door in _TABLE_DOORS):
        raise TypeError(
            f"X is a {type(X).__name__}, whose columns have names that an array would lose: give "
            "it as a pandas or polars data frame, such as X.to_pandas(), or in a list, as a chunk, "
            "where chunks are taken"
        )
    if not (sparse.issparse(X) or hasattr(X, "__array__") or hasattr(X, "__len__")):
        raise TypeError(
            f"X is a {type(X).__name__}, which is not accepted: give the rows as an array, a "
            "sparse matrix or a data frame, such as the one that it was made from"
        )
    if sparse.issparse(X) and X.format not in ("csr", "csc"):
        X = X.tocsr()
    return check_array(X, accept_sparse=True, dtype=None, ensure_all_finite=False, input_name="X")


def check_weights(sample_weight, n_rows: int) -> np.ndarray | None:
    """Weights of rows as float64.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), float or None
    n_rows : int

    Returns
    -------
    ndarray of shape (n_rows,), float64, or None

    Raises
    ------
    TypeError
        For the name of a column.
    ValueError
        For another shape, for weights that are negative or not finite, or all zero.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, str):
        raise TypeError(
            f"sample_weight={sample_weight!r} names a column, as for rows in chunks; rows in "
            f"memory take the weights themselves, such as X[{sample_weight!r}], apart from the "
            "columns of the model"
        )
    weights = check_array(
        np.full(n_rows, sample_weight) if np.isscalar(sample_weight) else sample_weight,
        ensure_2d=False,
        allow_nd=True,
        dtype=np.float64,
        order="C",  # every other row of an array, or a column of a frame, has gaps
        input_name="sample_weight",
    )
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight.shape == {weights.shape}, expected {(n_rows,)}: one weight a row"
        )
    if np.any(weights < 0):
        raise ValueError(
            f"Negative values in data passed to `sample_weight`: the smallest is {weights.min()}"
        )
    if not np.any(weights):
        raise ValueError(
            "Sample weights must contain at least one non-zero number: all rows of "
            "sample_weight are 0"
        )
    with np.errstate(over="ignore"):
        total = weights.sum()
    if not SMALLEST_TOTAL <= total <= LARGEST_TOTAL:
        raise ValueError(
            f"sample_weight adds up to {total:.3g}, beyond what floats can be averaged with; only "
            "the ratios of weights matter, so divide them by their maximum"
        )
    return weights


def check_out(out, shape: tuple[int, int, int]) -> np.ndarray:
    """An array of the user's to write values to, as one of three dimensions.

    Parameters
    ----------
    out : ndarray of shape (n_rows, n_terms, n_outputs), or (n_rows, n_terms) for one output
    shape : tuple of int
        What it should be.

    Returns
    -------
    ndarray of shape (n_rows, n_terms, n_outputs)
        A view.
    """
    wanted = shape if shape[2] > 1 else shape[:2]
    if not isinstance(out, np.ndarray) or out.dtype not in (np.float32, np.float64):
        raise TypeError(
            f"out should be an array of float64 or float32, got {getattr(out, 'dtype', type(out))}"
        )
    if out.shape != wanted:
        raise ValueError(f"out.shape == {out.shape}, expected {wanted}")
    if not out.flags.writeable:
        raise ValueError("out is read-only; pass an array that can be written to")
    return out.reshape(shape) if out.ndim == 3 else out[:, :, None]


def check_memory(n_bytes: int, what: str, remedy: str) -> None:
    """Refuse work whose result does not fit into the memory at hand.

    Parameters
    ----------
    n_bytes : int
        Size of the result.
    what, remedy : str
        For the message.

    Raises
    ------
    MemoryError
    """
    free = available_memory()
    if free is not None and n_bytes > free:
        raise MemoryError(
            f"{what} takes {n_bytes / 2**30:.1f} GiB, and {free / 2**30:.1f} GiB are free; {remedy}"
        )


def available_memory() -> int | None:
    """Bytes that can be had without swapping, where the system says."""
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, AttributeError):
        return None
