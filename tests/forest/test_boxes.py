"""Sums of boxes against the definition: a box holds a row, or it does not."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from fastpd_sklearn import (
    ALEExplainer,
    FastPDExplainer,
    ICEExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)
from fastpd_sklearn.forest import Forest, find_reader
from fastpd_sklearn.forest._forest import ForestBuilder
from fastpd_sklearn.forest._forests import reader
from tests import oracles

INF = np.inf
N_COLUMNS = 4


def some_boxes(n_boxes=12, n_outputs=1, seed=0):
    """Boxes over one to all columns, some with one side open, some bounds shared."""
    rng = np.random.default_rng(seed)
    shape = (n_boxes, N_COLUMNS)
    lower = rng.integers(-4, 3, shape) / 2
    upper = lower + rng.integers(1, 6, shape) / 2
    lower[rng.random(shape) < 0.4] = -INF
    upper[rng.random(shape) < 0.4] = INF
    free = rng.random(shape) < 0.4
    lower[free], upper[free] = -INF, INF
    value = rng.normal(size=(n_boxes, n_outputs))
    return lower, upper, value[:, 0] if n_outputs == 1 else value


def some_rows(n_rows, missing=False, seed=0):
    """Rows on the bounds, beside them and elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-5, 6, (n_rows, N_COLUMNS)) / 2
    X = np.where(rng.random(X.shape) < 0.3, np.nextafter(X, rng.choice([-9, 9], X.shape)), X)
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def add_up(lower, upper, value, X, intercept=0.0):
    """The definition."""
    lower, upper, value = map(np.asarray, (lower, upper, value))
    bounded = (lower > -INF) | (upper < INF)
    within = (lower <= X[:, None]) & (X[:, None] < upper)
    holds = np.all(within | ~bounded, axis=2)
    out = holds @ value.reshape(len(value), -1) + intercept
    return out[:, 0] if value.ndim == 1 else out


def game_of(boxes, background, weights, X):
    return oracles.interventional_game(
        lambda rows: add_up(*boxes, rows), background, weights, X, [[j] for j in range(N_COLUMNS)]
    )


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("missing", [False, True])
def test_prediction(n_outputs, missing):
    for seed in range(5):
        boxes, X = some_boxes(30, n_outputs, seed), some_rows(200, missing, seed)
        forest = Forest.from_boxes(*boxes, intercept=0.5)
        expected = add_up(*boxes, X, intercept=0.5)
        assert_allclose(forest.predict(X), expected, atol=1e-12)
        # The core's way.
        explainer = FastPDExplainer().fit(forest, X)
        raw = explainer._fitted.engine.predict(X)
        assert_allclose(raw, expected.reshape(len(X), -1), atol=1e-12)


@pytest.mark.parametrize("output", list(oracles.INDICES))
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_every_output_against_enumeration(output, n_outputs):
    boxes = some_boxes(n_outputs=n_outputs)
    background, X = some_rows(40, missing=True), some_rows(6, missing=True, seed=1)
    weights = np.arange(40) % 3 / 2
    game = game_of(boxes, background, weights, X)
    explainer = FastPDExplainer(output=output, max_order=2 if output == "pd" else "auto")
    explainer.fit(Forest.from_boxes(*boxes), background, sample_weight=weights)
    values = explainer.transform(X).reshape(6, len(explainer.terms_), n_outputs)
    assert_allclose(explainer.intercept_, game[()][0], atol=1e-12)
    for k, names in enumerate(explainer.terms_):
        term = tuple(int(name[1:]) for name in names)
        assert_allclose(values[:, k], oracles.INDICES[output](game, term), atol=1e-12)


def test_every_component():
    boxes = some_boxes(6)
    background, X = some_rows(30), some_rows(5, seed=1)
    game = game_of(boxes, background, None, X)
    explainer = FastPDExplainer(output="component", max_order=None)
    explainer.fit(Forest.from_boxes(*boxes), background)
    shown = dict(zip(explainer.terms_, explainer.transform(X).T, strict=True))
    for term in oracles.subsets(range(N_COLUMNS)):
        if term:
            found = shown.get(tuple(f"x{j}" for j in term), np.zeros(5))
            assert_allclose(found, oracles.derivative(game, term)[:, 0], atol=1e-12)


