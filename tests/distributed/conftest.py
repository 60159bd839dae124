"""Rows, a model and a cluster of two processes."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

NAMES = ["a", "b", "c", "d"]


class Case:
    """A model of a frame and of an array, with weights for the rows."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(200, 4)).round(1)
        self.X[rng.random((200, 4)) < 0.05] = np.nan
        self.weights = rng.random(200) * (np.arange(200) % 4 > 0)
        self.frame = pd.DataFrame(self.X, columns=NAMES, index=pd.RangeIndex(200, name="id"))
        y = np.nan_to_num(self.X[:, 0] * self.X[:, 1] + self.X[:, 2])
        fresh = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3)
        self.named = fresh.fit(self.frame, y)
        self.model = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(self.X, y)


@pytest.fixture(scope="session")
def case():
    return Case()


@pytest.fixture(scope="session")
def cluster():
    """One for all tests, since it takes seconds to start; no port is fixed."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, scheduler_port=0, dashboard_address=None
        ) as made,
        distributed.Client(made, timeout=60) as client,
    ):
        client.wait_for_workers(2, timeout=60)
        yield client


@pytest.fixture
def threads():
    """Dask's own scheduler, also where a cluster is there."""
    dask = pytest.importorskip("dask")
    with dask.config.set(scheduler="threads"):
        yield
