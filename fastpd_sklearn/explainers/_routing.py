"""Which of the arguments of an explainer's ``fit`` go to the fit of its estimator."""

from __future__ import annotations

from sklearn import get_config
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from fastpd_sklearn._compat import raise_for_params

_FITTING = ("fit", "partial_fit", "fit_transform")


def router_of(explainer) -> MetadataRouter:
    """The routing of an explainer: its own weights, and all that its estimator's fit asks for.

    Parameters
    ----------
    explainer : BaseExplainer

    Returns
    -------
    sklearn.utils.metadata_routing.MetadataRouter
    """
    mapping = MethodMapping()
    for method in _FITTING:
        mapping.add(caller=method, callee="fit")
    router = MetadataRouter(owner=explainer).add_self_request(explainer)
    return router.add(estimator=explainer.estimator, method_mapping=mapping)


def arguments_of_fit(explainer, sample_weight, fit_params: dict) -> dict:
    """What the fit of an explainer's estimator is to be given, beside ``X`` and ``y``.

    Parameters
    ----------
    explainer : BaseExplainer
    sample_weight : array-like of shape (n_rows,) or None
    fit_params : dict
        Other arguments.

    Returns
    -------
    dict
        With metadata routing what the estimator has requested; without, the weights.

    Raises
    ------
    TypeError
        For arguments that nobody asks for, or weights that the estimator's fit does not take.
    sklearn.exceptions.UnsetMetadataPassedError
        With metadata routing, if the estimator does not say whether it wants the weights.
    """
    raise_for_params(fit_params, explainer, "fit")
    given = {} if sample_weight is None else {"sample_weight": sample_weight}
    if get_config()["enable_metadata_routing"]:
        return process_routing(explainer, "fit", **given, **fit_params).estimator.fit
    return _as_parameters(explainer.estimator, given)


def _as_parameters(estimator, given: dict) -> dict:
    """Weights as the fit of an estimator is given them without metadata routing."""
    if given and isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        return {f"{name}__{key}": value for key, value in _as_parameters(last, given).items()}
    if given and not has_fit_parameter(estimator, "sample_weight"):
        raise TypeError(
            f"sample_weight: the fit of {type(estimator).__name__} takes no weights; fit the model "
            "first and call fit(model, background, sample_weight=...) to weigh the background alone"
        )
    return given


def refuse_arguments(explainer, fit_params: dict) -> None:
    """Raise ``TypeError`` for arguments of a fit where no model is fitted."""
    raise_for_params(fit_params, explainer, "fit")
    if fit_params:
        raise TypeError(
            f"{type(explainer).__name__}.fit got {', '.join(map(repr, fit_params))}, which is for "
            "the fit of a model, and explains one that is fitted already; leave it out"
        )
