"""Attributions of explained rows: a table a unit, looked up by each row's pattern.

The work is cut into *batches* of trees, whose tables are bounded, and *spans* of rows. For each

1. the patterns that occur in the span are listed, trees shared among the threads, and each row's
   place in the list is kept; not so for dense units that have several times as many rows to
   explain as patterns: their tables are over all patterns;
2. the tables are made, units shared among the threads;
3. blocks of rows are shared among the threads, and every row adds up its table entries, tree by
   tree in order: the same bits for any number of threads.

Where the tables of a tree outgrow the caches, rows are taken in an order in which neighbours look up
neighbouring entries (see `ordering`). A table has the values of a pattern side by side, so that a
look-up reads a line or two of memory.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.coverage cimport (
    Coverage, Rule, Terms, add_mixtures, mixture_value, mixtures, values_everywhere,
)
from fastpd_sklearn.core.numbering cimport (
    Keys, LeafMasks, TreeNumbers, UnitArrays, UnitView, block_rows, deep_numbers, dense_mask,
    keys_free, keys_init, leaf_mask, leaf_masks_init, n_levels, n_patterns, number_of, number_unit,
    numbers_free, numbers_init, short_numbers, unit_patterns,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests

from typing import NamedTuple

import numpy as np

from fastpd_sklearn.core.ordering import by_likeness, reorder, taken

cdef extern from "room.h" nogil:
    void* wide_malloc(size_t)
cdef extern from "kernels.h" nogil:
    int64_t popcount "popcount_64"(uint64_t)
    void gather_16(
        double* const*, int64_t, const double*, int64_t, int64_t, const uint16_t*, int64_t)
    void gather_32(
        double* const*, int64_t, const double*, int64_t, int64_t, const uint32_t*, int64_t)

cdef enum:
    DENSE_PLAYERS = 12     # the largest leaf for which terms of any size are computed at all masks
    MIXED_PLAYERS = 20     # the same for terms of one or two players, see mixtures
    TABLE_PLAYERS = 14     # the largest leaf whose occurring masks are found in a table of all
    LEAF_MASKS = 8         # patterns of a unit for which it pays off to make a leaf's masks for all
    SPARE = 3              # numbers after a table: see kernels.h
    ROWS_TOGETHER = 64     # of a block are a multiple of that

WHOLE_ROWS = 4             # rows a pattern from which on a table is over all patterns
BATCH_BYTES = 1 << 20      # a thread, of the tables of a batch (a tree may need more): they stay cached
FEW_ROWS = 1 << 14         # up to which tables are read so seldom that batches are better large
LARGE_BATCHES = 16         # times as large
LIKE_ROWS = 1 << 15        # from which on it may be worth while to take rows by their likeness
LIKE_BYTES = 1 << 22       # of a tree's tables, on average, if it is
LIKE_LOOKUPS = 8           # a number of the result, that has to be put back in its place
PLACE_BYTES = 1 << 26      # of the places of a tree's rows, at most
PLACES_BYTES = 1 << 28     # of those of a batch, whose trees are listed side by side
TABLE_BYTES = 1 << 27      # of the tables at a time, at most, but for a single one


cdef struct Table:
    int64_t n_patterns
    int64_t width       # values of a pattern: terms x values of a leaf
    uint32_t* place     # of the pattern of each row of the span; NULL where the pattern says it
    double** column     # of the output, for each of the values: that of the first row
    double* value       # value[pattern * width + slot * n_values + v], in the room of all tables
    bint is_met         # whether patterns are looked up as they are here or at a unit below


cdef struct Room:
    # Where the tables of the time lie, one after the other.
    double* numbers
    int64_t size


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
    bint is_interior        # see Rule
    const uint8_t* whole    # by unit: whether its table is over all patterns
    int64_t table_bytes     # of the tables at a time
    double* out
    int64_t term_stride     # of numbers
    int64_t output_stride


def attribute(
    BinnedRows rows, NodeTests tests, geometry, units, plan, coverage, rules,
    const double[:, ::1] leaf_value, const int32_t[::1] tree_output, double[:, :, :] out,
    int n_threads,
):
    """Write the value of every term for every row to `out`.

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
        Of zeros, to which the values are added; see `room.zeros`. Rows lie side by side.
    n_threads : int
    """
    cdef int64_t n_rows = rows.n_rows
    if out.shape[2] != n_rows or plan.n_terms != out.shape[0]:
        raise ValueError("out is not of shape (n_terms, n_outputs, n_rows)")
    if n_rows > 1 and out.strides[2] != sizeof(double):
        raise ValueError("rows of out do not lie side by side")
    if n_rows == 0 or out.shape[0] == 0 or units.n_units == 0 or len(plan.unit_term) == 0:
        return
    layout = _layout(units, plan, n_rows, leaf_value.shape[1])
    args = tests, geometry, units, plan, coverage, rules, leaf_value, tree_output, out, n_threads
    if not _is_likeness_wanted(n_rows, layout.table_bytes, plan, out):
        _attribute(rows, layout, *args)
        return
    order = by_likeness(rows, tests, geometry)
    place = np.empty_like(order)
    place[order] = np.arange(n_rows)
    _attribute(taken(rows, order), layout, *args)
    reorder(out, place, n_threads)


def _is_likeness_wanted(int64_t n_rows, table_bytes, plan, out):
    """Whether caches are too small for the tables, and there are many look-ups a number of `out`."""
    n_lookups = LIKE_LOOKUPS * out.shape[0] * out.shape[1]
    return (
        n_rows >= LIKE_ROWS and table_bytes.mean() > LIKE_BYTES
        and len(plan.unit_term) > n_lookups
    )


def _attribute(
    BinnedRows rows, layout, NodeTests tests, geometry, units, plan, coverage, rules,
    const double[:, ::1] leaf_value, const int32_t[::1] tree_output, double[:, :, :] out,
    int n_threads,
):
    cdef int64_t n_rows = rows.n_rows
    cdef UnitArrays arrays = UnitArrays(geometry, units)
    cdef int64_t span = layout.span
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
    job.whole = <const uint8_t*> keep.address(layout.whole, np.uint8)
    job.leaf_value, job.n_values = &leaf_value[0, 0], leaf_value.shape[1]
    job.tree_output = &tree_output[0]
    job.is_interior = rules.is_interior
    job.n_words = geometry.n_words
    job.table_bytes = TABLE_BYTES
    job.out = &out[0, 0, 0]
    job.term_stride = out.strides[0] // <int64_t> sizeof(double)
    job.output_stride = out.strides[1] // <int64_t> sizeof(double)
    cdef int64_t first, most = BATCH_BYTES * n_threads * (LARGE_BATCHES if n_rows <= FEW_ROWS else 1)
    cdef Room room
    room.numbers, room.size = NULL, 0
    try:
        for first_tree, last_tree, part in coverage.parts(n_threads):
            batches = _batches(
                layout.table_bytes[first_tree:last_tree], layout.place_bytes[first_tree:last_tree],
                most, n_threads,
            )
            for start, stop in batches:
                for first in range(0, n_rows, span):
                    _batch(&job, &room, part, first_tree + start, first_tree + stop, first,
                           min(span, n_rows - first), n_threads)
    finally:
        free(room.numbers)


cdef class _Keep:
    """Keeps arrays alive while their addresses are in use."""

    cdef list arrays

    def __init__(self):
        self.arrays = []

    cdef size_t address(self, array, dtype) except? 0:
        array = np.ascontiguousarray(array, dtype)
        self.arrays.append(array)
        return array.ctypes.data


class _Layout(NamedTuple):
    """How the tables are laid out.

    Attributes
    ----------
    whole : ndarray of shape (n_units,), bool
        Which tables are over all patterns.
    span : int
        The rows of a span.
    table_bytes : ndarray of shape (n_trees,), int64
        Of the tables over all patterns, and of such over as many as there are rows.
    place_bytes : ndarray of shape (n_trees,), int64
        Of the places of a span's rows.
    """

    whole: np.ndarray
    span: int
    table_bytes: np.ndarray
    place_bytes: np.ndarray


def _layout(units, plan, int64_t n_rows, int64_t n_values):
    """How the tables of a plan are laid out."""
    width = np.diff(plan.unit_term_start) * n_values
    most = np.left_shift(1, np.minimum(units.n_bits, 40))
    whole = units.is_dense.astype(bool) & (WHOLE_ROWS * most <= n_rows)
    listed = (width > 0) & ~whole
    places = 4 * _by_tree(listed, units)
    span = n_rows
    if listed.any():
        # Deep units may have as many patterns as rows.
        span = min(span, PLACE_BYTES // int(places.max()), TABLE_BYTES // (8 * int(width.max())))
        span = max(span, min(n_rows, 256))
    entries = width * np.minimum(most, np.where(whole, 2**40, span))
    return _Layout(whole, span, 8 * _by_tree(entries, units), span * places)


def _by_tree(numbers, units):
    """Sums of the numbers of units, tree by tree."""
    return np.diff(np.concatenate([[0], np.cumsum(numbers)])[units.tree_unit])


def _batches(table_bytes, place_bytes, int64_t room, int64_t n_threads):
    """Runs of trees that are listed, and whose tables are made, at a time.

    No value depends on them. Where there are places, there is a tree for every thread.
    """
    batches, first, used, places = [], 0, 0, 0
    for tree, (size, kept) in enumerate(zip(table_bytes.tolist(), place_bytes.tolist())):
        shared = kept and tree - first < n_threads and places + kept <= PLACES_BYTES
        if used and used + size > room and not shared:
            batches.append((first, tree))
            first, used, places = tree, 0, 0
        used += size
        places += kept
    return [*batches, (first, len(table_bytes))]


cdef struct Batch:
    int64_t first_tree
    int64_t last_tree
    int64_t first_unit
    int64_t last_unit
    int64_t first_row
    int64_t n_rows
    Listed* listed      # by tree
    Table* tables       # by unit
    Room* room


cdef _batch(
    Job* job, Room* room, Coverage coverage, int64_t first_tree, int64_t last_tree, int64_t first_row,
    int64_t n_rows, int n_threads,
):
    cdef Batch batch
    cdef int status = -1
    batch.first_tree, batch.last_tree = first_tree, last_tree
    batch.first_unit, batch.last_unit = job.units.tree_unit[first_tree], job.units.tree_unit[last_tree]
    batch.first_row, batch.n_rows, batch.room = first_row, n_rows, room
    batch.listed = <Listed*> calloc(last_tree - first_tree + 1, sizeof(Listed))
    batch.tables = <Table*> calloc(batch.last_unit - batch.first_unit + 1, sizeof(Table))
    with nogil:
        if batch.listed != NULL and batch.tables != NULL:
            status = _run_batch(job, coverage, &batch, n_threads)
        _free_batch(&batch)
    if status < 0:
        raise MemoryError("no memory for the tables of a batch of trees; explain fewer rows at a time")


cdef void _free_batch(Batch* batch) noexcept nogil:
    cdef int64_t i
    for i in range(batch.last_tree - batch.first_tree if batch.listed != NULL else 0):
        _free_listed(&batch.listed[i])
    for i in range(batch.last_unit - batch.first_unit if batch.tables != NULL else 0):
        _free_table(&batch.tables[i])
    free(batch.listed)
    free(batch.tables)


cdef void _free_table(Table* table) noexcept nogil:
    free(table.place)
    free(table.column)
    table.place, table.column, table.value = NULL, NULL, NULL


cdef int _run_batch(Job* job, Coverage coverage, Batch* batch, int n_threads) noexcept nogil:
    """List the batch's patterns; then make and use its tables, as many as there is room for."""
    cdef int64_t t, first = batch.first_unit, last
    for t in prange(batch.first_tree, batch.last_tree, num_threads=n_threads, schedule="dynamic"):
        _list_tree(job, batch, t)
    for t in range(batch.last_tree - batch.first_tree):
        if batch.listed[t].failed:
            return -1
    while first < batch.last_unit:
        last = _group_end(job, batch, first)
        if (
            _place_tables(job, batch, first, last) < 0
            or _make_tables(job, coverage, batch, first, last, n_threads) < 0
            or _add_tables(job, batch, first, last, n_threads) < 0
        ):
            return -1
        for t in range(first, last):
            _free_table(&batch.tables[t - batch.first_unit])
        first = last
    return 0


