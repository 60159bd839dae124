"""Partial dependence of every candidate of a search."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.base import is_classifier
from sklearn.model_selection import check_cv
from sklearn.utils import Bunch, check_consistent_length, get_tags
from sklearn.utils.parallel import Parallel, delayed

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.forest import _rows
from fastpd_sklearn.model_selection._candidates import select_candidates
from fastpd_sklearn.model_selection._players import (
    as_list,
    columns_as_players,
    others_together,
)
from fastpd_sklearn.model_selection._refits import Refits


def candidate_curves(
    search,
    X,
    y=None,
    features=None,
    *,
    cv=None,
    top=None,
    scoring=None,
    grid=None,
    target=None,
    sample_weight=None,
    n_jobs=None,
    verbose=0,
) -> Bunch:
    """Partial dependence of every candidate of a search, exact over the same background.

    Two candidates with the same score may have learnt different things. Each is fitted anew, on
    all rows or on the training rows of each fold, and explained over all rows of ``X``, so that
    curves differ by the models alone.

    Parameters
    ----------
    search : GridSearchCV, RandomizedSearchCV, HalvingGridSearchCV or HalvingRandomSearchCV
        Fitted. Of a halving search a candidate counts once, by its last iteration, and those of
        later iterations stand before those of earlier ones. Candidates without a score, whose
        fit has failed, are left out.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows that the search was fitted on: to fit the candidates, and the background.
    y : array-like of shape (n_rows,), default=None
        The target.
    features : int, str, or list of them, default=None
        Columns by number or name; None for all.
    cv : int, splitter or iterable of splits, default=None
        None: each candidate is fitted once, on all rows. Otherwise once a fold, on its training
        rows. ``cv=search.cv`` takes the folds of the search.
    top : int, default=None
        How many of the best candidates to take, besides the one that the search has chosen;
        None for all.
    scoring : str, default=None
        By which of its scores to go, for a search with several; None: the one by which it has
        refitted.
    grid : array-like of shape (n_points,), or one such array a feature, default=None
        Where to evaluate; None: the values of the feature, or 100 quantiles where there are more.
    target : object, default=None
        A class label, or the number of an output, where the models have several; None for all.
    sample_weight : array-like of shape (n_rows,), default=None
        Weights of the rows, for the fits and for the background. Other parameters of
        ``search.fit`` are not known here.
    n_jobs : int, default=None
        How many candidates to fit and explain at a time, in processes of their own.
    verbose : int, default=0
        Whether to print progress.

    Returns
    -------
    sklearn.utils.Bunch
        The candidates stand from the best to the worst.

        features : tuple of str
            Names.
        grid_values : list of ndarray of shape (n_points,)
            One a feature.
        average : list of ndarray of shape (n_candidates, n_fits, n_outputs, n_points)
            One a feature: partial dependence on the grid, in the unit of the response. There is
            one fit a candidate, or one a fold.
        curves : list of list of list
            By feature, candidate and fit the exact curve, a
            :class:`~fastpd_sklearn.explainers.StepCurve`,
            :class:`~fastpd_sklearn.explainers.LinearCurve` or
            :class:`~fastpd_sklearn.explainers.CategoryCurve`; None where there is none.
        params : list of dict
            The hyperparameters of each candidate.
        candidates : ndarray of shape (n_candidates,), int
            Their rows in ``cv_results_``.
        mean_test_score, std_test_score : ndarray of shape (n_candidates,)
            Found by the search.
        rank : ndarray of shape (n_candidates,), int
            From 1 on, by score.
        best : int
            Position of the candidate that the search has chosen, if it has, otherwise 0.
        scoring : str
            Name of the score.
        fold_scores : ndarray of shape (n_candidates, n_fits), or None
            With ``cv`` the scores of the fits on the rows that they have not seen, unweighted.
        stability : ndarray of shape (n_candidates, n_features), or None
            With ``cv`` how well the curves of the folds agree, see :func:`curve_stability`.
        feature_values : list of ndarray of shape (n_rows,)
            One a feature: its column of ``X``.
        output_names : tuple of str
            The response's, one an output.

    Raises
    ------
    ValueError, TypeError
        For bad input, and for models that :class:`~fastpd_sklearn.FastPDExplainer` can't read.
    sklearn.exceptions.NotFittedError
        If the search is not fitted.

    See Also
    --------
    fastpd_sklearn.display.CandidateCurvesDisplay : Draws them.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn.model_selection import candidate_curves
    >>> X, y = make_friedman1(200, n_features=5, random_state=0)
    >>> search = GridSearchCV(DecisionTreeRegressor(random_state=0), {"max_depth": [1, 4]})
    >>> result = candidate_curves(search.fit(X, y), X, y, features=[3, 4])
    >>> result.params
    [{'max_depth': 4}, {'max_depth': 1}]
    >>> result.average[0].shape  # candidates, fits, outputs, points
    (2, 1, 1, 100)
    >>> [len(fits[0].breaks) for fits in result.curves[0]]  # steps of "x3"
    [5, 1]
    """
    chosen = select_candidates(search, scoring, top)
    X = _checks.check_rows(X)
    _check_rows(search, X, y)
    weights = _checks.check_weights(sample_weight, X.shape[0])
    players = columns_as_players(X)
    columns = _find_columns(players, features)
    names = players.name(columns)
    refits = Refits(
        estimator=search.estimator,
        scorer=None if cv is None else search.scorer_,
        scoring=chosen.scoring,
        X=X,
        y=y,
        weights=weights,
        splits=[None] if cv is None else list(_splits(search, cv, X, y)),
        columns=columns,
        groups=others_together(players, columns),
        grids=_one_grid_each(grid, columns, features),
        target=target,
    )
    done = Parallel(n_jobs=n_jobs, verbose=verbose)(
        delayed(refits.of)(params) for params in chosen.params
    )
    _check_outputs([fit for candidate in done for fit in candidate.fits])
    return Bunch(
        features=names,
        grid_values=done[0].fits[0].grid_values,
        average=[
            np.array([[fit.average[i] for fit in candidate.fits] for candidate in done])
            for i in range(len(names))
        ],
        curves=[
            [[fit.curves[i] for fit in candidate.fits] for candidate in done]
            for i in range(len(names))
        ],
        params=chosen.params,
        candidates=chosen.rows,
        mean_test_score=chosen.mean_test_score,
        std_test_score=chosen.std_test_score,
        rank=chosen.rank,
        best=chosen.best,
        scoring=chosen.scoring,
        fold_scores=_stacked(done, "scores"),
        stability=_stacked(done, "stability"),
        feature_values=[_rows.column_array(X, column) for column in columns],
        output_names=done[0].fits[0].output_names,
    )


def _check_rows(search, X, y) -> None:
    """Refuse rows that the search was not fitted on, as far as it tells."""
    n_columns = getattr(search, "n_features_in_", X.shape[1])
    if n_columns != X.shape[1]:
        raise ValueError(
            f"X has {X.shape[1]} columns, and the search was fitted on {n_columns}; pass the X "
            "that it was fitted on"
        )
    if y is not None:
        check_consistent_length(X, y)
    elif get_tags(search.estimator).target_tags.required:
        raise ValueError("y=None: the candidates are fitted anew; pass the y of the search")


def _find_columns(players: Players, features) -> tuple[int, ...]:
    """The columns that a user means."""
    if features is None:
        return tuple(range(len(players)))
    features = as_list(features)
    for feature in features:
        if isinstance(feature, tuple | list):
            raise ValueError(
                f"features: {feature!r} is a set of features, which has no curve; name single "
                "columns"
            )
    return players.find_term(tuple(features))


def _one_grid_each(grid, columns, features) -> list:
    if grid is None:
        return [None] * len(columns)
    if isinstance(features, str | Integral):
        return [grid]
    if not isinstance(grid, tuple | list) or len(grid) != len(columns):
        raise ValueError(
            f"grid: expected a list of {len(columns)} arrays, the points of each feature, or None"
        )
    return list(grid)


def _splits(search, cv, X, y):
    return check_cv(cv, y, classifier=is_classifier(search.estimator)).split(X, y)


def _stacked(done: list[Bunch], key: str) -> np.ndarray | None:
    return None if done[0][key] is None else np.array([candidate[key] for candidate in done])


def _check_outputs(fits: list[Bunch]) -> None:
    names = {fit.output_names for fit in fits}
    if len(names) > 1:
        one, other = sorted(names)[:2]
        raise ValueError(
            f"the fits have different outputs, {one} and {other}, so that their curves can't stand "
            "side by side; name a class that all of them know by `target`"
        )
