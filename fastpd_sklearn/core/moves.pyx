"""What a row's prediction would be if one of its columns had another value, for many columns at once.

A *move* is a column and, for every row, two codes that the column is to take instead of its own: the
two *ends* of the move. In most trees neither makes a difference, since a row's path rarely has a
threshold between its value and a near one. A tree is walked once by the rows themselves, and again
only for the ends that leave this path, from the node at which they do. Rows walk side by side, so
that none waits for the memory of another, and what is to be walked again is listed first: few of
these choices could be foreseen by a processor.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from fastpd_sklearn.core.routing cimport BinnedRows, Codes, passes

import numpy as np

cdef enum:
    BLOCK = 32  # rows whose codes and sums stay in a fast cache while all trees pass
    LANES = 4   # rows that walk side by side; it divides BLOCK


cdef struct Node:
    # What `Tests` says of a node, in one place. Codes are 32 bits wide, missing is the largest
    # number, so that the cyclic intervals need no mask. A leaf is its own child, and tests a
    # column that no row has and no move moves.
    int32_t child[2]  # right, left
    int32_t slot
    int32_t table
    uint32_t low, span


cdef struct Trees:
    const Node* nodes
    const uint8_t* tables
    const double* value
    const int64_t* start
    const int32_t* output
    int64_t n_trees, n_values, n_outputs


cdef struct Ends:
    const int32_t* of_slot  # the move of a column, n_moves for those that stay
    const uint32_t* low
    const uint32_t* high
    int64_t n_moves, n_slots


cdef struct Fork:
    # A place where a move may leave a row's path; then where an end is to be walked from.
    int32_t row
    int32_t node
    int32_t end


cdef struct Scratch:
    # Of a block of rows: code[slot] and the codes of both ends of each move, row after row.
    uint32_t* code
    uint32_t* moved
    double* sums
    int32_t* leaf       # by row: where it arrives as it is
    int32_t* left_path  # by row and end: the last tree in which it has left the row's own path
    Fork* forks
    Fork* starts


cdef class Walker:
    """A forest in the form in which rows walk through it fast.

    Parameters
    ----------
    tests : NodeTests
    forest : Forest
    """

    cdef object nodes, value
    cdef const int64_t[::1] start
    cdef const int32_t[::1] output
    cdef const uint8_t[::1] tables
    cdef int64_t depth, n_slots
    cdef readonly int64_t n_outputs

    def __init__(self, tests, forest):
        leaf = forest.left < 0
        own = np.arange(forest.n_nodes, dtype=np.int32)
        self.n_slots = int(tests.slot.max(initial=-1)) + 1
        columns = [
            np.where(leaf, own, forest.right),
            np.where(leaf, own, forest.left),
            np.where(leaf, self.n_slots, tests.slot),
            tests.table.astype(np.int32),
            tests.low.view(np.int32),
            tests.span.view(np.int32),
        ]
        self.nodes = np.ascontiguousarray(np.stack(columns, axis=1), dtype=np.int32)
        self.value = np.ascontiguousarray(forest.value)
        self.start, self.output = forest.tree_start, forest.tree_output
        self.tables = np.append(tests.tables, np.uint8(0))
        self.n_outputs = forest.n_outputs
        self.depth = _depth(forest.left, forest.right)

    def move(
        self, BinnedRows rows, const int32_t[::1] move_of_slot, const uint32_t[:, ::1] low,
        const uint32_t[:, ::1] high, int n_threads,
    ):
        """What moves add to the raw prediction of every row.

        Parameters
        ----------
        rows : BinnedRows
        move_of_slot : ndarray of shape (n_slots,), int32
            The number of the move of each binned column; -1 for columns that stay.
        low, high : ndarray of shape (n_moves, n_rows), uint32
            The codes that the column takes, ``low <= high`` with the row's own code between
            them; both are the row's own where that is missing, the largest number of 32 bits.
        n_threads : int

        Returns
        -------
        ndarray of shape (n_moves, 2, n_outputs, n_rows), float64
            Raw prediction with the low and the high code less that of the row as it is.
        """
        cdef Codes codes = rows.view()
        cdef int64_t n_rows = rows.n_rows, n_blocks = (n_rows + BLOCK - 1) // BLOCK, block
        cdef int64_t depth = self.depth
        cdef const int32_t[:, ::1] nodes = self.nodes
        cdef const double[:, ::1] value = self.value
        cdef const int64_t[::1] start = self.start
        cdef const int32_t[::1] output = self.output
        cdef const uint8_t[::1] tables = self.tables
        cdef const int32_t[::1] of_slot
        cdef Trees trees
        cdef Ends ends
        cdef int status = 0
        out_array = np.zeros((low.shape[0], 2, self.n_outputs, n_rows))
        cdef double[:, :, :, ::1] out = out_array
        if out_array.size == 0 or start.shape[0] == 1:
            return out_array
        stays = np.append(move_of_slot, np.int32(-1))
        stays[stays < 0] = low.shape[0]
        of_slot = stays
        trees.nodes, trees.tables, trees.value = <const Node*> &nodes[0, 0], &tables[0], &value[0, 0]
        trees.start, trees.output, trees.n_trees = &start[0], &output[0], start.shape[0] - 1
        trees.n_values, trees.n_outputs = value.shape[1], self.n_outputs
        ends.of_slot, ends.low, ends.high = &of_slot[0], &low[0, 0], &high[0, 0]
        ends.n_moves, ends.n_slots = low.shape[0], self.n_slots
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status += _move_block(
                &codes, &trees, &ends, depth, block * BLOCK, min(n_rows, (block + 1) * BLOCK),
                &out[0, 0, 0, 0],
            )
        if status < 0:
            raise MemoryError("no memory for the moves of a block of rows")
        return out_array


def _depth(left, right):
    """The most tests on a path."""
    depth = 0
    nodes = np.setdiff1d(np.flatnonzero(left >= 0), np.concatenate([left, right]))
    while len(nodes):
        depth += 1
        nodes = np.concatenate([left[nodes], right[nodes]])
        nodes = nodes[left[nodes] >= 0]
    return depth


cdef int _move_block(
    const Codes* codes, const Trees* trees, const Ends* ends, int64_t depth, int64_t first,
    int64_t last, double* out,
) noexcept nogil:
    cdef int64_t n_sums = 2 * ends.n_moves * trees.n_outputs, t, r, s, n_forks
    cdef Scratch scratch
    cdef int status = _start(&scratch, codes, ends, depth, n_sums, first, last - first)
    if status == 0:
        for t in range(trees.n_trees):
            n_forks = _walk_rows(trees, ends, &scratch, trees.start[t], last - first)
            n_forks = _list_starts(trees, ends, &scratch, <int32_t> t + 1, n_forks)
            _walk_ends(trees, ends, &scratch, n_sums, trees.output[t], n_forks)
        for s in range(n_sums):
            for r in range(last - first):
                out[s * codes.n_rows + first + r] = scratch.sums[r * n_sums + s]
    free(scratch.code)
    free(scratch.moved)
    free(scratch.sums)
    free(scratch.leaf)
    free(scratch.left_path)
    free(scratch.forks)
    free(scratch.starts)
    return status


cdef int _start(
    Scratch* scratch, const Codes* codes, const Ends* ends, int64_t depth, int64_t n_sums,
    int64_t first, int64_t n,
) noexcept nogil:
    """The codes of a block, row after row; rows beyond the last one have zeros, and no forks."""
    cdef int64_t stride = ends.n_slots + 1, moved_stride = 2 * (ends.n_moves + 1), r, s, m
    scratch.code = <uint32_t*> calloc(BLOCK * stride, sizeof(uint32_t))
    scratch.moved = <uint32_t*> calloc(BLOCK * moved_stride, sizeof(uint32_t))
    scratch.sums = <double*> calloc(BLOCK * n_sums, sizeof(double))
    scratch.leaf = <int32_t*> malloc(BLOCK * sizeof(int32_t))
    scratch.left_path = <int32_t*> calloc(BLOCK * moved_stride, sizeof(int32_t))
    scratch.forks = <Fork*> malloc((BLOCK * (depth + 1) + 1) * sizeof(Fork))
    scratch.starts = <Fork*> malloc((2 * BLOCK * depth + LANES) * sizeof(Fork))
    if (
        scratch.code == NULL or scratch.moved == NULL or scratch.sums == NULL
        or scratch.leaf == NULL or scratch.left_path == NULL or scratch.forks == NULL
        or scratch.starts == NULL
    ):
        return -1
    for s in range(ends.n_slots):
        _spread(codes, s, first, n, scratch.code + s, stride)
    for m in range(ends.n_moves):
        for r in range(n):
            scratch.moved[r * moved_stride + 2 * m] = ends.low[m * codes.n_rows + first + r]
            scratch.moved[r * moved_stride + 2 * m + 1] = ends.high[m * codes.n_rows + first + r]
    return 0


cdef void _spread(
    const Codes* codes, int64_t slot, int64_t first, int64_t n, uint32_t* out, int64_t step
) noexcept nogil:
    """The codes of a column in 32 bits, `step` apart."""
    cdef const uint8_t* column = codes.data + codes.offset[slot]
    cdef int64_t r
    if codes.width[slot] == 1:
        for r in range(n):
            out[r * step] = 0xFFFFFFFFu if column[first + r] == 0xFF else column[first + r]
    elif codes.width[slot] == 2:
        for r in range(n):
            out[r * step] = (<const uint16_t*> column)[first + r]
            if out[r * step] == 0xFFFF:
                out[r * step] = 0xFFFFFFFFu
    else:
        for r in range(n):
            out[r * step] = (<const uint32_t*> column)[first + r]


cdef inline bint _goes_left(const Node* node, const uint8_t* tables, uint32_t code) noexcept nogil:
    return passes(tables, node.table, node.low, node.span, code, 0xFFFFFFFFu)


cdef inline bint _may_fork(const Node* node, uint32_t low, uint32_t high) noexcept nogil:
    """Whether an end may go another way than the row's own code, which lies between the two."""
    # The last code that goes left, missing apart, is low + span, modulo 2 ** 32.
    return (node.table >= 0 or node.low + node.span - low < high - low)


