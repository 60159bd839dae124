"""Every row's own response as one column, or two, take other values: exact ICE.

A row's response is constant between the codes of a column, so that its curve is a step function,
found by one walk: a node that tests the column parts the points of the curve, which stay one
interval of them, and any other node parts the rows. A leaf adds to the ends of its interval, and
one cumulative sum makes the curves of a block of rows. Where no test of the column lies on the way
nor below, a row arrives at its own leaf whatever the point; a caller who knows these leaves, since
many columns have curves of the same rows, spares the walk the rest of the way. The rows of a block lie together
for each point, which suits inverse links; the mean of a response over the rows, on which trees do
not add up, costs little more than the link itself.

J. Goldstein, A. Kapelner, J. Bleich, E. Pitkin, "Peeking Inside the Black Box" (2015), for
individual conditional expectation.
"""

from cython.parallel cimport prange
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from fastpd_sklearn.core.routing cimport BinnedRows, Codes
from fastpd_sklearn.core.walking cimport (
    Node, Points, PointsView, Side, Trees, TreesView, is_empty, next_run, part_rows,
    row_goes_left, split_side, whole_side,
)

import numpy as np

from fastpd_sklearn.core.routing import BinnedRows

cdef extern from "walking.h" nogil:
    void add_to(double*, const double*, int64_t)
    void add_shift(double*, const double*, double, int64_t)
    ctypedef struct Layout:
        const int32_t* first
        const int32_t* position
        int64_t row_step
        int64_t step
    void write_sums(const double*, int64_t, int64_t, int64_t, double, const Layout*, double*)
    double weighted_sum(const double*, const double*, int64_t)
    enum:
        LINK_IDENTITY
        LINK_EXP
        LINK_SIGMOID
        LINK_SOFTMAX
    void apply_link(int, double*, int64_t, int64_t)

cdef enum:
    BLOCK_CELLS = 1 << 17  # numbers of a block of curves, to stay in the second-level cache
    MOST_CELLS = 1 << 22   # the same for large trees, see _rows_of_block
    LEAST_ROWS = 8         # of a block; a cache line of numbers, which all loops count by
    MOST_ROWS = 4096
    MOST_GROUPS = 64       # of blocks whose sums are added up apart; it must not depend on threads
    CALL_CELLS = 1 << 20   # numbers that a function from Python is handed at a time

LINKS = {
    "identity": LINK_IDENTITY, "exp": LINK_EXP, "logit": LINK_SIGMOID, "multi_logit": LINK_SIGMOID,
    "softmax": LINK_SOFTMAX,
}
"""Inverse links that are applied without Python, by the names that heads have."""


def list_places(cell, int64_t n_cells):
    """Where each of some cells is found, as `Layout` has it.

    Parameters
    ----------
    cell : ndarray of shape (n_places,), int
        By place; below ``n_cells``.
    n_cells : int

    Returns
    -------
    first : ndarray of shape (n_cells + 1,), int32
    position : ndarray of shape (n_places,), int32
        Places of cell c are ``position[first[c]:first[c + 1]]``.
    """
    position = np.argsort(cell, kind="stable").astype(np.int32)
    first = np.searchsorted(np.asarray(cell)[position], np.arange(n_cells + 1))
    return first.astype(np.int32), position


cdef struct Frame:
    # The rows row[first:last] at a node, and the points that they still stand for.
    int64_t node
    int64_t first
    int64_t last
    int64_t top
    bint is_held            # whether a player that is held has been tested on the way
    Side side[2]


cdef struct Job:
    TreesView trees
    Codes codes
    PointsView points[2]
    int64_t n_free
    int64_t size[2]         # of the points; 1 for a player that is not there
    int64_t cells           # their product
    int64_t rows            # most rows of a block
    const double* intercept
    int64_t arena_room
    int64_t n_slots
    const uint8_t* matters  # by node: whether a player that is held is tested there or below
    const int32_t* leaf     # leaf[tree * leaf_step + row]: where rows arrive as they are, or NULL
    int64_t leaf_step
    int32_t* leaf_out       # where to write these, and nothing else; or NULL
    double* out             # out[output * out_step + ...]: curves by `layout`, or NULL
    int64_t out_step
    Layout layout


