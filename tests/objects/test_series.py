"""Time series: what as_series and series_from_long take and refuse, and that a batch behaves like a list."""

from __future__ import annotations

import copy
import datetime
import pickle
from array import array as packed
from collections import deque

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from similia.distances import DTW
from similia.kernels import GlobalAlignment
from similia.objects import SeriesBatch, as_series, as_sets, as_strings, n_objects, series_from_long, take

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pl = pytest.importorskip("polars", reason="polars is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

LAW = settings(max_examples=50, deadline=None)


@st.composite
def series_lists(draw, flat=False):
    """A list of float32 or float64 arrays (length, n_channels)."""
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    channels = 1 if flat else draw(st.integers(1, 3))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=6))
    finite = st.floats(-1e6, 1e6, width=32)
    return [draw(arrays(dtype, (length, channels), elements=finite)) for length in lengths]


def check_equal(batch, expected):
    """The batch holds exactly these arrays, in their dtype, in memory that compiled loops can read."""
    assert isinstance(batch, SeriesBatch)
    assert len(batch) == len(expected)
    for one, array in zip(batch, expected, strict=True):
        np.testing.assert_array_equal(one, array, strict=True)
    assert batch.offsets.dtype == np.int64
    assert batch.lengths.tolist() == [len(array) for array in expected]
    assert batch.values.flags.c_contiguous
    assert batch.values.flags.writeable
    batch._check()


def padded(series):
    """The 3-D array (n, longest, n_channels) with NaN after the end of each series."""
    X = np.full((len(series), max(map(len, series)), series[0].shape[1]), np.nan, series[0].dtype)
    for row, one in zip(X, series, strict=True):
        row[: len(one)] = one
    return X


# ---- what it takes


@LAW
@given(series_lists())
def test_lists_come_back_and_stay_as_they_were(series):
    before = copy.deepcopy(series)
    batch = as_series(series)
    check_equal(batch, series)
    check_equal(as_series(tuple(series)), series)
    batch.values[...] = 7.0
    for one, kept in zip(series, before, strict=True):
        np.testing.assert_array_equal(one, kept)
    assert as_series(batch) is batch


@LAW
@given(series_lists())
def test_a_padded_array_in_either_order_is_the_list(series):
    X = padded(series)
    before = X.copy()
    batch = as_series(X, axes="time, channel")
    check_equal(batch, series)
    check_equal(as_series(X.swapaxes(1, 2), axes="channel, time"), series)
    check_equal(as_series(np.ascontiguousarray(X.swapaxes(1, 2)), axes="channel, time"), series)
    check_equal(as_series(np.asfortranarray(X), axes="time, channel"), series)
    batch.values[...] = 7.0
    np.testing.assert_array_equal(X, before)


@LAW
@given(series_lists())
def test_a_list_of_channels_by_time_is_the_list(series):
    check_equal(as_series([one.T for one in series], axes="channel, time"), series)
    check_equal(as_series([one.T.copy() for one in series], axes="channel, time"), series)
    check_equal(as_series(pd.DataFrame({"s": [one.T for one in series]}), axes="channel, time"), series)


@LAW
@given(series_lists(flat=True))
def test_one_channel_needs_no_second_axis(series):
    flat = [one[:, 0] for one in series]
    check_equal(as_series(flat), series)
    check_equal(as_series(padded(series)[:, :, 0]), series)
    check_equal(as_series([one.tolist() for one in flat]), [one.astype(np.float64) for one in series])
    items = np.empty(len(flat), dtype=object)
    items[:] = flat
    check_equal(as_series(items), series)


ARROW = {np.dtype(np.float32): pa.float32(), np.dtype(np.float64): pa.float64()}
POLARS = {np.dtype(np.float32): pl.Float32, np.dtype(np.float64): pl.Float64}


