"""Exact explanations of tree ensembles as scikit-learn estimators."""
