"""What a contender does: work that is timed, and how to read its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Answer(NamedTuple):
    """Values by term, to be compared: those of some rows, or of all points of a grid.

    ``complete`` says that terms that are not there are zero; otherwise they are unknown.
    ``rows`` are the numbers of the rows, if values belong to rows.
    """

    terms: list[str]
    values: np.ndarray
    complete: bool
    rows: np.ndarray | tuple[()] = ()


class Job(NamedTuple):
    """Work to time, and ``read`` to make an :class:`Answer` of its result.

    ``share`` is the part of the task that the work does; time is scaled up by it. ``prepare`` is
    called before each run, and ``unit`` is what takes turns with the work to measure it by.
    """

    work: Callable
    read: Callable
    share: float = 1.0
    note: str = ""
    prepare: Callable = lambda: None
    unit: Callable | None = None


def middle_centred(name: str, edges, effect, counts) -> tuple[list[str], np.ndarray]:
    """An accumulated effect at its edges, as PyALE centres it: by the middles of the bins."""
    middles = (effect[1:] + effect[:-1]) / 2
    shift = np.average(middles, weights=counts) if len(middles) else effect[0]
    return [f"{name}[{edge:.6g}]" for edge in edges], effect - shift