def test_curves_are_exact():
    lower, upper, value = some_boxes()
    forest, X = Forest.from_boxes(lower, upper, value), some_rows(50)
    curve = FastPDExplainer().fit(forest, X).partial_dependence(1).curve
    assert set(curve.breaks) <= {*lower[:, 1], *upper[:, 1]} - {-INF, INF}
    for point in [*curve.breaks, *np.nextafter(curve.breaks, -9), -100.0, 100.0]:
        held = X.copy()
        held[:, 1] = point
        assert_allclose(curve([point])[0, 0], add_up(lower, upper, value, held).mean(), atol=1e-12)


def test_other_explainers():
    boxes, X = some_boxes(), some_rows(60)
    forest = Forest.from_boxes(*boxes)
    slow = VanillaPDExplainer(output="shap").fit(forest, X[:20]).transform(X[:4])
    fast = FastPDExplainer(output="shap").fit(forest, X[:20]).transform(X[:4])
    assert_allclose(slow, fast, atol=1e-12)
    ice = ICEExplainer(features=[0]).fit(forest, X)
    assert np.isfinite(ice.transform(X)).all()
    assert np.isfinite(ALEExplainer().fit(forest, X).transform(X)).all()
    # Boxes know nothing of training.
    with pytest.raises(ValueError, match="how its nodes were covered"):
        PathDependentExplainer().fit(forest)
    path = PathDependentExplainer(output="shap").fit(forest, X)
    total = path.intercept_ + path.transform(X).sum(axis=1)
    assert_allclose(total, add_up(*boxes, X), atol=1e-12)


def test_features_of_many():
    """Boxes over few features each, given by number."""
    rng = np.random.default_rng(0)
    features = np.array([[3, 1], [0, 3], [2, 2], [1, 0]])
    lower = np.array([[0.0, -1], [-INF, -0.5], [-1, 0], [-INF, -INF]])
    upper = np.array([[1.0, INF], [0.5, 0.5], [INF, 1], [INF, INF]])
    value = rng.normal(size=4)
    full = np.full((2, 4, 6), [[[-INF]], [[INF]]])
    for box, columns in enumerate(features):
        for k, column in enumerate(columns):
            full[0, box, column] = max(full[0, box, column], lower[box, k])
            full[1, box, column] = min(full[1, box, column], upper[box, k])
    X = rng.normal(size=(100, 6))
    forest = Forest.from_boxes(lower, upper, value, features=features, n_features=6)
    assert forest.n_inputs == 6
    assert_allclose(forest.predict(X), add_up(*full, value, X), atol=1e-12)
    one = Forest.from_boxes(lower[:, :1], upper[:, :1], value, features=[3])
    assert one.n_inputs == 4
    full[:] = [[[-INF]], [[INF]]]
    full[0, :, 3], full[1, :, 3] = lower[:, 0], upper[:, 0]
    assert_allclose(one.predict(X[:, :4]), add_up(*full[:, :, :4], value, X[:, :4]), atol=1e-12)


def test_boxes_without_bounds_and_no_boxes():
    free = [[-INF, -INF]]
    forest = Forest.from_boxes(free, [[INF, INF]], [3.0], intercept=1.0)
    none = Forest.from_boxes(np.empty((0, 2)), np.empty((0, 2)), [], intercept=4.0)
    X = np.random.default_rng(0).normal(size=(5, 2))
    for constant in (forest, none):
        assert (constant.n_trees, constant.n_inputs) == (0, 2)
        assert_array_equal(constant.predict(X), np.full(5, 4.0))
        explainer = FastPDExplainer(output="shap").fit(constant, X)
        assert explainer.intercept_ == 4.0
        assert_array_equal(explainer.transform(X), np.zeros((5, 2)))


def test_containers():
    boxes, X = some_boxes(), some_rows(40)
    forest = Forest.from_boxes(*boxes)
    expected = FastPDExplainer(output="shap").fit(forest, X).transform(X)
    table = pd.DataFrame(X, columns=list("abcd"))
    explainer = FastPDExplainer(output="shap").fit(forest, table)
    assert explainer.get_feature_names_out().tolist() == list("abcd")
    assert_array_equal(explainer.transform(table), expected)
    thin = sparse.csr_array(np.where(np.abs(X) < 0.6, 0, X))
    found = FastPDExplainer(output="shap").fit(forest, thin).transform(thin)
    dense = thin.toarray()
    assert_allclose(found, FastPDExplainer(output="shap").fit(forest, dense).transform(dense))
    again = pickle.loads(pickle.dumps(forest))
    assert again.digest() == forest.digest()
    pickle.loads(pickle.dumps(explainer)).partial_fit(table)


