"""What a contender does: work that is timed, and how to read its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Answer(NamedTuple):
    """Values by term, to be compared: those of some rows, or of all points of a grid.

    ``complete`` says that terms that are not there are zero; otherwise they are unknown.
    ``rows`` are the numbers of the rows, if values belong to rows.
    """

    terms: list[str]
    values: np.ndarray
    complete: bool
    rows: np.ndarray | tuple[()] = ()


class Job(NamedTuple):
    """Work to time, and ``read`` to make an :class:`Answer` of its result.

    ``share`` is the part of the task that the work does; time is scaled up by it.
    """

    work: Callable
    read: Callable
    share: float = 1.0
    note: str = ""


def joint_points(grid: np.ndarray) -> np.ndarray:
    """Rows that hold the product grid of every pair of columns.

    Block ``h`` of ``n_points ** 2`` rows has columns whose number has bit ``h`` run slowly and
    the others fast, so that a pair's product is in the block of any bit in which they differ.
    """
    n_points, n_columns = grid.shape
    bits = max(1, (n_columns - 1).bit_length())
    slow = np.arange(n_columns) >> np.arange(bits)[:, None] & 1 == 1
    fast_rows, slow_rows = np.tile(grid, (n_points, 1)), np.repeat(grid, n_points, axis=0)
    return np.concatenate([np.where(row, slow_rows, fast_rows) for row in slow])


def pair_block(i: int, j: int, n_points: int) -> np.ndarray:
    """Numbers of the rows of :func:`joint_points` with a pair's product, ``i`` running slowly."""
    bit = (i ^ j).bit_length() - 1
    rows = bit * n_points**2 + np.arange(n_points**2).reshape(n_points, n_points)
    return (rows if i >> bit & 1 else rows.T).ravel()
