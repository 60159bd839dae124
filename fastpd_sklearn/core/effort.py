"""What different exact ways to the same values take, in nanoseconds.

Path-dependent values of one and two players come from walks down the paths or from tables over
patterns; components of a background from walks of its rows or from their masks, counted at the
leaves; attributions of deep trees from pairs of
rows, sets of them, or tables. The figures were fitted to
forests of all depths on one machine. Only their ratios matter: they decide which way is taken, from
nothing but the numbers at hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fastpd_sklearn.core.attribution import Rules
from fastpd_sklearn.core.geometry import Geometry, Units
from fastpd_sklearn.core.nodes import leaf_depth_sums

TABLE_VALUE, TABLE_PATTERN, TABLE_LEAF, TABLE_LOOK_UP = 0.3, 2.5, 1800.0, 1.8
"""An operation on a leaf's values, a pattern at a leaf, a leaf, and a row at a table."""

TABLE_PAIR = 16
"""Operations, at all masks, for a pair's value at one of them."""

WALK_LEAF, WALK_NODE, WALK_PAIR = 13.0, 1.1, 0.35
"""A leaf and row; the same at one node of the quadrature; and there for a player on the way."""

MIXED_PLAYERS = 20
"""The largest leaf whose values are worked out at all masks at once."""

WALK_LANES = 8
"""Rows that walk together."""


class Wanted(NamedTuple):
    """How much is asked for.

    Parameters
    ----------
    singles, pairs : float
        The share of the players of leaves, and of the pairs of players.
    n_values, n_rows : int
    """

    singles: float
    pairs: float
    n_values: int
    n_rows: int


def make_wanted(
    geometry: Geometry, terms: Sequence[tuple[int, ...]], n_values: int, n_rows: int
) -> Wanted:
    """Count what terms of one and two players ask of the leaves.

    Parameters
    ----------
    geometry : Geometry
    terms : sequence of tuple of int
    n_values, n_rows : int

    Returns
    -------
    Wanted
    """
    met = np.bincount(geometry.player, minlength=geometry.n_players)
    n_tested = np.count_nonzero(met)
    singles = met[[term[0] for term in terms if len(term) == 1]].sum() / max(1, met.sum())
    n_pairs = sum(len(term) == 2 for term in terms)
    pairs = min(1.0, 2 * n_pairs / max(1, n_tested**2 - n_tested))
    return Wanted(float(singles), pairs, n_values, n_rows)


def table_effort(geometry: Geometry, units: Units, rules: Rules, wanted: Wanted) -> float:
    """Tables over patterns, of which there are as many as can occur.

    Parameters
    ----------
    geometry : Geometry
    units : Units
    rules : Rules
    wanted : Wanted
    """
    size = geometry.leaf_sizes.astype(np.float64)
    pairs = wanted.pairs * size * (size - 1) / 2
    terms = wanted.singles * size + pairs
    unit = np.repeat(np.arange(units.n_units), np.diff(units.leaf_start))
    n_patterns = np.empty(geometry.n_leaves)
    n_patterns[units.leaf] = np.minimum(2.0 ** units.n_bits[unit], wanted.n_rows)
    n_nodes = np.diff(rules.start)[geometry.leaf_sizes]
    values = 8 * np.minimum(n_patterns, 2.0**size) * terms * size * n_nodes
    everywhere = (n_nodes * (size + 3) + TABLE_PAIR * pairs) * 2.0**size
    everywhere = np.where(size <= MIXED_PLAYERS, everywhere, np.inf)
    terms = terms[units.leaf]
    look_ups = np.maximum.reduceat(terms, units.leaf_start[:-1]) if units.n_units else terms
    return (
        TABLE_VALUE * np.minimum(values, everywhere).sum()
        + TABLE_PATTERN * n_patterns.sum()
        + TABLE_LEAF * geometry.n_leaves
        + TABLE_LOOK_UP * wanted.n_rows * look_ups.sum() * wanted.n_values
    )


