"""Which terms each leaf and each unit has a part in."""

from itertools import chain, combinations
from math import comb

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport qsort

import numpy as np

MOST_MARKED = 1 << 14  # tested players whose common paths are found in a table of all pairs
SETS_A_TERM = 200  # sets of players that can be listed in the time it takes to look for one term


class Plan:
    """Where the values of terms come from.

    Parameters
    ----------
    geometry : Geometry
    units : Units
    terms : list of tuple of int
        Sets of players, sorted, each once; the columns of the result.
    leaf_value : ndarray of shape (n_leaves, n_values), float64, default=None
        Leaves of nothing but zeros have no part in any term.

    Attributes
    ----------
    n_terms : int
    leaf_term_start : ndarray of shape (n_leaves + 1,), int64
        Terms whose players are all among the leaf's: ``leaf_term_start[l]`` up to
        ``leaf_term_start[l + 1]``.
    leaf_term_mask : ndarray of shape (n, n_words), uint64
        The term as a set of local players; ascending within a leaf.
    leaf_term_slot : ndarray of shape (n,), int32
        Its place in the unit's table.
    unit_term_start : ndarray of shape (n_units + 1,), int64
    unit_term : ndarray of int32
        The terms of all the unit's leaves.
    """

    def __init__(self, geometry, units, terms, leaf_value=None):
        leaf, term, mask = _match(geometry, terms)
        if leaf_value is not None and not np.all(counts := leaf_value.any(axis=1)):
            counts = counts[leaf]
            leaf, term, mask = leaf[counts], term[counts], mask[counts]
        if any(len(t) > 1 for t in terms):
            order = _order(leaf, mask, geometry.n_leaves)
            leaf, term, mask = leaf[order], term[order], np.ascontiguousarray(mask[order])
        self._units, self._n_leaves = units, geometry.n_leaves
        self._tree_of_unit = np.repeat(np.arange(geometry.n_trees), np.diff(units.tree_unit))
        self._index(len(terms), leaf, term, mask)

    def _index(self, n_terms, leaf, term, mask):
        """Take matches of leaves and terms that are sorted by leaf and mask."""
        self.n_terms, self._leaf, self._term, self.leaf_term_mask = n_terms, leaf, term, mask
        self.leaf_term_start = np.zeros(self._n_leaves + 1, np.int64)
        np.cumsum(np.bincount(leaf, minlength=self._n_leaves), out=self.leaf_term_start[1:])
        self.unit_term_start, self.unit_term, self.leaf_term_slot = _unit_terms(
            self._units.leaf_start, self._units.leaf, self.leaf_term_start, term, n_terms
        )

    def by_tree(self):
        """The terms in an order in which neighbours need few trees.

        Returns
        -------
        ndarray of shape (n_terms,), int64
            Terms that several trees have a part in come first, then those of the first tree alone,
            and so on.
        """
        tree = self._tree_of_unit[np.repeat(
            np.arange(len(self._tree_of_unit)), np.diff(self.unit_term_start)
        )]
        first = np.full(self.n_terms, len(self._tree_of_unit), np.int64)
        last = np.full(self.n_terms, -1, np.int64)
        np.minimum.at(first, self.unit_term, tree)
        np.maximum.at(last, self.unit_term, tree)
        return np.argsort(np.where(first < last, -1, first), kind="stable")

    def parts(self, blocks):
        """Plans for some of the terms each.

        Parameters
        ----------
        blocks : list of ndarray of int64
            Numbers of terms, each in one block at most.

        Yields
        ------
        Plan
            For the terms of each block, in their order.
        """
        block_of_term = np.full(self.n_terms, len(blocks), np.int64)
        number = np.zeros(self.n_terms, np.int64)
        for b, terms in enumerate(blocks):
            block_of_term[terms] = b
            number[terms] = np.arange(len(terms))
        block = block_of_term[self._term]
        order = np.argsort(block, kind="stable")
        bounds = np.searchsorted(block[order], np.arange(len(blocks) + 1))
        for b, terms in enumerate(blocks):
            chosen = order[bounds[b]:bounds[b + 1]]
            part = Plan.__new__(Plan)
            part._units, part._n_leaves = self._units, self._n_leaves
            part._tree_of_unit = self._tree_of_unit
            part._index(
                len(terms), self._leaf[chosen], number[self._term[chosen]],
                np.ascontiguousarray(self.leaf_term_mask[chosen]),
            )
            yield part


