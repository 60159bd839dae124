"""Pipelines explained on their raw columns, against predictions of the whole pipeline."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.explainers import CategoryCurve, StepCurve
from fastpd_sklearn.forest import register_transformer
from tests.explainers.games import Game, subsets
from tests.versions import older

pd = pytest.importorskip("pandas")

N_ROWS = 40
SINGLES = [(0,), (1,), (2,), (3,), (4,)]


@pytest.fixture(scope="module")
def data():
    """Numbers, missing values, words, a category and truth values."""
    rng = np.random.default_rng(0)
    age = np.where(rng.random(N_ROWS) < 0.2, np.nan, rng.normal(40, 10, N_ROWS).round(1))
    return pd.DataFrame(
        {
            "age": age,
            "hours": rng.integers(1, 60, N_ROWS),
            "occupation": rng.choice(["clerk", "nurse", "smith", "cook"], N_ROWS),
            "sex": pd.Categorical(rng.choice(["m", "f"], N_ROWS)),
            "member": rng.random(N_ROWS) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def target(data):
    return (
        data["age"].fillna(20.0) / 10
        + data["hours"] / 10 * (data["occupation"] == "nurse")
        + 3.0 * ((data["sex"] == "m") & data["member"])
    ).to_numpy()


def preprocessing(**kwargs):
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age", "hours"]),
        (OneHotEncoder(handle_unknown="ignore"), ["occupation", "sex"]),
        remainder="passthrough",
        **kwargs,
    )


def responder(data, predict):
    """A response to arrays of raw values, by way of a frame of the same types."""

    def respond(rows):
        columns = {name: rows[:, j] for j, name in enumerate(data.columns)}
        return predict(pd.DataFrame(columns).astype(data.dtypes))

    return respond


class Predicted(Game):
    """The game of one row whose values have been found together with those of others."""

    def __init__(self, v, n):
        self.v, self.n = v, n


def expected_games(respond, rows, background, players=None):
    """A game for every row, by one call of the response on all replaced rows."""
    players = players or [[j] for j in range(rows.shape[1])]
    sets = list(subsets(range(len(players))))
    replaced = np.tile(background, (len(rows) * len(sets), 1))
    blocks = replaced.reshape(len(rows), len(sets), *background.shape)
    for i, x in enumerate(rows):
        for s, members in enumerate(sets):
            columns = [j for k in members for j in players[k]]
            blocks[i, s][:, columns] = x[columns]
    response = np.asarray(respond(replaced), dtype=np.float64)
    means = response.reshape(len(rows), len(sets), len(background), -1).mean(axis=2)
    return [Predicted(dict(zip(sets, v, strict=True)), len(players)) for v in means]


def expected(output, respond, rows, background, terms, players=None):
    """Values of an output, shape (n_rows, n_terms, n_outputs)."""
    games = expected_games(respond, rows, background, players)
    return np.array([[getattr(game, output)(T) for T in terms] for game in games])


def in_three(y):
    return np.digitize(y, np.quantile(y, [0.33, 0.66]))


def sklearn_models():
    forest = {"n_estimators": 4, "max_depth": 4, "random_state": 0}
    boosting = {"n_estimators": 4, "max_depth": 3, "random_state": 0}
    return {
        "regression": (RandomForestRegressor(**forest), lambda p, X: p.predict(X)),
        "binary": (
            GradientBoostingClassifier(**boosting),
            lambda p, X: p.decision_function(X),
        ),
        "classes": (RandomForestClassifier(**forest), lambda p, X: p.predict_proba(X)),
    }


def xgboost_models():
    xgboost = pytest.importorskip("xgboost")
    params = {"n_estimators": 4, "max_depth": 3, "n_jobs": 1, "random_state": 0}
    margin = lambda p, X: p.predict(X, output_margin=True)  # noqa: E731
    return {
        "regression": (xgboost.XGBRegressor(**params), lambda p, X: p.predict(X)),
        "binary": (xgboost.XGBClassifier(**params), margin),
        "classes": (xgboost.XGBClassifier(**params), margin),
    }


def lightgbm_models():
    lightgbm = pytest.importorskip("lightgbm")
    params = {"n_estimators": 4, "min_child_samples": 2, "verbose": -1, "n_jobs": 1}
    raw = lambda p, X: p.predict(X, raw_score=True)  # noqa: E731
    return {
        "regression": (lightgbm.LGBMRegressor(**params), lambda p, X: p.predict(X)),
        "binary": (lightgbm.LGBMClassifier(**params), raw),
        "classes": (lightgbm.LGBMClassifier(**params), raw),
    }


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("task", ["regression", "binary", "classes"])
@pytest.mark.parametrize("models", [sklearn_models, xgboost_models, lightgbm_models])
def test_the_game_is_that_of_the_whole_pipeline(data, target, models, task):
    model, predict = models()[task]
    y = {"regression": target, "binary": target > 6, "classes": in_three(target)}[task]
    pipe = make_pipeline(preprocessing(), model).fit(data, y)
    background, rows = data[:12], data[20:23]
    respond = responder(data, lambda X: predict(pipe, X))
    games = expected_games(respond, rows.to_numpy(), background.to_numpy())
    pairs = [(0, 2), (3, 4)]
    for output, terms in [("shap", SINGLES), ("component", SINGLES + pairs), ("pd", SINGLES)]:
        named = [tuple(data.columns[j] for j in term) for term in terms]
        explainer = FastPDExplainer(output=output, features=named, max_order=None)
        if output == "shap":
            explainer.set_params(max_order="auto")
        explainer.fit(pipe, background)
        assert explainer.terms_ == tuple(named)
        truth = np.array([[getattr(game, output)(T) for T in terms] for game in games])
        found = explainer.transform(rows).reshape(truth.shape)
        assert_allclose(found, truth, atol=5e-6 * np.abs(truth).max())
        assert_allclose(explainer.intercept_, respond(background.to_numpy()).mean(axis=0), 1e-5)
        assert np.abs(truth[:, 2]).max() > 0.01  # the occupation does something


def test_columns_are_the_raw_ones(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    explainer = FastPDExplainer(output="shap").fit(pipe, data)
    assert explainer.n_features_in_ == 5
    assert list(explainer.feature_names_in_) == list(data.columns)
    assert list(explainer.get_feature_names_out()) == list(data.columns)
    total = explainer.intercept_ + explainer.transform(data).sum(axis=1)
    assert_allclose(total, pipe.predict(data))
    explanation = explainer.explain(data)
    assert explanation.data is data
    assert_allclose(explanation["occupation"], explainer.transform(data)[:, 2])


def test_fitted_in_a_pipeline_like_any_model(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    fitted = FastPDExplainer(pipe, output="shap").fit(data, target)
    by_hand = FastPDExplainer(output="shap").fit(pipe.fit(data, target), data)
    assert_allclose(fitted.transform(data), by_hand.transform(data))
    frozen = FastPDExplainer(FrozenEstimator(pipe)).fit(data)
    assert_allclose(frozen.intercept_, pipe.predict(data).mean())


def test_path_dependent(data, target):
    """Without the preprocessing there are the dummies, as a group of the same name."""
    pipe = make_pipeline(preprocessing(), DecisionTreeRegressor(max_depth=4, random_state=0))
    pipe.fit(data, target)
    names = list(pipe[0].get_feature_names_out())
    stems = {"age": "age", "hours": "hours", "occupation": "occ", "sex": "sex", "member": "mem"}
    groups = {
        raw: [i for i, name in enumerate(names) if stem in name] for raw, stem in stems.items()
    }
    dense = pipe[0].transform(data).astype(float)
    inner = PathDependentExplainer(output="shap", groups=groups)
    truth = inner.fit(pipe[-1], dense).transform(dense)
    order = [inner.terms_.index((name,)) for name in data.columns]
    found = PathDependentExplainer(output="shap").fit(pipe, data).transform(data)
    assert_allclose(found, truth[:, order])
    own_covers = PathDependentExplainer(output="shap").fit(pipe)
    assert_allclose(own_covers.transform(data), inner.fit(pipe[-1]).transform(dense)[:, order])
    assert list(own_covers.feature_names_in_) == list(data.columns)
    with pytest.raises(ValueError, match=r"needs a row of the background.*call fit\(pipe, back"):
        own_covers.partial_dependence("age", grid=[30.0])


# -- transformers --------------------------------------------------------------------------

NUMBERS = {
    "imputer": SimpleImputer(add_indicator=True),
    "indicator": make_union(SimpleImputer(), MissingIndicator()),
    "maxabs": MaxAbsScaler(),
    "minmax": MinMaxScaler(clip=True),
    "power": PowerTransformer(),
    "quantile": QuantileTransformer(n_quantiles=9, output_distribution="normal"),
    "robust": RobustScaler(),
    "log": FunctionTransformer(np.log1p),
    "declared": FunctionTransformer(lambda X: X**2, feature_names_out="one-to-one"),
    "select": make_pipeline(SimpleImputer(), SelectKBest(f_regression, k=2)),
    "standard": StandardScaler(with_mean=False),
    "binarizer": make_pipeline(SimpleImputer(), Binarizer(threshold=2.5)),
    "bins": make_pipeline(SimpleImputer(), KBinsDiscretizer(4, quantile_method="linear")),
    "ordinal bins": make_pipeline(SimpleImputer(), KBinsDiscretizer(4, encode="ordinal")),
    "splines": make_pipeline(SimpleImputer(), SplineTransformer(3)),
    "one hot": OneHotEncoder(handle_unknown="ignore", max_categories=3),
    "drop first": OneHotEncoder(drop="first", min_frequency=3, sparse_output=False),
    "ordinal": OrdinalEncoder(encoded_missing_value=-2),
    "target": TargetEncoder(),
    "union": make_pipeline(
        SimpleImputer(),
        FeatureUnion(
            [
                ("plain", "passthrough"),
                ("none", "drop"),
                ("bins", KBinsDiscretizer(3)),
                ("scaled", StandardScaler()),
            ],
            transformer_weights={"scaled": -2.0},
        ),
    ),
    "both": make_pipeline(
        SimpleImputer(strategy="median"), make_union(OneHotEncoder(), "passthrough")
    ),
    "skipped": Pipeline([("nothing", "passthrough"), ("gone", VarianceThreshold())]),
}
CURVED = set(NUMBERS) - {"declared", "splines", "both"}


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(60, 3)).astype(float)
    y = 2 * X[:, 0] + (X[:, 1] > 2) * X[:, 2]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


@pytest.mark.filterwarnings("ignore::UserWarning:sklearn")
@pytest.mark.filterwarnings("ignore::FutureWarning:sklearn")
@pytest.mark.parametrize("name", NUMBERS)
def test_transformers_of_numbers(numbers, name):
    X, y = numbers
    model = RandomForestRegressor(4, max_depth=4, random_state=0)
    pipe = make_pipeline(NUMBERS[name], model)
    pipe.fit(X, y)
    explainer = FastPDExplainer(output="component", max_order=None).fit(pipe, X[:20])
    assert not any("(" in name for term in explainer.terms_ for name in term)  # nothing is tied
    terms = [tuple(int(part[1:]) for part in term) for term in explainer.terms_]
    truth = expected("component", pipe.predict, X[30:34], X[:20], terms)
    assert_allclose(explainer.transform(X[30:34]), truth[:, :, 0], atol=1e-10)
    check_curves(explainer, pipe, X[:20], name in CURVED)


def check_curves(explainer, pipe, background, curved):
    for j in range(background.shape[1]):
        result = explainer.partial_dependence(j)
        points = result.grid_values[0]
        assert_allclose(result.average[0], brute_dependence(pipe, background, j, points))
        if not curved:
            with pytest.raises(AttributeError, match=f"no exact curve of {j}"):
                _ = result.curve
            continue
        curve = result.curve
        if isinstance(curve, StepCurve):
            breaks = curve.breaks[np.abs(curve.breaks - 3.0) < 3.5]
            near = [breaks, np.nextafter(breaks, -np.inf), np.nextafter(breaks, np.inf)]
            points = np.concatenate([np.linspace(0, 6, 41), *near])
            assert np.isnan(curve([np.nan])).all() == (curve.missing is None)
            if curve.missing is not None:
                points = np.append(points, np.nan)
        else:
            points = curve.categories.astype(float)
        assert_allclose(curve(points)[0], brute_dependence(pipe, background, j, points))


def brute_dependence(pipe, background, j, points):
    replaced = np.tile(background, (len(points), 1))
    replaced[:, j] = np.repeat(points, len(background))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipe.predict(replaced).reshape(len(points), -1).mean(axis=1)


def test_target_encoder_of_several_classes(data, target):
    encoder = make_column_transformer(
        (TargetEncoder(), ["occupation", "sex"]), (KNNImputer(), ["age", "hours"])
    )
    pipe = make_pipeline(encoder, RandomForestClassifier(4, random_state=0))
    pipe.fit(data, in_three(target))
    background, rows = data[:8], data[20:23]
    explainer = FastPDExplainer(output="component").fit(pipe, background)
    singles = (("columntransformer__knnimputer(age, hours)",), ("occupation",), ("sex",))
    assert explainer.terms_[:4] == (*singles, ("member",))
    respond = responder(data, pipe.predict_proba)
    players = [[0, 1], [2], [3], [4]]
    terms = [
        tuple(
            ["columntransformer__knnimputer(age, hours)", "occupation", "sex", "member"].index(n)
            for n in term
        )
        for term in explainer.terms_
    ]
    truth = expected(
        "component", respond, rows.to_numpy(), background.to_numpy(), terms, players=players
    )
    assert_allclose(explainer.transform(rows).reshape(truth.shape), truth, atol=1e-12)


def test_words_in_one_column():
    """Nothing has to be known of a transformer that is given one column alone."""
    from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

    rng = np.random.default_rng(0)
    words = np.array(["red", "green", "blue", "and", "or"])
    data = pd.DataFrame(
        {"text": [" ".join(rng.choice(words, 3)) for _ in range(30)], "x": rng.random(30)}
    )
    y = data["text"].str.count("red") * data["x"]
    text = make_pipeline(CountVectorizer(), TfidfTransformer())
    pipe = make_pipeline(
        make_column_transformer((text, "text"), ("passthrough", ["x"])),
        RandomForestRegressor(3, random_state=0),
    ).fit(data, y)
    explainer = FastPDExplainer(output="component").fit(pipe, data[:10])
    assert explainer.terms_ == (("text",), ("x",), ("text", "x"))
    truth = expected(
        "component",
        responder(data, pipe.predict),
        data[10:14].to_numpy(),
        data[:10].to_numpy(),
        [(0,), (1,), (0, 1)],
    )
    assert_allclose(explainer.transform(data[10:14]), truth[:, :, 0], atol=1e-12)


# -- containers ----------------------------------------------------------------------------


@pytest.mark.skipif(
    older("scikit-learn", "1.9"),
    reason="scikit-learn's own ColumnTransformer takes no frames of polars 2 before 1.9",
)
def test_polars(data, target):
    polars = pytest.importorskip("polars")
    columns = {name: data[name].tolist() for name in ("hours", "occupation", "member")}
    frame = polars.DataFrame(
        {"age": [None if np.isnan(v) else v for v in data["age"]], **columns}
    ).with_columns(
        polars.col("hours").cast(polars.Float32),
        polars.Series("town", ["bath", "york"] * 20, dtype=polars.Categorical),
    )
    pre = make_column_transformer(
        (StandardScaler(), ["age", "hours"]),
        (OneHotEncoder(handle_unknown="ignore"), ["occupation", "town"]),
        ("passthrough", ["member"]),
    )
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0))
    pipe.fit(frame, target)
    rows = frame[20:24]
    explainer = FastPDExplainer(output="shap").fit(pipe, frame[:10])
    truth = VanillaPDExplainer(output="shap").fit(pipe, frame[:10]).transform(rows)
    assert_allclose(explainer.transform(rows), truth, atol=1e-10)
    for name in frame.columns:
        result = explainer.partial_dependence(name)
        for point, average in zip(result.grid_values[0], result.average[0], strict=True):
            column = polars.Series(name, [point] * 10).cast(frame[name].dtype)
            assert_allclose(average, pipe.predict(frame[:10].with_columns(column)).mean())
        assert_allclose(result.curve(result.grid_values[0]), result.average)


@pytest.mark.parametrize("kind", ["object", "float32", "int", "csr", "csc"])
def test_arrays(kind, numbers):
    from scipy import sparse

    X, y = np.nan_to_num(numbers[0]), numbers[1]
    if kind in ("csr", "csc"):
        X = getattr(sparse, f"{kind}_array")(X)
    else:
        X = (X / 3.0 if kind == "float32" else X).astype(kind)
    scaler = {"object": OrdinalEncoder(), "int": OneHotEncoder()}.get(kind, MaxAbsScaler())
    pipe = make_pipeline(scaler, GradientBoostingRegressor(n_estimators=5)).fit(X, y)
    explainer = FastPDExplainer(output="shap").fit(pipe, X[:20])
    truth = VanillaPDExplainer(output="shap").fit(pipe, X[:20]).transform(X[30:36])
    assert_allclose(explainer.transform(X[30:36]), truth, atol=1e-12)
    dense = X[:20].toarray() if sparse.issparse(X) else X[:20]
    for j in range(3):
        result = explainer.partial_dependence(j)
        points = result.grid_values[0]
        brute = brute_dependence(pipe, dense, j, points)
        assert_allclose(result.average[0], brute)
        assert_allclose(result.curve(points)[0], brute)


def test_single_precision_is_kept(numbers):
    """XGBoost splits at the very numbers that the scaler makes of float32 data in float32."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2)).astype(np.float32)
    y = np.sign(X[:, 0]) + X[:, 1]
    pipe = make_pipeline(StandardScaler(), xgboost.XGBRegressor(n_estimators=20, n_jobs=1))
    pipe.fit(X, y)
    explainer = FastPDExplainer().fit(pipe, X)
    points = np.concatenate([X[:60, 0], explainer.partial_dependence(0).curve.breaks[:40]])
    result = explainer.partial_dependence(0, grid=points)
    brute = brute_dependence(pipe, X, 0, points)
    assert_allclose(result.average[0], brute, atol=1e-5)
    assert_allclose(result.curve(points)[0], brute, atol=1e-5)
    assert result.curve.single


