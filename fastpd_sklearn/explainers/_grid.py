"""Points at which to show partial dependence, and rows that hold them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames, _rows

GRID_RESOLUTION = 100
SAMPLE_SIZE = 4_000


@dataclass(frozen=True, eq=False)
class Template:
    """What an explainer keeps of its background to make rows of its own.

    Parameters
    ----------
    row : array, sparse matrix or data frame of shape (1, n_columns)
        A row of the background; it carries names and dtypes.
    points : tuple of ndarray, or None
        For every column its distinct values, or quantiles where they are more than
        ``GRID_RESOLUTION``; all categories for a column of labels. None without a background.
    labelled : tuple of bool
        Whether each column holds labels rather than numbers.
    """

    row: object
    points: tuple[np.ndarray, ...] | None
    labelled: tuple[bool, ...]

    def as_points(self, column: int, values) -> np.ndarray:
        """Points that a user gave for a column, as an array of one dimension."""
        dtype = object if self.labelled[column] else np.float64
        try:
            points = np.asarray(values, dtype=dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"grid: column {column} takes numbers, got {values!r}") from error
        if points.ndim != 1 or not len(points):
            raise ValueError(
                f"grid: expected the points of a feature as a non-empty array of shape "
                f"(n_points,), got shape {points.shape}"
            )
        return points

    def float_type(self, column: int) -> type:
        """The precision that a column of numbers is held in: that of its floats, or float64."""
        if _frames.is_frame(self.row):
            return _frames.to_float(_frames.column(self.row, column)).dtype.type
        return self.row.dtype.type if self.row.dtype.kind == "f" else np.float64

    def rows(self, values: dict[int, np.ndarray]):
        """Copies of the row in which some columns take the given values.

        Parameters
        ----------
        values : dict of int to ndarray of shape (n_rows,)

        Returns
        -------
        The same type as ``row``, of shape (n_rows, n_columns)
        """
        n_rows = len(next(iter(values.values())))
        return _rows.with_values(_rows.take(self.row, np.zeros(n_rows, dtype=np.intp)), values)


def make_template(X) -> Template:
    """The template of a background.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        Quantiles are those of at most ``SAMPLE_SIZE`` evenly spaced rows.

    Returns
    -------
    Template
    """
    n_rows, n_columns = X.shape
    chosen = np.linspace(0, n_rows - 1, min(n_rows, SAMPLE_SIZE)).astype(np.intp)
    sample = _rows.take(X, chosen)
    sample = sample.tocsc() if sparse.issparse(sample) else sample
    array = _frames.as_array(sample) if _frames.is_frame(sample) else sample
    if isinstance(array, np.ndarray) and array.dtype.kind in "biuf":
        points, labelled = _number_points(array.T), (False,) * n_columns
    else:
        points, labelled = zip(*(_column_points(sample, j) for j in range(n_columns)), strict=True)
    row = _rows.take(X, np.zeros(1, dtype=np.intp))
    if isinstance(row, np.ndarray) and row.dtype.kind in "biu" and not any(labelled):
        row = row.astype(np.float64)
    return Template(row, points, labelled)


def bare_template(n_columns: int) -> Template:
    """The template of an explainer that has seen no background: a row of zeros."""
    return Template(np.zeros((1, n_columns)), None, (False,) * n_columns)


def _column_points(X, j: int) -> tuple[np.ndarray, bool]:
    known = _frames.labels(_frames.column(X, j)) if _frames.is_frame(X) else None
    values = _rows.column_array(X, j)
    if values.dtype == object and known is None:
        values = _numbers_if_any(values)
    if known is None and values.dtype.kind in "biuf":
        return _number_points(values[None, :])[0], False
    missing = [v is None or v != v for v in values.tolist()]
    if known is None and not _are_hashable(values):
        return values[:1], True  # they can't be told apart: one stands for all
    if known is None:
        present = {v for v, gone in zip(values.tolist(), missing, strict=True) if not gone}
        known = sorted(present, key=lambda label: (type(label).__name__, label))
    labels = [*np.asarray(known, dtype=object), *([np.nan] if any(missing) else [])]
    return _object_array(labels), True


def _are_hashable(values: np.ndarray) -> bool:
    try:
        set(values.tolist())
    except TypeError:
        return False
    return True


def _numbers_if_any(values: np.ndarray) -> np.ndarray:
    """Objects as floats if they are numbers or missing, without exception."""
    present = [v for v in values.tolist() if v is not None]
    if present and all(isinstance(v, int | float | np.number) for v in present):
        return values.astype(np.float64)
    return values


def _object_array(items: list) -> np.ndarray:
    out = np.empty(len(items), dtype=object)
    out[:] = items
    return out


def _number_points(columns: np.ndarray) -> tuple[np.ndarray, ...]:
    """Points of columns of numbers, from an array of shape (n_columns, n_rows)."""
    if columns.dtype not in (np.float32, np.float64):
        columns = columns.astype(np.float64)
    ordered = np.sort(np.ascontiguousarray(columns), axis=1)
    is_new = np.ones(ordered.shape, bool)
    np.not_equal(ordered[:, 1:], ordered[:, :-1], out=is_new[:, 1:])
    is_finite = np.isfinite(ordered)
    is_new &= is_finite
    is_many = np.count_nonzero(is_new, axis=1) > GRID_RESOLUTION
    n_finite = np.count_nonzero(is_finite, axis=1)
    points = [
        np.empty(0) if many else ordered[j, is_new[j]].astype(np.float64)
        for j, many in enumerate(is_many.tolist())
    ]
    for n in np.unique(n_finite[is_many]).tolist():  # mostly there is no other than n_rows
        chosen = np.flatnonzero(is_many & (n_finite == n))
        values = ordered[chosen]
        if n < values.shape[1]:
            values = values[is_finite[chosen]].reshape(len(chosen), n)
        quantiles = _quantiles(values)
        ascend = np.all(quantiles[:, 1:] > quantiles[:, :-1], axis=1)
        for j, found, different in zip(chosen.tolist(), quantiles, ascend, strict=True):
            points[j] = found if different else np.unique(found)
    return tuple(found if len(found) else np.array([np.nan]) for found in points)


def _quantiles(ordered: np.ndarray) -> np.ndarray:
    """Quantiles of rows of ascending numbers, of shape (n, GRID_RESOLUTION)."""
    # As `np.quantile` has it, to the last bit, but of numbers that are in order.
    most = ordered.shape[1] - 1
    place, share = np.divmod(np.linspace(0, 1, GRID_RESOLUTION) * most, 1)
    place = place.astype(np.intp)
    low = ordered[:, place].astype(np.float64)
    high = ordered[:, np.minimum(place + 1, most)].astype(np.float64)
    step = high - low
    return np.where(share < 0.5, low + step * share, high - step * (1 - share))
