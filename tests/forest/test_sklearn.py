"""The forest that is read from a scikit-learn model predicts what the model predicts."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomTreesEmbedding,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

from fastpd_sklearn import _compat
from fastpd_sklearn.forest import find_reader
from fastpd_sklearn.forest._sklearn import reader
from fastpd_sklearn.forest._sklearn_averaging import average_path_length
from tests.oracles import predict

N_ROWS = 200


def make_X(seed=0, missing=True):
    """Continuous, tied, tiny and huge columns."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=N_ROWS),
            rng.integers(0, 6, N_ROWS) / 10,
            rng.normal(size=N_ROWS) * 1e-42,
            rng.normal(size=N_ROWS) * 1e37,
        ]
    )
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def make_y(X, kind):
    clean = np.nan_to_num(X)
    score = (
        clean[:, 0]
        + 4 * clean[:, 1] * (clean[:, 0] > 0)
        + 1e42 * clean[:, 2]
        + 1e-37 * clean[:, 3]
        + 2 * np.isnan(X[:, 0])
    )
    return {
        "real": score,
        "positive": np.exp(score / 3),
        "binary": np.where(score > 0.5, "yes", "no"),
        "multi": np.digitize(score, [0, 1]) * 10,
        "two real": np.column_stack([score, np.abs(score)]),
        "two classes": np.column_stack([score > 0.5, np.digitize(score, [0, 1])]),
    }[kind]


def parsed(reading, X):
    return predict(reading.forest, reading.input_map.open(X).to_array())


def assert_reads(model, X, truth):
    """The parsed forest, and ``predict_raw``, give the library's own ``truth``."""
    truth = np.asarray(truth, dtype=np.float64)
    truth = truth.reshape(len(truth), -1)
    reading = reader.read(model)
    allowed = reader.tolerance * reading.forest.scale()
    raw = reader.predict_raw(model, X)
    assert raw.dtype == np.float64
    assert raw.shape == truth.shape
    assert np.all(np.abs(raw - truth) <= allowed)
    assert np.all(np.abs(parsed(reading, X) - truth) <= allowed)


def edge_rows(forest, X, allow_nan, limit=30):
    """Rows of ``X`` with a column set to its thresholds, their neighbours or an extreme."""
    rng = np.random.default_rng(1)
    rows = []
    for j in range(forest.n_inputs):
        used = (forest.feature == j) & np.isfinite(forest.threshold)
        t = np.unique(forest.threshold[used])
        t = rng.permutation(t)[:limit]
        t32 = t.astype(np.float32)
        values = [
            *(t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), t32),
            *(np.nextafter(t32, np.float32(s)) for s in (-3e38, 3e38)),
            [0.0, -0.0, 5e-324, -1e-310, 1e-40, -1e-45, 3.4e38, -3.4e38],
            [np.nan] if allow_nan else [],
        ]
        values = np.concatenate(values).astype(np.float64)
        block = X[rng.integers(0, len(X), len(values))].copy()
        block[:, j] = values
        rows.append(block)
    return np.vstack(rows)


def one(method):
    return lambda model, X: getattr(model, method)(X)


def second(model, X):
    return model.predict_proba(X)[:, 1]


def several_targets(model, X):
    first, other = model.predict_proba(X)
    return np.column_stack([first[:, 1], other])


def log_predict(model, X):
    return np.log(model.predict(X))


def path_length(model, X):
    return -np.log2(-model.score_samples(X)) * average_path_length(model.max_samples_)


