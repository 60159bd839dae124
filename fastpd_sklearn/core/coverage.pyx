r"""Coverage: what a background, or the model's own covers, say of the sides of a leaf.

For the attributions a coverage is a mixture of rows ``q``, each with a share and with a degree
``q_i`` in [0, 1] to which it satisfies the leaf's local player ``i``. Between an explained row
``p`` (all ``p_i`` 0 or 1) and such a ``q`` the leaf's indicator plays the game

    v(S) = prod_{i in S} p_i  prod_{i not in S} q_i,

and the value of a set of players T under the index whose measure is mu (see `attribution`) is

    prod_{i in T} (p_i - q_i)  integral prod_{j not in T} (t p_j + (1 - t) q_j)  dmu(t).

*Empirical* coverage has a ``q`` of zeros and ones for each mask that occurs in the background.
*Path-dependent* coverage has a single ``q`` whose degrees are products of the cover ratios along
the path, the value function of Friedman's recursion. A new value function is a new subclass.
"""

from libc.stdint cimport int32_t, int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from "kernels.h" nogil:
    int64_t popcount "popcount_64"(uint64_t)
    int lowest_bit "lowest_bit_64"(uint64_t)
    int highest_bit "highest_bit_64"(uint64_t)
    void apply_difference(const double*, double*, int64_t)
    void apply_mixture(const double*, double*, int64_t, double)
    void mix_in_place(double*, double*, int64_t, double)
    void add_scaled(double*, const double*, double, int64_t)


cdef enum:
    PART_PLAYERS = 12  # of a table whose layers stay in the second-level cache


cdef uint64_t _low_bits(int64_t n) noexcept nogil:
    """A word with its lowest n bits set; any n."""
    if n >= 64:
        return <uint64_t> -1
    return (<uint64_t> 1 << n) - 1 if n > 0 else 0


cdef class Coverage:
    """Base class. For Python a coverage has `parts`, `near_full` and `without_pairs`."""

    def parts(self, int n_threads):
        """The trees, part by part, with the coverage of their leaves; here all at once.

        Yields
        ------
        first_tree, last_tree : int
            None for the last tree.
        coverage : Coverage
        """
        yield 0, None, self

    cdef int64_t effort_at(
        self, int64_t leaf, int64_t n_players, int64_t n_masks, const Terms* terms,
        const Rule* rule,
    ) noexcept nogil:
        """A rough count of the operations of `values_at`, vectorised ones for an eighth."""
        return 0

    cdef void shares(self, int64_t leaf, int64_t n_players, double* share) noexcept nogil:
        """The mixture as a table over all masks (fractional q are independent coins)."""

    cdef int values_at(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, double* out,
    ) noexcept nogil:
        """out[r * terms.size + i]: value of term i for the explained mask r, from pairs (p, q).

        0, or -1 if there is no memory.
        """
        return 0


