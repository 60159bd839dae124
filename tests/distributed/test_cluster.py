"""A cluster of two processes: the same numbers, also if one of them dies meanwhile."""

import os
from collections import Counter
from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from fastpd_sklearn import ALEExplainer, FastPDExplainer, ICEExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import FeatureRemover, importance

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

pytestmark = pytest.mark.usefixtures("cluster")


def test_arrays(case):
    rows = da.from_array(case.X, chunks=(40, 4))
    explainer = FastPDExplainer(output="shap").fit(case.model, rows, sample_weight=case.weights)
    mean = np.average(case.model.predict(case.X), weights=case.weights)
    assert_allclose(explainer.intercept_, mean, rtol=1e-12)
    whole = FastPDExplainer(output="shap").fit(case.model, case.X, sample_weight=case.weights)
    assert_allclose(explainer.transform(rows).compute(), whole.transform(case.X), atol=1e-13)
    assert_allclose(explainer.mean_abs(rows), np.abs(whole.transform(case.X)).mean(axis=0))


def test_frames(case):
    rows = dd.from_pandas(case.frame.assign(w=case.weights), npartitions=3)
    explainer = FastPDExplainer(n_jackknife=4).fit(case.named, rows, sample_weight="w")
    mean = np.average(case.named.predict(case.frame), weights=case.weights)
    assert_allclose(explainer.intercept_, mean, rtol=1e-12)
    values = explainer.transform(rows[list(case.frame.columns)]).compute()
    assert_allclose(values.to_numpy(), explainer.transform(case.frame), atol=1e-14)
    assert values.index.name == "id"
    ice = ICEExplainer(features=["a"], grid_resolution=3).fit(case.named, case.frame)
    average = ice.average(rows[list(case.frame.columns)])[0].average
    assert_allclose(average, ice.average(case.frame)[0].average, rtol=1e-12)


def test_curves_effects_and_removal(case):
    rows = da.from_array(case.X, chunks=(70, 4))
    for explainer in (ALEExplainer(features=[0, (1, 2)], n_bins=4), ICEExplainer(features=[1])):
        found = clone(explainer).fit(case.model, rows, sample_weight=case.weights)
        whole = explainer.fit(case.model, case.X, sample_weight=case.weights)
        assert_allclose(found.transform(rows).compute(), whole.transform(case.X), atol=1e-12)
    remover = FeatureRemover(features=[0]).fit(case.model, rows)
    whole = FeatureRemover(features=[0]).fit(case.model, case.X).predict(case.X)
    assert_allclose(remover.predict(rows).compute(), whole, rtol=1e-12)


def test_importance_and_explanations(case):
    rows = da.from_array(case.X, chunks=(70, 4))
    found, whole = importance(case.model, rows), importance(case.model, case.X)
    assert_allclose(found.term_importances, whole.term_importances, rtol=1e-9, atol=1e-12)
    explainer = FastPDExplainer(output="component", max_order=None, n_jackknife=3)
    explanation = explainer.fit(case.model, rows).explain(rows)
    values = explainer.explain(case.X).values
    assert_allclose(explanation.compute().values, values, atol=1e-13)
    errors = explainer.standard_error(case.X)
    assert_allclose(explainer.standard_error(rows).compute(), errors, rtol=1e-9, atol=1e-14)
    assert_allclose(explainer.mean_abs(rows), np.abs(values).mean(axis=0), rtol=1e-9, atol=1e-14)


def mortal(marker):
    """A function of blocks that takes its process down the first time it is given the fourth."""

    def dies_once(block, block_id=None):  # nested, so that it travels by value
        if block_id[0] == 3 and not os.path.exists(marker):
            with open(marker, "w"):
                pass
            os._exit(1)
        return block

    return dies_once


@pytest.mark.parametrize("step", ["fit", "passes", "transform"])
def test_a_worker_that_dies_costs_time_only(case, tmp_path, step):
    marker = str(tmp_path / "died")
    rows = da.from_array(case.X, chunks=(40, 4)).map_blocks(mortal(marker), dtype=float)
    whole = FastPDExplainer(output="shap").fit(case.model, case.X)
    if step == "passes":
        whole = ALEExplainer(n_bins=4).fit(case.model, case.X)
        values = ALEExplainer(n_bins=4).fit(case.model, rows).transform(case.X)
    elif step == "fit":
        explainer = FastPDExplainer(output="shap").fit(case.model, rows)
        values = explainer.transform(case.X)
    else:
        values = whole.transform(rows).compute()
    assert os.path.exists(marker)
    assert_allclose(values, whole.transform(case.X), atol=1e-14)


def noting(path):
    """Something that notes in which process it is unpickled; a model, too."""

    class Noting:  # nested, so that it travels by value
        def predict(self, X):
            return np.nan_to_num(X).sum(axis=1)

        def __setstate__(self, state):
            with open(path, "a") as notes:
                notes.write(f"{os.getpid()}\n")

        def __getstate__(self):
            return {"path": path}

    return Noting()


def opened_at_workers(path):
    with open(path) as notes:
        pids = map(int, notes.read().split())
    return Counter(pid for pid in pids if pid != os.getpid())


def test_a_model_that_is_read_is_sent_to_one_worker(case, tmp_path):
    model = copy(case.model)
    model.note = noting(tmp_path / "opened")
    explainer = FastPDExplainer().fit(model, da.from_array(case.X, chunks=(10, 4)))
    assert list(opened_at_workers(tmp_path / "opened").values()) == [1]
    explainer.transform(da.from_array(case.X, chunks=(10, 4))).compute()
    assert list(opened_at_workers(tmp_path / "opened").values()) == [1]


def test_an_explainer_is_sent_once_to_each_worker(case, tmp_path):
    explainer = VanillaPDExplainer().fit(noting(tmp_path / "opened"), case.X[:9])
    explainer.transform(da.from_array(case.X, chunks=(10, 4))).compute()
    opened = opened_at_workers(tmp_path / "opened")
    assert 1 <= len(opened) <= 2
    assert max(opened.values()) == 1


@pytest.mark.parametrize("cls", [FastPDExplainer, ALEExplainer, ICEExplainer])
def test_errors_of_workers_name_the_chunk(case, cls):
    rows = da.from_array(case.X, chunks=(40, 4)).map_blocks(
        lambda block, block_id=None: block[:, :2] if block_id[0] == 2 else block, dtype=float
    )
    with pytest.raises(ValueError, match="has 2 features") as raised:
        cls().fit(case.model, rows)
    assert raised.value.__notes__ == ["in chunk 2 of the background (the first one is chunk 0)"]
    with pytest.raises(ValueError, match="has 2 features") as raised:
        cls().fit(case.model, case.X).transform(rows).compute()
    assert raised.value.__notes__ == ["in chunk 2 of the rows (the first one is chunk 0)"]
