"""Every row's own curves along many columns at once, from their jumps: exact ICE of small trees.

A curve is constant but at the thresholds of its column. At a threshold ``c`` of a node that tests
column ``j`` it jumps for the rows that pass all tests of other columns on the way to the node, by

    value(right subtree, j just above c) - value(left subtree, j just below c),

and the sum of all jumps up to a code, less that up to the row's own code, is added to the row's
prediction. Where ``j`` is not tested again below, the two values are those of the subtrees as the
row goes through them, which are the same for all columns: all that a node takes is one choice
between two numbers, and one difference. There is no branch and no list of rows: all nodes look at
all rows of a block, a vector at a time. That is sooner than to walk (see ice.pyx) as long as a
tree has not many more nodes than a row's neighbourhood has, of which `most_steps` tells.

What missing values do is one more jump, from the code that goes with them at most nodes.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport Node, Trees, TreesView, row_goes_left

import numpy as np

from fastpd_sklearn.core.ice import LINKS

cdef extern from "jumps.h" nogil:
    enum:
        LANES
    ctypedef struct LaneTest:
        int64_t offset
        uint32_t low
        uint32_t span
        int32_t mask
        int32_t node
    ctypedef struct LaneWay:
        int32_t source
        int32_t mask
        int32_t flip
        int32_t target
    ctypedef struct LaneValue:
        int32_t kind
        int32_t place
        int32_t left
        int32_t right
    ctypedef struct LaneStep:
        LaneValue left
        LaneValue right
        int32_t mask
        int32_t way
        int32_t target
        int32_t cell
    void lane_tests_8(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    void lane_tests_16(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    void lane_tests_32(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    int lane_kind(int, int, int, int)
    void lane_ways(const LaneWay*, int64_t, const uint8_t*, uint8_t*)
    void lane_steps(
        int, const LaneStep*, int64_t, const double*, int64_t, const uint8_t*, const uint8_t*,
        double*, double*,
    )
    void lane_sums(double*, int64_t)
    void lane_add(double*, const double*, const double*)
    void lane_write(const double*, int64_t, double*, int64_t)
    double weighted_sum(const double*, const double*, int64_t)
    void apply_link(int, double*, int64_t, int64_t)

cdef enum:
    MOST_GROUPS = 64     # of blocks whose sums are added up apart; it must not depend on threads
    BYTE_TESTS = 0       # kinds of tests
    SHORT_TESTS = 1
    LONG_TESTS = 2
    TABLE_TESTS = 3
    REGISTER = 0         # kinds of values, see jumps.h
    FIXED = 1
    CHOSEN = 2
    N_KINDS = 64         # of steps
    LEAST_ROOM = 256     # of arrays that grow

DEEPEST = 64
"""Most tests on a path: their subtrees are followed by recursion."""


cdef struct Run:
    # Successive steps of one kind.
    int64_t first
    int64_t n
    int32_t kind


cdef struct Part:
    # What a tree takes, as the ends of its tests, ways and runs; they start where those of the
    # tree before end. Late runs ask for values that the others leave behind.
    int64_t tests[4]
    int64_t ways
    int64_t late_runs
    int64_t runs


cdef struct Program:
    # Arrays that grow, and how much memory a tree takes at most.
    LaneTest* test
    LaneWay* way
    LaneStep* step
    Run* run
    Part* part
    int64_t n_tests
    int64_t n_ways
    int64_t n_steps
    int64_t n_runs
    int64_t test_room
    int64_t way_room
    int64_t step_room
    int64_t run_room
    int status              # negative where memory was short
    int64_t most_nodes
    int64_t most_ways       # rows of ways at a time
    int64_t most_values     # registers at a time


cdef struct Columns:
    # By player: its curve. Codes are 0 to n_codes - 1, and n_codes is missing.
    const int32_t* first_cell   # -1 without a curve
    const int32_t* n_codes
    const int32_t* reference    # the code that missing is compared with
    const int64_t* offset       # by slot, of its codes in a block
    const uint8_t* width


cdef struct Builder:
    # A tree whose program is made; arrays are by the node's number within the tree.
    const Node* node
    int32_t root
    int32_t n_nodes
    int32_t* parent
    int32_t* height
    int32_t* below          # the player at hand, where it is tested there or below
    uint8_t* needs_value
    uint8_t* needs_mask
    uint8_t* needs_way
    int32_t* jump           # the cell of the jump between its children, or -1
    int32_t* jump_way
    int32_t* free_way       # the rows that arrive if the player that is tested here is left free
    int32_t* of_player      # chains of the nodes that test a player, and where they begin
    int32_t* next_of_player
    int32_t player
    int32_t n_values
    int32_t n_ways
    LaneWay* late           # ways that start from those of other nodes
    int64_t n_late
    int32_t* next           # chains of nodes of one height, or kind, and where they begin
    int32_t* of_height
    int32_t* next_of_kind
    int32_t of_kind[N_KINDS]


# -------------------------------------------------------------- the program


cdef void* _grown(void* array, int64_t n, int64_t* room, size_t size, int* status) noexcept nogil:
    """Room for one more than ``n`` elements."""
    cdef void* more = array
    if n >= room[0]:
        room[0] = max(2 * room[0], <int64_t> LEAST_ROOM)
        more = realloc(array, room[0] * size)
        if more == NULL:
            status[0] = -1
            free(array)
            room[0] = 0
    return more


cdef inline LaneStep* _new_step(Program* p, int64_t first_run, int kind) noexcept nogil:
    """One more step, in the last run if that is of the same kind; NULL without memory."""
    cdef Run* run
    p.step = <LaneStep*> _grown(p.step, p.n_steps, &p.step_room, sizeof(LaneStep), &p.status)
    p.run = <Run*> _grown(p.run, p.n_runs, &p.run_room, sizeof(Run), &p.status)
    if p.status:
        return NULL
    run = p.run + p.n_runs - 1
    if p.n_runs == first_run or run.kind != kind:
        run += 1
        run.kind, run.first, run.n = kind, p.n_steps, 0
        p.n_runs += 1
    run.n += 1
    p.n_steps += 1
    return p.step + p.n_steps - 1


cdef inline void _put_value(
    Program* p, int64_t first_run, LaneValue left, LaneValue right, int32_t mask, int32_t target
) noexcept nogil:
    cdef LaneStep* step = _new_step(p, first_run, lane_kind(left.kind, right.kind, 1, 0))
    if step != NULL:
        step.left, step.right, step.mask, step.target = left, right, mask, target


cdef inline void _put_jump(
    Program* p, int64_t first_run, LaneValue left, LaneValue right, int32_t way, int32_t cell
) noexcept nogil:
    cdef LaneStep* step = _new_step(p, first_run, lane_kind(left.kind, right.kind, 0, 1))
    if step != NULL:
        step.left, step.right, step.way, step.cell = left, right, way, cell


cdef inline void _put_way(
    Program* p, int32_t source, int32_t mask, int32_t flip, int32_t target
) noexcept nogil:
    p.way = <LaneWay*> _grown(p.way, p.n_ways, &p.way_room, sizeof(LaneWay), &p.status)
    if p.status:
        return
    p.way[p.n_ways].source, p.way[p.n_ways].mask = source, mask
    p.way[p.n_ways].flip, p.way[p.n_ways].target = flip, target
    p.n_ways += 1


cdef inline int32_t _child(const Builder* b, int32_t i, bint is_left) noexcept nogil:
    return (b.node[i].left if is_left else b.node[i].right) - b.root


cdef inline bint _is_leaf(const Builder* b, int32_t i) noexcept nogil:
    return b.node[i].left < 0


cdef inline bint _goes_left(const Builder* b, const Columns* columns, int32_t i, int32_t code) noexcept nogil:
    """Where a code of the player at hand goes, whose tests cut the line of its codes."""
    if code == columns.n_codes[b.player]:
        return b.node[i].low != 0
    return code < _cut(b, i)


cdef inline int32_t _cut(const Builder* b, int32_t i) noexcept nogil:
    """The first code that goes right; see `split_side`."""
    return <int32_t> (b.node[i].span - (b.node[i].low != 0) + 1)


cdef inline LaneValue _value_of(Builder* b, int32_t i) noexcept nogil:
    """Where the value of a subtree is found."""
    cdef LaneValue value
    cdef int32_t left, right
    value.kind, value.place, value.left, value.right = REGISTER, i, 0, 0
    if _is_leaf(b, i):
        value.kind, value.left = FIXED, b.node[i].slot
        return value
    left, right = _child(b, i, True), _child(b, i, False)
    if _is_leaf(b, left) and _is_leaf(b, right):
        value.kind = CHOSEN
        value.left, value.right = b.node[left].slot, b.node[right].slot
        b.needs_mask[i] = True
    else:
        b.needs_value[i] = True
    return value


cdef LaneValue _value_at(
    Builder* b, const Columns* columns, Program* p, int32_t i, int32_t code, int64_t first_run,
    int32_t* n_registers,
) noexcept nogil:
    """Where the value of a subtree is found with the player at hand held at a code."""
    cdef LaneValue left, right, value
    if _is_leaf(b, i) or b.below[i] != b.player:
        return _value_of(b, i)
    if b.node[i].player == b.player:
        return _value_at(
            b, columns, p, _child(b, i, _goes_left(b, columns, i, code)), code, first_run,
            n_registers,
        )
    left = _value_at(b, columns, p, _child(b, i, True), code, first_run, n_registers)
    right = _value_at(b, columns, p, _child(b, i, False), code, first_run, n_registers)
    b.needs_mask[i] = True
    value.kind, value.place, value.left, value.right = REGISTER, n_registers[0], 0, 0
    n_registers[0] += 1
    _put_value(p, first_run, left, right, i, value.place)
    return value


cdef int32_t _free_way(Builder* b, int32_t i, int32_t top) noexcept nogil:
    """The rows that arrive at a node with its player left free; the topmost test of it is given."""
    cdef int32_t child = b.parent[i], below = i, way
    cdef LaneWay* late
    if b.free_way[i] >= 0:
        return b.free_way[i]
    b.needs_way[top] = True
    way = top
    while below != top:
        child, below = below, b.parent[below]
        if b.node[below].player == b.player:
            continue
        b.needs_mask[below] = True
        late = b.late + b.n_late
        late.source, late.mask = way, below
        late.flip = 0 if _child(b, below, True) == child else 255
        if way == top:
            way = b.n_ways
            b.n_ways += 1
        late.target = way
        b.n_late += 1
    b.free_way[i] = way
    return way


cdef void _add_missing(
    Builder* b, const Columns* columns, Program* p, int32_t i, int32_t top, int64_t first_run
) noexcept nogil:
    """The jump from the code that missing is compared with, where their ways part."""
    cdef int32_t reference = columns.reference[b.player], missing = columns.n_codes[b.player]
    cdef int32_t above = i, child, n_registers = b.n_nodes
    cdef LaneValue left, right
    cdef bint is_left
    if _goes_left(b, columns, i, reference) == _goes_left(b, columns, i, missing):
        return
    while above != top:
        child, above = above, b.parent[above]
        if b.node[above].player == b.player:
            is_left = _child(b, above, True) == child
            if (
                _goes_left(b, columns, above, reference) != is_left
                or _goes_left(b, columns, above, missing) != is_left
            ):
                return
    is_left = _goes_left(b, columns, i, reference)
    left = _value_at(
        b, columns, p, _child(b, i, is_left), reference, first_run, &n_registers
    )
    right = _value_at(
        b, columns, p, _child(b, i, not is_left), missing, first_run, &n_registers
    )
    _put_jump(p, first_run, left, right, _free_way(b, i, top),
              columns.first_cell[b.player] + missing)
    p.most_values = max(p.most_values, <int64_t> n_registers)


cdef void _add_jump(
    Builder* b, const Columns* columns, Program* p, int32_t i, int32_t top, int32_t low,
    int32_t high, int64_t first_run,
) noexcept nogil:
    """The jump at a node's threshold, where codes from `low` up to `high` arrive."""
    cdef int32_t cut = _cut(b, i), cell = columns.first_cell[b.player] + cut
    cdef int32_t n_registers = b.n_nodes
    cdef LaneValue left, right
    if cut <= low or cut >= high:
        return
    if b.below[_child(b, i, True)] != b.player and b.below[_child(b, i, False)] != b.player:
        b.jump[i], b.jump_way[i] = cell, _free_way(b, i, top)
        return
    left = _value_at(b, columns, p, _child(b, i, True), cut - 1, first_run, &n_registers)
    right = _value_at(b, columns, p, _child(b, i, False), cut, first_run, &n_registers)
    _put_jump(p, first_run, left, right, _free_way(b, i, top), cell)
    p.most_values = max(p.most_values, <int64_t> n_registers)


