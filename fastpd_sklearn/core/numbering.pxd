"""The patterns of blocks of rows at the chunks of a tree, as small numbers."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from fastpd_sklearn.core.routing cimport Codes, Tests


cdef struct UnitView:
    const int32_t* left_child  # -1 at leaves
    const int64_t* tree_start
    const int64_t* player_start
    const int64_t* path_start
    const int32_t* path_node
    const uint8_t* path_left
    const int32_t* path_bit
    const int64_t* tree_unit
    const int64_t* node_start
    const int32_t* node
    const uint8_t* place
    const int64_t* parent
    const int64_t* level
    const int64_t* first_leaf
    const int64_t* depth
    const int64_t* n_above
    const int64_t* leaf_start
    const int64_t* leaf
    const uint8_t* is_dense
    int64_t n_words


cdef class UnitArrays:
    cdef object units, geometry
    cdef UnitView view


cdef struct Keys:
    # An open-addressing table that numbers keys of `n_words` words in the order of their arrival.
    int64_t n_words
    int64_t size
    int64_t room        # of keys
    int64_t n_buckets   # a power of two
    uint64_t* keys
    int32_t* buckets    # number of the key, -1 for empty


cdef struct DeepUnit:
    # The numbers of a unit whose patterns are too long for tables over all of them. The part of a
    # pattern that is above the unit follows from the parent's number, so two look-ups in tables of
    # what has occurred find a row's number, however long the pattern is.
    Keys above               # the parts above that occur
    int32_t* above_of_parent  # by the parent's number: the part above, -1 if not yet known
    int64_t parent_room
    int32_t* number          # by (part above, node bits): the pattern's number, -1 for a new one
    int64_t above_room
    int32_t* cell            # by number: where it is in `number`
    int64_t size, room


cdef struct TreeNumbers:
    int64_t first_unit, n_units
    int64_t most_rows        # of a block
    DeepUnit* deep           # by unit of the tree; unused for dense ones
    # Of row r at the last unit of each level, at level * most_rows + r:
    uint16_t* short          # the pattern of a dense unit, the node bits of a deep one
    int32_t* number          # the number at a deep unit; NULL if the tree has none


cdef enum:
    CHUNK_NODES = 7       # of the largest chunk
    CHUNK_PATTERNS = 128  # of its node bits


cdef struct LeafMasks:
    # The masks of a leaf that hangs from a dense unit: of the part above a chunk the players that
    # the chunk's own nodes leave met, and the players met there for the first time. With a pattern
    # of 16 bits these are at most 23.
    int64_t n_nodes
    uint32_t keep[CHUNK_PATTERNS]
    uint32_t fresh[CHUNK_PATTERNS]


cdef void leaf_masks_init(LeafMasks* masks, const UnitView* units, int64_t unit, int64_t leaf) noexcept nogil
cdef inline uint64_t dense_mask(const LeafMasks* masks, uint64_t pattern) noexcept nogil:
    """The leaf's mask that goes with a pattern of the dense unit."""
    cdef uint64_t at_nodes = pattern & ((<uint64_t> 1 << masks.n_nodes) - 1)
    return pattern >> masks.n_nodes & masks.keep[at_nodes] | masks.fresh[at_nodes]


cdef int64_t n_levels(const UnitView* units, int64_t tree) noexcept nogil
cdef int64_t block_rows(const UnitView* units, int64_t tree) noexcept nogil
cdef void unit_patterns(
    const Codes* codes, const Tests* tests, const UnitView* units, int64_t unit, int64_t row,
    int64_t m, const uint16_t* parent, uint16_t* patterns,
) noexcept nogil
cdef int64_t n_patterns(const UnitView* units, int64_t unit) noexcept nogil

cdef int numbers_init(
    TreeNumbers* numbers, const UnitView* units, int64_t tree, int64_t n_rows
) noexcept nogil
cdef void numbers_free(TreeNumbers* numbers) noexcept nogil
cdef int number_unit(
    TreeNumbers* numbers, const Codes* codes, const Tests* tests, const UnitView* units,
    int64_t unit, int64_t row, int64_t m,
) noexcept nogil
cdef const uint16_t* short_numbers(
    const TreeNumbers* numbers, const UnitView* units, int64_t unit
) noexcept nogil
cdef const int32_t* deep_numbers(
    const TreeNumbers* numbers, const UnitView* units, int64_t unit
) noexcept nogil
cdef void leaf_mask(
    const UnitView* units, const TreeNumbers* numbers, int64_t unit, int64_t leaf, int64_t number,
    uint64_t* mask,
) noexcept nogil

cdef int keys_init(Keys* table, int64_t n_words) noexcept nogil
cdef void keys_free(Keys* table) noexcept nogil
cdef int64_t number_of(Keys* table, const uint64_t* key) noexcept nogil
