"""Several forests as one: the forest of a weighted sum of what they predict."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fastpd_sklearn.forest._forest import Forest, check_forest
from fastpd_sklearn.forest._head import Head
from fastpd_sklearn.forest._joined_inputs import InputsOf, UnlikeInputsError, join_maps
from fastpd_sklearn.forest._members import Answer, Member
from fastpd_sklearn.forest._registry import Reading
from fastpd_sklearn.forest._side_by_side import OwnInputs, side_by_side

_BEYOND_SINGLE = 2.0**128


@dataclass(frozen=True, eq=False)
class Part:
    """A member's share in a sum.

    Parameters
    ----------
    member : Member
    weights : ndarray of shape (n_outputs, n_raw)
        From the member's raw outputs to those of the sum.
    columns : ndarray of int, default=None
        The column of ``X`` behind each of the member's own; None if they are the same.
    """

    member: Member
    weights: np.ndarray
    columns: np.ndarray | None = None


def weighted(member: Member, answer: Answer, weights, columns=None) -> tuple[Part, np.ndarray]:
    """A member's weighted answer: its part in a sum, and the constant that comes with it.

    Parameters
    ----------
    member : Member
    answer : Answer
    weights : ndarray of shape (n_outputs, n_columns of the answer)
    columns : ndarray of int, default=None
        See :class:`Part`.

    Returns
    -------
    part : Part
    offset : ndarray of shape (n_outputs,)
    """
    return Part(member, weights @ answer.weights, columns), weights @ answer.offset


def join(
    owner,
    parts: list[Part],
    offset: np.ndarray,
    head: Head,
    *,
    frames_as_arrays: bool = False,
) -> Reading:
    """The reading of a sum of members.

    Parameters
    ----------
    owner : object
        The model that the members are in.
    parts : list of Part
    offset : ndarray of shape (n_outputs,)
        What is added to the weighted raw predictions.
    head : Head
    frames_as_arrays : bool, default=False
        Whether the owner makes arrays of data frames.

    Returns
    -------
    Reading
        On the columns of ``X`` where all members read these alike, else on what each of them
        makes of ``X``, side by side.
    """
    forests = [part.member.reading.forest for part in parts]
    try:
        moved = [_moved(f, part.columns, owner) for f, part in zip(forests, parts, strict=True)]
        input_map = _common_map(owner, parts, moved, frames_as_arrays)
    except UnlikeInputsError:
        moved = _side_by_side(forests)
        input_map = _own_maps(owner, parts, frames_as_arrays)
    forest = sum_forests(moved, [part.weights for part in parts], offset)
    return Reading(input_map, forest, replace(head, rounding=_rounding(parts, forest)))


def _common_map(owner, parts: list[Part], forests: list[Forest], frames_as_arrays: bool):
    given = [
        InputsOf(part.member.name, part.member.reading.input_map, forest, part.columns)
        for part, forest in zip(parts, forests, strict=True)
    ]
    return join_maps(owner, given, frames_as_arrays=frames_as_arrays)


def _own_maps(owner, parts: list[Part], frames_as_arrays: bool):
    own = [
        OwnInputs(
            part.member.name,
            part.member.key,
            part.member.reading.input_map,
            part.member.reading.forest.n_inputs,
            part.member.reading.forest.single,
            part.columns,
        )
        for part in parts
    ]
    return side_by_side(owner, own, frames_as_arrays=frames_as_arrays)


def rescaled(member: Member, weights: np.ndarray, offset: np.ndarray, head: Head) -> Reading:
    """The reading of ``weights @ raw + offset`` of one member on the same columns.

    Parameters
    ----------
    member : Member
    weights : ndarray of shape (n_outputs, n_raw)
    offset : ndarray of shape (n_outputs,)
    head : Head

    Returns
    -------
    Reading
    """
    forest = sum_forests([member.reading.forest], [weights], offset)
    rounding = _rounding([Part(member, weights)], forest)
    return member.reading._replace(forest=forest, head=replace(head, rounding=rounding))


def _rounding(parts: list[Part], forest: Forest) -> np.ndarray:
    """Rounding of the members as it adds up, or of the sum in a member's precision."""
    total, relative = np.zeros(forest.n_outputs), 1e-10
    for part in parts:
        rounding, scale = part.member.rounding, part.member.reading.forest.scale()
        total += np.abs(part.weights) @ rounding
        relative = max(relative, (rounding[scale > 0] / scale[scale > 0]).max(initial=0.0))
    return np.maximum(total, relative * forest.scale())


