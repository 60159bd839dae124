"""Moves of any model, by prediction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastpd_sklearn.explainers._moves import Move
from fastpd_sklearn.explainers._response import Response
from fastpd_sklearn.forest import _rows

BLOCK_ROWS = 50_000
"""Rows that the model predicts at a time."""


class PredictionResponder:
    """Makes the moved rows and lets the model predict them, many in one call.

    Parameters
    ----------
    respond : Response
    n_outputs : int
    absent : float
        See :class:`Responder`.
    categorical : frozenset of int
    """

    needs_model = True
    digest = None

    def __init__(self, respond: Response, n_outputs: int, absent: float, categorical) -> None:
        self.n_outputs = n_outputs
        self.absent, self.categorical = absent, categorical
        self._respond = respond

    def block_rows(self, n_moves: int) -> int:
        """See :class:`Responder`."""
        return BLOCK_ROWS // 4

    def refuse(self, X) -> None:
        """See :class:`Responder`: a column that is moved hides what it holds from the model."""
        for start in range(0, X.shape[0], BLOCK_ROWS):
            self._respond(_rows.take(X, slice(start, start + BLOCK_ROWS)))

    def hold(self, axes: list[tuple[int, np.ndarray]]) -> list:
        """See :class:`Responder`."""
        return axes

    def curves(self, X, held: list, room) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        for k, (column, points) in enumerate(held):
            out = room(k)
            for part, curves in self._blocks(X, column, points):
                out[:, part] = curves
            yield out

    def sums(self, X, held: list, weights: np.ndarray) -> Iterator[np.ndarray]:
        """See :class:`Responder`."""
        for column, points in held:
            total = np.zeros((self.n_outputs, len(points)))
            for part, curves in self._blocks(X, column, points):
                total += np.einsum("orp,r->op", curves, weights[part])
            yield total

    def _blocks(self, X, column: int, points: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
        n_rows, n_points = X.shape[0], len(points)
        step = max(1, BLOCK_ROWS // n_points)
        for start in range(0, n_rows, step):
            part = slice(start, min(n_rows, start + step))
            size = part.stop - start
            rows = _rows.take(X, np.repeat(np.arange(start, part.stop), n_points))
            moved = _rows.with_values(rows, {column: np.tile(points, size)})
            yield part, self._respond(moved).T.reshape(-1, size, n_points)

    def breaks(self, column: int) -> None:
        """None: where a model jumps is unknown."""
        return None

    def differences(self, X, moves: list[Move]) -> np.ndarray:
        """See :class:`Responder`: two predictions a row and move."""
        n_rows = X.shape[0]
        out = np.empty((len(moves), n_rows, self.n_outputs))
        step = max(1, BLOCK_ROWS // (2 * n_rows))
        for start in range(0, len(moves), step):
            some = moves[start : start + step]
            rows = _rows.take(X, np.tile(np.arange(n_rows), 2 * len(some)))
            values: dict[int, np.ndarray] = {}
            for k, move in enumerate(some):
                old = values.get(move.column)
                if old is None:
                    old = values[move.column] = _values(rows, move)
                for end in (0, 1):
                    part = slice((2 * k + end) * n_rows, (2 * k + end + 1) * n_rows)
                    _put(old[part], move, end)
            response = self._respond(_rows.with_values(rows, values))
            response = response.reshape(len(some), 2, n_rows, self.n_outputs)
            out[start : start + step] = response[:, 1] - response[:, 0]
        return out

    def mixed_difference(self, X, first: Move, second: Move) -> np.ndarray:
        """See :class:`Responder`: four predictions a row."""
        n_rows = X.shape[0]
        rows = _rows.take(X, np.tile(np.arange(n_rows), 4))
        values = {move.column: _values(rows, move) for move in (first, second)}
        for corner in range(4):
            part = slice(corner * n_rows, (corner + 1) * n_rows)
            _put(values[first.column][part], first, corner // 2)
            _put(values[second.column][part], second, corner % 2)
        response = self._respond(_rows.with_values(rows, values))
        corners = response.reshape(4, n_rows, self.n_outputs)
        return (corners[3] - corners[1]) - (corners[2] - corners[0])


def _values(rows, move: Move) -> np.ndarray:
    """A column's own values, in an array that holds the points of a move as well."""
    own = _rows.column_array(rows, move.column)
    dtype = object if object in (own.dtype, move.points.dtype) else np.result_type(own, np.float64)
    return own.astype(dtype)


def _put(values: np.ndarray, move: Move, end: int) -> None:
    """Write one end of each row's step, 0 for the low one, where there is a step."""
    moved = move.step >= 0
    values[moved] = move.points[move.step[moved] + end]
