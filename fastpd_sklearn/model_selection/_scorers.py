"""Measures of a model's behaviour as scorers for scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

from sklearn import get_config
from sklearn.utils.metadata_routing import MetadataRequest

from fastpd_sklearn.model_selection import _behaviour, _monotonicity


class BehaviourScorer:
    """A scorer ``scorer(estimator, X, y=None)`` that knows no truth: it looks at the model only.

    Made by :func:`interaction_share_scorer` and the like. It can be pickled and copied, and its
    ``repr`` makes it anew. The rows that it is called with are the background, in a search the
    held-out fold. Weights reach it as they reach scikit-learn's own scorers: by ``search.fit(X,
    y, sample_weight=...)``, or by metadata routing after ``set_score_request``.

    Parameters
    ----------
    factory : str
        Name of the function that has made it.
    metric : callable
        Called as ``metric(estimator, X, sample_weight=..., **params)``.
    params : dict
    greater_is_better : bool
        Whether the score is the value of the metric, or minus that.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import interaction_share_scorer
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> scorer = interaction_share_scorer(greater_is_better=True)
    >>> scorer
    interaction_share_scorer(target=None, greater_is_better=True)
    >>> round(scorer(model, X), 3)
    0.333
    """

    def __init__(
        self, factory: str, metric: Callable[..., float], params: dict, greater_is_better: bool
    ) -> None:
        if not isinstance(greater_is_better, bool):
            raise TypeError(f"greater_is_better={greater_is_better!r} should be a bool")
        self._factory = factory
        self._metric = metric
        self._params = params
        self._greater_is_better = greater_is_better
        self._weight_request = None

    def __call__(self, estimator, X, y=None, *, sample_weight=None) -> float:
        """Score a model.

        Parameters
        ----------
        estimator : object
            A fitted model.
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        y : object
            Ignored.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        float
        """
        value = self._metric(estimator, X, sample_weight=sample_weight, **self._params)
        return value if self._greater_is_better else 0.0 - value  # rather than -0.0

    def __repr__(self) -> str:
        params = {**self._params, "greater_is_better": self._greater_is_better}
        return f"{self._factory}({', '.join(f'{name}={v!r}' for name, v in params.items())})"

    def set_score_request(self, *, sample_weight=None):
        """Ask for weights by metadata routing, as of any scorer.

        Parameters
        ----------
        sample_weight : bool, str or None, default=None
            Whether the scorer takes weights; None: an error if there are any; a str is the name
            by which ``fit`` of the search knows them.

        Returns
        -------
        self : object

        Examples
        --------
        >>> from sklearn import config_context
        >>> from fastpd_sklearn.model_selection import interaction_share_scorer
        >>> with config_context(enable_metadata_routing=True):
        ...     scorer = interaction_share_scorer().set_score_request(sample_weight=True)
        >>> scorer.get_metadata_routing().score.requests
        {'sample_weight': True}
        """
        if not get_config()["enable_metadata_routing"]:
            raise RuntimeError(
                "set_score_request is for metadata routing, which is off; turn it on by "
                "sklearn.set_config(enable_metadata_routing=True)"
            )
        self._weight_request = sample_weight
        return self

    def get_metadata_routing(self):
        """What the scorer asks for.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest

        Examples
        --------
        >>> from fastpd_sklearn.model_selection import interaction_share_scorer
        >>> interaction_share_scorer().get_metadata_routing().consumes("score", ["sample_weight"])
        set()
        """
        request = MetadataRequest(owner=self)
        request.score.add_request(param="sample_weight", alias=self._weight_request)
        return request

    def _accept_sample_weight(self) -> bool:
        # A search asks its scorers this while metadata routing is off.
        return True


def interaction_share_scorer(*, target=None, greater_is_better=False) -> BehaviourScorer:
    """Scorer of the share of a model's variance that its interactions carry.

    Parameters
    ----------
    target : object, default=None
        See :func:`interaction_share`.
    greater_is_better : bool, default=False
        Whether a search should look for a large share. If not, the score is minus the share, as
        with scikit-learn's "neg_mean_squared_error".

    Returns
    -------
    BehaviourScorer
        To be called with ``(estimator, X, y=None)``.

    See Also
    --------
    interaction_share : What it measures.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from sklearn.model_selection import GridSearchCV
    >>> from fastpd_sklearn.model_selection import interaction_share_scorer
    >>> X, y = make_friedman1(300, n_features=5, random_state=0)
    >>> search = GridSearchCV(
    ...     HistGradientBoostingRegressor(max_iter=20),
    ...     {"max_depth": [1, 3]},  # with depth 1 the model is a sum of functions of one feature
    ...     scoring={"r2": "r2", "interactions": interaction_share_scorer()},
    ...     refit="r2",
    ... ).fit(X, y)
    >>> abs(search.cv_results_["mean_test_interactions"]) > 0.01
    array([False,  True])
    """
    return BehaviourScorer(
        "interaction_share_scorer",
        _behaviour.interaction_share,
        {"target": target},
        greater_is_better,
    )


def term_strength_scorer(
    term, *, measure="variance", relative=True, target=None, greater_is_better=False
) -> BehaviourScorer:
    """Scorer of how much one component moves the response.

    Parameters
    ----------
    term, measure, relative, target
        See :func:`term_strength`.
    greater_is_better : bool, default=False
        Whether a search should look for a large strength. If not, the score is minus the strength.

    Returns
    -------
    BehaviourScorer
        To be called with ``(estimator, X, y=None)``.

    See Also
    --------
    term_strength : What it measures.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn.model_selection import term_strength_scorer
    >>> X, y = make_friedman1(300, n_features=5, random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    >>> scorer = term_strength_scorer((0, 1), greater_is_better=True)
    >>> scorer
    term_strength_scorer(term=(0, 1), measure='variance', relative=True, target=None, \
greater_is_better=True)
    >>> 0.0 < scorer(model, X) < 0.1
    True
    """
    _behaviour.check_measure(measure)
    return BehaviourScorer(
        "term_strength_scorer",
        _behaviour.term_strength,
        {"term": term, "measure": measure, "relative": relative, "target": target},
        greater_is_better,
    )


def monotonicity_violation_scorer(
    feature,
    direction="increasing",
    *,
    measure="variation",
    relative=True,
    target=None,
    greater_is_better=False,
) -> BehaviourScorer:
    """Scorer of how much of a feature's partial dependence goes the wrong way.

    Parameters
    ----------
    feature, direction, measure, relative, target
        See :func:`monotonicity_violation`.
    greater_is_better : bool, default=False
        Whether a search should look for a large violation. If not, the score is minus the
        violation, 0 at best.

    Returns
    -------
    BehaviourScorer
        To be called with ``(estimator, X, y=None)``.

    See Also
    --------
    monotonicity_violation : What it measures.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn.model_selection import monotonicity_violation_scorer
    >>> X, y = make_friedman1(300, n_features=5, random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=20, monotonic_cst=[0, 0, 0, 1, 0])
    >>> monotonicity_violation_scorer(3, "increasing")(model.fit(X, y), X)
    0.0
    """
    _monotonicity.check_choices(direction, measure)
    return BehaviourScorer(
        "monotonicity_violation_scorer",
        _monotonicity.monotonicity_violation,
        {
            "feature": feature,
            "direction": direction,
            "measure": measure,
            "relative": relative,
            "target": target,
        },
        greater_is_better,
    )


def feature_influence_scorer(
    features, *, measure="variance", relative=True, target=None, greater_is_better=False
) -> BehaviourScorer:
    """Scorer of how much the response depends on some features, such as protected ones.

    Parameters
    ----------
    features, measure, relative, target
        See :func:`feature_influence`.
    greater_is_better : bool, default=False
        Whether a search should look for a large influence. If not, the score is minus the
        influence.

    Returns
    -------
    BehaviourScorer
        To be called with ``(estimator, X, y=None)``.

    See Also
    --------
    feature_influence : What it measures.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn.model_selection import feature_influence_scorer
    >>> X, y = make_friedman1(300, n_features=5, random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
    >>> -0.5 < feature_influence_scorer([0, 1])(model, X) < -0.2
    True
    """
    _behaviour.check_measure(measure)
    return BehaviourScorer(
        "feature_influence_scorer",
        _behaviour.feature_influence,
        {"features": features, "measure": measure, "relative": relative, "target": target},
        greater_is_better,
    )
