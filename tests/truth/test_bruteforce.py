"""Every output of every reader, against the definition and the library's own prediction."""

from functools import cache

import numpy as np
import pytest

from tests import oracles
from tests.truth.cases import MAKERS, forest_predict, make_case, two_dimensional
from tests.truth.helpers import OUTPUTS, assert_is_game, make_explainer

WEIGHTS = np.arange(30) % 5 / 2.0
N_COLUMNS = 4
SETTINGS = {"plain": (None, None), "weighted groups": (WEIGHTS, {"both": [0, 2]})}
"""Weights of the background, and groups."""


def names_of(case):
    return (
        [f"x{j}" for j in range(N_COLUMNS)]
        if case.reading.input_map.names is None
        else list(case.reading.input_map.names)
    )


def players_of(case, groups):
    """Columns and names of the players, in the order of the explainers."""
    names = names_of(case)
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


def fitted(case, coverage, output, setting, **params):
    weights, groups = SETTINGS[setting]
    explainer = make_explainer(
        coverage, output, players_of(case, groups)[1], groups=groups, **params
    )
    if coverage == "path" and weights is None:
        return explainer.fit(case.model)
    return explainer.fit(case.model, case.background, weights)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MAKERS)
def test_interventional(name, setting, output):
    case = make_case(name)
    explainer = fitted(case, "empirical", output, setting)
    _, names = players_of(case, SETTINGS[setting][1])
    scale = case.reading.forest.scale()
    tolerance = 1e-5 if case.single else 1e-10
    game = interventional(name, setting, False)
    assert_is_game(explainer, case.explained, game, names, scale, tolerance)
    if case.single:  # the library's sums are good to seven digits, the sums of its trees are better
        game = interventional(name, setting, True)
        assert_is_game(explainer, case.explained, game, names, scale)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", MAKERS)
def test_path_dependent(name, setting, output):
    case = make_case(name)
    explainer = fitted(case, "path", output, setting)
    _, names = players_of(case, SETTINGS[setting][1])
    game = path_dependent(name, setting)
    assert_is_game(explainer, case.explained, game, names, case.reading.forest.scale())


@pytest.mark.parametrize("coverage", ["empirical", "path"])
@pytest.mark.parametrize("output", ["pd", "component", "banzhaf"])
@pytest.mark.parametrize("max_order", [1, 2, 3])
def test_orders(coverage, output, max_order):
    name = "lightgbm of classes"
    case = make_case(name)
    explainer = fitted(case, coverage, output, "plain", max_order=max_order)
    game = (
        path_dependent(name, "plain")
        if coverage == "path"
        else interventional(name, "plain", False)
    )
    assert max(len(term) for term in explainer.terms_) == max_order
    assert_is_game(explainer, case.explained, game, names_of(case), case.reading.forest.scale())


@pytest.mark.parametrize("name", MAKERS)
def test_cases_are_hard(name):
    """Features repeat on a path, and values lie exactly on thresholds and beside them."""
    case = make_case(name)
    forest = case.reading.forest
    assert any(repeats(forest, root) for root in forest.tree_start[:-1])
    inputs = case.inputs(case.background)
    if forest.single:
        inputs = inputs.astype(np.float32).astype(np.float64)
    numeric = np.flatnonzero((forest.left >= 0) & ~forest.is_categorical)
    gaps = [
        np.abs(inputs[:, forest.feature[i]] - forest.threshold[i])
        / np.spacing(np.float32(abs(forest.threshold[i]) + 1e-30))
        for i in numeric
    ]
    assert any(np.any(gap == 0) for gap in gaps)
    assert any(np.any((gap > 0) & (gap <= 1)) for gap in gaps)


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
