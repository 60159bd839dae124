"""The trees of XGBoost's dump, joined into a forest without a loop over their nodes."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.forest._forest import Forest, check_forest

# All keys whose meaning is known. A new one may change what the model predicts.
_KEYS = {
    "model": {"learner", "version"},
    "learner": {
        "attributes",
        "feature_names",
        "feature_types",
        "gradient_booster",
        "learner_model_param",
        "objective",
    },
    "learner_model_param": {
        "base_score",
        "boost_from_average",
        "num_class",
        "num_feature",
        "num_target",
    },
    "gradient_booster": {"gbtree", "model", "name", "weight_drop"},
    "gradient_booster.model": {
        "cats",
        "gbtree_model_param",
        "iteration_indptr",
        "tree_info",
        "trees",
        "weight_drop",
    },
    "gbtree_model_param": {"num_parallel_tree", "num_trees"},
    "cats": {"enc", "feature_segments", "sorted_idx"},
    "cats.enc": {"offsets", "type", "values"},
    "tree": {
        "base_weights",
        "categories",
        "categories_nodes",
        "categories_segments",
        "categories_sizes",
        "default_left",
        "id",
        "leaf_weights",
        "left_children",
        "loss_changes",
        "parents",
        "right_children",
        "split_conditions",
        "split_indices",
        "split_type",
        "sum_hessian",
        "tree_param",
    },
    "tree_param": {"num_deleted", "num_feature", "num_nodes", "size_leaf_vector"},
}


def check_keys(what: str, part: dict) -> dict:
    """Return a part of the dump if all its keys are known.

    Parameters
    ----------
    what : str
        Name of the part.
    part : dict

    Returns
    -------
    dict
        The part itself.

    Raises
    ------
    ValueError
        If a key is unknown.
    """
    if not part.keys() <= _KEYS[what]:
        unknown = sorted(part.keys() - _KEYS[what])
        raise ValueError(
            f"the XGBoost model has {unknown[0]!r} in its {what}, which is not known here and "
            "may change what the model predicts; models of XGBoost 2.1 to 3.4 can be read"
        )
    return part


def join_trees(trees: list[dict], *, weights, outputs, intercept, n_inputs: int) -> Forest:
    """Forest of XGBoost's trees.

    Parameters
    ----------
    trees : list of dict
        Trees as in the dump, at least one.
    weights : array-like of shape (n_trees,)
        Factors of the trees' leaf values.
    outputs : array-like of shape (n_trees,)
        The output that each tree adds to, unless its leaves are vectors.
    intercept : ndarray of shape (n_outputs,)
    n_inputs : int

    Returns
    -------
    Forest

    Raises
    ------
    ValueError
        If the dump does not describe trees, or describes them with keys that are not known.
    """
    for tree in trees:
        check_keys("tree", tree)
        check_keys("tree_param", tree["tree_param"])
    n_values = _n_values(trees)
    sizes = np.array([len(tree["left_children"]) for tree in trees], dtype=np.int64)
    start = np.concatenate([[0], np.cumsum(sizes)])
    nodes = _nodes(trees, np.repeat(start[:-1], sizes))
    nodes["value"] = np.where(
        nodes["left"][:, None] < 0,
        _values(trees, n_values) * np.repeat(np.asarray(weights, np.float64), sizes)[:, None],
        0.0,
    )
    owner, category = _listed_categories(trees, start)
    order = _order(nodes["left"], nodes["right"], start)
    if order is not None:
        nodes, owner, category, start = _reordered(order, nodes, owner, category, start)
    ascending = np.lexsort((category, owner))
    counts = np.bincount(owner, minlength=start[-1])
    forest = Forest(
        tree_start=start,
        left=nodes["left"].astype(np.int32),
        right=nodes["right"].astype(np.int32),
        feature=nodes["feature"].astype(np.int32),
        threshold=nodes["threshold"],
        missing_left=nodes["missing_left"],
        zero_as_missing=np.zeros(start[-1], dtype=bool),
        is_categorical=nodes["is_categorical"],
        listed_left=np.zeros(start[-1], dtype=bool),
        category_start=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        category=category[ascending].astype(np.int32),
        value=nodes["value"],
        cover=nodes["cover"],
        # A tree whose leaves are vectors adds to all outputs.
        tree_output=np.asarray(outputs, np.int32) * np.int32(n_values == 1),
        intercept=intercept,
        n_inputs=n_inputs,
        strict=True,
        single=True,
    )
    check_forest(forest)
    return forest


def _n_values(trees: list[dict]) -> int:
    sizes = {int(tree["tree_param"]["size_leaf_vector"]) for tree in trees}
    if len(sizes) > 1:
        raise ValueError(f"the leaves of the XGBoost model have different sizes: {sorted(sizes)}")
    return max(sizes.pop(), 1)


def _join(trees: list[dict], name: str, dtype) -> np.ndarray:
    return np.concatenate([tree[name] for tree in trees], dtype=dtype, casting="unsafe")


def _nodes(trees: list[dict], first: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays with one number a node; ``first`` is the root of each node's tree."""
    left, right = _join(trees, "left_children", np.int64), _join(trees, "right_children", np.int64)
    leaf = left < 0
    is_categorical = _join(trees, "split_type", bool) & ~leaf
    threshold = _join(trees, "split_conditions", np.float64)
    has_cover = all("sum_hessian" in tree for tree in trees)
    return {
        "left": np.where(leaf, -1, left + first),
        "right": np.where(leaf, -1, right + first),
        "feature": np.where(leaf, -1, _join(trees, "split_indices", np.int64)),
        "threshold": np.where(leaf | is_categorical, np.nan, threshold),
        "missing_left": _join(trees, "default_left", bool) & ~leaf,
        "is_categorical": is_categorical,
        "cover": (
            _join(trees, "sum_hessian", np.float64) if has_cover else np.full(len(left), np.nan)
        ),
    }


