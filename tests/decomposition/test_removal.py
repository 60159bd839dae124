"""Predictions without some features against the definition, by the models' own predictions."""

import pickle

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import DMatrix, XGBClassifier, XGBRegressor, train

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.decomposition import FeatureRemover
from fastpd_sklearn.decomposition._removal_engines import BLOCK_CELLS, BLOCK_ROWS

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, size=(60, 4)) / 2.0
Y = X[:, 0] * X[:, 1] + X[:, 2] + (X[:, 1] > 1) * X[:, 3]
BINARY = np.where(Y > 3, "yes", "no")
LABELS = np.array(["low", "mid", "top"])[np.digitize(Y, [2.0, 4.0])]
WEIGHTS = RNG.integers(0, 4, size=60).astype(float)
ROWS = X[:7] + 0.25


def without(respond, background, weights, rows, removed):
    """Mean response to each row with the removed columns of each row of the background."""
    mixed = np.repeat(rows, len(background), axis=0)
    mixed[:, removed] = np.tile(background, (len(rows), 1))[:, removed]
    response = np.asarray(respond(mixed), np.float64)
    response = response.reshape(len(rows), len(background), *response.shape[1:])
    return np.average(response, axis=1, weights=weights)


REMOVED = [[], [0], [3], [0, 1], [1, 2, 3], [0, 1, 2, 3]]
REGRESSORS = [
    HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2),
    RandomForestRegressor(4, random_state=0),
    BaggingRegressor(n_estimators=3, random_state=0),
    MultiOutputRegressor(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=2)),
    Ridge(),
]
CLASSIFIERS = [
    HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=2),
    GradientBoostingClassifier(n_estimators=3),
    RandomForestClassifier(3, random_state=0),
    DecisionTreeClassifier(),
    XGBClassifier(n_estimators=4, max_depth=3, n_jobs=1),
    LGBMClassifier(n_estimators=4, min_child_samples=2, verbose=-1, n_jobs=1),
    LogisticRegression(),
]


def name(model):
    return type(model).__name__


@pytest.mark.parametrize("removed", REMOVED, ids=str)
@pytest.mark.parametrize("model", REGRESSORS, ids=name)
def test_regressors(model, removed):
    y = np.column_stack([Y, -X[:, 3] * X[:, 2]]) if "Multi" in name(model) else Y
    model = clone(model).fit(X, y)
    remover = FeatureRemover(features=removed).fit(model, X, sample_weight=WEIGHTS)
    expected = without(model.predict, X, WEIGHTS, ROWS, removed)
    np.testing.assert_allclose(remover.predict(ROWS), expected, atol=1e-10)
    assert is_regressor(remover)
    assert not hasattr(remover, "predict_proba")
    assert not hasattr(remover, "decision_function")


@pytest.mark.parametrize("labels", [BINARY, LABELS], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS, ids=name)
def test_mean_probabilities(model, labels):
    model = clone(model)
    codes = np.unique(labels, return_inverse=True)[1]
    model.fit(X, codes if isinstance(model, XGBClassifier) else labels)
    for removed in REMOVED:
        remover = FeatureRemover(features=removed, scale="response")
        remover.fit(model, X, sample_weight=WEIGHTS)
        expected = without(model.predict_proba, X, WEIGHTS, ROWS, removed)
        found = remover.predict_proba(ROWS)
        np.testing.assert_allclose(found, expected, atol=1e-6 if "XGB" in name(model) else 1e-12)
        assert np.array_equal(remover.classes_, model.classes_)
        clear = np.sort(expected, axis=1)[:, -1] - np.sort(expected, axis=1)[:, -2] > 1e-6
        winner = model.classes_[expected.argmax(axis=1)]
        assert np.array_equal(remover.predict(ROWS)[clear], winner[clear])
    assert is_classifier(remover)


@pytest.mark.parametrize("labels", [BINARY, LABELS], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS[:2], ids=name)
def test_mean_margins(model, labels):
    model = clone(model).fit(X, labels)
    for removed in REMOVED:
        remover = FeatureRemover(features=removed).fit(model, X, sample_weight=WEIGHTS)
        margins = without(model.decision_function, X, WEIGHTS, ROWS, removed)
        np.testing.assert_allclose(remover.decision_function(ROWS), margins, atol=1e-12)
        if margins.ndim == 1:
            yes = 1 / (1 + np.exp(-margins))
            expected = np.column_stack([1 - yes, yes])
        else:
            expected = np.exp(margins) / np.exp(margins).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(remover.predict_proba(ROWS), expected, atol=1e-12)