cdef void _add_player(
    Builder* b, const Columns* columns, Program* p, int64_t first_run
) noexcept nogil:
    """The jumps of the player at hand in a tree."""
    cdef int32_t i, above, child, top, low, high
    i = b.of_player[b.player]
    while i >= 0:
        above = i
        while above >= 0 and b.below[above] != b.player:
            b.below[above], above = b.player, b.parent[above]
        i = b.next_of_player[i]
    i = b.of_player[b.player]
    while i >= 0:
        above, top, low, high = i, i, 0, columns.n_codes[b.player]
        while b.parent[above] >= 0:
            child, above = above, b.parent[above]
            if b.node[above].player != b.player:
                continue
            top = above
            if _child(b, above, True) == child:
                high = min(high, _cut(b, above))
            else:
                low = max(low, _cut(b, above))
        _add_jump(b, columns, p, i, top, low, high, first_run)
        _add_missing(b, columns, p, i, top, first_run)
        i = b.next_of_player[i]


cdef void _add_ways(Builder* b, Program* p) noexcept nogil:
    cdef int32_t i, parent
    cdef int64_t k
    for i in range(b.n_nodes - 1, 0, -1):
        if b.needs_way[i]:
            b.needs_way[b.parent[i]] = b.needs_mask[b.parent[i]] = True
    for i in range(1, b.n_nodes):  # all rows arrive at the root
        if b.needs_way[i]:
            parent = b.parent[i]
            _put_way(p, parent, parent, 0 if _child(b, parent, True) == i else 255, i)
    for k in range(b.n_late):
        _put_way(p, b.late[k].source, b.late[k].mask, b.late[k].flip, b.late[k].target)
    p.most_ways = max(p.most_ways, <int64_t> b.n_ways)


