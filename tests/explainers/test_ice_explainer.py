"""Curves of single rows against the model's own predictions, and scikit-learn's."""

import pickle
import warnings

import numpy as np
import pytest
import xgboost as xgb
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.inspection import partial_dependence
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

from fastpd_sklearn import ALEExplainer, ICEExplainer

pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")

SMALL = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    X[:, 2] = rng.integers(0, 5, 50)
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
        "histogram": lambda: HistGradientBoostingRegressor(
            max_iter=4, min_samples_leaf=2, early_stopping=False
        ).fit(X, y),
        "linear": lambda: LinearRegression().fit(X, y),
        "forest classes": lambda: RandomForestClassifier(**SMALL).fit(X, classes),
        "xgboost classes": lambda: xgb.XGBClassifier(**SMALL).fit(X, classes),
        "xgboost binary": lambda: xgb.XGBClassifier(**SMALL).fit(X, y > 0),
        "logistic": lambda: LogisticRegression().fit(X, classes),
        "logistic binary": lambda: LogisticRegression().fit(X, y > 0),
        "margin": lambda: LinearSVC().fit(X, y > 0),
    }
    return models[kind]()


METHODS = {
    "forest": "predict",
    "xgboost": "predict",
    "histogram": "predict",
    "linear": "predict",
    "forest classes": "predict_proba",
    "xgboost classes": "predict_proba",
    "xgboost binary": "predict_proba",
    "logistic": "predict_proba",
    "logistic binary": "predict_proba",
    "margin": "decision_function",
}


def by_prediction(model, method, X, j, points):
    """Shape (n_outputs, n_rows, n_points)."""
    out = []
    for point in points:
        moved = np.array(X, dtype=np.float64)
        moved[:, j] = point
        answer = np.asarray(getattr(model, method)(moved), dtype=np.float64).reshape(len(X), -1)
        binary = method == "predict_proba" and answer.shape[1] == 2
        out.append(answer[:, 1:] if binary else answer)
    return np.array(out).transpose(2, 1, 0)


@pytest.mark.parametrize("kind", METHODS)
def test_curves_are_predictions_of_moved_rows(kind, data, target):
    model, method = fitted(kind, data, target), METHODS[kind]
    explainer = ICEExplainer(response_method=method, grid_resolution=9, n_jobs=1).fit(model, data)
    results = explainer.explain(data)
    columns, names = [], []
    for j, result in enumerate(results):
        (points,) = result.grid_values
        truth = by_prediction(model, method, data, j, points)
        assert_allclose(result.individual, truth, atol=2e-6)
        assert_allclose(result.average, truth.mean(axis=1), atol=2e-6)
        columns.append(truth.transpose(1, 2, 0).reshape(len(data), -1))
        ends = [f"__{c}" for c in model.classes_] if len(truth) > 1 else [""]
        names += [f"x{j}={float(p)}{end}" for p in points for end in ends]
    assert_allclose(explainer.transform(data), np.concatenate(columns, axis=1), atol=2e-6)
    assert list(explainer.get_feature_names_out()) == names
    for result, mean in zip(results, explainer.average(data), strict=True):
        assert_allclose(mean.average, result.average, atol=1e-12)
        assert "individual" not in mean


@pytest.mark.parametrize("kind", ["forest", "histogram", "linear", "logistic", "logistic binary"])
def test_scikit_learn_gives_the_same_points_and_curves(kind, data, target):
    model = fitted(kind, data, target)
    explainer = ICEExplainer(
        response_method=METHODS[kind], grid_resolution=20, percentiles=(0.1, 0.8), n_jobs=1
    ).fit(model, data)
    for j, result in enumerate(explainer.explain(data)):
        truth = partial_dependence(
            model, data, [j], kind="both", method="brute", grid_resolution=20,
            percentiles=(0.1, 0.8),
        )  # fmt: skip
        assert_allclose(result.grid_values[0], truth["grid_values"][0], rtol=1e-13)
        assert_allclose(result.individual, truth["individual"], atol=1e-12)
        assert_allclose(result.average, truth["average"], atol=1e-12)


def test_exact_curves_have_a_point_in_every_piece(data, target):
    model = DecisionTreeRegressor(max_depth=4, random_state=0).fit(data, target)
    explainer = ICEExplainer(grid_resolution="exact").fit(model, data)
    for j, result in enumerate(explainer.explain(data)):
        thresholds = model.tree_.threshold[model.tree_.feature == j]
        points = result.grid_values[0]
        assert_allclose(result.breaks, np.unique(thresholds), rtol=1e-6)
        assert len(points) == len(result.breaks) + 1
        anywhere = np.sort(np.random.default_rng(0).normal(size=200) * 2)
        anywhere = anywhere[np.abs(anywhere[:, None] - thresholds).min(axis=1, initial=9) > 1e-6]
        piece = np.searchsorted(result.breaks, anywhere)
        truth = by_prediction(model, "predict", data, j, anywhere)
        assert_allclose(result.individual[:, :, piece], truth, atol=1e-12)


