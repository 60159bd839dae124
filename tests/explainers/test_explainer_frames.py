"""Data frames: names, dtypes, row order, and models that need them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from fastpd_sklearn import VanillaPDExplainer
from tests.explainers.games import expected

NAMES = ["a", "b", "c", "d"]


@pytest.fixture
def named_model(X, y, frame):
    return RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0).fit(
        frame(X, NAMES), y
    )


def test_frames_and_arrays_agree(explainer_class, named_model, model, X, y, frame):
    plain = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0).fit(X, y)
    explainer = explainer_class(output="component").fit(named_model, frame(X, NAMES))
    reference = explainer_class(output="component").fit(plain, X)
    assert_allclose(explainer.transform(frame(X, NAMES)), reference.transform(X))
    assert list(explainer.feature_names_in_) == NAMES
    assert explainer.terms_[:4] == (("a",), ("b",), ("c",), ("d",))


def test_reordered_columns_are_refused(explainer_class, named_model, X, frame):
    swapped = frame(X[:, ::-1], NAMES[::-1])
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        explainer_class().fit(named_model, swapped)
    explainer = explainer_class().fit(named_model, frame(X, NAMES))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        explainer.transform(swapped)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        explainer.partial_fit(swapped)


def test_other_names_are_refused(explainer_class, named_model, X, frame):
    other = frame(X, ["a", "b", "c", "other"])
    with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
        explainer_class().fit(named_model, other)
    with pytest.raises(ValueError, match="unseen at fit time:\n- other"):
        explainer_class().fit(named_model, frame(X, NAMES)).explain(other)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_array_input_checks_the_width_alone(explainer_class, named_model, X, frame):
    explainer = explainer_class().fit(named_model, frame(X, NAMES))
    assert_allclose(explainer.transform(X), explainer.transform(frame(X, NAMES)))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        explainer.transform(X[:, :3])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(explainer_class, model, X, library):
    package = pytest.importorskip(library)
    explainer = explainer_class(features=["x1", ("x0", "x2")]).fit(model, X)
    plain = explainer.transform(X)
    out = explainer.set_output(transform=library).transform(X)
    assert isinstance(out, package.DataFrame)
    assert list(out.columns) == ["x1", "x0:x2"]
    assert_allclose(out.to_numpy(), plain)


def test_set_output_keeps_the_index(explainer_class, model, X):
    pd = pytest.importorskip("pandas")
    background = pd.DataFrame(X)
    explainer = explainer_class().fit(model, background).set_output(transform="pandas")
    rows = background.iloc[[7, 3]]
    assert list(explainer.transform(rows).index) == [7, 3]


def test_index_of_a_frame_means_nothing(interventional):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(1)
    tidy = pd.DataFrame({"a": rng.integers(3, size=20), "b": rng.integers(3, size=20)})
    model = RandomForestRegressor(5, random_state=0).fit(tidy, tidy.a * tidy.b)
    shuffled = tidy.set_axis(np.arange(20)[::-1] + 1000)
    explainer = interventional(features=[("a", "b"), "b"])
    truth = explainer.fit(model, tidy).transform(tidy)
    assert_allclose(explainer.fit(model, shuffled).transform(shuffled), truth)
    assert_allclose(explainer.partial_dependence(("a", "b")).average.shape, (1, 3, 3))
    assert np.isfinite(truth).all()


@pytest.fixture
def mixed(frame):
    """A model on strings and numbers, its frame and the same data as an array."""
    rng = np.random.default_rng(2)
    town = np.array(["york", "bath", "hull"])[rng.integers(3, size=24)]
    size = rng.integers(1, 5, size=24)
    pd_or_pl = frame(np.empty((0, 1)), ["x"]).__class__
    data = pd_or_pl({"town": town.tolist(), "size": size})
    pipeline = make_pipeline(
        make_column_transformer(
            # Before 1.9 scikit-learn takes no frame of polars beside a sparse matrix.
            (OneHotEncoder(sparse_output=False), ["town"]),
            remainder="passthrough",
        ),
        RandomForestRegressor(3, max_depth=3, random_state=0),
    ).fit(data, size * (town == "york"))

    def respond(rows):
        columns = {"town": rows[:, 0].tolist(), "size": rows[:, 1].astype(int)}
        return pipeline.predict(pd_or_pl(columns))

    return pipeline, data, np.array([town, size], dtype=object).T, respond


def test_pipeline_on_strings(mixed):
    pipeline, data, array, respond = mixed
    explainer = VanillaPDExplainer(output="component").fit(pipeline, data)
    truth = expected("component", respond, array[:6], array, [(0,), (1,), (0, 1)])
    assert_allclose(explainer.transform(data[:6]), truth[:, :, 0], atol=1e-12)


def test_dependence_on_strings(mixed):
    pipeline, data, array, respond = mixed
    explainer = VanillaPDExplainer().fit(pipeline, data)
    result = explainer.partial_dependence("town")
    assert result.grid_values[0].tolist() == ["bath", "hull", "york"]
    for label, average in zip(["bath", "hull", "york"], result.average[0], strict=True):
        rows = array.copy()
        rows[:, 0] = label
        assert_allclose(average, respond(rows).mean())
    assert_allclose(result.curve(["york", "bath"])[0], result.average[0, [2, 0]])
    with pytest.raises(ValueError, match="'leeds' is not among the curve's categories"):
        result.curve(["leeds"])


def test_categories_keep_their_dtype():
    pd = pytest.importorskip("pandas")
    kinds = pd.CategoricalDtype(["s", "m", "l"])
    rng = np.random.default_rng(3)
    data = pd.DataFrame(
        {
            "kind": pd.Categorical.from_codes(rng.integers(3, size=20), dtype=kinds),
            "x": rng.random(20),
        }
    )

    class Codes:
        def predict(self, frame):
            assert frame["kind"].dtype == kinds
            assert not frame["kind"].isna().any()
            return frame["kind"].cat.codes * frame["x"]

    explainer = VanillaPDExplainer().fit(Codes(), data)
    result = explainer.partial_dependence("kind")
    assert list(result.grid_values[0]) == ["s", "m", "l"]
    assert_allclose(result.average[0], np.arange(3) * data["x"].mean())
    assert_allclose(explainer.transform(data)[:, 0], data["kind"].cat.codes * data["x"].mean())
    with pytest.raises(ValueError, match="'xl' is not a category of column 'kind'"):
        explainer.partial_dependence("kind", grid=["xl"])


def test_names_that_look_like_numbers_are_names(explainer_class, X, y):
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(X, columns=["3", "2", "1", "0"])
    model = RandomForestRegressor(2, random_state=0).fit(data, y)
    by_name = explainer_class(features=["0"]).fit(model, data)
    by_number = explainer_class(features=[3]).fit(model, data)
    assert by_name.terms_ == by_number.terms_ == (("0",),)
    assert_allclose(by_name.transform(data), by_number.transform(data))
    grouped = explainer_class(groups={"g": ["0", "1"]}).fit(model, data)
    assert grouped.terms_ == (("3",), ("2",), ("g",))


def test_nullable_numbers():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"a": pd.array([1, 2, None, 4] * 3, dtype="Float64"), "b": range(12)})

    class Sum:
        def predict(self, frame):
            return frame.astype(float).fillna(10.0).sum(axis=1)

    explainer = VanillaPDExplainer().fit(Sum(), data)
    result = explainer.partial_dependence("a")
    assert_allclose(result.grid_values[0], [1.0, 2.0, 4.0])
    assert_allclose(result.average[0], np.array([1.0, 2.0, 4.0]) + 5.5)
    missing = explainer.partial_dependence("a", grid=[np.nan])
    assert_allclose(missing.average, [[15.5]])
    assert_allclose(explainer.transform(data)[:4, 0], np.array([1.0, 2.0, 10.0, 4.0]) + 5.5)


def test_sparse_rows_keep_their_absent_entries():
    from scipy import sparse

    class Stored:
        """Counts the stored entries of each row."""

        def predict(self, matrix):
            return np.diff(sparse.csr_array(matrix).indptr)

    background = sparse.csr_array(([0.0, 1.0, 2.0], ([0, 0, 1], [0, 1, 1])), shape=(3, 2))
    explainer = VanillaPDExplainer().fit(Stored(), background)
    assert_allclose(explainer.intercept_, [1.0])
    rows = sparse.csr_array(([0.0], ([0], [0])), shape=(2, 2))
    assert_allclose(explainer.transform(rows), [[5 / 3, 1 / 3], [2 / 3, 1 / 3]])
    assert_allclose(explainer.transform(rows.tocsc()), explainer.transform(rows))


def test_linear_model_on_frames(frame, X, y):
    data = frame(X, NAMES)
    model = LinearRegression().fit(data, y)
    explainer = VanillaPDExplainer(output="shap", n_jobs=1).fit(model, data)
    assert_allclose(explainer.transform(data), model.coef_ * (X - X.mean(axis=0)), atol=1e-12)


def test_a_booster_knows_its_columns(explainer_class, X, y):
    """LightGBM's own ``Booster.predict`` takes columns in any order."""
    pd = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    data = pd.DataFrame(X, columns=NAMES)
    params = {"verbose": -1, "num_threads": 1, "min_data_in_leaf": 3}
    booster = lightgbm.train(params, lightgbm.Dataset(data, y), 3)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        explainer_class().fit(booster, data[NAMES[::-1]])
    nameless = lightgbm.train(params, lightgbm.Dataset(X, y), 3)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        explainer_class().fit(nameless, X[:, :3])
    assert explainer_class().fit(nameless, data).terms_ == (("a",), ("b",), ("c",), ("d",))