few = {"n_estimators": 4, "random_state": 0}
MODELS = [
    (DecisionTreeRegressor(max_depth=6), "real", one("predict"), 1),
    (DecisionTreeRegressor(criterion="poisson", max_depth=4), "positive", one("predict"), 1),
    (DecisionTreeRegressor(max_leaf_nodes=12), "two real", one("predict"), 2),
    (DecisionTreeRegressor(ccp_alpha=0.02), "real", one("predict"), 1),
    (DecisionTreeClassifier(max_leaf_nodes=9, ccp_alpha=0.001), "multi", one("predict_proba"), 3),
    (DecisionTreeClassifier(class_weight="balanced", max_depth=5), "binary", second, 1),
    (DecisionTreeClassifier(max_depth=5), "two classes", several_targets, 4),
    (ExtraTreeRegressor(max_depth=6, random_state=0), "real", one("predict"), 1),
    (ExtraTreeClassifier(max_depth=6, random_state=0), "multi", one("predict_proba"), 3),
    (RandomForestRegressor(max_depth=5, **few), "real", one("predict"), 1),
    (RandomForestRegressor(max_depth=4, **few), "two real", one("predict"), 2),
    (RandomForestClassifier(max_depth=5, **few), "binary", second, 1),
    (RandomForestClassifier(max_depth=5, max_samples=0.2, **few), "multi", one("predict_proba"), 3),
    (RandomForestClassifier(max_depth=5, **few), "two classes", several_targets, 4),
    (ExtraTreesRegressor(max_depth=5, **few), "real", one("predict"), 1),
    (ExtraTreesClassifier(max_depth=5, **few), "multi", one("predict_proba"), 3),
    (GradientBoostingRegressor(**few), "real", one("predict"), 1),
    (GradientBoostingRegressor(loss="huber", **few), "real", one("predict"), 1),
    (GradientBoostingRegressor(loss="quantile", alpha=0.8, **few), "real", one("predict"), 1),
    (GradientBoostingRegressor(init="zero", **few), "real", one("predict"), 1),
    (
        GradientBoostingRegressor(init=DummyRegressor(strategy="median"), **few),
        "real",
        one("predict"),
        1,
    ),
    (GradientBoostingClassifier(**few), "binary", one("decision_function"), 1),
    (GradientBoostingClassifier(**few), "multi", one("decision_function"), 3),
    (GradientBoostingClassifier(init="zero", **few), "multi", one("decision_function"), 3),
    (GradientBoostingClassifier(loss="exponential", **few), "binary", one("decision_function"), 1),
    (
        GradientBoostingClassifier(init=DummyClassifier(strategy="most_frequent"), **few),
        "binary",
        one("decision_function"),
        1,
    ),
    (HistGradientBoostingRegressor(max_iter=4), "real", one("predict"), 1),
    (HistGradientBoostingRegressor(max_iter=4, loss="poisson"), "positive", log_predict, 1),
    (HistGradientBoostingRegressor(max_iter=4, loss="gamma"), "positive", log_predict, 1),
    (HistGradientBoostingRegressor(max_iter=4, loss="absolute_error"), "real", one("predict"), 1),
    (
        HistGradientBoostingRegressor(max_iter=4, loss="quantile", quantile=0.3),
        "real",
        one("predict"),
        1,
    ),
    (
        HistGradientBoostingRegressor(max_iter=4, monotonic_cst=[1, 0, -1, 0]),
        "real",
        one("predict"),
        1,
    ),
    (HistGradientBoostingClassifier(max_iter=4), "binary", one("decision_function"), 1),
    (HistGradientBoostingClassifier(max_iter=3), "multi", one("decision_function"), 3),
    (IsolationForest(max_samples=50, **few), "real", path_length, 1),
    (IsolationForest(max_samples=50, max_features=2, **few), "real", path_length, 1),
]


def is_exact_boosting(model):
    return isinstance(model, (GradientBoostingRegressor, GradientBoostingClassifier))


def fitted(model, kind, **kwargs):
    X = make_X(missing=not is_exact_boosting(model))
    return copy.deepcopy(model).fit(X, make_y(X, kind), **kwargs), X


def ids(case):
    return str(case) if hasattr(case, "fit") else ""


@pytest.mark.parametrize(("model", "kind", "truth", "n_outputs"), MODELS, ids=ids)
def test_parity_with_the_library(model, kind, truth, n_outputs):
    model, X = fitted(model, kind)
    reading = reader.read(model)
    assert reading.forest.n_outputs == n_outputs
    assert np.any(reading.forest.left >= 0)
    rows = np.vstack([X[:50], edge_rows(reading.forest, X, reading.input_map.allow_nan)])
    for form in (rows, np.asfortranarray(rows), rows.astype(np.float32)):
        assert_reads(model, form, truth(model, form))


