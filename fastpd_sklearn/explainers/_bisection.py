"""Where a piecewise constant function of one float jumps, to the last bit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

POINTS_A_ROUND = 1024
"""Points at which the function is evaluated at a time, about."""

NEAR, FAR = 8, 2048
"""Floats on either side of a jump that are looked at, and at most so many."""

_BITS = {np.float32: np.int32, np.float64: np.int64}


class TooManyBreaksError(Exception):
    """A function jumps more often than one of its kind can."""


def find_breaks(
    signature: Callable[[np.ndarray], np.ndarray], seeds: np.ndarray, dtype: type, most: int
) -> np.ndarray:
    """The jumps of a function between the smallest and the largest of some points.

    The function must be constant between two points at which it is the same: a vector of
    monotone functions is, for example. Floats are ordered by their bits, so that every jump is
    narrowed down to two neighbouring floats. Around it all floats are looked at, since a
    function that is monotone by its formula need not be so after rounding.

    Parameters
    ----------
    signature : callable
        From an ndarray of shape (n_points,) to one of shape (n_points, n_values).
    seeds : ndarray of shape (n_points,)
        Finite points of the type to start from.
    dtype : {numpy.float32, numpy.float64}
    most : int
        How many jumps there can be, rounding aside.

    Returns
    -------
    ndarray of shape (n_breaks,), float64
        The first float of every piece but the lowest, ascending.

    Raises
    ------
    TooManyBreaksError
        If there are many more jumps than there can be.
    """

    def evaluate(keys: np.ndarray) -> np.ndarray:
        return np.asarray(signature(_floats(keys, dtype)))

    keys = np.unique(_keys(seeds, dtype))
    values = evaluate(keys)
    while True:
        gaps = np.flatnonzero(_jumps(values) & (np.diff(keys) > 1))
        if not len(gaps):
            break
        if len(gaps) > 2 * most + NEAR:
            raise TooManyBreaksError(f"there are more than {most} jumps")
        new = _between(keys[gaps], keys[gaps + 1])
        keys, values = _essential(*_merged(keys, values, new, evaluate(new)))
    width, breaks = NEAR, keys[1:][_jumps(values)]
    while len(breaks) and width <= FAR:
        new = _around(breaks, width, keys[0], keys[-1])
        keys, values = _essential(*_merged(keys, values, new, evaluate(new)))
        width, before, breaks = 4 * width, breaks, keys[1:][_jumps(values)]
        if np.array_equal(before, breaks):
            break
    return _floats(breaks, dtype).astype(np.float64)


def floats_before(x: np.ndarray, dtype: type) -> np.ndarray:
    """The largest floats of a type below others, as float64."""
    return np.nextafter(x.astype(dtype), dtype(-np.inf)).astype(np.float64)


def middle(low: float, high: float, dtype: type) -> float:
    """The float that has as many floats of its type below as above it, of those between."""
    a, b = _keys(np.array([low, high]), dtype)
    return float(_floats(np.array([a + (b - a) // np.uint64(2)]), dtype)[0])


def _keys(values: np.ndarray, dtype: type) -> np.ndarray:
    """Integers in the order of floats; both zeros have the same."""
    bits = np.ascontiguousarray(values, dtype=dtype).view(_BITS[dtype])
    lowest = np.iinfo(bits.dtype).min
    ordered = np.where(bits < 0, lowest - bits, bits).astype(np.int64)
    return ordered.view(np.uint64) ^ np.uint64(1 << 63)


def _floats(keys: np.ndarray, dtype: type) -> np.ndarray:
    ordered = (keys ^ np.uint64(1 << 63)).view(np.int64)
    lowest = np.iinfo(_BITS[dtype]).min
    return np.where(ordered < 0, lowest - ordered, ordered).astype(_BITS[dtype]).view(dtype)


def _jumps(values: np.ndarray) -> np.ndarray:
    return np.any(values[1:] != values[:-1], axis=1)


def _between(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Keys that lie evenly within some gaps."""
    n_points = max(1, min(255, POINTS_A_ROUND // len(low)))
    step = np.maximum((high - low) // np.uint64(n_points + 1), np.uint64(1))
    keys = low[:, None] + step[:, None] * np.arange(1, n_points + 1, dtype=np.uint64)
    return np.unique(keys[keys < high[:, None]])


def _around(keys: np.ndarray, width: int, lowest: np.uint64, highest: np.uint64) -> np.ndarray:
    shifts = np.arange(-width, width, dtype=np.int64).view(np.uint64)  # they wrap around
    near = np.unique(keys[:, None] + shifts)
    return near[(near >= lowest) & (near <= highest)]


def _merged(keys, values, new_keys, new_values) -> tuple[np.ndarray, np.ndarray]:
    every, first = np.unique(np.concatenate([keys, new_keys]), return_index=True)
    return every, np.concatenate([values, new_values])[first]


def _essential(keys: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Without those within a run of equal values."""
    jumps = _jumps(values)
    kept = np.concatenate([[True], jumps]) | np.concatenate([jumps, [True]])
    return keys[kept], values[kept]
