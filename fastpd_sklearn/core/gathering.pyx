"""Trees as a library keeps them, gathered into the arrays of a forest.

The nodes of unpruned forests are millions of records. They are read once, where they are, and written
to all arrays at once, by each thread those of some trees.
"""

from cpython.buffer cimport PyBUF_STRIDED_RO, PyBuffer_Release, PyObject_GetBuffer
from cython.parallel cimport prange
from libc.math cimport NAN
from libc.stdint cimport INT32_MAX, int32_t, int64_t, uint8_t
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from fastpd_sklearn.core.threads import threads_for_nodes


cdef struct Column:
    # Entries of 1, 4 or 8 bytes, `stride` bytes from each other; NULL: none.
    const uint8_t* data
    Py_ssize_t stride
    Py_ssize_t size


cdef struct Source:
    # The nodes of a tree.
    int64_t n_nodes
    Column left
    Column right
    Column feature
    Column threshold
    Column cover
    Column missing_left
    Column zero_as_missing
    Column is_categorical
    Column listed_left
    Column value
    Py_ssize_t next_value  # bytes from a value of a node to its next one


cdef struct Target:
    # The arrays of the forest.
    int32_t* left
    int32_t* right
    int32_t* feature
    double* threshold
    double* cover
    uint8_t* missing_left
    uint8_t* zero_as_missing
    uint8_t* is_categorical
    uint8_t* listed_left
    double* value
    int64_t n_values


def gather_nodes(trees, int64_t root, int64_t n_values):
    """The nodes of some trees, one tree after the other.

    Parameters
    ----------
    trees : list of dict of str to ndarray of shape (n_nodes,), any strides
        Of each tree ``left``, ``right`` and ``feature`` (int32 or int64), ``threshold`` and ``cover``
        (float64), ``value`` (float64, of shape (n_nodes, n_values)); ``missing_left``,
        ``zero_as_missing``, ``is_categorical`` and ``listed_left`` (bool or uint8), or None
        where no node has it.
    root : int
        The number of the first node in the forest, from which children are counted.
    n_values : int

    Returns
    -------
    dict of str to ndarray
        The same of all nodes, children numbered within the forest (int32). Leaves have child and
        feature -1, no flag, and the threshold NaN, as nodes with categories have; other nodes
        have value 0.
    """
    cdef int64_t n_trees = len(trees), t
    starts = np.zeros(n_trees + 1, np.int64)
    np.cumsum([len(tree["left"]) for tree in trees], out=starts[1:])
    cdef int64_t[::1] start = starts
    cdef int64_t n_nodes = start[n_trees]
    arrays = {name: np.empty(n_nodes, np.int32) for name in ("left", "right", "feature")}
    arrays |= {name: np.empty(n_nodes) for name in ("threshold", "cover")}
    flags = ("missing_left", "zero_as_missing", "is_categorical", "listed_left")
    arrays |= {name: np.empty(n_nodes, bool) for name in flags}
    arrays["value"] = np.empty((n_nodes, n_values))
    cdef Target target = _target(arrays, n_values)
    cdef Source* source = <Source*> calloc(n_trees + 1, sizeof(Source))
    cdef int n_threads = threads_for_nodes(n_nodes)
    if source == NULL:
        raise MemoryError("no memory for the list of the trees")
    try:
        for t in range(n_trees):
            _describe(trees[t], &source[t])
        for t in prange(n_trees, nogil=True, num_threads=n_threads, schedule="dynamic"):
            _gather(&source[t], start[t], root, &target)
    finally:
        free(source)
    return arrays


