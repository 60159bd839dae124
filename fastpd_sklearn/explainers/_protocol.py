"""What an explainer asks of the thing that computes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

Term = tuple[int, ...]
"""A set of players, ascending."""


class Engine(Protocol):
    """A game for every row of ``X``, and its values.

    The *players* are the features, or groups of them; ``v_S(x)`` is the mean response over
    the background with the columns of the players in ``S`` set to those of the row ``x``.

    Attributes
    ----------
    n_outputs : int
    indices : tuple of str
        The indices that it has values of.
    intercept : ndarray of shape (n_outputs,)
        ``v`` of the empty set: the weighted mean response over the background.
    strict, single : bool
        Whether a value that equals a split point goes *above* it, and whether values are
        rounded to float32 before they are compared (engines with split points).
    allow_nan : bool
        Whether missing values may be explained (engines with split points).
    is_mean : bool
        Whether all values are means over the rows of the background, so that those of two
        backgrounds together are the mean of theirs by weight.

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.explainers._vanilla import PredictionEngine
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> engine = PredictionEngine(lambda rows: rows[:, :1] * rows[:, 1:], ([0], [1]), 1)
    >>> engine.update(X, None)
    >>> engine.intercept
    array([0.25])
    >>> engine.index_values(X[3:], "shap", [(0,), (1,)]).ravel()
    array([0.375, 0.375])
    """

    n_outputs: int
    indices: tuple[str, ...]
    intercept: np.ndarray
    strict: bool
    single: bool
    allow_nan: bool
    is_mean: bool

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Checked for its width and names.
        sample_weight : ndarray of shape (n_rows,), float64, or None

        Notes
        -----
        Called on a shallow copy of the engine, while others may be explaining by the engine
        itself: it sets attributes anew and changes nothing in place.
        """

    def check_same_model(self, other: Engine) -> None:
        """Refuse an engine of another model.

        Parameters
        ----------
        other : Engine

        Raises
        ------
        ValueError
            If its background is not to be added to this one.
        """

    def merge(self, other: Engine) -> None:
        """Add the background of another engine, as :meth:`update` would have added its rows.

        Parameters
        ----------
        other : Engine
            Of the same type, model and players; it is left as it is.
        """

    def common_terms(self, max_order: int | None) -> list[Term]:
        """Sets of at least two players whose component can be other than zero.

        Parameters
        ----------
        max_order : int or None
            Largest size; None: any. With a set, each of its subsets is listed.

        Returns
        -------
        list of tuple of int
            Sorted by size, then players.
        """

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """Values of one index of the game.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        index : {"component", "shap", "banzhaf", "total"}
            The Möbius transform ``m_S`` of ``v``; the Shapley (interaction) index of
            Grabisch and Roubens, not halved; the Banzhaf (interaction) index; the sum of
            ``m_U`` over all sets ``U`` that contain ``S``.
        terms : list of tuple of int
            Any sets of at least one player.

        Returns
        -------
        ndarray of shape (n_rows, n_terms, n_outputs), float64
        """

    def index_blocks(
        self, X, index: str, terms: list[Term], n_values: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """What :meth:`index_values` gives, some terms at a time and in any order.

        Parameters
        ----------
        X, index, terms
            As :meth:`index_values`.
        n_values : int
            About how many values a block should have.

        Yields
        ------
        numbers : ndarray of int
            Which of the terms are in the block.
        values : ndarray of shape (n_rows, len(numbers), n_outputs), float64
            The caller's, to be overwritten at will.
        """

    def pair_grid(self, X, pairs: list[Term]) -> np.ndarray | None:
        """Components of many pairs at once, each on a grid.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Row ``a`` gives the value of a pair's first player, row ``b`` that of its second.
        pairs : list of tuple of two int

        Returns
        -------
        ndarray of shape (n_pairs, n_outputs, n_rows, n_rows), float64, or None
            None if the engine knows no better way than pair by pair.
        """

    def levels(self, player: int) -> np.ndarray | None:
        """The component ``m_k`` of one player between the split points of its column.

        Parameters
        ----------
        player : int
            One whose column has split points.

        Returns
        -------
        ndarray of shape (n_outputs, n_pieces + 1), float64, or None
            From the lowest piece to the highest, then of missing values. None where the engine
            has to be asked row by row.
        """

    def predict(self, X) -> np.ndarray:
        """The response that the game is about.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """

    def listed_categories(self, column: int) -> np.ndarray | None:
        """Categories that the model tells apart in a column of numbers; None if there are none.

        Parameters
        ----------
        column : int

        Returns
        -------
        ndarray of float64, or None
            NaN at the end where a value may be missing.
        """

    def split_points(self, column: int) -> np.ndarray | None:
        """Thresholds at which the response may jump, ascending.

        Parameters
        ----------
        column : int

        Returns
        -------
        ndarray of shape (n_points,), float64, or None
            None where the response is no step function of the column's ordered values.
        """
