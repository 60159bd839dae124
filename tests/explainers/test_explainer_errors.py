"""Bad input gets an error that names the argument, the value and the remedy."""

import numpy as np
import pytest
from sklearn.ensemble import IsolationForest, RandomForestClassifier, RandomForestRegressor
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from fastpd_sklearn.explainers._response import check_additive
from fastpd_sklearn.forest import Head

# Models that were fitted on arrays warn when they predict frames.
pytestmark = pytest.mark.filterwarnings("ignore:X has feature names, but")

PARAMETERS = [
    ({"output": "shapley"}, ValueError, r"output='shapley' is none of 'pd', 'component', 'shap'"),
    ({"response_method": "proba"}, ValueError, "response_method='proba' is none of 'auto'"),
    ({"max_order": 0}, ValueError, "max_order=0: should be at least 1"),
    ({"max_order": 1.5}, TypeError, "max_order=1.5 should be 'auto', a positive int or None"),
    ({"max_order": True}, TypeError, "max_order=True"),
    ({"output": "shap", "max_order": 2}, ValueError, "take output='shap_interaction'"),
    ({"output": "shap", "max_order": None}, ValueError, "take output='shap_interaction'"),
    ({"output": "shap_interaction", "max_order": 3}, ValueError, "max_order=3 does not go with"),
    ({"output": "shap", "features": [(0, 1)]}, ValueError, "take output='shap_interaction'"),
    ({"output": "shap_interaction", "features": [(0, 1, 2)]}, ValueError, "features and pairs"),
    ({"max_order": 1, "features": [(0, 1)]}, ValueError, "more than max_order=1"),
    ({"features": [4]}, ValueError, "column 4 does not exist; columns are numbered from 0 to 3"),
    ({"features": [-1]}, ValueError, "column -1 does not exist"),
    ({"features": ["age"]}, ValueError, "unknown feature 'age'; known are 'x0', 'x1', 'x2', 'x3'"),
    ({"features": ["0"]}, ValueError, "unknown feature '0'"),
    ({"features": [1.0]}, TypeError, r"1\.0 is neither a column number \(int\) nor a name"),
    ({"features": [True]}, TypeError, "True is neither"),
    ({"features": []}, ValueError, "features is empty"),
    ({"features": iter([0])}, TypeError, "should be a list of columns, names"),
    ({"features": slice(0, 2)}, TypeError, "should be a list of columns, names"),
    ({"verbose": -1}, ValueError, "verbose=-1 should be 0"),
    ({"verbose": "loud"}, ValueError, "verbose='loud' should be 0"),
    ({"features": [()]}, ValueError, "an empty tuple names no feature"),
    ({"features": [(1, "x1")]}, ValueError, "names a feature twice"),
    ({"features": [0, "x0"]}, ValueError, "two columns of the output would be called 'x0'"),
    ({"features": [(0, 1), (1, 0)]}, ValueError, "would be called 'x0:x1'"),
    ({"groups": [[0, 1]]}, TypeError, "should be a dict from a group's name to its columns"),
    ({"groups": {0: [1]}}, TypeError, "the name 0 should be a str"),
    ({"groups": {"g": []}}, ValueError, "'g' has no column"),
    ({"groups": {"g": ["zip"]}}, ValueError, r"groups\['g'\]: unknown feature 'zip'"),
    ({"groups": {"g": [0, 9]}}, ValueError, r"groups\['g'\]: column 9 does not exist"),
    ({"groups": {"g": [0, 1], "h": [1, 2]}}, ValueError, "column 'x1' is both in 'g' and in 'h'"),
    ({"groups": {"g": [0, "x0"]}}, ValueError, "'g' names a column twice"),
    ({"groups": {"x3": [0, 1]}}, ValueError, "two features are called 'x3'"),
    ({"groups": {"g": [0, 1]}, "features": [1]}, ValueError, "column 1 is part of the group 'g'"),
    ({"groups": {"g": [0, 1]}, "features": ["x1"]}, ValueError, "'x1' is part of the group 'g'"),
    ({"target": 1}, ValueError, "target=1 is none of the model's outputs"),
    ({"target": True}, ValueError, "target=True is none of the model's outputs"),
    ({"n_jobs": 0}, ValueError, "n_jobs=0 means no thread"),
    ({"n_jobs": 1.5}, TypeError, "n_jobs=1.5 should be an int or None"),
    ({"random_state": "seed"}, ValueError, "seed"),
]


