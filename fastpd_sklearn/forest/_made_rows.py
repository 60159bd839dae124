"""Rows made from a forest: those on which a model that was misread would give itself away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest
from fastpd_sklearn.forest._inputs import InputMap
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
        Blocks of at most ``MOST_ROWS`` rows in all, of the kind of ``X``; whole numbers have
        become floats.
    """
    array = None
    if _frames.is_frame(X) and not reading.input_map.categories:
        array = _frames.as_array(X)
    if array is None:
        yield from _blocks(reading, X, furthest, rng)
        return
    for rows in _blocks(reading, array, furthest, rng):
        yield _frames.from_array(rows, X)


def _blocks(reading: Reading, X, furthest: int, rng: np.random.RandomState) -> Iterator:
    """Blocks of rows; see :func:`made_rows`."""
    special = _special_values(reading, X, furthest, rng)
    n_values = len(special.home)
    if not n_values:
        return
    order = rng.permutation(n_values)
    n_rows = min(_most_rows(reading.forest), _ROWS_PER_VALUE * n_values)
    block = max(1, _BLOCK_SIZE // X.shape[1])
    for start in range(0, n_rows, block):
        lap, turn = np.divmod(np.arange(start, min(start + block, n_rows)), n_values)
        which = order[turn]
        anywhere = rng.randint(X.shape[0], size=len(which))
        at_home = (special.home[which] >= 0) & (lap == 0)
        base = take(X, np.where(at_home, special.home[which], anywhere))
        rows, others = _others(special, which, np.flatnonzero(lap % 2 == 1), rng)
        rows = np.concatenate([np.arange(len(which)), rows])
        yield _with_values(base, special, rows, np.concatenate([which, others]))


def _others(
    special: _Special, which: np.ndarray, rows: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """In some rows, values for half of the columns that ``which`` leaves as they are."""
    chosen = rng.random_sample((len(rows), len(special.sizes))) < 0.5
    chosen[np.arange(len(rows)), special.owner[which[rows]]] = False
    row, owner = np.nonzero(chosen)
    place = (rng.random_sample(len(row)) * special.sizes[owner]).astype(np.intp)
    return rows[row], special.first[owner] + place


def _most_rows(forest: Forest) -> int:
    return min(MOST_ROWS, max(_LEAST_ROWS, _MOST_VISITS // forest.n_nodes))


# -- the values ----------------------------------------------------------------------------


class _Special:
    """The values of all columns in one list, those of a column together.

    Parameters
    ----------
    found : dict of int to (ndarray, ndarray)
        By column its values, float64 or objects where it holds labels, and of each value the row
        that meets its node, or -1.

    Attributes
    ----------
    columns : ndarray of int
        Those that have values.
    values : list of ndarray
    sizes, first : ndarray of int
        Number of values of each of the columns, and of those before it.
    owner, home : ndarray of int
        Of each value the position of its column, and its row.
    """

    def __init__(self, found: dict[int, tuple[np.ndarray, np.ndarray]]) -> None:
        found = {j: special for j, special in found.items() if len(special[0])}
        self.columns = np.array(list(found), dtype=np.intp)
        self.values = [values for values, _ in found.values()]
        self.sizes = np.array([len(values) for values in self.values], dtype=np.intp)
        self.first = np.cumsum(self.sizes) - self.sizes
        self.owner = np.repeat(np.arange(len(found)), self.sizes)
        self.home = np.concatenate([np.empty(0, np.intp), *(home for _, home in found.values())])

    def chosen(self, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values, by the numbers of values."""
        return self.columns[self.owner[which]], np.concatenate(self.values)[which]

    def by_column(self, rows: np.ndarray, which: np.ndarray) -> Iterator:
        """Column, rows and values, by rows and the numbers of their values."""
        order = np.argsort(self.owner[which], kind="stable")
        rows, which = rows[order], which[order]
        bounds = np.searchsorted(self.owner[which], np.arange(len(self.columns) + 1))
        for k, j in enumerate(self.columns.tolist()):
            part = slice(bounds[k], bounds[k + 1])
            yield j, rows[part], self.values[k][which[part] - self.first[k]]


def _special_values(reading: Reading, X, furthest: int, rng: np.random.RandomState) -> _Special:
    """For every column that the forest tests, a share of its values in random order."""
    forest, input_map = reading.forest, reading.input_map.settled(X)
    if forest.n_nodes == forest.n_trees:  # all of them leaves
        return _Special({})
    inputs = input_map.open(X)
    nodes, rows = _some_nodes(forest, inputs.to_array(), rng)
    # The order of small integers is made by counting.
    order = np.argsort(forest.feature[nodes].astype(_least_type(forest)), kind="stable")
    nodes, rows = nodes[order], rows[order]
    columns = forest.feature[nodes]
    used, start = np.unique(columns, return_index=True)
    share = max(1, MOST_ROWS // len(used))
    found, numbers = {}, []
    for j, node in zip(used.tolist(), nodes[start], strict=True):
        labels = inputs.labels(j)
        if labels is not None or forest.is_categorical[node]:
            some = nodes[columns == j][:share]
            values = _categories_at(forest, input_map, X, j, labels, some, furthest)
            values = values[rng.permutation(len(values))[:share]]
            found[j] = values, np.full(len(values), -1)
        elif not (_frames.is_frame(X) and _frames.is_categorical(_frames.column(X, j))):
            numbers.append(j)  # of a category that is a number any other would have no label
    is_number = np.zeros(forest.n_inputs, bool)
    is_number[numbers] = True
    some = is_number[columns] & (_ranks(columns) < share)
    columns, values, home = _numbers_at(forest, X, nodes[some], rows[some])
    if furthest >= MISSING:
        missing = _missing_numbers(input_map)
        columns = np.concatenate([columns, np.repeat(numbers, len(missing)).astype(columns.dtype)])
        values = np.concatenate([values, np.tile(missing, len(numbers))])
        home = np.concatenate([home, np.full(len(missing) * len(numbers), -1)])
    order = np.argsort(columns + rng.random_sample(len(columns)))
    order = order[_ranks(columns[order]) < share]
    bounds = [*np.searchsorted(columns[order], numbers).tolist(), len(order)]
    values, home = values[order], home[order]
    for j, (first, last) in zip(numbers, pairwise(bounds), strict=True):
        found[j] = values[first:last], home[first:last]
    return _Special(found)


def _least_type(forest: Forest) -> np.dtype:
    """The smallest type that can number the forest's inputs."""
    return np.min_scalar_type(forest.n_inputs)


def _ranks(columns: np.ndarray) -> np.ndarray:
    """The place of each entry among those of its column, which are together."""
    start = np.flatnonzero(np.diff(columns, prepend=-1))
    return np.arange(len(columns)) - np.repeat(start, np.diff(start, append=len(columns)))


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
    is_other = np.zeros(forest.n_nodes, bool)
    is_other[others] = True
    is_other[met] = False
    others = rng.permutation(np.flatnonzero(is_other))
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


def _categories_at(
    forest: Forest, input_map: InputMap, X, j: int, labels, nodes: np.ndarray, furthest: int
) -> np.ndarray:
    """Labels of a column, or codes at which some nodes decide; missing and unseen ones."""
    if labels is not None:
        values, unseen = _labels_at(_frames.column(X, j) if _frames.is_frame(X) else None, labels)
        unseen = [] if input_map.unknown is None else unseen
        missing = [np.nan] if input_map.allow_nan and input_map.missing_labels else []
    else:
        values, unseen = _codes_at(forest, nodes)
        missing = _missing_numbers(input_map)
    values = [*values, *(missing if furthest >= MISSING else [])]
    values = [*values, *(unseen if furthest >= UNSEEN else [])]
    return np.array(values, dtype=np.float64 if labels is None else object)


def _missing_numbers(input_map: InputMap) -> list[float]:
    """What is missing in a column of numbers."""
    missing = [np.nan] if input_map.allow_nan else []
    return missing if np.isnan(input_map.missing) else [*missing, float(input_map.missing)]


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
    forest: Forest, X, nodes: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds and their neighbours among the floats, as far as finite, by column.

    Returns
    -------
    columns : ndarray of int32, ascending
    values : ndarray of float64
        Different ones of each column.
    rows : ndarray of int
        Those of their nodes.
    """
    columns, edges = forest.feature[nodes], forest.threshold[nodes]
    zero = np.unique(columns[forest.zero_as_missing[nodes]])
    columns = np.concatenate([columns, np.repeat(zero, 3)])
    edges = np.concatenate([edges, np.tile([0.0, ZERO_THRESHOLD, -ZERO_THRESHOLD], len(zero))])
    rows = np.concatenate([rows, np.full(3 * len(zero), -1)])
    if forest.is_linear:  # a slope times the largest number would be infinite
        kept = np.isfinite(edges)
        columns, edges, rows = columns[kept], edges[kept], rows[kept]
    single = _are_single(forest, X, columns)
    with np.errstate(over="ignore"):
        values = np.where(
            single, _with_neighbours(edges, np.float32), _with_neighbours(edges, np.float64)
        )
    order = np.lexsort((values[0], columns))
    order = order[_are_new(columns[order], values[0, order])]
    columns, values, rows = columns[order], values[:, order], rows[order]
    kept = np.isfinite(values) & _are_apart(columns, *values)
    if sparse.issparse(X):
        # LightGBM itself reads this one value in two ways, by the format of the matrix.
        kept &= np.abs(values) != ZERO_THRESHOLD
    if _frames.is_frame(X) and not _frames.is_pandas(X):
        # What it takes by Arrow it does not round to zero, as it does with arrays.
        kept &= (np.abs(values) > ZERO_THRESHOLD) | (values == 0)
    number, which = np.nonzero(kept.T)
    return columns[number], values[which, number], rows[number]


def _are_new(columns: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Which of some sorted values are not those before them."""
    out = np.ones(len(values), bool)
    out[1:] = (values[1:] != values[:-1]) | (columns[1:] != columns[:-1])
    return out


def _are_apart(
    columns: np.ndarray, near: np.ndarray, below: np.ndarray, above: np.ndarray
) -> np.ndarray:
    """Which of sorted values and their neighbours are not also those of the next value.

    Returns
    -------
    ndarray of shape (3, n), bool
    """
    out = np.ones((3, len(near)), bool)
    same = columns[1:] == columns[:-1]
    out[1, 1:] = ~(same & (below[1:] == near[:-1]))
    out[2, :-1] = ~(same & ((above[:-1] == near[1:]) | (above[:-1] == below[1:])))
    return out


def _with_neighbours(edges: np.ndarray, dtype) -> np.ndarray:
    """Numbers as floats of a type, and the floats below and above them, of shape (3, n)."""
    near = edges.astype(dtype)
    below, above = np.nextafter(near, dtype(-np.inf)), np.nextafter(near, dtype(np.inf))
    return np.stack([near, below, above]).astype(np.float64)


def _are_single(forest: Forest, X, columns: np.ndarray) -> np.ndarray | bool:
    """Whether values of each of some columns are of float32 where the forest compares them."""
    if forest.single or not _frames.is_frame(X):
        return forest.single or _floating(X.dtype) == np.float32
    return np.isin(columns, [j for j in np.unique(columns) if _is_single(X, int(j))])


def _is_single(X, j: int) -> bool:
    """Whether a column of a frame is of float32."""
    return _frames.to_float(_frames.column(X, j)[:0]).dtype == np.float32


def _floating(dtype):
    return np.float32 if dtype in (np.float16, np.float32) else np.float64


# -- putting them into rows ----------------------------------------------------------------


def _with_values(X, special: _Special, rows: np.ndarray, which: np.ndarray):
    """``X`` with special values set in some rows; in a frame other columns are kept as is."""
    if _frames.is_frame(X):
        changes = special.by_column(rows, which)
        return _frames.with_columns(
            X, {j: _set_in_series(_frames.column(X, j), *change) for j, *change in changes}
        )
    columns, values = special.chosen(which)
    if sparse.issparse(X):
        return _set_in_sparse(X, rows, columns, values)
    X = X.copy() if X.dtype == object else X.astype(_floating(X.dtype))
    X[rows, columns] = values
    return X


def _set_in_series(series, rows: np.ndarray, values: np.ndarray):
    if values.dtype == object:
        held = _frames.values(series)
        held[rows] = values
        return _frames.series_like(series, held)
    held = _frames.to_float(series).copy()
    held[rows] = values
    return held


def _set_in_sparse(X, rows: np.ndarray, columns: np.ndarray, values: np.ndarray):
    old = X.tocoo()
    n_columns = X.shape[1]
    kept = ~np.isin(old.row * np.int64(n_columns) + old.col, rows * n_columns + columns)
    data = np.concatenate([old.data[kept], values]).astype(_floating(X.dtype))
    place = (np.concatenate([old.row[kept], rows]), np.concatenate([old.col[kept], columns]))
    # Through COO so that a stored zero, which need not mean the same as no entry, stays stored.
    made = sparse.coo_array((data, tuple(p.astype(np.int32) for p in place)), shape=X.shape)
    return type(X)(made.tocsr())
