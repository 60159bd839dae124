"""Standard errors from the background: the formula written out, and what intervals cover."""

import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.core.background import MaskCounts
from fastpd_sklearn.explainers import _empirical, _fastpd
from fastpd_sklearn.explainers._jackknife import Jackknife, random_groups
from tests import oracles

G = 6
X = np.random.default_rng(0).normal(size=(50, 3))
WEIGHTS = np.random.default_rng(1).random(50) * (np.arange(50) % 5 > 0)


@pytest.fixture(scope="module")
def model():
    return RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])


@pytest.fixture(scope="module")
def classifier():
    y = np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.5, 0.5])
    return GradientBoostingClassifier(n_estimators=3, random_state=0).fit(X, y)


KINDS = {
    "counted masks": FastPDExplainer(output="shap", n_jackknife=G),
    "kept rows": FastPDExplainer(output="component", n_jackknife=G),
    "walked rows": FastPDExplainer(output="component", max_order=2, n_jackknife=G),
    "response": FastPDExplainer(response_method="predict_proba", n_jackknife=G),
    "covers": PathDependentExplainer(output="component", n_jackknife=G),
    "predictions": VanillaPDExplainer(features=[(0, 1)], n_jackknife=G),
}


@pytest.fixture(params=KINDS)
def case(request, monkeypatch, model, classifier):
    """An explainer to clone, and a model."""
    if request.param == "counted masks":
        monkeypatch.setattr(_empirical, "make_background", lambda core, n_rows: MaskCounts())
    if request.param == "walked rows":
        monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    return KINDS[request.param], classifier if request.param == "response" else model


def by_definition(compute, value, weights):
    """The formula of the module, with what is computed from the rows of all groups but one."""
    group = random_groups(X, G)
    total = 0.0
    for g in range(G):
        share = weights[group == g].sum() / weights.sum()
        total += ((1 - share) * (compute(group != g) - value)) ** 2
    return np.sqrt(G / (G - 1) * total)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_every_group_is_left_out_once(case, weights):
    explainer, model = case
    fitted = clone(explainer).fit(model, X, sample_weight=weights)
    w = np.ones(50) if weights is None else weights
    plain = clone(explainer).set_params(n_jackknife=0)
    parts = {}

    def refitted(rows):
        key = rows.tobytes()
        if key not in parts:
            parts[key] = clone(plain).fit(model, X[rows], sample_weight=w[rows])
        return parts[key]

    def error(compute):
        every = refitted(np.ones(50, bool))
        return by_definition(lambda rows: compute(refitted(rows)), compute(every), w)

    rows = X[:4] + 0.1
    near = {"rtol": 1e-9, "atol": 1e-12}
    assert_allclose(fitted.intercept_error_, error(lambda one: one.intercept_), **near)
    values = error(lambda one: one.explain(rows).values)
    assert_allclose(fitted.standard_error(rows), values, **near)
    mean, found = fitted.mean_abs(rows, sample_weight=[1, 2, 3, 4], return_error=True)
    assert_array_equal(mean, fitted.mean_abs(rows, sample_weight=[1, 2, 3, 4]))
    sizes = error(lambda one: one.mean_abs(rows, sample_weight=[1, 2, 3, 4]))
    assert_allclose(found, sizes, **near)
    for features, grid in ((0, [0.0, 1.0]), ((1, 0), [[0.0, 0.5], [0.0, 1.0, 2.0]])):
        found = fitted.partial_dependence(features, grid, confidence=0.8)
        truth = error(lambda one, f=features, g=grid: one.partial_dependence(f, g).average)
        assert_allclose(found.standard_error, truth, **near)
        half = stats.t(G - 1).ppf(0.9) * truth
        assert_allclose(found.upper - found.average, half, **near)
        assert_allclose(found.average - found.lower, half, **near)