cdef int64_t _group_end(const Job* job, const Batch* batch, int64_t first) noexcept nogil:
    """The end of the units from `first` on for whose tables there is room; it is at least one."""
    cdef int64_t unit = first, size, room = job.table_bytes
    while unit < batch.last_unit:
        size = _n_patterns(job, batch, unit) * _n_slots(job, unit) * job.n_values * sizeof(double)
        if unit > first and size > room:
            break
        room -= size
        unit += 1
    return unit


cdef int _place_tables(const Job* job, Batch* batch, int64_t first, int64_t last) noexcept nogil:
    """Give every unit that has terms a place for its table; -1 if there is no memory.

    Between two calls room is kept, as the system would have to find it anew and clear it.
    """
    cdef int64_t unit, size = 0
    cdef Table* table
    for unit in range(first, last):
        table = &batch.tables[unit - batch.first_unit]
        table.width, table.n_patterns = _n_slots(job, unit) * job.n_values, 0
        if table.width:
            table.n_patterns = _n_patterns(job, batch, unit)
            size += table.width * table.n_patterns + SPARE
    if size > batch.room.size:
        free(batch.room.numbers)
        batch.room.numbers = <double*> wide_malloc(size * sizeof(double))
        batch.room.size = size if batch.room.numbers != NULL else 0
    if batch.room.numbers == NULL and size:
        return -1
    size = 0
    for unit in range(first, last):
        table = &batch.tables[unit - batch.first_unit]
        if table.width:
            table.value = batch.room.numbers + size
            size += table.width * table.n_patterns + SPARE
    return 0


