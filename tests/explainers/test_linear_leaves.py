"""Linear leaves, against the definitions by LightGBM's own prediction."""

import pickle

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.inspection import partial_dependence as sklearn_partial_dependence
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.core import linear_model
from fastpd_sklearn.core import model as core_model
from fastpd_sklearn.decomposition import FeatureRemover
from fastpd_sklearn.explainers import CategoryCurve, LinearCurve
from fastpd_sklearn.forest import find_reader
from fastpd_sklearn.inspection import partial_dependence
from fastpd_sklearn.model_selection import monotonicity_violation
from tests import oracles

SMALL = {
    **{"n_estimators": 6, "num_leaves": 6, "min_child_samples": 8, "n_jobs": 1, "verbose": -1},
    **{"min_data_per_group": 5, "cat_smooth": 1},
}
CATEGORY = 3
TOLERANCE = 1e-10


def rows(n, seed, missing=0.15):
    """Two columns with missing values, one without, and codes of categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, :2][rng.random((n, 2)) < missing] = np.nan
    X[:, CATEGORY] = rng.integers(0, 4, n)
    return X


def response(X):
    X = np.nan_to_num(X)
    level = np.array([0.0, 2.0, -1.0, 1.0])[X[:, CATEGORY].astype(int)]
    return X[:, 0] * np.where(X[:, 2] > 0, 2, -1) + X[:, 1] ** 2 + level * (3 + X[:, 2])


def regressor(X, **params):
    model = lgb.LGBMRegressor(linear_tree=True, **{**SMALL, **params})
    return model.fit(X, response(X), categorical_feature=[CATEGORY])


def classifier(X):
    target = np.digitize(response(X), [-0.5, 1.5])
    model = lgb.LGBMClassifier(linear_tree=True, **{**SMALL, "n_estimators": 3})
    return model.fit(X, target, categorical_feature=[CATEGORY])


TRAINED = rows(300, 0)
BACKGROUND, EXPLAINED = rows(30, 1), rows(7, 2, missing=0.3)
WEIGHTS = np.random.default_rng(3).random(30)
MODELS = {
    "missing values": lambda: regressor(TRAINED),
    "none in training": lambda: regressor(rows(300, 0, missing=0)),
    "random forest": lambda: regressor(
        TRAINED, boosting_type="rf", subsample=0.6, subsample_freq=1
    ),
    "classes": lambda: classifier(TRAINED),
    "small trees": lambda: regressor(TRAINED, num_leaves=3, n_estimators=4),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request):
    return MODELS[request.param]()


@pytest.fixture(scope="module")
def linear():
    return regressor(TRAINED)


def raw(model):
    reader = find_reader(model)
    return lambda X: reader.predict_raw(model, X)


def scale(model):
    """The size of the numbers at hand."""
    forest = find_reader(model).read(model).forest
    largest = np.nan_to_num(np.abs(np.vstack([BACKGROUND, EXPLAINED]))).max(axis=0)
    return (forest.scale() + forest.slope_scale(largest[None])).max()


def assert_defined(explainer, model, players, weights=None, X=EXPLAINED):
    """Values are those of the game that the model's own predictions play."""
    game = oracles.interventional_game(raw(model), BACKGROUND, weights, X, players)
    found = explainer.explain(X)
    names = [t[0] for t in explainer.terms_ if len(t) == 1]
    terms = [tuple(names.index(name) for name in term) for term in explainer.terms_]
    truth = np.stack([oracles.INDICES[explainer.output](game, term) for term in terms], axis=1)
    values = found.values.reshape(truth.shape)
    assert_allclose(values, truth, rtol=0, atol=TOLERANCE * scale(model))
    assert_allclose(explainer.intercept_, game[()][0], rtol=0, atol=TOLERANCE * scale(model))
    return found


SINGLE = [[0], [1], [2], [3]]
ORDERS = [("pd", 3), ("component", None), ("shap", 1), ("shap_interaction", 2), ("banzhaf", 2)]


def test_models_are_linear(model):
    forest = find_reader(model).read(model).forest
    assert forest.is_linear


def test_models_use_categories_and_missing_values(linear):
    forest = find_reader(linear).read(linear).forest
    assert forest.is_categorical.any()
    assert np.isinf(forest.threshold).any()  # a test for missing values
    assert set(forest.slope_input.tolist()) == {0, 1, 2}


