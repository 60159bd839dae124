"""Dask collections on threads, against all rows in memory and the model's own predictions."""

import numpy as np
import pandas as pd
import pytest
from fastpd_sklearn.core.threads import effective_n_threads
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.decomposition import FeatureRemover, importance

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.usefixtures("threads")


def explainers():
    yield FastPDExplainer(output="shap")
    yield FastPDExplainer(output="component", max_order=None, n_jackknife=4)
    yield PathDependentExplainer(output="shap")
    yield VanillaPDExplainer()


@pytest.mark.parametrize(
    "explainer", list(explainers()), ids=lambda e: f"{type(e).__name__}-{e.output}"
)
def test_a_background_in_chunks_is_that_background(case, explainer):
    rows = da.from_array(case.X, chunks=(37, 3))  # columns are cut, too
    explainer.fit(case.model, rows)
    whole = type(explainer)(**explainer.get_params()).fit(case.model, case.X)
    assert_allclose(explainer.intercept_, case.model.predict(case.X).mean(), rtol=1e-12)
    assert_allclose(explainer.transform(case.X[:20]), whole.transform(case.X[:20]), atol=1e-13)
    assert vars(explainer).keys() == vars(whole).keys()
    assert explainer.estimator_ is case.model
    if explainer.get_params().get("n_jackknife"):
        assert_allclose(explainer.intercept_error_, whole.intercept_error_, rtol=1e-9)


def unknown(rows):
    """Rows of which Dask does not know how many are in each chunk."""
    return rows[rows[:, 3] < 5]


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
def test_explanations_are_lazy_arrays(case, known):
    explainer = FastPDExplainer(output="shap").fit(case.model, case.X)
    rows = da.from_array(np.nan_to_num(case.X), chunks=(64, 4))
    values = explainer.transform(rows if known else unknown(rows))
    assert isinstance(values, da.Array)
    assert values.dtype == np.float64
    assert values.numblocks == (4, 1)
    assert values.chunks[1] == (4,)
    if known:
        assert values.chunks == ((64, 64, 64, 8), (4,))
    whole = explainer.transform(np.nan_to_num(case.X))
    assert_allclose(values.compute(), whole, atol=1e-14)


