"""What the walks over rows share: packed trees, and points at which columns are held.

A walk goes down a tree with many rows at once, and holds one player, or two, at *points* instead of
at the rows' own codes. A node that tests such a player parts the points, any other node the rows.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t

from fastpd_sklearn.core.routing cimport NodeTests, Tests

import numpy as np

from fastpd_sklearn.core.nodes import node_depths
from fastpd_sklearn.core.threads import threads_for_nodes

NODE = np.dtype([
    ("left", np.int32), ("right", np.int32), ("player", np.int32), ("slot", np.int32),
    ("low", np.uint32), ("span", np.uint32), ("table", np.int64),
])


cdef class Trees:
    """A forest as the walks read it.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,), int32
        Children; negative at leaves.
    feature : ndarray of shape (n_nodes,), int32
        The input that is tested.
    player_of_input : ndarray of shape (n_inputs,), int32
    tree_start : ndarray of shape (n_trees + 1,), int64
    tests : NodeTests
    value : ndarray of shape (n_nodes, n_values), float64
        Of the leaves.
    tree_output : ndarray of shape (n_trees,), int32
    n_outputs : int
    """

    def __init__(
        self, left, right, feature, player_of_input, tree_start, tests, value, tree_output,
        int64_t n_outputs,
    ):
        self.n_trees, self.n_outputs = len(tree_start) - 1, n_outputs
        self.nodes = np.empty(len(left), NODE)
        self.leaf_value = np.empty(((len(left) + self.n_trees) // 2, value.shape[1]))
        _pack(
            left, right, feature, player_of_input, tree_start, tests, value, self.nodes,
            self.leaf_value,
        )
        self.root, self.tables, self.tree_output = tree_start, tests.tables, tree_output
        self._nodes, self._tables = self.nodes.view(np.uint8), self.tables
        self._root, self._tree_output = self.root, tree_output
        self._leaf_value = self.leaf_value
        self._depth = node_depths(tree_start, left, right).max(initial=0)

    @property
    def depth(self):
        """Most tests on the way to a leaf."""
        return self._depth

    cdef TreesView view(self) noexcept:
        cdef TreesView trees
        trees.node = <const Node*> &self._nodes[0] if self._nodes.shape[0] else NULL
        trees.root = &self._root[0]
        trees.n_trees = self.n_trees
        trees.depth = self._depth
        trees.tables = &self._tables[0] if self._tables.shape[0] else NULL
        trees.leaf_value = &self._leaf_value[0, 0] if self._leaf_value.shape[0] else NULL
        trees.n_values = self._leaf_value.shape[1]
        trees.tree_output = &self._tree_output[0] if self._tree_output.shape[0] else NULL
        trees.n_outputs = self.n_outputs
        return trees


cdef void _pack(
    const int32_t[::1] left, const int32_t[::1] right, const int32_t[::1] feature,
    const int32_t[::1] player_of_input, const int64_t[::1] tree_start, NodeTests tests,
    const double[:, ::1] value, nodes, leaf_value,
):
    cdef uint8_t[::1] packed = nodes.view(np.uint8)
    cdef double[:, ::1] leaf_values = leaf_value
    cdef Node* at = <Node*> &packed[0] if packed.shape[0] else NULL
    cdef Tests test = tests.view()
    cdef int64_t t
    cdef int n_threads = threads_for_nodes(left.shape[0])
    for t in prange(tree_start.shape[0] - 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        _pack_tree(
            left, right, feature, player_of_input, tree_start[t], tree_start[t + 1],
            (tree_start[t] + t) // 2, &test, value, at, leaf_values,
        )


cdef void _pack_tree(
    const int32_t[::1] left, const int32_t[::1] right, const int32_t[::1] feature,
    const int32_t[::1] player_of_input, int64_t first, int64_t last, int64_t first_leaf,
    const Tests* test, const double[:, ::1] value, Node* at, double[:, ::1] leaf_values,
) noexcept nogil:
    cdef int64_t node, v, n_leaves = leaf_values.shape[0]
    cdef int32_t leaf = <int32_t> first_leaf
    cdef bint is_leaf
    for node in range(first, last):
        is_leaf = left[node] < 0
        at[node].left, at[node].right = left[node], right[node]
        at[node].low, at[node].span, at[node].table = test.low[node], test.span[node], test.table[node]
        at[node].player = -1 if is_leaf else player_of_input[feature[node]]
        at[node].slot = leaf if is_leaf else test.slot[node]
        for v in range(value.shape[1] if leaf < n_leaves else 0):
            leaf_values[leaf, v] = value[node, v]  # an inner node's until the next leaf comes
        leaf += is_leaf


cdef class Points:
    """Points at which a player is held: combinations of codes of its columns.

    Parameters
    ----------
    player : int
    slots : ndarray of int
        The binned columns of the player.
    codes : ndarray of shape (n_slots, n_points), uint32
        A code of each column a point, missing as the largest number of the column's width.
    n_codes : ndarray of int64
        By slot of the forest: how many codes there are, missing apart.
    is_line : bool
        Whether the player has one column all of whose tests cut a line. The points then have
        to ascend.

    Attributes
    ----------
    size : int
        Number of points.
    """

    def __init__(self, int64_t player, slots, codes, n_codes, bint is_line):
        self.player, self.is_line, self.size = player, is_line, codes.shape[1]
        self.codes = np.ascontiguousarray(codes, np.uint32)
        self.place = np.zeros(max(len(n_codes), 1), np.int32)
        self.place[slots] = np.arange(len(slots))
        self.below, self.n_numbers = np.zeros(1, np.int32), self.size
        if is_line:
            n = int(n_codes[slots[0]])
            if self.size >= n and (n == 0 or self.codes[0, n - 1] == n - 1):
                # Points are codes; a look-up would cost more than all else.
                self.below, self.n_numbers = np.empty(0, np.int32), n
            else:
                self.below = np.searchsorted(self.codes[0], np.arange(n + 1)).astype(np.int32)
                self.n_numbers = int(self.below[n])
        self._codes, self._below, self._place = self.codes, self.below, self.place

    cdef PointsView view(self) noexcept:
        cdef PointsView points
        points.player = <int32_t> self.player
        points.is_line = self.is_line
        points.size, points.n_numbers = self.size, self.n_numbers
        points.below = &self._below[0] if self._below.shape[0] else NULL
        points.codes = &self._codes[0, 0] if self._codes.shape[0] and self.size else NULL
        points.place = &self._place[0]
        return points


def sum_in_order(parts):
    """Sum over the first axis, in its order.

    Parameters
    ----------
    parts : ndarray of shape (n_parts, n_entries), float64

    Returns
    -------
    ndarray of shape (n_entries,), float64
    """
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