def walk_effort(geometry: Geometry, rules: Rules, wanted: Wanted) -> float:
    """Walks down the trees.

    Parameters
    ----------
    geometry : Geometry
    rules : Rules
    wanted : Wanted
    """
    sizes, first = geometry.leaf_sizes, geometry.tree_leaf[: geometry.n_trees]
    n_nodes = np.diff(rules.start)[np.maximum.reduceat(sizes, first)]
    n_lanes = -(-wanted.n_rows // WALK_LANES) * WALK_LANES
    at_node = WALK_NODE * (1 + wanted.n_values) / 2 * np.diff(geometry.tree_leaf)
    at_node += WALK_PAIR * wanted.n_values * wanted.pairs * np.add.reduceat(sizes, first)
    return n_lanes * (WALK_LEAF * geometry.n_leaves + (at_node * n_nodes).sum())


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


SET_GROWTH = 0.75
"""How much less than among the trials sets of more explained rows grow, as a power."""

SET_ORDERS = {1: 1.0, 2: 1.9}
"""What terms of one or two players take where sets of rows meet."""


def set_effort(
    n_rows: np.ndarray, n_background: np.ndarray, effort: np.ndarray, rows: int, background: int
) -> float:
    """Sets of rows that meet down a tree, from some trials; see `set_walk`.

    Both sides' sets become fewer in proportion the more rows there are.

    Parameters
    ----------
    n_rows, n_background : ndarray of int
        Numbers of rows that were tried, ascending.
    effort : ndarray of shape (len(n_rows), len(n_background)), float64
    rows, background : int
        For which the effort is asked.

    Returns
    -------
    float
    """
    x, y = (np.log(part.astype(np.float64)) for part in (n_rows, n_background))
    at = min(np.log(rows), x[-1]) + SET_GROWTH * max(0.0, np.log(rows) - x[-1])
    at_rows = [_line(x, column, at) for column in np.log(np.maximum(effort, 1.0)).T]
    return float(np.exp(_line(y, np.array(at_rows), np.log(background))))


def _line(x: np.ndarray, y: np.ndarray, at: float) -> float:
    """Through one point, with slope 1, or through two."""
    slope = 1.0 if len(x) == 1 else (y[1] - y[0]) / (x[1] - x[0])
    return float(y[0] + slope * (at - x[0]))


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


MET_LEAF, MET_ROW, MET_PAIR, MET_SHARE = 100.0, 15.0, 2.0, 0.75
"""A leaf at which rows meet, there an explained row, and a pair that is still together: of each
player on the way this share of them does not part."""

TABLED_LEAF, TABLED_ROW = 400.0, 7.5
"""A leaf whose masks are counted, a part of the counting included, and there a row and player."""

MET_ORDERS, TABLED_ORDERS = {1: 1.0, 2: 4.0}, {1: 1.0, 2: 2.5}
"""What terms of one or two players take."""


def meet_sooner(sizes: np.ndarray, n_rows: int, n_background: int, order: int) -> bool:
    """Whether rows meet a few of a background, as `pair_walk` has it, sooner than by tables.

    Parameters
    ----------
    sizes : ndarray of shape (n_leaves,), int64
        Number of players on the way to each leaf.
    n_rows, n_background : int
    order : int
        The most players of a term, 1 or 2.

    Returns
    -------
    bool
    """
    times = np.bincount(sizes)
    size = np.arange(len(times))
    met = MET_LEAF + n_rows * (MET_ROW + MET_PAIR * MET_SHARE**size * n_background)
    tabled = TABLED_LEAF + TABLED_ROW * size * np.minimum(n_rows, 2.0**size / 2)
    return bool(times @ met * MET_ORDERS[order] < times @ tabled * TABLED_ORDERS[order])


WALKED_ROW, WALKED_LEAF = 1.1, 300.0
"""A row of a background and a tree, by the square of its mean depth; and a leaf."""

WALKED_CELL = 6.0
"""A pair at one of the points of a walk."""

COUNTED_LEAF, COUNTED_MASK, COUNTED_ROW = 10_000.0, 25.0, 0.35
"""A leaf, a mask that can occur there, and a row there."""

COUNTED_PAIRS = 3.3
"""How many times as long pairs at rows take as the counting."""

GAIN, CLEAR_GAIN = 2.0, 2e8
"""How much sooner walks have to be. Counts explain whatever is asked for later."""


class BackgroundEffort(NamedTuple):
    """What a background of so many rows takes.

    Parameters
    ----------
    walked : float
        For the walk by which all single players are found.
    counted : float
        For the weights of all masks at all leaves.
    """

    walked: float
    counted: float

    @property
    def walks_sooner(self) -> bool:
        """Whether a walk is clearly sooner than counting."""
        return self.counted > max(GAIN * self.walked, self.walked + CLEAR_GAIN)

    def pairs_are_walked(self, n_blocks: int, n_cells: float) -> bool:
        """Whether pairs are found sooner by walks than from counts that have yet to be made.

        Parameters
        ----------
        n_blocks : int
            How many walks it takes.
        n_cells : float
            Points of all pairs, in a walk.
        """
        walked = n_blocks * (3 * self.walked + WALKED_CELL * n_cells)
        return walked < COUNTED_PAIRS * self.counted


def background_effort(forest, n_rows: int) -> BackgroundEffort:
    """Estimate both ways for a forest.

    Parameters
    ----------
    forest : Forest
    n_rows : int
        Of the background.

    Returns
    -------
    BackgroundEffort
    """
    if not forest.n_nodes:
        return BackgroundEffort(0.0, 0.0)
    sums, times = leaf_depth_sums(forest.tree_start, forest.left, forest.right)
    n_leaves = (np.diff(forest.tree_start) + 1) // 2
    mean = sums / n_leaves
    possible = 2.0 ** np.minimum(np.arange(len(times)), forest.n_inputs)
    n_masks = times @ np.minimum(possible, n_rows)
    return BackgroundEffort(
        WALKED_ROW * n_rows * (mean**2).sum() + WALKED_LEAF * n_leaves.sum(),
        (COUNTED_LEAF + COUNTED_ROW * n_rows) * n_leaves.sum() + COUNTED_MASK * n_masks,
    )
