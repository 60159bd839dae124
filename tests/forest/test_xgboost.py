"""The forest that is read from an XGBoost model predicts what the model predicts."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost
from scipy import sparse
from scipy.special import logit
from sklearn.exceptions import NotFittedError

from fastpd_sklearn.forest import _xgboost, find_reader
from fastpd_sklearn.forest._ubjson import loads
from fastpd_sklearn.forest._xgboost import reader
from fastpd_sklearn.forest._xgboost_trees import join_trees
from tests.oracles import predict
from tests.versions import older

VERSION = tuple(int(part) for part in xgboost.__version__.split(".")[:2])
stores_labels = pytest.mark.skipif(VERSION < (3, 1), reason="the model holds no labels")
N_ROWS = 150
SMALL = {"n_estimators": 6, "max_depth": 3, "n_jobs": 1}


def make_X(seed=0):
    """Continuous, tied, denormal and huge columns, with missing values."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            rng.normal(size=N_ROWS),
            rng.integers(0, 6, N_ROWS) / 10,
            rng.normal(size=N_ROWS) * 1e-42,
            rng.normal(size=N_ROWS) * 1e37,
        ]
    )
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


X = make_X()
FILLED = np.nan_to_num(X)
MEAN = FILLED[:, 0] + 3 * FILLED[:, 1] * (FILLED[:, 2] > 0) + (FILLED[:, 3] > 0)
LABELS = {
    "real": MEAN,
    "positive": np.exp(MEAN / 2),
    "share": 1 / (1 + np.exp(-MEAN)),
    "binary": (MEAN > 0.9).astype(int),
    "class": np.digitize(MEAN, [0, 1.2]),
    "targets": np.column_stack([MEAN, -2 * FILLED[:, 0], np.abs(MEAN)]),
    "flags": np.column_stack([MEAN > 0, MEAN > 1, FILLED[:, 0] > 0]).astype(int),
}


def margins_of(model, X):
    """Margins straight from XGBoost, without the reader."""
    if isinstance(model, xgboost.Booster):
        frame = isinstance(X, pd.DataFrame)
        data = xgboost.DMatrix(X, enable_categorical=frame)
        margins = model.predict(data, output_margin=True, validate_features=False)
    else:
        margins = model.predict(X, output_margin=True)
    return margins.reshape(X.shape[0], -1)


def assert_same(model, X):
    """The forest's raw prediction, the reader's and XGBoost's own are the same."""
    input_map, forest, _ = reader.read(model)
    truth = margins_of(model, X)
    ours = predict(forest, input_map.open(X).to_array())
    assert ours.shape == truth.shape
    assert np.all(np.abs(ours - truth) <= reader.tolerance * forest.scale())
    np.testing.assert_array_equal(reader.predict_raw(model, X), truth.astype(np.float64))


