"""What a row's prediction would be if one of its columns had another value, for many columns at once.

A *move* is a column, points along it, and for every row a *step* between two neighbouring points: the
column is to take one of these *ends* instead of the row's own value. In most trees neither makes a
difference, since a row's path rarely has a threshold between its value and a near one. Rows go down
a tree together, parted at its nodes. Of a column of numbers a node's threshold lies within one
step alone: a row of this step, and no other one, leaves a *ghost* at the node, which goes on the
other way as the row with this column at the end beyond the threshold. What the leaves of row and
ghost differ by is what the end adds.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport (
    Node, Trees, TreesView, code_goes_left, part_rows, row_goes_left,
)

import numpy as np

cdef extern from "walking.h" nogil:
    int64_t pick_8(const uint8_t*, uint8_t, const int32_t*, int64_t, int32_t*)
    int64_t pick_16(const uint16_t*, uint16_t, const int32_t*, int64_t, int32_t*)
    int64_t pick_32(const uint32_t*, uint32_t, const int32_t*, int64_t, int32_t*)

cdef enum:
    LEAST_ROWS = 2048  # of a block, whose codes and sums stay in the second-level cache
    MOST_ROWS = 4096   # the same for large trees, whose nodes have to come from memory
    FEW = 3            # so few rows and ghosts go on one by one


cdef class Steps:
    """The steps of rows along one binned column.

    Parameters
    ----------
    slot : int
        The column.
    codes : ndarray of shape (n_points,), uint8, uint16 or uint32
        Of the points.
    step : ndarray of shape (n_rows,), int
        Each row's step: ``s`` is that from point ``s`` to the next one; -1 stays.
    own : ndarray of shape (n_rows,), like ``codes``
        The rows' own codes.
    cuts : bool
        Whether each test of the column cuts the line of its codes in two.
    n_codes : int
        Codes of the column, missing apart.
    """

    cdef readonly int64_t slot
    cdef readonly object kind, ends, kind_at
    cdef bint is_line
    cdef const uint8_t[::1] _kind
    cdef const uint32_t[:, ::1] _ends
    cdef const int32_t[::1] _kind_at
    cdef uint8_t width

    def __init__(self, int64_t slot, codes, step, own, bint cuts, int64_t n_codes):
        self.slot = slot
        last = len(codes) - 1
        low, high = codes[:last], codes[1:]
        matters = low != high
        kind = np.append(np.where(matters, np.cumsum(matters), 0), 0)  # the last is that of -1
        self.ends = np.zeros((1 + np.count_nonzero(matters), 2), np.uint32)
        self.ends[1:, 0], self.ends[1:, 1] = low[matters], high[matters]
        kind = kind.astype(np.min_scalar_type(len(self.ends) - 1))
        # A wrong step would be read from beyond the array, were it not for the check of "raise".
        self.kind = np.take(kind, step, mode="raise")
        missing = np.iinfo(codes.dtype).max
        # What a number stands for may be missing: then a row's code is not between its ends.
        self.is_line = (
            cuts and bool(np.all(low <= high)) and codes[last] != missing
            and not np.any((own == missing) & (self.kind != 0))
        )
        self.kind_at = np.zeros(1, np.int32)
        if self.is_line:
            cut = np.arange(n_codes + 1)
            kind_at = np.searchsorted(self.ends[1:, 0], cut, side="right")
            self.kind_at = np.where(cut < self.ends[kind_at, 1], kind_at, 0).astype(np.int32)
        self.width = self.kind.dtype.itemsize
        self._kind, self._ends, self._kind_at = self.kind.view(np.uint8), self.ends, self.kind_at

    cdef Move view(self) noexcept:
        cdef Move move
        move.slot, move.next, move.is_line = <int32_t> self.slot, -1, self.is_line
        move.kind = &self._kind[0] if self._kind.shape[0] else NULL
        move.width, move.ends, move.kind_at = self.width, &self._ends[0, 0], &self._kind_at[0]
        return move


cdef struct Move:
    int32_t slot
    int32_t next              # another move of the same column, -1 for none
    bint is_line              # a threshold lies within one step alone, and rows between their ends
    uint8_t width
    const uint8_t* kind       # by row: the number of its step among those that matter, from 1 on
    const uint32_t* ends      # codes of both ends, by kind
    const int32_t* kind_at    # on a line: the step that holds a threshold, by the last code below


cdef struct Ghost:
    int32_t row
    int32_t move
    int32_t end               # 0 is the low one
    uint32_t at               # the end's code; on arrival the leaf


cdef struct Frame:
    # The rows row[first:last] at a node, and how many of the last ghosts.
    int64_t node
    int64_t first
    int64_t last
    int64_t n_ghosts


cdef struct Job:
    TreesView trees
    Codes codes
    const int32_t* above      # by node: see `_tests_above`
    const int32_t* move_of_slot
    const Move* moves
    int64_t n_slots
    int64_t rows              # most rows of a block
    int64_t room              # for ghosts
    int64_t n_ends            # 1 for the differences of both ends, 2 for each by itself


cdef struct Scratch:
    int64_t first_row
    int32_t* row
    int32_t* spare
    int32_t* leaf             # by row: where it arrives
    int64_t* offset           # of the block's rows within the columns
    Frame* stack
    Ghost* ghosts
    Ghost* left_ghosts        # those that go left at a node
    Ghost* arrived
    int64_t n_ghosts
    int64_t n_left
    int64_t n_arrived


cdef class Walker:
    """Trees as rows with moves walk through them.

    Parameters
    ----------
    trees : Trees
    """

    cdef Trees trees
    cdef const int32_t[::1] above

    def __init__(self, Trees trees):
        self.trees = trees
        nodes = trees.nodes
        self.above = _tests_above(
            nodes["left"].copy(), nodes["right"].copy(), nodes["slot"].copy()
        )

    def move(self, BinnedRows rows, steps, bint apart, int n_threads):
        """What moves add to the raw prediction of every row.

        Parameters
        ----------
        rows : BinnedRows
        steps : sequence of Steps
            One a move; a column may have several.
        apart : bool
            Whether each end is compared with the row as it is, or the high end with the low one.
        n_threads : int

        Returns
        -------
        ndarray of shape (n_moves, n_ends, n_outputs, n_rows), float64
            Zero for rows that stay.
        """
        cdef Job job
        cdef int64_t n_rows = rows.n_rows, n_leaves = self.trees.leaf_value.shape[0], block
        cdef int64_t n_moves = len(steps), n_slots = len(rows.width), m, s, n_blocks
        cdef int status = 0
        cdef Steps one
        out_array = np.zeros((n_moves, 2 if apart else 1, self.trees.n_outputs, n_rows))
        if out_array.size == 0 or self.trees.n_trees == 0 or n_slots == 0:
            return out_array
        cdef double[:, :, :, ::1] out = out_array
        cdef int32_t[::1] move_of_slot = np.full(n_slots, -1, np.int32)
        cdef uint8_t[::1] moves = np.empty(n_moves * sizeof(Move), np.uint8)
        cdef Move* move = <Move*> &moves[0]
        for m in range(n_moves):
            one = steps[m]
            s = one.slot
            move[m] = one.view()
            move[m].next, move_of_slot[s] = move_of_slot[s], <int32_t> m
        most = np.bincount([one.slot for one in steps]).max()
        job.trees, job.codes, job.above = self.trees.view(), rows.view(), &self.above[0]
        job.move_of_slot, job.moves, job.n_slots = &move_of_slot[0], move, n_slots
        job.n_ends = 2 if apart else 1
        job.rows = min(max(n_leaves // job.trees.n_trees, <int64_t> LEAST_ROWS),
                       <int64_t> MOST_ROWS, n_rows)
        # An end leaves its row once in a tree at most, and at each node the ends of one column.
        job.room = job.rows * 2 * min(n_moves, <int64_t> most * job.trees.depth) + 1
        n_blocks = (n_rows + job.rows - 1) // job.rows
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status += _move_block(&job, block * job.rows, &out[0, 0, 0, 0])
        if status < 0:
            raise MemoryError("no memory for the moves of a block of rows")
        return out_array


cdef _tests_above(const int32_t[::1] left, const int32_t[::1] right, const int32_t[::1] slot):
    """By node the last test of the same column above it: ``2 * node + went left``, or -1."""
    cdef int64_t n_nodes = left.shape[0], node, above
    cdef int32_t[::1] parent = np.full(n_nodes, -1, np.int32)
    cdef int32_t[::1] found = np.full(max(n_nodes, 1), -1, np.int32)
    for node in range(n_nodes):  # children come after their parents
        if left[node] < 0:
            continue
        parent[left[node]], parent[right[node]] = <int32_t> (2 * node + 1), <int32_t> (2 * node)
        above = parent[node]
        while above >= 0 and slot[above // 2] != slot[node]:
            above = parent[above // 2]
        found[node] = <int32_t> above
    return np.asarray(found)


cdef int _move_block(const Job* job, int64_t first_row, double* out) noexcept nogil:
    cdef int64_t m = min(job.rows, job.codes.n_rows - first_row), tree, r, s
    cdef Codes codes = job.codes
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    if status == 0:
        scratch.first_row = first_row
        for s in range(job.n_slots):
            scratch.offset[s] = job.codes.offset[s] + first_row * job.codes.width[s]
        codes.offset = scratch.offset
        for r in range(m):
            scratch.row[r] = <int32_t> r
        for tree in range(job.trees.n_trees):
            _walk(job, &codes, m, job.trees.root[tree], &scratch)
            _add(job, job.trees.tree_output[tree], &scratch, out + first_row)
    _scratch_free(&scratch)
    return status


cdef int _scratch_init(Scratch* scratch, const Job* job) noexcept nogil:
    scratch.row = <int32_t*> malloc(job.rows * sizeof(int32_t))
    scratch.spare = <int32_t*> malloc(job.rows * sizeof(int32_t))
    scratch.leaf = <int32_t*> malloc(job.rows * sizeof(int32_t))
    scratch.offset = <int64_t*> malloc(job.n_slots * sizeof(int64_t))
    scratch.stack = <Frame*> malloc((job.trees.depth + 1) * sizeof(Frame))
    scratch.ghosts = <Ghost*> malloc(job.room * sizeof(Ghost))
    scratch.left_ghosts = <Ghost*> malloc(job.room * sizeof(Ghost))
    scratch.arrived = <Ghost*> malloc(job.room * sizeof(Ghost))
    return -1 if (
        scratch.row == NULL or scratch.spare == NULL or scratch.leaf == NULL
        or scratch.offset == NULL or scratch.stack == NULL or scratch.ghosts == NULL
        or scratch.left_ghosts == NULL or scratch.arrived == NULL
    ) else 0


cdef void _scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.row)
    free(scratch.spare)
    free(scratch.leaf)
    free(scratch.offset)
    free(scratch.stack)
    free(scratch.ghosts)
    free(scratch.left_ghosts)
    free(scratch.arrived)


cdef void _walk(
    const Job* job, const Codes* codes, int64_t m, int64_t root, Scratch* scratch
) noexcept nogil:
    """A block's rows and their ghosts through a tree."""
    cdef const Node* node
    cdef Frame at, right
    cdef int64_t size = 0
    at.node, at.first, at.last, at.n_ghosts = root, 0, m, 0
    scratch.n_ghosts = scratch.n_arrived = 0
    while True:
        node = job.trees.node + at.node
        while at.last - at.first + at.n_ghosts > FEW and not _is_end(job, node):
            right = at
            _part(job, codes, &at, &right, scratch)
            if at.last - at.first + at.n_ghosts == 0:
                at = right
            elif right.last - right.first + right.n_ghosts > 0:
                scratch.stack[size] = right
                size += 1
            node = job.trees.node + at.node
        _finish(job, codes, &at, scratch)
        if size == 0:
            return
        size -= 1
        at = scratch.stack[size]