cdef inline int32_t _kind_of_test(const Node* node, uint8_t width) noexcept nogil:
    if node.table >= 0:
        return TABLE_TESTS
    return BYTE_TESTS if width == 1 else SHORT_TESTS if width == 2 else LONG_TESTS


cdef void _add_tests(
    const Builder* b, const Columns* columns, Program* p, Part* part
) noexcept nogil:
    cdef int32_t i, kind
    cdef const Node* node
    cdef LaneTest* test
    for kind in range(4):
        for i in range(b.n_nodes):
            node = b.node + i
            if not b.needs_mask[i] or _kind_of_test(node, columns.width[node.slot]) != kind:
                continue
            p.test = <LaneTest*> _grown(
                p.test, p.n_tests, &p.test_room, sizeof(LaneTest), &p.status
            )
            if p.status:
                return
            test = p.test + p.n_tests
            test.offset, test.low, test.span = columns.offset[node.slot], node.low, node.span
            test.mask, test.node = i, b.root + i
            p.n_tests += 1
        part.tests[kind] = p.n_tests


cdef void _add_nodes(Builder* b, Program* p) noexcept nogil:
    """Values of subtrees and jumps between them, from the leaves up, in runs of one kind."""
    cdef int32_t i, kind, height
    cdef int64_t first_run = p.n_runs
    cdef LaneStep* step
    cdef LaneValue left, right
    for height in range(b.height[0] + 1):
        b.of_height[height] = -1
    for i in range(b.n_nodes):
        if b.needs_value[i] or b.jump[i] >= 0:
            b.next[i], b.of_height[b.height[i]] = b.of_height[b.height[i]], i
    for height in range(1, b.height[0] + 1):
        for kind in range(N_KINDS):
            b.of_kind[kind] = -1
        i = b.of_height[height]
        while i >= 0:
            left, right = _value_of(b, _child(b, i, True)), _value_of(b, _child(b, i, False))
            kind = lane_kind(left.kind, right.kind, b.needs_value[i], b.jump[i] >= 0)
            b.next_of_kind[i], b.of_kind[kind] = b.of_kind[kind], i
            i = b.next[i]
        for kind in range(N_KINDS):
            i = b.of_kind[kind]
            while i >= 0:
                step = _new_step(p, first_run, kind)
                if step == NULL:
                    return
                step.left = _value_of(b, _child(b, i, True))
                step.right = _value_of(b, _child(b, i, False))
                step.mask, step.target, step.way, step.cell = i, i, b.jump_way[i], b.jump[i]
                i = b.next_of_kind[i]