cdef int _ascending(const void* a, const void* b) noexcept nogil:
    cdef int32_t x = (<const int32_t*> a)[0], y = (<const int32_t*> b)[0]
    return (x > y) - (x < y)


def _unit_terms(
    const int64_t[::1] leaf_start, const int64_t[::1] unit_leaf, const int64_t[::1] start,
    const int64_t[::1] term, int64_t n_terms,
):
    """The terms of each unit's leaves, ascending, and the place of each match's term among them."""
    cdef int64_t n_units = leaf_start.shape[0] - 1, unit, k, e, i, first, size = 0
    starts = np.zeros(n_units + 1, np.int64)
    terms, slots = np.empty(len(term), np.int32), np.empty(len(term), np.int32)
    places = np.full(n_terms, -1, np.int32)
    cdef int64_t[::1] unit_start = starts
    cdef int32_t[::1] unit_term = terms, slot = slots, place = places
    for unit in range(n_units):
        first = size
        for k in range(leaf_start[unit], leaf_start[unit + 1]):
            for e in range(start[unit_leaf[k]], start[unit_leaf[k] + 1]):
                if place[term[e]] < 0:
                    place[term[e]] = 0
                    unit_term[size] = <int32_t> term[e]
                    size += 1
        if size > first:
            qsort(&unit_term[first], size - first, sizeof(int32_t), _ascending)
        for i in range(first, size):
            place[unit_term[i]] = <int32_t> (i - first)
        for k in range(leaf_start[unit], leaf_start[unit + 1]):
            for e in range(start[unit_leaf[k]], start[unit_leaf[k] + 1]):
                slot[e] = place[term[e]]
        for i in range(first, size):
            place[unit_term[i]] = -1
        unit_start[unit + 1] = size
    return starts, terms[:size].copy(), slots


class Matches:
    """For terms of one or two players the leaves that have a part in them, term by term.

    Parameters
    ----------
    geometry : Geometry
    terms : list of tuple of int

    Attributes
    ----------
    start : ndarray of shape (n_terms + 1,), int64
    leaf : ndarray of shape (n,), int64
    local : ndarray of shape (n, 2), int64
        The local players of the term's first and last player.
    packed : ndarray of shape (n, 3), int64
        Both, side by side.
    """

    def __init__(self, geometry, terms):
        singles, pairs = _match_singles(geometry, terms), _match_pairs(geometry, terms)
        leaf = np.concatenate([singles[0], pairs[0]])
        term = np.concatenate([singles[1], pairs[1]])
        local = np.concatenate([np.stack([singles[2], singles[2]], axis=1), pairs[2]])
        order = np.lexsort((leaf, term))
        self.start = np.searchsorted(term[order], np.arange(len(terms) + 1))
        self.leaf, self.local = leaf[order], local[order]
        self._pack()

    def _pack(self):
        self.packed = np.column_stack([self.leaf, self.local])
        if not len(self.packed):
            self.packed = np.zeros((1, 3), np.int64)

    def of(self, k):
        """The matches of the k-th term alone."""
        part = slice(self.start[k], self.start[k + 1])
        one = Matches.__new__(Matches)
        one.leaf, one.local = self.leaf[part], self.local[part]
        one.start = np.array([0, len(one.leaf)])
        one._pack()
        return one


