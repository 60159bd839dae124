"""What is kept of a background: how often each mask occurs at each leaf, or the rows as codes.

Counts are small and explain at once where trees are shallow. Deep trees have so many masks that
their counts outgrow the rows themselves; then the rows are kept, one small integer a value, and
counted for a few trees at a time whenever something is explained. Few rows are kept, too: a few of
them meet a row that is explained sooner than they are counted, and what takes counts has them made
once. Both are sums over rows, and what is kept of two backgrounds is `merged` into what would be
kept of their rows together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from math import fsum

import numpy as np

from fastpd_sklearn.core import counting
from fastpd_sklearn.core.coverage import EmpiricalCoverage
from fastpd_sklearn.core.ordering import taken
from fastpd_sklearn.core.routing import BinnedRows

MOST_COUNTS = 2**23
"""Masks that a forest's leaves can have, beyond which rows are kept instead of counts."""

FEW_ROWS = 512
"""Rows that are kept rather than counted, however few masks there are."""

GROUP_COUNTS = 2**20
"""Masks of the trees that kept rows are counted for at a time, roughly."""

MANY_MASKS = 2**14
"""What is reckoned for a leaf that can have more masks: few of them ever occur."""


def make_background(core, n_rows: int) -> MaskCounts | KeptRows:
    """An empty background of the kind that suits a forest.

    Parameters
    ----------
    core : CoreModel
    n_rows : int
        Rows that it is going to have.

    Returns
    -------
    MaskCounts or KeptRows
    """
    return KeptRows() if n_rows <= FEW_ROWS or has_many_masks(core) else MaskCounts()


def has_many_masks(core) -> bool:
    """Whether the leaves of a forest can have too many masks for them to be counted once."""
    return bool(n_masks(core.geometry).sum() > MOST_COUNTS)


def merged(
    core, one: MaskCounts | KeptRows, other: MaskCounts | KeptRows, n_threads: int
) -> MaskCounts | KeptRows:
    """The background that has the rows of two, which stay as they are.

    Parameters
    ----------
    core : CoreModel
    one, other : MaskCounts or KeptRows
        Neither empty.
    n_threads : int

    Returns
    -------
    MaskCounts or KeptRows
        Counts if one of them has counts: rows can be counted, and counts are not taken apart.
    """
    if isinstance(one, KeptRows) and isinstance(other, KeptRows):
        n_rows = one.rows.n_rows + other.rows.n_rows
        if isinstance(make_background(core, n_rows), KeptRows):
            return one.joined(core, other)
    return one.counted(core, n_threads).joined(other.counted(core, n_threads))


def unpacked(core, arrays: dict[str, np.ndarray]) -> MaskCounts | KeptRows:
    """The background that `MaskCounts.packed` or `KeptRows.packed` has packed.

    Parameters
    ----------
    core : CoreModel
    arrays : dict of str to ndarray
        From anywhere.

    Returns
    -------
    MaskCounts or KeptRows

    Raises
    ------
    ValueError, KeyError
        If they are none of this forest.
    """
    return (MaskCounts if "mask" in arrays else KeptRows).unpacked(core, arrays)


def n_masks(geometry) -> np.ndarray:
    """About how many masks each tree's leaves can have, shape (n_trees,)."""
    masks = np.minimum(2.0**geometry.leaf_sizes, MANY_MASKS)
    so_far = np.concatenate([[0.0], np.cumsum(masks)])
    return np.diff(so_far[geometry.tree_leaf])