cdef class EmpiricalCoverage(Coverage):
    """The masks of background rows.

    Parameters
    ----------
    start, mask, weight
        As `counting.count_masks` returns them.
    total : float
        Weight of the whole background.
    """

    cdef const int64_t[::1] start
    cdef const uint64_t[:, ::1] mask
    cdef const double[::1] share
    cdef object near  # what near_full has found: it is asked for again and again

    def __init__(self, start, mask, weight, total):
        self.start, self.mask = start, mask
        self.share = weight / total

    def near_full(self, sizes, n_threads=1):
        """Shares within all sides of a leaf, and within all but one.

        Parameters
        ----------
        sizes : ndarray of shape (n_leaves,), int64
        n_threads : int
            Of coverages that have to be counted first.

        Returns
        -------
        full : ndarray of shape (n_leaves,), float64
            ``w[T]``.
        one : ndarray of shape (sum(sizes),), float64
            ``w[T - i]``, leaf by leaf.
        """
        if self.near is not None:
            return self.near
        full_array = np.zeros(len(sizes))
        one_array = np.zeros(int(sizes.sum()))
        cdef const int64_t[::1] size = sizes
        cdef double[::1] full = full_array, one = one_array
        cdef int64_t l, e, w, i, missed, which = 0, first = 0
        cdef uint64_t lacking
        for l in range(size.shape[0]):
            for e in range(self.start[l], self.start[l + 1]):
                missed = 0
                for w in range(self.mask.shape[1]):
                    lacking = ~self.mask[e, w] & _low_bits(size[l] - 64 * w)
                    if lacking:
                        missed += 1 if lacking & (lacking - 1) == 0 else 2
                        which = 64 * w + lowest_bit(lacking)
                if missed == 0:
                    full[l] += self.share[e]
                elif missed == 1:
                    one[first + which] += self.share[e]
            for i in range(first, first + size[l]):
                one[i] += full[l]
            first += size[l]
        self.near = (full_array, one_array)
        return self.near

    def without_pairs(self, sizes, leaves, locals_, n_threads=1):
        """Shares within all sides of a leaf but two.

        Parameters
        ----------
        sizes : ndarray of shape (n_leaves,), int64
        leaves : ndarray of shape (n,), int64
        locals_ : ndarray of shape (n, 2), int64
            The two local players; where both are the same the result means nothing.
        n_threads : int
            Of coverages that have to be counted first.

        Returns
        -------
        ndarray of shape (n,), float64
            ``w[T - ij]``.
        """
        cdef const int64_t[::1] leaf = leaves
        cdef const int64_t[:, ::1] pair = locals_
        out_array = np.zeros(len(leaves))
        if not len(leaves):
            return out_array
        cdef double[::1] out = out_array
        cdef int64_t k, e, w, n_words = self.mask.shape[1]
        cdef uint64_t bits, lacking
        cdef const int64_t[::1] size = sizes
        cdef bint fits
        cdef int64_t l
        for k in range(leaf.shape[0]):
            if pair[k, 0] == pair[k, 1]:
                continue
            l = leaf[k]
            for e in range(self.start[l], self.start[l + 1]):
                fits = True
                for w in range(n_words):
                    lacking = ~self.mask[e, w] & _low_bits(size[l] - 64 * w)
                    bits = 0
                    if pair[k, 0] >> 6 == w:
                        bits |= <uint64_t> 1 << (pair[k, 0] & 63)
                    if pair[k, 1] >> 6 == w:
                        bits |= <uint64_t> 1 << (pair[k, 1] & 63)
                    fits = fits and not lacking & ~bits
                if fits:
                    out[k] += self.share[e]
        return out_array

    cdef int64_t effort_at(
        self, int64_t leaf, int64_t n_players, int64_t n_masks, const Terms* terms,
        const Rule* rule,
    ) noexcept nogil:
        # About a quarter of the pairs has all that matters, and singles share one look at a pair.
        cdef int64_t looks = terms.size // (n_players + 1) + 1
        return 8 * n_masks * (self.start[leaf + 1] - self.start[leaf]) * looks

    cdef void shares(self, int64_t leaf, int64_t n_players, double* share) noexcept nogil:
        cdef int64_t e
        memset(share, 0, (<int64_t> 1 << n_players) * sizeof(double))
        for e in range(self.start[leaf], self.start[leaf + 1]):
            share[self.mask[e, 0]] += self.share[e]

    cdef int values_at(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, double* out,
    ) noexcept nogil:
        # The rows q that satisfy player i, as a set of bits: holders[i * n_sets + (e >> 6)].
        cdef int64_t first = self.start[leaf], n_sources = self.start[leaf + 1] - first
        cdef int64_t n_words = terms.n_words, n_sets = (n_sources + 63) // 64, r, e, i, s
        cdef bint singles = _are_single(terms)
        cdef uint64_t* holders
        cdef uint64_t* alive
        cdef uint64_t left
        if singles and n_words == 1 and n_masks <= n_players:
            self._singles_at_few(leaf, n_players, masks, n_masks, terms, rule, out)
            return 0
        holders = <uint64_t*> calloc((n_players + 1) * n_sets + 1, sizeof(uint64_t))
        if holders == NULL:
            return -1
        alive = holders + n_players * n_sets
        memset(out, 0, terms.size * n_masks * sizeof(double))
        for e in range(n_sources):
            for i in range(n_players):
                if self.mask[first + e, i >> 6] >> (i & 63) & 1:
                    holders[i * n_sets + (e >> 6)] |= <uint64_t> 1 << (e & 63)
        if singles:
            s = self._add_singles(leaf, n_players, masks, n_masks, terms, rule, holders, out)
            free(holders)
            return <int> s
        for r in range(n_masks):
            _keep_alive(masks + r * n_words, n_players, n_sources, n_sets, holders, alive)
            for s in range(n_sets):
                left = alive[s]
                while left:
                    e = first + 64 * s + lowest_bit(left)
                    left &= left - 1
                    _add_pair(masks + r * n_words, &self.mask[e, 0], self.share[e], terms, rule,
                              out + r * terms.size)
        free(holders)
        return 0

    cdef int _add_singles(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, uint64_t* holders, double* out,
    ) noexcept nogil:
        """The same for terms of one player each: a pair is looked at once for all of them.

        A row q that is alive satisfies all that p violates, so that the values depend on it only
        by its size: those of the players that p alone satisfies, and those that it alone does.
        """
        cdef int64_t first = self.start[leaf], n_sources = self.start[leaf + 1] - first
        cdef int64_t n_words = terms.n_words, n_sets = (n_sources + 63) // 64, r, e, i, s, w, b
        cdef uint64_t* alive = holders + n_players * n_sets
        cdef double* value = <double*> malloc(n_players * sizeof(double))
        cdef int32_t* lacking = <int32_t*> malloc((n_sources + 1) * sizeof(int32_t))
        cdef const double* moment = rule.moment
        cdef uint64_t left, rest
        cdef const uint64_t* p
        cdef double violated, satisfied
        if value == NULL or lacking == NULL:
            free(value)
            free(lacking)
            return -1
        for e in range(n_sources):
            lacking[e] = <int32_t> n_players
            for w in range(n_words):
                lacking[e] -= <int32_t> popcount(self.mask[first + e, w])
        for r in range(n_masks):
            p = masks + r * n_words
            _keep_alive(p, n_players, n_sources, n_sets, holders, alive)
            b, violated = n_players, 0.0
            for w in range(n_words):
                b -= popcount(p[w])
            memset(value, 0, n_players * sizeof(double))
            for s in range(n_sets):
                left = alive[s]
                while left:
                    e = 64 * s + lowest_bit(left)
                    left &= left - 1
                    i = lacking[e]
                    if b:
                        violated -= self.share[first + e] * moment[i * rule.n_moments + b - 1]
                    if i == 0:
                        continue
                    satisfied = self.share[first + e] * moment[(i - 1) * rule.n_moments + b]
                    for w in range(n_words):
                        rest = p[w] & ~self.mask[first + e, w]
                        while rest:
                            value[64 * w + lowest_bit(rest)] += satisfied
                            rest &= rest - 1
            for i in range(terms.size):
                for w in range(n_words):
                    if terms.mask[i * n_words + w]:
                        rest = terms.mask[i * n_words + w]
                        e = 64 * w + lowest_bit(rest)
                        out[r * terms.size + i] = value[e] if p[w] & rest else violated
        free(value)
        free(lacking)
        return 0

    cdef void _singles_at_few(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, double* out,
    ) noexcept nogil:
        """The same for fewer masks, of one word, than it takes to sort the rows q by players."""
        cdef int64_t first = self.start[leaf], last = self.start[leaf + 1], r, e, i, b
        cdef uint64_t whole = _low_bits(n_players), p, q, rest
        cdef double value[64]
        cdef double violated, satisfied
        for r in range(n_masks):
            p, violated = masks[r], 0.0
            b = popcount(whole & ~p)
            memset(value, 0, n_players * sizeof(double))
            for e in range(first, last):
                q = self.mask[e, 0]
                if p | q != whole:
                    continue
                rest = p & ~q
                i = popcount(rest)
                if b:
                    violated -= self.share[e] * rule.moment[i * rule.n_moments + b - 1]
                if i == 0:
                    continue
                satisfied = self.share[e] * rule.moment[(i - 1) * rule.n_moments + b]
                while rest:
                    value[lowest_bit(rest)] += satisfied
                    rest &= rest - 1
            for i in range(terms.size):
                rest = terms.mask[i]
                out[r * terms.size + i] = value[lowest_bit(rest)] if p & rest else violated


