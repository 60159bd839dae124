"""Fitted models of every kind, with rows that lie on and beside their thresholds."""

from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.util import find_spec

import lightgbm as lgb
import numpy as np
import pandas as pd
import xgboost as xgb
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    IsolationForest,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.forest import find_reader
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD
from tests import oracles

N_TRAINING, N_BACKGROUND, N_EXPLAINED = 160, 30, 6


@dataclass
class Case:
    """A model, rows, and the library's own raw prediction.

    ``respond`` gives the raw prediction; ``single`` says that the library adds up in float32.
    """

    model: object
    X: object
    respond: object
    single: bool = False
    numeric: list = field(default_factory=lambda: [0, 1, 2, 3])

    @cached_property
    def reading(self):
        return find_reader(self.model).read(self.model)

    @cached_property
    def background(self):
        return self._rows(0, N_BACKGROUND)

    @cached_property
    def explained(self):
        return self._rows(N_BACKGROUND, N_EXPLAINED)

    def inputs(self, X):
        return self.reading.input_map.open(X).to_array()

    def _rows(self, start, size):
        rng = np.random.default_rng(start)
        part = slice(start, start + size)
        X = self.X[part].copy() if isinstance(self.X, np.ndarray) else self.X.iloc[part].copy()
        for j in self.numeric:
            beside = beside_thresholds(self.reading.forest, j)
            if not len(beside):
                continue
            column = np.array(X[:, j] if isinstance(X, np.ndarray) else X.iloc[:, j], np.float64)
            where = rng.random(size) < 0.5
            column[where] = rng.choice(beside, where.sum())
            if isinstance(X, np.ndarray):
                X[:, j] = column
            else:
                X.isetitem(j, column)
        return X


def beside_thresholds(forest, column):
    """The thresholds of a column, their neighbours in both precisions, and the edges of zero."""
    nodes = np.flatnonzero((forest.feature == column) & ~forest.is_categorical)
    edges = forest.threshold[nodes]
    if forest.zero_as_missing[nodes].any():
        edges = np.concatenate([edges, [0.0, ZERO_THRESHOLD, -ZERO_THRESHOLD]])
    near = [edges.astype(np.float64), edges.astype(np.float32)]
    with np.errstate(over="ignore"):  # CatBoost has borders at the largest float32
        sides = [np.nextafter(e, e.dtype.type(way)) for e in near for way in (-np.inf, np.inf)]
    return np.unique(np.concatenate([e.astype(np.float64) for e in near + sides]))


# --- data ---------------------------------------------------------------------------------


def numbers(missing=False):
    rng = np.random.default_rng(1)
    X = np.column_stack(
        [
            rng.normal(size=N_TRAINING),
            rng.integers(0, 6, N_TRAINING) / 10,
            rng.normal(size=N_TRAINING).round(1),
            rng.integers(-2, 3, N_TRAINING),
        ]
    )
    if missing:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def score(X):
    clean = np.nan_to_num(X, nan=-1.0)
    return (
        clean[:, 0] * (clean[:, 1] > 0.2)
        + np.abs(clean[:, 2])
        + clean[:, 3] * clean[:, 0]
        + 2 * np.isnan(X[:, 2])
    )


def classes(X):
    return np.digitize(score(X), [0.3, 1.4])


def coded():
    """Two numeric columns and two of category codes, with missing values."""
    rng = np.random.default_rng(2)
    X = np.column_stack(
        [
            rng.integers(0, 5, N_TRAINING),
            rng.normal(size=N_TRAINING).round(1),
            rng.integers(0, 4, N_TRAINING),
            rng.normal(size=N_TRAINING),
        ]
    ).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.array([0.0, 9.0, -4.0, 7.0, -8.0, 1.0])[np.nan_to_num(X[:, 0], nan=5).astype(int)]
    return X, y + np.nan_to_num(X[:, 1]) * (np.nan_to_num(X[:, 2]) % 2 == 0) + (X[:, 3] > 0)


def labelled():
    """The same as a data frame with labels."""
    X, y = coded()
    colours, shapes = np.array(list("rgbyw")), np.array(["round", "square", "flat", "tall"])

    def categorical(codes, labels):
        codes = np.nan_to_num(codes, nan=-1).astype(int)
        return pd.Categorical.from_codes(codes, categories=labels)

    frame = {
        "colour": categorical(X[:, 0], colours),
        "size": X[:, 1],
        "shape": categorical(X[:, 2], shapes),
        "weight": X[:, 3],
    }
    return pd.DataFrame(frame), y


