"""Bands and error bars: whose numbers they are, and that the figure says what they mean."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import ALEDisplay, ImportanceDisplay, MainEffectDisplay

G = 8
NOTE = "intervals: error of the background, not of the model"


@pytest.fixture(scope="module")
def data():
    """Numbers, some missing, and a category."""
    X = np.random.default_rng(0).normal(size=(60, 3)).round(1)
    X[:, 2] = np.arange(60) % 3
    X[::7, 0] = np.nan
    return X


@pytest.fixture(scope="module")
def model(data):
    y = np.nan_to_num(data[:, 0]) * data[:, 1] + (data[:, 2] == 1)
    return HistGradientBoostingRegressor(
        max_iter=5, min_samples_leaf=3, categorical_features=[2]
    ).fit(data, y)


def halves(explainer, rows, confidence):
    return stats.t(G - 1).ppf((1 + confidence) / 2) * explainer.standard_error(rows)


def test_bands_of_main_effects(data, model):
    explainer = FastPDExplainer(output="component", max_order=1, n_jackknife=G).fit(model, data)
    display = MainEffectDisplay.from_estimator(
        model, data, features=[0, 2], n_jackknife=G, confidence=0.9, band_kw={"alpha": 0.5}
    )
    number, category = display.effects
    rows = np.zeros((len(number.axis.points), 3))
    rows[:, 0] = number.axis.points
    truth = halves(explainer, rows, 0.9)[:, 0]
    assert_allclose(number.margin[0], truth, rtol=1e-9, atol=1e-13)
    assert truth.min() > 0
    band = display.bands_[0, 0]
    assert band.get_alpha() == 0.5
    corners = band.get_paths()[0].vertices[:, 1]
    pieces = slice(0, -1)  # missing numbers have an error bar
    assert_allclose(corners.max(), (number.levels[0] + truth)[pieces].max())
    assert_allclose(corners.min(), (number.levels[0] - truth)[pieces].min())
    assert display.bands_[1, 0] is None
    lines = display.bars_[1, 0].errorbar.lines[2][0].get_segments()
    found = [(line[1, 1] - line[0, 1]) / 2 for line in lines]
    assert_allclose(found, category.margin[0])
    assert NOTE in display.figure_.get_supxlabel()
    low, high = display.axes_[0, 0].get_ylim()
    assert low < corners.min()
    assert high > corners.max()


def test_axes_of_ones_own_say_it_too(data, model):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2)
    explainer = FastPDExplainer(output="component", n_jackknife=G).fit(model, data)
    MainEffectDisplay.from_explainer(explainer, data, [0], ax=axes[0])
    ImportanceDisplay.from_explainer(explainer, data, ax=axes[1], confidence=0.5)
    for ax, level in zip(axes, ("95%", "50%"), strict=True):
        assert f"{level} {NOTE}".replace(": ", ":\n") == ax.get_title(loc="left")
    assert figure.get_supxlabel() == ""


def test_no_groups_no_bands(data, model):
    display = MainEffectDisplay.from_estimator(model, data)
    assert set(display.bands_.flat) == {None}
    assert display.figure_.get_supxlabel() == ""
    assert ImportanceDisplay.from_estimator(model, data).errors_ is None


def test_error_bars_of_importances(data, model):
    explainer = FastPDExplainer(output="shap", n_jackknife=G).fit(model, data)
    mean, error = explainer.mean_abs(data, return_error=True)
    display = ImportanceDisplay.from_estimator(model, data, n_jackknife=G, confidence=0.8)
    order = np.argsort(-mean)
    half = stats.t(G - 1).ppf(0.9) * error[order]
    ends = [line[:, 0] for line in display.errors_.lines[2][0].get_segments()]
    assert_allclose(ends, np.column_stack([mean[order] - half, mean[order] + half]))
    assert NOTE in display.figure_.get_supxlabel()


def test_error_bars_of_sums_are_those_of_sums(data, model):
    """Not sums of errors, since terms vary together."""
    explainer = FastPDExplainer(output="component", n_jackknife=G).fit(model, data)
    _, deviations = explainer._fitted.mean_abs_deviations(data, np.ones(60), 10**6)
    by_order = ImportanceDisplay.from_explainer(explainer, data, by="order")
    singles = np.array([len(term) == 1 for term in explainer.terms_])
    margin = stats.t(G - 1).ppf(0.975)
    for n, of_order in enumerate((singles, ~singles)):
        truth = np.sqrt((deviations[:, of_order, 0].sum(axis=1) ** 2).sum())
        line = by_order.errors_.lines[2][0].get_segments()[n]
        assert_allclose(line[1, 0] - line[0, 0], 2 * margin * truth)
    few = ImportanceDisplay.from_explainer(explainer, data, max_bars=2)
    mean = explainer.mean_abs(data)
    others = np.argsort(-mean)[1:]
    truth = np.sqrt((deviations[:, others, 0].sum(axis=1) ** 2).sum())
    line = few.errors_.lines[2][0].get_segments()[1]
    assert_allclose(line[1, 0] - line[0, 0], 2 * margin * truth)


def test_several_outputs(data):
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3)
    model.fit(data, np.digitize(data[:, 1], [-0.5, 0.5]))
    explainer = FastPDExplainer(output="shap", n_jackknife=G).fit(model, data)
    display = ImportanceDisplay.from_explainer(explainer, data)
    assert len(display.bars_) == 3
    _, deviations = explainer._fitted.mean_abs_deviations(data, np.ones(60), 10**6)
    truth = np.sqrt((deviations.sum(axis=2) ** 2).sum(axis=0))
    found = [np.ptp(line[:, 0]) / 2 for line in display.errors_.lines[2][0].get_segments()]
    assert_allclose(sorted(found), sorted(stats.t(G - 1).ppf(0.975) * truth))
    assert MainEffectDisplay.from_explainer(explainer, data, [1]).bands_.shape == (1, 3)


@pytest.mark.parametrize("confidence", [0, 1.0, "0.95"])
def test_a_confidence_that_makes_no_sense(data, model, confidence):
    for display in (MainEffectDisplay, ImportanceDisplay):
        with pytest.raises(ValueError, match="should be a number between 0 and 1"):
            display.from_estimator(model, data, n_jackknife=G, confidence=confidence)


def test_note_lies_within_a_figure_of_one_panel(data, model):
    figure = MainEffectDisplay.from_estimator(model, data, features=[0], n_jackknife=G).figure_
    figure.canvas.draw()
    (text,) = figure.texts
    note = text.get_window_extent()
    assert note.x0 >= 0
    assert note.y0 >= 0
    assert note.x1 <= figure.bbox.x1
    assert not note.overlaps(figure.axes[0].xaxis.label.get_window_extent())


@pytest.mark.parametrize("features", [[0], [2], [(0, 1), 0]])
def test_accumulated_effects_say_what_their_limits_are(data, model, features):
    display = ALEDisplay.from_estimator(model, data, features, confidence=0.9)
    assert display.figure_.get_supxlabel().replace("\n", " ") == f"90% {NOTE}"


@pytest.mark.parametrize(
    ("features", "settings"), [([0, 2], {"confidence": None}), ([(0, 1)], {"confidence": 0.9})]
)
def test_accumulated_effects_without_limits_have_no_note(data, model, features, settings):
    display = ALEDisplay.from_estimator(model, data, features, **settings)
    assert display.confidence is None
    assert display.figure_.get_supxlabel() == ""
