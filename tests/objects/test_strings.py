"""Strings: what as_strings takes and refuses, and that a batch behaves like a list."""

from __future__ import annotations

import pickle
from enum import Enum

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from similia.objects import StringBatch, as_strings, n_objects, take
from similia.objects.sequences import in_both_cases

# all code points, lone surrogates included
TEXT = st.text(st.characters(), max_size=8)
ASCII = st.text("ACGT", max_size=8)
STRINGS = st.one_of(
    st.lists(TEXT, min_size=1, max_size=8),
    st.lists(ASCII, min_size=1, max_size=8),
    st.lists(st.binary(max_size=8), min_size=1, max_size=8),
)
LAW = settings(max_examples=50, deadline=None)


@LAW
@given(STRINGS)
def test_a_batch_gives_its_strings_back(strings):
    batch = as_strings(strings)
    assert batch.tolist() == strings
    assert [batch[i] for i in range(len(strings))] == strings
    assert batch.offsets.dtype == np.int64
    assert np.diff(batch.offsets).tolist() == [len(s) for s in strings]
    assert batch.values.flags.writeable
    assert batch.values.flags.c_contiguous


@LAW
@given(STRINGS, st.data())
def test_indexing_is_list_indexing(strings, data):
    batch = as_strings(strings)
    n = len(strings)
    start, stop, step = (data.draw(st.none() | st.integers(-n - 1, n + 1).filter(bool)) for _ in range(3))
    indices = data.draw(st.lists(st.integers(-n, n - 1), max_size=6))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assert batch[start:stop:step].tolist() == strings[start:stop:step]
    assert batch[indices].tolist() == batch.take(indices).tolist() == [strings[i] for i in indices]
    assert batch[mask].tolist() == [s for s, kept in zip(strings, mask, strict=True) if kept]
    assert batch[np.array(indices, dtype=np.int32), ...].tolist() == [strings[i] for i in indices]
    assert batch[-1] == strings[-1]


@LAW
@given(STRINGS)
def test_as_strings_is_idempotent_and_leaves_its_input_alone(strings):
    before = list(strings)
    batch = as_strings(strings)
    assert as_strings(batch) is batch
    assert as_strings(batch.tolist()).tolist() == strings == before


def test_code_points_are_those_of_python():
    strings = ["aß", "😀", "", "\ud800"]
    batch = as_strings(strings)
    assert batch.values.dtype == np.uint32
    assert batch.values.tolist() == [ord(c) for s in strings for c in s]
    assert as_strings(["ab"]).values.dtype == np.uint8


