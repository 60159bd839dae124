"""Quantiles, curves and accumulated effects of rows that come in chunks, over several passes."""

import itertools
import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pandas.api.types import union_categoricals
from scipy.stats.mstats import mquantiles
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fastpd_sklearn import ALEExplainer, ICEExplainer
from fastpd_sklearn.explainers import _ale_sums, _order
from fastpd_sklearn.explainers._order import NotYetError, PassedNumbers, Scope, Tally
from fastpd_sklearn.explainers._passes import Place, ask_all, first_pass
from fastpd_sklearn.explainers._surveys import FiniteNumbers
from tests.explainers import ale_oracle

RNG = np.random.default_rng(0)
X = RNG.normal(size=(160, 4)).round(2)
X[RNG.random(X.shape) < 0.05] = np.nan
X[:, 3] = RNG.integers(0, 5, len(X))
X[::9, 3] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1] + (X[:, 3] == 2))
WEIGHTS = RNG.random(len(X)) * (np.arange(len(X)) % 5 > 0)
CUTS = [0, 30, 31, 31, 100, 160]


@pytest.fixture(scope="module")
def model():
    made = HistGradientBoostingRegressor(max_iter=5, min_samples_leaf=3, categorical_features=[3])
    return made.fit(X, Y)


LIMITS = {
    "counted by value": {},
    "counted by cells": {"MOST_CELLS": 32},
    "counted quickly": {"MOST_CELLS": 200, "MANY": 20, "QUICK_BITS": 6, "MOST_LOOKED_UP": 2**12},
}


@pytest.fixture(params=LIMITS)
def most_cells(request, monkeypatch):
    for name, value in LIMITS[request.param].items():
        monkeypatch.setattr(_order, name, value)


def cut(rows):
    return [rows[start:stop] for start, stop in itertools.pairwise(CUTS)]


def chunks(weights=None):
    return cut(X) if weights is None else list(zip(cut(X), cut(weights), strict=True))


class Again:
    """Rows that are made anew whenever they are gone through."""

    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return self.make()


# ------------------------------------------------------------------------- order statistics

VALUES = {
    "normal": RNG.normal(size=3000),
    "heavy tails": RNG.standard_cauchy(3000) ** 5,
    "far from zero": 1e9 + RNG.integers(0, 10**5, 3000) * 1e-7,
    "few": RNG.integers(-3, 4, 3000) * 1.0,
    "tied but for some": np.where(RNG.random(3000) < 0.9, 0.5, RNG.normal(size=3000)),
    "tiny": RNG.normal(size=3000) * 1e-310,
    "signed zeros": np.array([0.0, -0.0, 5.0, -1.0]),
    "one": np.array([2.0]),
}


class HeldPasses:
    """Passes over chunks of a matrix."""

    def __init__(self, parts):
        self.parts, self.n_passes = parts, 0

    def add_up(self, function):
        self.n_passes += 1
        first, *others = (function(*part, Place(k, 0)) for k, part in enumerate(self.parts))
        return sum(others, first)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", VALUES)
def test_order_statistics_are_those_of_the_sorted_values(kind, weighted, most_cells):
    values = VALUES[kind]
    weights = RNG.random(len(values)) if weighted else None
    parts = [
        (values[k::3, None], None if weights is None else weights[k::3])
        for k in range(min(3, len(values)))
    ]
    passes, numbers = HeldPasses(parts), FiniteNumbers(0.0)
    order = np.argsort(values, kind="stable")
    ranks = np.linspace(0, len(values) - 1, 7).astype(int)
    total = np.cumsum(np.ones(len(values)) if weights is None else weights[order])
    wanted = np.array([0.0, 0.3, 0.5, 0.999999]) * total[-1]
    for question, truth in (
        (lambda n: n.at(ranks), values[order][ranks]),
        (lambda n: n.at_weights(wanted), values[order][np.searchsorted(total, wanted)]),
        (lambda n: n.distinct(), np.unique(values)),
        (lambda n: n.few(7), np.unique(values) if len(np.unique(values)) < 8 else None),
    ):
        ordered = first_pass(passes, [0], numbers)
        assert ordered[0].n == len(values)
        found = ask_all(passes, ordered, {0: question}, numbers)[0]
        assert found is truth is None or np.array_equal(found, truth)
    assert passes.n_passes < 60


