"""What each ``output`` shows, as sums of values that an engine computes."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain, combinations

import numpy as np
from scipy import sparse

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.explainers._protocol import Engine, Term

DEFAULT_ORDER = {
    "pd": 1,
    **{name: index.default_order for name, index in INDICES.items()},
    "shap_interaction": 2,
}
"""Every ``output`` and the order that ``max_order="auto"`` means for it."""

ADDITIVE = ("shap_interaction", *(name for name, index in INDICES.items() if index.adds_up))
"""Outputs that add up to the response, with the intercept, if no term is left out."""

_ONLY_ORDER = {
    "shap": "SHAP values belong to single features; for pairs of them take "
    "output='shap_interaction'",
    "shap_interaction": "SHAP interaction values belong to features and pairs of them; for "
    "larger sets take output='component' or 'banzhaf'",
}


def resolve_order(output: str, max_order) -> int | None:
    """The largest number of players in a term; None for no limit.

    Parameters
    ----------
    output : str
    max_order : "auto", int or None

    Returns
    -------
    int or None

    Raises
    ------
    ValueError
        If ``output`` has no terms of that size.
    """
    default = DEFAULT_ORDER[output]
    if isinstance(max_order, str) and max_order == "auto":
        return default
    if output in _ONLY_ORDER and max_order != default:
        raise ValueError(
            f"max_order={max_order!r} does not go with output={output!r}: {_ONLY_ORDER[output]}"
        )
    return max_order


def check_size(output: str, max_order, names: tuple[str, ...]) -> None:
    """Refuse a term that the user named but ``output`` or ``max_order`` rules out.

    Parameters
    ----------
    output : str
    max_order : "auto", int or None
    names : tuple of str
        The term.
    """
    if output in _ONLY_ORDER and len(names) > DEFAULT_ORDER[output]:
        raise ValueError(f"features: {names!r} with output={output!r}: {_ONLY_ORDER[output]}")
    if max_order not in ("auto", None) and len(names) > max_order:
        raise ValueError(
            f"features: {names!r} has {len(names)} features, more than max_order={max_order}; "
            "raise max_order or name a smaller set"
        )


def default_terms(engine: Engine, n_players: int, max_order: int | None) -> list[Term]:
    """All single players, and the larger sets that can be other than zero."""
    singles = [(k,) for k in range(n_players)]
    return singles if max_order == 1 else singles + engine.common_terms(max_order)


def closure(terms) -> list[Term]:
    """All non-empty subsets of the terms, sorted by size, then players."""
    parts = {part for term in terms for part in subsets(term)}
    return sorted(parts, key=by_size)


def by_size(term: Term) -> tuple[int, Term]:
    """Sorting key: small sets first, then by players."""
    return len(term), term


def subsets(term: Term):
    """All non-empty subsets of a term."""
    return chain.from_iterable(combinations(term, k) for k in range(1, len(term) + 1))


def share(output: str, term: Term) -> int:
    """How often a term counts where all terms add up to the response.

    A pair of SHAP interaction values stands in two places of ``shap``'s symmetric matrix.
    """
    return 2 if output == "shap_interaction" and len(term) == 2 else 1


@dataclass(frozen=True)
class Recipe:
    """How the columns of an output come from one call of ``Engine.index_values``.

    Parameters
    ----------
    index : str
        The index to ask for.
    asked : list of tuple of int
        The terms to ask for.
    parts : list of list of (int, float), or None
        For every column, the positions in ``asked`` to add up and their factors; None: the
        values as they are.
    adds_intercept : bool
    """

    index: str
    asked: list[Term]
    parts: list[list[tuple[int, float]]] | None = None
    adds_intercept: bool = False

    def __getstate__(self) -> dict:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def combine(self, values: np.ndarray, intercept: np.ndarray) -> np.ndarray:
        """Columns of the output.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_asked, n_outputs)
            May be overwritten.
        intercept : ndarray of shape (n_outputs,)

        Returns
        -------
        ndarray of shape (n_rows, n_terms, n_outputs)
        """
        if self.parts is None:
            if self.adds_intercept:
                values += intercept
            return values
        # A term's values lie together in memory: that is how engines make them.
        by_term = np.ascontiguousarray(values.transpose(1, 2, 0))
        out = self._factors @ by_term.reshape(len(self.asked), -1)
        out = out.reshape(len(self.parts), *by_term.shape[1:]).transpose(2, 0, 1)
        if self.adds_intercept:
            out += intercept
        return out

    @cached_property
    def _factors(self) -> sparse.csr_array:
        """The factor of every asked term in every column, shape (n_columns, n_asked)."""
        sizes = [len(parts) for parts in self.parts]
        position, factor = zip(*chain.from_iterable(self.parts), strict=True)
        start = np.concatenate([[0], np.cumsum(sizes)])
        shape = (len(sizes), len(self.asked))
        return sparse.csr_array((np.array(factor), np.array(position), start), shape=shape)


def make_recipe(output: str, terms: list[Term], engine: Engine) -> Recipe:
    """The recipe for some terms of an output.

    Parameters
    ----------
    output : str
    terms : list of tuple of int
    engine : Engine

    Returns
    -------
    Recipe
    """
    if output == "pd":
        if all(len(term) == 1 for term in terms):
            return Recipe("component", terms, adds_intercept=True)
        asked = closure(terms)
        place = {term: i for i, term in enumerate(asked)}
        parts = [[(place[part], 1.0) for part in subsets(term)] for term in terms]
        return Recipe("component", asked, parts, adds_intercept=True)
    if output == "shap_interaction":
        return _interaction_recipe(terms, engine)
    return Recipe(output, terms)


def _interaction_recipe(terms: list[Term], engine: Engine) -> Recipe:
    """Halves of the pairs, and what the pairs leave of each player's SHAP value."""
    common = engine.common_terms(2)
    singles = {term[0] for term in terms if len(term) == 1}
    needed = [pair for pair in common if pair[0] in singles or pair[1] in singles]
    asked = sorted({*needed, *terms}, key=by_size)
    place = {term: i for i, term in enumerate(asked)}
    pairs_of: dict[int, list[Term]] = {k: [] for k in singles}
    for pair in needed:
        for k in singles.intersection(pair):
            pairs_of[k].append(pair)
    parts = [
        [(place[term], 0.5)]
        if len(term) == 2
        else [(place[term], 1.0), *((place[pair], -0.5) for pair in pairs_of[term[0]])]
        for term in terms
    ]
    return Recipe("shap", asked, parts)