cdef int64_t _tree_of(const Job* job, const Batch* batch, int64_t unit) noexcept nogil:
    cdef int64_t tree = batch.first_tree, beyond = batch.last_tree, middle
    while beyond - tree > 1:
        middle = (tree + beyond) // 2
        if job.units.tree_unit[middle] <= unit:
            tree = middle
        else:
            beyond = middle
    return tree


cdef const UnitList* _listed(const Job* job, const Batch* batch, int64_t unit) noexcept nogil:
    """The patterns of a unit that have been listed."""
    cdef int64_t tree = _tree_of(job, batch, unit)
    return batch.listed[tree - batch.first_tree].units + unit - job.units.tree_unit[tree]


cdef int64_t _n_patterns(const Job* job, const Batch* batch, int64_t unit) noexcept nogil:
    if job.whole[unit]:
        return n_patterns(job.units, unit)
    return _listed(job, batch, unit).size


cdef int _make_tables(
    const Job* job, Coverage coverage, const Batch* batch, int64_t first, int64_t last,
    int n_threads,
) noexcept nogil:
    cdef int64_t unit
    cdef int failed = 0
    for unit in prange(first, last, num_threads=n_threads, schedule="dynamic"):
        failed += _make_table(job, coverage, batch, unit) < 0
    return -failed


