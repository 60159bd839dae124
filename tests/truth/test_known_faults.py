"""Faults that explainers of tree ensembles have had, each with the right value.

The codes number the faults; the numbers are small enough to check by hand.
"""

import json
from itertools import product

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logit
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.forest import find_reader
from tests.truth.toys import ForestModel, make_forest
from tests.versions import older

BOTH = pytest.mark.parametrize("explainer_class", [FastPDExplainer, PathDependentExplainer])
CORNERS = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
CORNERS3 = np.column_stack([CORNERS, np.zeros(4)])
ONES = np.ones((1, 2))
ONE_TREE = {"max_iter": 1, "learning_rate": 1.0, "min_samples_leaf": 1}
LGB = {
    "n_estimators": 1,
    "learning_rate": 1.0,
    "min_child_samples": 1,
    "min_child_weight": 0.0,
    "n_jobs": 1,
    "verbose": -1,
}
XGB = {"n_jobs": 1, "max_depth": 3}


def both_above_half():
    """8 where both columns are above 1/2, else 0."""
    return DecisionTreeRegressor(random_state=0).fit(CORNERS, [0.0, 0.0, 0.0, 8.0])


def total(explainer, X):
    """The intercept plus all attributions, shape (n_rows,)."""
    return explainer.intercept_ + explainer.transform(X).sum(axis=1)


def column(*values):
    return np.array(values, dtype=np.float64)[:, None]


def noisy(n_rows=200, n_columns=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns)).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + X[:, 2] + rng.normal(size=n_rows)


def test_a01_branches_weighted_by_training_mass():
    """Partial dependence taken along the path is not the mean prediction if columns correlate."""
    a = np.repeat([0.0, 1.0], 5)
    b = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0.0])
    X = np.column_stack([a, b])
    y = np.select([(a == 0) & (b == 0), (a == 0) & (b == 1), (a == 1) & (b == 0)], [2.0, 10, 4], 0)
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    for explainer_class in (FastPDExplainer, VanillaPDExplainer):
        explainer = explainer_class().fit(model, X)
        assert_allclose(explainer.intercept_, [2.2])
        assert_allclose(explainer.transform([[0, 0], [1, 1]]), [[6.0, 3.0], [2.0, 5.0]])
    path = PathDependentExplainer(features=[0]).fit(model)
    assert_allclose(path.transform([[0, 0], [1, 1]]), column(3.6, 0.8))


