"""CatBoost's models against CatBoost's own raw values."""

import pickle
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.special import expit
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor, StackingRegressor, VotingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.forest import find_reader
from fastpd_sklearn.forest._made_rows import UNSEEN, made_rows
from tests import oracles

pytest.importorskip("catboost")
from catboost import (
    CatBoost,
    CatBoostClassifier,
    CatBoostRanker,
    CatBoostRegressor,
    Pool,
    to_regressor,
)
from catboost import sum_models as add_models

from fastpd_sklearn.forest import _catboost
from fastpd_sklearn.forest._catboost import reader
from fastpd_sklearn.forest._catboost_hash import category_hash

N_ROWS = 240
SMALL = {
    "iterations": 5,
    "depth": 4,
    "learning_rate": 0.5,
    "verbose": 0,
    "thread_count": 1,
    "allow_writing_files": False,
    "one_hot_max_size": 50,
}
POLICIES = ["SymmetricTree", "Depthwise", "Lossguide"]
ODD_NUMBERS = [np.nan, 1e300, -1e300, np.inf, -np.inf, 0.0, -0.0, 5e-324, 3.4028235e38, -3.4e38]


@pytest.fixture(scope="module")
def data():
    """Four columns: with missing values, plain, of few numbers, of integers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, 4))
    X[rng.random(N_ROWS) < 0.15, 0] = np.nan
    X[:, 2] = rng.integers(0, 6, N_ROWS) / 10
    X[:, 3] = rng.integers(-2, 3, N_ROWS)
    y = np.where(np.isnan(X[:, 0]), 2.0, np.sin(X[:, 0])) + X[:, 1] * X[:, 3] + (X[:, 2] > 0.2)
    labels = SimpleNamespace(
        y=y,
        positive=np.exp(y / 4),
        unit=expit(y),
        binary=(y > np.median(y)).astype(int),
        three=np.digitize(y, np.quantile(y, [0.3, 0.7])),
    )
    return X, labels


def table_of(data):
    """Labels of three kinds around numbers."""
    X, labels = data
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        {
            "size": X[:, 0],
            "colour": rng.choice(["red", "green", "blue", "blass-grün", ""], N_ROWS),
            "code": rng.integers(-1, 4, N_ROWS),
            "weight": X[:, 1].astype(np.float32),
            "flag": rng.random(N_ROWS) < 0.5,
        }
    )
    y = labels.y + 3 * (table["colour"] == "red") + table["code"] ** 2 - 2 * table["flag"]
    return table, y.to_numpy()


@pytest.fixture(scope="module")
def labelled(data):
    """A frame, a target and a model of it for each growing policy."""
    table, y = table_of(data)
    columns = ["colour", "code", "flag"]
    models = {
        policy: CatBoostRegressor(cat_features=columns, grow_policy=policy, **SMALL).fit(table, y)
        for policy in POLICIES
    }
    return table, y, models


def odd_rows(forest, n_rows=100):
    """Rows of borders, their neighbours and odd values, mixed at random."""
    rng = np.random.default_rng(0)
    columns = []
    for j in range(forest.n_inputs):
        edges = np.unique(forest.threshold[(forest.left >= 0) & (forest.feature == j)])
        single = edges.astype(np.float32)
        pool = [edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), ODD_NUMBERS]
        with np.errstate(over="ignore"):
            beside = [np.nextafter(single, np.float32(side)) for side in (np.inf, -np.inf)]
        pool += [side.astype(np.float64) for side in beside]
        columns.append(rng.choice(np.concatenate(pool), n_rows))
    return np.column_stack(columns)


def check_parity(model, X, reading=None):
    reading = reading or reader.read(model)
    expected = reader.predict_raw(model, X)
    got = oracles.predict_many(reading.forest, reading.input_map.open(X).to_array())
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


def check_response(model, response, X):
    reading = reader.read(model)
    inputs = reading.input_map.open(X).to_array()
    got = reading.head.respond(oracles.predict_many(reading.forest, inputs))
    assert_allclose(got, np.reshape(response, got.shape), rtol=1e-10)


# -- Kinds of trees ------------------------------------------------------------------------


GROWING = [
    {},
    {"depth": 1},
    {"depth": 7, "iterations": 2},
    {"bootstrap_type": "Bernoulli", "subsample": 0.5, "rsm": 0.5},
    {"l2_leaf_reg": 20.0, "random_strength": 5.0, "border_count": 4},
    {"boost_from_average": False},
    {"model_shrink_rate": 0.3},
]


@pytest.mark.parametrize(
    "params",
    [
        *({"grow_policy": policy, **params} for policy in POLICIES for params in GROWING),
        {"monotone_constraints": [0, 0, 1, 0]},
        {"boosting_type": "Ordered"},
    ],
    ids=lambda params: " ".join(map(str, params.values())),
)
def test_growing(data, params):
    X, labels = data
    model = CatBoostRegressor(**{**SMALL, **params}).fit(X, labels.y)
    reading = check_model(model, X)
    assert reading.forest.n_trees == model.tree_count_
    assert reading.forest.strict is False
    assert reading.forest.single is True


def test_branches_that_no_row_can_take_are_left_out(data):
    X, labels = data
    model = CatBoostRegressor(**{**SMALL, "depth": 6}).fit(X[:, 2:3], labels.y)
    forest = check_model(model, X[:, 2:3]).forest
    # One column of six values: a tree tells at most so many apart, of 64 leaves.
    sizes = np.diff(forest.tree_start)
    assert sizes.max() <= 2 * 6 - 1
    assert_allclose(forest.cover[forest.tree_start[:-1]], N_ROWS)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mode", ["Min", "Max"])
def test_missing_values(data, policy, mode):
    X, labels = data
    model = CatBoostRegressor(nan_mode=mode, grow_policy=policy, **SMALL).fit(X, labels.y)
    forest = check_model(model, X).forest
    of_first = forest.feature == 0
    assert of_first.any()
    assert (forest.missing_left[of_first] == (mode == "Min")).all()
    # In the other columns training has seen none: there NaN exceeds no border.
    assert forest.missing_left[forest.feature > 0].all()


def test_missing_values_are_forbidden_in_training_alone(data):
    X, labels = data
    X = np.nan_to_num(X)
    model = CatBoostRegressor(nan_mode="Forbidden", **SMALL).fit(X, labels.y)
    check_model(model, X)


def test_scale_and_bias(data):
    X, labels = data
    for targets in (labels.y, np.column_stack([labels.y, labels.positive])):
        loss = "RMSE" if targets.ndim == 1 else "MultiRMSE"
        model = CatBoostRegressor(loss_function=loss, **SMALL).fit(X, targets)
        before = reader.predict_raw(model, X)
        bias = np.arange(1.0, 1 + before.shape[1])
        model.set_scale_and_bias(-2.5, bias.tolist() if len(bias) > 1 else bias[0])
        assert np.abs(reader.predict_raw(model, X) - before).min() > 1e-3
        check_model(model, X)


def test_trees_without_a_split(data):
    """KNOWN_FAULTS A25."""
    X, _ = data
    for policy in POLICIES:
        model = CatBoostRegressor(allow_const_label=True, grow_policy=policy, **SMALL)
        model.set_params(bootstrap_type="No")
        check_model(model.fit(X, np.full(N_ROWS, 7.0)), X)
        assert_allclose(reader.predict_raw(model, X), 7.0)
    alone = CatBoostRegressor(**{**SMALL, "depth": 1}, min_data_in_leaf=N_ROWS)
    alone.set_params(grow_policy="Depthwise").fit(X, data[1].y)
    assert (check_model(alone, X).forest.feature == -1).all()


def test_early_stopping(data):
    X, labels = data
    model = CatBoostRegressor(**{**SMALL, "iterations": 60, "early_stopping_rounds": 3})
    model.fit(X, labels.y, eval_set=(X[::-1], labels.y))
    assert 0 < model.tree_count_ < 60
    assert check_model(model, X).forest.n_trees == model.tree_count_


def test_shrunk_copied_and_loaded_models(data, tmp_path):
    X, labels = data
    model = CatBoostRegressor(**SMALL).fit(X, labels.y)
    model.save_model(str(tmp_path / "model.cbm"))
    model.save_model(str(tmp_path / "model.json"), format="json")
    expected = reader.predict_raw(model, X)
    for loaded in (
        CatBoostRegressor().load_model(str(tmp_path / "model.cbm")),
        CatBoost().load_model(str(tmp_path / "model.json"), format="json"),
        pickle.loads(pickle.dumps(model)),
        model.copy(),
    ):
        check_model(loaded, X)
        assert_allclose(reader.predict_raw(loaded, X), expected, rtol=1e-12)
    model.shrink(4, 1)
    assert check_model(model, X).forest.n_trees == 3


def test_models_made_of_models(data):
    X, labels = data
    first = CatBoostRegressor(**SMALL).fit(X, labels.y)
    again = CatBoostRegressor(**SMALL).fit(X, -labels.positive, init_model=first)
    assert check_model(again, X).forest.n_trees == 10
    added = add_models([first, again], weights=[0.25, -2.0])
    check_model(added, X)
    for model in (added, to_regressor(added)):
        explained = FastPDExplainer(output="shap").fit(model, X).explain(X)
        assert_allclose(
            explained.base_values + explained.sum(), model.predict(X), rtol=0, atol=1e-9
        )


def test_the_model_is_left_alone(labelled):
    table, _, models = labelled
    model = models["SymmetricTree"]
    before, given = model.get_params(), table.copy()
    raw = model.predict(table)
    reader.read(model)
    reader.predict_raw(model, table)
    assert model.get_params() == before
    assert_array_equal(model.predict(table), raw)
    pd.testing.assert_frame_equal(table, given)


# -- Response ------------------------------------------------------------------------------


def test_regression(data):
    X, labels = data
    head = check_model(CatBoostRegressor(**SMALL).fit(X, labels.y), X).head
    assert head.additive == ("raw", "predict")
    for loss in ("Poisson", "Tweedie:variance_power=1.5"):
        model = CatBoostRegressor(loss_function=loss, **SMALL).fit(X, labels.positive)
        head = check_model(model, X).head
        assert (head.additive, head.link, head.link_method) == (("raw",), "exp", "predict")
        check_response(model, model.predict(X), X)


@pytest.mark.parametrize("loss", ["MultiRMSE", "MultiQuantile:alpha=0.1,0.5,0.9"])
def test_several_outputs(data, loss):
    X, labels = data
    y = np.column_stack([labels.y, labels.positive]) if loss == "MultiRMSE" else labels.y
    model = CatBoostRegressor(loss_function=loss, **SMALL).fit(X, y)
    reading = check_model(model, X)
    assert reading.head.additive == ("raw", "predict")
    assert_array_equal(model.predict(X), reader.predict_raw(model, X))


def test_mean_and_uncertainty(data):
    X, labels = data
    model = CatBoostRegressor(loss_function="RMSEWithUncertainty", **SMALL).fit(X, labels.y)
    reading = check_model(model, X)
    assert reading.forest.n_outputs == 2
    assert reading.head.additive == ("raw",)
    assert_array_equal(model.predict(X)[:, 0], reader.predict_raw(model, X)[:, 0])


@pytest.mark.parametrize("loss", ["Logloss", "CrossEntropy", "Focal:focal_alpha=.5;focal_gamma=1"])
def test_two_classes(data, loss):
    X, labels = data
    names = loss == "Logloss"
    y = {"CrossEntropy": labels.unit}.get(loss, np.array(["no", "yes"])[labels.binary])
    y = y if names or loss == "CrossEntropy" else labels.binary
    model = CatBoostClassifier(loss_function=loss, **SMALL).fit(X, y)
    head = check_model(model, X).head
    assert (head.link, head.link_method) == ("logit", "predict_proba")
    assert head.classes.tolist() == (["no", "yes"] if names else [0, 1])
    check_response(model, model.predict_proba(X)[:, 1], X)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("loss", "link"), [("MultiClass", "softmax"), ("MultiClassOneVsAll", "multi_logit")]
)
def test_three_classes(data, loss, link, policy):
    X, labels = data
    y = np.array(["a", "b", "c"])[labels.three]
    model = CatBoostClassifier(loss_function=loss, grow_policy=policy, **SMALL).fit(X, y)
    reading = check_model(model, X)
    assert reading.forest.n_outputs == 3
    assert (reading.head.link, reading.head.link_method) == (link, "predict_proba")
    assert reading.head.names(3) == ("a", "b", "c")
    check_response(model, model.predict_proba(X), X)


def test_two_classes_with_an_output_each(data):
    X, labels = data
    model = CatBoostClassifier(loss_function="MultiClass", **SMALL).fit(X, labels.binary)
    assert check_model(model, X).forest.n_outputs == 2
    check_response(model, model.predict_proba(X), X)


def test_several_labels_a_row(data):
    X, labels = data
    y = np.column_stack([labels.binary, labels.three == 1, labels.three > 1]).astype(int)
    model = CatBoostClassifier(loss_function="MultiLogloss", **SMALL).fit(X, y)
    reading = check_model(model, X)
    assert reading.head.classes is None
    check_response(model, model.predict_proba(X), X)


def test_plain_model_and_ranker(data):
    X, labels = data
    ranker = CatBoostRanker(loss_function="YetiRank", **SMALL)
    ranker.fit(X, labels.three, group_id=np.arange(N_ROWS) // 20)
    plain = CatBoost({**SMALL, "loss_function": "Logloss"}).fit(X, labels.binary)
    for model in (ranker, plain):
        assert check_model(model, X).head.additive == ("raw", "predict")
        assert_array_equal(model.predict(X), reader.predict_raw(model, X)[:, 0])


# -- Categories ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_frames_and_arrays_of_labels(labelled, policy):
    table, _, models = labelled
    model = models[policy]
    reading = reader.read(model)
    assert {1, 2, 4} <= set(reading.forest.feature[reading.forest.is_categorical].tolist())
    assert reading.input_map.names == tuple(table.columns)
    other = table.assign(code=(table["code"] + 2).astype("int8"))
    other.loc[:20, "colour"] = "never seen"
    for X in (table, other):
        check_parity(model, X, reading)
        check_parity(model, X.astype({"colour": "category", "flag": "category"}), reading)
        check_parity(model, X.astype({"code": "Int64", "flag": "boolean"}), reading)
        check_parity(model, X.astype({"code": "str", "colour": object}), reading)
        check_parity(model, X.to_numpy(dtype=object), reading)
        check_parity(model, pl.from_pandas(X), reading)
    check_parity(model, table.drop(columns="flag").assign(flag=1).to_numpy(object).astype(str))


def test_polars_labels(labelled):
    table, _, models = labelled
    table = pl.from_pandas(table)
    for dtype in (pl.Categorical, pl.Enum(["blass-grün", "green", "", "blue", "red"])):
        check_parity(models["SymmetricTree"], table.with_columns(pl.col("colour").cast(dtype)))


def test_made_rows_reach_every_kind_of_value(labelled):
    """What is compared at ``fit`` are categories, unseen ones, borders and missing numbers."""
    table, _, models = labelled
    model = models["Depthwise"]
    reading = reader.read(model)
    for X in (table, pl.from_pandas(table), table.to_numpy(object)):
        blocks = list(made_rows(reading, X, UNSEEN, np.random.RandomState(0)))
        for rows in blocks:
            check_parity(model, rows, reading)
        inputs = np.vstack([reading.input_map.open(rows).to_array() for rows in blocks])
        assert np.isnan(inputs[:, [0, 3]]).any(axis=0).all()
        for j in (1, 2, 4):
            codes = len(reading.input_map.categories[j])
            assert set(inputs[:, j]) >= {-1.0 * (j != 4), *range(codes)}
        assert not np.isnan(inputs[:, [1, 2, 4]]).any()


def test_codes_in_arrays(data):
    rng = np.random.default_rng(1)
    X = rng.integers(0, 5, (N_ROWS, 3)) + np.array([0, 2**53, -2])
    y = (X[:, 1] == 2**53 + 1) * 3.0 + X[:, 0] + (X[:, 2] == 1)
    model = CatBoostRegressor(cat_features=[1, 2], **SMALL).fit(X, y)
    reading = reader.read(model)
    assert reading.input_map.names is None
    check_parity(model, X, reading)
    check_parity(model, sparse.csr_matrix(X), reading)
    check_parity(model, sparse.csc_array(X), reading)
    check_parity(model, X.astype(object), reading)
    check_parity(model, pd.DataFrame(X), reading)
    small = X - np.array([0, 2**53, 0])
    check_parity(model, small.astype(np.int8), reading)
    # CatBoost takes no floats for categories; rows that explainers make hold whole ones.
    check_parity(model, small.astype(float), reading)


def test_labels_are_hashed_as_catboost_does(tmp_path):
    rng = np.random.default_rng(0)
    letters = list("abcXYZ 0189-_.äß€")
    labels = ["".join(rng.choice(letters, size)) for size in (*range(140), 1000)]
    labels += ["0", "-1", "12345678901234567890"]
    X = pd.DataFrame({"c": ["a", "b"] * 20})
    model = CatBoostRegressor(cat_features=["c"], **SMALL).fit(X, np.arange(40.0))
    path = tmp_path / "model.json"
    pool = Pool(pd.DataFrame({"c": labels}), cat_features=["c"])
    model.save_model(str(path), format="json", pool=pool)
    pairs = _catboost.json.loads(path.read_text())["features_info"]["cat_features_hash"]
    known = {pair["value"]: pair["hash"] for pair in pairs}
    assert {label: category_hash(label) % 2**32 for label in labels} == known
    for same in (7, np.int8(7), 7.0, np.uint64(7), "7"):
        assert category_hash(same) == category_hash("7")
    for odd in (1.5, np.nan, np.inf, None, (1,), pd.Timestamp(0)):
        with pytest.raises(ValueError, match="strings and integers"):
            category_hash(odd)


def test_values_that_are_no_labels(labelled):
    table, _, models = labelled
    model = models["SymmetricTree"]
    explainer = FastPDExplainer().fit(model, table)
    gone = table.assign(colour=table["colour"].where(table["colour"] != "red"))
    for X in (gone, gone.astype({"colour": "category"}), pl.from_pandas(gone)):
        with pytest.raises(ValueError, match=r"column 'colour' .* missing value"):
            explainer.transform(X)
        with pytest.raises(Exception, match=r"colour|cat_feature"):
            FastPDExplainer().fit(model, X)
    with pytest.raises(ValueError, match=r"column 'code' of X: 0.5 is no label"):
        explainer.transform(table.assign(code=0.5))
    with pytest.raises(ValueError, match=r"column 'size' .* not numeric"):
        explainer.transform(table.assign(size="large"))


def test_target_statistics_are_refused(labelled):
    table, y, _ = labelled
    model = CatBoostRegressor(cat_features=["colour"], **{**SMALL, "one_hot_max_size": 2})
    model.fit(table, y)
    with pytest.raises(ValueError, match=r"target statistics \(CTRs\).*one_hot_max_size"):
        reader.read(model)
    with pytest.raises(ValueError, match="target statistics"):
        FastPDExplainer().fit(model, table)
    # By prediction it is explained as any model.
    slow = VanillaPDExplainer(features=["colour"]).fit(model, table[:20])
    held = [model.predict(table[:20].assign(colour=c)).mean() for c in table["colour"][:4]]
    assert_allclose(slow.transform(table[:4])[:, 0], held)


def test_other_features_are_refused(data):
    X, labels = data
    words = pd.DataFrame({"x": X[:, 1], "text": np.resize(["red dog", "blue cat", "a b"], N_ROWS)})
    model = CatBoostClassifier(text_features=["text"], **SMALL).fit(words, labels.binary)
    with pytest.raises(ValueError, match=r"text features, the columns \[1\]"):
        reader.read(model)
    vectors = pd.DataFrame({"x": X[:, 1], "v": list(X[:, 1:])})
    model = CatBoostClassifier(embedding_features=["v"], **SMALL).fit(vectors, labels.binary)
    with pytest.raises(ValueError, match=r"embedding features, the columns \[1\]"):
        reader.read(model)


# -- Explained -----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
def test_explained_as_predicted(labelled, policy):
    """Against enumeration by CatBoost's own predictions."""
    table, _, models = labelled
    model = models[policy]
    background, X = table[:25], table[30:36]
    game = oracles.interventional_game(
        lambda rows: reader.predict_raw(model, rows), background, None, X, [[j] for j in range(5)]
    )
    phi = FastPDExplainer(output="shap").fit(model, background).transform(X)
    truth = [oracles.shapley_interaction(game, (j,))[:, 0] for j in range(5)]
    assert_allclose(phi, np.transpose(truth), atol=1e-10)