def reduce_terms(function, values, terms):
    """A function of the values of each term's players.

    Parameters
    ----------
    function : numpy.ufunc
        Of two values, such as ``np.minimum``.
    values : ndarray of shape (n_players,)
    terms : list of tuple of int

    Returns
    -------
    ndarray of shape (n_terms,)
    """
    if not terms:
        return values[:0]
    sizes = np.fromiter(map(len, terms), np.int64, len(terms))
    ends = np.cumsum(sizes)
    players = np.fromiter(chain.from_iterable(terms), np.int64, int(ends[-1]))
    return function.reduceat(values[players], ends - sizes)


def common_terms(geometry, max_order=None):
    """Sets of two or more players that lie on a common path.

    Parameters
    ----------
    geometry : Geometry
    max_order : int or None
        Size of the largest sets; None for no limit.

    Returns
    -------
    list of tuple of int
        By size, then in lexicographic order.
    """
    if max_order == 1:
        return []
    found = [tuple(pair) for pair in _common_pairs(geometry).tolist()]
    if max_order == 2:
        return found
    leaf, mask, key = _larger_sets(geometry, max_order)
    _, first = np.unique(key, return_index=True)
    return found + _sorted_sets(geometry, leaf[first], mask[first])


def _common_pairs(geometry):
    """Pairs of players that lie on a common path, ascending, of shape (n_pairs, 2)."""
    tested = np.unique(geometry.player)
    if len(tested) > MOST_MARKED:
        _, low, high, _ = _all_pairs(geometry)
        return np.unique(np.stack([low, high], axis=1), axis=0)
    rank = np.zeros(geometry.n_players, np.int32)
    rank[tested] = np.arange(len(tested))
    marks = np.zeros((len(tested), len(tested)), np.uint8)
    if len(tested):
        _mark_pairs(rank[geometry.player], geometry.player_start, marks)
    return tested[np.argwhere(np.triu(marks | marks.T, 1))]


cdef void _mark_pairs(
    const int32_t[::1] player, const int64_t[::1] start, uint8_t[:, ::1] marks
) noexcept:
    cdef int64_t leaf, i, j
    for leaf in range(start.shape[0] - 1):
        for i in range(start[leaf], start[leaf + 1]):
            for j in range(start[leaf], i):
                marks[player[i], player[j]] = 1


def _sorted_sets(geometry, leaf, mask):
    """Sets of local players of some leaves as tuples of players, by size, then players."""
    words = np.ascontiguousarray(mask, dtype="<u8").view(np.uint8)
    is_in = np.unpackbits(words, axis=1, bitorder="little")
    size = is_in.sum(axis=1, dtype=np.int64)
    out = []
    for n in np.unique(size).tolist():
        chosen = np.flatnonzero(size == n)
        local = np.nonzero(is_in[chosen])[1].reshape(len(chosen), n)
        players = np.sort(geometry.player[geometry.player_start[leaf[chosen]][:, None] + local])
        out += map(tuple, players[np.lexsort(players.T[::-1])].tolist())
    return out


def count_sets(geometry, max_order=None):
    """Number of sets of players, over all leaves, that `common_terms` looks at."""
    total = 0
    for d, n_leaves in zip(*np.unique(geometry.leaf_sizes, return_counts=True)):
        most = int(d) if max_order is None else min(int(d), max_order)
        total += int(n_leaves) * sum(comb(int(d), size) for size in range(1, most + 1))
    return total


