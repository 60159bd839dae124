"""Linear leaves in a forest, against their definition written out."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.forest import ForestBuilder
from fastpd_sklearn.forest._forest import check_forest, excludes_missing
from fastpd_sklearn.forest._joining import sum_forests
from fastpd_sklearn.forest._linear_leaves import LinearLeaves, factors_of, with_linear_leaves
from tests import oracles

#              x0 <= 0 (missing left)          node 0
#             /                   \
#      x1 <= 1 (missing left)   category of x2 in {1, 3}     nodes 1 and 4
#       /        \                 /        \
#   leaf 2     leaf 3          leaf 5     leaf 6
LEAVES = [2, 3, 5, 6]
VALUE = [10.0, 20.0, 30.0, 40.0]


def constant_forest():
    builder = ForestBuilder(n_inputs=3, n_outputs=1, strict=False, single=False)
    builder.add(
        left=[1, 2, -1, -1, 5, -1, -1],
        right=[4, 3, -1, -1, 6, -1, -1],
        feature=[0, 1, -1, -1, 2, -1, -1],
        threshold=[0.0, 1.0, 0, 0, 0, 0, 0],
        missing_left=[True, True, False, False, False, False, False],
        is_categorical=[False, False, False, False, True, False, False],
        categories={4: [1, 3]},
        value=[0, 0, *VALUE[:2], 0, *VALUE[2:]],
        cover=[8, 5, 3, 2, 3, 1, 2],
    )
    return builder.build(intercept=0.5)


LINES = {
    2: (1.0, {0: 2.0, 1: -1.0}),
    3: (2.0, {1: 3.0}),
    5: (3.0, {}),
    6: (4.0, {0: 5.0}),
}
"""Constant and slopes of each leaf."""


def linear_leaves(lines):
    return LinearLeaves(
        node=np.array(list(lines)),
        constant=np.array([constant for constant, _ in lines.values()]),
        slope_node=np.array([leaf for leaf, (_, slopes) in lines.items() for _ in slopes]),
        slope_input=np.array([j for _, slopes in lines.values() for j in slopes], np.int64),
        slope=np.array([b for _, slopes in lines.values() for b in slopes.values()]),
    )


def by_definition(x, lines):
    """The prediction for one row: LightGBM's rule for leaves that lack an input."""
    x0, x1, x2 = x
    if np.isnan(x0) or x0 <= 0:
        leaf = 2 if np.isnan(x1) or x1 <= 1 else 3
    else:
        leaf = 5 if x2 in (1, 3) else 6
    constant, slopes = lines.get(leaf, (VALUE[LEAVES.index(leaf)], {}))
    if any(np.isnan(x[j]) for j in slopes):
        return 0.5 + VALUE[LEAVES.index(leaf)]
    return 0.5 + constant + sum(slope * x[j] for j, slope in slopes.items())


GRID = np.array(
    [[a, b, c] for a in (-1, 0, 2, np.nan) for b in (-3, 1, 4, np.nan) for c in (0, 1, 3, np.nan)]
)


@pytest.mark.parametrize("chosen", [LEAVES, [2], [3, 6], [5]], ids=str)
def test_leaves_fall_back_where_an_input_is_missing(chosen):
    lines = {leaf: LINES[leaf] for leaf in chosen}
    forest = with_linear_leaves(constant_forest(), linear_leaves(lines))
    check_forest(forest)
    truth = [by_definition(x, lines) for x in GRID]
    assert_allclose(oracles.predict(forest, GRID)[:, 0], truth, atol=1e-12)


def test_slopes_that_no_test_mentions():
    """A leaf may be linear in an input that is tested nowhere on the way to it."""
    lines = {5: (1.0, {1: 2.0}), 6: (0.0, {1: 1.0, 0: 1.0})}
    forest = with_linear_leaves(constant_forest(), linear_leaves(lines))
    check_forest(forest)
    truth = [by_definition(x, lines) for x in GRID]
    assert_allclose(oracles.predict(forest, GRID)[:, 0], truth, atol=1e-12)


def test_tests_for_missing_values_are_few():
    """One above both leaves that are linear in x1, one for x0, none where x0 is never missing."""
    lines = {2: (0.0, {0: 1.0, 1: 1.0}), 3: (0.0, {0: 1.0, 1: 1.0}), 6: (0.0, {0: 1.0})}
    forest = with_linear_leaves(constant_forest(), linear_leaves(lines))
    tests = np.flatnonzero(np.isinf(forest.threshold))
    assert_array_equal(forest.feature[tests], [0, 1])
    assert not forest.missing_left[tests].any()


def test_factors_add_up():
    forest = with_linear_leaves(constant_forest(), linear_leaves(LINES))
    factors = factors_of(forest)
    assert [factor.input for factor in factors] == [0, 1]
    known = np.nan_to_num(GRID)
    total = oracles.predict(replace(forest, slope_node=forest.slope_node[:0]), GRID)
    for factor in factors:
        assert not factor.forest.is_linear
        check_forest(factor.forest)
        value = oracles.predict(factor.forest, GRID)
        assert_array_equal(value[np.isnan(GRID[:, factor.input])], 0)
        assert_array_equal(factor.forest.threshold, forest.threshold[factor.node])
        total += known[:, [factor.input]] * value
    assert_allclose(total, oracles.predict(forest, GRID), atol=1e-12)


def test_weighted_sums_of_forests():
    forest = with_linear_leaves(constant_forest(), linear_leaves(LINES))
    weights = [np.array([[2.0], [0.0], [-1.0]]), np.array([[0.0], [1.0], [0.5]])]
    joined = sum_forests([forest, constant_forest()], weights, np.array([1.0, 2.0, 3.0]))
    one, other = oracles.predict(forest, GRID), oracles.predict(constant_forest(), GRID)
    truth = one @ weights[0].T + other @ weights[1].T + [1.0, 2.0, 3.0]
    assert_allclose(oracles.predict(joined, GRID), truth, atol=1e-12)


def test_size_of_the_numbers_row_by_row():
    forest = with_linear_leaves(constant_forest(), linear_leaves(LINES))
    rows = np.array([[1.0, -2.0, 0.0], [np.nan, 10.0, 1.0]])
    assert_allclose(forest.slope_scale(rows)[:, 0], [5 * 1 + 3 * 2, 3 * 10])


def test_which_nodes_have_all_values():
    forest = constant_forest()
    node, column = np.array([2, 3, 6, 6, 0]), np.array([1, 1, 0, 2, 0])
    assert_array_equal(excludes_missing(forest, node, column), [False, True, True, False, False])


def one_slope(node, column, slope=1.0):
    return {
        "slope_node": np.array([node]),
        "slope_input": np.array([column]),
        "slope": np.array([[slope]]),
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (one_slope(1, 0), "no leaf has a slope"),
        (one_slope(9, 0), "not nodes"),
        (one_slope(6, 3), "not among the 3"),
        (one_slope(6, 0, np.nan), "not finite"),
        (one_slope(2, 1), "one of its inputs missing"),
    ],
)
def test_what_are_no_linear_leaves(fields, message):
    with pytest.raises(ValueError, match=message):
        check_forest(replace(constant_forest(), **fields))
