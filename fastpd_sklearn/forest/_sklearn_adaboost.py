"""scikit-learn's AdaBoost: a weighted vote of trees is a sum of trees, a median is not."""

from __future__ import annotations

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, AdaBoostRegressor
from sklearn.tree import DecisionTreeClassifier

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._members import NoSumOfTreesError
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._sklearn_trees import Family, column_names, tree_builder, tree_parts


def _read_classifier(model) -> Reading:
    n_classes = len(model.classes_)
    builder = tree_builder(model, 1 if n_classes == 2 else n_classes)
    total = np.sum(model.estimator_weights_)

    def parts(member, weight) -> dict:
        _check_member(member)
        place = np.searchsorted(model.classes_, member.classes_)

        def votes(_, values):
            return weight / total * _votes(place[np.argmax(values, axis=1)], n_classes)

        return tree_parts(member.tree_, votes)

    pairs = zip(model.estimators_, model.estimator_weights_, strict=False)
    builder.add_trees(parts(member, weight) for member, weight in pairs)
    input_map = InputMap(
        n_columns=model.n_features_in_,
        names=column_names(model),
        labels_as_codes=False,
        frames_as_arrays=True,
        allow_nan=False,
        allow_inf=False,
    )
    return Reading(input_map, builder.build(0.0), _head(model))


def _check_member(member) -> None:
    if not isinstance(member, DecisionTreeClassifier):
        raise NoSumOfTreesError(
            f"AdaBoostClassifier counts the votes of its members, and a vote of a "
            f"{type(member).__name__} is no sum of trees; fit it with decision trees, or explain "
            "it by prediction: VanillaPDExplainer(response_method='decision_function')"
        )


def _votes(winner: np.ndarray, n_classes: int) -> np.ndarray:
    """Votes of leaves by the class that wins there (SAMME): for it, and against all others."""
    if n_classes == 1:
        return np.zeros((len(winner), 1))
    if n_classes == 2:
        return np.where(winner == 1, 2.0, -2.0)[:, None]
    return np.where(winner[:, None] == np.arange(n_classes), 1.0, -1.0 / (n_classes - 1))


def _head(model) -> Head:
    additive = ("raw", "decision_function")
    if len(model.classes_) != 2:
        return Head(additive, classes=model.classes_)
    return Head(additive, link="logit", link_method="predict_proba", classes=model.classes_)


def _predict_classifier(model, X) -> np.ndarray:
    return model.decision_function(X)


def _refuse_regressor(model, X=None):
    raise NoSumOfTreesError(
        "AdaBoostRegressor predicts the weighted median of its members, which is no sum of trees; "
        "explain it by prediction with VanillaPDExplainer, or its members one by one: "
        "fit(model.estimators_[0], background)"
    )


FAMILIES = {
    AdaBoostClassifier: Family(_read_classifier, _predict_classifier),
    AdaBoostRegressor: Family(_refuse_regressor, _refuse_regressor),
}
