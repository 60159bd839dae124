"""The patterns of blocks of rows at the chunks of a tree, as small numbers.

At a *dense* unit the number of a pattern is the pattern itself, node bits lowest; the bits of the
players above follow from the pattern at the parent, which is dense, too. At a *deep* one
the patterns that occur are numbered as they come, parents before children: see `DeepUnit`.
"""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from fastpd_sklearn.core.routing cimport column_from, route_block

cdef extern from "room.h" nogil:
    void* wide_malloc(size_t)
cdef extern from "kernels.h" nogil:
    ctypedef struct passing:
        uint16_t probe, wanted, set, clear
    ctypedef struct interval_8:
        const uint8_t* code
        uint8_t low, span
    ctypedef struct interval_16:
        const uint16_t* code
        uint16_t low, span
    void set_four_8(uint16_t*, const interval_8*, int64_t)
    void or_four_8(uint16_t*, const interval_8*, int64_t)
    void set_four_16(uint16_t*, const interval_16*, int64_t)
    void or_four_16(uint16_t*, const interval_16*, int64_t)
    void or_above_16(uint16_t*, const uint16_t*, int, int, const passing*, int64_t)
    void pass_16(uint16_t*, const uint16_t*, const passing*, int64_t)
    void or_passing_32(uint32_t*, int, int, uint32_t, int64_t)
    void and_passing_32(uint32_t*, int, int, uint32_t, int64_t)

cdef enum:
    MOST_ROWS = 2048      # whose node bits at a unit stay in the first-level cache
    LEAST_ROWS = 64
    MOST_CELLS = 1 << 16   # patterns of a tree's units: what is kept for more outgrows the caches, and
    WIDE_ROWS = 16384      # a large block of rows shares it
    PATTERN_BYTES = 6      # of a row at a level: the pattern, and a number
    BLOCK_BYTES = 1 << 26  # of a block, at most
    MOST_TESTS = 9         # on the way through a chunk: CHUNK_NODES, made a multiple of three

cdef uint16_t NO_CODES[MOST_ROWS]  # zeros


cdef class UnitArrays:
    """Pointers into the arrays of a `Units` and its `Geometry`, for loops without the GIL."""

    def __init__(self, geometry, units):
        self.geometry, self.units = geometry, units
        self.view.n_words = geometry.n_words
        self.view.left_child = <const int32_t*> _address(geometry.left)
        self.view.tree_start = <const int64_t*> _address(geometry.tree_start)
        self.view.player_start = <const int64_t*> _address(geometry.player_start)
        self.view.path_start = <const int64_t*> _address(geometry.path_start)
        self.view.path_node = <const int32_t*> _address(geometry.path_node)
        self.view.path_left = <const uint8_t*> _address(geometry.path_left)
        self.view.path_bit = <const int32_t*> _address(geometry.path_bit)
        self.view.tree_unit = <const int64_t*> _address(units.tree_unit)
        self.view.node_start = <const int64_t*> _address(units.node_start)
        self.view.node = <const int32_t*> _address(units.node)
        self.view.place = <const uint8_t*> _address(units.place)
        self.view.parent = <const int64_t*> _address(units.parent)
        self.view.level = <const int64_t*> _address(units.level)
        self.view.first_leaf = <const int64_t*> _address(units.first_leaf)
        self.view.depth = <const int64_t*> _address(units.depth)
        self.view.n_above = <const int64_t*> _address(units.n_above)
        self.view.leaf_start = <const int64_t*> _address(units.leaf_start)
        self.view.leaf = <const int64_t*> _address(units.leaf)
        self.view.is_dense = <const uint8_t*> _address(units.is_dense)


cdef const void* _address(array) except? NULL:
    return <const void*> <size_t> array.ctypes.data


cdef int64_t n_levels(const UnitView* units, int64_t tree) noexcept nogil:
    """On how many levels the units of a tree are."""
    cdef int64_t unit, last = 0
    for unit in range(units.tree_unit[tree], units.tree_unit[tree + 1]):
        last = max(last, units.level[unit])
    return last + 1


