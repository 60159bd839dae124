"""Exact explanations of tree ensembles as scikit-learn estimators."""

try:
    from fastpd_sklearn.explainers import (
        ALEExplainer,
        Explanation,
        FastPDExplainer,
        ICEExplainer,
        PathDependentExplainer,
        VanillaPDExplainer,
        load_explainer,
    )
except ImportError as error:
    from importlib.util import find_spec

    if find_spec("fastpd_sklearn.core.counting") is not None:
        raise
    raise ImportError(
        f"{__path__[0]} is fastpd_sklearn's source tree without extensions that are built for "
        "this Python, and it hides an installed package: run from another folder, or build in "
        "place by `python setup.py build_ext --inplace`"
    ) from error

__version__ = "0.1.0"

__all__ = [
    "ALEExplainer",
    "Explanation",
    "FastPDExplainer",
    "ICEExplainer",
    "PathDependentExplainer",
    "VanillaPDExplainer",
    "load_explainer",
]
