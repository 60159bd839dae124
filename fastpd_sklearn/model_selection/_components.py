"""Components of a fitted model over its own background, and how large they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers import FastPDExplainer, _checks, _models

MEASURES = ("variance", "std", "mean_abs")
"""Sizes of a component, see :func:`size_of`."""

ROUNDING = 1e-12
"""What counts as rounding, relative to the largest response."""


@dataclass(frozen=True, eq=False)
class Components:
    """What :class:`FastPDExplainer` says of the rows that are its background too.

    Parameters
    ----------
    terms : tuple of tuple of str
    values : ndarray of shape (n_rows, n_terms, n_outputs)
        The components ``m_S`` of ``terms``, in the unit of the response.
    response : ndarray of shape (n_rows, n_outputs)
        The response less its mean.
    remainder : ndarray of shape (n_rows, n_outputs)
        The response less its mean and the components.
    largest : float
        The largest absolute response.
    sample_weight : ndarray of shape (n_rows,), or None
    """

    terms: tuple[tuple[str, ...], ...]
    values: np.ndarray
    response: np.ndarray
    remainder: np.ndarray
    largest: float
    sample_weight: np.ndarray | None

    def share(self, part: np.ndarray, measure: str) -> float:
        """The size of a part of the response relative to that of the response.

        Parameters
        ----------
        part : ndarray of shape (n_rows, n_outputs)
        measure : {"variance", "std", "mean_abs"}

        Returns
        -------
        float
            0 if the response does not vary.
        """
        whole = self.size(self.response, measure)
        return self.size(part, measure) / whole if whole > 0 else 0.0

    def size(self, part: np.ndarray, measure: str) -> float:
        """See :func:`size_of`; 0 for what is rounding, so that it decides no search."""
        if np.abs(part).max() <= ROUNDING * self.largest:
            return 0.0
        return size_of(part, measure, self.sample_weight)


def components_of(estimator, X, sample_weight, **params) -> Components:
    """Explain the rows of ``X`` over these rows as the background.

    Parameters
    ----------
    estimator : object
        A fitted model.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : array-like of shape (n_rows,), or None
    **params
        Of :class:`FastPDExplainer`.

    Returns
    -------
    Components
    """
    return components(explain(estimator, X, sample_weight, **params), X, sample_weight)


def explain(estimator, X, sample_weight, **params) -> FastPDExplainer:
    """An explainer that is fitted on a model and its background; see :func:`components_of`."""
    if not _models.is_model(estimator):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; give a fitted model, whose type has a "
            "predict method"
        )
    explainer = FastPDExplainer(output="component", **params)
    return explainer.fit(estimator, X, sample_weight=sample_weight)


def components(explainer, X, sample_weight) -> Components:
    """What :func:`components_of` gives, of an explainer that is fitted on these rows."""
    explanation = explainer.explain(X)
    n_rows, n_terms = len(explanation), len(explanation.terms)
    values = explanation.values.reshape(n_rows, n_terms, -1)
    remainder = explanation.remainder.reshape(n_rows, -1)
    response = values.sum(axis=1) + remainder
    return Components(
        terms=explanation.terms,
        values=values,
        response=response,
        remainder=remainder,
        largest=float(np.abs(response + explanation.base_values).max()),
        sample_weight=_checks.check_weights(sample_weight, n_rows),
    )


def size_of(part: np.ndarray, measure: str, sample_weight: np.ndarray | None) -> float:
    """One number for how much a quantity does over some rows.

    Parameters
    ----------
    part : ndarray of shape (n_rows, n_outputs)
    measure : {"variance", "std", "mean_abs"}
        Variances and mean absolute values of several outputs are added up; "std" is the root
        of the variance.
    sample_weight : ndarray of shape (n_rows,), or None

    Returns
    -------
    float
    """
    if measure == "mean_abs":
        return float(np.average(np.abs(part), axis=0, weights=sample_weight).sum())
    centred = part - np.average(part, axis=0, weights=sample_weight)
    variance = float(np.average(centred**2, axis=0, weights=sample_weight).sum())
    return variance**0.5 if measure == "std" else variance