@LAW
@given(series_lists())
def test_columns_of_lists_are_the_list(series):
    nested, dtype = [one.tolist() for one in series], series[0].dtype
    for lists in (pa.list_, pa.large_list, lambda inner: pa.list_(inner)):
        check_equal(as_series(pa.array(nested, pa.list_(lists(ARROW[dtype])))), series)
    chunks = pa.chunked_array([pa.array(part, pa.list_(pa.list_(ARROW[dtype]))) for part in (nested[:1], nested[1:])])
    check_equal(as_series(chunks), series)
    fixed = pa.list_(pa.list_(ARROW[dtype], series[0].shape[1]))
    check_equal(as_series(pa.array(nested, fixed)), series)
    check_equal(as_series(pd.Series(nested, dtype=pd.ArrowDtype(fixed), index=range(5, 5 + len(series)))), series)
    check_equal(as_series(pd.Series([*series, None])[:-1]), series)
    check_equal(as_series(pl.Series(nested, dtype=pl.List(pl.List(POLARS[dtype])))), series)
    check_equal(as_series(pl.Series(nested, dtype=pl.List(pl.Array(POLARS[dtype], series[0].shape[1])))), series)


@LAW
@given(series_lists(flat=True))
def test_flat_columns_of_lists_are_the_list(series):
    nested, dtype = [one[:, 0].tolist() for one in series], series[0].dtype
    column = pa.array([[0.0], *nested], pa.list_(ARROW[dtype]))[1:]  # a slice: offsets do not start at 0
    check_equal(as_series(column), series)
    check_equal(as_series(list(column)), series)
    check_equal(as_series(pd.Series(column.to_pandas())), series)
    check_equal(as_series(pl.Series(nested, dtype=pl.List(POLARS[dtype]))), series)
    check_equal(as_series(take(column, np.arange(len(series)))), series)


@pytest.mark.parametrize(
    ("given_dtypes", "kept"),
    [
        ("f4 f4", "f4"), ("f8 f8", "f8"), ("f4 f8", "f8"), ("f2 f4", "f4"), ("i8 i8", "f8"), ("u1 u1", "f8"),
        ("? ?", "f8"), ("f4 i8", "f8"), ("f4 i1", "f8"), ("g g", "f8"), (">f4 >f4", "f4"), (">f8 f4", "f8"),
    ],
)  # fmt: skip
def test_dtypes(given_dtypes, kept):
    series = [np.ones(2, dtype) for dtype in given_dtypes.split()]
    values = as_series(series).values
    assert values.dtype == np.dtype(kept)
    assert values.dtype.isnative
    same = set(given_dtypes.split())
    if len(same) == 1:
        assert as_series(np.ones((2, 3), *same)).values.dtype == np.dtype(kept)
        assert as_series(np.ones((2, 3, 1), *same), axes="time, channel").values.dtype == np.dtype(kept)


def test_integers_are_exact():
    check_equal(as_series([[1, 2**53], [-3]]), [np.array([[1.0], [2.0**53]]), np.array([[-3.0]])])


def test_masked_entries_are_padding_or_missing_never_read():
    X = np.ma.masked_array(np.arange(6.0).reshape(2, 3), mask=[[0, 0, 0], [0, 1, 1]])
    check_equal(as_series(X), [np.array([[0.0], [1.0], [2.0]]), np.array([[3.0]])])
    assert X.data[1, 1] == 4.0
    with pytest.raises(ValueError, match="series 1, time point 1, channel 0 is nan"):
        as_series([X[0], X[1]])
    with pytest.raises(ValueError, match="series 0, time point 1, channel 1 is nan"):
        as_series([[X[0], X[1]]])


def test_only_whole_missing_time_points_at_the_end_are_padding():
    X = np.ones((2, 4, 2))
    X[1, 2:, 0] = np.nan
    with pytest.raises(ValueError, match="series 1, time point 2, channel 0 is nan"):
        as_series(X, axes="time, channel")
    X[1, 3] = np.nan
    with pytest.raises(ValueError, match="series 1, time point 2, channel 0 is nan"):
        as_series(X, axes="time, channel")
    X[1, 2] = np.nan
    assert as_series(X, axes="time, channel").lengths.tolist() == [4, 2]
    X[0, 1] = np.nan
    with pytest.raises(ValueError, match="series 0, time point 1, channel 0 is nan"):
        as_series(X, axes="time, channel")


class Tensor:
    """An array of another library: axes, length, items, conversion."""

    def __init__(self, array):
        self.array_, self.ndim, self.shape = array, array.ndim, array.shape

    def __len__(self):
        return len(self.array_)

    def __getitem__(self, index):
        return Tensor(self.array_[index])

    def __array__(self, dtype=None, copy=None):
        return self.array_