def test_the_margins_of_xgboost():
    model = XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, BINARY == "yes")
    remover = FeatureRemover(features=[1]).fit(model, X)
    expected = without(lambda Z: model.predict(Z, output_margin=True), X, None, ROWS, [1])
    np.testing.assert_allclose(remover.decision_function(ROWS), expected, atol=1e-6)


@pytest.mark.parametrize("scale", ["raw", "response"])
def test_predictions_behind_a_link(scale):
    model = XGBRegressor(n_estimators=5, objective="count:poisson", n_jobs=1).fit(X, Y)
    remover = FeatureRemover(features=[0, 2], scale=scale).fit(model, X)
    if scale == "response":
        expected = without(model.predict, X, None, ROWS, [0, 2])
    else:
        expected = np.exp(without(lambda Z: np.log(model.predict(Z)), X, None, ROWS, [0, 2]))
    np.testing.assert_allclose(remover.predict(ROWS), expected, rtol=1e-5)


def test_classifiers_without_probabilities():
    model = LinearSVC().fit(X, LABELS)
    remover = FeatureRemover(features=[1]).fit(model, X)
    margins = without(model.decision_function, X, None, ROWS, [1])
    np.testing.assert_allclose(remover.decision_function(ROWS), margins, atol=1e-12)
    assert np.array_equal(remover.predict(ROWS), model.classes_[margins.argmax(axis=1)])
    assert not hasattr(remover, "predict_proba")


def test_votes_of_adaboost():
    model = AdaBoostClassifier(n_estimators=4, random_state=0).fit(X, LABELS)
    margins = without(model.decision_function, X, None, ROWS, [1])
    remover = FeatureRemover(features=[1]).fit(model, X)
    np.testing.assert_allclose(remover.decision_function(ROWS), margins, atol=1e-12)
    averaged = FeatureRemover(features=[1], scale="response").fit(model, X)
    expected = without(model.predict_proba, X, None, ROWS, [1])
    np.testing.assert_allclose(averaged.predict_proba(ROWS), expected, atol=1e-12)


def test_a_booster_predicts_what_it_predicts():
    booster = train({"objective": "binary:logistic", "nthread": 1}, DMatrix(X, BINARY == "yes"), 4)
    remover = FeatureRemover(features=[2], scale="response").fit(booster, X)
    expected = without(lambda Z: booster.predict(DMatrix(Z)), X, None, ROWS, [2])
    np.testing.assert_allclose(remover.predict(ROWS), expected, atol=1e-6)


# ---------------------------------------------------------------- deep and odd data


@pytest.fixture(scope="module")
def deep():
    """A forest of trees that are more than 30 deep, and its data."""
    rng = np.random.default_rng(0)
    rows = rng.standard_cauchy(size=(1500, 6))  # whose tails are cut off bit by bit
    y = rows[:, 0] + np.tanh(rows[:, 1] * rows[:, 2]) + rng.normal(size=1500)
    model = ExtraTreesRegressor(3, random_state=0).fit(rows, y)
    assert min(tree.get_depth() for tree in model.estimators_) >= 30
    return model, rows


@pytest.mark.parametrize("removed", [[0], [1, 4], [0, 1, 2, 3]], ids=str)
def test_deep_trees(deep, removed):
    model, rows = deep
    weights = np.random.default_rng(1).uniform(size=len(rows))
    remover = FeatureRemover(features=removed).fit(model, rows, sample_weight=weights)
    expected = without(model.predict, rows, weights, rows[:6] + 0.01, removed)
    scale = np.abs(model.predict(rows)).max()
    np.testing.assert_allclose(remover.predict(rows[:6] + 0.01), expected, atol=1e-12 * scale)


def test_the_same_bits_for_any_number_of_threads(deep):
    model, rows = deep
    rows = np.tile(rows, (4, 1))  # more than one block
    one, two = (FeatureRemover(features=[0, 3], n_jobs=n).fit(model, rows) for n in (1, 2))
    assert np.array_equal(one.predict(rows), two.predict(rows))
    assert np.array_equal(one.predict(rows[-5:]), one.predict(rows)[-5:])


