"""How trees become a program that makes the jumps of curves, a block of rows at a time.

A program says for each tree, once for all rows: which *tests* give masks, by which *ways* rows arrive
at nodes with the player of a jump left free, and which *steps* follow: values of subtrees, and jumps
between the values of two children. Steps of one kind come in runs, so that the kind is asked for once
a run and not once a step. Where a player is tested again below one of its tests, the subtree is
followed with the player held beside the threshold, and its value is made apart (`_value_at`); other
values are those of the subtrees as the row goes through them, made once for all columns.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.walking cimport Node, Trees, TreesView

import numpy as np

cdef extern from "jump_program.h" nogil:
    int lane_kind(int, int, int, int)

cdef enum:
    BYTE_TESTS = 0       # kinds of tests
    SHORT_TESTS = 1
    LONG_TESTS = 2
    TABLE_TESTS = 3
    REGISTER = 0         # kinds of values, see jump_program.h
    FIXED = 1
    CHOSEN = 2
    UNUSED = -1          # a way that nobody looks at
    N_KINDS = 64         # of steps
    LEAST_ROOM = 256     # of arrays that grow

DEEPEST = 64
"""Most tests on a path: their subtrees are followed by recursion."""


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
    Program* p, int32_t source, int32_t mask, int32_t left, int32_t right
) noexcept nogil:
    p.way = <LaneWay*> _grown(p.way, p.n_ways, &p.way_room, sizeof(LaneWay), &p.status)
    if p.status:
        return
    p.way[p.n_ways].source, p.way[p.n_ways].mask = source, mask
    p.way[p.n_ways].left, p.way[p.n_ways].right = left, right
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
        if way == top:
            way = b.n_ways
            b.n_ways += 1
        late.left, late.right = UNUSED, UNUSED
        if _child(b, below, True) == child:
            late.left = way
        else:
            late.right = way
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
    cdef int32_t i, left, right
    cdef int64_t k
    cdef LaneWay late
    cdef int32_t unused = b.n_ways  # where goes what nobody looks at
    for i in range(b.n_nodes - 1, 0, -1):
        if b.needs_way[i]:
            b.needs_way[b.parent[i]] = b.needs_mask[b.parent[i]] = True
    for i in range(b.n_nodes):  # all rows arrive at the root
        if _is_leaf(b, i):
            continue
        left, right = _child(b, i, True), _child(b, i, False)
        if b.needs_way[left] or b.needs_way[right]:
            _put_way(p, i, i, left if b.needs_way[left] else unused,
                     right if b.needs_way[right] else unused)
    for k in range(b.n_late):
        late = b.late[k]
        _put_way(p, late.source, late.mask, unused if late.left == UNUSED else late.left,
                 unused if late.right == UNUSED else late.right)
    p.most_ways = max(p.most_ways, <int64_t> b.n_ways + 1)


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


cdef int make_program(
    const TreesView* trees, const Columns* columns, int64_t n_players, Program* p
) noexcept nogil:
    """Fill an empty program; negative without memory. Trees are at most `DEEPEST` tests deep."""
    cdef Builder builder
    cdef int64_t t, most = 1
    for t in range(trees.n_trees):
        most = max(most, trees.root[t + 1] - trees.root[t])
    p.most_nodes = p.most_ways = p.most_values = 1
    p.part = <Part*> malloc((trees.n_trees + 1) * sizeof(Part))
    p.status = _builder_init(&builder, most, n_players, most * (trees.depth + 1))
    if p.part == NULL:
        p.status = -1
    if p.status == 0:
        for t in range(n_players):
            builder.of_player[t] = -1
        for t in range(trees.n_trees):
            _add_tree(&builder, trees, columns, t, p)
    _builder_free(&builder)
    return p.status


cdef void free_program(Program* p) noexcept nogil:
    free(p.test)
    free(p.way)
    free(p.step)
    free(p.run)
    free(p.part)


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