cdef bint _are_single(const Terms* terms) noexcept nogil:
    cdef int64_t i, w, n_players
    for i in range(terms.size):
        n_players = 0
        for w in range(terms.n_words):
            n_players += popcount(terms.mask[i * terms.n_words + w])
        if n_players != 1:
            return False
    return True


cdef void _keep_alive(
    const uint64_t* p, int64_t n_players, int64_t n_sources, int64_t n_sets,
    const uint64_t* holders, uint64_t* alive,
) noexcept nogil:
    """The rows q that satisfy every player that p violates; with any other, v is zero."""
    cdef int64_t i, s
    for s in range(n_sets):
        alive[s] = _low_bits(n_sources - 64 * s)
    for i in range(n_players):
        if not p[i >> 6] >> (i & 63) & 1:
            for s in range(n_sets):
                alive[s] &= holders[i * n_sets + s]


cdef void _add_pair(
    const uint64_t* p, const uint64_t* q, double share, const Terms* terms, const Rule* rule,
    double* out,
) noexcept nogil:
    """Add what one pair of rows gives to every term: out[i]."""
    cdef int64_t n_words = terms.n_words, i, w, a = 0, b = 0, t_a, t_b
    cdef const uint64_t* t
    cdef uint64_t outside
    cdef double value
    for w in range(n_words):  # a: players that only p satisfies, b: only q
        a += popcount(p[w] & ~q[w])
        b += popcount(q[w] & ~p[w])
    for i in range(terms.size if a + b else 0):
        t = terms.mask + i * n_words
        outside, t_a, t_b = 0, 0, 0
        for w in range(n_words):
            outside |= t[w] & ~(p[w] ^ q[w])
        if outside:
            continue
        for w in range(n_words):
            t_a += popcount(t[w] & p[w])
            t_b += popcount(t[w] & q[w])
        value = share * rule.moment[(a - t_a) * rule.n_moments + b - t_b]
        out[i] += -value if t_b & 1 else value


