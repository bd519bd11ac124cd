"""Streams of hostile files: refused in a sentence, in bounded memory, and every file is closed."""

from __future__ import annotations

import os
import re
import tracemalloc

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import similia as sm
from samples.stream import FORMATS, WORDS, in_table, strings_of, write, written
from similia.sources import read_columns, read_fasta
from similia.sources.streams import open_stream


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("streams")


def assert_one_sentence(raised, name):
    text = str(raised.value)
    assert name in text
    assert "\n" not in text
    assert len(text) < 500


def npy(folder, header, data=b"\0" * 80, version=1):
    raw = header.encode()
    length = len(raw).to_bytes(2 if version == 1 else 4, "little")
    return write(folder / "bad.npy", b"\x93NUMPY" + bytes([version, 0]) + length + raw + data)


HEADERS = {
    "too many rows": (
        "{'descr': '<f8', 'fortran_order': False, 'shape': (100, 5)}",
        "80 bytes of data, but its header .* says 4000",
    ),
    "too few rows": (
        "{'descr': '<f8', 'fortran_order': True, 'shape': (1, 5)}",
        "80 bytes of data, but its header .* says 40",
    ),
    "huge": (f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**62}, {2**62})}}", "claims a shape"),
    "negative": ("{'descr': '<f8', 'fortran_order': False, 'shape': (-2, -5)}", "not an array that numpy.save"),
    "one axis": ("{'descr': '<f8', 'fortran_order': False, 'shape': (10,)}", r"float64 of shape \(10,\), expected"),
    "no columns": ("{'descr': '<f8', 'fortran_order': False, 'shape': (10, 0)}", "expected numbers of shape"),
    "objects": ("{'descr': '|O', 'fortran_order': False, 'shape': (2, 5)}", "holds Python objects"),
    "text": ("{'descr': '<U2', 'fortran_order': False, 'shape': (2, 5)}", "expected numbers"),
    "call": ("__import__('os')", "not an array that numpy.save"),
    "open bracket": ("{'descr': ('<f8', [(", "not an array that numpy.save"),
    "long": ("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 5)}" + " " * 60_000, "not an array that numpy"),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_that_lie(folder, case):
    header, sentence = HEADERS[case]
    with pytest.raises(ValueError, match=sentence) as raised:
        open_stream(npy(folder, header))
    assert_one_sentence(raised, "bad.npy")


def test_a_header_that_claims_much_is_not_read(folder):
    path = write(folder / "bad.npy", b"\x93NUMPY\x02\x00" + (2**27).to_bytes(4, "little") + b" " * 100)
    with open(path, "r+b") as file:
        file.truncate(2**27 + 100)  # a hole, which takes no space on disk
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="not an array"):
            open_stream(path)
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()
    path.unlink()


SMALL = 2**16  # of max_memory: records of 16 KiB, rows with quotes of 4 KiB
LONG = "A" * 20_000


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.fa", f">a\nAC\n>b\n{LONG}\n", 3),
        ("a.fa.gz", f">a\nAC\n>b\n{LONG}\n", 3),
        ("a.fa", ">a\nAC\n>b\n" + "ACGT\n" * 5000, 3),
        ("a.fa", ">a\nAC\n>" + LONG, 3),
        ("a.fa", ">a\nAC\n" + "\n" * 20_000, 1),
        ("a.fq", f"@a\nAC\n+\nII\n@b\n{LONG}", 5),
        ("a.csv", f"text\nAC\n{LONG}\n", 2),
        ("a.csv.gz", f'text\nAC\n"{LONG}"\n', 2),
        ("a.csv", 'text\nAC\n"' + "ACGT\n" * 4000, 3),
        ("a.tsv", LONG, 1),
        ("a.csv", f'text\n"{LONG[:6000]}"\n', 2),
        ("a.csv", f"text\n{'é' * 3000}\n", 2),
        ("a.fa", f">a\n{'é' * 3000}\n", 1),
    ],
)
def test_a_record_that_takes_too_much_memory_is_refused(folder, name, text, line):
    path = write(folder / name, text)
    with (
        sm.config(max_memory=SMALL),
        pytest.raises(ValueError, match=r"longer than \d+ bytes \(1/\d+ of max_memory\); raise") as raised,
    ):
        list(open_stream(path).chunks())
    assert_one_sentence(raised, name)
    assert int(re.search(r"line (\d+)", str(raised.value))[1]) in (line, line + 1)
    if "ACGT\n" not in text and not text.endswith("\n\n"):
        return
    with sm.config(max_memory=2**20):
        assert_reads_or_says_truncated(path)