def _larger_sets(geometry, max_order):
    """Every set of three or more players of every leaf: leaf, local mask and a key of the set.

    The key (see `_words`) is the same for the same set at all leaves, and two of the sets of a
    forest share one with a chance of about 1e-9.
    """
    word = _words(geometry)
    size = geometry.leaf_sizes
    leaves, keys = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    masks = [np.empty((0, geometry.n_words), np.uint64)]
    for d in np.unique(size[size > 2]).tolist():
        leaf = np.flatnonzero(size == d)
        players = geometry.player[geometry.player_start[leaf][:, None] + np.arange(d)]
        mask = _masks_up_to(d, max_order, geometry.n_words)
        key = np.zeros((len(leaf), len(mask)), np.uint64)
        for i in range(d):
            member = mask[:, i // 64] >> np.uint64(i % 64) & np.uint64(1)
            key ^= np.where(member, word[players[:, i]][:, None], np.uint64(0))
        leaves.append(np.repeat(leaf, len(mask)))
        masks.append(np.tile(mask, (len(leaf), 1)))
        keys.append(key.ravel())
    return np.concatenate(leaves), np.concatenate(masks), np.concatenate(keys)


def _masks_up_to(d, max_order, n_words):
    """All masks of d bits with at least three and at most `max_order` of them set."""
    most = d if max_order is None else min(d, max_order)
    if d <= 16:
        mask = np.arange(1 << d, dtype=np.uint64)
        n = np.bitwise_count(mask)
        mask = mask[(n >= 3) & (n <= most)]
        return np.concatenate(
            [mask[:, None], np.zeros((len(mask), n_words - 1), np.uint64)], axis=1
        )
    members = [m for size in range(3, most + 1) for m in combinations(range(d), size)]
    mask = np.zeros((len(members), n_words), np.uint64)
    _set_bits(
        mask,
        np.repeat(np.arange(len(members)), [len(m) for m in members]),
        np.array([bit for m in members for bit in m], np.int64),
    )
    return mask


def _match(geometry, terms):
    """All pairs of a leaf and a term that it has a part in, with the term's local mask."""
    leaf, term, local = _match_singles(geometry, terms)
    mask = np.zeros((len(leaf), geometry.n_words), np.uint64)
    mask[np.arange(len(leaf)), local // 64] = np.uint64(1) << (local % 64).astype(np.uint64)
    if all(len(t) == 1 for t in terms):
        return leaf, term, mask
    parts = [(leaf, term, mask)]
    leaf, term, local = _match_pairs(geometry, terms)
    mask = np.zeros((len(leaf), geometry.n_words), np.uint64)
    _set_bits(mask, np.repeat(np.arange(len(leaf)), 2), local.ravel())
    parts.append((leaf, term, mask))
    if any(len(t) > 2 for t in terms):
        parts.append(_match_sets(geometry, terms))
    return tuple(np.concatenate(part) for part in zip(*parts))


def _order(leaf, mask, n_leaves):
    """The order of matches by leaf and mask."""
    n_bits = int(mask.max(initial=0)).bit_length()
    if mask.shape[1] > 1 or n_bits + n_leaves.bit_length() > 64:
        return np.lexsort((*mask.T, leaf))
    return np.argsort((leaf.astype(np.uint64) << np.uint64(n_bits)) | mask[:, 0])


def _match_singles(geometry, terms):
    """Leaf, term and local player for terms of one player."""
    number = np.full(geometry.n_players, -1, np.int64)
    for k, term in enumerate(terms):
        if len(term) == 1:
            number[term[0]] = k
    size = geometry.leaf_sizes
    leaf = np.repeat(np.arange(geometry.n_leaves), size)
    first = geometry.player_start[:geometry.n_leaves]
    local = np.arange(len(geometry.player)) - np.repeat(first, size)
    term = number[geometry.player]
    keep = term >= 0
    return leaf[keep], term[keep], local[keep]


def _match_pairs(geometry, terms):
    """Leaf, term and both local players, of shape (n, 2), for terms of two players."""
    numbers = [k for k, term in enumerate(terms) if len(term) == 2]
    if not numbers:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64)
    wanted = np.array([terms[k] for k in numbers], np.int64)
    key = wanted[:, 0] * geometry.n_players + wanted[:, 1]
    order = np.argsort(key)
    leaf, low, high, local = _all_pairs(geometry)
    found = low * geometry.n_players + high
    place = np.minimum(np.searchsorted(key[order], found), len(key) - 1)
    keep = key[order][place] == found
    return leaf[keep], np.array(numbers, np.int64)[order[place[keep]]], local[keep]


def _all_pairs(geometry):
    """Every pair of players of every leaf: leaf, lower and higher player, both local players."""
    size = geometry.leaf_sizes
    leaves, lows, highs, locals_ = [np.empty(0, np.int64)], [], [], [np.empty((0, 2), np.int64)]
    for d in np.unique(size[size > 1]).tolist():
        leaf = np.flatnonzero(size == d)
        players = geometry.player[geometry.player_start[leaf][:, None] + np.arange(d)]
        i, j = np.triu_indices(d, 1)
        swapped = players[:, i] > players[:, j]
        local = np.stack([np.where(swapped, j, i), np.where(swapped, i, j)], axis=2)
        leaves.append(np.repeat(leaf, len(i)))
        lows.append(np.minimum(players[:, i], players[:, j]).ravel().astype(np.int64))
        highs.append(np.maximum(players[:, i], players[:, j]).ravel().astype(np.int64))
        locals_.append(local.reshape(len(leaf) * len(i), 2))
    none = [np.empty(0, np.int64)]
    return (
        np.concatenate(leaves), np.concatenate(none + lows), np.concatenate(none + highs),
        np.concatenate(locals_),
    )


def _match_sets(geometry, terms):
    """The same for terms of three or more players, with the local mask."""
    numbers = [k for k, term in enumerate(terms) if len(term) > 2]
    most = max(len(terms[k]) for k in numbers)
    if SETS_A_TERM * len(numbers) < count_sets(geometry, most):
        return _match_term_by_term(geometry, terms, numbers)
    word = _words(geometry)
    key = np.array(
        [np.bitwise_xor.reduce(word[list(terms[k])]) for k in numbers], np.uint64
    )
    order = np.argsort(key)
    leaf, mask, found = _larger_sets(geometry, most)
    place = np.minimum(np.searchsorted(key[order], found), len(key) - 1)
    keep = key[order][place] == found
    return leaf[keep], np.array(numbers, np.int64)[order[place[keep]]], mask[keep]


def _match_term_by_term(geometry, terms, numbers):
    """`_match_sets` for few terms: the leaves that have each of a term's players."""
    size = geometry.leaf_sizes
    order = np.argsort(geometry.player, kind="stable")
    bounds = np.searchsorted(geometry.player[order], np.arange(geometry.n_players + 1))
    owner = np.repeat(np.arange(geometry.n_leaves), size)[order]
    local = order - np.repeat(geometry.player_start[:geometry.n_leaves], size)[order]
    leaves, ks = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    masks = [np.empty((0, geometry.n_words), np.uint64)]
    for k in numbers:
        parts = [slice(bounds[p], bounds[p + 1]) for p in terms[k]]
        leaf = owner[parts[0]]
        for part in parts[1:]:
            leaf = np.intersect1d(leaf, owner[part], assume_unique=True)
        mask = np.zeros((len(leaf), geometry.n_words), np.uint64)
        for part in parts:
            _set_bits(mask, np.arange(len(leaf)), local[part][np.searchsorted(owner[part], leaf)])
        leaves.append(leaf)
        ks.append(np.full(len(leaf), k))
        masks.append(mask)
    return np.concatenate(leaves), np.concatenate(ks), np.concatenate(masks)


def _words(geometry):
    """A random word for each player; a set's key is the exclusive or of its players' words."""
    return np.random.default_rng(0).integers(1, 2**63, geometry.n_players, dtype=np.uint64)


def _set_bits(mask, rows, bits):
    np.bitwise_or.at(
        mask, (rows, bits // 64), np.left_shift(np.uint64(1), (bits % 64).astype(np.uint64))
    )
