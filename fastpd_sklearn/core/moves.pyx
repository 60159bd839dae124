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


cdef struct Cell:
    # A row's code in a column, and those of the ends of its move: low, and low + width.
    uint32_t code
    uint32_t low
    uint32_t width


cdef struct Trees:
    const Node* nodes
    const uint8_t* tables
    const double* value
    const int64_t* start
    const int32_t* output
    int64_t n_trees, n_values, n_outputs


cdef struct Ends:
    const int32_t* of_slot  # the move of a column, -1 for those that stay
    const uint32_t* low
    const uint32_t* high
    int64_t n_moves, n_slots


cdef struct Fork:
    # A place where a move may leave a row's path; then where an end is to be walked from.
    int32_t row
    int32_t node
    int32_t slot
    int32_t end


cdef struct Scratch:
    Cell* cells         # of a block of rows, row after row
    double* sums
    int32_t* leaf       # by row: where it arrives as it is
    int32_t* left_path  # by row, column and end: the last tree in which it has left the path
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
        cdef Trees trees
        cdef Ends ends
        cdef int status = 0
        out_array = np.zeros((low.shape[0], 2, self.n_outputs, n_rows))
        cdef double[:, :, :, ::1] out = out_array
        if out_array.size == 0 or start.shape[0] == 1:
            return out_array
        trees.nodes, trees.tables, trees.value = <const Node*> &nodes[0, 0], &tables[0], &value[0, 0]
        trees.start, trees.output, trees.n_trees = &start[0], &output[0], start.shape[0] - 1
        trees.n_values, trees.n_outputs = value.shape[1], self.n_outputs
        ends.of_slot, ends.low, ends.high = &move_of_slot[0], &low[0, 0], &high[0, 0]
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
    free(scratch.cells)
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
    """The cells of a block; rows beyond the last one have zeros, and no forks."""
    cdef int64_t stride = ends.n_slots + 1, r, m, s
    cdef Cell* cell
    scratch.cells = <Cell*> calloc(BLOCK * stride, sizeof(Cell))
    scratch.sums = <double*> calloc(BLOCK * n_sums, sizeof(double))
    scratch.leaf = <int32_t*> malloc(BLOCK * sizeof(int32_t))
    scratch.left_path = <int32_t*> calloc(2 * BLOCK * stride, sizeof(int32_t))
    scratch.forks = <Fork*> malloc((BLOCK * depth + 1) * sizeof(Fork))
    scratch.starts = <Fork*> malloc((2 * BLOCK * depth + LANES) * sizeof(Fork))
    if (
        scratch.cells == NULL or scratch.sums == NULL or scratch.leaf == NULL
        or scratch.left_path == NULL or scratch.forks == NULL or scratch.starts == NULL
    ):
        return -1
    for s in range(ends.n_slots):
        _spread(codes, s, first, n, scratch.cells + s, stride)
        m = ends.of_slot[s]
        for r in range(n):
            cell = scratch.cells + r * stride + s
            cell.low = cell.code if m < 0 else ends.low[m * codes.n_rows + first + r]
            cell.width = 0 if m < 0 else ends.high[m * codes.n_rows + first + r] - cell.low
    return 0


cdef void _spread(
    const Codes* codes, int64_t slot, int64_t first, int64_t n, Cell* out, int64_t step
) noexcept nogil:
    """The codes of a column in 32 bits, `step` cells apart."""
    cdef const uint8_t* column = codes.data + codes.offset[slot]
    cdef uint32_t code
    cdef int64_t r
    if codes.width[slot] == 1:
        for r in range(n):
            code = column[first + r]
            out[r * step].code = 0xFFFFFFFFu if code == 0xFF else code
    elif codes.width[slot] == 2:
        for r in range(n):
            code = (<const uint16_t*> column)[first + r]
            out[r * step].code = 0xFFFFFFFFu if code == 0xFFFF else code
    else:
        for r in range(n):
            out[r * step].code = (<const uint32_t*> column)[first + r]


cdef inline bint _goes_left(const Node* node, const uint8_t* tables, uint32_t code) noexcept nogil:
    return passes(tables, node.table, node.low, node.span, code, 0xFFFFFFFFu)


