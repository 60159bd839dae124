"""Where the rows of the data lie along a feature."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.explainers._columns import place_labels, read_column
from fastpd_sklearn.forest import _frames


def place_rows(X, column: int, categories: np.ndarray | None) -> np.ndarray:
    """Values of a column, or the places of its values among categories.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    column : int
    categories : ndarray of shape (n_categories,), or None
        None for a column of numbers.

    Returns
    -------
    ndarray of shape (n_rows,), float64
        NaN for what has no place; missing is the last category, if it is one.
    """
    if categories is None:
        return read_column(X, column).values
    found = read_column(X, column, as_labels=True)
    place = place_labels(categories, found.labels).astype(np.float64)
    place[place < 0] = np.nan
    codes = np.where(found.missing, -1, found.values).astype(np.intp)
    has_missing = len(categories) > 0 and _frames.is_missing(categories[-1])
    return np.append(place, len(categories) - 1 if has_missing else np.nan)[codes]
