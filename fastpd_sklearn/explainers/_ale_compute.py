"""Accumulated local effects of a background: bins, two responses a row, means."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from fastpd_sklearn.explainers import _ale_effects
from fastpd_sklearn.explainers._ale_bins import Bins, number_bins, quantile_edges, without_empty
from fastpd_sklearn.explainers._ale_effects import LocalEffects
from fastpd_sklearn.explainers._ale_results import ALECurve, ALESurface
from fastpd_sklearn.explainers._category_order import similarity_order
from fastpd_sklearn.explainers._columns import Column, place_labels, read_column
from fastpd_sklearn.explainers._moves import Move, Responder
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import Selection
from fastpd_sklearn.forest import _rows

MANY_VALUES = 100_000
"""Values that are worth a pool of threads; NumPy lets them sort at the same time."""


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
    rng : numpy.random.RandomState
    report : callable
        Is told how many rows are done.
    """

    n_bins: int
    points: dict[int, object]
    categorical: frozenset[int]
    category_order: str
    confidence: float | None
    n_bootstrap: int
    n_threads: int
    rng: np.random.RandomState
    report: Callable[[int], None]


class Background:
    """Rows, their weights, and their columns in bins, each made once.

    Parameters
    ----------
    X : array, sparse matrix or data frame of shape (n_rows, n_columns)
    weights : ndarray of shape (n_rows,), positive, or None
    players : Players
        Their names are for messages.
    absent : float
        What an absent entry of a sparse matrix means.
    settings : Settings
    """

    def __init__(self, X, weights, players: Players, absent: float, settings: Settings) -> None:
        self.X, self.weights = X, weights
        self._names, self._absent, self._settings = players.names, absent, settings
        self._bins: dict[int, Bins] = {}

    def prepare(self, columns: list[int]) -> None:
        """Make the bins of some columns, several at a time where that is worth it."""
        n_threads = min(self._settings.n_threads, len(columns))
        if n_threads == 1 or self.X.shape[0] * len(columns) < MANY_VALUES:
            return
        with ThreadPoolExecutor(n_threads) as pool:
            list(pool.map(self.bins, columns))

    def bins(self, j: int) -> Bins:
        """The bins of a column."""
        if j not in self._bins:
            column = self._column(j)
            if not np.isfinite(column.values).any():
                raise ValueError(
                    f"the background has no finite value of {self._names[j]!r}, so that it has no "
                    "accumulated local effect; leave it out of `features`"
                )
            make = self._number_bins if column.labels is None else self._label_bins
            self._bins[j] = make(j, column)
        return self._bins[j]

    def _column(self, j: int) -> Column:
        as_labels = j in self._settings.categorical
        return read_column(self.X, j, as_labels=as_labels, absent=self._absent)

    def _number_bins(self, j: int, column: Column) -> Bins:
        values = column.values
        if j in self._settings.points:
            edges = self._given_edges(j, values)
        else:
            finite = np.isfinite(values)
            weights = self.weights
            if not finite.all():
                weights = None if weights is None else weights[finite]
                values = values[finite]
            edges = quantile_edges(values, weights, self._settings.n_bins)
        return number_bins(column.values, edges)

    def _given_edges(self, j: int, values: np.ndarray) -> np.ndarray:
        name, given = self._names[j], self._settings.points[j]
        try:
            edges = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"custom_values: {name!r} is a column of numbers, and its edges should be numbers, "
                f"got {given!r}; columns that are categories are named in `categorical_features`"
            ) from error
        if edges.ndim != 1 or len(edges) < 2 or not np.isfinite(edges).all():
            raise ValueError(
                f"custom_values: expected at least two finite edges of bins for {name!r}, got "
                f"{given!r}"
            )
        if np.any(np.diff(edges) <= 0):
            raise ValueError(f"custom_values: the edges for {name!r} do not ascend: {given!r}")
        kept = without_empty(edges, values)
        if not len(kept):
            raise ValueError(
                f"custom_values: no row of the background lies within the edges {given!r} of "
                f"{name!r}"
            )
        return kept

    def _label_bins(self, j: int, column: Column) -> Bins:
        codes = np.where(column.missing, -1, column.values).astype(np.intp)
        if j in self._settings.points:
            order = self._given_order(j, column.labels)
        elif self._settings.category_order == "coded":
            order = np.arange(len(column.labels))
        else:
            others = (self._column(k) for k in range(self.X.shape[1]) if k != j)
            weights = np.ones(len(codes)) if self.weights is None else self.weights
            order = similarity_order(codes, len(column.labels), others, weights)
        rank = np.full(len(order) + 1, -1, dtype=np.intp)
        rank[order] = np.arange(len(order))
        return Bins(column.labels[order], rank[codes], None, int(np.count_nonzero(codes < 0)))

    def _given_order(self, j: int, labels: np.ndarray) -> np.ndarray:
        given = list(self._settings.points[j])
        place = place_labels(labels, given)
        place = place[place >= 0].tolist()
        if sorted(place) != list(range(len(labels))):
            raise ValueError(
                f"custom_values: the order of {self._names[j]!r} should name each of its "
                f"categories {labels.tolist()} once, got {given!r}"
            )
        return np.array(place, dtype=np.intp)