@pytest.mark.parametrize(("params", "error", "message"), PARAMETERS, ids=lambda p: str(p)[:40])
def test_parameters(explainer_class, model, X, params, error, message):
    with pytest.raises(error, match=message):
        explainer_class(**params).fit(model, X)


def test_unknown_class(explainer_class, classifier, X):
    with pytest.raises(ValueError, match=r"target='top' .* are \['high', 'low', 'mid'\]"):
        explainer_class(target="top").fit(classifier, X)
    with pytest.raises(ValueError, match=r"target=0 is none of the model's classes"):
        explainer_class(target=0).fit(classifier, X)


def test_unknown_output_of_several_targets(explainer_class, X, y):
    model = RandomForestRegressor(2, max_depth=2).fit(X, np.column_stack([y, -y]))
    with pytest.raises(ValueError, match=r"outputs; they are numbered from 0 to 1$"):
        explainer_class(target="y0").fit(model, X)
    labels = np.column_stack([y > 4, np.where(y > 5, "up", "down")]).astype(str)
    model = RandomForestClassifier(2, max_depth=2).fit(X, labels)
    with pytest.raises(ValueError, match=r"from 0 to 1 and called 'y0=True', 'y1=up'"):
        explainer_class(target="up").fit(model, X)


def test_names_that_collide_with_a_set(explainer_class, X, y):
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(X, columns=["a", "b", "a:b", "c"])
    model = RandomForestRegressor(2, random_state=0).fit(data, y)
    with pytest.raises(ValueError, match="would be called 'a:b'"):
        explainer_class(features=[("a", "b"), "a:b"]).fit(model, data)


def test_equal_column_names():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(np.eye(2), columns=["a", "a"])

    class Sum:
        def predict(self, X):
            return np.asarray(X).sum(axis=1)

    with pytest.raises(ValueError, match="'a'"):
        VanillaPDExplainer().fit(Sum(), data)


WEIGHTS = [
    (np.ones(29), r"sample_weight.shape == \(29,\), expected \(30,\)"),
    (np.ones((30, 1)), r"sample_weight.shape == \(30, 1\), expected \(30,\)"),
    (-np.ones(30), "Negative values in data passed to `sample_weight`"),
    (np.zeros(30), "Sample weights must contain at least one non-zero number"),
    (np.full(30, np.nan), "sample_weight contains NaN"),
    (np.full(30, np.inf), "sample_weight contains infinity"),
]


@pytest.mark.parametrize(("weights", "message"), WEIGHTS, ids=lambda p: str(p)[:20])
def test_weights(explainer_class, model, X, y, weights, message):
    with pytest.raises(ValueError, match=message):
        explainer_class().fit(model, X, sample_weight=weights)
    with pytest.raises(ValueError, match=message):
        explainer_class(RandomForestRegressor()).fit(X, y, sample_weight=weights)
    fitted = explainer_class().fit(model, X)
    before = fitted.transform(X)
    with pytest.raises(ValueError, match=message):
        fitted.partial_fit(X, sample_weight=weights)
    assert np.array_equal(fitted.transform(X), before)


def test_weights_go_by_keyword_alone(explainer_class, model, X, y):
    """``fit(model, X, y)`` would take the target for them."""
    for method in ("fit", "partial_fit"):
        with pytest.raises(TypeError, match="positional arguments"):
            getattr(explainer_class(), method)(model, X, y)


def test_empty_background(explainer_class, model, X):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\)"):
        explainer_class().fit(model, X[:0])


def test_empty_frame(explainer_class, model, X, frame):
    with pytest.raises(ValueError, match="X is empty"):
        explainer_class().fit(model, frame(X[:0], list("abcd")))


def test_no_background(model):
    with pytest.raises(ValueError, match=r"call fit\(model, background\)"):
        VanillaPDExplainer().fit(model)


def test_unfitted_model(explainer_class, X):
    for unfitted in (RandomForestRegressor(2), FrozenEstimator(RandomForestRegressor(2))):
        with pytest.raises(NotFittedError, match=r"^RandomForestRegressor is not fitted"):
            explainer_class().fit(unfitted, X)
    with pytest.raises(NotFittedError, match=r"^RandomForestRegressor is not fitted"):
        explainer_class(RandomForestRegressor(2)).fit(X)