def test_memory_stays_bounded():
    scope, total = Scope(None, 64, 100), None
    for _ in range(20):
        found = Tally.of(RNG.normal(size=1000), None, scope)
        total = found if total is None else total + found
        assert len(total.cells) <= 100
    assert total.counts.sum() == 20_000
    numbers = PassedNumbers()
    numbers.refine(total)
    with pytest.raises(NotYetError):
        numbers.at([10_000])
    assert len(numbers.scope.cells) == 1


# ----------------------------------------------------------------------- accumulated effects


def assert_same_effects(one, other):
    assert vars(one).keys() == vars(other).keys()
    for found, truth in zip(one.effects_, other.effects_, strict=True):
        for points, others in zip(found.grid_values, truth.grid_values, strict=True):
            assert_array_equal(points, others)
        for name in ("effect", "local_effect", "local_std", "lower", "upper", "bin_counts"):
            if getattr(truth, name, None) is not None:
                assert_allclose(
                    getattr(found, name), getattr(truth, name), rtol=1e-9, atol=1e-12, err_msg=name
                )
        assert found.n_outside == truth.n_outside


ASKED = {
    "all": {},
    "pairs": {"features": [0, (0, 1), 3], "n_bins": 7},
    "bootstrap": {"n_bootstrap": 10, "random_state": 0, "n_bins": 5},
    "given": {"custom_values": {0: [-1, 0, 0.001, 0.0012, 1], 3: [4, 0, 2, 1, 3]}},
    "coded": {"category_order": "coded", "confidence": None},
    "number as label": {"categorical_features": [2, 3], "features": [2]},
}


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("asked", ASKED)
def test_effects_of_chunks_are_those_of_their_rows(model, asked, weights, most_cells):
    explainer = ALEExplainer(**ASKED[asked]).fit(model, chunks(weights))
    whole = ALEExplainer(**ASKED[asked]).fit(model, X, sample_weight=weights)
    assert_same_effects(explainer, whole)
    known = X if weights is None else X[weights > 0]
    assert_allclose(explainer.transform(known), whole.transform(known), atol=1e-12)


def test_chunks_with_weights_and_without(model, most_cells):
    high = [X[X[:, 0] > 0.5], X[~(X[:, 0] > 0.5)]]  # the upper quantiles are in the first one
    weights = np.ones(len(X))
    weights[len(high[0]) :] = RNG.random(len(high[1]))
    parts = [(high[0], None), (high[1], weights[len(high[0]) :])]
    for chunks_ in (parts, parts[::-1]):
        explainer = ALEExplainer(n_bins=6).fit(model, chunks_)
        whole = ALEExplainer(n_bins=6).fit(model, np.vstack(high), sample_weight=weights)
        assert_same_effects(explainer, whole)


def test_effects_are_those_of_the_definition(model, most_cells):
    rows = np.nan_to_num(X)[:40]
    explainer = ALEExplainer(features=[0], n_bins=6).fit(model, [rows[:9], rows[9:]])
    edges = explainer.effects_[0].grid_values[0]
    assert_array_equal(
        edges, np.unique(np.quantile(rows[:, 0], np.linspace(0, 1, 7), method="inverted_cdf"))
    )
    effect, mean, local = ale_oracle.first_order(model.predict, rows, 0, edges)
    assert_allclose(explainer.effects_[0].effect[0], effect, atol=1e-9)
    assert_allclose(explainer.effects_[0].local_effect[0], mean, atol=1e-9)
    assert_array_equal(explainer.effects_[0].bin_counts, [len(d) for d in local])


