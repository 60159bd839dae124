"""A model that *is* a forest, and the reader for it: for trees that no library would grow."""

import numpy as np

from fastpd_sklearn.forest import Head, InputMap, Reading
from fastpd_sklearn.forest._forest import ForestBuilder
from tests import oracles


class ForestModel:
    """Predicts by the slow rules of the oracles."""

    def __init__(self, forest, names=None):
        self.forest = forest
        self.names = names

    def predict(self, X):
        return oracles.predict_many(self.forest, np.asarray(X, dtype=np.float64))


class ForestReader:
    name = "the tests' own forests"
    supported = "ForestModel"
    tolerance = 1e-10

    def accepts(self, model):
        return isinstance(model, ForestModel)

    def read(self, model):
        input_map = InputMap(n_columns=model.forest.n_inputs, names=model.names)
        return Reading(input_map, model.forest, Head(additive=("raw", "predict")))

    def predict_raw(self, model, X):
        return model.predict(X)


reader = ForestReader()


def make_forest(trees, n_inputs, intercept=0.0, n_outputs=1, strict=False, single=False):
    """A forest of nested tuples ``(feature, threshold, left, right)`` and numbers for leaves.

    Every leaf has cover 1.
    """
    builder = ForestBuilder(n_inputs, n_outputs, strict, single)
    for tree in trees:
        builder.add(**flatten(tree))
    return builder.build(intercept)


def flatten(tree):
    """Arrays of a tree that is given as nested tuples, root first."""
    nodes = {"left": [], "right": [], "feature": [], "threshold": [], "value": [], "cover": []}

    def append(part):
        node = len(nodes["left"])
        is_leaf = not isinstance(part, tuple)
        feature, threshold = (-1, np.nan) if is_leaf else part[:2]
        for key, item in {
            "left": -1,
            "right": -1,
            "feature": feature,
            "threshold": threshold,
            "value": part if is_leaf else np.zeros(np.shape(_some_leaf(part))),
            "cover": 1.0,
        }.items():
            nodes[key].append(item)
        if not is_leaf:
            nodes["left"][node] = append(part[2])
            nodes["right"][node] = append(part[3])
            children = nodes["left"][node], nodes["right"][node]
            nodes["cover"][node] = sum(nodes["cover"][child] for child in children)
        return node

    append(tree)
    return nodes


def _some_leaf(tree):
    while isinstance(tree, tuple):
        tree = tree[2]
    return tree


def chain(features, low, high, threshold=0.5):
    """A tree that asks one feature after the other; ``high`` where all are above the threshold."""
    tree = high
    for feature in reversed(features):
        tree = (feature, threshold, low, tree)
    return tree
