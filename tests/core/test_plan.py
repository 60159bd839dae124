"""Which leaves take part in which terms, against the definition."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from fastpd_sklearn.core.geometry import Units
from fastpd_sklearn.core.plan import Matches, Plan, common_terms
from numpy.testing import assert_array_equal

from tests import oracles
from tests.core.test_geometry import FORESTS, OWNERS, as_int, setting

SMALL = ["broad", "strict", "leaves"]


def players_of_leaves(geometry):
    start = geometry.player_start
    return [geometry.player[a:b].tolist() for a, b in pairwise(start)]


@pytest.mark.parametrize("max_order", [1, 2, 3, None])
@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", SMALL)
def test_common_terms(name, groups, max_order):
    _, _, core = setting(name, groups)
    sets = {T for leaf in players_of_leaves(core.geometry) for T in oracles.subsets(leaf)}
    expected = [T for T in sets if len(T) > 1 and (max_order is None or len(T) <= max_order)]
    found = common_terms(core.geometry, max_order)
    assert found == sorted(expected, key=lambda T: (len(T), T))


def terms_for(core, largest):
    n = core.geometry.n_players
    return [T for k in range(1, largest + 1) for T in combinations(range(n), k)][::-1]


@pytest.mark.parametrize("largest", [1, 2, 4])
@pytest.mark.parametrize("chunk_nodes", [1, 7])
@pytest.mark.parametrize("name", SMALL)
def test_plan(name, chunk_nodes, largest):
    _, _, core = setting(name)
    geometry, units = core.geometry, Units(core.geometry, chunk_nodes)
    terms = terms_for(core, largest)
    plan = Plan(geometry, units, terms)
    unit_of_leaf = np.empty(geometry.n_leaves, int)
    unit_of_leaf[units.leaf] = np.repeat(np.arange(units.n_units), np.diff(units.leaf_start))
    for leaf, players in enumerate(players_of_leaves(geometry)):
        part = slice(*plan.leaf_term_start[leaf : leaf + 2])
        unit = unit_of_leaf[leaf]
        unit_terms = plan.unit_term[slice(*plan.unit_term_start[unit : unit + 2])]
        masks = [as_int(words) for words in plan.leaf_term_mask[part]]
        found = {}
        for mask, slot in zip(masks, plan.leaf_term_slot[part], strict=True):
            T = tuple(sorted(p for i, p in enumerate(players) if mask >> i & 1))
            found[T] = unit_terms[slot]
        assert found == {T: terms.index(T) for T in terms if set(T) <= set(players)}
        # The order in which terms share the most work.
        assert masks == sorted(masks)


def test_plan_of_named_sets():
    """A few large sets among very many subsets."""
    _, _, core = setting("two words")
    terms = [(3,), (0, 69), tuple(range(0, 70, 7)), tuple(range(70))]
    plan = Plan(core.geometry, Units(core.geometry), terms)
    last = slice(*plan.leaf_term_start[-2:])
    masks = {as_int(words) for words in plan.leaf_term_mask[last]}
    assert masks == {sum(1 << player for player in term) for term in terms}


@pytest.mark.parametrize("groups", OWNERS)
@pytest.mark.parametrize("name", FORESTS)
def test_matches(name, groups):
    _, _, core = setting(name, groups)
    terms = terms_for(core, 2)[:300]
    matches = Matches(core.geometry, terms)
    leaves = players_of_leaves(core.geometry)
    for k, term in enumerate(terms):
        part = slice(*matches.start[k : k + 2])
        found = list(zip(matches.leaf[part].tolist(), matches.local[part].tolist(), strict=True))
        expected = [
            (leaf, [players.index(term[0]), players.index(term[-1])])
            for leaf, players in enumerate(leaves)
            if set(term) <= set(players)
        ]
        assert found == expected
    assert_array_equal(matches.packed[: len(matches.leaf), 0], matches.leaf)


@pytest.mark.parametrize("name", SMALL)
def test_parts_of_a_plan(name):
    """A part is the plan of its terms alone."""
    _, _, core = setting(name, "columns")
    units = Units(core.geometry)
    terms = terms_for(core, 3)
    plan = Plan(core.geometry, units, terms)
    order = plan.by_tree()
    assert_array_equal(np.sort(order), np.arange(len(terms)))
    blocks = [order[:5], order[5:6], order[9:]]
    for numbers, part in zip(blocks, plan.parts(blocks), strict=True):
        alone = Plan(core.geometry, units, [terms[k] for k in numbers])
        assert part.n_terms == alone.n_terms
        for array in ("leaf_term_start", "leaf_term_mask", "leaf_term_slot", "unit_term_start"):
            assert_array_equal(getattr(part, array), getattr(alone, array))
        assert_array_equal(part.unit_term, alone.unit_term)
