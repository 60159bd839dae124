"""Backgrounds that are Dask collections: one state a chunk, and a tree that merges them."""

from __future__ import annotations

from sklearn.base import clone

from fastpd_sklearn.distributed import _tasks
from fastpd_sklearn.distributed._parts import Part, parts_of, reduced, shipped


def fit_background(explainer, model, background, sample_weight=None) -> None:
    """Fit an explainer to a model and a background, where the background is.

    The model is read on one worker, on the first chunk that has rows. What comes of it, without
    rows and without the model, goes to all workers; each counts the chunks that it has, and what
    they find is merged eight at a time. No more than a row of the background comes home.

    Parameters
    ----------
    explainer : BaseExplainer
        Fitted in place, as by ``explainer.fit(model, background)``.
    model : object
        Fitted.
    background : dask.array.Array of shape (n_rows, n_columns), or dask.dataframe.DataFrame
    sample_weight : dask.array.Array, dask.dataframe.Series, array-like, str or None, default=None
        With the same chunks as the background; of a data frame also the name of a column.

    Raises
    ------
    ValueError
        If the background has no row that counts, or weights that do not go with it. Errors on
        workers have a note that says which chunk they are about.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = DecisionTreeRegressor(max_depth=3).fit(X, y)
    >>> rows = da.from_array(X, chunks=(100, 10))
    >>> explainer = FastPDExplainer().fit(model, rows)  # calls this function
    >>> bool(abs(explainer.intercept_[0] - model.predict(X).mean()) < 1e-9)
    True
    """
    from dask import delayed

    explainer._forget()
    parts = parts_of(background, sample_weight)
    prepared, parts = _first_prepared(clone(explainer), model, parts)
    shared = shipped(prepared)
    states = [delayed(_tasks.count)(shared, *part) for part in parts]
    whole = reduced(_tasks.merge, states).compute()
    for name, value in vars(prepared).items():
        if name.endswith("_") and not name.startswith("_"):
            setattr(explainer, name, value)
    explainer.estimator_ = model
    explainer._replace(whole._fitted)


def _first_prepared(explainer, model, parts: list[Part]) -> tuple:
    """An explainer made ready on the first part that has rows, and the parts from there on."""
    from dask import delayed

    for number, part in enumerate(parts):
        prepared = delayed(_tasks.prepare)(explainer, model, *part).compute()
        if prepared is not None:
            return prepared, parts[number:]
    raise ValueError(f"the background has no row with weight: its {len(parts)} chunks are empty")
