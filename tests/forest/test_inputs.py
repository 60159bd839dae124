"""How arrays, sparse matrices and data frames become the inputs of a forest."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_array_equal
from scipy import sparse

from fastpd_sklearn.forest import InputMap, _frames

NAN = np.nan


def opened(X, **options):
    width = np.shape(X)[1] if not hasattr(X, "shape") else X.shape[1]
    return InputMap(n_columns=width, **options).open(X)


def single(series, **options):
    """The one input that a series becomes."""
    frame = pl.DataFrame({"c": series}) if isinstance(series, pl.Series) else None
    frame = pd.DataFrame({"c": series}) if frame is None else frame
    return opened(frame, **options).column(0)


# -- Arrays --------------------------------------------------------------------------------

NUMERIC = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64, np.longdouble, ">f4", ">f8"]


@pytest.mark.parametrize("dtype", [bool, *NUMERIC, ">i4", *FLOATS, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_array_dtypes(dtype, order):
    X = np.array([[0, 1, 1], [1, 0, 1]]).astype(dtype, order=order)
    inputs = opened(X)
    assert_array_equal(inputs.to_array(), [[0, 1, 1], [1, 0, 1]])
    assert inputs.n_rows == 2
    kept = np.dtype(dtype) in (np.float16, np.float32) and np.dtype(dtype).isnative
    assert inputs.column(1).dtype == (np.float32 if kept else np.float64)
    assert inputs.matrix.dtype == inputs.column(1).dtype
    assert inputs.to_array().dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_are_used_as_they_are(dtype):
    X = np.asfortranarray(np.arange(6.0).reshape(2, 3).astype(dtype))
    inputs = opened(X[:, ::2])
    assert np.shares_memory(inputs.matrix, X)
    assert np.shares_memory(inputs.column(1), X)
    assert_array_equal(inputs.column(1), X[:, 2])


def test_dtype_of_other_arrays():
    X = np.array([[2**24 + 1]])
    assert opened(X).column(0) == 2**24 + 1
    assert opened(X, array_dtype=np.float32).column(0) == 2**24
    assert opened(X.astype(np.float64), array_dtype=np.float32).column(0) == 2**24 + 1


def test_lists_and_objects_with_missing_values():
    assert_array_equal(opened([[1, 2.5], [None, 4]]).to_array(), [[1, 2.5], [NAN, 4]])
    X = np.array([[True, 1], [NAN, None]], dtype=object)
    assert_array_equal(opened(X).to_array(), [[1, 1], [NAN, NAN]])


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([["1", "2"]]), "<U1"),
        (np.array([[b"1", b"2"]]), r"\|S1"),
        (np.array([[1j, 2]]), "complex128"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "datetime64"),
        (np.array([[1, 2], [3, "tall"]], dtype=object), "column 1 .*dtype object.*tall"),
        (np.array([[1, pd.NA]], dtype=object), "column 1 .*dtype object"),
        (np.array([[1, 10**400]], dtype=object), "column 1 .*dtype object.*too large"),
    ],
)
def test_arrays_that_are_no_numbers(X, message):
    with pytest.raises(ValueError, match=message):
        opened(X)


def test_the_name_of_an_odd_column():
    X = np.array([[1, "tall"]], dtype=object)
    with pytest.raises(ValueError, match="column 'size' of X"):
        opened(X, names=("age", "size"))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_sentinel_for_missing_in_arrays(dtype):
    X = np.array([[-999, 2], [3, -999]], dtype=dtype)
    inputs = opened(X, missing=-999.0)
    assert_array_equal(inputs.to_array(), [[NAN, 2], [3, NAN]])
    assert inputs.matrix is None
    assert_array_equal(X, [[-999, 2], [3, -999]])


# -- Labels in arrays ----------------------------------------------------------------------

LETTERS = {0: np.array(["x", "y", None], dtype=object)}


def test_codes_and_labels_in_arrays():
    X = np.array([[30.0, 0], [10, 1], [77, 2], [NAN, 3]])
    known = {0: np.array([10, 20, 30])}
    assert_array_equal(opened(X, categories=known).column(0), X[:, 0])
    inputs = opened(X, categories=known, codes_as_given=False)
    assert_array_equal(inputs.column(0), [2, 0, -1, NAN])
    assert_array_equal(inputs.column(1), [0, 1, 2, 3])
    assert inputs.matrix is None
    inputs = opened(X.astype(np.float32), categories=known, codes_as_given=False, unknown=NAN)
    assert_array_equal(inputs.column(0), [2, 0, NAN, NAN])


def test_labels_among_objects():
    X = np.array([["y", 1], ["x", 2], [None, 3], [NAN, 4], ["w", 5], [pd.NA, 6]], dtype=object)
    inputs = opened(X, categories=LETTERS, codes_as_given=False)
    assert_array_equal(inputs.column(0), [1, 0, 2, NAN, -1, NAN])
    assert_array_equal(inputs.column(1), [1, 2, 3, 4, 5, 6])
    X[0, 1] = "tall"
    inputs = opened(X, categories=LETTERS, codes_as_given=False)
    with pytest.raises(ValueError, match=r"column 1 .*tall"):
        inputs.column(1)


# -- Sparse matrices -----------------------------------------------------------------------

SPARSE = [
    sparse.csr_array,
    sparse.csc_array,
    sparse.coo_array,
    sparse.csr_matrix,
    sparse.csc_matrix,
    sparse.coo_matrix,
]
# Column 0 has a stored zero in row 0, column 1 stores the same entry twice.
ENTRIES = (np.array([0.0, 5, 2, 3, NAN]), (np.array([0, 2, 1, 1, 2]), np.array([0, 0, 1, 1, 2])))


def parts(X):
    return [getattr(X, name).copy() for name in ("data", "indices", "indptr") if hasattr(X, name)]


@pytest.mark.parametrize("make", SPARSE)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, bool])
def test_sparse(make, dtype):
    with np.errstate(invalid="ignore"):
        values = np.nan_to_num(ENTRIES[0]).astype(dtype)
    X = make((values, ENTRIES[1]), shape=(4, 4))
    before = parts(X)
    expected = X.toarray()
    assert_array_equal(opened(X).to_array(), expected)
    absent = opened(X, absent=NAN)
    filled = np.full((4, 4), NAN)
    filled[[0, 2, 1, 2], [0, 0, 1, 2]] = expected[[0, 2, 1, 2], [0, 0, 1, 2]]
    assert_array_equal(absent.to_array(), filled)
    assert absent.matrix is None
    assert absent.n_rows == 4
    for was, now in zip(before, parts(X), strict=True):
        assert_array_equal(was, now)


@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csc_matrix])
def test_sparse_with_duplicates_out_of_order(make):
    # Not in canonical form: row and column 0 hold 1 + 2 at the same place and 4 before it.
    X = make((np.array([4.0, 1, 2, 7]), np.array([2, 0, 0, 1]), np.array([0, 3, 4, 4])))
    before = parts(X)
    assert_array_equal(opened(X).to_array(), X.toarray())
    assert X.toarray().max() == 7
    assert 3 in X.toarray()
    for was, now in zip(before, parts(X), strict=True):
        assert_array_equal(was, now)


def test_sentinel_for_missing_in_sparse():
    X = sparse.csr_array(np.array([[-999.0, 0], [3, 0]]))
    inputs = opened(X, missing=-999.0, absent=NAN)
    assert_array_equal(inputs.to_array(), [[NAN, NAN], [3, NAN]])
    inputs = opened(X, missing=-999.0)
    assert_array_equal(inputs.to_array(), [[NAN, 0], [3, 0]])
    assert_array_equal(opened(X, missing=0.0).to_array(), [[-999, NAN], [3, NAN]])


# -- Numbers in frames ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1, 0], dtype=bool),
        *(pd.Series([1, 0], dtype=t) for t in [*NUMERIC, np.float16, np.float32, np.float64]),
        *(pd.Series([1, 0], dtype=t) for t in ["Int8", "UInt64", "Float32", "boolean"]),
        pd.Series([1, 0], dtype="int64[pyarrow]"),
        pd.Series([1, 0], dtype="double[pyarrow]"),
        pd.Series([1, 0], dtype=pd.SparseDtype(float, 0.0)),
        pd.Series([1, 0], dtype=object),
        *(pl.Series([1, 0], dtype=t) for t in [pl.Int8, pl.UInt64, pl.Float32, pl.Float64]),
        pl.Series([True, False]),
        pl.Series([1, 0]).cast(pl.Decimal(10, 2)),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]}-{series.dtype}",
)
def test_numbers_in_frames(series):
    got = single(series)
    assert_array_equal(got, [1, 0])
    is_single = str(series.dtype) in ("float32", "Float32")
    assert got.dtype == (np.float32 if is_single else np.float64)


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([1.5, NAN, -999]),
        pd.Series([1.5, None, -999], dtype="Float64"),
        pd.Series([1.5, None, -999], dtype="Float32"),
        pd.Series([1.5, pd.NA, -999], dtype=object),
        pd.Series([1.5, None, -999], dtype="double[pyarrow]"),
        pl.Series([1.5, None, -999]),
        pl.Series([1.5, NAN, -999], dtype=pl.Float32),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]}-{series.dtype}",
)
def test_missing_numbers_in_frames(series):
    assert_array_equal(single(series), [1.5, NAN, -999])
    assert_array_equal(single(series, missing=-999.0), [1.5, NAN, NAN])


@pytest.mark.parametrize("missing", [NAN, -1.0])
def test_small_frames_of_numbers_are_read_as_columns_are(missing, monkeypatch):
    X = pd.DataFrame({"flag": [True, False, True], "whole": [2**53 + 1, -1, 7]})
    X = X.assign(
        small=np.array([0.1, -1, NAN], np.float32), half=np.array([0.1, 1, -1], np.float16)
    ).assign(double=[0.1, np.inf, NAN])
    for frame in (X, X[["small"]], X[["small", "double"]], X.iloc[:, ::-1]):
        whole = opened(frame, missing=missing)
        assert whole.matrix is None or missing is NAN
        with monkeypatch.context() as patched:
            patched.setattr("fastpd_sklearn.forest._inputs.MOST_COPIED", 0)
            by_column = opened(frame, missing=missing)
            assert by_column.matrix is None
            columns = [by_column.column(j) for j in range(frame.shape[1])]
        assert_array_equal(whole.to_array(), np.column_stack(columns).astype(np.float64))
        assert (whole._X.dtype == np.float32) == (frame.shape[1] == 1)


def test_nullable_integers_and_booleans():
    assert_array_equal(single(pd.Series([2**53, None], dtype="Int64")), [2**53, NAN])
    assert_array_equal(single(pd.Series([True, None], dtype="boolean")), [1, NAN])
    assert_array_equal(single(pl.Series([True, None])), [1, NAN])


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["a", "b"], dtype=object),
        pd.Series(["a", "b"]),
        pd.Series(["a", "b"], dtype="string"),
        pd.Series(["1", "2"], dtype="string[pyarrow]"),
        pd.to_datetime(pd.Series(["2020-01-01", "2021-01-01"])),
        pd.Series([1, 2]).astype("timedelta64[s]"),
        pd.Series([1j, 2]),
        pd.Series(pd.interval_range(0, 2)),
        pl.Series(["a", "b"]),
        pl.Series([1, 2]).cast(pl.Date),
        pl.Series([[1], [2]]),
        # Its codes are those of the process, not of a model.
        pl.Series(["a", "b"], dtype=pl.Categorical),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]}-{series.dtype}",
)
def test_columns_that_are_no_numbers(series):
    frame = pl.DataFrame if isinstance(series, pl.Series) else pd.DataFrame
    X = frame({"age": [1, 2], "size": series})
    with pytest.raises(ValueError, match="column 'size' of X has dtype") as caught:
        opened(X)
    assert str(series.dtype) in str(caught.value)


def test_columns_by_position():
    X = pd.DataFrame([[1, 2.5, True], [3, 4.5, False]], columns=["a", "a", 7], index=[9, 9])
    X = X.astype({7: bool})
    assert_array_equal(opened(X).to_array(), [[1, 2.5, 1], [3, 4.5, 0]])


# -- Labels in frames ----------------------------------------------------------------------

WORDS = ["y", "x", None, "w", "x"]
WORD_SERIES = [
    pd.Series(WORDS, dtype=object),
    pd.Series(WORDS, dtype="str"),
    pd.Series(WORDS, dtype="string"),
    pd.Series(WORDS, dtype="string[pyarrow]"),
    pd.Series(WORDS, dtype="category"),
    pd.Series(WORDS, dtype=pd.CategoricalDtype(["y", "unused", "w", "x"])),
    pd.Series(WORDS, dtype=pd.CategoricalDtype(["w", "x", "y"], ordered=True)),
    pl.Series(WORDS),
    pl.Series(WORDS, dtype=pl.Categorical),
    pl.Series(WORDS, dtype=pl.Enum(["w", "y", "unused", "x"])),
]


@pytest.mark.parametrize(
    "series", WORD_SERIES, ids=lambda s: f"{type(s).__module__.split('.')[0]}-{s.dtype}"
)
@pytest.mark.parametrize("as_given", [True, False])
def test_words(series, as_given):
    pl.Series(["v", "z", "x"], dtype=pl.Categorical)  # takes codes of the process
    known = {0: np.array(["x", "y", "z"], dtype=object)}
    options = {"categories": known, "codes_as_given": as_given}
    before = series.copy() if isinstance(series, pd.Series) else series.clone()
    assert_array_equal(single(series, **options), [1, 0, NAN, -1, 0])
    assert_array_equal(single(series, unknown=NAN, **options), [1, 0, NAN, NAN, 0])
    assert series.equals(before)
    with pytest.raises(ValueError, match="column 0 of X has the category 'w'"):
        single(series, unknown=None, **options)
    everything = {"categories": {0: np.array(["w", "x", "y"], dtype=object)}}
    assert_array_equal(single(series, unknown=None, **everything), [2, 1, NAN, 0, 1])


@pytest.mark.parametrize("series", [s for s in WORD_SERIES if s.dtype != object], ids=str)
def test_labels_are_what_codes_stand_for(series):
    known = _frames.labels(series)
    codes, labels = _frames.codes(series)
    assert [None if c < 0 else labels[c] for c in codes] == WORDS
    if known is not None:
        assert known.tolist() == labels


@pytest.mark.parametrize(
    "series",
    [
        pd.Series([30, 10, 77]),
        pd.Series([30.0, 10, 77]),
        pd.Series([30, 10, 77], dtype="Int64"),
        pd.Series([30, 10, 77], dtype=object),
        pd.Series([30, 10, 77], dtype="category"),
        pd.Series([30.0, 10.0, 77.0], dtype="category"),
        pl.Series([30, 10, 77]),
        pl.Series([30.0, 10, 77]),
    ],
    ids=lambda series: f"{type(series).__module__.split('.')[0]}-{series.dtype}",
)
@pytest.mark.parametrize("label", [int, float])
def test_numeric_labels(series, label):
    known = {0: np.array([label(10), label(20), label(30)])}
    got = single(series, categories=known, codes_as_given=False)
    assert_array_equal(got, [2, 0, -1])


def test_boolean_labels_and_missing_numbers():
    known = {0: np.array([False, True])}
    options = {"categories": known, "codes_as_given": False}
    for series in (
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, None, False], dtype="category"),
        pd.Series([True, None, False], dtype=object),
        pd.Series([1.0, NAN, 0.0]),
        pl.Series([True, None, False]),
        pl.Series([1.0, NAN, 0.0]),
    ):
        assert_array_equal(single(series, **options), [1, NAN, 0])


def test_dates_as_labels():
    days = pd.to_datetime(["2020-01-01", "2021-01-01"])
    known = {0: np.array(days.to_pydatetime(), dtype=object)}
    series = pd.Series([days[1], pd.NaT, days[0]])
    assert_array_equal(single(series, categories=known), [1, NAN, 0])
    assert_array_equal(single(series.astype("category"), categories=known), [1, NAN, 0])
    given = pl.Series([days[1].to_pydatetime(), None, days[0].to_pydatetime()])
    assert_array_equal(single(given, categories=known), [1, NAN, 0])


def test_none_as_a_label():
    series = pd.Series(["x", None, NAN, "w"], dtype=object)
    assert_array_equal(single(series, categories=LETTERS), [0, 2, NAN, -1])
    assert_array_equal(single(pl.Series(["x", None, "w"]), categories=LETTERS), [0, 2, -1])


def test_codes_of_a_column_that_the_model_does_not_know():
    series = pd.Series(["y", None, "x"], dtype=pd.CategoricalDtype(["z", "y", "x"]))
    assert_array_equal(single(series), [1, NAN, 2])
    assert_array_equal(single(pl.Series(["y", None, "x"], dtype=pl.Enum("zyx"))), [1, NAN, 2])


def test_labels_that_are_numbers():
    series = pd.Series([2.5, None, -1], dtype="category")
    assert_array_equal(single(series, labels_as_codes=False), [2.5, NAN, -1])
    with pytest.raises(ValueError, match="column 'c' of X has dtype category"):
        single(pd.Series(["y"], dtype="category"), labels_as_codes=False)


def test_numbers_in_a_column_of_labels():
    """Codes if codes are taken as given, as in an array."""
    known = {0: np.array(["x", "y"], dtype=object)}
    for series in (pd.Series([1, 0, 5]), pl.Series([1, 0, 5])):
        assert_array_equal(single(series, categories=known), [1, 0, 5])
        assert_array_equal(single(series, categories=known, codes_as_given=False), [-1, -1, -1])


def test_numbers_that_may_be_labels_or_codes():
    for labels, is_refused in (([3, 7], True), ([1.0, 0.0], True), ([0, 1], False)):
        for series in (pd.Series([1, 0]), pl.Series([1, 0])):
            known = {0: np.array(labels)}
            if is_refused:
                with pytest.raises(ValueError, match="may be these or their codes"):
                    single(series, categories=known, frames_hold_codes=False)
                assert_array_equal(single(series, categories=known), [1, 0])
            else:
                got = single(series, categories=known, frames_hold_codes=False)
                assert_array_equal(got, [1, 0])


# -- The map -------------------------------------------------------------------------------


def test_settled_by_the_order_of_columns():
    first, second = np.array(["x", "y"], dtype=object), np.array([3, 4], dtype=object)
    input_map = InputMap(3, categories_in_order=(first, second), unknown=NAN)
    X = pd.DataFrame(
        {
            "a": pd.Categorical(["y", "x", "new"], categories=["new", "y", "x"]),
            "b": [0.5, 1.5, 2.5],
            "c": pd.Categorical([4, None, 3]),
        }
    )
    expected = [[1, 0.5, 1], [0, 1.5, NAN], [NAN, 2.5, 0]]
    assert_array_equal(input_map.open(X).to_array(), expected)
    settled = input_map.settled(X)
    assert set(settled.categories) == {0, 2}
    assert settled.categories_in_order is None
    assert settled.settled(X) is settled
    assert_array_equal(settled.open(X).to_array(), expected)
    assert_array_equal(settled.open(X.astype({"a": "str"})).to_array(), expected)
    codes = np.array(expected)
    assert input_map.settled(codes) is input_map
    assert_array_equal(input_map.open(codes).to_array(), expected)
    with pytest.raises(ValueError, match=r"1 categorical columns, \['a'\].*with 2"):
        input_map.open(X.assign(c=1))


def test_names():
    assert InputMap(2).has_names(["anything"])
    assert InputMap(2, names=("a", "b_c")).has_names(pd.Index(["a", "b_c"]))
    assert not InputMap(2, names=("a", "b_c")).has_names(["a", "b c"])
    assert not InputMap(2, names=("a", "b_c")).has_names(["b_c", "a"])
    assert InputMap(2, names=("a", "b_c"), blanks_replaced=True).has_names(["a", "b c"])
    assert InputMap(2, names=("0", "1")).has_names([0, 1])


def test_pickle():
    input_map = InputMap(
        2,
        names=("a", "b"),
        categories={0: np.array(["x", "y"], dtype=object)},
        categories_in_order=(np.array([1, 2]),),
        single_codes=frozenset({1}),
        missing=np.float32(-1),
    )
    again = pickle.loads(pickle.dumps(input_map))
    assert again.names == input_map.names
    assert again.categories[0].tolist() == ["x", "y"]
    assert again.categories_in_order[0].tolist() == [1, 2]
    assert (again.single_codes, again.missing) == (frozenset({1}), np.float32(-1))


def test_no_rows():
    for X in (np.empty((0, 2)), sparse.csr_array((0, 2)), pd.DataFrame({"a": [], "b": []})):
        assert opened(X).to_array().shape == (0, 2)
    empty = pl.DataFrame({"a": [], "b": []}, schema={"a": pl.String, "b": pl.Float64})
    assert opened(empty, categories=LETTERS).to_array().shape == (0, 2)
    empty = pd.DataFrame({"a": pd.Series([], dtype="category"), "b": []})
    assert opened(empty, categories=LETTERS).to_array().shape == (0, 2)


def test_the_frame_is_left_alone():
    X = pd.DataFrame({"a": [1.0, -999, NAN], "b": pd.Categorical(["x", "y", None])})
    before = X.copy(deep=True)
    inputs = opened(X, missing=-999.0, categories={1: np.array(["y", "x"], dtype=object)})
    inputs.to_array()[:] = 0
    pd.testing.assert_frame_equal(X, before)


@pytest.mark.parametrize("dtype", ["category", "str", "object", "polars"])
def test_many_labels(dtype):
    labels = np.array([f"label {i}" for i in range(300)], dtype=object)
    values = labels[np.random.default_rng(0).integers(0, 300, 5000)]
    series = pl.Series(values, dtype=pl.String) if dtype == "polars" else pd.Series(values)
    series = series if dtype == "polars" else series.astype(dtype)
    codes = single(series, categories={0: labels[::-1]})
    assert_array_equal(labels[::-1][codes.astype(int)], values)
