"""Predictions with one player averaged out: the mean over points of that player, at all depths.

A row that has every player but one fixes all tests of a path but those of the one. The mean of
the response over a background needs of each leaf only the weight of the background that meets these
tests: a number a node, found by taking the background's points down the trees, past all tests
of other players. A row then goes down a tree as it does to predict, and both ways at a test of the
player; each leaf that it reaches adds its value times its share. There are few: a path of a deep
tree tests one player a few times only.

    v(x) = sum over leaves of c_l 1[x within all sides of l but the player's] share_l

J. Liu, T. Steensgaard, M. N. Wright, N. Pfister, M. Hiabu, "Fast Estimation of Partial Dependence
Functions using Trees" (2024), equation 7, of which this is the case of all players but one.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport free, malloc

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport (
    Node, Points, PointsView, Side, Trees, TreesView, part_rows, row_goes_left, split_side,
    whole_side,
)

import numpy as np

cdef enum:
    BLOCK_ROWS = 4096  # taken through the trees together, so that they share the nodes they visit


cdef struct Frame:
    # A node to be entered: with points of the player, or with the rows row[first:last].
    int64_t node
    int64_t first
    int64_t last
    int64_t top
    Side side


cdef double _weigh(
    const PointsView* points, Side side, const int32_t* arena, const double* weight,
    const double* before,
) noexcept nogil:
    """Weight of the points of a side; `before` has sums over the points before each one."""
    cdef double total = 0.0
    cdef int64_t i
    if not points.is_line:
        for i in range(side.first, side.last):
            total += weight[arena[i]]
        return total
    if side.first < side.last:
        total = before[side.last] - before[side.first]
    if side.missing:
        total += before[points.size] - before[points.n_numbers]
    return total


cdef int _weigh_tree(
    const TreesView* trees, const PointsView* points, const Codes* codes, int64_t tree,
    const double* weight, const double* before, double* out,
) noexcept nogil:
    """Take all points down a tree and note what each node is reached by."""
    cdef int64_t room = 0 if points.is_line else points.size * (2 * trees.depth + 1)
    cdef Frame* stack = <Frame*> malloc((trees.depth + 2) * sizeof(Frame))
    cdef int32_t* arena = <int32_t*> malloc((room + 1) * sizeof(int32_t))
    cdef const Node* node
    cdef Frame at
    cdef Side left
    cdef Side right
    cdef int64_t size = 1
    if stack == NULL or arena == NULL:
        free(stack)
        free(arena)
        return -1
    at.node, at.first, at.last, at.top = trees.root[tree], 0, 0, 0
    at.side = whole_side(points, arena, &at.top)
    out[at.node] = _weigh(points, at.side, arena, weight, before)
    stack[0] = at
    while size:
        size -= 1
        at = stack[size]
        node = trees.node + at.node
        while node.left >= 0:
            left = right = at.side
            out[node.left] = out[node.right] = out[at.node]
            if node.player == points.player:
                split_side(trees, points, codes, node, at.side, &left, &right, arena, &at.top)
                out[node.left] = _weigh(points, left, arena, weight, before)
                out[node.right] = _weigh(points, right, arena, weight, before)
            stack[size] = at
            stack[size].node, stack[size].side = node.right, right
            size += 1
            at.node, at.side = node.left, left
            node = trees.node + at.node
    free(stack)
    free(arena)
    return 0


def node_weights(Trees trees, Points points, weight, BinnedRows rows, int n_threads):
    """Weight of a player's points that meet the player's tests on the way to each node.

    Parameters
    ----------
    trees : Trees
    points : Points
        Of the player.
    weight : ndarray of shape (n_points,), float64
    rows : BinnedRows
        Any rows of the forest, maybe none, for the widths of their columns.
    n_threads : int

    Returns
    -------
    ndarray of shape (n_nodes,), float64
    """
    cdef TreesView view = trees.view()
    cdef PointsView points_view = points.view()
    cdef Codes codes = rows.view()
    padded = np.append(np.asarray(weight, np.float64), 0.0)
    cdef const double[::1] weights = padded
    cdef const double[::1] before = np.append(0.0, np.cumsum(padded))
    out_array = np.zeros(max(len(trees.nodes), 1))
    cdef double[::1] out = out_array
    status_array = np.zeros(trees.n_trees + 1, np.int32)
    cdef int32_t[::1] status = status_array
    cdef int64_t t
    for t in prange(view.n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
        status[t] = _weigh_tree(&view, &points_view, &codes, t, &weights[0], &before[0], &out[0])
    if status_array.any():
        raise MemoryError(f"no memory to take {points.size} points down the trees")
    return out_array[:len(trees.nodes)]


cdef void _add_leaf(
    const TreesView* trees, int64_t tree, int64_t leaf, double share, const int32_t* row, int64_t m,
    double* out,
) noexcept nogil:
    cdef const double* value = trees.leaf_value + leaf * trees.n_values
    cdef double* first = out + trees.tree_output[tree]
    cdef int64_t i, v
    cdef double amount
    for v in range(trees.n_values):
        amount = share * value[v]
        for i in range(m):
            first[row[i] * trees.n_outputs + v] += amount


cdef void _walk(
    const TreesView* trees, const Codes* codes, int64_t tree, int32_t player, const double* share,
    int32_t* row, int64_t m, int32_t* spare, Frame* stack, double* out,
) noexcept nogil:
    """Take a block of rows down a tree, both ways at the player's tests."""
    cdef const Node* node
    cdef Frame at
    cdef int64_t size = 0, middle
    at.node, at.first, at.last = trees.root[tree], 0, m
    while True:
        node = trees.node + at.node
        while node.left >= 0:
            if node.player == player:
                if share[node.left] == 0:
                    at.node = node.right
                elif share[node.right] == 0:
                    at.node = node.left
                else:
                    stack[size] = at
                    stack[size].node = node.right
                    size += 1
                    at.node = node.left
            elif at.last - at.first == 1:
                if row_goes_left(trees, codes, node, row[at.first]):
                    at.node = node.left
                else:
                    at.node = node.right
            else:
                middle = at.first + part_rows(
                    trees, codes, node, row + at.first, at.last - at.first, spare
                )
                if middle == at.first:
                    at.node = node.right
                elif middle == at.last:
                    at.node = node.left
                else:
                    stack[size] = at
                    stack[size].node, stack[size].first = node.right, middle
                    size += 1
                    at.node, at.last = node.left, middle
            node = trees.node + at.node
        _add_leaf(trees, tree, node.slot, share[at.node], row + at.first, at.last - at.first, out)
        if size == 0:
            return
        size -= 1
        at = stack[size]


