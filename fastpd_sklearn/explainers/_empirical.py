"""The engine of mask counts: how many rows of the background meet which sides of each leaf."""

from __future__ import annotations

import numpy as np

from fastpd_sklearn.core.background import KeptRows, MaskCounts, make_background, merged, unpacked
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.forest import Reading


class EmpiricalEngine(TreeEngine):
    """Covers a leaf by the background rows: which of its sides they satisfy.

    Its state is a sum over background rows: see `core.background`.
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.background = None
        super().__init__(reading, players, n_jobs)

    def _make_coverage(self):
        return None if self.background is None else self.background.coverage(self.core)

    def _mean(self) -> np.ndarray:
        return self.background.mean(self.core, self.coverage)

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        self.add_rows(self.bin(X), sample_weight)

    def add_rows(self, rows: BinnedRows, sample_weight: np.ndarray | None) -> None:
        """Add rows that are codes already."""
        background = make_background(self.core, rows.n_rows)
        background.add(self.core, rows, sample_weight, self.threads_for(rows.n_rows))
        self._add(background)

    def merge(self, other: EmpiricalEngine) -> None:
        """Add the background of another engine for the same forest."""
        self._add(other.background)

    def packed(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return self.background.packed()

    def unpack(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over a state from :meth:`packed`."""
        self._add(unpacked(self.core, arrays))

    def _add(self, background: MaskCounts | KeptRows) -> None:
        if self.background is not None:
            background = merged(self.core, self.background, background, self.n_threads)
        self.background = background
        self.derive()