def test_arrays_of_other_libraries_are_asked_for_their_axes_too():
    X = Tensor(np.arange(12.0).reshape(2, 3, 2))
    with pytest.raises(ValueError, match="3-D array"):
        as_series(X)
    assert as_series(X, axes="channel, time").n_dims == 3
    assert as_series(Tensor(np.ones((2, 3)))).lengths.tolist() == [3, 3]


# ---- a batch is a list


@LAW
@given(series_lists(), st.data())
def test_indexing_is_list_indexing(series, data):
    batch = as_series(series)
    n = len(series)
    start, stop, step = (data.draw(st.none() | st.integers(-n - 1, n + 1).filter(bool)) for _ in range(3))
    indices = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=6))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    check_equal(batch[start:stop:step], series[start:stop:step])
    check_equal(batch.take(indices), [series[i] for i in indices])
    check_equal(batch[np.array(indices), ...], [series[i] for i in indices])
    check_equal(batch[mask], [one for one, kept in zip(series, mask, strict=True) if kept])
    np.testing.assert_array_equal(batch[-1], series[-1])
    assert (n_objects(batch), batch.shape, batch.n_dims) == (n, (n,), series[0].shape[1])


@LAW
@given(series_lists())
def test_batches_survive_pickling_and_change_of_dtype(series):
    batch = as_series(series)
    check_equal(pickle.loads(pickle.dumps(batch)), series)
    check_equal(batch.astype(np.float32), [one.astype(np.float32) for one in series])
    assert batch.astype(batch.values.dtype) is batch


DAMAGED = {
    "offsets beyond": ({"offsets": np.array([0, 2, 900])}, "offsets end at 900, but there are 3 values"),
    "offsets decrease": ({"offsets": np.array([0, 4, 3])}, "offsets .* never decreases"),
    "offsets from 1": ({"offsets": np.array([1, 2, 3])}, "offsets .* starts at 0"),
    "an empty series": ({"offsets": np.array([0, 3, 3])}, "series 1 has length 0"),
    "narrow offsets": ({"offsets": np.array([0, 2, 3], np.int32)}, "offsets must be a 1-D array of int64"),
    "integers": ({"values": np.zeros((3, 1), int)}, "values must be a 2-D array of float64, got int64"),
    "flat": ({"values": np.zeros(3, np.float32)}, r"a 2-D array of float32, got float32 of shape \(3,\)"),
    "nothing": ({"values": None}, "values must be a 2-D array of float64, got NoneType"),
    "more": ({"code": "print"}, r"holds \['code', 'offsets', 'values'\], expected \['offsets', 'values'\]"),
}  # fmt: skip


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_stored_series_are_refused(case):
    changed, sentence = DAMAGED[case]
    state = {**vars(as_series([[1.0, 2.0], [3.0]])), **changed}
    with pytest.raises(ValueError, match=sentence):
        SeriesBatch.__new__(SeriesBatch).__setstate__(state)


# ---- what it refuses

