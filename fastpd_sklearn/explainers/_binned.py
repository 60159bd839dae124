"""The rows of ``X`` as the codes that the core works on."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core.binning import Bins
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.forest._inputs import InputMap, Inputs
from fastpd_sklearn.forest._pipeline import PipelineMap

ROW_TREES_A_THREAD = 10_000
"""Rows times trees that are worth a thread of their own."""


def threads_for(row_trees: int, n_threads: int) -> int:
    """Threads for some rows times trees: starting them must not cost more than they save."""
    return min(n_threads, max(1, row_trees // ROW_TREES_A_THREAD))


def bin_rows(input_map: InputMap | PipelineMap, bins: Bins, X, n_threads: int) -> BinnedRows:
    """Rows as codes.

    Parameters
    ----------
    input_map : InputMap or PipelineMap
    bins : Bins
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    n_threads : int

    Returns
    -------
    BinnedRows

    Raises
    ------
    ValueError
        If ``X`` holds a value that the model's library does not take.
    """
    return bin_inputs(input_map, bins, input_map.open(X), n_threads)


def bin_inputs(
    input_map: InputMap | PipelineMap, bins: Bins, inputs: Inputs, n_threads: int
) -> BinnedRows:
    """As :func:`bin_rows`, of rows that the map has opened."""
    if inputs.matrix is not None:
        rows, infinite = bins.bin_matrix(inputs.matrix, n_threads)
    else:
        rows, _ = bins.empty_rows(inputs.n_rows)
        infinite = -1
        for slot, column in enumerate(bins.columns.tolist()):
            if bins.bin_column(inputs.column(column), slot, rows, n_threads):
                infinite = column
    if infinite >= 0 and not input_map.allow_inf:
        raise ValueError(
            "Input X contains infinity or a value too large for the model, in "
            f"{input_map.describe(infinite)}, and the model's library refuses such values"
        )
    if not input_map.allow_nan:
        _refuse_missing(input_map, bins, rows)
    return rows


def _refuse_missing(input_map: InputMap | PipelineMap, bins: Bins, rows: BinnedRows) -> None:
    for slot, column in enumerate(bins.columns.tolist()):
        codes = rows.column(slot)
        if np.any(codes == np.iinfo(codes.dtype).max):
            raise ValueError(
                f"Input X contains NaN, in {input_map.describe(column)}, and the model's library "
                "refuses missing values"
            )


def has_sentinel(input_map: InputMap | PipelineMap) -> bool:
    """Whether a number stands for missing in ``X``, and not infinity, which is on no curve."""
    return isinstance(input_map, InputMap) and bool(np.isfinite(input_map.missing))


def curve_edges(input_map: InputMap, bins: Bins, slot: int) -> np.ndarray:
    """Where a response may jump along a column of numbers.

    Parameters
    ----------
    input_map : InputMap
    bins : Bins
    slot : int

    Returns
    -------
    ndarray of float64, ascending
        The column's thresholds; where a number stands for missing, also both ends of the piece
        that is that number.
    """
    edges = bins.slot_edges(slot)
    if not has_sentinel(input_map):
        return edges
    sentinel = (np.float32 if bins.single else np.float64)(input_map.missing)
    beyond = np.nextafter(sentinel, sentinel.dtype.type(np.inf if bins.strict else -np.inf))
    return np.union1d(edges, [sentinel, beyond])
