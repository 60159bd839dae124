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


def tree_parts(
    tree,
    leaf_values: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    output: int = 0,
    columns: np.ndarray | None = None,
) -> dict:
    """A ``tree_`` as arguments of :meth:`ForestBuilder.add`.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree
    leaf_values : callable
        From the tree's nodes and its values, as one row a node, to what a leaf adds.
    output : int, default=0
        The first output that the tree adds to.
    columns : ndarray of int, default=None
        The column of ``X`` behind each of the tree's own; None if they are the same.

    Returns
    -------
    dict
    """
    nodes, values = tree_arrays(tree)
    feature = nodes["feature"]
    return {
        "left": nodes["left_child"],
        "right": nodes["right_child"],
        "feature": feature if columns is None else columns[np.maximum(feature, 0)],
        "threshold": nodes["threshold"],
        "missing_left": nodes["missing_go_to_left"],
        "cover": nodes["weighted_n_node_samples"],
        "value": leaf_values(nodes, values.reshape(len(nodes), -1)),
        "output": output,
    }
