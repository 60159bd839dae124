"""Engines of two players: all features that are removed, and all that are kept.

What they are asked for is the response with the removed ones averaged over the background.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from fastpd_sklearn.core.ice import slice_rows
from fastpd_sklearn.core.removal import node_weights, predict_without
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.core.walking import Points
from fastpd_sklearn.explainers._binned import threads_for
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Response
from fastpd_sklearn.explainers._vanilla import ALIKE
from fastpd_sklearn.forest import Head, Reading, _rows
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest

REMOVED, KEPT = 0, 1
"""The players."""

BLOCK_CELLS = 2**20
"""Margins that are held at a time, of rows and of points of the removed columns."""

BLOCK_ROWS = 50_000
"""Rows that a model predicts at a time."""


class RemovalEngine(TreeEngine):
    """Base of engines of tree ensembles.

    Their state are sums over the background by what it has in the removed columns.

    Attributes
    ----------
    total : float
        Weight of the background.
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.total = 0.0
        super().__init__(reading, players, n_jobs)
        self._sum = np.zeros(self.n_outputs)

    def _make_core(self, forest: Forest, owner: np.ndarray, n_players: int) -> WalkModel:
        return WalkModel(forest, owner, n_players, ZERO_THRESHOLD)

    def _make_coverage(self) -> None:
        return None

    @property
    def walks(self) -> WalkModel:
        """The forest as rows walk through it."""
        return self.core

    @property
    def intercept(self) -> np.ndarray:
        """Mean response over the background, shape (n_outputs,)."""
        return self._sum / self.total

    def threads_for(self, n_rows: int) -> int:
        """Threads for some rows: starting them must not cost more than they save."""
        return threads_for(n_rows * self.core.n_trees, self.n_threads)

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        points, place = self.walks.points(self.bin(X), REMOVED)
        self._add(points, np.bincount(place, weights, points.size))
        self._sum = self._sum + weights @ self.predict(X)
        self.total += weights.sum()

    def merge(self, other: RemovalEngine) -> None:
        """Add the background of another engine for the same forest."""
        self._join(other)
        self._sum = self._sum + other._sum
        self.total += other.total

    @abstractmethod
    def _add(self, points: Points, weights: np.ndarray) -> None:
        """Take notice of the removed columns of new rows."""

    @abstractmethod
    def _join(self, other: RemovalEngine) -> None:
        """Take notice of the removed columns of the rows of another engine."""

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """The component of the kept columns, shape (n_rows, 1, n_outputs)."""
        return (self.without(X) - self.intercept)[:, None]

    @abstractmethod
    def without(self, X) -> np.ndarray:
        """The response with the removed columns averaged out, shape (n_rows, n_outputs)."""


