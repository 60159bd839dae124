"""Attributions by every way through the kernels: they have to agree."""

from itertools import combinations

import numpy as np
import pytest
from fastpd_sklearn.core.coverage import EmpiricalCoverage, PathCoverage
from fastpd_sklearn.core.evaluation import attribute
from fastpd_sklearn.core.geometry import Units
from fastpd_sklearn.core.plan import Plan
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.core import evaluation
from fastpd_sklearn.core.attribution import INDICES, Rules
from fastpd_sklearn.core.room import zeros
from fastpd_sklearn.explainers._fastpd import EmpiricalEngine
from fastpd_sklearn.explainers._pathdependent import PathEngine
from fastpd_sklearn.forest import Head, InputMap, Reading
from tests import oracles
from tests.core.grow import chain_forest, core_of, grow, rows_for
from tests.core.test_counting import count

N_INPUTS = 5
SINGLES = [(k,) for k in range(N_INPUTS)]
TERMS = {"singles": SINGLES, "pairs": SINGLES + list(combinations(range(N_INPUTS), 2))}
TERMS["all"] = TERMS["pairs"] + list(combinations(range(N_INPUTS), 3))


def make(seed=0, n_rows=400, n_nodes=40, **params):
    rng = np.random.default_rng(seed)
    forest = grow(rng, N_INPUTS, n_nodes, **params)
    return forest, core_of(forest), rows_for(rng, n_rows, N_INPUTS)


def coverage_of(kind, core, X):
    if kind == "empirical":
        return EmpiricalCoverage(*count(core, X, None), float(len(X)))
    return PathCoverage(core.geometry, np.random.default_rng(1).random(len(core.geometry.left)))


def by_masks(core, X, coverage, index, terms, chunk_nodes=7, out=None):
    """Through the tables of chunks, whatever the model would choose."""
    units = Units(core.geometry, chunk_nodes)
    rows, _ = core.bins.bin_matrix(X, 1)
    out = np.zeros((len(terms), core.n_outputs, len(X))) if out is None else out
    attribute(
        rows,
        core.bins.tests,
        core.geometry,
        units,
        Plan(core.geometry, units, terms),
        coverage,
        Rules(index, core.geometry.leaf_sizes),
        core.leaf_value,
        core.tree_output,
        out,
        1,
    )
    return out


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", ["empirical", "path"])
def test_all_ways_agree(kind, index, terms):
    """Tables over all patterns, over those that occur, by chunk, by node, and step functions."""
    _, core, X = make(width=2, n_outputs=3)
    coverage = coverage_of(kind, core, X[:100])
    many = np.tile(X, (12, 1))  # more rows than any chunk has patterns
    whole = by_masks(core, many, coverage, index, TERMS[terms])
    assert np.abs(whole).max() > 0.1
    assert_array_equal(whole[:, :, : len(X)], whole[:, :, -len(X) :])
    for chunk_nodes in (1, 7):
        for rows in (X[:1], X[:40]):
            some = by_masks(core, rows, coverage, index, TERMS[terms], chunk_nodes)
            assert_allclose(some, whole[:, :, : len(rows)], rtol=0, atol=1e-12)
    binned, _ = core.bins.bin_matrix(X, 1)
    chosen = core.attribute(binned, coverage, index, TERMS[terms], 1)
    assert_allclose(chosen, whole[:, :, : len(X)], rtol=0, atol=1e-12)


@pytest.mark.parametrize("terms", TERMS)
@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("kind", ["empirical", "path"])
@pytest.mark.parametrize("n_rows", [7, 5000])
def test_same_bits_for_any_threads(kind, index, terms, n_rows):
    _, core, X = make(n_rows=n_rows, n_trees=5)
    coverage = coverage_of(kind, core, X[:300])
    binned, _ = core.bins.bin_matrix(X, 1)
    first, *others = (
        core.attribute(binned, coverage, index, TERMS[terms], n_threads) for n_threads in (1, 2, 3)
    )
    for other in others:
        assert_array_equal(other, first)


@pytest.mark.parametrize("n_rows", [400, 1500, 20_000])
@pytest.mark.parametrize("kind", ["empirical", "path"])
def test_batches_and_spans_make_no_difference(kind, n_rows, monkeypatch):
    """Where memory is short the work is cut into trees, rows and chunks, listed and whole ones."""
    _, core, X = make(n_rows=n_rows, n_trees=8)
    coverage = coverage_of(kind, core, X[:200])
    args = (core, X, coverage, "shap", TERMS["pairs"])
    whole = by_masks(*args)
    for name, size in (("TABLE", 1 << 10), ("BATCH", 1 << 8), ("PLACE", 1 << 12), ("PLACES", 1)):
        monkeypatch.setattr(evaluation, f"{name}_BYTES", size)
        assert_allclose(by_masks(*args), whole, rtol=0, atol=1e-13)


