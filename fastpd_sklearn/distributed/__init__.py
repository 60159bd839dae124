"""Dask's arrays and data frames: explainers hand them over to these functions by themselves."""

from fastpd_sklearn.distributed._fitting import fit_background
from fastpd_sklearn.distributed._lazy import LazyExplanation
from fastpd_sklearn.distributed._mapping import (
    explain_lazily,
    map_lazily,
    sum_over,
    transform_lazily,
)

__all__ = [
    "LazyExplanation",
    "explain_lazily",
    "fit_background",
    "map_lazily",
    "sum_over",
    "transform_lazily",
]