cdef int _fill_block(
    const TreesView* trees, const Codes* codes, int64_t n_slots, int32_t player,
    const double* share, int64_t first, int64_t m, double* out,
) noexcept nogil:
    cdef int32_t* row = <int32_t*> malloc(m * sizeof(int32_t))
    cdef int32_t* spare = <int32_t*> malloc(m * sizeof(int32_t))
    cdef Frame* stack = <Frame*> malloc((trees.depth + 2) * sizeof(Frame))
    cdef int64_t* offset = <int64_t*> malloc((n_slots + 1) * sizeof(int64_t))
    cdef Codes block = codes[0]
    cdef int64_t t, r, s
    cdef int status = 0
    if row == NULL or spare == NULL or stack == NULL or offset == NULL:
        status = -1
    else:
        for r in range(m):
            row[r] = <int32_t> r
        for s in range(n_slots):
            offset[s] = codes.offset[s] + first * codes.width[s]
        block.offset = offset
        for t in range(trees.n_trees):
            _walk(trees, &block, t, player, share, row, m, spare, stack,
                  out + first * trees.n_outputs)
    free(row)
    free(spare)
    free(stack)
    free(offset)
    return status


def predict_without(
    Trees trees, BinnedRows rows, int32_t player, share, intercept, int n_threads
):
    """Raw predictions with a player averaged out.

    Parameters
    ----------
    trees : Trees
    rows : BinnedRows
    player : int
    share : ndarray of shape (n_nodes,), float64
        From `node_weights`, relative to the weight of all points.
    intercept : ndarray of shape (n_outputs,), float64
    n_threads : int

    Returns
    -------
    ndarray of shape (n_rows, n_outputs), float64
        The same bits for any number of threads, and for a row whatever other rows there are.
    """
    cdef TreesView view = trees.view()
    cdef Codes codes = rows.view()
    cdef int64_t n_rows = rows.n_rows, n_slots = len(rows.width), block
    cdef int64_t n_blocks = (n_rows + BLOCK_ROWS - 1) // BLOCK_ROWS
    out_array = np.tile(np.asarray(intercept, np.float64), (n_rows, 1))
    if not trees.n_trees or not n_rows:
        return out_array
    cdef double[:, ::1] out = out_array
    cdef const double[::1] shares = share
    status_array = np.zeros(n_blocks, np.int32)
    cdef int32_t[::1] status = status_array
    for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
        status[block] = _fill_block(
            &view, &codes, n_slots, player, &shares[0], block * BLOCK_ROWS,
            min(<int64_t> BLOCK_ROWS, n_rows - block * BLOCK_ROWS), &out[0, 0],
        )
    if status_array.any():
        raise MemoryError(f"no memory for blocks of {BLOCK_ROWS} rows")
    return out_array