@pytest.mark.parametrize(("output", "max_order"), ORDERS, ids=[output for output, _ in ORDERS])
def test_values_are_those_of_the_definition(model, output, max_order):
    explainer = FastPDExplainer(output=output, max_order=max_order).fit(
        model, BACKGROUND, sample_weight=WEIGHTS
    )
    found = assert_defined(explainer, model, SINGLE, WEIGHTS)
    if output in ("component", "shap", "shap_interaction"):
        assert found.complete
        assert_allclose(found.remainder, 0, atol=TOLERANCE * scale(model))


@pytest.mark.parametrize("output", ["component", "shap", "banzhaf"])
def test_columns_play_in_groups(linear, output):
    explainer = FastPDExplainer(output=output, max_order="auto", groups={"g": [0, 2]})
    explainer.fit(linear, BACKGROUND)
    assert_defined(explainer, linear, [[0, 2], [1], [3]])


@pytest.mark.parametrize("meets", [True, False])
@pytest.mark.parametrize("output", ["pd", "component", "shap", "banzhaf"])
def test_large_forests_keep_the_rows(linear, output, meets, monkeypatch):
    """Rows that meet those of the background included, whose weights are then of any sign."""
    monkeypatch.setattr(core_model, "meet_sooner", lambda *_: meets)
    counted = FastPDExplainer(output=output).fit(linear, BACKGROUND, sample_weight=WEIGHTS)
    monkeypatch.setattr(linear_model, "MOST_COUNTS", 0)
    kept = FastPDExplainer(output=output).fit(linear, BACKGROUND[:11], sample_weight=WEIGHTS[:11])
    kept.partial_fit(BACKGROUND[11:], sample_weight=WEIGHTS[11:])
    assert not hasattr(kept._fitted.engine.background, "held")
    assert_defined(kept, linear, SINGLE, WEIGHTS)
    assert_allclose(kept.transform(EXPLAINED), counted.transform(EXPLAINED), atol=1e-12)
    copy = pickle.loads(pickle.dumps(kept.detach()))
    assert_array_equal(copy.transform(EXPLAINED), kept.transform(EXPLAINED))


def test_background_in_parts_pickles_and_threads(linear):
    whole = FastPDExplainer(output="shap", n_jobs=1).fit(linear, BACKGROUND)
    parts = FastPDExplainer(output="shap", n_jobs=1).fit(linear, BACKGROUND[:13])
    parts.partial_fit(BACKGROUND[13:])
    truth = whole.transform(EXPLAINED)
    assert_allclose(parts.transform(EXPLAINED), truth, rtol=0, atol=1e-12)
    threads = FastPDExplainer(output="shap", n_jobs=2).fit(linear, BACKGROUND)
    assert_array_equal(threads.transform(EXPLAINED), truth)
    copy = pickle.loads(pickle.dumps(whole.detach()))
    assert_array_equal(copy.transform(EXPLAINED), truth)


def test_blocks_and_importances(linear):
    explainer = FastPDExplainer(output="component", max_order=None).fit(linear, BACKGROUND)
    values = explainer.transform(EXPLAINED)
    seen = []
    for terms, block in explainer.explain_blocks(EXPLAINED, block_bytes=200):
        numbers = [explainer.terms_.index(term) for term in terms]
        assert_allclose(block, values[:, numbers], rtol=0, atol=1e-12)
        seen += numbers
    assert sorted(seen) == list(range(len(explainer.terms_)))
    assert len(seen) > 4
    assert_allclose(explainer.mean_abs(EXPLAINED), np.abs(values).mean(axis=0), atol=1e-12)


# -- curves --------------------------------------------------------------------------------


def truth_along(model, column, points, weights=None):
    grid = np.repeat(EXPLAINED[:1], len(points), axis=0)
    grid[:, column] = points
    return oracles.pd_function(raw(model), BACKGROUND, weights, [column], grid).T


def test_curves_are_straight_between_breaks(model):
    explainer = FastPDExplainer().fit(model, BACKGROUND, sample_weight=WEIGHTS)
    allowed = {"rtol": 0, "atol": TOLERANCE * scale(model)}
    kinds = []
    for column in range(3):
        curve = explainer.partial_dependence(column).curve
        kinds.append(type(curve))
        beside = [curve.breaks, np.nextafter(curve.breaks, np.inf), np.linspace(-4, 4, 23)]
        points = np.concatenate([*beside, [np.nan]])
        assert np.isfinite(curve.breaks).all()
        truth = truth_along(model, column, points, WEIGHTS)
        assert_allclose(curve(points), truth, **allowed)
        result = explainer.partial_dependence(column, points)
        assert_allclose(result.average, truth, **allowed)
    assert LinearCurve in kinds


