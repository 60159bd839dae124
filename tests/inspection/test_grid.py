"""Grids and columns of every kind, with the values that the definition gives."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn.inspection
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from fastpd_sklearn.inspection import partial_dependence
from tests.versions import older

from .oracle import by_definition, close

N = 160


@pytest.fixture(scope="module")
def frame():
    """Columns of all kinds."""
    rng = np.random.default_rng(1)
    number = rng.normal(size=N)
    return pd.DataFrame(
        {
            "number": number,
            "single": rng.normal(size=N).astype(np.float32),
            "count": rng.integers(0, 300, N),
            "few": rng.integers(0, 4, N).astype(np.int8),
            "flag": rng.random(N) < 0.4,
            "holes": np.where(rng.random(N) < 0.2, np.nan, rng.normal(size=N)),
            "nullable": pd.array(
                np.where(rng.random(N) < 0.2, None, rng.integers(0, 9, N)), "Int64"
            ),
            "label": pd.Categorical(
                np.array(["mid", "low", "high"])[rng.integers(0, 3, N)],
                categories=["low", "mid", "high", "never"],
                ordered=True,
            ),
            "word": pd.Categorical(np.array(["b", "a", "c", None])[rng.integers(0, 4, N)]),
        }
    )


@pytest.fixture(scope="module")
def target(frame):
    return (
        frame["number"] * frame["flag"]
        + frame["count"] / 100
        + frame["few"]
        + frame["holes"].fillna(3)
        + frame["nullable"].astype(float).fillna(-2) / 3
        + (frame["label"] == "mid") * 2
        + (frame["word"] == "a") * frame["number"]
    ).to_numpy()


MODELS = {
    "hist": HistGradientBoostingRegressor(max_iter=12, categorical_features="from_dtype"),
    "xgboost": XGBRegressor(n_estimators=12, max_depth=3, enable_categorical=True, n_jobs=1),
    "lightgbm": LGBMRegressor(n_estimators=12, min_child_samples=5, verbose=-1, n_jobs=1),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request, frame, target):
    return MODELS[request.param].fit(frame, target)


WANTED_GRIDS = {
    "flag": [False, True],
    "few": [0, 1, 2, 3],
    "label": ["low", "mid", "high"],
    "word": ["a", "b", "c", np.nan],
}


@pytest.mark.parametrize("column", ["number", "single", "count", "few", "flag", "holes", "nullable",
                                    "label", "word"])  # fmt: skip
@pytest.mark.parametrize("method", ["auto", "brute"])
def test_every_kind_of_column(model, column, method, frame):
    result = partial_dependence(model, frame, column, grid_resolution=7, method=method, kind="both")
    (grid,) = result.grid_values
    if column in WANTED_GRIDS:
        assert list(map(str, grid)) == list(map(str, WANTED_GRIDS[column]))
    else:
        finite = frame[column].astype(float).dropna()
        assert len(grid) == 7
        assert finite.quantile(0.02) <= grid[0] < grid[-1] <= finite.quantile(0.98)
    wanted = by_definition(model.predict, frame, column, grid)
    single = isinstance(model, XGBRegressor)
    assert close(result.average, wanted, single=single)
    assert close(result.individual.mean(axis=1), wanted, single=single)


def test_integers_are_not_truncated(model, frame):
    """scikit-learn cut the points of a column of integers, and refuses it since 1.9."""
    (grid,) = partial_dependence(model, frame, "count", grid_resolution=7).grid_values
    assert np.any(grid % 1 > 0)
    rows = frame[["count", "few"]].to_numpy()
    forest = RandomForestRegressor(3, random_state=0).fit(rows, frame["number"])
    for method in ("auto", "brute"):
        result = partial_dependence(forest, rows, 0, grid_resolution=5, method=method)
        wanted = [
            forest.predict(np.column_stack([np.full(N, v), rows[:, 1].astype(float)])).mean()
            for v in result.grid_values[0]
        ]
        assert_allclose(result.average, [wanted])


def test_polars(frame):
    plain = frame[["number", "single", "count", "flag"]].assign(holes=frame["holes"])
    model = HistGradientBoostingRegressor(max_iter=12).fit(plain, frame["number"] * frame["flag"])
    theirs = pl.DataFrame({name: plain[name].to_numpy() for name in plain})
    for features in ("count", ["number", "holes"], "flag"):
        for method in ("auto", "brute"):
            one = partial_dependence(model, plain, features, grid_resolution=6, method=method)
            other = partial_dependence(model, theirs, features, grid_resolution=6, method=method)
            assert close(other.average, one.average, rel=1e-12)


@pytest.mark.skipif(
    older("scikit-learn", "1.9"),
    reason="scikit-learn's own models take no categories of polars before 1.9",
)
def test_polars_categories(frame, target):
    theirs = pl.DataFrame(
        {
            "number": frame["number"].to_numpy(),
            "label": pl.Series(frame["label"].tolist(), dtype=pl.Enum(["low", "mid", "high"])),
        }
    )
    model = HistGradientBoostingRegressor(max_iter=12, categorical_features="from_dtype")
    model.fit(theirs, target)
    result = partial_dependence(model, theirs, "label", kind="both")
    assert result.grid_values[0].tolist() == ["low", "mid", "high"]
    wanted = [
        model.predict(theirs.with_columns(label=pl.lit(v, dtype=theirs["label"].dtype))).mean()
        for v in ("low", "mid", "high")
    ]
    assert close(result.average, [wanted])
    assert close(result.individual.mean(axis=1), [wanted])


def test_rows_as_lists():
    X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    assert_allclose(partial_dependence(model, X, [0]).average, [[0.0, 4.0]])


def test_numbers_in_a_column_of_objects():
    X = np.array([[0, 1.5], [1, 2.5], [2, 3.5]] * 9, dtype=object)
    model = DecisionTreeRegressor(max_depth=2).fit(X.astype(float), np.arange(27) % 3)
    result = partial_dependence(model, X, 1)
    assert result.grid_values[0].dtype == float
    assert_allclose(result.average, partial_dependence(model, X.astype(float), 1).average)


@pytest.mark.parametrize("bad", ["pandas", "array"])
def test_an_index_in_another_order_is_no_matter(bad, frame):
    """Replaced values were matched with rows by an index that was not in order."""
    plain = frame[["number", "holes"]]
    model = HistGradientBoostingRegressor(max_iter=12).fit(plain, frame["number"])
    shuffled = plain.set_axis(np.arange(N)[::-1] + 1000) if bad == "pandas" else plain.to_numpy()
    for method in ("auto", "brute"):
        one = partial_dependence(model, plain, [0, 1], grid_resolution=4, method=method)
        other = partial_dependence(model, shuffled, [0, 1], grid_resolution=4, method=method)
        assert_allclose(other.average, one.average)


# --- grids ------------------------------------------------------------------------------------


def column(*values):
    return np.array(values, dtype=float)[:, None]


def grid_of(x, **params):
    x = np.column_stack([np.asarray(x, dtype=float), np.arange(len(x))])
    model = XGBRegressor(n_estimators=2, n_jobs=1).fit(x, np.nan_to_num(x[:, 0]))
    result = partial_dependence(model, x, 0, **params)
    assert np.isfinite(result.average).all()
    return result.grid_values[0]


def test_missing_values_of_a_nullable_column():
    """One missing value made all points of a grid missing."""
    frame = pd.DataFrame({"x": pd.array([1, 2, None, 4] * 10, dtype="Float64")})
    model = HistGradientBoostingRegressor(min_samples_leaf=1).fit(frame, [1.0, 2, 7, 4] * 10)
    result = partial_dependence(model, frame, "x", grid_resolution=3)
    assert result.grid_values[0].tolist() == [1.0, 2.5, 4.0]
    asked = partial_dependence(model, frame, "x", custom_values={"x": [1.0, None, 4.0]})
    values = frame["x"].astype(float)
    wanted = [model.predict(values.where(values > 9, v).to_frame()).mean() for v in (1, np.nan, 4)]
    assert_allclose(asked.average, [wanted])


def test_labels_with_missing_values():
    """Sorting strings and missing values together failed."""
    x = pd.DataFrame({"x": pd.Categorical(["b", None, "a", "b"] * 10)})
    model = HistGradientBoostingRegressor(min_samples_leaf=1, categorical_features="from_dtype")
    result = partial_dependence(model.fit(x, [5.0, 1, 3, 5] * 10), x, "x")
    assert result.grid_values[0][:2].tolist() == ["a", "b"]
    assert np.isnan(result.grid_values[0][2])
    wanted = by_definition(model.predict, x, "x", result.grid_values[0])
    assert_allclose(result.average, wanted)


def test_a_tiny_scale():
    """Percentiles of small numbers were too close to each other by an absolute tolerance."""
    x = np.random.default_rng(0).normal(size=400)
    assert_allclose(grid_of(x * 1e-10), grid_of(x) * 1e-10, rtol=1e-12)


def test_heavy_ties():
    """Percentiles that are equal were an error."""
    x = np.concatenate([np.full(970, 2.0), np.arange(10.0), np.arange(20.0) / 7 + 3])
    grid = grid_of(x, grid_resolution=10)
    assert len(grid) == 10
    assert np.all(np.diff(grid) > 0)
    assert grid[0] == x.min()
    assert grid[-1] == x.max()
    assert set(grid) <= set(x)
    few = np.concatenate([np.full(970, 2.0), np.arange(30.0)])
    assert grid_of(few).tolist() == list(range(30))


def test_a_constant_column():
    assert grid_of(np.full(40, 4.0)).tolist() == [4.0]
    assert grid_of(np.full(40, 4.0), grid_resolution="exact").tolist() == [4.0]


def test_a_column_without_any_value():
    for resolution in (100, "exact"):
        assert np.isnan(grid_of(np.full(40, np.nan), grid_resolution=resolution)).tolist() == [True]


def test_numbers_far_from_zero_and_close_to_each_other():
    x = 1e9 + np.arange(400) * 1e-5
    grid = grid_of(x, grid_resolution=5)
    assert len(np.unique(grid)) == len(grid) == 5


def test_missing_among_numbers_that_are_categories():
    x = column(*[0.0, 1.0, 2.0, np.nan] * 10)
    model = HistGradientBoostingRegressor(min_samples_leaf=1, categorical_features=[0])
    model.fit(x, [3.0, 1, 2, 7] * 10)
    result = partial_dependence(model, x, 0, categorical_features=[0])
    wanted = sklearn.inspection.partial_dependence(
        model, x, [0], categorical_features=[0], method="brute"
    )
    assert np.array_equal(result.grid_values[0], wanted.grid_values[0], equal_nan=True)
    assert_allclose(result.average, wanted.average)


@pytest.mark.parametrize("resolution", [3, 8, 9, 40])
def test_grids_are_those_of_scikit_learn(resolution, X, y):
    rounded = np.column_stack([X[:, 0].round(1), X[:, 1:]])  # few values, and many
    model = RandomForestRegressor(2, max_depth=3, random_state=0).fit(rounded, y)
    for features in ([0], [1], [0, 1]):
        params = {"grid_resolution": resolution, "percentiles": (0.1, 0.8)}
        one = partial_dependence(model, rounded, features, **params)
        other = sklearn.inspection.partial_dependence(model, rounded, features, **params)
        for mine, theirs in zip(one.grid_values, other.grid_values, strict=True):
            assert_allclose(mine, theirs, rtol=1e-14)


def test_points_by_number_or_name(frame):
    plain = frame[["number", "holes"]]
    model = HistGradientBoostingRegressor(max_iter=12).fit(plain, frame["number"])
    points = [0.5, -1.0, 0.25]  # in the order given
    for key in (0, "number"):
        for features in ("number", [0]):
            result = partial_dependence(model, plain, features, custom_values={key: points, 1: [0]})
            assert result.grid_values[0].tolist() == points
            assert close(result.average, by_definition(model.predict, plain, "number", points))
