"""The thresholds of a forest, sorted column by column.

A forest of unpruned trees has a million thresholds and more. They are sorted by their digits of eight
bits, in time that is linear in their number.
"""

from libc.math cimport INFINITY, nextafterf
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef enum:
    FEW = 48     # thresholds that are sorted sooner by insertion
    NOWHERE = -1 # in place of a node: an edge that is no node's threshold

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
    cdef int64_t n_nodes = slot.shape[0], node, s, n, most = 0
    starts = np.zeros(n_slots + 1, np.int64)
    cdef int64_t[::1] start = starts
    for node in range(n_nodes):
        if slot[node] >= 0 and not categorical[node]:
            start[slot[node] + 1] += 1
    for s, found in extra.items():
        start[s + 1] += len(found)
    most = starts.max()
    np.cumsum(starts, out=starts)
    places = starts.copy()
    cdef int64_t[::1] place = places
    entries, spare = np.empty(starts[n_slots] + 1, ENTRY), np.empty(most + 1, ENTRY)
    cdef uint8_t[::1] entry_bytes = entries.view(np.uint8), spare_bytes = spare.view(np.uint8)
    cdef Entry* entry = <Entry*> &entry_bytes[0]
    cdef double edge
    for node in range(n_nodes):
        if slot[node] >= 0 and not categorical[node]:
            edge = threshold[node]
            if single:
                edge = _as_single(edge, strict)
            entry[place[slot[node]]].key = _key(edge)
            entry[place[slot[node]]].node = node
            place[slot[node]] += 1
    for s, found in extra.items():
        for edge in found:
            entry[place[s]].key, entry[place[s]].node = _key(edge), NOWHERE
            place[s] += 1
    ranks, edges = np.zeros(n_nodes, np.uint32), np.empty(starts[n_slots] + 1)
    cdef uint32_t[::1] rank = ranks
    cdef double[::1] found_edges = edges
    lists = []
    for s in range(n_slots):
        n = start[s + 1] - start[s]
        _sort(entry + start[s], <Entry*> &spare_bytes[0], n)
        n = _number(entry + start[s], n, &found_edges[start[s]], &rank[0])
        lists.append(edges[start[s]:start[s] + n])
    return lists, ranks


cdef inline double _as_single(double threshold, bint strict) noexcept nogil:
    cdef float rounded = <float> threshold
    if strict and rounded < threshold:
        return nextafterf(rounded, INFINITY)
    if not strict and rounded > threshold:
        return nextafterf(rounded, -INFINITY)
    return rounded


cdef inline uint64_t _key(double x) noexcept nogil:
    """The bits of a number as an integer that ascends with it."""
    cdef uint64_t bits
    x += 0.0  # both zeros are one
    memcpy(&bits, &x, sizeof(bits))
    return ~bits if bits >> 63 else bits | (<uint64_t> 1 << 63)


cdef inline double _number_of(uint64_t key) noexcept nogil:
    cdef uint64_t bits = key & ~(<uint64_t> 1 << 63) if key >> 63 else ~key
    cdef double x
    memcpy(&x, &bits, sizeof(x))
    return x


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
    const Entry* entry, int64_t n, double* edge, uint32_t* rank
) noexcept nogil:
    """Number the different keys; how many there are."""
    cdef int64_t i, last = -1
    for i in range(n):
        if i == 0 or entry[i].key != entry[i - 1].key:
            last += 1
            edge[last] = _number_of(entry[i].key)
        if entry[i].node != NOWHERE:
            rank[entry[i].node] = <uint32_t> last
    return last + 1
