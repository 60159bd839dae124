"""The check that each preprocessed column depends on no other raw columns than is believed."""

from __future__ import annotations

import warnings

import numpy as np

from fastpd_sklearn.forest import _rows
from fastpd_sklearn.forest._pipeline import PipelineMap

_MOST_ROWS = 100


def check_lineage(input_map: PipelineMap, X, tested: np.ndarray) -> None:
    """Refuse a pipeline whose preprocessing mixes more columns than its steps declare.

    Rows of the background are transformed again after some of their raw columns were
    shuffled. For every two raw columns there is a turn in which one is shuffled and the other
    is not, and so ``2 * log2(n_columns)`` turns are enough.

    Parameters
    ----------
    input_map : PipelineMap
        A settled one.
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        The background; at most 100 of its rows are used, and none is changed.
    tested : ndarray of int
        The preprocessed columns that matter.

    Raises
    ------
    ValueError
        If a preprocessed column changes though none of its raw columns does, or if rows are
        transformed differently by the rows beside them.
    """
    chosen = np.linspace(0, X.shape[0] - 1, min(X.shape[0], _MOST_ROWS)).astype(np.intp)
    rows = _rows.take(X, np.unique(chosen))
    truth = _columns(input_map, rows, tested)
    _check_rows_alone(input_map, rows, tested, truth)
    order = np.random.RandomState(0).permutation(rows.shape[0])
    other = _rows.take(rows, order)
    numbers = np.arange(X.shape[1])
    for bit in range(max(1, X.shape[1] - 1).bit_length()):
        for side in (0, 1):
            shuffled = numbers[(numbers >> bit & 1) == side]
            if len(shuffled):
                changed = _columns(input_map, _rows.with_columns(rows, other, shuffled), tested)
                _check_columns(input_map, tested, set(shuffled.tolist()), truth, changed)


def _columns(input_map: PipelineMap, rows, tested: np.ndarray) -> list[np.ndarray]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what steps have to say they say of the user's own rows
        inputs = input_map.open(rows)
    return [inputs.column(j) for j in tested.tolist()]


def _differs(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two columns differ by more than what rounding may do with other rows beside."""
    finite = np.abs(one[np.isfinite(one)])
    close = 1e-5 if one.dtype == np.float32 else 1e-9
    return not np.allclose(
        one, other, rtol=close, atol=close * finite.max(initial=0.0), equal_nan=True
    )


def _check_columns(input_map: PipelineMap, tested, shuffled: set[int], truth, changed) -> None:
    for j, before, after in zip(tested.tolist(), truth, changed, strict=True):
        origin = input_map.origins[j]
        if not origin.columns & shuffled and _differs(before, after):
            raise ValueError(
                f"{input_map.describe(j)} by {_by(origin.steps)}, changes when other columns "
                "of X do; if one of these steps is declared to work column by column "
                "(feature_names_out='one-to-one', register_transformer), correct that: a "
                "FunctionTransformer without it is taken to mix its columns"
            )


def _check_rows_alone(input_map: PipelineMap, rows, tested, truth) -> None:
    numbers = np.arange(rows.shape[0])
    # Every row loses the one before it: a gap that is filled from there is filled otherwise.
    for some in (numbers[::2], numbers[1::2])[: len(numbers)]:
        alone = _columns(input_map, _rows.take(rows, some), tested)
        for j, before, after in zip(tested.tolist(), truth, alone, strict=True):
            if _differs(before[some], after):
                raise ValueError(
                    f"{input_map.describe(j)} by {_by(input_map.origins[j].steps)}, is different "
                    "for the same row if other rows stand beside it; make these steps learn in "
                    "fit all that they take from the data"
                )


def _by(steps: tuple[str, ...]) -> str:
    return f"{'steps' if len(steps) > 1 else 'step'} {', '.join(map(repr, steps))}"