cdef void _start_tree(Builder* b, const TreesView* trees, int64_t tree) noexcept nogil:
    cdef int32_t i, left, right
    b.root = <int32_t> trees.root[tree]
    b.n_nodes = <int32_t> (trees.root[tree + 1] - trees.root[tree])
    b.node = trees.node + b.root
    b.n_ways, b.n_late = b.n_nodes, 0
    memset(b.needs_value, 0, b.n_nodes)
    memset(b.needs_mask, 0, b.n_nodes)
    memset(b.needs_way, 0, b.n_nodes)
    b.parent[0] = -1
    for i in range(b.n_nodes):
        b.jump[i], b.jump_way[i], b.free_way[i], b.below[i], b.height[i] = -1, 0, -1, -1, 0
        if not _is_leaf(b, i):
            b.parent[_child(b, i, True)] = b.parent[_child(b, i, False)] = i
    for i in range(b.n_nodes - 1, -1, -1):  # children come after their parents
        if not _is_leaf(b, i):
            left, right = b.height[_child(b, i, True)], b.height[_child(b, i, False)]
            b.height[i] = 1 + max(left, right)


cdef void _add_tree(
    Builder* b, const TreesView* trees, const Columns* columns, int64_t tree, Program* p
) noexcept nogil:
    cdef int32_t i
    cdef int64_t first_run = p.n_runs
    cdef Part part
    _start_tree(b, trees, tree)
    p.most_nodes = max(p.most_nodes, <int64_t> b.n_nodes)
    p.most_values = max(p.most_values, <int64_t> b.n_nodes)
    for i in range(b.n_nodes):
        if not _is_leaf(b, i) and columns.first_cell[b.node[i].player] >= 0:
            b.player = b.node[i].player
            b.next_of_player[i], b.of_player[b.player] = b.of_player[b.player], i
    for i in range(b.n_nodes):
        if not _is_leaf(b, i) and b.of_player[b.node[i].player] >= 0:
            b.player = b.node[i].player
            _add_player(b, columns, p, first_run)
            b.of_player[b.player] = -1
    part.late_runs = p.n_runs
    for i in range(b.n_nodes):
        if b.needs_value[i]:
            b.needs_mask[i] = True
        if b.needs_value[i] or b.jump[i] >= 0:
            _value_of(b, _child(b, i, True))
            _value_of(b, _child(b, i, False))
    _add_nodes(b, p)
    _add_ways(b, p)
    _add_tests(b, columns, p, &part)
    part.ways, part.runs = p.n_ways, p.n_runs
    p.part[tree] = part


cdef int _builder_init(Builder* b, int64_t n, int64_t n_players, int64_t n_late) noexcept nogil:
    memset(b, 0, sizeof(Builder))
    b.parent = <int32_t*> malloc(n * sizeof(int32_t))
    b.height = <int32_t*> malloc(n * sizeof(int32_t))
    b.jump = <int32_t*> malloc(n * sizeof(int32_t))
    b.jump_way = <int32_t*> malloc(n * sizeof(int32_t))
    b.free_way = <int32_t*> malloc(n * sizeof(int32_t))
    b.next = <int32_t*> malloc(n * sizeof(int32_t))
    b.next_of_kind = <int32_t*> malloc(n * sizeof(int32_t))
    b.of_height = <int32_t*> malloc(n * sizeof(int32_t))
    b.below = <int32_t*> malloc(n * sizeof(int32_t))
    b.next_of_player = <int32_t*> malloc(n * sizeof(int32_t))
    b.of_player = <int32_t*> malloc(n_players * sizeof(int32_t))
    b.needs_value = <uint8_t*> malloc(3 * n)
    b.late = <LaneWay*> malloc(n_late * sizeof(LaneWay))
    if (
        b.parent == NULL or b.height == NULL or b.jump == NULL or b.jump_way == NULL
        or b.free_way == NULL or b.next == NULL or b.next_of_kind == NULL or b.of_height == NULL
        or b.below == NULL or b.next_of_player == NULL or b.of_player == NULL
        or b.needs_value == NULL or b.late == NULL
    ):
        return -1
    b.needs_mask, b.needs_way = b.needs_value + n, b.needs_value + 2 * n
    return 0


