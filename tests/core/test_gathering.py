"""Trees gathered into the arrays of a forest, against a loop over their nodes in plain Python."""

import numpy as np
import pytest
from fastpd_sklearn.core.gathering import gather_nodes
from numpy.testing import assert_array_equal

FLAGS = ("missing_left", "zero_as_missing", "is_categorical", "listed_left")


def record(aligned):
    """A node as libraries keep it, with fields that nobody asks for."""
    fields = [("impurity", "f4"), ("left", "i8"), ("right", "i8"), ("odd", "u1"), ("feature", "i4")]
    fields += [("threshold", "f8"), ("cover", "f8"), *((name, "?") for name in FLAGS)]
    return np.dtype(fields, align=aligned)


def random_tree(rng, n_inner, n_values, aligned):
    """Nodes in an order in which children come after their parents, and something at leaves."""
    left, right, feature, n = {}, {}, {}, 1
    leaves = [0]
    for _ in range(n_inner):
        node = leaves.pop(rng.integers(len(leaves)))
        left[node], right[node], feature[node] = n, n + 1, rng.integers(5)
        leaves += [n, n + 1]
        n += 2
    nodes = np.zeros(n, record(aligned))
    nodes["left"] = [left.get(i, -7) for i in range(n)]
    nodes["right"] = [right.get(i, 3) for i in range(n)]
    nodes["feature"] = [feature.get(i, -2) for i in range(n)]
    nodes["threshold"], nodes["cover"] = rng.normal(size=n), rng.integers(1, 9, n)
    for name in FLAGS:
        nodes[name] = rng.random(n) < 0.5
    tree = {
        name: nodes[name] for name in ("left", "right", "feature", "threshold", "cover", *FLAGS)
    }
    return {**tree, "value": rng.normal(size=(n_values, n)).T}


def by_node(trees, root, n_values):
    """One node after the other."""
    names = ("left", "right", "feature", "threshold", "cover", *FLAGS)
    out = {name: [] for name in (*names, "value")}
    first = root
    for tree in trees:
        n = len(tree["left"])
        for i in range(n):
            inner = tree["left"][i] >= 0
            flags = {k: bool(tree[k] is not None and tree[k][i] and inner) for k in FLAGS}
            number = inner and not flags["is_categorical"]
            out["left"].append(tree["left"][i] + first if inner else -1)
            out["right"].append(tree["right"][i] + first if inner else -1)
            out["feature"].append(tree["feature"][i] if inner else -1)
            out["threshold"].append(tree["threshold"][i] if number else np.nan)
            out["cover"].append(tree["cover"][i])
            out["value"].append(np.zeros(n_values) if inner else tree["value"][i])
            for name in FLAGS:
                out[name].append(flags[name])
        first += n
    return out


@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("n_values", [1, 3])
def test_every_node_is_where_it_should_be(n_values, aligned):
    rng = np.random.default_rng(n_values)
    trees = [random_tree(rng, n, n_values, aligned) for n in (0, 40, 1, 7)]
    trees[1]["is_categorical"] = trees[3]["missing_left"] = None
    trees[2] |= {name: np.ascontiguousarray(trees[2][name]) for name in trees[2]}
    trees[3]["left"] = trees[3]["left"].astype(np.int32)
    trees[3]["listed_left"] = np.broadcast_to(np.True_, len(trees[3]["left"]))
    found = gather_nodes(trees, 11, n_values)
    for name, truth in by_node(trees, 11, n_values).items():
        assert_array_equal(found[name], truth, err_msg=name)
    for name, dtype in (("left", np.int32), ("threshold", np.float64), ("missing_left", bool)):
        assert found[name].dtype == dtype


def test_enough_nodes_for_several_threads():
    rng = np.random.default_rng(0)
    trees = [random_tree(rng, 3000, 1, True) for _ in range(16)]
    found = gather_nodes(trees, 0, 1)
    one_by_one, first = [], 0
    for tree in trees:
        one_by_one.append(gather_nodes([tree], first, 1))
        first += len(tree["left"])
    for name, array in found.items():
        assert_array_equal(array, np.concatenate([block[name] for block in one_by_one]))


def test_numbers_that_no_node_has_stay_such():
    tree = random_tree(np.random.default_rng(1), 1, 1, True)
    tree["right"], tree["feature"] = np.array([2**40, 0, 0]), np.array([-(2**40), 0, 0])
    found = gather_nodes([tree], 5, 1)
    assert found["right"][0] == 2**31 - 1
    assert found["feature"][0] == -1


def test_no_tree():
    assert {len(array) for array in gather_nodes([], 0, 1).values()} == {0}
