"""Accumulated local effects against loops over the definition, and closed forms."""

import pickle
import warnings

import lightgbm as lgb
import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from fastpd_sklearn import ALEExplainer
from fastpd_sklearn.explainers._ale_bins import quantile_edges
from tests.explainers import ale_oracle

pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")

SMALL = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "random_state": 0}


class Function:
    """A model that is a function of the columns."""

    def __init__(self, function, n_columns):
        self.function, self.n_features_in_ = function, n_columns
        self.n_rows = self.n_calls = 0

    def predict(self, X):
        self.n_calls += 1
        self.n_rows += len(X)
        return self.function(*np.asarray(X, dtype=np.float64).T)


@pytest.fixture(scope="module")
def data():
    """Correlated columns, one of counts with ties."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    X[:, 1] += 0.7 * X[:, 0]
    X[:, 2] = rng.integers(0, 5, 60)
    X.flags.writeable = False
    return X


@pytest.fixture(scope="module")
def target(data):
    return data[:, 0] * data[:, 1] + (data[:, 2] > 2) * data[:, 0]


def fitted(kind, X, y):
    classes = np.digitize(y, [-0.5, 0.5])
    models = {
        "forest": lambda: RandomForestRegressor(**SMALL).fit(X, y),
        "xgboost": lambda: xgb.XGBRegressor(**SMALL).fit(X, y),
        "lightgbm": lambda: lgb.LGBMRegressor(**SMALL, min_child_samples=2, verbose=-1).fit(X, y),
        "histogram": lambda: HistGradientBoostingRegressor(
            max_iter=4, min_samples_leaf=2, early_stopping=False
        ).fit(X, y),
        "linear": lambda: LinearRegression().fit(X, y),
        "forest classes": lambda: RandomForestClassifier(**SMALL).fit(X, classes),
        "xgboost classes": lambda: xgb.XGBClassifier(**SMALL).fit(X, classes),
        "xgboost binary": lambda: xgb.XGBClassifier(**SMALL).fit(X, y > 0),
        "logistic": lambda: LogisticRegression().fit(X, classes),
    }
    return models[kind]()


def responses(model, method):
    """Functions that give one output each."""
    call = getattr(model, method)
    n = np.asarray(call(np.zeros((1, 3)))).reshape(1, -1).shape[1]
    first = 1 if method == "predict_proba" and n == 2 else 0
    return [lambda X, k=k: np.asarray(call(X)).reshape(len(X), -1)[:, k] for k in range(first, n)]


CASES = [
    ("forest", "predict"),
    ("xgboost", "predict"),
    ("lightgbm", "predict"),
    ("histogram", "predict"),
    ("linear", "predict"),
    ("forest classes", "predict_proba"),
    ("xgboost classes", "predict_proba"),
    ("xgboost binary", "predict_proba"),
    ("logistic", "predict_proba"),
]


@pytest.mark.parametrize(("kind", "method"), CASES, ids=[" ".join(case) for case in CASES])
def test_first_order_is_that_of_the_definition(kind, method, data, target):
    model = fitted(kind, data, target)
    explainer = ALEExplainer(response_method=method, n_bins=6, n_jobs=1).fit(model, data)
    for j, curve in enumerate(explainer.effects_):
        edges = curve.grid_values[0]
        assert edges[0] == data[:, j].min()
        assert edges[-1] == data[:, j].max()
        assert np.all(np.diff(edges) > 0)
        outputs = responses(model, method)
        assert len(outputs) == len(curve.effect)
        for k, respond in enumerate(outputs):
            effect, mean, local = ale_oracle.first_order(respond, data, j, edges)
            assert_allclose(curve.effect[k], effect, atol=2e-6)
            assert_allclose(curve.local_effect[k], mean, atol=2e-6)
            assert_array_equal(curve.bin_counts, [len(d) for d in local])
            std = [np.std(d, ddof=1) for d in local]
            assert_allclose(curve.local_std[k], std, atol=2e-6)
        at_data = curve(data[:, j])
        assert_allclose(at_data.mean(axis=1), 0.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["forest", "linear", "xgboost"])
def test_second_order_is_that_of_the_definition(kind, data, target):
    model = fitted(kind, data, target)
    explainer = ALEExplainer(features=[(0, 1), (2, 0)], n_bins=4, n_jobs=1).fit(model, data)
    for columns, surface in zip([(0, 1), (2, 0)], explainer.effects_, strict=True):
        edges = surface.grid_values
        total, empty = ale_oracle.second_order(model.predict, data, columns, edges)
        found = surface.effect[0]
        assert_array_equal(surface.is_filled, empty)
        assert_array_equal(surface.bin_counts == 0, empty)
        # What was taken away is a sum of functions of one column each.
        rest = found - total
        assert_allclose(rest - rest[:1] - rest[:, :1] + rest[0, 0], 0.0, atol=2e-6)
        # What is left has no first-order effect, and the mean zero.
        rows = data[:, columns]
        assert_allclose(ale_oracle.bilinear(found, edges, rows).mean(), 0.0, atol=1e-9)
        for j in (0, 1):
            effect, _, _ = ale_oracle.first_order(
                lambda X, f=found, e=edges: ale_oracle.bilinear(f, e, X), rows, j, edges[j]
            )
            assert_allclose(effect, 0.0, atol=1e-9)
        assert_allclose(surface(*rows.T)[0], ale_oracle.bilinear(found, edges, rows), atol=1e-12)


def test_linear_models_have_lines_and_no_interaction(data):
    model = LinearRegression().fit(data, data @ [1.0, -2.0, 3.0])
    explainer = ALEExplainer(features=[0, 1, 2, (0, 1)], n_bins=7).fit(model, data)
    for slope, j in zip([1.0, -2.0, 3.0], range(3), strict=True):
        curve = explainer.effects_[j]
        line = slope * (curve.grid_values[0] - data[:, j].mean())
        assert_allclose(curve.effect[0], line, atol=1e-12)
        assert_allclose(curve.local_std, 0.0, atol=1e-12)
        assert_allclose(curve.lower, curve.upper, atol=1e-12)
    assert_allclose(explainer.effects_[3].effect, 0.0, atol=1e-12)
    values = explainer.transform(data)
    assert_allclose(values[:, :3], (data - data.mean(axis=0)) * [1.0, -2.0, 3.0], atol=1e-12)


def test_the_product_of_independent_columns():
    a, b = (x.ravel() for x in np.meshgrid([0.0, 1.0, 3.0], [-1.0, 1.0, 2.0, 4.0]))
    X = np.column_stack([a, b])
    model = Function(lambda a, b: a * b, 2)
    one, other, both = ALEExplainer(features=[0, 1, (0, 1)]).fit(model, X).effects_
    assert_allclose(both.effect[0], np.outer([0, 1, 3] - a.mean(), [-1, 1, 2, 4] - b.mean()))
    # The slope in a row is the other column's value, on average its mean.
    assert_allclose(one.effect[0], ([0, 1, 3] - a.mean()) * b.mean())
    assert_allclose(other.effect[0], ([-1, 1, 2, 4] - b.mean()) * a.mean())


def test_the_product_of_correlated_columns_has_mixed_differences_of_areas():
    rng = np.random.default_rng(1)
    a = rng.normal(size=300)
    X = np.column_stack([a, a + 0.5 * rng.normal(size=300)])
    surface = ALEExplainer(features=[(0, 1)], n_bins=5).fit(Function(np.multiply, 2), X).effects_[0]
    areas = np.outer(*(np.diff(edges) for edges in surface.grid_values))
    nearest_only = surface.is_filled
    mixed = np.diff(np.diff(surface.effect[0], axis=0), axis=1)
    assert nearest_only.any()
    assert_allclose(mixed[~nearest_only], areas[~nearest_only])


def test_a_step_function():
    x = np.arange(10.0)[:, None]
    model = DecisionTreeRegressor(random_state=0).fit(x, np.where(x[:, 0] > 4, 8.0, 0.0))
    curve = ALEExplainer(n_bins=9).fit(model, x).effects_[0]
    assert_allclose(curve.effect[0], np.where(np.arange(10) > 4, 4.0, -4.0))
    coarse = ALEExplainer(n_bins=2).fit(model, x).effects_[0]
    assert_array_equal(coarse.grid_values[0], [0.0, 4.0, 9.0])
    assert_allclose(np.diff(coarse.effect[0]), [0.0, 8.0])
    # Zero in the mean of the data: the upper five rows are 1/5, ..., 5/5 of the way up.
    assert_allclose(coarse.effect[0, 0], -8.0 * (1 + 2 + 3 + 4 + 5) / 5 / 10)


def test_a21_constant_column():
    """A column that does not vary has one bin, with all rows, and no effect."""
    X = np.full((50, 1), 4.0)
    for model in (Function(lambda x: 2 * x, 1), DecisionTreeRegressor().fit(X, np.ones(50))):
        explainer = ALEExplainer().fit(model, X)
        curve = explainer.effects_[0]
        assert_array_equal(curve.grid_values[0], [4.0])
        assert_array_equal(curve.effect, [[0.0]])
        assert_array_equal(curve.bin_counts, [50])
        assert_array_equal(curve.lower, [[0.0]])
        assert_array_equal(explainer.transform([[4.0], [7.0]]), [[0.0], [0.0]])


def test_a21_tied_column():
    """Ties make no empty bin and no edge twice; effects are centred by the data."""
    X = np.repeat([0.0, 10.0], [45, 5])[:, None]
    curve = ALEExplainer().fit(Function(lambda x: 2 * x, 1), X).effects_[0]
    assert_array_equal(curve.grid_values[0], [0.0, 10.0])
    assert_allclose(curve.effect, [[-2.0, 18.0]])
    assert_array_equal(curve.bin_counts, [50])


def test_a21_constant_partner():
    X = np.column_stack([np.arange(6.0), np.ones(6)])
    explainer = ALEExplainer(features=[(0, 1)]).fit(Function(lambda a, b: a * b, 2), X)
    assert explainer.effects_[0].effect.shape == (1, 6, 1)
    assert_array_equal(explainer.transform(X), np.zeros((6, 1)))


def test_a22_rows_are_not_looked_up_by_index():
    """A data frame's index says nothing about the order of its rows."""
    pd = pytest.importorskip("pandas")
    a, b = (x.ravel() for x in np.meshgrid([0.0, 1.0, 3.0], [-1.0, 1.0, 2.0]))
    frame = pd.DataFrame({"a": a, "b": b})
    odd = frame.set_axis(np.arange(9)[::-1] + 1000)

    class Product:
        def predict(self, X):
            return (X["a"] * X["b"]).to_numpy()

    explainer = ALEExplainer(features=["a", ("a", "b")])
    for found, truth in zip(
        explainer.fit(Product(), odd).effects_,
        clone(explainer).fit(Product(), frame).effects_,
        strict=True,
    ):
        assert_array_equal(found.effect, truth.effect)
        assert np.isfinite(found.effect).all()


