"""``grid_resolution="exact"``: all steps of a curve, and nothing but its steps."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from xgboost import XGBClassifier, XGBRegressor

from fastpd_sklearn.inspection import partial_dependence

from .oracle import close

MODELS = [
    RandomForestRegressor(3, max_depth=4, random_state=0),
    HistGradientBoostingRegressor(max_iter=5),
    XGBRegressor(n_estimators=5, max_depth=3, n_jobs=1),
    LGBMRegressor(n_estimators=5, verbose=-1, n_jobs=1),
    HistGradientBoostingClassifier(max_iter=5),
    XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1),
    LGBMClassifier(n_estimators=5, verbose=-1, n_jobs=1),
]


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def model(request, X, y, labels):
    classifies = hasattr(request.param, "predict_proba")
    return clone(request.param).fit(
        X, np.unique(labels, return_inverse=True)[1] if classifies else y
    )


def brute(model, X, j, points):
    """Mean response at points of a column, outputs first."""
    respond = getattr(model, "predict_proba", model.predict)
    rows = [np.column_stack([X[:, :j], np.full(len(X), p), X[:, j + 1 :]]) for p in points]
    return np.array([respond(r).mean(axis=0) for r in rows]).reshape(len(points), -1).T


def test_between_points_the_curve_is_what_it_is_at_one_of_them(model, X):
    result = partial_dependence(model, X, 3, grid_resolution="exact", kind="both")
    (points,), (side,) = result.grid_values, result.steps
    assert len(points) > 5
    assert points[0] <= X[:, 3].min()
    assert points[-1] >= X[:, 3].max()
    assert close(result.average, brute(model, X, 3, points))
    assert close(result.individual.mean(axis=1), result.average)
    middles = (points[1:] + points[:-1]) / 2
    shown = result.average[:, 1:] if side == "pre" else result.average[:, :-1]
    assert close(brute(model, X, 3, middles), shown)


def test_the_curve_is_the_whole_function(model, X):
    curve = partial_dependence(model, X, 3, grid_resolution="exact").curve
    anywhere = np.random.default_rng(0).uniform(-1, 2, 40)
    assert close(curve(anywhere), brute(model, X, 3, anywhere))
    assert close(curve([-1e9, 1e9]), brute(model, X, 3, [-1e9, 1e9]))
    if not isinstance(model, RandomForestRegressor | LGBMRegressor | LGBMClassifier):
        assert close(curve([np.nan]), brute(model, X, 3, [np.nan]))


def test_pairs(X, y):
    model = clone(MODELS[2]).fit(X, y)
    result = partial_dependence(model, X, [3, 0], grid_resolution="exact")
    assert result.steps == ("post", "post")
    assert result.average.shape[1:] == tuple(map(len, result.grid_values))
    rng = np.random.default_rng(0)
    for _ in range(10):
        i, j = (rng.integers(len(grid) - 1) for grid in result.grid_values)
        rows = X.copy()
        rows[:, 3] = result.grid_values[0][i : i + 2].mean()
        rows[:, 0] = result.grid_values[1][j : j + 2].mean()
        assert_allclose(result.average[0, i, j], model.predict(rows).mean(), rtol=1e-5)


def test_an_end_that_is_a_step_is_gone_beyond():
    x = np.repeat([0.0, 1.0, 2.0], 20)[:, None]
    high = XGBRegressor(n_estimators=1, max_depth=2, n_jobs=1).fit(x, x[:, 0])  # x < 2 is a test
    result = partial_dependence(high, x, 0, grid_resolution="exact")
    assert result.grid_values[0][-2] == 2.0 < result.grid_values[0][-1]
    assert result.average[0, -1] == result.average[0, -2] > result.average[0, -3]


def test_points_that_are_given_go_before_steps(X, y):
    model = clone(MODELS[0]).fit(X, y)
    result = partial_dependence(model, X, 0, grid_resolution="exact", custom_values={0: [0.3, 0.6]})
    assert result.grid_values[0].tolist() == [0.3, 0.6]
    assert result.steps == (None,)


def test_the_recursion_has_steps_too(X, y):
    model = clone(MODELS[0]).fit(X, y)
    result = partial_dependence(model, X, 3, grid_resolution="exact", method="recursion")
    plain = partial_dependence(
        model, X, 3, method="recursion", custom_values={3: result.grid_values[0]}
    )
    assert_allclose(result.average, plain.average)


def test_categories_have_their_values(X, y):
    rows = np.column_stack([X[:, 0], np.arange(len(X)) % 4])
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features=[1]).fit(rows, y)
    for params in ({}, {"categorical_features": [1]}):
        result = partial_dependence(model, rows, 1, grid_resolution="exact", **params)
        assert result.grid_values[0].tolist() == [0, 1, 2, 3]
        assert close(result.average, brute(model, rows, 1, [0, 1, 2, 3]))


@pytest.mark.parametrize("method", ["auto", "brute"])
@pytest.mark.filterwarnings("ignore:LinearRegression is not a tree ensemble")
def test_models_without_steps(method, X, y):
    with pytest.raises(ValueError, match=r"grid_resolution='exact': the steps .*LinearRegression"):
        partial_dependence(
            LinearRegression().fit(X, y), X, 0, grid_resolution="exact", method=method
        )