def test_partial_dependence_on_labels(labelled):
    table, _, models = labelled
    model = models["SymmetricTree"]
    explainer = FastPDExplainer().fit(model, table)
    explainer = pickle.loads(pickle.dumps(explainer.detach()))
    for name in ("colour", "code"):
        result = explainer.partial_dependence(name)
        # CatBoost takes no floats for categories.
        labels = [v if name == "colour" else int(v) for v in result.grid_values[0]]
        held = [model.predict(table.assign(**{name: v})).mean() for v in labels]
        assert_allclose(result.average[0], held, atol=1e-10)
        assert list(result.curve.categories) == sorted(set(table[name]))
        assert_allclose(result.curve(result.grid_values[0])[0], held, atol=1e-10)


@pytest.mark.parametrize("kind", [CatBoostRegressor, HistGradientBoostingRegressor])
@pytest.mark.parametrize("in_pipeline", [False, True])
def test_partial_dependence_on_numbers_that_are_labels(data, kind, in_pipeline):
    X, labels = data
    table = pd.DataFrame({"x": X[:, 1], "code": np.resize([30, 10, 20, 70], N_ROWS)})
    y = labels.y + (table["code"] == 20)
    if kind is CatBoostRegressor:
        model = kind(cat_features=["code"], **SMALL)
    else:
        model = kind(categorical_features=["code"], max_iter=5)
    if in_pipeline:
        scale = make_column_transformer((StandardScaler(), ["x"]), remainder="passthrough")
        scale.set_params(verbose_feature_names_out=False).set_output(transform="pandas")
        model = make_pipeline(scale, model)
    model.fit(table, y)
    result = FastPDExplainer().fit(model, table).partial_dependence("code")
    assert result.grid_values[0].tolist() == [10, 20, 30, 70]
    held = [model.predict(table.assign(code=code)).mean() for code in (10, 20, 30, 70)]
    assert_allclose(result.average[0], held)
    known = result.curve.categories.astype(float)
    # scikit-learn takes missing categories, CatBoost does not.
    assert known[:4].tolist() == [10, 20, 30, 70]
    assert np.isnan(known[4:]).tolist() == [True] * (kind is HistGradientBoostingRegressor)
    assert_allclose(result.curve.levels[0, :4], held)


