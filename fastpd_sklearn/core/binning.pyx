"""From float inputs to codes.

Every tested input column has a finite alphabet: a forest can't tell two values apart that lie
between the same two thresholds. A numeric value's code is its rank among the thresholds, a
category's is its place among the listed ones (one more code for all others), and missing is the
largest number of the code's width. The compare policy, the rounding to float32, near-zero values
and categories end here: behind the codes all libraries are alike.
"""

from cython.parallel cimport prange
from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint8_t, uint16_t, uint32_t

from fastpd_sklearn.core.routing cimport BinnedRows, NodeTests

import numpy as np

from fastpd_sklearn.core.nodes import tested_columns
from fastpd_sklearn.core.routing import BinnedRows, NodeTests
from fastpd_sklearn.core.threads import threads_for_nodes
from fastpd_sklearn.core.thresholds import rank_thresholds

cdef extern from "kernels.h" nogil:
    void rank_float(const float*, int64_t, const float*, int64_t, uint32_t*)
    void rank_float_strict(const float*, int64_t, const float*, int64_t, uint32_t*)
    void rank_double(const double*, int64_t, const double*, int64_t, uint32_t*)
    void rank_double_strict(const double*, int64_t, const double*, int64_t, uint32_t*)
    void store_float_8(const float*, const uint32_t*, int64_t, uint8_t*)
    void store_float_16(const float*, const uint32_t*, int64_t, uint16_t*)
    void store_float_32(const float*, const uint32_t*, int64_t, uint32_t*)
    void store_double_8(const double*, const uint32_t*, int64_t, uint8_t*)
    void store_double_16(const double*, const uint32_t*, int64_t, uint16_t*)
    void store_double_32(const double*, const uint32_t*, int64_t, uint32_t*)

ctypedef fused floating:
    float
    double

cdef enum:
    BLOCK = 256  # rows of all columns that stay in the second-level cache while they are binned


