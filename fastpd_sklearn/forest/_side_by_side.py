"""The inputs of several models side by side, where they do not read the same columns alike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_array

from fastpd_sklearn.forest import _frames
from fastpd_sklearn.forest._inputs import InputMap
from fastpd_sklearn.forest._lineage import Origins, trace_steps
from fastpd_sklearn.forest._pipeline import PipelineMap


@dataclass(frozen=True, eq=False)
class OwnInputs:
    """What one model makes of ``X``, as the inputs of its trees.

    Parameters
    ----------
    name, key : str
        The model, for messages and as a part of names.
    input_map : InputMap or PipelineMap
    n_inputs : int
    single : bool
        Whether its trees compare in float32.
    columns : ndarray of int or None
        The columns of ``X`` that it is given; None for all.
    """

    name: str
    key: str
    input_map: InputMap | PipelineMap
    n_inputs: int
    single: bool
    columns: np.ndarray | None

    def read(self, X) -> np.ndarray:
        """The inputs, float64 of shape (n_rows, n_inputs); refused where the model refuses them."""
        inputs = self.input_map.open(X if self.columns is None else X[:, self.columns]).to_array()
        if not self.input_map.allow_nan and np.isnan(inputs).any():
            raise ValueError(f"Input X contains NaN, which {self.name} refuses")
        with np.errstate(over="ignore"):
            compared = inputs.astype(np.float32) if self.single else inputs
        if not self.input_map.allow_inf and np.isinf(compared).any():
            raise ValueError(f"Input X contains infinity or a value too large for {self.name}")
        return inputs

    def trace(self, origins: Origins, prefix: str) -> Origins:
        """Where the inputs come from."""
        if self.columns is not None:
            origins = [origins[k] for k in self.columns]
        if not isinstance(self.input_map, PipelineMap):
            return origins
        return trace_steps(self.input_map.steps, origins, self.n_inputs, f"{prefix}{self.key}__")


@dataclass(frozen=True, eq=False)
class SideBySide:
    """A step of a :class:`PipelineMap` that gives the inputs of all models, one after the other.

    Parameters
    ----------
    parts : tuple of OwnInputs
    frames_as_arrays : bool
        Whether a data frame is made an array first.
    """

    parts: tuple[OwnInputs, ...]
    frames_as_arrays: bool

    def transform(self, X) -> np.ndarray:
        """The inputs, float64 of shape (n_rows, n_inputs of all)."""
        if self.frames_as_arrays and _frames.is_frame(X):
            X = check_array(X, dtype=None, ensure_all_finite=False)
        return np.hstack([part.read(X) for part in self.parts])

    def sentinels(self) -> np.ndarray:
        """The number that stands for missing in every input, NaN for none; (n_inputs,)."""
        return np.concatenate([part.input_map.sentinels() for part in self.parts])

    def trace(self, origins: Origins, prefix: str) -> Origins:
        """Where the inputs come from."""
        return [origin for part in self.parts for origin in part.trace(origins, prefix)]


def side_by_side(owner, parts: list[OwnInputs], *, frames_as_arrays: bool) -> PipelineMap:
    """The map to the inputs of all models.

    Parameters
    ----------
    owner : object
        The model that they are in.
    parts : list of OwnInputs
    frames_as_arrays : bool
        Whether the owner makes arrays of data frames.

    Returns
    -------
    PipelineMap
    """
    names = getattr(owner, "feature_names_in_", None)
    whole = [part.input_map for part in parts if part.columns is None]
    if names is None:
        names = next((m.names for m in whole if m.names is not None), None)
    n_columns = getattr(owner, "n_features_in_", None)
    if n_columns is None:
        n_columns = next((m.n_columns for m in whole if m.n_columns is not None), None)
    return PipelineMap(
        steps=((type(owner).__name__.lower(), SideBySide(tuple(parts), frames_as_arrays)),),
        inner=InputMap(sum(part.n_inputs for part in parts)),
        n_columns=None if n_columns is None else int(n_columns),
        names=None if names is None else tuple(str(name) for name in names),
    )
