"""Reader of pipelines whose last step is a tree ensemble, on the columns that go in first."""

from __future__ import annotations

import copy
import pickle
from dataclasses import dataclass, replace

import joblib
import numpy as np
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from fastpd_sklearn.forest import _frames, _rows
from fastpd_sklearn.forest._inputs import InputMap, Inputs
from fastpd_sklearn.forest._lineage import (
    Origin,
    Traced,
    does_nothing,
    raw_origins,
    tied_columns,
    trace_steps,
)
from fastpd_sklearn.forest._registry import Reader, Reading, find_reader

Steps = tuple[tuple[str, object], ...]


@dataclass(frozen=True, eq=False)
class PipelineMap:
    """From raw columns to the inputs of a forest, through the steps of a pipeline.

    It does for a pipeline what :class:`InputMap` does for a model.

    Parameters
    ----------
    steps : tuple of (str, transformer)
        Fitted, without those that do nothing.
    inner : InputMap
        From the preprocessed columns to the inputs of the forest.
    n_columns : int or None
        Number of raw columns; None where no step says.
    names : tuple of str, or None
        Names of the raw columns, where the first step knows them.
    origins : tuple of Origin
        Of every input, once the map is :meth:`settled`.
    """

    steps: Steps
    inner: InputMap
    n_columns: int | None
    names: tuple[str, ...] | None
    origins: tuple[Origin, ...] = ()

    @property
    def allow_nan(self) -> bool:
        """Whether the last step accepts missing values."""
        return self.inner.allow_nan

    @property
    def allow_inf(self) -> bool:
        """Whether the last step accepts infinity."""
        return self.inner.allow_inf

    def has_names(self, names) -> bool:
        """See :meth:`InputMap.has_names`."""
        return self.names is None or tuple(names) == self.names

    def trace(self, n_columns: int) -> list[Origin]:
        """Where the inputs come from if there are so many raw columns."""
        return trace_steps(self.steps, raw_origins(n_columns), self.inner.n_columns)

    def tied_columns(self, n_columns: int) -> list[tuple[str, list[int]]]:
        """See :func:`tied_columns`."""
        return tied_columns(self.trace(n_columns))

    def settled(self, X) -> PipelineMap:
        """The same map with steps of its own, and origins.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns), or None
            The background, of which the width and dtypes matter.

        Returns
        -------
        PipelineMap
            The user may refit the pipeline without it noticing.
        """
        n_columns, names = self.n_columns, self.names
        if X is not None:
            n_columns = X.shape[1]
            found = _rows.column_names(X)
            names = tuple(found) if names is None and found is not None else names
        own = replace(
            self,
            steps=copy.deepcopy(self.steps),
            n_columns=n_columns,
            names=names,
            origins=tuple(self.trace(n_columns)),
        )
        if X is None:
            return own
        row = own.transform(_rows.take(X, slice(0, 1)))
        return replace(own, inner=self.inner.settled(row))

    def owner(self, players) -> np.ndarray:
        """See :meth:`InputMap.owner`; the players must not tear apart what a step mixes."""
        player_of = {int(j): player for player, columns in enumerate(players) for j in columns}
        # A constant belongs to nobody: any player will do.
        owners = [player_of[min(origin.columns, default=0)] for origin in self.origins]
        return np.array(owners, dtype=np.int32)

    def sentinels(self) -> np.ndarray:
        """See :meth:`InputMap.sentinels`; a last step that reads for models knows theirs."""
        last = self.steps[-1][1]
        return last.sentinels() if isinstance(last, Traced) else self.inner.sentinels()

    def describe(self, j: int) -> str:
        """Input ``j`` in words, for messages."""
        columns = sorted(self.origins[j].columns)
        names = [k if self.names is None else self.names[k] for k in columns]
        return f"column {j} of the preprocessed X, which is made of {names}"

    def transform(self, X):
        """What the pipeline hands to its last step.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
            A copy is transformed, since steps may write to what they are given.

        Returns
        -------
        array, sparse matrix or data frame of shape (n_rows, n_inputs)
        """
        X = _copied(X)
        for _, step in self.steps:
            X = step.transform(X)
        shape = np.shape(X)
        if len(shape) != 2 or shape[1] != self.inner.n_columns:
            raise ValueError(
                f"the steps {[name for name, _ in self.steps]} turn X into shape {shape}, and the "
                f"model after them takes {self.inner.n_columns} columns; the number of columns "
                "that a step gives must not depend on the rows"
            )
        return X

    def open(self, X) -> Inputs:
        """See :meth:`InputMap.open`."""
        return self.inner.open(self.transform(X))

    def same_as(self, other) -> bool:
        """Whether another map is of the same fitted steps."""
        if not isinstance(other, PipelineMap):
            return False
        try:
            return joblib.hash(self.steps) == joblib.hash(other.steps)
        except (pickle.PicklingError, AttributeError, TypeError):  # such as a lambda
            return False


