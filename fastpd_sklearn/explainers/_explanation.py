"""Explanations of some rows, with their names."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.forest import _frames, _rows


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What an explainer says of some rows.

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
        if not isinstance(term, str | tuple | list | frozenset):
            raise TypeError(
                f"an explanation is indexed by the names of a term and not by rows, got {term!r}; "
                "call explain on the rows that you want, or slice explanation.values"
            )
        wanted = frozenset([term] if isinstance(term, str) else term)
        for i, names in enumerate(self.terms):
            if wanted == frozenset(names):
                return self.values[:, i]
        known = [":".join(names) for names in self.terms[:20]]
        known += ["..."] if len(self.terms) > 20 else []
        raise KeyError(
            f"{term!r} is not among the {len(self.terms)} terms of this explanation: "
            f"{', '.join(known)}"
        )

    def to_frame(self):
        """One line a row, term and output.

        Returns
        -------
        pandas.DataFrame
            Columns ``row`` (the index of ``data`` if it is a pandas data frame, else the
            position), ``term``, ``output`` if there are several, and ``value``.
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
        """
        import shap

        self._check_shap()
        several = self.values.ndim == 3
        base = np.tile(self.base_values, (len(self), 1) if several else len(self))
        data, display_data = self._feature_values()
        return shap.Explanation(
            self.matrices() if self.output == "shap_interaction" else self._vectors(),
            base_values=base,
            data=data,
            display_data=display_data,
            feature_names=list(self.feature_names),
            output_names=list(self.output_names) if several else None,
        )

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

    def _check_shap(self) -> None:
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

    def _vectors(self) -> np.ndarray:
        shape = (len(self), len(self.feature_names), *self.values.shape[2:])
        phi = np.zeros(shape)
        for i, players in enumerate(self._places()):
            for k in players:
                phi[:, k] += self.values[:, i] / len(players)
        return phi


def _written(value) -> str:
    return f"{value:.4g}" if isinstance(value, int | float) else str(value)
