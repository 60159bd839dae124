"""Which response of a model is explained, and which of its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np
from sklearn.exceptions import NotFittedError

from fastpd_sklearn.core.ice import LINKS
from fastpd_sklearn.explainers._models import classes_of, kind_of, tags_of
from fastpd_sklearn.forest import Head, NoSumOfTreesError, Reader, find_reader

RESPONSE_METHODS = ("auto", "raw", "predict", "predict_proba", "decision_function")


def check_additive(response_method: str, head: Head) -> None:
    """Refuse a response that the trees of a model do not add up to.

    Parameters
    ----------
    response_method : str
        One of ``RESPONSE_METHODS``.
    head : Head

    Raises
    ------
    ValueError
        If its values are not the sum of the trees.
    NoSumOfTreesError
        If no response is.
    """
    if not head.additive:
        raise NoSumOfTreesError(
            f"the {head.link_method} of this model mixes what several models predict, so that it "
            f"is no sum of trees; FastPDExplainer(response_method={head.link_method!r}) has exact "
            "values for output='pd' and 'component' of at most two features; for others explain a "
            "model within by its margin, or the response by prediction with VanillaPDExplainer"
        )
    if response_method != "auto" and response_method not in head.additive:
        possible = " or ".join(repr(name) for name in head.additive)
        note = f" ({head.note})" if head.note else ""
        raise ValueError(
            f"response_method={response_method!r}: the trees of this model do not add up to it, "
            f"they add up to {possible}{note}; take one of these (or 'auto'), or explain the "
            "response by prediction with VanillaPDExplainer"
        )


def response_head(head: Head) -> Head:
    """The head of the response that is the inverse link of a head's margins."""
    return replace(
        head, additive=(head.link_method, "raw"), link="identity", link_method=None, note=""
    )


def core_link(head: Head) -> str | Callable[[np.ndarray], np.ndarray]:
    """From margins to the response: by name where the core knows it, else as a function."""
    return head.link if head.link in LINKS else head.respond


@dataclass(frozen=True, eq=False)
class Selection:
    """Which outputs are shown, and how.

    Parameters
    ----------
    outputs : ndarray of int
        The outputs of the engine.
    names : tuple of str
        One an output.
    sign, offset : float
        What is shown is ``offset + sign * response``: 1 and 0 but for the complement of a
        binary classifier.
    """

    outputs: np.ndarray
    names: tuple[str, ...]
    sign: float = 1.0
    offset: float = 0.0

    def is_all(self, n_outputs: int) -> bool:
        """Whether the outputs of an engine, so many, are shown as they are."""
        return self.sign == 1.0 and n_outputs == len(self.outputs)

    def values(self, values: np.ndarray) -> np.ndarray:
        """Differences of responses, outputs last, as they are shown."""
        if self.is_all(values.shape[-1]):
            return values
        return self.sign * values[..., self.outputs]

    def response(self, response: np.ndarray) -> np.ndarray:
        """Responses, outputs last, as they are shown."""
        if self.offset == 0.0:
            return self.values(response)
        return self.offset + self.sign * response[..., self.outputs]


def select_outputs(target, head: Head, n_outputs: int) -> Selection:
    """The outputs that ``target`` means.

    Parameters
    ----------
    target : object
        A class label where the model has classes, else the number or name of an output; None
        for all.
    head : Head
    n_outputs : int

    Returns
    -------
    Selection

    Raises
    ------
    ValueError
        If there is no such class or output.
    """
    names = head.names(n_outputs)
    if target is None:
        return Selection(np.arange(n_outputs), names)
    if head.classes is not None:
        return _select_class(target, head, names)
    if isinstance(target, str) and target in names:
        target = names.index(target)
    is_number = isinstance(target, Integral) and not isinstance(target, bool)
    if not is_number or not 0 <= target < n_outputs:
        numbers = tuple(str(k) for k in range(n_outputs))
        called = "" if names == numbers else f" and called {', '.join(map(repr, names))}"
        raise ValueError(
            f"target={target!r} is none of the model's outputs; they are numbered from 0 to "
            f"{n_outputs - 1}{called}"
        )
    return Selection(np.array([target]), (names[target],))


def _select_class(target, head: Head, names) -> Selection:
    labels = head.classes.tolist()
    if target not in labels:
        raise ValueError(f"target={target!r} is none of the model's classes, which are {labels}")
    k = labels.index(target)
    if len(names) == len(labels):
        return Selection(np.array([k]), (names[k],))
    complement = k == 0
    return Selection(
        np.zeros(1, dtype=np.intp),
        (str(labels[k]),),
        sign=-1.0 if complement else 1.0,
        offset=1.0 if complement and "predict_proba" in head.additive else 0.0,
    )


