"""Models that the tests of importance and of H statistics run over, and their games."""

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)

from tests import oracles

N_ROWS = 40
WEIGHTS = np.arange(N_ROWS) % 4 / 2.0
SETTINGS = {
    "plain": (None, None),
    "weights": (WEIGHTS, None),
    "groups": (WEIGHTS, {"g": [0, 3]}),
}


@pytest.fixture(scope="session")
def X():
    """Four columns that depend on each other, with ties; nobody may change them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 5, size=(N_ROWS, 4)) / 2.0
    X[:, 1] = (X[:, 0] + X[:, 1]) / 2
    X.flags.writeable = False
    return X


@pytest.fixture(scope="session")
def y(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + (X[:, 1] > 1) * X[:, 3] * X[:, 2]


@pytest.fixture(scope="session")
def model(X, y):
    return RandomForestRegressor(n_estimators=4, max_depth=4, random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def classifier(X, y):
    labels = np.array(["high", "low", "mid"])[np.digitize(y, [3.0, 6.0])]
    return RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(X, labels)


@pytest.fixture(scope="session")
def missing(X):
    """Rows with missing values and a column of categories, and a model of them."""
    rows = X.copy()
    rows[::3, 1] = np.nan
    rows[:, 3] = np.arange(N_ROWS) % 5
    y = (
        np.nan_to_num(rows[:, 1], nan=2.0) * rows[:, 0]
        + np.array([3, 0, 1, 4, 2])[np.arange(40) % 5]
    )
    fitted = HistGradientBoostingRegressor(
        max_iter=8, max_leaf_nodes=6, min_samples_leaf=3, categorical_features=[3]
    )
    return fitted.fit(rows, y), rows


@pytest.fixture(scope="session", params=SETTINGS)
def setting(request):
    """Weights and groups."""
    return SETTINGS[request.param]


@pytest.fixture(scope="session", params=["regressor", "classes", "missing"])
def case(request, model, classifier, missing, X):
    """A model, its response of shape (n_rows, n_outputs), and rows."""
    if request.param == "missing":
        return missing[0], lambda rows: missing[0].predict(rows)[:, None], missing[1]
    if request.param == "classes":
        return classifier, classifier.predict_proba, X
    return model, lambda rows: model.predict(rows)[:, None], X


def players_of(groups):
    """Columns and names of the players."""
    if groups is None:
        return [[0], [1], [2], [3]], ["x0", "x1", "x2", "x3"]
    return [[0, 3], [1], [2]], ["g", "x1", "x2"]


@pytest.fixture(scope="session")
def game(case, setting):
    """``v_S`` of all sets at all rows, by prediction."""
    _, respond, rows = case
    weights, groups = setting
    return oracles.interventional_game(respond, rows, weights, rows, players_of(groups)[0])