def test_what_is_absent_stays_absent(numbers):
    """To XGBoost an absent entry of a sparse matrix is missing, a stored zero is not."""
    xgboost = pytest.importorskip("xgboost")
    rng = np.random.default_rng(0)
    data = pd.DataFrame({"kind": rng.choice(list("abcde"), 80), "x": rng.integers(0, 3, 80)})
    y = (data["kind"] == "a") * 2.0 + (data["x"] == 0) * (data["kind"] == "b")
    pre = make_column_transformer((OneHotEncoder(), ["kind"]), ("passthrough", ["x"]))
    pre.set_params(sparse_threshold=1.0)
    model = xgboost.XGBRegressor(n_estimators=5, n_jobs=1)
    pipe = make_pipeline(pre, model).fit(data, y)
    dense = make_pipeline(pre, FunctionTransformer(lambda X: X.toarray()), model)
    assert np.abs(dense.predict(data) - pipe.predict(data)).max() > 0.01
    explainer = FastPDExplainer(output="shap").fit(pipe, data[:30])
    total = explainer.intercept_ + explainer.transform(data).sum(axis=1)
    assert_allclose(total, pipe.predict(data), atol=1e-5)


def test_data_frames_between_the_steps(data, target):
    lightgbm = pytest.importorskip("lightgbm")
    pre = make_column_transformer(
        (OrdinalEncoder(), ["occupation"]),
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=2, verbose=-1, n_jobs=1)
    pipe = make_pipeline(pre, model).fit(data, target)
    assert isinstance(pipe[0].transform(data)["sex"].dtype, pd.CategoricalDtype)
    explainer = FastPDExplainer(output="shap").fit(pipe, data[:20])
    truth = VanillaPDExplainer(output="shap").fit(pipe, data[:20]).transform(data[20:24])
    assert_allclose(explainer.transform(data[20:24]), truth, atol=1e-10)


