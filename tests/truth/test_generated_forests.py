"""Forests that no library would grow, against the definition."""

from itertools import combinations
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastpd_sklearn.core import background
from fastpd_sklearn.explainers._fastpd import EmpiricalEngine
from fastpd_sklearn.explainers._pathdependent import PathEngine
from fastpd_sklearn.forest import Head, InputMap, Reading
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, ForestBuilder
from tests import oracles
from tests.truth.helpers import EXPLAINERS, OUTPUTS, assert_close, assert_is_game, make_explainer
from tests.truth.toys import ForestModel


def examples(number):
    """Settings of a test: the same examples in every run."""
    return settings(
        max_examples=number,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


THRESHOLDS = [-1.0, 0.0, 0.1, 0.5, 0.5, 1e-40, ZERO_THRESHOLD, 1e38, -1e300]
BESIDE = [np.nextafter(t, way) for t in THRESHOLDS for way in (-np.inf, np.inf)]
SINGLE = [float(np.float32(np.clip(t, -1e38, 1e38))) for t in THRESHOLDS + BESIDE]
VALUES = sorted({*THRESHOLDS, *BESIDE, *SINGLE, -0.0, 0.3, -5e-324}) + [np.nan] * 6
CODES = [0.0, 1.0, 2.0, 3.0, 1.9, -0.5, -1.0, 9.0, 1e10, np.nan, np.nan]


@st.composite
def forests(draw):
    """A forest with anything in it that the representation allows."""
    n_inputs = draw(st.integers(1, 4))
    categorical = draw(st.lists(st.booleans(), min_size=n_inputs, max_size=n_inputs))
    n_outputs = draw(st.integers(1, 3))
    width = draw(st.integers(1, n_outputs))
    single = draw(st.booleans())
    leaf = st.lists(st.integers(-9, 9).map(lambda v: v / 2), min_size=width, max_size=width)
    node = st.tuples(
        st.integers(0, n_inputs - 1),
        st.sampled_from(THRESHOLDS),
        st.booleans(),  # missing_left
        # Near zero is a matter of doubles.
        st.just(False) if single else st.booleans(),  # zero_as_missing
        st.booleans(),  # listed_left
        st.sets(st.integers(0, 3), max_size=3),  # categories
        st.integers(0, 4),  # cover of the left child
        st.integers(0, 4),  # cover of the right child
    )
    trees = st.recursive(leaf, lambda part: st.tuples(node, part, part), max_leaves=10)
    builder = ForestBuilder(n_inputs, n_outputs, draw(st.booleans()), single)
    for tree in draw(st.lists(trees, min_size=1, max_size=3)):
        first = draw(st.integers(0, n_outputs - width))
        builder.add(**flatten(tree, categorical, width), output=first)
    forest = builder.build(draw(st.integers(-3, 3)))
    return forest, categorical


def flatten(tree, categorical, width):
    names = ("feature", "threshold", "missing_left", "zero_as_missing", "listed_left")
    arrays = {name: [] for name in (*names, "left", "right", "value", "cover", "is_categorical")}
    categories = {}

    def append(part, cover):
        k = len(arrays["left"])
        is_leaf = isinstance(part, list)
        node = (-1, 0.0, False, False, True) if is_leaf else part[0][:5]
        of_categories = not is_leaf and categorical[node[0]]
        for name, item in zip(names, node, strict=True):
            arrays[name].append(item)
        arrays["zero_as_missing"][k] &= not of_categories
        arrays["is_categorical"].append(of_categories)
        arrays["value"].append(part if is_leaf else [0.0] * width)
        arrays["cover"].append(cover)
        arrays["left"].append(-1)
        arrays["right"].append(-1)
        if not is_leaf:
            if of_categories:
                categories[k] = sorted(part[0][5])
            arrays["left"][k] = append(part[1], float(part[0][6]))
            arrays["right"][k] = append(part[2], float(part[0][7]))
        return k

    append(tree, 1.0)
    return {**arrays, "categories": categories}


@st.composite
def games(draw):
    """A forest, a background with weights, rows to explain, and players."""
    forest, categorical = draw(forests())
    n_rows = draw(st.integers(1, 12))
    pools = [CODES if c else VALUES for c in categorical]
    pools = [[np.nan] if draw(st.integers(0, 7)) == 0 else pool for pool in pools]
    rows = st.tuples(*(st.sampled_from(pool) for pool in pools))
    background, X = (np.array(draw(st.lists(rows, min_size=n, max_size=n))) for n in (n_rows, 4))
    if draw(st.booleans()):
        with np.errstate(over="ignore"):
            finite = np.clip(background, -3e38, 3e38), np.clip(X, -3e38, 3e38)
        background, X = (rows.astype(np.float32) for rows in finite)
    weights = draw(
        st.none()
        | st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n_rows, max_size=n_rows)
    )
    weights = None if weights is None else np.array(weights)
    if weights is not None and weights.sum() == 0:
        weights = weights + 1.0
    owner = draw(st.lists(st.integers(0, 3), min_size=len(pools), max_size=len(pools)))
    players = [[j for j, o in enumerate(owner) if o == player] for player in sorted(set(owner))]
    players.sort()
    return forest, background, weights, X, players


