"""Which way partial dependence is computed for a model, and what it is there."""

from __future__ import annotations

import warnings
from functools import cached_property

import numpy as np
from sklearn.exceptions import NotFittedError

from fastpd_sklearn.explainers import (
    BaseExplainer,
    CategoryCurve,
    FastPDExplainer,
    LinearCurve,
    PathDependentExplainer,
    StepCurve,
)
from fastpd_sklearn.explainers._curve import piece_points
from fastpd_sklearn.explainers._models import classes_of, kind_of
from fastpd_sklearn.forest import Reading, _rows, find_reader
from fastpd_sklearn.inspection._grid import Column
from fastpd_sklearn.inspection._prediction import Predictions, check_individual
from fastpd_sklearn.inspection._response_method import as_in_sklearn

METHODS = ("auto", "recursion", "brute")


class Answers:
    """The response of a model, averaged over ``X`` or row by row, on any grid.

    Parameters
    ----------
    model : object
        Fitted.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : ndarray of shape (n_rows,) or None
    response_method : str
        The response by name; "raw" is the sum of the trees.
    explainer : BaseExplainer or None
        Not fitted yet; it knows the steps of the model. None for a model that is no tree
        ensemble, or is not to be taken for one.
    explained : bool
        Whether the explainer explains this very response, so that it has the averages too.
    background : bool
        Whether the explainer averages over ``X``.
    """

    def __init__(
        self,
        model,
        X,
        sample_weight: np.ndarray | None,
        response_method: str,
        explainer: BaseExplainer | None = None,
        explained: bool = False,
        background: bool = True,
    ) -> None:
        self._model = model
        self._X = X
        self._sample_weight = sample_weight
        self._response_method = response_method
        self._unfitted = explainer
        self._explained = explained
        self._background = background

    @cached_property
    def _explainer(self) -> BaseExplainer:
        if not self._background:
            return self._unfitted.fit(self._model)
        with warnings.catch_warnings():
            # Columns that play as one for the explainer can be set one by one by prediction.
            warnings.filterwarnings("ignore", ".* mixes all .* columns of X", UserWarning)
            return self._unfitted.fit(self._model, self._X, sample_weight=self._sample_weight)

    @cached_property
    def _predictions(self) -> Predictions:
        return Predictions(self._model, self._response_method, self._X, self._sample_weight)

    def average(
        self, columns: tuple[int, ...], axes: list[np.ndarray], data: list[Column]
    ) -> tuple[np.ndarray, object]:
        """Mean response at every point of a grid.

        Parameters
        ----------
        columns : tuple of int
        axes : list of ndarray
            The points of each column; the grid is their product.
        data : list of Column

        Returns
        -------
        average : ndarray of shape (n_outputs, n_points of the first column, ...)
        curve : StepCurve, LinearCurve, CategoryCurve or None
            The same as an exact function, for a single column where there is one.
        """
        if not self._explained or not all(map(self._plays_alone, columns)):
            return self._predictions.average(columns, axes), None
        if not self._background and any(column.labelled for column in data):
            return self._average_of_labels(columns, axes), None
        single = len(columns) == 1
        feature, grid = (columns[0], axes[0]) if single else (columns, list(axes))
        result = self._explainer.partial_dependence(feature, grid)
        return result.average, result.get("curve")

    def individual(self, columns: tuple[int, ...], axes: list[np.ndarray]) -> np.ndarray:
        """Response of every row at every point of a grid.

        Parameters
        ----------
        columns : tuple of int
        axes : list of ndarray

        Returns
        -------
        ndarray of shape (n_outputs, n_rows, n_points of the first column, ...)
        """
        walked = self._explained and self._background and len(columns) <= 2
        if not walked or not all(map(self._plays_alone, columns)):
            return self._predictions.individual(columns, axes)
        fitted = self._explainer._fitted
        term = tuple(fitted.players.find(column) for column in columns)
        grids = [
            fitted.template.rows({column: axis}) for column, axis in zip(columns, axes, strict=True)
        ]
        check_individual(self._X.shape[0], fitted.engine.n_outputs, axes)
        return fitted.engine.individual_response(self._X, term, grids)

    def steps(self, column: int, name) -> StepCurve | LinearCurve | None:
        """The curve of a column of numbers on the scale on which the trees add up.

        Parameters
        ----------
        column : int
        name : object
            What the user calls the column, for the message.

        Returns
        -------
        StepCurve, LinearCurve or None
            None where the model takes the column for categories.

        Raises
        ------
        ValueError
            If it has no steps.
        """
        if self._unfitted is None:
            raise ValueError(
                "grid_resolution='exact': the steps of a model are known of tree ensembles with "
                f"method='auto' or 'recursion', and {type(self._model).__name__} is looked at by "
                "prediction; give a number of points"
            )
        curve = None
        if self._plays_alone(column):
            curve = self._explainer.partial_dependence(column, [0.0]).get("curve")
        is_bent = isinstance(curve, LinearCurve) and not self._explained  # by an inverse link
        if curve is None or is_bent:
            raise ValueError(
                f"grid_resolution='exact': the response is no step function of {name!r}; give a "
                "number of points"
            )
        return None if isinstance(curve, CategoryCurve) else curve

    def responding(self, column: int, steps: StepCurve) -> StepCurve:
        """The curve of the response where the trees do not add up to it.

        Parameters
        ----------
        column : int
        steps : StepCurve
            From :meth:`steps`: what is constant between breaks stays so after the link.

        Returns
        -------
        StepCurve
        """
        if self._explained:
            return steps
        points = piece_points(steps.breaks, steps.strict, steps.single)
        missing = [] if steps.missing is None else [np.nan]
        levels = self._predictions.average((column,), [np.concatenate([points, missing])])
        return StepCurve(
            steps.breaks,
            levels[:, : len(points)],
            levels[:, -1] if missing else None,
            steps.strict,
            steps.single,
        )

    def _plays_alone(self, column: int) -> bool:
        """Whether the explainer can set a column without others, which a pipeline may mix."""
        if not self._background:
            return True  # there is no other way; the explainer says why it can't
        names = getattr(self._explainer, "feature_names_in_", None)
        name = f"x{column}" if names is None else names[column]
        return (name,) in self._explainer.terms_

    def _average_of_labels(self, columns, axes) -> np.ndarray:
        # An explainer without a background has seen no labels: show it rows that hold them.
        shape = tuple(len(axis) for axis in axes)
        places = np.indices(shape).reshape(len(shape), -1)
        one = _rows.take(self._X, np.zeros(places.shape[1], dtype=np.intp))
        grid = {c: axis[place] for c, axis, place in zip(columns, axes, places, strict=True)}
        explainer = type(self._unfitted)(**{**self._unfitted.get_params(), "features": [columns]})
        values = explainer.fit(self._model).transform(_rows.with_values(one, grid))
        return values.T.reshape(-1, *shape)


