r"""Values of one and two players from pairs of rows, by walks down trees of any depth.

Between an explained row x and a background row z a leaf plays a game that depends only on the players
A that x violates there and on those that z violates, B. If a player is in both, no set of players
brings the mixed row to the leaf. Otherwise (see `coverage`)

    a player of B is worth    integral of  t^(|B| - 1) (1 - t)^|A|  dmu(t),
    a player of A             integral of  - t^|B| (1 - t)^(|A| - 1)  dmu(t),

times the leaf's value, and other players nothing; of two players each takes a factor t or 1 - t away.
Most leaves of a deep tree are out of reach for a pair. So a block of explained rows goes down a tree
together with a block of background rows, and each x keeps the z that it is still paired with, a bit
each::

    at a node      x = who[e]    violates mask[e], is paired with alive[e]         e < n
                   z             violates missed[z]
                   failed[i]     the z that violate player i of the path, a bit each

A split on player i adds it to the sets of those x and z that go the other way. An x with i in its
set then loses the z in failed[i]; one without any z is gone, and where all are, so is the subtree. At
a leaf only pairs are left that are worth something there.

The work is cut into tasks, each for a block of explained rows and a group of trees, which share
nothing. What a row gets is added up in the same order whatever rows are explained beside it.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests, route_block
from fastpd_sklearn.core.walking cimport Node, Trees, TreesView

import numpy as np

cdef extern from "pairs.h" nogil:
    enum:
        QUAD
    void pack_bits(const uint8_t*, int64_t, uint64_t*)
    void violate(int64_t, const uint64_t*, const uint8_t*, uint8_t, int, uint64_t*)
    int64_t pair_step(
        int64_t, const int32_t*, const uint64_t*, const uint64_t*, const uint8_t*, uint8_t, int,
        const uint64_t*, int64_t, int32_t*, uint64_t*, uint64_t*
    )
    ctypedef struct PairLeaf:
        int64_t n
        const int32_t* who
        const uint64_t* mask
        const uint64_t* alive
        int64_t n_words
        const uint64_t* missed
        const double* share
        const double* worth
        int64_t n_sizes
        int64_t n_quads
        double* values
        int64_t n_found
        const int64_t* place
        const int64_t* column
        const double* leaf_value
        int64_t n_leaf_values
        double* gained
        int64_t row_size
    void add_singles(const PairLeaf*)
    void add_doubles(const PairLeaf*)

cdef enum:
    PLAYERS = 64            # of a path, at most: a bit each
    FEW_ROWS = 16           # at a node, up to which it is worth a look which words are zero

MOST_PLAYERS = PLAYERS
MOST_WORDS = 16             # of a block of background rows, a bit each
MOST_ROWS = 128             # explained together: the pairs at a node stay in a fast cache
N_GROUPS = 32               # of trees: sums apart, so that threads do not meet
TASK_BYTES = 1 << 26        # of the sums of all tasks at a time


cdef struct Job:
    # All that does not change within one call.
    TreesView trees
    const int64_t* tree     # those that are walked
    int64_t n_trees
    Tests tests
    Codes rows
    Codes background
    const double* share     # by background row
    const double* worth     # see PairLeaf
    int64_t n_sizes
    Wanted wanted
    int64_t n_terms
    int64_t block_rows
    int64_t n_words         # of a block of background rows
    int64_t n_groups


cdef struct Level:
    # A node on the way down, and the rows there.
    int64_t node
    int64_t side            # of the child that is next: 0, 1, or 2 for none
    int bit                 # number of the node's player on the path
    bint is_new             # not tested above
    int64_t n
    int32_t* who
    uint64_t* mask
    uint64_t* alive         # n_words each
    uint64_t live           # the words of these that are not zero for all, a bit each
    uint64_t* missed
    uint8_t* left           # left[x] = 1: goes left
    uint8_t* left_z
    uint64_t* bits_z        # the same as bits
    uint64_t* before        # failed[bit] above the node


cdef struct Scratch:
    Level* level
    char* room              # for the arrays of all levels
    uint64_t* failed        # failed[bit * n_words:]
    int32_t* bit            # by player: its number on the path, -1 if it is not tested there
    int32_t* player         # by number
    int64_t n_bits
    double* values          # see PairLeaf
    int64_t* place
    int64_t* column
    const double* share     # of the block of background rows
    double* gained          # gained[(x * n_terms + term) * n_outputs + output]
    int64_t visits


def walk_pairs(
    Trees trees, NodeTests tests, BinnedRows rows, BinnedRows background, const double[::1] share,
    const double[:, :, ::1] worth, columns, const int64_t[::1] chosen, double[:, :, ::1] out,
    int n_threads,
):
    """Add the values of terms for every row to `out`.

    Parameters
    ----------
    trees : Trees
        With at most MOST_PLAYERS players on a path.
    tests : NodeTests
    rows, background : BinnedRows
    share : ndarray of shape (n_background_rows,), float64
        What each row has of the background.
    worth : ndarray of shape (2 or 3, n_sizes, n_sizes), float64
        ``worth[kind, a, b]`` to players of a pair of rows that violate a and b. For single players:
        violated by the background row, by the explained one. For two: both by the background row,
        both by the explained one, one by each.
    columns : ndarray of shape (n_players,) or (n_players, n_players), int32
        The term of a player, or of two; negative where it is not wanted.
    chosen : ndarray of int64
        The trees to walk.
    out : ndarray of shape (n_terms, n_outputs, n_rows), float64
    n_threads : int

    Returns
    -------
    int
        How often an explained row came to a node. It says what the walk takes, and is the same in
        every run.
    """
    cdef int64_t n_rows = rows.n_rows, n_terms = out.shape[0], n_outputs = out.shape[1]
    if n_rows == 0 or n_terms == 0 or chosen.shape[0] == 0 or background.n_rows == 0:
        return 0
    if out.shape[2] != n_rows or share.shape[0] != background.n_rows:
        raise ValueError("arrays do not have a place for every row")
    cdef const int32_t[::1] column = columns.reshape(-1)
    cdef Job job
    job.trees, job.tests = trees.view(), tests.view()
    job.tree, job.n_trees = &chosen[0], chosen.shape[0]
    job.rows, job.background = rows.view(), background.view()
    job.share, job.worth, job.n_sizes = &share[0], &worth[0, 0, 0], worth.shape[1]
    job.wanted.order, job.wanted.column = columns.ndim, &column[0]
    job.wanted.n_players, job.wanted.n_outputs = columns.shape[0], n_outputs
    job.n_terms = n_terms
    job.n_groups = min(<int64_t> N_GROUPS, job.n_trees)
    cdef int64_t words = (background.n_rows + 63) // 64
    cdef int64_t n_chunks = (words + MOST_WORDS - 1) // MOST_WORDS
    job.n_words = (words + n_chunks - 1) // n_chunks
    cdef int64_t row_size = n_terms * n_outputs, most = TASK_BYTES // (8 * row_size * job.n_groups)
    job.block_rows = max(1, min(most, MOST_ROWS, n_rows))
    cdef int64_t blocks = max(1, most // job.block_rows), first, task, n_tasks
    gained_array = np.empty((blocks, job.n_groups, job.block_rows, n_terms, n_outputs))
    cdef double* gained = <double*> <size_t> gained_array.ctypes.data
    cdef int64_t[::1] visits = np.zeros(blocks * job.n_groups, np.int64)
    total = 0
    for first in range(0, n_rows, blocks * job.block_rows):
        n_tasks = (n_rows - first + job.block_rows - 1) // job.block_rows
        n_tasks = min(blocks, n_tasks) * job.n_groups
        for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            visits[task] = _walk_block(
                &job, first + task // job.n_groups * job.block_rows, task % job.n_groups,
                gained + task * job.block_rows * row_size,
            )
        total += np.sum(visits[:n_tasks])
        if np.min(visits[:n_tasks]) < 0:
            raise MemoryError(
                f"no memory for walks down trees of depth {job.trees.depth}; use fewer threads "
                "(n_jobs)"
            )
        _add(gained_array[:n_tasks // job.n_groups], np.asarray(out)[:, :, first:])
    return total


def _add(gained, out):
    """Add what blocks of rows have gained, group by group of trees, to the output."""
    total = gained[:, 0].copy()
    for group in range(1, gained.shape[1]):
        total += gained[:, group]
    total = total.reshape(-1, *total.shape[2:])[:out.shape[2]]
    out[:, :, :len(total)] += total.transpose(1, 2, 0)


cdef int64_t _walk_block(const Job* job, int64_t row, int64_t group, double* gained) noexcept nogil:
    """What a group of trees gives the rows from `row` on; visits, or -1 if there is no memory."""
    cdef int64_t first = 0, k
    cdef Scratch scratch
    if _make_scratch(&scratch, job) < 0:
        _free_scratch(&scratch)
        return -1
    scratch.gained = gained
    memset(gained, 0, job.block_rows * job.n_terms * job.trees.n_outputs * sizeof(double))
    while first < job.background.n_rows:
        scratch.share = job.share + first
        for k in range(group * job.n_trees // job.n_groups, (group + 1) * job.n_trees // job.n_groups):
            if job.trees.node[job.trees.root[job.tree[k]]].left >= 0:
                _walk_tree(job, &scratch, job.tree[k], row, first)
        first += 64 * job.n_words
    _free_scratch(&scratch)
    return scratch.visits


cdef int _make_scratch(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t n_levels = job.trees.depth + 1, m = job.block_rows, w = job.n_words, i
    cdef int64_t most = PLAYERS if job.wanted.order == 1 else PLAYERS * PLAYERS
    cdef int64_t a_level = (
        (m + m * w + 64 * w + 2 * w) * sizeof(uint64_t) + m * sizeof(int32_t) + m + 64 * w
    )
    cdef Level* level
    cdef char* at
    a_level = (a_level + 63) // 64 * 64
    scratch.n_bits = scratch.visits = 0
    scratch.level = <Level*> calloc(n_levels, sizeof(Level))
    scratch.room = <char*> calloc(n_levels, a_level)
    scratch.failed = <uint64_t*> malloc(PLAYERS * w * sizeof(uint64_t))
    scratch.bit = <int32_t*> malloc(job.wanted.n_players * sizeof(int32_t))
    scratch.player = <int32_t*> malloc(PLAYERS * sizeof(int32_t))
    scratch.values = <double*> malloc(most * sizeof(double))
    scratch.column = <int64_t*> malloc(most * sizeof(int64_t))
    scratch.place = <int64_t*> malloc(most * sizeof(int64_t))
    if (
        scratch.level == NULL or scratch.room == NULL or scratch.failed == NULL
        or scratch.bit == NULL or scratch.player == NULL or scratch.values == NULL
        or scratch.column == NULL or scratch.place == NULL
    ):
        return -1
    memset(scratch.bit, 255, job.wanted.n_players * sizeof(int32_t))
    for i in range(n_levels):
        level, at = scratch.level + i, scratch.room + i * a_level
        level.mask = <uint64_t*> at
        level.alive = level.mask + m
        level.missed = level.alive + m * w
        level.bits_z = level.missed + 64 * w
        level.before = level.bits_z + w
        level.who = <int32_t*> (level.before + w)
        level.left = <uint8_t*> (level.who + m)
        level.left_z = level.left + m
    return 0


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.level)
    free(scratch.room)
    free(scratch.failed)
    free(scratch.bit)
    free(scratch.player)
    free(scratch.values)
    free(scratch.column)
    free(scratch.place)


cdef void _walk_tree(
    const Job* job, Scratch* scratch, int64_t tree, int64_t row, int64_t first
) noexcept nogil:
    """Add what a tree gives the explained rows from `row` on, with the others from `first` on."""
    cdef int64_t m = min(job.block_rows, job.rows.n_rows - row), depth = 0, side, child
    cdef int64_t n = min(64 * job.n_words, job.background.n_rows - first)
    cdef const Node* nodes = job.trees.node
    cdef Level* level = scratch.level
    _start(job, level, m, n)
    _enter(job, scratch, level, job.trees.root[tree], row, m, first, n)
    while depth >= 0:
        level = scratch.level + depth
        side = level.side
        if side == 2:
            _leave(job, scratch, level)
            depth -= 1
            continue
        level.side += 1
        if not _descend(job, scratch, level, side, n):
            continue
        child = nodes[level.node].right if side else nodes[level.node].left
        if nodes[child].left < 0:
            _add_leaf(job, scratch, level + 1, nodes[child].slot, job.trees.tree_output[tree])
            continue
        depth += 1
        _enter(job, scratch, level + 1, child, row, m, first, n)


cdef void _start(const Job* job, Level* level, int64_t m, int64_t n) noexcept nogil:
    """All pairs of m explained rows and n others."""
    cdef int64_t e, w
    level.n, level.live = m, _low_bits(job.n_words)
    memset(level.mask, 0, m * sizeof(uint64_t))
    memset(level.missed, 0, n * sizeof(uint64_t))
    for e in range(m):
        level.who[e] = <int32_t> e
        for w in range(job.n_words):
            level.alive[e * job.n_words + w] = _low_bits(n - 64 * w)


cdef uint64_t _low_bits(int64_t n) noexcept nogil:
    """A word with its lowest n bits set; any n."""
    if n >= 64:
        return <uint64_t> -1
    return (<uint64_t> 1 << n) - 1 if n > 0 else 0


cdef void _enter(
    const Job* job, Scratch* scratch, Level* level, int64_t node, int64_t row, int64_t m,
    int64_t first, int64_t n,
) noexcept nogil:
    """Make a level ready for a node whose rows are there."""
    cdef int32_t player = job.trees.node[node].player
    cdef int64_t w = job.n_words, k
    level.node, level.side = node, 0
    level.is_new = scratch.bit[player] < 0
    if level.is_new:
        scratch.bit[player] = <int32_t> scratch.n_bits
        scratch.player[scratch.n_bits] = player
        memset(scratch.failed + scratch.n_bits * w, 0, w * sizeof(uint64_t))
        scratch.n_bits += 1
    level.bit = scratch.bit[player]
    memcpy(level.before, scratch.failed + level.bit * w, w * sizeof(uint64_t))
    route_block(&job.rows, &job.tests, node, row, m, level.left)
    if level.live == _low_bits(w):
        route_block(&job.background, &job.tests, node, first, n, level.left_z)
        pack_bits(level.left_z, w, level.bits_z)
        return
    for k in range(w):
        if level.live >> k & 1:
            route_block(
                &job.background, &job.tests, node, first + 64 * k, min(n - 64 * k, 64),
                level.left_z + 64 * k,
            )
            pack_bits(level.left_z + 64 * k, 1, level.bits_z + k)


cdef void _leave(const Job* job, Scratch* scratch, const Level* level) noexcept nogil:
    """Let the node's player be what it was above."""
    cdef int64_t w = job.n_words
    if level.is_new:
        scratch.n_bits -= 1
        scratch.bit[scratch.player[level.bit]] = -1
    else:
        memcpy(scratch.failed + level.bit * w, level.before, w * sizeof(uint64_t))


