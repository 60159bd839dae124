"""Values of games, each written from its own definition."""

from itertools import chain, combinations
from math import factorial

import numpy as np


def subsets(items):
    items = sorted(items)
    return chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))


def value(respond, x, background, weights, columns):
    """``v_S(x)`` of one row, shape (n_outputs,)."""
    rows = np.array(background, copy=True)
    for j in columns:
        rows[:, j] = x[j]
    response = np.asarray(respond(rows), dtype=np.float64).reshape(len(rows), -1)
    return np.average(response, axis=0, weights=weights)


class Game:
    """``v`` of every set of players for one row."""

    def __init__(self, respond, x, background, weights=None, players=None):
        players = players or [[j] for j in range(np.shape(background)[1])]
        self.n = len(players)
        self.v = {
            S: value(respond, x, background, weights, [j for k in S for j in players[k]])
            for S in subsets(range(self.n))
        }

    def pd(self, T):
        return self.v[T]

    def component(self, T):
        return sum((-1) ** (len(T) - len(U)) * self.v[U] for U in subsets(T))

    def _discrete_derivative(self, T, S):
        return sum((-1) ** (len(T) - len(U)) * self.v[tuple(sorted(S + U))] for U in subsets(T))

    def _others(self, T):
        return subsets(set(range(self.n)) - set(T))

    def sii(self, T):
        """The Shapley interaction index of Grabisch and Roubens; SHAP for single players."""
        n, t = self.n, len(T)
        return sum(
            factorial(len(S))
            * factorial(n - len(S) - t)
            / factorial(n - t + 1)
            * self._discrete_derivative(T, S)
            for S in self._others(T)
        )

    shap = sii

    def banzhaf(self, T):
        others = list(self._others(T))
        return sum(self._discrete_derivative(T, S) for S in others) / len(others)

    def total(self, T):
        """The derivative where all the others have joined."""
        return self._discrete_derivative(T, list(self._others(T))[-1])

    def shap_interaction(self, T):
        if len(T) == 2:
            return self.sii(T) / 2
        pairs = [tuple(sorted((T[0], j))) for j in range(self.n) if j != T[0]]
        return self.sii(T) - sum(self.sii(pair) / 2 for pair in pairs)


def expected(output, respond, X, background, terms, weights=None, players=None):
    """Values of an output, shape (n_rows, n_terms, n_outputs)."""
    games = [Game(respond, x, background, weights, players) for x in X]
    return np.array([[getattr(game, output)(T) for T in terms] for game in games])
