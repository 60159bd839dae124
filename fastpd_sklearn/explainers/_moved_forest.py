"""Moves of tree ensembles, exactly and without a call of the model."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from fastpd_sklearn.core.moves import Steps, Walker
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.threads import effective_n_threads
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.core.walking import Points
from fastpd_sklearn.explainers._binned import bin_rows, curve_edges, threads_for
from fastpd_sklearn.explainers._curve import effective_breaks, piece_points
from fastpd_sklearn.explainers._grid import Template
from fastpd_sklearn.explainers._moves import Move
from fastpd_sklearn.explainers._response import core_link
from fastpd_sklearn.forest import Forest, Head
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._pipeline import PipelineMap
from fastpd_sklearn.forest._transformers import LABELS, SAME

BLOCK_BYTES = 2**24
"""Memory for what moves add to a block of rows."""


class ForestResponder:
    """Reads all moved responses off the trees.

    Parameters
    ----------
    forest : Forest
    input_map : InputMap or PipelineMap
        Settled on the background. Of a pipeline its raw columns are moved, but for those that a
        step mixes with others.
    template : Template
        Makes rows that hold the points of a move.
    head : Head or None
        Whose inverse link leads from the margins to the response; None: the margins are it.
    n_jobs : int or None
    """

    needs_model = False

    def __init__(
        self,
        forest: Forest,
        input_map: InputMap,
        template: Template,
        head: Head | None,
        n_jobs: int | None,
    ) -> None:
        self._made_from = (forest, input_map, template, head, n_jobs)
        self._forest, self._input_map, self._template = forest, input_map, template
        self._head, self._n_jobs = head, n_jobs
        self.n_outputs = self._respond(np.zeros((1, forest.n_outputs))).shape[1]
        self.absent = absent_value(input_map)
        self._is_raw = isinstance(input_map, PipelineMap)
        owner, n_columns = np.arange(forest.n_inputs, dtype=np.int32), forest.n_inputs
        if self._is_raw:
            n_columns = input_map.n_columns
            owner = input_map.owner([(j,) for j in range(n_columns)])
        self._walks = WalkModel(forest, owner, n_columns, ZERO_THRESHOLD)
        self._bins = self._walks.bins
        self.categorical = categorical_columns(forest, input_map)

    @property
    def digest(self) -> str | None:
        """See :class:`Responder`; None for pipelines, whose steps are a part of the model."""
        return None if self._is_raw else self._forest.digest()

    def __reduce__(self):
        return ForestResponder, self._made_from

    @cached_property
    def _walker(self) -> Walker:
        """The trees as moved rows walk through them; of no use to curves."""
        return Walker(self._walks.trees)

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """Raw prediction from the forest's own inputs, for the check of a reading."""
        return self._margins(self._bins.bin_matrix(inputs, self._threads(len(inputs)))[0])

    def block_rows(self, n_moves: int) -> int:
        """See :class:`Responder`."""
        n_ends = 1 if self._head is None else 3  # both, and their difference
        n_outputs = max(self._forest.n_outputs, self.n_outputs)
        return max(1, BLOCK_BYTES // (8 * n_ends * n_moves * n_outputs))

    def refuse(self, X) -> None:
        """See :class:`Responder`; nothing to do, since all rows are binned in any case."""

    def hold(self, axes: list[tuple[int, np.ndarray]]) -> tuple[list[Points], list[np.ndarray]]:
        """The different points of columns, and which of them each given point is."""
        made = [
            self._walks.points(self._bin(self._template.rows({column: points})), column)
            for column, points in axes
        ]
        return [points for points, _ in made], [place for _, place in made]

    def curves(self, X, held, room) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        rows = self._bin(X)
        points, places = held
        threads = self._threads(rows.n_rows)
        yield from self._walks.curves_along(
            rows, points, places, self._link, self._respond, threads, room
        )

    def sums(self, X, held, weights: np.ndarray) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        rows = self._bin(X)
        points, places = held
        n_threads = self._threads(rows.n_rows)
        sums = self._walks.sums_along(rows, points, self._link, weights, n_threads)
        for found, place in zip(sums, places, strict=True):
            yield found[:, place]

    @property
    def _link(self):
        """From margins to the response: by name where the core knows it."""
        return "identity" if self._head is None else core_link(self._head)

    def breaks(self, column: int) -> np.ndarray | None:
        """See :class:`Responder`."""
        slots = self._walks.slots[column]
        if column in self.categorical or self._is_raw:
            return None
        if not len(slots):
            return np.empty(0)
        edges = curve_edges(self._input_map, self._bins, int(slots[0]))
        return effective_breaks(edges, self._forest.strict, self._forest.single)

    def pieces(self, breaks: np.ndarray) -> np.ndarray:
        """See :class:`Responder`."""
        return piece_points(breaks, self._forest.strict, self._forest.single)

    def differences(self, X, moves: list[Move]) -> np.ndarray:
        """See :class:`Responder`."""
        rows = self._bin(X)
        # A move's responses lie together: its moments are taken over the rows.
        out = np.zeros((len(moves), self.n_outputs, X.shape[0])).transpose(0, 2, 1)
        n_slots = [len(self._walks.slots[move.column]) for move in moves]
        near = [k for k, n in enumerate(n_slots) if n == 1]
        if near:
            differences = self._walked(rows, [moves[k] for k in near])
            if len(near) == len(moves):
                return differences
            out[near] = differences
        for k in [k for k, n in enumerate(n_slots) if n > 1]:
            low, high = (self._held_response(rows, ends) for ends in self._ends(rows, [moves[k]]))
            out[k] = high - low
        return out

    def mixed_difference(self, X, first: Move, second: Move) -> np.ndarray:
        """See :class:`Responder`."""
        rows = self._bin(X)
        if not all(len(self._walks.slots[move.column]) for move in (first, second)):
            return np.zeros((X.shape[0], self.n_outputs))
        ends = [self._ends(rows, [move]) for move in (first, second)]
        corner = [
            self._held_response(rows, {**one, **other}) for one in ends[0] for other in ends[1]
        ]
        return (corner[3] - corner[1]) - (corner[2] - corner[0])

    # ------------------------------------------------------------------ codes

    def _threads(self, n_rows: int) -> int:
        return threads_for(n_rows * self._forest.n_trees, effective_n_threads(self._n_jobs))

    def _bin(self, X) -> BinnedRows:
        return bin_rows(self._input_map, self._bins, X, self._threads(X.shape[0]))

    def _held_response(self, rows: BinnedRows, held: dict[int, np.ndarray]) -> np.ndarray:
        """The response with some binned columns held at other codes."""
        rows = BinnedRows(rows.data.copy(), rows.offset, rows.width, rows.n_rows)
        for slot, codes in held.items():
            rows.column(slot)[:] = codes
        return self._respond(self._margins(rows))

    def _margins(self, rows: BinnedRows) -> np.ndarray:
        """Raw prediction."""
        return self._walks.predict(rows, self._threads(rows.n_rows))

    def _respond(self, margins: np.ndarray) -> np.ndarray:
        return margins if self._head is None else self._head.respond(margins)

    def _codes(self, moves: list[Move]) -> list[list[np.ndarray]]:
        """The codes of each move's points in the slots of its column, all made in one go."""
        points = {move.column: move.points for move in moves}
        size = max(len(p) for p in points.values())
        padded = {j: p[np.minimum(np.arange(size), len(p) - 1)] for j, p in points.items()}
        rows = self._bin(self._template.rows(padded))
        return [
            [rows.column(slot)[: len(move.points)] for slot in self._walks.slots[move.column]]
            for move in moves
        ]

    def _walked(self, rows: BinnedRows, moves: list[Move]) -> np.ndarray:
        """Differences over moves of columns that are one binned column each."""
        apart = self._head is not None
        steps = [
            self._steps(rows, move, codes)
            for move, (codes,) in zip(moves, self._codes(moves), strict=True)
        ]
        added = self._walker.move(rows, steps, apart, self._threads(rows.n_rows))
        added = added.transpose(0, 1, 3, 2)
        if not apart:
            return added[:, 0]
        margins = self._margins(rows)
        return np.stack(
            [self._respond(margins + high) - self._respond(margins + low) for low, high in added]
        )

    def _steps(self, rows: BinnedRows, move: Move, codes: np.ndarray) -> Steps:
        """A move as the walk takes it."""
        slot = int(self._walks.slots[move.column][0])
        own = rows.column(slot)
        cuts = self._walks.is_line[move.column]
        if cuts and self._is_raw:  # what a pipeline makes of values may be in any order
            stays = move.step < 0
            is_above, is_below = own >= codes[move.step], own <= codes[move.step + 1]
            cuts = bool(np.all(stays | (is_above & is_below)))
        return Steps(slot, codes, move.step, own, cuts, int(self._bins.n_codes[slot]))

    def _ends(self, rows: BinnedRows, moves: list[Move]) -> list[dict[int, np.ndarray]]:
        """By end, low and high, the codes that moves give to the slots of their columns."""
        ends: list[dict[int, np.ndarray]] = [{}, {}]
        for move, codes in zip(moves, self._codes(moves), strict=True):
            for slot, of_points in zip(self._walks.slots[move.column], codes, strict=True):
                own = rows.column(slot)
                for end in (0, 1):
                    moved = of_points[move.step + end]
                    ends[end][int(slot)] = np.where(move.step < 0, own, moved)
        return ends


def absent_value(input_map: InputMap | PipelineMap) -> float:
    """What an absent entry of a sparse matrix means."""
    return 0.0 if isinstance(input_map, PipelineMap) else input_map.absent


def categorical_columns(forest: Forest, input_map: InputMap | PipelineMap) -> frozenset[int]:
    """Columns of numbers that trees split by category, or that a pipeline takes for labels."""
    split = np.unique(forest.feature[forest.is_categorical]).tolist()
    if not isinstance(input_map, PipelineMap):
        return frozenset(split)
    origins = input_map.origins
    found = [origins[j] for j in split if origins[j].shape == SAME]
    found += [origin for origin in origins if origin.shape == LABELS]
    return frozenset(j for origin in found for j in origin.columns)