def test_exact_is_for_trees(data, target):
    with pytest.raises(ValueError, match="'exact' is for tree ensembles"):
        ICEExplainer(grid_resolution="exact").fit(fitted("linear", data, target), data)


@pytest.mark.parametrize("kind", ["forest", "linear", "logistic"])
def test_centred_curves_are_zero_at_the_anchor(kind, data, target):
    model = fitted(kind, data, target)
    plain = ICEExplainer(grid_resolution=6, n_jobs=1).fit(model, data).explain(data)
    first = ICEExplainer(grid_resolution=6, centered=True, n_jobs=1).fit(model, data).explain(data)
    anchors = {0: 0.25, "x2": 3.0}
    other = ICEExplainer(grid_resolution=6, centered=anchors, n_jobs=1).fit(model, data)
    method = METHODS[kind]
    for j, (a, b, c) in enumerate(zip(plain, first, other.explain(data), strict=True)):
        assert_allclose(b.individual, a.individual - a.individual[:, :, :1], atol=1e-12)
        assert_allclose(b.average, a.average - a.average[:, :1], atol=1e-12)
        at = {0: 0.25, 2: 3.0}.get(j, a.grid_values[0][0])
        zero = by_prediction(model, method, data, j, [at])
        assert_allclose(c.individual, a.individual - zero, atol=1e-12)
        assert c.individual.shape == a.individual.shape


def test_slopes_of_parabolas_and_products():
    class Model:
        def predict(self, X):
            return X[:, 0] ** 2 + X[:, 0] * X[:, 1]

    X = np.random.default_rng(0).normal(size=(30, 2))
    explainer = ICEExplainer(grid_resolution=7, derivative=True, strategy="quantile")
    one, other = explainer.fit(Model(), X).explain(X)
    points = one.grid_values[0]
    assert len(points) == 7
    assert_allclose(one.individual[0], 2 * points + X[:, [1]], atol=1e-9)
    assert_allclose(other.individual[0], np.repeat(X[:, [0]], 7, axis=1), atol=1e-9)
    assert_allclose(explainer.average(X)[0].average[0], 2 * points + X[:, 1].mean(), atol=1e-9)


def test_points_of_every_strategy(data):
    class Model:
        def predict(self, X):
            return X[:, 0]

    def points(**params):
        return ICEExplainer(features=[0], **params).fit(Model(), data).grid_values_[0]

    assert_array_equal(points(strategy="unique", grid_resolution=3), np.unique(data[:, 0]))
    found = points(strategy="quantile", grid_resolution=5, percentiles=(0, 1))
    assert_array_equal(found, np.sort(data[:, 0])[[0, 12, 24, 37, 49]])
    assert_array_equal(points(custom_values={"x0": [3, 1, np.nan]}), [3.0, 1.0, np.nan])
    found = points(grid_resolution=11, percentiles=(0.2, 0.6))
    assert_allclose(np.diff(found), np.diff(found)[0])
    few = ICEExplainer(features=[2], grid_resolution=10, percentiles=(0.4, 0.6))
    assert_array_equal(few.fit(Model(), data).grid_values_[0], [0.0, 1.0, 2.0, 3.0, 4.0])


def test_a19_missing_values_do_not_empty_the_grid():
    """The grid is one of the values that are there; a missing one is a point if asked for."""
    pd = pytest.importorskip("pandas")
    values = pd.array([1, 2, None, 4] * 10, dtype="Float64")
    words = np.array(["b", "a", None, "c"] * 10, dtype=object)
    X = pd.DataFrame({"v": values, "w": words})

    class Model:
        def predict(self, X):
            v = X["v"].to_numpy(dtype=float, na_value=np.nan)
            w = X["w"].map({"a": 10.0, "b": 20.0, "c": 30.0}).to_numpy(dtype=float)
            return np.where(np.isnan(v), -1.0, v) + np.where(np.isnan(w), 50.0, w)

    numbers, labels = ICEExplainer(grid_resolution=3).fit(Model(), X).explain(X)
    assert_allclose(numbers.grid_values[0], np.linspace(1, 4, 3))
    assert labels.grid_values[0].tolist()[:3] == ["a", "b", "c"]
    assert np.isnan(labels.grid_values[0][3])
    assert_allclose(labels.individual[0, 0], np.array([10, 20, 30, 50]) + 1.0)
    with_gap = ICEExplainer(missing=True).fit(Model(), X).explain(X)[0]
    assert_array_equal(with_gap.grid_values[0], [1.0, 2.0, 4.0, np.nan])
    assert_allclose(with_gap.individual[0, 1], np.array([1, 2, 4, -1]) + 10.0)


