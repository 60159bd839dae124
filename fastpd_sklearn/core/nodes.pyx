"""What is asked of all nodes of a forest, in one pass over them: by each thread some trees."""

from cython.parallel cimport prange
from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

from fastpd_sklearn.core.threads import threads_for_nodes

NO_TREE, NO_NODE, OTHER_TREE, NO_INPUT, NO_THRESHOLD, NOT_FINITE = (1 << k for k in range(6))
"""Faults of nodes: not a tree with its root first, a tree without a node, a child in another tree,
an input out of range, a threshold that is NaN, a value that is not finite."""


cdef enum:
    _NO_TREE = 1
    _NO_NODE = 2
    _OTHER_TREE = 4
    _NO_INPUT = 8
    _NO_THRESHOLD = 16
    _NOT_FINITE = 32


def node_faults(
    const int64_t[::1] tree_start, const int32_t[::1] left, const int32_t[::1] right,
    const int32_t[::1] feature, const double[::1] threshold, is_categorical,
    const double[:, ::1] value, int64_t n_inputs,
):
    """Which faults the nodes of a forest have.

    Parameters
    ----------
    tree_start : ndarray of shape (n_trees + 1,), int64
        Ascending, from 0 to the number of nodes.
    left, right, feature : ndarray of shape (n_nodes,), int32
    threshold : ndarray of shape (n_nodes,), float64
    is_categorical : ndarray of shape (n_nodes,), bool
    value : ndarray of shape (n_nodes, n_values), float64
    n_inputs : int

    Returns
    -------
    int
        The sum of the faults that occur; 0 where there is none.
    """
    cdef const uint8_t[::1] categorical = is_categorical.view(np.uint8)
    cdef int64_t n_nodes = left.shape[0], n_trees = tree_start.shape[0] - 1, t
    cdef uint8_t[::1] n_parents = np.zeros(n_nodes, np.uint8)
    found = np.zeros(n_trees, np.int32)
    cdef int32_t[::1] faults = found
    cdef int n_threads = threads_for_nodes(n_nodes)
    for t in prange(n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
        faults[t] = _tree_faults(
            tree_start[t], tree_start[t + 1], left, right, feature, threshold, categorical, value,
            n_inputs, n_parents,
        )
    return int(np.bitwise_or.reduce(found))


cdef int32_t _tree_faults(
    int64_t first, int64_t last, const int32_t[::1] left, const int32_t[::1] right,
    const int32_t[::1] feature, const double[::1] threshold, const uint8_t[::1] categorical,
    const double[:, ::1] value, int64_t n_inputs, uint8_t[::1] n_parents,
) noexcept nogil:
    cdef int64_t node, child, v, side
    cdef int32_t faults = 0
    if first >= last:
        return _NO_NODE
    n_parents[first] += 1  # in place of a parent, of which a root has none
    for node in range(first, last):
        for v in range(value.shape[1]):
            if not isfinite(value[node, v]):
                faults |= _NOT_FINITE
        if n_parents[node] != 1:
            faults |= _NO_TREE  # parents come before their children
        if left[node] < 0:
            continue
        for side in range(2):
            child = left[node] if side == 0 else right[node]
            if child <= node or child >= left.shape[0]:
                faults |= _NO_TREE
            elif child >= last:
                faults |= _OTHER_TREE
            elif n_parents[child] < 2:  # more is no worse
                n_parents[child] += 1
        if feature[node] < 0 or feature[node] >= n_inputs:
            faults |= _NO_INPUT
        if isnan(threshold[node]) and not categorical[node]:
            faults |= _NO_THRESHOLD
    return faults


def node_depths(
    const int64_t[::1] tree_start, const int32_t[::1] left, const int32_t[::1] right
):
    """Number of tests on the way to each node.

    Parameters
    ----------
    tree_start : ndarray of shape (n_trees + 1,), int64
    left, right : ndarray of shape (n_nodes,), int32
        Children, which come after their parents; negative at leaves.

    Returns
    -------
    ndarray of shape (n_nodes,), int32
    """
    cdef int64_t n_trees = tree_start.shape[0] - 1, t
    cdef int n_threads = threads_for_nodes(left.shape[0])
    depths = np.empty(left.shape[0], np.int32)
    cdef int32_t[::1] depth = depths
    for t in prange(n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
        _tree_depths(tree_start[t], tree_start[t + 1], left, right, depth)
    return depths


cdef void _tree_depths(
    int64_t first, int64_t last, const int32_t[::1] left, const int32_t[::1] right,
    int32_t[::1] depth,
) noexcept nogil:
    cdef int64_t node
    cdef bint inner
    if first < last:
        depth[first] = 0
    for node in range(first, last):
        inner = left[node] >= 0  # leaves write to themselves: a branch would cost more
        depth[left[node] if inner else node] = depth[node] + inner
        depth[right[node] if inner else node] = depth[node] + inner


cdef enum:
    MOST_GROUPS = 16  # of trees whose leaves are counted together


def leaf_depth_sums(
    const int64_t[::1] tree_start, const int32_t[::1] left, const int32_t[::1] right
):
    """How deep the leaves are.

    Parameters
    ----------
    tree_start : ndarray of shape (n_trees + 1,), int64
    left, right : ndarray of shape (n_nodes,), int32

    Returns
    -------
    sums : ndarray of shape (n_trees,), int64
        Number of tests on the way to each leaf of a tree, added up.
    times : ndarray of int64
        Leaves of the forest by their number of tests.
    """
    depths = node_depths(tree_start, left, right)
    cdef const int32_t[::1] depth = depths
    cdef int64_t n_trees = tree_start.shape[0] - 1, n_groups = min(n_trees, <int64_t> MOST_GROUPS)
    cdef int64_t g, t
    cdef int n_threads = threads_for_nodes(left.shape[0])
    sums, times = np.zeros(n_trees, np.int64), np.zeros((n_groups, depths.max() + 1), np.int64)
    cdef int64_t[::1] total = sums
    cdef int64_t[:, ::1] count = times
    for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
        for t in range(g * n_trees // n_groups, (g + 1) * n_trees // n_groups):
            total[t] = _count_leaves(tree_start[t], tree_start[t + 1], left, depth, count[g])
    return sums, times.sum(axis=0)


cdef int64_t _count_leaves(
    int64_t first, int64_t last, const int32_t[::1] left, const int32_t[::1] depth,
    int64_t[::1] count,
) noexcept nogil:
    cdef int64_t node, is_leaf, total = 0
    for node in range(first, last):
        is_leaf = left[node] < 0
        total += is_leaf * depth[node]
        count[depth[node]] += is_leaf
    return total


def tested_columns(features, int64_t n_columns):
    """Which columns are tested, and the place of each node's column among them.

    Parameters
    ----------
    features : ndarray of shape (n_nodes,), int32
        -1 at leaves.
    n_columns : int

    Returns
    -------
    columns : ndarray of int64, ascending
    slot : ndarray of shape (n_nodes,), int32
        -1 at leaves. The very array that is given, where all columns are tested.
    """
    cdef const int32_t[::1] feature = features
    # Half of the nodes are leaves, in no order that a processor could foretell: so no branches.
    is_tested = np.zeros(n_columns + 1, bool)
    cdef uint8_t[::1] tested = is_tested.view(np.uint8)
    cdef int64_t node
    for node in range(feature.shape[0]):
        tested[feature[node] + 1] = 1
    is_tested[0] = False
    if is_tested[1:].all():
        return np.arange(n_columns), features
    places = np.cumsum(is_tested, dtype=np.int32) - np.int32(1)
    cdef const int32_t[::1] place = places
    slots = np.empty(feature.shape[0], np.int32)
    cdef int32_t[::1] slot = slots
    for node in range(feature.shape[0]):
        slot[node] = place[feature[node] + 1]
    return np.flatnonzero(is_tested[1:]), slots