cdef void _part(
    const Job* job, const Codes* codes, Frame* at, Frame* right, Scratch* scratch
) noexcept nogil:
    """Part what is at a node; the ghosts of the left child come last, since it is next."""
    cdef const Node* node = job.trees.node + at.node
    cdef int64_t i, start = scratch.n_ghosts - at.n_ghosts
    _part_ghosts(job, codes, at, scratch)
    right[0] = at[0]
    right.node, right.n_ghosts = node.right, scratch.n_ghosts - start
    at.node, at.n_ghosts = node.left, scratch.n_left
    for i in range(scratch.n_left):
        scratch.ghosts[scratch.n_ghosts + i] = scratch.left_ghosts[i]
    scratch.n_ghosts += scratch.n_left
    at.last = right.first = at.first + part_rows(
        &job.trees, codes, node, scratch.row + at.first, at.last - at.first, scratch.spare
    )


cdef void _part_ghosts(
    const Job* job, const Codes* codes, const Frame* at, Scratch* scratch
) noexcept nogil:
    """Part the ghosts at a node and those that its rows leave; the left ones are put aside."""
    cdef const Node* node = job.trees.node + at.node
    cdef int64_t i, stop = scratch.n_ghosts
    cdef Ghost ghost
    scratch.n_ghosts, scratch.n_left = stop - at.n_ghosts, 0
    for i in range(scratch.n_ghosts, stop):
        ghost = scratch.ghosts[i]
        _send(&ghost, _ghost_goes_left(job, codes, node, &ghost), scratch)
    _fork(job, codes, at, scratch)


