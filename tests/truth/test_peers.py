"""Values of other packages, where they are right, to the precision that they compute in.

They are asked on float32 data without values at thresholds of doubles, with the whole background.
"""

from functools import cache

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from tests.versions import older

N_COLUMNS = 4
SMALL = {"n_estimators": 5, "max_depth": 4, "n_jobs": 1}
LGB = {"n_estimators": 5, "num_leaves": 9, "min_child_samples": 5, "n_jobs": 1, "verbose": -1}


@cache
def data(missing=False):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, N_COLUMNS)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + np.abs(X[:, 2]) + (X[:, 3] > 0) * X[:, 0]
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X, y, np.digitize(y, [0.3, 1.3])


def models(missing):
    X, y, classes = data(missing)
    yield "xgboost", xgb.XGBRegressor(**SMALL).fit(X, y)
    yield "xgboost dart", xgb.XGBRegressor(booster="dart", rate_drop=0.3, **SMALL).fit(X, y)
    yield "xgboost classes", xgb.XGBClassifier(**SMALL).fit(X, classes)
    yield "xgboost poisson", xgb.XGBRegressor(objective="count:poisson", **SMALL).fit(X, classes)
    yield "lightgbm", lgb.LGBMRegressor(**LGB).fit(X, y)
    yield "lightgbm classes", lgb.LGBMClassifier(**LGB).fit(X, classes)
    yield "hist", HistGradientBoostingRegressor(max_iter=5, max_leaf_nodes=9).fit(X, y)
    if not missing:
        few = {"n_estimators": 5, "max_depth": 4, "random_state": 0}
        yield "extra trees", ExtraTreesRegressor(**few).fit(X, y)
        yield "forest of classes", RandomForestClassifier(**few).fit(X, classes)
        # shap reads two classes of gradient boosting only.
        yield "gradient boosting", GradientBoostingClassifier(**few).fit(X, classes > 0)


@cache
def fitted(missing=False):
    return dict(models(missing))


COMPLETE = list(fitted())
MISSING = [(name, missing) for missing in (False, True) for name in fitted(missing)]


def explained(explainer, X):
    """Values of shape (n_rows, n_terms, n_outputs)."""
    return explainer.transform(X).reshape(len(X), len(explainer.terms_), -1)


def of_two_classes(values, explainer):
    """What shap says of both classes, as far as the explainer shows them."""
    return values[..., -1:] if len(explainer.intercept_) == 1 else values


def shap_matrix(explainer, X):
    """SHAP interaction values as matrices, shape (n_rows, n_columns, n_columns, n_outputs)."""
    values = explained(explainer, X)
    names = [f"x{j}" for j in range(N_COLUMNS)]
    out = np.zeros((len(X), N_COLUMNS, N_COLUMNS, values.shape[2]))
    for t, term in enumerate(explainer.terms_):
        i, j = names.index(term[0]), names.index(term[-1])
        out[:, i, j] = out[:, j, i] = values[:, t]
    return out


def scale_of(values):
    return max(1.0, np.abs(values).max())


# --- shap ------------------------------------------------------------------------------------


def shap_values(model, background, X):
    shap = pytest.importorskip("shap")
    if background is None:
        peer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    else:
        masker = shap.maskers.Independent(background, max_samples=len(background))
        peer = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    values = np.asarray(peer.shap_values(X, check_additivity=False))
    base = np.atleast_1d(peer.expected_value)
    return values.reshape(*X.shape, -1), base


@pytest.mark.parametrize("name", COMPLETE)
def test_interventional_shap(name):
    if name == "xgboost dart" and not older("xgboost", "3.4"):
        pytest.skip("shap 0.54 misses the weights of the trees, which have moved in the dump")
    X, _, _ = data()
    explainer = FastPDExplainer(output="shap").fit(fitted()[name], X)
    values, base = shap_values(fitted()[name], X, X[:25])
    values = of_two_classes(values, explainer)
    atol = 1e-5 * scale_of(values)
    assert_allclose(explained(explainer, X[:25]), values, rtol=0, atol=atol)
    if name != "xgboost classes":  # there shap 0.51 takes all base scores to be the first one's
        assert_allclose(explainer.intercept_, of_two_classes(base, explainer), rtol=0, atol=atol)


