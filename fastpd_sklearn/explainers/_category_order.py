"""An order of categories in which neighbours are alike in all other columns."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.explainers._columns import Column

N_POINTS = 100
"""Quantiles at which distributions of numbers are compared."""


def similarity_order(codes: np.ndarray, n_labels: int, others, weights: np.ndarray) -> np.ndarray:
    """Labels along the line that shows best how much they differ in the other columns.

    The distance of two labels is the sum over the other columns of the distance between the
    column's distributions given either label: Kolmogorov and Smirnov's for numbers, total
    variation for labels. The line is the first coordinate of classical scaling (Apley and Zhu
    2020, section 5.5.6 and their R package).

    Parameters
    ----------
    codes : ndarray of shape (n_rows,), int
        -1 for missing.
    n_labels : int
    others : iterable of Column
    weights : ndarray of shape (n_rows,)

    Returns
    -------
    ndarray of shape (n_labels,), int
        Labels by number, in the direction that fits their own order better.
    """
    if n_labels < 3:
        return np.arange(n_labels)
    known = codes >= 0
    distance = np.zeros((n_labels, n_labels))
    for other in others:
        distance += _distances(codes[known], n_labels, other, known, weights[known])
    position = _scaled(distance)
    if position @ (np.arange(n_labels) - (n_labels - 1) / 2) < 0:
        position = -position
    # What differs by rounding alone keeps its own order.
    step = 1e-9 * max(float(np.abs(position).max()), np.finfo(np.float64).tiny)
    return np.argsort(np.round(position / step), kind="stable")


def _distances(codes, n_labels: int, other: Column, known: np.ndarray, weights) -> np.ndarray:
    """Distances between the distributions of one column given each label."""
    values = other.values[known]
    present = ~np.isnan(values)
    codes, values, weights = codes[present], values[present], weights[present]
    if not len(values):
        return np.zeros((n_labels, n_labels))
    if other.labels is None:
        edges = np.unique(np.quantile(values, np.linspace(0, 1, N_POINTS), method="inverted_cdf"))
        cell, n_cells = np.searchsorted(edges, values), len(edges)
    else:
        cell, n_cells = values.astype(np.intp), len(other.labels)
    count = np.bincount(codes * n_cells + cell, weights, n_labels * n_cells)
    count = count.reshape(n_labels, n_cells)
    total = count.sum(axis=1, keepdims=True)
    share = count / np.where(total > 0, total, 1.0)
    out = np.empty((n_labels, n_labels))
    if other.labels is None:
        below = share.cumsum(axis=1)
        for k in range(n_labels):
            out[k] = np.abs(below - below[k]).max(axis=1)
    else:
        for k in range(n_labels):
            out[k] = np.abs(share - share[k]).sum(axis=1) / 2
    return out


def _scaled(distance: np.ndarray) -> np.ndarray:
    """First coordinate of classical scaling."""
    square = distance**2
    mean = square.mean(axis=0)
    inner = -(square - mean - mean[:, None] + square.mean()) / 2
    values, vectors = np.linalg.eigh(inner)
    return vectors[:, -1] * np.sqrt(max(values[-1], 0.0))