cdef class Bins:
    """The alphabets of a forest's inputs, and its tests in their terms.

    Parameters
    ----------
    feature, threshold, missing_left, zero_as_missing, is_categorical, listed_left, category_start, \
category
        The node arrays of a forest.
    zero : float
        Half-width of the values that `zero_as_missing` takes for missing.
    strict, single : bool
        The compare policy.

    Attributes
    ----------
    columns : ndarray of shape (n_slots,), int64
        The input columns that are tested, ascending; everything else is about these slots.
    categorical : ndarray of shape (n_slots,), bool
    edge_start : ndarray of shape (n_slots + 1,), int64
    edges : ndarray of float64
        Thresholds (or listed categories) of slot ``s``:
        ``edges[edge_start[s]:edge_start[s + 1]]``, ascending.
    n_codes : ndarray of shape (n_slots,), int64
        Codes of a slot, missing apart.
    width : ndarray of shape (n_slots,), uint8
        Bytes of a code.
    tests : NodeTests
    """

    cdef readonly object columns, categorical, edge_start, edges, n_codes, width, tests
    cdef readonly bint strict, single

    def __init__(
        self, feature, threshold, missing_left, zero_as_missing, is_categorical, listed_left,
        category_start, category, double zero, bint strict, bint single,
    ):
        self.strict, self.single = strict, single
        self.columns, slot = tested_columns(feature, feature.max(initial=-1) + 1)
        special = np.flatnonzero(is_categorical | zero_as_missing)
        zoned = np.unique(slot[special[zero_as_missing[special]]])
        zone = {s: _zone_edges(zero, strict) for s in zoned.tolist()}
        edges, span = rank_thresholds(
            slot, is_categorical, threshold, len(self.columns), zone, strict, single
        )
        self._collect_categories(slot, is_categorical, category_start, category, edges)
        self.n_codes = np.array([len(e) + 1 for e in edges], dtype=np.int64)
        self.width = np.where(
            self.n_codes < 2**8, 1, np.where(self.n_codes < 2**16, 2, 4)
        ).astype(np.uint8)
        self.edge_start = np.concatenate([[0], np.cumsum(self.n_codes - 1)]).astype(np.int64)
        self.edges = np.concatenate([np.empty(0), *edges])
        low = _take_missing(missing_left, span)
        self.tests = NodeTests(slot, low, span, *self._make_tables(
            slot, threshold, missing_left, is_categorical, listed_left, category_start, category,
            zero, special, low, span,
        ))

    def __reduce__(self):
        state = (
            self.columns, self.categorical, self.edge_start, self.edges, self.n_codes, self.width,
            self.tests, self.strict, self.single,
        )
        return _restore, (state,)

    def of_nodes(self, node):
        """The same alphabets, with the tests of some of the nodes.

        Parameters
        ----------
        node : ndarray of int64

        Returns
        -------
        Bins
        """
        tests = NodeTests(
            self.tests.slot[node], self.tests.low[node], self.tests.span[node],
            self.tests.table[node], self.tests.tables,
        )
        return _restore((
            self.columns, self.categorical, self.edge_start, self.edges, self.n_codes, self.width,
            tests, self.strict, self.single,
        ))

    def slot_edges(self, int64_t slot):
        """The thresholds or listed categories of a slot, ascending."""
        return self.edges[self.edge_start[slot]:self.edge_start[slot + 1]]

    def _collect_categories(self, slot, is_categorical, category_start, category, edges):
        """Put the categories that are listed into the edges of their slots."""
        self.categorical = np.zeros(len(self.columns), bool)
        if not len(category) and not is_categorical.any():
            return
        self.categorical[slot[is_categorical]] = True
        owner = np.repeat(slot, np.diff(category_start))
        for s in np.flatnonzero(self.categorical).tolist():
            edges[s] = np.unique(category[owner == s].astype(np.float64))

    def _make_tables(
        self, slot, threshold, missing_left, is_categorical, listed_left, category_start, category,
        zero, special, low, span,
    ):
        """Tables of the nodes that no interval describes, whose spans become the tables' lengths."""
        table = np.full(len(slot), -1, np.int64)
        tables = [np.empty(0, np.uint8)]
        start = 0
        low[special] = 0
        for node in special:
            s = slot[node]
            codes = np.zeros(self.n_codes[s] + 1, np.uint8)
            if is_categorical[node]:
                listed = category[category_start[node]:category_start[node + 1]]
                codes[:] = not listed_left[node]
                codes[np.searchsorted(self.slot_edges(s), listed)] = listed_left[node]
            else:
                codes[:np.searchsorted(self.slot_edges(s), threshold[node]) + 1] = 1
                first, last = np.searchsorted(self.slot_edges(s), _zone_edges(zero, self.strict))
                codes[first + 1:last + 1] = missing_left[node]
            codes[self.n_codes[s]] = missing_left[node]
            table[node], span[node] = start, len(codes) - 1
            tables.append(codes)
            start += len(codes)
        return table, np.concatenate(tables)

    def empty_rows(self, int64_t n_rows):
        """Room for the codes of some rows, and a writeable array for each slot.

        Parameters
        ----------
        n_rows : int

        Returns
        -------
        rows : BinnedRows
        columns : list of ndarray of shape (n_rows,)
        """
        padded = -(-self.width.astype(np.int64) * n_rows // 8) * 8  # wide codes need aligned starts
        offset = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
        n_slots = len(self.width)
        data = np.empty(offset[n_slots], np.uint8)
        columns = [
            data[offset[s]:offset[s] + n_rows * int(w)].view(f"u{w}")
            for s, w in enumerate(self.width)
        ]
        return BinnedRows(data, offset[:n_slots], self.width, n_rows), columns

    def bin_matrix(self, X, int n_threads):
        """Codes of a whole matrix.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_inputs), float32 or float64, any strides
        n_threads : int

        Returns
        -------
        rows : BinnedRows
        infinite : int
            An input column that holds an infinite value (after rounding to float32 where the
            forest does so); -1 if none does.
        """
        rows, _ = self.empty_rows(len(X))
        found = self._fill(X, self.columns, np.arange(len(self.columns)), rows, n_threads)
        return rows, int(self.columns[found]) if found >= 0 else -1

    def bin_column(self, values, int64_t slot, BinnedRows rows, int n_threads):
        """Codes of one column.

        Parameters
        ----------
        values : ndarray of shape (n_rows,), float32 or float64
        slot : int
        rows : BinnedRows
            From `empty_rows`; the slot's codes are written into it.
        n_threads : int

        Returns
        -------
        bool
            Whether the column holds an infinite value.
        """
        return self._fill(values[:, None], np.zeros(1, np.int64), np.array([slot]), rows,
                          n_threads) >= 0

    def _fill(self, X, source, slots, BinnedRows rows, int n_threads):
        edges = self.edges.astype(np.float32) if self.single else self.edges
        edges = edges if len(edges) else np.zeros(1, edges.dtype)
        if X.dtype == np.float32:
            if self.single:
                return _bin[float, float](X, source, slots, self, edges, rows, n_threads)
            return _bin[float, double](X, source, slots, self, edges, rows, n_threads)
        if self.single:
            return _bin[double, float](X, source, slots, self, edges, rows, n_threads)
        return _bin[double, double](X, source, slots, self, edges, rows, n_threads)


def _take_missing(missing_left, uint32_t[::1] span):
    """Where the intervals of tests begin; those that take missing values in become longer."""
    cdef const uint8_t[::1] is_in = missing_left.view(np.uint8)
    lows = np.empty(len(missing_left), np.uint32)
    cdef uint32_t[::1] low = lows
    cdef int64_t node, n_nodes = span.shape[0]
    cdef int n_threads = threads_for_nodes(n_nodes)
    for node in prange(n_nodes, nogil=True, num_threads=n_threads, schedule="static"):
        low[node] = -<uint32_t> is_in[node]  # missing, the largest number, is one step below zero
        span[node] += is_in[node]
    return lows


def _restore(state):
    cdef Bins bins = Bins.__new__(Bins)
    (
        bins.columns, bins.categorical, bins.edge_start, bins.edges, bins.n_codes, bins.width,
        bins.tests, bins.strict, bins.single,
    ) = state
    return bins


def _zone_edges(double zero, bint strict):
    """The two edges between which values are near zero."""
    if strict:
        return np.array([-zero, np.nextafter(zero, np.inf)])
    return np.array([np.nextafter(-zero, -np.inf), zero])


ctypedef fused compared:
    float
    double


cdef int64_t _bin(
    const floating[:, :] X, const int64_t[::1] source, const int64_t[::1] slots, Bins bins,
    const compared[::1] edges, BinnedRows rows, int n_threads,
) except? -2:
    """Fill the codes of some slots; a slot with an infinite value, or -1."""
    cdef const int64_t[::1] edge_start = bins.edge_start
    cdef const uint8_t[::1] categorical = bins.categorical.view(np.uint8)
    cdef const uint8_t[::1] width = bins.width
    cdef const int64_t[::1] offset = rows.offset
    cdef uint8_t[::1] data = rows.data
    cdef int64_t n_rows = X.shape[0], n_slots = slots.shape[0]
    cdef int64_t n_blocks = (n_rows + BLOCK - 1) // BLOCK
    cdef int64_t block
    cdef bint strict = bins.strict
    infinite = np.zeros(max(len(bins.columns), 1), np.uint8)
    cdef uint8_t[::1] is_infinite = infinite
    if n_rows == 0 or n_slots == 0:
        return -1
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="static"):
        _bin_block(
            X, block * BLOCK, min(n_rows - block * BLOCK, <int64_t> BLOCK), source, slots,
            &edges[0], &edge_start[0], &categorical[0], &width[0], &offset[0], &data[0], strict,
            &is_infinite[0],
        )
    return int(np.argmax(infinite)) if infinite.any() else -1