def frames():
    """Words with an order of their own, words without one, some missing, and numbers."""
    words = pd.Series(np.array(list("wvuvwx"))[np.arange(120) % 6])
    sizes = pd.Categorical(
        np.array(["small", "large", None, "mid"], object)[np.arange(120) % 4],
        ["small", "mid", "large", "huge"],
        ordered=True,
    )
    number = RNG.normal(size=120) + (words == "v") * 2 + (words == "x")
    return pd.DataFrame({"word": words.astype(object), "size": sizes, "number": number})


ORDER = ["huge", "large", "mid", "small"]


class ByLabels:
    """A model of a frame."""

    def predict(self, rows):
        word = rows["word"].map({"u": 0.0, "v": 2.0, "w": 3.0, "x": 1.0}).to_numpy(float)
        return word * rows["number"].to_numpy() + (rows["size"] == "mid").to_numpy()


@pytest.mark.parametrize("own", [False, True], ids=["all categories", "those of each chunk"])
def test_labels_of_chunks(own, most_cells):
    rows = frames()
    parts = [rows[:9], rows[9:10], rows[10:]]
    if own:  # as Arrow's batches have them
        parts = [part.assign(word=part["word"].astype("category")) for part in parts]
        rows["word"] = union_categoricals([part["word"] for part in parts])
    for cls in (ALEExplainer, ICEExplainer):
        explainer, whole = cls().fit(ByLabels(), parts), cls().fit(ByLabels(), rows)
        if cls is ALEExplainer:
            assert_same_effects(explainer, whole)
            points = [effect.grid_values[0] for effect in explainer.effects_]
        else:
            points = explainer.grid_values_
            for found, truth in zip(points, whole.grid_values_, strict=True):
                assert repr(found) == repr(truth)
        assert set(points[0]) == set("uvwx")


def test_categories_in_another_order(model):
    rows = frames()
    parts = [rows[:50], rows[50:].assign(size=rows["size"][50:].cat.reorder_categories(ORDER))]
    with pytest.raises(ValueError, match="'size' has the ordered categories") as raised:
        ALEExplainer().fit(ByLabels(), parts)
    assert "in chunk 1" in raised.value.__notes__[0]


def test_every_kind_of_model(most_cells):
    rows = np.nan_to_num(X)
    classes = np.digitize(Y, [-0.5, 0.5])
    pipeline = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=3))
    for fitted, method in (
        (GradientBoostingClassifier(n_estimators=3).fit(rows, classes), "predict_proba"),
        (LinearRegression().fit(rows, Y), "auto"),
        (pipeline.fit(rows, Y), "auto"),
    ):
        params = {"features": [0, 1], "response_method": method}
        explainer = ALEExplainer(**params).fit(fitted, cut(rows))
        assert_same_effects(explainer, ALEExplainer(**params).fit(fitted, rows))
        curves = ICEExplainer(**params, grid_resolution=5).fit(fitted, cut(rows)).transform(rows)
        whole = ICEExplainer(**params, grid_resolution=5).fit(fitted, rows)
        assert_allclose(curves, whole.transform(rows), rtol=1e-12)


def test_missing_numbers_of_any_chunk_count():
    """A model that says nothing of missing numbers takes them if the background has some."""
    known = np.nan_to_num(X)

    class Sum:
        def predict(self, rows):
            return np.nan_to_num(rows).sum(axis=1)

        def __sklearn_tags__(self):
            return LinearRegression().__sklearn_tags__()

    late = [known[:100], X[100:]]
    assert np.isnan(ALEExplainer(features=[0]).fit(Sum(), late).transform(X)).any()
    with pytest.raises(ValueError, match="contains NaN"):
        ALEExplainer(features=[0]).fit(Sum(), cut(known)).transform(X)


