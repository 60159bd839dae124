"""scikit-learn's ensembles of any models, where they add up what their members answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._joining import join, weighted
from fastpd_sklearn.forest._linear_layer import find_link, linear_layer
from fastpd_sklearn.forest._members import (
    Answer,
    Member,
    NoSumOfTreesError,
    answer,
    as_own,
    open_member,
)
from fastpd_sklearn.forest._mixing import (
    Rivals,
    Stacked,
    WeightedMean,
    mixed,
    one_after_another,
    predict_each,
)
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._sklearn_trees import Family

# -- means of members ----------------------------------------------------------------------


def _read_bagging(model) -> Reading:
    members = _numbered_members(model)
    shares = np.full(len(members), 1 / len(members))
    columns = [np.asarray(features) for features in model.estimators_features_]
    method = _bagged_method(model)
    return _mean(model, members, method, shares, columns=columns, frames_as_arrays=True)


def _bagged_method(model) -> str:
    """The answer of its members that a bagging ensemble averages, by the first of them."""
    if not is_classifier(model):
        return "predict"
    head = open_member(model, model.estimators_[0], 0).reading.head
    return "decision_function" if "decision_function" in head.additive else "predict_proba"


def _predict_bagging(model, X) -> np.ndarray:
    return _shown_answer(model, X, _bagged_method(model))


def _read_voting(model) -> Reading:
    method = _voting_method(model)
    shares = np.ones(len(model.estimators_)) if model.weights is None else _kept_weights(model)
    shares /= shares.sum()
    members = _named_members(model)
    if _all_add_up(members, method):
        return _mean(model, members, method, shares)
    methods = [method] * len(members)
    combine = WeightedMean(shares)
    return mixed(model, members, methods, combine, method, **_shown_as_classes(model))


def _shown_as_classes(model) -> dict:
    """What a head says of the classes of a classifier with one target."""
    if not is_classifier(model):
        return {}
    return {"classes": model.classes_, "n_classes": len(model.classes_)}


def _all_add_up(members: list[Member], method: str) -> bool:
    return all(method in member.reading.head.additive for member in members)


def _kept_weights(model) -> np.ndarray:
    pairs = zip(model.estimators, model.weights, strict=True)
    return np.array([w for (_, member), w in pairs if not _is_dropped(member)], dtype=np.float64)


def _voting_method(model) -> str:
    if not is_classifier(model):
        return "predict"
    if model.voting != "soft":
        raise NoSumOfTreesError(
            f"VotingClassifier with voting={model.voting!r} counts the members' votes for whole "
            "classes, which are no sums of trees; set model.set_params(voting='soft'), or explain "
            "its members one by one: fit(member, background)"
        )
    return "predict_proba"


def _predict_voting(model, X) -> np.ndarray:
    if _all_add_up(_named_members(model), _voting_method(model)):
        return _shown_answer(model, X, _voting_method(model))
    return predict_each(model.estimators_, X)


def _named_members(model) -> list[Member]:
    """Members that are fitted under a name, those that were dropped left out."""
    names = [name for name, member in model.estimators if not _is_dropped(member)]
    pairs = zip(names, model.estimators_, strict=True)
    return [open_member(model, member, name) for name, member in pairs]


def _numbered_members(model) -> list[Member]:
    return [open_member(model, member, k) for k, member in enumerate(model.estimators_)]


def _is_dropped(member) -> bool:
    return isinstance(member, str) and member == "drop"


def _mean(
    model,
    members: list[Member],
    method: str,
    shares: np.ndarray,
    *,
    columns: list[np.ndarray] | None = None,
    frames_as_arrays: bool = False,
) -> Reading:
    """The weighted mean of what the members answer to a method."""
    answers = [answer(model, member, method) for member in members]
    classes = model.classes_ if is_classifier(model) else None
    if method == "predict_proba":
        answers = [
            _by_class(found, member, len(classes))
            for found, member in zip(answers, members, strict=True)
        ]
        answers = [_rows(found, _shown_classes(len(classes))) for found in answers]
    n_outputs = len(answers[0].offset)
    parts, offset = [], np.zeros(n_outputs)
    for k, (member, found) in enumerate(zip(members, answers, strict=True)):
        by_columns = None if columns is None else columns[k]
        part, constant = weighted(member, found, shares[k] * np.eye(n_outputs), by_columns)
        parts.append(part)
        offset += constant
    head = Head(("raw", method), classes=classes)
    return join(model, parts, offset, head, frames_as_arrays=frames_as_arrays)


def _by_class(found: Answer, member: Member, n_classes: int) -> Answer:
    """Probabilities of all classes from those of the classes that a member has seen."""
    if len(found.offset) == n_classes:
        return found
    # A bagging ensemble numbers the classes before it fits its members.
    place = np.eye(n_classes)[:, np.asarray(member.model.classes_, dtype=np.intp)]
    return Answer(place @ found.weights, place @ found.offset)


def _rows(found: Answer, rows: list[int]) -> Answer:
    return Answer(found.weights[rows], found.offset[rows])


def _shown_classes(n_classes: int) -> list[int]:
    """The classes that have an output: of two the second, whose probability says it all."""
    return [1] if n_classes == 2 else list(range(n_classes))


def _shown_answer(model, X, method: str) -> np.ndarray:
    found = getattr(model, method)(X)
    return found[:, _shown_classes(found.shape[1])] if method == "predict_proba" else found


# -- stacking ------------------------------------------------------------------------------


def _read_stacking(model) -> Reading:
    if model.passthrough:
        raise NoSumOfTreesError(
            f"{type(model).__name__} with passthrough=True adds a function of X itself to its "
            "members' trees; fit it with passthrough=False, or explain it by prediction with "
            "VanillaPDExplainer"
        )
    members = _named_members(model)
    try:
        return _stacked_sum(model, members)
    except NoSumOfTreesError:
        return _stacked_mixture(model, members)


def _stacked_sum(model, members: list[Member]) -> Reading:
    """A linear function of answers that are sums of trees."""
    methods = model.stack_method_
    answers = [
        _stacked_answer(model, member, method)
        for member, method in zip(members, methods, strict=True)
    ]
    reach = max(_reach(m, a) for m, a in zip(members, answers, strict=True))
    method = _stacking_method(model)
    coef, offset = linear_layer(model, method, sum(len(a.offset) for a in answers), reach)
    parts, start = [], 0
    for member, found in zip(members, answers, strict=True):
        stop = start + len(found.offset)
        part, constant = weighted(member, found, coef[:, start:stop])
        parts.append(part)
        offset = offset + constant
        start = stop
    return join(model, parts, offset, _stacking_head(model, method, coef.shape[1]))


def _stacked_mixture(model, members: list[Member]) -> Reading:
    """Whatever the last estimator makes of answers that are functions of sums of trees."""
    methods = model.stack_method_
    if not is_classifier(model):
        combine = Stacked(model.final_estimator_, "predict", (0,) * len(members))
        return mixed(model, members, methods, combine, "predict")
    if not hasattr(model.final_estimator_, "predict_proba"):
        raise NoSumOfTreesError(
            f"the final estimator of this {type(model).__name__}, a "
            f"{type(model.final_estimator_).__name__}, has no predict_proba that its members' "
            "trees could be followed to; take another one, such as LogisticRegression, or explain "
            "it by prediction with VanillaPDExplainer"
        )
    two = len(model.classes_) == 2
    first = tuple(int(two and method == "predict_proba") for method in methods)
    combine = Stacked(model.final_estimator_, "predict_proba", first)
    return mixed(model, members, methods, combine, "predict_proba", **_shown_as_classes(model))


def _stacking_method(model) -> str:
    return "decision_function" if is_classifier(model) else "predict"


def _predict_stacking(model, X) -> np.ndarray:
    if _read_stacking(model).head.additive:
        return getattr(model, _stacking_method(model))(X)
    return predict_each(model.estimators_, X)


def _stacked_answer(model, member: Member, method: str) -> Answer:
    """The columns that a member gives to the final estimator."""
    found = answer(model, member, method)
    dropped = method == "predict_proba" and len(found.offset) == 2
    return _rows(found, [1]) if dropped else found


def _reach(member: Member, found: Answer) -> float:
    """How large a member's answers can be."""
    scale = member.reading.forest.scale()
    return float((np.abs(found.weights) @ scale + np.abs(found.offset)).max())


