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
    unknown : float or None, default=-1.0
        What a label becomes that is not in ``categories`` (-1: a category that no node
        lists; NaN: missing; None: an error).
    codes_as_given : bool, default=True
        Whether numbers given for a column of labels, in an array or in a column of a data
        frame that is not categorical, are taken for codes. If False they are looked up as
        labels.
    labels_as_codes : bool, default=True
        Whether a categorical column of a data frame that is not among ``categories`` is taken
        by its codes. If False its labels are taken for numbers.
    absent : float, default=0.0
        What an absent entry of a sparse matrix means to the model's library.
    missing : float or numpy.float32, default=NaN
        A value that means missing, beside NaN; values are rounded to its precision before
        they are compared with it.
    single_codes : frozenset of int, default=frozenset()
        Columns of category codes that are rounded to float32 and then down to an integer, so
        that -0.5 is in no list of categories.
    allow_nan, allow_inf : bool, default=True
        Whether the model's library accepts such values.
    """

    n_columns: int
    names: tuple[str, ...] | None = None
    categories: Mapping[int, np.ndarray] = field(default_factory=dict)
    unknown: float | None = -1.0
    codes_as_given: bool = True
    labels_as_codes: bool = True
    absent: float = 0.0
    missing: float = np.nan
    single_codes: frozenset[int] = frozenset()
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
        by_label = bool(input_map.categories) and not input_map.codes_as_given
        self._X = sparse.csc_array(X) if sparse.issparse(X) else X
        if _frames.is_frame(X):
            self._check_frame(X)
        elif not sparse.issparse(X):
            X = np.asarray(X)
            # Labels that are no numbers are looked up before the other columns are cast.
            self._X = X if by_label and X.dtype == object else _as_float(X)
        self.n_rows = self._X.shape[0]
        untouched = np.isnan(input_map.missing) and not by_label and not input_map.single_codes
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
            if known is not None and not (self._map.codes_as_given and _frames.is_numeric(series)):
                return self._encode(j, _frames.values(series), known)
            given = _frames.labels(series)
            if given is not None and not self._map.labels_as_codes:
                return _frames.values(series).astype(np.float64)
            if given is not None:
                return self._encode(j, _frames.values(series), given)
            values = _frames.to_float(series)
        elif isinstance(self._X, np.ndarray):
            values = self._X[:, j]
            if known is not None and not self._map.codes_as_given:
                return self._encode(j, values, known)
            values = _as_float(values)
        else:
            values = self._dense_column(j)
        if not np.isnan(self._map.missing):
            values = np.where(self._is_missing(values), values.dtype.type(np.nan), values)
        if j in self._map.single_codes:
            values = np.floor(_rounded(values, np.float32))
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

    def _is_missing(self, values: np.ndarray) -> np.ndarray:
        return _rounded(values, np.asarray(self._map.missing).dtype) == self._map.missing

    def _encode(self, j: int, values: np.ndarray, known: np.ndarray) -> np.ndarray:
        refuse = self._map.unknown is None
        codes = _encode(values, known, -1.0 if refuse else self._map.unknown)
        unseen = np.flatnonzero(codes == -1.0) if refuse else ()
        if len(unseen):
            name = j if self._map.names is None else self._map.names[j]
            raise ValueError(
                f"column {name!r} of X has the category {values[unseen[0]]!r}, which the model "
                "was not trained with and its library does not accept; leave such rows out, or "
                "make the value missing"
            )
        return codes

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


def _rounded(values: np.ndarray, dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _encode(values: np.ndarray, known: np.ndarray, unknown: float) -> np.ndarray:
    """Code of every value among the labels ``known`` (None may be one); NaN for missing."""
    code = {label: float(c) for c, label in enumerate(known.tolist())}

    def encode(value) -> float:
        known_code = code.get(value)
        if known_code is None:
            return np.nan if _is_missing(value) else unknown
        return known_code

    return np.array([encode(value) for value in values.tolist()], dtype=np.float64)


def _is_missing(value) -> bool:
    equal = value == value
    # pandas' NA is neither equal to itself nor different.
    return value is None or not isinstance(equal, (bool, np.bool_)) or not equal
