"""Explainers among scikit-learn's own tools: pipelines, searches, routing, names, output."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError, UnsetMetadataPassedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import estimator_html_repr, get_tags

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer

NAMES = ["age", "bmi", "bp", "sex"]


def tree(**params):
    return DecisionTreeRegressor(max_depth=3, random_state=0, **params)


def xgb(**params):
    xgboost = pytest.importorskip("xgboost")
    return xgboost.XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1, **params)


# -- pipelines -----------------------------------------------------------------------------


@pytest.fixture
def clusters(explainer_class, X, y):
    """People in clusters of those whose predictions have the same reasons."""
    return make_pipeline(
        StandardScaler(),
        explainer_class(xgb(), output="shap"),
        KMeans(3, n_init=1, random_state=0),
    ).fit(X, y)


def test_in_the_middle_of_a_pipeline(clusters, X, y):
    scaled = StandardScaler().fit_transform(X)
    model = xgb().fit(scaled, y)
    phi = clusters[:-1].transform(X)
    assert_allclose(
        phi, type(clusters[1])(output="shap").fit(model, scaled).transform(scaled), atol=1e-12
    )
    assert_array_equal(
        clusters.predict(X), KMeans(3, n_init=1, random_state=0).fit(phi).predict(phi)
    )


def test_a_pipeline_is_cloned_and_pickled(clusters, X, y):
    labels = clusters.predict(X)
    assert_array_equal(clone(clusters).fit(X, y).predict(X), labels)
    opened = pickle.loads(pickle.dumps(clusters))
    assert_array_equal(opened.predict(X), labels)
    assert_allclose(opened[:-1].transform(X), clusters[:-1].transform(X))
    assert_array_equal(opened[1].estimator_.predict(X), clusters[1].estimator_.predict(X))


def test_a_search_over_the_parameters_of_the_explained_model(clusters, X, y):
    step = clusters.steps[1][0]
    grid = {
        f"{step}__estimator__max_depth": [1, 3],
        f"{step}__output": ["pd", "component"],
        "kmeans__n_clusters": [2],
    }
    search = GridSearchCV(clusters, grid, cv=2, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)
    best = search.best_estimator_
    depth = search.best_params_[f"{step}__estimator__max_depth"]
    assert best[1].estimator_.max_depth == depth
    scores = search.cv_results_["mean_test_score"].reshape(2, 2)  # by depth and output
    assert (abs(scores[0] - scores[1]) > 1e-6).all()


def test_as_the_last_step(explainer_class, X, y):
    pipeline = make_pipeline(
        StandardScaler(), explainer_class(tree(), output="component", max_order=None)
    )
    values = pipeline.fit_transform(X, y)
    assert_allclose(values, pipeline.transform(X))
    total = pipeline[-1].intercept_ + values.sum(axis=1)
    truth = pipeline[-1].estimator_.predict(StandardScaler().fit_transform(X))
    assert_allclose(total, truth, rtol=0, atol=1e-12)
    names = pipeline.get_feature_names_out(NAMES)
    assert names[:4].tolist() == NAMES
    assert set(":".join(names[4:]).split(":")) <= set(NAMES)


def test_in_a_feature_union(explainer_class, X, y):
    union = FeatureUnion([("raw", "passthrough"), ("shap", explainer_class(tree(), output="shap"))])
    values = union.fit_transform(X, y)
    assert_array_equal(values[:, :4], X)
    truth = explainer_class(output="shap").fit(tree().fit(X, y), X).transform(X)
    assert_allclose(values[:, 4:], truth)
    assert union.get_feature_names_out(NAMES)[4:].tolist() == [f"shap__{n}" for n in NAMES]
    scores = cross_validate(make_pipeline(union, Ridge()), X, y, cv=2, error_score="raise")
    assert np.isfinite(scores["test_score"]).all()


def test_in_a_column_transformer(explainer_class, frame, X, y):
    data = frame(X, NAMES)
    transformer = ColumnTransformer(
        [("reasons", explainer_class(tree()), ["bmi", "bp"]), ("rest", "passthrough", ["sex"])]
    )
    values = np.asarray(transformer.fit_transform(data, y))
    truth = explainer_class().fit(tree().fit(X[:, 1:3], y), X[:, 1:3]).transform(X[:, 1:3])
    assert_allclose(values[:, :2].astype(float), truth)
    expected = ["reasons__bmi", "reasons__bp", "rest__sex"]
    assert transformer.get_feature_names_out().tolist() == expected
    selected = ColumnTransformer([("all", explainer_class(tree()), make_column_selector())])
    if hasattr(data, "iloc"):
        assert selected.fit_transform(data, y).shape == (30, 4)


def test_a_model_of_explanations_scores_out_of_sample(interventional, X, y):
    additive = make_pipeline(
        interventional(tree(), output="component", max_order=1), LinearRegression()
    )
    scores = cross_validate(additive, X, y, cv=3, error_score="raise")
    assert np.isfinite(scores["test_score"]).all()


# -- names and output ----------------------------------------------------------------------


@pytest.mark.parametrize("container", ["pandas", "polars"])
def test_set_output(explainer_class, container, frame, X, y):
    library = pytest.importorskip(container)
    data = frame(X, NAMES)
    explainer = explainer_class(tree()).set_output(transform=container).fit(data, y)
    shown = explainer.transform(data)
    assert isinstance(shown, library.DataFrame)
    assert list(shown.columns) == NAMES == explainer.get_feature_names_out().tolist()
    plain = explainer.set_output(transform="default").transform(data)
    assert isinstance(plain, np.ndarray)
    assert_array_equal(shown.to_numpy(), plain)
    again = clone(explainer.set_output(transform=container)).fit_transform(data, y)
    assert isinstance(again, library.DataFrame)


def test_the_index_of_a_frame_is_kept(explainer_class, X, y):
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(X, columns=NAMES, index=[f"row {i}" for i in range(len(X))])
    shown = explainer_class(tree()).set_output(transform="pandas").fit_transform(data, y)
    assert shown.index.equals(data.index)
    pipeline = make_pipeline(StandardScaler(), explainer_class(tree()), Ridge())
    pipeline.set_output(transform="pandas").fit(data, y)
    assert pipeline[-1].feature_names_in_.tolist() == NAMES


# Vanilla's model itself warns as well.
@pytest.mark.filterwarnings("ignore:X .* feature names, but DecisionTreeRegressor")
def test_columns_are_checked_in_the_words_of_scikit_learn(explainer_class, frame, X, y):
    name = explainer_class.__name__
    explainer = explainer_class(tree()).fit(frame(X, NAMES), y)
    assert explainer.n_features_in_ == 4
    assert explainer.feature_names_in_.tolist() == NAMES
    assert explainer.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="The feature names should match those that were passed"):
        explainer.transform(frame(X[:, ::-1], NAMES[::-1]))
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were"):
        explainer.transform(frame(X[:, ::-1], NAMES[::-1]))
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- height"):
        explainer.transform(frame(X, [*NAMES[:3], "height"]))
    with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing:\n- sex"):
        explainer.transform(frame(X[:, :3], NAMES[:3]))
    message = f"X has 3 features, but {name} is expecting 4 features as input"
    with pytest.raises(ValueError, match=message):
        explainer_class(tree()).fit(X, y).transform(X[:, :3])
    message = f"X does not have valid feature names, but {name} was fitted with feature names"
    with pytest.warns(UserWarning, match=message):
        explainer.transform(X)
    unnamed = explainer_class(tree()).fit(X, y)
    message = f"X has feature names, but {name} was fitted without feature names"
    with pytest.warns(UserWarning, match=message):
        unnamed.transform(frame(X, NAMES))


def test_names_of_the_output(explainer_class, X, y):
    explainer = explainer_class(tree(), features=[0, (1, 2)])
    with pytest.raises(NotFittedError, match=f"This {explainer_class.__name__} instance is not"):
        explainer.get_feature_names_out()
    explainer.fit(X, y)
    assert explainer.get_feature_names_out().tolist() == ["x0", "x1:x2"]
    assert explainer.get_feature_names_out(NAMES).tolist() == ["age", "bmi:bp"]
    with pytest.raises(ValueError, match="input_features should have length equal to number of"):
        explainer.get_feature_names_out(NAMES[:2])
    pd = pytest.importorskip("pandas")
    explainer.fit(pd.DataFrame(X, columns=NAMES), y)
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        explainer.get_feature_names_out(NAMES[::-1])


def test_html(explainer_class, X, y):
    explainer = explainer_class(xgb(), output="shap")
    for text in (estimator_html_repr(explainer), explainer.fit(X, y)._repr_html_()):
        assert explainer_class.__name__ in text
        assert "XGBRegressor" in text
    shown = estimator_html_repr(make_pipeline(StandardScaler(), explainer))
    assert "StandardScaler" in shown
    assert "XGBRegressor" in shown


def test_tags_follow_the_model(explainer_class, X, y):
    for model in (tree(), RandomForestRegressor(2), LinearRegression()):
        tags, inner = get_tags(explainer_class(model)), get_tags(model)
        assert tags.input_tags.allow_nan == inner.input_tags.allow_nan
        assert tags.input_tags.sparse == inner.input_tags.sparse
        assert tags.target_tags.required
        assert tags.transformer_tags is not None
        assert tags.estimator_type is None
    frozen = FrozenEstimator(tree().fit(X, y))
    assert not get_tags(explainer_class(frozen)).target_tags.required


# -- metadata routing ----------------------------------------------------------------------

WEIGHTS = np.arange(30) % 3.0


class Recorder(RegressorMixin, BaseEstimator):
    """A tree that keeps what its fit was given."""

    def fit(self, X, y, sample_weight=None, offset=None):
        self.tree_ = tree().fit(X, y, sample_weight)
        self.got_ = {"sample_weight": sample_weight, "offset": offset}
        return self

    def predict(self, X):
        return self.tree_.predict(X)


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


def test_without_routing_other_arguments_are_refused(explainer_class, X, y):
    message = r"Passing extra keyword arguments to .*\.fit is only supported if"
    with pytest.raises(ValueError, match=message):
        explainer_class(tree()).fit(X, y, offset=1)
    with pytest.raises(ValueError, match=message):
        explainer_class().fit(tree().fit(X, y), X, offset=1)


def test_without_routing_weights_go_to_the_step(explainer_class, X, y):
    pipeline = make_pipeline(StandardScaler(), explainer_class(tree()))
    step = pipeline.steps[1][0]
    pipeline.fit(X, y, **{f"{step}__sample_weight": WEIGHTS})
    scaled = StandardScaler().fit_transform(X)
    truth = explainer_class(tree()).fit(scaled, y, sample_weight=WEIGHTS)
    assert_allclose(pipeline.transform(X), truth.transform(scaled))


def test_without_routing_weights_go_to_the_last_step_of_a_pipeline(X, y):
    def pipeline():
        return make_pipeline(StandardScaler(), make_pipeline(tree()))

    explainer = VanillaPDExplainer(pipeline()).fit(X, y, sample_weight=WEIGHTS)
    weights = {"pipeline__decisiontreeregressor__sample_weight": WEIGHTS}
    truth = VanillaPDExplainer().fit(pipeline().fit(X, y, **weights), X, sample_weight=WEIGHTS)
    assert_allclose(explainer.transform(X), truth.transform(X))
    with pytest.raises(TypeError, match="the fit of KNeighborsRegressor takes no weights"):
        VanillaPDExplainer(make_pipeline(KNeighborsRegressor())).fit(X, y, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
def test_weights_that_the_model_requests(explainer_class, X, y):
    model = tree().set_fit_request(sample_weight=True)
    explainer = explainer_class(model).fit(X, y, sample_weight=WEIGHTS)
    fitted = tree().fit(X, y, sample_weight=WEIGHTS)
    truth = explainer_class().fit(fitted, X, sample_weight=WEIGHTS)
    assert_allclose(explainer.transform(X), truth.transform(X))


@pytest.mark.usefixtures("routing")
def test_weights_that_the_model_does_not_want_weigh_the_background_alone(explainer_class, X, y):
    model = tree().set_fit_request(sample_weight=False)
    explainer = explainer_class(model).fit(X, y, sample_weight=WEIGHTS)
    truth = explainer_class().fit(tree().fit(X, y), X, sample_weight=WEIGHTS)
    assert_allclose(explainer.transform(X), truth.transform(X))
    assert_allclose(explainer.intercept_, truth.intercept_)


@pytest.mark.usefixtures("routing")
def test_weights_about_which_the_model_says_nothing(explainer_class, X, y):
    with pytest.raises(UnsetMetadataPassedError, match=r"\[sample_weight\] are passed but are not"):
        explainer_class(tree()).fit(X, y, sample_weight=WEIGHTS)
    explainer_class(tree()).fit(X, y)
    frozen = FrozenEstimator(tree().fit(X, y))
    explainer_class(frozen).fit(X, sample_weight=WEIGHTS)  # fits nothing
    explainer_class().fit(frozen, X, sample_weight=WEIGHTS)


@pytest.mark.usefixtures("routing")
def test_other_metadata(X, y):
    model = Recorder().set_fit_request(offset=True, sample_weight="exposure")
    explainer = VanillaPDExplainer(model).fit(X, y, offset=7, exposure=WEIGHTS)
    assert explainer.estimator_.got_["offset"] == 7
    assert explainer.estimator_.got_["sample_weight"] is WEIGHTS
    with pytest.raises(TypeError, match=r"fit got unexpected argument\(s\) {'nonsense'}"):
        VanillaPDExplainer(model).fit(X, y, nonsense=1)
    with pytest.raises(TypeError, match=r"fit got 'offset', which is for the fit of a model"):
        VanillaPDExplainer().fit(model.fit(X, y), X, offset=7)


@pytest.mark.usefixtures("routing")
def test_routing_through_a_pipeline_and_a_search(explainer_class, X, y):
    model = tree().set_fit_request(sample_weight=True)
    explainer = explainer_class(model).set_fit_request(sample_weight=True)
    pipeline = make_pipeline(
        StandardScaler(), explainer, Ridge().set_fit_request(sample_weight=False)
    )
    pipeline[0].set_fit_request(sample_weight=False)
    pipeline.fit(X, y, sample_weight=WEIGHTS)
    scaled = StandardScaler().fit_transform(X)
    fitted = tree().fit(scaled, y, sample_weight=WEIGHTS)
    truth = explainer_class().fit(fitted, scaled, sample_weight=WEIGHTS).transform(scaled)
    assert_allclose(pipeline[:-1].transform(X), truth)
    grid = {f"{pipeline.steps[1][0]}__estimator__max_depth": [1, 2]}
    scorer = get_scorer("r2").set_score_request(sample_weight=False)
    search = GridSearchCV(pipeline, grid, scoring=scorer, cv=2, error_score="raise")
    assert search.fit(X, y, sample_weight=WEIGHTS + 0.5).best_score_ <= 1.0


@pytest.mark.usefixtures("routing")
def test_requests_are_those_of_the_signature(explainer_class):
    explainer = explainer_class(tree()).set_fit_request(sample_weight=True)
    explainer.set_partial_fit_request(sample_weight=True)
    asked = explainer.get_metadata_routing()._serialize()
    assert asked["$self_request"]["fit"] == {"sample_weight": True}
    assert asked["$self_request"]["partial_fit"] == {"sample_weight": True}
    callers = {pair["caller"]: pair["callee"] for pair in asked["estimator"]["mapping"]}
    assert callers["fit"] == callers["partial_fit"] == "fit"
    assert clone(explainer).get_metadata_routing()._serialize() == asked


def test_a_multi_class_model_in_a_pipeline(explainer_class, X, labels):
    forest = RandomForestClassifier(3, max_depth=2, random_state=0)
    pipeline = make_pipeline(StandardScaler(), explainer_class(forest)).fit(X, labels)
    names = pipeline.get_feature_names_out(["a", "b", "c", "d"])
    assert names[:3].tolist() == ["a__high", "a__low", "a__mid"]
    assert pipeline.transform(X).shape == (30, 12)


def test_a_copy_explains_like_the_original(X, y):
    explainer = FastPDExplainer(tree(), output="shap").fit(X, y)
    opened = pickle.loads(pickle.dumps(explainer))
    assert opened.get_params().keys() == explainer.get_params().keys()
    assert_array_equal(opened.transform(X), explainer.transform(X))
    assert not hasattr(clone(opened), "intercept_")