def test_nothing_of_the_users_is_modified(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    greedy = make_pipeline(
        StandardScaler(copy=False), RandomForestRegressor(3, random_state=0)
    ).fit(X.copy(), y)
    before, state = X.copy(), pickle.dumps(greedy)
    explainer = FastPDExplainer(output="shap").fit(greedy, X)
    explainer.explain(X)
    explainer.partial_dependence(0)
    assert_array_equal(X, before)
    assert pickle.dumps(greedy) == state


def test_refitting_the_pipeline_changes_no_explanation(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=0)).fit(X, y)
    explainer = FastPDExplainer(output="shap").fit(pipe, X)
    before = explainer.transform(X)
    pipe.fit(X * 100.0, y)
    assert_allclose(explainer.transform(X), before)
    with pytest.raises(ValueError, match="and got another one"):
        explainer.partial_fit(pipe, X)


# -- labels --------------------------------------------------------------------------------


def test_unknown_labels_are_no_label(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    rows = data[:3].assign(occupation="astronaut")
    explainer = FastPDExplainer(output="shap").fit(pipe, data)
    truth = VanillaPDExplainer(output="shap").fit(pipe, data).transform(rows)
    assert_allclose(explainer.transform(rows), truth, atol=1e-12)
    result = explainer.partial_dependence("occupation", grid=["astronaut", "nurse"])
    for k, label in enumerate(["astronaut", "nurse"]):
        brute = pipe.predict(data.assign(occupation=label)).mean()
        assert_allclose(result.average[0, k], brute)


def test_many_numbers_that_are_labels():
    """The grid of a column that is encoded holds its labels, not quantiles between them."""
    rng = np.random.default_rng(0)
    zips = rng.choice(np.arange(1000, 9000, 7), 400)
    X = np.column_stack([zips, rng.integers(0, 3, 400)])
    y = (zips % 2) + X[:, 1]
    pre = make_column_transformer((OrdinalEncoder(), [0]), remainder="passthrough")
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0)).fit(X, y)
    explainer = FastPDExplainer().fit(pipe, X)
    result = explainer.partial_dependence(0)
    assert_array_equal(result.grid_values[0], np.unique(zips))
    assert isinstance(result.curve, CategoryCurve)
    for label in (zips[0], zips[5]):
        replaced = X.copy()
        replaced[:, 0] = label
        assert_allclose(result.curve([label])[0], pipe.predict(replaced).mean())
    with pytest.raises(ValueError, match=r"1\.5 is not among the curve's categories"):
        result.curve([1.5])


