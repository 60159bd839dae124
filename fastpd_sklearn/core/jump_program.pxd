"""What the jumps of curves take: tests, ways and steps, tree by tree; see jump_program.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from fastpd_sklearn.core.walking cimport TreesView

cdef extern from "jump_program.h" nogil:
    enum:
        LANES
    ctypedef struct LaneTest:
        int64_t offset
        uint32_t low
        uint32_t span
        int32_t mask
        int32_t node
    ctypedef struct LaneWay:
        int32_t source
        int32_t mask
        int32_t left
        int32_t right
    ctypedef struct LaneValue:
        int32_t kind
        int32_t place
        int32_t left
        int32_t right
    ctypedef struct LaneStep:
        LaneValue left
        LaneValue right
        int32_t mask
        int32_t way
        int32_t target
        int32_t cell


cdef struct Run:
    # Successive steps of one kind.
    int64_t first
    int64_t n
    int32_t kind


cdef struct Part:
    # What a tree takes, as the ends of its tests, by kind, ways and runs; they start where those of
    # the tree before end. Late runs ask for values that the others leave behind.
    int64_t tests[4]
    int64_t ways
    int64_t late_runs
    int64_t runs


cdef struct Program:
    # Arrays that grow, and how much memory a tree takes at most.
    LaneTest* test
    LaneWay* way
    LaneStep* step
    Run* run
    Part* part
    int64_t n_tests
    int64_t n_ways
    int64_t n_steps
    int64_t n_runs
    int64_t test_room
    int64_t way_room
    int64_t step_room
    int64_t run_room
    int status              # negative where memory was short
    int64_t most_nodes
    int64_t most_ways       # rows of ways at a time
    int64_t most_values     # registers at a time


cdef struct Columns:
    # By player: its curve. Codes are 0 to n_codes - 1, and n_codes is missing.
    const int32_t* first_cell   # -1 without a curve
    const int32_t* n_codes
    const int32_t* reference    # the code that missing is compared with
    const int64_t* offset       # by slot, of its codes in a block
    const uint8_t* width


cdef int make_program(
    const TreesView* trees, const Columns* columns, int64_t n_players, Program* p
) noexcept nogil
cdef void free_program(Program* p) noexcept nogil
