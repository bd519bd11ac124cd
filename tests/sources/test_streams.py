"""Streams: chunks are the whole files, whatever their size and start."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st

import similia as sm
from naive import streams as naive
from samples.stream import FORMATS, WORDS, in_table, strings_of, write, written
from similia.objects import GraphBatch, SeriesBatch, SetBatch, StringBatch, as_graphs, as_series, concatenate
from similia.sources import Reading, open_objects, read_columns, read_objects
from similia.sources import tables as _delimited_streams
from similia.sources import text as blocks
from similia.sources.source import sample
from similia.sources.streams import open_stream
from similia.sources.tables import Table
from similia.sources.text import fasta_records, fastq_records

LAW = settings(max_examples=60, deadline=None)
SLOW_LAW = settings(max_examples=8, deadline=None)
BLOCK = st.sampled_from([1, 2, 3, 7, 30, 2**20])  # bytes: small ones cut records anywhere


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("streams")


def delimited_records(path, columns, delimiter):
    table = Table(path, delimiter)
    return table.records([table.position_of(column) for column in columns])


def with_block(size, read):
    """Return what `read` returns, or the type of what it raises, with blocks of `size` bytes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", size)
        try:
            return read()
        except (ValueError, AssertionError, IndexError, csv.Error):
            return "refused"


def joined(records):
    columns = [[] for _ in range(4)]
    ends = []
    for part in records:
        for values, batch in zip(columns, part.columns, strict=False):
            batch._check()
            values += batch.tolist()
        columns[3] += part.headers or []
        ends += part.ends.tolist()
    return columns, ends


# --- each format against its slow twin --------------------------------------------------------


FASTA_TEXT = st.lists(
    st.sampled_from(
        [
            ">",
            ">a",
            "> b c ",
            "AC",
            "G T",
            " T",
            ";",
            "; x",
            "",
            " ",
            "é",
            ">ü",
            "\x1c",
            "\t>d",
            "ACGT" * 5,
            "1 ac\tgt",
            "ac\x1cgt 10",
            "0 1  1",
            "G é\t",
            "1a 2b",
            "012",
        ]
    ),
    max_size=12,
)
ENDS = st.lists(st.sampled_from(["\n", "\r\n", "\r", "\n\n"]), min_size=13, max_size=13)


@LAW
@given(FASTA_TEXT, ENDS, st.booleans(), st.booleans(), st.booleans(), BLOCK)
@example([">a", "AC", ">b"], ["\r\n"] * 13, True, True, True, 3)
@example([">a", " T", "G T"], ["\n"] * 13, True, True, False, 2**20)
@example([">a", "G T", "0 1", ">b", "\tA \x1c C", "3b"], ["\n"] * 13, True, True, False, 2**20)
@example([">a", "G", "61 AC"], ["\n"] * 13, True, True, False, 2**20)
@example([">a", "G ", ";", "", "T"], ["\n"] * 13, True, True, False, 2**20)
def test_fasta_is_that_of_a_loop_over_lines(folder, lines, ends, same, last, bom, block):
    text = "".join(line + (ends[0] if same else end) for line, end in zip(lines, ends, strict=False))
    path = write(folder / "a.fa", "\ufeff" * bom + (text if last else text.rstrip("\r\n")))
    expected = with_block(block, lambda: naive.fasta(path))
    found = with_block(block, lambda: joined(fasta_records(path)))
    if expected in ("refused", []):
        assert found == "refused"
        return
    (sequences, _, _, headers), ends = found
    assert list(zip(headers, sequences, strict=True)) == expected
    assert ends[-1] == path.stat().st_size


