"""treelite's models against treelite's own reference predictions, and against their originals."""

import pickle
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from fastpd_sklearn.forest import find_reader
from tests import oracles
from tests.versions import older

pytest.importorskip("treelite")
import lightgbm as lgb
import treelite
import xgboost as xgb
from treelite.model_builder import Metadata, ModelBuilder, PostProcessorFunc, TreeAnnotation

from fastpd_sklearn.forest._treelite import reader

N_ROWS = 200
OPERATORS = ["<", "<=", "==", ">", ">="]
TYPES = ["float32", "float64"]
SKLEARN = {"n_estimators": 4, "random_state": 0}
HIST = {"max_iter": 4, "max_leaf_nodes": 6, "min_samples_leaf": 5}
XGB = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1}
LGB = {"n_estimators": 4, "num_leaves": 6, "verbose": -1, "n_jobs": 1, "min_data_per_group": 5}


@pytest.fixture(scope="module")
def data():
    """Four columns of numbers that float32 holds, the last one of category codes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4)).round(1).astype(np.float32).astype(np.float64)
    X[rng.random(N_ROWS) < 0.15, 0] = np.nan
    X[:, 3] = rng.integers(0, 6, N_ROWS)
    y = np.nan_to_num(X[:, 0], nan=2) * X[:, 1] + np.abs(X[:, 2]) + 2 * (X[:, 3] % 3 == 0)
    labels = SimpleNamespace(
        y=y,
        positive=np.exp(y / 4),
        two=np.column_stack([y, y**2]),
        binary=(y > np.median(y)).astype(int),
        three=np.digitize(y, np.quantile(y, [0.3, 0.7])),
    )
    return X, labels


# -- Models built by hand ------------------------------------------------------------------


def builder_of(dtype, n_trees, **changes):
    """A builder, by default of a regression with one output."""
    meta = {
        "num_feature": 4,
        "task_type": "kRegressor",
        "average_tree_output": False,
        "num_target": 1,
        "num_class": [1],
        "leaf_vector_shape": (1, 1),
    }
    meta.update({k: v for k, v in changes.items() if k in meta})
    return ModelBuilder(
        threshold_type=dtype,
        leaf_output_type=dtype,
        metadata=Metadata(**meta),
        tree_annotation=TreeAnnotation(
            num_tree=n_trees,
            target_id=changes.get("target_id", [0] * n_trees),
            class_id=changes.get("class_id", [0] * n_trees),
        ),
        postprocessor=PostProcessorFunc(
            name=changes.get("postprocessor", "identity"),
            sigmoid_alpha=changes.get("sigmoid_alpha", 1.0),
        ),
        base_scores=changes.get("base_scores", [0.25]),
    )


def grow(builder, rng, *, operators, depth=4, categorical=(3,), leaf=None, cover=False):
    """Add a random tree, its nodes in an order of its own."""
    nodes, n_inner = [], 2**depth - 1
    for key in range(2 * n_inner + 1):
        if key >= n_inner:
            nodes.append((key, None))
            continue
        feature = int(rng.integers(4))
        default = bool(rng.integers(2))
        if feature in categorical:
            listed = sorted(rng.choice(7, 3, replace=False).tolist())
            nodes.append((key, (feature, default, listed, bool(rng.integers(2)))))
        else:
            threshold = float(rng.integers(-6, 7)) / 5
            nodes.append((key, (feature, default, threshold, str(rng.choice(operators)))))
    builder.start_tree()
    for place in [0, *(1 + rng.permutation(len(nodes) - 1))]:
        key, test = nodes[place]
        builder.start_node(key)
        children = {"left_child_key": 2 * key + 1, "right_child_key": 2 * key + 2}
        if test is None:
            builder.leaf(float(rng.normal()) if leaf is None else rng.normal(size=leaf).tolist())
        elif isinstance(test[2], list):
            builder.categorical_test(
                test[0],
                default_left=test[1],
                category_list=test[2],
                category_list_right_child=test[3],
                **children,
            )
        else:
            builder.numerical_test(
                test[0], test[2], default_left=test[1], opname=test[3], **children
            )
        if cover:
            builder.sum_hess(float(2 ** (depth - int(np.log2(key + 1)))))
        builder.end_node()
    builder.end_tree()


def built(dtype="float64", n_trees=4, operators=OPERATORS, leaf=None, cover=False, **changes):
    rng = np.random.default_rng(1)
    builder = builder_of(dtype, n_trees, **changes)
    for _ in range(n_trees):
        grow(builder, rng, operators=operators, leaf=leaf, cover=cover)
    return builder.commit()


def odd_rows(n_rows=250):
    """Thresholds of the built trees, their neighbours in both precisions, and odd values."""
    rng = np.random.default_rng(2)
    edges = np.arange(-7, 8) / 5
    single = edges.astype(np.float32)
    pool = [edges, np.nextafter(edges, 9), np.nextafter(edges, -9), single]
    pool += [np.nextafter(single, np.float32(9)), np.nextafter(single, np.float32(-9))]
    pool += [np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, -0.0, 1e-320])]
    numbers = np.concatenate([part.astype(np.float64) for part in pool])
    codes = [*range(8), 0.5, 1.9, -0.5, -1, -7, 6 - 1e-9, 6 - 1e-5, 2.0**24, 2.0**25, 2.0**33]
    codes = np.array([*codes, np.nan, np.inf, -np.inf, 1e300])
    columns = [rng.choice(numbers, n_rows) for _ in range(3)]
    return np.column_stack([*columns, rng.choice(codes, n_rows)])


def check_parity(model, X, reading=None):
    reading = reading or reader.read(model)
    expected = reader.predict_raw(model, X)
    got = oracles.predict_many(reading.forest, reading.input_map.open(X).to_array())
    assert expected.shape == got.shape == (X.shape[0], reading.forest.n_outputs)
    assert expected.dtype == np.float64
    assert (np.abs(got - expected) <= reading.head.rounding).all()
    relative = reading.head.rounding / reading.forest.scale()
    assert_allclose(relative, 1e-5 if reading.forest.single else 1e-10)
    return reading


def check_model(model):
    reading = reader.read(model)
    rows = odd_rows()
    check_parity(model, rows, reading)
    with np.errstate(over="ignore"):
        check_parity(model, np.asfortranarray(rows, dtype=np.float32), reading)
    return reading


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operators", [*([o] for o in OPERATORS), ["<", ">="], OPERATORS])
def test_operators(dtype, operators):
    forest = check_model(built(dtype, operators=operators)).forest
    assert forest.single == (dtype == "float32")
    assert forest.strict == (set(operators) <= {"<", ">="})


def test_equality_is_that_alone():
    builder = builder_of("float64", 1)
    grow(builder, np.random.default_rng(0), operators=["=="], depth=1, categorical=())
    model = builder.commit()
    accessor = model.get_tree_accessor(0)
    column, edge = accessor.get_field("split_index")[0], accessor.get_field("threshold")[0]
    rows = np.zeros((3, 4))
    rows[:, column] = [np.nextafter(edge, -9), edge, np.nextafter(edge, 9)]
    below, at, above = check_parity(model, rows) and reader.predict_raw(model, rows)[:, 0]
    assert below == above != at


def test_too_many_tests_for_equality_are_refused():
    builder = builder_of("float64", 1)
    builder.start_tree()
    for key in range(30):
        builder.start_node(key)
        children = {"left_child_key": 100 + key, "right_child_key": key + 1}
        builder.numerical_test(0, float(key), default_left=True, opname="==", **children)
        builder.end_node()
    for key in [30, *range(100, 130)]:
        builder.start_node(key)
        builder.leaf(float(key))
        builder.end_node()
    builder.end_tree()
    with pytest.raises(ValueError, match="make them categorical tests"):
        reader.read(builder.commit())


@pytest.mark.parametrize("dtype", TYPES)
def test_thresholds_at_the_ends(dtype):
    for operators, threshold in ((["<", ">="], np.inf), (["<", ">="], -np.inf), (["<="], np.inf)):
        builder = builder_of(dtype, 1)
        builder.start_tree()
        for key, operator in enumerate(operators):
            builder.start_node(key)
            children = {"left_child_key": key + 1, "right_child_key": 10 + key}
            builder.numerical_test(0, threshold, default_left=True, opname=operator, **children)
            builder.end_node()
        for key in [len(operators), *(10 + k for k in range(len(operators)))]:
            builder.start_node(key)
            builder.leaf(float(key))
            builder.end_node()
        builder.end_tree()
        check_model(builder.commit())


def test_less_than_minus_infinity_among_other_operators_is_refused():
    builder = builder_of("float64", 1)
    builder.start_tree()
    for key, operator, threshold in ((0, "<", -np.inf), (1, "<=", 0.0)):
        builder.start_node(key)
        children = {"left_child_key": 2 * key + 1, "right_child_key": 2 * key + 2}
        builder.numerical_test(0, threshold, default_left=True, opname=operator, **children)
        builder.end_node()
    for key in (2, 3, 4):
        builder.start_node(key)
        builder.leaf(float(key))
        builder.end_node()
    builder.end_tree()
    with pytest.raises(ValueError, match="minus infinity"):
        reader.read(builder.commit())


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"base_scores": [-3.5]},
        {"num_target": 3, "num_class": [1] * 3, "target_id": [0, 2, 1, 0]},
        {"num_target": 2, "num_class": [1] * 2, "leaf_vector_shape": (2, 1), "target_id": [-1] * 4},
        {"num_class": [3], "class_id": [0, 2, 2, 1], "task_type": "kMultiClf"},
        {
            "num_class": [3],
            "leaf_vector_shape": (1, 3),
            "class_id": [-1] * 4,
            "task_type": "kMultiClf",
        },
        {
            "num_target": 2,
            "num_class": [2, 3],
            "leaf_vector_shape": (2, 3),
            "target_id": [-1] * 4,
            "class_id": [-1] * 4,
            "task_type": "kMultiClf",
        },
        {
            "num_target": 2,
            "num_class": [3, 2],
            "leaf_vector_shape": (1, 3),
            "target_id": [0, 1, 1, 0],
            "class_id": [-1] * 4,
            "task_type": "kMultiClf",
        },
        {
            "num_target": 2,
            "num_class": [2, 2],
            "leaf_vector_shape": (2, 1),
            "target_id": [-1] * 4,
            "class_id": [0, 1, 1, 0],
            "task_type": "kMultiClf",
        },
    ],
)
def test_targets_and_classes(dtype, average, changes):
    places = changes.get("num_target", 1) * max(changes.get("num_class", [1]))
    changes = {"base_scores": np.arange(float(places)).tolist(), **changes}
    shape = changes.get("leaf_vector_shape", (1, 1))
    leaf = shape[0] * shape[1] if shape != (1, 1) else None
    several = places > 1
    post = "identity_multiclass" if "kMultiClf" in changes.values() else "identity"
    model = built(dtype, leaf=leaf, average_tree_output=average, postprocessor=post, **changes)
    reading = check_model(model)
    assert reading.forest.n_outputs == sum(changes.get("num_class", [1]))
    assert len(reading.head.names(reading.forest.n_outputs)) == reading.forest.n_outputs
    assert several or reading.forest.n_outputs == 1


@pytest.mark.parametrize(
    ("post", "changes", "link"),
    [
        ("identity", {}, "identity"),
        ("sigmoid", {}, "logit"),
        ("exponential", {}, "exp"),
        ("softmax", {"num_class": [3], "class_id": [0, 1, 2, 0]}, "softmax"),
        ("multiclass_ova", {"num_class": [3], "class_id": [0, 1, 2, 0]}, "multi_logit"),
        (
            "sigmoid",
            {"num_target": 2, "num_class": [1, 1], "target_id": [0, 1, 1, 0]},
            "multi_logit",
        ),
    ],
)
def test_postprocessors(post, changes, link):
    task = "kRegressor" if post in ("identity", "exponential") else "kBinaryClf"
    task = "kMultiClf" if changes.get("num_class") == [3] else task
    places = changes.get("num_target", 1) * max(changes.get("num_class", [1]))
    changes = {**changes, "base_scores": [0.5] * places, "task_type": task}
    model = built(postprocessor=post, **changes)
    reading = check_model(model)
    assert reading.head.link == link
    method = "predict" if task == "kRegressor" else "predict_proba"
    assert (reading.head.link_method or "predict") == method
    rows = odd_rows()
    response = treelite.gtil.predict(model, rows).reshape(len(rows), -1)
    margins = oracles.predict_many(reading.forest, reading.input_map.open(rows).to_array())
    assert_allclose(reading.head.respond(margins), response, rtol=1e-6)


@pytest.mark.parametrize(
    ("post", "alpha"),
    [("sigmoid", 2.0), ("signed_square", 1.0), ("hinge", 1.0), ("logarithm_one_plus_exp", 1.0)],
)
def test_postprocessors_that_are_no_link_of_a_head(post, alpha):
    head = check_model(built(postprocessor=post, sigmoid_alpha=alpha)).head
    assert (head.additive, head.link_method) == (("raw",), None)


def test_mean_over_no_tree_is_refused():
    changes = {"num_target": 2, "num_class": [1, 1], "base_scores": [0.0, 0.0]}
    model = built(average_tree_output=True, **changes)
    with pytest.raises(ValueError, match="no tree is of output 1"):
        reader.read(model)


def test_covers():
    forest = reader.read(built(operators=["<"], cover=True)).forest
    inner = forest.left >= 0
    assert_array_equal(
        forest.cover[inner], forest.cover[forest.left[inner]] + forest.cover[forest.right[inner]]
    )
    # A test for equality shares its other side out among copies, in no known proportion.
    assert np.isnan(reader.read(built(operators=["=="], cover=True)).forest.cover).all()
    assert np.isnan(reader.read(built(operators=["<"])).forest.cover).all()


def test_bare_leaves():
    builder = builder_of("float64", 2)
    for value in (2.0, -0.5):
        builder.start_tree()
        builder.start_node(0)
        builder.leaf(value)
        builder.end_node()
        builder.end_tree()
    reading = check_model(builder.commit())
    assert (reading.forest.feature == -1).all()


def test_categories_beyond_what_is_looked_up():
    for dtype, code in (("float32", 2**24 + 2), ("float64", 2**31)):
        builder = builder_of(dtype, 1)
        builder.start_tree()
        builder.start_node(0)
        builder.categorical_test(
            3,
            default_left=False,
            category_list=[1, code],
            category_list_right_child=True,
            left_child_key=1,
            right_child_key=2,
        )
        builder.end_node()
        for key in (1, 2):
            builder.start_node(key)
            builder.leaf(float(key))
            builder.end_node()
        builder.end_tree()
        model = builder.commit()
        if dtype == "float32":
            rows = np.zeros((5, 4))
            rows[:, 3] = [1, 2**24, code, code + 2, 0]
            check_parity(model, rows)
        else:
            with pytest.raises(ValueError, match=f"category {code}"):
                reader.read(model)


# -- Imported models -----------------------------------------------------------------------


def fitted_models(X, labels):
    """Originals and their imports."""
    whole = np.nan_to_num(X, nan=0.3)

    def of_xgboost(model, y, **params):
        model = model(**XGB, **params).fit(X, y)
        return model, treelite.frontend.from_xgboost(model.get_booster())

    def of_lightgbm(model, y, categorical="auto", **params):
        model = model(**LGB, **params).fit(X, y, categorical_feature=categorical)
        return model, treelite.frontend.from_lightgbm(model.booster_)

    def of_sklearn(model, y):
        # treelite imports no missing values of scikit-learn's forests.
        rows = X if "Hist" in type(model).__name__ else whole
        model.fit(rows, y)
        return model, treelite.sklearn.import_model(model)

    rf = {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1}
    return {
        "xgboost": lambda: of_xgboost(xgb.XGBRegressor, labels.y),
        "xgboost dart": lambda: of_xgboost(
            xgb.XGBRegressor, labels.y, booster="dart", rate_drop=0.5
        ),
        "xgboost poisson": lambda: of_xgboost(
            xgb.XGBRegressor, labels.positive, objective="count:poisson"
        ),
        "xgboost binary": lambda: of_xgboost(xgb.XGBClassifier, labels.binary),
        "xgboost classes": lambda: of_xgboost(xgb.XGBClassifier, labels.three),
        "xgboost targets": lambda: of_xgboost(xgb.XGBRegressor, labels.two),
        "xgboost vectors": lambda: of_xgboost(
            xgb.XGBRegressor, labels.two, multi_strategy="multi_output_tree"
        ),
        "xgboost categories": lambda: of_xgboost(
            xgb.XGBRegressor, labels.y, feature_types=["q", "q", "q", "c"], enable_categorical=True
        ),
        "lightgbm": lambda: of_lightgbm(lgb.LGBMRegressor, labels.y),
        "lightgbm binary": lambda: of_lightgbm(lgb.LGBMClassifier, labels.binary),
        "lightgbm classes": lambda: of_lightgbm(lgb.LGBMClassifier, labels.three),
        "lightgbm forest": lambda: of_lightgbm(lgb.LGBMRegressor, labels.y, **rf),
        "lightgbm categories": lambda: of_lightgbm(lgb.LGBMRegressor, labels.y, [3], cat_smooth=1),
        "forest": lambda: of_sklearn(RandomForestRegressor(max_depth=4, **SKLEARN), labels.y),
        "extra trees": lambda: of_sklearn(ExtraTreesRegressor(max_depth=4, **SKLEARN), labels.two),
        "forest of classes": lambda: of_sklearn(
            RandomForestClassifier(max_depth=4, **SKLEARN), labels.three
        ),
        "boosting": lambda: of_sklearn(GradientBoostingRegressor(**SKLEARN), labels.y),
        "boosting of classes": lambda: of_sklearn(
            GradientBoostingClassifier(**SKLEARN), labels.three
        ),
        "isolation": lambda: of_sklearn(IsolationForest(max_samples=32, **SKLEARN), None),
        "hist": lambda: of_sklearn(HistGradientBoostingRegressor(**HIST), labels.y),
        "hist binary": lambda: of_sklearn(HistGradientBoostingClassifier(**HIST), labels.binary),
        "hist categories": lambda: of_sklearn(
            HistGradientBoostingRegressor(categorical_features=[3], **HIST), labels.y
        ),
    }


NAMES = list(fitted_models(np.zeros((1, 1)), SimpleNamespace()))


@pytest.mark.parametrize("name", NAMES)
def test_imports_are_read_as_their_originals(data, name):
    if name == "xgboost vectors" and older("xgboost", "3.0"):
        pytest.skip("treelite does not read the vector leaves of XGBoost 2")
    X, labels = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries about one another
        original, model = fitted_models(X, labels)[name]()
    takes_missing = name.split()[0] in ("xgboost", "lightgbm", "hist")
    X = X if takes_missing else np.nan_to_num(X, nan=0.3)
    reading, own = reader.read(model), find_reader(original)
    ours = own.read(original)
    rows = X
    edges = ours.forest.threshold[(ours.forest.feature == 1) & ~ours.forest.is_categorical]
    if len(edges):
        # scikit-learn's trees round values to float32 first, which treelite does not keep.
        # LightGBM takes all numbers beside zero for zero, which it does not keep either.
        edges = edges[np.abs(edges) > 1e-30].astype(np.float32)
        rows = X.repeat(2, axis=0)
        beside = [edges, np.nextafter(edges, np.float32(9)), np.nextafter(edges, np.float32(-9))]
        rows[:, 1] = np.resize(np.concatenate(beside), len(rows))
    check_parity(model, rows, reading)
    got = oracles.predict_many(reading.forest, reading.input_map.open(rows).to_array())
    truth = oracles.predict_many(ours.forest, ours.input_map.open(rows).to_array())
    assert reading.forest.n_inputs == ours.forest.n_inputs
    tolerance = 1e-6 if reading.forest.single else 1e-10
    assert (np.abs(got - truth) <= tolerance * reading.forest.scale()).all()
    # Nothing else decides: what is explained is the same, too.
    background, explained = X[:40], X[40:50]
    phi = FastPDExplainer(output="shap").fit(model, background).transform(explained)
    expected = FastPDExplainer(output="shap").fit(original, background).transform(explained)
    assert_allclose(phi, expected, atol=10 * tolerance * reading.forest.scale().max())
    if not np.isnan(ours.forest.cover).any():
        phi = PathDependentExplainer(output="shap").fit(model).transform(explained)
        expected = PathDependentExplainer(output="shap").fit(original).transform(explained)
        assert_allclose(phi, expected, atol=1e-5 * reading.forest.scale().max())


# -- Columns, containers, refusals ---------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
def test_containers(data, dtype):
    X, _ = data
    model = built(dtype)
    reading = reader.read(model)
    check_parity(model, pd.DataFrame(X), reading)
    check_parity(model, pd.DataFrame(X).astype({3: "int8", 1: "float32"}), reading)
    check_parity(model, pl.DataFrame(X, schema=list("abcd")), reading)
    check_parity(model, X.astype(object), reading)
    whole = np.nan_to_num(X).astype(int)
    for kind in (np.int8, np.int64, bool, np.float16, ">f8"):
        check_parity(model, whole.astype(kind), reading)
    check_parity(model, whole + 2**54 + 2**30 + 1, reading)
    thin = np.where(np.abs(X) < 0.5, 0, X)
    for make in (sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix):
        # An absent entry is missing, a stored zero is not.
        check_parity(model, make(thin), reading)
    stored = sparse.csr_matrix(np.where(thin == 0, 123.0, thin))
    stored.data[stored.data == 123.0] = 0.0
    check_parity(model, stored, reading)
    assert (reader.predict_raw(model, stored) != reader.predict_raw(model, thin)).sum() == 0
    with pytest.raises(ValueError, match="not numeric"):
        reading.input_map.open(pd.DataFrame(X).astype({3: "category"}))


def test_what_is_given_is_left_alone(data):
    X, _ = data
    model = built()
    given = sparse.csr_matrix(X)
    # Stored in no order, and one entry in two parts.
    given.indices[:2], given.data[:2] = given.indices[1::-1].copy(), given.data[1::-1].copy()
    given.indices[3] = given.indices[2]
    given.has_canonical_format = given.has_sorted_indices = False
    before, text = given.copy(), model.dump_as_json()
    reader.read(model)
    reader.predict_raw(model, given)
    assert_array_equal(before.data, given.data)
    assert_array_equal(before.indices, given.indices)
    assert model.dump_as_json() == text


def test_explained_as_predicted(data):
    """Against enumeration by treelite's own predictions."""
    X, _ = data
    model = built()
    background, rows = X[:30], X[30:36]
    game = oracles.interventional_game(
        lambda hybrid: reader.predict_raw(model, hybrid),
        background,
        None,
        rows,
        [[j] for j in range(4)],
    )
    explainer = FastPDExplainer(output="shap").fit(model, background)
    truth = [oracles.shapley_interaction(game, (j,))[:, 0] for j in range(4)]
    assert_allclose(explainer.transform(rows), np.transpose(truth), atol=1e-10)
    with pytest.raises(ValueError, match="features"):
        explainer.transform(rows[:, :3])
    with pytest.raises(ValueError, match="features"):
        FastPDExplainer().fit(model, X[:, :3])


