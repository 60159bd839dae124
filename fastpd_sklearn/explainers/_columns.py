"""Single columns of the user's rows, as numbers or as labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames, _rows


@dataclass(frozen=True, eq=False)
class Column:
    """A column of numbers, or of labels.

    Parameters
    ----------
    values : ndarray of shape (n_rows,), float64
        Numbers, NaN for missing; of labels their places among ``labels``.
    labels : ndarray of shape (n_labels,), or None
        The labels that occur, in the order of an ordered categorical dtype and otherwise
        sorted; None for a column of numbers.
    """

    values: np.ndarray
    labels: np.ndarray | None

    @property
    def missing(self) -> np.ndarray:
        """Where the column is missing, bool of shape (n_rows,)."""
        return np.isnan(self.values)


def read_column(X, j: int, *, as_labels: bool = False, absent: float = 0.0) -> Column:
    """One column.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    j : int
    as_labels : bool, default=False
        Whether numbers are labels.
    absent : float, default=0.0
        What an absent entry of a sparse matrix means.

    Returns
    -------
    Column
    """
    if sparse.issparse(X):
        values = _sparse_values(X, j, absent)
    elif _frames.is_frame(X) and _frames.is_categorical(_frames.column(X, j)):
        return _label_column(*_frames.codes(_frames.column(X, j)))
    else:
        values = _rows.column_array(X, j)
    if values.dtype == object:
        values, is_text = _plain_numbers(values)
        if is_text:
            return _label_column(*_sorted_labels(values))
    values = values.astype(np.float64)
    if not as_labels:
        return Column(values, None)
    labels = np.unique(values[~np.isnan(values)])
    places = np.searchsorted(labels, values).astype(np.float64)
    places[np.isnan(values)] = np.nan
    return Column(places, labels)


def place_labels(labels: np.ndarray, values) -> np.ndarray:
    """Where labels stand among known ones.

    Parameters
    ----------
    labels : ndarray of shape (n_labels,)
    values : iterable

    Returns
    -------
    ndarray of int
        -1 for missing values, -2 for unknown labels.
    """
    known = {label: i for i, label in enumerate(labels.tolist())}
    return np.array(
        [-1 if _frames.is_missing(v) else known.get(v, -2) for v in values], dtype=np.intp
    )


def _sparse_values(X, j: int, absent: float) -> np.ndarray:
    column = X.tocsc()[:, [j]].tocoo()
    values = np.full(X.shape[0], absent)
    values[column.coords[0]] = column.data
    return values


def _plain_numbers(values: np.ndarray) -> tuple[np.ndarray, bool]:
    """Objects as floats if all that are not missing are numbers; else as they are, and True."""
    items = values.tolist()
    missing = [_frames.is_missing(v) for v in items]
    present = [v for v, gone in zip(items, missing, strict=True) if not gone]
    if not all(isinstance(v, int | float | np.number) for v in present):
        return values, True
    floats = [np.nan if gone else float(v) for v, gone in zip(items, missing, strict=True)]
    return np.array(floats, dtype=np.float64), False


def _sorted_labels(values: np.ndarray) -> tuple[np.ndarray, list]:
    """Objects as places among those that occur, -1 for missing, and these in order."""
    items = values.tolist()
    present = {v for v in items if not _frames.is_missing(v)}
    labels = sorted(present, key=lambda v: (type(v).__name__, v))
    place = {label: i for i, label in enumerate(labels)}
    return np.array([-1 if _frames.is_missing(v) else place[v] for v in items]), labels


def _label_column(codes: np.ndarray, labels: list) -> Column:
    """A column of those of the labels that occur."""
    codes = codes.astype(np.intp)
    used = np.unique(codes[codes >= 0])
    place = np.full(len(labels) + 1, np.nan)  # the last one is that of -1
    place[used] = np.arange(len(used))
    kept = np.empty(len(used), dtype=object)
    kept[:] = [labels[c] for c in used]
    return Column(place[codes], kept)
