"""What the walks over rows share: packed trees, and points at which columns are held."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t

from fastpd_sklearn.core.routing cimport Codes, passes

cdef extern from "walking.h" nogil:
    ctypedef struct Segment:
        # Rows row[first:first + size], which have violated the players a < b, or fewer (-1).
        int32_t a
        int32_t b
        int32_t first
        int32_t size

    int64_t part_8(const uint8_t*, uint8_t, uint8_t, int32_t*, int64_t, int32_t*)
    int64_t part_16(const uint16_t*, uint16_t, uint16_t, int32_t*, int64_t, int32_t*)
    int64_t part_32(const uint32_t*, uint32_t, uint32_t, int32_t*, int64_t, int32_t*)
    int64_t part_table_8(const uint8_t*, const uint8_t*, uint32_t, int32_t*, int64_t, int32_t*)
    int64_t part_table_16(const uint16_t*, const uint8_t*, uint32_t, int32_t*, int64_t, int32_t*)
    int64_t part_table_32(const uint32_t*, const uint8_t*, uint32_t, int32_t*, int64_t, int32_t*)
    void descend_8(
        const uint8_t*, uint8_t, uint8_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )
    void descend_16(
        const uint16_t*, uint16_t, uint16_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )
    void descend_32(
        const uint32_t*, uint32_t, uint32_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )
    void descend_table_8(
        const uint8_t*, const uint8_t*, uint32_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )
    void descend_table_16(
        const uint16_t*, const uint8_t*, uint32_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )
    void descend_table_32(
        const uint32_t*, const uint8_t*, uint32_t, int32_t*, int32_t*, const Segment*, int64_t, int32_t,
        const uint8_t*, bint, bint, Segment*, int64_t*, Segment*, int64_t*,
    )


cdef struct Node:
    # All that a walk asks of a node, in half a cache line. At leaves left < 0, and `slot` is the
    # leaf's number. The test is that of `routing.Tests`.
    int32_t left
    int32_t right
    int32_t player
    int32_t slot
    uint32_t low
    uint32_t span
    int64_t table


cdef struct TreesView:
    const Node* node
    const int64_t* root
    int64_t n_trees
    int64_t depth               # most tests on a path
    const uint8_t* tables
    const double* leaf_value    # by leaf, n_values each
    int64_t n_values
    const int32_t* tree_output  # the first output that a tree adds to
    int64_t n_outputs


cdef class Trees:
    cdef readonly object nodes, root, leaf_value, tree_output, tables
    cdef readonly int64_t n_outputs, n_trees
    cdef const uint8_t[::1] _nodes, _tables
    cdef const int64_t[::1] _root
    cdef const int32_t[::1] _tree_output
    cdef const double[:, ::1] _leaf_value
    cdef int64_t _depth
    cdef TreesView view(self) noexcept


cdef struct PointsView:
    # Points at which one player is held. Where its tests cut a line, they are numbered along it
    # and missing is the last one; otherwise each point has its codes.
    int32_t player
    bint is_line
    int64_t size
    int64_t n_numbers       # on a line: points that are not missing
    const int32_t* below    # on a line, by code: the points with a smaller code; NULL if all codes
    const uint32_t* codes   # otherwise: codes[place[slot] * size + point]
    const int32_t* place


cdef class Points:
    cdef readonly object codes, below, place
    cdef readonly int64_t player, size, n_numbers
    cdef readonly bint is_line
    cdef const uint32_t[:, ::1] _codes
    cdef const int32_t[::1] _below, _place
    cdef PointsView view(self) noexcept


cdef struct Side:
    # Points that are still within the tests of a path. On a line: those numbered from `first` up
    # to `last`, and whether the missing one is among them. Otherwise arena[first:last] lists them.
    int32_t first
    int32_t last
    int32_t missing


cdef inline bint is_empty(Side side) noexcept nogil:
    return side.first >= side.last and not side.missing


cdef inline bint code_goes_left(
    const TreesView* trees, const Node* node, uint32_t code, uint8_t width
) noexcept nogil:
    """Whether a code of a column of so many bytes goes left."""
    cdef uint32_t largest = 0xFF if width == 1 else 0xFFFF if width == 2 else 0xFFFFFFFFu
    return passes(trees.tables, node.table, node.low, node.span, code, largest)


cdef inline bint row_goes_left(
    const TreesView* trees, const Codes* codes, const Node* node, int64_t row
) noexcept nogil:
    cdef const uint8_t* column = codes.data + codes.offset[node.slot]
    cdef uint8_t width = codes.width[node.slot]
    if width == 1:
        return code_goes_left(trees, node, column[row], 1)
    if width == 2:
        return code_goes_left(trees, node, (<const uint16_t*> column)[row], 2)
    return code_goes_left(trees, node, (<const uint32_t*> column)[row], 4)


cdef inline int64_t part_rows(
    const TreesView* trees, const Codes* codes, const Node* node, int32_t* row, int64_t m,
    int32_t* spare,
) noexcept nogil:
    """Part row numbers in place at a node, those that go left first; how many do."""
    cdef const uint8_t* column = codes.data + codes.offset[node.slot]
    cdef const uint8_t* table
    cdef uint8_t width = codes.width[node.slot]
    if node.table >= 0:
        table = trees.tables + node.table
        if width == 1:
            return part_table_8(column, table, node.span, row, m, spare)
        if width == 2:
            return part_table_16(<const uint16_t*> column, table, node.span, row, m, spare)
        return part_table_32(<const uint32_t*> column, table, node.span, row, m, spare)
    if width == 1:
        return part_8(column, <uint8_t> node.low, <uint8_t> node.span, row, m, spare)
    if width == 2:
        return part_16(
            <const uint16_t*> column, <uint16_t> node.low, <uint16_t> node.span, row, m, spare
        )
    return part_32(<const uint32_t*> column, node.low, node.span, row, m, spare)


cdef inline void part_segments(
    const TreesView* trees, const Codes* codes, const Node* node, int32_t* row, int32_t* spare,
    const Segment* at, int64_t n, const uint8_t* joins, bint left_open, bint right_open,
    Segment* left, int64_t* n_left, Segment* right, int64_t* n_right,
) noexcept nogil:
    """Part segments of row numbers at a node; a side is open where points of its player are."""
    cdef const uint8_t* column = codes.data + codes.offset[node.slot]
    cdef const uint8_t* table = trees.tables + node.table
    cdef uint8_t width = codes.width[node.slot]
    if node.table >= 0:
        if width == 1:
            descend_table_8(column, table, node.span, row, spare, at, n, node.player, joins,
                            left_open, right_open, left, n_left, right, n_right)
        elif width == 2:
            descend_table_16(<const uint16_t*> column, table, node.span, row, spare, at, n,
                             node.player, joins, left_open, right_open, left, n_left, right,
                             n_right)
        else:
            descend_table_32(<const uint32_t*> column, table, node.span, row, spare, at, n,
                             node.player, joins, left_open, right_open, left, n_left, right,
                             n_right)
    elif width == 1:
        descend_8(column, <uint8_t> node.low, <uint8_t> node.span, row, spare, at, n, node.player,
                  joins, left_open, right_open, left, n_left, right, n_right)
    elif width == 2:
        descend_16(<const uint16_t*> column, <uint16_t> node.low, <uint16_t> node.span, row, spare,
                   at, n, node.player, joins, left_open, right_open, left, n_left, right, n_right)
    else:
        descend_32(<const uint32_t*> column, node.low, node.span, row, spare, at, n, node.player,
                   joins, left_open, right_open, left, n_left, right, n_right)


cdef inline Side whole_side(const PointsView* points, int32_t* arena, int64_t* top) noexcept nogil:
    """All points. With `top`, what of the arena is taken."""
    cdef Side side
    cdef int64_t p
    if points.is_line:
        side.first, side.last = 0, <int32_t> points.n_numbers
        side.missing = points.size > points.n_numbers
        return side
    side.first, side.last, side.missing = <int32_t> top[0], <int32_t> (top[0] + points.size), False
    for p in range(points.size):
        arena[top[0] + p] = <int32_t> p
    top[0] += points.size
    return side


cdef inline void split_side(
    const TreesView* trees, const PointsView* points, const Codes* codes, const Node* node,
    Side side, Side* left, Side* right, int32_t* arena, int64_t* top,
) noexcept nogil:
    """The points that go left and right at a node which tests their player."""
    cdef int32_t cut, p, i, n_left = 0, n_right = 0
    cdef bint missing_left
    cdef const uint32_t* code
    cdef uint8_t width
    left[0] = right[0] = side
    if points.is_line:
        # The codes up to the interval's last go left; so does missing if it starts before 0.
        missing_left = node.low != 0
        cut = <int32_t> (node.span - missing_left + 1)
        if points.below != NULL:
            cut = points.below[cut]
        left.last = min(side.last, cut)
        right.first = max(side.first, cut)
        left.missing = side.missing and missing_left
        right.missing = side.missing and not missing_left
        return
    width = codes.width[node.slot]
    code = points.codes + points.place[node.slot] * points.size
    left.first = <int32_t> top[0]
    right.first = <int32_t> (top[0] + side.last - side.first)
    for i in range(side.first, side.last):
        p = arena[i]
        if code_goes_left(trees, node, code[p], width):
            arena[left.first + n_left] = p
            n_left += 1
        else:
            arena[right.first + n_right] = p
            n_right += 1
    left.last = left.first + n_left
    right.last = right.first + n_right
    top[0] += 2 * (side.last - side.first)


cdef inline bint next_run(
    const PointsView* points, Side side, const int32_t* arena, int64_t* state, int64_t* first,
    int64_t* last,
) noexcept nogil:
    """The next run [first, last) of neighbouring points of a side; `state` is 0 at the start."""
    cdef int64_t i
    if points.is_line:
        if state[0] == 0 and side.first < side.last:
            state[0] = 1
            first[0], last[0] = side.first, side.last
            if side.missing and side.last == points.n_numbers:
                last[0] += 1
                state[0] = 2
            return True
        if state[0] < 2 and side.missing:
            state[0] = 2
            first[0], last[0] = points.n_numbers, points.n_numbers + 1
            return True
        return False
    i = side.first + state[0]
    if i >= side.last:
        return False
    first[0] = arena[i]
    while i + 1 < side.last and arena[i + 1] == arena[i] + 1:
        i += 1
    last[0] = arena[i] + 1
    state[0] = i + 1 - side.first
    return True
