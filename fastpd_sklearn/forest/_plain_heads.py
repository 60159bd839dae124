"""Heads as plain values, and back, for files that hold no code."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from fastpd_sklearn.forest import _mixing
from fastpd_sklearn.forest._head import Head

_KINDS = {
    cls.__name__: cls
    for cls in (
        Head,
        _mixing.Mixture,
        _mixing.RawAnswer,
        _mixing.WeightedMean,
        _mixing.Rivals,
        _mixing.Calibrated,
        _mixing.CalibratedMember,
        _mixing.Sigmoid,
        _mixing.Isotonic,
        _mixing.Temperature,
    )
}
"""What heads are made of that is numbers and text alone."""


def plain_head(head: Head) -> dict:
    """A head as a dict of plain values, which may be nested.

    Parameters
    ----------
    head : Head

    Returns
    -------
    dict

    Raises
    ------
    TypeError
        If its link calls something else than arithmetic: an estimator, or a transformer.
    """
    return _plain(head)


def _plain(value):
    name = type(value).__name__
    if _KINDS.get(name) is type(value):
        return {"kind": name, **{f.name: _plain(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if callable(value):
        raise TypeError(f"a response that is found by other code ({name}) can't be saved")
    return value


def head_of(found: dict, n_outputs: int) -> Head:
    """The head that :func:`plain_head` was given.

    Parameters
    ----------
    found : dict
        From anywhere.
    n_outputs : int
        Raw outputs of the forest.

    Returns
    -------
    Head

    Raises
    ------
    ValueError, TypeError
        If it is none, or does not respond to as many raw outputs.
    """
    head = _made(found)
    if not isinstance(head, Head):
        raise ValueError("its head is none")
    _check_sizes(head, n_outputs)
    widths = set()
    for n_rows in (1, 3):
        response = np.asarray(head.respond(np.zeros((n_rows, n_outputs))))
        if response.ndim != 2 or len(response) != n_rows or response.dtype.kind != "f":
            raise ValueError("its head does not respond row by row")
        widths.add(response.shape[1])
    if len(widths) > 1 or 0 in widths:
        raise ValueError("its head does not respond alike to all rows")
    return head


def _check_sizes(head: Head, n_raw: int) -> None:
    """Refuse a mixture whose members have more or fewer raw outputs than there are."""
    if not isinstance(head.link, _mixing.Mixture):
        return
    if sum(answer.n_raw for answer in head.link.answers) != n_raw:
        raise ValueError(f"its head does not part {n_raw} raw outputs among its members")
    for answer in head.link.answers:
        _check_sizes(answer.head, answer.n_raw)


def _made(value):
    if isinstance(value, tuple):
        return tuple(map(_made, value))
    if not isinstance(value, dict):
        return value
    entries = dict(value)
    kind = entries.pop("kind", None)
    if kind not in _KINDS:
        raise ValueError(f"its head has a part of the unknown kind {kind!r}")
    cls = _KINDS[kind]
    if set(entries) != {field.name for field in fields(cls)}:
        raise ValueError(f"its {kind} has other entries than it should")
    return cls(**{name: _made(entry) for name, entry in entries.items()})