def test_covers_are_weights_of_training(data):
    X, labels = data
    weight = np.arange(N_ROWS) % 3 / 2
    for policy in POLICIES:
        model = CatBoostRegressor(**SMALL, grow_policy=policy)
        forest = check_model(model.fit(X, labels.y, sample_weight=weight), X).forest
        through = oracles.passages(forest, X)
        assert_allclose(forest.cover, through @ weight, atol=1e-4)


def test_path_dependent_values_are_those_of_catboost(data):
    X, labels = data
    for policy in POLICIES:
        params = {**SMALL, "depth": 5 if policy == "SymmetricTree" else 3}
        model = CatBoostRegressor(grow_policy=policy, **params).fit(X, labels.y)
        truth = model.get_feature_importance(Pool(X), type="ShapValues")
        # CatBoost's own do not add up where a leaf has no weight.
        assert_allclose(truth.sum(axis=1), model.predict(X))
        values = PathDependentExplainer(output="shap").fit(model).transform(X)
        assert_allclose(values, truth[:, :-1], atol=1e-12)


def test_a_vote_of_two(data):
    X, labels = data
    two = [(str(k), CatBoostRegressor(random_seed=k, **SMALL)) for k in range(2)]
    vote = VotingRegressor(two).fit(X, labels.y)
    explainer = FastPDExplainer(output="shap").fit(vote, X[:50])
    phi = explainer.transform(X)
    assert_allclose(explainer.intercept_ + phi.sum(axis=1), vote.predict(X))