cdef inline void _send(const Ghost* ghost, bint is_left, Scratch* scratch) noexcept nogil:
    scratch.ghosts[scratch.n_ghosts] = scratch.left_ghosts[scratch.n_left] = ghost[0]
    scratch.n_left += is_left
    scratch.n_ghosts += not is_left


cdef inline bint _ghost_goes_left(
    const Job* job, const Codes* codes, const Node* node, const Ghost* ghost
) noexcept nogil:
    if job.moves[ghost.move].slot == node.slot:
        return code_goes_left(&job.trees, node, ghost.at, codes.width[node.slot])
    return row_goes_left(&job.trees, codes, node, ghost.row)


cdef bint _is_on_path(const Job* job, int64_t number, uint32_t code, uint8_t width) noexcept nogil:
    """Whether a code passes all tests above a node of the column that it tests."""
    cdef int32_t above = job.above[number]
    while above >= 0:
        if code_goes_left(&job.trees, job.trees.node + above // 2, code, width) != above % 2:
            return False
        above = job.above[above // 2]
    return True


cdef inline uint32_t _kind_of(const Move* move, int64_t row) noexcept nogil:
    if move.width == 1:
        return move.kind[row]
    if move.width == 2:
        return (<const uint16_t*> move.kind)[row]
    return (<const uint32_t*> move.kind)[row]


cdef inline int32_t _kind_at(const Move* move, const Node* node) noexcept nogil:
    """The step that holds a node's threshold: codes up to low + span go left, missing apart."""
    return move.kind_at[node.low + node.span]


cdef void _fork(
    const Job* job, const Codes* codes, const Frame* at, Scratch* scratch
) noexcept nogil:
    """Ghosts of the rows at a node."""
    cdef const Node* node = job.trees.node + at.node
    cdef int32_t m = job.move_of_slot[node.slot], row
    cdef int64_t i
    while m >= 0:
        if job.moves[m].is_line:
            _fork_line(job, codes, at, m, scratch)
        else:
            for i in range(at.first, at.last):
                row = scratch.row[i]
                _fork_row(job, codes, at.node, m, row,
                          row_goes_left(&job.trees, codes, node, row), False, scratch)
        m = job.moves[m].next


cdef void _fork_line(
    const Job* job, const Codes* codes, const Frame* at, int32_t m, Scratch* scratch
) noexcept nogil:
    cdef const Node* node = job.trees.node + at.node
    cdef const Move* move = &job.moves[m]
    cdef int32_t kind = _kind_at(move, node), end
    cdef const uint8_t* kinds = move.kind + scratch.first_row * move.width
    cdef const int32_t* row = scratch.row + at.first
    cdef int64_t n = 0, m_rows = at.last - at.first, i
    cdef bint is_on_path[2]
    cdef bint is_left
    cdef Ghost ghost
    if kind == 0:
        return
    if move.width == 1:
        n = pick_8(kinds, <uint8_t> kind, row, m_rows, scratch.spare)
    elif move.width == 2:
        n = pick_16(<const uint16_t*> kinds, <uint16_t> kind, row, m_rows, scratch.spare)
    else:
        n = pick_32(<const uint32_t*> kinds, kind, row, m_rows, scratch.spare)
    if n == 0:
        return
    for end in range(2):
        is_on_path[end] = _is_on_path(
            job, at.node, move.ends[2 * kind + end], codes.width[node.slot]
        )
    ghost.move = m
    for i in range(n):
        ghost.row = scratch.spare[i]
        is_left = row_goes_left(&job.trees, codes, node, ghost.row)
        if is_on_path[is_left]:  # the high end parts from a row that goes left
            ghost.end, ghost.at = is_left, move.ends[2 * kind + is_left]
            _send(&ghost, not is_left, scratch)


cdef void _fork_row(
    const Job* job, const Codes* codes, int64_t number, int32_t m, int32_t row, bint is_left,
    bint at_once, Scratch* scratch,
) noexcept nogil:
    """The ghosts of one row at a node, which are taken to their leaves at once or join the others."""
    cdef const Node* node = job.trees.node + number
    cdef const Move* move = &job.moves[m]
    cdef uint8_t width = codes.width[node.slot]
    cdef uint32_t kind = _kind_of(move, scratch.first_row + row)
    cdef Ghost ghost
    if kind == 0 or (move.is_line and kind != <uint32_t> _kind_at(move, node)):
        return
    ghost.row, ghost.move = row, m
    for ghost.end in range(2):
        ghost.at = move.ends[2 * kind + ghost.end]
        if (
            code_goes_left(&job.trees, node, ghost.at, width) == is_left
            or not _is_on_path(job, number, ghost.at, width)
        ):
            continue
        if at_once:
            _follow_ghost(job, codes, node.right if is_left else node.left, ghost, scratch)
        else:
            _send(&ghost, not is_left, scratch)


cdef inline bint _is_end(const Job* job, const Node* node) noexcept nogil:
    """Whether a node is a leaf, or has none but leaves below."""
    return node.left < 0 or (
        job.trees.node[node.left].left < 0 and job.trees.node[node.right].left < 0
    )


cdef void _finish(
    const Job* job, const Codes* codes, const Frame* at, Scratch* scratch
) noexcept nogil:
    """Take what is at a node to its leaves."""
    cdef int64_t i
    if at.last - at.first + at.n_ghosts > FEW and job.trees.node[at.node].left >= 0:
        _finish_together(job, codes, at, scratch)
        return
    for i in range(scratch.n_ghosts - at.n_ghosts, scratch.n_ghosts):
        _follow_ghost(job, codes, at.node, scratch.ghosts[i], scratch)
    scratch.n_ghosts -= at.n_ghosts
    for i in range(at.first, at.last):
        _follow_row(job, codes, at.node, scratch.row[i], scratch)


cdef void _finish_together(
    const Job* job, const Codes* codes, const Frame* at, Scratch* scratch
) noexcept nogil:
    """The last step of what is at a node with two leaves."""
    cdef const Node* node = job.trees.node + at.node
    cdef int32_t leaf[2]
    cdef int32_t row
    cdef int64_t i, start = scratch.n_ghosts - at.n_ghosts
    leaf[0], leaf[1] = job.trees.node[node.right].slot, job.trees.node[node.left].slot
    _part_ghosts(job, codes, at, scratch)
    for i in range(start, scratch.n_ghosts):
        _arrive(scratch.ghosts[i], leaf[0], scratch)
    for i in range(scratch.n_left):
        _arrive(scratch.left_ghosts[i], leaf[1], scratch)
    scratch.n_ghosts = start
    for i in range(at.first, at.last):
        row = scratch.row[i]
        scratch.leaf[row] = leaf[row_goes_left(&job.trees, codes, node, row)]


cdef inline void _arrive(Ghost ghost, int32_t leaf, Scratch* scratch) noexcept nogil:
    ghost.at = leaf
    scratch.arrived[scratch.n_arrived] = ghost
    scratch.n_arrived += 1


cdef inline void _follow_row(
    const Job* job, const Codes* codes, int64_t number, int32_t row, Scratch* scratch
) noexcept nogil:
    cdef const Node* node = job.trees.node + number
    cdef bint is_left
    cdef int32_t m
    while node.left >= 0:
        is_left = row_goes_left(&job.trees, codes, node, row)
        m = job.move_of_slot[node.slot]
        while m >= 0:
            _fork_row(job, codes, number, m, row, is_left, True, scratch)
            m = job.moves[m].next
        number = node.left if is_left else node.right
        node = job.trees.node + number
    scratch.leaf[row] = node.slot


cdef inline void _follow_ghost(
    const Job* job, const Codes* codes, int64_t number, Ghost ghost, Scratch* scratch
) noexcept nogil:
    cdef const Node* node = job.trees.node + number
    while node.left >= 0:
        node = job.trees.node + (
            node.left if _ghost_goes_left(job, codes, node, &ghost) else node.right
        )
    _arrive(ghost, node.slot, scratch)


cdef void _add(
    const Job* job, int64_t output, const Scratch* scratch, double* out
) noexcept nogil:
    """out[((move * n_ends + end) * n_outputs + output) * n_rows + row]: leaves of ghosts and rows."""
    cdef int64_t i, v, n_values = job.trees.n_values, n_rows = job.codes.n_rows, place
    cdef const Ghost* ghost
    cdef const double* own
    cdef const double* moved
    cdef double sign
    for i in range(scratch.n_arrived):
        ghost = &scratch.arrived[i]
        own = job.trees.leaf_value + scratch.leaf[ghost.row] * n_values
        moved = job.trees.leaf_value + <int64_t> ghost.at * n_values
        place = ghost.move * job.n_ends + (ghost.end if job.n_ends == 2 else 0)
        place = (place * job.trees.n_outputs + output) * n_rows + ghost.row
        sign = -1.0 if job.n_ends == 1 and ghost.end == 0 else 1.0
        for v in range(n_values):
            out[place + v * n_rows] += sign * (moved[v] - own[v])