def test_nothing_given_is_changed_or_kept():
    lower, upper, value = some_boxes()
    copies, intercept = [part.copy() for part in (lower, upper, value)], np.zeros(1)
    forest = Forest.from_boxes(lower, upper, value, intercept=intercept)
    for part, before in zip((lower, upper, value), copies, strict=True):
        assert_array_equal(part, before)
    X = some_rows(20)
    before = forest.predict(X)
    for part in (lower, upper, value, intercept):
        part[:] = 7
    assert_array_equal(forest.predict(X), before)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"lower": [0.0]}, r"lower has shape \(1,\)"),
        ({"upper": [[1.0, 2.0, 3.0]]}, r"upper \(1, 3\)"),
        ({"lower": [[0.0, "a"]]}, "lower is no array of numbers"),
        ({"value": [1.0, 2.0]}, r"value has shape \(2,\); .* the 1 boxes"),
        ({"value": [np.nan]}, "leaf value or the intercept is not finite"),
        ({"intercept": np.inf}, "leaf value or the intercept is not finite"),
        ({"intercept": [1.0, 2.0]}, r"intercept has shape \(2,\)"),
        ({"upper": [[1.0, 0.0]]}, "box 0 is empty: it holds values of column 1 from 0.0"),
        ({"lower": [[0.0, np.nan]]}, "box 0 is empty"),
        ({"lower": [[np.inf, 0.0]], "upper": [[np.inf, 1.0]]}, "box 0 is empty"),
        ({"features": [0.5, 1.0]}, "expected integers"),
        ({"features": [0, -1]}, "features holds -1"),
        ({"features": [0, 1, 2]}, r"features has shape \(3,\)"),
        ({"n_features": 2.5}, "n_features=2.5: expected an integer"),
        ({"n_features": True}, "n_features=True: expected an integer"),
        ({"n_features": 1}, "n_features=1, and a box bounds column 1"),
    ],
)
def test_bad_input(arguments, message):
    given = {"lower": [[0.0, 0.0]], "upper": [[1.0, 1.0]], "value": [1.0], **arguments}
    with pytest.raises(ValueError, match=message):
        Forest.from_boxes(**given)


def test_bad_rows():
    forest = Forest.from_boxes(*some_boxes())
    with pytest.raises(ValueError, match=r"X has shape \(2, 3\); expected \(n_rows, 4\)"):
        forest.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="features"):
        FastPDExplainer().fit(forest, np.zeros((2, 3)))


def test_a_forest_predicts_by_the_rules_of_its_nodes():
    """Of every kind of node, against the rule written out for one row."""
    rng = np.random.default_rng(0)
    for strict, single in ((True, True), (False, True), (False, False)):
        builder = ForestBuilder(3, 2, strict=strict, single=single)
        for output in (0, 1, 1):
            builder.add(
                left=[1, 3, 5, -1, -1, -1, -1],
                right=[2, 4, 6, -1, -1, -1, -1],
                feature=[0, 2, 1, -1, -1, -1, -1],
                threshold=rng.normal(size=7).round(1),
                value=rng.normal(size=7),
                cover=np.ones(7),
                output=output,
                missing_left=rng.random(7) < 0.5,
                zero_as_missing=[not single, False, False, *[False] * 4],
                is_categorical=[False, True, False, *[False] * 4],
                listed_left=rng.random(7) < 0.5,
                categories={1: [0, 2, 5]},
            )
        forest = builder.build([0.5, -0.5])
        edges = np.append(forest.threshold[forest.feature == 0], [0.0, 1e-36, np.nan, np.inf])
        X = rng.choice(edges, (200, 3))
        X[:, 2] = rng.choice([0, 2, 5, 1, -1, -0.5, 2.9, 2.0**31, 1e300, np.nan], 200)
        X[:100, 0] = np.nextafter(X[:100, 0].astype(np.float32), np.float32(9))
        assert_allclose(forest.predict(X), oracles.predict(forest, X), atol=1e-14)
        assert find_reader(forest) is reader
        assert_allclose(reader.predict_raw(forest, X), forest.predict(X))
        FastPDExplainer().fit(forest, X)
