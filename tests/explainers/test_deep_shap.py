"""Interventional values of deep forests: both ways, against enumeration, and what they cost."""

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer
from fastpd_sklearn.core.effort import set_effort
from fastpd_sklearn.core.pair_values import RowPairs
from fastpd_sklearn.explainers import CostWarning, _cost, _deep_shap, _fastpd
from fastpd_sklearn.explainers._deep_shap import PairEngine
from tests.explainers.test_deep_engine import MODELS, classifier, regressor, rows

WAYS = {"pairs": "pair_effort", "sets": "set_effort", "tables": "deep_table_effort"}
OUTPUTS = ["shap", "shap_interaction", "banzhaf", "total"]


@pytest.fixture
def deep(monkeypatch):
    """Take every forest for a deep one."""
    monkeypatch.setattr(_fastpd, "is_deep", lambda forest: True)


def take(monkeypatch, way):
    """Find one way cheaper than the others."""
    for name, function in WAYS.items():
        cost = 0.0 if name == way else np.inf
        monkeypatch.setattr(_deep_shap, function, lambda *args, cost=cost: cost)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("name", MODELS)
def test_equal_to_enumeration(deep, monkeypatch, name, output, way):
    take(monkeypatch, way)
    X = rows()
    model = MODELS[name](X)
    order = {} if output.startswith("shap") else {"max_order": 2}
    weights = np.random.default_rng(2).random(len(X))
    options = {"output": output, "groups": {"g": [0, 3]}, **order}
    found = FastPDExplainer(**options).fit(model, X, sample_weight=weights)
    assert type(found._fitted.engine) is PairEngine
    truth = VanillaPDExplainer(**options).fit(model, X, sample_weight=weights)
    names = list(found.get_feature_names_out())
    columns = [names.index(column) for column in truth.get_feature_names_out()]
    assert_allclose(found.intercept_, truth.intercept_, rtol=0, atol=1e-12)
    explained = X[:6]
    assert_allclose(
        found.transform(explained)[:, columns], truth.transform(explained), rtol=0, atol=1e-10
    )


@pytest.mark.parametrize("way", ["pairs", "sets"])
def test_shap(deep, monkeypatch, way):
    take(monkeypatch, way)
    shap = pytest.importorskip("shap")
    X = rows(150)
    model = regressor(X)
    found = FastPDExplainer(output="shap").fit(model, X).transform(X[:20])
    masker = shap.maskers.Independent(X, max_samples=len(X))
    peer = shap.TreeExplainer(model, masker, feature_perturbation="interventional")
    assert_allclose(found, peer.shap_values(X[:20]), rtol=0, atol=1e-6)


def test_a_deep_forest_is_seen(monkeypatch):
    monkeypatch.setattr(_fastpd, "DEEP_LEAVES", 1_000)
    X = np.random.default_rng(0).normal(size=(4000, 8))
    model = RandomForestRegressor(2, n_jobs=1, random_state=0)
    model.fit(X, X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3:].sum(axis=1))
    explainer = FastPDExplainer(output="shap").fit(model, X[:70])
    assert type(explainer._fitted.engine) is PairEngine
    explanation = explainer.explain(X[100:110])
    assert explanation.complete
    assert np.abs(explanation.remainder).max() < 1e-10
    found = explainer.transform(X[100:110])
    assert_allclose(
        found.sum(axis=1) + explainer.intercept_, model.predict(X[100:110]), rtol=0, atol=1e-10
    )
    assert 0 < explainer.estimate_cost(X) < 600


def test_larger_sets_are_left_to_tables(deep):
    X = rows()
    explainer = FastPDExplainer(output="banzhaf", max_order=3).fit(regressor(X), X)
    assert not isinstance(explainer._fitted.engine, PairEngine)


