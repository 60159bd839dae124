"""``partial_dependence`` with the arguments and the result of scikit-learn's function."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import Bunch

from fastpd_sklearn.explainers import LinearCurve, _checks
from fastpd_sklearn.explainers._models import check_fitted, is_model, unfreeze
from fastpd_sklearn.explainers._response import RESPONSE_METHODS
from fastpd_sklearn.inspection._answers import METHODS, Answers, find_answers
from fastpd_sklearn.inspection._columns import column_names, declared_categories, find_columns
from fastpd_sklearn.inspection._grid import (
    Column,
    GridOptions,
    custom_points,
    read_column,
    step_points,
)

KINDS = ("average", "individual", "both")


@dataclass(frozen=True, eq=False)
class Request:
    """What is asked for, checked: all that does not depend on a feature.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    names : list
        Names of the columns.
    answers : Answers
    options : GridOptions
    custom : dict of int to ndarray
        The points that the user gave, by column.
    categorical : set of int
        The columns that the user says hold categories.
    """

    X: object
    names: list
    answers: Answers
    options: GridOptions
    custom: dict[int, np.ndarray]
    categorical: set[int]

    def answer(self, columns: tuple[int, ...], kind: str) -> Bunch:
        """Partial dependence on some columns together.

        Parameters
        ----------
        columns : tuple of int
        kind : {"average", "individual", "both"}

        Returns
        -------
        sklearn.utils.Bunch
        """
        data = [read_column(self.X, j) for j in columns]
        steps = [self._steps(j, column) for j, column in zip(columns, data, strict=True)]
        axes = [self._axis(*each) for each in zip(columns, data, steps, strict=True)]
        result = Bunch(grid_values=axes)
        if kind != "individual":
            self._add_average(result, columns, data, steps)
        if kind != "average":
            result["individual"] = self.answers.individual(columns, axes)
        if self.options.exact:
            result["steps"] = tuple(map(_drawn, steps))
        return result

    def _steps(self, j: int, column: Column):
        """The curve whose steps are shown; None for a column that has a grid of other points."""
        listed = column.labelled or j in self.categorical or j in self.custom
        return None if listed or not self.options.exact else self.answers.steps(j, self.names[j])

    def _axis(self, j: int, column: Column, steps) -> np.ndarray:
        if j in self.custom:
            return self.custom[j]
        if steps is not None:
            return step_points(steps, column)
        if column.labelled or j in self.categorical or self.options.exact:
            return column.categories()
        return self.options.points(column)

    def _add_average(self, result: Bunch, columns, data, steps) -> None:
        if len(columns) == 1 and steps[0] is not None:
            curve = self.answers.responding(columns[0], steps[0])
            average = curve(result.grid_values[0])
        else:
            average, curve = self.answers.average(columns, result.grid_values, data)
        result["average"] = average
        if curve is not None:
            result["curve"] = curve


def _drawn(steps) -> str | None:
    """On which side of its points a step function is what it is at the point."""
    if steps is None or isinstance(steps, LinearCurve):
        return None
    return "post" if steps.strict else "pre"


def make_request(
    estimator,
    X,
    features: list,
    *,
    sample_weight,
    categorical_features,
    feature_names,
    response_method,
    percentiles,
    grid_resolution,
    custom_values,
    method,
    kinds: list,
    n_jobs=None,
    stacklevel: int,
) -> tuple[Request, list[tuple[int, ...]]]:
    """Check arguments, and find the way to compute.

    Parameters
    ----------
    estimator, X : object
        The user's.
    features : list
        What is looked at, one entry a result.
    sample_weight, categorical_features, feature_names, response_method, percentiles, \
grid_resolution, custom_values, method : object
        See :func:`partial_dependence`.
    kinds : list of str
        One a result.
    n_jobs : int or None, default=None
    stacklevel : int
        Of warnings, from here.

    Returns
    -------
    request : Request
    columns : list of tuple of int
        The columns of each result.
    """
    for kind in kinds:
        _checks.check_choice("kind", kind, KINDS)
    _checks.check_choice("method", method, METHODS)
    _checks.check_choice("response_method", response_method, RESPONSE_METHODS)
    _checks.check_n_jobs(n_jobs)
    model = check_estimator(estimator)
    X = _checks.check_rows(X)
    names = column_names(X, feature_names)
    columns = [find_columns(feature, names) for feature in features]
    options = GridOptions(grid_resolution, percentiles)
    custom = custom_points(custom_values, names)
    categorical = declared_categories(categorical_features, names)
    answers = find_answers(
        model,
        X,
        sample_weight=_checks.check_weights(sample_weight, X.shape[0]),
        response_method=response_method,
        method=method,
        average=all(kind == "average" for kind in kinds),
        n_jobs=n_jobs,
        stacklevel=stacklevel + 1,
    )
    return Request(X, names, answers, options, custom, categorical), columns


def check_estimator(estimator):
    """The model that a user means.

    Parameters
    ----------
    estimator : object

    Returns
    -------
    object

    Raises
    ------
    TypeError, sklearn.exceptions.NotFittedError
        If it is no model, or not fitted.
    """
    if not is_model(estimator):
        raise TypeError(
            f"estimator should be a fitted model, got a {type(estimator).__name__}; the order of "
            "arguments is estimator, X, features"
        )
    check_fitted(estimator)
    return unfreeze(estimator)


def partial_dependence(
    estimator,
    X,
    features,
    *,
    sample_weight=None,
    categorical_features=None,
    feature_names=None,
    response_method="auto",
    percentiles=(0.05, 0.95),
    grid_resolution=100,
    custom_values=None,
    method="auto",
    kind="average",
):
    """Partial dependence of a model's response on some features.

    It takes the arguments of :func:`sklearn.inspection.partial_dependence` and returns what
    that returns. For tree ensembles the averages over ``X`` are exact and found without
    predictions; for any other model they are found by prediction, and a warning says so.

    Parameters
    ----------
    estimator : object
        A fitted model: a regressor or classifier, or any tree ensemble that
        :class:`~fastpd_sklearn.FastPDExplainer` reads.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows to average over, and whose values make the grid. Columns of integers, booleans
        and labels are welcome, and so are missing values where the model takes them.
    features : int, str, array-like of them, or mask of shape (n_columns,)
        The columns whose joint effect is asked for.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows in the average. Not for ``method="recursion"``; it does not matter
        to single rows.
    categorical_features : array-like of int or str, or mask of shape (n_columns,), default=None
        The columns whose grid is all of their values, missing among them. Columns of labels
        are such without being named.
    feature_names : array-like of shape (n_columns,), default=None
        Names of the columns; by default those of the data frame, else "x0", "x1", ...
    response_method : {"auto", "predict_proba", "decision_function", "predict", "raw"}, \
