"""Interactions, terms and influence against their definitions, by the model's own predictions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from fastpd_sklearn.model_selection import feature_influence, interaction_share, term_strength
from tests import oracles
from tests.model_selection.conftest import WEIGHTS

PLAYERS = [[j] for j in range(4)]
SIZES = {
    "variance": lambda part, w: np.cov(part.T, aweights=w, ddof=0).trace(),
    "std": lambda part, w: np.cov(part.T, aweights=w, ddof=0).trace() ** 0.5,
    "mean_abs": lambda part, w: sum(np.average(np.abs(column), weights=w) for column in part.T),
}
ONE = np.ones(60)


def game(predict, X, weights=None):
    return oracles.interventional_game(predict, X, weights, X, PLAYERS)


def size(measure, part, weights=None):
    part = part.reshape(len(part), -1)
    kept = np.column_stack([part, np.zeros(len(part))])  # np.cov of one column is no matrix
    return SIZES[measure](kept, ONE if weights is None else weights)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
def test_interaction_share(model, X, weights):
    v = game(model.predict, X, weights)
    remainder = v[0, 1, 2, 3] - v[()] - sum(v[j,] - v[()] for j in range(4))
    expected = size("variance", remainder, weights) / size("variance", v[0, 1, 2, 3], weights)
    assert expected > 0.01
    assert_allclose(interaction_share(model, X, sample_weight=weights), expected, rtol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("measure", SIZES)
@pytest.mark.parametrize("term", [(1,), (0, 1), (0, 2, 3)])
def test_term_strength(model, X, term, measure, relative, weights):
    v = game(model.predict, X, weights)
    expected = size(measure, oracles.derivative(v, term), weights)
    if relative:
        expected /= size(measure, v[0, 1, 2, 3] - v[()], weights)
    assert expected > 1e-4
    found = term_strength(model, X, term, measure=measure, relative=relative, sample_weight=weights)
    assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weights"])
@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("measure", SIZES)
@pytest.mark.parametrize("features", [[1], [0, 2], [0, 1, 2, 3]])
def test_feature_influence(model, X, features, measure, relative, weights):
    v = game(model.predict, X, weights)
    others = tuple(sorted(set(range(4)) - set(features)))
    expected = size(measure, v[0, 1, 2, 3] - v[others], weights)
    if relative:
        expected /= size(measure, v[0, 1, 2, 3] - v[()], weights)
    found = feature_influence(
        model, X, features, measure=measure, relative=relative, sample_weight=weights
    )
    assert_allclose(found, expected, rtol=1e-9)


@pytest.fixture(scope="module")
def classifier(X, y):
    labels = np.array(["low", "mid", "high"])[np.digitize(y, [4, 9])]
    return RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(X, labels)


@pytest.mark.parametrize("target", [None, "mid"])
def test_several_outputs_are_pooled_and_one_can_be_chosen(classifier, X, target):
    classes = slice(None) if target is None else list(classifier.classes_).index(target)
    v = game(lambda rows: classifier.predict_proba(rows)[:, classes], X)
    total = size("variance", v[0, 1, 2, 3])
    remainder = v[0, 1, 2, 3] - v[()] - sum(v[j,] - v[()] for j in range(4))
    assert_allclose(
        interaction_share(classifier, X, target=target), size("variance", remainder) / total
    )
    assert_allclose(
        term_strength(classifier, X, (0, 1), target=target),
        size("variance", oracles.derivative(v, (0, 1))) / total,
    )
    assert_allclose(
        feature_influence(classifier, X, [0], target=target),
        size("variance", v[0, 1, 2, 3] - v[1, 2, 3]) / total,
    )


def test_a_boosted_classifier_is_measured_on_its_margin(X, y):
    model = XGBClassifier(n_estimators=5, max_depth=3, n_jobs=1).fit(X, y > 5)
    v = game(lambda rows: model.predict(rows, output_margin=True), X)
    expected = size("std", oracles.derivative(v, (0,)))
    found = term_strength(model, X, 0, measure="std", relative=False)
    assert_allclose(found, expected, rtol=1e-4)  # XGBoost adds in float32


def test_stumps_have_no_interactions(X, y):
    stumps = XGBRegressor(n_estimators=30, max_depth=1, n_jobs=1).fit(X, y)
    assert interaction_share(stumps, X) == 0
    assert term_strength(stumps, X, (0, 1)) == 0


def test_by_hand(corners):
    X, model = corners
    assert_allclose(interaction_share(model, X), 1 / 3)
    assert_allclose(term_strength(model, X, 0), 1 / 3)
    assert_allclose(term_strength(model, X, (1, 0)), 1 / 3)
    assert_allclose(feature_influence(model, X, 1), 2 / 3)
    assert_allclose(feature_influence(model, X, [0, 1]), 1)
    # f less its mean over x1 is 0, 0, -4, 4.
    assert_allclose(feature_influence(model, X, 1, measure="mean_abs", relative=False), 2)


def test_independent_sums_share_the_variance():
    """y = 3 a + 4 b on a full grid: variances of 9 and 16 parts."""
    X = np.array([[a, b] for a in range(4) for b in range(4)], dtype=float)
    model = DecisionTreeRegressor().fit(X, X @ [3.0, 4.0])
    for feature, share in [(0, 9 / 25), (1, 16 / 25)]:
        assert_allclose(term_strength(model, X, feature), share)
        assert_allclose(feature_influence(model, X, feature), share)
    assert interaction_share(model, X) == 0


def test_integer_weights_are_repetitions(model, X):
    repeated = np.repeat(X, WEIGHTS.astype(int), axis=0)
    for measure, args in [
        (interaction_share, ()),
        (term_strength, ((0, 1),)),
        (feature_influence, ([0, 3],)),
    ]:
        assert_allclose(
            measure(model, X, *args, sample_weight=WEIGHTS), measure(model, repeated, *args)
        )


def test_unused_and_constant():
    X = np.random.default_rng(0).normal(size=(50, 3))
    one = DecisionTreeRegressor(max_depth=2).fit(X, np.sign(X[:, 1]))
    assert feature_influence(one, X, [0, 2]) == 0
    assert term_strength(one, X, (0, 2)) == 0
    flat = XGBRegressor(n_estimators=3, n_jobs=1).fit(X, np.full(50, 7.3))
    for value in (
        interaction_share(flat, X),
        term_strength(flat, X, 0),
        feature_influence(flat, X, [0, 1, 2]),
        feature_influence(flat, X, [0], measure="mean_abs"),
    ):
        assert value == 0


def test_names_of_columns(model, X, y):
    frame = pd.DataFrame(X, columns=["hours", "sex", "age", "zip"])
    named = RandomForestRegressor(n_estimators=4, max_depth=4, random_state=0).fit(frame, y)
    assert term_strength(named, frame, ("age", "hours")) == term_strength(model, X, (0, 2))
    assert feature_influence(named, frame, ["zip", "sex"]) == feature_influence(model, X, [1, 3])
    assert interaction_share(named, frame) == interaction_share(model, X)


def test_input_is_left_alone(X, y, model):
    frame = pd.DataFrame(X)
    feature_influence(model, frame.to_numpy(), [0])
    pd.testing.assert_frame_equal(frame, pd.DataFrame(X))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: term_strength(m, X, 9), "column 9 does not exist"),
        (lambda m, X: term_strength(m, X, "bmi"), "unknown feature 'bmi'"),
        (lambda m, X: term_strength(m, X, 0, measure="sd"), "measure='sd' is none of"),
        (lambda m, X: term_strength(m, X, ()), "an empty tuple names no feature"),
        (lambda m, X: feature_influence(m, X, []), "an empty tuple names no feature"),
        (lambda m, X: feature_influence(m, X, ["sex"]), "features: unknown feature 'sex'"),
        (lambda m, X: feature_influence(m, X, [1, 1]), "names a feature twice"),
        (lambda m, X: feature_influence(m, X, 0, measure=None), "measure=None is none of"),
        (lambda m, X: interaction_share(m, X, target="a"), "target='a' is none"),
        (lambda m, X: interaction_share(m, X[:, :3]), "X has 3 features, but"),
        (lambda m, X: interaction_share(m, X, sample_weight=-np.ones(60)), "Negative values"),
    ],
)
def test_errors(model, X, call, message):
    with pytest.raises(ValueError, match=message):
        call(model, X)


def test_models_that_are_no_trees_are_refused(X, y):
    with pytest.raises((TypeError, ValueError), match="LinearRegression"):
        interaction_share(LinearRegression().fit(X, y), X)
    with pytest.raises(TypeError, match="estimator is a NoneType; give a fitted model"):
        term_strength(None, X, 0)
    with pytest.raises(TypeError, match="features=None should be a list"):
        feature_influence(LinearRegression().fit(X, y), X, None)
