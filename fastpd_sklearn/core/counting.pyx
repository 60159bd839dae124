"""One pass over background rows: how much weight has each mask at each leaf, or each node.

Trees are shared among the threads and every tree sees the rows in their order, so the sums are
the same bits for any number of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.numbering cimport (
    Keys, LeafMasks, TreeNumbers, UnitArrays, UnitView, deep_numbers, dense_mask, keys_free,
    keys_init, leaf_mask, leaf_masks_init, n_patterns, number_of, number_unit, numbers_free,
    numbers_init, short_numbers,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests, goes_left

import numpy as np

ctypedef fused tally:
    int64_t
    double

ctypedef fused counter:  # a sum of weights, or a number of rows: a fast cache holds twice as many
    uint32_t
    double

cdef enum:
    TABLE_PLAYERS = 14  # the largest leaf whose masks are added up in a table over all masks


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


cdef int _reserve(Found* found, int64_t n_words, int64_t more, int64_t item) noexcept nogil:
    """Make room for more entries, with weights of `item` bytes."""
    cdef uint64_t* masks
    cdef void* weights
    cdef int64_t room
    if found.size + more <= found.room:
        return 0
    room = 2 * found.room + more + 1024
    masks = <uint64_t*> realloc(found.masks, room * n_words * sizeof(uint64_t))
    if masks == NULL:
        return -1
    found.masks = masks
    weights = realloc(found.weights, room * item)
    if weights == NULL:
        return -1
    found.weights, found.room = weights, room
    return 0


def count_masks(
    BinnedRows rows, NodeTests tests, geometry, units, sample_weight, int n_threads,
    first_tree=0, last_tree=None,
):
    """Weight of the rows by leaf and mask.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    units : Units
    sample_weight : ndarray of shape (n_rows,), float64, or None
    n_threads : int
    first_tree, last_tree : int
        The trees whose leaves are wanted, all if not given; others have no entries.

    Returns
    -------
    start : ndarray of shape (n_leaves + 1,), int64
        The entries of leaf ``l`` are ``start[l]`` up to ``start[l + 1]``.
    mask : ndarray of shape (n_entries, n_words), uint64
        The masks that occur; each once a leaf.
    weight : ndarray of shape (n_entries,), int64 or float64
        Sum of weights; the number of rows where there are none.
    """
    if last_tree is None:
        last_tree = geometry.n_trees
    if sample_weight is None:
        sample_weight = np.empty(0, np.int64)
        return _count[int64_t](
            rows, tests, geometry, units, sample_weight, n_threads, first_tree, last_tree
        )
    return _count[double](
        rows, tests, geometry, units, sample_weight, n_threads, first_tree, last_tree
    )


cdef _count(
    BinnedRows rows, NodeTests tests, geometry, units, const tally[::1] sample_weight,
    int n_threads, int64_t first_tree, int64_t last_tree,
):
    if rows.n_rows >> 32:
        raise ValueError(f"{rows.n_rows} rows are more than can be counted at a time")
    cdef UnitArrays arrays = UnitArrays(geometry, units)
    cdef Codes codes = rows.view()
    cdef Tests test = tests.view()
    cdef const int64_t[::1] tree_leaf = geometry.tree_leaf
    cdef int64_t n_trees = geometry.n_trees, n_leaves = geometry.n_leaves, n_words = geometry.n_words
    cdef int64_t t, l
    cdef const tally* weights = &sample_weight[0] if sample_weight.shape[0] else NULL
    cdef Found* found = <Found*> calloc(max(n_trees, <int64_t> 1), sizeof(Found))
    if found == NULL:
        raise MemoryError(f"no memory for the coverage of {n_trees} trees")
    try:
        for t in prange(
            first_tree, last_tree, nogil=True, num_threads=n_threads, schedule="dynamic"
        ):
            _count_tree[tally](
                &codes, &test, &arrays.view, t, tree_leaf[t], tree_leaf[t + 1], weights, &found[t],
            )
        start_array = np.zeros(n_leaves + 1, np.int64)
        for t in range(first_tree, last_tree):
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
        _collect[tally](
            found, tree_leaf, first_tree, last_tree, start_array, mask_array, weight_array, n_threads
        )
    finally:
        for t in range(n_trees):
            _free(&found[t])
        free(found)
    return start_array, mask_array, weight_array


cdef void _collect(
    const Found* found, const int64_t[::1] tree_leaf, int64_t first_tree, int64_t last_tree,
    const int64_t[::1] start, uint64_t[:, ::1] mask, tally[::1] weight, int n_threads,
) noexcept:
    cdef int64_t t
    if mask.shape[0] == 0:
        return
    for t in prange(first_tree, last_tree, nogil=True, num_threads=n_threads, schedule="dynamic"):
        _collect_tree(
            &found[t], tree_leaf[t], tree_leaf[t + 1], mask.shape[1], &start[0], &mask[0, 0], &weight[0]
        )


cdef void _collect_tree(
    const Found* found, int64_t first_leaf, int64_t last_leaf, int64_t n_words, const int64_t* start,
    uint64_t* mask, tally* weight,
) noexcept nogil:
    cdef int64_t leaf, first, count
    for leaf in range(first_leaf, last_leaf):
        first, count = found.leaf_first[leaf - first_leaf], start[leaf + 1] - start[leaf]
        memcpy(mask + start[leaf] * n_words, found.masks + first * n_words,
               count * n_words * sizeof(uint64_t))
        memcpy(weight + start[leaf], (<tally*> found.weights) + first, count * sizeof(tally))


cdef struct Sums:
    # A `counter` twice for each numbered pattern of a unit: see `_add`.
    int64_t room
    void* items


cdef struct Scratch:
    # Room that the units and leaves of a tree share.
    int64_t room
    int32_t* occurring  # numbers of patterns that occur at a unit
    void* weights       # theirs
    void* by_mask       # weights by mask of a small leaf, zeros between leaves
    uint64_t* words     # a mask


cdef int _scratch_init(
    Scratch* scratch, const UnitView* units, int64_t first_leaf, int64_t last_leaf, int64_t size
) noexcept nogil:
    cdef int64_t leaf, n_players, most = 0
    for leaf in range(first_leaf, last_leaf):
        n_players = units.player_start[leaf + 1] - units.player_start[leaf]
        if n_players <= TABLE_PLAYERS:
            most = max(most, n_players)
    scratch.room, scratch.occurring, scratch.weights = 0, NULL, NULL
    scratch.by_mask = calloc(<int64_t> 1 << most, size)
    scratch.words = <uint64_t*> calloc(units.n_words, sizeof(uint64_t))
    return -1 if scratch.by_mask == NULL or scratch.words == NULL else 0


cdef void _scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.occurring)
    free(scratch.weights)
    free(scratch.by_mask)
    free(scratch.words)


cdef void _count_tree(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t tree,
    int64_t first_leaf, int64_t last_leaf, const tally* weights, Found* found,
) noexcept nogil:
    """Count block by block; after the last block the sums of each unit become entries.

    Where one block has all rows the units share their sums, which stay in a fast cache.
    """
    cdef int64_t first = units.tree_unit[tree], n_units = units.tree_unit[tree + 1] - first
    cdef int64_t row = 0, m, u, n_occurring, item = sizeof(uint32_t)
    cdef Sums* sums = <Sums*> calloc(n_units + 1, sizeof(Sums))
    cdef Sums* own
    cdef Scratch scratch
    cdef TreeNumbers numbers
    if tally is double:
        item = sizeof(double)
    memset(&numbers, 0, sizeof(TreeNumbers))
    found.leaf_first = <int64_t*> calloc(last_leaf - first_leaf, sizeof(int64_t))
    found.leaf_count = <int64_t*> calloc(last_leaf - first_leaf, sizeof(int64_t))
    found.failed = _scratch_init(&scratch, units, first_leaf, last_leaf, sizeof(tally)) < 0
    found.failed |= (
        numbers_init(&numbers, units, tree, codes.n_rows) < 0 or sums == NULL
        or found.leaf_first == NULL or found.leaf_count == NULL
    )
    while row < codes.n_rows and not found.failed:
        m = min(numbers.most_rows, codes.n_rows - row)
        for u in range(n_units):
            found.failed |= number_unit(&numbers, codes, tests, units, first + u, row, m) < 0
            if found.failed:
                break
            if units.leaf_start[first + u] == units.leaf_start[first + u + 1]:
                continue  # no leaf hangs from it
            own = &sums[u if codes.n_rows > numbers.most_rows else 0]
            if _make_room(own, 2 * _n_numbers(units, &numbers, first + u), item) < 0:
                n_occurring = -1
            elif tally is int64_t:
                n_occurring = _sum(
                    units, &numbers, first + u, row, m, codes.n_rows, NULL,
                    <uint32_t*> own.items, &scratch,
                )
            else:
                n_occurring = _sum(
                    units, &numbers, first + u, row, m, codes.n_rows, weights,
                    <double*> own.items, &scratch,
                )
            found.failed = n_occurring < 0 or _fold[tally](
                units, first + u, first_leaf, &numbers, n_occurring, <tally*> scratch.weights,
                &scratch, found,
            ) < 0
        row += m
    for u in range(n_units if sums != NULL else 0):
        free(sums[u].items)
    free(sums)
    _scratch_free(&scratch)
    numbers_free(&numbers)


cdef int64_t _n_numbers(
    const UnitView* units, const TreeNumbers* numbers, int64_t unit
) noexcept nogil:
    if units.is_dense[unit]:
        return n_patterns(units, unit)
    return numbers.deep[unit - numbers.first_unit].size


cdef int _make_room(Sums* sums, int64_t size, int64_t item) noexcept nogil:
    """Make room for `size` sums of `item` bytes, the new ones zero."""
    cdef int64_t more
    cdef char* grown
    if size <= sums.room:
        return 0
    more = max(size, 2 * sums.room)
    grown = <char*> realloc(sums.items, more * item)
    if grown == NULL:
        return -1
    memset(grown + sums.room * item, 0, (more - sums.room) * item)
    sums.items, sums.room = grown, more
    return 0


ctypedef fused number_type:
    uint16_t
    int32_t


cdef int64_t _sum(
    const UnitView* units, const TreeNumbers* numbers, int64_t unit, int64_t row, int64_t m,
    int64_t n_rows, const double* weights, counter* sums, Scratch* scratch,
) noexcept nogil:
    """Add a block's rows at a unit; after the last list the numbers that occur.

    How many those are, zero before, or -1 if there is no memory.
    """
    cdef const double* own = NULL if weights == NULL else weights + row
    if units.is_dense[unit]:
        _add(short_numbers(numbers, units, unit), m, own, sums)
    else:
        _add(deep_numbers(numbers, units, unit), m, own, sums)
    if row + m < n_rows:
        return 0
    return _occurring(_n_numbers(units, numbers, unit), sums, scratch)


cdef void _add(
    const number_type* number, int64_t m, const double* weights, counter* sums
) noexcept nogil:
    """Add to sums[2 * number] for even rows and to its neighbour for odd ones.

    Rows that follow one another often have the same pattern, and would wait for each other.
    """
    cdef int64_t r
    if counter is double:
        for r in range(m):
            sums[2 * number[r] + r % 2] += weights[r]
    else:
        for r in range(m // 2):
            sums[2 * number[2 * r]] += 1
            sums[2 * number[2 * r + 1] + 1] += 1
        if m % 2:
            sums[2 * number[m - 1]] += 1


cdef int64_t _occurring(int64_t n_numbers, counter* sums, Scratch* scratch) noexcept nogil:
    """List the numbers that have weight, and their weights, in order; zeros take their place.

    How many there are, or -1 if there is no memory.
    """
    cdef int64_t number, size = 0
    if n_numbers > scratch.room:
        free(scratch.occurring)
        free(scratch.weights)
        scratch.occurring = <int32_t*> malloc(n_numbers * sizeof(int32_t))
        scratch.weights = malloc(n_numbers * sizeof(int64_t))
        scratch.room = n_numbers
        if scratch.occurring == NULL or scratch.weights == NULL:
            scratch.room = 0
            return -1
    # A number without weight is overwritten by the next: which have one could not be foretold.
    for number in range(n_numbers):
        scratch.occurring[size] = <int32_t> number
        if counter is double:
            (<double*> scratch.weights)[size] = sums[2 * number] + sums[2 * number + 1]
            size += (<double*> scratch.weights)[size] != 0  # weights need not be positive
        else:
            (<int64_t*> scratch.weights)[size] = <int64_t> sums[2 * number] + sums[2 * number + 1]
            size += (<int64_t*> scratch.weights)[size] != 0
    memset(sums, 0, 2 * n_numbers * sizeof(counter))
    return size


cdef int _fold(
    const UnitView* units, int64_t unit, int64_t first_leaf, const TreeNumbers* numbers,
    int64_t n_occurring, const tally* weights, Scratch* scratch, Found* found,
) noexcept nogil:
    """From the sums of a unit to entries of its leaves."""
    cdef int64_t k, leaf
    if n_occurring == 0:
        return 0
    for k in range(units.leaf_start[unit], units.leaf_start[unit + 1]):
        leaf = units.leaf[k]
        found.leaf_first[leaf - first_leaf] = found.size
        if units.player_start[leaf + 1] - units.player_start[leaf] <= TABLE_PLAYERS:
            if _fold_by_table[tally](
                units, unit, leaf, numbers, n_occurring, weights, scratch, found
            ) < 0:
                return -1
        elif _fold_by_keys[tally](
            units, unit, leaf, numbers, n_occurring, weights, scratch, found
        ) < 0:
            return -1
        found.leaf_count[leaf - first_leaf] = found.size - found.leaf_first[leaf - first_leaf]
    return 0


cdef int _fold_by_table(
    const UnitView* units, int64_t unit, int64_t leaf, const TreeNumbers* numbers,
    int64_t n_occurring, const tally* weights, Scratch* scratch, Found* found,
) noexcept nogil:
    cdef int64_t n_masks = <int64_t> 1 << (units.player_start[leaf + 1] - units.player_start[leaf])
    cdef int64_t e, w, mask
    cdef LeafMasks masks
    cdef tally* by_mask = <tally*> scratch.by_mask
    cdef uint64_t* words = scratch.words
    if units.is_dense[unit]:
        leaf_masks_init(&masks, units, unit, leaf)
        for e in range(n_occurring):
            by_mask[dense_mask(&masks, scratch.occurring[e])] += weights[e]
    else:
        for e in range(n_occurring):
            leaf_mask(units, numbers, unit, leaf, scratch.occurring[e], words)
            by_mask[words[0]] += weights[e]
    # No more masks occur than patterns do. One that does not is overwritten by the next.
    if _reserve(found, units.n_words, min(n_masks, n_occurring) + 1, sizeof(tally)) < 0:
        return -1
    for mask in range(n_masks):
        found.masks[found.size * units.n_words] = mask
        for w in range(1, units.n_words):
            found.masks[found.size * units.n_words + w] = 0
        (<tally*> found.weights)[found.size] = by_mask[mask]
        found.size += by_mask[mask] != 0
        by_mask[mask] = 0
    return 0


cdef int _fold_by_keys(
    const UnitView* units, int64_t unit, int64_t leaf, const TreeNumbers* numbers,
    int64_t n_occurring, const tally* weights, Scratch* scratch, Found* found,
) noexcept nogil:
    cdef int64_t first = found.size, e, entry
    cdef Keys masks
    cdef int status = keys_init(&masks, units.n_words)
    for e in range(n_occurring if status == 0 else 0):
        leaf_mask(units, numbers, unit, leaf, scratch.occurring[e], scratch.words)
        entry = number_of(&masks, scratch.words)
        if entry < 0:
            status = -1
            break
        if first + entry < found.size:
            (<tally*> found.weights)[first + entry] += weights[e]
            continue
        status = _reserve(found, units.n_words, 1, sizeof(tally))
        if status < 0:
            break
        memcpy(found.masks + found.size * units.n_words, scratch.words,
               units.n_words * sizeof(uint64_t))
        (<tally*> found.weights)[found.size] = weights[e]
        found.size += 1
    keys_free(&masks)
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


def add_lines(
    BinnedRows rows, NodeTests tests, geometry, const int64_t[::1] slope_start,
    const int64_t[::1] slope_number, const double[:, ::1] slope, const double[:, ::1] numbers,
    const int32_t[::1] tree_output, double[:, ::1] out, int n_threads,
):
    """Add what the slopes of linear leaves give to the raw prediction of every row.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    slope_start : ndarray of shape (n_nodes + 1,), int64
        The slopes of leaf ``i`` are ``slope_start[i]`` up to ``slope_start[i + 1]``.
    slope_number : ndarray of shape (n_slopes,), int64
        Which of the numbers of a row a slope multiplies.
    slope : ndarray of shape (n_slopes, n_values), float64
    numbers : ndarray of shape (n_numbers, n_rows), float64
    tree_output : ndarray of shape (n_trees,), int32
    out : ndarray of shape (n_rows, n_outputs), float64
    n_threads : int
    """
    cdef Codes codes = rows.view()
    cdef Tests test = tests.view()
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef int64_t n_trees = tree_start.shape[0] - 1, row, t, e, node, v
    for row in prange(codes.n_rows, nogil=True, num_threads=n_threads, schedule="static"):
        for t in range(n_trees):
            node = _walk(&codes, &test, &left[0], &right[0], tree_start[t], row)
            for e in range(slope_start[node], slope_start[node + 1]):
                for v in range(slope.shape[1]):
                    out[row, tree_output[t] + v] += slope[e, v] * numbers[slope_number[e], row]