class MaskCounts:
    """The weight of the background by leaf and occurring mask.

    Attributes
    ----------
    start, mask, weight : ndarray
        As `counting.count_masks` returns them; None before there are rows.
    total : int or float
    """

    def __init__(self) -> None:
        self.start = self.mask = self.weight = None
        self.total = 0

    def add(self, core, rows: BinnedRows, sample_weight, n_threads: int) -> None:
        """Add rows.

        Parameters
        ----------
        core : CoreModel
        rows : BinnedRows
        sample_weight : ndarray of shape (n_rows,), float64, or None
        n_threads : int
        """
        found = counting.count_masks(
            rows, core.bins.tests, core.geometry, core.units, sample_weight, n_threads
        )
        if self.start is not None:
            found = _add_counts((self.start, self.mask, self.weight), found)
        self.start, self.mask, self.weight = found
        self.total += rows.n_rows if sample_weight is None else sample_weight.sum()

    def keep(self, kept: np.ndarray) -> None:
        """Forget the entries that are not ``kept``, bool of shape (n_entries,)."""
        self.start = np.concatenate([[0], np.cumsum(kept)])[self.start]
        self.mask, self.weight = self.mask[kept], self.weight[kept]

    def counted(self, core, n_threads: int) -> MaskCounts:
        """These counts; see `KeptRows.counted`."""
        return self

    def joined(self, other: MaskCounts) -> MaskCounts:
        """The counts of both backgrounds together."""
        out = MaskCounts()
        out.start, out.mask, out.weight = _add_counts(
            (self.start, self.mask, self.weight), (other.start, other.mask, other.weight)
        )
        out.total = self.total + other.total
        return out

    def packed(self) -> dict[str, np.ndarray]:
        """All there is, as arrays."""
        total = np.array([self.total])
        return {"start": self.start, "mask": self.mask, "weight": self.weight, "total": total}

    @classmethod
    def unpacked(cls, core, arrays: dict[str, np.ndarray]) -> MaskCounts:
        """Counts from arrays, which may come from anywhere; see `unpacked`."""
        out = cls.unpacked_part(core, arrays, is_weight=True)
        start, weight = out.start, out.weight
        check_array("total", arrays["total"], weight.dtype, (1,), is_weight=True)
        at_leaf = np.add.reduceat(weight, start[:-1]) if len(weight) else np.zeros(0)
        if np.any(np.diff(start) == 0) or not np.allclose(at_leaf, out.total, rtol=1e-9):
            raise ValueError("the array 'weight' does not add up to the same at all leaves")
        return out

    @classmethod
    def unpacked_part(cls, core, arrays: dict[str, np.ndarray], *, is_weight: bool) -> MaskCounts:
        """Counts that need not be those of all rows at each leaf.

        Parameters
        ----------
        core : CoreModel
        arrays : dict of str to ndarray
            From anywhere.
        is_weight : bool
            Whether none may be negative.
        """
        start, mask, weight = (arrays[name] for name in ("start", "mask", "weight"))
        sizes = core.geometry.leaf_sizes
        check_array("start", start, "int64", (len(sizes) + 1,))
        check_array("mask", mask, "uint64", (len(weight), core.geometry.n_words))
        if weight.dtype.kind not in "if":
            raise ValueError(f"the array 'weight' is {weight.dtype}")
        check_array("weight", weight, weight.dtype, (len(weight),), is_weight=is_weight)
        check_array("total", arrays["total"], arrays["total"].dtype, (1,))
        if start[0] != 0 or start[-1] != len(weight) or np.any(np.diff(start) < 0):
            raise ValueError("the array 'start' does not part the masks among the leaves")
        size = np.repeat(sizes, np.diff(start))[:, None] - 64 * np.arange(mask.shape[1])
        beyond = np.where(size > 0, mask >> np.clip(size, 0, 63).astype(np.uint64), mask)
        if np.any(beyond[size < 64]):
            raise ValueError("the array 'mask' has a player that a leaf does not have")
        out = cls()
        out.start, out.mask, out.weight = start, mask, weight
        out.total = arrays["total"][0].item()
        return out

    def coverage(self, core) -> EmpiricalCoverage:
        """The coverage that the counts say."""
        return EmpiricalCoverage(self.start, self.mask, self.weight, float(self.total))

    def mean(self, core, coverage: EmpiricalCoverage) -> np.ndarray:
        """Mean raw prediction over the background, shape (n_outputs,)."""
        share, _ = coverage.near_full(core.geometry.leaf_sizes)
        return core.mean(share)


Counts = tuple[np.ndarray, np.ndarray, np.ndarray]


def _add_counts(one: Counts, other: Counts) -> Counts:
    """The sum of two weights by leaf and mask."""
    starts, masks, weights = zip(one, other, strict=True)
    n_leaves = len(starts[0]) - 1
    leaf = np.concatenate([np.repeat(np.arange(n_leaves), np.diff(start)) for start in starts])
    mask, weight = np.concatenate(masks), np.concatenate(weights)
    order = _order(leaf, mask, n_leaves)
    leaf, mask, weight = leaf[order], mask[order], weight[order]
    new = np.ones(len(leaf), bool)
    new[1:] = (leaf[1:] != leaf[:-1]) | np.any(mask[1:] != mask[:-1], axis=1)
    first = np.flatnonzero(new)
    start = np.searchsorted(leaf[first], np.arange(n_leaves + 1))
    return start, mask[first], np.add.reduceat(weight, first) if len(first) else weight


def _order(leaf: np.ndarray, mask: np.ndarray, n_leaves: int) -> np.ndarray:
    """The order of entries by leaf and mask."""
    n_bits = int(mask.max(initial=0)).bit_length()
    if mask.shape[1] > 1 or n_bits + n_leaves.bit_length() > 64:
        return np.lexsort((*mask.T, leaf))
    # One key, of which what was counted is in order mostly: a stable sort only merges that.
    key = (leaf.astype(np.uint64) << np.uint64(n_bits)) | mask[:, 0]
    return np.argsort(key, kind="stable")


