"""What the explainers of tree ensembles have in common: reading the model."""

from __future__ import annotations

import warnings
from typing import ClassVar, NamedTuple

from sklearn.pipeline import Pipeline

from fastpd_sklearn.explainers import _checks, _sources
from fastpd_sklearn.explainers._base import BaseExplainer
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._response import check_additive
from fastpd_sklearn.explainers._surrogate import (
    StandIn,
    check_surrogate,
    needs_surrogate,
    train_surrogate,
)
from fastpd_sklearn.forest import Head, InputMap, Reader, Reading, find_reader
from fastpd_sklearn.forest._frames import is_frame
from fastpd_sklearn.forest._parity import check_reading
from fastpd_sklearn.forest._pipeline import PipelineMap
from fastpd_sklearn.forest._proof import check_lineage


class OpenModel(NamedTuple):
    """A model with its reader and what that reads."""

    model: object
    reader: Reader
    reading: Reading


class TreeExplainer(BaseExplainer):
    """Base of explainers whose engine is a :class:`TreeEngine`."""

    _engine_class: type[TreeEngine]
    _packed_names: ClassVar[tuple[str, ...]] = (
        "estimator",
        "estimator_",
        "surrogate",
        "surrogate_",
    )

    def __init__(
        self,
        estimator=None,
        *,
        output="pd",
        features=None,
        max_order="auto",
        target=None,
        groups=None,
        response_method="auto",
        surrogate=None,
        n_jackknife=0,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            estimator,
            output=output,
            features=features,
            max_order=max_order,
            target=target,
            groups=groups,
            response_method=response_method,
            n_jackknife=n_jackknife,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.surrogate = surrogate

    def _check_params(self) -> None:
        super()._check_params()
        check_surrogate(self.surrogate)

    def _learn(self, model, background, sample_weight) -> None:
        if not needs_surrogate(self.surrogate, model):
            super()._learn(model, background, sample_weight)
            return
        if background is None:
            raise ValueError(
                f"surrogate={self.surrogate!r}: a surrogate is trained on a background; call "
                "fit(model, background)"
            )
        _sources.refuse_source(
            background, "a surrogate is trained on such rows, so fit to a sample of them"
        )
        X = _checks.check_rows(background)
        weights = _checks.check_weights(sample_weight, X.shape[0])
        method, seed = self.response_method, self.random_state
        stand_in = train_surrogate(self.surrogate, model, X, weights, method, seed)
        super()._learn(stand_in, background, sample_weight)
        self.estimator_, self.surrogate_ = model, stand_in.model
        self.surrogate_score_ = stand_in.score

    def detach(self):
        """Forget the model, and its surrogate; explaining goes on without them.

        Returns
        -------
        self : object
            With ``estimator=None`` and ``surrogate=None``, without ``estimator_`` and
            ``surrogate_``.

        Examples
        --------
        >>> import pickle
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer(output="shap").fit(model, X)
        >>> whole = len(pickle.dumps(explainer))
        >>> len(pickle.dumps(explainer.detach())) < whole
        True
        >>> explainer.transform(X[3:])
        array([[3., 3.]])
        """
        super().detach()
        vars(self).pop("surrogate_", None)
        self.surrogate = None
        return self

    def _open_model(self, model) -> OpenModel:
        if isinstance(model, StandIn):
            _, reader, reading = self._open_model(model.model)
            return OpenModel(model.model, reader, reading._replace(head=model.head))
        reader = find_reader(model)
        if reader is None:
            last = model[-1] if isinstance(model, Pipeline) else model
            last = model if isinstance(last, str) else last  # a pipeline without a model
            raise TypeError(
                f"{type(self).__name__} explains tree ensembles and cannot read a "
                f"{type(last).__module__.partition('.')[0]} {type(last).__name__}"
                f"{'' if last is model else ', the last step of the Pipeline'}; it reads "
                f"{supported_models()}, and pipelines that end in one of these. "
                "Explain any other model by surrogate='auto', or with VanillaPDExplainer."
            )
        return OpenModel(model, reader, reader.read(model))

    def _model_columns(self, opened: OpenModel, X) -> tuple[int | None, tuple[str, ...] | None]:
        return columns_as_read(opened.reading.input_map, X)

    def _tied_columns(self, opened: OpenModel, n_columns: int) -> list[tuple[str, list[int]]]:
        input_map = opened.reading.input_map
        if not isinstance(input_map, PipelineMap):
            return []
        tied = input_map.tied_columns(n_columns)
        if n_columns > 1 and [len(columns) for _, columns in tied] == [n_columns]:
            warnings.warn(
                f"{tied[0][0]!r} mixes all {n_columns} columns of X, so that they play as one "
                "feature; explain what comes out of it by fit(pipe[-1], pipe[:-1].transform(X)), "
                "or declare a transformer that works column by column by "
                "fastpd_sklearn.forest.register_transformer",
                UserWarning,
                stacklevel=4,
            )
        return tied

    def _make_engine(self, opened: OpenModel, X, players):
        model, reader, reading = opened
        engine_class, head = self._choose_engine(reading, X)
        reading = reading._replace(input_map=reading.input_map.settled(X))
        if X is not None and not isinstance(reading.input_map, PipelineMap):
            reading.input_map.open(X)  # which names a column of words, as no library does
        engine = engine_class(reading, players, self.n_jobs)
        if X is not None:
            if isinstance(reading.input_map, PipelineMap):
                check_lineage(reading.input_map, X, engine.core.bins.columns)
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
        return engine, head

    def save(self, file) -> None:
        """Write the explainer to a file that holds no code, to be read by `load_explainer`.

        The file has the forest, the state of the background and all names, but not the model: it
        is a zip of arrays (``.npy``) and one JSON, in a versioned format.

        Parameters
        ----------
        file : str, path, or file object opened for writing bytes
            A file of that name is replaced once all is written.

        Raises
        ------
        ValueError
            If the model is a pipeline with steps before the trees, if its response is that of
            another estimator, as that of a stack, or if a label is neither a number nor text; a
            pickle takes these.
        sklearn.exceptions.NotFittedError
            If the explainer is not fitted.

        Examples
        --------
        >>> import io
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.explainers import load_explainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> file = io.BytesIO()
        >>> FastPDExplainer(output="shap").fit(model, X).save(file)
        >>> _ = file.seek(0)
        >>> load_explainer(file).transform(X[3:])
        array([[3., 3.]])
        """
        from fastpd_sklearn.explainers._saving import save_explainer  # which knows this class

        save_explainer(self, file)

    def _choose_engine(self, reading: Reading, X) -> tuple[type[TreeEngine], Head]:
        """The engine for a model and a background, and the head of the response explained."""
        check_additive(self.response_method, reading.head)
        return self._engine_class, reading.head

    def _explains(self, model, engine: TreeEngine) -> bool:
        if hasattr(self, "surrogate_score_"):
            return model is self.estimator_
        if find_reader(model) is None:
            return False
        reading = self._open_model(model).reading
        if isinstance(engine.input_map, PipelineMap) and not engine.input_map.same_as(
            reading.input_map
        ):
            return False
        return engine.forest_digest == reading.forest.digest()


def columns_as_read(input_map: InputMap, X) -> tuple[int | None, tuple[str, ...] | None]:
    """Number and names of the columns that ``X`` is to have, as far as a reader knows them.

    Parameters
    ----------
    input_map : InputMap
    X : array, sparse matrix or data frame, or None

    Returns
    -------
    n_columns : int
    names : tuple of str, or None
        None where the user's own names are as good as the model's.
    """
    if is_frame(X) and input_map.has_names(X.columns):
        return input_map.n_columns, None
    return input_map.n_columns, input_map.names


def supported_models() -> str:
    """Which models the readers take, for messages."""
    return (
        "scikit-learn's decision trees, forests, gradient boosting, histogram gradient boosting "
        "and isolation forest, XGBoost's and LightGBM's boosters and estimators, CatBoost's "
        "estimators, treelite's models, forests of boxes (Forest.from_boxes), scikit-learn's "
        "ensembles, searches and target transformations of these where they stay sums of trees, "
        "and what other packages register"
    )