def test_short_records_are_read_with_little_memory(folder):
    words = [f"{'ACGT' * (i % 9)}" for i in range(2000)]
    indented = write(folder / "a.fa", "".join(f" >{i}\n{word}\n" for i, word in enumerate(words)))
    quoted = write(folder / "a.csv", "text\n" + "".join(f'"{word}é\n"\n' for word in words))
    with sm.config(max_memory=SMALL):
        assert strings_of(open_stream(indented).chunks()) == words
        assert strings_of(open_stream(quoted).chunks()) == [f"{word}é\n" for word in words]


def test_what_is_no_fasta_is_said_before_much_is_read(folder):
    path = write(folder / "a.fa", LONG)
    with sm.config(max_memory=SMALL), pytest.raises(ValueError, match="line 1: expected '>name'"):
        list(open_stream(path).chunks())


def assert_reads_or_says_truncated(path):
    try:
        list(open_stream(path).chunks())
    except ValueError as error:
        assert "unexpected end of data); is a quotation mark missing" in str(error)  # noqa: PT017


BROKEN = {
    "nul": ("a.fa", b">a\nAC\n>b\nA\0C\n", "a.fa, line 4: a NUL byte"),
    "nul in csv": ("a.csv", b"text\nA\n\0\n", "a.csv, line 3: a NUL byte"),
    "utf-16": ("a.csv", "text\nAC\n".encode("utf-16"), "a.csv, line 1: a NUL byte|not a UTF-8 text"),
    "latin-1": ("a.csv", "text\nAC\nfür\n".encode("latin-1"), "a.csv, line 3: .*not a UTF-8 text"),
    "latin-1 fasta": ("a.fa", ">a\nAC\n>für\nAC\n".encode("latin-1"), "a.fa, line 3: .*not a UTF-8 text"),
    "latin-1 fastq": ("a.fq", "@a\nA\n+\nI\n@ü\nA\n+\nI\n".encode("latin-1"), "a.fq, line 5: .*not a UTF-8"),
    "png": ("a.fa", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 9, "not a UTF-8 text"),
    "no fasta": ("a.fa", "x" * 100 + "\n", "line 1: expected '>name'"),
    "empty": ("a.fa", "", "holds no sequences"),
    "empty fastq": ("a.fq", "\n\n", "holds no records"),
    "empty table": ("a.csv", "text\n\n", "holds no rows"),
    "no column": ("a.csv", ",".join(f"column{i}" for i in range(5000)) + "\n1\n", r"no column 'text'; it has .* more"),
    "short row": ("a.csv", "id,text\n1,a\n\n2\n", "a.csv, line 4: found 1 cell, expected 2 as in the header"),
    "long row": ("a.csv", "text,id\na,1\nb,2,3\n", "a.csv, line 3: found 3 cells, expected 2 as in the header"),
    "long row behind quotes": ("a.csv", 'text,id\n"a,\nb",1\nb,2,3\n', "line 4: found 3 cells, expected 2"),
    "long rows of gzip": ("a.tsv.gz", "text\tid\n" + "a\t1\t2\n" * 9, "line 2: found 3 cells, expected 2"),
    "open quote": (
        "a.csv",
        'text\nA\n"B\nC\n',
        "line 3: the row that begins here cannot be read .unexpected end of data.; is a quotation",
    ),
    "no gzip": ("a.csv.gz", None, "truncated or not"),
    "no parquet": ("a.parquet", "PAR1 and so on", "not an intact Parquet file"),
    "unknown": ("a.xlsx", "x", "unknown ending; save the sheet as CSV"),
    "packed rows": ("a.npy.gz", "x", "gunzip it first"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files(folder, case):
    name, data, sentence = BROKEN[case]
    path = folder / name
    if data is None:
        path.write_text("text\nA\n")
    else:
        write(path, data)
    with pytest.raises(ValueError, match=sentence) as raised:
        list(open_stream(path).chunks())
    assert_one_sentence(raised, name)


@pytest.mark.parametrize("name", ["a.fa.gz", "a.fq.gz", "a.csv.gz"])
def test_a_cut_gzip_file_is_refused_at_every_length(folder, name):
    path, _ = written(folder, name, WORDS)
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"truncated|holds no|has no") as raised:
            list(open_stream(path).chunks())
        assert_one_sentence(raised, name)


def test_missing_files_and_folders_are_the_usual_errors(folder):
    with pytest.raises(FileNotFoundError):
        open_stream(folder / "none.fa")
    for name in ("ACGT", "ACGT" * 2000):
        with pytest.raises(FileNotFoundError, match=r"no file named 'ACGT.*pass a list: \['ACGT"):
            open_stream(name)
    (folder / "folder.fa").mkdir()
    with pytest.raises(IsADirectoryError):
        list(open_stream(folder / "folder.fa").chunks())


def test_parquet_of_wrong_types(folder):
    path = folder / "t.parquet"
    for values, error, sentence in (
        ([1, 2], ValueError, "column 'text': holds int64, expected strings"),
        ([["a"], []], ValueError, "column 'text': holds list<"),
        ([{"a": 1}], ValueError, "column 'text': holds struct<"),
        ([None, None], ValueError, "column 'text': holds null"),
        (["a", "b", None, "c"], ValueError, r"row 2 \(counted from 0\): column 'text' is missing"),
        (pa.array([b"a", b"\xff\xfe"]).view(pa.string()), ValueError, r"row 1 \(counted from 0\): .* is not UTF-8"),
        (pa.array(["a"] * 11 + [None]).dictionary_encode(), ValueError, r"row 11 \(counted from 0\)"),
    ):
        parquet.write_table(pa.table({"text": values}), path, row_group_size=3)
        with pytest.raises(error, match=sentence) as raised:
            list(open_stream(path).chunks())
        assert_one_sentence(raised, "t.parquet")
    with pytest.raises(ValueError, match="no column 'other'; it has 'text'"):
        open_stream(path, text="other")
    with pytest.raises(ValueError, match="1 column, none at position 1"):
        open_stream(path, text=1)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_parquet_types_of_strings(folder, kind):
    words = in_table([*WORDS, *WORDS])
    table = pa.table({"deep": [{"a": 1, "b": 2}] * 24, "text": pa.array(words).cast(kind)})
    parquet.write_table(table, folder / "t.parquet", row_group_size=9)
    for start in range(0, 25, 5):
        assert strings_of(open_stream(folder / "t.parquet", chunk=4).chunks(start)) == words[start:]
    raw = [word.encode() for word in words]
    parquet.write_table(pa.table({"text": raw}), folder / "t.parquet")
    assert strings_of(open_stream(folder / "t.parquet").chunks()) == raw


@pytest.mark.parametrize("keep", [0.3, 0.6, 0.95])
def test_a_damaged_parquet_file_is_refused(folder, keep):
    path = folder / "t.parquet"
    words = [f"{i:x}" * 9 for i in range(3000)]
    parquet.write_table(pa.table({"text": words}), path, row_group_size=1000)
    data = bytearray(path.read_bytes())
    cut = int(len(data) * keep)
    for damaged in (data[:cut], data[:cut] + b"\xff" * 40 + data[cut + 40 :]):
        path.write_bytes(damaged)
        try:
            strings_of(open_stream(path).chunks())
        except (ValueError, TypeError) as error:
            assert str(path) in str(error)  # noqa: PT017
            assert "\n" not in str(error)  # noqa: PT017


def test_a_dictionary_of_long_strings_is_read_a_few_rows_at_a_time(folder):
    path = folder / "bomb.parquet"
    entries = pa.DictionaryArray.from_arrays(pa.array([0] * 5000, pa.int32()), ["A" * 2**20])
    parquet.write_table(pa.table({"text": entries}), path, compression="zstd", store_schema=False)
    pool = pa.default_memory_pool()
    assert path.stat().st_size < 10_000
    chunks = open_stream(path, max_bytes=2**23).chunks()
    for part, _ in zip(chunks, range(5), strict=False):
        assert len(part.objects) <= 8
        assert pool.bytes_allocated() < 2**26
    chunks.close()


def test_a_bomb_is_no_list(folder):
    path = write(folder / "bomb.fa.gz", ">a\nACGT\n" * 400_000)
    with sm.config(max_memory="1MB"):
        assert sum(len(part.objects) for part in open_stream(path).chunks()) == 400_000
        for read in (read_fasta, lambda path: read_columns(path, 0, sep=",")):
            with pytest.raises(ValueError, match="unpacks to more than max_memory"):
                read(path)
    assert len(read_fasta(path)[1]) == 400_000


# --- memory -----------------------------------------------------------------------------------


def peak(read):
    tracemalloc.start()
    try:
        read()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["m.fa", "m.fa.gz", "m.csv", "quoted.csv", "m.parquet", "m.npy"])
