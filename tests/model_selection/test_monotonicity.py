"""Monotonicity of the exact curve, against predictions at every step and numbers by hand."""

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.isotonic import IsotonicRegression
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from fastpd_sklearn.model_selection import monotonicity_violation
from tests import oracles
from tests.model_selection.conftest import WEIGHTS


def thresholds(forest, feature):
    trees = [tree.tree_ for tree in forest.estimators_]
    return np.unique(np.concatenate([tree.threshold[tree.feature == feature] for tree in trees]))


def curve_at(predict, X, weights, feature, points):
    """Partial dependence at some points, by prediction; outputs first."""
    rows = np.zeros((len(points), X.shape[1]))
    rows[:, feature] = points
    return oracles.pd_function(predict, X, weights, [feature], rows).T


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
@pytest.mark.parametrize("feature", [1, 3])
def test_variation_against_predictions_within_every_piece(model, X, feature, direction, weights):
    kept = X[:, feature] if weights is None else X[weights > 0, feature]
    low, high = kept.min(), kept.max()
    breaks = thresholds(model, feature)
    edges = [low, *breaks[(breaks > low) & (breaks < high)], high]
    middles = np.add(edges[1:], edges[:-1]) / 2
    steps = np.diff(curve_at(model.predict, X, weights, feature, middles)[0])
    wrong = -steps[steps < 0].sum() if direction == "increasing" else steps[steps > 0].sum()
    assert feature == 1 or 0.05 < wrong / np.abs(steps).sum() < 0.95
    found = monotonicity_violation(model, X, feature, direction, sample_weight=weights)
    assert_allclose(found, wrong / np.abs(steps).sum(), rtol=1e-9)
    found = monotonicity_violation(
        model, X, feature, direction, relative=False, sample_weight=weights
    )
    assert_allclose(found, wrong, rtol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("direction", ["increasing", "decreasing"])
def test_variance_is_the_distance_from_isotonic_regression(model, X, direction, weights):
    curve = curve_at(model.predict, X, weights, 3, X[:, 3])[0]
    w = np.ones(60) if weights is None else weights
    fit = IsotonicRegression(increasing=direction == "increasing")
    nearest = fit.fit(X[:, 3], curve, sample_weight=w).predict(X[:, 3])
    wrong = np.average((curve - nearest) ** 2, weights=w)
    total = np.average((curve - np.average(curve, weights=w)) ** 2, weights=w)
    assert wrong / total > 0.01
    found = monotonicity_violation(
        model, X, 3, direction, measure="variance", sample_weight=weights
    )
    assert_allclose(found, wrong / total, rtol=1e-9)


def one_column(levels):
    X = np.arange(len(levels), dtype=float)[:, None]
    return DecisionTreeRegressor().fit(X, levels), X


def test_by_hand():
    model, X = one_column([0.0, 2.0, 1.0, 2.0])  # +2 -1 +1
    assert monotonicity_violation(model, X, 0) == 1 / 4
    assert monotonicity_violation(model, X, 0, "decreasing") == 3 / 4
    assert monotonicity_violation(model, X, 0, relative=False) == 1
    # The nearest increasing curve is 0, 1.5, 1.5, 2: distances of 1/2 at two of four rows.
    assert_allclose(monotonicity_violation(model, X, 0, measure="variance", relative=False), 1 / 8)
    assert_allclose(
        monotonicity_violation(model, X, 0, measure="variance"), 1 / 8 / np.var([0, 2, 1, 2])
    )


@pytest.mark.parametrize("measure", ["variation", "variance"])
def test_extremes(measure):
    model, X = one_column([0.0, 1.0, 5.0, 7.0])
    assert monotonicity_violation(model, X, 0, measure=measure) == 0
    assert_allclose(monotonicity_violation(model, X, 0, "decreasing", measure=measure), 1)
    flat, X = one_column([3.0, 3.0, 3.0])
    for direction in ("increasing", "decreasing"):
        assert monotonicity_violation(flat, X, 0, direction, measure=measure) == 0


def test_only_the_range_of_the_data_counts():
    model, X = one_column([5.0, 1.0, 2.0, 3.0, 0.0])
    assert monotonicity_violation(model, X[1:4], 0) == 0
    assert monotonicity_violation(model, X[1:2], 0) == 0
    weights = [0.0, 1.0, 1.0, 1.0, 0.0]
    for measure in ("variation", "variance"):
        assert monotonicity_violation(model, X, 0, measure=measure) > 0
        assert monotonicity_violation(model, X, 0, measure=measure, sample_weight=weights) == 0


MONOTONE = {
    "xgboost": XGBRegressor(
        n_estimators=60, max_depth=4, n_jobs=1, monotone_constraints=(0, 0, 0, 1)
    ),
    "histogram": HistGradientBoostingRegressor(
        max_iter=30, monotonic_cst=[0, 0, 0, 1], min_samples_leaf=3
    ),
    "lightgbm": LGBMRegressor(
        n_estimators=30,
        monotone_constraints=[0, 0, 0, 1],
        min_child_samples=3,
        verbose=-1,
        n_jobs=1,
    ),
}


@pytest.mark.parametrize("name", MONOTONE)
def test_constrained_models_have_no_violation_at_all(name, X, y):
    model = MONOTONE[name].fit(X, y + 1e4)  # a level that rounding is large of
    for measure in ("variation", "variance"):
        assert monotonicity_violation(model, X, 3, measure=measure) == 0
        assert monotonicity_violation(model, X, 3, "decreasing", measure=measure) > 0.9
        assert monotonicity_violation(model, X, 0, "decreasing", measure=measure) > 0


def test_missing_values_have_no_place_in_the_order(X, y):
    X = X.copy()
    X[::3, 3] = np.nan
    model = XGBRegressor(n_estimators=10, n_jobs=1).fit(X, y)
    present = X[~np.isnan(X[:, 3]), 3]
    edges = np.unique(present)
    steps = np.diff(curve_at(model.predict, X, None, 3, edges)[0])  # XGBoost splits at values
    expected = -steps[steps < 0].sum() / np.abs(steps).sum()
    assert_allclose(monotonicity_violation(model, X, 3), expected, rtol=1e-4)
    X[:, 3] = np.nan
    assert monotonicity_violation(model, X, 3) == 0


def test_names(X, y, model):
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = type(model)(**model.get_params()).fit(frame, y)
    assert monotonicity_violation(named, frame, "d") == monotonicity_violation(model, X, 3)


def test_categories_have_no_order():
    X = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "green"] * 10), "size": range(30)})
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3).fit(X, X["size"])
    with pytest.raises(ValueError, match=r"feature='colour': .* categories, without an order"):
        monotonicity_violation(model, X, "colour")
    assert monotonicity_violation(model, X, "size") == 0


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((0, "up"), "direction='up' is none of 'increasing', 'decreasing'"),
        ((0, 1), "direction=1 is none of"),
        ((7,), "column 7 does not exist"),
    ],
)
def test_errors(model, X, args, message):
    with pytest.raises(ValueError, match=message):
        monotonicity_violation(model, X, *args)
    with pytest.raises(TypeError, match=r"\(0, 1\) is neither a column number"):
        monotonicity_violation(model, X, (0, 1))
    with pytest.raises(ValueError, match="measure='std' is none of"):
        monotonicity_violation(model, X, 0, measure="std")
