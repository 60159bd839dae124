"""A file of arrays and plain values: a zip of ``.npy`` members and one JSON, and no code.

Nothing in it is compressed, so that no member is larger than it looks, and nothing is read that is
not expected: each array is checked for its type and shape before its bytes are touched.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
import zipfile
from io import BytesIO

import numpy as np

HEADER = "explainer.json"

DAMAGED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,  # a way of packing that zipfile does not know
    RecursionError,
    RuntimeError,  # a member with a password
    SyntaxError,  # the header of an array
    TypeError,
    ValueError,
    zipfile.BadZipFile,
)
"""What reading a damaged or hostile file can raise."""


class Archive:
    """Arrays and a header, on their way to a file or from one.

    Parameters
    ----------
    header : dict
        Of what :func:`encode` gives.
    arrays : dict of str to ndarray
    """

    def __init__(self, header: dict, arrays: dict[str, np.ndarray]) -> None:
        self.header, self.arrays = header, arrays

    def write(self, file) -> None:
        """Write to a path, of which an older file stays until all is written, or to a file."""
        if hasattr(file, "write"):
            self._write(file)
            return
        folder = os.path.dirname(os.path.abspath(file))
        handle, made = tempfile.mkstemp(dir=folder, prefix=".explainer")
        try:
            with os.fdopen(handle, "wb") as opened:
                self._write(opened)
            os.replace(made, file)
        except BaseException:
            os.unlink(made)
            raise

    def _write(self, file) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as packed:
            packed.writestr(HEADER, json.dumps(self.header, allow_nan=False))
            for name, array in self.arrays.items():
                content = BytesIO()
                np.lib.format.write_array(content, np.asarray(array, order="C"), (1, 0), False)
                packed.writestr(f"{name}.npy", content.getvalue())

    @classmethod
    def read(cls, file) -> Archive:
        """Read a file.

        Raises
        ------
        ValueError
            If it is no such file.
        """
        with zipfile.ZipFile(file) as packed:
            members = packed.infolist()
            names = [member.filename for member in members]
            if len(set(names)) < len(names) or HEADER not in names:
                raise ValueError(f"it has no {HEADER}, or a member twice")
            for member in members:
                if member.compress_type != zipfile.ZIP_STORED:
                    raise ValueError(f"its member {member.filename!r} is compressed")
            header = json.loads(packed.read(HEADER).decode(), parse_constant=_refuse_constant)
            arrays = {
                name.removesuffix(".npy"): _open_array(name, packed.read(name))
                for name in names
                if name != HEADER
            }
        if not isinstance(header, dict):
            raise ValueError(f"its {HEADER} is no object")
        return cls(header, arrays)

    def take(self, name: str, dtype: str, *shape: int | None) -> np.ndarray:
        """An array of the archive, which is then no longer in it.

        Parameters
        ----------
        name : str
        dtype : str
        *shape : int or None
            None for any number.

        Returns
        -------
        ndarray

        Raises
        ------
        ValueError
            If there is none of that name, type and shape.
        """
        if name not in self.arrays:
            raise ValueError(f"it lacks the array {name!r}")
        array = self.arrays.pop(name)
        fits = len(array.shape) == len(shape) and all(
            size in (None, found) for size, found in zip(shape, array.shape, strict=True)
        )
        if array.dtype != np.dtype(dtype) or not fits:
            raise ValueError(
                f"its array {name!r} is {array.dtype} of shape {array.shape}, and should be "
                f"{dtype} of shape {tuple('any' if n is None else n for n in shape)}"
            )
        return array

    def check_empty(self) -> None:
        """Refuse arrays that nobody has taken."""
        if self.arrays:
            raise ValueError(f"it has unknown arrays {sorted(self.arrays)}")


def _open_array(name: str, content: bytes) -> np.ndarray:
    if not name.endswith(".npy"):
        raise ValueError(f"it has an unknown member {name!r}")
    file = BytesIO(content)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError(f"its array {name!r} is of another version of the format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(file)
    size = math.prod(shape)
    left = len(content) - file.tell()
    is_plain = dtype.kind in "biuf" and not is_fortran and min(shape, default=0) >= 0
    if not is_plain or size * dtype.itemsize != left:
        raise ValueError(f"its array {name!r} is not as large as it says, or no array of numbers")
    flat = np.frombuffer(content, dtype, size, offset=file.tell())
    return flat.reshape(shape).astype(dtype.newbyteorder("="))


def _refuse_constant(word: str):
    raise ValueError(f"its {HEADER} has the word {word}, which is no JSON")


# ------------------------------------------------------------------------- plain values


def encode(value):
    r"""A value as JSON; what JSON has no word for becomes an object with one key.

    Parameters
    ----------
    value : None, bool, int, float, str, a NumPy scalar or array, or a tuple, list, dict or \
frozenset of these

    Returns
    -------
    object
        Lists, dicts of str, and plain values.

    Raises
    ------
    TypeError
        For anything else.
    """
    if isinstance(value, np.ndarray):
        plain = {"O": "object", "U": "str"}.get(value.dtype.kind)
        kind = plain or value.dtype.str.lstrip("<=|")
        if plain is None and value.dtype.kind not in "biuf":
            raise TypeError(f"an array of {value.dtype} can't be saved")
        items = [encode(item) for item in value.ravel().tolist()]
        return {"array": [kind, list(value.shape), items]}
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return {"scalar": [value.dtype.str.lstrip("<=|"), encode(value.item())]}
    if isinstance(value, str):
        return str(value)  # NumPy has a class of its own for them
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": repr(value)}
    for name, kind in (("tuple", tuple), ("list", list), ("set", frozenset)):
        if isinstance(value, kind):
            return {name: [encode(item) for item in value]}
    if isinstance(value, dict):
        return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
    raise TypeError(f"a {type(value).__name__} can't be saved")


def decode(value):
    """What :func:`encode` was given.

    Raises
    ------
    ValueError
        For what it does not give.
    """
    if value is None or isinstance(value, bool | str | int | float):
        return value
    if not isinstance(value, dict) or len(value) != 1:
        raise ValueError(f"its {HEADER} has a value of an unknown kind")
    ((kind, content),) = value.items()
    if kind == "float" and content in ("nan", "inf", "-inf"):
        return float(content)
    if kind == "tuple":
        return tuple(map(decode, content))
    if kind == "list":
        return list(map(decode, content))
    if kind == "set":
        return frozenset(map(decode, content))
    if kind == "dict":
        return {decode(key): decode(item) for key, item in content}
    if kind == "scalar":
        dtype, item = content
        return _plain_dtype(dtype).type(decode(item))
    if kind == "array":
        return _decode_array(*content)
    raise ValueError(f"its {HEADER} has a value of the unknown kind {kind!r}")


def _decode_array(kind: str, shape: list, items: list) -> np.ndarray:
    if math.prod(shape) != len(items):
        raise ValueError(f"its {HEADER} has an array that is not as large as it says")
    if kind != "object":
        dtype = np.str_ if kind == "str" else _plain_dtype(kind)
        return np.array(list(map(decode, items)), dtype).reshape(shape)
    out = np.empty(len(items), dtype=object)
    out[:] = list(map(decode, items))
    return out.reshape(shape)


def _plain_dtype(name: str) -> np.dtype:
    if name not in ("b1", *(f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8))):
        raise ValueError(f"its {HEADER} has numbers of the unknown kind {name!r}")
    return np.dtype(name)