@pytest.mark.parametrize(("model", "kind", "truth", "n_outputs"), MODELS, ids=ids)
def test_frames(model, kind, truth, n_outputs):
    X = make_X(missing=not is_exact_boosting(model))
    for frame in (pd.DataFrame(X, columns=list("abcd")), pl.DataFrame(X, schema=list("abcd"))):
        model = copy.deepcopy(model).fit(frame, make_y(X, kind))
        assert reader.read(model).input_map.names == ("a", "b", "c", "d")
        assert_reads(model, frame[:60], truth(model, frame[:60]))


@pytest.mark.parametrize(("model", "kind", "truth", "n_outputs"), MODELS, ids=ids)
def test_head_responds_as_the_library(model, kind, truth, n_outputs):
    model, X = fitted(model, kind)
    _, _, head = reader.read(model)
    assert len(head.names(n_outputs)) == n_outputs
    raw = reader.predict_raw(model, X)
    for method in set(head.additive) - {"raw"}:
        answer = getattr(model, method)(X)
        if isinstance(answer, list):
            continue
        answer = answer.reshape(len(X), -1)
        np.testing.assert_allclose(answer[:, -n_outputs:], raw, rtol=1e-12)
    if head.link_method is not None:
        answer = getattr(model, head.link_method)(X).reshape(len(X), -1)
        np.testing.assert_allclose(answer[:, -n_outputs:], head.respond(raw), rtol=1e-12)


def test_heads():
    heads = {
        str(model) + kind: reader.read(fitted(model, kind)[0]).head for model, kind, *_ in MODELS
    }
    boosted = heads["GradientBoostingClassifier(n_estimators=4, random_state=0)multi"]
    assert (boosted.link, boosted.link_method) == ("softmax", "predict_proba")
    assert boosted.additive == ("raw", "decision_function")
    assert list(boosted.classes) == [0, 10, 20]
    half = next(h for name, h in heads.items() if "exponential" in name)
    assert (half.link, half.link_method) == ("identity", None)
    poisson = heads["HistGradientBoostingRegressor(loss='poisson', max_iter=4)positive"]
    assert (poisson.link, poisson.link_method) == ("exp", "predict")
    assert poisson.additive == ("raw",)
    several = heads["DecisionTreeClassifier(max_depth=5)two classes"]
    assert several.output_names == ("y0=1", "y1=0", "y1=1", "y1=2")
    binary = heads["HistGradientBoostingClassifier(max_iter=4)binary"]
    assert (binary.link, list(binary.classes)) == ("logit", ["no", "yes"])


def test_allowed_values_are_those_that_predict_accepts():
    for model, kind, *_ in MODELS:
        model, X = fitted(model, kind)
        input_map = reader.read(model).input_map
        for value, allowed in ((np.nan, input_map.allow_nan), (np.inf, input_map.allow_inf)):
            row = np.zeros((1, X.shape[1]))
            row[0, 1] = value
            if allowed:
                assert np.all(np.isfinite(reader.predict_raw(model, row)))
            else:
                with pytest.raises(ValueError, match=r"NaN|infinity"):
                    reader.predict_raw(model, row)


def test_sparse_absent_is_zero():
    X = make_X(missing=False)
    X[np.random.default_rng(0).random(X.shape) < 0.5] = 0
    y = make_y(X, "real")
    for model in (
        DecisionTreeRegressor(max_depth=5),
        RandomForestRegressor(max_depth=4, **few),
        GradientBoostingRegressor(**few),
        IsolationForest(**few),
    ):
        model.fit(sparse.csc_matrix(X), y)
        truth = path_length if isinstance(model, IsolationForest) else one("predict")
        for matrix in (sparse.csr_matrix(X), sparse.csr_array(X)):
            assert_reads(model, matrix, truth(model, matrix))


def test_infinite_values_where_the_library_takes_them():
    X = make_X()
    y = make_y(X, "real")
    rows = X[:20].copy()
    rows[::2, 0], rows[1::2, 3] = np.inf, -np.inf
    for model, truth in (
        (HistGradientBoostingRegressor(max_iter=4), one("predict")),
        (IsolationForest(**few), path_length),
    ):
        assert_reads(model.fit(X, y), rows, truth(model, rows))


