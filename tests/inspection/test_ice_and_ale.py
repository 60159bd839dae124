"""The functions give what the explainers give, in scikit-learn's terms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.inspection import partial_dependence
from sklearn.svm import LinearSVC

from fastpd_sklearn import ALEExplainer, ICEExplainer
from fastpd_sklearn.inspection import (
    accumulated_local_effects,
    individual_conditional_expectation,
)


@pytest.fixture(scope="module")
def data():
    return np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def regressor(data):
    model = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0)
    return model.fit(data, data[:, 0] * data[:, 1])


@pytest.fixture(scope="module")
def classifier(data):
    model = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
    return model.fit(data, data[:, 0] * data[:, 1] > 0)


def test_curves_are_those_of_scikit_learn(data, regressor, classifier):
    for model in (regressor, classifier, LinearSVC().fit(data, data[:, 0] > 0)):
        found = individual_conditional_expectation(model, data, 1, grid_resolution=7)
        truth = partial_dependence(model, data, [1], kind="both", method="brute", grid_resolution=7)
        assert_allclose(found.grid_values[0], truth["grid_values"][0])
        assert_allclose(found.individual, truth["individual"], atol=1e-12)
        assert_allclose(found.average, truth["average"], atol=1e-12)


def test_kinds_of_curves(data, regressor):
    both = individual_conditional_expectation(regressor, data, [0, 2], grid_resolution=5)
    assert len(both) == 2
    mean = individual_conditional_expectation(
        regressor, data, [0, 2], grid_resolution=5, kind="average"
    )
    lines = individual_conditional_expectation(
        regressor, data, 2, grid_resolution=5, kind="individual"
    )
    assert "individual" not in mean[0]
    assert "average" not in lines
    assert_allclose(mean[1].average, both[1].average, atol=1e-12)
    assert_array_equal(lines.individual, both[1].individual)
    with pytest.raises(ValueError, match="kind='all' is none of 'individual'"):
        individual_conditional_expectation(regressor, data, 2, kind="all")


def test_curves_take_the_explainers_parameters(data, regressor):
    found = individual_conditional_expectation(
        regressor, data, "x1", grid_resolution="exact", centered={"x1": 0.0}
    )
    explainer = ICEExplainer(features=[1], grid_resolution="exact", centered={1: 0.0})
    (truth,) = explainer.fit(regressor, data).explain(data)
    assert_array_equal(found.individual, truth.individual)
    assert_array_equal(found.breaks, truth.breaks)


def test_effects_are_those_of_the_explainer(data, regressor):
    one, both = accumulated_local_effects(regressor, data, [0, (1, 0)], n_bins=5)
    curve, surface = ALEExplainer(features=[0, (1, 0)], n_bins=5).fit(regressor, data).effects_
    assert_array_equal(one.effect, curve.effect)
    assert_array_equal(one.lower, curve.lower)
    assert_array_equal(both.effect, surface.effect)
    assert_array_equal(both.is_filled, surface.is_filled)
    assert both.features == ("x1", "x0")
    assert_array_equal(both.grid_values[1], one.grid_values[0])
    alone = accumulated_local_effects(regressor, data, (1, 0), n_bins=5)
    assert_array_equal(alone.effect, both.effect)


def test_effects_are_on_the_scale_of_scikit_learn(data, classifier):
    found = accumulated_local_effects(classifier, data, 0, n_bins=5)
    truth = ALEExplainer(features=[0], n_bins=5, response_method="predict_proba")
    assert_array_equal(found.effect, truth.fit(classifier, data).effects_[0].effect)
    margin = accumulated_local_effects(classifier, data, 0, n_bins=5, response_method="raw")
    assert np.abs(margin.effect - found.effect).max() > 0.01
