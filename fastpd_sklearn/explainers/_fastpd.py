"""Exact partial dependence, components and SHAP of tree ensembles over a background."""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.core.effort import background_effort
from fastpd_sklearn.explainers import _cost
from fastpd_sklearn.explainers._background import DeepEngine, ResponseEngine
from fastpd_sklearn.explainers._deep_shap import PairEngine
from fastpd_sklearn.explainers._empirical import EmpiricalEngine
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._linear import LinearEngine, refuse_linear
from fastpd_sklearn.explainers._outputs import resolve_order
from fastpd_sklearn.explainers._response import check_additive, response_head
from fastpd_sklearn.explainers._trees import TreeExplainer
from fastpd_sklearn.forest import Head, Reading
from fastpd_sklearn.forest._forest import Forest


def walks_sooner(forest: Forest, n_rows: int) -> bool:
    """Whether walking a background through a forest takes clearly less than counting its masks.

    Parameters
    ----------
    forest : Forest
    n_rows : int

    Returns
    -------
    bool
    """
    return background_effort(forest, n_rows).walks_sooner


DEEP_LEAVES = 10_000
"""Leaves at which the violated sides of rows, set by set, are too many to be counted."""

DEEP_TESTS = 16
"""Tests on the way to a leaf, so that its sets of violated sides are hardly ever the same."""


def is_deep(forest: Forest) -> bool:
    """Whether masks at the leaves are too many for attributions by tables alone.

    Parameters
    ----------
    forest : Forest

    Returns
    -------
    bool
    """
    if forest.n_nodes < 2 * DEEP_LEAVES:
        return False
    return np.count_nonzero(forest.leaf_depths() >= DEEP_TESTS) >= DEEP_LEAVES