def _moved(forest: Forest, columns: np.ndarray | None, owner) -> Forest:
    """The forest on the columns of the owner's ``X``."""
    return forest if columns is None else _placed(forest, columns, int(owner.n_features_in_))


def _side_by_side(forests: list[Forest]) -> list[Forest]:
    """Each forest on inputs of its own, which come one after the other."""
    ends = np.cumsum([forest.n_inputs for forest in forests])
    return [
        _placed(forest, np.arange(end - forest.n_inputs, end), int(ends[-1]))
        for forest, end in zip(forests, ends, strict=True)
    ]


def _placed(forest: Forest, columns: np.ndarray, n_inputs: int) -> Forest:
    """The forest on other inputs, of which those in ``columns`` are its own."""
    leaf = forest.feature < 0
    feature = np.where(leaf, -1, columns[np.where(leaf, 0, forest.feature)])
    return replace(
        forest,
        feature=feature.astype(np.int32),
        n_inputs=n_inputs,
        slope_input=columns[forest.slope_input],
    )


def sum_forests(forests: list[Forest], weights: list[np.ndarray], offset: np.ndarray) -> Forest:
    """The forest that predicts ``offset + sum of weights[m] @ prediction of forests[m]``.

    Comparisons are those of the forests: where they differ in their policy, thresholds are
    moved to those of one policy that decide alike, see :func:`translated_threshold`.

    Parameters
    ----------
    forests : list of Forest
        On the same inputs.
    weights : list of ndarray of shape (n_outputs, n_outputs of the forest)
    offset : ndarray of shape (n_outputs,)

    Returns
    -------
    Forest
    """
    n_nodes = np.cumsum([0, *(forest.n_nodes for forest in forests)])
    n_listed = np.cumsum([0, *(len(forest.category) for forest in forests)])
    strict, single = _common_policy(forests)
    tree_output, value, slope = _join_values(forests, weights, len(offset))

    def joined(name: str) -> np.ndarray:
        return np.concatenate([getattr(forest, name) for forest in forests])

    def shifted(name: str, by: np.ndarray, stop: int | None = -1) -> np.ndarray:
        parts = [getattr(f, name)[:stop] + b for f, b in zip(forests, by, strict=False)]
        return np.concatenate(parts)

    def child(name: str) -> np.ndarray:
        return np.where(joined(name) < 0, -1, shifted(name, n_nodes, None)).astype(np.int32)

    forest = Forest(
        tree_start=np.append(shifted("tree_start", n_nodes), n_nodes[-1]).astype(np.int64),
        left=child("left"),
        right=child("right"),
        feature=joined("feature"),
        threshold=np.concatenate([translated_threshold(f, strict, single) for f in forests]),
        missing_left=joined("missing_left"),
        zero_as_missing=joined("zero_as_missing"),
        is_categorical=joined("is_categorical"),
        listed_left=joined("listed_left"),
        category_start=np.append(shifted("category_start", n_listed), n_listed[-1]),
        category=joined("category"),
        value=value,
        cover=joined("cover"),
        tree_output=tree_output,
        intercept=offset
        + sum(w @ forest.intercept for w, forest in zip(weights, forests, strict=True)),
        n_inputs=forests[0].n_inputs,
        strict=strict,
        single=single,
        slope_node=shifted("slope_node", n_nodes, None),
        slope_input=joined("slope_input"),
        slope=slope,
    )
    check_forest(forest)
    return forest


# -- values --------------------------------------------------------------------------------


