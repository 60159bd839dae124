"""The order of rows in which neighbours fall into the same entries of the tables.

Where the tables of a tree outgrow the caches, rows that come in any order look up far entries.
Rows that agree in the tests that most leaves hang from share the parts of their patterns that come
from there, so that a block of them needs a part of each table only.
"""

from cython.parallel cimport parallel, prange
from libc.stdint cimport int64_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

from fastpd_sklearn.core.routing cimport BinnedRows, NodeTests

import numpy as np

KEY_BITS = 16
"""Of the number that rows are ordered by: that many columns, a bit each."""

SAMPLE = 1001
"""Rows whose codes say where a column is halved."""


def by_likeness(BinnedRows rows, NodeTests tests, geometry):
    """Numbers of the rows, those that fall on the same sides of many columns together.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry

    Returns
    -------
    ndarray of shape (n_rows,), int64
        By halves of the columns that are tested on most ways to leaves, the most tested one first.
    """
    n_ways = np.bincount(tests.slot[geometry.path_node], minlength=len(rows.width))
    step = -(-rows.n_rows // SAMPLE)
    key = np.zeros(rows.n_rows, np.uint16)
    for slot in np.argsort(-n_ways, kind="stable")[:KEY_BITS]:
        codes = rows.column(slot)
        key <<= 1
        key |= codes > np.sort(codes[::step])[len(codes[::step]) // 2]
    return np.argsort(key, kind="stable")


def taken(BinnedRows rows, order):
    """The rows in an order."""
    data = np.empty_like(rows.data)
    ordered = BinnedRows(data, rows.offset, rows.width, rows.n_rows)
    for slot in range(len(rows.width)):
        np.take(rows.column(slot), order, out=ordered.column(slot))
    return ordered


def reorder(double[:, :, :] values, const int64_t[::1] places, int n_threads):
    """Put values[..., places[r]] in place r.

    Parameters
    ----------
    values : ndarray of shape (n_terms, n_outputs, n_rows), float64
        Rows side by side.
    places : ndarray of shape (n_rows,), int64
        Each row's number once.
    n_threads : int
    """
    cdef int64_t n_columns = values.shape[0] * values.shape[1], n_rows = values.shape[2], column
    cdef double* before
    cdef int failed = 0
    if places.shape[0] != n_rows:
        raise ValueError(f"{places.shape[0]} places for {n_rows} rows")
    if n_columns == 0 or n_rows == 0:
        return
    with nogil, parallel(num_threads=n_threads):
        # One for all columns of a thread: the system would have to clear a new one each time.
        before = <double*> malloc(n_rows * sizeof(double))
        for column in prange(n_columns, schedule="static"):
            if before == NULL:
                failed += 1
            else:
                _reorder_column(
                    &values[column // values.shape[1], column % values.shape[1], 0], &places[0],
                    n_rows, before,
                )
        free(before)
    if failed:
        raise MemoryError(f"no memory for {n_threads} columns of {n_rows} rows")


cdef void _reorder_column(
    double* values, const int64_t* places, int64_t n_rows, double* before
) noexcept nogil:
    cdef int64_t r
    memcpy(before, values, n_rows * sizeof(double))
    for r in range(n_rows):
        values[r] = before[places[r]]