class KeptRows:
    """The rows of the background as codes.

    Attributes
    ----------
    rows : BinnedRows or None
        None before there are rows.
    sample_weight : ndarray of shape (n_rows,), float64, or None
        None while no row has a weight.
    total : int or float
    response : ndarray of shape (n_outputs,)
        Weighted sum of the raw predictions.
    """

    def __init__(self) -> None:
        self.rows = self.sample_weight = None
        self.total = 0
        self.response: np.ndarray | float = 0.0

    def add(self, core, rows: BinnedRows, sample_weight, n_threads: int) -> None:
        """Add rows, as `MaskCounts.add`."""
        self._append(
            core,
            rows,
            sample_weight,
            lambda: _responses(core, rows, sample_weight, n_threads).sum(axis=0),
        )

    def _append(
        self, core, rows: BinnedRows, sample_weight, response: Callable[[], np.ndarray]
    ) -> None:
        joined, weights = join_rows(core.bins, self.rows, self.sample_weight, rows, sample_weight)
        if joined.n_rows <= FEW_ROWS:
            # The same to the last bit in whatever order and parts the rows have come.
            predicted = _responses(core, joined, weights, 1)
            self.response = np.array([fsum(column) for column in predicted.T])
        else:
            self.response = self.response + response()
        self.rows, self.sample_weight = joined, weights
        self.total = joined.n_rows if weights is None else weights.sum()

    def counted(self, core, n_threads: int) -> MaskCounts:
        """What the rows count for at the leaves."""
        out = MaskCounts()
        out.add(core, self.rows, self.sample_weight, n_threads)
        return out

    def joined(self, core, other: KeptRows) -> KeptRows:
        """The rows of both backgrounds, those of the other at the end."""
        out = KeptRows()
        for part in (self, other):
            out._append(core, part.rows, part.sample_weight, lambda part=part: part.response)
        return out

    def packed(self) -> dict[str, np.ndarray]:
        """All there is, as arrays."""
        return {**pack_rows(self.rows, self.sample_weight), "response": self.response}

    @classmethod
    def unpacked(cls, core, arrays: dict[str, np.ndarray]) -> KeptRows:
        """Rows from arrays, which may come from anywhere; see `unpacked`."""
        check_array("response", arrays["response"], "float64", (core.n_outputs,))
        out = cls()
        out._append(core, *unpack_rows(core.bins, arrays), lambda: arrays["response"])
        return out

    def coverage(self, core) -> KeptCoverage:
        """The coverage that the rows say."""
        return KeptCoverage(core, self.rows, self.sample_weight, float(self.total))

    def mean(self, core, coverage: KeptCoverage) -> np.ndarray:
        """Mean raw prediction over the background, shape (n_outputs,)."""
        return self.response / self.total


def _responses(core, rows: BinnedRows, sample_weight, n_threads: int) -> np.ndarray:
    """Raw predictions times weights, shape (n_rows, n_outputs)."""
    predicted = core.predict(rows, n_threads)
    return predicted if sample_weight is None else predicted * sample_weight[:, None]


def join_rows(
    bins, rows: BinnedRows | None, sample_weight, more: BinnedRows, more_weight
) -> tuple[BinnedRows, np.ndarray | None]:
    """Rows and their weights with more of them at the end.

    Parameters
    ----------
    bins : Bins
    rows, more : BinnedRows
        ``rows`` is None before there are any.
    sample_weight, more_weight : ndarray of shape (n_rows,), float64, or None
        Rows without weights count one each.

    Returns
    -------
    rows : BinnedRows
    sample_weight : ndarray of shape (n_rows,), float64, or None
        None if neither has weights.
    """
    if rows is None:
        return more, more_weight
    joined, columns = bins.empty_rows(rows.n_rows + more.n_rows)
    for column, *parts in zip(columns, rows.columns(), more.columns(), strict=True):
        np.concatenate(parts, out=column)
    if sample_weight is None and more_weight is None:
        return joined, None
    weights = [
        np.ones(part.n_rows) if weight is None else weight
        for part, weight in ((rows, sample_weight), (more, more_weight))
    ]
    return joined, np.concatenate(weights)


