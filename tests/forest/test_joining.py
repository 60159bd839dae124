"""Forests are joined without a row going another way than before."""

import inspect
from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from fastpd_sklearn.forest import ForestBuilder, InputMap
from fastpd_sklearn.forest._joined_inputs import (
    InputsOf,
    UnlikeInputsError,
    _label_fields,
    join_maps,
)
from fastpd_sklearn.forest._joining import sum_forests, translated_threshold
from tests.core.grow import grow, rows_for
from tests.oracles import predict_many

F32 = np.finfo(np.float32)
SPECIAL = [
    *(0.0, -0.0, 0.1, 1.0, 1.0 + 2**-24, 1.0 + 2**-23, 1.0 + 3 * 2**-24, 1 / 3, -2.5),
    *(5e-324, 1e-310, float(F32.smallest_subnormal), float(F32.smallest_subnormal) / 2),
    *(1.5 * float(F32.smallest_subnormal), float(F32.tiny), -float(F32.tiny)),
    *(float(F32.max), -float(F32.max), 2.0**128 - 2.0**103, -(2.0**128) + 2.0**103),
    *(2.0**128, 1e300, -1e300, np.inf),
]
POLICIES = list(product([False, True], repeat=2))


def thresholds():
    rng = np.random.default_rng(0)
    random = rng.normal(size=40) * 10.0 ** rng.integers(-40, 38, size=40)
    return np.concatenate([SPECIAL, random, random.astype(np.float32)])


def stumps(edges, strict, single):
    builder = ForestBuilder(n_inputs=1, n_outputs=1, strict=strict, single=single)
    for edge in edges:
        builder.add(
            left=[1, -1, -1],
            right=[2, -1, -1],
            feature=[0, -1, -1],
            threshold=[edge, 0, 0],
            value=[0, 1, 0],
            cover=[2, 1, 1],
        )
    return builder.build(0.0)


def values_beside(edges):
    """The edges, their neighbours in both precisions, and what lies half-way between those."""
    with np.errstate(over="ignore"):
        single = np.asarray(edges).astype(np.float32)
        around = [single, *(np.nextafter(single, np.float32(s)) for s in (-np.inf, np.inf))]
    around = [a.astype(np.float64) for a in around]
    finite = [np.clip(a, -(2.0**128), 2.0**128) for a in around]
    middles = [(finite[0] + other) / 2 for other in finite[1:]]
    points = np.concatenate([edges, *around, *middles, [-np.inf, np.inf, -1e39, 1e39]])
    return np.unique(
        np.concatenate([points, np.nextafter(points, -np.inf), np.nextafter(points, np.inf)])
    )


def goes_left(values, edge, strict, single):
    with np.errstate(over="ignore"):
        values = values.astype(np.float32).astype(np.float64) if single else values
    return values < edge if strict else values <= edge


@pytest.mark.parametrize(
    ("strict", "single", "to_single"),
    [(s, single, to) for s, single in POLICIES for to in {False, single}],
)
def test_a_translated_threshold_decides_alike(strict, single, to_single):
    edges = thresholds()
    forest = stumps(edges, strict, single)
    moved = translated_threshold(forest, False, to_single)
    values = values_beside(edges)
    for old, new in zip(edges, moved[forest.left >= 0], strict=True):
        assert_array_equal(
            goes_left(values, old, strict, single),
            goes_left(values, new, False, to_single),
            err_msg=f"{old!r} -> {new!r}",
        )
    assert np.isnan(moved[forest.left < 0]).all()


N_INPUTS = 4


def joined(forests, weights, offset):
    weights = [np.asarray(w, dtype=np.float64) for w in weights]
    return sum_forests(forests, weights, np.asarray(offset, dtype=np.float64))


def rows(dtype=np.float64):
    X = rows_for(np.random.default_rng(9), 300, N_INPUTS, dtype)
    X[:60, 0] = np.repeat([0.25, -0.5, 1.0], 20) + np.tile([0, 1e-9, -1e-9, 1e-7], 15)
    return X


@pytest.mark.parametrize("policies", list(product(POLICIES, POLICIES)), ids=str)
def test_the_sum_of_two_forests(policies):
    rng = np.random.default_rng(0)
    one, other = (
        grow(rng, N_INPUTS, 12, strict=strict, single=single) for strict, single in policies
    )
    X = rows()
    truth = 2 * predict_many(one, X) - 3 * predict_many(other, X) + 5
    both = joined([one, other], [[[2]], [[-3]]], [5])
    assert_allclose(predict_many(both, X), truth, atol=1e-12)
    assert_array_equal(both.cover, np.concatenate([one.cover, other.cover]))


def test_near_zero_values_stay_missing_beside_a_forest_of_single_precision():
    rng = np.random.default_rng(1)
    one = grow(rng, N_INPUTS, 20, zero=True)
    other = grow(rng, N_INPUTS, 20, strict=True, single=True)
    assert one.zero_as_missing.any()
    both = joined([one, other], [[[1]], [[1]]], [0])
    X = rows()
    assert_allclose(predict_many(both, X), predict_many(one, X) + predict_many(other, X))


def test_outputs_are_mixed_by_the_weights():
    rng = np.random.default_rng(2)
    forests = [
        grow(rng, N_INPUTS, 8, n_trees=5, n_outputs=3),  # a tree an output
        grow(rng, N_INPUTS, 8, n_trees=2, width=2, n_outputs=2),  # vector leaves
        grow(rng, N_INPUTS, 8, n_trees=2, width=2, n_outputs=3),
    ]
    weights = [rng.normal(size=(4, f.n_outputs)) for f in forests]
    weights[0][[0, 1, 3], 1] = 0.0  # an output that goes to one output alone
    X = rows()
    offset = np.arange(4.0)
    truth = offset + sum(predict_many(f, X) @ w.T for f, w in zip(forests, weights, strict=True))
    assert_allclose(predict_many(joined(forests, weights, offset), X), truth, atol=1e-12)


def test_trees_of_one_output_each_keep_one_value_a_leaf():
    rng = np.random.default_rng(3)
    forests = [grow(rng, N_INPUTS, 8, n_outputs=2) for _ in range(2)]
    weights = np.split(np.eye(4), 2, axis=1)
    both = joined(forests, weights, np.zeros(4))
    assert both.value.shape[1] == 1
    X = rows()
    assert_allclose(predict_many(both, X), np.hstack([predict_many(f, X) for f in forests]))


def test_a_weight_of_zero():
    rng = np.random.default_rng(4)
    one, other = grow(rng, N_INPUTS, 8), grow(rng, N_INPUTS, 8)
    both = joined([one, other], [[[0]], [[1]]], [0])
    assert_allclose(predict_many(both, rows()), predict_many(other, rows()))


def test_members_with_a_map_of_another_kind_are_not_joined():
    forest = grow(np.random.default_rng(5), N_INPUTS, 8)
    plain, odd = (InputsOf(n, m, forest, None) for n, m in [("a", InputMap(4)), ("b", object())])
    with pytest.raises(UnlikeInputsError, match="transform the columns first"):
        join_maps(Owner(), [plain, odd], frames_as_arrays=False)
    assert join_maps(Owner(), [odd], frames_as_arrays=False) is odd.input_map


class Owner:
    """Stands for a model of models."""


def test_every_field_of_the_map_is_joined():
    """A new field of the map has to be joined as well, or its default would pass for it."""
    source = inspect.getsource(join_maps) + inspect.getsource(_label_fields)
    for field in fields(InputMap):
        assert f"{field.name}=" in source or f'"{field.name}"' in source, field.name
