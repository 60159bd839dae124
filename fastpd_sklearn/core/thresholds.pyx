"""The thresholds of a forest, sorted column by column.

A forest of unpruned trees has a million thresholds and more. They are sorted by their digits of eight
bits, in time that is linear in their number, by each thread some columns.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

from fastpd_sklearn.core.threads import threads_for_nodes

cdef enum:
    FEW = 48      # thresholds that are sorted sooner by insertion
    NOWHERE = -1  # in place of a node: an edge that is no node's threshold
    APART = 16    # entries where a thread writes what is of no use, for each of them

NARROW = np.dtype([("key", np.uint32), ("node", np.int32)])
WIDE = np.dtype([("key", np.uint64), ("node", np.int64)])


cdef struct Narrow:
    uint32_t key   # ascends as float32 thresholds do
    int32_t node


cdef struct Wide:
    uint64_t key   # as float64 thresholds do
    int64_t node


ctypedef fused Entry:
    Narrow
    Wide


def rank_thresholds(
    const int32_t[::1] slot, is_categorical, const double[::1] threshold, int64_t n_slots, extra,
    bint strict, bint single,
):
    """Edges of the columns of numbers, and the place of each node's threshold among them.

    Parameters
    ----------
    slot : ndarray of shape (n_nodes,), int32
        The column that is tested; -1 at leaves.
    is_categorical : ndarray of shape (n_nodes,), bool
        Nodes without a threshold.
    threshold : ndarray of shape (n_nodes,), float64
    n_slots : int
    extra : dict of int -> ndarray of float64
        Edges of a slot that are no thresholds.
    strict, single : bool
        The compare policy. With `single` thresholds become the float32 numbers that decide alike:
        ``x < t`` is ``x < ceil(t)``, and ``x <= t`` is ``x <= floor(t)``.

    Returns
    -------
    edges : list of ndarray of float64
        Of each slot, ascending.
    rank : ndarray of shape (n_nodes,), uint32
        Zero at nodes without a threshold.
    """
    cdef int n_threads = threads_for_nodes(slot.shape[0])
    cdef const uint8_t[::1] categorical = is_categorical.view(np.uint8)
    places, starts = _find_places(slot, categorical, n_slots, extra, n_threads)
    kind = NARROW if single else WIDE
    entries, spare = np.empty(starts[n_slots + 1], kind), np.empty(starts[n_slots + 1], kind)
    cdef uint8_t[::1] entry = entries.view(np.uint8), room = spare.view(np.uint8)
    if single:
        return _rank(<Narrow*> &entry[0], <Narrow*> &room[0], slot, categorical, threshold, extra,
                     places, starts, strict, n_threads)
    return _rank(<Wide*> &entry[0], <Wide*> &room[0], slot, categorical, threshold, extra,
                 places, starts, strict, n_threads)


def _find_places(
    const int32_t[::1] slot, const uint8_t[::1] categorical, int64_t n_slots, extra, int n_parts,
):
    """Where the entries of each part of the nodes begin, by slot, and those of all nodes.

    Nodes without a threshold have a slot of their own, before the others, in which each takes the
    place of the one before: a branch could not be foretold. Edges that are no thresholds follow the
    last part.
    """
    counts = np.zeros((n_parts + 1, n_slots + 1), np.int64)
    cdef int64_t[:, ::1] count = counts
    cdef int64_t n_nodes = slot.shape[0], part
    for part in prange(n_parts, nogil=True, num_threads=n_parts, schedule="static"):
        _count(slot, categorical, part * n_nodes // n_parts, (part + 1) * n_nodes // n_parts,
               &count[part, 0])
    counts[:, 0] = APART
    for s, found in extra.items():
        counts[n_parts, s + 1] = len(found)
    ends = np.cumsum(counts.T).reshape(counts.T.shape)
    starts = np.append(ends[:, 0] - counts[0], ends.max())
    return np.ascontiguousarray((ends - counts.T).T), starts


cdef void _count(
    const int32_t[::1] slot, const uint8_t[::1] categorical, int64_t first, int64_t last,
    int64_t* count,
) noexcept nogil:
    cdef int64_t node
    for node in range(first, last):
        count[((slot[node] >= 0) & (categorical[node] == 0)) * (slot[node] + 1)] += 1


cdef _rank(
    Entry* entry, Entry* spare, const int32_t[::1] slot, const uint8_t[::1] categorical,
    const double[::1] threshold, extra, places, starts, bint strict, int n_threads,
):
    cdef int64_t[:, ::1] place = places
    cdef const int64_t[::1] start = starts
    cdef int64_t n_nodes = slot.shape[0], n_slots = start.shape[0] - 2, part, s
    cdef int64_t n_parts = place.shape[0] - 1
    cdef double one
    for part in prange(n_parts, nogil=True, num_threads=n_threads, schedule="static"):
        _deal(entry, slot, categorical, threshold, part * n_nodes // n_parts,
              (part + 1) * n_nodes // n_parts, &place[part, 0], strict)
    for s, found in extra.items():
        for one in found:
            entry[place[n_parts, s + 1]].key = _key(entry, one, strict)
            entry[place[n_parts, s + 1]].node = NOWHERE
            place[n_parts, s + 1] += 1
    ranks, edges = np.zeros(n_nodes, np.uint32), np.empty(start[n_slots + 1])
    sizes = np.zeros(n_slots + 1, np.int64)
    cdef uint32_t[::1] rank = ranks
    cdef double[::1] edge = edges
    cdef int64_t[::1] size = sizes
    for s in prange(1, n_slots + 1, nogil=True, num_threads=n_threads, schedule="dynamic"):
        size[s] = _sort_and_number(
            entry + start[s], spare + start[s], start[s + 1] - start[s], &edge[start[s]], &rank[0]
        )
    return [edges[a:a + n] for a, n in zip(starts[1:], sizes[1:], strict=False)], ranks


cdef void _deal(
    Entry* entry, const int32_t[::1] slot, const uint8_t[::1] categorical,
    const double[::1] threshold, int64_t first, int64_t last, int64_t* place, bint strict,
) noexcept nogil:
    """Put the thresholds of some nodes to those of their slots."""
    cdef int64_t node, s, is_number
    for node in range(first, last):
        is_number = (slot[node] >= 0) & (categorical[node] == 0)
        s = is_number * (slot[node] + 1)
        entry[place[s]].key = _key(entry, threshold[node], strict)
        entry[place[s]].node = node
        place[s] += is_number


cdef int64_t _sort_and_number(
    Entry* entry, Entry* spare, int64_t n, double* edge, uint32_t* rank
) noexcept nogil:
    _sort(entry, spare, n)
    return _number(entry, n, edge, rank)


cdef inline uint64_t _key(const Entry* entry, double x, bint strict) noexcept nogil:
    """An integer that ascends with a threshold, of the type that entries have."""
    cdef uint64_t bits
    cdef uint32_t few, zero = <uint32_t> 1 << 31
    cdef float rounded
    if Entry is Wide:
        x += 0.0  # both zeros are one
        memcpy(&bits, &x, sizeof(bits))
        return bits ^ (-(bits >> 63) | <uint64_t> 1 << 63)
    else:
        rounded = <float> x
        memcpy(&few, &rounded, sizeof(few))
        few ^= -(few >> 31) | zero
        few += strict & (rounded < x)  # the next float32
        few -= (not strict) & (rounded > x)
        return few + (few == zero - 1)


cdef inline double _threshold(const Entry* entry) noexcept nogil:
    """The threshold that has the key of an entry."""
    cdef uint64_t bits = entry.key
    cdef uint32_t few = <uint32_t> entry.key
    cdef double x
    cdef float rounded
    if Entry is Wide:
        bits ^= ((bits >> 63) - 1) | <uint64_t> 1 << 63
        memcpy(&x, &bits, sizeof(x))
        return x
    else:
        few ^= ((few >> 31) - 1) | <uint32_t> 1 << 31
        memcpy(&rounded, &few, sizeof(rounded))
        return rounded


cdef void _sort(Entry* entry, Entry* spare, int64_t n) noexcept nogil:
    """Sort by key."""
    cdef int64_t count[8][256]
    cdef int64_t i, j, digit, value, before, times, n_digits = sizeof(entry.key)
    cdef uint64_t key
    cdef Entry moved
    cdef Entry* source = entry
    cdef Entry* target = spare
    if n <= FEW:
        for i in range(1, n):
            moved, j = entry[i], i
            while j > 0 and entry[j - 1].key > moved.key:
                entry[j] = entry[j - 1]
                j -= 1
            entry[j] = moved
        return
    memset(count, 0, sizeof(count))
    for i in range(n):
        key = entry[i].key
        for digit in range(n_digits):
            count[digit][(key >> (8 * digit)) & 255] += 1
    for digit in range(n_digits):
        if count[digit][(entry[0].key >> (8 * digit)) & 255] == n:
            continue  # all have the same
        before = 0
        for value in range(256):
            times = count[digit][value]
            count[digit][value] = before
            before += times
        for i in range(n):
            value = (source[i].key >> (8 * digit)) & 255
            target[count[digit][value]] = source[i]
            count[digit][value] += 1
        source, target = target, source
    if source != entry:
        memcpy(entry, source, n * sizeof(Entry))


cdef int64_t _number(const Entry* entry, int64_t n, double* edge, uint32_t* rank) noexcept nogil:
    """Number the different keys; how many there are."""
    cdef int64_t i, last = -1
    for i in range(n):
        if i == 0 or entry[i].key != entry[i - 1].key:
            last += 1
            edge[last] = _threshold(&entry[i])
        if entry[i].node != NOWHERE:
            rank[entry[i].node] = <uint32_t> last
    return last + 1
