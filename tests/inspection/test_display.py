"""The display is scikit-learn's, of exact numbers, and legible."""

import builtins
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.inspection
from numpy.testing import assert_allclose
from scipy.stats.mstats import mquantiles
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder
from xgboost import XGBRegressor

from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.inspection import PartialDependenceDisplay, partial_dependence

from .oracle import by_definition, close

pytestmark = pytest.mark.usefixtures("pyplot")

draw = PartialDependenceDisplay.from_estimator


@pytest.fixture(scope="module")
def model(X, y):
    return RandomForestRegressor(3, max_depth=4, random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def frame(X):
    return pd.DataFrame(
        {
            "number": X[:, 0],
            "label": pd.Categorical(np.array(["a", "b", None])[np.arange(len(X)) % 3]),
            "other": pd.Categorical(np.array(["p", "q"])[np.arange(len(X)) % 2]),
            "count": np.arange(len(X)) % 40,
            "same": 1.0,
        }
    )


@pytest.fixture(scope="module")
def labelled(frame, y):
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype")
    return model.fit(frame, y + 5 * (frame["label"] == "a"))


def test_it_is_scikit_learns_display(model, X):
    display = draw(model, X, [0, (0, 1)], grid_resolution=5)
    assert isinstance(display, sklearn.inspection.PartialDependenceDisplay)
    assert type(display) is PartialDependenceDisplay
    theirs = sklearn.inspection.PartialDependenceDisplay.from_estimator(
        model, X, [0, (0, 1)], grid_resolution=5, method="brute"
    )
    assert vars(display).keys() == vars(theirs).keys()
    assert display.features == theirs.features
    assert display.axes_.shape == display.lines_.shape == display.contours_.shape == (1, 2)
    assert_allclose(display.lines_[0, 0].get_xydata(), theirs.lines_[0, 0].get_xydata())
    assert_allclose(display.contours_[0, 1].levels, theirs.contours_[0, 1].levels)
    for key, wanted in theirs.deciles.items():
        assert_allclose(display.deciles[key], wanted)
    assert display.bounding_ax_ is not None
    assert display.figure_ is display.axes_[0, 0].figure


def test_drawn_again_in_other_axes(model, X, y, pyplot):
    display = draw(model, X, [0, 1], grid_resolution=5)
    other = RandomForestRegressor(2, max_depth=2, random_state=1).fit(X, y)
    second = draw(other, X, [0, 1], grid_resolution=5, ax=display.axes_, line_kw={"color": "k"})
    assert second.axes_ is display.axes_
    assert [len(axis.lines) for axis in display.axes_.ravel()] == [2, 2]
    assert second.lines_[0, 1].get_color() == "k"
    _, axis = pyplot.subplots()
    assert display.plot(ax=axis, n_cols=1) is display
    assert display.axes_.shape == (2, 1)
    assert display.bounding_ax_ is axis


def test_results_of_scikit_learn_can_be_drawn(model, X):
    result = sklearn.inspection.partial_dependence(model, X, [0], grid_resolution=5)
    display = PartialDependenceDisplay(
        [result], features=[(0,)], feature_names=["a"], target_idx=0, deciles={0: [0.5]}
    )
    assert_allclose(display.plot().lines_[0, 0].get_ydata(), result.average[0])


@pytest.mark.parametrize("kind", ["individual", "both"])
@pytest.mark.parametrize("centered", [False, True])
def test_single_rows(kind, centered, model, X):
    display = draw(model, X, [0, 1], kind=kind, subsample=7, random_state=0, grid_resolution=5,
                   centered=centered)  # fmt: skip
    assert display.lines_.shape == (1, 2, 7 + (kind == "both"))
    assert display.pd_results[0].individual.shape == (1, len(X), 5)
    for line in display.lines_[0, 0]:
        assert not centered or line.get_ydata()[0] == 0
    if kind == "both":
        average = display.lines_[0, 0, -1]
        assert average.get_linewidth() > display.lines_[0, 0, 0].get_linewidth()
        assert average.get_color() != display.lines_[0, 0, 0].get_color()
        wanted = display.pd_results[0].average[0]
        assert_allclose(average.get_ydata(), wanted - wanted[0] if centered else wanted)
    assert draw(model, X, [0], kind=kind, subsample=0.1, grid_resolution=5).lines_.shape[2] in (
        12,
        13,
    )


def test_an_average_alone_is_drawn_alike_whatever_is_beside_it(model, X):
    display = draw(model, X, [0, 1], kind=["both", "average"], subsample=3, grid_resolution=5)
    rows, alone = display.axes_[0]
    assert rows.get_legend() is not None
    assert alone.get_legend() is None
    assert alone.lines[0].get_linestyle() == "-"


def test_the_users_style_is_the_last_word(model, X):
    display = draw(model, X, [0], kind="both", subsample=3, grid_resolution="exact",
                   line_kw={"drawstyle": "default"}, pd_line_kw={"color": "red", "lw": 5},
                   ice_lines_kw={"color": "green"})  # fmt: skip
    row, average = display.lines_[0, 0, 0], display.lines_[0, 0, -1]
    assert row.get_color() == "green"
    assert (average.get_color(), average.get_linewidth()) == ("red", 5)
    assert {row.get_drawstyle(), average.get_drawstyle()} == {"default"}


@pytest.mark.parametrize(
    ("estimator", "style"),
    [
        (RandomForestRegressor(3, max_depth=4, random_state=0), "steps-pre"),
        (XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1), "steps-post"),
    ],
)
def test_exact_curves_are_drawn_as_steps(estimator, style, X, y):
    model = clone(estimator).fit(X, y)
    display = draw(model, X, [3, (3, 0)], grid_resolution="exact")
    line = display.lines_[0, 0]
    assert line.get_drawstyle() == style
    points, levels = line.get_xydata().T
    middles = (points[1:] + points[:-1]) / 2
    shown = levels[1:] if style == "steps-pre" else levels[:-1]
    wanted = by_definition(lambda f: model.predict(f.to_numpy()), pd.DataFrame(X), 3, middles)
    assert close(shown, wanted[0], single=True)


