"""Every row's own curves along many columns at once, from their jumps: exact ICE of small trees.

A curve is constant but at the thresholds of its column. At a threshold ``c`` of a node that tests
column ``j`` it jumps for the rows that pass all tests of other columns on the way to the node, by

    value(right subtree, j just above c) - value(left subtree, j just below c),

and the sum of all jumps up to a code, less that up to the row's own code, is added to the row's
prediction. Where ``j`` is not tested again below, the two values are those of the subtrees as the
row goes through them, which are the same for all columns: all that a node takes is one choice
between two numbers, and one difference. Trees become a program of these beforehand (see
jump_program.pyx), through which blocks of rows are run here. There is no branch and no list of rows: all nodes look at
all rows of a block, a vector at a time. That is sooner than to walk (see ice.pyx) as long as a
tree has not many more nodes than a row's neighbourhood has, of which `most_steps` tells.

What missing values do is one more jump, from the code that goes with them at most nodes.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.jump_program cimport (
    LANES, Columns, LaneStep, LaneTest, LaneWay, Part, Program, free_program, make_program,
)
from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport Trees, TreesView, row_goes_left

import numpy as np

from fastpd_sklearn.core.ice import LINKS, list_places
from fastpd_sklearn.core.jump_program import DEEPEST

cdef extern from "jumps.h" nogil:
    void lane_tests_8(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    void lane_tests_16(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    void lane_tests_32(const LaneTest*, int64_t, const uint8_t*, uint8_t*)
    void lane_ways(const LaneWay*, int64_t, const uint8_t*, uint8_t*)
    void lane_steps(
        int, const LaneStep*, int64_t, const double*, int64_t, const uint8_t*, const uint8_t*,
        double*, double*,
    )
    void lane_sums(double*, int64_t)
    void lane_add(double*, const double*, const double*)
    ctypedef struct Layout:
        const int32_t* first
        const int32_t* position
        int64_t row_step
        int64_t step
    void lane_write(
        const double*, int64_t, int64_t, const double*, const Layout*, double*
    )
    double weighted_sum(const double*, const double*, int64_t)
    enum:
        LINK_IDENTITY
    void apply_link(int, double*, int64_t, int64_t)

cdef enum:
    MOST_GROUPS = 64     # of blocks whose sums are added up apart; it must not depend on threads
    MOST_CELLS = 16      # that are responded to at a time: an inverse link takes a run-up


cdef struct Scratch:
    char* room              # for all that follows
    uint8_t* codes          # of the block, slot by slot
    uint8_t* masks          # by node of a tree: 255 where a row goes left
    uint8_t* ways           # by node and more: 255 where a row arrives
    double* values          # values[(value * most_values + register) * LANES + row]
    double* curve           # curve[(output * n_cells + cell) * LANES + row]
    double* margin          # margin[output * LANES + row]: the prediction
    double* shift           # the same, less the curve at the row's own code
    double* response        # response[(output * n + cell) * LANES + row], and room for one more output
    double* weight


cdef struct Target:
    double* out             # out[output * out_step + ...], by the layout
    int64_t out_step
    Layout layout


cdef struct Job:
    TreesView trees
    Codes codes
    Columns columns
    const Program* program
    int64_t n_cells
    int64_t n_slots
    int64_t code_bytes      # of a block
    const double* margin    # margin[output * n_rows + row]
    int64_t n_curves
    const int32_t* player   # by curve
    const int32_t* slot
    # For sums: points of curve k are those from first[k] on.
    const int32_t* first
    const int32_t* cell     # by point
    # For curves: where they are written.
    const Target* target    # by curve


cdef int64_t _lay_out(Scratch* s, const Job* job, char* start) noexcept nogil:
    """Give all arrays a place, from an address on; how many bytes they take."""
    cdef int64_t n_outputs = job.trees.n_outputs, row = LANES * sizeof(double)
    cdef const Program* p = job.program
    cdef char* at = start
    s.codes, at = <uint8_t*> at, at + job.code_bytes + LANES
    s.masks, at = <uint8_t*> at, at + p.most_nodes * LANES
    s.ways, at = <uint8_t*> at, at + p.most_ways * LANES
    s.values, at = <double*> at, at + p.most_values * job.trees.n_values * row
    s.curve, at = <double*> at, at + (n_outputs * job.n_cells + 1) * row
    s.margin, at = <double*> at, at + n_outputs * row
    s.shift, at = <double*> at, at + n_outputs * row
    s.response, at = <double*> at, at + (n_outputs + 1) * MOST_CELLS * row
    s.weight, at = <double*> at, at + row
    return at - start


cdef int _scratch_init(Scratch* s, const Job* job) noexcept nogil:
    """Arrays that begin with a cache line, as all of their rows do: a vector that lies across two
    lines takes twice as long."""
    s.room = <char*> malloc(_lay_out(s, job, NULL) + LANES)
    if s.room == NULL:
        return -1
    _lay_out(s, job, s.room + (LANES - <size_t> s.room % LANES))
    memset(s.codes, 0, job.code_bytes)
    return 0


cdef void _take_block(const Job* job, int64_t row, int64_t m, Scratch* s) noexcept nogil:
    """The codes and predictions of a block; rows beyond the last have the code 0."""
    cdef int64_t k, width
    for k in range(job.n_slots):
        width = job.codes.width[k]
        memcpy(s.codes + job.columns.offset[k], job.codes.data + job.codes.offset[k] + row * width,
               m * width)
        memset(s.codes + job.columns.offset[k] + m * width, 0, (LANES - m) * width)
    for k in range(job.trees.n_outputs):
        memset(s.margin + k * LANES, 0, LANES * sizeof(double))
        memcpy(s.margin + k * LANES, job.margin + k * job.codes.n_rows + row, m * sizeof(double))


cdef void _test_by_table(
    const Job* job, const LaneTest* test, int64_t n, const Scratch* s
) noexcept nogil:
    cdef int64_t i, r
    cdef Codes codes = job.codes
    codes.data, codes.offset = s.codes, job.columns.offset
    for i in range(n):
        for r in range(LANES):
            s.masks[test[i].mask * LANES + r] = 255 * row_goes_left(
                &job.trees, &codes, job.trees.node + test[i].node, r
            )


cdef inline void _run(
    const Job* job, int64_t first, int64_t last, int64_t output, int64_t value, const Scratch* s
) noexcept nogil:
    cdef int64_t i
    cdef const Program* p = job.program
    cdef const double* fixed = job.trees.leaf_value + value
    for i in range(first, last):
        lane_steps(
            p.run[i].kind, p.step + p.run[i].first, p.run[i].n, fixed, job.trees.n_values, s.masks,
            s.ways, s.values + value * p.most_values * LANES,
            s.curve + (output + value) * job.n_cells * LANES,
        )


cdef void _fill_jumps(const Job* job, Scratch* s) noexcept nogil:
    """The jumps of all curves of a block of rows."""
    cdef int64_t t, v, output
    cdef const Program* p = job.program
    cdef Part start, end
    memset(s.curve, 0, job.trees.n_outputs * job.n_cells * LANES * sizeof(double))
    memset(s.ways, 255, LANES)
    memset(&end, 0, sizeof(Part))
    for t in range(job.trees.n_trees):
        start, end = end, p.part[t]
        if start.runs == end.runs:
            continue
        lane_tests_8(p.test + start.tests[3], end.tests[0] - start.tests[3], s.codes, s.masks)
        lane_tests_16(p.test + end.tests[0], end.tests[1] - end.tests[0], s.codes, s.masks)
        lane_tests_32(p.test + end.tests[1], end.tests[2] - end.tests[1], s.codes, s.masks)
        _test_by_table(job, p.test + end.tests[2], end.tests[3] - end.tests[2], s)
        lane_ways(p.way + start.ways, end.ways - start.ways, s.masks, s.ways)
        output = job.trees.tree_output[t]
        for v in range(job.trees.n_values):
            _run(job, end.late_runs, end.runs, output, v, s)
            _run(job, start.runs, end.late_runs, output, v, s)


cdef inline int64_t _own_code(const Job* job, int64_t curve, int64_t row, const Scratch* s) noexcept nogil:
    """A row's code, the number of codes for missing."""
    cdef const uint8_t* column = s.codes + job.columns.offset[job.slot[curve]]
    cdef uint8_t width = job.columns.width[job.slot[curve]]
    cdef int64_t code
    if width == 1:
        code = column[row]
    elif width == 2:
        code = (<const uint16_t*> column)[row]
    else:
        code = (<const uint32_t*> column)[row]
    return min(code, <int64_t> job.columns.n_codes[job.player[curve]])


