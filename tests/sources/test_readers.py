"""Files: FASTA, FASTQ, tables and TUDataset, whole and broken."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from similia.core.validation import BadFile
from similia.objects import read_tudataset
from similia.sources import open_stream, read_columns, read_fasta, read_fastq, read_objects, read_ts

LAW = settings(max_examples=30, deadline=None)
LETTERS = st.text("ACGTN-*acgt", max_size=12)
NAME = st.text("abc |.,é", max_size=6).map(str.strip)


def write(path, text):
    """Write text or bytes, compressed if the name says so."""
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


# --- FASTA and FASTQ --------------------------------------------------------------------------


@LAW
@given(st.lists(st.tuples(NAME, LETTERS), min_size=1, max_size=4), st.integers(1, 5), st.sampled_from(["\n", "\r\n"]))
def test_fasta_round_trip(tmp_path_factory, records, width, end):
    lines = []
    for name, sequence in records:
        lines += [f">{name}", *(sequence[i : i + width] for i in range(0, len(sequence), width)), ""]
    folder = tmp_path_factory.mktemp("fasta")
    for name in ("a.fasta", "a.fa.gz"):
        names, sequences = read_fasta(write(folder / name, end.join(lines)))
        assert list(zip(names, sequences, strict=True)) == records


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_sequence_files_of_other_encodings(tmp_path, encoding):
    fasta = write(tmp_path / "a.fasta", ">né\nAC\n".encode(encoding))
    fastq = write(tmp_path / "a.fq.gz", "@né\nAC\n+\nII\n".encode(encoding))
    assert read_fasta(fasta, encoding) == (["né"], ["AC"])
    assert read_fastq(fastq, encoding) == (["né"], ["AC"], ["II"])
    for path in (fasta, fastq):
        assert read_objects(path, encoding=encoding).names == ["né"]
        assert [part.names for part in open_stream(path, encoding=encoding).chunks()] == [["né"]]
        with pytest.raises(ValueError, match="name another encoding"):
            read_objects(path)


def test_fasta_comments_and_case(tmp_path):
    path = write(tmp_path / "a.fa", ";old comment\n\n>one two\nac GT\n; in between\nN*-\n>empty\n>last\nA")
    assert read_fasta(path) == (["one two", "empty", "last"], ["acGTN*-", "", "A"])


@LAW
@given(st.lists(st.tuples(NAME, LETTERS), min_size=1, max_size=4))
def test_fastq_round_trip(tmp_path_factory, records):
    text = "".join(f"@{name}\n{sequence}\n+\n{'@' * len(sequence)}\n" for name, sequence in records)
    folder = tmp_path_factory.mktemp("fastq")
    for name in ("a.fastq", "a.fq.gz"):
        names, sequences, qualities = read_fastq(write(folder / name, text))
        assert list(zip(names, sequences, strict=True)) == records
        assert [set(q) <= {"@"} and len(q) for q in qualities] == [len(s) for s in sequences]


BROKEN = {
    "fasta empty": (read_fasta, "a.fa", "", "holds no sequences"),
    "fasta of another kind": (read_fasta, "a.fa", "\nlabel,text\n", "line 2: expected '>name'"),
    "fasta binary": (read_fasta, "a.fa", b"\x89PNG\xff\xfe", "not a UTF-8 text"),
    "fasta not gzip": (read_fasta, "a.fa.gz", None, "truncated or not"),
    "fasta with positions": (
        read_fasta,
        "a.fa",
        ">a\nAC\n0 1\n>b\n\nAC GT 10\n",
        "line 6: holds the number '10' beside letters; remove",
    ),
    "fasta of GenBank": (read_fasta, "a.fa", "; x\n>a\n       61 acgt acgt\n", "line 3: holds the number '61'"),
    "fastq empty": (read_fastq, "a.fq", "\n", "holds no records"),
    "fastq truncated record": (read_fastq, "a.fq", "@a\nAC\n+\nII\n@b\nAC\n", "line 5: the last record has 2 of 4"),
    "fastq truncated line": (read_fastq, "a.fq", "@a\nACGT\n+\nII", "line 4: 2 qualities for 4 letters"),
    "fastq of another kind": (read_fastq, "a.fq", ">a\nAC\n>b\nAC\n", "line 1: expected '@name'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_sequence_files(tmp_path, case):
    reader, name, text, sentence = BROKEN[case]
    path = tmp_path / name
    if text is None:
        path.write_text(">a\nAC\n")
    else:
        write(path, text)
    with pytest.raises(ValueError, match=sentence) as raised:
        reader(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("keep", [0.5, 0.9])
def test_a_cut_gzip_file_is_refused(tmp_path, keep):
    whole = gzip.compress(("\n".join(f">{i}\n{'ACGT' * i}" for i in range(200))).encode())
    path = tmp_path / "a.fa.gz"
    path.write_bytes(whole[: int(len(whole) * keep)])
    with pytest.raises(ValueError, match="truncated"):
        read_fasta(path)


def test_a_missing_file_is_named_in_one_sentence(tmp_path):
    for reader, name in ((read_fasta, "a.fa"), (read_fastq, "a.fq.gz"), (read_objects, "a.csv"), (read_ts, "a.ts")):
        with pytest.raises(FileNotFoundError, match=rf"^\S*{name}: no such file or directory$"):
            reader(tmp_path / name)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(FileNotFoundError, match=rf"^\S*{name}: no such file or directory$"):
            read_columns(tmp_path / name, "a")


# --- tables -----------------------------------------------------------------------------------


@LAW
@given(
    st.lists(
        st.tuples(st.text("ab,\"\n' ", min_size=1, max_size=5), st.text("xyz", min_size=1, max_size=3)),
        min_size=1,
        max_size=5,
    )
)
def test_csv_round_trip(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("text", "label"), *rows])
    texts, labels = read_columns(path, "text", "label")
    assert list(zip(texts, labels, strict=True)) == rows
    assert read_columns(path, 1, -2) == (labels, texts)


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (["0.5", " -1e3", "2"], [0.5, -1000.0, 2.0]),
        (["3", "-1", "+2"], [3.0, -1.0, 2.0]),
        (["3", "-1", "2"], [3, -1, 2]),
        (["007", "1", "2"], ["007", "1", "2"]),
        (["1", "", "2"], ["1", "", "2"]),
        (["1", "NA", "2"], ["1", "NA", "2"]),
        (["1", "nan", "2"], ["1", "nan", "2"]),
        (["1_0", "1", "2"], ["1_0", "1", "2"]),
        (["a", "1", "2"], ["a", "1", "2"]),
    ],
)
def test_a_column_of_numbers_is_read_as_numbers(tmp_path, cells, read):
    path = write(tmp_path / "a.csv", "text,label\n" + "".join(f"w{i},{cell}\n" for i, cell in enumerate(cells)))
    texts, labels = read_columns(path, "text", "label", keep_missing=True)
    assert texts == ["w0", "w1", "w2"]
    assert labels == read
    assert list(map(type, labels)) == list(map(type, read))
    if all(cells) and "NA" not in cells and "nan" not in cells:
        assert read_objects(path).labels.tolist() == labels


@pytest.mark.parametrize("digits", [18, 19, 25, 4000])
def test_integers_of_any_length_are_exact(tmp_path, digits):
    whole = ["1" * (digits - 1) + last for last in "12"]
    assert read_columns(write(tmp_path / "a.csv", "id\n" + "\n".join(whole)), "id") == (list(map(int, whole)),)


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\r\n\r\n"])
def test_quoted_commas_and_trailing_empty_lines_are_not_ragged(tmp_path, end):
    path = write(tmp_path / "a.csv", 'a,b\n"1,5",2\n\n3,' + end)
    assert read_columns(path, "a", "b", keep_missing=True) == (["1,5", "3"], ["2", ""])
    (chunk,) = open_stream(path, text="a").chunks()
    assert chunk.objects.tolist() == ["1,5", "3"]


def test_rows_without_a_header_are_as_wide_as_the_first(tmp_path):
    path = write(tmp_path / "a.csv", "1,2\n3,4,5\n")
    with pytest.raises(ValueError, match="line 2: found 3 cells, expected 2 as in the first row"):
        read_columns(path, 0, header=False)


@pytest.mark.parametrize("name", ["a.tsv", "a.tab", "a.tsv.gz"])
def test_tables_with_tabs_have_no_quotes(tmp_path, name):
    path = write(tmp_path / name, '\ufefflabel\ttext\nham\t"Hi", he said\n\nspam\t5" screen\n')
    assert read_columns(path, "text", "label") == (['"Hi", he said', '5" screen'], ["ham", "spam"])


def test_delimiter_header_and_long_fields(tmp_path):
    long = "ACGT" * 50_000
    path = write(tmp_path / "a.txt", f"x;{long}\ny;AC\n")
    before = csv.field_size_limit(1000)
    try:
        assert read_columns(path, 1, sep=";", header=False) == ([long, "AC"],)
        assert csv.field_size_limit() == 1000
    finally:
        csv.field_size_limit(before)


def test_parquet(tmp_path):
    table = pa.table({"text": pa.array(["a", None, "c"]), "label": [1, 2, 3]})
    path = tmp_path / "a.parquet"
    parquet.write_table(table, path)
    assert read_columns(path, "label", "text", keep_missing=True) == ([1, 2, 3], ["a", None, "c"])
    assert read_columns(path, "label", "text", on_error="skip") == ([1, 3], ["a", "c"])
    with pytest.raises(BadFile, match="the value in column 'text' is missing") as caught:
        read_columns(path, 0)
    assert caught.value.at == "row 1 (counted from 0)"
    for column, sentence in (
        ("none", "no column 'none'; it has 'text', 'label'"),
        (2, "2 columns, none at position 2"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_columns(path, column)
    whole = path.read_bytes()
    footer = bytearray(whole)
    footer[-40:-8] = b"\xff" * 32
    for broken in (whole[: len(whole) // 2], b"PAR1", b"text,label\n1,2\n", bytes(footer)):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="not an intact Parquet file"):
            read_columns(path, "text")


def test_integers_that_float64_rounds_are_read_from_parquet_as_from_text(tmp_path):
    values = [2**53 + 1, -(2**62) - 1, 3]
    parquet.write_table(pa.table({"x": values, "y": [1.0, 2.0, 3.0]}), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for y, x in enumerate(values, 1)))
    found = read_objects(tmp_path / "a.parquet").objects
    np.testing.assert_array_equal(found, read_objects(tmp_path / "a.csv").objects)


@pytest.mark.parametrize("read", [lambda path: read_columns(path, "text", "label"), read_objects])
@pytest.mark.parametrize(
    ("rows", "at", "column"),
    [
        (["AC,a", '"G', 'T",', "GG,b"], "line 3", "label"),  # the row begins in line 3 and ends in line 4
        (["AC,a", "GT,b", ",a", ","], "line 4", "text"),
        (["AC,1", "GT,2", "GG, NA "], "line 4", "label"),  # in a column of numbers
    ],
)
def test_a_missing_cell_stops_with_its_line(tmp_path, read, rows, at, column):
    path = write(tmp_path / "a.csv", "\n".join(["text,label", *rows]))
    with pytest.raises(BadFile, match=rf"column '{column}'\)? is (missing|empty); fill it in or leave") as caught:
        read(path)
    assert (caught.value.path, caught.value.at) == (str(path), at)


def test_rows_with_missing_cells_are_left_out_and_listed(tmp_path):
    path, left = write(tmp_path / "a.csv", "text,label\nAC,a\nGT,\nbroken\n,b\nGG,NA\n,\n"), tmp_path / "left.csv"
    assert read_columns(path, "text", "label", on_error="skip", skipped=left) == (["AC", "GG"], ["a", "NA"])
    found = read_objects(path, on_error="skip")
    assert (found.objects.tolist(), found.labels.tolist()) == (["AC", "GG"], ["a", "NA"])
    assert (found.names, found.lines.tolist(), found.skips.n) == ([0, 4], [2, 6], 4)
    with left.open(newline="") as file:
        assert [row[0] for row in csv.reader(file)] == ["line", "3", "4", "5", "7"]
    with pytest.raises(ValueError, match="no row with a value in each column"):
        read_columns(write(path, "text,label\nAC,\n,b\n"), "text", "label", on_error="skip")


@pytest.mark.parametrize("columns", [["text", "label"], ("text",), None, 1.0])
def test_a_list_of_columns_is_not_a_column(tmp_path, columns):
    with pytest.raises(TypeError, match=r"write read_columns\(path, 'a', 'b'\)"):
        read_columns(write(tmp_path / "a.csv", "text,label\na,b\n"), columns)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match="pip install pyarrow"):
        read_columns(tmp_path / "a.parquet", "text")


@pytest.mark.parametrize(
    ("name", "text", "columns", "sentence"),
    [
        ("a.csv", "a,b\n1,2\n", ["c"], "no column 'c'; it has 'a', 'b'"),
        ("a.csv", "a,b\n1,2\n3\n", ["a"], "a.csv, line 3: found 1 cell, expected 2 as in the header; .*truncated"),
        ("a.csv", 'a,b\n"1,5",2\n\n3,4,5\n', ["a"], "line 4: found 3 cells, expected 2 .*contains ',' must be quoted"),
        ("a.tsv", "a\tb\n1\t2\n3\t4\t5\n", ["a"], "line 3: found 3 cells, expected 2 .*a tab within a cell"),
        ("a.csv", "a,b\n1,2\n", [2], "2 columns, none at position 2"),
        ("a.csv", 'a,b\n1,"2\n', ["a"], "line 2: the row that begins here cannot be read"),
        ("a.csv", "a,b\n", ["a"], "holds no rows"),
        ("a.csv", "", ["a"], "a.csv is empty"),
        ("a.csv", "\n\n", ["a"], "a.csv has no columns"),
        ("a.csv", "a,b\n1,2\n", [], "at least one column"),
        ("a.csv", b"a\n\xff\xfe\n", ["a"], "not a UTF-8"),
        ("a.xlsx", "a", ["a"], "give the separator"),
    ],
)
def test_broken_tables(tmp_path, name, text, columns, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_columns(write(tmp_path / name, text), *columns)


# --- TUDataset --------------------------------------------------------------------------------

# graph 1: nodes 1-2-3 in a path, edge (1, 2) listed twice, self-loop at 3; graph 2: node 4; graph 3: no node
TINY = {
    "A": "1, 2\n2,1\n2, 3\n3, 2\n1, 2\n3,3\n",
    "graph_indicator": "1\n1\n1\n2\n",
    "graph_labels": "-1\n1\n1\n",
    "node_labels": "5\n6\n5\n7\n",
    "node_attributes": "0.5, 1\n1e-3,2\n-1,3\n0, 4\n",
    "edge_labels": "1\n2\n3\n4\n9\n5\n",
    "edge_attributes": "0.1,10\n0.2,20\n0.3,30\n0.4,40\n0.9,90\n0.5,50\n",
    "graph_attributes": "0.25\n0.5\n0.75\n",
}


def tudataset(folder, **changes):
    """Write the tiny set with some files changed (None: left out) and return its folder."""
    for kind, text in {**TINY, **changes}.items():
        if text is not None:
            write(folder / f"TINY_{kind}.txt", text)
    return folder


def check_tiny(graphs):
    assert graphs.node_offsets.tolist() == [0, 3, 4, 4]
    assert graphs.edge_index.T.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1], [2, 2]]
    assert graphs.node_labels.tolist() == [5, 6, 5, 7]
    assert graphs.node_attributes.tolist() == [[0.5, 1], [1e-3, 2], [-1, 3], [0, 4]]
    assert graphs.edge_labels.tolist() == [1, 2, 3, 4, 5]
    assert graphs.edge_weights.tolist() == [0.1, 0.2, 0.3, 0.4, 0.5]


def test_tudataset_folder_and_zip(tmp_path):
    folder = tudataset(tmp_path)
    (folder / "README.txt").write_text("about")
    graphs, y = read_tudataset(folder)
    check_tiny(graphs)
    assert y.tolist() == [-1, 1, 1]
    for inside in ("", "TINY/"):
        path = tmp_path / "TINY.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for file in folder.glob("*.txt"):
                archive.write(file, inside + file.name)
                archive.writestr(f"__MACOSX/{inside}._{file.name}", b"\x00\x05\x16")
        check_tiny(read_tudataset(path)[0])
        check_tiny(read_tudataset(str(path))[0])


def test_tudataset_windows_lines_and_blank_ends(tmp_path):
    changes = {kind: text.replace("\n", "\r\n") + "\r\n\r\n" for kind, text in TINY.items()}
    check_tiny(read_tudataset(tudataset(tmp_path, **changes))[0])


def test_tudataset_targets_and_edge_columns(tmp_path):
    folder = tudataset(tmp_path)
    assert read_tudataset(folder, target="attributes")[1].tolist() == [0.25, 0.5, 0.75]
    assert read_tudataset(folder, edge_weight=1)[0].edge_weights.tolist() == [10, 20, 30, 40, 50]
    assert read_tudataset(folder, edge_weight=None)[0].edge_weights is None
    with pytest.raises(ValueError, match="2 columns, none is edge_weight=2"):
        read_tudataset(folder, edge_weight=2)
    with pytest.raises(ValueError, match="target must be"):
        read_tudataset(folder, target="y")
    (folder / "TINY_graph_labels.txt").unlink()
    assert read_tudataset(folder)[1].tolist() == [0.25, 0.5, 0.75]
    with pytest.raises(FileNotFoundError, match=r"graph_labels\.txt is missing"):
        read_tudataset(folder, target="labels")
    (folder / "TINY_graph_attributes.txt").unlink()
    graphs, y = read_tudataset(folder)
    assert y is None
    assert len(graphs) == 2


def test_tudataset_labels_of_several_columns_are_one(tmp_path):
    folder = tudataset(tmp_path, node_labels="1,2\n1,3\n1, 2\n12,0\n")
    labels = read_tudataset(folder)[0].node_labels
    assert labels[0] == labels[2]
    assert len(set(labels.tolist())) == 3


def test_tudataset_nodes_in_any_order(tmp_path):
    folder = tudataset(
        tmp_path, graph_indicator="2\n1\n1\n1\n", A="2,3\n3,2\n3,4\n4,3\n2,3\n4,4\n",
        node_labels="7\n5\n6\n5\n", node_attributes="0,4\n0.5,1\n0.001,2\n-1,3\n",
    )  # fmt: skip
    check_tiny(read_tudataset(folder)[0])


def test_tudataset_without_edges(tmp_path):
    folder = tudataset(tmp_path, A="", edge_labels=None, edge_attributes=None)
    assert read_tudataset(folder)[0].degrees.tolist() == [0, 0, 0, 0]


BAD_SETS = {
    "no indicator": ({"graph_indicator": None}, FileNotFoundError, "holds 0 files named NAME_graph_indicator.txt"),
    "no edges file": ({"A": None}, FileNotFoundError, "TINY_A.txt is missing"),
    "nothing in it": (
        {"graph_indicator": "", "A": "", "graph_labels": None, "graph_attributes": None, "node_labels": None,
             "node_attributes": None, "edge_labels": None, "edge_attributes": None}, ValueError, "holds no graphs"
    ),
    "letters": ({"A": "1, 2\n2, 1\n\nx, 3\n"}, ValueError, r"TINY_A.txt, line 4: found 'x', expected an integer"),
    "half a line": ({"A": "1, 2\n2, 1\n3"}, ValueError, r"TINY_A.txt, line 3: found 1 number, expected 2"),
    "short line": ({"A": "\n1, 2\n3\n2, 1\n"}, ValueError, r"TINY_A.txt, line 3: found 1 number, expected 2"),
    "binary": ({"A": b"\x89PNG\x00\x01"}, ValueError, "TINY_A.txt, line 1"),
    "three columns": ({"A": "1,2,3\n"}, ValueError, "2 numbers a line, found 3"),
    "edge across graphs": ({"A": "1,2\n4,3\n"}, ValueError, r"TINY_A.txt, line 2: edge \[4, 3\] joins graph 2 to"),
    "indicator cut": ({"graph_indicator": "1\n1\n"}, ValueError, r"TINY_A.txt, line 3: edge \[2, 3\] joins a node"),
    "node 0": ({"A": "0,1\n"}, ValueError, r"line 1: edge \[0, 1\] joins a node that does not exist"),
    "graph 0": ({"graph_indicator": "1\n0\n1\n2\n"}, ValueError, "graph_indicator.txt, line 2: .* numbered from 1"),
    "wide indicator": ({"graph_indicator": "1,1\n1,1\n"}, ValueError, "1 number a line, found 2"),
    "labels cut": ({"graph_labels": "1\n"}, ValueError, "graph_labels.txt has 1 lines for 3 graphs"),
    "attributes cut": ({"graph_attributes": "1\n"}, ValueError, "graph_attributes.txt has 1 lines for 3 graphs"),
    "node labels cut": ({"node_labels": "1\n"}, ValueError, "node_labels.txt has 1 lines for 4 nodes"),
    "edge labels cut": ({"edge_labels": "1\n"}, ValueError, "edge_labels.txt has 1 lines for 6 edges"),
    "node attributes NaN": (
        {"node_attributes": "1\nnan\n2\n3\n"}, ValueError, "node_attributes.txt, line 2: NaN"
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD_SETS)
def test_bad_tudataset(tmp_path, case):
    changes, error, sentence = BAD_SETS[case]
    with pytest.raises(error, match=sentence) as raised:
        read_tudataset(tudataset(tmp_path, **changes))
    assert str(tmp_path) in str(raised.value)
    assert "\n" not in str(raised.value)


@LAW
@given(st.data())
def test_damaged_tudataset_files_are_read_or_refused(tmp_path_factory, data):
    kind = data.draw(st.sampled_from(sorted(TINY)))
    text = TINY[kind].encode()
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    damaged = text[:start] + data.draw(st.binary(max_size=3)) + text[stop:]
    folder = tudataset(tmp_path_factory.mktemp("damaged"), **{kind: damaged})
    try:
        graphs, y = read_tudataset(folder)
    except ValueError as error:
        sentence = str(error)
    else:
        sentence = f"{folder}: TINY_"
        assert len(graphs) == len(y)
        assert np.isfinite(graphs.node_attributes).all()
    assert sentence.startswith(f"{folder}: TINY_") or sentence == f"{folder} holds no graphs"


def test_bad_tudataset_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_tudataset(tmp_path / "none.zip")
    foreign = write(tmp_path / "a.zip", "label,text\n")
    with pytest.raises(ValueError, match="not a whole zip file"):
        read_tudataset(foreign)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        archive.writestr("a.txt", "1\n" * 1000)
    with pytest.raises(FileNotFoundError, match="holds 0 files"):
        read_tudataset(tmp_path / "b.zip")
    whole = (tmp_path / "b.zip").read_bytes()
    with pytest.raises(ValueError, match="not a whole zip file"):
        read_tudataset(write(tmp_path / "c.zip", whole[:-30]))
    with zipfile.ZipFile(tmp_path / "d.zip", "w") as archive:
        for name in ("P", "Q"):
            archive.writestr(f"{name}_graph_indicator.txt", "1\n")
    with pytest.raises(FileNotFoundError, match="holds 2 files"):
        read_tudataset(tmp_path / "d.zip")


def test_damaged_bytes_inside_a_zip_are_refused(tmp_path):
    folder = tudataset(tmp_path)
    path = tmp_path / "TINY.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.glob("*.txt")):
            archive.write(file, file.name)
    data = bytearray(path.read_bytes())
    data[data.index(b"1, 2")] ^= 1
    path.write_bytes(data)
    with pytest.raises(ValueError, match="not a whole zip file"):
        read_tudataset(path)


@pytest.mark.parametrize("name", ["MUTAG", "ENZYMES", "BZR"])
def test_real_sets_against_a_line_by_line_reading(data_folder, name):
    path = data_folder / "graphs" / f"{name}.zip"
    graphs, y = read_tudataset(path)
    with zipfile.ZipFile(path) as archive:
        lines = {
            kind: archive.read(f"{name}/{name}_{kind}.txt").decode().splitlines()
            for kind in ("A", "graph_indicator", "graph_labels", "node_labels")
        }
    pairs = {tuple(int(v) - 1 for v in line.split(",")) for line in lines["A"]}
    assert graphs.n_nodes == len(lines["graph_indicator"])
    assert np.array_equal(graphs.edge_index.T, sorted(pairs))
    assert y.tolist() == [int(line) for line in lines["graph_labels"]]
    assert graphs.node_labels.tolist() == [int(line) for line in lines["node_labels"]]
    assert graphs.graph_of_node.tolist() == [int(line) - 1 for line in lines["graph_indicator"]]


@pytest.mark.parametrize("read", [read_fasta, read_fastq, read_ts, read_tudataset, read_objects])
def test_a_file_must_be_named(read):
    with pytest.raises(TypeError, match=r"expected the name of a file \(a str or a path\), got BytesIO"):
        read(io.BytesIO(b">a\nACGT\n"))
