"""Codes against their definition, and the tests of nodes on codes against the rule of a forest."""

import numpy as np
import pytest
from fastpd_sklearn.core.binning import Bins
from numpy.testing import assert_array_equal

from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from tests import oracles
from tests.core.grow import core_of, grow, rows_for

EXTREMES = [-np.inf, -1.7e308, -3.5e38, -1e-320, -0.0, 0.0, 5e-324, 1e-46, 1e-40, 3.5e38, np.inf]


def numeric_bins(thresholds, strict=False, single=False):
    """Bins of one column that nodes of these thresholds test."""
    n = len(thresholds)
    no = np.zeros(n, bool)
    return Bins(
        np.zeros(n, np.int32),
        np.asarray(thresholds, np.float64),
        np.arange(n) % 2 == 0,
        no,
        no,
        no,
        np.zeros(n + 1, np.int64),
        np.empty(0, np.int32),
        ZERO_THRESHOLD,
        strict,
        single,
    )


def codes_of(rows, slot=0):
    width = int(rows.width[slot])
    start = int(rows.offset[slot])
    return rows.data[start : start + width * rows.n_rows].view(f"u{width}")


def decisions(tests, node, codes):
    """Which codes go left at a node."""
    largest = np.uint64(np.iinfo(codes.dtype).max)
    if tests.table[node] >= 0:
        place = np.minimum(codes.astype(np.int64), int(tests.span[node]))
        return tests.tables[tests.table[node] + place].astype(bool)
    return ((codes.astype(np.uint64) - np.uint64(tests.low[node])) & largest) <= tests.span[node]


def beside(thresholds):
    t = np.asarray(thresholds, np.float64)
    near = np.concatenate([t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf)])
    f = t.astype(np.float32)
    single = np.concatenate([f, np.nextafter(f, f.dtype.type(-np.inf)), np.nextafter(f, f + 1)])
    return np.unique(np.concatenate([near, single.astype(np.float64), EXTREMES, [np.nan]]))


@pytest.mark.parametrize(("n", "width"), [(1, 1), (48, 1), (49, 1), (254, 1), (255, 2), (1000, 2)])
@pytest.mark.parametrize("strict", [False, True])
def test_codes_are_ranks(n, width, strict):
    thresholds = np.unique(np.random.default_rng(n).normal(size=n))
    bins = numeric_bins(thresholds, strict)
    assert_array_equal(bins.width, [width])
    X = beside(thresholds)[:, None]
    rows, _ = bins.bin_matrix(X, 1)
    codes = codes_of(rows)
    below = thresholds <= X if strict else thresholds < X
    assert_array_equal(codes[:-1], below.sum(axis=1)[:-1])
    assert codes[-1] == np.iinfo(codes.dtype).max  # NaN comes last


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "width"), [(65534, 2), (65535, 4), (70000, 4)])
def test_wide_codes(n, width, single):
    thresholds = np.arange(n) / 64.0
    bins = numeric_bins(thresholds, single=single)
    assert_array_equal(bins.width, [width])
    X = np.random.default_rng(0).permutation(np.concatenate([thresholds, thresholds + 1 / 128]))
    rows, _ = bins.bin_matrix(np.append(X, np.nan)[:, None], 2)
    codes = codes_of(rows)
    assert_array_equal(codes[:-1], np.searchsorted(thresholds, X))
    assert codes[-1] == np.iinfo(codes.dtype).max
    for node in (0, 1, n // 2, n - 1):
        left = np.append(thresholds[node] >= X, node % 2 == 0)
        assert_array_equal(decisions(bins.tests, node, codes), left)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("strict", [False, True])
def test_decisions_at_extremes(strict, single, dtype):
    thresholds = [-1e300, -3e38, -0.1, -1e-46, -0.0, 0.0, 1e-320, 1e-40, 0.1, 0.5, 3e38, 1e300]
    bins = numeric_bins(thresholds, strict, single)
    with np.errstate(over="ignore"):
        X = beside(thresholds).astype(dtype)
    codes = codes_of(bins.bin_matrix(X[:, None], 1)[0])
    with np.errstate(over="ignore"):
        v = X.astype(np.float32).astype(np.float64) if single else X.astype(np.float64)
    for node, t in enumerate(thresholds):
        left = np.where(np.isnan(v), node % 2 == 0, v < t if strict else v <= t)
        assert_array_equal(decisions(bins.tests, node, codes), left)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("strict", "single", "zero"),
    [(False, False, True), (True, False, True), (False, True, False), (True, True, False)],
)
def test_every_node_of_a_forest(strict, single, zero, dtype):
    rng = np.random.default_rng(3)
    forest = grow(rng, 4, 40, strict=strict, single=single, zero=zero)
    bins = core_of(forest).bins
    near_zero = [0.0, -0.0, 1e-36, ZERO_THRESHOLD, np.nextafter(ZERO_THRESHOLD, 1), 2e-35]
    X = rows_for(rng, 500, 4)
    X[:100, 0] = np.resize([*near_zero, *(-x for x in near_zero)], 100)
    X = X.astype(dtype)
    rows, infinite = bins.bin_matrix(X, 1)
    assert infinite == -1
    for node in np.flatnonzero(forest.left >= 0):
        slot = int(bins.tests.slot[node])
        column = X[:, bins.columns[slot]].astype(np.float64)
        truth = oracles.goes_left_many(forest, node, column)
        assert_array_equal(decisions(bins.tests, node, codes_of(rows, slot)), truth)


