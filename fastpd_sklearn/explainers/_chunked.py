"""Explanations of rows that come in chunks, or lie on other machines."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps

import numpy as np
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import _checks, _sources, _writing


@dataclass(frozen=True, eq=False)
class Means:
    """Weighted means over rows; those over other rows are added.

    Parameters
    ----------
    weight : float
        Of the rows.
    values : list of ndarray
    """

    weight: float
    values: list[np.ndarray]

    def __add__(self, other: Means) -> Means:
        weight = self.weight + other.weight
        share = other.weight / weight
        pairs = zip(self.values, other.values, strict=True)
        return Means(weight, [mean + share * (further - mean) for mean, further in pairs])


def _lazy_over_dask(transform):
    """A ``transform`` that gives a Dask collection for one."""

    @wraps(transform)
    def dispatching(self, X, *args, **kwargs):
        if not _sources.is_dask(X):
            return transform(self, X, *args, **kwargs)
        from fastpd_sklearn.distributed import transform_lazily  # which knows explainers

        check_is_fitted(self)
        return transform_lazily(self, X)

    return dispatching


class ChunkedTransformerMixin(TransformerMixin):
    """Gives an explainer with ``transform`` all that goes chunk by chunk."""

    _chunks_remedy = (
        "go through the chunks yourself, or call transform_blocks or transform_to_parquet for a "
        "stream of chunks, and transform for a Dask collection"
    )

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "transform" in vars(cls):
            # Outside of what scikit-learn wraps around it for set_output, which would compute.
            cls.transform = _lazy_over_dask(cls.transform)

    def transform_blocks(self, source):
        """Explain rows that come in chunks, one chunk at a time.

        Parameters
        ----------
        source : str, path, Arrow dataset or reader, or iterable of chunks
            As :meth:`fit` takes it. Of files and datasets the columns that the explainer knows by
            name are read, and no others. A Dask collection is for :meth:`transform`.

        Yields
        ------
        ndarray of shape (n_rows, n_columns_out), or data frame
            What :meth:`transform` gives for each chunk that has rows; data frames, with the index
            of the chunk, after ``set_output(transform="pandas")``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = HistGradientBoostingRegressor(max_iter=5).fit(X, y)
        >>> chunks = [X[:200], X[200:]]
        >>> explainer = FastPDExplainer(output="shap").fit(model, chunks)
        >>> [block.shape for block in explainer.transform_blocks(chunks)]
        [(200, 10), (242, 10)]
        """
        check_is_fitted(self)
        if _sources.is_dask(source):
            raise TypeError(
                "transform_blocks takes chunks that are read here one after the other, got a Dask "
                "collection; call transform, which gives a collection"
            )
        if not _sources.is_stream(source):
            raise TypeError(
                f"transform_blocks takes rows in chunks, got a {type(source).__name__}: give the "
                "path of a Parquet file, an Arrow dataset, or an iterable of arrays or data "
                "frames; for rows in memory there is transform"
            )
        return self._transformed(source)

    def _transformed(self, source):
        n_rows = 0
        for chunk in _sources.chunks_of(source, None, self._known_names(), "source"):
            with _sources.naming(chunk.number, "source"):
                values = self.transform(chunk.X)
            yield values
            n_rows += chunk.X.shape[0]
            if self.verbose:
                print(f"[{self._progress()}] chunk {chunk.number}, {n_rows} rows so far")

    def transform_to_parquet(self, source, path) -> None:
        """Explain rows that come in chunks, and write the values to a Parquet file.

        Parameters
        ----------
        source : str, path, Arrow dataset or reader, or iterable of chunks
            As :meth:`transform_blocks` takes it.
        path : str or path
            A file of that name is replaced once all is written. Its columns are those that
            :meth:`get_feature_names_out` names, of float64, its rows those of the source in their
            order.

        Raises
        ------
        ImportError
            If pyarrow is not installed.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import pandas as pd
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
        >>> folder = Path(tempfile.mkdtemp())
        >>> X.to_parquet(folder / "rows.parquet")
        >>> explainer = FastPDExplainer(output="shap").fit(model, folder / "rows.parquet")
        >>> explainer.transform_to_parquet(folder / "rows.parquet", folder / "shap.parquet")
        >>> pd.read_parquet(folder / "shap.parquet").shape
        (442, 10)
        """
        names = [str(name) for name in self.get_feature_names_out()]
        _writing.write_parquet(map(np.asarray, self.transform_blocks(source)), names, path)

    def _known_names(self):
        """Names of columns to read of files that have more; None if there are none."""
        return getattr(self, "feature_names_in_", None)

    def _sum_over(self, X, sample_weight, function):
        """What a function gives for rows, added up over chunks, wherever they are.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), or chunks of such
        sample_weight : array-like, str or None
        function : callable
            From the explainer, checked rows and checked weights to what can be added, such as
            :class:`Means`. It travels to workers.

        Returns
        -------
        What the function gives
        """
        if _sources.is_dask(X):
            from fastpd_sklearn.distributed import sum_over  # which knows explainers

            return sum_over(self, X, sample_weight, function)
        if not _sources.is_stream(X):
            return self._of_rows(X, sample_weight, function)
        total = None
        for chunk in _sources.chunks_of(X, sample_weight, self._known_names(), "rows"):
            with _sources.naming(chunk.number, "rows"):
                found = self._of_rows(chunk.X, chunk.weights, function)
                total = found if total is None else total + found
        if total is None:
            raise ValueError("X has no row with weight: it has no chunks, or empty ones")
        return total

    def _of_rows(self, X, sample_weight, function):
        X = self._check_X(X)
        weights = _checks.check_weights(sample_weight, X.shape[0])
        return function(self, X, np.ones(X.shape[0]) if weights is None else weights)
