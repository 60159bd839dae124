"""Data and models that the tests of inspection look at, and the definition they are held to."""

import matplotlib
import numpy as np
import pytest
from sklearn.datasets import make_friedman1
from threadpoolctl import threadpool_limits

matplotlib.use("Agg")


@pytest.fixture(scope="package", autouse=True)
def one_thread():
    """Small models are slower with more threads, far slower where tests share processors."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="session")
def X():
    """Rows of floats; nobody may change them."""
    rows = make_friedman1(n_samples=120, n_features=6, random_state=0)[0]
    rows.flags.writeable = False
    return rows


@pytest.fixture(scope="session")
def y():
    return make_friedman1(n_samples=120, n_features=6, random_state=0)[1]


@pytest.fixture(scope="session")
def labels(y):
    return np.array(["high", "low", "mid"])[np.digitize(y, [12.0, 17.0])]


@pytest.fixture
def pyplot():
    """``matplotlib.pyplot`` whose figures are closed afterwards."""
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")
