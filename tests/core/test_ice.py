"""Rows with players held at points, against predictions of rows that were changed by hand."""

import numpy as np
import pytest
from fastpd_sklearn.core.ice import slice_rows
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import expit, softmax

from fastpd_sklearn.forest._forest import ForestBuilder
from tests import oracles
from tests.core.grow import core_of, grow
from tests.core.test_geometry import OWNERS, inputs_for

FORESTS = {
    "broad": lambda: grow(np.random.default_rng(0), 6, 30),
    "deep": lambda: grow(np.random.default_rng(1), 6, 200, n_trees=2, zero=True),
    "strict": lambda: grow(np.random.default_rng(2), 6, 50, strict=True, single=True),
    "leaves": lambda: grow(np.random.default_rng(3), 6, 0),
    "outputs": lambda: grow(np.random.default_rng(5), 6, 25, n_trees=4, n_outputs=3),
    "vectors": lambda: grow(np.random.default_rng(6), 6, 40, width=3, n_outputs=3),
}

TRUE_LINKS = {
    "identity": lambda margins: margins,
    "exp": np.exp,
    "logit": expit,
    "multi_logit": expit,
    "softmax": lambda margins: softmax(margins, axis=-1),
}


def setting(name, groups="columns"):
    forest = FORESTS[name]()
    owner = np.arange(forest.n_inputs) if OWNERS[groups] is None else np.array(OWNERS[groups])
    return forest, owner, core_of(forest, owner)


def bin_rows(core, X):
    return core.bins.bin_matrix(X, 1)[0]


def held_margins(forest, owner, X, players, points):
    """Margins by prediction, of shape (n_outputs, n_rows, n_points of the first, ...)."""
    shape = (len(points),) * len(players)
    out = np.empty((forest.n_outputs, len(X), *shape))
    for which in np.ndindex(shape):
        changed = X.copy()
        for player, k in zip(players, which, strict=True):
            columns = np.asarray(owner) == player
            changed[:, columns] = points[k, columns]
        out[(slice(None), slice(None), *which)] = oracles.predict_many(forest, changed).T
    return out


def terms(owner):
    last = int(np.max(owner))
    return [(), (0,), (1,), (last,), (0, 1), (last, 1)]


def placed(values, places):
    """Values at points, as values at the rows that the points were made from."""
    for axis, place in enumerate(reversed(places)):
        values = values.take(place, axis=values.ndim - 1 - axis)
    return values


@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_curves_are_predictions_of_changed_rows(name, groups):
    forest, owner, core = setting(name, groups)
    X, points = inputs_for(forest, 37), inputs_for(forest, 60)[37:42]
    rows, point_rows = bin_rows(core, X), bin_rows(core, points)
    for term in terms(owner):
        made = [core.walks.points(point_rows, player) for player in term]
        found = core.walks.curves(rows, [p for p, _ in made], 1)
        found = placed(found, [place for _, place in made])
        truth = held_margins(forest, owner, X, term, points)
        assert_allclose(found, truth.reshape(found.shape), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FORESTS)
def test_sums_of_responses(name):
    forest, owner, core = setting(name, "columns")
    X, points = inputs_for(forest, 53), inputs_for(forest, 80)[53:57]
    weights = None if name == "broad" else np.random.default_rng(0).random(len(X))
    rows, point_rows = bin_rows(core, X), bin_rows(core, points)
    for term in terms(owner):
        made = [core.walks.points(point_rows, player) for player in term]
        ends = [p for p, _ in made]
        margins = held_margins(forest, owner, X, term, points)
        for link, function in TRUE_LINKS.items():
            response = function(np.moveaxis(margins, 0, -1))
            truth = np.tensordot(np.ones(len(X)) if weights is None else weights, response, axes=1)
            for given in (link, function):
                found = core.walks.response_sums(rows, ends, given, weights, 1)
                found = placed(found, [place for _, place in made])
                truth_here = np.moveaxis(truth, -1, 0).reshape(found.shape)
                assert_allclose(found, truth_here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FORESTS)
