"""Importances and single rows are drawn as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import ImportanceDisplay, WaterfallDisplay
from tests import oracles

PLAYERS = [[0], [1], [2], [3]]


@pytest.fixture(scope="module")
def game(model, X):
    """``v_S`` of all sets of features at all rows."""
    return oracles.interventional_game(model.predict, X, None, X, PLAYERS)


@pytest.fixture(scope="module")
def classes_game(classifier, X):
    return oracles.interventional_game(classifier.predict_proba, X, None, X, PLAYERS)


def widths(bars):
    return np.array([bar.get_width() for bar in bars])


def test_features_by_mean_absolute_shap_value(model, X, game):
    display = ImportanceDisplay.from_estimator(model, X)
    size = [np.abs(oracles.shapley_interaction(game, (k,))).mean() for k in range(4)]
    order = np.argsort(size)[::-1]
    assert display.names_ == [f"x{k}" for k in order]
    assert_allclose(widths(display.bars_[0]), np.array(size)[order], rtol=1e-10)
    assert display.ax_.get_xlabel() == "mean |SHAP value|, in units of the prediction"
    # From the top: the axis runs downwards.
    assert np.diff(display.ax_.get_ylim())[0] < 0


def test_terms_and_what_larger_sets_add(model, X, game):
    display = ImportanceDisplay.from_estimator(model, X, by="term", max_order=2, max_bars=99)
    terms = [T for T in oracles.subsets(range(4)) if 1 <= len(T) <= 2]
    size = {
        " × ".join(f"x{k}" for k in T): np.abs(oracles.derivative(game, T)).mean() for T in terms
    }
    shown = dict(zip(display.names_, widths(display.bars_[0]), strict=True))
    rest = sum(oracles.derivative(game, T) for T in oracles.subsets(range(4)) if len(T) > 2)
    assert_allclose(shown.pop("larger sets, together"), np.abs(rest).mean(), rtol=1e-9)
    assert_allclose([shown[name] for name in size], list(size.values()), rtol=1e-9, atol=1e-12)
    assert list(shown.values()) == sorted(shown.values(), reverse=True)


def test_orders(model, X, game):
    display = ImportanceDisplay.from_estimator(model, X, by="order", max_order=None)
    sizes = [
        sum(
            np.abs(oracles.derivative(game, T)).mean()
            for T in oracles.subsets(range(4))
            if len(T) == n
        )
        for n in range(1, 5)
    ]
    n = np.flatnonzero(np.array(sizes) > 1e-12)[-1] + 1
    words = ["main effects", "2-way interactions", "3-way interactions", "4-way interactions"]
    assert display.names_ == words[:n]
    assert_allclose(widths(display.bars_[0]), sizes[:n], rtol=1e-9)


def test_classes_are_parts_of_bars(classifier, X, classes_game):
    display = ImportanceDisplay.from_estimator(classifier, X)
    size = np.array(
        [np.abs(oracles.shapley_interaction(classes_game, (k,))).mean(axis=0) for k in range(4)]
    )
    order = np.argsort(-size.sum(axis=1))
    for k, bars in enumerate(display.bars_):
        assert_allclose(widths(bars), size[order, k], rtol=1e-9)
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["high", "low", "mid"]
    explainer = FastPDExplainer(output="shap").fit(classifier, X)
    one = ImportanceDisplay.from_explainer(explainer, X, target="low")
    assert_allclose(one.importances[:, 0], size[:, 1], rtol=1e-9)


def test_weights_average_the_rows(model, X):
    weights = np.arange(60) % 3 * 1.0
    display = ImportanceDisplay.from_estimator(model, X, sample_weight=weights)
    game = oracles.interventional_game(model.predict, X, weights, X, PLAYERS)
    size = [
        np.average(np.abs(oracles.shapley_interaction(game, (k,)))[:, 0], weights=weights)
        for k in range(4)
    ]
    assert_allclose(display.importances[:, 0], size, rtol=1e-9)


def test_blocks_of_rows_are_one(model, X, game, monkeypatch):
    monkeypatch.setattr("fastpd_sklearn.display._importance.BLOCK_BYTES", 8 * 4 * 7)
    display = ImportanceDisplay.from_estimator(model, X)
    size = [np.abs(oracles.shapley_interaction(game, (k,))).mean() for k in range(4)]
    assert_allclose(display.importances[:, 0], size, rtol=1e-10)


@pytest.mark.parametrize("output", ["shap", "component"])
def test_from_an_explanation(model, X, output):
    explainer = FastPDExplainer(output=output).fit(model, X)
    one = ImportanceDisplay.from_explanation(explainer.explain(X))
    other = ImportanceDisplay.from_explainer(explainer, X)
    assert one.by == other.by == {"shap": "feature", "component": "term"}[output]
    assert_allclose(one.importances, other.importances)
    assert one.ax_.get_xlabel().endswith("in units of the response")


def test_small_bars_are_added_up(many):
    X, model = many
    display = ImportanceDisplay.from_estimator(model, X)
    total = display.importances.sum()
    display.plot(max_bars=6)
    assert len(display.names_) == 6
    assert display.names_[-1] == "25 others"
    assert_allclose(widths(display.bars_[0]).sum(), total)


def test_thirty_features(many, assert_legible):
    X, model = many
    display = ImportanceDisplay.from_estimator(model, X, max_bars=30)
    assert len(set(display.names_)) == 30
    assert_legible(display.figure_)
    display = ImportanceDisplay.from_estimator(model, X, by="term")
    assert len(set(display.names_)) == len(display.names_)
    assert_legible(display.figure_)


@pytest.mark.parametrize(
    ("params", "by", "message"),
    [
        ({"output": "pd"}, None, "output='pd' has no importances"),
        ({"output": "banzhaf"}, None, "output='banzhaf' has no importances"),
        ({"output": "shap"}, "term", "by='term' needs output='component'"),
        ({"output": "component"}, "feature", "by='feature' needs output='shap'"),
        ({"output": "shap"}, "nope", "by='nope' is none of"),
    ],
    ids=str,
)
def test_explainers_that_do_not_go_with_it(model, X, params, by, message):
    explainer = FastPDExplainer(**params).fit(model, X)
    with pytest.raises(ValueError, match=message):
        ImportanceDisplay.from_explainer(explainer, X, by=by)


def test_what_is_no_explanation(model, X):
    for display in (ImportanceDisplay, WaterfallDisplay):
        with pytest.raises(TypeError, match=r"explain\(\).*ndarray"):
            display.from_explanation(X)
        with pytest.raises(TypeError, match="by from_estimator"):
            display.from_explainer(model, X)


# --- single rows -----------------------------------------------------------------------------


def test_a_row_goes_from_the_mean_to_its_prediction(model, X, game):
    display = WaterfallDisplay.from_estimator(model, X, row=5, max_order=None, max_terms=99)
    lines = [line.get_xdata()[0] for line in display.lines_]
    assert_allclose(lines[0], model.predict(X).mean())
    assert_allclose(lines[-1], model.predict(X)[5])
    assert_allclose(np.diff(lines), widths(display.bars_))
    components = {
        " × ".join(f"x{k} = {X[5, k]:.4g}" for k in T): oracles.derivative(game, T)[5, 0]
        for T in oracles.subsets(range(4))
        if T
    }
    for label, width in zip(display.labels_, widths(display.bars_), strict=True):
        label = label.replace("\n", " ").replace("−", "-")
        assert_allclose(width, components[label], atol=1e-12)
    size = np.abs(widths(display.bars_))
    assert np.all(np.diff(size) <= 0)
    words = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert words[0] == f"mean: {model.predict(X).mean():.4g}"
    assert words[-1].replace("−", "-") == f"this row: {model.predict(X)[5]:.4g}"


def test_colours_and_numbers_tell_the_direction(model, X):
    display = WaterfallDisplay.from_estimator(model, X, row=5)
    for bar, text in zip(display.bars_, display.texts_, strict=True):
        red, _, blue, _ = bar.get_facecolor()
        assert (red > blue) == (bar.get_width() > 0)
        assert text.get_text().strip()[0] == ("+" if bar.get_width() > 0 else "−")


@pytest.mark.parametrize("output", ["component", "shap", "shap_interaction"])
def test_sums_of_small_and_of_missing_terms(model, X, output):
    explainer = FastPDExplainer(output=output).fit(model, X)
    display = WaterfallDisplay.from_explainer(explainer, X, row=-1, max_terms=2)
    assert_allclose(display.lines_[-1].get_xdata(), model.predict(X)[-1])
    assert "smaller terms" in display.labels_[2]
    same = WaterfallDisplay.from_explanation(explainer.explain(X), row=59, max_terms=2)
    assert_allclose(widths(display.bars_), widths(same.bars_))


def test_a_single_small_term_is_not_called_a_sum(model, X):
    explainer = FastPDExplainer(output="shap").fit(model, X)
    display = WaterfallDisplay.from_explainer(explainer, X, max_terms=3)
    assert len(display.labels_) == 4
    assert not any("smaller" in label for label in display.labels_)


def test_classes(classifier, X):
    explainer = FastPDExplainer(output="shap").fit(classifier, X)
    with pytest.raises(ValueError, match=r"WaterfallDisplay shows one output.*'mid'"):
        WaterfallDisplay.from_explainer(explainer, X)
    display = WaterfallDisplay.from_explainer(explainer, X, target="mid")
    assert_allclose(display.lines_[-1].get_xdata(), classifier.predict_proba(X)[0, 2])
    assert display.ax_.get_xlabel() == "probability of mid"
    explanation = explainer.explain(X)
    same = WaterfallDisplay.from_explanation(explanation, target="mid")
    assert_allclose(widths(display.bars_), widths(same.bars_))
    for target in (None, "nope"):
        with pytest.raises(ValueError, match="name one of 'high', 'low', 'mid'"):
            WaterfallDisplay.from_explanation(explanation, target=target)


def test_values_of_groups_and_labels_and_missing_values():
    pd = pytest.importorskip("pandas")
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["d"] = pd.Categorical(rng.choice(["red", "blue"], 80))
    frame.loc[::2, "a"] = np.nan
    y = frame.a.fillna(3) + frame.b + frame.c + (frame.d == "red")
    model = HistGradientBoostingRegressor(max_iter=20, categorical_features="from_dtype")
    model.fit(frame, y)
    display = WaterfallDisplay.from_estimator(
        model, frame, row=2, max_order=1, groups={"pair": ["b", "c"]}
    )
    expected = {"a = missing", "pair", f"d = {frame.d[2]}", "larger sets, together"}
    assert set(display.labels_) == expected


@pytest.mark.parametrize("row", [60, -61, 0.5, True, "a"])
def test_rows_that_are_not_there(model, X, row):
    with pytest.raises(ValueError, match=r"row=.* one of 60 rows"):
        WaterfallDisplay.from_estimator(model, X, row=row)


def test_a_row_itself_is_named_by_its_type(model, X):
    with pytest.raises(ValueError, match=r"^row=a ndarray should be the position"):
        WaterfallDisplay.from_estimator(model, X, row=X[0])


@pytest.mark.parametrize("output", ["pd", "banzhaf"])
def test_outputs_that_do_not_add_up(model, X, output):
    explainer = FastPDExplainer(output=output).fit(model, X)
    with pytest.raises(ValueError, match=f"output='{output}' does not add up"):
        WaterfallDisplay.from_explainer(explainer, X)


def test_a_constant_model():
    from sklearn.tree import DecisionTreeRegressor

    rows = np.zeros((5, 2))
    model = DecisionTreeRegressor().fit(rows, np.full(5, 7.0))
    display = WaterfallDisplay.from_estimator(model, rows)
    assert display.labels_ == []
    assert_allclose(display.lines_[0].get_xdata(), 7.0)
    bars = ImportanceDisplay.from_estimator(model, rows)
    assert_allclose(widths(bars.bars_[0]), 0.0)


def test_long_names_in_a_waterfall(many, assert_legible):
    X, model = many
    display = WaterfallDisplay.from_estimator(model, X, row=3, max_terms=30)
    assert len(set(display.labels_)) == len(display.labels_)
    assert_legible(display.figure_)
