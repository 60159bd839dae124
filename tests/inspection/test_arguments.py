"""What may be passed, and what an error says of the rest."""

import inspect

import numpy as np
import pandas as pd
import pytest
import sklearn.inspection
from sklearn.cluster import KMeans
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from fastpd_sklearn import inspection
from fastpd_sklearn.inspection import partial_dependence


@pytest.fixture(scope="module")
def model(X, y):
    return RandomForestRegressor(2, max_depth=3, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def classifier(X, labels):
    return RandomForestClassifier(2, max_depth=3, random_state=0).fit(X, labels)


@pytest.mark.parametrize(
    "find",
    [
        lambda module: module.partial_dependence,
        lambda module: module.PartialDependenceDisplay.from_estimator,
        lambda module: module.PartialDependenceDisplay.plot,
        lambda module: module.PartialDependenceDisplay,
    ],
)
def test_every_argument_of_scikit_learn_is_taken(find):
    ours = inspect.signature(find(inspection)).parameters
    for name, parameter in inspect.signature(find(sklearn.inspection)).parameters.items():
        assert name in ours
        assert ours[name].default == parameter.default
        assert ours[name].kind == parameter.kind


def test_ways_to_name_features(model, X):
    names = [f"column {j}" for j in range(6)]
    frame = pd.DataFrame(X, columns=names)
    want = partial_dependence(model, X, [4, 1], grid_resolution=3).average
    with pytest.warns(UserWarning, match="feature names"):  # of scikit-learn, the model has none
        frame_result = partial_dependence(model, frame, ["column 4", "column 1"], grid_resolution=3)
    for found in (
        frame_result,
        partial_dependence(model, X, ("column 4", 1), feature_names=names, grid_resolution=3),
        partial_dependence(model, X, np.array([4, 1]), grid_resolution=3),
    ):
        assert np.array_equal(found.average, want)
    mask = partial_dependence(model, X, [j in (1, 4) for j in range(6)], grid_resolution=3)
    assert np.array_equal(mask.average, want.transpose(0, 2, 1))


def test_a_frozen_model_is_its_model(model, X):
    frozen = partial_dependence(FrozenEstimator(model), X, 0, grid_resolution=3)
    assert np.array_equal(
        frozen.average, partial_dependence(model, X, 0, grid_resolution=3).average
    )


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (6, r"all features must be in \[0, 5\], got 6"),
        ([0, -1], r"all features must be in \[0, 5\], got -1"),
        ("nobody", "Feature 'nobody' not in feature_names .*'x0'"),
        ([0, 0], "names a column twice"),
        ([], "features is empty"),
        ([1.5], "1.5 is neither the number nor the name"),
        ([True, False], "a mask needs one entry a column of X, got 2 for 6 columns"),
    ],
)
def test_features_that_are_none(features, message, model, X):
    with pytest.raises(ValueError, match=message):
        partial_dependence(model, X, features)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kind": "median"}, "kind='median' is none of 'average', 'individual', 'both'"),
        ({"method": "fast"}, "method='fast' is none of 'auto', 'recursion', 'brute'"),
        ({"response_method": "score"}, "response_method='score' is none of"),
        ({"response_method": "predict_proba"}, "ignored for regressors and must be 'auto'"),
        ({"grid_resolution": 1}, "grid_resolution=1 must be .* greater than 1, or 'exact'"),
        ({"grid_resolution": "all"}, "grid_resolution='all'"),
        ({"percentiles": (0.9, 0.1)}, "must be strictly less than"),
        (
            {"percentiles": (0.5, 1.5)},
            r"percentiles=\(0.5, 1.5\) should be two numbers in \[0, 1\]",
        ),
        ({"percentiles": 0.5}, "percentiles=0.5 should be two numbers"),
        ({"custom_values": {0: [[1.0]]}}, "not a one-dimensional array. Feature 0: 2 dimensions"),
        ({"custom_values": {0: []}}, "not a one-dimensional array"),
        ({"custom_values": {9: [1.0]}}, r"custom_values: all features must be in \[0, 5\]"),
        ({"custom_values": {0: ["a"]}}, "column 0 takes numbers"),
        ({"sample_weight": [1.0]}, "sample_weight.shape == "),
        ({"sample_weight": np.zeros(120)}, "Sample weights must contain"),
        ({"feature_names": ["a", "b"]}, "2 names for the 6 columns"),
        ({"feature_names": list("aabcde")}, "should not contain duplicates, and 'a'"),
        ({"categorical_features": []}, "Passing an empty list"),
        ({"categorical_features": [True]}, r"Got 1 elements while `X` contains 6 features"),
        ({"categorical_features": [0.5]}, "array-like of boolean, integer, or string"),
        ({"categorical_features": ["nobody"]}, "Feature 'nobody' not in feature_names"),
    ],
)
def test_arguments_that_are_wrong(params, message, model, X):
    with pytest.raises(ValueError, match=message):
        partial_dependence(model, X, 0, **params)


@pytest.mark.parametrize("features", [None, 1.0, {0: 1}, {0, 1}])
def test_features_that_are_no_list(features, model, X):
    with pytest.raises(TypeError, match=r"features=.* should be the number or name of a column"):
        partial_dependence(model, X, features)


def test_points_that_are_no_dict(model, X):
    with pytest.raises(TypeError, match=r"custom_values=.* should be a dict"):
        partial_dependence(model, X, 0, custom_values=[1.0])


def test_models_that_are_none(model, X, y, labels):
    with pytest.raises(TypeError, match="estimator should be a fitted model, got a ndarray"):
        partial_dependence(X, model, 0)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        partial_dependence(RandomForestRegressor(), X, 0)
    with pytest.raises(ValueError, match=r"must be a fitted regressor or classifier.* KMeans"):
        partial_dependence(KMeans(2, n_init=1).fit(X), X, 0)
    two = RandomForestClassifier(2, max_depth=2).fit(X, np.column_stack([labels, labels]))
    with pytest.raises(ValueError, match="Multiclass-multioutput estimators are not supported"):
        partial_dependence(two, X, 0)


def test_responses_that_a_classifier_lacks(classifier, X):
    with pytest.raises(ValueError, match="response_method='predict': class labels"):
        partial_dependence(classifier, X, 0, response_method="predict")
    with pytest.raises(ValueError, match=r"response_method='decision_function'.*no such method"):
        partial_dependence(classifier, X, 0, response_method="decision_function")


def test_rows_that_the_model_does_not_take(model, X):
    with pytest.raises(ValueError, match="6 features"):
        partial_dependence(model, X[:, :3], 0)
    with pytest.raises(ValueError, match="0 sample"):
        partial_dependence(model, X[:0], 0)
