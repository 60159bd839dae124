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


def variance_of(values: np.ndarray, weights: np.ndarray) -> Comoments:
    """The moments of quantities with themselves.

    Parameters
    ----------
    values : ndarray of shape (n_rows, ...)
    weights : ndarray of shape (n_rows,)
        Not all zero.

    Returns
    -------
    Comoments
    """
    total = weights.sum()
    mean = np.tensordot(weights, values, 1) / total
    deviation = values - mean
    np.square(deviation, out=deviation)
    return Comoments(total, mean, mean, np.tensordot(weights, deviation, 1))
