"""The order of rows in which neighbours fall into the same entries of the tables.

Where the tables of a tree outgrow the caches, rows that come in any order look up far entries.
Rows that agree in the tests that most leaves hang from share the parts of their patterns that come
from there, so that a block of them needs a part of each table only.
"""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core.geometry import Geometry
from fastpd_sklearn.core.routing import BinnedRows, NodeTests

KEY_BITS = 16
"""Of the number that rows are ordered by: that many columns, a bit each."""

SAMPLE = 1001
"""Rows whose codes say where a column is halved."""


def by_likeness(rows: BinnedRows, tests: NodeTests, geometry: Geometry) -> np.ndarray:
    """Numbers of the rows, those that fall on the same sides of many columns together.

    Parameters
    ----------
    rows : BinnedRows
    tests : NodeTests
    geometry : Geometry

    Returns
    -------
    ndarray of shape (n_rows,), int64
        By halves of the columns that are tested on most ways to leaves, the most tested one first.
    """
    n_ways = np.bincount(tests.slot[geometry.path_node], minlength=len(rows.width))
    step = -(-rows.n_rows // SAMPLE)
    key = np.zeros(rows.n_rows, np.uint16)
    for slot in np.argsort(-n_ways, kind="stable")[:KEY_BITS]:
        codes = rows.column(slot)
        key <<= 1
        key |= codes > np.sort(codes[::step])[len(codes[::step]) // 2]
    return np.argsort(key, kind="stable")


def taken(rows: BinnedRows, order: np.ndarray) -> BinnedRows:
    """The rows in an order."""
    data = np.empty_like(rows.data)
    ordered = BinnedRows(data, rows.offset, rows.width, rows.n_rows)
    for slot in range(len(rows.width)):
        np.take(rows.column(slot), order, out=ordered.column(slot))
    return ordered


def reorder(values: np.ndarray, places: np.ndarray) -> None:
    """Put values[..., places[r]] in place r, column by column."""
    columns = values.reshape(-1, values.shape[-1])
    room = np.empty(values.shape[-1])
    for column in columns:
        np.take(column, places, out=room)
        column[:] = room