cdef bint _descend(
    const Job* job, Scratch* scratch, Level* level, int64_t side, int64_t n
) noexcept nogil:
    """Bring the rows to the next level, by one side of a split; whether there are any."""
    cdef uint64_t* failed = scratch.failed + level.bit * job.n_words
    cdef int64_t w
    for w in range(job.n_words):
        failed[w] = level.before[w] | (level.bits_z[w] if side else ~level.bits_z[w])
    level[1].n = pair_step(
        level.n, level.who, level.mask, level.alive, level.left, side == 0, level.bit, failed,
        job.n_words, level[1].who, level[1].mask, level[1].alive,
    )
    if level[1].n == 0:
        return False
    scratch.visits += level[1].n
    level[1].live = _live_words(&level[1], job.n_words)
    if level[1].live == _low_bits(job.n_words):
        violate(n, level.missed, level.left_z, side == 0, level.bit, level[1].missed)
        return True
    for w in range(job.n_words):
        if level[1].live >> w & 1:
            violate(
                min(n - 64 * w, 64), level.missed + 64 * w, level.left_z + 64 * w, side == 0,
                level.bit, level[1].missed + 64 * w,
            )
    return True


cdef uint64_t _live_words(const Level* level, int64_t n_words) noexcept nogil:
    cdef uint64_t live = 0, any
    cdef int64_t e, w
    if level.n > FEW_ROWS:
        return _low_bits(n_words)
    for w in range(n_words):
        any = 0
        for e in range(level.n):
            any |= level.alive[e * n_words + w]
        live |= <uint64_t> (any != 0) << w
    return live


