"""What scikit-learn means by ``response_method="auto"``."""

from __future__ import annotations

from fastpd_sklearn.explainers._models import kind_of, unfreeze


def as_in_sklearn(estimator, response_method):
    """The response that scikit-learn's inspection would take, by its name.

    Parameters
    ----------
    estimator : object
    response_method : str

    Returns
    -------
    str
        "auto" where the model is neither a regressor nor a classifier with such a method.
    """
    if not isinstance(response_method, str) or response_method != "auto":
        return response_method
    model = unfreeze(estimator)
    kind = kind_of(model)
    if kind == "regressor":
        return "predict"
    if kind == "classifier":
        for method in ("predict_proba", "decision_function"):
            if hasattr(model, method):
                return method
    return "auto"
