"""Several passes over rows that do not fit into memory, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fastpd_sklearn.explainers import _sources
from fastpd_sklearn.explainers._jackknife import row_bits
from fastpd_sklearn.explainers._order import NotYetError, PassedNumbers, Scope, Tally
from fastpd_sklearn.forest import _frames, _rows


class Place(NamedTuple):
    """Where some rows are.

    Parameters
    ----------
    chunk : int
        The number of their chunk.
    row : int
        The number of the first of them; 0 in a first pass over chunks that are elsewhere.
    """

    chunk: int
    row: int


class Passes(Protocol):
    """Rows in chunks that can be gone through again and again."""

    def draft(self, model):
        """What the explainer's ``_draft`` says of the model and the first chunk with rows."""

    def add_up(self, function: Callable):
        """What a function of rows gives for the chunks, added up.

        Parameters
        ----------
        function : callable
            From rows, their weights and their :class:`Place` to what can be added; it travels to
            workers.
        """


@dataclass(frozen=True)
class Passed:
    """What a pass has given for some chunks, and what tells these from others.

    Parameters
    ----------
    found : object
        What can be added.
    seen : dict of int to (int, int)
        By the number of the chunk: how many rows it has, and 64 bits of the first of them.
    """

    found: object
    seen: dict[int, tuple[int, int]]

    @classmethod
    def of(cls, function: Callable, X, weights, place: Place) -> Passed:
        """What a function gives for a chunk with rows."""
        return cls(function(X, weights, place), {place.chunk: traits(X)})

    def __add__(self, other: Passed) -> Passed:
        return Passed(self.found + other.found, {**self.seen, **other.seen})


def traits(X) -> tuple[int, int]:
    """How many rows a chunk has, and 64 bits of the first of them."""
    return X.shape[0], int(row_bits(_rows.take(X, np.zeros(1, np.intp)))[0])


class Rows:
    """How many rows the chunks have, which must be the same in each pass."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[int, int]] | None = None
        self._first: dict[int, tuple[int, int]] = {}

    def note(self, number: int, X) -> None:
        """Take notice of the first chunk with rows, before there has been a pass."""
        self._first = {number: traits(X)}

    def check(self, passed: Passed | None):
        """What a pass has found, if it saw the rows that the passes before it saw."""
        seen = {} if passed is None else passed.seen
        if self._seen is None:
            self._seen = {**seen, **self._first}
        for number in sorted({*seen, *self._seen}):
            first, now = self._seen.get(number, (0, 0)), seen.get(number, (0, 0))
            if first != now:
                raise ValueError(
                    f"the background is gone through several times, and its chunk {number} had "
                    f"{first[0]} rows with weight at first and {now[0]} later"
                    + ("" if first[0] != now[0] else ", but not the same ones")
                    + "; give chunks that are the same each time: a list, a file, or an object "
                    "whose __iter__ starts anew"
                )
        if passed is None:
            raise ValueError(
                "the background has no row with weight: it has no chunks, or empty ones"
            )
        return passed.found

    def starts(self) -> dict[int, int]:
        """The number of the first row of each chunk, once a pass has been made."""
        out, start = {}, 0
        for number in sorted(self._seen or {}):
            out[number] = start
            start += self._seen[number][0]
        return out


class Categories:
    """The categories of pandas' columns over all chunks.

    Chunks that were read apart list those that they have. With those of all, in the order in which
    they occur, a label has one code, and a row may be moved to any of them.
    """

    def __init__(self) -> None:
        self._known: dict[int, object] = {}

    def note(self, X) -> bool:
        """Take notice of a chunk; whether it has categories at all."""
        columns = range(X.shape[1]) if _frames.is_pandas(X) else ()
        found = [j for j in columns if _frames.is_categorical(_frames.column(X, j))]
        for j in found:
            series = _frames.column(X, j)
            labels = series.cat.categories
            known = self._known.setdefault(j, labels)
            if series.cat.ordered and not known.equals(labels):
                raise ValueError(
                    f"column {series.name!r} has the ordered categories {list(known)} in one chunk "
                    f"and {list(labels)} in another; list all of them in every chunk"
                )
            self._known[j] = known.append(labels).unique()
        return bool(found)

    def completed(self, X):
        """The chunk with all categories."""
        if not _frames.is_pandas(X):
            return X
        changed = {}
        for j, labels in self._known.items():
            series = _frames.column(X, j) if j < X.shape[1] else None
            if series is None or not _frames.is_categorical(series):
                continue
            if not series.cat.categories.equals(labels):
                changed[j] = series.cat.set_categories(labels)
        return _frames.with_columns(X, changed) if changed else X


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
        self._rows, self._categories, self._n_passes = Rows(), Categories(), 0

    def _chunks(self) -> Iterator[_sources.Chunk]:
        for chunk in _sources.chunks_of(*self._source):
            with _sources.naming(chunk.number, "background"):
                X = self._categories.completed(chunk.X)
            yield _sources.Chunk(chunk.number, X, chunk.weights)

    def draft(self, model):
        """See :class:`Passes`."""
        for chunk in _sources.chunks_of(*self._source):
            with _sources.naming(chunk.number, "background"):
                if not self._categories.note(chunk.X):
                    break
        for chunk in self._chunks():
            with _sources.naming(chunk.number, "background"):
                draft, X, _ = self._explainer._draft(model, chunk.X, chunk.weights)
                self._rows.note(chunk.number, X)
                return draft
        return self._rows.check(None)

    def add_up(self, function: Callable):
        """See :class:`Passes`."""
        self._n_passes += 1
        total, start = None, 0
        for chunk in self._chunks():
            with _sources.naming(chunk.number, "background"):
                X, weights = self._explainer._open_chunk(chunk.X, chunk.weights)
                found = Passed.of(function, X, weights, Place(chunk.number, start))
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

    def __call__(self, X, weights, place: Place) -> Sums:
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