def probes(forest, X, n_rows=60, seed=1):
    """Rows of X with a threshold, a float beside it, NaN, a huge or a denormal value put in."""
    rng = np.random.default_rng(seed)
    inner = np.flatnonzero((forest.left >= 0) & ~forest.is_categorical)
    rows = X[rng.integers(0, len(X), n_rows)].astype(np.float64)
    special = [np.nan, 1e30, -1e30, 1e-45, -1e-45, 5e-324, 0.0, -0.0, np.finfo(np.float32).tiny]
    for row, place in zip(rows, range(n_rows), strict=True):
        if len(inner) == 0 or place % 6 == 5:
            row[rng.integers(len(row))] = special[place // 6 % len(special)]
            continue
        node = inner[rng.integers(len(inner))]
        t = np.float32(forest.threshold[node])
        row[forest.feature[node]] = [
            t,
            np.nextafter(t, np.float32(-np.inf)),
            np.nextafter(t, np.float32(np.inf)),
            np.nextafter(np.float64(t), -np.inf),
            np.nextafter(np.float64(t), np.inf),
        ][place % 6]
    return rows


def assert_parity(model, X=X):
    """On X, on probes, in both precisions and memory orders."""
    forest = reader.read(model).forest
    rows = np.vstack([X[:15], probes(forest, X)])
    assert_same(model, rows)
    assert_same(model, np.asfortranarray(rows.astype(np.float32)))


def boosted(y, params=None, rounds=5, X=X, **data):
    """A Booster."""
    params = {"nthread": 1, "max_depth": 3, **(params or {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return xgboost.train(params, xgboost.DMatrix(X, y, **data), rounds)


MODELS = {
    "regressor": (xgboost.XGBRegressor(**SMALL), "real"),
    "deep": (xgboost.XGBRegressor(n_estimators=3, max_depth=9, n_jobs=1), "real"),
    "lossguide": (
        xgboost.XGBRegressor(n_estimators=3, grow_policy="lossguide", max_leaves=12, n_jobs=1),
        "real",
    ),
    "exact": (xgboost.XGBRegressor(tree_method="exact", gamma=2.0, **SMALL), "real"),
    "dart": (xgboost.XGBRegressor(booster="dart", rate_drop=0.5, **SMALL), "real"),
    "binary": (xgboost.XGBClassifier(**SMALL), "binary"),
    "classes": (xgboost.XGBClassifier(**SMALL), "class"),
    "softmax": (xgboost.XGBClassifier(objective="multi:softmax", **SMALL), "class"),
    "dart classes": (xgboost.XGBClassifier(booster="dart", rate_drop=0.5, **SMALL), "class"),
    "labels": (xgboost.XGBClassifier(**SMALL), "flags"),
    "random forest": (xgboost.XGBRFRegressor(**SMALL), "real"),
    "random forest classes": (xgboost.XGBRFClassifier(**SMALL), "class"),
    "boosted forests": (xgboost.XGBRegressor(num_parallel_tree=3, **SMALL), "real"),
    "targets": (xgboost.XGBRegressor(**SMALL), "targets"),
    "vector leaves": (
        xgboost.XGBRegressor(multi_strategy="multi_output_tree", **SMALL),
        "targets",
    ),
    "vector labels": (xgboost.XGBClassifier(multi_strategy="multi_output_tree", **SMALL), "flags"),
    "base score": (xgboost.XGBClassifier(base_score=0.07, **SMALL), "binary"),
}
if not older("xgboost", "3.4"):  # before, dropout is for booster="dart" alone
    MODELS["dropout"] = (xgboost.XGBRegressor(rate_drop=0.5, **SMALL), "real")
    MODELS["dropout classes"] = (xgboost.XGBClassifier(one_drop=True, **SMALL), "class")


@pytest.fixture(scope="module")
def fitted():
    models = {}
    for name, (model, label) in MODELS.items():
        models[name] = model.fit(X, LABELS[label])
    models["ranker"] = xgboost.XGBRanker(**SMALL).fit(
        X, LABELS["class"], qid=np.arange(N_ROWS) // 30
    )
    return models


@pytest.mark.parametrize("name", [*MODELS, "ranker"])
def test_parity(fitted, name):
    model = fitted[name]
    assert find_reader(model) is reader
    assert_parity(model)
    assert_parity(model.get_booster())


OBJECTIVES = {
    "binary:hinge": "binary",
    "binary:logistic": "binary",
    "binary:logitraw": "binary",
    "count:poisson": "positive",
    "multi:softmax": "class",
    "multi:softprob": "class",
    "rank:map": "binary",
    "rank:ndcg": "class",
    "rank:pairwise": "class",
    "reg:absoluteerror": "real",
    "reg:gamma": "positive",
    "reg:linear": "real",
    "reg:logistic": "share",
    "reg:pseudohubererror": "real",
    "reg:quantileerror": "real",
    "reg:squarederror": "real",
    "reg:squaredlogerror": "positive",
    "reg:tweedie": "positive",
    "survival:aft": "positive",
    "survival:cox": "positive",
}


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("base_score", [None, 0.3])
def test_objectives(objective, base_score):
    y = LABELS[OBJECTIVES[objective]]
    params = {"objective": objective}
    data = {}
    if base_score is not None:
        params["base_score"] = base_score
    if objective.startswith("multi:"):
        params["num_class"] = 3
    if objective.startswith("rank:"):
        data["group"] = [70, 80]
    if objective == "survival:aft":
        data["label_lower_bound"] = data["label_upper_bound"] = y
    if objective == "reg:quantileerror":
        params["quantile_alpha"] = [0.2, 0.7]
    assert_parity(boosted(y, params, rounds=3, **data))


def test_every_objective_is_tested():
    assert OBJECTIVES.keys() == _xgboost._LINKS.keys()


def test_unknown_objective(monkeypatch):
    monkeypatch.delitem(_xgboost._LINKS, "reg:squarederror")
    with pytest.raises(ValueError, match=r"objective='reg:squarederror' is not supported"):
        reader.read(boosted(MEAN))


@pytest.mark.parametrize("base_score", [1e-7, 2e-6, 0.999998, 0.9999995])
def test_base_scores_near_the_limits_of_a_probability(base_score):
    model = boosted(LABELS["binary"], {"objective": "binary:logistic", "base_score": base_score})
    assert_same(model, X[:10])


def test_base_score_is_text_of_one_number_or_a_list():
    """A11: the intercept is the logit of the stored share, in any notation."""
    y = np.zeros(300)
    y[:84] = 1
    noise = np.random.default_rng(0).normal(size=(300, 2))
    model = boosted(y, {"objective": "binary:logistic"}, X=noise)
    stored = loads(model.save_raw("ubj"))["learner"]["learner_model_param"]["base_score"]
    assert reader.read(model).forest.intercept == pytest.approx([logit(float(stored.strip("[]")))])
    if VERSION >= (3, 1):
        assert stored == "[2.8E-1]"
        assert reader.read(model).forest.intercept == pytest.approx([-0.9445], abs=5e-5)

    def intercept(text, link="logit", **sizes):
        param = {"base_score": text, "num_class": "0", "num_target": "1", **sizes}
        return _xgboost._intercept({"learner_model_param": param}, link, (3, 2, 0))

    assert intercept("5E-1") == intercept("[5E-1]") == [0.0]
    three = intercept("[2E-1,3E-1,4E-1]", num_target="3")
    np.testing.assert_allclose(three, logit([0.2, 0.3, 0.4]), rtol=1e-6)
    raw = intercept("[-0.0476,0.4362,-0.3885]", "softmax", num_class="3")
    np.testing.assert_allclose(raw, [-0.0476, 0.4362, -0.3885], rtol=1e-6)
    np.testing.assert_array_equal(intercept("5E-1", "softmax", num_class="3"), [0.5] * 3)


@pytest.mark.parametrize("objective", ["count:poisson", "reg:gamma", "reg:tweedie"])
def test_base_score_of_a_log_link(objective):
    """A12: the base score is a mean, the intercept its logarithm."""
    model = boosted(LABELS["positive"], {"objective": objective, "base_score": 1.6539842})
    assert reader.read(model).forest.intercept == pytest.approx([0.50319], abs=5e-6)
    assert_same(model, X[:20])


def test_base_score_that_is_not_finite_on_the_margin():
    param = {"base_score": "[0E0]", "num_class": "0", "num_target": "1"}
    with pytest.raises(ValueError, match=r"base_score=0E0.*not finite"):
        _xgboost._intercept({"learner_model_param": param}, "exp", (3, 2, 0))


def test_strict_comparison_in_single_precision():
    """A05: a value that rounds to the threshold goes right."""
    x = np.repeat([[1.0], [2.0], [3.0], [4.0]], 20, axis=0)
    model = xgboost.XGBRegressor(
        n_estimators=1,
        max_depth=1,
        tree_method="exact",
        learning_rate=1,
        reg_lambda=0,
        base_score=0,
        n_jobs=1,
    ).fit(x, x[:, 0] >= 3)
    input_map, forest, _ = reader.read(model)
    assert forest.threshold[0] == 2.5
    query = np.array([[2.4999], [np.nextafter(2.5, 0)], [2.5], [np.nextafter(2.5, 3)], [np.nan]])
    ours = predict(forest, input_map.open(query).to_array())[:, 0]
    np.testing.assert_array_equal(ours, [0, 1, 1, 1, ours[-1]])
    assert_same(model, query)


@pytest.mark.parametrize("booster", ["gbtree", "dart"])
@pytest.mark.parametrize("n_parallel", [1, 2])
def test_early_stopping(booster, n_parallel):
    """A13: model.predict stops at the best iteration, Booster.predict does not."""
    rng = np.random.default_rng(0)
    noisy = FILLED[:, 0] + rng.normal(size=N_ROWS)
    model = xgboost.XGBRegressor(
        n_estimators=200,
        early_stopping_rounds=3,
        booster=booster,
        num_parallel_tree=n_parallel,
        max_depth=3,
        n_jobs=1,
    ).fit(X[:80], noisy[:80], eval_set=[(X[80:], noisy[80:])], verbose=False)
    assert model.get_booster().num_boosted_rounds() > model.best_iteration + 1
    assert reader.read(model).forest.n_trees == (model.best_iteration + 1) * n_parallel
    assert_same(model, X[:20])
    assert_same(model.get_booster(), X[:20])

    continued = xgboost.XGBRegressor(n_estimators=4, booster=booster, max_depth=3, n_jobs=1)
    continued.fit(X, noisy, xgb_model=model.get_booster())
    assert_same(continued, X[:20])
    assert_same(continued.get_booster(), X[:20])
    assert_same(model.get_booster()[:2], X[:20])


def test_trees_without_a_split():
    """A25: a constant target, and a bare leaf among other trees."""
    constant = xgboost.XGBRegressor(**SMALL).fit(X, np.full(N_ROWS, 7.0))
    forest = reader.read(constant).forest
    assert forest.n_nodes == forest.n_trees == 6
    assert predict(forest, X[:3]) == pytest.approx(np.full((3, 1), 7.0))
    assert_same(constant, X[:3])

    first = boosted(MEAN, rounds=2)
    data = xgboost.DMatrix(X, MEAN)
    stump = xgboost.train({"nthread": 1, "gamma": 1e9}, data, 1, xgb_model=first)
    model = xgboost.train({"nthread": 1, "max_depth": 2}, data, 1, xgb_model=stump)
    assert np.diff(reader.read(model).forest.tree_start)[2] == 1
    assert_parity(model)


@pytest.mark.parametrize("y", [np.zeros(N_ROWS, int), np.ones(N_ROWS)])
@pytest.mark.skipif(VERSION < (3, 2), reason="XGBoost refuses to train it")
def test_one_class_alone(y):
    model = boosted(y, {"objective": "binary:logistic"})
    assert_same(model, X[:3])
    if y[0] == 0:
        model = xgboost.XGBClassifier(**SMALL).fit(X, y)
        assert_same(model, X[:3])
        assert_answers(model, "predict_proba")


def test_pruned_nodes_are_left_out():
    model = boosted(
        FILLED[:, 0] * FILLED[:, 1],
        {"tree_method": "exact", "gamma": 0.1, "max_depth": 5, "max_bin": 4},
    )
    trees = loads(model.save_raw("ubj"))["learner"]["gradient_booster"]["model"]["trees"]
    deleted = sum(int(tree["tree_param"]["num_deleted"]) for tree in trees)
    assert deleted > 0
    n_nodes = sum(len(tree["left_children"]) for tree in trees)
    assert reader.read(model).forest.n_nodes == n_nodes - deleted
    assert_parity(model)


def parts(model):
    """Arguments of join_trees, from a Booster with one output."""
    learner = loads(model.save_raw("ubj"))["learner"]
    trees = learner["gradient_booster"]["model"]["trees"]
    n_inputs = int(learner["learner_model_param"]["num_feature"])
    rest = {"weights": [1.0] * len(trees), "outputs": [0] * len(trees)}
    return trees, {**rest, "intercept": np.zeros(1), "n_inputs": n_inputs}


def permuted(tree, rng):
    """The same tree with its nodes, but for the root, and categories in another order."""
    n_nodes = len(tree["left_children"])
    order = np.concatenate([[0], 1 + rng.permutation(n_nodes - 1)])
    new = np.append(np.argsort(order), -1)
    per_node = {k: v[order] for k, v in tree.items() if np.shape(v) == (n_nodes,)}
    for child in ("left_children", "right_children"):
        per_node[child] = new[per_node[child]]
    reverse = {
        "categories": tree["categories"][::-1],
        "categories_segments": len(tree["categories"])
        - tree["categories_segments"]
        - tree["categories_sizes"],
    }
    return {**tree, **per_node, **reverse, "categories_nodes": new[tree["categories_nodes"]]}


@pytest.mark.parametrize("categorical", [False, True])
def test_nodes_in_any_order(categorical):
    if categorical:
        codes = np.column_stack([np.arange(N_ROWS) % 7, FILLED[:, 0]])
        y = np.sin(codes[:, 0] * 5) * codes[:, 1]
        params = {"max_cat_to_onehot": 1}
        model = boosted(y, params, X=codes, feature_types=["c", "float"], enable_categorical=True)
        rows = codes
    else:
        model, rows = boosted(MEAN), X
    trees, rest = parts(model)
    rng = np.random.default_rng(0)
    forest = join_trees([permuted(tree, rng) for tree in trees], **rest)
    np.testing.assert_array_equal(
        predict(forest, rows[:30]), predict(join_trees(trees, **rest), rows[:30])
    )
    if categorical:
        lists = np.split(forest.category, forest.category_start[1:-1])
        assert sum(len(categories) > 1 for categories in lists) > len(trees)
        assert all(np.all(np.diff(categories) > 0) for categories in lists)


def test_what_is_not_a_tree():
    trees, rest = parts(boosted(MEAN, rounds=1))
    left = trees[0]["left_children"].astype(int)
    for wrong, message in ((len(left), "not among"), (2, "do not form"), (0, "two parents")):
        changed = np.where(np.arange(len(left)) == 0, wrong, left)
        with pytest.raises(ValueError, match=message):
            join_trees([{**trees[0], "left_children": changed}], **rest)


@pytest.mark.parametrize(
    "path",
    [
        (),
        ("learner",),
        ("learner", "learner_model_param"),
        ("learner", "gradient_booster"),
        ("learner", "gradient_booster", "model"),
        ("learner", "gradient_booster", "model", "gbtree_model_param"),
        ("learner", "gradient_booster", "model", "trees", 0),
        ("learner", "gradient_booster", "model", "trees", 1, "tree_param"),
    ],
)
def test_unknown_keys_are_refused(monkeypatch, path):
    def loads_with_a_key(data):
        dump = part = loads(data)
        for step in path:
            part = part[step]
        part["linear_leaves"] = 1
        return dump

    monkeypatch.setattr(_xgboost, "loads", loads_with_a_key)
    with pytest.raises(ValueError, match=r"'linear_leaves' in its .*which is not known"):
        reader.read(boosted(MEAN, rounds=2))


def test_attributes_are_free():
    model = boosted(MEAN)
    model.set_attr(owner="someone")
    assert_same(model, X[:5])


def test_gblinear_is_refused():
    model = xgboost.XGBRegressor(booster="gblinear", n_jobs=1).fit(FILLED, MEAN)
    for each in (model, model.get_booster()):
        with pytest.raises(ValueError, match=r"booster='gblinear' has no trees.*gbtree"):
            reader.read(each)


@pytest.mark.parametrize("model", [xgboost.XGBClassifier(), xgboost.Booster()])
def test_unfitted(model):
    assert reader.accepts(model)
    with pytest.raises(NotFittedError):
        reader.read(model)


def test_no_round():
    with pytest.raises(NotFittedError, match="no trees"):
        reader.read(boosted(MEAN, rounds=0))


def test_accepts():
    assert not reader.accepts(xgboost.DMatrix(X))
    assert not reader.accepts(object())


# --- columns -------------------------------------------------------------------------------


def test_infinity_is_accepted_where_xgboost_accepts_it(fitted):
    rows = X[:5].copy()
    rows[:, 0] = [np.inf, -np.inf, 1e300, -1e300, 1e39]
    model = fitted["regressor"]
    assert reader.read(model).input_map.allow_inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(model, rows)
    booster = model.get_booster()
    assert not reader.read(booster).input_map.allow_inf
    for bad in (rows, rows[2:3]):
        with pytest.raises(xgboost.core.XGBoostError, match="inf"):
            reader.predict_raw(booster, bad)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float16, bool])
def test_other_dtypes(dtype):
    rows = np.arange(40).reshape(20, 2) % 3
    rows = rows.astype(dtype)
    model = xgboost.XGBRegressor(**SMALL).fit(rows, rows[:, 0] + 2.0 * rows[:, 1])
    assert_same(model, rows)


@pytest.mark.parametrize("missing", [-999.0, 0, 0.1, np.inf, 2**24 + 1])
def test_a_value_that_means_missing(missing):
    rows = np.where(np.isnan(X), missing, X)
    rows[:, 0] = np.round(rows[:, 0])
    model = xgboost.XGBRegressor(missing=missing, **SMALL).fit(rows, MEAN)
    near = rows[:12].copy()
    near[:4, 0] = [missing, np.nan, np.nextafter(missing, 0), np.nextafter(missing, 1)]
    near[4:6, 1] = [-missing, np.float32(missing)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(model, near)
        assert_same(model, near.astype(np.float32))
        assert_same(model, pd.DataFrame(near))
    assert_same(model, sparse.csr_matrix(np.nan_to_num(rows[:12], posinf=0)))


@pytest.mark.parametrize(
    "kind",
    [sparse.csr_matrix, sparse.csr_array, sparse.csc_matrix, sparse.csc_array, sparse.coo_array],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_absent_entries_are_missing_and_zeros_are_not(kind, dtype):
    rng = np.random.default_rng(0)
    dense = rng.integers(-2, 3, size=(80, 3)).astype(dtype)
    row, column = np.nonzero(rng.random(dense.shape) < 0.6)
    matrix = sparse.coo_array((dense[row, column], (row, column)), shape=dense.shape)
    assert (matrix.data == 0).any()
    target = np.where(matrix.toarray() == 0, 5.0, 0.0)[:, 0] + dense[:, 1]
    model = xgboost.XGBRegressor(**SMALL).fit(sparse.csr_matrix(matrix), target)
    for each in (model, model.get_booster()):
        assert np.ptp(margins_of(each, matrix) - margins_of(each, matrix.toarray())) > 0.1
        assert_same(each, kind(matrix))


def test_names(fitted):
    assert reader.read(fitted["regressor"]).input_map.names is None
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = xgboost.XGBRegressor(**SMALL).fit(frame, MEAN)
    assert reader.read(model).input_map.names == tuple("abcd")
    assert_same(model, frame[:20])
    assert_same(model, X[:20])
    assert_same(model.get_booster(), X[:20])
    np.testing.assert_array_equal(
        reader.predict_raw(model, sparse.csc_matrix(FILLED)),
        reader.predict_raw(model, FILLED_WITHOUT_ZEROS),
    )
    with pytest.raises(ValueError, match="feature_names mismatch"):
        reader.predict_raw(model, frame[list("bacd")])


FILLED_WITHOUT_ZEROS = np.where(FILLED == 0, np.nan, FILLED)


def make_frame():
    rng = np.random.default_rng(3)
    letters = rng.choice(list("hdbf"), N_ROWS)
    numbers = rng.choice([40, 80, 20, 60, 30], N_ROWS)
    frame = pd.DataFrame(
        {
            "x": FILLED[:, 0],
            "letter": pd.Categorical(letters, categories=list("hdbf")),
            "number": pd.Categorical(numbers, categories=[40, 80, 20, 60, 30]),
        }
    )
    frame.loc[::9, "letter"] = None
    y = FILLED[:, 0] + 3 * (letters == "d") - 2 * (letters == "b") + np.sin(numbers) * 4
    return frame, y


@pytest.mark.parametrize("max_cat_to_onehot", [1, 100])
def test_categories_in_a_frame(max_cat_to_onehot):
    frame, y = make_frame()
    model = xgboost.XGBRegressor(
        enable_categorical=True, max_cat_to_onehot=max_cat_to_onehot, **SMALL
    ).fit(frame, y)
    forest = reader.read(model).forest
    assert forest.is_categorical.any()
    assert (np.diff(forest.category_start).max() > 1) == (max_cat_to_onehot == 1)
    for each in (model, model.get_booster()):
        assert_same(each, frame[:60])


def test_categories_and_classes():
    frame, y = make_frame()
    model = xgboost.XGBClassifier(enable_categorical=True, **SMALL)
    assert_same(model.fit(frame, np.digitize(y, [0, 2])), frame[:60])


@pytest.mark.skipif(VERSION >= (3, 2), reason="XGBoost refuses to train it")
def test_categories_and_vector_leaves():
    frame, y = make_frame()
    model = xgboost.XGBRegressor(
        enable_categorical=True, multi_strategy="multi_output_tree", **SMALL
    )
    assert_same(model.fit(frame, np.column_stack([y, -y])), frame[:60])


@stores_labels
def test_categories_are_known_by_their_labels():
    frame, y = make_frame()
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL).fit(frame, y)
    input_map = reader.read(model).input_map
    assert list(input_map.categories) == [1, 2]
    assert input_map.categories[1].tolist() == list("hdbf")
    assert input_map.categories[2].tolist() == [40, 80, 20, 60, 30]
    other = frame.assign(
        letter=frame["letter"].cat.reorder_categories(list("bdfh")),
        number=frame["number"].cat.reorder_categories([20, 30, 40, 60, 80]),
    )
    assert_same(model, other[:60])
    np.testing.assert_array_equal(margins_of(model, other), margins_of(model, frame))

    unseen = frame[:3].assign(letter=pd.Categorical(["h", "zz", None]))
    with pytest.raises(xgboost.core.XGBoostError, match="not in the training set"):
        margins_of(model, unseen)
    with pytest.raises(ValueError, match=r"'letter' of X has the category 'zz'"):
        input_map.open(unseen).column(1)


@stores_labels
def test_labels_that_xgboost_stores_wrongly():
    frame, y = make_frame()
    frame["letter"] = frame["letter"].cat.rename_categories(["é", "d", "b", "f"])
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL).fit(frame, y)
    with pytest.raises(ValueError, match=r"'letter'.*not ASCII.*rename"):
        reader.read(model)


@pytest.mark.skipif(VERSION >= (3, 1), reason="the model holds labels")
def test_categories_by_code_where_the_model_holds_no_labels():
    frame, y = make_frame()
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL).fit(frame, y)
    assert not reader.read(model).input_map.categories
    other = frame.assign(letter=frame["letter"].cat.reorder_categories(list("bdfh")))
    assert_same(model, other[:60])


@stores_labels
def test_polars():
    frame, y = make_frame()
    present = frame["letter"].notna()
    letters = pl.Series(frame["letter"].astype(object).where(present, None).tolist())
    train = pl.DataFrame({"x": frame["x"].to_numpy(), "c": letters.cast(pl.Enum(list("hdbf")))})
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL).fit(train, y)
    assert reader.read(model).forest.is_categorical.any()
    assert_same(model, train[:40])
    assert_same(model, train[:40].with_columns(c=letters[:40].cast(pl.Enum(list("bdfh")))))


