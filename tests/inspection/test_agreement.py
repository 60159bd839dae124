"""The results are those of scikit-learn's brute force."""

import warnings

import numpy as np
import pytest
import sklearn.inspection
from lightgbm import LGBMClassifier, LGBMRegressor
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from fastpd_sklearn.inspection import partial_dependence

from .oracle import close

REGRESSORS = [
    DecisionTreeRegressor(max_depth=5, random_state=0),
    RandomForestRegressor(4, max_depth=5, random_state=0),
    GradientBoostingRegressor(n_estimators=8, random_state=0),
    HistGradientBoostingRegressor(max_iter=8),
    HistGradientBoostingRegressor(max_iter=8, loss="poisson"),
    XGBRegressor(n_estimators=8, max_depth=3, n_jobs=1),
    LGBMRegressor(n_estimators=8, verbose=-1, n_jobs=1),
]

CLASSIFIERS = [
    RandomForestClassifier(4, max_depth=4, random_state=0),
    ExtraTreesClassifier(4, max_depth=4, random_state=0),
    GradientBoostingClassifier(n_estimators=4, random_state=0),
    HistGradientBoostingClassifier(max_iter=4),
    XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1),
    LGBMClassifier(n_estimators=4, verbose=-1, n_jobs=1),
]


def name(model):
    return type(model).__name__ + ("-poisson" if getattr(model, "loss", "") == "poisson" else "")


def check(model, X, features, **params):
    """Hold a result to scikit-learn's, and return it."""
    params = {"grid_resolution": 6, **params}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = partial_dependence(model, X, features, **params)
    wanted = sklearn.inspection.partial_dependence(model, X, features, method="brute", **params)
    for mine, theirs in zip(found.grid_values, wanted.grid_values, strict=True):
        assert np.array_equal(mine, theirs)
    for key in wanted.keys() - {"grid_values"}:
        assert close(found[key], wanted[key]), key
    assert {"average", "individual"} & found.keys() == {"average", "individual"} & wanted.keys()
    return found


@pytest.mark.parametrize("model", REGRESSORS, ids=name)
@pytest.mark.parametrize("features", [0, [3, 1]])
@pytest.mark.parametrize("kind", ["average", "individual", "both"])
def test_regressors(model, features, kind, X, y):
    check(clone(model).fit(X, y), X, features, kind=kind)


@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["average", "both"])
def test_classifiers(model, n_classes, kind, X, labels):
    target = np.unique(np.where(labels == "mid", "low", labels) if n_classes == 2 else labels,
                       return_inverse=True)[1]  # fmt: skip
    model = clone(model).fit(X, target)
    result = check(model, X, [1], kind=kind)
    assert len(result.average) == (1 if n_classes == 2 else 3)
    if hasattr(model, "decision_function"):
        check(model, X, [1], kind=kind, response_method="decision_function")
    check(model, X, [1], kind=kind, response_method="predict_proba")


@pytest.mark.parametrize("model", [REGRESSORS[1], REGRESSORS[4]], ids=name)
def test_weights_count_in_averages_alone(model, X, y):
    weights = np.random.default_rng(0).integers(0, 4, len(X)).astype(float)
    model = clone(model).fit(X, y)
    weighted = check(model, X, 3, kind="both", sample_weight=weights)
    often = np.repeat(X, weights.astype(int), axis=0)
    repeated = partial_dependence(model, often, 3, custom_values={3: weighted.grid_values[0]})
    assert close(weighted.average, repeated.average, rel=1e-12)


def test_three_features_together(X, y):
    model = REGRESSORS[1].fit(X, y)
    assert check(model, X, (2, 0, 3), grid_resolution=4).average.shape == (1, 4, 4, 4)


def test_several_targets(X, y):
    model = RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, np.column_stack([y, -y]))
    check(model, X, 0, kind="both")


@pytest.mark.parametrize("model", [REGRESSORS[1], REGRESSORS[4]], ids=name)
@pytest.mark.parametrize("method", ["auto", "brute"])
def test_more_rows_than_the_model_predicts_at_a_time(model, method, X, y, monkeypatch):
    monkeypatch.setattr("fastpd_sklearn.inspection._prediction.BLOCK_ROWS", 50)
    model = clone(model).fit(X, y)
    check(model, X, [1], kind="both")
    wanted = sklearn.inspection.partial_dependence(model, X, [1], grid_resolution=5, method="brute")
    found = partial_dependence(model, X, [1], grid_resolution=5, method=method)
    assert close(found.average, wanted.average)


# --- models that are no trees -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["average", "both"])
def test_other_models_are_predicted_and_a_warning_says_so(kind, X, y):
    model = LinearRegression().fit(X, y)
    with pytest.warns(UserWarning, match="LinearRegression is not a tree ensemble") as caught:
        found = partial_dependence(model, X, [0, 1], grid_resolution=4, kind=kind)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    wanted = sklearn.inspection.partial_dependence(model, X, [0, 1], grid_resolution=4, kind=kind)
    assert close(found.average, wanted.average)


def test_brute_force_that_is_asked_for_is_no_matter_for_a_warning(X, y):
    model = make_pipeline(StandardScaler(), LinearRegression()).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = partial_dependence(model, X, 2, method="brute", grid_resolution=5)
    wanted = sklearn.inspection.partial_dependence(model, X, 2, grid_resolution=5)
    assert close(found.average, wanted.average)


def test_a_classifier_without_probabilities(X, labels):
    model = RidgeClassifier().fit(X, labels)
    found = partial_dependence(model, X, 2, method="brute", grid_resolution=5)
    wanted = sklearn.inspection.partial_dependence(model, X, 2, grid_resolution=5)
    assert close(found.average, wanted.average)


def test_a_tree_ensemble_that_its_reader_refuses(X, y):
    model = GradientBoostingRegressor(n_estimators=3, init=LinearRegression()).fit(X, y)
    with pytest.warns(UserWarning, match="cannot be read .*init"):
        found = partial_dependence(model, X, 2, grid_resolution=5)
    wanted = sklearn.inspection.partial_dependence(model, X, 2, grid_resolution=5, method="brute")
    assert close(found.average, wanted.average)


# --- what scikit-learn has no word for --------------------------------------------------------


def test_the_sum_of_the_trees_of_a_boosted_classifier(X, labels):
    model = HistGradientBoostingClassifier(max_iter=4).fit(X, labels == "low")
    found = partial_dependence(model, X, 1, response_method="raw", kind="both")
    wanted = sklearn.inspection.partial_dependence(
        model, X, [1], response_method="decision_function", method="brute", kind="both"
    )
    assert close(found.average, wanted.average)
    assert close(found.individual, wanted.individual)


def test_a_booster_is_neither_classifier_nor_regressor(X, y):
    model = XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(X, y)
    found = partial_dependence(model.get_booster(), X, 1, kind="both", grid_resolution=5)
    wanted = partial_dependence(model, X, 1, kind="both", grid_resolution=5, method="brute")
    assert close(found.average, wanted.average)
    assert close(found.individual, wanted.individual)


def test_nothing_of_the_users_is_changed(X, y):
    before = X.copy()
    model = REGRESSORS[4].fit(X, y)
    state = {key: id(value) for key, value in vars(model).items()}
    partial_dependence(model, X, [0, 1], kind="both", grid_resolution=3)
    assert np.array_equal(X, before)
    assert {key: id(value) for key, value in vars(model).items()} == state
