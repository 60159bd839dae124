"""The exact curve of a raw column of a pipeline, through its preprocessing."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np

from fastpd_sklearn.explainers._bisection import (
    TooManyBreaksError,
    find_breaks,
    floats_before,
    middle,
)
from fastpd_sklearn.explainers._curve import CategoryCurve, StepCurve
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._grid import Template
from fastpd_sklearn.forest._pipeline import PipelineMap
from fastpd_sklearn.forest._transformers import BINS, LABELS, OTHER, SAME

Average = Callable[[np.ndarray], np.ndarray]
"""From points, shape (n_points,), to partial dependence, shape (n_outputs, n_points)."""

CLOSE = 1e-9
"""How far a curve may be from the average at a point, relative to its size."""

N_CHECKED = 257
"""Points at which a curve is compared with the average."""


class NoCurveError(Exception):
    """Why a column has no exact curve, and what to do instead."""


class RawColumn:
    """A column of numbers that goes into a pipeline, and what the forest tests of it.

    Parameters
    ----------
    engine : TreeEngine
        With a :class:`PipelineMap`.
    template : Template
        Rows in which the column is set.
    column : int
    """

    def __init__(self, engine: TreeEngine, template: Template, column: int) -> None:
        self._map: PipelineMap = engine.input_map
        self._bins = engine.core.bins
        self._linear = engine.linear_inputs
        self._template = template
        self._column = column
        self._name = column if self._map.names is None else self._map.names[column]
        origins = self._map.origins
        self._inputs = [j for j, origin in enumerate(origins) if column in origin.columns]
        slots = enumerate(self._bins.columns.tolist())
        self._slots = [(s, j) for s, j in slots if column in origins[j].columns]
        sentinels = self._map.sentinels()
        self._sentinels = {j: sentinels[j] for _, j in self._slots if not np.isnan(sentinels[j])}

    def labels(self) -> np.ndarray | None:
        """The numbers that encoders take for labels, ascending; None if they take none."""
        found = [self._map.origins[j].labels for j in self._inputs]
        found += [
            self._categories(slot, j)
            for slot, j in self._slots
            if self._bins.categorical[slot] and self._map.origins[j].shape == SAME
        ]
        found = [known.astype(np.float64) for known in found if known is not None]
        if not found:
            return None
        numbers = np.unique(np.concatenate(found))
        return numbers[~np.isnan(numbers)]

    def _categories(self, slot: int, j: int) -> np.ndarray:
        """Numbers of a column of categories: those that model or background know."""
        known = self._map.inner.numbers_of(j, self._bins.slot_edges(slot))
        return np.union1d(known, self._template.points[self._column])

    def curve(self, average: Average) -> StepCurve | CategoryCurve:
        """Partial dependence everywhere.

        Parameters
        ----------
        average : callable
            From points to partial dependence.

        Returns
        -------
        StepCurve or CategoryCurve

        Raises
        ------
        NoCurveError
            If the column goes through something that is neither a monotone function, nor bins,
            nor labels.
        """
        labels = self.labels()
        self._check_shapes(labels is not None)
        missing = self._missing_level(average)
        if labels is not None:
            levels = average(labels)
            if missing is not None:
                labels, levels = np.append(labels, np.nan), np.column_stack([levels, missing])
            return CategoryCurve(labels.astype(object), levels)
        dtype = self._template.float_type(self._column)
        if dtype not in (np.float32, np.float64):
            raise self._error(f"it is held in {dtype.__name__}; give X in float32 or float64")
        known = self._known_points(dtype)
        ends = self._ends(known, dtype)
        try:
            breaks = find_breaks(
                self._signature, np.concatenate([ends, known]), dtype, self._most_breaks()
            )
        except TooManyBreaksError as error:
            raise self._not_monotone() from error
        # The last float of each piece: its first may be the logarithm of zero.
        pieces = np.array(
            [*floats_before(breaks, dtype), *(breaks[-1:] if len(breaks) else known[:1])]
        )
        curve = StepCurve(
            breaks,
            average(pieces),
            missing,
            strict=True,
            single=dtype == np.float32,
        )
        self._check_curve(curve, ends, known, average)
        return curve

    def _check_shapes(self, has_labels: bool) -> None:
        if not self._linear.isdisjoint(self._inputs):
            raise self._error(
                "the leaves of the model are linear functions of what the steps make of it"
            )
        origins = [self._map.origins[j] for _, j in self._slots]
        for origin in origins:
            if origin.shape == OTHER:
                raise self._error(
                    f"step {origin.shaped_by!r} makes a function of it that is not known to be "
                    "monotone"
                )
        for slot, j in self._slots:
            labelled = self._bins.categorical[slot] or self._map.origins[j].shape == LABELS
            if has_labels and not labelled:
                raise self._error(
                    "one step of the pipeline takes its values for labels and another one for "
                    "numbers"
                )
            if not has_labels and self._bins.categorical[slot]:
                raise self._error("the model takes for a category what the steps have made of it")
        for origin in origins:
            if origin.shape == BINS and len(self._bin_columns(origin)) < origin.n_bins:
                raise self._error(
                    f"some of the bins that step {origin.shaped_by!r} makes are left out"
                )

    def _error(self, reason: str) -> NoCurveError:
        return NoCurveError(
            f"there is no exact curve of {self._name!r}, since {reason}; `average` is exact at "
            "each point of the grid, so pass the points that you want by grid=..."
        )

    def _bin_columns(self, origin) -> list[int]:
        origins = self._map.origins
        same = (origin.shape, origin.shaped_by)
        return [j for j in self._inputs if (origins[j].shape, origins[j].shaped_by) == same]

    def _missing_level(self, average: Average) -> np.ndarray | None:
        try:
            return average(np.array([np.nan]))[:, 0]
        except Exception:  # each transformer has its own for a value that it does not take
            return None

    # -- the steps -------------------------------------------------------------------------

    def _signature(self, points: np.ndarray) -> np.ndarray:
        """What the forest can tell of the column; it is the same within a piece.

        Raises an error for values that the pipeline does not take.
        """
        rows = self._template.rows({self._column: points})
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # odd values are looked at on purpose
            inputs = self._map.open(rows)
        binned, codes = self._bins.empty_rows(inputs.n_rows)
        found = [np.zeros(len(points))]
        for slot, j in self._slots:
            # Infinity has the code of the outermost piece, whether the model takes it or not.
            self._bins.bin_column(inputs.column(j), slot, binned, 1)
            if not self._map.allow_nan and np.any(codes[slot] == np.iinfo(codes[slot].dtype).max):
                raise ValueError("the model does not take missing values")
            found.append(codes[slot])
            if j in self._sentinels:
                # A single number among others: only its two sides lead to it.
                found.append(np.nan_to_num(np.sign(inputs.column(j) - self._sentinels[j])))
        origins = {self._map.origins[j] for _, j in self._slots}
        for origin in [origin for origin in origins if origin.shape == BINS]:
            # The forest may test no more than some of the bins: only all of them tell where
            # the value lies.
            found += [inputs.column(j) for j in self._bin_columns(origin)]
        return np.column_stack(found)

    def _most_breaks(self) -> int:
        """Each threshold is crossed once, and values may be missing on both sides."""
        bins = sum(self._map.origins[j].n_bins for _, j in self._slots)
        bins += 2 * len(self._sentinels)
        return bins + sum(2 + len(self._bins.slot_edges(slot)) for slot, _ in self._slots)

    def _known_points(self, dtype) -> np.ndarray:
        """Points that the pipeline takes: those of the background."""
        points = self._template.points[self._column]
        points = np.unique(points[np.isfinite(points)].astype(dtype))
        return points.astype(np.float64) if len(points) else np.zeros(1)

    def _ends(self, known: np.ndarray, dtype) -> np.ndarray:
        """The smallest and the largest number that the pipeline takes."""
        largest = float(np.finfo(dtype).max)
        return np.array(
            [
                self._outermost(known[0], -largest, dtype),
                self._outermost(known[-1], largest, dtype),
            ]
        )

    def _outermost(self, good: float, end: float, dtype) -> float:
        if self._is_taken(end):
            return end
        while True:
            point = middle(min(good, end), max(good, end), dtype)
            if point in (good, end):
                return good
            if self._is_taken(point):
                good = point
            else:
                end = point

    def _is_taken(self, point: float) -> bool:
        try:
            self._signature(np.array([point]))
        except Exception:  # each transformer has its own
            return False
        return True

    def _check_curve(self, curve: StepCurve, ends, known, average: Average) -> None:
        """Refuse a curve that is not what the steps are on the way, whatever they declare."""
        span = known[-1] - known[0]
        points = np.linspace(known[0] - span, known[-1] + span, N_CHECKED)
        points = np.clip(points, *ends)
        truth = average(points)
        if np.abs(curve(points) - truth).max() > CLOSE * np.abs(truth).max():
            raise self._not_monotone()

    def _not_monotone(self) -> NoCurveError:
        steps = dict.fromkeys(s for _, j in self._slots for s in self._map.origins[j].steps)
        return self._error(
            f"what the steps {list(steps)} make of it is declared to be monotone and is not"
        )