cdef double* _finish_curve(
    const Job* job, int64_t curve, int64_t output, const Scratch* s
) noexcept nogil:
    """From jumps to a curve; margins are its cells with the shift added."""
    cdef int32_t player = job.player[curve]
    cdef int64_t n = job.columns.n_codes[player], r
    cdef double* cells = s.curve + (output * job.n_cells + job.columns.first_cell[player]) * LANES
    lane_sums(cells, n)
    lane_add(cells + n * LANES, cells + n * LANES, cells + job.columns.reference[player] * LANES)
    for r in range(LANES):
        s.shift[output * LANES + r] = (
            s.margin[output * LANES + r] - cells[_own_code(job, curve, r, s) * LANES + r]
        )
    return cells


cdef double* _finish_outputs(const Job* job, int64_t curve, const Scratch* s) noexcept nogil:
    """From jumps to a curve in all outputs; the cells of the first one."""
    cdef int64_t k
    cdef double* cells = NULL
    for k in range(job.trees.n_outputs - 1, -1, -1):
        cells = _finish_curve(job, curve, k, s)
    return cells


cdef void _respond(
    const Job* job, const double* cells, const int32_t* cell, int64_t n, int link, const Scratch* s
) noexcept nogil:
    """The responses of a block at some cells of a curve."""
    cdef int64_t k, i, step = job.n_cells * LANES
    cdef double* response = s.response
    for k in range(job.trees.n_outputs):
        for i in range(n):
            lane_add(response, cells + k * step + cell[i] * LANES, s.shift + k * LANES)
            response += LANES
    apply_link(link, s.response, job.trees.n_outputs, n * LANES)