def zeros():
    """Sparse-like columns, for models that take zero as missing."""
    X = numbers(missing=True)
    X[np.random.default_rng(3).random(X.shape) < 0.3] = 0.0
    return X


# --- models -------------------------------------------------------------------------------

SKLEARN = {"n_estimators": 3, "random_state": 0}
HIST = {"max_iter": 4, "max_leaf_nodes": 12, "min_samples_leaf": 5, "learning_rate": 0.5}
XGB = {"n_estimators": 4, "max_depth": 4, "n_jobs": 1, "learning_rate": 0.5}
LGB = {
    "n_estimators": 4,
    "num_leaves": 12,
    "min_child_samples": 4,
    "learning_rate": 0.5,
    "min_data_per_group": 2,
    "cat_smooth": 1,
    "max_cat_to_onehot": 1,
    "n_jobs": 1,
    "verbose": -1,
}


def of_sklearn(model, target=score, missing=False, method="predict"):
    X = numbers(missing)
    model.fit(X, target(X))
    return Case(model, X, getattr(model, method))


def isolation():
    X = numbers()
    model = IsolationForest(max_samples=32, **SKLEARN).fit(X)
    # The score is 2 ** (-mean path length / c); c makes no difference to where it comes from.
    n = 32
    c = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
    return Case(model, X, lambda rows: -c * np.log2(-model.score_samples(rows)))


def hist_categorical():
    X, y = coded()
    model = HistGradientBoostingRegressor(categorical_features=[0, 2], **HIST).fit(X, y)
    return with_odd_codes(Case(model, X, model.predict, numeric=[1, 3]))


def hist_labelled():
    X, y = labelled()
    model = HistGradientBoostingRegressor(**HIST).fit(X, y)
    return Case(model, X, model.predict, numeric=[1, 3])


def with_odd_codes(case):
    """Put category codes that training has not seen into every fifth row."""
    case.X = case.X.copy()
    case.X[::5, 0] = np.resize([7.0, 3.0, 99.0], len(case.X[::5]))
    return case


def of_xgboost(X, y, kind=xgb.XGBRegressor, numeric=(0, 1, 2, 3), **params):
    model = kind(**{**XGB, **params}).fit(X, y)
    respond = lambda rows: model.predict(rows, output_margin=True)  # noqa: E731
    return Case(model, X, respond, single=True, numeric=list(numeric))


def two_targets(X):
    return np.column_stack([score(X), np.abs(X[:, 0]) - X[:, 1]])


def xgb_plain():
    X = numbers(missing=True)
    return of_xgboost(X, score(X))


def xgb_dart():
    X = numbers(missing=True)
    return of_xgboost(X, score(X), booster="dart", rate_drop=0.5, seed=1)


def xgb_classes():
    X = numbers(missing=True)
    return of_xgboost(X, classes(X), xgb.XGBClassifier, n_estimators=2)


def xgb_vector_leaves():
    X = numbers()
    return of_xgboost(X, two_targets(X), multi_strategy="multi_output_tree")


def xgb_categorical(**params):
    X, y = labelled()
    return of_xgboost(X, y, numeric=(1, 3), enable_categorical=True, **params)


def of_lightgbm(X, y, kind=lgb.LGBMRegressor, numeric=(0, 1, 2, 3), categorical="auto", **params):
    model = kind(**{**LGB, **params}).fit(X, y, categorical_feature=categorical)
    booster = model.booster_
    return Case(model, X, lambda rows: booster.predict(rows, raw_score=True), numeric=list(numeric))


def lgb_plain():
    X = numbers(missing=True)
    return of_lightgbm(X, score(X))


def lgb_classes():
    X = numbers(missing=True)
    return of_lightgbm(X, classes(X), lgb.LGBMClassifier, n_estimators=2)


def lgb_categorical():
    X, y = coded()
    case = of_lightgbm(X, y, numeric=(1, 3), categorical=[0, 2])
    return with_odd_codes(case)


def lgb_labelled():
    X, y = labelled()
    return of_lightgbm(X, y, numeric=(1, 3))


def lgb_zero_as_missing():
    X = zeros()
    return of_lightgbm(X, score(X), zero_as_missing=True)


def lgb_average():
    X = numbers()
    case = of_lightgbm(
        X, score(X), boosting_type="rf", subsample=0.6, subsample_freq=1, learning_rate=1.0
    )
    booster = case.model.booster_
    # A random forest predicts the mean of its trees; its raw score is their sum.
    case.respond = lambda rows: booster.predict(rows)
    return case


