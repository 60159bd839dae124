"""What hyperparameters do to a model's behaviour: measures, scorers and curves of a search."""

from fastpd_sklearn.model_selection._behaviour import (
    feature_influence,
    interaction_share,
    term_strength,
)
from fastpd_sklearn.model_selection._curves import candidate_curves
from fastpd_sklearn.model_selection._monotonicity import monotonicity_violation
from fastpd_sklearn.model_selection._scorers import (
    BehaviourScorer,
    feature_influence_scorer,
    interaction_share_scorer,
    monotonicity_violation_scorer,
    term_strength_scorer,
)
from fastpd_sklearn.model_selection._stability import curve_stability

__all__ = [
    "BehaviourScorer",
    "candidate_curves",
    "curve_stability",
    "feature_influence",
    "feature_influence_scorer",
    "interaction_share",
    "interaction_share_scorer",
    "monotonicity_violation",
    "monotonicity_violation_scorer",
    "term_strength",
    "term_strength_scorer",
]
