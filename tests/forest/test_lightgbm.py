"""LightGBM models against LightGBM's own raw prediction."""

import pickle
import re
from types import SimpleNamespace

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.forest import _lightgbm, find_reader
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from fastpd_sklearn.forest._lightgbm import reader
from tests import oracles

VERSION = tuple(int(part) for part in lgb.__version__.split(".")[:2])
N_ROWS = 240
QUIET = {"verbose": -1, "n_jobs": 1}
SMALL = {
    "n_estimators": 6,
    "num_leaves": 7,
    "min_child_samples": 5,
    "min_data_per_group": 5,
    "cat_smooth": 1,
    **QUIET,
}
RF = {"subsample": 0.6, "subsample_freq": 1, "colsample_bytree": 0.8}
NEAR_ZERO = [0.0, -0.0, 1e-36, -1e-36, 5e-324, -5e-324, 2e-35, -2e-35] + [
    side * value
    for side in (1, -1)
    for value in (
        ZERO_THRESHOLD,
        np.nextafter(ZERO_THRESHOLD, 1),
        np.nextafter(ZERO_THRESHOLD, 0),
    )
]
ODD_NUMBERS = [np.nan, 1e300, -1e300, np.inf, -np.inf, *NEAR_ZERO]
ODD_CODES = [np.nan, -1, -0.5, -0.999, -7, 1.9, 0.3, 1e-36, 77, 1e5, 2.0**31, 1e300, np.inf]
# LightGBM reads this one number as zero in dense rows and as itself in CSR and Arrow.
EDGE = -ZERO_THRESHOLD