def accumulated_effects(
    responder: Responder,
    background: Background,
    terms: list[Term],
    names: list[tuple[str, ...]],
    selection: Selection,
    settings: Settings,
) -> list[ALECurve | ALESurface]:
    """The effects of some terms, of one column or two.

    Parameters
    ----------
    responder : Responder
    background : Background
    terms : list of tuple of int
        Columns.
    names : list of tuple of str
        Theirs.
    selection : Selection
    settings : Settings

    Returns
    -------
    list of ALECurve or ALESurface
    """
    n_outputs = len(selection.outputs)
    kinds = [_Curve if len(term) == 1 else _Surface for term in terms]
    sums = [
        kind(term, [background.bins(j) for j in term], n_outputs, settings)
        for kind, term in zip(kinds, terms, strict=True)
    ]
    for one, name in zip(sums, names, strict=True):
        if isinstance(one, _Surface) and one.is_bare:
            raise ValueError(
                f"no row of the background has finite values of both {name[0]!r} and {name[1]!r}, "
                "so that they have no second-order effect; leave the pair out of `features`"
            )
    curves = [one for one in sums if isinstance(one, _Curve)]
    moves = [move for one in curves for move in one.moves]
    n_rows = background.X.shape[0]
    step = min(n_rows, responder.block_rows(max(1, len(moves))))
    for start in range(0, n_rows, step):
        part = slice(start, min(n_rows, start + step))
        X = background.X if step == n_rows else _rows.take(background.X, part)
        weights = None if background.weights is None else background.weights[part]
        draws = None
        if settings.n_bootstrap and curves:
            draws = settings.rng.poisson(1.0, (settings.n_bootstrap, X.shape[0]))
        if moves:
            effects = selection.values(responder.differences(X, [m.part(part) for m in moves]))
            k = 0
            for one in curves:
                one.add(part, effects[k : k + len(one.moves)], weights, draws)
                k += len(one.moves)
        for one in sums:
            if isinstance(one, _Surface) and one.moves:
                first, second = (move.part(part) for move in one.moves)
                one.add(
                    part, selection.values(responder.mixed_difference(X, first, second)), weights
                )
        settings.report(part.stop)
    return [
        one.result(name, selection.names, background.weights)
        for one, name in zip(sums, names, strict=True)
    ]


