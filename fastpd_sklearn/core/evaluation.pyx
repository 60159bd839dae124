"""Attributions of explained rows: a table a unit, looked up by each row's pattern.

The work is cut into *batches* of trees, whose tables are bounded, and *spans* of rows. For each

1. the patterns that occur in the span are listed, trees shared among the threads, and each row's
   place in the list is kept; not so for dense units that have several times as many rows to
   explain as patterns: their tables are over all patterns;
2. the tables are made, units shared among the threads;
3. blocks of rows are shared among the threads, and every row adds up its table entries, tree by
   tree in order: the same bits for any number of threads.

A table has the values of a pattern side by side, so that a look-up reads a line or two of memory.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.coverage cimport (
    Coverage, Rule, Terms, add_mixtures, mixture_value, mixtures, values_everywhere,
)
from fastpd_sklearn.core.numbering cimport (
    Keys, LeafMasks, TreeNumbers, UnitArrays, UnitView, block_rows, dense_mask, keys_free,
    keys_init, leaf_mask, leaf_masks_init, n_patterns, number_block, number_of, numbers_free,
    numbers_init, unit_patterns,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests

import numpy as np

cdef extern from "kernels.h" nogil:
    int64_t popcount "popcount_64"(uint64_t)
    void gather_one(double*, const double*, int64_t, const uint16_t*, int64_t)
    void gather_four(double* const*, const double*, int64_t, const uint16_t*, int64_t)

cdef enum:
    DENSE_PLAYERS = 12     # the largest leaf for which terms of any size are computed at all masks
    MIXED_PLAYERS = 20     # the same for terms of one or two players, see mixtures
    TABLE_PLAYERS = 14     # the largest leaf whose occurring masks are found in a table of all
    MOST_LISTED = 65536    # rows of a span whose patterns are listed: their places have 16 bits
    LINE_ROWS = 256        # rows whose lines of a table stay cached from column to column

WHOLE_ROWS = 4             # rows a pattern from which on a table is over all patterns
BATCH_BYTES = 1 << 20      # a thread, of the tables of a batch (a tree may need more): they stay cached
FEW_ROWS = 1 << 14         # up to which tables are read so seldom that batches are better large
LARGE_BATCHES = 16         # times as large
TABLE_BYTES = 1 << 27      # of one tree's tables, at most, where fewer rows at a time can see to it
INDEX_BYTES = 1 << 26      # of the kept places


cdef struct Table:
    int64_t n_patterns
    int64_t width       # values of a pattern: terms x values of a leaf
    uint16_t* place     # of the pattern of each row of the span; NULL where the pattern says it
    double** column     # of the output, for each of the values: that of the first row
    double* value       # value[pattern * width + slot * n_values + v]


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
    bint is_interior        # see Rule
    const uint8_t* whole    # by unit: whether its table is over all patterns
    double* out


def attribute(
    BinnedRows rows, NodeTests tests, geometry, units, plan, coverage, rules,
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
    whole, span, tree_bytes = _layout(units, plan, n_rows, leaf_value.shape[1])
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
    job.is_interior = rules.is_interior
    job.n_words, job.n_outputs = geometry.n_words, out.shape[1]
    job.out = &out[0, 0, 0]
    cdef int64_t first, room = BATCH_BYTES * n_threads * (LARGE_BATCHES if n_rows <= FEW_ROWS else 1)
    for first_tree, last_tree, part in coverage.parts(n_threads):
        for start, stop in _batches(tree_bytes[first_tree:last_tree], room):
            for first in range(0, n_rows, span):
                _batch(&job, part, first_tree + start, first_tree + stop, first,
                       min(<int64_t> span, n_rows - first), n_threads)


cdef class _Keep:
    """Keeps arrays alive while their addresses are in use."""

    cdef list arrays

    def __init__(self):
        self.arrays = []

    cdef size_t address(self, array, dtype) except? 0:
        array = np.ascontiguousarray(array, dtype)
        self.arrays.append(array)
        return array.ctypes.data


def _layout(units, plan, int64_t n_rows, int64_t n_values):
    """Which tables are over all patterns, the rows of a span, and the bytes of a tree's tables."""
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
    return whole, span, np.diff(so_far[units.tree_unit])


