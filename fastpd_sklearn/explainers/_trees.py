"""What the explainers of tree ensembles have in common: reading the model."""

from __future__ import annotations

from typing import NamedTuple

from sklearn.pipeline import Pipeline

from fastpd_sklearn.explainers._base import BaseExplainer
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._response import check_additive
from fastpd_sklearn.forest import Reader, Reading, find_reader
from fastpd_sklearn.forest._frames import is_frame
from fastpd_sklearn.forest._parity import check_reading


class OpenModel(NamedTuple):
    """A model with its reader and what that reads."""

    model: object
    reader: Reader
    reading: Reading


class TreeExplainer(BaseExplainer):
    """Base of explainers whose engine is a :class:`TreeEngine`."""

    _engine_class: type[TreeEngine]

    def _open_model(self, model) -> OpenModel:
        reader = find_reader(model)
        if reader is None:
            hint = (
                " Of a pipeline explain the last step, on the transformed rows: "
                "fit(pipe[-1], pipe[:-1].transform(X))"
            )
            raise TypeError(
                f"{type(self).__name__} explains tree ensembles and cannot read a "
                f"{type(model).__module__.partition('.')[0]} {type(model).__name__}; it reads "
                f"{supported_models()}. Explain any other model with VanillaPDExplainer."
                f"{hint if isinstance(model, Pipeline) else ''}"
            )
        return OpenModel(model, reader, reader.read(model))

    def _model_columns(self, opened: OpenModel, X) -> tuple[int | None, tuple[str, ...] | None]:
        input_map = opened.reading.input_map
        if is_frame(X) and input_map.has_names(X.columns):
            return input_map.n_columns, None  # the names are as good as the user's own
        return input_map.n_columns, input_map.names

    def _make_engine(self, opened: OpenModel, X, players):
        model, reader, reading = opened
        check_additive(self.response_method, reading.head)
        if X is not None:
            reading = reading._replace(input_map=reading.input_map.settled(X))
            reading.input_map.open(X)  # which names a column of words, as no library does
        engine = self._engine_class(reading, players, self.n_jobs)
        if X is not None:
            check_reading(
                reader,
                model,
                reading,
                X,
                engine.predict_inputs,
                random_state=self.random_state,
            )
        elif engine.coverage is None:
            raise ValueError(
                f"{type(model).__name__} does not say how its nodes were covered in training; "
                "call fit(model, background) to count that on a background"
            )
        return engine, reading.head

    def _explains(self, model, engine: TreeEngine) -> bool:
        if find_reader(model) is None:
            return False
        return engine.forest_digest == self._open_model(model).reading.forest.digest()


def supported_models() -> str:
    """Which models the readers take, for messages."""
    return (
        "scikit-learn's decision trees, forests, gradient boosting, histogram gradient boosting "
        "and isolation forest, XGBoost's and LightGBM's boosters and estimators, scikit-learn's "
        "ensembles, searches and target transformations of these where they stay sums of trees, "
        "and what other packages register"
    )
