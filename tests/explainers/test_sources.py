"""Backgrounds and rows in chunks, against all rows at once and against the model's predictions."""

import itertools
import os
import pathlib
import time

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.frozen import FrozenEstimator

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.decomposition import FeatureRemover, importance
from fastpd_sklearn.explainers import _fastpd, _sources
from fastpd_sklearn.explainers._background import DeepEngine
from fastpd_sklearn.explainers._empirical import EmpiricalEngine

pa = pytest.importorskip("pyarrow")
dataset = pytest.importorskip("pyarrow.dataset")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = ["a", "b", "c", "d"]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4)).round(1)
X[RNG.random((90, 4)) < 0.1] = np.nan
WEIGHTS = RNG.random(90) * (np.arange(90) % 5 > 0)
FRAME = pd.DataFrame(X, columns=NAMES)
Y = np.nan_to_num(X[:, 0] * X[:, 1] + X[:, 2])
CUTS = [0, 7, 8, 50, 90]


@pytest.fixture(scope="module")
def model():
    return HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(X, Y)


@pytest.fixture(scope="module")
def named():
    return HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3).fit(FRAME, Y)


@pytest.fixture
def file(tmp_path):
    """Weights in a column of their own, and a column that the model does not know."""
    path = tmp_path / "rows.parquet"
    table = pa.Table.from_pandas(FRAME[NAMES[::-1]].assign(w=WEIGHTS, note="not for the model"))
    parquet.write_table(table, path, row_group_size=17)
    return path


def cut(rows):
    return [rows[start:stop] for start, stop in itertools.pairwise(CUTS)]


def batches():
    return pa.Table.from_pandas(FRAME).to_batches(max_chunksize=13)


KINDS = {
    "list of arrays": lambda: cut(X),
    "tuple of frames": lambda: tuple(cut(FRAME)),
    "generator": lambda: (part for part in cut(X)),
    "iterable without a length": lambda: Endless(cut(X)),
    "record batches": batches,
    "reader": lambda: pa.RecordBatchReader.from_batches(batches()[0].schema, batches()),
    "empty ones among them": lambda: [X[:0], *cut(X), X[:0]],
    "pairs without weights": lambda: [(part, None) for part in cut(X)],
}


class Endless:
    """Iterable again and again, of no length that is known."""

    def __init__(self, chunks):
        self.chunks = chunks

    def __iter__(self):
        return iter(self.chunks)


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("kind", KINDS)
def test_a_background_in_chunks_is_that_background(model, kind):
    explainer = FastPDExplainer(output="shap").fit(model, KINDS[kind]())
    assert_allclose(explainer.intercept_, model.predict(X).mean(), rtol=1e-12)
    whole = FastPDExplainer(output="shap").fit(model, X)
    assert_array_equal(explainer.transform(X), whole.transform(X))


@pytest.mark.parametrize("cls", [FastPDExplainer, PathDependentExplainer, VanillaPDExplainer])
def test_weights_of_chunks(model, cls):
    pairs = list(zip(cut(X), cut(WEIGHTS), strict=True))
    explainer = cls().fit(model, pairs)
    whole = cls().fit(model, X, sample_weight=WEIGHTS)
    assert_allclose(explainer.transform(X), whole.transform(X), rtol=1e-12)
    if cls is not PathDependentExplainer:
        mean = np.average(model.predict(X), weights=WEIGHTS)
        assert_allclose(explainer.intercept_, mean, rtol=1e-12)


def test_partial_dependence_is_the_mean_of_predictions(named, file):
    explainer = FastPDExplainer().fit(named, file, sample_weight="w")
    for value in (-0.5, 0.3):
        mean = np.average(named.predict(FRAME.assign(b=value)), weights=WEIGHTS)
        found = explainer.partial_dependence("b", [value]).average
        assert_allclose(found, [[mean]], rtol=1e-12)


def test_ways_to_name_a_file(named, file):
    whole = FastPDExplainer().fit(named, FRAME).transform(FRAME)
    for source in (file, os.fspath(file), file.parent, dataset.dataset(file)):
        explainer = FastPDExplainer().fit(named, source)
        assert list(explainer.feature_names_in_) == NAMES
        assert_array_equal(explainer.transform(FRAME), whole)


