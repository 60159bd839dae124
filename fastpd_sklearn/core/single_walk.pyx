"""The bounded-violation walk of single players: their components for trees of any depth.

A component of one player asks of a background row only for the leaves that it reaches by changing
one player, however many a leaf's path tests. The rows go down a tree together, in two lists: those
that have violated nobody on the way, and those that have violated one player. A node that tests
player `i` deals both lists to its children. Who has violated `i` goes to both sides, as long as some
point of `i` does; who has violated nobody also goes to the other side, having violated `i`.

At a leaf of value ``c``, `W[]` being the weight of the rows that have violated nobody and `W[i]`
that of those that have violated `i`, a player that is tested on the way adds to its component (of
all rows, not divided by their weight)

    m_i(a) :  c (1[a in side_i] (W[] + W[i]) - W[]).

The leaves below a test of `i`, down to the next tests of `i`, have the same side of `i`. So what they
add is summed up first, and tables are written to where a side ends. On a line the sides of
a test's children meet at the *cut*: there the component *jumps* by what the first points of the right
child get less what the last points of the left one get. So a test adds one number to a
table of differences, and hands to the test of `i` above it what its first and its last
points get.

The tables of deep forests are long, and jumps go anywhere in them. So trees list their jumps, and
when some trees are done each thread adds those that belong to its part of the tables.

J. Liu, T. Steensgaard, M. N. Wright, N. Pfister, M. Hiabu, "Fast Estimation of Partial Dependence
Functions using Trees" (2024), equation 7, for the components of a leaf.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport (
    Node, Points, PointsView, Side, Trees, TreesView, is_empty, next_run, split_side, whole_side,
)

import numpy as np

from fastpd_sklearn.core.walking import sum_in_order

cdef extern from "walking.h" nogil:
    void PREFETCH(const void*)
    int64_t send_8(const uint8_t*, uint8_t, uint8_t, const uint32_t*, int64_t, uint32_t*, uint32_t*)
    int64_t send_16(
        const uint16_t*, uint16_t, uint16_t, const uint32_t*, int64_t, uint32_t*, uint32_t*
    )
    int64_t send_32(
        const uint32_t*, uint32_t, uint32_t, const uint32_t*, int64_t, uint32_t*, uint32_t*
    )
    int64_t send_table_8(
        const uint8_t*, const uint8_t*, uint32_t, const uint32_t*, int64_t, uint32_t*, uint32_t*
    )
    int64_t send_table_16(
        const uint16_t*, const uint8_t*, uint32_t, const uint32_t*, int64_t, uint32_t*, uint32_t*
    )
    int64_t send_table_32(
        const uint32_t*, const uint8_t*, uint32_t, const uint32_t*, int64_t, uint32_t*, uint32_t*
    )
    void send_violated_8(
        const uint8_t*, uint8_t, uint8_t, uint32_t, uint32_t, bint, bint, const uint32_t*, int64_t,
        uint32_t*, int64_t*, uint32_t*, int64_t*,
    )
    void send_violated_16(
        const uint16_t*, uint16_t, uint16_t, uint32_t, uint32_t, bint, bint, const uint32_t*, int64_t,
        uint32_t*, int64_t*, uint32_t*, int64_t*,
    )
    void send_violated_32(
        const uint32_t*, uint32_t, uint32_t, uint32_t, uint32_t, bint, bint, const uint32_t*, int64_t,
        uint32_t*, int64_t*, uint32_t*, int64_t*,
    )
    void send_violated_table_8(
        const uint8_t*, const uint8_t*, uint32_t, uint32_t, uint32_t, bint, bint, const uint32_t*,
        int64_t, uint32_t*, int64_t*, uint32_t*, int64_t*,
    )
    void send_violated_table_16(
        const uint16_t*, const uint8_t*, uint32_t, uint32_t, uint32_t, bint, bint, const uint32_t*,
        int64_t, uint32_t*, int64_t*, uint32_t*, int64_t*,
    )
    void send_violated_table_32(
        const uint32_t*, const uint8_t*, uint32_t, uint32_t, uint32_t, bint, bint, const uint32_t*,
        int64_t, uint32_t*, int64_t*, uint32_t*, int64_t*,
    )

cdef enum:
    MOST_GROUPS = 16         # of trees with tables of their own; it must not depend on threads
    MOST_ENTRIES = 1 << 22   # of the tables of all groups
    AHEAD = 16               # jumps whose cells are on their way from memory
    MOST_ROWS_BITS = 16      # of the number of a row among those that walk together
    # What is known of a player on the way down, a number an output of the tree each:
    PENDING = 0              # sum of c W[i], and of what of c W[] is no longer in SINCE
    SINCE = 1                # the sum of c W[] of the tree when the present side began
    FIRST = 2                # what the first point of the present side gets from tests below
    LAST = 3                 # its last point
    ABSENT = 4               # missing
    N_SUMS = 5


MOST_JUMPS = 2**22
"""Numbers that trees list before they are added to the tables."""


cdef struct Lists:
    # Rows at a node, from `at` on: those that have violated nobody, then those that have.
    int64_t at
    int64_t n_free
    int64_t n_violated


cdef struct Frame:
    # A test on the way here.
    const Node* node
    bint is_left         # whether its left child is being walked, or its right one
    double* above        # the sums of its player above the test
    Lists right_rows
    Side side            # of the player above the test, and at its children
    Side left
    Side right
    int64_t top          # what of the arena of points is taken


cdef struct Job:
    TreesView trees
    Codes codes
    const double* weight      # NULL where each row counts once
    int64_t n_players
    const PointsView* points  # by player
    const int64_t* place      # where the points of a player begin among those of all
    const int64_t* own_place  # where the table of a player begins, of those that a group has
    int64_t* cell             # of each jump: n_outputs times its point, and its first output
    double* jump              # n_values each
    int64_t* n_jumps          # by tree
    int64_t first_tree        # of those that walk together
    int64_t arena_room
    int shift                 # bits of the number of a row


cdef struct Scratch:
    Frame* frame              # by number of tests on the way
    double* both              # by frame, left and right child, kind and output: sums of its player
    double* whole             # by player, kind and output: sums above all of its tests
    double** sums             # by player: those of its present side
    uint32_t* rows
    int64_t room
    Side* side                # by player
    double* within            # sum of c W[] of the tree
    int64_t* cell             # jumps of the tree
    double* jump
    int64_t n_jumps
    int32_t* arena
    int64_t top


cdef int _scratch_init(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t n = job.n_players, depth = job.trees.depth + 1, n_values = job.trees.n_values
    memset(scratch, 0, sizeof(Scratch))
    scratch.room = 1024
    scratch.frame = <Frame*> malloc(depth * sizeof(Frame))
    scratch.both = <double*> malloc(depth * 2 * N_SUMS * n_values * sizeof(double))
    scratch.rows = <uint32_t*> malloc(scratch.room * sizeof(uint32_t))
    scratch.side = <Side*> malloc((n + 1) * sizeof(Side))
    scratch.whole = <double*> malloc((n + 1) * N_SUMS * n_values * sizeof(double))
    scratch.sums = <double**> malloc((n + 1) * sizeof(double*))
    scratch.within = <double*> malloc(n_values * sizeof(double))
    scratch.arena = <int32_t*> malloc((job.arena_room + 1) * sizeof(int32_t))
    return -1 if (
        scratch.frame == NULL or scratch.both == NULL or scratch.whole == NULL
        or scratch.sums == NULL or scratch.rows == NULL or scratch.side == NULL
        or scratch.within == NULL or scratch.arena == NULL
    ) else 0


cdef void _scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.frame)
    free(scratch.both)
    free(scratch.whole)
    free(scratch.rows)
    free(scratch.side)
    free(scratch.sums)
    free(scratch.within)
    free(scratch.arena)


cdef int _make_room(Scratch* scratch, int64_t needed) noexcept nogil:
    cdef uint32_t* grown
    if needed <= scratch.room:
        return 0
    grown = <uint32_t*> realloc(scratch.rows, 2 * needed * sizeof(uint32_t))
    if grown == NULL:
        return -1
    scratch.rows, scratch.room = grown, 2 * needed
    return 0


cdef inline void _send(
    const Job* job, const Node* node, int64_t first_row, const Lists* here, uint32_t* rows,
    bint left_open, bint right_open, Lists* left, Lists* right,
) noexcept nogil:
    """Deal the rows at a node to its children, whose lists begin at `left.at` and `right.at`."""
    cdef uint8_t width = job.codes.width[node.slot]
    cdef const uint8_t* column = job.codes.data + job.codes.offset[node.slot] + first_row * width
    cdef const uint8_t* table = job.trees.tables + node.table
    cdef const uint32_t* at = rows + here.at
    cdef uint32_t* to_left = rows + left.at
    cdef uint32_t* to_right = rows + right.at
    cdef uint32_t mask = (<uint32_t> 1 << job.shift) - 1, gone = <uint32_t> node.player << job.shift
    cdef int64_t n = here.n_free, i, n_left = 0, n_right = 0
    if node.table >= 0:
        if width == 1:
            left.n_free = send_table_8(column, table, node.span, at, n, to_left, to_right)
        elif width == 2:
            left.n_free = send_table_16(
                <const uint16_t*> column, table, node.span, at, n, to_left, to_right
            )
        else:
            left.n_free = send_table_32(
                <const uint32_t*> column, table, node.span, at, n, to_left, to_right
            )
    elif width == 1:
        left.n_free = send_8(
            column, <uint8_t> node.low, <uint8_t> node.span, at, n, to_left, to_right
        )
    elif width == 2:
        left.n_free = send_16(
            <const uint16_t*> column, <uint16_t> node.low, <uint16_t> node.span, at, n, to_left,
            to_right,
        )
    else:
        left.n_free = send_32(
            <const uint32_t*> column, node.low, node.span, at, n, to_left, to_right
        )
    right.n_free = n - left.n_free
    at += n
    n = here.n_violated
    if left_open:
        n_left = right.n_free
        for i in range(n_left):
            to_left[left.n_free + i] = to_right[i] | gone
    if right_open:
        n_right = left.n_free
        for i in range(n_right):
            to_right[right.n_free + i] = to_left[i] | gone
    to_left += left.n_free
    to_right += right.n_free
    if node.table >= 0:
        if width == 1:
            send_violated_table_8(column, table, node.span, gone, mask, left_open,
                                  right_open, at, n, to_left, &n_left, to_right, &n_right)
        elif width == 2:
            send_violated_table_16(<const uint16_t*> column, table, node.span, gone, mask,
                                   left_open, right_open, at, n, to_left, &n_left, to_right,
                                   &n_right)
        else:
            send_violated_table_32(<const uint32_t*> column, table, node.span, gone, mask,
                                   left_open, right_open, at, n, to_left, &n_left, to_right,
                                   &n_right)
    elif width == 1:
        send_violated_8(column, <uint8_t> node.low, <uint8_t> node.span, gone, mask,
                        left_open, right_open, at, n, to_left, &n_left, to_right, &n_right)
    elif width == 2:
        send_violated_16(<const uint16_t*> column, <uint16_t> node.low, <uint16_t> node.span,
                         gone, mask, left_open, right_open, at, n, to_left, &n_left,
                         to_right, &n_right)
    else:
        send_violated_32(<const uint32_t*> column, node.low, node.span, gone, mask,
                         left_open, right_open, at, n, to_left, &n_left, to_right, &n_right)
    left.n_violated, right.n_violated = n_left, n_right


cdef inline void _add_leaf(
    const Job* job, Scratch* scratch, const double* value, int64_t n_values, int64_t first_row,
    const Lists* here,
) noexcept nogil:
    """Add a leaf to the sums of the players that its rows have violated."""
    cdef const uint32_t* at = scratch.rows + here.at
    cdef const double* weight = job.weight + first_row
    cdef int64_t i, v
    cdef uint32_t mask = (<uint32_t> 1 << job.shift) - 1
    cdef double total = 0.0
    cdef double* pending
    if job.weight == NULL:
        total = here.n_free
    else:
        for i in range(here.n_free):
            total += weight[at[i]]
    for v in range(n_values):
        scratch.within[v] += value[v] * total
    at += here.n_free
    if job.weight == NULL and n_values == 1:
        for i in range(here.n_violated):
            scratch.sums[at[i] >> job.shift][0] += value[0]
        return
    for i in range(here.n_violated):
        pending = scratch.sums[at[i] >> job.shift]
        total = 1.0 if job.weight == NULL else weight[at[i] & mask]
        for v in range(n_values):
            pending[v] += value[v] * total


cdef inline void _begin_side(
    Scratch* scratch, int32_t player, Side side, double* sums, int64_t n_values
) noexcept nogil:
    cdef int64_t v
    scratch.side[player], scratch.sums[player] = side, sums
    for v in range(n_values):
        sums[PENDING * n_values + v] = sums[FIRST * n_values + v] = 0.0
        sums[LAST * n_values + v] = sums[ABSENT * n_values + v] = 0.0
        sums[SINCE * n_values + v] = scratch.within[v]


cdef inline void _settle(const Scratch* scratch, double* sums, int64_t n_values) noexcept nogil:
    """Add what the leaves since have given to those who violated nobody."""
    cdef int64_t v
    for v in range(n_values):
        sums[v] += scratch.within[v] - sums[SINCE * n_values + v]


cdef inline void _end_side(
    const Job* job, Scratch* scratch, int32_t player, int64_t n_values, double* table
) noexcept nogil:
    """Give the points of a side what the leaves below have added up, down to further tests."""
    cdef int64_t size = job.points[player].size, state = 0, start, end, v
    cdef double* sums = scratch.sums[player]
    cdef Side side = scratch.side[player]
    cdef double amount
    _settle(scratch, sums, n_values)
    if job.points[player].is_line:
        for v in range(n_values):
            sums[FIRST * n_values + v] += sums[v]
            sums[LAST * n_values + v] += sums[v]
            if side.missing:
                sums[ABSENT * n_values + v] += sums[v]
        return
    while next_run(&job.points[player], side, scratch.arena, &state, &start, &end):
        for v in range(n_values):
            amount = sums[v]
            table[v * size + start] += amount
            if end < size:
                table[v * size + end] -= amount


cdef inline void _join_sides(
    const Job* job, Scratch* scratch, const Frame* frame, int64_t n_values, int64_t output,
    const double* left, const double* right, double* above,
) noexcept nogil:
    """Where a test on a line cuts: the jump there, and what is handed to the test above."""
    cdef bint on_left = frame.left.first < frame.left.last
    cdef bint on_right = frame.right.first < frame.right.last
    cdef const double* first = left if on_left else right
    cdef const double* last = right if on_right else left
    cdef double* jump = scratch.jump + scratch.n_jumps * n_values
    cdef int64_t v
    for v in range(n_values):
        above[FIRST * n_values + v] += first[FIRST * n_values + v]
        above[LAST * n_values + v] += last[LAST * n_values + v]
        above[ABSENT * n_values + v] += left[ABSENT * n_values + v] + right[ABSENT * n_values + v]
        jump[v] = right[FIRST * n_values + v] - left[LAST * n_values + v]
    scratch.cell[scratch.n_jumps] = output + job.trees.n_outputs * (
        job.place[frame.node.player] + frame.right.first
    )
    scratch.n_jumps += on_left and on_right


cdef void _end_tree(const Job* job, Scratch* scratch, int64_t output, double* table) noexcept nogil:
    """What all points of a player get, and at the end of a line the missing one."""
    cdef int64_t n_values = job.trees.n_values, player, size, n_numbers, v
    cdef double* sums
    cdef double* curve
    cdef double base
    for player in range(job.n_players):
        size, n_numbers = _own_size(&job.points[player]), job.points[player].n_numbers
        sums = scratch.whole + player * N_SUMS * n_values
        for v in range(n_values if size else 0):
            curve = table + job.own_place[player] + (output + v) * size
            # Leaves below tests of the player: all but those that were pending on the whole side.
            base = sums[SINCE * n_values + v] - sums[v]
            curve[0] -= base
            if not job.points[player].is_line:
                continue
            if n_numbers:
                curve[0] += sums[FIRST * n_values + v]
            if job.points[player].size > n_numbers:
                curve[1] += sums[ABSENT * n_values + v]
                if n_numbers:
                    curve[1] -= sums[LAST * n_values + v]


cdef inline int64_t _own_size(const PointsView* points) noexcept nogil:
    """Entries, for an output, of the table that a group of trees has of a player.

    On a line they are its first point, and the missing one if there is one.
    """
    if points.is_line:
        return min(points.size, <int64_t> 1) + (points.size > points.n_numbers)
    return points.size


cdef inline int64_t _n_tests_before(const TreesView* trees, int64_t tree) noexcept nogil:
    """Number of inner nodes of the trees before one."""
    return (trees.root[tree] - tree) // 2


cdef inline int _walk(
    const Job* job, int64_t n_values, int64_t tree, int64_t first_row, int64_t n_rows,
    Scratch* scratch, double* base, double* table,
) noexcept nogil:
    """Take some rows through a tree."""
    cdef int64_t n_sums = N_SUMS * n_values, depth = 0, i, v, n
    cdef int64_t output = job.trees.tree_output[tree]
    cdef const Node* node = job.trees.node + job.trees.root[tree]
    cdef Frame* frame
    cdef Lists here, left
    cdef double* both
    cdef double* curve
    here.at, here.n_free, here.n_violated = 0, n_rows, 0
    if _make_room(scratch, n_rows) < 0:
        return -1
    for i in range(n_rows):
        scratch.rows[i] = <uint32_t> i
    for i in range(job.n_players):
        scratch.sums[i] = scratch.whole + i * n_sums
    memset(scratch.whole, 0, job.n_players * n_sums * sizeof(double))
    memset(scratch.within, 0, n_values * sizeof(double))
    scratch.n_jumps = 0
    i = _n_tests_before(&job.trees, tree) - _n_tests_before(&job.trees, job.first_tree)
    scratch.cell, scratch.jump = job.cell + i, job.jump + i * n_values
    while True:
        n = here.n_free + here.n_violated
        if n and node.left >= 0:
            frame = scratch.frame + depth
            frame.node, frame.is_left, frame.side = node, True, scratch.side[node.player]
            frame.top = scratch.top
            depth += 1
            split_side(
                &job.trees, &job.points[node.player], &job.codes, node, frame.side, &frame.left,
                &frame.right, scratch.arena, &scratch.top,
            )
            if _make_room(scratch, here.at + 3 * n) < 0:
                return -1
            # The right child's rows wait below those of the left one.
            frame.right_rows.at, left.at = here.at + n, here.at + 2 * n
            _send(
                job, node, first_row, &here, scratch.rows, not is_empty(frame.left),
                not is_empty(frame.right), &left, &frame.right_rows,
            )
            frame.above = scratch.sums[node.player]
            _settle(scratch, frame.above, n_values)
            both = scratch.both + 2 * (depth - 1) * n_sums
            _begin_side(scratch, node.player, frame.left, both, n_values)
            node, here = job.trees.node + node.left, left
            continue
        if n:
            _add_leaf(
                job, scratch, job.trees.leaf_value + node.slot * n_values, n_values, first_row, &here
            )
        while depth:
            frame = scratch.frame + depth - 1
            node = frame.node
            both = scratch.both + 2 * (depth - 1) * n_sums
            curve = table + job.own_place[node.player] + output * _own_size(&job.points[node.player])
            _end_side(job, scratch, node.player, n_values, curve)
            if frame.is_left:
                _begin_side(scratch, node.player, frame.right, both + n_sums, n_values)
                frame.is_left = False
                here, node = frame.right_rows, job.trees.node + node.right
                break
            if job.points[node.player].is_line:
                _join_sides(
                    job, scratch, frame, n_values, output, both, both + n_sums, frame.above
                )
            for v in range(n_values):
                frame.above[SINCE * n_values + v] = scratch.within[v]
            scratch.sums[node.player] = frame.above
            scratch.side[node.player], scratch.top = frame.side, frame.top
            depth -= 1
        else:
            break
    _end_tree(job, scratch, output, table)
    job.n_jumps[tree - job.first_tree] = scratch.n_jumps
    for v in range(n_values):
        base[output + v] += scratch.within[v]
    return 0


cdef int _walk_group(
    const Job* job, int64_t first_tree, int64_t last_tree, int64_t first_row, int64_t n_rows,
    double* base, double* table,
) noexcept nogil:
    cdef int64_t t, i, n_values = job.trees.n_values
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    if status == 0:
        for i in range(job.n_players):
            scratch.side[i] = whole_side(&job.points[i], scratch.arena, &scratch.top)
        for t in range(first_tree, last_tree):
            if status == 0 and n_values == 1:  # for the compiler, which leaves out the loops
                status = _walk(job, 1, t, first_row, n_rows, &scratch, base, table)
            elif status == 0:
                status = _walk(job, n_values, t, first_row, n_rows, &scratch, base, table)
    _scratch_free(&scratch)
    return status


cdef void _add_jumps(
    const Job* job, int64_t n_trees, int64_t first, int64_t last, double* flat
) noexcept nogil:
    """Add the jumps of some trees, in their order, to the cells from `first` up to `last`."""
    cdef int64_t n_values = job.trees.n_values, t, i, v, cell, before, n_jumps
    cdef const int64_t* cells
    cdef const double* jump
    for t in range(n_trees):
        before = (
            _n_tests_before(&job.trees, job.first_tree + t)
            - _n_tests_before(&job.trees, job.first_tree)
        )
        cells, jump = job.cell + before, job.jump + before * n_values
        n_jumps = job.n_jumps[t]
        for i in range(n_jumps):
            cell = cells[i]
            PREFETCH(flat + cells[min(i + AHEAD, n_jumps - 1)])
            if cell >= first and cell < last:
                for v in range(n_values):
                    flat[cell + v] += jump[i * n_values + v]


cdef inline int64_t _point(const PointsView* points, int64_t entry) noexcept nogil:
    """The point that an entry of a group's table belongs to."""
    return points.n_numbers if points.is_line and entry == 1 else entry