cdef int64_t _walk_rows(
    const Trees* trees, const Ends* ends, Scratch* scratch, int64_t root, int64_t n
) noexcept nogil:
    """Rows through a tree as they are; how many forks are listed, those of a row from the root down."""
    cdef int64_t stride = ends.n_slots + 1, moved_stride = 2 * (ends.n_moves + 1)
    cdef int64_t group, r, k, n_forks = 0
    cdef const Node* node[LANES]
    cdef const Node* next_node
    cdef const uint32_t* code[LANES]
    cdef const uint32_t* moved[LANES]
    cdef int32_t m
    cdef bint is_moving
    for group in range((n + LANES - 1) // LANES):
        r = group * LANES
        for k in range(LANES):
            node[k] = trees.nodes + root
            code[k] = scratch.code + (r + k) * stride
            moved[k] = scratch.moved + (r + k) * moved_stride
        is_moving = True
        while is_moving:
            is_moving = False
            for k in range(LANES):
                m = ends.of_slot[node[k].slot]
                scratch.forks[n_forks].row = <int32_t> (r + k)
                scratch.forks[n_forks].node = <int32_t> (node[k] - trees.nodes)
                scratch.forks[n_forks].end = 2 * m
                n_forks += _may_fork(node[k], moved[k][2 * m], moved[k][2 * m + 1])
                next_node = trees.nodes + node[k].child[
                    _goes_left(node[k], trees.tables, code[k][node[k].slot])
                ]
                is_moving = is_moving | (next_node != node[k])
                node[k] = next_node
        for k in range(LANES):
            scratch.leaf[r + k] = <int32_t> (node[k] - trees.nodes)
    return n_forks


cdef int64_t _list_starts(
    const Trees* trees, const Ends* ends, Scratch* scratch, int32_t tree, int64_t n_forks
) noexcept nogil:
    """The nodes from which ends go on by themselves, each end at its first fork only."""
    cdef int64_t stride = ends.n_slots + 1, moved_stride = 2 * (ends.n_moves + 1)
    cdef int64_t i, n = 0
    cdef int32_t e, end
    cdef bint side, leaves
    cdef const Node* node
    cdef const Fork* fork
    for i in range(n_forks):
        fork = &scratch.forks[i]
        node = trees.nodes + fork.node
        side = _goes_left(node, trees.tables, scratch.code[fork.row * stride + node.slot])
        for e in range(2):
            end = fork.end + e
            leaves = (
                end < 2 * ends.n_moves
                and scratch.left_path[fork.row * moved_stride + end] != tree
                and _goes_left(node, trees.tables, scratch.moved[fork.row * moved_stride + end])
                != side
            )
            scratch.starts[n].row = fork.row
            scratch.starts[n].node = node.child[not side]
            scratch.starts[n].end = end
            if leaves:
                scratch.left_path[fork.row * moved_stride + end] = tree
            n += leaves
    return n


cdef void _walk_ends(
    const Trees* trees, const Ends* ends, Scratch* scratch, int64_t n_sums, int64_t output,
    int64_t n
) noexcept nogil:
    """Ends from where they start on their own; adds what their leaves differ by."""
    cdef int64_t stride = ends.n_slots + 1, moved_stride = 2 * (ends.n_moves + 1)
    cdef int64_t group, i, k, v
    cdef const Node* node[LANES]
    cdef const Node* next_node
    cdef const uint32_t* code[LANES]
    cdef uint32_t moved[LANES]
    cdef int32_t move[LANES]
    cdef bint is_moving
    cdef double* sums
    for k in range(LANES):  # lanes beyond the last one walk in place
        scratch.starts[n + k] = scratch.starts[0]
    for group in range((n + LANES - 1) // LANES):
        i = group * LANES
        for k in range(LANES):
            node[k] = trees.nodes + scratch.starts[i + k].node
            code[k] = scratch.code + scratch.starts[i + k].row * stride
            move[k] = scratch.starts[i + k].end // 2
            moved[k] = scratch.moved[
                scratch.starts[i + k].row * moved_stride + scratch.starts[i + k].end
            ]
        is_moving = True
        while is_moving:
            is_moving = False
            for k in range(LANES):
                next_node = trees.nodes + node[k].child[_goes_left(
                    node[k], trees.tables,
                    moved[k] if ends.of_slot[node[k].slot] == move[k] else code[k][node[k].slot],
                )]
                is_moving = is_moving | (next_node != node[k])
                node[k] = next_node
        for k in range(min(<int64_t> LANES, n - i)):
            sums = scratch.sums + scratch.starts[i + k].row * n_sums
            sums += scratch.starts[i + k].end * trees.n_outputs + output
            for v in range(trees.n_values):
                sums[v] += (
                    trees.value[(node[k] - trees.nodes) * trees.n_values + v]
                    - trees.value[scratch.leaf[scratch.starts[i + k].row] * trees.n_values + v]
                )
