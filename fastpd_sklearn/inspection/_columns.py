"""The columns of ``X``: how users name them, and which of them hold categories."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from numbers import Integral

import numpy as np

from fastpd_sklearn.forest import _frames


def column_names(X, feature_names=None) -> list:
    """Names of the columns: the user's, else those of the frame, else "x0", "x1", ...

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    feature_names : array-like of shape (n_columns,), default=None

    Returns
    -------
    list of shape (n_columns,)

    Raises
    ------
    ValueError
        If they are too few or too many, or one occurs twice.
    """
    if feature_names is None:
        return list(X.columns) if _frames.is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
    names = np.asarray(feature_names, dtype=object).ravel().tolist()
    if len(names) != X.shape[1]:
        raise ValueError(
            f"feature_names has {len(names)} names for the {X.shape[1]} columns of X; give one "
            "name a column"
        )
    twice = [name for k, name in enumerate(names) if name in names[:k]]
    if twice:
        raise ValueError(
            f"feature_names should not contain duplicates, and {twice[0]!r} occurs twice; rename "
            "one of the columns"
        )
    return names


def find_column(key, names: list, argument: str) -> int:
    """The number of a column that a user means.

    Parameters
    ----------
    key : int or str
    names : list
        From :func:`column_names`.
    argument : str
        Where the key was given, for the message.

    Returns
    -------
    int

    Raises
    ------
    ValueError
        If there is no such column, or the key is neither a number nor a name.
    """
    if isinstance(key, str):
        if names.count(key) == 1:
            return names.index(key)
        why = "more than one column has that name" if key in names else f"known are {_some(names)}"
        raise ValueError(f"Feature {key!r} not in feature_names ({argument}); {why}")
    if isinstance(key, bool | np.bool_) or not isinstance(key, Integral):
        raise ValueError(
            f"Each entry in {argument} must be either an int, a string, or an iterable of them: "
            f"{key!r} is neither the number nor the name of a column"
        )
    if not 0 <= key < len(names):
        raise ValueError(f"{argument}: all features must be in [0, {len(names) - 1}], got {key}")
    return int(key)


def find_columns(features, names: list) -> tuple[int, ...]:
    """The columns of a joint effect, in the order given.

    Parameters
    ----------
    features : int, str, array-like of them, or mask of shape (n_columns,)
    names : list

    Returns
    -------
    tuple of int

    Raises
    ------
    ValueError, TypeError
        If they are no columns, or a column is named twice.
    """
    if isinstance(features, str | Integral):
        features = [features]
    if not isinstance(features, Iterable) or isinstance(features, Mapping | Set):
        raise TypeError(
            f"features={features!r} should be the number or name of a column, or a list of them"
        )
    keys = list(features)
    if keys and all(isinstance(key, bool | np.bool_) for key in keys):
        if len(keys) != len(names):
            raise ValueError(
                f"features: a mask needs one entry a column of X, got {len(keys)} for "
                f"{len(names)} columns"
            )
        keys = np.flatnonzero(keys).tolist()
    columns = tuple(find_column(key, names, "features") for key in keys)
    if not columns:
        raise ValueError("features is empty; name at least one column")
    if len(set(columns)) < len(columns):
        raise ValueError(f"features={features!r} names a column twice; name each column once")
    return columns


def declared_categories(categorical_features, names: list) -> set[int]:
    """The columns that the user says hold categories.

    Parameters
    ----------
    categorical_features : array-like of int or str, mask of shape (n_columns,), or None
    names : list

    Returns
    -------
    set of int
    """
    if categorical_features is None:
        return set()
    given = np.asarray(categorical_features)
    if given.dtype.kind == "b":
        if given.shape != (len(names),):
            raise ValueError(
                "When `categorical_features` is a boolean array-like, the array should be of shape "
                f"(n_features,). Got {given.size} elements while `X` contains {len(names)} "
                "features."
            )
        return set(np.flatnonzero(given).tolist())
    if given.size == 0:
        raise ValueError(
            "Passing an empty list (`[]`) to `categorical_features` is not supported. Use `None` "
            "instead to indicate that there are no categorical features."
        )
    if given.dtype.kind not in "iuOU":
        raise ValueError(
            "Expected `categorical_features` to be an array-like of boolean, integer, or string. "
            f"Got {given.dtype} instead."
        )
    return {find_column(key, names, "categorical_features") for key in given.ravel().tolist()}


def _some(names: list) -> str:
    return ", ".join(map(repr, names[:20])) + (", ..." if len(names) > 20 else "")