def test_pyale_differs_by_its_centring_alone():
    """Values of PyALE 1.2.0, which centres by the middles of the bins."""
    i = np.arange(60)
    a = ((7 * i) % 30) / 3.0
    X = np.column_stack([a, ((11 * i) % 20) / 2.0 + 0.25 * a])
    model = Function(lambda a, b: a * b + a**2, 2)
    pyale = [-56.7875, -46.0236111111, -25.1069444444, 6.1430555556, 46.0597222222, 94.6430555556]
    curve = ALEExplainer(features=[0], n_bins=5).fit(model, X).effects_[0]
    middles = (curve.effect[0, 1:] + curve.effect[0, :-1]) / 2
    centred = curve.effect[0] - np.average(middles, weights=curve.bin_counts)
    assert_allclose(centred, pyale, atol=1e-9)

    pyale = [
        [23.5753472222, 5.2309027778, -9.9635416667, -30.1197916667],
        [7.5190972222, 2.1746527778, -3.0197916667, -11.9260416667],
        [-11.5503472222, -2.4503472222, 3.4663194444, 7.0600694444],
        [-33.6684027778, -10.1239583333, 6.9038194444, 22.9975694444],
    ]
    surface = ALEExplainer(features=[(0, 1)], n_bins=3).fit(model, X).effects_[0].effect[0]
    mixed = [np.diff(np.diff(s, axis=0), axis=1) for s in (surface, np.array(pyale))]
    assert_allclose(*mixed, atol=1e-9)