@pytest.fixture(scope="module")
def data():
    """Four columns: with missing values, many zeros, few integers, codes of categories."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[rng.random(N_ROWS) < 0.15, 0] = np.nan
    X[rng.random(N_ROWS) < 0.4, 1] = 0.0
    X[:, 2] = rng.integers(-2, 3, N_ROWS)
    X[:, 3] = rng.integers(0, 40, N_ROWS)
    level = rng.normal(size=40)
    y = (
        np.where(np.isnan(X[:, 0]), 2.0, np.sin(X[:, 0]))
        + np.where(X[:, 1] == 0, 1.5, X[:, 1])
        + np.abs(X[:, 2])
        + level[X[:, 3].astype(int)]
        + 0.1 * rng.normal(size=N_ROWS)
    )
    labels = SimpleNamespace(
        y=y,
        positive=np.exp(y / 4),
        unit=1 / (1 + np.exp(-y)),
        binary=(y > np.median(y)).astype(int),
        three=np.digitize(y, np.quantile(y, [0.3, 0.7])),
    )
    return X, labels


def odd_rows(forest, seed=0, n_rows=150):
    """Rows of thresholds, their neighbours, categories and odd values, mixed at random."""
    rng = np.random.default_rng(seed)
    columns = []
    for j in range(forest.n_inputs):
        inner = (forest.left >= 0) & (forest.feature == j)
        if forest.is_categorical[inner].any():
            listed = np.concatenate(
                [
                    forest.category[forest.category_start[i] : forest.category_start[i + 1]]
                    for i in np.flatnonzero(inner)
                ]
            )
            pool = np.concatenate([np.unique(listed), np.unique(listed) + 1, ODD_CODES])
        else:
            t = np.unique(forest.threshold[inner])
            beside = [t, np.nextafter(t, np.inf), np.nextafter(t, -np.inf)]
            pool = np.concatenate([*beside, ODD_NUMBERS])
        column = np.concatenate([pool, rng.choice(pool, max(n_rows - len(pool), 0))])
        columns.append(rng.permutation(column)[:n_rows])
    return np.column_stack(columns)


def check_parity(model, X, reading=None):
    reading = reading or reader.read(model)
    expected = reader.predict_raw(model, X)
    got = oracles.predict(reading.forest, reading.input_map.open(X).to_array())
    assert expected.shape == got.shape == (X.shape[0], reading.forest.n_outputs)
    assert expected.dtype == np.float64
    assert (np.abs(got - expected) <= reader.tolerance * reading.forest.scale()).all()


def check_model(model, X):
    """Parity on training rows and on odd ones, dense in both orders and precisions."""
    reading = reader.read(model)
    rows = np.vstack([X[:50], odd_rows(reading.forest)])
    check_parity(model, rows, reading)
    check_parity(model, np.asfortranarray(rows), reading)
    with np.errstate(over="ignore"):
        check_parity(model, rows.astype(np.float32), reading)
    return reading


def fields(model, name):
    text = getattr(model, "booster_", model).model_to_string()
    return [line.partition("=")[2] for line in text.split("\n") if line.startswith(name + "=")]


# -- Kinds of models -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"boosting_type": "dart", "drop_rate": 0.6, "skip_drop": 0.0},
        {"boosting_type": "dart", "xgboost_dart_mode": True, "skip_drop": 0.0},
        {"boosting_type": "rf", **RF},
        {"data_sample_strategy": "goss"},
        {"use_missing": False},
        {"zero_as_missing": True},
        {"extra_trees": True, "boost_from_average": False},
        {"linear_tree": False, "monotone_constraints": [1, 0, 0, 0]},
        {"max_bin": 4, "path_smooth": 1.0},
        {"use_quantized_grad": True},
    ],
    ids=lambda params: ",".join(params) or "plain",
)
@pytest.mark.parametrize("categorical", ["auto", [3], [2, 3]], ids=["none", "one", "two"])
def test_regressor(data, params, categorical):
    X, labels = data
    X = np.abs(X) if categorical == [2, 3] else X
    model = lgb.LGBMRegressor(**SMALL, **params)
    model.fit(X, labels.y, categorical_feature=categorical)
    reading = check_model(model, X)
    assert reading.forest.is_categorical.any() == (categorical != "auto")
    assert reading.head.additive == ("raw", "predict")
    assert_allclose(reader.predict_raw(model, X)[:, 0], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize("zero", [False, True])
def test_missing_types(data, zero):
    X, labels = data
    X = X.copy()
    X[:, 3][X[:, 3] == 0] = np.nan
    for use_missing in (True, False):
        model = lgb.LGBMRegressor(zero_as_missing=zero, use_missing=use_missing, **SMALL)
        model.fit(X, labels.y)
        kinds = np.array(" ".join(fields(model, "decision_type")).split(), dtype=int)
        missing = set((kinds >> 2).tolist())
        assert missing == ({0} if not use_missing else {1} if zero else {0, 2})
        reading = check_model(model, X)
        assert reading.forest.zero_as_missing.any() == (zero and use_missing)


def test_both_default_directions(data):
    X, labels = data
    model = lgb.LGBMRegressor(**{**SMALL, "n_estimators": 20}).fit(X, labels.y)
    missing = np.array(" ".join(fields(model, "decision_type")).split(), dtype=int)
    assert {8, 10} <= set(missing.tolist())
    check_model(model, X)


@pytest.mark.parametrize("onehot", [True, False])
def test_category_sets(data, onehot):
    X, labels = data
    model = lgb.LGBMRegressor(max_cat_to_onehot=100 if onehot else 1, **SMALL)
    model.fit(X, labels.y, categorical_feature=[3])
    forest = check_model(model, X).forest
    size = np.diff(forest.category_start)[forest.is_categorical]
    assert (size == 1).all() if onehot else (size > 1).any()
    assert forest.category.max() > 32


def test_category_codes_beyond_one_word():
    codes = np.repeat([0, 31, 32, 63, 64, 1000, 70000], 30).astype(float)
    y = np.tile([1.0, 9.0], 105) * 0 + np.isin(codes, [31, 64, 70000])
    model = lgb.LGBMRegressor(max_cat_to_onehot=1, **SMALL)
    model.fit(codes[:, None], y, categorical_feature=[0])
    forest = check_model(model, codes[:, None]).forest
    assert set(forest.category.tolist()) >= {31, 64, 70000} or 0 in forest.category


@pytest.mark.parametrize("objective", ["regression_l1", "huber", "fair", "quantile", "mape"])
def test_identity_objectives(data, objective):
    X, labels = data
    model = lgb.LGBMRegressor(objective=objective, **SMALL).fit(X, labels.y)
    head = check_model(model, X).head
    assert head.additive == ("raw", "predict")
    assert head.link_method is None


@pytest.mark.parametrize("objective", ["poisson", "gamma", "tweedie"])
def test_log_link(data, objective):
    X, labels = data
    model = lgb.LGBMRegressor(objective=objective, **SMALL).fit(X, labels.positive)
    head = check_model(model, X).head
    assert (head.additive, head.link, head.link_method) == (("raw",), "exp", "predict")
    check_response(model, model.predict(X), X)


def check_response(model, expected, X):
    head = reader.read(model).head
    assert_allclose(np.squeeze(head.respond(reader.predict_raw(model, X))), expected, rtol=1e-12)


def test_cross_entropy(data):
    X, labels = data
    model = lgb.LGBMRegressor(objective="cross_entropy", **SMALL).fit(X, labels.unit)
    head = check_model(model, X).head
    assert (head.additive, head.link, head.link_method) == (("raw",), "logit", "predict")
    assert head.classes is None
    check_response(model, model.predict(X), X)


@pytest.mark.parametrize("params", [{"objective": "cross_entropy_lambda"}, {"reg_sqrt": True}])
def test_responses_without_a_link(data, params):
    X, labels = data
    model = lgb.LGBMRegressor(**SMALL, **params).fit(X, labels.unit)
    head = check_model(model, X).head
    assert (head.additive, head.link, head.link_method) == (("raw",), "identity", None)
    assert not np.allclose(model.predict(X), reader.predict_raw(model, X)[:, 0])


DECISION = ("decision_function",) if VERSION >= (4, 7) else ()


@pytest.mark.parametrize("boosting", [{}, {"boosting_type": "dart"}, {"boosting_type": "rf", **RF}])
def test_binary(data, boosting):
    X, labels = data
    y = np.array(["no", "yes"])[labels.binary]
    model = lgb.LGBMClassifier(**SMALL, **boosting).fit(X, y, categorical_feature=[3])
    head = check_model(model, X).head
    averaged = "subsample" in boosting
    assert head.additive == ("raw", *(() if averaged else DECISION))
    assert (head.link, head.link_method) == ("logit", "predict_proba")
    assert_array_equal(head.classes, ["no", "yes"])
    check_response(model, model.predict_proba(X)[:, 1], X)


def test_binary_with_another_sigmoid(data):
    X, labels = data
    model = lgb.LGBMClassifier(sigmoid=2.0, **SMALL).fit(X, labels.binary)
    head = check_model(model, X).head
    assert (head.link, head.link_method) == ("identity", None)
    assert_array_equal(head.classes, [0, 1])


@pytest.mark.parametrize("boosting", [{}, {"boosting_type": "rf", **RF}])
@pytest.mark.parametrize(
    ("objective", "link"), [("multiclass", "softmax"), ("multiclassova", "multi_logit")]
)
def test_three_classes(data, objective, link, boosting):
    X, labels = data
    y = np.array(["a", "b", "c"])[labels.three]
    model = lgb.LGBMClassifier(objective=objective, **SMALL, **boosting).fit(X, y)
    reading = check_model(model, X)
    assert reading.forest.n_outputs == 3
    assert_array_equal(reading.forest.tree_output, np.arange(reading.forest.n_trees) % 3)
    assert (reading.head.link, reading.head.link_method) == (link, "predict_proba")
    assert reading.head.names(3) == ("a", "b", "c")
    check_response(model, model.predict_proba(X), X)


def test_one_class(data):
    X, _ = data
    model = lgb.LGBMClassifier(**SMALL).fit(X, np.full(N_ROWS, "only"))
    reading = check_model(model, X)
    assert reading.head.classes is None
    check_response(model, model.predict_proba(X)[:, 1], X)


@pytest.mark.parametrize("objective", ["lambdarank", "rank_xendcg"])
def test_ranker(data, objective):
    X, labels = data
    model = lgb.LGBMRanker(objective=objective, **SMALL)
    model.fit(X, labels.three, group=np.full(N_ROWS // 20, 20))
    head = check_model(model, X).head
    assert head.additive == ("raw", "predict")
    assert_array_equal(model.predict(X), reader.predict_raw(model, X)[:, 0])


def squared_error(y, score):
    return score - y, np.ones_like(y)


@pytest.mark.filterwarnings("ignore:Cannot compute class probabilities")
def test_custom_objective(data):
    X, labels = data
    model = lgb.LGBMRegressor(objective=squared_error, **SMALL).fit(X, labels.y)
    assert check_model(model, X).head.additive == ("raw", "predict")
    model = lgb.LGBMClassifier(objective=squared_error, **SMALL).fit(X, labels.binary)
    head = check_model(model, X).head
    assert head.additive == ("raw", "predict", *DECISION)
    assert_array_equal(model.predict(X), reader.predict_raw(model, X)[:, 0])


def test_classifier_with_a_regression_objective(data):
    X, labels = data
    model = lgb.LGBMClassifier(objective="regression", **SMALL).fit(X, labels.binary)
    head = check_model(model, X).head
    assert head.additive == ("raw", "predict_proba", *DECISION)
    assert_array_equal(model.predict_proba(X)[:, 1], reader.predict_raw(model, X)[:, 0])


def test_regressor_with_a_classifying_objective(data):
    X, labels = data
    model = lgb.LGBMRegressor(objective="binary", **SMALL).fit(X, labels.binary)
    head = check_model(model, X).head
    assert (head.link, head.link_method, head.classes) == ("logit", "predict", None)
    check_response(model, model.predict(X), X)


# -- Boosters and iterations ---------------------------------------------------------------


def train(X, y, rounds=6, dataset=None, keep_training_booster=False, **params):
    data = lgb.Dataset(X, y, free_raw_data=False, **(dataset or {}))
    return lgb.train(
        {"num_leaves": 7, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1, **params},
        data,
        num_boost_round=rounds,
        keep_training_booster=keep_training_booster,
    )


def test_booster_classes(data):
    X, labels = data
    head = check_model(train(X, labels.binary, objective="binary"), X).head
    assert (head.link, head.link_method) == ("logit", "predict_proba")
    assert_array_equal(head.classes, [0, 1])
    booster = train(X, labels.three, objective="multiclass", num_class=3)
    head = check_model(booster, X).head
    assert_array_equal(head.classes, [0, 1, 2])
    check_response(booster, booster.predict(X), X)


def test_loaded_boosters(data, tmp_path):
    X, labels = data
    booster = train(X, labels.y, dataset={"categorical_feature": [3]})
    booster.save_model(tmp_path / "model.txt")
    expected = reader.predict_raw(booster, X)
    for loaded in (
        lgb.Booster(model_file=tmp_path / "model.txt"),
        lgb.Booster(model_str=booster.model_to_string()),
        pickle.loads(pickle.dumps(booster)),
    ):
        check_model(loaded, X)
        assert_array_equal(reader.predict_raw(loaded, X), expected)


@pytest.mark.parametrize("boosting", ["gbdt", "rf"])
def test_early_stopping(data, boosting):
    X = data[0]
    noise = np.random.default_rng(1).normal(size=N_ROWS)
    params = {"boosting": boosting, "num_leaves": 7, "learning_rate": 0.5, "verbosity": -1}
    params.update(bagging_fraction=0.6, bagging_freq=1, min_data_in_leaf=5, num_threads=1)
    dataset = lgb.Dataset(X, noise)
    booster = lgb.train(
        params,
        dataset,
        num_boost_round=60,
        valid_sets=[lgb.Dataset(X[::-1], noise + X[:, 2], reference=dataset)],
        callbacks=[lgb.early_stopping(3, verbose=False)],
        keep_training_booster=True,
    )
    assert 0 < booster.best_iteration < booster.num_trees()
    for fitted in (booster, pickle.loads(pickle.dumps(booster))):
        reading = check_model(fitted, X)
        assert reading.forest.n_trees == booster.best_iteration
        assert_allclose(reader.predict_raw(fitted, X)[:, 0], booster.predict(X), rtol=1e-12)
    booster.best_iteration = -1
    assert check_model(booster, X).forest.n_trees == booster.num_trees()
    assert_allclose(reader.predict_raw(booster, X)[:, 0], booster.predict(X), rtol=1e-12)


def test_early_stopping_in_the_wrapper(data):
    X, labels = data
    given = {"eval_X": X[::-1], "eval_y": labels.y}
    if VERSION < (4, 7):
        given = {"eval_set": [(X[::-1], labels.y)]}
    model = lgb.LGBMRegressor(**{**SMALL, "n_estimators": 60, "learning_rate": 0.5})
    model.fit(X, labels.y, callbacks=[lgb.early_stopping(3, verbose=False)], **given)
    assert model.best_iteration_ < 60
    for fitted in (model, pickle.loads(pickle.dumps(model))):
        assert check_model(fitted, X).forest.n_trees == model.best_iteration_
        assert_array_equal(reader.predict_raw(fitted, X)[:, 0], model.predict(X))


def test_continued_training(data):
    X, labels = data
    first = train(X, labels.y)
    again = np.where(np.isnan(X), 0.5, X)
    params = {"num_leaves": 5, "min_data_in_leaf": 5, "verbosity": -1, "num_threads": 1}
    booster = lgb.train(params, lgb.Dataset(again, labels.y), 4, init_model=first)
    assert check_model(booster, X).forest.n_trees == 10


def test_booster_that_changed(data):
    X, labels = data
    booster = train(X, labels.y, keep_training_booster=True)
    booster.rollback_one_iter()
    booster.set_leaf_output(0, 1, 17.0)
    booster.shuffle_models()
    reading = check_model(booster, X)
    assert reading.forest.n_trees == 5
    assert 17.0 in reading.forest.value
    check_model(booster.refit(X, -labels.y), X)


def test_the_model_is_left_alone(data):
    X, labels = data
    model = lgb.LGBMClassifier(**SMALL).fit(X, labels.binary)
    before, given = pickle.dumps(model), X.copy()
    reader.read(model)
    reader.predict_raw(model, X)
    assert pickle.dumps(model) == before
    assert_array_equal(X, given)


# -- Trees without a split -----------------------------------------------------------------


@pytest.mark.parametrize("boosting", ["gbdt", "dart", "rf"])
def test_constant_target(data, boosting):
    X, _ = data
    sample = RF if boosting == "rf" else {}
    model = lgb.LGBMRegressor(boosting_type=boosting, **SMALL, **sample)
    model.fit(X, np.full(N_ROWS, 7.0))
    loaded = lgb.Booster(model_str=model.booster_.model_to_string())
    for fitted in (model, loaded):
        forest = check_model(fitted, X).forest
        assert (forest.feature == -1).all()
        # A random forest without a split forgets the constant.
        assert_allclose(reader.predict_raw(fitted, X[:1]), 0.0 if boosting == "rf" else 7.0)


def test_bare_leaf_among_trees(data):
    X, labels = data
    model = lgb.LGBMClassifier(objective="multiclass", **{**SMALL, "min_child_weight": 3.0})
    # One class is so rare that its trees have no split.
    y = labels.binary * 2
    y[:3] = 1
    model.fit(X, y)
    sizes = np.diff(check_model(model, X).forest.tree_start)
    assert (sizes == 1).any()
    assert (sizes > 1).any()


def test_initial_score_is_in_the_first_tree(data):
    X, labels = data
    model = lgb.LGBMRegressor(**{**SMALL, "n_estimators": 1}).fit(X, labels.y + 1000)
    forest = check_model(model, X).forest
    assert forest.intercept == 0
    assert forest.value[forest.left < 0].min() > 900


# -- Columns -------------------------------------------------------------------------------


@pytest.fixture
def frame(data):
    """Ordered and unordered categories around numbers, one name with a blank."""
    X, labels = data
    rng = np.random.default_rng(3)
    letters = pd.Series(rng.choice(list("xyz"), N_ROWS))
    size = rng.choice(["small", "large", "huge"], N_ROWS)
    ordered = pd.CategoricalDtype(["small", "large", "huge"], ordered=True)
    table = pd.DataFrame(
        {
            "a b": X[:, 0].astype(np.float32),
            "letter": letters.astype("category"),
            "count": pd.array(X[:, 2], dtype="Int64"),
            "number": pd.Categorical(rng.choice([30, 10, 20], N_ROWS)),
            "flag": rng.random(N_ROWS) < 0.5,
            "size": pd.Categorical(size, dtype=ordered),
        }
    )
    table.loc[:9, "count"] = pd.NA
    table.loc[5:14, "letter"] = np.nan
    table.loc[8:20, "size"] = np.nan
    y = labels.y + 3 * (letters == "y") + 2 * (table["number"] == 20) + 2 * (size == "huge")
    return table, y.to_numpy()


MORE = {**SMALL, "n_estimators": 10}


def test_frame(frame):
    table, y = frame
    unordered = table.drop(columns="size")
    model = lgb.LGBMRegressor(**MORE).fit(unordered, y)
    reading = reader.read(model)
    check_parity(model, unordered, reading)
    assert reading.input_map.names == ("a_b", "letter", "count", "number", "flag")
    assert reading.input_map.has_names(unordered.columns)
    assert not reading.input_map.has_names(unordered.columns[::-1])
    categories = reading.input_map.categories
    assert {j: c.tolist() for j, c in categories.items()} == {1: ["x", "y", "z"], 3: [10, 20, 30]}
    assert set(reading.forest.feature[reading.forest.is_categorical]) == {1, 3}
    # Arrays hold codes.
    check_parity(model, odd_rows(reading.forest), reading)
    pickle.loads(pickle.dumps(reading.input_map)).open(unordered)


def test_ordered_categories_are_numbers(frame):
    table, y = frame
    model = lgb.LGBMRegressor(**MORE).fit(table, y)
    reading = reader.read(model)
    check_parity(model, table, reading)
    assert 5 not in reading.forest.feature[reading.forest.is_categorical]
    assert 5 in reading.forest.feature
    settled = reading.input_map.settled(table)
    assert {j: c.tolist() for j, c in settled.categories.items()} == {
        1: ["x", "y", "z"],
        3: [10, 20, 30],
        5: ["small", "large", "huge"],
    }


@pytest.mark.parametrize("through", ["wrapper", "booster", "loaded"])
def test_frame_with_other_categories(frame, through):
    table, y = frame
    model = lgb.LGBMRegressor(**MORE).fit(table, y)
    if through != "wrapper":
        model = model.booster_
    if through == "loaded":
        model = lgb.Booster(model_str=model.model_to_string())
    other = table.assign(
        letter=table["letter"].cat.set_categories(["new", "z", "x", "y"]),
        number=table["number"].cat.set_categories([20, 99, 30, 10]),
        size=table["size"].cat.reorder_categories(["huge", "small", "large"]),
    )
    other.loc[30:50, "letter"] = "new"
    other.loc[40:60, "number"] = 99
    before = other.copy()
    check_parity(model, other)
    pd.testing.assert_frame_equal(other, before)
    inputs = reader.read(model).input_map.open(other)
    assert np.isnan(inputs.column(1)[30:51]).all()
    # LightGBM compares the number of categorical columns, no more.
    with pytest.raises(ValueError, match="2 categorical columns"):
        reader.read(model).input_map.open(other.assign(letter=0.0))


def test_named_categorical_features(frame):
    table, y = frame
    table = table.drop(columns=["size", "count"]).assign(code=np.arange(N_ROWS) % 3)
    model = lgb.LGBMRegressor(**MORE).fit(table, y, categorical_feature=["code"])
    reading = reader.read(model)
    assert set(reading.forest.feature[reading.forest.is_categorical]) == {4}
    # Two frame categories, one split on as such: which is which cannot be told without X.
    assert reading.input_map.categories == {}
    check_parity(model, table, reading)


def test_constant_and_unused_columns(frame):
    table, y = frame
    table = table.assign(letter=pd.Categorical(["only"] * N_ROWS), zero=0)
    model = lgb.LGBMRegressor(**MORE).fit(table.drop(columns="size"), y)
    check_parity(model, table.drop(columns="size"))
    categories = reader.read(model).input_map.categories
    assert {j: c.tolist() for j, c in categories.items()} == {1: ["only"], 3: [10, 20, 30]}


def test_frame_for_a_model_of_codes(data):
    X, labels = data
    model = lgb.LGBMRegressor(**SMALL).fit(X, labels.y, categorical_feature=[3])
    reading = reader.read(model)
    assert reading.input_map.names is None
    assert reading.input_map.categories == {}
    check_parity(model, pd.DataFrame(X), reading)
    check_parity(model, pd.DataFrame(X).astype({3: "category"}), reading)


def test_names(data):
    X, labels = data
    for columns, names in [
        (range(4), None),
        (["Column_0", "Column_1", "Column_2", "Column_3"], None),
        (["a=b", "c\td", "é è", "f"], ("a=b", "c\td", "é_è", "f")),
    ]:
        table = pd.DataFrame(X, columns=columns)
        model = lgb.LGBMRegressor(**SMALL).fit(table, labels.y)
        assert reader.read(model).input_map.names == names
        assert reader.read(model.booster_).input_map.has_names(columns)
    booster = train(X, labels.y, dataset={"feature_name": ["p", "q", "r", "s"]})
    assert reader.read(booster).input_map.names == ("p", "q", "r", "s")


def test_polars(data):
    X, labels = data
    table = pl.DataFrame(X[:, :3], schema=["a", "b", "c"]).with_columns(
        pl.col("b").cast(pl.Float32), pl.col("c").cast(pl.Int8), pl.col("a").fill_nan(None)
    )
    if VERSION < (4, 7):
        pytest.skip("LightGBM takes polars frames since version 4.7")
    model = lgb.LGBMRegressor(**SMALL).fit(table, labels.y)
    reading = reader.read(model)
    check_parity(model, table, reading)
    rows = odd_rows(reading.forest)
    rows = rows[(rows != EDGE).all(axis=1)]
    check_parity(model, pl.DataFrame(rows, schema=["a", "b", "c"]), reading)


def test_polars_beside_zero():
    """A threshold beside zero: as arrays and as polars frames LightGBM reads tiny numbers apart."""
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (300, 3)).astype(float)
    frame = pl.DataFrame(X, schema=["a", "b", "c"])
    if VERSION < (4, 7):
        pytest.skip("LightGBM takes polars frames since version 4.7")
    model = lgb.LGBMRegressor(**SMALL).fit(frame, (X[:, 0] < 0) + X[:, 1])
    explainer = FastPDExplainer().fit(model, frame)
    for value in (-1.0, 0.0, 1.0):
        moved = frame.with_columns(a=pl.lit(value))
        average = explainer.partial_dependence("a", [value]).average[0]
        assert_allclose(average, model.predict(moved).mean(), rtol=1e-12)


# -- Containers ----------------------------------------------------------------------------


@pytest.mark.parametrize("params", [{}, {"zero_as_missing": True}])
@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_sparse(data, params, make):
    X, labels = data
    thin = np.where(np.abs(X) < 0.6, 0.0, X)
    model = lgb.LGBMRegressor(**SMALL, **params).fit(make(thin), labels.y)
    reading = reader.read(model)
    rows = odd_rows(reading.forest)
    rows = np.vstack([thin, rows[(rows != EDGE).all(axis=1)]])
    check_parity(model, make(rows), reading)
    check_parity(model, make(thin.astype(np.float32)), reading)
    # Stored zeros are the same as absent ones.
    stored = make(np.where(rows == 0, 123.0, rows))
    stored.data[stored.data == 123.0] = 0.0
    assert_array_equal(reader.predict_raw(model, stored), reader.predict_raw(model, rows))
    check_parity(model, stored, reading)


def test_other_sparse_formats_print_nothing(data, capfd):
    X, labels = data
    model = lgb.LGBMRegressor(**SMALL).fit(sparse.csr_matrix(X), labels.y)
    for make in (sparse.coo_matrix, sparse.csc_array, sparse.lil_array):
        check_parity(model, make(X))
    assert "".join(capfd.readouterr()) == ""


def test_integer_arrays_are_rounded_to_float32():
    X = np.random.default_rng(0).integers(0, 2**26, (400, 1))
    model = lgb.LGBMRegressor(n_estimators=1, num_leaves=2, **QUIET).fit(X, X[:, 0] > 2**25)
    threshold = int(float(fields(model, "threshold")[0]))
    near = np.arange(threshold - 6, threshold + 6)[:, None]
    assert not np.array_equal(model.predict(near), model.predict(near.astype(float)))
    for dtype in (np.int64, np.int32, np.float64, ">f8", np.longdouble, object):
        check_parity(model, near.astype(dtype))
    check_parity(model, pd.DataFrame(near))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, ">f4"])
def test_small_dtypes(data, dtype):
    X, labels = data
    X = np.nan_to_num(X).clip(0, 100).astype(dtype)
    check_parity(lgb.LGBMRegressor(**SMALL).fit(X, labels.y), X)


# -- Output and refusals -------------------------------------------------------------------


def test_nothing_is_printed(data, capfd, recwarn):
    X, labels = data
    table = pd.DataFrame(X, columns=list("abcd"))
    params = {**SMALL, "verbose": 1, "bagging_fraction": 0.9, "nonsense": 3}
    model = lgb.LGBMRegressor(**params).fit(table, labels.y)
    capfd.readouterr()
    recwarn.clear()
    reader.read(model)
    reader.predict_raw(model, table)
    reader.predict_raw(model, X)
    reader.predict_raw(model.booster_, X)
    assert "".join(capfd.readouterr()) == ""
    assert len(recwarn) == 0


def test_errors_of_the_library_reach_the_user(data):
    X, labels = data
    model = lgb.LGBMRegressor(**SMALL).fit(X, labels.y)
    with pytest.raises(Exception, match=r"number of features|features, but"):
        reader.predict_raw(model, X[:, :2])


LINEAR = {
    "plain": {},
    "dart": {"boosting_type": "dart", "drop_rate": 0.6, "skip_drop": 0.0},
    "rf": {"boosting_type": "rf", **RF},
    "no missing type": {"use_missing": False},
    "regularised": {"linear_lambda": 1.0, "extra_trees": True},
    "stumps": {"num_leaves": 2},
}


def check_linear(model, X):
    """Parity on training rows and on odd ones, as far as finite; the reading."""
    reading = reader.read(model)
    forest = reading.forest
    odd = odd_rows(forest)
    odd[np.abs(odd) > 1e6] = 0.0  # what is huge would be multiplied
    stored = sparse.csr_matrix(np.where(np.isnan(odd) | (odd == EDGE), 0.0, odd))
    for rows in (X[:60], odd, odd.astype(np.float32), stored):
        expected = reader.predict_raw(model, rows)
        inputs = reading.input_map.open(rows).to_array()
        allowed = reader.tolerance * (forest.scale() + forest.slope_scale(inputs))
        assert (np.abs(oracles.predict(forest, inputs) - expected) <= allowed).all()
    return reading


@pytest.mark.parametrize("params", list(LINEAR.values()), ids=list(LINEAR))
@pytest.mark.parametrize("missing", [True, False], ids=["missing", "complete"])
def test_linear_leaves(data, params, missing):
    """KNOWN_FAULTS A26."""
    X, labels = data
    X = X if missing else np.nan_to_num(X)
    model = lgb.LGBMRegressor(linear_tree=True, **{**SMALL, **params})
    model.fit(X, labels.y, categorical_feature=[3])
    forest = check_linear(model, X).forest
    assert forest.is_linear
    assert 3 not in forest.slope_input
    assert np.isinf(forest.threshold).any()  # missing values lead to no linear function


def test_linear_leaves_of_classes(data):
    X, labels = data
    model = lgb.LGBMClassifier(linear_tree=True, **{**SMALL, "n_estimators": 3})
    model.fit(X, labels.three)
    reading = check_linear(model, X)
    assert reading.forest.n_outputs == 3
    assert reading.forest.is_linear


def test_linear_leaves_that_have_no_slope(data):
    """LightGBM's first linear tree is constant; so are trees that split categories alone."""
    X, labels = data
    model = lgb.LGBMRegressor(linear_tree=True, **{**SMALL, "n_estimators": 1})
    forest = check_linear(model.fit(X, labels.y), X).forest
    assert not forest.is_linear
    assert forest.n_trees == 1


