"""UBJSON is read as draft 12 has it, and XGBoost's models as their JSON says."""

import json

import numpy as np
import pytest
import xgboost

from fastpd_sklearn.forest._ubjson import loads


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"Z", None),
        (b"T", True),
        (b"F", False),
        (b"i\xff", -1),
        (b"U\xff", 255),
        (b"I\x01\x00", 256),
        (b"l\xff\xff\xff\xfe", -2),
        (b"L\x00\x00\x00\x01\x00\x00\x00\x00", 2**32),
        (b"d\x3f\xc0\x00\x00", 1.5),
        (b"D\xbf\xf8\x00\x00\x00\x00\x00\x00", -1.5),
        (b"Ca", "a"),
        (b"Si\x03\xc3\xa9x", "éx"),
        (b"Hi\x031.5", 1.5),
        (b"[]", []),
        (b"[i\x01[Z]T]", [1, [None], True]),
        (b"[#i\x02i\x01Si\x01a", [1, "a"]),
        (b"[$S#i\x02i\x01ai\x01b", ["a", "b"]),
        (b"{}", {}),
        (b"{i\x01a{i\x01bi\x07}i\x01cZ}", {"a": {"b": 7}, "c": None}),
        (b"{#i\x01i\x01ai\x01", {"a": 1}),
        (b"{$i#i\x02i\x01a\x01i\x01b\x02", {"a": 1, "b": 2}),
    ],
)
def test_values(data, value):
    assert loads(data) == value
    assert loads(bytearray(data)) == value


@pytest.mark.parametrize(
    ("data", "dtype", "values"),
    [
        (b"[$i#i\x02\xff\x02", np.int8, [-1, 2]),
        (b"[$U#i\x02\xff\x02", np.uint8, [255, 2]),
        (b"[$I#i\x02\xff\xff\x00\x02", np.int16, [-1, 2]),
        (b"[$l#i\x01\x00\x01\x00\x00", np.int32, [65536]),
        (b"[$L#i\x01\xff\xff\xff\xff\xff\xff\xff\xff", np.int64, [-1]),
        (b"[$d#i\x01\x3f\xc0\x00\x00", np.float32, [1.5]),
        (b"[$D#i\x01\x3f\xf8\x00\x00\x00\x00\x00\x00", np.float64, [1.5]),
        (b"[$l#i\x00", np.int32, []),
    ],
)
def test_typed_arrays(data, dtype, values):
    array = loads(data)
    assert array.dtype.newbyteorder("=") == dtype
    assert array.tolist() == values


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"x",
        b"i",
        b"[i\x01",
        b"{i\x01a",
        b"Si\x05ab",
        b"Si\xff",
        b"Sd\x3f\xc0\x00\x00",
        b"[$d#i\x02\x3f\xc0\x00\x00",
        b"[$d\x00",
        b"Si\x01\xff",
    ],
)
def test_what_is_not_ubjson(data):
    with pytest.raises(ValueError, match="not UBJSON"):
        loads(data)


def test_a_model_as_its_json_says():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(X, X[:, 0] * X[:, 1]), 3)

    def plain(part):
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items()}
        if isinstance(part, np.ndarray):
            return part.astype(float).tolist()
        return [plain(value) for value in part] if isinstance(part, list) else part

    def same(ours, theirs):
        if isinstance(ours, dict):
            assert ours.keys() == theirs.keys()
            for key in ours:
                same(ours[key], theirs[key])
        elif isinstance(ours, list) and ours and isinstance(ours[0], float):
            np.testing.assert_array_equal(np.float32(ours), np.float32(theirs))
        elif isinstance(ours, list):
            assert len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                same(one, other)
        else:
            assert ours == theirs

    same(plain(loads(booster.save_raw("ubj"))), json.loads(booster.save_raw("json")))