cdef class PathCoverage(Coverage):
    """Cover ratios along the paths.

    Parameters
    ----------
    geometry : Geometry
    share : ndarray of shape (n_nodes,), float64
        What each node has of its parent's cover: child / (left + right). Roots' are not read.

    Attributes
    ----------
    share
    """

    def __init__(self, geometry, share):
        node, child = geometry.path_node, geometry.path_left.astype(bool)
        child = np.where(child, geometry.left[node], geometry.right[node])
        first = np.repeat(geometry.player_start[:geometry.n_leaves], np.diff(geometry.path_start))
        ratio = np.ones(len(geometry.player))
        np.multiply.at(ratio, first + geometry.path_bit, share[child])
        self.player_start, self.ratio = geometry.player_start, ratio
        self.share = np.ascontiguousarray(share)

    def near_full(self, sizes, n_threads=1):
        """Shares within all sides of a leaf, and within all but one; as `EmpiricalCoverage`."""
        full_array = np.ones(len(sizes))
        one_array = np.ones(int(sizes.sum()))
        cdef double[::1] full = full_array, one = one_array
        cdef int64_t l, i, j
        for l in range(full.shape[0]):
            for i in range(self.player_start[l], self.player_start[l + 1]):
                full[l] *= self.ratio[i]
                for j in range(self.player_start[l], self.player_start[l + 1]):
                    if j != i:
                        one[i] *= self.ratio[j]
        return full_array, one_array

    def without_pairs(self, sizes, leaves, locals_, n_threads=1):
        """Shares within all sides of a leaf but two; as `EmpiricalCoverage`."""
        out_array = np.ones(len(leaves))
        cdef const int64_t[::1] leaf = leaves
        cdef const int64_t[:, ::1] pair = locals_
        cdef double[::1] out = out_array
        cdef int64_t k, i, first
        for k in range(leaf.shape[0]):
            first = self.player_start[leaf[k]]
            for i in range(first, self.player_start[leaf[k] + 1]):
                if i - first != pair[k, 0] and i - first != pair[k, 1]:
                    out[k] *= self.ratio[i]
        return out_array

    cdef int64_t effort_at(
        self, int64_t leaf, int64_t n_players, int64_t n_masks, const Terms* terms,
        const Rule* rule,
    ) noexcept nogil:
        return 8 * n_masks * terms.size * rule.n_nodes * n_players

    cdef void shares(self, int64_t leaf, int64_t n_players, double* share) noexcept nogil:
        cdef const double* ratio
        cdef int64_t i, q, size = 1
        share[0] = 1.0
        if n_players == 0:
            return
        ratio = &self.ratio[self.player_start[leaf]]
        for i in range(n_players):
            for q in range(size):
                share[size + q] = share[q] * ratio[i]
                share[q] *= 1.0 - ratio[i]
            size *= 2

    cdef int values_at(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, double* out,
    ) noexcept nogil:
        cdef int64_t n_words = terms.n_words, r, i, j, k
        cdef double value, integral, product, ratio, t, p
        cdef uint64_t bit
        for i in range(terms.size):
            for r in range(n_masks):
                value, integral = 1.0, 0.0
                for k in range(rule.n_nodes):
                    product, t = rule.weight[k], rule.node[k]
                    for j in range(n_players):
                        bit = <uint64_t> 1 << (j & 63)
                        ratio = self.ratio[self.player_start[leaf] + j]
                        p = 1.0 if masks[r * n_words + (j >> 6)] & bit else 0.0
                        if not terms.mask[i * n_words + (j >> 6)] & bit:
                            product *= t * p + (1.0 - t) * ratio
                        elif k == 0:
                            value *= p - ratio
                    integral += product
                out[r * terms.size + i] = value * integral
        return 0


