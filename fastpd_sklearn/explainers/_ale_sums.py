"""Local effects added up over rows, those of one column and those of two."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers import _ale_effects
from fastpd_sklearn.explainers._ale_bins import Bins
from fastpd_sklearn.explainers._ale_effects import CellShares, LocalEffects
from fastpd_sklearn.explainers._ale_results import ALECurve, ALESurface
from fastpd_sklearn.explainers._moves import Move
from fastpd_sklearn.explainers._protocol import Term

DRAW_ROWS = 256
"""Rows whose draws of the bootstrap come from one stream of random numbers."""


@dataclass(frozen=True, eq=False)
class Settings:
    """How effects are asked for; see :class:`ALEExplainer`.

    Parameters
    ----------
    n_bins : int
    points : dict of int to array-like
        Edges or categories that the user gave, by column.
    categorical : frozenset of int
        Columns of numbers that are categories.
    category_order : {"similarity", "coded"}
    confidence : float or None
    n_bootstrap : int
    n_threads : int
    seed : int
        Of the draws of the bootstrap.
    """

    n_bins: int
    points: dict[int, object]
    categorical: frozenset[int]
    category_order: str
    confidence: float | None
    n_bootstrap: int
    n_threads: int
    seed: int

    def draws(self, start: int, stop: int) -> np.ndarray | None:
        """How often each row is drawn, shape (n_bootstrap, n_rows); None if there are no draws.

        A row's number decides, whichever rows come with it.
        """
        if not self.n_bootstrap:
            return None
        streams = range(start // DRAW_ROWS, -(-stop // DRAW_ROWS))
        shape = (self.n_bootstrap, DRAW_ROWS)
        drawn = [np.random.default_rng([self.seed, k]).poisson(1.0, shape) for k in streams]
        first = streams.start * DRAW_ROWS
        return np.concatenate(drawn, axis=1)[:, start - first : stop - first]


class CurveSums:
    """The local effects of one column, added up over rows.

    Parameters
    ----------
    term : tuple of one int
    points : ndarray of shape (n_points,)
        Edges of bins, or labels in order.
    is_categorical : bool
    n_outputs, n_bootstrap : int
    """

    def __init__(
        self, term: Term, points: np.ndarray, is_categorical: bool, n_outputs: int, n_bootstrap: int
    ) -> None:
        self.term, self.points, self.is_categorical = term, (points,), is_categorical
        self._n_steps, self._n_outputs = len(points) - 1, n_outputs
        n_places = len(points) if is_categorical else max(1, self._n_steps)
        self._local = LocalEffects(self._n_steps, n_outputs)
        self._counts, self._n_outside = np.zeros(n_places, np.int64), 0
        self._weight, self._inside = np.zeros((2, n_places))
        self._bootstrap = np.zeros((n_bootstrap, 1 + n_outputs, self._n_steps))

    def notice(self, bins: dict[int, Bins], weights: np.ndarray | None) -> None:
        """Count rows by their places."""
        own = bins[self.term[0]]
        place, share, n_places = own.place, own.share, len(self._counts)
        if np.any(place < 0):
            within = place >= 0
            place, share = place[within], None if share is None else share[within]
            weights = None if weights is None else weights[within]
        self._counts = self._counts + np.bincount(place, minlength=n_places)
        self._weight = self._weight + np.bincount(place, weights, n_places)
        if share is not None:
            behind = share if weights is None else weights * share
            self._inside = self._inside + np.bincount(place, behind, n_places)
        self._n_outside += own.n_outside

    def moves(self, bins: dict[int, Bins]) -> list[Move]:
        """The steps whose effects are to be added: of every row within its bin.

        A row's category is moved to the next one and to the one before.
        """
        own = bins[self.term[0]]
        if not self._n_steps:
            return []
        if not self.is_categorical:
            return [Move(self.term[0], own.points, own.place)]
        out = []
        for shift in (0, -1):
            step = own.place + shift
            within = (own.place >= 0) & (step >= 0) & (step < self._n_steps)
            out.append(Move(self.term[0], own.points, np.where(within, step, -1)))
        return out

    def add(self, moves: list[Move], effects: np.ndarray, weights, draws) -> None:
        """Add rows; effects of shape (n_moves, n_rows, n_outputs)."""
        for move, effect in zip(moves, effects, strict=True):
            self._local.add(move.step, effect, weights)
            if draws is not None:
                self._add_draws(move.step, effect, draws if weights is None else draws * weights)

    def _add_draws(self, place: np.ndarray, effects: np.ndarray, weights: np.ndarray) -> None:
        order = np.argsort(place, kind="stable")
        order = order[np.count_nonzero(place < 0) :]
        if not len(order):
            return
        bins, starts = np.unique(place[order], return_index=True)
        weights = weights[:, order]
        for k in range(1 + self._n_outputs):
            factor = 1.0 if k == 0 else effects[order, k - 1]
            self._bootstrap[:, k, bins] += np.add.reduceat(weights * factor, starts, axis=1)

    def __add__(self, other: CurveSums) -> CurveSums:
        size = self._n_outputs, len(self._bootstrap)
        out = CurveSums(self.term, self.points[0], self.is_categorical, *size)
        for one in (self, other):
            out._local.merge(one._local)
            out._counts = out._counts + one._counts
            out._weight, out._inside = out._weight + one._weight, out._inside + one._inside
            out._n_outside += one._n_outside
            out._bootstrap += one._bootstrap
        return out

    def result(
        self, name: tuple[str, ...], output_names: tuple[str, ...], settings: Settings
    ) -> ALECurve:
        """What the local effects add up to."""
        local = self._local
        centre = np.empty(0)
        if self._n_steps:
            centre = _ale_effects.centring(
                self._weight, None if self.is_categorical else self._inside
            )
        effect = _ale_effects.accumulate(local.mean, centre)
        lower, upper = self._limits(effect, centre, settings.confidence)
        return ALECurve(
            features=name,
            columns=self.term,
            output_names=output_names,
            grid_values=self.points,
            effect=effect,
            local_effect=local.mean,
            local_std=local.deviation(),
            bin_counts=self._counts,
            lower=lower,
            upper=upper,
            n_outside=self._n_outside,
            is_categorical=self.is_categorical,
        )

    def _limits(self, effect: np.ndarray, centre: np.ndarray, confidence: float | None):
        if confidence is None:
            return None, None
        if not len(self._bootstrap):
            error = _ale_effects.standard_error(self._local.mean_variance(), centre)
            width = _ale_effects.quantile_of_normal(confidence) * error
            return effect - width, effect + width
        weight, total = self._bootstrap[:, :1], self._bootstrap[:, 1:]
        drawn = weight > 0  # a bin of which no row was drawn keeps its mean
        means = np.where(drawn, total / np.where(drawn, weight, 1.0), self._local.mean)
        effects = _ale_effects.accumulate(means, centre)
        return tuple(np.quantile(effects, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0))


class SurfaceSums:
    """The second differences of two columns of numbers, added up over rows.

    Parameters
    ----------
    term : tuple of two int
    points : tuple of two ndarray
        Edges.
    n_outputs : int
    """

    is_categorical = False

    def __init__(self, term: Term, points: tuple[np.ndarray, np.ndarray], n_outputs: int) -> None:
        self.term, self.points = term, points
        self._shape = tuple(len(edges) - 1 for edges in points)
        self._total = np.zeros((n_outputs, *self._shape))
        self._counts = np.zeros(self._shape, np.int64)
        self._shares = CellShares(*np.zeros((4, *self._shape)))
        self._n_within = self._n_outside = 0

    @property
    def is_bare(self) -> bool:
        """Whether no row is in a bin of both columns."""
        return not self._n_within

    def _within(self, bins: dict[int, Bins]) -> np.ndarray:
        first, second = (bins[j].place for j in self.term)
        return (first >= 0) & (second >= 0)

    def notice(self, bins: dict[int, Bins], weights: np.ndarray | None) -> None:
        """Count rows by their places."""
        within = self._within(bins)
        n_within = int(np.count_nonzero(within))
        self._n_within += n_within
        self._n_outside += len(within) - n_within
        if 0 in self._shape:
            return
        first, second = (bins[j] for j in self.term)
        cells = (first.place * second.n_bins + second.place)[within]
        self._counts = self._counts + np.bincount(cells, minlength=self._counts.size).reshape(
            self._shape
        )
        self._shares = self._shares + _ale_effects.cell_shares(first, second, weights)

    def moves(self, bins: dict[int, Bins]) -> list[Move]:
        """The steps whose mixed difference is to be added."""
        if 0 in self._shape:
            return []
        within = self._within(bins)
        return [Move(j, bins[j].points, np.where(within, bins[j].place, -1)) for j in self.term]

    def add(self, moves: list[Move], effects: np.ndarray, weights: np.ndarray | None) -> None:
        """Add rows; effects of shape (n_rows, n_outputs)."""
        first, second = (move.step for move in moves)
        within = first >= 0
        cell = (first * self._shape[1] + second)[within]
        for k, total in enumerate(self._total):
            values = effects[:, k] if weights is None else weights * effects[:, k]
            total += np.bincount(cell, values[within], total.size).reshape(total.shape)

    def __add__(self, other: SurfaceSums) -> SurfaceSums:
        out = SurfaceSums(self.term, self.points, len(self._total))
        for one in (self, other):
            out._total += one._total
            out._counts += one._counts
            out._shares = out._shares + one._shares
            out._n_within += one._n_within
            out._n_outside += one._n_outside
        return out

    def result(
        self, name: tuple[str, ...], output_names: tuple[str, ...], settings: Settings
    ) -> ALESurface:
        """What the local effects add up to."""
        counts = self._counts
        effect = np.zeros((len(self._total), *(n + 1 for n in self._shape)))
        if 0 not in self._shape:
            local = self._total / np.where(counts == 0, 1.0, self._shares.weight)
            local = _ale_effects.fill_empty(local, counts == 0, self.points)
            effect += _ale_effects.interaction(local, self._shares)
        return ALESurface(
            features=name,
            columns=self.term,
            output_names=output_names,
            grid_values=self.points,
            effect=effect,
            bin_counts=counts,
            is_filled=counts == 0,
            n_outside=self._n_outside,
        )


@dataclass(frozen=True, eq=False)
class AllSums:
    """The sums of all terms, and whether the model takes missing numbers, as far as rows tell.

    Parameters
    ----------
    sums : tuple of CurveSums and SurfaceSums
    takes_missing : bool
    """

    sums: tuple[CurveSums | SurfaceSums, ...]
    takes_missing: bool

    def __add__(self, other: AllSums) -> AllSums:
        pairs = zip(self.sums, other.sums, strict=True)
        return AllSums(
            tuple(one + two for one, two in pairs), self.takes_missing or other.takes_missing
        )