# -- groups --------------------------------------------------------------------------------


def test_what_a_step_mixes_plays_together(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pre = make_column_transformer((PCA(2), [0, 2]), remainder="passthrough")
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0)).fit(X, y)
    explainer = FastPDExplainer(output="shap").fit(pipe, X[:20])
    assert explainer.terms_ == (("columntransformer__pca(x0, x2)",), ("x1",))
    truth = expected("shap", pipe.predict, X[30:33], X[:20], [(0,), (1,)], players=[[0, 2], [1]])
    assert_allclose(explainer.transform(X[30:33]), truth[:, :, 0], atol=1e-12)
    grid = [[1.0, 2.0], [3.0, 0.0]]
    result = explainer.partial_dependence("columntransformer__pca(x0, x2)", grid=np.array(grid))
    for (a, b), average in zip(grid, result.average[0], strict=True):
        replaced = X[:20].copy()
        replaced[:, 0], replaced[:, 2] = a, b
        assert_allclose(average, pipe.predict(replaced).mean())
    with pytest.raises(ValueError, match=r"part of the group .*which a step of the pipeline mixes"):
        explainer.partial_dependence("x0")


def test_groups_of_the_user(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    groups = {"work": ["hours", "occupation"]}
    explainer = FastPDExplainer(output="shap", groups=groups).fit(pipe, data[:8])
    assert explainer.terms_ == (("age",), ("work",), ("sex",), ("member",))
    truth = expected(
        "shap",
        responder(data, pipe.predict),
        data[20:22].to_numpy(),
        data[:8].to_numpy(),
        [(0,), (1,), (2,), (3,)],
        players=[[0], [1, 2], [3], [4]],
    )
    assert_allclose(explainer.transform(data[20:22]), truth[:, :, 0], atol=1e-12)


def test_groups_may_hold_what_is_mixed_but_not_tear_it_apart(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pre = make_column_transformer((Normalizer(), [0, 2]), remainder="passthrough")
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0)).fit(X, y)
    whole = FastPDExplainer(groups={"all": [0, 1, 2]}).fit(pipe, X)
    assert whole.terms_ == (("all",),)
    message = (
        r"groups\['part'\] has 'x0' but not 'x2', and step 'columntransformer__normalizer' of the "
        r"pipeline mixes these columns; put all of them into one group: \['x0', 'x2'\]"
    )
    with pytest.raises(ValueError, match=message):
        FastPDExplainer(groups={"part": [0, 1]}).fit(pipe, X)


