"""The quadratures of the indices against exact fractions."""

from fractions import Fraction
from math import factorial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from fastpd_sklearn.core.attribution import INDICES, Rules

EXACT = {
    "component": lambda a, b: Fraction(int(a == 0)),
    "banzhaf": lambda a, b: Fraction(1, 2 ** (a + b)),
    "total": lambda a, b: Fraction(int(b == 0)),
    "shap": lambda a, b: Fraction(factorial(a) * factorial(b), factorial(a + b + 1)),
}


def test_every_index_is_tested():
    assert EXACT.keys() == INDICES.keys()


@pytest.mark.parametrize("most", [0, 1, 2, 3, 4, 9, 40, 130])
@pytest.mark.parametrize("index", INDICES)
def test_moments(index, most):
    """Integrals of t^a (1 - t)^b, of all degrees that a leaf of so many players needs."""
    rules = Rules(index, np.array([most]))
    for a in range(most):
        for b in range(most - a):
            assert_allclose(rules.moment[a, b], float(EXACT[index](a, b)), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("index", INDICES)
def test_nodes_of_each_size(index):
    """A leaf of d players gets a rule that is exact for polynomials of degree d - 1."""
    sizes = np.array([7, 2, 2, 5, 0, 33])
    rules = Rules(index, sizes)
    assert len(rules.start) == 33 + 2
    for d in range(34):
        part = slice(*rules.start[d : d + 2])
        t, w = rules.node[part], rules.weight[part]
        assert (len(t) > 0) == (d in sizes)
        assert np.all((t >= 0) & (t <= 1))
        for k in range(d if d in sizes else 0):
            assert_allclose(np.sum(w * t**k), float(EXACT[index](k, 0)), rtol=1e-13, atol=1e-300)


def test_no_leaf_at_all():
    assert Rules("shap", np.empty(0, np.int64)).moment.shape == (1, 1)
