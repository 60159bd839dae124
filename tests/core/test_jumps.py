"""Curves from their jumps, against predictions of rows that were changed by hand."""

import numpy as np
import pytest
from fastpd_sklearn.core.jump_program import DEEPEST, most_steps
from fastpd_sklearn.core.jumps import Jumps, response_sums
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.forest._forest import ForestBuilder
from tests import oracles
from tests.core.grow import core_of, grow, many_codes
from tests.core.test_geometry import inputs_for
from tests.core.test_ice import FORESTS, TRUE_LINKS, bin_rows


def lines(walks):
    return [k for k, is_line in enumerate(walks.is_line) if is_line]


def jumps_along(walks, players):
    slots = [int(walks.slots[k][0]) for k in players]
    bins = walks.bins
    return Jumps(walks.trees, players, slots, len(walks.slots), bins.n_codes, bins.width)


def curves_of(made, rows, margins, cells, link, n_threads):
    """Curves in arrays that have gaps between their numbers, rows and outputs."""
    n_outputs, out = len(margins), []
    for cell in cells:
        room = np.full((rows.n_rows, 2 * len(cell) + 1, n_outputs + 1), np.nan)
        out.append(room[:, : 2 * len(cell) : 2, :n_outputs].transpose(2, 0, 1))
    made.curves(rows, margins, cells, link, n_threads, out)
    for curves in out:  # and nothing elsewhere
        assert np.isnan(curves.base).sum() == curves.base.size - curves.size
    return out


def held_predictions(core, forest, X, player):
    """By prediction, margins at a value within each piece and at missing: outputs, rows, cells."""
    (slot,) = core.walks.slots[player]
    edges = core.bins.slot_edges(slot)
    inside = np.concatenate([[edges[0] - 1], (edges[1:] + edges[:-1]) / 2, [edges[-1] + 1]])
    out = []
    for value in [*inside, np.nan]:
        changed = X.copy()
        changed[:, core.bins.columns[slot]] = value
        out.append(oracles.predict_many(forest, changed))
    return np.array(out).transpose(2, 1, 0)


@pytest.mark.parametrize("n_rows", [1, 64, 130])
@pytest.mark.parametrize("name", FORESTS)
def test_curves_and_sums_are_predictions_of_changed_rows(name, n_rows):
    forest = FORESTS[name]()
    core = core_of(forest, np.arange(forest.n_inputs))
    players = lines(core.walks)
    X = inputs_for(forest, n_rows)
    X[::5, 0] = np.nan
    rows, weights = bin_rows(core, X), np.random.default_rng(1).random(n_rows)
    margins = core.walks.margins(rows, 1)
    assert_allclose(margins.T, oracles.predict_many(forest, X), rtol=0, atol=1e-12)
    if not players:
        return
    made = jumps_along(core.walks, players)
    cells = [np.arange(core.bins.n_codes[core.walks.slots[k][0]] + 1) for k in players]
    truths = [held_predictions(core, forest, X, k) for k in players]
    for link, function in TRUE_LINKS.items():
        curves = curves_of(made, rows, margins, cells, link, 1)
        sums = made.sums(rows, margins, cells, weights, link, 1)
        for curve, total, truth in zip(curves, sums, truths, strict=True):
            response = np.moveaxis(function(np.moveaxis(truth, 0, -1)), -1, 0)
            assert_allclose(curve, response, rtol=1e-12, atol=1e-12)
            assert_allclose(total, np.einsum("r,krc->kc", weights, response), rtol=1e-12)


def test_codes_of_all_widths():
    forest = many_codes()
    core = core_of(forest, np.arange(3))
    assert sorted(core.bins.width) == [1, 2, 4]
    X = np.random.default_rng(0).random((70, 3))
    X[::7, 0], X[3::7, 1] = np.nan, np.nan
    rows = bin_rows(core, X)
    made, margins = jumps_along(core.walks, [0, 1, 2]), core.walks.margins(rows, 1)
    sizes = [int(core.bins.n_codes[core.walks.slots[k][0]]) for k in range(3)]
    some = np.append(np.random.default_rng(1).integers(0, sizes[0], 5), sizes[0])
    cells = [some, np.arange(sizes[1] + 1), np.arange(sizes[2] + 1)]
    curves = curves_of(made, rows, margins, cells, "identity", 1)
    for player, cell, curve in zip(range(3), cells, curves, strict=True):
        edges = core.bins.slot_edges(core.walks.slots[player][0])
        above = np.append(edges, [edges[-1] + 1, np.nan])  # a code ends with its threshold
        for k in np.linspace(0, len(cell) - 1, 6).astype(int):
            held = X.copy()
            held[:, player] = above[cell[k]]
            assert_allclose(curve[0, :, k], core.predict(bin_rows(core, held), 1)[:, 0], atol=1e-9)


@pytest.mark.parametrize("name", ["broad", "outputs", "vectors"])
def test_bits_depend_neither_on_threads_nor_on_other_curves(name):
    forest = FORESTS[name]()
    core = core_of(forest, np.arange(forest.n_inputs))
    rows = bin_rows(core, inputs_for(forest, 700))
    margins, players = core.walks.margins(rows, 1), lines(core.walks)
    cells = [np.arange(core.bins.n_codes[core.walks.slots[k][0]] + 1) for k in players]
    together = jumps_along(core.walks, players)
    one, two = (together.sums(rows, margins, cells, None, "logit", n) for n in (1, 2))
    for k, player in enumerate(players):
        assert_array_equal(one[k], two[k])
        alone = jumps_along(core.walks, [player])
        assert_array_equal(alone.sums(rows, margins, [cells[k]], None, "logit", 1)[0], one[k])
    first, second = (curves_of(together, rows, margins, cells, "exp", n) for n in (1, 2))
    for a, b in zip(first, second, strict=True):
        assert_array_equal(a, b)


@pytest.mark.parametrize("link", TRUE_LINKS)
def test_sums_of_responses_to_margins(link):
    rng = np.random.default_rng(0)
    margins, weights = rng.normal(size=(3, 200)), rng.random(200)
    truth = TRUE_LINKS[link](margins.T)
    assert_allclose(response_sums(margins, weights, link), weights @ truth, rtol=1e-13)
    assert_allclose(response_sums(margins[:, ::2], None, link), truth[::2].sum(axis=0), rtol=1e-13)


def test_trees_that_are_not_looked_at_as_a_whole():
    chain = grow(np.random.default_rng(0), 2, 40, n_trees=1)
    n_above = [0] * len(chain.left)
    for node, (left, right) in enumerate(zip(chain.left, chain.right, strict=True)):
        if left >= 0:
            n_above[left] = n_above[right] = n_above[node] + 1
    inner = np.flatnonzero(chain.left >= 0)
    core = core_of(chain, np.arange(2))
    assert most_steps(core.walks.trees) == sum(1 + n_above[i] for i in inner)
    n = DEEPEST + 1
    builder = ForestBuilder(1, 1, False, False)
    left = np.full(2 * n + 1, -1)
    left[: 2 * n : 2] = np.arange(n) * 2 + 1
    right = np.where(left >= 0, left + 1, -1)
    threshold = np.arange(2 * n + 1) / n
    builder.add(
        left=left,
        right=right,
        feature=np.zeros(2 * n + 1, int),
        threshold=threshold,
        value=threshold,
        cover=np.ones(2 * n + 1),
    )
    deep = core_of(builder.build(0.0), np.arange(1))
    assert not deep.walks.shares(0, 10_000)
    with pytest.raises(ValueError, match=f"{n} tests deep"):
        jumps_along(deep.walks, [0])
