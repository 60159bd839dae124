"""Friedman's H statistics, from the components of the functional decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fastpd_sklearn.decomposition._moments import ROUNDING, Spread
from fastpd_sklearn.decomposition._rows_in_blocks import open_explainer, row_blocks
from fastpd_sklearn.explainers import _checks, _outputs
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._players import as_list
from fastpd_sklearn.explainers._protocol import Term

FEWEST_ROWS, MOST_ROWS = 2**12, 2**17
"""Rows at a time: a block costs something by itself."""

BLOCK_VALUES = 2**21
"""Components of sets that are looked at at a time."""

PART_BYTES = 2**26
"""Size of the components of smaller sets that are held at a time."""


@dataclass(frozen=True, eq=False, repr=False)
class HStatistics:
    """How much of what features do together is interaction.

    Parameters
    ----------
    terms : tuple of tuple of str
        Sets of features; single ones for their interaction with all the others.
    h_squared : ndarray of shape (n_terms,) or (n_terms, n_outputs)
        Friedman and Popescu's :math:`H^2`; 0 where the numerator is.
    unnormalized : ndarray of shape (n_terms,) or (n_terms, n_outputs)
        The root of the numerator, which is the standard deviation of the interaction, in the unit
        of the response.
    output_names : tuple of str
        One an output.

    See Also
    --------
    h_statistic : Makes them.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.decomposition import h_statistic
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> statistics = h_statistic(model, X)
    >>> statistics.terms, statistics.h_squared.round(3), statistics.unnormalized
    ((('x0', 'x1'),), array([0.333]), array([2.]))
    """

    terms: tuple[tuple[str, ...], ...]
    h_squared: np.ndarray
    unnormalized: np.ndarray
    output_names: tuple[str, ...]

    @property
    def h(self) -> np.ndarray:
        """The root of ``h_squared``."""
        return np.sqrt(self.h_squared)

    def __repr__(self) -> str:
        return f"HStatistics(n_terms={len(self.terms)}, n_outputs={len(self.output_names)})"

    def to_frame(self):
        """One line a term and output, the largest H first.

        Returns
        -------
        pandas.DataFrame
            Columns ``term``, ``output`` if there are several, ``h``, ``h_squared`` and
            ``unnormalized``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn.decomposition import h_statistic
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> h_statistic(model, X).to_frame().round(3)
            term      h  h_squared  unnormalized
        0  x0:x1  0.577      0.333           2.0
        """
        import pandas as pd

        n_outputs = len(self.output_names)
        columns = {"term": np.repeat([":".join(names) for names in self.terms], n_outputs)}
        if n_outputs > 1:
            columns["output"] = np.tile(self.output_names, len(self.terms))
        for name in ("h", "h_squared", "unnormalized"):
            columns[name] = getattr(self, name).reshape(-1)
        frame = pd.DataFrame(columns)
        return frame.sort_values(["h", "unnormalized"], ascending=False, ignore_index=True)


def h_statistic(
    estimator,
    X,
    *,
    order=2,
    features=None,
    sample_weight=None,
    target=None,
    groups=None,
    n_jobs=None,
) -> HStatistics:
    r"""Friedman's H statistics of all pairs of features, of larger sets, or of single features.

    Exact, with all rows, for all sets at once: no sampling and no quadratic cost.

    Parameters
    ----------
    estimator : object
        A fitted tree ensemble, which is explained over ``X`` as the background; or an explainer
        that is fitted already, for another background, another response, or, with
        ``VanillaPDExplainer``, any model.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows over which variances are taken.
    order : int, default=2
        Features in a set. 1: each feature's interactions with all the others, :math:`H_j`; 2:
        :math:`H_{jk}`; 3: :math:`H_{jkl}`, what three do beyond all pairs; and so on.
    features : list of int or str, or of tuples of them, default=None
        The sets; or features of which all sets are wanted. None: all sets that lie on a common
        path of a tree, as no other one interacts; there may be none.
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
    HStatistics

    Raises
    ------
    TypeError, ValueError
        If the model cannot be read, ``order`` is no positive int, a set has another size, or an
        explainer has no values from which to tell.

    Notes
    -----
    With partial dependence functions :math:`F_S` that are centred over the rows,

    .. math::

        H_{jk}^2 = \frac{\sum_i [F_{jk} - F_j - F_k]^2}{\sum_i F_{jk}^2}, \qquad
        H_j^2 = \frac{\sum_i [F - F_j - F_{\setminus j}]^2}{\sum_i F^2}

    (Friedman and Popescu, section 8.1). What stands in the numerators is the component
    :math:`m_{jk}` of the functional decomposition, and the sum of all components of two or more
    features of which :math:`j` is one, less its mean. So :math:`H_{jk}^2` is the variance of
    :math:`m_{jk}` over that of :math:`m_j + m_k + m_{jk}`, and no differences of large numbers
    are taken: of features that do not interact it is 0, and not about 0. Standard deviations
    below 1e-12 of the largest response are taken for rounding, and 0/0 for 0: where nothing
    happens nothing interacts.

    Where features depend on each other, :math:`m_{jk}` and the main effects can cancel, so that
    :math:`H^2` may exceed 1. And H is a ratio: of two features that hardly matter it can be large.
    Rank by ``unnormalized`` to find the interactions that matter.

    References
    ----------
    J. H. Friedman, B. E. Popescu, "Predictive learning via rule ensembles", Annals of Applied
    Statistics 2 (2008), section 8.1.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.ensemble import HistGradientBoostingRegressor
    >>> from fastpd_sklearn.decomposition import h_statistic
    >>> X, y = make_friedman1(n_samples=500, n_features=6, random_state=0)
    >>> model = HistGradientBoostingRegressor(max_iter=50, max_leaf_nodes=4).fit(X, y)
    >>> pairs = h_statistic(model, X)  # y has x0 * x1 in it
    >>> pairs.terms[pairs.unnormalized.argmax()]
    ('x0', 'x1')
    """
    _checks.check_positive("order", order)
    explainer = open_explainer(
        estimator,
        X,
        sample_weight,
        output="total" if order == 1 else "component",
        max_order=order,
        target=target,
        groups=groups,
        n_jobs=n_jobs,
    )
    fitted = explainer._fitted
    terms = _find_terms(fitted, features, order)
    if not terms:
        nothing = np.zeros((0, len(fitted.selection.outputs)))
        return _made(fitted, terms, nothing, nothing, np.zeros(nothing.shape[1]))
    parts = _Overall(fitted, terms) if order == 1 else _Sets(fitted, terms)
    n_columns = max(1, parts.n_columns * len(fitted.selection.outputs))
    size = min(MOST_ROWS, max(FEWEST_ROWS, PART_BYTES // (8 * n_columns)))
    largest, totals = 0.0, None
    for rows, weights in row_blocks(explainer, X, sample_weight, size):
        response = fitted.response(rows)
        largest = np.maximum(largest, np.abs(response).max(axis=0))
        spreads = [Spread(weights, (len(terms), response.shape[1])) for _ in range(2)]
        parts.add(spreads, rows, response)
        found = [spread.comoments() for spread in spreads]
        totals = found if totals is None else [a + b for a, b in zip(totals, found, strict=True)]
    return _made(fitted, terms, *(moments.covariance for moments in totals), ROUNDING * largest)


class _Overall:
    """What a feature does with others, and the whole response.

    Parameters
    ----------
    fitted : Fitted
    terms : list of tuple of int
        Single players.

    Attributes
    ----------
    n_columns : int
        Values of a row that are held at a time.
    """

    def __init__(self, fitted: Fitted, terms: list[Term]) -> None:
        self.total = fitted.showing("total", terms)
        self.single = fitted.showing("component", terms)
        self.n_columns = 2 * len(terms)

    def add(self, spreads: list[Spread], X, response: np.ndarray) -> None:
        """Fill in numerators and denominators of some rows."""
        above, below = spreads
        values = self.total.evaluate(X, self.total.recipe)
        values -= self.single.evaluate(X, self.single.recipe)
        for o in range(values.shape[2]):
            for k in range(values.shape[1]):
                above.add((k, o), values[:, k, o])
            below.add((slice(None), o), response[:, o].copy())


class _Sets:
    """Components of sets, and what all features of a set do.

    Parameters
    ----------
    fitted : Fitted
    terms : list of tuple of int
        Sets of as many players each, at least two.

    Attributes
    ----------
    n_columns : int
        Values of a row that are held at a time.
    """

    def __init__(self, fitted: Fitted, terms: list[Term]) -> None:
        smaller = [part for part in _outputs.closure(terms) if len(part) < len(terms[0])]
        self.place = {part: k for k, part in enumerate(smaller)}
        self.smaller = fitted.showing("component", smaller)
        self.sets = fitted.showing("component", terms)
        self.n_columns = len(smaller)

    def add(self, spreads: list[Spread], X, response: np.ndarray) -> None:
        """Fill in numerators and denominators of some rows."""
        above, below = spreads
        smaller = self.smaller.evaluate(X, self.smaller.recipe)
        joint = np.empty(len(response))
        for numbers, values in self.sets.blocks(X, BLOCK_VALUES):
            for k, number in enumerate(numbers):
                *parts, _ = _outputs.subsets(self.sets.terms[number])
                places = [self.place[part] for part in parts]
                for o in range(response.shape[1]):
                    np.add(values[:, k, o], smaller[:, places[0], o], out=joint)
                    for place in places[1:]:
                        joint += smaller[:, place, o]
                    above.add((number, o), values[:, k, o])
                    below.add((number, o), joint)


def _made(
    fitted: Fitted, terms: list[Term], above: np.ndarray, below: np.ndarray, zero: np.ndarray
) -> HStatistics:
    """The statistics from variances of shape (n_terms, n_outputs)."""
    above = np.where(above <= zero**2, 0.0, above)
    h_squared = np.divide(above, below, out=np.zeros_like(above), where=below > zero**2)
    names = fitted.selection.names
    if len(names) == 1:
        above, h_squared = above[:, 0], h_squared[:, 0]
    return HStatistics(tuple(map(fitted.players.name, terms)), h_squared, np.sqrt(above), names)


def _find_terms(fitted: Fitted, features, order: int) -> list[Term]:
    """The sets that a user wants; those that can interact if none is named."""
    players = fitted.players
    if features is None:
        terms = _outputs.default_terms(fitted.engine, len(players), order)
        terms = [term for term in terms if len(term) == order]
    else:
        features = as_list(features)
        named = [one for one in features if isinstance(one, tuple | list)]
        terms = [tuple(sorted(players.find_term(one))) for one in named]
        for term, one in zip(terms, named, strict=True):
            if len(term) != order:
                raise ValueError(
                    f"features: {one!r} has {len(term)} features, and order={order}; name sets of "
                    "that size, or pass another order"
                )
        single = sorted({players.find(one) for one in features if one not in named})
        terms = sorted({*terms, *combinations(single, order)})
        if not terms:
            raise ValueError(
                f"features={features!r} are fewer than order={order}; name more, or lower order"
            )
    return terms
