"""Every output of every reader, against the definition and the library's own prediction."""

from functools import cache

import numpy as np
import pytest

from tests import oracles
from tests.truth.cases import MAKERS, N_BACKGROUND, forest_predict, make_case, two_dimensional
from tests.truth.helpers import assert_is_game, make_explainer
from tests.versions import older

WEIGHTS = np.arange(N_BACKGROUND) % 5 / 2.0
N_COLUMNS = 4
SETTINGS = {"weights": (WEIGHTS, None), "groups": (None, {"both": [0, 2]})}
"""Weights of the background, and groups."""

# Up to order 2 other kernels may be at work than for larger sets.
VALUES = [
    ("pd", 1),
    ("pd", 2),
    ("pd", None),
    ("component", 2),
    ("component", None),
    ("shap", "auto"),
    ("shap_interaction", "auto"),
    ("banzhaf", 2),
    ("banzhaf", None),
    ("total", 2),
    ("total", None),
]
EVERYTHING = pytest.mark.parametrize(("output", "max_order"), VALUES)


def players_of(case, groups):
    """Columns and names of the players, in the order of the explainers."""
    names = case.reading.input_map.names or [f"x{j}" for j in range(N_COLUMNS)]
    if groups is None:
        return [[j] for j in range(N_COLUMNS)], names
    return [[0, 2], [1], [3]], ["both", names[1], names[3]]


@cache
def interventional(name, setting, by_forest):
    case, (weights, groups) = make_case(name), SETTINGS[setting]

    def predict(rows):
        return forest_predict(case, rows) if by_forest else two_dimensional(case.respond, rows)

    players, _ = players_of(case, groups)
    return oracles.interventional_game(predict, case.background, weights, case.explained, players)


@cache
def path_dependent(name, setting):
    case, (weights, groups) = make_case(name), SETTINGS[setting]
    forest = case.reading.forest
    covers = [forest.cover]
    if weights is not None:
        covers = [oracles.passages(forest, case.inputs(case.background)) @ weights, *covers]
    players, _ = players_of(case, groups)
    return oracles.path_game(forest, covers, case.inputs(case.explained), players)


def fitted(case, coverage, output, setting, max_order):
    weights, groups = SETTINGS[setting]
    names = players_of(case, groups)[1]
    explainer = make_explainer(coverage, output, names, max_order=max_order, groups=groups)
    if coverage == "path" and weights is None:
        return explainer.fit(case.model)
    return explainer.fit(case.model, case.background, sample_weight=weights)


@EVERYTHING
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MAKERS)
def test_interventional(name, setting, output, max_order):
    case = make_case(name)
    explainer = fitted(case, "empirical", output, setting, max_order)
    _, names = players_of(case, SETTINGS[setting][1])
    scale = case.reading.forest.scale()
    tolerance = 1e-5 if case.single else 1e-10
    game = interventional(name, setting, False)
    assert_is_game(explainer, case.explained, game, names, scale, tolerance)
    if case.single:  # the library's sums are good to seven digits, the sums of its trees are better
        game = interventional(name, setting, True)
        assert_is_game(explainer, case.explained, game, names, scale)


@EVERYTHING
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MAKERS)
def test_path_dependent(name, setting, output, max_order):
    if name == "xgboost vector leaves" and older("xgboost", "3.0"):
        pytest.skip("XGBoost keeps no covers of trees with vector leaves before 3.0")
    case = make_case(name)
    explainer = fitted(case, "path", output, setting, max_order)
    _, names = players_of(case, SETTINGS[setting][1])
    game = path_dependent(name, setting)
    assert_is_game(explainer, case.explained, game, names, case.reading.forest.scale())


@pytest.mark.parametrize("name", MAKERS)
def test_cases_are_hard(name):
    """Features repeat on a path, and values lie within one float of thresholds, on both sides."""
    case = make_case(name)
    forest = case.reading.forest
    assert any(repeats(forest, root) for root in forest.tree_start[:-1])
    # A split of the missing values from all others has a threshold beyond all float32.
    nodes = np.flatnonzero(np.abs(forest.threshold) < np.finfo(np.float32).max)
    values = case.inputs(case.background)[:, forest.feature[nodes]]
    edges = forest.threshold[nodes].astype(np.float32)
    with np.errstate(over="ignore"):
        steps = (values.astype(np.float32) - edges) / np.spacing(np.abs(edges))
    assert np.any((steps <= 0) & (steps >= -1))
    assert np.any((steps >= 0) & (steps <= 1))


def repeats(forest, root):
    stack = [(root, ())]
    while stack:
        node, above = stack.pop()
        if forest.left[node] < 0:
            continue
        if forest.feature[node] in above:
            return True
        path = (*above, forest.feature[node])
        stack += [(forest.left[node], path), (forest.right[node], path)]
    return False
