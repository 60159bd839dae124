"""What all displays have in common."""

import pickle
import subprocess
import sys
from inspect import Parameter, signature

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import fastpd_sklearn.display as package
from fastpd_sklearn import FastPDExplainer
from fastpd_sklearn.display import (
    ALEDisplay,
    ICEDisplay,
    ImportanceDisplay,
    InteractionDisplay,
    MainEffectDisplay,
    ThreeWayDisplay,
    WaterfallDisplay,
    _style,
)
from fastpd_sklearn.display import _style as style
from fastpd_sklearn.display import _text as text

DISPLAYS = [
    ImportanceDisplay,
    InteractionDisplay,
    MainEffectDisplay,
    ThreeWayDisplay,
    WaterfallDisplay,
]

SEVERAL = [
    (MainEffectDisplay, {"features": [0, 1, 2]}, 3),
    (InteractionDisplay, {"features": [(0, 1), (0, 2)]}, 2),
    (ThreeWayDisplay, {"features": (0, 1, 3)}, 2),
]


@pytest.mark.parametrize("display_class", DISPLAYS)
def test_from_draws_and_init_only_stores(display_class, model, X, pyplot):
    drawn = display_class.from_estimator(model, X)
    assert pyplot.get_fignums() == [drawn.figure_.number]
    stored = {name: value for name, value in vars(drawn).items() if not name.endswith("_")}
    display = display_class(**stored)
    assert vars(display) == stored
    assert pyplot.get_fignums() == [drawn.figure_.number]
    assert display.plot() is display
    assert pyplot.get_fignums() == [drawn.figure_.number, display.figure_.number]
    assert_array_equal(draw(display), draw(drawn))


@pytest.mark.parametrize("display_class", [*DISPLAYS, ICEDisplay, ALEDisplay])
def test_from_takes_what_plot_takes(display_class):
    plot = signature(display_class.plot).parameters
    ways = [name for name in dir(display_class) if name.startswith("from_")]
    assert len(ways) >= 2
    for way in ways:
        taken = signature(getattr(display_class, way)).parameters
        for name in list(plot)[1:]:
            assert taken[name].default == plot[name].default
            assert taken[name].kind == Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("display_class", DISPLAYS)
def test_both_ways_are_one(display_class, model, X):
    params = {
        ImportanceDisplay: {"output": "shap"},
        InteractionDisplay: {"output": "component", "max_order": 2},
        MainEffectDisplay: {},
        ThreeWayDisplay: {"output": "component", "max_order": 3},
        WaterfallDisplay: {"output": "component", "max_order": 2},
    }[display_class]
    explainer = FastPDExplainer(**params).fit(model, X)
    before = dict(vars(explainer))
    displays = [
        display_class.from_estimator(model, X),
        display_class.from_explainer(explainer, X),
    ]
    assert vars(explainer) == before
    one, other = (np.asarray(draw(display)) for display in displays)
    assert_array_equal(one, other)


def draw(display):
    display.figure_.canvas.draw()
    return display.figure_.canvas.buffer_rgba()