def test_curves_are_exported(linear):
    explainer = FastPDExplainer().fit(linear, BACKGROUND)
    curve = explainer.partial_dependence(0).curve
    known = curve.to_dict()
    k = int(np.searchsorted(curve.breaks, 0.33))
    by_hand = known["levels"][0][k] + 0.33 * known["slopes"][0][k]
    assert_allclose(by_hand, truth_along(linear, 0, [0.33])[0, 0], atol=1e-12)
    frame = curve.to_frame()
    line = frame[(frame.lower < 0.33) & (frame.upper >= 0.33)].iloc[0]
    assert_allclose(line.level + 0.33 * line.slope, by_hand, atol=1e-12)
    last = frame.iloc[-1]
    assert np.isnan(last.lower)
    assert last.slope == 0
    assert_allclose(last.level, truth_along(linear, 0, [np.nan])[0, 0], atol=1e-12)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_corners_of_a_curve_are_the_curve(strict, single):
    lines = np.array([[1.0, 0.0, 5.0]]), np.array([[0.5, 2.0, -1.0]])
    curve = LinearCurve(np.array([-1.0, 1.0]), *lines, None, strict, single)
    points, values = curve.corners(-2.0, 3.0)
    assert len(points) == 6
    assert np.all(np.diff(points) > 0)
    inside = np.array([-2.0, -1.5, -1.01, -0.9, 0.0, 0.9, 1.01, 3.0])
    assert_allclose(np.interp(inside, points, values[0]), curve(inside)[0], atol=1e-12)
    assert_allclose(values[0], [0.0, 0.5, -2.0, 2.0, 4.0, 2.0], atol=1e-6)
    assert np.isnan(curve([np.nan])).all()


def test_pairs_on_grids(model):
    explainer = FastPDExplainer().fit(model, BACKGROUND)
    allowed = {"rtol": 0, "atol": TOLERANCE * scale(model)}
    grids = [np.array([-1.3, 0.0, 0.7, np.nan])] * 3 + [np.array([0.0, 2.0])]
    result = explainer.pairwise_partial_dependence(grid=grids)
    for k, (i, j) in enumerate(result.pairs):
        cells = np.array(np.meshgrid(grids[i], grids[j], indexing="ij")).reshape(2, -1)
        X = np.repeat(EXPLAINED[:1], cells.shape[1], axis=0)
        X[:, i], X[:, j] = cells
        truth = oracles.pd_function(raw(model), BACKGROUND, None, [i, j], X).T
        shape = (-1, len(grids[i]), len(grids[j]))
        found = result.average[:, k, : shape[1], : shape[2]]
        assert_allclose(found, truth.reshape(shape), **allowed)
        single = explainer.partial_dependence((int(i), int(j)), [grids[i], grids[j]]).average
        assert_allclose(single, truth.reshape(shape), **allowed)


def test_categories_have_levels(linear):
    explainer = FastPDExplainer().fit(linear, BACKGROUND)
    curve = explainer.partial_dependence(CATEGORY).curve
    assert isinstance(curve, CategoryCurve)
    codes = curve.categories.astype(float)
    assert_allclose(curve.levels, truth_along(linear, CATEGORY, codes), atol=1e-10)


def test_surfaces_of_lines_are_no_steps(linear):
    explainer = FastPDExplainer().fit(linear, BACKGROUND)
    with pytest.raises(ValueError, match=r"linear functions of 'x0'.*partial_dependence"):
        explainer.step_surface((0, 1))


# -- rows one by one -----------------------------------------------------------------------


def held(model, X, columns, points):
    """Raw predictions with columns held at points, (n_outputs, n_rows, n_points)."""
    out = []
    for point in points:
        moved = X.copy()
        moved[:, columns] = point
        out.append(raw(model)(moved))
    return np.array(out).transpose(2, 1, 0)


