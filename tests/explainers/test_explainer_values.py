"""Values against the definition, and against numbers known by hand."""

from itertools import combinations, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import VanillaPDExplainer
from tests.explainers.games import expected

SINGLES = [(k,) for k in range(4)]
PAIRS = list(combinations(range(4), 2))
ALL = [T for k in range(1, 5) for T in combinations(range(4), k)]
OUTPUTS = {
    "pd": (None, ALL),
    "component": (None, ALL),
    "shap": ("auto", SINGLES),
    "shap_interaction": ("auto", SINGLES + PAIRS),
    "banzhaf": (3, SINGLES + PAIRS + list(combinations(range(4), 3))),
    "total": (None, ALL),
}
WEIGHTS = np.arange(30) % 4.0


def shown(explainer, terms):
    """Which of the terms the explainer shows; the others have to be zero."""
    names = [f"x{j}" for j in range(4)]
    place = {T: i for i, T in enumerate(explainer.terms_)}
    return [place.get(tuple(names[k] for k in T)) for T in terms]


def assert_values(explainer, X, truth, terms):
    values = explainer.transform(X).reshape(len(X), len(explainer.terms_), -1)
    for t, column in enumerate(shown(explainer, terms)):
        if column is None:
            assert_allclose(truth[:, t], 0.0, atol=1e-10)
        else:
            assert_allclose(values[:, column], truth[:, t], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("output", ["component", "shap", "shap_interaction", "banzhaf", "total"])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_regressor_by_definition(interventional, model, X, output, weights):
    order, terms = OUTPUTS[output]
    explainer = interventional(output=output, max_order=order).fit(model, X, sample_weight=weights)
    truth = expected(output, model.predict, X[:8], X, terms, weights)
    assert_values(explainer, X[:8], truth, terms)
    assert_allclose(explainer.intercept_, np.average(model.predict(X), weights=weights))


def test_partial_dependence_of_named_sets(interventional, model, X):
    explainer = interventional(features=ALL).fit(model, X)
    truth = expected("pd", model.predict, X[:8], X, ALL)
    assert_allclose(explainer.transform(X[:8]), truth[:, :, 0], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "output", ["pd", "component", "shap", "shap_interaction", "banzhaf", "total"]
)
def test_classes_by_definition(interventional, classifier, X, output):
    explainer = interventional(output=output, features=SINGLES).fit(classifier, X)
    truth = expected(output, classifier.predict_proba, X[:5], X, SINGLES)
    values = explainer.transform(X[:5]).reshape(5, 4, 3)
    assert_allclose(values, truth, rtol=1e-10, atol=1e-10)
    assert list(explainer.classes_) == ["high", "low", "mid"]
    one = interventional(output=output, features=SINGLES, target="mid").fit(classifier, X)
    assert_allclose(one.transform(X[:5]), truth[:, :, 2], rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("output", ["pd", "shap"])
def test_binary_complement(explainer_class, binary, X, output):
    yes = explainer_class(output=output).fit(binary, X)
    same = explainer_class(output=output, target="yes").fit(binary, X)
    no = explainer_class(output=output, target="no").fit(binary, X)
    assert yes.intercept_.shape == (1,)
    assert_allclose(same.transform(X), yes.transform(X))
    assert_allclose(no.intercept_, 1 - yes.intercept_)
    total = 1.0 if output == "pd" else 0.0
    assert_allclose(no.transform(X) + yes.transform(X), total, atol=1e-12)


def test_margin_complement(corners):
    model = LogisticRegression().fit(corners, [0, 0, 0, 1])
    args = {"output": "shap", "response_method": "decision_function"}
    one = VanillaPDExplainer(**args, target=1).fit(model, corners)
    zero = VanillaPDExplainer(**args, target=0).fit(model, corners)
    assert_allclose(one.intercept_, model.decision_function(corners).mean())
    assert_allclose(zero.intercept_, -one.intercept_)
    assert_allclose(zero.transform(corners), -one.transform(corners))


@pytest.mark.parametrize(
    "output", ["pd", "component", "shap", "shap_interaction", "banzhaf", "total"]
)
def test_groups_by_definition(interventional, model, X, output):
    explainer = interventional(output=output, groups={"g": [0, 3]}).fit(model, X)
    assert explainer.terms_[:3] == (("g",), ("x1",), ("x2",))
    names = ["g", "x1", "x2"]
    terms = [tuple(names.index(n) for n in T) for T in explainer.terms_]
    truth = expected(output, model.predict, X[:6], X, terms, players=[[0, 3], [1], [2]])
    assert_allclose(explainer.transform(X[:6]), truth[:, :, 0], rtol=1e-10, atol=1e-10)


def test_several_targets(interventional, X, y):
    model = RandomForestRegressor(n_estimators=2, max_depth=3, random_state=0)
    model.fit(X, np.column_stack([y, -3 * y + X[:, 3]]))
    explainer = interventional(output="shap").fit(model, X)
    truth = expected("shap", model.predict, X[:5], X, SINGLES)
    assert_allclose(explainer.transform(X[:5]).reshape(5, 4, 2), truth, rtol=1e-10, atol=1e-10)
    one = interventional(output="shap", target=1).fit(model, X)
    assert_allclose(one.transform(X[:5]), truth[:, :, 1], rtol=1e-10, atol=1e-10)


def test_weights_are_repetitions(explainer_class, model, X):
    weights = np.arange(30) % 3
    explainer = explainer_class(output="component", max_order=None)
    weighted = explainer.fit(model, X, sample_weight=weights).transform(X)
    repeated = explainer.fit(model, np.repeat(X, weights, axis=0)).transform(X)
    assert_allclose(weighted, repeated, rtol=1e-12, atol=1e-12)


def test_partial_fit_adds_rows(explainer_class, model, X):
    weights = np.arange(30) + 1.0
    whole = explainer_class(output="component").fit(model, X, sample_weight=weights)
    parts = explainer_class(output="component")
    parts.partial_fit(model, X[:11], sample_weight=weights[:11])
    parts.partial_fit(X[11:20], sample_weight=weights[11:20])
    assert parts.partial_fit(model, X[20:], sample_weight=weights[20:]) is parts
    assert_allclose(parts.intercept_, whole.intercept_, rtol=1e-12)
    assert_allclose(parts.transform(X), whole.transform(X), rtol=1e-12, atol=1e-12)


def test_weighted_background_by_hand(interventional, and_model, corners):
    weights = [1, 1, 1, 5]
    row = np.array([[1.0, 1.0]])
    pd = interventional(max_order=2).fit(and_model, corners, sample_weight=weights)
    assert_allclose(pd.intercept_, [5.0])
    assert_allclose(pd.transform(row), [[6.0, 6.0, 8.0]])
    shap = interventional(output="shap").fit(and_model, corners, sample_weight=weights)
    assert_allclose(shap.transform(row), [[1.5, 1.5]])
    component = interventional(output="component").fit(and_model, corners, sample_weight=weights)
    assert_allclose(component.transform(row)[:, 2], [1.0])


def test_interactions_by_hand(interventional, and_model, corners):
    row = np.array([[1.0, 1.0]])
    explainer = interventional(output="shap_interaction").fit(and_model, corners)
    assert_allclose(explainer.transform(row), [[2.0, 2.0, 1.0]])
    component = interventional(output="component").fit(and_model, corners)
    assert_allclose(component.intercept_, [2.0])
    assert_allclose(component.transform(row), [[2.0, 2.0, 2.0]])


def test_truncated_decomposition_by_hand(interventional):
    cube = np.array(list(product([0.0, 1.0], repeat=3)))
    model = DecisionTreeRegressor().fit(cube, 16.0 * cube.all(axis=1))
    row = np.ones((1, 3))
    whole = interventional(output="component", max_order=None).fit(model, cube).explain(row)
    assert_allclose(whole.values, 2.0)
    assert_allclose(whole.base_values, 2.0)
    assert_allclose(whole.remainder, 0.0, atol=1e-12)
    shap = interventional(output="shap").fit(model, cube)
    assert_allclose(shap.transform(row), 14 / 3)
    truncated = interventional(output="component", max_order=2).fit(model, cube).explain(row)
    assert_allclose(truncated.remainder, 2.0)
    assert not truncated.complete


def test_shap_of_a_linear_model(X, y):
    model = LinearRegression().fit(X, y)
    explainer = VanillaPDExplainer(output="shap").fit(model, X, sample_weight=WEIGHTS)
    truth = model.coef_ * (X - np.average(X, axis=0, weights=WEIGHTS))
    assert_allclose(explainer.transform(X), truth, atol=1e-12)
    explainer.set_params(output="shap_interaction").fit(model, X, sample_weight=WEIGHTS)
    pairs = explainer.transform(X)
    assert_allclose(pairs[:, :4], truth, atol=1e-12)
    assert_allclose(pairs[:, 4:], 0.0, atol=1e-12)


def test_requested_terms_keep_their_values(explainer_class, model, X):
    whole = explainer_class(output="shap_interaction").fit(model, X)
    some = explainer_class(output="shap_interaction", features=[(2, 1), 2]).fit(model, X)
    assert some.terms_ == (("x1", "x2"), ("x2",))
    place = [whole.terms_.index(T) for T in some.terms_]
    assert_allclose(some.transform(X), whole.transform(X)[:, place])


def test_explaining_does_not_drift(explainer_class, classifier, X):
    explainer = explainer_class(output="shap").fit(classifier, X)
    before = explainer.intercept_.copy()
    first = explainer.transform(X)
    assert np.array_equal(explainer.transform(X), first)
    assert np.array_equal(explainer.explain(X).base_values, before)
    assert np.array_equal(explainer.intercept_, before)
    again = explainer_class(output="shap").fit(classifier, X)
    assert np.array_equal(again.intercept_, before)


def test_inputs_stay_as_they_are(explainer_class, model, X):
    background, rows = X.copy(), X[:5].copy()
    background.flags.writeable = rows.flags.writeable = False
    explainer_class(output="shap").fit(model, background).transform(rows)
    assert np.array_equal(background, X)


def test_later_changes_of_the_background_do_not_matter(explainer_class, model, X):
    background = X.copy()
    explainer = explainer_class().fit(model, background)
    before = explainer.transform(X)
    background[:] = 0.0
    assert np.array_equal(explainer.transform(X), before)


def test_integer_background_is_not_rounded_onto(interventional, model, X):
    background = X.astype(np.int64)
    explainer = interventional().fit(model, background)
    truth = expected("pd", model.predict, X[:5], background.astype(float), SINGLES)
    assert_allclose(explainer.transform(X[:5]), truth[:, :, 0])


def test_blocks_of_rows_make_no_difference(explainer_class, model, X, monkeypatch):
    explainer = explainer_class(output="component").fit(model, X)
    whole = explainer.transform(X)
    monkeypatch.setattr("fastpd_sklearn.explainers._fitted.BLOCK_BYTES", 1000)
    assert np.array_equal(explainer.transform(X), whole)


def test_blocks_of_the_background_make_no_difference(model, X, monkeypatch):
    explainer = VanillaPDExplainer(output="component").fit(model, X)
    whole = explainer.transform(X)
    monkeypatch.setattr("fastpd_sklearn.explainers._vanilla.BLOCK_ROWS", 7)
    assert_allclose(explainer.transform(X), whole, atol=1e-12)