@pytest.mark.parametrize("display_class", DISPLAYS)
def test_without_matplotlib(display_class, model, X, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    message = (
        rf"{display_class.__name__} draws with matplotlib.*pip install 'fastpd-sklearn\[plot\]'"
    )
    with pytest.raises(ImportError, match=message):
        display_class.from_estimator(model, X)


def test_matplotlib_is_imported_for_drawing_only(tmp_path):
    code = """
import sys
import numpy as np
from fastpd_sklearn.display import ImportanceDisplay
display = ImportanceDisplay(np.ones((1, 1)), (("a",),), ("b",), by="feature")
print("matplotlib" in sys.modules)
display.plot()
print("matplotlib" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(("display_class", "params", "n"), SEVERAL)
def test_axes_of_the_user(display_class, params, n, model, X, pyplot):
    figure, given = pyplot.subplots(1, n)
    display = display_class.from_estimator(model, X, **params, ax=given)
    assert display.figure_ is figure
    assert_array_equal(display.axes_.ravel(), given)
    figure, one = pyplot.subplots()
    display.plot(ax=one)
    assert display.figure_ is figure
    assert display.axes_.size >= n
    assert one not in display.axes_.ravel().tolist()
    with pytest.raises(ValueError, match=f"one axes or {n} axes.*got {n + 1} items"):
        display.plot(ax=pyplot.subplots(1, n + 1)[1])
    alone = pyplot.figure().add_axes((0.1, 0.1, 0.8, 0.8))
    with pytest.raises(ValueError, match=f"no part of a grid that {n} panels"):
        display.plot(ax=alone)
    with pytest.raises(ValueError, match="n_cols=0"):
        display_class.from_estimator(model, X, **params, n_cols=0)


@pytest.mark.parametrize("display_class", [ImportanceDisplay, WaterfallDisplay])
def test_one_axes_of_the_user(display_class, model, X, pyplot):
    figure, ax = pyplot.subplots()
    display = display_class.from_estimator(model, X, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is figure


def test_looks_of_the_user(model, X, classifier):
    display = MainEffectDisplay.from_estimator(
        model,
        X,
        [0, 3],
        line_kw={"c": "k", "lw": 7},
        bar_kw={"color": "k"},
        density_kw={"color": "r"},
    )
    assert display.lines_[0, 0].get_color() == "k"
    assert display.lines_[0, 0].get_linewidth() == 7
    assert display.bars_[1, 0][0].get_facecolor() == (0, 0, 0, 1)
    assert display.densities_[0].get_facecolor() == (1, 0, 0, 1)
    pair = InteractionDisplay.from_estimator(
        model,
        X,
        [(0, 1), (0, 2)],
        heatmap_kw={"cmap": "PuOr"},
        scatter_kw={"s": 1},
        line_kw={"ls": ":"},
    )
    assert pair.heatmaps_[0].get_cmap().name == "PuOr"
    assert pair.dots_[0].get_sizes().tolist() == [1]
    assert {line.get_linestyle() for line in pair.lines_[1]} == {":"}
    bars = ImportanceDisplay.from_estimator(model, X, bar_kw={"color": "k"})
    assert bars.bars_[0][0].get_facecolor() == (0, 0, 0, 1)
    row = WaterfallDisplay.from_estimator(
        model, X, bar_kw={"height": 0.1}, line_kw={"c": "r"}, text_kw={"color": "g"}
    )
    assert row.bars_[0].get_height() == pytest.approx(0.1)
    assert row.lines_[0].get_color() == "r"
    assert row.texts_[0].get_color() == "g"


def test_colours_can_be_told_apart_without_red_and_green():
    """Under the two common kinds of colour blindness, as simulated by Machado et al. (2009)."""
    from matplotlib.colors import to_rgb

    blind = {
        "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    }
    for kind, matrix in blind.items():
        seen = np.clip([np.array(matrix) @ to_rgb(c) for c in style.COLOURS], 0, 1)
        gaps = np.linalg.norm(seen[:, None] - seen, axis=2)[np.triu_indices(len(seen), 1)]
        assert gaps.min() > 0.1, kind
        ends = np.array(matrix) @ np.transpose([to_rgb(style.POSITIVE), to_rgb(style.NEGATIVE)])
        assert np.linalg.norm(ends[:, 0] - ends[:, 1]) > 0.4


@pytest.mark.parametrize(
    ("name", "width", "expected"),
    [("short", 5, "short"), ("abcdefghij", 7, "abc…hij"), ("abcdefghij", 6, "abc…ij"), (3, 4, "3")],
)
def test_short_names(name, width, expected):
    assert text.shorten(name, width) == expected


def test_short_names_stay_different():
    names = ["workclass, state government", "workclass, city government", "workclass", "age"]
    short = text.shorten_all(names, 16)
    assert len(set(short)) == 4
    assert all(len(name) <= 16 for name in short)
    assert short[2:] == ["workclass", "age"]
    alike = [f"the same beginning {k} the same end" for k in range(12)]
    short = text.shorten_all(alike, 16)
    assert len(set(short)) == 12
    assert all(str(k) in name for k, name in enumerate(short))


def test_odd_names_and_legends(X, y, assert_legible):
    """Dollars are no formulas, and legends leave no name out that begins with a dash below."""
    pd = pytest.importorskip("pandas")
    from sklearn.ensemble import HistGradientBoostingClassifier

    frame = pd.DataFrame(X, columns=["price ($/m$^2$)", "_hidden", "two\nlines", "plain"])
    classes = ["$a$", "_b", "a class of a name that is quite long", "d"]
    labels = np.array(classes)[np.digitize(y, np.quantile(y, [0.25, 0.5, 0.75]))]
    model = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5).fit(frame, labels)
    displays = [
        MainEffectDisplay.from_estimator(model, frame, max_panels=1),
        MainEffectDisplay.from_estimator(model, frame),
        ImportanceDisplay.from_estimator(model, frame),
    ]
    for display in displays:
        figure = assert_legible(display.figure_)
        (legend,) = figure.legends
        assert len(legend.get_texts()) == 4
        assert "_b" in [text.get_text() for text in legend.get_texts()]
        assert_within(legend, figure)
    shown = [panel.get_xlabel() for panel in displays[1].axes_.flat if panel is not None]
    assert r"price (\$/m\$^2\$)" in shown
    assert "two lines" in shown


def assert_within(artist, figure):
    box, whole = artist.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 <= box.x1 <= whole.x1
    assert whole.y0 <= box.y0 <= box.y1 <= whole.y1


def test_more_classes_than_colours():
    from sklearn.tree import DecisionTreeClassifier

    rows = np.random.default_rng(0).normal(size=(90, 2))
    model = DecisionTreeClassifier(max_depth=4, random_state=0).fit(rows, np.arange(90) % 9)
    lines = MainEffectDisplay.from_estimator(model, rows, [0]).lines_[0]
    looks = {(line.get_color(), line.get_linestyle()) for line in lines}
    bars = ImportanceDisplay.from_estimator(model, rows).bars_
    patterns = {(one[0].get_facecolor(), one[0].get_hatch()) for one in bars}
    assert len(looks) == len(patterns) == 9


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0"),
        (-1.5, "−1.5"),
        (1 / 3, "0.3333"),
        (123456.7, "123457"),
        (2e9, "2e+09"),
        (np.nan, "missing"),
        (None, "missing"),
        (True, "True"),
        (np.float32(0.1), "0.1"),
        ("a label that is longer than others", "a label t…n others"),
    ],
)
def test_short_values(value, expected):
    assert text.short_value(value) == expected


@pytest.mark.parametrize("name", package.__all__)
def test_public_objects_are_documented(name):
    public = getattr(package, name)
    assert "Attributes" in public.__doc__
    for attribute, value in vars(public).items():
        if not attribute.startswith("_"):
            assert getattr(value, "__func__", value).__doc__, attribute


def test_wide_numbers_do_not_touch(assert_legible):
    """Six digits, small numbers beside missing ones, and a response of millions."""
    pd = pytest.importorskip("pandas")
    from sklearn.ensemble import HistGradientBoostingRegressor

    rng = np.random.default_rng(3)
    n = 300
    X = pd.DataFrame(
        {
            "income": rng.lognormal(11, 1, n),
            "a rather long name of a column (kg/m²)": 1e-5 * rng.normal(size=n),
            "kind": pd.Categorical(rng.choice(["a", "b", "c", "d", "e", "f", "g"], n)),
        }
    )
    name = X.columns[1]
    X.loc[::6, name] = np.nan
    signal = np.log(X["income"]) + 1e5 * X[name].fillna(0) * (X["kind"] == "a")
    model = HistGradientBoostingRegressor(
        max_iter=20, min_samples_leaf=5, categorical_features="from_dtype"
    ).fit(X, 3e7 + 1e6 * signal)
    pairs = [("income", name), ("kind", "income"), ("kind", name)]
    displays = [
        MainEffectDisplay.from_estimator(model, X),
        InteractionDisplay.from_estimator(model, X, pairs),
        ThreeWayDisplay.from_estimator(model, X, ("income", name, "kind")),
        ThreeWayDisplay.from_estimator(model, X, ("kind", "income", name)),
        ImportanceDisplay.from_estimator(model, X),
        WaterfallDisplay.from_estimator(model, X, row=0),
    ]
    for display in displays:
        figure = assert_legible(display.figure_)
        labels = [axes.xaxis.label.get_window_extent() for axes in figure.axes]
        for k, label in enumerate(labels):
            assert not any(label.overlaps(other) for other in labels[:k] if other.width > 1)
        for axes in figure.axes:
            assert axes.xaxis.get_offset_text().get_text() == ""
            assert len(axes.get_xticks()) > 1 or axes.get_label() == "<colorbar>"


def test_figures_pickle(model, X):
    figure = MainEffectDisplay.from_estimator(model, X, features=[0]).figure_
    ticks = figure.axes[0].get_xticks()
    assert_array_equal(pickle.loads(pickle.dumps(figure)).axes[0].get_xticks(), ticks)


def test_a_legend_of_seven_names_lies_within_its_figure():
    plt = pytest.importorskip("matplotlib.pyplot")
    names = ["main effects", *(f"{n}-way interactions" for n in range(2, 7)), "mean |SHAP value|"]
    figure, ax = plt.subplots(figsize=(6.4, 3), layout="constrained")
    handles = [ax.barh(0, 1) for _ in names]
    legend = _style.draw_legend(figure, ax, handles, names, True)
    figure.canvas.draw()
    assert_within(legend, figure)
