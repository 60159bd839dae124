"""Accumulated local effects of any model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Real

import joblib
import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.core.threads import effective_n_threads
from fastpd_sklearn.explainers import _checks, _sources
from fastpd_sklearn.explainers._ale_chunks import EffectsPass, find_points
from fastpd_sklearn.explainers._ale_compute import (
    Background,
    accumulated_effects,
    add_rows,
    new_sums,
)
from fastpd_sklearn.explainers._ale_results import ALECurve, ALESurface
from fastpd_sklearn.explainers._ale_sums import AllSums, CurveSums, Settings, SurfaceSums
from fastpd_sklearn.explainers._columns import read_column
from fastpd_sklearn.explainers._local import (
    Draft,
    LocalExplainer,
    refuse_missing,
    takes_missing,
)
from fastpd_sklearn.explainers._players import Players, as_list
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Selection, output_columns

CATEGORY_ORDERS = ("similarity", "coded")

_SETTINGS = ("`features`", "`target`", "`confidence`", "`n_bootstrap`")


@dataclass(eq=False)
class FittedALE:
    """What :class:`ALEExplainer` has learnt beside the effects.

    Parameters
    ----------
    players : Players
    terms : list of tuple of int
        Columns of the effects.
    selection : Selection
    absent : float
        What an absent entry of a sparse matrix means.
    takes_missing : bool
        Whether missing values are taken.
    tags : dict of str to bool
        What the model says of its input.
    settings : Settings
    sums : tuple of CurveSums and SurfaceSums
        What the effects are made of.
    digest : str or None
        Of what the response is read from; None where that does not tell the model.
    """

    players: Players
    terms: list[Term]
    selection: Selection
    absent: float
    takes_missing: bool
    tags: dict[str, bool]
    settings: Settings
    sums: tuple[CurveSums | SurfaceSums, ...]
    digest: str | None

    def check_mergeable(self, other: FittedALE) -> None:
        """Refuse sums over other bins, or of another response.

        Raises
        ------
        ValueError
            It says what is not the same.
        """
        for setting, one, two in zip(_SETTINGS, self._asked(), other._asked(), strict=True):
            if one != two:
                raise ValueError(
                    f"merge: the two explainers were fitted with different {setting}: {one} and "
                    f"{two}; fit both with the same parameters"
                )
        for term, one, two in zip(self.terms, self.sums, other.sums, strict=True):
            for j, points, others in zip(term, one.points, two.points, strict=True):
                if one.is_categorical != two.is_categorical or not np.array_equal(points, others):
                    raise ValueError(
                        "merge: the two explainers have different bins, or orders of categories, "
                        f"of {self.players.names[j]!r}, which are those of their own rows; fit one "
                        "explainer to all chunks, or name its bins for both in `custom_values`"
                    )
        if self.settings.n_bootstrap and self.settings.seed == other.settings.seed:
            raise ValueError(
                "merge: the two explainers drew their bootstrap by the same random numbers, so "
                "that their rows would not be drawn independently; fit them with different "
                "random_state"
            )

    def _asked(self) -> tuple:
        """What was asked for, one each of ``_SETTINGS``."""
        names = [self.players.name(term) for term in self.terms]
        target = (*self.selection.names, self.selection.sign, self.selection.offset)
        return names, target, self.settings.confidence, self.settings.n_bootstrap

    def merged(self, other: FittedALE) -> FittedALE:
        """Over the rows of both; see :meth:`check_mergeable`."""
        sums = tuple(one + two for one, two in zip(self.sums, other.sums, strict=True))
        missing = self.takes_missing or other.takes_missing
        return replace(self, sums=sums, takes_missing=missing)


class ALEExplainer(LocalExplainer):
    """Explain any model by accumulated local effects.

    Where columns go together, partial dependence asks a model about rows that do not exist. The
    accumulated local effect of a feature asks only about small steps: within each of some bins
    of its values, how much does the response of the rows there change from the lower edge of the
    bin to the upper one, all else being theirs? The mean changes are added up along the feature.

    Tree ensembles are not called for this: all features' responses come from one pass through
    the trees, also for responses that are a function of their sum, such as probabilities of a
    boosted classifier. Any other model predicts two rows for each row of the background and
    feature, four for pairs.

    Parameters
    ----------
    estimator : object, default=None
        The model: fitted by ``fit(X, y)``, or left as it is if it is a ``FrozenEstimator``.
        Not needed for ``fit(model, background)``.
    features : list of int, str, or tuples of two of them, default=None
        Columns by number or name; a tuple for the second-order effect of two columns of
        numbers, which is their interaction alone. None: each column by itself.
    n_bins : int, default=20
        The most bins of a column of numbers. Edges are values that occur: all of them if they
        are few, else quantiles, so that bins have about the same weight, and none is empty.
    custom_values : dict of int or str to array-like, default=None
        Edges of bins for a column of numbers, ascending; a bin without rows becomes a part of the
        next one. The order of the categories for a categorical column.
    categorical_features : list of int or str, default=None
        Columns of numbers that are categories. Columns of labels are always categorical; None
        adds those that a tree ensemble is known to split by category.
    category_order : {"similarity", "coded"}, default="similarity"
        The order in which effects of categories are accumulated. "similarity": neighbours are
        alike in all other columns; "coded": as an ordered categorical dtype has it, or sorted.
    confidence : float or None, default=0.95
        Of the limits of first-order effects: how likely they are to hold the effect that an
        endless background would give, the model being what it is. None for no limits.
    n_bootstrap : int, default=0
        Draws of the background to find the limits by; 0: from the variance of the local
        effects, by the normal distribution.
    target : object, default=None
        A class label, or the number of an output, where the model has several; None for all. A
        binary classifier has one output, that of ``classes_[1]``.
    response_method : {"auto", "raw", "predict", "predict_proba", "decision_function"}, \
