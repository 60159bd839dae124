"""Values of the R implementation of FastPD, where it is right.

The files hold its results for two boosters of XGBoost and, for a forest that splits by ``<=`` on
doubles, the result of brute force. In the boosters' files a value of the background is stored as
the number of thresholds that are not above it, which is all that a tree sees of it; the least
value of that cell, its threshold, stands for it here.

Another file holds the boxes of a random planted forest that its R package has fitted, and the
components that the package gives with ``purify(mode = 1)``, which are the right ones.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from fastpd_sklearn.forest import Forest
from fastpd_sklearn.forest._forest import ForestBuilder
from tests.truth.boosters import make_booster
from tests.truth.toys import ForestModel

BOOSTERS = ["dgp1", "dgp2"]
CLASSES = {"fastpd": FastPDExplainer, "pathdep": PathDependentExplainer}


@cache
def load(name):
    return json.loads((Path(__file__).parent / "data" / f"{name}.json").read_text())


def background(name):
    data = load(name)
    columns = []
    for j, cells in enumerate(data["cells"]):
        edges = {
            number
            for tree in data["trees"]
            for number, left, feature in zip(
                tree["number"], tree["left"], tree["feature"], strict=True
            )
            if left >= 0 and feature == j
        }
        edges = np.array(sorted(edges))
        columns.append(np.concatenate([[edges[0] - 1], edges])[cells])
    return np.column_stack(columns)


def booster(name):
    data = load(name)
    return make_booster(data["trees"], len(data["cells"]), data["base_score"].strip("[]"))


def forest(trees, n_inputs, digits, strict, single, intercept=0.0, weight=1.0):
    """The trees with their leaf values as decimal numbers of so many digits."""
    builder = ForestBuilder(n_inputs, 1, strict, single)
    for tree in trees:
        builder.add(
            left=tree["left"],
            right=tree["right"],
            feature=tree["feature"],
            threshold=np.array(tree["number"], np.float32 if single else np.float64),
            value=[weight * float(f"{v:.{digits}g}") for v in tree["number"]],
            cover=tree.get("cover", np.ones(len(tree["left"]))),
        )
    return ForestModel(builder.build(intercept))


def rounded(name):
    """The booster as the R implementation reads it, from a text with nine digits."""
    data = load(name)
    base_score = np.float64(np.float32(data["base_score"].strip("[]")))
    return forest(data["trees"], len(data["cells"]), 9, True, True, base_score)


def compare(explainer, name, truth, tolerance):
    data = load(name)
    X = background(name)[data["rows"]]
    terms = [tuple(f"x{j}" for j in term) for term in data["terms"]]
    assert explainer.terms_ == tuple(terms[: len(explainer.terms_)])
    truth = np.array(data[truth])
    if explainer.output == "component":
        assert_allclose(explainer.intercept_, truth[0, :1], rtol=0, atol=tolerance)
        truth = truth[:, 1 : 1 + len(terms)]
    assert_allclose(explainer.transform(X), truth, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("make", "tolerance"), [(booster, 1e-8), (rounded, 1e-11)])
@pytest.mark.parametrize("method", CLASSES)
@pytest.mark.parametrize("name", BOOSTERS)
def test_components(name, method, make, tolerance):
    explainer = CLASSES[method](output="component", max_order=None)
    explainer.fit(make(name), background(name))
    assert len(explainer.terms_) == len(load(name)["terms"])
    compare(explainer, name, f"{method}_components", tolerance)


@pytest.mark.parametrize(("make", "tolerance"), [(booster, 1e-8), (rounded, 1e-11)])
@pytest.mark.parametrize("method", CLASSES)
@pytest.mark.parametrize("name", BOOSTERS)
def test_shap(name, method, make, tolerance):
    explainer = CLASSES[method](output="shap").fit(make(name), background(name))
    compare(explainer, name, f"{method}_shap", tolerance)


@pytest.mark.parametrize("name", BOOSTERS)
def test_the_hessians_are_the_counts(name):
    explainer = PathDependentExplainer(output="component", max_order=None).fit(booster(name))
    compare(explainer, name, "pathdep_components", 1e-8)


def ranger():
    trees = load("ranger")["trees"]
    return forest(trees, 4, 17, strict=False, single=False, weight=1 / len(trees))


def test_forest_of_doubles():
    data = load("ranger")
    X = np.array(data["x"])
    explainer = FastPDExplainer(output="component", max_order=None).fit(ranger(), X)
    assert explainer.terms_ == tuple(tuple(f"x{j}" for j in term) for term in data["terms"])
    exact = np.array(data["exact"])
    rows = X[data["rows"]]
    assert_allclose(explainer.intercept_, exact[0, :1], rtol=1e-12)
    assert_allclose(explainer.transform(rows), exact[:, 1:], rtol=0, atol=1e-12)
    total = explainer.intercept_ + explainer.transform(rows).sum(axis=1)
    assert_allclose(total, data["predictions"], rtol=0, atol=1e-12)


def planted_forest():
    data = load("planted")
    lower = np.full((len(data["boxes"]), 4), -np.inf)
    upper = np.full((len(data["boxes"]), 4), np.inf)
    value = np.zeros(len(data["boxes"]))
    for box, (number, *sides) in enumerate(data["boxes"]):
        value[box] = number / data["n_families"]
        for column, low, high in sides:
            lower[box, column] = -np.inf if low is None else low
            upper[box, column] = np.inf if high is None else high
    return Forest.from_boxes(lower, upper, value)


def test_planted_forest():
    data = load("planted")
    X, forest = np.array(data["x"]), planted_forest()
    truth, rows = np.array(data["components"]), X[data["rows"]]
    assert_allclose(forest.predict(rows), data["predictions"], rtol=0, atol=1e-12)
    explainer = FastPDExplainer(output="component", max_order=None).fit(forest, X)
    assert_allclose(explainer.intercept_, truth[0, :1], rtol=0, atol=1e-12)
    place = {term: k for k, term in enumerate(explainer.terms_)}
    values = explainer.transform(rows)
    for k, term in enumerate(data["terms"], 1):
        column = place.pop(tuple(f"x{j}" for j in term), None)
        found = np.zeros(len(rows)) if column is None else values[:, column]
        assert_allclose(found, truth[:, k], rtol=0, atol=1e-12)
    assert not place
