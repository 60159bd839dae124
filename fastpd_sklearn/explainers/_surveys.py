"""What columns hold whose rows come in chunks: numbers or labels, and which of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers import _sources
from fastpd_sklearn.explainers._ale_bins import filled_bins, given_edges
from fastpd_sklearn.explainers._columns import Column, read_column
from fastpd_sklearn.explainers._order import PassedNumbers, Tally
from fastpd_sklearn.explainers._passes import Passes, Place, Sums
from fastpd_sklearn.forest import _frames


@dataclass(frozen=True, eq=False)
class Survey:
    """What is in some rows of a column; that of other rows is added.

    Parameters
    ----------
    name : str
        For messages.
    labels : frozenset, or None
        None where there is none.
    listed : tuple, or None
        All categories of a categorical dtype; None for labels of other dtypes, which have no order
        of their own.
    numbers_in : int, or None
        The first chunk that holds numbers, be they taken as labels or not.
    labels_in : (int, tuple of str), or None
        The first chunk that holds labels, and some of these.
    has_missing, has_finite : bool
    tally : Tally or None
        Of the numbers; None if they are not counted.
    filled : ndarray of shape (n_bins,), bool, or None
        Which bins have rows, where edges are given.
    """

    name: str
    labels: frozenset | None
    listed: tuple | None
    numbers_in: int | None
    labels_in: tuple[int, tuple[str, ...]] | None
    has_missing: bool
    has_finite: bool
    tally: Tally | None
    filled: np.ndarray | None

    def __add__(self, other: Survey) -> Survey:
        return Survey(
            self.name,
            _either(self.labels, other.labels, frozenset.union),
            _longer(self.listed, other.listed),
            _either(self.numbers_in, other.numbers_in, min),
            _either(self.labels_in, other.labels_in, min),
            self.has_missing or other.has_missing,
            self.has_finite or other.has_finite,
            _either(self.tally, other.tally, lambda one, two: one + two),
            _either(self.filled, other.filled, np.logical_or),
        )

    def check(self) -> None:
        """Refuse a column that holds numbers in some chunks and labels in others.

        Surveys do not when they are added: which are added first is for a scheduler to say, and
        the chunk to name is the first one that is not like those before it.
        """
        if self.numbers_in is None or self.labels_in is None:
            return
        chunk, some = self.labels_in
        labels = f"labels such as {list(some)}" if some else "categories, all of them missing,"
        held = {self.numbers_in: "numbers", chunk: labels}
        first, other = sorted(held)
        with _sources.naming(other, "background"):
            raise ValueError(
                f"column {self.name!r} holds {held[first]} in chunk {first} of the background and "
                f"{held[other]} in chunk {other}; give it one type in all chunks"
            )

    def ordered_labels(self) -> np.ndarray | None:
        """The labels that occur, as `read_column` orders those of all rows; None for numbers."""
        if self.labels is None:
            return None
        if self.listed is not None:
            found = [label for label in self.listed if label in self.labels]
        else:
            found = sorted(self.labels, key=lambda v: (type(v).__name__, v))
            if all(type(label) is float for label in found):
                return np.array(found, dtype=np.float64)
        out = np.empty(len(found), dtype=object)
        out[:] = found
        return out


def _longer(one: tuple | None, other: tuple | None) -> tuple | None:
    """Categories of which others are the first ones; None if the two differ."""
    if one is None or other is None:
        return None
    short, long = sorted((one, other), key=len)
    return long if long[: len(short)] == short else None


def _either(one, other, both):
    if one is None or other is None:
        return other if one is None else one
    return both(one, other)


@dataclass(frozen=True, eq=False)
class SurveyPass:
    """Looks at some columns of rows.

    Parameters
    ----------
    names : dict of int to str
        The columns to look at, with their names.
    as_labels : frozenset of int
        Columns of numbers that are labels.
    absent : float
        What an absent entry of a sparse matrix means.
    counted : frozenset of int
        Columns whose finite numbers are counted.
    edges : dict of int to object
        What is given as the edges of bins, of columns of numbers.
    weighted : bool
        Whether numbers count by their weights.
    """

    names: dict[int, str]
    as_labels: frozenset[int]
    absent: float
    counted: frozenset[int]
    edges: dict[int, object]
    weighted: bool

    def __call__(self, X, weights, place: Place) -> Sums:
        weights = weights if self.weighted else None
        return Sums({j: self._survey(X, j, weights, place.chunk) for j in self.names})

    def _survey(self, X, j: int, weights, chunk: int) -> Survey:
        column = read_column(X, j, as_labels=j in self.as_labels, absent=self.absent)
        is_numbers = column.labels is None
        has_words = not is_numbers and column.labels.dtype == object
        finite = np.isfinite(column.values)
        tally = filled = None
        if is_numbers and j in self.counted:
            of_them = None if weights is None else weights[finite]
            tally = Tally.of(column.values[finite], of_them, PassedNumbers().scope)
        if is_numbers and j in self.edges:
            edges = given_edges(self.names[j], self.edges[j])
            filled = filled_bins(column.values, edges)
        return Survey(
            self.names[j],
            None if is_numbers else frozenset(column.labels.tolist()),
            _listed(X, j, column),
            None if has_words or column.missing.all() else chunk,
            (chunk, tuple(map(str, column.labels[:3]))) if has_words else None,
            bool(column.missing.any()),
            bool(finite.any()),
            tally,
            filled,
        )


def _listed(X, j: int, column: Column) -> tuple | None:
    if column.labels is None:
        return ()
    known = _frames.labels(_frames.column(X, j)) if _frames.is_frame(X) else None
    return None if known is None else tuple(known.tolist())


@dataclass(frozen=True, eq=False)
class FiniteNumbers:
    """The finite numbers of columns, by the number of the column.

    Parameters
    ----------
    absent : float
        What an absent entry of a sparse matrix means.
    """

    absent: float

    def __call__(self, X, j: int) -> tuple[np.ndarray, np.ndarray]:
        values = read_column(X, j, absent=self.absent).values
        return values, np.isfinite(values)


def survey_columns(passes: Passes, survey: SurveyPass) -> tuple[dict[int, Survey], dict]:
    """A pass over the rows that looks at columns.

    Returns
    -------
    surveys : dict of int to Survey
    ordered : dict of int to PassedNumbers
        The numbers that were counted.

    Raises
    ------
    ValueError
        If a column holds numbers in some chunks and labels in others.
    """
    surveys = passes.add_up(survey)
    for found in surveys.values():
        found.check()
    ordered = {}
    for j, found in surveys.items():
        if found.tally is not None and found.labels is None:
            ordered[j] = PassedNumbers()
            ordered[j].refine(found.tally)
    return dict(surveys), ordered


def place_in(labels: np.ndarray, column: Column) -> np.ndarray:
    """Where the labels of some rows stand among those of all, -1 for missing."""
    if column.labels is None:  # all are missing
        return np.full(len(column.values), -1, dtype=np.intp)
    known = {label: i for i, label in enumerate(labels.tolist())}
    place = np.array([*(known[label] for label in column.labels.tolist()), -1], dtype=np.intp)
    return place[np.where(column.missing, -1, column.values).astype(np.intp)]