NAN, INF = np.nan, np.inf
BAD = {
    "empty list": ([], ValueError, "X is empty: found 0"),
    "empty array": (np.empty((0, 5)), ValueError, "X is empty: found 0"),
    "empty batch": (as_series([[1.0]])[:0], ValueError, "X is empty: found 0"),
    "one series": (np.arange(3.0), TypeError, r"series 0 is one number \(0.0\).*write a single series x as \[x\]"),
    "a list of numbers": ([1.0, 2.0], TypeError, r"series 0 is one number \(1.0\).*\[x\]"),
    "a column of numbers": (pd.Series([1.0]), TypeError, r"series 0 is one number"),
    "an Arrow column of numbers": (pa.array([1.0]), TypeError, r"series 0 is one number"),
    "a number": (3.0, TypeError, "is float .*collection of series"),
    "a 0-d array": (np.array(3.0), TypeError, "is ndarray .*collection of series"),
    "nothing": (None, TypeError, "is NoneType .*collection of series"),
    "a string": ("abc", TypeError, "is str .*collection of series"),
    "a generator": (([i] for i in range(3)), TypeError, "is generator .*; use a list"),
    "a dict": ({0: [1.0]}, TypeError, "is dict"),
    "a sparse matrix": (sparse.eye_array(3).tocsr(), TypeError, "is csr_array"),
    "a frame": (pd.DataFrame({"a": [1.0], "b": ["x"]}), TypeError, r"is a table \(DataFrame\).*series_from_long"),
    "a polars frame": (pl.DataFrame({"a": [1.0], "b": "x"}), TypeError, r"is a table \(DataFrame\).*series_from_long"),
    "an Arrow table": (pa.table({"a": [1.0], "b": ["x"]}), TypeError, r"is a table \(Table\).*series_from_long"),
    "sets": (as_sets([[[1.0]]]), TypeError, r"is a SetBatch, expected series; list\(X\)"),
    "string batch": (as_strings(["a"]), TypeError, "is a StringBatch, expected series"),
    "strings": ([[1.0], "abc"], TypeError, "series 1 is 'abc', expected an array of numbers"),
    "lists of strings": ([[1.0], ["a", "b"]], TypeError, r"series 1 holds \['a'\] of dtype <U1, expected real numbers"),
    "an array of strings": (np.array([["a", "b"]]), TypeError, r"X holds \['a'\] of dtype <U1"),
    "complex": ([[1j]], TypeError, r"series 0 holds \[1j\] of dtype complex128"),
    "dates": ([np.array(["2020-01-01"], "datetime64[D]")], TypeError, "series 0 holds .* of dtype datetime64"),
    "missing series": ([[1.0], None], TypeError, "series 1 is None"),
    "missing in polars": (pl.Series([[1.0], None]), TypeError, "series 1 is None"),
    "missing in Arrow": (pa.array([[1.0], None]), TypeError, "series 1 is None"),
    "missing in pandas": (pd.Series([[1.0], NAN]), TypeError, r"series 1 is one number \(nan\)"),
    "None inside": ([[1.0, None]], TypeError, r"series 0 holds .* of dtype object"),
    "null inside": (pa.array([[1.0], [1.0, None]]), ValueError, "series 1, time point 1, channel 0 is nan"),
    "ragged rows": ([[1.0], [[1.0, 2.0], [3.0]]], ValueError, "series 1 has rows of different lengths"),
    "three axes": ([np.ones((2, 2, 2))], ValueError, r"series 0 has shape \(2, 2, 2\)"),
    "length 0": ([[1.0], []], ValueError, r"series 1 has shape \(0,\), expected at least one time point"),
    "length 0 of two channels": ([np.ones((0, 2))], ValueError, r"series 0 has shape \(0, 2\), expected at least"),
    "no channels": ([np.ones((2, 0))], ValueError, r"series 0 has shape \(2, 0\), expected .* one channel"),
    "all padding": (np.array([[1.0], [NAN]]), ValueError, "series 1 is all NaN"),
    "length 0 array": (np.ones((2, 0)), ValueError, r"shape \(2, 0, 1\)"),
    "channels": ([np.ones((2, 2)), np.ones((2, 3))], ValueError, "series 1 has 3 channels .* 0 has 2.*'channel, time'"),
    "flat among two channels": ([np.ones((2, 2)), np.ones(3)], ValueError, "series 1 has 1 channel and .* 0 has 2"),
    "NaN": ([[1.0], [2.0, NAN]], ValueError, "series 1, time point 1, channel 0 is nan, expected a finite number"),
    "infinity": ([np.ones((2, 2)), np.array([[1, 2], [3, -INF]])], ValueError, "series 1, .* 1, channel 1 is -inf"),
    "infinity in an array": (np.array([[1.0, 2.0], [1.0, INF]]), ValueError, "series 1, time point 1, .* is inf"),
    "four axes": (np.ones((1, 2, 3, 4)), ValueError, r"shape \(1, 2, 3, 4\), expected 2 or 3 axes"),
    "three axes unsaid": (
        np.ones((4, 2, 9)), ValueError, r"shape \(4, 2, 9\).*axes='time, channel'.*tslearn.*axes='channel, time'.*aeon"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    value, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence) as raised:
        as_series(value)
    assert "\n" not in str(raised.value)


def test_axes_must_be_one_of_two_and_mean_something():
    with pytest.raises(ValueError, match="axes must be 'time, channel', 'channel, time' or None, got 'ncl'"):
        as_series(np.ones((1, 2, 3)), axes="ncl")
    with pytest.raises(ValueError, match=r"2-D array of shape \(5, 3\), that is 5 series of one channel.*X\[None\]"):
        as_series(np.ones((5, 3)), axes="time, channel")


# ---- long tables

FRAMES = {
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "arrow": pa.table,
}
each_frame = pytest.mark.parametrize("kind", FRAMES)


def columns_of(series, ids, order):
    """The rows of a long table of these series, in the given order."""
    rows = [(ids[i], t, *vector) for i, one in enumerate(series) for t, vector in enumerate(one)]
    rows = [rows[r] for r in order]
    columns = {"who": [row[0] for row in rows], "when": [row[1] for row in rows]}
    for c in range(series[0].shape[1]):
        columns[f"x{c}"] = np.array([row[2 + c] for row in rows], dtype=series[0].dtype)
    return columns


@each_frame
@LAW
@given(series=series_lists(), data=st.data())
def test_a_long_table_is_the_list(kind, series, data):
    names = data.draw(st.sampled_from([list("zyxabcd"), [5, 3, 9, 0, 1, 2, 8]]))
    order = data.draw(st.permutations(range(sum(map(len, series)))))
    columns = columns_of(series, names, order)
    frame = FRAMES[kind](columns)
    batch, ids = series_from_long(frame, id="who", time="when", values=[f"x{c}" for c in range(series[0].shape[1])])
    assert ids.tolist() == list(dict.fromkeys(columns["who"]))
    check_equal(batch, [series[names.index(name)] for name in ids.tolist()])


TIMES = {
    "dates": pd.to_datetime(["2021-03-01", "2021-01-01", "2021-02-01"]),
    "dates with a zone": pd.to_datetime(["2021-03-01", "2021-01-01", "2021-02-01"], utc=True).tz_convert("Asia/Tokyo"),
    "durations": pd.to_timedelta([3, 1, 2], unit="D"),
    "periods": pd.period_range("2021-01", periods=3, freq="M")[[2, 0, 1]],
    "numbers": [10.5, -np.inf, 9.0],
    "nullable": pd.array([3, 1, 2], dtype="Int64"),
    "python dates": np.array([datetime.date(2021, m, 1) for m in (3, 1, 2)], dtype=object),
}


@pytest.mark.parametrize("case", TIMES)
def test_times_are_sorted_whatever_they_are(case):
    frame = pd.DataFrame({"id": ["a"] * 3, "t": TIMES[case], "x": [3, 1, 2]}, index=[7, 7, 7])
    before = frame.copy()
    series, ids = series_from_long(frame, id="id", time="t", values="x")
    check_equal(series, [np.array([[1.0], [2.0], [3.0]])])
    assert ids.tolist() == ["a"]
    pd.testing.assert_frame_equal(frame, before)


def test_ids_and_values_that_pandas_keeps_in_its_own_way():
    frame = pd.DataFrame(
        {
            "id": pd.Categorical(["b", "a", "b"], categories=["a", "b", "c"]),
            "t": [0, 0, 1],
            "x": pd.array([1, 2, 3], dtype="Int64"),
            "y": np.array([1, 2.5, np.float32(4)], dtype=object),
        }
    )
    series, ids = series_from_long(frame, id="id", time="t", values=("x", "y"))
    assert ids.tolist() == ["b", "a"]
    check_equal(series, [np.array([[1.0, 1.0], [3.0, 4.0]]), np.array([[2.0, 2.5]])])
    single = pd.DataFrame({"id": [1], "t": [0], "x": np.float32([1]), "y": [1.0]})
    assert series_from_long(single, id="id", time="t", values="x")[0].values.dtype == np.float32
    assert series_from_long(single, id="id", time="t", values=["x", "y"])[0].values.dtype == np.float64


WHOLE = {"id": ["a", "b", "a", "b"], "t": [0.0, 0.0, 1.0, 1.0], "x": [1.0, 2.0, 3.0, 4.0]}
BAD_TABLES = {
    "repeated": ({"t": [0.0, 0.0, 0.0, 1.0]}, ValueError, r"rows 0 and 2 are both of id a at t 0.0"),
    "missing value": ({"x": [1.0, 2.0, None, 4.0]}, ValueError, r"row 2 of column 'x' is missing \(nan\)"),
    "infinite value": ({"x": [1.0, INF, 3.0, 4.0]}, ValueError, "row 1 of column 'x' is inf"),
    "missing time": ({"t": [0.0, 0.0, 1.0, None]}, ValueError, "row 3 of column 't' is missing"),
    "missing id": ({"id": ["a", "b", None, "b"]}, ValueError, "row 2 of column 'id' is missing"),
    "times as text": ({"t": ["9", "9", "10", "10"]}, TypeError, "column 't' holds text .'9'.*numbers or dates"),
    "values as text": ({"x": ["1", "2", "3", "4"]}, TypeError, "column 'x' holds '1', expected real numbers"),
    "values as lists": ({"x": [[1.0], [1.0], [1.0], [1.0, 2.0]]}, TypeError, "column 'x' holds .*real numbers"),
    "no rows": ({"id": [], "t": [], "x": []}, ValueError, "the table is empty"),
}


@each_frame
@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_tables_get_one_sentence(kind, case):
    change, error, sentence = BAD_TABLES[case]
    frame = FRAMES[kind]({**WHOLE, **change})
    with pytest.raises(error, match=sentence) as raised:
        series_from_long(frame, id="id", time="t", values="x")
    assert "\n" not in str(raised.value)


def test_tables_that_are_none_and_columns_that_are_not_there():
    frame = pd.DataFrame(WHOLE)
    renamed = frame.rename(columns={"id": "column_names"})
    ids = series_from_long(renamed, id="column_names", time="t", values="x")[1]
    assert ids.tolist() == series_from_long(frame, id="id", time="t", values="x")[1].tolist()
    with pytest.raises(ValueError, match="no column 'z'; its columns are 'id', 't', 'x'"):
        series_from_long(frame, id="id", time="t", values=["x", "z"])
    with pytest.raises(ValueError, match="several columns 'x'"):
        series_from_long(pd.concat([frame, frame[["x"]]], axis=1), id="id", time="t", values="x")
    with pytest.raises(ValueError, match="values is empty"):
        series_from_long(frame, id="id", time="t", values=[])
    for other in (WHOLE, [[1, 2]], pl.DataFrame(WHOLE).lazy()):
        with pytest.raises(TypeError, match="expected a pandas or polars DataFrame or an Arrow table, got"):
            series_from_long(other, id="id", time="t", values="x")
    mixed = frame.assign(t=np.array([0, 1, pd.Timestamp(0), 3], dtype=object))
    with pytest.raises(TypeError, match="column 't' holds times that cannot be compared"):
        series_from_long(mixed, id="id", time="t", values="x")
    with pytest.raises(ValueError, match="row 1 of column 'x' is missing"):
        series_from_long(frame.assign(x=pd.array([1, None, 3, 4], dtype="Int64")), id="id", time="t", values="x")


@pytest.mark.parametrize(
    "thing", [nx.path_graph(4), {0: 1.0}, {1.0, 2.0}, as_series([[1.0]])], ids=lambda t: type(t).__name__
)
def test_what_only_contains_numbers_is_no_series(thing):
    with pytest.raises(TypeError, match=r"^series 1 is .*, expected an array of numbers"):
        as_series([[1.0, 2.0], thing])


def test_other_kinds_of_sequences_are_series():
    X = [range(3), deque([0, 1, 2]), packed("d", [0, 1, 2]), memoryview(packed("d", [0, 1, 2]))]
    assert all(x.ravel().tolist() == [0, 1, 2] for x in as_series(X))


def test_pairs_name_the_collection():
    for compare in (DTW(), GlobalAlignment()):
        with pytest.raises(TypeError, match=r"^Y, series 0 is 'a', expected"):
            compare([[1.0]], ["a"])
        with pytest.raises(ValueError, match=r"^Y is empty"):
            compare([[1.0]], [])
        with pytest.raises(TypeError, match=r"^series 0 is 'a', expected"):
            compare(["a"], [[1.0]])
