"""What a row's prediction would be if one of its columns had another value, for many columns at once.

A *move* is a column and, for every row, two codes that the column is to take instead of its own. In
most trees neither makes a difference, since a row's path rarely has a threshold between its value
and a near one: a tree is walked once by the row itself, and again only for the moves that leave
this path, from the node at which they do.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes, passes

import numpy as np

cdef enum:
    BLOCK = 32  # rows whose codes and sums stay in a fast cache while all trees pass


cdef struct Node:
    # What `Tests` says of a node, in one place. Codes are 32 bits wide, missing is
    # the largest number, so that the cyclic intervals need no mask.
    int32_t child[2]  # right, left
    int32_t slot
    int32_t table
    uint32_t low, span


cdef class Walker:
    """A forest in the form in which single rows walk through it fast.

    Parameters
    ----------
    tests : NodeTests
    forest : Forest
    """

    cdef object nodes, value
    cdef const int64_t[::1] start
    cdef const int32_t[::1] output
    cdef const uint8_t[::1] tables
    cdef readonly int64_t n_outputs

    def __init__(self, tests, forest):
        columns = [
            forest.right, forest.left, tests.slot, tests.table.astype(np.int32),
            tests.low.view(np.int32), tests.span.view(np.int32),
        ]
        self.nodes = np.ascontiguousarray(np.stack(columns, axis=1))
        self.value = np.ascontiguousarray(forest.value)
        self.start, self.output = forest.tree_start, forest.tree_output
        self.tables = np.append(tests.tables, np.uint8(0))
        self.n_outputs = forest.n_outputs

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
        cdef int64_t n_rows = rows.n_rows, n_moves = low.shape[0], n_slots = move_of_slot.shape[0]
        cdef int64_t n_blocks = (n_rows + BLOCK - 1) // BLOCK, n_values = self.value.shape[1]
        cdef int64_t n_outputs = self.n_outputs, n_trees = self.start.shape[0] - 1, block
        cdef const int32_t[:, ::1] nodes = self.nodes
        cdef const double[:, ::1] value = self.value
        cdef const int64_t[::1] start = self.start
        cdef const int32_t[::1] output = self.output
        cdef const uint8_t[::1] tables = self.tables
        cdef int status = 0
        out_array = np.zeros((n_moves, 2, n_outputs, n_rows))
        cdef double[:, :, :, ::1] out = out_array
        if out_array.size == 0 or n_trees == 0:
            return out_array
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status += _move_block(
                &codes, <const Node*> &nodes[0, 0], &tables[0], &value[0, 0], n_values, &start[0],
                &output[0], n_trees, n_outputs, &move_of_slot[0], n_slots, &low[0, 0], &high[0, 0],
                n_moves, block * BLOCK, min(n_rows, (block + 1) * BLOCK),
                &out[0, 0, 0, 0],
            )
        if status < 0:
            raise MemoryError("no memory for the moves of a block of rows")
        return out_array


cdef int _move_block(
    const Codes* codes, const Node* nodes, const uint8_t* tables, const double* value,
    int64_t n_values, const int64_t* start, const int32_t* output, int64_t n_trees,
    int64_t n_outputs, const int32_t* move_of_slot, int64_t n_slots, const uint32_t* low,
    const uint32_t* high, int64_t n_moves, int64_t first, int64_t last, double* out,
) noexcept nogil:
    cdef int64_t n = last - first, n_sums = 2 * n_moves * n_outputs, t, r, m, s, walk = 0
    cdef uint32_t* code = <uint32_t*> malloc(n * (n_slots + 2 * n_moves) * sizeof(uint32_t))
    cdef int64_t* left_path = <int64_t*> malloc(4 * n_moves * sizeof(int64_t))
    cdef uint32_t* moved = code + n * n_slots
    cdef double* sums = <double*> calloc(n * n_sums, sizeof(double))
    if code == NULL or left_path == NULL or sums == NULL:
        free(code)
        free(left_path)
        free(sums)
        return -1
    for s in range(n_slots):
        _spread(codes, s, first, n, code + s, n_slots)
    for m in range(n_moves):
        for r in range(n):
            moved[2 * (r * n_moves + m)] = low[m * codes.n_rows + first + r]
            moved[2 * (r * n_moves + m) + 1] = high[m * codes.n_rows + first + r]
    memset(left_path, 0, 2 * n_moves * sizeof(int64_t))
    for t in range(n_trees):
        for r in range(n):
            walk += 1
            _move_row(
                nodes, start[t], tables, value, n_values, n_outputs, move_of_slot,
                code + r * n_slots, moved + 2 * r * n_moves, walk, left_path, left_path + 2 * n_moves,
                sums + r * n_sums + output[t],
            )
    for s in range(n_sums):
        for r in range(n):
            out[s * codes.n_rows + first + r] = sums[r * n_sums + s]
    free(code)
    free(left_path)
    free(sums)
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


cdef inline bint _matters(
    const Node* node, const uint8_t* tables, bint side, uint32_t low, uint32_t high
) noexcept nogil:
    """Whether the low or the high code goes the other way than the row's own, which lies between."""
    if node.table >= 0:
        return _goes_left(node, tables, low) != side or _goes_left(node, tables, high) != side
    # The last code that goes left, missing apart, is low + span, modulo 2 ** 32.
    return node.low + node.span - low < high - low


cdef inline void _move_row(
    const Node* nodes, int64_t root, const uint8_t* tables, const double* value, int64_t n_values,
    int64_t n_outputs, const int32_t* move_of_slot, const uint32_t* code, const uint32_t* moved,
    int64_t walk, int64_t* left_path, int64_t* gone, double* out,
) noexcept nogil:
    """One row through one tree. End ``e = 2 m`` is the low code of move ``m``, ``2 m + 1`` the high
    one; ``left_path[e] == walk`` once the row with it has left the path of the row as it is.
    """
    cdef const Node* node = nodes + root
    cdef int64_t n_gone = 0, m, e, leaf
    cdef bint side
    while node.child[0] >= 0:
        side = _goes_left(node, tables, code[node.slot])
        m = move_of_slot[node.slot]
        if m >= 0 and _matters(node, tables, side, moved[2 * m], moved[2 * m + 1]):
            for e in range(2 * m, 2 * m + 2):
                if left_path[e] != walk and _goes_left(node, tables, moved[e]) != side:
                    left_path[e] = walk
                    gone[n_gone] = e
                    n_gone += 1
                    leaf = _leaf(nodes, node.child[not side], tables, code, node.slot, moved[e])
                    _add(value, n_values, 1.0, out + e * n_outputs, leaf)
        node = nodes + node.child[side]
    leaf = node - nodes
    for m in range(n_gone):
        _add(value, n_values, -1.0, out + gone[m] * n_outputs, leaf)


cdef inline void _add(
    const double* value, int64_t n_values, double sign, double* out, int64_t leaf
) noexcept nogil:
    cdef int64_t v
    for v in range(n_values):
        out[v] += sign * value[leaf * n_values + v]


cdef inline int64_t _leaf(
    const Node* nodes, int64_t first, const uint8_t* tables, const uint32_t* code,
    int32_t moved_slot, uint32_t moved,
) noexcept nogil:
    """The leaf that a row reaches from a node if one of its columns has another code."""
    cdef const Node* node = nodes + first
    cdef int32_t slot
    while node.child[0] >= 0:
        slot = node.slot
        node = nodes + node.child[
            _goes_left(node, tables, moved if slot == moved_slot else code[slot])
        ]
    return node - nodes