cdef void values_everywhere(
    int64_t n_players, const Terms* terms, const Rule* rule, double* layers, double* out,
) noexcept nogil:
    """out[(i << n_players) + p]: value of term i for every mask p, from a table of shares.

    The value is linear in the shares, by a matrix that is a product of 2 x 2 factors, one a
    player: ``p - q`` for the players of the term, ``t p + (1 - t) q`` for the others. The
    factors are applied one player after the other, the last one first, from layer to layer, and
    terms that agree on their last players share those layers. Every layer works on the two
    halves of the table and rotates the bits of its indices by one, so that all loops are long;
    after the last layer the bits are in place again. `layers` is room for
    ``(n_players + 1) << n_players`` numbers, the shares in the first ``1 << n_players``.
    """
    cdef int64_t size = <int64_t> 1 << n_players, k, i, j, first
    cdef uint64_t term
    memset(out, 0, terms.size * size * sizeof(double))
    for k in range(rule.n_nodes):
        for i in range(terms.size):
            term = terms.mask[i * terms.n_words]
            first = 0
            if i:
                first = n_players - 1 - highest_bit(term ^ terms.mask[(i - 1) * terms.n_words])
            for j in range(first, n_players):
                if term >> (n_players - 1 - j) & 1:
                    apply_difference(layers + j * size, layers + (j + 1) * size, size // 2)
                else:
                    apply_mixture(
                        layers + j * size, layers + (j + 1) * size, size // 2, rule.node[k]
                    )
            add_scaled(out + i * size, layers + n_players * size, rule.weight[k], size)


cdef double* mixtures(int64_t n_players, double t, double* layers) noexcept nogil:
    """The products of mixtures ``prod_j (t p_j + (1 - t) q_j)``, averaged, for every mask p.

    As in `values_everywhere`, one player after the other. Where the table outgrows a cache the
    upper players are taken in place, and then its parts, whose masks agree in these, one by one.
    `layers` is room for ``3 << n_players`` numbers, the shares in the first third; the result lies
    in the rest.
    """
    cdef int64_t size = <int64_t> 1 << n_players, part = size, first = 0
    cdef double* work = layers + size
    if n_players <= PART_PLAYERS:
        return _mix_part(layers, work, work + size, n_players, t)
    memcpy(work, layers, size * sizeof(double))
    while part > 1 << PART_PLAYERS:
        first = 0
        while first < size:
            mix_in_place(work + first, work + first + part // 2, part // 2, t)
            first += part
        part //= 2
    first = 0
    while first < size:
        _mix_part(work + first, work + size, work + size + part, PART_PLAYERS, t)
        memcpy(work + first, work + size + part * (PART_PLAYERS % 2 == 0), part * sizeof(double))
        first += part
    return work


cdef double* _mix_part(
    const double* x, double* one, double* other, int64_t n_players, double t
) noexcept nogil:
    """All players of a small table; the result is in one of the two others, the second if even."""
    cdef int64_t half = (<int64_t> 1 << n_players) // 2, _
    cdef double* y = one
    for _ in range(n_players):
        apply_mixture(x, y, half, t)
        x, y = y, other if y == one else one
    return other if y == one else one


cdef void add_mixtures(
    int64_t n_players, bint pairs, double t, double weight, const double* mixed, double* tables
) noexcept nogil:
    """Add what a quadrature node gives to the tables from which `mixture_value` reads.

    With ``mix(p) = t p + (1 - t) q`` the factor of a player of a term is

        p - q = (mix(p) - mix(0) / (1 - t)) / t,

    so that a term is a signed sum of products of mixtures alone, over the masks in which some of
    its players are set to zero. With s players in the term and n of them set to zero,
    tables[((s == 2) * 2 + n) << n_players:] holds the integral of

        prod_j (t p_j + (1 - t) q_j) / (t^s (1 - t)^n)  dmu(t)

    for every mask p, for ``s = 1`` and, with `pairs`, ``s = 2``. The products are the same for all
    terms. The nodes have to lie strictly between 0 and 1.
    """
    cdef int64_t size = <int64_t> 1 << n_players, n
    cdef double factor = weight / t
    for n in range(2):
        add_scaled(tables + n * size, mixed, factor, size)
        factor /= 1.0 - t
    if pairs:
        factor = weight / (t * t)
        for n in range(3):
            add_scaled(tables + (2 + n) * size, mixed, factor, size)
            factor /= 1.0 - t


cdef double mixture_value(
    int64_t n_players, uint64_t term, uint64_t p, const double* tables
) noexcept nogil:
    """The value of a term of one or two players for a mask, from `add_mixtures`."""
    cdef int64_t size = <int64_t> 1 << n_players
    cdef uint64_t low = term & (~term + 1), high = term ^ low
    if high == 0:
        return tables[p] - tables[size + (p & ~low)]
    tables += 2 * size
    return (
        (tables[p] - tables[size + (p & ~low)])
        - (tables[size + (p & ~high)] - tables[2 * size + (p & ~term)])
    )
