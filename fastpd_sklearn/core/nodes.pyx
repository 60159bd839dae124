"""What is asked of all nodes of a forest, in one pass over them."""

from libc.math cimport isfinite, isnan
from libc.stdint cimport int32_t, int64_t, uint8_t

import numpy as np

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
    cdef int64_t n_nodes = left.shape[0], t, node, child, v, side
    cdef uint8_t[::1] n_parents = np.zeros(n_nodes, np.uint8)
    cdef int faults = 0
    for t in range(tree_start.shape[0] - 1):
        if tree_start[t] >= tree_start[t + 1]:
            faults |= _NO_NODE
            continue
        n_parents[tree_start[t]] += 1  # in place of a parent, of which a root has none
        for node in range(tree_start[t], tree_start[t + 1]):
            for v in range(value.shape[1]):
                if not isfinite(value[node, v]):
                    faults |= _NOT_FINITE
            if n_parents[node] != 1:
                faults |= _NO_TREE  # parents come before their children
            if left[node] < 0:
                continue
            for side in range(2):
                child = left[node] if side == 0 else right[node]
                if child <= node or child >= n_nodes:
                    faults |= _NO_TREE
                    continue
                if child >= tree_start[t + 1]:
                    faults |= _OTHER_TREE
                if n_parents[child] < 2:  # more is no worse
                    n_parents[child] += 1
            if feature[node] < 0 or feature[node] >= n_inputs:
                faults |= _NO_INPUT
            if isnan(threshold[node]) and not categorical[node]:
                faults |= _NO_THRESHOLD
    return faults


def node_depths(const int32_t[::1] left, const int32_t[::1] right):
    """Number of tests on the way to each node.

    Parameters
    ----------
    left, right : ndarray of shape (n_nodes,), int32
        Children, which come after their parents; negative at leaves.

    Returns
    -------
    ndarray of shape (n_nodes,), int32
    """
    cdef int64_t n_nodes = left.shape[0], node, beyond
    depths = np.zeros(n_nodes + 1, np.int32)
    cdef int32_t[::1] depth = depths
    for node in range(n_nodes):
        beyond = n_nodes if left[node] < 0 else 0  # where leaves may write: a branch would cost more
        depth[left[node] if beyond == 0 else beyond] = depth[node] + 1
        depth[right[node] if beyond == 0 else beyond] = depth[node] + 1
    return depths[:n_nodes]


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
    depths = node_depths(left, right)
    cdef const int32_t[::1] depth = depths
    sums, times = np.zeros(tree_start.shape[0] - 1, np.int64), np.zeros(depths.max() + 1, np.int64)
    cdef int64_t[::1] total = sums, count = times
    cdef int64_t t, node, is_leaf
    for t in range(total.shape[0]):
        for node in range(tree_start[t], tree_start[t + 1]):
            is_leaf = left[node] < 0
            total[t] += is_leaf * depth[node]
            count[depth[node]] += is_leaf
    return sums, times


def tested_columns(const int32_t[::1] feature, int64_t n_columns):
    """Which columns are tested, and the place of each node's column among them.

    Parameters
    ----------
    feature : ndarray of shape (n_nodes,), int32
        -1 at leaves.
    n_columns : int

    Returns
    -------
    columns : ndarray of int64, ascending
    slot : ndarray of shape (n_nodes,), int32
        -1 at leaves.
    """
    # Half of the nodes are leaves, in no order that a processor could foretell: so no branches.
    is_tested = np.zeros(n_columns + 1, bool)
    cdef uint8_t[::1] tested = is_tested.view(np.uint8)
    cdef int64_t node
    for node in range(feature.shape[0]):
        tested[feature[node] + 1] = 1
    is_tested[0] = False
    places = np.cumsum(is_tested, dtype=np.int32) - np.int32(1)
    cdef const int32_t[::1] place = places
    slots = np.empty(feature.shape[0], np.int32)
    cdef int32_t[::1] slot = slots
    for node in range(feature.shape[0]):
        slot[node] = place[feature[node] + 1]
    return np.flatnonzero(is_tested[1:]), slots