def test_a_surface_of_steps_has_their_edges_and_no_contours_over_them(model, X):
    display = draw(model, X, [(3, 0)], grid_resolution="exact")
    panel = display.axes_[0, 0]
    assert display.contours_[0, 0] in panel.collections
    assert not panel.texts
    assert len(panel.collections) == 3  # the surface, and the deciles of both columns
    assert display.contours_[0, 0].colorbar is not None
    grid = display.pd_results[0].grid_values
    assert panel.get_xlim() == (grid[0][0], grid[0][-1])
    assert panel.get_ylim() == (grid[1][0], grid[1][-1])


def test_deciles_of_a_surface_are_along_its_sides(model, X):
    display = draw(model, X, [0, (0, 1)], grid_resolution=5)
    panel, marks = display.axes_[0, 1], display.deciles_hlines_[0, 1]
    to_panel = marks.get_transform() - panel.transAxes
    deciles = mquantiles(X[:, 1], np.arange(0.1, 1.0, 0.1))
    low, high = panel.get_ylim()
    for segment, decile in zip(marks.get_segments(), deciles, strict=True):
        ends = to_panel.transform(segment)
        assert_allclose(ends[:, 0], [0, 0.05], atol=1e-12)
        assert_allclose(ends[:, 1], (decile - low) / (high - low), rtol=1e-9)


def test_a_grid_is_drawn_as_a_line(model, X):
    assert draw(model, X, [3], grid_resolution=9).lines_[0, 0].get_drawstyle() == "default"


def test_labels_are_bars_without_being_named(labelled, frame):
    display = draw(labelled, frame, ["label", ("label", "other"), "number"], grid_resolution=5)
    assert display.is_categorical == [(True,), (True, True), (False,)]
    assert display.bars_[0, 0] is not None
    ticks = [tick.get_text() for tick in display.axes_[0, 0].get_xticklabels()]
    assert ticks == ["a", "b", "missing"]
    heights = [patch.get_height() for patch in display.axes_[0, 0].patches]
    assert_allclose(heights, display.pd_results[0].average[0])
    assert display.heatmaps_[0, 1].get_array().shape == (3, 2)
    assert np.isnan(display.pd_results[0].grid_values[0][2])  # the result is as it was computed
    assert display.deciles.keys() == {0}


def test_numbers_named_as_categories_stand_at_their_place(labelled, frame):
    display = draw(labelled, frame, ["count"], categorical_features=["count"])
    centers = [patch.get_x() + patch.get_width() / 2 for patch in display.axes_[0, 0].patches]
    assert_allclose(centers, np.arange(40))