cdef void _builder_free(Builder* b) noexcept nogil:
    free(b.parent)
    free(b.height)
    free(b.jump)
    free(b.jump_way)
    free(b.free_way)
    free(b.next)
    free(b.next_of_kind)
    free(b.of_height)
    free(b.below)
    free(b.next_of_player)
    free(b.of_player)
    free(b.needs_value)
    free(b.late)


cdef void _make_program(
    Builder* b, const TreesView* trees, const Columns* columns, int64_t n_players, Program* p
) noexcept nogil:
    cdef int64_t t
    p.most_nodes = p.most_ways = p.most_values = 1
    for t in range(n_players):
        b.of_player[t] = -1
    for t in range(trees.n_trees):
        _add_tree(b, trees, columns, t, p)


# ---------------------------------------------------------------- its use


cdef struct Scratch:
    uint8_t* codes          # of the block, slot by slot
    uint8_t* masks          # by node of a tree: 255 where a row goes left
    uint8_t* ways           # by node and more: 255 where a row arrives
    double* values          # values[(value * most_values + register) * LANES + row]
    double* curve           # curve[(output * n_cells + cell) * LANES + row]
    double* margin          # margin[output * LANES + row]: the prediction
    double* shift           # the same, less the curve at the row's own code
    double* response
    double* weight


cdef struct Job:
    TreesView trees
    Codes codes
    Columns columns
    const Program* program
    int64_t n_cells
    int64_t n_slots
    int64_t code_bytes      # of a block
    const double* margin    # margin[output * n_rows + row]
    int64_t n_curves
    const int32_t* player   # by curve
    const int32_t* slot
    const int32_t* first    # points of curve k are those from first[k] on
    const int32_t* cell     # by point


cdef int _scratch_init(Scratch* s, const Job* job) noexcept nogil:
    cdef int64_t n_outputs = job.trees.n_outputs
    cdef const Program* p = job.program
    s.codes = <uint8_t*> calloc(job.code_bytes + 8, 1)
    s.masks = <uint8_t*> malloc(p.most_nodes * LANES)
    s.ways = <uint8_t*> malloc(p.most_ways * LANES)
    s.values = <double*> malloc(p.most_values * job.trees.n_values * LANES * sizeof(double))
    s.curve = <double*> malloc((n_outputs * job.n_cells + 1) * LANES * sizeof(double))
    s.margin = <double*> malloc(n_outputs * LANES * sizeof(double))
    s.shift = <double*> malloc(n_outputs * LANES * sizeof(double))
    s.response = <double*> malloc((n_outputs + 1) * LANES * sizeof(double))
    s.weight = <double*> malloc(LANES * sizeof(double))
    return -1 if (
        s.codes == NULL or s.masks == NULL or s.ways == NULL or s.values == NULL
        or s.curve == NULL or s.margin == NULL or s.shift == NULL or s.response == NULL
        or s.weight == NULL
    ) else 0


cdef void _scratch_free(Scratch* s) noexcept nogil:
    free(s.codes)
    free(s.masks)
    free(s.ways)
    free(s.values)
    free(s.curve)
    free(s.margin)
    free(s.shift)
    free(s.response)
    free(s.weight)


cdef void _take_block(const Job* job, int64_t row, int64_t m, Scratch* s) noexcept nogil:
    """The codes and predictions of a block; rows beyond the last have the code 0."""
    cdef int64_t k, width
    for k in range(job.n_slots):
        width = job.codes.width[k]
        memcpy(s.codes + job.columns.offset[k], job.codes.data + job.codes.offset[k] + row * width,
               m * width)
        memset(s.codes + job.columns.offset[k] + m * width, 0, (LANES - m) * width)
    for k in range(job.trees.n_outputs):
        memset(s.margin + k * LANES, 0, LANES * sizeof(double))
        memcpy(s.margin + k * LANES, job.margin + k * job.codes.n_rows + row, m * sizeof(double))


cdef void _test_by_table(
    const Job* job, const LaneTest* test, int64_t n, const Scratch* s
) noexcept nogil:
    cdef int64_t i, r
    cdef Codes codes = job.codes
    codes.data, codes.offset = s.codes, job.columns.offset
    for i in range(n):
        for r in range(LANES):
            s.masks[test[i].mask * LANES + r] = 255 * row_goes_left(
                &job.trees, &codes, job.trees.node + test[i].node, r
            )


cdef inline void _run(
    const Job* job, int64_t first, int64_t last, int64_t output, int64_t value, const Scratch* s
) noexcept nogil:
    cdef int64_t i
    cdef const Program* p = job.program
    cdef const double* fixed = job.trees.leaf_value + value
    for i in range(first, last):
        lane_steps(
            p.run[i].kind, p.step + p.run[i].first, p.run[i].n, fixed, job.trees.n_values, s.masks,
            s.ways, s.values + value * p.most_values * LANES,
            s.curve + (output + value) * job.n_cells * LANES,
        )


