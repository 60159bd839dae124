"""CatBoost's trees as nodes: those with one test a level, and those that branch freely."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fastpd_sklearn.forest._forest import ForestBuilder

Test = Callable[[dict], tuple[int, float, int, bool]]
"""From a split to its column, border or NaN, category or -1, and whether NaN stays left."""

_OBLIVIOUS = frozenset({"leaf_values", "leaf_weights", "splits"})
_BRANCHING = frozenset({"left", "right", "split", "value", "weight"})


def add_oblivious_tree(builder: ForestBuilder, tree: dict, test: Test, scale: float) -> None:
    """Add a tree that asks the same question at all nodes of a level.

    Bit ``k`` of a leaf's number says that split ``k`` holds. The last split is asked first, which
    is the order that CatBoost's own SHAP values go by; the prediction does not depend on it.
    Branches that no row can take, since a split above answers the question already, are left out.

    Parameters
    ----------
    builder : ForestBuilder
    tree : dict
        With ``splits``, ``leaf_values`` and perhaps ``leaf_weights``.
    test : callable
    scale : float
        Factor of the leaf values.
    """
    _check_keys(tree, _OBLIVIOUS)
    tests = [test(split) for split in tree["splits"] or []]
    left, right, asked, leaf = _grow(tests)
    values = scale * np.asarray(tree["leaf_values"], np.float64).reshape(1 << len(tests), -1)
    n_inner = len(asked)
    value = np.zeros((n_inner + len(leaf), values.shape[1]))
    value[n_inner:] = values[leaf]
    cover = np.full(len(value), np.nan)
    if tree.get("leaf_weights"):
        cover[n_inner:] = np.asarray(tree["leaf_weights"], np.float64)[leaf]
        for k in range(len(tests)):  # from the bottom up
            nodes = np.flatnonzero(asked == k)
            cover[nodes] = cover[left[nodes]] + cover[right[nodes]]
    chosen = [tests[k] for k in asked.tolist()] + [(-1, np.nan, -1, False)] * len(leaf)
    _add(builder, left, right, chosen, value, cover)


def _grow(tests: list) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Children of all nodes, inner ones first; the test of each inner node; leaves' numbers."""
    number = np.zeros(1, np.int64)  # of the leaf, as far as the answers so far tell
    place = np.full(1, -1)  # twice the parent, and one more for its right child
    places, asked = [], []
    n_nodes = 0
    for k in reversed(range(len(tests))):
        goes_left, goes_right = _open_sides(tests, k, number)
        forks = goes_left & goes_right
        n_forks = int(forks.sum())
        places.append(place[forks])
        asked.append(np.full(n_forks, k))
        place = place.copy()
        place[forks] = 2 * (n_nodes + np.arange(n_forks))
        n_nodes += n_forks
        place = np.concatenate([place[goes_left], (place + forks)[goes_right]])
        number = np.concatenate([number[goes_left], number[goes_right] | 1 << k])
    places = np.concatenate([*places, place])
    children = np.full(2 * len(places), -1)
    below = np.flatnonzero(places >= 0)
    children[places[below]] = below
    asked = np.concatenate([np.empty(0, np.int64), *asked])
    return children[::2], children[1::2], asked, number


def _open_sides(tests: list, k: int, number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """On which sides of test ``k`` a row can be, given its answers to the tests after it."""
    goes_left, goes_right = np.ones(len(number), bool), np.ones(len(number), bool)
    column, border, category, _ = tests[k]
    for other, (other_column, other_border, other_category, _) in enumerate(tests[k + 1 :], k + 1):
        if other_column != column:
            continue
        held = (number >> other & 1).astype(bool)
        if category < 0:
            goes_left &= ~(held & (other_border >= border))
            goes_right &= held | (other_border > border)
        elif other_category == category:
            goes_left &= ~held
            goes_right &= held
        else:
            goes_right &= ~held
    return goes_left, goes_right


def add_branching_tree(builder: ForestBuilder, tree: dict, test: Test, scale: float) -> None:
    """Add a tree whose nodes have tests of their own, given as dicts within dicts.

    Parameters
    ----------
    builder : ForestBuilder
    tree : dict
        With ``split``, ``left`` and ``right``, or with ``value`` and ``weight``.
    test : callable
    scale : float
        Factor of the leaf values.
    """
    nodes, left, right = [tree], [], []
    for node in nodes:  # which grows meanwhile
        _check_keys(node, _BRANCHING)
        is_leaf = "split" not in node
        left.append(-1 if is_leaf else len(nodes))
        right.append(-1 if is_leaf else len(nodes) + 1)
        nodes += [] if is_leaf else [node["left"], node["right"]]
    n_values = max(np.size(node.get("value", 0.0)) for node in nodes)
    value = np.zeros((len(nodes), n_values))
    cover = np.zeros(len(nodes))
    for i in reversed(range(len(nodes))):
        if left[i] < 0:
            value[i] = scale * np.asarray(nodes[i]["value"], np.float64)
            cover[i] = nodes[i].get("weight", np.nan)
        else:
            cover[i] = cover[left[i]] + cover[right[i]]
    chosen = [test(n["split"]) if "split" in n else (-1, np.nan, -1, False) for n in nodes]
    _add(builder, np.array(left), np.array(right), chosen, value, cover)


def _add(builder: ForestBuilder, left, right, tests: list, value, cover) -> None:
    feature, threshold, category, missing_left = (
        np.array(part) for part in zip(*tests, strict=True)
    )
    builder.add(
        left=left,
        right=right,
        feature=feature,
        threshold=threshold,
        value=value,
        cover=cover,
        missing_left=missing_left,
        is_categorical=category >= 0,
        listed_left=False,
        categories=category[:, None],
    )


def _check_keys(part: dict, known: frozenset) -> None:
    if not part.keys() <= known:
        raise ValueError(
            f"the CatBoost model has {sorted(part.keys() - known)[0]!r} in its trees, which is "
            "not known here and may change what the model predicts"
        )
