"""Reader of scikit-learn's tree ensembles."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.forest import (
    _sklearn_adaboost,
    _sklearn_averaging,
    _sklearn_boosting,
    _sklearn_ensembles,
    _sklearn_wrappers,
)
from fastpd_sklearn.forest._registry import Reading

_FAMILIES = {
    **_sklearn_averaging.FAMILIES,
    **_sklearn_boosting.FAMILIES,
    **_sklearn_adaboost.FAMILIES,
    **_sklearn_ensembles.FAMILIES,
    **_sklearn_wrappers.FAMILIES,
}


class SklearnReader:
    """Reads scikit-learn's trees, forests and boosted trees, and models made of such models.

    The raw outputs are, for

    * regressors: the prediction, one output a target (for a Poisson or gamma loss its
      logarithm, on which the trees add up);
    * trees and forests that classify: the probability of each class, with two classes of
      the second alone; several targets one after the other;
    * boosted classifiers: the decision function;
    * ``IsolationForest``: the mean depth ``E[h(x)]`` of the row over the trees, where a leaf
      that holds ``size`` rows counts ``c(size)`` deeper, see :func:`average_path_length`.
      ``score_samples`` is ``-2 ** (-depth / c(max_samples_))`` of it, so that a larger depth is
      less anomalous;
    * models made of models, whose members may be of other libraries: what these add up to,
      added up as the model does it, see :mod:`_sklearn_ensembles`, :mod:`_sklearn_adaboost` and
      :mod:`_sklearn_wrappers`.
    """

    name = "scikit-learn"
    supported = ", ".join(cls.__name__ for cls in _FAMILIES)
    tolerance = 1e-10

    def accepts(self, model) -> bool:
        """Whether the model's class is a supported one or derives from one.

        Parameters
        ----------
        model : object

        Returns
        -------
        bool
        """
        return isinstance(model, tuple(_FAMILIES))

    def read(self, model) -> Reading:
        """Read a fitted model.

        Parameters
        ----------
        model : estimator
            One that :meth:`accepts`.

        Returns
        -------
        Reading

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ValueError
            If a ``GradientBoosting`` model starts from an ``init`` that is not constant, or
            if the trees have a format that is not known.
        NoSumOfTreesError
            If a model made of models responds by something else than a sum of their trees.
        """
        check_is_fitted(model)
        return _family(model).read(model)

    def predict_raw(self, model, X) -> np.ndarray:
        """scikit-learn's own raw prediction.

        Parameters
        ----------
        model : estimator
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        raw = np.asarray(_family(model).predict_raw(model, X), dtype=np.float64)
        return raw.reshape(len(raw), -1)


def _family(model):
    return next(family for cls, family in _FAMILIES.items() if isinstance(model, cls))


reader = SklearnReader()
