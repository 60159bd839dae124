"""Counts and predictions against slow ones."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from fastpd_sklearn.core.coverage import EmpiricalCoverage, PathCoverage
from fastpd_sklearn.core.geometry import Units
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import counting
from tests import oracles
from tests.core.grow import core_of, grow, many_codes
from tests.core.test_geometry import (
    FORESTS,
    OWNERS,
    as_int,
    inputs_for,
    masks_by_definition,
    setting,
)

WEIGHTS = {
    "none": lambda n: None,
    "integers": lambda n: np.arange(n) % 4.0,
    "floats": lambda n: np.random.default_rng(0).random(n),
    "signed": lambda n: np.array([1.0, -1.0, 2.0])[np.arange(n) % 3],
}


def count(core, X, weights, n_threads=1, chunk_nodes=7):
    rows, _ = core.bins.bin_matrix(X, n_threads)
    units = Units(core.geometry, chunk_nodes)
    return counting.count_masks(rows, core.bins.tests, core.geometry, units, weights, n_threads)


def as_counters(start, mask, weight):
    """A dict from mask to weight for each leaf, without those of no weight."""
    out = []
    for first, last in pairwise(start):
        masks = [as_int(words) for words in mask[first:last]]
        assert len(set(masks)) == len(masks)
        out.append({m: w for m, w in zip(masks, weight[first:last].tolist(), strict=True) if w})
    return out


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("chunk_nodes", [1, 7])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_masks_are_counted(name, groups, chunk_nodes, weights):
    forest, owner, core = setting(name, groups)
    X = inputs_for(forest, 300)
    sample_weight = WEIGHTS[weights](len(X))
    found = count(core, X, sample_weight, chunk_nodes=chunk_nodes)
    assert found[2].dtype == (np.int64 if sample_weight is None else np.float64)
    each = np.ones(len(X), int) if sample_weight is None else sample_weight
    for leaf, masks in zip(as_counters(*found), masks_by_definition(forest, owner, X), strict=True):
        truth = Counter()
        for mask, weight in zip(masks, each.tolist(), strict=True):
            truth[mask] += weight
        truth = {mask: weight for mask, weight in truth.items() if weight}
        assert leaf.keys() == truth.keys()
        assert_allclose([leaf[m] for m in truth], list(truth.values()), rtol=1e-13)


@pytest.mark.parametrize(
    ("n_trees", "shares", "widths"),
    [(1100, (0.97, 0.02, 0.01), [4, 2, 1]), (20, (0.4, 0.4, 0.2), [2, 2, 1])],
)
def test_codes_of_all_widths(n_trees, shares, widths):
    """Chunks that test codes of two bytes alone, of one byte alone, and of several widths."""
    forest = many_codes(n_trees, shares)
    core, owner = core_of(forest), np.arange(3)
    assert_array_equal(core.bins.width, widths)
    X = np.random.default_rng(0).random((3000, 3))
    X[::7, 0], X[3::7, 1] = np.nan, np.nan
    rows, _ = core.bins.bin_matrix(X, 1)
    found = counting.count_masks(
        rows, core.bins.tests, core.geometry, core.units, None, 1, last_tree=5
    )
    truth = masks_by_definition(forest, owner, X, n_trees=5)
    assert as_counters(*found)[: len(truth)] == [Counter(masks) for masks in truth]


SEVERAL_BLOCKS = {
    "short": (lambda: grow(np.random.default_rng(3), 6, 60, n_trees=2), 6_000),
    "long": (lambda: grow(np.random.default_rng(4), 90, 100, n_trees=1), 20_000),
}


@pytest.mark.parametrize("weights", ["none", "signed"])
@pytest.mark.parametrize("patterns", SEVERAL_BLOCKS)
def test_rows_in_several_blocks(patterns, weights):
    """Units share room where one block has all rows, which they must not where there are more."""
    make, n_rows = SEVERAL_BLOCKS[patterns]
    forest = make()
    core = core_of(forest)
    assert core.units.is_dense.all() == (patterns == "short")
    X = inputs_for(forest, n_rows)
    sample_weight = WEIGHTS[weights](len(X))
    truth = [Counter() for _ in range(core.geometry.n_leaves)]
    for first in range(0, len(X), 1_000):
        part = slice(first, first + 1_000)
        some = count(core, X[part], None if sample_weight is None else sample_weight[part])
        for total, leaf in zip(truth, as_counters(*some), strict=True):
            for mask, weight in leaf.items():
                total[mask] += weight
    truth = [{mask: weight for mask, weight in leaf.items() if weight} for leaf in truth]
    assert as_counters(*count(core, X, sample_weight)) == truth


@pytest.mark.parametrize("weights", WEIGHTS)
def test_same_bits_for_any_threads(weights):
    forest = grow(np.random.default_rng(5), 6, 100, n_trees=7)
    core = core_of(forest)
    X = inputs_for(forest, 5000)
    first, *others = (count(core, X, WEIGHTS[weights](5000), n) for n in (1, 2, 3))
    for other in others:
        for a, b in zip(first, other, strict=True):
            assert_array_equal(a, b)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", FORESTS)
def test_nodes_are_counted(name, weights):
    forest, _, core = setting(name)
    X = inputs_for(forest, 3000)
    sample_weight = WEIGHTS[weights](len(X))
    rows, _ = core.bins.bin_matrix(X, 1)
    found = counting.count_nodes(rows, core.bins.tests, core.geometry, sample_weight, 2)
    each = np.ones(len(X)) if sample_weight is None else sample_weight
    assert_allclose(found, oracles.passages(forest, X) @ each, rtol=1e-12)


@pytest.mark.parametrize(("width", "n_outputs"), [(1, 1), (1, 3), (2, 3), (3, 3)])
def test_predictions(width, n_outputs):
    forest = grow(np.random.default_rng(6), 5, 40, n_trees=6, width=width, n_outputs=n_outputs)
    core = core_of(forest)
    X = inputs_for(forest, 3000)
    rows, _ = core.bins.bin_matrix(X, 1)
    found = core.predict(rows, 1)
    assert_allclose(found, oracles.predict_many(forest, X), rtol=1e-12, atol=1e-12)
    for n_threads in (2, 3):
        assert_array_equal(core.predict(rows, n_threads), found)


@pytest.mark.parametrize("name", FORESTS)
def test_shares_of_leaves(name):
    """The share within all sides is the leaf's own; the mean prediction follows from it."""
    forest, _, core = setting(name)
    X = inputs_for(forest, 400)
    weights = WEIGHTS["floats"](len(X))
    coverage = EmpiricalCoverage(*count(core, X, weights), weights.sum())
    full, one = coverage.near_full(core.geometry.leaf_sizes)
    through = oracles.passages(forest, X) @ weights / weights.sum()
    assert_allclose(full, through[core.geometry.leaf_node], atol=1e-14)
    mean = np.average(oracles.predict_many(forest, X), axis=0, weights=weights)
    assert_allclose(core.mean(full), mean, rtol=1e-10)
    masks = masks_by_definition(forest, np.arange(forest.n_inputs), X)
    first = 0
    for leaf, size in enumerate(core.geometry.leaf_sizes):
        whole = (1 << int(size)) - 1
        for i in range(size):
            fits = np.array([mask | 1 << i == whole for mask in masks[leaf]])
            assert_allclose(one[first + i], fits @ weights / weights.sum(), atol=1e-14)
        first += size