cdef int64_t list_wanted(
    const Wanted* wanted, const int32_t* player, int64_t n_bits, int64_t width, int64_t* place,
    int64_t* column
) noexcept nogil:
    """List the values of a leaf that are wanted, and their columns; how many they are.

    Those of two players are in a table of so many columns; `player` is by the bits of the path.
    """
    cdef int64_t found = 0, j, k, term
    cdef int32_t a, b
    for j in range(n_bits):
        a = player[j]
        if wanted.order == 1:
            term = wanted.column[a]
            if term >= 0:
                place[found], column[found] = j, term * wanted.n_outputs
                found += 1
            continue
        for k in range(j + 1, n_bits):
            b = player[k]
            term = wanted.column[min(a, b) * wanted.n_players + max(a, b)]
            if term >= 0:
                place[found], column[found] = j * width + k, term * wanted.n_outputs
                found += 1
    return found


cdef void _add_leaf(
    const Job* job, Scratch* scratch, const Level* level, int64_t leaf, int64_t output
) noexcept nogil:
    """Add what a leaf is worth to the rows that have come there."""
    cdef PairLeaf at
    at.n_quads = (scratch.n_bits + QUAD - 1) // QUAD
    at.n_found = list_wanted(
        &job.wanted, scratch.player, scratch.n_bits, QUAD * at.n_quads, scratch.place,
        scratch.column,
    )
    if at.n_found == 0:
        return
    at.n, at.who, at.mask, at.alive = level.n, level.who, level.mask, level.alive
    at.n_words, at.missed, at.share = job.n_words, level.missed, scratch.share
    at.worth, at.n_sizes, at.values = job.worth, job.n_sizes, scratch.values
    at.place, at.column = scratch.place, scratch.column
    at.leaf_value = job.trees.leaf_value + leaf * job.trees.n_values
    at.n_leaf_values = job.trees.n_values
    at.gained = scratch.gained + output
    at.row_size = job.n_terms * job.trees.n_outputs
    if job.wanted.order == 1:
        add_singles(&at)
    else:
        add_doubles(&at)