def test_model_and_background_the_other_way_round(explainer_class, model, X):
    with pytest.raises(TypeError, match=r"other way round.* is a RandomForestRegressor; call fit"):
        explainer_class().fit(X, model)
    with pytest.raises(TypeError, match="two models"):
        explainer_class().fit(model, model)
    with pytest.raises(TypeError, match=r"got a method to call; .* not with its predict"):
        explainer_class().fit(model.predict, X)


@pytest.mark.parametrize("explainer_class", [FastPDExplainer, PathDependentExplainer])
def test_no_tree_ensemble(explainer_class, X):
    linear = LinearRegression().fit(X, X[:, 0])
    with pytest.raises(TypeError, match=r"cannot read a sklearn LinearRegression; .*Explainer\.$"):
        explainer_class().fit(linear, X)
    pipe = make_pipeline(StandardScaler(), linear)
    with pytest.raises(TypeError, match=r"a sklearn LinearRegression, the last step of the Pipe"):
        explainer_class().fit(pipe, X)


def test_other_containers_than_arrays_and_frames(explainer_class, model, X):
    class Matrix:
        def num_row(self):
            return 30

    for rows in (Matrix(), 3.0, None):
        message = f"X is a {type(rows).__name__}, which is not accepted: give the rows as an array"
        with pytest.raises(TypeError, match=message):
            explainer_class().fit(model, X).transform(rows)
    with pytest.raises(TypeError, match="X is a Matrix"):
        explainer_class().fit(model, Matrix())


def test_class_for_a_model(explainer_class, X):
    with pytest.raises(TypeError, match="got the class RandomForestRegressor"):
        explainer_class().fit(RandomForestRegressor, X)


def test_unfitted_explainer(explainer_class, X):
    for method in ("transform", "explain", "partial_dependence"):
        with pytest.raises(NotFittedError):
            getattr(explainer_class(), method)(X)
    with pytest.raises(NotFittedError):
        explainer_class().get_feature_names_out()


def test_width(explainer_class, model, X):
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4 features"):
        explainer_class().fit(model, X[:, :3])
    explainer = explainer_class().fit(model, X)
    for method in (explainer.transform, explainer.explain, explainer.partial_fit):
        with pytest.raises(ValueError, match=r"X has 5 features, but .* is expecting 4"):
            method(np.ones((2, 5)))


def test_a_missing_column_is_an_error_even_if_no_term_uses_it(explainer_class, model, X):
    explainer = explainer_class(features=[0]).fit(model, X)
    with pytest.raises(ValueError, match="X has 3 features"):
        explainer.transform(X[:, :3])


def test_one_row_without_its_axis(explainer_class, model, X):
    with pytest.raises(ValueError, match="Reshape your data"):
        explainer_class().fit(model, X).transform(X[0])


def test_words(explainer_class, model, X):
    with pytest.raises(ValueError, match="could not convert string to float"):
        explainer_class().fit(model, X).transform(np.full((2, 4), "word", dtype=object))


@pytest.mark.parametrize("explainer_class", [FastPDExplainer, PathDependentExplainer])
def test_words_in_the_background(explainer_class, model, X, frame):
    rows = X.astype(object)
    rows[3, 2] = "word"
    with pytest.raises(ValueError, match=r"column 2 of X .*could not convert .* 'word'"):
        explainer_class().fit(model, rows)
    words = frame(X.astype(str), list("abcd"))
    if words["a"].dtype != object:  # pandas 2 keeps objects, of which some are numbers
        with pytest.raises(ValueError, match=r"column 'a' of X has dtype .* not numeric"):
            explainer_class().fit(model, words)


def test_what_the_library_refuses_is_refused(explainer_class, model, X):
    rows = X.copy()
    rows[0, 3] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        explainer_class(features=[0]).fit(model, X).transform(rows)
    with pytest.raises(ValueError, match="infinity"):
        explainer_class().fit(model, rows)


def test_transform_of_a_model(explainer_class, model, X):
    with pytest.raises(TypeError, match="expected rows of data, got a model"):
        explainer_class().fit(model, X).transform(model)
    with pytest.raises(TypeError, match=r"use fit\(model, X\)\.transform\(X\)"):
        explainer_class().fit_transform(model, X)