def _join_values(
    forests: list[Forest], weights: list[np.ndarray], n_outputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First output of every tree, and the weighted values of every node, and slopes.

    All trees have as many values: those of the tree that adds to the widest range of outputs.
    """
    ranges = [_output_ranges(f, w) for f, w in zip(forests, weights, strict=True)]
    width = max((stop - first for r in ranges for first, stop in r.values()), default=1)
    outputs, values, slopes = [np.empty(0, np.int32)], [np.empty((0, width))], []
    for forest, weight, reached in zip(forests, weights, ranges, strict=True):
        tree_output = np.zeros(forest.n_trees, np.int32)
        value, slope = np.zeros((forest.n_nodes, width)), np.zeros((len(forest.slope), width))
        node_output = np.repeat(forest.tree_output, np.diff(forest.tree_start))
        for output, (first, _) in reached.items():
            first = min(first, n_outputs - width)
            share = weight[first : first + width, output : output + forest.value.shape[1]]
            nodes, own = node_output == output, node_output[forest.slope_node] == output
            value[nodes] = forest.value[nodes] @ share.T
            if own.any():
                slope[own] = forest.slope[own] @ share.T
            tree_output[forest.tree_output == output] = first
        outputs.append(tree_output)
        values.append(value)
        slopes.append(slope)
    return np.concatenate(outputs), np.concatenate(values), np.concatenate(slopes)


def _output_ranges(forest: Forest, weights: np.ndarray) -> dict[int, tuple[int, int]]:
    """First and last but one output of the sum that trees with each first output add to."""
    ranges = {}
    for output in np.unique(forest.tree_output).tolist():
        share = weights[:, output : output + forest.value.shape[1]]
        reached = np.flatnonzero(np.any(share != 0, axis=1))
        ranges[output] = (int(reached[0]), int(reached[-1]) + 1) if len(reached) else (0, 1)
    return ranges


# -- thresholds ----------------------------------------------------------------------------


def _common_policy(forests: list[Forest]) -> tuple[bool, bool]:
    policies = {(forest.strict, forest.single) for forest in forests}
    if len(policies) == 1:
        return policies.pop()
    return False, all(single for _, single in policies)


def translated_threshold(forest: Forest, strict: bool, single: bool) -> np.ndarray:
    """Thresholds that decide in another policy as the forest's own do in its own.

    Of the values that a forest compares, those that go left are all up to some largest one,
    in float32 (``single``) or in float64. If values are no longer rounded to float32 before
    they are compared, the largest is the last float64 that would be rounded to that float32 or
    below, since rounding keeps the order.

    Parameters
    ----------
    forest : Forest
    strict, single : bool
        The policy wanted: the forest's own, or ``strict=False`` and no coarser than it.

    Returns
    -------
    ndarray of shape (n_nodes,), float64
        NaN where the forest's are.
    """
    threshold = forest.threshold
    if (forest.strict, forest.single) == (strict, single):
        return threshold
    if not forest.single:
        return np.nextafter(threshold, -np.inf)
    last = _last_single(threshold, forest.strict)
    return last.astype(np.float64) if single else _last_rounded_to(last)


def _last_single(threshold: np.ndarray, strict: bool) -> np.ndarray:
    """The largest float32 below (``strict``) or up to a threshold."""
    with np.errstate(over="ignore", under="ignore"):
        last = threshold.astype(np.float32)
        beyond = last >= threshold if strict else last > threshold
        return np.where(beyond, np.nextafter(last, np.float32(-np.inf)), last)


def _last_rounded_to(single: np.ndarray) -> np.ndarray:
    """The largest float64 that float32 rounds to a value or below it."""
    with np.errstate(over="ignore", under="ignore"):
        above = np.nextafter(single, np.float32(np.inf)).astype(np.float64)
        low = np.clip(single.astype(np.float64), -_BEYOND_SINGLE, _BEYOND_SINGLE)
        middle = (low + np.minimum(above, _BEYOND_SINGLE)) / 2  # exact: one bit more than float32
        # A tie is rounded to the even one of the two.
        last = np.where(middle.astype(np.float32) <= single, middle, np.nextafter(middle, -np.inf))
    return np.where(single == np.inf, np.inf, last)
