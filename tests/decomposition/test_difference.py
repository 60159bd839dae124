"""Differences of models, of backgrounds, and drift, against the definition."""

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import explain_difference, explain_drift
from tests.oracles import INDICES, derivative, interventional_game, subsets

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, size=(40, 3)) / 2.0
OTHER = RNG.integers(1, 6, size=(25, 3)) / 2.0
Y = X[:, 0] * X[:, 1] + X[:, 2]
OLD = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=2).fit(X[:, :3], Y)
NEW = RandomForestRegressor(3, max_depth=3, random_state=0).fit(X, Y + X[:, 1] * X[:, 2])
PLAYERS = [[0], [1], [2]]


@pytest.mark.parametrize("output", ["pd", "component", "shap", "shap_interaction", "banzhaf"])
def test_two_models_are_one_model_that_is_their_difference(output):
    """Explained by the definition, calling ``new.predict - old.predict``."""
    game = interventional_game(lambda Z: NEW.predict(Z) - OLD.predict(Z), X, None, OTHER, PLAYERS)
    order = 2 if output in ("component", "shap_interaction") else "auto"
    old, new = (FastPDExplainer(output=output, max_order=order).fit(m, X) for m in (OLD, NEW))
    change = explain_difference(old, new, OTHER)
    assert change.base_values == pytest.approx(game[()][0, 0], abs=1e-10)
    for term in change.terms:
        S = tuple(int(name[1]) for name in term)
        np.testing.assert_allclose(change[term], INDICES[output](game, S)[:, 0], atol=1e-10)
    if output in ("component", "shap"):
        total = change.base_values + change.values.sum(axis=1) + change.remainder
        np.testing.assert_allclose(total, NEW.predict(OTHER) - OLD.predict(OTHER), atol=1e-10)


def test_terms_that_one_model_lacks():
    """The first model has no interactions at all; partial dependence of a pair it has."""
    old = FastPDExplainer(output="pd", max_order=2).fit(
        HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=2, min_samples_leaf=2).fit(X, Y),
        X,
    )
    new = FastPDExplainer(output="pd", max_order=2).fit(NEW, X)
    assert len(old.terms_) < len(new.terms_)
    game = interventional_game(
        lambda Z: NEW.predict(Z) - old.estimator_.predict(Z), X, None, OTHER, PLAYERS
    )
    for one, other, sign in ((old, new, 1), (new, old, -1)):
        change = explain_difference(one, other, OTHER)
        for S in ((0, 1), (1, 2)):
            found = change[tuple(f"x{k}" for k in S)]
            np.testing.assert_allclose(found, sign * game[S][:, 0], atol=1e-10)


def test_two_backgrounds_of_one_model():
    weights = RNG.uniform(size=len(OTHER))
    games = [
        interventional_game(NEW.predict, *background, X, PLAYERS)
        for background in ((X, None), (OTHER, weights))
    ]
    old = FastPDExplainer(output="component", max_order=None).fit(NEW, X)
    new = FastPDExplainer(output="component", max_order=None)
    new.fit(NEW, OTHER, sample_weight=weights)
    change = explain_difference(old, new, X)
    assert change.complete
    for S in subsets(range(3)):
        if S:
            expected = derivative(games[1], S) - derivative(games[0], S)
            term = tuple(f"x{k}" for k in S)
            np.testing.assert_allclose(change[term], expected[:, 0], atol=1e-10)
    # The predictions are the same: what the mean gains, the terms lose.
    np.testing.assert_allclose(change.values.sum(axis=1), -change.base_values, atol=1e-10)