def test_a20_grids_of_tiny_and_of_tied_columns():
    """No absolute tolerance, and never an error for ties."""
    rng = np.random.default_rng(0)
    tiny = rng.normal(size=(500, 1))
    tied = np.full((500, 1), 2.0)
    tied[:15, 0] = np.arange(15)

    class Model:
        def predict(self, X):
            return X[:, 0]

    explainer = ICEExplainer(grid_resolution=10)
    normal = explainer.fit(Model(), tiny).grid_values_[0]
    assert_allclose(explainer.fit(Model(), tiny * 1e-10).grid_values_[0], normal * 1e-10)
    found = explainer.fit(Model(), tied).grid_values_[0]
    assert found[0] == 0.0
    assert found[-1] == 14.0
    assert len(found) == 10
    assert_array_equal(explainer.fit(Model(), np.full((9, 1), 3.0)).grid_values_[0], [3.0])


def test_missing_values_have_their_own_piece(data, target):
    X = data.copy()
    X[::5, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=4, min_samples_leaf=2).fit(X, target)
    explainer = ICEExplainer(features=[0], missing=True, grid_resolution="exact").fit(model, X)
    (result,) = explainer.explain(X)
    points = result.grid_values[0]
    assert np.isnan(points[-1])
    assert_allclose(result.individual, by_prediction(model, "predict", X, 0, points), atol=1e-12)
    assert explainer.get_feature_names_out()[-1] == "x0=nan"


def test_columns_of_all_kinds(frame):
    rng = np.random.default_rng(0)
    X = frame(rng.integers(0, 3, size=(30, 2)), ["count", "other"])
    words = np.array(["red", "blue"])[rng.integers(0, 2, 30)]
    flags = rng.random(30) < 0.5
    if hasattr(X, "iloc"):
        X = X.assign(colour=words, flag=flags, bare=1.5)
    else:
        import polars as pl

        X = X.with_columns(pl.Series("colour", words), pl.Series("flag", flags), bare=1.5)
    kept = X.clone() if hasattr(X, "clone") else X.copy()

    class Model:
        def predict(self, X):
            colour = np.asarray(X["colour"].to_list()) == "red"
            flag = np.asarray(X["flag"].to_list(), dtype=float)
            return np.asarray(X["count"].to_list(), dtype=float) + 10 * colour + 100 * flag

    explainer = ICEExplainer().fit(Model(), X)
    names = list(explainer.get_feature_names_out())
    assert names[:3] == ["count=0.0", "count=1.0", "count=2.0"]
    assert names[6:8] == ["colour=blue", "colour=red"]
    assert names[8:] == ["flag=0.0", "flag=1.0", "bare=1.5"]
    own = Model().predict(X)
    values = explainer.transform(X)
    assert_allclose(values[:, 7] - values[:, 6], 10.0)
    assert_allclose(values[:, 9] - values[:, 8], 100.0)
    assert_allclose(values[:, -1], own)
    assert X.equals(kept)


def test_curves_go_into_an_array_of_the_callers(data, target, tmp_path, monkeypatch):
    from fastpd_sklearn.explainers import _ice

    for kind in ("xgboost classes", "logistic"):
        model = fitted(kind, data, target)
        explainer = ICEExplainer(grid_resolution=5, n_jobs=1).fit(model, data)
        values = explainer.transform(data)
        monkeypatch.setattr(_ice, "BLOCK_BYTES", 8 * 7 * 3 * 5)
        out = np.lib.format.open_memmap(
            tmp_path / f"{kind}.npy", mode="w+", dtype=np.float32, shape=values.shape
        )
        results = explainer.explain(data, out=out)
        monkeypatch.undo()
        assert_allclose(out, values, rtol=1e-6)
        assert np.shares_memory(results[1].individual, out)
    with pytest.raises(ValueError, match=r"out\.shape == \(2, 2\)"):
        explainer.explain(data, out=np.empty((2, 2)))


