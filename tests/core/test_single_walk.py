"""Components of single players by the walk, against predictions of changed rows."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import single_walk
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from tests import oracles
from tests.core.grow import chain_forest, grow, rows_for
from tests.core.test_geometry import OWNERS, inputs_for
from tests.core.test_ice import FORESTS, bin_rows, setting


def components(forest, owner, X, weights, player, ends):
    """Of a player held at each of some rows, times the weight of all rows."""
    columns = np.asarray(owner) == player
    base = weights @ oracles.predict_many(forest, X)
    values = []
    for end in ends:
        changed = X.copy()
        changed[:, columns] = end[columns]
        values.append(weights @ oracles.predict_many(forest, changed) - base)
    return np.array(values).T


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_components_are_those_of_the_definition(name, groups, weighted):
    forest, owner, core = setting(name, groups)
    both = inputs_for(forest, 60)
    X, ends = both[:30], both[50:56]
    sample_weight = np.random.default_rng(0).random(len(X)) if weighted else None
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    walks = core.walks
    rows, point_rows = bin_rows(core, X), bin_rows(core, ends)
    made = [walks.points(point_rows, player) for player in range(len(walks.slots))]
    total, curves = walks.single_components(rows, [p for p, _ in made], sample_weight, 1)
    truth = weights @ (oracles.predict_many(forest, X) - forest.intercept)
    assert_allclose(total, truth, rtol=0, atol=1e-11)
    for player, (_, place) in enumerate(made):
        truth = components(forest, owner, X, weights, player, ends)
        assert_allclose(curves[player][:, place], truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", FORESTS)
def test_whole_alphabets_and_no_points_at_all(name):
    forest, owner, core = setting(name)
    X = inputs_for(forest, 15)
    X = np.vstack([X, np.full((1, X.shape[1]), np.nan)])
    walks, rows = core.walks, bin_rows(core, X)
    held = [k for k, slots in enumerate(walks.slots) if len(slots) and k != 1]
    points = [walks.alphabet(k) if k in held else walks.nowhere(k) for k in range(6)]
    _, curves = walks.single_components(rows, points, None, 1)
    for player in range(6):
        assert curves[player].shape == (forest.n_outputs, points[player].size)
        if player not in held:
            continue
        codes = np.minimum(rows.columns()[walks.slots[player][0]], points[player].size - 1)
        truth = components(forest, owner, X, np.ones(len(X)), player, X)
        assert_allclose(curves[player][:, codes], truth, rtol=0, atol=1e-11)


def walk_model(forest):
    return WalkModel(forest, np.arange(forest.n_inputs), forest.n_inputs, ZERO_THRESHOLD)


def test_rows_that_come_in_several_blocks():
    forest = grow(np.random.default_rng(1), 3, 6, n_trees=2)
    X = rows_for(np.random.default_rng(2), 2**16 + 77, 3)
    weights = np.random.default_rng(3).random(len(X))
    walks = walk_model(forest)
    rows, _ = walks.bins.bin_matrix(X, 1)
    made = [walks.points(walks.bins.bin_matrix(X[:4], 1)[0], k) for k in range(3)]
    _, curves = walks.single_components(rows, [p for p, _ in made], weights, 1)
    for player, (_, place) in enumerate(made):
        truth = components(forest, np.arange(3), X, weights, player, X[:4])
        assert_allclose(curves[player][:, place], truth, rtol=1e-11, atol=1e-8)


def test_more_players_than_leave_room_for_all_rows():
    """A row and a player share 32 bits; here 15 of them are for rows."""
    n_players, n_rows = 70_000, 2**15 + 9
    few = grow(np.random.default_rng(4), 4, 6, n_trees=1)
    columns = np.array([0, 300, 65_536, 69_999])
    feature = np.where(few.left < 0, -1, columns[few.feature]).astype(np.int32)
    walks = walk_model(replace(few, feature=feature, n_inputs=n_players))
    X = rows_for(np.random.default_rng(5), n_rows, 4)
    rows, codes = walks.bins.empty_rows(n_rows)
    for column, own in zip(codes, walk_model(few).bins.bin_matrix(X, 1)[0].columns(), strict=True):
        column[:] = own
    points = [
        walks.alphabet(k) if len(walks.slots[k]) else walks.nowhere(k) for k in range(n_players)
    ]
    _, curves = walks.single_components(rows, points, None, 1)
    for player, column in enumerate(columns):
        own = np.minimum(codes[player][:3], points[column].size - 1)
        truth = components(few, np.arange(4), X, np.ones(n_rows), player, X[:3])
        assert_allclose(curves[column][:, own], truth, rtol=1e-11, atol=1e-8)


def test_a_tree_of_great_depth():
    """Of a product of indicators the components are known."""
    n = 3000
    walks = walk_model(chain_forest(n))
    X = np.random.default_rng(0).choice([0.0, 1.0], p=[0.0005, 0.9995], size=(500, n))
    rows, _ = walks.bins.bin_matrix(X, 1)
    points = [walks.alphabet(k) for k in range(n)]
    total, curves = walks.single_components(rows, points, None, 1)
    n_zeros = (X == 0).sum(axis=1)
    assert_array_equal(total, [np.count_nonzero(n_zeros == 0)])
    found = np.array([curve[0] for curve in curves])
    with_one = [np.count_nonzero(n_zeros - (X[:, k] == 0) == 0) for k in range(n)]
    assert_array_equal(found[:, 0], np.full(n, -total[0]))
    assert_array_equal(found[:, 1], np.array(with_one) - total[0])


def test_any_number_of_threads():
    forest, _, core = setting("deep")
    rows = bin_rows(core, inputs_for(forest, 400))
    points = [core.walks.alphabet(player) for player in range(6)]
    weights = np.random.default_rng(1).random(rows.n_rows)
    one, two = (core.walks.single_components(rows, points, weights, n) for n in (1, 2))
    assert_array_equal(one[0], two[0])
    for a, b in zip(one[1], two[1], strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["deep", "outputs", "vectors"])
@pytest.mark.parametrize("most", [1, 40])
def test_few_trees_at_a_time(name, most, monkeypatch):
    forest, owner, core = setting(name)
    X = inputs_for(forest, 30)
    rows, walks = bin_rows(core, X), core.walks
    points = [walks.alphabet(k) if len(walks.slots[k]) else walks.nowhere(k) for k in range(6)]
    monkeypatch.setattr(single_walk, "MOST_JUMPS", most)
    found = [walks.single_components(rows, points, None, n)[1] for n in (1, 2)]
    for player in range(6):
        assert_array_equal(found[0][player], found[1][player])
        if not points[player].size:
            continue
        codes = np.minimum(rows.columns()[walks.slots[player][0]], points[player].size - 1)
        truth = components(forest, owner, X, np.ones(len(X)), player, X)
        assert_allclose(found[0][player][:, codes], truth, rtol=0, atol=1e-11)
