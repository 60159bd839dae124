"""Genuine XGBoost models from given trees, through XGBoost's own JSON format."""

import json

import numpy as np
import xgboost


def make_booster(trees, n_features, base_score="0E0"):
    """A regression booster.

    A tree is a dict of lists: ``left``, ``right``, ``feature``, ``number`` (the threshold of an
    inner node, the value of a leaf) and ``cover``.
    """
    learner = {
        "attributes": {},
        "feature_names": [],
        "feature_types": [],
        "gradient_booster": {
            "model": {
                "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
                "iteration_indptr": list(range(len(trees) + 1)),
                "tree_info": [0] * len(trees),
                "trees": [_tree(k, tree, n_features) for k, tree in enumerate(trees)],
            },
            "name": "gbtree",
        },
        "learner_model_param": {
            "base_score": base_score,
            "boost_from_average": "0",
            "num_class": "0",
            "num_feature": str(n_features),
            "num_target": "1",
        },
        "objective": {"name": "reg:squarederror", "reg_loss_param": {"scale_pos_weight": "1"}},
    }
    model = {"learner": learner, "version": [2, 1, 0]}
    return xgboost.Booster(model_file=bytearray(json.dumps(model).encode()))


def _tree(number, tree, n_features):
    left, right = np.array(tree["left"]), np.array(tree["right"])
    n_nodes, inner = len(left), np.flatnonzero(left >= 0)
    parents = np.full(n_nodes, 2147483647)
    parents[left[inner]] = parents[right[inner]] = inner
    return {
        "base_weights": np.where(left < 0, tree["number"], 0.0).tolist(),
        "categories": [],
        "categories_nodes": [],
        "categories_segments": [],
        "categories_sizes": [],
        "default_left": [0] * n_nodes,
        "id": number,
        "left_children": left.tolist(),
        "loss_changes": (left >= 0).astype(float).tolist(),
        "parents": parents.tolist(),
        "right_children": right.tolist(),
        "split_conditions": list(tree["number"]),
        "split_indices": np.maximum(tree["feature"], 0).tolist(),
        "split_type": [0] * n_nodes,
        "sum_hessian": list(tree["cover"]),
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(n_features),
            "num_nodes": str(n_nodes),
            "size_leaf_vector": "1",
        },
    }
