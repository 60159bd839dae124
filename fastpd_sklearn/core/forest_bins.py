"""The alphabets of a forest's columns."""

from __future__ import annotations

from fastpd_sklearn.core.binning import Bins


def bins_of(forest, zero: float) -> Bins:
    """The tests of a forest in terms of alphabets, made for it.

    Parameters
    ----------
    forest : Forest
    zero : float
        Half-width of the values that `zero_as_missing` takes for missing.

    Returns
    -------
    Bins
    """
    return Bins(
        forest.feature,
        forest.threshold,
        forest.missing_left,
        forest.zero_as_missing,
        forest.is_categorical,
        forest.listed_left,
        forest.category_start,
        forest.category,
        zero,
        forest.strict,
        forest.single,
    )