# ------------------------------------------------------------------------------ bins


def test_bins_have_about_the_same_weight():
    x = np.random.default_rng(0).normal(size=1000)[:, None]
    curve = ALEExplainer(n_bins=10).fit(Function(lambda x: x, 1), x).effects_[0]
    assert curve.bin_counts.sum() == 1000
    # The lowest value is an edge of its own, in the first bin.
    assert_array_equal(curve.bin_counts, np.full(10, 100))


def test_few_values_are_all_edges():
    x = np.repeat([1.0, 2.0, 5.0, 7.0], [97, 1, 1, 1])[:, None]
    curve = ALEExplainer(n_bins=3).fit(Function(lambda x: x, 1), x).effects_[0]
    assert_array_equal(curve.grid_values[0], [1.0, 2.0, 5.0, 7.0])
    assert_array_equal(curve.bin_counts, [98, 1, 1])
    coarse = ALEExplainer(n_bins=2).fit(Function(lambda x: x, 1), x).effects_[0]
    assert_array_equal(coarse.grid_values[0], [1.0, 7.0])


@pytest.mark.parametrize("kind", range(8))
def test_edges_are_quantiles_of_any_values(kind):
    make = [
        lambda n: rng.normal(size=n),
        lambda n: rng.integers(-5, 5, n) * 1.0,
        lambda n: np.exp(50 * rng.normal(size=n)),
        lambda n: rng.choice([-0.0, 0.0, 1.0], n),
        lambda n: 1e9 + 1e-3 * rng.normal(size=n),
        lambda n: rng.choice([-1e-60, -0.0, 0.0, 1e-60], n),
        lambda n: rng.integers(0, 60, n) * 3e306,
        lambda n: np.repeat(rng.normal(size=n // 4 + 1), 4)[:n],
    ][kind]
    rng = np.random.default_rng(kind)
    for n in (*range(1, 30), 200, 300):
        for n_bins in (1, 2, 7, 25, 60):
            values = make(n)
            truth = np.unique(values)
            if len(truth) > n_bins + 1:
                shares = np.linspace(0, 1, n_bins + 1) * (1 - 1e-12)
                truth = np.unique(np.quantile(values, shares, method="inverted_cdf"))
            assert_array_equal(quantile_edges(values, None, n_bins), truth)
            assert_array_equal(quantile_edges(values, np.ones(n), n_bins), truth)


@pytest.mark.parametrize("kind", ["forest", "linear"])
def test_weights_are_repetitions(kind, data, target):
    model = fitted(kind, data, target)
    weights = np.arange(60) % 4
    explainer = ALEExplainer(features=[0, 2, (0, 1)], n_bins=5)
    weighted = explainer.fit(model, data, sample_weight=weights).effects_
    repeated = clone(explainer).fit(model, np.repeat(data, weights, axis=0)).effects_
    for one, other in zip(weighted, repeated, strict=True):
        for points, others in zip(one.grid_values, other.grid_values, strict=True):
            assert_array_equal(points, others)
        assert_allclose(one.effect, other.effect, atol=1e-12)
    scaled = clone(explainer).fit(model, data, sample_weight=weights / 7.0).effects_
    assert_allclose(scaled[0].lower, weighted[0].lower, atol=1e-12)


def test_edges_and_orders_of_the_users_own():
    x = np.arange(10.0)[:, None]
    model = Function(lambda x: x**2, 1)
    edges = [-5.0, 0.5, 0.75, 4.0, 8.0, 100.0]
    curve = ALEExplainer(custom_values={0: edges}).fit(model, x).effects_[0]
    # There is no row from 0.5 to 0.75, and that bin is a part of the next one.
    assert_array_equal(curve.grid_values[0], [-5.0, 0.5, 4.0, 8.0, 100.0])
    assert_array_equal(curve.bin_counts, [1, 4, 4, 1])
    assert_allclose(np.diff(curve.effect[0]), np.diff(curve.grid_values[0] ** 2))
    inner = ALEExplainer(custom_values={"x0": [2.0, 4.0, 6.0]}).fit(model, x).effects_[0]
    assert inner.n_outside == 5
    assert_array_equal(inner.bin_counts, [3, 2])


def test_missing_values_are_left_out_and_counted(data, target):
    X = data.copy()
    X[::7, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=2).fit(X, target)
    explainer = ALEExplainer(features=[0, 1, (0, 1)], n_bins=5).fit(model, X)
    one, other, both = explainer.effects_
    assert (one.n_outside, other.n_outside, both.n_outside) == (9, 0, 9)
    assert_allclose(
        one.effect[0], ale_oracle.first_order(model.predict, X, 0, one.grid_values[0])[0]
    )
    assert_allclose(
        other.effect[0], ale_oracle.first_order(model.predict, X, 1, other.grid_values[0])[0]
    )
    values = explainer.transform(X)
    assert_array_equal(np.isnan(values[:, 0]), np.isnan(X[:, 0]))
    assert_array_equal(np.isnan(values[:, 2]), np.isnan(X[:, 0]))
    assert not np.isnan(values[:, 1]).any()


# -------------------------------------------------------------------------- categories


def categorical_oracle(predict, X, j, order):
    """Effects of categories by rows moved to the next one and to the one before."""
    local = [[] for _ in order[1:]]
    rank = {label: k for k, label in enumerate(order)}
    for i, label in enumerate(X[:, j]):
        k = rank[label]
        own = predict(X[[i]])[0]
        if k + 1 < len(order):
            local[k].append(predict(ale_oracle.moved(X, i, {j: order[k + 1]}))[0] - own)
        if k > 0:
            local[k - 1].append(own - predict(ale_oracle.moved(X, i, {j: order[k - 1]}))[0])
    total = np.concatenate([[0.0], np.cumsum([np.mean(d) for d in local])])
    return total - np.mean([total[rank[label]] for label in X[:, j]])


@pytest.mark.parametrize("kind", ["forest", "linear", "xgboost"])
def test_categories_in_a_given_order(kind, data, target):
    model = fitted(kind, data, target)
    order = [3.0, 0.0, 4.0, 1.0, 2.0]
    explainer = ALEExplainer(categorical_features=[2], features=[2], custom_values={2: order})
    curve = explainer.fit(model, data).effects_[0]
    assert curve.is_categorical
    assert_array_equal(curve.grid_values[0], order)
    assert_array_equal(curve.bin_counts, [np.sum(data[:, 2] == label) for label in order])
    truth = categorical_oracle(model.predict, data, 2, order)
    assert_allclose(curve.effect[0], truth, atol=2e-6)
    assert_allclose(explainer.transform(data)[:, 0], truth[[order.index(v) for v in data[:, 2]]],
                    atol=2e-6)  # fmt: skip


def test_categories_are_ordered_by_what_goes_with_them():
    rng = np.random.default_rng(0)
    size = rng.permutation(np.repeat([0.0, 1.0, 2.0, 3.0], 50))
    labels = np.array([2.0, 0.0, 3.0, 1.0])[size.astype(int)]  # small, ..., large
    X = np.column_stack([labels, size + 1.5 * rng.normal(size=200), size + rng.normal(size=200)])
    model = Function(lambda a, b, c: b, 3)
    by_likeness = ALEExplainer(features=[0], categorical_features=[0]).fit(model, X).effects_[0]
    found = by_likeness.grid_values[0].tolist()
    assert found in ([2.0, 0.0, 3.0, 1.0], [1.0, 3.0, 0.0, 2.0])
    explainer = ALEExplainer(features=[0], categorical_features=[0], category_order="coded")
    assert_array_equal(explainer.fit(model, X).effects_[0].grid_values[0], [0.0, 1.0, 2.0, 3.0])


def test_labels_of_frames(frame):
    rng = np.random.default_rng(0)
    X = frame(np.column_stack([rng.normal(size=40), rng.normal(size=40)]), ["a", "b"])
    words = np.array(["low", "mid", "high"])[rng.integers(0, 3, 40)]
    if hasattr(X, "iloc"):
        import pandas as pd

        X["level"] = pd.Categorical(words, categories=["low", "mid", "high", "never"], ordered=True)
    else:
        import polars as pl

        X = X.with_columns(
            pl.Series("level", words, dtype=pl.Enum(["low", "mid", "high", "never"]))
        )

    class Model:
        def predict(self, X):
            level = np.asarray(X["level"].to_list())
            return np.select([level == "low", level == "mid"], [0.0, 1.0], 5.0)

    explainer = ALEExplainer(category_order="coded").fit(Model(), X)
    curve = explainer.effects_[2]
    assert curve.grid_values[0].tolist() == ["low", "mid", "high"]
    assert_allclose(np.diff(curve.effect[0]), [1.0, 4.0])
    assert list(explainer.get_feature_names_out()) == ["a", "b", "level"]
    assert_allclose(explainer.transform(X)[:, 2].mean(), 0.0, atol=1e-12)
    assert_allclose(explainer.effects_[0].effect, 0.0)
    with pytest.raises(ValueError, match="'never' is not among the categories of 'level'"):
        curve(["never"])


def test_trees_name_their_own_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 4, 200), rng.normal(size=200)])
    y = np.array([0.0, 9.0, -4.0, 7.0])[X[:, 0].astype(int)]
    model = HistGradientBoostingRegressor(
        max_iter=5, categorical_features=[0], min_samples_leaf=5
    ).fit(X, y)
    curve = ALEExplainer(category_order="coded").fit(model, X).effects_[0]
    assert curve.is_categorical
    assert_allclose(
        curve.effect[0], categorical_oracle(model.predict, X, 0, [0.0, 1.0, 2.0, 3.0]), atol=1e-9
    )