def _copied(X):
    if isinstance(X, np.ndarray):
        return X.copy(order="K")
    return X.copy() if _frames.is_pandas(X) or not _frames.is_frame(X) else X.clone()


class PipelineReader:
    """Reads a pipeline by the reader of its last step.

    Parameters
    ----------
    inner : Reader
        That of the last step.
    """

    supported = "pipelines that end in any of the others"

    def __init__(self, inner: Reader) -> None:
        self.inner = inner
        self.name = inner.name
        self.tolerance = inner.tolerance

    def accepts(self, model) -> bool:
        """Whether the model is a pipeline with a last step that the inner reader takes."""
        return isinstance(model, Pipeline) and self.inner.accepts(_split(model)[1])

    def read(self, model) -> Reading:
        """See :class:`Reader`."""
        steps, last = _split(model)
        reading = self.inner.read(last)
        if not steps:
            return reading
        n_columns, names = _columns_in(steps[0][1])
        return reading._replace(input_map=PipelineMap(steps, reading.input_map, n_columns, names))

    def predict_raw(self, model, X) -> np.ndarray:
        """The raw prediction of the last step on what the pipeline's own steps make of ``X``."""
        return self.inner.predict_raw(_split(model)[1], self._preprocess(model, X))

    def last_step(self, model, reading: Reading, X):
        """The last step, for checks that make values for its own columns.

        Parameters
        ----------
        model : Pipeline
        reading : Reading
            Of the pipeline.
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        reader : Reader
        model : object
        reading : Reading
        X : array, sparse matrix or data frame of shape (n_rows, n_inputs)
        """
        input_map = getattr(reading.input_map, "inner", reading.input_map)
        return (
            self.inner,
            _split(model)[1],
            reading._replace(input_map=input_map),
            self._preprocess(model, X),
        )

    def _preprocess(self, model, X):
        X = _copied(X)
        for _, step in _split(model)[0]:
            X = step.transform(X)
        return X


def find_pipeline_reader(model: Pipeline) -> PipelineReader | None:
    """The reader of a pipeline; None if its last step is none that can be read."""
    last = _split(model)[1]
    inner = None if last is None or isinstance(last, str) else find_reader(last)
    return None if inner is None else PipelineReader(inner)


def _split(model: Pipeline) -> tuple[Steps, object]:
    """The transformers of a pipeline, and of one that is its last step, and the model."""
    steps: list[tuple[str, object]] = []
    last: object = model
    while isinstance(last, Pipeline | FrozenEstimator):
        if isinstance(last, FrozenEstimator):
            last = last.estimator
            continue
        *before, (_, last) = last.steps
        steps += [(name, step) for name, step in before if not does_nothing(step)]
    return tuple(steps), last


def _columns_in(step) -> tuple[int | None, tuple[str, ...] | None]:
    n_columns = getattr(step, "n_features_in_", None)
    names = getattr(step, "feature_names_in_", None)
    return (
        None if n_columns is None else int(n_columns),
        None if names is None else tuple(str(name) for name in names),
    )