def output_columns(terms: Iterable[tuple[str, ...]], selection: Selection) -> np.ndarray:
    """Names of the columns that ``transform`` gives.

    Parameters
    ----------
    terms : iterable of tuple of str
        What each of them is about.
    selection : Selection

    Returns
    -------
    ndarray of str objects
        The names of each term joined, followed by ``"__output"`` for all outputs if there are
        several.

    Raises
    ------
    ValueError
        If two of them would be alike.
    """
    ends = [f"__{name}" for name in selection.names] if len(selection.names) > 1 else [""]
    stems = [":".join(names) for names in terms]
    out = [stem + end for stem in stems for end in ends]
    if len(set(out)) < len(out):
        name = Counter(out).most_common(1)[0][0]
        raise ValueError(
            f"two columns of the output would be called {name!r}; rename a feature, or name "
            "each set of features once in `features`"
        )
    return np.array(out, dtype=object)


def answering_method(response_method: str, head: Head) -> str:
    """The method of the model whose answer is explained; "raw" if none answers with it."""
    methods = [response_method, *head.additive]
    return next((m for m in methods if m not in ("auto", "raw")), "raw")


class Response:
    """A response of any model, by calling it.

    Parameters
    ----------
    model : object
        Fitted.
    response_method : str
        One of ``RESPONSE_METHODS``. "auto" is the raw prediction of a tree ensemble that a
        reader takes, and for other models what scikit-learn's inspection takes: the first of
        ``predict_proba`` and ``decision_function`` for classifiers, else ``predict``.

    Attributes
    ----------
    head : Head
    """

    def __init__(self, model, response_method: str) -> None:
        self._model = model
        self._reader, head = None, None
        if response_method in ("auto", "raw"):
            self._reader, head = _find_sum_of_trees(model)
        if head is not None:
            self._method = "raw"
            self.head = head
        else:
            self._method = choose_method(model, response_method)
            self.head = Head(
                additive=(self._method, "raw"), classes=_answered_classes(model, self._method)
            )

    def __call__(self, X) -> np.ndarray:
        """Respond.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
            A binary classifier has one output, that of ``classes_[1]``.
        """
        if self._reader is not None:
            return np.asarray(self._reader.predict_raw(self._model, X), dtype=np.float64)
        answer = getattr(self._model, self._method)(X)
        if isinstance(answer, list):
            raise ValueError(
                f"{self._method} of {type(self._model).__name__} gives a list, one array a target; "
                "explain a model of one target, or another response_method"
            )
        answer = np.asarray(answer, dtype=np.float64)
        answer = answer.reshape(len(answer), -1)
        if self._method != "predict_proba" or answer.shape[1] != 2:
            return answer
        if not np.allclose(answer.sum(axis=1), 1.0, atol=1e-5):
            raise ValueError(
                f"the two columns of predict_proba of {type(self._model).__name__} do not add up "
                "to 1, so that they are not those of a binary classifier; explain a model of one "
                "target"
            )
        return answer[:, 1:]


def _answered_classes(model, method: str) -> np.ndarray | None:
    """The classes that the columns of a response stand for, if they do."""
    one_against_one = getattr(model, "decision_function_shape", None) == "ovo"
    if method == "predict" or (method == "decision_function" and one_against_one):
        return None
    return classes_of(model)


def _find_sum_of_trees(model) -> tuple[Reader | None, Head | None]:
    """The reader of a model and its head; None for a model that is no sum of trees."""
    reader = find_reader(model)
    if reader is None:
        return None, None
    try:
        head = reader.read(model).head
    except NotFittedError:
        raise
    except NoSumOfTreesError:
        return None, None
    except ValueError as error:
        raise ValueError(
            f"{error}; to explain the model by prediction nevertheless, say which response: "
            "response_method='predict', 'predict_proba' or 'decision_function'"
        ) from error
    return (reader, head) if head.additive else (None, None)


def choose_method(model, response_method: str) -> str:
    """The method of a model to call, for one of ``RESPONSE_METHODS``."""
    kind, name = kind_of(model), type(model).__name__
    has = [m for m in ("predict_proba", "decision_function") if hasattr(model, m)]
    if response_method == "raw":
        raise ValueError(
            f"response_method='raw' is the sum of the trees of an ensemble, and {name} is not one "
            "that can be read; take 'auto' or one of "
            f"{', '.join(repr(m) for m in [*has, 'predict'])}"
        )
    if response_method == "auto":
        if kind == "regressor" or (kind != "classifier" and not has):
            return "predict"
        if not has:
            raise ValueError(
                f"{name} has neither predict_proba nor decision_function, and class labels "
                "cannot be averaged; explain a classifier that has one of them"
            )
        return has[0]
    if response_method == "predict" and kind == "classifier":
        raise ValueError(
            "response_method='predict': class labels cannot be averaged; take "
            f"{' or '.join(repr(m) for m in has) or 'another model'}"
        )
    if not hasattr(model, response_method):
        raise ValueError(
            f"response_method={response_method!r}: {name} has no such method; it has "
            f"{', '.join(repr(m) for m in ['auto', *has])}"
        )
    return response_method


def input_tags_of(model) -> dict[str, bool]:
    """Which kinds of input a model takes, as far as it says."""
    tags = tags_of(model)
    if tags is None:
        return {"allow_nan": True, "sparse": True, "categorical": False}
    kinds = ("allow_nan", "sparse", "categorical")
    return {kind: getattr(tags.input_tags, kind) for kind in kinds}
