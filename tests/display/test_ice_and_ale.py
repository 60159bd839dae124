"""Displays of ICE and ALE: what is drawn is what was computed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn import ALEExplainer, FastPDExplainer, ICEExplainer
from fastpd_sklearn.display import ALEDisplay, ICEDisplay


@pytest.fixture(scope="module")
def table(X):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.asarray(X)[:, :2], columns=["size", "count"])
    words = np.array(["north", "east", "south", "west"])[(X[:, 2] / 1.5).astype(int)]
    return frame.assign(region=pd.Categorical(words))


class Region:
    def predict(self, X):
        return (
            X["size"].to_numpy() * X["count"].to_numpy() + (X["region"] == "west").to_numpy() * 9.0
        )


def test_effects_are_drawn_with_their_limits(X, model):
    explainer = ALEExplainer(n_bins=6).fit(model, X)
    display = ALEDisplay.from_explainer(explainer, X)
    assert display.axes_.shape == (2, 3)
    for j, curve in enumerate(explainer.effects_):
        line = display.lines_[j, 0]
        assert_array_equal(line.get_xdata(), curve.grid_values[0])
        assert_array_equal(line.get_ydata(), curve.effect[0])
        band = display.bands_[j, 0].get_paths()[0].vertices
        assert_allclose(band[:, 1].min(), curve.lower.min())
        assert_allclose(band[:, 1].max(), curve.upper.max())
        low, high = line.axes.get_ylim()
        assert low < curve.lower.min()
        assert high > curve.upper.max()
        assert display.densities_[j] is not None
    assert display.axes_[0, 0].get_ylabel() == "ALE on prediction"


def test_pairs_are_heat_maps_whose_empty_cells_are_hatched(X, model):
    explainer = ALEExplainer(features=[(0, 1)], n_bins=8).fit(model, X)
    surface = explainer.effects_[0]
    assert surface.is_filled.any()
    display = ALEDisplay.from_explainer(explainer, X)
    mesh = display.heatmaps_[0]
    assert_array_equal(np.asarray(mesh.get_array()).ravel(), surface.effect[0].T.ravel())
    assert mesh.get_clim()[0] == -mesh.get_clim()[1]
    hatched = [c for c in display.axes_[0, 0].collections if c.get_hatch()]
    assert len(hatched[0].get_paths()) == surface.is_filled.sum()
    assert len(display.densities_[0].get_offsets()) == len(X)


def test_categories_are_bars(table):
    display = ALEDisplay.from_estimator(Region(), table, ["region", "size"])
    curve = display.effects[0]
    heights = [bar.get_height() for bar in display.bars_[0, 0]]
    assert_array_equal(heights, curve.effect[0])
    labels = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
    assert labels == curve.grid_values[0].tolist()
    assert display.bars_[1, 0] is None
    assert display.lines_[0, 0] is None


def test_every_output_is_a_line_and_a_heat_map(X, classifier):
    explainer = ALEExplainer(features=[0, (0, 1)], n_bins=5).fit(classifier, X)
    display = ALEDisplay.from_explainer(explainer, X)
    assert display.lines_.shape == (4, 3)
    assert all(line is not None for line in display.lines_[0])
    assert [m is not None for m in display.heatmaps_] == [False, True, True, True]
    assert [ax.get_title() for ax in display.axes_.flat[1:4]] == ["high", "low", "mid"]
    assert [t.get_text() for t in display.figure_.legends[0].get_texts()] == ["high", "low", "mid"]


def test_rows_are_lines_and_their_mean_is_that_of_all(X, model):
    explainer = ICEExplainer(features=[0, 1], grid_resolution=12).fit(model, X)
    display = ICEDisplay.from_explainer(explainer, X, subsample=10, random_state=0)
    for k, result in enumerate(explainer.explain(X)):
        segments = np.array(display.lines_[k].get_segments())
        assert segments.shape == (10, len(result.grid_values[0]), 2)
        assert_array_equal(segments[0, :, 0], result.grid_values[0])
        known = {tuple(row) for row in result.individual[0].round(9)}
        assert {tuple(row) for row in segments[:, :, 1].round(9)} <= known
        assert_allclose(display.average_lines_[k].get_ydata(), result.average[0])
    everyone = ICEDisplay.from_explainer(explainer, X, subsample=None)
    assert len(everyone.lines_[0].get_segments()) == len(X)
    half = ICEDisplay.from_explainer(explainer, X, subsample=0.5)
    assert len(half.lines_[0].get_segments()) == 30


def test_exact_curves_have_all_their_steps(X, model):
    explainer = ICEExplainer(features=[0], grid_resolution="exact", centered=True).fit(model, X)
    display = ICEDisplay.from_explainer(explainer, X, subsample=None)
    (result,) = explainer.explain(X)
    x, y = display.average_lines_[0].get_data()
    assert x[0] == X[:, 0].min()
    assert x[-1] == X[:, 0].max()
    middles = (x[:-1] + x[1:])[::2] / 2
    piece = np.searchsorted(result.breaks, middles)
    assert_allclose(y[::2], result.average[0][piece])
    assert_allclose(y[1::2], result.average[0][piece])
    assert display.axes_[0, 0].get_ylabel() == "change of prediction"


def test_curves_over_categories_and_slopes(table):
    display = ICEDisplay.from_estimator(Region(), table, ["region"], subsample=5)
    labels = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
    assert labels == ["east", "north", "south", "west"]
    assert np.diff(display.average_lines_[0].get_ydata())[-1] == pytest.approx(9.0)
    slopes = ICEDisplay.from_estimator(Region(), table, ["size"], derivative=True)
    assert_allclose(slopes.average_lines_[0].get_ydata(), table["count"].mean())
    assert slopes.axes_[0, 0].get_ylabel() == "slope of prediction"


class Counted:
    """Twice the flag, three times the pair, and the age or 7 where that is missing."""

    def predict(self, X):
        age = X["age"].fillna(7.0).to_numpy(float)
        return 2 * X["flag"].to_numpy(float) + 3 * X["pair"].to_numpy(float) + age


@pytest.fixture(scope="module")
def counted():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.random(40) < 0.3, "pair": rng.choice([1.0, 4.0], 40)})
    frame["age"] = np.where(np.arange(40) % 4 == 0, np.nan, rng.normal(size=40))
    return frame


@pytest.mark.parametrize("centered", [False, True])
def test_two_values_are_categories(counted, centered):
    display = ICEDisplay.from_estimator(Counted(), counted, ["flag", "pair"], centered=centered)
    shown = [[t.get_text() for t in ax.get_xticklabels()] for ax in display.axes_.flat]
    assert shown == [["False", "True"], ["1", "4"]]
    for line, height in zip(display.average_lines_, (2.0, 9.0), strict=True):
        assert_array_equal(line.get_xdata(), [0, 1])
        assert_allclose(np.diff(line.get_ydata()), height)
        assert line.get_marker() == "o"
    heights = display.densities_[0].get_data().values[::2]
    share = counted["flag"].mean()
    assert_allclose(heights[1] / heights[0], share / (1 - share))


def test_missing_numbers_stand_behind_the_others(counted):
    display = ICEDisplay.from_estimator(Counted(), counted, ["age"], subsample=6, sharey=False)
    (ax,) = display.axes_.flat
    segments = display.lines_[0].get_segments()
    assert len(segments) == 12
    known = display.average_lines_[0].get_xdata()
    marker = ax.lines[-1]
    assert marker.get_xdata()[0] > known.max()
    rest = 2 * counted["flag"].mean() + 3 * counted["pair"].mean()
    assert_allclose(marker.get_ydata(), 7 + rest)
    for line, level in zip(segments[:6], segments[6:], strict=True):
        assert level[0, 0] < marker.get_xdata()[0] < level[1, 0]
        assert_allclose(level[:, 1], line[0, 1] - line[0, 0] + 7)
    assert "NaN" in [t.get_text() for t in ax.get_xticklabels()]
    low, high = ax.get_ylim()
    assert low < known.min() + rest
    assert high > max(level[0, 1] for level in segments[6:])
    without = ICEDisplay.from_estimator(Counted(), counted, ["age"], missing=False)
    assert len(without.axes_.flat[0].lines) == 1


def test_axes_and_looks_of_the_users_own(X, model, pyplot):
    figure, axes = pyplot.subplots(1, 2)
    display = ALEDisplay.from_estimator(model, X, [0, 1], ax=axes, line_kw={"c": "red"})
    assert display.figure_ is figure
    assert display.lines_[1, 0].get_color() == "red"
    ax = pyplot.subplots()[1]
    display = ICEDisplay.from_estimator(model, X, [0], ax=ax, average_kw={"lw": 7})
    assert display.average_lines_[0].axes is ax
    assert display.average_lines_[0].get_linewidth() == 7


def test_bad_arguments(X, model):
    other = FastPDExplainer().fit(model, X)
    with pytest.raises(TypeError, match="takes a fitted ALEExplainer, and got a FastPDExplainer"):
        ALEDisplay.from_explainer(other, X)
    with pytest.raises(TypeError, match="takes a fitted ICEExplainer, and got a FastPDExplainer"):
        ICEDisplay.from_explainer(other, X)
    for subsample in (0, 1.5, True, "all"):
        with pytest.raises(ValueError, match="subsample="):
            ICEDisplay.from_estimator(model, X, [0], subsample=subsample)
