"""Main effects are drawn as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.display import MainEffectDisplay


def at(line, points):
    """What a drawn step curve shows at some points."""
    x, y = line.get_data()
    return y[np.clip(np.searchsorted(x, points, "right") - 1, 0, len(x) - 1)]


def test_curves_are_the_components(model, X, truth):
    display = MainEffectDisplay.from_estimator(model, X, [0, 1], percentiles=(0, 1))
    for line, column in zip(display.lines_[:, 0], [0, 1], strict=True):
        assert line.get_drawstyle() == "steps-post"
        # Between the edges, where a curve is not at its jump.
        edges = line.get_xdata()
        assert_allclose(edges[[0, -1]], [X[:, column].min(), X[:, column].max()])
        points = (edges[1:] + edges[:-1]) / 2
        expected = truth(model.predict, X, [column], points[:, None])[:, 0]
        assert_allclose(at(line, points), expected, atol=1e-12)


def test_curves_have_all_steps(model, X):
    display = MainEffectDisplay.from_estimator(model, X, [0], percentiles=(0, 1))
    thresholds = [tree.tree_.threshold[tree.tree_.feature == 0] for tree in model.estimators_]
    inner = display.lines_[0, 0].get_xdata()[1:-1]
    assert_allclose(inner, np.unique(np.concatenate(thresholds)), rtol=1e-6)


def test_percentiles_are_the_limits(model, X):
    display = MainEffectDisplay.from_estimator(model, X, [0], percentiles=(0.1, 0.8))
    limits = np.quantile(X[:, 0], [0.1, 0.8])
    assert_allclose(display.axes_[0, 0].get_xlim(), limits)
    assert_allclose(display.lines_[0, 0].get_xdata()[[0, -1]], limits)


def test_two_values_are_bars(model, X, truth):
    display = MainEffectDisplay.from_estimator(model, X, [3])
    assert display.lines_[0, 0] is None
    heights = [bar.get_height() for bar in display.bars_[0, 0]]
    assert_allclose(heights, truth(model.predict, X, [3], np.array([[0.0], [1.0]]))[:, 0])
    words = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
    assert words == ["0", "1"]


def test_classes_are_lines_of_their_own(classifier, X, truth):
    display = MainEffectDisplay.from_estimator(classifier, X, [0])
    assert display.output_names == ("high", "low", "mid")
    points = np.linspace(-1.5, 1.5, 7)
    expected = truth(classifier.predict_proba, X, [0], points[:, None])
    for k, line in enumerate(display.lines_[0]):
        assert line.get_label() == ("high", "low", "mid")[k]
        assert_allclose(at(line, points), expected[:, k], atol=1e-12)
    (legend,) = display.figure_.legends
    assert [text.get_text() for text in legend.get_texts()] == ["high", "low", "mid"]
    assert display.axes_[0, 0].get_ylabel() == "effect on\nprobability"


def test_probabilities_of_boosting_are_asked_for(X, truth):
    boosted = GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0)
    boosted.fit(X, 10 * X[:, 0] + X[:, 1] > 20)
    display = MainEffectDisplay.from_estimator(
        boosted, X, [0], response_method="predict_proba", n_jackknife=10
    )
    points = np.linspace(-1.5, 1.5, 7)
    expected = truth(boosted.predict_proba, X, [0], points[:, None])[:, 1]
    assert np.abs(expected).max() > 0.1
    assert_allclose(at(display.lines_[0, 0], points), expected, atol=1e-12)
    assert display.axes_[0, 0].get_ylabel() == "effect on\nprobability of True"


@pytest.mark.parametrize("way", ["from_estimator", "from_explainer"])
def test_target_chooses_a_class(classifier, X, truth, way):
    if way == "from_estimator":
        display = MainEffectDisplay.from_estimator(classifier, X, [0], target="mid")
    else:
        explainer = FastPDExplainer().fit(classifier, X)
        display = MainEffectDisplay.from_explainer(explainer, X, [0], target="mid")
    points = np.linspace(-1.5, 1.5, 7)
    expected = truth(classifier.predict_proba, X, [0], points[:, None])[:, 2]
    assert_allclose(at(display.lines_[0, 0], points), expected, atol=1e-12)
    assert display.axes_[0, 0].get_ylabel() == "effect on\nprobability of mid"


def test_a_binary_classifier_shows_its_second_class(X, y, truth):
    from sklearn.ensemble import RandomForestClassifier

    model = RandomForestClassifier(3, max_depth=3, random_state=0).fit(X, y > 1)
    display = MainEffectDisplay.from_estimator(model, X, [0])
    assert display.axes_[0, 0].get_ylabel() == "effect on\nprobability of True"
    other = MainEffectDisplay.from_estimator(model, X, [0], target=False)
    assert other.axes_[0, 0].get_ylabel() == "effect on\nprobability of False"
    points = np.linspace(-1.5, 1.5, 7)
    expected = truth(model.predict_proba, X, [0], points[:, None])
    assert_allclose(at(display.lines_[0, 0], points), expected[:, 1], atol=1e-12)
    assert_allclose(at(other.lines_[0, 0], points), expected[:, 0], atol=1e-12)


@pytest.fixture(scope="module")
def messy(y):
    """A frame with missing numbers, categories, booleans, and a model of it."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(60) < 0.2, np.nan, rng.normal(size=60)),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], 60)),
            "flag": rng.random(60) < 0.5,
        }
    )
    target = frame.number.fillna(2) + 3 * (frame.colour == "red") + frame.flag
    model = HistGradientBoostingRegressor(
        max_iter=10, min_samples_leaf=5, categorical_features="from_dtype"
    )
    return frame, model.fit(frame, target)


