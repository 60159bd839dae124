"""What is measured on: generated rows, models fitted to them, both kept in a temporary folder."""

from __future__ import annotations

import getpass
import hashlib
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import joblib
import numpy as np
from scipy.stats.mstats import mquantiles

from fastpd_sklearn.forest import find_reader

CACHE = Path(tempfile.gettempdir()) / f"fastpd-benchmarks-{getpass.getuser()}"
BLOCK = 10_000
TRAINING_ROWS = 20_000
TRAINING_BLOCK = 10**6
"""Number of the first block of the rows that models are fitted to, beyond all explained rows."""
N_CLASSES = {"xgblogit": 2, "xgbsoftmax": 3}


@dataclass(frozen=True)
class Case:
    """One model, background and set of rows to explain."""

    model: str
    n_background: int
    n_rows: int
    n_columns: int
    n_trees: int = 100
    threads: int = 2


def make_block(n_columns: int, number: int) -> np.ndarray:
    """Correlated columns of several kinds: bell-shaped, counts with many ties, heavy-tailed."""
    loadings = np.random.default_rng(n_columns).normal(size=(8, n_columns)) / 3
    rng = np.random.default_rng([n_columns, number])
    X = rng.normal(size=(BLOCK, 8)) @ loadings + 0.6 * rng.normal(size=(BLOCK, n_columns))
    X[:, 1::4] = np.minimum(np.floor(np.exp(X[:, 1::4])), 20)
    X[:, 2::4] = np.exp(1.5 * X[:, 2::4])
    return X.astype(np.float32)


