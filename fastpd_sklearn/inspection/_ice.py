"""Individual conditional expectation in the shape of :mod:`sklearn.inspection`."""

from __future__ import annotations

from fastpd_sklearn.explainers import ICEExplainer
from fastpd_sklearn.explainers._checks import check_choice
from fastpd_sklearn.inspection._response_method import as_in_sklearn

KINDS = ("individual", "average", "both")


def individual_conditional_expectation(
    estimator,
    X,
    features,
    *,
    sample_weight=None,
    categorical_features=None,
    response_method="auto",
    target=None,
    percentiles=(0.05, 0.95),
    grid_resolution=100,
    strategy="uniform",
    custom_values=None,
    missing=False,
    centered=False,
    derivative=False,
    kind="both",
    random_state=None,
    n_jobs=None,
):
    """The response of every row along a feature.

    Parameters
    ----------
    estimator : object
        A fitted model of any kind; tree ensembles are not called, but read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows, which also tell the points.
    features : int or str, or a list of them
        One feature; a list for several results.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows in the average.
    response_method : {"auto", "predict_proba", "decision_function", "predict", "raw"}, \
default="auto"
        The response. "auto" is scikit-learn's: ``predict`` of regressors, and the first of
        ``predict_proba`` and ``decision_function`` that a classifier has.
    kind : {"individual", "average", "both"}, default="both"
        What to give. The average alone needs no memory for the curves.
    categorical_features, target, percentiles, grid_resolution, strategy, custom_values, missing, \
centered, derivative, random_state, n_jobs : object
        See :class:`~fastpd_sklearn.ICEExplainer`.

    Returns
    -------
    sklearn.utils.Bunch, or list of them
        ``feature``; ``grid_values``, a list of one ndarray; ``individual``, an ndarray of shape
        (n_outputs, n_rows, n_points); ``average``, an ndarray of shape (n_outputs, n_points);
        and ``breaks``, ``is_categorical`` and ``output_names`` as of
        :meth:`ICEExplainer.explain <fastpd_sklearn.ICEExplainer.explain>`.

    See Also
    --------
    fastpd_sklearn.ICEExplainer : The same as a transformer.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.inspection import individual_conditional_expectation
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> individual_conditional_expectation(model, X, 0).individual[0]
    array([[0., 0.],
           [0., 8.],
           [0., 0.],
           [0., 8.]])
    """
    check_choice("kind", kind, KINDS)
    explainer = ICEExplainer(
        features=features if isinstance(features, list) else [features],
        grid_resolution=grid_resolution,
        percentiles=percentiles,
        strategy=strategy,
        custom_values=custom_values,
        categorical_features=categorical_features,
        missing=missing,
        centered=centered,
        derivative=derivative,
        target=target,
        response_method=as_in_sklearn(estimator, response_method),
        n_jobs=n_jobs,
        random_state=random_state,
    ).fit(estimator, X)
    give = explainer.average if kind == "average" else explainer.explain
    results = give(X, sample_weight=sample_weight)
    if kind == "individual":
        for result in results:
            del result["average"]
    return results if isinstance(features, list) else results[0]
