"""Several passes over rows that do not fit into memory, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from fastpd_sklearn.explainers import _sources
from fastpd_sklearn.explainers._order import NotYetError, PassedNumbers, Scope, Tally


class Passes(Protocol):
    """Rows in chunks that can be gone through again and again."""

    def draft(self, model):
        """What the explainer's ``_draft`` says of the model and the first chunk with rows."""

    def add_up(self, function: Callable):
        """What a function of rows gives for the chunks, added up.

        Parameters
        ----------
        function : callable
            From rows, their weights and the number of the first of them to what can be added; it
            travels to workers.
        """


@dataclass(frozen=True)
class Passed:
    """What a pass has given for some chunks, and how many rows each had.

    Parameters
    ----------
    found : object
        What can be added.
    n_rows : dict of int to int
        By the number of the chunk.
    """

    found: object
    n_rows: dict[int, int]

    def __add__(self, other: Passed) -> Passed:
        return Passed(self.found + other.found, {**self.n_rows, **other.n_rows})


class Rows:
    """How many rows the chunks have, which must be the same in each pass."""

    def __init__(self) -> None:
        self._n_rows: dict[int, int] | None = None

    def check(self, passed: Passed | None):
        """What a pass has found, if it saw the rows that the passes before it saw."""
        n_rows = {} if passed is None else passed.n_rows
        if self._n_rows is None:
            self._n_rows = n_rows
        for number in sorted({*n_rows, *self._n_rows}):
            first, now = self._n_rows.get(number, 0), n_rows.get(number, 0)
            if first != now:
                raise ValueError(
                    f"the background is gone through several times, and its chunk {number} had "
                    f"{first} rows with weight at first and {now} later; give chunks that are the "
                    "same each time: a list, a file, or an object whose __iter__ starts anew"
                )
        if passed is None:
            raise ValueError(
                "the background has no row with weight: it has no chunks, or empty ones"
            )
        return passed.found

    def starts(self) -> dict[int, int]:
        """The number of the first row of each chunk, once a pass has been made."""
        out, start = {}, 0
        for number in sorted(self._n_rows or {}):
            out[number] = start
            start += self._n_rows[number]
        return out


class StreamPasses:
    """Passes over chunks that are read one after the other.

    Parameters
    ----------
    explainer : LocalExplainer
    source : str, path, Arrow dataset, or iterable of chunks
    sample_weight : str or None
    names : iterable of str, or None
        Columns to read of a file that has others, too.

    Raises
    ------
    TypeError
        If the source can be read once.
    """

    def __init__(self, explainer, source, sample_weight, names) -> None:
        _sources.refuse_iterator(
            source,
            f"{type(explainer).__name__} goes through the background several times: give a list of "
            "chunks, the path of a Parquet file, an Arrow dataset, or an object whose __iter__ "
            "starts anew each time",
        )
        self._explainer = explainer
        self._source = source, sample_weight, names, "background"
        self._rows, self._n_passes = Rows(), 0

    def draft(self, model):
        """See :class:`Passes`."""
        for chunk in _sources.chunks_of(*self._source):
            with _sources.naming(chunk.number, "background"):
                return self._explainer._draft(model, chunk.X, chunk.weights)[0]
        return self._rows.check(None)

    def add_up(self, function: Callable):
        """See :class:`Passes`."""
        self._n_passes += 1
        total, start = None, 0
        for chunk in _sources.chunks_of(*self._source):
            with _sources.naming(chunk.number, "background"):
                X, weights = self._explainer._open_chunk(chunk.X, chunk.weights)
                found = Passed(function(X, weights, start), {chunk.number: X.shape[0]})
                total = found if total is None else total + found
            start += X.shape[0]
            if self._explainer.verbose:
                name = type(self._explainer).__name__
                print(f"[{name}] pass {self._n_passes}, chunk {chunk.number}, {start} rows so far")
        return self._rows.check(total)


class Sums(dict):
    """Things that can be added, by name; those of the same name are."""

    def __add__(self, other: Sums) -> Sums:
        out = Sums(self)
        for name, found in other.items():
            out[name] = out[name] + found if name in out else found
        return out


@dataclass(frozen=True, eq=False)
class TallyPass:
    """Counts numbers.

    Parameters
    ----------
    scopes : dict of Hashable to Scope
        By the name of the numbers.
    numbers : callable
        From rows and the name of numbers to these and the rows that have them, as a bool array.
    """

    scopes: dict[Hashable, Scope]
    numbers: Callable

    def __call__(self, X, weights, start: int) -> Sums:
        out = Sums()
        for name, scope in self.scopes.items():
            values, known = self.numbers(X, name)
            of_them = None if weights is None else weights[known]
            out[name] = Tally.of(values[known], of_them, scope)
        return out


def ask_all(passes: Passes, ordered: dict, questions: dict, numbers: Callable) -> dict:
    """Answers that numbers give, after as many passes over the rows as they take.

    Parameters
    ----------
    passes : Passes
    ordered : dict of Hashable to PassedNumbers
        Of which a first pass has taken notice.
    questions : dict of Hashable to callable
        By name, from the numbers of this name to an answer.
    numbers : callable
        See :class:`TallyPass`.

    Returns
    -------
    dict of Hashable to object
    """
    answers: dict = {}
    while True:
        scopes = {}
        for name, question in questions.items():
            if name not in answers:
                try:
                    answers[name] = question(ordered[name])
                except NotYetError:
                    scopes[name] = ordered[name].scope
        if not scopes:
            return answers
        for name, tally in passes.add_up(TallyPass(scopes, numbers)).items():
            ordered[name].refine(tally)


def first_pass(passes: Passes, names, numbers: Callable) -> dict[Hashable, PassedNumbers]:
    """Numbers of some names after a first pass over the rows."""
    ordered = {name: PassedNumbers() for name in names}
    if ordered:
        scopes = {name: one.scope for name, one in ordered.items()}
        for name, tally in passes.add_up(TallyPass(scopes, numbers)).items():
            ordered[name].refine(tally)
    return ordered
