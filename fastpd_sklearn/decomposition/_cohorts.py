"""Rows explained against their own kind: a background for each cohort."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, TransformerMixin, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.validation import check_is_fitted, validate_data

from fastpd_sklearn.explainers import BaseExplainer, Explanation, _checks, _models
from fastpd_sklearn.explainers._players import find_column
from fastpd_sklearn.forest import _frames, _rows


class CohortExplainer(MetaEstimatorMixin, TransformerMixin, BaseEstimator):
    """Explain every row against its own cohort.

    One model, and an explainer of it for each cohort, whose background are the rows of
    that cohort alone: the base value is the mean response of the cohort, and the terms say
    what sets a row apart from its own kind.

    Parameters
    ----------
    explainer : FastPDExplainer, PathDependentExplainer or VanillaPDExplainer
        How to explain; a clone of it is fitted to each cohort. Not changed.
    by : int, str, or callable
        What makes a cohort: the values of a column, by number or name, or what a function of ``X``
        says, one label a row.

    Attributes
    ----------
    cohorts_ : ndarray of shape (n_cohorts,)
        Their labels, ascending.
    explainers_ : dict
        The fitted explainer of each label; all methods of these explainers are at hand, and
        ``explainers_[label].explain(X)`` explains any rows against that cohort.
    estimator_ : object
        The model.
    intercepts_ : ndarray of shape (n_cohorts, n_outputs)
        Mean response of each cohort.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where all are strings.

    See Also
    --------
    explain_difference : What two of the cohorts say of the same rows.

    Notes
    -----
    A column that makes the cohorts is constant in each of them, so that its terms are zero for the
    cohort's own rows. The difference between the cohorts is in ``intercepts_``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.decomposition import CohortExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 10.0])
    >>> cohorts = CohortExplainer(FastPDExplainer(output="shap"), by=0).fit(model, X)
    >>> cohorts.intercepts_.ravel()
    array([1., 7.])
    >>> cohorts.transform(X)
    array([[ 0., -1.],
           [ 0.,  1.],
           [ 0., -3.],
           [ 0.,  3.]])
    """

    def __init__(self, explainer, by):
        self.explainer = explainer
        self.by = by

    def fit(self, X, y=None, *, sample_weight=None):
        """Fit an explainer to each cohort.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), or model
            The rows to fit the explainer's estimator on, once, which are also the background;
            or the fitted model to explain.
        y : array-like of shape (n_rows,), or the background of shape (n_rows, n_columns)
            The target, or the background if ``X`` is a model.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, as the explainer takes them.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError, TypeError
            For bad input; the message says which argument and what to do.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.decomposition import CohortExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> cohorts = CohortExplainer(FastPDExplainer(output="shap"), by=0).fit(model, X)
        >>> cohorts.cohorts_, cohorts.intercepts_.ravel()
        (array([0., 1.]), array([0., 4.]))
        """
        if not isinstance(self.explainer, BaseExplainer):
            raise TypeError(
                f"explainer={self.explainer!r} should be an explainer over a background, such as "
                "FastPDExplainer()"
            )
        _models.check_order(X, y, type(self).__name__)
        if _models.is_model(X):
            _models.check_fitted(X)
            model, rows = _models.unfreeze(X), y
            if rows is None:
                raise ValueError("CohortExplainer.fit(model) lacks the background: fit(model, X)")
        else:
            rows = _checks.check_rows(X)
            model = _models.fit_model(self.explainer, X, y, sample_weight, {})
        rows = _checks.check_rows(rows)
        validate_data(self, rows, reset=True, skip_check_array=True)
        weights = _checks.check_weights(sample_weight, rows.shape[0])
        labels = self._labels(rows)
        self.cohorts_ = self._distinct(labels)
        self.explainers_ = {}
        for label in self.cohorts_.tolist():
            part = np.flatnonzero(labels == label)
            if weights is not None and not weights[part].any():
                raise ValueError(f"sample_weight: all rows of the cohort {label!r} have no weight")
            own = None if weights is None else weights[part]
            explainer = clone(self.explainer)
            explainer.fit(model, _rows.take(rows, part), sample_weight=own)
            self.explainers_[label] = explainer
        self.estimator_ = model
        self.intercepts_ = np.array([e.intercept_ for e in self.explainers_.values()])
        return self

    def _labels(self, X) -> np.ndarray:
        """The cohort of each row."""
        if callable(self.by):
            labels = np.asarray(self.by(X))
            if labels.shape != (X.shape[0],):
                raise ValueError(
                    f"by: the function gave an array of shape {labels.shape}, expected "
                    f"{(X.shape[0],)}: one label a row"
                )
        else:
            names = getattr(self, "feature_names_in_", [f"x{j}" for j in range(X.shape[1])])
            names = list(names)
            labels = _rows.column_array(X, find_column(self.by, names, "by", names))
        missing = [_frames.is_missing(label) for label in labels.tolist()]
        if any(missing):
            raise ValueError(
                f"by={self.by!r}: {sum(missing)} rows have no label; give them one, by a function"
            )
        return labels

    def _distinct(self, labels: np.ndarray) -> np.ndarray:
        try:
            return np.unique(labels)
        except TypeError as error:
            raise TypeError(
                f"by={self.by!r}: labels of several types have no order ({error}); make "
                "all of them numbers or all of them text"
            ) from error

    def transform(self, X):
        """Explain rows, each against its cohort.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_terms * n_outputs), float64
            As that of the explainer; :meth:`get_feature_names_out` names the columns.

        Raises
        ------
        ValueError
            If a row is of a cohort that there was no background for.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.decomposition import CohortExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> cohorts = CohortExplainer(FastPDExplainer(output="shap"), by=0).fit(model, X)
        >>> cohorts.transform(X[2:])
        array([[ 0., -4.],
               [ 0.,  4.]])
        """
        X = self._check_X(X)
        out = np.empty((X.shape[0], len(self.get_feature_names_out())))
        for label, rows in self._parts(X).items():
            fitted = self.explainers_[label]._fitted
            values = fitted.evaluate(_rows.take(X, rows), fitted.recipe)
            out[rows] = values.reshape(len(rows), -1)
        return out

    def explain(self, X) -> dict[object, Explanation]:
        """Explain rows, each against its cohort, with all that belongs to the explanations.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        dict of Explanation
            By label, of the rows of that cohort in their order; of cohorts that ``X`` has rows of.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.decomposition import CohortExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> cohorts = CohortExplainer(FastPDExplainer(output="shap"), by=0).fit(model, X)
        >>> cohorts.explain(X)[1.0]["x1"]
        array([-4.,  4.])
        """
        X = self._check_X(X)
        return {
            label: self.explainers_[label].explain(_rows.take(X, rows))
            for label, rows in self._parts(X).items()
        }

    def _check_X(self, X):
        check_is_fitted(self)
        X = _checks.check_rows(X)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _parts(self, X) -> dict[object, np.ndarray]:
        """The rows of each cohort."""
        labels = self._labels(X)
        found = self._distinct(labels).tolist()
        unknown = [label for label in found if label not in self.explainers_]
        if unknown:
            raise ValueError(
                f"by={self.by!r}: no background has been fitted for {unknown[:5]}; known are "
                f"{self.cohorts_[:20].tolist()}"
            )
        return {label: np.flatnonzero(labels == label) for label in found}

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of ``X``.

        Returns
        -------
        ndarray of str objects

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.decomposition import CohortExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> cohorts = CohortExplainer(FastPDExplainer(output="shap"), by=0).fit(model, X)
        >>> cohorts.get_feature_names_out()
        array(['x0', 'x1'], dtype=object)
        """
        check_is_fitted(self)
        return next(iter(self.explainers_.values())).get_feature_names_out(input_features)

    def get_metadata_routing(self):
        """Who asks for which metadata, for scikit-learn's metadata routing.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRouter

        Examples
        --------
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import CohortExplainer
        >>> cohorts = CohortExplainer(FastPDExplainer(DecisionTreeRegressor()), by=0)
        >>> cohorts.get_metadata_routing().consumes("fit", ["sample_weight"])
        set()
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(explainer=self.explainer, method_mapping=mapping)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        known = _models.tags_of(self.explainer)
        if known is not None:
            tags.target_tags, tags.input_tags = known.target_tags, known.input_tags
        return tags