# -------------------------------------------------------------------------- confidence


def test_limits_are_those_of_the_variance():
    """By hand: two bins of two rows; local effects 1 and 3, then 0 and 4."""
    X = np.array([[0.0, 0], [1.0, 1], [2.0, 2], [2.0, 3]])
    steps = {0: (1.0, 0.0), 1: (3.0, 0.0), 2: (0.0, 0.0), 3: (0.0, 4.0)}
    model = Function(
        np.vectorize(lambda a, b: steps[int(b)][0] * (a >= 1) + steps[int(b)][1] * (a >= 2)), 2
    )
    curve = ALEExplainer(features=[0], confidence=0.9).fit(model, X).effects_[0]
    assert_array_equal(curve.bin_counts, [2, 2])
    assert_allclose(curve.local_effect, [[2.0, 2.0]])
    assert_allclose(curve.local_std**2, [[2.0, 8.0]])
    # Behind a mean row there are 3/4 of the first step and 2/4 of the second.
    weight = np.array([[0, 0], [1, 0], [1, 1]]) - [3 / 4, 2 / 4]
    error = np.sqrt((weight**2) @ [2.0 / 2, 8.0 / 2])
    assert_allclose((curve.upper - curve.effect)[0], 1.6448536269514722 * error)
    assert_allclose((curve.effect - curve.lower)[0], 1.6448536269514722 * error)


