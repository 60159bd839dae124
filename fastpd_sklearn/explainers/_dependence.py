"""Partial dependence on a grid, and as an exact curve."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from sklearn.utils import Bunch

from fastpd_sklearn.explainers import _checks, _outputs
from fastpd_sklearn.explainers._curve import (
    CategoryCurve,
    LinearCurve,
    StepCurve,
    StepSurface,
    effective_breaks,
    piece_points,
)
from fastpd_sklearn.explainers._engine import TreeEngine
from fastpd_sklearn.explainers._fitted import Fitted
from fastpd_sklearn.explainers._protocol import Engine
from fastpd_sklearn.explainers._raw_curve import NoCurveError, RawColumn
from fastpd_sklearn.forest import _rows

MOST_LEVELS = 1_000_000
"""Levels of the largest step surface."""


def partial_dependence(fitted: Fitted, features, grid) -> Bunch:
    """See :meth:`BaseExplainer.partial_dependence`."""
    term, points = _term_and_points(fitted, features, grid)
    if len(term) > 1 or len(fitted.players.columns[term[0]]) > 1:
        return Bunch(grid_values=points, average=_average(fitted, term, points))
    try:
        average, curve = _average_and_curve(fitted, term[0], points[0])
    except NoCurveError as error:
        average = _average(fitted, term, points)
        return Dependence(grid_values=points, average=average, no_curve=str(error))
    result = Bunch(grid_values=points, average=average)
    if curve is not None:
        result["curve"] = curve
    return result


def average_dependence(fitted: Fitted, features, grid) -> np.ndarray:
    """The ``average`` of :func:`partial_dependence`, without the search for a pipeline's curve."""
    if not _is_pipeline(fitted.engine):
        return partial_dependence(fitted, features, grid).average
    return _average(fitted, *_term_and_points(fitted, features, grid))


def _term_and_points(fitted: Fitted, features, grid) -> tuple[tuple[int, ...], list[np.ndarray]]:
    _check_background(fitted)
    term = fitted.players.find_term(features)
    grids = _one_grid_each(term, grid, features)
    return term, [_points(fitted, player, g) for player, g in zip(term, grids, strict=True)]


def step_surface(fitted: Fitted, features) -> StepSurface:
    """See :meth:`BaseExplainer.step_surface`."""
    term = fitted.players.find_term(features)
    if len(term) != 2:
        raise ValueError(f"features={features!r}: a step surface belongs to two features")
    breaks = []
    for player in term:
        columns, name = fitted.players.columns[player], fitted.players.names[player]
        found = None if len(columns) > 1 else _breaks(fitted, columns[0])
        if found is not None and _slopes(fitted.engine, player) is not None:
            raise ValueError(
                f"features: the leaves of the model are linear functions of {name!r}, so that "
                "there are no steps along it; call partial_dependence(features, grid) with points "
                "of your own"
            )
        if found is None or fitted.template.labelled[columns[0]]:
            raise ValueError(
                f"features: {name!r} is no single column of numbers along which the model is a "
                "step function; call partial_dependence(features, grid) with points of your own"
            )
        breaks.append(_inner(found, fitted.engine.strict))
    engine = fitted.engine
    shape = [len(b) + 1 + engine.allow_nan for b in breaks]
    size = shape[0] * shape[1] * len(fitted.selection.outputs)
    if size > MOST_LEVELS:
        raise ValueError(
            f"features={features!r}: the exact surface has {shape[0]} x {shape[1]} rectangles, "
            f"which makes {size} levels, more than {MOST_LEVELS}; call "
            "partial_dependence(features, grid) with fewer points"
        )
    missing = [np.nan] if engine.allow_nan else []
    points = [
        np.concatenate([piece_points(b, engine.strict, engine.single), missing]) for b in breaks
    ]
    levels = _average(fitted, term, points)
    return StepSurface(tuple(breaks), levels, engine.allow_nan, engine.strict, engine.single)


class Dependence(Bunch):
    """Partial dependence that has no ``curve``, and says why if asked for one."""

    def __missing__(self, key):
        raise KeyError(self["no_curve"] if key == "curve" else key)

    def __getattr__(self, name: str):
        if name == "curve":
            raise AttributeError(self["no_curve"])
        return super().__getattr__(name)