cdef Target _target(arrays, int64_t n_values):
    cdef Target target
    cdef int32_t[::1] left = arrays["left"], right = arrays["right"], feature = arrays["feature"]
    cdef double[::1] threshold = arrays["threshold"], cover = arrays["cover"]
    cdef double[::1] value = arrays["value"].reshape(-1)
    cdef uint8_t[::1] missing_left = arrays["missing_left"].view(np.uint8)
    cdef uint8_t[::1] zero_as_missing = arrays["zero_as_missing"].view(np.uint8)
    cdef uint8_t[::1] is_categorical = arrays["is_categorical"].view(np.uint8)
    cdef uint8_t[::1] listed_left = arrays["listed_left"].view(np.uint8)
    target.n_values = n_values
    if left.shape[0]:
        target.left, target.right, target.feature = &left[0], &right[0], &feature[0]
        target.threshold, target.cover = &threshold[0], &cover[0]
        target.missing_left, target.zero_as_missing = &missing_left[0], &zero_as_missing[0]
        target.is_categorical, target.listed_left = &is_categorical[0], &listed_left[0]
        target.value = &value[0] if n_values else NULL
    return target


cdef int _describe(tree, Source* source) except -1:
    source.n_nodes = len(tree["left"])
    source.left = _column(tree["left"])
    source.right = _column(tree["right"])
    source.feature = _column(tree["feature"])
    source.threshold = _column(tree["threshold"])
    source.cover = _column(tree["cover"])
    source.missing_left = _column(tree["missing_left"])
    source.zero_as_missing = _column(tree["zero_as_missing"])
    source.is_categorical = _column(tree["is_categorical"])
    source.listed_left = _column(tree["listed_left"])
    source.value = _column(tree["value"])
    source.next_value = tree["value"].strides[1]
    return 0


cdef Column _column(array):
    """Where an array is, which has to outlive the column."""
    cdef Column column
    cdef Py_buffer view
    column.data, column.stride, column.size = NULL, 0, 0
    if array is not None:
        PyObject_GetBuffer(array, &view, PyBUF_STRIDED_RO)
        column.data, column.stride = <const uint8_t*> view.buf, view.strides[0]
        column.size = view.itemsize
        PyBuffer_Release(&view)
    return column


cdef inline int64_t _whole(const Column* column, int64_t i) noexcept nogil:
    cdef const uint8_t* at = column.data + i * column.stride
    cdef int32_t narrow
    cdef int64_t wide
    if column.size == sizeof(narrow):
        memcpy(&narrow, at, sizeof(narrow))  # records of some libraries are not aligned
        return narrow
    memcpy(&wide, at, sizeof(wide))
    return wide


cdef inline double _number(const uint8_t* at) noexcept nogil:
    cdef double number
    memcpy(&number, at, sizeof(number))
    return number


cdef inline uint8_t _flag(const Column* column, int64_t i) noexcept nogil:
    return column.data[i * column.stride] != 0 if column.data != NULL else 0


cdef inline int32_t _in_range(int64_t number) noexcept nogil:
    """A number that is none of a node, nor of an input, where it is out of range."""
    return <int32_t> min(max(number, <int64_t> -1), <int64_t> INT32_MAX)


cdef void _gather(
    const Source* tree, int64_t first, int64_t root, const Target* target
) noexcept nogil:
    cdef int64_t i, node, left, right, feature, v
    cdef double threshold, value
    cdef uint8_t inner, is_categorical
    # Half of the nodes are leaves, in no order that a processor could foretell: so no branches.
    for i in range(tree.n_nodes):
        node = first + i
        left = _whole(&tree.left, i)
        right = _whole(&tree.right, i)
        feature = _whole(&tree.feature, i)
        threshold = _number(tree.threshold.data + i * tree.threshold.stride)
        inner = left >= 0
        is_categorical = inner & _flag(&tree.is_categorical, i)
        target.left[node] = _in_range(left + root + first) if inner else -1
        target.right[node] = _in_range(right + root + first) if inner else -1
        target.feature[node] = _in_range(feature) if inner else -1
        target.threshold[node] = threshold if inner & (is_categorical == 0) else NAN
        target.cover[node] = _number(tree.cover.data + i * tree.cover.stride)
        target.missing_left[node] = inner & _flag(&tree.missing_left, i)
        target.zero_as_missing[node] = inner & _flag(&tree.zero_as_missing, i)
        target.is_categorical[node] = is_categorical
        target.listed_left[node] = inner & _flag(&tree.listed_left, i)
        for v in range(target.n_values):
            value = _number(tree.value.data + i * tree.value.stride + v * tree.next_value)
            target.value[node * target.n_values + v] = 0.0 if inner else value
