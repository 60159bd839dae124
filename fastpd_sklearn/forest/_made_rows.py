"""Rows made from a forest: those on which a model that was misread would give itself away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest
from fastpd_sklearn.forest._nodes_met import nodes_met
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._rows import take

PLAIN, MISSING, UNSEEN = range(3)
"""How far made rows may go: known values, missing ones too, unseen categories too."""

MOST_ROWS = 2000
_LEAST_ROWS = 800
"""Rows for a forest of so many nodes that each row takes long."""

_MOST_VISITS = 2**26
"""Rows times nodes, as long as there are not too few rows."""

_MOST_OTHERS = 2**14
"""Nodes beside those that the given rows meet, of which some are chosen."""

_NODES_AT_A_TIME = 2**16
_ROWS_PER_VALUE = 16
_BLOCK_SIZE = 2**23


def made_rows(reading: Reading, X, furthest: int, rng: np.random.RandomState) -> Iterator:
    """Rows of ``X`` with columns set to the values at which the forest decides.

    Those are the thresholds and their two neighbours, missing values, the categories and an
    unseen one. At first one column of a row is set, later others with it. A threshold is first
    of all put into a row that meets its node, so that the node has to decide it.

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
    column = np.repeat(list(values), [len(v) for v, _ in values.values()])
    place = np.concatenate([np.arange(len(v)) for v, _ in values.values()])
    home = np.concatenate([rows for _, rows in values.values()])
    order = rng.permutation(len(column))
    n_rows = min(_most_rows(reading.forest), _ROWS_PER_VALUE * len(order))
    block = max(1, _BLOCK_SIZE // X.shape[1])
    for start in range(0, n_rows, block):
        lap, turn = np.divmod(np.arange(start, min(start + block, n_rows)), len(order))
        pair = order[turn]
        anywhere = rng.randint(X.shape[0], size=len(pair))
        base = take(X, np.where((home[pair] >= 0) & (lap == 0), home[pair], anywhere))
        changes = {}
        for j, (special, _) in values.items():
            chosen = column[pair] == j
            others = ~chosen & (lap % 2 == 1) & (rng.random_sample(len(pair)) < 0.5)
            which = np.where(chosen, place[pair], rng.randint(len(special), size=len(pair)))
            rows = np.flatnonzero(chosen | others)
            changes[j] = (rows, special[which[rows]])
        yield _with_values(base, changes)


def _most_rows(forest: Forest) -> int:
    return min(MOST_ROWS, max(_LEAST_ROWS, _MOST_VISITS // forest.n_nodes))


# -- the values ----------------------------------------------------------------------------


def _values_by_column(
    reading: Reading, X, furthest: int, rng: np.random.RandomState
) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """For every column that the forest tests, a share of its values in random order.

    With each value comes the row of ``X`` that meets its node, or -1.
    """
    forest = reading.forest
    if forest.n_nodes == forest.n_trees:  # all of them leaves
        return {}
    nodes, rows = _some_nodes(forest, reading.input_map.settled(X).open(X).to_array(), rng)
    order = np.argsort(forest.feature[nodes], kind="stable")
    nodes, rows = nodes[order], rows[order]
    used, starts = np.unique(forest.feature[nodes], return_index=True)
    share = max(1, MOST_ROWS // len(used))
    values = {}
    for j, first, last in zip(used.tolist(), starts, [*starts[1:], len(nodes)], strict=True):
        chosen = slice(first, min(first + share, last))
        special, home = _special_values(reading, X, j, nodes[chosen], rows[chosen], furthest)
        if len(special):
            kept = rng.permutation(len(special))[:share]
            values[j] = special[kept], home[kept]
    return values


def _some_nodes(
    forest: Forest, inputs: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of all columns with rows that meet them, before others, with -1."""
    met, rows = nodes_met(forest, inputs, rng)
    if forest.n_nodes > _MOST_OTHERS:
        some = rng.randint(forest.n_nodes, size=_MOST_OTHERS)
    else:
        some = np.arange(forest.n_nodes)
    # The last ones, so that no column is left out.
    others = np.concatenate([some[forest.left[some] >= 0], _last_nodes(forest)])
    others = rng.permutation(np.setdiff1d(others, met))
    return np.concatenate([met, others]), np.concatenate([rows, np.full(len(others), -1)])


def _last_nodes(forest: Forest) -> np.ndarray:
    """The last node of each column that is tested."""
    last = np.full(forest.n_inputs + 1, -1)  # one more for leaves
    for stop in range(forest.n_nodes, 0, -_NODES_AT_A_TIME):
        first = max(0, stop - _NODES_AT_A_TIME)
        here = np.full_like(last, -1)
        here[forest.feature[first:stop]] = np.arange(first, stop)
        last = np.where(last < 0, here, last)
        if np.all(last >= 0):
            break
    return last[:-1][last[:-1] >= 0]


def _special_values(
    reading: Reading, X, j: int, nodes: np.ndarray, rows: np.ndarray, furthest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Values of a column at which some nodes decide, and rows to put them into."""
    forest, input_map = reading.forest, reading.input_map.settled(X)
    labels = input_map.open(X).labels(j)
    if labels is not None:
        values, unseen = _labels_at(_frames.column(X, j) if _frames.is_frame(X) else None, labels)
        unseen = [] if input_map.unknown is None else unseen
    elif _frames.is_frame(X) and _frames.is_categorical(_frames.column(X, j)):
        return np.empty(0), np.empty(0, int)  # numbers as labels: others would have no label
    elif forest.is_categorical[nodes[0]]:
        values, unseen = _codes_at(forest, nodes)
    else:
        values, rows = _numbers_at(forest, nodes, rows, _float_type(forest, X, j))
        unseen = []
        if sparse.issparse(X):
            # LightGBM itself reads this one value in two ways, by the format of the matrix.
            kept = np.abs(values) != ZERO_THRESHOLD
            values, rows = values[kept], rows[kept]
    takes_missing = input_map.allow_nan and (labels is None or input_map.missing_labels)
    missing = [np.nan] if takes_missing else []
    if labels is None and not np.isnan(input_map.missing):
        missing.append(float(input_map.missing))
    is_number = labels is None and not forest.is_categorical[nodes[0]]
    home = rows if is_number else np.full(len(values), -1)
    values = [*values, *(missing if furthest >= MISSING else [])]
    values = [*values, *(unseen if furthest >= UNSEEN else [])]
    home = np.append(home, np.full(len(values) - len(home), -1))
    return np.array(values, dtype=np.float64 if labels is None else object), home


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


def _numbers_at(
    forest: Forest, nodes: np.ndarray, rows: np.ndarray, dtype
) -> tuple[np.ndarray, np.ndarray]:
    """Thresholds and their neighbours among the floats of a type, as far as finite, with rows."""
    edges = forest.threshold[nodes]
    if forest.zero_as_missing[nodes].any():
        edges = np.concatenate([edges, [0.0, ZERO_THRESHOLD, -ZERO_THRESHOLD]])
        rows = np.append(rows, [-1, -1, -1])
    if forest.is_linear:  # a slope times the largest number would be infinite
        rows, edges = rows[np.isfinite(edges)], edges[np.isfinite(edges)]
    with np.errstate(over="ignore"):
        near = edges.astype(dtype)
        values = np.concatenate([near, np.nextafter(near, -np.inf), np.nextafter(near, np.inf)])
    values = values.astype(dtype).astype(np.float64)
    values, first = np.unique(values, return_index=True)
    return values[np.isfinite(values)], np.tile(rows, 3)[first][np.isfinite(values)]


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
