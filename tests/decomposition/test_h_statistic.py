"""H statistics are those of Friedman & Popescu (2008), section 8.1, worked out by prediction."""

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import HStatistics, h_statistic
from tests import oracles
from tests.decomposition.conftest import WEIGHTS, players_of

SINGLES = [[0], [1], [2], [3]]


def centred(values, weights):
    return values - np.average(values, axis=0, weights=weights)


def friedman_popescu(game, T, weights, everybody):
    """Numerator and denominator of H by centred partial dependence functions."""
    F = {S: centred(v, weights) for S, v in game.items()}
    if len(T) == 1:
        rest = tuple(k for k in everybody if k not in T)
        above, below = F[everybody] - F[T] - F[rest], F[everybody]
    elif len(T) == 2:
        above, below = F[T] - F[T[:1]] - F[T[1:]], F[T]
    else:
        above = F[T] - sum(F[S] for S in combinations(T, 2)) + sum(F[k,] for k in T)
        below = F[T]
    return tuple(np.average(part**2, axis=0, weights=weights) for part in (above, below))


@pytest.mark.parametrize("order", [1, 2, 3])
def test_all_sets_by_definition(game, case, setting, order):
    weights, groups = setting
    players, names = players_of(groups)
    features = None if order == 1 else names  # all sets, also those that cannot interact
    found = h_statistic(
        case[0], case[2], order=order, features=features, sample_weight=weights, groups=groups
    )
    everybody = tuple(range(len(players)))
    truth = [friedman_popescu(game, T, weights, everybody) for T in combinations(everybody, order)]
    assert found.terms == tuple(combinations(names, order))
    above, below = (np.array(part) for part in zip(*truth, strict=True))
    n_outputs = len(found.output_names)
    assert_allclose(found.unnormalized.reshape(-1, n_outputs), np.sqrt(above), atol=1e-9)
    h_squared = np.where(above > 1e-20, above / np.maximum(below, 1e-300), 0.0)
    assert_allclose(found.h_squared.reshape(-1, n_outputs), h_squared, rtol=1e-8, atol=1e-12)
    assert_allclose(found.h**2, found.h_squared)


def test_sets_that_interact_are_found(model, X):
    found = h_statistic(model, X)
    assert isinstance(found, HStatistics)
    everything = h_statistic(model, X, features=[0, 1, 2, 3])
    size = dict(zip(everything.terms, everything.h_squared, strict=True))
    assert {term: h for term, h in size.items() if h > 0} == {
        term: h for term, h in zip(found.terms, found.h_squared, strict=True) if h > 0
    }


