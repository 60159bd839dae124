"""XGBoost's models, read from the UBJSON that ``Booster.save_raw`` gives.

Tested with XGBoost 2.1 to 3.4. Where those differ, the differences are in the dump
itself, but for the clipping of ``base_score`` (see ``_intercept``).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.exceptions import NotFittedError

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._forest import Forest
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._ubjson import loads
from fastpd_sklearn.forest._xgboost_trees import check_keys, join_trees

_LINKS = {
    "binary:hinge": "identity",
    "binary:logistic": "logit",
    "binary:logitraw": "identity",
    "count:poisson": "exp",
    "multi:softmax": "softmax",
    "multi:softprob": "softmax",
    "rank:map": "identity",
    "rank:ndcg": "identity",
    "rank:pairwise": "identity",
    "reg:absoluteerror": "identity",
    "reg:gamma": "exp",
    "reg:linear": "identity",
    "reg:logistic": "logit",
    "reg:pseudohubererror": "identity",
    "reg:quantileerror": "identity",
    "reg:squarederror": "identity",
    "reg:squaredlogerror": "identity",
    "reg:tweedie": "exp",
    "survival:aft": "exp",
    "survival:cox": "exp",
}


class XGBoostReader:
    """The :class:`~fastpd_sklearn.forest._registry.Reader` of XGBoost's models.

    The trees that count are those of ``model.predict`` with default arguments: up to
    ``best_iteration`` for the scikit-learn interface, all of them for a ``Booster``.

    Covers are sums of hessians. For trees with vector leaves XGBoost before 3.2 does not
    store them, and they are NaN.
    """

    name = "XGBoost"
    supported = (
        "xgboost.Booster, XGBRegressor, XGBClassifier, XGBRanker, XGBRFRegressor and "
        "XGBRFClassifier with booster='gbtree' or 'dart'"
    )
    tolerance = 1e-5

    def accepts(self, model) -> bool:
        """Whether the model is a ``Booster`` or of the scikit-learn interface (without Dask)."""
        import xgboost

        distributed = any(c.__module__.startswith("xgboost.dask") for c in type(model).__mro__)
        return isinstance(model, (xgboost.Booster, xgboost.XGBModel)) and not distributed

    def read(self, model) -> Reading:
        """Read a fitted model.

        Parameters
        ----------
        model : xgboost.Booster or xgboost.XGBModel

        Returns
        -------
        Reading

        Raises
        ------
        NotFittedError
            If the model has no trees.
        ValueError
            If the model holds something that this reader does not know.
        """
        dump = _dump(model)
        learner = check_keys("learner", dump["learner"])
        objective = learner["objective"]["name"]
        if objective not in _LINKS:
            raise ValueError(
                f"objective={objective!r} is not supported; use one of {sorted(_LINKS)}"
            )
        intercept = _intercept(learner, _LINKS[objective], tuple(dump["version"]))
        ensemble, weights = _ensemble(learner["gradient_booster"])
        n_trees = _n_trees(model, ensemble)
        forest = join_trees(
            ensemble["trees"][:n_trees],
            weights=np.ones(n_trees) if weights is None else weights[:n_trees],
            outputs=ensemble["tree_info"][:n_trees],
            intercept=intercept,
            n_inputs=int(learner["learner_model_param"]["num_feature"]),
        )
        input_map = _input_map(model, learner, ensemble, forest)
        return Reading(input_map, forest, _head(model, objective, forest.n_outputs))

    def predict_raw(self, model, X) -> np.ndarray:
        """The model's own margins.

        Parameters
        ----------
        model : xgboost.Booster or xgboost.XGBModel
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)

        Returns
        -------
        ndarray of shape (n_rows, n_outputs), float64
        """
        import xgboost

        is_frame, n_rows = _frames.is_frame(X), X.shape[0]
        if not _is_wrapped(model):
            X = xgboost.DMatrix(X, enable_categorical=is_frame)
        # An array has no names to compare with those of the training data.
        margins = model.predict(X, output_margin=True, validate_features=is_frame)
        return np.asarray(margins, dtype=np.float64).reshape(n_rows, -1)


reader = XGBoostReader()


def _is_wrapped(model) -> bool:
    """Whether the model is of the scikit-learn interface."""
    import xgboost

    return not isinstance(model, xgboost.Booster)


def _dump(model) -> dict:
    import xgboost

    booster = model.get_booster() if _is_wrapped(model) else model
    try:
        raw = booster.save_raw("ubj")
    except xgboost.core.XGBoostError as error:
        raise NotFittedError("the XGBoost Booster holds no model; train or load one") from error
    return check_keys("model", loads(raw))


def _n_outputs(learner: dict) -> int:
    sizes = check_keys("learner_model_param", learner["learner_model_param"])
    return max(int(sizes["num_class"]), int(sizes["num_target"]), 1)


def _intercept(learner: dict, link: str, version: tuple[int, ...]) -> np.ndarray:
    """The base score of every output, on the margin, in XGBoost's own float32 arithmetic."""
    text = learner["learner_model_param"]["base_score"].strip("[]")
    score = np.array(text.split(","), dtype=np.float32)
    one = np.float32(1)
    with np.errstate(divide="ignore", invalid="ignore"):
        if link == "logit":
            if version >= (3, 2):
                score = score.clip(np.float32(1e-6), one - np.float32(1e-6))
            score = -np.log(one / score - one)
        elif link == "exp":
            score = np.log(score)
    if not np.all(np.isfinite(score)):
        raise ValueError(
            f"base_score={text} of the XGBoost model is {score} on the margin, so that its "
            "raw predictions are not finite; set base_score and fit the model again"
        )
    return np.broadcast_to(score, _n_outputs(learner)).astype(np.float64)