def brute_force(model, frame, column, value):
    """``m_k`` at one value."""
    replaced = frame.copy()
    replaced[column] = value
    replaced[column] = replaced[column].astype(frame[column].dtype)
    return model.predict(replaced).mean() - model.predict(frame).mean()


def test_missing_numbers_have_a_marker(messy):
    frame, model = messy
    display = MainEffectDisplay.from_estimator(model, frame, ["number"])
    marker = display.markers_[0, 0]
    assert_allclose(marker.get_ydata(), brute_force(model, frame, "number", np.nan))
    ax = display.axes_[0, 0]
    assert ax.get_xticklabels()[-1].get_text() == "NaN"
    assert_allclose(ax.get_xticks()[-1], marker.get_xdata())
    assert marker.get_xdata() > np.nanmax(display.lines_[0, 0].get_xdata())
    # The last bar of the density is of as many rows as are missing.
    heights = display.densities_[0].get_data().values
    bins = np.linspace(*display.effects[0].axis.edges[[0, -1]], 41)
    counts = [*np.histogram(frame.number, bins)[0], 0, frame.number.isna().sum()]
    assert_allclose(heights / heights.max(), counts / np.max(counts))


def test_categories_are_bars(messy):
    frame, model = messy
    display = MainEffectDisplay.from_estimator(model, frame, ["colour", "flag"])
    words = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
    assert words == ["blue", "green", "red"]
    for word, bar in zip(words, display.bars_[0, 0], strict=True):
        assert_allclose(bar.get_height(), brute_force(model, frame, "colour", word), atol=1e-12)
    words = [text.get_text() for text in display.axes_[0, 1].get_xticklabels()]
    assert words == ["False", "True"]
    heights = [bar.get_height() for bar in display.bars_[1, 0]]
    assert_allclose(heights, [brute_force(model, frame, "flag", v) for v in (False, True)])


def test_many_categories(assert_legible):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.08, 500), 45)
    frame = pd.DataFrame(
        {"town": pd.Categorical([f"a town called {code}" for code in codes]), "x": codes * 1.0}
    )
    model = HistGradientBoostingRegressor(max_iter=5, categorical_features="from_dtype")
    model.fit(frame, codes % 3)
    display = MainEffectDisplay.from_estimator(model, frame)
    assert_legible(display.figure_)
    (town,) = [e.axis for e in display.effects if e.axis.name == "town"]
    assert len(town.labels) == 20
    assert f"20 most frequent of {frame.town.nunique()}" in town.title
    counts = frame.town.value_counts()
    assert set(town.points) == set(counts.index[:20]) or counts.iloc[19] == counts.iloc[20]


def test_indicators_of_one_category_are_bars(X, y):
    indicators = np.eye(3)[np.random.default_rng(0).integers(0, 3, 60)]
    rows = np.column_stack([X[:, :1], indicators])
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5)
    model.fit(rows, y + 5 * indicators[:, 1])
    groups = {"colour": [1, 2, 3]}
    display = MainEffectDisplay.from_estimator(model, rows, ["colour"], groups=groups)
    words = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
    assert sorted(words) == ["x1", "x2", "x3"]
    for word, bar in zip(words, display.bars_[0, 0], strict=True):
        replaced = rows.copy()
        replaced[:, 1:] = np.eye(3)[int(word[1]) - 1]
        expected = model.predict(replaced).mean() - model.predict(rows).mean()
        assert_allclose(bar.get_height(), expected, atol=1e-12)