ODD_CODES = [-1, -0.5, -1e-50, -0.0, 0.7, 1.9, 1.9999999999, 5, 77, 2.0**24, 1e30, np.nan]


@pytest.mark.parametrize("max_cat_to_onehot", [1, 100])
def test_codes_in_an_array(max_cat_to_onehot):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, 6, N_ROWS), FILLED[:, 0]]).astype(float)
    y = np.array([3.0, -1, 4, -1, 5, -9])[codes[:, 0].astype(int)] + codes[:, 1]
    model = xgboost.XGBRegressor(
        feature_types=["c", "float"],
        enable_categorical=True,
        max_cat_to_onehot=max_cat_to_onehot,
        **SMALL,
    ).fit(codes, y)
    rows = np.column_stack([ODD_CODES, np.zeros(len(ODD_CODES))])
    rows = np.vstack([codes[:20], rows])
    for each in (model, model.get_booster()):
        assert_same(each, rows)
        assert_same(each, rows.astype(np.float32))
        assert_same(each, sparse.csr_matrix(rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows[0, 0] = np.inf
        assert_same(model, rows)


def test_codes_for_a_model_of_labels():
    frame, y = make_frame()
    model = xgboost.XGBRegressor(enable_categorical=True, **SMALL).fit(frame, y)
    codes = np.column_stack(
        [frame["x"], *(frame[name].cat.codes.replace(-1, np.nan) for name in ("letter", "number"))]
    )
    assert_same(model, codes[:40])
    # A frame of numbers alone holds codes too, and then only a DMatrix can be made of it.
    numbers = pd.DataFrame(codes[:40], columns=frame.columns)
    assert_same(model.get_booster(), numbers)


@pytest.mark.parametrize("missing", [0, 1, -1, 1.5])
def test_a_code_of_a_frame_may_mean_missing(missing):
    frame, y = make_frame()
    model = xgboost.XGBRegressor(enable_categorical=True, missing=missing, **SMALL).fit(frame, y)
    assert_same(model, frame[:60])
    # XGBoost compares the frame's own codes, not those of the model.
    other = frame.assign(number=frame["number"].cat.reorder_categories([20, 30, 40, 60, 80]))
    assert_same(model, other[:60])


# --- heads ---------------------------------------------------------------------------------


def assert_answers(model, method):
    """The head turns margins into the model's own answer."""
    _, _, head = reader.read(model)
    assert head.link_method == method
    answer = head.respond(reader.predict_raw(model, X))
    truth = getattr(model, method)(X)
    if head.link == "logit" and method == "predict_proba":
        np.testing.assert_allclose(answer[:, 0], truth[:, 1], rtol=1e-5)
        np.testing.assert_array_equal(head.classes, [0, 1])
    else:
        np.testing.assert_allclose(answer, truth.reshape(answer.shape), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "link"),
    [
        ("binary", "logit"),
        ("classes", "softmax"),
        ("softmax", "softmax"),
        ("labels", "multi_logit"),
        ("random forest classes", "softmax"),
        ("vector labels", "multi_logit"),
    ],
)
def test_classifiers_have_a_link(fitted, name, link):
    head = reader.read(fitted[name]).head
    assert head.additive == ("raw",)
    assert head.link == link
    assert_answers(fitted[name], "predict_proba")
    if link != "multi_logit":
        np.testing.assert_array_equal(head.classes, fitted[name].classes_)


@pytest.mark.parametrize(
    ("objective", "label", "link"),
    [
        ("reg:logistic", "share", "logit"),
        ("binary:logistic", "binary", "logit"),
        ("reg:logistic", "flags", "multi_logit"),
        ("count:poisson", "positive", "exp"),
        ("reg:tweedie", "positive", "exp"),
        ("reg:gamma", "positive", "exp"),
        ("survival:cox", "positive", "exp"),
    ],
)
def test_regressors_with_a_link(objective, label, link):
    model = xgboost.XGBRegressor(objective=objective, **SMALL).fit(X, LABELS[label])
    head = reader.read(model).head
    assert (head.additive, head.link, head.classes) == (("raw",), link, None)
    assert_answers(model, "predict")


@pytest.mark.parametrize(
    ("objective", "method"), [("multi:softprob", "predict"), ("multi:softmax", None)]
)
def test_regressors_of_classes(objective, method):
    model = xgboost.XGBRegressor(objective=objective, num_class=3, **SMALL).fit(X, LABELS["class"])
    head = reader.read(model).head
    assert (head.link, head.link_method, head.classes) == ("softmax", method, None)
    if method is not None:
        assert_answers(model, method)


@pytest.mark.parametrize("name", ["regressor", "targets", "vector leaves", "ranker", "dart"])
def test_regressors_and_rankers_add_up_to_their_prediction(fitted, name):
    model = fitted[name]
    head = reader.read(model).head
    assert (head.additive, head.link_method) == (("raw", "predict"), None)
    raw = reader.predict_raw(model, X)
    np.testing.assert_array_equal(model.predict(X).reshape(raw.shape), raw)


@pytest.mark.parametrize(
    ("objective", "label", "additive", "link", "n_classes"),
    [
        ("binary:logistic", "binary", ("raw",), "logit", 2),
        ("binary:logitraw", "binary", ("raw", "predict"), "identity", 2),
        ("binary:hinge", "binary", ("raw",), "identity", 2),
        ("multi:softprob", "class", ("raw",), "softmax", 3),
        ("multi:softmax", "class", ("raw",), "softmax", 3),
        ("count:poisson", "positive", ("raw",), "exp", None),
        ("reg:squarederror", "real", ("raw", "predict"), "identity", None),
    ],
)
def test_boosters(objective, label, additive, link, n_classes):
    params = {"objective": objective}
    if objective.startswith("multi:"):
        params["num_class"] = 3
    head = reader.read(boosted(LABELS[label], params)).head
    assert (head.additive, head.link) == (additive, link)
    assert (None if head.classes is None else len(head.classes)) == n_classes


@pytest.mark.parametrize("objective", ["binary:logitraw", "binary:hinge"])
def test_classifiers_whose_answers_are_no_function_of_a_link(objective):
    model = xgboost.XGBClassifier(objective=objective, **SMALL).fit(X, LABELS["binary"])
    head = reader.read(model).head
    assert (head.additive, head.link, head.link_method) == (("raw",), "identity", None)
    assert_same(model, X[:10])


def test_custom_objective():
    def objective(y, margin):
        return margin - y, np.ones_like(margin)

    model = xgboost.XGBClassifier(objective=objective, **SMALL).fit(X, LABELS["binary"])
    assert_parity(model)
    assert_answers(model, "predict_proba")


# --- covers and hygiene --------------------------------------------------------------------


def test_cover_is_the_sum_of_hessians():
    weight = np.random.default_rng(0).integers(1, 4, N_ROWS)
    model = xgboost.XGBRegressor(**SMALL).fit(X, MEAN, sample_weight=weight)
    forest = reader.read(model).forest
    np.testing.assert_array_equal(forest.cover[forest.tree_start[:-1]], weight.sum())
    inner = np.flatnonzero(forest.left >= 0)
    children = forest.cover[forest.left[inner]] + forest.cover[forest.right[inner]]
    np.testing.assert_array_equal(children, forest.cover[inner])


def test_cover_of_vector_leaves(fitted):
    forest = reader.read(fitted["vector leaves"]).forest
    if VERSION < (3, 2):
        assert np.isnan(forest.cover).all()
    else:
        np.testing.assert_array_equal(forest.cover[forest.tree_start[:-1]], 3 * N_ROWS)


def test_the_model_and_X_are_left_alone(fitted):
    model = fitted["classes"]
    before, rows = json.dumps(model.get_params(), default=str), X.copy()
    raw = bytes(model.get_booster().save_raw())
    reader.read(model)
    reader.predict_raw(model, rows)
    assert json.dumps(model.get_params(), default=str) == before
    assert bytes(model.get_booster().save_raw()) == raw
    np.testing.assert_array_equal(rows, X)


def test_pickled_and_saved_models(fitted, tmp_path):
    model = fitted["classes"]
    assert_same(pickle.loads(pickle.dumps(model)), X[:10])
    model.get_booster().save_model(tmp_path / "model.json")
    assert_same(xgboost.Booster(model_file=tmp_path / "model.json"), X[:10])