# -- what training options leave behind -----------------------------------------------------


def test_early_stopping_and_warm_start():
    X = make_X(missing=False)
    y = make_y(X, "real") + np.random.default_rng(0).normal(size=N_ROWS) * 3
    stopped = GradientBoostingRegressor(
        n_estimators=50, n_iter_no_change=2, learning_rate=1.0, random_state=0
    )
    hist = HistGradientBoostingRegressor(
        max_iter=50, early_stopping=True, n_iter_no_change=2, learning_rate=1.0, random_state=0
    )
    for model in (stopped.fit(X, y), hist.fit(X, y)):
        assert reader.read(model).forest.n_trees < 50
        assert_reads(model, X, model.predict(X))
    for model in (
        GradientBoostingRegressor(n_estimators=2, warm_start=True),
        RandomForestRegressor(n_estimators=2, max_depth=3, warm_start=True, random_state=0),
    ):
        model.fit(X, y)
        model.set_params(n_estimators=5).fit(X, y)
        assert reader.read(model).forest.n_trees == 5
        assert_reads(model, X, model.predict(X))


def test_cover_is_the_training_weight():
    X, weight = make_X(), np.random.default_rng(0).integers(1, 4, N_ROWS)
    y = make_y(X, "real")
    tree = DecisionTreeRegressor(max_depth=3).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(reader.read(tree).forest.cover[0], weight.sum())
    hist = HistGradientBoostingRegressor(max_iter=1).fit(X, y, sample_weight=weight)
    assert reader.read(hist).forest.cover[0] == N_ROWS


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(),
        RandomForestRegressor(n_estimators=3),
        GradientBoostingRegressor(n_estimators=3),
        HistGradientBoostingRegressor(max_iter=3),
    ],
    ids=str,
)
def test_constant_target_uses_no_feature(model):
    X = make_X(missing=False)
    forest = reader.read(model.fit(X, np.full(N_ROWS, 7.0))).forest
    assert np.all(forest.feature == -1)
    np.testing.assert_allclose(predict(forest, X), 7.0, atol=1e-12)


def test_constant_classes():
    X = make_X()
    for model in (DecisionTreeClassifier(), RandomForestClassifier(n_estimators=3)):
        model.fit(X, np.full(N_ROWS, "a"))
        assert_reads(model, X, np.ones(N_ROWS))
        assert reader.read(model).head.names(1) == ("a",)
    hist = HistGradientBoostingClassifier(max_iter=3).fit(X, np.zeros(N_ROWS))
    assert_reads(hist, X, hist.decision_function(X))


def test_a_tree_that_is_a_bare_leaf():
    X = np.array([[0.0], [0.0], [0.0], [1.0]])
    model = RandomForestRegressor(n_estimators=8, random_state=0).fit(X, X[:, 0])
    assert any(tree.tree_.node_count == 1 for tree in model.estimators_)
    assert_reads(model, X, model.predict(X))


def test_column_that_is_all_missing():
    X = make_X()
    X[:, 1] = np.nan
    y = make_y(X, "real")
    for model in (
        DecisionTreeRegressor(max_depth=5),
        RandomForestRegressor(max_depth=5, **few),
        ExtraTreesRegressor(max_depth=5, **few),
    ):
        model.fit(X, y)
        other = X.copy()
        other[:, 1] = 0.3
        for rows in (X, other):
            assert_reads(model, rows, model.predict(rows))


def test_split_on_missing_alone():
    X = np.array([[1.0], [2.0], [np.nan], [np.nan]] * 30)
    y = np.isnan(X[:, 0]) * 5.0
    rows = np.array([[1.0], [2.0], [1e30], [np.nan]])
    for model in (DecisionTreeRegressor(), HistGradientBoostingRegressor(max_iter=2)):
        model.fit(X, y)
        assert np.isposinf(np.nanmax(reader.read(model).forest.threshold))
        assert_reads(model, rows, model.predict(rows))


def test_isolation_forest_of_one_row_a_tree():
    X = make_X()
    model = IsolationForest(max_samples=1, **few).fit(X)
    assert np.all(reader.predict_raw(model, X[:5]) == 0)
    assert np.all(parsed(reader.read(model), X[:5]) == 0)


