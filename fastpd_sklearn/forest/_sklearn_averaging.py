"""scikit-learn's single trees and the forests that average theirs."""

from __future__ import annotations

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)
from sklearn.utils import get_tags

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._sklearn_trees import Family, column_names, tree_builder, tree_parts


def _read_mean(model) -> Reading:
    members = getattr(model, "estimators_", [model])
    shown = _shown_values(model)
    builder = tree_builder(model, len(shown))

    def mean(_, values):
        chosen = values if len(shown) == values.shape[1] else values[:, shown]
        return chosen / len(members)

    builder.add_trees(tree_parts(member.tree_, mean) for member in members)
    input_map = InputMap(
        n_columns=model.n_features_in_,
        names=column_names(model),
        allow_nan=get_tags(members[0]).input_tags.allow_nan,
        allow_inf=False,
        labels_as_codes=False,
    )
    return Reading(input_map, builder.build(0.0), _head(model))


def _class_lists(model) -> list[np.ndarray]:
    """Class labels of each target."""
    return [model.classes_] if model.n_outputs_ == 1 else model.classes_


def _shown_classes(labels: np.ndarray) -> list[int]:
    """The classes that have an output: of two the second, whose probability says it all."""
    return [1] if len(labels) == 2 else list(range(len(labels)))


def _shown_values(model) -> np.ndarray:
    """Which of a node's values, targets x most classes, are outputs."""
    if not is_classifier(model):
        return np.arange(model.n_outputs_)
    targets = _class_lists(model)
    width = max(len(labels) for labels in targets)
    return np.array([t * width + c for t, y in enumerate(targets) for c in _shown_classes(y)])


def _head(model) -> Head:
    if not is_classifier(model):
        return Head(additive=("raw", "predict"))
    additive = ("raw", "predict_proba")
    if model.n_outputs_ == 1:
        return Head(additive, classes=model.classes_)
    names = tuple(
        f"y{t}={labels[c]}"
        for t, labels in enumerate(model.classes_)
        for c in _shown_classes(labels)
    )
    return Head(additive, output_names=names)


def _predict_mean(model, X) -> np.ndarray:
    if not is_classifier(model):
        return model.predict(X)
    proba = model.predict_proba(X)
    targets = [proba] if model.n_outputs_ == 1 else proba
    return np.hstack(
        [p[:, _shown_classes(y)] for p, y in zip(targets, _class_lists(model), strict=True)]
    )


def average_path_length(n_rows: np.ndarray) -> np.ndarray:
    """Mean depth of a leaf in a random binary search tree (Liu, Ting & Zhou 2008, eq. 1).

    Parameters
    ----------
    n_rows : array-like of int
        Number of rows that the tree separates.

    Returns
    -------
    ndarray of float
        0 for one row, 1 for two, else ``2 H(n - 1) - 2 (n - 1) / n`` with the harmonic
        number ``H(i)`` taken as ``ln(i) + 0.5772...``.
    """
    n = np.maximum(np.asarray(n_rows, dtype=np.float64), 2.0)
    length = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return np.select([np.less_equal(n_rows, 1), np.equal(n_rows, 2)], [0.0, 1.0], length)


_DEPTH = (
    "'raw' is a row's mean depth in the trees: score_samples is -2 ** (-depth / c(max_samples_)), "
    "so that a larger depth is less anomalous"
)


def _read_isolation(model) -> Reading:
    n_columns, n_trees = model.n_features_in_, len(model.estimators_)
    builder = tree_builder(model, 1)

    def parts(tree, columns):
        def path_length(nodes, _):
            edges = tree.compute_node_depths() - 1.0
            return (edges + average_path_length(nodes["n_node_samples"])) / n_trees

        # scikit-learn draws an order of the columns but ignores it where all are used.
        drawn = columns if len(columns) < n_columns else None
        return tree_parts(tree, path_length, columns=drawn)

    pairs = zip(model.estimators_, model.estimators_features_, strict=True)
    builder.add_trees(parts(member.tree_, columns) for member, columns in pairs)
    input_map = InputMap(n_columns=n_columns, names=column_names(model), labels_as_codes=False)
    return Reading(input_map, builder.build(0.0), Head(("raw",), note=_DEPTH))


def _predict_isolation(model, X) -> np.ndarray:
    return -np.log2(-model.score_samples(X)) * average_path_length(model.max_samples_)


_MEAN = Family(_read_mean, _predict_mean)

FAMILIES = {
    DecisionTreeRegressor: _MEAN,
    DecisionTreeClassifier: _MEAN,
    ExtraTreeRegressor: _MEAN,
    ExtraTreeClassifier: _MEAN,
    RandomForestRegressor: _MEAN,
    RandomForestClassifier: _MEAN,
    ExtraTreesRegressor: _MEAN,
    ExtraTreesClassifier: _MEAN,
    IsolationForest: Family(_read_isolation, _predict_isolation),
}
