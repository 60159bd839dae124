"""Terms in blocks are the terms of the whole explanation, each once."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingClassifier, GradientBoostingRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer

EXPLAINERS = [FastPDExplainer, PathDependentExplainer, VanillaPDExplainer]
ORDERS = {
    "pd": 2,
    "component": None,
    "shap": "auto",
    "shap_interaction": "auto",
    "banzhaf": 2,
    "total": 2,
}


@pytest.fixture(scope="module")
def regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6))
    y = X[:, 0] * X[:, 1] * X[:, 2] + X[:, 3]
    return GradientBoostingRegressor(n_estimators=8, max_depth=3).fit(X, y), X


@pytest.mark.parametrize("block_bytes", [1, 5_000, 2**24])
@pytest.mark.parametrize("output", ORDERS)
@pytest.mark.parametrize("explainer_class", EXPLAINERS)
def test_blocks_make_up_the_whole(regression, explainer_class, output, block_bytes):
    model, X = regression
    explainer = explainer_class(output=output, max_order=ORDERS[output]).fit(model, X)
    whole = dict(zip(explainer.terms_, explainer.explain(X[:20]).values.T, strict=True))
    seen = []
    for terms, values in explainer.explain_blocks(X[:20], block_bytes=block_bytes):
        assert values.shape == (20, len(terms))
        assert_allclose(values, np.column_stack([whole[t] for t in terms]), atol=1e-12)
        seen += terms
    assert sorted(seen) == sorted(explainer.terms_)


def test_blocks_of_several_outputs():
    X, y = load_iris(return_X_y=True)
    model = GradientBoostingClassifier(n_estimators=4).fit(X, y)
    explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
    whole = explainer.explain(X).values
    for terms, values in explainer.explain_blocks(X, block_bytes=20_000):
        numbers = [explainer.terms_.index(term) for term in terms]
        assert_allclose(values, whole[:, numbers], atol=1e-12)
    assert_allclose(explainer.mean_abs(X), np.abs(whole).mean(axis=0), atol=1e-12)
    only = FastPDExplainer(output="component", target=1).fit(model, X)
    assert only.mean_abs(X).shape == (len(only.terms_),)


@pytest.mark.parametrize("explainer_class", EXPLAINERS)
def test_mean_of_absolute_values(regression, explainer_class):
    model, X = regression
    weights = np.arange(60.0)
    explainer = explainer_class(output="component", max_order=None).fit(model, X)
    values = np.abs(explainer.transform(X))
    assert_allclose(explainer.mean_abs(X), values.mean(axis=0), atol=1e-12)
    truth = np.average(values, axis=0, weights=weights)
    assert_allclose(explainer.mean_abs(X, sample_weight=weights), truth, atol=1e-12)


def test_refusals(regression):
    model, X = regression
    explainer = FastPDExplainer().fit(model, X)
    with pytest.raises(ValueError, match="block_bytes=0"):
        explainer.explain_blocks(X, block_bytes=0)
    with pytest.raises(ValueError, match="expecting 6 features"):
        explainer.explain_blocks(X[:, :3])
    with pytest.raises(ValueError, match="sample_weight"):
        explainer.mean_abs(X, sample_weight=np.zeros(60))
