"""treelite's models, by the fields of their trees.

What they predict is what treelite's own reference, ``treelite.gtil``, makes of them; the library
that a model came from may differ from that where treelite does not keep its ways with inputs.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse

from fastpd_sklearn.forest import _frames, _rows
from fastpd_sklearn.forest._forest import Forest, ForestBuilder
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._treelite_trees import TreeNodes, is_strict

_CLASSIFYING = {"kBinaryClf": 0, "kMultiClf": 2}
_ISOLATION_FOREST = 4
_DOUBLE = 3
_TOLERANCE = {np.float32: 1e-5, np.float64: 1e-10}


class TreeliteReader:
    """Reads ``treelite.Model``.

    All operators, categorical tests of both directions, trees of one number or of vectors for
    targets and classes, averages and base scores.

    Covers are sums of hessians where the model has them, else numbers of rows; without either
    they are NaN.
    """

    name = "treelite"
    supported = "treelite.Model"
    tolerance = 1e-5

    def accepts(self, model) -> bool:
        """Whether ``model`` is a ``treelite.Model``.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """
        from treelite import Model

        return isinstance(model, Model)

    def read(self, model) -> Reading:
        """Read a model.

        Parameters
        ----------
        model : treelite.Model

        Returns
        -------
        Reading

        Raises
        ------
        ValueError
            If the model holds something that this reader does not know.
        """
        header = _Header(model)
        forest = _forest(model, header)
        categorical = np.unique(forest.feature[forest.is_categorical]).tolist()
        input_map = InputMap(
            n_columns=forest.n_inputs,
            labels_as_codes=None,
            absent=np.nan,
            array_dtype=header.dtype,
            single_codes=frozenset(categorical if header.dtype == np.float32 else ()),
            double_codes=frozenset(categorical if header.dtype == np.float64 else ()),
        )
        rounding = _TOLERANCE[header.dtype] * forest.scale()
        return Reading(input_map, forest, _head(header, rounding))

    def predict_raw(self, model, X) -> np.ndarray:
        """What ``treelite.gtil.predict`` gives with ``pred_margin=True``.

        Parameters
        ----------
        model : treelite.Model
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        from treelite import gtil

        with np.errstate(over="ignore"):
            raw = gtil.predict(model, _as_accepted(X), pred_margin=True)
        raw = np.asarray(raw, dtype=np.float64).reshape(X.shape[0], -1)
        return raw[:, _Header(model).outputs]


reader = TreeliteReader()


def _as_accepted(X):
    """Rows in a type that treelite takes."""
    if sparse.issparse(X):
        X = sparse.csr_matrix(X, copy=True)
        X.sum_duplicates()
        return X
    return _rows.to_array(X) if _frames.is_frame(X) else np.asarray(X)