def layouts(X):
    """The same numbers in other layouts of memory."""
    padded = np.full((3 * len(X), 2 * X.shape[1]), np.nan, X.dtype)
    padded[::3, ::2] = X
    reverse = X[::-1, ::-1].copy()
    read_only = X.copy()
    read_only.flags.writeable = False
    return {
        "C": np.ascontiguousarray(X),
        "F": np.asfortranarray(X),
        "strided": padded[::3, ::2],
        "reversed": reverse[::-1, ::-1],
        "read-only": read_only,
        "broadcast rows": X,
    }


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_and_threads_make_no_difference(dtype):
    rng = np.random.default_rng(0)
    bins = core_of(grow(rng, 4, 60)).bins
    X = rows_for(rng, 1000, 4, dtype)
    expected = bins.bin_matrix(X, 1)[0].data
    for layout in layouts(X).values():
        for n_threads in (1, 2, 3):
            assert_array_equal(bins.bin_matrix(layout, n_threads)[0].data, expected)


def test_columns_one_by_one():
    rng = np.random.default_rng(0)
    bins = core_of(grow(rng, 4, 60)).bins
    X = rows_for(rng, 301, 4)
    whole, _ = bins.bin_matrix(X, 1)
    rows, columns = bins.empty_rows(len(X))
    for slot, column in enumerate(bins.columns):
        assert not bins.bin_column(X[:, column], slot, rows, 2)
        assert_array_equal(columns[slot], codes_of(whole, slot))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_found(value):
    rng = np.random.default_rng(0)
    bins = core_of(grow(rng, 5, 60)).bins
    X = rows_for(rng, 700, 6)  # the last column is tested by no node
    assert bins.bin_matrix(X, 1)[1] == -1
    X[600, 5] = value
    assert bins.bin_matrix(X, 1)[1] == -1
    X[601, 2] = value
    for n_threads in (1, 2):
        assert bins.bin_matrix(X, n_threads)[1] == 2
    rows, _ = bins.empty_rows(len(X))
    assert bins.bin_column(X[:, 2], 2, rows, 1)


def test_what_rounding_makes_infinite():
    thresholds = [0.5]
    X = np.array([[3.5e38]])
    assert numeric_bins(thresholds).bin_matrix(X, 1)[1] == -1
    assert numeric_bins(thresholds, single=True).bin_matrix(X, 1)[1] == 0


def test_no_rows_and_no_tests():
    bins = core_of(grow(np.random.default_rng(0), 4, 10)).bins
    rows, infinite = bins.bin_matrix(np.empty((0, 4)), 2)
    assert (rows.n_rows, infinite) == (0, -1)
    nothing = core_of(grow(np.random.default_rng(0), 4, 0)).bins
    rows, infinite = nothing.bin_matrix(np.full((3, 4), np.inf), 2)
    assert (rows.n_rows, len(rows.data), infinite) == (3, 0, -1)
