"""Which hyperparameters a search has tried, and how well each did."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import joblib
import numpy as np
from sklearn.exceptions import NotFittedError


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidates of a search, the best first.

    Parameters
    ----------
    rows : ndarray of shape (n_candidates,), int
        Where in ``cv_results_`` each stands.
    params : list of dict
    mean_test_score, std_test_score : ndarray of shape (n_candidates,)
    rank : ndarray of shape (n_candidates,), int
        From 1 on, among all that have a score; equal scores have the same.
    best : int
        Position of the one that the search has chosen, or else 0.
    scoring : str
        The name of the score.
    """

    rows: np.ndarray
    params: list[dict]
    mean_test_score: np.ndarray
    std_test_score: np.ndarray
    rank: np.ndarray
    best: int
    scoring: str


def select_candidates(search, scoring: str | None, top: int | None) -> Candidates:
    """The candidates of a search in the order of their scores.

    Of a candidate of a halving search only the last iteration counts that it has reached, and
    later iterations stand before earlier ones: their scores were found with more resources.

    Parameters
    ----------
    search : fitted search
    scoring : str or None
        One of the scores of a search with several; None: the one that it has refitted by.
    top : int or None
        How many of the best to keep, besides the one that the search has chosen.

    Returns
    -------
    Candidates
    """
    check_search(search)
    check_top(top)
    results = search.cv_results_
    scoring = _find_score(search, scoring)
    mean = np.asarray(results[f"mean_test_{scoring}"], dtype=np.float64)
    rows = np.flatnonzero(~np.isnan(mean))
    if not len(rows):
        raise ValueError("no candidate of the search has a score: all of its fits have failed")
    iteration = np.asarray(results.get("iter", np.zeros(len(mean), dtype=int)))
    if "iter" in results:
        rows = _last_of_each(search, rows, iteration)
    rows = rows[np.lexsort((rows, -mean[rows], -iteration[rows]))]
    changes = (np.diff(mean[rows]) != 0) | (np.diff(iteration[rows]) != 0)
    rank = np.maximum.accumulate(np.r_[True, changes] * np.arange(1, len(rows) + 1))
    chosen = rows == getattr(search, "best_index_", -1)
    kept = np.arange(len(rows)) < (len(rows) if top is None else top)
    kept |= chosen
    return Candidates(
        rows=rows[kept],
        params=[dict(results["params"][row]) for row in rows[kept]],
        mean_test_score=mean[rows[kept]],
        std_test_score=np.asarray(results[f"std_test_{scoring}"])[rows[kept]],
        rank=rank[kept],
        best=int(np.argmax(chosen[kept])),
        scoring=scoring,
    )


def check_search(search) -> None:
    """Refuse what is no fitted search."""
    if not hasattr(search, "estimator") or not callable(getattr(type(search), "fit", None)):
        raise TypeError(
            f"search is a {type(search).__name__}; give a fitted GridSearchCV, "
            "RandomizedSearchCV or halving search"
        )
    if "params" not in getattr(search, "cv_results_", {}):
        raise NotFittedError(
            f"{type(search).__name__} has no cv_results_ with candidates; fit a search first"
        )


def check_top(top) -> None:
    """Refuse a ``top`` that is not None or a positive int."""
    if top is None:
        return
    if isinstance(top, bool) or not isinstance(top, Integral) or top < 1:
        raise ValueError(f"top={top!r} should be a positive int, or None for all candidates")


def _find_score(search, scoring: str | None) -> str:
    names = [
        key.removeprefix("mean_test_") for key in search.cv_results_ if key.startswith("mean_test_")
    ]
    if scoring is None and len(names) == 1:
        return names[0]
    if scoring is None and isinstance(search.refit, str):
        return search.refit
    if scoring not in names:
        raise ValueError(
            f"scoring={scoring!r} is none of the scores of the search, which are "
            f"{', '.join(map(repr, names))}; name the one to go by"
        )
    return scoring


def _last_of_each(search, rows: np.ndarray, iteration: np.ndarray) -> np.ndarray:
    """The last row of each candidate, whatever resources it was given."""
    last: dict[str, int] = {}
    for row in rows[np.argsort(iteration[rows], kind="stable")]:
        params = {
            name: value
            for name, value in search.cv_results_["params"][row].items()
            if name != getattr(search, "resource", None)
        }
        last[joblib.hash(params)] = int(row)
    return np.array(sorted(last.values()), dtype=np.intp)
