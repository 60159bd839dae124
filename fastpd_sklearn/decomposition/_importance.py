"""How much each term of the functional decomposition, each order and each feature matters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from fastpd_sklearn.decomposition._moments import ROUNDING, Comoments, weighted_sum
from fastpd_sklearn.decomposition._rows_in_blocks import open_explainer, row_blocks
from fastpd_sklearn.explainers import BaseExplainer, _checks, _outputs
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._protocol import Term

BLOCK_ROWS = 2**16
"""Rows at a time; few rows would make the tables of the trees anew too often."""

BLOCK_VALUES = 2**21
"""Values of terms that are looked at at a time."""

BY = ("term", "feature", "order")


@dataclass(frozen=True, eq=False, repr=False)
class Importance:
    r"""How much terms, orders and features matter, over some rows.

    All sizes are in the unit of the response. Arrays have a last axis ``n_outputs`` if there are
    several outputs.

    Parameters
    ----------
    terms : tuple of tuple of str
        Sets of features.
    feature_names : tuple of str
    output_names : tuple of str
        One an output.
    term_importances : ndarray of shape (n_terms,)
        Mean :math:`|m_S|`.
    term_variance_shares : ndarray of shape (n_terms,)
        :math:`Cov(m_S, f) / Var(f)`. With ``remainder_variance_share`` they add up to 1; a term
        that works against the others has a negative one. 0 if the response does not vary.
    joint_order_importances : ndarray of shape (n_orders,)
        Mean :math:`|\sum_{|S| = n} m_S|` for ``n = 1, 2, ...``: what all terms of an order do
        together. Not more than ``order_importances``, as terms can cancel.
    shap_importances : ndarray of shape (n_features,), or None
        Mean :math:`|\phi_k|`, the importance that is usual with SHAP values. None where SHAP
        values cannot be had: on the response scale, say.
    shap_variance_shares : ndarray of shape (n_features,), or None
        :math:`Cov(\phi_k, f) / Var(f)`, which add up to 1.
    remainder_importance : float or ndarray of shape (n_outputs,)
        Mean absolute sum of the terms that were left out.
    remainder_variance_share : float or ndarray of shape (n_outputs,)

    See Also
    --------
    importance : Makes it.
    fastpd_sklearn.display.ImportanceDisplay.from_importance : Draws it.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.decomposition import importance
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> found = importance(model, X)
    >>> found.terms
    (('x0',), ('x1',), ('x0', 'x1'))
    >>> found.term_importances
    array([2., 2., 2.])
    >>> found.term_variance_shares.round(3)
    array([0.333, 0.333, 0.333])
    >>> found.shap_importances
    array([2., 2.])
    """

    terms: tuple[tuple[str, ...], ...]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    term_importances: np.ndarray
    term_variance_shares: np.ndarray
    joint_order_importances: np.ndarray
    shap_importances: np.ndarray | None
    shap_variance_shares: np.ndarray | None
    remainder_importance: float | np.ndarray
    remainder_variance_share: float | np.ndarray

    def __repr__(self) -> str:
        return (
            f"Importance(n_terms={len(self.terms)}, n_features={len(self.feature_names)}, "
            f"n_outputs={len(self.output_names)})"
        )

    @property
    def feature_importances(self) -> np.ndarray:
        r"""Mean :math:`\sum_{S \ni k} |m_S| / |S|`, of shape (n_features,).

        Unlike those of SHAP values, a feature's main effect and interactions cannot cancel.
        """
        return self.feature_order_importances.sum(axis=1)

    @property
    def feature_order_importances(self) -> np.ndarray:
        """The parts of ``feature_importances`` by order, of shape (n_features, n_orders)."""
        place = {name: k for k, name in enumerate(self.feature_names)}
        n_orders = len(self.joint_order_importances)
        out = np.zeros((len(place), n_orders, *self.term_importances.shape[1:]))
        for names, size in zip(self.terms, self.term_importances, strict=True):
            for name in names:
                out[place[name], len(names) - 1] += size / len(names)
        return out

    @property
    def order_importances(self) -> np.ndarray:
        r"""Mean :math:`\sum_{|S| = n} |m_S|`, of shape (n_orders,)."""
        return self._by_order(self.term_importances)

    @property
    def order_variance_shares(self) -> np.ndarray:
        r""":math:`Cov(\sum_{|S| = n} m_S, f) / Var(f)`, of shape (n_orders,)."""
        return self._by_order(self.term_variance_shares)

    def to_frame(self, by="term"):
        """One line a term, feature or order, and output.

        Parameters
        ----------
        by : {"term", "feature", "order"}, default="term"

        Returns
        -------
        pandas.DataFrame
            The largest ``importance`` first but for orders; with the columns

            * ``term``, ``output``, ``importance``, ``variance_share``;
            * ``feature``, ``output``, ``importance``, ``shap_importance``,
              ``shap_variance_share``;
            * ``order``, ``output``, ``importance``, ``joint_importance``, ``variance_share``,

            without ``output`` if there is one, and without SHAP if there are no such values.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import importance
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> importance(model, X).to_frame(by="order").round(3)
           order  importance  joint_importance  variance_share
        0      1         4.0               2.0           0.667
        1      2         2.0               2.0           0.333
        """
        import pandas as pd

        _checks.check_choice("by", by, BY)
        keys, numbers = getattr(self, f"_lines_by_{by}")()
        n_outputs = len(self.output_names)
        columns = {by: np.repeat(keys, n_outputs)}
        if n_outputs > 1:
            columns["output"] = np.tile(self.output_names, len(keys))
        columns |= {name: value.reshape(-1) for name, value in numbers.items() if value is not None}
        frame = pd.DataFrame(columns)
        if by == "order":
            return frame
        return frame.sort_values("importance", ascending=False, ignore_index=True, kind="stable")

    def _lines_by_term(self):
        return [":".join(names) for names in self.terms], {
            "importance": self.term_importances,
            "variance_share": self.term_variance_shares,
        }

    def _lines_by_feature(self):
        return self.feature_names, {
            "importance": self.feature_importances,
            "shap_importance": self.shap_importances,
            "shap_variance_share": self.shap_variance_shares,
        }

    def _lines_by_order(self):
        return np.arange(1, len(self.joint_order_importances) + 1), {
            "importance": self.order_importances,
            "joint_importance": self.joint_order_importances,
            "variance_share": self.order_variance_shares,
        }

    def _by_order(self, values: np.ndarray) -> np.ndarray:
        sizes = np.array([len(names) for names in self.terms])
        orders = range(1, len(self.joint_order_importances) + 1)
        return np.array([values[sizes == n].sum(axis=0) for n in orders])


def importance(
    estimator,
    X,
    *,
    max_order="auto",
    sample_weight=None,
    target=None,
    groups=None,
    n_jobs=None,
) -> Importance:
    r"""Importance of all terms of the functional decomposition, and of orders and features.

    Exact, in blocks: neither all components nor all rows are in memory at once, so that it runs on
    millions of rows.

    Parameters
    ----------
    estimator : object
        A fitted tree ensemble, which is explained over ``X`` as the background; or an explainer
        that is fitted already.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows to average over; or chunks of such rows, as ``fit`` of an explainer takes them, or
        a Dask collection.
    max_order : "auto", int or None, default="auto"
        The most features in a term; None for no limit. "auto" is the terms of an explainer with
        ``output="component"``, and otherwise no limit.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows; for a model those of the background too.
    target : object, default=None
        A class label, or the number of an output, where the model has several; None for all.
    groups : dict of str to list of int or str, default=None
        Columns that play together as one feature.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Importance

    Raises
    ------
    TypeError, ValueError
        If the model cannot be read, or an argument does not go with an explainer.
    MemoryError
        If the model has too many terms to be listed; the message names ``max_order``.

    Notes
    -----
    Hiabu, Meyer and Wright have three definitions in section 2.5, all of which are here: the
    SHAP importance :math:`E|\phi_k| = E|\sum_{S \ni k} m_S / |S||`, in which main effects and
    interactions can cancel; :math:`E \sum_{S \ni k} |m_S| / |S|`, in which they cannot; and
    :math:`E|m_S|` of each term.

    Components of dependent features are not orthogonal, so that variances :math:`Var(m_S)` do not
    add up to that of the response. The covariances :math:`Cov(m_S, f)` do, as :math:`f` is the sum
    of the components: this is the share of variance that is given here (the covariance
    decomposition of Li et al.).

    References
    ----------
    M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
    functional decomposition of low dimensional structures", AISTATS 2023, section 2.5.

    G. Li, H. Rabitz, P. E. Yelvington et al., "Global sensitivity analysis for systems with
    independent and/or correlated inputs", Journal of Physical Chemistry A 114 (2010).

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn.decomposition import importance
    >>> X, y = make_friedman1(n_samples=500, n_features=6, random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=4).fit(X, y)
    >>> found = importance(model, X)
    >>> found.terms[found.term_importances.argmax()]
    ('x3',)
    >>> bool(abs(found.order_variance_shares.sum() - 1) < 1e-9)
    True
    """
    _checks.check_max_order(max_order)
    is_auto = isinstance(max_order, str)
    order = None if is_auto else max_order
    explainer = open_explainer(
        estimator,
        X,
        sample_weight,
        output="component",
        max_order=order,
        target=target,
        groups=groups,
        n_jobs=n_jobs,
    )
    components = explainer._fitted
    if components.output != "component" or not is_auto:
        terms = _outputs.default_terms(components.engine, len(components.players), order)
        components = components.showing("component", terms)
    averages = explainer._sum_over(X, sample_weight, partial(_averaged, components.terms))
    return _made(components, averages)


def _averaged(terms: list[Term], explainer: BaseExplainer, X, weights: np.ndarray) -> Averages:
    """Of terms, orders, features and the rest, in this order."""
    components = explainer._fitted.showing("component", terms)
    n_outputs = len(components.selection.outputs)
    shap = None
    if "shap" in components.engine.indices:
        singles = [(k,) for k in range(len(components.players))]
        shap = components.showing("shap", singles)
    size = max(1, BLOCK_ROWS // n_outputs)
    total = None
    for rows, block_weights in row_blocks(explainer, X, weights, size):
        found = _of_rows(components, shap, rows, block_weights)
        total = found if total is None else total + found
    return total


@dataclass(frozen=True, eq=False)
class Averages:
    """Of some quantities over rows with weights; blocks of rows are added.

    Parameters
    ----------
    size : ndarray of shape (n_quantities, n_outputs)
        Weighted sums of absolute values.
    comoments : Comoments
        With the response.
    variance : Comoments
        Of the response, shape (1, n_outputs).
    largest : ndarray of shape (n_outputs,)
        The largest absolute response.
    """

    size: np.ndarray
    comoments: Comoments
    variance: Comoments
    largest: np.ndarray

    def __add__(self, other: Averages) -> Averages:
        return Averages(
            self.size + other.size,
            self.comoments + other.comoments,
            self.variance + other.variance,
            np.maximum(self.largest, other.largest),
        )


class _Sums:
    """Sums over a block of rows that are filled in some quantities at a time."""

    def __init__(self, n_quantities: int, response: np.ndarray, weights: np.ndarray) -> None:
        self.weights = weights
        self.total = weights.sum()
        self.response = response
        self.mean_response = weighted_sum(weights, response.T) / self.total
        self.deviation = np.asfortranarray(weights[:, None] * (response - self.mean_response))
        self.size, self.mean, self.product = np.zeros((3, n_quantities, response.shape[1]))

    def add(self, numbers, values: np.ndarray) -> None:
        """Quantities of shape (n_rows, n_quantities, n_outputs), which are overwritten."""
        for o in range(values.shape[2]):
            by_quantity = values[:, :, o].T  # the values of a quantity lie together
            self.mean[numbers, o] = weighted_sum(self.weights, by_quantity) / self.total
            self.product[numbers, o] = weighted_sum(self.deviation[:, o], by_quantity)
            np.abs(by_quantity, out=by_quantity)
            self.size[numbers, o] = weighted_sum(self.weights, by_quantity)

    def averages(self) -> Averages:
        """What has been filled in."""
        reference, total = np.broadcast_to(self.mean_response, self.mean.shape), self.total
        spread = ((self.response - self.mean_response) * self.deviation).sum(axis=0)
        own = self.mean_response[None]
        return Averages(
            self.size,
            Comoments(total, self.mean, reference, self.product),
            Comoments(total, own, own, spread[None]),
            np.abs(self.response).max(axis=0),
        )


def _of_rows(components: Fitted, shap: Fitted | None, X, weights: np.ndarray) -> Averages:
    """Averages of terms, of sums of the terms of each order, of SHAP values and of the rest."""
    response = components.response(X)
    sizes = np.array([len(term) for term in components.terms])
    n_terms, n_orders = len(sizes), sizes.max()
    n_features = 0 if shap is None else len(shap.terms)
    sums = _Sums(n_terms + n_orders + n_features + 1, response, weights)
    by_order = np.zeros((n_orders, response.shape[1], len(response))).transpose(2, 0, 1)
    for numbers, values in components.blocks(X, BLOCK_VALUES):
        for n in np.unique(sizes[numbers]):
            is_order = sizes[numbers] == n
            by_order[:, n - 1] += (values if is_order.all() else values[:, is_order]).sum(axis=1)
        sums.add(numbers, values)
    rest = response - components.intercept - by_order.sum(axis=1)
    sums.add(slice(n_terms, n_terms + n_orders), by_order)
    if shap is not None:
        sums.add(slice(n_terms + n_orders, -1), shap.evaluate(X, shap.recipe))
    sums.add(slice(-1, None), rest[:, None])
    return sums.averages()


def _made(components: Fitted, averages: Averages) -> Importance:
    n_terms, n_features = len(components.terms), len(components.players)
    n_orders = max(len(term) for term in components.terms)
    size = averages.size / averages.variance.weight
    variance = averages.variance.covariance
    share = np.divide(
        averages.comoments.covariance,
        variance,
        out=np.zeros_like(size),
        where=variance > (ROUNDING * averages.largest) ** 2,
    )
    if size.shape[1] == 1:
        size, share = size[:, 0], share[:, 0]
    features = slice(n_terms + n_orders, n_terms + n_orders + n_features)
    has_shap = len(size) > features.start + 1
    return Importance(
        terms=tuple(map(components.players.name, components.terms)),
        feature_names=components.players.names,
        output_names=components.selection.names,
        term_importances=size[:n_terms],
        term_variance_shares=share[:n_terms],
        joint_order_importances=size[n_terms : features.start],
        shap_importances=size[features] if has_shap else None,
        shap_variance_shares=share[features] if has_shap else None,
        remainder_importance=size[-1],
        remainder_variance_share=share[-1],
    )