@pytest.mark.parametrize("n_copies", [1, 11])  # few rows are walked, of many curves are jumps
@pytest.mark.parametrize("kind", ["forest", "xgboost classes", "xgboost binary", "linear"])
def test_points_in_any_order_and_arrays_of_any_layout(kind, n_copies, data, target):
    points = {0: [0.5, -1.0, 0.50001, 0.1, 3.0, -1.00001], 2: [4.0, 1.0, 1.01]}
    model, X = fitted(kind, data, target), np.repeat(data, n_copies, axis=0)
    truths = [by_prediction(model, METHODS[kind], X, j, points[j]) for j in (0, 2)]
    explainer = ICEExplainer(
        features=[0, 2], custom_values=points, response_method=METHODS[kind], n_jobs=1
    ).fit(model, data)
    values = explainer.transform(X)
    n_rows, n_columns = values.shape
    packed = np.zeros((n_rows, n_columns), np.dtype([("a", "u1"), ("number", "f8")]))["number"]
    rooms = (
        np.full((n_rows, n_columns), np.nan, order="F"),
        np.full((2 * n_rows, 3 * n_columns), np.nan)[::2, ::3],
        np.full((n_rows, n_columns), np.nan)[::-1, ::-1],
        packed,
        np.full((n_rows, n_columns), np.nan, np.float32),
    )
    for room in rooms:
        results = explainer.explain(X, out=room)
        for result, truth in zip(results, truths, strict=True):
            assert_allclose(result.individual, truth, rtol=0, atol=1e-5)
        assert_array_equal(room, values.astype(room.dtype))
    assert np.isnan(rooms[1].base).sum() == rooms[1].base.size - values.size


def test_means_have_weights(data, target):
    weights = np.arange(50) % 4
    for kind in ("forest", "linear"):
        explainer = ICEExplainer(grid_resolution=5, n_jobs=1).fit(fitted(kind, data, target), data)
        repeated = explainer.explain(np.repeat(data, weights, axis=0))
        for weighted in (
            explainer.explain(data, sample_weight=weights),
            explainer.average(data, sample_weight=weights),
        ):
            for one, other in zip(weighted, repeated, strict=True):
                assert_allclose(one.average, other.average, atol=1e-12)


def test_a_binary_class_and_the_other_one(data, target):
    model = fitted("xgboost binary", data, target)
    explainer = ICEExplainer(response_method="predict_proba", grid_resolution=4)
    yes = explainer.set_params(target=True).fit(model, data).transform(data)
    no = explainer.set_params(target=False).fit(model, data).transform(data)
    assert_allclose(yes + no, 1.0)
    margin = ICEExplainer(grid_resolution=4).fit(model, data).transform(data)
    assert_allclose(1 / (1 + np.exp(-margin)), yes, atol=1e-6)


def test_curves_can_be_clustered(data, target):
    pipeline = make_pipeline(
        StandardScaler(),
        ICEExplainer(RandomForestRegressor(**SMALL), features=[0], centered=True),
        KMeans(3, n_init=1, random_state=0),
    )
    labels = pipeline.fit(data, target).predict(data)
    assert len(np.unique(labels)) == 3
    assert pipeline[:-1].get_feature_names_out(["a", "b", "c"])[0].startswith("a=")


@pytest.mark.parametrize("model", [DecisionTreeRegressor(max_depth=2, random_state=0),
                                   LinearRegression()], ids=["tree", "linear"])  # fmt: skip
def test_common_checks(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ICEExplainer(model), on_skip=None)
    assert len(results) > 50


def test_pickles(data, target):
    explainer = ICEExplainer(grid_resolution=4).fit(fitted("forest", data, target), data)
    before = dict(vars(explainer))
    values = explainer.transform(data)
    assert vars(explainer) == before
    opened = pickle.loads(pickle.dumps(explainer))
    assert_array_equal(opened.detach().transform(data), values)
    assert opened.estimator is None
    called = ICEExplainer(grid_resolution=4).fit(fitted("linear", data, target), data)
    again = pickle.loads(pickle.dumps(called))
    assert_array_equal(again.transform(data), called.transform(data))
    with pytest.raises(TypeError, match=r"calling LinearRegression.* cannot do without it"):
        called.detach()