cdef int _sum_group(
    const Job* job, int64_t first_block, int64_t last_block, const double* weights, int link,
    double* total,
) noexcept nogil:
    """total[output * n_points + point]: weighted sums over some blocks of rows."""
    cdef int64_t block, row, m, r, curve, i, j, k, n
    cdef int64_t n_outputs = job.trees.n_outputs, n_points = job.first[job.n_curves]
    cdef const double* cells
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * LANES
        m = min(<int64_t> LANES, job.codes.n_rows - row)
        for r in range(LANES):
            scratch.weight[r] = 0.0
            if r < m:
                scratch.weight[r] = 1.0 if weights == NULL else weights[row + r]
        _take_block(job, row, m, &scratch)
        _fill_jumps(job, &scratch)
        for curve in range(job.n_curves):
            cells = _finish_outputs(job, curve, &scratch)
            i = job.first[curve]
            while i < job.first[curve + 1]:
                n = min(<int64_t> MOST_CELLS, job.first[curve + 1] - i)
                _respond(job, cells, job.cell + i, n, link, &scratch)
                for k in range(n_outputs):
                    for j in range(n):
                        total[k * n_points + i + j] += weighted_sum(
                            scratch.response + (k * n + j) * LANES, scratch.weight, LANES
                        )
                i += n
    free(scratch.room)
    return status


cdef void _put_responses(
    const Job* job, double* cells, const int32_t* cell, int64_t n, int link, const Scratch* s
) noexcept nogil:
    """Responses in place of a curve's numbers at some cells."""
    cdef int64_t k, i, step = job.n_cells * LANES
    _respond(job, cells, cell, n, link, s)
    for k in range(job.trees.n_outputs):
        for i in range(n):
            memcpy(cells + k * step + cell[i] * LANES, s.response + (k * n + i) * LANES,
                   LANES * sizeof(double))


cdef void _respond_where_written(
    const Job* job, int64_t curve, double* cells, int link, const Scratch* s
) noexcept nogil:
    """Responses in place of a curve's numbers, and no shift."""
    cdef int64_t n = 0
    cdef int32_t c
    cdef int32_t[MOST_CELLS] cell
    cdef const int32_t* first = job.target[curve].layout.first
    for c in range(job.columns.n_codes[job.player[curve]] + 1):
        if first[c] == first[c + 1]:
            continue
        cell[n] = c
        n += 1
        if n == MOST_CELLS:
            _put_responses(job, cells, cell, n, link, s)
            n = 0
    _put_responses(job, cells, cell, n, link, s)
    memset(s.shift, 0, job.trees.n_outputs * LANES * sizeof(double))


cdef int _write_group(
    const Job* job, int64_t first_block, int64_t last_block, int link
) noexcept nogil:
    """The curves of some blocks of rows, to their targets."""
    cdef int64_t block, row, m, curve, k
    cdef double* cells
    cdef const Target* to
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * LANES
        m = min(<int64_t> LANES, job.codes.n_rows - row)
        _take_block(job, row, m, &scratch)
        _fill_jumps(job, &scratch)
        for curve in range(job.n_curves):
            cells = _finish_outputs(job, curve, &scratch)
            if link != LINK_IDENTITY:
                _respond_where_written(job, curve, cells, link, &scratch)
            to = job.target + curve
            for k in range(job.trees.n_outputs):
                lane_write(cells + k * job.n_cells * LANES,
                           job.columns.n_codes[job.player[curve]] + 1, m, scratch.shift + k * LANES,
                           &to.layout, to.out + k * to.out_step + row * to.layout.row_step)
    free(scratch.room)
    return status


