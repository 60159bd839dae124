"""What each class of transformers does to its columns.

The shape of an output column is what it is to its input column:

* "same": the very value, where it is not missing;
* "monotone": a function that nowhere falls, or nowhere rises;
* "labels": a function of which of some labels the value is;
* "bins": one of several columns of zeros and a one, which stands where the value lies;
* "other": anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from sklearn.feature_selection import SelectorMixin
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)

from fastpd_sklearn.forest import _frames

SAME, MONOTONE, LABELS, BINS, OTHER = "same", "monotone", "labels", "bins", "other"

RISING = {
    np.arcsinh,
    np.arctan,
    np.cbrt,
    np.ceil,
    np.exp,
    np.exp2,
    np.expm1,
    np.floor,
    np.log,
    np.log10,
    np.log1p,
    np.log2,
    np.negative,
    np.positive,
    np.rint,
    np.sinh,
    np.sqrt,
    np.tanh,
    np.trunc,
}
"""Universal functions that are monotone wherever they are not NaN, which is on one side."""


class Flow(NamedTuple):
    """From the columns of a transformer to those that it gives.

    Parameters
    ----------
    sources : sequence of int or tuple of int
        For every output column the input column, or the input columns, that it depends on.
    shape : str, or sequence of str
        See this module; of all output columns, or of each.
    labels : sequence of ndarray, or None
        The labels of each input column, for the shape "labels".
    """

    sources: Sequence[int | tuple[int, ...]]
    shape: str | Sequence[str]
    labels: Sequence[np.ndarray] | None = None

    def shapes(self) -> Sequence[str]:
        """The shape of every output column."""
        return [self.shape] * len(self.sources) if isinstance(self.shape, str) else self.shape


def flow_of(transformer, n_columns: int) -> Flow | None:
    """What a fitted transformer does to its columns.

    Parameters
    ----------
    transformer : object
    n_columns : int
        How many columns go in.

    Returns
    -------
    Flow or None
        None for a transformer that nothing is known of: each of its outputs may depend on
        all of its columns.
    """
    for cls in type(transformer).__mro__:
        rule = _RULES.get(cls)
        if rule is not None:
            return rule(transformer, n_columns)
    return None


Sources = Callable[[object], Sequence[int | tuple[int, ...]]]


def register_transformer(
    cls: type, sources: Sources | None = None, *, monotone: bool = False
) -> None:
    """Declare which columns the output columns of a transformer depend on.

    Explainers play the game on the raw columns of a pipeline. They know the transformers of
    scikit-learn that work column by column, and take all columns that go into any other one
    for mixed, so that they play as one feature. This tells them about a class of your own.
    Each fit checks it on rows of the background, and refuses what turns out to be wrong.

    Parameters
    ----------
    cls : type
        The class; it holds for classes that derive from it, too.
    sources : callable, default=None
        From a fitted transformer to a sequence that has, for every output column, the number
        of the input column that it depends on, or a tuple of several. None: one output an
        input, in their order.
    monotone : bool, default=False
        Whether each output nowhere falls, or nowhere rises, with its only input (missing
        values aside), and does not depend on which labels there are. Then there are exact
        curves of partial dependence.

    Raises
    ------
    TypeError
        If ``cls`` is no class, or ``sources`` is not callable.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.base import BaseEstimator, TransformerMixin
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.forest import register_transformer
    >>> class Winsorizer(TransformerMixin, BaseEstimator):
    ...     def fit(self, X, y=None):
    ...         self.low_, self.high_ = np.quantile(X, [0.1, 0.9], axis=0)
    ...         return self
    ...     def transform(self, X):
    ...         return np.clip(X, self.low_, self.high_)
    >>> register_transformer(Winsorizer, monotone=True)
    >>> X = np.random.default_rng(0).random((50, 2))
    >>> pipe = make_pipeline(Winsorizer(), DecisionTreeRegressor()).fit(X, X[:, 0] > X[:, 1])
    >>> FastPDExplainer().fit(pipe, X).terms_
    (('x0',), ('x1',))
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls={cls!r} should be a class of transformers, such as type(step)")
    if sources is not None and not callable(sources):
        raise TypeError(
            f"sources={sources!r} should be a function from a fitted transformer to the input "
            "columns of each of its outputs, or None for one output an input"
        )
    shape = MONOTONE if monotone else OTHER

    def rule(transformer, n_columns: int) -> Flow:
        found = range(n_columns) if sources is None else sources(transformer)
        return Flow([_checked(source, n_columns, cls) for source in found], shape)

    _RULES[cls] = rule