@pytest.mark.parametrize("index", INDICES)
def test_wide_tables(index):
    """A tree whose tables outgrow the caches: blocks of rows are large. Whole and listed."""
    _, core, X = make(n_nodes=900, n_trees=1, n_rows=3000, n_outputs=2)
    assert (1 << core.units.n_bits).sum() > 65536
    coverage = coverage_of("empirical", core, X[:200])
    many = np.tile(X, (6, 1))
    whole = by_masks(core, many, coverage, index, TERMS["pairs"])
    listed = by_masks(core, X, coverage, index, TERMS["pairs"])
    one = by_masks(core, X[:100], coverage, index, TERMS["pairs"], chunk_nodes=1)
    assert_allclose(listed, whole[:, :, : len(X)], rtol=0, atol=1e-12)
    assert_allclose(one, whole[:, :, :100], rtol=0, atol=1e-12)
    assert_array_equal(whole[:, :, : len(X)], whole[:, :, -len(X) :])


@pytest.mark.parametrize("n", [12, 13, 63, 64, 65, 130])
def test_games_of_long_paths(n):
    """Both kinds of coverage of one long path, in fractions."""
    forest = chain_forest(n)
    core = core_of(forest)
    rng = np.random.default_rng(n)
    background = np.where(rng.random((20, n)) < 3 / n, 0.0, 1.0)
    X = np.where(rng.random((4, n)) < 3 / n, 0.0, 1.0)
    ratio = rng.integers(1, 8, n) / 8
    share = np.ones(2 * n + 1)
    share[2::2] = ratio
    terms = [(0,), (n - 1,), (0, n - 1), (1, 5, n - 2)]
    for index in INDICES:
        cover = PathCoverage(core.geometry, share)
        found = by_masks(core, X, cover, index, terms)[:, 0]
        truth = [[oracles.product_game_index(index, x, ratio, T) for x in X] for T in terms]
        assert_allclose(found, np.array(truth, float), rtol=1e-10, atol=1e-15)
        cover = EmpiricalCoverage(*count(core, background, None), 20.0)
        found = by_masks(core, X, cover, index, terms)[:, 0]
        truth = [
            [sum(float(binary_game_index(index, x, b, T)) for b in background) / 20 for x in X]
            for T in terms
        ]
        assert_allclose(found, truth, rtol=1e-10, atol=1e-15)


def binary_game_index(index, p, q, T):
    """The same for zeros and ones: players whom nobody can miss do not matter."""
    if np.any((p == 0) & (q == 0)) or any(p[i] == q[i] for i in T):
        return 0
    matter = [i for i in range(len(p)) if p[i] != q[i]]
    return oracles.product_game_index(index, p[matter], q[matter], {matter.index(i) for i in T})


def engine_of(kind, forest):
    reading = Reading(InputMap(n_columns=N_INPUTS), forest, Head(additive=("raw",)))
    engine_class = {"empirical": EmpiricalEngine, "path": PathEngine}[kind]
    return engine_class(reading, [np.array([j]) for j in range(N_INPUTS)], 1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["empirical", "path"])
def test_parts_of_a_background_add_up(kind, weighted):
    """In any order, to rounding; without weights the counts are the same integers."""
    forest, _, X = make(n_rows=500)
    weights = np.random.default_rng(2).random(len(X)) if weighted else None
    whole = engine_of(kind, forest)
    whole.update(X, weights)
    truth = whole.index_values(X[:50], "shap", SINGLES)
    for cuts in ([250], [1, 77, 400], [499]):
        parts = np.split(np.arange(len(X)), cuts)
        merged = engine_of(kind, forest)
        for part in parts[::-1]:
            merged.update(X[part], None if weights is None else weights[part])
        assert_allclose(merged.intercept, whole.intercept, rtol=1e-12)
        values = merged.index_values(X[:50], "shap", SINGLES)
        assert_allclose(values, truth, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_rows", [37, 400])
def test_values_go_to_any_columns(n_rows):
    _, core, X = make(n_rows=n_rows, n_outputs=2)
    args = core, X, coverage_of("empirical", core, X), "shap", TERMS["pairs"]
    shape = len(TERMS["pairs"]), core.n_outputs
    wide = np.zeros((*shape, n_rows + 5))
    assert_array_equal(by_masks(*args, out=wide[..., 3 : 3 + n_rows]), by_masks(*args))
    assert not wide[..., :3].any()
    assert not wide[..., 3 + n_rows :].any()
    assert_array_equal(by_masks(*args, out=zeros(*shape, n_rows)), by_masks(*args))
    with pytest.raises(ValueError, match="side by side"):
        by_masks(*args, out=np.zeros((*shape, 2 * n_rows))[..., ::2])


def test_no_rows_and_no_terms():
    _, core, X = make()
    coverage = coverage_of("empirical", core, X)
    rows, _ = core.bins.bin_matrix(X[:0], 1)
    assert core.attribute(rows, coverage, "shap", SINGLES, 2).shape == (N_INPUTS, 1, 0)
    rows, _ = core.bins.bin_matrix(X[:3], 1)
    assert core.attribute(rows, coverage, "shap", [], 2).shape == (0, 1, 3)
