"""Models made of models are read as what they themselves predict, or refused with a reason."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from lightgbm import LGBMClassifier, LGBMRegressor
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifier,
    RidgeCV,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier, MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from xgboost import XGBClassifier, XGBRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.forest import NoSumOfTreesError, find_reader
from fastpd_sklearn.forest._parity import check_reading
from fastpd_sklearn.forest._registry import rounding_of
from tests import oracles
from tests.versions import older

# Models that were fitted on arrays warn when they predict frames, and the other way round.
pytestmark = [
    pytest.mark.filterwarnings("ignore:X has feature names, but"),
    pytest.mark.filterwarnings("ignore:X does not have valid feature names"),
]

N_ROWS = 120
RNG = np.random.default_rng(0)
X = np.round(RNG.normal(size=(N_ROWS, 4)), 1)
Y = X[:, 0] * X[:, 1] + X[:, 2] + (X[:, 3] > 0)
TARGETS = {
    "real": Y,
    "large": 1000.0 + 10.0 * Y,
    "huge": 1e8 + 1e6 * Y,
    "positive": np.exp(Y / 2),
    "two real": np.column_stack([Y, -Y + X[:, 0]]),
    "binary": np.where(Y > 0, "yes", "no"),
    "zero one": (Y > 0).astype(int),
    "multi": np.array(["a", "b", "c"])[np.digitize(Y, [-0.5, 0.5])],
    "numbered": np.digitize(Y, [-0.5, 0.5]),
    "two classes": np.column_stack([Y > 0, np.digitize(Y, [-0.5, 0.5])]).astype(int),
    "labels": np.column_stack([Y > 0, Y > 0.5, X[:, 0] > 0]).astype(int),
}

XGB = XGBRegressor(n_estimators=3, max_depth=2, n_jobs=1)
LGB = LGBMRegressor(n_estimators=3, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1)
HIST = HistGradientBoostingRegressor(max_iter=3, max_leaf_nodes=4, min_samples_leaf=5)
EXACT = GradientBoostingRegressor(n_estimators=3, max_depth=2, random_state=0)
RF = RandomForestRegressor(n_estimators=3, max_depth=3, random_state=0)
FIVE = [("xgb", XGB), ("lgb", LGB), ("hist", HIST), ("gb", EXACT), ("rf", RF)]

XGB_C = XGBClassifier(n_estimators=2, max_depth=2, n_jobs=1)
LGB_C = LGBMClassifier(n_estimators=2, num_leaves=4, min_child_samples=5, verbose=-1, n_jobs=1)
HIST_C = HistGradientBoostingClassifier(max_iter=2, max_leaf_nodes=4, min_samples_leaf=5)
EXACT_C = GradientBoostingClassifier(n_estimators=2, max_depth=2, random_state=0)
RF_C = RandomForestClassifier(n_estimators=3, max_depth=3, random_state=0)
TREE_C = DecisionTreeClassifier(max_depth=3, random_state=0)
SOFT = [("rf", RF_C), ("tree", TREE_C)]

RIDGE, LOGISTIC = RidgeCV(), LogisticRegression()


def predict(model, rows):
    return model.predict(rows)


def second(model, rows):
    return model.predict_proba(rows)[:, 1]


def proba(model, rows):
    return model.predict_proba(rows)


def decision(model, rows):
    return model.decision_function(rows)


def listed_proba(model, rows):
    """``predict_proba`` of several targets: of two classes the second alone."""
    found = model.predict_proba(rows)
    return np.hstack([p[:, 1:] if p.shape[1] == 2 else p for p in found])


def xgb_margins(model, rows):
    return np.column_stack([m.predict(rows, output_margin=True) for m in model.estimators_])


def rivals(model, rows):
    return np.column_stack([m.predict_proba(rows)[:, 1] for m in model.estimators_])


def within(model, rows):
    return model.regressor_.predict(rows)


def bag(model, n=3, **params):
    return BaggingRegressor(model, n, random_state=0, **params)


def bag_c(model, n=3, **params):
    return BaggingClassifier(model, n, random_state=0, **params)


def stack(members=FIVE, final=RIDGE, **params):
    return StackingRegressor(members, final, cv=2, **params)


def stack_c(members=SOFT, final=LOGISTIC, **params):
    return StackingClassifier(members, final, cv=2, **params)


def scaled(model, transformer):
    return TransformedTargetRegressor(model, transformer=transformer)


DEPTHS = {"max_depth": [1, 2]}
LOG = TransformedTargetRegressor(XGB, func=np.log, inverse_func=np.exp)

CASES = {
    "bagging": (bag(RF), "real", predict),
    "bagging of column subsets": (bag(RF, max_features=0.5), "real", predict),
    "bagging of repeated columns": (bag(XGB, bootstrap_features=True), "real", predict),
    "bagging of lightgbm": (bag(LGB, max_features=3), "real", predict),
    "bagging of two targets": (bag(RF), "two real", predict),
    "bagging of a vote": (bag(VotingRegressor(FIVE), 2), "real", predict),
    "bagged trees": (bag_c(TREE_C, max_features=2), "multi", proba),
    "bagged trees that miss classes": (bag_c(TREE_C, 6, max_samples=3), "multi", proba),
    "bagged trees that miss one of two": (bag_c(TREE_C, 6, max_samples=2), "binary", second),
    "bagged margins": (bag_c(EXACT_C), "binary", decision),
    "bagged margins of classes": (bag_c(HIST_C), "multi", decision),
    "vote": (VotingRegressor(FIVE), "real", predict),
    "vote, one dropped": (
        VotingRegressor([*FIVE[:2], ("none", "drop"), *FIVE[2:]], weights=[1, 2, 9, 3, 0, 5]),
        "real",
        predict,
    ),
    "vote in single precision": (VotingRegressor([FIVE[0], FIVE[4]]), "real", predict),
    "vote in double precision": (VotingRegressor(FIVE[1:3]), "real", predict),
    "soft vote": (VotingClassifier(SOFT, voting="soft", weights=[1, 3]), "multi", proba),
    "soft vote of two": (VotingClassifier(SOFT, voting="soft"), "binary", second),
    "stack": (stack(), "real", predict),
    "stack, scaled": (stack(final=make_pipeline(StandardScaler(), RidgeCV())), "real", predict),
    "stack of huge values": (stack(final=LinearRegression()), "huge", predict),
    "stack of ensembles": (
        stack([("bag", bag(XGB)), ("own", scaled(LGB, StandardScaler()))]),
        "large",
        predict,
    ),
    "stacked probabilities": (stack_c(), "multi", decision),
    "stacked probabilities of two": (stack_c(), "binary", decision),
    "stacked margins": (
        stack_c([("h", HIST_C), ("g", EXACT_C)], stack_method="decision_function"),
        "multi",
        decision,
    ),
    "stack by ridge": (stack_c(final=RidgeClassifier()), "multi", decision),
    "adaboost of two": (AdaBoostClassifier(n_estimators=6, random_state=0), "binary", decision),
    "adaboost": (AdaBoostClassifier(TREE_C, n_estimators=4, random_state=0), "multi", decision),
    "grid": (GridSearchCV(XGB, DEPTHS, cv=2), "real", predict),
    "random grid": (RandomizedSearchCV(RF_C, DEPTHS, n_iter=2, cv=2), "multi", proba),
    "halving grid": (HalvingGridSearchCV(RF, DEPTHS, cv=2, random_state=0), "real", predict),
    "grid over a vote": (
        GridSearchCV(VotingRegressor(FIVE), {"xgb__max_depth": [1, 2]}, cv=2),
        "real",
        predict,
    ),
    "no transformation": (TransformedTargetRegressor(XGB), "real", predict),
    "standard scale": (scaled(XGB, StandardScaler()), "large", predict),
    "min and max": (scaled(HIST, MinMaxScaler(clip=True)), "huge", predict),
    "largest": (scaled(RF, MaxAbsScaler()), "two real", predict),
    "quartiles": (scaled(RF, RobustScaler()), "two real", predict),
    "logarithm": (LOG, "positive", within),
    "quantiles": (scaled(RF, QuantileTransformer(n_quantiles=20)), "real", within),
    "a model an output": (MultiOutputRegressor(XGB), "two real", predict),
    "a forest a target": (MultiOutputClassifier(RF_C), "two classes", listed_proba),
    "one against the rest": (OneVsRestClassifier(HIST_C), "multi", decision),
    "one against one other": (OneVsRestClassifier(EXACT_C), "binary", decision),
    "rival forests": (OneVsRestClassifier(RF_C), "multi", rivals),
    "rival margins": (OneVsRestClassifier(XGB_C), "numbered", xgb_margins),
    "forests a label": (OneVsRestClassifier(RF_C), "labels", proba),
    "frozen": (
        VotingRegressor([("f", FrozenEstimator(clone(RF).fit(X, Y))), ("x", XGB)]),
        "real",
        predict,
    ),
    "fixed threshold": (FixedThresholdClassifier(HIST_C, threshold=0.3), "binary", decision),
    "tuned threshold": (TunedThresholdClassifierCV(RF_C, cv=2, thresholds=3), "binary", second),
}
"""Model, target, and the response that its trees add up to."""


@cache
def fitted(name):
    """A fitted model of ``CASES`` and the function that its trees should add up to."""
    model, target, respond = CASES[name]
    model = clone(model).fit(X, TARGETS[target])
    return model, lambda rows: two_dimensional(respond(model, rows))


def two_dimensional(values):
    values = np.asarray(values, dtype=np.float64)
    return values.reshape(len(values), -1)


def read(model):
    reader = find_reader(model)
    return reader, reader.read(model)


def edge_rows(forest, limit=40):
    """Rows of ``X`` with a column set to its thresholds or to their neighbours."""
    rng = np.random.default_rng(1)
    rows = [X]
    for j in range(forest.n_inputs):
        used = np.unique(forest.threshold[(forest.feature == j) & (forest.left >= 0)])
        t = rng.permutation(used)[:limit]
        t32 = t.astype(np.float32)
        near = [t, np.nextafter(t, -np.inf), np.nextafter(t, np.inf), t32]
        near += [np.nextafter(t32, np.float32(s)) for s in (-np.inf, np.inf)]
        values = np.concatenate([n.astype(np.float64) for n in near])
        some = X[rng.integers(0, N_ROWS, len(values))].copy()
        some[:, j] = values
        rows.append(some)
    return np.vstack(rows)


@pytest.mark.parametrize("name", CASES)
def test_the_trees_add_up_to_the_models_own_response(name):
    model, respond = fitted(name)
    reader, reading = read(model)
    rows = edge_rows(reading.forest)
    truth, allowed = respond(rows), rounding_of(reader, reading)
    assert np.all(allowed <= 3e-5 * reading.forest.scale())
    inputs = reading.input_map.open(rows).to_array()
    assert np.all(np.abs(oracles.predict_many(reading.forest, inputs) - truth) <= allowed)
    raw = reader.predict_raw(model, rows)
    assert raw.shape == truth.shape
    assert np.all(np.abs(raw - truth) <= allowed)


@pytest.mark.parametrize("name", CASES)
def test_the_head_names_the_responses(name):
    model, respond = fitted(name)
    _, reading = read(model)
    head, n_outputs = reading.head, reading.forest.n_outputs
    margins = oracles.predict_many(reading.forest, X)
    assert len(head.names(n_outputs)) == n_outputs == respond(X).shape[1]
    for method in set(head.additive) - {"raw"}:
        answer = listed_proba(model, X) if name == "a forest a target" else None
        answer = getattr(model, method)(X) if answer is None else answer
        answer = two_dimensional(answer)
        answer = answer[:, 1:] if answer.shape[1] == n_outputs + 1 else answer
        assert_allclose(margins, answer, rtol=1e-5, atol=1e-5)
    if head.link_method is not None:
        answer = two_dimensional(getattr(model, head.link_method)(X))
        answer = answer[:, 1:] if answer.shape[1] == n_outputs + 1 else answer
        assert_allclose(head.respond(margins), answer, rtol=1e-4, atol=1e-6)


LINKS = {
    "stacked probabilities": "softmax",
    "stacked probabilities of two": "logit",
    "stack by ridge": "identity",
    "adaboost of two": "logit",
    "logarithm": "exp",
    "quantiles": "Mixture",
    "one against one other": "logit",
    "one against the rest": "Mixture",
    "fixed threshold": "logit",
}


@pytest.mark.parametrize("name", LINKS)
def test_links(name):
    _, reading = read(fitted(name)[0])
    link = reading.head.link
    assert (link if isinstance(link, str) else type(link).__name__) == LINKS[name]
    assert (reading.head.link_method is None) == (LINKS[name] == "identity")


# -- the game ------------------------------------------------------------------------------

GAMES = [
    "bagging of repeated columns",
    "bagged trees that miss classes",
    "vote, one dropped",
    "stacked probabilities of two",
    "stack of ensembles",
    "adaboost",
    "min and max",
    "one against the rest",
    "a forest a target",
]


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("output", ["component", "shap"])
def test_explanations_are_those_of_the_definition(name, output):
    model, respond = fitted(name)
    background, explained, weights = X[:25], X[40:46], np.arange(25) % 4 / 2.0
    game = oracles.interventional_game(
        respond, background, weights, explained, [[j] for j in range(4)]
    )
    explainer = FastPDExplainer(output=output).fit(model, background, sample_weight=weights)
    values = explainer.transform(explained).reshape(len(explained), len(explainer.terms_), -1)
    reader, reading = read(model)
    allowed = 20 * rounding_of(reader, reading)
    for k, names in enumerate(explainer.terms_):
        term = tuple(int(name[-1]) for name in names)
        assert np.all(np.abs(values[:, k] - oracles.INDICES[output](game, term)) <= allowed)


def test_path_dependent_values_of_a_vote_are_the_mean_of_its_members():
    model, _ = fitted("vote")
    members = [
        PathDependentExplainer(output="shap").fit(member).transform(X[:9])
        for member in model.estimators_
    ]
    values = PathDependentExplainer(output="shap").fit(model).transform(X[:9])
    assert_allclose(values, np.mean(members, axis=0), atol=1e-12)


@pytest.mark.parametrize("name", ["vote", "bagging of column subsets", "stack", "adaboost"])
def test_parity_is_checked(name):
    model, _ = fitted(name)
    reader, reading = read(model)
    wrong = replace(reading.forest, value=reading.forest.value * 1.001)
    for forest in (reading.forest, wrong):

        def run(forest=forest):
            check_reading(
                reader,
                model,
                reading._replace(forest=forest),
                X,
                lambda inputs: oracles.predict_many(forest, inputs),
            )

        if forest is wrong:
            with pytest.raises(ValueError, match="has been misread"):
                run()
        else:
            run()


# -- kinds of X ----------------------------------------------------------------------------


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["bagging of lightgbm", "vote", "adaboost", "standard scale"])
def test_frames(name, library):
    model, target, _ = CASES[name]
    if library == "polars" and "lightgbm" in name + str(model).lower().replace("lgbm", "lightgbm"):
        library = "pandas"  # LightGBM takes no polars frames
    frame = pytest.importorskip(library).DataFrame(dict(zip("abcd", X.T, strict=True)))
    model = clone(model).fit(frame, TARGETS[target])
    explainer = FastPDExplainer(output="shap").fit(model, frame)
    assert explainer.feature_names_in_.tolist() == list("abcd")
    truth = FastPDExplainer(output="shap").fit(clone(model).fit(X, TARGETS[target]), X)
    assert_allclose(explainer.transform(frame), truth.transform(X), atol=1e-12)
    with pytest.raises(ValueError, match="feature names should match"):
        explainer.transform(frame[list("bacd")])


@pytest.mark.parametrize(
    "name", ["vote", "stack", "bagging of lightgbm", "vote in single precision"]
)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, bool])
def test_arrays_of_other_types(name, dtype):
    model, respond = fitted(name)
    rows = (2 * X).astype(dtype)
    reader, reading = read(model)
    margins = oracles.predict_many(reading.forest, reading.input_map.open(rows).to_array())
    assert np.all(np.abs(margins - respond(rows)) <= rounding_of(reader, reading))


def test_sparse_rows_of_members_that_read_them_alike():
    rows = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = VotingRegressor([FIVE[4], ("tree", DecisionTreeRegressor(max_depth=2))]).fit(rows, Y)
    explainer = FastPDExplainer(output="shap").fit(model, rows)
    total = explainer.intercept_ + explainer.transform(rows).sum(axis=1)
    assert_allclose(total, model.predict(rows))


def test_sparse_rows_of_members_that_do_not():
    rows = sparse.csr_array(np.where(np.abs(X) > 0.5, X, 0.0))
    model = VotingRegressor([FIVE[0], FIVE[4]]).fit(rows, Y)
    with pytest.raises(ValueError, match="do not agree whether an absent entry is zero or missing"):
        FastPDExplainer().fit(model, rows)
    FastPDExplainer().fit(model, rows.toarray())


def test_integers_that_are_rounded_by_one_member_and_not_by_another():
    whole = (X * 10).astype(np.int64)
    whole[:, 0] += 2**24
    model = VotingRegressor(FIVE[1:3]).fit(whole.astype(np.float64), Y)
    explainer = FastPDExplainer().fit(model, whole.astype(np.float64))
    with pytest.raises(ValueError, match=r"dtype int64 and the value 16777.*convert X to float64"):
        explainer.transform(whole)
    small = whole - [2**24, 0, 0, 0]
    assert_allclose(explainer.transform(small), explainer.transform(small.astype(np.float64)))


def test_values_that_a_member_refuses_are_refused():
    rows = X.copy()
    rows[3, 0] = 1e39  # infinite in single precision
    model, _ = fitted("vote")
    explainer = FastPDExplainer().fit(model, X)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="too large"):
        model.predict(rows)
    with pytest.raises(ValueError, match="a value too large for the model, in column 0"):
        explainer.transform(rows)
    rows[3, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        model.predict(rows)
    with pytest.raises(ValueError, match="Input X contains NaN, in column 0"):
        explainer.transform(rows)
    boosted = AdaBoostClassifier(TREE_C, n_estimators=2).fit(X, TARGETS["multi"])
    with pytest.raises(ValueError, match="Input X contains NaN, in column 0"):
        FastPDExplainer().fit(boosted, X).transform(rows)


def test_missing_values():
    rows = np.where(np.random.default_rng(3).random(X.shape) < 0.2, np.nan, X)
    model = VotingRegressor(FIVE[:3]).fit(rows, Y)
    explainer = FastPDExplainer(output="shap").fit(model, rows)
    total = explainer.intercept_ + explainer.transform(rows).sum(axis=1)
    assert_allclose(total, model.predict(rows), rtol=1e-5, atol=1e-5)


# -- categories ----------------------------------------------------------------------------


def colours(seed=0):
    rng = np.random.default_rng(seed)
    labels = pd.Categorical(rng.choice(["red", "green", "blue"], N_ROWS))
    return pd.DataFrame({"size": X[:, 0], "colour": labels, "weight": X[:, 1]})


def colour_target(frame):
    level = frame["colour"].astype(str).map({"red": 5.0, "green": 0.0, "blue": -3.0})
    return (level + frame["size"] * (frame["colour"] == "red")).to_numpy()


HIST_COLOUR = HistGradientBoostingRegressor(
    max_iter=3, max_leaf_nodes=5, min_samples_leaf=5, categorical_features="from_dtype"
)
LGB_COLOUR = clone(LGB).set_params(min_data_per_group=1, cat_smooth=1)
XGB_COLOUR = XGBRegressor(n_estimators=3, max_depth=2, enable_categorical=True, n_jobs=1)


COLOURED = {"hist": HIST_COLOUR, "lgb": LGB_COLOUR, "xgb": XGB_COLOUR}


@pytest.mark.parametrize(
    "names",
    [["hist"], ["lgb"], ["xgb"], ["hist", "lgb"], ["lgb", "xgb"], ["xgb", "hist", "lgb"]],
    ids="+".join,
)
def test_categories(names):
    frame, members = colours(), [(n, COLOURED[n]) for n in names]
    frame.loc[3:6, "colour"] = None
    model = VotingRegressor([*members, (names[0] + " again", COLOURED[names[0]])])
    model.fit(frame, colour_target(colours()))
    explainer = FastPDExplainer(output="shap").fit(model, frame)

    def assert_adds_up(rows):
        total = explainer.intercept_ + explainer.transform(rows).sum(axis=1)
        assert_allclose(total, model.predict(rows), rtol=1e-5, atol=1e-5)

    assert_adds_up(frame)
    assert np.abs(explainer.transform(frame)[:, 1]).max() > 0.5
    unseen = frame[:9].copy()
    unseen["colour"] = pd.Categorical(["green", "mauve", "red"] * 3)
    if "xgb" not in names or older("xgboost", "3.1"):
        assert_adds_up(unseen)
    else:  # XGBoost gives an unseen label the code of another
        with pytest.raises(ValueError, match="mauve"):
            explainer.transform(unseen)


def test_numbers_in_place_of_categories_that_are_taken_in_two_ways():
    frame = colours()
    model = VotingRegressor(list(COLOURED.items())).fit(frame, colour_target(frame))
    explainer = FastPDExplainer().fit(model, frame)
    coded = frame.assign(colour=frame["colour"].cat.codes)
    if older("xgboost", "3.1"):  # which keeps no labels: numbers in an array are codes to all
        with pytest.raises(ValueError, match="0 categorical columns"):
            explainer.transform(coded)
        return
    for rows in (coded, coded.to_numpy()):
        with pytest.raises(ValueError, match="column 'colour' of X holds categories, which the"):
            explainer.transform(rows)


def test_bagging_makes_arrays_of_frames():
    frame = pd.DataFrame({"a": (X[:, 0] * 10).astype(int) + 2**24, "b": (X[:, 1] * 9).astype(int)})
    model = bag(LGB).fit(frame, Y)
    explainer = FastPDExplainer(output="shap").fit(model, frame)
    total = explainer.intercept_ + explainer.transform(frame).sum(axis=1)
    assert_allclose(total, model.predict(frame))


# -- what is refused -----------------------------------------------------------------------

REFUSED = {
    "median": (AdaBoostRegressor(n_estimators=3), "real", "weighted median of its members"),
    "votes of forests": (
        AdaBoostClassifier(RF_C, n_estimators=2),
        "binary",
        "a vote of a RandomForestClassifier is no sum of trees",
    ),
    "hard votes": (VotingClassifier(SOFT), "multi", r"set_params\(voting='soft'\)"),
    "bagged links": (bag_c(XGB_C), "numbered", "member 0, a XGBClassifier, is no sum of trees"),
    "own columns": (stack(passthrough=True), "real", "passthrough=False"),
    "stack without scores": (
        stack_c([("h", HIST_C)], RidgeClassifier()),
        "binary",
        "a RidgeClassifier, has no predict_proba",
    ),
    "a line among trees": (
        VotingRegressor([*FIVE, ("line", LinearRegression())]),
        "real",
        "member 'line' of this VotingRegressor is a LinearRegression, which is no tree ensemble",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_sum_of_trees_is_refused_with_an_alternative(name):
    model, target, message = REFUSED[name]
    model = clone(model).fit(X, TARGETS[target])
    for explainer in (FastPDExplainer(), PathDependentExplainer()):
        with pytest.raises(NoSumOfTreesError, match=message) as caught:
            explainer.fit(model, X)
        if name != "hard votes":
            assert "VanillaPDExplainer" in str(caught.value)


@pytest.mark.parametrize("name", sorted(set(REFUSED) - {"hard votes", "stack without scores"}))
def test_what_is_no_sum_of_trees_is_explained_by_prediction(name):
    model, target, _ = REFUSED[name]
    model = clone(model).fit(X, TARGETS[target])
    explainer = VanillaPDExplainer(features=[0]).fit(model, X[:20])
    method = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    truth = two_dimensional(getattr(model, method)(X[:20])).mean(axis=0)
    assert_allclose(explainer.intercept_, truth[1:] if len(truth) == 2 else truth, rtol=1e-6)
    with pytest.raises(ValueError, match="'raw' is the sum of the trees of an ensemble, and"):
        VanillaPDExplainer(response_method="raw").fit(model, X[:20])


def test_the_response_of_a_transformed_target():
    model, _ = fitted("logarithm")
    auto = FastPDExplainer().fit(model, X)
    raw = FastPDExplainer(response_method="raw").fit(model, X)
    assert_allclose(auto.intercept_, raw.intercept_)
    assert_allclose(auto.intercept_, model.regressor_.predict(X).mean(), rtol=1e-6)
    response = FastPDExplainer(response_method="predict").fit(model, X)
    assert_allclose(response.intercept_, model.predict(X).mean(), rtol=1e-6)
    with pytest.raises(ValueError, match="shap"):
        FastPDExplainer(response_method="predict", output="shap").fit(model, X)
    predicted = VanillaPDExplainer(response_method="predict", features=[0]).fit(model, X[:20])
    assert_allclose(predicted.intercept_, model.predict(X[:20]).mean(), rtol=1e-6)
    affine, _ = fitted("standard scale")
    explainer = FastPDExplainer(response_method="predict").fit(affine, X)
    assert_allclose(explainer.intercept_, affine.predict(X).mean(), rtol=1e-5)


def test_a_function_of_the_users_is_not_taken_for_affine():
    model = TransformedTargetRegressor(
        RF, transformer=FunctionTransformer(lambda y: 2 * y, lambda z: z / 2)
    ).fit(X, Y)
    assert read(model)[1].head.additive == ("raw",)


def test_regressors_against_the_rest():
    model = OneVsRestClassifier(RF).fit(X, TARGETS["binary"])
    _, reading = read(model)
    assert reading.head.additive == ("raw",)
    margins = oracles.predict_many(reading.forest, X)[:, 0]
    assert_allclose(margins, model.estimators_[0].predict(X))


def test_a_label_that_nobody_has():
    labels = np.column_stack([Y > 0, np.zeros(N_ROWS)]).astype(int)
    with pytest.warns(UserWarning, match="is present in all training examples"):
        model = OneVsRestClassifier(RF_C).fit(X, labels)
    with pytest.raises(NoSumOfTreesError, match="member 1 of this OneVsRestClassifier is a"):
        FastPDExplainer().fit(model, X)


def test_a_search_without_refit():
    model = GridSearchCV(XGB, DEPTHS, cv=2, refit=False).fit(X, Y)
    with pytest.raises(NotFittedError, match="no best_estimator_; fit it with refit=True"):
        FastPDExplainer().fit(model, X)


@pytest.mark.parametrize("name", CASES)
def test_unfitted(name):
    model = CASES[name][0]
    with pytest.raises(NotFittedError):
        FastPDExplainer().fit(clone(model), X)
