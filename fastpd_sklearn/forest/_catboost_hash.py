"""What CatBoost knows of a category: 32 bits of a hash of its label."""

from __future__ import annotations

import math
import numbers
import struct

import numpy as np

_K0, _K1, _K2, _K3 = (
    0xC3A5C85C97CB3127,
    0xB492B66FBE98F273,
    0x9AE16A3B2F90404F,
    0xC949D7C7509E6557,
)
_MULTIPLIER = 0x9DDFEA08EB382D69
_WORD = 2**64 - 1


def category_hash(label) -> int:
    """CatBoost's hash of a label.

    Parameters
    ----------
    label : str, bytes, bool or number
        Numbers are written as integers first.

    Returns
    -------
    int
        Within 32 signed bits.

    Raises
    ------
    ValueError
        If the label is a number that is no integer, or anything else.
    """
    word = city_hash_64(_as_bytes(label)) & 0xFFFFFFFF
    return word - 2**32 if word >= 2**31 else word


def _as_bytes(label) -> bytes:
    if isinstance(label, bytes):
        return label
    if isinstance(label, str):
        return label.encode()
    # Whole floats are let through: rows that explainers make may hold integers as floats.
    is_number = isinstance(label, numbers.Real | np.bool_)
    if is_number and math.isfinite(label) and int(label) == label:
        return str(int(label)).encode()
    raise ValueError(
        f"{label!r} is no label that CatBoost accepts, which takes strings and integers for "
        "categories; convert it to a string as in the training data"
    )


def city_hash_64(text: bytes) -> int:
    """CityHash64 in its version 1.0.

    Parameters
    ----------
    text : bytes

    Returns
    -------
    int
        Within 64 unsigned bits.

    References
    ----------
    G. Pike and J. Alakuijala, "Introducing CityHash", Google, 2011.
    """
    size = len(text)
    if size <= 16:
        return _up_to_16(text, size)
    if size <= 32:
        return _up_to_32(text, size)
    if size <= 64:
        return _up_to_64(text, size)
    return _beyond_64(text, size)


def _fetch(text: bytes, at: int) -> int:
    return struct.unpack_from("<Q", text, at)[0]


def _fetch_half(text: bytes, at: int) -> int:
    return struct.unpack_from("<I", text, at)[0]


def _rotate(word: int, shift: int) -> int:
    word &= _WORD
    return (word >> shift) | (word << (64 - shift)) & _WORD


def _mix(word: int) -> int:
    word &= _WORD
    return word ^ (word >> 47)


def _combine(low: int, high: int) -> int:
    """One word from two."""
    low, high = low & _WORD, high & _WORD
    first = _mix((low ^ high) * _MULTIPLIER)
    second = _mix((high ^ first) * _MULTIPLIER)
    return second * _MULTIPLIER & _WORD


def _up_to_16(text: bytes, size: int) -> int:
    if size > 8:
        first, last = _fetch(text, 0), _fetch(text, size - 8)
        return _combine(first, _rotate(last + size, size)) ^ last
    if size >= 4:
        return _combine(size + (_fetch_half(text, 0) << 3), _fetch_half(text, size - 4))
    if size > 0:
        low = text[0] + (text[size // 2] << 8)
        high = size + (text[-1] << 2)
        return _mix((low * _K2 & _WORD) ^ (high * _K3 & _WORD)) * _K2 & _WORD
    return _K2


def _up_to_32(text: bytes, size: int) -> int:
    a, b = _fetch(text, 0) * _K1, _fetch(text, 8)
    c, d = _fetch(text, size - 8) * _K2, _fetch(text, size - 16) * _K0
    return _combine(_rotate(a - b, 43) + _rotate(c, 30) + d, a + _rotate(b ^ _K3, 20) - c + size)


def _up_to_64(text: bytes, size: int) -> int:
    z = _fetch(text, 24)
    a = _fetch(text, 0) + (size + _fetch(text, size - 16)) * _K0
    b, c = _rotate(a + z, 52), _rotate(a, 37)
    a += _fetch(text, 8)
    c += _rotate(a, 7)
    a += _fetch(text, 16)
    first = (a + z, b + _rotate(a, 31) + c)
    a = _fetch(text, 16) + _fetch(text, size - 32)
    z = _fetch(text, size - 8)
    b, c = _rotate(a + z, 52), _rotate(a, 37)
    a += _fetch(text, size - 24)
    c += _rotate(a, 7)
    a += _fetch(text, size - 16)
    last = (a + z, b + _rotate(a, 31) + c)
    mixed = _mix((first[0] + last[1]) * _K2 + (last[0] + first[1]) * _K0)
    return _mix(mixed * _K0 + first[1]) * _K2 & _WORD


def _beyond_64(text: bytes, size: int) -> int:
    x = _fetch(text, 0)
    y = _fetch(text, size - 16) ^ _K1
    z = _fetch(text, size - 56) ^ _K0
    v = _weak(text, size - 64, size, y)
    w = _weak(text, size - 32, size * _K1, _K0)
    z += _mix(v[1]) * _K1
    x, y = _rotate(z + x, 39) * _K1, _rotate(y, 33) * _K1
    for at in range(0, size - 1 & ~63, 64):
        x = _rotate(x + y + v[0] + _fetch(text, at + 16), 37) * _K1
        y = _rotate(y + v[1] + _fetch(text, at + 48), 42) * _K1
        x ^= w[1]
        y ^= v[0]
        z = _rotate(z ^ w[0], 33)
        v = _weak(text, at, v[1] * _K1, x + w[0])
        w = _weak(text, at + 32, z + w[1], y)
        x, z = z, x & _WORD
    return _combine(_combine(v[0], w[0]) + _mix(y) * _K1 + z, _combine(v[1], w[1]) + x)


def _weak(text: bytes, at: int, a: int, b: int) -> tuple[int, int]:
    """Two words from 32 bytes and two seeds."""
    w, x, y, z = struct.unpack_from("<4Q", text, at)
    a += w
    b = _rotate(b + a + z, 21)
    c = a
    a += x + y
    b += _rotate(a, 44)
    return a + z & _WORD, b + c & _WORD
