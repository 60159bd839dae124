"""Explanations cut by term, order and feature say what they leave out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn import FastPDExplainer

# Models that were fitted on arrays warn when they predict frames.
pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")
WEIGHTS = np.arange(30) % 4.0


@pytest.fixture(params=["one output", "classes"])
def whole(request, model, classifier, X):
    """All components, and the response."""
    one = request.param == "one output"
    fitted = model if one else classifier
    explainer = FastPDExplainer(output="component", max_order=None).fit(fitted, X)
    return explainer.explain(X), fitted.predict(X) if one else fitted.predict_proba(X)


def names(explanation):
    return [":".join(term) for term in explanation.terms]


def test_by_name_and_by_set_in_any_order(whole):
    explanation, _ = whole
    chosen = explanation.select([("x2", "x0"), "x1"])
    assert names(chosen) == ["x0:x2", "x1"]
    assert_array_equal(chosen["x0", "x2"], explanation["x2", "x0"])
    assert names(explanation.select("x3")) == ["x3"]
    assert names(explanation.select(("x1", "x0"))) == ["x0:x1"]
    assert ("x2", "x0") in chosen
    assert "x1" in chosen
    assert "x0" not in chosen


@pytest.mark.parametrize(
    ("how", "belongs"),
    [
        ({"order": 2}, lambda term: len(term) == 2),
        ({"order": range(2, 5)}, lambda term: len(term) > 1),
        ({"feature": "x1"}, lambda term: "x1" in term),
        ({"feature": "x1", "order": [1, 3]}, lambda term: "x1" in term and len(term) in (1, 3)),
        ({"order": 9}, lambda term: False),
        ({}, lambda term: True),
    ],
)
def test_by_order_and_by_feature(whole, how, belongs):
    explanation, response = whole
    chosen = explanation.select(**how)
    kept = [k for k, term in enumerate(explanation.terms) if belongs(term)]
    assert chosen.terms == tuple(explanation.terms[k] for k in kept)
    assert_array_equal(chosen.values, explanation.values[:, kept])
    assert_allclose(chosen.sum(), explanation.values[:, kept].sum(axis=1), atol=1e-12)
    rest = np.delete(explanation.values, kept, axis=1).sum(axis=1)
    assert_allclose(chosen.remainder, rest, atol=1e-12)
    total = chosen.base_values + chosen.sum() + chosen.remainder
    assert_allclose(total, response, atol=1e-12)
    assert chosen.complete == (len(kept) == len(explanation.terms))
    assert len(chosen.to_frame()) == chosen.values.size
    assert set(chosen.rank().terms) == set(chosen.terms)


def test_cuts_of_cuts(whole):
    explanation, response = whole
    both = explanation.select(feature="x0").select(feature="x2")
    assert {"x0", "x2"}.issubset(set.intersection(*map(set, both.terms)))
    assert_allclose(both.base_values + both.sum() + both.remainder, response, atol=1e-12)


def test_rank_by_weighted_mean(whole):
    explanation, _ = whole
    values = np.abs(explanation.values).reshape(30, len(explanation.terms), -1)
    size = np.average(values, axis=0, weights=WEIGHTS).sum(axis=1)
    order = np.argsort(-size, kind="stable")
    ranked = explanation.rank(sample_weight=WEIGHTS)
    assert ranked.terms == tuple(explanation.terms[k] for k in order)
    assert ranked.complete
    mean_abs = ranked.mean_abs(sample_weight=WEIGHTS).reshape(len(order), -1)
    assert_allclose(mean_abs.sum(axis=1), size[order], atol=1e-12)
    strongest = explanation.rank(2, sample_weight=WEIGHTS)
    assert strongest.terms == ranked.terms[:2]
    rest = ranked.values[:, 2:].sum(axis=1)
    assert_allclose(strongest.remainder, rest, atol=1e-12)
    assert explanation.rank().terms != ranked.terms  # so that the weights matter


def test_what_is_dropped_may_be_zero(X, model):
    """Terms that are zero leave nothing behind; they are no reason to call it cut."""
    wide = np.hstack([X, np.zeros((30, 1))])

    class Padded:
        def predict(self, rows):
            return model.predict(rows[:, :4])

    from fastpd_sklearn import VanillaPDExplainer

    explanation = VanillaPDExplainer(output="shap").fit(Padded(), wide).explain(wide)
    assert explanation.select(["x0", "x1", "x2", "x3"]).complete
    assert not explanation.select(["x4"]).complete


def test_pairs_of_shap_interactions_count_twice(model, X):
    explanation = FastPDExplainer(output="shap_interaction").fit(model, X).explain(X)
    phi = FastPDExplainer(output="shap").fit(model, X).transform(X)
    assert_allclose(explanation.base_values + explanation.sum(), model.predict(X), atol=1e-12)
    assert_allclose(explanation.shap_values(), phi, atol=1e-12)
    single = explanation.select(order=1)
    pairs = explanation.select(order=2).values.sum(axis=1)
    assert_allclose(single.remainder, 2 * pairs, atol=1e-12)


def test_shap_values_of_components(whole, model, classifier, X):
    explanation, _ = whole
    fitted = model if explanation.values.ndim == 2 else classifier
    phi = FastPDExplainer(output="shap").fit(fitted, X).explain(X).values
    assert_allclose(explanation.shap_values(), phi, atol=1e-12)
    with pytest.raises(ValueError, match=r"left out .* no SHAP values of the model"):
        explanation.rank(3).shap_values()


@pytest.mark.parametrize("output", ["pd", "banzhaf", "total"])
def test_sums_that_mean_nothing(model, X, output):
    explanation = FastPDExplainer(output=output).fit(model, X).explain(X)
    assert explanation.select("x1").remainder is None
    assert explanation.rank(2).values.shape == (30, 2)
    with pytest.raises(ValueError, match=f"output='{output}' does not add up"):
        explanation.sum()


def test_total_is_all_that_a_feature_takes_part_in(whole, model, classifier, X):
    explanation, _ = whole
    fitted = model if explanation.values.ndim == 2 else classifier
    total = FastPDExplainer(output="total").fit(fitted, X).explain(X)
    for name in ("x0", "x1", "x2", "x3"):
        assert_allclose(total[name], explanation.select(feature=name).sum(), atol=1e-12)


def test_single_precision(model, X):
    out = np.empty((30, 4), np.float32)
    explanation = FastPDExplainer(output="shap").fit(model, X).explain(X, out=out)
    chosen = explanation.select(["x0"])
    assert chosen.values.dtype == np.float32
    total = chosen.base_values + chosen.sum() + chosen.remainder
    assert_allclose(total, model.predict(X), rtol=1e-6)


def test_nothing_changes_what_it_is_cut_from(whole):
    explanation, _ = whole
    values, terms = explanation.values.copy(), explanation.terms
    chosen = explanation.rank(2)
    chosen.values[:] = 0.0
    assert_array_equal(explanation.values, values)
    assert explanation.terms == terms


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"terms": ["x9"]}, KeyError, "'x9' is not among the"),
        ({"terms": ["x1", ("x1",)]}, ValueError, "is named twice"),
        ({"terms": 3}, TypeError, "by the names of a term and not by rows"),
        ({"order": 0}, ValueError, "order=0 should be an int of at least 1"),
        ({"order": "2"}, TypeError, "order='2' should be an int, or several"),
        ({"order": [1, 2.0]}, ValueError, r"order=2\.0 should be an int"),
        ({"feature": "x9"}, KeyError, "feature='x9' is none of the features x0, x1"),
        ({"feature": ["x1", "x2"]}, TypeError, "the name of one feature"),
    ],
)
def test_what_cannot_be_selected(whole, how, error, message):
    with pytest.raises(error, match=message):
        whole[0].select(**how)


def test_ranks_that_cannot_be(whole):
    with pytest.raises(ValueError, match="n_terms=0 should be an int of at least 1"):
        whole[0].rank(0)
    with pytest.raises(ValueError, match=r"sample_weight\.shape"):
        whole[0].rank(sample_weight=[1.0])