def test_draws_belong_to_rows():
    settings = _ale_sums.Settings(5, {}, frozenset(), "coded", 0.9, 4, 1, 7)
    whole = settings.draws(0, 1000)
    assert whole.shape == (4, 1000)
    assert abs(whole.mean() - 1) < 0.1
    assert abs(whole.var() - 1) < 0.15
    for start, stop in ((0, 3), (255, 257), (300, 900)):
        assert_array_equal(settings.draws(start, stop), whole[:, start:stop])


# ------------------------------------------------------------------------- curves of rows

GRIDS = {
    "uniform": {"grid_resolution": 9},
    "quantile": {"grid_resolution": 9, "strategy": "quantile"},
    "unique": {"strategy": "unique", "missing": True},
    "exact": {"grid_resolution": "exact"},
    "few": {"grid_resolution": 200},
    "given": {"custom_values": {0: [-1, 0, 1]}, "centered": {1: 0.5}, "grid_resolution": 4},
    "slopes": {"derivative": True, "features": [1, 0], "grid_resolution": 5},
}


@pytest.mark.parametrize("asked", GRIDS)
def test_grids_of_chunks_are_those_of_their_rows(model, asked, most_cells):
    explainer = ICEExplainer(**GRIDS[asked]).fit(model, chunks(WEIGHTS))
    whole = ICEExplainer(**GRIDS[asked]).fit(model, X, sample_weight=WEIGHTS)
    assert vars(explainer).keys() == vars(whole).keys()
    for found, truth in zip(explainer.grid_values_, whole.grid_values_, strict=True):
        assert_array_equal(found, truth)
    assert_array_equal(explainer.transform(X), whole.transform(X))


def test_uniform_grids_lie_between_the_percentiles(model, most_cells):
    rows = np.nan_to_num(X)
    explainer = ICEExplainer(features=[0], grid_resolution=9).fit(model, cut(rows))
    low, high = mquantiles(rows[:, 0], [0.05, 0.95])
    assert_array_equal(explainer.grid_values_[0], np.linspace(low, high, 9))


def test_tied_columns_have_points(most_cells):
    rows = np.zeros((300, 1))
    rows[:12, 0] = np.arange(12)
    model = LinearRegression().fit(rows, rows[:, 0])
    explainer = ICEExplainer(grid_resolution=5).fit(model, [rows[:100], rows[100:]])
    assert_array_equal(explainer.grid_values_[0], [0, 3, 6, 8, 11])


# ----------------------------------------------------------------------------------- merge


def test_effects_over_the_same_bins_merge(model):
    bins = {0: [-4, -1, 0, 1, 4], 1: [-4, 0, 4], 3: [0, 1, 2, 3, 4]}
    params = {"features": [0, (0, 1), 3], "custom_values": bins, "categorical_features": [3]}
    parts = [
        ALEExplainer(**params).fit(model, X[k::3], sample_weight=WEIGHTS[k::3]) for k in range(3)
    ]
    whole = ALEExplainer(**params).fit(model, X, sample_weight=WEIGHTS)
    for order in ([0, 1, 2], [2, 0, 1]):
        one, *others = (pickle.loads(pickle.dumps(parts[k])).detach() for k in order)
        for other in others:
            assert one.merge(other) is one
        one.estimator_ = model
        assert_same_effects(one, whole)
        assert_allclose(one.transform(X), whole.transform(X), atol=1e-12)
    first = parts[0].effects_[0].effect.copy()
    parts[1].merge(parts[0])
    assert_array_equal(parts[0].effects_[0].effect, first)  # the other one stays as it is


def test_bootstraps_merge_if_they_drew_for_themselves(model):
    params = {"features": [0], "custom_values": {0: [-4, 0, 4]}, "n_bootstrap": 400}
    parts = [ALEExplainer(**params, random_state=k).fit(model, X[k::2]) for k in (0, 1)]
    whole = ALEExplainer(**params).fit(model, X)
    merged = parts[0].merge(parts[1]).effects_[0]
    width = merged.upper - merged.lower
    assert_allclose(width, whole.effects_[0].upper - whole.effects_[0].lower, rtol=0.35)
    with pytest.raises(ValueError, match="the same random numbers"):
        parts[1].merge(ALEExplainer(**params, random_state=1).fit(model, X))


