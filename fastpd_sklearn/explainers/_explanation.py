"""Explanations of some rows, with their names."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral

import numpy as np

from fastpd_sklearn.explainers import _outputs
from fastpd_sklearn.explainers._checks import check_positive, check_weights
from fastpd_sklearn.explainers._fitted import ZERO
from fastpd_sklearn.forest import _frames, _rows


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What an explainer says of some rows.

    It is indexed by the names of a term. :meth:`select` and :meth:`rank` give explanations by
    some of the terms, whose ``remainder`` holds what the others amount to, so that ``base_values``,
    :meth:`sum` and ``remainder`` are the response however the terms are cut.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_outputs)
        In the unit of the response; three axes if there are several outputs.
    base_values : float or ndarray of shape (n_outputs,)
        The mean response over the background.
    data : array, sparse matrix or data frame of shape (n_rows, n_columns)
        The rows.
    terms : tuple of tuple of str
        Which features each of the ``values`` belongs to.
    feature_names : tuple of str
        All features: columns, or groups of them.
    output_names : tuple of str
        One an output.
    output : str
        What the values are: the ``output`` of the explainer.
    remainder : ndarray of shape (n_rows,) or (n_rows, n_outputs), or None
        Response less base value less the sum of the values: what the terms that are not
        here amount to. A pair of "shap_interaction" counts twice, as it stands in two places
        of ``shap``'s matrix. None for outputs that do not add up: "pd", "banzhaf" and
        "total".
    complete : bool
        Whether the terms that are not here are all zero.
    columns : tuple of tuple of int
        The columns of each feature: one, or several of a group.

    See Also
    --------
    VanillaPDExplainer : Makes explanations of any model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> from fastpd_sklearn.explainers import VanillaPDExplainer
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0], [2.0, 2.0]])
    >>> model = LinearRegression().fit(X, X @ [1.0, 3.0])
    >>> explanation = VanillaPDExplainer(output="shap").fit(model, X).explain(X[:2])
    >>> explanation["x1"].round(6)
    array([-3., -3.])
    >>> explanation.to_frame().round(6)
       row term  value
    0    0   x0   -1.0
    1    0   x1   -3.0
    2    1   x0    1.0
    3    1   x1   -3.0
    >>> strongest = explanation.rank(1)
    >>> strongest.terms, strongest.remainder.round(6)
    ((('x1',),), array([-1.,  1.]))
    """

    values: np.ndarray
    base_values: float | np.ndarray
    data: object
    terms: tuple[tuple[str, ...], ...]
    feature_names: tuple[str, ...]
    output_names: tuple[str, ...]
    output: str
    remainder: np.ndarray | None = None
    complete: bool = False
    columns: tuple[tuple[int, ...], ...] = ()

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Explanation(output={self.output!r}, n_rows={len(self)}, n_terms={len(self.terms)}, "
            f"n_outputs={len(self.output_names)})"
        )

    def __contains__(self, term) -> bool:
        return self._find(term) is not None

    def __getitem__(self, term) -> np.ndarray:
        """Values of one term.

        Parameters
        ----------
        term : str or tuple of str
            Names of features, in any order.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs)

        Raises
        ------
        KeyError
            If there is no such term.
        TypeError
            For anything but names: there are no slices of rows.
        """
        place = self._find(term)
        if place is None:
            known = [":".join(names) for names in self.terms[:20]]
            known += ["..."] if len(self.terms) > 20 else []
            raise KeyError(
                f"{term!r} is not among the {len(self.terms)} terms of this explanation: "
                f"{', '.join(known)}"
            )
        return self.values[:, place]

    def select(self, terms=None, *, order=None, feature=None) -> Explanation:
        """The explanation by some of its terms.

        Parameters
        ----------
        terms : str, tuple of str, or list of these, default=None
            Terms by the names of their features, in the order to have them. A tuple is one term,
            a list are several; None for all.
        order : int or iterable of int, default=None
            Numbers of features that the terms are to have.
        feature : str, default=None
            A feature that the terms are to have, alone or with others.

        Returns
        -------
        Explanation
            By the terms that are all of what is asked for; there may be none.

        Raises
        ------
        KeyError
            If there is no such term or feature.
        TypeError, ValueError
            If an order is no int from 1 on.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.ensemble import HistGradientBoostingRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> model = HistGradientBoostingRegressor(max_iter=20).fit(X, y)
        >>> whole = FastPDExplainer(output="component", max_order=None).fit(model, X).explain(X)
        >>> pairs = whole.select(order=2, feature="bmi")
        >>> pairs.rank(2).terms
        (('bmi', 's5'), ('bmi', 'bp'))
        >>> main = whole.select(order=1)
        >>> bool(np.allclose(main.base_values + main.sum() + main.remainder, model.predict(X)))
        True
        """
        places = range(len(self.terms)) if terms is None else self._find_all(terms)
        if order is not None:
            orders = _as_orders(order)
            places = [k for k in places if len(self.terms[k]) in orders]
        if feature is not None:
            self._check_feature(feature)
            places = [k for k in places if feature in self.terms[k]]
        return self._cut(list(places))

    def rank(self, n_terms=None, *, sample_weight=None) -> Explanation:
        """The explanation with the strongest terms first.

        Parameters
        ----------
        n_terms : int, default=None
            How many terms to keep at most; None for all.
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        Explanation
            By descending :meth:`mean_abs`, added up over the outputs if there are several.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 1.0, 4.0, 5.0])
        >>> explanation = FastPDExplainer(output="shap").fit(model, X).explain(X)
        >>> strongest = explanation.rank(1)
        >>> strongest.terms, strongest.values.ravel(), strongest.remainder
        ((('x0',),), array([-2., -2.,  2.,  2.]), array([-0.5,  0.5, -0.5,  0.5]))
        """
        if n_terms is not None:
            check_positive("n_terms", n_terms)
        size = self.mean_abs(sample_weight=sample_weight)
        size = size if size.ndim == 1 else size.sum(axis=1)
        return self._cut(np.argsort(-size, kind="stable")[:n_terms].tolist())

    def sum(self) -> np.ndarray:
        """The sum of the values, row by row.

        Returns
        -------
        ndarray of shape (n_rows,) or (n_rows, n_outputs), float64
            What the terms make up of the response. A pair of "shap_interaction" counts twice, as
            it stands in two places of ``shap``'s matrix.

        Raises
        ------
        ValueError
            For outputs that do not add up.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="component").fit(model, X).explain(X)
        >>> explanation.base_values + explanation.sum()
        array([0., 0., 0., 8.])
        """
        if self.output not in _outputs.ADDITIVE:
            raise ValueError(
                f"output={self.output!r} does not add up, so a sum of its values means nothing; "
                f"explain with one of {', '.join(map(repr, _outputs.ADDITIVE))}"
            )
        return self._sum(range(len(self.terms)))

    def mean_abs(self, *, sample_weight=None) -> np.ndarray:
        """Mean absolute value of every term over the rows.

        Parameters
        ----------
        sample_weight : array-like of shape (n_rows,), default=None
            Weights of the rows.

        Returns
        -------
        ndarray of shape (n_terms,) or (n_terms, n_outputs), float64
            In the unit of the response.

        See Also
        --------
        BaseExplainer.mean_abs : The same without holding the values.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="component").fit(model, X).explain(X)
        >>> dict(zip(explanation.terms, explanation.mean_abs().tolist()))
        {('x0',): 2.0, ('x1',): 2.0, ('x0', 'x1'): 2.0}
        """
        weights = check_weights(sample_weight, len(self))
        out = np.empty(self.values.shape[1:])
        for k in range(len(self.terms)):
            out[k] = np.average(np.abs(self.values[:, k]), axis=0, weights=weights)
        return out

    def to_frame(self):
        """One line a row, term and output.

        Returns
        -------
        pandas.DataFrame
            Columns ``row`` (the index of ``data`` if it is a pandas data frame, else the
            position), ``term``, ``output`` if there are several, and ``value``.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="component").fit(model, X).explain(X)
        >>> explanation.to_frame().tail(3)
            row   term  value
        9     3     x0    2.0
        10    3     x1    2.0
        11    3  x0:x1    2.0
        """
        import pandas as pd

        n_outputs = len(self.output_names)
        per_row = len(self.terms) * n_outputs
        rows = self.data.index if _frames.is_pandas(self.data) else pd.RangeIndex(len(self))
        terms = np.repeat([":".join(names) for names in self.terms], n_outputs)
        columns = {"row": rows.repeat(per_row), "term": np.tile(terms, len(self))}
        if n_outputs > 1:
            columns["output"] = np.tile(self.output_names, len(self) * len(self.terms))
        return pd.DataFrame({**columns, "value": self.values.reshape(-1)})

    def to_shap(self):
        """The explanation as the ``shap`` package has it, for its plots.

        Returns
        -------
        shap.Explanation
            ``values`` of shape (n_rows, n_features) or, for interactions, (n_rows, n_features,
            n_features); one more axis if there are several outputs, of which most plots take one:
            ``explanation.to_shap()[..., 0]``. SHAP values are made of components as ``sum of m_S /
            |S|`` over the sets ``S`` with the feature. A group of several columns has no number to
            be coloured by: it is NaN in ``data``, and its values are in ``display_data``.

        Raises
        ------
        ValueError
            If the values are no SHAP values, or do not add up since terms were left out.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="shap").fit(model, X).explain(X)
        >>> theirs = explanation.to_shap()
        >>> theirs.values[3], theirs.base_values
        (array([3., 3.]), array([2., 2., 2., 2.]))
        """
        import shap

        self._check_complete()
        several = self.values.ndim == 3
        base = np.tile(self.base_values, (len(self), 1) if several else len(self))
        data, display_data = self._feature_values()
        return shap.Explanation(
            self.matrices() if self.output == "shap_interaction" else self.shap_values(),
            base_values=base,
            data=data,
            display_data=display_data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if several else None,
        )

    def shap_values(self) -> np.ndarray:
        """SHAP values of the features, from whatever adds up to them.

        Returns
        -------
        ndarray of shape (n_rows, n_features), or (n_rows, n_features, n_outputs)
            Of components the sum of ``m_S / |S|`` over the sets ``S`` with the feature; of SHAP
            interaction values the sum over a row of ``shap``'s matrix.

        Raises
        ------
        ValueError
            If the values are no SHAP values, or do not add up since terms were left out.

        References
        ----------
        M. Hiabu, J. T. Meyer, M. N. Wright, "Unifying local and global model explanations by
        functional decomposition of low dimensional structures", AISTATS 2023, Corollary 2.7.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="component").fit(model, X).explain(X)
        >>> explanation["x0", "x1"]
        array([ 2., -2., -2.,  2.])
        >>> explanation.shap_values()
        array([[-1., -1.],
               [-3.,  1.],
               [ 1., -3.],
               [ 3.,  3.]])
        """
        self._check_complete()
        phi = np.zeros((len(self), len(self.feature_names), *self.values.shape[2:]))
        for i, players in enumerate(self._places()):
            share = _outputs.share(self.output, self.terms[i]) / len(players)
            for k in players:
                phi[:, k] += share * self.values[:, i]
        return phi

    def matrices(self) -> np.ndarray:
        """SHAP interaction values as ``shap``'s symmetric matrices.

        Returns
        -------
        ndarray of shape (n_rows, n_features, n_features), or with a last axis of n_outputs
            A pair's value stands in both of its places, zero where there is no term.

        Raises
        ------
        ValueError
            For another ``output`` than "shap_interaction".

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.tree import DecisionTreeRegressor
        >>> from fastpd_sklearn import FastPDExplainer
        >>> X = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
        >>> model = DecisionTreeRegressor().fit(X, [0.0, 0.0, 0.0, 8.0])
        >>> explanation = FastPDExplainer(output="shap_interaction").fit(model, X).explain(X)
        >>> explanation.matrices()[3]
        array([[2., 1.],
               [1., 2.]])
        """
        if self.output != "shap_interaction":
            raise ValueError(
                f"output={self.output!r} has no SHAP interaction values; explain with "
                "output='shap_interaction'"
            )
        d = len(self.feature_names)
        matrix = np.zeros((len(self), d, d, *self.values.shape[2:]))
        for i, players in enumerate(self._places()):
            matrix[:, players[0], players[-1]] = self.values[:, i]
            matrix[:, players[-1], players[0]] = self.values[:, i]
        return matrix

    def _feature_values(self) -> tuple[np.ndarray, np.ndarray | None]:
        """The rows by features, and as they are to be written where a feature is a group."""
        rows = _rows.to_array(self.data)
        if all(len(columns) == 1 for columns in self.columns):
            return rows[:, [column for (column,) in self.columns]], None
        values = np.full((len(self), len(self.columns)), np.nan, np.result_type(rows, np.float32))
        written = np.empty(values.shape, dtype=object)
        for k, columns in enumerate(self.columns):
            part = rows[:, columns]
            if len(columns) == 1:
                values[:, k] = written[:, k] = part[:, 0]
            else:
                written[:, k] = [f"({', '.join(map(_written, row))})" for row in part.tolist()]
        return values, written

    def _check_complete(self) -> None:
        """Refuse to pass as SHAP values what does not add up."""
        if self.remainder is None:
            raise ValueError(
                f"output={self.output!r} has no SHAP values in it: its values do not add up to the "
                "response; explain with output='shap'"
            )
        if not self.complete:
            largest = np.max(np.abs(self.remainder), initial=0.0)
            raise ValueError(
                f"terms that are not zero were left out (the remainder is up to {largest:.6g}), so "
                "these values are no SHAP values of the model; explain with output='shap', or "
                "with features=None and max_order=None"
            )

    def _places(self) -> list[list[int]]:
        place = {name: k for k, name in enumerate(self.feature_names)}
        return [[place[name] for name in names] for names in self.terms]

    def _find(self, term) -> int | None:
        """The place of a term, or None."""
        wanted = as_set(term)
        places = (i for i, names in enumerate(self.terms) if wanted == frozenset(names))
        return next(places, None)

    def _find_all(self, terms) -> list[int]:
        """Places of one term or of a list of them, each of which is to be named once."""
        place = {frozenset(names): k for k, names in enumerate(self.terms)}
        places = []
        for term in terms if isinstance(terms, list) else [terms]:
            found = place.get(as_set(term))
            if found is None:
                self[term]  # which says what there is
            if found in places:
                raise ValueError(f"terms: {term!r} is named twice")
            places.append(found)
        return places

    def _check_feature(self, feature) -> None:
        if not isinstance(feature, str):
            raise TypeError(
                f"feature={feature!r} should be the name of one feature; select by several one "
                "after the other"
            )
        if feature not in self.feature_names:
            known = ", ".join(self.feature_names[:20])
            more = ", ..." if len(self.feature_names) > 20 else ""
            raise KeyError(f"feature={feature!r} is none of the features {known}{more}")

    def _sum(self, places) -> np.ndarray:
        """The sum of some terms in each row."""
        total = np.zeros((len(self), *self.values.shape[2:]))
        for k in places:
            total += _outputs.share(self.output, self.terms[k]) * self.values[:, k]
        return total

    def _cut(self, places: list[int]) -> Explanation:
        """By some of the terms; the others go into the remainder."""
        dropped = np.setdiff1d(np.arange(len(self.terms)), places)
        # A term's values for all rows stay together in memory.
        values = np.moveaxis(np.moveaxis(self.values, 0, -1)[places], -1, 0)
        cut = replace(self, values=values, terms=tuple(self.terms[k] for k in places))
        if self.remainder is None or not len(dropped):
            return cut
        remainder = self.remainder + self._sum(dropped)
        return replace(cut, remainder=remainder, complete=self.complete and self._is_zero(dropped))

    def _is_zero(self, places: np.ndarray) -> bool:
        """Whether the values of some terms are zero, up to rounding."""
        response = np.abs(self.base_values + self.sum() + self.remainder).max(initial=0.0)
        zero = ZERO * max(np.abs(self.base_values).max(), response)
        return all(np.abs(self.values[:, k]).max(initial=0.0) <= zero for k in places)


def as_set(term) -> frozenset[str]:
    """The features of a term that a user names."""
    if not isinstance(term, str | tuple | list | frozenset):
        raise TypeError(
            f"an explanation is indexed by the names of a term and not by rows, got {term!r}; "
            "call explain on the rows that you want, or slice explanation.values"
        )
    return frozenset([term] if isinstance(term, str) else term)


def _as_orders(order) -> set[int]:
    """Numbers of features, of which there may be a single one."""
    orders = [order] if isinstance(order, Integral) else order
    if isinstance(orders, str) or not hasattr(orders, "__iter__"):
        raise TypeError(f"order={order!r} should be an int, or several of them")
    orders = list(orders)
    for one in orders:
        check_positive("order", one)
    return set(orders)


def _written(value) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