def test_a_stack_beside_another_library(labelled):
    """Each looks the labels up in its own way."""
    lgb = pytest.importorskip("lightgbm")
    table, y, models = labelled
    table = table.astype({"colour": "category"})
    other = lgb.LGBMRegressor(n_estimators=5, min_data_per_group=5, n_jobs=1, verbose=-1)
    members = [("cat", models["Depthwise"]), ("light", other.fit(table, y))]
    stack = StackingRegressor(members, LinearRegression(), cv="prefit").fit(table, y)
    explainer = FastPDExplainer(output="shap").fit(stack, table[:50])
    phi = explainer.transform(table)
    assert_allclose(explainer.intercept_ + phi.sum(axis=1), stack.predict(table))
    held = stack.predict(table[:50].assign(colour=table["colour"].iloc[[0] * 50].array)).mean()
    shown = FastPDExplainer(features=["colour"]).fit(stack, table[:50]).transform(table[:1])
    assert_allclose(shown[0, 0], held)


# -- Columns and containers ----------------------------------------------------------------


def test_names(data):
    X, labels = data
    model = CatBoostRegressor(**SMALL).fit(pd.DataFrame(X), labels.y)
    assert reader.read(model).input_map.names is None
    table = pd.DataFrame(X, columns=["a b", "ü", "c", "d"])
    model = CatBoostRegressor(**SMALL).fit(table, labels.y)
    assert reader.read(model).input_map.names == ("a b", "ü", "c", "d")
    check_parity(model, table)
    with pytest.raises(ValueError, match="feature names"):
        FastPDExplainer().fit(model, table[["ü", "a b", "c", "d"]])