def test_linear_trees_behind_plain_ones(data):
    X, labels = data
    first = lgb.LGBMRegressor(**SMALL).fit(X, labels.y)
    model = lgb.LGBMRegressor(linear_tree=True, **SMALL)
    try:
        model.fit(X, labels.y, init_model=first)
    except lgb.basic.LightGBMError:
        pytest.skip("this LightGBM does not go on from constant leaves")
    assert check_linear(model, X).forest.is_linear


def test_damaged_linear_leaves(data):
    X, labels = data
    model = lgb.LGBMRegressor(linear_tree=True, **SMALL).fit(X, labels.y)
    text = model.booster_.model_to_string()
    found = re.search(r"^leaf_coeff=.*[\d.]+.*$", text, re.MULTILINE)[0]
    damaged = text.replace(found, found.rstrip().rpartition(" ")[0])
    with pytest.raises(ValueError, match=r"damaged: .* numbers in leaf_coeff"):
        _lightgbm._forest(_lightgbm._Text(damaged))


def test_stopped_predictions_are_refused(data):
    X, labels = data
    model = lgb.LGBMClassifier(pred_early_stop=True, **SMALL).fit(X, labels.binary)
    with pytest.raises(ValueError, match="pred_early_stop=True"):
        reader.read(model)


def test_unfitted(data):
    for model in (lgb.LGBMRegressor(), lgb.LGBMClassifier(), lgb.LGBMRanker()):
        with pytest.raises(NotFittedError):
            reader.read(model)
        with pytest.raises(NotFittedError):
            reader.predict_raw(model, data[0])
    empty = lgb.Booster(
        {"verbosity": -1}, lgb.Dataset(data[0], data[1].y, params={"verbosity": -1})
    )
    with pytest.raises(NotFittedError, match="no trees"):
        reader.read(empty)