default="auto"
        The response to average. "auto" is ``predict`` for regressors and for classifiers the
        first of ``predict_proba`` and ``decision_function`` that they have; of models that are
        neither it is the sum of the trees. "raw" is the sum of the trees of any tree ensemble.
    percentiles : tuple of two float, default=(0.05, 0.95)
        The lowest and highest point of a grid, as shares of the column's finite values.
    grid_resolution : int or "exact", default=100
        Number of points for each feature; a column with fewer different values has these for
        its grid. "exact": all steps of a tree ensemble over the range of the column.
    custom_values : dict of int or str to array-like of shape (n_points,), default=None
        The points of a feature, by number or name, in place of a grid. NaN among them asks for
        the response at missing values.
    method : {"auto", "recursion", "brute"}, default="auto"
        * "auto": the average over the rows of ``X``, exactly; by the trees, of
          models that are no tree ensembles by prediction.
        * "recursion": the average by the covers along the paths of the trees, which looks at
          no row of ``X``: what scikit-learn means by it, for all tree ensembles.
        * "brute": the average over the rows of ``X``, by prediction.

    kind : {"average", "individual", "both"}, default="average"
        Whether to average over the rows, to give every row's own curve, or both.

    Returns
    -------
    sklearn.utils.Bunch
        * ``grid_values``: list of ndarray, the points of each feature;
        * ``average``: ndarray of shape (n_outputs, n_points of the first feature, ...), in the
          unit of the response; unless ``kind="individual"``;
        * ``individual``: ndarray of shape (n_outputs, n_rows, n_points of the first feature,
          ...); unless ``kind="average"``;
        * ``curve``: a :class:`~fastpd_sklearn.explainers.StepCurve`,
          :class:`~fastpd_sklearn.explainers.LinearCurve` or
          :class:`~fastpd_sklearn.explainers.CategoryCurve`, the average as an exact function
          of a single feature, where the trees tell it. It says the level of missing values;
        * ``steps``: with ``grid_resolution="exact"`` for each feature "pre" where the response
          is constant from the point before up to the point, "post" from the point up to the
          next one, None where it has no steps.

        A binary classifier has one output, that of ``classes_[1]``.

    Raises
    ------
    ValueError, TypeError
        For bad input; the message names the argument and the remedy.
    sklearn.exceptions.NotFittedError
        If the model is not fitted.

    Warns
    -----
    UserWarning
        If ``method="auto"`` and the model is no tree ensemble that can be read.

    See Also
    --------
    PartialDependenceDisplay : Draws the result.
    fastpd_sklearn.FastPDExplainer : Components, SHAP values and more, and what does the work.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
    Statistics 29 (2001), equation 53, for the average over rows, and section 8.2 for the
    recursion.

    J. Liu, T. Steensgaard, M. N. Wright, N. Pfister, M. Hiabu, "Fast Estimation of Partial
    Dependence Functions using Trees" (2024), for the algorithm.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.inspection import partial_dependence
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [1, 1]])  # integers are welcome
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0, 8.0])
    >>> result = partial_dependence(model, X, features=0)
    >>> result.grid_values, result.average
    ([array([0, 1])], array([[0. , 4.8]]))
    >>> result = partial_dependence(model, X, features=0, grid_resolution="exact")
    >>> result.curve.breaks, result.curve.levels
    (array([0.5]), array([[0. , 4.8]]))
    """
    request, columns = make_request(
        estimator,
        X,
        [features],
        sample_weight=sample_weight,
        categorical_features=categorical_features,
        feature_names=feature_names,
        response_method=response_method,
        percentiles=percentiles,
        grid_resolution=grid_resolution,
        custom_values=custom_values,
        method=method,
        kinds=[kind],
        stacklevel=3,
    )
    return request.answer(columns[0], kind)
