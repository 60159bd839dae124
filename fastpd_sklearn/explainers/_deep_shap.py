"""SHAP, SHAP interaction and Banzhaf values of forests that are too deep for tables over masks."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from fastpd_sklearn.core.effort import SET_ORDERS, deep_table_effort, pair_effort, set_effort
from fastpd_sklearn.core.pair_values import RowPairs, n_words_of
from fastpd_sklearn.explainers._background import BackgroundEngine, DeepEngine
from fastpd_sklearn.explainers._cost import REPORT, Outlook
from fastpd_sklearn.explainers._protocol import Term

TRIED_TREES, TRIED_ROWS, TRIED_BACKGROUND = 2, (8, 64), 2048
"""What is tried out at ``fit``, at most, to learn how far pairs and sets of rows come."""

BLOCK_VALUES = 2**25
"""Values that are made in one walk, where the terms are asked for block by block."""

BLOCK_ROWS = 128
"""Rows that are explained together, at least, where progress is shown."""

LONG_WALK, MANY_TREES = 20.0, 20
"""Seconds from which it is worth to walk a tree to say what all of so many will take."""


class Trial(NamedTuple):
    """What walks of rows of the background against each other have taken, down some trees.

    Parameters
    ----------
    visits : float
        By explained row, background row and tree, as `RowPairs.values` counts them for
        blocks of as many background rows as are walked together.
    sizes : tuple of ndarray
        Numbers of explained rows, ascending, and of background rows.
    sets : ndarray of shape (n_sizes, n_sizes), float64
        The effort of a tree by these, where sets of rows meet.
    speed : float
        Seconds of this machine in one of the efforts'.
    """

    visits: float
    sizes: tuple[np.ndarray, np.ndarray]
    sets: np.ndarray
    speed: float


class PairEngine(DeepEngine):
    """Attributions of deep forests: by rows or sets of rows that meet, or by tables.

    Tables over masks have a price by leaf that does not depend on the rows; pairs of rows have one
    by pair, and sets of rows one that grows more slowly than either side. All are exact, and the
    cheapest is taken: pairs for few rows, sets for many.
    """

    trial: Trial

    def derive(self) -> None:
        """Find out how many players each leaf has."""
        super().derive()
        self.pairs = RowPairs(self.walks)

    def __getstate__(self) -> dict:
        derived = ("pairs", "walked")
        return {k: v for k, v in super().__getstate__().items() if k not in derived}

    def _add(self, rows, weights, sums) -> None:
        super()._add(rows, weights, sums)
        self.trial = self._try()
        self.walked = {}

    def index_values(self, X, index: str, terms: list[Term], report=None) -> np.ndarray:
        """Values of terms under an index, shape (n_rows, n_terms, n_outputs).

        With the share that is done, ``report`` is called now and then if :meth:`outlook` says so.
        """
        if index == "component":
            return super().index_values(X, index, terms)
        way, _ = self._cheapest(X.shape[0], terms)
        if way == "tables":
            return super().index_values(X, index, terms)
        rows = self.bin(X)
        threads = self.threads_for(rows.n_rows * self.n_rows)
        to_do = (rows, self.rows, self._share(), index, terms, threads)
        values, _ = self.pairs.values(*to_do, by_sets=way == "sets", report=report)
        return values.transpose(2, 0, 1)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """What :meth:`index_values` gives, in large blocks where terms share the walks."""
        if index == "component" or self._cheapest(X.shape[0], terms)[0] == "tables":
            yield from super().index_blocks(X, index, terms, n_values)
        else:
            n_values = max(n_values, BLOCK_VALUES)
            yield from BackgroundEngine.index_blocks(self, X, index, terms, n_values)

    def outlook(self, n_rows: int, index: str, terms: list[Term]) -> Outlook | None:
        """What the values of some terms will take for so many rows."""
        if index == "component" or not terms:
            return None
        way, effort = self._cheapest(n_rows, terms)
        seconds = effort * self.trial.speed / self.threads_for(n_rows * self.n_rows)
        block = None
        if way == "pairs":
            block = int(REPORT * n_rows / max(seconds, 1e-9)) // BLOCK_ROWS * BLOCK_ROWS
            block = max(block, BLOCK_ROWS)
        return Outlook(seconds, block, self.n_rows, reports=way == "sets")

    def _share(self) -> np.ndarray:
        weights = np.ones(self.n_rows) if self.weights is None else self.weights
        return weights / self.total

    def _cheapest(self, n_rows: int, terms: list[Term]) -> tuple[str, float]:
        """The way that takes least, and how much: from nothing but what has been counted."""
        efforts = {"tables": self._table_effort(n_rows, terms)}
        if self.pairs.is_possible:
            efforts["pairs"] = self._pair_effort(n_rows, terms)
            efforts["sets"] = self._set_effort(n_rows, terms)
        way = min(efforts, key=efforts.get)
        return way, efforts[way]

    def _pair_effort(self, n_rows: int, terms: list[Term]) -> float:
        visits = self.trial.visits * n_rows * self.n_rows * self.walks.n_trees
        words = n_words_of(self.n_rows)
        return sum(pair_effort(visits, words, order) for order in _orders(terms))

    def _set_effort(self, n_rows: int, terms: list[Term]) -> float:
        n_blocks, n_together = self.pairs.blocks(n_rows, terms)
        of_tree = set_effort(*self.trial.sizes, self.trial.sets, n_together, self.n_rows)
        n_trees = self.walks.n_trees
        if of_tree * n_trees > LONG_WALK * 1e9 and n_trees >= MANY_TREES:
            of_tree = self._walk(n_together)
        return n_blocks * n_trees * of_tree * sum(SET_ORDERS[k] for k in _orders(terms))

    def _walk(self, n_rows: int) -> float:
        """Effort of a tree of middle size: what was tried at `fit` tells too much of many rows."""
        n_taken = min(n_rows, self.n_rows)
        if n_taken not in self.walked:
            sizes = np.diff(self.walks.trees.root)
            tree = np.argsort(sizes, kind="stable")[len(sizes) // 2]
            some = self.take(self.rows, _spread(self.n_rows, n_taken))
            self.walked[n_taken] = self._try_sets(some, self.rows, np.array([tree]))
        return self.walked[n_taken] * n_rows / n_taken

    def _table_effort(self, n_rows: int, terms: list[Term]) -> float:
        looks = 1 + len(terms) // len(self.walks.slots)
        return deep_table_effort(self.pairs.sizes, n_rows, self.n_rows, looks)

    def _try(self) -> Trial:
        """Walk some rows of the background against others, down some trees."""
        n_tried = min(self.n_rows, TRIED_BACKGROUND)
        sizes = [min(self.n_rows, n) for n in TRIED_ROWS], [-(-n_tried // 8), n_tried]
        sizes = tuple(np.unique(np.array(part)) for part in sizes)
        if not self.pairs.is_possible:
            return Trial(0.0, sizes, np.zeros([len(part) for part in sizes]), 1e-9)
        trees = _spread(self.walks.n_trees, TRIED_TREES)
        parts = [[self.take(self.rows, _spread(self.n_rows, n)) for n in part] for part in sizes]
        sets = [[self._try_sets(one, other, trees) for other in parts[1]] for one in parts[0]]
        rows, others = parts[0][-1], parts[1][-1]
        start = time.perf_counter()
        visits = self._try_values(rows, others, trees)
        effort = len(trees) * self._try_sets(rows, others, trees)
        seconds = time.perf_counter() - start
        effort += pair_effort(visits, n_words_of(others.n_rows), 1)
        tried = rows.n_rows * others.n_rows * len(trees)
        return Trial(visits / tried, sizes, np.array(sets), seconds / max(effort, 1.0))

    def _try_sets(self, rows, others, trees: np.ndarray) -> float:
        return self._try_values(rows, others, trees, by_sets=True) / len(trees)

    def _try_values(self, rows, others, trees: np.ndarray, **way) -> float:
        share = np.full(others.n_rows, 1.0 / others.n_rows)
        singles = [(player,) for player in range(len(self.walks.slots))]
        return self.pairs.values(rows, others, share, "shap", singles, 1, trees, **way)[1]


def _orders(terms: list[Term]) -> set[int]:
    return {len(term) for term in terms}


def _spread(n: int, most: int) -> np.ndarray:
    """Some of the numbers below n, evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
