"""Passes over Dask collections: what each chunk gives is added up where the chunks are."""

from __future__ import annotations

from collections.abc import Callable

from sklearn.base import clone

from fastpd_sklearn.distributed import _tasks
from fastpd_sklearn.distributed._parts import parts_of, reduced, shipped
from fastpd_sklearn.explainers._passes import Rows


class DaskPasses:
    """Passes over a collection, each a map over its chunks and a tree that adds up.

    No rows come home but one, which tells the types of the columns. Chunks are made anew in each
    pass unless they are persisted.

    Parameters
    ----------
    explainer : LocalExplainer
        That is to be fitted.
    background : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame
    sample_weight : dask.array.Array, dask.dataframe.Series, array-like, str or None

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import ALEExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> explainer = ALEExplainer(features=[2]).fit(model, rows)  # makes such passes
    >>> explainer.effects_[0].bin_counts.sum() == len(X)
    np.True_
    """

    def __init__(self, explainer, background, sample_weight) -> None:
        self._explainer, self._parts = explainer, parts_of(background, sample_weight)
        self._rows = Rows()
        self._checker = None

    def draft(self, model):
        """What the explainer's ``_draft`` says of the model and the first chunk with rows."""
        from dask import delayed

        self._explainer._forget()
        empty = clone(self._explainer)
        for part in self._parts:
            found = delayed(_tasks.draft)(empty, model, *part).compute()
            if found is not None:
                draft, checker = found
                self._checker = checker
                return draft
        return self._rows.check(None)

    def add_up(self, function: Callable):
        """What a function of rows gives for the chunks, added up; see `Passes`."""
        from dask import delayed

        shared = shipped((self._checker, function, self._rows.starts()))
        found = [delayed(_tasks.pass_over)(shared, *part) for part in self._parts]
        return self._rows.check(reduced(_tasks.total, found).compute())