default="auto"
        The response to explain. "auto" is the scale on which the trees add up ("raw") for tree
        ensembles that can be read; for other models the first of ``predict_proba`` and
        ``decision_function`` that a classifier has, and ``predict``.
    n_jobs : int or None, default=None
        Threads for tree ensembles; None is the default of OpenMP. Other models' own setting
        rules.
    random_state : int, RandomState instance or None, default=None
        Draws of the bootstrap, and rows for the check that a tree ensemble was read right.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    effects_ : tuple of ALECurve and ALESurface
        One a term.
    estimator_ : object
        The model that is explained.
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

    See Also
    --------
    FastPDExplainer : Exact partial dependence of tree ensembles.
    ICEExplainer : The response of every row along a feature.

    Notes
    -----
    A bin is open below and closed above, the first one closed on both sides. A row with a
    missing or infinite value is in none, and counted in ``n_outside``. Effects are centred to
    a weighted mean of zero over the rows of the background, between the edges by straight
    lines. A category is compared with its neighbours in the order, by the rows of both.

    References
    ----------
    D. W. Apley, J. Zhu, "Visualizing the effects of predictor variables in black box supervised
    learning models", Journal of the Royal Statistical Society B 82 (2020), equations 15 to 17.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fastpd_sklearn import ALEExplainer
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> model = LinearRegression().fit(X, X @ [1.0, 3.0])
    >>> explainer = ALEExplainer().fit(model, X)
    >>> explainer.transform(X).round(6)
    array([[-1., -3.],
           [ 1., -3.],
           [-1.,  3.],
           [ 1.,  3.]])
    >>> explainer.effects_[1].grid_values[0], explainer.effects_[1].effect.round(6)
    (array([0., 2.]), array([[-3.,  3.]]))
    """

    def __init__(
        self,
        estimator=None,
        *,
        features=None,
        n_bins=20,
        custom_values=None,
        categorical_features=None,
        category_order="similarity",
        confidence=0.95,
        n_bootstrap=0,
        target=None,
        response_method="auto",
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.features = features
        self.n_bins = n_bins
        self.custom_values = custom_values
        self.categorical_features = categorical_features
        self.category_order = category_order
        self.confidence = confidence
        self.n_bootstrap = n_bootstrap
        self.target = target
        self.response_method = response_method
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _check_params(self) -> None:
        super()._check_params()
        _checks.check_positive("n_bins", self.n_bins)
        _checks.check_positive("n_bootstrap", self.n_bootstrap, least=0)
        _checks.check_choice("category_order", self.category_order, CATEGORY_ORDERS)
        conf = self.confidence
        if conf is not None and not (isinstance(conf, Real) and 0 < conf < 1):
            raise ValueError(
                f"confidence={conf!r} should be a number between 0 and 1, or None for no limits"
            )
        if conf is None and self.n_bootstrap:
            raise ValueError(
                f"n_bootstrap={self.n_bootstrap} draws are for limits, and confidence=None asks "
                "for none; set one of the two"
            )

    def _learn(self, model, background, sample_weight) -> None:
        if _sources.is_source(background):
            passes = self._passes(model, background, sample_weight)
            draft = passes.draft(model)
            settings = self._started(model, draft)
            points = find_points(passes, draft, settings)
            self._check_pairs(draft, points.labelled)
            found = passes.add_up(EffectsPass(draft, points, settings))
        else:
            draft, X, weights = self._draft(model, background, sample_weight)
            settings = self._started(model, draft)
            found = self._held_sums(draft, settings, X, weights)
        fitted = FittedALE(
            draft.players,
            draft.terms,
            draft.selection,
            draft.responder.absent,
            found.takes_missing,
            draft.tags,
            settings,
            found.sums,
            draft.responder.digest,
        )
        self.effects_ = accumulated_effects(found.sums, draft.names, draft.selection, settings)
        self._fitted = fitted

    def merge(self, other):
        """Add the rows of another explainer of the same model, with the same bins.

        The explainer is then what one :meth:`fit` on the rows of both with these bins would have
        made. Bins are the same where they are named in ``custom_values`` and have rows in both, or
        where both backgrounds have the same few values. Other bins are quantiles of all rows:
        give those to one :meth:`fit`, in chunks if they are many.

        Parameters
        ----------
        other : ALEExplainer
            Fitted on a background of its own; it is left as it is.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the other explainer has another model, other settings, columns or bins; the message
            says which.
        TypeError
            If it is no such explainer.
        sklearn.exceptions.NotFittedError
            If one of the two is not fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import ALEExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> bins = {0: [0.0, 1.0]}
        >>> parts = [
        ...     ALEExplainer(features=[0], custom_values=bins).fit(model, rows)
        ...     for rows in (X[[0, 3]], X[[1, 2]])
        ... ]
        >>> parts[0].merge(parts[1]).effects_[0].effect
        array([[-2.,  2.]])
        """
        if type(other) is not type(self):
            raise TypeError(
                f"merge takes another {type(self).__name__}, got a {type(other).__name__}"
            )
        check_is_fitted(self)
        check_is_fitted(other)
        self._check_columns_of(other)
        self._check_model_of(other)
        ours, theirs = self._fitted, other._fitted
        ours.check_mergeable(theirs)
        fitted = ours.merged(theirs)
        self.effects_ = accumulated_effects(
            fitted.sums, list(self.terms_), fitted.selection, fitted.settings
        )
        self._fitted = fitted
        return self

    def _check_model_of(self, other: ALEExplainer) -> None:
        """Refuse an explainer of another model."""
        one, two = self._fitted.digest, other._fitted.digest
        if one is None and two is None:
            models = [getattr(explainer, "estimator_", None) for explainer in (self, other)]
            if any(model is None for model in models):
                raise ValueError(
                    "merge: an explainer of a pipeline, or of a model that is called, does not "
                    "tell which one it was once it is detached; merge first, and detach then"
                )
            one, two = (joblib.hash(model) for model in models)
        if one != two:
            raise ValueError(
                "merge: the two explainers explain different models; fit both on parts of a "
                "background of one model"
            )

    def _held_sums(self, draft: Draft, settings: Settings, X, weights) -> AllSums:
        """The sums over a background in memory."""
        rows = Background(X, weights, draft.players, draft.responder.absent, settings)
        columns = sorted({j for term in draft.terms for j in term})
        rows.prepare(columns)
        bins = {j: rows.bins(j) for j in columns}
        labelled = frozenset(j for j in columns if bins[j].share is None)
        self._check_pairs(draft, labelled)
        points = {j: found.points for j, found in bins.items()}
        sums = new_sums(draft.terms, points, labelled, len(draft.selection.outputs), settings)

        def report(done: int) -> None:
            if self.verbose:
                print(f"[{self._progress()}] {done} of {X.shape[0]} rows")

        add_rows(sums, draft.responder, X, weights, bins, draft.selection, settings, report=report)
        return AllSums(tuple(sums), takes_missing(draft.tags, X))

    def _find_terms(self, players: Players) -> list[Term]:
        if self.features is None:
            return [(j,) for j in range(len(players))]
        terms = [players.find_term(feature) for feature in as_list(self.features)]
        for term in terms:
            if len(term) > 2:
                raise ValueError(
                    f"features: {players.name(term)!r} names {len(term)} features; accumulated "
                    "local effects are of one feature, or of two. For larger sets take "
                    "FastPDExplainer with output='component'"
                )
        return terms

    def _started(self, model, draft: Draft) -> Settings:
        """Set what is known before the background is looked at; what is asked of it."""
        self._finish(model, draft)
        output_columns(draft.names, draft.selection)  # which refuses names that are alike
        players = draft.players
        given = {} if self.custom_values is None else self.custom_values
        if not isinstance(given, Mapping):
            raise TypeError(
                f"custom_values={given!r} should be a dict from a column to its edges or categories"
            )
        listed = draft.responder.categorical
        if self.categorical_features is not None:
            listed = frozenset(players.find(j) for j in self.categorical_features)
        return Settings(
            n_bins=int(self.n_bins),
            points={players.find(feature): points for feature, points in given.items()},
            categorical=listed,
            category_order=self.category_order,
            confidence=self.confidence,
            n_bootstrap=int(self.n_bootstrap),
            n_threads=effective_n_threads(self.n_jobs),
            seed=self._seed(),
        )

    def _seed(self) -> int:
        if not self.n_bootstrap:
            return 0
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check_pairs(self, draft: Draft, labelled: frozenset[int]) -> None:
        players = draft.players
        for term in draft.terms:
            for j in labelled.intersection(term) if len(term) == 2 else ():
                raise ValueError(
                    f"features: {players.name(term)!r} has a second-order effect if both are "
                    f"columns of numbers, and {players.names[j]!r} is categorical; look at "
                    "partial_dependence, or at output='component', of FastPDExplainer instead"
                )

    # -------------------------------------------------------------- explain

    def transform(self, X):
        """Map the values of each feature to their effects.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_terms * n_outputs), float64
            In the unit of the response; :meth:`get_feature_names_out` names the columns. NaN
            where a feature is missing. A data frame if :meth:`set_output` asks for one.

        Raises
        ------
        ValueError
            For a category that the background does not have.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ALEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> ALEExplainer(features=[0]).fit(Product(), X).transform(X)
        array([[-2. ],
               [-0.5],
               [ 2.5]])
        """
        check_is_fitted(self)
        fitted = self._fitted
        X = self._check_X(X)
        if not fitted.takes_missing:
            refuse_missing(X)
        n_outputs = len(fitted.selection.outputs)
        out = np.empty((X.shape[0], len(fitted.terms), n_outputs))
        for t, (term, effect) in enumerate(zip(fitted.terms, self.effects_, strict=True)):
            out[:, t] = self._evaluate(X, term, effect).T
        return out.reshape(X.shape[0], -1)

    def _evaluate(self, X, term: Term, effect: ALECurve | ALESurface) -> np.ndarray:
        """An effect in every row, shape (n_outputs, n_rows)."""
        if isinstance(effect, ALECurve) and effect.is_categorical:
            column = read_column(X, term[0], as_labels=True)
            known = effect(column.labels)
            codes = np.where(column.missing, -1, column.values).astype(np.intp)
            return np.append(known, np.full((len(known), 1), np.nan), axis=1)[:, codes]
        columns = [read_column(X, j, absent=self._fitted.absent) for j in term]
        for j, column in zip(term, columns, strict=True):
            if column.labels is not None:
                raise ValueError(
                    f"column {self._fitted.players.names[j]!r} of X holds labels such as "
                    f"{column.labels[0]!r}, and numbers in the background"
                )
        return effect(*(column.values for column in columns))

    def get_feature_names_out(self, input_features=None):
        """Names of the columns of :meth:`transform`.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Names of the columns of ``X``. If the explainer was fitted with names they have to
            be these, otherwise they are used.

        Returns
        -------
        ndarray of str objects
            ``"x0"``, ``"x0:x3"``; followed by ``"__class"`` if there are several outputs.

        Examples
        --------
        >>> import numpy as np
        >>> from fastpd_sklearn import ALEExplainer
        >>> class Product:
        ...     def predict(self, X):
        ...         return X[:, 0] * X[:, 1]
        >>> X = np.array([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]])
        >>> explainer = ALEExplainer(features=[0, (0, 1)]).fit(Product(), X)
        >>> explainer.get_feature_names_out()
        array(['x0', 'x0:x1'], dtype=object)
        """
        check_is_fitted(self)
        fitted = self._fitted
        names = self._given_names(input_features)
        players = fitted.players if names is None else fitted.players.renamed(names)
        return output_columns(map(players.name, fitted.terms), fitted.selection)
