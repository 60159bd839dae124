"""Agreement of curves against their covariances, worked out by predictions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import KFold, cross_validate
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.model_selection import curve_stability
from tests import oracles
from tests.model_selection.conftest import WEIGHTS


@pytest.fixture(scope="module")
def folds(X, y):
    model = DecisionTreeRegressor(max_depth=4, random_state=0)
    return cross_validate(model, X, y, cv=KFold(3), return_estimator=True)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("term", [(3,), (0, 1)])
def test_against_covariances_of_curves(folds, X, term, weights):
    curves = []
    for model in folds["estimator"]:
        v = oracles.interventional_game(model.predict, X, weights, X, [[j] for j in range(4)])
        curves.append(oracles.derivative(v, term)[:, 0])
    covariance = np.cov(curves, aweights=weights, ddof=0)
    pairs = covariance[~np.eye(3, dtype=bool)]
    result = curve_stability(folds, X, [term], sample_weight=weights)
    assert result.terms == (tuple(f"x{j}" for j in term),)
    assert_allclose(result.stability, pairs.mean() / covariance.trace() * 3, rtol=1e-9)
    assert_allclose(result.overall, result.stability[0])
    centred = np.array(curves) - np.average(curves, axis=1, weights=weights)[:, None]
    spread = np.average(centred.var(axis=0, ddof=1), weights=weights)
    assert_allclose(result.deviation, [spread**0.5], rtol=1e-9)


def test_overall_adds_up_variances(folds, X):
    result = curve_stability(folds, X)
    assert result.terms == (("x0",), ("x1",), ("x2",), ("x3",))
    variance = np.zeros(4)
    for model in folds["estimator"]:
        for j in range(4):
            variance[j] += oracles.pd_function(model.predict, X, None, [j], X).var()
    assert_allclose(result.overall, np.average(result.stability, weights=variance))


def test_same_opposite_and_flat_curves(X):
    up = DecisionTreeRegressor().fit(X, X[:, 2])
    shifted = DecisionTreeRegressor().fit(X, X[:, 2] + 100)
    down = DecisionTreeRegressor().fit(X, -X[:, 2])
    same = curve_stability([up, shifted, up], X, [2, 3])
    assert_allclose(same.stability, [1, 1])  # x3 is used by none of them
    assert_allclose(same.deviation, [0, 0], atol=1e-12)
    assert_allclose(same.overall, 1)
    opposite = curve_stability([up, down], X, 2)
    assert_allclose(opposite.stability, [-1])
    assert_allclose(opposite.deviation, [np.sqrt(2 * X[:, 2].var())])
    flat = curve_stability([DecisionTreeRegressor().fit(X, np.full(60, 3.3))] * 2, X)
    assert flat.stability.tolist() == [1, 1, 1, 1]
    assert flat.overall == 1


def test_classes_are_pooled_unless_one_is_named(X, y):
    labels = np.digitize(y, [4, 9])
    models = [
        RandomForestClassifier(n_estimators=2, max_depth=2, random_state=k).fit(X, labels)
        for k in range(2)
    ]
    variance, covariance = 0.0, 0.0
    for k in range(3):
        curves = [
            oracles.pd_function(model.predict_proba, X, None, [0], X)[:, k] for model in models
        ]
        c = np.cov(curves, ddof=0)
        variance, covariance = variance + c.trace() / 2, covariance + c[0, 1]
        one = curve_stability(models, X, [0], target=k)
        assert_allclose(one.stability, c[0, 1] / (c.trace() / 2))
    assert_allclose(curve_stability(models, X, [0]).stability, covariance / variance)


def test_errors(X, y, model):
    with pytest.raises(ValueError, match="return_estimator=True"):
        curve_stability(cross_validate(model, X, y, cv=2), X)
    with pytest.raises(TypeError, match="estimators is a RandomForestRegressor"):
        curve_stability(model, X)
    with pytest.raises(ValueError, match="give at least two"):
        curve_stability([model], X)
    with pytest.raises(ValueError, match="column 9 does not exist"):
        curve_stability([model, model], X, [9])
    few = [RandomForestClassifier(2, random_state=0).fit(X, X[:, 0] > level) for level in (1,)]
    many = RandomForestClassifier(2, random_state=0).fit(X, X[:, 0] * 2)
    with pytest.raises(ValueError, match="1 and 6 outputs"):
        curve_stability([*few, many], X)
