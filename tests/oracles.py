"""Slow, obvious versions of what the package computes, written from the definitions."""

from fractions import Fraction
from itertools import chain, combinations
from math import factorial

import numpy as np

from fastpd_sklearn.forest._forest import ZERO_THRESHOLD


def goes_left(forest, node, x):
    """The rule of :class:`Forest`, for one row of inputs."""
    v = x[forest.feature[node]]
    if np.isnan(v) or (forest.zero_as_missing[node] and abs(v) <= ZERO_THRESHOLD):
        return bool(forest.missing_left[node])
    if forest.is_categorical[node]:
        part = slice(forest.category_start[node], forest.category_start[node + 1])
        listed = v > -1 and v < 2**31 and int(v) in forest.category[part]
        return bool(listed == forest.listed_left[node])
    if forest.single:
        with np.errstate(over="ignore"):
            v = np.float64(np.float32(v))
    t = forest.threshold[node]
    return bool(v < t if forest.strict else v <= t)


def predict(forest, inputs):
    """Raw prediction of a :class:`Forest` on float inputs, shape (n_rows, n_outputs)."""
    out = np.tile(forest.intercept, (len(inputs), 1))
    width = forest.value.shape[1]
    for i, x in enumerate(np.asarray(inputs, dtype=np.float64)):
        for t, root in enumerate(forest.tree_start[:-1]):
            node = root
            while forest.left[node] >= 0:
                node = forest.left[node] if goes_left(forest, node, x) else forest.right[node]
            k = forest.tree_output[t]
            out[i, k : k + width] += forest.value[node]
            for e in np.flatnonzero(forest.slope_node == node):
                out[i, k : k + width] += forest.slope[e] * x[forest.slope_input[e]]
    return out


def subsets(items):
    """All subsets as sorted tuples, the empty one first."""
    items = sorted(items)
    return chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))


# --- routing of many rows --------------------------------------------------------------------


def goes_left_many(forest, node, v):
    """The rule of :class:`Forest` for many values of the node's column."""
    missing = np.isnan(v) | (forest.zero_as_missing[node] & (np.abs(v) <= ZERO_THRESHOLD))
    if forest.is_categorical[node]:
        part = slice(forest.category_start[node], forest.category_start[node + 1])
        listed = (v > -1) & np.isin(np.trunc(v), forest.category[part])
        left = listed == forest.listed_left[node]
    else:
        with np.errstate(over="ignore"):
            v = v.astype(np.float32).astype(np.float64) if forest.single else v
        t = forest.threshold[node]
        left = v < t if forest.strict else v <= t
    return np.where(missing, forest.missing_left[node], left)


def passages(forest, inputs):
    """Which rows pass through each node, bool of shape (n_nodes, n_rows)."""
    inputs = np.asarray(inputs, dtype=np.float64)
    through = np.zeros((forest.n_nodes, len(inputs)), bool)
    through[forest.tree_start[:-1]] = True
    for node in np.flatnonzero(forest.left >= 0):  # parents come before their children
        left = goes_left_many(forest, node, inputs[:, forest.feature[node]])
        through[forest.left[node]] = through[node] & left
        through[forest.right[node]] = through[node] & ~left
    return through


def predict_many(forest, inputs):
    """Raw prediction of many rows, shape (n_rows, n_outputs)."""
    through = passages(forest, inputs)
    out = np.tile(forest.intercept, (through.shape[1], 1))
    tree = np.repeat(np.arange(forest.n_trees), np.diff(forest.tree_start))
    for node in np.flatnonzero(forest.left < 0):
        first = forest.tree_output[tree[node]]
        outputs = slice(first, first + forest.value.shape[1])
        out[:, outputs] += through[node][:, None] * forest.value[node]
    return out


# --- the game by its definition --------------------------------------------------------------


def hybrid_rows(background, X, columns):
    """All rows of the background, once for each row of ``X``, with ``X``'s values in columns."""
    rows = np.tile(np.arange(len(background)), len(X))
    explained = np.repeat(np.arange(len(X)), len(background))
    if not hasattr(background, "iloc"):
        out = np.asarray(background)[rows].astype(np.result_type(background, X))
        out[:, columns] = np.asarray(X)[explained][:, columns]
        return out
    out = background.iloc[rows].reset_index(drop=True)
    for j in columns:
        out.isetitem(j, X.iloc[explained, j].array)
    return out


def pd_function(predict, background, weights, columns, X):
    """``v_S(x)``: the mean prediction after the columns of S are set to those of each row.

    ``predict`` gives (n_rows, n_outputs); the result is of that shape, one row a row of ``X``.
    """
    response = np.asarray(predict(hybrid_rows(background, X, list(columns))), np.float64)
    response = response.reshape(len(X), len(background), -1)
    return np.average(response, axis=1, weights=weights)


