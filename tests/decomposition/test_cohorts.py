"""Cohorts, and single rows, as backgrounds, against the definition."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from fastpd_sklearn import FastPDExplainer, ICEExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import CohortExplainer, explain_difference
from tests.oracles import INDICES, interventional_game
from tests.versions import older

RNG = np.random.default_rng(0)
X = RNG.integers(0, 4, size=(50, 3)) / 2.0
Y = X[:, 0] * X[:, 1] + X[:, 2]
MODEL = RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, Y)
FOREST = RandomForestRegressor(2, max_depth=2, random_state=0)
WEIGHTS = RNG.uniform(size=50)


def is_low(rows):
    return np.where(np.asarray(rows)[:, 2] < 1, "low", "high")


class OneCohort:
    """A function that is written the same in every process, for the names of tests."""

    def __call__(self, rows):
        return np.zeros(rows.shape[0])

    def __repr__(self):
        return "OneCohort()"


@pytest.mark.parametrize("by", [2, "x2", is_low], ids=["number", "name", "function"])
@pytest.mark.parametrize("explainer", [FastPDExplainer, VanillaPDExplainer])
@pytest.mark.parametrize("output", ["component", "shap"])
def test_each_row_against_its_own_cohort(explainer, output, by):
    cohorts = CohortExplainer(explainer(output=output), by)
    cohorts.fit(MODEL, X, sample_weight=WEIGHTS)
    labels = is_low(X) if by is is_low else X[:, 2]
    assert np.array_equal(cohorts.cohorts_, np.unique(labels))
    values = cohorts.transform(X)
    for label, explanation in cohorts.explain(X).items():
        own = labels == label
        game = interventional_game(MODEL.predict, X[own], WEIGHTS[own], X[own], [[0], [1], [2]])
        for t, term in enumerate(explanation.terms):
            expected = INDICES[output](game, tuple(int(name[1]) for name in term))[:, 0]
            np.testing.assert_allclose(explanation[term], expected, atol=1e-10)
            np.testing.assert_allclose(values[own, t], expected, atol=1e-10)
        assert explanation.base_values == pytest.approx(game[()][0, 0])
    assert cohorts.intercepts_.shape == (len(cohorts.cohorts_), 1)
    assert list(cohorts.get_feature_names_out()[:3]) == ["x0", "x1", "x2"]


def test_a_single_row_is_a_background():
    """Components of one row against another are differences of predictions of mixed rows."""
    explainer = FastPDExplainer(output="component", max_order=None).fit(MODEL, X[[3]])
    explanation = explainer.explain(X[:5])
    game = interventional_game(MODEL.predict, X[[3]], None, X[:5], [[0], [1], [2]])
    for term in explanation.terms:
        expected = INDICES["component"](game, tuple(int(name[1]) for name in term))[:, 0]
        np.testing.assert_allclose(explanation[term], expected, atol=1e-12)
    np.testing.assert_allclose(
        explanation.values.sum(axis=1), MODEL.predict(X[:5]) - MODEL.predict(X[[3]]), atol=1e-12
    )


def test_what_two_cohorts_say_of_the_same_rows():
    cohorts = CohortExplainer(FastPDExplainer(output="shap"), is_low).fit(MODEL, X)
    change = explain_difference(cohorts.explainers_["high"], cohorts.explainers_["low"], X)
    np.testing.assert_allclose(change.values.sum(axis=1), -change.base_values, atol=1e-12)
    means = (
        MODEL.predict(X[is_low(X) == "low"]).mean(),
        MODEL.predict(X[is_low(X) == "high"]).mean(),
    )
    assert change.base_values == pytest.approx(means[0] - means[1])


def test_the_estimator_is_fitted_once_on_all_rows():
    model = RandomForestRegressor(3, max_depth=4, random_state=0)
    cohorts = CohortExplainer(FastPDExplainer(model, output="shap"), by=2)
    again = make_pipeline(cohorts, Ridge()).fit(X, Y)[0]
    expected = CohortExplainer(FastPDExplainer(output="shap"), by=2).fit(MODEL, X)
    assert np.array_equal(again.transform(X), expected.transform(X))
    assert not hasattr(model, "estimators_")
    restored = pickle.loads(pickle.dumps(again))
    assert np.array_equal(restored.transform(X), expected.transform(X))


def test_frames_and_classes():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(c=np.where(X[:, 2] > 0.5, 1, 0))
    model = RandomForestClassifier(3, random_state=0).fit(frame, np.digitize(Y, [1, 2]))
    cohorts = CohortExplainer(FastPDExplainer(output="shap"), "c").set_output(transform="pandas")
    out = cohorts.fit(model, frame).transform(frame)
    assert list(out.columns[:3]) == ["a__0", "a__1", "a__2"]
    constant = out[["c__0", "c__1", "c__2"]]  # in each cohort
    np.testing.assert_allclose(constant, 0.0, atol=1e-12)
    assert cohorts.intercepts_.shape == (2, 3)


def expected_failures(_):
    if older("scikit-learn", "1.9"):  # whose forests weight the rows that they have drawn
        return {}
    names = [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")]
    return dict.fromkeys(names, "a forest draws its samples by weight")


@parametrize_with_checks(
    [CohortExplainer(FastPDExplainer(FOREST, n_jobs=1), OneCohort())],
    expected_failed_checks=expected_failures,
)
def test_common_checks(estimator, check, monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


def test_bad_arguments():
    explainer = FastPDExplainer(output="shap")
    fitted = CohortExplainer(explainer, by=2).fit(MODEL, X)
    odd = X[:3].copy()
    odd[1, 2] = 7.0
    with pytest.raises(ValueError, match=r"no background has been fitted for \[7.0\]"):
        fitted.transform(odd)
    missing = X.copy()
    missing[0, 2] = np.nan
    with pytest.raises(ValueError, match="1 rows have no label"):
        clone(fitted).fit(MODEL, missing)
    with pytest.raises(TypeError, match="labels of several types have no order"):
        CohortExplainer(explainer, by=lambda X: np.array([1, *"a" * 9], object)).fit(MODEL, X[:10])
    with pytest.raises(ValueError, match="by: unknown feature 'z'"):
        CohortExplainer(explainer, by="z").fit(MODEL, X)
    with pytest.raises(TypeError, match=r"by: 0\.5 is neither"):
        CohortExplainer(explainer, by=0.5).fit(MODEL, X)
    with pytest.raises(ValueError, match="shape"):
        CohortExplainer(explainer, by=lambda rows: np.zeros(3)).fit(MODEL, X)
    with pytest.raises(TypeError, match="over a background"):
        CohortExplainer(ICEExplainer(), by=2).fit(MODEL, X)
    with pytest.raises(ValueError, match="have no weight"):
        CohortExplainer(explainer, by=2).fit(MODEL, X, sample_weight=(X[:, 2] > 0) * 1.0)
    with pytest.raises(ValueError, match="lacks the background"):
        CohortExplainer(explainer, by=2).fit(MODEL)
