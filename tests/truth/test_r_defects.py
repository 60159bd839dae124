"""What the R implementation of FastPD gets wrong, each with the right value.

Its path-dependent and interventional values, where they are right, are in `test_reference`.
"""

from fractions import Fraction
from math import comb

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from fastpd_sklearn.forest import find_reader
from tests import oracles
from tests.truth.boosters import make_booster
from tests.truth.helpers import EXPLAINERS, OUTPUTS, terms_of
from tests.truth.toys import ForestModel, chain, make_forest

BOTH = pytest.mark.parametrize("explainer_class", [FastPDExplainer, PathDependentExplainer])


def total(explainer, X):
    return explainer.intercept_ + explainer.transform(X).sum(axis=1)


# --- comparisons -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["hist", "lightgbm"])
def test_doubles_are_not_compared_as_single(kind):
    """Seconds since 1970 that share a float32 are different values to a forest of doubles."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1.7e9 + rng.integers(0, 100, 300), rng.integers(0, 100, 300) / 100])
    assert len(np.unique(X[:, 0].astype(np.float32))) < 3
    y = np.sin(X[:, 0] / 10) + X[:, 1] * (X[:, 0] > 1.7e9 + 50)
    if kind == "hist":
        model = HistGradientBoostingRegressor(max_iter=10).fit(X, y)
    else:
        model = lgb.LGBMRegressor(n_estimators=10, n_jobs=1, verbose=-1).fit(X, y)
    assert np.std(model.predict(X)) > 0.3
    explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
    assert_allclose(total(explainer, X), model.predict(X), rtol=0, atol=1e-10)
    truth = oracles.pd_function(model.predict, X, None, [0], X[:20])
    pd_explainer = FastPDExplainer(features=[0]).fit(model, X)
    assert_allclose(pd_explainer.transform(X[:20]), truth, rtol=0, atol=1e-10)


def test_single_is_not_compared_as_double():
    """XGBoost splits on data values: a double just below one is rounded up onto it."""
    X = np.tile([[0.1], [0.3], [0.7]], (20, 1))
    model = xgb.XGBRegressor(n_estimators=1, n_jobs=1).fit(X, X[:, 0] ** 2)
    explainer = FastPDExplainer().fit(model, X)
    edges = thresholds_of(model)
    assert np.isin(edges, X.astype(np.float32)).all()
    below = np.nextafter(edges, -1.0)[:, None]
    assert np.all(below[:, 0] < edges)
    assert_allclose(explainer.transform(below)[:, 0], model.predict(edges[:, None]), rtol=1e-6)
    assert_allclose(explainer.transform(below)[:, 0], model.predict(below), rtol=1e-6)


def thresholds_of(model):
    tables = model.get_booster().trees_to_dataframe()
    return np.float32(tables["Split"].dropna()).astype(np.float64)


# --- many features ---------------------------------------------------------------------------


def complete_tree(depth):
    """A tree whose inner nodes all test another feature; its leaves are numbered."""
    count = iter(range(2**depth))
    feature = iter(range(2**depth - 1))

    def grow(level):
        if level == depth:
            return float(next(count))
        return (next(feature), 0.5, grow(level + 1), grow(level + 1))

    return grow(0)


def test_subsets_of_paths_not_of_trees():
    """All orders of a tree with 31 features on paths of 5: 2^31 sets, of which few can matter."""
    model = ForestModel(make_forest([complete_tree(5)], 31))
    X = np.random.default_rng(0).integers(0, 2, (40, 31)).astype(float)
    explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
    paths = {tuple(sorted(path)) for path in paths_of(complete_tree(5))}
    within = {T for path in paths for T in oracles.subsets(path)} - {()}
    assert {tuple(int(n[1:]) for n in term) for term in explainer.terms_} == within
    assert_allclose(total(explainer, X), model.predict(X)[:, 0], rtol=1e-12)


def paths_of(tree):
    if not isinstance(tree, tuple):
        return [[]]
    return [[tree[0], *path] for child in tree[2:] for path in paths_of(child)]


@BOTH
@pytest.mark.parametrize("n_features", [63, 64, 65, 127])
def test_many_features_in_a_tree(n_features, explainer_class):
    """64 features in one tree made all components zero, 127 an error."""
    depth = 7 if n_features == 127 else 6
    tree = complete_tree(depth)
    if depth == 6:  # 63 features; one more replaces a leaf each
        for extra in range(63, n_features):
            tree = (extra, 0.5, tree, -float(extra))
    model = ForestModel(make_forest([tree], n_features))
    X = np.random.default_rng(0).integers(0, 2, (50, n_features)).astype(float)
    explainer = explainer_class(output="component", max_order=None).fit(model, X)
    assert np.abs(explainer.transform(X)).max() > 1
    assert_allclose(total(explainer, X), model.predict(X)[:, 0], rtol=0, atol=1e-9)
    shap = explainer_class(output="shap").fit(model, X)
    assert_allclose(total(shap, X), model.predict(X)[:, 0], rtol=0, atol=1e-9)


def conjunction_shap(p, q):
    """SHAP of "all are satisfied" with p for the known and q for the unknown players."""
    a, b = np.sum(p & ~q), np.sum(q & ~p)
    if np.any(~p & ~q):
        return np.zeros(len(p))
    gain = 0.0 if a == 0 else 1 / (a * comb(a + b, a))
    loss = 0.0 if b == 0 else 1 / (b * comb(a + b, b))
    return np.where(p & ~q, gain, 0.0) - np.where(q & ~p, loss, 0.0)


def conjunctions(n):
    """Rows of zeros and ones, most of them ones."""
    rng = np.random.default_rng(n)
    X = np.ones((9, n))
    for row, n_zeros in enumerate([0, 1, 2, 2, 5, n // 2, n - 1, n, 3]):
        X[row, rng.permutation(n)[:n_zeros]] = 0.0
    return X


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("n", [63, 64, 65, 127, 130])
def test_many_features_on_a_path(n, repeated):
    """The game of a conjunction has SHAP values in closed form, for any number of players."""
    tree = chain([*range(n), *range(n)] if repeated else range(n), 0.0, 8.0)
    model = ForestModel(make_forest([tree], n))
    X = conjunctions(n)
    weights = np.arange(1.0, 10.0)
    truth = [
        np.average([8 * conjunction_shap(x > 0, b > 0) for b in X], axis=0, weights=weights)
        for x in X
    ]
    shap = FastPDExplainer(output="shap").fit(model, X, sample_weight=weights)
    assert_allclose(shap.transform(X), truth, rtol=0, atol=1e-12)
    satisfied = (X > 0).all(axis=1)
    assert_allclose(shap.intercept_, [8 * np.average(satisfied, weights=weights)])
    one = FastPDExplainer(features=[0, n - 1, (0, n - 1)]).fit(model, X, sample_weight=weights)
    expected = oracles.pd_function(model.predict, X, weights, [0, n - 1], X)
    assert_allclose(one.transform(X)[:, [2]], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [64, 127])
def test_many_features_on_a_path_by_covers(n):
    """The same game with shares of cover for the unknown players, in fractions.

    All leaves but the last are zero, so that its game is the whole.
    """
    model = ForestModel(make_forest([chain(range(n), 0.0, 8.0)], n))
    X = conjunctions(n)[[0, 2, 5]]
    # Below node k there are n + 1 - k leaves, of which one is to the left.
    q = [Fraction(n - k, n + 1 - k) for k in range(n)]
    picked = [0, 1, n - 1]
    shap = PathDependentExplainer(output="shap", features=picked).fit(model)
    truth = [[8 * oracles.product_game_index("shap", x, q, (k,)) for k in picked] for x in X]
    assert_allclose(shap.transform(X), np.array(truth, float), rtol=0, atol=1e-12)
    pairs = PathDependentExplainer(output="banzhaf", features=[(0, n - 1)]).fit(model)
    truth = [[8 * oracles.product_game_index("banzhaf", x, q, (0, n - 1))] for x in X]
    assert_allclose(pairs.transform(X), np.array(truth, float), rtol=0, atol=1e-12)


# --- orders ----------------------------------------------------------------------------------


def forest_model(n_columns=5):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 6, (80, n_columns)).astype(float)
    y = (X[:, 0] - 2) ** 2 * X[:, -1] - X[:, n_columns // 2]
    return RandomForestRegressor(n_estimators=4, max_depth=5, random_state=0).fit(X, y), X


@BOTH
@pytest.mark.parametrize("output", ["pd", "component", "banzhaf"])
def test_fewer_orders_are_the_full_run_s(output, explainer_class):
    """A smaller max_order leaves out terms; those that stay keep their values."""
    model, X = forest_model()
    full = explainer_class(output=output, max_order=None).fit(model, X)
    values = full.transform(X[:10])
    for order in (1, 2, 3, 4):
        explainer = explainer_class(output=output, max_order=order).fit(model, X)
        place = [full.terms_.index(term) for term in explainer.terms_]
        assert set(explainer.terms_) == {term for term in full.terms_ if len(term) <= order}
        assert_allclose(explainer.transform(X[:10]), values[:, place], rtol=0, atol=1e-11)
        assert_allclose(explainer.intercept_, full.intercept_, rtol=1e-14)


# --- names and shapes ------------------------------------------------------------------------


@BOTH
def test_names_that_are_numbers(explainer_class):
    """Columns called "1", "2", "3" are found by their names, not by the numbers in them."""
    frame = pd.DataFrame({"3": [0.0, 1.0] * 4, "1": [0.0, 0, 1, 1] * 2, "2": [0.0] * 4 + [1.0] * 4})
    model = DecisionTreeRegressor().fit(frame, frame["3"] + 10 * frame["1"] + 100 * frame["2"])
    whole = explainer_class().fit(model, frame)
    assert whole.terms_ == (("3",), ("1",), ("2",))
    values = whole.transform(frame)
    assert_allclose(np.ptp(values, axis=0), [1.0, 10.0, 100.0])
    named = explainer_class(features=["1", "2", "3"]).fit(model, frame)
    assert_array_equal(named.transform(frame), values[:, [1, 2, 0]])
    numbered = explainer_class(features=[1, 2, 0]).fit(model, frame)
    assert_array_equal(numbered.transform(frame), values[:, [1, 2, 0]])


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("coverage", EXPLAINERS)
@pytest.mark.parametrize("n_columns", [1, 3])
def test_single_rows_and_columns(n_columns, coverage, output):
    """One row to explain, one row of background, one column."""
    model, X = forest_model(n_columns)
    for background, rows in ((X, X[:1]), (X[:1], X), (X[:1], X[1:2])):
        players = [[j] for j in range(n_columns)]
        if coverage == "empirical":
            game = oracles.interventional_game(model.predict, background, None, rows, players)
        else:
            game = counted_game(model, background, rows, players)
        terms = terms_of(output, n_columns)
        explainer = EXPLAINERS[coverage](output=output, features=terms).fit(model, background)
        truth = np.hstack([oracles.INDICES[output](game, T) for T in terms])
        assert_allclose(explainer.transform(rows), truth, rtol=0, atol=1e-11)
        assert explainer.transform(rows).shape == (len(rows), len(terms))


def counted_game(model, background, rows, players):
    forest = find_reader(model).read(model).forest
    counts = oracles.passages(forest, background).sum(axis=1)
    return oracles.path_game(forest, [counts, forest.cover], rows, players)


@BOTH
@pytest.mark.parametrize("output", OUTPUTS)
def test_leaves_alone(output, explainer_class):
    """A model of leaves is a constant, and every term but the mean is zero."""
    X = np.arange(6.0).reshape(3, 2)
    explainer = explainer_class(output=output).fit(ForestModel(make_forest([3.0, 4.0], 2)), X)
    assert_allclose(explainer.intercept_, [7.0])
    expected = 7.0 if output == "pd" else 0.0
    assert_array_equal(explainer.transform(X), np.full((3, 2), expected))


# --- backgrounds and missing values ----------------------------------------------------------


def test_background_of_its_own():
    """The background is what it is given as, whole and in any order, not a draw from the rows."""
    model, X = forest_model()
    rows, background = X[:7], X[30:]
    explainer = FastPDExplainer(output="shap").fit(model, background)
    assert_allclose(explainer.intercept_, [model.predict(background).mean()], rtol=1e-12)
    game = oracles.interventional_game(
        model.predict, background, None, rows, [[j] for j in range(5)]
    )
    truth = np.hstack([oracles.shapley_interaction(game, (j,)) for j in range(5)])
    assert_allclose(explainer.transform(rows), truth, rtol=0, atol=1e-11)
    backwards = FastPDExplainer(output="shap").fit(model, background[::-1])
    assert_allclose(backwards.transform(rows), explainer.transform(rows), rtol=0, atol=1e-12)


@pytest.mark.parametrize("side", [-50.0, 50.0])
def test_missing_by_default_direction(side):
    """Missing values go where training sent them, not always to the right."""
    x = np.concatenate([np.linspace(-1, 1, 60), np.full(20, np.nan)])[:, None]
    y = np.where(np.isnan(x[:, 0]), side, np.where(x[:, 0] < 0, -50.0, 50.0))
    model = xgb.XGBRegressor(
        n_estimators=1, max_depth=1, learning_rate=1.0, reg_lambda=0.0, n_jobs=1
    ).fit(x, y)
    explainer = FastPDExplainer().fit(model, x)
    assert_allclose(explainer.transform([[np.nan]]), [[side]], rtol=1e-6)
    assert_allclose(explainer.intercept_, [y.mean()], rtol=1e-6)


# --- covers ----------------------------------------------------------------------------------


def unequal_tree(cover):
    """x0 < 1/2 ? 1 : (x1 < 1/2 ? 2 : 6), as an XGBoost model with the covers of its nodes."""
    tree = {
        "left": [1, -1, 3, -1, -1],
        "right": [2, -1, 4, -1, -1],
        "feature": [0, -1, 1, -1, -1],
        "number": [0.5, 1.0, 0.5, 2.0, 6.0],
    }
    return make_booster([{**tree, "cover": cover}], 2)


@pytest.mark.parametrize(
    ("cover", "background", "base"),
    [
        # The model's own covers.
        ([12.0, 8.0, 4.0, 3.0, 1.0], None, (8 * 1 + 3 * 2 + 1 * 6) / 12),
        # Counted on the background instead.
        ([12.0, 8.0, 4.0, 3.0, 1.0], [[0, 0], [1, 0], [1, 1], [1, 1]], (1 + 2 + 6 + 6) / 4),
        # No row of the background comes to the second node: the model's own shares there.
        ([12.0, 8.0, 4.0, 3.0, 1.0], [[0, 0], [0, 1]], 1.0),
        # The model knows no share either: halves.
        ([8.0, 8.0, 0.0, 0.0, 0.0], [[0, 0], [0, 1]], 1.0),
        ([0.0, 0.0, 0.0, 0.0, 0.0], None, 1 / 2 + 2 / 4 + 6 / 4),
    ],
)
def test_covers(cover, background, base):
    """The covers are the model's unless a background is given, and 0 / 0 is 1 / 2 at last."""
    model = unequal_tree(cover)
    explainer = PathDependentExplainer(features=[0, 1]).fit(model, background)
    assert_allclose(explainer.intercept_, [base], rtol=1e-12)
    low = 0.5 if cover[3] + cover[4] == 0 else cover[3] / (cover[3] + cover[4])
    if background is not None and np.any(np.array(background)[:, 0] > 0):
        low = 1 / 3
    values = explainer.transform([[1.0, 0.0]])
    assert_allclose(values[0, 0], 2 * low + 6 * (1 - low), rtol=1e-12)


# --- several outputs -------------------------------------------------------------------------


@BOTH
def test_classes_are_not_added_up(explainer_class):
    """Each class has its own trees, its own base score and its own explanation."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3)).astype(np.float32)
    model = xgb.XGBClassifier(n_estimators=3, max_depth=3, n_jobs=1)
    model.fit(X, np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.7]))
    explainer = explainer_class(output="shap").fit(model, X)
    values = explainer.transform(X).reshape(len(X), 3, 3).sum(axis=1) + explainer.intercept_
    assert_allclose(values, model.predict(X, output_margin=True), rtol=0, atol=1e-5)
