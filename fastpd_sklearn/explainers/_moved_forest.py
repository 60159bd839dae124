"""Moves of tree ensembles, exactly and without a call of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
from fastpd_sklearn.forest import Forest
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from fastpd_sklearn.forest._inputs import InputMap

BLOCK_BYTES = 2**24
"""Memory for what moves add to a block of rows."""

LEAVES_BYTES = 2**26
"""The most memory for rows' own leaves."""

FEW_AXES = 3
"""From so many on it pays off to know the rows' own leaves."""


class ForestResponder:
    """Reads all moved responses off the trees.

    Parameters
    ----------
    forest : Forest
    input_map : InputMap
        Settled on the background.
    template : Template
        Makes rows that hold the points of a move.
    inverse_link : callable, default=None
        From margins, of shape (n_rows, n_outputs), to the response; None: the margins are it.
    n_jobs : int or None
    """

    needs_model = False

    def __init__(
        self,
        forest: Forest,
        input_map: InputMap,
        template: Template,
        inverse_link: Callable | None,
        n_jobs: int | None,
    ) -> None:
        self._made_from = (forest, input_map, template, inverse_link, n_jobs)
        self._forest, self._input_map, self._template = forest, input_map, template
        self._inverse_link, self._n_jobs = inverse_link, n_jobs
        self.n_outputs = forest.n_outputs
        self.absent = input_map.absent
        players = np.arange(forest.n_inputs, dtype=np.int32)
        self._walks = WalkModel(forest, players, forest.n_inputs, ZERO_THRESHOLD)
        self._bins = self._walks.bins
        self.categorical = categorical_columns(forest)
        self._slot = {int(column): slot for slot, column in enumerate(self._bins.columns)}
        self._walker = Walker(self._walks.trees)

    def __reduce__(self):
        return ForestResponder, self._made_from

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """Raw prediction from the forest's own inputs, for the check of a reading."""
        return self._margins(self._bins.bin_matrix(inputs, self._threads(len(inputs)))[0])

    def block_rows(self, n_moves: int) -> int:
        """See :class:`Responder`."""
        n_ends = 1 if self._inverse_link is None else 3  # both, and their difference
        return max(1, BLOCK_BYTES // (8 * n_ends * n_moves * self.n_outputs))

    def refuse(self, X) -> None:
        """See :class:`Responder`; nothing to do, since all rows are binned in any case."""

    def curves(self, X, axes: list[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        rows = self._bin(X)
        leaves = self._leaves(rows, len(axes))
        for held, place in self._held(axes):
            n_threads = self._threads(rows.n_rows)
            margins = self._walks.curves(rows, [held], n_threads, leaves=leaves)
            if self._inverse_link is not None:
                flat = margins.reshape(self.n_outputs, -1)
                margins = self._respond(flat.T).T.reshape(margins.shape)
            is_each = len(place) == held.size and np.array_equal(place, np.arange(held.size))
            yield margins if is_each else margins[:, :, place]

    def sums(
        self, X, axes: list[tuple[int, np.ndarray]], weights: np.ndarray
    ) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        rows = self._bin(X)
        leaves = self._leaves(rows, len(axes))
        link = "identity" if self._inverse_link is None else self._inverse_link
        for held, place in self._held(axes):
            n_threads = self._threads(rows.n_rows)
            yield self._walks.response_sums(rows, [held], link, weights, n_threads, leaves)[
                :, place
            ]

    def _leaves(self, rows: BinnedRows, n_axes: int) -> np.ndarray | None:
        """The rows' own leaves, if there are axes enough for them to pay off, and room."""
        if n_axes < FEW_AXES or 4 * rows.n_rows * self._forest.n_trees > LEAVES_BYTES:
            return None
        return self._walks.leaves(rows, self._threads(rows.n_rows))

    def _held(self, axes: list[tuple[int, np.ndarray]]) -> Iterator[tuple[Points, np.ndarray]]:
        """The different points of columns, and which of them each given point is."""
        for column, points in axes:
            rows = self._bin(self._template.rows({column: points}))
            yield self._walks.points(rows, column)

    def breaks(self, column: int) -> np.ndarray | None:
        """See :class:`Responder`."""
        if column not in self._slot:
            return np.empty(0)
        if column in self.categorical:
            return None
        edges = curve_edges(self._input_map, self._bins, self._slot[column])
        return effective_breaks(edges, self._forest.strict, self._forest.single)

    def pieces(self, breaks: np.ndarray) -> np.ndarray:
        """See :class:`Responder`."""
        return piece_points(breaks, self._forest.strict, self._forest.single)

    def differences(self, X, moves: list[Move]) -> np.ndarray:
        """See :class:`Responder`."""
        rows = self._bin(X)
        apart = self._inverse_link is not None
        # A move's responses lie together: its moments are taken over the rows.
        out = np.zeros((len(moves), self.n_outputs, X.shape[0])).transpose(0, 2, 1)
        tested = [k for k, move in enumerate(moves) if move.column in self._slot]
        if not tested:
            return out
        steps = self._steps(rows, [moves[k] for k in tested])
        added = self._walker.move(rows, steps, apart, self._threads(X.shape[0]))
        added = added.transpose(0, 1, 3, 2)
        if not apart and len(tested) == len(moves):
            return added[:, 0]
        margins = self._margins(rows) if apart else None
        for k, ends in zip(tested, added, strict=True):
            if margins is None:
                out[k] = ends[0]
            else:
                out[k] = self._respond(margins + ends[1]) - self._respond(margins + ends[0])
        return out

    def mixed_difference(self, X, first: Move, second: Move) -> np.ndarray:
        """See :class:`Responder`."""
        rows = self._bin(X)
        if first.column not in self._slot or second.column not in self._slot:
            return np.zeros((X.shape[0], self.n_outputs))
        ends = [self._ends(rows, move) for move in (first, second)]
        corner = [
            self._respond(self._margins(rows, {first.column: one, second.column: other}))
            for one in ends[0]
            for other in ends[1]
        ]
        return (corner[3] - corner[1]) - (corner[2] - corner[0])

    # ------------------------------------------------------------------ codes

    def _threads(self, n_rows: int) -> int:
        return threads_for(n_rows * self._forest.n_trees, effective_n_threads(self._n_jobs))

    def _bin(self, X) -> BinnedRows:
        return bin_rows(self._input_map, self._bins, X, self._threads(X.shape[0]))

    def _margins(self, rows: BinnedRows, held: dict[int, np.ndarray] | None = None) -> np.ndarray:
        """Raw prediction, with some columns held at other codes."""
        if held:
            rows = BinnedRows(rows.data.copy(), rows.offset, rows.width, rows.n_rows)
            for column, codes in held.items():
                rows.column(self._slot[column])[:] = codes
        return self._walks.predict(rows, self._threads(rows.n_rows))

    def _respond(self, margins: np.ndarray) -> np.ndarray:
        return margins if self._inverse_link is None else self._inverse_link(margins)

    def _codes(self, points: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The codes of some points of some columns, all made in one go."""
        size = max(len(p) for p in points.values())
        padded = {j: p[np.minimum(np.arange(size), len(p) - 1)] for j, p in points.items()}
        rows = self._bin(self._template.rows(padded))
        return {j: rows.column(self._slot[j])[: len(p)] for j, p in points.items()}

    def _steps(self, rows: BinnedRows, moves: list[Move]) -> list[Steps]:
        """Moves as the walk takes them."""
        codes = self._codes({move.column: move.points for move in moves})
        slots = [self._slot[move.column] for move in moves]
        return [
            Steps(
                slot,
                codes[move.column],
                move.step,
                rows.column(slot),
                self._walks.is_line[move.column],
                int(self._bins.n_codes[slot]),
            )
            for slot, move in zip(slots, moves, strict=True)
        ]

    def _ends(self, rows: BinnedRows, move: Move) -> tuple[np.ndarray, np.ndarray]:
        """The codes that a move gives to its column."""
        codes = self._codes({move.column: move.points})[move.column]
        own = rows.column(self._slot[move.column])
        stays = move.step < 0
        return np.where(stays, own, codes[move.step]), np.where(stays, own, codes[move.step + 1])


def categorical_columns(forest: Forest) -> frozenset[int]:
    """Columns that trees split by category."""
    return frozenset(np.unique(forest.feature[forest.is_categorical]).tolist())
