"""The order of rows in which neighbours fall into the same entries of the tables."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fastpd_sklearn.core import evaluation, ordering
from tests.core.test_evaluation import TERMS, by_masks, coverage_of, make


def test_rows_are_taken_by_the_halves_of_their_columns():
    _, core, X = make(n_rows=999, n_trees=4)
    rows, _ = core.bins.bin_matrix(X, 1)
    order = ordering.by_likeness(rows, core.bins.tests, core.geometry)
    assert_array_equal(np.sort(order), np.arange(len(X)))
    most_tested = np.bincount(core.bins.tests.slot[core.geometry.path_node]).argmax()
    halves = rows.column(most_tested) > np.median(rows.column(most_tested))
    assert np.count_nonzero(np.diff(halves[order])) == 1
    taken = ordering.taken(rows, order)
    for column, before in zip(taken.columns(), rows.columns(), strict=True):
        assert_array_equal(column, before[order])


@pytest.mark.parametrize("stride", [3, 5])
def test_values_are_put_in_places(stride):
    room = np.full((2, 2, stride), np.nan)
    values = room[..., :3]
    values[:] = np.arange(12.0).reshape(2, 2, 3)
    ordering.reorder(values, np.array([2, 0, 1]), 2)
    assert_array_equal(values, np.arange(12.0).reshape(2, 2, 3)[..., [2, 0, 1]])
    assert np.isnan(room[..., 3:]).all()
    with pytest.raises(ValueError, match="2 places for 3 rows"):
        ordering.reorder(values, np.array([1, 0]), 2)


def test_likeness_changes_no_bit(monkeypatch):
    _, core, X = make(n_rows=20_000, n_trees=8, n_outputs=2)
    coverage = coverage_of("empirical", core, X[:200])
    args = (core, X, coverage, "shap", TERMS["pairs"])
    plain = by_masks(*args)
    called = []
    monkeypatch.setattr(evaluation, "LIKE_ROWS", 1)
    monkeypatch.setattr(evaluation, "LIKE_BYTES", 1)
    monkeypatch.setattr(evaluation, "LIKE_LOOKUPS", 0)
    monkeypatch.setattr(
        evaluation, "by_likeness", lambda *a: called.append(1) or ordering.by_likeness(*a)
    )
    assert_array_equal(by_masks(*args), plain)
    assert called
