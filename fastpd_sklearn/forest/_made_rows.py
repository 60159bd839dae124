"""Rows made from a forest: those on which a model that was misread would give itself away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._rows import take

PLAIN, MISSING, UNSEEN = range(3)
"""How far made rows may go: known values, missing ones too, unseen categories too."""

MOST_ROWS = 5000
_ROWS_PER_VALUE = 16
_BLOCK_SIZE = 2**23


def made_rows(reading: Reading, X, furthest: int, rng: np.random.RandomState) -> Iterator:
    """Rows of ``X`` with columns set to the values at which the forest decides.

    Those are the thresholds and their two neighbours, missing values, the categories and an
    unseen one. At first one column of a row is set, later others with it.

    Parameters
    ----------
    reading : Reading
    X : array, CSR matrix or data frame of shape (n_rows, n_columns)
        The rows to start from.
    furthest : {PLAIN, MISSING, UNSEEN}
        Which values may occur.
    rng : RandomState

    Yields
    ------
    array, CSR matrix or data frame
        Blocks of at most ``MOST_ROWS`` rows in all; whole numbers have become floats.
    """
    values = _values_by_column(reading, X, furthest, rng)
    if not values:
        return
    column = np.repeat(list(values), [len(v) for v in values.values()])
    place = np.concatenate([np.arange(len(v)) for v in values.values()])
    order = rng.permutation(len(column))
    n_rows = min(MOST_ROWS, _ROWS_PER_VALUE * len(order))
    block = max(1, _BLOCK_SIZE // X.shape[1])
    for start in range(0, n_rows, block):
        lap, turn = np.divmod(np.arange(start, min(start + block, n_rows)), len(order))
        pair = order[turn]
        base = take(X, rng.randint(X.shape[0], size=len(pair)))
        changes = {}
        for j, special in values.items():
            chosen = column[pair] == j
            others = ~chosen & (lap % 2 == 1) & (rng.random_sample(len(pair)) < 0.5)
            which = np.where(chosen, place[pair], rng.randint(len(special), size=len(pair)))
            rows = np.flatnonzero(chosen | others)
            changes[j] = (rows, special[which[rows]])
        yield _with_values(base, changes)


# -- the values ----------------------------------------------------------------------------


def _values_by_column(reading: Reading, X, furthest: int, rng) -> dict[int, np.ndarray]:
    """For every column that the forest tests, a share of its values in random order."""
    forest = reading.forest
    inner = np.flatnonzero(forest.left >= 0)
    if not len(inner):
        return {}
    inner = inner[np.argsort(forest.feature[inner], kind="stable")]
    used, starts = np.unique(forest.feature[inner], return_index=True)
    share = max(1, MOST_ROWS // len(used))
    values = {}
    for j, nodes in zip(used.tolist(), np.split(inner, starts[1:]), strict=True):
        nodes = rng.permutation(nodes)[:share]
        special = _special_values(reading, X, j, nodes, furthest)
        if len(special):
            values[j] = rng.permutation(special)[:share]
    return values


def _special_values(reading: Reading, X, j: int, nodes: np.ndarray, furthest: int) -> np.ndarray:
    forest, input_map = reading.forest, reading.input_map.settled(X)
    labels = input_map.open(X).labels(j)
    if labels is not None:
        values, unseen = _labels_at(_frames.column(X, j) if _frames.is_frame(X) else None, labels)
        unseen = [] if input_map.unknown is None else unseen
    elif _frames.is_frame(X) and _frames.is_categorical(_frames.column(X, j)):
        return np.empty(0)  # numbers in the guise of labels: others would have no label
    elif forest.is_categorical[nodes[0]]:
        values, unseen = _codes_at(forest, nodes)
    else:
        values, unseen = _numbers_at(forest, nodes, _float_type(forest, X, j)), []
        if sparse.issparse(X):
            # LightGBM itself reads this one value in two ways, by the format of the matrix.
            values = values[np.abs(values) != ZERO_THRESHOLD]
    takes_missing = input_map.allow_nan and (labels is None or input_map.missing_labels)
    missing = [np.nan] if takes_missing else []
    if labels is None and not np.isnan(input_map.missing):
        missing.append(float(input_map.missing))
    values = [*values, *(missing if furthest >= MISSING else [])]
    values = [*values, *(unseen if furthest >= UNSEEN else [])]
    return np.array(values, dtype=np.float64 if labels is None else object)


def _labels_at(series, known: np.ndarray) -> tuple[list, list]:
    """Labels that a column can hold, and one that the model has not seen."""
    known = [label for label in known.tolist() if label is not None]
    if series is not None and _frames.is_categorical(series):
        own = _frames.labels(series).tolist()
        known_to_both = set(known)
        return [label for label in own if label in known_to_both], _unseen_label({*known, *own})
    return known, _unseen_label(set(known))


def _unseen_label(labels: set) -> list:
    if all(isinstance(label, str) for label in labels):
        return [max(labels, key=len, default="") + "_"]
    if all(isinstance(label, (int, float)) and not isinstance(label, bool) for label in labels):
        return [max(labels) + 1]
    return []


def _codes_at(forest: Forest, nodes: np.ndarray) -> tuple[np.ndarray, list[float]]:
    start, stop = forest.category_start[nodes], forest.category_start[nodes + 1]
    lists = [forest.category[a:b] for a, b in zip(start, stop, strict=True)]
    listed = np.unique(np.concatenate(lists)).astype(np.float64)
    largest = listed.max(initial=0.0)
    return listed, [largest + 1.0, largest + 0.5, -1.0]


def _numbers_at(forest: Forest, nodes: np.ndarray, dtype) -> np.ndarray:
    """Thresholds and their neighbours among the floats of a type, as far as finite."""
    edges = forest.threshold[nodes]
    if forest.zero_as_missing[nodes].any():
        edges = np.concatenate([edges, [0.0, ZERO_THRESHOLD, -ZERO_THRESHOLD]])
    if forest.is_linear:
        edges = edges[np.isfinite(edges)]  # a slope times the largest number would be infinite
    with np.errstate(over="ignore"):
        near = edges.astype(dtype)
        values = np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)])
    values = values.astype(dtype).astype(np.float64)
    return np.unique(values[np.isfinite(values)])


def _float_type(forest: Forest, X, j: int):
    """Precision that values of a column have where the forest compares them."""
    if _frames.is_frame(X):
        held = _frames.to_float(_frames.column(X, j)[:0]).dtype
    else:
        held = _floating(X.dtype)
    return np.float32 if forest.single or held == np.float32 else np.float64


def _floating(dtype):
    return np.float32 if dtype in (np.float16, np.float32) else np.float64


# -- putting them into rows ----------------------------------------------------------------

_Changes = Mapping[int, tuple[np.ndarray, np.ndarray]]


def _with_values(X, changes: _Changes):
    """``X`` with some values of some columns set; in a frame other columns are kept as is."""
    if _frames.is_frame(X):
        return _frames.with_columns(
            X, {j: _set_in_series(_frames.column(X, j), *change) for j, change in changes.items()}
        )
    if sparse.issparse(X):
        return _set_in_sparse(X, changes)
    X = X.copy() if X.dtype == object else X.astype(_floating(X.dtype))
    for j, (rows, values) in changes.items():
        X[rows, j] = values
    return X


def _set_in_series(series, rows: np.ndarray, values: np.ndarray):
    if values.dtype == object:
        held = _frames.values(series)
        held[rows] = values
        return _frames.series_like(series, held)
    held = _frames.to_float(series).copy()
    held[rows] = values
    return held


def _set_in_sparse(X, changes: _Changes):
    rows = np.concatenate([rows for rows, _ in changes.values()])
    columns = np.repeat(list(changes), [len(rows) for rows, _ in changes.values()])
    values = np.concatenate([values for _, values in changes.values()])
    old = X.tocoo()
    n_columns = X.shape[1]
    kept = ~np.isin(old.row * np.int64(n_columns) + old.col, rows * n_columns + columns)
    data = np.concatenate([old.data[kept], values]).astype(_floating(X.dtype))
    place = (np.concatenate([old.row[kept], rows]), np.concatenate([old.col[kept], columns]))
    # Through COO so that a stored zero, which need not mean the same as no entry, stays stored.
    made = sparse.coo_array((data, tuple(p.astype(np.int32) for p in place)), shape=X.shape)
    return type(X)(made.tocsr())
