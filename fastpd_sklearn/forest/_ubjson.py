"""A reader of UBJSON (universal binary JSON, draft 12), the format of XGBoost's models.

Arrays of one numeric type become numpy arrays without a loop over their elements.
"""

from __future__ import annotations

from struct import Struct, error

import numpy as np

_NUMBERS = {
    ord(mark): Struct(code)
    for mark, code in zip("iUIlLdD", (">b", ">B", ">h", ">i", ">q", ">f", ">d"), strict=True)
}
_DTYPES = {
    ord(mark): np.dtype(code)
    for mark, code in zip("iUIlLdD", (">i1", ">u1", ">i2", ">i4", ">i8", ">f4", ">f8"), strict=True)
}
_CONSTANTS = {ord("Z"): None, ord("T"): True, ord("F"): False}
_CHAR, _STRING, _PRECISE = b"CSH"
_OPEN_ARRAY, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT, _TYPE, _COUNT, _LONG = b"[]{}$#L"
_long = Struct(">q").unpack_from


def loads(data: bytes | bytearray):
    """Parse one UBJSON value.

    Parameters
    ----------
    data : bytes or bytearray

    Returns
    -------
    dict, list, ndarray, str, int, float, bool or None
        An array whose elements are declared to be of one numeric type is a read-only
        big-endian ndarray, any other array a list.

    Raises
    ------
    ValueError
        If ``data`` is not UBJSON.
    """
    try:
        return _value(bytes(data), 1, data[0])[0]
    except (IndexError, error, UnicodeDecodeError) as broken:
        raise ValueError(f"the data are not UBJSON: {broken}") from broken


def _value(data, at: int, mark: int):
    """The value of type ``mark`` that starts at ``at``, and where it ends."""
    number = _NUMBERS.get(mark)
    if number is not None:
        return number.unpack_from(data, at)[0], at + number.size
    if mark in (_STRING, _PRECISE):
        text, at = _text(data, at)
        return (text if mark == _STRING else float(text)), at
    if mark == _OPEN_OBJECT:
        return _object(data, at)
    if mark == _OPEN_ARRAY:
        return _array(data, at)
    if mark == _CHAR:
        return chr(data[at]), at + 1
    if mark in _CONSTANTS:
        return _CONSTANTS[mark], at
    raise ValueError(f"the data are not UBJSON: type {chr(mark)!r} at byte {at - 1}")


def _text(data, at: int) -> tuple[str, int]:
    length, at = _length(data, at)
    if length > len(data) - at:
        raise ValueError("the data are not UBJSON: a text is cut short")
    end = at + length
    return data[at:end].decode(), end


def _length(data, at: int) -> tuple[int, int]:
    if data[at] == _LONG:  # as XGBoost has all of them
        length = _long(data, at + 1)[0]
        if length >= 0:
            return length, at + 9
    number = _NUMBERS.get(data[at])
    length = -1 if number is None else number.unpack_from(data, at + 1)[0]
    if not isinstance(length, int) or length < 0:
        raise ValueError(f"the data are not UBJSON: no length at byte {at}")
    return length, at + 1 + number.size


def _header(data, at: int) -> tuple[int | None, int | None, int]:
    """The declared type and number of a container's elements, None where undeclared."""
    mark = count = None
    if data[at] == _TYPE:
        mark, at = data[at + 1], at + 2
        if data[at] != _COUNT:
            raise ValueError(f"the data are not UBJSON: a type without a count at byte {at}")
    if data[at] == _COUNT:
        count, at = _length(data, at + 1)
    return mark, count, at


def _array(data, at: int):
    mark, count, at = _header(data, at)
    if mark in _DTYPES:
        return _numbers(data, at, _DTYPES[mark], count)
    items = []
    while len(items) != count:
        kind = mark
        if kind is None:
            kind, at = data[at], at + 1
            if kind == _CLOSE_ARRAY and count is None:
                break
        item, at = _value(data, at, kind)
        items.append(item)
    return items, at


def _numbers(data, at: int, dtype: np.dtype, count: int) -> tuple[np.ndarray, int]:
    end = at + count * dtype.itemsize
    if end > len(data):
        raise ValueError("the data are not UBJSON: an array is cut short")
    return np.frombuffer(data, dtype, count, at), end


def _object(data, at: int) -> tuple[dict, int]:
    mark, count, at = _header(data, at)
    items: dict = {}
    while len(items) != count:
        if count is None and data[at] == _CLOSE_OBJECT:
            at += 1
            break
        key, at = _text(data, at)
        kind = mark
        if kind is None:
            kind, at = data[at], at + 1
        items[key], at = _value(data, at, kind)
    return items, at
