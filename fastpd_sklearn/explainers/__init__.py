"""Explainers: scikit-learn estimators that say how a model uses its features."""

from fastpd_sklearn.explainers._ale import ALEExplainer
from fastpd_sklearn.explainers._ale_results import ALECurve, ALESurface
from fastpd_sklearn.explainers._base import BaseExplainer
from fastpd_sklearn.explainers._cost import CostWarning
from fastpd_sklearn.explainers._curve import CategoryCurve, LinearCurve, StepCurve, StepSurface
from fastpd_sklearn.explainers._explanation import Explanation
from fastpd_sklearn.explainers._fastpd import FastPDExplainer
from fastpd_sklearn.explainers._ice import ICEExplainer
from fastpd_sklearn.explainers._pathdependent import PathDependentExplainer
from fastpd_sklearn.explainers._protocol import Engine
from fastpd_sklearn.explainers._saving import load_explainer
from fastpd_sklearn.explainers._vanilla import VanillaPDExplainer

__all__ = [
    "ALECurve",
    "ALEExplainer",
    "ALESurface",
    "BaseExplainer",
    "CategoryCurve",
    "CostWarning",
    "Engine",
    "Explanation",
    "FastPDExplainer",
    "ICEExplainer",
    "LinearCurve",
    "PathDependentExplainer",
    "StepCurve",
    "StepSurface",
    "VanillaPDExplainer",
    "load_explainer",
]