cdef void _aim(Target* target, double[:, :, :] out, listed) except *:
    cdef const int32_t[::1] first = listed[0], position = listed[1]
    target.layout.first = &first[0]
    target.layout.position = &position[0] if len(position) else NULL
    target.out = &out[0, 0, 0] if out.size else NULL
    target.out_step = out.strides[0] // sizeof(double)
    target.layout.row_step = out.strides[1] // sizeof(double)
    target.layout.step = out.strides[2] // sizeof(double)


def response_sums(margins, sample_weight, link):
    """Weighted sums of a response over rows.

    Parameters
    ----------
    margins : ndarray of shape (n_outputs, n_rows), float64
    sample_weight : ndarray of shape (n_rows,), float64, or None
    link : str
        A key of `ice.LINKS`.

    Returns
    -------
    ndarray of shape (n_outputs,), float64
    """
    cdef const double[:, :] margin = margins
    cdef int64_t n_outputs = margin.shape[0], n_rows = margin.shape[1], row, m, k, r
    cdef double[:, ::1] block = np.zeros((n_outputs + 1, LANES))
    cdef double[::1] weight = np.zeros(LANES), total = np.zeros(n_outputs)
    cdef const double[::1] weights = np.ones(n_rows) if sample_weight is None else sample_weight
    cdef int which = LINKS[link]
    for row in range(0, n_rows, LANES):
        m = min(<int64_t> LANES, n_rows - row)
        for r in range(LANES):
            weight[r] = weights[row + r] if r < m else 0.0
        for k in range(n_outputs):
            for r in range(LANES):
                block[k, r] = margin[k, row + r] if r < m else 0.0
        apply_link(which, &block[0, 0], n_outputs, LANES)
        for k in range(n_outputs):
            total[k] += weighted_sum(&block[k, 0], &weight[0], LANES)
    return np.asarray(total)