def _batches(tree_bytes, int64_t room):
    """Runs of trees whose tables are made at a time: no value depends on them."""
    batches, first, used = [], 0, 0
    for tree, size in enumerate(tree_bytes.tolist()):
        if used and used + size > room:
            batches.append((first, tree))
            first, used = tree, 0
        used += size
    return [*batches, (first, len(tree_bytes))]


cdef _batch(
    Job* job, Coverage coverage, int64_t first_tree, int64_t last_tree, int64_t first_row,
    int64_t n_rows, int n_threads,
):
    cdef int64_t first_unit = job.units.tree_unit[first_tree]
    cdef int64_t n_units = job.units.tree_unit[last_tree] - first_unit
    cdef int64_t t, u, block, rows_a_block = 1, n_blocks
    cdef bint failed = False
    cdef Table* tables = <Table*> calloc(n_units + 1, sizeof(Table))
    cdef int* status = <int*> calloc(n_units + 1, sizeof(int))
    cdef Listed* listed = <Listed*> calloc(last_tree - first_tree + 1, sizeof(Listed))
    cdef int* block_status
    if tables == NULL or status == NULL or listed == NULL:
        free(tables)
        free(status)
        free(listed)
        raise MemoryError("no memory for the tables of a batch of trees")
    with nogil:
        for t in prange(first_tree, last_tree, num_threads=n_threads, schedule="dynamic"):
            _list_tree(
                job, t, first_row, n_rows, &listed[t - first_tree],
                tables + job.units.tree_unit[t] - first_unit,
            )
        for t in range(last_tree - first_tree):
            failed = failed or listed[t].failed
        if not failed:
            for u in prange(n_units, num_threads=n_threads, schedule="dynamic"):
                status[u] = _make_table(
                    job, coverage, first_tree, first_unit + u, first_row, listed, tables + u
                )
            for u in range(n_units):
                failed = failed or status[u] < 0
        for t in range(first_tree, last_tree):
            _free_listed(&listed[t - first_tree])
            rows_a_block = max(rows_a_block, block_rows(job.units, t))
        n_blocks = (n_rows + rows_a_block - 1) // rows_a_block
        block_status = <int*> calloc(n_blocks + 1, sizeof(int))
        failed = failed or block_status == NULL
        if not failed:
            for block in prange(n_blocks, num_threads=n_threads, schedule="static"):
                block_status[block] = _add_block(
                    job, tables, first_tree, last_tree, first_row, block * rows_a_block,
                    min(rows_a_block, n_rows - block * rows_a_block),
                )
            for block in range(n_blocks):
                failed = failed or block_status[block] < 0
        for u in range(n_units):
            free(tables[u].place)
            free(tables[u].column)
            free(tables[u].value)
        free(tables)
        free(status)
        free(listed)
        free(block_status)
    if failed:
        raise MemoryError("no memory for the tables of a batch of trees; explain fewer rows at a time")


# --- step 1: the patterns that occur --------------------------------------------------------------


cdef struct UnitList:
    # The patterns of a unit that occur, by number, in the order of their arrival.
    int64_t size, room
    int32_t* number
    int32_t* place      # by number, -1 for one that has not occurred
    int64_t place_room


cdef struct Listed:
    # What a tree's rows of the span have been found to do.
    TreeNumbers numbers
    UnitList* units
    int64_t n_units
    bint failed


cdef void _free_listed(Listed* listed) noexcept nogil:
    cdef int64_t u
    for u in range(listed.n_units if listed.units != NULL else 0):
        free(listed.units[u].number)
        free(listed.units[u].place)
    free(listed.units)
    numbers_free(&listed.numbers)


