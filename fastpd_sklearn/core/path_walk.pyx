r"""Values of one and two players under path-dependent coverage, by one walk down each tree.

At a leaf the value of player k is (see `coverage`) the leaf's value times

    integral of  (p_k - q_k) / f_k(t)  prod_j f_j(t)  dmu(t),     f_j(t) = t p_j + (1 - t) q_j,

and a player's degrees change at its own tests only. So the walk carries the product at all nodes t
of the quadrature down, and brings back up what the products of the leaves below, times their
values, add up to: ``G_e(t)`` for an edge e. Player k then has

    sum over its edges e of  integral of  G_e(t) [ (p - q) / f after e  -  (p - q) / f before e ],

in which each leaf's telescopes to the last edge of k above it. Nothing here cancels badly: f is at
least ``t`` where p = 1, and for p = 0 the quotient is ``-1 / (1 - t)`` whatever q is, so that a player
that a row has once failed changes nothing any more but the scale. The cost is some operations a
row, edge and node, and a tree has half as many nodes t as the most players of a leaf.

A pair j, k of players has ``(p_j - q_j) / f_j`` times the same of k in place of the one. Both telescope,
so that it gets, from each of its pairs of edges that lie on one path, the lower one's ``G_e(t)`` times
both differences; and those of the upper one's player add up to its quotient above e. So at an edge
of k each other player on the way to it is met once.

Eight rows walk together. What one of them gets depends on none of the others.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.coverage cimport PathCoverage
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests, route_block

import numpy as np

cdef extern from "kernels.h" nogil:
    enum:
        WALK_LANES
    void walk_sides(const double*, const uint8_t*, double*, double*, double*)
    void walk_factors(
        int64_t, const double*, const double*, double, const double*, double*, double*, double*,
        double*
    )
    void walk_down(
        int64_t, const double*, const double*, const double*, const double*, const double*, double,
        const double*, double*
    )
    void walk_up(
        int64_t, const double*, const double*, const double*, const double*, double,
        const double*, double*, double*
    )
    void walk_gain(
        int64_t, const double*, const double*, const double*, const double*, double,
        const double*, double*
    )
    void walk_pair(int64_t, const double*, const double*, const double*, const double*, double*)
    void walk_total(int64_t, const double*, const double*, double*)


cdef struct Job:
    # All that does not change within one call.
    Codes codes
    Tests tests
    const int32_t* left     # -1 at leaves
    const int32_t* right
    const int32_t* player   # by node
    const double* share     # by node
    const double* value     # by node, n_values each
    int64_t n_values
    const int64_t* tree_start
    const int32_t* tree_output
    int64_t n_trees
    const int64_t* rule_start   # by tree: its quadrature
    const int64_t* rule_stop
    const double* t
    const double* failed    # -1 / (1 - t)
    const double* weight
    int64_t most_nodes      # of a quadrature
    int64_t n_levels        # of the deepest tree
    int64_t n_players
    const int32_t* column   # by player: its place in the result, -1 where it is not wanted
    const int32_t* pair_column  # likewise, pair_column[j * n_players + k]; NULL without pairs
    int64_t n_terms
    int64_t n_outputs
    double* out


cdef struct Level:
    # A node on the way down. Vectors have a number for each node t, or WALK_LANES of them.
    int64_t node
    int64_t side            # of the child that is next: 0, 1, or 2 for none
    bint is_taken           # whether a child has been entered, with the node's player on the path
    double met[8]           # of the node's player, before its test
    double degree           # likewise
    double degree_below[2]
    double within[2][8]     # see walk_sides: the rows that keep the player on each side
    double gone[8]
    double* product         # down to the node
    double* below           # by value: sums over the node's leaves
    double* kept            # see walk_factors; for each side
    double* lost            # for each side
    double* gain_kept       # for each side
    double* gain_lost


cdef struct Scratch:
    Level* level
    double* room            # for the vectors of all levels
    double* met             # met[player * WALK_LANES + r]: 1 where row r passes the tests so far
    double* degree          # by player: product of the shares so far
    double* gained          # gained[(term * n_outputs + output) * WALK_LANES + r]
    double* nowhere         # room for what single players gain that are not wanted
    int64_t output          # the tree's first one
    # For pairs:
    int32_t* path           # the players tested on the way
    int64_t n_path
    int32_t* times          # by player: how often
    double* quotient        # quotient[player * most_nodes + t]: (1 - q) / f where p = 1
    double* gain            # room for one edge's


def walk_paths(
    BinnedRows rows, NodeTests tests, geometry, PathCoverage coverage, rules,
    const double[:, ::1] value, const int32_t[::1] tree_output, terms,
    double[:, :, ::1] out, int n_threads,
):
    """Add the values of one and two players for every row to `out`.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry
    coverage : PathCoverage
    rules : Rules
        With nodes strictly between 0 and 1.
    value : ndarray of shape (n_nodes, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    terms : list of tuple of int
        One player or two, ascending; each once.
    out : ndarray of shape (n_terms, n_outputs, n_rows), float64
    n_threads : int
    """
    if rows.n_rows == 0 or len(terms) == 0 or geometry.n_trees == 0:
        return
    if out.shape[2] != rows.n_rows or out.shape[0] != len(terms):
        raise ValueError("out is not of shape (n_terms, n_outputs, n_rows)")
    column_array, pair_array = _columns(terms, geometry.n_players)
    most = np.maximum.reduceat(geometry.leaf_sizes, geometry.tree_leaf[: geometry.n_trees])
    start_array, stop_array = rules.start[most], rules.start[most + 1]
    cdef const int32_t[::1] left = geometry.left, right = geometry.right
    cdef const int32_t[::1] player = geometry.node_player, column = column_array
    cdef const int64_t[::1] tree_start = geometry.tree_start
    cdef const int32_t[:, ::1] pair_column = pair_array
    cdef const int64_t[::1] rule_start = start_array, rule_stop = stop_array
    cdef const double[::1] share = coverage.share, t = rules.node, weight = rules.weight
    cdef const double[::1] failed = -1.0 / (1.0 - rules.node)
    cdef Job job
    job.codes, job.tests = rows.view(), tests.view()
    job.left, job.right, job.player = &left[0], &right[0], &player[0]
    job.share, job.value, job.n_values = &share[0], &value[0, 0], value.shape[1]
    job.tree_start, job.tree_output = &tree_start[0], &tree_output[0]
    job.n_trees = geometry.n_trees
    job.rule_start, job.rule_stop = &rule_start[0], &rule_stop[0]
    job.t, job.failed, job.weight = &t[0], &failed[0], &weight[0]
    job.most_nodes = (stop_array - start_array).max()
    job.n_levels = np.diff(geometry.path_start).max() + 1
    job.n_players, job.column = geometry.n_players, &column[0]
    job.pair_column = &pair_column[0, 0] if pair_column.shape[0] else NULL
    job.n_terms, job.n_outputs, job.out = len(terms), out.shape[1], &out[0, 0, 0]
    cdef int64_t n_blocks = (rows.n_rows + WALK_LANES - 1) // WALK_LANES, block
    cdef int[::1] status = np.zeros(n_blocks, np.intc)
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        status[block] = _walk_block(&job, block * WALK_LANES)
    if np.any(status):
        raise MemoryError(
            f"no memory for walks down trees of depth {job.n_levels - 1}; use fewer threads (n_jobs)"
        )


def _columns(terms, n_players):
    """The place of each player, and of each pair of players, among the terms; -1 for none."""
    one = np.full(n_players, -1, np.int32)
    pairs = np.full((n_players, n_players), -1, np.int32) if any(
        len(term) == 2 for term in terms
    ) else np.empty((0, 0), np.int32)
    for k, term in enumerate(terms):
        if len(term) == 1:
            one[term[0]] = k
        else:
            pairs[term[0], term[1]] = pairs[term[1], term[0]] = k
    return one, pairs


cdef int _walk_block(const Job* job, int64_t row) noexcept nogil:
    """The rows from `row` on, at most WALK_LANES; -1 if there is no memory."""
    cdef int64_t m = min(<int64_t> WALK_LANES, job.codes.n_rows - row), t
    cdef Scratch scratch
    if _make_scratch(&scratch, job) < 0:
        _free_scratch(&scratch)
        return -1
    for t in range(job.n_trees):
        if job.left[job.tree_start[t]] >= 0:
            scratch.output = job.tree_output[t]
            _walk_tree(job, &scratch, t, row, m)
    _write(job, &scratch, row, m)
    _free_scratch(&scratch)
    return 0


cdef int _make_scratch(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t lanes = WALK_LANES * job.most_nodes, size = job.n_players * WALK_LANES, i
    cdef int64_t n_paired = job.n_players if job.pair_column != NULL else 0
    cdef int64_t a_level = lanes * (1 + job.n_values) + 7 * job.most_nodes
    cdef double* vector
    cdef Level* level
    scratch.level = <Level*> calloc(job.n_levels, sizeof(Level))
    scratch.room = <double*> malloc(job.n_levels * a_level * sizeof(double))
    scratch.met = <double*> malloc(size * sizeof(double))
    scratch.degree = <double*> malloc(job.n_players * sizeof(double))
    scratch.gained = <double*> calloc((job.n_terms + 1) * job.n_outputs * WALK_LANES, sizeof(double))
    scratch.path = <int32_t*> malloc((n_paired + 1) * sizeof(int32_t))
    scratch.times = <int32_t*> calloc(n_paired + 1, sizeof(int32_t))
    scratch.quotient = <double*> malloc((n_paired * job.most_nodes + 1) * sizeof(double))
    scratch.gain = <double*> malloc(lanes * sizeof(double))
    scratch.n_path = 0
    if (
        scratch.level == NULL or scratch.room == NULL or scratch.met == NULL
        or scratch.degree == NULL or scratch.gained == NULL or scratch.path == NULL
        or scratch.times == NULL or scratch.quotient == NULL or scratch.gain == NULL
    ):
        return -1
    scratch.nowhere = scratch.gained + job.n_terms * job.n_outputs * WALK_LANES
    for i in range(size):
        scratch.met[i] = 1.0
    for i in range(job.n_players):
        scratch.degree[i] = 1.0
    vector = scratch.room
    for i in range(job.n_levels):
        level = scratch.level + i
        level.product, level.below = vector, vector + lanes
        vector += lanes * (1 + job.n_values)
        level.kept, level.lost = vector, vector + 2 * job.most_nodes
        level.gain_kept, level.gain_lost = vector + 4 * job.most_nodes, vector + 6 * job.most_nodes
        vector += 7 * job.most_nodes
    return 0


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.level)
    free(scratch.room)
    free(scratch.met)
    free(scratch.degree)
    free(scratch.gained)
    free(scratch.path)
    free(scratch.times)
    free(scratch.quotient)
    free(scratch.gain)


cdef void _walk_tree(
    const Job* job, Scratch* scratch, int64_t tree, int64_t row, int64_t m
) noexcept nogil:
    """Add what a tree gives the rows to `gained`."""
    cdef int64_t first = job.rule_start[tree], n = job.rule_stop[tree] - first
    cdef int64_t k, r, depth = 0, child, side
    cdef Level* level = scratch.level
    for k in range(n):
        for r in range(WALK_LANES):
            level.product[k * WALK_LANES + r] = job.weight[first + k]
    _enter(job, scratch, level, job.tree_start[tree], first, n, row, m)
    while depth >= 0:
        level = scratch.level + depth
        side = level.side
        if side == 2:
            _leave(job, scratch, level, first, n)
            depth -= 1
            if depth >= 0:
                _add_inner(job, scratch, scratch.level + depth, first, n)
            continue
        level.side += 1
        if level.degree_below[side] == 0.0 and not _any(level.within[side]):
            continue  # p = q = 0 for all rows: no leaf below has any value
        child = job.right[level.node] if side else job.left[level.node]
        walk_down(
            n, level.within[side], level.within[1 - side], level.gone, level.kept + side * n,
            level.lost + side * n, job.share[child], level.product, level[1].product,
        )
        if job.left[child] < 0:
            _add_leaf(job, scratch, level, first, n, side, job.value + child * job.n_values)
            continue
        _take(job, scratch, level, first, n, side)
        depth += 1
        _enter(job, scratch, level + 1, child, first, n, row, m)


cdef void _enter(
    const Job* job, Scratch* scratch, Level* level, int64_t node, int64_t first, int64_t n,
    int64_t row, int64_t m,
) noexcept nogil:
    """Make a level ready for a node whose product is there; the nodes t are n from `first` on."""
    cdef int64_t player = job.player[node], side, child
    cdef uint8_t left[8]
    level.node, level.side, level.degree = node, 0, scratch.degree[player]
    level.is_taken = False
    memcpy(level.met, scratch.met + player * WALK_LANES, WALK_LANES * sizeof(double))
    memset(left, 0, WALK_LANES)
    route_block(&job.codes, &job.tests, node, row, m, left)
    memset(level.below, 0, n * WALK_LANES * job.n_values * sizeof(double))
    walk_sides(level.met, left, level.within[0], level.within[1], level.gone)
    for side in range(2):
        child = job.right[node] if side else job.left[node]
        level.degree_below[side] = level.degree * job.share[child]
    walk_factors(
        n, job.t + first, job.failed + first, level.degree, level.degree_below, level.kept,
        level.lost, level.gain_kept, level.gain_lost,
    )


cdef bint _any(const double* row) noexcept nogil:
    cdef int64_t r
    for r in range(WALK_LANES):
        if row[r] != 0.0:
            return True
    return False


cdef void _take(
    const Job* job, Scratch* scratch, Level* level, int64_t first, int64_t n, int64_t side
) noexcept nogil:
    """Let the node's player be what it is on one side of its test."""
    cdef int32_t player = job.player[level.node]
    scratch.degree[player] = level.degree_below[side]
    memcpy(
        scratch.met + player * WALK_LANES, level.within[side], WALK_LANES * sizeof(double)
    )
    if job.pair_column == NULL:
        return
    _find_quotient(job, scratch, player, first, n)
    if not level.is_taken:
        level.is_taken = True
        if scratch.times[player] == 0:
            scratch.path[scratch.n_path] = player
            scratch.n_path += 1
        scratch.times[player] += 1


cdef void _leave(
    const Job* job, Scratch* scratch, const Level* level, int64_t first, int64_t n
) noexcept nogil:
    """Let it be what it was above."""
    cdef int32_t player = job.player[level.node]
    scratch.degree[player] = level.degree
    memcpy(scratch.met + player * WALK_LANES, level.met, WALK_LANES * sizeof(double))
    if level.is_taken:
        scratch.times[player] -= 1
        if scratch.times[player] == 0:
            scratch.n_path -= 1  # players leave in the reverse order of their coming
        else:
            _find_quotient(job, scratch, player, first, n)


cdef void _find_quotient(
    const Job* job, Scratch* scratch, int32_t player, int64_t first, int64_t n
) noexcept nogil:
    """A player's (1 - q) / (t + (1 - t) q), for the rows that meet all of its tests."""
    cdef double* quotient = scratch.quotient + player * job.most_nodes
    cdef double degree = scratch.degree[player], t
    cdef int64_t k
    for k in range(n):
        t = job.t[first + k]
        quotient[k] = (1.0 - degree) / (t + (1.0 - t) * degree)


cdef void _add_leaf(
    const Job* job, Scratch* scratch, Level* level, int64_t first, int64_t n, int64_t side,
    const double* value,
) noexcept nogil:
    """Add a leaf right below, whose product is in the next level."""
    cdef int64_t v
    for v in range(job.n_values):
        _add_up(job, scratch, level, first, n, side, v, value[v], level[1].product)


cdef void _add_inner(
    const Job* job, Scratch* scratch, Level* level, int64_t first, int64_t n
) noexcept nogil:
    """Add the leaves of the child whose sums have come up, in the next level."""
    cdef int64_t v
    for v in range(job.n_values):
        _add_up(
            job, scratch, level, first, n, level.side - 1, v, 1.0,
            level[1].below + v * n * WALK_LANES,
        )


cdef void _add_up(
    const Job* job, Scratch* scratch, Level* level, int64_t first, int64_t n, int64_t side,
    int64_t v, double factor, const double* below,
) noexcept nogil:
    """Add what comes up an edge, times a factor, to the sums of its upper end and to the values."""
    cdef int32_t player = job.player[level.node], column = job.column[player]
    cdef double* gained = scratch.nowhere
    if column >= 0:
        gained = _gained_by(job, scratch, column, v)
    walk_up(
        n, level.within[side], level.within[1 - side], level.gain_kept + side * n,
        level.gain_lost, factor, below, level.below + v * n * WALK_LANES, gained,
    )
    if job.pair_column != NULL and scratch.n_path:
        _add_pairs(job, scratch, level, first, n, side, v, factor, below)


cdef void _add_pairs(
    const Job* job, Scratch* scratch, Level* level, int64_t first, int64_t n, int64_t side,
    int64_t v, double factor, const double* below,
) noexcept nogil:
    """Add what an edge gives the pairs of its player and those above it."""
    cdef int32_t player = job.player[level.node], other, column
    cdef const int32_t* columns = job.pair_column + player * job.n_players
    cdef double all_failed[8]
    cdef bint is_made = False
    cdef int64_t i
    for i in range(scratch.n_path):
        other = scratch.path[i]
        column = columns[other]
        if column < 0 or other == player:
            continue
        if not is_made:
            is_made = True
            walk_gain(
                n, level.within[side], level.within[1 - side], level.gain_kept + side * n,
                level.gain_lost, factor, below, scratch.gain,
            )
            walk_total(n, job.failed + first, scratch.gain, all_failed)
        walk_pair(
            n, scratch.met + other * WALK_LANES, scratch.quotient + other * job.most_nodes,
            all_failed, scratch.gain, _gained_by(job, scratch, column, v),
        )


cdef inline double* _gained_by(
    const Job* job, Scratch* scratch, int64_t term, int64_t v
) noexcept nogil:
    return scratch.gained + (term * job.n_outputs + scratch.output + v) * WALK_LANES


cdef void _write(const Job* job, const Scratch* scratch, int64_t row, int64_t m) noexcept nogil:
    """Add what all trees gave to the output."""
    cdef const double* gained = scratch.gained
    cdef double* out
    cdef int64_t k, r
    for k in range(job.n_terms * job.n_outputs):
        out = job.out + row + job.codes.n_rows * k
        for r in range(m):
            out[r] += gained[r]
        gained += WALK_LANES