def test_isolation_forest_depth_by_hand():
    X = make_X(missing=False)
    model = IsolationForest(max_samples=40, max_features=2, **few).fit(X)
    lengths = []
    for tree, columns in zip(model.estimators_, model.estimators_features_, strict=True):
        part = X[:, columns].astype(np.float32)
        edges = np.asarray(tree.decision_path(part).sum(axis=1)).ravel() - 1
        lengths.append(edges + average_path_length(tree.tree_.n_node_samples[tree.apply(part)]))
    assert_reads(model, X, np.mean(lengths, axis=0))


# -- thresholds, missing values and targets with known answers -------------------------------


def test_values_at_a_threshold():
    x = np.repeat([1.0, 2.0, 3.0, 4.0], 20)[:, None]
    y = (x[:, 0] >= 3) * 1.0
    query = np.array([[np.nextafter(2.5, 0)], [2.5], [np.nextafter(2.5, 3)], [2.5001]])
    tree = DecisionTreeRegressor(max_depth=1).fit(x, y)
    np.testing.assert_array_equal(parsed(reader.read(tree), query)[:, 0], [0, 0, 0, 1])
    hist = HistGradientBoostingRegressor(
        max_iter=1, learning_rate=1.0, max_leaf_nodes=2, min_samples_leaf=1
    ).fit(x, y)
    np.testing.assert_allclose(parsed(reader.read(hist), query)[:, 0], [0, 0, 1, 1], atol=1e-7)
    for model in (tree, hist):
        assert_reads(model, query, model.predict(query))


def test_float32_cast_meets_a_float64_threshold():
    # The threshold between two neighbouring float32 values is no float32 itself.
    low = np.float32(100.1)
    high = np.nextafter(low, np.float32(101))
    x = np.array([[low], [high]] * 10)
    model = DecisionTreeRegressor(max_depth=1).fit(x, np.tile([0.0, 1.0], 10))
    threshold = model.tree_.threshold[0]
    assert threshold != np.float32(threshold)
    query = np.array([[threshold], [np.nextafter(threshold, 101)], [low], [high], [100.1]])
    assert_reads(model, query, model.predict(query))


def test_missing_goes_where_it_was_trained_to():
    x = np.tile([0.0, 1.0, 2.0, 3.0, np.nan, np.nan], 50)[:, None]
    y = np.tile([0.0, 0.0, 8.0, 8.0, 1.0, 1.0], 50)
    model = DecisionTreeRegressor(max_depth=2).fit(x, y)
    grid = np.array([[1.0], [3.0], [np.nan]])
    np.testing.assert_allclose(parsed(reader.read(model), grid)[:, 0], [0, 8, 1])


def test_two_targets_stay_apart():
    model = DecisionTreeRegressor().fit([[0.0], [1.0]], [[1.0, 50.0], [3.0, 70.0]])
    forest = reader.read(model).forest
    np.testing.assert_array_equal(predict(forest, [[0.0], [1.0]]), [[1, 50], [3, 70]])


# -- categories ------------------------------------------------------------------------------


def test_categorical_split_is_no_threshold():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 6, 300), rng.normal(size=300)]).astype(float)
    y = np.array([0, 9, -4, 7, -8, 3])[X[:, 0].astype(int)] + X[:, 1]
    model = HistGradientBoostingRegressor(categorical_features=[0], max_iter=10).fit(X, y)
    rows = np.vstack([X[:60], [[v, 0.1] for v in (np.nan, -1, 6, 77, 1.9, 0.5, -0.0, 1e10)]])
    assert_reads(model, rows, model.predict(rows))
    assert reader.read(model).forest.is_categorical.any()