@LAW
@given(
    st.lists(st.tuples(st.sampled_from(["@", "@a b", "@é", "x"]), st.sampled_from(["", "AC", "A C ", "é", "@+"]),
                       st.sampled_from(["+", "+a", "+", "", "-"]), st.booleans()), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", "\n", "\n\n", "x\n"]), st.booleans(), BLOCK,
)  # fmt: skip
def test_fastq_is_that_of_a_loop_over_lines(folder, records, end, after, last, block):
    lines = [line for name, word, plus, same in records for line in (name, word, plus, word if same else word + "I")]
    text = end.join(lines) + end * last + after
    path = write(folder / "a.fq", text)
    expected = with_block(block, lambda: naive.fastq(path))
    found = with_block(block, lambda: joined(fastq_records(path)))
    if expected in ("refused", []):
        assert found == "refused"
        return
    (sequences, qualities, _, headers), _ = found
    assert list(zip(headers, sequences, qualities, strict=True)) == expected


CELL = st.sampled_from(["", "a", "AC GT", "é", "ü,ö", 'say "hi"', "two\nlines", "two\r\nlines", " x ", "\u2028", "'"])


@LAW
@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), BLOCK)
def test_csv_is_that_of_the_csv_module(folder, rows, end, block):
    file = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if end == "\r" else csv.QUOTE_MINIMAL  # the csv module quotes only its own line ends
    csv.writer(file, lineterminator=end, quoting=quoting).writerows([("id", "text", "label"), *rows])
    path = write(folder / "a.csv", file.getvalue())
    found = with_block(block, lambda: joined(delimited_records(path, ("label", 1, -3), ",")))
    expected = [naive.table(path, column) for column in ("label", "text", "id")]
    assert found[0][:3] == expected == [[row[j] for row in rows] for j in (2, 1, 0)]


RAW = st.lists(st.sampled_from(["a", "é", ",", "\t", '"', "\n", "\r\n", "\r", " ", "bc", '","', "\n\n"]), max_size=25)


@LAW
@given(RAW, st.sampled_from(["a.csv", "a.tsv"]), BLOCK)
@example(list('"a\n"b'), "a.csv", 1)
@example(list("a,b\n,b\n,\n"), "a.csv", 2**20)
def test_any_table_is_read_or_refused_as_by_the_csv_module(folder, raw, name, block):
    path = write(folder / name, "x\ttext,y\ttext\n" + "".join(raw))
    delimiter, column = ("\t", "text") if name == "a.tsv" else (",", "y\ttext")
    expected = with_block(block, lambda: naive.table(path, column))
    found = with_block(block, lambda: joined(delimited_records(path, (column,), delimiter)))
    assert found == "refused" if expected in ("refused", []) else found[0][0] == expected


def test_the_limit_of_the_csv_module_is_put_back_by_the_last_of_several_threads():
    before = csv.field_size_limit()
    first, second = _delimited_streams._long_fields(), _delimited_streams._long_fields()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert csv.field_size_limit() > before
    second.__exit__(None, None, None)
    assert csv.field_size_limit() == before


def test_the_limit_of_the_csv_module_fits_a_long_of_32_bits(monkeypatch):
    set_limit = csv.field_size_limit

    def of_windows(*limit):
        if limit and limit[0] >= 2**31:
            raise OverflowError("Python int too large to convert to C long")
        return set_limit(*limit)

    monkeypatch.setattr(_delimited_streams.struct, "calcsize", lambda code: 4)
    monkeypatch.setattr(csv, "field_size_limit", of_windows)
    with _delimited_streams._long_fields():
        assert set_limit() == 2**31 - 1


def test_a_delimiter_that_is_not_ascii(folder):
    path = write(folder / "a.txt", "a\u00a7b\u00e7\nc\u00a7d\n")
    assert read_columns(path, 1, sep="\u00a7", header=False) == (["b\u00e7", "d"],)


