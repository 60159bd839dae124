"""Importances are the means and covariances of components that were found by prediction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import Importance, importance
from tests import oracles
from tests.decomposition.conftest import WEIGHTS, players_of


def by_output(values):
    """With an axis of outputs also where there is one."""
    values = np.asarray(values)
    return values[..., None] if values.ndim == 1 else values


def covariance_share(part, response, weights):
    centred = response - np.average(response, axis=0, weights=weights)
    covariance = np.average(part * centred, axis=0, weights=weights)
    return covariance / np.average(centred**2, axis=0, weights=weights)


@pytest.fixture
def found(case, setting):
    weights, groups = setting
    return importance(case[0], case[2], sample_weight=weights, groups=groups)


@pytest.fixture
def truth(game, case, setting):
    """Components by name, the response, and the weights."""
    _, names = players_of(setting[1])
    components = {
        tuple(names[k] for k in T): oracles.derivative(game, T)
        for T in oracles.subsets(range(len(names)))
        if T
    }
    return components, case[1](case[2]), setting[0]


def mean_abs(values, weights):
    return np.average(np.abs(values), axis=0, weights=weights)


def test_terms(found, truth):
    components, response, weights = truth
    shown = dict(zip(found.terms, by_output(found.term_importances), strict=True))
    share = dict(zip(found.terms, by_output(found.term_variance_shares), strict=True))
    for names, m in components.items():
        assert_allclose(shown.get(names, 0.0), mean_abs(m, weights), atol=1e-12)
        assert_allclose(share.get(names, 0.0), covariance_share(m, response, weights), atol=1e-11)


def test_orders(found, truth):
    components, response, weights = truth
    for n in range(len(found.joint_order_importances)):
        parts = [m for names, m in components.items() if len(names) == n + 1]
        single = sum(mean_abs(m, weights) for m in parts)
        assert_allclose(by_output(found.order_importances)[n], single, atol=1e-12)
        joint = by_output(found.joint_order_importances)[n]
        assert_allclose(joint, mean_abs(sum(parts), weights), atol=1e-12)
        share = covariance_share(sum(parts), response, weights)
        assert_allclose(by_output(found.order_variance_shares)[n], share, atol=1e-11)
    assert_allclose(found.order_variance_shares.sum(axis=0), 1.0)
    assert_allclose(found.remainder_importance, 0.0, atol=1e-12)


def test_features_by_the_papers_definitions(found, truth):
    """Section 2.5 of Hiabu, Meyer & Wright."""
    components, response, weights = truth
    for k, name in enumerate(found.feature_names):
        phi = sum(m / len(names) for names, m in components.items() if name in names)
        sizes = sum(np.abs(m) / len(names) for names, m in components.items() if name in names)
        shap = by_output(found.shap_importances)[k]
        assert_allclose(shap, mean_abs(phi, weights), atol=1e-12)
        both = by_output(found.feature_importances)[k]
        assert_allclose(both, np.average(sizes, axis=0, weights=weights), atol=1e-12)
        assert np.all(both >= shap - 1e-12)
        share = by_output(found.shap_variance_shares)[k]
        assert_allclose(share, covariance_share(phi, response, weights), atol=1e-11)
    by_order = found.feature_order_importances
    assert_allclose(by_order.sum(axis=1), found.feature_importances)
    assert_allclose(by_order.sum(axis=0), found.order_importances, atol=1e-12)


def test_truncated_terms_leave_a_remainder(case, truth, setting):
    components, response, weights = truth
    found = importance(case[0], case[2], max_order=1, sample_weight=weights, groups=setting[1])
    rest = sum(m for names, m in components.items() if len(names) > 1)
    assert_allclose(found.remainder_importance, np.squeeze(mean_abs(rest, weights)), atol=1e-12)
    share = covariance_share(rest, response, weights)
    assert_allclose(found.remainder_variance_share, np.squeeze(share), atol=1e-11)
    total = found.term_variance_shares.sum(axis=0) + found.remainder_variance_share
    assert_allclose(total, 1.0)
    assert found.shap_importances is not None  # SHAP values are those of the whole model


@pytest.mark.parametrize("rows_in_a_block", [1, 7, 39])
def test_blocks_are_one(model, X, monkeypatch, rows_in_a_block):
    whole = importance(model, X, sample_weight=WEIGHTS)
    monkeypatch.setattr("fastpd_sklearn.decomposition._importance.BLOCK_ROWS", rows_in_a_block)
    monkeypatch.setattr("fastpd_sklearn.decomposition._importance.BLOCK_VALUES", 90)
    parts = importance(model, X, sample_weight=WEIGHTS)
    for name in ("term_importances", "term_variance_shares", "shap_variance_shares"):
        assert_allclose(getattr(parts, name), getattr(whole, name), atol=1e-13)


def test_explainers_are_taken_as_they_are(model, X):
    whole = importance(model, X)
    assert isinstance(whole, Importance)
    assert repr(whole) == f"Importance(n_terms={len(whole.terms)}, n_features=4, n_outputs=1)"
    other = importance(FastPDExplainer(output="shap").fit(model, X), X)
    assert other.terms == whole.terms
    some = FastPDExplainer(output="component", features=["x1", ("x0", "x1")]).fit(model, X)
    assert importance(some, X).terms == (("x1",), ("x0", "x1"))
    assert importance(some, X, max_order=None).terms == whole.terms
    assert some.terms_ == (("x1",), ("x0", "x1"))
    assert some.explain(X).terms == some.terms_


def test_another_background_and_other_rows(model, X):
    explainer = FastPDExplainer().fit(model, X[:20], sample_weight=WEIGHTS[:20])
    found = importance(explainer, X[15:], sample_weight=WEIGHTS[15:])
    game = oracles.interventional_game(
        model.predict, X[:20], WEIGHTS[:20], X[15:], [[0], [1], [2], [3]]
    )
    truth = mean_abs(oracles.derivative(game, (0, 1)), WEIGHTS[15:])
    k = found.terms.index(("x0", "x1"))
    assert_allclose(found.term_importances[k], truth[0])


@pytest.mark.parametrize("explainer_class", [VanillaPDExplainer, PathDependentExplainer])
def test_other_explainers(model, X, explainer_class):
    explainer = explainer_class(output="component", max_order=None).fit(model, X)
    found = importance(explainer, X, sample_weight=WEIGHTS)
    values = explainer.transform(X)
    assert_allclose(found.term_importances, mean_abs(values, WEIGHTS), atol=1e-12)
    assert_allclose(found.order_variance_shares.sum(), 1.0)


def test_many_columns_of_any_model(X):
    """Components of few features of a model that has too many for SHAP values."""
    rows = np.random.default_rng(0).normal(size=(12, 14))
    model = LinearRegression().fit(rows, rows[:, 0])
    explainer = VanillaPDExplainer(output="component", max_order=1).fit(model, rows)
    found = importance(explainer, rows)
    assert found.shap_importances is None
    assert list(found.to_frame("feature").columns) == ["feature", "importance"]
    assert_allclose(found.order_variance_shares, 1.0)


def test_the_response_scale(X, y):
    model = GradientBoostingClassifier(n_estimators=3, max_depth=2).fit(X, y > 4)
    explainer = FastPDExplainer(output="component", response_method="predict_proba")
    found = importance(explainer.fit(model, X), X)
    respond = lambda rows: model.predict_proba(rows)[:, 1]  # noqa: E731
    game = oracles.interventional_game(respond, X, None, X, [[0], [1], [2], [3]])
    truth = mean_abs(oracles.derivative(game, (2,)), None)
    assert_allclose(found.term_importances[found.terms.index(("x2",))], truth[0])
    assert found.shap_importances is None
    total = found.term_variance_shares.sum() + found.remainder_variance_share
    assert_allclose(total, 1.0)


def test_a_response_that_does_not_vary(X):
    constant = DecisionTreeRegressor().fit(X, np.full(len(X), 0.1))
    found = importance(constant, X)
    assert_allclose(found.term_importances, 0.0)
    assert_allclose(found.term_variance_shares, 0.0)
    dummy = VanillaPDExplainer(output="component").fit(DummyRegressor().fit(X, X[:, 0]), X)
    assert_allclose(importance(dummy, X).order_variance_shares, 0.0)


def test_frames(classifier, X):
    found = importance(classifier, X)
    terms = found.to_frame()
    assert list(terms.columns) == ["term", "output", "importance", "variance_share"]
    assert len(terms) == len(found.terms) * 3
    assert np.all(np.diff(terms["importance"]) <= 0)
    line = terms[(terms.term == "x0:x1") & (terms.output == "low")]
    k = found.terms.index(("x0", "x1"))
    assert_allclose(line.importance, found.term_importances[k, 1])
    features = found.to_frame("feature")
    assert len(features) == 12
    assert {"shap_importance", "shap_variance_share"} < set(features.columns)
    orders = found.to_frame(by="order")
    assert orders.order.tolist() == np.repeat([1, 2, 3], 3).tolist()[: len(orders)]
    with pytest.raises(ValueError, match="by='row' is none of 'term', 'feature', 'order'"):
        found.to_frame("row")


def test_data_frames_and_sparse_rows(model, X):
    pd = pytest.importorskip("pandas")
    from scipy import sparse

    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X))[::-1])
    tree = DecisionTreeRegressor(max_depth=3).fit(frame, X[:, 0] * X[:, 1])
    assert importance(tree, frame).feature_names == ("a", "b", "c", "d")
    dense = importance(model, X)
    again = importance(model, sparse.csc_array(X))
    assert_allclose(again.term_importances, dense.term_importances)


def test_same_bits_for_any_n_jobs(model, X):
    one, two = (importance(model, X, n_jobs=n) for n in (1, 2))
    assert np.array_equal(one.term_importances, two.term_importances)
    assert np.array_equal(one.shap_variance_shares, two.shap_variance_shares)


def test_refusals(model, X):
    explainer = FastPDExplainer().fit(model, X)
    with pytest.raises(ValueError, match=r"groups=\{'g': \[0\]\} goes with a model"):
        importance(explainer, X, groups={"g": [0]})
    with pytest.raises(TypeError, match="estimator is a ndarray; give a fitted model"):
        importance(X, X)
    with pytest.raises(ValueError, match="max_order=0"):
        importance(model, X, max_order=0)
    with pytest.raises(ValueError, match="sample_weight"):
        importance(explainer, X, sample_weight=np.zeros(40))
    with pytest.raises(ValueError, match="expecting 4 features"):
        importance(explainer, X[:, :3])
    with pytest.raises(TypeError, match="VanillaPDExplainer"):
        importance(LinearRegression().fit(X, X[:, 0]), X)