def pairwise_partial_dependence(fitted: Fitted, features, grid, grid_resolution: int) -> Bunch:
    """See :meth:`BaseExplainer.pairwise_partial_dependence`."""
    _check_background(fitted)
    if features is None:
        players = list(range(len(fitted.players)))
    else:
        players = list(fitted.players.find_term(tuple(features)))
    grids = _pairwise_grids(fitted, players, grid, grid_resolution)
    pairs = list(combinations(range(len(players)), 2))
    size = max((len(grid) for grid in grids), default=0)
    n_outputs = len(fitted.selection.outputs)
    _checks.check_memory(
        16 * len(pairs) * n_outputs * size * size,
        f"{len(pairs)} pairs on grids of {size} x {size} points",
        "name fewer columns by `features`, or lower `grid_resolution`",
    )
    columns = [int(fitted.players.columns[player][0]) for player in players]
    rows = fitted.template.rows(
        {
            column: _as_held(fitted, column, grid[np.minimum(np.arange(size), len(grid) - 1)])
            for column, grid in zip(columns, grids, strict=True)
        }
    )
    average = np.empty((n_outputs, len(pairs), size, size))
    singles = fitted.selection.values(
        fitted.engine.index_values(rows, "component", [(player,) for player in players])
    )
    first, second = np.array(pairs, dtype=np.intp).reshape(len(pairs), 2).T
    average[:] = fitted.intercept[:, None, None, None]
    average += singles[:, first].transpose(2, 1, 0)[:, :, :, None]
    average += singles[:, second].transpose(2, 1, 0)[:, :, None, :]
    _add_pairs(fitted, rows, [players[i] for i in first], [players[j] for j in second], average)
    for i in [i for i, grid in enumerate(grids) if len(grid) < size]:
        average[:, first == i, len(grids[i]) :] = np.nan
        average[:, second == i, :, len(grids[i]) :] = np.nan
    names = tuple(fitted.players.names[player] for player in players)
    return Bunch(features=names, pairs=np.array(pairs), grid_values=grids, average=average)


def _is_pipeline(engine: Engine) -> bool:
    """Whether trees are explained through the steps before them."""
    return isinstance(engine, TreeEngine) and engine.preprocesses


def _check_background(fitted: Fitted) -> None:
    if _is_pipeline(fitted.engine) and fitted.template.points is None:
        raise ValueError(
            "partial dependence on the columns of a pipeline needs a row of the background, which "
            "says what kinds of values the other columns hold; call fit(pipe, background)"
        )