def enumerate_game(coverage, forest, background, weights, X, players):
    if coverage == "path":
        counts = oracles.passages(forest, background) @ (
            np.ones(len(background)) if weights is None else weights
        )
        return oracles.path_game(forest, [counts, forest.cover], X, players)
    predict = lambda rows: oracles.predict_many(forest, rows)  # noqa: E731
    return oracles.interventional_game(predict, background, weights, X, players)


def check_engine(coverage, forest, background, weights, X, players):
    reading = Reading(InputMap(n_columns=forest.n_inputs), forest, Head(additive=("raw",)))
    engine_class = PathEngine if coverage == "path" else EmpiricalEngine
    engine = engine_class(reading, [np.array(columns) for columns in players], 1)
    engine.update(background, weights)
    game = enumerate_game(coverage, forest, background, weights, X, players)
    scale = forest.scale()
    assert_close(engine.predict(X), oracles.predict_many(forest, X), scale)
    assert_close(engine.intercept, game[()][0], scale)
    n = len(players)
    for index in ("component", "shap", "banzhaf", "total"):
        for largest in sorted({1, min(2, n), n}):
            terms = [T for k in range(1, largest + 1) for T in combinations(range(n), k)]
            values = engine.index_values(X, index, terms)
            truth = [oracles.INDICES[index](game, T) for T in terms]
            assert_close(values, np.stack(truth, axis=1), scale)
    common = engine.common_terms(None)
    for T in oracles.subsets(range(n)):
        if len(T) > 1 and T not in common:
            assert_close(oracles.derivative(game, T), np.zeros((len(X), forest.n_outputs)), scale)


@examples(100)
@given(games())
def test_empirical(game):
    check_engine("empirical", *game)


@examples(100)
@given(games())
def test_counted(game):
    """As if there were many rows, which are not kept."""
    with mock.patch.object(background, "FEW_ROWS", 0):
        check_engine("empirical", *game)


@examples(100)
@given(games())
def test_path_dependent(game):
    check_engine("path", *game)


@examples(25)
@given(games(), st.sampled_from(sorted(EXPLAINERS)))
def test_explainers(game, coverage):
    """The same from outside, with the check of the reading in between."""
    forest, background, weights, X, players = game
    truth = enumerate_game(coverage, *game)
    names = ["+".join(f"x{j}" for j in columns) for columns in players]
    groups = {
        name: columns for name, columns in zip(names, players, strict=True) if len(columns) > 1
    }
    for output in OUTPUTS:
        order = min(2, len(players)) if output == "pd" else "auto"
        explainer = make_explainer(coverage, output, names, max_order=order, groups=groups)
        explainer.fit(ForestModel(forest), background, sample_weight=weights)
        assert_is_game(explainer, X, truth, names, forest.scale())


@examples(100)
@given(forests(), st.integers(0, 99))
def test_the_oracles_agree(forest_and_kinds, seed):
    """Routing row by row and all rows at once are the same rule."""
    forest, categorical = forest_and_kinds
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.choice(CODES if c else VALUES, 20) for c in categorical])
    assert np.array_equal(oracles.predict(forest, X), oracles.predict_many(forest, X))
