"""Path-dependent values by walks down the trees, against exact fractions and other ways."""

from fractions import Fraction
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from fastpd_sklearn.core.coverage import PathCoverage
from fastpd_sklearn.core.path_walk import walk_paths
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fastpd_sklearn import PathDependentExplainer
from fastpd_sklearn.core import model
from fastpd_sklearn.core.attribution import Rules
from fastpd_sklearn.core.effort import make_wanted, table_effort, walk_effort
from fastpd_sklearn.forest._forest import ForestBuilder
from tests import oracles
from tests.core.grow import chain_forest, core_of, grow, rows_for
from tests.core.test_evaluation import by_masks

INNER = ["shap", "banzhaf"]  # the indices whose nodes lie between 0 and 1


def by_walk(core, X, coverage, index, terms=None, n_threads=1):
    terms = core.singles if terms is None else terms
    rows, _ = core.bins.bin_matrix(X, 1)
    out = np.zeros((len(terms), core.n_outputs, len(X)))
    rules = Rules(index, core.geometry.leaf_sizes)
    walk_paths(
        rows,
        core.bins.tests,
        core.geometry,
        coverage,
        rules,
        core.value,
        core.tree_output,
        terms,
        out,
        n_threads,
    )
    return out


def leaf_games(forest, share, owner, x, node):
    """Leaves below a node and their players' degrees (p, q), in fractions."""
    if forest.left[node] < 0:
        yield node, {}
        return
    left = oracles.goes_left(forest, node, x)
    for child, passes in ((forest.left[node], left), (forest.right[node], not left)):
        for leaf, game in leaf_games(forest, share, owner, x, child):
            player = int(owner[forest.feature[node]])
            p, q = game.get(player, (Fraction(1), Fraction(1)))
            yield leaf, game | {player: (p * passes, q * Fraction(share[child]))}


@cache
def exact(index, p, q, places):
    return float(oracles.product_game_index(index, p, q, places))


def by_fractions(index, forest, share, owner, X, terms):
    """Sums over leaves of exact integrals, float64 of shape (n_terms, n_outputs, n_rows)."""
    out = np.zeros((len(terms), forest.n_outputs, len(X)))
    for r, x in enumerate(X):
        for tree, root in enumerate(forest.tree_start[:-1]):
            outputs = forest.tree_output[tree] + np.arange(forest.value.shape[1])
            for leaf, game in leaf_games(forest, share, owner, x, root):
                p, q = zip(*game.values(), strict=True) if game else ((), ())
                place = {player: k for k, player in enumerate(game)}
                for k, term in enumerate(terms):
                    if place.keys() >= set(term):
                        value = exact(index, p, q, tuple(place[player] for player in term))
                        out[k, outputs, r] += value * forest.value[leaf]
    return out


def setting(seed=0, n_nodes=25, n_rows=11, n_inputs=6, zeros=True, **params):
    rng = np.random.default_rng(seed)
    forest = grow(rng, n_inputs, n_nodes, **params)
    share = rng.integers(0 if zeros else 1, 9, forest.n_nodes) / 8
    return forest, share, rows_for(rng, n_rows, n_inputs)


@pytest.mark.parametrize("n", [1, 2, 60, 100])
def test_chains_in_fractions(n):
    """A leaf of many players: equal to the integral of the polynomial, at any depth."""
    rng = np.random.default_rng(n)
    forest = chain_forest(n)
    core = core_of(forest)
    X = np.where(rng.random((4, n)) < rng.random((4, 1)) * 6 / n, 0.0, 1.0)
    share = np.ones(2 * n + 1)
    share[2::2] = rng.integers(4, 8, n) / 8
    for index in INNER:
        terms = [(k,) for k in range(0, n, 23)] + list(combinations(range(0, n, 31), 2))
        found = by_walk(core, X, PathCoverage(core.geometry, share), index, terms)[:, 0]
        truth = [[oracles.product_game_index(index, x, share[2::2], t) for x in X] for t in terms]
        assert_allclose(found, np.array(truth, float), rtol=1e-10, atol=1e-16)


@pytest.mark.parametrize("owner", [[0, 1, 2, 3, 4, 5], [2, 0, 2, 1, 1, 0]])
@pytest.mark.parametrize("index", INNER)
def test_forests_in_fractions(index, owner):
    """Repeated players, groups, categories, missing values, vector leaves, shares of zero."""
    forest, share, X = setting(n_outputs=3, width=2, n_trees=2, zero=True)
    core = core_of(forest, owner)
    players = range(max(owner) + 1)
    terms = [*combinations(players, 2), *combinations(players, 1)]
    found = by_walk(core, X, PathCoverage(core.geometry, share), index, terms)
    truth = by_fractions(index, forest, share, owner, X, terms)
    assert np.abs(truth).max() > 0.1
    assert_allclose(found, truth, rtol=0, atol=1e-13)


