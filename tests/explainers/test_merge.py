"""Explainers of parts of a background, merged, against one of all rows and the definition."""

import pickle
import threading
from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.core.background import KeptRows, MaskCounts
from fastpd_sklearn.explainers import _empirical, _engine, _fastpd
from tests import oracles

# Models that were fitted on frames warn when they are given arrays, and the other way round.
pytestmark = pytest.mark.filterwarnings("ignore:X (does not have valid|has) feature names")


def rows(n=60, seed=0):
    """Four columns: numbers, some of them missing, and categories."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 3] = rng.integers(0, 5, n)
    X[rng.random((n, 4)) < 0.1] = np.nan
    return X


X = rows()
WEIGHTS = np.random.default_rng(1).random(60) * (np.arange(60) % 4 > 0)
CUTS = [0, 7, 8, 31, 60]


@pytest.fixture(scope="module")
def model():
    y = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2] + (X[:, 3] == 2))
    return HistGradientBoostingRegressor(
        max_iter=4, min_samples_leaf=3, categorical_features=[3]
    ).fit(X, y)


@pytest.fixture(scope="module")
def classifier():
    Z = np.nan_to_num(X)
    return GradientBoostingClassifier(n_estimators=6, random_state=0).fit(Z, Z[:, 0] > 0)


def counted(model):
    return FastPDExplainer(output="shap"), model, X


def kept(model):
    return FastPDExplainer(output="component"), model, X


def walked(model):
    return FastPDExplainer(output="component", max_order=2), model, X


def covers(model):
    return PathDependentExplainer(output="shap"), model, X


def predicted(model):
    return VanillaPDExplainer(features=[(1, 2)]), model, X


def pairs(model):
    return FastPDExplainer(output="shap_interaction"), model, X


def linear(_):
    import lightgbm

    data = np.nan_to_num(X)
    options = {"n_estimators": 5, "min_child_samples": 5, "linear_tree": True, "verbose": -1}
    model = lightgbm.LGBMRegressor(**options).fit(data, data[:, 0] * data[:, 1])
    return FastPDExplainer(output="shap"), model, X


KINDS = {
    "linear leaves": linear,
    "pairs of rows": pairs,
    "counted masks": counted,
    "kept rows": kept,
    "walked rows": walked,
    "covers": covers,
    "predictions": predicted,
}


@pytest.fixture(params=[*KINDS, "response"])
def case(request, monkeypatch, model, classifier):
    """An explainer to clone, a model, and a background."""
    if request.param == "response":
        return FastPDExplainer(response_method="predict_proba"), classifier, np.nan_to_num(X)
    if request.param == "linear leaves":
        pytest.importorskip("lightgbm")
    if request.param == "counted masks":
        monkeypatch.setattr(_empirical, "make_background", lambda core, n_rows: MaskCounts())
    if request.param == "pairs of rows":
        monkeypatch.setattr(_fastpd, "is_deep", lambda forest: True)
    if request.param == "walked rows":
        monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    return KINDS[request.param](model)


def fit(case, part, weights=None):
    explainer, model, data = case
    weights = None if weights is None else weights[part]
    return clone(explainer).fit(model, data[part], sample_weight=weights)


def assert_same(one, other, data):
    data = data[::6]
    assert_allclose(one.intercept_, other.intercept_, rtol=1e-12, atol=1e-12)
    assert_allclose(one.transform(data), other.transform(data), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_any_order_and_grouping_is_one_fit(case, weights):
    parts = [slice(*cut) for cut in pairwise(CUTS)]
    whole = fit(case, slice(None), weights)

    def part(k):
        return fit(case, parts[k], weights)

    in_turn = reduce(lambda one, other: one.merge(other), map(part, range(4)))
    backwards = reduce(lambda one, other: one.merge(other), map(part, [3, 1, 0, 2]))
    in_pairs = part(0).merge(part(1)).merge(part(2).merge(part(3)))
    for merged in (in_turn, backwards, in_pairs):
        assert_same(merged, whole, case[2])


def test_parts_with_and_without_weights(case):
    merged = fit(case, slice(0, 25)).merge(fit(case, slice(25, 60), np.full(60, 2.5)))
    assert_same(merged, fit(case, slice(None), np.repeat([1.0, 2.5], [25, 35])), case[2])


def test_merge_returns_itself_and_leaves_the_other_alone(case):
    one, other = fit(case, slice(0, 20)), fit(case, slice(20, 40))
    before = other.transform(case[2])
    assert one.merge(other) is one
    one.partial_fit(case[2][40:])
    other_again = pickle.loads(pickle.dumps(other))
    assert_array_equal(other.transform(case[2]), before)
    assert_same(one, fit(case, slice(None)), case[2])
    assert_same(other_again.merge(other), other, case[2])  # the same rows twice


def test_explainers_from_elsewhere(case):
    """Pickled, and without the model where that is possible."""
    one, other = (pickle.loads(pickle.dumps(fit(case, part))) for part in (slice(9), slice(9, 60)))
    if not isinstance(one, VanillaPDExplainer):
        one.detach()
        other.detach()
    assert_same(one.merge(other), fit(case, slice(None)), case[2])


def test_merged_values_are_those_of_the_definition(model):
    explainer = FastPDExplainer(output="shap")
    parts = [clone(explainer).fit(model, X[k::3], sample_weight=WEIGHTS[k::3]) for k in range(3)]
    found = parts[2].merge(parts[0]).merge(parts[1]).transform(X[:5])
    players = [[j] for j in range(4)]
    game = oracles.interventional_game(model.predict, X, WEIGHTS, X[:5], players)
    truth = [oracles.shapley_interaction(game, (k,))[:, 0] for k in range(4)]
    assert_allclose(found.T, truth, atol=1e-10)


def test_counts_and_rows_together(monkeypatch, model):
    """What was kept in two ways is counted."""

    def part(kind, which):
        monkeypatch.setattr(_empirical, "make_background", lambda core, n_rows: kind())
        return FastPDExplainer(output="shap").fit(model, X[which], sample_weight=WEIGHTS[which])

    whole = part(MaskCounts, slice(None))
    first, last = slice(0, 20), slice(20, 60)
    for kinds in ((MaskCounts, KeptRows), (KeptRows, MaskCounts)):
        merged = part(kinds[0], first).merge(part(kinds[1], last))
        assert isinstance(merged._fitted.engine.background, MaskCounts)
        assert_same(merged, whole, X)


def test_frames_and_arrays_together():
    pd = pytest.importorskip("pandas")
    lightgbm = pytest.importorskip("lightgbm")
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(list("uvw") * 20)})
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(frame, X[:, 3].clip(0) + (frame["b"] == "v"))
    codes = np.column_stack([X[:, 0], frame["b"].cat.codes])
    one = FastPDExplainer().fit(model, frame[:20])
    one.merge(FastPDExplainer().fit(model, codes[20:]))
    assert_same(one, FastPDExplainer().fit(model, frame), frame)


def test_pipelines():
    Z = np.nan_to_num(X)
    pipes = [
        make_pipeline(StandardScaler(), RandomForestRegressor(2, random_state=0)).fit(
            k * Z, Z[:, 0]
        )
        for k in (1, 2)
    ]
    one, other = (FastPDExplainer().fit(pipes[0], part) for part in (Z[:20], Z[20:]))
    assert_same(one.merge(pickle.loads(pickle.dumps(other))), FastPDExplainer().fit(pipes[0], Z), Z)
    with pytest.raises(ValueError, match="different models"):
        one.merge(FastPDExplainer().fit(pipes[1], Z))


# ------------------------------------------------------------------------------ refusals


def test_another_model(case):
    explainer, model, data = case
    other = clone(model).set_params(random_state=5)
    y = np.arange(60) % 7 > 2 if hasattr(model, "classes_") else np.sin(np.arange(60))
    one, other = fit(case, slice(20)), clone(explainer).fit(other.fit(data, y), data)
    before = one.transform(data)
    with pytest.raises(ValueError, match=r"merge: the two explainers explain different models"):
        one.merge(other)
    assert_array_equal(one.transform(data), before)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"output": "component"}, "different `output`: 'pd' and 'component'"),
        ({"groups": {"g": [0, 1]}}, "different `groups`"),
        ({"features": [0, 1]}, "different `features`"),
        ({"response_method": "predict_proba"}, "differ in response_method_"),
        ({"target": False}, "different `target`"),
    ],
)
def test_other_settings(classifier, options, match):
    one = FastPDExplainer().fit(classifier, np.nan_to_num(X))
    with pytest.raises(ValueError, match=match):
        one.merge(FastPDExplainer(**options).fit(classifier, np.nan_to_num(X)))


def test_settings_that_change_no_value(model):
    one = FastPDExplainer(n_jobs=1).fit(model, X[:20])
    other = FastPDExplainer(n_jobs=2, verbose=1, features=list(range(4))).fit(model, X[20:])
    assert_same(one.merge(other), FastPDExplainer().fit(model, X), X)


def test_other_names(model):
    pd = pytest.importorskip("pandas")
    bare = RandomForestRegressor(2, random_state=0).fit(np.nan_to_num(X), np.arange(60.0))
    frames = [pd.DataFrame(np.nan_to_num(X), columns=list(names)) for names in ("abcd", "abdc")]
    one, other = (VanillaPDExplainer().fit(bare.estimators_[0], frame) for frame in frames)
    with pytest.raises(ValueError, match="differ in feature_names_in_"):
        one.merge(other)


def test_what_is_no_such_explainer(model):
    one = FastPDExplainer().fit(model, X)
    with pytest.raises(TypeError, match="another FastPDExplainer, got a PathDependentExplainer"):
        one.merge(PathDependentExplainer().fit(model, X))
    with pytest.raises(TypeError, match="got a ndarray"):
        one.merge(X)
    for pair in ((one, FastPDExplainer()), (FastPDExplainer(), one)):
        with pytest.raises(NotFittedError):
            pair[0].merge(pair[1])


def test_without_a_background():
    Z = np.nan_to_num(X)
    model = RandomForestRegressor(2, random_state=0).fit(Z, Z[:, 0])
    bare, counted = PathDependentExplainer().fit(model), PathDependentExplainer().fit(model, Z)
    for pair in ((bare, counted), (counted, bare)):
        with pytest.raises(ValueError, match="fit both with a background"):
            pair[0].merge(pair[1])


def test_states_of_two_versions(monkeypatch, model):
    one = FastPDExplainer().fit(model, X)
    monkeypatch.setattr(_engine, "STATE_VERSION", 99)
    with pytest.raises(ValueError, match="versions 1 and 99"):
        one.merge(FastPDExplainer().fit(model, X))


@pytest.mark.parametrize("walked_first", [True, False])
def test_keeping_in_different_ways(monkeypatch, model, walked_first):
    """A forest that is walked for few rows may be counted for many; both can be merged."""
    options = {"output": "component", "max_order": 2, "n_jackknife": 4}
    fit = FastPDExplainer(**options).fit
    counted = FastPDExplainer(**options).fit(model, X[:25])
    monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    walked = FastPDExplainer(**options).fit(model, X[25:])
    assert type(walked._fitted.engine) is not type(counted._fitted.engine)
    one, other = (walked, counted) if walked_first else (counted, walked)
    one.merge(other)
    monkeypatch.undo()
    whole = fit(model, X)
    assert_same(one, whole, X)
    assert_allclose(one.intercept_error_, whole.intercept_error_, rtol=1e-9)


def test_a_group_may_get_its_first_rows_after_merging(monkeypatch, model):
    """Groups without rows change their way of keeping rows along with all others."""
    fit = FastPDExplainer(output="component", n_jackknife=20).fit
    monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    merged = fit(model, X[:3])
    monkeypatch.undo()
    counted, whole = fit(model, X[3:6]), fit(model, X)
    merged.merge(counted).partial_fit(X[6:20])
    rest = fit(model, X[20:]).merge(merged)  # in which every group has both kinds of rows
    assert_same(rest, whole, X)
    assert_allclose(rest.standard_error(X[:5]), whole.standard_error(X[:5]), rtol=1e-9)


def test_a_model_that_is_only_called_may_be_a_copy():
    Z = np.nan_to_num(X)
    model = LinearRegression().fit(Z, Z[:, 0])
    one = VanillaPDExplainer().fit(model, Z[:20])
    one.merge(VanillaPDExplainer().fit(pickle.loads(pickle.dumps(model)), Z[20:]))
    assert_same(one, VanillaPDExplainer().fit(model, Z), Z)


# ------------------------------------------------------------------------- at the same time


@pytest.mark.parametrize("kind", ["counted masks", "walked rows", "covers"])
def test_explaining_while_rows_are_added(monkeypatch, model, kind):
    """Whoever explains meanwhile sees the background before or after, and nothing in between."""
    if kind == "walked rows":
        monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    explainer, model, _ = KINDS[kind](model)
    explainer.output = "component"
    explainer.fit(model, X[:5])
    possible = [explainer.explain(X[:3])]
    twin = pickle.loads(pickle.dumps(explainer))
    possible += [twin.partial_fit(X[k : k + 5]).explain(X[:3]) for k in range(5, 60, 5)]
    known = [(e.base_values, e.values.tolist()) for e in possible]
    seen, stop = [], threading.Event()

    def look():
        while not stop.is_set():
            found = explainer.explain(X[:3])
            seen.append((found.base_values, found.values.tolist()))

    watcher = threading.Thread(target=look)
    watcher.start()
    for k in range(5, 60, 5):
        explainer.partial_fit(X[k : k + 5])
    stop.set()
    watcher.join()
    assert seen
    assert all(one in known for one in seen)