cdef void _mark_met(const Job* job, Batch* batch, int64_t first, int64_t last) noexcept nogil:
    """Mark the units whose rows' patterns have to be found for tables of units from `first` on."""
    cdef int64_t unit, parent
    cdef Table* table
    for unit in range(batch.first_unit, last):
        table = &batch.tables[unit - batch.first_unit]
        table.is_met = table.value != NULL and table.place == NULL
    for unit in range(last - 1, batch.first_unit - 1, -1):
        parent = job.units.parent[unit]
        if parent >= 0 and batch.tables[unit - batch.first_unit].is_met:
            batch.tables[parent - batch.first_unit].is_met = True


cdef int _add_tables(
    const Job* job, Batch* batch, int64_t first, int64_t last, int n_threads
) noexcept nogil:
    cdef int64_t rows = 1, block, t, n_rounds
    cdef int failed = 0
    _mark_met(job, batch, first, last)
    for t in range(batch.first_tree, batch.last_tree):
        rows = max(rows, block_rows(job.units, t))
    # As many blocks for each thread, of about as many rows.
    n_rounds = (batch.n_rows + rows * n_threads - 1) // (rows * n_threads)
    rows = (batch.n_rows + n_rounds * n_threads - 1) // (n_rounds * n_threads)
    rows = (rows + ROWS_TOGETHER - 1) // ROWS_TOGETHER * ROWS_TOGETHER
    for block in prange(
        (batch.n_rows + rows - 1) // rows, num_threads=n_threads, schedule="dynamic"
    ):
        failed += _add_block(
            job, batch, first, last, block * rows, min(rows, batch.n_rows - block * rows)
        ) < 0
    return -failed


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


