"""What all explainers of the partial dependence family have in common."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial

import numpy as np
from sklearn.utils import Bunch, check_random_state
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import _checks, _models, _outputs, _sources
from fastpd_sklearn.explainers._chunked import ChunkedTransformerMixin, Means
from fastpd_sklearn.explainers._dependence import (
    average_dependence,
    pairwise_partial_dependence,
    partial_dependence,
    step_surface,
)
from fastpd_sklearn.explainers._estimator import ModelExplainer
from fastpd_sklearn.explainers._explanation import Explanation
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._grid import bare_template, make_template
from fastpd_sklearn.explainers._jackknife import Jackknife
from fastpd_sklearn.explainers._players import Players, as_list, make_players
from fastpd_sklearn.explainers._protocol import Engine, Term
from fastpd_sklearn.explainers._response import (
    RESPONSE_METHODS,
    answering_method,
    input_tags_of,
    output_columns,
    select_outputs,
)
from fastpd_sklearn.forest import Head

BLOCK_BYTES = 2**24
"""Bytes of the values of a block of terms: beyond some 32 MiB memory comes anew for each block."""


class BaseExplainer(ChunkedTransformerMixin, ModelExplainer):
    """Base of explainers that describe a response by ``v_S(x)``.

    ``v_S(x)`` is the expected response given, in the explainer's sense, the features ``S`` of
    the row ``x``. A subclass says what an :class:`~fastpd_sklearn.explainers.Engine` computes
    it: :meth:`_make_engine`.

    Parameters
    ----------
    estimator, output, features, max_order, target, groups, response_method : object
        As those of :class:`FastPDExplainer`.
    n_jackknife, n_jobs, random_state, verbose : object
        As those of :class:`FastPDExplainer`.

    Examples
    --------
    >>> from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
    >>> from fastpd_sklearn.explainers import BaseExplainer
    >>> explainers = FastPDExplainer(), PathDependentExplainer(), VanillaPDExplainer()
    >>> [isinstance(explainer, BaseExplainer) for explainer in explainers]
    [True, True, True]
    """

    _least_rows = 0
    """Rows that a background has at least: fewer may be kept, which many must not be."""

    def __init__(
        self,
        estimator=None,
        *,
        output="pd",
        features=None,
        max_order="auto",
        target=None,
        groups=None,
        response_method="auto",
        n_jackknife=0,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.estimator = estimator
        self.output = output
        self.features = features
        self.max_order = max_order
        self.target = target
        self.groups = groups
        self.response_method = response_method
        self.n_jackknife = n_jackknife
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @abstractmethod
    def _make_engine(self, opened, X, players: tuple[np.ndarray, ...]) -> tuple[Engine, Head]:
        """An engine with an empty background.

        Parameters
        ----------
        opened : object
            From :meth:`_open_model`; the user's model is not to be changed.
        X : array, sparse matrix or data frame of shape (n_rows, n_columns), or None
            The first rows of the background, checked for their width and names; the base
            hands them to ``engine.update`` afterwards. None without a background.
        players : tuple of ndarray of int
            The columns of each player.

        Returns
        -------
        engine : Engine
        head : Head
            Tells classes, names of outputs, and the scale.
        """

    def _tied_columns(self, opened, n_columns: int) -> list[tuple[str, list[int]]]:
        """Columns that have to play together, and what ties them.

        Parameters
        ----------
        opened : object
            From :meth:`_open_model`.
        n_columns : int
            The number of all columns.

        Returns
        -------
        list of (str, list of int)
        """
        return []

    # ------------------------------------------------------------------ fit

    def partial_fit(self, X, y=None, *, sample_weight=None):
        """Add rows to the background; the first call is :meth:`fit`.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), or model
            Rows of the background, or chunks of them as in :meth:`fit`. In the first call also the
            fitted model to explain, and in later ones the same model.
        y : array-like, default=None
            As in :meth:`fit`. In later calls the rows of the background if ``X`` is the model,
            else ignored: the model is fitted once.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        self : object

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer().fit(model, X[:2])
        >>> explainer.intercept_
        array([0.])
        >>> explainer.partial_fit(X[2:]).intercept_
        array([2.])
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight=sample_weight)
        if _models.is_model(X):
            if not self._explains(_models.unfreeze(X), self._fitted.engine):
                raise ValueError(
                    "partial_fit adds rows for the model that is explained already, and got "
                    "another one; call partial_fit(background), or fit to explain another model"
                )
            X = y
        if _sources.is_dask(X):
            raise TypeError(
                "partial_fit takes rows in memory or a stream of chunks, got a Dask collection; "
                "fit another explainer to it, and merge that into this one"
            )
        if _sources.is_stream(X):
            names = getattr(self, "feature_names_in_", None)
            self._replace(self._streamed(None, self._fitted, X, sample_weight, names))
            return self
        X = self._check_X(X)
        weights = _checks.check_weights(sample_weight, X.shape[0])
        self._replace(self._fitted.extended(X, weights))
        return self

    def merge(self, other):
        """Add the background of another explainer of the same model.

        The explainer is then what one :meth:`fit` on the rows of both would have made, in whatever
        order and grouping parts of a background are merged.

        Parameters
        ----------
        other : explainer of the same class
            Fitted on a background of its own, with the same model and settings, or a pickle of
            such a one; it is left as it is. A detached explainer will do.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the other explainer has another model, other settings or other columns; the
            message says which. Also for explainers that were fitted without a background.
        TypeError
            If it is no explainer, or one of another class.
        sklearn.exceptions.NotFittedError
            If one of the two is not fitted.

        Notes
        -----
        What :meth:`partial_dependence` takes for a grid if it is given none stays that of the
        first rows.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
        >>> parts = [FastPDExplainer().fit(model, X[start::3]) for start in range(3)]
        >>> merged = parts[0].merge(parts[1]).merge(parts[2])
        >>> bool(abs(merged.intercept_ - model.predict(X).mean()) < 1e-12)
        True
        """
        if type(other) is not type(self):
            raise TypeError(
                f"merge takes another {type(self).__name__}, got a {type(other).__name__}"
            )
        check_is_fitted(self)
        check_is_fitted(other)
        self._check_columns_of(other)
        ours, theirs = self._fitted, other._fitted  # whatever is added to them meanwhile
        ours.check_mergeable(theirs)
        self._replace(ours.merged(theirs))
        return self

    def _replace(self, fitted: Fitted) -> None:
        """Change the background, in one step for those who are explaining meanwhile."""
        self._fitted = fitted
        self.intercept_ = fitted.intercept
        if fitted.jackknife is not None:
            self.intercept_error_ = fitted.intercept_error()

    def _explains(self, model, engine: Engine) -> bool:
        """Whether a model is the one that is explained, as it was at :meth:`fit`."""
        return model is self.estimator_

    def _check_params(self) -> None:
        _checks.check_choice("output", self.output, _outputs.DEFAULT_ORDER)
        _checks.check_choice("response_method", self.response_method, RESPONSE_METHODS)
        _checks.check_max_order(self.max_order)
        _checks.check_n_groups(self.n_jackknife)
        _checks.check_n_jobs(self.n_jobs)
        _checks.check_verbose(self.verbose)
        check_random_state(self.random_state)
        _outputs.resolve_order(self.output, self.max_order)

    def _learn(self, model, background, sample_weight) -> None:
        if _sources.is_dask(background):
            from fastpd_sklearn.distributed import fit_background  # which knows explainers

            fit_background(self, model, background, sample_weight)
        elif _sources.is_stream(background):
            names = _models.columns_of(model)[1]
            self._forget()
            self._replace(self._streamed(model, None, background, sample_weight, names))
        else:
            fitted, X, weights = self._prepare(model, background, sample_weight)
            self._replace(fitted if X is None else fitted.extended(X, weights))

    def _streamed(self, model, fitted: Fitted | None, source, sample_weight, names) -> Fitted:
        """What is fitted, or nothing, with the rows of a source added chunk by chunk."""
        n_rows = 0
        for chunk in _sources.chunks_of(source, sample_weight, names, "background"):
            with _sources.naming(chunk.number, "background"):
                if fitted is None:
                    fitted, X, weights = self._prepare_first(model, chunk)
                else:
                    X, weights = self._check_X(chunk.X), _sources.checked_weights(chunk)
                fitted = fitted.extended(X, weights)
            n_rows += X.shape[0]
            if self.verbose:
                print(f"[{self._progress()}] chunk {chunk.number}, {n_rows} rows so far")
        if fitted is None:
            raise ValueError(
                "the background has no row with weight: it has no chunks, or empty ones"
            )
        return fitted

    def _prepare_first(self, model, chunk: _sources.Chunk) -> tuple:
        """What :meth:`_prepare` gives for the first chunk, in view of many more to come."""
        self._least_rows = _sources.MANY_ROWS
        try:
            return self._prepare(model, chunk.X, chunk.weights)
        finally:
            del self._least_rows

    def _prepare(self, model, background, sample_weight) -> tuple:
        """All but the background, and all attributes but those of the background.

        Returns
        -------
        fitted : Fitted
            Without rows in its engine.
        X : array, sparse matrix or data frame of shape (n_rows, n_columns), or None
            The rows, checked.
        weights : ndarray of shape (n_rows,), or None
        """
        self._forget()
        opened = self._open_model(model)
        background = self._set_columns(model, opened, background)
        if background is None and self.n_jackknife:
            raise ValueError(
                f"n_jackknife={self.n_jackknife}: standard errors come from the background, and "
                "there is none; call fit(model, background), or leave n_jackknife at 0"
            )
        weights = None
        if background is not None:
            weights = _checks.check_weights(sample_weight, background.shape[0])
        names = getattr(self, "feature_names_in_", None)
        tied = self._tied_columns(opened, self.n_features_in_)
        players = self._make_players(names, tied)
        terms = self._named_terms(players)
        engine, head = self._make_engine(opened, background, players.columns)
        selection = select_outputs(self.target, head, engine.n_outputs)
        if terms is None:
            order = _outputs.resolve_order(self.output, self.max_order)
            terms = _outputs.default_terms(engine, len(players), order)
        names = tuple(map(players.name, terms))
        output_columns(names, selection)
        groups = Jackknife.of(engine, int(self.n_jackknife)) if self.n_jackknife else None
        template = (
            bare_template(self.n_features_in_) if background is None else make_template(background)
        )
        fitted = Fitted(
            engine=engine,
            players=players,
            output=self.output,
            terms=terms,
            recipe=_outputs.make_recipe(self.output, terms, engine),
            selection=selection,
            template=template,
            tags={**self._tag_values(), **input_tags_of(model)},
            jackknife=groups,
        )
        self.estimator_ = model
        self.terms_ = names
        self.response_method_ = answering_method(self.response_method, head)
        if head.classes is not None:
            self.classes_ = head.classes
        return fitted, background, weights

    def _make_players(self, names, tied) -> Players:
        """The players; ``names`` and ``tied`` as :func:`make_players` takes them."""
        return make_players(self.n_features_in_, names, self.groups, tied)

    def _named_terms(self, players: Players) -> list[Term] | None:
        if self.features is None:
            return None
        terms = []
        for feature in as_list(self.features):
            term = tuple(sorted(players.find_term(feature)))
            _outputs.check_size(self.output, self.max_order, players.name(term))
            terms.append(term)
        return terms

    # -------------------------------------------------------------- explain

    def transform(self, X):
        """Explain rows.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_terms * n_outputs), float64
            In the unit of the response; :meth:`get_feature_names_out` names the columns. A
            data frame if :meth:`set_output` asks for one.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> FastPDExplainer(output="shap").fit(model, X).transform(X)
        array([[-1., -1.],
               [-3.,  1.],
               [ 1., -3.],
               [ 3.,  3.]])
        """
        check_is_fitted(self)
        fitted = self._fitted
        X = self._check_X(X)
        values = fitted.evaluate(X, fitted.recipe, self._progress())
        return values.reshape(len(values), -1)

    def explain(self, X, *, out=None) -> Explanation:
        """Explain rows, with all that belongs to the explanation.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Of a Dask collection the explanation is lazy.
        out : ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_outputs), default=None
            Where to write the values, block by block: an array of float64, or of float32 for
            half of the memory; it may be memory-mapped. The values of the explanation are then
            this array. Fastest is ``order="F"``, in which a term's values lie side by side.

        Returns
        -------
        Explanation
            For a Dask collection a :class:`~fastpd_sklearn.distributed.LazyExplanation`.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer(output="component", max_order=1).fit(model, X)
        >>> explanation = explainer.explain(X)
        >>> explanation["x0"], explanation.remainder
        (array([-2., -2.,  2.,  2.]), array([ 2., -2., -2.,  2.]))
        >>> explanation.base_values + explanation.sum() + explanation.remainder
        array([0., 0., 0., 8.])
        """
        check_is_fitted(self)
        fitted = self._fitted
        if _sources.is_dask(X):
            if out is not None:
                raise TypeError("out is for rows in memory; a Dask collection is explained lazily")
            from fastpd_sklearn.distributed import explain_lazily  # which knows explainers

            return explain_lazily(self, X)
        X = self._check_X(X)
        values = fitted.evaluate(X, fitted.recipe, self._progress(), out)
        remainder, complete = fitted.remainder(X, values)
        intercept = fitted.intercept
        single = len(intercept) == 1
        return Explanation(
            values=values[:, :, 0] if single else values,
            base_values=float(intercept[0]) if single else intercept,
            data=X,
            terms=self.terms_,
            feature_names=fitted.players.names,
            output_names=fitted.selection.names,
            output=fitted.output,
            remainder=remainder[:, 0] if single and remainder is not None else remainder,
            complete=complete,
            columns=tuple(tuple(columns.tolist()) for columns in fitted.players.columns),
        )

    def explain_blocks(self, X, *, block_bytes=BLOCK_BYTES):
        """Explain rows, some terms at a time, where all terms at once would not fit.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        block_bytes : int, default=2**24
            About how many bytes the values of a block should take; a block has one term at
            least.

        Yields
        ------
        terms : tuple of tuple of str
            Some of ``terms_``; each of them is in one block.
        values : ndarray of shape (n_rows, len(terms)) or (n_rows, len(terms), n_outputs), float64
            As those of :meth:`explain`.

        Examples
        --------
        >>> from sklearn.datasets import make_friedman1
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = make_friedman1(random_state=0)
        >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
        >>> explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
        >>> total = explainer.intercept_[0]
        >>> for terms, values in explainer.explain_blocks(X, block_bytes=10_000):
        ...     total = total + values.sum(axis=1)
        >>> bool(abs(total - model.predict(X)).max() < 1e-12)
        True
        """
        check_is_fitted(self)
        _checks.check_positive("block_bytes", block_bytes)
        blocks = self._fitted.blocks(self._check_X(X), block_bytes // 8)
        return (
            (
                tuple(self.terms_[k] for k in numbers),
                values[:, :, 0] if values.shape[2] == 1 else values,
            )
            for numbers, values in blocks
        )

    def standard_error(self, X) -> np.ndarray:
        """Standard errors of the values of rows that come from the background.

        How far the values would vary if the background were drawn anew, with the model as it is:
        the error of the background, not that of the model.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Or a Dask collection.

        Returns
        -------
        ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_outputs), float64
            Of what :meth:`explain` gives as ``values``. It takes ``n_jackknife`` times as long. For
            a Dask collection a lazy Dask array.

        Raises
        ------
        ValueError
            If ``n_jackknife`` is 0.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
        >>> explainer = FastPDExplainer(output="shap", n_jackknife=20).fit(model, X)
        >>> explainer.standard_error(X[:5]).shape
        (5, 10)
        """
        check_is_fitted(self)
        fitted = self._fitted
        if _sources.is_dask(X):
            from fastpd_sklearn.distributed import map_lazily  # which knows explainers

            fitted.check_groups()
            n_outputs = len(fitted.selection.outputs)
            tail = (len(fitted.terms), *([n_outputs] if n_outputs > 1 else []))
            return map_lazily(self, X, type(self).standard_error, tail)
        X = self._check_X(X)
        out = fitted.standard_error(lambda one: one.evaluate(X, one.recipe))
        return out[:, :, 0] if out.shape[2] == 1 else out

    def mean_abs(self, X, *, sample_weight=None, return_error=False):
        """Mean absolute value of every term over some rows, without holding their values.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
            Or chunks of such rows, as :meth:`fit` takes them.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows, as :meth:`fit` takes them.
        return_error : bool, default=False
            Whether to return standard errors, too; they need ``n_jackknife``.

        Returns
        -------
        mean : ndarray of shape (n_terms,) or (n_terms, n_outputs), float64
            In the order of ``terms_`` and the unit of the response. With ``output="component"``
            the importance of the terms of the functional decomposition; with ``"shap"`` that of
            features which is usual with SHAP values.
        error : ndarray of the same shape
            Only with ``return_error=True``: the standard error that comes from the background,
            with the rows of ``X`` as they are.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
        >>> explainer = FastPDExplainer(output="component", max_order=None).fit(model, X)
        >>> importance = explainer.mean_abs(X)
        >>> explainer.terms_[importance.argmax()]
        ('s5',)
        """
        check_is_fitted(self)
        found = self._sum_over(X, sample_weight, partial(_mean_abs, return_error))
        if not return_error:
            return _squeezed(found.values[0])
        mean, deviations = found.values
        return _squeezed(mean), _squeezed(np.sqrt((deviations**2).sum(axis=0)))

    # --------------------------------------------------- partial dependence

    def partial_dependence(self, features, grid=None, *, confidence=0.95) -> Bunch:
        """Partial dependence of the response on one feature, or on several together.

        Parameters
        ----------
        features : int, str, or tuple of them
            A column by number or name, a group by name; a tuple for their joint effect.
        grid : array-like of shape (n_points,), or one such array a feature, default=None
            Where to evaluate. None: the distinct values of the background (of the first
            call of ``fit`` or ``partial_fit``), or 100 quantiles where there are more; all
            categories of a column of labels. A group of several columns needs an array of
            shape (n_points, n_columns of the group). A number of points is not accepted.
        confidence : float, default=0.95
            Of the intervals, with ``n_jackknife``.

        Returns
        -------
        sklearn.utils.Bunch
            ``grid_values``: list of ndarray, one a feature; ``average``: ndarray of shape
            (n_outputs, n_points of the first feature, n_points of the second, ...). For one
            feature of a model that is constant between thresholds also ``curve``, exact and
            to be called with points: a :class:`StepCurve`, with ``breaks`` and ``levels``, or a
            :class:`LinearCurve`, with ``slopes`` too, where leaves are linear functions; of a
            column of labels a :class:`CategoryCurve`, with ``categories`` and ``levels``.
            Where a step of a pipeline leaves no such curve (splines), ``no_curve`` says why, and
            so does the error if ``curve`` is asked for. With ``n_jackknife`` also
            ``standard_error``, ``lower`` and ``upper``, each of the shape of ``average``: the error
            that comes from the background, not that of the model, and a confidence interval for
            each point by Student's t.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer().fit(model, X)
        >>> result = explainer.partial_dependence(0, grid=[0.0, 0.4, 1.0])
        >>> result.average
        array([[0., 0., 4.]])
        >>> result.curve.breaks, result.curve.levels
        (array([0.5]), array([[0., 4.]]))
        >>> explainer.partial_dependence((0, 1)).average
        array([[[0., 0.],
                [0., 8.]]])
        """
        check_is_fitted(self)
        _checks.check_confidence(confidence)
        fitted = self._fitted
        result = partial_dependence(fitted, features, grid)
        if fitted.jackknife is not None:
            error = fitted.standard_error(
                lambda one: average_dependence(one, features, _as_given(features, result))
            )
            half = fitted.jackknife.quantile(confidence) * error
            result.update(
                standard_error=error, lower=result.average - half, upper=result.average + half
            )
        return result

    def step_surface(self, features):
        """Joint partial dependence on two features, exact everywhere and not only on a grid.

        Parameters
        ----------
        features : tuple of two int or str
            Columns of numbers.

        Returns
        -------
        StepSurface

        Raises
        ------
        ValueError
            If the model is no step function of the features, or the surface has more than a
            million levels; :meth:`partial_dependence` takes a grid instead.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> surface = FastPDExplainer().fit(model, X).step_surface((0, 1))
        >>> surface.breaks, surface.levels
        ((array([0.5]), array([0.5])), array([[[0., 0., 0.],
                [0., 8., 8.],
                [0., 8., 8.]]]))
        """
        check_is_fitted(self)
        return step_surface(self._fitted, features)

    def pairwise_partial_dependence(self, features=None, *, grid=None, grid_resolution=20) -> Bunch:
        """Joint partial dependence on all pairs of features at once.

        Parameters
        ----------
        features : list of int or str, default=None
            Columns by number or name, groups of one column by name; None for all.
        grid : list of array-like of shape (n_points,), default=None
            The points of each feature. None: some of those that :meth:`partial_dependence` takes
            where it is given no grid, the first and the last among them.
        grid_resolution : int, default=20
            How many of those at most.

        Returns
        -------
        sklearn.utils.Bunch
            ``features``: names; ``pairs``: ndarray of shape (n_pairs, 2), positions in
            ``features``; ``grid_values``: list of ndarray, one a feature; ``average``: ndarray
            of shape (n_outputs, n_pairs, n_points, n_points), by the points of the pair's first
            and second feature, NaN beyond the points of a feature that has fewer.

        Raises
        ------
        ValueError
            For a group of several columns, or if no background says which points to take.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> result = FastPDExplainer().fit(model, X).pairwise_partial_dependence()
        >>> result.pairs, result.average
        (array([[0, 1]]), array([[[[0., 0.],
                 [0., 8.]]]]))
        """
        check_is_fitted(self)
        _checks.check_resolution(grid_resolution)
        return pairwise_partial_dependence(self._fitted, features, grid, grid_resolution)

    # ---------------------------------------------------------- conventions

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
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer(output="component").fit(model, X)
        >>> explainer.get_feature_names_out()
        array(['x0', 'x1', 'x0:x1'], dtype=object)
        >>> explainer.get_feature_names_out(["width", "height"])
        array(['width', 'height', 'width:height'], dtype=object)
        """
        check_is_fitted(self)
        fitted = self._fitted
        names = self._given_names(input_features)
        players = fitted.players if names is None else fitted.players.renamed(names)
        return output_columns(map(players.name, fitted.terms), fitted.selection)


def _mean_abs(with_deviations: bool, explainer: BaseExplainer, X, weights: np.ndarray) -> Means:
    """Mean absolute values of the terms, and what each group adds to their standard errors."""
    fitted, size = explainer._fitted, BLOCK_BYTES // 8
    if with_deviations:
        values = list(fitted.mean_abs_deviations(X, weights, size))
    else:
        values = [fitted.mean_abs(X, weights, size)]
    return Means(weights.sum(), values)


def _squeezed(values: np.ndarray) -> np.ndarray:
    """Values of terms and outputs, without the axis of a single output."""
    return values[:, 0] if values.shape[1] == 1 else values


def _as_given(features, result: Bunch) -> list:
    """The points of a result as the argument ``grid``, for the same ``features``."""
    grids = result.grid_values
    return grids if isinstance(features, tuple | list) else grids[0]
