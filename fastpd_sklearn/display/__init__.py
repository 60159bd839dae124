"""Display classes: what explainers find, drawn by matplotlib."""

from fastpd_sklearn.display._ale import ALEDisplay
from fastpd_sklearn.display._candidate_curves import CandidateCurvesDisplay
from fastpd_sklearn.display._ice import ICEDisplay
from fastpd_sklearn.display._importance import ImportanceDisplay
from fastpd_sklearn.display._interaction import InteractionDisplay
from fastpd_sklearn.display._main_effect import MainEffectDisplay
from fastpd_sklearn.display._three_way import ThreeWayDisplay
from fastpd_sklearn.display._waterfall import WaterfallDisplay

__all__ = [
    "ALEDisplay",
    "CandidateCurvesDisplay",
    "ICEDisplay",
    "ImportanceDisplay",
    "InteractionDisplay",
    "MainEffectDisplay",
    "ThreeWayDisplay",
    "WaterfallDisplay",
]