cdef void _finish(
    const Job* job, int64_t player, const double* own, double* flat, double* curves
) noexcept nogil:
    """Sum up the differences of a player: `flat` by point and output, `curves` by output."""
    cdef int64_t n_outputs = job.trees.n_outputs, size = job.points[player].size, p, v
    cdef int64_t own_size = _own_size(&job.points[player]), start = job.place[player] * n_outputs
    cdef double sum
    for v in range(n_outputs if size else 0):
        for p in range(own_size):
            flat[start + _point(&job.points[player], p) * n_outputs + v] += (
                own[job.own_place[player] + v * own_size + p]
            )
        sum = 0.0
        for p in range(size):
            sum += flat[start + p * n_outputs + v]
            curves[start + v * size + p] = sum


def _batches(const int64_t[::1] root, int64_t n_values):
    """Trees that walk together, by the jumps that they list: pairs of first and last but one."""
    n_tests = (np.asarray(root) - np.arange(root.shape[0])) // 2 * n_values
    batches, first = [], 0
    while first < root.shape[0] - 1:
        fitting = np.searchsorted(n_tests, n_tests[first] + MOST_JUMPS, side="right") - 1
        last = max(first + 1, int(fitting))
        batches.append((first, last))
        first = last
    return batches


cdef bint _walk_all(
    Job* job, batches, int n_threads, double[:, ::1] base, double[:, ::1] own, double[::1] flat
):
    """Walk all rows through all trees, and add up their jumps; whether there was memory for it."""
    cdef int64_t n_groups = base.shape[0], n_outputs = job.trees.n_outputs, g
    cdef int64_t n_points = job.place[job.n_players], first, n_trees, row, n_rows
    cdef int64_t most_rows = <int64_t> 1 << job.shift, most = 1
    for first, last in batches:
        most = max(most, _n_tests_before(&job.trees, last) - _n_tests_before(&job.trees, first))
    cdef int64_t[::1] cell = np.empty(most, np.int64)
    cdef double[::1] jump = np.empty(most * job.trees.n_values)
    cdef int64_t[::1] n_jumps = np.zeros(job.trees.n_trees + 1, np.int64)
    found = np.zeros(n_groups, np.int32)
    cdef int32_t[::1] status = found
    job.cell, job.jump, job.n_jumps = &cell[0], &jump[0], &n_jumps[0]
    for first, last in batches:
        job.first_tree, n_trees = first, last - first
        for row in range(0, job.codes.n_rows, most_rows):
            n_rows = min(most_rows, job.codes.n_rows - row)
            for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
                status[g] |= _walk_group(
                    job, first + g * n_trees // n_groups, first + (g + 1) * n_trees // n_groups, row,
                    n_rows, &base[g, 0], &own[g, 0],
                )
            if found.any():
                return False
            for g in prange(n_threads, nogil=True, num_threads=n_threads, schedule="static"):
                _add_jumps(
                    job, n_trees, g * n_points // n_threads * n_outputs,
                    (g + 1) * n_points // n_threads * n_outputs, &flat[0],
                )
    return True


