"""What this package needs of scikit-learn beyond its public interface, named here alone."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection._search import BaseSearchCV as BaseSearchCV
from sklearn.utils import _safe_indexing
from sklearn.utils.metadata_routing import _raise_for_params

_TREE_FIELDS = {
    "left_child",
    "right_child",
    "feature",
    "threshold",
    "impurity",
    "n_node_samples",
    "weighted_n_node_samples",
    "missing_go_to_left",
}

_HIST_FIELDS = {
    "value",
    "count",
    "feature_idx",
    "num_threshold",
    "missing_go_to_left",
    "left",
    "right",
    "gain",
    "depth",
    "is_leaf",
    "bin_threshold",
    "is_categorical",
    "bitset_idx",
}


def tree_arrays(tree) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and values of a fitted tree.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree

    Returns
    -------
    nodes : structured ndarray of shape (n_nodes,)
    values : ndarray of shape (n_nodes, n_targets, n_classes)

    Raises
    ------
    ValueError
        If the nodes have other fields than those that this package knows the meaning of.
    """
    state = tree.__getstate__()
    _check_fields(state["nodes"], _TREE_FIELDS)
    return state["nodes"], state["values"]


def take_rows(X, rows):
    """Rows of an array, a list, a sparse matrix, a data frame or a series.

    Parameters
    ----------
    X : array-like of shape (n_rows, ...)
    rows : ndarray of int

    Returns
    -------
    The same type as ``X``, as scikit-learn's searches split it.
    """
    return _safe_indexing(X, rows)


def hist_iterations(model) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """Trees of a fitted histogram gradient boosting model.

    Parameters
    ----------
    model : HistGradientBoostingRegressor or HistGradientBoostingClassifier

    Returns
    -------
    list of list of tuple
        For every iteration and output the nodes, a structured ndarray of shape (n_nodes,),
        and the bit sets of category codes that go left, uint32 of shape (n_sets, 8).

    Raises
    ------
    ValueError
        If the nodes have other fields than those that this package knows the meaning of.
    """
    iterations = [
        [(predictor.nodes, predictor.raw_left_cat_bitsets) for predictor in iteration]
        for iteration in model._predictors
    ]
    for nodes, _ in iterations[0] if iterations else []:
        _check_fields(nodes, _HIST_FIELDS)
    return iterations


def hist_baseline(model) -> np.ndarray:
    """Raw prediction before the first tree, shape (n_outputs,)."""
    return np.ravel(model._baseline_prediction)


def hist_categories(model) -> list[np.ndarray]:
    """Labels of each categorical column in the order of their codes.

    A missing label is among them only if it is None: NaN has no code.
    """
    if model._preprocessor is None:
        return []
    encoder = model._preprocessor.named_transformers_["encoder"]
    return [_without_nan(labels) for labels in encoder.categories_]


def hist_raw_predict(model, X) -> np.ndarray:
    """Raw prediction of a histogram gradient boosting model, shape (n_rows, n_outputs)."""
    return model._raw_predict(X)


def boosting_initial(model) -> np.ndarray:
    """Raw prediction of a gradient boosting model's constant ``init_``, shape (n_outputs,)."""
    row = np.zeros((1, model.n_features_in_), dtype=np.float32)
    return model._raw_predict_init(row)[0]


def column_transformer_inputs(transformer) -> dict[str, list[int]]:
    """Numbers of the columns that go into each part of a fitted ``ColumnTransformer``."""
    inputs = transformer._transformer_to_input_indices
    return {name: [int(j) for j in columns] for name, columns in inputs.items()}


def link_name(model) -> str:
    """Class name of the link function of a gradient boosting model's loss."""
    return type(model._loss.link).__name__


def raise_for_params(params: dict, owner, method: str) -> None:
    """Raise scikit-learn's error for metadata that is given while routing is off."""
    _raise_for_params(params, owner, method)


def _check_fields(nodes: np.ndarray, known: set[str]) -> None:
    odd = set(nodes.dtype.names) ^ known
    if odd:
        raise ValueError(
            f"the nodes of this scikit-learn's trees differ by {sorted(odd)} from those that "
            "fastpd_sklearn knows; upgrade fastpd_sklearn or use an older scikit-learn"
        )


def _without_nan(labels: np.ndarray) -> np.ndarray:
    # Missing labels come last, so dropping NaN leaves the other codes as they are.
    return labels[:-1] if len(labels) and labels[-1] != labels[-1] else labels
