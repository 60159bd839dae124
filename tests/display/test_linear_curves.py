"""Curves that are straight between their breaks are drawn with their slopes."""

import lightgbm as lgb
import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.model_selection import GridSearchCV

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import CandidateCurvesDisplay, MainEffectDisplay
from fastpd_sklearn.explainers import LinearCurve
from fastpd_sklearn.inspection import PartialDependenceDisplay

SMALL = {"n_estimators": 5, "num_leaves": 5, "n_jobs": 1, "verbose": -1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(250, 2))
    y = np.abs(X[:, 0]) + X[:, 1] * (X[:, 0] > 0)
    X[rng.random(250) < 0.1, 1] = np.nan
    return X, y


@pytest.fixture(scope="module")
def model(data):
    return lgb.LGBMRegressor(linear_tree=True, **SMALL).fit(*data)


def assert_drawn(line, curve, shift=0.0):
    x, drawn = line.get_data()
    points = np.linspace(x[0], x[-1], 101)
    assert_allclose(np.interp(points, x, drawn), curve(points)[0] - shift, atol=1e-9)
    assert line.get_drawstyle() == "default"


def test_main_effects_have_slopes(data, model):
    X, _ = data
    display = MainEffectDisplay.from_estimator(model, X)
    explainer = FastPDExplainer().fit(model, X)
    for k, lines in enumerate(display.lines_):
        curve = explainer.partial_dependence(k).curve
        assert isinstance(curve, LinearCurve)
        assert_drawn(np.ravel(lines)[0], curve, explainer.intercept_[0])


def test_exact_partial_dependence_has_slopes(data, model):
    X, _ = data
    display = PartialDependenceDisplay.from_estimator(model, X, [0], grid_resolution="exact")
    assert_drawn(
        display.lines_.ravel()[0], FastPDExplainer().fit(model, X).partial_dependence(0).curve
    )


def test_candidates_with_steps_beside_those_with_slopes(data):
    X, y = data
    grid = {"linear_tree": [False, True]}
    search = GridSearchCV(lgb.LGBMRegressor(**SMALL), grid, cv=2).fit(X, y)
    display = CandidateCurvesDisplay.from_search(search, X, y, 1)
    styles = {
        line.get_drawstyle() for line in display.axes_.ravel()[0].lines if len(line.get_xdata()) > 2
    }
    assert styles == {"default", "steps-post"}
