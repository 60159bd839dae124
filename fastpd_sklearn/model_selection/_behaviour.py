"""Numbers that say what a fitted model does with its features."""

from __future__ import annotations

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.model_selection._components import MEASURES, components_of
from fastpd_sklearn.model_selection._players import as_list, columns_as_players, others_together


def interaction_share(estimator, X, *, target=None, sample_weight=None) -> float:
    """Share of the variance of a model's response that its main effects leave unexplained.

    This is Friedman and Popescu's overall interaction statistic ``H²``:
    ``Var(f(x) - sum_j v_j(x)) / Var(f(x))`` over the rows ``x`` of ``X``, where ``f`` is the
    response and ``v_j`` the partial dependence on the single feature ``j``, exact over all rows
    of ``X``.

    Parameters
    ----------
    estimator : object
        A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` can read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows, at once explained and the background.
    target : object, default=None
        A class label, or the number of an output, where the model has several. None: their
        variances are added up, above and below.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    float
        0 for a model without interactions, and for a constant one. It may exceed 1 where main
        effects of correlated features cancel each other.

    References
    ----------
    J. H. Friedman, B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied
    Statistics 2(3), 2008, section 8.1.

    Examples
    --------
    A model that is 8 in one corner of a square and else 0. The variance is 12; the components
    are 2 and -2 in equal parts, the two main effects as well as the interaction:

    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import interaction_share
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> round(interaction_share(model, X), 6)
    0.333333
    """
    parts = components_of(estimator, X, sample_weight, max_order=1, target=target)
    return parts.share(parts.remainder, "variance")


def term_strength(
    estimator, X, term, *, measure="variance", relative=True, target=None, sample_weight=None
) -> float:
    """How much one component of the functional decomposition moves the response.

    The component of one feature is its partial dependence, less the mean response; that of
    several is what they do together beyond what each smaller set of them does.

    Parameters
    ----------
    estimator : object
        A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` can read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows, at once explained and the background.
    term : int, str, or tuple of them
        A column by number or name, or several for their interaction.
    measure : {"variance", "std", "mean_abs"}, default="variance"
        Variance, standard deviation or mean absolute value of the component over ``X``.
    relative : bool, default=True
        Whether to divide by the same of the response less its mean. Otherwise the unit is that
        of the response, squared for "variance".
    target : object, default=None
        A class label, or the number of an output, where the model has several. None: the
        variances or mean absolute values of all outputs are added up.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    float
        0 or greater; relative to a constant response it is 0.

    References
    ----------
    B. M. Greenwell, B. C. Boehmke, A. J. McCarthy, "A Simple and Effective Model-Based Variable
    Importance Measure" (2018), for the standard deviation of a partial dependence.

    J. H. Friedman, B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied
    Statistics 2(3), 2008, section 8.1, for pairs: the numerator of their ``H²_jk``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import term_strength
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> round(term_strength(model, X, (0, 1)), 6)
    0.333333
    >>> round(term_strength(model, X, 0, measure="std", relative=False), 6)
    2.0
    """
    check_measure(measure)
    X = _checks.check_rows(X)
    players = columns_as_players(X)
    columns = players.find_term(term)
    parts = components_of(
        estimator,
        X,
        sample_weight,
        features=[columns],
        groups=others_together(players, columns),
        target=target,
    )
    size = parts.share if relative else parts.size
    return size(parts.values[:, 0], measure)


def feature_influence(
    estimator, X, features, *, measure="variance", relative=True, target=None, sample_weight=None
) -> float:
    """How much a model's response depends on some features, in whatever way.

    What is measured is ``f(x) - v(x)``, where ``v`` is the response after the features have been
    integrated out: its mean over the rows of ``X``, from which each time only these features are
    taken. It is the sum of all components that involve at least one of the features, and zero
    for a model that does not use them. It speaks of the features as columns: what other columns
    tell of them remains, as where a salary is predicted by hours that men and women work.

    Parameters
    ----------
    estimator : object
        A fitted model that :class:`~fastpd_sklearn.FastPDExplainer` can read.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows, at once explained and the background.
    features : int, str, or list of them
        Columns by number or name, such as the protected attributes of people.
    measure : {"variance", "std", "mean_abs"}, default="variance"
        Variance, standard deviation or mean absolute value of the difference over ``X``.
    relative : bool, default=True
        Whether to divide by the same of the response less its mean. Otherwise the unit is that
        of the response, squared for "variance".
    target : object, default=None
        A class label, or the number of an output, where the model has several. None: the
        variances or mean absolute values of all outputs are added up.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows.

    Returns
    -------
    float
        0 or greater; relative to a constant response it is 0. In the relative variance it is 1
        for the set of all features, and may exceed 1 for correlated ones.

    References
    ----------
    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023, sections 2.4
    and 3.3, for the removal of protected features from a fitted model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import feature_influence
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> round(feature_influence(model, X, [0]), 6)
    0.666667
    >>> round(feature_influence(model, X, [0], measure="mean_abs", relative=False), 6)
    2.0
    """
    check_measure(measure)
    X = _checks.check_rows(X)
    players = columns_as_players(X)
    these = list(players.find_term(tuple(as_list(features))))
    others = others_together(players, these)
    parts = components_of(
        estimator,
        X,
        sample_weight,
        max_order=None,
        groups={**others, "these": these},
        target=target,
    )
    involved = ["these" in term for term in parts.terms]
    size = parts.share if relative else parts.size
    return size(parts.values[:, involved].sum(axis=1), measure)


def check_measure(measure) -> None:
    """Refuse a ``measure`` that there is not."""
    _checks.check_choice("measure", measure, MEASURES)