class _Curve:
    """Collects the local effects of one column."""

    def __init__(self, term: Term, bins: list[Bins], n_outputs: int, settings: Settings) -> None:
        self._term, self._bins = term, bins[0]
        bins = bins[0]
        self._settings, self._n_outputs = settings, n_outputs
        self._local = LocalEffects(bins.n_bins, n_outputs)
        self._bootstrap = np.zeros((settings.n_bootstrap, 1 + n_outputs, bins.n_bins))
        self.moves: list[Move] = []
        if not bins.n_bins:
            return
        if bins.share is not None:
            self._add_move(term[0], bins.place)
            return
        # A row's category is moved to the next one and to the one before.
        for shift in (0, -1):
            step = bins.place + shift
            within = (bins.place >= 0) & (step >= 0) & (step < bins.n_bins)
            self._add_move(term[0], np.where(within, step, -1))

    def _add_move(self, column: int, step: np.ndarray) -> None:
        self.moves.append(Move(column, self._bins.points, step))

    def add(self, part: slice, effects: np.ndarray, weights, draws) -> None:
        """Add rows; effects of shape (n_moves, n_rows, n_outputs)."""
        for move, effect in zip(self.moves, effects, strict=True):
            step = move.step[part]
            self._local.add(step, effect, weights)
            if draws is not None:
                self._add_draws(step, effect, draws if weights is None else draws * weights)

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

    def result(
        self, name: tuple[str, ...], output_names: tuple[str, ...], weights: np.ndarray | None
    ) -> ALECurve:
        """What the local effects add up to."""
        bins, local = self._bins, self._local
        centre = _ale_effects.centring(bins, weights)
        effect = _ale_effects.accumulate(local.mean, centre)
        lower, upper = self._limits(effect, centre)
        within = bins.place[bins.place >= 0]
        n_counts = len(bins.points) if bins.share is None else max(bins.n_bins, 1)
        return ALECurve(
            features=name,
            columns=self._term,
            output_names=output_names,
            grid_values=(bins.points,),
            effect=effect,
            local_effect=local.mean,
            local_std=local.deviation(),
            bin_counts=np.bincount(within, minlength=n_counts),
            lower=lower,
            upper=upper,
            n_outside=bins.n_outside,
            is_categorical=bins.share is None,
        )

    def _limits(self, effect: np.ndarray, centre: np.ndarray):
        confidence = self._settings.confidence
        if confidence is None:
            return None, None
        if not self._settings.n_bootstrap:
            error = _ale_effects.standard_error(self._local.mean_variance(), centre)
            width = _ale_effects.quantile_of_normal(confidence) * error
            return effect - width, effect + width
        weight, total = self._bootstrap[:, :1], self._bootstrap[:, 1:]
        drawn = weight > 0  # a bin of which no row was drawn keeps its mean
        means = np.where(drawn, total / np.where(drawn, weight, 1.0), self._local.mean)
        effects = _ale_effects.accumulate(means, centre)
        return tuple(np.quantile(effects, [(1 - confidence) / 2, (1 + confidence) / 2], axis=0))


class _Surface:
    """Collects the second differences of two columns of numbers."""

    def __init__(self, term: Term, bins: list[Bins], n_outputs: int, settings: Settings) -> None:
        self._term, self._bins = term, bins
        shape = tuple(one.n_bins for one in bins)
        self._total = np.zeros((n_outputs, *shape))
        within = (bins[0].place >= 0) & (bins[1].place >= 0)
        self._n_outside = int(np.count_nonzero(~within))
        self._within = within
        self.moves: list[Move] = []
        if 0 in shape:
            return
        for j, one in zip(term, bins, strict=True):
            self.moves.append(Move(j, one.points, np.where(within, one.place, -1)))

    @property
    def is_bare(self) -> bool:
        """Whether no row is in a bin of both columns."""
        return not self._within.any()

    def add(self, part: slice, effects: np.ndarray, weights) -> None:
        """Add rows; effects of shape (n_rows, n_outputs)."""
        within = self._within[part]
        cell = self._cells(part)[within]
        size = self._total[0].size
        for k, total in enumerate(self._total):
            values = effects[:, k] if weights is None else weights * effects[:, k]
            added = np.bincount(cell, values[within], size)
            total += added.reshape(total.shape)

    def _cells(self, part: slice) -> np.ndarray:
        first, second = self._bins
        return first.place[part] * second.n_bins + second.place[part]

    def result(
        self, name: tuple[str, ...], output_names: tuple[str, ...], weights: np.ndarray | None
    ) -> ALESurface:
        """What the local effects add up to."""
        points = tuple(bins.points for bins in self._bins)
        shape = tuple(bins.n_bins for bins in self._bins)
        counts = np.zeros(shape, np.int64)
        effect = np.zeros((len(self._total), *(n + 1 for n in shape)))
        if self.moves:
            cells = self._cells(slice(None))[self._within]
            counts += np.bincount(cells, minlength=counts.size).reshape(shape)
            effect += self._accumulated(counts == 0, points, weights)
        return ALESurface(
            features=name,
            columns=self._term,
            output_names=output_names,
            grid_values=points,
            effect=effect,
            bin_counts=counts,
            is_filled=counts == 0,
            n_outside=self._n_outside,
        )

    def _accumulated(self, is_empty: np.ndarray, points, weights) -> np.ndarray:
        weights = np.ones(len(self._within)) if weights is None else weights
        shares = _ale_effects.cell_shares(*self._bins, weights)
        local = self._total / np.where(is_empty, 1.0, shares.weight)
        return _ale_effects.interaction(_ale_effects.fill_empty(local, is_empty, points), shares)
