"""Which terms drove a prediction: the largest ones of every row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers import BaseExplainer, Explanation, _checks, _outputs
from fastpd_sklearn.forest import _frames

DIRECTIONS = {"any": np.abs, "up": np.positive, "down": np.negative}
"""By what terms are ranked."""

ZERO = 1e-12
"""A share that is no reason."""


@dataclass(frozen=True, eq=False, repr=False)
class ReasonCodes:
    """The terms that drove the predictions of some rows, the largest first.

    Parameters
    ----------
    terms : ndarray of shape (n_rows, k), of tuple of str or None
        None where a row has fewer reasons.
    values : ndarray of shape (n_rows, k)
        What each of them adds to the response, with its sign; 0 where there is none.
    shares : ndarray of shape (n_rows, k)
        Absolute value over the sum of the absolute values of all terms of the row, the
        remainder included.
    index : sequence of length n_rows
        Names of the rows: the index of a pandas data frame, else their positions.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.decomposition import reason_codes
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
    >>> explainer = FastPDExplainer(output="shap").fit(model, X)
    >>> reasons = reason_codes(explainer, X[1:2], k=2)
    >>> reasons.terms[0, 0], reasons.values[0], reasons.shares[0].round(2)
    (('x0',), array([-3.,  1.]), array([0.75, 0.25]))
    """

    terms: np.ndarray
    values: np.ndarray
    shares: np.ndarray
    index: object

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return f"ReasonCodes(n_rows={len(self)}, k={self.values.shape[1]})"

    def to_frame(self):
        """One line a row and reason.

        Returns
        -------
        pandas.DataFrame
            Columns ``row``, ``rank`` from 1 on, ``term``, ``value`` and ``share``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> from fastpd_sklearn.decomposition import reason_codes
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explainer = FastPDExplainer(output="shap").fit(model, X)
        >>> reason_codes(explainer, X[1:2], k=2).to_frame().round(2)
           row  rank term  value  share
        0    0     1   x0   -3.0   0.75
        1    0     2   x1    1.0   0.25
        """
        import pandas as pd

        row, rank = np.nonzero(self.values)
        return pd.DataFrame(
            {
                "row": pd.Index(self.index)[row],
                "rank": rank + 1,
                "term": [":".join(self.terms[i, j]) for i, j in zip(row, rank, strict=True)],
                "value": self.values[row, rank],
                "share": self.shares[row, rank],
            }
        )


def reason_codes(explained, X=None, k=3, *, direction="any", target=None) -> ReasonCodes:
    """The ``k`` terms that drove each prediction, with their sign and share.

    Parameters
    ----------
    explained : Explanation or fitted explainer
        With values that add up to the response: ``output`` "component", "shap" or
        "shap_interaction".
    X : array-like, sparse matrix or data frame of shape (n_rows, n_columns), default=None
        The rows, for an explainer. Their terms are looked at block by block, so that there may be
        more of them than would fit into memory.
    k : int, default=3
        How many reasons to give at most.
    direction : {"any", "up", "down"}, default="any"
        Whether to give the largest terms, or those that raise or that lower the response most.
    target : int or str, default=None
        The output, by number or name, where there are several.

    Returns
    -------
    ReasonCodes

    Raises
    ------
    ValueError
        If the values do not add up to the response.

    Notes
    -----
    Response minus mean response is the sum of all terms. A share is a part of the sum of their
    absolute values: terms of different signs do not cancel, and shares stay between 0 and 1. Terms
    that an explanation leaves out count as one, by what they add up to. A pair of SHAP interaction
    values counts twice, as it does in the sum.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from fastpd_sklearn import FastPDExplainer
    >>> from fastpd_sklearn.decomposition import reason_codes
    >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = DecisionTreeRegressor().fit(X, [0.0, 2.0, 4.0, 10.0])
    >>> explainer = FastPDExplainer(output="component").fit(model, X)
    >>> reasons = reason_codes(explainer, X[3:], k=2)
    >>> reasons.terms[0], reasons.values[0], reasons.shares[0]
    (array([('x0',), ('x1',)], dtype=object), array([3., 2.]), array([0.5 , 0.33333333]))
    """
    _checks.check_choice("direction", direction, DIRECTIONS)
    _checks.check_positive("k", k)
    source = _open(explained, X)
    output = _find_output(target, source.output_names)
    rank = DIRECTIONS[direction]
    k = min(k, len(source.terms))
    number = np.full((source.n_rows, k), -1)
    value = np.zeros((source.n_rows, k))
    total, size = np.zeros(source.n_rows), np.zeros(source.n_rows)
    for numbers, block in source.blocks():
        amount = block[:, :, output] * [
            _outputs.share(source.output, source.terms[t]) for t in numbers
        ]
        total += amount.sum(axis=1)
        size += np.abs(amount).sum(axis=1)
        value = np.hstack([value, amount])
        number = np.hstack([number, np.broadcast_to(numbers, amount.shape)])
        # Of equal ones the first term, whichever block it comes in.
        best = np.lexsort((number, -rank(value)))[:, :k]
        value, number = (np.take_along_axis(array, best, axis=1) for array in (value, number))
    size += np.abs(source.gain()[:, output] - total)
    share = np.divide(
        np.abs(value), size[:, None], out=np.zeros_like(value), where=size[:, None] > 0
    )
    none = (rank(value) <= 0) | (share <= ZERO) | (number < 0)
    value[none], share[none], number[none] = 0.0, 0.0, -1
    terms = np.empty(len(source.terms) + 1, dtype=object)
    terms[: len(source.terms)] = source.terms
    return ReasonCodes(terms[number], value, share, source.index)


@dataclass(frozen=True, eq=False)
class _Source:
    """Terms of some rows, wherever they come from; values have a last axis of outputs."""

    terms: tuple[tuple[str, ...], ...]
    output: str
    output_names: tuple[str, ...]
    n_rows: int
    index: object
    blocks: object
    gain: object


def _open(explained, X) -> _Source:
    if isinstance(explained, Explanation):
        if X is not None:
            raise TypeError("X belongs to an explainer; an explanation has its rows: leave X out")
        source = _of_explanation(explained)
    elif isinstance(explained, BaseExplainer):
        check_is_fitted(explained)
        if X is None:
            raise TypeError("X=None: give the rows to explain, reason_codes(explainer, X)")
        source = _of_explainer(explained, X)
    else:
        raise TypeError(
            f"reason_codes takes an explanation, or a fitted explainer and rows, and got a "
            f"{type(explained).__name__}"
        )
    if source.output not in _outputs.ADDITIVE:
        raise ValueError(
            f"output={source.output!r}: its values do not add up to the response, so that there "
            "are no shares; take output='component', 'shap' or 'shap_interaction'"
        )
    return source


def _of_explanation(explanation: Explanation) -> _Source:
    values = explanation.values
    values = values[:, :, None] if values.ndim == 2 else values

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        yield np.arange(values.shape[1]), values

    def gain() -> np.ndarray:
        shares = [_outputs.share(explanation.output, term) for term in explanation.terms]
        remainder = explanation.remainder.reshape(len(values), -1)
        return np.einsum("rto,t->ro", values, np.array(shares, float)) + remainder

    names, data = explanation.output_names, explanation.data
    return _Source(
        explanation.terms,
        explanation.output,
        names,
        len(values),
        _index(data, len(values)),
        blocks,
        gain,
    )


def _of_explainer(explainer: BaseExplainer, X) -> _Source:
    place = {term: t for t, term in enumerate(explainer.terms_)}
    X = explainer._check_X(X)
    fitted = explainer._fitted

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for terms, values in explainer.explain_blocks(X):
            values = values[:, :, None] if values.ndim == 2 else values
            yield np.array([place[term] for term in terms]), values

    def gain() -> np.ndarray:
        return fitted.selection.response(fitted.engine.predict(X)) - fitted.intercept

    names = fitted.selection.names
    return _Source(
        explainer.terms_, fitted.output, names, X.shape[0], _index(X, X.shape[0]), blocks, gain
    )


def _index(X, n_rows: int):
    return X.index if _frames.is_pandas(X) else range(n_rows)


def _find_output(target, names: tuple[str, ...]) -> int:
    if target is None and len(names) > 1:
        raise ValueError(
            f"target=None: there are {len(names)} outputs, {', '.join(map(repr, names))}; say "
            "which one by name or number"
        )
    if target is None:
        return 0
    if target in names:
        return names.index(target)
    if isinstance(target, int | np.integer) and 0 <= target < len(names):
        return int(target)
    raise ValueError(f"target={target!r} is none of the outputs {', '.join(map(repr, names))}")