# --- chunks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORMATS)
@SLOW_LAW
@example(2, 13, 1)
@given(st.integers(1, 30), st.integers(1, 200), BLOCK)
def test_chunks_are_the_whole_file_from_every_start(folder, name, chunk, max_bytes, block):
    path, expected = written(folder, name, WORDS)
    if "fa" not in name:
        assert expected == (WORDS if "fq" in name else in_table(WORDS))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "_BLOCK", block)
        stream = open_stream(path, chunk=chunk, max_bytes=max_bytes)
        chunks = list(stream.chunks())
        assert strings_of(chunks) == expected
        assert [part.start for part in chunks] == [0, *(part.stop for part in chunks[:-1])]
        assert all(0 < len(part.objects) == part.stop - part.start <= chunk for part in chunks)
        for start in range(len(WORDS) + 1):
            rest = list(stream.chunks(start))
            assert strings_of(rest) == expected[start:]
            assert [part.start for part in rest] == [start, *(part.stop for part in rest[:-1])][: len(rest)]
            assert all(0 < len(part.objects) == part.stop - part.start <= chunk for part in rest)
    if "fa" in name or "fq" in name:
        assert [word for part in chunks for word in part.names] == [f"w{i}" for i in range(len(WORDS))]
    else:
        assert chunks[0].names is None
    assert [part.bytes_read for part in chunks] == sorted(part.bytes_read for part in chunks)
    assert chunks[-1].bytes_read <= stream.size == path.stat().st_size


def test_a_chunk_has_the_same_arrays_wherever_it_was_cut(folder):
    path = write(folder / "b.fa", ">a\nAC\n>b\né\n>c\nGT\n>d\nT")
    chunks = list(open_stream(path, chunk=1).chunks(1))
    for part in chunks:
        expected = StringBatch.from_list(part.objects.tolist())
        assert part.objects.values.dtype == expected.values.dtype
        assert part.objects.values.tolist() == expected.values.tolist()
        assert part.objects.offsets.tolist() == expected.offsets.tolist()


def test_a_chunk_holds_about_max_bytes(folder):
    path = write(folder / "b.csv", "text\n" + "".join("A" * (99 if i % 3 else 999) + "\n" for i in range(3000)))
    chunks = list(open_stream(path, chunk=10**6, max_bytes=10_000).chunks())
    sizes = np.diff([0, *(part.bytes_read for part in chunks)])
    assert sizes.max() <= 10_000
    assert sizes[:-1].min() > 8_000


@pytest.mark.parametrize("name", FORMATS)
def test_a_start_behind_the_end_is_refused(folder, name):
    path, words = written(folder, name, WORDS)
    stream = open_stream(path)
    assert list(stream.chunks(len(words))) == []
    with pytest.raises(ValueError, match=f"holds {len(words)} objects; start=13 is behind its end"):
        list(stream.chunks(13))


@pytest.mark.parametrize("name", FORMATS)
def test_the_fingerprint_is_of_each_byte_and_the_column(folder, name):
    path, _ = written(folder, name, WORDS)
    first = open_stream(path).fingerprint()
    assert first == open_stream(path, chunk=3).fingerprint()
    if "csv" in name:
        write(path, "text,other\na,b\n")
        assert len({open_stream(path, text=column).fingerprint() for column in ("text", "other", 1)}) == 2
    stream = open_stream(path)
    data = path.read_bytes()
    seen = {stream.fingerprint()}
    for i in range(0, len(data), 7):
        path.write_bytes(data[:i] + bytes([data[i] ^ 1]) + data[i + 1 :])
        seen.add(stream.fingerprint())
    assert len(seen) == 1 + len(range(0, len(data), 7))


# --- vectors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8", ">f8", "u1", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_an_array(folder, dtype, order):
    rows = np.asarray(np.arange(70).reshape(14, 5), dtype=dtype, order=order)
    path = folder / "a.npy"
    np.save(path, rows)
    for chunk, max_bytes in ((3, 2**26), (100, 2**26), (100, 50), (1, 1)):
        stream = open_stream(path, chunk=chunk, max_bytes=max_bytes)
        assert (stream.kind, stream.n, stream.size) == ("vectors", 14, path.stat().st_size)
        for start in (0, 4, 14):
            chunks = list(stream.chunks(start))
            found = np.concatenate([np.empty((0, 5)), *(part.objects for part in chunks)])
            assert np.array_equal(found, rows[start:])
            assert all(part.objects.dtype == rows.dtype.newbyteorder("=") for part in chunks)
            assert all(part.objects.flags.c_contiguous and part.objects.flags.writeable for part in chunks)
        assert np.array_equal(next(stream.chunks(chunks[0].stop - 1 if chunks else 13)).objects[0], rows[13])
    assert stream.fingerprint() == open_stream(path).fingerprint()


