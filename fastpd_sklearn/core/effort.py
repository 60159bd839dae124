"""What the two ways to path-dependent values of single players take, in nanoseconds.

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
