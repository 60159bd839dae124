"""Values from pairs of rows that walk down the trees together, against the definition."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import pair_walk
from fastpd_sklearn.core.pair_values import RowPairs, n_words_of, worth
from tests import oracles
from tests.core.grow import chain_forest, core_of
from tests.core.test_geometry import OWNERS, inputs_for
from tests.core.test_ice import FORESTS, bin_rows, setting


def terms_of(n_players):
    singles = [(k,) for k in range(n_players)]
    return singles + list(combinations(range(n_players), 2))


def values(core, X, background, index, terms, weights=None, n_threads=1, trees=None):
    """Shape (n_terms, n_outputs, n_rows)."""
    weights = np.ones(len(background)) if weights is None else weights
    made, visits = RowPairs(core.walks).values(
        bin_rows(core, X),
        bin_rows(core, background),
        weights / weights.sum(),
        index,
        terms,
        n_threads,
        trees,
    )
    assert visits >= 0
    return made


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_values_are_those_of_the_definition(name, groups, weighted):
    forest, owner, core = setting(name, groups)
    both = inputs_for(forest, 75)
    X, background = both[:5], both[5:]
    weights = np.random.default_rng(0).random(len(background)) if weighted else None
    players = [np.flatnonzero(owner == k) for k in range(max(owner) + 1)]
    game = oracles.interventional_game(
        lambda rows: oracles.predict_many(forest, rows), background, weights, X, players
    )
    terms = terms_of(len(players))
    for index in ("shap", "banzhaf", "total", "component"):
        found = values(core, X, background, index, terms, weights)
        for k, term in enumerate(terms):
            truth = oracles.INDICES[index](game, term)
            assert_allclose(found[k].T, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("n", [12, 33, 63, 64])
def test_long_paths(n):
    """A path on which every player is tested."""
    forest = chain_forest(n)
    core = core_of(forest)
    assert RowPairs(core.walks).is_possible
    rng = np.random.default_rng(n)
    X = np.where(rng.random((3, n)) < 2 / n, 0.0, 1.0)
    background = np.where(rng.random((8, n)) < 2 / n, 0.0, 1.0)
    games = [[game_of_two(forest, x, z) for z in background] for x in X]
    differ = sorted({term for row in games for game in row for term in game if len(term) in (1, 2)})
    terms = [*differ, *(term for term in [(0,), (n - 1,), (0, n - 1)] if term not in differ)]
    for index in ("shap", "component"):
        found = values(core, X, background, index, terms)
        for k, term in enumerate(terms):
            for r, row in enumerate(games):
                truth = [oracles.INDICES[index](v, term) for v in row if term in v]
                assert_allclose(found[k, :, r].sum(), np.sum(truth) / 8, rtol=0, atol=1e-11)


def game_of_two(forest, x, z):
    """Between two rows only those players matter in which they differ."""
    sets = list(oracles.subsets(np.flatnonzero(x != z).tolist()))
    mixed = np.array([np.where(np.isin(np.arange(len(x)), S), x, z) for S in sets])
    return dict(zip(sets, oracles.predict_many(forest, mixed), strict=True))


def test_a_path_of_too_many_players_is_seen():
    pairs = RowPairs(core_of(chain_forest(65)).walks)
    assert pairs.sizes.max() == 65
    assert not pairs.is_possible


def test_any_threads_blocks_and_neighbours_give_the_same_bits(monkeypatch):
    forest, _, core = setting("deep")
    X, background = inputs_for(forest, 300), inputs_for(forest, 1300)[::-1]
    terms = terms_of(6)
    whole = values(core, X, background, "shap", terms)
    for n_threads in (2, 3):
        assert_array_equal(values(core, X, background, "shap", terms, None, n_threads), whole)
    for part in (slice(0, 1), slice(40, 57), slice(130, 300)):
        assert_array_equal(values(core, X[part], background, "shap", terms), whole[:, :, part])
    monkeypatch.setattr(pair_walk, "TASK_BYTES", 1 << 12)
    monkeypatch.setattr(pair_walk, "MOST_ROWS", 7)
    assert_array_equal(values(core, X, background, "shap", terms), whole)


@pytest.mark.parametrize("n_background", [1, 64, 65, 1025, 2100])
def test_background_of_any_size(n_background):
    """Blocks of background rows add up."""
    forest, _, core = setting("broad")
    X, background = inputs_for(forest, 40)[-9:], inputs_for(forest, n_background)
    singles = [(k,) for k in range(6)]
    whole = values(core, X, background, "shap", singles)
    parts = np.array_split(background, -(-n_background // 50))
    sums = [len(part) * values(core, X, part, "shap", singles) for part in parts]
    assert_allclose(whole, np.sum(sums, axis=0) / n_background, rtol=0, atol=1e-12)


def test_words_of_a_block():
    found = [n_words_of(n) for n in (1, 64, 65, 1024, 1025, 2048, 2100, 20_000)]
    assert found == [1, 1, 2, 16, 9, 16, 11, 16]


def test_chosen_trees_and_terms():
    forest, _, core = setting("outputs")
    X, background = inputs_for(forest, 20), inputs_for(forest, 50)
    terms = terms_of(6)
    whole = values(core, X, background, "shap", terms)
    one_by_one = [
        values(core, X, background, "shap", terms, trees=np.array([tree]))
        for tree in range(core.walks.n_trees)
    ]
    assert_allclose(np.sum(one_by_one, axis=0), whole, rtol=0, atol=1e-13)
    some = [terms[k] for k in (9, 2, 17)]
    assert_array_equal(values(core, X, background, "shap", some), whole[[9, 2, 17]])
    assert values(core, X, background, "shap", []).shape == (0, 3, 20)
    assert values(core, X[:0], background, "shap", some).shape == (3, 3, 0)


@pytest.mark.parametrize("index", ["shap", "banzhaf", "component"])
def test_worth_by_the_weights_of_coalitions(index):
    """A game that one coalition order decides: the a must not have joined, the b must have."""
    most = 9
    for order in (1, 2):
        table = worth(index, order, most)
        for a, b in ((1, 1), (3, 2), (2, 4)):
            game = {
                S: np.array(1.0 * (set(range(a, a + b)) <= set(S) and not set(range(a)) & set(S)))
                for S in oracles.subsets(range(a + b))
            }
            kinds = [(a,), (0,)] if order == 1 else [(a, a + b - 1), (0, a - 1), (0, a)]
            for kind, term in enumerate(kinds):
                if len(set(term)) == order:
                    truth = oracles.INDICES[index](game, term)
                    assert_allclose(table[kind, a, b], truth, rtol=0, atol=1e-14)
    assert not worth("shap", 1, 0).any()
