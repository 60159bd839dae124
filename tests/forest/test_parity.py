"""A model that has been misread is refused, one that has been read well is not."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.forest import find_reader
from fastpd_sklearn.forest._made_rows import PLAIN, UNSEEN, made_rows
from fastpd_sklearn.forest._parity import check_reading
from tests.oracles import predict_many
from tests.versions import older

N_ROWS = 300


def numbers(missing=True, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [rng.normal(size=N_ROWS), rng.integers(0, 8, N_ROWS), rng.uniform(size=N_ROWS)]
    )
    if missing:
        X[rng.random(X.shape) < 0.1] = np.nan
    return X


def target(X):
    clean = np.nan_to_num(X, nan=-2.0)
    return clean[:, 0] + np.abs(clean[:, 1] - 4) * (clean[:, 2] > 0.4) + clean[:, 2]


def categories(library=pd, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.choice(["red", "green", "blue", "grey"], N_ROWS).astype(object)
    labels[rng.random(N_ROWS) < 0.1] = None
    dtype = {"dtype": pl.Enum(["grey", "green", "red", "blue"])} if library is pl else {}
    colour = pl.Series(labels.tolist(), **dtype) if library is pl else pd.Categorical(labels)
    return library.DataFrame(
        {"size": rng.normal(size=N_ROWS), "colour": colour, "count": rng.integers(0, 9, N_ROWS)}
    )


def colour_target(X):
    colour = np.array([str(v) for v in X["colour"].to_list()])
    level = np.select([colour == "red", colour == "blue", colour == "grey"], [5.0, -3.0, 1.0])
    return level + np.asarray(X["size"]) * (np.asarray(X["count"]) > 4)


def boosters(kind, categorical=False):
    if kind == "xgboost":
        library = pytest.importorskip("xgboost")
        return library.XGBRegressor(
            n_estimators=6, max_depth=4, n_jobs=2, enable_categorical=categorical
        )
    library = pytest.importorskip("lightgbm")
    return library.LGBMRegressor(
        n_estimators=6, num_leaves=12, n_jobs=2, verbose=-1, min_child_samples=5
    )


def sklearn_models():
    few = {"n_estimators": 5, "random_state": 0}
    return [
        DecisionTreeRegressor(max_depth=5),
        RandomForestRegressor(max_depth=4, **few),
        RandomForestClassifier(max_depth=4, **few),
        GradientBoostingClassifier(**few),
        IsolationForest(max_samples=64, **few),
        HistGradientBoostingRegressor(max_iter=5),
        HistGradientBoostingClassifier(max_iter=3),
    ]


def fit_numbers(model):
    if isinstance(model, str):
        model = boosters(model)
    X = numbers(missing=not isinstance(model, GradientBoostingClassifier))
    y = target(X)
    if hasattr(model, "predict_proba"):
        y = np.digitize(y, [0.5, 2.0])
    return model.fit(X, y), X


def fit_categories(kind, library=pd):
    X = categories(library)
    if kind == "sklearn":
        model = HistGradientBoostingRegressor(max_iter=6, min_samples_leaf=5)
    else:
        model = boosters(kind, categorical=True)
    return model.fit(X, colour_target(X)), X


def check(model, X, reading=None, **kwargs):
    reader = find_reader(model)
    assert reader is not None
    reading = reader.read(model) if reading is None else reading
    forest = reading.forest
    check_reading(reader, model, reading, X, lambda inputs: predict_many(forest, inputs), **kwargs)


def corrupted(reading, **changes):
    return reading._replace(forest=replace(reading.forest, **changes))


def changed(array, index, value):
    array = array.copy()
    array[index] = value
    return array


ALL = [*sklearn_models(), "xgboost", "lightgbm"]


# -- intact ----------------------------------------------------------------------------------


@pytest.mark.parametrize("model", ALL, ids=str)
def test_intact_models_pass(model):
    model, X = fit_numbers(model)
    before = X.copy()
    forms = [X, np.asfortranarray(X), X.astype(np.float32), np.nan_to_num(X).astype(np.int64)]
    forms += [X[:1], X.tolist()]
    for form in forms:
        check(model, form, random_state=3)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@pytest.mark.parametrize("kind", ["sklearn", "xgboost", "lightgbm"])
def test_intact_categories_pass(kind, library):
    if kind == "lightgbm" and library is pl:
        pytest.skip("lightgbm takes no polars frames")
    if kind == "xgboost" and library is pl and older("xgboost", "3.1"):
        pytest.skip("XGBoost takes no categories of polars before 3.1")
    model, X = fit_categories(kind, library)
    before = X.clone() if library is pl else X.copy(deep=True)
    check(model, X)
    assert before.equals(X)


@pytest.mark.parametrize("kind", ["sklearn", "xgboost", "lightgbm"])
def test_sparse(kind):
    X = numbers(missing=False)
    X[np.random.default_rng(1).random(X.shape) < 0.4] = 0
    model = RandomForestRegressor(5, max_depth=4) if kind == "sklearn" else boosters(kind)
    for matrix in (sparse.csr_matrix(X), sparse.csc_array(X), sparse.coo_matrix(X)):
        model.fit(matrix, target(X))
        before = matrix.copy()
        check(model, matrix)
        assert (before != matrix).nnz == 0


@pytest.mark.parametrize("model", [DecisionTreeRegressor(), "xgboost", "lightgbm"], ids=str)
def test_frames_of_numbers(model):
    model, X = fit_numbers(model)
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).fillna(0)
    frame = frame.astype({"a": np.float32, "b": "Int64"})
    frame.index = frame.index[::-1] + 1000
    model.fit(frame, target(X))
    check(model, frame)


def test_nullable_numbers_as_categories():
    X = pd.DataFrame(numbers(), columns=["a", "b", "c"]).astype({"b": "Int64"})
    model = HistGradientBoostingRegressor(categorical_features=["b"], max_iter=5)
    check(model.fit(X, target(X.to_numpy(dtype=float, na_value=np.nan))), X)


def test_labels_in_an_object_array():
    X = categories().to_numpy(dtype=object)
    model = HistGradientBoostingRegressor(categorical_features=[1], max_iter=5)
    check(model.fit(X, np.array([len(str(v)) for v in X[:, 1]]) + X[:, 0].astype(float)), X)


def test_constant_model_has_no_rows_of_its_own():
    X = numbers()
    model = DecisionTreeRegressor().fit(X, np.ones(N_ROWS))
    reading = find_reader(model).read(model)
    assert list(made_rows(reading, X, UNSEEN, np.random.RandomState(0))) == []
    check(model, X)


# -- the rows --------------------------------------------------------------------------------


def test_made_rows_meet_every_threshold_and_keep_the_form():
    model, X = fit_numbers(HistGradientBoostingRegressor(max_iter=5))
    reading = find_reader(model).read(model)
    forest = reading.forest
    for dtype in (np.float64, np.float32):
        blocks = list(made_rows(reading, X.astype(dtype), UNSEEN, np.random.RandomState(0)))
        assert {block.dtype for block in blocks} == {np.dtype(dtype)}
        rows = np.vstack(blocks)
        assert len(rows) <= 2000
        for j in range(3):
            t = forest.threshold[(forest.feature == j) & np.isfinite(forest.threshold)]
            t = t.astype(dtype)
            for value in (t, np.nextafter(t, dtype(-np.inf)), np.nextafter(t, dtype(np.inf))):
                assert np.isin(value, rows[:, j]).all()
            assert np.isnan(rows[:, j]).any()


def test_thresholds_come_in_rows_that_meet_their_nodes():
    """A third of the rows lie on a threshold that decides where they go."""
    X = numbers(missing=False)
    model = RandomForestRegressor(n_estimators=30, random_state=0).fit(X, target(X))
    reading = find_reader(model).read(model)
    assert reading.forest.n_nodes > 5000
    rows = np.vstack(list(made_rows(reading, X, PLAIN, np.random.RandomState(0))))
    assert 800 <= len(rows) <= 2000
    turned = replace(reading.forest, strict=not reading.forest.strict)
    changes = np.abs(predict_many(reading.forest, rows) - predict_many(turned, rows)) > 1e-9
    assert changes.mean() > 0.25


def test_made_frames_keep_dtypes():
    for library in (pd, pl):
        model, X = fit_categories("sklearn", library)
        reading = find_reader(model).read(model)
        (rows,) = made_rows(reading, X[:50], UNSEEN, np.random.RandomState(0))
        assert type(rows) is type(X)
        assert list(rows.columns) == list(X.columns)
        labels = set(rows["colour"].to_list())
        assert labels >= {"red", "green", "blue", "grey"}
        assert len(labels) == 6  # with a missing and an unseen one
        if library is pd:
            assert isinstance(rows["colour"].dtype, pd.CategoricalDtype)
        else:
            assert isinstance(rows["colour"].dtype, pl.Enum)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_made_frames_of_numbers(dtype):
    model, X = fit_numbers(HistGradientBoostingRegressor(max_iter=5))
    frame = pd.DataFrame(X.astype(dtype), columns=["a", "b", "c"], index=np.arange(len(X)) + 9)
    frame["d"] = (np.arange(len(X)) % 5).astype(dtype if dtype is np.float32 else int)
    before = frame.copy()
    model.fit(frame, target(X))
    reading = find_reader(model).read(model)
    (rows,) = made_rows(reading, frame, UNSEEN, np.random.RandomState(0))
    assert list(rows.columns) == ["a", "b", "c", "d"]
    assert set(rows.dtypes) == {np.dtype(dtype)}
    forest = reading.forest
    for j in range(4):
        t = forest.threshold[(forest.feature == j) & np.isfinite(forest.threshold)].astype(dtype)
        for value in (t, np.nextafter(t, dtype(-np.inf)), np.nextafter(t, dtype(np.inf))):
            assert np.isin(value, rows.iloc[:, j]).all()
    pd.testing.assert_frame_equal(frame, before)
    check(model, frame)


def test_wide_data_come_in_blocks():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 20_000, density=0.01, format="csr", random_state=0)
    model = RandomForestRegressor(3, random_state=0).fit(X, rng.normal(size=60))
    reading = find_reader(model).read(model)
    sizes = [b.shape[0] for b in made_rows(reading, X, UNSEEN, np.random.RandomState(0))]
    assert max(sizes) * X.shape[1] <= 2**23
    assert len(sizes) > 1


# -- corrupted -------------------------------------------------------------------------------


def roots(forest):
    at = forest.tree_start[:-1]
    return at[forest.left[at] >= 0]


def next_thresholds(forest, node):
    """The closest thresholds that part the floats in another way."""
    t = forest.threshold[node]
    if not forest.single:
        return np.nextafter(t, -np.inf), np.nextafter(t, np.inf)
    near = np.float32(t)
    floor = near if near <= t else np.nextafter(near, np.float32(-np.inf))
    return np.nextafter(floor, np.float32(-np.inf)), np.nextafter(floor, np.float32(np.inf))


def refused(model, X, reading):
    with pytest.raises(ValueError, match=rf"{type(model).__name__} has been misread"):
        check(model, X, reading)


@pytest.mark.parametrize("model", ALL, ids=str)
def test_corrupted_models_are_refused(model):
    model, X = fit_numbers(model)
    reading = find_reader(model).read(model)
    forest = reading.forest
    root = roots(forest)[-1]
    leaf = np.flatnonzero(forest.left < 0)[np.argmax(np.abs(forest.value[forest.left < 0, 0]))]
    for moved in next_thresholds(forest, root):
        refused(model, X, corrupted(reading, threshold=changed(forest.threshold, root, moved)))
    refused(
        model, X, corrupted(reading, value=changed(forest.value, leaf, 1.01 * forest.value[leaf]))
    )
    refused(model, X, corrupted(reading, intercept=forest.intercept + 1e-3))
    refused(
        model,
        X,
        corrupted(reading, feature=changed(forest.feature, root, 2 - forest.feature[root])),
    )
    if reading.input_map.allow_nan:
        flipped = changed(forest.missing_left, root, ~forest.missing_left[root])
        refused(model, X, corrupted(reading, missing_left=flipped))


# An isolation forest draws thresholds between the float32 values, where "<" is "<=".
@pytest.mark.parametrize("model", [m for m in ALL if not isinstance(m, IsolationForest)], ids=str)
def test_wrong_comparison_is_refused(model):
    model, X = fit_numbers(model)
    reading = find_reader(model).read(model)
    refused(model, X, corrupted(reading, strict=not reading.forest.strict))


@pytest.mark.parametrize("kind", ["sklearn", "xgboost", "lightgbm"])
def test_corrupted_categories_are_refused(kind):
    model, X = fit_categories(kind)
    reading = find_reader(model).read(model)
    forest = reading.forest
    node = np.flatnonzero(forest.is_categorical)[0]
    refused(
        model,
        X,
        corrupted(
            reading, listed_left=changed(forest.listed_left, node, ~forest.listed_left[node])
        ),
    )
    at = forest.category_start[node]
    part = forest.category[at : forest.category_start[node + 1]]
    other = next(c for c in range(5) if c not in part)
    refused(model, X, corrupted(reading, category=changed(forest.category, at, other)))


def test_unseen_categories_are_tried():
    model, X = fit_categories("sklearn")
    reading = find_reader(model).read(model)
    refused(model, X, reading._replace(input_map=replace(reading.input_map, unknown=0.0)))


# -- refusals of the library -----------------------------------------------------------------


class Picky:
    """A reader whose library takes no missing value, or nothing but what it knows."""

    name = "picky"
    tolerance = 1e-10

    def __init__(self, reader, taken):
        self.reader, self.taken, self.seen = reader, taken, 0

    def predict_raw(self, model, X):
        if not self.taken(X):
            raise RuntimeError("no such rows")
        self.seen += len(X)
        return self.reader.predict_raw(model, X)


def test_rows_that_the_library_refuses_are_left_out():
    model, X = fit_numbers(DecisionTreeRegressor(max_depth=5))
    X = np.nan_to_num(X)
    reader = find_reader(model)
    reading = reader.read(model)
    known = X[:, 0]
    for taken in (lambda X: not np.isnan(X).any(), lambda X: np.isin(X[:, 0], known).all()):
        picky = Picky(reader, taken)
        check_reading(picky, model, reading, X, lambda inputs: predict_many(reading.forest, inputs))
        assert picky.seen >= 200
    picky = Picky(reader, lambda X: not np.isnan(X).any())
    bad = corrupted(reading, threshold=changed(reading.forest.threshold, 0, 99.0))
    with pytest.raises(ValueError, match="misread"):
        check_reading(picky, model, bad, X, lambda inputs: predict_many(bad.forest, inputs))


def test_errors_on_the_background_are_shown():
    model, X = fit_numbers(DecisionTreeRegressor())
    reader = find_reader(model)
    with pytest.raises(RuntimeError, match="no such rows"):
        check_reading(Picky(reader, lambda X: False), model, reader.read(model), X, None)


def test_same_rows_every_time_and_no_warnings():
    model, X = fit_numbers(RandomForestRegressor(n_estimators=5, max_depth=4))
    seen = []

    def spy(inputs):
        seen.append(inputs.copy())
        return predict_many(reading.forest, inputs)

    reader = find_reader(model)
    reading = reader.read(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            check_reading(reader, model, reading, X, spy)
    half = len(seen) // 2
    for first, second in zip(seen[:half], seen[half:], strict=True):
        np.testing.assert_array_equal(first, second)


# -- how the rows are compared ---------------------------------------------------------------


def test_the_library_is_asked_once_for_rows_of_one_type():
    model, X = fit_numbers(RandomForestRegressor(n_estimators=5, max_depth=4))
    reader = find_reader(model)
    reading = reader.read(model)
    sizes = []

    def taken(rows):
        sizes.append(len(rows))
        return True

    def predict(inputs):
        return predict_many(reading.forest, inputs)

    for form, n_calls in ((X, 1), (np.nan_to_num(X).astype(int), 2)):
        sizes.clear()
        check_reading(Picky(reader, taken), model, reading, form, predict)
        assert len(sizes) == n_calls
        assert sum(sizes) > 500


def test_errors_say_on_which_rows_they_are():
    model, X = fit_numbers(DecisionTreeRegressor(max_depth=5))
    reading = find_reader(model).read(model)
    forest = reading.forest
    bad = corrupted(reading, value=np.where(forest.left[:, None] < 0, forest.value + 1, 0.0))
    with pytest.raises(ValueError, match=r"on 200 of 200 rows of the background"):
        check(model, X, bad)
    turned = corrupted(reading, strict=not forest.strict)
    with pytest.raises(ValueError, match=r"on \d+ of \d+ rows made from its thresholds"):
        check(model, X, turned)


def test_a_forest_is_its_own_model():
    model, X = fit_numbers(DecisionTreeRegressor(max_depth=5))
    forest = find_reader(model).read(model).forest
    reader = find_reader(forest)
    check_reading(reader, forest, reader.read(forest), X, None)  # which would be called
    other = reader.read(replace(forest, value=forest.value + 1.0))
    with pytest.raises(ValueError, match="misread"):
        check(forest, X, other)
