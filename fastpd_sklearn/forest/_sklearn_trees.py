"""What the readers of scikit-learn's models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fastpd_sklearn._compat import tree_arrays
from fastpd_sklearn.forest._forest import ForestBuilder
from fastpd_sklearn.forest._registry import Reading


class Family(NamedTuple):
    """How models of one kind are read, and their library's own raw prediction."""

    read: Callable[[object], Reading]
    predict_raw: Callable[[object, object], np.ndarray]


def column_names(model) -> tuple[str, ...] | None:
    """Names of the columns that a model was fitted on, None if it was an array."""
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else tuple(names)


def tree_builder(model, n_outputs: int) -> ForestBuilder:
    """Builder with the compare policy of ``tree_``: float32 values, ``<=``."""
    return ForestBuilder(model.n_features_in_, n_outputs, strict=False, single=True)


def add_tree(
    builder: ForestBuilder,
    tree,
    leaf_values: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    output: int = 0,
    columns: np.ndarray | None = None,
) -> None:
    """Append a ``tree_``.

    Parameters
    ----------
    builder : ForestBuilder
    tree : sklearn.tree._tree.Tree
    leaf_values : callable
        From the tree's nodes and its values, as one row a node, to what a leaf adds.
    output : int, default=0
        The first output that the tree adds to.
    columns : ndarray of int, default=None
        The column of ``X`` behind each of the tree's own; None if they are the same.
    """
    nodes, values = tree_arrays(tree)
    parts = _take_apart(nodes)
    if columns is not None:
        parts["feature"] = columns[np.maximum(parts["feature"], 0)]
    value = leaf_values(nodes, values.reshape(len(nodes), -1))
    builder.add(**parts, value=value, output=output)


_FIELDS = {
    "left": ("left_child", np.int32),
    "right": ("right_child", np.int32),
    "feature": ("feature", np.int32),
    "threshold": ("threshold", np.float64),
    "missing_left": ("missing_go_to_left", bool),
    "cover": ("weighted_n_node_samples", np.float64),
}
"""What the builder asks of the nodes, and the type that it has there."""

_BLOCK = 4096
"""Nodes that stay in a fast cache while their fields are taken one after the other."""


def _take_apart(nodes: np.ndarray) -> dict[str, np.ndarray]:
    """The fields of nodes as arrays of their own."""
    parts = {name: np.empty(len(nodes), dtype) for name, (_, dtype) in _FIELDS.items()}
    for start in range(0, len(nodes), _BLOCK):
        block = slice(start, start + _BLOCK)
        for name, (of, _) in _FIELDS.items():
            parts[name][block] = nodes[of][block]
    return parts
