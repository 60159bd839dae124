"""Responses that mix the margins of several models, on which no trees add up.

A soft vote of boosted classifiers averages probabilities, a calibrated classifier bends what its
models answer, a stack asks another model. All are functions of the members' raw outputs, and those
are sums of trees: the raw outputs of such a model are those of its members one after the other, and
its head's inverse link is the whole rest of the model.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._joining import Part, join
from fastpd_sklearn.forest._members import Member, refuse_answer
from fastpd_sklearn.forest._registry import Reading, find_reader


@dataclass(frozen=True, eq=False)
class RawAnswer:
    """What a member answers to a method, from its raw outputs.

    Parameters
    ----------
    head : Head
        The member's.
    method : str
        One that :func:`raw_answer` has found to be a function of them.
    n_raw : int
        Number of the member's raw outputs.
    """

    head: Head
    method: str
    n_raw: int

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        """Answer.

        Parameters
        ----------
        raw : ndarray of shape (n_rows, n_raw)

        Returns
        -------
        ndarray of shape (n_rows, n_columns)
            Of ``predict_proba`` all classes, those of two classes as well.
        """
        found = raw if self.method in self.head.additive else self.head.respond(raw)
        if self.method == "predict_proba" and found.shape[1] == 1:
            return np.hstack([1 - found, found])
        return found


def raw_answer(owner, member: Member, method: str) -> RawAnswer:
    """A member's answer as a function of its raw outputs.

    Parameters
    ----------
    owner : object
        The model that it is in, for messages.
    member : Member
    method : {"predict", "predict_proba", "decision_function"}

    Returns
    -------
    RawAnswer

    Raises
    ------
    NoSumOfTreesError
        If the answer is no function of what the member's trees add up to.
    """
    head = member.reading.head
    if method not in (*head.additive, head.link_method):
        refuse_answer(owner, member, method, "takes")
    return RawAnswer(head, method, member.reading.forest.n_outputs)


@dataclass(frozen=True, eq=False)
class Mixture:
    """An inverse link: the response of a model from the raw outputs of its members.

    Parameters
    ----------
    answers : tuple of RawAnswer
        One a member, which has the next raw outputs.
    combine : callable
        From the list of the members' answers to an array of shape (n_rows, n_columns).
    n_classes : int, default=0
        Of a classifier: with two classes the second is shown alone.
    """

    answers: tuple[RawAnswer, ...]
    combine: Callable[[list[np.ndarray]], np.ndarray]
    n_classes: int = 0

    def __call__(self, raw: np.ndarray) -> np.ndarray:
        """Respond.

        Parameters
        ----------
        raw : ndarray of shape (n_rows, n_raw)
            The members' raw outputs, one after the other.

        Returns
        -------
        ndarray of shape (n_rows, n_responses)
        """
        ends = np.cumsum([answer.n_raw for answer in self.answers])[:-1]
        parts = np.split(np.asarray(raw, dtype=np.float64), ends, axis=1)
        response = self.combine([a(part) for a, part in zip(self.answers, parts, strict=True)])
        response = np.asarray(response, dtype=np.float64).reshape(len(raw), -1)
        return response[:, 1:] if self.n_classes == 2 else response


def mixed(
    owner, members: list[Member], methods, combine, response: str, n_classes: int = 0, **head
) -> Reading:
    """The reading of a model whose response mixes its members' answers.

    Parameters
    ----------
    owner : object
        The model.
    members : list of Member
    methods : sequence of str
        What each member is asked.
    combine : callable
        See :class:`Mixture`.
    response : str
        The method of the owner that answers with the mixture.
    n_classes : int, default=0
        See :class:`Mixture`.
    **head
        More of the :class:`Head`, such as ``additive`` and ``classes``.

    Returns
    -------
    Reading
    """
    answers = tuple(raw_answer(owner, m, how) for m, how in zip(members, methods, strict=True))
    link = Mixture(answers, combine, n_classes)
    return one_after_another(
        owner, members, Head(**{"additive": (), **head}, link=link, link_method=response)
    )


def one_after_another(owner, members: list[Member], head: Head) -> Reading:
    """The reading of members whose raw outputs are kept apart."""
    sizes = [member.reading.forest.n_outputs for member in members]
    weights = np.split(np.eye(sum(sizes)), np.cumsum(sizes)[:-1], axis=1)
    parts = [Part(member, w) for member, w in zip(members, weights, strict=True)]
    return join(owner, parts, np.zeros(sum(sizes)), head)


def predict_each(models, X) -> np.ndarray:
    """The libraries' own raw predictions of some models, one after the other."""
    raw = [find_reader(model).predict_raw(model, X) for model in models]
    return np.hstack([values.reshape(len(values), -1) for values in raw])


# -- how answers are combined --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WeightedMean:
    """The mean of the members' answers."""

    shares: np.ndarray

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        return sum(share * found for share, found in zip(self.shares, answers, strict=True))


@dataclass(frozen=True, eq=False)
class Rivals:
    """The second probability of each member, divided by their sum where only one can be right."""

    only_one: bool

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        each = np.column_stack([found[:, 1] for found in answers])
        if not self.only_one:
            return each
        total = each.sum(axis=1, keepdims=True)
        return np.divide(each, total, out=each, where=total != 0)


@dataclass(frozen=True, eq=False)
class Stacked:
    """The answer of a last estimator, for which answers are columns."""

    estimator: object
    method: str
    first: tuple[int, ...]
    """By member, the first of its columns that are handed on."""

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        columns = [found[:, first:] for found, first in zip(answers, self.first, strict=True)]
        return getattr(self.estimator, self.method)(np.hstack(columns))


@dataclass(frozen=True, eq=False)
class Transformed:
    """A member's prediction back on the scale of the target."""

    transformer: object

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        return self.transformer.inverse_transform(answers[0])


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The mean of calibrated members, which calibrate by themselves what a stand-in says."""

    members: tuple

    @classmethod
    def of(cls, calibrated: list, methods: list[str]) -> Calibrated:
        """From ``calibrated_classifiers_``, and what each asks its own model."""
        return cls(tuple(map(_without_model, calibrated, methods)))

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        found = [m.predict_proba(answer) for m, answer in zip(self.members, answers, strict=True)]
        return np.mean(found, axis=0)


def _without_model(calibrated, method: str):
    """A calibrated classifier that is given its model's answers in place of rows."""
    out = copy.copy(calibrated)
    out.estimator = _StandIn(calibrated.estimator.classes_, method)
    return out


def _has(method: str):
    return available_if(lambda self: self.method == method)


class _StandIn(ClassifierMixin, BaseEstimator):
    """A classifier that is handed its answer."""

    def __init__(self, classes_, method: str) -> None:
        self.classes_, self.method = classes_, method

    @_has("decision_function")
    def decision_function(self, answer):
        return answer[:, 0] if answer.shape[1] == 1 else answer

    @_has("predict_proba")
    def predict_proba(self, answer):
        return answer
