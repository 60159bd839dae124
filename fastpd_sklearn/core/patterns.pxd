"""The patterns of a block of rows at the units of a tree, and their numbering."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint64_t

from fastpd_sklearn.core.routing cimport Codes, Tests


cdef struct UnitView:
    const int32_t* left_child  # -1 at leaves
    const int64_t* tree_start
    const int64_t* tree_unit
    const int64_t* bit_start
    const int64_t* test_start
    const int32_t* test_node
    const uint8_t* test_left
    const int64_t* leaf_start
    const int64_t* leaf
    const int64_t* player_start
    const uint64_t* care
    const uint64_t* want
    const uint8_t* is_dense


cdef class UnitArrays:
    cdef object units, geometry
    cdef UnitView view


cdef struct Numbering:
    # An open-addressing table that numbers keys of `n_words` words in the order of their arrival.
    int64_t n_words
    int64_t size
    int64_t room        # of keys
    int64_t n_buckets   # a power of two
    uint64_t* keys
    int32_t* buckets    # number of the key, -1 for empty


cdef int64_t block_rows(int64_t n_nodes) noexcept nogil
cdef void test_tree(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t tree, int64_t row,
    int64_t m, uint8_t* bits,
) noexcept nogil
cdef void short_patterns(
    const UnitView* units, int64_t tree, int64_t unit, const uint8_t* bits, int64_t m,
    uint8_t* met, uint16_t* patterns,
) noexcept nogil
cdef void long_patterns(
    const UnitView* units, int64_t tree, int64_t unit, const uint8_t* bits, int64_t m,
    int64_t n_words, uint8_t* met, uint64_t* plane, uint64_t* patterns,
) noexcept nogil
cdef uint64_t leaf_mask(const UnitView* units, int64_t leaf, uint64_t pattern) noexcept nogil

cdef int numbering_init(Numbering* table, int64_t n_words) noexcept nogil
cdef void numbering_free(Numbering* table) noexcept nogil
cdef int64_t number_of(Numbering* table, const uint64_t* key) noexcept nogil