def _checked(source, n_columns: int, cls: type) -> int | tuple[int, ...]:
    parts = tuple(int(k) for k in np.ravel(source))
    if any(not 0 <= k < n_columns for k in parts):
        raise ValueError(
            f"the sources that are registered for {cls.__name__} name column {source!r}; its "
            f"columns are numbered from 0 to {n_columns - 1}"
        )
    return parts[0] if len(parts) == 1 else parts


# -- the transformers of scikit-learn ------------------------------------------------------


def _one_to_one(shape: str):
    return lambda transformer, n_columns: Flow(range(n_columns), shape)


def _labels(transformer, n_columns: int) -> Flow:
    return Flow(range(n_columns), LABELS, transformer.categories_)


def _one_hot(encoder: OneHotEncoder, n_columns: int) -> Flow:
    counts = [len(labels) for labels in encoder.categories_]
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        for j, rare in enumerate(encoder.infrequent_categories_):
            counts[j] -= 0 if rare is None else len(rare) - 1
    if encoder.drop_idx_ is not None:
        counts = [n - (d is not None) for n, d in zip(counts, encoder.drop_idx_, strict=True)]
    return Flow(_repeated(counts), LABELS, encoder.categories_)


def _target(encoder: TargetEncoder, n_columns: int) -> Flow:
    each = len(encoder.classes_) if encoder.target_type_ == "multiclass" else 1
    return Flow(_repeated([each] * n_columns), LABELS, encoder.categories_)


def _bins(binner: KBinsDiscretizer, n_columns: int) -> Flow:
    if binner.encode == "ordinal":
        return Flow(range(n_columns), MONOTONE)
    return Flow(_repeated(binner.n_bins_), BINS)


def _splines(spline: SplineTransformer, n_columns: int) -> Flow:
    return Flow(_repeated([spline.n_features_out_ // n_columns] * n_columns), OTHER)


def _powers(polynomial: PolynomialFeatures, n_columns: int) -> Flow:
    parts = [tuple(np.flatnonzero(row).tolist()) for row in polynomial.powers_]
    return Flow([part[0] if len(part) == 1 else part for part in parts], OTHER)


def _selection(selector: SelectorMixin, n_columns: int) -> Flow:
    return Flow(np.flatnonzero(selector.get_support()).tolist(), SAME)


def _imputer(imputer: SimpleImputer, n_columns: int) -> Flow:
    kept = list(range(n_columns))
    if not imputer.keep_empty_features:
        kept = [j for j in kept if not _frames.is_missing(imputer.statistics_[j])]
    flags = [] if imputer.indicator_ is None else imputer.indicator_.features_.tolist()
    # A sentinel that stands for missing is a number among numbers.
    plain = _frames.is_missing(imputer.missing_values)
    shapes = [SAME if plain else OTHER] * len(kept) + [MONOTONE if plain else OTHER] * len(flags)
    return Flow(kept + flags, shapes)


def _indicator(indicator: MissingIndicator, n_columns: int) -> Flow:
    shape = MONOTONE if _frames.is_missing(indicator.missing_values) else OTHER
    return Flow(indicator.features_.tolist(), shape)


def _function(transformer: FunctionTransformer, n_columns: int) -> Flow | None:
    func = transformer.func
    if func is None:
        return Flow(range(n_columns), SAME)
    if _is_elementwise(func) and not transformer.kw_args:
        return Flow(range(n_columns), MONOTONE if func in RISING else OTHER)
    declared = transformer.feature_names_out
    if isinstance(declared, str) and declared == "one-to-one":
        return Flow(range(n_columns), OTHER)
    return None


def _is_elementwise(func) -> bool:
    return isinstance(func, np.ufunc) and func.signature is None and func.nin == func.nout == 1


def _repeated(counts) -> list[int]:
    return np.repeat(np.arange(len(counts)), np.asarray(counts, dtype=np.intp)).tolist()


_RULES: dict[type, Callable[[object, int], Flow | None]] = {
    **dict.fromkeys(
        (
            Binarizer,
            MaxAbsScaler,
            MinMaxScaler,
            PowerTransformer,
            QuantileTransformer,
            RobustScaler,
            StandardScaler,
        ),
        _one_to_one(MONOTONE),
    ),
    FunctionTransformer: _function,
    KBinsDiscretizer: _bins,
    MissingIndicator: _indicator,
    OneHotEncoder: _one_hot,
    OrdinalEncoder: _labels,
    PolynomialFeatures: _powers,
    SelectorMixin: _selection,
    SimpleImputer: _imputer,
    SplineTransformer: _splines,
    TargetEncoder: _target,
}
