"""What a fitted explainer works with: an engine, and names for what it computes."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from fastpd_sklearn.explainers import _checks, _outputs
from fastpd_sklearn.explainers._cost import announce, outlook_of, reporter
from fastpd_sklearn.explainers._grid import Template
from fastpd_sklearn.explainers._jackknife import Jackknife, Replicate
from fastpd_sklearn.explainers._outputs import Recipe
from fastpd_sklearn.explainers._players import Players
from fastpd_sklearn.explainers._protocol import Engine, Term
from fastpd_sklearn.explainers._response import Selection
from fastpd_sklearn.forest import _rows

BLOCK_BYTES = 2**27
"""Size of the values that an engine makes at a time."""

STEPS_BYTES = 2**29
"""Of the values that are written to at a time where those of a row lie together."""

REMAINDER_VALUES = 2**21
"""Values that are added up at a time: by einsum, as BLAS would start its threads anew each time."""

MANY_TERMS = 4096
"""Terms left out beyond which it is not looked up whether they are zero."""

ZERO = 1e-9
"""What counts as zero, relative to the response."""

_SETTINGS = ("`output`", "`groups`", "`features`", "`target`", "`n_jackknife`")


@dataclass(eq=False)
class Fitted:
    """An engine, the terms that are shown of it, and how.

    Parameters
    ----------
    engine : Engine
    players : Players
    output : str
        The explainer's parameter when it was fitted.
    terms : list of tuple of int
    recipe : Recipe
        Makes the values of ``terms``.
    selection : Selection
    template : Template
    tags : dict of str to bool
        What the model says of its input.
    jackknife : Jackknife or None, default=None
        The background in groups, for standard errors.
    """

    engine: Engine
    players: Players
    output: str
    terms: list[Term]
    recipe: Recipe
    selection: Selection
    template: Template
    tags: dict[str, bool]
    jackknife: Jackknife | None = None

    @property
    def intercept(self) -> np.ndarray:
        """Mean response over the background, of the outputs that are shown."""
        return self.selection.response(self.engine.intercept)

    def response(self, X) -> np.ndarray:
        """The response to rows, of the outputs that are shown, shape (n_rows, n_outputs)."""
        return self.selection.response(self.engine.predict(X))

    def showing(self, output: str, terms: list[Term]) -> Fitted:
        """The same engine with other values shown of it.

        Raises
        ------
        ValueError
            If the engine has no such values.
        """
        recipe = _outputs.make_recipe(output, terms, self.engine)
        if recipe.index not in self.engine.indices:
            raise ValueError(
                f"output={output!r} cannot be had from this fitted explainer, which knows only "
                f"{', '.join(map(repr, self.engine.indices))}"
            )
        return replace(self, output=output, terms=terms, recipe=recipe)

    def check_mergeable(self, other: Fitted) -> None:
        """Refuse what was made of another model or of other settings.

        Parameters
        ----------
        other : Fitted

        Raises
        ------
        ValueError
            It says what is not the same.
        """
        self.engine.check_same_model(other.engine)
        for setting, one, two in zip(_SETTINGS, self._settings(), other._settings(), strict=True):
            if one != two:
                raise ValueError(
                    f"merge: the two explainers were fitted with different {setting}: "
                    f"{reprlib.repr(one)} and {reprlib.repr(two)}; fit both with the same "
                    "parameters"
                )

    def _settings(self) -> tuple:
        """What the explainer's parameters came to, one each of ``_SETTINGS``."""
        players, selection = self.players, self.selection
        groups = {
            name: tuple(map(players.column_names.__getitem__, columns))
            for name, columns in zip(players.names, players.columns, strict=True)
        }
        target = (*selection.names, selection.sign, selection.offset)
        terms = [players.name(term) for term in self.terms]
        n_groups = 0 if self.jackknife is None else self.jackknife.n_groups
        return self.output, groups, terms, target, n_groups

    def extended(self, X, sample_weight: np.ndarray | None) -> Fitted:
        """The same with more rows in the background; see :meth:`Engine.update`."""
        engine = copy(self.engine)
        engine.update(X, sample_weight)
        groups = self.jackknife and self.jackknife.with_rows(X, sample_weight)
        return replace(self, engine=engine, jackknife=groups)

    def merged(self, other: Fitted) -> Fitted:
        """The same over the backgrounds of both; see :meth:`check_mergeable`."""
        if type(self.engine) is not type(other.engine):
            # The numbers of rows have made the one a forest to walk, the other one to count.
            return self._counted().merged(other._counted())
        engine = copy(self.engine)
        engine.merge(other.engine)
        groups = self.jackknife and self.jackknife.merged(other.jackknife)
        return replace(self, engine=engine, jackknife=groups)

    def _counted(self) -> Fitted:
        groups = self.jackknife and self.jackknife.counted()
        return replace(self, engine=self.engine.counted(), jackknife=groups)

    # ------------------------------------------------------- standard errors

    def replicates(self) -> Iterator[tuple[Replicate, Fitted]]:
        """The background without one group after the other.

        Raises
        ------
        ValueError
            If the explainer has kept no groups.
        """
        self.check_groups()
        self.jackknife.check()
        yield from self._replicates()

    def check_groups(self) -> None:
        """Refuse to tell errors if no groups were kept."""
        if self.jackknife is None:
            raise ValueError(
                "n_jackknife=0: standard errors take groups of the background, which are made "
                "while it is counted; fit with n_jackknife=20, say"
            )

    def _replicates(self) -> Iterator[tuple[Replicate, Fitted]]:
        for one in self.jackknife.replicates():
            yield one, replace(self, engine=one.engine, jackknife=None)

    def intercept_error(self) -> np.ndarray:
        """Standard error of the intercept; NaN where the rows are too few to tell."""
        if self.jackknife.n_filled < 2:
            return np.full_like(self.intercept, np.nan)
        return self._error(self._replicates(), lambda one: one.intercept)

    def standard_error(self, compute: Callable[[Fitted], np.ndarray]) -> np.ndarray:
        """Of anything that is linear in what the engine says, or of the engine's own values.

        Parameters
        ----------
        compute : callable
            From a :class:`Fitted` to an array.

        Returns
        -------
        ndarray of the shape that ``compute`` gives
        """
        return self._error(list(self.replicates()), compute)

    def _error(self, replicates, compute: Callable[[Fitted], np.ndarray]) -> np.ndarray:
        value = compute(self)
        scaled = self.jackknife.scaled
        squares = (
            scaled(one.share, one.step * (compute(fitted) - value)) ** 2
            for one, fitted in replicates
        )
        return np.sqrt(sum(squares))

    def mean_abs(self, X, weights: np.ndarray, n_values: int) -> np.ndarray:
        """Mean absolute value of every term, shape (n_terms, n_outputs)."""
        out = np.empty((len(self.terms), len(self.selection.outputs)))
        for numbers, values in self.blocks(X, n_values):
            out[numbers] = _mean_size(values, weights)
        return out

    def mean_abs_deviations(self, X, weights: np.ndarray, n_values: int) -> tuple:
        """The same with what each group adds to its standard error; see `Jackknife.scaled`.

        Returns
        -------
        mean : ndarray of shape (n_terms, n_outputs)
        deviations : ndarray of shape (n_filled, n_terms, n_outputs)
        """
        replicates, fits = zip(*self.replicates(), strict=True)
        shape = (len(self.terms), len(self.selection.outputs))
        mean, without = np.empty(shape), np.empty((len(fits), *shape))
        # An absolute value is not linear: a term's values by all groups are needed at once.
        every = zip(*(one.blocks(X, n_values) for one in (self, *fits)), strict=True)
        for (numbers, values), *others in every:
            for out, one, (_, changed) in zip(without, replicates, others, strict=True):
                out[numbers] = _mean_size(values + one.step * (changed - values), weights)
            mean[numbers] = _mean_size(values, weights)
        for out, one in zip(without, replicates, strict=True):
            out[:] = self.jackknife.scaled(one.share, out - mean)
        return mean, without

    def evaluate(
        self, X, recipe: Recipe, progress: str = "", out: np.ndarray | None = None
    ) -> np.ndarray:
        """Values of a recipe; where they have to be put together, in blocks of rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        recipe : Recipe
        progress : str, default=""
            Who reports progress; nobody if empty.
        out : ndarray, default=None
            Where to write the values, see :meth:`BaseExplainer.explain`.

        Returns
        -------
        ndarray of shape (n_rows, n_terms, n_outputs)

        Raises
        ------
        MemoryError
            If they do not fit into the memory that is free.
        """
        n_rows, n_outputs = X.shape[0], len(self.selection.outputs)
        n_terms = len(recipe.asked if recipe.parts is None else recipe.parts)
        outlook = outlook_of(self.engine, n_rows, recipe)
        if outlook is not None:
            announce(outlook, n_rows, progress)
        has_steps = self._has_steps(recipe)
        if out is None:
            _checks.check_memory(
                8 * n_rows * n_terms * n_outputs,
                f"an explanation of {n_rows} rows by {n_terms} terms of {n_outputs} outputs",
                "pass fewer rows of X at a time, fewer terms by `features` or `max_order`, or an "
                "`out` array to explain()",
            )
            is_direct = recipe.parts is None and n_outputs == self.engine.n_outputs
            if is_direct and not has_steps and not progress:
                return self._combined(X, recipe)
            # A term's values for all rows lie together: that is how engines make them.
            out = np.empty((n_terms, n_outputs, n_rows)).transpose(2, 0, 1)
        else:
            out = _checks.check_out(out, (n_rows, n_terms, n_outputs))
        if progress and outlook is not None and outlook.reports:
            out[:] = self._combined(X, recipe, report=reporter(progress))
            return out
        has_steps = has_steps and _is_regular(out)
        row_bytes = 8 * max(1, len(recipe.asked) * self.engine.n_outputs)
        block = max(1, (STEPS_BYTES if has_steps else BLOCK_BYTES) // row_bytes)
        if has_steps and not progress and out.strides[0] == out.itemsize:
            block = n_rows
        if outlook is not None:
            block = n_rows if outlook.block_rows is None else min(block, outlook.block_rows)
        X = X.tocsr() if sparse.issparse(X) else X
        for start in range(0, n_rows, block):
            part = slice(start, min(n_rows, start + block))
            rows = X if block >= n_rows else _rows.take(X, part)
            if has_steps:
                base = self.intercept if recipe.adds_intercept else np.zeros(n_outputs)
                self.engine.write_steps(rows, recipe.index, recipe.asked, out[part], base)
            else:
                out[part] = self._combined(rows, recipe)
            if progress:
                print(f"[{progress}] {part.stop} of {n_rows} rows")
        return out

    def _has_steps(self, recipe: Recipe) -> bool:
        """Whether the engine can write the values of a recipe where they are to be."""
        if recipe.parts is not None or not self.selection.is_all(self.engine.n_outputs):
            return False
        ask = getattr(self.engine, "has_steps", None)
        return ask is not None and ask(recipe.index, recipe.asked)

    def _combined(self, X, recipe: Recipe, **options) -> np.ndarray:
        values = self.engine.index_values(X, recipe.index, recipe.asked, **options)
        return recipe.combine(self.selection.values(values), self.intercept)

    def blocks(self, X, n_values: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The values of the terms, some terms at a time and in any order.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        n_values : int
            About how many values a block should have.

        Yields
        ------
        numbers : ndarray of int
            Which of ``terms`` are in the block.
        values : ndarray of shape (n_rows, len(numbers), n_outputs)
        """
        if self.recipe.parts is None:
            outlook = outlook_of(self.engine, X.shape[0], self.recipe)
            if outlook is not None:
                announce(outlook, X.shape[0], "")
            index, asked = self.recipe.index, self.recipe.asked
            for numbers, values in self.engine.index_blocks(X, index, asked, n_values):
                yield numbers, self.recipe.combine(self.selection.values(values), self.intercept)
            return
        size = max(1, n_values // max(1, X.shape[0] * self.engine.n_outputs))
        for first in range(0, len(self.terms), size):
            numbers = np.arange(first, min(first + size, len(self.terms)))
            terms = [self.terms[k] for k in numbers]
            yield numbers, self.evaluate(X, _outputs.make_recipe(self.output, terms, self.engine))

    def remainder(self, X, values: np.ndarray) -> tuple[np.ndarray | None, bool]:
        """What the values leave of the response, and whether that is nothing for sure.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_rows, n_columns)
        values : ndarray of shape (n_rows, n_terms, n_outputs)

        Returns
        -------
        remainder : ndarray of shape (n_rows, n_outputs), or None
            None for outputs that do not add up.
        complete : bool
            Whether each term that is not shown is zero in all rows.
        """
        if self.output not in _outputs.ADDITIVE:
            return None, False
        response = self.response(X)
        remainder = response - self.intercept
        share = np.array([_outputs.share(self.output, term) for term in self.terms], float)
        for rows, terms in _tiles(values):
            for k in range(values.shape[2]):
                part = values[rows, terms, k]
                remainder[rows, k] -= np.einsum("rt,t->r", part, share[terms])
        rounding = values.shape[1] * float(np.finfo(values.dtype).eps)
        zero = max(ZERO, rounding) * max(np.abs(self.intercept).max(), np.abs(response).max())
        if np.any(np.abs(remainder) > zero):
            return remainder, False
        return remainder, self._is_complete(X, zero)

    def _is_complete(self, X, zero: float) -> bool:
        hidden = self._hidden_terms()
        if not hidden:
            return hidden is not None
        recipe = _outputs.make_recipe(self.output, hidden, self.engine)
        return bool(np.all(np.abs(self.evaluate(X, recipe)) <= zero))

    def _hidden_terms(self) -> list[Term] | None:
        """Terms that are not shown and may be other than zero; None if too many to tell."""
        size = _outputs.DEFAULT_ORDER[self.output]
        if self.output == "component":
            size = max(len(term) for term in self.terms)
        all_terms = _outputs.default_terms(self.engine, len(self.players), size)
        while self.output == "component":
            # A set can have a component only if all its subsets can: where no set of a size
            # has one, no larger set has.
            if sum(len(term) == size for term in all_terms) > MANY_TERMS:
                return None
            size += 1
            larger = [term for term in self.engine.common_terms(size) if len(term) == size]
            if not larger:
                break
            all_terms += larger
        hidden = sorted(set(all_terms).difference(self.terms), key=_outputs.by_size)
        return hidden if len(hidden) <= MANY_TERMS else None


def _is_regular(array: np.ndarray) -> bool:
    """Whether an array's strides are whole numbers of its values."""
    return array.flags.aligned and not any(step % array.itemsize for step in array.strides)


def _tiles(values: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Rows and terms of parts of values that lie together in memory."""
    n_rows, n_terms, n_outputs = values.shape
    if values.strides[0] == values.itemsize:
        size = max(1, REMAINDER_VALUES // max(1, n_rows))
        for start in range(0, n_terms, size):
            yield slice(None), slice(start, start + size)
    else:
        size = max(1, REMAINDER_VALUES // max(1, n_terms * n_outputs))
        for start in range(0, n_rows, size):
            yield slice(start, start + size), slice(None)


def _mean_size(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Mean absolute value over the rows, the first axis; the values are overwritten."""
    np.abs(values, out=values)
    # A term's values lie together in memory.
    return np.einsum("tkr,r->tk", values.transpose(1, 2, 0), weights) / weights.sum()
