"""SHAP, SHAP interaction and Banzhaf values of forests that are too deep for tables over masks."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from fastpd_sklearn.core.effort import deep_table_effort, pair_effort
from fastpd_sklearn.core.pair_values import RowPairs, n_words_of
from fastpd_sklearn.explainers._background import BackgroundEngine, DeepEngine
from fastpd_sklearn.explainers._cost import REPORT, Outlook
from fastpd_sklearn.explainers._protocol import Term

TRIED_TREES, TRIED_ROWS, TRIED_BACKGROUND = 4, 64, 1024
"""What is tried out at ``fit``, at most, to learn how far pairs of rows come."""

BLOCK_VALUES = 2**25
"""Values that are made in one walk, where the terms are asked for block by block."""

BLOCK_ROWS = 128
"""Rows that are explained together, at least, where progress is shown."""


class Trial(NamedTuple):
    """How far pairs of rows of the background come in the trees.

    ``visits`` is by explained row, background row and tree, as `RowPairs.values` counts them for
    blocks of as many background rows as are walked together; ``seconds`` is for one of them.
    """

    visits: float
    seconds: float


class PairEngine(DeepEngine):
    """Attributions of deep forests: by pairs of rows that walk together, or by tables.

    Tables over masks have a price by leaf that does not depend on the rows, pairs one by pair. Both
    are exact, and the cheaper one is taken: pairs for up to some hundred rows against 20 000.
    """

    trial: Trial

    def derive(self) -> None:
        """Find out how many players each leaf has."""
        super().derive()
        self.pairs = RowPairs(self.walks)

    def __getstate__(self) -> dict:
        return {k: v for k, v in super().__getstate__().items() if k != "pairs"}

    def _add(self, rows, weights, sums) -> None:
        super()._add(rows, weights, sums)
        self.trial = self._try()

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """Values of terms under an index, shape (n_rows, n_terms, n_outputs)."""
        if index == "component" or self._by_tables(X.shape[0], terms):
            return super().index_values(X, index, terms)
        rows = self.bin(X)
        threads = self.threads_for(rows.n_rows * self.n_rows)
        values, _ = self.pairs.values(rows, self.rows, self._share(), index, terms, threads)
        return values.transpose(2, 0, 1)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """What :meth:`index_values` gives, in large blocks where terms share the walks."""
        if index == "component" or self._by_tables(X.shape[0], terms):
            yield from super().index_blocks(X, index, terms, n_values)
        else:
            n_values = max(n_values, BLOCK_VALUES)
            yield from BackgroundEngine.index_blocks(self, X, index, terms, n_values)

    def outlook(self, n_rows: int, index: str, terms: list[Term]) -> Outlook | None:
        """What the values of some terms will take for so many rows."""
        if index == "component" or not terms:
            return None
        by_tables = self._by_tables(n_rows, terms)
        effort = (self._table_effort if by_tables else self._pair_effort)(n_rows, terms)
        # What this machine takes for what the efforts are reckoned in.
        speed = self.trial.seconds / pair_effort(1.0, n_words_of(self.n_rows), 1)
        seconds = effort * speed / self.threads_for(n_rows * self.n_rows)
        block = int(REPORT * n_rows / max(seconds, 1e-9)) // BLOCK_ROWS * BLOCK_ROWS
        return Outlook(seconds, None if by_tables else max(block, BLOCK_ROWS), self.n_rows)

    def _share(self) -> np.ndarray:
        weights = np.ones(self.n_rows) if self.weights is None else self.weights
        return weights / self.total

    def _by_tables(self, n_rows: int, terms: list[Term]) -> bool:
        if not self.pairs.is_possible:
            return True
        return self._table_effort(n_rows, terms) < self._pair_effort(n_rows, terms)

    def _pair_effort(self, n_rows: int, terms: list[Term]) -> float:
        visits = self.trial.visits * n_rows * self.n_rows * self.walks.n_trees
        orders = {len(term) for term in terms}
        words = n_words_of(self.n_rows)
        return sum(pair_effort(visits, words, order) for order in orders)

    def _table_effort(self, n_rows: int, terms: list[Term]) -> float:
        looks = 1 + len(terms) // len(self.walks.slots)
        return deep_table_effort(self.pairs.sizes, n_rows, self.n_rows, looks)

    def _try(self) -> Trial:
        """Walk some rows of the background against others, down some trees."""
        if not self.pairs.is_possible:
            return Trial(0.0, 1e-8)
        trees = _spread(self.walks.n_trees, TRIED_TREES)
        rows = self.take(self.rows, _spread(self.n_rows, TRIED_ROWS))
        others = self.take(self.rows, _spread(self.n_rows, TRIED_BACKGROUND))
        share = np.full(others.n_rows, 1.0 / others.n_rows)
        start = time.perf_counter()
        singles = [(player,) for player in range(len(self.walks.slots))]
        _, visits = self.pairs.values(rows, others, share, "shap", singles, 1, trees)
        seconds = time.perf_counter() - start
        tried = rows.n_rows * others.n_rows * len(trees)
        return Trial(visits / tried, seconds / max(visits, 1))


def _spread(n: int, most: int) -> np.ndarray:
    """Some of the numbers below n, evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).astype(np.int64))
