"""What a model that is made of models adds up: answers of its members, as sums of trees."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._registry import Reading, find_reader, rounding_of


class NoSumOfTreesError(ValueError):
    """The response of a model is no sum of trees that can be read.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.ensemble import GradientBoostingClassifier, VotingClassifier
    >>> from fastpd_sklearn.forest import NoSumOfTreesError, find_reader
    >>> X, y = make_classification(random_state=0)
    >>> model = VotingClassifier([("a", GradientBoostingClassifier(n_estimators=2))]).fit(X, y)
    >>> try:
    ...     find_reader(model).read(model)
    ... except NoSumOfTreesError as error:
    ...     print(str(error).partition(",")[0])
    VotingClassifier with voting='hard' counts the members' votes for whole classes
    """

    __module__ = "fastpd_sklearn.forest"  # where users find it, for tracebacks


class Member(NamedTuple):
    """A model within a model, opened.

    Parameters
    ----------
    name, key : str
        For messages, and for names of what is within it.
    model : object
    reading : Reading
    rounding : ndarray of shape (n_outputs,)
        Largest error of the reading's raw prediction that is rounding.
    """

    name: str
    key: str
    model: object
    reading: Reading
    rounding: np.ndarray


class Answer(NamedTuple):
    """A member's answer as ``weights @ raw + offset``.

    Parameters
    ----------
    weights : ndarray of shape (n_columns, n_raw)
    offset : ndarray of shape (n_columns,)
    """

    weights: np.ndarray
    offset: np.ndarray


def open_member(owner, model, key: str | int) -> Member:
    """Read a member.

    Parameters
    ----------
    owner : object
        The model that it is in, for messages.
    model : object
    key : str or int
        Its name or number in the owner, or the owner's attribute that holds it.

    Returns
    -------
    Member

    Raises
    ------
    NoSumOfTreesError
        If no reader takes it.
    """
    reader = find_reader(model)
    name = key if hasattr(owner, str(key)) else f"member {key!r}"
    if reader is None:
        raise NoSumOfTreesError(
            f"{name} of this {type(owner).__name__} is a {type(model).__name__}, which is no tree "
            f"ensemble that can be read; explain the {type(owner).__name__} by prediction with "
            "VanillaPDExplainer"
        )
    reading = reader.read(model)
    return Member(name, str(key), model, reading, rounding_of(reader, reading))


def as_own(member: Member, head: Head) -> Reading:
    """A member's reading as that of the model around it, which has a head of its own."""
    return member.reading._replace(head=replace(head, rounding=member.rounding))


def answer(owner, member: Member, method: str) -> Answer:
    """What a member answers to a method, in terms of its trees.

    Parameters
    ----------
    owner : object
        The model that it is in, for messages.
    member : Member
    method : {"predict", "predict_proba", "decision_function"}

    Returns
    -------
    Answer
        Of ``predict_proba`` all columns, those of two classes as well.

    Raises
    ------
    NoSumOfTreesError
        If the member's trees do not add up to it.
    """
    head, n_raw = member.reading.head, member.reading.forest.n_outputs
    if method not in head.additive:
        refuse_answer(owner, member, method, "adds up")
    if method == "predict_proba" and n_raw == 1 and np.size(head.classes) == 2:
        return Answer(np.array([[-1.0], [1.0]]), np.array([1.0, 0.0]))
    return Answer(np.eye(n_raw), np.zeros(n_raw))


def refuse_answer(owner, member: Member, method: str, doing: str) -> None:
    """Say that a member's answer is not found from its trees.

    Parameters
    ----------
    owner : object
        The model that it is in.
    member : Member
    method : str
    doing : str
        What the owner does with the answer.

    Raises
    ------
    NoSumOfTreesError
        Always.
    """
    possible = " or ".join(repr(name) for name in member.reading.head.additive)
    sum_of = f" (its trees add up to {possible})" if possible else ""
    raise NoSumOfTreesError(
        f"{type(owner).__name__} {doing} the {method} of its members, and that of "
        f"{member.name}, a {type(member.model).__name__}, is no sum of trees{sum_of}; explain the "
        f"{type(owner).__name__} by prediction with VanillaPDExplainer, or its members one by "
        "one: fit(member, background)"
    )