cdef void _fill_jumps(const Job* job, Scratch* s) noexcept nogil:
    """The jumps of all curves of a block of rows."""
    cdef int64_t t, v, output
    cdef const Program* p = job.program
    cdef Part start, end
    memset(s.curve, 0, job.trees.n_outputs * job.n_cells * LANES * sizeof(double))
    memset(s.ways, 255, LANES)
    memset(&end, 0, sizeof(Part))
    for t in range(job.trees.n_trees):
        start, end = end, p.part[t]
        if start.runs == end.runs:
            continue
        lane_tests_8(p.test + start.tests[3], end.tests[0] - start.tests[3], s.codes, s.masks)
        lane_tests_16(p.test + end.tests[0], end.tests[1] - end.tests[0], s.codes, s.masks)
        lane_tests_32(p.test + end.tests[1], end.tests[2] - end.tests[1], s.codes, s.masks)
        _test_by_table(job, p.test + end.tests[2], end.tests[3] - end.tests[2], s)
        lane_ways(p.way + start.ways, end.ways - start.ways, s.masks, s.ways)
        output = job.trees.tree_output[t]
        for v in range(job.trees.n_values):
            _run(job, end.late_runs, end.runs, output, v, s)
            _run(job, start.runs, end.late_runs, output, v, s)


cdef inline int64_t _own_code(const Job* job, int64_t curve, int64_t row, const Scratch* s) noexcept nogil:
    """A row's code, the number of codes for missing."""
    cdef const uint8_t* column = s.codes + job.columns.offset[job.slot[curve]]
    cdef uint8_t width = job.columns.width[job.slot[curve]]
    cdef int64_t code
    if width == 1:
        code = column[row]
    elif width == 2:
        code = (<const uint16_t*> column)[row]
    else:
        code = (<const uint32_t*> column)[row]
    return min(code, <int64_t> job.columns.n_codes[job.player[curve]])


cdef double* _finish_curve(
    const Job* job, int64_t curve, int64_t output, const Scratch* s
) noexcept nogil:
    """From jumps to a curve; margins are its cells with the shift added."""
    cdef int32_t player = job.player[curve]
    cdef int64_t n = job.columns.n_codes[player], r
    cdef double* cells = s.curve + (output * job.n_cells + job.columns.first_cell[player]) * LANES
    lane_sums(cells, n)
    lane_add(cells + n * LANES, cells + n * LANES, cells + job.columns.reference[player] * LANES)
    for r in range(LANES):
        s.shift[output * LANES + r] = (
            s.margin[output * LANES + r] - cells[_own_code(job, curve, r, s) * LANES + r]
        )
    return cells


cdef const double* _finish_outputs(const Job* job, int64_t curve, const Scratch* s) noexcept nogil:
    """From jumps to a curve in all outputs; the cells of the first one."""
    cdef int64_t k
    cdef const double* cells = NULL
    for k in range(job.trees.n_outputs - 1, -1, -1):
        cells = _finish_curve(job, curve, k, s)
    return cells


cdef inline void _respond_at(
    const Job* job, const double* cells, int64_t point, int link, const Scratch* s
) noexcept nogil:
    """The responses of a block at a point of a curve."""
    cdef int64_t k, step = job.n_cells * LANES
    for k in range(job.trees.n_outputs):
        lane_add(
            s.response + k * LANES, cells + k * step + job.cell[point] * LANES, s.shift + k * LANES
        )
    apply_link(link, s.response, job.trees.n_outputs, LANES)


cdef int _sum_group(
    const Job* job, int64_t first_block, int64_t last_block, const double* weights, int link,
    double* total,
) noexcept nogil:
    """total[output * n_points + point]: weighted sums over some blocks of rows."""
    cdef int64_t block, row, m, r, curve, i, k
    cdef int64_t n_outputs = job.trees.n_outputs, n_points = job.first[job.n_curves]
    cdef const double* cells
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * LANES
        m = min(<int64_t> LANES, job.codes.n_rows - row)
        for r in range(LANES):
            scratch.weight[r] = 0.0
            if r < m:
                scratch.weight[r] = 1.0 if weights == NULL else weights[row + r]
        _take_block(job, row, m, &scratch)
        _fill_jumps(job, &scratch)
        for curve in range(job.n_curves):
            cells = _finish_outputs(job, curve, &scratch)
            for i in range(job.first[curve], job.first[curve + 1]):
                _respond_at(job, cells, i, link, &scratch)
                for k in range(n_outputs):
                    total[k * n_points + i] += weighted_sum(
                        scratch.response + k * LANES, scratch.weight, LANES
                    )
    _scratch_free(&scratch)
    return status


cdef int _write_group(
    const Job* job, int64_t first_block, int64_t last_block, int link, double* out
) noexcept nogil:
    """out[n_outputs * n_rows * first[curve] + (output * n_rows + row) * (points of it) + point]."""
    cdef int64_t block, row, m, curve, i, k, n_points
    cdef int64_t n_outputs = job.trees.n_outputs, n_rows = job.codes.n_rows
    cdef const double* cells
    cdef double* target
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * LANES
        m = min(<int64_t> LANES, n_rows - row)
        _take_block(job, row, m, &scratch)
        _fill_jumps(job, &scratch)
        for curve in range(job.n_curves):
            cells = _finish_outputs(job, curve, &scratch)
            n_points = job.first[curve + 1] - job.first[curve]
            target = out + n_outputs * n_rows * job.first[curve]
            for i in range(n_points):
                _respond_at(job, cells, job.first[curve] + i, link, &scratch)
                for k in range(n_outputs):
                    lane_write(scratch.response + k * LANES, m,
                               target + (k * n_rows + row) * n_points + i, n_points)
    _scratch_free(&scratch)
    return status