cdef void _list_tree(
    const Job* job, int64_t tree, int64_t first_row, int64_t n_rows, Listed* listed, Table* tables,
) noexcept nogil:
    """List the patterns of all units of a tree that ask for it."""
    cdef int64_t first = job.units.tree_unit[tree], u
    cdef bint any_listed = False
    listed.n_units = job.units.tree_unit[tree + 1] - first
    listed.units = <UnitList*> calloc(listed.n_units + 1, sizeof(UnitList))
    listed.failed = listed.units == NULL
    for u in range(listed.n_units):
        if not job.whole[first + u] and _n_slots(job, first + u):
            tables[u].place = <uint16_t*> malloc(n_rows * sizeof(uint16_t))
            listed.failed = listed.failed or tables[u].place == NULL
            any_listed = True
    if any_listed and not listed.failed:
        listed.failed = (
            numbers_init(&listed.numbers, job.units, tree) < 0
            or _list_rows(job, tree, first_row, n_rows, listed, tables) < 0
        )


cdef int64_t _n_slots(const Job* job, int64_t unit) noexcept nogil:
    return job.unit_term_start[unit + 1] - job.unit_term_start[unit]


cdef int _list_rows(
    const Job* job, int64_t tree, int64_t first_row, int64_t n_rows, Listed* listed, Table* tables,
) noexcept nogil:
    cdef TreeNumbers* numbers = &listed.numbers
    cdef int64_t row = 0, m, u, r, number
    cdef bint is_short
    while row < n_rows:
        m = min(numbers.most_rows, n_rows - row)
        if number_block(numbers, &job.codes, &job.tests, job.units, first_row + row, m) < 0:
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
                if _list(&listed.units[u], number) < 0:
                    return -1
                tables[u].place[row + r] = <uint16_t> listed.units[u].place[number]
        row += m
    return 0


cdef int _list(UnitList* listed, int64_t number) noexcept nogil:
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


# --- step 2: tables -------------------------------------------------------------------------------


cdef struct Scratch:
    # Room that the leaves of a unit share.
    double* layers      # see values_everywhere and mixtures
    int64_t layers_room
    double* everywhere  # values, or tables of mixtures, over all masks
    int64_t everywhere_room
    double* values      # values[mask place * terms + term]
    int64_t values_room
    int32_t* by_mask    # by mask of a small leaf: its place among those that occur, or -1
    uint64_t* masks     # those that occur
    int32_t* index      # by pattern: the place of its leaf's mask


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.layers)
    free(scratch.everywhere)
    free(scratch.values)
    free(scratch.by_mask)
    free(scratch.masks)
    free(scratch.index)


cdef int _make_table(
    const Job* job, Coverage coverage, int64_t first_tree, int64_t unit, int64_t first_row,
    const Listed* listed, Table* table,
) noexcept nogil:
    """Make the table of a unit, if it has terms; `listed` is that of the batch's first tree."""
    cdef int64_t tree = first_tree
    cdef const UnitList* patterns
    cdef int status
    cdef Scratch scratch
    if _n_slots(job, unit) == 0:
        return 0
    while job.units.tree_unit[tree + 1] <= unit:
        tree += 1
    listed += tree - first_tree
    patterns = listed.units + unit - job.units.tree_unit[tree]
    table.n_patterns = n_patterns(job.units, unit) if job.whole[unit] else patterns.size
    memset(&scratch, 0, sizeof(Scratch))
    status = _point_table(job, tree, unit, first_row, table)
    if status == 0:
        status = _fill_table(
            job, coverage, unit, &listed.numbers, patterns.number, &scratch, table
        )
    _free_scratch(&scratch)
    return status


cdef int _point_table(
    const Job* job, int64_t tree, int64_t unit, int64_t first_row, Table* table
) noexcept nogil:
    """Make room for a table of zeros, and say which columns its values belong to."""
    cdef int64_t n_slots = _n_slots(job, unit), slot, v, column
    table.width = n_slots * job.n_values
    table.value = <double*> calloc(table.width * table.n_patterns, sizeof(double))
    table.column = <double**> malloc(table.width * sizeof(double*))
    if table.value == NULL or table.column == NULL:
        return -1
    for slot in range(n_slots):
        for v in range(job.n_values):
            column = job.unit_term[job.unit_term_start[unit] + slot] * job.n_outputs
            column += job.tree_output[tree] + v
            table.column[slot * job.n_values + v] = (
                job.out + column * job.codes.n_rows + first_row
            )
    return 0