def test_files_are_not_read_ahead(tmp_path, monkeypatch):
    """Whoever is slow would hold what has been read until then: all of it, at worst."""
    monkeypatch.setattr(_sources, "CHUNK_BYTES", 8 * 4 * 5000)
    monkeypatch.setattr(_sources, "READ_BYTES", 2**14)
    rows = pa.table({name: RNG.normal(size=200_000) for name in NAMES})
    parquet.write_table(rows, tmp_path / "rows.parquet", row_group_size=20_000)
    before = pa.total_allocated_bytes()
    chunks = _sources.chunks_of(tmp_path / "rows.parquet", None, NAMES, "rows")
    first = next(chunks)
    time.sleep(0.2)
    assert pa.total_allocated_bytes() - before < rows.nbytes / 2
    assert len(first.X) + sum(len(chunk.X) for chunk in chunks) == 200_000


def test_files_of_several_types(named, tmp_path):
    """Whole numbers in one file, none at all in another."""
    whole = FRAME.assign(a=np.arange(90.0))
    whole.loc[50:, "b"] = np.nan
    whole[:20].assign(a=np.arange(20)).to_parquet(tmp_path / "0.parquet")
    whole[20:50].to_parquet(tmp_path / "1.parquet")
    whole[50:].assign(b=None).to_parquet(tmp_path / "2.parquet")
    explainer = FastPDExplainer().fit(named, tmp_path)
    assert_allclose(explainer.intercept_, named.predict(whole).mean(), rtol=1e-12)
    whole[:5].drop(columns="b").to_parquet(tmp_path / "3.parquet")
    with pytest.raises(ValueError, match=r"3\.parquet has no column 'b'") as raised:
        FastPDExplainer().fit(named, tmp_path)
    assert raised.value.__notes__ == ["in chunk 3 of the background (the first one is chunk 0)"]


def test_standard_errors_of_chunks_are_those_of_their_sum(named, file):
    explainer = FastPDExplainer(n_jackknife=4).fit(named, file, sample_weight="w")
    whole = FastPDExplainer(n_jackknife=4).fit(named, FRAME, sample_weight=WEIGHTS)
    assert explainer.standard_error(FRAME).max() > 0.001
    assert_allclose(explainer.intercept_, whole.intercept_, rtol=1e-12)
    assert_allclose(explainer.standard_error(FRAME[:5]).shape, (5, 4))


def test_partial_fit_and_frozen_models(model):
    first, *rest = cut(X)
    explainer = FastPDExplainer().fit(model, first).partial_fit(iter(rest))
    whole = FastPDExplainer().fit(model, X)
    assert_array_equal(explainer.transform(X), whole.transform(X))
    frozen = FastPDExplainer(FrozenEstimator(model)).fit(cut(X))
    assert_array_equal(frozen.transform(X), whole.transform(X))


def test_blocks_and_files_of_explanations(named, file, tmp_path):
    explainer = FastPDExplainer(output="shap").fit(named, FRAME)
    whole = explainer.transform(FRAME)
    assert_allclose(np.vstack(list(explainer.transform_blocks(file))), whole, atol=1e-14)
    out = tmp_path / "values.parquet"
    out.write_text("what was there before")
    explainer.transform_to_parquet(file, out)
    frame = pd.read_parquet(out)
    assert list(frame.columns) == list(explainer.get_feature_names_out())
    assert_allclose(frame.to_numpy(), whole, atol=1e-14)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.parquet", "values.parquet"]


def test_nothing_is_left_of_a_file_that_could_not_be_written(model, tmp_path):
    explainer = FastPDExplainer().fit(model, X)
    out = tmp_path / "values.parquet"
    out.write_text("what was there before")
    with pytest.raises(ValueError, match="features"):
        explainer.transform_to_parquet([X[:4], X[:4, :2]], out)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["what was there before"]


def test_blocks_are_read_one_at_a_time(model):
    taken = []

    def chunks():
        for start in range(0, 90, 30):
            taken.append(start)
            yield X[start : start + 30]

    blocks = FastPDExplainer().fit(model, X).transform_blocks(chunks())
    assert taken == []
    next(blocks)
    assert taken == [0]


@pytest.mark.parametrize("return_error", [False, True])
def test_means_over_chunks(named, file, return_error):
    explainer = FastPDExplainer(output="component", n_jackknife=5).fit(named, FRAME)
    found = explainer.mean_abs(file, sample_weight="w", return_error=return_error)
    values = np.abs(explainer.transform(FRAME))
    mean = found[0] if return_error else found
    assert_allclose(mean, np.average(values, axis=0, weights=WEIGHTS), rtol=1e-12, atol=1e-15)
    if return_error:
        whole = explainer.mean_abs(FRAME, sample_weight=WEIGHTS, return_error=True)[1]
        assert_allclose(found[1], whole, rtol=1e-9, atol=1e-15)


