"""A model and an explainer small enough to know all answers by heart."""

import numpy as np

from fastpd_sklearn.explainers import BaseExplainer
from fastpd_sklearn.forest import Head


class Stumps:
    """``f(x) = sum over columns of heights[j] * [x[j] > thresholds[j]]``; NaN counts as above."""

    def __init__(self, thresholds, heights, strict=False, single=False):
        self.thresholds = np.asarray(thresholds, dtype=np.float64)
        self.heights = np.asarray(heights, dtype=np.float64)
        self.strict, self.single = strict, single
        self.n_features_in_ = len(self.heights)

    def steps(self, X):
        X = np.asarray(X, dtype=np.float64)
        if self.single:
            X = X.astype(np.float32).astype(np.float64)
        below = self.thresholds > X if self.strict else self.thresholds >= X
        return self.heights * ~below

    def predict(self, X):
        return self.steps(X).sum(axis=1)


class StumpEngine:
    """Exact values of :class:`Stumps`, without the model."""

    n_outputs = 1
    allow_nan = True

    def __init__(self, model):
        self.strict, self.single = model.strict, model.single
        self.table = (model.thresholds, model.heights)
        self.total, self.weight = np.zeros(len(model.heights)), 0.0

    def _steps(self, X):
        return Stumps(*self.table, self.strict, self.single).steps(X)

    @property
    def intercept(self):
        return np.array([self.total.sum() / self.weight])

    def update(self, X, sample_weight):
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        self.total = self.total + weights @ self._steps(X)
        self.weight += weights.sum()

    def common_terms(self, max_order):
        return []

    def index_values(self, X, index, terms):
        effects = self._steps(X) - self.total / self.weight
        zero = np.zeros(len(X))
        return np.stack([effects[:, t[0]] if len(t) == 1 else zero for t in terms], axis=1)[
            :, :, None
        ]

    def predict(self, X):
        return self._steps(X).sum(axis=1)[:, None]

    def index_blocks(self, X, index, terms, n_values):
        for k, term in enumerate(terms):
            yield np.array([k]), self.index_values(X, index, [term])

    def pair_grid(self, X, pairs):
        return None

    def listed_categories(self, column):
        return None

    def levels(self, player):
        return None

    def split_points(self, column):
        return self.table[0][[column]]


class StumpExplainer(BaseExplainer):
    def _make_engine(self, model, X, players):
        return StumpEngine(model), Head(additive=("predict", "raw"))
