"""The patterns of a block of rows at the units of a tree, and their numbering."""

from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memcmp, memcpy, memset

from fastpd_sklearn.core.routing cimport route_block

cdef extern from "kernels.h" nogil:
    void and_equal(uint8_t*, const uint8_t*, uint8_t, int64_t)
    void or_bit_16(uint16_t*, const uint8_t*, int, int64_t)
    void or_bit_64(uint64_t*, const uint8_t*, int, int64_t)

cdef enum:
    MOST_ROWS = 2048
    LEAST_ROWS = 64
    BITS_BYTES = 1 << 18  # node bits of a block: they stay in the second-level cache


cdef class UnitArrays:
    """Pointers into the arrays of a `Units` and its `Geometry`, for loops without the GIL."""

    def __init__(self, geometry, units):
        self.geometry, self.units = geometry, units
        self.view.left_child = <const int32_t*> _address(geometry.left)
        self.view.tree_start = <const int64_t*> _address(geometry.tree_start)
        self.view.player_start = <const int64_t*> _address(geometry.player_start)
        self.view.tree_unit = <const int64_t*> _address(units.tree_unit)
        self.view.bit_start = <const int64_t*> _address(units.bit_start)
        self.view.test_start = <const int64_t*> _address(units.test_start)
        self.view.test_node = <const int32_t*> _address(units.test_node)
        self.view.test_left = <const uint8_t*> _address(units.test_left)
        self.view.leaf_start = <const int64_t*> _address(units.leaf_start)
        self.view.leaf = <const int64_t*> _address(units.leaf)
        self.view.care = <const uint64_t*> _address(units.care)
        self.view.want = <const uint64_t*> _address(units.want)
        self.view.is_dense = <const uint8_t*> _address(units.is_dense)


cdef const void* _address(array) except? NULL:
    return <const void*> <size_t> array.ctypes.data


cdef int64_t block_rows(int64_t n_nodes) noexcept nogil:
    """How many rows of a tree with so many nodes to take at a time."""
    return max(<int64_t> LEAST_ROWS, min(<int64_t> MOST_ROWS, BITS_BYTES // max(n_nodes, 1) // 64 * 64))


cdef void test_tree(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t tree, int64_t row,
    int64_t m, uint8_t* bits,
) noexcept nogil:
    """Bits of `m` rows from `row` on at every inner node; node i of the tree has bits[i * m:]."""
    cdef int64_t first = units.tree_start[tree], node
    for node in range(first, units.tree_start[tree + 1]):
        if units.left_child[node] >= 0:
            route_block(codes, tests, node, row, m, bits + (node - first) * m)


cdef const uint8_t* _bit(
    const UnitView* units, int64_t tree, int64_t bit, const uint8_t* bits, int64_t m, uint8_t* met
) noexcept nogil:
    """One pattern bit of every row; in place where it is just a node's bit."""
    cdef int64_t k = units.test_start[bit], stop = units.test_start[bit + 1]
    cdef int64_t first = units.tree_start[tree]
    if stop - k == 1 and units.test_left[k]:
        return bits + (units.test_node[k] - first) * m
    memset(met, 1, m)
    while k < stop:
        and_equal(met, bits + (units.test_node[k] - first) * m, units.test_left[k], m)
        k += 1
    return met


cdef void short_patterns(
    const UnitView* units, int64_t tree, int64_t unit, const uint8_t* bits, int64_t m,
    uint8_t* met, uint16_t* patterns,
) noexcept nogil:
    """Patterns of a dense unit; `met` is room for `m` bytes."""
    cdef int64_t first = units.bit_start[unit], b
    memset(patterns, 0, m * sizeof(uint16_t))
    for b in range(units.bit_start[unit + 1] - first):
        or_bit_16(patterns, _bit(units, tree, first + b, bits, m, met), <int> b, m)


cdef void long_patterns(
    const UnitView* units, int64_t tree, int64_t unit, const uint8_t* bits, int64_t m,
    int64_t n_words, uint8_t* met, uint64_t* plane, uint64_t* patterns,
) noexcept nogil:
    """Patterns of a single leaf, `n_words` words a row; `plane` is room for `m` words."""
    cdef int64_t first = units.bit_start[unit], n_bits = units.bit_start[unit + 1] - first
    cdef int64_t w, b, r
    for w in range(n_words):
        memset(plane, 0, m * sizeof(uint64_t))
        for b in range(64 * w, min(64 * (w + 1), n_bits)):
            or_bit_64(plane, _bit(units, tree, first + b, bits, m, met), <int> (b - 64 * w), m)
        for r in range(m):
            patterns[r * n_words + w] = plane[r]


cdef uint64_t leaf_mask(const UnitView* units, int64_t leaf, uint64_t pattern) noexcept nogil:
    """The mask of a leaf that goes with a pattern of its (dense) unit."""
    cdef int64_t first = units.player_start[leaf], i
    cdef uint64_t mask = 0
    for i in range(first, units.player_start[leaf + 1]):
        mask |= <uint64_t> ((pattern & units.care[i]) == units.want[i]) << (i - first)
    return mask


cdef int numbering_init(Numbering* table, int64_t n_words) noexcept nogil:
    """Make an empty table; -1 if there is no memory for it."""
    table.n_words, table.size, table.room, table.n_buckets = n_words, 0, 0, 0
    table.keys, table.buckets = NULL, NULL
    return _grow(table)


cdef void numbering_free(Numbering* table) noexcept nogil:
    free(table.keys)
    free(table.buckets)


cdef int _grow(Numbering* table) noexcept nogil:
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


cdef int64_t _bucket(const Numbering* table, const uint64_t* key) noexcept nogil:
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


cdef int64_t number_of(Numbering* table, const uint64_t* key) noexcept nogil:
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
