"""The one routing rule, on codes, for a single row and for a block of rows."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t


cdef struct Codes:
    # The rows as codes: column `slot` starts at data + offset[slot] and has width[slot] bytes a row.
    const uint8_t* data
    const int64_t* offset
    const uint8_t* width
    int64_t n_rows


cdef struct Tests:
    # One test a node. With table[i] < 0, a code goes left iff it lies in the cyclic interval
    # [low[i], low[i] + span[i]] of its width's numbers: missing is the largest number, -1, so that an
    # interval which starts at -1 takes it along. Otherwise entry min(code, span[i]) of the table says.
    const int32_t* slot
    const uint32_t* low
    const uint32_t* span
    const int64_t* table
    const uint8_t* tables


cdef inline const uint8_t* column_from(const Codes* codes, int32_t slot, int64_t row) noexcept nogil:
    """The codes of a slot from a row on."""
    return codes.data + codes.offset[slot] + row * codes.width[slot]


cdef inline bint passes(
    const uint8_t* tables, int64_t table, uint32_t low, uint32_t span, uint32_t code, uint32_t largest
) noexcept nogil:
    """Whether a code goes left at a node; `largest` is the largest number of the code's width."""
    if table >= 0:
        return tables[table + min(code, span)]
    return ((code - low) & largest) <= span


cdef bint goes_left(const Codes* codes, const Tests* tests, int64_t node, int64_t row) noexcept nogil
cdef void route_block(
    const Codes* codes, const Tests* tests, int64_t node, int64_t row, int64_t m, uint8_t* left
) noexcept nogil


cdef class BinnedRows:
    cdef readonly object data, offset, width
    cdef readonly int64_t n_rows
    cdef const uint8_t[::1] _data
    cdef const int64_t[::1] _offset
    cdef const uint8_t[::1] _width
    cdef Codes view(self) noexcept


cdef class NodeTests:
    cdef readonly object slot, low, span, table, tables
    cdef const int32_t[::1] _slot
    cdef const uint32_t[::1] _low
    cdef const uint32_t[::1] _span
    cdef const int64_t[::1] _table
    cdef const uint8_t[::1] _tables
    cdef Tests view(self) noexcept
