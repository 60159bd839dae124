"""The bounded-violation walk of pairs: components of two players for trees of any depth.

A component of two players asks of a background row only for the leaves that it reaches by changing
at most two of them, however many the leaf's path tests. All rows go down a tree together.
At a node lie *segments* of their numbers, a segment for each set of players that its rows have
violated on the way; no row is in two of them, so that all partitions are made in place. A node that
tests a player parts every segment. Those who go the other way come along with the player in their
set as long as it is small enough; where the player is in a segment's set already, the segment goes
to both sides. A set whose players have no point left on a side is dropped.

At a leaf of value ``c`` with players ``T``, ``W[U]`` being the weight of the rows that violate the
players ``U`` and no others, the leaf adds to the components (of all rows, not divided by their
weight)

    m_ij(a, b) :  c (W[] - 1[a in side_i] (W[] + W[i]) - 1[b in side_j] (W[] + W[j])
                     + 1[a in side_i] 1[b in side_j] (W[] + W[i] + W[j] + W[ij])),

a few numbers in a table of differences over the points (compare `steps`). Single players have a walk
of their own, `single_walk`.

J. Liu, T. Steensgaard, M. N. Wright, N. Pfister, M. Hiabu, "Fast Estimation of Partial Dependence
Functions using Trees" (2024), equation 7, for the components of a leaf.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport (
    Node, Points, PointsView, Segment, Side, Trees, TreesView, is_empty, next_run, part_segments,
    split_side, whole_side,
)

import numpy as np

from fastpd_sklearn.core.walking import sum_in_order

cdef enum:
    MOST_GROUPS = 16         # of trees with tables of their own; it must not depend on threads
    MOST_ENTRIES = 1 << 22   # of the tables of all groups
    NOBODY = -1


cdef struct Frame:
    int64_t node
    int64_t first        # its segments
    int64_t last
    int64_t n_undo       # sides to restore before it is entered
    int64_t top          # what of the arena is taken
    int32_t player       # whom the parent tests, and the points that come here
    Side side


cdef struct Undo:
    int32_t player
    Side side


cdef struct Job:
    TreesView trees
    Codes codes
    const double* weight      # NULL where each row counts once
    int64_t n_players
    const PointsView* points  # by player
    const uint8_t* wanted     # wanted[i * n_players + j]
    const uint8_t* joins      # joins[i * (n_players + 1) + j + 1]: may i follow j, or nobody (-1)?
    const int64_t* place      # where the table of the pair (i, j) begins
    int64_t entries           # of all tables
    int64_t arena_room


cdef struct Scratch:
    Frame* stack
    Undo* undo
    int64_t n_undo
    Segment* segment
    int64_t n_segments
    int64_t room
    int32_t* row
    int32_t* spare
    int32_t* arena
    int64_t top
    Side* side                # by player
    int32_t* path             # the players tested on the way here
    int32_t* times            # by player: how often
    int64_t n_path
    double* one               # by player, and by pair: weights at a leaf; zero in between
    double* two


cdef int _scratch_init(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t n = job.n_players, n_rows = job.codes.n_rows
    memset(scratch, 0, sizeof(Scratch))
    scratch.room = 1024
    scratch.stack = <Frame*> malloc((job.trees.depth + 2) * sizeof(Frame))
    scratch.undo = <Undo*> malloc((job.trees.depth + 2) * sizeof(Undo))
    scratch.segment = <Segment*> malloc(scratch.room * sizeof(Segment))
    scratch.row = <int32_t*> malloc((n_rows + 1) * sizeof(int32_t))
    scratch.spare = <int32_t*> malloc((n_rows + 1) * sizeof(int32_t))
    scratch.arena = <int32_t*> malloc((job.arena_room + 1) * sizeof(int32_t))
    scratch.side = <Side*> calloc(n + 1, sizeof(Side))
    scratch.path = <int32_t*> malloc((n + 1) * sizeof(int32_t))
    scratch.times = <int32_t*> calloc(n + 1, sizeof(int32_t))
    scratch.one = <double*> calloc(n + 1, sizeof(double))
    scratch.two = <double*> calloc(n * n + 1, sizeof(double))
    return -1 if (
        scratch.stack == NULL or scratch.undo == NULL or scratch.segment == NULL
        or scratch.row == NULL or scratch.spare == NULL or scratch.arena == NULL
        or scratch.side == NULL or scratch.path == NULL or scratch.times == NULL
        or scratch.one == NULL or scratch.two == NULL
    ) else 0


cdef void _scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.stack)
    free(scratch.undo)
    free(scratch.segment)
    free(scratch.row)
    free(scratch.spare)
    free(scratch.arena)
    free(scratch.side)
    free(scratch.path)
    free(scratch.times)
    free(scratch.one)
    free(scratch.two)


cdef int _make_room(Scratch* scratch, int64_t more) noexcept nogil:
    cdef Segment* grown
    cdef int64_t room
    if scratch.n_segments + more <= scratch.room:
        return 0
    room = 2 * (scratch.n_segments + more)
    grown = <Segment*> realloc(scratch.segment, room * sizeof(Segment))
    if grown == NULL:
        return -1
    scratch.segment, scratch.room = grown, room
    return 0


cdef double _weigh(const Job* job, const Scratch* scratch, Segment segment) noexcept nogil:
    cdef double total = 0.0
    cdef int64_t i
    if job.weight == NULL:
        return segment.size
    for i in range(segment.first, segment.first + segment.size):
        total += job.weight[scratch.row[i]]
    return total


cdef void _emit(
    const Job* job, Scratch* scratch, int64_t tree, int64_t leaf, int64_t first, int64_t last,
    double* table,
) noexcept nogil:
    """Add a leaf to the tables."""
    cdef int64_t s, i, j, n = job.n_players, output = job.trees.tree_output[tree]
    cdef int32_t a, b
    cdef double none = 0.0, weight
    cdef const double* value = job.trees.leaf_value + leaf * job.trees.n_values
    cdef Segment segment
    for s in range(first, last):
        segment = scratch.segment[s]
        weight = _weigh(job, scratch, segment)
        if segment.a == NOBODY:
            none += weight
        elif segment.b == NOBODY:
            scratch.one[segment.a] += weight
        else:
            scratch.two[segment.a * n + segment.b] += weight
    for i in range(scratch.n_path):
        for j in range(i):
            a, b = min(scratch.path[i], scratch.path[j]), max(scratch.path[i], scratch.path[j])
            weight = scratch.two[a * n + b]
            if job.wanted[a * n + b] and (
                none != 0 or scratch.one[a] != 0 or scratch.one[b] != 0 or weight != 0
            ):
                _emit_pair(job, scratch, a, b, none, weight, output, value, table)
    for s in range(first, last):
        segment = scratch.segment[s]
        if segment.b != NOBODY:
            scratch.two[segment.a * n + segment.b] = 0.0
        elif segment.a != NOBODY:
            scratch.one[segment.a] = 0.0


cdef void _emit_pair(
    const Job* job, const Scratch* scratch, int32_t a, int32_t b, double none, double two,
    int64_t output, const double* value, double* table,
) noexcept nogil:
    cdef const PointsView* first = &job.points[a]
    cdef const PointsView* second = &job.points[b]
    cdef int64_t cells = first.size * second.size, v, state, other, start, end, low, high
    cdef double one_a = scratch.one[a], one_b = scratch.one[b]
    cdef double* surface = table + job.place[a * job.n_players + b] + output * cells
    for v in range(job.trees.n_values):
        surface[v * cells] += value[v] * none
    state = 0
    while next_run(second, scratch.side[b], scratch.arena, &state, &low, &high):
        for v in range(job.trees.n_values):
            _add_ends(surface + v * cells, 1, second.size, low, high, -value[v] * (none + one_b))
    state = 0
    while next_run(first, scratch.side[a], scratch.arena, &state, &start, &end):
        for v in range(job.trees.n_values):
            _add_ends(surface + v * cells, second.size, first.size, start, end,
                      -value[v] * (none + one_a))
        other = 0
        while next_run(second, scratch.side[b], scratch.arena, &other, &low, &high):
            for v in range(job.trees.n_values):
                _add_ends(surface + v * cells + start * second.size, 1, second.size, low, high,
                          value[v] * (none + one_a + one_b + two))
                if end < first.size:
                    _add_ends(surface + v * cells + end * second.size, 1, second.size, low, high,
                              -value[v] * (none + one_a + one_b + two))


cdef inline void _add_ends(
    double* at, int64_t step, int64_t size, int64_t start, int64_t end, double amount
) noexcept nogil:
    at[start * step] += amount
    if end < size:
        at[end * step] -= amount


cdef inline void _enter(Scratch* scratch, int32_t player, Side side) noexcept nogil:
    """Hold a player at fewer points, one test further down."""
    scratch.undo[scratch.n_undo].player = player
    scratch.undo[scratch.n_undo].side = scratch.side[player]
    scratch.n_undo += 1
    scratch.side[player] = side
    if scratch.times[player] == 0:
        scratch.path[scratch.n_path] = player
        scratch.n_path += 1
    scratch.times[player] += 1


cdef inline void _leave(Scratch* scratch, int64_t n_undo) noexcept nogil:
    cdef int32_t player
    while scratch.n_undo > n_undo:
        scratch.n_undo -= 1
        player = scratch.undo[scratch.n_undo].player
        scratch.side[player] = scratch.undo[scratch.n_undo].side
        scratch.times[player] -= 1
        if scratch.times[player] == 0:
            scratch.n_path -= 1  # players leave in the reverse order of their coming


cdef int _walk(const Job* job, int64_t tree, Scratch* scratch, double* table) noexcept nogil:
    """Take all rows through a tree."""
    cdef const Node* node
    cdef Frame at
    cdef Side left, right
    cdef int64_t size = 0, first = 0, last = 1, here = job.trees.root[tree], n, n_left, n_right
    scratch.n_segments = 1
    scratch.segment[0].a = scratch.segment[0].b = NOBODY
    scratch.segment[0].first, scratch.segment[0].size = 0, <int32_t> job.codes.n_rows
    while True:
        node = job.trees.node + here
        while node.left >= 0 and first < last:
            at.n_undo, at.player = scratch.n_undo, node.player
            split_side(
                &job.trees, &job.points[node.player], &job.codes, node,
                scratch.side[node.player], &left, &right, scratch.arena, &scratch.top,
            )
            n = last - first
            if _make_room(scratch, 4 * n) < 0:
                return -1
            # The left child's segments wait behind all room that the right one's may need.
            at.first = scratch.n_segments
            part_segments(
                &job.trees, &job.codes, node, scratch.row, scratch.spare, scratch.segment + first,
                n, job.joins + node.player * (job.n_players + 1), not is_empty(left),
                not is_empty(right), scratch.segment + at.first + 2 * n, &n_left,
                scratch.segment + at.first, &n_right,
            )
            at.last, at.side, at.node, at.top = at.first + n_right, right, node.right, scratch.top
            if n_right:
                scratch.stack[size] = at
                size += 1
            _enter(scratch, node.player, left)
            first, here = at.first + 2 * n, node.left
            last = scratch.n_segments = first + n_left
            node = job.trees.node + here
        if first < last:
            _emit(job, scratch, tree, node.slot, first, last, table)
        if size == 0:
            break
        size -= 1
        at = scratch.stack[size]
        _leave(scratch, at.n_undo)
        _enter(scratch, at.player, at.side)
        scratch.top, scratch.n_segments = at.top, at.last
        first, last, here = at.first, at.last, at.node
    _leave(scratch, 0)
    return 0


cdef int _walk_group(
    const Job* job, int64_t first_tree, int64_t last_tree, double* table
) noexcept nogil:
    cdef int64_t t, i, start
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    if status == 0:
        for i in range(job.codes.n_rows):
            scratch.row[i] = <int32_t> i
        for i in range(job.n_players):
            scratch.side[i] = whole_side(&job.points[i], scratch.arena, &scratch.top)
        start = scratch.top
        for t in range(first_tree, last_tree):
            scratch.top = start
            if status == 0:
                status = _walk(job, t, &scratch, table)
    _scratch_free(&scratch)
    return status


def pair_components(Trees trees, points, BinnedRows rows, sample_weight, pairs, int n_threads):
    """Components of some pairs of players, times the weight of the rows.

    Parameters
    ----------
    trees : Trees
    points : list of Points
        One a player, at which it is held.
    rows : BinnedRows
    sample_weight : ndarray of shape (n_rows,), float64, or None
    pairs : list of tuple of two int
        Players, ascending within a pair; each pair once, and at one point at least.
    n_threads : int

    Returns
    -------
    list of ndarray of shape (n_outputs, n_points of the first, n_points of the second)
    """
    cdef int64_t n = len(points), g, k
    wanted_array = np.zeros((n, n), np.uint8)
    shapes = np.zeros((n * n, 2), np.int64)
    for a, b in pairs:
        wanted_array[a, b] = wanted_array[b, a] = 1
        shapes[a * n + b] = points[a].size, points[b].size
    # A pair may follow from either player.
    cdef const uint8_t[:, ::1] joins = np.hstack(
        [wanted_array.max(axis=1, keepdims=True), wanted_array]
    )
    cdef Job job
    cdef PointsView* views = <PointsView*> calloc(n + 1, sizeof(PointsView))
    cdef const double[::1] weights = np.empty(0) if sample_weight is None else sample_weight
    cdef const uint8_t[:, ::1] wanted = wanted_array
    place_array = np.zeros(n * n + 1, np.int64)
    np.cumsum(shapes.prod(axis=1) * trees.n_outputs, out=place_array[1:])
    cdef const int64_t[::1] place = place_array
    cdef int n_workers = n_threads
    memset(&job, 0, sizeof(Job))
    if views == NULL:
        raise MemoryError("no memory for the points of the players")
    for k in range(n):
        views[k] = (<Points> points[k]).view()
        if not views[k].is_line:
            job.arena_room += views[k].size * (2 * trees._depth + 1)
    job.trees, job.codes, job.points, job.n_players = trees.view(), rows.view(), views, n
    job.weight = NULL if sample_weight is None else &weights[0]
    job.wanted, job.place, job.joins = &wanted[0, 0], &place[0], &joins[0, 0]
    job.entries = place_array[n * n]
    cdef int64_t n_trees = job.trees.n_trees
    cdef int64_t n_groups = max(
        min(n_trees, <int64_t> MOST_GROUPS, MOST_ENTRIES // max(job.entries, <int64_t> 1)),
        <int64_t> 1,
    )
    table_array = np.zeros((n_groups, max(job.entries, <int64_t> 1)))
    cdef double[:, ::1] table = table_array
    status_array = np.zeros(n_groups, np.int32)
    cdef int32_t[::1] status = status_array
    for g in prange(n_groups, nogil=True, num_threads=n_workers, schedule="dynamic"):
        status[g] = _walk_group(
            &job, g * n_trees // n_groups, (g + 1) * n_trees // n_groups, &table[g, 0]
        )
    free(views)
    if status_array.any():
        raise MemoryError("no memory to walk through the trees; use fewer rows at a time")
    flat = sum_in_order(table_array)
    tables = []
    for a, b in pairs:
        found = flat[place_array[a * n + b]:place_array[a * n + b + 1]]
        found = found.reshape(trees.n_outputs, points[a].size, points[b].size)
        tables.append(np.cumsum(np.cumsum(found, axis=1), axis=2))
    return tables