cdef _finish_all(
    const Job* job, int n_threads, const double[::1] own, double[::1] flat, double[::1] curves
):
    cdef int64_t player
    for player in prange(job.n_players, nogil=True, num_threads=n_threads, schedule="dynamic"):
        _finish(job, player, &own[0], &flat[0], &curves[0])


def single_components(Trees trees, points, BinnedRows rows, sample_weight, int n_threads):
    """Components of all players, times the weight of the rows.

    Parameters
    ----------
    trees : Trees
    points : list of Points
        One a player, at which it is held.
    rows : BinnedRows
    sample_weight : ndarray of shape (n_rows,), float64, or None
    n_threads : int

    Returns
    -------
    total : ndarray of shape (n_outputs,), float64
        Weighted sum of the trees' answers to the rows, without the intercept.
    tables : list of ndarray of shape (n_outputs, n_points), float64
    """
    cdef int64_t n = len(points), k
    cdef Job job
    cdef PointsView* views = <PointsView*> calloc(n + 1, sizeof(PointsView))
    cdef const double[::1] weights = np.empty(0) if sample_weight is None else sample_weight
    memset(&job, 0, sizeof(Job))
    if views == NULL:
        raise MemoryError("no memory for the points of the players")
    sizes, own_sizes = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for k in range(n):
        views[k] = (<Points> points[k]).view()
        sizes[k + 1], own_sizes[k + 1] = views[k].size, _own_size(&views[k]) * trees.n_outputs
        if not views[k].is_line:
            job.arena_room += views[k].size * (2 * trees._depth + 1)
    cdef const int64_t[::1] place = np.cumsum(sizes), own_place = np.cumsum(own_sizes)
    job.trees, job.codes, job.points, job.n_players = trees.view(), rows.view(), views, n
    job.weight = NULL if sample_weight is None else &weights[0]
    job.place, job.own_place = &place[0], &own_place[0]
    job.shift = min(MOST_ROWS_BITS, 32 - int(n).bit_length())
    cdef int64_t n_outputs = trees.n_outputs, n_values = job.trees.n_values
    cdef int64_t n_groups = max(
        min(job.trees.n_trees, <int64_t> MOST_GROUPS, MOST_ENTRIES // max(own_place[n], <int64_t> 1)),
        <int64_t> 1,
    )
    bases, own = np.zeros((n_groups, n_outputs)), np.zeros((n_groups, own_place[n] + 1))
    flat, curves = np.zeros(place[n] * n_outputs + 1), np.empty(place[n] * n_outputs + 1)
    is_done = _walk_all(&job, _batches(trees.root, n_values), n_threads, bases, own, flat)
    if is_done:
        _finish_all(&job, n_threads, sum_in_order(own), flat, curves)
    free(views)
    if not is_done:
        raise MemoryError("no memory to walk through the trees; use fewer rows at a time")
    tables = [
        curves[place[k] * n_outputs:place[k + 1] * n_outputs].reshape(n_outputs, -1)
        for k in range(n)
    ]
    return sum_in_order(bases), tables
