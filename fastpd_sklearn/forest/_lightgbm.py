"""LightGBM, by the text that a booster saves itself as."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest, check_forest
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._linear_leaves import LinearLeaves, with_linear_leaves
from fastpd_sklearn.forest._registry import Reading

_HEADER_FIELDS = frozenset(
    {
        *("tree", "version", "num_class", "num_tree_per_iteration", "label_index"),
        *("max_feature_idx", "objective", "average_output", "feature_names"),
        *("monotone_constraints", "feature_infos", "tree_sizes"),
    }
)
_TREE_FIELDS = frozenset(
    {
        *("num_leaves", "num_cat", "split_feature", "split_gain", "threshold", "decision_type"),
        *("left_child", "right_child", "leaf_value", "leaf_weight", "leaf_count"),
        *("internal_value", "internal_weight", "internal_count"),
        *("cat_boundaries", "cat_threshold", "shrinkage"),
        *("is_linear", "leaf_const", "num_features", "leaf_features", "leaf_coeff"),
    }
)

# Bits of a node's decision type.
_CATEGORICAL, _DEFAULT_LEFT, _MISSING_SHIFT = 1, 2, 2
_MISSING_NONE, _MISSING_ZERO, _MISSING_NAN = 0, 1, 2

# A custom objective leaves no name.
_CUSTOM = ""
_IDENTITY = frozenset(
    {
        *(_CUSTOM, "regression", "regression_l1", "huber", "fair", "quantile", "mape"),
        *("lambdarank", "rank_xendcg"),
    }
)
_LINKS = {
    "poisson": "exp",
    "gamma": "exp",
    "tweedie": "exp",
    "binary": "logit",
    "cross_entropy": "logit",
    "multiclass": "softmax",
    "multiclassova": "multi_logit",
}
_CLASSIFYING = frozenset(["binary", "multiclass", "multiclassova"])


class LightGBMReader:
    """Reads ``lightgbm.Booster`` and the scikit-learn wrappers around it.

    The trees are those that ``predict`` uses by default, up to ``best_iteration`` where
    there is one. The linear functions of leaves (``linear_tree=True``) become trees of their
    own behind these. Random forests (``boosting="rf"``) are the *mean* of their trees, as in
    ``predict``; LightGBM's own ``raw_score`` is the sum there.

    The response scale has a link where it is one of :class:`Head`'s: not with a ``sigmoid``
    other than 1, ``reg_sqrt=True`` or ``objective="cross_entropy_lambda"``, whose margins are
    explained alone.
    """

    name = "lightgbm"
    supported = "lightgbm.Booster, LGBMRegressor, LGBMClassifier, LGBMRanker"
    tolerance = 1e-10

    def accepts(self, model) -> bool:
        """Whether ``model`` is a booster or a wrapper.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """
        from lightgbm import Booster, LGBMModel

        return isinstance(model, (Booster, LGBMModel))

    def read(self, model) -> Reading:
        """Read a fitted model.

        Parameters
        ----------
        model : lightgbm.Booster or lightgbm.LGBMModel

        Returns
        -------
        Reading

        Raises
        ------
        NotFittedError
            If the model is not fitted or has no trees.
        ValueError
            If the model stops predictions early (``pred_early_stop=True``), is a Dask model, or
            has fields of unknown meaning.
        """
        text = _Text(_booster(model).model_to_string())
        if not text.trees:
            raise NotFittedError("the lightgbm.Booster has no trees yet; train it first")
        return Reading(_input_map(text), _forest(text), _head(model, text))

    def predict_raw(self, model, X) -> np.ndarray:
        """LightGBM's own margins; of a random forest the mean over its trees.

        Parameters
        ----------
        model : lightgbm.Booster or lightgbm.LGBMModel
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        booster = _booster(model)
        with warnings.catch_warnings():
            # An array is as good as a frame here: the explainers check names themselves.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            raw = model.predict(_as_matrix(X), raw_score=True, verbosity=-1)
        raw = np.asarray(raw, dtype=np.float64).reshape(-1, booster.num_model_per_iteration())
        if _Text(booster.model_to_string(num_iteration=1)).is_averaged:
            raw /= _n_iterations(booster)
        return raw


reader = LightGBMReader()


def _booster(model):
    """The booster inside a model."""
    from lightgbm import Booster

    if isinstance(model, Booster):
        return model
    if hasattr(model, "to_local"):
        raise ValueError(
            f"{type(model).__name__} predicts Dask collections only; pass model.to_local()"
        )
    check_is_fitted(model)
    if model.get_params().get("pred_early_stop"):
        raise ValueError(
            "pred_early_stop=True makes predict leave out trees row by row, so that the "
            "prediction is no sum of trees; set model.set_params(pred_early_stop=False)"
        )
    return model.booster_