def test_individual_curves_by_the_trees(model):
    fitted = FastPDExplainer().fit(model, BACKGROUND)._fitted
    points = np.array([-1.0, 0.2, 0.2, np.nan, 2.5])
    for column in range(3):
        grid = fitted.template.rows({column: points})
        found = fitted.engine.individual(EXPLAINED, (column,), [grid])
        truth = held(model, EXPLAINED, [column], points[:, None])
        assert_allclose(found, truth, rtol=0, atol=TOLERANCE * scale(model))
    grids = [fitted.template.rows({c: points}) for c in (2, 0)]
    found = fitted.engine.individual(EXPLAINED, (2, 0), grids)
    cells = np.array(np.meshgrid(points, points, indexing="ij")).reshape(2, -1).T
    truth = held(model, EXPLAINED, [2, 0], cells).reshape(found.shape)
    assert_allclose(found, truth, rtol=0, atol=TOLERANCE * scale(model))


def test_inspection_is_brute_force(linear):
    X = np.nan_to_num(BACKGROUND)
    for kind in ("average", "individual"):
        ours = partial_dependence(linear, X, [0], kind=kind, grid_resolution=7)
        theirs = sklearn_partial_dependence(
            linear, X, [0], kind=kind, grid_resolution=7, method="brute"
        )
        assert_allclose(ours[kind], theirs[kind], atol=1e-10)
    exact = partial_dependence(linear, X, [0], grid_resolution="exact")
    assert isinstance(exact.curve, LinearCurve)
    assert exact.steps == (None,)
    low, high = X[:, 0].min(), X[:, 0].max()
    points = np.linspace(low, high, 37)
    between = np.interp(points, exact.grid_values[0], exact.average[0])
    assert_allclose(between, exact.curve(points)[0], atol=1e-10)


def test_inspection_of_probabilities_is_by_prediction():
    model = classifier(TRAINED)
    X = np.nan_to_num(BACKGROUND)
    ours = partial_dependence(model, X, [2], grid_resolution=5)
    theirs = sklearn_partial_dependence(model, X, [2], grid_resolution=5, method="brute")
    assert_allclose(ours.average, theirs.average, atol=1e-12)
    with pytest.raises(ValueError, match="no step function"):
        partial_dependence(model, X, [2], grid_resolution="exact")


def test_ice_and_ale_by_prediction(linear):
    ice = ICEExplainer(features=[0], grid_resolution=4).fit(linear, BACKGROUND)
    points = ice.explain(EXPLAINED)[0].grid_values[0]
    truth = held(linear, EXPLAINED, [0], points[:, None])[0]
    assert_allclose(ice.transform(EXPLAINED), truth, atol=1e-12)
    with pytest.raises(ValueError, match="exact"):
        ICEExplainer(features=[0], grid_resolution="exact").fit(linear, BACKGROUND)
    effect = ALEExplainer(features=[2], n_bins=4).fit(linear, TRAINED).effects_[0]
    edges = effect.grid_values[0]
    place = np.clip(np.searchsorted(edges, TRAINED[:, 2]) - 1, 0, len(edges) - 2)
    ends = held(linear, TRAINED, [2], edges[:, None])[0]
    own = np.arange(len(TRAINED))
    rise = np.bincount(place, ends[own, place + 1] - ends[own, place]) / np.bincount(place)
    assert_allclose(np.diff(effect.effect[0]), rise, atol=1e-10)


def test_monotonicity_sees_slopes():
    X = rows(300, 0, missing=0)
    falling = lgb.LGBMRegressor(linear_tree=True, **{**SMALL, "learning_rate": 1.0})
    falling.fit(X[:, :3], -2 * X[:, 0])
    X = X[:, :3]
    assert monotonicity_violation(falling, X, 0, "decreasing") < 0.02
    assert monotonicity_violation(falling, X, 0, "increasing") > 0.98
    total = monotonicity_violation(falling, X, 0, "increasing", relative=False)
    span = np.ptp(X[:, 0])
    assert_allclose(total, 2 * span, rtol=0.05)


def test_features_are_removed_by_prediction(linear):
    remover = FeatureRemover(features=[0]).fit(linear, BACKGROUND)
    others = oracles.pd_function(raw(linear), BACKGROUND, None, [1, 2, 3], EXPLAINED)
    assert_allclose(remover.predict(EXPLAINED), others[:, 0], atol=1e-10)


# -- around the model ----------------------------------------------------------------------


