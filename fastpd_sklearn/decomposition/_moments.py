"""Weighted moments that are made of blocks of rows without cancellation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

ROUNDING = 1e-12
"""What counts as rounding in a standard deviation, relative to the largest response."""


@dataclass(frozen=True, eq=False)
class Comoments:
    """Of some quantities and a second one each, over rows with weights.

    Sums over rows are relative to the means of these rows, and are moved to common means when
    blocks are added: a difference of large sums of squares would lose what it is about.

    Parameters
    ----------
    weight : float
        Of all rows.
    first, second : ndarray of shape (..., n_outputs)
        Weighted means.
    product : ndarray of shape (..., n_outputs)
        Weighted sums of the products of the deviations from the means.
    """

    weight: float
    first: np.ndarray
    second: np.ndarray
    product: np.ndarray

    def __add__(self, other: Comoments) -> Comoments:
        weight = self.weight + other.weight
        share = other.weight / weight
        first, second = other.first - self.first, other.second - self.second
        return Comoments(
            weight,
            self.first + share * first,
            self.second + share * second,
            self.product + other.product + share * self.weight * first * second,
        )

    @property
    def covariance(self) -> np.ndarray:
        """Weighted mean of the products of the deviations."""
        return self.product / self.weight


def weighted_sum(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Sums over the last axis, in an order that depends on no number of threads.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
    values : ndarray of shape (..., n_rows)

    Returns
    -------
    ndarray of shape (...)
    """
    return np.einsum("r,...r->...", weights, values)


class Spread:
    """Means of quantities over some rows, and how they spread, each from one array.

    Parameters
    ----------
    weights : ndarray of shape (n_rows,)
        Not all zero.
    shape : tuple of int
        Of the quantities.
    """

    def __init__(self, weights: np.ndarray, shape: tuple[int, ...]) -> None:
        self.weights = weights
        self.total = weights.sum()
        self.is_plain = bool(np.all(weights == 1.0))
        self.mean, self.product = np.zeros((2, *shape))

    def add(self, place: tuple[int, ...], values: np.ndarray) -> None:
        """Fill in one quantity.

        Parameters
        ----------
        place : tuple of int
            Which one.
        values : ndarray of shape (n_rows,)
            They are overwritten.
        """
        mean = weighted_sum(self.weights, values) / self.total
        values -= mean
        self.mean[place] = mean
        weighted = values if self.is_plain else self.weights * values
        self.product[place] = weighted_sum(weighted, values)

    def comoments(self) -> Comoments:
        """What has been filled in, as moments of quantities with themselves."""
        return Comoments(self.total, self.mean, self.mean, self.product)
