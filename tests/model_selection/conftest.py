"""Data and models that the tests of measures and searches share; nobody may change them."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

WEIGHTS = np.arange(60) % 4.0
"""Of the rows, some of them zero."""


@pytest.fixture(scope="session")
def X():
    """Correlated columns with ties, so that components are not orthogonal."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 6, size=(60, 4)) / 2.0
    rows[:, 1] = np.round(rows[:, 0] + rng.normal(size=60))
    rows.flags.writeable = False
    return rows


@pytest.fixture(scope="session")
def y(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + np.sin(3 * X[:, 3]) + (X[:, 1] > 1) * X[:, 2]


@pytest.fixture(scope="session")
def model(X, y):
    return RandomForestRegressor(n_estimators=4, max_depth=4, random_state=0).fit(X, y)


@pytest.fixture
def corners():
    """A square and a model that is 8 in one corner, else 0: all components are 2 or -2."""
    from sklearn.tree import DecisionTreeRegressor

    rows = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    return rows, DecisionTreeRegressor().fit(rows, [0.0, 0.0, 0.0, 8.0])