def _add_pairs(fitted: Fitted, rows, first: list[int], second: list[int], average) -> None:
    """Add the components of the pairs that have one to their grids."""
    common = set(fitted.engine.common_terms(2))
    terms = [tuple(sorted(pair)) for pair in zip(first, second, strict=True)]
    places = [k for k, term in enumerate(terms) if term in common]
    if not places:
        return
    values = fitted.engine.pair_grid(rows, [terms[k] for k in places])
    if values is None:
        values = _pair_by_pair(fitted, rows, [terms[k] for k in places])
    shown = fitted.selection.values(values.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for k, value in zip(places, shown, strict=True):
        is_swapped = first[k] > second[k]
        average[:, k] += value.transpose(0, 2, 1) if is_swapped else value


def _pair_by_pair(fitted: Fitted, rows, pairs: list[tuple[int, ...]]) -> np.ndarray:
    """What ``Engine.pair_grid`` gives, for engines that have no better way."""
    size = rows.shape[0]
    one, other = (index.ravel() for index in np.indices((size, size)))
    out = np.empty((len(pairs), fitted.engine.n_outputs, size, size))
    for k, pair in enumerate(pairs):
        grid = _rows.with_columns(
            _rows.take(rows, one), _rows.take(rows, other), fitted.players.columns[pair[1]]
        )
        values = fitted.engine.index_values(grid, "component", [pair])
        out[k] = values[:, 0].T.reshape(-1, size, size)
    return out


def _pairwise_grids(fitted: Fitted, players, grid, grid_resolution: int) -> list[np.ndarray]:
    """Points of every feature: those given, or some of its own."""
    if grid is None:
        return [_thinned(_points(fitted, player, None), grid_resolution) for player in players]
    listed = isinstance(grid, tuple | list) or (isinstance(grid, np.ndarray) and grid.ndim == 2)
    if not listed or len(grid) != len(players) or any(np.isscalar(points) for points in grid):
        raise ValueError(
            f"grid: expected a list of {len(players)} arrays, one for each feature, which hold "
            "the points of that feature"
        )
    if any(len(fitted.players.columns[player]) > 1 for player in players):
        raise ValueError("grid: pairs are for features of one column, not for groups of several")
    return [_points(fitted, player, points) for player, points in zip(players, grid, strict=True)]


def _thinned(points: np.ndarray, most: int) -> np.ndarray:
    """At most so many of some points, the first and the last among them."""
    if len(points) <= most:
        return points
    return points[np.linspace(0, len(points) - 1, most).round().astype(np.intp)]


def _one_grid_each(term, grid, features) -> list:
    if grid is None:
        return [None] * len(term)
    if np.isscalar(grid):
        raise ValueError(
            f"grid={grid!r}: a number of points is not accepted; pass the points themselves, such "
            "as np.linspace(low, high, 30), or None for the values of the background"
        )
    if not isinstance(features, tuple | list):
        return [grid]
    listed = isinstance(grid, tuple | list)
    if not listed or len(grid) != len(term) or any(np.isscalar(points) for points in grid):
        raise ValueError(
            f"grid: expected a list of {len(term)} arrays, one for each of features={features!r}, "
            "which hold the points of that feature"
        )
    return list(grid)


def _points(fitted: Fitted, player: int, grid) -> np.ndarray:
    columns, name = fitted.players.columns[player], fitted.players.names[player]
    if len(columns) > 1:
        return _group_points(grid, name, len(columns))
    if grid is not None:
        return fitted.template.as_points(columns[0], grid)
    if fitted.template.points is not None:
        labels = None
        if _is_pipeline(fitted.engine) and not fitted.template.labelled[columns[0]]:
            labels = _raw_column(fitted, player).labels()
        return fitted.template.points[columns[0]].copy() if labels is None else labels
    breaks = _breaks(fitted, columns[0])
    if breaks is None:
        raise ValueError(
            f"grid=None for {name!r}: the explainer has seen no background to take values from; "
            "pass a grid, or fit(model, background)"
        )
    return piece_points(breaks, fitted.engine.strict, fitted.engine.single)


def _group_points(grid, name: str, n_columns: int) -> np.ndarray:
    points = np.empty(0) if grid is None else np.asarray(grid)
    if points.ndim != 2 or points.shape[1] != n_columns or not len(points):
        raise ValueError(
            f"grid: {name!r} is a group of {n_columns} columns, which takes an array of shape "
            f"(n_points, {n_columns})"
        )
    return points


def _average(fitted: Fitted, term: tuple[int, ...], points: list[np.ndarray]) -> np.ndarray:
    """Partial dependence on the product of some points, outputs first."""
    shape = tuple(len(p) for p in points)
    _checks.check_memory(
        8 * int(np.prod(shape, dtype=np.float64)) * len(fitted.players.column_names),
        f"a grid of {' x '.join(map(str, shape))} points",
        "pass fewer points by `grid`",
    )
    values = {}
    for player, p, place in zip(term, points, np.indices(shape), strict=True):
        columns = fitted.players.columns[player]
        for j, column in enumerate(columns):
            own = (p[:, j] if len(columns) > 1 else p)[place.ravel()]
            values[int(column)] = _as_held(fitted, int(column), own)
    recipe = _outputs.make_recipe("pd", [tuple(sorted(term))], fitted.engine)
    average = fitted.evaluate(fitted.template.rows(values), recipe)[:, 0]
    return np.ascontiguousarray(average.T).reshape(-1, *shape)


def _as_held(fitted: Fitted, column: int, values: np.ndarray) -> np.ndarray:
    """Points in the precision of their column, in which the steps of a pipeline compute."""
    if not _is_pipeline(fitted.engine) or fitted.template.labelled[column]:
        return values
    return values.astype(fitted.template.float_type(column))


def _curve_of_codes(fitted: Fitted, player: int) -> CategoryCurve | None:
    """The curve of a column of categories as numbers: those that model or background know."""
    column = int(fitted.players.columns[player][0])
    known = fitted.engine.listed_categories(column)
    if known is None:
        return None
    missing, codes = known[np.isnan(known)], known[~np.isnan(known)]
    if fitted.template.points is not None:
        codes = np.union1d(codes, fitted.template.points[column])
    codes = np.append(codes[~np.isnan(codes)], missing)
    return CategoryCurve(codes, _average(fitted, (player,), [codes]))


def _raw_column(fitted: Fitted, player: int) -> RawColumn:
    return RawColumn(fitted.engine, fitted.template, int(fitted.players.columns[player][0]))


def _breaks(fitted: Fitted, column: int) -> np.ndarray | None:
    engine = fitted.engine
    points = engine.split_points(int(column))
    return None if points is None else effective_breaks(points, engine.strict, engine.single)


def _average_and_curve(
    fitted: Fitted, player: int, points: np.ndarray
) -> tuple[np.ndarray, StepCurve | LinearCurve | CategoryCurve | None]:
    """Partial dependence on one column at some points, and as a curve if it is one."""
    engine, column = fitted.engine, int(fitted.players.columns[player][0])
    if fitted.template.labelled[column]:
        labels = fitted.template.points[column]
        curve = CategoryCurve(labels, _average(fitted, (player,), [labels]))
        return _average(fitted, (player,), [points]), curve
    if _is_pipeline(engine):
        average = _average(fitted, (player,), [points])
        return average, _raw_column(fitted, player).curve(
            lambda values: _average(fitted, (player,), [values])
        )
    breaks = _breaks(fitted, column)
    if breaks is None:
        return _average(fitted, (player,), [points]), _curve_of_codes(fitted, player)
    curve = _curve_of_numbers(fitted, player, breaks)
    # What the model's library refuses, the engine does.
    average = curve(points) if np.isfinite(points).all() else _average(fitted, (player,), [points])
    return average, curve


def _curve_of_numbers(fitted: Fitted, player: int, breaks: np.ndarray) -> StepCurve | LinearCurve:
    """Partial dependence on one column of numbers."""
    engine = fitted.engine
    levels, missing = _levels(fitted, player, breaks)
    slopes = _slopes(engine, player)
    breaks = _inner(breaks, engine.strict)
    levels = levels[:, : len(breaks) + 1].copy()
    if slopes is None:
        return StepCurve(breaks, levels, missing, engine.strict, engine.single)
    slopes = fitted.selection.values(slopes.T[:, None]).transpose(1, 2, 0)[0]
    slopes = slopes[:, : len(breaks) + 1].copy()
    return LinearCurve(breaks, levels, slopes, missing, engine.strict, engine.single)


def _inner(breaks: np.ndarray, strict: bool) -> np.ndarray:
    """Breaks with numbers on either side.

    A test that tells numbers from missing values alone has its break at infinity, above which
    there is nothing, nor is infinity itself, unless it takes the numbers strictly below.
    """
    return breaks if strict else breaks[breaks < np.inf]


def _slopes(engine: Engine, player: int) -> np.ndarray | None:
    """What a player's number is multiplied by in each piece; None where it has steps."""
    return engine.slopes(player) if isinstance(engine, TreeEngine) else None


def _levels(
    fitted: Fitted, player: int, breaks: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """Partial dependence on one column within each piece, and at missing values."""
    engine = fitted.engine
    levels = engine.levels(player)
    if levels is None:
        pieces = piece_points(breaks, engine.strict, engine.single)
        missing = [np.nan] if engine.allow_nan else []
        levels = _average(fitted, (player,), [np.concatenate([pieces, missing])])
    else:
        levels = fitted.selection.values(levels.T[:, None]).transpose(1, 2, 0)[0]
        levels = levels + fitted.intercept[:, None]
    n_pieces = len(breaks) + 1
    missing = levels[:, n_pieces].copy() if engine.allow_nan else None
    return levels[:, :n_pieces].copy(), missing
