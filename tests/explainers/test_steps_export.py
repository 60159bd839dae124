"""Curves and surfaces as plain data, against partial dependence at points."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingClassifier

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer


def setting(n_classes=1):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3)).round(1)
    if n_classes == 1:
        y = X[:, 0] + X[:, 1] * X[:, 2]
        return GradientBoostingRegressor(n_estimators=5, random_state=0).fit(X, y), X
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 2] = rng.integers(0, 4, 70)
    model = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=4, categorical_features=[2])
    return model.fit(X, (X[:, 2] + (np.nan_to_num(X[:, 0]) > 0)) % n_classes), X


@pytest.mark.parametrize("n_classes", [1, 3])
def test_a_curve_as_plain_data(n_classes):
    model, X = setting(n_classes)
    result = FastPDExplainer().fit(model, X).partial_dependence(0)
    plain = json.loads(json.dumps(result.curve.to_dict()))
    assert plain["closed"] == "right"
    levels = np.array(plain["levels"])
    place = np.searchsorted(plain["breaks"], result.grid_values[0])
    assert_allclose(levels[:, place], result.average, rtol=0, atol=1e-12)
    frame = result.curve.to_frame()
    for x, value in zip(result.grid_values[0], result.average.T, strict=True):
        lines = frame[(frame.lower < x) & (x <= frame.upper)]
        assert_allclose(lines.value, value, rtol=0, atol=1e-12)
    missing = frame[frame.lower.isna()].value
    assert_allclose(missing, [] if n_classes == 1 else plain["missing"])
    assert ("output" in frame) == (n_classes > 1)


def test_a_curve_of_categories_as_plain_data():
    model, X = setting(3)
    curve = FastPDExplainer().fit(model, X).partial_dependence(2).curve
    plain, frame = curve.to_dict(), curve.to_frame()
    known = [c for c in plain["categories"] if c is not None]
    truth = VanillaPDExplainer().fit(model, X).partial_dependence(2, known).average
    assert_allclose(np.array(plain["levels"])[:, : len(known)], truth, rtol=0, atol=1e-12)
    assert_array_equal(frame.value, np.ravel(plain["levels"]))
    assert_array_equal(frame.category, np.tile(curve.categories, 3))


@pytest.mark.parametrize("n_classes", [1, 3])
def test_a_surface_is_the_joint_partial_dependence(n_classes):
    model, X = setting(n_classes)
    surface = FastPDExplainer().fit(model, X).step_surface((1, 0))
    x, y = X[:20, 1], X[:20, 0]
    truth = VanillaPDExplainer(features=[(0, 1)]).fit(model, X).transform(X[:20])
    assert_allclose(surface(x, y), truth.T, rtol=0, atol=1e-12)
    frame, plain = surface.to_frame(), json.loads(json.dumps(surface.to_dict()))
    assert_array_equal(frame.value, np.ravel(plain["levels"]))
    seen = ~np.isnan(x) & ~np.isnan(y)
    for a, b, value in zip(x[seen], y[seen], surface(x, y).T[seen], strict=True):
        inside = (frame.lower_0 < a) & (a <= frame.upper_0)
        inside &= (frame.lower_1 < b) & (b <= frame.upper_1)
        assert_array_equal(frame[inside].value, value)
    if n_classes == 1:
        assert np.isnan(surface([np.nan], [0.0])).all()


def test_what_has_no_surface(monkeypatch):
    model, X = setting(3)
    explainer = FastPDExplainer().fit(model, X)
    with pytest.raises(ValueError, match="belongs to two features"):
        explainer.step_surface(0)
    with pytest.raises(ValueError, match=r"no single column of numbers.*grid"):
        explainer.step_surface((0, 2))
    monkeypatch.setattr("fastpd_sklearn.explainers._dependence.MOST_LEVELS", 10)
    with pytest.raises(ValueError, match=r"rectangles, which makes \d+ levels.*grid"):
        explainer.step_surface((0, 1))


def test_labels_as_json_and_their_missing_value():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    labels = np.array(["a", "b", None], dtype=object)[rng.integers(0, 3, 90)]
    X = pd.DataFrame({"k": pd.Categorical(labels), "x": rng.normal(size=90)})
    model = HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype")
    model.fit(X, (labels == "b") ^ (X["x"] > 0))
    curve = (
        FastPDExplainer(response_method="predict_proba").fit(model, X).partial_dependence("k").curve
    )
    plain = json.loads(json.dumps(curve.to_dict(), allow_nan=False))
    assert plain["categories"] == ["a", "b", None]
    held = X.assign(k=pd.Categorical([None] * 90, categories=["a", "b"]))
    truth = model.predict_proba(held)[:, 1].mean()
    for missing in (None, np.nan, pd.NA):
        assert_allclose(curve([missing]), [[truth]], rtol=1e-12)
    with pytest.raises(ValueError, match="'c' is not among"):
        curve(["c"])
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        curve([["a", "b"]])


def test_a_test_for_missing_alone_has_no_break():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    X[::3, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3, max_leaf_nodes=2)
    model.fit(X, np.isnan(X[:, 0]))
    explainer = FastPDExplainer().fit(model, X)
    curve = explainer.partial_dependence(0).curve
    assert not len(curve.breaks)
    assert curve.missing[0] > curve([0.0, np.inf]).max() == curve([-np.inf]).max()
    surface = explainer.step_surface((0, 1))
    plain = [curve.to_dict(), surface.to_dict()]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert surface([np.nan], [0.0]) == curve.missing[0]


@pytest.mark.parametrize("bad", [["a"], "x", object()])
def test_points_that_are_no_numbers(bad):
    model, X = setting()
    explainer = FastPDExplainer().fit(model, X)
    for call in (
        explainer.partial_dependence(0).curve,
        lambda x: explainer.step_surface((0, 1))(0.0, x),
    ):
        with pytest.raises(ValueError, match="should be numbers, NaN where they are missing"):
            call(bad)
    with pytest.raises(ValueError, match=r"x has shape \(2, 2\)"):
        explainer.partial_dependence(0).curve(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="x has 2 points and y has 3"):
        explainer.step_surface((0, 1))([0, 1], [0, 1, 2])
