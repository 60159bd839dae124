"""Curves and accumulated effects of raw columns of pipelines, against predictions of moved rows."""

import itertools

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from xgboost import XGBClassifier

from fastpd_sklearn import ALEExplainer, ICEExplainer


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 90
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "job": rng.choice(["clerk", "baker", "smith"], n),
            "zip": rng.choice([10, 20, 30, 40], n),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True),
            "rate": rng.normal(size=n),
        }
    )
    frame.loc[:5, "age"] = np.nan
    frame.loc[3:9, "rate"] = 0.0
    return frame


@pytest.fixture(scope="module")
def target(frame):
    codes = frame["job"].map({"clerk": 0, "baker": 1, "smith": 2}) + frame["zip"] / 10
    return codes * np.sign(frame["rate"]) + frame["age"].fillna(50) / 20 * (frame["size"] == "m")


def preprocessing():
    return make_column_transformer(
        (make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()), ["age"]),
        (OneHotEncoder(sparse_output=False), ["job", "zip"]),
        (OrdinalEncoder(categories=[["s", "m", "l"]]), ["size"]),
        # The imputed value is not between its neighbours.
        (
            make_pipeline(
                SimpleImputer(missing_values=0.0, strategy="constant", fill_value=9.0),
                FunctionTransformer(np.negative, feature_names_out="one-to-one"),
            ),
            ["rate"],
        ),
    )


MODELS = {
    "forest": lambda: RandomForestRegressor(8, max_depth=5, random_state=0, n_jobs=1),
    "boosting": lambda: HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=4),
    "probability": lambda: XGBClassifier(n_estimators=6, max_depth=3, n_jobs=1),
}


def fitted(kind, frame, target):
    y = target > target.median() if kind == "probability" else target
    return make_pipeline(preprocessing(), MODELS[kind]()).fit(frame, y)


def settings(kind):
    if kind == "probability":
        return {"response_method": "predict_proba"}, lambda m, X: m.predict_proba(X)[:, 1], 1e-6
    return {}, lambda m, X: m.predict(X), 1e-10


def moved(frame, name, values):
    """The frame with a column, or the given rows of it, at other values."""
    out = frame.copy()
    values = pd.Series(list(values), index=frame.index)
    out[name] = values.astype(frame[name].dtype) if frame[name].dtype == "category" else values
    return out


def without_calls(monkeypatch):
    def refuse(self, *args, **kwargs):
        raise AssertionError("called")

    for method in ("predict", "predict_proba"):
        monkeypatch.setattr(Pipeline, method, refuse)


@pytest.mark.parametrize("kind", MODELS)
def test_curves_are_predictions_and_take_none(kind, frame, target, monkeypatch):
    model = fitted(kind, frame, target)
    params, predict, tolerance = settings(kind)
    explainer = ICEExplainer(grid_resolution=9, missing=True, n_jobs=1, **params).fit(model, frame)
    truth = {}
    for points, (name,) in zip(explainer.grid_values_, explainer.terms_, strict=True):
        columns = [predict(model, moved(frame, name, [p] * len(frame))) for p in points]
        truth[name] = np.column_stack(columns)
    assert list(truth) == list(frame.columns)
    without_calls(monkeypatch)
    for curve, mean in zip(explainer.explain(frame), explainer.average(frame), strict=True):
        assert_allclose(curve.individual[0], truth[curve.feature], atol=tolerance)
        assert_allclose(mean.average[0], truth[curve.feature].mean(axis=0), atol=tolerance)
    assert [axis.is_categorical for axis in explainer.explain(frame)] == [
        False,
        True,
        True,
        True,
        False,
    ]
    explainer.detach().transform(frame)


@pytest.mark.parametrize("kind", MODELS)
def test_first_order_effects(kind, frame, target, monkeypatch):
    model = fitted(kind, frame, target)
    params, predict, tolerance = settings(kind)
    orders = {"job": ["smith", "clerk", "baker"], "zip": [10, 40, 20, 30]}
    explainer = ALEExplainer(n_bins=6, n_jobs=1, custom_values=orders, **params)
    without = explainer.fit(model, frame).effects_
    for curve in without:
        name, points = curve.features[0], curve.grid_values[0]
        x = frame[name]
        if curve.is_categorical:
            order = {p: k for k, p in enumerate(points.tolist())}
            place = x.map(order).astype(int).to_numpy()
            steps = [place == k for k in range(len(points) - 1)]
            steps = [one | (place == k + 1) for k, one in enumerate(steps)]
        else:
            steps = [(x > low) & (x <= high) for low, high in itertools.pairwise(points)]
            steps[0] |= x == points[0]
        for k, rows in enumerate(steps):
            part = frame[np.asarray(rows)]
            low, high = (
                predict(model, moved(part, name, [points[k + end]] * len(part))) for end in (0, 1)
            )
            assert_allclose(curve.local_effect[0, k], np.mean(high - low), atol=tolerance)
    without_calls(monkeypatch)
    again = explainer.fit(model, frame).effects_
    assert all(np.any(curve.effect != 0) for curve in again)


def test_second_order_effects(frame, target):
    class Opaque:
        def predict(self, X):
            return model.predict(X)

    model = fitted("forest", frame, target)
    surfaces = [
        ALEExplainer(features=[("age", "rate")], n_bins=4).fit(m, frame).effects_[0]
        for m in (model, Opaque())
    ]
    assert np.abs(surfaces[0].effect).max() > 1e-3
    assert_allclose(surfaces[0].effect, surfaces[1].effect, atol=1e-10)


@pytest.mark.parametrize("encode", ["ordinal", "onehot-dense"])
def test_bins_of_a_step(encode):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 2))
    y = X[:, 0] + X[:, 1] * (X[:, 0] > 0)
    bins = KBinsDiscretizer(5, encode=encode, quantile_method="averaged_inverted_cdf")
    model = make_pipeline(bins, RandomForestRegressor(6, random_state=0)).fit(X, y)
    explainer = ICEExplainer(grid_resolution=7).fit(model, X)
    for curve in explainer.explain(X):
        for k, point in enumerate(curve.grid_values[0]):
            changed = X.copy()
            changed[:, curve.column] = point
            assert_allclose(curve.individual[0, :, k], model.predict(changed), atol=1e-12)


def test_columns_that_a_step_mixes_go_by_prediction():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] * X[:, 1] + X[:, 2]
    mix = make_column_transformer((PCA(2), [0, 1]), remainder="passthrough")
    model = make_pipeline(mix, RandomForestRegressor(6, random_state=0)).fit(X, y)
    for features in ([0], [2], None):
        for curve in ICEExplainer(features=features, grid_resolution=4).fit(model, X).explain(X):
            changed = X.copy()
            changed[:, curve.column] = curve.grid_values[0][1]
            assert_allclose(curve.individual[0, :, 1], model.predict(changed), atol=1e-12)
    assert ICEExplainer(features=[2]).fit(model, X).detach() is not None
    with pytest.raises(TypeError, match="calling"):
        ICEExplainer(features=[0]).fit(model, X).detach()
