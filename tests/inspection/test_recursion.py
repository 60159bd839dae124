"""``method="recursion"`` is scikit-learn's, where that is right."""

import numpy as np
import pandas as pd
import pytest
import sklearn.inspection
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from fastpd_sklearn import PathDependentExplainer
from fastpd_sklearn.inspection import partial_dependence

from .oracle import close


def both(model, X, features, **params):
    params = {"grid_resolution": 6, "method": "recursion", **params}
    found = partial_dependence(model, X, features, **params)
    return found, sklearn.inspection.partial_dependence(model, X, features, **params)


@pytest.mark.parametrize(
    "model",
    [
        DecisionTreeRegressor(max_depth=5, random_state=0),
        RandomForestRegressor(4, max_depth=5, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("features", [[0], [3, 1]])
def test_trees_and_forests(model, features, X, y):
    weights = np.random.default_rng(0).random(len(X))  # of the training, which covers are about
    found, wanted = both(clone(model).fit(X, y, sample_weight=weights), X, features)
    assert close(found.average, wanted.average, rel=1e-12)


@pytest.mark.parametrize(
    "model",
    [GradientBoostingRegressor(n_estimators=8), HistGradientBoostingRegressor(max_iter=8)],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("features", [[0], [3, 1]])
def test_boosting_has_its_initial_prediction_too(model, features, X, y):
    # scikit-learn leaves the initial prediction out: a constant.
    model = clone(model).fit(X, y)
    found, wanted = both(model, X, features)
    assert np.ptp(found.average - wanted.average) < 1e-12 * np.abs(y).max()
    rows = np.column_stack([X, np.ones(len(X))])
    other = clone(model).fit(rows, y)
    level = partial_dependence(other, rows, 6, method="recursion").average
    assert_allclose(level, [[other.predict(rows).mean()]], rtol=1e-9)


@pytest.mark.parametrize(
    "model",
    [GradientBoostingClassifier(n_estimators=4), HistGradientBoostingClassifier(max_iter=4)],
    ids=lambda model: type(model).__name__,
)
def test_boosted_classifiers_by_their_decision_function(model, X, labels):
    model = clone(model).fit(X, labels)
    found, wanted = both(model, X, [1])
    shift = found.average - wanted.average
    assert found.average.shape == (3, 6)
    assert np.ptp(shift, axis=1).max() < 1e-12
    assert np.array_equal(
        found.average,
        partial_dependence(model, X, [1], grid_resolution=6, method="recursion",
                           response_method="decision_function").average,
    )  # fmt: skip


def test_it_looks_at_no_row_of_X(X, y):
    model = RandomForestRegressor(4, max_depth=5, random_state=0).fit(X, y)
    grid = {0: [0.2, 0.5, 0.8]}
    all_rows = partial_dependence(model, X, 0, method="recursion", custom_values=grid)
    few_rows = partial_dependence(model, X[:3], 0, method="recursion", custom_values=grid)
    assert np.array_equal(all_rows.average, few_rows.average)


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(4, max_depth=4, random_state=0),
        XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1),
        LGBMRegressor(n_estimators=4, verbose=-1, n_jobs=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_that_scikit_learn_has_no_recursion_for(model, X, y, labels):
    classifies = isinstance(model, RandomForestClassifier)
    model = clone(model).fit(X, labels if classifies else y)
    found = partial_dependence(model, X, 0, method="recursion", custom_values={0: [0.2, 0.8]})
    assert found.average.shape == (3 if classifies else 1, 2)
    if classifies:  # shares of classes add up to one along all paths
        assert_allclose(found.average.sum(axis=0), 1.0)


# --- where scikit-learn's own is wrong --------------------------------------------------------


def test_missing_values_take_the_branch_that_the_tree_learnt():
    x = np.repeat([0.0, 1.0, 2.0, 3.0, np.nan, np.nan], 50)
    y = np.repeat([0.0, 0.0, 8.0, 8.0, 1.0, 1.0], 50)
    model = DecisionTreeRegressor(max_depth=2, random_state=0).fit(x[:, None], y)
    for method in ("auto", "recursion", "brute"):
        result = partial_dependence(
            model, x[:, None], 0, method=method, custom_values={0: [1.0, 3.0, np.nan]}
        )
        assert_allclose(result.average, [[0.0, 8.0, 1.0]], atol=1e-12)
    result = partial_dependence(model, x[:, None], 0, method="auto")
    assert_allclose(result.curve.missing, [1.0])
    anywhere = PathDependentExplainer().fit(model).partial_dependence(0)  # one break is at infinity
    assert_allclose(anywhere.average, anywhere.curve(anywhere.grid_values[0]))


def mixed_columns():
    rng = np.random.default_rng(0)
    number, category = rng.normal(size=800), rng.integers(0, 4, 800).astype(float)
    y = 2 * number + np.array([0.0, 10.0, -10.0, 5.0])[category.astype(int)]
    return np.column_stack([number, category]), y


def test_a_category_that_is_not_the_first_column():
    X, y = mixed_columns()
    model = HistGradientBoostingRegressor(
        categorical_features=[1], max_iter=30, learning_rate=0.3
    ).fit(X, y)
    grid = [-1.5, 0.0, 1.5]
    auto = partial_dependence(model, X, 0, custom_values={0: grid}).average
    path = partial_dependence(model, X, 0, custom_values={0: grid}, method="recursion").average
    wanted = [[model.predict(np.column_stack([np.full(800, v), X[:, 1]])).mean() for v in grid]]
    assert_allclose(auto, wanted, rtol=1e-9)
    assert_allclose(path, wanted, atol=0.5)  # the columns are independent, the covers nearly so
    assert_allclose(np.diff(path)[0], [3.0, 3.0], atol=0.5)


def test_the_category_itself():
    X, y = mixed_columns()
    model = HistGradientBoostingRegressor(
        categorical_features=[1], max_iter=30, learning_rate=0.3
    ).fit(X, y)
    path = partial_dependence(model, X, 1, categorical_features=[1], method="recursion")
    assert path.grid_values[0].tolist() == [0, 1, 2, 3]
    assert_allclose(path.average[0] - path.average[0, 0], [0.0, 10.0, -10.0, 5.0], atol=0.5)


def test_labels_have_no_codes_without_rows():
    X, y = mixed_columns()
    label = np.array(["p", "q", "r", "s"])[X[:, 1].astype(int)]
    frame = pd.DataFrame({"number": X[:, 0], "label": pd.Categorical(label)})
    model = HistGradientBoostingRegressor(
        categorical_features="from_dtype", max_iter=30, learning_rate=0.3
    )
    path = partial_dependence(model.fit(frame, y), frame, "label", method="recursion")
    assert path.grid_values[0].tolist() == ["p", "q", "r", "s"]
    assert_allclose(path.average[0] - path.average[0, 0], [0.0, 10.0, -10.0, 5.0], atol=0.5)
    pair = partial_dependence(
        model, frame, ["number", "label"], method="recursion", custom_values={"number": [-1.0, 1.0]}
    )
    assert pair.average.shape == (1, 2, 4)
    assert_allclose(pair.average[0, 1] - pair.average[0, 0], 4.0, atol=1.0)


def test_several_targets():
    X = np.array([[0.0], [1.0]])
    model = DecisionTreeRegressor().fit(X, [[1.0, 50.0], [3.0, 70.0]])
    for method in ("auto", "recursion", "brute"):
        result = partial_dependence(model, X, 0, method=method)
        assert_allclose(result.average, [[1.0, 3.0], [50.0, 70.0]])


def test_averages_are_over_the_rows_given_unless_recursion_is_asked_for():
    a = np.repeat([0.0, 1.0], 5)
    b = np.array([0, 0, 0, 0, 1, 1, 1, 1, 1, 0.0])
    X = np.column_stack([a, b])
    y = np.select([(a == 0) & (b == 0), (a == 0) & (b == 1), (a == 1) & (b == 0)], [2.0, 10, 4], 0)
    model = DecisionTreeRegressor(random_state=0).fit(X, y)
    assert_allclose(partial_dependence(model, X, 0).average, [[6.0, 2.0]])
    assert_allclose(partial_dependence(model, X, 1).average, [[3.0, 5.0]])
    assert_allclose(partial_dependence(model, X, 0, method="recursion").average, [[3.6, 0.8]])


# --- refusals ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"kind": "both"}, "only applies when 'kind' is set to 'average'"),
        ({"sample_weight": np.ones(120)}, "only be applied when sample_weight is None"),
        ({"response_method": "predict_proba"}, "the response_method must be .*decision_function"),
    ],
)
def test_what_the_recursion_does_not_know(params, message, X, labels):
    model = GradientBoostingClassifier(n_estimators=2).fit(X, labels)
    with pytest.raises(ValueError, match=message):
        partial_dependence(model, X, 0, method="recursion", **params)


def test_a_model_without_trees(X, y):
    from sklearn.linear_model import LinearRegression

    with pytest.raises(ValueError, match="LinearRegression is not a tree ensemble"):
        partial_dependence(LinearRegression().fit(X, y), X, 0, method="recursion")
