"""Values from rows, and from sets of rows, that walk down the trees together, by the definition."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import pair_walk, set_walk
from fastpd_sklearn.core.effort import meet_sooner
from fastpd_sklearn.core.pair_values import RowPairs, n_words_of, worth
from tests import oracles
from tests.core.grow import chain_forest, core_of
from tests.core.test_geometry import OWNERS, inputs_for
from tests.core.test_ice import FORESTS, bin_rows, setting


def terms_of(n_players):
    singles = [(k,) for k in range(n_players)]
    return singles + list(combinations(range(n_players), 2))


WAYS = {"rows": None, "sets": np.inf, "sums": 0.0}
"""What a sum over subsets costs sets of rows that meet."""


def each_way(monkeypatch):
    """Options of `values`, one way after the other."""
    for name, cost in WAYS.items():
        if cost is not None:
            monkeypatch.setattr(set_walk, "SUM", cost)
            monkeypatch.setattr(set_walk, "DIFFERENCE", cost)
        yield {"by_sets": name != "rows"}


def values(core, X, background, index, terms, weights=None, n_threads=1, trees=None, **way):
    """Shape (n_terms, n_outputs, n_rows)."""
    weights = np.ones(len(background)) if weights is None else weights
    made, taken = RowPairs(core.walks).values(
        bin_rows(core, X),
        bin_rows(core, background),
        weights / weights.sum(),
        index,
        terms,
        n_threads,
        trees,
        **way,
    )
    assert taken >= 0
    return made


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_values_are_those_of_the_definition(name, groups, weighted, monkeypatch):
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
        truth = [oracles.INDICES[index](game, term).T for term in terms]
        for way in each_way(monkeypatch):
            found = values(core, X, background, index, terms, weights, **way)
            assert_allclose(found, truth, rtol=0, atol=1e-11)


@pytest.mark.parametrize("n", [12, 33, 63, 64])
def test_long_paths(n, monkeypatch):
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
        truth = np.zeros((len(terms), len(games)))
        for k, term in enumerate(terms):
            for r, row in enumerate(games):
                truth[k, r] = (
                    np.sum([oracles.INDICES[index](v, term) for v in row if term in v]) / 8
                )
        for way in each_way(monkeypatch):
            found = values(core, X, background, index, terms, **way)
            assert_allclose(found.sum(axis=1), truth, rtol=0, atol=1e-11)


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


@pytest.mark.parametrize("name", ["deep", "broad", "outputs"])
def test_sets_of_rows_give_what_rows_give(monkeypatch, name):
    """The same bits for any number of threads, and the same values whoever is beside."""
    forest, _, core = setting(name)
    X, background = inputs_for(forest, 100), inputs_for(forest, 700)[::-1]
    terms = terms_of(6)
    weights = np.random.default_rng(0).random(700)
    for weight in (None, weights):
        for index in ("shap", "total"):
            truth = values(core, X, background, index, terms, weight)
            whole = values(core, X, background, index, terms, weight, by_sets=True)
            assert_allclose(whole, truth, rtol=0, atol=1e-12)
    parts = [values(core, X, background, index, terms, weights, n, by_sets=True) for n in (2, 3)]
    assert_array_equal(parts, [whole, whole])
    few = values(core, X[40:57], background, index, terms, weights, by_sets=True)
    assert_allclose(few, whole[:, :, 40:57], rtol=0, atol=1e-12)
    monkeypatch.setattr(set_walk, "TASK_BYTES", 1 << 12)
    monkeypatch.setattr(set_walk, "MOST_ROWS", 7)
    monkeypatch.setattr(set_walk, "MOST_BACKGROUND", 300)
    monkeypatch.setattr(set_walk, "FEW_OTHERS", 64)
    by_blocks = [
        values(core, X, background, index, terms, weights, n, by_sets=True) for n in (1, 2)
    ]
    assert_allclose(by_blocks[0], whole, rtol=0, atol=1e-12)
    assert_array_equal(*by_blocks)


def test_what_sets_of_rows_report():
    forest, _, core = setting("deep")
    X, background = inputs_for(forest, 30), inputs_for(forest, 50)
    told = []
    made, taken = RowPairs(core.walks).values(
        bin_rows(core, X),
        bin_rows(core, background),
        np.full(50, 0.02),
        "shap",
        terms_of(6),
        1,
        by_sets=True,
        report=told.append,
    )
    assert told == sorted(told)
    assert told[0] > 0
    assert told[-1] == 1
    assert taken > 0
    truth = values(core, X, background, "shap", terms_of(6))
    assert_allclose(made, truth, rtol=0, atol=1e-12)


@pytest.mark.parametrize("by_sets", [False, True])
@pytest.mark.parametrize("n_background", [1, 64, 65, 1025, 2100])
def test_background_of_any_size(n_background, by_sets):
    """Blocks of background rows add up."""
    forest, _, core = setting("broad")
    X, background = inputs_for(forest, 40)[-9:], inputs_for(forest, n_background)
    singles = [(k,) for k in range(6)]
    whole = values(core, X, background, "shap", singles, by_sets=by_sets)
    parts = np.array_split(background, -(-n_background // 50))
    sums = [len(part) * values(core, X, part, "shap", singles, by_sets=by_sets) for part in parts]
    assert_allclose(whole, np.sum(sums, axis=0) / n_background, rtol=0, atol=1e-12)


def test_words_of_a_block():
    found = [n_words_of(n) for n in (1, 64, 65, 1024, 1025, 2048, 2100, 20_000)]
    assert found == [1, 1, 2, 16, 9, 16, 11, 16]


@pytest.mark.parametrize("by_sets", [False, True])
def test_chosen_trees_and_terms(by_sets):
    forest, _, core = setting("outputs")
    X, background = inputs_for(forest, 20), inputs_for(forest, 50)
    terms = terms_of(6)
    whole = values(core, X, background, "shap", terms, by_sets=by_sets)
    one_by_one = [
        values(core, X, background, "shap", terms, trees=np.array([tree]), by_sets=by_sets)
        for tree in range(core.walks.n_trees)
    ]
    assert_allclose(np.sum(one_by_one, axis=0), whole, rtol=0, atol=1e-13)
    some = [terms[k] for k in (9, 2, 17)]
    assert_array_equal(
        values(core, X, background, "shap", some, by_sets=by_sets), whole[[9, 2, 17]]
    )
    assert values(core, X, background, "shap", [], by_sets=by_sets).shape == (0, 3, 20)
    assert values(core, X[:0], background, "shap", some, by_sets=by_sets).shape == (3, 3, 0)


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


def test_few_rows_meet_and_many_are_tabled():
    """As measured: 20 rows against 100 at leaves of six players, and deep trees far more."""
    six = np.full(5000, 6)
    assert meet_sooner(six, 1, 100, 1)
    assert meet_sooner(six, 1, 512, 1)
    assert meet_sooner(six, 20, 100, 1)
    assert not meet_sooner(six, 100, 100, 1)
    assert not meet_sooner(six, 20, 500, 1)
    assert meet_sooner(six, 1, 100, 2)
    assert not meet_sooner(six, 20, 100, 2)
    assert not meet_sooner(np.full(5000, 2), 20, 100, 1)
    assert meet_sooner(np.full(5000, 20), 1000, 500, 1)
    assert not meet_sooner(np.zeros(0, np.int64), 1, 1, 1)
