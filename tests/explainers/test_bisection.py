"""Jumps of functions that are known to jump there."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fastpd_sklearn.explainers._bisection import (
    TooManyBreaksError,
    find_breaks,
    floats_before,
    middle,
)

TYPES = [np.float32, np.float64]


def ends(dtype):
    largest = np.finfo(dtype).max
    return np.array([-largest, largest])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n_breaks", [0, 1, 7, 3000])
def test_steps_are_found_to_the_last_bit(dtype, n_breaks):
    rng = np.random.default_rng(0)
    breaks = np.exp(rng.normal(scale=8, size=n_breaks)) * rng.choice([-1, 1], n_breaks)
    breaks = np.unique(breaks.astype(dtype))

    def signature(points):
        assert points.dtype == dtype
        return np.searchsorted(breaks, points, "right")[:, None]

    assert_array_equal(find_breaks(signature, ends(dtype), dtype, n_breaks), breaks)


@pytest.mark.parametrize("dtype", TYPES)
def test_steps_at_odd_places(dtype):
    tiny, largest = np.nextafter(dtype(0), dtype(1)), np.finfo(dtype).max
    breaks = np.array([-largest / 2, -tiny, 0.0, tiny, 1.0, np.nextafter(dtype(1), dtype(2))])
    breaks = np.append(breaks, largest).astype(dtype)

    def signature(points):
        return np.searchsorted(breaks, points, "right")[:, None]

    assert_array_equal(find_breaks(signature, ends(dtype), dtype, len(breaks)), breaks)


def test_several_functions_at_once():
    def signature(points):
        return np.column_stack([points > 1.0, points <= -2.5, points >= 1.0])

    found = find_breaks(signature, ends(np.float64), np.float64, 3)
    assert_array_equal(found, [np.nextafter(-2.5, 0), 1.0, np.nextafter(1.0, 2)])


def test_a_function_that_rounding_makes_jump_to_and_fro():
    one = np.float64(1).view(np.int64)

    def signature(points):
        place = points.view(np.int64) - one
        return np.where(np.abs(place) < 9, place % 2, place > 0)[:, None]

    found = find_breaks(signature, np.array([0.5, 2.0]), np.float64, 1)
    brute = signature(np.arange(one - 50, one + 50).view(np.float64))[:, 0]
    truth = np.arange(one - 49, one + 50)[brute[1:] != brute[:-1]].view(np.float64)
    assert len(truth) > 10
    assert_array_equal(found, truth)


def test_a_function_that_jumps_too_often():
    with pytest.raises(TooManyBreaksError, match="more than 4 jumps"):
        find_breaks(lambda x: np.sin(x)[:, None] > 0, np.linspace(0, 900, 9), np.float64, 4)


@pytest.mark.parametrize("dtype", TYPES)
def test_neighbours_and_middles(dtype):
    x = np.array([-1.0, 0.0, 1e-30, 5.0], dtype=dtype)
    before = floats_before(x, dtype).astype(dtype)
    assert np.all(before < x)
    assert_array_equal(np.nextafter(before, dtype(np.inf)), x)
    low, high = -3.0, 1e30
    for _ in range(70):
        point = middle(low, high, dtype)
        assert low <= point <= high
        low, high = (point, high) if point <= 1.5 else (low, point)
    assert low == 1.5
    assert high == np.nextafter(dtype(1.5), dtype(2))