def test_the_alphabet_is_all_there_is(name):
    forest, _, core = setting(name, "columns")
    X = inputs_for(forest, 200)
    rows = bin_rows(core, X)
    for player, slots in enumerate(core.walks.slots):
        if not len(slots):
            continue
        points = core.walks.alphabet(player)
        curves = core.walks.curves(rows, [points], 1)
        place = np.minimum(rows.columns()[slots[0]], points.size - 1).astype(int)
        own = curves[:, np.arange(len(X)), place].T
        assert_allclose(own, oracles.predict_many(forest, X), rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", FORESTS)
def test_predictions_and_slices(name):
    forest, _, core = setting(name, "columns")
    X = inputs_for(forest, 41)
    rows = bin_rows(core, X)
    assert_allclose(
        core.walks.predict(rows, 1), oracles.predict_many(forest, X), rtol=0, atol=1e-12
    )
    part = slice_rows(rows, 7, 29)
    assert_array_equal(core.walks.predict(part, 1), core.walks.predict(rows, 1)[7:29])


def test_threads_do_not_change_a_bit():
    forest, _, core = setting("deep", "columns")
    rows = bin_rows(core, inputs_for(forest, 5000))
    points = [core.walks.alphabet(0), core.walks.alphabet(2)]
    weights = np.random.default_rng(1).random(rows.n_rows)
    one, two = (core.walks.response_sums(rows, points, "logit", weights, n) for n in (1, 2))
    assert_array_equal(one, two)
    one, two = (core.walks.curves(rows, points[:1], n) for n in (1, 2))
    assert_array_equal(one, two)


def test_rows_held_at_others():
    forest, owner, core = setting("deep", "groups")
    X, other = inputs_for(forest, 30), inputs_for(forest, 60)[30:]
    rows, other_rows = bin_rows(core, X), bin_rows(core, other)
    columns = np.isin(owner, (0, 1))
    for index in (3, np.random.default_rng(0).permutation(len(X))):
        held = core.walks.held(rows, (0, 1), other_rows, index)
        changed = X.copy()
        changed[:, columns] = other[index][..., columns]
        assert_allclose(
            core.walks.predict(held, 1), oracles.predict_many(forest, changed), rtol=0, atol=1e-12
        )


@pytest.mark.parametrize("link", ["exp", "logit"])
def test_links_at_the_ends_of_the_range(link):
    margins = np.concatenate([np.linspace(-760, 720, 4001), [-1e300, 1e300, 0.0, 709.7, -708.4]])
    core = core_of_leaf(margins)
    with np.errstate(over="ignore"):
        truth = TRUE_LINKS[link](margins)
    found = core.walks.response_sums(bin_rows(core, np.zeros((1, 1))), [], link, None, 1)
    assert_allclose(found, truth, rtol=1e-15 if link == "logit" else 3e-16, atol=1e-323)


def core_of_leaf(values):
    """A forest of one leaf that answers with these values."""
    builder = ForestBuilder(1, len(values), False, False)
    builder.add(left=[-1], right=[-1], feature=[-1], threshold=[0.0], value=[values], cover=[1.0])
    return core_of(builder.build(np.zeros(len(values))))


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_curves_from_leaves_that_are_known(name, groups, n_threads):
    forest, owner, core = setting(name, groups)
    X, points = inputs_for(forest, 90), inputs_for(forest, 60)[37:44]
    rows, held = bin_rows(core, X), bin_rows(core, points)
    leaves = core.walks.leaves(rows, n_threads)
    value = core.walks.trees.leaf_value[leaves]
    total = np.repeat(forest.intercept[None, :], len(X), axis=0)
    for tree, first in enumerate(forest.tree_output):
        total[:, first : first + value.shape[2]] += value[tree]
    assert_allclose(total, oracles.predict_many(forest, X), atol=1e-12)
    for players in [(0,), (1,), (0, 1)]:
        at, places = zip(*(core.walks.points(held, k) for k in players), strict=True)
        truth = held_margins(forest, owner, X, players, points)
        curves = core.walks.curves(rows, at, n_threads, leaves=leaves)
        assert_allclose(placed(curves, places), truth, atol=1e-12)
        for link in (np.exp, "exp"):
            sums = core.walks.response_sums(rows, at, link, None, n_threads, leaves)
            assert_allclose(placed(sums, places), np.exp(truth).sum(axis=1), rtol=1e-12)
