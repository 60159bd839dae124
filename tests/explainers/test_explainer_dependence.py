"""Partial dependence on grids, and the exact curves."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import VotingRegressor
from sklearn.inspection import partial_dependence
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import (
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.explainers import _fastpd
from fastpd_sklearn.explainers._curve import effective_breaks, piece_points
from tests.explainers import toys
from tests.explainers.toys import StumpExplainer, Stumps


@pytest.mark.parametrize("output", ["pd", "shap", "banzhaf"])
@pytest.mark.parametrize("features", [1, (0, 2)])
def test_same_as_brute_force(interventional, model, X, output, features):
    explainer = interventional(output=output).fit(model, X)
    result = explainer.partial_dependence(features)
    columns = [features] if isinstance(features, int) else list(features)
    truth = partial_dependence(
        model, X, columns, method="brute", kind="average", grid_resolution=10**6
    )
    for ours, theirs in zip(result.grid_values, truth.grid_values, strict=True):
        assert_allclose(ours, theirs)
    assert_allclose(result.average, truth.average, rtol=1e-10)


def test_axes_follow_the_request(explainer_class, model, X):
    explainer = explainer_class().fit(model, X)
    grids = [[0.0, 1.0], [0.5, 1.5, 2.0]]
    one = explainer.partial_dependence(("x2", 0), grid=grids).average
    other = explainer.partial_dependence((0, 2), grid=grids[::-1]).average
    assert one.shape == (1, 2, 3)
    assert_allclose(one, other.transpose(0, 2, 1))


def test_outputs_come_first(interventional, classifier, X):
    result = interventional().fit(classifier, X).partial_dependence(0, grid=[0.0, 1.0])
    truth = []
    for point in [0.0, 1.0]:
        rows = X.copy()
        rows[:, 0] = point
        truth.append(classifier.predict_proba(rows).mean(axis=0))
    assert_allclose(result.average, np.transpose(truth))


def test_group(interventional, model, X):
    explainer = interventional(groups={"g": [1, 3]}).fit(model, X)
    points = np.array([[0.0, 2.0], [1.0, 0.5]])
    result = explainer.partial_dependence("g", grid=points)
    truth = []
    for point in points:
        rows = X.copy()
        rows[:, [1, 3]] = point
        truth.append(model.predict(rows).mean())
    assert_allclose(result.average, [truth])
    joint = explainer.partial_dependence(("g", 0), grid=[points, [0.0, 1.0, 2.0]])
    assert joint.average.shape == (1, 2, 3)
    with pytest.raises(ValueError, match=r"group of 2 columns, .* shape \(n_points, 2\)"):
        explainer.partial_dependence("g")


def test_grid_is_of_quantiles_where_there_are_many_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2)) * 1e-10
    X[:970, 1] = 2.0
    X[3, 0] = np.nan
    explainer = StumpExplainer().fit(Stumps([0.0, 0.0], [1.0, 2.0]), X)
    tiny, tied = (explainer.partial_dependence(j).grid_values[0] for j in range(2))
    assert len(tiny) == 100
    assert_allclose(tiny, np.nanquantile(X[:, 0], np.linspace(0, 1, 100)), rtol=1e-12)
    assert np.all(np.diff(tied) > 0)
    assert tied[-1] == 2.0


def test_grid_of_a_column_without_numbers(explainer_class, model, X):
    constant = np.full((10, 4), 7.0)
    assert explainer_class().fit(model, constant).partial_dependence(0).grid_values[0] == [7.0]
    missing = np.full((10, 4), np.nan)
    stumps = StumpExplainer().fit(Stumps([0.0] * 4, [1.0] * 4), missing)
    assert np.isnan(stumps.partial_dependence(0).grid_values[0]).all()


def test_bad_grids(explainer_class, model, X):
    explainer = explainer_class().fit(model, X)
    with pytest.raises(ValueError, match="grid: column 0 takes numbers"):
        explainer.partial_dependence(0, grid=["low"])
    with pytest.raises(ValueError, match="non-empty array"):
        explainer.partial_dependence(0, grid=[])
    with pytest.raises(ValueError, match="expected a list of 2 arrays"):
        explainer.partial_dependence((0, 1), grid=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="expected a list of 2 arrays, one for each"):
        explainer.partial_dependence((0, 1), grid=[20, 30])
    for features in (0, (0, 1)):
        with pytest.raises(ValueError, match="grid=30: a number of points is not accepted"):
            explainer.partial_dependence(features, grid=30)
    with pytest.raises(ValueError, match="unknown feature 'age'"):
        explainer.partial_dependence("age")
    with pytest.raises(ValueError, match="names a feature twice"):
        explainer.partial_dependence((0, 0))


def test_by_prediction_there_is_no_curve(model, X):
    assert "curve" not in VanillaPDExplainer().fit(model, X).partial_dependence(0)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_curve_is_exact_on_thresholds_and_beside_them(strict, single):
    model = Stumps([0.1, 0.3], [5.0, 1.0], strict, single)
    background = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, np.nan]])
    explainer = StumpExplainer().fit(model, background)
    result = explainer.partial_dependence(0)
    curve = result.curve
    near = [0.1]
    for dtype in (np.float32, np.float64):
        for towards in (-np.inf, np.inf):
            near.append(np.nextafter(dtype(0.1), dtype(towards)))
    near = [*np.array(near, dtype=np.float64), np.float32(0.1), -1e300, 1e300, 0.1 + 7e-10]
    truth = []
    for x in [*near, np.nan]:
        rows = background.copy()
        rows[:, 0] = x
        with np.errstate(over="ignore"):
            truth.append(model.predict(rows).mean())
    assert_allclose(curve([*near, np.nan]), [truth], rtol=1e-12)
    assert_allclose(curve(result.grid_values[0]), result.average)
    assert_allclose(curve.missing, truth[-1])


def test_curve_of_a_forest_is_exact(model, X):
    curve = FastPDExplainer().fit(model, X).partial_dependence(2).curve
    assert len(curve.breaks) > 1
    points = np.concatenate([curve.breaks, np.linspace(-1, 3, 41)])
    points = np.concatenate([points, np.nextafter(points, 9), np.nextafter(points, -9), [np.nan]])
    brute = partial_dependence(
        model, X, [2], custom_values={2: points}, method="brute", kind="average"
    )
    assert_allclose(curve(points), brute.average, rtol=1e-10)


def test_without_a_background_the_grid_is_that_of_the_thresholds(model):
    explainer = PathDependentExplainer().fit(model)
    result = explainer.partial_dependence(1)
    assert_allclose(result.average, result.curve.levels)
    assert result.average.shape == (1, len(result.curve.breaks) + 1)
    assert explainer.partial_dependence((0, 1), grid=[[0.0], [1.0, 2.0]]).average.shape == (1, 1, 2)


def test_curve_where_missing_values_are_not_taken(monkeypatch, X):
    monkeypatch.setattr(toys.StumpEngine, "allow_nan", False)
    explainer = StumpExplainer().fit(Stumps([1.0] * 4, [1.0] * 4), X)
    curve = explainer.partial_dependence(0).curve
    assert curve.missing is None
    assert np.isnan(curve([np.nan, 0.0])).tolist() == [[True, False]]


@pytest.mark.parametrize("strict", [False, True])
def test_breaks_in_single_precision(strict):
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.normal(size=50), rng.normal(size=50).astype(np.float32)])
    breaks = effective_breaks(points, strict, single=True)
    assert np.array_equal(breaks, breaks.astype(np.float32))
    x = np.concatenate([points, breaks]).astype(np.float32)
    x = np.unique([x, np.nextafter(x, np.float32(9)), np.nextafter(x, np.float32(-9))])
    for t, b in zip(np.sort(points), np.sort(breaks), strict=True):
        with_t = x < t if strict else x <= np.float64(t)
        with_b = x < b if strict else x <= np.float64(b)
        assert np.array_equal(with_t, with_b)


def test_a_point_in_every_piece():
    assert piece_points(np.empty(0), False, False).tolist() == [0.0]
    assert len(piece_points(np.array([1.0, 2.0]), True, True)) == 3
    top = np.finfo(np.float64).max
    assert np.isfinite(piece_points(np.array([0.0, top]), False, False)).all()


@pytest.mark.parametrize("features", [None, ["x3", 0, 2]])
def test_all_pairs_at_once(explainer_class, classifier, X, features):
    explainer = explainer_class().fit(classifier, X)
    result = explainer.pairwise_partial_dependence(features, grid_resolution=4)
    n_features = len(result.features)
    assert result.pairs.shape == (n_features * (n_features - 1) // 2, 2)
    for k, pair in enumerate(result.pairs):
        names = tuple(result.features[i] for i in pair)
        grids = [result.grid_values[i] for i in pair]
        one = explainer.partial_dependence(names, grid=grids)
        a, b = (len(grid) for grid in grids)
        assert_allclose(result.average[:, k, :a, :b], one.average, atol=1e-12)
        assert np.isnan(result.average[:, k, a:]).all()
        assert np.isnan(result.average[:, k, :, b:]).all()


def test_all_pairs_of_features_with_few_values(model, X):
    X = X.copy()
    X[:, 1] = X[:, 1] > 1
    explainer = FastPDExplainer().fit(model, X)
    result = explainer.pairwise_partial_dependence([0, 1])
    assert_allclose(
        result.average[:, 0, :, :2], explainer.partial_dependence((0, 1)).average, atol=1e-12
    )
    assert result.average.shape[3] > 2
    assert np.isnan(result.average[:, 0, :, 2:]).all()


def test_all_pairs_on_points_of_ones_own(model, X):
    explainer = FastPDExplainer(groups={"both": [1, 2]}).fit(model, X)
    grid = [[-1.0, 0.0, 1.0], np.array([0.5])]
    result = explainer.pairwise_partial_dependence([0, 3], grid=grid)
    truth = explainer.partial_dependence((0, 3), grid=grid).average
    assert_allclose(result.average[:, 0, :, :1], truth, atol=1e-12)
    for wrong in ([[1.0]], [1.0, 2.0], "many"):
        with pytest.raises(ValueError, match="grid: expected a list of 2 arrays"):
            explainer.pairwise_partial_dependence([0, 3], grid=wrong)
    with pytest.raises(ValueError, match="not for groups"):
        explainer.pairwise_partial_dependence([0, "both"], grid=[[0.0], [[0.0, 1.0]]])


@pytest.mark.parametrize("resolution", [1, 2.5, "many"])
def test_pairs_of_an_odd_resolution(model, X, resolution):
    with pytest.raises(ValueError, match=r"grid_resolution=.* should be an int"):
        FastPDExplainer().fit(model, X).pairwise_partial_dependence(grid_resolution=resolution)


def test_pairs_of_a_group(model, X):
    explainer = FastPDExplainer(groups={"both": [0, 1]}).fit(model, X)
    with pytest.raises(ValueError, match="'both' is a group of 2 columns"):
        explainer.pairwise_partial_dependence()


def test_curve_of_category_codes():
    """A column of plain codes that the model splits on by category, with one that none lists."""
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 400), rng.normal(size=400)]).astype(float)
    model = lightgbm.LGBMRegressor(n_estimators=5, verbose=-1, min_child_samples=5)
    model.fit(X, np.array([5.0, 9.0, 5.0, 1.0])[X[:, 0].astype(int)], categorical_feature=[0])
    result = FastPDExplainer().fit(model, X).partial_dependence(0)
    assert_allclose(result.curve.categories, [0, 1, 2, 3, np.nan])
    for code in (0.0, 1.0, 2.0, 3.0, np.nan):
        changed = X.copy()
        changed[:, 0] = code
        assert_allclose(result.curve([code])[0], model.predict(changed).mean())


@pytest.mark.parametrize("kind", ["alone", "scaled", "beside another"])
@pytest.mark.parametrize("sentinel", [0.0, -2.0])
def test_curve_where_a_number_stands_for_missing(kind, sentinel):
    xgboost = pytest.importorskip("xgboost")
    X = np.random.default_rng(0).integers(-2, 3, (200, 2)).astype(float)
    y = np.where(X[:, 0] == sentinel, 3.0, X[:, 0]) + X[:, 1]
    scaler = StandardScaler().fit(X)
    scaled = scaler.transform([[sentinel, 0.0]])[0, 0]
    model = {
        "alone": xgboost.XGBRegressor(n_estimators=5, missing=sentinel),
        "scaled": make_pipeline(scaler, xgboost.XGBRegressor(n_estimators=5, missing=scaled)),
        "beside another": VotingRegressor(
            [
                ("a", xgboost.XGBRegressor(n_estimators=3, missing=sentinel)),
                ("b", xgboost.XGBRegressor(n_estimators=3, missing=1.0)),
            ]
        ),
    }[kind].fit(X, y)
    points = np.array([-3.0, -2.0, -1.9, -1.0, -1e-3, 0.0, 1e-3, 1.0, 2.0])
    for background in (X, X[X[:, 0] != sentinel]):
        truth = [
            model.predict(np.column_stack([np.full(len(background), x), background[:, 1]])).mean()
            for x in points
        ]
        result = FastPDExplainer().fit(model, background).partial_dependence(0, grid=points)
        assert_allclose(result.average[0], truth, atol=1e-5)
        assert_allclose(result.curve(points)[0], truth, atol=1e-5)


def test_walked_curves_where_a_number_stands_for_missing(monkeypatch):
    """The engines that walk rows, and curves of single rows, know of that number too."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (300, 2)).astype(float)
    y = np.where(X[:, 0] == 0, 3.0, X[:, 0]) + X[:, 1] > 0.5
    model = xgboost.XGBClassifier(n_estimators=5, missing=0.0).fit(X, y)
    grid = [-1.0, -0.5, 0.0, 0.5, 1.0]
    moved = np.repeat(X[None], len(grid), axis=0)
    moved[:, :, 0] = np.array(grid)[:, None]
    proba = [model.predict_proba(rows)[:, 1] for rows in moved]
    margin = [model.predict(rows, output_margin=True) for rows in moved]
    response = FastPDExplainer(response_method="predict_proba").fit(model, X)
    result = response.partial_dependence(0, grid=grid)
    assert_allclose(result.average[0], np.mean(proba, axis=1), atol=1e-6)
    assert_allclose(result.curve(grid)[0], np.mean(proba, axis=1), atol=1e-6)
    monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    result = FastPDExplainer().fit(model, X).partial_dependence(0, grid=grid)
    assert_allclose(result.average[0], np.mean(margin, axis=1), atol=1e-5)
    assert_allclose(result.curve(grid)[0], np.mean(margin, axis=1), atol=1e-5)
    ice = ICEExplainer(features=[0], grid_resolution="exact").fit(model, X).explain(X)[0]
    points = ice.grid_values[0]
    assert 0.0 in points
    at_zero = ice.individual[0][:, np.flatnonzero(points == 0.0)[0]]
    assert_allclose(at_zero, margin[2], atol=1e-5)