def test_unknown_chunks_of_a_background(case):
    rows = unknown(da.from_array(np.nan_to_num(case.X), chunks=(64, 4)))
    explainer = FastPDExplainer().fit(case.model, rows)
    mean = case.model.predict(np.nan_to_num(case.X)).mean()
    assert_allclose(explainer.intercept_, mean, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize("output", ["default", "pandas"])
def test_explanations_of_frames_are_lazy_frames(case, output):
    explainer = FastPDExplainer(output="shap").fit(case.named, case.frame)
    whole = explainer.transform(case.frame)
    explainer.set_output(transform=output)
    rows = dd.from_pandas(case.frame, npartitions=3)
    values = explainer.transform(rows)
    assert isinstance(values, dd.DataFrame)
    assert values.divisions == rows.divisions
    assert list(values.columns) == list(explainer.get_feature_names_out())
    assert set(values.dtypes) == {np.dtype(np.float64)}
    found = values.compute()
    assert_allclose(found.to_numpy(), whole, atol=1e-14)
    pd.testing.assert_index_equal(found.index, case.frame.index)
    assert isinstance(explainer.transform(da.from_array(case.X)), da.Array)


def late(frame, first=120):
    return frame[frame.index >= first]


def test_empty_partitions(case):
    rows = dd.from_pandas(case.frame, npartitions=4)
    few = rows.map_partitions(late)  # the first two are empty
    assert few.map_partitions(len).compute().tolist()[0] == 0
    explainer = FastPDExplainer(output="shap").fit(case.named, few)
    assert_allclose(explainer.intercept_, case.named.predict(case.frame[120:]).mean(), rtol=1e-12)
    whole = explainer.transform(case.frame[120:])
    assert_allclose(explainer.transform(few).compute().to_numpy(), whole, atol=1e-14)
    assert_allclose(explainer.mean_abs(few), np.abs(whole).mean(axis=0), rtol=1e-12)
    with pytest.raises(ValueError, match="no row with weight"):
        explainer.fit(case.named, rows.map_partitions(late, 900))


def weightings():
    def frames(case):
        return dd.from_pandas(case.frame.assign(w=case.weights), npartitions=3)

    yield "column", lambda c: (frames(c), "w")
    yield "series", lambda c: (frames(c)[list(c.frame.columns)], frames(c)["w"])
    yield "array", lambda c: (da.from_array(c.frame.to_numpy(), chunks=50), c.weights)
    yield (
        "other chunks",
        lambda c: (da.from_array(c.frame.to_numpy(), chunks=50), da.from_array(c.weights, 70)),
    )


@pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")
@pytest.mark.parametrize("make", [w[1] for w in weightings()], ids=[w[0] for w in weightings()])
def test_weights(case, make):
    rows, weights = make(case)
    model = case.model if isinstance(rows, da.Array) else case.named
    explainer = FastPDExplainer(output="shap").fit(model, rows, sample_weight=weights)
    mean = np.average(case.named.predict(case.frame), weights=case.weights)
    assert_allclose(explainer.intercept_, mean, rtol=1e-12)
    values = explainer.transform(case.X if isinstance(rows, da.Array) else case.frame)
    expected = np.average(np.abs(values), axis=0, weights=case.weights)
    assert_allclose(explainer.mean_abs(rows, sample_weight=weights), expected, rtol=1e-12)


def test_importance_has_the_errors_of_the_background(case):
    explainer = FastPDExplainer(n_jackknife=5).fit(case.model, case.X)
    rows = da.from_array(case.X, chunks=60)
    for found, whole in zip(
        explainer.mean_abs(rows, return_error=True),
        explainer.mean_abs(case.X, return_error=True),
        strict=True,
    ):
        assert_allclose(found, whole, rtol=1e-9)


def test_importance_of_the_decomposition(case):
    rows = da.from_array(case.X, chunks=60)
    found = importance(case.model, rows)
    whole = importance(case.model, case.X)
    assert found.terms == whole.terms
    for name in ("term_importances", "shap_variance_shares", "joint_order_importances"):
        assert_allclose(getattr(found, name), getattr(whole, name), rtol=1e-9, atol=1e-12)


def test_curves_and_effects(case):
    rows = da.from_array(case.X, chunks=60)
    ice = ICEExplainer(features=[0], grid_resolution=4).fit(case.model, case.X)
    curves = ice.transform(rows).compute()
    for k, value in enumerate(ice.grid_values_[0]):
        moved = case.X.copy()
        moved[:, 0] = value
        assert_allclose(curves[:, k], case.model.predict(moved), rtol=1e-12)
    assert_allclose(ice.average(rows)[0].average[0], curves.mean(axis=0), rtol=1e-12)
    ale = ALEExplainer(features=[0]).fit(case.model, case.X)
    assert_allclose(ale.transform(rows).compute(), ale.transform(case.X), atol=1e-14)


def asked():
    yield ALEExplainer(features=[0, (1, 2), 3], n_bins=5)
    yield ALEExplainer(n_bootstrap=5, random_state=0, n_bins=3)
    yield ICEExplainer(grid_resolution=7, strategy="quantile", missing=True)


@pytest.mark.parametrize("explainer", list(asked()), ids=repr)
def test_effects_and_grids_of_chunks(case, explainer):
    rows = da.from_array(case.X, chunks=(37, 3))
    explainer.fit(case.model, rows, sample_weight=case.weights)
    whole = clone(explainer).fit(case.model, case.X, sample_weight=case.weights)
    assert vars(explainer).keys() == vars(whole).keys()
    assert explainer.estimator_ is case.model
    assert_allclose(explainer.transform(case.X), whole.transform(case.X), atol=1e-12)
    if isinstance(explainer, ALEExplainer):
        for found, truth in zip(explainer.effects_, whole.effects_, strict=True):
            assert_array_equal(found.bin_counts, truth.bin_counts)
            if getattr(truth, "upper", None) is not None:
                assert_allclose(found.upper, truth.upper, rtol=1e-9, atol=1e-12)


def test_effects_of_labels(case):
    words = pd.Categorical(np.array(list("wuv"))[np.arange(200) % 3])
    frame = case.frame.assign(word=words, w=case.weights)
    y = np.nan_to_num(case.X[:, 0]) * (words == "v")
    model = HistGradientBoostingRegressor(
        max_iter=4, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(frame.drop(columns="w"), y)
    rows = dd.from_pandas(frame, npartitions=3)
    for cls in (ALEExplainer, ICEExplainer):
        explainer = cls().fit(model, rows, sample_weight="w")
        whole = cls().fit(model, frame.drop(columns="w"), sample_weight=case.weights)
        known = frame.drop(columns="w")[case.weights > 0]
        assert_allclose(explainer.transform(known), whole.transform(known), atol=1e-12)


@pytest.mark.parametrize("known", [True, False], ids=["known", "unknown"])
@pytest.mark.parametrize("output", ["component", "pd"])
def test_explanations_with_all_that_belongs_to_them(case, output, known):
    Z = np.nan_to_num(case.X)
    rows = da.from_array(Z, chunks=(64, 4))
    explainer = FastPDExplainer(output=output, max_order=1, n_jackknife=4).fit(case.model, Z)
    lazy, whole = explainer.explain(rows if known else unknown(rows)), explainer.explain(Z)
    assert isinstance(lazy.values, da.Array)
    assert lazy.values.numblocks == (4, 1)
    assert lazy.values.dtype == np.float64
    if known:
        assert lazy.values.chunks == ((64, 64, 64, 8), (4,))
    assert_allclose(lazy.values.compute(), whole.values, atol=1e-14)
    assert_allclose(lazy["x2"].compute(), whole["x2"], atol=1e-14)
    found = lazy.compute()
    assert repr(found) == repr(whole)
    assert found.complete == whole.complete
    assert_array_equal(found.data, Z)
    assert (lazy.remainder is None) == (output == "pd")
    if output == "component":
        total = lazy.base_values + lazy.values.sum(axis=1) + lazy.remainder
        assert_allclose(total.compute(), case.model.predict(Z), rtol=1e-12)
        assert_allclose(found.remainder, whole.remainder, atol=1e-14)
    errors = explainer.standard_error(rows)
    assert errors.chunks == ((64, 64, 64, 8), (4,))
    assert_allclose(errors.compute(), explainer.standard_error(Z), rtol=1e-9, atol=1e-15)
    with pytest.raises(KeyError, match="'q' is not among the 4 terms"):
        lazy["q"]


def test_explanations_of_frames_and_classes(case):
    labels = np.digitize(np.nan_to_num(case.X[:, 0]), [-0.5, 0.5])
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3).fit(case.frame, labels)
    explainer = FastPDExplainer(output="shap", n_jackknife=3).fit(model, case.frame)
    rows = dd.from_pandas(case.frame, npartitions=3)
    lazy, whole = explainer.explain(rows), explainer.explain(case.frame)
    assert lazy.values.shape[1:] == (4, 3)
    assert_allclose(lazy.remainder.compute(), whole.remainder, atol=1e-14)
    pd.testing.assert_frame_equal(lazy.compute().to_frame(), whole.to_frame())
    few = lazy_rows_from(rows, 120)
    assert_allclose(explainer.explain(few).compute().values, whole.values[120:], atol=1e-14)
    assert explainer.explain(few).values.compute().shape == (80, 4, 3)
    errors = explainer.standard_error(few).compute()
    assert_allclose(errors, explainer.standard_error(case.frame[120:]), rtol=1e-9, atol=1e-15)
    with pytest.raises(ValueError, match="X has no rows"):
        explainer.explain(lazy_rows_from(rows, 900)).compute()


def lazy_rows_from(rows, first):
    return rows.map_partitions(late, first)


@pytest.mark.parametrize("scale", ["raw", "response"])
@pytest.mark.parametrize("called", [False, True], ids=["read", "called"])
def test_features_are_removed(case, scale, called):
    Z = np.nan_to_num(case.X)
    y = Z[:, 0] + Z[:, 1] > 0
    if called:
        model, scale = LogisticRegression().fit(Z, y), "response"
    else:
        model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3).fit(Z, y)
    rows = da.from_array(Z, chunks=(60, 3))
    remover = FeatureRemover(features=[0, 2], scale=scale)
    remover.fit(model, rows, sample_weight=case.weights)
    whole = clone(remover).fit(model, Z, sample_weight=case.weights)
    for method in ("predict", "predict_proba"):
        lazy, truth = getattr(remover, method)(rows), getattr(whole, method)(Z)
        assert isinstance(lazy, da.Array)
        assert lazy.dtype == truth.dtype
        assert lazy.shape == truth.shape
        assert lazy.chunks[0] == (60, 60, 60, 20)
        assert_allclose(lazy.compute(), truth, rtol=1e-12)
    assert remover.score(rows, da.from_array(y, chunks=60)) == whole.score(Z, y)
    if scale == "response":  # by the definition
        held = np.repeat(Z[:1], len(Z), axis=0)
        held[:, [0, 2]] = Z[:, [0, 2]]
        mean = np.average(model.predict_proba(held)[:, 1], weights=case.weights)
        assert_allclose(remover.predict_proba(Z[:1])[0, 1], mean, rtol=1e-12)