def _n_iterations(booster) -> int:
    """How many iterations ``predict`` uses by default."""
    kept = booster.num_trees() // booster.num_model_per_iteration()
    return min(booster.best_iteration, kept) if booster.best_iteration > 0 else kept


def _as_matrix(X):
    # LightGBM prints a warning about every sparse format but these two.
    if not sparse.issparse(X) or isinstance(X, (sparse.csr_matrix, sparse.csc_matrix)):
        return X
    return sparse.csc_matrix(X) if X.format == "csc" else sparse.csr_matrix(X)


class _Text:
    """A saved model taken apart, its numbers still text.

    Attributes
    ----------
    header : dict of str
    trees : list of dict of str
    tail : str
        What follows the trees: importances, parameters, categories.
    """

    def __init__(self, text: str) -> None:
        body, _, self.tail = text.partition("\nend of trees\n")
        header, *trees = body.split("\nTree=")
        self.header = _fields(header.split("\n"))
        self.trees = [_fields(tree.split("\n")[1:]) for tree in trees]
        self._check()

    def _check(self) -> None:
        unknown = self.header.keys() - _HEADER_FIELDS | set().union(*self.trees) - _TREE_FIELDS
        if unknown:
            raise ValueError(
                f"the LightGBM model has fields of unknown meaning, {sorted(unknown)}; it comes "
                "from a version of LightGBM that fastpd_sklearn does not know"
            )

    @property
    def is_averaged(self) -> bool:
        """Whether predictions are the mean over the iterations."""
        return "average_output" in self.header

    @property
    def n_columns(self) -> int:
        """Number of columns of the training data."""
        return int(self.header["max_feature_idx"]) + 1

    @property
    def n_outputs(self) -> int:
        """Number of trees in an iteration."""
        return int(self.header["num_tree_per_iteration"])

    @property
    def objective(self) -> tuple[str, dict[str, str]]:
        """Name of the objective and its options."""
        name, *options = self.header.get("objective", "").split() or [_CUSTOM]
        return name, {key: value for key, _, value in (o.partition(":") for o in options)}

    def numbers(self, field: str, dtype, n_expected: int) -> np.ndarray:
        """One field of all trees, one after the other."""
        numbers = _numbers([tree.get(field, "") for tree in self.trees], dtype)
        if len(numbers) != n_expected:
            raise ValueError(
                f"the LightGBM model is damaged: {len(numbers)} numbers in {field}, "
                f"{n_expected} expected"
            )
        return numbers


def _fields(lines: list[str]) -> dict[str, str]:
    return {key: value for key, _, value in (line.partition("=") for line in lines if line)}


def _numbers(texts: list[str], dtype) -> np.ndarray:
    # A text of nothing but blanks would be read as one number.
    return np.fromstring(" ".join(filter(str.strip, texts)), dtype=dtype, sep=" ")


# -- Trees ---------------------------------------------------------------------------------


def _forest(text: _Text) -> Forest:
    n_trees = len(text.trees)
    nodes = _Nodes(text.numbers("num_leaves", np.int64, n_trees))

    def at_inner(field: str, dtype=np.int64) -> np.ndarray:
        return text.numbers(field, dtype, nodes.n_inner)

    threshold = at_inner("threshold", np.float64)
    decision = _Decision(at_inner("decision_type"), threshold)
    category_start, category = _categories_of_nodes(text, nodes, decision.categorical, threshold)
    value = text.numbers("leaf_value", np.float64, nodes.n_leaves)
    if text.is_averaged:
        value /= n_trees // text.n_outputs
    forest = Forest(
        tree_start=nodes.tree_start,
        left=nodes.children(at_inner("left_child")),
        right=nodes.children(at_inner("right_child")),
        feature=nodes.spread(at_inner("split_feature"), -1).astype(np.int32),
        threshold=nodes.spread(decision.threshold, np.nan),
        missing_left=nodes.spread(decision.missing_left, False),
        zero_as_missing=nodes.spread(decision.zero_as_missing, False),
        is_categorical=nodes.spread(decision.categorical, False),
        listed_left=nodes.spread(decision.categorical, False),
        category_start=category_start,
        category=category,
        value=nodes.spread(0.0, value)[:, None],
        cover=nodes.spread(at_inner("internal_count", np.float64), _leaf_counts(text)),
        tree_output=(np.arange(n_trees) % text.n_outputs).astype(np.int32),
        intercept=np.zeros(text.n_outputs),
        n_inputs=text.n_columns,
        strict=False,
        single=False,
    )
    leaves = _linear_leaves(text, nodes)
    if leaves is not None:
        forest = with_linear_leaves(forest, leaves)
    check_forest(forest)
    return forest