cdef int64_t block_rows(const UnitView* units, int64_t tree) noexcept nogil:
    """How many rows of a tree to take at a time."""
    cdef int64_t unit, cells = 0, rows
    for unit in range(units.tree_unit[tree], units.tree_unit[tree + 1]):
        cells += n_patterns(units, unit) if units.is_dense[unit] else MOST_CELLS + 1
    rows = MOST_ROWS if cells <= MOST_CELLS else WIDE_ROWS
    rows = min(rows, BLOCK_BYTES // (PATTERN_BYTES * n_levels(units, tree)))
    return max(<int64_t> LEAST_ROWS, rows // 64 * 64)


cdef int64_t _n_nodes(const UnitView* units, int64_t unit) noexcept nogil:
    return units.node_start[unit + 1] - units.node_start[unit]


cdef int64_t n_patterns(const UnitView* units, int64_t unit) noexcept nogil:
    """Number of patterns that a dense unit can have."""
    return <int64_t> 1 << (_n_nodes(units, unit) + units.n_above[unit])


cdef void unit_patterns(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t unit, int64_t row,
    int64_t m, const uint16_t* parent, uint16_t* patterns,
) noexcept nogil:
    """Patterns of `m` rows from `row` on at a dense unit, their node bits alone at a deep one.

    `parent` has the patterns of the rows at the parent of the unit, if there is one.
    """
    cdef int64_t first = 0, some
    cdef Above above
    cdef bint has_above = units.is_dense[unit] and units.parent[unit] >= 0
    if has_above:
        _find_above(units, unit, &above)
    while first < m:
        some = min(<int64_t> MOST_ROWS, m - first)
        _node_patterns(codes, tests, units, unit, row + first, some, patterns + first)
        if has_above:
            _add_above(&above, parent + first, some, patterns + first)
        first += some


cdef void _node_patterns(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t unit, int64_t row,
    int64_t m, uint16_t* patterns,
) noexcept nogil:
    """The node bits of the patterns of at most MOST_ROWS rows."""
    cdef const int32_t* node = units.node + units.node_start[unit]
    cdef int64_t n_nodes = _n_nodes(units, unit), b
    cdef bint is_wide = True
    for b in range(n_nodes):
        is_wide = is_wide and codes.width[tests.slot[node[b]]] == 2 and tests.table[node[b]] < 0
    if is_wide:
        _wide_patterns(codes, tests, node, n_nodes, row, m, patterns)
    else:
        _byte_patterns(codes, tests, node, n_nodes, row, m, patterns)


cdef void _wide_patterns(
    const Codes* codes, const Tests* tests, const int32_t* node, int64_t n_nodes, int64_t row,
    int64_t m, uint16_t* patterns,
) noexcept nogil:
    """The bits of nodes that all test codes of two bytes by intervals."""
    cdef interval_16 interval[8]
    cdef int64_t b
    for b in range(8):
        if b < n_nodes:
            interval[b].code = <const uint16_t*> column_from(codes, tests.slot[node[b]], row)
            interval[b].low = <uint16_t> tests.low[node[b]]
            interval[b].span = <uint16_t> tests.span[node[b]]
        else:
            interval[b].code, interval[b].low, interval[b].span = NO_CODES, 1, 0
    set_four_16(patterns, interval, m)
    if n_nodes > 4:
        or_four_16(patterns, interval + 4, m)


cdef void _byte_patterns(
    const Codes* codes, const Tests* tests, const int32_t* node, int64_t n_nodes, int64_t row,
    int64_t m, uint16_t* patterns,
) noexcept nogil:
    """The bits of any nodes; where one tests no bytes by an interval, its outcomes are such bytes."""
    cdef uint8_t outcomes[CHUNK_NODES * MOST_ROWS]
    cdef interval_8 interval[8]
    cdef int64_t b
    for b in range(8):
        interval[b].code, interval[b].low, interval[b].span = <const uint8_t*> NO_CODES, 1, 0
        if b >= n_nodes:
            continue
        if codes.width[tests.slot[node[b]]] == 1 and tests.table[node[b]] < 0:
            interval[b].code = column_from(codes, tests.slot[node[b]], row)
            interval[b].low = <uint8_t> tests.low[node[b]]
            interval[b].span = <uint8_t> tests.span[node[b]]
        else:
            route_block(codes, tests, node[b], row, m, outcomes + b * MOST_ROWS)
            interval[b].code = outcomes + b * MOST_ROWS
    set_four_8(patterns, interval, m)
    if n_nodes > 4:
        or_four_8(patterns, interval + 4, m)


cdef struct Above:
    # How the bits of the players above a unit follow from its parent's patterns.
    int down, shift      # the parent's node bits, and the unit's own
    int n_threes
    passing tests[MOST_TESTS]


cdef void _find_above(const UnitView* units, int64_t unit, Above* above) noexcept nogil:
    """The parent's players above stay, changed by its tests on the way to the unit."""
    cdef int64_t up = units.parent[unit], start = units.path_start[units.first_leaf[unit]]
    cdef int64_t known = units.n_above[up], k
    cdef uint16_t bit
    cdef passing* test = above.tests
    above.down, above.shift = <int> _n_nodes(units, up), <int> _n_nodes(units, unit)
    memset(test, 0, sizeof(above.tests))
    for k in range(start + units.depth[up], start + units.depth[unit]):
        test.probe = <uint16_t> (1 << units.place[units.path_node[k]])
        test.wanted = test.probe if units.path_left[k] else 0
        bit = <uint16_t> (1 << (above.shift + units.path_bit[k]))
        if units.path_bit[k] == known:  # a player that has not been met before
            test.set = bit
            known += 1
        else:
            test.clear = bit
        test += 1
    above.n_threes = <int> ((units.depth[unit] - units.depth[up] + 2) // 3)


cdef void _add_above(
    const Above* above, const uint16_t* parent, int64_t m, uint16_t* patterns
) noexcept nogil:
    """Add the bits of the players above."""
    cdef int k
    or_above_16(patterns, parent, above.down, above.shift, above.tests, m)
    for k in range(1, above.n_threes):
        pass_16(patterns, parent, above.tests + 3 * k, m)


cdef void _extend(
    const UnitView* units, int64_t unit, uint64_t node_bits, int64_t leaf, int64_t depth,
    uint64_t* mask,
) noexcept nogil:
    """Turn the part above a unit into that below it: on the way to a leaf, down to a depth."""
    cdef int64_t start = units.path_start[leaf], known = units.n_above[unit], k, b
    cdef bint passes
    for k in range(start + units.depth[unit], start + depth):
        b = units.path_bit[k]
        passes = (node_bits >> units.place[units.path_node[k]] & 1) == units.path_left[k]
        if b == known:  # a player that has not been met before
            mask[b >> 6] |= <uint64_t> passes << (b & 63)
            known += 1
        elif not passes:
            mask[b >> 6] &= ~(<uint64_t> 1 << (b & 63))


cdef uint64_t _split(
    const UnitView* units, const TreeNumbers* numbers, int64_t unit, int64_t number, uint64_t* above
) noexcept nogil:
    """The node bits of a numbered pattern; its part above, written to `above`."""
    cdef int64_t n_nodes = _n_nodes(units, unit), cell
    cdef const DeepUnit* deep
    if units.is_dense[unit]:
        memset(above, 0, units.n_words * sizeof(uint64_t))
        above[0] = <uint64_t> number >> n_nodes
        return <uint64_t> number & ((<uint64_t> 1 << n_nodes) - 1)
    deep = &numbers.deep[unit - numbers.first_unit]
    cell = deep.cell[number]
    memcpy(above, deep.above.keys + (cell >> n_nodes) * units.n_words,
           units.n_words * sizeof(uint64_t))
    return <uint64_t> cell & ((<uint64_t> 1 << n_nodes) - 1)


cdef void leaf_mask(
    const UnitView* units, const TreeNumbers* numbers, int64_t unit, int64_t leaf, int64_t number,
    uint64_t* mask,
) noexcept nogil:
    """The mask, of `n_words` words, of a leaf of the unit that goes with a numbered pattern."""
    cdef uint64_t node_bits = _split(units, numbers, unit, number, mask)
    _extend(units, unit, node_bits, leaf, units.path_start[leaf + 1] - units.path_start[leaf], mask)


cdef void leaf_masks_init(
    LeafMasks* masks, const UnitView* units, int64_t unit, int64_t leaf
) noexcept nogil:
    """Find the masks of a leaf by what the unit's nodes say, all players above being met."""
    cdef uint32_t mask[CHUNK_PATTERNS]
    cdef int64_t n_nodes = _n_nodes(units, unit), size = <int64_t> 1 << n_nodes, a, k, b
    cdef int64_t known = units.n_above[unit]
    cdef uint32_t above = (<uint32_t> 1 << known) - 1
    cdef int place
    masks.n_nodes = n_nodes
    for a in range(size):
        mask[a] = above
    for k in range(units.path_start[leaf] + units.depth[unit], units.path_start[leaf + 1]):
        b, place = units.path_bit[k], units.place[units.path_node[k]]
        if b == known:  # a player that has not been met before
            or_passing_32(mask, place, units.path_left[k], <uint32_t> 1 << b, size)
            known += 1
        else:
            and_passing_32(mask, place, units.path_left[k], <uint32_t> 1 << b, size)
    for a in range(size):
        masks.keep[a] = mask[a] & above
        masks.fresh[a] = mask[a] & ~above


cdef int numbers_init(
    TreeNumbers* numbers, const UnitView* units, int64_t tree, int64_t n_rows
) noexcept nogil:
    """Get ready to number so many rows at a tree; -1 if there is no memory."""
    cdef int64_t u, n_rows_kept
    cdef bint any_deep = False
    numbers.first_unit = units.tree_unit[tree]
    numbers.n_units = units.tree_unit[tree + 1] - numbers.first_unit
    numbers.most_rows = min(n_rows, block_rows(units, tree))
    numbers.deep = <DeepUnit*> calloc(numbers.n_units, sizeof(DeepUnit))
    n_rows_kept = n_levels(units, tree) * numbers.most_rows
    numbers.short = <uint16_t*> wide_malloc(n_rows_kept * sizeof(uint16_t))
    for u in range(numbers.n_units):
        any_deep = any_deep or not units.is_dense[numbers.first_unit + u]
    if any_deep:
        numbers.number = <int32_t*> wide_malloc(n_rows_kept * sizeof(int32_t))
    if (
        numbers.deep == NULL or numbers.short == NULL
        or (any_deep and numbers.number == NULL)
    ):
        return -1
    for u in range(numbers.n_units):
        if not units.is_dense[numbers.first_unit + u]:
            if keys_init(&numbers.deep[u].above, units.n_words) < 0:
                return -1
    return 0


cdef void numbers_free(TreeNumbers* numbers) noexcept nogil:
    cdef int64_t u
    for u in range(numbers.n_units if numbers.deep != NULL else 0):
        keys_free(&numbers.deep[u].above)
        free(numbers.deep[u].above_of_parent)
        free(numbers.deep[u].number)
        free(numbers.deep[u].cell)
    free(numbers.deep)
    free(numbers.short)
    free(numbers.number)


cdef const uint16_t* short_numbers(
    const TreeNumbers* numbers, const UnitView* units, int64_t unit
) noexcept nogil:
    """The patterns of the rows at a dense unit that has been the last of its level."""
    return numbers.short + units.level[unit] * numbers.most_rows


cdef const int32_t* deep_numbers(
    const TreeNumbers* numbers, const UnitView* units, int64_t unit
) noexcept nogil:
    """The numbers of the rows at a deep unit that has been the last of its level."""
    return numbers.number + units.level[unit] * numbers.most_rows


cdef int number_unit(
    TreeNumbers* numbers, const Codes* codes, const Tests* tests, const UnitView* units,
    int64_t unit, int64_t row, int64_t m,
) noexcept nogil:
    """Number the patterns of `m` rows from `row` on at a unit; -1 if there is no memory.

    Units are numbered in order.
    """
    cdef uint16_t* patterns = numbers.short + units.level[unit] * numbers.most_rows
    unit_patterns(codes, tests, units, unit, row, m, patterns - numbers.most_rows, patterns)
    return 0 if units.is_dense[unit] else _number_deep(numbers, units, unit, m)


cdef int _number_deep(
    TreeNumbers* numbers, const UnitView* units, int64_t unit, int64_t m
) noexcept nogil:
    cdef DeepUnit* deep = &numbers.deep[unit - numbers.first_unit]
    cdef int64_t parent = units.parent[unit] - numbers.first_unit, n_nodes = _n_nodes(units, unit)
    cdef const uint16_t* node_bits = numbers.short + units.level[unit] * numbers.most_rows
    cdef const uint16_t* short_parent = node_bits - numbers.most_rows
    cdef int32_t* number = numbers.number + units.level[unit] * numbers.most_rows
    cdef const int32_t* deep_parent = number - numbers.most_rows
    cdef bint is_short = units.is_dense[units.parent[unit]]
    cdef int64_t r, n_parent, above, cell, from_parent
    if is_short:
        n_parent = n_patterns(units, units.parent[unit])
    else:
        n_parent = numbers.deep[parent].size
    if _fill_grown(&deep.above_of_parent, &deep.parent_room, n_parent) < 0:
        return -1
    for r in range(m):
        from_parent = short_parent[r] if is_short else deep_parent[r]
        above = deep.above_of_parent[from_parent]
        if above < 0:
            above = _new_above(numbers, units, unit, from_parent)
            if above < 0:
                return -1
        cell = above << n_nodes | node_bits[r]
        if deep.number[cell] < 0:
            if deep.size == deep.room and _grow_cells(deep) < 0:
                return -1
            deep.cell[deep.size] = <int32_t> cell
            deep.number[cell] = <int32_t> deep.size
            deep.size += 1
        number[r] = deep.number[cell]
    return 0


cdef int64_t _new_above(
    TreeNumbers* numbers, const UnitView* units, int64_t unit, int64_t parent_number
) noexcept nogil:
    """Find out which part above goes with a number of the parent."""
    cdef DeepUnit* deep = &numbers.deep[unit - numbers.first_unit]
    cdef int64_t parent = units.parent[unit], above, entries
    cdef uint64_t node_bits
    cdef uint64_t* mask = <uint64_t*> malloc(units.n_words * sizeof(uint64_t))
    if mask == NULL:
        return -1
    node_bits = _split(units, numbers, parent, parent_number, mask)
    _extend(units, parent, node_bits, units.first_leaf[unit], units.depth[unit], mask)
    above = number_of(&deep.above, mask)
    free(mask)
    if above < 0:
        return -1
    entries = deep.above.size << _n_nodes(units, unit)
    if entries > 0x7FFFFFFF or _fill_grown(&deep.number, &deep.above_room, entries) < 0:
        return -1
    deep.above_of_parent[parent_number] = <int32_t> above
    return above


cdef int _fill_grown(int32_t** array, int64_t* room, int64_t size) noexcept nogil:
    """Make room for `size` entries, the new ones -1."""
    cdef int64_t more
    cdef int32_t* grown
    if size <= room[0]:
        return 0
    more = max(size, 2 * room[0])
    grown = <int32_t*> realloc(array[0], more * sizeof(int32_t))
    if grown == NULL:
        return -1
    memset(grown + room[0], 255, (more - room[0]) * sizeof(int32_t))
    array[0], room[0] = grown, more
    return 0


cdef int _grow_cells(DeepUnit* deep) noexcept nogil:
    cdef int64_t room = 2 * deep.room + 64
    cdef int32_t* cell = <int32_t*> realloc(deep.cell, room * sizeof(int32_t))
    if cell == NULL:
        return -1
    deep.cell, deep.room = cell, room
    return 0


cdef int keys_init(Keys* table, int64_t n_words) noexcept nogil:
    """Make an empty table; -1 if there is no memory for it."""
    table.n_words, table.size, table.room, table.n_buckets = n_words, 0, 0, 0
    table.keys, table.buckets = NULL, NULL
    return _grow(table)


cdef void keys_free(Keys* table) noexcept nogil:
    free(table.keys)
    free(table.buckets)


cdef int _grow(Keys* table) noexcept nogil:
    cdef int64_t room = 2 * table.room + 16, n_buckets = 4 * room, i
    cdef int32_t* buckets
    cdef uint64_t* keys = <uint64_t*> realloc(
        table.keys, room * table.n_words * sizeof(uint64_t)
    )
    if keys == NULL:
        return -1
    table.keys = keys
    i = 64
    while i < n_buckets:
        i *= 2
    buckets = <int32_t*> malloc(i * sizeof(int32_t))
    if buckets == NULL:
        return -1
    free(table.buckets)
    table.buckets, table.n_buckets, table.room = buckets, i, room
    memset(buckets, 255, table.n_buckets * sizeof(int32_t))
    for i in range(table.size):
        buckets[_bucket(table, keys + i * table.n_words)] = <int32_t> i
    return 0


cdef int64_t _bucket(const Keys* table, const uint64_t* key) noexcept nogil:
    """The bucket that holds a key, or the empty one where it belongs."""
    cdef uint64_t hashed = 0
    cdef int64_t w, bucket
    for w in range(table.n_words):
        hashed = (hashed ^ key[w]) * 0x9E3779B97F4A7C15u
        hashed ^= hashed >> 29
    bucket = hashed & (table.n_buckets - 1)
    while table.buckets[bucket] >= 0 and memcmp(
        table.keys + table.buckets[bucket] * table.n_words, key, table.n_words * sizeof(uint64_t)
    ) != 0:
        bucket = (bucket + 1) & (table.n_buckets - 1)
    return bucket


cdef int64_t number_of(Keys* table, const uint64_t* key) noexcept nogil:
    """The number of a key, a new one if need be; -1 if there is no memory for it."""
    cdef int64_t bucket = _bucket(table, key)
    if table.buckets[bucket] >= 0:
        return table.buckets[bucket]
    if table.size == table.room:
        if _grow(table) < 0:
            return -1
        bucket = _bucket(table, key)
    memcpy(table.keys + table.size * table.n_words, key, table.n_words * sizeof(uint64_t))
    table.buckets[bucket] = <int32_t> table.size
    table.size += 1
    return table.size - 1