def test_models_that_are_called(case):
    Z = np.nan_to_num(case.X)
    model = LinearRegression().fit(Z, Z @ [1.0, 2.0, 0.0, -1.0])
    explainer = VanillaPDExplainer(output="shap").fit(model, da.from_array(Z, chunks=90))
    shap = (Z[:5] - Z.mean(axis=0)) * [1.0, 2.0, 0.0, -1.0]
    assert_allclose(explainer.transform(Z[:5]), shap, atol=1e-12)
    assert_allclose(explainer.transform(da.from_array(Z[:5], chunks=2)).compute(), shap, atol=1e-12)


def test_the_explainer_is_one_task_for_all_chunks(case):
    explainer = FastPDExplainer().fit(case.model, case.X)
    values = explainer.transform(da.from_array(case.X, chunks=10))
    holders = [key for key in values.dask if "loads" in str(key)]
    assert len(holders) == 1


def test_what_is_given_to_tasks_is_not_changed(case):
    explainer = FastPDExplainer().fit(case.model, case.X)
    values = explainer.transform(case.X[:3])
    lazy = explainer.transform(da.from_array(case.X[:3], chunks=2))
    explainer.partial_fit(case.X[:50])  # what is lazy is of the explainer as it was
    assert_allclose(lazy.compute(), values, atol=1e-14)
    assert hasattr(explainer, "estimator_")