def test_another_model_in_partial_fit(explainer_class, model, classifier, X):
    with pytest.raises(ValueError, match="and got another one"):
        explainer_class().fit(model, X).partial_fit(classifier, X)


def test_input_features(explainer_class, model, X):
    pd = pytest.importorskip("pandas")
    explainer = explainer_class().fit(model, X)
    with pytest.raises(ValueError, match="should have length equal to number of features"):
        explainer.get_feature_names_out(["a"])
    assert list(explainer.get_feature_names_out(list("abcd"))) == list("abcd")
    named = explainer_class().fit(model, pd.DataFrame(X, columns=list("abcd")))
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        named.get_feature_names_out(list("abdc"))


def test_memory(explainer_class, model, X, monkeypatch):
    explainer = explainer_class().fit(model, X)
    monkeypatch.setattr("fastpd_sklearn.explainers._checks.available_memory", lambda: 100)
    with pytest.raises(MemoryError, match=r"30 rows by 4 terms .* `features` or `max_order`"):
        explainer.transform(X)


def test_too_many_players_for_all_sets(X):
    wide = np.tile(X, 4)[:, :13]
    model = LinearRegression().fit(wide, wide[:, 0])
    for output in ("shap", "shap_interaction", "banzhaf"):
        with pytest.raises(ValueError, match=r"13 features are too many .* `groups`.*FastPDExpl"):
            VanillaPDExplainer(output=output).fit(model, wide).transform(wide)
    with pytest.raises(ValueError, match="max_order=None: all sets of 13 features"):
        VanillaPDExplainer(output="component", max_order=None).fit(model, wide)
    VanillaPDExplainer().fit(model, wide).transform(wide)
    grouped = VanillaPDExplainer(output="shap", groups={"g": list(range(10))}).fit(model, wide)
    assert grouped.transform(wide[:2]).shape == (2, 4)


RESPONSES = [
    (LinearRegression(), "raw", r"response_method='raw' .* LinearRegression is not one"),
    (LinearRegression(), "predict_proba", "LinearRegression has no such method"),
    (RidgeClassifier(), "predict", "class labels cannot be averaged; take 'decision_function'"),
    (RidgeClassifier(), "predict_proba", "it has 'auto', 'decision_function'"),
]


@pytest.mark.parametrize(("estimator", "method", "message"), RESPONSES)
def test_responses_by_prediction(X, y, estimator, method, message):
    with pytest.raises(ValueError, match=message):
        VanillaPDExplainer(estimator, response_method=method).fit(X, (y > 4) * 1)


def test_responses_that_do_not_add_up():
    head = Head(additive=("decision_function", "raw"))
    check_additive("auto", head)
    check_additive("raw", head)
    with pytest.raises(
        ValueError, match=r"they add up to 'decision_function' or 'raw'.*VanillaPDExplainer"
    ):
        check_additive("predict_proba", head)


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize("explainer_class", [FastPDExplainer, PathDependentExplainer])
def test_responses_of_an_isolation_forest(explainer_class, X, method):
    model = IsolationForest(n_estimators=3, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"'raw' is a row's mean depth.* larger depth is less"):
        explainer_class(response_method=method).fit(model, X)


@pytest.mark.parametrize("make", ["Table", "RecordBatch"])
def test_arrow_tables_are_no_arrays(explainer_class, model, X, make):
    """Their columns go by name, and an array would take them by place."""
    pa = pytest.importorskip("pyarrow")
    columns = [pa.array(column) for column in X.T]
    table = getattr(pa, make).from_arrays(columns, names=[f"c{j}" for j in range(len(columns))])
    fitted = explainer_class().fit(model, X)
    for call in (
        lambda: explainer_class().fit(model, table),
        lambda: fitted.transform(table),
        lambda: fitted.explain(table),
        lambda: fitted.partial_fit(table),
    ):
        with pytest.raises(TypeError, match=rf"X is a {make}, whose columns have .*to_pandas\(\)"):
            call()


def test_lists_of_paths_and_names_of_weights(explainer_class, model, X):
    with pytest.raises(TypeError, match=r"list of paths: give the folder .*dataset\(paths\)"):
        explainer_class().fit(model, ["a.parquet", "b.parquet"])
    with pytest.raises(TypeError, match=r"sample_weight='w' names a column.*such as X\['w'\]"):
        explainer_class().fit(model, X, sample_weight="w")
