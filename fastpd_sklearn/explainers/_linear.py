"""The engine of forests whose leaves are linear functions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fastpd_sklearn.core.linear_model import (
    LinearCounts,
    LinearCoverage,
    LinearKeptRows,
    LinearModel,
    LinearRows,
    unpacked,
)
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.explainers._binned import bin_inputs
from fastpd_sklearn.explainers._engine import TreeEngine, at_places
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.forest import Reading
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest
from fastpd_sklearn.forest._linear_leaves import factors_of


def refuse_linear(forest: Forest, reason: str) -> None:
    """Refuse a forest with linear leaves where no exact way is known.

    Parameters
    ----------
    forest : Forest
    reason : str
        What is not known of them, and what to do instead.

    Raises
    ------
    ValueError
    """
    if forest.is_linear:
        raise ValueError(f"the leaves of this model are linear functions (linear_tree), {reason}")


class LinearEngine(TreeEngine):
    """Covers leaves by the background rows and by the first moments of their numbers.

    Parameters
    ----------
    reading : Reading
    players : sequence of ndarray of int
    n_jobs : int or None
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.background = None
        super().__init__(reading, players, n_jobs)

    def _make_core(self, forest: Forest, owner: np.ndarray, n_players: int) -> LinearModel:
        return LinearModel(forest, factors_of(forest), owner, n_players, ZERO_THRESHOLD)

    @property
    def linear_inputs(self) -> frozenset[int]:
        """The forest's inputs of which some leaves are linear functions."""
        return frozenset(self.core.inputs)

    def _make_coverage(self) -> LinearCoverage | None:
        return None if self.background is None else self.background.coverage(self.core)

    def _mean(self) -> np.ndarray:
        return self.background.mean(self.core, self.coverage)

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        background = self.core.make_background()
        background.add(self.core, self.bin(X), sample_weight, self.threads_for(X.shape[0]))
        self._add(background)

    def merge(self, other: LinearEngine) -> None:
        """Add the background of another engine for the same forest."""
        self._add(other.background)

    def packed(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        return self.background.packed()

    def unpack(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over a state from :meth:`packed`."""
        self._add(unpacked(self.core, arrays))

    def _add(self, background: LinearCounts | LinearKeptRows) -> None:
        if self.background is not None:
            background = self.background.joined(self.core, background)
        self.background = background
        self.derive()

    def bin(self, X) -> LinearRows:
        """The rows of ``X`` as codes, with the numbers that slopes multiply; as `TreeEngine`."""
        inputs = self.input_map.open(X)
        codes = bin_inputs(self.input_map, self.core.bins, inputs, self.threads_for(X.shape[0]))
        return LinearRows(codes, self._numbers([inputs.column(j) for j in self.core.inputs]))

    def _numbers(self, columns: list[np.ndarray]) -> np.ndarray:
        """Numbers that slopes multiply, zero where they are missing."""
        numbers = np.array(columns, np.float64)
        for column, values in zip(self.core.inputs, numbers, strict=True):
            if np.isinf(values).any():
                raise ValueError(
                    f"Input X contains infinity, in {self.input_map.describe(column)}, of which "
                    "the leaves of the model are linear functions: its prediction is infinite, and "
                    "so is any mean; leave such rows out, or make the value missing"
                )
        return np.nan_to_num(numbers, copy=False)

    def predict_inputs(self, inputs: np.ndarray) -> np.ndarray:
        """Raw prediction from the forest's own inputs, as `TreeEngine`."""
        n_threads = self.threads_for(len(inputs))
        codes, _ = self.core.bins.bin_matrix(inputs, n_threads)
        numbers = self._numbers([inputs[:, j] for j in self.core.inputs])
        return self.core.predict(LinearRows(codes, numbers), n_threads)

    def slopes(self, player: int) -> np.ndarray | None:
        """What a number is multiplied by in the component of its player, as `TreeEngine`."""
        return self.core.slopes(self.coverage, player)

    def individual(self, X, term: Term, grids: Sequence) -> np.ndarray:
        """Raw predictions of every row, with one player, or two, held at points."""
        rows, held = self.bin(X), [self.bin(grid) for grid in grids]
        made = [
            self.walks.points(points.codes, player)
            for player, points in zip(term, held, strict=True)
        ]
        n_threads = self.threads_for(rows.n_rows)

        def curves(walks: WalkModel) -> np.ndarray:
            found = walks.curves(rows.codes, [points for points, _ in made], n_threads)
            return at_places(found, [place for _, place in made])

        out = curves(self.walks)
        for k, factor in enumerate(self.core.factors):
            # The numbers of the rows, unless the factor's player is held at points.
            axis = 1 + term.index(factor.player) if factor.player in term else 0
            numbers = [rows, *held][axis].numbers[k]
            ahead = out.ndim - 2 - axis
            out += numbers.reshape(-1, *(1,) * ahead) * curves(factor.model.walks)
        return out