def test_deep_tree_in_fractions():
    """60 players and more tests than that, so that paths come back to some players."""
    rng = np.random.default_rng(3)
    n, builder = 90, ForestBuilder(60, 1, False, False)
    inner = np.arange(n)
    left, right = np.full(2 * n + 1, -1), np.full(2 * n + 1, -1)
    left[2 * inner], right[2 * inner] = 2 * inner + 1, 2 * inner + 2
    feature = np.arange(2 * n + 1) // 2 * 7 % 60
    value = rng.normal(size=2 * n + 1)
    share = rng.integers(1, 9, 2 * n + 1) / 8
    share[2::2] = rng.integers(6, 9, n) / 8
    builder.add(
        left=left, right=right, feature=feature, threshold=np.full(2 * n + 1, 0.1), value=value,
        cover=np.ones(2 * n + 1),
    )  # fmt: skip
    forest = builder.build(0.0)
    core = core_of(forest)
    X = rng.random((1, 60))
    terms = [(0,), (7,), (33,), (7, 14), (0, 33)]
    found = by_walk(core, X, PathCoverage(core.geometry, share), "shap", terms)
    truth = by_fractions("shap", forest, share, np.arange(60), X, terms)
    assert core.geometry.leaf_sizes.max() == 60
    assert np.all(truth != 0)
    assert_allclose(found, truth, rtol=0, atol=1e-13)


@pytest.mark.parametrize("index", INNER)
@pytest.mark.parametrize("n_rows", [1, 7, 8, 30])
def test_agrees_with_tables(index, n_rows):
    forest, share, X = setting(1, 60, n_rows, n_trees=6, n_outputs=2)
    core = core_of(forest)
    coverage = PathCoverage(core.geometry, share)
    terms = [(4,), (0,), (5,), (0, 1), (2, 5), (1, 4)]
    found = by_walk(core, X, coverage, index, terms)
    assert_allclose(found, by_masks(core, X, coverage, index, terms), rtol=0, atol=1e-12)


def test_same_bits_for_any_threads_and_company():
    forest, share, X = setting(2, 80, 45, n_trees=5)
    core = core_of(forest)
    coverage = PathCoverage(core.geometry, share)
    terms = [*core.singles, *combinations(range(6), 2)]
    first = by_walk(core, X, coverage, "shap", terms)
    for n_threads in (2, 3):
        assert_array_equal(by_walk(core, X, coverage, "shap", terms, n_threads), first)
    for part in (slice(3, 4), slice(5, 31)):
        assert_array_equal(by_walk(core, X[part], coverage, "shap", terms), first[:, :, part])
    for some in (terms[:3], terms[8:], [terms[0], terms[9]]):
        place = [terms.index(term) for term in some]
        assert_array_equal(by_walk(core, X, coverage, "shap", some), first[place])


def test_many_tests_of_few_players():
    """Nothing is lost on paths of 400 tests: values add up to prediction less mean."""
    n = 400
    builder = ForestBuilder(2, 1, False, False)
    inner, rng = np.arange(n), np.random.default_rng(0)
    left, right = np.full(2 * n + 1, -1), np.full(2 * n + 1, -1)
    left[2 * inner], right[2 * inner] = 2 * inner + 1, 2 * inner + 2
    builder.add(
        left=left,
        right=right,
        feature=np.arange(2 * n + 1) // 2 % 2,
        threshold=np.arange(2 * n + 1) / (2 * n),
        value=rng.normal(size=2 * n + 1),
        cover=np.ones(2 * n + 1),
    )
    forest = builder.build(0.0)
    share = np.full(2 * n + 1, 0.5)
    core = core_of(forest)
    coverage = PathCoverage(core.geometry, share)
    X = rng.random((20, 2))
    full, _ = coverage.near_full(core.geometry.leaf_sizes)
    found = by_walk(core, X, coverage, "shap").sum(axis=0)[0]
    truth = oracles.predict(forest, X)[:, 0] - core.mean(full)[0]
    assert_allclose(found, truth, rtol=0, atol=1e-12)


def test_bare_leaves_and_nothing_to_explain():
    builder = ForestBuilder(2, 1, False, False)
    builder.add(left=[-1], right=[-1], feature=[-1], threshold=[0.0], value=[3.0], cover=[1.0])
    core = core_of(builder.build(1.0))
    coverage = PathCoverage(core.geometry, np.ones(1))
    assert_array_equal(by_walk(core, np.zeros((3, 2)), coverage, "shap"), np.zeros((2, 1, 3)))
    assert by_walk(core, np.zeros((0, 2)), coverage, "shap").shape == (2, 1, 0)
    assert by_walk(core, np.zeros((3, 2)), coverage, "shap", []).shape == (0, 1, 3)


@pytest.fixture(scope="module", params=["regressor", "classifier"])
def unpruned(request):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 12))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.5 * rng.normal(size=1500)
    if request.param == "regressor":
        return RandomForestRegressor(6, random_state=0).fit(X, y), X[:25]
    return RandomForestClassifier(6, random_state=0).fit(X, np.digitize(y, [-0.5, 0.5])), X[:25]


