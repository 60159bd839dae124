"""What the walks of pairs of rows share: which values of a leaf are wanted, and where they go."""

from libc.stdint cimport int32_t, int64_t


cdef struct Wanted:
    int64_t order           # of the terms: 1 or 2 players
    const int32_t* column   # by player, or by two of them: place among the terms, -1 if not wanted
    int64_t n_players
    int64_t n_outputs


cdef int64_t list_wanted(
    const Wanted* wanted, const int32_t* player, int64_t n_bits, int64_t width, int64_t* place,
    int64_t* column
) noexcept nogil