def _ensemble(booster: dict) -> tuple[dict, np.ndarray | None]:
    """The trees' part of the dump, and the weights of the trees where they have some."""
    name = booster["name"]
    if name not in ("gbtree", "dart"):
        raise ValueError(
            f"booster={name!r} has no trees to explain; fit the model with booster='gbtree' or "
            "'dart'"
        )
    check_keys("gradient_booster", booster)
    gbtree = check_keys("gradient_booster", booster["gbtree"]) if name == "dart" else booster
    ensemble = check_keys("gradient_booster.model", gbtree["model"])
    check_keys("gbtree_model_param", ensemble["gbtree_model_param"])
    # From XGBoost 3.4 on dropout is a matter of "gbtree", and the weights are beside the trees.
    return ensemble, ensemble.get("weight_drop", booster.get("weight_drop"))


def _n_trees(model, ensemble: dict) -> int:
    """Number of trees that ``model.predict`` uses by default."""
    # The scikit-learn interface stops at best_iteration, even at one inherited from the model
    # that this one continues; a Booster does not. Where there is none the property raises.
    best = getattr(model, "best_iteration", None) if _is_wrapped(model) else None
    n_trees = len(ensemble["trees"])
    if not n_trees:
        raise NotFittedError("the XGBoost model has no trees; train it first")
    return n_trees if best is None else int(ensemble["iteration_indptr"][best + 1])


def _input_map(model, learner: dict, ensemble: dict, forest: Forest) -> InputMap:
    wrapped = _is_wrapped(model)
    names = tuple(learner["feature_names"])
    return InputMap(
        n_columns=forest.n_inputs,
        names=names or None,
        categories=_labels(ensemble, names),
        # XGBoost gives most unseen labels the code of another label.
        unknown=None,
        # A DMatrix of a frame of numbers holds codes; the scikit-learn interface refuses it.
        frames_hold_codes=not wrapped,
        absent=np.nan,
        missing=np.float32(model.missing) if wrapped else np.nan,
        single_codes=frozenset(np.unique(forest.feature[forest.is_categorical]).tolist()),
        # Booster.predict takes a DMatrix, which refuses infinity; the scikit-learn interface
        # predicts from the array itself, which may hold it.
        allow_inf=wrapped,
    )


def _labels(ensemble: dict, names: tuple[str, ...]) -> dict[int, np.ndarray]:
    """Labels of every column that was categorical in a data frame (from XGBoost 3.1 on)."""
    encodings = check_keys("cats", ensemble.get("cats", {})).get("enc", [])
    labels = {}
    for j, encoding in enumerate(encodings):
        check_keys("cats.enc", encoding)
        if len(encoding["values"]):
            labels[j] = _decoded(encoding, names[j] if names else j)
    return labels


def _decoded(encoding: dict, column) -> np.ndarray:
    if "offsets" not in encoding:
        return np.asarray(encoding["values"]).astype(np.int64)
    text = np.asarray(encoding["values"]).astype(np.int8).tobytes()
    if not text.isascii():
        raise ValueError(
            f"column {column!r} of the XGBoost model has categories that are not ASCII; XGBoost "
            "cuts such labels off where it stores them, and then mixes them up; rename them and "
            "fit the model again"
        )
    cuts = np.asarray(encoding["offsets"]).tolist()
    parts = [text[i:j].decode() for i, j in pairwise(cuts)]
    return np.array(parts, dtype=object)


def _head(model, objective: str, n_outputs: int) -> Head:
    import xgboost

    classifier = isinstance(model, xgboost.XGBClassifier) or (
        not _is_wrapped(model) and objective.startswith(("binary:", "multi:"))
    )
    link = _LINKS[objective]
    if link == "identity":
        # What XGBClassifier, binary:hinge and multi:softmax predict are classes.
        plain = not isinstance(model, xgboost.XGBClassifier) and objective != "binary:hinge"
        additive, method = ("raw", "predict") if plain else ("raw",), None
    elif classifier:
        additive, method = ("raw",), "predict_proba"
    else:
        additive, method = ("raw",), "predict" if objective != "multi:softmax" else None
    return Head(
        additive=additive,
        link="multi_logit" if link == "logit" and n_outputs > 1 else link,
        link_method=method,
        classes=_classes(objective, n_outputs) if classifier else None,
    )


def _classes(objective: str, n_outputs: int) -> np.ndarray | None:
    if objective.startswith("multi:"):
        return np.arange(n_outputs)
    return np.arange(2) if n_outputs == 1 else None