def test_memory_does_not_grow_with_the_file(folder, name):
    path, n, word = folder / name, 30_000, "ACGTTGCA" * 125
    if name == "m.parquet":
        parquet.write_table(pa.table({"text": [word] * n}), path, use_dictionary=False)
    elif name == "m.npy":
        np.save(path, np.zeros((n, 125)))
    elif name == "quoted.csv":
        write(path, "text\n" + f'"{word}"\n' * n)
    else:
        write(path, "text\n" + f"{word}\n" * n if ".csv" in name else f">a\n{word}\n" * n)
    stream = open_stream(path, chunk=1000)
    found = []
    assert peak(lambda: found.append(sum(len(part.objects) for part in stream.chunks()))) < 10 * 2**20
    assert found == [n]
    path.unlink()


@pytest.mark.parametrize(("name", "begin"), [("big.fa", ">a\n"), ("big.fa.gz", ">a\n"), ("big.csv", 'text\n"')])
def test_memory_is_bounded_by_max_memory_whatever_a_line(folder, name, begin):
    path = write(folder / name, begin + "A" * 40_000_000)
    with sm.config(max_memory="8MB"):
        assert peak(lambda: refused(path)) < 8_000_000
    path.unlink()


def refused(path):
    with pytest.raises(ValueError, match="longer than"):
        list(open_stream(path).chunks())


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="the system does not list open files")
@pytest.mark.parametrize("name", list(FORMATS))
def test_files_are_closed(tmp_path, name):
    def opened():
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return [link for link in links if os.path.lexists(link) and os.path.realpath(link) == os.path.realpath(path)]

    path, _ = written(tmp_path, name, WORDS)  # a folder of its own: no other test has the file open
    chunks = open_stream(path, chunk=1).chunks()
    next(chunks)
    assert opened()
    chunks.close()
    assert not opened()
    assert len(list(open_stream(path, chunk=1).chunks())) > 1
    assert not opened()


def test_an_array_that_claims_a_number_of_many_digits_does_not_make_a_long_sentence(tmp_path):
    path, shape = tmp_path / "x.npy", f"(1{'0' * 200}, 1{'0' * 200})"
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(10 + len(header) + 1) % 64) + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(64))
    with pytest.raises(ValueError) as caught:
        list(open_stream(path).chunks())
    assert len(str(caught.value)) < 500
    assert str(path) in str(caught.value)
