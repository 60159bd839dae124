"""Engines that are not ours: joblib's processes, plain maps, and Spark's mapInPandas shape."""

import io
from concurrent.futures import ProcessPoolExecutor
from functools import partial, reduce
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from joblib import Parallel, delayed
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import HistGradientBoostingRegressor

from fastpd_sklearn import FastPDExplainer, load_explainer

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(RNG.normal(size=(120, 3)), columns=["a", "b", "c"])
PARTITIONS = [[FRAME[:10], FRAME[10:50]], [], [FRAME[50:51], FRAME[51:]]]


@pytest.fixture(scope="module")
def model():
    y = FRAME["a"] * FRAME["b"] + FRAME["c"]
    return HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(FRAME, y)


@pytest.fixture(scope="module")
def whole(model):
    explainer = FastPDExplainer(output="shap").fit(model, FRAME)
    assert_allclose(explainer.intercept_, model.predict(FRAME).mean(), rtol=1e-12)
    return explainer


def merged(explainers):
    return reduce(lambda one, other: one.merge(other), explainers)


def test_processes_of_joblib(model, whole):
    fresh = FastPDExplainer(output="shap")
    rows = [FRAME[:30], FRAME[30:70], FRAME[70:]]
    with Parallel(n_jobs=2) as pool:
        parts = pool(delayed(fresh.fit)(model, part) for part in rows)
        explainer = merged(part.detach() for part in parts)
        values = pool(delayed(explainer.transform)(part) for part in rows)
    assert_array_equal(explainer.transform(FRAME), whole.transform(FRAME))
    assert_allclose(np.vstack(values), whole.transform(FRAME), atol=1e-14)


def test_maps_over_parts(model, whole):
    """What Ray and others have: a function goes to a worker with its arguments, by pickle."""
    rows = [FRAME[:30], FRAME[30:]]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        parts = list(pool.map(partial(FastPDExplainer(output="shap").fit, model), rows))
        explainer = merged(parts).detach()
        values = np.vstack(list(pool.map(explainer.transform, rows)))
    assert_allclose(values, whole.transform(FRAME), atol=1e-14)


def map_in_pandas(function, partitions):
    """What Spark does: iterators of frames in, iterators of frames out, one a partition."""
    blocks = [block for frames in partitions for block in function(iter(frames))]
    assert all(isinstance(block, pd.DataFrame) for block in blocks)
    return pd.concat(blocks)


def test_explanations_in_the_shape_of_map_in_pandas(whole):
    explain = whole.set_output(transform="pandas").transform_blocks
    values = map_in_pandas(explain, PARTITIONS)
    whole.set_output(transform="default")
    assert list(values.columns) == list(whole.get_feature_names_out())
    assert_array_equal(values.index, FRAME.index)
    assert_allclose(values.to_numpy(), whole.transform(FRAME), atol=1e-14)


def test_backgrounds_in_the_shape_of_map_in_pandas(model, whole):
    def states(frames):
        frames = list(frames)
        if not frames:
            return
        explainer = FastPDExplainer(output="shap").fit(model, frames)
        file = io.BytesIO()
        explainer.save(file)
        yield pd.DataFrame({"state": [file.getvalue()]})

    found = map_in_pandas(states, PARTITIONS)
    assert len(found) == 2
    explainer = merged(load_explainer(io.BytesIO(state)) for state in found["state"])
    assert_allclose(explainer.transform(FRAME), whole.transform(FRAME), atol=1e-14)
    assert_allclose(explainer.intercept_, model.predict(FRAME).mean(), rtol=1e-12)