def _linear_leaves(text: _Text, nodes: _Nodes) -> LinearLeaves | None:
    """The leaves of trees trained with ``linear_tree``; None if there are no such trees."""
    is_linear = np.array([tree.get("is_linear", "0") != "0" for tree in text.trees])
    if not is_linear.any():
        return None
    leaf = nodes.leaf[np.repeat(is_linear, nodes.leaf_counts)]
    n_slopes = text.numbers("num_features", np.int64, len(leaf))
    scale = len(text.trees) // text.n_outputs if text.is_averaged else 1
    return LinearLeaves(
        node=leaf,
        constant=text.numbers("leaf_const", np.float64, len(leaf)) / scale,
        slope_node=np.repeat(leaf, n_slopes),
        slope_input=text.numbers("leaf_features", np.int64, n_slopes.sum()),
        slope=text.numbers("leaf_coeff", np.float64, n_slopes.sum()) / scale,
    )


class _Decision:
    """How inner nodes send a row left or right, in the terms of :class:`Forest`."""

    def __init__(self, kind: np.ndarray, threshold: np.ndarray) -> None:
        missing = kind >> _MISSING_SHIFT
        if np.any((missing < _MISSING_NONE) | (missing > _MISSING_NAN)):
            raise ValueError(
                "the LightGBM model has a decision_type of unknown meaning, one of "
                f"{np.unique(kind).tolist()}"
            )
        self.categorical = (kind & _CATEGORICAL) > 0
        # Where training saw nothing missing, NaN is read as zero and compared. Categorical
        # nodes send it to the right in any case.
        by_default = (kind & _DEFAULT_LEFT) > 0
        missing_left = np.where(missing == _MISSING_NONE, threshold >= 0, by_default)
        self.missing_left = missing_left & ~self.categorical
        self.zero_as_missing = (missing == _MISSING_ZERO) & ~self.categorical
        self.threshold = np.where(self.categorical, np.nan, _as_compared(threshold))


class _Nodes:
    """Where the nodes of LightGBM's trees are in a forest: inner nodes, then leaves.

    LightGBM numbers a tree's inner nodes in the order in which they were split, parents
    therefore before their children, and points to leaf ``l`` by ``~l``.
    """

    def __init__(self, n_leaves: np.ndarray) -> None:
        inner_counts = n_leaves - 1
        self.leaf_counts = n_leaves
        self.n_leaves, self.n_inner = n_leaves.sum(), inner_counts.sum()
        self.tree_start = np.concatenate([[0], np.cumsum(n_leaves + inner_counts)])
        self._root = np.repeat(self.tree_start[:-1], inner_counts)
        self._first_leaf = np.repeat(self.tree_start[:-1] + inner_counts, inner_counts)
        first = np.repeat(np.cumsum(inner_counts) - inner_counts, inner_counts)
        self.inner = self._root + np.arange(self.n_inner) - first
        self.leaf = np.setdiff1d(np.arange(self.tree_start[-1]), self.inner, assume_unique=True)

    def spread(self, inner, leaf) -> np.ndarray:
        """An array over all nodes from one over the inner nodes and one over the leaves."""
        array = np.empty(self.tree_start[-1], dtype=np.result_type(inner, leaf))
        array[self.inner] = inner
        array[self.leaf] = leaf
        return array

    def children(self, index: np.ndarray) -> np.ndarray:
        """Children over all nodes by LightGBM's numbers, -1 at leaves."""
        child = np.where(index < 0, self._first_leaf + ~index, self._root + index)
        return self.spread(child, -1).astype(np.int32)


def _as_compared(threshold: np.ndarray) -> np.ndarray:
    """Thresholds for values as they are given.

    ``predict`` reads all values within ``ZERO_THRESHOLD`` as zero, and thresholds beside zero
    are ``±ZERO_THRESHOLD``: the bounds themselves must fall on zero's side.
    """
    near = np.abs(threshold) <= ZERO_THRESHOLD
    below = np.nextafter(-ZERO_THRESHOLD, -np.inf)
    return np.where(near, np.where(threshold >= 0, ZERO_THRESHOLD, below), threshold)


def _leaf_counts(text: _Text) -> np.ndarray:
    # A loaded model has no count for a tree without a split.
    return _numbers([tree["leaf_count"] or "0" for tree in text.trees], np.float64)