def test_ignored_columns(data):
    X, labels = data
    model = CatBoostRegressor(ignored_features=[0, 2], **SMALL).fit(X, labels.y)
    assert not {0, 2} & set(check_model(model, X).forest.feature.tolist())


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix, sparse.lil_array]
)
def test_sparse(data, make):
    X, labels = data
    thin = np.where(np.abs(X) < 0.6, 0.0, X)
    model = CatBoostRegressor(**SMALL).fit(sparse.csr_matrix(thin), labels.y)
    reading = reader.read(model)
    check_parity(model, make(np.vstack([thin, odd_rows(reading.forest)])), reading)
    assert_array_equal(reader.predict_raw(model, make(thin)), reader.predict_raw(model, thin))


def test_integer_arrays_are_rounded_to_float32():
    X = np.random.default_rng(0).integers(2**54, 2**54 + 2**32, (400, 1))
    model = CatBoostRegressor(**SMALL).fit(X, X[:, 0] > 2**54 + 2**31)
    middle = 2**54 + 2**30 * np.arange(5)
    near = (middle[:, None] + np.arange(-2, 3)).reshape(-1, 1)
    for dtype in (np.int64, np.uint64, np.float64, object):
        check_parity(model, near.astype(dtype))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint8, np.float16, ">f4", ">f8", object])
