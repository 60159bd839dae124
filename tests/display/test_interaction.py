"""Interactions of two and three features are drawn as they are."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.ensemble import GradientBoostingClassifier

from fastpd_sklearn import FastPDExplainer, VanillaPDExplainer
from fastpd_sklearn.display import InteractionDisplay, ThreeWayDisplay


def cells_of(mesh):
    """Centres of the cells of a heat map, and what it shows in them."""
    x = mesh.get_coordinates()[0, :, 0]
    y = mesh.get_coordinates()[:, 0, 1]
    return (x[1:] + x[:-1]) / 2, (y[1:] + y[:-1]) / 2, mesh.get_array().T


def test_heat_maps_are_the_components(model, X, truth):
    display = InteractionDisplay.from_estimator(model, X, [(1, 0)], percentiles=(0, 1))
    x, y, values = cells_of(display.heatmaps_[0])
    assert display.axes_[0, 0].get_xlabel() == "x1"
    points = np.array([(a, b) for a in x for b in y])
    expected = truth(model.predict, X, [1, 0], points)[:, 0].reshape(len(x), len(y))
    assert np.abs(expected).max() > 0.1
    assert_allclose(values, expected, atol=1e-12)


def test_colours_are_white_without_effect(model, X):
    display = InteractionDisplay.from_estimator(model, X, [(0, 1)])
    mesh = display.heatmaps_[0]
    low, high = mesh.get_clim()
    assert low == -high == -np.abs(mesh.get_array()).max()
    assert_allclose(mesh.cmap(mesh.norm(0.0))[:3], [0.97] * 3, atol=0.02)
    blue, red = mesh.cmap(0.0), mesh.cmap(1.0)
    assert blue[2] > blue[0]
    assert red[0] > red[2]


@pytest.mark.parametrize("pair", [(0, 2), (2, 0)])
def test_few_values_are_lines(model, X, truth, pair):
    display = InteractionDisplay.from_estimator(model, X, [pair], percentiles=(0, 1))
    assert display.heatmaps_ == [None]
    assert [line.get_label() for line in display.lines_[0]] == ["0", "1.5", "3", "4.5"]
    assert display.axes_[0, 0].get_xlabel() == "x0"
    for value, line in zip([0.0, 1.5, 3.0, 4.5], display.lines_[0], strict=True):
        edges, levels = line.get_data()
        points = (edges[1:] + edges[:-1]) / 2
        rows = np.column_stack([points, np.full(len(points), value)])
        expected = truth(model.predict, X, [0, 2], rows)[:, 0]
        assert_allclose(levels[:-1], expected, atol=1e-12)


def test_two_features_of_few_values(model, X, truth):
    display = InteractionDisplay.from_estimator(model, X, [(2, 3)])
    values = display.heatmaps_[0].get_array().T
    points = np.array([(a, b) for a in (0.0, 1.5, 3.0, 4.5) for b in (0.0, 1.0)])
    assert_allclose(values, truth(model.predict, X, [2, 3], points).reshape(4, 2), atol=1e-12)


def test_probabilities_of_boosting_are_asked_for(X, truth):
    boosted = GradientBoostingClassifier(n_estimators=10, max_depth=3, random_state=0)
    boosted.fit(X, X[:, 0] * (X[:, 1] - 20) > 0)
    display = InteractionDisplay.from_estimator(
        boosted, X, [(0, 1)], percentiles=(0, 1), response_method="predict_proba"
    )
    x, y, values = cells_of(display.heatmaps_[0])
    points = np.array([(a, b) for a in x for b in y])
    expected = truth(boosted.predict_proba, X, [0, 1], points)[:, 1].reshape(len(x), len(y))
    assert np.abs(expected).max() > 0.1
    assert_allclose(values, expected, atol=1e-12)


def test_the_strongest_pairs_come_first(model, X, truth):
    display = InteractionDisplay.from_estimator(model, X, max_panels=2)
    pairs = [(j, k) for j in range(4) for k in range(j + 1, 4)]
    size = [np.abs(truth(model.predict, X, list(p), X[:, list(p)])).mean() for p in pairs]
    strongest = [pairs[i] for i in np.argsort(size)[::-1][:2]]
    found = [tuple(int(axis.name[1]) for axis in i.axes) for i in display.interactions]
    assert found == strongest


def test_grid_resolution(model, X, truth):
    display = InteractionDisplay.from_estimator(
        model, X, [(0, 1)], percentiles=(0, 1), grid_resolution=5
    )
    x, y, values = cells_of(display.heatmaps_[0])
    assert values.shape == (5, 5)
    points = np.array([(a, b) for a in x for b in y])
    assert_allclose(values, truth(model.predict, X, [0, 1], points).reshape(5, 5), atol=1e-12)


def test_missing_numbers_have_cells_behind_a_gap(X, y):
    from sklearn.ensemble import HistGradientBoostingRegressor

    rows = X[:, :2].copy()
    rows[::5, 0] = np.nan
    model = HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=3).fit(rows, y)
    display = InteractionDisplay.from_estimator(model, rows, [(0, 1)])
    _, heights, values = cells_of(display.heatmaps_[0])
    assert np.ma.getmaskarray(values)[-2].all()
    assert not np.ma.getmaskarray(values)[[-1, -3]].any()
    gone = rows.copy()
    gone[:, 0] = np.nan
    for height, value in zip(heights, values[-1], strict=True):
        both, other = gone.copy(), rows.copy()
        both[:, 1] = other[:, 1] = height
        means = [model.predict(part).mean() for part in (both, gone, other, rows)]
        assert_allclose(value, means[0] - means[1] - means[2] + means[3], atol=1e-12)
    assert display.axes_[0, 0].get_xticklabels()[-1].get_text() == "NaN"
    places = display.dots_[0].get_offsets()[:, 0]
    assert (places > np.nanmax(rows[:, 0])).sum() == np.isnan(rows[:, 0]).sum()


def test_dots_are_the_rows(model, X):
    display = InteractionDisplay.from_estimator(model, X, [(0, 1), (0, 2)])
    assert_allclose(display.dots_[0].get_offsets(), X[:, :2])
    assert display.dots_[1] is None


def test_several_classes_need_a_target(classifier, X, truth):
    with pytest.raises(ValueError, match=r"InteractionDisplay shows one output.*'low'.*target="):
        InteractionDisplay.from_estimator(classifier, X)
    display = InteractionDisplay.from_estimator(
        classifier, X, [(0, 1)], target="low", percentiles=(0, 1)
    )
    x, y, values = cells_of(display.heatmaps_[0])
    points = np.array([(a, b) for a in x for b in y])
    expected = truth(classifier.predict_proba, X, [0, 1], points)[:, 1]
    assert_allclose(values.ravel(), expected, atol=1e-12)


def test_any_explainer_shows_named_pairs(model, X, truth):
    for explainer in (FastPDExplainer(output="shap"), VanillaPDExplainer()):
        explainer.fit(model, X)
        display = InteractionDisplay.from_explainer(
            explainer, X, [("x0", 1)], percentiles=(0, 1), grid_resolution=4
        )
        values = display.interactions[0]
        points = np.array([(a, b) for a in values.axes[0].points for b in values.axes[1].points])
        expected = truth(model.predict, X, [0, 1], points)[:, 0]
        assert_allclose(values.values.ravel(), expected, atol=1e-12)
        with pytest.raises(ValueError, match="name them, or fit one with output='component'"):
            InteractionDisplay.from_explainer(explainer, X)


def test_a_pair_without_effect_is_white():
    from sklearn.tree import DecisionTreeRegressor

    rows = np.random.default_rng(0).normal(size=(50, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(rows[:, :2], rows[:, 0] > 0)
    display = InteractionDisplay.from_estimator(model, rows, [(0, 1)])
    assert_allclose(display.heatmaps_[0].get_array(), 0.0)
    with pytest.raises(ValueError, match="no set of 2 features has a component"):
        InteractionDisplay.from_estimator(model, rows)


@pytest.mark.parametrize("features", [[(0, 1, 2)], [0], "x0", [(0,)], [("x0", "nope")], []])
def test_bad_pairs(model, X, features):
    with pytest.raises(ValueError, match="features"):
        InteractionDisplay.from_estimator(model, X, features)


def test_one_pair_needs_no_list(model, X):
    display = InteractionDisplay.from_estimator(model, X, (0, 1))
    assert len(display.interactions) == 1


def test_thirty_features(many, assert_legible):
    X, model = many
    display = InteractionDisplay.from_estimator(model, X)
    assert display.axes_.shape == (2, 2)
    assert_legible(display.figure_)
    assert_legible(ThreeWayDisplay.from_estimator(model, X).figure_)


# --- three features --------------------------------------------------------------------------


def test_slices_are_the_components(model, X, truth):
    display = ThreeWayDisplay.from_estimator(model, X, (0, 2, 1), percentiles=(0, 1))
    assert display.slices.name == "x2"
    titles = [panel.get_title() for panel in display.axes_.flat]
    assert titles == ["x2 = 0", "x2 = 1.5", "x2 = 3", "x2 = 4.5"]
    largest = 0.0
    for value, mesh in zip([0.0, 1.5, 3.0, 4.5], display.heatmaps_, strict=True):
        x, y, values = cells_of(mesh)
        points = np.array([(a, b, value) for a in x for b in y])
        expected = truth(model.predict, X, [0, 1, 2], points)[:, 0]
        assert_allclose(values.ravel(), expected, atol=1e-12)
        largest = max(largest, np.abs(expected).max())
    assert largest > 0.1
    assert_allclose([mesh.get_clim() for mesh in display.heatmaps_], [(-largest, largest)] * 4)


def test_many_values_are_sliced_at_quantiles(many, truth):
    X, model = many
    display = ThreeWayDisplay.from_estimator(model, X, (0, 1, 2), n_slices=3, grid_resolution=6)
    third = X.to_numpy()[:, 2]
    slices = np.quantile(third, [1 / 6, 1 / 2, 5 / 6])
    assert_allclose(display.slices.points, slices)
    names = list(X.columns)
    for value, mesh in zip(slices, display.heatmaps_, strict=True):
        x, y, values = cells_of(mesh)
        points = np.array([(a, b, value) for a in x[:3] for b in y[:3]])

        def predict(rows):
            import pandas as pd

            return model.predict(pd.DataFrame(rows, columns=names))

        expected = truth(predict, X, [0, 1, 2], points).reshape(3, 3)
        assert_allclose(values[:3, :3], expected, atol=1e-12)
    shown = [len(dots.get_offsets()) for dots in display.dots_]
    nearest = np.abs(third[:, None] - slices).argmin(axis=1)
    assert shown == np.bincount(nearest).tolist()


def test_the_strongest_three(many):
    X, model = many
    display = ThreeWayDisplay.from_estimator(model, X)
    numbers = [axis.name.partition(" of all")[0][-2:] for axis in (*display.axes, display.slices)]
    assert sorted(numbers) == ["00", "01", "02"]


def test_bad_threes(classifier, model, X):
    with pytest.raises(ValueError, match="sets of 3"):
        ThreeWayDisplay.from_estimator(model, X, (0, 1))
    with pytest.raises(ValueError, match="ThreeWayDisplay shows one output"):
        ThreeWayDisplay.from_estimator(classifier, X, (0, 1, 2))
    with pytest.raises(ValueError, match="n_slices=0"):
        ThreeWayDisplay.from_estimator(model, X, (0, 1, 2), n_slices=0)
