"""What a functional decomposition says of a model as a whole."""

from fastpd_sklearn.decomposition._h_statistic import HStatistics, h_statistic
from fastpd_sklearn.decomposition._importance import Importance, importance

__all__ = ["HStatistics", "Importance", "h_statistic", "importance"]