def test_pipelines_on_raw_columns():
    X = pd.DataFrame(rows(300, 0, missing=0), columns=["a", "b", "c", "d"])
    X["d"] = X["d"].map({0.0: "p", 1.0: "q", 2.0: "r", 3.0: "s"})
    y = X["a"] * (X["c"] > 0) + X["b"] + (X["d"] == "q") * X["a"]
    encode = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["d"]), (StandardScaler(), ["a", "b", "c"])
    )
    pipe = make_pipeline(encode, lgb.LGBMRegressor(linear_tree=True, **SMALL)).fit(X, y)
    background, explained = X[:25], X[40:45]
    explainer = FastPDExplainer(output="shap").fit(pipe, background)
    game = oracles.interventional_game(pipe.predict, background, None, explained, SINGLE)
    truth = np.stack([oracles.shapley_interaction(game, (k,)) for k in range(4)], axis=1)
    assert_allclose(explainer.transform(explained), truth[:, :, 0], atol=1e-10)
    result = FastPDExplainer().fit(pipe, background).partial_dependence("a", [0.1, 1.0])
    with pytest.raises(AttributeError, match="linear functions of what the steps make of it"):
        result.curve  # noqa: B018
    grid = explained[:2].assign(a=[0.1, 1.0])
    truth = oracles.pd_function(pipe.predict, background, None, [0], grid)
    assert_allclose(result.average[0], truth[:, 0], atol=1e-10)


COMPOSITES = {
    "bagging": lambda X, y: BaggingRegressor(
        lgb.LGBMRegressor(linear_tree=True, **SMALL), n_estimators=2, max_features=3
    ).fit(X, y),
    "voting": lambda X, y: VotingRegressor(
        [("l", lgb.LGBMRegressor(linear_tree=True, **SMALL)), ("c", lgb.LGBMRegressor(**SMALL))],
        weights=[1, 3],
    ).fit(X, y),
    "outputs": lambda X, y: MultiOutputRegressor(lgb.LGBMRegressor(linear_tree=True, **SMALL)).fit(
        X, np.column_stack([y, -2 * y**2])
    ),
}


@pytest.mark.parametrize("kind", list(COMPOSITES))
def test_models_made_of_such_models(kind):
    X = rows(300, 0, missing=0)
    model = COMPOSITES[kind](X, response(X))
    background, explained = X[:20], X[40:44]
    explainer = FastPDExplainer(output="shap").fit(model, background)
    game = oracles.interventional_game(model.predict, background, None, explained, SINGLE)
    truth = np.stack([oracles.shapley_interaction(game, (k,)) for k in range(4)], axis=1)
    values = explainer.explain(explained).values.reshape(truth.shape)
    assert_allclose(values, truth, atol=1e-10 * scale(model))


def test_what_is_not_known_is_refused(linear):
    with pytest.raises(ValueError, match=r"linear_tree.*covers along a path.*FastPDExplainer"):
        PathDependentExplainer().fit(linear, BACKGROUND)
    with pytest.raises(
        ValueError, match=r"linear_tree.*response_method='predict_proba'.*VanillaPD"
    ):
        FastPDExplainer(response_method="predict_proba").fit(classifier(TRAINED), BACKGROUND)


def test_infinity_has_no_mean(linear):
    X = BACKGROUND.copy()
    X[3, 0] = np.inf
    for call in (
        lambda: FastPDExplainer().fit(linear, X),
        lambda: FastPDExplainer().fit(linear, BACKGROUND).transform(X),
        lambda: FastPDExplainer().fit(linear, BACKGROUND).partial_dependence(0, [1.0, np.inf]),
    ):
        with pytest.raises(ValueError, match="infinity, in column 0"):
            call()


def test_large_numbers_lose_no_more_than_the_library():
    X = rows(300, 0, missing=0)
    X[:, 0] = 2000 + 10 * X[:, 0]
    model = lgb.LGBMRegressor(linear_tree=True, **SMALL).fit(X, (X[:, 0] - 2000) * X[:, 2])
    explainer = FastPDExplainer(output="shap").fit(model, X[:50])
    explanation = explainer.explain(X[:50])
    total = explainer.intercept_ + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:50]), rtol=0, atol=1e-10)


def test_brute_force_agrees_through_the_other_explainer(linear):
    ours = FastPDExplainer(output="component", max_order=2).fit(linear, BACKGROUND)
    slow = VanillaPDExplainer(output="component", max_order=2).fit(linear, BACKGROUND)
    terms = [tuple(name.replace("Column_", "x") for name in term) for term in slow.terms_]
    places = [terms.index(term) for term in ours.terms_]
    found, truth = ours.transform(EXPLAINED), slow.transform(EXPLAINED)
    assert_allclose(found, truth[:, places], atol=TOLERANCE * scale(linear))
    others = np.delete(truth, places, axis=1)
    assert_allclose(others, 0, atol=TOLERANCE * scale(linear))