def test_importance_of_the_decomposition(named, file):
    found = importance(named, file, sample_weight="w")
    whole = importance(named, FRAME, sample_weight=WEIGHTS)
    assert found.terms == whole.terms
    for name in ("term_importances", "shap_variance_shares", "joint_order_importances"):
        assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-12)
    with pytest.raises(TypeError, match="can be read once"):
        importance(named, iter(cut(FRAME)))


def test_curves_and_effects_of_chunks(named, file):
    ice = ICEExplainer(features=["a"], grid_resolution=4).fit(named, FRAME)
    curves = np.vstack(list(ice.transform_blocks(file)))
    for k, value in enumerate(ice.grid_values_[0]):
        assert_allclose(curves[:, k], named.predict(FRAME.assign(a=value)), rtol=1e-12)
    average = ice.average(file, sample_weight="w")[0].average
    assert_allclose(average[0], np.average(curves, axis=0, weights=WEIGHTS), rtol=1e-12)
    ale = ALEExplainer(features=["a"]).fit(named, FRAME)
    effects = np.vstack(list(ale.transform_blocks(file)))
    assert_allclose(effects, ale.transform(FRAME), atol=1e-14)


def test_grids_and_bins_of_a_file(named, file):
    for cls in (ICEExplainer, ALEExplainer):
        explainer = cls().fit(named, file, sample_weight="w")
        whole = cls().fit(named, FRAME, sample_weight=WEIGHTS)
        assert list(explainer.feature_names_in_) == NAMES
        rows = FRAME[WEIGHTS > 0]
        assert_allclose(explainer.transform(rows), whole.transform(rows), atol=1e-12)
    for source in (dataset.dataset(file), batches()):
        explainer = ICEExplainer().fit(named, source)
        whole = ICEExplainer().fit(named, FRAME)
        assert_array_equal(explainer.grid_values_[1], whole.grid_values_[1])


def test_features_are_removed_over_chunks(named, file):
    whole = FeatureRemover(features=["a", "b"]).fit(named, FRAME, sample_weight=WEIGHTS)
    remover = FeatureRemover(features=["a", "b"]).fit(named, file, sample_weight="w")
    assert_allclose(remover.predict(FRAME), whole.predict(FRAME), rtol=1e-12)
    mean = [
        np.average(named.predict(FRAME.assign(c=c, d=d)), weights=WEIGHTS)
        for c, d in FRAME[["c", "d"]].to_numpy()[:5]
    ]
    assert_allclose(remover.predict(FRAME[:5]), mean, rtol=1e-12)


def test_categories_keep_their_codes_from_batch_to_batch():
    words = np.array(["u", "v", "w"])[np.arange(40) // 14]
    frame = pd.DataFrame({"word": pd.Categorical(words), "number": np.arange(40.0)})
    model = HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=2, categorical_features="from_dtype"
    ).fit(frame, (words == "v") * 3.0 + np.arange(40) % 3)
    first, second = (
        pa.RecordBatch.from_pandas(part.assign(word=part["word"].cat.remove_unused_categories()))
        for part in (frame[:20], frame[20:])
    )
    assert len(first["word"].dictionary) == len(second["word"].dictionary) == 2
    explainer = FastPDExplainer().fit(model, [first, second])
    assert_allclose(explainer.intercept_, model.predict(frame).mean(), rtol=1e-12)
    whole = FastPDExplainer().fit(model, frame)
    assert_array_equal(explainer.transform(frame), whole.transform(frame))
    values = np.vstack(list(whole.transform_blocks([first, second])))
    assert_allclose(values, whole.transform(frame), atol=1e-14)


def test_sparse_chunks_and_polars():
    polars = pytest.importorskip("polars")
    Z = np.nan_to_num(X)
    model = RandomForestRegressor(3, max_depth=3, random_state=0).fit(Z, Y)
    whole = FastPDExplainer().fit(model, Z).transform(Z)
    sparse_chunks = [sparse.csr_array(part) for part in cut(Z)]
    assert_array_equal(FastPDExplainer().fit(model, sparse_chunks).transform(Z), whole)
    frame = polars.DataFrame({**dict(zip(NAMES, Z.T, strict=True)), "w": WEIGHTS})
    named = RandomForestRegressor(3, max_depth=3, random_state=0).fit(
        pd.DataFrame(Z, columns=NAMES), Y
    )
    explainer = FastPDExplainer().fit(named, iter([frame[:40], frame[40:]]), sample_weight="w")
    mean = np.average(named.predict(pd.DataFrame(Z, columns=NAMES)), weights=WEIGHTS)
    assert_allclose(explainer.intercept_, mean, rtol=1e-12)