def pack_rows(rows: BinnedRows, sample_weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Binned rows and their weights as arrays, for `unpack_rows`."""
    out = {"rows": rows.data, "n_rows": np.array([rows.n_rows])}
    return out if sample_weight is None else {**out, "sample_weight": sample_weight}


def unpack_rows(bins, arrays: dict[str, np.ndarray]) -> tuple[BinnedRows, np.ndarray | None]:
    """Binned rows and their weights from arrays, which may come from anywhere.

    Parameters
    ----------
    bins : Bins
    arrays : dict of str to ndarray
        From `pack_rows`.

    Returns
    -------
    rows : BinnedRows
    sample_weight : ndarray of shape (n_rows,), float64, or None

    Raises
    ------
    ValueError, KeyError
        If they are none of these bins.
    """
    check_array("n_rows", arrays["n_rows"], "int64", (1,))
    n_rows = int(arrays["n_rows"][0])
    padded = [-(-int(width) * n_rows // 8) * 8 for width in bins.width]
    if not 0 < n_rows < 2**48:
        raise ValueError(f"the array 'n_rows' says {n_rows}")
    check_array("rows", arrays["rows"], "uint8", (sum(padded),))
    offset = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)[: len(padded)]
    rows = BinnedRows(arrays["rows"], offset, bins.width, n_rows)
    for codes, n_codes in zip(rows.columns(), bins.n_codes, strict=True):
        if np.any((codes >= n_codes) & (codes != np.iinfo(codes.dtype).max)):
            raise ValueError("the array 'rows' has a code that its column does not have")
    weight = arrays.get("sample_weight")
    if weight is not None:
        check_array("sample_weight", weight, "float64", (n_rows,), is_weight=True)
    return rows, weight


def check_array(
    name: str, array: np.ndarray, dtype, shape: tuple[int, ...], *, is_weight: bool = False
) -> None:
    """Refuse an array of another type or shape, or with what is no number or no weight."""
    if array.dtype != np.dtype(dtype) or array.shape != shape:
        raise ValueError(
            f"the array {name!r} is {array.dtype} of shape {array.shape}, and should be {dtype} of "
            f"shape {shape}"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"the array {name!r} has a value that is not finite")
    is_odd = array.dtype.kind not in "if" or np.any(array < 0) or not np.any(array)
    if is_weight and array.size and is_odd:
        raise ValueError(f"the array {name!r} has no weights")


class KeptCoverage:
    """A coverage that is counted when it is asked for: once, or a few trees at a time.

    Parameters
    ----------
    core : CoreModel
    rows : BinnedRows
        The background.
    sample_weight : ndarray of shape (n_rows,), float64, or None
    total : float
        Weight of the background.
    """

    def __init__(self, core, rows: BinnedRows, sample_weight, total: float) -> None:
        self.core, self.rows, self.sample_weight, self.total = core, rows, sample_weight, total
        self.n_rows = rows.n_rows
        self._near = self._whole = None

    @cached_property
    def in_order(self) -> tuple[BinnedRows, np.ndarray]:
        """The rows in an order that depends on nothing but their codes, and the share of each.

        Sums over them are the same to the last bit in whatever order they have come.
        """
        weight = np.ones(self.n_rows) if self.sample_weight is None else self.sample_weight
        rows, share = self.rows, weight / self.total
        codes = [column.view(np.uint8).reshape(self.n_rows, -1) for column in rows.columns()]
        key = np.concatenate([*codes, share.view(np.uint8).reshape(self.n_rows, -1)], axis=1)
        order = np.argsort(key.view(f"V{key.shape[1]}")[:, 0])
        return taken(rows, order), share[order]

    def _counted(self, first_tree: int, last_tree: int, n_threads: int) -> EmpiricalCoverage:
        core = self.core
        found = counting.count_masks(
            self.rows,
            core.bins.tests,
            core.geometry,
            core.units,
            self.sample_weight,
            n_threads,
            first_tree,
            last_tree,
        )
        return EmpiricalCoverage(*found, self.total)

    def parts(self, n_threads: int):
        """The coverage of the trees, part by part.

        Parameters
        ----------
        n_threads : int

        Yields
        ------
        first_tree, last_tree : int
            None for the last tree.
        coverage : EmpiricalCoverage
            Of the leaves of these trees.
        """
        if self._whole is None and not has_many_masks(self.core):
            self._whole = self._counted(0, self.core.geometry.n_trees, n_threads)
        if self._whole is not None:
            yield 0, None, self._whole
            return
        n_counts = np.cumsum(n_masks(self.core.geometry))
        # Each thread counts a tree at a time: a part has as many for each of them.
        bundle = np.arange(len(n_counts)) // n_threads
        group = n_counts[bundle * n_threads] // GROUP_COUNTS
        first = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
        for start, stop in pairwise([*first, len(group)]):
            yield start, stop, self._counted(start, stop, n_threads)

    def near_full(self, sizes: np.ndarray, n_threads: int = 1):
        """Shares within all sides of a leaf, and within all but one; as `EmpiricalCoverage`."""
        if self._near is None:
            parts = [part.near_full(sizes) for _, _, part in self.parts(n_threads)]
            self._near = tuple(np.sum(shares, axis=0) for shares in zip(*parts, strict=True))
        return self._near

    def without_pairs(self, sizes, leaves, locals_, n_threads: int = 1):
        """Shares within all sides of a leaf but two; as `EmpiricalCoverage`."""
        out = np.zeros(len(leaves))
        for _, _, part in self.parts(n_threads):
            out += part.without_pairs(sizes, leaves, locals_)
        return out
