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

from fastpd_sklearn.core.plan import reduce_terms


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
    BLOCK = 1024    # rows that are looked up at a time

TOGETHER = 8                # terms that are, where rows are contiguous: a cache line of float64
GROUP_ENTRIES = 1 << 19     # of their tables, at most
NO_MEMORY = "no memory for the step functions; ask for fewer terms at a time"


ctypedef fused real:
    float
    double


cdef struct Target:
    # What is looked up, and where it goes.
    Codes codes
    int64_t first           # the term that column[0] belongs to
    const int64_t* column
    const double* base      # by output
    int64_t term            # strides, in numbers
    int64_t output
    int64_t row


cdef void _look_up(
    const Job* job, const int32_t* players, int64_t n_players, const double* table, int64_t row,
    int64_t m, const Target* target, real* out,
) noexcept nogil:
    """out[k * target.output + r * target.row] = the table's entry for the codes of row + r."""
    cdef int32_t a[BLOCK]
    cdef int32_t b[BLOCK]
    cdef int64_t slot_a = job.slot[players[0]], slot_b = job.slot[players[n_players - 1]]
    cdef int64_t A = job.n_codes[slot_a] + 2, B = 1, r, k, step = target.row
    cdef const double* level
    cdef real* column
    if n_players == 2:
        B = job.n_codes[slot_b] + 2
    _codes(&target.codes, slot_a, job.n_codes[slot_a], row, m, a)
    if n_players == 2:
        _codes(&target.codes, slot_b, job.n_codes[slot_b], row, m, b)
        for r in range(m):
            a[r] = <int32_t> (a[r] * B + b[r])
    for k in range(job.n_outputs):
        column, level = out + k * target.output, table + k * A * B
        if step == 1:
            for r in range(m):
                column[r] = <real> level[a[r]]
        else:
            for r in range(m):
                column[r * step] = <real> level[a[r]]


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
        room = np.ones(len(self.slot_of_player), np.int64)
        tested = self.slot_of_player >= 0  # no player is where no tree has a split
        room[tested] = self.n_codes[self.slot_of_player[tested]] + 2
        return reduce_terms(np.multiply, room, terms) * self.n_outputs

    def table(self, coverage, matches, terms):
        """The step function of each term.

        Parameters
        ----------
        coverage, matches, terms
            As `of`.

        Returns
        -------
        list of ndarray of shape (n_outputs, n_codes + 1) or (n_outputs, n_codes + 1, n_codes + 1)
            By codes, the last one for missing.
        """
        tables = self.of(coverage, matches, terms)
        return [tables.table(t) for t in range(len(terms))]

    def of(self, coverage, matches, terms, n_threads=1):
        """The step functions of some terms.

        Parameters
        ----------
        coverage : Coverage
        matches : Matches
            Where the leaves that take part in the terms are.
        terms : list of tuple of int
            Of players that the trees test.
        n_threads : int
            Of coverages that have to be counted first.

        Returns
        -------
        StepTables
        """
        return StepTables(self, coverage, matches, terms, n_threads)


def _groups(const int64_t[::1] entries, int64_t first, int64_t last, int64_t most):
    """Bounds of runs of terms whose tables are held at a time: so many, of so many entries."""
    cdef int64_t t, start = first, used = 0
    bounds = [first]
    for t in range(first, last):
        if t > start and (t - start == most or used + entries[t] > GROUP_ENTRIES):
            bounds.append(t)
            start, used = t, 0
        used += entries[t]
    return np.array([*bounds, last])


