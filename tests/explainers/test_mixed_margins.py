"""Responses that mix margins, against the models' own answers to changed rows."""

import io
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.linear_model import PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, QuantileTransformer

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
    load_explainer,
)
from fastpd_sklearn.explainers._background import ResponseEngine
from fastpd_sklearn.explainers._moved_forest import ForestResponder
from fastpd_sklearn.forest import NoSumOfTreesError
from tests.explainers import ale_oracle
from tests.versions import assert_same_names

GB = GradientBoostingClassifier(n_estimators=5, random_state=0)
HIST = HistGradientBoostingClassifier(max_iter=4, min_samples_leaf=3)
RF = RandomForestClassifier(4, random_state=0)
GB_R = GradientBoostingRegressor(n_estimators=5, random_state=0)
POISSON = HistGradientBoostingRegressor(loss="poisson", max_iter=3, min_samples_leaf=3)


def xgb():
    from xgboost import XGBClassifier

    return XGBClassifier(n_estimators=4, max_depth=2, n_jobs=1)


def lgbm():
    from lightgbm import LGBMClassifier

    return LGBMClassifier(n_estimators=4, min_child_samples=3, verbose=-1, n_jobs=1)


def soft(*members, **params):
    named = [(str(k), member) for k, member in enumerate(members)]
    return VotingClassifier(named, voting="soft", **params)


CASES = {
    "calibrated": (lambda: CalibratedClassifierCV(GB, cv=3), 2),
    "calibrated, once": (lambda: CalibratedClassifierCV(lgbm(), ensemble=False, cv=2), 3),
    "calibrated forests": (lambda: CalibratedClassifierCV(RF, cv=2), 3),
    "isotonic": (lambda: CalibratedClassifierCV(HIST, method="isotonic", cv=2), 3),
    "isotonic XGBoost": (lambda: CalibratedClassifierCV(xgb(), method="isotonic", cv=2), 2),
    "soft vote": (lambda: soft(GB, xgb(), RF, weights=[1, 2, 3]), 2),
    "soft vote of classes": (lambda: soft(HIST, lgbm(), RF), 3),
    "vote of calibrated": (lambda: soft(CalibratedClassifierCV(GB, cv=2), RF), 2),
    "against the rest": (lambda: OneVsRestClassifier(GB), 3),
    "XGBoost against the rest": (lambda: OneVsRestClassifier(xgb()), 3),
    "forests against the rest": (lambda: OneVsRestClassifier(RF), 3),
    "stack": (lambda: StackingClassifier([("a", GB), ("b", xgb())], cv=2), 2),
    "stack by trees": (lambda: StackingClassifier([("a", HIST), ("b", RF)], RF, cv=2), 3),
    "searched": (lambda: GridSearchCV(CalibratedClassifierCV(GB, cv=2), {"cv": [2]}, cv=2), 2),
    "stacked regressors": (
        lambda: StackingRegressor([("a", GB_R)], RandomForestRegressor(3, random_state=0), cv=2),
        0,
    ),
    "stack with a link": (lambda: StackingRegressor([("a", GB_R)], PoissonRegressor(), cv=2), 0),
    "vote of links": (lambda: VotingRegressor([("a", POISSON), ("b", GB_R)]), 0),
    "quantiles of the target": (
        lambda: TransformedTargetRegressor(GB_R, transformer=QuantileTransformer(n_quantiles=20)),
        0,
    ),
}
SUMS = {"against the rest", "XGBoost against the rest", "forests against the rest"}
SUMS |= {"quantiles of the target"}


def rows(n=60, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 4)).round(1)


def target(X, n_classes):
    y = X[:, 0] + X[:, 1] * X[:, 2]
    return np.clip((y + 1).astype(int), 0, n_classes - 1) if n_classes else np.exp(y / 2)


@cache
def fitted(name):
    make, n_classes = CASES[name]
    X = rows()
    return make().fit(X, target(X, n_classes)), "predict_proba" if n_classes else "predict"