cdef struct Scratch:
    double* curve           # curve[(output * cells + cell) * rows + row]
    int32_t* row
    int32_t* spare
    int32_t* arena
    Frame* stack
    double* margin          # margin[output * rows + row], and room for as many responses
    double* weight
    int64_t* offset         # of the block's rows within the columns
    int64_t first_row       # of the block


cdef int64_t _rows_of_block(const Job* job, int64_t n_leaves) noexcept:
    """Rows to take through the trees together.

    Nodes of large trees have to come from memory for each block, so that the more rows share
    them the better, even if their curves leave the second-level cache.
    """
    cdef int64_t cells = max(job.cells * job.trees.n_outputs, <int64_t> 1)
    cdef int64_t shared = min(n_leaves // max(job.trees.n_trees, <int64_t> 1), MOST_CELLS // cells)
    cdef int64_t rows = min(max(BLOCK_CELLS // cells, shared),
                            <int64_t> MOST_ROWS, job.codes.n_rows)
    return max((rows + LEAST_ROWS - 1) // LEAST_ROWS * LEAST_ROWS, <int64_t> LEAST_ROWS)


cdef int _scratch_init(Scratch* scratch, const Job* job) noexcept nogil:
    cdef int64_t n_outputs = job.trees.n_outputs, rows = job.rows
    scratch.curve = <double*> malloc((n_outputs * job.cells + 1) * rows * sizeof(double))
    scratch.row = <int32_t*> malloc(rows * sizeof(int32_t))
    scratch.spare = <int32_t*> malloc(rows * sizeof(int32_t))
    scratch.arena = <int32_t*> malloc((job.arena_room + 1) * sizeof(int32_t))
    scratch.stack = <Frame*> malloc((job.trees.depth + 2) * sizeof(Frame))
    scratch.margin = <double*> malloc((2 * n_outputs + 1) * rows * sizeof(double))
    scratch.weight = <double*> malloc(rows * sizeof(double))
    scratch.offset = <int64_t*> malloc((job.n_slots + 1) * sizeof(int64_t))
    return -1 if (
        scratch.curve == NULL or scratch.row == NULL or scratch.spare == NULL
        or scratch.arena == NULL or scratch.stack == NULL or scratch.margin == NULL
        or scratch.weight == NULL or scratch.offset == NULL
    ) else 0


cdef void _scratch_free(Scratch* scratch) noexcept nogil:
    free(scratch.curve)
    free(scratch.row)
    free(scratch.spare)
    free(scratch.arena)
    free(scratch.stack)
    free(scratch.margin)
    free(scratch.weight)
    free(scratch.offset)


cdef void _add(
    const Job* job, double* curve, int64_t a, int64_t b, double sign, const int32_t* row, int64_t m,
    const double* value,
) noexcept nogil:
    """Add a leaf's values to one cell of the differences, for the rows that reach it."""
    cdef int64_t v, i
    cdef double amount
    cdef double* cell = curve + (a * job.size[1] + b) * job.rows
    if a == job.size[0] or b == job.size[1]:
        return
    for v in range(job.trees.n_values):
        amount = sign * value[v]
        if amount != 0:
            for i in range(m):
                cell[row[i]] += amount
        cell += job.cells * job.rows


cdef void _emit(
    const Job* job, const Frame* frame, int64_t tree, int64_t leaf, const Scratch* scratch
) noexcept nogil:
    """Add a leaf to the differences: its value at the corners of its intervals or rectangles."""
    cdef const double* value = job.trees.leaf_value + leaf * job.trees.n_values
    cdef const int32_t* row = scratch.row + frame.first
    cdef int64_t m = frame.last - frame.first, state_a = 0, state_b, a = 0, b, end_a = 1, end_b
    cdef double* curve = scratch.curve + job.trees.tree_output[tree] * job.cells * job.rows
    cdef bint more_a = True
    if job.n_free == 2:
        more_a = next_run(&job.points[0], frame.side[0], scratch.arena, &state_a, &a, &end_a)
    while more_a:
        state_b, b, end_b = 0, 0, 1
        if job.n_free == 0:
            _add(job, curve, a, b, 1.0, row, m, value)
            return
        while next_run(&job.points[job.n_free - 1], frame.side[job.n_free - 1], scratch.arena,
                       &state_b, &b, &end_b):
            _add(job, curve, a, b, 1.0, row, m, value)
            _add(job, curve, a, end_b, -1.0, row, m, value)
            if job.n_free == 2:
                _add(job, curve, end_a, b, -1.0, row, m, value)
                _add(job, curve, end_a, end_b, 1.0, row, m, value)
        if job.n_free == 1:
            return
        more_a = next_run(&job.points[0], frame.side[0], scratch.arena, &state_a, &a, &end_a)


cdef void _emit_own(
    const Job* job, const Frame* frame, int64_t tree, const Scratch* scratch
) noexcept nogil:
    """Add each row's own leaf at all points."""
    cdef const int32_t* leaf = job.leaf + tree * job.leaf_step + scratch.first_row
    cdef const double* value = job.trees.leaf_value
    cdef double* cell = scratch.curve + job.trees.tree_output[tree] * job.cells * job.rows
    cdef int64_t v, i, n_values = job.trees.n_values
    cdef int32_t row
    for v in range(n_values):
        for i in range(frame.first, frame.last):
            row = scratch.row[i]
            cell[row] += value[leaf[row] * n_values + v]
        cell += job.cells * job.rows


cdef void _arrive(
    const Job* job, const Frame* frame, int64_t tree, const Scratch* scratch
) noexcept nogil:
    cdef int32_t leaf = job.trees.node[frame.node].slot
    cdef int64_t i
    if job.leaf_out != NULL:
        for i in range(frame.first, frame.last):
            job.leaf_out[tree * job.leaf_step + scratch.first_row + scratch.row[i]] = leaf
    elif job.leaf != NULL and not frame.is_held:
        _emit_own(job, frame, tree, scratch)
    else:
        _emit(job, frame, tree, leaf, scratch)


cdef void _walk(
    const Job* job, const Codes* codes, int64_t m, int64_t tree, Scratch* scratch
) noexcept nogil:
    """Take the block's rows through a tree, with all points."""
    cdef Frame* stack = scratch.stack
    cdef const Node* node
    cdef Frame at
    cdef Side left, right
    cdef int64_t size = 0, k, middle
    at.node, at.first, at.last, at.top, at.is_held = job.trees.root[tree], 0, m, 0, False
    for k in range(job.n_free):
        at.side[k] = whole_side(&job.points[k], scratch.arena, &at.top)
    while True:
        node = job.trees.node + at.node
        while node.left >= 0:
            if job.leaf != NULL and not at.is_held and not job.matters[at.node]:
                break
            k = 0
            while k < job.n_free and job.points[k].player != node.player:
                k += 1
            if k < job.n_free:
                at.is_held = True
                split_side(&job.trees, &job.points[k], codes, node, at.side[k], &left, &right,
                           scratch.arena, &at.top)
                if is_empty(left):
                    at.side[k], at.node = right, node.right
                elif is_empty(right):
                    at.side[k], at.node = left, node.left
                else:
                    stack[size] = at
                    stack[size].node, stack[size].side[k] = node.right, right
                    size += 1
                    at.side[k], at.node = left, node.left
            elif at.last - at.first == 1:
                if row_goes_left(&job.trees, codes, node, scratch.row[at.first]):
                    at.node = node.left
                else:
                    at.node = node.right
            else:
                middle = at.first + part_rows(
                    &job.trees, codes, node, scratch.row + at.first, at.last - at.first,
                    scratch.spare,
                )
                if middle == at.first:
                    at.node = node.right
                elif middle == at.last:
                    at.node = node.left
                else:
                    stack[size] = at
                    stack[size].node, stack[size].first = node.right, middle
                    size += 1
                    at.node, at.last = node.left, middle
            node = job.trees.node + at.node
        _arrive(job, &at, tree, scratch)
        if size == 0:
            return
        size -= 1
        at = stack[size]


cdef void _differences(
    const Job* job, int64_t first_row, int64_t m, Scratch* scratch
) noexcept nogil:
    """Fill the differences of a block of rows."""
    cdef int64_t t, r, s
    cdef Codes codes = job.codes
    memset(
        scratch.curve, 0, job.trees.n_outputs * job.cells * job.rows * sizeof(double)
    )
    scratch.first_row = first_row
    for r in range(m):
        scratch.row[r] = <int32_t> r
    for s in range(job.n_slots):
        scratch.offset[s] = job.codes.offset[s] + first_row * job.codes.width[s]
    codes.offset = scratch.offset
    for t in range(job.trees.n_trees):
        _walk(job, &codes, m, t, scratch)


cdef void _next_margins(const Job* job, int64_t a, int64_t b, Scratch* scratch) noexcept nogil:
    """From the differences to the margins at the next cell, row by row of the points."""
    cdef int64_t k, rows = job.rows, place
    cdef double* here
    for k in range(job.trees.n_outputs):
        place = (k * job.size[0] + a) * job.size[1] + b
        here = scratch.curve + place * rows
        if a:
            add_to(here, here - job.size[1] * rows, rows)
        if b:
            add_to(scratch.margin + k * rows, here, rows)
        else:
            add_shift(scratch.margin + k * rows, here, job.intercept[k], rows)


cdef void _write_curves(
    const Job* job, int64_t first_row, int64_t m, Scratch* scratch
) noexcept nogil:
    """Write the curves of a block from its differences."""
    cdef int64_t a, k, r, group, rows = job.rows, cells = job.cells, width = job.size[1]
    cdef double* curve
    cdef double* target
    for k in range(job.trees.n_outputs):
        curve = scratch.curve + k * cells * rows
        for a in range(1, job.size[0]):
            add_to(curve + a * width * rows, curve + (a - 1) * width * rows, width * rows)
        for a in range(job.size[0]):
            for group in range((m + LEAST_ROWS - 1) // LEAST_ROWS):
                r = group * LEAST_ROWS
                target = job.out + k * job.out_step + (first_row + r) * job.layout.row_step
                write_sums(curve + a * width * rows + r, rows, width,
                           min(<int64_t> LEAST_ROWS, m - r), job.intercept[k], &job.layout,
                           target + a * width * job.layout.step)


cdef void _respond(const Job* job, int link, Scratch* scratch, double* response) noexcept nogil:
    cdef int64_t rows = job.rows, n_outputs = job.trees.n_outputs
    memcpy(response, scratch.margin, n_outputs * rows * sizeof(double))
    apply_link(link, response, n_outputs, rows)


cdef int _fill_group(const Job* job, int64_t first_block, int64_t last_block) noexcept nogil:
    """The curves of some blocks of rows, or their leaves."""
    cdef int64_t block, row
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * job.rows
        _differences(job, row, min(job.rows, job.codes.n_rows - row), &scratch)
        if job.out != NULL:
            _write_curves(job, row, min(job.rows, job.codes.n_rows - row), &scratch)
    _scratch_free(&scratch)
    return status


cdef int _sum_group(
    const Job* job, int64_t first_block, int64_t last_block, const double* weights, int link,
    double* total,
) noexcept nogil:
    """total[output * cells + cell]: weighted sums of the response over some blocks of rows."""
    cdef int64_t block, row, m, a, b, k, r, n_outputs = job.trees.n_outputs
    cdef double* response
    cdef Scratch scratch
    cdef int status = _scratch_init(&scratch, job)
    response = scratch.margin + n_outputs * job.rows
    for block in range(first_block, last_block if status == 0 else first_block):
        row = block * job.rows
        m = min(job.rows, job.codes.n_rows - row)
        for r in range(job.rows):
            scratch.weight[r] = 0.0
            if r < m:
                scratch.weight[r] = 1.0 if weights == NULL else weights[row + r]
        _differences(job, row, m, &scratch)
        for a in range(job.size[0]):
            for b in range(job.size[1]):
                _next_margins(job, a, b, &scratch)
                _respond(job, link, &scratch, response)
                for k in range(n_outputs):
                    total[(k * job.size[0] + a) * job.size[1] + b] += weighted_sum(
                        response + k * job.rows, scratch.weight, job.rows
                    )
    _scratch_free(&scratch)
    return status


cdef const int32_t* _address(const int32_t[:, :] leaves) except NULL:
    return &leaves[0, 0]


cdef class Individual:
    """Responses of rows of which one player, or two, are held at points.

    Parameters
    ----------
    trees : Trees
    intercept : ndarray of shape (n_outputs,), float64
    points : list of Points
        None, one or two; of different players.
    """

    cdef Trees trees
    cdef list points
    cdef const double[::1] intercept
    cdef const uint8_t[::1] _matters

    def __init__(self, Trees trees, intercept, points):
        self.trees, self.points, self.intercept = trees, list(points), intercept
        self._matters = np.empty(0, np.uint8)

    @property
    def shape(self):
        """Number of points of each player."""
        return tuple(points.size for points in self.points)

    cdef Job _job(self, BinnedRows rows, leaves) except *:
        cdef Job job
        cdef int64_t k
        cdef Points points
        memset(&job, 0, sizeof(Job))
        job.trees, job.codes = self.trees.view(), rows.view()
        job.n_slots = len(rows.width)
        job.n_free = len(self.points)
        job.size[0] = job.size[1] = 1
        for k in range(job.n_free):
            points = self.points[k]
            job.points[k] = points.view()
            job.size[k + 2 - job.n_free] = points.size
            if not points.is_line:
                job.arena_room += points.size * (2 * job.trees.depth + 1)
        job.cells = job.size[0] * job.size[1]
        job.rows = _rows_of_block(&job, len(self.trees.leaf_value))
        job.intercept = &self.intercept[0]
        if leaves is not None and leaves.size:
            if self._matters.shape[0] == 0:
                self._matters = self._find_matters()
            job.leaf, job.leaf_step = _address(leaves), leaves.strides[0] // sizeof(int32_t)
            job.matters = &self._matters[0]
        return job

    def _find_matters(self):
        """By node: whether a player that is held is tested there or below."""
        nodes = self.trees.nodes
        cdef const int32_t[::1] left = nodes["left"].copy(), right = nodes["right"].copy()
        held = [points.player for points in self.points]
        cdef uint8_t[::1] matters = np.isin(nodes["player"], held).astype(np.uint8)
        cdef int64_t node
        for node in range(left.shape[0] - 1, -1, -1):  # children come after their parents
            if left[node] >= 0:
                matters[node] |= matters[left[node]] | matters[right[node]]
        return np.asarray(matters)

    def leaves(self, BinnedRows rows, int n_threads):
        """Where rows arrive as they are.

        Parameters
        ----------
        rows : BinnedRows
        n_threads : int

        Returns
        -------
        ndarray of shape (n_trees, n_rows), int32
            Numbers of leaves, in the order of the nodes.
        """
        found = np.empty((self.trees.n_trees, rows.n_rows), np.int32)
        if not found.size:
            return found
        cdef int32_t[:, ::1] target = found
        cdef Job job = Individual(self.trees, self.intercept, [])._job(rows, None)
        job.leaf_out, job.leaf_step = &target[0, 0], rows.n_rows
        cdef int64_t n_blocks = (rows.n_rows + job.rows - 1) // job.rows, block
        status_array = np.zeros(n_blocks, np.int32)
        cdef int32_t[::1] status = status_array
        for block in prange(n_blocks, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status[block] = _fill_group(&job, block, block + 1)
        self._check(status_array, 1)
        return found

    def curves(self, BinnedRows rows, int n_threads, out=None, leaves=None, place=None):
        """Margins of every row at all points.

        Parameters
        ----------
        rows : BinnedRows
        n_threads : int
        out : ndarray of shape (n_outputs, n_rows, n_cells), float64, default=None
            Where to write them; it need not be contiguous.
        leaves : ndarray of shape (n_trees, n_rows), int32, default=None
            From :meth:`leaves`, where they are known already.
        place : ndarray of shape (n_cells,), int, default=None
            The point that each cell is for, where there is one player; all points in order if not
            given, those of the second player varying fastest.

        Returns
        -------
        ndarray of shape (n_outputs, n_rows, n_cells), float64
        """
        cdef Job job = self._job(rows, leaves)
        if out is None:
            n_cells = job.cells if place is None else len(place)
            out = np.empty((job.trees.n_outputs, job.codes.n_rows, n_cells))
        cdef double[:, :, :] target = out
        cdef int64_t n_blocks = (job.codes.n_rows + job.rows - 1) // job.rows
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        if not out.size:
            return out
        listed = list_places(np.arange(job.size[1]) if place is None else place, job.size[1])
        cdef const int32_t[::1] first = listed[0], position = listed[1]
        job.layout.first, job.layout.position = &first[0], &position[0]
        job.out, job.out_step = &target[0, 0, 0], target.strides[0] // sizeof(double)
        job.layout.row_step = target.strides[1] // sizeof(double)
        job.layout.step = target.strides[2] // sizeof(double)
        for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status[g] = _fill_group(&job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups)
        self._check(status_array, job.cells)
        return out

    def sums(self, BinnedRows rows, sample_weight, link, int n_threads, leaves=None):
        """Weighted sums of a response over the rows, at all points.

        Parameters
        ----------
        rows : BinnedRows
        sample_weight : ndarray of shape (n_rows,), float64, or None
        link : str or callable
            From margins to the response: a key of `LINKS`, or a function from an array of
            shape (n, n_outputs) to one of shape (n, n_responses).
        n_threads : int
        leaves : ndarray of shape (n_trees, n_rows), int32, default=None
            From :meth:`leaves`, where they are known already.

        Returns
        -------
        ndarray of shape (n_responses, *shape), float64
        """
        if callable(link):
            return self._sums_of_calls(rows, sample_weight, link, n_threads, leaves)
        cdef Job job = self._job(rows, leaves)
        cdef int which = LINKS[link]
        cdef const double[::1] weights = np.empty(0) if sample_weight is None else sample_weight
        cdef const double* weight = NULL if sample_weight is None else &weights[0]
        cdef int64_t n_blocks = (job.codes.n_rows + job.rows - 1) // job.rows
        cdef int64_t n_groups = min(n_blocks, <int64_t> MOST_GROUPS), g
        cdef int64_t size = job.trees.n_outputs * job.cells
        total_array = np.zeros((n_groups, max(size, <int64_t> 1)))
        cdef double[:, ::1] total = total_array
        status_array = np.zeros(n_groups + 1, np.int32)
        cdef int32_t[::1] status = status_array
        for g in prange(n_groups, nogil=True, num_threads=n_threads, schedule="dynamic"):
            status[g] = _sum_group(
                &job, g * n_blocks // n_groups, (g + 1) * n_blocks // n_groups, weight, which,
                &total[g, 0],
            )
        self._check(status_array, job.cells)
        out = np.zeros(total_array.shape[1])
        for g in range(n_groups):
            out += total_array[g]
        return out[:size].reshape(job.trees.n_outputs, *self.shape)

    def _sums_of_calls(self, BinnedRows rows, sample_weight, link, int n_threads, leaves):
        shape = self.shape
        n_outputs, cells = self.trees.n_outputs, int(np.prod(shape))
        step = max(1, CALL_CELLS // max(1, cells * n_outputs))
        weights = np.ones(rows.n_rows) if sample_weight is None else sample_weight
        total = 0.0
        for start in range(0, rows.n_rows, step):
            part = slice_rows(rows, start, min(rows.n_rows, start + step))
            own = None if leaves is None else leaves[:, start:start + part.n_rows]
            margins = self.curves(part, n_threads, leaves=own).reshape(n_outputs, -1)
            response = np.asarray(link(np.ascontiguousarray(margins.T)), dtype=np.float64)
            response = response.reshape(part.n_rows, cells, -1)
            total = total + np.einsum("r,rck->kc", weights[start:start + part.n_rows], response)
        return total.reshape(-1, *shape)

    def _check(self, status, cells):
        if status.any():
            raise MemoryError(
                f"no memory for blocks of curves over {cells} points; ask for fewer at a time"
            )


def slice_rows(BinnedRows rows, int64_t start, int64_t stop):
    """Some successive rows, without a copy.

    Parameters
    ----------
    rows : BinnedRows
    start, stop : int

    Returns
    -------
    BinnedRows
    """
    offset = rows.offset + start * rows.width.astype(np.int64)
    return BinnedRows(rows.data, offset, rows.width, stop - start)