cdef class Jumps:
    """Curves of rows along columns, each of which is a player whose tests cut its line in two.

    Parameters
    ----------
    trees : Trees
        At most `DEEPEST` tests deep.
    players, slots : sequence of int
        A curve each, and its binned column.
    n_players : int
    n_codes : ndarray of int64
        By slot of the forest: how many codes there are, missing apart.
    width : ndarray of uint8
        By slot of the forest: bytes of a code.
    """

    cdef Trees trees
    cdef object _players, _slots, _first_cell, _n_codes, _reference, _offset, _width
    cdef int64_t _n_cells
    cdef Columns _columns
    cdef Program _program

    def __cinit__(self):
        memset(&self._program, 0, sizeof(Program))

    def __init__(self, Trees trees, players, slots, int64_t n_players, n_codes, width):
        self.trees = trees
        self._players, self._slots = np.array(players, np.int32), np.array(slots, np.int32)
        sizes = np.asarray(n_codes)[self._slots] + 1
        self._first_cell = np.full(n_players + 1, -1, np.int32)
        self._first_cell[self._players] = np.cumsum(sizes) - sizes
        self._n_codes = np.zeros(n_players + 1, np.int32)
        self._n_codes[self._players] = sizes - 1
        self._n_cells = sizes.sum()
        self._reference = self._references()
        self._width = np.append(width, np.uint8(1))
        self._offset = (np.cumsum(self._width.astype(np.int64)) - self._width) * LANES
        self._set_columns()
        self._make(n_players)

    def __dealloc__(self):
        free_program(&self._program)

    def _references(self):
        """By player, the code that goes with missing at the most nodes."""
        nodes = self.trees.nodes
        nodes = nodes[(nodes["left"] >= 0) & (self._first_cell[nodes["player"]] >= 0)]
        missing_left = nodes["low"] != 0
        end = self._n_codes[nodes["player"]]
        cut = np.minimum(nodes["span"] - missing_left + 1, end)
        first = self._first_cell[nodes["player"]]
        agreeing = np.zeros(self._n_cells + 1, np.int64)
        np.add.at(agreeing, first + np.where(missing_left, 0, cut), 1)
        np.add.at(agreeing, first + np.where(missing_left, cut, end), -1)
        agreeing = np.cumsum(agreeing)
        found = np.zeros(len(self._first_cell), np.int32)
        for player in self._players:
            start, n = self._first_cell[player], self._n_codes[player]
            found[player] = agreeing[start:start + n].argmax()
        return found

    cdef void _set_columns(self) except *:
        cdef const int32_t[::1] first_cell = self._first_cell, n_codes = self._n_codes
        cdef const int32_t[::1] reference = self._reference
        cdef const int64_t[::1] offset = self._offset
        cdef const uint8_t[::1] width = self._width
        self._columns.first_cell, self._columns.n_codes = &first_cell[0], &n_codes[0]
        self._columns.reference = &reference[0]
        self._columns.offset, self._columns.width = &offset[0], &width[0]

    def _make(self, int64_t n_players):
        cdef TreesView trees = self.trees.view()
        if self._program.part != NULL:
            raise RuntimeError("the curves of a forest are made once")
        if trees.depth > DEEPEST:
            raise ValueError(f"trees are {trees.depth} tests deep, more than {DEEPEST}")
        if make_program(&trees, &self._columns, n_players + 1, &self._program) < 0:
            raise MemoryError("no memory for what the curves of a forest take; ask for fewer")

    cdef Job _job(self, BinnedRows rows, const double[:, ::1] margins) except *:
        cdef Job job
        memset(&job, 0, sizeof(Job))
        job.trees, job.codes, job.columns = self.trees.view(), rows.view(), self._columns
        job.program = &self._program
        job.n_cells, job.n_slots = self._n_cells, len(rows.width)
        job.code_bytes = int(self._offset[job.n_slots])
        job.margin = &margins[0, 0] if margins.size else NULL
        job.n_curves = len(self._players)
        return job

    def sums(self, BinnedRows rows, margins, cells, sample_weight, link, int n_threads):
        """Weighted sums of a response over the rows, along every curve.

        Parameters
        ----------
        rows : BinnedRows
        margins : ndarray of shape (n_outputs, n_rows), float64, C order
            The rows' predictions.
        cells : sequence of ndarray of int
            By curve, the codes to respond at; the number of codes for missing.
        sample_weight : ndarray of shape (n_rows,), float64, or None
        link : str
            From margins to the response: a key of `ice.LINKS`.
        n_threads : int

        Returns
        -------
        list of ndarray of shape (n_outputs, n_cells), float64
        """
        cdef Job job = self._job(rows, margins)
        cdef const int32_t[::1] players = self._players, slots = self._slots
        first_array = np.concatenate([[0], np.cumsum([len(c) for c in cells])]).astype(np.int32)
        cdef const int32_t[::1] first = first_array
        cdef const int32_t[::1] cell = np.concatenate([*cells, [0]]).astype(np.int32)
        job.player, job.slot, job.first, job.cell = &players[0], &slots[0], &first[0], &cell[0]
        cdef const double[::1] weights = np.empty(0) if sample_weight is None else sample_weight
        cdef const double* weight = NULL if sample_weight is None else &weights[0]
        cdef int which = LINKS[link]
        cdef int64_t n_blocks = (rows.n_rows + LANES - 1) // LANES
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        cdef int64_t size = self.trees.n_outputs * first[job.n_curves]
        total_array = np.zeros((n_groups, max(size, <int64_t> 1)))
        cdef double[:, ::1] total = total_array
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status[g] = _sum_group(
                &job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups, weight, which,
                &total[g, 0],
            )
        self._check(status_array)
        out = np.zeros(total_array.shape[1])
        for g in range(n_groups):
            out += total_array[g]
        return np.split(out[:size].reshape(self.trees.n_outputs, -1), first_array[1:len(cells)], axis=1)

    def curves(self, BinnedRows rows, margins, cells, link, int n_threads, out):
        """The response of every row along every curve.

        Parameters
        ----------
        rows, margins, cells, link, n_threads
            As for :meth:`sums`.
        out : list of ndarray of shape (n_outputs, n_rows, n_cells), float64
            By curve, where to write it; they need not be contiguous.
        """
        cdef Job job = self._job(rows, margins)
        cdef const int32_t[::1] players = self._players, slots = self._slots
        job.player, job.slot = &players[0], &slots[0]
        cdef int which = LINKS[link]
        cdef int64_t n_blocks = (rows.n_rows + LANES - 1) // LANES
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        listed = [
            list_places(cell, self._n_codes[player] + 1)
            for cell, player in zip(cells, self._players, strict=True)
        ]
        cdef Target* target = <Target*> malloc(job.n_curves * sizeof(Target))
        if target == NULL:
            raise MemoryError("no memory for places of curves")
        try:
            for g in range(job.n_curves):
                _aim(&target[g], out[g], listed[g])
            job.target = target
            for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
                status[g] = _write_group(
                    &job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups, which
                )
        finally:
            free(target)
        self._check(status_array)

    def _check(self, status):
        if status.any():
            raise MemoryError(
                f"no memory for blocks of curves over {self._n_cells} codes; ask for fewer columns"
            )
