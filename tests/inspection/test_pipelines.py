"""Pipelines are looked at on the columns that they are given."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fastpd_sklearn.inspection import partial_dependence

from .oracle import by_definition, close

N = 150

# A pipeline of a tree ensemble is read, and nothing is said of prediction.
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.normal(size=(N, 3)), columns=["a", "b", "c"])
    rows["job"] = np.array(["clerk", "smith", "baker"])[rng.integers(0, 3, N)]
    rows.loc[::9, "b"] = np.nan
    return rows


@pytest.fixture(scope="module")
def target(frame):
    return 2 * frame["a"] * (frame["job"] == "smith") + frame["b"].fillna(3) + frame["c"]


def column_by_column():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return make_column_transformer(
        (OneHotEncoder(), ["job"]), (numbers, ["a", "b"]), remainder="passthrough"
    )


def mixing():
    return make_column_transformer(
        (OneHotEncoder(), ["job"]), (SimpleImputer(), ["b"]), (PCA(2), ["a", "c"])
    )


def mixing_all():
    return make_pipeline(column_by_column(), PCA(3))


@pytest.mark.parametrize("preprocessing", [column_by_column, mixing, mixing_all])
@pytest.mark.parametrize("features", ["a", "b", "job"])
@pytest.mark.parametrize("method", ["auto", "brute"])
def test_raw_columns(preprocessing, features, method, frame, target):
    forest = RandomForestRegressor(4, max_depth=5, random_state=0)
    model = make_pipeline(preprocessing(), forest).fit(frame, target)
    result = partial_dependence(
        model, frame, features, grid_resolution=5, method=method, kind="both"
    )
    assert len(result.grid_values[0]) == (3 if features == "job" else 5)
    wanted = by_definition(model.predict, frame, features, result.grid_values[0])
    assert close(result.average, wanted)
    assert close(result.individual.mean(axis=1), wanted)


def test_probabilities(frame, target):
    boosting = HistGradientBoostingClassifier(max_iter=5)
    model = make_pipeline(column_by_column(), clone(boosting)).fit(frame, target > 1)
    result = partial_dependence(model, frame, "job", kind="both")
    wanted = by_definition(
        lambda X: model.predict_proba(X)[:, 1], frame, "job", result.grid_values[0]
    )
    assert close(result.average, wanted)
    assert close(result.individual.mean(axis=1), wanted)
