"""The two forms of fit, and what a fitted explainer carries."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator

from fastpd_sklearn import VanillaPDExplainer
from tests.explainers.toys import StumpExplainer, Stumps

# Models that were fitted on arrays warn when they predict frames.
pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")

SMALL = RandomForestRegressor(n_estimators=2, max_depth=3, random_state=0)


def test_model_and_background(explainer_class, model, X):
    explainer = explainer_class().fit(model, X)
    assert explainer.estimator_ is model
    assert explainer.n_features_in_ == 4
    assert not hasattr(explainer, "feature_names_in_")
    assert not hasattr(explainer, "classes_")
    assert explainer.terms_ == (("x0",), ("x1",), ("x2",), ("x3",))


def test_fit_on_data_fits_a_clone(explainer_class, X, y):
    estimator = clone(SMALL)
    explainer = explainer_class(estimator, output="shap").fit(X, y)
    assert not hasattr(estimator, "estimators_")
    truth = explainer_class(output="shap").fit(clone(SMALL).fit(X, y), X)
    assert_allclose(explainer.transform(X), truth.transform(X))


def test_weights_go_to_the_fit_and_the_background(explainer_class, X, y):
    weights = np.arange(30) % 3.0
    explainer = explainer_class(clone(SMALL)).fit(X, y, sample_weight=weights)
    model = clone(SMALL).fit(X, y, sample_weight=weights)
    truth = explainer_class().fit(model, X, sample_weight=weights)
    assert_allclose(explainer.intercept_, truth.intercept_)
    assert_allclose(explainer.transform(X), truth.transform(X))


def test_frozen_model_is_left_as_it_is(explainer_class, model, X, y):
    for args in [(X, -y), (X,)]:
        explainer = explainer_class(FrozenEstimator(model)).fit(*args)
        assert explainer.estimator_ is model
    assert explainer_class().fit(FrozenEstimator(model), X).estimator_ is model


def test_frozen_model_takes_weights_for_the_background_alone(X, y):
    class NoWeights(BaseEstimator):
        def fit(self, X, y):
            self.mean_ = np.mean(y)
            return self

        def predict(self, X):
            return X[:, 0]

    model = NoWeights().fit(X, y)
    weights = np.arange(30.0)
    explainer = VanillaPDExplainer(FrozenEstimator(model)).fit(X, y, sample_weight=weights)
    assert_allclose(explainer.intercept_, np.average(X[:, 0], weights=weights))
    with pytest.raises(TypeError, match="the fit of NoWeights takes no weights"):
        VanillaPDExplainer(NoWeights()).fit(X, y, sample_weight=weights)


def test_fitted_estimator_without_target_is_used_as_it_is(explainer_class, model, X):
    assert explainer_class(model).fit(X).estimator_ is model


def test_fitted_estimator_with_target_is_refitted_with_a_warning(explainer_class, model, X, y):
    advice = r"FrozenEstimator\(model\) or call fit\(model, X\)"
    with pytest.warns(UserWarning, match=advice) as caught:
        explainer = explainer_class(model).fit(X, -y)
    assert caught[0].filename == __file__  # the caller's line, and no repr of all parameters
    assert len(str(caught[0].message)) < 250
    assert explainer.estimator_ is not model
    assert explainer.intercept_[0] < 0


def test_unfitted_estimator_without_target(explainer_class, X):
    with pytest.raises(NotFittedError, match=r"FrozenEstimator\(model\) or call fit\(model, X\)"):
        explainer_class(clone(SMALL)).fit(X)


def test_no_estimator(explainer_class, X, y):
    with pytest.raises(ValueError, match=r"estimator=None: .* fit\(model, background\)"):
        explainer_class().fit(X, y)


def test_truth_value_of_the_estimator_is_not_asked_for(X, y):
    class Touchy(LinearRegression):
        def __len__(self):
            raise AssertionError("asked for its length")

    explainer = VanillaPDExplainer(Touchy()).fit(X, y)
    explainer.transform(X)
    VanillaPDExplainer().fit(explainer.estimator_, X)


def test_refit_forgets_the_past(explainer_class, classifier, model, X):
    pd = pytest.importorskip("pandas")
    explainer = explainer_class().fit(classifier, pd.DataFrame(X, columns=list("abcd")))
    assert hasattr(explainer, "classes_")
    assert hasattr(explainer, "feature_names_in_")
    explainer.fit(model, X)
    assert not hasattr(explainer, "classes_")
    assert not hasattr(explainer, "feature_names_in_")
    assert_allclose(explainer.transform(X), explainer_class().fit(model, X).transform(X))
    with pytest.raises(ValueError, match="all rows of sample_weight are 0"):
        explainer.fit(model, X, sample_weight=np.zeros(30))
    with pytest.raises(NotFittedError):
        explainer.transform(X)


def test_a_names_less_model_takes_the_names_of_the_background():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"u": [0.0, 2.0], "v": [1.0, 1.0]})

    class Sum:
        def predict(self, X):
            return np.asarray(X).sum(axis=1)

    explainer = VanillaPDExplainer().fit(Sum(), data)
    assert list(explainer.get_feature_names_out()) == ["u", "v"]


def test_pipeline_and_grid_search(explainer_class, X, y):
    pipeline = make_pipeline(StandardScaler(), explainer_class(clone(SMALL)), LinearRegression())
    pipeline.fit(X, y)
    assert pipeline[:-1].get_feature_names_out(list("abcd")).tolist() == list("abcd")
    name = explainer_class.__name__.lower()
    grid = {f"{name}__output": ["pd", "shap"], f"{name}__estimator__max_depth": [1, 2]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)


def test_tags_are_those_of_the_estimator():
    tags = get_tags(VanillaPDExplainer(SMALL))
    assert tags.target_tags.required
    assert tags.input_tags.allow_nan == get_tags(SMALL).input_tags.allow_nan
    assert tags.input_tags.sparse == get_tags(SMALL).input_tags.sparse
    assert not get_tags(VanillaPDExplainer()).target_tags.required
    assert not get_tags(VanillaPDExplainer(FrozenEstimator(SMALL))).target_tags.required


def test_metadata_request_for_weights():
    explainer = VanillaPDExplainer(SMALL)
    assert callable(explainer.set_fit_request)
    assert callable(explainer.set_partial_fit_request)


def test_parameters_are_stored_unchanged(explainer_class):
    features, groups = ["a", ("b", "c")], {"g": ["b", "c"]}
    explainer = explainer_class(features=features, groups=groups, max_order=3)
    params = explainer.get_params()
    assert params["features"] is features
    assert params["groups"] is groups
    assert "estimator" in repr(explainer_class(SMALL))
    assert clone(explainer).get_params()["groups"] == groups


def test_common_checks_of_a_linear_model():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(VanillaPDExplainer(LinearRegression()), on_skip=None)
    assert len(results) >= 50


def test_a_model_may_know_nothing_of_scikit_learn(X):
    model = Stumps([1.0, 0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    exact = StumpExplainer(output="shap").fit(model, X)
    predicted = VanillaPDExplainer(output="shap").fit(model, X)
    assert_allclose(exact.transform(X), predicted.transform(X), atol=1e-12)


def test_estimator_that_cannot_be_fitted_is_used_as_it_is(X, y):
    model = Stumps([1.0, 0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    assert StumpExplainer(model).fit(X, y).estimator_ is model


def test_verbose_shows_progress(explainer_class, model, X, capsys):
    explainer_class(verbose=1).fit(model, X).transform(X)
    assert "30 of 30 rows" in capsys.readouterr().out
    explainer_class().fit(model, X).transform(X)
    assert not capsys.readouterr().out


def test_weights_with_gaps_between_them(explainer_class, model, X):
    weights = (np.arange(2 * len(X)) % 3)[::2].astype(float).repeat(2)[::2]
    ours = explainer_class(output="shap").fit(model, X, sample_weight=weights).transform(X)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    truth = explainer_class(output="shap").fit(model, repeated).transform(X)
    assert_allclose(ours, truth, atol=1e-12)
