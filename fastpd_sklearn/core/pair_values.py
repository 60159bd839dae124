"""Attributions from pairs of rows: for each index the worth of a leaf to the players of a pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.core.pair_walk import MOST_PLAYERS, MOST_WORDS, leaf_sizes, walk_pairs
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.walk_model import WalkModel


class RowPairs:
    """Attributions of single players and of two, for trees of any depth; see `pair_walk`.

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
        return self.sizes.max(initial=0) <= MOST_PLAYERS

    def values(
        self,
        rows: BinnedRows,
        background: BinnedRows,
        share: np.ndarray,
        index: str,
        terms: Sequence[tuple[int, ...]],
        n_threads: int,
        trees: np.ndarray | None = None,
    ) -> tuple[np.ndarray, int]:
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

        Returns
        -------
        values : ndarray of shape (n_terms, n_outputs, n_rows), float64
        visits : int
            How often an explained row came to a node.
        """
        walks = self.walks
        out = np.zeros((len(terms), walks.n_outputs, rows.n_rows))
        trees = np.arange(walks.n_trees) if trees is None else trees
        visits = 0
        for order in (1, 2):
            chosen = [k for k, term in enumerate(terms) if len(term) == order]
            if not chosen:
                continue
            columns = np.full((len(walks.slots),) * order, -1, np.int32)
            columns[tuple(np.array([terms[k] for k in chosen]).T)] = np.arange(len(chosen))
            found = np.zeros((len(chosen), *out.shape[1:]))
            visits += walk_pairs(
                walks.trees,
                walks.bins.tests,
                rows,
                background,
                share,
                worth(index, order, int(self.sizes.max(initial=0))),
                columns,
                trees,
                found,
                n_threads,
            )
            out[chosen] = found
        return out, visits


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
    kinds = [(0, 1), (1, 0)] if order == 1 else [(0, 2), (2, 0), (1, 1)]
    out = np.zeros((len(kinds), most + 1, most + 1))
    for kind, (a, b) in enumerate(kinds):
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
