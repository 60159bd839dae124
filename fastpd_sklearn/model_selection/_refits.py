"""One candidate of a search after the other, fitted anew and explained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from fastpd_sklearn._compat import take_rows
from fastpd_sklearn.explainers import FastPDExplainer
from fastpd_sklearn.forest import _rows
from fastpd_sklearn.model_selection._components import components, explain
from fastpd_sklearn.model_selection._stability import Agreement


@dataclass(frozen=True, eq=False)
class Refits:
    """Candidates fitted anew and explained: all that does not depend on the candidate.

    Parameters
    ----------
    estimator : object
        Of the search.
    scorer : callable, dict of callables, or None
        Of the search; needed where there are splits.
    scoring : str
        The name of the score.
    X, y
        The rows to fit on, and the target or None.
    weights : ndarray of shape (n_rows,), or None
    splits : list
        One fit each: pairs of training and test rows, or None for all rows.
    columns : tuple of int
        The features to explain.
    groups : dict of str to list of int
        All other columns.
    grids : list
        Points of each feature, or None.
    target : object
    """

    estimator: object
    scorer: object
    scoring: str
    X: object
    y: object
    weights: np.ndarray | None
    splits: list
    columns: tuple[int, ...]
    groups: dict[str, list[int]]
    grids: list
    target: object

    def of(self, params: dict) -> Bunch:
        """Fit and explain a candidate.

        Parameters
        ----------
        params : dict
            Its hyperparameters.

        Returns
        -------
        Bunch
            ``fits``: list of Bunch, one a split, with ``grid_values``, ``average`` and
            ``curves``, one a feature, and ``output_names``; ``scores``, one a split, and the
            ``stability`` of each feature; None where there are no splits.
        """
        agreement = Agreement()
        fits, scores = [], []
        for split in self.splits:
            train, test = (None, None) if split is None else split
            model = self._fit(params, train)
            explainer = explain(
                model,
                self.X,
                self.weights,
                features=list(self.columns),
                groups=self.groups,
                target=self.target,
            )
            fits.append(self._curves(explainer))
            if split is not None:
                agreement.add(components(explainer, self.X, self.weights))
                scores.append(self._score(model, test))
        return Bunch(
            fits=fits,
            scores=scores or None,
            stability=agreement.stability if len(scores) > 1 else None,
        )

    def _fit(self, params: dict, train):
        estimator = clone(self.estimator).set_params(**clone(params, safe=False))
        rows = [_take(part, train) for part in (self.X, self.y) if part is not None]
        weights = {} if self.weights is None else {"sample_weight": _take(self.weights, train)}
        return estimator.fit(*rows, **weights)

    def _curves(self, explainer: FastPDExplainer) -> Bunch:
        results = [
            explainer.partial_dependence(column, grid)
            for column, grid in zip(self.columns, self.grids, strict=True)
        ]
        return Bunch(
            grid_values=[result.grid_values[0] for result in results],
            average=[result.average for result in results],
            curves=[result.get("curve") for result in results],
            output_names=explainer.explain(_rows.take(self.X, slice(0, 1))).output_names,
        )

    def _score(self, model, test) -> float:
        """The score by which the search goes, of the rows that a model has not seen."""
        scorer = self.scorer[self.scoring] if isinstance(self.scorer, dict) else self.scorer
        rows = [_take(part, test) for part in (self.X, self.y) if part is not None]
        score = scorer(model, *rows)
        return score[self.scoring] if isinstance(score, dict) else score


def _take(part, rows):
    return part if part is None or rows is None else take_rows(part, rows)