@pytest.fixture(scope="module")
def additive():
    """Stumps: a sum of functions of one feature each."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 5))
    y = 100.0 + X[:, 0] + np.sin(3 * X[:, 1])
    return GradientBoostingRegressor(n_estimators=60, max_depth=1).fit(X, y), X


@pytest.mark.parametrize("order", [1, 2, 3])
def test_additive_models_have_none_at_all(additive, order):
    model, X = additive
    features = None if order == 1 else list(range(5))
    found = h_statistic(model, X, order=order, features=features)
    assert np.all(found.h_squared == 0.0)
    assert np.all(found.unnormalized == 0.0)


def test_where_no_set_can_interact_none_is_listed(additive):
    found = h_statistic(*additive)
    assert found.terms == ()
    assert found.h.shape == (0,)
    assert len(found.to_frame()) == 0


def test_an_additive_pair_of_deep_trees_is_rounding(X):
    """Trees test both features on one path, and their components cancel tree by tree."""

    class Cancelling:
        def predict(self, rows):
            return 1e6 + rows[:, 0] * rows[:, 1] + rows[:, 2] - rows[:, 0] * rows[:, 1]

    found = h_statistic(VanillaPDExplainer().fit(Cancelling(), X), X, features=["x0", "x1", "x2"])
    assert np.all(found.h_squared == 0.0)


def test_pure_interactions():
    """x0 * x1 of signs that are balanced: all of the pair, and of each feature, is interaction."""
    X = np.array([[a, b, c] for a in (-1.0, 1.0) for b in (-1.0, 1.0) for c in (-1.0, 1.0)])

    class Product:
        def predict(self, rows):
            return 3 * rows[:, 0] * rows[:, 1] + rows[:, 2]

    explainer = VanillaPDExplainer().fit(Product(), X)
    pairs = h_statistic(explainer, X, features=["x0", "x1", "x2"])
    assert_allclose(pairs.h_squared, [1.0, 0.0, 0.0], atol=1e-12)
    assert_allclose(pairs.unnormalized, [3.0, 0.0, 0.0], atol=1e-12)
    overall = h_statistic(explainer, X, order=1)
    assert_allclose(overall.h_squared, [0.9, 0.9, 0.0], atol=1e-12)


def test_named_sets(model, X):
    whole = h_statistic(model, X, features=["x0", "x1", "x2", "x3"])
    some = h_statistic(model, X, features=[("x2", "x0"), (3, 1)])
    assert some.terms == (("x0", "x2"), ("x1", "x3"))
    places = [whole.terms.index(term) for term in some.terms]
    assert_allclose(some.h_squared, whole.h_squared[places], rtol=1e-12)
    both = h_statistic(model, X, features=[("x2", "x0"), "x1", "x3"])
    assert both.terms == some.terms
    assert h_statistic(model, X, order=1, features="x2").terms == (("x2",),)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_blocks_are_one(model, X, monkeypatch, order):
    whole = h_statistic(model, X, order=order, sample_weight=WEIGHTS)
    for name, size in {"FEWEST_ROWS": 7, "MOST_ROWS": 7, "BLOCK_VALUES": 3}.items():
        monkeypatch.setattr(f"fastpd_sklearn.decomposition._h_statistic.{name}", size)
    parts = h_statistic(model, X, order=order, sample_weight=WEIGHTS)
    assert_allclose(parts.h_squared, whole.h_squared, rtol=1e-10)


def test_large_means_do_not_cancel(X, y):
    """A constant that is added to a response changes none of its variances."""
    plain = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y)
    shifted = GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, y + 1e6)
    one, other = (h_statistic(m, X, order=1).h_squared for m in (plain, shifted))
    assert_allclose(one, other, rtol=1e-6)


def test_rows_other_than_the_background(model, X):
    explainer = FastPDExplainer().fit(model, X[:25])
    found = h_statistic(explainer, X[10:], features=[0, 1], sample_weight=WEIGHTS[10:])
    game = oracles.interventional_game(model.predict, X[:25], None, X[10:], SINGLES)
    above, below = friedman_popescu(game, (0, 1), WEIGHTS[10:], (0, 1, 2, 3))
    assert_allclose(found.h_squared, above / below)


def test_path_dependent(model, X):
    """The same formula with Friedman's recursion for partial dependence."""
    explainer = PathDependentExplainer(features=[(0, 1), 0, 1]).fit(model, X)
    both, first, second = (centred(v, None) for v in explainer.transform(X).T)
    found = h_statistic(explainer, X, features=[0, 1])
    truth = np.mean((both - first - second) ** 2) / np.mean(both**2)
    assert_allclose(found.h_squared, truth)


def test_the_response_scale(X, y):
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2).fit(X, y > 4)
    explainer = FastPDExplainer(response_method="predict_proba").fit(model, X)
    found = h_statistic(explainer, X, features=[0, 1])
    respond = lambda rows: model.predict_proba(rows)[:, 1]  # noqa: E731
    game = oracles.interventional_game(respond, X, None, X, SINGLES)
    above, below = friedman_popescu(game, (0, 1), None, (0, 1, 2, 3))
    assert_allclose(found.h_squared, above / below)
    with pytest.raises(ValueError, match=r"output='total' cannot be had .* only 'component'"):
        h_statistic(explainer, X, order=1)


def test_frames(classifier, X):
    found = h_statistic(classifier, X)
    frame = found.to_frame()
    assert list(frame.columns) == ["term", "output", "h", "h_squared", "unnormalized"]
    assert len(frame) == found.h.size
    assert np.all(np.diff(frame["h"]) <= 0)
    line = frame[(frame.term == "x0:x1") & (frame.output == "mid")]
    assert_allclose(line["h"], found.h[found.terms.index(("x0", "x1")), 2])
    assert list(h_statistic(classifier, X, target="low").to_frame().columns)[:2] == ["term", "h"]


def test_same_bits_for_any_n_jobs(model, X):
    for order in (1, 2):
        one, two = (h_statistic(model, X, order=order, n_jobs=n) for n in (1, 2))
        assert np.array_equal(one.h_squared, two.h_squared)


def test_refusals(model, X):
    with pytest.raises(ValueError, match="order=0 should be an int of at least 1"):
        h_statistic(model, X, order=0)
    with pytest.raises(ValueError, match=r"features: \(0, 1\) has 2 features, and order=3"):
        h_statistic(model, X, order=3, features=[(0, 1)])
    with pytest.raises(ValueError, match=r"features=\['x1'\] are fewer than order=2"):
        h_statistic(model, X, features=["x1"])
    with pytest.raises(ValueError, match="'nope'"):
        h_statistic(model, X, features=["nope", "x1"])
    with pytest.raises(TypeError, match="VanillaPDExplainer"):
        h_statistic(LinearRegression().fit(X, X[:, 0]), X)