cdef void _bin_block(
    const floating[:, :] X, int64_t row, int64_t m, const int64_t[::1] source,
    const int64_t[::1] slots, const compared* edges, const int64_t* edge_start,
    const uint8_t* categorical, const uint8_t* width, const int64_t* offset, uint8_t* data,
    bint strict, uint8_t* is_infinite,
) noexcept nogil:
    cdef compared x[BLOCK]
    cdef uint32_t rank[BLOCK]
    cdef int64_t k, r, s, column, n_edges
    cdef const compared* edge
    cdef uint8_t seen
    for k in range(slots.shape[0]):
        s, column = slots[k], source[k]
        edge = edges + edge_start[s]
        n_edges = edge_start[s + 1] - edge_start[s]
        for r in range(m):
            x[r] = <compared> X[row + r, column]
        seen = 0
        for r in range(m):
            seen |= (x[r] == INFINITY) | (x[r] == -INFINITY)
        if seen:
            is_infinite[s] = 1
        if categorical[s]:
            _rank_categories(x, m, edge, n_edges, rank)
        elif compared is float:
            if strict:
                rank_float_strict(x, m, edge, n_edges, rank)
            else:
                rank_float(x, m, edge, n_edges, rank)
        else:
            if strict:
                rank_double_strict(x, m, edge, n_edges, rank)
            else:
                rank_double(x, m, edge, n_edges, rank)
        _store(x, rank, m, data + offset[s] + row * width[s], width[s])


cdef void _store(
    const compared* x, const uint32_t* rank, int64_t m, uint8_t* code, uint8_t width
) noexcept nogil:
    if compared is float:
        if width == 1:
            store_float_8(x, rank, m, code)
        elif width == 2:
            store_float_16(x, rank, m, <uint16_t*> code)
        else:
            store_float_32(x, rank, m, <uint32_t*> code)
    else:
        if width == 1:
            store_double_8(x, rank, m, code)
        elif width == 2:
            store_double_16(x, rank, m, <uint16_t*> code)
        else:
            store_double_32(x, rank, m, <uint32_t*> code)


cdef void _rank_categories(
    const compared* x, int64_t m, const compared* listed, int64_t n_listed, uint32_t* rank
) noexcept nogil:
    """Place of each truncated value among the listed categories; n_listed where it is not there."""
    cdef int64_t r, low, high, middle
    cdef compared v
    for r in range(m):
        rank[r] = <uint32_t> n_listed
        if not (x[r] > -1 and x[r] < 2147483648.0):
            continue
        v = <compared> <int64_t> x[r]
        low, high = 0, n_listed
        while low < high:
            middle = (low + high) // 2
            if listed[middle] < v:
                low = middle + 1
            else:
                high = middle
        if low < n_listed and listed[low] == v:
            rank[r] = <uint32_t> low
