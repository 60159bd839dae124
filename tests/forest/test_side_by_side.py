"""Members that read columns in different ways are joined on inputs of their own."""

import pickle

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMRegressor
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler
from xgboost import XGBRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer
from tests import oracles

pytestmark = [
    pytest.mark.filterwarnings("ignore:X has feature names, but"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

RNG = np.random.default_rng(0)
N_ROWS = 60
X = np.round(RNG.normal(size=(N_ROWS, 3)), 1)
Y = X[:, 0] * X[:, 1] + (X[:, 2] > 0)
HOLES = np.where(RNG.random(X.shape) < 0.15, np.nan, X)
FRAME = pd.DataFrame(
    {
        "size": X[:, 0],
        "colour": pd.Categorical(RNG.choice(["red", "green", "blue"], N_ROWS)),
        "weight": X[:, 1],
    }
)
COLOURED = X[:, 0] + 3.0 * (FRAME["colour"] == "red").to_numpy() * (X[:, 1] > 0)
CODED = np.column_stack([FRAME["colour"].cat.codes, X[:, :2]])

RF = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0)
EXACT = GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0)
HIST = HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5)
XGB = XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1)
LGB = LGBMRegressor(n_estimators=3, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1)
LGB_COLOUR = clone(LGB).set_params(min_data_per_group=1, cat_smooth=1)


def one_hot():
    return make_column_transformer((OneHotEncoder(), ["colour"]), remainder="passthrough")


def ordinal():
    return make_column_transformer((OrdinalEncoder(), ["colour"]), remainder="passthrough")


def vote(*members):
    return VotingRegressor([(f"m{k}", member) for k, member in enumerate(members)])


CASES = {
    "pipelines": (vote(make_pipeline(StandardScaler(), RF), make_pipeline(HIST)), X, Y),
    "stack of pipelines": (
        StackingRegressor(
            [
                ("rf", make_pipeline(StandardScaler(), RF)),
                (
                    "grid",
                    GridSearchCV(
                        make_pipeline(MinMaxScaler(), HIST),
                        {"histgradientboostingregressor__max_iter": [2, 3]},
                        cv=2,
                    ),
                ),
            ],
            RidgeCV(),
            cv=2,
        ),
        X,
        Y,
    ),
    "bagged pipelines": (
        BaggingRegressor(make_pipeline(StandardScaler(), XGB), 3, max_features=2, random_state=0),
        X,
        Y,
    ),
    "a pipeline a target": (
        MultiOutputRegressor(make_pipeline(StandardScaler(), RF)),
        X,
        np.column_stack([Y, -Y]),
    ),
    "imputed and missing": (
        vote(make_pipeline(SimpleImputer(add_indicator=True), EXACT), HIST, XGB),
        HOLES,
        Y,
    ),
    "encoders": (
        vote(make_pipeline(one_hot(), RF), make_pipeline(ordinal(), XGB), LGB_COLOUR),
        FRAME,
        COLOURED,
    ),
    "sentinels": (vote(XGBRegressor(n_estimators=2, missing=-1.0), XGB), np.round(X), Y),
    "category and number": (
        vote(clone(HIST).set_params(categorical_features=[0]), RF),
        CODED,
        COLOURED,
    ),
}


def fitted(name):
    model, rows, target = CASES[name]
    return clone(model).fit(rows, target), rows


def columns_of(rows, part):
    return rows.iloc[part] if isinstance(rows, pd.DataFrame) else rows[part]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("output", ["component", "shap"])
def test_explanations_are_those_of_the_definition(name, output):
    model, rows = fitted(name)
    background, explained = columns_of(rows, slice(0, 30)), columns_of(rows, slice(40, 46))
    game = oracles.interventional_game(
        model.predict, background, None, explained, [[j] for j in range(3)]
    )
    explainer = FastPDExplainer(output=output, max_order=None if output == "component" else 1)
    values = explainer.fit(model, background).transform(explained)
    values = values.reshape(6, len(explainer.terms_), -1)
    names = list(rows.columns) if isinstance(rows, pd.DataFrame) else ["x0", "x1", "x2"]
    for k, term in enumerate(explainer.terms_):
        truth = oracles.INDICES[output](game, tuple(names.index(n) for n in term))
        assert_allclose(values[:, k], truth, atol=1e-5)


@pytest.mark.parametrize("name", ["pipelines", "bagged pipelines", "sentinels"])
def test_curves(name):
    model, rows = fitted(name)
    explainer = FastPDExplainer().fit(model, rows)
    result = explainer.partial_dependence(0)
    points = np.linspace(-2.5, 2.5, 41)
    truth = oracles.pd_function(model.predict, rows, None, [0], np.repeat(points[:, None], 3, 1))
    assert_allclose(result.curve(points)[0], truth[:, 0], atol=1e-6)


def test_path_dependent_values_are_those_of_the_members():
    model, rows = fitted("pipelines")
    members = [
        PathDependentExplainer(output="shap").fit(member, rows).transform(rows)
        for member in model.estimators_
    ]
    values = PathDependentExplainer(output="shap").fit(model, rows).transform(rows)
    assert_allclose(values, np.mean(members, axis=0), atol=1e-12)


def test_mixed_columns_of_one_member_play_together():
    model = vote(make_pipeline(PCA(2), RF), HIST).fit(X, Y)
    with pytest.warns(UserWarning, match="'votingregressor__m0__pca' mixes all 3 columns"):
        explainer = FastPDExplainer(output="shap").fit(model, X)
    total = explainer.intercept_ + explainer.transform(X).sum(axis=1)
    assert_allclose(total, model.predict(X))
    assert len(explainer.terms_) == 1


def test_labels_that_two_members_know_differently():
    fewer = FRAME.assign(colour=FRAME["colour"].cat.remove_categories("green"))
    members = [clone(LGB_COLOUR).fit(rows, COLOURED) for rows in (FRAME, fewer)]
    model = vote(*(FrozenEstimator(member) for member in members)).fit(FRAME, COLOURED)
    explainer = FastPDExplainer(output="shap").fit(model, FRAME)
    total = explainer.intercept_ + explainer.transform(FRAME).sum(axis=1)
    assert_allclose(total, model.predict(FRAME))


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "contains NaN, which member 'm0' refuses"), (1e39, "too large for member 'm0'")],
)
def test_what_a_member_refuses(value, message):
    model = vote(make_pipeline(StandardScaler(), EXACT), HIST).fit(X, Y)
    explainer = FastPDExplainer().fit(model, X)
    rows = X.copy()
    rows[2, 1] = value
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"NaN|too large"):
        model.predict(rows)
    with pytest.raises(ValueError, match=message):
        explainer.transform(rows)


def test_a_model_around_a_pipeline():
    pipe = make_pipeline(StandardScaler(), XGB)
    search = GridSearchCV(pipe, {"xgbregressor__max_depth": [1, 2]}, cv=2)
    model = TransformedTargetRegressor(search, transformer=StandardScaler()).fit(X, Y)
    explainer = FastPDExplainer(output="shap").fit(model, X)
    total = explainer.intercept_ + explainer.transform(X).sum(axis=1)
    assert_allclose(total, model.predict(X), rtol=1e-5, atol=1e-5)


def test_pickles_and_further_rows():
    model, rows = fitted("imputed and missing")
    explainer = FastPDExplainer(output="shap").fit(model, rows[:30])
    opened = pickle.loads(pickle.dumps(explainer)).partial_fit(model, rows[30:])
    whole = FastPDExplainer(output="shap").fit(model, rows)
    assert_allclose(opened.transform(rows), whole.transform(rows), atol=1e-12)
