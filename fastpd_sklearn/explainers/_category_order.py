"""An order of categories in which neighbours are alike in all other columns."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.explainers._columns import Column
from fastpd_sklearn.explainers._order import HeldNumbers, Numbers, inverse_ranks

N_POINTS = 100
"""Quantiles at which distributions of numbers are compared."""


def similarity_order(codes: np.ndarray, n_labels: int, others, weights) -> np.ndarray:
    """Labels in the order of :func:`order_by_distance`.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int
        -1 for missing.
    n_labels : int
    others : iterable of Column
        All other columns.
    weights : ndarray of shape (n_rows,), or None

    Returns
    -------
    ndarray of shape (n_labels,), int
    """
    if n_labels < 3:
        return np.arange(n_labels)
    distance = np.zeros((n_labels, n_labels))
    for other in others:
        numbers = HeldNumbers(other.values[(codes >= 0) & ~other.missing])
        edges = None if other.labels is not None else comparison_edges(numbers)
        cells = number_cells(other.values, edges) if edges is not None else label_cells(other)
        n_cells = len(edges if edges is not None else other.labels)
        count = joint_weights(codes, n_labels, cells, n_cells, weights)
        distance += distances(count, edges is not None)
    return order_by_distance(distance)


def comparison_edges(numbers: Numbers) -> np.ndarray:
    """Quantiles at which the distributions of numbers are compared; there may be none."""
    if not numbers.n:
        return np.empty(0)
    return np.unique(numbers.at(inverse_ranks(np.linspace(0, 1, N_POINTS), numbers.n)))


def number_cells(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    """The cell of each number, up to the next edge; -1 for missing ones."""
    return np.where(np.isnan(values), -1, np.searchsorted(edges, values))


def label_cells(column: Column) -> np.ndarray:
    """The label of each row by its place, -1 for missing."""
    return np.where(column.missing, -1, column.values).astype(np.intp)


def joint_weights(
    codes: np.ndarray, n_labels: int, cells: np.ndarray, n_cells: int, weights
) -> np.ndarray:
    """The weight of the rows with each label in each cell of another column.

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int
        -1 for missing.
    n_labels : int
    cells : ndarray of shape (n_rows,), int
        -1 for missing.
    n_cells : int
    weights : ndarray of shape (n_rows,), or None

    Returns
    -------
    ndarray of shape (n_labels, n_cells)
    """
    known = (codes >= 0) & (cells >= 0)
    weights = None if weights is None else weights[known]
    both = codes[known] * n_cells + cells[known]
    return np.bincount(both, weights, n_labels * n_cells).reshape(n_labels, n_cells)


def distances(count: np.ndarray, are_numbers: bool) -> np.ndarray:
    """Distances between the distributions of one column given each label.

    Parameters
    ----------
    count : ndarray of shape (n_labels, n_cells)
        Weights of the rows with each label, in ascending cells of numbers or by another label.
    are_numbers : bool

    Returns
    -------
    ndarray of shape (n_labels, n_labels)
        Kolmogorov and Smirnov's for numbers, total variation for labels.
    """
    n_labels = len(count)
    out = np.zeros((n_labels, n_labels))
    if not count.shape[1]:
        return out
    total = count.sum(axis=1, keepdims=True)
    share = count / np.where(total > 0, total, 1.0)
    if are_numbers:
        below = share.cumsum(axis=1)
        for k in range(n_labels):
            out[k] = np.abs(below - below[k]).max(axis=1)
    else:
        for k in range(n_labels):
            out[k] = np.abs(share - share[k]).sum(axis=1) / 2
    return out


def order_by_distance(distance: np.ndarray) -> np.ndarray:
    """Labels along the line that shows best how much they differ in the other columns.

    The line is the first coordinate of classical scaling (Apley and Zhu 2020, section 5.5.6 and
    their R package).

    Parameters
    ----------
    distance : ndarray of shape (n_labels, n_labels)
        The sum over all other columns of the :func:`distances`.

    Returns
    -------
    ndarray of shape (n_labels,), int
        Labels by number, in the direction that fits their own order better.
    """
    n_labels = len(distance)
    position = _scaled(distance)
    if position @ (np.arange(n_labels) - (n_labels - 1) / 2) < 0:
        position = -position
    # What differs by rounding alone keeps its own order.
    step = 1e-9 * max(float(np.abs(position).max()), np.finfo(np.float64).tiny)
    return np.argsort(np.round(position / step), kind="stable")


def _scaled(distance: np.ndarray) -> np.ndarray:
    """First coordinate of classical scaling."""
    square = distance**2
    mean = square.mean(axis=0)
    inner = -(square - mean - mean[:, None] + square.mean()) / 2
    values, vectors = np.linalg.eigh(inner)
    return vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
