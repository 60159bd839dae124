"""How the user's columns become the inputs of a forest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames


@dataclass(frozen=True, eq=False)
class InputMap:
    """From ``X`` as a user has it to the float columns that a :class:`Forest` tests.

    Parameters
    ----------
    n_columns : int
        Number of columns, the user's and the forest's alike.
    names : tuple of str, default=None
        Column names that the model was trained with, where it knows them.
    categories : mapping of int to ndarray, default={}
        For the columns that hold labels, the label of every code: label ``categories[j][c]``
        becomes the input ``c``.
    unknown : float, default=-1.0
        What a label becomes that is not in ``categories`` (-1: a category that no node
        lists; NaN: missing).
    codes_as_given : bool, default=True
        Whether numbers given for a column of labels, in an array, are taken for codes. If
        False they are looked up as labels.
    absent : float, default=0.0
        What an absent entry of a sparse matrix means to the model's library.
    missing : float, default=NaN
        A value that means missing, beside NaN.
    allow_nan, allow_inf : bool, default=True
        Whether the model's library accepts such values.
    """

    n_columns: int
    names: tuple[str, ...] | None = None
    categories: Mapping[int, np.ndarray] = field(default_factory=dict)
    unknown: float = -1.0
    codes_as_given: bool = True
    absent: float = 0.0
    missing: float = np.nan
    allow_nan: bool = True
    allow_inf: bool = True

    def open(self, X) -> Inputs:
        """Read ``X``.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Already checked for its width and names.

        Returns
        -------
        Inputs

        Raises
        ------
        ValueError
            If a column is not numeric.
        """
        return Inputs(self, X)


class Inputs:
    """The rows of ``X`` as the inputs of a forest, a column at a time.

    Attributes
    ----------
    n_rows : int
    matrix : ndarray of shape (n_rows, n_columns) or None
        All inputs at once where ``X`` can be used as it is (float32 or float64, no copy).
    """

    def __init__(self, input_map: InputMap, X) -> None:
        self._map = input_map
        self._X = sparse.csc_array(X) if sparse.issparse(X) else X
        if _frames.is_frame(X):
            self._check_frame(X)
        elif not sparse.issparse(X):
            self._X = _as_float(np.asarray(X))
        self.n_rows = self._X.shape[0]
        untouched = np.isnan(input_map.missing) and (
            not input_map.categories or input_map.codes_as_given
        )
        self.matrix = self._X if isinstance(self._X, np.ndarray) and untouched else None

    def column(self, j: int) -> np.ndarray:
        """Input ``j``.

        Parameters
        ----------
        j : int

        Returns
        -------
        ndarray of shape (n_rows,), float32 or float64
        """
        known = self._map.categories.get(j)
        if _frames.is_frame(self._X):
            series = _frames.column(self._X, j)
            if known is not None:
                return _encode(_frames.values(series), known, self._map.unknown)
            given = _frames.labels(series)
            if given is not None:
                return _encode(_frames.values(series), given, self._map.unknown)
            values = _frames.to_float(series)
        elif isinstance(self._X, np.ndarray):
            values = self._X[:, j]
            if known is not None and not self._map.codes_as_given:
                return _encode(values, known, self._map.unknown)
        else:
            values = self._dense_column(j)
        if not np.isnan(self._map.missing):
            values = np.where(values == self._map.missing, values.dtype.type(np.nan), values)
        return values

    def to_array(self) -> np.ndarray:
        """All inputs.

        Returns
        -------
        ndarray of shape (n_rows, n_columns), float64
        """
        columns = [self.column(j).astype(np.float64) for j in range(self._map.n_columns)]
        return np.column_stack(columns) if columns else np.empty((self.n_rows, 0))

    def _dense_column(self, j: int) -> np.ndarray:
        part = slice(self._X.indptr[j], self._X.indptr[j + 1])
        stored = _as_float(self._X.data[part])
        values = np.full(self._X.shape[0], self._map.absent, dtype=stored.dtype)
        values[self._X.indices[part]] = stored
        return values

    def _check_frame(self, X) -> None:
        for j, name in enumerate(X.columns):
            series = _frames.column(X, j)
            if (
                j not in self._map.categories
                and _frames.labels(series) is None
                and not _frames.is_numeric(series)
            ):
                raise ValueError(
                    f"column {name!r} of X has dtype {series.dtype}, which is not numeric, and "
                    "the model was not trained on it as a category; encode it, or explain the "
                    "whole pipeline that does"
                )


def _as_float(array: np.ndarray) -> np.ndarray:
    if array.dtype in (np.float32, np.float64) and array.dtype.isnative:
        return array
    return array.astype(np.float32 if array.dtype == np.float16 else np.float64)


def _encode(values: np.ndarray, known: np.ndarray, unknown: float) -> np.ndarray:
    """Code of every value among the labels ``known``; NaN for missing."""
    code = {label: float(c) for c, label in enumerate(known.tolist())}
    return np.array(
        [np.nan if v is None or v != v else code.get(v, unknown) for v in values.tolist()],
        dtype=np.float64,
    )