def most_steps(Trees trees):
    """How many choices and differences curves along all columns take at most.

    Parameters
    ----------
    trees : Trees

    Returns
    -------
    int
        A node's own, and one for each node above that may test its column again.
    """
    cdef const int32_t[::1] left = trees.nodes["left"].copy(), right = trees.nodes["right"].copy()
    cdef int32_t[::1] depth = np.zeros(left.shape[0], np.int32)
    cdef int64_t i, n = 0
    for i in range(left.shape[0]):
        if left[i] >= 0:  # children come after their parents
            depth[left[i]] = depth[right[i]] = depth[i] + 1
            n += 1 + depth[i]
    return n


def response_sums(margins, sample_weight, link):
    """Weighted sums of a response over rows.

    Parameters
    ----------
    margins : ndarray of shape (n_outputs, n_rows), float64
    sample_weight : ndarray of shape (n_rows,), float64, or None
    link : str
        A key of `ice.LINKS`.

    Returns
    -------
    ndarray of shape (n_outputs,), float64
    """
    cdef const double[:, :] margin = margins
    cdef int64_t n_outputs = margin.shape[0], n_rows = margin.shape[1], row, m, k, r
    cdef double[:, ::1] block = np.zeros((n_outputs + 1, LANES))
    cdef double[::1] weight = np.zeros(LANES), total = np.zeros(n_outputs)
    cdef const double[::1] weights = np.ones(n_rows) if sample_weight is None else sample_weight
    cdef int which = LINKS[link]
    for row in range(0, n_rows, LANES):
        m = min(<int64_t> LANES, n_rows - row)
        for r in range(LANES):
            weight[r] = weights[row + r] if r < m else 0.0
        for k in range(n_outputs):
            for r in range(LANES):
                block[k, r] = margin[k, row + r] if r < m else 0.0
        apply_link(which, &block[0, 0], n_outputs, LANES)
        for k in range(n_outputs):
            total[k] += weighted_sum(&block[k, 0], &weight[0], LANES)
    return np.asarray(total)


