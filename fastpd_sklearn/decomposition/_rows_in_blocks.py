"""The explainer and the rows that a summary is made of, some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import BaseExplainer, FastPDExplainer, _checks, _models, _sources
from fastpd_sklearn.forest import _rows


def open_explainer(
    estimator, X, sample_weight, *, output: str, max_order, target, groups, n_jobs
) -> BaseExplainer:
    """The explainer that is given, or one of the model that is given over ``X``.

    Parameters
    ----------
    estimator : object
        A fitted explainer, or a fitted model.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : array-like of shape (n_rows,), or None
    output, max_order
        What the explainer of a model is to show.
    target, groups, n_jobs
        Of the explainer of a model; None with an explainer, which has its own.

    Returns
    -------
    BaseExplainer
        Fitted.
    """
    if isinstance(estimator, BaseExplainer):
        check_is_fitted(estimator)
        given = {"target": target, "groups": groups, "n_jobs": n_jobs}
        for name, value in given.items():
            if value is not None:
                raise ValueError(
                    f"{name}={value!r} goes with a model; a fitted explainer has its own {name}: "
                    f"set it before fit"
                )
        return estimator
    if not _models.is_model(estimator):
        raise TypeError(
            f"estimator is a {type(estimator).__name__}; give a fitted model, or a fitted "
            "explainer such as FastPDExplainer().fit(model, background)"
        )
    _sources.refuse_iterator(X, "fit an explainer to a background, and pass it instead of a model")
    explainer = FastPDExplainer(
        output=output, max_order=max_order, target=target, groups=groups, n_jobs=n_jobs
    )
    return explainer.fit(estimator, X, sample_weight=sample_weight)


def row_blocks(
    explainer: BaseExplainer, X, sample_weight, size: int
) -> Iterator[tuple[object, np.ndarray]]:
    """Some rows at a time with their weights, without the blocks that weigh nothing.

    Parameters
    ----------
    explainer : BaseExplainer
        Says how the rows are to be checked, and whether to print progress.
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns)
    sample_weight : array-like of shape (n_rows,), or None
    size : int
        Most rows of a block.

    Yields
    ------
    X : array, sparse matrix or data frame
    weights : ndarray of shape (n_rows,), float64
    """
    X = explainer._check_X(X)
    n_rows = X.shape[0]
    weights = _checks.check_weights(sample_weight, n_rows)
    weights = np.ones(n_rows) if weights is None else weights
    X = X.tocsr() if sparse.issparse(X) else X
    for start in range(0, n_rows, size):
        part = slice(start, min(n_rows, start + size))
        if np.any(weights[part]):
            yield (X if size >= n_rows else _rows.take(X, part)), weights[part]
        if explainer.verbose:
            print(f"[{type(explainer).__name__}] {part.stop} of {n_rows} rows")
