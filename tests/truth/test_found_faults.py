"""Faults that this package once had, each with the right behaviour."""

import lightgbm as lgb
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("container", [sparse.csr_matrix, sparse.csc_matrix])
def test_lightgbm_thresholds_at_the_edge_of_zero(rng, container):
    """LightGBM reads -1e-35 in two ways, by the format; a sparse model was refused for it."""
    X = rng.normal(size=(100, 1))
    X[np.abs(X) < 0.5] = 0
    model = lgb.LGBMRegressor(n_estimators=1, verbose=-1, min_child_samples=5)
    model.fit(X, (X[:, 0] < 0) * 1.0)
    dense = FastPDExplainer(output="shap").fit(model, X)
    explainer = FastPDExplainer(output="shap").fit(model, container(X))
    assert_allclose(explainer.intercept_, dense.intercept_)
    assert_allclose(explainer.transform(container(X)), dense.transform(X))


@pytest.mark.parametrize(
    "explainer_class", [FastPDExplainer, PathDependentExplainer, VanillaPDExplainer]
)
@pytest.mark.parametrize("weight", [1e307, 5e-324])
def test_weights_beyond_the_range_of_floats(rng, explainer_class, weight):
    X = rng.normal(size=(200, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"sample_weight adds up to .*by their maximum"):
        explainer_class().fit(model, X, sample_weight=np.full(200, weight))


def test_small_and_large_weights_change_nothing(rng):
    X = rng.normal(size=(60, 3))
    model = DecisionTreeRegressor(max_depth=4).fit(X, X[:, 0] * X[:, 1])
    weights = rng.random(60)
    expected = FastPDExplainer(output="shap").fit(model, X, sample_weight=weights).transform(X)
    for scale in (2.0**900, 2.0**-900):
        scaled = FastPDExplainer(output="shap").fit(model, X, sample_weight=weights * scale)
        assert_allclose(scaled.transform(X), expected, rtol=1e-12)


def test_too_many_sets_are_refused_before_the_work(rng):
    """An unpruned tree on many columns has more sets of features than can ever be listed."""
    X = rng.normal(size=(2000, 40))
    model = RandomForestRegressor(1, random_state=0).fit(X, rng.normal(size=2000))
    with pytest.raises(MemoryError, match=r"max_order=None: .*lower max_order"):
        FastPDExplainer(output="component", max_order=None).fit(model, X[:50])


def test_a_model_that_was_refitted_in_place_is_another_one(rng):
    X = rng.normal(size=(100, 3))
    model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    explainer = FastPDExplainer().fit(model, X[:50])
    explainer.partial_fit(model, X[50:])
    assert_allclose(explainer.intercept_, model.predict(X).mean())
    model.fit(X, -5 * X[:, 1])
    with pytest.raises(ValueError, match="another one"):
        explainer.partial_fit(model, X[50:])


def test_weights_are_not_taken_by_position(rng):
    """`fit(model, X, y)` used to take the target for weights."""
    X = rng.normal(size=(50, 3))
    model = DecisionTreeRegressor(max_depth=3).fit(X, X[:, 0])
    with pytest.raises(TypeError):
        FastPDExplainer().fit(model, X, X[:, 0])