cdef class Jumps:
    """Curves of rows along columns, each of which is a player whose tests cut its line in two.

    Parameters
    ----------
    trees : Trees
        At most `DEEPEST` tests deep.
    players, slots : sequence of int
        A curve each, and its binned column.
    n_players : int
    n_codes : ndarray of int64
        By slot of the forest: how many codes there are, missing apart.
    width : ndarray of uint8
        By slot of the forest: bytes of a code.
    """

    cdef Trees trees
    cdef object _players, _slots, _first_cell, _n_codes, _reference, _offset, _width
    cdef int64_t _n_cells
    cdef Columns _columns
    cdef Program _program

    def __cinit__(self):
        memset(&self._program, 0, sizeof(Program))

    def __init__(self, Trees trees, players, slots, int64_t n_players, n_codes, width):
        self.trees = trees
        self._players, self._slots = np.array(players, np.int32), np.array(slots, np.int32)
        sizes = np.asarray(n_codes)[self._slots] + 1
        self._first_cell = np.full(n_players + 1, -1, np.int32)
        self._first_cell[self._players] = np.cumsum(sizes) - sizes
        self._n_codes = np.zeros(n_players + 1, np.int32)
        self._n_codes[self._players] = sizes - 1
        self._n_cells = sizes.sum()
        self._reference = self._references()
        self._width = np.append(width, np.uint8(1))
        self._offset = (np.cumsum(self._width.astype(np.int64)) - self._width) * LANES
        self._set_columns()
        self._make(n_players)

    def __dealloc__(self):
        free(self._program.test)
        free(self._program.way)
        free(self._program.step)
        free(self._program.run)
        free(self._program.part)

    def _references(self):
        """By player, the code that goes with missing at the most nodes."""
        nodes = self.trees.nodes
        nodes = nodes[(nodes["left"] >= 0) & (self._first_cell[nodes["player"]] >= 0)]
        missing_left = nodes["low"] != 0
        end = self._n_codes[nodes["player"]]
        cut = np.minimum(nodes["span"] - missing_left + 1, end)
        first = self._first_cell[nodes["player"]]
        agreeing = np.zeros(self._n_cells + 1, np.int64)
        np.add.at(agreeing, first + np.where(missing_left, 0, cut), 1)
        np.add.at(agreeing, first + np.where(missing_left, cut, end), -1)
        agreeing = np.cumsum(agreeing)
        found = np.zeros(len(self._first_cell), np.int32)
        for player in self._players:
            start, n = self._first_cell[player], self._n_codes[player]
            found[player] = agreeing[start:start + n].argmax()
        return found

    cdef void _set_columns(self) except *:
        cdef const int32_t[::1] first_cell = self._first_cell, n_codes = self._n_codes
        cdef const int32_t[::1] reference = self._reference
        cdef const int64_t[::1] offset = self._offset
        cdef const uint8_t[::1] width = self._width
        self._columns.first_cell, self._columns.n_codes = &first_cell[0], &n_codes[0]
        self._columns.reference = &reference[0]
        self._columns.offset, self._columns.width = &offset[0], &width[0]

    def _make(self, int64_t n_players):
        cdef TreesView trees = self.trees.view()
        cdef int64_t most = int(np.diff(self.trees.root).max(initial=1))
        cdef Builder builder
        cdef Program* p = &self._program
        cdef int status = -1
        if self._program.part != NULL:
            raise RuntimeError("the curves of a forest are made once")
        if trees.depth > DEEPEST:
            raise ValueError(f"trees are {trees.depth} tests deep, more than {DEEPEST}")
        try:
            status = _builder_init(&builder, most, n_players + 1, most * (trees.depth + 1))
            if status == 0:
                p.part = <Part*> malloc((trees.n_trees + 1) * sizeof(Part))
                status = p.status = -1 if p.part == NULL else 0
            if status == 0:
                _make_program(&builder, &trees, &self._columns, n_players, p)
                status = p.status
        finally:
            _builder_free(&builder)
        if status:
            raise MemoryError("no memory for what the curves of a forest take; ask for fewer")

    cdef Job _job(self, BinnedRows rows, const double[:, ::1] margins) except *:
        cdef Job job
        memset(&job, 0, sizeof(Job))
        job.trees, job.codes, job.columns = self.trees.view(), rows.view(), self._columns
        job.program = &self._program
        job.n_cells, job.n_slots = self._n_cells, len(rows.width)
        job.code_bytes = int(self._offset[job.n_slots])
        job.margin = &margins[0, 0] if margins.size else NULL
        job.n_curves = len(self._players)
        return job

    def sums(self, BinnedRows rows, margins, cells, sample_weight, link, int n_threads):
        """Weighted sums of a response over the rows, along every curve.

        Parameters
        ----------
        rows : BinnedRows
        margins : ndarray of shape (n_outputs, n_rows), float64, C order
            The rows' predictions.
        cells : sequence of ndarray of int
            By curve, the codes to respond at; the number of codes for missing.
        sample_weight : ndarray of shape (n_rows,), float64, or None
        link : str
            From margins to the response: a key of `ice.LINKS`.
        n_threads : int

        Returns
        -------
        list of ndarray of shape (n_outputs, n_cells), float64
        """
        cdef Job job = self._job(rows, margins)
        cdef const int32_t[::1] players = self._players, slots = self._slots
        first_array = np.concatenate([[0], np.cumsum([len(c) for c in cells])]).astype(np.int32)
        cdef const int32_t[::1] first = first_array
        cdef const int32_t[::1] cell = np.concatenate([*cells, [0]]).astype(np.int32)
        job.player, job.slot, job.first, job.cell = &players[0], &slots[0], &first[0], &cell[0]
        cdef const double[::1] weights = np.empty(0) if sample_weight is None else sample_weight
        cdef const double* weight = NULL if sample_weight is None else &weights[0]
        cdef int which = LINKS[link]
        cdef int64_t n_blocks = (rows.n_rows + LANES - 1) // LANES
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        cdef int64_t size = self.trees.n_outputs * first[job.n_curves]
        total_array = np.zeros((n_groups, max(size, <int64_t> 1)))
        cdef double[:, ::1] total = total_array
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status[g] = _sum_group(
                &job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups, weight, which,
                &total[g, 0],
            )
        self._check(status_array)
        out = np.zeros(total_array.shape[1])
        for g in range(n_groups):
            out += total_array[g]
        return np.split(out[:size].reshape(self.trees.n_outputs, -1), first_array[1:len(cells)], axis=1)

    def curves(self, BinnedRows rows, margins, cells, link, int n_threads):
        """The response of every row along every curve.

        Parameters
        ----------
        rows, margins, cells, link, n_threads
            As for :meth:`sums`.

        Returns
        -------
        list of ndarray of shape (n_outputs, n_rows, n_cells), float64
        """
        cdef Job job = self._job(rows, margins)
        cdef const int32_t[::1] players = self._players, slots = self._slots
        first_array = np.concatenate([[0], np.cumsum([len(c) for c in cells])]).astype(np.int32)
        cdef const int32_t[::1] first = first_array
        cdef const int32_t[::1] cell = np.concatenate([*cells, [0]]).astype(np.int32)
        job.player, job.slot, job.first, job.cell = &players[0], &slots[0], &first[0], &cell[0]
        cdef int which = LINKS[link]
        cdef int64_t n_blocks = (rows.n_rows + LANES - 1) // LANES
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        flat = np.empty(int(self.trees.n_outputs * rows.n_rows * first_array[len(cells)]))
        cdef double[::1] target = flat
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        if flat.size:
            for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
                status[g] = _write_group(
                    &job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups, which,
                    &target[0],
                )
        self._check(status_array)
        shape = self.trees.n_outputs, rows.n_rows
        ends = first_array.astype(np.int64) * shape[0] * shape[1]
        return [
            flat[start:end].reshape(*shape, len(c))
            for start, end, c in zip(ends[:len(cells)], ends[1:], cells, strict=True)
        ]

    def _check(self, status):
        if status.any():
            raise MemoryError(
                f"no memory for blocks of curves over {self._n_cells} codes; ask for fewer columns"
            )
