"""Surrogates: exact explanations of what is trained on a model's answers, and how good that is."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor
from xgboost import XGBRegressor

from fastpd_sklearn import FastPDExplainer, PathDependentExplainer, VanillaPDExplainer
from tests.oracles import INDICES, interventional_game

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, size=(120, 3))
Y = X[:, 0] * X[:, 1] + X[:, 2]
SVM = SVR(C=10).fit(X, Y)
SMALL = HistGradientBoostingRegressor(
    max_iter=60, min_samples_leaf=5, learning_rate=0.2, early_stopping=False
)
WITH_SURROGATE = [FastPDExplainer, PathDependentExplainer]


@pytest.mark.parametrize("explainer", WITH_SURROGATE)
@pytest.mark.parametrize("surrogate", ["auto", True, SMALL], ids=["auto", "true", "given"])
def test_the_surrogate_is_what_is_explained(explainer, surrogate):
    fitted = explainer(output="shap", surrogate=surrogate, random_state=0).fit(SVM, X)
    total = fitted.intercept_ + fitted.transform(X).sum(axis=1)
    np.testing.assert_allclose(total, fitted.surrogate_.predict(X), atol=1e-10)
    assert fitted.estimator_ is SVM
    assert fitted.surrogate_score_ > 0.9
    assert fitted.response_method_ == "predict"
    assert not hasattr(SMALL, "n_features_in_")


def test_values_are_those_of_the_definition_for_the_surrogate():
    fitted = FastPDExplainer(output="component", surrogate=SMALL, random_state=0).fit(SVM, X)
    game = interventional_game(fitted.surrogate_.predict, X, None, X[:5], [[0], [1], [2]])
    explanation = fitted.explain(X[:5])
    for term in explanation.terms:
        S = tuple(int(name[1]) for name in term)
        np.testing.assert_allclose(
            explanation[term], INDICES["component"](game, S)[:, 0], atol=1e-10
        )


def test_values_are_close_to_those_of_the_model():
    """Also where interventions leave the data, since the surrogate is trained on mixed rows."""
    rows = np.repeat(RNG.uniform(-1, 1, size=(150, 1)), 2, axis=1)
    rows[:, 1] += RNG.normal(size=150) * 0.05  # nearly the same column twice
    model = SVR(C=10).fit(rows, rows[:, 0] * rows[:, 1])
    right = VanillaPDExplainer(output="component").fit(model, rows).transform(rows)
    fitted = FastPDExplainer(output="component", surrogate="auto", random_state=0)
    found = fitted.fit(model, rows).transform(rows)
    assert fitted.surrogate_score_ > 0.98
    assert np.abs(found - right).mean() < 0.1 * np.abs(right).mean()


def test_the_score_is_that_of_unseen_rows():
    """White noise as a model: nothing can be known of rows that have not been seen."""

    class Noise:
        n_features_in_ = 3

        def predict(self, X):
            return np.sin(1e7 * np.asarray(X).sum(axis=1))

    with pytest.warns(UserWarning, match=r"follows Noise with R squared -?\d.*VanillaPDExplainer"):
        fitted = FastPDExplainer(surrogate="auto", random_state=0).fit(Noise(), X)
    assert fitted.surrogate_score_ < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FastPDExplainer(surrogate="auto", random_state=0).fit(SVM, X)


def test_a_model_that_is_known_exactly_has_the_score_one():
    """A tree learns a tree, and a constant a constant."""
    tree = DecisionTreeRegressor(max_leaf_nodes=3, random_state=0).fit(X, Y)
    grown = DecisionTreeRegressor(random_state=0)
    fitted = FastPDExplainer(surrogate=grown, random_state=0).fit(tree, X)
    assert fitted.surrogate_score_ > 0.97
    flat = Ridge().fit(X, np.full(120, 0.1))
    assert FastPDExplainer(surrogate=SMALL, random_state=0).fit(flat, X).surrogate_score_ == 1.0


def test_auto_leaves_tree_ensembles_alone():
    forest = RandomForestRegressor(3, random_state=0).fit(X, Y)
    fitted = FastPDExplainer(output="shap", surrogate="auto").fit(forest, X)
    assert not hasattr(fitted, "surrogate_")
    total = fitted.intercept_ + fitted.transform(X).sum(axis=1)
    np.testing.assert_allclose(total, forest.predict(X), atol=1e-12)


def test_probabilities_of_a_boosted_classifier():
    """Its SHAP values on that scale are no sum over trees; those of a surrogate are."""
    labels = np.where(Y > 0, "yes", "no")
    model = HistGradientBoostingClassifier(max_iter=20, min_samples_leaf=5).fit(X, labels)
    fitted = FastPDExplainer(
        output="shap", response_method="predict_proba", surrogate=SMALL, random_state=0
    ).fit(model, X)
    total = fitted.intercept_ + fitted.transform(X).sum(axis=1)
    assert np.abs(total - model.predict_proba(X)[:, 1]).mean() < 0.1
    assert list(fitted.classes_) == ["no", "yes"]
    assert fitted.response_method_ == "predict_proba"
    plain = FastPDExplainer(output="shap", surrogate=SMALL, random_state=0).fit(model, X)
    assert np.array_equal(plain.transform(X), fitted.transform(X))  # what "auto" means here
    no = clone(fitted).set_params(target="no").fit(model, X)
    np.testing.assert_allclose(no.intercept_, 1 - fitted.intercept_, atol=1e-12)
    np.testing.assert_allclose(no.transform(X), -fitted.transform(X), atol=1e-12)


@pytest.mark.parametrize("surrogate", ["auto", XGBRegressor(n_estimators=60, n_jobs=1)], ids=str)
def test_several_outputs(surrogate):
    labels = np.array(["low", "mid", "top"])[np.digitize(Y, [-0.3, 0.3])]
    model = LogisticRegression().fit(X, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of XGBoost with a seed
        fitted = FastPDExplainer(output="shap", surrogate=surrogate, random_state=0).fit(model, X)
    assert fitted.transform(X).shape == (120, 9)
    total = fitted.intercept_ + fitted.explain(X).values.sum(axis=1)
    np.testing.assert_allclose(total, fitted.surrogate_.predict(X), atol=1e-5)
    assert np.abs(total - model.predict_proba(X)).max() < 0.2
    assert fitted.surrogate_score_ > 0.9
    assert list(fitted.classes_) == ["low", "mid", "top"]


def test_several_targets():
    model = LinearRegression().fit(X, X[:, :2] @ [[1, 2], [3, 4]])
    fitted = FastPDExplainer(output="shap", surrogate=SMALL, random_state=0).fit(model, X)
    total = fitted.intercept_ + fitted.explain(X).values.sum(axis=1)
    np.testing.assert_allclose(total, fitted.surrogate_.predict(X), atol=1e-10)
    assert fitted.surrogate_score_ > 0.95


def frame_and_pipeline(library):
    frame = {
        "job": RNG.choice(["baker", "clerk", "smith"], 120).tolist(),
        "age": X[:, 0].tolist(),
        "pay": X[:, 1].tolist(),
    }
    y = (np.array(frame["job"]) == "clerk") * X[:, 0] + X[:, 1]
    frame = library.DataFrame(frame)
    encode = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    return frame, make_pipeline(encode, SVR(C=10)).fit(frame, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_raw_columns_of_a_pipeline(library):
    library = pytest.importorskip(library)
    frame, pipeline = frame_and_pipeline(library)
    fitted = FastPDExplainer(output="shap", surrogate="auto", random_state=0).fit(pipeline, frame)
    assert list(fitted.get_feature_names_out()) == ["job", "age", "pay"]
    total = fitted.intercept_ + fitted.transform(frame).sum(axis=1)
    np.testing.assert_allclose(total, fitted.surrogate_.predict(frame), atol=1e-10)
    assert fitted.surrogate_score_ > 0.95
    curve = fitted.partial_dependence("job").average[0]
    right = VanillaPDExplainer().fit(pipeline, frame).partial_dependence("job").average[0]
    np.testing.assert_allclose(curve, right, atol=0.1)


def test_sparse_rows():
    rows = sparse.random(200, 4, density=0.5, format="csr", random_state=0)
    model = Ridge().fit(rows, rows.toarray().sum(axis=1))
    fitted = FastPDExplainer(
        output="shap", surrogate=RandomForestRegressor(10, random_state=0), random_state=0
    ).fit(model, rows)
    total = fitted.intercept_ + fitted.transform(rows).sum(axis=1)
    np.testing.assert_allclose(total, fitted.surrogate_.predict(rows), atol=1e-10)


def test_all_forms_of_fit():
    expected = FastPDExplainer(surrogate=SMALL, random_state=0).fit(SVM, X).transform(X)
    frozen = FastPDExplainer(FrozenEstimator(SVM), surrogate=SMALL, random_state=0)
    assert np.array_equal(frozen.fit(X).transform(X), expected)
    within = make_pipeline(FastPDExplainer(SVR(C=10), surrogate=SMALL, random_state=0))
    assert np.array_equal(within.fit(X, Y).transform(X), expected)
    parts = FastPDExplainer(surrogate=SMALL, random_state=0).fit(SVM, X)
    parts.partial_fit(X[:10]).partial_fit(SVM, X[:10])
    game = interventional_game(
        parts.surrogate_.predict, np.vstack([X, X[:10], X[:10]]), None, X, [[0], [1], [2]]
    )
    np.testing.assert_allclose(parts.transform(X)[:, 0], game[(0,)][:, 0], atol=1e-10)
    with pytest.raises(ValueError, match="another one"):
        parts.partial_fit(clone(SVM).fit(X, Y), X)


def test_weights_of_the_background():
    weights = RNG.integers(0, 3, size=120).astype(float)
    fitted = FastPDExplainer(surrogate=SMALL, random_state=0).fit(SVM, X, sample_weight=weights)
    mean = np.average(fitted.surrogate_.predict(X), weights=weights)
    assert fitted.intercept_[0] == pytest.approx(mean, abs=1e-12)


def test_pickles_and_detach():
    fitted = FastPDExplainer(output="shap", surrogate=SMALL, random_state=0).fit(SVM, X)
    expected = fitted.transform(X)
    again = pickle.loads(pickle.dumps(fitted))
    assert np.array_equal(again.transform(X), expected)
    assert np.array_equal(again.surrogate_.predict(X), fitted.surrogate_.predict(X))
    assert again.surrogate_score_ == fitted.surrogate_score_
    small = pickle.dumps(pickle.loads(pickle.dumps(fitted)).detach())
    assert len(small) < len(pickle.dumps(fitted))
    bare = pickle.loads(small)
    assert np.array_equal(bare.transform(X), expected)
    assert bare.surrogate is None
    assert not hasattr(bare, "surrogate_")
    repr(bare)
    refitted = fitted.set_params(surrogate=None).fit(RandomForestRegressor(2).fit(X, Y), X)
    assert not hasattr(refitted, "surrogate_")
    assert not hasattr(refitted, "surrogate_score_")


def test_the_same_seed_the_same_surrogate():
    one, two = (FastPDExplainer(surrogate=SMALL, random_state=3).fit(SVM, X) for _ in range(2))
    assert np.array_equal(one.transform(X), two.transform(X))
    before = X.copy()
    FastPDExplainer(surrogate=SMALL).fit(SVM, X)
    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    ("surrogate", "error", "message"),
    [
        (Ridge(), ValueError, "no tree ensemble"),
        (HistGradientBoostingRegressor(loss="poisson"), ValueError, "add up to its predictions"),
        (False, TypeError, "surrogate=False"),
        ("yes", TypeError, "surrogate='yes'"),
        (GradientBoostingRegressor, TypeError, "should be None"),
    ],
)
def test_bad_surrogates(surrogate, error, message):
    model = KNeighborsRegressor().fit(X, np.exp(Y))
    with pytest.raises(error, match=message):
        FastPDExplainer(surrogate=surrogate, random_state=0).fit(model, X)


def test_bad_backgrounds():
    with pytest.raises(ValueError, match="minimum of 8"):
        FastPDExplainer(surrogate=True).fit(SVM, X[:5])
    with pytest.raises(ValueError, match="trained on a background"):
        PathDependentExplainer(surrogate="auto").fit(SVM)
    with pytest.raises(TypeError, match="surrogate='auto'"):
        FastPDExplainer().fit(SVM, X)