class Distributed(lgb.LGBMRegressor):
    """What of LightGBM's Dask models the reader goes by."""

    def to_local(self):
        return lgb.LGBMRegressor()


def test_dask_models_are_refused():
    with pytest.raises(ValueError, match=r"Distributed .*to_local"):
        reader.read(Distributed())


class Doctored(lgb.Booster):
    """A booster whose text another version may have written."""

    edit = staticmethod(lambda text: text)

    def model_to_string(self, *args, **kwargs):
        return self.edit(super().model_to_string(*args, **kwargs))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.replace("\nshrinkage=1", "\nleaf_mood=3\nshrinkage=1", 1), "leaf_mood"),
        (lambda t: t.replace("\nlabel_index", "\noffset=3\nlabel_index", 1), "offset"),
        (lambda t: t.replace("\ndecision_type=2", "\ndecision_type=14", 1), "decision_type"),
        (lambda t: t.replace("\ndecision_type=2", "\ndecision_type=18", 1), "decision_type"),
        (lambda t: t.replace("\nleaf_value=", "\nleaf_value=0 ", 1), "leaf_value"),
        (lambda t: t.replace("\nleft_child=", "\nleft_child=7 ", 1), "left_child"),
    ],
)
def test_unknown_text_is_refused(data, edit, message):
    X, labels = data
    booster = train(np.nan_to_num(X), labels.y)
    doctored = Doctored(model_str=booster.model_to_string())
    check_model(doctored, X)
    doctored.edit = edit
    with pytest.raises(ValueError, match=message):
        reader.read(doctored)