def test_missing_numbers_are_named_by_row(folder):
    rows = np.ones((9, 2))
    rows[7, 1] = np.nan
    np.save(folder / "a.npy", rows)
    with pytest.raises(ValueError, match=r"a\.npy, row 7: .*NaN"):
        list(open_stream(folder / "a.npy", chunk=4).chunks())
    with pytest.raises(ValueError, match=r"a\.npy, row 7: .*NaN"):
        read_objects(folder / "a.npy")
    found = read_objects(folder / "a.npy", on_error="skip")
    assert (len(found.objects), found.names, found.skips.n) == (8, [0, 1, 2, 3, 4, 5, 6, 8], 1)


# --- iterables --------------------------------------------------------------------------------


@LAW
@given(st.lists(st.text("ACé", max_size=4), min_size=1, max_size=12), st.integers(1, 15), st.integers(1, 30))
def test_iterables_of_strings(words, chunk, max_bytes):
    for source in (words, tuple(words), np.array(words), pa.array(words), StringBatch.from_list(words)):
        stream = open_stream(source, chunk=chunk, max_bytes=max_bytes)
        assert (stream.kind, stream.n, stream.size) == ("strings", len(words), None)
        for start in (0, len(words) // 2, len(words)):
            chunks = list(stream.chunks(start))
            assert strings_of(chunks) == words[start:]
            assert all(0 < len(part.objects) <= chunk for part in chunks)
        assert strings_of(stream.chunks()) == words
    generator = open_stream((word for word in words), chunk=chunk, max_bytes=max_bytes)
    assert generator.n is None
    assert strings_of(generator.chunks(1)) == words[1:]
    with pytest.raises(ValueError, match="already read"):
        list(generator.chunks())
    batches = open_stream((StringBatch.from_list(words[i : i + 5]) for i in range(0, len(words), 5)), chunk=chunk)
    assert strings_of(batches.chunks()) == words


def test_iterables_of_other_kinds():
    arrays = [np.arange(float(n)) for n in (3, 1, 4, 2)]
    [first, second] = open_stream((array for array in arrays), chunk=3).chunks()
    assert isinstance(first.objects, SeriesBatch)
    assert [len(x) for x in (*first.objects, *second.objects)] == [3, 1, 4, 2]
    rows = np.arange(12.0).reshape(6, 2)
    stream = open_stream(rows, chunk=4)
    assert stream.kind == "vectors"
    assert np.array_equal(np.concatenate([part.objects for part in stream.chunks(1)]), rows[1:])
    sets = SetBatch.from_arrays([np.ones((2, 3)), np.ones((1, 3))])
    assert [part.objects.lengths.tolist() for part in open_stream([sets, sets], chunk=3).chunks()] == [[2, 1, 2], [1]]
    graphs = as_graphs([([[0, 1], [1, 2]], 3), ([[0], [1]], 2)])
    stream = open_stream(iter([graphs, graphs]), chunk=3)
    assert stream.kind == "graphs"
    found = concatenate([part.objects for part in stream.chunks()])
    assert isinstance(found, GraphBatch)
    assert found.node_offsets.tolist() == [0, 3, 5, 8, 10]


def test_single_items_and_batches_keep_their_order():
    items = ["a", "b", StringBatch.from_list(["c", "d"]), "e", StringBatch.from_list(["f"])]
    assert strings_of(open_stream(items).chunks()) == list("abcdef")


@pytest.mark.parametrize("seed", range(20))
def test_a_sample_cut_by_its_bytes_does_not_depend_on_the_chunks(seed):
    words = ["x" * (80 if i % 10 == 9 else 10) for i in range(60)]
    drawn = [sample(open_stream(words, chunk=chunk), 1000, 100, seed)[2].tolist() for chunk in (1, 5, 60)]
    assert drawn[0] == drawn[1] == drawn[2]


def test_records_that_are_not_ascii_are_counted_one_by_one(tmp_path):
    words = ["a" * 2070, "é" * 2040, *["ü"] * 2000, "b" * 9000, "é"]  # 4080 bytes of at most 4096, then many short ones
    path = write(tmp_path / "a.txt", "\n".join(words))
    with sm.config(max_memory=2**16):
        stream = open_stream(path)
        assert strings_of(stream.chunks()) == words
        assert np.concatenate([part.lines for part in stream.chunks()]).tolist() == list(range(1, len(words) + 1))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table])