def test_missing_values_and_categories():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "city": pd.Categorical(rng.choice(["Bonn", "Kiel", "Ulm"], 80)),
            "age": np.where(rng.random(80) < 0.2, np.nan, rng.normal(size=80)),
            "pay": rng.normal(size=80),
        }
    )
    y = (frame["city"] == "Kiel") * frame["age"].fillna(2) + frame["pay"]
    model = HistGradientBoostingRegressor(
        max_iter=10, min_samples_leaf=2, categorical_features="from_dtype"
    ).fit(frame, y)
    for removed in (["city"], ["age"], ["city", "age"]):
        remover = FeatureRemover(features=removed).fit(model, frame)
        expected = []
        for i in range(5):
            mixed = frame.copy()
            for column in set(frame) - set(removed):
                mixed[column] = frame[column].iloc[[i] * 80].to_numpy()
                mixed[column] = mixed[column].astype(frame[column].dtype)
            expected.append(model.predict(mixed).mean())
        np.testing.assert_allclose(remover.predict(frame[:5]), expected, atol=1e-12)
        assert set(remover.removed_features_) == set(removed)


def test_many_values_are_averaged_in_blocks():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1500, 3))
    model = HistGradientBoostingClassifier(max_iter=20, max_leaf_nodes=200, min_samples_leaf=1)
    model.fit(rows, rows[:, 0] * rows[:, 1] > 0)
    remover = FeatureRemover(features=[0, 1], scale="response").fit(model, rows)
    size = remover._fitted.explainer._fitted.engine._weights.size
    assert size * 2 * len(rows) > BLOCK_CELLS
    some = np.r_[0:3, 1497:1500]
    expected = without(model.predict_proba, rows, None, rows[some], [0, 1])
    np.testing.assert_allclose(
        remover.predict_proba(np.tile(rows, (2, 1)))[some + 1500], expected, atol=1e-12
    )
    linear = LogisticRegression().fit(rows, rows[:, 0] > 0)
    called = FeatureRemover(features=[0]).fit(linear, rows)
    assert len(rows) ** 2 > BLOCK_ROWS
    expected = without(linear.predict_proba, rows, None, rows[some], [0])
    np.testing.assert_allclose(called.predict_proba(rows[:200])[:3], expected[:3], atol=1e-12)


# ---------------------------------------------------------------- what removal means


def test_it_is_the_sum_of_the_components_without_the_feature():
    model = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2).fit(X, Y)
    explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
    kept = [k for k, term in enumerate(explainer.terms_) if "x1" not in term]
    expected = explainer.intercept_[0] + explainer.transform(ROWS)[:, kept].sum(axis=1)
    found = FeatureRemover(features=["x1"]).fit(model, X).predict(ROWS)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_removed_columns_do_not_matter():
    model = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    remover = FeatureRemover(features=[0, 2]).fit(model, X)
    other = ROWS.copy()
    other[:, [0, 2]] = 1e6
    assert np.array_equal(remover.predict_proba(ROWS), remover.predict_proba(other))


def test_the_mean_of_a_response_stays():
    """On independent columns, all combinations once, averaging a column leaves the mean."""
    grid = np.array(np.meshgrid([0, 1, 2.0], [0, 1.0], [0, 1, 2.0])).reshape(3, -1).T
    model = GradientBoostingClassifier(n_estimators=5).fit(grid, grid[:, 0] * grid[:, 1] > 0)
    mean = model.predict_proba(grid)[:, 1].mean()
    averaged = FeatureRemover(features=[0], scale="response").fit(model, grid)
    assert averaged.predict_proba(grid)[:, 1].mean() == pytest.approx(mean, abs=1e-12)


# ---------------------------------------------------------------- at home in scikit-learn


def test_groups_and_pipelines_on_raw_columns():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "job": rng.choice(["baker", "clerk", "smith"], 90),
            "zip": rng.integers(0, 5, 90).astype(float),
            "lat": rng.normal(size=90),
            "age": rng.normal(size=90),
        }
    )
    y = (frame["job"] == "baker") * frame["age"] + frame["lat"] * frame["zip"]
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    pipeline = make_pipeline(encode, RandomForestRegressor(4, random_state=0))
    remover = FeatureRemover(
        pipeline, features=["job", "place"], groups={"place": ["zip", "lat"]}
    ).fit(frame, y)
    expected = [
        remover.estimator_.predict(frame.assign(age=age)).mean() for age in frame["age"][:5]
    ]
    np.testing.assert_allclose(remover.predict(frame[:5]), expected, atol=1e-12)
    assert remover.removed_features_ == ("job", "zip", "lat")
    assert list(remover.feature_names_in_) == list(frame)


