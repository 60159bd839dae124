"""Effects of features in the shape of :mod:`sklearn.inspection`, exact for tree ensembles."""

from fastpd_sklearn.inspection._ale import accumulated_local_effects
from fastpd_sklearn.inspection._display import PartialDependenceDisplay
from fastpd_sklearn.inspection._ice import individual_conditional_expectation
from fastpd_sklearn.inspection._partial_dependence import partial_dependence

__all__ = [
    "PartialDependenceDisplay",
    "accumulated_local_effects",
    "individual_conditional_expectation",
    "partial_dependence",
]
