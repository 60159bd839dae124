"""Pickles, copies and threads."""

import copy
import pickle
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.decomposition import FeatureRemover
from tests.explainers.toys import StumpExplainer, Stumps


@pytest.fixture
def library():
    """A library with one model class, which can be taken away."""
    module = types.ModuleType("vanishing_library")
    module.Model = type("Model", (Stumps,), {"__module__": "vanishing_library"})
    sys.modules["vanishing_library"] = module
    yield module
    sys.modules.pop("vanishing_library", None)


@pytest.mark.parametrize("as_parameter", [True, False])
def test_without_the_models_library(library, X, as_parameter):
    model = library.Model([1.0, 0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    if as_parameter:
        explainer = StumpExplainer(FrozenEstimator(model), output="shap").fit(X)
    else:
        explainer = StumpExplainer(output="shap").fit(model, X)
    values = explainer.transform(X)
    data = pickle.dumps(explainer)

    sys.modules.pop("vanishing_library")
    opened = pickle.loads(data)
    before = dict(vars(opened))
    assert np.array_equal(opened.transform(X), values)
    assert np.array_equal(opened.explain(X).remainder, explainer.explain(X).remainder)
    assert list(opened.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]
    assert opened.partial_dependence(0).average.shape == (1, 5)
    assert vars(opened) == before
    with pytest.raises(AttributeError, match=r"detach\(\) forgets the model"):
        _ = opened.estimator_
    assert not hasattr(opened, "estimator_")
    assert "not installed" in repr(opened)
    assert "not installed" in opened._repr_mimebundle_()["text/plain"]
    again = pickle.loads(pickle.dumps(opened))
    assert np.array_equal(again.transform(X), values)

    other = Stumps([0.0, 0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    refitted = pickle.loads(data).fit(other, X)
    assert refitted.estimator_ is other

    sys.modules["vanishing_library"] = library
    assert_allclose(again.estimator_.predict(X), model.predict(X))
    assert isinstance(again.get_params()["estimator"], FrozenEstimator) == as_parameter


def test_a_worker_needs_the_pickle_alone(tmp_path):
    """Neither the training library nor the background: in a process without the one."""
    xgboost = pytest.importorskip("xgboost")
    rows = np.random.default_rng(0).integers(0, 9, size=(400, 4)).astype(float)
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1)
    model.fit(rows, rows[:, 0] * rows[:, 1])
    made = [
        FastPDExplainer(output="shap", n_jackknife=3),
        PathDependentExplainer(output="shap"),
        ICEExplainer(),
        ALEExplainer(),
        FeatureRemover(features=[0]),
    ]
    for explainer in made:
        few, many = (
            clone(explainer).fit(model, [rows[:200]] * n_chunks).detach() for n_chunks in (9, 27)
        )
        assert len(pickle.dumps(many)) < 1.1 * len(pickle.dumps(few)) < 150_000
        explainer.fit(model, [rows[:150], rows[150:]])
    answers = [getattr(e, "transform", getattr(e, "predict", None))(rows[:9]) for e in made]
    (tmp_path / "pickles").write_bytes(pickle.dumps((made, answers, rows[:9])))
    code = (
        "import pickle, sys\n"
        "sys.modules['xgboost'] = None\n"
        "with open(sys.argv[1], 'rb') as file:\n"
        "    made, answers, rows = pickle.load(file)\n"
        "for e, answer in zip(made, answers, strict=True):\n"
        "    found = getattr(e, 'transform', getattr(e, 'predict', None))(rows)\n"
        "    assert (found == answer).all(), e\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "pickles")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_detach(X):
    model = Stumps([1.0, 0.5, 0.0, 1.0], [1.0, 2.0, 3.0, 4.0])
    explainer = StumpExplainer(model, output="shap").fit(X)
    values = explainer.transform(X)
    for each in (explainer, pickle.loads(pickle.dumps(explainer))):
        assert each.detach() is each
        assert each.estimator is None
        assert not hasattr(each, "estimator_")
        assert np.array_equal(each.transform(X), values)
        assert b"Stumps" not in pickle.dumps(vars(each)["_fitted"].tags)
    with pytest.raises(TypeError, match="explains by calling its model"):
        VanillaPDExplainer().fit(model, X).detach()


def test_pickle(explainer_class, classifier, X):
    explainer = explainer_class(FrozenEstimator(classifier), output="component").fit(X)
    opened = pickle.loads(pickle.dumps(explainer))
    assert np.array_equal(opened.transform(X), explainer.transform(X))
    assert np.array_equal(opened.intercept_, explainer.intercept_)
    assert opened.terms_ == explainer.terms_
    assert_allclose(opened.estimator_.predict_proba(X), classifier.predict_proba(X))
    assert clone(opened).fit(X).estimator_ is not None
    assert repr(opened) == repr(explainer)
    assert opened._repr_html_()


def test_partial_fit_after_unpickling(explainer_class, model, X):
    explainer = explainer_class(output="component").fit(model, X[:20])
    opened = pickle.loads(pickle.dumps(explainer)).partial_fit(X[20:])
    whole = explainer_class(output="component").fit(model, X)
    assert_allclose(opened.transform(X), whole.transform(X), atol=1e-12)


def test_deepcopy_is_independent(explainer_class, model, X):
    explainer = explainer_class(output="component").fit(model, X[:20])
    before = explainer.transform(X)
    twin = copy.deepcopy(explainer)
    assert twin.estimator_ is not model
    twin.partial_fit(X[20:])
    assert np.array_equal(explainer.transform(X), before)
    assert not np.allclose(twin.transform(X), before)


def test_transform_leaves_the_explainer_alone(explainer_class, model, X):
    explainer = explainer_class(output="component").fit(model, X)
    before = dict(vars(explainer))
    explainer.transform(X)
    explainer.explain(X)
    explainer.partial_dependence((0, 1))
    explainer.get_feature_names_out()
    assert vars(explainer) == before


def test_threads(explainer_class, model, X):
    explainer = explainer_class(output="shap").fit(model, X)
    truth = explainer.transform(X)
    with ThreadPoolExecutor(4) as pool:
        for values in pool.map(explainer.transform, [X] * 12):
            assert np.array_equal(values, truth)