def test_what_does_not_merge(model):
    bins = {0: [-4, 0, 4]}
    params = {"features": [0], "custom_values": bins}
    explainer = ALEExplainer(**params).fit(model, X)
    other_model = HistGradientBoostingRegressor(max_iter=2).fit(X, Y)
    called = LinearRegression().fit(np.nan_to_num(X), Y)
    for other, message in [
        (ALEExplainer(features=[0]).fit(model, X), "different bins.*of 'x0'.*custom_values"),
        (ALEExplainer(features=[0], custom_values={0: [-4, 1, 4]}).fit(model, X), "bins"),
        (ALEExplainer(features=[1], custom_values={1: [-4, 4]}).fit(model, X), "`features`"),
        (ALEExplainer(**params, confidence=0.5).fit(model, X), "`confidence`"),
        (ALEExplainer(**params).fit(other_model, X), "different models"),
        (ALEExplainer(**params).fit(called, np.nan_to_num(X)), "different models"),
        (ALEExplainer(**params).fit(model, pd.DataFrame(X, columns=list("abcd"))), "names_in_"),
    ]:
        with pytest.raises(ValueError, match=message):
            explainer.merge(other)
    with pytest.raises(TypeError, match="merge takes another ALEExplainer"):
        explainer.merge(ICEExplainer().fit(model, X))
    twins = [ALEExplainer(**params).fit(called, np.nan_to_num(X)) for _ in range(2)]
    twins[0].merge(pickle.loads(pickle.dumps(twins[1])))
    with pytest.raises(ValueError, match="merge first, and detach then"):
        twins[0].merge(twins[1].detach())


# ------------------------------------------------------------------------------------ errors

EXPLAINERS = [ALEExplainer(n_bins=4), ICEExplainer(grid_resolution=4)]


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
def test_rows_that_can_be_read_once_are_refused(model, explainer):
    pa = pytest.importorskip("pyarrow")
    batches = pa.Table.from_pandas(pd.DataFrame(X)).to_batches()
    for source in (iter(cut(X)), pa.RecordBatchReader.from_batches(batches[0].schema, batches)):
        with pytest.raises(TypeError, match="several times: give a list of chunks"):
            explainer.fit(model, source)
    explainer.fit(model, Again(lambda: iter(cut(X))))


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
def test_rows_that_change_are_noticed(model, explainer, monkeypatch):
    monkeypatch.setattr(_order, "MOST_CELLS", 16)
    kept = iter(cut(X))
    with pytest.raises(TypeError, match="can be read once"):
        explainer.fit(model, Again(lambda: kept))
    with pytest.raises(ValueError, match="chunk 0 had 1 rows with weight at first and 0 later"):
        explainer.fit(model, Again(lambda: itertools.chain(kept)))
    for later, message in (
        (X[:150], "had 160 rows with weight at first and 150 later"),
        (X[::-1], "160 later, but not the same ones"),
    ):
        calls = itertools.count()
        source = Again(lambda calls=calls, rows=later: iter([X if next(calls) < 5 else rows]))
        with pytest.raises(ValueError, match=message):
            explainer.fit(model, source)
    assert not explainer.__sklearn_is_fitted__()


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
@pytest.mark.parametrize(
    ("source", "error", "number"),
    [
        ([X[:5], X[:5, :3]], ValueError, 1),
        ([(X[:5], np.ones(5)), (X[:5], np.ones(4))], ValueError, 1),
        ([(X[:5], np.ones(5)), (X[:5], -np.ones(5))], ValueError, 1),
        ([pd.DataFrame(X[:5]), pd.DataFrame(X[:5]).assign(d="word")], TypeError, 1),
        ([X[:5], X[:5, :, None]], TypeError, 1),
    ],
)
def test_errors_name_the_chunk(model, explainer, source, error, number):
    with pytest.raises(error) as raised:
        explainer.fit(model, Again(lambda: iter(source)))
    assert f"in chunk {number} of the background" in raised.value.__notes__[0]
    assert not explainer.__sklearn_is_fitted__()