def interventional_game(predict, background, weights, X, players):
    """``v_S`` of every set of players; a player is a list of columns."""
    return {
        S: pd_function(predict, background, weights, [j for k in S for j in players[k]], X)
        for S in subsets(range(len(players)))
    }


def path_shares(forest, covers):
    """Share of its parent's weight that each node has; 1 at the roots.

    ``covers`` are node weights, the first choice first: the next one is asked where both
    children weigh nothing, and 1/2 is the last resort.
    """
    share = np.ones(forest.n_nodes)
    for node in np.flatnonzero(forest.left >= 0):
        left, right = forest.left[node], forest.right[node]
        share[[left, right]] = 0.5
        for cover in covers:
            if cover[left] + cover[right] > 0:
                share[left] = cover[left] / (cover[left] + cover[right])
                share[right] = cover[right] / (cover[left] + cover[right])
                break
    return share


def friedman(forest, share, x, known):
    """Friedman's recursion for one row: follow the known columns, average over the others."""

    def below(node):
        if forest.left[node] < 0:
            return forest.value[node]
        left, right = forest.left[node], forest.right[node]
        if forest.feature[node] in known:
            return below(left if goes_left(forest, node, x) else right)
        return share[left] * below(left) + share[right] * below(right)

    out = forest.intercept.copy()
    for t, root in enumerate(forest.tree_start[:-1]):
        k = forest.tree_output[t]
        out[k : k + forest.value.shape[1]] += below(root)
    return out


def path_game(forest, covers, inputs, players):
    """The path-dependent ``v_S`` of every set of players."""
    share = path_shares(forest, covers)
    return {
        S: np.array(
            [friedman(forest, share, x, {j for k in S for j in players[k]}) for x in inputs]
        )
        for S in subsets(range(len(players)))
    }


# --- indices of a game, by enumeration --------------------------------------------------------
# A game ``v`` is a dict from sorted tuples of players to arrays; all sets are there.


def players_of(v):
    """The players of a game."""
    return max(v, key=len)


def derivative(v, T, S=()):
    """Discrete derivative of the game in the directions ``T`` at the coalition ``S``."""
    return sum((-1) ** (len(T) - len(U)) * v[tuple(sorted((*S, *U)))] for U in subsets(T))


def shapley_interaction(v, T):
    """Shapley interaction index of Grabisch and Roubens; the Shapley value of a single player."""
    n, t = len(players_of(v)), len(T)
    return sum(
        derivative(v, T, S) * (factorial(len(S)) * factorial(n - len(S) - t) / factorial(n - t + 1))
        for S in subsets(set(players_of(v)) - set(T))
    )


def banzhaf_interaction(v, T):
    """Mean derivative over all coalitions of the others."""
    others = list(subsets(set(players_of(v)) - set(T)))
    return sum(derivative(v, T, S) for S in others) / len(others)


def shap_matrix_entry(v, T):
    """Entry of the symmetric matrix whose rows add up to the Shapley values."""
    if len(T) == 2:
        return shapley_interaction(v, T) / 2
    others = set(players_of(v)) - set(T)
    pairs = sum(shapley_interaction(v, tuple(sorted((*T, j)))) / 2 for j in others)
    return shapley_interaction(v, T) - pairs


def total_effect(v, T):
    """What the players add where everybody else is there: for one player ``v(all) - v(rest)``."""
    return derivative(v, T, set(players_of(v)) - set(T))


INDICES = {
    "pd": lambda v, T: v[T],
    "component": derivative,
    "shap": shapley_interaction,
    "shap_interaction": shap_matrix_entry,
    "banzhaf": banzhaf_interaction,
    "total": total_effect,
}
"""What each ``output`` of the explainers means."""


def product_game_index(index, p, q, T):
    """Value of ``T`` in the game ``prod_{i in S} p_i prod_{i not in S} q_i``, in fractions.

    The multilinear extension is a polynomial in the probability ``t`` with which the others
    join; it is integrated exactly ("shap"), or taken at 0 ("component"), 1/2
    ("banzhaf") or 1 ("total").
    """
    p, q = [Fraction(x) for x in p], [Fraction(x) for x in q]
    polynomial = [Fraction(1)]
    for i in range(len(p)):
        if i in T:
            polynomial = [c * (p[i] - q[i]) for c in polynomial]
            continue
        shifted = [Fraction(0), *(c * (p[i] - q[i]) for c in polynomial)]
        kept = [*(c * q[i] for c in polynomial), Fraction(0)]
        polynomial = [a + b for a, b in zip(shifted, kept, strict=True)]
    if index == "shap":
        return sum(c / (k + 1) for k, c in enumerate(polynomial))
    t = {"component": Fraction(0), "banzhaf": Fraction(1, 2), "total": Fraction(1)}[index]
    return sum(c * t**k for k, c in enumerate(polynomial))
