"""What engines of trees offer beyond the game: every row's own response."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier
from sklearn.inspection import partial_dependence

from fastpd_sklearn import FastPDExplainer


@pytest.mark.parametrize("n_classes", [2, 3])
def test_individual_curves_are_scikit_learns(n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    y = np.clip((X[:, 0] + X[:, 1] * X[:, 2]).astype(int), 0, n_classes - 1)
    model = GradientBoostingClassifier(n_estimators=8, random_state=0).fit(X, y)
    engine = FastPDExplainer().fit(model, X)._fitted.engine
    values = np.array([0.3, -2.0, 0.3, 9.0])
    grid = np.zeros((len(values), 3))
    grid[:, 1] = values
    found = engine.individual(X, (1,), [grid])
    options = {"kind": "individual", "method": "brute", "response_method": "decision_function"}
    truth = partial_dependence(model, X, [1], custom_values={1: values}, **options)
    assert_allclose(found, truth["individual"].reshape(found.shape), rtol=0, atol=1e-12)


def test_two_players_and_missing_values():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    X[rng.random(X.shape) < 0.2] = np.nan
    model = HistGradientBoostingClassifier(max_iter=10, min_samples_leaf=5)
    model.fit(X, rng.random(60) < 0.5)
    engine = FastPDExplainer(groups={"g": [0, 2]}).fit(model, X)._fitted.engine
    grids = [X[:5], X[7:10]]
    found = engine.individual(X[20:], (0, 2), grids)
    assert found.shape == (1, 40, 5, 3)
    for a, b in np.ndindex(5, 3):
        changed = X[20:].copy()
        changed[:, [0, 2]], changed[:, 3] = X[a, [0, 2]], X[7 + b, 3]
        truth = model.decision_function(changed)
        assert_allclose(found[0, :, a, b], truth, rtol=0, atol=1e-12)
