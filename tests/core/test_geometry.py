"""Leaves, players and patterns against their definition."""

from itertools import pairwise

import numpy as np
import pytest
from fastpd_sklearn.core.geometry import Units
from numpy.testing import assert_array_equal

from fastpd_sklearn.core import counting
from tests import oracles
from tests.core.grow import chain_forest, core_of, grow, rows_for

OWNERS = {"columns": None, "groups": [0, 1, 0, 2, 1, 3]}
FORESTS = {
    "broad": lambda: grow(np.random.default_rng(0), 6, 30),
    "deep": lambda: grow(np.random.default_rng(1), 6, 200, n_trees=2, zero=True),
    "strict": lambda: grow(np.random.default_rng(2), 6, 50, strict=True, single=True),
    "leaves": lambda: grow(np.random.default_rng(3), 6, 0),
    "many players": lambda: grow(np.random.default_rng(4), 90, 150, n_trees=2),
    "two words": lambda: chain_forest(70),
}


def leaves_of(forest, owner, n_trees=None):
    """For every leaf its node and its path ((node, goes_left, player), ...), left to right."""

    def walk(node, path):
        if forest.left[node] < 0:
            yield node, path
            return
        player = owner[forest.feature[node]]
        yield from walk(forest.left[node], (*path, (node, True, player)))
        yield from walk(forest.right[node], (*path, (node, False, player)))

    return [[*walk(root, ())] for root in forest.tree_start[:-1][:n_trees]]


def setting(name, groups="columns"):
    forest = FORESTS[name]()
    owner = OWNERS[groups] if forest.n_inputs == 6 else None
    owner = np.arange(forest.n_inputs) if owner is None else np.array(owner)
    return forest, owner, core_of(forest, owner)


def inputs_for(forest, n_rows=60):
    return rows_for(np.random.default_rng(9), n_rows, forest.n_inputs)


def masks_by_definition(forest, owner, X, n_trees=None):
    """Mask of every row at every leaf (of the first trees) as a Python int, [leaf][row]."""
    stop = forest.tree_start[-1 if n_trees is None else n_trees]
    left = {
        node: oracles.goes_left_many(forest, node, X[:, forest.feature[node]])
        for node in np.flatnonzero(forest.left[:stop] >= 0)
    }
    masks = []
    for tree in leaves_of(forest, owner, n_trees):
        for _, path in tree:
            sides = {}
            for node, goes_left, player in path:
                passed = left[node] == goes_left
                sides[player] = sides.get(player, True) & passed
            met = np.array([*sides.values()], bool).reshape(len(sides), len(X))
            masks.append([sum(1 << int(i) for i in np.flatnonzero(row)) for row in met.T])
    return masks


def as_int(words):
    return sum(int(word) << (64 * w) for w, word in enumerate(words))


@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_leaves_and_players(name, groups):
    forest, owner, core = setting(name, groups)
    geometry = core.geometry
    trees = leaves_of(forest, owner)
    assert_array_equal(np.diff(geometry.tree_leaf), [len(tree) for tree in trees])
    leaves = [leaf for tree in trees for leaf in tree]
    assert_array_equal(geometry.leaf_node, [node for node, _ in leaves])
    for number, (_, path) in enumerate(leaves):
        part = slice(geometry.path_start[number], geometry.path_start[number + 1])
        assert_array_equal(geometry.path_node[part], [node for node, _, _ in path])
        assert_array_equal(geometry.path_left[part], [left for _, left, _ in path])
        players = list(dict.fromkeys(player for _, _, player in path))
        first, last = geometry.player_start[number : number + 2]
        assert_array_equal(geometry.player[first:last], players)
        assert_array_equal(geometry.path_bit[part], [players.index(p) for _, _, p in path])
        assert geometry.leaf_sizes[number] == len(players)
    assert geometry.n_words == max(1, -(-max(geometry.leaf_sizes) // 64))


@pytest.mark.parametrize("chunk_nodes", [1, 3, 7])
@pytest.mark.parametrize("name", FORESTS)
def test_every_leaf_is_in_one_unit(name, chunk_nodes):
    _, _, core = setting(name)
    units = Units(core.geometry, chunk_nodes)
    assert_array_equal(np.sort(units.leaf), np.arange(core.geometry.n_leaves))
    assert units.tree_unit[-1] == units.n_units
    for t in range(core.geometry.n_trees):
        first, last = units.leaf_start[units.tree_unit[t : t + 2]]
        expected = np.arange(*core.geometry.tree_leaf[t : t + 2])
        assert_array_equal(np.sort(units.leaf[first:last]), expected)
    for u, parent in enumerate(units.parent):
        below_dense = parent < 0 or units.is_dense[parent]
        assert units.is_dense[u] == (below_dense and units.n_bits[u] <= 16)


@pytest.mark.parametrize("chunk_nodes", [1, 3, 7])
@pytest.mark.parametrize("name", FORESTS)
def test_the_last_unit_of_the_level_above_is_the_parent(name, chunk_nodes):
    """So that patterns need to be kept for one unit of each level alone."""
    _, _, core = setting(name)
    units = Units(core.geometry, chunk_nodes)
    for first, last in pairwise(units.tree_unit):
        latest = {}
        for u in range(first, last):
            level = units.level[u]
            assert units.parent[u] == (latest[level - 1] if level else -1)
            assert (u == first) == (level == 0)
            latest[level] = u


def test_some_units_are_long():
    dense = {name: Units(core_of(FORESTS[name]()).geometry).is_dense for name in FORESTS}
    assert not dense["two words"].all()
    assert not dense["many players"].all()
    assert dense["broad"].all()


@pytest.mark.parametrize("chunk_nodes", [1, 7])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_masks_from_patterns(name, groups, chunk_nodes):
    """Counted one row at a time, the mask of each leaf is what the patterns make of the row."""
    forest, owner, core = setting(name, groups)
    X = inputs_for(forest, 25)
    truth = masks_by_definition(forest, owner, X)
    units = Units(core.geometry, chunk_nodes)
    for r in range(len(X)):
        rows, _ = core.bins.bin_matrix(X[[r]], 1)
        start, mask, weight = counting.count_masks(
            rows, core.bins.tests, core.geometry, units, None, 1
        )
        assert_array_equal(np.diff(start), 1)
        assert_array_equal(weight, 1)
        assert [as_int(words) for words in mask] == [leaf[r] for leaf in truth]
