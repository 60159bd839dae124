"""Accumulated local effects of rows that come in chunks, by several passes over them.

Effects are sums over rows once it is known where the bins are. Their edges are quantiles of all
rows, and the order of categories depends on all rows, too: both are found in passes before.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from fastpd_sklearn.explainers import _ale_compute, _category_order
from fastpd_sklearn.explainers._ale_bins import Bins, given_edges, number_bins, passed_edges
from fastpd_sklearn.explainers._ale_sums import AllSums, Settings
from fastpd_sklearn.explainers._columns import read_column
from fastpd_sklearn.explainers._local import Draft, takes_missing
from fastpd_sklearn.explainers._passes import Passes, Place, Sums, ask_all, first_pass
from fastpd_sklearn.explainers._surveys import (
    FiniteNumbers,
    SurveyPass,
    place_in,
    survey_columns,
)


@dataclass(frozen=True, eq=False)
class Points:
    """Where the bins of columns are, or their categories in order.

    Parameters
    ----------
    points : dict of int to ndarray
    labelled : frozenset of int
        Columns of categories.
    as_labels : frozenset of int
        Those that are categories though they hold numbers.
    absent : float
        What an absent entry of a sparse matrix means.
    """

    points: dict[int, np.ndarray]
    labelled: frozenset[int]
    as_labels: frozenset[int]
    absent: float

    def bins(self, X) -> dict[int, Bins]:
        """The bins of some rows."""
        out = {}
        for j, points in self.points.items():
            column = read_column(X, j, as_labels=j in self.as_labels, absent=self.absent)
            if j in self.labelled:
                out[j] = _ale_compute.label_bins(points, place_in(points, column))
            else:
                out[j] = number_bins(column.values, points)
        return out


@dataclass(frozen=True, eq=False)
class EffectsPass:
    """Adds up the local effects of rows.

    Parameters
    ----------
    draft : Draft
    points : Points
    settings : Settings
    """

    draft: Draft
    points: Points
    settings: Settings

    def __call__(self, X, weights, place: Place) -> AllSums:
        draft, points = self.draft, self.points
        n_outputs = len(draft.selection.outputs)
        sums = _ale_compute.new_sums(
            draft.terms, points.points, points.labelled, n_outputs, self.settings
        )
        _ale_compute.add_rows(
            sums,
            draft.responder,
            X,
            weights,
            points.bins(X),
            draft.selection,
            self.settings,
            start=place.row,
        )
        return AllSums(tuple(sums), takes_missing(draft.tags, X))


def find_points(passes: Passes, draft: Draft, settings: Settings) -> Points:
    """The edges of bins, and the orders of categories.

    Parameters
    ----------
    passes : Passes
    draft : Draft
    settings : Settings

    Returns
    -------
    Points
    """
    names, absent = draft.players.names, draft.responder.absent
    columns = sorted({j for term in draft.terms for j in term})
    given = {j: settings.points[j] for j in settings.points.keys() & set(columns)}
    surveys, ordered = survey_columns(
        passes,
        SurveyPass(
            names={j: names[j] for j in columns},
            as_labels=settings.categorical,
            absent=absent,
            counted=frozenset(columns) - given.keys(),
            edges=given,
            weighted=True,
        ),
    )
    labels = {j: survey.ordered_labels() for j, survey in surveys.items()}
    labelled = frozenset(j for j in columns if labels[j] is not None)
    for j in columns:
        if not surveys[j].has_finite:
            _ale_compute.refuse_empty(names[j])
    points = {}
    for j in given.keys() - labelled:
        edges = given_edges(names[j], given[j])
        points[j] = _ale_compute.filled_edges(names[j], edges, surveys[j].filled)
    asked = {j: partial(passed_edges, n_bins=settings.n_bins) for j in ordered}
    points |= ask_all(passes, ordered, asked, FiniteNumbers(absent))
    points |= _orders(passes, draft, settings, {j: labels[j] for j in labelled})
    return Points(points, labelled, settings.categorical, absent)


# ------------------------------------------------------------------- orders of categories


def _orders(passes: Passes, draft: Draft, settings: Settings, labels: dict) -> dict:
    """The labels of each column of labels in the order in which they are accumulated."""
    out, alike = {}, {}
    for j, found in labels.items():
        if j in settings.points:
            name = draft.players.names[j]
            out[j] = found[_ale_compute.given_order(name, found, settings.points[j])]
        elif settings.category_order == "coded" or len(found) < 3:
            out[j] = found
        else:
            alike[j] = found
    if alike:
        out |= _similar(passes, draft, settings, alike)
    return out


def _similar(passes: Passes, draft: Draft, settings: Settings, labels: dict) -> dict:
    """Labels of which neighbours are alike in all other columns."""
    names, absent = draft.players.names, draft.responder.absent
    everything = SurveyPass(
        names=dict(enumerate(names)),
        as_labels=settings.categorical,
        absent=absent,
        counted=frozenset(),
        edges={},
        weighted=False,
    )
    surveys, _ = survey_columns(passes, everything)
    others = {k: survey.ordered_labels() for k, survey in surveys.items()}
    pairs = [(j, k) for j in labels for k in others if k != j]
    # Where no label is missing, the other column has the same quantiles whichever column it is for.
    source = {
        (j, k): (j if surveys[j].has_missing else None, k) for j, k in pairs if others[k] is None
    }
    known = KnownNumbers(settings.categorical, absent)
    ordered = first_pass(passes, set(source.values()), known)
    edges = ask_all(
        passes, ordered, dict.fromkeys(ordered, _category_order.comparison_edges), known
    )
    cells = {(j, k): edges[source[j, k]] if others[k] is None else others[k] for j, k in pairs}
    counting = JointPass(labels, others, cells, settings.categorical, absent)
    counts = passes.add_up(counting)
    return {j: _in_order(found, j, counts, others) for j, found in labels.items()}


def _in_order(labels: np.ndarray, j: int, counts: Sums, others: dict) -> np.ndarray:
    distance = np.zeros((len(labels), len(labels)))
    for k in others:
        if k != j:
            distance += _category_order.distances(counts[j, k], others[k] is None)
    return labels[_category_order.order_by_distance(distance)]


@dataclass(frozen=True, eq=False)
class KnownNumbers:
    """Numbers of a column in the rows that have a label in another one.

    They are called ``(j, k)``: those of column ``k`` where column ``j`` has a label; ``j`` is None
    for all rows.

    Parameters
    ----------
    as_labels : frozenset of int
        Columns of numbers that are labels.
    absent : float
    """

    as_labels: frozenset[int]
    absent: float

    def __call__(self, X, name) -> tuple[np.ndarray, np.ndarray]:
        j, k = name
        values = read_column(X, k, absent=self.absent).values
        known = ~np.isnan(values)
        if j is not None:
            label = read_column(X, j, as_labels=j in self.as_labels, absent=self.absent)
            known &= ~label.missing
        return values, known


@dataclass(frozen=True, eq=False)
class JointPass:
    """Weighs rows by their label in one column and their place in another.

    Parameters
    ----------
    labels : dict of int to ndarray
        Of the columns that are to be put in order.
    others : dict of int to ndarray or None
        The labels of each column; None for numbers.
    cells : dict of (int, int) to ndarray
        By pair of columns: edges of the second one, or its labels.
    as_labels : frozenset of int
    absent : float
    """

    labels: dict[int, np.ndarray]
    others: dict[int, np.ndarray | None]
    cells: dict[tuple[int, int], np.ndarray]
    as_labels: frozenset[int]
    absent: float

    def __call__(self, X, weights, place: Place) -> Sums:
        columns = {
            k: read_column(X, k, as_labels=k in self.as_labels, absent=self.absent)
            for k in self.others
        }
        codes = {
            k: place_in(labels, columns[k])
            for k, labels in self.others.items()
            if labels is not None
        }
        out = Sums()
        for (j, k), cells in self.cells.items():
            place = codes.get(k)
            if place is None:
                place = _category_order.number_cells(columns[k].values, cells)
            out[j, k] = _category_order.joint_weights(
                codes[j], len(self.labels[j]), place, len(cells), weights
            )
        return out
