"""Point sets: what as_sets takes and refuses, and that a batch behaves like a list of arrays."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similia.objects import SetBatch, as_series, as_sets

LAW = settings(max_examples=50, deadline=None)


SIZES = st.lists(st.integers(0, 5), min_size=1, max_size=6)
ONE_SIZE = st.integers(1, 4).flatmap(lambda size: st.lists(st.just(size), min_size=1, max_size=4))


@st.composite
def sets(draw, sizes=SIZES):
    """A list of (size, p) arrays of one dtype."""
    p, dtype = draw(st.integers(1, 3)), draw(st.sampled_from([np.float32, np.float64]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return [rng.normal(size=(size, p)).astype(dtype) for size in draw(sizes)]


def assert_same(batch, arrays):
    """Values, sizes and dtype of a batch are those of a list of (size, p) arrays."""
    assert isinstance(batch, SetBatch)
    assert batch.lengths.tolist() == [len(array) for array in arrays]
    assert batch.n_dims == arrays[0].shape[1]
    assert batch.values.dtype == arrays[0].dtype
    assert batch.values.flags.c_contiguous
    assert batch.values.flags.writeable
    assert batch.offsets.dtype == np.int64
    for one, array in zip(batch, arrays, strict=True):
        np.testing.assert_array_equal(one, array)


@LAW
@given(sets())
def test_a_batch_gives_its_sets_back_and_is_returned_as_it_is(arrays):
    before = [array.copy() for array in arrays]
    batch = as_sets(arrays)
    assert_same(batch, before)
    assert as_sets(batch) is batch
    assert_same(pickle.loads(pickle.dumps(batch)), before)
    batch.values[:] = 0  # no memory is shared with the input
    for array, copy in zip(arrays, before, strict=True):
        np.testing.assert_array_equal(array, copy)


@LAW
@given(sets(), st.data())
def test_indexing_is_list_indexing(arrays, data):
    batch, n = as_sets(arrays), len(arrays)
    start, stop, step = (data.draw(st.none() | st.integers(-n - 1, n + 1).filter(bool)) for _ in range(3))
    indices = data.draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=6))
    expected = arrays[start:stop:step]
    found = batch[start:stop:step]
    assert len(found) == len(expected)
    if expected:
        assert_same(found, expected)
    assert_same(batch[indices], [arrays[i] for i in indices])
    np.testing.assert_array_equal(batch[-1], arrays[-1])


@LAW
@given(sets(sizes=ONE_SIZE))
def test_a_3d_array_is_a_list_of_sets_of_one_size(arrays):
    X = np.array(arrays)
    before = X.copy()
    assert_same(as_sets(X), arrays)
    assert not np.shares_memory(as_sets(X).values, X)
    np.testing.assert_array_equal(X, before)


@LAW
@given(sets())
def test_an_empty_set_may_come_without_dimension(arrays):
    bare = [array if len(array) else np.zeros(0) for array in arrays]
    lists = [array.tolist() for array in arrays]
    if any(len(array) for array in arrays):
        assert_same(as_sets(bare), arrays)  # and float64 of an empty array does not make float64 of the rest
        assert_same(as_sets(lists), [array.astype(float) for array in arrays])
    else:
        with pytest.raises(ValueError, match=r"holds empty lists only.* write np\.zeros\(\(0, 2\)\)"):
            as_sets(bare)


@pytest.mark.parametrize(
    ("dtypes", "expected"),
    [
        (["f4"], "f4"), (["f8"], "f8"), (["f2"], "f4"), (["u1"], "f4"), (["i4"], "f8"), (["i8"], "f8"),
        (["f4", "f8"], "f8"), (["f4", "u1"], "f4"), (["f4", "i8"], "f8"), ([">f4"], "f4"),
    ],
)  # fmt: skip
def test_dtypes(dtypes, expected):
    batch = as_sets([np.array([[0, 255]]).astype(dtype) for dtype in dtypes])
    assert batch.values.dtype == np.dtype(expected)
    assert batch.values.dtype.isnative
    assert batch.values.tolist() == [[0, 255]] * len(dtypes)


LISTS = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0]], [], [[7.0, 8.0], [9.0, 0.0]]]
FORMS = {
    "pandas": lambda x: pytest.importorskip("pandas", reason="pandas is optional").Series(x, index=[7, 3, 5, 1]),
    "polars": lambda x: pytest.importorskip("polars", reason="polars is optional").Series(x),
    "Arrow": lambda x: pytest.importorskip("pyarrow", reason="pyarrow is optional").array(x),
}


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_lists(form):
    assert_same(as_sets(FORMS[form](LISTS)), [np.array(x).reshape(-1, 2) for x in LISTS])
    with pytest.raises((TypeError, ValueError), match="set 1"):
        as_sets(FORMS[form]([LISTS[0], None, LISTS[2], LISTS[3]]))


ONES = np.ones((3, 2))
REFUSED = {
    "no sets": ([], ValueError, "X is empty"),
    "one set": (ONES, TypeError, r"\[X\]|\[x\]"),
    "one point": (np.ones(3), TypeError, "set 0 is one number"),
    "a number": (1.0, TypeError, "collection"),
    "None": (None, TypeError, "collection"),
    "a string": ("abc", TypeError, "collection"),
    "a dict": ({0: ONES}, TypeError, "dict"),
    "a set": ({(1.0, 2.0)}, TypeError, "set"),
    "a generator": ((ONES for _ in range(2)), TypeError, "generator"),
    "points on a line": ([np.ones(3), np.ones(2)], ValueError, r"set 0.*x\[:, None\]"),
    "a series inside": ([ONES, np.ones(3)], ValueError, r"set 1.*as_series"),
    "another dimension": (
        [ONES, ONES, np.ones((4, 3))],
        ValueError,
        "set 2 holds points of dimension 3, but set 0 of dimension 2",
    ),
    "an empty set of another dimension": ([ONES, np.ones((0, 3))], ValueError, "set 1 holds points of dimension 3"),
    "dimension 0": ([np.ones((3, 0))], ValueError, "set 0 holds points of dimension 0"),
    "all empty": ([[], []], ValueError, "holds empty lists only"),
    "three axes": ([ONES, np.ones((2, 2, 2))], ValueError, "set 1 has shape"),
    "NaN": ([ONES, [[1.0, 2.0], [np.nan, 1.0]]], ValueError, "set 1, point 1, coordinate 0 is nan"),
    "NaN after an empty set": ([ONES, [], [[1.0, np.nan]]], ValueError, "set 2, point 0, coordinate 1 is nan"),
    "infinity": (np.full((2, 1, 1), np.inf), ValueError, "set 0, point 0, coordinate 0 is inf"),
    "complex": ([ONES, ONES + 1j], TypeError, "set 1.*complex"),
    "letters": ([ONES, [["a", "b"]]], TypeError, "set 1"),
    "None inside": ([ONES, None], TypeError, "set 1"),
    "ragged points": ([ONES, [[1.0], [1.0, 2.0]]], ValueError, "set 1.*different lengths"),
    "series": (as_series([[1.0]]), TypeError, "SeriesBatch"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case):
    X, error, sentence = REFUSED[case]
    with pytest.raises(error, match=sentence) as caught:
        as_sets(X)
    assert len(str(caught.value).splitlines()) == 1


def test_sets_that_are_all_empty_are_taken_when_one_says_the_dimension():
    batch = as_sets([np.zeros((0, 4), np.float32), []])
    assert (len(batch), batch.n_dims, batch.lengths.tolist()) == (2, 4, [0, 0])


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        ({"offsets": np.array([0, 2, 9])}, "end at 9"),
        ({"offsets": np.array([1, 2, 3])}, "starts at 0"),
        ({"offsets": np.array([0, 4, 3])}, "never decreases"),
        ({"values": np.ones(3)}, "values must be a 2-D"),
    ],
)
def test_a_stored_batch_that_does_not_fit_together_is_refused(broken, sentence):
    state = {"values": np.ones((3, 1)), "offsets": np.array([0, 3, 3])}  # the second set is empty
    SetBatch.__new__(SetBatch).__setstate__(dict(state))
    with pytest.raises(ValueError, match=sentence):
        SetBatch.__new__(SetBatch).__setstate__(state | broken)
