"""Two trees that predict alike and are explained differently along their paths.

The trees and every number are those of Proposition 3.1 and its proof in Liu, Steensgaard, Wright,
Pfister & Hiabu, "Fast Estimation of Partial Dependence Functions using Trees" (2024).
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from tests.truth.boosters import make_booster
from tests.truth.toys import ForestModel, make_forest

CELLS = np.array([[0.0, 0.0], [0.0, 0.4], [0.7, 0.0], [0.7, 0.4]])
COUNTS = np.array([500, 250, 250, 1500])
ROW = np.array([[0.1, 0.2]])
FIRST_COLUMN = {"A": 0, "B": 1}
THRESHOLDS = [0.5, 0.3]

EMPIRICAL = {
    "pd": [-0.5, -0.5, 10.0],
    "component": [-7.5, -7.5, 18.0],
    "shap": [1.5, 1.5],
    "shap_interaction": [-7.5, -7.5, 9.0],
    "banzhaf": [1.5, 1.5, 18.0],
    "total": [10.5, 10.5, 18.0],
}
PATH_A = {
    "pd": [5.0, -0.5, 10.0],
    "component": [-2.0, -7.5, 12.5],
    "shap": [4.25, -1.25],
    "shap_interaction": [-2.0, -7.5, 6.25],
    "banzhaf": [4.25, -1.25, 12.5],
    "total": [10.5, 5.0, 12.5],
}
SWAPPED = [1, 0, 2]  # tree B asks for the second feature first
PATH = {
    "A": PATH_A,
    "B": {output: np.array(v)[SWAPPED[: len(v)]].tolist() for output, v in PATH_A.items()},
}
PARAMS = {
    "pd": {"max_order": 2},
    "component": {},
    "shap": {},
    "shap_interaction": {},
    "banzhaf": {"max_order": 2},
    "total": {"max_order": 2},
}


def toy(name):
    first = FIRST_COLUMN[name]
    second = 1 - first
    low, high = ((second, THRESHOLDS[second], *pair) for pair in ([10.0, -5.0], [-5.0, 10.0]))
    return ForestModel(make_forest([(first, THRESHOLDS[first], low, high)], 2, strict=True))


def booster(name):
    """The same as a genuine XGBoost model."""
    first = FIRST_COLUMN[name]
    second = 1 - first
    tree = {
        "left": [1, 3, 5, -1, -1, -1, -1],
        "right": [2, 4, 6, -1, -1, -1, -1],
        "feature": [first, second, second, -1, -1, -1, -1],
        "number": [*(THRESHOLDS[j] for j in (first, second, second)), 10.0, -5.0, -5.0, 10.0],
        "cover": [2500.0, 750.0, 1750.0, 500.0, 250.0, 250.0, 1500.0],
    }
    return make_booster([tree], 2)


MODELS = {"forest": toy, "xgboost": booster}


@pytest.fixture(params=MODELS)
def make(request):
    return MODELS[request.param]


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_trees_predict_alike(make, name):
    explainer = FastPDExplainer(max_order=2, features=[(0, 1)])
    explainer.fit(make(name), CELLS, sample_weight=COUNTS)
    assert_allclose(explainer.transform(CELLS)[:, 0], [10.0, -5.0, -5.0, 10.0], rtol=1e-15)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("output", PARAMS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_empirical(make, name, output, weighted):
    background = CELLS if weighted else np.repeat(CELLS, COUNTS, axis=0)
    weights = COUNTS if weighted else None
    explainer = FastPDExplainer(output=output, **PARAMS[output])
    explainer.fit(make(name), background, sample_weight=weights)
    assert_allclose(explainer.intercept_, [7.0], rtol=1e-14)
    assert_allclose(explainer.transform(ROW), [EMPIRICAL[output]], rtol=1e-13)


@pytest.mark.parametrize("output", PARAMS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_path_dependent(make, name, output):
    explainer = PathDependentExplainer(output=output, **PARAMS[output])
    explainer.fit(make(name), np.repeat(CELLS, COUNTS, axis=0))
    assert_allclose(explainer.intercept_, [7.0], rtol=1e-14)
    assert_allclose(explainer.transform(ROW), [PATH[name][output]], rtol=1e-13)


@pytest.mark.parametrize("output", PARAMS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_path_dependent_by_the_model_s_own_covers(name, output):
    explainer = PathDependentExplainer(output=output, **PARAMS[output]).fit(booster(name))
    assert_allclose(explainer.transform(ROW), [PATH[name][output]], rtol=1e-13)


@pytest.mark.parametrize("name", ["A", "B"])
def test_definition(name):
    explainer = VanillaPDExplainer(max_order=2).fit(toy(name), CELLS, sample_weight=COUNTS)
    assert_allclose(explainer.transform(ROW), [EMPIRICAL["pd"]], rtol=1e-13)


def test_cells_of_tree_b():
    """Another row, whose path-dependent components are no round numbers."""
    explainer = PathDependentExplainer(output="component").fit(
        toy("B"), CELLS, sample_weight=COUNTS
    )
    assert_allclose(explainer.transform([[0.0, 0.4]]), [[-7.5, 6 / 7, -75 / 14]], rtol=1e-13)
