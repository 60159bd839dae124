"""Measures and curves of pipelines, on their raw columns, against predictions of the pipeline."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from fastpd_sklearn.model_selection import (
    candidate_curves,
    feature_influence,
    feature_influence_scorer,
    interaction_share,
    interaction_share_scorer,
    monotonicity_violation,
    term_strength,
)

FOREST = RandomForestRegressor(n_estimators=3, max_depth=4, random_state=0)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "job": rng.choice(["clerk", "cook", "nurse"], 80),
            "age": rng.integers(20, 60, 80),
            "hours": rng.normal(35, 5, 80).round(1),
        }
    )


@pytest.fixture(scope="module")
def target(frame):
    return (frame["job"] == "cook") * frame["age"] + np.sin(frame["hours"])


@pytest.fixture(scope="module")
def search(frame, target):
    columns = make_column_transformer(
        (OneHotEncoder(), ["job"]), (StandardScaler(), ["age", "hours"])
    )
    scoring = {
        "r2": "r2",
        "interactions": interaction_share_scorer(),
        "job": feature_influence_scorer("job"),
    }
    grid = {"randomforestregressor__max_depth": [1, 4]}
    search = GridSearchCV(
        make_pipeline(columns, FOREST), grid, scoring=scoring, refit="r2", cv=2, error_score="raise"
    )
    return search.fit(frame, target)


def dependence(model, frame, columns):
    """Partial dependence at each row: all rows with the columns of this one."""
    return np.array(
        [
            model.predict(frame.assign(**{c: row[c] for c in columns})).mean()
            for _, row in frame.iterrows()
        ]
    )


def test_measures_are_those_of_the_whole_pipeline(search, frame):
    model = search.best_estimator_
    response = model.predict(frame)
    job, age = dependence(model, frame, ["job"]), dependence(model, frame, ["age"])
    pair = dependence(model, frame, ["job", "age"])
    rest = dependence(model, frame, ["age", "hours"])
    remainder = response - job - age - dependence(model, frame, ["hours"])
    total = response.var()
    assert_allclose(interaction_share(model, frame), remainder.var() / total)
    assert_allclose(term_strength(model, frame, "job"), job.var() / total)
    assert_allclose(term_strength(model, frame, ("age", "job")), (pair - job - age).var() / total)
    assert_allclose(feature_influence(model, frame, "job"), (response - rest).var() / total)
    ages = np.arange(frame["age"].min() + 0.25, frame["age"].max(), 0.5)  # splits are at halves
    steps = np.diff([model.predict(frame.assign(age=age)).mean() for age in ages])
    expected = np.abs(steps[steps < 0]).sum() / np.abs(steps).sum()
    assert_allclose(monotonicity_violation(model, frame, "age"), expected, atol=1e-12)


def test_a_search_scores_pipelines(search):
    shares = search.cv_results_["mean_test_interactions"]
    assert shares[0] == 0
    assert shares[1] < -0.01
    assert np.all(search.cv_results_["mean_test_job"] < -0.3)


def test_curves_of_raw_columns(search, frame, target):
    result = candidate_curves(search, frame, target, ["job", "age"])
    model = search.best_estimator_
    k = result.best
    assert result.grid_values[0].tolist() == ["clerk", "cook", "nurse"]
    for i, column in enumerate(result.features):
        curve = result.curves[i][k][0]
        assert_allclose(curve(frame[column])[0], dependence(model, frame, [column]))


def test_columns_that_a_step_mixes_stay_together(frame, target):
    columns = make_column_transformer((OneHotEncoder(), ["job"]), (PCA(2), ["age", "hours"]))
    model = make_pipeline(columns, FOREST).fit(frame, target)
    rest = dependence(model, frame, ["job"])
    response = model.predict(frame)
    influence = feature_influence(model, frame, ["age", "hours"])
    assert_allclose(influence, (response - rest).var() / response.var())
    with pytest.raises(ValueError, match=r"'age'.* mixes"):
        feature_influence(model, frame, ["age"])
