"""The one routing rule, on codes, for a single row and for a block of rows."""

cdef extern from "kernels.h" nogil:
    void in_interval_8(const uint8_t*, int64_t, uint8_t, uint8_t, uint8_t*)
    void in_interval_16(const uint16_t*, int64_t, uint16_t, uint16_t, uint8_t*)
    void in_interval_32(const uint32_t*, int64_t, uint32_t, uint32_t, uint8_t*)


cdef inline uint32_t _code(const Codes* codes, int32_t slot, int64_t row) noexcept nogil:
    cdef const uint8_t* column = codes.data + codes.offset[slot]
    if codes.width[slot] == 1:
        return column[row]
    if codes.width[slot] == 2:
        return (<const uint16_t*> column)[row]
    return (<const uint32_t*> column)[row]


cdef inline uint32_t _largest(uint8_t width) noexcept nogil:
    return 0xFFFFFFFFu if width == 4 else (<uint32_t> 1 << (8 * width)) - 1


cdef bint goes_left(const Codes* codes, const Tests* tests, int64_t node, int64_t row) noexcept nogil:
    cdef int32_t slot = tests.slot[node]
    cdef uint32_t code = _code(codes, slot, row)
    return passes(
        tests.tables, tests.table[node], tests.low[node], tests.span[node], code,
        _largest(codes.width[slot]),
    )


cdef void route_block(
    const Codes* codes, const Tests* tests, int64_t node, int64_t row, int64_t m, uint8_t* left
) noexcept nogil:
    """For `m` rows from `row` on: left[r] = 1 where row r goes left at the node."""
    cdef int32_t slot = tests.slot[node]
    cdef uint8_t width = codes.width[slot]
    cdef const uint8_t* column = column_from(codes, slot, row)
    cdef uint32_t low = tests.low[node], span = tests.span[node]
    cdef int64_t r
    if tests.table[node] >= 0:
        for r in range(m):
            left[r] = goes_left(codes, tests, node, row + r)
    elif width == 1:
        in_interval_8(column, m, <uint8_t> low, <uint8_t> span, left)
    elif width == 2:
        in_interval_16(<const uint16_t*> column, m, <uint16_t> low, <uint16_t> span, left)
    else:
        in_interval_32(<const uint32_t*> column, m, low, span, left)


cdef class BinnedRows:
    """Rows as codes, one small integer a value.

    Parameters
    ----------
    data : ndarray of uint8
        Column `slot` occupies ``n_rows * width[slot]`` bytes from ``offset[slot]`` on.
    offset : ndarray of shape (n_slots,), int64
    width : ndarray of shape (n_slots,), uint8
        1, 2 or 4.
    n_rows : int
    """

    def __init__(self, data, offset, width, n_rows):
        self.data, self.offset, self.width, self.n_rows = data, offset, width, n_rows
        self._data, self._offset, self._width = data, offset, width

    def column(self, int64_t slot):
        """The codes of a slot, ndarray of shape (n_rows,), a view of `data`."""
        start, width = int(self.offset[slot]), int(self.width[slot])
        return self.data[start:start + self.n_rows * width].view(f"u{width}")

    def columns(self):
        """The codes of each slot."""
        return [self.column(slot) for slot in range(len(self.width))]

    def __reduce__(self):
        return BinnedRows, (self.data, self.offset, self.width, self.n_rows)

    cdef Codes view(self) noexcept:
        cdef Codes codes
        codes.data = &self._data[0] if self._data.shape[0] else NULL
        codes.offset = &self._offset[0] if self._offset.shape[0] else NULL
        codes.width = &self._width[0] if self._width.shape[0] else NULL
        codes.n_rows = self.n_rows
        return codes


cdef class NodeTests:
    """The test of every node, on codes.

    Parameters
    ----------
    slot : ndarray of shape (n_nodes,), int32
        The binned column that the node tests.
    low, span : ndarray of shape (n_nodes,), uint32
        Codes in the cyclic interval ``[low, low + span]`` go left.
    table : ndarray of shape (n_nodes,), int64
        Where the node's table starts in `tables`; -1 where the interval says it all.
    tables : ndarray of uint8
        A table has ``span + 1`` entries, the last one for missing.
    """

    def __init__(self, slot, low, span, table, tables):
        self.slot, self.low, self.span = slot, low, span
        self.table, self.tables = table, tables
        self._slot, self._low, self._span = slot, low, span
        self._table, self._tables = table, tables

    def __reduce__(self):
        return NodeTests, (self.slot, self.low, self.span, self.table, self.tables)

    cdef Tests view(self) noexcept:
        cdef Tests tests
        tests.slot = &self._slot[0] if self._slot.shape[0] else NULL
        tests.low = &self._low[0] if self._low.shape[0] else NULL
        tests.span = &self._span[0] if self._span.shape[0] else NULL
        tests.table = &self._table[0] if self._table.shape[0] else NULL
        tests.tables = &self._tables[0] if self._tables.shape[0] else NULL
        return tests
