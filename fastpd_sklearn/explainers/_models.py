"""Telling models from data, fitted models from unfitted ones, and what they know of X."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from fastpd_sklearn.explainers._routing import arguments_of_fit, refuse_arguments
from fastpd_sklearn.forest import find_reader


def is_model(obj) -> bool:
    """Whether an argument is a model rather than rows of data.

    Parameters
    ----------
    obj : object

    Returns
    -------
    bool
        True if its type has a callable ``predict``, a registered reader takes it, or it is a
        ``FrozenEstimator``.
    """
    if isinstance(obj, type):
        raise TypeError(f"expected a fitted model or data, got the class {obj.__name__}")
    return (
        isinstance(obj, FrozenEstimator)
        or callable(getattr(type(obj), "predict", None))
        or find_reader(obj) is not None
    )


def unfreeze(model):
    """The model within a ``FrozenEstimator``, else the model itself."""
    while isinstance(model, FrozenEstimator):
        model = model.estimator
    return model


def is_fitted(model) -> bool:
    """Whether a model is fitted; one that cannot be fitted, such as a booster, always is."""
    model = unfreeze(model)
    if callable(getattr(type(model), "is_fitted", None)):
        # A sum of CatBoost's models has none of the attributes that scikit-learn looks for.
        return bool(model.is_fitted())
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except (AttributeError, TypeError):  # no scikit-learn estimator
        return True
    return True


def check_fitted(model) -> None:
    """Raise ``NotFittedError`` for a model that is not fitted."""
    if not is_fitted(model):
        raise NotFittedError(f"{type(unfreeze(model)).__name__} is not fitted yet; fit it first")


def check_order(X, y, explainer: str) -> None:
    """Refuse a model as the second argument of ``fit``, and a function as the first.

    Parameters
    ----------
    X, y : object
        As given to ``fit``.
    explainer : str
        Name of the explainer, for the message.
    """
    if callable(X) and not is_model(X) and y is not None:
        raise TypeError(
            f"{explainer}.fit takes a fitted model, and got a {type(X).__name__} to call; call "
            "fit(model, background) with the model itself, not with its predict"
        )
    if not is_model(y):
        return
    found = "two models" if is_model(X) else "them the other way round"
    raise TypeError(
        f"{explainer}.fit takes the model first and the background second, and got {found}: the "
        f"second is a {type(y).__name__}; call fit(model, background)"
    )


def columns_of(model) -> tuple[int | None, tuple[str, ...] | None]:
    """What a model says of the columns that it was fitted on.

    Parameters
    ----------
    model : object

    Returns
    -------
    n_columns : int or None
        None where the model does not say.
    names : tuple of str, or None
    """
    names = getattr(model, "feature_names_in_", None)
    n_columns = getattr(model, "n_features_in_", None)
    if n_columns is None:
        return _columns_as_read(model)
    return int(n_columns), None if names is None else tuple(str(name) for name in names)


def _columns_as_read(model) -> tuple[int | None, tuple[str, ...] | None]:
    """The same of a model without scikit-learn's attributes, such as a booster."""
    reader = find_reader(model)
    try:
        input_map = None if reader is None else reader.read(model).input_map
    except ValueError:  # it cannot be read, which is no matter to who goes by predictions
        input_map = None
    return (None, None) if input_map is None else (input_map.n_columns, input_map.names)


def fit_model(explainer, X, y, sample_weight, fit_params: dict):
    """The model to explain when an explainer is fitted on ``X, y``.

    Parameters
    ----------
    explainer : BaseExplainer
    X, y, sample_weight, fit_params : object
        As given to ``fit``.

    Returns
    -------
    model : object
        A fitted clone of the estimator; the estimator itself if it is frozen, cannot be
        fitted, or is fitted and there is no ``y``.
    """
    estimator, name = explainer.estimator, type(explainer).__name__
    if estimator is None:
        raise ValueError(
            f"estimator=None: pass a model to {name}(estimator=...), or explain a fitted one by "
            "fit(model, background)"
        )
    if isinstance(estimator, FrozenEstimator) or not hasattr(type(estimator), "fit"):
        check_fitted(estimator)
        refuse_arguments(explainer, fit_params)
        return unfreeze(estimator)
    fitted = is_fitted(estimator)
    if y is None and fitted:
        refuse_arguments(explainer, fit_params)
        return estimator
    if y is None and needs_y(estimator):
        raise NotFittedError(
            f"{type(estimator).__name__} is not fitted. This {name} estimator requires y to "
            "be passed, but the target y is None: pass y, or fit the model and wrap it as "
            "FrozenEstimator(model) or call fit(model, X)"
        )
    if fitted:
        warnings.warn(
            f"estimator: this {type(estimator).__name__} is already fitted, and {name} fits a "
            "clone of it on X and y; to explain it as it is, wrap it as FrozenEstimator(model) "
            "or call fit(model, X)",
            UserWarning,
            stacklevel=3,
        )
    arguments = arguments_of_fit(explainer, sample_weight, fit_params)
    return clone(estimator).fit(X, y, **arguments)


def frozen_model(explainer, X, y):
    """The model to explain when an explainer is fitted on rows in chunks, without a model.

    Parameters
    ----------
    explainer : BaseExplainer
    X, y : object
        As given to ``fit``.

    Returns
    -------
    object

    Raises
    ------
    TypeError
        If there is no model that is fitted already: nothing is fitted on chunks.
    """
    if y is None and isinstance(explainer.estimator, FrozenEstimator):
        return explainer.estimator
    raise TypeError(
        f"X is a {type(X).__name__}, rows in chunks, which no estimator is fitted on here; fit the "
        f"model first, and call fit(model, X), or {type(explainer).__name__}"
        "(FrozenEstimator(model)).fit(X)"
    )


def needs_y(estimator) -> bool:
    """Whether fitting an estimator takes a target."""
    tags = tags_of(estimator)
    return tags is None or tags.target_tags.required


def tags_of(model):
    """scikit-learn's tags of a model; None for one that has none."""
    try:
        return model.__sklearn_tags__()  # get_tags of scikit-learn 1.7 warns if there are none
    except (AttributeError, TypeError):
        return None


def kind_of(model) -> str | None:
    """What scikit-learn calls a model: "classifier", "regressor", ...; None if it does not say."""
    tags = tags_of(model)
    kind = getattr(model, "_estimator_type", None) if tags is None else tags.estimator_type
    return None if kind is None else str(kind)


def classes_of(model) -> np.ndarray | None:
    """Class labels of a classifier with one target, else None."""
    classes = getattr(model, "classes_", None)
    return classes if isinstance(classes, np.ndarray) else None
