"""Explainers in files: what comes back, and what damaged and hostile files are told."""

import contextlib
import io
import json
import pickle
import subprocess
import sys
import zipfile

import lightgbm
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import (
    FastPDExplainer,
    PathDependentExplainer,
    VanillaPDExplainer,
    load_explainer,
)
from fastpd_sklearn.core import linear_model
from fastpd_sklearn.core.background import MaskCounts
from fastpd_sklearn.explainers import _empirical, _fastpd
from fastpd_sklearn.explainers._archive import HEADER, decode, encode

# Models that were fitted on frames warn when they are given arrays.
pytestmark = pytest.mark.filterwarnings("ignore:X does not have valid feature names")


def rows(n=60):
    """Four columns: numbers, some of them missing, and categories."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4)).round(1)
    X[:, 3] = rng.integers(0, 5, n)
    X[rng.random((n, 4)) < 0.1] = np.nan
    return X


X = rows()
WEIGHTS = np.random.default_rng(1).random(60)
SUM = np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2] + (X[:, 3] == 2))


@pytest.fixture(scope="module")
def model():
    made = HistGradientBoostingRegressor(
        max_iter=4, min_samples_leaf=3, categorical_features=[3], random_state=0
    )
    return made.fit(X, SUM)


@pytest.fixture(scope="module")
def classifier():
    labels = np.array(["low", "mid", "high"])[np.digitize(SUM, [-0.5, 0.5])]
    return HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=3).fit(X, labels)


KINDS = {
    "counted masks": FastPDExplainer(output="shap"),
    "kept rows": FastPDExplainer(output="component", features=[0, ("x1", 2)]),
    "walked rows": FastPDExplainer(output="component", max_order=2),
    "pairs of rows": FastPDExplainer(output="shap", n_jackknife=3),
    "response": FastPDExplainer(response_method="predict_proba", target="mid"),
    "covers": PathDependentExplainer(output="shap_interaction"),
    "linear counts": FastPDExplainer(output="shap"),
    "linear rows": FastPDExplainer(output="component"),
    "mixed answers": FastPDExplainer(features=[0, (0, 2)]),
    "groups": FastPDExplainer(groups={"g": [0, 3]}, output="banzhaf", n_jackknife=2),
}


@pytest.fixture(scope="module")
def linear():
    """Leaves are linear functions of two columns, one of which has missing values."""
    made = lightgbm.LGBMRegressor(
        n_estimators=3, num_leaves=4, min_child_samples=8, linear_tree=True, n_jobs=1, verbose=-1
    )
    return made.fit(X[:, :3], SUM)


@pytest.fixture(scope="module")
def calibrated():
    labels = np.digitize(SUM, [-0.5, 0.5])
    members = [
        CalibratedClassifierCV(GradientBoostingClassifier(n_estimators=2), cv=2),
        CalibratedClassifierCV(RandomForestClassifier(2), method="isotonic", cv=2),
    ]
    vote = VotingClassifier([("a", members[0]), ("b", members[1])], voting="soft", weights=[1, 2])
    return vote.fit(np.nan_to_num(X), labels)


@pytest.fixture
def models(model, classifier, linear, calibrated):
    return model, classifier, linear, calibrated


@pytest.fixture(params=KINDS)
def fitted(request, monkeypatch, models):
    return make(request.param, monkeypatch, models)


def rows_of(kind):
    """The rows that the explainer of a kind is for."""
    if kind.startswith("linear"):
        return X[:, :3]
    return np.nan_to_num(X) if kind == "mixed answers" else X


def make(kind, monkeypatch, models):
    model, classifier, linear, calibrated = models
    if kind == "counted masks":
        monkeypatch.setattr(_empirical, "make_background", lambda core, n_rows: MaskCounts())
    if kind == "walked rows":
        monkeypatch.setattr(_fastpd, "walks_sooner", lambda forest, n_rows: True)
    if kind == "pairs of rows":
        monkeypatch.setattr(_fastpd, "is_deep", lambda forest: True)
    if kind == "linear rows":
        monkeypatch.setattr(linear_model, "MOST_COUNTS", 0)
    others = {"response": classifier, "mixed answers": calibrated}
    which = linear if kind.startswith("linear") else others.get(kind, model)
    weights = None if kind in ("counted masks", "response") else WEIGHTS
    return clone(KINDS[kind]).fit(which, rows_of(kind), sample_weight=weights)


def written(explainer):
    file = io.BytesIO()
    explainer.save(file)
    return io.BytesIO(file.getvalue())


def assert_alike(one, other, data=X):
    """Whether two explainers say the same, to the last bit."""
    assert type(one) is type(other)
    assert_array_equal(one.transform(data), other.transform(data))
    assert_array_equal(one.intercept_, other.intercept_)
    assert_array_equal(one.explain(data[:3]).remainder, other.explain(data[:3]).remainder)
    assert_array_equal(one.get_feature_names_out(), other.get_feature_names_out())
    for ask in (
        lambda e: e.terms_,
        lambda e: e.response_method_,
        lambda e: e.n_features_in_,
        lambda e: e.__sklearn_tags__(),
        lambda e: {**e.get_params(deep=False), "estimator": None, "surrogate": None},
    ):
        assert repr(ask(one)) == repr(ask(other))


def data_of(explainer):
    return np.nan_to_num(X)[:, : explainer.n_features_in_]


def test_it_comes_back(fitted):
    opened, data = load_explainer(written(fitted)), data_of(fitted)
    assert_alike(opened, fitted, data)
    assert opened.estimator is None
    assert not hasattr(opened, "estimator_")
    assert_array_equal(getattr(opened, "classes_", 0), getattr(fitted, "classes_", 0))
    name = fitted.terms_[-1]
    for features in (name, name[0]):
        if not fitted.groups:
            found = opened.partial_dependence(features)
            truth = fitted.partial_dependence(features)
            assert_array_equal(found.average, truth.average)
            assert_array_equal(found.grid_values[0], truth.grid_values[0])
    if fitted.n_jackknife:
        assert_array_equal(opened.standard_error(data), fitted.standard_error(data))
        assert_array_equal(opened.intercept_error_, fitted.intercept_error_)


def test_it_goes_on(fitted):
    """It takes more rows, is merged, pickled, and written again."""
    opened, data = load_explainer(written(fitted)), data_of(fitted)
    both = opened.merge(fitted)
    assert_alike(load_explainer(written(both)), pickle.loads(pickle.dumps(both)), data)
    more = load_explainer(written(fitted)).partial_fit(data[:20])
    assert_alike(more, fitted.partial_fit(data[:20]), data)


def test_path(tmp_path, model):
    explainer = FastPDExplainer().fit(model, X)
    for path in (tmp_path / "some.explainer", str(tmp_path / "other.zip")):
        explainer.save(path)
        explainer.save(path)
        assert_alike(load_explainer(path), explainer)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.zip", "some.explainer"]
    with pytest.raises(FileNotFoundError):
        load_explainer(tmp_path / "none")
    with pytest.raises(FileNotFoundError):
        explainer.save(tmp_path / "none" / "file")


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, model, monkeypatch):
    explainer, path = FastPDExplainer().fit(model, X), tmp_path / "file"
    explainer.save(path)
    before = path.read_bytes()
    monkeypatch.setattr(np.lib.format, "write_array", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        explainer.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_without_a_background():
    Z = np.nan_to_num(X)
    explainer = PathDependentExplainer().fit(RandomForestRegressor(2, random_state=0).fit(Z, SUM))
    opened = load_explainer(written(explainer))
    assert_alike(opened, explainer)
    assert_array_equal(
        opened.partial_dependence(0).average, explainer.partial_dependence(0).average
    )


def test_surrogate():
    Z = np.nan_to_num(X)
    explainer = FastPDExplainer(surrogate=True).fit(LinearRegression().fit(Z, SUM), Z)
    opened = load_explainer(written(explainer))
    assert_array_equal(opened.transform(Z), explainer.transform(Z))
    assert opened.surrogate_score_ == explainer.surrogate_score_
    assert opened.surrogate is None
    assert not hasattr(opened, "surrogate_")


def test_a_model_without_trees():
    """Nothing but a constant."""
    model = RandomForestRegressor(1, random_state=0).fit(X[:5] * 0 + 1, np.ones(5))
    for explainer in (FastPDExplainer(), PathDependentExplainer()):
        explainer.fit(model, np.ones((3, 4)))
        assert_alike(load_explainer(written(explainer)), explainer, np.ones((3, 4)))


def test_without_the_models_library(tmp_path):
    """In a process that cannot import it."""
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(X, SUM)
    explainer = FastPDExplainer(output="shap").fit(model, X)
    explainer.save(tmp_path / "file")
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "values.npy", explainer.transform(X))
    code = (
        "import sys; sys.modules['xgboost'] = None\n"
        "import numpy as np\n"
        "from fastpd_sklearn import load_explainer\n"
        f"folder = {str(tmp_path)!r}\n"
        "values = load_explainer(folder + '/file').transform(np.load(folder + '/X.npy'))\n"
        "assert (values == np.load(folder + '/values.npy')).all()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_frames(frame):
    """Rows of a frame are of the same types when it is opened."""
    data = frame(np.nan_to_num(X), list("abcd"))
    model = RandomForestRegressor(2, max_depth=3, random_state=0).fit(data, SUM)
    explainer = FastPDExplainer().fit(model, data)
    opened = load_explainer(written(explainer))
    assert_array_equal(opened.feature_names_in_, explainer.feature_names_in_)
    assert_array_equal(opened.transform(data), explainer.transform(data))
    before, after = (e._fitted.template.row for e in (explainer, opened))
    assert after.equals(before)
    assert_array_equal(*(e.partial_dependence("a").average for e in (explainer, opened)))


def test_columns_of_every_type():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame(
        {
            "float": X[:, 0],
            "single": X[:, 1].astype(np.float32),
            "nullable": pd.array([1, None, 3] * 20, dtype="Int64"),
            "bool": [True, False] * 30,
            "words": pd.Categorical(["u", "v", None, "w"] * 15),
            "numbers": pd.Categorical([3, 1, 2] * 20, ordered=True),
        }
    )
    model = lightgbm.LGBMRegressor(n_estimators=5, min_child_samples=3, verbose=-1, n_jobs=1)
    model.fit(data, SUM + (data["words"] == "v"))
    for part in (data, data[2:], data[1:]):
        explainer = FastPDExplainer(output="shap").fit(model, part)
        opened = load_explainer(written(explainer))
        assert_array_equal(opened.transform(data), explainer.transform(data))
        assert opened._fitted.template.row.equals(
            explainer._fitted.template.row.reset_index(drop=True)
        )
        assert list(opened._fitted.template.row.dtypes) == list(data.dtypes)
        for name in data.columns:
            found, truth = (e.partial_dependence(name) for e in (opened, explainer))
            assert_array_equal(found.average, truth.average)
            assert repr(found.grid_values) == repr(truth.grid_values)


def test_a_file_and_a_fit_are_merged_where_there_are_labels():
    pd = pytest.importorskip("pandas")
    data = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(["u", "v", "w"] * 20)})
    model = HistGradientBoostingRegressor(
        max_iter=3, min_samples_leaf=3, categorical_features="from_dtype"
    ).fit(data, SUM)
    opened = load_explainer(written(FastPDExplainer().fit(model, data[:20])))
    whole = FastPDExplainer().fit(model, data)
    for one in (
        opened.merge(FastPDExplainer().fit(model, data[20:])),
        load_explainer(written(whole)),
    ):
        assert_array_equal(one.transform(data), whole.transform(data))


def test_labels_that_are_looked_up_by_their_hash():
    catboost = pytest.importorskip("catboost")
    data = np.column_stack([np.nan_to_num(X[:, 0]).astype(object), ["u", "v", "w"] * 20])
    model = catboost.CatBoostRegressor(
        iterations=4,
        depth=3,
        one_hot_max_size=9,
        verbose=0,
        thread_count=1,
        cat_features=[1],
        allow_writing_files=False,
    ).fit(data, SUM + (data[:, 1] == "v"))
    explainer = FastPDExplainer().fit(model, data)
    opened = load_explainer(written(explainer))
    assert_array_equal(opened.transform(data), explainer.transform(data))
    assert_array_equal(opened.merge(explainer).intercept_, explainer.intercept_)


def test_polars_of_every_type():
    pl = pytest.importorskip("polars")
    xgboost = pytest.importorskip("xgboost", "3.1", reason="before, it takes no polars categories")
    data = pl.DataFrame(
        {
            "float": np.nan_to_num(X[:, 0]),
            "int": np.arange(60) % 7,
            "enum": pl.Series(["u", "v", "w"] * 20, dtype=pl.Enum(["u", "v", "w"])),
        }
    )
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, enable_categorical=True, n_jobs=1)
    explainer = FastPDExplainer().fit(model.fit(data, SUM), data)
    opened = load_explainer(written(explainer))
    assert_array_equal(opened.transform(data), explainer.transform(data))
    assert opened._fitted.template.row.equals(explainer._fitted.template.row)
    assert opened._fitted.template.row.schema == data.schema


def test_sparse():
    xgboost = pytest.importorskip("xgboost")
    data = sparse.csr_array(np.nan_to_num(X) * (X > 0))
    model = xgboost.XGBRegressor(n_estimators=4, max_depth=3, n_jobs=1).fit(data, SUM)
    explainer = FastPDExplainer().fit(model, data)
    opened = load_explainer(written(explainer))
    assert_array_equal(opened.transform(data), explainer.transform(data))
    assert_array_equal(*(e.partial_dependence(0).average for e in (explainer, opened)))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        0.1,
        np.nan,
        -np.inf,
        np.float32(0.1),
        np.float32(np.nan),
        np.int64(7),
        np.bool_(True),
        np.str_("a"),
        (1, ("b", 2.5)),
        [[], [None]],
        {"a": 1, 2: (3,), ("x", "y"): []},
        frozenset({1, 2}),
        np.arange(6).reshape(2, 3),
        np.array([0.1, np.nan], np.float32),
        np.array(["a", 1, None, 2.5], object),
        np.array([], object),
        np.array(["a", "bcd"]),
    ],
    ids=repr,
)
def test_plain_values(value):
    found = decode(json.loads(json.dumps(encode(value), allow_nan=False)))
    assert repr(found) == repr(value) or found == value
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype


# ------------------------------------------------------------------------------ what is not


def test_what_is_not_written(model):
    Z = np.nan_to_num(X)
    with pytest.raises(NotFittedError):
        FastPDExplainer().save(io.BytesIO())
    pipe = make_pipeline(StandardScaler(), RandomForestRegressor(2)).fit(Z, SUM)
    stack = StackingRegressor([("a", RandomForestRegressor(2))], RandomForestRegressor(2), cv=2)
    with pytest.raises(ValueError, match=r"found by other code \(Stacked\) can't be saved; pickle"):
        written(FastPDExplainer().fit(stack.fit(Z, SUM), Z))
    with pytest.raises(ValueError, match=r"the steps of a pipeline are code; explain its last"):
        written(FastPDExplainer().fit(pipe, Z))
    assert not hasattr(VanillaPDExplainer().fit(model, X[:5]), "save")

    class Own(FastPDExplainer):
        pass

    with pytest.raises(TypeError, match="not the class Own; pickle it"):
        written(Own().fit(model, X))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda head: head.update(kind="Stacked"), "unknown kind 'Stacked'"),
        (lambda head: head.pop("note"), "other entries"),
        (lambda head: head["link"].update(n_classes=0.5, more=1), "other entries"),
        (lambda head: head["link"]["answers"][0].update(n_raw=7), "does not part"),
        (lambda head: head["link"]["combine"].update(shares=np.array([1.0])), ""),
        (lambda head: head.update(link="cubic"), "link='cubic' is not one of"),
    ],
)
def test_links_that_are_not_known(monkeypatch, models, change, message):
    file = members(written(make("mixed answers", monkeypatch, models)))
    content = decode(json.loads(file[HEADER])["content"])
    change(content["head"])
    refused(changed(file, content=encode(content)), message)


def test_labels_that_are_neither_numbers_nor_text():
    pd = pytest.importorskip("pandas")
    days = pd.Categorical(pd.to_datetime(["2020-01-01", "2020-01-02"] * 30))
    data = pd.DataFrame({"a": X[:, 0], "day": days})
    model = HistGradientBoostingRegressor(
        max_iter=2, min_samples_leaf=3, categorical_features="from_dtype"
    )
    explainer = FastPDExplainer().fit(model.fit(data, SUM), data)
    with pytest.raises(ValueError, match=r"numbers and text only: .* can't be saved; pickle"):
        written(explainer)


def members(file):
    with zipfile.ZipFile(file) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def packed(found, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as out:
        for name, content in found.items():
            out.writestr(name, content)
    return io.BytesIO(file.getvalue())


def npy(array, **options):
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.fixture(scope="module")
def file(model):
    return members(written(FastPDExplainer(output="shap").fit(model, X)))


def refused(found, match="", **options):
    with pytest.raises(ValueError, match=rf"(?s)is no explainer that was saved: .*{match}"):
        load_explainer(packed(found, **options))


def opened_or_refused(file):
    """The explainer of a file, or of its members; None if it is refused as it should be."""
    try:
        return load_explainer(packed(file) if isinstance(file, dict) else file)
    except ValueError as error:
        if "is no explainer that was saved" not in str(error):
            raise
        return None


def changed(file, **changes):
    """The file with entries of its header replaced."""
    return {**file, HEADER: json.dumps({**json.loads(file[HEADER]), **changes}).encode()}


def test_other_files(tmp_path, file):
    for content in (b"", b"PK", b"text" * 100, pickle.dumps([1]), packed({}).getvalue()):
        path = tmp_path / "file"
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"file is no explainer that was saved: "):
            load_explainer(path)
    refused({"a.npy": npy(np.arange(3))}, "has no explainer.json")
    refused({HEADER: b"[1]"}, "no object")
    refused({HEADER: b"{"})
    refused({HEADER: b"\xff"})
    refused({HEADER: b"[" * 100_000})
    refused({HEADER: b'{"format": NaN}', **{}}, "no JSON")
    refused({HEADER: b"{}"}, "does not say that it is one")
    refused({**file, "code.py": b"print()"}, "unknown member 'code.py'")
    refused(file, "compressed", compression=zipfile.ZIP_DEFLATED)


def test_truncated(file):
    content = packed(file).getvalue()
    for length in np.linspace(0, len(content) - 1, 60).astype(int):
        with pytest.raises(ValueError, match="is no explainer that was saved"):
            load_explainer(io.BytesIO(content[:length]))


def test_flipped_bits(file):
    """Either refused, or a bit that does not matter."""
    content = packed(file).getvalue()
    truth = load_explainer(io.BytesIO(content)).transform(X[:3])
    rng = np.random.default_rng(0)
    n_refused = 0
    for place in rng.integers(0, len(content), 200):
        damaged = bytearray(content)
        damaged[place] ^= 1 << rng.integers(8)
        opened = opened_or_refused(io.BytesIO(bytes(damaged)))
        n_refused += opened is None
        if opened is not None:
            assert_array_equal(opened.transform(X[:3]), truth)
    assert n_refused > 100


def test_versions(file):
    refused(changed(file, version=2), r"written in version 2 of the format .*this is version 1")
    refused(changed(file, version=True), "written in version True")
    refused(changed(file, state=7), "state 7")
    refused(changed(file, format="another"), "does not say")
    refused(changed(file, more=1), "other entries")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["attributes"].update(feature_names_in_=True), "not 4 names"),
        (lambda c: c["attributes"].update(feature_names_in_=np.arange(4)), "not 4 names"),
        (lambda c: c["attributes"].update(feature_names_in_=np.array(["a"], object)), "not 4 nam"),
        (lambda c: c.update(output="banzhaf"), "output='shap' and values of the output 'banzhaf'"),
    ],
)
def test_headers_at_odds_with_themselves(file, change, message):
    content = decode(json.loads(file[HEADER])["content"])
    change(content)
    refused(changed(file, content=encode(content)), message)


def test_arrays_that_run_code_or_lie(file):
    class Bomb:
        def __reduce__(self):
            return (print, ("boom",))

    name = "forest/value.npy"
    refused({**file, name: npy(np.array([Bomb()], object), allow_pickle=True)}, "no array of numb")
    refused({**file, name: file[name][:-8]}, "not as large as it says")
    huge = file[name].replace(b"(", b"(9999999999, ", 1)
    refused({**file, name: huge})
    refused({**file, name: npy(np.zeros(3, "U4"))}, "no array of numbers")
    refused({k: v for k, v in file.items() if k != name}, "lacks the array")
    refused({**file, "forest/more.npy": npy(np.zeros(3))}, "unknown arrays")
    refused({**file, "state/more.npy": npy(np.zeros(3))}, "unknown arrays")
    refused({**file, "state/rows.npy": npy(np.zeros(3))}, "rows")


def sweeps(array):
    """Arrays that are like another one but for a value, the shape or the type."""
    flat = array.ravel()
    odd = [0, -1, 1, 63, 2**31 - 1, -(2**31), 2**62]
    odd = [v for v in odd if array.dtype.kind == "f" or np.iinfo(array.dtype).min <= v]
    if array.dtype.kind in "iu":
        odd = [v for v in odd if v <= np.iinfo(array.dtype).max]
    if array.dtype.kind == "f":
        odd += [np.nan, np.inf, 1e300]
    for place in {0, len(flat) - 1} if len(flat) else ():
        for value in odd:
            other = flat.copy()
            other[place] = value
            yield other.reshape(array.shape)
    yield array[:-1]
    yield array[:0]
    yield np.concatenate([array, array])
    yield array[::-1].copy()
    yield array[None]
    yield array.astype(np.float32)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_hostile_arrays(monkeypatch, models, kind):
    """Whatever an array holds: it is refused, or explained without a crash.

    The hash of the forest is made to fit, as whoever forges a file can do.
    """
    explainer, data = make(kind, monkeypatch, models), rows_of(kind)[:2]
    monkeypatch.setattr("fastpd_sklearn.forest._forest.Forest.digest", lambda forest: "same")
    content = members(written(explainer))
    forged = json.loads(content[HEADER])
    for pair in forged["content"]["dict"]:
        pair[1] = "same" if pair[0] == "digest" else pair[1]
    content[HEADER] = json.dumps(forged).encode()
    load_explainer(packed(content)).transform(data)
    n_refused = n_taken = 0
    for name in [name for name in content if name != HEADER]:
        array = np.load(io.BytesIO(content[name]))
        if array.dtype.kind == "b":
            continue  # every value of it is a possible one
        for other in sweeps(array):
            opened = opened_or_refused({**content, name: npy(other)})
            n_refused += opened is None
            if opened is not None:
                opened.transform(data)
                n_taken += 1
    assert n_refused > n_taken > 0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["counted masks", "mixed answers"])
def test_hostile_header(monkeypatch, models, kind):
    """Every value of the header replaced by others."""
    file = members(written(make(kind, monkeypatch, models)))
    header = json.loads(file[HEADER])

    def places(value, path=()):
        yield path
        if isinstance(value, dict | list):
            entries = value.items() if isinstance(value, dict) else enumerate(value)
            for key, item in entries:
                yield from places(item, (*path, key))

    every = [path for path in places(header["content"]) if path]
    rng = np.random.default_rng(0)
    for n in rng.choice(len(every), 60, replace=False):
        for value in (None, -1, 10**12, "", {}, {"list": []}, {"float": "nan"}, True):
            forged = json.loads(file[HEADER])
            at = forged["content"]
            for key in every[n][:-1]:
                at = at[key]
            at[every[n][-1]] = value
            opened = opened_or_refused(changed(file, content=forged["content"]))
            if opened is not None:
                with contextlib.suppress(Exception):  # any error will do, a crash will not
                    opened.transform(rows_of(kind)[:2])
