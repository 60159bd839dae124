"""Coverage: what a background, or the model's own covers, say of the sides of a leaf."""

from libc.stdint cimport int64_t, uint64_t


cdef struct Rule:
    # The measure of an attribution index on [0, 1] (see `attribution`), for leaves of one size.
    int64_t n_nodes
    const double* node
    const double* weight
    bint is_interior      # whether all nodes lie strictly between 0 and 1
    const double* moment  # moment[a * n_moments + b] = integral of t^a (1 - t)^b
    int64_t n_moments


cdef struct Terms:
    # Sets of local players of one leaf, ascending.
    int64_t size
    int64_t n_words
    const uint64_t* mask


cdef class Coverage:
    cdef int64_t effort_at(
        self, int64_t leaf, int64_t n_players, int64_t n_masks, const Terms* terms,
        const Rule* rule,
    ) noexcept nogil
    cdef void shares(self, int64_t leaf, int64_t n_players, double* share) noexcept nogil
    cdef int values_at(
        self, int64_t leaf, int64_t n_players, const uint64_t* masks, int64_t n_masks,
        const Terms* terms, const Rule* rule, double* out,
    ) noexcept nogil


cdef class PathCoverage(Coverage):
    cdef const int64_t[::1] player_start
    cdef const double[::1] ratio  # of each leaf's players: the product over their tests on its path
    cdef readonly object share


cdef void values_everywhere(
    int64_t n_players, const Terms* terms, const Rule* rule, double* layers, double* out,
) noexcept nogil
cdef double* mixtures(int64_t n_players, double t, double* layers) noexcept nogil
cdef void add_mixtures(
    int64_t n_players, bint pairs, double t, double weight, const double* mixed, double* tables
) noexcept nogil
cdef double mixture_value(
    int64_t n_players, uint64_t term, uint64_t p, const double* tables
) noexcept nogil