def test_paths_of_more_players_than_bits(deep, monkeypatch):
    X = rows()
    model = regressor(X)
    truth = FastPDExplainer(output="shap").fit(model, X).transform(X[:5])
    monkeypatch.setattr(RowPairs, "is_possible", False)
    explainer = FastPDExplainer(output="shap").fit(model, X)
    assert_allclose(explainer.transform(X[:5]), truth, rtol=0, atol=1e-12)
    assert explainer.estimate_cost(X) > 0


def test_both_ways_give_dependence_too(deep):
    X = rows()
    model = classifier(X)
    explainer = FastPDExplainer(output="shap", target=1).fit(model, X)
    truth = FastPDExplainer(target=1).fit(model, X)
    for features in (0, (1, 2)):
        found = explainer.partial_dependence(features).average
        assert_allclose(found, truth.partial_dependence(features).average, rtol=0, atol=1e-12)


@pytest.mark.parametrize("way", ["pairs", "sets"])
def test_any_threads_give_the_same_bits(deep, monkeypatch, way):
    take(monkeypatch, way)
    X = rows(300)
    model = regressor(X)
    one, two = (FastPDExplainer(output="shap", n_jobs=n).fit(model, X) for n in (1, 2))
    values = one.transform(X)
    assert_array_equal(two.transform(X), values)
    assert_allclose(one.transform(X[17:19]), values[17:19], rtol=0, atol=1e-12)


def test_parts_pickles_and_blocks(deep, monkeypatch):
    monkeypatch.setattr(_deep_shap, "BLOCK_VALUES", 1)
    X = rows()
    model = classifier(X)
    whole = FastPDExplainer(output="shap_interaction").fit(model, X)
    parts = clone(whole).fit(model, X[:30]).partial_fit(X[30:])
    values = whole.transform(X)
    assert_allclose(parts.transform(X), values, rtol=0, atol=1e-12)
    unpickled = pickle.loads(pickle.dumps(whole)).detach()
    assert_array_equal(unpickled.transform(X), values)
    by_terms = np.empty((len(X), len(whole.terms_), 3))
    for terms, block in whole.explain_blocks(X, block_bytes=1000):
        by_terms[:, [whole.terms_.index(term) for term in terms]] = block
    assert_allclose(by_terms.reshape(len(X), -1), values, rtol=0, atol=1e-14)
    mean = whole.mean_abs(X)
    assert_allclose(mean, np.abs(by_terms).mean(axis=0), rtol=1e-12)
    banzhaf = FastPDExplainer(output="banzhaf", max_order=2).fit(model, X)
    blocks = [values for _, values in banzhaf.explain_blocks(X, block_bytes=1000)]
    found = np.concatenate(blocks, axis=1).reshape(len(X), -1)
    assert_allclose(found, banzhaf.transform(X), rtol=0, atol=1e-14)


