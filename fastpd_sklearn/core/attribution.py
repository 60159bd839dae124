"""Attribution indices: what a set of players is worth in the game that a leaf plays.

Every index here is, for a set ``T`` of players, the average over ``t`` of the discrete derivative
of the game's multilinear extension in the directions of ``T``, all other players joining with
probability ``t``. So an index *is* a measure on [0, 1], and a new one is a new entry of `INDICES`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

Nodes = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Index:
    """An attribution index.

    Parameters
    ----------
    measure : callable
        From a number of players to quadrature nodes and weights on [0, 1] that are exact for
        polynomials of a lower degree.
    default_order : int
        Size of the largest sets of players that are shown if nobody asks for more.
    adds_up : bool
        Whether the values add up to the response, with the intercept.
    """

    measure: Callable[[int], Nodes]
    default_order: int
    adds_up: bool

    def moment(self, power: int) -> float:
        """Integral of ``t ** power``: the weight of a component with so many more players."""
        node, weight = self.measure(power + 1)
        return float(weight @ node**power)


def _at(t: float) -> Callable[[int], Nodes]:
    return lambda n_players: (np.array([t]), np.array([1.0]))


@cache
def _uniform(n_players: int) -> Nodes:
    """Gauss-Legendre on [0, 1]: exact for the polynomials of degree < n_players that arise."""
    node, weight = np.polynomial.legendre.leggauss(max(1, -(-n_players // 2)))
    return (node + 1) / 2, weight / 2


INDICES: dict[str, Index] = {
    "component": Index(_at(0.0), default_order=2, adds_up=True),
    "shap": Index(_uniform, default_order=1, adds_up=True),
    "banzhaf": Index(_at(0.5), default_order=1, adds_up=False),
    "total": Index(_at(1.0), default_order=1, adds_up=False),
}
"""All indices by name.

* "component": nobody else has joined; the Moebius transform ``m_T`` of the game.
* "banzhaf": everybody tosses a coin; the Banzhaf (interaction) index.
* "shap": all ``t`` alike; the Shapley value and, for more players, the Shapley interaction
  index of Grabisch and Roubens (1999).
* "total": everybody else has joined; the sum of all components that contain ``T``.
"""


class Rules:
    """The quadrature of one index for all sizes of leaves.

    Parameters
    ----------
    index : str
        A key of `INDICES`.
    sizes : ndarray of int64
        The numbers of players that leaves have.

    Attributes
    ----------
    start : ndarray of shape (max(sizes) + 2,), int64
    node, weight : ndarray of float64
        Those for size ``d`` are ``start[d]`` up to ``start[d + 1]``.
    is_interior : bool
        Whether all nodes lie strictly between 0 and 1.
    moment : ndarray of shape (max(sizes) + 1, max(sizes) + 1), float64
        ``moment[a, b]``: the integral of ``t^a (1 - t)^b``, exact for ``a + b < max(sizes)``.
    """

    def __init__(self, index: str, sizes: np.ndarray) -> None:
        measure, most = INDICES[index].measure, int(sizes.max(initial=0))
        present = np.isin(np.arange(most + 1), sizes)
        rules = [measure(d) if present[d] else (np.empty(0), np.empty(0)) for d in range(most + 1)]
        self.start = np.concatenate([[0], np.cumsum([len(t) for t, _ in rules])]).astype(np.int64)
        self.node = np.concatenate([t for t, _ in rules])
        self.weight = np.concatenate([w for _, w in rules])
        self.is_interior = bool(np.all((self.node > 0) & (self.node < 1)))
        t, w = measure(most)
        powers = np.arange(most + 1)[:, None]
        self.moment = np.ascontiguousarray((t**powers * w) @ ((1 - t) ** powers).T)
