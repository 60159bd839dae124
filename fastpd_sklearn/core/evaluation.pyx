"""Attributions of explained rows: a table a unit, looked up by each row's pattern.

The work is cut into *batches* of trees, so that their tables stay in a cache, and *spans* of rows. For each of them

1. the tables are made, trees shared among the threads: over all patterns for a dense unit that
   has several times as many rows to explain as patterns; for any other unit over the patterns
   that occur in the span, which are counted through (and each row's place is kept);
2. blocks of rows are shared among the threads, and every row adds up its table entries, tree by
   tree in order: the same bits for any number of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.coverage cimport Coverage, Rule, Terms, values_everywhere
from fastpd_sklearn.core.numbering cimport (
    Keys, TreeNumbers, UnitArrays, UnitView, block_rows, keys_free, keys_init, leaf_mask,
    n_patterns, number_block, number_of, numbers_free, numbers_init, short_patterns, test_tree,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests

import numpy as np

cdef extern from "kernels.h" nogil:
    void gather_add(double*, const double*, const uint16_t*, int64_t)

cdef enum:
    DENSE_PLAYERS = 12     # the largest leaf for which values over all masks are ever computed
    MOST_LISTED = 65536    # rows of a span whose patterns are listed: their places have 16 bits

WHOLE_ROWS = 4             # rows a pattern from which on a table is over all patterns
BATCH_BYTES = 1 << 20      # a thread, of the tables of a batch (a tree may need more): they stay cached
TABLE_BYTES = 1 << 27      # of one tree's tables, at most, where fewer rows at a time can see to it
INDEX_BYTES = 1 << 26      # of the kept places


cdef struct Table:
    int64_t n_patterns
    uint16_t* place     # of the pattern of each row of the span; NULL where the pattern says it
    double* value       # value[(v * n_slots + slot) * n_patterns + pattern]


cdef struct Job:
    # All that does not change within one call.
    Codes codes
    Tests tests
    const UnitView* units
    const int64_t* unit_term_start
    const int32_t* unit_term
    const int64_t* leaf_term_start
    const int32_t* leaf_term_slot
    const uint64_t* leaf_term_mask
    const int64_t* rule_start
    const double* rule_node
    const double* rule_weight
    const double* moment
    int64_t n_moments
    const double* leaf_value
    int64_t n_values
    const int32_t* tree_output
    int64_t n_words
    int64_t n_outputs
    const uint8_t* whole    # by unit: whether its table is over all patterns
    double* out


def attribute(
    BinnedRows rows, NodeTests tests, geometry, units, plan, Coverage coverage, rules,
    const double[:, ::1] leaf_value, const int32_t[::1] tree_output, double[:, :, ::1] out,
    int n_threads,
):
    """Add the value of every term for every row to `out`.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    units : Units
    plan : Plan
    coverage : Coverage
    rules : Rules
    leaf_value : ndarray of shape (n_leaves, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    out : ndarray of shape (n_terms, n_outputs, n_rows), float64
    n_threads : int
    """
    cdef int64_t n_rows = rows.n_rows
    if out.shape[2] != n_rows or plan.n_terms != out.shape[0]:
        raise ValueError("out is not of shape (n_terms, n_outputs, n_rows)")
    if n_rows == 0 or out.shape[0] == 0 or units.n_units == 0 or len(plan.unit_term) == 0:
        return
    cdef UnitArrays arrays = UnitArrays(geometry, units)
    whole, span, batches = _layout(
        units, plan, n_rows, leaf_value.shape[1], n_threads
    )
    keep = _Keep()
    cdef Job job
    job.codes, job.tests, job.units = rows.view(), tests.view(), &arrays.view
    job.unit_term_start = <const int64_t*> keep.address(plan.unit_term_start, np.int64)
    job.unit_term = <const int32_t*> keep.address(plan.unit_term, np.int32)
    job.leaf_term_start = <const int64_t*> keep.address(plan.leaf_term_start, np.int64)
    job.leaf_term_slot = <const int32_t*> keep.address(plan.leaf_term_slot, np.int32)
    job.leaf_term_mask = <const uint64_t*> keep.address(plan.leaf_term_mask, np.uint64)
    job.rule_start = <const int64_t*> keep.address(rules.start, np.int64)
    job.rule_node = <const double*> keep.address(rules.node, np.float64)
    job.rule_weight = <const double*> keep.address(rules.weight, np.float64)
    job.moment = <const double*> keep.address(rules.moment, np.float64)
    job.n_moments = rules.moment.shape[1]
    job.whole = <const uint8_t*> keep.address(whole, np.uint8)
    job.leaf_value, job.n_values = &leaf_value[0, 0], leaf_value.shape[1]
    job.tree_output = &tree_output[0]
    job.n_words, job.n_outputs = geometry.n_words, out.shape[1]
    job.out = &out[0, 0, 0]
    cdef int64_t first
    for start, stop in batches:
        for first in range(0, n_rows, span):
            _batch(&job, coverage, start, stop, first, min(<int64_t> span, n_rows - first),
                   n_threads)


cdef class _Keep:
    """Keeps arrays alive while their addresses are in use."""

    cdef list arrays

    def __init__(self):
        self.arrays = []

    cdef size_t address(self, array, dtype) except? 0:
        array = np.ascontiguousarray(array, dtype)
        self.arrays.append(array)
        return array.ctypes.data


def _layout(units, plan, int64_t n_rows, int64_t n_values, int n_threads):
    """Which tables are over all patterns, the rows of a span, and the batches of trees.

    The number of threads decides on the batches alone, which no value depends on.
    """
    n_slots = np.diff(plan.unit_term_start)
    most = np.left_shift(1, np.minimum(units.n_bits, 40))
    whole = units.is_dense.astype(bool) & (WHOLE_ROWS * most <= n_rows)
    listed = (n_slots > 0) & ~whole
    span = n_rows
    if listed.any():
        span = min(n_rows, MOST_LISTED, max(256, INDEX_BYTES // (2 * int(listed.sum()))))
        # Deep units may have as many patterns as rows: take fewer rows if the tables would burst.
        entries = int(n_slots[listed & (most > span)].sum()) * n_values
        span = max(min(span, 256), min(span, TABLE_BYTES // max(entries, 1)))
    entries = n_slots * np.minimum(most, np.where(whole, 2**40, span))
    so_far = np.concatenate([[0], np.cumsum(entries * (8 * n_values))])
    per_tree = np.diff(so_far[units.tree_unit])
    batches, first, used = [], 0, 0
    for tree, size in enumerate(per_tree.tolist()):
        if used and used + size > BATCH_BYTES * n_threads:
            batches.append((first, tree))
            first, used = tree, 0
        used += size
    return whole, span, [*batches, (first, len(per_tree))]


cdef _batch(
    Job* job, Coverage coverage, int64_t first_tree, int64_t last_tree, int64_t first_row,
    int64_t n_rows, int n_threads,
):
    cdef int64_t first_unit = job.units.tree_unit[first_tree]
    cdef int64_t n_units = job.units.tree_unit[last_tree] - first_unit
    cdef int64_t t, u, block, n_nodes = 1
    cdef int64_t rows_a_block, n_blocks
    cdef bint failed = False
    cdef Table* tables = <Table*> calloc(n_units + 1, sizeof(Table))
    cdef int* status = <int*> calloc(last_tree - first_tree + 1, sizeof(int))
    cdef int* block_status
    if tables == NULL or status == NULL:
        free(tables)
        free(status)
        raise MemoryError("no memory for the tables of a batch of trees")
    for t in range(first_tree, last_tree):
        n_nodes = max(n_nodes, job.units.tree_start[t + 1] - job.units.tree_start[t])
    rows_a_block = block_rows(n_nodes)
    n_blocks = (n_rows + rows_a_block - 1) // rows_a_block
    block_status = <int*> calloc(n_blocks + 1, sizeof(int))
    with nogil:
        for t in prange(first_tree, last_tree, num_threads=n_threads, schedule="dynamic"):
            status[t - first_tree] = _prepare_tree(
                job, coverage, t, first_row, n_rows, tables + job.units.tree_unit[t] - first_unit
            )
        for t in range(last_tree - first_tree):
            failed = failed or status[t] < 0
        if not failed and block_status != NULL:
            for block in prange(n_blocks, num_threads=n_threads, schedule="static"):
                block_status[block] = _add_block(
                    job, tables, first_tree, last_tree, first_row, block * rows_a_block,
                    min(rows_a_block, n_rows - block * rows_a_block),
                )
            for block in range(n_blocks):
                failed = failed or block_status[block] < 0
        failed = failed or block_status == NULL
        for u in range(n_units):
            free(tables[u].place)
            free(tables[u].value)
        free(tables)
        free(status)
        free(block_status)
    if failed:
        raise MemoryError("no memory for the tables of a batch of trees; explain fewer rows at a time")


# --- step 1: the tables of a tree -----------------------------------------------------------------


cdef struct Scratch:
    # Room that the leaves of a tree share.
    double* layers      # see values_everywhere
    double* values
    int64_t values_room
    int32_t* by_mask    # by mask of a small leaf: its place among those that occur, or -1
    uint64_t* masks     # those that occur
    int32_t* index      # by pattern: the place of its leaf's mask
    int64_t room


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.layers)
    free(scratch.values)
    free(scratch.by_mask)
    free(scratch.masks)
    free(scratch.index)


cdef struct Listed:
    # The patterns of a unit that occur, by number, in the order of their arrival.
    int64_t size, room
    int32_t* number
    int32_t* place      # by number, -1 for one that has not occurred
    int64_t place_room


cdef int _prepare_tree(
    const Job* job, Coverage coverage, int64_t tree, int64_t first_row, int64_t n_rows,
    Table* tables,
) noexcept nogil:
    cdef int64_t first = job.units.tree_unit[tree], n_units = job.units.tree_unit[tree + 1] - first
    cdef int64_t u, n_listed = 0
    cdef int status
    cdef TreeNumbers numbers
    cdef Scratch scratch
    cdef Listed* listed = <Listed*> calloc(n_units + 1, sizeof(Listed))
    memset(&numbers, 0, sizeof(TreeNumbers))
    memset(&scratch, 0, sizeof(Scratch))
    status = -1 if listed == NULL else 0
    for u in range(n_units):
        if not job.whole[first + u] and _n_slots(job, first + u):
            tables[u].place = <uint16_t*> malloc(n_rows * sizeof(uint16_t))
            if tables[u].place == NULL:
                status = -1
            n_listed += 1
    if n_listed and status == 0:
        status = numbers_init(&numbers, job.units, tree)
        if status == 0:
            status = _list_rows(job, tree, first_row, n_rows, &numbers, listed, tables)
    for u in range(n_units):
        if status < 0 or _n_slots(job, first + u) == 0:
            continue
        tables[u].n_patterns = listed[u].size
        if job.whole[first + u]:
            tables[u].n_patterns = n_patterns(job.units, first + u)
        tables[u].value = <double*> calloc(
            job.n_values * _n_slots(job, first + u) * tables[u].n_patterns, sizeof(double)
        )
        if tables[u].value == NULL:
            status = -1
        else:
            status = _fill_table(
                job, coverage, first + u, &numbers, listed[u].number, &scratch, &tables[u]
            )
    for u in range(n_units if listed != NULL else 0):
        free(listed[u].number)
        free(listed[u].place)
    free(listed)
    numbers_free(&numbers)
    _free_scratch(&scratch)
    return status


cdef int64_t _n_slots(const Job* job, int64_t unit) noexcept nogil:
    return job.unit_term_start[unit + 1] - job.unit_term_start[unit]


cdef int _list_rows(
    const Job* job, int64_t tree, int64_t first_row, int64_t n_rows, TreeNumbers* numbers,
    Listed* listed, Table* tables,
) noexcept nogil:
    """List the patterns that occur in a span of rows, at every unit that asks for it."""
    cdef int64_t row = 0, m, u, r, number
    cdef bint is_short
    while row < n_rows:
        m = min(numbers.most_rows, n_rows - row)
        if number_block(numbers, &job.codes, &job.tests, job.units, tree, first_row + row, m) < 0:
            return -1
        for u in range(numbers.n_units):
            if tables[u].place == NULL:
                continue
            is_short = job.units.is_dense[numbers.first_unit + u]
            for r in range(m):
                if is_short:
                    number = numbers.short[u * numbers.most_rows + r]
                else:
                    number = numbers.number[u * numbers.most_rows + r]
                if _list(&listed[u], number) < 0:
                    return -1
                tables[u].place[row + r] = <uint16_t> listed[u].place[number]
        row += m
    return 0


cdef int _list(Listed* listed, int64_t number) noexcept nogil:
    """Give a number a place, if it has none yet; -1 if there is no memory."""
    cdef int64_t room
    cdef int32_t* grown
    if number >= listed.place_room:
        room = max(number + 1, 2 * listed.place_room + 64)
        grown = <int32_t*> realloc(listed.place, room * sizeof(int32_t))
        if grown == NULL:
            return -1
        memset(grown + listed.place_room, 255, (room - listed.place_room) * sizeof(int32_t))
        listed.place, listed.place_room = grown, room
    if listed.place[number] < 0:
        if listed.size == listed.room:
            room = 2 * listed.room + 16
            grown = <int32_t*> realloc(listed.number, room * sizeof(int32_t))
            if grown == NULL:
                return -1
            listed.number, listed.room = grown, room
        listed.number[listed.size] = <int32_t> number
        listed.place[number] = <int32_t> listed.size
        listed.size += 1
    return 0


cdef int _fill_table(
    const Job* job, Coverage coverage, int64_t unit, const TreeNumbers* numbers,
    const int32_t* listed, Scratch* scratch, Table* table,
) noexcept nogil:
    """Add the values of all the unit's leaves; `listed` is NULL where all patterns are meant."""
    cdef int64_t k
    if _grow_scratch(scratch, table.n_patterns, job.n_words) < 0:
        return -1
    for k in range(job.units.leaf_start[unit], job.units.leaf_start[unit + 1]):
        if _fill_leaf(job, coverage, unit, job.units.leaf[k], numbers, listed, scratch, table) < 0:
            return -1
    return 0


cdef int _fill_leaf(
    const Job* job, Coverage coverage, int64_t unit, int64_t leaf, const TreeNumbers* numbers,
    const int32_t* listed, Scratch* scratch, Table* table,
) noexcept nogil:
    cdef int64_t n_players = job.units.player_start[leaf + 1] - job.units.player_start[leaf]
    cdef int64_t n_masks, stride, k = job.leaf_term_start[leaf]
    cdef Terms terms
    cdef Rule rule
    terms.size, terms.n_words = job.leaf_term_start[leaf + 1] - k, job.n_words
    terms.mask = job.leaf_term_mask + k * job.n_words
    if terms.size == 0:
        return 0
    rule.n_nodes = job.rule_start[n_players + 1] - job.rule_start[n_players]
    rule.node = job.rule_node + job.rule_start[n_players]
    rule.weight = job.rule_weight + job.rule_start[n_players]
    rule.moment, rule.n_moments = job.moment, job.n_moments
    n_masks = _occurring_masks(job, unit, leaf, n_players, numbers, listed, table.n_patterns, scratch)
    if n_masks < 0:
        return -1
    if n_players <= DENSE_PLAYERS and _all_is_cheaper(
        n_players, n_masks, coverage.n_sources(leaf), terms.size, rule.n_nodes
    ):
        stride = <int64_t> 1 << n_players
        if _room_for_values(scratch, terms.size * stride) < 0 or _room_for_layers(scratch) < 0:
            return -1
        coverage.shares(leaf, n_players, scratch.layers)
        values_everywhere(n_players, &terms, &rule, scratch.layers, scratch.values)
        for k in range(table.n_patterns):
            scratch.index[k] = <int32_t> scratch.masks[scratch.index[k] * job.n_words]
    else:
        stride = n_masks
        if _room_for_values(scratch, terms.size * stride) < 0 or coverage.values_at(
            leaf, n_players, scratch.masks, n_masks, &terms, &rule, scratch.values
        ) < 0:
            return -1
    _add_leaf(job, unit, leaf, terms.size, stride, scratch, table)
    return 0


cdef bint _all_is_cheaper(
    int64_t n_players, int64_t n_masks, int64_t n_sources, int64_t n_terms, int64_t n_nodes
) noexcept nogil:
    """Whether to compute the values at all masks at once rather than at those that occur.

    A rough count of operations: terms share about half of their layers, whose loops are
    vectorised; and of the pairs about a quarter has both sides. It depends on nothing but the
    numbers at hand, so that the choice, and with it every bit of the result, is the same on any
    machine and for any number of threads.
    """
    cdef int64_t everywhere = n_nodes * n_terms * (n_players + 2) << n_players
    cdef int64_t pairs = n_masks * n_sources * (n_terms // (n_players + 1) + 1)
    return everywhere <= 8 * pairs


cdef int64_t _occurring_masks(
    const Job* job, int64_t unit, int64_t leaf, int64_t n_players, const TreeNumbers* numbers,
    const int32_t* listed, int64_t n_listed, Scratch* scratch,
) noexcept nogil:
    """List the leaf's masks that patterns lead to; scratch.index says which is whose."""
    cdef int64_t r, place, n_masks = 0
    cdef uint64_t* mask
    cdef Keys keys
    cdef bint small = n_players <= DENSE_PLAYERS
    if small:
        memset(scratch.by_mask, 255, sizeof(int32_t) << n_players)
    elif keys_init(&keys, job.n_words) < 0:
        return -1
    for r in range(n_listed):
        mask = scratch.masks + n_masks * job.n_words
        leaf_mask(job.units, numbers, unit, leaf, listed[r] if listed != NULL else r, mask)
        if small:
            place = scratch.by_mask[mask[0]]
            if place < 0:
                place = n_masks
                scratch.by_mask[mask[0]] = <int32_t> place
        else:
            place = number_of(&keys, mask)
            if place < 0:
                n_masks = -1
                break
        if place == n_masks:
            n_masks += 1
        scratch.index[r] = <int32_t> place
    if not small:
        keys_free(&keys)
    return n_masks


cdef void _add_leaf(
    const Job* job, int64_t unit, int64_t leaf, int64_t n_terms, int64_t stride,
    const Scratch* scratch, Table* table,
) noexcept nogil:
    cdef int64_t n_slots = _n_slots(job, unit), v, i, r
    cdef double value
    cdef double* entry
    cdef const double* share
    for v in range(job.n_values):
        value = job.leaf_value[leaf * job.n_values + v]
        if value == 0:
            continue
        for i in range(n_terms):
            entry = table.value + table.n_patterns * (
                v * n_slots + job.leaf_term_slot[job.leaf_term_start[leaf] + i]
            )
            share = scratch.values + i * stride
            for r in range(table.n_patterns):
                entry[r] += value * share[scratch.index[r]]


cdef int _grow_scratch(Scratch* scratch, int64_t n_listed, int64_t n_words) noexcept nogil:
    cdef int64_t n_masks = n_listed + 1
    if scratch.by_mask == NULL:
        scratch.by_mask = <int32_t*> malloc(sizeof(int32_t) << DENSE_PLAYERS)
        if scratch.by_mask == NULL:
            return -1
    if n_masks > scratch.room:
        free(scratch.index)
        free(scratch.masks)
        scratch.index = <int32_t*> malloc(n_masks * sizeof(int32_t))
        scratch.masks = <uint64_t*> malloc(n_masks * n_words * sizeof(uint64_t))
        scratch.room = n_masks
        if scratch.index == NULL or scratch.masks == NULL:
            scratch.room = 0
            return -1
    return 0


cdef int _room_for_values(Scratch* scratch, int64_t size) noexcept nogil:
    if size > scratch.values_room:
        free(scratch.values)
        scratch.values = <double*> malloc(size * sizeof(double))
        scratch.values_room = 0 if scratch.values == NULL else size
    return -1 if scratch.values == NULL else 0


cdef int _room_for_layers(Scratch* scratch) noexcept nogil:
    if scratch.layers == NULL:
        scratch.layers = <double*> malloc(((DENSE_PLAYERS + 1) * sizeof(double)) << DENSE_PLAYERS)
    return -1 if scratch.layers == NULL else 0


# --- step 2: the sums of a block of rows ----------------------------------------------------------


cdef int _add_block(
    const Job* job, const Table* tables, int64_t first_tree, int64_t last_tree, int64_t first_row,
    int64_t row, int64_t m,
) noexcept nogil:
    """Add the entries of `m` rows, from `row` of the span on, to the output."""
    cdef int64_t first_unit = job.units.tree_unit[first_tree], n_nodes = 0, t, u
    cdef bint tested
    cdef uint8_t* bits
    cdef uint16_t* short = <uint16_t*> malloc(m * sizeof(uint16_t))
    for t in range(first_tree, last_tree):
        n_nodes = max(n_nodes, job.units.tree_start[t + 1] - job.units.tree_start[t])
    bits = <uint8_t*> malloc(n_nodes * m + m)
    if short == NULL or bits == NULL:
        free(short)
        free(bits)
        return -1
    for t in range(first_tree, last_tree):
        tested = False
        for u in range(job.units.tree_unit[t], job.units.tree_unit[t + 1]):
            if tables[u - first_unit].value == NULL:
                continue
            if tables[u - first_unit].place != NULL:
                _add_unit(job, t, u, &tables[u - first_unit], first_row + row, m,
                          tables[u - first_unit].place + row)
                continue
            if not tested:
                test_tree(&job.codes, &job.tests, job.units, t, first_row + row, m, bits)
                tested = True
            short_patterns(job.units, t, u, bits, m, bits + n_nodes * m, short)
            _add_unit(job, t, u, &tables[u - first_unit], first_row + row, m, short)
    free(short)
    free(bits)
    return 0


cdef void _add_unit(
    const Job* job, int64_t tree, int64_t unit, const Table* table, int64_t row, int64_t m,
    const uint16_t* patterns,
) noexcept nogil:
    cdef int64_t n_slots = _n_slots(job, unit), v, slot, column
    for v in range(job.n_values):
        for slot in range(n_slots):
            column = job.unit_term[job.unit_term_start[unit] + slot] * job.n_outputs
            column += job.tree_output[tree] + v
            gather_add(job.out + column * job.codes.n_rows + row,
                       table.value + (v * n_slots + slot) * table.n_patterns, patterns, m)
