"""Components of pairs by the walk with bounded violation, against predictions of changed rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from tests import oracles
from tests.core.test_geometry import OWNERS, inputs_for
from tests.core.test_ice import FORESTS, bin_rows, setting


def component(forest, owner, X, weights, players, ends):
    """Of players held each at its own row."""
    total = 0.0
    for part in oracles.subsets(range(len(players))):
        changed = X.copy()
        for k in part:
            columns = np.asarray(owner) == players[k]
            changed[:, columns] = ends[k][columns]
        sign = (-1) ** (len(players) - len(part))
        total = total + sign * (weights @ oracles.predict_many(forest, changed))
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_components_are_those_of_the_definition(name, groups, weighted):
    forest, owner, core = setting(name, groups)
    both = inputs_for(forest, 60)
    X, ends = both[:30], both[50:53]
    sample_weight = np.random.default_rng(0).random(len(X)) if weighted else None
    weights = np.ones(len(X)) if sample_weight is None else sample_weight
    rows, point_rows, walks = bin_rows(core, X), bin_rows(core, ends), core.walks
    made = [walks.points(point_rows, player) for player in range(len(walks.slots))]
    points = [p for p, _ in made]
    pairs = [(0, 1), (1, int(max(owner)))]
    for pair, table in zip(
        pairs, walks.pair_components(rows, points, pairs, sample_weight, 1), strict=True
    ):
        for k in range(2):
            truth = component(forest, owner, X, weights, pair, [ends[k], ends[k + 1]])
            found = table[:, made[pair[0]][1][k], made[pair[1]][1][k + 1]]
            assert_allclose(found, truth, rtol=0, atol=1e-11)


def test_all_codes_and_any_number_of_threads():
    forest, _, core = setting("deep")
    rows = bin_rows(core, inputs_for(forest, 400))
    points = [core.walks.alphabet(player) for player in range(6)]
    pairs = [(0, 1), (2, 5)]
    weights = np.random.default_rng(1).random(rows.n_rows)
    found = [core.walks.pair_components(rows, points, pairs, weights, n) for n in (1, 2)]
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)
