"""A forest in the terms of the core: binned tests, leaves and players."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from fastpd_sklearn.core import counting
from fastpd_sklearn.core.attribution import Rules
from fastpd_sklearn.core.binning import Bins
from fastpd_sklearn.core.coverage import Coverage
from fastpd_sklearn.core.evaluation import attribute
from fastpd_sklearn.core.geometry import Geometry, Units
from fastpd_sklearn.core.plan import Matches, Plan
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.steps import Steps

MOST_STEP_ENTRIES = 2**24
"""The largest table of a step function: beyond it rows are looked up by their masks."""

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

    Attributes
    ----------
    bins : Bins
    geometry : Geometry
    value : ndarray of shape (n_nodes, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    intercept : ndarray of shape (n_outputs,), float64
    leaf_value : ndarray of shape (n_leaves, n_values), float64
    units : Units
    singles : list of tuple of int
        All players as terms, and their plan:
    single_plan : Plan
    steps : Steps
    """

    def __init__(self, forest, player_of_input: np.ndarray, n_players: int, zero: float) -> None:
        self._made_from = (forest, player_of_input, n_players, zero)
        self.bins = Bins(
            forest.feature,
            forest.threshold,
            forest.missing_left,
            forest.zero_as_missing,
            forest.is_categorical,
            forest.listed_left,
            forest.category_start,
            forest.category,
            zero,
            forest.strict,
            forest.single,
        )
        self.geometry = Geometry(
            forest.left,
            forest.right,
            forest.feature,
            forest.tree_start,
            np.asarray(player_of_input, np.int32),
            n_players,
        )
        self.slot_of_player = _single_slots(self.bins.columns, player_of_input, n_players)
        self.value = np.ascontiguousarray(forest.value)
        self.tree_output = forest.tree_output
        self.intercept = forest.intercept
        self.leaf_value = np.ascontiguousarray(self.value[self.geometry.leaf_node])
        self.units = Units(self.geometry)
        self.singles = [(player,) for player in range(n_players)]
        self.single_plan = Plan(self.geometry, self.units, self.singles)
        self.steps = Steps(
            self.bins.tests,
            self.bins.n_codes,
            self.geometry,
            self.slot_of_player,
            self.leaf_value,
            self.tree_output,
            self.n_outputs,
        )

    def __reduce__(self):
        return CoreModel, self._made_from

    @property
    def n_outputs(self) -> int:
        """Number of raw outputs."""
        return len(self.intercept)

    def predict(self, rows: BinnedRows, n_threads: int) -> np.ndarray:
        """Raw prediction, float64 of shape (n_rows, n_outputs)."""
        return counting.predict(
            rows,
            self.bins.tests,
            self.geometry,
            self.value,
            self.tree_output,
            self.intercept,
            n_threads,
        )

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
        out = np.zeros((len(terms), self.n_outputs, rows.n_rows))
        if index == "component" and self._has_steps(terms):
            tested = [k for k, term in enumerate(terms) if self._is_tested(term)]
            terms = [terms[k] for k in tested]
            matches = Matches(self.geometry, terms)
            columns = np.array(tested, np.int64)
            self.steps.look_up(rows, coverage, matches, terms, columns, out, n_threads)
            return out
        attribute(
            rows,
            self.bins.tests,
            self.geometry,
            self.units,
            self.single_plan if terms == self.singles else Plan(self.geometry, self.units, terms),
            coverage,
            Rules(index, self.geometry.leaf_sizes),
            self.leaf_value,
            self.tree_output,
            out,
            n_threads,
        )
        return out

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
        if not self._has_steps(pairs):
            return None
        out = np.zeros((len(pairs), self.n_outputs, rows.n_rows**2))
        tested = [k for k, pair in enumerate(pairs) if self._is_tested(pair)]
        wanted = [pairs[k] for k in tested]
        matches = Matches(self.geometry, wanted)
        columns = np.array(tested, np.int64)
        self.steps.look_up_grid(rows, coverage, matches, wanted, columns, out, n_threads)
        return out.reshape(len(pairs), self.n_outputs, rows.n_rows, rows.n_rows)

    def _has_steps(self, terms: list[tuple[int, ...]]) -> bool:
        """Whether the components of all terms are tables over codes, of tolerable size."""
        if any(len(term) > 2 for term in terms):
            return False
        if any(self.slot_of_player[player] == SEVERAL for term in terms for player in term):
            return False
        tested = [term for term in terms if self._is_tested(term)]
        return self.steps.table_sizes(tested).max(initial=0) <= MOST_STEP_ENTRIES

    def _is_tested(self, term: tuple[int, ...]) -> bool:
        """Whether the trees test all players of a term; otherwise its values are zero."""
        return all(self.slot_of_player[player] >= 0 for player in term)


def _single_slots(columns: np.ndarray, player_of_input: np.ndarray, n_players: int) -> np.ndarray:
    """The binned column of each player, or UNTESTED or SEVERAL."""
    owner = np.asarray(player_of_input)[columns]
    slot = np.full(n_players, UNTESTED, np.int32)
    slot[owner] = np.arange(len(columns))
    slot[np.bincount(owner, minlength=n_players) > 1] = SEVERAL
    return slot
