"""Rows that come in chunks: Parquet files, Arrow datasets, iterables, and Dask collections."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from fastpd_sklearn.explainers import _checks
from fastpd_sklearn.forest import _frames

CHUNK_BYTES = 2**25
"""About how much of a file is read at a time, as numbers of eight bytes."""

READ_BYTES = 2**20
"""How much of a column of a file is buffered."""

MANY_ROWS = 1_000_000
"""So many rows a source is taken to have, since it does not say."""

_END = object()


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows of a source.

    Parameters
    ----------
    number : int
        From zero on, chunks without rows or without weight counted.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        At least one row.
    weights : array-like of shape (n_rows,), or None
        Not checked, but not all zero.
    """

    number: int
    X: object
    weights: object


def is_source(X) -> bool:
    """Whether an argument is rows in chunks, and not rows as such."""
    return is_dask(X) or is_stream(X)


def is_dask(X) -> bool:
    """Whether an argument is an array or a data frame of Dask (which is not imported for it)."""
    array, frame = (sys.modules.get(f"dask.{name}") for name in ("array", "dataframe"))
    if array is not None and isinstance(X, array.Array):
        return True
    return frame is not None and isinstance(X, frame.DataFrame)


def is_stream(X) -> bool:
    """Whether an argument is chunks that are read one after the other.

    Lists and tuples are, if all that is in them is a chunk of two dimensions, or such a chunk with
    its weights: NumPy would make an array of three dimensions of these, which are no rows. Objects
    that know the length or the items of what they iterate over are rows, as they always were.
    """
    if isinstance(X, str | os.PathLike) or _is_arrow_source(X) or isinstance(X, Iterator):
        return True
    if isinstance(X, list | tuple):
        return len(X) > 0 and all(_is_chunk(item) for item in X)
    is_rows = _frames.is_frame(X) or sparse.issparse(X) or hasattr(X, "__array__")
    return isinstance(X, Iterable) and not is_rows and not hasattr(X, "__getitem__")


def refuse_source(X, remedy: str) -> None:
    """Raise ``TypeError`` for rows in chunks where rows in memory are needed."""
    if is_source(X):
        raise TypeError(
            f"X is a {type(X).__name__}, rows in chunks, and this takes rows that are in memory: "
            f"an array, a sparse matrix or a data frame; {remedy}"
        )


def chunks_of(source, sample_weight, names, what: str) -> Iterator[Chunk]:
    """Read a source, whoever it is.

    Parameters
    ----------
    source : str, path, Arrow dataset or reader, or iterable of chunks
        Chunks are arrays, sparse matrices, data frames or record batches, or tuples of one of
        these and its weights.
    sample_weight : str or None
        The column of the weights, of data frames, record batches and files.
    names : iterable of str, or None
        Columns to read of a file that has them; others are left alone.
    what : str
        What is read, for messages.

    Yields
    ------
    Chunk
        Those that have rows, and weights that are not all zero.
    """
    if sample_weight is not None and not isinstance(sample_weight, str):
        raise TypeError(
            f"sample_weight is a {type(sample_weight).__name__}, and the {what} comes in chunks: "
            "name the column that holds the weights, or let each chunk be a tuple (rows, weights)"
        )
    items = iter(_opened(source, names, sample_weight))
    known: dict[str, object] = {}
    for number in range(sys.maxsize):
        with naming(number, what):
            item = next(items, _END)
            if item is _END:
                return
            chunk = _as_chunk(number, item, sample_weight, known)
        if chunk is not None:
            yield chunk


@contextmanager
def naming(number: int, what: str):
    """Add to an error the chunk that it happened in, as a note: its type stays as it is."""
    try:
        yield
    except Exception as error:
        error.add_note(f"in chunk {number} of the {what} (the first one is chunk 0)")
        raise


def checked_weights(chunk: Chunk) -> np.ndarray | None:
    """The weights of a chunk as float64."""
    return _checks.check_weights(chunk.weights, chunk.X.shape[0])


def refuse_iterator(X, remedy: str) -> None:
    """Raise ``TypeError`` for what can be read once where it has to be read twice."""
    is_opened = isinstance(X, Iterable) and not isinstance(X, str | os.PathLike)
    once = is_opened and is_stream(X) and iter(X) is iter(X)
    if once or _is_arrow(X, "RecordBatchReader"):
        raise TypeError(f"X is a {type(X).__name__}, which can be read once; {remedy}")


def make_chunk(number: int, X, weights) -> Chunk | None:
    """A chunk, or None if it has no rows or all weights are zero."""
    if not X.shape[0]:
        return None
    if weights is not None and len(weights) == X.shape[0] and not np.any(weights):
        return None
    return Chunk(number, X, weights)


def split_weights(X, name: str) -> tuple:
    """A data frame without the column of its weights, and these."""
    if not _frames.is_frame(X) or name not in list(X.columns):
        raise ValueError(
            f"sample_weight={name!r} is no column of the rows, "
            + (f"{list(X.columns)}" if _frames.is_frame(X) else f"which are a {type(X).__name__}")
        )
    weights = np.asarray(X[name], dtype=np.float64)
    return (X.drop(columns=[name]) if _frames.is_pandas(X) else X.drop(name)), weights


