"""Curves of a search's candidates against refits and predictions."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy.stats import randint
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import Ridge
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    KFold,
    RandomizedSearchCV,
    ShuffleSplit,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.model_selection import candidate_curves, curve_stability
from tests import oracles
from tests.model_selection.conftest import WEIGHTS

TREE = DecisionTreeRegressor(random_state=0)
FOLDS = KFold(3)


@pytest.fixture(scope="module")
def search(X, y):
    return GridSearchCV(TREE, {"max_depth": [1, 2, 4]}, cv=FOLDS).fit(X, y)


def curve_by_prediction(model, X, feature, points, weights=None):
    rows = np.zeros((len(points), X.shape[1]))
    rows[:, feature] = points
    return oracles.pd_function(model.predict, X, weights, [feature], rows).T


def test_refits_on_all_rows(search, X, y):
    result = candidate_curves(search, X, y, [3, 0])
    assert result.features == ("x3", "x0")
    order = np.argsort(-search.cv_results_["mean_test_score"], kind="stable")
    assert result.candidates.tolist() == order.tolist()
    assert result.rank.tolist() == [1, 2, 3]
    assert_allclose(result.mean_test_score, search.cv_results_["mean_test_score"][order])
    assert_allclose(result.std_test_score, search.cv_results_["std_test_score"][order])
    assert result.candidates[result.best] == search.best_index_
    assert result.fold_scores is None
    assert result.stability is None
    for k, params in enumerate(result.params):
        assert params == search.cv_results_["params"][order[k]]
        model = clone(TREE).set_params(**params).fit(X, y)
        for i, feature in enumerate([3, 0]):
            grid = result.grid_values[i]
            assert_allclose(grid, np.unique(X[:, feature]))
            expected = curve_by_prediction(model, X, feature, grid)
            assert_allclose(result.average[i][k, 0], expected)
            assert_allclose(result.curves[i][k][0](grid), expected)
            assert_allclose(result.feature_values[i], X[:, feature])


def test_refits_on_folds(search, X, y):
    result = candidate_curves(search, X, y, 3, cv=search.cv, grid=[0.0, 1.2, 2.5])
    for k, row in enumerate(result.candidates):
        models = []
        for fold, (train, test) in enumerate(FOLDS.split(X)):
            models.append(clone(TREE).set_params(**result.params[k]).fit(X[train], y[train]))
            expected = curve_by_prediction(models[-1], X, 3, [0.0, 1.2, 2.5])
            assert_allclose(result.average[0][k, fold], expected)
            assert_allclose(result.fold_scores[k, fold], models[-1].score(X[test], y[test]))
            split = search.cv_results_[f"split{fold}_test_score"]
            assert_allclose(result.fold_scores[k, fold], split[row])
        assert_allclose(result.stability[k], curve_stability(models, X, [3]).stability)


def test_a_single_split_has_no_stability(search, X, y):
    result = candidate_curves(search, X, y, 0, cv=ShuffleSplit(1, random_state=0))
    assert result.stability is None
    assert result.fold_scores.shape == (3, 1)


def test_weights(search, X, y):
    result = candidate_curves(search, X, y, 0, sample_weight=WEIGHTS, top=1)
    model = clone(TREE).set_params(**result.params[0]).fit(X, y, sample_weight=WEIGHTS)
    expected = curve_by_prediction(model, X, 0, result.grid_values[0], WEIGHTS)
    assert_allclose(result.average[0][0, 0], expected)


def test_processes_find_the_same(search, X, y):
    one, two = (candidate_curves(search, X, y, cv=2, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert one.features == ("x0", "x1", "x2", "x3")
    for i in range(4):
        assert_allclose(one.average[i], two.average[i], rtol=0)


def test_the_search_and_its_data_are_left_alone(X, y):
    frame = pd.DataFrame(X, columns=list("abcd"))
    search = GridSearchCV(TREE, {"max_depth": [1, 2]}, cv=2).fit(frame, pd.Series(y))
    before, best = frame.copy(), search.best_estimator_
    result = candidate_curves(search, frame, pd.Series(y), ["d"], cv=2)
    assert result.features == ("d",)
    pd.testing.assert_frame_equal(frame, before)
    assert search.best_estimator_ is best
    assert not hasattr(search.estimator, "tree_")


def test_top_keeps_the_best_and_the_chosen(X, y):
    search = GridSearchCV(TREE, {"max_depth": [1, 2, 3, 4]}, cv=FOLDS, refit=lambda results: 0).fit(
        X, y
    )
    result = candidate_curves(search, X, y, 0, top=2)
    order = np.argsort(-search.cv_results_["mean_test_score"], kind="stable")
    assert order[3] == 0  # a stump is the worst, and was chosen nevertheless
    assert result.candidates.tolist() == [order[0], order[1], 0]
    assert result.rank.tolist() == [1, 2, 4]
    assert result.best == 2


def test_equal_scores_share_a_rank(X, y):
    grid = {"max_depth": [2, 1], "min_samples_leaf": [1, 2]}  # no leaf of a stump is that small
    result = candidate_curves(GridSearchCV(TREE, grid, cv=2).fit(X, y), X, y, 0)
    assert result.rank[-2:].tolist() == [3, 3]


def test_random_search(X, y):
    search = RandomizedSearchCV(
        TREE, {"max_depth": randint(1, 5)}, n_iter=3, random_state=0, cv=2
    ).fit(X, y)
    assert len(candidate_curves(search, X, y, 0).params) == 3


@pytest.mark.parametrize("resource", ["n_samples", "n_estimators"])
def test_halving_counts_a_candidate_once(X, y, resource):
    search = HalvingGridSearchCV(
        RandomForestRegressor(n_estimators=2, random_state=0),
        {"max_depth": [1, 2, 3, 4]},
        resource=resource,
        max_resources=60 if resource == "n_samples" else 4,
        min_resources=20 if resource == "n_samples" else 1,
        factor=2,
        cv=2,
        random_state=0,
    ).fit(X, y)
    result = candidate_curves(search, X, y, 3)
    assert len(search.cv_results_["params"]) > 4
    assert sorted(params["max_depth"] for params in result.params) == [1, 2, 3, 4]
    assert result.params[0] == search.best_params_
    assert result.best == 0
    iteration = search.cv_results_["iter"][result.candidates]
    assert iteration.tolist() == sorted(iteration, reverse=True)
    assert iteration[0] == search.cv_results_["iter"].max()
    assert result.rank.tolist() == [1, 2, 3, 4]


@pytest.fixture(scope="module")
def multimetric(X, y):
    scoring = {"r2": "r2", "error": "neg_mean_absolute_error"}
    return GridSearchCV(
        TREE, {"max_depth": [1, 2, 4]}, scoring=scoring, refit="error", cv=FOLDS
    ).fit(X, y)


@pytest.mark.parametrize(("scoring", "used"), [(None, "error"), ("r2", "r2")])
def test_several_scores(multimetric, X, y, scoring, used):
    result = candidate_curves(multimetric, X, y, 0, scoring=scoring, cv=FOLDS)
    assert result.scoring == used
    order = np.argsort(-multimetric.cv_results_[f"mean_test_{used}"], kind="stable")
    assert result.candidates.tolist() == order.tolist()
    assert_allclose(result.fold_scores.mean(axis=1), result.mean_test_score)
    assert result.candidates[result.best] == multimetric.best_index_


def both_scores(estimator, X, y):
    return {"r2": estimator.score(X, y), "depth": -float(estimator.get_depth())}


def test_a_scorer_that_gives_several(X, y):
    search = GridSearchCV(TREE, {"max_depth": [1, 3]}, scoring=both_scores, refit="depth", cv=2)
    result = candidate_curves(search.fit(X, y), X, y, 0, cv=2)
    assert result.params[0] == {"max_depth": 1}
    assert_allclose(result.fold_scores, [[-1, -1], [-3, -3]])


def test_no_refit(X, y):
    scoring = {"r2": "r2", "error": "neg_mean_absolute_error"}
    search = GridSearchCV(TREE, {"max_depth": [1, 3]}, scoring=scoring, refit=False, cv=2)
    search.fit(X, y)
    with pytest.raises(ValueError, match=r"scoring=None is none of .* 'r2', 'error'"):
        candidate_curves(search, X, y, 0)
    result = candidate_curves(search, X, y, 0, scoring="r2")
    assert result.best == 0
    assert not hasattr(search, "best_index_")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.FitFailedWarning")
@pytest.mark.filterwarnings("ignore:One or more of the test scores:UserWarning")
def test_candidates_whose_fit_failed_are_left_out(X, y):
    search = GridSearchCV(TREE, {"max_depth": [-1, 2]}, cv=2).fit(X, y)
    result = candidate_curves(search, X, y, 0)
    assert result.params == [{"max_depth": 2}]
    assert result.candidates.tolist() == [1]


def test_classes(X, y):
    labels = np.digitize(y, [4, 9])
    forest = RandomForestClassifier(n_estimators=2, max_depth=2, random_state=0)
    search = GridSearchCV(forest, {"max_depth": [1, 2]}, cv=2).fit(X, labels)
    result = candidate_curves(search, X, labels, 0)
    assert result.output_names == ("0", "1", "2")
    model = clone(forest).set_params(**result.params[1]).fit(X, labels)
    rows = np.zeros((len(result.grid_values[0]), 4))
    rows[:, 0] = result.grid_values[0]
    expected = oracles.pd_function(model.predict_proba, X, None, [0], rows).T
    assert_allclose(result.average[0][1, 0], expected)
    one = candidate_curves(search, X, labels, 0, target=2)
    assert_allclose(one.average[0][1, 0], expected[2:])


def test_folds_that_know_other_classes(X):
    labels = np.repeat(["a", "b", "c"], 20)
    forest = RandomForestClassifier(n_estimators=2, max_depth=2, random_state=0)
    search = GridSearchCV(forest, {"max_depth": [1, 2]}, cv=2).fit(X, labels)
    splits = [(np.arange(40), np.arange(40, 60)), (np.arange(60), np.arange(60))]
    with pytest.raises(ValueError, match="outputs"):
        candidate_curves(search, X, labels, 0, cv=splits)


def test_categories(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame({"kind": pd.Categorical(np.array(list("abc"))[np.arange(60) % 3]), "x": y})
    model = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1)
    target = y + 5.0 * (frame["kind"] == "b")
    search = GridSearchCV(model, {"num_leaves": [3, 5]}, cv=2).fit(frame, target)
    result = candidate_curves(search, frame, target, "kind")
    assert result.grid_values[0].tolist() == ["a", "b", "c"]
    for k, params in enumerate(result.params):
        fitted = clone(model).set_params(**params).fit(frame, target)
        for label, level in zip("abc", result.curves[0][k][0].levels[0], strict=True):
            kind = pd.Categorical([label] * 60, categories=["a", "b", "c"])
            assert_allclose(level, fitted.predict(frame.assign(kind=kind)).mean())
            assert_allclose(result.curves[0][k][0]([label])[0], level)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"features": [9]}, "column 9 does not exist"),
        ({"features": [(0, 1)]}, r"\(0, 1\) is a set of features, which has no curve"),
        ({"features": "bmi"}, "unknown feature 'bmi'"),
        ({"features": [0, 0]}, "names a feature twice"),
        ({"features": [0, 1], "grid": [0.0]}, "expected a list of 2 arrays"),
        ({"features": 0, "top": 0}, "top=0 should be a positive int"),
        ({"features": 0, "top": 1.5}, "top=1.5 should be a positive int"),
        ({"features": 0, "scoring": "r2"}, "scoring='r2' is none of .* 'score'"),
        ({"features": 0, "target": 1}, "target=1 is none"),
        ({"features": 0, "sample_weight": [1.0]}, "one weight a row"),
    ],
)
def test_errors(search, X, y, kwargs, message):
    with pytest.raises(ValueError, match=message):
        candidate_curves(search, X, y, **kwargs)


def test_other_rows_than_those_of_the_search(search, X, y):
    with pytest.raises(ValueError, match="X has 3 columns, and the search was fitted on 4"):
        candidate_curves(search, X[:, :3], y, 0)
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples: \[60, 59\]"):
        candidate_curves(search, X, y[1:], 0)
    with pytest.raises(ValueError, match="y=None: the candidates are fitted anew"):
        candidate_curves(search, X)


def test_what_is_no_fitted_search(X, y):
    with pytest.raises(NotFittedError, match="GridSearchCV has no cv_results_"):
        candidate_curves(GridSearchCV(TREE, {}), X, y, 0)
    with pytest.raises(TypeError, match="search is a DecisionTreeRegressor"):
        candidate_curves(TREE, X, y, 0)


def test_models_that_are_no_trees_are_refused(X, y):
    search = GridSearchCV(Ridge(), {"alpha": [1, 2]}, cv=2).fit(X, y)
    with pytest.raises((TypeError, ValueError), match="Ridge"):
        candidate_curves(search, X, y, 0)
