"""Which response of a model is explained by prediction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import GradientBoostingClassifier, IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, OneClassSVM

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer


def intercept(model, X, **params):
    return VanillaPDExplainer(**params).fit(model, X).intercept_


def test_regressor(X, y):
    model = KNeighborsRegressor(3).fit(X, y)
    assert_allclose(intercept(model, X), [model.predict(X).mean()])
    assert_allclose(intercept(model, X, response_method="predict"), [model.predict(X).mean()])


def test_several_targets(X, y):
    model = LinearRegression().fit(X, np.column_stack([y, -y, 2 * y]))
    explainer = VanillaPDExplainer(features=[1]).fit(model, X)
    assert_allclose(explainer.intercept_, model.predict(X).mean(axis=0))
    assert list(explainer.get_feature_names_out()) == ["x1__0", "x1__1", "x1__2"]


def test_classifier(X, labels):
    model = LogisticRegression(max_iter=1000).fit(X, labels)
    assert_allclose(intercept(model, X), model.predict_proba(X).mean(axis=0))
    margins = intercept(model, X, response_method="decision_function")
    assert_allclose(margins, model.decision_function(X).mean(axis=0))
    one = intercept(model, X, response_method="decision_function", target="low")
    assert_allclose(one, margins[1])
    explainer = VanillaPDExplainer(features=["x1"]).fit(model, X)
    assert list(explainer.get_feature_names_out()) == ["x1__high", "x1__low", "x1__mid"]


def test_binary_classifier(X, y):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y > 4)
    explainer = VanillaPDExplainer().fit(model, X)
    assert_allclose(explainer.intercept_, [model.predict_proba(X)[:, 1].mean()])
    assert explainer.classes_.tolist() == [False, True]
    assert_allclose(intercept(model, X, target=False), 1 - explainer.intercept_)


def test_classifier_without_probabilities(X, labels):
    model = RidgeClassifier().fit(X, labels)
    assert_allclose(intercept(model, X), model.decision_function(X).mean(axis=0))


def test_columns_that_are_no_classes_are_not_called_so(X, labels):
    model = SVC(decision_function_shape="ovo").fit(X, labels)
    explainer = VanillaPDExplainer(features=[0], response_method="decision_function")
    names = explainer.fit(model, X).get_feature_names_out()
    assert list(names) == ["x0__0", "x0__1", "x0__2"]


def test_several_labels_are_refused(X, y):
    labels = np.column_stack([y > 3, y > 5]).astype(int)
    model = OneVsRestClassifier(LogisticRegression()).fit(X, labels)
    with pytest.raises(ValueError, match=r"predict_proba of OneVsRestClassifier do not add up to"):
        VanillaPDExplainer().fit(model, X)


def test_list_of_probabilities_is_refused(X, y):
    labels = np.column_stack([y > 3, y > 5]).astype(int)
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, labels)
    with pytest.raises(ValueError, match="gives a list, one array a target"):
        VanillaPDExplainer(response_method="predict_proba").fit(model, X)


def test_outlier_detector(X):
    model = OneClassSVM().fit(X)
    assert_allclose(intercept(model, X), [model.decision_function(X).mean()])


def test_trees_are_explained_on_the_scale_on_which_they_add_up(X, y):
    model = GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y > 4)
    margin = model.decision_function(X).mean()
    for method in ("auto", "raw", "decision_function"):
        assert_allclose(intercept(model, X, response_method=method), [margin])
    probability = model.predict_proba(X)[:, 1].mean()
    assert_allclose(intercept(model, X, response_method="predict_proba"), [probability])
    assert_allclose(intercept(model, X, target=False), [-margin])


@pytest.mark.parametrize("explainer_class", [FastPDExplainer, VanillaPDExplainer])
def test_the_explained_response_is_named(X, y, labels, explainer_class):
    boosting = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y > 4)
    forest = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, labels)
    outliers = IsolationForest(n_estimators=2, random_state=0).fit(X)
    for response_method in ("auto", "raw"):
        explainer = explainer_class(response_method=response_method)
        assert explainer.fit(boosting, X).response_method_ == "decision_function"
        assert explainer.fit(forest, X).response_method_ == "predict_proba"
        assert explainer.fit(outliers, X).response_method_ == "raw"


def test_a_response_that_was_asked_for_is_named(X, y):
    model = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y > 4)
    explainer = VanillaPDExplainer(response_method="predict_proba").fit(model, X)
    assert explainer.response_method_ == "predict_proba"
