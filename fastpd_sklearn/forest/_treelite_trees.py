"""The nodes of one of treelite's trees, with all tests as tests of one kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_CATEGORICAL = 2
_EQUAL, _LESS, _UP_TO, _GREATER, _FROM = range(1, 6)
_MOST_NODES = 2**20
_LARGEST_CODE = {np.float32: 2**24, np.float64: 2**31 - 1}
"""The largest category that is looked up: above 2**24 a float32 is not sure to be the integer."""


class TreeNodes:
    """A tree's nodes, parents before their children.

    A test for equality becomes two tests, ``x <= t`` and below it ``x < t``, of which two sides
    lead to copies of what "not equal" leads to.

    Parameters
    ----------
    accessor : treelite.model.TreeAccessor
    dtype : {numpy.float32, numpy.float64}
        In which treelite compares.
    """

    def __init__(self, accessor, dtype: type) -> None:
        self._field = accessor.get_field
        self._dtype = dtype
        left, right = self._field("cleft").astype(np.int64), self._field("cright").astype(np.int64)
        self._operator = np.where(left < 0, 0, self._field("cmp").astype(np.int64))
        inner = np.flatnonzero(left >= 0)
        children = np.concatenate([left[inner], right[inner]])
        if np.any((children < 1) | (children >= len(left))) or np.any(np.bincount(children) > 1):
            raise ValueError("the children in a tree of the treelite model do not form a tree")
        if np.all(children > np.tile(inner, 2)) and not np.any(self._operator == _EQUAL):
            self.source = np.arange(len(left))
            self.left, self.right = left, right
            self._second = np.zeros(len(left), dtype=bool)
        else:
            self._unfold(left, right)
        self.operator = self._operator[self.source]
        self._is_categorical = self._field("node_type")[self.source] == _CATEGORICAL
        unknown = ~self._is_categorical & (self.left >= 0) & (self.operator > _FROM)
        if np.any(unknown):
            raise ValueError(
                f"the treelite model has the operator {self.operator[unknown][0]}, which is not "
                "known here"
            )

    def _unfold(self, left: np.ndarray, right: np.ndarray) -> None:
        """Number the nodes anew from the root, tests for equality as two."""
        source, second = [0], [False]
        new_left, new_right = [], []
        for node, below in zip(source, second, strict=False):  # both grow meanwhile
            place = len(source)
            if place > _MOST_NODES:
                raise ValueError(
                    "a tree of the treelite model nests so many tests for equality (==) that it "
                    f"has more than {_MOST_NODES} nodes without them; make them categorical tests"
                )
            if left[node] < 0:
                new_left.append(-1)
                new_right.append(-1)
                continue
            if self._operator[node] != _EQUAL:
                added, seconds = [left[node], right[node]], [False, False]
            elif below:
                added, seconds = [right[node], left[node]], [False, False]
            else:
                added, seconds = [node, right[node]], [True, False]
            source += [int(child) for child in added]
            second += seconds
            new_left.append(place)
            new_right.append(place + 1)
        self.source, self.left, self.right = map(np.array, (source, new_left, new_right))
        self._second = np.array(second)

    @property
    def threshold(self) -> np.ndarray:
        """Thresholds in the precision in which they are compared."""
        return self._field("threshold").astype(self._dtype)[self.source]

    def kinds(self) -> np.ndarray:
        """The operators, of a test for equality those of its two parts; 0 at all other nodes."""
        kinds = np.where(self._is_categorical, 0, self.operator)
        return np.where(kinds == _EQUAL, np.where(self._second, _LESS, _UP_TO), kinds)

    def values(self) -> np.ndarray:
        """Values of the leaves, shape (n_nodes, n_values); zero elsewhere."""
        vectors = self._field("leaf_vector").astype(np.float64)
        if not len(vectors):
            return self._field("leaf_value").astype(np.float64)[self.source][:, None]
        start = self._field("leaf_vector_begin").astype(np.int64)[self.source]
        size = self._field("leaf_vector_end").astype(np.int64)[self.source] - start
        leaf = self.left < 0
        if len(np.unique(size[leaf])) > 1:
            raise ValueError("the leaves of the treelite model have different sizes")
        values = np.zeros((len(leaf), size[leaf][0]))
        values[leaf] = vectors[start[leaf][:, None] + np.arange(size[leaf][0])]
        return values

    def tests(self, strict: bool) -> dict:
        """All but the values, as arguments of ``ForestBuilder.add``.

        Parameters
        ----------
        strict : bool
            Whether tests are to be ``x < t`` rather than ``x <= t``.
        """
        kinds = self.kinds()
        swapped = (kinds == _GREATER) | (kinds == _FROM)  # x > t is where x <= t does not hold
        missing_left = self._field("default_left").astype(bool)[self.source]
        # The second of two tests for equality has "equal" on its right.
        missing_left = missing_left != self._second
        listed_right = self._field("category_list_right_child").astype(bool)[self.source]
        return {
            "left": np.where(swapped, self.right, self.left),
            "right": np.where(swapped, self.left, self.right),
            "feature": self._field("split_index").astype(np.int64)[self.source],
            "threshold": self._thresholds(kinds, strict),
            "cover": self._cover(),
            "missing_left": missing_left != swapped,
            "is_categorical": self._is_categorical,
            "listed_left": ~listed_right,
            "categories": self._categories(),
        }

    def _thresholds(self, kinds: np.ndarray, strict: bool) -> np.ndarray:
        """Thresholds that decide alike when all are compared in one way."""
        threshold = self.threshold
        is_strict = (kinds == _LESS) | (kinds == _FROM)
        other = (kinds > 0) & (is_strict != strict)
        if strict or not other.any():
            return threshold.astype(np.float64)
        if np.any(np.isneginf(threshold[other])):
            raise ValueError(
                "the treelite model asks whether a value is less than minus infinity; remove "
                "that test"
            )
        below = np.nextafter(threshold, self._dtype(-np.inf))
        return np.where(other, below, threshold).astype(np.float64)

    def _cover(self) -> np.ndarray:
        for name in ("sum_hess", "data_count"):
            present = self._field(f"{name}_present")
            # Which part of "not equal" has gone to which of its copies is not known.
            if len(present) and present.all() and len(self.source) == len(present):
                return self._field(name).astype(np.float64)[self.source]
        return np.full(len(self.source), np.nan)

    def _categories(self) -> dict[int, np.ndarray]:
        codes = self._field("category_list").astype(np.int64)
        if not len(codes):
            return dict.fromkeys(np.flatnonzero(self._is_categorical).tolist(), codes)
        start, stop = self._field("category_list_begin"), self._field("category_list_end")
        largest = _LARGEST_CODE[self._dtype]
        if self._dtype == np.float64 and codes.max() > largest:
            raise ValueError(
                f"the treelite model lists the category {codes.max()}; categories up to {largest} "
                "can be read"
            )
        lists = {}
        for node in np.flatnonzero(self._is_categorical).tolist():
            listed = codes[int(start[self.source[node]]) : int(stop[self.source[node]])]
            lists[node] = listed[listed <= largest]
        return lists


def is_strict(trees: Sequence[TreeNodes]) -> bool:
    """Whether all tests of numbers are ``x < t`` or ``x >= t``."""
    kinds = [tree.kinds() for tree in trees]
    found = np.unique(np.concatenate(kinds)) if kinds else np.empty(0)
    return set(found[found > 0].tolist()) <= {_LESS, _FROM}