def leaf_sizes(Trees trees, int64_t n_players):
    """Number of players on the way to each leaf.

    Parameters
    ----------
    trees : Trees
    n_players : int

    Returns
    -------
    ndarray of shape (n_leaves,), int64
    """
    cdef TreesView view = trees.view()
    size_array = np.zeros(len(trees.leaf_value), np.int64)
    cdef int64_t[::1] size = size_array, times = np.zeros(n_players, np.int64)
    # The path to the node at hand, and how often each branch of it was taken.
    cdef int64_t[::1] path = np.empty(view.depth + 1, np.int64), taken = path.copy()
    cdef int64_t tree, depth, node, found
    cdef int32_t player
    for tree in range(view.n_trees):
        depth, node, found = 0, view.root[tree], 0
        while True:
            while view.node[node].left >= 0:
                player = view.node[node].player
                found += times[player] == 0
                times[player] += 1
                path[depth], taken[depth] = node, 1
                depth += 1
                node = view.node[node].left
            size[view.node[node].slot] = found
            while depth and taken[depth - 1] == 2:
                depth -= 1
                player = view.node[path[depth]].player
                times[player] -= 1
                found -= times[player] == 0
            if depth == 0:
                break
            taken[depth - 1] = 2
            node = view.node[path[depth - 1]].right
    return size_array
