"""Engines that keep the rows of the background, as codes, and walk them through the trees.

What does not add up over the trees (the response), or would take too many sets of violated sides
(deep trees), is found from the rows themselves. A row is kept as one small integer a column.
"""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from itertools import combinations

import numpy as np

from fastpd_sklearn.core.attribution import INDICES
from fastpd_sklearn.core.background import check_array, join_rows, pack_rows, unpack_rows
from fastpd_sklearn.core.effort import BackgroundEffort, background_effort
from fastpd_sklearn.core.jumps import response_sums
from fastpd_sklearn.core.model import CoreModel
from fastpd_sklearn.core.routing import BinnedRows
from fastpd_sklearn.core.walk_model import WalkModel
from fastpd_sklearn.core.walking import Points
from fastpd_sklearn.explainers import _outputs
from fastpd_sklearn.explainers._binned import has_sentinel, threads_for
from fastpd_sklearn.explainers._empirical import EmpiricalEngine
from fastpd_sklearn.explainers._engine import TreeEngine, at_places
from fastpd_sklearn.explainers._protocol import Term
from fastpd_sklearn.explainers._response import core_link
from fastpd_sklearn.forest import Head, Reading
from fastpd_sklearn.forest._forest import ZERO_THRESHOLD, Forest

MOST_CELLS = 2**18
"""Cells of a product of points that are looked at at a time."""

GROWTH = 32
"""Curves that are made with one that is asked for, by the number of those made before."""

CHEAP = 2**21
"""Rows times trees up to which so many curves are made with the first one, too."""

BLOCK_ROWS = 256
"""Rows whose pairs are looked at at a time where all of them would be too many cells."""


