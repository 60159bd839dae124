"""The engine of tree ensembles: a forest, a coverage of its leaves, and the core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.core.coverage import Coverage
from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.core.plan import common_terms, count_sets
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.threads import effective_n_threads
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.core.walking import Points
from fastpd_sklearn.explainers._binned import bin_rows, curve_edges, has_sentinel, threads_for
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.forest import Reading
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest
from fastpd_sklearn.forest._pipeline import PipelineMap

ROWS_PREDICTED = 16
"""Rows that are predicted in about the time that it takes to explain one."""

MOST_SETS = 10_000_000
"""Sets of players of all leaves, at most, that are looked through for those that interact."""


STATE_VERSION = 1
"""Of what an engine keeps of its background. States of different versions are not merged."""


class TreeEngine(ABC):
    """Explains a forest exactly; subclasses say how its leaves are covered.

    Parameters
    ----------
    reading : Reading
        The model.
    players : sequence of ndarray of int
        The columns of each player.
    n_jobs : int or None

    Attributes
    ----------
    n_outputs : int
    intercept : ndarray of shape (n_outputs,)
    strict, single : bool
    allow_nan : bool
    indices : tuple of str
    is_mean : bool
    """

    indices = tuple(INDICES)
    is_mean = True

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        forest = reading.forest
        self.input_map = reading.input_map
        self.n_jobs = n_jobs
        owner = self.input_map.owner(players)
        self.core = self._make_core(forest, owner, len(players))
        self.cover = forest.cover
        self.forest = forest
        self.state_version = STATE_VERSION
        self.n_outputs = forest.n_outputs
        self.strict, self.single = forest.strict, forest.single
        self.allow_nan = self.input_map.allow_nan
        self.derive()

    def _make_core(self, forest: Forest, owner: np.ndarray, n_players: int) -> CoreModel:
        return CoreModel(forest, owner, n_players, ZERO_THRESHOLD)

    @property
    def walks(self) -> WalkModel:
        """The forest as rows walk through it, with players held at points."""
        return self.core.walks

    @cached_property
    def forest_digest(self) -> str:
        """Tells whether two engines explain the same trees; asked for by merging and saving."""
        return self.forest.digest()

    @abstractmethod
    def _make_coverage(self) -> Coverage | None:
        """The coverage that the state says; None while there is no state."""

    def derive(self) -> None:
        """Make from the state what is made from it, and is in no pickle."""
        self.coverage = self._make_coverage()
        if self.coverage is not None:
            self.intercept = self._mean()

    def _mean(self) -> np.ndarray:
        """Mean raw prediction over what covers the leaves, shape (n_outputs,)."""
        share, _ = self.coverage.near_full(self.core.geometry.leaf_sizes)
        return self.core.mean(share)

    def __getstate__(self) -> dict:
        return {k: v for k, v in self.__dict__.items() if k != "coverage"}

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self.derive()

    def __copy__(self) -> TreeEngine:
        """An engine with the same state, of which an update changes no part in place."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        return twin

    def counted(self) -> TreeEngine:
        """An engine with the same background that others for the forest can be merged with."""
        return self

    @property
    def n_threads(self) -> int:
        """Threads to use, found out at each call."""
        return effective_n_threads(self.n_jobs)

    def threads_for(self, n_rows: int) -> int:
        """Threads for some rows: starting them must not cost more than they save."""
        return threads_for(n_rows * self.forest.n_trees, self.n_threads)

    def bin(self, X) -> BinnedRows:
        """The rows of ``X`` as codes.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        BinnedRows

        Raises
        ------
        ValueError
            If ``X`` holds a value that the model's library does not take.
        """
        return bin_rows(self.input_map, self.core.bins, X, self.threads_for(X.shape[0]))

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """Raw prediction from the forest's own inputs, for the check of a reading.

        Parameters
        ----------
        inputs : ndarray of shape (n_rows, n_inputs), float64

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        n_threads = self.threads_for(len(inputs) // ROWS_PREDICTED)
        rows, _ = self.core.bins.bin_matrix(inputs, n_threads)
        return self.core.predict(rows, n_threads)

    @property
    def linear_inputs(self) -> frozenset[int]:
        """The forest's inputs of which some leaves are linear functions."""
        return frozenset()

    @property
    def preprocesses(self) -> bool:
        """Whether the columns are those of a pipeline, and not the forest's own."""
        return isinstance(self.input_map, PipelineMap)

    def predict(self, X) -> np.ndarray:
        """Raw prediction of every row, shape (n_rows, n_outputs)."""
        return self.core.predict(self.bin(X), self.threads_for(X.shape[0]))

    def common_terms(self, max_order: int | None) -> list[Term]:
        """Sets of at least two players that lie on a common path, of sizes up to ``max_order``."""
        n_sets = 0 if max_order == 2 else count_sets(self.core.geometry, max_order)
        if n_sets > MOST_SETS:
            raise MemoryError(
                f"max_order={max_order}: the leaves have {n_sets:.2g} sets of so many features, "
                f"more than the {MOST_SETS:.0e} that can be listed; lower max_order, or name the "
                "sets in `features`"
            )
        return common_terms(self.core.geometry, max_order)

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """Values of terms under an index, shape (n_rows, n_terms, n_outputs)."""
        rows = self.bin(X)
        n_threads = self.threads_for(rows.n_rows)
        return self.core.attribute(rows, self.coverage, index, terms, n_threads).transpose(2, 0, 1)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """What :meth:`index_values` gives, terms of the same trees together."""
        rows = self.bin(X)
        blocks = self.core.attribute_blocks(
            rows, self.coverage, index, terms, n_values, self.threads_for(rows.n_rows)
        )
        for numbers, values in blocks:
            yield numbers, values.transpose(2, 0, 1)

    def has_steps(self, index: str, terms: list[Term]) -> bool:
        """Whether values of terms are step functions, which :meth:`write_steps` writes."""
        return isinstance(self.core, CoreModel) and self.core.has_steps(index, terms)

    def write_steps(
        self, X, index: str, terms: list[Term], out: np.ndarray, base: np.ndarray
    ) -> None:
        """Write what :meth:`index_values` gives where it is to be, each value once.

        Parameters
        ----------
        X, index, terms
            As :meth:`index_values`; see :meth:`has_steps`.
        out : ndarray of shape (n_rows, n_terms, n_outputs), float64 or float32
        base : ndarray of shape (n_outputs,), float64
            What is added to every value.
        """
        rows = self.bin(X)
        n_threads = self.threads_for(rows.n_rows)
        out = out.transpose(1, 2, 0)
        self.core.write_steps(rows, self.coverage, terms, out, base, n_threads)

    def pair_grid(self, X, pairs: list[Term]) -> np.ndarray | None:
        """Components of pairs on the product of the rows with themselves.

        Returns
        -------
        ndarray of shape (n_pairs, n_outputs, n_rows, n_rows), or None
            None where they have to be evaluated pair by pair.
        """
        return self.core.pair_grid(self.bin(X), self.coverage, pairs, self.n_threads)

    def levels(self, player: int) -> np.ndarray | None:
        """The component of one player between the split points of its column, missing last."""
        # The number that stands for missing has a piece of its own, which is no code's.
        return None if has_sentinel(self.input_map) else self.core.levels(self.coverage, player)

    def slopes(self, player: int) -> np.ndarray | None:
        """What a number is multiplied by in the component of its player, by pieces.

        Returns
        -------
        ndarray of shape (n_outputs, n_pieces + 1), float64, or None
            As :meth:`levels`, which are then the component as it would be at zero. None where
            the component is constant between split points.
        """
        return None

    def individual(self, X, term: Term, grids: Sequence) -> np.ndarray:
        """Raw predictions of every row, with one player, or two, held at points.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        term : tuple of int
            One player, or two.
        grids : sequence of array, sparse matrix or data frame of shape (n_points, n_columns)
            One a player: rows of which its columns hold the points.

        Returns
        -------
        ndarray of shape (n_outputs, n_rows, n_points of the first player, ...), float64
            Exact, at a cost that hardly depends on the number of points.
        """
        rows = self.bin(X)
        points, places = self.held_points(term, grids)
        curves = self.walks.curves(rows, points, self.threads_for(rows.n_rows))
        return at_places(curves, places)

    def individual_response(self, X, term: Term, grids: Sequence) -> np.ndarray:
        """As :meth:`individual`, of the response that is explained: here the sum of the trees."""
        return self.individual(X, term, grids)

    def held_points(self, term: Term, grids: Sequence) -> tuple[list[Points], list[np.ndarray]]:
        """The different points of some players, and which of them each row of a grid is."""
        found = [
            self.walks.points(self.bin(grid), player)
            for player, grid in zip(term, grids, strict=True)
        ]
        return [points for points, _ in found], [place for _, place in found]

    def split_points(self, column: int) -> np.ndarray | None:
        """Thresholds of a column as the trees compare with them.

        Where a number stands for missing, also both ends of the piece that is that number.
        None for a column of labels, and for the raw columns of a pipeline, of which the trees
        test what the steps make of them.
        """
        if self.preprocesses:
            return None
        bins = self.core.bins
        slot = np.searchsorted(bins.columns, column)
        if slot == len(bins.columns) or bins.columns[slot] != column:
            return np.empty(0)
        if bins.categorical[slot]:
            return None
        return curve_edges(self.input_map, bins, slot)

    def listed_categories(self, column: int) -> np.ndarray | None:
        """Categories of a column of numbers, NaN at the end if it may be missing.

        Those that some node lists; None if the column is not categorical.
        """
        if self.preprocesses:
            return None
        bins = self.core.bins
        slot = np.searchsorted(bins.columns, column)
        if slot == len(bins.columns) or bins.columns[slot] != column:
            return None
        if not bins.categorical[slot]:
            return None
        return self.input_map.numbers_of(column, bins.slot_edges(slot))

    @abstractmethod
    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""

    def check_same_model(self, other: TreeEngine) -> None:
        """Refuse an engine of another forest; see :class:`Engine`."""
        if self.state_version != other.state_version:
            raise ValueError(
                "merge: the two explainers keep their backgrounds in different ways (versions "
                f"{self.state_version} and {other.state_version}); fit both with the same version "
                "of fastpd_sklearn"
            )
        same_inputs = self.input_map.same_as(other.input_map)
        if self.forest_digest != other.forest_digest or not same_inputs:
            raise ValueError(
                "merge: the two explainers explain different models, of which "
                + ("the trees" if same_inputs else "the readings of the columns")
                + " are not the same; fit both on parts of a background of one model"
            )


def at_places(values: np.ndarray, places: Sequence[np.ndarray]) -> np.ndarray:
    """Values whose last axes are points, with these axes as the rows that the points are of."""
    for axis, place in enumerate(places, values.ndim - len(places)):
        if not np.array_equal(place, np.arange(values.shape[axis])):
            values = values.take(place, axis=axis)
    return values