def _stacking_head(model, method: str, n_stacked: int) -> Head:
    if not is_classifier(model):
        return Head(("raw", method))
    link = find_link(model.final_estimator_, n_stacked)
    if link is None:
        return Head(("raw", method), classes=model.classes_)
    return Head(("raw", method), link=link, link_method="predict_proba", classes=model.classes_)


# -- one member an output ------------------------------------------------------------------


def _read_each(model, members: list[Member], methods, **head) -> Reading:
    """The members' raw outputs one after the other.

    Of the methods, those are additive that are so for all members.
    """
    additive = [method for method in methods if _all_add_up(members, method)]
    return one_after_another(model, members, Head(("raw", *additive), **head))


def _predict_each(model, X) -> np.ndarray:
    return predict_each(model.estimators_, X)


def _read_multioutput(model) -> Reading:
    members = _numbered_members(model)
    if not is_classifier(model):
        return _read_each(model, members, ["predict"])
    names = []
    for t, (labels, member) in enumerate(zip(model.classes_, members, strict=True)):
        shown = [1] if member.reading.forest.n_outputs == 1 < len(labels) else range(len(labels))
        names += [f"y{t}={labels[c]}" for c in shown]
    return _read_each(model, members, ["predict_proba"], output_names=tuple(names))


_RIVALS = (
    "'raw' is what each one-against-rest model adds up to; predict_proba divides by the sum over "
    "the classes"
)