cdef class StepTables:
    """Step functions of some terms; their tables are made where they are used, and thrown away.

    Parameters
    ----------
    steps : Steps
    coverage, matches, terms, n_threads
        As `Steps.of`.
    """

    cdef Job job
    cdef const int64_t[::1] entries
    cdef const double[::1] two
    cdef const int64_t[::1] start, size
    cdef const int64_t[:, ::1] match
    cdef const int32_t[:, ::1] players
    cdef object steps, terms
    cdef list kept

    def __init__(self, steps, coverage, matches, terms, int n_threads):
        geometry = steps.geometry
        cdef NodeTests tests = steps.tests
        full, one = coverage.near_full(geometry.leaf_sizes, n_threads)
        two = np.empty(len(matches.leaf))
        if any(len(term) == 2 for term in terms):
            two = coverage.without_pairs(
                geometry.leaf_sizes, matches.leaf, matches.local, n_threads
            )
        self.steps, self.terms = steps, terms
        self.two, self.start, self.match = two, matches.start, matches.packed
        self.size = np.array([len(term) for term in terms], np.int64)
        ends = np.array([(term[0], term[len(term) - 1]) for term in terms], np.int32)
        self.players = ends.reshape(len(terms), 2)
        self.entries = steps.table_sizes(terms)
        cdef const int64_t[::1] n_codes = steps.n_codes
        cdef const int32_t[::1] slot = steps.slot_of_player
        cdef const int64_t[::1] player_start = geometry.player_start
        cdef const int64_t[::1] path_start = geometry.path_start
        cdef const int32_t[::1] path_node = geometry.path_node, path_bit = geometry.path_bit
        cdef const uint8_t[::1] path_left = geometry.path_left
        cdef const double[::1] full_view = full, one_view = one
        cdef const double[:, ::1] leaf_value = steps.leaf_value
        cdef const int32_t[::1] leaf_output = steps.leaf_output
        self.kept = [full, one]  # whose addresses are in use, as are those of the steps' arrays
        self.job.tests = tests.view()
        self.job.n_codes, self.job.slot = _at(n_codes), _at_int(slot)
        self.job.player_start, self.job.path_start = _at(player_start), _at(path_start)
        self.job.path_node, self.job.path_bit = _at_int(path_node), _at_int(path_bit)
        self.job.path_left = &path_left[0] if path_left.shape[0] else NULL
        self.job.full, self.job.one = _at_double(full_view), _at_double(one_view)
        self.job.leaf_value = &leaf_value[0, 0] if leaf_value.shape[0] else NULL
        self.job.n_values = leaf_value.shape[1]
        self.job.leaf_output, self.job.n_outputs = _at_int(leaf_output), steps.n_outputs

    def table(self, int64_t t):
        """The step function of the t-th term; see `Steps.table`."""
        cdef double[::1] entries = np.zeros(self.entries[t])
        if self.fill(t, &entries[0]) < 0:
            raise MemoryError(NO_MEMORY)
        slots = self.steps.slot_of_player[list(self.terms[t])]
        whole = np.asarray(entries).reshape(-1, *(self.steps.n_codes[slots] + 2))
        return whole[(slice(None), *(slice(0, -1) for _ in slots))]

    def look_up(
        self, BinnedRows rows, int64_t first, int64_t last, columns, real[:, :, :] out, base,
        int n_threads,
    ):
        """Write the values of some of the terms for every row.

        Parameters
        ----------
        rows : BinnedRows
        first, last : int
            The terms ``first`` up to ``last``.
        columns : ndarray of shape (last - first,), int64
            The place of each of them in `out`.
        out : ndarray of shape (n_columns, n_outputs, n_rows), float64 or float32
            Of any strides that are whole numbers of its values.
        base : ndarray of shape (n_outputs,), float64
            What is added to every value.
        n_threads : int
        """
        if rows.n_rows == 0 or first == last:
            return
        cdef Target target
        target.codes, target.first, target.base = rows.view(), first, _at_double(base)
        target.column = _at(columns)
        target.term, target.output, target.row = [n // out.itemsize for n in out.strides[:3]]
        # Where rows do not lie side by side, several terms fill their cache lines.
        bounds = _groups(self.entries, first, last, 1 if target.row == 1 else TOGETHER)
        cdef const int64_t[::1] groups = bounds
        cdef int64_t g, n_groups = groups.shape[0] - 1
        cdef real* start = &out[0, 0, 0]
        cdef int status = 0
        for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status += _look_up_group(self, groups[g], groups[g + 1], &target, start)
        if status < 0:
            raise MemoryError(NO_MEMORY)

    def look_up_grid(self, BinnedRows rows, columns, double[:, :, ::1] out, int n_threads):
        """Write the values of pairs on the product of the rows with themselves.

        Parameters
        ----------
        rows : BinnedRows
            Row ``a`` gives a pair's first code, row ``b`` its second.
        columns : ndarray of shape (n_pairs,), int64
            The place of each pair in `out`.
        out : ndarray of shape (n_columns, n_outputs, n_rows * n_rows), float64
        n_threads : int
        """
        cdef int64_t t, n_pairs = len(self.terms)
        if rows.n_rows == 0 or n_pairs == 0:
            return
        cdef Codes codes = rows.view()
        cdef const int64_t[::1] column = columns
        cdef double* start = &out[0, 0, 0]
        cdef int status = 0
        for t in prange(n_pairs, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status += self.look_up_pair(t, &codes, column[t], start)
        if status < 0:
            raise MemoryError(NO_MEMORY)

    cdef int fill(self, int64_t t, double* table) noexcept nogil:
        """Make the table of a term from zeros; -1 if there is no memory."""
        cdef int64_t first = self.start[t], n_matches = self.start[t + 1] - first
        cdef int64_t slot_a = self.job.slot[self.players[t, 0]]
        cdef const int64_t* match = &self.match[0, 0] + 3 * first
        if self.size[t] == 1:
            return _curve(&self.job, match, n_matches, slot_a, table)
        return _surface(
            &self.job, match, n_matches, &self.two[0] + first, slot_a,
            self.job.slot[self.players[t, 1]], table,
        )

    cdef int look_up_pair(self, int64_t t, const Codes* codes, int64_t column, double* out) noexcept nogil:
        """Look a pair up on the product of the rows; -1 if there is no memory."""
        cdef double* table = <double*> calloc(self.entries[t], sizeof(double))
        cdef int status = -1
        if table != NULL and self.fill(t, table) == 0:
            status = _look_up_grid(
                &self.job, codes, &self.players[t, 0], table, column, out
            )
        free(table)
        return status


cdef int _look_up_group(
    StepTables tables, int64_t first, int64_t last, const Target* target, real* out
) noexcept nogil:
    """Look all rows up in the tables of some terms; -1 if there is no memory."""
    cdef int64_t n_rows = target.codes.n_rows, n_outputs = tables.job.n_outputs
    cdef int64_t block, row, t, k, e, size = 0
    cdef int status = 0
    cdef double* table
    for t in range(first, last):
        size += tables.entries[t]
    cdef double* room = <double*> calloc(size, sizeof(double))
    if room == NULL:
        return -1
    table = room
    for t in range(first, last):
        status += tables.fill(t, table)
        size = tables.entries[t] // n_outputs
        for k in range(n_outputs):
            if target.base[k] != 0:
                for e in range(k * size, (k + 1) * size):
                    table[e] += target.base[k]
        table += tables.entries[t]
    for block in range((n_rows + BLOCK - 1) // BLOCK if status == 0 else 0):
        row = block * BLOCK
        table = room
        for t in range(first, last):
            _look_up(
                &tables.job, &tables.players[t, 0], tables.size[t], table, row,
                min(<int64_t> BLOCK, n_rows - row), target,
                out + target.column[t - target.first] * target.term + row * target.row,
            )
            table += tables.entries[t]
    free(room)
    return status


cdef const int64_t* _at(const int64_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef const int32_t* _at_int(const int32_t[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL


cdef const double* _at_double(const double[::1] array) noexcept:
    return &array[0] if array.shape[0] else NULL