cdef int _fill_table(
    const Job* job, Coverage coverage, int64_t unit, const TreeNumbers* numbers,
    const int32_t* listed, Scratch* scratch, Table* table,
) noexcept nogil:
    """Add the values of all the unit's leaves; `listed` is NULL where all patterns are meant."""
    cdef int64_t k
    if _make_scratch(scratch, table.n_patterns, job.n_words) < 0:
        return -1
    for k in range(job.units.leaf_start[unit], job.units.leaf_start[unit + 1]):
        if _fill_leaf(job, coverage, unit, job.units.leaf[k], numbers, listed, scratch, table) < 0:
            return -1
    return 0


cdef int _fill_leaf(
    const Job* job, Coverage coverage, int64_t unit, int64_t leaf, const TreeNumbers* numbers,
    const int32_t* listed, Scratch* scratch, Table* table,
) noexcept nogil:
    """Add the values of a leaf, found in the way that takes the fewest operations.

    The choice depends on nothing but the numbers at hand, so that it, and with it every bit of the
    result, is the same on any machine and for any number of threads.
    """
    cdef int64_t n_players = job.units.player_start[leaf + 1] - job.units.player_start[leaf]
    cdef int64_t n_masks, k = job.leaf_term_start[leaf], largest, effort
    cdef Terms terms
    cdef Rule rule
    terms.size, terms.n_words = job.leaf_term_start[leaf + 1] - k, job.n_words
    terms.mask = job.leaf_term_mask + k * job.n_words
    if terms.size == 0:
        return 0
    rule.n_nodes = job.rule_start[n_players + 1] - job.rule_start[n_players]
    rule.node = job.rule_node + job.rule_start[n_players]
    rule.weight = job.rule_weight + job.rule_start[n_players]
    rule.is_interior = job.is_interior
    rule.moment, rule.n_moments = job.moment, job.n_moments
    n_masks = _occurring_masks(job, unit, leaf, n_players, numbers, listed, table.n_patterns, scratch)
    if n_masks < 0 or _room(&scratch.values, &scratch.values_room, terms.size * n_masks) < 0:
        return -1
    largest = _largest_term(&terms)
    effort = coverage.effort_at(leaf, n_players, n_masks, &terms, &rule)
    if (
        rule.is_interior and largest <= 2 and n_players <= MIXED_PLAYERS
        and rule.n_nodes * (n_players + 3 * largest) << n_players <= effort
    ):
        if _mix_everywhere(coverage, leaf, n_players, n_masks, largest, &terms, &rule, scratch) < 0:
            return -1
    elif (
        # Terms share about half of their layers.
        n_players <= DENSE_PLAYERS
        and rule.n_nodes * terms.size * (n_players + 2) << n_players <= effort
    ):
        if _value_everywhere(coverage, leaf, n_players, n_masks, &terms, &rule, scratch) < 0:
            return -1
    elif coverage.values_at(
        leaf, n_players, scratch.masks, n_masks, &terms, &rule, scratch.values
    ) < 0:
        return -1
    _add_leaf(job, leaf, terms.size, scratch, table)
    return 0


cdef int64_t _largest_term(const Terms* terms) noexcept nogil:
    """The size of the largest term."""
    cdef int64_t i, w, size, largest = 0
    for i in range(terms.size):
        size = 0
        for w in range(terms.n_words):
            size += popcount(terms.mask[i * terms.n_words + w])
        largest = max(largest, size)
    return largest