def test_a_long_run_is_announced(deep, monkeypatch):
    X = rows()
    explainer = FastPDExplainer(output="shap").fit(regressor(X), X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = explainer.transform(X)
    monkeypatch.setattr(_cost, "LONG_RUN", 0.0)
    message = r"explaining 80 rows against 80 will take about .*estimate_cost"
    with pytest.warns(CostWarning, match=message):
        assert_array_equal(explainer.transform(X), values)
    with pytest.warns(CostWarning, match=message):
        explainer.mean_abs(X)


@pytest.mark.parametrize("way", ["pairs", "sets"])
def test_progress(deep, monkeypatch, capsys, way):
    monkeypatch.setattr(_deep_shap, "REPORT", 0.0)
    monkeypatch.setattr(_cost, "REPORT", 0.0)
    monkeypatch.setattr(_deep_shap, "BLOCK_ROWS", 30)
    take(monkeypatch, way)
    X = rows()
    explainer = FastPDExplainer(output="shap", verbose=1).fit(regressor(X), X)
    capsys.readouterr()
    values = explainer.transform(X)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith("[FastPDExplainer] explaining 80 rows against 80 will take about")
    told = [f"{n} of 80 rows" for n in (30, 60, 80)] if way == "pairs" else ["100 % of the work"]
    assert others == [f"[FastPDExplainer] {line}" for line in told]
    assert_array_equal(explainer.set_params(verbose=0).transform(X), values)


def test_progress_is_told_every_few_seconds(monkeypatch, capsys):
    now = iter(range(10))
    monkeypatch.setattr(_cost.time, "perf_counter", lambda: 2.0 * next(now))
    report = _cost.reporter("me")
    for done in (0.1, 0.2, 0.3, 0.4, 1.0):
        report(done)
    assert capsys.readouterr().out == "[me] 30 % of the work\n[me] 100 % of the work\n"


def test_costs_grow_with_rows_until_another_way_is_cheaper(deep):
    X = rows(400)
    explainer = FastPDExplainer(output="shap").fit(regressor(X), X)
    engine = explainer._fitted.engine
    singles, pairs = [(0,), (1,)], [(0, 1)]
    ways = [engine._cheapest(n, singles) for n in (1, 10, 10**4, 10**8)]
    assert ways[0][0] == "pairs"
    assert "sets" in [way for way, _ in ways]
    efforts = [effort for _, effort in ways]
    assert efforts == sorted(efforts)
    assert_allclose(efforts[1] / efforts[0], 10, rtol=1e-6)
    assert efforts[3] < 10**8 * efforts[0]
    outlook = engine.outlook(1, "shap", singles)
    assert outlook.block_rows
    assert not outlook.reports
    assert engine.outlook(1, "shap", pairs).seconds > outlook.seconds
    assert engine.outlook(10**4, "shap", singles).block_rows is None
    assert engine.outlook(10, "component", singles) is None


def test_long_estimates_are_from_a_tree_of_their_own(deep, monkeypatch):
    monkeypatch.setattr(_deep_shap, "LONG_WALK", 0.0)
    monkeypatch.setattr(_deep_shap, "MANY_TREES", 1)
    X = rows(200)
    engine = FastPDExplainer(output="shap").fit(regressor(X), X)._fitted.engine
    take(monkeypatch, "sets")
    monkeypatch.setattr(_deep_shap, "set_effort", lambda *args: 1.0)
    seconds = [engine.outlook(n, "shap", [(0,), (1,)]).seconds for n in (20, 200, 400)]
    assert seconds[0] < seconds[1] < 10 * seconds[0]
    assert_allclose(seconds[2], 2 * seconds[1], rtol=1e-9)
    assert set(engine.walked) == {20, 200}


def test_efforts_of_sets_go_through_the_trials():
    rows_tried, background_tried = np.array([8, 64]), np.array([256, 2048])
    tried = np.array([[1e6, 4e6], [3e6, 9e6]])
    for i, n in enumerate(rows_tried):
        for k, other in enumerate(background_tried):
            found = set_effort(rows_tried, background_tried, tried, n, other)
            assert_allclose(found, tried[i, k], rtol=1e-12)
    assert_allclose(set_effort(rows_tried, background_tried, tried, 8, 2048 * 8), 16e6, rtol=1e-12)
    found = set_effort(rows_tried, background_tried, tried, 64 * 16, 2048)
    assert_allclose(found, 9e6 * (9 / 4), rtol=1e-12)  # three quarters of 16 are 8 in logarithms


def test_estimates_for_other_forests():
    X = rows(2000)
    explainer = FastPDExplainer(output="shap").fit(regressor(X[:200]), X[:50])
    assert 0 < explainer.estimate_cost(X[:20]) < 60
    assert 0 < explainer.estimate_cost(X) < 60
    with pytest.raises(ValueError, match="3 features"):
        explainer.estimate_cost(X[:, :3])


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.01, "0.1 seconds"),
        (3.2, "3 seconds"),
        (75, "75 seconds"),
        (150, "2.5 minutes"),
        (1800, "30 minutes"),
        (7200, "2 hours"),
        (10**6, "12 days"),
    ],
)
def test_times_in_words(seconds, words):
    assert _cost.in_words(seconds) == words