def test_groups_without_an_axis(model, X):
    groups = {"both": [0, 1]}
    with pytest.raises(ValueError, match=r"'both' is a group of 2 columns .* no common axis"):
        MainEffectDisplay.from_estimator(model, X, ["both"], groups=groups)
    with pytest.warns(UserWarning, match="features=None shows no 'both': groups"):
        display = MainEffectDisplay.from_estimator(model, X, groups=groups)
    assert {effect.axis.name for effect in display.effects} == {"x2", "x3"}
    with pytest.raises(ValueError, match="shows no 'all': groups of columns"):
        MainEffectDisplay.from_estimator(model, X, groups={"all": [0, 1, 2, 3]})


def test_columns_that_a_step_mixes_are_named(X, y):
    from sklearn.compose import make_column_transformer
    from sklearn.decomposition import PCA
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline

    mixing = make_column_transformer((PCA(2), [0, 1]), remainder="passthrough")
    pipe = make_pipeline(mixing, RandomForestRegressor(2, max_depth=3, random_state=0)).fit(X, y)
    explainer = FastPDExplainer().fit(pipe, X)
    with pytest.warns(UserWarning, match=r"features=None shows no '\w+pca\(x0, x1\)'") as caught:
        display = MainEffectDisplay.from_explainer(explainer, X)
    assert {effect.axis.name for effect in display.effects} == {"x2", "x3"}
    assert caught[0].filename == __file__


def test_the_strongest_come_first(model, X, truth):
    display = MainEffectDisplay.from_estimator(model, X, max_panels=3)
    size = [np.abs(truth(model.predict, X, [j], X[:, [j]])).mean() for j in range(4)]
    names = [effect.axis.name for effect in display.effects]
    assert names == [f"x{j}" for j in np.argsort(size)[::-1][:3]]


def test_weights(model, X, truth):
    weights = np.arange(60) % 3 + 0.5
    weights[X[:, 3] == 0] = 0
    display = MainEffectDisplay.from_estimator(model, X, [0, 3], sample_weight=weights)
    points = np.linspace(-1.5, 1.5, 7)
    expected = truth(model.predict, X, [0], points[:, None], weights)[:, 0]
    assert_allclose(at(display.lines_[0, 0], points), expected, atol=1e-12)
    heights = display.densities_[1].get_data().values
    assert heights[0] == 0 < heights[-1]


def test_codes_of_categories(X):
    """A column of codes is no line; missing is a category only where values are missing."""
    rows = np.column_stack([np.arange(60) % 5, X[:, 0]]).astype(float)
    target = np.array([3.0, -1.0, 0.0, 5.0, 2.0])[np.arange(60) % 5]
    model = HistGradientBoostingRegressor(categorical_features=[0], min_samples_leaf=3, max_iter=9)
    for gaps, expected in [(False, ["0", "1", "2", "3", "4"]), (True, [*"01234", "missing"])]:
        shown = rows.copy()
        if gaps:
            shown[::9, 0] = np.nan
        model.fit(shown, target)
        display = MainEffectDisplay.from_estimator(model, shown, [0])
        words = [text.get_text() for text in display.axes_[0, 0].get_xticklabels()]
        assert words == expected
        for word, bar in zip(words, display.bars_[0, 0], strict=True):
            replaced = shown.copy()
            replaced[:, 0] = np.nan if word == "missing" else float(word)
            effect = model.predict(replaced).mean() - model.predict(shown).mean()
            assert_allclose(bar.get_height(), effect, atol=1e-12)


def test_odd_columns():
    """Infinite, all missing, nullable and tiny values."""
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"inf": rng.normal(size=50), "gone": np.ones(50)})
    frame["nullable"] = pd.array(rng.integers(0, 9, 50), dtype="Int64")
    frame["tiny"] = rng.normal(size=50) * 1e-12
    frame.loc[3, "inf"] = np.inf
    frame.loc[5, "nullable"] = pd.NA
    target = frame["tiny"] * 1e12
    model = HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3).fit(frame, target)
    frame["gone"] = np.nan
    display = MainEffectDisplay.from_estimator(model, frame, list(frame))
    assert np.isfinite(display.lines_[0, 0].get_xdata()).all()
    assert [text.get_text() for text in display.axes_[0, 1].get_xticklabels()] == ["missing"]
    assert display.markers_[2, 0] is not None
    assert abs(display.axes_.flat[3].get_xlim()[1]) < 1e-10


