"""The thresholds of a forest, sorted column by column.

A forest of unpruned trees has a million thresholds and more. They are sorted by their digits of eight
bits, in time that is linear in their number.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef enum:
    FEW = 48      # thresholds that are sorted sooner by insertion
    NOWHERE = -1  # in place of a node: an edge that is no node's threshold

ENTRY = np.dtype([("key", np.uint64), ("node", np.int64)])


cdef struct Entry:
    uint64_t key   # ascends as thresholds do
    int64_t node


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
    cdef const uint8_t[::1] categorical = is_categorical.view(np.uint8)
    cdef int64_t n_nodes = slot.shape[0], node, s, n, most, is_number
    # Nodes without a threshold have a slot of their own, before the others, in which each takes
    # the place of the one before: a branch could not be foretold.
    starts = np.zeros(n_slots + 2, np.int64)
    cdef int64_t[::1] start = starts
    for node in range(n_nodes):
        is_number = (slot[node] >= 0) & (categorical[node] == 0)
        start[is_number * (slot[node] + 1) + 1] += is_number
    for s, found in extra.items():
        start[s + 2] += len(found)
    starts[1] = 1
    most = starts.max()
    np.cumsum(starts, out=starts)
    places = starts.copy()
    cdef int64_t[::1] place = places
    entries, spare = np.empty(starts[n_slots + 1], ENTRY), np.empty(most, ENTRY)
    cdef uint8_t[::1] entry_bytes = entries.view(np.uint8), spare_bytes = spare.view(np.uint8)
    cdef Entry* entry = <Entry*> &entry_bytes[0]
    cdef double edge
    for node in range(n_nodes):
        is_number = (slot[node] >= 0) & (categorical[node] == 0)
        s = is_number * (slot[node] + 1)
        entry[place[s]].key = _key(threshold[node], strict, single)
        entry[place[s]].node = node
        place[s] += is_number
    for s, found in extra.items():
        for edge in found:
            entry[place[s + 1]].key = _key(edge, strict, single)
            entry[place[s + 1]].node = NOWHERE
            place[s + 1] += 1
    ranks, edges = np.zeros(n_nodes, np.uint32), np.empty(starts[n_slots + 1])
    cdef uint32_t[::1] rank = ranks
    cdef double[::1] edge_of = edges
    lists = []
    for s in range(1, n_slots + 1):
        n = start[s + 1] - start[s]
        if n:
            _sort(entry + start[s], <Entry*> &spare_bytes[0], n)
            n = _number(entry + start[s], n, single, &edge_of[start[s]], &rank[0])
        lists.append(edges[start[s]:start[s] + n])
    return lists, ranks


cdef inline uint64_t _key(double x, bint strict, bint single) noexcept nogil:
    """An integer that ascends with a threshold."""
    cdef uint64_t bits
    cdef uint32_t few, zero = <uint32_t> 1 << 31
    cdef float rounded
    if not single:
        x += 0.0  # both zeros are one
        memcpy(&bits, &x, sizeof(bits))
        return bits ^ (-(bits >> 63) | <uint64_t> 1 << 63)
    rounded = <float> x
    memcpy(&few, &rounded, sizeof(few))
    few ^= -(few >> 31) | zero
    few += strict & (rounded < x)  # the next float32
    few -= (not strict) & (rounded > x)
    return few + (few == zero - 1)


cdef inline double _threshold(uint64_t key, bint single) noexcept nogil:
    """The threshold that has a key."""
    cdef uint64_t bits = key ^ (((key >> 63) - 1) | <uint64_t> 1 << 63)
    cdef uint32_t few = <uint32_t> key
    cdef double x
    cdef float rounded
    if not single:
        memcpy(&x, &bits, sizeof(x))
        return x
    few ^= ((few >> 31) - 1) | <uint32_t> 1 << 31
    memcpy(&rounded, &few, sizeof(rounded))
    return rounded


cdef void _sort(Entry* entry, Entry* spare, int64_t n) noexcept nogil:
    """Sort by key."""
    cdef int64_t count[8][256]
    cdef int64_t i, j, digit, value, before, times
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
        for digit in range(8):
            count[digit][(key >> (8 * digit)) & 255] += 1
    for digit in range(8):
        if count[digit][(entry[0].key >> (8 * digit)) & 255] == n:
            continue  # all have the same, as float32 numbers do where they end
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


cdef int64_t _number(
    const Entry* entry, int64_t n, bint single, double* edge, uint32_t* rank
) noexcept nogil:
    """Number the different keys; how many there are."""
    cdef int64_t i, last = -1
    for i in range(n):
        if i == 0 or entry[i].key != entry[i - 1].key:
            last += 1
            edge[last] = _threshold(entry[i].key, single)
        if entry[i].node != NOWHERE:
            rank[entry[i].node] = <uint32_t> last
    return last + 1