def test_explainers_pickle_without_the_model(data):
    """A treelite.Model is a pointer to memory, which no pickle holds."""
    X, _ = data
    explainer = FastPDExplainer(output="shap").fit(built(), X[:30])
    values = explainer.transform(X)
    with pytest.raises(pickle.PicklingError, match=r"does not pickle .*detach\(\)"):
        pickle.dumps(explainer)
    again = pickle.loads(pickle.dumps(explainer.detach()))
    assert_array_equal(again.transform(X), values)


def test_registry_finds_the_reader():
    assert find_reader(built()) is reader
    assert find_reader(treelite.gtil) is None


class Doctored(treelite.Model):
    """A model with another operator or leaf than treelite has."""

    def __init__(self, model, changes):
        self._inner, self._changes = model, changes

    @property
    def handle(self):
        return None

    def get_header_accessor(self):
        return self._inner.get_header_accessor()

    def get_tree_accessor(self, tree_id):
        accessor = self._inner.get_tree_accessor(tree_id)
        fields = {
            name: edit(accessor.get_field(name).copy()) for name, edit in self._changes.items()
        }
        return SimpleNamespace(get_field=lambda n: fields.get(n, accessor.get_field(n)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cmp": lambda cmp: np.where(cmp > 0, 9, cmp)}, "operator 9"),
        ({"cleft": lambda left: np.where(left > 3, 3, left)}, "form a tree"),
        ({"cright": lambda right: np.where(right > 0, 0, right)}, "form a tree"),
        ({"cright": lambda right: np.where(right > 0, 99, right)}, "form a tree"),
        ({"leaf_value": lambda value: value * np.inf}, "not finite"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered")
def test_damaged_models_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        reader.read(Doctored(built(operators=["<"]), changes))
