"""Which raw columns each column of a fitted preprocessing stems from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import FeatureUnion, Pipeline

from fastpd_sklearn import _compat
from fastpd_sklearn.forest._transformers import (
    BINS,
    LABELS,
    MONOTONE,
    OTHER,
    SAME,
    Flow,
    flow_of,
)


@dataclass(frozen=True, eq=False)
class Origin:
    """Where a column of the preprocessed ``X`` comes from.

    Parameters
    ----------
    columns : frozenset of int
        The raw columns that it depends on; none for a constant.
    steps : tuple of str
        The steps on its way, first one first.
    mixed_by : tuple of str
        Those of them that make one column of several.
    shape : {"same", "monotone", "labels", "bins", "other"}
        What the column is to its only raw column, see :mod:`._transformers`.
    shaped_by : str
        The step that made it so.
    labels : ndarray or None
        The raw labels that an encoder knows.
    n_bins : int
        Into how many columns of "bins" the raw column was split.
    """

    columns: frozenset[int]
    steps: tuple[str, ...] = ()
    mixed_by: tuple[str, ...] = ()
    shape: str = SAME
    shaped_by: str = ""
    labels: np.ndarray | None = None
    n_bins: int = 0


Origins = list[Origin]


@runtime_checkable
class Traced(Protocol):
    """A step that says itself where its columns come from."""

    def trace(self, origins: Origins, prefix: str) -> Origins:
        """Origins of the columns that come out, by those of the columns that go in."""

    def sentinels(self) -> np.ndarray:
        """The number that stands for missing in each column that comes out, NaN for none."""


def raw_origins(n_columns: int) -> Origins:
    """Columns that nothing has been done to."""
    return [Origin(frozenset([j])) for j in range(n_columns)]


def trace_steps(steps, origins: Origins, width: int | None, prefix: str = "") -> Origins:
    """Follow columns through the steps of a pipeline.

    Parameters
    ----------
    steps : sequence of (str, transformer)
        Fitted.
    origins : list of Origin
        Of the columns that go in.
    width : int or None
        The number of columns that come out, where it is known.
    prefix : str, default=""
        Goes before the names of the steps.

    Returns
    -------
    list of Origin
        Of the columns that come out.

    Raises
    ------
    ValueError
        If a step does not say how many columns it gives, or gives others than declared.
    """
    steps = [(name, step) for name, step in steps if not does_nothing(step)]
    widths = [getattr(step, "n_features_in_", None) for _, step in steps[1:]] + [width]
    for (name, step), n_out in zip(steps, widths, strict=True):
        origins = _trace(step, prefix + name, origins, n_out)
    return origins


def does_nothing(step) -> bool:
    """Whether a fitted step leaves all rows as they are."""
    # Samplers of imbalanced-learn change rows when fitted, and nothing afterwards.
    return step is None or _is(step, "passthrough") or hasattr(step, "fit_resample")


def _is(step, word: str) -> bool:
    return isinstance(step, str) and step == word


def _trace(step, name: str, origins: Origins, width: int | None) -> Origins:
    if isinstance(step, FrozenEstimator):
        return _trace(step.estimator, name, origins, width)
    if isinstance(step, Pipeline):
        return trace_steps(step.steps, origins, width, f"{name}__")
    if isinstance(step, ColumnTransformer):
        return _trace_columns(step, name, origins)
    if isinstance(step, FeatureUnion):
        return _trace_union(step, name, origins, width)
    if isinstance(step, Traced):
        return step.trace(origins, f"{name}__")
    return _trace_leaf(step, name, origins, width)


def _trace_columns(step: ColumnTransformer, name: str, origins: Origins) -> Origins:
    inputs = _compat.column_transformer_inputs(step)
    found: dict[int, Origin] = {}
    for part, transformer, _ in step.transformers_:
        place = step.output_indices_[part]
        if _is(transformer, "drop") or place.start == place.stop:
            continue
        own = [origins[j] for j in inputs[part]]
        if not _is(transformer, "passthrough"):
            own = _trace(transformer, f"{name}__{part}", own, place.stop - place.start)
        _check_width(f"{name}__{part}", own, place.stop - place.start)
        found.update(zip(range(place.start, place.stop), own, strict=True))
    return [found[k] for k in range(len(found))]


def _trace_union(step: FeatureUnion, name: str, origins: Origins, width: int | None) -> Origins:
    parts = [(part, t) for part, t in step.transformer_list if not _is(t, "drop")]
    weights = step.transformer_weights or {}
    out: Origins = []
    for part, transformer in parts:
        own = origins
        if not _is(transformer, "passthrough"):
            only = width if len(parts) == 1 else None
            own = _trace(transformer, f"{name}__{part}", origins, only)
        if part in weights:
            own = [_reshaped(origin, f"{name}__{part}", MONOTONE, None, 0) for origin in own]
        out += own
    return out


def _trace_leaf(step, name: str, origins: Origins, width: int | None) -> Origins:
    flow = flow_of(step, len(origins))
    if flow is None:
        n_out = width if width is not None else _width_by_names(step, name)
        return [_derived(origins, range(len(origins)), name, Flow((), OTHER), OTHER)] * n_out
    known: dict = {}
    out = []
    for source, shape in zip(flow.sources, flow.shapes(), strict=True):
        if (source, shape) not in known:
            sources = source if isinstance(source, tuple) else (source,)
            known[source, shape] = _derived(origins, sources, name, flow, shape)
        out.append(known[source, shape])
    if width is not None:
        _check_width(name, out, width)
    return out


def _width_by_names(step, name: str) -> int:
    try:
        return len(step.get_feature_names_out())
    except Exception as error:  # every transformer has its own
        raise ValueError(
            f"step {name!r}, a {type(step).__name__}, does not say how many columns it gives; "
            "give it a get_feature_names_out, or declare what it does by "
            "fastpd_sklearn.forest.register_transformer"
        ) from error


def _check_width(name: str, origins: Origins, width: int) -> None:
    if len(origins) != width:
        raise ValueError(
            f"step {name!r} gives {width} columns, and is declared to give {len(origins)}; "
            "correct what was passed to register_transformer, or the feature_names_out of a "
            "FunctionTransformer"
        )


def _derived(origins: Origins, sources: Sequence[int], name: str, flow: Flow, shape: str) -> Origin:
    """What a step makes of one or several of its columns."""
    parts = list(dict.fromkeys(origins[k] for k in sources))
    if not parts:
        return Origin(frozenset(), (name,))
    columns = frozenset().union(*(part.columns for part in parts))
    if len(columns) <= 1 and len(parts) == 1:
        place = sources[0]
        labels = None if flow.labels is None else np.asarray(flow.labels[place])
        n_bins = flow.sources.count(place) if shape == BINS else 0
        passed = replace(parts[0], steps=(*parts[0].steps, name))
        return _reshaped(passed, name, shape, labels, n_bins)
    steps = tuple(dict.fromkeys(step for part in parts for step in part.steps))
    mixed = tuple(dict.fromkeys(step for part in parts for step in part.mixed_by))
    mixed = (*mixed, name) if len(columns) > 1 else mixed
    if not all(part.shape == LABELS for part in parts):
        return Origin(columns, (*steps, name), mixed, OTHER, name)
    labels = np.concatenate([part.labels.astype(object) for part in parts])
    return Origin(columns, (*steps, name), mixed, LABELS, name, labels)


def _reshaped(origin: Origin, name: str, shape: str, labels, n_bins: int) -> Origin:
    """An origin after one more function of its column."""
    before = origin.shape
    if before == LABELS or shape == SAME or (before, shape) == (MONOTONE, MONOTONE):
        return origin  # any function of a label is one
    if before in (SAME, MONOTONE) and (shape, before) != (LABELS, MONOTONE):
        return replace(origin, shape=shape, shaped_by=name, labels=labels, n_bins=n_bins)
    return replace(origin, shape=OTHER, shaped_by=name if before != OTHER else origin.shaped_by)


def tied_columns(origins: Origins) -> list[tuple[str, list[int]]]:
    """Raw columns that some step mixes, and so have to play together.

    Parameters
    ----------
    origins : list of Origin

    Returns
    -------
    list of (str, list of int)
        The names of the mixing steps, joined, and the columns, ascending; no column is in two
        of them.
    """
    sets: list[tuple[set[int], list[str]]] = []
    for origin in dict.fromkeys(origins):
        if len(origin.columns) < 2:
            continue
        columns, steps = set(origin.columns), list(origin.mixed_by)
        for other in [other for other in sets if other[0] & columns]:
            sets.remove(other)
            columns |= other[0]
            steps = [*other[1], *steps]
        sets.append((columns, list(dict.fromkeys(steps))))
    return sorted(
        (("+".join(steps), sorted(columns)) for columns, steps in sets), key=lambda tied: tied[1]
    )
