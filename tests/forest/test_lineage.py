"""Which raw columns a preprocessed column is said to stem from, and which it really does."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectFromModel, VarianceThreshold
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    SplineTransformer,
    StandardScaler,
    TargetEncoder,
)
from sklearn.tree import DecisionTreeRegressor

from fastpd_sklearn.forest._lineage import raw_origins, tied_columns, trace_steps

pd = pytest.importorskip("pandas")

NAMES = ["a", "b", "c", "d"]


class Sampler:
    """Stands for those of imbalanced-learn."""

    def fit_resample(self, X, y):
        return X, y


def columns(*parts, **kwargs):
    named = [(f"part{k}", *part) for k, part in enumerate(parts)]
    return ColumnTransformer(named, **kwargs)


PREPROCESSING = {
    "reordered": columns((StandardScaler(), ["d", "a"]), ("passthrough", ["c"])),
    "twice": columns((StandardScaler(), ["d", "a"]), (OneHotEncoder(), ["a", "b"])),
    "splines": make_pipeline(SimpleImputer(), SplineTransformer(3)),
    "by number": columns((OneHotEncoder(), [3, 1]), remainder=OrdinalEncoder()),
    "by slice": columns((OneHotEncoder(), slice("b", "d")), remainder="passthrough"),
    "by mask": columns((OneHotEncoder(), [False, True, False, True]), remainder="drop"),
    "by type": columns((OrdinalEncoder(), make_column_selector(dtype_include=float))),
    "none": columns((OrdinalEncoder(), []), (StandardScaler(), ["b"])),
    "sparse": columns((OneHotEncoder(drop="if_binary"), ["a", "b", "c"]), sparse_threshold=1),
    "rare": columns((OneHotEncoder(max_categories=2, handle_unknown="ignore"), ["a", "c"])),
    "classes": columns((TargetEncoder(), ["c", "a"]), ("passthrough", ["d"])),
    "flags": columns((SimpleImputer(add_indicator=True), ["a", "d", "b"])),
    "gone": make_pipeline(SimpleImputer(), VarianceThreshold(0.8), StandardScaler()),
    "chosen": make_pipeline(SimpleImputer(), SelectFromModel(DecisionTreeRegressor())),
    "union": FeatureUnion([("hot", OneHotEncoder()), ("flag", MissingIndicator()), ("x", "drop")]),
    "mixing": columns((make_pipeline(SimpleImputer(), PCA(2)), ["a", "c"]), ("passthrough", ["d"])),
    "products": make_pipeline(SimpleImputer(), PolynomialFeatures(2, include_bias=False)),
    "sampled": Pipeline([("sampler", Sampler()), ("scaler", StandardScaler())]),
    "unknown": make_pipeline(FunctionTransformer(lambda X: X[["b", "c"]]), StandardScaler()),
}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(80, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1] = rng.integers(0, 2, 80)
    return pd.DataFrame(X, columns=NAMES)


def dense(X):
    return np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=float)


def really_depends(transform, data):
    """Which outputs change as each raw column alone is shuffled: outputs by raw columns."""
    rng = np.random.default_rng(1)
    truth = dense(transform(data))
    found = np.zeros((truth.shape[1], data.shape[1]), bool)
    for j, name in enumerate(data.columns):
        for _ in range(5):
            order = rng.permutation(len(data))
            changed = dense(transform(data.assign(**{name: data[name].to_numpy()[order]})))
            same = np.isclose(changed, truth, equal_nan=True, rtol=1e-9, atol=1e-9)
            found[:, j] |= ~same.all(axis=0)
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", PREPROCESSING)
def test_columns_stem_from_where_they_are_said_to(data, name):
    step = PREPROCESSING[name]
    y = np.arange(len(data)) % 3
    if name == "sampled":
        step[-1].fit(data)
        transform = step[-1].transform
    else:
        transform = step.fit(data, y).transform
    width = dense(transform(data)).shape[1]
    origins = trace_steps([("step", step)], raw_origins(data.shape[1]), width)
    said = np.zeros((width, data.shape[1]), bool)
    for k, origin in enumerate(origins):
        said[k, list(origin.columns)] = True
    truth = really_depends(transform, data)
    if name == "unknown":
        assert said.all()
    elif name == "splines":  # on few distinct numbers some of them are zero throughout
        assert (truth <= said).all()
        assert (said.sum(axis=1) == 1).all()
    else:
        assert (said == truth).all()


def test_what_is_tied(data):
    filled = data.fillna(0.0)
    step = columns((PCA(1), ["a", "c"]), (Normalizer(), ["c", "d"]), ("passthrough", ["b"]))
    origins = trace_steps([("pre", step.fit(filled))], raw_origins(4), 4)
    assert tied_columns(origins) == [("pre__part0+pre__part1", [0, 2, 3])]
    pipe = make_pipeline(columns((PCA(1), ["a", "c"]), (PCA(1), ["b", "d"])).fit(filled))
    origins = trace_steps(pipe.steps, raw_origins(4), 2)
    assert [where for _, where in tied_columns(origins)] == [[0, 2], [1, 3]]


def test_shapes(data):
    step = columns(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["a"]),
        (make_pipeline(SimpleImputer(missing_values=3.0), StandardScaler()), ["b"]),
        (make_pipeline(OrdinalEncoder(), StandardScaler()), ["c"]),
        (make_pipeline(SimpleImputer(), KBinsDiscretizer(2, encode="onehot")), ["d"]),
        (SimpleImputer(), ["d"]),
        (make_pipeline(StandardScaler(), OrdinalEncoder()), ["a"]),
    )
    step.fit(data)
    origins = trace_steps([("pre", step)], raw_origins(4), None)
    shapes = ["monotone", "other", "labels", "bins", "bins", "same", "other"]
    assert [origin.shape for origin in origins] == shapes
    assert origins[1].shaped_by == "pre__part1__simpleimputer"
    assert np.array_equal(origins[2].labels, [0, 1, 2, 3, np.nan], equal_nan=True)
    assert origins[3].n_bins == 2