def _read_one_vs_rest(model) -> Reading:
    members = _numbered_members(model)
    if len(members) == 1:
        head = members[0].reading.head
        # What a regressor within predicts is a margin to the model around it.
        additive = tuple(method for method in head.additive if method != "predict")
        return as_own(members[0], replace(head, additive=additive, classes=model.classes_))
    only_one = not model.multilabel_
    shown = [] if only_one else ["predict_proba"]
    shown = [m for m in ("decision_function", *shown) if _all_add_up(members, m)]
    if "predict_proba" in shown or not all(_has_probabilities(member) for member in members):
        return _read_each(model, members, shown, classes=model.classes_)
    return mixed(
        model,
        members,
        ["predict_proba"] * len(members),
        Rivals(only_one),
        "predict_proba",
        additive=("raw", *shown),
        classes=model.classes_,
        note=_RIVALS if only_one else "",
    )


def _has_probabilities(member: Member) -> bool:
    head = member.reading.head
    return "predict_proba" in (*head.additive, head.link_method)


_BAGGING = Family(_read_bagging, _predict_bagging)
_VOTING = Family(_read_voting, _predict_voting)
_STACKING = Family(_read_stacking, _predict_stacking)
_MULTIOUTPUT = Family(_read_multioutput, _predict_each)

FAMILIES = {
    BaggingRegressor: _BAGGING,
    BaggingClassifier: _BAGGING,
    VotingRegressor: _VOTING,
    VotingClassifier: _VOTING,
    StackingRegressor: _STACKING,
    StackingClassifier: _STACKING,
    MultiOutputRegressor: _MULTIOUTPUT,
    MultiOutputClassifier: _MULTIOUTPUT,
    OneVsRestClassifier: Family(_read_one_vs_rest, _predict_each),
}
