"""Explainers and data that the tests of generic behaviour run over."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer

EXPLAINERS = [FastPDExplainer, PathDependentExplainer, VanillaPDExplainer]
"""Every explainer that takes a tree ensemble and a background."""

INTERVENTIONAL = [FastPDExplainer, VanillaPDExplainer]
"""Those of them for which ``v_S`` is the mean over the rows of the background."""


@pytest.fixture(params=EXPLAINERS, ids=lambda cls: cls.__name__)
def explainer_class(request):
    return request.param


@pytest.fixture(params=INTERVENTIONAL, ids=lambda cls: cls.__name__)
def interventional(request):
    return request.param


@pytest.fixture(scope="session")
def X():
    """Rows with ties, so that values meet thresholds; nobody may change them."""
    rows = np.random.default_rng(0).integers(0, 5, size=(30, 4)) / 2.0
    rows.flags.writeable = False
    return rows


@pytest.fixture(scope="session")
def y(X):
    return X[:, 0] * X[:, 1] + 2 * X[:, 2] + (X[:, 1] > 1) * X[:, 3]


@pytest.fixture(scope="session")
def labels(y):
    return np.array(["high", "low", "mid"])[np.digitize(y, [3.0, 6.0])]


@pytest.fixture(scope="session")
def model(X, y):
    return RandomForestRegressor(n_estimators=3, max_depth=4, random_state=0).fit(X, y)


@pytest.fixture(scope="session")
def classifier(X, labels):
    return RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(X, labels)


@pytest.fixture(scope="session")
def binary(X, y):
    target = np.where(y > 4, "yes", "no")
    return RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0).fit(X, target)


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    """Makes a data frame of an array and names."""
    library = pytest.importorskip(request.param)
    if request.param == "pandas":
        return lambda X, names: library.DataFrame(np.asarray(X), columns=names)
    return lambda X, names: library.DataFrame(np.asarray(X), schema=list(names))


@pytest.fixture
def corners():
    """The four corners of a square and a model that is 8 in one of them: f = 8 [a, b > 1/2]."""
    return np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


@pytest.fixture
def and_model(corners):
    from sklearn.tree import DecisionTreeRegressor

    return DecisionTreeRegressor().fit(corners, [0.0, 0.0, 0.0, 8.0])