def test_registry_finds_the_reader(data):
    X, labels = data
    model = lgb.LGBMRegressor(**SMALL).fit(X, labels.y)
    assert find_reader(model) is reader
    assert find_reader(model.booster_) is reader
    assert find_reader(lgb.Dataset(X)) is None


def test_cover_counts_rows(data):
    X, labels = data
    forest = reader.read(lgb.LGBMRegressor(**SMALL).fit(X, labels.y)).forest
    inner = forest.left >= 0
    assert_array_equal(forest.cover[forest.tree_start[:-1]], N_ROWS)
    assert_array_equal(
        forest.cover[inner], forest.cover[forest.left[inner]] + forest.cover[forest.right[inner]]
    )


# -- Faults known from neighbouring projects ------------------------------------------------


def evaluate(model, X):
    reading = reader.read(model)
    check_parity(model, X, reading)
    return oracles.predict(reading.forest, reading.input_map.open(X).to_array())[:, 0]


def test_values_beside_a_threshold():
    """KNOWN_FAULTS A05."""
    x = np.tile([1.0, 2.0, 3.0, 4.0], 20)[:, None]
    model = lgb.LGBMRegressor(n_estimators=1, num_leaves=2, min_child_samples=1, **QUIET)
    model.fit(x, x[:, 0] >= 3)
    assert fields(model, "threshold") == ["2.5000000000000004"]
    queries = [np.nextafter(2.5, 0), 2.5, np.nextafter(2.5, 3), 2.500000000000001, np.nan]
    low, high = model.predict([[1.0], [4.0]])
    assert_array_equal(evaluate(model, np.array(queries)[:, None]), [low, low, low, high, low])