cdef inline bint _may_fork(const Node* node, const Cell* cell) noexcept nogil:
    """Whether an end may go another way than the row's own code, which lies between the two."""
    # The last code that goes left, missing apart, is low + span, modulo 2 ** 32.
    return (node.low + node.span - cell.low < cell.width) | (node.table >= 0)


cdef int64_t _walk_rows(
    const Trees* trees, const Ends* ends, Scratch* scratch, int64_t root, int64_t n
) noexcept nogil:
    """Rows through a tree as they are; how many forks are listed, those of a row from the root down."""
    cdef int64_t stride = ends.n_slots + 1, group, r, k, n_forks = 0
    cdef const Node* node[LANES]
    cdef const Node* next_node
    cdef const Cell* row[LANES]
    cdef const Cell* cell
    cdef bint is_moving
    for group in range((n + LANES - 1) // LANES):
        r = group * LANES
        for k in range(LANES):
            node[k] = trees.nodes + root
            row[k] = scratch.cells + (r + k) * stride
        is_moving = True
        while is_moving:
            is_moving = False
            for k in range(LANES):
                cell = row[k] + node[k].slot
                scratch.forks[n_forks].row = <int32_t> (r + k)
                scratch.forks[n_forks].node = <int32_t> (node[k] - trees.nodes)
                n_forks += _may_fork(node[k], cell)
                next_node = trees.nodes + node[k].child[
                    _goes_left(node[k], trees.tables, cell.code)
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
    cdef int64_t stride = ends.n_slots + 1, i, cell_number, n = 0
    cdef int32_t e
    cdef bint side, leaves
    cdef const Node* node
    cdef const Cell* cell
    for i in range(n_forks):
        node = trees.nodes + scratch.forks[i].node
        cell_number = scratch.forks[i].row * stride + node.slot
        cell = scratch.cells + cell_number
        side = _goes_left(node, trees.tables, cell.code)
        for e in range(2):
            leaves = (
                _goes_left(node, trees.tables, cell.low + cell.width * e) != side
                and scratch.left_path[2 * cell_number + e] != tree
            )
            scratch.starts[n].row = scratch.forks[i].row
            scratch.starts[n].node = node.child[not side]
            scratch.starts[n].slot = node.slot
            scratch.starts[n].end = e
            if leaves:
                scratch.left_path[2 * cell_number + e] = tree
            n += leaves
    return n


cdef void _walk_ends(
    const Trees* trees, const Ends* ends, Scratch* scratch, int64_t n_sums, int64_t output,
    int64_t n
) noexcept nogil:
    """Ends from where they start on their own; adds what their leaves differ by."""
    cdef int64_t stride = ends.n_slots + 1, group, i, k, v
    cdef const Node* node[LANES]
    cdef const Node* next_node
    cdef const Cell* row[LANES]
    cdef uint32_t code[LANES]
    cdef int32_t slot[LANES]
    cdef const Fork* start
    cdef const Cell* cell
    cdef bint is_moving
    cdef double* sums
    for k in range(LANES):  # lanes beyond the last one walk for nothing
        scratch.starts[n + k] = scratch.starts[0]
    for group in range((n + LANES - 1) // LANES):
        i = group * LANES
        for k in range(LANES):
            start = &scratch.starts[i + k]
            node[k] = trees.nodes + start.node
            row[k] = scratch.cells + start.row * stride
            slot[k] = start.slot
            cell = row[k] + start.slot
            code[k] = cell.low + cell.width * start.end
        is_moving = True
        while is_moving:
            is_moving = False
            for k in range(LANES):
                cell = row[k] + node[k].slot
                next_node = trees.nodes + node[k].child[_goes_left(
                    node[k], trees.tables, code[k] if node[k].slot == slot[k] else cell.code
                )]
                is_moving = is_moving | (next_node != node[k])
                node[k] = next_node
        for k in range(min(<int64_t> LANES, n - i)):
            start = &scratch.starts[i + k]
            sums = scratch.sums + start.row * n_sums + output
            sums += (2 * ends.of_slot[start.slot] + start.end) * trees.n_outputs
            for v in range(trees.n_values):
                sums[v] += (
                    trees.value[(node[k] - trees.nodes) * trees.n_values + v]
                    - trees.value[scratch.leaf[start.row] * trees.n_values + v]
                )