cdef int _mix_everywhere(
    Coverage coverage, int64_t leaf, int64_t n_players, int64_t n_masks, int64_t largest,
    const Terms* terms, const Rule* rule, Scratch* scratch,
) noexcept nogil:
    """Values at the masks that occur, by way of products of mixtures at all masks."""
    cdef int64_t size = <int64_t> 1 << n_players, k
    cdef bint few = largest == 1 and n_masks * (terms.size + 1) < size
    cdef double* mixed
    if (
        _room(&scratch.layers, &scratch.layers_room, 3 * size) < 0
        or _room(&scratch.everywhere, &scratch.everywhere_room, 0 if few else 5 * size) < 0
    ):
        return -1
    coverage.shares(leaf, n_players, scratch.layers)
    if few:
        memset(scratch.values, 0, n_masks * terms.size * sizeof(double))
    else:
        memset(scratch.everywhere, 0, (2 if largest == 1 else 5) * size * sizeof(double))
    for k in range(rule.n_nodes):
        mixed = mixtures(n_players, rule.node[k], scratch.layers)
        if few:
            _add_singles(mixed, rule.node[k], rule.weight[k], n_masks, terms, scratch)
        else:
            add_mixtures(
                n_players, largest == 2, rule.node[k], rule.weight[k], mixed, scratch.everywhere
            )
    if not few:
        _read_tables(n_players, n_masks, terms, scratch)
    return 0


cdef void _add_singles(
    const double* mixed, double t, double weight, int64_t n_masks, const Terms* terms,
    Scratch* scratch,
) noexcept nogil:
    """What a node adds to terms of one player at few masks; see `add_mixtures`."""
    cdef double* value = scratch.values
    cdef double own = weight / t, zero = weight / (t * (1.0 - t))
    cdef int64_t r, i
    cdef uint64_t p
    for r in range(n_masks):
        p = scratch.masks[r * terms.n_words]
        for i in range(terms.size):
            value[i] += own * mixed[p] - zero * mixed[p & ~terms.mask[i * terms.n_words]]
        value += terms.size


cdef void _read_tables(
    int64_t n_players, int64_t n_masks, const Terms* terms, Scratch* scratch
) noexcept nogil:
    cdef double* value = scratch.values
    cdef int64_t r, i
    cdef uint64_t p
    for r in range(n_masks):
        p = scratch.masks[r * terms.n_words]
        for i in range(terms.size):
            value[i] = mixture_value(
                n_players, terms.mask[i * terms.n_words], p, scratch.everywhere
            )
        value += terms.size


cdef int _value_everywhere(
    Coverage coverage, int64_t leaf, int64_t n_players, int64_t n_masks, const Terms* terms,
    const Rule* rule, Scratch* scratch,
) noexcept nogil:
    """Values at the masks that occur, from those at all masks."""
    cdef int64_t size = <int64_t> 1 << n_players, r, i
    if (
        _room(&scratch.layers, &scratch.layers_room, (n_players + 1) * size) < 0
        or _room(&scratch.everywhere, &scratch.everywhere_room, terms.size * size) < 0
    ):
        return -1
    coverage.shares(leaf, n_players, scratch.layers)
    values_everywhere(n_players, terms, rule, scratch.layers, scratch.everywhere)
    for r in range(n_masks):
        for i in range(terms.size):
            scratch.values[r * terms.size + i] = (
                scratch.everywhere[i * size + <int64_t> scratch.masks[r * terms.n_words]]
            )
    return 0


cdef int64_t _occurring_masks(
    const Job* job, int64_t unit, int64_t leaf, int64_t n_players, const TreeNumbers* numbers,
    const int32_t* listed, int64_t n_listed, Scratch* scratch,
) noexcept nogil:
    """List the leaf's masks that patterns lead to; scratch.index says which is whose."""
    cdef int64_t r, place, number, n_masks = 0
    cdef uint64_t* mask
    cdef Keys keys
    cdef LeafMasks at_leaf
    cdef bint small = n_players <= TABLE_PLAYERS, is_dense = job.units.is_dense[unit]
    if is_dense:
        leaf_masks_init(&at_leaf, job.units, unit, leaf)
    if small:
        memset(scratch.by_mask, 255, sizeof(int32_t) << n_players)
    elif keys_init(&keys, job.n_words) < 0:
        return -1
    for r in range(n_listed):
        mask = scratch.masks + n_masks * job.n_words
        number = listed[r] if listed != NULL else r
        if is_dense:
            memset(mask, 0, job.n_words * sizeof(uint64_t))
            mask[0] = dense_mask(&at_leaf, number)
        else:
            leaf_mask(job.units, numbers, unit, leaf, number, mask)
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
    const Job* job, int64_t leaf, int64_t n_terms, const Scratch* scratch, Table* table,
) noexcept nogil:
    cdef const int32_t* slot = job.leaf_term_slot + job.leaf_term_start[leaf]
    cdef const double* leaf_value = job.leaf_value + leaf * job.n_values
    cdef int64_t v, i, r
    cdef double value
    cdef double* entry
    cdef const double* share = scratch.values
    for i in range(n_terms):
        for v in range(job.n_values):
            value = leaf_value[v]
            entry = table.value + slot[i] * job.n_values + v
            for r in range(table.n_patterns):
                entry[r * table.width] += value * share[scratch.index[r] * n_terms + i]


