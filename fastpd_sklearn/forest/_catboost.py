"""CatBoost's models, read from the JSON that ``save_model`` writes."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._catboost_hash import category_hash
from fastpd_sklearn.forest._catboost_trees import add_branching_tree, add_oblivious_tree
from fastpd_sklearn.forest._forest import Forest, ForestBuilder
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._members import NoSumOfTreesError
from fastpd_sklearn.forest._registry import Reading

_KEYS = frozenset(
    {"ctr_data", "features_info", "model_info", "oblivious_trees", "scale_and_bias", "trees"}
)
_FEATURES = frozenset({"categorical_features", "ctrs", "float_features"})
_MISSING_LEFT = {"AsIs": True, "AsFalse": True, "AsTrue": False}  # NaN exceeds no border as it is

_PROBABILITIES = {
    "CrossEntropy": "logit",
    "Focal": "logit",
    "Logloss": "logit",
    "MultiClass": "softmax",
    "MultiClassOneVsAll": "multi_logit",
    "MultiCrossEntropy": "multi_logit",
    "MultiLogloss": "multi_logit",
}
_MULTI_LABEL = frozenset({"MultiCrossEntropy", "MultiLogloss"})


class CatBoostReader:
    """Reads CatBoost's estimators.

    Trees of all growing policies, with numeric features and with categorical ones that are
    compared with single categories (one-hot). Not those with target statistics, text or
    embeddings, which make one number of several columns and of the training data.

    Covers are the weights of the training rows in the leaves.
    """

    name = "CatBoost"
    supported = "catboost.CatBoost, CatBoostRegressor, CatBoostClassifier and CatBoostRanker"
    tolerance = 1e-10

    def accepts(self, model) -> bool:
        """Whether ``model`` is one of CatBoost's estimators.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """
        from catboost import CatBoost

        return isinstance(model, CatBoost)

    def read(self, model) -> Reading:
        """Read a fitted model.

        Parameters
        ----------
        model : catboost.CatBoost

        Returns
        -------
        Reading

        Raises
        ------
        NotFittedError
            If the model has no trees.
        NoSumOfTreesError
            If the trees test something else than the columns.
        ValueError
            If the model holds what this reader does not know.
        """
        if not model.is_fitted():
            raise NotFittedError(f"this {type(model).__name__} has no trees yet; fit it first")
        _refuse_other_features(model)
        dump = _dump(model)
        columns = _Columns(dump["features_info"], len(model.feature_names_))
        forest = _forest(dump, columns)
        return Reading(_input_map(model, columns), forest, _head(model, dump, forest.n_outputs))

    def predict_raw(self, model, X) -> np.ndarray:
        """The model's own raw values.

        Parameters
        ----------
        model : catboost.CatBoost
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        from catboost import CatBoost

        X = _as_accepted(X, model.get_cat_feature_indices())
        # By the base class, which is asked for raw values in one way whatever the estimator.
        raw = CatBoost.predict(model, X, prediction_type="RawFormulaVal")
        return np.asarray(raw, dtype=np.float64).reshape(X.shape[0], -1)


reader = CatBoostReader()


def _refuse_other_features(model) -> None:
    for kind, columns in (
        ("text", model.get_text_feature_indices()),
        ("embedding", model.get_embedding_feature_indices()),
    ):
        if columns:
            raise NoSumOfTreesError(
                f"the CatBoost model has {kind} features, the columns {list(columns)}, of which "
                "its trees test what CatBoost computes from them and from the training data; "
                "compute such numbers before the model and fit it on them, or explain this one by "
                "prediction with VanillaPDExplainer"
            )


def _dump(model) -> dict:
    from catboost import CatBoostError

    with TemporaryDirectory() as folder:
        path = Path(folder, "model.json")
        try:
            model.save_model(str(path), format="json")
        except CatBoostError as error:
            if "invalid float value" not in str(error):
                raise
            raise ValueError(
                "CatBoost cannot write this model as JSON, from which it is read, since it has "
                "an infinite number: a border, if training rows held infinite values; replace "
                "these by large numbers and fit the model again"
            ) from error
        dump = json.loads(path.read_text(encoding="utf-8"))
    unknown = (dump.keys() - _KEYS) | (dump["features_info"].keys() - _FEATURES)
    if unknown:
        raise ValueError(
            f"the CatBoost model has {sorted(unknown)[0]!r}, which is not known here and may "
            "change what the model predicts"
        )
    return dump


class _Columns:
    """Which columns the features of a model are, and how they are read.

    Attributes
    ----------
    n_columns : int
    labels : dict of int to ndarray of int
        Hashes of the labels that some tree asks for, by column of labels.
    """

    def __init__(self, info: dict, n_columns: int) -> None:
        self.n_columns = n_columns
        self._numeric, self._missing_left = {}, {}
        for feature in info.get("float_features", []):
            index = feature["feature_index"]
            self._numeric[index] = feature["flat_feature_index"]
            self._missing_left[index] = _MISSING_LEFT[feature["nan_value_treatment"]]
        self._categorical, self.labels = {}, {}
        for feature in info.get("categorical_features", []):
            column = feature["flat_feature_index"]
            self._categorical[feature["feature_index"]] = column
            self.labels[column] = np.array(feature.get("values", []), dtype=np.int64)
        self._code = {
            column: {value: code for code, value in enumerate(values.tolist())}
            for column, values in self.labels.items()
        }

    def test(self, split: dict) -> tuple[int, float, int, bool]:
        """A split as column, border (NaN at a category), category (-1 at a border), NaN left."""
        kind = split["split_type"]
        if kind == "FloatFeature":
            index = split["float_feature_index"]
            return self._numeric[index], split["border"], -1, self._missing_left[index]
        if kind == "OneHotFeature":
            column = self._categorical[split["cat_feature_index"]]
            return column, np.nan, self._code[column][split["value"]], True
        if kind == "OnlineCtr":
            raise NoSumOfTreesError(
                "the CatBoost model splits on target statistics (CTRs) of its categorical "
                "features: numbers that CatBoost computes from the targets of training rows with "
                "the same category, or the same combination of categories of several columns, so "
                "that the model is no sum of trees over its columns; fit it with "
                "one_hot_max_size=255, or as large as a column has categories, or encode the "
                "categories in a pipeline before it, or explain this one by prediction with "
                "VanillaPDExplainer"
            )
        raise ValueError(f"the CatBoost model has splits of the unknown kind {kind!r}")


# -- Trees ---------------------------------------------------------------------------------


def _forest(dump: dict, columns: _Columns) -> Forest:
    scale, bias = dump["scale_and_bias"]
    builder = ForestBuilder(columns.n_columns, len(bias), strict=False, single=True)
    add = add_oblivious_tree if "oblivious_trees" in dump else add_branching_tree
    for tree in dump.get("oblivious_trees", dump.get("trees")) or []:
        add(builder, tree, columns.test, scale)
    return builder.build(bias)


# -- Columns -------------------------------------------------------------------------------


def _input_map(model, columns: _Columns) -> InputMap:
    names = tuple(model.feature_names_)
    return InputMap(
        n_columns=columns.n_columns,
        names=None if names == tuple(map(str, range(len(names)))) else names,
        categories=columns.labels,
        label_key=category_hash,
        missing_labels=False,
        codes_as_given=False,
        labels_as_codes=None,
        array_dtype=np.float32,
    )


def _as_accepted(X, categorical: list[int]):
    """Rows in types that CatBoost takes, which are the same rows."""
    if sparse.issparse(X):
        # It takes no floats beside categories, and no sparse arrays of SciPy's newer kind.
        X = X.toarray() if categorical else sparse.csr_matrix(X)
    if _frames.is_frame(X):
        held = {j: _frames.column(X, j) for j in range(X.shape[1])}
        changed = {j: _accepted_series(s, j in categorical) for j, s in held.items()}
        changed = {j: series for j, series in changed.items() if series is not held[j]}
        return _frames.with_columns(X, changed) if changed else X
    if categorical and X.dtype.kind in "fO":
        X = X.astype(object)
        for j in categorical:
            X[:, j] = [_without_point(value) for value in X[:, j].tolist()]
    return X


def _accepted_series(series, is_categorical: bool):
    if _frames.is_pooled(series):
        return _frames.as_text(series)
    if not (is_categorical and _frames.is_floating(series)):
        return series
    values = _frames.to_float(series).astype(np.float64)
    return values.astype(np.int64) if np.all(values == np.trunc(values)) else series


def _without_point(value):
    """A whole float as an integer: CatBoost takes no floats for categories."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


# -- Response ------------------------------------------------------------------------------


def _head(model, dump: dict, n_outputs: int) -> Head:
    from catboost import CatBoostClassifier, CatBoostRegressor

    loss = dump["model_info"].get("params", {}).get("loss_function", {}).get("type", "")
    classes = np.asarray(model.classes_)
    if loss in _MULTI_LABEL or len(classes) != max(n_outputs, 2):
        classes = None
    if isinstance(model, CatBoostClassifier):
        link = _PROBABILITIES.get(loss)
        if link is None:
            return Head(("raw",), classes=classes)
        return Head(("raw",), link=link, link_method="predict_proba", classes=classes)
    if isinstance(model, CatBoostRegressor) and loss in ("Poisson", "Tweedie"):
        return Head(("raw",), link="exp", link_method="predict")
    if isinstance(model, CatBoostRegressor) and loss == "RMSEWithUncertainty":
        return Head(("raw",))
    return Head(("raw", "predict"), classes=classes)