def test_many_categories_of_a_pair_have_no_numbers(labelled, frame):
    pairs = [("count", "label"), ("other", "label")]
    many, few = draw(labelled, frame, pairs, categorical_features=["count"]).axes_[0]
    assert not any(text.get_visible() for text in many.texts)
    assert len(few.texts) == 6
    assert all(text.get_visible() for text in few.texts)


def test_labels_of_many_categories_do_not_touch():
    frame = pd.DataFrame({"zip": [f"z{k % 30:02}" for k in range(120)], "number": np.arange(120.0)})
    coded = make_column_transformer((OrdinalEncoder(), ["zip"]), remainder="passthrough")
    model = make_pipeline(coded, RandomForestRegressor(3, random_state=0))
    model.fit(frame, np.arange(120) % 7)
    display = draw(model, frame, ["number", "zip", "number"])
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.axes_[0, 1].get_xticklabels()]
    assert len(boxes) == 30
    assert all(one.x1 <= other.x0 + 1 for one, other in itertools.pairwise(boxes))


@pytest.mark.parametrize("resolution", [5, "exact"])
def test_a_constant_column_and_a_constant_model_are_visible(resolution, labelled, frame, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = draw(labelled, frame, ["same", ("same", "number")], grid_resolution=resolution)
        constant = clone(labelled).fit(frame, np.full(len(y), 3.0))
        flat = draw(constant, frame, ["number"], grid_resolution=resolution)
    assert display.lines_[0, 0].get_marker() == "o"
    assert display.contours_[0, 1] is not None
    low, high = flat.axes_[0, 0].get_ylim()
    assert low < 3.0 < high


def test_missing_values_that_are_asked_for_are_a_line_across(labelled, frame):
    points = [0.2, 0.5, 0.8, np.nan]
    display = draw(labelled, frame, ["number"], custom_values={"number": points}, centered=True)
    (average,) = display.pd_results[0].average
    across = display.axes_[0, 0].lines[-1]
    assert across.get_label() == "missing"
    assert_allclose(across.get_ydata(), average[3] - average[0])
    assert_allclose(display.lines_[0, 0].get_ydata(), average[:3] - average[0])


def test_a_row_that_begins_with_a_surface_has_numbers_all_the_same(model, X):
    display = draw(model, X, [(0, 1), 2, 3, 4], n_cols=3, grid_resolution=5)
    display.figure_.canvas.draw()
    numbers = [
        any(tick.get_text() for tick in axis.get_yticklabels())
        for axis in display.axes_.ravel()[:4]
    ]
    assert numbers == [True, True, False, True]


# --- outputs ----------------------------------------------------------------------------------


def test_long_names_do_not_run_into_each_other(model, X):
    names = [f"a long name of a column, number {k}, in {k} mg/dl" for k in range(X.shape[1])]
    display = draw(model, X, [0, 1, 2, (0, 1)], feature_names=names, grid_resolution=5)
    display.figure_.canvas.draw()
    sides = [side for panel in display.axes_.flat if panel for side in (panel.xaxis, panel.yaxis)]
    boxes = [side.label.get_window_extent() for side in sides if side.get_label_text()]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:k])
        assert display.figure_.bbox.y0 <= box.y0 <= box.y1 <= display.figure_.bbox.y1
    assert display.axes_[0, 1].get_xlabel().replace("\n", " ") == names[1]


def test_classes(X, labels):
    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, labels)
    display = draw(model, X, [0], target="mid", grid_resolution=5)
    assert display.target_idx == 2
    wanted = partial_dependence(model, X, 0, grid_resolution=5).average[2]
    assert_allclose(display.lines_[0, 0].get_ydata(), wanted)
    with pytest.raises(ValueError, match=r"target must be specified for multi-class: .*'mid'"):
        draw(model, X, [0])
    with pytest.raises(ValueError, match=r"target not in est\.classes_, got none"):
        draw(model, X, [0], target="none")


def test_targets(X, y):
    model = RandomForestRegressor(2, max_depth=2).fit(X, np.column_stack([y, -y]))
    assert draw(model, X, [0], target=1, grid_resolution=5).lines_[0, 0].get_ydata().max() < 0
    with pytest.raises(ValueError, match="target must be specified for multi-output"):
        draw(model, X, [0])
    for target in (2, -1):  # scikit-learn lets the first of them pass
        with pytest.raises(ValueError, match=rf"target must be in \[0, n_tasks\], got {target}"):
            draw(model, X, [0], target=target)


def test_the_other_of_two_classes_is_not_passed_over_in_silence(X, labels):
    model = RandomForestClassifier(2, max_depth=2, random_state=0).fit(X, labels == "low")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(model, X, [0], target=True, grid_resolution=5)
    with pytest.warns(UserWarning, match="target=False is ignored: .* second class, True"):
        draw(model, X, [0], target=False, grid_resolution=5)


def test_boosted_probabilities(X, labels):
    model = GradientBoostingClassifier(n_estimators=3).fit(X, labels == "low")
    display = draw(model, X, [1, 2], grid_resolution=5)
    theirs = sklearn.inspection.PartialDependenceDisplay.from_estimator(
        model, X, [1, 2], grid_resolution=5, method="brute", response_method="predict_proba"
    )
    for mine, wanted in zip(display.lines_.ravel(), theirs.lines_.ravel(), strict=True):
        assert_allclose(mine.get_ydata(), wanted.get_ydata())


# --- work -------------------------------------------------------------------------------------


def test_the_background_is_learnt_once_for_all_panels(model, X, monkeypatch):
    fits = []
    learn = FastPDExplainer.fit
    monkeypatch.setattr(
        FastPDExplainer, "fit", lambda self, *args, **kw: fits.append(1) or learn(self, *args, **kw)
    )
    draw(model, X, [*range(6), (0, 1), (2, 3)], grid_resolution=5)
    assert len(fits) == 1


def test_a_model_that_is_no_tree_ensemble_is_said_once(X, y):
    linear = LinearRegression().fit(X, y)
    with pytest.warns(UserWarning, match="is not a tree ensemble") as caught:
        draw(linear, X, [0, 1, 2], grid_resolution=5)
    assert [warning.filename for warning in caught] == [__file__]


def test_threads_do_not_matter(model, X):
    one = draw(model, X, [0], n_jobs=1, grid_resolution=5)
    two = draw(model, X, [0], n_jobs=2, grid_resolution=5)
    assert np.array_equal(one.pd_results[0].average, two.pd_results[0].average)


def test_progress(model, X, capsys):
    draw(model, X, [0, 1], grid_resolution=5, verbose=1)
    assert capsys.readouterr().out.splitlines() == [
        "[PartialDependenceDisplay] 1 of 2 panels",
        "[PartialDependenceDisplay] 2 of 2 panels",
    ]


# --- errors -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "params", "message"),
    [
        ([], {}, "features is empty"),
        ([(0, 1, 2)], {}, "Each entry in features must be either an int, a string"),
        ([0], {"kind": ["average", "both"]}, "contains 2 element.* contains 1 element"),
        ([(0, 1)], {"kind": "both"}, "ICE plot cannot be rendered for 2-way .*'x0' and 'x1'"),
        ([0], {"subsample": 0}, "When an integer, subsample=0 should be positive"),
        ([0], {"subsample": 1.5}, "When a floating-point, subsample=1.5"),
        ([0], {"ax": np.empty(2, dtype=object)}, "Expected ax to have 1 axes, got 2"),
        ([0], {"n_jobs": 0}, "n_jobs=0"),
        ([0], {"n_cols": 0}, "n_cols=0 should be an int of at least 1"),
        ([0], {"categorical_features": [0], "kind": "both"}, "not possible to display individual"),
        ([(0, 1)], {"categorical_features": [0]}, "pairs of continuous and categorical features"),
    ],
)
def test_what_cannot_be_drawn(features, params, message, model, X):
    with pytest.raises(ValueError, match=message):
        draw(model, X, features, **params)


@pytest.mark.parametrize("features", [0, "x0", {0: 1}, None])
def test_features_that_are_no_list(features, model, X):
    with pytest.raises(TypeError, match=r"features=.* should be a list with one entry a panel"):
        draw(model, X, features)


def test_kinds_that_are_none(model, X):
    with pytest.raises(TypeError, match="kind=None should be one of"):
        draw(model, X, [0], kind=None)


def test_without_matplotlib(model, X, monkeypatch):
    load = builtins.__import__

    def refuse(name, *args, **kwargs):
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return load(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        draw(model, X, [0])