def test_limits_hold_the_truth_about_as_often_as_they_say():
    """A product: the effect of endless data is zero everywhere, as the other column's mean is."""
    held = []
    for seed in range(200):
        X = np.random.default_rng(seed).normal(size=(80, 2))
        edges = [-10.0, -0.5, 0.5, 10.0]
        explainer = ALEExplainer(features=[0], custom_values={0: edges}, confidence=0.8)
        curve = explainer.fit(Function(np.multiply, 2), X).effects_[0]
        step = curve.effect[0, 2] - curve.effect[0, 1]  # of a bin by itself
        held.append(abs(step) <= 1.2816 * curve.local_std[0, 1] / np.sqrt(curve.bin_counts[1]))
    assert 0.7 < np.mean(held) < 0.9


def test_bootstrap_agrees_with_the_variance(data, target):
    model = fitted("forest", data, target)
    explainer = ALEExplainer(features=[0, 1], n_bins=3, confidence=0.9, n_jobs=1)
    exact = clone(explainer).fit(model, data).effects_
    explainer.set_params(n_bootstrap=2000, random_state=0)
    drawn = explainer.fit(model, data).effects_
    for one, other in zip(exact, drawn, strict=True):
        assert_array_equal(one.effect, other.effect)
        assert_allclose(other.upper - other.lower, one.upper - one.lower, rtol=0.25)
    again = clone(explainer).fit(model, data).effects_
    assert_array_equal(again[0].lower, drawn[0].lower)
    assert clone(explainer).set_params(n_bootstrap=0, confidence=None).fit(model, data).effects_[
        0
    ].lower is None  # fmt: skip


