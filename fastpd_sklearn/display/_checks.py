"""Checks of what users pass to displays."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from fastpd_sklearn.explainers import Explanation


def check_percentiles(percentiles) -> tuple[float, float]:
    """Two ascending quantiles between 0 and 1, or ``ValueError``."""
    are_numbers = np.shape(percentiles) == (2,) and np.asarray(percentiles).dtype.kind in "iuf"
    low, high = percentiles if are_numbers else (np.nan, np.nan)
    if not 0 <= low < high <= 1:
        raise ValueError(
            f"percentiles={percentiles!r} should be two ascending numbers between 0 and 1, such "
            "as (0.01, 0.99)"
        )
    return float(low), float(high)


def check_count(name: str, value) -> int:
    """A positive int, or ``ValueError`` that names the argument."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r} should be a positive int")
    return int(value)


def check_explanation(explanation) -> None:
    """Refuse what is no explanation."""
    if not isinstance(explanation, Explanation):
        raise TypeError(
            "from_explanation takes what explain() of an explainer returns, and got a "
            f"{type(explanation).__name__}"
        )
