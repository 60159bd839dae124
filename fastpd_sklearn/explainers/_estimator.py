"""What all explainers have in common: both forms of fit, columns and names, tags."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import validate_data

from fastpd_sklearn.core.threads import preferring
from fastpd_sklearn.explainers import _checks, _models, _routing, _sources
from fastpd_sklearn.explainers._pickling import PackedModelMixin
from fastpd_sklearn.explainers._response import input_tags_of


class ModelExplainer(PackedModelMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of estimators that learn how a model behaves over a background.

    A subclass has the parameter ``estimator``, checks its others in :meth:`_check_params`, and
    says what it learns of a model in :meth:`_learn`, which leaves ``_fitted``, an object with
    the ``tags`` of the model.
    """

    _background_optional = False
    _chunks_remedy = "go through the chunks yourself"
    _sample_remedy = "fit to a sample of the rows that fits into memory"

    @abstractmethod
    def _check_params(self) -> None:
        """Refuse parameters that make no sense, before any work is done."""

    @abstractmethod
    def _learn(self, model, background, sample_weight) -> None:
        """Fit to a fitted model and a background, neither of which may be changed."""

    def _open_model(self, model):
        """Whatever :meth:`_make_engine` is to work on; the model itself if not overridden."""
        return model

    def _model_columns(self, opened, X) -> tuple[int | None, tuple[str, ...] | None]:
        """Number and names of the columns that ``X`` is to have, as far as the model knows them.

        Parameters
        ----------
        opened : object
            From :meth:`_open_model`.
        X : array, sparse matrix or data frame, or None
            The background.
        """
        return _models.columns_of(opened)

    def fit(self, X, y=None, *, sample_weight=None, **fit_params):
        """Learn how a model behaves over a background.

        Two forms: ``fit(model, background)`` explains a fitted model as it is;
        ``fit(X, y)``, as a pipeline calls it, fits a clone of ``estimator`` on ``X`` and ``y``
        and takes ``X`` for the background. There, a ``FrozenEstimator`` is explained as it is,
        and so is a fitted ``estimator`` if there is no ``y``.

        A ``Pipeline`` that ends in such a model is explained on the columns that go into its
        first step; those that a step mixes, such as ``PCA``, play as one feature. Steps of
        scikit-learn that work column by column are known,
        :func:`~fastpd_sklearn.forest.register_transformer` tells of others.

        The background need not be in memory. It may be the path of a
        Parquet file or folder, a ``pyarrow.dataset.Dataset``, a ``pyarrow.RecordBatchReader``, or
        an iterable of chunks: arrays, sparse matrices, data frames or record batches, or tuples of
        one of these and its weights. These are read once, one chunk at a time. Of a Dask array or
        data frame each worker takes its own part, and what comes home is their sum.
        ``ICEExplainer`` and ``ALEExplainer`` go through all of them several times, which generators
        do not allow. See :doc:`/large_data`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), or model
            The rows to fit the estimator on, or the fitted model to explain.
        y : array-like of shape (n_rows,), or the background of shape (n_rows, n_columns)
            The target, or the background if ``X`` is a model.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows of the background, and of the fit of the estimator if there is
            one; with metadata routing only if it requests them:
            ``estimator.set_fit_request(sample_weight=True)``. Of a background in chunks: the name
            of their column, or of Dask a collection with the same chunks.
        **fit_params : dict
            What the fit of the estimator requests beside the weights. Only with
            ``sklearn.set_config(enable_metadata_routing=True)``.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For bad input; the message says which argument and what to do.
        sklearn.exceptions.NotFittedError
            If the model to explain is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> FastPDExplainer().fit(model, X, sample_weight=[1, 1, 3, 3]).intercept_
        array([3.])
        >>> explainer = FastPDExplainer(DecisionTreeRegressor()).fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer.intercept_
        array([2.])
        """
        self._check_params()
        _models.check_order(X, y, type(self).__name__)
        if _sources.is_source(X):
            X, y = _models.frozen_model(self, X, y), X
        if _models.is_model(X):
            model, background = _models.unfreeze(X), y
            _models.check_fitted(X)
            _routing.refuse_arguments(self, fit_params)
            if background is None and not self._background_optional:
                raise ValueError(
                    f"{type(self).__name__}.fit(model) lacks the background; call fit(model, "
                    "background) with rows that the model could have been fitted on"
                )
        else:
            _checks.check_weights(sample_weight, _checks.check_rows(X).shape[0])
            model, background = _models.fit_model(self, X, y, sample_weight, fit_params), X
        with preferring(self.n_jobs):
            self._learn(model, background, sample_weight)
        return self

    def _forget(self) -> None:
        """Drop what an earlier fit has left."""
        own = vars(self)
        if "_packed" in own and not hasattr(self, "estimator"):
            self.detach()  # its library is not installed, and another model is about to come
        for name in [name for name in own if name.endswith("_") and not name.startswith("_")]:
            del own[name]
        own.pop("_fitted", None)

    def _set_columns(self, model, opened, background):
        """Check the background against the model's columns and note them."""
        n_columns, names = self._model_columns(opened, background)
        if n_columns is not None:
            self.n_features_in_ = int(n_columns)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        if background is None:
            if n_columns is None:
                raise ValueError(
                    f"{type(model).__name__} does not say how many columns it takes; call "
                    "fit(model, background)"
                )
            return None
        _sources.refuse_source(background, self._sample_remedy)
        X = _checks.check_rows(background)
        if names is None:
            # The model knows no names, so that the background's are the user's.
            if n_columns is not None and X.shape[1] != n_columns:
                self._check_columns(np.empty((1, X.shape[1])))
            validate_data(self, X, reset=True, skip_check_array=True)
        else:
            self._check_columns(X)
        return X

    def _check_columns(self, X) -> None:
        validate_data(self, X, reset=False, skip_check_array=True)

    def _check_columns_of(self, other: ModelExplainer) -> None:
        """Refuse an explainer of other columns, or of another response."""
        for name in ("n_features_in_", "feature_names_in_", "response_method_"):
            one, two = getattr(self, name, None), getattr(other, name, None)
            if not np.array_equal(one, two):
                raise ValueError(
                    f"merge: the two explainers differ in {name}, {one} and {two}; fit both with "
                    "the same parameters, on parts of a background with the same columns"
                )

    def _check_X(self, X):
        """Rows that a fitted explainer is given."""
        if _models.is_model(X):
            raise TypeError(
                f"expected rows of data, got a model, a {type(X).__name__}; to explain it, use "
                "fit(model, X).transform(X)"
            )
        _sources.refuse_source(X, self._chunks_remedy)
        X = _checks.check_rows(X)
        self._check_columns(X)
        return X

    def _progress(self) -> str:
        return type(self).__name__ if self.verbose else ""

    def _given_names(self, input_features) -> list[str] | None:
        """Names of columns as ``get_feature_names_out`` is given them, checked."""
        if input_features is None:
            return None
        names = [str(name) for name in input_features]
        known = getattr(self, "feature_names_in_", None)
        if known is not None and names != list(known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        return names

    def get_metadata_routing(self):
        """Who asks for which metadata, for scikit-learn's metadata routing.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter
            The explainer's own request, for the weights of its background, and those of the
            estimator's ``fit``.

        Examples
        --------
        >>> from sklearn import config_context
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> with config_context(enable_metadata_routing=True):
        ...     model = DecisionTreeRegressor().set_fit_request(sample_weight=True)
        ...     routing = FastPDExplainer(model).get_metadata_routing()
        >>> routing.consumes("fit", ["sample_weight"])
        {'sample_weight'}
        """
        return _routing.router_of(self)

    def __sklearn_is_fitted__(self) -> bool:
        return "_fitted" in vars(self)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        fitted = vars(self).get("_fitted")
        values = self._tag_values() if fitted is None else fitted.tags
        tags.target_tags.required = values["required"]
        for kind in ("allow_nan", "sparse", "categorical"):
            setattr(tags.input_tags, kind, values.get(kind, False))
        return tags

    def _tag_values(self) -> dict[str, bool]:
        if self.estimator is None:
            return {"required": False}
        frozen = isinstance(self.estimator, FrozenEstimator)
        model = _models.unfreeze(self.estimator)
        required = not frozen and hasattr(type(model), "fit") and _models.needs_y(model)
        return {"required": required, **input_tags_of(model)}