@pytest.mark.parametrize("output", ["component", "shap", "shap_interaction"])
def test_drift_is_what_moved_the_mean(output):
    weights = RNG.uniform(size=len(OTHER))
    order = None if output == "component" else "auto"
    explainer = FastPDExplainer(output=output, max_order=order).fit(NEW, X)
    drift = explain_drift(explainer, X, OTHER, new_weight=weights)
    old, new = (interventional_game(NEW.predict, X, None, rows, PLAYERS) for rows in (X, OTHER))
    for term in drift.terms:
        S = tuple(int(name[1]) for name in term)
        expected = np.average(INDICES[output](new, S)[:, 0], weights=weights)
        expected -= INDICES[output](old, S)[:, 0].mean()
        assert drift[term][0] == pytest.approx(expected, abs=1e-10)
    factors = [2 if output == "shap_interaction" and len(t) == 2 else 1 for t in drift.terms]
    gained = drift.base_values + drift.values[0] @ factors + drift.remainder[0]
    assert gained == pytest.approx(np.average(NEW.predict(OTHER), weights=weights), abs=1e-10)
    assert drift.base_values == pytest.approx(NEW.predict(X).mean())
    assert drift.complete
    assert len(drift.to_frame()) == len(drift.terms)
    assert np.all(explain_drift(explainer, X, X).values == 0)


def test_drift_that_is_cut_has_a_remainder():
    explainer = FastPDExplainer(output="component", max_order=1).fit(NEW, X)
    drift = explain_drift(explainer, X, OTHER, old_weight=np.arange(40.0))
    larger = [
        sum(derivative(game, S) for S in subsets(range(3)) if len(S) > 1)
        for game in (
            interventional_game(NEW.predict, X, None, rows, PLAYERS) for rows in (X, OTHER)
        )
    ]
    expected = larger[1].mean() - np.average(larger[0][:, 0], weights=np.arange(40))
    assert drift.remainder[0] == pytest.approx(expected, abs=1e-10)
    assert not drift.complete


def test_features_that_become_dependent_move_the_interaction():
    """Two features whose own distributions stay as they are."""
    corners = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    model = DecisionTreeRegressor().fit(corners, [0.0, 2.0, 4.0, 10.0])
    explainer = FastPDExplainer(output="component").fit(model, corners)
    drift = explain_drift(explainer, corners, corners[[0, 3]])
    np.testing.assert_allclose(drift.values, [[0.0, 0.0, 1.0]], atol=1e-12)


def test_classes():
    labels = np.array(["low", "mid", "top"])[np.digitize(Y, [1.5, 3])]
    models = [
        RandomForestClassifier(3, max_depth=3, random_state=seed).fit(X, labels) for seed in (0, 1)
    ]
    old, new = (FastPDExplainer(output="shap").fit(model, X) for model in models)
    change = explain_difference(old, new, X)
    expected = models[1].predict_proba(X) - models[0].predict_proba(X)
    np.testing.assert_allclose(change.base_values + change.values.sum(axis=1), expected, atol=1e-12)
    assert explain_drift(new, X, OTHER).values.shape == (1, 3, 3)


def test_different_kinds_of_explainers():
    change = explain_difference(
        VanillaPDExplainer(output="shap").fit(NEW, X), FastPDExplainer(output="shap").fit(NEW, X), X
    )
    np.testing.assert_allclose(change.values, 0.0, atol=1e-10)


def test_bad_arguments():
    old = FastPDExplainer(output="shap").fit(OLD, X)
    with pytest.raises(ValueError, match="different output"):
        explain_difference(old, FastPDExplainer().fit(NEW, X), X)
    grouped = FastPDExplainer(output="shap", groups={"ab": [0, 1]}).fit(NEW, X)
    with pytest.raises(ValueError, match="different features"):
        explain_difference(old, grouped, X)
    with pytest.raises(TypeError, match="two fitted explainers"):
        explain_difference(old, NEW, X)
    with pytest.raises(ValueError, match="do not add up"):
        explain_drift(FastPDExplainer().fit(NEW, X), X, X)
    with pytest.raises(ValueError, match="new_weight"):
        explain_drift(FastPDExplainer(output="shap").fit(NEW, X), X, X, new_weight=[1.0, 2.0])
    with pytest.raises(TypeError, match="fitted explainer"):
        explain_drift(NEW, X, X)
    labels = Y > 2
    forest = FastPDExplainer().fit(RandomForestClassifier(2, random_state=0).fit(X, labels), X)
    boosted = FastPDExplainer().fit(HistGradientBoostingClassifier(max_iter=2).fit(X, labels), X)
    with pytest.raises(ValueError, match="response_method of both"):
        explain_difference(forest, boosted, X)