class FastPDExplainer(TreeExplainer):
    """Explain a tree ensemble exactly over a background of any size.

    ``v_S(x)`` is the weighted mean, over the rows of the background, of the model's response
    after the columns of the features ``S`` are set to those of ``x``: the same quantity that
    :class:`VanillaPDExplainer` finds by prediction, at a cost that is linear in the background
    and in the explained rows. Each leaf of a tree asks only which of its sides a row satisfies;
    :meth:`fit` counts how often each answer occurs, and all explanations follow from the
    counts. Where that is no way to do it, for large unpruned forests and for responses behind a
    link, the rows of the background are kept, as one small integer a value, and walked through
    the trees; and so are few rows, until something is asked for that takes counts. On a response
    behind a link ``output`` is then "pd" or "component" of at most two features; on unpruned
    forests SHAP and Banzhaf values take pairs of rows, and :meth:`estimate_cost` says how long.
    Where leaves are linear functions, the counts are joined by first moments of the numbers that
    these multiply.

    Parameters
    ----------
    estimator : object, default=None
        The model: fitted by ``fit(X, y)``, or left as it is if it is a ``FrozenEstimator``.
        Not needed for ``fit(model, background)``.
    output : {"pd", "component", "shap", "shap_interaction", "banzhaf", "total"}, \
default="pd"
        What :meth:`transform` gives.

        * "pd": partial dependence ``v_S``;
        * "component": components ``m_S`` of the functional decomposition; all of them add up
          to the response;
        * "shap": interventional SHAP values, one a feature, which add up to the response;
        * "shap_interaction": SHAP interaction values; of a pair the one entry of ``shap``'s
          symmetric matrix (half the interaction), of a feature its SHAP value less its pairs.
          With each pair counted twice they add up to the response;
        * "banzhaf": Banzhaf (interaction) values. They do not add up to the response;
        * "total": the sum of all components that have these features: of one feature what the
          response loses when it is integrated out. They do not add up to the response.

    features : list of int, str, or tuples of them, default=None
        The terms to show: columns by number or name, groups by name, tuples for sets. None: all
        features, and the sets of them up to ``max_order`` that lie on a common path of a tree.
    max_order : "auto", int or None, default="auto"
        The most features in a set; None for no limit. "auto" is 2 for "component" and
        "shap_interaction" and otherwise 1.
    target : object, default=None
        A class label, or the number of an output, where the model has several; None for all. A
        binary classifier has one output, that of ``classes_[1]``.
    groups : dict of str to list of int or str, default=None
        Columns that play together as one feature, such as
        ``{"address": ["zip", "city"]}``.
    response_method : {"auto", "raw", "predict", "predict_proba", "decision_function"}, \
default="auto"
        The response to explain. "auto" and "raw" are what the trees add up to: the margin for
        boosting, the probability for forests of classifiers, the mean depth for
        ``IsolationForest``. Of models that mix several margins, such as calibrated classifiers,
        "auto" is the probability. A response behind an inverse link, such as "predict_proba" of a
        boosted classifier or "predict" of Poisson regression, has exact "pd" and "component" of
        at most two features; it takes the background itself, which is kept as codes. For other
        outputs it is refused.
    surrogate : None, True, "auto" or object, default=None
        A tree ensemble to explain in place of the model: an unfitted regressor, or True for
        histogram gradient boosting. It is trained on the model's responses to rows of the
        background, and to mixtures of them. "auto": if the model is no tree ensemble
        that can be read. ``surrogate_score_`` says how well it follows the model. The response
        is then ``predict_proba`` of classifiers and ``predict`` of regressors, unless
        ``response_method`` says another.
    n_jackknife : int, default=0
        Groups of the rows of the background, one of which is left out at a time to find
        standard errors (20 to 50 will do). 0: none are kept. The memory for what is kept of the
        background, and the time of :meth:`standard_error`, grow with it.
    n_jobs : int or None, default=None
        Number of threads; None is the OpenMP default (``OMP_NUM_THREADS``, threadpoolctl), -1
        all processors. The result is the same to the last bit.
    random_state : int, RandomState instance or None, default=None
        Which of the rows that are made from the forest's own thresholds are checked at
        ``fit``, where there are very many; how rows are mixed to train a surrogate.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    estimator_ : object
        The model that is explained.
    surrogate_ : object
        The trained surrogate, if there is one: the values explain it and add up to its predictions.
    surrogate_score_ : float
        R squared of its predictions of the model's responses, over all outputs, on rows that it
        was not trained on: a quarter of the background's, and mixtures of these.
    intercept_ : ndarray of shape (n_outputs,)
        The mean response over the background.
    intercept_error_ : ndarray of shape (n_outputs,)
        Its standard error; only with ``n_jackknife``.
    response_method_ : str
        The method of the model whose answer is explained; "raw" if none answers with it.
    terms_ : tuple of tuple of str
        Names of the features in each term.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns, where all are strings.
    classes_ : ndarray of shape (n_classes,)
        Class labels; classifiers only.

    References
    ----------
    J. Liu, T. Steensgaard, M. N. Wright, N. Pfister, M. Hiabu, "Fast Estimation of Partial
    Dependence Functions using Trees" (2024), for the algorithm and equation 7.

    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023, for the components.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> explainer = FastPDExplainer(output="component").fit(model, X)
    >>> explainer.intercept_
    array([2.])
    >>> explainer.get_feature_names_out()
    array(['x0', 'x1', 'x0:x1'], dtype=object)
    >>> explainer.transform([[1.0, 1.0]])
    array([[2., 2., 2.]])
    """

    _engine_class = EmpiricalEngine

    def estimate_cost(self, X) -> float:
        """Seconds that :meth:`transform` will take for some rows, about.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        float
            Where trees are deep and the values belong to pairs of rows ("shap",
            "shap_interaction", "banzhaf"), from what :meth:`fit` has measured on some rows of
            the background; otherwise from explaining at most 128 of the rows. What will take
            minutes is announced by a ``CostWarning`` in any case.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import RandomForestRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = RandomForestRegressor(10, random_state=0).fit(X, y)
        >>> explainer = FastPDExplainer(output="shap").fit(model, X)
        >>> 0 < explainer.estimate_cost(X) < 60
        True
        """
        check_is_fitted(self)
        return _cost.estimate(self._fitted, self._check_X(X))

    def _choose_engine(self, reading: Reading, X) -> tuple[type[TreeEngine], Head]:
        head, method = reading.head, self.response_method
        method = head.natural if method == "auto" else method
        if method == head.link_method and method not in head.additive:
            refuse_linear(
                reading.forest,
                f"whose sum has no exact means after a link: response_method={method!r}; take "
                "'raw', or explain the response by prediction with VanillaPDExplainer",
            )
            self._check_response_scale(head)
            return ResponseEngine, response_head(head)
        engine_class, head = super()._choose_engine(reading, X)
        if reading.forest.is_linear:
            return LinearEngine, head
        if self._is_of_low_order():
            if walks_sooner(reading.forest, max(X.shape[0], self._least_rows)):
                engine_class = DeepEngine
        elif self._has_small_sets() and is_deep(reading.forest):
            engine_class = PairEngine
        return engine_class, head

    def _is_of_low_order(self) -> bool:
        """Whether components of at most two features are all that is asked for."""
        return self.output in ("pd", "component") and self._has_small_sets()

    def _has_small_sets(self) -> bool:
        """Whether no set of more than two features is asked for."""
        if self.features is None:
            return resolve_order(self.output, self.max_order) in (1, 2)
        sets = self.features if isinstance(self.features, list | tuple) else [self.features]
        return all(len(s) <= 2 for s in sets if isinstance(s, list | tuple))

    def _check_response_scale(self, head: Head) -> None:
        if self._is_of_low_order():
            return
        if not head.additive:
            check_additive(self.response_method, head)
        raise ValueError(
            f"response_method={self.response_method!r} with output={self.output!r} and "
            f"max_order={self.max_order!r}: the trees do not add up to this response, so that "
            "on its scale there are exact values for output='pd' and 'component' of at most "
            "two features; take one of these, response_method='raw' for the scale on which "
            "they do add up, or VanillaPDExplainer"
        )