def ratios_of_paths(geometry, share):
    """For each leaf's players the product of the shares of their tests' children on the path."""
    ratio = np.ones(len(geometry.player))
    for leaf, first in enumerate(geometry.player_start[:-1]):
        for k in range(*geometry.path_start[leaf : leaf + 2]):
            side = geometry.left if geometry.path_left[k] else geometry.right
            ratio[first + geometry.path_bit[k]] *= share[side[geometry.path_node[k]]]
    return ratio


def test_shares_without_two_sides():
    forest, owner, core = setting("broad", "groups")
    X = inputs_for(forest, 200)
    empirical = EmpiricalCoverage(*count(core, X, None), 200.0)
    geometry = core.geometry
    rng = np.random.default_rng(0)
    share = rng.random(len(geometry.left))
    path = PathCoverage(geometry, share)
    ratio = ratios_of_paths(geometry, share)
    masks = masks_by_definition(forest, owner, X)
    leaves = np.flatnonzero(geometry.leaf_sizes >= 2)
    pairs = np.array([rng.permutation(geometry.leaf_sizes[leaf])[:2] for leaf in leaves])
    without = empirical.without_pairs(geometry.leaf_sizes, leaves, pairs)
    products = path.without_pairs(geometry.leaf_sizes, leaves, pairs)
    for k, leaf in enumerate(leaves):
        i, j = pairs[k].tolist()
        whole = (1 << int(geometry.leaf_sizes[leaf])) - 1
        fits = [mask | 1 << i | 1 << j == whole for mask in masks[leaf]]
        assert_allclose(without[k], np.mean(fits), atol=1e-14)
        others = np.delete(ratio[slice(*geometry.player_start[leaf : leaf + 2])], [i, j])
        assert_allclose(products[k], np.prod(others), rtol=1e-14)
