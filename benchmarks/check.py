"""Whether two contenders did the same work and found the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from benchmarks.cases import Case, cached_model, cached_rows
from benchmarks.measure import Measurement
from benchmarks.tasks import LIBRARY_OF
from fastpd_sklearn.forest import find_reader

TOLERANCE = 1e-5
"""Relative to the sum over trees of the largest leaf; libraries predict in float32."""

KNOWN_FAULTS = {
    ("woodelf", "xgboost"): "its thresholds are one float32 step low",
    ("woodelf", "sklearn"): "it compares float32 rows with thresholds rounded to float32",
    ("woodelf", "lightgbm"): "it compares float32 rows with thresholds rounded to float32",
    ("shap", "sklearn"): "it compares in float32 what the library compares in float64",
    ("shap", "lightgbm"): "it compares in float32 what the library compares in float64",
}
"""Faults that hit rows within a float32 step of a threshold, and their shares of averages."""


@dataclass(frozen=True)
class Verdict:
    """What came of a comparison; costs are put side by side only if ``comparable``."""

    comparable: bool
    text: str


def compare(ours: Measurement, other: Measurement) -> Verdict:
    """Compare the answers of two measurements of a task and case."""
    if ours.error or other.error:
        return Verdict(False, "refused: no answer")
    for part, digest in ours.fingerprint.items():
        if other.fingerprint[part] != digest:
            return Verdict(False, f"refused: another {part}")
    both = aligned(ours, other)
    if both is None:
        return Verdict(False, "refused: no values in common")
    mine, theirs = both
    scale = scale_of(ours.case)
    difference = np.abs(mine - theirs).max(axis=0) / scale
    largest = difference.max()
    size = f"{len(mine)} terms, {len(difference)} values each"
    if np.isfinite(largest) and largest <= TOLERANCE:
        return Verdict(True, f"equal to {largest:.0e} ({size})")
    return _known_fault(ours, other, difference) or Verdict(
        False, f"DIFFERS by {largest:.0e} ({size})"
    )


def aligned(ours: Measurement, other: Measurement) -> tuple[np.ndarray, np.ndarray] | None:
    """Values of both by the same terms and rows; None if they have none in common."""
    answers = [np.load(ours.answer), np.load(other.answer)]
    places = [{t: i for i, t in enumerate(x["terms"].tolist())} for x in answers]
    terms = [t for t in places[0] if t in places[1]]
    width = min(x["values"].shape[1] for x in answers)
    if not terms or not width:
        return None
    if all(x["complete"] for x in answers):  # a term that one of them lacks has to be zero
        terms += [t for t in {**places[0], **places[1]} if (t in places[0]) != (t in places[1])]
    out = np.zeros((2, len(terms), width))
    for values, answer, place in zip(out, answers, places, strict=True):
        known = np.array([t in place for t in terms])
        values[known] = answer["values"][[place[t] for t in terms if t in place], :width]
    return out[0], out[1]


@lru_cache(maxsize=4)
def forest_of(case: Case):
    model = cached_model(case)
    return find_reader(model).read(model).forest


def scale_of(case: Case) -> float:
    """Sum over trees of the largest leaf."""
    forest = forest_of(case)
    leaves = np.abs(forest.value).max(axis=1)
    return float(np.maximum.reduceat(leaves, forest.tree_start[:-1]).sum())


@lru_cache(maxsize=4)
def rows_beside(case: Case) -> np.ndarray:
    """Which rows hold a value that goes another way if a threshold is rounded or a step lower."""
    forest = forest_of(case)
    X = cached_rows(max(case.n_rows, case.n_background), case.n_columns)
    beside = np.zeros(len(X), bool)
    for j in np.unique(forest.feature[forest.feature >= 0]):
        thresholds = np.unique(forest.threshold[forest.feature == j].astype(np.float32))
        if forest.strict:
            thresholds = np.nextafter(thresholds, np.float32(-np.inf))
        beside |= np.isin(X[:, j], thresholds)
    return beside


def _known_fault(ours: Measurement, other: Measurement, difference) -> Verdict | None:
    """The peer's known fault, if it accounts for all of the difference."""
    case = ours.case
    fault = KNOWN_FAULTS.get((other.contender, LIBRARY_OF[case.model.partition("_")[0]]))
    if fault is None:
        return None
    beside = rows_beside(case)
    hit = np.zeros(len(difference), bool)
    rows = np.load(ours.answer)["rows"][: len(hit)]
    hit[: len(rows)] = beside[rows]
    background = beside[: case.n_background].sum()
    # A row of the background moves an average by twice the scale at most.
    allowed = TOLERANCE + 2 * background / case.n_background
    if np.any(difference[~hit] > allowed) or not beside.any():
        return None
    size = f"{difference.max():.0e}; {beside.sum()} of {len(beside)} rows hit"
    return Verdict(True, f"differs, known fault: {fault} ({size})")