def test_all_columns_mixed(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = make_pipeline(PCA(3), RandomForestRegressor(3, random_state=0)).fit(X, y)
    with pytest.warns(UserWarning, match="'pca' mixes all 3 columns of X.*pipe.-1"):
        explainer = FastPDExplainer().fit(pipe, X)
    assert explainer.terms_ == (("pca(x0, x1, x2)",),)
    assert_allclose(explainer.transform(X)[:, 0], pipe.predict(X), atol=1e-12)
    names = [f"x{j}" for j in range(8)]
    wide = np.random.default_rng(0).random((30, 8))
    pipe.fit(wide, wide[:, 0])
    with pytest.warns(UserWarning, match="mixes all 8 columns"):
        explainer = FastPDExplainer().fit(pipe, pd.DataFrame(wide, columns=names).to_numpy())
    assert explainer.terms_ == (("pca(x0, x1, x2, ... 8 columns)",),)


def test_products_mix_what_they_multiply(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    products = make_column_transformer(
        (PolynomialFeatures(2, interaction_only=True, include_bias=True), [0, 1]),
        remainder="passthrough",
    )
    pipe = make_pipeline(products, RandomForestRegressor(3, random_state=0)).fit(X, y)
    terms = FastPDExplainer().fit(pipe, X).terms_
    assert terms == (("columntransformer__polynomialfeatures(x0, x1)",), ("x2",))
    powers = make_pipeline(FunctionTransformer(np.square), RandomForestRegressor(3)).fit(X, y)
    assert FastPDExplainer().fit(powers, X).terms_ == (("x0",), ("x1",), ("x2",))


# -- declarations --------------------------------------------------------------------------


def demeaned(X):
    return X - np.asarray(X).mean(axis=1, keepdims=True)


def test_a_wrong_declaration_is_refused(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    wrong = FunctionTransformer(demeaned, feature_names_out="one-to-one")
    pipe = make_pipeline(wrong, RandomForestRegressor(3, random_state=0)).fit(X, y)
    message = r"made of \[[0-2]\] by step 'functiontransformer', changes when other columns of X do"
    with pytest.raises(ValueError, match=message):
        FastPDExplainer().fit(pipe, X)
    honest = make_pipeline(FunctionTransformer(demeaned), RandomForestRegressor(3)).fit(X, y)
    with pytest.warns(UserWarning, match="mixes all"):
        assert FastPDExplainer().fit(honest, X).terms_ == (("functiontransformer(x0, x1, x2)",),)


def test_a_step_that_learns_from_the_rows_that_it_transforms(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    ranks = FunctionTransformer(lambda X: X - X.mean(axis=0), feature_names_out="one-to-one")
    pipe = make_pipeline(ranks, RandomForestRegressor(3, random_state=0)).fit(X, y)
    with pytest.raises(ValueError, match="different for the same row if other rows stand beside"):
        FastPDExplainer().fit(pipe, X)


@pytest.mark.parametrize("gap", [4, 5])
def test_a_step_that_fills_gaps_from_the_row_before(gap):
    X = np.arange(8.0)[:, None]
    X[gap] = np.nan
    fill = FunctionTransformer(lambda X: pd.DataFrame(X).ffill().to_numpy())
    pipe = make_pipeline(fill, DecisionTreeRegressor(random_state=0)).fit(X, np.arange(8.0))
    with pytest.raises(ValueError, match="different for the same row if other rows stand beside"):
        FastPDExplainer().fit(pipe, X)


class Doubled:
    """Two outputs an input: the input, and whether it is above a bound."""

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return np.column_stack([X, X > 2.5])

    def get_feature_names_out(self, input_features=None):
        return [f"d{j}" for j in range(2 * self.n_features_in_)]


def test_registered_transformers(numbers, monkeypatch):
    from fastpd_sklearn.forest import _transformers

    monkeypatch.setattr(_transformers, "_RULES", dict(_transformers._RULES))
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = Pipeline([("twice", Doubled()), ("trees", DecisionTreeRegressor(max_depth=4))])
    pipe.fit(X, y)
    with pytest.warns(UserWarning, match="'twice' mixes all 3 columns"):
        assert FastPDExplainer().fit(pipe, X).terms_ == (("twice(x0, x1, x2)",),)
    register_transformer(Doubled, lambda step: [*range(3), *range(3)], monotone=True)
    explainer = FastPDExplainer(output="component", max_order=None).fit(pipe, X[:20])
    assert explainer.terms_[:3] == (("x0",), ("x1",), ("x2",))
    check_curves(explainer, pipe, X[:20], True)
    register_transformer(Doubled, lambda step: [1, 1, 2, 0, 1, 2])
    with pytest.raises(
        ValueError, match=r"column 0 .* made of \[1\] by step 'twice', changes when"
    ):
        FastPDExplainer().fit(pipe, X)
    register_transformer(Doubled)
    with pytest.raises(ValueError, match="step 'twice' gives 6 columns, and is declared to give 3"):
        FastPDExplainer().fit(pipe, X)
    register_transformer(Doubled, lambda step: [0, 1, 2, 0, 1, 3])
    with pytest.raises(ValueError, match="registered for Doubled name column 3"):
        FastPDExplainer().fit(pipe, X)
    with pytest.raises(TypeError, match="should be a class of transformers"):
        register_transformer(Doubled())
    with pytest.raises(TypeError, match="should be a function from a fitted transformer"):
        register_transformer(Doubled, [0, 1])


def test_a_wrong_promise_of_monotony_gives_no_curve(numbers, monkeypatch):
    from fastpd_sklearn.forest import _transformers

    class Bump(Doubled):
        def transform(self, X):
            return np.sin(5.0 * X)

    monkeypatch.setattr(_transformers, "_RULES", dict(_transformers._RULES))
    register_transformer(Bump, monotone=True)
    X = np.nan_to_num(numbers[0])
    pipe = make_pipeline(Bump(), DecisionTreeRegressor(max_depth=4)).fit(X, X[:, 0])
    result = FastPDExplainer().fit(pipe, X).partial_dependence(0)
    with pytest.raises(AttributeError, match=r"\['bump'\] make of it is declared to be monotone"):
        _ = result.curve


def test_what_has_no_curve_says_why(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = make_pipeline(SplineTransformer(), DecisionTreeRegressor(max_depth=3)).fit(X, y)
    result = FastPDExplainer().fit(pipe, X).partial_dependence(0)
    assert "curve" not in result
    message = r"no exact curve of 0, since step 'splinetransformer' .*pass .* points .* by grid"
    with pytest.raises(AttributeError, match=message):
        _ = result.curve
    with pytest.raises(KeyError, match=message):
        result["curve"]
    with pytest.raises(AttributeError, match="other"):
        _ = result.other
    assert pickle.loads(pickle.dumps(result)).no_curve == result.no_curve


def test_curve_where_a_step_takes_some_numbers_only():
    """Of numbers that are not positive there is no Box-Cox transform."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(size=(60, 2))
    pipe = make_pipeline(PowerTransformer("box-cox"), RandomForestRegressor(3, random_state=0))
    pipe.fit(X, X[:, 0])
    explainer = FastPDExplainer().fit(pipe, X)
    curve = explainer.partial_dependence(0).curve
    assert len(curve.breaks) > 10
    assert curve.breaks[0] > 0
    assert curve.missing is None or np.isfinite(curve.missing).all()
    points = np.concatenate([curve.breaks, np.nextafter(curve.breaks, 0), X[:, 0]])
    assert_allclose(curve(points)[0], brute_dependence(pipe, X, 0, points))


# -- the rest ------------------------------------------------------------------------------


def test_pickle_and_detach(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    explainer = FastPDExplainer(output="shap").fit(pipe, data)
    before, curve = explainer.transform(data), explainer.partial_dependence("age").curve
    again = pickle.loads(pickle.dumps(explainer)).detach()
    assert_allclose(again.transform(data), before)
    assert_array_equal(again.partial_dependence("age").curve.breaks, curve.breaks)
    assert b"RandomForest" not in pickle.dumps(again)


def test_in_parts(data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    whole = FastPDExplainer(output="shap").fit(pipe, data)
    parts = FastPDExplainer(output="shap").partial_fit(pipe, data[:15])
    parts.partial_fit(pickle.loads(pickle.dumps(pipe)), data[15:])
    assert_array_equal(parts.transform(data), whole.transform(data))


def test_pipelines_within_pipelines(numbers):
    X, y = numbers
    model = RandomForestRegressor(3, random_state=0)
    nested = make_pipeline(
        SimpleImputer(), Pipeline([("in", make_pipeline(StandardScaler(), model))])
    )
    flat = make_pipeline(SimpleImputer(), StandardScaler(), model)
    found = FastPDExplainer(output="shap").fit(nested.fit(X, y), X).transform(X)
    assert_allclose(found, FastPDExplainer(output="shap").fit(flat.fit(X, y), X).transform(X))
    alone = Pipeline([("model", model)]).fit(np.nan_to_num(X), y)
    explainer = FastPDExplainer(output="shap").fit(alone, np.nan_to_num(X))
    direct = FastPDExplainer(output="shap").fit(alone[-1], np.nan_to_num(X))
    assert_array_equal(explainer.transform(X[:1] * 0), direct.transform(X[:1] * 0))
    assert len(explainer.partial_dependence(0).curve.breaks)


def test_errors_name_the_raw_column(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = make_pipeline(StandardScaler(), GradientBoostingRegressor(n_estimators=3)).fit(X, y)
    explainer = FastPDExplainer().fit(pipe, X)
    bad = X[:3].copy()
    bad[1, 0] = np.nan
    with pytest.raises(ValueError, match=r"NaN, in column 0 of the preprocessed X, .* of \[0\]"):
        explainer.transform(bad)


@pytest.mark.parametrize("explainer_class", [FastPDExplainer, VanillaPDExplainer])
def test_all_pairs(explainer_class, data, target):
    pipe = make_pipeline(preprocessing(), RandomForestRegressor(3, random_state=0))
    pipe.fit(data, target)
    explainer = explainer_class().fit(pipe, data[:10])
    result = explainer.pairwise_partial_dependence(["hours", "occupation"], grid_resolution=3)
    hours, occupation = result.grid_values
    for i, number in enumerate(hours):
        for j, label in enumerate(occupation):
            brute = pipe.predict(data[:10].assign(hours=number, occupation=label)).mean()
            assert_allclose(result.average[0, 0, i, j], brute)


def test_half_precision(numbers):
    X, y = (np.nan_to_num(numbers[0]) / 3).astype(np.float16), numbers[1]
    pipe = make_pipeline(StandardScaler(), RandomForestRegressor(3, random_state=0)).fit(X, y)
    result = FastPDExplainer().fit(pipe, X[:20]).partial_dependence(0)
    points = result.grid_values[0].astype(np.float16)
    assert_allclose(result.average[0], brute_dependence(pipe, X[:20], 0, points))
    with pytest.raises(AttributeError, match="since it is held in float16"):
        _ = result.curve


def test_values_that_cannot_be_told_apart(data, target):
    tagged = data.assign(tags=[["a", "b"]] * len(data))
    pre = make_column_transformer((StandardScaler(), ["hours"]))
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0)).fit(tagged, target)
    explainer = FastPDExplainer(output="shap").fit(pipe, tagged)
    assert not explainer.transform(tagged)[:, -1].any()
    assert explainer.partial_dependence("hours").average.std() > 0


def test_a_dropped_column_does_nothing(data, target):
    pre = ColumnTransformer([("hours", "passthrough", ["hours"]), ("sex", "drop", ["sex"])])
    pipe = make_pipeline(pre, RandomForestRegressor(3, random_state=0)).fit(data, target)
    explainer = FastPDExplainer(output="shap").fit(pipe, data)
    phi = explainer.transform(data)
    assert np.abs(phi[:, 1]).max() > 0.1
    assert not phi[:, [0, 2, 3, 4]].any()
    curve = explainer.partial_dependence("age").curve
    assert not len(curve.breaks)
    assert_allclose(curve([30.0]), explainer.intercept_[:, None])


class Selfmade:
    """A first step that says nothing of its columns."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.asarray(X)[:, ::-1]


def test_a_step_that_says_nothing(numbers):
    X, y = np.nan_to_num(numbers[0]), numbers[1]
    pipe = make_pipeline(Selfmade(), RandomForestRegressor(3, random_state=0)).fit(X, y)
    with pytest.warns(UserWarning, match="'selfmade' mixes all"):
        explainer = FastPDExplainer().fit(pipe, X)
    assert_allclose(explainer.transform(X)[:, 0], pipe.predict(X), atol=1e-12)
    with pytest.raises(ValueError, match=r"Pipeline does not say how many columns.*call\s*fit"):
        PathDependentExplainer().fit(pipe)
    union = make_pipeline(
        make_union(Selfmade(), StandardScaler()), RandomForestRegressor(3, random_state=0)
    ).fit(X, y)
    message = "step 'featureunion__selfmade', a Selfmade, does not say how many columns it gives"
    with pytest.raises(ValueError, match=message):
        FastPDExplainer().fit(union, X)