def _categories_of_nodes(
    text: _Text, nodes: _Nodes, categorical: np.ndarray, threshold: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """``category_start`` and ``category`` of :class:`Forest`.

    The threshold of a categorical node is the number of its bit set within the tree.
    """
    n_sets = text.numbers("num_cat", np.int64, len(text.trees))
    n_bounds = n_sets[n_sets > 0] + 1
    bounds = text.numbers("cat_boundaries", np.int64, n_bounds.sum())
    # A difference from the last bound of a tree to the first of the next is no set's size.
    n_words = np.delete(np.diff(bounds), np.cumsum(n_bounds)[:-1] - 1)
    words = text.numbers("cat_threshold", np.int64, n_words.sum()).astype("<u4")
    bit = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
    owner = np.repeat(np.arange(len(n_words)), n_words)[bit // 32]
    code = bit - 32 * (np.cumsum(n_words) - n_words)[owner]
    first_code = np.searchsorted(owner, np.arange(len(n_words) + 1))

    node = nodes.inner[categorical]
    tree = np.searchsorted(nodes.tree_start, node, side="right") - 1
    chosen = (np.cumsum(n_sets) - n_sets)[tree] + threshold[categorical].astype(np.int64)
    count = first_code[chosen + 1] - first_code[chosen]
    counts = np.zeros(nodes.tree_start[-1], dtype=np.int64)
    counts[node] = count
    start = np.concatenate([[0], np.cumsum(counts)])
    place = np.arange(start[-1]) + np.repeat(first_code[chosen] - start[node], count)
    return start, code[place].astype(np.int32)


# -- Columns -------------------------------------------------------------------------------


def _input_map(text: _Text) -> InputMap:
    lists = _label_lists(text)
    return InputMap(
        n_columns=text.n_columns,
        names=_names(text),
        blanks_replaced=True,
        categories=_categories(text, lists or ()),
        categories_in_order=lists,
        unknown=np.nan,
        frames_hold_codes=False,
        array_dtype=np.float32,
    )


def _names(text: _Text) -> tuple[str, ...] | None:
    """Column names; None where they only count the columns."""
    names = tuple(text.header["feature_names"].split(" "))
    for pattern in ("Column_{}", "{}"):
        if names == tuple(pattern.format(j) for j in range(len(names))):
            return None
    return names


def _label_lists(text: _Text) -> tuple[np.ndarray, ...] | None:
    """Labels of the categorical columns of the training frame; None without a frame."""
    found = re.search(r"^pandas_categorical:(.*)$", text.tail, re.MULTILINE)
    lists = json.loads(found[1]) if found else None
    return None if lists is None else tuple(np.array(labels, dtype=object) for labels in lists)


def _categories(text: _Text, lists: tuple[np.ndarray, ...]) -> dict[int, np.ndarray]:
    """Labels by column, where the model lets one tell which column a list belongs to.

    It does not say so itself; but it says which columns are split on as categories. Ordered
    categories are not among those.
    """
    found = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text.tail, re.MULTILINE)
    columns = sorted(int(j) for j in found[1].split(",")) if found else []
    if len(columns) != len(lists):
        return {}
    seen = text.header["feature_infos"].split(" ")
    if any(_largest_code(seen[j]) >= len(lists[i]) for i, j in enumerate(columns)):
        return {}
    return dict(zip(columns, lists, strict=True))


def _largest_code(info: str) -> float:
    """The largest code that training saw in a column, infinity if it is numeric."""
    if info == "none":
        return -1.0
    return np.inf if info.startswith("[") else max(float(code) for code in info.split(":"))


# -- Response ------------------------------------------------------------------------------


def _head(model, text: _Text) -> Head:
    objective, options = text.objective
    labels = getattr(model, "classes_", None)
    if labels is not None:
        method = "predict_proba"
        # Trained on one class, LightGBM has a margin for a class that has no label.
        classes = labels if len(labels) > 1 else None
    elif objective in _CLASSIFYING and not hasattr(model, "booster_"):
        method = "predict_proba"
        classes = np.arange(max(text.n_outputs, 2))
    else:
        method, classes = "predict", None
    additive = ("raw",)
    if objective in _IDENTITY and "sqrt" not in options:
        additive += ("predict" if objective == _CUSTOM else method,)
    # The decision function of a random forest is a sum, its margin here a mean.
    if hasattr(model, "decision_function") and not text.is_averaged:
        additive += ("decision_function",)
    if objective not in _LINKS or float(options.get("sigmoid", 1)) != 1:
        return Head(additive, classes=classes)
    return Head(additive, link=_LINKS[objective], link_method=method, classes=classes)
