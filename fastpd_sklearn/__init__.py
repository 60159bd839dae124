"""Exact explanations of tree ensembles as scikit-learn estimators."""

from fastpd_sklearn.explainers import (
    Explanation,
    FastPDExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
)

__version__ = "0.1.0"

__all__ = ["Explanation", "FastPDExplainer", "PathDependentExplainer", "VanillaPDExplainer"]