# ------------------------------------------------------------------------------- one chunk


def _has_two_dimensions(X) -> bool:
    return len(getattr(X, "shape", ())) == 2


def _is_chunk(item) -> bool:
    if isinstance(item, tuple) and len(item) == 2:
        item = item[0]
    return _has_two_dimensions(item)


def _as_chunk(number: int, item, weight_column: str | None, known: dict) -> Chunk | None:
    X, weights = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    if is_dask(X) or not _has_two_dimensions(X):
        raise TypeError(
            f"a {type(X).__name__} is no chunk of rows; chunks are arrays of shape (n_rows, "
            "n_columns), sparse matrices, data frames or record batches, or tuples of one of these "
            "and its weights"
        )
    if _is_arrow(X, "RecordBatch", "Table"):
        X = _arrow_frame(X, known)
    if weight_column is not None:
        if weights is not None:
            raise ValueError(
                f"sample_weight={weight_column!r} names a column of weights, and the chunk comes "
                "with weights, too; give one of the two"
            )
        X, weights = split_weights(X, weight_column)
    return make_chunk(number, X, weights)


# ----------------------------------------------------------------------------------- Arrow


def _is_arrow(X, *kinds: str) -> bool:
    arrow = sys.modules.get("pyarrow")
    return arrow is not None and isinstance(X, tuple(getattr(arrow, kind) for kind in kinds))


def _is_arrow_source(X) -> bool:
    dataset = sys.modules.get("pyarrow.dataset")
    return _is_arrow(X, "RecordBatchReader") or (
        dataset is not None and isinstance(X, dataset.Dataset)
    )


def _opened(source, names, weight_column: str | None):
    """What there is to iterate over."""
    if isinstance(source, str | os.PathLike):
        files = import_arrow("dataset").dataset(os.fspath(source), format="parquet")
        return _batches_of_files(files, *_size_of_batches(files.schema, names, weight_column))
    if _has_scanner(source):
        columns, n_rows = _size_of_batches(source.schema, names, weight_column)
        scanner = source.scanner(columns=columns, batch_size=n_rows, batch_readahead=2)
        return scanner.to_batches()
    return source


def _has_scanner(source) -> bool:
    return _is_arrow_source(source) and hasattr(source, "scanner")


def _size_of_batches(schema, names, weight_column: str | None) -> tuple[list[str], int]:
    """Which columns to read, and how many rows at a time."""
    columns = schema.names if names is None or not set(names) <= set(schema.names) else list(names)
    if weight_column is not None and weight_column in schema.names:
        columns = list(dict.fromkeys([*columns, weight_column]))
    return columns, max(1, CHUNK_BYTES // (8 * max(1, len(columns))))


def _batches_of_files(dataset, columns: list[str], n_rows: int) -> Iterator:
    """Record batches of Parquet files, none of which is read ahead of its use.

    A scanner would hold what it has read until it is fetched: up to a gigabyte of it.
    """
    parquet = import_arrow("parquet")
    for path in dataset.files:
        with dataset.filesystem.open_input_file(path) as opened:
            file = parquet.ParquetFile(opened, pre_buffer=False, buffer_size=READ_BYTES)
            lacking = [name for name in columns if name not in file.schema_arrow.names]
            if lacking:
                raise ValueError(
                    f"the file {path} has no column {lacking[0]!r}, which another one has; write "
                    "all files with the same columns"
                )
            for batch in file.iter_batches(batch_size=n_rows, columns=columns):
                yield _typed(batch, dataset.schema)


def _typed(batch, schema):
    """A record batch of which a column without any value has its type in other files."""
    table = import_arrow("lib").Table.from_batches([batch])
    for j, field in enumerate(batch.schema):
        if str(field.type) == "null" and table.num_rows:
            wanted = schema.field(field.name)
            table = table.set_column(j, wanted, table.column(j).cast(wanted.type))
    return table


def import_arrow(module: str):
    """A module of pyarrow, which is optional.

    Parameters
    ----------
    module : str
        Such as "dataset".
    """
    from importlib import import_module

    try:
        return import_module(f"pyarrow.{module}")
    except ImportError as error:
        raise ImportError(
            "reading and writing Parquet takes pyarrow: pip install 'fastpd-sklearn[arrow]'"
        ) from error


def _arrow_frame(batch, known: dict):
    """A record batch as a pandas data frame, with categories that keep their codes.

    Each batch brings the categories that occur in it. Those of the batches before come first, as
    they would if all were read at once.
    """
    frame = batch.to_pandas(split_blocks=True)
    for j, name in enumerate(frame.columns):
        series = frame.iloc[:, j]
        if _frames.is_categorical(series):
            labels = known.get(name, series.cat.categories[:0]).append(series.cat.categories)
            known[name] = labels.unique()
            frame.isetitem(j, series.cat.set_categories(known[name]))
    return frame