class _Header:
    """What a model says of itself before its trees.

    Attributes
    ----------
    dtype : type
        Of inputs, thresholds and leaf values.
    n_targets, most_classes : int
    outputs : ndarray of int
        Places of the outputs in a table of targets and classes, in which a target with fewer
        classes than another has places that stay empty.
    target, of_class : ndarray of shape (n_trees,), int
        What each tree adds to, -1 for all.
    leaf_shape : tuple of int
        Targets and classes of a leaf's vector.
    """

    def __init__(self, model) -> None:
        self._field = model.get_header_accessor().get_field
        self.dtype = np.float64 if self._one("threshold_type") == _DOUBLE else np.float32
        self.n_columns = self._one("num_feature")
        self.n_trees = self._one("num_tree")
        self.task = self._one("task_type")
        self.is_averaged = bool(self._one("average_tree_output"))
        self.n_targets = self._one("num_target")
        self.n_classes = self._field("num_class").astype(np.int64)
        self.most_classes = int(self.n_classes.max())
        self.leaf_shape = tuple(self._field("leaf_vector_shape").tolist())
        self.target = self._field("target_id").astype(np.int64)
        self.of_class = self._field("class_id").astype(np.int64)
        self.base_scores = self._field("base_scores").astype(np.float64)
        self.postprocessor = self._field("postprocessor")
        self.steepness = float(self._field("sigmoid_alpha")[0])
        used = np.arange(self.most_classes) < self.n_classes[:, None]
        self.outputs = np.flatnonzero(used)

    def _one(self, name: str) -> int:
        return int(self._field(name)[0])

    def places(self, tree: int) -> np.ndarray:
        """Where the numbers of a leaf go in the table of targets and classes, in their order."""
        targets, classes = self.target[tree], self.of_class[tree]
        targets = np.arange(self.n_targets) if targets < 0 else np.array([targets])
        classes = np.arange(self.most_classes) if classes < 0 else np.array([classes])
        return (targets[:, None] * self.most_classes + classes).ravel()

    def shares(self) -> np.ndarray:
        """Factor of the trees for every place of the table."""
        if not self.is_averaged:
            return np.ones(self.n_targets * self.most_classes)
        count = np.zeros(self.n_targets * self.most_classes)
        for tree in range(self.n_trees):
            count[self.places(tree)] += 1
        if np.any(count[self.outputs] == 0):
            raise ValueError(
                "the treelite model predicts the mean over the trees of each output, and no tree "
                f"is of output {np.flatnonzero(count[self.outputs] == 0)[0]}"
            )
        return 1 / np.maximum(count, 1)


# -- Trees ---------------------------------------------------------------------------------


def _forest(model, header: _Header) -> Forest:
    trees = [TreeNodes(model.get_tree_accessor(t), header.dtype) for t in range(header.n_trees)]
    strict = is_strict(trees)
    builder = ForestBuilder(
        header.n_columns, len(header.outputs), strict=strict, single=header.dtype == np.float32
    )
    shares = header.shares()
    for t, tree in enumerate(trees):
        output, value = _placed(tree.values(), header.places(t), header, shares)
        builder.add(output=output, value=value, **tree.tests(strict))
    return builder.build(header.base_scores[header.outputs])


def _placed(values: np.ndarray, places: np.ndarray, header: _Header, shares: np.ndarray):
    """The first output of a tree, and its values from there on."""
    if values.shape[1] != len(places):
        raise ValueError(
            f"a leaf of the treelite model has {values.shape[1]} numbers for {len(places)} outputs"
        )
    if header.leaf_shape == (1, 1):
        output = int(np.searchsorted(header.outputs, places[0]))
        return output, values * shares[places]
    table = np.zeros((len(values), len(shares)))
    table[:, places] = values * shares[places]
    return 0, table[:, header.outputs]


# -- Response ------------------------------------------------------------------------------


def _head(header: _Header, rounding: np.ndarray) -> Head:
    n_outputs = len(header.outputs)
    classifies = header.task in _CLASSIFYING.values()
    method = "predict_proba" if classifies else "predict"
    classes = None
    if classifies and header.n_targets == 1:
        classes = np.arange(max(n_outputs, 2))
    names = None
    if header.n_targets > 1 and header.most_classes > 1:
        pairs = np.divmod(header.outputs, header.most_classes)
        names = tuple(f"{target}_{one}" for target, one in zip(*pairs, strict=True))
    note = ""
    if header.task == _ISOLATION_FOREST:
        note = "the mean depth of a row in the trees, which is larger for less anomalous rows"
    fields = {"classes": classes, "output_names": names, "note": note, "rounding": rounding}
    if header.postprocessor in ("identity", "identity_multiclass"):
        return Head(("raw", method), **fields)
    link = _link(header, n_outputs)
    if link is None:
        return Head(("raw",), **fields)
    return Head(("raw",), link=link, link_method=method, **fields)


def _link(header: _Header, n_outputs: int) -> str | None:
    """The postprocessor as a link; None where it is none that a head has."""
    if header.postprocessor == "exponential":
        return "exp"
    if header.postprocessor == "softmax" and header.n_targets == 1:
        return "softmax"
    if header.postprocessor in ("sigmoid", "multiclass_ova") and header.steepness == 1:
        return "logit" if n_outputs == 1 else "multi_logit"
    return None
