"""Kept rows explain what counted masks explain, whatever the trees and the weights."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import background, model
from fastpd_sklearn.core.background import KeptRows, MaskCounts, make_background, merged, unpacked
from fastpd_sklearn.forest import ForestBuilder
from tests.core.grow import core_of, grow, rows_for

N_INPUTS = 6
SINGLES = [(k,) for k in range(N_INPUTS)]
PAIRS = [(0, 1), (1, 4), (2, 5)]


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(4)
    core = core_of(grow(rng, N_INPUTS, 60, n_trees=7, width=1, n_outputs=2))
    return core, rows_for(rng, 300, N_INPUTS)


def filled(kind, core, X, weights, cuts=()):
    made = kind()
    parts = np.split(np.arange(len(X)), cuts)
    for part in parts:
        rows, _ = core.bins.bin_matrix(X[part], 1)
        made.add(core, rows, None if weights is None else weights[part], 1)
    return made


@pytest.mark.parametrize(("group", "most"), [(1, 0), (2**22, 0), (1, 2**23)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_and_counts_agree(case, weighted, group, most, n_threads, monkeypatch):
    core, X = case
    monkeypatch.setattr(background, "GROUP_COUNTS", group)
    monkeypatch.setattr(background, "MOST_COUNTS", most)
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    counts = filled(MaskCounts, core, X, weights)
    kept = filled(KeptRows, core, X, weights, cuts=(1, 120))
    assert kept.total == pytest.approx(counts.total)
    truth, found = counts.coverage(core), kept.coverage(core)
    assert_allclose(kept.mean(core, found), counts.mean(core, truth), rtol=1e-12)
    rows, _ = core.bins.bin_matrix(X[:50], 1)
    for index in ("component", "shap"):
        for terms in (SINGLES, SINGLES + PAIRS):
            assert_allclose(
                core.attribute(rows, found, index, terms, n_threads),
                core.attribute(rows, truth, index, terms, 1),
                atol=1e-12,
            )


@pytest.mark.parametrize("n_threads", [1, 2, 3, 8])
@pytest.mark.parametrize("share", [1e-9, 0.3, 0.5, 2.0])
def test_parts_have_as_many_trees_for_every_thread(case, share, n_threads, monkeypatch):
    core, X = case
    n_counts = background.n_masks(core.geometry).sum()
    monkeypatch.setattr(background, "GROUP_COUNTS", max(1, int(share * n_counts)))
    monkeypatch.setattr(background, "MOST_COUNTS", 0)
    found = filled(KeptRows, core, X, None).coverage(core)
    spans = [(first, last) for first, last, _ in found.parts(n_threads)]
    assert [first for first, _ in spans[1:]] == [last for _, last in spans[:-1]]
    assert (spans[0][0], spans[-1][1]) == (0, core.geometry.n_trees)
    assert all(first % n_threads == 0 for first, _ in spans)
    assert (len(spans) == 1) == (share > 1 or n_threads == 8)


@pytest.mark.parametrize("meets", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_meet_and_tables_agree(case, weighted, meets, monkeypatch):
    """Whichever is sooner, by one thread and two, at once and term by term."""
    core, X = case
    monkeypatch.setattr(model, "meet_sooner", lambda *_: meets)
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    truth = filled(MaskCounts, core, X, weights).coverage(core)
    found = filled(KeptRows, core, X, weights).coverage(core)
    rows, _ = core.bins.bin_matrix(X[:9], 1)
    for index in ("shap", "banzhaf", "total"):
        for terms in (SINGLES, PAIRS, SINGLES + PAIRS, [*PAIRS, (0, 1, 2)]):
            one, two = (core.attribute(rows, found, index, terms, n) for n in (1, 2))
            assert_array_equal(one, two)
            assert_allclose(one, core.attribute(rows, truth, index, terms, 1), atol=1e-12)
            blocks = core.attribute_blocks(rows, found, index, terms, 40, 1)
            numbers, values = zip(*blocks, strict=True)
            order = np.argsort(np.concatenate(numbers))
            assert_allclose(np.concatenate(values)[order], one, atol=1e-12)


def test_rows_with_and_without_weights(case):
    """Rows that come without weights count one each."""
    core, X = case
    rows = [core.bins.bin_matrix(part, 1)[0] for part in (X[:100], X[100:])]
    kept = KeptRows()
    kept.add(core, rows[0], None, 1)
    kept.add(core, rows[1], np.full(200, 2.5), 1)
    assert_array_equal(kept.sample_weight, np.repeat([1.0, 2.5], [100, 200]))
    assert kept.total == 600
    predicted = core.predict(core.bins.bin_matrix(X, 1)[0], 1)
    truth = np.average(predicted, axis=0, weights=kept.sample_weight)
    assert_allclose(kept.mean(core, None), truth, rtol=1e-12)


def test_rows_in_a_pickle(case):
    core, X = case
    kept = filled(KeptRows, core, X, None)
    again = pickle.loads(pickle.dumps(kept))
    assert_array_equal(again.rows.data, kept.rows.data)
    rows, _ = core.bins.bin_matrix(X[:5], 1)
    values = [
        core.attribute(rows, which.coverage(core), "shap", SINGLES, 1) for which in (kept, again)
    ]
    assert_array_equal(*values)


def test_deep_trees_keep_rows():
    rng = np.random.default_rng(1)
    shallow, deep = (core_of(grow(rng, 40, n, n_trees=2)) for n in (20, 3000))
    assert isinstance(make_background(shallow, 1000), MaskCounts)
    assert isinstance(make_background(deep, 1000), KeptRows)


def test_few_rows_are_kept_in_whatever_order_they_come(case, monkeypatch):
    """Their bits do not depend on it, and they are counted once there are more."""
    core, X = case
    monkeypatch.setattr(background, "FEW_ROWS", 250)
    weights = np.random.default_rng(2).integers(0, 4, len(X)).astype(float)
    rows, _ = core.bins.bin_matrix(X[:3], 1)
    for given in (None, weights):
        order = np.random.default_rng(3).permutation(250)
        one = filled(KeptRows, core, X[:250], given if given is None else given[:250])
        split = [
            filled(KeptRows, core, X[part], given if given is None else given[part])
            for part in (order[:70], order[70:])
        ]
        other = merged(core, *split, 1)
        assert isinstance(other, KeptRows)
        assert one.total == other.total
        coverages = [part.coverage(core) for part in (one, other)]
        assert_array_equal(one.mean(core, coverages[0]), other.mean(core, coverages[1]))
        for index in ("shap", "banzhaf"):
            found = [core.attribute(rows, c, index, SINGLES + PAIRS, 1) for c in coverages]
            assert_array_equal(*found)
    more = filled(KeptRows, core, X[250:], None)
    assert isinstance(merged(core, one, more, 1), MaskCounts)


@pytest.fixture(scope="module")
def long_case():
    """A tree of which some leaves have more players than a word has bits."""
    n = 70
    builder = ForestBuilder(n_inputs=n, n_outputs=1, strict=True, single=False)
    inner = np.arange(n)
    left, right, feature = (np.full(2 * n + 1, -1) for _ in range(3))
    left[2 * inner], right[2 * inner], feature[2 * inner] = 2 * inner + 2, 2 * inner + 1, inner
    value = np.random.default_rng(0).normal(size=2 * n + 1)
    ones = np.ones(2 * n + 1)
    builder.add(
        left=left, right=right, feature=feature, threshold=2.0 * ones, value=value, cover=ones
    )
    core = core_of(builder.build(0.0))
    assert core.geometry.n_words == 2
    return core, np.random.default_rng(1).normal(size=(90, n)) + 0.5


@pytest.mark.parametrize("kinds", [(MaskCounts, MaskCounts), (KeptRows, MaskCounts)])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("which", ["case", "long_case"])
def test_merged(which, weighted, kinds, request):
    """In whatever way two parts are kept."""
    core, X = request.getfixturevalue(which)
    weights = np.random.default_rng(0).random(len(X)) if weighted else None
    parts = [
        filled(kind, core, X[part], None if weights is None else weights[part])
        for kind, part in zip(kinds, (slice(None, 40), slice(40, None)), strict=True)
    ]
    truth = filled(MaskCounts, core, X, weights)
    for one, other in (parts, parts[::-1]):
        found = merged(core, one, other, 1)
        order, expected = (_by_leaf(counts) for counts in (found, truth))
        assert_array_equal(order[0], expected[0])
        assert_allclose(order[1], expected[1], rtol=1e-12)
        assert found.total == pytest.approx(truth.total, rel=1e-12)


def _by_leaf(counts):
    """Entries as rows of leaf and mask, in order, and their weights."""
    leaf = np.repeat(np.arange(len(counts.start) - 1), np.diff(counts.start))
    key = np.column_stack([leaf.astype(np.uint64), counts.mask])
    order = np.lexsort(key.T[::-1])
    return key[order], counts.weight[order]


@pytest.mark.parametrize("kind", [MaskCounts, KeptRows])
@pytest.mark.parametrize("which", ["case", "long_case"])
def test_packed(which, kind, request):
    core, X = request.getfixturevalue(which)
    truth = filled(kind, core, X, None)
    found = unpacked(core, truth.packed())
    assert found.total == truth.total
    assert type(found.total) is type(truth.total)
    rows, _ = core.bins.bin_matrix(X[:5], 1)
    values = [
        core.attribute(rows, which.coverage(core), "shap", core.singles, 1)
        for which in (truth, found)
    ]
    assert_array_equal(*values)


def test_masks_beyond_a_leaf_are_refused(long_case):
    """They would be written beyond the end of a table."""
    core, X = long_case
    arrays = filled(MaskCounts, core, X, None).packed()
    sizes = core.geometry.leaf_sizes
    for leaf in (0, len(sizes) // 2, len(sizes) - 1):
        for bit in {int(sizes[leaf]), 63, 64, 127} - set(range(sizes[leaf])):
            mask = arrays["mask"].copy()
            mask[arrays["start"][leaf], bit // 64] |= np.uint64(1) << np.uint64(bit % 64)
            with pytest.raises(ValueError, match="a player that a leaf does not have"):
                unpacked(core, {**arrays, "mask": mask})
