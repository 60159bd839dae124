"""How the user's columns become the inputs of a forest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace

import joblib
import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from fastpd_sklearn.forest import _frames

MOST_COPIED = 2**22
"""Values of a data frame up to which it is made one array: larger ones are not to be copied."""


@dataclass(frozen=True, eq=False)
class InputMap:
    """From ``X`` as a user has it to the float columns that a :class:`Forest` tests.

    Parameters
    ----------
    n_columns : int
        Number of columns, the user's and the forest's alike.
    names : tuple of str, default=None
        Column names that the model was trained with, where it knows them.
    blanks_replaced : bool, default=False
        Whether the model's library has underscores in ``names`` for what were blanks.
    categories : mapping of int to ndarray, default={}
        For the columns that hold labels, the label of every code: label ``categories[j][c]``
        becomes the input ``c``.
    label_key : callable, default=None
        What a label is looked up by in ``categories``, as a function of the label, where the
        model's library does not keep the labels; ValueError for a label that it refuses. It
        must pickle. None: the label itself.
    missing_labels : bool, default=True
        Whether the model's library accepts missing values in columns of labels.
    categories_in_order : tuple of ndarray, default=None
        Labels of the categorical columns of a pandas frame in their order, where that is how
        the model's library finds them. They are then used for frames, not ``categories``; see
        :meth:`settled`.
    unknown : float or None, default=-1.0
        What a label becomes that is not in ``categories`` (-1: a category that no node
        lists; NaN: missing; None: an error).
    codes_as_given : bool or None, default=True
        Whether numbers given for a column of labels, in an array or in a column of a data
        frame that is not categorical, are taken for codes. If False they are looked up as
        labels; if None they are refused.
    frames_hold_codes : bool, default=True
        Whether that holds for frames, too. If False, numbers in a frame are refused where the
        labels are other numbers, as the model's library refuses them.
    labels_as_codes : bool or None, default=True
        Whether a categorical column of a data frame that is not among ``categories`` is taken
        by its codes. If False its labels are taken for numbers; if None it is refused.
    absent : float or None, default=0.0
        What an absent entry of a sparse matrix means to the model's library; None: sparse
        matrices are refused.
    missing : float or numpy.float32, default=NaN
        A value that means missing, beside NaN; values, and the codes of a data frame's
        categories, are rounded to its precision before they are compared with it.
    single_codes : frozenset of int, default=frozenset()
        Columns of category codes that are rounded to float32 and then down to an integer, so
        that -0.5 is in no list of categories.
    double_codes : frozenset of int, default=frozenset()
        The same without being rounded to float32.
    array_dtype : dtype or None, default=numpy.float64
        What the model's library rounds arrays to that are of neither float32 nor float64;
        None: numbers that float32 cannot hold are refused.
    frames_as_arrays : bool, default=False
        Whether the model's library makes one array of a data frame first.
    single_range : bool, default=False
        Whether numbers beyond the range of float32 are as good as infinite.
    allow_nan, allow_inf : bool, default=True
        Whether the model's library accepts such values.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from fastpd_sklearn.forest import InputMap
    >>> input_map = InputMap(
    ...     n_columns=2,
    ...     names=("size", "colour"),
    ...     categories={1: np.array(["blue", "red"], dtype=object)},
    ... )
    >>> X = pd.DataFrame({"size": [1.5, 2.5], "colour": pd.Categorical(["red", "green"])})
    >>> input_map.open(X).to_array()
    array([[ 1.5,  1. ],
           [ 2.5, -1. ]])
    """

    n_columns: int
    names: tuple[str, ...] | None = None
    blanks_replaced: bool = False
    categories: Mapping[int, np.ndarray] = field(default_factory=dict)
    label_key: Callable | None = None
    missing_labels: bool = True
    categories_in_order: tuple[np.ndarray, ...] | None = None
    unknown: float | None = -1.0
    codes_as_given: bool | None = True
    frames_hold_codes: bool = True
    labels_as_codes: bool | None = True
    absent: float | None = 0.0
    missing: float = np.nan
    single_codes: frozenset[int] = frozenset()
    double_codes: frozenset[int] = frozenset()
    array_dtype: type | None = np.float64
    frames_as_arrays: bool = False
    single_range: bool = False
    allow_nan: bool = True
    allow_inf: bool = True

    def has_names(self, names) -> bool:
        """Whether columns of these names are those of the model, in its order.

        Parameters
        ----------
        names : iterable of column names

        Returns
        -------
        bool
            True if the model knows no names.

        Examples
        --------
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(n_columns=2, names=("a", "b"))
        >>> input_map.has_names(["a", "b"]), input_map.has_names(["b", "a"])
        (True, False)
        """
        given = tuple(str(name) for name in names)
        if self.blanks_replaced:
            given = tuple(name.replace(" ", "_") for name in given)
        return self.names is None or given == self.names

    def settled(self, X) -> InputMap:
        """The same map with the columns of ``categories_in_order`` found in a frame.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            Only the dtypes of a pandas frame matter.

        Returns
        -------
        InputMap
            With the labels among ``categories``, by column; this very map if nothing is to
            be found.

        Raises
        ------
        ValueError
            If the frame has more or fewer categorical columns.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(n_columns=2, categories_in_order=(np.array(["blue", "red"]),))
        >>> X = pd.DataFrame({"size": [1.5], "colour": pd.Categorical(["red"])})
        >>> settled = input_map.settled(X)
        >>> settled.categories[1].tolist()
        ['blue', 'red']
        """
        lists = self.categories_in_order
        if lists is None or not _frames.is_pandas(X):
            return self
        columns = [j for j in range(X.shape[1]) if _frames.is_categorical(_frames.column(X, j))]
        if len(columns) != len(lists):
            raise ValueError(
                f"X has {len(columns)} categorical columns, {[X.columns[j] for j in columns]}, but "
                f"the model was trained on a frame with {len(lists)}; give X the same dtypes"
            )
        return replace(
            self, categories=dict(zip(columns, lists, strict=True)), categories_in_order=None
        )

    def same_as(self, other) -> bool:
        """Whether another map reads columns as this one does, :meth:`settled` or not.

        Parameters
        ----------
        other : object

        Returns
        -------
        bool

        Examples
        --------
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(n_columns=2)
        >>> input_map.same_as(InputMap(n_columns=2)), input_map.same_as(InputMap(n_columns=3))
        (True, False)
        """
        return isinstance(other, InputMap) and self._fingerprint() == other._fingerprint()

    def _fingerprint(self) -> str:
        known = {field_.name: getattr(self, field_.name) for field_ in fields(self)}
        categories = known.pop("categories")
        lists = self.categories_in_order or categories.values()
        known["categories_in_order"] = [np.asarray(labels).tolist() for labels in lists]
        return joblib.hash(known)

    def owner(self, players) -> np.ndarray:
        """The player that each input belongs to.

        Parameters
        ----------
        players : sequence of ndarray of int
            The columns of each player; every column is in one.

        Returns
        -------
        ndarray of shape (n_inputs,), int32

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import InputMap
        >>> InputMap(n_columns=3).owner([np.array([0, 2]), np.array([1])])
        array([0, 1, 0], dtype=int32)
        """
        owner = np.empty(self.n_columns, np.int32)
        for player, columns in enumerate(players):
            owner[columns] = player
        return owner

    def sentinels(self) -> np.ndarray:
        """The number that stands for missing in every input, NaN for none.

        Returns
        -------
        ndarray of shape (n_inputs,), float64

        Examples
        --------
        >>> from fastpd_sklearn.forest import InputMap
        >>> InputMap(n_columns=2, missing=-999.0).sentinels()
        array([-999., -999.])
        """
        return np.full(self.n_columns, self.missing, dtype=np.float64)

    def numbers_of(self, j: int, codes: np.ndarray) -> np.ndarray:
        """Numbers that become some codes of column ``j``, where it holds numbers.

        Parameters
        ----------
        j : int
        codes : ndarray of shape (n_codes,)

        Returns
        -------
        ndarray of float64
            The codes themselves or their labels, as far as the map knows these; NaN at the end
            where it may be missing.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import InputMap
        >>> InputMap(n_columns=1).numbers_of(0, np.array([0, 2]))
        array([ 0.,  2., nan])
        """
        labels = self.categories.get(j)
        takes_missing = self.allow_nan and (labels is None or self.missing_labels)
        if labels is not None and self.codes_as_given is False:
            codes = np.empty(0) if self.label_key else labels[codes.astype(np.intp)]
        return np.append(codes.astype(np.float64), [np.nan] if takes_missing else [])

    def describe(self, j: int) -> str:
        """Input ``j`` in words, for messages.

        Parameters
        ----------
        j : int

        Returns
        -------
        str

        Examples
        --------
        >>> from fastpd_sklearn.forest import InputMap
        >>> InputMap(n_columns=2).describe(1)
        'column 1'
        """
        return f"column {j}"

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

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn.forest import InputMap
        >>> inputs = InputMap(n_columns=2, missing=-1.0).open(np.array([[3.0, -1.0]]))
        >>> inputs.n_rows, inputs.column(1)
        (1, array([nan]))
        """
        return Inputs(self, X)


