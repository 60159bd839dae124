"""Thresholds sorted by digits, against numpy's sorting and rounding."""

import numpy as np
import pytest
from fastpd_sklearn.core.thresholds import rank_thresholds
from numpy.testing import assert_array_equal

ODD = [0.0, -0.0, 1e-46, -1e-46, 1e-45, -1e-45, 5e-324, -5e-324, np.inf, -np.inf, 1e39, -1e39]
ODD += [3.4028235677973366e38, 1.0, 0.1, -0.1, 1 / 3, np.nextafter(1.0, 2.0)]


def as_single(threshold, strict):
    """The float32 numbers that decide alike."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = threshold.astype(np.float32)
        if strict:
            wrong, towards = rounded < threshold, np.float32(np.inf)
        else:
            wrong, towards = rounded > threshold, np.float32(-np.inf)
        return np.where(wrong, np.nextafter(rounded, towards), rounded).astype(np.float64)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("n", [1, 7, 48, 49, 300, 5000])
def test_ranks_are_places_among_the_sorted(n, single, strict):
    rng = np.random.default_rng(n)
    for n_slots in (1, 5):
        slot = rng.integers(-1, n_slots, n).astype(np.int32)
        is_categorical = rng.random(n) < 0.1
        threshold = rng.normal(size=n) * 10.0 ** rng.integers(-40, 39, n)
        threshold[rng.random(n) < 0.4] = rng.choice(ODD)
        odd = rng.random(n) < 0.4
        threshold[odd] = rng.choice(ODD, odd.sum())
        has_none = (slot < 0) | is_categorical
        threshold[has_none] = np.nan
        extra = {} if single else {n_slots - 1: np.array([-1e-35, 1e-35])}
        edges, rank = rank_thresholds(
            slot, is_categorical, threshold, n_slots, extra, strict, single
        )
        compared = as_single(threshold, strict) if single else threshold
        assert not rank[has_none].any()
        for s in range(n_slots):
            own = compared[(slot == s) & ~has_none]
            truth = np.unique(np.concatenate([own, extra.get(s, [])]))
            assert_array_equal(edges[s], truth)
            assert_array_equal(
                rank[(slot == s) & ~has_none], np.searchsorted(truth, own), strict=False
            )


def test_nothing_to_sort():
    no = np.zeros(3, bool)
    edges, rank = rank_thresholds(
        np.full(3, -1, np.int32), no, np.full(3, np.nan), 0, {}, False, True
    )
    assert edges == []
    assert_array_equal(rank, [0, 0, 0])
