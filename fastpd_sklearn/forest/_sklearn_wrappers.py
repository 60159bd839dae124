"""scikit-learn's estimators around one model: searches, thresholds, targets, calibration."""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

from fastpd_sklearn import _compat
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._joining import rescaled
from fastpd_sklearn.forest._linear_layer import affine_map, has_affine_inverse
from fastpd_sklearn.forest._members import Member, as_own, open_member
from fastpd_sklearn.forest._mixing import (
    Calibrated,
    CalibratedMember,
    Mixture,
    Transformed,
    mixed,
    predict_each,
    raw_answer,
)
from fastpd_sklearn.forest._registry import Reading, find_reader
from fastpd_sklearn.forest._sklearn_trees import Family

# -- the model within, as it is ------------------------------------------------------------


def _transparent(attribute: str) -> Family:
    """The family of estimators whose responses are those of the model in an attribute."""

    def read(model) -> Reading:
        member = _open(model, attribute)
        return as_own(member, member.reading.head)

    def predict_raw(model, X) -> np.ndarray:
        inner = getattr(model, attribute)
        return find_reader(inner).predict_raw(inner, X)

    return Family(read, predict_raw)


def _open(model, attribute: str) -> Member:
    inner = getattr(model, attribute, None)
    if inner is None:
        raise NotFittedError(
            f"this {type(model).__name__} has no {attribute}; fit it with refit=True, or fit the "
            "model that you choose and explain that"
        )
    return open_member(model, inner, attribute)


# -- transformed targets -------------------------------------------------------------------

_SCALE = (
    "'raw' is what the trees of the regressor within add up to, on the scale of the transformed "
    "target"
)


def _read_target(model) -> Reading:
    member = _open(model, "regressor_")
    found = _affine_target(model, member)
    if found is not None:
        return rescaled(member, *found, Head(("raw", "predict")))
    return as_own(member, _transformed_head(model, member))


def _affine_target(model, member: Member):
    """How the prediction follows from the regressor's raw one, if by an affine function."""
    forest = member.reading.forest
    if "predict" not in member.reading.head.additive or not has_affine_inverse(model.transformer_):
        return None
    inverse = model.transformer_.inverse_transform
    return affine_map(inverse, forest.n_outputs, float(forest.scale().max()))


def _transformed_head(model, member: Member) -> Head:
    inner = member.reading.head
    if "predict" not in (*inner.additive, inner.link_method):
        return Head(("raw",), note=_SCALE)
    link = Mixture((raw_answer(model, member, "predict"),), Transformed(model.transformer_))
    if getattr(model.transformer_, "inverse_func", None) is np.exp and "predict" in inner.additive:
        link = "exp"
    return Head(("raw",), link=link, link_method="predict", note=_SCALE)


def _predict_target(model, X) -> np.ndarray:
    if _affine_target(model, _open(model, "regressor_")) is not None:
        return model.predict(X)
    return find_reader(model.regressor_).predict_raw(model.regressor_, X)


# -- calibration ---------------------------------------------------------------------------


def _read_calibrated(model) -> Reading:
    calibrated = model.calibrated_classifiers_
    members = [
        open_member(model, one.estimator, f"calibrated_classifiers_[{k}].estimator")
        for k, one in enumerate(calibrated)
    ]
    methods = [_calibrated_method(one.estimator) for one in calibrated]
    combine = Calibrated(tuple(map(CalibratedMember.of, calibrated, methods)))
    classes = {"classes": model.classes_, "n_classes": len(model.classes_)}
    return mixed(model, members, methods, combine, "predict_proba", **classes)


def _calibrated_method(classifier) -> str:
    """What is calibrated of a classifier: its decision function where it has one."""
    has_margin = hasattr(classifier, "decision_function")
    return "decision_function" if has_margin else "predict_proba"


def _predict_calibrated(model, X) -> np.ndarray:
    return predict_each([one.estimator for one in model.calibrated_classifiers_], X)


FAMILIES = {
    _compat.BaseSearchCV: _transparent("best_estimator_"),
    FrozenEstimator: _transparent("estimator"),
    FixedThresholdClassifier: _transparent("estimator_"),
    TunedThresholdClassifierCV: _transparent("estimator_"),
    TransformedTargetRegressor: Family(_read_target, _predict_target),
    CalibratedClassifierCV: Family(_read_calibrated, _predict_calibrated),
}
