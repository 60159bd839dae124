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
    depths = np.zeros(left.shape[0], np.int32)
    cdef int32_t[::1] depth = depths
    cdef int64_t node
    for node in range(left.shape[0]):
        if left[node] >= 0:
            depth[left[node]] = depth[right[node]] = depth[node] + 1
    return depths