def test_values_by_prediction_alone(model):
    """The same with no explainer on the other side."""
    found = FastPDExplainer(n_jackknife=G).fit(model, X, sample_weight=WEIGHTS)

    def average(rows):
        return oracles.pd_function(model.predict, X[rows], WEIGHTS[rows], [0], X[:5])[:, 0]

    truth = by_definition(average, average(np.ones(50, bool)), WEIGHTS)
    assert_allclose(found.standard_error(X[:5])[:, 0], truth, rtol=1e-9)


def test_values_are_the_same_with_and_without(case):
    explainer, model = case
    bare = clone(explainer).set_params(n_jackknife=0).fit(model, X)
    assert_array_equal(clone(explainer).fit(model, X).transform(X[:5]), bare.transform(X[:5]))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
def test_any_order_and_grouping_has_the_same_groups(case, weights):
    explainer, model = case

    def part(start, stop):
        w = None if weights is None else weights[start:stop]
        return clone(explainer).fit(model, X[start:stop], sample_weight=w)

    whole = part(0, 50)
    merged = part(40, 50).merge(part(0, 8).merge(part(8, 40)))
    streamed = part(30, 50)
    for start in (0, 10, 20):
        w = None if weights is None else weights[start : start + 10]
        streamed.partial_fit(X[start : start + 10], sample_weight=w)
    for one in (merged, streamed, pickle.loads(pickle.dumps(merged))):
        assert_allclose(
            one.standard_error(X[:5]), whole.standard_error(X[:5]), rtol=1e-9, atol=1e-13
        )
        assert_allclose(one.intercept_error_, whole.intercept_error_, rtol=1e-9)


def test_detached(model):
    explainer = pickle.loads(pickle.dumps(FastPDExplainer(n_jackknife=G).fit(model, X).detach()))
    assert explainer.standard_error(X[:2]).shape == (2, 3)


def test_groups_do_not_see_how_rows_are_held():
    pd = pytest.importorskip("pandas")
    rows = np.where(X > 1, np.nan, X.round(1))
    groups = random_groups(rows, 9)
    assert_array_equal(random_groups(pd.DataFrame(rows), 9), groups)
    assert_array_equal(random_groups(sparse.csr_array(rows), 9), groups)
    order = np.random.default_rng(0).permutation(50)
    assert_array_equal(np.sort(random_groups(rows[order], 9)), np.sort(groups))
    words = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(["u", "v"] * 25)})
    assert len(np.unique(random_groups(words, 9))) == 9


def test_groups_are_random_whatever_the_rows():
    """Of numbers in a row, of constant rows and of few different ones."""
    n = 40_000
    for rows in (
        np.arange(n)[:, None],
        np.zeros((n, 2)),
        np.arange(n)[:, None] % 7,
        np.column_stack([np.zeros(n), np.arange(n) / 1e9]),
    ):
        groups = random_groups(rows, 20)
        assert stats.chisquare(np.bincount(groups, minlength=20)).pvalue > 1e-4
        table = np.histogram2d(groups, np.arange(n) % 7, [20, 7])[0]
        assert stats.chi2_contingency(table).pvalue > 1e-4


# ------------------------------------------------------------------------------- coverage

TREE = DecisionTreeRegressor(max_leaf_nodes=8, random_state=0)


def draw(n, rng, kind):
    """Numbers that go together, or few different rows."""
    Z = rng.random((n, 3))
    Z[:, 1] = (Z[:, 0] + Z[:, 1]) / 2
    return Z if kind == "numbers" else (4 * Z).astype(int).astype(float)


