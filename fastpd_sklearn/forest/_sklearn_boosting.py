"""scikit-learn's gradient boosting, exact and by histograms."""

from __future__ import annotations

import numpy as np
from sklearn.base import is_classifier
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
)

from fastpd_sklearn import _compat
from fastpd_sklearn.forest._forest import ForestBuilder
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._sklearn_trees import Family, column_names, tree_builder, tree_parts

_INVERSE_LINKS = {
    "IdentityLink": "identity",
    "LogLink": "exp",
    "LogitLink": "logit",
    "MultinomialLogit": "softmax",
}


def _head(model) -> Head:
    inverse_link = _INVERSE_LINKS.get(_compat.link_name(model))
    if is_classifier(model):
        additive = ("raw", "decision_function")
        # Trained on one class, the library has a margin for a class that has no label.
        if len(model.classes_) < 2:
            return Head(additive)
        method, classes = "predict_proba", model.classes_
    else:
        additive = ("raw", "predict") if inverse_link == "identity" else ("raw",)
        method, classes = "predict", None
    if inverse_link in (None, "identity"):
        return Head(additive, classes=classes)
    return Head(additive, link=inverse_link, link_method=method, classes=classes)


def _predict_margin(model, X) -> np.ndarray:
    return model.decision_function(X) if is_classifier(model) else model.predict(X)


# -- GradientBoosting ----------------------------------------------------------------------


def _read_exact(model) -> Reading:
    _check_init(model)
    builder = tree_builder(model, model.estimators_.shape[1])

    def step(_, values):
        return model.learning_rate * values

    builder.add_trees(
        tree_parts(member.tree_, step, output=output)
        for members in model.estimators_
        for output, member in enumerate(members)
    )
    input_map = InputMap(
        n_columns=model.n_features_in_,
        names=column_names(model),
        allow_nan=False,
        allow_inf=False,
        labels_as_codes=False,
    )
    return Reading(input_map, builder.build(_compat.boosting_initial(model)), _head(model))


def _check_init(model) -> None:
    init = model.init_
    constant = isinstance(init, str) or type(init) in (DummyRegressor, DummyClassifier)
    if not constant or getattr(init, "strategy", None) == "stratified":
        raise ValueError(
            f"{type(model).__name__} starts from init={init!r}, which is not the same for every "
            "row, so its prediction is not a sum of trees; fit it with init=None, init='zero' "
            "or a dummy estimator with a constant prediction"
        )


# -- HistGradientBoosting ------------------------------------------------------------------


def _read_hist(model) -> Reading:
    baseline = _compat.hist_baseline(model)
    # Inside the model the categorical columns come first.
    categorical = _categorical_columns(model)
    columns = np.argsort(~categorical, kind="stable")
    builder = ForestBuilder(model.n_features_in_, len(baseline), strict=False, single=False)
    for iteration in _compat.hist_iterations(model):
        for output, (nodes, left_sets) in enumerate(iteration):
            _add_hist_tree(builder, nodes, left_sets, columns, output)
    labels = map(_as_labels, _compat.hist_categories(model))
    input_map = InputMap(
        n_columns=model.n_features_in_,
        names=column_names(model),
        categories=dict(zip(np.flatnonzero(categorical).tolist(), labels, strict=True)),
        unknown=np.nan,
        codes_as_given=False,
        labels_as_codes=False,
    )
    return Reading(input_map, builder.build(baseline), _head(model))


def _categorical_columns(model) -> np.ndarray:
    if model.is_categorical_ is None:
        return np.zeros(model.n_features_in_, dtype=bool)
    return model.is_categorical_


def _as_labels(labels: np.ndarray) -> np.ndarray:
    # Data frames give dates as objects, which are to be found among the labels.
    if labels.dtype.kind in "mM":
        return labels.astype(f"{labels.dtype.kind}8[us]").astype(object)
    return labels


def _add_hist_tree(
    builder: ForestBuilder,
    nodes: np.ndarray,
    left_sets: np.ndarray,
    columns: np.ndarray,
    output: int,
) -> None:
    leaf = nodes["is_leaf"].astype(bool)
    is_categorical = nodes["is_categorical"].astype(bool) & ~leaf
    listed = _bits(left_sets)
    builder.add(
        left=np.where(leaf, -1, nodes["left"].astype(np.int64)),
        right=np.where(leaf, -1, nodes["right"].astype(np.int64)),
        feature=columns[np.where(leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"],
        missing_left=nodes["missing_go_to_left"],
        is_categorical=is_categorical,
        categories={
            node: np.flatnonzero(listed[nodes["bitset_idx"][node]])
            for node in np.flatnonzero(is_categorical)
        },
        value=nodes["value"],
        cover=nodes["count"],
        output=output,
    )


def _bits(sets: np.ndarray) -> np.ndarray:
    """Bit sets of eight uint32 as rows of 256 zeros and ones."""
    octets = np.ascontiguousarray(sets, dtype="<u4").view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")


def _predict_hist(model, X) -> np.ndarray:
    # The logarithm of an exponential would lose the extremes.
    if not is_classifier(model) and _compat.link_name(model) != "IdentityLink":
        return _compat.hist_raw_predict(model, X)
    return _predict_margin(model, X)


_EXACT = Family(_read_exact, _predict_margin)
_HIST = Family(_read_hist, _predict_hist)

FAMILIES = {
    GradientBoostingRegressor: _EXACT,
    GradientBoostingClassifier: _EXACT,
    HistGradientBoostingRegressor: _HIST,
    HistGradientBoostingClassifier: _HIST,
}