def test_other_dtypes(data, dtype):
    X, labels = data
    X = np.nan_to_num(X).clip(0, 100).astype(dtype)
    check_parity(CatBoostRegressor(**SMALL).fit(X, labels.y), X)


def test_values_beside_a_threshold():
    """KNOWN_FAULTS A05."""
    x = np.tile([1.0, 2.0, 3.0, 4.0], 20)[:, None]
    model = CatBoostRegressor(**{**SMALL, "iterations": 1, "depth": 1}).fit(x, x[:, 0] >= 3)
    rows = np.array([[np.nextafter(2.5, 0)], [2.5], [np.nextafter(2.5, 3)], [2.5001]])
    low, high = model.predict([[1.0], [4.0]])
    check_parity(model, rows)
    assert_array_equal(reader.predict_raw(model, rows)[:, 0], [low, low, low, high])


# -- Output and refusals -------------------------------------------------------------------


def test_nothing_is_printed_or_left_behind(data, capfd, recwarn, tmp_path, monkeypatch):
    X, labels = data
    monkeypatch.chdir(tmp_path)
    model = CatBoostRegressor(**{**SMALL, "verbose": 1}).fit(X, labels.y)
    capfd.readouterr()
    recwarn.clear()
    reader.read(model)
    reader.predict_raw(model, X)
    assert "".join(capfd.readouterr()) == ""
    assert len(recwarn) == 0
    assert list(tmp_path.iterdir()) == []