@pytest.mark.parametrize("kind", ["numbers", "few different rows"])
def test_intervals_cover_what_they_should(kind):
    """95% intervals of a curve, an interaction, SHAP, an importance and the mean response."""
    rng = np.random.default_rng(3)
    Z = draw(3000, rng, kind)
    tree = clone(TREE).fit(Z, 4 * Z[:, 0] * Z[:, 1] + (Z[:, 2] > 0.5))
    at, many = draw(1, rng, kind), draw(100_000, rng, kind)
    kinds = {
        "component": FastPDExplainer(output="component", features=[0, (0, 1)], n_jackknife=12),
        "shap": FastPDExplainer(output="shap", features=[1], n_jackknife=12),
    }
    fits = {name: one.fit(tree, Z)._fitted for name, one in kinds.items()}
    empty = {
        name: replace(f, engine=f.jackknife.empty, jackknife=Jackknife.of(f.jackknife.empty, 12))
        for name, f in fits.items()
    }

    def estimates(background):
        made = {name: one.extended(background, None) for name, one in empty.items()}
        for one in made.values():
            value = one.evaluate(at, one.recipe).ravel()
            yield value, one, lambda f: f.evaluate(at, f.recipe).ravel()
        one = made["component"]
        yield one.intercept, one, lambda f: f.intercept

    truth = [value for value, _, _ in estimates(many)]
    assert all(np.all(np.abs(value) > 1e-3) for value in truth)
    n_draws, covered = 150, 0
    for _ in range(n_draws):
        inside = []
        for (value, one, compute), true in zip(estimates(draw(150, rng, kind)), truth, strict=True):
            half = one.jackknife.quantile(0.95) * one.standard_error(compute)
            inside.append(np.abs(value - true) <= half)
        covered = covered + np.concatenate(inside)
    # The 99.9% range of a binomial number, a few of them at once.
    low, high = stats.binom(n_draws, 0.95).ppf([0.0005, 0.9995])
    assert np.all((covered >= low) & (covered <= high)), covered / n_draws


def test_rows_that_come_again_in_every_part():
    """Alike rows of many small parts are in one group: too wide, and said to be."""
    rows = np.repeat(np.eye(3), 2, axis=0)[:, :2]
    model = DecisionTreeRegressor(random_state=0).fit(rows, rows[:, 0])
    explainer = FastPDExplainer(n_jackknife=G).fit(model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        explainer.standard_error(rows)
    for _ in range(60):
        explainer.partial_fit(rows[[0]])
    with pytest.warns(UserWarning, match="fewer, larger parts"):
        explainer.standard_error(rows)


# ------------------------------------------------------------------------------- refusals


def test_no_groups(model):
    explainer = FastPDExplainer().fit(model, X)
    for ask in (explainer.standard_error, lambda rows: explainer.mean_abs(rows, return_error=True)):
        with pytest.raises(ValueError, match=r"n_jackknife=0: .* fit with n_jackknife=20"):
            ask(X)
    assert "standard_error" not in explainer.partial_dependence(0)
    assert not hasattr(explainer, "intercept_error_")
    with pytest.raises(ValueError, match="different `n_jackknife`: 0 and 6"):
        explainer.merge(FastPDExplainer(n_jackknife=G).fit(model, X))


@pytest.mark.parametrize("n_groups", [1, -2, 2.5, "20", True, None])
def test_a_number_of_groups_that_makes_no_sense(model, n_groups):
    with pytest.raises(ValueError, match=r"n_jackknife=.* should be 0 .* or a number of groups"):
        FastPDExplainer(n_jackknife=n_groups).fit(model, X)


@pytest.mark.parametrize("confidence", [0, 1, 95, "95%", None])
def test_a_confidence_that_makes_no_sense(model, confidence):
    with pytest.raises(ValueError, match=r"confidence=.* between 0 and 1"):
        FastPDExplainer(n_jackknife=G).fit(model, X).partial_dependence(0, confidence=confidence)


def test_a_single_row(model):
    explainer = FastPDExplainer(n_jackknife=G).fit(model, X[:1])
    assert_array_equal(explainer.intercept_error_, [np.nan])
    with pytest.raises(ValueError, match="all in one of the 6 groups"):
        explainer.standard_error(X)
    assert np.isfinite(explainer.partial_fit(X[1:]).intercept_error_).all()


def test_no_background(model):
    with pytest.raises(ValueError, match=r"n_jackknife=6: .* there is none"):
        PathDependentExplainer(n_jackknife=G).fit(model)
