"""Reason codes against components by the definition."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer
from fastpd_sklearn.decomposition import reason_codes
from tests.oracles import INDICES, derivative, interventional_game, subsets

RNG = np.random.default_rng(0)
X = RNG.integers(0, 5, size=(40, 3)) / 2.0
Y = X[:, 0] * X[:, 1] + 3 * X[:, 2] + (X[:, 1] > 1) * X[:, 2]
MODEL = HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=2).fit(X, Y)


def amounts(index="component"):
    """What each set of columns adds to the predictions, by the definition."""
    game = interventional_game(MODEL.predict, X, None, X, [[0], [1], [2]])
    if index == "component":
        return {S: derivative(game, S)[:, 0] for S in subsets(range(3)) if S}
    return {(k,): INDICES[index](game, (k,))[:, 0] for k in range(3)}


@pytest.mark.parametrize("direction", ["any", "up", "down"])
@pytest.mark.parametrize("index", ["component", "shap"])
def test_the_largest_terms_come_first(index, direction):
    known = amounts(index)
    names = {tuple(f"x{k}" for k in S): values for S, values in known.items()}
    explainer = FastPDExplainer(output=index, max_order=None if index == "component" else "auto")
    reasons = reason_codes(explainer.fit(MODEL, X), X, k=3, direction=direction)
    total = sum(np.abs(values) for values in known.values())
    sign = {"any": np.abs, "up": lambda v: v, "down": lambda v: -v}[direction]
    for i in range(len(X)):
        ranked = sorted((v[i] for v in known.values()), key=sign, reverse=True)
        ranked = [v for v in ranked if sign(v) > 1e-9][:3]
        n = len(ranked)
        np.testing.assert_allclose(reasons.values[i, :n], ranked, atol=1e-9)
        np.testing.assert_allclose(reasons.shares[i, :n], np.abs(ranked) / total[i], atol=1e-9)
        for term, value in zip(reasons.terms[i, :n], reasons.values[i, :n], strict=True):
            assert names[term][i] == pytest.approx(value, abs=1e-9)
        assert np.all(np.abs(reasons.values[i, n:]) < 1e-9)
    if direction == "any":
        full = reason_codes(explainer, X, k=7)
        np.testing.assert_allclose(full.shares.sum(axis=1), 1.0, atol=1e-9)
        np.testing.assert_allclose(
            full.values.sum(axis=1) + explainer.intercept_[0], MODEL.predict(X), atol=1e-9
        )


def test_pairs_of_shap_interactions_count_twice():
    explainer = FastPDExplainer(output="shap_interaction").fit(MODEL, X)
    reasons = reason_codes(explainer, X, k=6)
    added = reasons.values.sum(axis=1) + explainer.intercept_[0]
    np.testing.assert_allclose(added, MODEL.predict(X), atol=1e-9)
    explanation = explainer.explain(X)
    for i, term in enumerate(reasons.terms[:, 0]):
        factor = 2 if len(term) == 2 else 1
        assert reasons.values[i, 0] == pytest.approx(factor * explanation[term][i])


def test_an_explanation_and_an_explainer_say_the_same():
    explainer = FastPDExplainer(output="component", max_order=2).fit(MODEL, X)
    streamed, held = reason_codes(explainer, X, 2), reason_codes(explainer.explain(X), k=2)
    assert np.array_equal(streamed.terms, held.terms)
    np.testing.assert_allclose(streamed.values, held.values, atol=1e-12)
    np.testing.assert_allclose(streamed.shares, held.shares, atol=1e-12)


def test_what_is_left_out_has_its_share():
    explainer = FastPDExplainer(output="component", max_order=1).fit(MODEL, X)
    known = amounts()
    rest = MODEL.predict(X) - MODEL.predict(X).mean() - sum(known[(k,)] for k in range(3))
    assert np.abs(rest).max() > 0.1
    total = sum(np.abs(known[(k,)]) for k in range(3)) + np.abs(rest)
    reasons = reason_codes(explainer, X, k=3)
    missing = 1 - reasons.shares.sum(axis=1)
    np.testing.assert_allclose(missing, np.abs(rest) / total, atol=1e-9)


def test_blocks_of_terms_are_merged(monkeypatch):
    explainer = FastPDExplainer(output="component", max_order=None).fit(MODEL, X)
    expected = reason_codes(explainer, X)
    whole = FastPDExplainer.explain_blocks
    monkeypatch.setattr(
        FastPDExplainer, "explain_blocks", lambda self, X: whole(self, X, block_bytes=1)
    )
    assert len(list(explainer.explain_blocks(X))) == 7
    found = reason_codes(explainer, X)
    assert np.array_equal(found.terms, expected.terms)
    assert np.array_equal(found.values, expected.values)


def test_rows_without_reasons_and_frames():
    pd = pytest.importorskip("pandas")
    model = HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=2)
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=[f"p{i}" for i in range(40)])
    model.fit(frame, X[:, 0])  # b and c are of no use
    explainer = FastPDExplainer(output="shap").fit(model, frame)
    reasons = reason_codes(explainer, frame, k=2)
    assert all(term is None for term in reasons.terms[:, 1])
    table = reasons.to_frame()
    assert set(table["term"]) == {"a"}
    assert list(table["row"]) == list(frame.index)
    assert list(table.columns) == ["row", "rank", "term", "value", "share"]
    np.testing.assert_allclose(table["share"], 1.0, rtol=1e-9)
    constant = FastPDExplainer(output="shap").fit(model, frame[:1])
    assert reason_codes(constant, frame[:1]).to_frame().empty


def test_several_outputs():
    labels = np.array(["low", "mid", "top"])[np.digitize(Y, [4, 8])]
    model = RandomForestClassifier(3, random_state=0).fit(X, labels)
    explainer = VanillaPDExplainer(output="shap").fit(model, X)
    top = VanillaPDExplainer(output="shap", target="top").fit(model, X)
    found, expected = reason_codes(explainer, X[:5], target="top"), reason_codes(top, X[:5])
    assert np.array_equal(found.terms, expected.terms)
    np.testing.assert_allclose(found.values, expected.values)
    assert np.array_equal(reason_codes(explainer, X[:5], target=2).values, found.values)
    with pytest.raises(ValueError, match="3 outputs"):
        reason_codes(explainer, X)
    with pytest.raises(ValueError, match="target='best'"):
        reason_codes(explainer, X, target="best")


def test_bad_arguments():
    explainer = FastPDExplainer(output="shap").fit(MODEL, X)
    with pytest.raises(ValueError, match="output='pd'"):
        reason_codes(FastPDExplainer().fit(MODEL, X), X)
    with pytest.raises(ValueError, match="direction='both'"):
        reason_codes(explainer, X, direction="both")
    with pytest.raises(ValueError, match="k=0"):
        reason_codes(explainer, X, k=0)
    with pytest.raises(TypeError, match="X=None"):
        reason_codes(explainer)
    with pytest.raises(TypeError, match="leave X out"):
        reason_codes(explainer.explain(X), X)
    with pytest.raises(TypeError, match="HistGradientBoostingRegressor"):
        reason_codes(MODEL, X)
    with pytest.raises(NotFittedError):
        reason_codes(FastPDExplainer(output="shap"), X)
