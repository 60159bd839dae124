"""Moved rows against rows that are moved one by one and predicted by definition."""

import numpy as np
import pytest
from fastpd_sklearn.core.moves import Walker
from numpy.testing import assert_allclose, assert_array_equal

from tests import oracles
from tests.core.grow import core_of, grow, rows_for

FORESTS = {
    "shallow": {"n_nodes": 4},
    "deep": {"n_nodes": 40},
    "strict float32": {"n_nodes": 12, "strict": True, "single": True},
    "zero is missing": {"n_nodes": 15, "zero": True},
    "several outputs": {"n_nodes": 10, "width": 2, "n_outputs": 4},
    "no test": {"n_nodes": 0},
}
WIDE = np.uint32(0xFFFFFFFF)


def wide_codes(core, X, slot):
    rows, _ = core.bins.bin_matrix(X, 1)
    codes = rows.column(slot)
    return np.where(codes == np.iinfo(codes.dtype).max, WIDE, codes.astype(np.uint32))


def ends_of(core, X, rng):
    """For every column two rows of ``X`` to take the value from, on both sides of the row's own."""
    low, high = [], []
    for slot in range(len(core.bins.columns)):
        codes = wide_codes(core, X, slot).astype(np.int64)
        one, other = np.empty((2, len(X)), np.int64)
        for i, code in enumerate(codes):
            known = codes < WIDE
            below = np.flatnonzero(known & (codes <= code))
            above = np.flatnonzero(known & (codes >= code))
            is_missing = code == WIDE
            one[i] = i if is_missing else rng.choice(below)
            other[i] = i if is_missing else rng.choice(above)
        low.append(one)
        high.append(other)
    return np.array(low), np.array(high)


@pytest.mark.parametrize("n_rows", [1, 31, 70])
@pytest.mark.parametrize("name", FORESTS)
def test_moves_change_what_predictions_change(name, n_rows):
    rng = np.random.default_rng(n_rows)
    forest = grow(rng, 4, **FORESTS[name])
    core = core_of(forest)
    X = rows_for(rng, n_rows, 4)
    rows, _ = core.bins.bin_matrix(X, 1)
    n_slots = len(core.bins.columns)
    sources = ends_of(core, X, rng) if n_slots else np.empty((2, 0, n_rows), np.int64)
    codes = [wide_codes(core, X, slot) for slot in range(n_slots)]
    ends = [
        np.array([c[s] for c, s in zip(codes, side, strict=True)], np.uint32).reshape(-1, n_rows)
        for side in sources
    ]
    walker = Walker(core.bins.tests, forest)
    found = walker.move(rows, np.arange(n_slots, dtype=np.int32), *ends, 1)
    assert found.shape == (n_slots, 2, forest.n_outputs, n_rows)
    own = oracles.predict_many(forest, X)
    for slot, column in enumerate(core.bins.columns):
        for end in (0, 1):
            moved = X.copy()
            moved[:, column] = X[sources[end][slot], column]
            truth = oracles.predict_many(forest, moved) - own
            assert_allclose(found[slot, end].T, truth, atol=1e-12)
    again = walker.move(rows, np.arange(n_slots, dtype=np.int32), *ends, 2)
    assert_array_equal(found, again)


def test_only_the_columns_that_move_are_asked():
    rng = np.random.default_rng(3)
    forest = grow(rng, 4, 20)
    core = core_of(forest)
    X = rows_for(rng, 50, 4)
    rows, _ = core.bins.bin_matrix(X, 1)
    low, high = ends_of(core, X, rng)
    slot = 1
    codes = wide_codes(core, X, slot)
    of_slot = np.full(len(core.bins.columns), -1, np.int32)
    of_slot[slot] = 0
    walker = Walker(core.bins.tests, forest)
    found = walker.move(rows, of_slot, codes[low[[slot]]], codes[high[[slot]]], 1)
    assert found.shape == (1, 2, 1, 50)
    own = oracles.predict_many(forest, X)
    moved = X.copy()
    moved[:, core.bins.columns[slot]] = X[high[slot], core.bins.columns[slot]]
    assert_allclose(found[0, 1].T, oracles.predict_many(forest, moved) - own, atol=1e-12)
    assert np.any(found != 0)
