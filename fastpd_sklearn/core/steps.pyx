"""Components of one and two columns as exact step functions of the columns' codes.

Such a component depends on a row only through one code or two, so it is a table over codes. With
``w[U]`` the share of the background within the sides of the players in ``U``, a leaf of value
``c`` and players ``T`` adds to

    m_i (a)    :  c (1[a in side_i] w[T - i] - w[T])
    m_ij(a, b) :  c (w[T] - 1[a in side_i] w[T - i] - 1[b in side_j] w[T - j]
                     + 1[a in side_i] 1[b in side_j] w[T - ij]),

which takes a few numbers an interval or rectangle in a table of differences, and one cumulative
sum. The cost of a table depends neither on the rows nor, but for those numbers, on the trees.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport calloc, free, malloc

from fastpd_sklearn.core.routing cimport BinnedRows, Codes, NodeTests, Tests

import numpy as np


cdef struct Runs:
    # A side as ascending runs of codes [first, last]; missing counts as the code after the others.
    int64_t size
    int32_t* first
    int32_t* last
    uint8_t* inside


cdef struct Job:
    Tests tests
    const int64_t* n_codes          # by slot, missing apart
    const int32_t* slot             # by player
    const int64_t* player_start
    const int64_t* path_start
    const int32_t* path_node
    const uint8_t* path_left
    const int32_t* path_bit
    const double* full              # w[T] by leaf
    const double* one               # w[T - i] by leaf and local player
    const double* leaf_value
    int64_t n_values
    const int32_t* leaf_output      # the first output that the leaf adds to
    int64_t n_outputs


cdef int _runs(const Job* job, int64_t leaf, int64_t local, int64_t slot, Runs* runs) noexcept nogil:
    """The side of a leaf's local player as runs of codes; 0 if it is empty."""
    cdef int64_t n = job.n_codes[slot], k, c, first, last
    cdef int64_t low = 0, high = n - 1
    cdef bint missing = True, bitmap = False
    cdef int64_t node
    cdef bint wanted, starts_before
    for k in range(job.path_start[leaf], job.path_start[leaf + 1]):
        if job.path_bit[k] != local:
            continue
        node, wanted = job.path_node[k], job.path_left[k]
        if job.tests.table[node] >= 0:
            if not bitmap:
                for c in range(n):
                    runs.inside[c] = 1
                bitmap = True
            for c in range(n):
                runs.inside[c] &= job.tests.tables[job.tests.table[node] + c] == wanted
            missing &= job.tests.tables[job.tests.table[node] + n] == wanted
        else:
            # The codes up to `last` go left; so does missing if the interval starts before 0.
            starts_before = job.tests.low[node] != 0
            last = <int64_t> job.tests.span[node] - starts_before
            missing &= starts_before == wanted
            if wanted:
                high = min(high, last)
            else:
                low = max(low, last + 1)
    runs.size = 0
    if bitmap:
        c = low
        while c <= high:
            if runs.inside[c]:
                first = c
                while c < high and runs.inside[c + 1]:
                    c += 1
                _push(runs, first, c)
            c += 1
    elif low <= high:
        _push(runs, low, high)
    if missing:
        _push(runs, n, n)
    return <int> runs.size


cdef void _push(Runs* runs, int64_t first, int64_t last) noexcept nogil:
    if runs.size and runs.last[runs.size - 1] == first - 1:
        runs.last[runs.size - 1] = <int32_t> last
    else:
        runs.first[runs.size] = <int32_t> first
        runs.last[runs.size] = <int32_t> last
        runs.size += 1


