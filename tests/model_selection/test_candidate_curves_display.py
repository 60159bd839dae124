"""The picture of a search's curves: what is drawn, in which colours."""

import subprocess
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import BoundaryNorm, LogNorm
from numpy.testing import assert_allclose
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.display import CandidateCurvesDisplay
from fastpd_sklearn.model_selection import candidate_curves

TREE = DecisionTreeRegressor(random_state=0)


@pytest.fixture(autouse=True, scope="module")
def _no_windows():
    matplotlib.use("Agg")
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def search(X, y):
    return GridSearchCV(TREE, {"max_depth": [1, 2, 4]}, cv=3).fit(X, y)


@pytest.fixture(scope="module")
def result(search, X, y):
    return candidate_curves(search, X, y, [3, 0])


@pytest.fixture(scope="module")
def display(result):
    return CandidateCurvesDisplay(result).plot()


def test_lines_are_the_exact_curves(display, result, X):
    assert display.lines_.shape == (2, 3, 1)
    for i, feature in enumerate([3, 0]):
        low, high = X[:, feature].min(), X[:, feature].max()
        for k in range(3):
            x, y = display.lines_[i, k, 0].get_data()
            assert display.lines_[i, k, 0].get_drawstyle() == "steps-post"
            assert (x[0], x[-1]) == (low, high)
            curve = result.curves[i][k][0]
            for point in np.linspace(low + 1e-3, high - 1e-3, 50):
                drawn = y[np.searchsorted(x, point, side="right") - 1]
                assert_allclose(drawn, curve([point])[0, 0])
        assert display.axes_.flat[i].get_xlabel() == f"x{feature}"


def test_colours_tell_the_score(display, result):
    bar = display.colorbar_
    for k, score in enumerate(result.mean_test_score):
        expected = bar.cmap(bar.norm(score))
        for i in range(2):
            assert display.lines_[i, k, 0].get_color() == expected
    assert bar.ax.get_ylabel() == "mean test score"


def test_the_chosen_candidate_is_marked_and_on_top(display, result):
    chosen = display.lines_[0, result.best, 0]
    others = [display.lines_[0, k, 0] for k in range(3) if k != result.best]
    assert chosen.get_linewidth() > max(line.get_linewidth() for line in others)
    assert chosen.get_path_effects()
    assert list(display.axes_.flat[0].lines)[-1] is chosen
    text = display.legend_.get_texts()[0].get_text().replace("\N{NO-BREAK SPACE}", " ")
    assert text == f"chosen: max_depth = {result.params[result.best]['max_depth']}"


def test_folds_have_their_own_scores(search, X, y):
    display = CandidateCurvesDisplay.from_search(search, X, y, 0, cv=3, top=2)
    assert display.lines_.shape == (1, 2, 3)
    bar = display.colorbar_
    for k in range(2):
        for fold in range(3):
            score = display.result.fold_scores[k, fold]
            assert display.lines_[0, k, fold].get_color() == bar.cmap(bar.norm(score))
    assert bar.ax.get_ylabel() == "test score of the fold"


def test_few_numbers_have_a_colour_each(result):
    display = CandidateCurvesDisplay(result).plot(color_by="max_depth")
    assert isinstance(display.colorbar_.norm, BoundaryNorm)
    assert [tick.get_text() for tick in display.colorbar_.ax.get_yticklabels()] == ["1", "2", "4"]
    colours = {
        params["max_depth"]: display.lines_[0, k, 0].get_color()
        for k, params in enumerate(result.params)
    }
    assert len(set(colours.values())) == 3
    light = [np.dot(colours[depth][:3], [0.299, 0.587, 0.114]) for depth in (1, 2, 4)]
    assert light == sorted(light, reverse=True)


def test_a_wide_range_is_logarithmic(X, y):
    alphas = np.logspace(-4, 0, 9)
    search = GridSearchCV(TREE, {"ccp_alpha": alphas}, cv=2).fit(X, y)
    display = CandidateCurvesDisplay.from_search(search, X, y, 0, color_by="ccp_alpha")
    assert isinstance(display.colorbar_.norm, LogNorm)
    assert_allclose([display.colorbar_.vmin, display.colorbar_.vmax], [1e-4, 1])


def test_values_without_an_order_and_candidates_without_a_value(X, y):
    grid = [{"max_depth": [None, 10], "criterion": ["squared_error"]}, {"max_depth": [3]}]
    search = GridSearchCV(TREE, grid, cv=2).fit(X, y)
    for name, labels in [
        ("max_depth", ["3", "10", "None"]),
        ("criterion", ["squared_error", "not set"]),
    ]:
        display = CandidateCurvesDisplay.from_search(search, X, y, 0, color_by=name)
        ticks = display.colorbar_.ax.get_yticklabels()
        assert [tick.get_text() for tick in ticks] == labels


def test_many_values_without_an_order_have_a_colour_each(X, y):
    sizes = [(size, 1.0) for size in range(2, 9)]
    forest = RandomForestRegressor(n_estimators=1, random_state=0)
    search = GridSearchCV(forest, {"max_features": [1, 2]}, cv=2).fit(X, y)
    result = candidate_curves(search, X, y, 0)
    many = type(result)(
        **{
            **result,
            "params": [{"shape": size} for size in sizes],
            "mean_test_score": np.linspace(1, 0, 7),
            "average": [np.repeat(result.average[0][:1], 7, axis=0)],
            "curves": [result.curves[0][:1] * 7],
        }
    )
    display = CandidateCurvesDisplay(many).plot(color_by="shape")
    assert len({tuple(line.get_color()) for line in display.lines_.flat}) == 7


def test_a_hopeless_candidate_does_not_take_all_colours(X, y):
    search = GridSearchCV(TREE, {"max_depth": [*range(1, 9)]}, cv=2).fit(X, y)
    result = candidate_curves(search, X, y, 0)
    result["mean_test_score"] = np.array([0.8, 0.79, 0.78, 0.77, 0.76, 0.7, 0.6, -40.0])
    bar = CandidateCurvesDisplay(result).plot().colorbar_
    assert 0 < bar.vmin < 0.76
    assert bar.vmax == 0.8
    assert bar.extend == "min"


def test_equal_scores(result):
    equal = type(result)(**{**result, "mean_test_score": np.full(3, 0.5)})
    bar = CandidateCurvesDisplay(equal).plot().colorbar_
    assert bar.vmin < 0.5 < bar.vmax


def test_own_axes_and_styles(result, search, X, y):
    figure, axes = plt.subplots(2)
    display = CandidateCurvesDisplay(result).plot(
        ax=axes, line_kw={"lw": 0.3, "ls": ":"}, best_line_kw={"c": "red", "linewidth": 5}
    )
    assert display.figure_ is figure
    assert list(display.axes_.flat) == list(axes)
    assert display.lines_[0, 1, 0].get_linewidth() == 0.3
    best = display.lines_[0, result.best, 0]
    assert (best.get_color(), best.get_linewidth(), best.get_linestyle()) == ("red", 5, ":")
    assert display.legend_ in axes[0].get_children()
    _, ax = plt.subplots()
    one = CandidateCurvesDisplay.from_search(search, X, y, 0, ax=ax)
    assert one.axes_.tolist() == [[ax]]


def test_a_column_of_categories(X, y):
    lightgbm = pytest.importorskip("lightgbm")
    kind = pd.Categorical(np.array(["a", "b", "c", "d"])[np.arange(60) % 4])
    frame = pd.DataFrame({"kind": kind, "x": y})
    model = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=3, verbose=-1, n_jobs=1)
    search = GridSearchCV(model, {"num_leaves": [2, 5]}, cv=2).fit(frame, y)
    display = CandidateCurvesDisplay.from_search(search, frame, y, ["kind", "x"])
    axis = display.axes_.flat[0]
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b", "c", "d"]
    line = display.lines_[0, 0, 0]
    assert_allclose(line.get_ydata(), display.result.curves[0][0][0].levels[0])
    assert line.get_marker() == "o"
    assert_allclose(display.densities_[0].get_data().values[::2], np.full(4, 0.12))


def test_missing_values_have_a_place_of_their_own(X, y):
    X = X.copy()
    X[::4, 0] = np.nan
    search = GridSearchCV(TREE, {"max_depth": [2]}, cv=2).fit(X, y)
    display = CandidateCurvesDisplay.from_search(search, X, y, 0)
    x, height = display.lines_[0, 0, 0].get_data()
    assert (x[0], x[-1]) == (np.nanmin(X[:, 0]), np.nanmax(X[:, 0]))
    assert np.isfinite(height).all()
    curve, marker = display.result.curves[0][0][0], display.missing_[0, 0, 0]
    assert_allclose(marker.get_ydata(), curve.missing)
    assert marker.get_xdata()[0] > x[-1]
    assert display.axes_.flat[0].get_xticklabels()[-1].get_text() == "NaN"
    assert display.axes_.flat[0].get_ylim()[1] > curve.missing[0]


def test_two_values_are_categories():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"flag": rng.random(60) < 0.4, "pair": rng.choice([2.0, 5.0], 60)})
    target = frame["flag"] * 3.0 + frame["pair"]
    search = GridSearchCV(TREE, {"max_depth": [1, 3]}, cv=3).fit(frame, target)
    display = CandidateCurvesDisplay.from_search(search, frame, target)
    shown = [[t.get_text() for t in ax.get_xticklabels()] for ax in display.axes_.flat]
    assert shown == [["False", "True"], ["2", "5"]]
    best = display.result.best
    for i, values in enumerate([[0, 1], [2.0, 5.0]]):
        x, y = display.lines_[i, best, 0].get_data()
        assert list(x) == [0, 1]
        for value, height in zip(values, y, strict=True):
            moved = frame.copy()
            moved[frame.columns[i]] = np.full(60, value).astype(frame.dtypes.iloc[i])
            assert_allclose(height, search.best_estimator_.predict(moved).mean())


def test_names_are_no_formulas(X, y):
    frame = pd.DataFrame(X, columns=["$a_b$", "b", "c", "d"])
    search = GridSearchCV(TREE, {"max_depth": [2]}, cv=2).fit(frame, y)
    display = CandidateCurvesDisplay.from_search(search, frame, y, "$a_b$")
    assert display.axes_.flat[0].get_xlabel() == r"\$a_b\$"


def test_errors(result, X, y):
    with pytest.raises(ValueError, match="color_by='depth' is neither 'score' nor"):
        CandidateCurvesDisplay(result).plot(color_by="depth")
    with pytest.raises(ValueError, match="n_cols=0"):
        CandidateCurvesDisplay(result).plot(n_cols=0)
    forest = RandomForestClassifier(n_estimators=2, random_state=0)
    search = GridSearchCV(forest, {"max_depth": [1]}, cv=2).fit(X, np.digitize(y, [4, 9]))
    with pytest.raises(ValueError, match="a curve for each of 0, 1, 2; choose one by `target`"):
        CandidateCurvesDisplay.from_search(search, X, np.digitize(y, [4, 9]), 0)


def test_without_matplotlib(tmp_path):
    code = (
        "import sys; sys.modules['matplotlib'] = None; "
        "from fastpd_sklearn.display import CandidateCurvesDisplay; "
        "CandidateCurvesDisplay(None).plot()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,  # not the checkout, whose sources may hide the installed package
        capture_output=True,
        text=True,
        check=False,
    )
    assert "CandidateCurvesDisplay draws with matplotlib, which is not installed" in done.stderr
