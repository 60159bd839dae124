"""What a model predicts for its rows when some columns are set to the points of a grid."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.explainers._response import Response
from fastpd_sklearn.forest import _rows

BLOCK_ROWS = 50_000
"""Rows that the model predicts at a time."""


class Predictions:
    """Responses of a model to rows with some columns replaced.

    Parameters
    ----------
    model : object
        Fitted.
    response_method : str
        See :class:`~fastpd_sklearn.explainers._response.Response`.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : ndarray of shape (n_rows,) or None
        Weights of the rows in averages.
    """

    def __init__(self, model, response_method: str, X, sample_weight: np.ndarray | None) -> None:
        self._respond = Response(model, response_method)
        self._X = X
        self._weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight

    def average(self, columns: tuple[int, ...], axes: list[np.ndarray]) -> np.ndarray:
        """Weighted mean response at every point of a grid.

        Parameters
        ----------
        columns : tuple of int
        axes : list of ndarray
            The points of each column; the grid is their product.

        Returns
        -------
        ndarray of shape (n_outputs, n_points of the first column, ...)
        """
        shape = tuple(len(axis) for axis in axes)
        total = 0.0
        for points, rows, responses in self._blocks(columns, axes):
            if isinstance(total, float):
                total = np.zeros((responses.shape[2], int(np.prod(shape))))
            total[:, points] += np.einsum("r,prk->kp", self._weights[rows], responses)
        return (total / self._weights.sum()).reshape(-1, *shape)

    def individual(self, columns: tuple[int, ...], axes: list[np.ndarray]) -> np.ndarray:
        """Response of every row at every point of a grid.

        Parameters
        ----------
        columns : tuple of int
        axes : list of ndarray

        Returns
        -------
        ndarray of shape (n_outputs, n_rows, n_points of the first column, ...)

        Raises
        ------
        MemoryError
            If they do not fit into the memory at hand.
        """
        shape = tuple(len(axis) for axis in axes)
        n_rows, n_points = self._X.shape[0], int(np.prod(shape))
        out = None
        for points, rows, responses in self._blocks(columns, axes):
            if out is None:
                n_outputs = responses.shape[2]
                check_individual(n_rows, n_outputs, axes)
                out = np.empty((n_outputs, n_rows, n_points))
            out[:, rows, points] = responses.transpose(2, 1, 0)
        return out.reshape(-1, n_rows, *shape)

    def _blocks(self, columns, axes) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Slices of points and rows, and responses (n_points, n_rows, n_outputs)."""
        shape = tuple(len(axis) for axis in axes)
        places = np.indices(shape).reshape(len(shape), -1)
        for rows in _slices(self._X.shape[0], BLOCK_ROWS):
            n_rows = rows.stop - rows.start
            for points in _slices(places.shape[1], max(1, BLOCK_ROWS // n_rows)):
                n_points = points.stop - points.start
                values = {
                    column: np.repeat(axis[place[points]], n_rows)
                    for column, axis, place in zip(columns, axes, places, strict=True)
                }
                taken = _rows.take(self._X, np.tile(np.arange(rows.start, rows.stop), n_points))
                responses = self._respond(_rows.with_values(taken, values))
                yield points, rows, responses.reshape(n_points, n_rows, -1)


def check_individual(n_rows: int, n_outputs: int, axes: list[np.ndarray]) -> None:
    """Refuse the responses of all rows on a grid if they do not fit into the memory at hand."""
    n_points = int(np.prod([len(axis) for axis in axes]))
    _checks.check_memory(
        8 * n_outputs * n_rows * n_points,
        f"the response of {n_rows} rows at {n_points} points",
        "pass fewer rows as X, or lower grid_resolution",
    )


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]