def make_rows(n_rows: int, n_columns: int, first_block: int = 0) -> np.ndarray:
    """Rows as C-contiguous float32; fewer rows are the first ones of more."""
    blocks = range(first_block, first_block - (-n_rows // BLOCK))
    X = np.empty((n_rows, n_columns), np.float32)
    for i, block in enumerate(blocks):
        part = X[i * BLOCK : (i + 1) * BLOCK]
        part[:] = make_block(n_columns, block)[: len(part)]
    return X


def make_target(X: np.ndarray, is_steep: bool = False) -> np.ndarray:
    """Main effects of all columns, of decreasing weight, and interactions of neighbours.

    Where the weight falls off steeply, and both are of the same columns, fewer meet in the trees.
    """
    rng = np.random.default_rng(0)
    n_columns = X.shape[1]
    place = np.arange(n_columns)
    falling = np.exp(-place / 40) if is_steep else 1 / (1 + place / 30)
    weight = rng.choice([-1.0, 1.0], n_columns) * falling
    squashed = np.tanh(X.astype(np.float64) / 2)
    pairs = squashed * (np.roll(X, 1, axis=1) > 0.3)
    of_pairs = weight if is_steep else weight[::-1]
    return squashed @ weight + pairs @ of_pairs + rng.normal(size=len(X))


def cached_rows(n_rows: int, n_columns: int) -> np.ndarray:
    path = CACHE / f"rows-{n_rows}-{n_columns}.npy"
    if not path.exists():
        write(path, lambda part: np.save(part, make_rows(n_rows, n_columns)))
    return np.load(path)


def write(path: Path, save: Callable) -> None:
    """Write a file as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{os.getpid()}-{path.name}")
    save(part)
    part.rename(path)


def new_model(name: str, n_trees: int):
    """An unfitted model."""
    kind, _, size = name.partition("_")
    if kind.startswith("xgb"):
        from xgboost import XGBClassifier, XGBRegressor

        depth, _, n_bins = size.partition("b")
        more = {"objective": "count:poisson"} if kind == "xgbpoisson" else {}
        if n_bins:
            more["max_bin"] = int(n_bins)
        make = XGBClassifier if kind in N_CLASSES else XGBRegressor
        return make(n_estimators=n_trees, max_depth=int(depth), learning_rate=0.1, **more)
    if kind == "lgb":
        from lightgbm import LGBMRegressor

        return LGBMRegressor(n_estimators=n_trees, num_leaves=int(size), verbose=-1)
    from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor

    if kind == "hgb":
        return HistGradientBoostingRegressor(
            max_iter=n_trees, max_depth=int(size), max_leaf_nodes=None, early_stopping=False
        )
    depth = None if size == "full" else int(size)
    return RandomForestRegressor(n_trees, max_depth=depth, max_features=0.3, random_state=0)


def fit_model(case: Case):
    model = new_model(case.model, case.n_trees)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=-1)
    X = make_rows(TRAINING_ROWS, case.n_columns, TRAINING_BLOCK)
    kind = case.model.partition("_")[0]
    target = make_target(X, is_steep=kind == "xgbsteep")
    if kind == "xgbpoisson":
        target = np.exp(target / 4)
    elif kind in N_CLASSES:
        n = N_CLASSES[kind]
        target = np.searchsorted(np.quantile(target, np.arange(1, n) / n), target)
    return model.fit(X, target)


def cached_model(case: Case):
    path = CACHE / f"{case.model}-{case.n_trees}-{case.n_columns}.joblib"
    if not path.exists():
        write(path, lambda part: joblib.dump(fit_model(case), part))
    model = joblib.load(path)
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=case.threads)
    if case.model.startswith("xgb"):
        model.get_booster().set_param({"nthread": case.threads})
    return model


class Inputs:
    """What every contender of a case is given."""

    def __init__(self, case: Case):
        X = cached_rows(max(case.n_rows, case.n_background), case.n_columns)
        self.case = case
        self.model = cached_model(case)
        self.predicted = X
        self.rows = X[: case.n_rows]
        self.background = X[: case.n_background]
        self.names = [f"x{j}" for j in range(case.n_columns)]

    @cached_property
    def frames(self):
        """Rows and background as data frames whose columns are contiguous."""
        import pandas as pd

        X = pd.DataFrame(np.asfortranarray(self.predicted), columns=self.names, copy=False)
        return X.iloc[: self.case.n_rows], X.iloc[: self.case.n_background]

    @property
    def sample(self) -> np.ndarray:
        """Numbers of the rows whose values are compared: the first and the last ones."""
        n = self.case.n_rows
        return np.unique(np.concatenate([np.arange(min(100, n)), np.arange(max(0, n - 100), n)]))

    def some(self, n: int) -> np.ndarray:
        """Numbers of up to ``n`` rows, those that are compared first."""
        others = np.setdiff1d(np.arange(min(self.case.n_rows, n + 200)), self.sample)
        return np.concatenate([self.sample, others])[:n]

    def grid(self, n_points: int) -> np.ndarray:
        """Equally spaced points from the 5 % to the 95 % quantile of each column, float32."""
        ends = mquantiles(self.background, prob=(0.05, 0.95), axis=0)
        return np.linspace(*np.asarray(ends), n_points).astype(np.float32)

    def pieces(self, column: int) -> np.ndarray:
        """A number within each piece of an XGBoost model's curves along a column."""
        forest = find_reader(self.model).read(self.model).forest
        breaks = np.unique(forest.threshold[forest.feature == column].astype(np.float32))
        return np.append(np.nextafter(breaks[:1], np.float32(-np.inf)), breaks)

    def mean(self) -> float:
        """Mean prediction over the background."""
        return float(self.model.predict(self.background).mean(dtype=np.float64))

    def fingerprint(self) -> dict[str, str]:
        """Tells whether two contenders have worked on the same."""
        forest = find_reader(self.model).read(self.model).forest
        parts = {
            "model": [forest.feature, forest.threshold, forest.value, forest.cover],
            "background": [self.background],
            "rows": [self.rows],
        }
        return {name: digest(*arrays) for name, arrays in parts.items()}


def digest(*arrays: np.ndarray) -> str:
    """Of the bits of some arrays."""
    made = hashlib.blake2b(digest_size=8)
    for array in arrays:
        made.update(np.ascontiguousarray(array))
    return made.hexdigest()