CATBOOST = {
    "iterations": 4,
    "depth": 4,
    "learning_rate": 0.5,
    "one_hot_max_size": 10,
    "verbose": 0,
    "allow_writing_files": False,
}


def of_catboost(X, y, kind="CatBoostRegressor", numeric=(0, 1, 2, 3), **params):
    import catboost

    model = getattr(catboost, kind)(**{**CATBOOST, **params}).fit(X, y)
    respond = lambda rows: model.predict(rows, prediction_type="RawFormulaVal")  # noqa: E731
    return Case(model, X, respond, numeric=list(numeric))


def cat_plain():
    X = numbers(missing=True)
    return of_catboost(X, score(X))


def cat_classes():
    X = numbers(missing=True)
    return of_catboost(X, classes(X), "CatBoostClassifier", grow_policy="Lossguide", iterations=2)


def cat_labelled():
    X, y = labelled()
    for name in ("colour", "shape"):
        X[name] = X[name].cat.add_categories("gone").fillna("gone")
    return of_catboost(X, y, numeric=(1, 3), cat_features=["colour", "shape"])


def treelite_of_xgboost():
    from treelite import frontend, gtil

    X = numbers(missing=True)
    booster = of_xgboost(X, score(X)).model.get_booster()
    model = frontend.from_xgboost(booster)
    respond = lambda rows: gtil.predict(model, rows, pred_margin=True)  # noqa: E731
    return Case(model, X, respond, single=True)


def treelite_categorical():
    from treelite import frontend, gtil

    X, y = coded()
    booster = of_lightgbm(X, y, numeric=(1, 3), categorical=[0, 2]).model.booster_
    model = frontend.from_lightgbm(booster)
    respond = lambda rows: gtil.predict(model, rows, pred_margin=True)  # noqa: E731
    return with_odd_codes(Case(model, X, respond, numeric=[1, 3]))


MAKERS = {
    "tree": lambda: of_sklearn(DecisionTreeRegressor(max_depth=5), missing=True),
    "forest": lambda: of_sklearn(RandomForestRegressor(max_depth=4, **SKLEARN), missing=True),
    "forest of classes": lambda: of_sklearn(
        RandomForestClassifier(max_depth=4, **SKLEARN), classes, method="predict_proba"
    ),
    "extra trees of two targets": lambda: of_sklearn(
        ExtraTreesRegressor(max_depth=4, **SKLEARN), two_targets
    ),
    "gradient boosting": lambda: of_sklearn(GradientBoostingRegressor(max_depth=4, **SKLEARN)),
    "gradient boosting of classes": lambda: of_sklearn(
        GradientBoostingClassifier(**SKLEARN), classes, method="decision_function"
    ),
    "isolation forest": isolation,
    "hist": lambda: of_sklearn(HistGradientBoostingRegressor(**HIST), missing=True),
    "hist of classes": lambda: of_sklearn(
        HistGradientBoostingClassifier(**HIST), classes, True, "decision_function"
    ),
    "hist categorical": hist_categorical,
    "hist labelled": hist_labelled,
    "xgboost": xgb_plain,
    "xgboost dart": xgb_dart,
    "xgboost of classes": xgb_classes,
    "xgboost vector leaves": xgb_vector_leaves,
    "xgboost labelled": xgb_categorical,
    "xgboost one-hot": lambda: xgb_categorical(max_cat_to_onehot=10),
    "lightgbm": lgb_plain,
    "lightgbm of classes": lgb_classes,
    "lightgbm categorical": lgb_categorical,
    "lightgbm labelled": lgb_labelled,
    "lightgbm zero as missing": lgb_zero_as_missing,
    "lightgbm random forest": lgb_average,
}
"""How each model is made."""

if find_spec("catboost"):
    MAKERS |= {
        "catboost": cat_plain,
        "catboost of classes": cat_classes,
        "catboost labelled": cat_labelled,
    }
if find_spec("treelite"):
    MAKERS |= {
        "treelite of xgboost": treelite_of_xgboost,
        "treelite categorical": treelite_categorical,
    }


@cache
def make_case(name):
    return MAKERS[name]()


def two_dimensional(respond, rows):
    """A raw prediction of shape (n_rows, n_outputs)."""
    return np.asarray(respond(rows), dtype=np.float64).reshape(len(rows), -1)


def forest_predict(case, rows):
    """What the parsed forest predicts in float64, by the slow rules."""
    return oracles.predict_many(case.reading.forest, case.inputs(rows))
