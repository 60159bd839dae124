"""Random forests for the core's own tests."""

import numpy as np

from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, ForestBuilder


def grow(
    rng, n_inputs, n_nodes, n_trees=3, strict=False, single=False, width=1, n_outputs=1, zero=False
):
    """A forest of trees with so many inner nodes, of any shape; thresholds are multiples of 1/4.

    The last input is one of category codes.
    """
    builder = ForestBuilder(n_inputs, n_outputs, strict, single)
    for _ in range(n_trees):
        left, right = [-1], [-1]
        for _ in range(n_nodes):
            leaves = np.flatnonzero(np.array(left) < 0)
            node = rng.choice(leaves[-8:])  # rather deep than broad
            left[node], right[node] = len(left), len(left) + 1
            left += [-1, -1]
            right += [-1, -1]
        size = len(left)
        feature = rng.integers(0, n_inputs, size)
        builder.add(
            left=left,
            right=right,
            feature=feature,
            threshold=rng.integers(-4, 5, size) / 4,
            value=rng.normal(size=(size, width)),
            cover=rng.integers(0, 5, size).astype(float),
            output=int(rng.integers(0, n_outputs - width + 1)),
            missing_left=rng.random(size) < 0.5,
            zero_as_missing=(rng.random(size) < 0.3) & (feature != n_inputs - 1) & zero,
            is_categorical=feature == n_inputs - 1,
            listed_left=rng.random(size) < 0.5,
            categories={k: np.flatnonzero(rng.random(5) < 0.4) for k in range(size)},
        )
    return builder.build(rng.normal(size=n_outputs))


def chain_forest(n_features):
    """One tree that asks feature after feature and gives 1 where all are above 1/2."""
    builder = ForestBuilder(n_features, 1, False, False)
    inner = np.arange(n_features)
    builder.add(
        left=np.concatenate([2 * inner + 1, [-1]])[_interleave(n_features)],
        right=np.concatenate([2 * inner + 2, [-1]])[_interleave(n_features)],
        feature=np.concatenate([inner, [-1]])[_interleave(n_features)],
        threshold=np.full(2 * n_features + 1, 0.5),
        value=np.arange(2 * n_features + 1) == 2 * n_features,
        cover=np.ones(2 * n_features + 1),
    )
    return builder.build(0.0)


def many_codes(n_trees=1100, shares=(0.97, 0.02, 0.01)):
    """Three columns that are tested again and again on a path, in given shares of the nodes.

    By default their codes take four bytes, two and one.
    """
    rng = np.random.default_rng(8)
    builder = ForestBuilder(3, 1, False, False)
    inner = np.arange(63)
    for _ in range(n_trees):
        feature = rng.choice(3, 127, p=shares)
        steps = np.array([2**30, 900, 9])[feature]
        builder.add(
            left=np.append(2 * inner + 1, np.full(64, -1)),
            right=np.append(2 * inner + 2, np.full(64, -1)),
            feature=feature,
            threshold=rng.integers(0, steps) / steps,
            value=rng.normal(size=127),
            cover=np.ones(127),
            missing_left=rng.random(127) < 0.5,
        )
    return builder.build(0.5)


def _interleave(n):
    """Positions of nodes 0, leaf, 1, leaf, ..., with -1 (the last entry) for leaves."""
    order = np.full(2 * n + 1, n)
    order[0 : 2 * n : 2] = np.arange(n)
    return order


def rows_for(rng, n_rows, n_inputs, dtype=np.float64):
    """Rows on and beside the thresholds, with zeros, missing values and odd category codes."""
    X = rng.integers(-6, 7, (n_rows, n_inputs)) / 4.0
    X += rng.choice([0.0, 0.0, 1e-12, -1e-12, 1e-3], X.shape)
    X[:, -1] = rng.choice([0.0, 1.0, 1.9, 2.0, 3.0, 4.0, 7.0, -1.0], n_rows)
    X[rng.random(X.shape) < 0.15] = np.nan
    return X.astype(dtype)


def core_of(forest, owner=None):
    """The forest with every input a player, or the given owners of the inputs."""
    owner = np.arange(forest.n_inputs) if owner is None else np.asarray(owner)
    return CoreModel(forest, owner.astype(np.int32), int(owner.max()) + 1, ZERO_THRESHOLD)