FORMS = {
    "tuple": tuple,
    "object array": lambda x: np.array(x, dtype=object),
    "str array": np.array,
    "StringDType": lambda x: np.array(x, dtype=np.dtypes.StringDType()),
    "list of numpy str": lambda x: [np.str_(s) for s in x],
    "pandas": lambda x: pd.Series(x, index=range(5, 5 + len(x))),
    "pandas object": lambda x: pd.Series(x, dtype=object),
    "pandas category": lambda x: pd.Series(x, dtype="category"),
    "pandas array": lambda x: pd.array(x, dtype="string"),
    "pandas index": pd.Index,
    "polars": pl.Series,
    "polars categorical": lambda x: pl.Series(x, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow large": lambda x: pa.array(x, pa.large_string()),
    "arrow view": lambda x: pa.array(x, pa.string_view()),
    "arrow dictionary": lambda x: pa.array(x).dictionary_encode(),
    "arrow chunked": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "list of arrow scalars": lambda x: list(pa.array(x)),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_strings(form):
    strings = ["ACGT", "", "Ωmega", "ACGT"]
    batch = as_strings(FORMS[form](strings))
    assert batch.tolist() == strings
    assert not batch.is_bytes


def test_members_of_an_enum_of_texts_are_their_texts():
    bases = Enum("Bases", {"ADENINE": "A"}, type=str)
    assert as_strings([bases.ADENINE, "C"]).tolist() == ["A", "C"]


@pytest.mark.parametrize("form", [list, np.array, pa.array, pd.Series, pl.Series])
def test_bytes_stay_bytes(form):
    batch = as_strings(form([b"AC", b"\xff\x01"]))
    assert batch.is_bytes
    assert batch.tolist() == [b"AC", b"\xff\x01"]


BAD = {
    "one string": ("ACGT", TypeError, r"write \[x\]"),
    "one bytes": (b"ACGT", TypeError, r"write \[x\]"),
    "empty": ([], ValueError, "found 0 strings"),
    "empty batch": (StringBatch.from_list(["a"])[[]], ValueError, "found 0 strings"),
    "None": (["a", None], TypeError, r"X\[1\] is missing \(None\)"),
    "NaN": (["a", "b", float("nan")], TypeError, r"X\[2\] is missing \(nan\)"),
    "NaN of 32 bits": (["a", np.float32("nan")], TypeError, r"X\[1\] is missing \(nan\)"),
    "pandas NA": (pd.Series(["a", None], dtype="string"), TypeError, r"X\[1\] is missing"),
    "arrow null": (pa.array(["a", None]), TypeError, r"X\[1\] is missing"),
    "polars null": (pl.Series(["a", None]), TypeError, r"X\[1\] is missing"),
    "number in the middle": (["a", 7, "b"], TypeError, r"X\[1\] is int \(7\).*str\(\)"),
    "numbers": (np.arange(3), TypeError, r"X\[0\] is int"),
    "object in the middle": (["a", "b", object()], TypeError, r"X\[2\] is object"),
    "bytes among str": (["a", b"b"], TypeError, r"X\[1\] is bytes among str"),
    "str among bytes": ([b"a", b"b", "c"], TypeError, r"X\[2\] is str among bytes"),
    "lists": ([["a", "b"]], TypeError, r"X\[0\] is list"),
    "two columns": (np.array([["a", "b"]]), TypeError, "one column"),
    "frame": (pd.DataFrame({"a": ["x"], "b": "y"}), TypeError, "one column"),
    "arrow table": (pa.table({"a": ["x"], "b": ["y"]}), TypeError, "one column"),
    "0-d": (np.array("a"), TypeError, "one column"),
    "set": ({"a"}, TypeError, "ordered"),
    "dict": ({"a": "b"}, TypeError, "ordered"),
    "generator": ((s for s in "ab"), TypeError, "ordered"),
    "nothing": (None, TypeError, "ordered"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_gets_one_sentence(case):
    value, error, sentence = BAD[case]
    with pytest.raises(error, match=sentence) as raised:
        as_strings(value)
    assert "\n" not in str(raised.value)


@LAW
@given(
    st.lists(st.one_of(st.text(max_size=3), st.binary(max_size=3), st.none(), st.integers(), st.floats()), max_size=5)
)
def test_mixed_lists_are_taken_or_refused_with_the_index(items):
    homogeneous = items and len({type(item) for item in items}) == 1 and isinstance(items[0], str | bytes)
    if homogeneous:
        assert as_strings(items).tolist() == items
    else:
        with pytest.raises((TypeError, ValueError), match=r"X\[\d\]|empty"):
            as_strings(items)


@pytest.mark.parametrize("index", [3, -4, 10**12])
def test_a_wrong_index_is_named(index):
    batch = as_strings(["a", "b", "c"])
    with pytest.raises(IndexError, match=f"index {index} is out of range for a batch of 3"):
        batch[index]
    with pytest.raises(IndexError, match=f"index {index} is out of range"):
        batch.take([0, index])


def test_wrong_keys_are_refused():
    batch = as_strings(["a", "b", "c"])
    with pytest.raises(IndexError, match=r"shape \(3,\), got \(2,\)"):
        batch[np.array([True, False])]
    with pytest.raises(IndexError, match="1-D array of integers"):
        batch[np.array([0.5])]
    with pytest.raises(IndexError, match="1-D array of integers"):
        batch[np.zeros((2, 2), dtype=int)]


def test_a_batch_survives_pickling_and_scikit_learn_splits():
    from sklearn.model_selection import train_test_split

    strings = [f"s{i}" for i in range(10)]
    batch = as_strings(strings)
    assert pickle.loads(pickle.dumps(batch)).tolist() == strings
    train, test = train_test_split(batch, random_state=0)
    assert isinstance(train, StringBatch)
    assert sorted(train.tolist() + test.tolist()) == strings


COLLECTIONS = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "pandas": lambda x: pd.Series(x, index=list("pqr")),
    "polars": pl.Series,
    "arrow": pa.array,
    "chunked": lambda x: pa.chunked_array([x[:1], x[1:]]),
    "batch": as_strings,
}


@pytest.mark.parametrize("kind", COLLECTIONS)
def test_take_and_n_objects_work_on_every_collection(kind):
    X = COLLECTIONS[kind](["a", "b", "c"])
    assert n_objects(X) == 3
    taken = take(X, [-1, 0, 0])
    assert as_strings(taken).tolist() == ["c", "a", "a"]
    assert type(taken) is (list if kind == "tuple" else type(X))
    assert as_strings(take(X, np.array([False, True, False]))).tolist() == ["b"]
    assert n_objects(take(X, [])) == 0
    with pytest.raises(IndexError, match="out of range"):
        take(X, [3])


def test_take_of_rows():
    from scipy import sparse

    rows = np.arange(6.0).reshape(3, 2)
    for matrix in (sparse.coo_array(rows), sparse.csr_matrix(rows)):
        assert n_objects(matrix) == 3
        assert (take(matrix, [2, 0]).toarray() == rows[[2, 0]]).all()
    assert (take(rows, [2, 0]) == rows[[2, 0]]).all()
    assert take(pl.DataFrame({"a": [1, 2]}), [1])["a"].to_list() == [2]
    assert take(pa.table({"a": [1, 2]}), [1])["a"].to_pylist() == [2]


@pytest.mark.parametrize("value", ["ACGT", b"ACGT", None, 3, np.array(3), iter([1])])
def test_no_collection_no_count(value):
    with pytest.raises(TypeError, match="expected a collection of objects"):
        n_objects(value)


DAMAGED = {
    "offsets beyond": ({"offsets": np.array([0, 4, 900])}, "offsets end at 900, but there are 6 values"),
    "offsets decrease": ({"offsets": np.array([0, 7, 6])[::-1].copy()}, "offsets .* starts at 0 and never decreases"),
    "offsets dip": ({"offsets": np.array([0, 900, 6])}, "offsets .* never decreases"),
    "no offsets": ({"offsets": np.array([], dtype=np.int64)}, "offsets .* starts at 0"),
    "narrow offsets": ({"offsets": np.array([0, 4, 6], np.int32)}, "offsets must be a 1-D array of int64, got int32"),
    "values missing": ({"values": None}, "values must be a 1-D array of uint8, got NoneType"),
    "values in rows": ({"values": np.zeros((6, 1), np.uint8)}, r"values must be a 1-D array of uint8, got .*\(6, 1\)"),
    "no ASCII": ({"values": np.full(6, 200, np.uint8)}, "values reach 200, expected code points of at most 127"),
    "no Unicode": ({"values": np.full(6, 2**31, np.uint32)}, "values reach 2147483648, expected .* 1114111"),
    "wide bytes": ({"values": np.full(6, 65, np.uint32), "is_bytes": True}, "values must be a 1-D array of uint8"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_stored_strings_are_refused(case):
    changed, sentence = DAMAGED[case]
    state = {**vars(as_strings(["ACGT", "AC"])), **changed}
    with pytest.raises(ValueError, match=sentence) as raised:
        StringBatch.__new__(StringBatch).__setstate__(state)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("strings", [["ACGT", ""], ["é", "😀"], [b"\xff", b""]])
def test_stored_strings_come_back(strings):
    assert pickle.loads(pickle.dumps(as_strings(strings))).tolist() == strings
    state = vars(as_strings(strings)).copy()
    del state["is_bytes"]
    with pytest.raises(ValueError, match=r"holds \['offsets', 'values'\], expected \['is_bytes', "):
        StringBatch.__new__(StringBatch).__setstate__(state)


def test_a_file_with_damaged_strings_is_refused(tmp_path):
    path = sm.save(StringBatch(np.zeros(6, np.uint8), np.array([0, 4, 900])), tmp_path / "model")
    with pytest.raises(ValueError, match="offsets end at 900"):
        sm.load(path)


SEQUENCES = ["ACGT", "GATTACA", "CCGT", "TGCA"]


@pytest.mark.parametrize(
    ("strings", "told"),
    [
        ([*SEQUENCES, *map(str.lower, SEQUENCES)], True),
        ([*SEQUENCES, "ACGTacgtNNNN"], True),  # soft masking
        ([*map(str.encode, SEQUENCES), b"gattaca"], True),
        (["", *SEQUENCES, "MK-LV*", "gatta..ca"], True),
        ([*SEQUENCES, "GATTnnnCA"], False),  # one small letter, with a meaning of its own
        (SEQUENCES, False),
        ([x.lower() for x in SEQUENCES], False),
        ([*SEQUENCES, "defhik"], False),  # another alphabet
        (["ACGT ACGT", "acgt acgt"], False),
        (["CCO", "c1ccccc1", "NCC", "n1cccc1"], False),
        (["Anna", "Otto", "Paul", "Peter", "anna", "otto"], False),
        (["ACGT", "acgté"], False),
        (["ACGT\U00010348", "acgt"], False),
        (["", ""], False),
    ],
)
def test_sequences_in_both_cases(strings, told, monkeypatch):
    for block in (3, 2**20):
        monkeypatch.setattr("similia.objects.sequences._BLOCK", block)
        assert in_both_cases(as_strings(strings)) is told
