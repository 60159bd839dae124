"""Leaves that are linear functions, as the forest has them.

A library's linear leaf falls back to a constant where one of its inputs is missing. So it is the
constant everywhere, plus a linear function on a smaller box: that of the rows that reach the leaf
and have all of the inputs. The constants stay in the trees as they are; the linear functions go
into copies of these in which tests for missing values lead to nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fastpd_sklearn.forest._forest import Forest, excludes_missing
from fastpd_sklearn.forest._joining import sum_forests


class LinearLeaves(NamedTuple):
    """What linear leaves are where none of their inputs is missing.

    Parameters
    ----------
    node : ndarray of shape (n_leaves,), int
        Leaves of a forest, ascending.
    constant : ndarray of shape (n_leaves,), float64
    slope_node, slope_input : ndarray of shape (n_slopes,), int
        Some of these leaves, ascending, and inputs.
    slope : ndarray of shape (n_slopes,), float64
    """

    node: np.ndarray
    constant: np.ndarray
    slope_node: np.ndarray
    slope_input: np.ndarray
    slope: np.ndarray


def with_linear_leaves(forest: Forest, leaves: LinearLeaves) -> Forest:
    """A forest of one value a leaf with some leaves made linear.

    Parameters
    ----------
    forest : Forest
        Its leaves have the values to fall back to.
    leaves : LinearLeaves

    Returns
    -------
    Forest
        The trees as they are, followed by those of the linear functions.
    """
    value = forest.value.copy()
    is_linear = np.isin(leaves.node, leaves.slope_node)
    value[leaves.node[~is_linear], 0] = leaves.constant[~is_linear]
    constants = replace(forest, value=value)
    if not is_linear.any():
        return constants
    beyond = np.zeros_like(value)
    beyond[leaves.node[is_linear], 0] = leaves.constant[is_linear]
    beyond[leaves.node[is_linear], 0] -= value[leaves.node[is_linear], 0]
    lines = replace(
        forest,
        value=beyond,
        intercept=np.zeros_like(forest.intercept),
        slope_node=leaves.slope_node.astype(np.int64),
        slope_input=leaves.slope_input.astype(np.int64),
        slope=leaves.slope[:, None],
    )
    lines, _ = pruned(lines, leaves.slope_node)
    whole = np.eye(forest.n_outputs)
    return sum_forests(
        [constants, _refusing_missing(lines)], [whole, whole], np.zeros(forest.n_outputs)
    )


def pruned(forest: Forest, leaf: np.ndarray) -> tuple[Forest, np.ndarray]:
    """What it takes of a forest to tell some leaves apart from all others.

    Parameters
    ----------
    forest : Forest
    leaf : ndarray of int
        The leaves; nothing but these keeps values and slopes.

    Returns
    -------
    forest : Forest
        Without the trees that have none of them, and with one leaf for each of the largest
        subtrees that have none.
    node : ndarray of shape (n_nodes,), int64
        The node of the forest given that each node has been.
    """
    inner = np.flatnonzero(forest.left >= 0)
    parent = np.full(forest.n_nodes, -1)
    parent[forest.left[inner]] = parent[forest.right[inner]] = inner
    needed = np.zeros(forest.n_nodes, bool)
    level = np.unique(leaf)
    kept = np.zeros(forest.n_nodes, bool)
    kept[level] = True
    while len(level):
        needed[level] = True
        level = np.unique(parent[level])
        level = level[(level >= 0) & ~needed[level]]
    node = np.flatnonzero(needed | ((parent >= 0) & needed[parent]))
    number = np.cumsum(np.bincount(node, minlength=forest.n_nodes)) - 1
    tree = np.searchsorted(forest.tree_start, node, side="right") - 1
    trees, start = np.unique(tree, return_index=True)
    is_inner = needed[node] & (forest.left[node] >= 0)
    slopes = kept[forest.slope_node]
    made = _taken(
        forest,
        node,
        left=np.where(is_inner, number[forest.left[node]], -1),
        right=np.where(is_inner, number[forest.right[node]], -1),
        tree_start=np.append(start, len(node)),
        tree_output=forest.tree_output[trees],
        slope_node=number[forest.slope_node[slopes]],
    )
    value = np.where(kept[node][:, None], made.value, 0.0)
    made = replace(
        made, value=value, slope_input=forest.slope_input[slopes], slope=forest.slope[slopes]
    )
    return made, node


def _taken(forest: Forest, node: np.ndarray, *, left, right, **fields) -> Forest:
    """A forest of some nodes of another one, or copies of these, that hang together anew."""
    is_leaf = left < 0
    size = np.where(is_leaf, 0, np.diff(forest.category_start)[node])
    start = np.concatenate([[0], np.cumsum(size)])
    place = np.arange(start[-1]) + np.repeat(forest.category_start[node] - start[:-1], size)
    return replace(
        forest,
        left=left.astype(np.int32),
        right=right.astype(np.int32),
        feature=np.where(is_leaf, -1, forest.feature[node]).astype(np.int32),
        threshold=np.where(is_leaf, np.nan, forest.threshold[node]),
        missing_left=forest.missing_left[node] & ~is_leaf,
        zero_as_missing=forest.zero_as_missing[node] & ~is_leaf,
        is_categorical=forest.is_categorical[node] & ~is_leaf,
        listed_left=forest.listed_left[node] & ~is_leaf,
        category_start=start,
        category=forest.category[place],
        value=forest.value[node],
        cover=forest.cover[node],
        **fields,
    )


def _refusing_missing(forest: Forest) -> Forest:
    """The forest with tests in front of nodes, so that no linear leaf misses one of its inputs.

    Of each test there is one, as high in the tree as may be: where missing values go the way
    of a node's first test of the input, if all linear leaves beyond are functions of it.
    """
    above, column = _places_of_tests(forest)
    n_above = np.bincount(above, minlength=forest.n_nodes)  # tests in front of each node
    moved = np.arange(forest.n_nodes) + 2 * np.cumsum(n_above)
    node = np.repeat(np.arange(forest.n_nodes), 1 + 2 * n_above)
    left, right = np.full(len(node), -1), np.full(len(node), -1)
    inner = np.flatnonzero(forest.left >= 0)
    for child, old in ((left, forest.left[inner]), (right, forest.right[inner])):
        child[moved[inner]] = moved[old] - 2 * n_above[old]
    first = np.concatenate([[0], np.cumsum(n_above)])[above]
    test = moved[above] - 2 * n_above[above] + 2 * (np.arange(len(above)) - first)
    left[test], right[test] = test + 2, test + 1
    root = forest.tree_start[:-1]
    made = _taken(
        forest,
        node,
        left=left,
        right=right,
        tree_start=np.append(moved[root] - 2 * n_above[root], len(node)),
        slope_node=moved[forest.slope_node],
    )
    made.feature[test], made.threshold[test] = column, np.inf
    for flags in (made.missing_left, made.zero_as_missing, made.is_categorical, made.listed_left):
        flags[test] = False
    made.value[test] = made.value[test + 1] = 0.0
    made.cover[test + 1] = 0.0
    return made


def _places_of_tests(forest: Forest) -> tuple[np.ndarray, np.ndarray]:
    """Nodes in front of which an input has to be tested, ascending, and the inputs."""
    inner = np.flatnonzero(forest.left >= 0)
    parent = np.full(forest.n_nodes, -1)
    parent[forest.left[inner]] = parent[forest.right[inner]] = inner
    leaves = np.unique(forest.slope_node)
    n_below = np.zeros(forest.n_nodes, np.int64)  # linear leaves below each node
    level = leaves
    while len(level):
        np.add.at(n_below, level, 1)
        level = parent[level]
        level = level[level >= 0]
    leaf, column = forest.slope_node, forest.slope_input
    top, child, above = leaf.copy(), leaf, parent[leaf]
    keys = [leaf * forest.n_inputs + column]
    while np.any(above >= 0):
        tested = (above >= 0) & (forest.feature[above] == column)
        top = np.where(tested, child, top)
        keys.append((child * forest.n_inputs + column)[tested])
        child, above = np.where(above >= 0, above, child), np.where(above >= 0, parent[above], -1)
    key, n_functions = np.unique(np.concatenate(keys), return_counts=True)
    found = n_functions[np.searchsorted(key, top * forest.n_inputs + column)]
    place = np.where(found == n_below[top], top, leaf)
    open_ = ~excludes_missing(forest, leaf, column)
    wanted = np.unique((place * forest.n_inputs + column)[open_])
    return wanted // forest.n_inputs, wanted % forest.n_inputs


class Factor(NamedTuple):
    """What an input is multiplied by, as a forest.

    Parameters
    ----------
    input : int
    forest : Forest
        Zero for all rows in which the input is missing. Its intercept is zero.
    node : ndarray of shape (n_nodes,), int64
        The node of the whole forest that each node has been.
    """

    input: int
    forest: Forest
    node: np.ndarray


def factors_of(forest: Forest) -> list[Factor]:
    """What each input is multiplied by: a forest is its values plus ``sum of x[j] * factor_j(x)``.

    Parameters
    ----------
    forest : Forest
        With linear leaves.

    Returns
    -------
    list of Factor
        By ascending input.
    """
    nothing = np.empty(0, np.int64)
    factors = []
    for column in np.unique(forest.slope_input).tolist():
        own = forest.slope_input == column
        chosen = replace(
            forest,
            slope_node=forest.slope_node[own],
            slope_input=forest.slope_input[own],
            slope=forest.slope[own],
        )
        part, node = pruned(chosen, chosen.slope_node)
        value = np.zeros_like(part.value)
        value[part.slope_node] = part.slope
        part = replace(
            part,
            value=value,
            intercept=np.zeros_like(part.intercept),
            slope_node=nothing,
            slope_input=nothing,
            slope=value[:0],
        )
        factors.append(Factor(column, part, node))
    return factors