cdef void _list_tree(const Job* job, Batch* batch, int64_t tree) noexcept nogil:
    """List the patterns of all units of a tree that ask for it."""
    cdef int64_t first = job.units.tree_unit[tree], u
    cdef bint any_listed = False
    cdef Listed* listed = &batch.listed[tree - batch.first_tree]
    cdef Table* tables = batch.tables + first - batch.first_unit
    listed.n_units = job.units.tree_unit[tree + 1] - first
    listed.units = <UnitList*> calloc(listed.n_units + 1, sizeof(UnitList))
    listed.failed = listed.units == NULL
    for u in range(listed.n_units):
        if not job.whole[first + u] and _n_slots(job, first + u):
            tables[u].place = <uint32_t*> malloc(batch.n_rows * sizeof(uint32_t))
            listed.failed = listed.failed or tables[u].place == NULL
            any_listed = True
    if any_listed and not listed.failed:
        listed.failed = (
            numbers_init(&listed.numbers, job.units, tree, batch.n_rows) < 0
            or _list_rows(job, tree, batch.first_row, batch.n_rows, listed, tables) < 0
        )


cdef int64_t _n_slots(const Job* job, int64_t unit) noexcept nogil:
    return job.unit_term_start[unit + 1] - job.unit_term_start[unit]


cdef int _list_rows(
    const Job* job, int64_t tree, int64_t first_row, int64_t n_rows, Listed* listed, Table* tables,
) noexcept nogil:
    cdef TreeNumbers* numbers = &listed.numbers
    cdef int64_t row = 0, m, u
    while row < n_rows:
        m = min(numbers.most_rows, n_rows - row)
        for u in range(numbers.n_units):
            if number_unit(
                numbers, &job.codes, &job.tests, job.units, numbers.first_unit + u,
                first_row + row, m,
            ) < 0:
                return -1
            if tables[u].place != NULL and _list_unit(
                job, numbers, numbers.first_unit + u, m, &listed.units[u], tables[u].place + row
            ) < 0:
                return -1
        row += m
    return 0


cdef int _list_unit(
    const Job* job, const TreeNumbers* numbers, int64_t unit, int64_t m, UnitList* listed,
    uint32_t* place,
) noexcept nogil:
    """List the patterns of a block of rows at a unit, and say where each row's is."""
    cdef bint is_short = job.units.is_dense[unit]
    cdef const uint16_t* short_number = short_numbers(numbers, job.units, unit)
    cdef const int32_t* deep_number = deep_numbers(numbers, job.units, unit)
    cdef int64_t r, number
    for r in range(m):
        number = short_number[r] if is_short else deep_number[r]
        if _list(listed, number) < 0:
            return -1
        place[r] = <uint32_t> listed.place[number]
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
    const Job* job, Coverage coverage, const Batch* batch, int64_t unit
) noexcept nogil:
    """Make the table of a unit, if it has terms."""
    cdef int64_t tree = _tree_of(job, batch, unit)
    cdef Table* table = &batch.tables[unit - batch.first_unit]
    cdef int status
    cdef Scratch scratch
    if table.width == 0:
        return 0
    memset(&scratch, 0, sizeof(Scratch))
    status = _point_table(job, tree, unit, batch.first_row, table)
    if status == 0:
        status = _fill_table(
            job, coverage, unit, &batch.listed[tree - batch.first_tree].numbers,
            _listed(job, batch, unit).number, &scratch, table
        )
    _free_scratch(&scratch)
    return status


