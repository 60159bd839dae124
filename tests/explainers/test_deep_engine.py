"""Forests that are walked through by their background, against brute force and by masks."""

import pickle

import numpy as np
import pytest
from fastpd_sklearn.core.plan import common_terms
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.inspection import partial_dependence

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.core.effort import BackgroundEffort
from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.decomposition import importance
from fastpd_sklearn.explainers import _fastpd
from fastpd_sklearn.explainers._background import DeepEngine
from fastpd_sklearn.explainers._fastpd import walks_sooner
from fastpd_sklearn.forest import find_reader


@pytest.fixture
def deep(monkeypatch):
    """Take every forest for a deep one."""
    monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)


def rows(n=80, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4))


def regressor(X):
    model = RandomForestRegressor(8, random_state=0, n_jobs=1)
    return model.fit(X, X[:, 0] + X[:, 1] * X[:, 2])


def classifier(X):
    y = np.clip((X[:, 0] + X[:, 1] * X[:, 2]).astype(int), -1, 1)
    return ExtraTreesClassifier(8, random_state=0, n_jobs=1).fit(X, y)


def categorical(X):
    X[:, 3] = np.random.default_rng(1).integers(0, 5, len(X))
    X[::7, 1] = np.nan
    X[::9, 3] = np.nan
    model = HistGradientBoostingRegressor(
        categorical_features=[3], max_iter=15, min_samples_leaf=2, max_leaf_nodes=None
    )
    return model.fit(X, X[:, 0] + np.nan_to_num(X[:, 3] * X[:, 2]))


MODELS = {"regressor": regressor, "classifier": classifier, "categorical": categorical}


@pytest.fixture(params=[True, False])
def ways(request, monkeypatch):
    """Find pairs and larger sets by walks, or from counts of the rows."""
    monkeypatch.setattr(BackgroundEffort, "pairs_are_walked", lambda *args: request.param)
    return request.param


def fit_both(monkeypatch, name, weights=None, **options):
    X = rows()
    model = MODELS[name](X)
    by_masks = FastPDExplainer(**options).fit(model, X, sample_weight=weights)
    with monkeypatch.context() as patch:
        patch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
        walked = FastPDExplainer(**options).fit(model, X, sample_weight=weights)
    assert isinstance(walked._fitted.engine, DeepEngine)
    return walked, by_masks, X


@pytest.mark.parametrize(
    ("output", "groups", "weighted"),
    [("pd", None, True), ("component", None, False), ("component", {"g": [0, 3]}, True)],
)
@pytest.mark.parametrize("name", MODELS)
def test_both_engines_agree(monkeypatch, ways, name, output, groups, weighted):
    weights = np.random.default_rng(2).random(80) if weighted else None
    walked, by_masks, X = fit_both(
        monkeypatch, name, weights, output=output, max_order=2, groups=groups
    )
    assert_allclose(walked.intercept_, by_masks.intercept_, rtol=1e-12)
    assert_array_equal(walked.get_feature_names_out(), by_masks.get_feature_names_out())
    assert_allclose(walked.transform(X), by_masks.transform(X), rtol=0, atol=1e-10)
    assert ("_counts" in walked._fitted.engine.__dict__) == (not ways)