def test_a_single_row_in_each_bin_tells_no_variance():
    x = np.array([[0.0], [1.0]])
    curve = ALEExplainer().fit(Function(lambda x: x, 1), x).effects_[0]
    assert np.isfinite(curve.lower).all()  # one bin of two rows
    x = np.array([[0.0, 1.0], [1.0, 2.0], [1.0, 5.0], [3.0, 1.0]])
    curve = ALEExplainer(features=[0]).fit(Function(lambda a, b: a * b, 2), x).effects_[0]
    assert_array_equal(curve.bin_counts, [3, 1])
    assert np.isfinite(curve.local_std).all()


# ----------------------------------------------------------------------------- the model


def test_two_predictions_a_row_and_feature_however_many_bins(data):
    for n_bins in (2, 40):
        model = Function(lambda a, b, c: a * b + c, 3)
        ALEExplainer(features=[0, 1], n_bins=n_bins).fit(model, data)
        assert model.n_rows == 1 + 2 * 2 * len(data)  # one to look at the response
        assert model.n_calls == 2
    model = Function(lambda a, b, c: a * b + c, 3)
    ALEExplainer(features=[(0, 1)]).fit(model, data)
    assert model.n_rows == 1 + 4 * len(data)


def test_numbers_that_stand_for_missing():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(120, 3)).astype(float)
    y = X[:, 0] * X[:, 1] + X[:, 2] ** 2 + 5 * (X[:, 0] == 0)
    models = [
        xgb.XGBRegressor(n_estimators=20, max_depth=4, missing=0.0, n_jobs=1),
        lgb.LGBMRegressor(n_estimators=20, zero_as_missing=True, min_child_samples=5, verbose=-1),
    ]
    for model in models:
        model.fit(X, y)
        for curve in ALEExplainer(n_bins=4).fit(model, X).effects_:
            j = curve.columns[0]
            truth, mean, _ = ale_oracle.first_order(model.predict, X, j, curve.grid_values[0])
            assert_allclose(curve.effect[0], truth, atol=1e-5)
            assert_allclose(curve.local_effect[0], mean, atol=1e-5)


@pytest.mark.parametrize("kind", ["forest", "xgboost binary"])
def test_trees_are_read_and_not_called(kind, data, target, monkeypatch):
    model = fitted(kind, data, target)
    method = "predict_proba" if kind == "xgboost binary" else "predict"
    calls = []
    real = type(model).predict
    explainer = ALEExplainer(features=[0, 1, 2, (0, 1)], response_method=method, n_jobs=1)
    monkeypatch.setattr(type(model), "predict", lambda *a, **k: calls.append(1) or real(*a, **k))
    if hasattr(model, "predict_proba"):
        monkeypatch.setattr(type(model), "predict_proba", lambda *a, **k: calls.append(1))
    explainer.fit(model, data)
    # The reading is compared with the library's predictions on few rows, never with moved ones.
    assert len(calls) <= 5