@pytest.mark.parametrize("categorical", [[1], [False, True, False], ["cat"]], ids=str)
def test_features_keep_the_users_order(categorical):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 300)
    X = np.column_stack([rng.uniform(-2, 2, 300), codes, rng.normal(size=300)])
    y = 2 * X[:, 0] + np.array([0, 10, -10, 5])[codes]
    if categorical == ["cat"]:
        X = pd.DataFrame(X, columns=["num", "cat", "other"])
    model = HistGradientBoostingRegressor(
        categorical_features=categorical, max_iter=20, max_leaf_nodes=4
    ).fit(X, y)
    forest = reader.read(model).forest
    assert set(forest.feature[forest.is_categorical]) == {1}
    assert 0 in forest.feature[~forest.is_categorical]
    assert_reads(model, X[:60], model.predict(X[:60]))


def test_labels_in_an_array_are_looked_up():
    rng = np.random.default_rng(0)
    labels = np.array([-3.0, 0.1, 7.0, 1e6, np.nan])
    X = np.column_stack([rng.normal(size=300), rng.choice(labels, 300)])
    y = rng.normal(size=300) + 5 * np.isin(X[:, 1], [0.1, 1e6])
    model = HistGradientBoostingRegressor(categorical_features=[1], max_iter=5)
    rows = np.column_stack([np.zeros(9), [*labels, np.float32(0.1), 0.0, 7.5, -4.0]])
    for dtype in (np.float64, np.float32):
        model.fit(X.astype(dtype), y)
        for form in (rows, rows.astype(np.float32), pd.DataFrame(rows)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert_reads(model, form, model.predict(form))


def test_labels_in_an_object_array():
    rng = np.random.default_rng(0)
    X = np.empty((200, 2), dtype=object)
    X[:, 0] = rng.normal(size=200)
    X[:, 1] = rng.choice(["a", "b", "c", None], 200)
    y = X[:, 0].astype(float) + 5 * (X[:, 1] == "b")
    model = HistGradientBoostingRegressor(categorical_features=[1], max_iter=5).fit(X, y)
    rows = np.array([[0.5, c] for c in ("a", "b", "c", None, "new", np.nan)], dtype=object)
    assert_reads(model, rows, model.predict(rows))


def labelled_columns(kind, rng, n=300):
    """A column of labels, and one with an unseen label and a missing one."""
    drawn = rng.choice(["a", "b", "c", "d"], n).astype(object)
    drawn[rng.random(n) < 0.2] = None
    query = ["a", "b", "c", "d", None, "new"]
    numbers = [None if v is None else "abcd".index(v) for v in drawn]
    return {
        "pandas category": (
            pd.Categorical(drawn, categories=["d", "a", "unused", "c", "b"]),
            pd.Categorical(query, categories=["new", "c", "b", "a", "d"]),
        ),
        "pandas object": (pd.Series(drawn, dtype=object), pd.Series(query, dtype=object)),
        "pandas str": (pd.Series(drawn, dtype="str"), pd.Series(query, dtype="str")),
        "pandas Int64": (
            pd.Series(numbers, dtype="Int64"),
            pd.Series([0, 1, 2, 3, None, 9], dtype="Int64"),
        ),
        "pandas int category": (
            pd.Categorical([None if v is None else 10 - v for v in numbers]),
            pd.Categorical([10, 9, 8, 7, None, 3]),
        ),
        "pandas bool category": (
            pd.Categorical([None if v is None else v > 1 for v in numbers]),
            pd.Categorical([True, False, None, True, False, None]),
        ),
        "pandas dates": (
            pd.Categorical(pd.to_datetime([None if v is None else v * 10**18 for v in numbers])),
            pd.Categorical(pd.to_datetime([0, 10**18, 2 * 10**18, 3 * 10**18, None, 5])),
        ),
        "polars categorical": (
            pl.Series(drawn.tolist(), dtype=pl.Categorical),
            pl.Series(query, dtype=pl.Categorical),
        ),
        "polars enum": (
            pl.Series(drawn.tolist(), dtype=pl.Enum(["d", "unused", "c", "b", "a"])),
            pl.Series(query, dtype=pl.Enum(["new", "a", "b", "c", "d"])),
        ),
        "polars str": (pl.Series(drawn.tolist()), pl.Series(query)),
        "polars int": (pl.Series(numbers), pl.Series([0, 1, 2, 3, None, 9])),
    }[kind]


@pytest.mark.parametrize(
    ("kind", "by_dtype"),
    [
        ("pandas category", True),
        ("pandas int category", True),
        ("pandas bool category", True),
        ("pandas dates", True),
        ("polars categorical", True),
        ("polars enum", True),
        ("pandas object", False),
        ("pandas str", False),
        ("pandas Int64", False),
        ("polars str", False),
        ("polars int", False),
    ],
)
def test_labels_in_a_frame(kind, by_dtype):
    rng = np.random.default_rng(0)
    train, query = labelled_columns(kind, rng)
    library = pl if isinstance(train, pl.Series) else pd
    number = rng.normal(size=len(train))
    X = library.DataFrame({"num": number, "cat": train})
    rows = library.DataFrame({"num": np.linspace(-1, 1, 6), "cat": query})
    y = number + 3 * (np.unique([str(v) for v in train], return_inverse=True)[1] % 2)
    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype" if by_dtype else ["cat"], max_iter=8
    ).fit(X, y)
    assert reader.read(model).forest.is_categorical.any()
    for form in (X[:60], rows):
        before = form.clone() if library is pl else form.copy(deep=True)
        assert_reads(model, form, model.predict(form))
        assert before.equals(form)


