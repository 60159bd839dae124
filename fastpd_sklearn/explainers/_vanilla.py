"""Explanations of any model, by calling it."""

from __future__ import annotations

from itertools import chain, combinations
from typing import ClassVar

import numpy as np

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.explainers import _outputs
from fastpd_sklearn.explainers._base import BaseExplainer
from fastpd_sklearn.explainers._game import interaction_index, moebius
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Response
from fastpd_sklearn.forest import _rows

BLOCK_ROWS = 50_000
"""Rows that the model predicts at a time."""

MAX_PLAYERS = 12
"""Players of whom all sets are looked at."""

GAME_BYTES = 2**26
"""Size of the values of all sets that are held at a time."""


ALIKE = 1e-9
"""How much sums of responses may differ between two copies of a model, by rounding."""


class PredictionEngine:
    """The game by its definition: set columns, predict, average.

    Parameters
    ----------
    respond : Response
    players : tuple of ndarray of int
        The columns of each player.
    n_outputs : int
    """

    is_mean = True

    def __init__(self, respond: Response, players: tuple[np.ndarray, ...], n_outputs: int) -> None:
        self.n_outputs = n_outputs
        self._respond = respond
        self._players = players
        self._batches: list[tuple[object, np.ndarray]] = []
        self._total_weight = 0.0
        self._total = np.zeros(n_outputs)

    @property
    def indices(self) -> tuple[str, ...]:
        """All of them, where the players are few enough to look at all of their sets."""
        return tuple(INDICES) if len(self._players) <= MAX_PLAYERS else ("component",)

    @property
    def intercept(self) -> np.ndarray:
        """Mean response over the background, of shape (n_outputs,)."""
        return self._total / self._total_weight

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Keep rows, those without weight aside."""
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        kept = np.flatnonzero(weights)  # an index makes the copy that keeps X the user's own
        rows, weights = _rows.take(X, kept), weights[kept]
        response = self._predict(rows)
        total = (response * weights[:, None]).sum(axis=0)
        self._add([(rows, weights)], weights.sum(), total)

    def check_same_model(self, other: PredictionEngine) -> None:
        """Refuse an engine whose model responds differently to the rows of the two."""
        alike = self._respond is other._respond or all(
            np.allclose(one._sum_over(two._batches), two._total, rtol=ALIKE, atol=0.0)
            for one, two in ((self, other), (other, self))
        )
        if not alike:
            raise ValueError(
                "merge: the two explainers explain different models, which respond differently to "
                "the rows of the backgrounds; fit both on parts of a background of one model"
            )

    def merge(self, other: PredictionEngine) -> None:
        """Add the rows of another engine."""
        self._add(other._batches, other._total_weight, other._total)

    def _add(self, batches: list, weight: float, total: np.ndarray) -> None:
        self._batches = [*self._batches, *batches]
        self._total_weight = self._total_weight + weight
        self._total = self._total + total

    def _sum_over(self, batches: list) -> np.ndarray:
        """Weighted sum of the responses to some rows, shape (n_outputs,)."""
        return sum((self._predict(X) * weights[:, None]).sum(axis=0) for X, weights in batches)

    def common_terms(self, max_order: int | None) -> list[Term]:
        """All sets of players, since nothing is known of the model."""
        n_players = len(self._players)
        if max_order is None:
            self._check_players("max_order=None")
            max_order = n_players
        sizes = range(2, min(max_order, n_players) + 1)
        return list(chain.from_iterable(combinations(range(n_players), k) for k in sizes))

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """See :class:`~fastpd_sklearn.explainers.Engine`."""
        self._predict(X)  # so that the model refuses what it does not take, used or not
        if index == "component":
            return self._components(X, terms)
        self._check_players("SHAP and Banzhaf values")
        out = np.empty((X.shape[0], len(terms), self.n_outputs))
        step = max(1, GAME_BYTES // (8 * self.n_outputs * 2 ** len(self._players)))
        for start in range(0, X.shape[0], step):
            part = slice(start, start + step)
            components = moebius(self._all_values(_rows.take(X, part)))
            for t, term in enumerate(terms):
                out[part, t] = interaction_index(components, index, term)
        return out

    def predict(self, X) -> np.ndarray:
        """The response, of shape (n_rows, n_outputs)."""
        return self._predict(X)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """All of them as one block: the same sets are predicted for any part of them."""
        yield np.arange(len(terms)), self.index_values(X, index, terms)

    def pair_grid(self, X, pairs: list[Term]) -> None:
        """None: there is no better way than pair by pair."""
        return None

    def listed_categories(self, column: int) -> None:
        """None: what a model does with its columns is unknown."""
        return None

    def levels(self, player: int) -> None:
        """None: components are found row by row."""
        return None

    def split_points(self, column: int) -> None:
        """None: where a model jumps is unknown."""
        return None

    def _check_players(self, what: str) -> None:
        if len(self._players) > MAX_PLAYERS:
            raise ValueError(
                f"{what}: all sets of {len(self._players)} features are too many to predict, "
                f"{MAX_PLAYERS} features are the most; join columns by `groups`, set max_order, "
                "or use FastPDExplainer if the model is a tree ensemble"
            )

    def _components(self, X, terms: list[Term]) -> np.ndarray:
        """``m_S`` less each smaller component that is part of it, from small sets to large."""
        known: dict[Term, np.ndarray] = {}
        for term in _outputs.closure(terms):
            component = self._value(X, term) - self.intercept
            for part in _outputs.subsets(term):
                if part != term:
                    component = component - known[part]
            known[term] = component
        return np.stack([known[term] for term in terms], axis=1)

    def _all_values(self, X) -> np.ndarray:
        """``v`` of every set as a bit mask, of shape (2 ** n_players, n_rows, n_outputs)."""
        n_players = len(self._players)
        out = np.empty((2**n_players, X.shape[0], self.n_outputs))
        out[0] = self.intercept
        for mask in range(1, len(out)):
            out[mask] = self._value(X, tuple(k for k in range(n_players) if mask >> k & 1))
        return out

    def _value(self, X, term: Term) -> np.ndarray:
        """``v_S`` of every row, of shape (n_rows, n_outputs); equal rows are looked at once."""
        if len(term) == len(self._players):
            return self._predict(X)
        columns = np.concatenate([self._players[k] for k in term])
        rows, kind = _rows.distinct_rows(X, columns)
        X = _rows.take(X, rows)
        total = np.zeros((len(rows), self.n_outputs))
        for background, weights in self._batches:
            for part in _slices(len(weights), BLOCK_ROWS):
                chunk = _rows.take(background, part)
                total += self._sums(X, columns, chunk, weights[part])
        return (total / self._total_weight)[kind]

    def _sums(self, X, columns, background, weights: np.ndarray) -> np.ndarray:
        """Weighted sums of the response over rows of the background, for every row of ``X``."""
        size = len(weights)
        out = np.empty((X.shape[0], self.n_outputs))
        for part in _slices(X.shape[0], max(1, BLOCK_ROWS // size)):
            explained = np.arange(part.start, part.stop)
            hybrid = _rows.with_columns(
                _rows.take(background, np.tile(np.arange(size), len(explained))),
                _rows.take(X, np.repeat(explained, size)),
                columns,
            )
            response = self._respond(hybrid).reshape(len(explained), size, self.n_outputs)
            out[part] = (response * weights[:, None]).sum(axis=1)
        return out

    def _predict(self, X) -> np.ndarray:
        parts = [self._respond(_rows.take(X, part)) for part in _slices(X.shape[0], BLOCK_ROWS)]
        return np.concatenate(parts)


def _slices(n: int, step: int) -> list[slice]:
    return [slice(start, min(n, start + step)) for start in range(0, n, step)]


class VanillaPDExplainer(BaseExplainer):
    """Explain any model by its predictions alone.

    ``v_S(x)`` is the weighted mean, over the rows of the background, of the model's response
    after the columns of the features ``S`` are set to those of ``x``. This takes
    ``n_rows * n_background`` predictions a set: it is the definition, made for small data, for
    models that are no tree ensembles, and to check the fast explainers against.

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
        features, and all sets of them up to ``max_order``.
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
        The response to explain. "auto" is the scale on which the trees add up ("raw") for tree
        ensembles that can be read; for other models the first of ``predict_proba`` and
        ``decision_function`` that a classifier has, and ``predict``.
    n_jackknife : int, default=0
        Groups of the rows of the background, one of which is left out at a time to find
        standard errors (20 to 50 will do). 0: none are kept. The memory for what is kept of the
        background, and the time of :meth:`standard_error`, grow with it.
    n_jobs : int or None, default=None
        Not used: the model's own setting rules.
    random_state : int, RandomState instance or None, default=None
        Not used: nothing is drawn at random.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    estimator_ : object
        The model that is explained.
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

    Notes
    -----
    SHAP and Banzhaf values look at all sets of features, which must not be more than 12.

    References
    ----------
    J. H. Friedman, "Greedy function approximation: a gradient boosting machine", Annals of
    Statistics 29 (2001), equation 53, for the partial dependence.

    M. Grabisch, M. Roubens, "An axiomatic approach to the concept of interaction among players
    in cooperative games", International Journal of Game Theory 28 (1999), for the interaction
    indices.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fastpd_sklearn import VanillaPDExplainer
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> model = LinearRegression().fit(X, X @ [1.0, 3.0])
    >>> explainer = VanillaPDExplainer(output="shap").fit(model, X)
    >>> explainer.intercept_.round(6)
    array([4.])
    >>> explainer.transform(X).round(6)
    array([[-1., -3.],
           [ 1., -3.],
           [-1.,  3.],
           [ 1.,  3.]])
    """

    # It explains by the model itself: a pickle without it would be of no use.
    _packed_names: ClassVar[tuple[str, ...]] = ()

    def _make_engine(self, model, X, players):
        respond = Response(model, self.response_method)
        n_outputs = respond(_rows.take(X, slice(0, 1))).shape[1]
        return PredictionEngine(respond, players, n_outputs), respond.head

    def detach(self):
        """Raise ``TypeError``: these explanations are made by calling the model.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import VanillaPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> VanillaPDExplainer().fit(model, X).detach()
        Traceback (most recent call last):
            ...
        TypeError: VanillaPDExplainer explains by calling its model and cannot do without it
        """
        raise TypeError("VanillaPDExplainer explains by calling its model and cannot do without it")