cdef int _runs_init(Runs* runs, int64_t n_codes) noexcept nogil:
    runs.size = 0
    runs.first = <int32_t*> malloc((n_codes // 2 + 2) * sizeof(int32_t))
    runs.last = <int32_t*> malloc((n_codes // 2 + 2) * sizeof(int32_t))
    runs.inside = <uint8_t*> malloc(n_codes + 1)
    return -1 if runs.first == NULL or runs.last == NULL or runs.inside == NULL else 0


cdef void _runs_free(Runs* runs) noexcept nogil:
    free(runs.first)
    free(runs.last)
    free(runs.inside)


cdef int _curve(
    const Job* job, const int64_t* matches, int64_t n_matches, int64_t slot, double* table,
) noexcept nogil:
    """Fill table[(k * (n + 2)) + code], k an output, from the term's (leaf, local player)."""
    cdef int64_t room = job.n_codes[slot] + 2, m, leaf, local, v, k, c, r
    cdef double value, inside
    cdef double* row
    cdef Runs runs
    if _runs_init(&runs, job.n_codes[slot]) < 0:
        _runs_free(&runs)
        return -1
    for m in range(n_matches):
        leaf, local = matches[3 * m], matches[3 * m + 1]
        _runs(job, leaf, local, slot, &runs)
        for v in range(job.n_values):
            value = job.leaf_value[leaf * job.n_values + v]
            if value == 0:
                continue
            row = table + (job.leaf_output[leaf] + v) * room
            inside = value * job.one[job.player_start[leaf] + local]
            row[0] -= value * job.full[leaf]
            for r in range(runs.size):
                row[runs.first[r]] += inside
                row[runs.last[r] + 1] -= inside
    for k in range(job.n_outputs):
        row = table + k * room
        for c in range(1, room):
            row[c] += row[c - 1]
    _runs_free(&runs)
    return 0


cdef int _surface(
    const Job* job, const int64_t* matches, int64_t n_matches, const double* two, int64_t slot_a,
    int64_t slot_b, double* table,
) noexcept nogil:
    """Fill table[(k * A + a) * B + b], A and B one more than the codes with missing."""
    cdef int64_t A = job.n_codes[slot_a] + 2, B = job.n_codes[slot_b] + 2
    cdef int64_t m, leaf, v, k, a, b, r, s, local_a, local_b
    cdef double value, both, only_a, only_b
    cdef double* cell
    cdef Runs runs_a, runs_b
    cdef int status = _runs_init(&runs_a, job.n_codes[slot_a])
    if _runs_init(&runs_b, job.n_codes[slot_b]) < 0:
        status = -1
    for m in range(n_matches if status == 0 else 0):
        leaf, local_a, local_b = matches[3 * m], matches[3 * m + 1], matches[3 * m + 2]
        _runs(job, leaf, local_a, slot_a, &runs_a)
        _runs(job, leaf, local_b, slot_b, &runs_b)
        for v in range(job.n_values):
            value = job.leaf_value[leaf * job.n_values + v]
            if value == 0:
                continue
            cell = table + (job.leaf_output[leaf] + v) * A * B
            only_a = value * job.one[job.player_start[leaf] + local_a]
            only_b = value * job.one[job.player_start[leaf] + local_b]
            both = value * two[m]
            cell[0] += value * job.full[leaf]
            for r in range(runs_a.size):
                cell[runs_a.first[r] * B] -= only_a
                cell[(runs_a.last[r] + 1) * B] += only_a
                for s in range(runs_b.size):
                    cell[runs_a.first[r] * B + runs_b.first[s]] += both
                    cell[runs_a.first[r] * B + runs_b.last[s] + 1] -= both
                    cell[(runs_a.last[r] + 1) * B + runs_b.first[s]] -= both
                    cell[(runs_a.last[r] + 1) * B + runs_b.last[s] + 1] += both
            for s in range(runs_b.size):
                cell[runs_b.first[s]] -= only_b
                cell[runs_b.last[s] + 1] += only_b
    if status == 0:
        for k in range(job.n_outputs):
            cell = table + k * A * B
            for a in range(A):
                for b in range(1, B):
                    cell[a * B + b] += cell[a * B + b - 1]
            for a in range(1, A):
                for b in range(B):
                    cell[a * B + b] += cell[(a - 1) * B + b]
    _runs_free(&runs_a)
    _runs_free(&runs_b)
    return status


cdef void _codes(
    const Codes* codes, int64_t slot, int64_t n_codes, int64_t row, int64_t m, int32_t* out
) noexcept nogil:
    """Codes of `m` rows, missing as the code after the others."""
    cdef const uint8_t* column = codes.data + codes.offset[slot]
    cdef int64_t r
    if codes.width[slot] == 1:
        for r in range(m):
            out[r] = min(<int32_t> column[row + r], <int32_t> n_codes)
    elif codes.width[slot] == 2:
        for r in range(m):
            out[r] = min(<int32_t> (<const uint16_t*> column)[row + r], <int32_t> n_codes)
    else:
        for r in range(m):
            out[r] = <int32_t> min((<const uint32_t*> column)[row + r], <uint32_t> n_codes)


cdef enum:
    BLOCK = 1024


cdef void _look_up(
    const Job* job, const Codes* codes, const int32_t* players, int64_t n_players,
    const double* table, int64_t term, double* out,
) noexcept nogil:
    """out[(term * n_outputs + k) * n_rows + row] = the table's entry for the row's codes."""
    cdef int32_t a[BLOCK]
    cdef int32_t b[BLOCK]
    cdef int64_t slot_a = job.slot[players[0]], slot_b = job.slot[players[n_players - 1]]
    cdef int64_t A = job.n_codes[slot_a] + 2, B = 1, row, m, r, k, block
    cdef double* column
    if n_players == 2:
        B = job.n_codes[slot_b] + 2
    for block in range((codes.n_rows + BLOCK - 1) // BLOCK):
        row = block * BLOCK
        m = min(<int64_t> BLOCK, codes.n_rows - row)
        _codes(codes, slot_a, job.n_codes[slot_a], row, m, a)
        if n_players == 2:
            _codes(codes, slot_b, job.n_codes[slot_b], row, m, b)
            for r in range(m):
                a[r] = <int32_t> (a[r] * B + b[r])
        for k in range(job.n_outputs):
            column = out + (term * job.n_outputs + k) * codes.n_rows + row
            for r in range(m):
                column[r] = table[k * A * B + a[r]]


cdef int _look_up_grid(
    const Job* job, const Codes* codes, const int32_t* players, const double* table, int64_t term,
    double* out,
) noexcept nogil:
    """out[((term * n_outputs + k) * n + a) * n + b]: row a's first code with row b's second."""
    cdef int64_t n = codes.n_rows, k, r, s
    cdef int64_t slot_a = job.slot[players[0]], slot_b = job.slot[players[1]]
    cdef int64_t A = job.n_codes[slot_a] + 2, B = job.n_codes[slot_b] + 2
    cdef const double* row
    cdef double* cell
    cdef int32_t* a = <int32_t*> malloc((2 * n + 1) * sizeof(int32_t))
    cdef int32_t* b = a + n
    if a == NULL:
        return -1
    _codes(codes, slot_a, job.n_codes[slot_a], 0, n, a)
    _codes(codes, slot_b, job.n_codes[slot_b], 0, n, b)
    for k in range(job.n_outputs):
        for r in range(n):
            row = table + (k * A + a[r]) * B
            cell = out + ((term * job.n_outputs + k) * n + r) * n
            for s in range(n):
                cell[s] = row[b[s]]
    free(a)
    return 0


class Steps:
    """Tables of components of one or two players, each of one column.

    Parameters
    ----------
    tests : NodeTests
    n_codes : ndarray of shape (n_slots,), int64
    geometry : Geometry
    slot_of_player : ndarray of shape (n_players,), int32
        The binned column of each player; negative where it has none or several.
    leaf_value : ndarray of shape (n_leaves, n_values), float64
    tree_output : ndarray of shape (n_trees,), int32
    n_outputs : int
    """

    def __init__(
        self, tests, n_codes, geometry, slot_of_player, leaf_value, tree_output, n_outputs
    ):
        self.tests, self.n_codes, self.geometry = tests, n_codes, geometry
        self.slot_of_player, self.leaf_value = slot_of_player, leaf_value
        self.leaf_output = np.repeat(tree_output, np.diff(geometry.tree_leaf)).astype(np.int32)
        self.n_outputs = n_outputs

    def table_sizes(self, terms):
        """Entries of each term's table, ndarray of shape (n_terms,), int64."""
        if not terms:
            return np.empty(0, np.int64)
        room = (self.n_codes + 2)[self.slot_of_player]
        second = [room[term[1]] if len(term) == 2 else 1 for term in terms]
        return room[[term[0] for term in terms]] * np.array(second, np.int64) * self.n_outputs

    def table(self, coverage, matches, terms):
        """The step function of each term.

        Parameters
        ----------
        coverage : Coverage
        matches : Matches
            Where the leaves that take part in the terms are.
        terms : list of tuple of int

        Returns
        -------
        list of ndarray of shape (n_outputs, n_codes + 1) or (n_outputs, n_codes + 1, n_codes + 1)
            By codes, the last one for missing.
        """
        tables = []
        places = np.arange(len(terms))
        self._run(None, coverage, matches, terms, places, np.empty((0, 0, 0)), 1, tables)
        return tables

    def look_up(self, BinnedRows rows, coverage, matches, terms, columns, out, int n_threads):
        """Write the value of every term for every row to `out`.

        Parameters
        ----------
        rows : BinnedRows
        coverage : Coverage
        matches : Matches
        terms : list of tuple of int
        columns : ndarray of shape (n_terms,), int64
            The place of each term in `out`.
        out : ndarray of shape (n_columns, n_outputs, n_rows), float64
        n_threads : int
        """
        if rows.n_rows and terms:
            self._run(rows, coverage, matches, terms, columns, out, n_threads, None)

    def look_up_grid(self, BinnedRows rows, coverage, matches, pairs, columns, out, int n_threads):
        """Write the value of every pair on the product of the rows with themselves to `out`.

        Parameters
        ----------
        rows : BinnedRows
            Row ``a`` gives the pair's first code, row ``b`` its second.
        coverage : Coverage
        matches : Matches
        pairs : list of tuple of two int
        columns : ndarray of shape (n_pairs,), int64
            The place of each pair in `out`.
        out : ndarray of shape (n_columns, n_outputs, n_rows * n_rows), float64
        n_threads : int
        """
        if rows.n_rows and pairs:
            self._run(rows, coverage, matches, pairs, columns, out, n_threads, None, True)

    def _run(self, BinnedRows rows, coverage, matches, terms, const int64_t[::1] columns,
             double[:, :, ::1] out, int n_threads, tables, bint is_grid=False):
        cdef NodeTests tests = self.tests
        geometry = self.geometry
        full_array, one_array = coverage.near_full(geometry.leaf_sizes, n_threads)
        two_array = np.empty(len(matches.leaf))
        if any(len(term) == 2 for term in terms):
            two_array = coverage.without_pairs(
                geometry.leaf_sizes, matches.leaf, matches.local, n_threads
            )
        cdef const double[::1] full = full_array, one = one_array, two = two_array
        cdef const int64_t[::1] n_codes = self.n_codes
        cdef const int32_t[::1] slot = self.slot_of_player
        cdef const int64_t[::1] player_start = geometry.player_start
        cdef const int64_t[::1] path_start = geometry.path_start
        cdef const int32_t[::1] path_node = geometry.path_node, path_bit = geometry.path_bit
        cdef const uint8_t[::1] path_left = geometry.path_left
        cdef const double[:, ::1] leaf_value = self.leaf_value
        cdef const int32_t[::1] leaf_output = self.leaf_output
        cdef const int64_t[:, ::1] match = matches.packed
        cdef const int64_t[::1] start = matches.start
        player_array = np.array([(term[0], term[len(term) - 1]) for term in terms], np.int32)
        size_array = np.array([len(term) for term in terms], np.int64)
        cdef const int32_t[:, ::1] players = player_array.reshape(len(terms), 2)
        cdef const int64_t[::1] sizes = size_array
        cdef const int64_t[::1] entries = self.table_sizes(terms)
        cdef int64_t n_terms = len(terms), t
        status_array = np.zeros(n_terms + 1, np.int32)
        cdef int32_t[::1] status = status_array
        cdef double** table = <double**> calloc(n_terms + 1, sizeof(double*))
        cdef Codes codes
        cdef bint keep = rows is None
        cdef Job job
        if table == NULL:
            raise MemoryError("no memory for the step functions")
        if not keep:
            codes = rows.view()
        job.tests = tests.view()
        job.n_codes, job.slot = _at(n_codes), _at_int(slot)
        job.player_start, job.path_start = _at(player_start), _at(path_start)
        job.path_node, job.path_bit = _at_int(path_node), _at_int(path_bit)
        job.path_left = &path_left[0] if path_left.shape[0] else NULL
        job.full, job.one = _at_double(full), _at_double(one)
        job.leaf_value = &leaf_value[0, 0] if leaf_value.shape[0] else NULL
        job.n_values = leaf_value.shape[1]
        job.leaf_output, job.n_outputs = _at_int(leaf_output), self.n_outputs
        for t in prange(n_terms, nogil=True, num_threads=n_threads, schedule="dynamic"):
            table[t] = <double*> calloc(entries[t], sizeof(double))
            if table[t] == NULL:
                status[t] = -1
            elif sizes[t] == 1:
                status[t] = _curve(
                    &job, &match[0, 0] + 3 * start[t], start[t + 1] - start[t],
                    slot[players[t, 0]], table[t],
                )
            else:
                status[t] = _surface(
                    &job, &match[0, 0] + 3 * start[t], start[t + 1] - start[t], &two[0] + start[t],
                    slot[players[t, 0]], slot[players[t, 1]], table[t],
                )
            if status[t] == 0 and is_grid:
                status[t] = _look_up_grid(
                    &job, &codes, &players[t, 0], table[t], columns[t], &out[0, 0, 0]
                )
            elif status[t] == 0 and not keep:
                _look_up(
                    &job, &codes, &players[t, 0], sizes[t], table[t], columns[t], &out[0, 0, 0],
                )
            if not keep:
                free(table[t])
        try:
            if status_array.any():
                raise MemoryError("no memory for the step functions; ask for fewer terms at a time")
            if keep:
                for t in range(n_terms):
                    tables.append(self._export(<double[:entries[t]]> table[t], terms[t]))
        finally:
            if keep:
                for t in range(n_terms):
                    free(table[t])
            free(table)

    def _export(self, flat, term):
        room = [int(self.n_codes[self.slot_of_player[p]]) + 2 for p in term]
        whole = np.array(flat).reshape(self.n_outputs, *room)
        return whole[(slice(None), *(slice(0, n - 1) for n in room))]


cdef const int64_t* _at(const int64_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef const int32_t* _at_int(const int32_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef const double* _at_double(const double[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL
