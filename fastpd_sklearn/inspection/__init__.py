"""Partial dependence in the shape of :mod:`sklearn.inspection`, exact for tree ensembles."""

from fastpd_sklearn.inspection._display import PartialDependenceDisplay
from fastpd_sklearn.inspection._partial_dependence import partial_dependence

__all__ = ["PartialDependenceDisplay", "partial_dependence"]
