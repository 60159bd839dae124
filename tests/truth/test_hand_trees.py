"""Two trees that predict alike and are explained differently along their paths.

The trees and every number are those of Proposition 3.1 and its proof in Liu, Steensgaard, Wright,
Pfister & Hiabu, "Fast Estimation of Partial Dependence Functions using Trees" (2024).
"""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
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
}
PATH_A = {
    "pd": [5.0, -0.5, 10.0],
    "component": [-2.0, -7.5, 12.5],
    "shap": [4.25, -1.25],
    "shap_interaction": [-2.0, -7.5, 6.25],
    "banzhaf": [4.25, -1.25, 12.5],
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
}


def toy(name):
    first = FIRST_COLUMN[name]
    second = 1 - first
    low, high = ((second, THRESHOLDS[second], *pair) for pair in ([10.0, -5.0], [-5.0, 10.0]))
    return ForestModel(make_forest([(first, THRESHOLDS[first], low, high)], 2, strict=True))


def booster(name):
    """The same as a genuine XGBoost model, from its JSON format."""
    xgboost = pytest.importorskip("xgboost")
    first = FIRST_COLUMN[name]
    second = 1 - first
    below = [750.0, 1750.0]
    middle = [250.0, 250.0]
    leaves = [500.0, *middle, 1500.0]
    tree = {
        "base_weights": [0.0, 0.0, 0.0, 10.0, -5.0, -5.0, 10.0],
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [0] * 7,
        "id": 0,
        "left_children": [1, 3, 5, -1, -1, -1, -1],
        "loss_changes": [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0],
        "parents": [2147483647, 0, 0, 1, 1, 2, 2],
        "right_children": [2, 4, 6, -1, -1, -1, -1],
        "split_conditions": [*(THRESHOLDS[j] for j in (first, second, second)), 10, -5, -5, 10],
        "split_indices": [first, second, second, 0, 0, 0, 0],
        "split_type": [0] * 7,
        "sum_hessian": [2500.0, *below, *leaves],
        "tree_param": {
            "num_deleted": "0",
            "num_feature": "2",
            "num_nodes": "7",
            "size_leaf_vector": "1",
        },
    }
    learner = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": "1"},
                "iteration_indptr": [0, 1],
                "tree_info": [0],
                "trees": [tree],
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": "0E0",
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": "2",
            "num_target": "1",
        },
        "objective": {
            "name": "reg:squarederror",
            "reg_loss_param": {"scale_pos_weight": "1"},
        },
    }
    model = {"learner": learner, "version": [2, 1, 0]}
    return xgboost.Booster(model_file=bytearray(json.dumps(model).encode()))


MODELS = {"forest": toy, "xgboost": booster}


@pytest.fixture(params=MODELS)
def make(request):
    return MODELS[request.param]


@pytest.mark.parametrize("name", ["A", "B"])
def test_the_trees_predict_alike(make, name):
    explainer = FastPDExplainer(max_order=2, features=[(0, 1)]).fit(make(name), CELLS, COUNTS)
    assert_allclose(explainer.transform(CELLS)[:, 0], [10.0, -5.0, -5.0, 10.0], rtol=1e-15)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("output", PARAMS)
@pytest.mark.parametrize("name", ["A", "B"])
def test_empirical(make, name, output, weighted):
    background = (CELLS, COUNTS) if weighted else (np.repeat(CELLS, COUNTS, axis=0), None)
    explainer = FastPDExplainer(output=output, **PARAMS[output]).fit(make(name), *background)
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
    explainer = VanillaPDExplainer(max_order=2).fit(toy(name), CELLS, COUNTS)
    assert_allclose(explainer.transform(ROW), [EMPIRICAL["pd"]], rtol=1e-13)


def test_cells_of_tree_b():
    """Another row, whose path-dependent components are no round numbers."""
    explainer = PathDependentExplainer(output="component").fit(toy("B"), CELLS, COUNTS)
    assert_allclose(explainer.transform([[0.0, 0.4]]), [[-7.5, 6 / 7, -75 / 14]], rtol=1e-13)
