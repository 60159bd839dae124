"""Dask's arrays and data frames: explainers hand them over to these functions by themselves."""

from fastpd_sklearn.distributed._fitting import fit_background
from fastpd_sklearn.distributed._lazy import LazyExplanation
from fastpd_sklearn.distributed._mapping import (
    explain_lazily,
    map_lazily,
    sum_over,
    transform_lazily,
)
from fastpd_sklearn.distributed._passing import DaskPasses

__all__ = [
    "DaskPasses",
    "LazyExplanation",
    "explain_lazily",
    "fit_background",
    "map_lazily",
    "sum_over",
    "transform_lazily",
]