def test_infinite_borders_are_refused():
    X = np.repeat([[-np.inf], [0.0]], 10, axis=0)
    model = CatBoostRegressor(**{**SMALL, "depth": 1}).fit(X, np.repeat([0.0, 1.0], 10))
    with pytest.raises(ValueError, match="replace these by large numbers"):
        reader.read(model)


def test_unfitted():
    for model in (CatBoostRegressor(), CatBoostClassifier(), CatBoostRanker(), CatBoost()):
        with pytest.raises(NotFittedError):
            reader.read(model)


def test_registry_finds_the_reader(data):
    X, labels = data
    assert find_reader(CatBoostRegressor()) is reader
    assert find_reader(Pool(X, labels.y)) is None


def doctor_tree(dump):
    dump["oblivious_trees"][0]["mood"] = 3


def doctor_split(dump):
    dump["oblivious_trees"][0]["splits"][0]["split_type"] = "Oracle"


def doctor_top(dump):
    dump["offsets"] = [1.0]


def doctor_features(dump):
    dump["features_info"]["sound_features"] = []


@pytest.mark.parametrize(
    ("doctor", "message"),
    [
        (doctor_tree, "'mood' in its trees"),
        (doctor_split, "'Oracle'"),
        (doctor_top, "'offsets'"),
        (doctor_features, "'sound_features'"),
    ],
)
def test_unknown_parts_are_refused(data, monkeypatch, doctor, message):
    X, labels = data
    model = CatBoostRegressor(**SMALL).fit(X, labels.y)

    def loads(text):
        dump = real(text)
        doctor(dump)
        return dump

    real = _catboost.json.loads
    monkeypatch.setattr(_catboost, "json", SimpleNamespace(loads=loads))
    with pytest.raises(ValueError, match=message):
        reader.read(model)