# ------------------------------------------------------------------------------------ errors


def narrow(block, block_id=None):
    return block[:, :2] if block_id[0] == 2 else block


def test_errors_name_the_chunk(case):
    rows = da.from_array(case.X, chunks=(50, 4))
    with pytest.raises(ValueError, match="has 2 features") as raised:
        FastPDExplainer().fit(case.model, rows.map_blocks(narrow, dtype=float))
    assert raised.value.__notes__ == ["in chunk 2 of the background (the first one is chunk 0)"]
    with pytest.raises(ValueError, match="has 2 features") as raised:
        ALEExplainer().fit(case.model, rows.map_blocks(narrow, dtype=float))
    assert raised.value.__notes__ == ["in chunk 2 of the background (the first one is chunk 0)"]
    explainer = FastPDExplainer().fit(case.model, case.X)
    bad = rows.map_blocks(narrow, dtype=float, chunks=rows.chunks)
    for work in (
        explainer.transform(bad).compute,
        explainer.explain(bad).compute,
        FeatureRemover(features=[0]).fit(case.model, case.X).predict(bad).compute,
        lambda: explainer.mean_abs(bad),
    ):
        with pytest.raises(ValueError, match="has 2 features") as raised:
            work()
        assert raised.value.__notes__ == ["in chunk 2 of the rows (the first one is chunk 0)"]


