"""What a fitted model says with some of its features averaged out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.decomposition._removal_engines import (
    KEPT,
    REMOVED,
    MarginRemovalEngine,
    PredictedRemovalEngine,
    ResponseRemovalEngine,
)
from fastpd_sklearn.explainers import (
    FastPDExplainer,
    VanillaPDExplainer,
    _checks,
    _models,
    _sources,
)
from fastpd_sklearn.explainers._estimator import ModelExplainer
from fastpd_sklearn.explainers._players import Players, as_list
from fastpd_sklearn.explainers._response import Response, response_head
from fastpd_sklearn.explainers._trees import OpenModel
from fastpd_sklearn.forest import Head, NoSumOfTreesError, _rows, find_reader

SCALES = ("auto", "raw", "response")


class _TwoPlayers:
    """An explainer of the kept columns; its ``features`` are those that are removed.

    All other players play as one, so that partial dependence on it is the response without the
    removed ones.
    """

    def _make_players(self, names, tied) -> Players:
        players = super()._make_players(names, tied)
        removed = {k for feature in self.features for k in players.find_term(feature)}
        sides = [
            np.array([j for k in side for j in players.columns[k]], np.intp)
            for side in (sorted(removed), sorted(set(range(len(players))) - removed))
        ]
        return Players(("removed", "kept"), tuple(sides), players.column_names)

    def _named_terms(self, players: Players) -> list[tuple[int]]:
        return [(KEPT,)]


class _TreeRemoval(_TwoPlayers, FastPDExplainer):
    def _open_model(self, model) -> OpenModel:
        # It has been read already, which takes a while, but on this machine only.
        opened = vars(self).pop("_opened", None)
        return super()._open_model(model) if opened is None else opened

    def _choose_engine(self, reading, X):
        if self.response_method == "raw" or reading.head.link_method is None:
            return MarginRemovalEngine, reading.head
        return ResponseRemovalEngine, response_head(reading.head)


class _PredictedRemoval(_TwoPlayers, VanillaPDExplainer):
    def _make_engine(self, model, X, players):
        respond = Response(model, self.response_method)
        n_outputs = respond(_rows.take(X, slice(0, 1))).shape[1]
        return PredictedRemovalEngine(respond, players[REMOVED], n_outputs), respond.head


# What scikit-learn calls them in messages about the rows.
_TreeRemoval.__name__ = _PredictedRemoval.__name__ = "FeatureRemover"


@dataclass(frozen=True, eq=False)
class FittedRemoval:
    """What a fitted :class:`FeatureRemover` predicts with.

    Parameters
    ----------
    explainer : BaseExplainer
        Its one term is the mean response.
    head : Head
        What that means: of the margins of trees, or of the averaged response itself.
    kind : str or None
        "classifier", "regressor", "ranker"; None for a booster.
    classes : ndarray of shape (n_classes,), or None
    tags : dict of str to bool
        What the model says of its input.
    model_tags : sklearn.utils.Tags or None
    """

    explainer: FastPDExplainer | VanillaPDExplainer
    head: Head
    kind: str | None
    classes: np.ndarray | None
    tags: dict[str, bool]
    model_tags: object

    def answers(self, method: str) -> bool:
        """Whether there is an answer of a method, "predict_proba" or "decision_function"."""
        if self.kind != "classifier":
            return False
        if method == "decision_function" and self.head.link_method == "predict_proba":
            return True
        return method in (*self.head.additive, self.head.link_method)

    def responses(self, X) -> np.ndarray:
        """The mean response, shape (n_rows, n_outputs)."""
        fitted = self.explainer._fitted
        return fitted.evaluate(X, fitted.recipe)[:, 0]

    def probabilities(self, X) -> np.ndarray:
        """Of every class, shape (n_rows, n_classes)."""
        mean = self.responses(X)
        if self.head.link_method == "predict_proba":
            mean = self.head.respond(mean)
        if len(self.classes) == 2 and mean.shape[1] == 1:
            return np.hstack([1.0 - mean, mean])
        return mean

    def decisions(self, X) -> np.ndarray:
        """Margins, shape (n_rows,) of two classes, else (n_rows, n_outputs)."""
        mean = self.responses(X)
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def predict(self, X) -> np.ndarray:
        """Class labels, or what the model predicts."""
        if self.kind == "classifier":
            return self.classes[self._winners(X)]
        mean = self.responses(X)
        if "predict" not in self.head.additive:
            mean = self.head.respond(mean)
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def _winners(self, X) -> np.ndarray:
        if len(self.classes) == 1:
            return np.zeros(X.shape[0], np.intp)
        if self.answers("predict_proba"):
            return self.probabilities(X).argmax(axis=1)
        decision = self.decisions(X)
        return (decision > 0).astype(np.intp) if decision.ndim == 1 else decision.argmax(axis=1)


def _answers(method: str):
    """Whether a remover has a method, for ``available_if``."""

    def check(self) -> bool:
        fitted = vars(self).get("_fitted")
        if fitted is not None:
            return fitted.answers(method)
        if method == "decision_function" and self.scale == "response":
            return False
        return hasattr(_models.unfreeze(self.estimator), method)

    return check


class FeatureRemover(ModelExplainer):
    """Predict with a model as if it did not know some features.

    The removed features are averaged out of the fitted model, without fitting it again: the
    prediction for a row ``x`` is the weighted mean, over the rows ``b`` of the background, of the
    model's response to ``x`` with the removed columns set to those of ``b``. That is partial
    dependence on all other features together, and the sum of all components of the functional
    decomposition in which no removed feature takes part. Nothing that the model has learnt of the
    removed features is left, interactions included; what other features tell of them
    still counts as far as the model has used it.

    For tree ensembles it is exact and takes a walk of the background's removed columns down the
    trees, once, and one of each row that is predicted, however deep they are. Any other model is
    called for each row with each different value of the removed columns.

    Parameters
    ----------
    estimator : object, default=None
        The model, a classifier or a regressor: fitted by ``fit(X, y)``, or left as it is if it
        is a ``FrozenEstimator``. Not needed for ``fit(model, background)``.
    features : list of int, str, or tuples of them, default=()
        What to remove: columns by number or name, groups by name. None at all, ``()``, leaves the
        model as it is.
    groups : dict of str to list of int or str, default=None
        Names for columns that are to be removed together, such as
        ``{"address": ["zip", "city"]}``.
    scale : {"auto", "raw", "response"}, default="auto"
        What is averaged. "raw": what the trees add up to, which then goes through the inverse
        link: the margin of a boosted classifier, the logarithm of a Poisson prediction. This
        removes components. "response": ``predict_proba`` or ``predict`` itself, so that the mean
        of the predictions stays what it was. The two are the same where there is no link.
        "auto": "raw" for tree ensembles, "response" for models that are no sum of trees, such as
        calibrated classifiers and soft votes of boosters, which have no other.
    n_jobs : int or None, default=None
        Number of threads; None is the OpenMP default (``OMP_NUM_THREADS``, threadpoolctl), -1
        all processors. The result is the same to the last bit.
    random_state : int, RandomState instance or None, default=None
        Which of the rows that are made from the forest's own thresholds are checked at
        ``fit``, where there are very many.

    Attributes
    ----------
    estimator_ : object
        The model.
    removed_features_ : tuple of str
        Names of the columns that are averaged out.
    classes_ : ndarray of shape (n_classes,)
        Class labels; classifiers only.
    n_features_in_ : int
        Number of columns, the removed ones included.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where all are strings.

    See Also
    --------
    FastPDExplainer : What the features do.

    Notes
    -----
    The removed columns of the rows to predict have to be there, with values that the model takes;
    which ones does not matter.

    References
    ----------
    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023, section 4, for the
    removal of features after the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.decomposition import FeatureRemover
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 8.0])
    >>> FeatureRemover(features=[1]).fit(model, X).predict(X)
    array([1., 1., 6., 6.])
    """

    def __init__(
        self,
        estimator=None,
        *,
        features=(),
        groups=None,
        scale="auto",
        n_jobs=None,
        random_state=None,
    ):
        self.estimator = estimator
        self.features = features
        self.groups = groups
        self.scale = scale
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def _packed_names(self) -> tuple[str, ...]:
        # Where the model itself is called, a pickle without it would be of no use.
        fitted = vars(self).get("_fitted")
        calls = fitted is not None and isinstance(fitted.explainer, VanillaPDExplainer)
        return () if calls else ModelExplainer._packed_names

    # ------------------------------------------------------------------ fit

    def _check_params(self) -> None:
        _checks.check_choice("scale", self.scale, SCALES)
        _checks.check_n_jobs(self.n_jobs)
        check_random_state(self.random_state)
        if isinstance(self.estimator, str | list | tuple | np.ndarray):
            raise TypeError(
                f"estimator={self.estimator!r} is no model; name the features to remove by "
                "FeatureRemover(features=...)"
            )
        self._removed()

    def _removed(self) -> list:
        """The parameter ``features`` as a list."""
        if self.features is None:
            raise TypeError("features=None: name the features to remove, or () to remove none")
        is_empty = isinstance(self.features, list | tuple | np.ndarray) and not len(self.features)
        return [] if is_empty else as_list(self.features)

    def _learn(self, model, background, sample_weight) -> None:
        self._forget()
        kind = _models.kind_of(model)
        if kind not in ("classifier", "regressor", "ranker", None):
            raise TypeError(
                f"FeatureRemover predicts classifiers and regressors, and {type(model).__name__} "
                f"is a {kind}"
            )
        classes = _models.classes_of(model) if kind == "classifier" else None
        if kind == "classifier" and classes is None:
            raise ValueError(
                f"FeatureRemover predicts classifiers of one target, and this "
                f"{type(model).__name__} has several; remove features from one model a target"
            )
        explainer, head = self._make_explainer(model, kind)
        explainer.fit(model, background, sample_weight=sample_weight)
        if isinstance(explainer, FastPDExplainer):
            explainer.detach()  # the model is kept once, and not needed to predict
        self._fitted = FittedRemoval(
            explainer,
            head,
            kind,
            classes,
            tags=explainer._fitted.tags,
            model_tags=_models.tags_of(model),
        )
        self.estimator_ = model
        self.n_features_in_ = explainer.n_features_in_
        if hasattr(explainer, "feature_names_in_"):
            self.feature_names_in_ = explainer.feature_names_in_
        if classes is not None:
            self.classes_ = classes
        players = explainer._fitted.players
        self.removed_features_ = tuple(players.column_names[j] for j in players.columns[REMOVED])

    def _make_explainer(self, model, kind: str | None):
        """An explainer of the kept columns, and the head of the response that it explains."""
        params = {"features": self._removed(), "groups": self.groups}
        opened = self._open_trees(model, kind)
        head = None if opened is None else opened.reading.head
        if head is not None and (head.additive or self.scale != "raw"):
            is_sum = bool(head.additive)  # margins of several models, side by side, are none
            is_raw = head.link_method is None or (is_sum and self.scale != "response")
            params |= {"n_jobs": self.n_jobs, "random_state": self.random_state}
            explainer = _TreeRemoval(response_method="raw" if is_raw else "auto", **params)
            explainer._opened = opened
            return explainer, head if is_raw else response_head(head)
        if self.scale == "raw":
            raise ValueError(
                f"scale='raw': the answers of this {type(model).__name__} do not follow from a sum "
                "of trees; take scale='response', which averages the answers themselves"
            )
        method = "predict"
        if kind == "classifier":
            method = "predict_proba" if hasattr(model, "predict_proba") else "decision_function"
        head = Head(additive=(method, "raw"))
        return _PredictedRemoval(response_method=method, **params), head

    def _open_trees(self, model, kind: str | None) -> OpenModel | None:
        """A tree ensemble whose answers follow from the sum of its trees; None for others."""
        reader = find_reader(model)
        if reader is None:
            return None
        try:
            opened = OpenModel(model, reader, reader.read(model))
        except NoSumOfTreesError:
            return None
        if opened.reading.forest.is_linear:
            return None  # the walk that averages a player out takes leaves for constants
        head = opened.reading.head
        wanted = ("predict_proba", "decision_function") if kind == "classifier" else ("predict",)
        if self.scale == "response" and hasattr(model, "predict_proba"):
            wanted = ("predict_proba",)
        known = (*head.additive, head.link_method)
        # A booster, which is of no kind, predicts what is behind its link.
        return opened if kind is None or any(method in known for method in wanted) else None

    # -------------------------------------------------------------- predict

    def predict(self, X):
        """Predict without the removed features.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Of a Dask collection the answer is a lazy Dask array.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)
            The class of the largest probability, or margin, for classifiers; for regressors the
            mean prediction, or, on the raw scale, the inverse link of the mean.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import FeatureRemover
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> FeatureRemover(features=[1]).fit(model, X).predict(X)
        array([0., 0., 4., 4.])
        """
        check_is_fitted(self)
        if _sources.is_dask(X):
            return self._lazily(X, "predict")
        return self._fitted.predict(self._check_X(X))

    @available_if(_answers("predict_proba"))
    def predict_proba(self, X):
        """Probabilities of the classes without the removed features.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Of a Dask collection the answer is a lazy Dask array.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            With ``scale="response"`` the mean of the model's ``predict_proba``; on the raw
            scale the inverse link of the mean margin. In the order of ``classes_``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> from fastpd_sklearn.decomposition import FeatureRemover
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeClassifier().fit(X, ["no", "no", "no", "yes"])
        >>> FeatureRemover(features=[1]).fit(model, X).predict_proba(X)
        array([[1. , 0. ],
               [1. , 0. ],
               [0.5, 0.5],
               [0.5, 0.5]])
        """
        check_is_fitted(self)
        if _sources.is_dask(X):
            return self._lazily(X, "predict_proba")
        return self._fitted.probabilities(self._check_X(X))

    @available_if(_answers("decision_function"))
    def decision_function(self, X):
        """Margins without the removed features.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Of a Dask collection the answer is a lazy Dask array.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_classes)
            The mean margin; there is none where ``scale="response"`` averages probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.ensemble import GradientBoostingClassifier
        >>> from fastpd_sklearn.decomposition import FeatureRemover
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = GradientBoostingClassifier(n_estimators=3).fit(X, [0, 0, 1, 1])
        >>> without = FeatureRemover(features=[0]).fit(model, X)
        >>> bool(np.allclose(without.decision_function(X), model.decision_function(X).mean()))
        True
        """
        check_is_fitted(self)
        if _sources.is_dask(X):
            return self._lazily(X, "decision_function")
        return self._fitted.decisions(self._check_X(X))

    def score(self, X, y, sample_weight=None):
        """Accuracy of a classifier, R squared of a regressor.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), default=None

        Returns
        -------
        float

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import FeatureRemover
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> y = model.predict(X)
        >>> round(FeatureRemover(features=[1]).fit(model, X).score(X, y), 3)
        0.333
        """
        metric = accuracy_score if _models.kind_of(self) == "classifier" else r2_score
        predicted = self.predict(X)
        if _sources.is_dask(X):  # a number a row comes home
            y, predicted = np.asarray(y), predicted.compute()
        return metric(y, predicted, sample_weight=sample_weight)

    def _lazily(self, X, method: str):
        """The answer of a method for the rows of a Dask collection, a lazy array."""
        from fastpd_sklearn.distributed import map_lazily  # which knows explainers

        answer = _answer(method, self, self._fitted.explainer._fitted.template.row)
        return map_lazily(self, X, partial(_answer, method), answer.shape[1:], answer.dtype)

    # ---------------------------------------------------------- conventions

    def detach(self):
        """Forget the model; predicting goes on without it.

        Returns
        -------
        self : object
            With ``estimator=None`` and without ``estimator_``.

        Raises
        ------
        TypeError
            If the model is no tree ensemble: it is called to predict.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import FeatureRemover
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> remover = FeatureRemover(features=[1]).fit(model, X).detach()
        >>> hasattr(remover, "estimator_"), remover.predict(X)
        (False, array([0., 0., 4., 4.]))
        """
        if not self._packed_names:
            raise TypeError("FeatureRemover calls this model to predict and cannot do without it")
        return super().detach()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        fitted = vars(self).get("_fitted")
        unfitted = _models.unfreeze(self.estimator) if fitted is None else None
        known = _models.tags_of(unfitted) if fitted is None else fitted.model_tags
        if known is not None:
            tags.estimator_type = known.estimator_type
            tags.classifier_tags = known.classifier_tags
            tags.regressor_tags = known.regressor_tags
            required = tags.target_tags.required
            tags.target_tags = replace(known.target_tags, required=required)
        if tags.classifier_tags is not None:  # of one target, whatever the model could do
            tags.target_tags.multi_output = False
            tags.classifier_tags = replace(tags.classifier_tags, multi_label=False)
        return tags


def _answer(method: str, remover: FeatureRemover, X) -> np.ndarray:
    return getattr(remover, method)(X)