def _values(trees: list[dict], n_values: int) -> np.ndarray:
    """Values of all nodes, shape (n_nodes, n_values); only those of leaves mean something."""
    if n_values == 1:
        return _join(trees, "split_conditions", np.float64)[:, None]
    if "leaf_weights" not in trees[0]:
        return _join(trees, "base_weights", np.float64).reshape(-1, n_values)
    # From XGBoost 3.2 on the right child of a leaf is the number of its vector in the tree.
    per_tree = []
    for tree in trees:
        vectors = np.asarray(tree["leaf_weights"], np.float64).reshape(-1, n_values)
        leaf = np.asarray(tree["left_children"]) < 0
        per_tree.append(vectors[np.where(leaf, tree["right_children"], 0)])
    return np.concatenate(per_tree)


def _listed_categories(trees: list[dict], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of a node and a category that it lists."""
    owners, categories = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for tree, root in zip(trees, start[:-1], strict=True):
        if not len(tree["categories_nodes"]):
            continue
        for node, first, size in zip(
            tree["categories_nodes"],
            tree["categories_segments"],
            tree["categories_sizes"],
            strict=True,
        ):
            owners.append(np.full(size, root + node))
            categories.append(np.asarray(tree["categories"][first : first + size]))
    return np.concatenate(owners), np.concatenate(categories, dtype=np.int64, casting="unsafe")


def _order(left: np.ndarray, right: np.ndarray, start: np.ndarray) -> np.ndarray | None:
    """The nodes that can be reached, each tree's in one run, parents before their children.

    None if that is all nodes as they are. Pruning leaves nodes that cannot be reached, and
    the format promises no order.
    """
    inner = np.flatnonzero(left >= 0)
    parents, children = np.concatenate([inner, inner]), np.concatenate([left[inner], right[inner]])
    tree = np.repeat(np.arange(len(start) - 1), np.diff(start))
    if np.any((children < 0) | (children >= start[tree[parents] + 1])):
        raise ValueError("a child in the XGBoost model's trees is not among the tree's nodes")
    reached = np.zeros(len(left), dtype=bool)
    reached[start[:-1]] = reached[children] = True
    if reached.all() and np.all(children > parents):
        return None
    level, levels, n_nodes = start[:-1], [start[:-1]], len(start) - 1
    while len(level) and n_nodes <= len(left):
        level = level[left[level] >= 0]
        level = np.concatenate([left[level], right[level]])
        levels.append(level)
        n_nodes += len(level)
    if n_nodes > len(left):
        raise ValueError("a node in the XGBoost model's trees has two parents")
    order = np.concatenate(levels)
    return order[np.argsort(tree[order], kind="stable")]


def _reordered(order: np.ndarray, nodes: dict, owner, category, start):
    """Nodes, categories and starts of the trees after a change of order."""
    new = np.full(start[-1] + 1, -1)
    new[order] = np.arange(len(order))
    nodes = {name: array[order] for name, array in nodes.items()}
    for child in ("left", "right"):
        # A leaf's -1 picks the last number of ``new``, which is -1.
        nodes[child] = new[nodes[child]]
    kept = new[owner] >= 0
    return nodes, new[owner[kept]], category[kept], np.append(new[start[:-1]], len(order))