def response_of(model, method):
    """The shown columns of a response, as a function of rows."""

    def respond(X):
        answer = getattr(model, method)(X).reshape(len(X), -1)
        return answer[:, 1:] if answer.shape[1] == 2 else answer

    return respond


def tolerance(name):
    return 1e-5 if "XGBoost" in name or name in ("soft vote", "stack") else 1e-12


@pytest.mark.parametrize("name", CASES)
def test_partial_dependence_is_that_of_the_definition(name):
    model, method = fitted(name)
    weights = np.random.default_rng(1).random(60)
    options = {"features": [0, 3, (0, 1), (3, 2)], "response_method": method}
    fast = FastPDExplainer(**options).fit(model, rows(), sample_weight=weights)
    truth = VanillaPDExplainer(**options).fit(model, rows(), sample_weight=weights)
    assert isinstance(fast._fitted.engine, ResponseEngine)
    X = rows(8, seed=2)
    assert_allclose(fast.intercept_, truth.intercept_, rtol=0, atol=tolerance(name))
    assert_allclose(fast.transform(X), truth.transform(X), rtol=0, atol=tolerance(name))
    assert_same_names(fast.get_feature_names_out(), truth.get_feature_names_out())
    unpickled = pickle.loads(pickle.dumps(fast)).detach()
    assert_array_equal(unpickled.transform(X), fast.transform(X))


@pytest.mark.parametrize("name", CASES)
def test_curves_are_those_of_the_model(name):
    model, method = fitted(name)
    X, respond = rows(20, seed=3), response_of(model, method)
    explainer = ICEExplainer(features=[1], response_method=method).fit(model, rows())
    assert isinstance(explainer._fitted.responder, ForestResponder)
    (found,) = explainer.explain(X)
    points = found.grid_values[0]
    for k in (0, len(points) // 2, len(points) - 1):
        moved = X.copy()
        moved[:, 1] = points[k]
        assert_allclose(found.individual[:, :, k].T, respond(moved), rtol=0, atol=tolerance(name))


@pytest.mark.parametrize(
    "name", ["calibrated", "against the rest", "soft vote of classes", "stack"]
)
def test_accumulated_local_effects_are_those_of_the_model(name):
    model, method = fitted(name)
    X, respond = rows(), response_of(model, method)
    explainer = ALEExplainer(features=[0], n_bins=4, response_method=method).fit(model, X)
    responder, _ = explainer._make_responder(explainer._open_model(model), X, [0])
    assert isinstance(responder, ForestResponder)
    (effect,) = explainer.effects_
    edges = effect.grid_values[0]
    for k in range(len(effect.effect)):
        truth, _, _ = ale_oracle.first_order(lambda X, k=k: respond(X)[:, k], X, 0, edges)
        assert_allclose(effect.effect[k], truth, rtol=0, atol=10 * tolerance(name))


@pytest.mark.parametrize("name", CASES)
def test_what_auto_means(name):
    """A sum of trees where there is one, otherwise the response."""
    model, method = fitted(name)
    explainer = FastPDExplainer().fit(model, rows())
    if name in SUMS:
        assert explainer.response_method_ != method
        FastPDExplainer(output="shap").fit(model, rows())
        return
    assert explainer.response_method_ == method
    for attempt in (
        FastPDExplainer(output="shap"),
        FastPDExplainer(max_order=3),
        FastPDExplainer(response_method="raw"),
        PathDependentExplainer(),
    ):
        with pytest.raises(NoSumOfTreesError, match=rf"the {method} of this model mixes.*Vanilla"):
            attempt.fit(model, rows())
    assert VanillaPDExplainer(features=[0]).fit(model, rows()).response_method_ == method


def test_classes_and_their_names():
    X = rows()
    labels = np.array(["no", "so", "yes"])
    y = labels[target(X, 3)]
    model = soft(HIST, GB).fit(X, y)
    explainer = FastPDExplainer(target="yes").fit(model, X)
    truth = model.predict_proba(X)[:, 2].mean()
    assert_allclose(explainer.intercept_, truth, rtol=1e-12)
    two = CalibratedClassifierCV(GB, cv=2).fit(X, labels[target(X, 2)])
    complement = FastPDExplainer(target="no").fit(two, X)
    assert_allclose(complement.intercept_, two.predict_proba(X)[:, 0].mean(), rtol=1e-12)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_several_labels_at_once(n_labels):
    X = rows()
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] + X[:, 2] > 0, X[:, 3] > 0.3]).astype(int)
    model = OneVsRestClassifier(GB).fit(X, labels[:, :n_labels])
    options = {"features": [0, (0, 1)], "response_method": "predict_proba"}
    found = FastPDExplainer(**options).fit(model, X)
    assert_allclose(found.intercept_, model.predict_proba(X).mean(axis=0), rtol=1e-12)
    moved = X.copy()
    moved[:, :2] = X[4, :2]
    truth = model.predict_proba(moved).mean(axis=0)
    assert_allclose(found.transform(X[4:5])[0, n_labels:], truth, rtol=1e-12)


