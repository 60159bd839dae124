"""Room for the values of terms."""

import numpy as np
import pytest

from fastpd_sklearn.core.room import LINE, zeros


@pytest.mark.parametrize("n_rows", [0, 1, 7, 8, 9, 1000, 1001])
def test_first_rows_begin_lines(n_rows):
    room = zeros(3, 2, n_rows)
    assert room.shape == (3, 2, n_rows)
    assert room.dtype == np.float64
    assert not room.any()
    assert n_rows < 2 or room.strides[2] == room.itemsize
    if n_rows >= LINE:
        starts = [room[t, o].ctypes.data for t in range(3) for o in range(2)]
        assert not np.any(np.array(starts) % (LINE * room.itemsize))


def test_values_do_not_overlap():
    room = zeros(2, 3, 11)
    room += np.arange(room.size).reshape(room.shape)
    np.testing.assert_array_equal(room.ravel(), np.arange(room.size))