def test_data_frames_are_a_column_of_objects_or_rows_of_numbers(frame):
    assert strings_of(open_stream(frame({"text": ["AC", "G", ""]}), chunk=2).chunks()) == ["AC", "G", ""]
    numbers = open_stream(frame({"a": [1.0, 2.0], "b": [3, 4]}))
    assert numbers.kind == "vectors"
    assert [part.objects.tolist() for part in numbers.chunks()] == [[[1.0, 3.0], [2.0, 4.0]]]
    with pytest.raises(TypeError, match="X is a table of 2 columns, and column 'text' holds no numbers; select one"):
        open_stream(frame({"text": ["AC"], "label": [1]}))


def test_options_are_given_by_name_or_as_reading(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    assert open_objects(tmp_path / "a.npz").kind == "vectors"
    for opened in (
        open_objects(tmp_path / "a.npz", series=True),
        open_objects(tmp_path / "a.npz", Reading(series=True)),
    ):
        assert opened.kind == "series"
    with pytest.raises(TypeError, match="give options in reading or by name, not in both: series"):
        open_objects(tmp_path / "a.npz", Reading(), series=True)


def test_no_objects_are_not_taken(tmp_path):
    np.savez(tmp_path / "a.npz", X=np.ones((3, 2)))
    for source in (open_stream(["a", "b"]), open_objects(tmp_path / "a.npz")):
        with pytest.raises(ValueError, match="no objects are taken, expected at least one index"):
            source.take([])


@pytest.mark.parametrize(
    ("source", "error", "sentence"),
    [
        (["a", "b", "c", 4, "e"], TypeError, "item 3 is int"),
        (["a", "b", None], TypeError, "item 2 is missing"),
        (["a", b"b"], TypeError, "item 1 is bytes among str"),
        ([StringBatch.from_list(["a"]), as_series([[1.0]])], TypeError, "item 1 is a SeriesBatch, expected strings"),
        ([1, 2], TypeError, "item 0 is 1, expected a string"),
        ([sp.csr_array(np.eye(3))], TypeError, "item 0 is <.*expected a string, an array"),
        (sp.csr_matrix(np.eye(3)), TypeError, r"expected an array of rows, got a sparse matrix of shape \(3, 3\)"),
        (sp.csr_array(np.eye(3)), TypeError, r"got a sparse matrix of shape \(3, 3\); give X.toarray\(\)"),
        ([], ValueError, "holds no objects"),
        ({"a", "b"}, TypeError, "ordered iterable"),
        (b"abc", TypeError, "ordered iterable"),
        (3, TypeError, "expected a path or an ordered iterable of objects, got 3"),
    ],
)
def test_what_is_no_stream_of_objects(source, error, sentence):
    with pytest.raises(error, match=sentence):
        list(open_stream(source, chunk=2).chunks())


def test_an_iterable_has_no_fingerprint():
    with pytest.raises(ValueError, match="a list has no fingerprint"):
        open_stream(["a"]).fingerprint()
