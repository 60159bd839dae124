"""Readers are found by the package of a model's class; other packages can add theirs."""

import importlib
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.forest import _registry, find_reader

PACKAGE = '''
import numpy as np
from fastpd_sklearn.forest import ForestBuilder, Head, InputMap, Reading


class Stump:
    """x0 <= threshold: 0, else 10."""

    def __init__(self, threshold):
        self.threshold = threshold


class StumpReader:
    name = "stumps"
    supported = "Stump"
    tolerance = 1e-12

    def accepts(self, model):
        return isinstance(model, Stump)

    def read(self, model):
        builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=False, single=False)
        builder.add(
            left=[1, -1, -1], right=[2, -1, -1], feature=[0, -1, -1],
            threshold=[model.threshold, 0, 0], value=[0, 0, 10.0], cover=[2, 1, 1],
        )
        return Reading(InputMap(1, allow_nan=False), builder.build(0.0), Head(("raw", "predict")))

    def predict_raw(self, model, X):
        return np.where(np.asarray(X) <= model.threshold, 0.0, 10.0)


reader = StumpReader()
'''


@pytest.fixture
def stumps(tmp_path, monkeypatch):
    """A package that registers a reader by entry point, as if it were installed."""
    (tmp_path / "stumps_package.py").write_text(PACKAGE)
    info = tmp_path / "stumps_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stumps-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[fastpd_sklearn.readers]\nstumps_package = stumps_package:reader\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    _registry._reader_specs.cache_clear()
    yield importlib.import_module("stumps_package")
    _registry._reader_specs.cache_clear()
    sys.modules.pop("stumps_package", None)


def test_entry_point(stumps):
    model = stumps.Stump(0.5)
    assert find_reader(model) is stumps.reader
    explainer = FastPDExplainer(output="shap").fit(model, [[0.0], [0.5], [0.6], [1.0]])
    assert explainer.intercept_ == [5.0]
    np.testing.assert_allclose(explainer.transform([[0.5], [0.75]]), [[-5.0], [5.0]])


def test_a_misreading_reader_is_refused(stumps, monkeypatch):
    monkeypatch.setattr(
        stumps.StumpReader, "predict_raw", lambda self, model, X: np.asarray(X) * 0.0
    )
    with pytest.raises(ValueError, match="misread"):
        FastPDExplainer().fit(stumps.Stump(0.5), [[0.0], [1.0]])


def test_subclasses_of_known_models_are_read():
    class MyTree(DecisionTreeRegressor):
        pass

    assert find_reader(MyTree()) is find_reader(DecisionTreeRegressor())


def test_unknown_models_have_no_reader():
    assert find_reader(object()) is None
    assert find_reader([[1.0]]) is None
