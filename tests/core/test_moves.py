"""Moved rows against rows that are moved one by one and predicted by definition."""

import numpy as np
import pytest
from fastpd_sklearn.core.moves import Steps, Walker
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from tests import oracles
from tests.core.grow import grow, rows_for

FORESTS = {
    "shallow": {"n_nodes": 4},
    "deep": {"n_nodes": 40},
    "very deep": {"n_nodes": 300},
    "strict float32": {"n_nodes": 12, "strict": True, "single": True},
    "zero is missing": {"n_nodes": 15, "zero": True},
    "several outputs": {"n_nodes": 10, "width": 2, "n_outputs": 4},
    "no test": {"n_nodes": 0},
}


def walks_of(forest):
    players = np.arange(forest.n_inputs, dtype=np.int32)
    return WalkModel(forest, players, forest.n_inputs, ZERO_THRESHOLD)


def steps_of(X, column, order, rng):
    """Points, rows of ``X``, and a step for every row which lies between its ends."""
    values = X[:, column]
    known = np.flatnonzero(~np.isnan(values))
    points = rng.choice(known, 7) if len(known) else np.empty(0, int)
    is_categorical = column == X.shape[1] - 1
    if order == "ascending" and not is_categorical:  # numbers in bins
        points = points[np.argsort(values[points])]
        step = np.searchsorted(values[points], values) - 1
        step[np.isnan(values) | (step >= len(points) - 1)] = -1
    else:  # categories: a row is at one of the ends
        points = np.append(points, rng.integers(len(X)))  # which may be missing
        place = np.array(
            [
                next(iter(np.flatnonzero(same)), -1)
                for same in (
                    (values[points] == v) | (np.isnan(values[points]) & np.isnan(v)) for v in values
                )
            ]
        )
        step = np.where((place >= 0) & (place < len(points) - 1), place, -1)
    return points, step


@pytest.mark.parametrize("order", ["ascending", "any"])
@pytest.mark.parametrize("n_rows", [1, 31, 300])
@pytest.mark.parametrize("name", FORESTS)
def test_moves_change_what_predictions_change(name, n_rows, order):
    rng = np.random.default_rng(n_rows)
    forest = grow(rng, 4, **FORESTS[name])
    walks = walks_of(forest)
    X = rows_for(rng, n_rows, 4)
    rows, _ = walks.bins.bin_matrix(X, 1)
    columns = [int(c) for c in walks.bins.columns for _ in range(2)]  # two moves of each column
    made = [steps_of(X, column, order, rng) for column in columns]
    moves = []
    for column, (points, step) in zip(columns, made, strict=True):
        slot = walks.bins.columns.tolist().index(column)
        own = rows.column(slot)
        n_codes = int(walks.bins.n_codes[slot])
        if len(points):
            moves.append(Steps(slot, own[points], step, own, walks.is_line[column], n_codes))
    made = [(column, *two) for column, two in zip(columns, made, strict=True) if len(two[0])]
    walker = Walker(walks.trees)
    apart = walker.move(rows, moves, True, 1)
    together = walker.move(rows, moves, False, 1)
    assert apart.shape == (len(moves), 2, forest.n_outputs, n_rows)
    own = oracles.predict_many(forest, X)
    for k, (column, points, step) in enumerate(made):
        truth = []
        for end in (0, 1):
            moved = X.copy()
            moves_here = step >= 0
            moved[moves_here, column] = X[points[step[moves_here] + end], column]
            truth.append(oracles.predict_many(forest, moved) - own)
            assert_allclose(apart[k, end].T, truth[end], atol=1e-12)
        assert_allclose(together[k, 0].T, truth[1] - truth[0], atol=1e-12)
    assert_array_equal(apart, walker.move(rows, moves, True, 2))


def test_blocks_of_rows_do_not_matter():
    rng = np.random.default_rng(0)
    forest = grow(rng, 3, 25)
    walks = walks_of(forest)
    X = rows_for(rng, 5000, 3)
    points = np.argsort(X[:60, 0])[:40]
    column = int(walks.bins.columns[0])
    points = points[np.argsort(X[points, column])]
    points = points[~np.isnan(X[points, column])]
    step = np.searchsorted(X[points, column], X[:, column]) - 1
    step[np.isnan(X[:, column]) | (step >= len(points) - 1)] = -1

    def moved(part):
        rows, _ = walks.bins.bin_matrix(X[part], 1)
        codes = walks.bins.bin_matrix(X[points], 1)[0].column(0)
        steps = Steps(0, codes, step[part], rows.column(0), True, int(walks.bins.n_codes[0]))
        return Walker(walks.trees).move(rows, [steps], False, 1)[0, 0, 0]

    parts = [moved(slice(start, start + 100)) for start in range(0, 5000, 100)]
    assert np.any(parts[0] != 0)
    assert_allclose(moved(slice(None)), np.concatenate(parts), atol=1e-13)