def test_columns_that_a_step_mixes_go_together():
    mixing = make_column_transformer((PCA(2), [0, 1, 2]), remainder="passthrough")
    pipeline = make_pipeline(mixing, RandomForestRegressor(3, random_state=0)).fit(X, Y)
    with pytest.raises(ValueError, match="part of the group 'columntransformer__pca"):
        FeatureRemover(features=[0]).fit(pipeline, X)
    groups = {"mixed": [0, 1, 2]}
    remover = FeatureRemover(features=["mixed"], groups=groups).fit(pipeline, X)
    expected = without(pipeline.predict, X, None, ROWS, [0, 1, 2])
    np.testing.assert_allclose(remover.predict(ROWS), expected, atol=1e-12)


def test_searches_over_features():
    remover = FeatureRemover(RandomForestClassifier(5, random_state=0))
    grid = {"features": [[], [0], [0, 1, 2, 3]], "scale": ["raw", "response"]}
    search = GridSearchCV(remover, grid, cv=3, scoring="roc_auc").fit(X, BINARY)
    scores = search.cv_results_["mean_test_score"]
    assert scores[4] == pytest.approx(0.5)  # nothing is known of a row
    plain = cross_val_score(
        RandomForestClassifier(5, random_state=0), X, BINARY, scoring="roc_auc", cv=3
    )
    assert scores[0] == pytest.approx(plain.mean())
    assert scores[2] == scores[3] != scores[0]  # a forest has no link
    pipeline = make_pipeline(StandardScaler(), FeatureRemover(Ridge(), features=[0]))
    assert np.all(cross_val_score(pipeline, X, Y, cv=3) < cross_val_score(Ridge(), X, Y, cv=3))


def test_both_forms_of_fit():
    model = RandomForestRegressor(3, random_state=0)
    fitted = clone(model).fit(X, Y)
    expected = FeatureRemover(features=[0]).fit(fitted, X).predict(ROWS)
    assert np.array_equal(FeatureRemover(model, features=[0]).fit(X, Y).predict(ROWS), expected)
    frozen = FeatureRemover(FrozenEstimator(fitted), features=[0])
    assert np.array_equal(frozen.fit(X).predict(ROWS), expected)
    assert frozen.estimator_ is fitted
    with pytest.warns(UserWarning, match="FrozenEstimator"):
        FeatureRemover(fitted, features=[0]).fit(X, Y)


def test_weights_go_to_the_fit_and_the_background():
    model = DecisionTreeRegressor(max_depth=3, random_state=0)
    repeated = np.repeat(np.arange(60), WEIGHTS.astype(int))
    weighted = FeatureRemover(model, features=[1]).fit(X, Y, sample_weight=WEIGHTS)
    again = FeatureRemover(model, features=[1]).fit(X[repeated], Y[repeated])
    np.testing.assert_allclose(weighted.predict(ROWS), again.predict(ROWS), rtol=1e-6)
    with config_context(enable_metadata_routing=True):
        remover = FeatureRemover(model.set_fit_request(sample_weight=True), features=[1])
        routed = make_pipeline(MaxAbsScaler(), remover.set_fit_request(sample_weight=True))
        routed.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(routed.predict(ROWS), weighted.predict(ROWS), rtol=1e-6)


def test_scores():
    model = RandomForestClassifier(5, random_state=0).fit(X, LABELS)
    remover = FeatureRemover(features=[0]).fit(model, X)
    assert remover.score(X, LABELS) == np.mean(remover.predict(X) == LABELS)
    right = (remover.predict(X) == LABELS).astype(float)
    assert remover.score(X, LABELS, WEIGHTS) == pytest.approx(np.average(right, weights=WEIGHTS))
    ridge = Ridge().fit(X, Y)
    assert FeatureRemover().fit(ridge, X).score(X, Y) == pytest.approx(ridge.score(X, Y))