def test_rows_of_small_chunks_are_counted_and_not_kept(model, monkeypatch):
    """Few rows may be walked, and are kept for it; a stream has many, whatever its first chunk."""
    monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: n_rows < 1000)
    kept = FastPDExplainer().fit(model, X)
    assert isinstance(kept._fitted.engine, DeepEngine)
    streamed = FastPDExplainer().fit(model, cut(X))
    assert isinstance(streamed._fitted.engine, EmpiricalEngine)
    assert_allclose(streamed.transform(X), kept.transform(X), rtol=1e-10)


def test_progress(model, capsys):
    FastPDExplainer(verbose=1).fit(model, cut(X))
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "[FastPDExplainer] chunk 3, 90 rows so far"
    assert len(lines) == 4


# ------------------------------------------------------------------------- what is no source


@pytest.mark.parametrize(
    "rows", [X.tolist(), tuple(map(tuple, X.tolist())), X[:, :, None][:, :, 0]]
)
def test_lists_of_rows_are_rows(model, rows):
    whole = FastPDExplainer().fit(model, X)
    assert_array_equal(FastPDExplainer().fit(model, rows).transform(rows), whole.transform(X))


def test_a_list_of_arrays_of_one_dimension_is_rows(model):
    whole = FastPDExplainer().fit(model, X)
    assert_array_equal(FastPDExplainer().fit(model, list(X)).transform(X), whole.transform(X))


# ------------------------------------------------------------------------------------ errors


def failing():
    yield X[:5]
    yield X[5:10]
    raise OSError("the disk is gone")


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(
    ("source", "error", "number"),
    [
        (failing, OSError, 2),
        (lambda: [X[:5], X[:5, :3]], ValueError, 1),
        (lambda: iter([X[:5], "a path"]), TypeError, 1),
        (lambda: iter([X[:5], None]), TypeError, 1),
        (lambda: iter(X), TypeError, 0),
        (lambda: [(X[:5], np.ones(5)), (X[:5], np.ones(4))], ValueError, 1),
        (lambda: [(X[:5], np.ones(5)), (X[:5], -np.ones(5))], ValueError, 1),
        (lambda: [FRAME[:5].assign(d="word")], ValueError, 0),
    ],
)
def test_errors_name_the_chunk(model, source, error, number):
    explainer = FastPDExplainer().fit(model, X)
    before = explainer.transform(X)
    with pytest.raises(error) as raised:
        explainer.partial_fit(source())
    assert f"in chunk {number} of the background" in raised.value.__notes__[0]
    assert_array_equal(explainer.transform(X), before)  # all chunks, or none
    with pytest.raises(error):
        explainer.fit(model, source())
    assert not explainer.__sklearn_is_fitted__()


@pytest.mark.filterwarnings("ignore:X has feature names")
@pytest.mark.parametrize(
    ("source", "weights", "message"),
    [
        (lambda: iter([]), None, "no row with weight"),
        (lambda: iter([X[:0]]), None, "no row with weight"),
        (lambda: iter([(X, np.zeros(90))]), None, "no row with weight"),
        (lambda: cut(X), "w", "is no column of the rows, which are a ndarray"),
        (lambda: cut(FRAME), "w", "is no column of the rows, \\['a'"),
        (lambda: [(FRAME.assign(w=1.0), np.ones(90))], "w", "give one of the two"),
    ],
)
def test_no_rows_and_weights_that_are_not_there(model, source, weights, message):
    with pytest.raises(ValueError, match=message):
        FastPDExplainer().fit(model, source(), sample_weight=weights)


def test_what_chunks_are_not_taken_for(model, file):
    explainer = FastPDExplainer().fit(model, X)
    for method in (explainer.transform, explainer.explain, explainer.standard_error):
        with pytest.raises(TypeError, match="transform_blocks"):
            method(cut(X))
    with pytest.raises(TypeError, match="name the column"):
        FastPDExplainer().fit(model, cut(X), sample_weight=WEIGHTS)
    with pytest.raises(TypeError, match="rows in chunks, which no estimator is fitted on"):
        FastPDExplainer(RandomForestRegressor()).fit(cut(X), Y)
    with pytest.raises(TypeError, match="got a ndarray"):
        explainer.transform_blocks(X)
    with pytest.raises(FileNotFoundError):
        FastPDExplainer().fit(model, pathlib.Path(f"{file}.gone"))


def test_without_pyarrow(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.dataset", None)
    with pytest.raises(ImportError, match=r"fastpd-sklearn\[arrow\]"):
        FastPDExplainer().fit(model, "rows.parquet")
