r"""Values of one and two players from pairs of rows, by walks down trees of any depth.

Between an explained row x and a background row z a leaf plays a game that depends only on the players
A that x violates there and on those that z violates, B. If a player is in both, no set of players
brings the mixed row to the leaf. Otherwise (see `coverage`)

    a player of B is worth    integral of  t^(|B| - 1) (1 - t)^|A|  dmu(t),
    a player of A             integral of  - t^|B| (1 - t)^(|A| - 1)  dmu(t),

times the leaf's value, and other players nothing; of two players each takes a factor t or 1 - t away.

Both sides go down a tree together, block by block, each row with a mask of what it has violated: a
split on player i adds i to the masks of those that go the other way. Two operations on all rows of a
block are a node's work, which compilers vectorise. Rows with the same mask are one to the other side.
So at a leaf each side falls into sets, and each set of explained rows meets the sets of the background
that have nobody in common with it.

Rows that have nobody to meet, since every set of the other side has violated somebody that they have,
stay that way. They are looked for where enough leaves are below, and if there are many of them, the
others go on in copies without gaps.

Where both sides are many at a leaf, the sets of the background are added up over subsets instead:
with F(S) the sum over the sets within S of their share times t^|B|, a player k that x does not violate
is worth (1 - t)^|A| (F(S) - F(S - k)) / t at the node t, where S is what x does not violate. Which is
cheaper is seen at each leaf from the numbers of sets.

A task is a block of explained rows and a tree. What it gives is added up tree by tree.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from fastpd_sklearn.core.pair_walk cimport Wanted, list_wanted
from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests, route_block
from fastpd_sklearn.core.walking cimport Node, Trees, TreesView

import numpy as np

cdef extern from "sets.h" nogil:
    enum:
        QUAD
        DIRECT_BITS
        LISTED
    ctypedef struct Sets:
        int64_t n
        uint64_t* mask
        int32_t* first
        int32_t* size
        int32_t* row
    ctypedef struct Numbers:
        int32_t* number
        uint64_t* key
        int shift
    void violate_32(int64_t, const uint32_t*, const uint8_t*, uint8_t, int, uint32_t*)
    void violate_64(int64_t, const uint64_t*, const uint8_t*, uint8_t, int, uint64_t*)
    void number_32(
        int64_t, const uint32_t*, const uint8_t*, uint8_t, int, int, const Numbers*, Sets*, int32_t*
    )
    void number_64(
        int64_t, const uint64_t*, const uint8_t*, uint8_t, int, int, const Numbers*, Sets*, int32_t*
    )
    void count_32(int64_t, const uint32_t*, const uint8_t*, uint8_t, int, const Numbers*, Sets*)
    void count_64(int64_t, const uint64_t*, const uint8_t*, uint8_t, int, const Numbers*, Sets*)
    void sort_rows(int64_t, const int32_t*, const int32_t*, Sets*)
    int64_t kept_rows(int64_t, const int32_t*, const uint8_t*, int32_t*)
    void take_8(const uint8_t*, const int32_t*, int64_t, uint8_t*)
    void take_16(const uint16_t*, const int32_t*, int64_t, uint16_t*)
    void take_32(const uint32_t*, const int32_t*, int64_t, uint32_t*)
    int64_t words_of(int64_t)
    void list_violations(const Sets*, int, uint64_t*)
    void find_partners(const Sets*, const Sets*, int, uint64_t*, uint8_t*, uint8_t*)
    ctypedef struct SetLeaf:
        const Sets* explained
        const Sets* others
        const double* share
        const uint64_t* has
        uint64_t* apart
        int32_t* met
        int n_bits
        int64_t n_words
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
    int64_t add_singles(const SetLeaf*)
    int64_t add_doubles(const SetLeaf*)
    ctypedef struct Quadrature:
        int64_t n_nodes
        const double* node
        const double* worth
        int64_t n_kinds
        int64_t n_sizes
    void add_by_sums(const SetLeaf*, const Quadrature*, double*)

# Nanoseconds: a node, and there a row; a row that is put into a set; a code that is copied; a set that
# meets 64 others, and what it meets; an explained row's value at a leaf.
cdef double NODE = 100.0, NODE_ROW = 0.25, SET_ROW = 1.5, COPY = 0.7
cdef double MEETING = 10.0, PAIR = 3.0, PAIR_OF_PLAYERS = 20.0, VALUE = 0.6
cdef double SETS = 0.3, SETS_OF_TWO = 2.0       # two sets at a leaf, whether or not they meet
# A sum over subsets, for each player and each node of the quadrature; and a difference of two sums.
SUM, DIFFERENCE = 0.1, 0.4

cdef enum:
    PLAYERS = 64            # of a path, at most: a bit each
    ROW_BYTES = 13          # of a level: a mask, a number, a way
    FEW_PLAYERS = 32        # up to which masks are short
    LOOK_LEAVES = 8         # below a node where it is worth a look who has a partner

MOST_PLAYERS = PLAYERS
MOST_ROWS = 1 << 14         # explained together
MOST_BACKGROUND = 1 << 16   # rows of a background that meet them at a time
BLOCK_BYTES = 1 << 26       # of these at all nodes of a path, about
FEW_OTHERS = 1024           # the least of a background that is worth a walk
FEW_TREES, MOST_TREES = 8, 32       # walked at a time, with sums apart
TASK_BYTES = 1 << 26        # of these sums


cdef struct Job:
    # All that does not change within one call.
    TreesView trees
    const int32_t* n_below  # leaves by node
    const int64_t* tree     # those that are walked
    int64_t n_trees
    Tests tests
    Codes rows
    Codes background
    int64_t n_slots
    bint is_long            # masks have 64 bits
    const double* share     # by background row
    bint is_even            # all rows have the same share
    const double* worth     # see SetLeaf
    int64_t n_sizes
    const int64_t* rule     # by size of a leaf, see Rules; NULL: without
    const double* node
    const double* node_worth
    double sum              # see SUM, DIFFERENCE
    double difference
    Wanted wanted
    int64_t n_terms
    int64_t block_rows
    int64_t n_others        # of a block of background rows


cdef struct Rows:
    # The rows of a side at a node.
    int64_t n
    int64_t first           # where they start among the codes
    Codes codes
    void* copied            # the codes, if they are copies
    int32_t* row            # numbers
    int32_t* own_row        # room for them
    char* mask              # players that are violated, 32 or 64 bits each
    uint8_t* left           # left[r] = 1: goes left


cdef struct Level:
    # A node on the way down.
    int64_t node
    int64_t side            # of the child that is next: 0, 1, or 2 for none
    int bit                 # of the node's player, n_bits if it is not tested above
    int n_bits
    bint is_even            # of an even depth
    Rows explained
    Rows others


cdef struct Grouping:
    # A side in sets, and the room for it.
    Sets sets
    int32_t* set_of         # by row
    uint8_t* is_kept        # by set


cdef struct Scratch:
    Level* level
    char* room              # for the arrays of all levels
    int32_t player[PLAYERS]     # by bit
    char* spare             # for what is below
    Numbers numbers
    Grouping explained
    Grouping others
    int32_t* index
    uint8_t* is_tested      # by slot
    int64_t* path           # nodes
    double* set_share       # by set of others
    uint64_t* words         # see find_partners
    int32_t* met            # see SetLeaf
    double* tables          # see add_by_sums
    double* values          # see SetLeaf
    int64_t* place
    int64_t* column
    const double* share     # of the block of background rows
    double* gained          # gained[(x * n_terms + term) * n_outputs + output]
    double effort


def walk_sets(
    Trees trees, NodeTests tests, BinnedRows rows, BinnedRows background,
    const double[::1] share, const double[:, :, ::1] worth, rule, columns,
    const int64_t[::1] chosen, double[:, :, ::1] out, int n_threads, report,
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
    rule : tuple of ndarray or None
        ``start`` and ``node`` of the index's `Rules`, and the same for one side of a pair, an array
        of shape (n_nodes, 2 or 3, n_sizes): at node t, where the explained row violates a players,
        ``[node, kind, a]`` times the share of the rows that have nobody in common with it, each
        times ``t ** b``, and for each of the term's players that the background row violates less
        those that do not violate it. None where a node is at zero or one.
    columns : ndarray of shape (n_players,) or (n_players, n_players), int32
        The term of a player, or of two; negative where it is not wanted.
    chosen : ndarray of int64
        The trees to walk.
    out : ndarray of shape (n_terms, n_outputs, n_rows), float64
    n_threads : int
    report : callable or None
        Called with the share that is done, now and then.

    Returns
    -------
    float
        What it has taken, in nanoseconds of the machine that the figures below were fitted to; the
        same in every run.
    """
    cdef int64_t n_rows = rows.n_rows, n_terms = out.shape[0], n_outputs = out.shape[1]
    if n_rows == 0 or n_terms == 0 or chosen.shape[0] == 0 or background.n_rows == 0:
        return 0.0
    if out.shape[2] != n_rows or share.shape[0] != background.n_rows:
        raise ValueError("arrays do not have a place for every row")
    cdef const int32_t[::1] column = columns.reshape(-1)
    cdef Job job
    job.trees, job.tree, job.n_trees = trees.view(), &chosen[0], chosen.shape[0]
    cdef const int32_t[::1] n_below = leaves_below(trees)
    job.n_below, job.tests = &n_below[0], tests.view()
    job.rows, job.background, job.n_slots = rows.view(), background.view(), len(rows.width)
    job.is_long = worth.shape[1] - 1 > FEW_PLAYERS
    job.share, job.worth, job.n_sizes = &share[0], &worth[0, 0, 0], worth.shape[1]
    job.is_even = np.ptp(share) == 0
    cdef const int64_t[::1] start
    cdef const double[::1] node
    cdef const double[:, :, ::1] node_worth
    job.rule, job.sum, job.difference = NULL, SUM, DIFFERENCE
    if rule is not None:
        start, node, node_worth = rule
        job.rule, job.node, job.node_worth = &start[0], &node[0], &node_worth[0, 0, 0]
    job.wanted.order, job.wanted.column = columns.ndim, &column[0]
    job.wanted.n_players, job.wanted.n_outputs = columns.shape[0], n_outputs
    job.n_terms = n_terms
    job.n_others = n_others_of(background, job.trees.depth)
    cdef int64_t row_size = n_terms * n_outputs, first, task, n_tasks, done = 0
    job.block_rows = block_rows_of(n_rows, row_size)
    cdef int64_t most = max(TASK_BYTES // (8 * row_size * job.block_rows), FEW_TREES, n_threads)
    most = min(most, max(MOST_TREES, 4 * n_threads), job.n_trees)
    gained_array = np.empty((most, job.block_rows, n_terms, n_outputs))
    cdef double* gained = <double*> <size_t> gained_array.ctypes.data
    cdef double[::1] effort = np.zeros(most)
    total = 0.0
    for first in range(0, n_rows, job.block_rows):
        for done in range(0, job.n_trees, most):
            n_tasks = min(most, job.n_trees - done)
            for task in prange(n_tasks, nogil=True, num_threads=n_threads, schedule="dynamic"):
                effort[task] = _walk_block(
                    &job, job.tree[done + task], first, gained + task * job.block_rows * row_size
                )
            total += np.sum(effort[:n_tasks])
            if np.min(effort[:n_tasks]) < 0:
                raise MemoryError(
                    f"no memory for walks down trees of depth {job.trees.depth}; use fewer threads "
                    "(n_jobs)"
                )
            _add(gained_array[:n_tasks], np.asarray(out)[:, :, first:])
            if report is not None:
                block = min(job.block_rows, n_rows - first)
                report((first + block * (done + n_tasks) / job.n_trees) / n_rows)
    return total


def block_rows_of(int64_t n_rows, int64_t row_size):
    """Rows that are explained together.

    Parameters
    ----------
    n_rows : int
    row_size : int
        Values of a row.

    Returns
    -------
    int
    """
    return max(1, min(TASK_BYTES // (8 * row_size * FEW_TREES), MOST_ROWS, n_rows))


def n_others_of(BinnedRows background, int64_t depth):
    """Rows of a background that walk together.

    Parameters
    ----------
    background : BinnedRows
    depth : int
        The most tests on a path.

    Returns
    -------
    int
    """
    cdef int64_t row_bytes = ROW_BYTES * (depth + 1) + 4 * int(np.sum(background.width))
    cdef int64_t most = max(FEW_OTHERS, min(BLOCK_BYTES // row_bytes, MOST_BACKGROUND))
    cdef int64_t n_blocks = (background.n_rows + most - 1) // most
    return (background.n_rows + n_blocks - 1) // n_blocks


def _add(gained, out):
    """Add what a block of rows has gained, tree by tree, to the output."""
    out = out[:, :, :gained.shape[1]]
    for of_tree in gained:
        out += of_tree[:out.shape[2]].transpose(1, 2, 0)


cdef double _walk_block(const Job* job, int64_t tree, int64_t row, double* gained) noexcept nogil:
    """What a tree gives the rows from `row` on; the effort, or -1 without memory."""
    cdef int64_t first = 0
    cdef Scratch scratch
    memset(gained, 0, job.block_rows * job.n_terms * job.trees.n_outputs * sizeof(double))
    if job.trees.node[job.trees.root[tree]].left < 0:
        return 0.0
    if _make_scratch(&scratch, job) < 0:
        _free_scratch(&scratch)
        return -1.0
    scratch.gained = gained
    while first < job.background.n_rows:
        scratch.share = job.share + first
        _walk_tree(job, &scratch, tree, row, first)
        first += job.n_others
    _free_scratch(&scratch)
    return scratch.effort


cdef int _make_scratch(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t n_levels = job.trees.depth + 1, m = job.block_rows, n = job.n_others, i
    cdef int64_t a_level = _level_bytes(m) + _level_bytes(n), most = max(m, n), slots = 1 << DIRECT_BITS
    cdef int64_t n_values = PLAYERS if job.wanted.order == 1 else PLAYERS * PLAYERS
    cdef char* at
    while slots < 2 * most:
        slots *= 2
    scratch.effort = 0.0
    scratch.level = <Level*> calloc(n_levels, sizeof(Level))
    scratch.room = <char*> malloc(n_levels * a_level)
    scratch.spare = <char*> malloc(_grouping_bytes(m) + _grouping_bytes(n))
    scratch.numbers.number = <int32_t*> calloc(slots, sizeof(int32_t))
    scratch.numbers.key = <uint64_t*> malloc(slots * sizeof(uint64_t))
    scratch.index = <int32_t*> malloc(most * sizeof(int32_t))
    scratch.is_tested = <uint8_t*> malloc(job.n_slots)
    scratch.path = <int64_t*> malloc((n_levels + 1) * sizeof(int64_t))
    scratch.set_share = <double*> malloc(n * sizeof(double))
    scratch.words = <uint64_t*> malloc((PLAYERS + 3) * words_of(n) * sizeof(uint64_t))
    scratch.met = <int32_t*> malloc((n + LISTED) * sizeof(int32_t))
    scratch.tables = <double*> malloc((2 * QUAD << DIRECT_BITS) * sizeof(double))
    scratch.values = <double*> malloc(n_values * sizeof(double))
    scratch.column = <int64_t*> malloc(n_values * sizeof(int64_t))
    scratch.place = <int64_t*> malloc(n_values * sizeof(int64_t))
    if (
        scratch.level == NULL or scratch.room == NULL or scratch.spare == NULL
        or scratch.numbers.number == NULL or scratch.numbers.key == NULL or scratch.index == NULL
        or scratch.is_tested == NULL or scratch.path == NULL or scratch.set_share == NULL
        or scratch.words == NULL or scratch.met == NULL or scratch.tables == NULL
        or scratch.values == NULL or scratch.column == NULL or scratch.place == NULL
    ):
        return -1
    for i in range(n_levels):
        scratch.level[i].is_even = i % 2 == 0
        at = scratch.room + i * a_level
        _place_rows(&scratch.level[i].explained, m, at)
        _place_rows(&scratch.level[i].others, n, at + _level_bytes(m))
    _place_grouping(&scratch.explained, m, scratch.spare)
    _place_grouping(&scratch.others, n, scratch.spare + _grouping_bytes(m))
    return 0


cdef int64_t _level_bytes(int64_t n) noexcept nogil:
    """Room for masks, numbers and ways of n rows."""
    return (n * ROW_BYTES + 63) // 64 * 64


cdef void _place_rows(Rows* rows, int64_t n, char* at) noexcept nogil:
    rows.mask = at
    rows.own_row = <int32_t*> (at + n * sizeof(uint64_t))
    rows.left = <uint8_t*> (rows.own_row + n)


cdef int64_t _grouping_bytes(int64_t n) noexcept nogil:
    """Room for n rows in sets, and for one more mask and size; see sets.h."""
    return (n + 2) * (sizeof(uint64_t) + 4 * sizeof(int32_t) + 1) // 64 * 64 + 64


cdef void _place_grouping(Grouping* grouping, int64_t n, char* at) noexcept nogil:
    cdef Sets* sets = &grouping.sets
    sets.mask = <uint64_t*> at
    sets.first = <int32_t*> (sets.mask + n + 1)
    sets.size = sets.first + n + 1
    sets.row = sets.size + n + 1
    grouping.set_of = sets.row + n + 1
    grouping.is_kept = <uint8_t*> (grouping.set_of + n + 1)


cdef void _free_scratch(Scratch* scratch) noexcept nogil:
    free(scratch.level)
    free(scratch.room)
    free(scratch.spare)
    free(scratch.numbers.number)
    free(scratch.numbers.key)
    free(scratch.index)
    free(scratch.is_tested)
    free(scratch.path)
    free(scratch.set_share)
    free(scratch.words)
    free(scratch.met)
    free(scratch.tables)
    free(scratch.values)
    free(scratch.column)
    free(scratch.place)


cdef void _walk_tree(
    const Job* job, Scratch* scratch, int64_t tree, int64_t row, int64_t first
) noexcept nogil:
    """Add what a tree gives the explained rows from `row` on, with the others from `first` on."""
    cdef int64_t depth = 0, child
    cdef const Node* nodes = job.trees.node
    cdef Level* level = scratch.level
    level.n_bits = 0
    _start(&level.explained, &job.rows, row, min(job.block_rows, job.rows.n_rows - row))
    _start(&level.others, &job.background, first, min(job.n_others, job.background.n_rows - first))
    _enter(job, scratch, level, job.trees.root[tree])
    while depth >= 0:
        level = scratch.level + depth
        if level.side == 2:
            free(level.explained.copied)
            free(level.others.copied)
            level.explained.copied = level.others.copied = NULL
            depth -= 1
            continue
        child = nodes[level.node].right if level.side else nodes[level.node].left
        level.side += 1
        scratch.player[level.bit] = nodes[level.node].player
        if nodes[child].left < 0:
            _add_leaf(job, scratch, level, nodes[child].slot, job.trees.tree_output[tree])
        elif _descend(job, scratch, level, child):
            depth += 1
            _enter(job, scratch, level + 1, child)


cdef void _start(Rows* rows, const Codes* codes, int64_t first, int64_t n) noexcept nogil:
    """n rows that have violated nobody."""
    cdef int32_t r
    rows.n, rows.first, rows.codes, rows.copied, rows.row = n, first, codes[0], NULL, rows.own_row
    memset(rows.mask, 0, n * sizeof(uint64_t))
    for r in range(<int32_t> n):
        rows.row[r] = r


cdef void _enter(const Job* job, Scratch* scratch, Level* level, int64_t node) noexcept nogil:
    """Make a level ready for a node whose rows are there."""
    cdef int32_t player = job.trees.node[node].player
    level.node, level.side, level.bit = node, 0, 0
    while level.bit < level.n_bits and scratch.player[level.bit] != player:
        level.bit += 1
    _route(job, node, &level.explained)
    _route(job, node, &level.others)
    scratch.effort += NODE + NODE_ROW * (level.explained.n + level.others.n)


cdef void _route(const Job* job, int64_t node, Rows* rows) noexcept nogil:
    route_block(&rows.codes, &job.tests, node, rows.first, rows.n, rows.left)


cdef int _bits_below(const Level* level) noexcept nogil:
    return level.n_bits + (level.bit == level.n_bits)


cdef bint _descend(const Job* job, Scratch* scratch, Level* level, int64_t child) noexcept nogil:
    """Bring the rows to the next level, by the side that is at hand; whether any can meet."""
    level[1].n_bits = _bits_below(level)
    if job.n_below[child] >= LOOK_LEAVES and level[1].is_even:
        return _descend_with_partners(job, scratch, level, child)
    _descend_all(job, level, &level.explained, &level[1].explained)
    _descend_all(job, level, &level.others, &level[1].others)
    return True


cdef void _descend_all(const Job* job, const Level* level, const Rows* at, Rows* below) noexcept nogil:
    cdef uint8_t wanted = level.side == 1
    below.n, below.first, below.codes, below.row = at.n, at.first, at.codes, at.row
    if job.is_long:
        violate_64(
            at.n, <const uint64_t*> at.mask, at.left, wanted, level.bit, <uint64_t*> below.mask
        )
    else:
        violate_32(
            at.n, <const uint32_t*> at.mask, at.left, wanted, level.bit, <uint32_t*> below.mask
        )


cdef bint _descend_with_partners(
    const Job* job, Scratch* scratch, Level* level, int64_t child
) noexcept nogil:
    """The same with a look who has a partner."""
    cdef Grouping* explained = &scratch.explained
    cdef Grouping* others = &scratch.others
    _group(job, scratch, level, &level.explained, explained)
    _group(job, scratch, level, &level.others, others)
    find_partners(
        &explained.sets, &others.sets, level[1].n_bits, scratch.words, explained.is_kept,
        others.is_kept,
    )
    scratch.effort += MEETING * explained.sets.n * (others.sets.n // 64 + 1)
    _descend_some(job, scratch, level, child, &level.explained, explained, &level[1].explained)
    if level[1].explained.n == 0:
        return False
    _descend_some(job, scratch, level, child, &level.others, others, &level[1].others)
    return True


cdef void _descend_some(
    const Job* job, Scratch* scratch, const Level* level, int64_t child, const Rows* at,
    const Grouping* grouping, Rows* below,
) noexcept nogil:
    """Bring those that have a partner to the next level, or all of them if most have one."""
    cdef int64_t n = kept_rows(at.n, grouping.set_of, grouping.is_kept, scratch.index), r
    if n > at.n - at.n // 4 or not _copy_codes(job, scratch, child, at, n, below):
        _descend_all(job, level, at, below)
        below.n = at.n if n else 0
        return
    below.n, below.first, below.row = n, 0, below.own_row
    take_32(<const uint32_t*> at.row, scratch.index, n, <uint32_t*> below.row)
    for r in range(n):
        if job.is_long:
            (<uint64_t*> below.mask)[r] = grouping.sets.mask[grouping.set_of[scratch.index[r]]]
        else:
            (<uint32_t*> below.mask)[r] = <uint32_t> (
                grouping.sets.mask[grouping.set_of[scratch.index[r]]]
            )


cdef bint _copy_codes(
    const Job* job, Scratch* scratch, int64_t node, const Rows* at, int64_t n, Rows* below
) noexcept nogil:
    """Copy the codes that a subtree looks at; whether there is memory."""
    cdef int64_t offset, slot, size = 0
    cdef uint8_t width = 4
    cdef const uint8_t* column
    cdef char* made
    _list_tested(job, scratch, node)
    for slot in range(job.n_slots):
        size += scratch.is_tested[slot] * n * at.codes.width[slot]
    made = <char*> malloc(job.n_slots * sizeof(int64_t) + size + sizeof(int64_t))
    if made == NULL:
        return False
    below.copied = made
    below.codes = at.codes
    below.codes.offset, below.codes.data = <const int64_t*> made, <const uint8_t*> made
    offset = job.n_slots * sizeof(int64_t)
    # Wide codes come first, so that all are aligned.
    while width:
        for slot in range(job.n_slots):
            if not scratch.is_tested[slot] or at.codes.width[slot] != width:
                continue
            (<int64_t*> made)[slot] = offset
            column = at.codes.data + at.codes.offset[slot] + at.first * width
            if width == 1:
                take_8(column, scratch.index, n, <uint8_t*> (made + offset))
            elif width == 2:
                take_16(<const uint16_t*> column, scratch.index, n, <uint16_t*> (made + offset))
            else:
                take_32(<const uint32_t*> column, scratch.index, n, <uint32_t*> (made + offset))
            offset += n * width
            scratch.effort += COPY * n
        width //= 2
    return True


cdef void _list_tested(const Job* job, Scratch* scratch, int64_t root) noexcept nogil:
    """Mark the binned columns that a subtree tests."""
    cdef const Node* nodes = job.trees.node
    cdef int64_t top = 1, node
    memset(scratch.is_tested, 0, job.n_slots)
    scratch.path[0] = root
    while top:
        top -= 1
        node = scratch.path[top]
        if nodes[node].left >= 0:
            scratch.is_tested[nodes[node].slot] = 1
            scratch.path[top], scratch.path[top + 1] = nodes[node].right, nodes[node].left
            top += 2


cdef void _group(
    const Job* job, Scratch* scratch, const Level* level, const Rows* rows, Grouping* grouping
) noexcept nogil:
    """Put the rows of a child into sets."""
    cdef uint8_t wanted = level.side == 1
    cdef int n_bits = _bits_below(level)
    _fit_hash(&scratch.numbers, rows.n)
    scratch.effort += SET_ROW * rows.n
    if job.is_long:
        number_64(
            rows.n, <const uint64_t*> rows.mask, rows.left, wanted, level.bit, n_bits,
            &scratch.numbers, &grouping.sets, grouping.set_of,
        )
    else:
        number_32(
            rows.n, <const uint32_t*> rows.mask, rows.left, wanted, level.bit, n_bits,
            &scratch.numbers, &grouping.sets, grouping.set_of,
        )


cdef void _fit_hash(Numbers* numbers, int64_t n) noexcept nogil:
    numbers.shift = 60
    while <int64_t> 1 << (64 - numbers.shift) < 2 * n:
        numbers.shift -= 1


cdef void _add_leaf(
    const Job* job, Scratch* scratch, const Level* level, int64_t leaf, int64_t output
) noexcept nogil:
    """Add what a leaf is worth to the rows that have come there, from the node above."""
    cdef SetLeaf at
    cdef int n_bits = _bits_below(level)
    at.n_quads = (n_bits + QUAD - 1) // QUAD
    at.n_found = list_wanted(
        &job.wanted, scratch.player, n_bits, QUAD * at.n_quads, scratch.place, scratch.column
    )
    if at.n_found == 0:
        return
    _group(job, scratch, level, &level.explained, &scratch.explained)
    sort_rows(
        level.explained.n, scratch.explained.set_of, level.explained.row, &scratch.explained.sets
    )
    _share(job, scratch, level, n_bits)
    at.explained, at.others = &scratch.explained.sets, &scratch.others.sets
    at.share = scratch.set_share
    at.n_bits = n_bits
    at.values, at.place, at.column = scratch.values, scratch.place, scratch.column
    at.leaf_value = job.trees.leaf_value + leaf * job.trees.n_values
    at.n_leaf_values = job.trees.n_values
    at.gained = scratch.gained + output
    at.row_size = job.n_terms * job.trees.n_outputs
    if not _add_by_sums(job, scratch, &at):
        _add_by_sets(job, scratch, &at)
    scratch.effort += VALUE * level.explained.n * at.n_found * at.n_leaf_values


cdef void _add_by_sets(const Job* job, Scratch* scratch, SetLeaf* at) noexcept nogil:
    """Let each set meet each other set."""
    cdef int64_t n_pairs
    at.n_words = words_of(at.others.n)
    at.has, at.apart, at.met = scratch.words + at.n_words, scratch.words, scratch.met
    at.worth, at.n_sizes = job.worth, job.n_sizes
    list_violations(at.others, at.n_bits, scratch.words + at.n_words)
    n_pairs = add_singles(at) if job.wanted.order == 1 else add_doubles(at)
    scratch.effort += MEETING * at.explained.n * at.n_words
    scratch.effort += (PAIR if job.wanted.order == 1 else PAIR_OF_PLAYERS) * n_pairs


cdef bint _add_by_sums(const Job* job, Scratch* scratch, SetLeaf* at) noexcept nogil:
    """Add up the background over subsets instead, once for all sets, where that is cheaper."""
    cdef Quadrature rule
    cdef double by_sets = SETS if job.wanted.order == 1 else SETS_OF_TWO, by_sums
    cdef int64_t differences = at.n_bits if job.wanted.order == 1 else at.n_bits * at.n_bits
    if job.rule == NULL or at.n_bits > DIRECT_BITS:
        return False
    rule.n_nodes = job.rule[at.n_bits + 1] - job.rule[at.n_bits]
    if rule.n_nodes > 2 * QUAD:
        return False
    by_sets *= <double> at.explained.n * at.others.n
    by_sums = job.sum * rule.n_nodes * at.n_bits * (<double> (1 << at.n_bits))
    by_sums += job.difference * rule.n_nodes * differences * at.explained.n
    if by_sums > by_sets:
        return False
    rule.node = job.node + job.rule[at.n_bits]
    rule.n_kinds, rule.n_sizes = job.wanted.order + 1, job.n_sizes
    rule.worth = job.node_worth + job.rule[at.n_bits] * rule.n_kinds * rule.n_sizes
    add_by_sums(at, &rule, scratch.tables)
    scratch.effort += by_sums
    return True


cdef void _share(const Job* job, Scratch* scratch, const Level* level, int n_bits) noexcept nogil:
    """Put the others into sets; what each of these has of the background."""
    cdef const Rows* rows = &level.others
    cdef Sets* sets = &scratch.others.sets
    cdef uint8_t wanted = level.side == 1
    cdef int64_t s, r
    if not job.is_even:
        _group(job, scratch, level, rows, &scratch.others)
        memset(scratch.set_share, 0, sets.n * sizeof(double))
        for r in range(rows.n):
            scratch.set_share[scratch.others.set_of[r]] += scratch.share[rows.row[r]]
        return
    if n_bits > DIRECT_BITS:
        _group(job, scratch, level, rows, &scratch.others)
    elif job.is_long:
        count_64(
            rows.n, <const uint64_t*> rows.mask, rows.left, wanted, level.bit, &scratch.numbers, sets
        )
    else:
        count_32(
            rows.n, <const uint32_t*> rows.mask, rows.left, wanted, level.bit, &scratch.numbers, sets
        )
    scratch.effort += SET_ROW * rows.n
    for s in range(sets.n):
        scratch.set_share[s] = sets.size[s] * scratch.share[0]


def leaves_below(Trees trees):
    """Number of leaves below each node, itself if it is one.

    Parameters
    ----------
    trees : Trees

    Returns
    -------
    ndarray of int32
    """
    cdef TreesView view = trees.view()
    below_array = np.ones(len(trees.nodes), np.int32)
    cdef int32_t[::1] below = below_array
    cdef int64_t node
    # Children come after their parents.
    for node in range(len(trees.nodes) - 1, -1, -1):
        if view.node[node].left >= 0:
            below[node] = below[view.node[node].left] + below[view.node[node].right]
    return below_array
