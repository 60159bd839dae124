"""Whether models that were fitted on other rows use their features in the same way."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from sklearn.utils import Bunch

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.model_selection._components import ROUNDING, Components, components_of
from fastpd_sklearn.model_selection._players import as_list, columns_as_players, others_together


def curve_stability(estimators, X, features=None, *, target=None, sample_weight=None) -> Bunch:
    """How well the curves of several models agree, such as those of all folds.

    A model's curve of a feature is its partial dependence; of several features it is their
    component, what they do together beyond what each smaller set of them does. All models are
    explained over the same rows, so that only the models differ, and each curve is centred over
    these rows, since the level of a curve is the mean prediction. Of ``K`` curves ``c_k``

    * the stability is the mean covariance of two of them, divided by their mean variance. It is 1
      if all curves are the same, around 0 if one says nothing about another, and at least
      ``-1 / (K - 1)``;
    * the deviation is the standard deviation between the curves (with ``K - 1``), root mean
      squared over the rows.

    The training sets of cross-validation share rows, and models that share rows share noise: with
    five folds even the curves of a feature without any effect agree to some degree.

    Parameters
    ----------
    estimators : sequence of fitted models, or dict
        At least two; or the result of ``cross_validate(..., return_estimator=True)``.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows over which the curves are averaged and compared.
    features : list of int, str, or tuples of them, default=None
        Columns by number or name, tuples for interactions; None for all columns.
    target : object, default=None
        A class label, or the number of an output, where the models have several. None: variances
        and covariances of all outputs are added up.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    sklearn.utils.Bunch
        ``terms``: tuple of tuple of str, the names of ``features``; ``stability``: ndarray of
        shape (n_terms,), 1 where all curves are flat; ``deviation``: ndarray of shape (n_terms,),
        in the unit of the response; ``overall``: float, the stability of all curves together:
        their covariances and their variances added up over the terms.

    See Also
    --------
    candidate_curves : Refits the candidates of a search, on folds too.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_validate
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import curve_stability
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = 3 * (X[:, 0] > 0) + rng.normal(size=300)  # x1 and x2 are noise
    >>> model = DecisionTreeRegressor(max_depth=4, random_state=0)
    >>> folds = cross_validate(model, X, y, return_estimator=True)
    >>> curve_stability(folds, X).stability > 0.9
    array([ True, False, False])
    """
    estimators = _as_models(estimators)
    X = _checks.check_rows(X)
    players = columns_as_players(X)
    terms = as_list(range(len(players)) if features is None else features)
    terms = [players.find_term(term) for term in terms]
    groups = others_together(players, {column for term in terms for column in term})
    agreement = Agreement()
    for estimator in estimators:
        parts = components_of(
            estimator, X, sample_weight, features=terms, groups=groups, target=target
        )
        agreement.add(parts)
    return Bunch(
        terms=parts.terms,
        stability=agreement.stability,
        deviation=agreement.deviation,
        overall=agreement.overall,
    )


class Agreement:
    """Sums of curves from which their agreement follows, of one model after the other.

    With ``V`` the sum of the curves' variances and ``W`` the variance of their sum, the
    covariances of all ordered pairs add up to ``W - V``.
    """

    def __init__(self) -> None:
        self._n_curves = 0
        self._sum: np.ndarray | float = 0.0
        self._variance: np.ndarray | float = 0.0
        self._weights: np.ndarray | None = None
        self._largest = 0.0

    def add(self, parts: Components) -> None:
        """Add the curves of a model: of the same rows, weights and terms each time."""
        values = parts.values
        if self._n_curves and values.shape[2] != self._sum.shape[2]:
            raise ValueError(
                f"the models have {self._sum.shape[2]} and {values.shape[2]} outputs, so that "
                "their curves can't be compared; name a class that all of them know by `target`"
            )
        self._weights = parts.sample_weight
        self._n_curves += 1
        self._largest = max(self._largest, parts.largest)
        centred = values - np.average(values, axis=0, weights=self._weights)
        self._variance = self._variance + self._mean_square(centred)
        self._sum = self._sum + centred

    @property
    def stability(self) -> np.ndarray:
        """Mean covariance by mean variance of the curves of each term, shape (n_terms,)."""
        flat = self._variance <= self._n_curves * (ROUNDING * self._largest) ** 2
        return _ratio(np.where(flat, 0.0, self._covariance), np.where(flat, 0.0, self._variance))

    @property
    def overall(self) -> float:
        """The same of all terms together."""
        return float(_ratio(self._covariance.sum(), self._variance.sum()))

    @property
    def deviation(self) -> np.ndarray:
        """Standard deviation between the curves of each term, shape (n_terms,)."""
        spread = (self._variance - self._covariance) / self._n_curves
        return np.sqrt(np.maximum(spread, 0.0))

    @property
    def _covariance(self) -> np.ndarray:
        """As many times the mean covariance as there are curves."""
        return (self._mean_square(self._sum) - self._variance) / (self._n_curves - 1)

    def _mean_square(self, values: np.ndarray) -> np.ndarray:
        return np.average(values**2, axis=0, weights=self._weights).sum(axis=1)


def _ratio(part, whole):
    """Curves that are all flat agree."""
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 1.0)


def _as_models(estimators) -> list:
    if isinstance(estimators, Mapping):
        if "estimator" not in estimators:
            raise ValueError(
                "estimators: a result of cross_validate without its models; call "
                "cross_validate(..., return_estimator=True)"
            )
        estimators = estimators["estimator"]
    if not isinstance(estimators, list | tuple | np.ndarray):
        raise TypeError(
            f"estimators is a {type(estimators).__name__}; give a list of fitted models, or the "
            "result of cross_validate(..., return_estimator=True)"
        )
    if len(estimators) < 2:
        raise ValueError(
            f"estimators: {len(estimators)} model can't agree or disagree; give at least two"
        )
    return list(estimators)
