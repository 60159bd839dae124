"""One pass over background rows: how much weight has each mask at each leaf, or each node.

Trees are shared among the threads and every tree sees the rows in their order, so the sums are
the same bits for any number of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.patterns cimport (
    Numbering, UnitArrays, UnitView, block_rows, leaf_mask, long_patterns, number_of,
    numbering_free, numbering_init, short_patterns, test_tree,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests, goes_left

import numpy as np

ctypedef fused tally:
    int64_t
    double


cdef struct Found:
    # What one tree found: entries (mask of n_words words, weight), those of a leaf together.
    int64_t size
    int64_t room
    uint64_t* masks
    void* weights
    int64_t* leaf_first  # by leaf of the tree: its first entry and the number of its entries
    int64_t* leaf_count
    bint failed


cdef void _free(Found* found) noexcept nogil:
    free(found.masks)
    free(found.weights)
    free(found.leaf_first)
    free(found.leaf_count)


cdef int _emit(Found* found, const uint64_t* mask, int64_t n_words, tally weight) noexcept nogil:
    cdef uint64_t* masks
    cdef void* weights
    cdef int64_t room
    if found.size == found.room:
        room = 2 * found.room + 1024
        masks = <uint64_t*> realloc(found.masks, room * n_words * sizeof(uint64_t))
        if masks == NULL:
            return -1
        found.masks = masks
        weights = realloc(found.weights, room * sizeof(tally))
        if weights == NULL:
            return -1
        found.weights, found.room = weights, room
    memcpy(found.masks + found.size * n_words, mask, n_words * sizeof(uint64_t))
    (<tally*> found.weights)[found.size] = weight
    found.size += 1
    return 0


def count_masks(BinnedRows rows, NodeTests tests, geometry, units, sample_weight, int n_threads):
    """Weight of the rows by leaf and mask.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    units : Units
    sample_weight : ndarray of shape (n_rows,), float64, or None
    n_threads : int

    Returns
    -------
    start : ndarray of shape (n_leaves + 1,), int64
        The entries of leaf ``l`` are ``start[l]`` up to ``start[l + 1]``.
    mask : ndarray of shape (n_entries, n_words), uint64
        The masks that occur; each once a leaf.
    weight : ndarray of shape (n_entries,), int64 or float64
        Sum of weights; the number of rows where there are none.
    """
    if sample_weight is None:
        return _count[int64_t](rows, tests, geometry, units, np.empty(0, np.int64), n_threads)
    return _count[double](rows, tests, geometry, units, sample_weight, n_threads)


cdef _count(
    BinnedRows rows, NodeTests tests, geometry, units, const tally[::1] sample_weight,
    int n_threads,
):
    cdef UnitArrays arrays = UnitArrays(geometry, units)
    cdef Codes codes = rows.view()
    cdef Tests test = tests.view()
    cdef const int64_t[::1] tree_leaf = geometry.tree_leaf
    cdef int64_t n_trees = geometry.n_trees, n_leaves = geometry.n_leaves, n_words = geometry.n_words
    cdef int64_t t, l, k
    cdef const tally* weights = &sample_weight[0] if sample_weight.shape[0] else NULL
    cdef Found* found = <Found*> calloc(max(n_trees, <int64_t> 1), sizeof(Found))
    if found == NULL:
        raise MemoryError(f"no memory for the coverage of {n_trees} trees")
    try:
        for t in prange(n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
            _count_tree[tally](
                &codes, &test, &arrays.view, t, tree_leaf[t], tree_leaf[t + 1], n_words, weights,
                &found[t],
            )
        start_array = np.zeros(n_leaves + 1, np.int64)
        for t in range(n_trees):
            if found[t].failed:
                raise MemoryError(
                    "no memory for the masks that the background has at the leaves of tree "
                    f"{t}; use a smaller background or shallower trees"
                )
            for l in range(tree_leaf[t], tree_leaf[t + 1]):
                start_array[l + 1] = found[t].leaf_count[l - tree_leaf[t]]
        np.cumsum(start_array, out=start_array)
        mask_array = np.empty((start_array[n_leaves], n_words), np.uint64)
        weight_array = np.empty(start_array[n_leaves], np.float64 if tally is double else np.int64)
        _collect[tally](found, tree_leaf, start_array, mask_array, weight_array)
    finally:
        for t in range(n_trees):
            _free(&found[t])
        free(found)
    return start_array, mask_array, weight_array


cdef void _collect(
    const Found* found, const int64_t[::1] tree_leaf, const int64_t[::1] start,
    uint64_t[:, ::1] mask, tally[::1] weight,
) noexcept:
    cdef int64_t t, l, k, first, count, n_words = mask.shape[1]
    for t in range(tree_leaf.shape[0] - 1):
        for l in range(tree_leaf[t], tree_leaf[t + 1]):
            first = found[t].leaf_first[l - tree_leaf[t]]
            count = start[l + 1] - start[l]
            if count:
                memcpy(&mask[start[l], 0], found[t].masks + first * n_words,
                       count * n_words * sizeof(uint64_t))
                memcpy(&weight[start[l]], (<tally*> found[t].weights) + first,
                       count * sizeof(tally))


cdef void _count_tree(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t tree,
    int64_t first_leaf, int64_t last_leaf, int64_t n_words, const tally* weights, Found* found,
) noexcept nogil:
    cdef int64_t n_nodes = units.tree_start[tree + 1] - units.tree_start[tree]
    cdef int64_t first = units.tree_unit[tree], n_units = units.tree_unit[tree + 1] - first
    cdef int64_t most = block_rows(n_nodes), row = 0, m, u
    cdef uint8_t* bits = <uint8_t*> malloc(n_nodes * most + most)
    cdef uint16_t* patterns = <uint16_t*> malloc(most * sizeof(uint16_t))
    cdef uint64_t* words = <uint64_t*> malloc(most * (n_words + 1) * sizeof(uint64_t))
    cdef tally** sums = <tally**> calloc(n_units + 1, sizeof(tally*))
    cdef Numbering* numbered = <Numbering*> calloc(n_units + 1, sizeof(Numbering))
    cdef int64_t n_leaves = last_leaf - first_leaf
    found.leaf_first = <int64_t*> calloc(n_leaves, sizeof(int64_t))
    found.leaf_count = <int64_t*> calloc(n_leaves, sizeof(int64_t))
    found.failed = (
        bits == NULL or patterns == NULL or words == NULL or sums == NULL or numbered == NULL
        or found.leaf_first == NULL or found.leaf_count == NULL
    )
    if not found.failed:
        for u in range(n_units):
            if units.is_dense[first + u]:
                sums[u] = <tally*> calloc(_table_size(units, first + u), sizeof(tally))
                found.failed = found.failed or sums[u] == NULL
            elif numbering_init(&numbered[u], n_words) < 0:
                found.failed = True
    while row < codes.n_rows and not found.failed:
        m = min(most, codes.n_rows - row)
        test_tree(codes, tests, units, tree, row, m, bits)
        for u in range(n_units):
            if units.is_dense[first + u]:
                short_patterns(units, tree, first + u, bits, m, bits + n_nodes * most, patterns)
                _add_short[tally](patterns, m, weights + row if weights else NULL, sums[u])
            else:
                long_patterns(units, tree, first + u, bits, m, n_words, bits + n_nodes * most,
                              words + most * n_words, words)
                if _add_long[tally](words, m, n_words, weights + row if weights else NULL,
                                    &numbered[u], &sums[u]) < 0:
                    found.failed = True
                    break
        row += m
    if not found.failed and _fold[tally](units, tree, first_leaf, n_words, sums, numbered, found) < 0:
        found.failed = True
    for u in range(n_units):
        if sums != NULL:
            free(sums[u])
        if numbered != NULL:
            numbering_free(&numbered[u])
    free(sums)
    free(numbered)
    free(bits)
    free(patterns)
    free(words)


cdef int64_t _table_size(const UnitView* units, int64_t unit) noexcept nogil:
    return <int64_t> 1 << (units.bit_start[unit + 1] - units.bit_start[unit])


cdef void _add_short(
    const uint16_t* patterns, int64_t m, const tally* weights, tally* sums
) noexcept nogil:
    cdef int64_t r
    if weights == NULL:
        for r in range(m):
            sums[patterns[r]] += 1
    else:
        for r in range(m):
            sums[patterns[r]] += weights[r]


cdef int _add_long(
    const uint64_t* words, int64_t m, int64_t n_words, const tally* weights, Numbering* numbered,
    tally** sums,
) noexcept nogil:
    cdef int64_t r, number, known = numbered.size
    cdef tally* grown
    for r in range(m):
        number = number_of(numbered, words + r * n_words)
        if number < 0:
            return -1
        if number == known:
            if known % 64 == 0:
                grown = <tally*> realloc(sums[0], (known + 64) * sizeof(tally))
                if grown == NULL:
                    return -1
                sums[0] = grown
            sums[0][known] = 0
            known += 1
        sums[0][number] += weights[r] if weights != NULL else 1
    return 0


cdef int _fold(
    const UnitView* units, int64_t tree, int64_t first_leaf, int64_t n_words, tally** sums,
    Numbering* numbered, Found* found,
) noexcept nogil:
    """From sums over patterns to entries of the leaves."""
    cdef int64_t first = units.tree_unit[tree], n_units = units.tree_unit[tree + 1] - first
    cdef int64_t u, k, leaf, i
    cdef int status = 0
    for u in range(n_units):
        for k in range(units.leaf_start[first + u], units.leaf_start[first + u + 1]):
            leaf = units.leaf[k]
            found.leaf_first[leaf - first_leaf] = found.size
            if units.is_dense[first + u]:
                status = _fold_leaf[tally](units, first + u, leaf, n_words, sums[u], found)
            else:
                for i in range(numbered[u].size):
                    status = _emit[tally](found, numbered[u].keys + i * n_words, n_words, sums[u][i])
                    if status < 0:
                        break
            if status < 0:
                return -1
            found.leaf_count[leaf - first_leaf] = found.size - found.leaf_first[leaf - first_leaf]
    return 0


cdef int _fold_leaf(
    const UnitView* units, int64_t unit, int64_t leaf, int64_t n_words, const tally* sums,
    Found* found,
) noexcept nogil:
    cdef int64_t n_masks = <int64_t> 1 << (units.player_start[leaf + 1] - units.player_start[leaf])
    cdef int64_t pattern, w
    cdef int status = 0
    cdef uint64_t mask
    cdef tally* by_mask = <tally*> calloc(n_masks, sizeof(tally))
    cdef uint64_t* words = <uint64_t*> calloc(n_words, sizeof(uint64_t))
    if by_mask == NULL or words == NULL:
        status = -1
    else:
        for pattern in range(_table_size(units, unit)):
            if sums[pattern] != 0:
                by_mask[leaf_mask(units, leaf, pattern)] += sums[pattern]
        for mask in range(<uint64_t> n_masks):
            if by_mask[mask] != 0:
                words[0] = mask
                status = _emit[tally](found, words, n_words, by_mask[mask])
                if status < 0:
                    break
    free(by_mask)
    free(words)
    return status


cdef int64_t _walk(
    const Codes* codes, const Tests* tests, const int32_t* left, const int32_t* right,
    int64_t node, int64_t row,
) noexcept nogil:
    """The leaf that a row reaches from a node."""
    while left[node] >= 0:
        node = left[node] if goes_left(codes, tests, node, row) else right[node]
    return node


def count_nodes(BinnedRows rows, NodeTests tests, geometry, sample_weight, int n_threads):
    """Weight of the rows that pass through every node.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    sample_weight : ndarray of shape (n_rows,), float64, or None
    n_threads : int

    Returns
    -------
    ndarray of shape (n_nodes,), float64
    """
    cdef Codes codes = rows.view()
    cdef Tests test = tests.view()
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef int64_t n_trees = tree_start.shape[0] - 1, t, row, node
    weight_array = np.ones(rows.n_rows) if sample_weight is None else sample_weight
    cdef const double[::1] weight = weight_array
    count_array = np.zeros(len(geometry.left))
    cdef double[::1] count = count_array
    for t in prange(n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
        for row in range(codes.n_rows):
            node = _walk(&codes, &test, &left[0], &right[0], tree_start[t], row)
            count[node] += weight[row]
        for node in range(tree_start[t + 1] - 1, tree_start[t] - 1, -1):
            if left[node] >= 0:
                count[node] = count[left[node]] + count[right[node]]
    return count_array


def predict(
    BinnedRows rows, NodeTests tests, geometry, const double[:, ::1] value,
    const int32_t[::1] tree_output, const double[::1] intercept, int n_threads,
):
    """Raw prediction of every row.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    value : ndarray of shape (n_nodes, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    intercept : ndarray of shape (n_outputs,), float64
    n_threads : int

    Returns
    -------
    ndarray of shape (n_rows, n_outputs), float64
    """
    cdef Codes codes = rows.view()
    cdef Tests test = tests.view()
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef int64_t n_trees = tree_start.shape[0] - 1, n_values = value.shape[1], row, t, node, v
    out_array = np.tile(np.asarray(intercept), (rows.n_rows, 1))
    cdef double[:, ::1] out = out_array
    for row in prange(codes.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
        for t in range(n_trees):
            node = _walk(&codes, &test, &left[0], &right[0], tree_start[t], row)
            for v in range(n_values):
                out[row, tree_output[t] + v] += value[node, v]
    return out_array
