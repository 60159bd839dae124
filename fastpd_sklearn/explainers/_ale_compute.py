"""Accumulated local effects of a background: bins, two responses a row, means."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from fastpd_sklearn.explainers._ale_bins import (
    Bins,
    filled_bins,
    given_edges,
    number_bins,
    quantile_edges,
    without_empty,
)
from fastpd_sklearn.explainers._ale_results import ALECurve, ALESurface
from fastpd_sklearn.explainers._ale_sums import CurveSums, Settings, SurfaceSums
from fastpd_sklearn.explainers._category_order import similarity_order
from fastpd_sklearn.explainers._columns import Column, place_labels, read_column
from fastpd_sklearn.explainers._moves import Responder
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Selection
from fastpd_sklearn.forest import _rows

MANY_VALUES = 100_000
"""Values that are worth a pool of threads; NumPy lets them sort at the same time."""


class Background:
    """Rows, their weights, and their columns in bins, each made once.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,), positive, or None
    players : Players
        Their names are for messages.
    absent : float
        What an absent entry of a sparse matrix means.
    settings : Settings
    """

    def __init__(self, X, weights, players: Players, absent: float, settings: Settings) -> None:
        self.X, self.weights = X, weights
        self._names, self._absent, self._settings = players.names, absent, settings
        self._bins: dict[int, Bins] = {}

    def prepare(self, columns: list[int]) -> None:
        """Make the bins of some columns, several at a time where that is worth it."""
        n_threads = min(self._settings.n_threads, len(columns))
        if n_threads == 1 or self.X.shape[0] * len(columns) < MANY_VALUES:
            return
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(self.bins, columns))

    def bins(self, j: int) -> Bins:
        """The bins of a column."""
        if j not in self._bins:
            column = self._column(j)
            if not np.isfinite(column.values).any():
                refuse_empty(self._names[j])
            make = self._number_bins if column.labels is None else self._label_bins
            self._bins[j] = make(j, column)
        return self._bins[j]

    def _column(self, j: int) -> Column:
        as_labels = j in self._settings.categorical
        return read_column(self.X, j, as_labels=as_labels, absent=self._absent)

    def _number_bins(self, j: int, column: Column) -> Bins:
        values = column.values
        if j in self._settings.points:
            edges = given_edges(self._names[j], self._settings.points[j])
            edges = filled_edges(self._names[j], edges, filled_bins(values, edges))
        else:
            finite = np.isfinite(values)
            weights = self.weights
            if not finite.all():
                weights = None if weights is None else weights[finite]
                values = values[finite]
            edges = quantile_edges(values, weights, self._settings.n_bins)
        return number_bins(column.values, edges)

    def _label_bins(self, j: int, column: Column) -> Bins:
        codes = np.where(column.missing, -1, column.values).astype(np.intp)
        if j in self._settings.points:
            order = given_order(self._names[j], column.labels, self._settings.points[j])
        elif self._settings.category_order == "coded":
            order = np.arange(len(column.labels))
        else:
            others = (self._column(k) for k in range(self.X.shape[1]) if k != j)
            order = similarity_order(codes, len(column.labels), others, self.weights)
        rank = np.full(len(order) + 1, -1, dtype=np.intp)
        rank[order] = np.arange(len(order))
        return label_bins(column.labels[order], rank[codes])


def filled_edges(name: str, edges: np.ndarray, filled: np.ndarray) -> np.ndarray:
    """Those of given edges that leave no bin without rows."""
    kept = without_empty(edges, filled)
    if not len(kept):
        raise ValueError(
            f"custom_values: no row of the background lies within the edges {edges.tolist()} of "
            f"{name!r}"
        )
    return kept


def given_order(name: str, labels: np.ndarray, given) -> np.ndarray:
    """The order that a user gave for the labels of a column, as places among these."""
    given = list(given)
    place = place_labels(labels, given)
    place = place[place >= 0].tolist()
    if sorted(place) != list(range(len(labels))):
        raise ValueError(
            f"custom_values: the order of {name!r} should name each of its categories "
            f"{labels.tolist()} once, got {given!r}"
        )
    return np.array(place, dtype=np.intp)


def refuse_empty(name: str) -> None:
    """Raise for a column of which no row has a number or a label."""
    raise ValueError(
        f"the background has no finite value of {name!r}, so that it has no accumulated local "
        "effect; leave it out of `features`"
    )


def label_bins(points: np.ndarray, codes: np.ndarray) -> Bins:
    """Rows by their labels, which are places among the points, -1 for missing."""
    return Bins(points, codes, None, int(np.count_nonzero(codes < 0)))


def new_sums(
    terms: list[Term],
    points: dict[int, np.ndarray],
    labelled: frozenset[int],
    n_outputs: int,
    settings: Settings,
) -> list[CurveSums | SurfaceSums]:
    """Sums of no rows, one a term.

    Parameters
    ----------
    terms : list of tuple of int
        Columns.
    points : dict of int to ndarray
        By column: edges of bins, or labels in order.
    labelled : frozenset of int
        Columns of labels.
    n_outputs : int
    settings : Settings
    """
    return [
        CurveSums(term, points[term[0]], term[0] in labelled, n_outputs, settings.n_bootstrap)
        if len(term) == 1
        else SurfaceSums(term, tuple(points[j] for j in term), n_outputs)
        for term in terms
    ]


def add_rows(
    sums: list[CurveSums | SurfaceSums],
    responder: Responder,
    X,
    weights: np.ndarray | None,
    bins: dict[int, Bins],
    selection: Selection,
    settings: Settings,
    *,
    start: int = 0,
    report: Callable[[int], None] | None = None,
) -> None:
    """Add the local effects of rows.

    Parameters
    ----------
    sums : list of CurveSums and SurfaceSums
    responder : Responder
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,), or None
    bins : dict of int to Bins
        Of the rows, by column.
    selection : Selection
    settings : Settings
    start : int, default=0
        The number of the first row among those of all chunks.
    report : callable, default=None
        Is told how many rows are done.
    """
    for one in sums:
        one.notice(bins, weights)
    moves = [one.moves(bins) for one in sums]
    n_curve_moves = sum(len(m) for one, m in zip(sums, moves, strict=True) if _is_curve(one))
    step = min(X.shape[0], responder.block_rows(max(1, n_curve_moves)))
    for first in range(0, X.shape[0], step):
        part = slice(first, min(X.shape[0], first + step))
        rows = X if step == X.shape[0] else _rows.take(X, part)
        block = [[move.part(part) for move in some] for some in moves]
        draws = settings.draws(start + part.start, start + part.stop) if n_curve_moves else None
        of_rows = None if weights is None else weights[part]
        _add_block(sums, responder, rows, of_rows, block, selection, draws)
        if report is not None:
            report(part.stop)


def _is_curve(sums: CurveSums | SurfaceSums) -> bool:
    return isinstance(sums, CurveSums)


def _add_block(sums, responder: Responder, X, weights, moves, selection: Selection, draws) -> None:
    of_curves = [
        move for one, some in zip(sums, moves, strict=True) if _is_curve(one) for move in some
    ]
    effects = selection.values(responder.differences(X, of_curves)) if of_curves else None
    k = 0
    for one, some in zip(sums, moves, strict=True):
        if some and _is_curve(one):
            one.add(some, effects[k : k + len(some)], weights, draws)
            k += len(some)
        elif some:
            one.add(some, selection.values(responder.mixed_difference(X, *some)), weights)


def accumulated_effects(
    sums, names: list[tuple[str, ...]], selection: Selection, settings: Settings
) -> tuple[ALECurve | ALESurface, ...]:
    """What sums over rows come to.

    Parameters
    ----------
    sums : sequence of CurveSums and SurfaceSums
    names : list of tuple of str
        Of the columns of each.
    selection : Selection
    settings : Settings

    Returns
    -------
    tuple of ALECurve and ALESurface
    """
    for one, name in zip(sums, names, strict=True):
        if not _is_curve(one) and one.is_bare:
            raise ValueError(
                f"no row of the background has finite values of both {name[0]!r} and {name[1]!r}, "
                "so that they have no second-order effect; leave the pair out of `features`"
            )
    pairs = zip(sums, names, strict=True)
    return tuple(one.result(name, selection.names, settings) for one, name in pairs)