@pytest.mark.parametrize("name", MODELS)
def test_what_walks_do_not_give_is_counted(monkeypatch, name):
    """The engine is chosen for what is asked for first, and nobody sees which one it is."""
    walked, by_masks, X = fit_both(monkeypatch, name)
    for output, order in (("shap", 1), ("total", 1), ("banzhaf", 2), ("component", None)):
        terms = by_masks._fitted.engine.common_terms(order)
        terms = [(k,) for k in range(4)] + [term for term in terms if len(term) > 1]
        shown = [e._fitted.showing(output, terms) for e in (walked, by_masks)]
        assert_allclose(*(f.evaluate(X, f.recipe) for f in shown), rtol=0, atol=1e-10)
    found = [importance(e, X).shap_importances for e in (walked, by_masks)]
    assert_allclose(*found, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_grids(monkeypatch, ways, name):
    walked, by_masks, _ = fit_both(monkeypatch, name)
    for feature in (0, 1, 3):
        found, truth = (e.partial_dependence(feature) for e in (walked, by_masks))
        assert_allclose(found.curve(found.grid_values[0]), found.average, rtol=0, atol=1e-12)
        assert_allclose(found.average, truth.average, rtol=0, atol=1e-10)
    for features in ((0, 1), (3, 2), (1, 0, 2)):
        grid = [[0.0, 1.0, 0.4], [2.0, 1.0], [-1.0, 0.3]][: len(features)]
        found, truth = (e.partial_dependence(features, grid) for e in (walked, by_masks))
        assert_allclose(found.average, truth.average, rtol=0, atol=1e-10)
    found, truth = (e.pairwise_partial_dependence(grid_resolution=5) for e in (walked, by_masks))
    assert_allclose(found.average, truth.average, rtol=0, atol=1e-10)


def test_scikit_learns_brute_force(deep):
    X = rows()
    model = regressor(X)
    explainer = FastPDExplainer().fit(model, X)
    values = np.linspace(-2, 2, 9)
    truth = partial_dependence(model, X, [1], method="brute", custom_values={1: values})
    found = explainer.partial_dependence(1, values)
    assert_allclose(found.average, truth["average"], rtol=0, atol=1e-12)


def test_backgrounds_add_up_and_pickle(deep, ways):
    X = rows()
    model = classifier(X)
    options = {"output": "component", "max_order": 2}
    whole = FastPDExplainer(**options).fit(model, X)
    parts = FastPDExplainer(**options).fit(model, X[:30]).partial_fit(X[30:])
    assert_allclose(parts.transform(X), whole.transform(X), rtol=0, atol=1e-12)
    assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-12)
    unpickled = pickle.loads(pickle.dumps(parts)).detach()
    assert_array_equal(unpickled.transform(X), parts.transform(X))
    unpickled.partial_fit(X)
    doubled = FastPDExplainer(**options).fit(model, np.concatenate([X, X]))
    assert_allclose(unpickled.transform(X), doubled.transform(X), rtol=0, atol=1e-12)


def test_many_rows_and_threads(deep, monkeypatch):
    X = rows(300)
    model = regressor(X)
    one = FastPDExplainer(output="component", max_order=2, n_jobs=1).fit(model, X)
    two = FastPDExplainer(output="component", max_order=2, n_jobs=2).fit(model, X)
    whole = one.transform(X)
    assert_array_equal(whole, two.transform(X))
    assert_allclose(whole[:3], one.transform(X[:3]), rtol=0, atol=1e-12)
    explanation = one.explain(X)
    assert_allclose(
        explanation.base_values + whole.sum(axis=1) + explanation.remainder, model.predict(X)
    )


def test_the_choice_is_by_cost():
    """Walks where leaves have many masks that can occur, unless all of it takes no time."""
    X = rows(20_000)
    y = np.random.default_rng(0).random(len(X))
    options = {"n_jobs": 2, "random_state": 0, "max_samples": 0.9}
    small = RandomForestRegressor(4, **options).fit(X[:500], y[:500])
    shallow = RandomForestRegressor(40, max_depth=4, **options).fit(X, y)
    large = RandomForestRegressor(6, **options).fit(X, y)
    chosen = [walks_sooner(find_reader(m).read(m).forest, 20_000) for m in (small, shallow, large)]
    assert chosen == [False, False, True]


def test_the_estimate_of_pairs():
    effort = BackgroundEffort(walked=1e8, counted=1e9)
    assert effort.pairs_are_walked(1, 1e6)
    assert not effort.pairs_are_walked(20, 1e6)
    assert not effort.pairs_are_walked(1, 1e9)


def test_common_pairs_are_those_of_paths():
    X = rows(60)
    model = RandomForestRegressor(3, max_depth=2, random_state=4, n_jobs=1).fit(X, X[:, 0])
    forest = find_reader(model).read(model).forest
    owner = np.array([0, 1, 2, 1], np.int32)
    for players in (owner, np.arange(4, dtype=np.int32)):
        core = CoreModel(forest, players, players.max() + 1, 1e-35)
        assert core.walks.common_pairs == common_terms(core.geometry, 2)
