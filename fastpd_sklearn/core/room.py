"""Room for the values of terms."""

from __future__ import annotations

import numpy as np

LINE = 8
"""Numbers of a cache line."""


def zeros(n_terms: int, n_outputs: int, n_rows: int) -> np.ndarray:
    """Zeros to which values can be added fast.

    Parameters
    ----------
    n_terms, n_outputs, n_rows : int

    Returns
    -------
    ndarray of shape (n_terms, n_outputs, n_rows), float64
        Rows lie side by side, and if they fill a cache line the first ones are at the beginning of
        one: what is added to eight of them is within it.
    """
    stride = n_rows if n_rows < LINE else -(-n_rows // LINE) * LINE
    size = n_terms * n_outputs * stride
    numbers = np.zeros(size + LINE)
    first = -(numbers.ctypes.data // numbers.itemsize) % LINE
    columns = numbers[first : first + size].reshape(n_terms, n_outputs, stride)
    return columns[:, :, :n_rows]
