"""What the explainers that move columns of given rows have in common: ICE and ALE."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.utils import assert_all_finite, check_random_state

from fastpd_sklearn.explainers import _checks, _models, _sources
from fastpd_sklearn.explainers._chunked import ChunkedTransformerMixin
from fastpd_sklearn.explainers._columns import read_column
from fastpd_sklearn.explainers._estimator import ModelExplainer
from fastpd_sklearn.explainers._grid import Template, make_template
from fastpd_sklearn.explainers._moved_forest import (
    ForestResponder,
    absent_value,
    categorical_columns,
)
from fastpd_sklearn.explainers._moved_rows import PredictionResponder
from fastpd_sklearn.explainers._moves import Responder
from fastpd_sklearn.explainers._passes import Passes, StreamPasses
from fastpd_sklearn.explainers._players import Players, make_players
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import (
    RESPONSE_METHODS,
    Response,
    Selection,
    answering_method,
    input_tags_of,
    select_outputs,
)
from fastpd_sklearn.explainers._trees import OpenModel, columns_as_read
from fastpd_sklearn.forest import Head, Reading, _frames, _rows, find_reader
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._parity import check_reading
from fastpd_sklearn.forest._pipeline import PipelineMap


@dataclass(frozen=True, eq=False)
class Draft:
    """What the model and some rows say before the background is looked at.

    Parameters
    ----------
    attributes : dict of str to object
        Those of the explainer that follow from the model and the columns.
    responder : Responder
    players : Players
    terms : list of tuple of int
        Columns.
    names : list of tuple of str
        Theirs.
    selection : Selection
    tags : dict of str to bool
        What the model says of its input.
    """

    attributes: dict[str, object]
    responder: Responder
    players: Players
    terms: list[Term]
    names: list[tuple[str, ...]]
    selection: Selection
    tags: dict[str, bool]


class LocalExplainer(ChunkedTransformerMixin, ModelExplainer):
    """Base of explainers of any model that look at its response to moved columns."""

    def _check_params(self) -> None:
        _checks.check_choice("response_method", self.response_method, RESPONSE_METHODS)
        _checks.check_n_jobs(self.n_jobs)
        _checks.check_verbose(self.verbose)
        check_random_state(self.random_state)

    def _open_model(self, model) -> OpenModel:
        reader, reading = find_reader(model), None
        if reader is not None:
            try:
                reading = reader.read(model)
            except NotFittedError:
                raise
            except ValueError:  # it cannot be read, but it can be called
                reading = None
        return OpenModel(model, reader, reading)

    def _model_columns(self, opened: OpenModel, X) -> tuple[int | None, tuple[str, ...] | None]:
        if opened.reading is None:
            return _models.columns_of(opened.model)
        return columns_as_read(opened.reading.input_map, X)

    def _passes(self, model, background, sample_weight) -> Passes:
        """A background in chunks, to be gone through several times."""
        if _sources.is_dask(background):
            from fastpd_sklearn.distributed._passing import DaskPasses  # which knows explainers

            return DaskPasses(self, background, sample_weight)
        return StreamPasses(self, background, sample_weight, _models.columns_of(model)[1])

    def _draft(self, model, background, sample_weight) -> tuple[Draft, object, np.ndarray | None]:
        """What follows from the model and its columns, and the checked rows with their weights."""
        self._forget()
        opened = self._open_model(model)
        X = self._set_columns(model, opened, background)
        X, weights = self._weighed(X, sample_weight)
        players = make_players(self.n_features_in_, getattr(self, "feature_names_in_", None), None)
        terms = self._find_terms(players)
        responder, head = self._make_responder(opened, X, {j for term in terms for j in term})
        selection = select_outputs(self.target, head, responder.n_outputs)
        attributes = {
            "n_features_in_": self.n_features_in_,
            "response_method_": answering_method(self.response_method, head),
        }
        if hasattr(self, "feature_names_in_"):
            attributes["feature_names_in_"] = self.feature_names_in_
        if head.classes is not None:
            attributes["classes_"] = head.classes
        draft = Draft(
            attributes,
            responder,
            players,
            terms,
            [players.name(term) for term in terms],
            selection,
            {**self._tag_values(), **input_tags_of(model)},
        )
        return draft, X, weights

    def _finish(self, model, draft: Draft) -> None:
        """Set the attributes that a draft tells."""
        for name, value in draft.attributes.items():
            setattr(self, name, value)
        self.estimator_ = model
        self.terms_ = tuple(draft.names)

    def _open_chunk(self, X, sample_weight) -> tuple[object, np.ndarray | None]:
        """Checked rows of a chunk and their weights, those without weight aside."""
        X = _checks.check_rows(X)
        self._check_columns(X)
        return self._weighed(X, sample_weight)

    def _weighed(self, X, sample_weight) -> tuple[object, np.ndarray | None]:
        weights = _checks.check_weights(sample_weight, X.shape[0])
        X = X.tocsr() if sparse.issparse(X) else X
        if weights is not None and not weights.all():
            kept = np.flatnonzero(weights)
            X, weights = _rows.take(X, kept), weights[kept]
        return X, weights

    @abstractmethod
    def _find_terms(self, players: Players) -> list[Term]:
        """The columns to look at, by the parameter ``features``."""

    def _make_responder(self, opened: OpenModel, X, columns) -> tuple[Responder, Head]:
        """By the trees where the response is theirs or a function of their sum, else by calls.

        Parameters
        ----------
        opened : OpenModel
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        columns : iterable of int
            Those that will be moved.
        """
        method, reading = self.response_method, opened.reading
        reading = None if reading is None else _settled(reading, X)
        is_read = reading is not None and not reading.forest.is_linear
        if is_read and not _are_mixed(columns, reading.input_map):
            opened, head = opened._replace(reading=reading), reading.head
            method = head.natural if method == "auto" else method
            if method in head.additive:
                return self._read_responder(opened, X, None), head
            if method == head.link_method:
                answer = Head((method, "raw"), classes=head.classes, output_names=head.output_names)
                return self._read_responder(opened, X, head), answer
        respond = Response(opened.model, method)
        n_outputs = respond(_rows.take(X, slice(0, 1))).shape[1]
        absent, categorical = 0.0, frozenset()
        if reading is not None:
            absent = absent_value(reading.input_map)
            categorical = categorical_columns(reading.forest, reading.input_map)
        return PredictionResponder(respond, n_outputs, absent, categorical), respond.head

    def _read_responder(self, opened: OpenModel, X, head: Head | None) -> ForestResponder:
        model, reader, reading = opened
        reading.input_map.open(X)
        is_raw = isinstance(reading.input_map, PipelineMap)
        template = make_template(X) if is_raw else _row_template(X)
        responder = ForestResponder(reading.forest, reading.input_map, template, head, self.n_jobs)
        check_reading(
            reader, model, reading, X, responder.predict_inputs, random_state=self.random_state
        )
        return responder


def _settled(reading: Reading, X) -> Reading | None:
    """The reading for columns like those of ``X``; None if a step hides what it makes of them."""
    try:
        return reading._replace(input_map=reading.input_map.settled(X))
    except ValueError:
        if isinstance(reading.input_map, PipelineMap):
            return None
        raise


def _are_mixed(columns, input_map: InputMap | PipelineMap) -> bool:
    """Whether a step of a pipeline makes one column of some of these and others."""
    if not isinstance(input_map, PipelineMap):
        return False
    tied = {j for origin in input_map.origins if len(origin.columns) > 1 for j in origin.columns}
    return not tied.isdisjoint(columns)


def _row_template(X) -> Template:
    """A template to make rows by, without the points of plain numbers, which take a while."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf":
        return Template(X[:1].astype(np.float64), None, (False,) * X.shape[1])
    return make_template(X)


def takes_missing(tags: dict[str, bool], background) -> bool:
    """Whether a model takes missing or infinite numbers: it says so, or has been given some.

    Parameters
    ----------
    tags : dict of str to bool
        What the model says of its input; pipelines say what their first step says.
    background : array, sparse matrix or data frame of shape (n_rows, n_columns)
        Rows on which the model has been called.

    Returns
    -------
    bool
    """
    if tags["allow_nan"]:
        return True
    try:
        refuse_missing(background)
    except ValueError:
        return True
    return False


def refuse_missing(X) -> None:
    """Refuse missing and infinite numbers, for models that do not take them.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    """
    if not _frames.is_frame(X):
        assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X")
        return
    for j, name in enumerate(X.columns):
        column = read_column(X, j)
        if column.labels is None:
            assert_all_finite(column.values, input_name=f"X, column {name!r},")