@pytest.mark.parametrize(("name", "missing"), MISSING)
def test_path_dependent_shap(name, missing):
    X, _, _ = data(missing)
    model = fitted(missing)[name]
    explainer = PathDependentExplainer(output="shap").fit(model)
    values, base = shap_values(model, None, X[:25])
    values = of_two_classes(values, explainer)
    atol = 1e-5 * scale_of(values)
    assert_allclose(explained(explainer, X[:25]), values, rtol=0, atol=atol)
    assert_allclose(explainer.intercept_, of_two_classes(base, explainer), rtol=0, atol=atol)


@pytest.mark.parametrize("name", ["extra trees", "forest of classes", "lightgbm", "hist"])
def test_path_dependent_shap_interactions(name):
    shap = pytest.importorskip("shap")
    X, _, _ = data()
    model = fitted()[name]
    explainer = PathDependentExplainer(output="shap_interaction").fit(model)
    peer = shap.TreeExplainer(model, feature_perturbation="tree_path_dependent")
    values = np.asarray(peer.shap_interaction_values(X[:10]))
    values = values.reshape(10, N_COLUMNS, N_COLUMNS, -1)
    assert_allclose(shap_matrix(explainer, X[:10]), values, rtol=0, atol=1e-6)


# --- the libraries' own ----------------------------------------------------------------------


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", [name for name in COMPLETE if name.startswith("xgboost")])
def test_xgboost_contributions(name, missing):
    X, _, _ = data(missing)
    model = fitted(missing)[name]
    explainer = PathDependentExplainer(output="shap").fit(model)
    matrix = xgb.DMatrix(X[:25])
    values = model.get_booster().predict(matrix, pred_contribs=True)
    values = np.moveaxis(values.reshape(25, -1, N_COLUMNS + 1), 1, 2)
    assert_allclose(explained(explainer, X[:25]), values[:, :-1], rtol=0, atol=1e-5)
    expected = np.broadcast_to(explainer.intercept_, values[:, -1].shape)
    assert_allclose(values[:, -1], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in COMPLETE if name.startswith("xgboost")])
def test_xgboost_interactions(name):
    X, _, _ = data()
    model = fitted()[name]
    explainer = PathDependentExplainer(output="shap_interaction").fit(model)
    values = model.get_booster().predict(xgb.DMatrix(X[:10]), pred_interactions=True)
    values = values.reshape(10, -1, N_COLUMNS + 1, N_COLUMNS + 1)[:, :, :-1, :-1]
    ours = np.moveaxis(shap_matrix(explainer, X[:10]), 3, 1)
    assert_allclose(ours, values, rtol=0, atol=1e-5)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", ["lightgbm", "lightgbm classes"])
def test_lightgbm_contributions(name, missing):
    X, _, _ = data(missing)
    model = fitted(missing)[name]
    explainer = PathDependentExplainer(output="shap").fit(model)
    values = model.booster_.predict(X[:25], pred_contrib=True)
    values = np.moveaxis(values.reshape(25, -1, N_COLUMNS + 1), 1, 2)
    assert_allclose(explained(explainer, X[:25]), values[:, :-1], rtol=0, atol=1e-10)
    expected = np.broadcast_to(explainer.intercept_, values[:, -1].shape)
    assert_allclose(values[:, -1], expected, rtol=0, atol=1e-10)


def test_sklearn_recursion():
    """scikit-learn's weighted recursion is the same as ours by the model's own covers."""
    from sklearn.inspection import partial_dependence
    from sklearn.tree import DecisionTreeRegressor

    X, y, _ = data()
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(X, y)
    grid = partial_dependence(model, X, [2], method="recursion", grid_resolution=20)
    rows = np.zeros((len(grid["grid_values"][0]), N_COLUMNS), np.float32)
    rows[:, 2] = grid["grid_values"][0]
    ours = PathDependentExplainer(features=[2]).fit(model).transform(rows)[:, 0]
    assert_allclose(ours, grid["average"][0], rtol=1e-10)
