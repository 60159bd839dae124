"""A forest in the terms of the core: binned tests, leaves and players."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fastpd_sklearn.core.attribution import Rules
from fastpd_sklearn.core.background import KeptCoverage
from fastpd_sklearn.core.binning import Bins
from fastpd_sklearn.core.coverage import Coverage, PathCoverage
from fastpd_sklearn.core.effort import make_wanted, meet_sooner, table_effort, walk_effort
from fastpd_sklearn.core.evaluation import attribute
from fastpd_sklearn.core.forest_bins import bins_of
from fastpd_sklearn.core.geometry import Geometry, Units
from fastpd_sklearn.core.pair_values import RowPairs
from fastpd_sklearn.core.path_walk import walk_paths
from fastpd_sklearn.core.plan import Matches, Plan, reduce_terms
from fastpd_sklearn.core.room import zeros
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.steps import Steps
from fastpd_sklearn.core.walk_model import WalkModel

MOST_STEP_ENTRIES = 2**24
"""The largest table of a step function: beyond it rows are looked up by their masks."""

MOST_PAIRED = 2**12
"""Players whose pairs have a table of their places in the result."""

UNTESTED, SEVERAL = -1, -2
"""In place of a player's binned column: no tree tests the player; it has more than one."""


class CoreModel:
    """What the kernels need to know of a forest and of the players.

    Parameters
    ----------
    forest : Forest
    player_of_input : ndarray of shape (n_inputs,), int32
        The player that each input column belongs to.
    n_players : int
    zero : float
        Half-width of the values that `zero_as_missing` takes for missing.
    bins : Bins, default=None
        The forest's tests in terms of alphabets that are made already.

    Attributes
    ----------
    bins : Bins
    value : ndarray of shape (n_nodes, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    intercept : ndarray of shape (n_outputs,), float64
    singles : list of tuple of int
        All players as terms.
    """

    def __init__(
        self,
        forest,
        player_of_input: np.ndarray,
        n_players: int,
        zero: float,
        bins: Bins | None = None,
    ) -> None:
        self._made_from = (forest, player_of_input, n_players, zero, bins)
        self.bins = bins_of(forest, zero) if bins is None else bins
        self.slot_of_player = _single_slots(self.bins.columns, player_of_input, n_players)
        self.value = np.ascontiguousarray(forest.value)
        self.tree_output = forest.tree_output
        self.intercept = forest.intercept
        self.singles = [(player,) for player in range(n_players)]

    def __reduce__(self):
        return CoreModel, self._made_from

    # A row or two are explained without most of these, in less time than it takes to make them.

    @cached_property
    def geometry(self) -> Geometry:
        """Leaves, players and paths."""
        forest, player_of_input, n_players, *_ = self._made_from
        return Geometry(
            forest.left,
            forest.right,
            forest.feature,
            forest.tree_start,
            np.asarray(player_of_input, np.int32),
            n_players,
        )

    @cached_property
    def units(self) -> Units:
        """Pieces of the trees."""
        return Units(self.geometry)

    @cached_property
    def leaf_value(self) -> np.ndarray:
        """Values of the leaves, float64 of shape (n_leaves, n_values)."""
        return np.ascontiguousarray(self.value[self.geometry.leaf_node])

    @cached_property
    def steps(self) -> Steps:
        """The forest as it makes step functions of columns."""
        return Steps(
            self.bins.tests,
            self.bins.n_codes,
            self.geometry,
            self.slot_of_player,
            self.leaf_value,
            self.tree_output,
            self.n_outputs,
        )

    @cached_property
    def walks(self) -> WalkModel:
        """The forest as rows walk through it, with players held at points."""
        return WalkModel(*self._made_from[:4], self.bins)

    @cached_property
    def pairs(self) -> RowPairs:
        """The forest as rows to explain and rows of a background walk through it together."""
        return RowPairs(self.walks)

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.intercept)

    def predict(self, rows: BinnedRows, n_threads: int) -> np.ndarray:
        """Raw prediction, float64 of shape (n_rows, n_outputs)."""
        return self.walks.predict(rows, n_threads)

    def mean(self, leaf_share: np.ndarray) -> np.ndarray:
        """Mean raw prediction where each leaf has a given share, shape (n_outputs,)."""
        out = self.intercept.copy()
        tree = np.repeat(self.tree_output, np.diff(self.geometry.tree_leaf))
        for v in range(self.value.shape[1]):
            np.add.at(out, tree + v, leaf_share * self.leaf_value[:, v])
        return out

    def attribute(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        index: str,
        terms: list[tuple[int, ...]],
        n_threads: int,
    ) -> np.ndarray:
        """Values of terms under an attribution index.

        Parameters
        ----------
        rows : BinnedRows
            The rows to explain.
        coverage : Coverage
        index : str
            A key of `attribution.INDICES`.
        terms : list of tuple of int
            Sets of players, sorted, each once.
        n_threads : int

        Returns
        -------
        ndarray of shape (n_terms, n_outputs, n_rows), float64
        """
        if self._by_pairs(rows, coverage, index, terms):
            return self._pair_walk(rows, coverage, index, terms, n_threads)
        rules = Rules(index, self.geometry.leaf_sizes)
        if self._by_path_walk(rows, coverage, rules, terms):
            return self._path_walk(rows, coverage, rules, terms, n_threads)
        if self.has_steps(index, terms):
            out = np.empty((len(terms), self.n_outputs, rows.n_rows))
            self.write_steps(rows, coverage, terms, out, np.zeros(self.n_outputs), n_threads)
            return out
        plan = self._single_plan if terms == self.singles else self._plan(terms)
        return self._values(rows, coverage, plan, rules, n_threads)

    def write_steps(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        terms: list[tuple[int, ...]],
        out: np.ndarray,
        base: np.ndarray,
        n_threads: int,
    ) -> None:
        """Write components that are step functions, each value once.

        Parameters
        ----------
        rows, coverage, n_threads
            As `attribute`.
        terms : list of tuple of int
            As `has_steps` takes them.
        out : ndarray of shape (n_terms, n_outputs, n_rows), float64 or float32
            Of any strides that are whole numbers of its values.
        base : ndarray of shape (n_outputs,), float64
            What is added to every value.
        """
        tested, others = self._by_tests(terms)
        out[others] = base[:, None]
        tables = self._step_tables(coverage, [terms[k] for k in tested], n_threads)
        tables.look_up(rows, 0, len(tested), tested, out, base, n_threads)

    def _step_tables(self, coverage: Coverage, terms: list[tuple[int, ...]], n_threads: int = 1):
        return self.steps.of(coverage, Matches(self.geometry, terms), terms, n_threads)

    def _by_tests(self, terms: list[tuple[int, ...]]) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the terms whose players are all tested by the trees, and of the others."""
        is_tested = self._least_slots(terms) >= 0
        return np.flatnonzero(is_tested), np.flatnonzero(~is_tested)

    def _least_slots(self, terms: list[tuple[int, ...]]) -> np.ndarray:
        """The least slot of each term's players: UNTESTED or SEVERAL if that of any of them is."""
        return reduce_terms(np.minimum, self.slot_of_player, terms)

    def attribute_blocks(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        index: str,
        terms: list[tuple[int, ...]],
        n_values: int,
        n_threads: int,
    ):
        """What `attribute` gives, some terms at a time, those of the same trees together.

        Parameters
        ----------
        rows, coverage, index, terms, n_threads
            As `attribute`.
        n_values : int
            Most values of a block; a block has one term at least.

        Yields
        ------
        numbers : ndarray of int64
            Which of the terms are in the block.
        values : ndarray of shape (len(numbers), n_outputs, n_rows), float64
        """
        size = max(1, n_values // max(1, rows.n_rows * self.n_outputs))
        if self._by_pairs(rows, coverage, index, terms):
            for first in range(0, len(terms), size):
                part = terms[first : first + size]
                values = self._pair_walk(rows, coverage, index, part, n_threads)
                yield np.arange(first, first + len(part)), values
            return
        rules = Rules(index, self.geometry.leaf_sizes)
        left = np.arange(len(terms))
        small = np.array([len(term) <= 2 for term in terms], dtype=bool)
        n_walks = -(-np.count_nonzero(small) // size)
        walked = [terms[k] for k in np.flatnonzero(small)]
        if self._by_path_walk(rows, coverage, rules, walked, n_walks):
            for first in range(0, len(walked), size):
                part = walked[first : first + size]
                numbers = np.flatnonzero(small)[first : first + size]
                yield numbers, self._path_walk(rows, coverage, rules, part, n_threads)
            left = np.flatnonzero(~small)
        if not len(left):
            return
        is_step = small[left]
        if not self.has_steps(index, [terms[k] for k in left[is_step]]):
            is_step[:] = False
        wanted = rows, coverage, terms
        yield from self._step_blocks(*wanted, left[is_step], size, n_threads)
        yield from self._planned_blocks(*wanted, left[~is_step], size, rules, n_threads)

    def _step_blocks(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        terms: list[tuple[int, ...]],
        numbers: np.ndarray,
        size: int,
        n_threads: int,
    ):
        """Blocks of so many of the terms with the given numbers, by step functions."""
        tested, others = (numbers[k] for k in self._by_tests([terms[k] for k in numbers]))
        shape = self.n_outputs, rows.n_rows
        for first in range(0, len(others), size):
            part = others[first : first + size]
            yield part, np.zeros((len(part), *shape))
        tables = self._step_tables(coverage, [terms[k] for k in tested], n_threads)
        for first in range(0, len(tested), size):
            part = tested[first : first + size]
            out = np.empty((len(part), *shape))
            last, places = first + len(part), np.arange(len(part))
            tables.look_up(rows, first, last, places, out, np.zeros(self.n_outputs), n_threads)
            yield part, out

    def _planned_blocks(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        terms: list[tuple[int, ...]],
        numbers: np.ndarray,
        size: int,
        rules: Rules,
        n_threads: int,
    ):
        """Blocks of so many of the terms with the given numbers, by plans."""
        if not len(numbers):
            return
        plan = self._plan([terms[k] for k in numbers])
        order = plan.by_tree()
        blocks = [order[first : first + size] for first in range(0, len(order), size)]
        for block, part in zip(blocks, plan.parts(blocks), strict=True):
            yield numbers[block], self._values(rows, coverage, part, rules, n_threads)

    def _plan(self, terms: list[tuple[int, ...]]) -> Plan:
        return Plan(self.geometry, self.units, terms, self.leaf_value)

    def _values(
        self, rows: BinnedRows, coverage: Coverage, plan: Plan, rules: Rules, n_threads: int
    ) -> np.ndarray:
        """Values of the terms of a plan."""
        out = zeros(plan.n_terms, self.n_outputs, rows.n_rows)
        attribute(
            rows,
            self.bins.tests,
            self.geometry,
            self.units,
            plan,
            coverage,
            rules,
            self.leaf_value,
            self.tree_output,
            out,
            n_threads,
        )
        return out

    def _by_path_walk(
        self, rows: BinnedRows, coverage: Coverage, rules: Rules, terms, n_walks: int = 1
    ) -> bool:
        """Whether so many walks down the trees make the values, and sooner than tables do."""
        if not isinstance(coverage, PathCoverage) or not rules.is_interior:
            return False
        most = max(map(len, terms), default=3)
        if self.geometry.n_trees == 0 or most > 2:
            return False
        if most == 2 and self.geometry.n_players > MOST_PAIRED:
            return False
        wanted = make_wanted(self.geometry, terms, self.value.shape[1], rows.n_rows)
        walks = n_walks * walk_effort(self.geometry, rules, wanted)
        return walks < table_effort(self.geometry, self.units, rules, wanted)

    def _path_walk(
        self,
        rows: BinnedRows,
        coverage: PathCoverage,
        rules: Rules,
        terms: list[tuple[int, ...]],
        n_threads: int,
    ) -> np.ndarray:
        """Values of one and two players by walks down the trees."""
        out = np.zeros((len(terms), self.n_outputs, rows.n_rows))
        walk_paths(
            rows,
            self.bins.tests,
            self.geometry,
            coverage,
            rules,
            self.value,
            self.tree_output,
            terms,
            out,
            n_threads,
        )
        return out

    def _by_pairs(
        self, rows: BinnedRows, coverage: Coverage, index: str, terms: list[tuple[int, ...]]
    ) -> bool:
        """Whether rows meet those of the background sooner than these are counted.

        Components are left to step functions.
        """
        if not isinstance(coverage, KeptCoverage) or index == "component":
            return False
        most = max(map(len, terms), default=3)
        if most > 2 or (most == 2 and len(self.singles) > MOST_PAIRED):
            return False
        sooner = meet_sooner(self.pairs.sizes, rows.n_rows, coverage.n_rows, most)
        return sooner and self.pairs.is_possible

    def _pair_walk(
        self,
        rows: BinnedRows,
        coverage: KeptCoverage,
        index: str,
        terms: list[tuple[int, ...]],
        n_threads: int,
    ) -> np.ndarray:
        """Values of one and two players from pairs of rows."""
        return self.pairs.values(rows, *coverage.in_order, index, terms, n_threads)[0]

    @cached_property
    def _single_plan(self) -> Plan:
        return self._plan(self.singles)

    @cached_property
    def _single_matches(self) -> Matches:
        return Matches(self.geometry, self.singles)

    def levels(self, coverage: Coverage, player: int) -> np.ndarray | None:
        """The component of one player by the codes of its column.

        Parameters
        ----------
        coverage : Coverage
        player : int

        Returns
        -------
        ndarray of shape (n_outputs, n_codes + 1), or None
            The last one is for missing. None for a player of several columns.
        """
        if self.slot_of_player[player] == UNTESTED:
            return np.zeros((self.n_outputs, 2))
        if self.slot_of_player[player] == SEVERAL:
            return None
        return self.steps.table(coverage, self._single_matches.of(player), [(player,)])[0]

    def pair_grid(
        self,
        rows: BinnedRows,
        coverage: Coverage,
        pairs: list[tuple[int, int]],
        n_threads: int,
    ) -> np.ndarray | None:
        """Components of pairs of players on the product of the rows with themselves.

        Parameters
        ----------
        rows : BinnedRows
            Row ``a`` gives the first player's value, row ``b`` the second's.
        coverage : Coverage
        pairs : list of tuple of two int
            Ascending within a pair.
        n_threads : int

        Returns
        -------
        ndarray of shape (n_pairs, n_outputs, n_rows, n_rows), float64, or None
            None where a player of a pair has several columns.
        """
        if not self.has_steps("component", pairs):
            return None
        out = np.zeros((len(pairs), self.n_outputs, rows.n_rows**2))
        tested, _ = self._by_tests(pairs)
        tables = self._step_tables(coverage, [pairs[k] for k in tested], n_threads)
        tables.look_up_grid(rows, tested, out, n_threads)
        return out.reshape(len(pairs), self.n_outputs, rows.n_rows, rows.n_rows)

    def has_steps(self, index: str, terms: list[tuple[int, ...]]) -> bool:
        """Whether the values of all terms are tables over codes, of tolerable size.

        Parameters
        ----------
        index : str
        terms : list of tuple of int

        Returns
        -------
        bool
        """
        if index != "component" or any(len(term) > 2 for term in terms):
            return False
        slots = self._least_slots(terms)
        if np.any(slots == SEVERAL):
            return False
        tested = [terms[k] for k in np.flatnonzero(slots >= 0)]
        return self.steps.table_sizes(tested).max(initial=0) <= MOST_STEP_ENTRIES


def _single_slots(columns: np.ndarray, player_of_input: np.ndarray, n_players: int) -> np.ndarray:
    """The binned column of each player, or UNTESTED or SEVERAL."""
    owner = np.asarray(player_of_input)[columns]
    slot = np.full(n_players, UNTESTED, np.int32)
    slot[owner] = np.arange(len(columns))
    slot[np.bincount(owner, minlength=n_players) > 1] = SEVERAL
    return slot
