"""A player averaged out by a walk, against predictions of rows with its columns replaced."""

import numpy as np
import pytest
from fastpd_sklearn.core.removal import node_weights, predict_without
from numpy.testing import assert_allclose, assert_array_equal

from tests import oracles
from tests.core.test_geometry import OWNERS, inputs_for
from tests.core.test_ice import FORESTS, bin_rows, setting


def without(core, background, weights, rows, player, n_threads=1):
    """Predictions by the core, averaged over the codes that a background has for a player."""
    walks = core.walks
    points, place = walks.points(bin_rows(core, background), player)
    total = np.bincount(place, weights, points.size)
    empty, _ = core.bins.empty_rows(0)
    share = node_weights(walks.trees, points, total, empty, n_threads) / weights.sum()
    binned = bin_rows(core, rows)
    return predict_without(walks.trees, binned, player, share, walks.intercept, n_threads)


@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_it_is_the_mean_over_the_background(name, groups):
    forest, owner, core = setting(name, groups)
    both = inputs_for(forest, 40)
    background, rows = both[:30], both[30:]
    weights = np.random.default_rng(0).random(30)
    weights[:3] = 0.0
    for player in range(int(max(owner)) + 1):
        columns = np.flatnonzero(np.asarray(owner) != player)
        mixed = oracles.hybrid_rows(background, rows, columns)
        response = oracles.predict_many(forest, mixed).reshape(len(rows), len(background), -1)
        truth = np.average(response, axis=1, weights=weights)
        found = without(core, background, weights, rows, player)
        assert_allclose(found, truth, rtol=0, atol=1e-12)


def test_any_number_of_threads_and_of_rows_beside():
    forest, _, core = setting("deep")
    rows = np.tile(inputs_for(forest, 500), (10, 1))  # more than a block
    weights = np.ones(len(rows))
    one, two = (without(core, rows, weights, rows, 0, n) for n in (1, 2))
    assert_array_equal(one, two)
    assert_array_equal(one[-1:], without(core, rows, weights, rows[-1:], 0))
    assert_array_equal(one[:500], one[500:1000])
