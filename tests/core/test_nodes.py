"""What is asked of all nodes at once, node by node in plain Python."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fastpd_sklearn.core import nodes
from tests.core.grow import grow


def small():
    """Two trees: a root with a leaf and a test, and a leaf alone."""
    return {
        "tree_start": np.array([0, 5, 6]),
        "left": np.array([1, -1, 3, -1, -1, -1], np.int32),
        "right": np.array([2, -1, 4, -1, -1, -1], np.int32),
        "feature": np.array([0, -1, 1, -1, -1, -1], np.int32),
        "threshold": np.array([0.5, np.nan, 1.5, np.nan, np.nan, np.nan]),
        "is_categorical": np.zeros(6, bool),
        "value": np.zeros((6, 2)),
        "n_inputs": 2,
    }


def with_change(name, place, value):
    arrays = small()
    arrays[name][place] = value
    return nodes.node_faults(**arrays)


def test_sound_nodes_have_no_fault():
    assert nodes.node_faults(**small()) == 0
    arrays = small() | {"is_categorical": np.array([True] + [False] * 5)}
    arrays["threshold"][0] = np.nan
    assert nodes.node_faults(**arrays) == 0


@pytest.mark.parametrize(
    ("fault", "name", "place", "value"),
    [
        ("NO_TREE", "left", 2, 2),  # its own child
        ("NO_TREE", "left", 2, 1),  # a node before it
        ("NO_TREE", "right", 2, 3),  # the same child twice
        ("NO_TREE", "right", 0, -7),
        ("NO_TREE", "right", 0, 99),
        ("NO_TREE", "left", 0, 5),  # the root of the next tree
        ("OTHER_TREE", "right", 2, 5),
        ("NO_NODE", "tree_start", 1, 6),
        ("NO_INPUT", "feature", 2, 2),
        ("NO_INPUT", "feature", 0, -1),
        ("NO_THRESHOLD", "threshold", 2, np.nan),
        ("NOT_FINITE", "value", (1, 1), np.inf),
        ("NOT_FINITE", "value", (5, 0), np.nan),
    ],
)
def test_every_fault_is_found(fault, name, place, value):
    assert with_change(name, place, value) & getattr(nodes, fault)


def test_depths_and_columns():
    forest = grow(np.random.default_rng(3), 7, 60, n_trees=4)
    parent = np.full(forest.n_nodes, -1)
    for node in np.flatnonzero(forest.left >= 0):
        parent[[forest.left[node], forest.right[node]]] = node
    depth = np.zeros(forest.n_nodes, int)
    for node in range(forest.n_nodes):
        depth[node] = 0 if parent[node] < 0 else depth[parent[node]] + 1
    assert_array_equal(nodes.node_depths(forest.tree_start, forest.left, forest.right), depth)
    is_leaf = forest.left < 0
    sums, times = nodes.leaf_depth_sums(forest.tree_start, forest.left, forest.right)
    bounds = zip(forest.tree_start[:-1], forest.tree_start[1:], strict=True)
    assert_array_equal(sums, [(depth * is_leaf)[a:b].sum() for a, b in bounds])
    assert_array_equal(times, np.bincount(depth[is_leaf], minlength=depth.max() + 1))
    columns, slot = nodes.tested_columns(forest.feature, forest.n_inputs)
    assert_array_equal(columns, np.unique(forest.feature[~is_leaf]))
    assert_array_equal(columns[slot[~is_leaf]], forest.feature[~is_leaf])
    assert np.all(slot[is_leaf] == -1)
