"""Nodes that rows meet on their way down the trees."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest

MOST_WALKS = 1024
"""Ways of a row down a tree that are followed."""

PLACE_BITS = 32
"""Of the place of a node among all that are met, beside the 31 of its number."""


def nodes_met(
    forest: Forest, inputs: np.ndarray, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """Nodes with tests, and for each of them a row that meets it.

    Parameters
    ----------
    forest : Forest
    inputs : ndarray of shape (n_rows, n_inputs), float64
    rng : RandomState
        Chooses rows and trees where there are many.

    Returns
    -------
    node : ndarray of int64, in random order
        Different ones.
    row : ndarray of int64
    """
    row = rng.randint(len(inputs), size=MOST_WALKS)
    node = forest.tree_start[rng.randint(forest.n_trees, size=MOST_WALKS)]
    nodes, rows = [], []
    while len(node):
        inner = forest.left[node] >= 0
        node, row = node[inner], row[inner]
        nodes.append(node)
        rows.append(row)
        is_left = _go_left(forest, node, inputs[row, forest.feature[node]])
        node = np.where(is_left, forest.left[node], forest.right[node]).astype(np.int64)
    node, row = np.concatenate(nodes), np.concatenate(rows)
    order = rng.permutation(len(node))
    # Nodes and places as one number each, of which an order is soon made.
    key = np.sort((node[order] << PLACE_BITS) + np.arange(len(node)))
    node = key >> PLACE_BITS
    first = np.flatnonzero(np.diff(node, prepend=-1))
    shuffled = first[rng.permutation(len(first))]
    return node[shuffled], row[order[key[shuffled] & (2**PLACE_BITS - 1)]]


def _go_left(forest: Forest, node: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Whether values go left, each at its node."""
    if forest.single:
        with np.errstate(over="ignore"):
            value = value.astype(np.float32).astype(np.float64)
    threshold = forest.threshold[node]
    is_left = value < threshold if forest.strict else value <= threshold
    listing = np.flatnonzero(forest.is_categorical[node])
    if len(listing):
        at = node[listing]
        is_left[listing] = _is_listed(forest, at, value[listing]) == forest.listed_left[at]
    missing = np.isnan(value)
    missing |= forest.zero_as_missing[node] & (np.abs(value) <= ZERO_THRESHOLD)
    return np.where(missing, forest.missing_left[node], is_left)


def _is_listed(forest: Forest, node: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Whether each node lists the category that a value is."""
    owner = np.repeat(np.arange(forest.n_nodes), np.diff(forest.category_start))
    listed = (owner << 32) + forest.category  # ascending
    is_code = (value > -1) & (value < 2**31)
    wanted = (node << 32) + np.where(is_code, value, 0).astype(np.int64)
    place = np.minimum(np.searchsorted(listed, wanted), len(listed) - 1)
    return is_code & (listed[place] == wanted)