def find_answers(
    estimator,
    X,
    *,
    sample_weight: np.ndarray | None,
    response_method: str,
    method: str,
    average: bool,
    n_jobs: int | None = None,
    stacklevel: int,
) -> Answers:
    """The way to compute that a method means for a model.

    Parameters
    ----------
    estimator : object
        Fitted.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : ndarray of shape (n_rows,) or None
    response_method : str
        "auto" is scikit-learn's: of a classifier the first of ``predict_proba`` and
        ``decision_function`` that it has.
    method : {"auto", "recursion", "brute"}
    average : bool
        Whether nothing but averages is asked for.
    n_jobs : int or None, default=None
        Threads of the explainers.
    stacklevel : int
        Of the warning that a model is no tree ensemble, from here.

    Returns
    -------
    Answers

    Raises
    ------
    ValueError
        If the method, the response and the model do not go together.
    """
    if method == "recursion":
        return _recursion(estimator, X, sample_weight, response_method, average, n_jobs)
    response = choose_response(estimator, response_method)
    if method == "brute":
        return Answers(estimator, X, sample_weight, response)
    reading = read_model(estimator)
    if isinstance(reading, str):
        warnings.warn(
            f"{type(estimator).__name__} {reading}: its partial dependence is found by predicting "
            "every row of X at every point, which is slow. method='brute' does the same without "
            "this warning",
            UserWarning,
            stacklevel=stacklevel,
        )
        return Answers(estimator, X, sample_weight, response)
    head, is_linear = reading.head, reading.forest.is_linear
    explained = response in head.additive or (response == head.link_method and not is_linear)
    explainer = FastPDExplainer(response_method=response if explained else "auto", n_jobs=n_jobs)
    return Answers(estimator, X, sample_weight, response, explainer, explained)


