"""A forest whose trees are walked by rows, with players held at points."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise

import numpy as np

from fastpd_sklearn.core.binning import Bins
from fastpd_sklearn.core.forest_bins import bins_of
from fastpd_sklearn.core.ice import Individual, slice_rows
from fastpd_sklearn.core.jump_program import DEEPEST, most_steps
from fastpd_sklearn.core.jumps import Jumps
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.single_walk import single_components
from fastpd_sklearn.core.walk import pair_components
from fastpd_sklearn.core.walking import Points, Trees

MOST_STEPS = 5000
"""Of a tree in the mean, up to which it pays off to look at all of its nodes with all rows."""

BATCH_CELLS = 2**13
"""Codes of columns whose curves are made together, for a block of rows to stay in fast memory."""

LEAST_ROWS = 512
"""From so many on it pays off to look through the trees before."""

CURVES_BYTES = 2**26
"""The most memory for curves of rows that are made together."""

LEAVES_BYTES = 2**26
"""The most memory for rows' own leaves."""

FEW_CURVES = 3
"""From so many on it pays off to know the rows' own leaves."""


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
        self.trees = Trees(
            forest.left,
            forest.right,
            forest.feature,
            owner,
            forest.tree_start,
            bins.tests,
            forest.value,
            forest.tree_output,
            forest.n_outputs,
        )
        self.intercept = forest.intercept
        player_of_slot = owner[bins.columns]
        by_player = np.argsort(player_of_slot, kind="stable")
        bounds = np.searchsorted(player_of_slot[by_player], np.arange(n_players + 1)).tolist()
        self.slots = [by_player[first:last] for first, last in pairwise(bounds)]
        has_table = np.zeros(len(bins.columns), bool)
        if len(bins.tests.tables):
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
        """Components of all players at points; see `single_walk.single_components`."""
        return single_components(self.trees, list(points), rows, sample_weight, n_threads)

    def pair_components(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        pairs: Sequence[tuple[int, int]],
        sample_weight: np.ndarray | None,
        n_threads: int,
    ) -> list[np.ndarray]:
        """Components of pairs of players at points; see `walk.pair_components`."""
        return pair_components(self.trees, list(points), rows, sample_weight, pairs, n_threads)

    def shares(self, player: int, n_rows: int) -> bool:
        """Whether curves of so many rows along a player are made from their jumps.

        They cost less if those along others are made with them. It depends on nothing but these
        two, lest bits depend on what is asked for together.

        Parameters
        ----------
        player : int
        n_rows : int

        Returns
        -------
        bool
        """
        return n_rows >= LEAST_ROWS and self._has_few_steps[player]

    @cached_property
    def _has_few_steps(self) -> list[bool]:
        """By player, whether it pays off to make its curves from their jumps."""
        lines = [player for player, is_line in enumerate(self.is_line) if is_line]
        few = [k for k in lines if self._n_cells(k) <= BATCH_CELLS]
        if not few or self.trees.depth > DEEPEST:
            return [False] * len(self.slots)
        is_small = most_steps(self.trees) <= MOST_STEPS * self.n_trees
        return [is_small and player in set(few) for player in range(len(self.slots))]

    def _n_cells(self, player: int) -> int:
        return (int(self.bins.n_codes[self.slots[player][0]]) + 1) * self.n_outputs

    def _make_jumps(self, players: Sequence[int]) -> Jumps:
        slots = [int(self.slots[player][0]) for player in players]
        bins = self.bins
        return Jumps(self.trees, players, slots, len(self.slots), bins.n_codes, bins.width)

    def _cells(self, points: Points) -> np.ndarray:
        """The codes of points on a line, missing as the number of codes."""
        (slot,) = self.slots[points.player]
        return np.minimum(points.codes[0], self.bins.n_codes[slot]).astype(np.int32)

    def _batches(self, points: Sequence[Points], chosen: Sequence[int]) -> list[list[int]]:
        """Curves that are made together."""
        batches: list[list[int]] = []
        n_cells = BATCH_CELLS
        for k in chosen:
            size = self._n_cells(points[k].player)
            if n_cells + size > BATCH_CELLS:
                batches.append([])
                n_cells = 0
            batches[-1].append(k)
            n_cells += size
        return batches

    def margins(self, rows: BinnedRows, n_threads: int) -> np.ndarray:
        """Raw prediction as :meth:`curves` and :meth:`sums_along` take it.

        Parameters
        ----------
        rows : BinnedRows
        n_threads : int

        Returns
        -------
        ndarray of shape (n_outputs, n_rows), float64
        """
        return Individual(self.trees, self.intercept, []).curves(rows, n_threads)[:, :, 0]

    def sums_along(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        link: str | Callable,
        sample_weight: np.ndarray | None,
        n_threads: int,
        margins: np.ndarray | None = None,
    ) -> list[np.ndarray]:
        """Weighted sums over the rows of a response, with one player at a time held at points.

        Parameters
        ----------
        rows : BinnedRows
        points : sequence of Points
            Of different players.
        link, sample_weight, n_threads
            As for :meth:`response_sums`.
        margins : ndarray of shape (n_outputs, n_rows), float64, default=None
            From :meth:`margins`, where they are known already.

        Returns
        -------
        list of ndarray of shape (n_responses, n_points), float64
        """
        out: list = [None] * len(points)
        shared = (
            []
            if callable(link)
            else [k for k, p in enumerate(points) if self.shares(p.player, rows.n_rows)]
        )
        if shared and margins is None:
            margins = self.margins(rows, n_threads)
        for batch in self._batches(points, shared):
            made = self._make_jumps([points[k].player for k in batch])
            cells = [self._cells(points[k]) for k in batch]
            sums = made.sums(rows, margins, cells, sample_weight, link, n_threads)
            for k, found in zip(batch, sums, strict=True):
                out[k] = found
        others = [k for k in range(len(points)) if out[k] is None]
        leaves = self._leaves_for(rows, len(others), n_threads)
        for k in others:
            out[k] = self.response_sums(rows, [points[k]], link, sample_weight, n_threads, leaves)
        return out

    def curves_along(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        places: Sequence[np.ndarray],
        link: str | Callable,
        respond: Callable,
        n_threads: int,
        room: Callable[[int], np.ndarray],
    ) -> Iterator[np.ndarray]:
        """The response of every row with one player at a time held at points.

        Parameters
        ----------
        rows : BinnedRows
        points : sequence of Points
        places : sequence of ndarray of int
            By player, which of its points each number of a curve is for.
        link, n_threads
            As for :meth:`response_sums`.
        respond : callable
            The link as a function, of an array of shape (n, n_outputs).
        room : callable
            By the number of a player, where its curves are to be written: an array of shape
            (n_responses, n_rows, n_places), float64, that need not be contiguous.

        Yields
        ------
        ndarray of shape (n_responses, n_rows, n_places), float64
            These arrays, one by one.
        """
        is_shared = [not callable(link) and self.shares(p.player, rows.n_rows) for p in points]
        leaves = self._leaves_for(rows, len(points) - sum(is_shared), n_threads)
        margins = self.margins(rows, n_threads) if any(is_shared) else None
        made: dict[int, np.ndarray] = {}
        for k, p in enumerate(points):
            if not is_shared[k]:
                out = room(k)
                self._walk_along(rows, p, places[k], link, respond, n_threads, leaves, out)
                yield out
                continue
            if k not in made:
                ahead = [j for j in range(k, len(points)) if is_shared[j]]
                batch = self._next_batch(rows, points, places, ahead)
                made = {j: room(j) for j in batch}
                cells = [self._cells(points[j])[places[j]] for j in batch]
                jumps = self._make_jumps([points[j].player for j in batch])
                jumps.curves(rows, margins, cells, link, n_threads, list(made.values()))
            yield made.pop(k)

    def _walk_along(
        self,
        rows: BinnedRows,
        points: Points,
        place: np.ndarray,
        link: str | Callable,
        respond: Callable,
        n_threads: int,
        leaves: np.ndarray | None,
        out: np.ndarray,
    ) -> None:
        """Walked curves along a player, to an array; those behind a link block by block."""
        individual = Individual(self.trees, self.intercept, [points])
        if link == "identity":
            individual.curves(rows, n_threads, out, leaves, place)
            return
        step = max(1, CURVES_BYTES // (8 * self.n_outputs * max(1, points.size)))
        for start in range(0, rows.n_rows, step):
            stop = min(rows.n_rows, start + step)
            own = None if leaves is None else leaves[:, start:stop]
            margins = individual.curves(slice_rows(rows, start, stop), n_threads, leaves=own)
            responses = respond(margins.reshape(self.n_outputs, -1).T)
            out[:, start:stop] = responses.T.reshape(-1, *margins.shape[1:])[:, :, place]

    def _next_batch(
        self,
        rows: BinnedRows,
        points: Sequence[Points],
        places: Sequence[np.ndarray],
        chosen: list[int],
    ) -> list[int]:
        """The first curves of some that are made together, by their memory."""
        batch = self._batches(points, chosen)[0]
        n_bytes = np.cumsum([8 * rows.n_rows * self.n_outputs * len(places[k]) for k in batch])
        return batch[: max(1, np.searchsorted(n_bytes, CURVES_BYTES, side="right"))]

    def _leaves_for(self, rows: BinnedRows, n_curves: int, n_threads: int) -> np.ndarray | None:
        """The rows' own leaves, if there are curves enough for them to pay off, and room."""
        if n_curves < FEW_CURVES or 4 * rows.n_rows * self.n_trees > LEAVES_BYTES:
            return None
        return self.leaves(rows, n_threads)

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
        out : ndarray of shape (n_outputs, n_rows, n_points), float64, default=None
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
