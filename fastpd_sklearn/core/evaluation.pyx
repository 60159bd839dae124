"""Attributions of explained rows: a table a unit, looked up by each row's pattern.

The work is cut into *batches* of trees, so that their tables fit into bounded memory, and *spans*
of rows. For each of them

1. the tables are made, trees shared among the threads: for a dense unit that has at least as many
   rows to explain as patterns, over all patterns; for any other over the patterns that occur in
   the span, which are numbered (the rows' numbers are kept);
2. blocks of rows are shared among the threads, and every row adds up its table entries, tree by
   tree in order: the same bits for any number of threads.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from fastpd_sklearn.core.coverage cimport Coverage, Rule, Terms, values_everywhere
from fastpd_sklearn.core.patterns cimport (
    Numbering, UnitArrays, UnitView, block_rows, leaf_mask, long_patterns, number_of,
    numbering_free, numbering_init, short_patterns, test_tree,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests

import numpy as np

cdef extern from "kernels.h" nogil:
    void gather_add(double*, const double*, const uint16_t*, int64_t)

cdef enum:
    DENSE_PLAYERS = 12     # the largest leaf for which values over all masks are ever computed
    MOST_NUMBERED = 65536  # rows of a span whose patterns are numbered: numbers have 16 bits

TABLE_BYTES = 1 << 27      # of all tables of a batch, at most (a single tree may need more)
INDEX_BYTES = 1 << 26      # of the kept numbers


cdef struct Table:
    int64_t n_patterns
    uint16_t* number    # of the pattern of each row of the span; NULL where the pattern is its own
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
    cdef UnitArrays arrays = UnitArrays(geometry, units)
    cdef int64_t n_rows = rows.n_rows
    if n_rows == 0 or out.shape[0] == 0 or units.n_units == 0 or len(plan.unit_term) == 0:
        return
    whole, span, batches = _layout(geometry, units, plan, n_rows, leaf_value.shape[1])
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


def _layout(geometry, units, plan, int64_t n_rows, int64_t n_values):
    """Which tables are over all patterns, the rows of a span and the first tree of each batch."""
    has_terms = np.diff(plan.unit_term_start) > 0
    n_patterns = np.left_shift(1, np.minimum(units.n_bits, 40))
    whole = units.is_dense.astype(bool) & (n_patterns <= n_rows)
    numbered = has_terms & ~whole
    span = n_rows
    if numbered.any():
        span = min(n_rows, MOST_NUMBERED, max(256, INDEX_BYTES // (2 * int(numbered.sum()))))
        # Deep leaves may have as many patterns as rows: take fewer rows if the tables would burst.
        entries = np.diff(plan.unit_term_start)[numbered & (n_patterns > span)].sum()
        span = max(min(span, 256), min(span, 8 * TABLE_BYTES // (8 * n_values * max(int(entries), 1))))
    entries = np.diff(plan.unit_term_start) * np.minimum(n_patterns, np.where(whole, 2**40, span))
    so_far = np.concatenate([[0], np.cumsum(entries * (8 * n_values))])
    per_tree = np.diff(so_far[units.tree_unit])
    batches, first, used = [], 0, 0
    for tree, size in enumerate(per_tree.tolist()):
        if used and used + size > TABLE_BYTES:
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
            free(tables[u].number)
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
    int32_t* place      # by mask of a small leaf: its place among those that occur, or -1
    uint64_t* masks
    int32_t* index      # by pattern: where its leaf's mask is
    int64_t room


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.layers)
    free(scratch.values)
    free(scratch.place)
    free(scratch.masks)
    free(scratch.index)


cdef int _prepare_tree(
    const Job* job, Coverage coverage, int64_t tree, int64_t first_row, int64_t n_rows,
    Table* tables,
) noexcept nogil:
    cdef int64_t first = job.units.tree_unit[tree], n_units = job.units.tree_unit[tree + 1] - first
    cdef int64_t u, n_numbered = 0
    cdef int status = 0
    cdef Scratch scratch
    cdef Numbering* numbered = <Numbering*> calloc(n_units + 1, sizeof(Numbering))
    memset(&scratch, 0, sizeof(Scratch))
    if numbered == NULL:
        return -1
    for u in range(n_units):
        if not job.whole[first + u] and _n_slots(job, first + u):
            tables[u].number = <uint16_t*> malloc(n_rows * sizeof(uint16_t))
            if tables[u].number == NULL or numbering_init(&numbered[u], _key_words(job, first + u)) < 0:
                status = -1
            n_numbered += 1
    if n_numbered and status == 0:
        status = _number_rows(job, tree, first_row, n_rows, numbered, tables)
    for u in range(n_units):
        if status < 0 or _n_slots(job, first + u) == 0:
            continue
        if job.whole[first + u]:
            tables[u].n_patterns = <int64_t> 1 << (
                job.units.bit_start[first + u + 1] - job.units.bit_start[first + u]
            )
        else:
            tables[u].n_patterns = numbered[u].size
        tables[u].value = <double*> calloc(
            job.n_values * _n_slots(job, first + u) * tables[u].n_patterns, sizeof(double)
        )
        if tables[u].value == NULL:
            status = -1
            break
        status = _fill_table(job, coverage, first + u, numbered[u].keys, &scratch, &tables[u])
    for u in range(n_units):
        numbering_free(&numbered[u])
    free(numbered)
    _free_scratch(&scratch)
    return status


cdef int64_t _n_slots(const Job* job, int64_t unit) noexcept nogil:
    return job.unit_term_start[unit + 1] - job.unit_term_start[unit]


cdef int64_t _key_words(const Job* job, int64_t unit) noexcept nogil:
    return 1 if job.units.is_dense[unit] else job.n_words


cdef int _number_rows(
    const Job* job, int64_t tree, int64_t first_row, int64_t n_rows, Numbering* numbered,
    Table* tables,
) noexcept nogil:
    """Number the patterns that occur in a span of rows, at every unit that asks for it."""
    cdef int64_t first = job.units.tree_unit[tree], n_units = job.units.tree_unit[tree + 1] - first
    cdef int64_t n_nodes = job.units.tree_start[tree + 1] - job.units.tree_start[tree]
    cdef int64_t most = block_rows(n_nodes), row = 0, m, u, r, number, n_words
    cdef int status = 0
    cdef uint8_t* bits = <uint8_t*> malloc(n_nodes * most + most)
    cdef uint8_t* met = bits + n_nodes * most
    cdef uint16_t* short = <uint16_t*> malloc(most * sizeof(uint16_t))
    cdef uint64_t* words = <uint64_t*> malloc(most * (job.n_words + 1) * sizeof(uint64_t))
    if bits == NULL or short == NULL or words == NULL:
        status = -1
    while row < n_rows and status == 0:
        m = min(most, n_rows - row)
        test_tree(&job.codes, &job.tests, job.units, tree, first_row + row, m, bits)
        for u in range(n_units):
            if tables[u].number == NULL:
                continue
            n_words = _key_words(job, first + u)
            if job.units.is_dense[first + u]:
                short_patterns(job.units, tree, first + u, bits, m, met, short)
                for r in range(m):
                    words[r] = short[r]
            else:
                long_patterns(job.units, tree, first + u, bits, m, n_words, met,
                              words + most * n_words, words)
            for r in range(m):
                number = number_of(&numbered[u], words + r * n_words)
                if number < 0:
                    status = -1
                tables[u].number[row + r] = <uint16_t> number
        row += m
    free(bits)
    free(short)
    free(words)
    return status


cdef int _fill_table(
    const Job* job, Coverage coverage, int64_t unit, const uint64_t* patterns, Scratch* scratch,
    Table* table,
) noexcept nogil:
    """Add the values of all the unit's leaves; `patterns` is NULL where all of them are meant."""
    cdef int64_t k
    if _grow_scratch(scratch, table.n_patterns, job.n_words) < 0:
        return -1
    for k in range(job.units.leaf_start[unit], job.units.leaf_start[unit + 1]):
        if _fill_leaf(job, coverage, unit, job.units.leaf[k], patterns, scratch, table) < 0:
            return -1
    return 0


