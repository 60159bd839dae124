"""Dask's arrays and data frames: explainers hand them over to these functions by themselves."""

from fastpd_sklearn.distributed._fitting import fit_background
from fastpd_sklearn.distributed._mapping import sum_over, transform_lazily

__all__ = ["fit_background", "sum_over", "transform_lazily"]