@pytest.mark.parametrize("n_zeros", [80, 120])
def test_a02_background_cut_to_a_sample(n_zeros):
    """A background of more than 100 rows was sampled down without a word."""
    model = DecisionTreeRegressor().fit(column(0, 1), [0.0, 10.0])
    background = np.repeat(column(0, 1), [n_zeros, n_zeros // 4], axis=0)
    assert_allclose(FastPDExplainer().fit(model, background).intercept_, [2.0], rtol=1e-15)
    half = len(background) // 3
    parts = [background[:half], background[half:]]
    means = [FastPDExplainer().fit(model, part).intercept_[0] for part in parts]
    assert_allclose(np.average(means, weights=[len(p) for p in parts]), 2.0, rtol=1e-15)


def test_a03_background_without_weights():
    """Rows of the background could not be given weights."""
    weights = np.array([1.0, 1.0, 1.0, 5.0])
    model = both_above_half()

    def explain(output, background, weights=None, **params):
        explainer = FastPDExplainer(output=output, **params)
        explainer.fit(model, background, sample_weight=weights)
        return explainer.intercept_, explainer.transform(ONES)[0]

    base, values = explain("pd", CORNERS, weights, max_order=2)
    assert_allclose(base, [5.0])
    assert_allclose(values, [6.0, 6.0, 8.0])
    assert_allclose(explain("shap", CORNERS, weights)[1], [1.5, 1.5])
    component = explain("component", CORNERS, weights)
    assert_allclose(component[1][2], 1.0)
    repeated = explain("component", np.repeat(CORNERS, weights.astype(int), axis=0))
    assert_allclose(repeated[1], component[1], rtol=1e-12)
    with pytest.raises(ValueError, match="sample_weight"):
        explain("pd", CORNERS, np.zeros(4))


def doubles_at_a_tenth():
    """Stumps at the double 0.1 with the leaves 5 and 12: a real one and a made one."""
    real = HistGradientBoostingRegressor(**ONE_TREE).fit(column(0.0, 0.2), [5.0, 12.0])
    assert find_reader(real).read(real).forest.threshold[0] == 0.1
    return [real, ForestModel(make_forest([(0, 0.1, 5.0, 12.0)], 1))]


@pytest.mark.parametrize("model", doubles_at_a_tenth(), ids=["hist", "forest"])
def test_a04_threshold_rounded_to_single(model):
    """A value between a double threshold and the float32 next to it took the wrong branch."""
    x = column(0.1 + 7e-10)
    assert np.float32(0.1) > x[0, 0] > 0.1
    explainer = FastPDExplainer(output="shap").fit(model, column(3.0))
    assert_allclose(explainer.intercept_, [12.0])
    assert_allclose(explainer.transform(x), [[0.0]])
    assert_allclose(FastPDExplainer().fit(model, column(3.0)).transform(x), [[12.0]])


LEARNERS = {
    "xgboost": (lambda: xgb.XGBRegressor(n_estimators=1, tree_method="exact", **XGB), "hhh", "lh"),
    "tree": (lambda: DecisionTreeRegressor(max_depth=1), "lll", "lh"),
    "hist": (lambda: HistGradientBoostingRegressor(**ONE_TREE, max_leaf_nodes=2), "llh", "lh"),
    "lightgbm": (lambda: lgb.LGBMRegressor(**LGB, num_leaves=2), "lll", "lh"),
}


@BOTH
@pytest.mark.parametrize("kind", LEARNERS)
def test_a05_comparison_at_the_threshold(kind, explainer_class):
    """Values equal to a threshold, or one double beside it, changed their leaf."""
    make, at_threshold, near = LEARNERS[kind]
    X = np.tile(column(1, 2, 3, 4), (20, 1))
    model = make().fit(X, (X[:, 0] >= 3).astype(float))
    low, high = model.predict(column(1, 4))
    t = 2.5
    rows = [np.nextafter(t, 0), t, np.nextafter(t, 9), 2.4999, 2.5001]
    expected = [{"l": low, "h": high}[side] for side in at_threshold + near]
    values = explainer_class().fit(model, X).transform(column(*rows))[:, 0]
    assert_allclose(values, expected, rtol=1e-6)
    if kind == "lightgbm":
        beyond = explainer_class().fit(model, X).transform(column(2.500000000000001))
        assert_allclose(beyond, [[high]], rtol=1e-12)
    if kind != "tree":
        missing = explainer_class().fit(model, X).transform(column(np.nan))
        assert_allclose(missing[:, 0], model.predict(column(np.nan)), rtol=1e-6)
    if kind == "xgboost":
        assert_allclose(missing, [[low]], rtol=1e-6)


@BOTH
def test_a06_missing_values_at_a_tree_s_node(explainer_class):
    """Which way a node sends missing values is learnt; it is not always left."""
    X = np.tile(column(0, 1, 2, 3, np.nan, np.nan), (50, 1))
    model = DecisionTreeRegressor(max_depth=2).fit(X, np.tile([0.0, 0, 8, 8, 1, 1], 50))
    explainer = explainer_class().fit(model, X)
    assert_allclose(explainer.intercept_, [3.0])
    assert_allclose(explainer.transform(column(1, 3, np.nan))[:, 0], [0.0, 8.0, 1.0], atol=1e-12)


@BOTH
def test_a07_missing_read_as_zero(explainer_class):
    """LightGBM compares a missing value as 0 where training has seen none, whatever its default."""
    x = np.concatenate([np.linspace(-3.1, -2.9, 20), np.linspace(-1.1, -0.9, 20)])[:, None]
    model = lgb.LGBMRegressor(**LGB, num_leaves=2).fit(x, np.repeat([0.0, 1.0], 20))
    explainer = explainer_class().fit(model, x)
    assert_allclose(explainer.transform(column(np.nan, 0.0)), column(1.0, 1.0), rtol=1e-7)


@BOTH
def test_a08_categories_read_as_numbers(explainer_class):
    """A categorical split was read as a threshold of 0."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), rng.normal(size=300)])
    y = np.array([0, 9, -4, 7, -8, 3])[X[:, 0].astype(int)] + X[:, 1]
    model = HistGradientBoostingRegressor(categorical_features=[0], max_iter=30).fit(X, y)
    explainer = explainer_class(output="shap").fit(model, X)
    assert_allclose(total(explainer, X[:50]), model.predict(X[:50]), rtol=0, atol=1e-10)


def test_a09_categories_that_go_right():
    """Missing, unseen and negative categories go right in LightGBM; a float is cut off."""
    X = np.tile(column(0, 1, 2, 3), (20, 1))
    exact = {"cat_smooth": 0, "cat_l2": 0, "max_cat_to_onehot": 1, "min_data_per_group": 1}
    model = lgb.LGBMRegressor(**LGB, **exact, num_leaves=2)
    model.fit(X, np.tile([5.0, 9.0, 5.0, 9.0], 20), categorical_feature=[0])
    explainer = FastPDExplainer().fit(model, column(0, 1, 2, 3, np.nan, 77))
    assert_allclose(explainer.intercept_, [19 / 3], rtol=1e-7)
    values = explainer.transform(column(0, 1, np.nan, 77, -1, 1.9))[:, 0]
    assert_allclose(values, [5, 9, 5, 5, 5, 9], rtol=1e-7)


def test_a10_columns_moved_inside():
    """Histogram boosting moves categorical columns to the front; users count from outside."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(-2, 2, 400), rng.integers(0, 4, 400)])
    y = 2 * X[:, 0] + np.array([0, 10, -10, 5])[X[:, 1].astype(int)]
    model = HistGradientBoostingRegressor(categorical_features=[1]).fit(X, y)
    rows = np.column_stack([[-1.5, 0.0, 1.5], np.zeros(3)])
    values = FastPDExplainer(features=[0]).fit(model, X).transform(rows)
    truth = VanillaPDExplainer(features=[0]).fit(model, X).transform(rows)
    assert_allclose(values, truth, rtol=0, atol=1e-10)
    assert_allclose(np.diff(values[:, 0]), [3.0, 3.0], atol=0.3)


def edited(model, **learner):
    """The booster of a model with some of its stored parameters replaced."""
    content = json.loads(bytes(model.get_booster().save_raw("json")))
    content["learner"]["learner_model_param"].update(learner)
    return xgb.Booster(model_file=bytearray(json.dumps(content).encode()))


def base_scores(model):
    stored = json.loads(model.get_booster().save_config())["learner"]["learner_model_param"]
    return np.array([float(part) for part in stored["base_score"].strip("[]").split(",")])


def leaf_only(objective, y, kind=xgb.XGBRegressor, **params):
    """A model in which no split pays."""
    model = kind(n_estimators=1, gamma=1e9, n_jobs=1, objective=objective, **params)
    X = np.random.default_rng(0).normal(size=(len(y), 2))
    return model.fit(X, y), X


@pytest.mark.skipif(
    older("xgboost", "3.1"), reason="XGBoost itself misreads what later releases have stored"
)
@pytest.mark.parametrize("text", ["[2.8E-1]", "2.8E-1", "[0.28]"])
def test_a11_base_score_as_a_list(text):
    """The base score is stored as a number or as a list of numbers, on the scale of the mean."""
    model, X = leaf_only("binary:logistic", np.arange(300) < 84, xgb.XGBClassifier)
    explainer = FastPDExplainer().fit(edited(model, base_score=text), X)
    assert_allclose(explainer.intercept_, [logit(0.28)], rtol=1e-5)


def test_a11_base_score_a_class():
    """One base score a class."""
    y = np.repeat([0, 1, 2], [40, 70, 30])
    model, X = leaf_only("multi:softprob", y, xgb.XGBClassifier)
    explainer = FastPDExplainer().fit(model, X)
    margin = model.predict(X, output_margin=True)
    assert_allclose(explainer.intercept_, margin.mean(axis=0), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("objective", "link"),
    [
        ("count:poisson", np.log),
        ("reg:gamma", np.log),
        ("reg:tweedie", np.log),
        ("reg:squarederror", lambda mean: mean),
    ],
)
def test_a12_base_score_of_log_links(objective, link):
    """Objectives with a log link store the base score as a mean, but add it as a logarithm."""
    y = np.random.default_rng(0).poisson(1.2, 300) + 0.5
    model, X = leaf_only(objective, y, base_score=1.6539842, learning_rate=0.0)
    assert_allclose(base_scores(model), [1.6539842], rtol=1e-6)
    explainer = FastPDExplainer().fit(model, X)
    assert_allclose(explainer.intercept_, [link(1.6539842)], rtol=1e-6)
    margin = model.predict(X, output_margin=True)
    assert_allclose(explainer.intercept_, [margin.mean(dtype=np.float64)], rtol=1e-6)


@BOTH
def test_a13_trees_after_the_best_iteration(explainer_class):
    """After early stopping the model predicts with fewer trees than it keeps."""
    X, y = noisy()
    model = xgb.XGBRegressor(n_estimators=200, early_stopping_rounds=3, **XGB)
    model.fit(X[:100], y[:100], eval_set=[(X[100:], y[100:])], verbose=False)
    every = model.predict(X, iteration_range=(0, model.get_booster().num_boosted_rounds()))
    assert np.abs(every - model.predict(X)).max() > 1e-3
    explainer = explainer_class(output="shap").fit(model, X)
    assert_allclose(total(explainer, X), model.predict(X), rtol=0, atol=1e-5)


@BOTH
def test_a14_averaged_boosting(explainer_class):
    """LightGBM's random forest predicts the mean of its trees, not their sum."""
    X, y = noisy()
    params = {"boosting_type": "rf", "subsample": 0.7, "subsample_freq": 1, "n_estimators": 8}
    model = lgb.LGBMRegressor(**{**LGB, **params}).fit(X, y + 10)
    explainer = explainer_class(output="shap").fit(model, X)
    assert_allclose(total(explainer, X) / model.predict(X), 1.0, rtol=1e-10)


@BOTH
def test_a15_several_targets(explainer_class):
    """Targets of one tree were mixed."""
    X = column(0, 1)
    model = DecisionTreeRegressor().fit(X, [[1.0, 50.0], [3.0, 70.0]])
    explainer = explainer_class().fit(model, X)
    assert list(explainer.get_feature_names_out()) == ["x0__0", "x0__1"]
    assert_allclose(explainer.transform(X), [[1, 50], [3, 70]])
    second = explainer_class(target=1).fit(model, X)
    assert_allclose(second.transform(X), column(50, 70))


@BOTH
def test_a16_interactions_that_were_zero(explainer_class):
    """With a background all interaction values came out as zero."""
    model = both_above_half()
    shap = explainer_class(output="shap").fit(model, CORNERS)
    assert_allclose(shap.transform(ONES), [[3.0, 3.0]])
    matrix = explainer_class(output="shap_interaction").fit(model, CORNERS)
    assert_allclose(matrix.transform(ONES), [[2.0, 2.0, 1.0]])
    component = explainer_class(output="component").fit(model, CORNERS)
    assert_allclose(component.intercept_, [2.0])
    assert_allclose(component.transform(ONES), [[2.0, 2.0, 2.0]])


@BOTH
def test_a17_truncation_taken_for_shap(explainer_class):
    """SHAP values made of the components up to some order do not add up."""
    cube = np.array(list(product([0.0, 1.0], repeat=3)))
    model = DecisionTreeRegressor(random_state=0).fit(cube, 16.0 * cube.all(axis=1))
    row = np.ones((1, 3))
    whole = explainer_class(output="component", max_order=None).fit(model, cube).explain(row)
    assert_allclose(whole.values, np.full((1, 7), 2.0))
    assert_allclose(whole.base_values, 2.0)
    assert whole.complete
    cut = explainer_class(output="component", max_order=2).fit(model, cube).explain(row)
    assert_allclose(cut.remainder, [2.0])
    assert not cut.complete
    shap = explainer_class(output="shap").fit(model, cube)
    assert_allclose(shap.transform(row), np.full((1, 3), 14 / 3))


def test_a17_nothing_is_truncated():
    """Where the terms left out are zero the decomposition is complete."""
    stumps = [(j, 0.5, 0.0, 2.0**j) for j in range(3)]
    cube = np.array(list(product([0.0, 1.0], repeat=3)))
    explainer = FastPDExplainer(output="component", max_order=1)
    explanation = explainer.fit(ForestModel(make_forest(stumps, 3)), cube).explain(cube)
    assert explanation.complete
    assert_allclose(explanation.remainder, 0.0, atol=1e-14)


@pytest.fixture(scope="module")
def rare_indicators():
    rng = np.random.default_rng(0)
    X = (rng.random((4000, 60)) < 0.05).astype(np.float32)
    y = X @ rng.normal(size=60) + 3 * X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=4000)
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    assert model.get_depth() > 50
    return model, X


@BOTH
def test_a18_deep_paths(rare_indicators, explainer_class):
    """Attributions exploded on paths of many features."""
    model, X = rare_indicators
    explainer = explainer_class(output="shap").fit(model, X[:200])
    rows = X[100:300:10]
    scale = find_reader(model).read(model).forest.scale()[0]
    error = np.abs(total(explainer, rows) - model.predict(rows)).max()
    assert error <= 1e-8 * scale


def test_a22_shuffled_index():
    """Replaced columns of a frame were aligned by its index, and became missing."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 3, (60, 2)).astype(float), columns=["a", "b"])
    model = DecisionTreeRegressor().fit(frame, frame["a"] * frame["b"])
    odd = frame.set_axis(np.arange(60)[::-1] + 1000)
    for explainer_class in (FastPDExplainer, PathDependentExplainer, VanillaPDExplainer):
        plain = explainer_class(max_order=2).fit(model, frame).transform(frame)
        assert_array_equal(explainer_class(max_order=2).fit(model, odd).transform(odd), plain)
    truth = frame["a"] * frame["b"].mean()
    assert_allclose(plain[:, 0], truth, atol=1e-12)


@BOTH
def test_a23_reordered_columns(explainer_class):
    """Columns in another order were explained by their position."""
    frame = pd.DataFrame({"u": np.arange(8.0), "v": np.arange(8.0) ** 2})
    model = DecisionTreeRegressor().fit(frame, frame["u"] - frame["v"])
    reordered = frame[["v", "u"]]
    with pytest.raises(ValueError, match="feature names should match"):
        explainer_class().fit(model, reordered)
    explainer = explainer_class().fit(model, frame)
    with pytest.raises(ValueError, match="feature names should match"):
        explainer.transform(reordered)
    with pytest.warns(UserWarning, match="valid feature names"):
        by_position = explainer.transform(frame.to_numpy())
    assert_array_equal(by_position, explainer.transform(frame))
    X = frame.to_numpy()
    nameless = explainer_class().fit(DecisionTreeRegressor().fit(X, X[:, 0]), X)
    with pytest.raises(ValueError, match="2 features"):
        nameless.transform(np.zeros((1, 3)))


@BOTH
def test_a24_base_value_that_drifted(explainer_class):
    """The base value changed its number and its shape with the first explanation."""
    X, y = noisy()
    model = xgb.XGBClassifier(n_estimators=20, **XGB).fit(X, y > 0)
    explainer = explainer_class(output="shap").fit(model, X)
    before = explainer.intercept_.copy()
    assert before.shape == (1,)
    first = explainer.transform(X[:20])
    assert_array_equal(explainer.transform(X[:20]), first)
    assert_array_equal(explainer.intercept_, before)
    again = clone(explainer).fit(model, X)
    assert_array_equal(again.intercept_, before)
    assert_array_equal(again.transform(X[:20]), first)


CONSTANT = {
    "tree": DecisionTreeRegressor,
    "forest": lambda: RandomForestRegressor(n_estimators=2),
    "gradient boosting": lambda: GradientBoostingRegressor(n_estimators=2),
    "hist": lambda: HistGradientBoostingRegressor(max_iter=2),
    "lightgbm": lambda: lgb.LGBMRegressor(n_estimators=2, n_jobs=1, verbose=-1),
    "xgboost": lambda: xgb.XGBRegressor(n_estimators=2, n_jobs=1),
}


@BOTH
@pytest.mark.parametrize("kind", CONSTANT)
def test_a25_trees_without_a_split(kind, explainer_class):
    """A model of leaves alone broke the reader."""
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = CONSTANT[kind]().fit(X, np.full(40, 7.0))
    explainer = explainer_class(output="component", max_order=None).fit(model, X)
    assert_allclose(explainer.intercept_, [7.0], rtol=1e-7)
    assert explainer.terms_ == (("x0",), ("x1",))
    assert_array_equal(explainer.transform(X), np.zeros((40, 2)))


@BOTH
def test_a25_one_bare_leaf_among_trees(explainer_class):
    """So did a single tree that is a leaf."""
    trees = [(0, 0.5, 1.0, 2.0), (1, 0.5, 3.0, 5.0), 100.0]
    explainer = explainer_class(output="shap").fit(ForestModel(make_forest(trees, 3)), CORNERS3)
    assert_allclose(explainer.intercept_, [105.5])
    assert_allclose(explainer.transform(CORNERS3[:1]), [[-0.5, -1.0, 0.0]])


def test_a26_linear_leaves():
    """Leaves that are linear functions were explained as if they were constant."""
    X, y = noisy()
    model = lgb.LGBMRegressor(**{**LGB, "n_estimators": 3}, linear_tree=True).fit(X, y)
    explanation = FastPDExplainer(output="shap").fit(model, X).explain(X[:20])
    total = explanation.base_values + explanation.values.sum(axis=1)
    assert_allclose(total, model.predict(X[:20]), rtol=1e-10)
    with pytest.raises(ValueError, match="linear_tree"):
        PathDependentExplainer().fit(model, X)
