"""Responses that mix the margins of several models, on which no trees add up.

A soft vote of boosted classifiers averages probabilities, a calibrated classifier bends what its
models answer, a stack asks another model. All are functions of the members' raw outputs, and those
are sums of trees: the raw outputs of such a model are those of its members one after the other, and
its head's inverse link is the whole rest of the model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._joining import Part, join
from fastpd_sklearn.forest._members import Member, NoSumOfTreesError, refuse_answer
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
class Sigmoid:
    """Platt's calibration of an answer."""

    slope: float
    offset: float

    def __call__(self, answer: np.ndarray) -> np.ndarray:
        return expit(-(self.slope * answer + self.offset))


@dataclass(frozen=True, eq=False)
class Isotonic:
    """Isotonic calibration of an answer: straight lines between points, level beyond them."""

    x: np.ndarray
    y: np.ndarray

    def __call__(self, answer: np.ndarray) -> np.ndarray:
        return np.interp(answer.astype(self.x.dtype), self.x, self.y)


@dataclass(frozen=True, eq=False)
class Temperature:
    """Temperature scaling of all answers together."""

    beta: float

    def __call__(self, answers: np.ndarray) -> np.ndarray:
        if answers.shape[1] == 1:
            answers = np.hstack([-answers, answers])
        elif np.all((answers >= 0) & (answers <= 1)) and np.allclose(answers.sum(axis=1), 1.0):
            answers = np.log(answers + 1e-12)  # as scikit-learn tells probabilities from margins
        return softmax(self.beta * answers, axis=1)


@dataclass(frozen=True, eq=False)
class CalibratedMember:
    """The calibrated probabilities of a member.

    Parameters
    ----------
    method : {"decision_function", "predict_proba"}
        What the member is asked.
    places : tuple of int
        The class of each answer.
    curves : tuple of Sigmoid, Isotonic or Temperature
        One an answer, or one temperature for all of them.
    n_classes : int
    """

    method: str
    places: tuple[int, ...]
    curves: tuple[Sigmoid | Isotonic | Temperature, ...]
    n_classes: int

    @classmethod
    def of(cls, calibrated, method: str) -> CalibratedMember:
        """From one of ``calibrated_classifiers_``, and what that asks its own model."""
        places = np.searchsorted(calibrated.classes, calibrated.estimator.classes_)
        if len(calibrated.classes) == 2:
            places = places + 1  # the answers are those of the second class
        curves = tuple(map(_curve_of, calibrated.calibrators))
        return cls(method, tuple(places.tolist()), curves, len(calibrated.classes))

    def __call__(self, answer: np.ndarray) -> np.ndarray:
        proba = self._of_all(answer) if self._is_joint else self._one_by_one(answer)
        proba[(proba > 1.0) & (proba <= 1.0 + 1e-5)] = 1.0
        return proba

    @property
    def _is_joint(self) -> bool:
        return isinstance(self.curves[0], Temperature)

    def _of_all(self, answers: np.ndarray) -> np.ndarray:
        return self.curves[0](answers)

    def _one_by_one(self, answers: np.ndarray) -> np.ndarray:
        if self.method == "predict_proba" and answers.shape[1] == 2:
            answers = answers[:, 1:]
        proba = np.zeros((len(answers), self.n_classes))
        for place, curve, answer in zip(self.places, self.curves, answers.T, strict=False):
            proba[:, place] = curve(answer)
        if self.n_classes == 2:
            proba[:, 0] = 1.0 - proba[:, 1]
            return proba
        total = proba.sum(axis=1, keepdims=True)
        uniform = np.full_like(proba, 1.0 / self.n_classes)
        return np.divide(proba, total, out=uniform, where=total != 0)


def _curve_of(calibrator) -> Sigmoid | Isotonic | Temperature:
    """A calibrator of scikit-learn's by its numbers."""
    if hasattr(calibrator, "X_thresholds_"):
        x, y = np.asarray(calibrator.X_thresholds_), np.asarray(calibrator.y_thresholds_)
        return Isotonic(x, y.astype(np.float64))
    if hasattr(calibrator, "beta_"):
        return Temperature(float(calibrator.beta_))
    if hasattr(calibrator, "a_"):
        return Sigmoid(float(calibrator.a_), float(calibrator.b_))
    raise NoSumOfTreesError(
        f"it is calibrated by a {type(calibrator).__name__}, which is not known; explain the "
        "response by prediction with VanillaPDExplainer"
    )


@dataclass(frozen=True, eq=False)
class Calibrated:
    """The mean of calibrated members."""

    members: tuple[CalibratedMember, ...]

    def __call__(self, answers: list[np.ndarray]) -> np.ndarray:
        found = [member(answer) for member, answer in zip(self.members, answers, strict=True)]
        return np.mean(found, axis=0)