def choose_response(estimator, response_method: str) -> str:
    """The response that scikit-learn's inspection means, by name.

    Parameters
    ----------
    estimator : object
    response_method : str

    Returns
    -------
    str
        "raw", the sum of the trees, where "auto" is asked of a model that is neither a
        classifier nor a regressor.
    """
    kind, name = kind_of(estimator), type(estimator).__name__
    if kind == "regressor":
        if response_method not in ("auto", "predict", "raw"):
            raise ValueError(
                "The response_method parameter is ignored for regressors and must be 'auto', got "
                f"{response_method!r} for {name}; for the sum of the trees before a link function "
                "take 'raw'"
            )
        return as_in_sklearn(estimator, response_method)
    if kind != "classifier":
        if find_reader(estimator) is None:
            raise ValueError(
                f"'estimator' must be a fitted regressor or classifier, or a tree ensemble that "
                f"can be read, and {name} is neither"
            )
        return "raw" if response_method == "auto" else response_method
    if isinstance(getattr(estimator, "classes_", None), list) or (
        classes_of(estimator) is not None and np.ndim(classes_of(estimator)[0]) > 0
    ):
        raise ValueError(
            "Multiclass-multioutput estimators are not supported; explain one target at a time, "
            "or all of them with FastPDExplainer"
        )
    response = as_in_sklearn(estimator, response_method)
    if response == "auto":
        raise ValueError(
            f"{name} has neither predict_proba nor decision_function, and class labels cannot be "
            "averaged; take a classifier that has one of them"
        )
    return response


def read_model(estimator) -> Reading | str:
    """The reading of a tree ensemble; of another model, in words, what keeps it from being read."""
    reader = find_reader(estimator)
    if reader is None:
        return "is not a tree ensemble that can be read"
    try:
        return reader.read(estimator)
    except NotFittedError:
        raise
    except ValueError as refusal:  # what readers say of models that they know and cannot read
        return f"cannot be read ({refusal})"


def _recursion(estimator, X, sample_weight, response_method, average, n_jobs) -> Answers:
    if not average:
        raise ValueError(
            "The 'recursion' method only applies when 'kind' is set to 'average'; for single rows "
            "take method='auto'"
        )
    if sample_weight is not None:
        raise ValueError(
            "The 'recursion' method can only be applied when sample_weight is None, for it "
            "averages by the covers of the training; to weigh the rows of X take method='auto'"
        )
    reading = read_model(estimator)
    if isinstance(reading, str):
        raise ValueError(
            f"method='recursion' follows the trees of an ensemble, and {type(estimator).__name__} "
            f"{reading}; take method='brute'"
        )
    head = reading.head
    if response_method not in ("auto", *head.additive):
        raise ValueError(
            "With the 'recursion' method, the response_method must be "
            f"{' or '.join(repr(name) for name in head.additive)}, for that is what the trees add "
            f"up to. Got {response_method!r}; take 'auto', or another method"
        )
    explainer = PathDependentExplainer(response_method=response_method, n_jobs=n_jobs)
    return Answers(estimator, X, None, response_method, explainer, explained=True, background=False)