cdef int _fill_leaf(
    const Job* job, Coverage coverage, int64_t unit, int64_t leaf, const uint64_t* patterns,
    Scratch* scratch, Table* table,
) noexcept nogil:
    cdef int64_t n_players = job.units.player_start[leaf + 1] - job.units.player_start[leaf]
    cdef int64_t n_masks, stride, k = job.leaf_term_start[leaf]
    cdef const uint64_t* masks = scratch.masks
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
    if n_players <= DENSE_PLAYERS:
        n_masks = _occurring_masks(job, unit, leaf, n_players, patterns, table.n_patterns, scratch)
    else:  # a single leaf: its patterns are its masks
        n_masks, masks = table.n_patterns, patterns
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
        if _room_for_values(scratch, terms.size * stride) < 0:
            return -1
        if coverage.values_at(
            leaf, n_players, masks, n_masks, &terms, &rule, scratch.values
        ) < 0:
            return -1
        if n_players > DENSE_PLAYERS:
            for k in range(n_masks):
                scratch.index[k] = <int32_t> k
    _add_leaf(job, unit, leaf, terms.size, stride, scratch, table)
    return 0


cdef bint _all_is_cheaper(
    int64_t n_players, int64_t n_masks, int64_t n_sources, int64_t n_terms, int64_t n_nodes
) noexcept nogil:
    """Whether to compute the values at all masks at once rather than at those that occur.

    Counts multiplications; depends on nothing but the numbers at hand, so that the choice and
    with it every bit of the result are the same on any machine.
    """
    cdef int64_t everywhere = n_nodes * n_terms * (n_players + 2) << n_players
    return everywhere <= 2 * n_masks * n_sources * (n_terms + 3)


cdef int64_t _occurring_masks(
    const Job* job, int64_t unit, int64_t leaf, int64_t n_players, const uint64_t* patterns,
    int64_t n_patterns, Scratch* scratch,
) noexcept nogil:
    """List the leaf's masks that patterns lead to; scratch.index says which is whose."""
    cdef int64_t r, n_masks = 0
    cdef uint64_t mask
    memset(scratch.place, 255, sizeof(int32_t) << n_players)
    for r in range(n_patterns):
        mask = leaf_mask(job.units, leaf, patterns[r] if patterns != NULL else <uint64_t> r)
        if scratch.place[mask] < 0:
            scratch.place[mask] = <int32_t> n_masks
            memset(scratch.masks + n_masks * job.n_words, 0, job.n_words * sizeof(uint64_t))
            scratch.masks[n_masks * job.n_words] = mask
            n_masks += 1
        scratch.index[r] = scratch.place[mask]
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


cdef int _grow_scratch(Scratch* scratch, int64_t n_patterns, int64_t n_words) noexcept nogil:
    cdef int64_t n_masks = max(n_patterns, <int64_t> 1)
    if scratch.place == NULL:
        scratch.place = <int32_t*> malloc(sizeof(int32_t) << DENSE_PLAYERS)
        if scratch.place == NULL:
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
            if tables[u - first_unit].number != NULL:
                _add_unit(job, t, u, &tables[u - first_unit], first_row + row, m,
                          tables[u - first_unit].number + row)
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
