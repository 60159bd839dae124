"""Slow, obvious versions of what the package computes, written from the definitions."""

from itertools import chain, combinations

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
    return out


def subsets(items):
    """All subsets as sorted tuples, the empty one first."""
    items = sorted(items)
    return chain.from_iterable(combinations(items, k) for k in range(len(items) + 1))