def test_members_with_pipelines_of_their_own():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rows(), columns=list("abcd"))
    frame["town"] = rng.choice(["Bern", "Chur", "Genf"], 60)
    y = (frame["a"] + (frame["town"] == "Chur") > 0).astype(int)
    coded = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
    model = CalibratedClassifierCV(make_pipeline(coded, GB), cv=2).fit(frame, y)
    options = {"features": ["town", "a", ("a", "town")]}
    fast = FastPDExplainer(**options).fit(model, frame)
    truth = VanillaPDExplainer(response_method="predict_proba", **options).fit(model, frame)
    assert isinstance(fast._fitted.engine, ResponseEngine)
    assert_allclose(fast.transform(frame[:9]), truth.transform(frame[:9]), rtol=0, atol=1e-12)


def test_a_response_that_is_mixed_in_another_way_is_refused(monkeypatch):
    model, _ = fitted("calibrated")
    monkeypatch.setattr(
        CalibratedClassifierCV, "predict_proba", lambda self, X: np.full((len(X), 2), 0.5)
    )
    with pytest.raises(ValueError, match=r"misread: on .* its predict_proba is not that of"):
        FastPDExplainer().fit(model, rows())


def test_temperature():
    """New in scikit-learn 1.8."""
    X = rows()
    for booster, n_classes in ((HIST, 3), (xgb(), 2), (GB, 2)):
        model = CalibratedClassifierCV(booster, method="temperature", cv=2)
        try:
            model.fit(X, target(X, n_classes))
        except ValueError:
            pytest.skip("this scikit-learn has no temperature scaling")
        options = {"features": [0, (0, 1)], "response_method": "predict_proba"}
        fast, truth = (
            kind(**options).fit(model, X) for kind in (FastPDExplainer, VanillaPDExplainer)
        )
        values = fast.transform(X[:9])
        assert_allclose(values, truth.transform(X[:9]), rtol=0, atol=1e-6)
        file = io.BytesIO()
        fast.save(file)
        opened = load_explainer(io.BytesIO(file.getvalue()))
        assert_array_equal(opened.transform(X[:9]), values)


CALLED = {"stack", "stack by trees", "stacked regressors", "stack with a link"}
"""Those whose response is made by calling an estimator, which is code."""


@pytest.mark.parametrize("name", CASES)
def test_files_have_the_answers_of_members(name):
    model, method = fitted(name)
    explainer = FastPDExplainer(response_method=method, features=[0, (0, 1)])
    if name == "quantiles of the target":
        explainer.set_params(response_method="auto")
    explainer.fit(model, rows())
    file = io.BytesIO()
    if name in CALLED:
        with pytest.raises(ValueError, match="can't be saved; pickle"):
            explainer.save(file)
        return
    explainer.save(file)
    opened = load_explainer(io.BytesIO(file.getvalue()))
    assert_array_equal(opened.transform(rows(9, 1)), explainer.transform(rows(9, 1)))
    assert_array_equal(opened.intercept_, explainer.intercept_)