def worded(block, block_id=None, partition_info=None):
    """What chunks 2 and 3 are if their second column holds words."""
    if block_id is None:
        late = partition_info and partition_info["number"] >= 2
        return block.assign(b="word") if late else block
    if block_id[0] < 2:
        return block
    words = block.astype(object)
    words[:, 1] = "word"
    return words


@pytest.mark.parametrize("cls", [ALEExplainer, ICEExplainer])
def test_words_in_some_chunks(case, cls):
    rows = da.from_array(case.X, chunks=(50, 4)).map_blocks(worded, dtype=float)
    frame = dd.from_pandas(case.frame, npartitions=4).map_partitions(worded, meta=case.frame[:0])
    for model, background, name in ((case.model, rows, "x1"), (case.named, frame, "b")):
        message = rf"'{name}' holds numbers in chunk 0 .* and labels such as \['word'\] in chunk 2;"
        with pytest.raises(ValueError, match=message) as raised:
            cls(features=[1]).fit(model, background)
        assert raised.value.__notes__ == ["in chunk 2 of the background (the first one is chunk 0)"]


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_bad_input(case):
    rows = da.from_array(case.X, chunks=50)
    frame = dd.from_pandas(case.frame, npartitions=3)
    explainer = FastPDExplainer()
    for weights, message in [
        (case.weights[:10], "pass a Dask array or series with the same chunks"),
        (da.from_array(case.weights[:10]), "one weight a row"),
        (rows, "2 dimensions"),
    ]:
        with pytest.raises(ValueError, match=message):
            explainer.fit(case.model, rows, sample_weight=weights)
    with pytest.raises(ValueError, match="rechunk or repartition"):
        explainer.fit(case.named, frame, sample_weight=frame["a"].repartition(npartitions=2))
    with pytest.raises(ValueError, match="is no column of the rows"):
        explainer.fit(case.named, frame, sample_weight="w")
    with pytest.raises(ValueError, match="3 dimensions"):
        explainer.fit(case.model, da.zeros((4, 4, 2)))
    fitted = FastPDExplainer().fit(case.named, case.frame)
    with pytest.raises(ValueError, match="features"):
        fitted.transform(rows[:, :2])
    with pytest.raises(ValueError, match="feature names"):
        fitted.transform(frame.rename(columns={"a": "z"}))
    with pytest.raises(TypeError, match="transform for a Dask collection"):
        next(fitted.explain_blocks(frame))
    with pytest.raises(TypeError, match="merge"):
        fitted.partial_fit(frame)
    with pytest.raises(TypeError, match="call transform"):
        fitted.transform_blocks(frame)
    with pytest.raises(TypeError, match="out is for rows in memory"):
        FastPDExplainer().fit(case.model, case.X).explain(rows, out=np.empty((200, 4)))
    with pytest.raises(ValueError, match="n_jackknife=0"):
        FastPDExplainer().fit(case.model, case.X).standard_error(rows)
    with pytest.raises(TypeError, match=r"call transform_blocks .* and transform"):
        ICEExplainer().fit(case.model, case.X).explain(rows)


def test_categories_that_dask_does_not_know(case):
    frame = pd.DataFrame({"word": list("uvuvw"), "number": range(5)})
    rows = dd.from_pandas(frame, npartitions=2).astype({"word": "category"})
    with pytest.raises(ValueError, match=r"call X\.categorize"):
        FastPDExplainer().fit(case.model, rows)


def threads_in_use(explainer, X, weights):
    return effective_n_threads()


def test_a_task_takes_one_thread(case):
    explainer = FastPDExplainer().fit(case.model, case.X)
    rows = da.from_array(case.X, chunks=50)
    assert explainer._sum_over(rows, None, threads_in_use) == 4  # one each of four chunks
