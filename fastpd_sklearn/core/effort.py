"""What different ways to the same values take, in nanoseconds.

The figures were fitted to forests of all depths on one machine. Only their ratios matter: they
decide which of two exact ways is taken, from nothing but the numbers at hand.
"""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core.attribution import Rules
from fastpd_sklearn.core.geometry import Geometry, Units

TABLE_VALUE, TABLE_PATTERN, TABLE_LEAF, TABLE_LOOK_UP = 0.3, 2.5, 1800.0, 1.8
"""An operation on a leaf's values, a pattern at a leaf, a leaf, and a row at a table."""

WALK_LEAF, WALK_NODE = 13.0, 1.1
"""A leaf and row, and the same at one node of the quadrature."""

MIXED_PLAYERS = 20
"""The largest leaf whose values are worked out at all masks at once."""

WALK_LANES = 8
"""Rows that walk together."""


def table_effort(
    geometry: Geometry, units: Units, rules: Rules, n_slots: int, n_values: int, n_rows: int
) -> float:
    """Tables over patterns, of which there are as many as can occur.

    Parameters
    ----------
    geometry : Geometry
    units : Units
    rules : Rules
    n_slots : int
        Terms of all units.
    n_values, n_rows : int
    """
    size = geometry.leaf_sizes.astype(np.float64)
    unit = np.repeat(np.arange(units.n_units), np.diff(units.leaf_start))
    n_patterns = np.empty(geometry.n_leaves)
    n_patterns[units.leaf] = np.minimum(2.0 ** units.n_bits[unit], n_rows)
    n_nodes = np.diff(rules.start)[geometry.leaf_sizes]
    values = 8 * np.minimum(n_patterns, 2.0**size) * size**2 * n_nodes
    everywhere = np.where(size <= MIXED_PLAYERS, n_nodes * (size + 3) * 2.0**size, np.inf)
    return (
        TABLE_VALUE * np.minimum(values, everywhere).sum()
        + TABLE_PATTERN * n_patterns.sum()
        + TABLE_LEAF * geometry.n_leaves
        + TABLE_LOOK_UP * n_rows * n_slots * n_values
    )


def walk_effort(geometry: Geometry, rules: Rules, n_values: int, n_rows: int) -> float:
    """Walks down the trees.

    Parameters
    ----------
    geometry : Geometry
    rules : Rules
    n_values, n_rows : int
    """
    most = np.maximum.reduceat(geometry.leaf_sizes, geometry.tree_leaf[: geometry.n_trees])
    n_nodes = np.diff(rules.start)[most] * np.diff(geometry.tree_leaf)
    n_lanes = -(-n_rows // WALK_LANES) * WALK_LANES
    a_node = WALK_NODE * (1 + n_values) / 2
    return n_lanes * (WALK_LEAF * geometry.n_leaves + a_node * n_nodes.sum())


PAIR_VISIT, PAIR_WORD, PAIR_OF_PLAYERS = 13.0, 1.9, 6.5
"""A visit of an explained row to a node, 64 more background rows there, and the factor for terms of
two players."""

DEEP_VALUE, DEEP_LEAF, DEEP_ROW, DEEP_SOURCE, DEEP_PAIR = 0.3, 20_000.0, 40.0, 6.0, 2.5
"""A player of a mask at a node of the quadrature; a leaf, and there an explained row, a background
row, and a pair of them."""


def pair_effort(visits: float, n_words: int, order: int) -> float:
    """Walks of explained rows together with the rows of a background; see `pair_walk`.

    Parameters
    ----------
    visits : float
        How often explained rows come to nodes.
    n_words : int
        Background rows that walk together, in words of 64 bits.
    order : int
        The most players of a term.
    """
    return visits * (PAIR_VISIT + PAIR_WORD * n_words) * (PAIR_OF_PLAYERS if order == 2 else 1)


def deep_table_effort(sizes: np.ndarray, n_rows: int, n_background: int, n_looks: int) -> float:
    """Tables of deep trees over the masks that occur.

    Parameters
    ----------
    sizes : ndarray of shape (n_leaves,), int64
        Number of players on the way to each leaf.
    n_rows, n_background : int
    n_looks : int
        How often the rows are looked up: once for single players, more often for other terms.
    """
    size = sizes.astype(np.float64)
    everywhere = np.ceil(size / 2) * (size + 3) * 2.0**size
    everywhere[sizes > MIXED_PLAYERS] = np.inf
    pairs = DEEP_PAIR * n_looks * n_rows * n_background
    rows = DEEP_LEAF + DEEP_ROW * n_looks * n_rows + DEEP_SOURCE * n_background
    return float(np.minimum(DEEP_VALUE * everywhere, pairs).sum() + rows * len(sizes))
