"""Kept rows explain what counted masks explain, whatever the trees and the weights."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import background
from fastpd_sklearn.core.background import KeptRows, MaskCounts, make_background
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


@pytest.mark.parametrize("group", [1, 2**22])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_rows_and_counts_agree(case, weighted, group, n_threads, monkeypatch):
    core, X = case
    monkeypatch.setattr(background, "GROUP_COUNTS", group)
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
    assert isinstance(make_background(shallow), MaskCounts)
    assert isinstance(make_background(deep), KeptRows)