@pytest.mark.parametrize("explainer", EXPLAINERS, ids=lambda e: type(e).__name__)
def test_rows_that_are_none(model, explainer):
    for source in ([X[:0]], [(X[:3], np.zeros(3))], Again(lambda: iter([]))):
        with pytest.raises(ValueError, match="no row with weight"):
            explainer.fit(model, source)
    with pytest.raises(TypeError, match="name the column"):
        explainer.fit(model, cut(X), sample_weight=WEIGHTS)
    empty = X.copy()
    empty[:, 1] = np.nan
    with pytest.raises(ValueError, match=r"no (finite )?value of 'x1'"):
        explainer.fit(model, cut(empty))


class Indifferent:
    """A model that takes all rows."""

    def predict(self, rows):
        return np.zeros(len(rows))


@pytest.mark.parametrize("cls", [ALEExplainer, ICEExplainer])
@pytest.mark.parametrize(
    ("held", "first", "other"),
    [
        ("nnw", "numbers in chunk 0", "labels such as ['word'] in chunk 2"),
        ("nww", "numbers in chunk 0", "labels such as ['word'] in chunk 1"),
        ("wnn", "labels such as ['word'] in chunk 0", "numbers in chunk 1"),
        ("-wn", "labels such as ['word'] in chunk 1", "numbers in chunk 2"),
        ("n-c", "numbers in chunk 0", "categories, all of them missing, in chunk 2"),
    ],
)
def test_numbers_in_some_chunks_and_words_in_others(cls, held, first, other):
    kinds = {
        "n": [1.0, 2.0],
        "w": ["word", None],
        "-": [None, np.nan],
        "c": pd.Categorical([None, None], ["word"]),
    }
    parts = [pd.DataFrame({"a": [1.0, 2.0], "b": kinds[kind]}) for kind in held]
    with pytest.raises(ValueError, match="give it one type in all chunks") as raised:
        cls(features=["b"]).fit(Indifferent(), parts)
    assert f"column 'b' holds {first} of the background and {other};" in str(raised.value)
    note = f"in {other[-7:]} of the background (the first one is chunk 0)"
    assert raised.value.__notes__ == [note]


@pytest.mark.parametrize("codes_in", [0, 1, 2])
@pytest.mark.parametrize("cls", [ALEExplainer, ICEExplainer])
def test_codes_of_categories_in_some_chunks(cls, codes_in):
    rows = frames()
    parts = [rows[start : start + 40] for start in range(0, 120, 40)]
    parts[codes_in] = parts[codes_in].assign(size=parts[codes_in]["size"].cat.codes)
    other = max(codes_in, 1)
    explainer = cls(features=["size"], categorical_features=["size"])
    with pytest.raises(ValueError, match=rf"'size' holds .* in chunk {other};") as raised:
        explainer.fit(Indifferent(), parts)
    assert f"in chunk {other} of" in raised.value.__notes__[0]
    parts = [part.assign(size=part["size"].astype("category").cat.codes) for part in parts]
    parts[1] = parts[1].assign(size=parts[1]["size"].astype(float))
    explainer.fit(Indifferent(), parts)  # codes are labels like others where all chunks hold them
    assert not np.isnan(explainer.transform(parts[0])).any()


def test_no_quantiles_of_words():
    rows = frames()
    with pytest.raises(ValueError, match=r"categorical"):
        ALEExplainer(features=[("word", "number")]).fit(ByLabels(), [rows[:50], rows[50:]])


def test_progress(model, capsys):
    ALEExplainer(features=[0], verbose=1).fit(model, [X[:100], X[100:]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1] == "[ALEExplainer] pass 2, chunk 1, 160 rows so far"
    assert len(lines) == 4
