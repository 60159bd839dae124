"""Trees that are added to a forest, one by one or several at once."""

import numpy as np
import pytest

from fastpd_sklearn.forest import ForestBuilder

STUMP = {
    "left": [1, -1, -1],
    "right": [2, -1, -1],
    "feature": [0, -1, -1],
    "threshold": [0.5, 0.0, 0.0],
    "cover": [3, 2, 1],
}


def new():
    return ForestBuilder(n_inputs=2, n_outputs=1, strict=False, single=False)


def test_together_or_one_by_one():
    sizes = (1.0, 10.0, 100.0)
    trees = [{**STUMP, "value": [0.0, -size, size], "missing_left": True} for size in sizes]
    trees[1] |= {"is_categorical": [True, False, False], "categories": {0: [4, 2]}, "feature": 1}
    together, one_by_one, mixed = new(), new(), new()
    together.add_trees(trees)
    for tree in trees:
        one_by_one.add(**tree)
    mixed.add_trees(iter(trees[:2]))
    mixed.add_trees([])
    mixed.add(**trees[2])
    forest = together.build(0.25)
    assert forest.digest() == one_by_one.build(0.25).digest() == mixed.build(0.25).digest()
    rows = [[0.0, 2.0], [1.0, 3.0], [np.nan, 4.0], [1.0, np.nan]]
    found = forest.predict(rows)
    assert found.tolist() == [-110.75, 111.25, -110.75, 91.25]


def test_arrays_may_be_used_again():
    builder = new()
    value = np.array([0.0, 1.0, 2.0])
    threshold = np.array([0.5, 0.0, 0.0])
    builder.add(**{**STUMP, "threshold": threshold}, value=value)
    value[:], threshold[:] = -5.0, 9.0
    assert builder.build(0.0).predict([[0.0, 0.0], [1.0, 0.0]]).tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", ["right", "feature", "threshold", "cover", "missing_left"])
def test_arrays_of_different_lengths_are_refused(name):
    tree = {**STUMP, "value": [0.0, 1.0, 2.0]}
    for wrong in ([1, 2], [1, 2, 3, 4], [[1, 2, 3]] * 2):
        with pytest.raises(ValueError, match=f"^{name} of a tree has shape"):
            new().add(**{**tree, name: wrong})
    with pytest.raises(ValueError, match="reshape"):
        new().add(**{**tree, "value": [0.0, 1.0, 2.0, 3.0]})


def test_trees_with_different_numbers_of_values_are_refused():
    one, two = ({**STUMP, "value": np.zeros((3, n))} for n in (1, 2))
    with pytest.raises(ValueError, match=r"different numbers of values a node: \[1, 2\]"):
        new().add_trees([one, two])
    builder = new()
    builder.add(**one)
    with pytest.raises(ValueError, match="different numbers of values"):
        builder.add(**two)
