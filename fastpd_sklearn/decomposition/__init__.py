"""The functional decomposition at work: importance, interactions, and predictions without features."""

from fastpd_sklearn.decomposition._h_statistic import HStatistics, h_statistic
from fastpd_sklearn.decomposition._importance import Importance, importance
from fastpd_sklearn.decomposition._removal import FeatureRemover

__all__ = ["FeatureRemover", "HStatistics", "Importance", "h_statistic", "importance"]
