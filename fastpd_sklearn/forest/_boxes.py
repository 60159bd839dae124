"""Sums of boxes as trees: a box is a chain of tests, with its value at the end and zero beside."""

from __future__ import annotations

from numbers import Integral

import numpy as np


def box_arrays(lower, upper, value, *, features=None, n_features=None, intercept=0.0) -> dict:
    """The arrays of the forest of :meth:`Forest.from_boxes`.

    Parameters
    ----------
    lower, upper, value, features, n_features, intercept : object
        See there.

    Returns
    -------
    dict of str to ndarray, int or bool
        Fields of a forest.
    """
    lower, upper = _bounds(lower, upper)
    n_boxes = len(lower)
    if features is None and n_features is None:
        n_features = lower.shape[1]
    features = _features(features, lower.shape)
    n_inputs = _n_inputs(features, n_features)
    value = _values(value, n_boxes)
    intercept = _intercept(intercept, value.shape[1])
    _check_boxes(lower, upper, features)

    # A side that is open to infinity asks for nothing.
    box, entry, is_upper = np.nonzero(np.stack([lower > -np.inf, upper < np.inf], axis=2))
    n_tests = np.bincount(box, minlength=n_boxes)
    intercept += value[n_tests == 0].sum(axis=0)
    kept = np.flatnonzero(n_tests)
    tree, n_tests = np.searchsorted(kept, box), n_tests[kept]
    start = np.concatenate([[0], np.cumsum(2 * n_tests + 1)])

    # The tests of a box come first, then what is beside each of them, then the box itself.
    rank = np.arange(len(box)) - np.repeat(np.cumsum(n_tests) - n_tests, n_tests)
    node = start[tree] + rank
    beside = node + n_tests[tree]
    onward = np.where(rank + 1 < n_tests[tree], node + 1, start[tree + 1] - 1)
    bound = np.where(is_upper, upper[box, entry], lower[box, entry])
    n_nodes = start[-1]

    def at_nodes(values, other, dtype) -> np.ndarray:
        array = np.full(n_nodes, other, dtype=dtype)
        array[node] = values
        return array

    leaf_value = np.zeros((n_nodes, value.shape[1]))
    leaf_value[start[1:] - 1] = value[kept]
    nowhere = np.zeros(n_nodes, dtype=bool)
    return {
        "tree_start": start.astype(np.int64),
        "left": at_nodes(np.where(is_upper, onward, beside), -1, np.int32),
        "right": at_nodes(np.where(is_upper, beside, onward), -1, np.int32),
        "feature": at_nodes(features[box, entry], -1, np.int32),
        "threshold": at_nodes(bound, np.nan, np.float64),
        # A missing value is beside every box that bounds it.
        "missing_left": at_nodes(is_upper == 0, False, bool),
        "zero_as_missing": nowhere,
        "is_categorical": nowhere,
        "listed_left": nowhere,
        "category_start": np.zeros(n_nodes + 1, dtype=np.int64),
        "category": np.empty(0, dtype=np.int32),
        "value": leaf_value,
        "cover": np.full(n_nodes, np.nan),
        "tree_output": np.zeros(len(kept), dtype=np.int32),
        "intercept": intercept,
        "n_inputs": n_inputs,
        "strict": True,
        "single": False,
    }


def _bounds(lower, upper) -> tuple[np.ndarray, np.ndarray]:
    lower, upper = (_floats(name, b) for name, b in (("lower", lower), ("upper", upper)))
    if lower.ndim != 2 or lower.shape != upper.shape:
        raise ValueError(
            f"lower has shape {lower.shape} and upper {upper.shape}; both take a row a box and a "
            "column a feature, with infinities where a box has no bound"
        )
    return lower, upper


def _floats(name: str, given) -> np.ndarray:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from error


def _features(features, shape: tuple[int, int]) -> np.ndarray:
    if features is None:
        features = np.arange(shape[1])
    found = np.asarray(features)
    if found.size and found.dtype.kind not in "iu":
        raise ValueError(f"features={features!r}: expected integers, the numbers of columns")
    try:
        found = np.broadcast_to(found.astype(np.int64), shape)
    except ValueError as error:
        raise ValueError(
            f"features has shape {found.shape}; expected one column for each entry of lower, of "
            f"shape {shape}"
        ) from error
    if found.min(initial=0) < 0:
        raise ValueError(f"features holds {found.min()}; columns are numbered from 0")
    return found


def _n_inputs(features: np.ndarray, n_features) -> int:
    needed = int(features.max(initial=-1)) + 1
    if n_features is None:
        return needed
    if isinstance(n_features, bool) or not isinstance(n_features, Integral):
        raise ValueError(f"n_features={n_features!r}: expected an integer, the number of columns")
    if n_features < needed:
        raise ValueError(
            f"n_features={n_features}, and a box bounds column {needed - 1}; pass at least {needed}"
        )
    return int(n_features)


def _values(value, n_boxes: int) -> np.ndarray:
    found = _floats("value", value)
    if found.ndim not in (1, 2) or len(found) != n_boxes:
        raise ValueError(
            f"value has shape {found.shape}; expected a number for each of the {n_boxes} boxes, or "
            "a row of them, one an output"
        )
    return found[:, None] if found.ndim == 1 else found


def _intercept(intercept, n_outputs: int) -> np.ndarray:
    found = _floats("intercept", intercept)
    if found.shape not in ((), (1,), (n_outputs,)):
        raise ValueError(
            f"intercept has shape {found.shape}; expected a number for each of {n_outputs} outputs"
        )
    return np.array(np.broadcast_to(found, n_outputs))


def _check_boxes(lower: np.ndarray, upper: np.ndarray, features: np.ndarray) -> None:
    empty = ~(lower < upper)  # and NaN
    if empty.any():
        box, entry = np.argwhere(empty)[0]
        raise ValueError(
            f"box {box} is empty: it holds values of column {features[box, entry]} from "
            f"{lower[box, entry]} and below {upper[box, entry]}; leave it out"
        )
