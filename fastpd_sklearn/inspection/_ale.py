"""Accumulated local effects in the shape of :mod:`sklearn.inspection`."""

from __future__ import annotations

from sklearn.utils import Bunch

from fastpd_sklearn.explainers import ALECurve, ALEExplainer
from fastpd_sklearn.inspection._response_method import as_in_sklearn


def accumulated_local_effects(
    estimator,
    X,
    features,
    *,
    sample_weight=None,
    categorical_features=None,
    response_method="auto",
    target=None,
    n_bins=20,
    custom_values=None,
    category_order="similarity",
    confidence=0.95,
    n_bootstrap=0,
    random_state=None,
    n_jobs=None,
):
    """Accumulated local effects of a fitted model.

    Parameters
    ----------
    estimator : object
        A fitted model of any kind; tree ensembles are not called, but read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The background.
    features : int, str, or tuple of two of them; or a list of such
        One feature, or two for their second-order effect; a list for several results.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.
    response_method : {"auto", "predict_proba", "decision_function", "predict", "raw"}, \
default="auto"
        The response. "auto" is scikit-learn's: ``predict`` of regressors, and the first of
        ``predict_proba`` and ``decision_function`` that a classifier has.
    categorical_features, target, n_bins, custom_values, category_order, confidence, n_bootstrap, \
random_state, n_jobs : object
        See :class:`~fastpd_sklearn.ALEExplainer`.

    Returns
    -------
    sklearn.utils.Bunch, or list of them
        ``features``, names; ``grid_values``, a list of one ndarray a feature, the edges of the
        bins or the categories; ``effect``, an ndarray of shape (n_outputs, n_points of the
        first feature, ...); ``bin_counts``; ``n_outside``. Of one feature also ``lower``,
        ``upper``, ``local_effect``, ``local_std`` and ``is_categorical``, of two ``is_filled``; see
        :class:`~fastpd_sklearn.explainers.ALECurve` and
        :class:`~fastpd_sklearn.explainers.ALESurface`.

    See Also
    --------
    fastpd_sklearn.ALEExplainer : The same as a transformer.

    References
    ----------
    D. W. Apley, J. Zhu, "Visualizing the effects of predictor variables in black box supervised
    learning models", Journal of the Royal Statistical Society B 82 (2020).

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fastpd_sklearn.inspection import accumulated_local_effects
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> model = LinearRegression().fit(X, X @ [1.0, 3.0])
    >>> result = accumulated_local_effects(model, X, 1)
    >>> result.grid_values, result.effect.round(6)
    ([array([0., 2.])], array([[-3.,  3.]]))
    """
    explainer = ALEExplainer(
        features=features if isinstance(features, list) else [features],
        n_bins=n_bins,
        custom_values=custom_values,
        categorical_features=categorical_features,
        category_order=category_order,
        confidence=confidence,
        n_bootstrap=n_bootstrap,
        target=target,
        response_method=as_in_sklearn(estimator, response_method),
        n_jobs=n_jobs,
        random_state=random_state,
    ).fit(estimator, X, sample_weight=sample_weight)
    results = [_as_bunch(effect) for effect in explainer.effects_]
    return results if isinstance(features, list) else results[0]


def _as_bunch(effect) -> Bunch:
    names = ["features", "effect", "bin_counts", "n_outside", "output_names"]
    if isinstance(effect, ALECurve):
        names += ["lower", "upper", "local_effect", "local_std", "is_categorical"]
    else:
        names += ["is_filled"]
    values = {name: getattr(effect, name) for name in names}
    return Bunch(grid_values=list(effect.grid_values), **values)
