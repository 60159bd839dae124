"""Displays on the scale of probabilities, against averages of the model's own."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingClassifier

from fastpd_sklearn.display import ImportanceDisplay, WaterfallDisplay


@pytest.fixture(scope="module")
def X():
    return np.random.default_rng(0).normal(size=(80, 2)).round(1)


@pytest.fixture(scope="module")
def model(X):
    y = X[:, 0] * X[:, 1] + X[:, 0] > 0.2
    return HistGradientBoostingClassifier(max_iter=8, min_samples_leaf=3).fit(X, y)


@pytest.fixture(scope="module")
def main_effects(X, model):
    """Of both features in every row: means of probabilities over the rows, less their mean."""
    out = np.empty(X.shape)
    for j in range(2):
        for i in range(len(X)):
            moved = X.copy()
            moved[:, j] = X[i, j]
            out[i, j] = model.predict_proba(moved)[:, 1].mean()
    return out - model.predict_proba(X)[:, 1].mean()


def test_a_row_goes_from_the_mean_to_its_probability(X, model, main_effects):
    display = WaterfallDisplay.from_estimator(model, X, row=4, response_method="predict_proba")
    probability = model.predict_proba(X)[:, 1]
    assert_allclose(display.base_value, probability.mean(), rtol=1e-12)
    found = dict(zip(display.terms, display.values, strict=True))
    assert_allclose([found["x0",], found["x1",]], main_effects[4], rtol=1e-10)
    interaction = probability[4] - probability.mean() - main_effects[4].sum()
    assert_allclose(found["x0", "x1"], interaction, rtol=1e-9)
    assert display.ax_.get_xlabel() == "probability of True"


def test_importances_of_terms_are_of_probabilities(X, model, main_effects):
    display = ImportanceDisplay.from_estimator(model, X, by="term", response_method="predict_proba")
    found = dict(zip(display.terms, display.importances[:, 0], strict=True))
    assert_allclose([found["x0",], found["x1",]], np.abs(main_effects).mean(axis=0), rtol=1e-10)


def test_shap_values_of_probabilities_are_refused(X, model):
    with pytest.raises(ValueError, match=r"output='shap'.*component"):
        ImportanceDisplay.from_estimator(model, X, response_method="predict_proba")