def test_blocks_make_no_difference(data, target, monkeypatch):
    from fastpd_sklearn.explainers import _moved_forest, _moved_rows

    for kind in ("forest", "linear"):
        model = fitted(kind, data, target)
        explainer = ALEExplainer(features=[0, 1, (0, 2)], n_bins=4, n_jobs=1)
        whole = clone(explainer).fit(model, data).effects_
        monkeypatch.setattr(_moved_forest, "BLOCK_BYTES", 48 * 2 * 7)
        monkeypatch.setattr(_moved_rows, "BLOCK_ROWS", 4 * 7)
        parts = clone(explainer).fit(model, data).effects_
        monkeypatch.undo()
        for one, other in zip(whole, parts, strict=True):
            assert_allclose(one.effect, other.effect, atol=1e-12)
        assert_allclose(whole[0].local_std, parts[0].local_std, atol=1e-12)


def test_outputs_and_targets(data, target):
    model = fitted("xgboost classes", data, target)
    explainer = ALEExplainer(features=[0, (0, 1)]).fit(model, data)
    assert list(explainer.get_feature_names_out()) == [
        "x0__0", "x0__1", "x0__2", "x0:x1__0", "x0:x1__1", "x0:x1__2",
    ]  # fmt: skip
    one = ALEExplainer(features=[0, (0, 1)], target=2).fit(model, data)
    assert_allclose(one.transform(data), explainer.transform(data)[:, [2, 5]])
    binary = fitted("xgboost binary", data, target)
    yes, no = (
        ALEExplainer(target=t, response_method="predict_proba").fit(binary, data).transform(data)
        for t in (True, False)
    )
    assert_allclose(yes, -no)


def test_sparse_rows(data, target):
    from scipy import sparse

    X = np.where(np.abs(data) < 0.5, 0.0, data)
    model = fitted("linear", X, target)
    dense = ALEExplainer(n_bins=5).fit(model, X)
    found = ALEExplainer(n_bins=5).fit(model, sparse.csr_array(X))
    assert_allclose(found.transform(sparse.csr_array(X)), dense.transform(X), atol=1e-12)
    # XGBoost takes an absent entry for a missing value.
    model = xgb.XGBRegressor(**SMALL).fit(sparse.csr_array(X), target)
    curve = ALEExplainer(n_bins=5, features=[0]).fit(model, sparse.csr_array(X)).effects_[0]
    gaps = np.where(X == 0, np.nan, X)
    assert curve.n_outside == np.isnan(gaps[:, 0]).sum()
    truth = ale_oracle.first_order(model.predict, gaps, 0, curve.grid_values[0])[0]
    assert_allclose(curve.effect[0], truth, atol=2e-6)


# --------------------------------------------------------------------------- conventions


@pytest.mark.parametrize("model", [DecisionTreeRegressor(max_depth=2, random_state=0),
                                   LinearRegression()], ids=["tree", "linear"])  # fmt: skip
def test_common_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ALEExplainer(model), on_skip=None)
    assert len(results) > 50


def test_in_a_pipeline(data, target):
    pipeline = make_pipeline(
        StandardScaler(), ALEExplainer(RandomForestRegressor(**SMALL)), LinearRegression()
    )
    assert pipeline.fit(data, target).score(data, target) > 0.3
    names = pipeline[:-1].get_feature_names_out(["a", "b", "c"])
    assert list(names) == ["a", "b", "c"]
    assert get_tags(ALEExplainer(RandomForestRegressor())).target_tags.required


def test_pickles_forget_nothing(data, target):
    explainer = ALEExplainer(features=[0, (0, 1)]).fit(fitted("forest", data, target), data)
    before = dict(vars(explainer))
    values = explainer.transform(data)
    assert vars(explainer) == before
    opened = pickle.loads(pickle.dumps(explainer))
    assert_array_equal(opened.transform(data), values)
    assert opened.detach().estimator is None
    assert_array_equal(opened.transform(data), values)
    assert len(pickle.dumps(opened)) < 40_000
    frame = explainer.set_output(transform="pandas").transform(data)
    assert list(frame.columns) == ["x0", "x0:x1"]