def test_models_that_are_no_trees_are_lines(X, y):
    model = LinearRegression().fit(X, y)
    explainer = VanillaPDExplainer().fit(model, X)
    display = MainEffectDisplay.from_explainer(explainer, X, [0], percentiles=(0, 1))
    x, line = display.lines_[0, 0].get_data()
    assert display.lines_[0, 0].get_drawstyle() == "default"
    assert_allclose(line, model.coef_[0] * (x - X[:, 0].mean()), atol=1e-12)
    assert_allclose(x[[0, -1]], [X[:, 0].min(), X[:, 0].max()])
    with pytest.raises(TypeError, match="VanillaPDExplainer"):
        MainEffectDisplay.from_estimator(model, X)


def test_explainers_without_background_or_model(model, X):
    explainer = PathDependentExplainer(output="shap").fit(model).detach()
    display = MainEffectDisplay.from_explainer(explainer, X, [0, 3])
    assert display.lines_[0, 0] is not None


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(model, X, y, library):
    frames = pytest.importorskip(library)
    names = ["one", "two", "three", "four"]
    frame = (
        frames.DataFrame(X, columns=names)
        if library == "pandas"
        else frames.DataFrame(X, schema=names)
    )
    model = clone(model).fit(frame, y)
    display = MainEffectDisplay.from_estimator(model, frame, ["one", 2])
    same = MainEffectDisplay.from_estimator(clone(model).fit(X, y), X, [0, 2])
    assert [panel.get_xlabel() for panel in display.axes_[0]] == ["one", "three"]
    assert_array_equal(display.lines_[0, 0].get_data(), same.lines_[0, 0].get_data())


def test_panels_share_their_limits(model, X):
    display = MainEffectDisplay.from_estimator(model, X)
    limits = {panel.get_ylim() for panel in display.axes_.flat if panel is not None}
    assert len(limits) == 1
    apart = display.plot(sharey=False)
    limits = {panel.get_ylim() for panel in apart.axes_.flat if panel is not None}
    assert len(limits) == 4


def test_a_constant_column(X, y):
    rows = np.column_stack([X, np.full(60, 7.0)])
    model = HistGradientBoostingRegressor(max_iter=3).fit(rows, y)
    display = MainEffectDisplay.from_estimator(model, rows, [4])
    assert [bar.get_height() for bar in display.bars_[0, 0]] == [0.0]


def test_thirty_features(many, assert_legible):
    X, model = many
    display = MainEffectDisplay.from_estimator(model, X)
    assert display.axes_.shape == (3, 3)
    assert len({panel.get_xlabel() for panel in display.axes_.flat}) == 9
    assert_legible(display.figure_)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": ["nope"]}, "unknown feature 'nope'"),
        ({"features": []}, "features is empty"),
        ({"target": "nope"}, "target='nope' is none of"),
        ({"percentiles": (0.9, 0.1)}, r"percentiles=\(0.9, 0.1\)"),
        ({"percentiles": 0.5}, "percentiles=0.5"),
        ({"percentiles": ("a", "b")}, "percentiles="),
        ({"max_panels": 0}, "max_panels=0"),
    ],
    ids=str,
)
def test_bad_arguments(classifier, X, changes, message):
    with pytest.raises(ValueError, match=message):
        MainEffectDisplay.from_estimator(classifier, X, **changes)
    explainer = FastPDExplainer().fit(classifier, X)
    with pytest.raises(ValueError, match=message):
        MainEffectDisplay.from_explainer(explainer, X, **changes)


def test_curves_of_a_pipeline_are_sought_once_a_panel(X, y, truth, monkeypatch):
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from fastpd_sklearn.explainers._raw_curve import RawColumn

    sought = []
    search = RawColumn.curve
    monkeypatch.setattr(RawColumn, "curve", lambda *args: sought.append(1) or search(*args))
    forest = RandomForestRegressor(3, max_depth=3, random_state=0)
    pipe = make_pipeline(StandardScaler(), forest).fit(X, y)
    display = MainEffectDisplay.from_estimator(pipe, X, max_panels=2)
    assert len(sought) == len(display.effects) == 2
    for effect in display.effects:
        j = int(effect.axis.name[1])
        points = np.asarray(effect.axis.points, dtype=np.float64)
        expected = truth(pipe.predict, X, [j], points[:, None])[:, 0]
        assert_allclose(effect.levels[0], expected, atol=1e-12)
