"""One reading of the columns for several models on the same data, where they agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fastpd_sklearn.forest._forest import Forest
from fastpd_sklearn.forest._inputs import InputMap


@dataclass(frozen=True, eq=False)
class InputsOf:
    """What one of the models makes of the columns.

    Parameters
    ----------
    name : str
        The model, for messages.
    input_map : InputMap
        On the model's own columns.
    forest : Forest
        On the columns that all have.
    columns : ndarray of int or None
        The common column behind each of the model's own; None if they are the same.
    """

    name: str
    input_map: InputMap
    forest: Forest
    columns: np.ndarray | None

    @cached_property
    def categorical(self) -> frozenset[int]:
        """Columns that the trees test as categories."""
        return self._tested(self.forest.is_categorical)

    @cached_property
    def numeric(self) -> frozenset[int]:
        """Columns that the trees test as numbers."""
        return self._tested(~self.forest.is_categorical)

    def _tested(self, wanted: np.ndarray) -> frozenset[int]:
        nodes = wanted & (self.forest.left >= 0)
        return frozenset(np.unique(self.forest.feature[nodes]).tolist())

    def labels(self) -> dict[int, np.ndarray]:
        """Labels by common column."""
        return {self._common(j): labels for j, labels in self.input_map.categories.items()}

    def single_codes(self) -> set[int]:
        """Common columns whose codes are rounded to float32."""
        return {self._common(j) for j in self.input_map.single_codes}

    def double_codes(self) -> frozenset[int]:
        """Common columns whose codes are rounded down alone."""
        return frozenset(self._common(j) for j in self.input_map.double_codes)

    def _common(self, column: int) -> int:
        return column if self.columns is None else int(self.columns[column])


class UnlikeInputsError(Exception):
    """Some models read a column of the same ``X`` in different ways."""


def join_maps(owner, given: list[InputsOf], *, frames_as_arrays: bool) -> InputMap:
    """The map that gives every model the inputs that it would have read itself.

    Parameters
    ----------
    owner : object
        The model that the others are in.
    given : list of InputsOf
    frames_as_arrays : bool
        Whether the owner makes arrays of data frames.

    Returns
    -------
    InputMap
        What some would read in one way and others in another is refused by the map where it
        can occur in some kinds of ``X`` only.

    Raises
    ------
    UnlikeInputsError
        If a column is read in two ways in any ``X``.
    """
    maps = [one.input_map for one in given]
    if len(given) == 1 and given[0].columns is None and not frames_as_arrays:
        return maps[0]
    _check_columns(given)
    names = _names(owner, maps)
    return InputMap(
        n_columns=given[0].forest.n_inputs,
        names=names,
        blanks_replaced=names is not None and all(m.blanks_replaced for m in maps),
        **_label_fields(given),
        frames_hold_codes=all(m.frames_hold_codes for m in maps),
        labels_as_codes=_same_or_none([m.labels_as_codes for m in maps]),
        absent=_same_or_none([m.absent for m in maps]),
        missing=_same([m.missing for m in maps], "values for missing"),
        single_codes=frozenset(_union(one.single_codes() for one in given) - _unlike_codes(given)),
        double_codes=_same([one.double_codes() for one in given], "ways to round codes"),
        array_dtype=_array_dtype(given),
        frames_as_arrays=frames_as_arrays or any(m.frames_as_arrays for m in maps),
        single_range=_has_single_range(given),
        allow_nan=all(m.allow_nan for m in maps),
        allow_inf=all(m.allow_inf for m in maps),
    )


def _same_or_none(values: list):
    """The value that all have, NaN being one; None if they differ."""
    first = values[0]
    return first if all(v == first or (v != v and first != first) for v in values) else None


def _same(values: list, what: str):
    """The value that all have."""
    if _same_or_none(values) is None:
        raise UnlikeInputsError(f"different {what}: {values}")
    return values[0]


def _check_columns(given: list[InputsOf]) -> None:
    """Refuse columns that are categories to one model and numbers to another."""
    if not all(isinstance(one.input_map, InputMap) for one in given):
        raise UnlikeInputsError("some transform the columns first")
    _same([one.forest.n_inputs for one in given], "numbers of inputs")
    both = _union(one.categorical for one in given) & _union(one.numeric for one in given)
    if both:
        raise UnlikeInputsError(f"columns {both} are categories to one and numbers to another")
    odd = _unlike_codes(given) - _union(one.labels() for one in given)
    if odd:
        raise UnlikeInputsError(f"codes of the columns {odd} are rounded by some")


def _unlike_codes(given: list[InputsOf]) -> set[int]:
    """Columns of category codes that some models round to float32 and others do not."""
    rounded = _union(one.single_codes() for one in given)
    return _union((rounded & one.categorical) - one.single_codes() for one in given)


def _union(sets) -> set[int]:
    return set().union(*sets)


def _names(owner, maps: list[InputMap]) -> tuple[str, ...] | None:
    own = getattr(owner, "feature_names_in_", None)
    if own is not None:
        return tuple(str(name) for name in own)
    named = [m for m in maps if m.names is not None and m.n_columns == maps[0].n_columns]
    return min(named, key=lambda m: m.blanks_replaced).names if named else None


def _array_dtype(given: list[InputsOf]):
    """What integers are rounded to, None if that is not the same for all.

    Models that compare in float32 do not mind that it was done before.
    """
    maps = [one.input_map for one in given if not one.forest.single] or [given[0].input_map]
    # A frame of integers is an array of integers to some of the models.
    mixed = len({m.frames_as_arrays for m in maps}) > 1
    found = {m.array_dtype for m in maps}
    return None if len(found) > 1 or (mixed and found != {np.float64}) else found.pop()


def _has_single_range(given: list[InputsOf]) -> bool:
    """Whether some model refuses what float32 takes for infinite while others compare it."""
    if any(one.input_map.single_range for one in given):
        return True
    refusing = [one.forest.single and not one.input_map.allow_inf for one in given]
    return any(refusing) and not all(one.forest.single for one in given)


# -- labels --------------------------------------------------------------------------------


def _label_fields(given: list[InputsOf]) -> dict:
    """Fields of the map that say which labels become which codes."""
    labelled = [
        one for one in given if one.input_map.categories or one.input_map.categories_in_order
    ]
    if not labelled:
        none = any(one.input_map.categories_in_order is not None for one in given)
        return {"categories": {}, "categories_in_order": () if none else None}
    # In arrays of frames categories are not told from numbers.
    _same([one.input_map.frames_as_arrays for one in given], "ways with frames")
    if len({one.input_map.label_key for one in labelled}) > 1:
        raise UnlikeInputsError("some look labels up by what they make of them")
    return {
        "categories": _categories(given),
        "label_key": labelled[0].input_map.label_key,
        "missing_labels": all(one.input_map.missing_labels for one in labelled),
        "categories_in_order": _in_order(given),
        "unknown": _unknown(labelled),
        "codes_as_given": None
        if _unlike_codes(given)
        else _same_or_none([one.input_map.codes_as_given for one in labelled]),
    }


def _categories(given: list[InputsOf]) -> dict[int, np.ndarray]:
    joined: dict[int, np.ndarray] = {}
    for one in given:
        for column, labels in one.labels().items():
            known = joined.setdefault(column, labels)
            _same([known.tolist(), labels.tolist()], f"categories of column {column}")
    for one in given:
        odd = (joined.keys() & (one.categorical | one.numeric)) - one.labels().keys()
        if odd and not one.input_map.categories_in_order:
            raise UnlikeInputsError(f"columns {odd} are labels to one and numbers to another")
    return joined


def _in_order(given: list[InputsOf]):
    """Labels of a frame's categorical columns in order, if that is how all find them."""
    found = [one.input_map.categories_in_order for one in given]
    lists = [None if f is None else [labels.tolist() for labels in f] for f in found]
    if all(known == lists[0] for known in lists):
        return found[0]
    for one, known in zip(given, lists, strict=True):
        if known and len(one.input_map.categories) != len(known):
            raise UnlikeInputsError("a model does not say which columns hold its categories")
    return None


def _unknown(labelled: list[InputsOf]):
    """What an unknown label becomes: it is refused if whoever knows a column's labels does so."""
    refusing = [one for one in labelled if one.input_map.unknown is None]
    refused = _union(one.labels() for one in refusing)
    if refused and _union(one.labels() for one in labelled) <= refused:
        return None
    return _same([one.input_map.unknown for one in labelled], "codes of unknown labels")
