"""Partial dependence on the response scale, against brute force by the models' own responses."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)
from sklearn.inspection import partial_dependence

from fastpd_sklearn import FastPDExplainer, ICEExplainer, VanillaPDExplainer
from tests.versions import assert_same_names


def rows(n=40, seed=0, missing=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    if missing:
        X[rng.random(X.shape) < 0.2] = np.nan
    return X


def label(X, n_classes):
    X = np.nan_to_num(X)
    return np.clip((X[:, 0] + X[:, 1] * X[:, 2] + 1).astype(int), 0, n_classes - 1)


def binary(X):
    return GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, label(X, 2))


def many(X):
    return HistGradientBoostingClassifier(max_iter=6, min_samples_leaf=3).fit(X, label(X, 3))


def xgboost(X):
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=8, max_depth=3, n_jobs=1).fit(X, label(X, 2))


def lightgbm(X):
    from lightgbm import LGBMClassifier

    model = LGBMClassifier(n_estimators=8, min_child_samples=3, n_jobs=1, verbose=-1)
    return model.fit(X, label(X, 3))


def poisson(X):
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=8, min_samples_leaf=3)
    return model.fit(X, label(X, 6))


MODELS = {
    "binary": (binary, False, "predict_proba", 1e-12),
    "many classes": (many, True, "predict_proba", 1e-12),
    "XGBoost": (xgboost, True, "predict_proba", 1e-6),
    "LightGBM": (lightgbm, True, "predict_proba", 1e-12),
    "Poisson": (poisson, True, "predict", 1e-11),
}


def pair(name, weights=None, **options):
    """The explainer, and that by prediction, of a model; and some rows."""
    make, missing, method, tolerance = MODELS[name]
    X = rows(missing=missing)
    model = make(X)
    options["response_method"] = method
    fast = FastPDExplainer(**options).fit(model, X, sample_weight=weights)
    return fast, VanillaPDExplainer(**options).fit(model, X, sample_weight=weights), tolerance


@pytest.mark.parametrize("output", ["pd", "component"])
@pytest.mark.parametrize("name", MODELS)
def test_values_are_those_of_the_definition(name, output):
    features = [0, 1, 2, 3, (0, 1), (2, 3)]
    weights = np.random.default_rng(3).random(40)
    fast, truth, tolerance = pair(name, weights, output=output, features=features)
    X = rows(7, seed=1, missing=MODELS[name][1])
    assert_allclose(fast.intercept_, truth.intercept_, rtol=tolerance)
    assert_allclose(fast.transform(X), truth.transform(X), rtol=0, atol=10 * tolerance)
    assert_same_names(fast.get_feature_names_out(), truth.get_feature_names_out())


@pytest.mark.parametrize("name", ["binary", "many classes"])
def test_grids_and_curves(name):
    fast, truth, _ = pair(name)
    grid = [-1.0, 0.05, 2.0]
    found = fast.partial_dependence(1, grid)
    assert_allclose(found.average, truth.partial_dependence(1, grid).average, atol=1e-12)
    assert_allclose(found.curve(grid), found.average, rtol=0, atol=1e-12)
    both = fast.partial_dependence((2, 0), [grid, grid[:2]]).average
    assert_allclose(both, truth.partial_dependence((2, 0), [grid, grid[:2]]).average, atol=1e-12)
    found = fast.pairwise_partial_dependence([0, 2, 1], grid_resolution=4)
    expected = truth.pairwise_partial_dependence([0, 2, 1], grid_resolution=4)
    assert_allclose(found.average, expected.average, rtol=0, atol=1e-12)


def test_groups_and_targets():
    options = {"groups": {"g": [0, 2]}, "features": ["g", 1, ("g", 3)], "target": 0}
    fast, truth, _ = pair("binary", **options)
    X = rows(9, seed=2)
    assert_allclose(fast.transform(X), truth.transform(X), rtol=0, atol=1e-12)
    assert_allclose(fast.intercept_, truth.intercept_, rtol=1e-12)


def test_three_features_on_a_grid():
    fast, truth, _ = pair("binary")
    grids = [[-0.5, 1.0], [0.0], [0.2, 0.4]]
    found = fast.partial_dependence((0, 3, 2), grids).average
    assert_allclose(found, truth.partial_dependence((0, 3, 2), grids).average, rtol=0, atol=1e-12)


def test_backgrounds_add_up_and_pickle():
    X = rows()
    model = binary(X)
    options = {"response_method": "predict_proba", "output": "component", "max_order": 2}
    whole = FastPDExplainer(**options).fit(model, X, sample_weight=np.arange(40.0))
    parts = FastPDExplainer(**options).fit(model, X[:25], sample_weight=np.arange(25.0))
    parts.partial_fit(X[25:], sample_weight=np.arange(25.0, 40.0))
    assert_allclose(parts.transform(X), whole.transform(X), rtol=0, atol=1e-13)
    assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-13)
    unpickled = pickle.loads(pickle.dumps(whole))
    assert_array_equal(unpickled.transform(X), whole.transform(X))
    mixed = FastPDExplainer(**options).fit(model, X[:25])
    mixed.partial_fit(X[25:], sample_weight=np.full(15, 2.0))
    weights = np.repeat([1.0, 2.0], [25, 15])
    expected = FastPDExplainer(**options).fit(model, X, sample_weight=weights)
    assert_allclose(mixed.transform(X), expected.transform(X), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "options",
    [
        {"output": "shap"},
        {"output": "banzhaf"},
        {"output": "shap_interaction"},
        {"output": "component", "max_order": None},
        {"output": "pd", "max_order": 3},
        {"features": [0, (0, 1, 2)]},
    ],
)
def test_what_does_not_exist_on_this_scale(options):
    X = rows()
    explainer = FastPDExplainer(response_method="predict_proba", **options)
    with pytest.raises(ValueError, match=r"'pd' and 'component'.*'raw'.*VanillaPDExplainer"):
        explainer.fit(binary(X), X)


def test_explanations_say_what_is_left():
    X = rows()
    options = {"output": "component", "max_order": 2, "response_method": "predict_proba"}
    model = binary(X)
    explanation = FastPDExplainer(**options).fit(model, X).explain(X)
    whole = explanation.base_values + explanation.values.sum(axis=1) + explanation.remainder
    assert_allclose(whole, model.predict_proba(X)[:, 1], rtol=0, atol=1e-12)
    assert not explanation.complete


MANY_ROWS = 530
"""Of so many rows curves are made from their jumps, and not walked."""


def brute_force(model, X, j, grid, method, kind="average"):
    """Partial dependence or individual curves by scikit-learn, outputs first."""
    found = partial_dependence(
        model,
        X,
        [j],
        custom_values={j: grid},
        method="brute",
        kind=kind,
        response_method="auto" if method == "predict" else method,
    )
    return found[kind]


@pytest.mark.parametrize("name", MODELS)
def test_curves_of_many_rows_are_those_of_scikit_learn(name):
    make, missing, method, tolerance = MODELS[name]
    X = rows(MANY_ROWS, seed=5, missing=missing)
    model = make(X)
    explainer = FastPDExplainer(response_method=method).fit(model, X)
    for j in range(4):
        grid = np.append(np.linspace(-2.5, 2.5, 12), X[:3, 1])
        grid = grid[~np.isnan(grid)]
        truth = brute_force(model, X, j, grid, method)
        found = explainer.partial_dependence(j, grid)
        assert_allclose(found.average, truth, rtol=0, atol=10 * tolerance)
        assert_allclose(found.curve(grid), truth, rtol=0, atol=10 * tolerance)
        if missing:
            changed = X.copy()
            changed[:, j] = np.nan
            response = getattr(model, method)(changed).reshape(MANY_ROWS, -1)
            level = response.mean(axis=0)[-len(truth) :]
            assert_allclose(found.curve.missing, level, rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_individual_curves_of_many_rows_are_those_of_scikit_learn(name):
    make, missing, method, tolerance = MODELS[name]
    X = rows(MANY_ROWS, seed=6, missing=missing)
    model, grid = make(X), np.linspace(-2.5, 2.5, 9)
    grids = dict.fromkeys(range(4), grid)
    explainer = ICEExplainer(response_method=method, custom_values=grids).fit(model, X)
    means = explainer.average(X)
    for j, (curves, mean) in enumerate(zip(explainer.explain(X), means, strict=True)):
        truth = brute_force(model, X, j, grid, method, "individual")
        assert_allclose(curves.individual, truth, rtol=0, atol=10 * tolerance)
        assert_allclose(mean.average, truth.mean(axis=1), rtol=0, atol=10 * tolerance)


@pytest.mark.parametrize("cheap", [0, 2**21])
def test_what_is_asked_for_before_does_not_matter(cheap, monkeypatch):
    monkeypatch.setattr("fastpd_sklearn.explainers._background.CHEAP", cheap)
    make, _, method, _ = MODELS["many classes"]
    X, weights = rows(MANY_ROWS, seed=7, missing=True), np.random.default_rng(0).random(MANY_ROWS)
    fitted = FastPDExplainer(response_method=method).fit(make(X), X, sample_weight=weights)
    alone = [pickle.loads(pickle.dumps(fitted)).partial_dependence(j).curve for j in range(4)]
    for order in (range(4), [2, 0, 3, 1]):
        together = pickle.loads(pickle.dumps(fitted))
        for j in order:
            assert_array_equal(together.partial_dependence(j).curve.levels, alone[j].levels)
    values = fitted.transform(X[:9])
    for j in range(4):
        assert_allclose(values[:, 3 * j : 3 * j + 3], alone[j](X[:9, j]).T, atol=1e-12)


def test_curves_follow_the_background():
    make, _, method, _ = MODELS["binary"]
    X = rows(2 * MANY_ROWS, seed=8)
    model, parts = make(X), np.split(X, 2)
    explainer = FastPDExplainer(response_method=method)
    for n, part in enumerate(parts, 1):
        explainer.fit(model, part) if n == 1 else explainer.partial_fit(part)
        held = brute_force(model, X[: n * MANY_ROWS], 1, [-0.3, 0.4], method)
        assert_allclose(explainer.partial_dependence(1).curve([-0.3, 0.4]), held, atol=1e-12)
    size = len(pickle.dumps(explainer))
    explainer.transform(X)
    assert len(pickle.dumps(explainer)) == size
