"""Columns of given rows that take other values: all that ICE and ALE ask of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True, eq=False)
class Move:
    """A column, points that it may take, and a step between two of these for every row.

    Parameters
    ----------
    column : int
    points : ndarray of shape (n_points,)
        Numbers, or labels of a column of labels.
    step : ndarray of shape (n_rows,), int
        The row's own value lies between point ``step`` and the next one, or is one of them; -1
        where the row is to stay as it is.
    """

    column: int
    points: np.ndarray
    step: np.ndarray

    def part(self, rows: slice) -> Move:
        """The move of some of the rows."""
        return Move(self.column, self.points, self.step[rows])


class Responder(Protocol):
    """A response of a model, for rows with some columns moved.

    Attributes
    ----------
    n_outputs : int
    absent : float
        What an absent entry of a sparse matrix means.
    categorical : frozenset of int
        Columns of numbers that the model is known to take for categories.
    needs_model : bool
        Whether the model is called.
    digest : str or None
        Of what the response is read from; None where that does not tell the model.
    """

    n_outputs: int
    absent: float
    categorical: frozenset[int]
    needs_model: bool
    digest: str | None

    def block_rows(self, n_moves: int) -> int:
        """How many rows to move at a time, so that memory stays bounded."""

    def refuse(self, X) -> None:
        """Raise the model's own error if it does not take some rows, moved or not."""

    def hold(self, axes: list[tuple[int, np.ndarray]]) -> list:
        """Columns and their points as :meth:`curves` and :meth:`sums` take them for any rows."""

    def curves(self, X, held: list, room: Callable[[int], np.ndarray]) -> Iterator[np.ndarray]:
        """The response of every row with a column at every point, for columns and their points.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        held : list
            From :meth:`hold`.
        room : callable
            By the number of a column, the array to write its curves to, of shape (n_outputs,
            n_rows, n_points), float64. It need not be contiguous.

        Yields
        ------
        ndarray of shape (n_outputs, n_rows, n_points), float64
            These arrays, one by one.
        """

    def sums(self, X, held: list, weights: np.ndarray) -> Iterator[np.ndarray]:
        """Weighted sums of the curves over the rows, which need not be held for it.

        Yields
        ------
        ndarray of shape (n_outputs, n_points), float64
        """

    def breaks(self, column: int) -> np.ndarray | None:
        """Where curves may jump, ascending; None if they are no step functions of numbers."""

    def pieces(self, breaks: np.ndarray) -> np.ndarray:
        """One number in each piece, shape (n_breaks + 1,); only of responders that have breaks."""

    def differences(self, X, moves: list[Move]) -> np.ndarray:
        """The response at the high point less that at the low one, for every move by itself.

        Returns
        -------
        ndarray of shape (n_moves, n_rows, n_outputs), float64
            Zero for rows that stay.
        """

    def mixed_difference(self, X, first: Move, second: Move) -> np.ndarray:
        """The difference over the first move of the difference over the second.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
