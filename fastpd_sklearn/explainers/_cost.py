"""What an explanation will take: told before it starts, where that is long."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers._outputs import Recipe
from fastpd_sklearn.forest import _rows

LONG_RUN = 60.0
"""Seconds beyond which a run is announced, whether or not anybody asks for progress."""

REPORT = 5.0
"""Seconds between two lines of progress, about."""

FEW, MORE = 16, 128
"""Rows that are explained to see what a call takes, and what a row."""


class CostWarning(UserWarning):
    """An explanation will take minutes.

    A warning and no error: turn it into one, or silence it, by the filters of Python.

    Examples
    --------
    >>> import warnings
    >>> from fastpd_sklearn.explainers import CostWarning
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", CostWarning)
    ...     warnings.warn("7 minutes", CostWarning)
    """


@dataclass(frozen=True)
class Outlook:
    """What some values will take.

    Parameters
    ----------
    seconds : float
        About.
    block_rows : int or None
        Rows that can be explained at a time at no extra cost; None: all at once is cheapest.
    n_background : int
    reports : bool, default=False
        Whether the engine's ``index_values`` takes a ``report`` to be called with the share that
        is done.
    """

    seconds: float
    block_rows: int | None
    n_background: int
    reports: bool = False


def outlook_of(engine, n_rows: int, recipe: Recipe) -> Outlook | None:
    """What an engine expects to take for some rows.

    Parameters
    ----------
    engine : Engine
    n_rows : int
    recipe : Recipe

    Returns
    -------
    Outlook or None
        None for engines whose cost is linear in rows and background.
    """
    find = getattr(engine, "outlook", None)
    return None if find is None else find(n_rows, recipe.index, recipe.asked)


def announce(outlook: Outlook, n_rows: int, progress: str) -> None:
    """Say what a run will take, as progress, or as a warning if that is long.

    Parameters
    ----------
    outlook : Outlook
    n_rows : int
    progress : str
        Who reports progress; nobody if empty.

    Warns
    -----
    CostWarning
    """
    expected = f"explaining {n_rows} rows against {outlook.n_background} will take about "
    expected += in_words(outlook.seconds)
    if progress:
        print(f"[{progress}] {expected}")
    elif outlook.seconds >= LONG_RUN:
        warnings.warn(
            f"{expected}, since the trees are deep; verbose=1 shows progress. Fewer rows of X or "
            "of the background take less in proportion, and so do more threads (n_jobs); "
            "PathDependentExplainer has values that do not depend on a background in seconds. "
            "estimate_cost(X) tells beforehand",
            CostWarning,
            stacklevel=5,
        )


def reporter(progress: str) -> Callable[[float], None]:
    """What prints the share that is done, every few seconds and at the end.

    Parameters
    ----------
    progress : str
        Who reports.

    Returns
    -------
    callable
    """
    last = time.perf_counter()

    def report(done: float) -> None:
        nonlocal last
        if time.perf_counter() - last >= REPORT or done >= 1.0:
            print(f"[{progress}] {100 * done:.0f} % of the work")
            last = time.perf_counter()

    return report


def in_words(seconds: float) -> str:
    """A time as one says it."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 1.5 * size:
            count = seconds / size
            return f"{count:.2g} {unit}" if count < 10 else f"{count:.0f} {unit}"
    return f"{max(seconds, 0.1):.1g} seconds" if seconds < 10 else f"{seconds:.0f} seconds"


def estimate(fitted, X) -> float:
    """Seconds that the explanation of some rows will take, about.

    Parameters
    ----------
    fitted : Fitted
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)

    Returns
    -------
    float
    """
    outlook = outlook_of(fitted.engine, X.shape[0], fitted.recipe)
    return _measured(fitted, X) if outlook is None else outlook.seconds


def _measured(fitted, X) -> float:
    """By explaining a few rows, and a few more."""
    n_rows = X.shape[0]
    taken = {}
    for size in sorted({min(n_rows, FEW), min(n_rows, MORE)}):
        some = _rows.take(X, np.linspace(0, n_rows - 1, size).astype(np.intp))
        start = time.perf_counter()
        fitted.evaluate(some, fitted.recipe)
        taken[size] = time.perf_counter() - start
    few, more = min(taken), max(taken)
    if more == n_rows:
        return taken[more]
    return taken[more] + max(0.0, taken[more] - taken[few]) / (more - few) * (n_rows - more)