def test_float32_and_integers_are_the_same_numbers(data, target):
    model = fitted("xgboost", data, target)
    single = ALEExplainer(n_jobs=1).fit(model, data.astype(np.float32))
    double = ALEExplainer(n_jobs=1).fit(model, data.astype(np.float32).astype(np.float64))
    assert_allclose(single.transform(data), double.transform(data), atol=1e-12)
    counts = np.arange(12).reshape(-1, 1) % 4
    curve = ALEExplainer().fit(Function(lambda x: x / 2, 1), counts).effects_[0]
    assert_allclose(curve.effect[0], (np.arange(4) - 1.5) / 2)


@pytest.mark.parametrize("kind", ["forest", "xgboost classes", "lightgbm"])
def test_threads_make_no_difference(kind, data, target):
    model = fitted(kind, data, target)
    X = np.tile(data, (40, 1))
    one, two = (
        ALEExplainer(n_jobs=n, response_method="auto").fit(model, X).transform(X) for n in (1, 2)
    )
    assert_array_equal(one, two)


ERRORS = [
    ({"n_bins": 0}, ValueError, "n_bins=0 should be an int of at least 1"),
    ({"n_bins": 2.5}, ValueError, r"n_bins=2\.5"),
    ({"n_bootstrap": -1}, ValueError, "n_bootstrap=-1"),
    ({"confidence": 1.0}, ValueError, r"confidence=1\.0 should be a number between 0 and 1"),
    ({"confidence": None, "n_bootstrap": 9}, ValueError, "set one of the two"),
    ({"category_order": "abc"}, ValueError, "category_order='abc' is none of 'similarity'"),
    ({"response_method": "proba"}, ValueError, "response_method='proba' is none of"),
    ({"features": [(0, 1, 2)]}, ValueError, "of one feature, or of two"),
    ({"features": [7]}, ValueError, "column 7 does not exist"),
    ({"features": []}, ValueError, "features is empty"),
    ({"features": [0, "x0"]}, ValueError, "two columns of the output would be called 'x0'"),
    ({"custom_values": [1]}, TypeError, "custom_values=.* should be a dict"),
    ({"custom_values": {0: [1.0]}}, ValueError, "at least two finite edges of bins for 'x0'"),
    ({"custom_values": {0: [2.0, 1.0]}}, ValueError, "do not ascend"),
    ({"custom_values": {0: ["a", "b"]}}, ValueError, "edges should be numbers"),
    ({"custom_values": {0: [90.0, 91.0]}}, ValueError, "no row of the background lies within"),
    (
        {"categorical_features": [2], "custom_values": {2: [0.0, 1.0]}},
        ValueError,
        "should name each of its categories .* once",
    ),
    ({"categorical_features": [2], "features": [(0, 2)]}, ValueError, "'x2' is categorical"),
    ({"target": 5}, ValueError, "target=5 is none of the model's outputs"),
]


@pytest.mark.parametrize(("params", "error", "match"), ERRORS, ids=[str(e[0]) for e in ERRORS])
def test_bad_parameters(params, error, match, data, target):
    with pytest.raises(error, match=match):
        ALEExplainer(**params).fit(fitted("linear", data, target), data)


def test_bad_data(data, target):
    model = HistGradientBoostingRegressor(max_iter=2).fit(data, target)
    X = data.copy()
    X[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"no finite value of 'x1'.*leave it out of `features`"):
        ALEExplainer().fit(model, X)
    X[:, 1] = data[:, 1]
    X[:30, 0], X[30:, 1] = np.nan, np.nan
    with pytest.raises(ValueError, match="finite values of both 'x0' and 'x1'"):
        ALEExplainer(features=[(0, 1)]).fit(model, X)
    with pytest.raises(ValueError, match="NaN"):
        ALEExplainer().fit(fitted("linear", data, target), data).transform(X)
    with pytest.raises(ValueError, match="all rows of sample_weight are 0"):
        ALEExplainer().fit(model, data, sample_weight=np.zeros(60))
    with pytest.raises(ValueError, match="class labels cannot be averaged"):
        ALEExplainer(response_method="predict").fit(SVC().fit(data, target > 0), data)


def test_a_response_that_only_the_model_knows(data, target):
    """A margin of some classifiers is no answer of theirs, but they can be called."""
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2).fit(data, target > 0)
    curve = ALEExplainer(features=[0], n_bins=4, response_method="predict_proba").fit(model, data)
    truth, _, _ = ale_oracle.first_order(
        lambda X: model.predict_proba(X)[:, 1], data, 0, curve.effects_[0].grid_values[0]
    )
    assert_allclose(curve.effects_[0].effect[0], truth, atol=1e-12)


def test_verbose_shows_progress(data, target, capsys):
    ALEExplainer(verbose=1).fit(fitted("linear", data, target), data)
    assert "[ALEExplainer] 60 of 60 rows" in capsys.readouterr().out
