"""The functional decomposition at work: importance, interactions, removal, reasons, differences."""

from fastpd_sklearn.decomposition._cohorts import CohortExplainer
from fastpd_sklearn.decomposition._difference import explain_difference, explain_drift
from fastpd_sklearn.decomposition._h_statistic import HStatistics, h_statistic
from fastpd_sklearn.decomposition._importance import Importance, importance
from fastpd_sklearn.decomposition._reasons import ReasonCodes, reason_codes
from fastpd_sklearn.decomposition._removal import FeatureRemover

__all__ = [
    "CohortExplainer",
    "FeatureRemover",
    "HStatistics",
    "Importance",
    "ReasonCodes",
    "explain_difference",
    "explain_drift",
    "h_statistic",
    "importance",
    "reason_codes",
]