class BackgroundEngine(TreeEngine):
    """Base of engines whose state is the background itself.

    Its memory, and its pickles, grow with the background: by a byte or two a row and tested
    column.
    """

    indices = ("component",)

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.rows: BinnedRows | None = None
        self.weights: np.ndarray | None = None
        self.sums: list[np.ndarray] | None = None
        super().__init__(reading, players, n_jobs)

    def _make_core(self, forest: Forest, owner: np.ndarray, n_players: int) -> WalkModel:
        return WalkModel(forest, owner, n_players, ZERO_THRESHOLD)

    def _make_coverage(self) -> None:
        return None

    def derive(self) -> None:
        """Nothing: the rows are all there is."""

    @property
    def n_rows(self) -> int:
        """Number of rows of the background."""
        return self.rows.n_rows

    @property
    def walks(self) -> WalkModel:
        """The forest as rows walk through it."""
        return self.core

    @property
    def total(self) -> float:
        """Weight of the background."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    def threads_for(self, n_rows: int) -> int:
        """Threads for some rows: starting them must not cost more than they save."""
        return threads_for(n_rows * self.core.n_trees, self.n_threads)

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        rows = self.bin(X)
        self._add(rows, sample_weight, self._sums(rows, sample_weight))

    def merge(self, other: BackgroundEngine) -> None:
        """Add the background of another engine for the same forest."""
        self._add(other.rows, other.weights, other.sums)

    def _add(self, rows: BinnedRows, weights: np.ndarray | None, sums: list[np.ndarray]) -> None:
        self.rows, self.weights = join_rows(self.core.bins, self.rows, self.weights, rows, weights)
        if self.sums is not None:
            sums = [one + other for one, other in zip(self.sums, sums, strict=True)]
        self.sums = sums
        self.intercept = self._base() + sums[0] / self.total

    def packed(self) -> dict[str, np.ndarray]:
        """The state as arrays."""
        sums = {f"sum_{k}": array for k, array in enumerate(self.sums)}
        return {**pack_rows(self.rows, self.weights), **sums}

    def unpack(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over a state from :meth:`packed`."""
        rows, weights = unpack_rows(self.core.bins, arrays)
        shapes = [(self.n_outputs,), *self._curve_shapes()]
        sums = [arrays[f"sum_{k}"] for k in range(len(shapes))]
        for k, shape in enumerate(shapes):
            check_array(f"sum_{k}", sums[k], "float64", shape)
        self._add(rows, weights, sums)

    def _curve_shapes(self) -> list[tuple[int, int]]:
        """Shapes of what is added up beside the response."""
        return []

    @abstractmethod
    def _sums(self, rows: BinnedRows, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        """What is added up over rows, the first of them the response less :meth:`_base`."""

    def _base(self) -> np.ndarray | float:
        return 0.0

    def common_terms(self, max_order: int | None) -> list[Term]:
        """All sets of at least two of the players that the trees test, up to a size."""
        tested = [k for k, slots in enumerate(self.walks.slots) if len(slots)]
        sizes = range(2, min(len(tested), max_order or len(tested)) + 1)
        return [term for size in sizes for term in combinations(tested, size)]

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """Components of terms, shape (n_rows, n_terms, n_outputs); see :class:`Engine`."""
        if index != "component":
            raise ValueError(f"no {index} values from rows that are walked through the trees")
        rows = self.bin(X)
        found = self._components(rows, terms)
        return np.stack([found[term] for term in terms], axis=1)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """What :meth:`index_values` gives, some terms at a time."""
        step = max(1, n_values // (X.shape[0] * self.n_outputs))
        for start in range(0, len(terms), step):
            part = terms[start : start + step]
            yield np.arange(start, start + len(part)), self.index_values(X, index, part)

    def levels(self, player: int) -> np.ndarray | None:
        """The component of one player between the split points of its column, missing last."""
        n_slots = len(self.walks.slots[player])
        if has_sentinel(self.input_map):
            return None
        if n_slots != 1:
            return None if n_slots else np.zeros((self.n_outputs, 2))
        return self._levels(player)

    @abstractmethod
    def _levels(self, player: int) -> np.ndarray:
        """The component of a player of one binned column, by its codes."""

    @abstractmethod
    def _components(self, rows: BinnedRows, terms: list[Term]) -> dict[Term, np.ndarray]:
        """Components of terms, and maybe of others, each of shape (n_rows, n_outputs)."""

    def _values(self, rows: BinnedRows, term: Term, link) -> np.ndarray:
        """``v`` of a term for each of some rows, shape (n_rows, n_outputs)."""
        if len(term) > 2:
            return self._values_one_by_one(rows, term, link)
        made = [self.walks.points(rows, player) for player in term]
        cells = int(np.prod([points.size for points, _ in made]))
        if len(term) == 2 and cells > MOST_CELLS and rows.n_rows > BLOCK_ROWS:
            blocks = np.split(np.arange(rows.n_rows), range(BLOCK_ROWS, rows.n_rows, BLOCK_ROWS))
            return np.concatenate(
                [self._values(self.take(rows, block), term, link) for block in blocks]
            )
        means = self._means([points for points, _ in made], link)
        return means[(slice(None), *(place for _, place in made))].T

    def _means(self, points: list, link) -> np.ndarray:
        """Mean response of the background with players held at points."""
        threads = self.threads_for(self.n_rows)
        return self.walks.response_sums(self.rows, points, link, self.weights, threads) / self.total

    def _values_one_by_one(self, rows: BinnedRows, term: Term, link) -> np.ndarray:
        """The same for larger sets: all but two players are held in the background itself."""
        out = []
        for r in range(rows.n_rows):
            held = self.walks.held(self.rows, term[:-2], rows, r)
            row = self.take(rows, [r])
            points = [self.walks.points(row, player)[0] for player in term[-2:]]
            sums = self.walks.response_sums(
                held, points, link, self.weights, self.threads_for(held.n_rows)
            )
            out.append(sums[:, 0, 0] / self.total)
        return np.array(out)

    def take(self, rows: BinnedRows, index) -> BinnedRows:
        """Some rows, by number."""
        out, columns = self.core.bins.empty_rows(len(index))
        for column, codes in zip(columns, rows.columns(), strict=True):
            column[:] = codes[index]
        return out


DERIVED = ("_margins", "_means_along")
"""What a `ResponseEngine` finds again from its rows when it is asked for."""


class ResponseEngine(BackgroundEngine):
    """Partial dependence of a response on which the trees do not add up.

    It is the mean over the background of the response to individual curves of margins.

    Parameters
    ----------
    reading : Reading
    players : sequence of ndarray of int
    n_jobs : int or None
    """

    def __init__(self, reading: Reading, players, n_jobs: int | None) -> None:
        self.head: Head = reading.head
        super().__init__(reading, players, n_jobs)
        self.n_outputs = self.head.respond(np.zeros((1, reading.forest.n_outputs))).shape[1]

    @property
    def link(self):
        """From margins to the response: by name where the core knows it."""
        return core_link(self.head)

    def predict(self, X) -> np.ndarray:
        """The response to every row, shape (n_rows, n_outputs)."""
        return self.head.respond(super().predict(X))

    def individual_response(self, X, term: Term, grids) -> np.ndarray:
        """As :meth:`individual`, after the inverse link."""
        margins = self.individual(X, term, grids)
        responses = self.head.respond(margins.reshape(len(margins), -1).T)
        return responses.T.reshape(-1, *margins.shape[1:])

    def update(self, X, sample_weight: np.ndarray | None) -> None:
        """Add rows to the background."""
        rows = self.bin(X)
        margins = self.walks.margins(rows, self.threads_for(rows.n_rows))
        self._add(rows, sample_weight, [self._sum_response(margins, sample_weight)])
        if self.n_rows == rows.n_rows:
            self._margins = margins

    def _sums(self, rows: BinnedRows, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        margins = self.walks.margins(rows, self.threads_for(rows.n_rows))
        return [self._sum_response(margins, sample_weight)]

    def _sum_response(self, margins: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        if not callable(self.link):
            return response_sums(margins, weights, self.link)
        response = np.asarray(self.link(np.ascontiguousarray(margins.T)), np.float64)
        weights = np.ones(len(response)) if weights is None else weights
        return weights @ response.reshape(len(weights), -1)

    def _add(self, rows: BinnedRows, weights: np.ndarray | None, sums: list[np.ndarray]) -> None:
        self._forget()
        super()._add(rows, weights, sums)

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        for name in DERIVED:
            state.pop(name, None)
        return state

    def _forget(self) -> None:
        for name in DERIVED:
            self.__dict__.pop(name, None)

    @cached_property
    def _margins(self) -> np.ndarray:
        """Margins of the background, shape (n margins, n_rows)."""
        return self.walks.margins(self.rows, self.threads_for(self.n_rows))

    @cached_property
    def _means_along(self) -> dict[int, np.ndarray]:
        """Mean response by the codes of players, as far as they have been asked for."""
        return {}

    def _levels(self, player: int) -> np.ndarray:
        known = self._means_along
        if player not in known:
            self._find_means([player, *self._likely_next(player)])
        return known[player] - self.intercept[:, None]

    def _likely_next(self, player: int) -> list[int]:
        """Players whose curves cost little beside that of a player, and may be asked for next."""
        known, players = self._means_along, list(range(len(self.walks.slots)))
        if callable(self.link) or not self.walks.shares(player, self.n_rows):
            return []
        others = [
            k
            for k in players[player + 1 :] + players[:player]
            if k not in known and self.walks.shares(k, self.n_rows)
        ]
        is_cheap = self.n_rows * self.walks.n_trees <= CHEAP
        return others[: GROWTH * max(len(known), is_cheap)]

    def _find_means(self, players: list[int]) -> None:
        """Make curves along players known."""
        points = [self.walks.alphabet(player) for player in players]
        threads = self.threads_for(self.n_rows)
        shared = [self.walks.shares(player, self.n_rows) for player in players]
        margins = self._margins if any(shared) and not callable(self.link) else None
        sums = self.walks.sums_along(self.rows, points, self.link, self.weights, threads, margins)
        means = {k: found / self.total for k, found in zip(players, sums, strict=True)}
        self._means_along.update(means)

    def _components(self, rows: BinnedRows, terms: list[Term]) -> dict[Term, np.ndarray]:
        closure = _outputs.closure(terms)
        self._look_ahead([term[0] for term in closure if len(term) == 1], rows.n_rows)
        known: dict[Term, np.ndarray] = {}
        for term in closure:
            component = self._response_to(rows, term) - self.intercept
            for part in _outputs.subsets(term):
                if part != term:
                    component = component - known[part]
            known[term] = component
        return known

    def _look_ahead(self, players: list[int], n_points: int) -> None:
        """Make those curves known that are to be read at many points."""
        lacking = [k for k in players if k not in self._means_along and self._is_read(k, n_points)]
        if lacking:
            self._find_means(lacking)

    def _is_read(self, player: int, n_points: int) -> bool:
        """Whether it is sooner to read means off a curve than to make those of some points."""
        if len(self.walks.slots[player]) != 1:
            return False
        n_codes = self.walks.alphabet(player).size
        return self.walks.shares(player, self.n_rows) or n_codes <= 2 * n_points

    def _response_to(self, rows: BinnedRows, term: Term) -> np.ndarray:
        """``v`` of a term for each of some rows, shape (n_rows, n_outputs)."""
        if len(term) != 1 or term[0] not in self._means_along:
            return self._values(rows, term, self.link)
        means = self._means_along[term[0]]
        codes = rows.columns()[self.walks.slots[term[0]][0]]
        return means[:, np.minimum(codes, means.shape[1] - 1)].T

    def pair_grid(self, X, pairs: list[Term]) -> np.ndarray:
        """Components of pairs on the product of the rows with themselves."""
        rows = self.bin(X)
        out = np.empty((len(pairs), self.n_outputs, rows.n_rows, rows.n_rows))
        players = sorted({player for pair in pairs for player in pair})
        made = {player: self.walks.points(rows, player) for player in players}
        single = {}
        for player, (points, place) in made.items():
            single[player] = self._means([points], self.link)[:, place] - self.intercept[:, None]
        for k, (a, b) in enumerate(pairs):
            means = self._means([made[a][0], made[b][0]], self.link)
            out[k] = at_places(means, [made[a][1], made[b][1]])
            out[k] -= single[a][:, :, None] + single[b][:, None, :]
            out[k] -= self.intercept[:, None, None]
        return out


class DeepEngine(BackgroundEngine):
    """Components of at most two players for trees of any depth.

    The state are the components of all single columns as functions of their codes, added up over
    the rows, and the rows: pairs are found on demand, at the points that are asked for. What takes
    too many walks, pairs at very many points and larger sets, is found from the masks of the rows,
    which are then counted.

    Parameters
    ----------
    reading : Reading
    players : sequence of ndarray of int
    n_jobs : int or None
    """

    indices = tuple(INDICES)

    def index_values(self, X, index: str, terms: list[Term]) -> np.ndarray:
        """Values of terms under an index, shape (n_rows, n_terms, n_outputs)."""
        if index != "component":
            return self._counts.index_values(X, index, terms)
        return super().index_values(X, index, terms)

    def index_blocks(self, X, index: str, terms: list[Term], n_values: int):
        """What :meth:`index_values` gives, some terms at a time."""
        if index != "component":
            yield from self._counts.index_blocks(X, index, terms, n_values)
        else:
            yield from super().index_blocks(X, index, terms, n_values)

    def _sums(self, rows: BinnedRows, sample_weight: np.ndarray | None) -> list[np.ndarray]:
        total, curves = self.walks.single_components(
            rows, self._curve_points(), sample_weight, self.threads_for(rows.n_rows)
        )
        return [total, *curves]

    def _curve_points(self) -> list[Points]:
        """All codes of each player that has a curve."""
        return [
            self.walks.alphabet(player) if self._has_curve(player) else self.walks.nowhere(player)
            for player in range(len(self.walks.slots))
        ]

    def _curve_shapes(self) -> list[tuple[int, int]]:
        return [(self.n_outputs, points.size) for points in self._curve_points()]

    def _base(self) -> np.ndarray:
        return self.core.intercept

    def _add(self, rows: BinnedRows, weights: np.ndarray | None, sums: list[np.ndarray]) -> None:
        self._forget_counts()
        super()._add(rows, weights, sums)

    def __getstate__(self) -> dict:
        state = super().__getstate__()
        state.pop("_counts", None)
        return state

    def _forget_counts(self) -> None:
        self.__dict__.pop("_counts", None)

    @cached_property
    def _counts(self) -> EmpiricalEngine:
        """The forest by its leaves, and their coverage by the rows: made when asked for first."""
        left = {"rows", "weights", "sums", "core", "coverage", "intercept"}
        engine = object.__new__(EmpiricalEngine)
        engine.__dict__.update({k: v for k, v in self.__dict__.items() if k not in left})
        engine.core, engine.background = CoreModel(*self.walks.made_from), None
        engine.derive()
        if self.rows is not None:  # as it is for groups of the background that are still empty
            engine.add_rows(self.rows, self.weights)
        return engine

    def counted(self) -> EmpiricalEngine:
        """The background by its masks, as for other numbers of rows; see `TreeEngine`."""
        return self._counts

    def _by_counts(self, rows: BinnedRows, terms: list[Term]) -> dict[Term, np.ndarray]:
        counts, n_threads = self._counts, self.threads_for(rows.n_rows)
        values = counts.core.attribute(rows, counts.coverage, "component", terms, n_threads)
        return {term: value.T for term, value in zip(terms, values, strict=True)}

    def common_terms(self, max_order: int | None) -> list[Term]:
        """Sets of at least two players any two of which lie on a common path, up to a size."""
        pairs = self.walks.common_pairs if max_order is None or max_order > 1 else []
        if max_order is not None and max_order <= 2:
            return list(pairs)
        known = set(pairs)
        return [
            term
            for term in super().common_terms(max_order)
            if known.issuperset(combinations(term, 2))
        ]

    def _levels(self, player: int) -> np.ndarray:
        return self._curve(player) / self.total

    def _curve(self, player: int) -> np.ndarray:
        """Component of a player by its codes, added up over the background."""
        return self.sums[1 + player]

    def _has_curve(self, player: int) -> bool:
        return len(self.walks.slots[player]) == 1

    def _components(self, rows: BinnedRows, terms: list[Term]) -> dict[Term, np.ndarray]:
        known = {term: self._single(rows, term[0]) for term in terms if len(term) == 1}
        pairs = sorted({tuple(term) for term in terms if len(term) == 2})
        larger = sorted((term for term in terms if len(term) > 2), key=len)
        if larger and not self._effort.pairs_are_walked(rows.n_rows * len(larger), 0):
            known |= self._by_counts(rows, larger)
            larger = []
        if pairs and not self._pairs_are_walked(rows, pairs):
            known |= self._by_counts(rows, pairs)
        else:
            known |= self._pairs(rows, pairs)
        for term in larger:
            smaller = [part for part in _outputs.subsets(term) if part != term]
            lacking = [part for part in smaller if part not in known]
            known |= self._components(rows, lacking)
            value = self._values(rows, term, "identity") - self.intercept
            known[term] = value - sum(known[part] for part in smaller)
        return known

    @property
    def _effort(self) -> BackgroundEffort:
        return background_effort(self.walks.made_from[0], self.n_rows)

    def _pairs_are_walked(self, rows: BinnedRows, pairs: list[Term]) -> bool:
        n_blocks = -(-rows.n_rows // BLOCK_ROWS)
        cells = min(rows.n_rows, BLOCK_ROWS) ** 2 * len(pairs) * self.n_outputs
        return self._effort.pairs_are_walked(n_blocks, cells)

    def _single(self, rows: BinnedRows, player: int) -> np.ndarray:
        """Component of a player for each of some rows, shape (n_rows, n_outputs)."""
        if not len(self.walks.slots[player]):
            return np.zeros((rows.n_rows, self.n_outputs))
        if not self._has_curve(player):
            return self._values(rows, (player,), "identity") - self.intercept
        curve = self._curve(player)
        code = np.minimum(rows.columns()[self.walks.slots[player][0]], curve.shape[1] - 1)
        return curve[:, code].T / self.total

    def _pairs(self, rows: BinnedRows, pairs: list[Term]) -> dict[Term, np.ndarray]:
        out = {pair: np.empty((rows.n_rows, self.n_outputs)) for pair in pairs}
        for start in range(0, rows.n_rows if pairs else 0, BLOCK_ROWS):
            block = np.arange(start, min(rows.n_rows, start + BLOCK_ROWS))
            made = self._points(self.take(rows, block))
            for pair, table in self._pair_tables([p for p, _ in made], pairs):
                out[pair][block] = table[:, made[pair[0]][1], made[pair[1]][1]].T
        return out

    def _points(self, rows: BinnedRows) -> list:
        return [self.walks.points(rows, player) for player in range(len(self.walks.slots))]

    def _pair_tables(self, points: list, pairs: list[Term]):
        """Components of pairs at points: each pair with its table, by memory that is bounded."""
        batch: list[Term] = []
        cells = 0
        for pair in pairs:
            batch.append(pair)
            cells += points[pair[0]].size * points[pair[1]].size * self.n_outputs
            if cells >= 16 * MOST_CELLS or pair == pairs[-1]:
                tables = self.walks.pair_components(
                    self.rows, points, batch, self.weights, self.threads_for(self.n_rows)
                )
                for done, table in zip(batch, tables, strict=True):
                    yield done, table / self.total
                batch, cells = [], 0

    def pair_grid(self, X, pairs: list[Term]) -> np.ndarray:
        """Components of pairs on the product of the rows with themselves."""
        made = self._points(self.bin(X))
        out = np.empty((len(pairs), self.n_outputs, X.shape[0], X.shape[0]))
        place = {pair: k for k, pair in enumerate(pairs)}
        for pair, table in self._pair_tables([p for p, _ in made], list(place)):
            out[place[pair]] = at_places(table, [made[pair[0]][1], made[pair[1]][1]])
        return out
