"""A forest whose trees are walked by rows, with players held at points."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from fastpd_sklearn.core.binning import Bins
from fastpd_sklearn.core.forest_bins import bins_of
from fastpd_sklearn.core.ice import Individual
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.walk import Violations
from fastpd_sklearn.core.walking import Points, Trees


class WalkModel:
    """What the walks need to know of a forest and of the players: a few numbers a node.

    Parameters
    ----------
    forest : Forest
    player_of_input : ndarray of shape (n_inputs,), int32
        The player that each input column belongs to.
    n_players : int
    zero : float
        Half-width of the values that `zero_as_missing` takes for missing.
    bins : Bins, default=None
        Those of the forest, where they are made already.

    Attributes
    ----------
    made_from : tuple
        The first four arguments.
    bins : Bins
    trees : Trees
    intercept : ndarray of shape (n_outputs,), float64
    slots : list of ndarray of int64
        The binned columns of each player.
    is_line : list of bool
        Whether a player has one column, and all of its tests cut the line of its codes in two.
    """

    def __init__(
        self,
        forest,
        player_of_input: np.ndarray,
        n_players: int,
        zero: float,
        bins: Bins | None = None,
    ) -> None:
        self.made_from = (forest, player_of_input, n_players, zero)
        self.bins = bins = bins_of(forest, zero) if bins is None else bins
        owner = np.asarray(player_of_input, np.int32)
        node_player = np.where(forest.feature >= 0, owner[forest.feature], -1).astype(np.int32)
        self.trees = Trees(
            forest.left,
            forest.right,
            node_player,
            forest.tree_start,
            bins.tests,
            forest.value,
            forest.tree_output,
            forest.n_outputs,
        )
        self.intercept = forest.intercept
        player_of_slot = owner[bins.columns]
        self.slots = [np.flatnonzero(player_of_slot == k) for k in range(n_players)]
        has_table = np.zeros(len(bins.columns), bool)
        has_table[bins.tests.slot[bins.tests.table >= 0]] = True
        self.is_line = [len(slots) == 1 and not has_table[slots[0]] for slots in self.slots]

    def __reduce__(self):
        return WalkModel, self.made_from

    @cached_property
    def common_pairs(self) -> list[tuple[int, int]]:
        """Pairs of players that lie on a common path, in lexicographic order."""
        nodes, n_words = self.trees.nodes, -(-len(self.slots) // 64)
        met = np.zeros((len(self.slots), n_words), np.uint64)  # by player, whom it is met with
        word, bit = np.divmod(np.arange(len(self.slots)), 64)
        own = np.zeros_like(met)
        own[np.arange(len(own)), word] = np.uint64(1) << bit.astype(np.uint64)
        level = self.trees.root[:-1]
        above = np.zeros((len(level), n_words), np.uint64)
        while len(level):
            inner = nodes["left"][level] >= 0
            level, above = level[inner], above[inner]
            player = nodes["player"][level]
            np.bitwise_or.at(met, player, above)
            above = np.concatenate([above | own[player]] * 2)
            level = np.concatenate([nodes["left"][level], nodes["right"][level]])
        is_met = np.unpackbits(met.astype("<u8").view(np.uint8), axis=1, bitorder="little")
        is_met = is_met[:, : len(own)].astype(bool)
        return list(map(tuple, np.argwhere(np.triu(is_met | is_met.T, 1)).tolist()))

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.intercept)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return self.trees.n_trees

    def predict(self, rows: BinnedRows, n_threads: int) -> np.ndarray:
        """Raw prediction, float64 of shape (n_rows, n_outputs)."""
        margins = Individual(self.trees, self.intercept, []).curves(rows, n_threads)
        return np.ascontiguousarray(margins[:, :, 0].T)

    def leaves(self, rows: BinnedRows, n_threads: int) -> np.ndarray:
        """Where rows arrive as they are, int32 of shape (n_trees, n_rows)."""
        return Individual(self.trees, self.intercept, []).leaves(rows, n_threads)

    def points(self, rows: BinnedRows, player: int) -> tuple[Points, np.ndarray]:
        """The different points that some rows are for a player.

        Parameters
        ----------
        rows : BinnedRows
        player : int

        Returns
        -------
        points : Points
        place : ndarray of shape (n_rows,), int64
            The point of each row.
        """
        slots = self.slots[player]
        columns = rows.columns()
        codes = np.array([columns[slot] for slot in slots], np.uint32)
        codes = codes.reshape(len(slots), rows.n_rows)
        if len(slots) == 1:
            found, place = np.unique(codes[0], return_inverse=True)
            found = found[None, :]
        elif len(slots):
            found, place = np.unique(codes, axis=1, return_inverse=True)
        else:
            found, place = np.empty((0, min(rows.n_rows, 1)), np.uint32), np.zeros(rows.n_rows, int)
        points = Points(player, slots, found, self.bins.n_codes, self.is_line[player])
        return points, place.reshape(-1)

    def alphabet(self, player: int) -> Points:
        """All codes of a player of one binned column as points, missing as the last one."""
        (slot,) = self.slots[player]
        missing = np.iinfo(f"u{self.bins.width[slot]}").max
        codes = np.append(np.arange(self.bins.n_codes[slot]), missing).astype(np.uint32)
        return Points(
            player, self.slots[player], codes[None, :], self.bins.n_codes, self.is_line[player]
        )

    def nowhere(self, player: int) -> Points:
        """No point at all."""
        slots = self.slots[player]
        codes = np.empty((len(slots), 0), np.uint32)
        return Points(player, slots, codes, self.bins.n_codes, self.is_line[player])

    def single_components(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        sample_weight: np.ndarray | None,
        n_threads: int,
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        """Components of all players at points; see `walk.Violations.singles`."""
        return Violations(self.trees, points).singles(rows, sample_weight, n_threads)

    def pair_components(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        pairs: Sequence[tuple[int, int]],
        sample_weight: np.ndarray | None,
        n_threads: int,
    ) -> list[np.ndarray]:
        """Components of pairs of players at points; see `walk.Violations.pairs`."""
        return Violations(self.trees, points).pairs(rows, sample_weight, pairs, n_threads)

    def curves(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        n_threads: int,
        out: np.ndarray | None = None,
        leaves: np.ndarray | None = None,
    ) -> np.ndarray:
        """Margins of every row with one player, or two, held at points.

        Parameters
        ----------
        rows : BinnedRows
        points : sequence of Points
            Of at most two players.
        n_threads : int
        out : ndarray of shape (n_outputs, n_rows, n_points), float64, C order, default=None
            Where to write them; the points of two players as their product.
        leaves : ndarray of shape (n_trees, n_rows), int32, default=None
            From :meth:`leaves`, where they are known already.

        Returns
        -------
        ndarray of shape (n_outputs, n_rows, n_points of the first, ...), float64
        """
        made = Individual(self.trees, self.intercept, points).curves(rows, n_threads, out, leaves)
        return made.reshape(*made.shape[:2], *(p.size for p in points))

    def response_sums(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        link: str | Callable,
        sample_weight: np.ndarray | None,
        n_threads: int,
        leaves: np.ndarray | None = None,
    ) -> np.ndarray:
        """Weighted sums over the rows of a response, with one player, or two, held at points.

        Parameters
        ----------
        rows : BinnedRows
        points : sequence of Points
            Of at most two players.
        link : str or callable
            From margins to the response: a key of `ice.LINKS`, or a function from an array of
            shape (n, n_outputs) to one of shape (n, n_responses).
        sample_weight : ndarray of shape (n_rows,), float64, or None
        n_threads : int
        leaves : ndarray of shape (n_trees, n_rows), int32, default=None
            From :meth:`leaves`, where they are known already.

        Returns
        -------
        ndarray of shape (n_responses, n_points of the first, ...), float64
        """
        individual = Individual(self.trees, self.intercept, points)
        return individual.sums(rows, sample_weight, link, n_threads, leaves)

    def held(self, rows: BinnedRows, players: Sequence[int], other: BinnedRows, index):
        """Rows with the codes that other rows have for some players.

        Parameters
        ----------
        rows : BinnedRows
        players : sequence of int
        other : BinnedRows
        index : int, or ndarray of shape (n_rows,), int
            Which of the other rows.

        Returns
        -------
        BinnedRows
        """
        out, columns = self.bins.empty_rows(rows.n_rows)
        for column, codes in zip(columns, rows.columns(), strict=True):
            column[:] = codes
        known = other.columns()
        for slot in np.concatenate([np.empty(0, np.int64), *(self.slots[k] for k in players)]):
            columns[slot][:] = known[slot][index]
        return out