cdef int _point_table(
    const Job* job, int64_t tree, int64_t unit, int64_t first_row, Table* table
) noexcept nogil:
    """Fill a table with zeros, and say which columns its values belong to."""
    cdef int64_t n_slots = _n_slots(job, unit), slot, v
    cdef double* column
    memset(table.value, 0, (table.width * table.n_patterns + SPARE) * sizeof(double))
    table.column = <double**> malloc(table.width * sizeof(double*))
    if table.column == NULL:
        return -1
    for slot in range(n_slots):
        for v in range(job.n_values):
            column = job.out + job.unit_term[job.unit_term_start[unit] + slot] * job.term_stride
            column += (job.tree_output[tree] + v) * job.output_stride
            table.column[slot * job.n_values + v] = column + first_row
    return 0


cdef int _fill_table(
    const Job* job, Coverage coverage, int64_t unit, const TreeNumbers* numbers,
    const int32_t* listed, Scratch* scratch, Table* table,
) noexcept nogil:
    """Add the values of all the unit's leaves; `listed` is NULL where all patterns are meant."""
    cdef int64_t k
    if _make_scratch(job, unit, table.n_patterns, scratch) < 0:
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
    cdef int64_t r, w, place, number, n_masks = 0
    cdef uint64_t* mask
    cdef Keys keys
    cdef LeafMasks at_leaf
    cdef bint small = n_players <= TABLE_PLAYERS
    cdef bint is_dense = job.units.is_dense[unit] and n_listed >= LEAF_MASKS
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
            mask[0] = dense_mask(&at_leaf, number)
            for w in range(1, job.n_words):
                mask[w] = 0
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
    cdef const double* share
    for v in range(job.n_values):
        value, entry = leaf_value[v], table.value + v
        for r in range(table.n_patterns):
            share = scratch.values + scratch.index[r] * n_terms
            for i in range(n_terms):
                entry[slot[i] * job.n_values] += value * share[i]
            entry += table.width


cdef int _make_scratch(
    const Job* job, int64_t unit, int64_t n_listed, Scratch* scratch
) noexcept nogil:
    cdef int64_t k, leaf, n_players, most = 0
    for k in range(job.units.leaf_start[unit], job.units.leaf_start[unit + 1]):
        leaf = job.units.leaf[k]
        n_players = job.units.player_start[leaf + 1] - job.units.player_start[leaf]
        if n_players <= TABLE_PLAYERS:
            most = max(most, n_players)
    scratch.by_mask = <int32_t*> malloc(sizeof(int32_t) << most)
    scratch.index = <int32_t*> malloc((n_listed + 1) * sizeof(int32_t))
    scratch.masks = <uint64_t*> malloc((n_listed + 1) * job.n_words * sizeof(uint64_t))
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
    const Job* job, const Batch* batch, int64_t first, int64_t last, int64_t row, int64_t m
) noexcept nogil:
    """Add the entries of `m` rows, from `row` of the span on, to the output; those of some units."""
    cdef int64_t kept = 0, t
    cdef uint16_t* patterns
    for t in range(batch.first_tree, batch.last_tree):
        kept = max(kept, n_levels(job.units, t))
    patterns = <uint16_t*> malloc(kept * m * sizeof(uint16_t))
    if patterns == NULL:
        return -1
    for t in range(batch.first_tree, batch.last_tree):
        _add_tree(
            job, batch, job.units.tree_unit[t], max(first, job.units.tree_unit[t]),
            min(last, job.units.tree_unit[t + 1]), row, m, patterns,
        )
    free(patterns)
    return 0


cdef void _add_tree(
    const Job* job, const Batch* batch, int64_t root, int64_t first, int64_t last, int64_t row,
    int64_t m, uint16_t* patterns,
) noexcept nogil:
    """Add the entries of units of a tree; patterns are found from those of the units above."""
    cdef int64_t u, size
    cdef const Table* table
    cdef uint16_t* here
    for u in range(root if first < last else last, last):
        table = &batch.tables[u - batch.first_unit]
        here = patterns + job.units.level[u] * m
        if table.is_met:
            unit_patterns(
                &job.codes, &job.tests, job.units, u, batch.first_row + row, m,
                here - m, here,
            )
        if u < first or table.value == NULL:
            continue
        size = table.width * table.n_patterns
        if table.place == NULL:
            gather_16(table.column, row, table.value, table.width, size, here, m)
        else:
            gather_32(table.column, row, table.value, table.width, size, table.place + row, m)