def test_unpruned_forest_adds_up(unpruned):
    forest, X = unpruned
    explainer = PathDependentExplainer(output="shap").fit(forest)
    values = explainer.transform(X).reshape(len(X), 12, -1)
    response = getattr(forest, "predict_proba", forest.predict)(X).reshape(len(X), -1)
    assert_allclose(values.sum(axis=1) + explainer.intercept_, response, rtol=0, atol=1e-12)


def test_unpruned_forest_by_shap(unpruned):
    shap = pytest.importorskip("shap")
    forest, X = unpruned
    values = PathDependentExplainer(output="shap").fit(forest).transform(X)
    peer = shap.TreeExplainer(forest, feature_perturbation="tree_path_dependent")
    truth = peer.shap_values(X, check_additivity=False)
    assert_allclose(values.reshape(truth.shape), truth, rtol=0, atol=1e-9)


def test_unpruned_forest_interactions_by_shap(unpruned):
    """All pairs that lie on a common path, without a limit to what all leaves have together."""
    shap = pytest.importorskip("shap")
    forest, X = unpruned
    explainer = PathDependentExplainer(output="shap_interaction").fit(forest)
    assert len(explainer.terms_) == 12 + 66
    values = explainer.transform(X[:3]).reshape(3, 78, -1)
    peer = shap.TreeExplainer(forest, feature_perturbation="tree_path_dependent")
    truth = peer.shap_interaction_values(X[:3]).reshape(3, 12, 12, -1)
    places = [tuple(int(name[1:]) for name in names) for names in explainer.terms_]
    for k, place in enumerate(places):
        assert_allclose(values[:, k], truth[:, place[0], place[-1]], rtol=0, atol=1e-9)


def spy(monkeypatch):
    calls = []
    monkeypatch.setattr(model, "walk_paths", lambda *args: calls.append(1) or walk_paths(*args))
    return calls


def test_choice_by_cost(monkeypatch):
    """Walks for few rows or deep trees, tables for many rows of shallow ones; the values agree."""
    calls = spy(monkeypatch)
    for n_nodes, n_rows, walks in ((4, 5000, False), (150, 3, True)):
        forest, share, X = setting(5, n_nodes, n_rows)
        core = core_of(forest)
        coverage = PathCoverage(core.geometry, share)
        rows, _ = core.bins.bin_matrix(X, 1)
        calls.clear()
        for index in INNER:
            found = core.attribute(rows, coverage, index, core.singles, 1)
            assert_allclose(found, by_walk(core, X, coverage, index), rtol=0, atol=1e-12)
        assert len(calls) == 2 * walks
        calls.clear()
        pairs = [(0, 1), (2, 3), (0, 5)]
        found = core.attribute(rows, coverage, "shap", [*core.singles, *pairs], 1)
        truth = by_walk(core, X, coverage, "shap", [*core.singles, *pairs])
        assert_allclose(found, truth, rtol=0, atol=1e-12)
        assert len(calls) == walks
        calls.clear()
        core.attribute(rows, coverage, "shap", [(0, 1, 2)], 1)
        core.attribute(rows, coverage, "component", core.singles, 1)
        assert calls == []


def test_blocks(monkeypatch):
    """Blocks are walked too; sets of three are left to the tables."""
    calls = spy(monkeypatch)
    forest, share, X = setting(5, 150, 3)
    core = core_of(forest)
    coverage = PathCoverage(core.geometry, share)
    rows, _ = core.bins.bin_matrix(X, 1)
    terms = [(0, 1, 2), *core.singles, (0, 1), (1, 3, 4), (2, 5)]
    whole = core.attribute(rows, coverage, "shap", terms, 1)
    for n_values, n_walks in ((10**6, 1), (12, 2)):
        calls.clear()
        found = np.full_like(whole, np.nan)
        for numbers, values in core.attribute_blocks(rows, coverage, "shap", terms, n_values, 1):
            assert np.isnan(found[numbers]).all()
            assert len(numbers) <= n_values // 3
            found[numbers] = values
        assert len(calls) == n_walks
        assert_allclose(found, whole, rtol=0, atol=1e-12)


def test_effort_grows_with_the_work():
    forest, _, _ = setting(5, 60)
    core = core_of(forest)
    geometry, units = core.geometry, core.units
    rules = Rules("shap", geometry.leaf_sizes)
    pairs = list(combinations(range(6), 2))

    def wanted(n_rows, terms=core.singles):
        return make_wanted(geometry, terms, 1, n_rows)

    walks = [walk_effort(geometry, rules, wanted(n)) for n in (1, 8, 9, 800)]
    assert walks[0] == walks[1] < walks[2] < walks[3]
    tables = [table_effort(geometry, units, rules, wanted(n)) for n in (1, 10, 1000)]
    assert tables == sorted(tables)
    assert walks[0] < tables[0]
    assert walks[3] > table_effort(geometry, units, rules, wanted(800))
    assert walks[3] < walk_effort(geometry, rules, wanted(800, pairs))
    some = [table_effort(geometry, units, rules, wanted(10, pairs[:n])) for n in (1, 5, 15)]
    assert some == sorted(some)
    assert some[0] < some[2]
