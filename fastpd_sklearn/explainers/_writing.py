"""Values block by block to a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from fastpd_sklearn.explainers._sources import import_arrow


def write_parquet(blocks: Iterable[np.ndarray], names: Sequence[str], path) -> None:
    """Write blocks of rows, which need not be there at the same time.

    Parameters
    ----------
    blocks : iterable of ndarray of shape (n_rows, n_columns), float64
    names : sequence of str
        One a column.
    path : str or path
        Replaced once all is written; if something fails there is no file, or still the old one.
    """
    arrow, parquet = import_arrow("lib"), import_arrow("parquet")
    schema = arrow.schema([(name, arrow.float64()) for name in names])
    unfinished = f"{os.fspath(path)}.{os.getpid()}.unfinished"
    try:
        with parquet.ParquetWriter(unfinished, schema) as writer:
            for block in blocks:
                columns = [arrow.array(np.ascontiguousarray(column)) for column in block.T]
                writer.write_batch(arrow.RecordBatch.from_arrays(columns, schema=schema))
        os.replace(unfinished, path)
    finally:
        with suppress(FileNotFoundError):
            os.remove(unfinished)
