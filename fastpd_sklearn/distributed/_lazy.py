"""Explanations of Dask collections that are yet to be computed."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse

from fastpd_sklearn.explainers import Explanation
from fastpd_sklearn.explainers._explanation import as_set
from fastpd_sklearn.forest import _frames


@dataclass(frozen=True, eq=False, repr=False)
class LazyExplanation:
    """What an explainer will say of the rows of a Dask collection.

    Parameters
    ----------
    values : dask.array.Array of shape (n_rows, n_terms) or (n_rows, n_terms, n_outputs)
        In the unit of the response, with the chunks of the rows.
    base_values : float or ndarray of shape (n_outputs,)
        The mean response over the background.
    data : dask.array.Array or dask.dataframe.DataFrame
        The rows.
    terms, feature_names, output_names, output : object
        As those of :class:`~fastpd_sklearn.explainers.Explanation`.
    remainder : dask.array.Array of shape (n_rows,) or (n_rows, n_outputs), or None
        Response less base value less the sum of the values; None for outputs that do not add up.
    parts : tuple of dask.delayed.Delayed
        The explanation of each chunk, None where it has no rows.

    See Also
    --------
    fastpd_sklearn.explainers.Explanation : What :meth:`compute` gives.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> explainer = FastPDExplainer(output="shap").fit(model, X)
    >>> explanation = explainer.explain(da.from_array(X, chunks=(100, 10)))
    >>> explanation
    LazyExplanation(output='shap', n_terms=10, n_outputs=1, n_chunks=5)
    >>> explanation.compute().rank(1).terms
    (('x2',),)
    """

    values: object
    base_values: float | np.ndarray
    data: object
    terms: tuple[tuple[str, ...], ...]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    output: str
    remainder: object
    parts: tuple

    def __repr__(self) -> str:
        return (
            f"LazyExplanation(output={self.output!r}, n_terms={len(self.terms)}, "
            f"n_outputs={len(self.output_names)}, n_chunks={len(self.parts)})"
        )

    def __getitem__(self, term):
        """Values of one term, by the names of its features in any order.

        Returns
        -------
        dask.array.Array of shape (n_rows,) or (n_rows, n_outputs)

        Raises
        ------
        KeyError
            If there is no such term.
        """
        wanted = as_set(term)
        for place, names in enumerate(self.terms):
            if wanted == frozenset(names):
                return self.values[:, place]
        raise KeyError(f"{term!r} is not among the {len(self.terms)} terms of this explanation")

    def compute(self) -> Explanation:
        """The explanation in memory, with the rows.

        Returns
        -------
        Explanation

        Raises
        ------
        ValueError
            If the collection has no rows.

        Examples
        --------
        >>> import dask.array as da
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
        >>> explainer = FastPDExplainer(output="shap").fit(model, X)
        >>> explanation = explainer.explain(da.from_array(X, chunks=(100, 10))).compute()
        >>> len(explanation), explanation.complete
        (442, True)
        """
        import dask

        found = [part for part in dask.compute(*self.parts) if part is not None]
        if not found:
            raise ValueError(f"X has no rows: its {len(self.parts)} chunks are empty")
        changed = {
            "values": np.concatenate([part.values for part in found]),
            "data": _stacked_rows([part.data for part in found]),
            "complete": all(part.complete for part in found),
        }
        if self.remainder is not None:
            changed["remainder"] = np.concatenate([part.remainder for part in found])
        kept = {field.name: getattr(found[0], field.name) for field in fields(Explanation)}
        return Explanation(**{**kept, **changed})


def _stacked_rows(parts: list):
    """Rows of several chunks as those of one."""
    if sparse.issparse(parts[0]):
        return sparse.vstack(parts, format="csr")
    if not _frames.is_frame(parts[0]):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts)
