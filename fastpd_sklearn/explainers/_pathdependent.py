"""The path-dependent baselines: Friedman's recursion and TreeSHAP-path."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core import counting
from fastpd_sklearn.core.background import check_array
from fastpd_sklearn.core.coverage import PathCoverage
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._linear import refuse_linear
from fastpd_sklearn.explainers._trees import TreeExplainer
from fastpd_sklearn.forest import Head, Reading


class PathEngine(TreeEngine):
    """Covers a leaf by cover ratios along its path.

    Its state is the weight of the background rows by node; without a background the covers
    are the model's own.
    """

    is_mean = False

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.counts = None
        super().__init__(reading, players, n_jobs)

    def _make_coverage(self) -> PathCoverage | None:
        geometry = self.core.geometry
        if self.counts is None and np.isnan(self.cover).any():
            return None
        return PathCoverage(geometry, self._shares())

    def _shares(self) -> np.ndarray:
        """Child / (left + right) cover of every node but the roots, which have 1."""
        geometry = self.core.geometry
        inner = np.flatnonzero(geometry.left >= 0)
        left, right = geometry.left[inner], geometry.right[inner]
        covers = [self.cover] if self.counts is None else [self.counts, self.cover]
        share = np.ones(len(geometry.left))
        share[left] = share[right] = 0.5
        for cover in reversed(covers):
            whole = cover[left] + cover[right]
            known = whole > 0
            for child in (left[known], right[known]):
                share[child] = cover[child] / whole[known]
        return share

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        core = self.core
        found = counting.count_nodes(
            self.bin(X),
            core.bins.tests,
            core.geometry,
            sample_weight,
            self.threads_for(X.shape[0]),
        )
        self._add(found)

    def merge(self, other: PathEngine) -> None:
        """Add the background of another engine for the same forest."""
        if self.counts is None or other.counts is None:
            raise ValueError(
                "merge adds backgrounds up, and an explainer of the two was fitted without one, "
                "by the covers that the model has kept; fit both with a background"
            )
        self._add(other.counts)

    def packed(self) -> dict[str, np.ndarray]:
        """The state as arrays; none without a background."""
        return {} if self.counts is None else {"counts": self.counts}

    def unpack(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over a state from :meth:`packed`."""
        if arrays:
            shape = (len(self.cover),)
            check_array("counts", arrays["counts"], "float64", shape, is_weight=True)
            self._add(arrays["counts"])
        elif self.coverage is None:
            raise ValueError("it has no background, and covers that are not known")

    def _add(self, counts: np.ndarray) -> None:
        self.counts = counts if self.counts is None else self.counts + counts
        self.derive()


class PathDependentExplainer(TreeExplainer):
    """Explain a tree ensemble by the covers along its paths.

    ``v_S(x)`` follows the row where a tree splits on a feature of ``S``, and elsewhere goes both
    ways, weighted by the children's shares of cover: Friedman's recursion, on which
    path-dependent TreeSHAP rests. It needs no background, but describes the trees rather than
    the function that they compute: two trees that predict alike can get different values, and
    with correlated features the values do not converge to those of :class:`FastPDExplainer`.

    Without a background (``fit(model)``) the covers are the model's own: sums of hessians for
    XGBoost, of sample weights for scikit-learn, numbers of rows for LightGBM and
    HistGradientBoosting. With one they are counted anew on it; below a node that no row of the
    background reaches, the model's own are used, and halves where these are zero too.

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
        * "shap": path-dependent SHAP values, one a feature, which add up to the response;
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
        The response to explain: one that the trees add up to. "auto" and "raw" are the margin
        for boosting, the probability for forests of classifiers, the mean depth for
        ``IsolationForest``. Any other is refused, such as "predict_proba" of a boosted
        classifier; :class:`VanillaPDExplainer` explains it.
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
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
    Statistics 29 (2001), section 8.2.

    S. M. Lundberg et al., "From local explanations to global understanding with explainable AI
    for trees", Nature Machine Intelligence 2 (2020), algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import PathDependentExplainer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor(random_state=0).fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> explainer = PathDependentExplainer(output="shap").fit(model)
    >>> explainer.intercept_
    array([2.])
    >>> explainer.transform([[1.0, 1.0]])
    array([[3., 3.]])
    """

    _background_optional = True
    _engine_class = PathEngine

    def _choose_engine(self, reading: Reading, X) -> tuple[type[TreeEngine], Head]:
        refuse_linear(
            reading.forest,
            "and the covers along a path say how many rows went there, but not which values they "
            "had; take FastPDExplainer, which looks at the rows of a background",
        )
        return super()._choose_engine(reading, X)
