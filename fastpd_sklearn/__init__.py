"""Exact explanations of tree ensembles as scikit-learn estimators."""

from fastpd_sklearn.explainers import Explanation, VanillaPDExplainer

__all__ = ["Explanation", "VanillaPDExplainer"]
