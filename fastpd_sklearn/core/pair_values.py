"""Attributions from pairs of rows: for each index the worth of a leaf to the players of a pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fastpd_sklearn.core.attribution import INDICES, Rules
from fastpd_sklearn.core.pair_walk import MOST_PLAYERS, MOST_WORDS, leaf_sizes, walk_pairs
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.set_walk import block_rows_of, walk_sets
from fastpd_sklearn.core.walk_model import WalkModel


class RowPairs:
    """Attributions of single players and of two, for trees of any depth.

    By pairs of rows, see `pair_walk`, or by sets of rows, see `set_walk`.

    Parameters
    ----------
    walks : WalkModel

    Attributes
    ----------
    sizes : ndarray of shape (n_leaves,), int64
        Number of players on the way to each leaf.
    """

    def __init__(self, walks: WalkModel) -> None:
        self.walks = walks
        self.sizes = leaf_sizes(walks.trees, len(walks.slots))

    @property
    def is_possible(self) -> bool:
        """Whether no path tests more players than a walk can tell apart."""
        return self.most <= MOST_PLAYERS

    def blocks(self, n_rows: int, terms: Sequence[tuple[int, ...]]) -> tuple[float, int]:
        """In how many blocks rows are explained by sets, and how many there are in one.

        Parameters
        ----------
        n_rows : int
        terms : sequence of tuple of int
        """
        n_together = block_rows_of(n_rows, max(1, len(terms)) * self.walks.n_outputs)
        return n_rows / n_together, n_together

    def values(
        self,
        rows: BinnedRows,
        background: BinnedRows,
        share: np.ndarray,
        index: str,
        terms: Sequence[tuple[int, ...]],
        n_threads: int,
        trees: np.ndarray | None = None,
        *,
        by_sets: bool = False,
        report: Callable[[float], None] | None = None,
    ) -> tuple[np.ndarray, float]:
        """Values of terms under an attribution index, and what they have taken.

        Parameters
        ----------
        rows : BinnedRows
            The rows to explain.
        background : BinnedRows
        share : ndarray of shape (n_background_rows,), float64
            What each row has of the background.
        index : str
            A key of `attribution.INDICES`.
        terms : sequence of tuple of int
            Sets of one player or two, ascending, each once.
        n_threads : int
        trees : ndarray of int64, default=None
            Those to walk; None for all.
        by_sets : bool, default=False
            Let sets of rows meet, as `set_walk` does, instead of rows.
        report : callable, default=None
            Called with the share that is done, now and then; only `by_sets`.

        Returns
        -------
        values : ndarray of shape (n_terms, n_outputs, n_rows), float64
        taken : float
            How often an explained row came to a node; by sets the time in nanoseconds, about. Both
            are counted, and the same in every run.
        """
        walks = self.walks
        out = np.zeros((len(terms), walks.n_outputs, rows.n_rows))
        trees = np.arange(walks.n_trees) if trees is None else trees
        taken = 0.0
        orders = sorted({len(term) for term in terms})
        for k, order in enumerate(orders):
            chosen = [k for k, term in enumerate(terms) if len(term) == order]
            columns = np.full((len(walks.slots),) * order, -1, np.int32)
            columns[tuple(np.array([terms[k] for k in chosen]).T)] = np.arange(len(chosen))
            found = np.zeros((len(chosen), *out.shape[1:]))
            start = (walks.trees, walks.bins.tests, rows, background, share)
            table = worth(index, order, self.most)
            if by_sets:
                part = _part_of(report, k, len(orders))
                taken += walk_sets(
                    *start, table, self._rule(index, order), columns, trees, found, n_threads, part
                )
            else:
                taken += walk_pairs(*start, table, columns, trees, found, n_threads)
            out[chosen] = found
        return out, taken

    @property
    def most(self) -> int:
        """Players of a leaf, at most."""
        return int(self.sizes.max(initial=0))

    def _rule(self, index: str, order: int):
        rules = Rules(index, self.sizes)
        if not rules.is_interior or not len(rules.node):
            return None
        return rules.start, rules.node, worth_at(rules, order, self.most)


def _part_of(report: Callable[[float], None] | None, part: int, n_parts: int):
    """Where one of several parts reports to."""
    return None if report is None else lambda done: report((part + done) / n_parts)


KINDS = {1: [(0, 1), (1, 0)], 2: [(0, 2), (2, 0), (1, 1)]}
"""Of a term's players, how many the explained row violates, and how many the other row."""


def worth_at(rules: Rules, order: int, most: int) -> np.ndarray:
    """One side of :func:`worth`, node by node of a quadrature.

    Parameters
    ----------
    rules : Rules
        With nodes between 0 and 1.
    order : int
    most : int

    Returns
    -------
    ndarray of shape (n_nodes, order + 1, most + 1), float64
        ``[node, kind, a]``: what is left to be multiplied by ``t ** b``.
    """
    t, weight = rules.node[:, None], rules.weight[:, None]
    out = np.zeros((len(rules.node), order + 1, most + 1))
    for kind, (a, b) in enumerate(KINDS[order]):
        power = (1 - t) ** np.arange(most + 1 - a)
        out[:, kind, a:] = (-1) ** a * weight * power / t**b
    return out


def worth(index: str, order: int, most: int) -> np.ndarray:
    """What players of a leaf are worth under an index to a pair of rows that differ in them.

    Parameters
    ----------
    index : str
        A key of `attribution.INDICES`.
    order : int
        1 for a player, 2 for two of them.
    most : int
        Players of a leaf, at most.

    Returns
    -------
    ndarray of shape (order + 1, most + 1, most + 1), float64
        ``[kind, a, b]``, where the explained row violates a players and the other row b: of the
        term's players the ``order - kind`` first ones are among the b, the others among the a; for
        ``order`` 2 the kinds are both of the b, both of the a, and one of each.
    """
    node, weight = INDICES[index].measure(max(most, 1))
    power = np.arange(most + 1)[:, None]
    # moment[a, b]: the integral of t^b (1 - t)^a
    moment = ((1 - node) ** power * weight) @ (node**power).T
    out = np.zeros((order + 1, most + 1, most + 1))
    for kind, (a, b) in enumerate(KINDS[order]):
        out[kind, a:, b:] = (-1) ** a * moment[: most + 1 - a, : most + 1 - b]
    return out


def n_words_of(n_background: int) -> int:
    """Words of 64 bits for the background rows that walk together.

    Parameters
    ----------
    n_background : int
    """
    words = -(-n_background // 64)
    n_blocks = -(-words // MOST_WORDS)
    return -(-words // n_blocks)