ERRORS = [
    ({"grid_resolution": 1}, ValueError, "grid_resolution=1 should be an int of at least 2"),
    ({"grid_resolution": "all"}, ValueError, "grid_resolution='all' should be 'exact' or an int"),
    ({"percentiles": (0.9, 0.1)}, ValueError, "should ascend"),
    ({"percentiles": 0.5}, ValueError, r"percentiles=0\.5 should be two numbers"),
    ({"percentiles": (-0.1, 1)}, ValueError, "between 0 and 1"),
    ({"strategy": "even"}, ValueError, "strategy='even' is none of 'uniform'"),
    ({"centered": 3.0}, TypeError, r"centered=3\.0 should be True, False, or a dict"),
    ({"derivative": 1}, TypeError, "derivative=1 should be True or False"),
    ({"missing": "no"}, TypeError, "missing='no' should be True or False"),
    ({"derivative": True, "grid_resolution": "exact"}, ValueError, "step functions"),
    ({"derivative": True, "custom_values": {0: [1, 1]}}, ValueError, "occurs twice"),
    (
        {"derivative": True, "categorical_features": [2]},
        ValueError,
        "'x2' is categorical, and curves over categories have no slope",
    ),
    ({"features": [(0, 1)]}, ValueError, "a curve is along one"),
    ({"features": [9]}, ValueError, "column 9 does not exist"),
    ({"custom_values": {0: []}}, ValueError, "points of 'x0' as a non-empty array"),
    ({"custom_values": {0: ["a"]}}, ValueError, "'x0' takes numbers"),
    ({"custom_values": [1, 2]}, TypeError, "custom_values=.* should be a dict"),
    ({"custom_values": {0: [1, 1]}}, ValueError, "occurs twice"),
    ({"target": 3}, ValueError, "target=3 is none of the model's outputs"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0"),
]


@pytest.mark.parametrize(("params", "error", "match"), ERRORS, ids=[str(e[0]) for e in ERRORS])
def test_bad_parameters(params, error, match, data, target):
    with pytest.raises(error, match=match):
        ICEExplainer(**params).fit(fitted("linear", data, target), data)


def test_bad_data(data, target):
    explainer = ICEExplainer().fit(fitted("linear", data, target), data)
    X = data.copy()
    X[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        explainer.transform(X)
    with pytest.raises(ValueError, match="X has 2 features"):
        explainer.transform(data[:, :2])
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        explainer.explain(data, sample_weight=np.ones(3))
    tree = HistGradientBoostingRegressor(max_iter=2).fit(data, target)
    X = data.copy()
    X[:, 0] = np.nan
    with pytest.raises(ValueError, match="no value of 'x0' to take points from"):
        ICEExplainer().fit(tree, X)


def test_no_more_memory_than_there_is(data, target, monkeypatch):
    from fastpd_sklearn.explainers import _checks

    explainer = ICEExplainer().fit(fitted("forest", data, target), data)
    monkeypatch.setattr(_checks, "available_memory", lambda: 1000)
    with pytest.raises(MemoryError, match="an `out` array to explain"):
        explainer.transform(data)
    assert len(explainer.average(data)) == 3


def test_points_are_given_once(data, target):
    model = RandomForestRegressor(2, random_state=0).fit(data, target)
    explainer = ICEExplainer(features=[0], custom_values={0: [1, -1, 0, 1]})
    with pytest.raises(ValueError, match="occurs twice among the points"):
        explainer.fit(model, data)


def test_no_more_names_than_there_is_memory_for(data, target, monkeypatch):
    from fastpd_sklearn.explainers import _checks

    model = RandomForestRegressor(2, random_state=0).fit(data, target)
    monkeypatch.setattr(_checks, "available_memory", lambda: 10_000)
    explainer = ICEExplainer(features=[0], custom_values={0: np.arange(100.0)})
    with pytest.raises(MemoryError, match="the naming of 100 columns takes"):
        explainer.fit(model, data)


def test_a_pipeline_takes_what_its_steps_take(data, target):
    """Its tags are those of the first step, which may know nothing of the columns passed on."""
    pd = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    frame = pd.DataFrame({"n": data[:, 0], "c": np.array(list("abcde"))[data[:, 2].astype(int)]})
    frame.loc[3, "n"] = np.nan
    encode = ColumnTransformer(
        [("c", OneHotEncoder(sparse_output=False), ["c"])], remainder="passthrough"
    )
    model = make_pipeline(encode, HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3))
    model.fit(frame, target)
    explainer = ICEExplainer(grid_resolution=4, centered={"c": "b"}).fit(model, frame)
    curves = explainer.explain(frame)[1]
    for k, label in enumerate("abcde"):
        truth = model.predict(frame.assign(c=label)) - model.predict(frame.assign(c="b"))
        assert_allclose(curves.individual[0, :, k], truth, atol=1e-12)
    values = ALEExplainer().fit(model, frame).transform(frame)
    assert_array_equal(np.flatnonzero(np.isnan(values[:, 0])), [3])
    assert not np.isnan(values[:, 1]).any()