class MarginRemovalEngine(RemovalEngine):
    """Averages what the trees add up to.

    Its state is the weight of the background rows, by node, whose removed columns meet the tests
    of these columns on the way there.
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        super().__init__(reading, players, n_jobs)
        self._weights = np.zeros(reading.forest.n_nodes)

    def _add(self, points: Points, weights: np.ndarray) -> None:
        no_rows, _ = self.core.bins.empty_rows(0)
        trees, threads = self.core.trees, self.threads_for(points.size)
        self._weights = self._weights + node_weights(trees, points, weights, no_rows, threads)

    def _join(self, other: MarginRemovalEngine) -> None:
        self._weights = self._weights + other._weights

    def without(self, X) -> np.ndarray:
        """The mean sum of the trees, shape (n_rows, n_outputs)."""
        share = self._weights / self.total
        rows, core = self.bin(X), self.core
        threads = self.threads_for(rows.n_rows)
        return predict_without(core.trees, rows, REMOVED, share, core.intercept, threads)


class ResponseRemovalEngine(RemovalEngine):
    """Averages a response on which the trees do not add up.

    Its state are the different values that the background has in the removed columns, as codes,
    with their weights: the response to a row is found at each of them.
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.head: Head = reading.head
        super().__init__(reading, players, n_jobs)
        self.n_outputs = self.head.respond(np.zeros((1, self.n_outputs))).shape[1]
        self._sum = np.zeros(self.n_outputs)
        self._codes = np.empty((len(self.walks.slots[REMOVED]), 0), np.uint32)
        self._weights = np.empty(0)

    def predict(self, X) -> np.ndarray:
        """The response to every row, shape (n_rows, n_outputs)."""
        return self.head.respond(super().predict(X))

    def _add(self, points: Points, weights: np.ndarray) -> None:
        self._add_codes(points.codes, weights)

    def _join(self, other: ResponseRemovalEngine) -> None:
        self._add_codes(other._codes, other._weights)

    def _add_codes(self, codes: np.ndarray, weights: np.ndarray) -> None:
        codes = np.concatenate([self._codes, codes], axis=1)
        weights = np.concatenate([self._weights, weights])
        order = np.lexsort(codes[::-1]) if len(codes) else np.arange(codes.shape[1])
        codes, weights = codes[:, order], weights[order]
        first = np.ones(codes.shape[1], bool)
        first[1:] = np.any(codes[:, 1:] != codes[:, :-1], axis=0)
        first = np.flatnonzero(first)
        self._codes, self._weights = codes[:, first], np.add.reduceat(weights, first)

    def without(self, X) -> np.ndarray:
        """The mean response, shape (n_rows, n_outputs)."""
        rows, walks = self.bin(X), self.walks
        slots, n_codes = walks.slots[REMOVED], walks.bins.n_codes
        points = Points(REMOVED, slots, self._codes, n_codes, walks.is_line[REMOVED])
        step = max(1, BLOCK_CELLS // (points.size * walks.n_outputs))
        out = np.empty((rows.n_rows, self.n_outputs))
        for start in range(0, rows.n_rows, step):
            part = slice_rows(rows, start, min(rows.n_rows, start + step))
            margins = walks.curves(part, [points], self.threads_for(part.n_rows))
            response = self.head.respond(margins.reshape(len(margins), -1).T)
            response = response.reshape(part.n_rows, points.size, -1)
            out[start : start + step] = np.einsum("p,rpk->rk", self._weights, response)
        return out / self.total


class PredictedRemovalEngine:
    """Averages a response of any model by calling it.

    Parameters
    ----------
    respond : Response
    removed : ndarray of int
        The removed columns.
    n_outputs : int
    """

    def __init__(self, respond: Response, removed: np.ndarray, n_outputs: int) -> None:
        self.n_outputs = n_outputs
        self._respond, self._removed = respond, removed
        self._total, self._sum = 0.0, np.zeros(n_outputs)
        self._known: list[tuple[object, np.ndarray]] = []

    @property
    def intercept(self) -> np.ndarray:
        """Mean response over the background, shape (n_outputs,)."""
        return self._sum / self._total

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows, of which those with other values in the removed columns are kept."""
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        X, weights = _rows.take(X, np.flatnonzero(weights)), weights[weights > 0]
        first, kind = np.zeros(1, np.intp), np.zeros(X.shape[0], np.intp)
        if len(self._removed):
            first, kind = _rows.distinct_rows(X, self._removed)
        known = _rows.take(X, first), np.bincount(kind, weights)
        self._add([known], weights @ self._predict(X), weights.sum())

    def check_same_model(self, other: PredictedRemovalEngine) -> None:
        """Refuse an engine whose model responds differently to a row of each of the two."""
        for known, _ in (self._known[0], other._known[0]):
            row = _rows.take(known, slice(0, 1))
            if not np.allclose(self._respond(row), other._respond(row), rtol=ALIKE, atol=0.0):
                raise ValueError("merge: the two explainers explain different models")

    def merge(self, other: PredictedRemovalEngine) -> None:
        """Add the background of another engine for the same model."""
        self._add(other._known, other._sum, other._total)

    def _add(self, known: list, response: np.ndarray, weight: float) -> None:
        self._known = [*self._known, *known]
        self._sum = self._sum + response
        self._total += weight

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """The component of the kept columns, shape (n_rows, 1, n_outputs)."""
        self._predict(X)  # so that the model refuses what it does not take, removed or not
        return (self.without(X) - self.intercept)[:, None]

    def without(self, X) -> np.ndarray:
        """The mean response, shape (n_rows, n_outputs)."""
        total = np.zeros((X.shape[0], self.n_outputs))
        for known, weights in self._known:
            size = len(weights)
            for start in range(0, X.shape[0], max(1, BLOCK_ROWS // size)):
                stop = min(X.shape[0], start + max(1, BLOCK_ROWS // size))
                rows = _rows.take(X, np.repeat(np.arange(start, stop), size))
                held = _rows.take(known, np.tile(np.arange(size), stop - start))
                response = self._predict(_rows.with_columns(rows, held, self._removed))
                response = response.reshape(stop - start, size, self.n_outputs)
                total[start:stop] += np.einsum("b,rbk->rk", weights, response)
        return total / self._total

    def _predict(self, X) -> np.ndarray:
        parts = [slice(start, start + BLOCK_ROWS) for start in range(0, X.shape[0], BLOCK_ROWS)]
        return np.concatenate([self._respond(_rows.take(X, part)) for part in parts])