@pytest.mark.parametrize("scale", ["raw", "response"])
def test_pickles_and_detached_removers_predict_the_same(scale):
    model = GradientBoostingClassifier(n_estimators=3).fit(X, BINARY)
    remover = FeatureRemover(features=[0, 1], scale=scale).fit(model, X, sample_weight=WEIGHTS)
    expected = remover.predict_proba(ROWS)
    again = pickle.loads(pickle.dumps(remover))
    assert np.array_equal(again.predict_proba(ROWS), expected)
    assert np.array_equal(again.estimator_.predict(X), model.predict(X))
    assert np.array_equal(again.detach().predict_proba(ROWS), expected)
    assert not hasattr(again, "estimator_")
    called = FeatureRemover(features=[0]).fit(LogisticRegression().fit(X, BINARY), X)
    with pytest.raises(TypeError, match="calls this model"):
        called.detach()


def test_the_output_of_transformers_is_no_matter():
    pytest.importorskip("pandas")
    model = RandomForestRegressor(3, random_state=0).fit(X, Y)
    remover = FeatureRemover(features=[0]).fit(model, X)
    with config_context(transform_output="pandas"):
        assert isinstance(remover.predict(ROWS), np.ndarray)


def test_one_class():
    one = HistGradientBoostingClassifier(max_iter=2).fit(X, np.repeat("all", 60))
    assert set(FeatureRemover(features=[0]).fit(one, X).predict(ROWS)) == {"all"}


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"features": None}, TypeError, "features=None"),
        ({"features": ["x9"]}, ValueError, "unknown feature 'x9'"),
        ({"features": [7]}, ValueError, "column 7"),
        ({"features": [0], "groups": {"ab": [0, 1]}}, ValueError, "part of the group 'ab'"),
        ({"scale": "margin"}, ValueError, "scale='margin'"),
        ({"n_jobs": 0}, ValueError, "n_jobs=0"),
    ],
)
def test_bad_parameters(params, error, message):
    model = RandomForestRegressor(2, random_state=0).fit(X, Y)
    with pytest.raises(error, match=message):
        FeatureRemover(**params).fit(model, X)


@pytest.mark.parametrize("target", [BINARY, LABELS], ids=["binary", "several"])
@pytest.mark.parametrize("removed", [[], [0], [1, 3]], ids=str)
def test_models_that_mix_margins(removed, target):
    """Margins of several models are no response of the whole: probabilities are averaged."""
    boosting = GradientBoostingClassifier(n_estimators=4, max_depth=2, random_state=0)
    for model in (
        CalibratedClassifierCV(boosting, cv=2),
        VotingClassifier([("a", boosting), ("b", clone(boosting))], voting="soft"),
    ):
        model.fit(X, target)
        found = FeatureRemover(features=removed).fit(model, X, sample_weight=WEIGHTS)
        truth = without(model.predict_proba, X, WEIGHTS, ROWS, removed)
        assert_allclose(found.predict_proba(ROWS), truth, rtol=0, atol=1e-12)
        assert_array_equal(found.predict(ROWS), model.classes_[truth.argmax(axis=1)])
        assert not hasattr(found, "decision_function")


def test_bad_models():
    with pytest.raises(TypeError, match="outlier_detector"):
        FeatureRemover().fit(IsolationForest(n_estimators=3).fit(X), X)
    with pytest.raises(ValueError, match="scale='response'"):
        FeatureRemover(scale="raw").fit(Ridge().fit(X, Y), X)
    mixed = CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=2), cv=2)
    with pytest.raises(ValueError, match="scale='response'"):
        FeatureRemover(scale="raw").fit(mixed.fit(X, BINARY), X)
    several = RandomForestClassifier(2).fit(X, np.column_stack([BINARY, LABELS]))
    with pytest.raises(ValueError, match="one target"):
        FeatureRemover().fit(several, X)
    with pytest.raises(NotFittedError):
        FeatureRemover(Ridge()).predict(X)
    with pytest.raises(ValueError, match="lacks the background"):
        FeatureRemover().fit(Ridge().fit(X, Y))


def test_rows_are_checked():
    remover = FeatureRemover(features=[0]).fit(Ridge().fit(X, Y), X)
    with pytest.raises(ValueError, match="features"):
        remover.predict(X[:, :3])
    broken = ROWS.copy()
    broken[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        remover.predict(broken)


@pytest.mark.parametrize("features", ["sex", ["sex"], ("sex", "age"), np.array([0])])
def test_features_in_place_of_the_estimator_are_refused(features):
    X = np.random.default_rng(0).normal(size=(20, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"is no model; name .* by FeatureRemover\(features="):
        FeatureRemover(features).fit(model, X)