cdef int _make_scratch(Scratch* scratch, int64_t n_listed, int64_t n_words) noexcept nogil:
    scratch.by_mask = <int32_t*> malloc(sizeof(int32_t) << TABLE_PLAYERS)
    scratch.index = <int32_t*> malloc((n_listed + 1) * sizeof(int32_t))
    scratch.masks = <uint64_t*> malloc((n_listed + 1) * n_words * sizeof(uint64_t))
    if scratch.by_mask == NULL or scratch.index == NULL or scratch.masks == NULL:
        return -1
    return 0


cdef int _room(double** array, int64_t* room, int64_t size) noexcept nogil:
    """Make room for `size` numbers, whatever they are; -1 if there is no memory."""
    if size > room[0]:
        free(array[0])
        array[0] = <double*> malloc(size * sizeof(double))
        room[0] = 0 if array[0] == NULL else size
    return -1 if array[0] == NULL and size else 0


# --- step 3: the sums of a block of rows ----------------------------------------------------------


cdef int _add_block(
    const Job* job, const Table* tables, int64_t first_tree, int64_t last_tree, int64_t first_row,
    int64_t row, int64_t m,
) noexcept nogil:
    """Add the entries of `m` rows, from `row` of the span on, to the output."""
    cdef int64_t first_unit = job.units.tree_unit[first_tree], n_units = 0, t, u, root
    cdef const Table* table
    cdef bint any_whole
    cdef uint16_t* patterns
    for t in range(first_tree, last_tree):
        n_units = max(n_units, job.units.tree_unit[t + 1] - job.units.tree_unit[t])
    patterns = <uint16_t*> malloc(n_units * m * sizeof(uint16_t))
    if patterns == NULL:
        return -1
    for t in range(first_tree, last_tree):
        root = job.units.tree_unit[t]
        any_whole = False
        for u in range(root, job.units.tree_unit[t + 1]):
            any_whole = any_whole or job.whole[u]
        for u in range(root, job.units.tree_unit[t + 1]):
            if any_whole and job.units.is_dense[u]:
                unit_patterns(
                    &job.codes, &job.tests, job.units, u, first_row + row, m,
                    patterns + (job.units.parent[u] - root) * m, patterns + (u - root) * m,
                )
            table = tables + u - first_unit
            if table.value != NULL:
                _add_unit(
                    table, row, m,
                    patterns + (u - root) * m if table.place == NULL else table.place + row,
                )
    free(patterns)
    return 0


cdef void _add_unit(
    const Table* table, int64_t row, int64_t m, const uint16_t* patterns
) noexcept nogil:
    """Add what `m` rows look up, four columns at a time."""
    cdef double* column[4]
    cdef int64_t block, first, n, k, j
    for block in range((m + LINE_ROWS - 1) // LINE_ROWS):
        first = block * LINE_ROWS
        n = min(<int64_t> LINE_ROWS, m - first)
        for k in range(0, table.width - 3, 4):
            for j in range(4):
                column[j] = table.column[k + j] + row + first
            gather_four(column, table.value + k, table.width, patterns + first, n)
        for k in range(table.width // 4 * 4, table.width):
            gather_one(
                table.column[k] + row + first, table.value + k, table.width, patterns + first, n
            )
