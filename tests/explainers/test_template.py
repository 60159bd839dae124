"""The points of a background that are shown where nobody names any."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from fastpd_sklearn.explainers._grid import make_template


def points_by_definition(column):
    values = np.asarray(column, dtype=np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return np.array([np.nan])
    distinct = np.unique(values)
    if len(distinct) <= 100:
        return distinct
    return np.unique(np.quantile(values, np.linspace(0, 1, 100)))


def columns(n_rows):
    """Columns with few and many values, with ties, holes and infinities."""
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 7))
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random(n_rows) < 0.2, 2] = np.nan
    X[:3, 3] = np.inf, -np.inf, np.nan
    X[:, 4] = np.nan
    X[:, 5] = np.where(rng.random(n_rows) < 0.9, 0.0, X[:, 5])  # quantiles that are equal
    X[:, 6] = 7.0
    return X


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize("n_rows", [3, 99, 150, 1000, 3999])
def test_points_of_numbers(n_rows, dtype):
    X = columns(n_rows).astype(dtype)
    for made in (X, np.asfortranarray(X), pd.DataFrame(X)):
        template = make_template(made)
        assert template.labelled == (False,) * 7
        for j, points in enumerate(template.points):
            assert points.dtype == np.float64
            assert_array_equal(points, points_by_definition(X[:, j]))


def test_points_of_whole_numbers_and_flags():
    rng = np.random.default_rng(0)
    whole = rng.integers(-500, 500, (2000, 2))
    frame = pd.DataFrame(whole, columns=["a", "b"]).assign(flag=whole[:, 0] > 0, c=whole[:, 1] / 3)
    for X in (whole, whole.astype(np.int16), frame):
        for j, points in enumerate(make_template(X).points):
            assert_array_equal(points, points_by_definition(np.asarray(X)[:, j]))


def test_a_frame_with_labels_has_the_same_points_of_numbers():
    X = columns(1000)
    frame = pd.DataFrame(X).assign(label=np.where(X[:, 0] > 0, "a", "b"))
    template = make_template(frame)
    assert template.labelled == (False,) * 7 + (True,)
    for j, points in enumerate(template.points[:7]):
        assert_array_equal(points, points_by_definition(X[:, j]))