def test_missing_is_zero_where_training_had_none():
    """KNOWN_FAULTS A07."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(-3, 0.3, 200), rng.normal(-1, 0.3, 200)])[:, None]
    y = np.repeat([0.0, 1.0], 200)
    model = lgb.LGBMRegressor(n_estimators=1, num_leaves=2, learning_rate=1.0, **QUIET).fit(x, y)
    assert fields(model, "decision_type") == ["2"]
    assert_allclose(evaluate(model, np.array([[np.nan], [0.0]])), [1.0, 1.0], atol=0.02)


def test_odd_categories_go_right():
    """KNOWN_FAULTS A09."""
    codes = np.tile([0.0, 1.0, 2.0, 3.0], 100)[:, None]
    model = lgb.LGBMRegressor(
        n_estimators=1,
        num_leaves=2,
        learning_rate=1.0,
        max_cat_to_onehot=1,
        min_data_per_group=1,
        cat_smooth=0,
        cat_l2=0,
        **QUIET,
    )
    model.fit(codes, np.tile([5.0, 9.0], 200), categorical_feature=[0])
    forest = reader.read(model).forest
    assert set(forest.category.tolist()) == {1, 3}
    queries = np.array([0, 1, np.nan, 77, -1, 1.9])[:, None]
    assert_allclose(evaluate(model, queries), [5, 9, 5, 5, 5, 9])
    background = np.array([0, 1, 2, 3, np.nan, 77])[:, None]
    assert_allclose(evaluate(model, background).mean(), 19 / 3)


def test_random_forests_are_averaged(data):
    """KNOWN_FAULTS A14."""
    X, labels = data
    model = lgb.LGBMRegressor(**{**SMALL, "n_estimators": 8}, boosting_type="rf", **RF)
    model.fit(X, labels.y)
    assert_allclose(evaluate(model, X), model.predict(X))
    assert_allclose(8 * evaluate(model, X), model.predict(X, raw_score=True))


def test_constant_model_has_no_feature(data):
    """KNOWN_FAULTS A25."""
    model = lgb.LGBMRegressor(**SMALL).fit(data[0], np.full(N_ROWS, 7.0))
    assert_array_equal(evaluate(model, data[0]), np.full(N_ROWS, 7.0))
    assert set(reader.read(model).forest.feature.tolist()) == {-1}