class Inputs:
    """The rows of ``X`` as the inputs of a forest, a column at a time.

    Parameters
    ----------
    input_map : InputMap
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)

    Attributes
    ----------
    n_rows : int
    matrix : ndarray of shape (n_rows, n_columns) or None
        All inputs at once where ``X`` can be used as it is (float32 or float64, no copy).

    Examples
    --------
    >>> import numpy as np
    >>> from fastpd_sklearn.forest import InputMap
    >>> inputs = InputMap(n_columns=2).open(np.array([[3.0, 4.0]]))
    >>> inputs.n_rows, inputs.matrix
    (1, array([[3., 4.]]))
    """

    def __init__(self, input_map: InputMap, X) -> None:
        self._map = input_map = input_map.settled(X)
        self._by_label = bool(input_map.categories) and input_map.codes_as_given is False
        if input_map.frames_as_arrays and _frames.is_frame(X):
            X = check_array(X, dtype=None, ensure_all_finite=False)
        if not _frames.is_frame(X) and input_map.categories and input_map.codes_as_given is None:
            self._refuse_codes(min(input_map.categories))
        if _frames.is_frame(X):
            self._X = self._open_frame(X)
        elif sparse.issparse(X):
            if input_map.absent is None:
                raise ValueError(
                    "X is sparse, and the models within this one do not agree whether an absent "
                    "entry is zero or missing; pass a dense array or a data frame"
                )
            self._X = _without_duplicates(sparse.csc_array(X))
        else:
            self._X = self._open_array(np.asarray(X))
        self.n_rows = self._X.shape[0]
        untouched = (
            isinstance(self._X, np.ndarray)
            and np.isnan(input_map.missing)
            and not self._by_label
            and not input_map.single_codes
            and not input_map.double_codes
            and not input_map.single_range
        )
        self.matrix = self._X if untouched else None

    def column(self, j: int) -> np.ndarray:
        """Input ``j``.

        Parameters
        ----------
        j : int

        Returns
        -------
        ndarray of shape (n_rows,), float32 or float64

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(
        ...     n_columns=2,
        ...     names=("size", "colour"),
        ...     categories={1: np.array(["blue", "red"], dtype=object)},
        ... )
        >>> X = pd.DataFrame({"size": [1.5, 2.5], "colour": pd.Categorical(["red", "green"])})
        >>> input_map.open(X).column(1)
        array([ 1., -1.])
        """
        if _frames.is_frame(self._X):
            series = _frames.column(self._X, j)
            if not self._is_plain(j, series):
                return self._label_codes(j, series)
            values = _frames.to_float(series)
        elif self._by_label and j in self._map.categories:
            return self._encode(j, *_factorize(self._plain_column(j)))
        elif sparse.issparse(self._X):
            values = self._dense_column(j)
        elif self._X.dtype == object:
            values = self._objects_as_float(j, self._X[:, j])
        else:
            values = self._as_float(self._X[:, j])
        if not np.isnan(self._map.missing):
            values = np.where(self._is_missing(values), values.dtype.type(np.nan), values)
        if j in self._map.single_codes:
            values = np.floor(_rounded(values, np.float32))
        if j in self._map.double_codes:
            values = np.floor(values)
        if self._map.single_range:
            single = _rounded(values, np.float32)
            values = np.where(np.isinf(single), single, values)
        return values

    def labels(self, j: int) -> np.ndarray | None:
        """Labels that column ``j`` is looked up among.

        Parameters
        ----------
        j : int

        Returns
        -------
        ndarray or None
            None where the column holds numbers, be they codes.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(
        ...     n_columns=2,
        ...     names=("size", "colour"),
        ...     categories={1: np.array(["blue", "red"], dtype=object)},
        ... )
        >>> X = pd.DataFrame({"size": [1.5, 2.5], "colour": pd.Categorical(["red", "green"])})
        >>> inputs = input_map.open(X)
        >>> inputs.labels(0) is None, inputs.labels(1).tolist()
        (True, ['blue', 'red'])
        """
        known = self._map.categories.get(j)
        if known is not None and self._map.label_key is not None:
            return self._own_labels(j)
        if not _frames.is_frame(self._X):
            return known if self._by_label and not sparse.issparse(self._X) else None
        series = _frames.column(self._X, j)
        if self._is_plain(j, series):
            return None
        return (
            known if known is not None or not self._map.labels_as_codes else _frames.labels(series)
        )

    def _own_labels(self, j: int) -> np.ndarray:
        """Labels that ``X`` itself has in column ``j``."""
        if _frames.is_frame(self._X):
            _, found = _frames.codes(_frames.column(self._X, j))
        else:
            _, found = _factorize(self._plain_column(j))
        found = [label for label in found if not _frames.is_missing(label)]
        labels = np.empty(len(found), dtype=object)
        labels[:] = found
        return labels

    def to_array(self) -> np.ndarray:
        """All inputs.

        Returns
        -------
        ndarray of shape (n_rows, n_columns), float64

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> from fastpd_sklearn.forest import InputMap
        >>> input_map = InputMap(
        ...     n_columns=2,
        ...     names=("size", "colour"),
        ...     categories={1: np.array(["blue", "red"], dtype=object)},
        ... )
        >>> X = pd.DataFrame({"size": [1.5, 2.5], "colour": pd.Categorical(["red", "green"])})
        >>> input_map.open(X).to_array()
        array([[ 1.5,  1. ],
               [ 2.5, -1. ]])
        """
        if self.matrix is not None:
            return self.matrix.astype(np.float64)
        array = np.empty((self.n_rows, self._map.n_columns))
        for j in range(self._map.n_columns):
            array[:, j] = self.column(j)
        return array

    # -- arrays ----------------------------------------------------------------------------

    def _open_array(self, X: np.ndarray) -> np.ndarray:
        if X.dtype.kind == "U" and self._map.label_key is not None and self._by_label:
            return X.astype(object)
        if X.dtype.kind not in "biufO":
            raise ValueError(
                f"X has dtype {X.dtype}, which is not numeric; convert it to numbers, or explain "
                "the whole pipeline that does"
            )
        if self._by_label:  # labels need not be numbers, nor ones that a float can hold
            return X
        if X.dtype != object:
            return self._as_float(X)
        return np.column_stack([self._objects_as_float(j, x) for j, x in enumerate(X.T)])

    def _as_float(self, X: np.ndarray) -> np.ndarray:
        if X.dtype in (np.float32, np.float64) and X.dtype.isnative:
            return X
        if X.dtype == np.float16:
            return _rounded(X, np.float32)
        if self._map.array_dtype is not None:
            return _rounded(X, self._map.array_dtype)
        values = _rounded(X, np.float64)
        changed = (_rounded(values, np.float32) != values) & ~np.isnan(values)
        if changed.any():
            raise ValueError(
                f"X has dtype {X.dtype} and the value {values[changed][0]:.17g}, which one of the "
                "models within this one rounds to float32 and another does not; convert X to "
                "float64, or to float32"
            )
        return values

    def _objects_as_float(self, j: int, values: np.ndarray) -> np.ndarray:
        try:
            return values.astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"column {self._column_name(j)!r} of X has dtype object and holds what is no "
                f"number ({error}); encode it, or explain the whole pipeline that does"
            ) from error

    def _column_name(self, j: int):
        return j if self._map.names is None else self._map.names[j]

    def _dense_column(self, j: int) -> np.ndarray:
        part = slice(self._X.indptr[j], self._X.indptr[j + 1])
        stored = self._as_float(self._X.data[part])
        values = np.full(self._X.shape[0], self._map.absent, dtype=stored.dtype)
        values[self._X.indices[part]] = stored
        return values

    def _plain_column(self, j: int) -> np.ndarray:
        """Column ``j`` of an array or matrix in its own dtype."""
        column = self._X[:, [j]]
        return (column.toarray() if sparse.issparse(column) else column)[:, 0]

    def _is_missing(self, values: np.ndarray) -> np.ndarray:
        return _rounded(values, np.asarray(self._map.missing).dtype) == self._map.missing

    # -- frames ----------------------------------------------------------------------------

    def _open_frame(self, X):
        """The frame; a small one of nothing but numbers as an array, which is sooner read."""
        if not self._map.categories and X.shape[0] * X.shape[1] <= MOST_COPIED:
            array = _frames.as_array(X)
            if array is not None:
                return array
        self._check_frame(X)
        return X

    def _check_frame(self, X) -> None:
        for j, name in enumerate(X.columns):
            series = _frames.column(X, j)
            is_number = not _frames.is_categorical(series) and _frames.is_numeric(series)
            if j in self._map.categories and is_number and self._map.codes_as_given is None:
                self._refuse_codes(j)
            if is_number and not self._map.frames_hold_codes and self._is_ambiguous(j):
                raise ValueError(
                    f"column {name!r} of X has dtype {series.dtype}, and the model was trained on "
                    f"it as categories {self._map.categories[j].tolist()}: numbers in it may be "
                    "these or their codes; make it categorical, as the model's library asks for"
                )
            if j not in self._map.categories and not self._is_readable(series):
                raise ValueError(
                    f"column {name!r} of X has dtype {series.dtype}, which is not numeric, and "
                    "the model was not trained on it as a category; encode it, or explain the "
                    "whole pipeline that does"
                )

    def _refuse_codes(self, j: int) -> None:
        raise ValueError(
            f"column {self._column_name(j)!r} of X holds categories, which the models within this "
            "one do not take alike when they are given as numbers; pass a data frame in which the "
            "column is categorical"
        )

    def _is_ambiguous(self, j: int) -> bool:
        """Whether column ``j`` has labels that are numbers, and others than their codes."""
        labels = self._map.categories.get(j)
        if labels is None or not _are_numbers(labels):
            return False
        return not np.array_equal(labels.astype(np.float64), np.arange(len(labels)))

    def _is_readable(self, series) -> bool:
        if not _frames.is_categorical(series):
            return _frames.holds_numbers(series)
        if self._map.labels_as_codes is None:
            return False
        if self._map.labels_as_codes:
            return _frames.has_codes(series)
        return _are_numbers(_frames.labels(series))

    def _is_plain(self, j: int, series) -> bool:
        """Whether a column is used as the numbers that it holds."""
        if j in self._map.categories:
            return self._map.codes_as_given and _frames.is_numeric(series)
        return not _frames.is_categorical(series)

    def _label_codes(self, j: int, series) -> np.ndarray:
        known = self._map.categories.get(j)
        if known is None:
            codes, labels = self._own_codes(series)
            numbers = range(len(labels)) if self._map.labels_as_codes else labels
            return np.array([*numbers, np.nan], dtype=np.float64)[codes]
        if None in known.tolist():
            # None is a label here, NaN is missing: tell them apart value by value.
            return self._encode(j, *_factorize(_frames.values(series)))
        return self._encode(j, *self._own_codes(series))

    def _own_codes(self, series) -> tuple[np.ndarray, list]:
        """The codes of a frame's column, of which ``missing`` may be one, and their labels."""
        codes, labels = _frames.codes(series)
        if _frames.is_categorical(series):
            codes = np.where(self._is_missing(codes), -1, codes)
        return codes, labels

    def _encode(self, j: int, codes: np.ndarray, labels: list) -> np.ndarray:
        """Codes among ``labels``, -1 for missing, as codes among the known labels."""
        known = {label: float(c) for c, label in enumerate(self._map.categories[j].tolist())}
        missing = [bool(_frames.is_missing(label)) for label in labels]
        if not self._map.missing_labels and np.any(np.append(missing, True)[codes]):
            self._refuse_missing(j)
        keys = [self._key(j, label) for label in labels]
        unknown = [k not in known and not gone for k, gone in zip(keys, missing, strict=True)]
        if self._map.unknown is None and np.any(unknown):
            self._refuse_unknown(j, [labels[c] for c in np.unique(codes) if c >= 0 and unknown[c]])
        default = np.where(unknown, self._map.unknown, np.nan).tolist()
        table = [known.get(k, d) for k, d in zip(keys, default, strict=True)]
        return np.array([*table, np.nan], dtype=np.float64)[codes]

    def _key(self, j: int, label):
        """What a label is looked up by."""
        if self._map.label_key is None or _frames.is_missing(label):
            return label
        try:
            return self._map.label_key(label)
        except ValueError as error:
            raise ValueError(f"column {self._column_name(j)!r} of X: {error}") from error

    def _refuse_missing(self, j: int) -> None:
        raise ValueError(
            f"column {self._column_name(j)!r} of X holds categories and has a missing value, which "
            "the model's library refuses there; make it a category of its own, as in training"
        )

    def _refuse_unknown(self, j: int, labels: list) -> None:
        if labels:
            raise ValueError(
                f"column {self._column_name(j)!r} of X has the category {labels[0]!r}, which the "
                "model was not trained with and its library does not accept; leave such rows "
                "out, or make the value missing"
            )


def _without_duplicates(X: sparse.csc_array) -> sparse.csc_array:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _rounded(values: np.ndarray, dtype) -> np.ndarray:
    with np.errstate(over="ignore"):
        return values.astype(dtype, copy=False)


def _factorize(values: np.ndarray) -> tuple[np.ndarray, list]:
    """Codes and the labels that they stand for, missing values among them."""
    if values.dtype != object:
        labels, codes = np.unique(values, return_inverse=True)
        return codes, labels.tolist()
    place: dict = {}
    codes = [place.setdefault(value, len(place)) for value in values.tolist()]
    return np.array(codes, dtype=np.int64), list(place)


def _are_numbers(labels: np.ndarray) -> bool:
    try:
        labels.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    return True
