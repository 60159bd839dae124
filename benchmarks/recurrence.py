"""Path-dependent SHAP against the recurrence of Linear TreeSHAP.

``python -m benchmarks.recurrence [rows] [trees] [repetitions]`` prints the ratio.

The paper's own code is in no package index, so the recurrence stands here in C, as the paper has
it.
Processor time of one thread, the two in turn.
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from math import comb
from pathlib import Path

import numpy as np

from benchmarks.cases import Case, Inputs
from fastpd_sklearn import PathDependentExplainer

SOURCE = Path(__file__).with_name("recurrence.c")


def compiled(folder: str):
    """The recurrence, built for this processor."""
    path = Path(folder, "recurrence.so")
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["cc", *flags, str(SOURCE), "-o", str(path)], check=True)
    return ctypes.CDLL(str(path)).explain


def tables(n_points: int):
    """Points, the weights of psi by degree, and powers of 1 + y."""
    point = np.polynomial.chebyshev.chebpts2(n_points) + 1e-9
    powers = np.vander(point, increasing=True)
    weight = np.zeros((n_points + 1, n_points))
    for d in range(1, n_points + 1):
        psi = [1 / (d * comb(d - 1, j)) for j in range(d)]
        weight[d] = np.linalg.solve(powers.T, np.append(psi, np.zeros(n_points - d)))
    return point, weight, np.array([(1 + point) ** k for k in range(n_points + 1)])


def degrees(left: np.ndarray, right: np.ndarray, feature: np.ndarray) -> np.ndarray:
    """Number of features on the longest path through each node."""
    n_nodes = len(left)
    above = [frozenset()] * n_nodes
    for node in range(n_nodes):  # parents come before their children
        if left[node] >= 0:
            above[left[node]] = above[right[node]] = above[node] | {feature[node]}
    degree = np.array([len(features) for features in above], np.intc)
    for node in reversed(range(n_nodes)):
        if left[node] >= 0:
            degree[node] = max(degree[left[node]], degree[right[node]])
    return degree


def explain(function, model, X: np.ndarray) -> np.ndarray:
    """SHAP values of a forest of scikit-learn."""
    X = np.ascontiguousarray(X, np.float32)
    phi = np.zeros(X.shape)
    n_points = max(2, X.shape[1])
    point, weight, power = tables(n_points)
    for tree in (estimator.tree_ for estimator in model.estimators_):
        left, right = (part.astype(np.intc) for part in (tree.children_left, tree.children_right))
        ratio = np.ones(tree.node_count)
        inner = np.flatnonzero(left >= 0)
        for child in (left[inner], right[inner]):
            cover = tree.weighted_n_node_samples
            ratio[child] = cover[child] / cover[inner]
        feature = tree.feature.astype(np.intc)
        degree = degrees(left, right, feature)
        arrays = [left, right, feature, degree, np.ascontiguousarray(tree.threshold), ratio]
        arrays.append(np.ascontiguousarray(tree.value[:, 0, 0]))
        function(
            *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
            ctypes.c_int(tree.max_depth),
            ctypes.c_int(n_points),
            *(ctypes.c_void_p(array.ctypes.data) for array in (point, weight, power, X)),
            ctypes.c_int(X.shape[0]),
            ctypes.c_int(X.shape[1]),
            ctypes.c_void_p(phi.ctypes.data),
        )
    return phi / len(model.estimators_)


def main(n_rows: int = 40, n_trees: int = 10, repeats: int = 5) -> None:
    inputs = Inputs(Case("rf_full", 1_000, n_rows, 20, threads=1))
    model = inputs.model
    model.estimators_ = model.estimators_[:n_trees]
    model.n_estimators = n_trees
    explainer = PathDependentExplainer(output="shap", n_jobs=1).fit(model)
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        function = compiled(folder)
        for _ in range(repeats):
            start = time.process_time()
            ours = explainer.transform(inputs.rows)
            middle = time.process_time()
            theirs = explain(function, model, inputs.rows)
            ratios.append((time.process_time() - middle) / (middle - start))
    error = np.abs(theirs - ours).max() / np.abs(ours).max()
    print(f"{n_rows} rows, {n_trees} trees: the recurrence takes {np.median(ratios):.1f} times")
    print(f"as long; its values differ by up to {error:.1e} of the largest one")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