def test_categories_of_a_classifier_with_many_columns():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=1000),
            "b": pd.Categorical(rng.integers(0, 60, 1000)),
            "c": rng.normal(size=1000),
            "d": pd.Categorical(rng.choice(list("xyz"), 1000)),
        }
    )
    y = (X["b"].cat.codes % 3 + (X["d"] == "x")).to_numpy()
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2).fit(X, y)
    forest = reader.read(model).forest
    assert set(forest.feature[forest.is_categorical]) == {1, 3}
    assert_reads(model, X[:80], model.decision_function(X[:80]))


def test_a_tree_takes_the_labels_of_a_category_for_numbers():
    X = pd.DataFrame({"a": pd.Categorical([20, 10, 30, 10] * 10), "b": np.arange(40.0)})
    model = DecisionTreeRegressor(max_depth=4).fit(X, X["a"].astype(float) + X["b"])
    assert_reads(model, X, model.predict(X))


# -- what is taken and what is refused -------------------------------------------------------


def test_accepts():
    class Mine(RandomForestRegressor):
        pass

    assert find_reader(Mine()) is reader
    for model in (
        RandomTreesEmbedding(),
        LinearRegression(),
    ):
        assert not reader.accepts(model)
        assert find_reader(model) is None
    assert "IsolationForest" in reader.supported


@pytest.mark.parametrize("model", [case[0] for case in MODELS], ids=str)
def test_unfitted(model):
    with pytest.raises(NotFittedError):
        reader.read(model)


def test_init_that_is_not_constant():
    X = make_X(missing=False)
    model = GradientBoostingRegressor(init=LinearRegression(), n_estimators=2)
    with pytest.raises(ValueError, match=r"init=LinearRegression\(\)"):
        reader.read(model.fit(X, make_y(X, "real")))
    random = DummyClassifier(strategy="stratified", random_state=0)
    model = GradientBoostingClassifier(init=random, n_estimators=2)
    with pytest.raises(ValueError, match="init=DummyClassifier"):
        reader.read(model.fit(X, make_y(X, "binary")))


def test_unknown_tree_format_is_refused():
    class Later:
        def __getstate__(self):
            old = DecisionTreeRegressor().fit([[0.0], [1.0]], [0.0, 1.0]).tree_.__getstate__()
            nodes = old["nodes"]
            dtype = [(name, nodes.dtype[name]) for name in nodes.dtype.names]
            return {**old, "nodes": np.zeros(len(nodes), dtype=[*dtype, ("categories", "u8")])}

    with pytest.raises(ValueError, match="categories"):
        _compat.tree_arrays(Later())


def test_model_is_left_alone():
    for model, kind, *_ in MODELS:
        model, X = fitted(model, kind)
        before, rows = pickle.dumps(model), X.copy()
        reading = reader.read(model)
        reading.forest.value[:] = 0
        reading.forest.threshold[:] = 0
        reader.predict_raw(model, X)
        assert pickle.dumps(model) == before
        np.testing.assert_array_equal(X, rows)
