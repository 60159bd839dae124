"""Scorers within scikit-learn's searches, over processes, with weights and metadata routing."""

import pickle

import numpy as np
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.metrics import check_scoring
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.model_selection import (
    feature_influence,
    feature_influence_scorer,
    interaction_share,
    interaction_share_scorer,
    monotonicity_violation,
    monotonicity_violation_scorer,
    term_strength,
    term_strength_scorer,
)
from tests.model_selection.conftest import WEIGHTS

CASES = {
    "interactions": (interaction_share_scorer(), lambda m, X, **kw: interaction_share(m, X, **kw)),
    "pair": (
        term_strength_scorer((0, 1), measure="std"),
        lambda m, X, **kw: term_strength(m, X, (0, 1), measure="std", **kw),
    ),
    "monotone": (
        monotonicity_violation_scorer(3, "decreasing"),
        lambda m, X, **kw: monotonicity_violation(m, X, 3, "decreasing", **kw),
    ),
    "protected": (
        feature_influence_scorer([1, 2], relative=False),
        lambda m, X, **kw: feature_influence(m, X, [1, 2], relative=False, **kw),
    ),
}
SCORING = {"r2": "r2", **{name: scorer for name, (scorer, _) in CASES.items()}}


@pytest.fixture(scope="module")
def search(X, y):
    tree = DecisionTreeRegressor(random_state=0)
    search = GridSearchCV(tree, {"max_depth": [1, 3]}, scoring=SCORING, refit="r2", cv=KFold(3))
    return search.fit(X, y)


@pytest.mark.parametrize("name", CASES)
def test_a_search_holds_minus_the_measure_of_each_fold(search, X, y, name):
    for row, params in enumerate(search.cv_results_["params"]):
        for k, (train, test) in enumerate(KFold(3).split(X)):
            model = clone(search.estimator).set_params(**params).fit(X[train], y[train])
            expected = -CASES[name][1](model, X[test])
            assert_allclose(search.cv_results_[f"split{k}_test_{name}"][row], expected)
    assert np.any(search.cv_results_[f"mean_test_{name}"] < 0)


def test_processes_find_the_same(search, X, y):
    parallel = clone(search).set_params(n_jobs=2).fit(X, y)
    for key in search.cv_results_:
        if "_test_" in key:  # numpy's sums may differ in the last bit by where an array lies
            assert_allclose(parallel.cv_results_[key], search.cv_results_[key], rtol=1e-12)


def test_a_search_can_go_by_a_scorer_alone(X, y):
    tree = DecisionTreeRegressor(random_state=0)
    search = GridSearchCV(tree, {"max_depth": [1, 4]}, scoring=interaction_share_scorer(), cv=3)
    assert search.fit(X, y).best_params_ == {"max_depth": 1}
    assert search.best_score_ == 0
    most = clone(search).set_params(scoring=interaction_share_scorer(greater_is_better=True))
    assert most.fit(X, y).best_params_ == {"max_depth": 4}
    assert most.score(X) > 0


@pytest.mark.parametrize("name", CASES)
def test_copies(model, X, name):
    scorer, measure = CASES[name]
    assert check_scoring(model, scorer) is scorer
    again = eval(repr(scorer))
    for copy in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False), again):
        assert copy(model, X) == -measure(model, X)
        assert repr(copy) == repr(scorer)


@pytest.mark.parametrize("name", CASES)
def test_weights(model, X, y, name):
    scorer, measure = CASES[name]
    value = scorer(model, X, y, sample_weight=WEIGHTS)
    assert value == -measure(model, X, sample_weight=WEIGHTS)
    assert value != scorer(model, X, y)


def weighted_results(X, y, **scoring):
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    return tree, GridSearchCV(tree, {"max_depth": [3]}, scoring=scoring, refit=False, cv=KFold(2))


def expected_with_weights(tree, measure, X, y):
    scores = []
    for train, test in KFold(2).split(X):
        model = clone(tree).fit(X[train], y[train], sample_weight=WEIGHTS[train])
        scores.append(-measure(model, X[test], sample_weight=WEIGHTS[test]))
    return np.mean(scores)


@pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="searches pass weights to scorers from 1.9 on",
)
def test_weights_of_a_search(X, y):
    scorer, measure = CASES["interactions"]
    tree, search = weighted_results(X, y, share=scorer, r2="r2")
    search.fit(X, y, sample_weight=WEIGHTS)
    expected = expected_with_weights(tree, measure, X, y)
    assert_allclose(search.cv_results_["mean_test_share"], expected)


def test_metadata_routing(X, y):
    scorer, measure = CASES["pair"]
    with sklearn.config_context(enable_metadata_routing=True):
        tree, search = weighted_results(
            X, y, pair=eval(repr(scorer)).set_score_request(sample_weight=True)
        )
        search.estimator.set_fit_request(sample_weight=True)
        search.fit(X, y, sample_weight=WEIGHTS)
        with pytest.raises(ValueError, match=r"sample_weight.* not explicitly set"):
            weighted_results(X, y, pair=scorer)[1].set_params(estimator=search.estimator).fit(
                X, y, sample_weight=WEIGHTS
            )
    expected = expected_with_weights(tree, measure, X, y)
    assert_allclose(search.cv_results_["mean_test_pair"], expected)
    with pytest.raises(RuntimeError, match="enable_metadata_routing=True"):
        scorer.set_score_request(sample_weight=True)


def test_cross_validate(X, y, model):
    result = cross_validate(
        model,
        X,
        y,
        cv=KFold(2),
        scoring={"share": interaction_share_scorer()},
        return_train_score=True,
        return_estimator=True,
    )
    train, _ = next(KFold(2).split(X))
    assert result["train_share"][0] == -interaction_share(result["estimator"][0], X[train])


def test_errors():
    with pytest.raises(ValueError, match="direction='up' is none of"):
        monotonicity_violation_scorer(0, "up")
    with pytest.raises(ValueError, match="measure='sd' is none of"):
        term_strength_scorer(0, measure="sd")
    with pytest.raises(ValueError, match="measure='sd' is none of"):
        feature_influence_scorer([0], measure="sd")
    with pytest.raises(TypeError, match="greater_is_better=1 should be a bool"):
        interaction_share_scorer(greater_is_better=1)
