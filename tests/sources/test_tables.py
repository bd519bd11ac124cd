"""Tables and files as people have them: separators, encodings, columns that nobody named, bad rows left out."""

from __future__ import annotations

import codecs
import csv
import datetime
import gzip
import re
import zipfile
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import similia as sm
from similia.sources import open_stream, read_columns, read_objects

EXCEL = '\ufeffid;Sequenz;Wert\r\n1;"AC;GT";5,3\r\n2;"A\nC";6,1\r\n\r\n3;GG;\r\n'  # as Excel exports it in Germany


def write(path, text, encoding="utf-8"):
    data = text.encode(encoding) if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def refused(path, **how):
    with pytest.raises((ValueError, TypeError)) as raised:
        read_objects(path, **how)
    text = str(raised.value)
    assert "\n" not in text
    return text.replace(str(path), path.name)


def listed(path):
    with path.open(newline="") as file:
        return list(csv.reader(file))


# --- separators, encodings, headers -----------------------------------------------------------


def test_a_table_of_excel(tmp_path):
    path = write(tmp_path / "a.csv", EXCEL)
    assert "first line has ';'; use sep=';' (--sep ';')" in refused(path)
    found = read_objects(path, sep=";", text="Sequenz", names="id")
    assert (found.kind, found.objects.tolist(), found.names) == ("strings", ["AC;GT", "A\nC", "GG"], ["1", "2", "3"])
    assert found.lines.tolist() == [2, 3, 6]  # the second row has two lines, and one is blank
    found = read_objects(path, sep=";", label="Wert", decimal=",", on_error="skip", skipped=tmp_path / "left.csv")
    assert (found.objects.tolist(), found.labels.tolist()) == (["AC;GT", "A\nC"], [5.3, 6.1])
    assert listed(tmp_path / "left.csv") == [["line", "reason"], ["6", "the label (column 'Wert') is missing"]]
    assert "a.csv, line 6: the label (column 'Wert') is missing; fill it in" in refused(path, sep=";", label="Wert")


@pytest.mark.parametrize(("sep", "cell"), [("tab", "\t"), ("\\t", "\t"), ("space", " "), ("|", "|"), (";", ";")])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.dat", "a.txt", "a"])
def test_any_separator_whatever_the_ending(tmp_path, name, sep, cell):
    path = write(tmp_path / name, f"text{cell}label\nAC{cell}x\nGT{cell}y\n")
    found = read_objects(path, sep=sep)
    assert (found.objects.tolist(), found.labels.tolist()) == (["AC", "GT"], ["x", "y"])
    assert read_columns(path, "label", sep=sep) == (["x", "y"],)


@pytest.mark.parametrize("sep", ["", ";;", "\n", '"', 3])
def test_what_separates_no_cells(tmp_path, sep):
    assert "sep must be one character (no quotation mark or line break) or one of tab" in refused(
        write(tmp_path / "a.csv", "text\nA\n"), sep=sep
    )


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_other_encodings_are_the_text_they_encode(tmp_path, monkeypatch, name, encoding):
    words = ["für", "naïve", "AC", "éé" * 20, "x"]
    path = write(tmp_path / name, "text,n\n" + "".join(f'"{w}\n",{i}\n' for i, w in enumerate(words)), encoding)
    monkeypatch.setattr("similia.sources.text._BLOCK", 7)  # letters of several bytes are cut anywhere
    stream = open_stream(path, encoding=encoding, chunk=2)
    chunks = list(stream.chunks())
    assert [word for part in chunks for word in part.objects.tolist()] == [f"{word}\n" for word in words]
    for part in chunks[:-1]:
        rest = stream.chunks(part.stop)
        assert [word for more in rest for word in more.objects.tolist()] == [f"{w}\n" for w in words[part.stop :]]


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp850"])
@pytest.mark.parametrize("ending", [".csv", ".csv.gz"])
def test_a_mark_of_utf8_is_no_part_of_the_first_name_in_other_encodings(tmp_path, ending, encoding):
    raw = codecs.BOM_UTF8 + "id,text\né1,Å\nb2,GG\n".encode(encoding)
    path = tmp_path / f"a{ending}"
    path.write_bytes(gzip.compress(raw) if ending.endswith(".gz") else raw)
    stream = open_stream(path, names="id", encoding=encoding, chunk=1)
    first, second = stream.chunks()
    assert (first.names, first.objects.tolist(), second.names) == (["é1"], ["Å"], ["b2"])
    [again] = stream.chunks(first.stop)
    assert (again.names, again.objects.tolist()) == (["b2"], ["GG"])


def test_a_wrong_encoding_is_one_sentence(tmp_path):
    path = write(tmp_path / "a.csv", "text\nAC\nfür\n", "latin-1")
    assert "a.csv, line 3: it is truncated or not a UTF-8 text file; name another encoding" in refused(path)
    assert "not utf-16 text" in refused(path, encoding="utf-16")
    assert "encoding 'klingon' is unknown" in refused(path, encoding="klingon")
    assert "encoding 'hex' is unknown" in refused(path, encoding="hex")  # a codec, but not of text


def test_a_table_without_a_header(tmp_path):
    path = write(tmp_path / "a.csv", "x,AC,1\ny,GT,2\n")
    found = read_objects(path, header=False, text="1", label=0)
    assert (found.objects.tolist(), found.labels.tolist()) == (["AC", "GT"], ["x", "y"])
    assert "so there is no 'text'; give positions" in refused(path, header=False, text="text")
    assert "has 3 columns, none at position 7" in refused(path, header=False, text="7")
    numbers = write(tmp_path / "b.csv", "1.5,2.5\n3,4\n")
    assert "b.csv, line 1: found numbers ('1.5, 2.5'), expected the names of columns" in refused(numbers)
    assert read_objects(numbers, header=False).objects.tolist() == [[1.5, 2.5], [3, 4]]
    assert "d.csv, line 1: found numbers" in refused(write(tmp_path / "d.csv", "1,1e999\n2,3\n"))
    assert "e.csv has no columns" in refused(write(tmp_path / "e.csv", "\n\n"), header=False, values="0")
    counted = write(tmp_path / "c.csv", "0,1\n1.5,2.5\n")  # pandas writes such names
    assert read_objects(counted).objects.tolist() == [[1.5, 2.5]]


def test_two_columns_of_one_name_are_refused_where_they_are_used(tmp_path):
    path = write(tmp_path / "a.csv", "text,x,text,y,y\nA,1,B,2,3\n")
    assert (
        refused(path) == "a.csv has 2 columns named 'text', at positions 0 and 2 (counted from 0); rename all but one"
    )
    assert "2 columns named 'y'" in refused(path, text="x", label="y")
    assert "2 columns named 'y'" in refused(path, values="x,y")
    assert read_objects(path, text="x").objects.tolist() == ["1"]
    assert read_objects(path, text=2).objects.tolist() == ["B"]
    parquet.write_table(pa.table([["A"], ["B"]], names=["text", "text"]), tmp_path / "a.parquet")
    assert "2 columns named 'text'" in refused(tmp_path / "a.parquet")


# --- which column -----------------------------------------------------------------------------


def both(folder, columns):
    """Write columns as CSV and as Parquet."""
    with (folder / "t.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])
    parquet.write_table(pa.table(columns), folder / "t.parquet")
    return folder / "t.csv", folder / "t.parquet"


def test_the_only_column_of_text_is_taken_and_named(tmp_path):
    for path in both(tmp_path, {"id": [1, 2], "sequence": ["AC", "GT"], "species": ["a", "b"], "n": [0.5, 1.0]}):
        found = read_objects(path, label="species")
        assert found.objects.tolist() == ["AC", "GT"]
        assert found.told == "the objects are the strings of column 'sequence', the only one of text"
        assert open_stream(path, label="species").told == found.told
        assert refused(path) == (
            f"{path.name} has no column 'text' and 2 columns of text: 'sequence', 'species'; name the one with the "
            "objects (text= or --text), or the columns of numbers that are the objects (values= or --values)"
        )
    for path in both(tmp_path, {"sequence": ["AC", "GT"], "species": ["a", "b"]}):
        assert refused(path).endswith("'species'; name the one with the objects (text= or --text)")
    for path in both(tmp_path, {"text": ["a", "b"], "sequence": ["AC", "GT"]}):  # the usual name goes first
        assert (read_objects(path).objects.tolist(), read_objects(path).told) == (["a", "b"], None)
    for path in both(tmp_path, {"SMILES": ["C", "CC"]}):
        assert read_objects(path).told.endswith("the only one of text, read as SMILES with --smiles")


def test_rows_of_numbers_are_vectors(tmp_path):
    for path in both(tmp_path, {"x": [1, 2], "y": [0.5, -3e4], "label": ["a", "b"]}):
        found = read_objects(path)
        assert (found.kind, found.objects.tolist(), found.labels.tolist()) == (
            "vectors",
            [[1, 0.5], [2, -3e4]],
            ["a", "b"],
        )
        assert found.told == "the objects are vectors of 2 numbers: 'x', 'y'"
        chosen = read_objects(path, values="y")
        assert (chosen.objects.tolist(), chosen.told) == ([[0.5], [-3e4]], None)


def test_the_index_of_a_data_frame_is_read_only_by_name(tmp_path):
    path, index = tmp_path / "a.parquet", "__index_level_0__"
    table = pa.table({"x": [1.0, 2.0], index: [7, 9]})
    parquet.write_table(table.replace_schema_metadata({"pandas": f'{{"index_columns": ["{index}"]}}'}), path)
    assert read_objects(path).objects.tolist() == [[1], [2]]
    assert series_of(read_objects(path, series=True)) == [[[1]], [[2]]]
    assert read_objects(path, values=["x", index]).objects.tolist() == [[1, 7], [2, 9]]
    for damaged in ("{", "[1]", '{"index_columns": 3}', "[" * 10**5):
        parquet.write_table(table.replace_schema_metadata({"pandas": damaged}), path)
        assert "a.parquet holds metadata of pandas that are not what pandas writes" in refused(path)


def test_a_bad_cell_does_not_make_a_column_of_numbers_one_of_text(tmp_path):
    rows = "".join(f"{i},{i / 2}\n" for i in range(9))
    path = write(tmp_path / "a.csv", f"x,y\n{rows}3,broken\n")
    assert "a.csv, line 11: column 'y' holds 'broken', expected a finite number" in refused(path)
    assert "label=" not in refused(path)
    found = read_objects(path, on_error="skip")
    assert found.objects.tolist() == [[i, i / 2] for i in range(9)]
    kinds = write(tmp_path / "c.csv", "kind,x,y\nwalk,1,2\nrun,3,5\n")
    assert "name the columns of numbers (values= or --values), or this one as the labels" in refused(kinds, series=True)
    comma = write(tmp_path / "b.csv", 'x\ty\n1\t"2,5"\n'.replace('"', ""), "utf-8").rename(tmp_path / "b.tsv")
    assert "if the comma is a decimal mark: decimal=',' or --decimal ,)" in refused(comma, values="x,y")
    assert read_objects(comma, values="x,y", decimal=",").objects.tolist() == [[1, 2.5]]


def test_cells_that_are_missing_at_the_end_of_a_row_may_be_those_of_a_shorter_series(tmp_path):
    path = write(tmp_path / "a.csv", "a,b,c\n1,2,3\n7,8,\n")
    hint = "or read each row as a series and ignore the empty cells at its end (series=True or --series)"
    assert refused(path).endswith(hint)
    assert [len(x) for x in read_objects(path, series=True).objects] == [3, 2]
    for row in ("7,,9", "7,8,inf"):
        assert hint not in refused(write(path, f"a,b,c\n1,2,3\n{row}\n"))


@pytest.mark.parametrize("long", [False, True])
def test_the_list_of_skipped_rows_is_in_order_of_lines(tmp_path, long):
    if long:  # another row at the time of line 2, a value that is no number
        path, how = write(tmp_path / "a.csv", "s,t,x\na,1,2\na,1,3\na,2,broken\n"), {"time": "t", "names": "s"}
        path.write_text(path.read_text() + "a,3\n")  # too few cells
    else:  # without a label, without a number
        path, how = write(tmp_path / "a.csv", "x,label\n1,a\n2,\nbroken,a\n2,b\n"), {"values": "x"}
    found = read_objects(path, **how, on_error="skip", skipped=tmp_path / "left.csv")
    assert [line for line, _ in listed(tmp_path / "left.csv")] == ["line", "3", "4", *["5"] * long]
    assert (found.skips.n, found.skips.first[0]) == (2 + long, 3)


@pytest.mark.parametrize("cell", ["", "NA", "nan", "inf", "?", " "])
def test_missing_numbers_are_told(tmp_path, cell):
    path = write(tmp_path / "a.csv", f"x,y\n1,2\n3,4\n5,{cell}\n")
    assert "a.csv, line 4: the number in column 'y' is missing or infinite" in refused(path, values="x,y")


# --- series -----------------------------------------------------------------------------------


def series_of(found):
    assert found.kind == "series"
    return [np.asarray(one).tolist() for one in found.objects]


def test_a_series_in_each_row(tmp_path):
    path = write(tmp_path / "a.csv", "label,0,1,2\na,1,2,\nb,3,4,5\nb,6\n")
    found = read_objects(path, series=True)
    assert series_of(found) == [[[1], [2]], [[3], [4], [5]], [[6]]]
    assert found.labels.tolist() == ["a", "b", "b"]
    gap = write(tmp_path / "b.csv", "0,1,2\n1,,2\n")
    assert "line 2: the number in column '1' is missing" in refused(gap, series=True)
    text = write(tmp_path / "c.csv", "0,1,2\n1,x,2\n,,\n")
    assert "line 2: column '1' holds 'x'" in refused(text, series=True)
    parquet.write_table(pa.table({"a": [1.0, 2.0], "b": [3.0, None]}), tmp_path / "d.parquet")
    assert series_of(read_objects(tmp_path / "d.parquet", series=True)) == [[[1], [3]], [[2]]]


def test_a_long_table(tmp_path):
    path = write(tmp_path / "a.csv", "who,t,x,y,label\na,10,1.5,1,u\nb,1,3,1,v\na,9,2.5,2,\n" + "a,x,1,1,u\nb,2,,1,v\n")
    how = {"time": "t", "names": "who"}
    assert "a.csv, line 5: the time 'x' is not a number or date" in refused(path, **how)
    found = read_objects(path, **how, on_error="skip", skipped=tmp_path / "left.csv")
    assert series_of(found) == [[[2.5, 2], [1.5, 1]], [[3, 1]]]  # 9 before 10, as numbers are
    assert (found.names, found.labels.tolist()) == (["a", "b"], ["u", "v"])
    assert [row[0] for row in listed(tmp_path / "left.csv")] == ["line", "5", "6"]
    assert "add the column that names the series (names= or --id)" in refused(path, time="t")
    twice = write(tmp_path / "t.csv", "who,t,x\na,1,1\nb,1,2\na,1.0,3\n")
    assert "t.csv, line 4: series 'a' has another row at time '1.0' (line 2)" in refused(twice, **how)
    days = write(tmp_path / "b.csv", "who,t,x\na,2024-01-02,1.5\nb,2024-01-01,3\na,2024-01-01T12:00,2.5\n")
    assert series_of(read_objects(days, **how)) == [[[2.5], [1.5]], [[3]]]
    two = write(tmp_path / "c.csv", "who,t,x,label\na,1,1,u\na,2,1,v\n")
    assert "line 3: series 'a' has the label 'v' here and 'u' before" in refused(two, **how)
    parquet.write_table(pa.table({"who": [7, 8, 7], "t": [2, 1, 1], "x": [0.5, 1.0, 2.0]}), tmp_path / "d.parquet")
    found = read_objects(tmp_path / "d.parquet", **how)
    assert (series_of(found), found.names) == ([[[2], [0.5]], [[1]]], ["7", "8"])


def test_dates_of_a_long_table_are_sorted_whatever_the_year(tmp_path):
    dates = ["0001-01-01", "1600-01-01", "1700-01-01", "1969-12-31T23:59:59.5", "2024-01-01T00:00:00.000000001",
             "2024-01-01T00:00:00.000000002Z", "2300-01-01", "300000-01-01"]  # fmt: skip
    how = {"time": "t", "names": "who"}
    rows = [f"a,{date},{i}\n" for i, date in enumerate(dates)]
    path = write(tmp_path / "a.csv", "who,t,x\n" + "".join(rows[::-1]))
    assert series_of(read_objects(path, **how)) == [[[i] for i in range(len(dates))]]
    for word in ("now", "today", "NaT", "999999999999-01-01"):
        path = write(tmp_path / "b.csv", f"who,t,x\na,{word},1\na,2024-01-01,2\n")
        assert f"line 2: the time '{word}' is not a number or date" in refused(path, **how)


_NOON = datetime.datetime(2024, 2, 20, 12)
_LONG = {"time": "t", "names": "who"}


def test_series_of_a_long_table_that_lose_rows_are_named(tmp_path):
    rows = [f"{who},{t},{t * t}\n" for who in "abcdef" for t in range(4)]
    path = write(tmp_path / "a.csv", "who,t,x\n" + "".join(rows))
    assert read_objects(path, **_LONG, on_error="skip").told is None
    for bad in ("b,2,4", "a,1,1", "c,0,0"):
        rows[rows.index(f"{bad}\n")] = bad[: bad.rindex(",")] + ",nan\n"
    rows[rows.index("a,3,9\n")] = "a,late,9\n"  # not a time
    path = write(tmp_path / "a.csv", "who,t,x\n" + "".join(rows) + "f,0,7\n")  # a repeated time
    with pytest.raises(ValueError, match=r"a\.csv, line 3"):
        read_objects(path, **_LONG)
    found = read_objects(path, **_LONG, on_error="skip")
    assert found.objects.lengths.tolist() == [2, 3, 3, 4, 4, 4]
    shorter = "'a' has 2 of 4 points, 'b' has 3 of 4 points, 'c' has 3 of 4 points"
    assert found.told == f"left-out rows make 3 series shorter, and leave no gaps: {shorter}"
    rows = [row if row[0] not in "de" else f"{row[0]},{row[2]},?\n" for row in rows]
    path = write(tmp_path / "a.csv", "who,t,x\n" + "".join(rows))
    told = read_objects(path, **_LONG, on_error="skip").told
    assert told == f"left-out rows make 5 series shorter, and leave no gaps: {shorter} and 2 more"


def test_uneven_times_of_a_long_table_are_told(tmp_path):
    """The largest step of a series is compared with 1.5 times its median step; rates of series may differ."""
    even = {"b": [0, 10, 20, 30], "c": [0, 2, 4, 7]}  # 3 is not more than 1.5 * 2
    for gap, told in (
        ([0, 1, 2, 3, 26], "1 of 3 series are uneven (the largest step of 'a' is 23 times its median step)"),
        ([0, 1, 3, 7, 15], "1 of 3 series are uneven (the largest step of 'a' is 2.67 times its median step)"),
        ([1, 2, 3, 4], None),
        ([5], None),
    ):
        rows = [(who, t) for who, times in {"a": gap, **even}.items() for t in times][::-1]
        text = write(tmp_path / "a.csv", "who,t,x\n" + "".join(f"{who},{t},1\n" for who, t in rows))
        days = [f"{who},{np.datetime64('2024-02-20') + t},1\n" for who, t in rows]
        dated = write(tmp_path / "b.csv", "who,t,x\n" + "".join(days))
        paths = [text, dated]
        for name, at in {
            "number": lambda t: float(t),
            "stamp": lambda t: _NOON + datetime.timedelta(t),
            "date": lambda t: (_NOON + datetime.timedelta(t)).date(),
            "clock": lambda t: (_NOON + datetime.timedelta(seconds=t)).time(),
            "exact": lambda t: Decimal(t),
            "span": lambda t: datetime.timedelta(t),
        }.items():
            columns = {"who": [who for who, _ in rows], "t": [at(t) for _, t in rows], "x": [1.0] * len(rows)}
            paths.append(tmp_path / f"{name}.parquet")
            parquet.write_table(pa.table(columns), paths[-1])
        for path in paths:
            found = read_objects(path, **_LONG)
            assert (found.told or "").removeprefix("times of ").partition(", but only")[0] == (told or ""), path
            assert sorted(found.objects.lengths) == sorted([len(gap), 4, 4])


def test_blank_cells_of_a_long_table_are_missing(tmp_path):
    rows = "a,1,1, \na,2,2,up\n,3,3,up\n ,4,4,up\nb,1,5, \n"
    found = read_objects(write(tmp_path / "a.csv", "who,t,x,label\n" + rows), **_LONG, on_error="skip")
    assert (found.names, found.labels.tolist(), series_of(found)) == (["a"], ["up"], [[[1], [2]]])
    assert found.skips.n == 3  # two rows without an id, and b, which has no label


def test_a_folder_of_series(tmp_path):
    for label in ("down", "up"):
        (tmp_path / "all" / label).mkdir(parents=True)
        for i in range(2):
            rows = "".join(f"{t},{i}\n" for t in range(2 + i))
            write(tmp_path / "all" / label / f"s{i}.csv", f"x,y\n{rows}")
    found = read_objects(tmp_path / "all")
    assert series_of(found) == [[[0, 0], [1, 0]], [[0, 1], [1, 1], [2, 1]]] * 2
    assert found.labels.tolist() == ["down", "down", "up", "up"]
    assert found.names == ["down/s0", "down/s1", "up/s0", "up/s1"]
    np.save(tmp_path / "all" / "up" / "s2.npy", np.ones(3))
    assert "s2.npy has 1 channel (columns of numbers), expected 2" in refused(tmp_path / "all")
    left = read_objects(tmp_path / "all", on_error="skip")
    assert (len(left.objects), left.skips.n) == (4, 1)
    (tmp_path / "none").mkdir()
    assert "is a folder that holds neither graphs (NAME_A.txt" in refused(tmp_path / "none")
    flat = tmp_path / "all" / "up"
    assert read_objects(flat, values="x", on_error="skip").labels is None


def test_channels_of_a_folder_of_series_are_told_apart_by_the_names_of_columns(tmp_path):
    write(tmp_path / "a.csv", "x,y\n1,2\n3,4\n")
    write(tmp_path / "b.csv", "y,x\n2,1\n4,3\n")
    parquet.write_table(pa.table({"y": [2, 4], "x": [1, 3]}), tmp_path / "c.parquet")
    write(tmp_path / "d.csv", "u,v\n1,2\n3,4\n")  # names of its own: by position, as in files without names
    write(tmp_path / "e.txt", "1 2\n3 4\n")
    assert series_of(read_objects(tmp_path)) == [[[1, 2], [3, 4]]] * 5


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_column_called_label_in_a_folder_of_series_is_a_channel_only_if_it_is_named(tmp_path, ending):
    if ending == "csv":
        write(tmp_path / "a.csv", "x,label\n1,2\n3,4\n")
    else:
        parquet.write_table(pa.table({"x": [1, 3], "label": [2, 4]}), tmp_path / "a.parquet")
    assert f"a.{ending} has a column 'label', but the labels of series in a folder are" in refused(tmp_path)
    assert series_of(read_objects(tmp_path, values="x,label")) == [[[1, 2], [3, 4]]]
    assert series_of(read_objects(tmp_path, values="x")) == [[[1], [3]]]


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        (np.array([1.0, np.nan]), "b.npy, row 1 (counted from 0): it holds NaN or infinity"),
        (np.array(3.0), "b.npy holds float64 of shape (), expected numbers of shape (length,) or"),
        (np.ones((2, 2, 2)), "b.npy holds float64 of shape (2, 2, 2), expected"),
        (np.array(["x"]), "b.npy holds <U1 of shape (1, 1), expected"),
        (np.array([]), "b.npy holds float64 of shape (0, 1), expected"),
        ("1\ninf\n", "b.txt, row 1 (counted from 0): it holds NaN or infinity"),
    ],
)
def test_bad_files_in_a_folder_of_series_are_named_or_left_out(tmp_path, bad, found):
    np.save(tmp_path / "a.npy", np.ones(3))
    write(tmp_path / "b.txt", bad) if isinstance(bad, str) else np.save(tmp_path / "b.npy", bad)
    assert found in refused(tmp_path).replace(f"{tmp_path}/", "")
    left = read_objects(tmp_path, on_error="skip")
    assert (left.names, left.skips.n) == (["a"], 1)


# --- lines, molecules, arrays -----------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_an_object(tmp_path, end):
    path = write(tmp_path / "a.txt", end.join(["ACGT", "", "GG T", "ü, x", "", ""]))
    assert read_objects(path).objects.tolist() == ["ACGT", "GG T", "ü, x"]
    assert read_objects(path).lines.tolist() == [1, 3, 4]
    assert "a.txt has no columns, so label (--label) does not apply" in refused(path, label="x")
    assert "a.txt holds no lines" in refused(write(path, "\n\n"))


def test_smiles_a_line(tmp_path):
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    path = write(tmp_path / "a.smi", "CCO ethanol\nc1ccccc1\tbenzene ring\nC(C bad\nC methane\n")
    assert "a.smi, line 3: found 'C(C', which is not valid SMILES; correct it or leave the row out" in refused(path)
    found = read_objects(path, on_error="skip", skipped=tmp_path / "left.csv")
    assert (found.kind, np.diff(found.objects.node_offsets).tolist()) == ("graphs", [3, 6, 1])
    assert (found.names, found.lines.tolist()) == (["ethanol", "benzene ring", "methane"], [1, 2, 4])
    assert listed(tmp_path / "left.csv")[1:] == [["3", "found 'C(C', which is not valid SMILES"]]
    titled = write(tmp_path / "b.smi", "smiles name\nCCO\nC\n")
    assert np.diff(read_objects(titled).objects.node_offsets).tolist() == [3, 1]
    assert read_objects(titled).rows.tolist() == [0, 1]  # the title is no molecule
    without_names = write(tmp_path / "f.smi", "smiles\nCCO\nC(C\nC\n")
    assert read_objects(without_names, on_error="skip").names == [0, 2]
    assert "d.smi holds a title but no molecules" in refused(write(tmp_path / "d.smi", "smiles name\n"))
    assert read_objects(write(tmp_path / "e.smi", "CCO\nC methane\n")).names == ["", "methane"]
    assert read_objects(write(tmp_path / "e.smi", "CCO\nC\n")).names is None
    table = write(tmp_path / "c.smi", "CCO 1\nC 0\n")
    assert read_objects(table, sep="space", header=False, smiles=0, label=1).labels.tolist() == [1, 0]


@pytest.fixture
def sdf(tmp_path):
    Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    path = tmp_path / "a.sdf"
    with Chem.SDWriter(str(path)) as writer:
        for i, (smiles, activity) in enumerate([("CCO", "high"), ("c1ccccc1", "low"), ("C", ""), ("CC=O", "low")]):
            molecule = Chem.MolFromSmiles(smiles)
            for name, value in (("_Name", f"mol{i}"), ("activity", activity), ("code", f"c{i}")):
                molecule.SetProp(name, value)
            writer.write(molecule)
    return path


def test_molecules_of_sdf(sdf, tmp_path):
    from similia.objects import from_smiles

    found = read_objects(sdf)
    same = from_smiles(["CCO", "c1ccccc1", "C", "CC=O"])
    assert found.objects.node_labels.tolist() == same.node_labels.tolist()
    assert found.objects.indices.tolist() == same.indices.tolist()
    assert (found.names, found.labels) == (["mol0", "mol1", "mol2", "mol3"], None)
    starts = [1, *(i + 2 for i, line in enumerate(sdf.read_text().splitlines()) if line == "$$$$")][:-1]
    assert found.lines.tolist() == starts
    assert f"line {starts[2]}: the label (column 'activity') is missing" in refused(sdf, label="activity")
    kept = read_objects(sdf, label="activity", names="code", on_error="skip")
    assert (kept.labels.tolist(), kept.names) == (["high", "low", "low"], ["c0", "c1", "c3"])
    packed = write(tmp_path / "b.sdf.gz", sdf.read_bytes())
    assert read_objects(packed).names == found.names
    broken = write(tmp_path / "c.sdf", sdf.read_text().replace(" C  ", " Qq ", 1))
    assert "c.sdf, line 1: the molecule that begins here ('mol0') cannot be read" in refused(broken)
    assert read_objects(broken, on_error="skip").names == ["mol1", "mol2", "mol3"]
    assert "holds no molecules" in refused(write(tmp_path / "d.sdf", "\n\n"))
    untitled = write(tmp_path / "e.sdf", re.sub(r"mol\d", "", sdf.read_text()))
    assert (read_objects(untitled).names, read_objects(untitled, on_error="skip").names) == (None, [0, 1, 2, 3])
    assert read_objects(untitled, names="code").names == ["c0", "c1", "c2", "c3"]
    first = write(tmp_path / "f.sdf", sdf.read_text().replace("mol0", ""))
    assert read_objects(first).names == ["", "mol1", "mol2", "mol3"]


def test_labels_of_sdf_that_the_first_molecule_lacks_are_missed(sdf, tmp_path):
    first, rest = sdf.read_text().split("$$$$\n", 1)
    path = write(
        tmp_path / "a.sdf", first.replace("<activity>", "<other>") + "$$$$\n" + rest.replace("<activity>", "<label>")
    )
    assert "line 1: the label (column 'label') is missing" in refused(path)
    assert read_objects(path, on_error="skip").labels.tolist() == ["low", "low"]


@pytest.mark.parametrize("chunk", [1, 2, 10])
def test_sdf_in_chunks(sdf, monkeypatch, chunk):
    monkeypatch.setattr("similia.sources.text._BLOCK", 50)
    stream = open_stream(sdf, label="code", chunk=chunk)
    parts = list(stream.chunks())
    assert [label for part in parts for label in part.labels] == ["c0", "c1", "c2", "c3"]
    for part in parts[:-1]:
        rest = list(stream.chunks(part.stop))
        assert [label for more in rest for label in more.labels] == ["c0", "c1", "c2", "c3"][part.stop :]


def test_archives_of_arrays(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, X=np.arange(6.0).reshape(2, 3), y=["a", "b"])
    found = read_objects(path)
    assert (found.kind, found.objects.tolist(), found.labels.tolist()) == (
        "vectors",
        [[0, 1, 2], [3, 4, 5]],
        ["a", "b"],
    )
    assert series_of(read_objects(path, series=True)) == [[[0], [1], [2]], [[3], [4], [5]]]
    np.savez(path, a=np.ones((2, 3)), b=["u", "v"])
    assert "has no array 'X' for the objects (values= or --values); it has 'a', 'b'" in refused(path)
    assert read_objects(path, label="b").labels.tolist() == ["u", "v"]
    assert read_objects(path, values="b").objects.tolist() == ["u", "v"]
    np.savez(path, X=np.arange(12.0).reshape(2, 2, 3))
    assert "add axes=" in refused(path)
    assert series_of(read_objects(path, axes="channel, time"))[0] == [[0, 3], [1, 4], [2, 5]]
    np.save(tmp_path / "cube.npy", np.ones((2, 2, 3)))
    assert "cube.npy holds an array of shape (2, 2, 3); add axes=" in refused(tmp_path / "cube.npy", series=True)
    np.savez(path, ids=[0, 1], X=np.array([[1], [2, 3]], dtype=object))
    said = refused(path)
    assert "is not an archive of plain arrays that numpy.savez wrote ('X': it holds Python objects, which could" in said
    assert said.endswith("; save numbers or text, series of several lengths padded with NaN at their ends")
    np.savez(path, X=np.ones((2, 3)), y=[1, 2, 3])
    assert "holds labels ('y') of shape (3,) for objects of shape (2, 3)" in refused(path)
    assert "is not an archive" in refused(write(path, b"PK\x03\x04 and so on"))


def test_bad_rows_of_arrays_are_left_out_and_listed(tmp_path):
    path, how = tmp_path / "a.npz", {"on_error": "skip", "skipped": tmp_path / "left.csv"}
    nan, inf = np.nan, np.inf
    X = np.array([[1, 2, nan], [nan, 4, 5], [6, inf, 7], [nan, nan, nan], [1, 2, 3], [4, 5, 6]])
    np.savez(path, X=X, y=[0, 1, 2, 3, nan, 5])
    assert "a.npz, row 0 (counted from 0): it holds NaN or infinity" in refused(path)
    found = read_objects(path, **how)
    assert (found.objects.tolist(), found.labels.tolist(), found.names) == ([[4, 5, 6]], [5], [5])
    assert [row for row, _ in listed(tmp_path / "left.csv")] == ["line", "0", "1", "2", "3", "4"]
    found = read_objects(path, **how, series=True)
    assert (series_of(found), found.names) == ([[[1], [2]], [[4], [5], [6]]], [0, 5])
    np.save(tmp_path / "a.npy", X)
    found = read_objects(tmp_path / "a.npy", **how, series=True)
    assert (series_of(found), found.names) == ([[[1], [2]], [[1], [2], [3]], [[4], [5], [6]]], [0, 4, 5])
    assert [row for row, _ in listed(tmp_path / "left.csv")] == ["line", "1", "2", "3"]
    assert "a.npy, row 3 (counted from 0): it is all NaN" in refused(tmp_path / "a.npy", series=True)
    np.save(tmp_path / "a.npy", ["AC", "GT"])
    assert "a.npy holds <U2 of shape (2,), expected numbers" in refused(tmp_path / "a.npy", **how, series=True)
    np.savez(path, X=np.stack([X, X[:, ::-1]], axis=1), y=np.arange(6))
    assert read_objects(path, **how, axes="channel, time").names == [4, 5]
    assert "add axes=" in refused(path, **how)
    np.savez(path, X=["AC", "GT"], y=[1, nan])
    assert read_objects(path, **how).names == [0]
    np.savez(path, X=X[:4])
    assert "a.npz holds no valid row" in refused(path, **how)


@pytest.mark.parametrize("damage", ["data", "method", "encryption", "member"])
def test_damaged_archives_of_arrays_are_refused(tmp_path, damage):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.random.default_rng(0).normal(size=(20, 5)))
    raw = bytearray(path.read_bytes())
    directory = raw.index(b"PK\x01\x02")
    if damage == "data":
        begin = 30 + int.from_bytes(raw[26:28], "little") + int.from_bytes(raw[28:30], "little")
        raw[begin] = 0xFF  # no such type of block
    elif damage == "method":
        raw[8] = raw[directory + 10] = 99
    elif damage == "encryption":
        raw[6] = raw[directory + 8] = 1
    path.write_bytes(raw)
    if damage == "member":
        with zipfile.ZipFile(path, "a") as archive:
            archive.writestr("read.me", "text")
    assert "is not an archive of plain arrays" in refused(path)


# --- what is left out -------------------------------------------------------------------------

BAD = 'text,label\nA,x\nB\n"C\nC",y\nD,z,1\n\nE,x\nF\n'


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("chunk", [1, 2, 10])
@pytest.mark.parametrize("block", [3, 2**20])
def test_bad_rows_are_left_out_listed_once_and_keep_their_numbers(tmp_path, monkeypatch, name, chunk, block):
    monkeypatch.setattr("similia.sources.text._BLOCK", block)
    path, left = write(tmp_path / name, BAD), tmp_path / "left.csv"
    stream = open_stream(path, on_error="skip", skipped=left, chunk=chunk)
    for _ in range(2):  # a file is read several times
        parts = list(stream.chunks())
        assert [text for part in parts for text in part.objects.tolist()] == ["A", "C\nC", "E"]
        assert [row for part in parts for row in part.names] == [0, 2, 4]
        assert [line for part in parts for line in part.lines.tolist()] == [2, 4, 8]
        assert [row[0] for row in listed(left)] == ["line", "3", "6", "9"]
        assert stream.skips.n == 3
    for part in parts:
        rest = list(stream.chunks(part.stop))
        assert [row for more in rest for row in more.names] == [0, 2, 4][part.stop :]
        assert [row[0] for row in listed(left)] == ["line", "3", "6", "9"]
        assert stream.skips.n == 3
    with pytest.raises(ValueError, match="line 3: found 1 cell, expected 2 as in the header; is a cell missing"):
        list(open_stream(path).chunks())


def test_rows_of_parquet_are_left_out_by_number(tmp_path):
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"text": ["A", None, "C", "D", None]}), path, row_group_size=2)
    stream = open_stream(path, on_error="skip", skipped=tmp_path / "left.csv", chunk=1)
    parts = list(stream.chunks())
    assert [(part.objects.tolist(), part.names) for part in parts] == [(["A"], [0]), (["C"], [2]), (["D"], [3])]
    assert [row[0] for row in listed(tmp_path / "left.csv")] == ["line", "1", "4"]
    rest = list(stream.chunks(2))
    assert [part.names for part in rest] == [[3]]
    assert [row[0] for row in listed(tmp_path / "left.csv")] == ["line", "1", "4"]


def test_rows_of_parquet_without_a_label_are_listed_by_number(tmp_path):
    table = pa.table({"text": ["A", None, "C", "D"], "label": ["x", "x", None, "y"], "id": list("abcd")})
    parquet.write_table(table, tmp_path / "a.parquet")
    for names in (None, "id"):
        found = read_objects(tmp_path / "a.parquet", names=names, on_error="skip", skipped=tmp_path / "left.csv")
        assert (found.objects.tolist(), found.rows.tolist()) == (["A", "D"], [0, 3])
        assert [row[0] for row in listed(tmp_path / "left.csv")] == ["line", "1", "2"]


def test_another_file_is_not_overwritten_by_the_list(tmp_path):
    other = write(tmp_path / "mine.csv", "a,b\n1,2\n")
    assert "mine.csv is not a list of skipped rows" in refused(
        write(tmp_path / "a.csv", BAD), on_error="skip", skipped=other
    )
    assert other.read_text() == "a,b\n1,2\n"


def test_nothing_good_is_an_error(tmp_path):
    path = write(tmp_path / "a.csv", "x,y\na,\nb,NA\n")
    said = refused(path, values="y", on_error="skip")
    assert said.startswith(
        "a.csv holds no valid row; the first bad one is in line 2: the number in column 'y' is missing"
    )


@pytest.mark.parametrize("more", ["", "?,4\n"])  # a cell that is no number makes all cells be looked at
def test_a_number_with_an_underscore_is_none_whatever_the_other_rows(tmp_path, more):
    path = write(tmp_path / "a.csv", f"x,y\n1_000,2\n3,4\n{more}")
    assert "line 2: column 'x' holds '1_000', expected a finite number" in refused(path)
    assert read_objects(path, on_error="skip").objects.tolist() == [[3, 4]]
    (tmp_path / "series").mkdir()
    write(tmp_path / "series" / "a.txt", "1_000 2\n3 4\n")
    assert "is not a table of numbers separated by spaces" in refused(tmp_path / "series")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_label_of_blanks_is_missing(tmp_path, ending):
    path, labels = tmp_path / f"a.{ending}", ["up", " ", "down"]
    if ending == "csv":
        write(path, "text,label\n" + "".join(f"AC,{label}\n" for label in labels))
    else:
        parquet.write_table(pa.table({"text": ["AC"] * 3, "label": labels}), path)
    assert f"{'line 3' if ending == 'csv' else 'row 1 (counted from 0)'}: the label (column 'label') is" in refused(
        path
    )
    found = read_objects(path, on_error="skip")
    assert (found.labels.tolist(), found.rows.tolist()) == (["up", "down"], [0, 2])


def test_among_numbers_na_is_a_missing_label_and_among_words_a_word(tmp_path):
    numbers = write(tmp_path / "a.csv", "text,label\nA,1.5\nB,NA\nC,2.5\n")
    assert "line 3: the label (column 'label') is missing" in refused(numbers)
    words = write(tmp_path / "b.csv", "text,label\nA,EU\nB,NA\nC,EU\n")  # North America
    assert read_objects(words).labels.tolist() == ["EU", "NA", "EU"]


@pytest.mark.parametrize(("first", "line"), [("2,5", 3), ("2.5", 2)])  # beside a comma, or in a column of points
@pytest.mark.parametrize(
    ("rows", "how"),
    [
        ("x;y\n{};1\n{};2\n", {}),
        ("text;label\nAC;{}\nGT;{}\n", {}),
        ("s;t;x\na;1;{}\na;2;{}\n", {"names": "s", "time": "t", "values": "x"}),
        ("s;t;x\na;{};1\na;{};2\n", {"names": "s", "time": "t", "values": "x"}),
    ],
)
def test_with_a_decimal_comma_a_point_is_no_decimal_mark(tmp_path, rows, how, first, line):
    path, how = write(tmp_path / "a.csv", rows.format(first, "1.234")), {"sep": ";", "decimal": ","} | how
    said = refused(path, **how)
    assert f"line {line}: " in said
    assert repr("1.234" if line == 3 else first) in said
    assert "write 1,5 for 1.5 and 1234 for 1.234" in said
    if line == 3:
        found = read_objects(path, on_error="skip", **how)
        assert (len(found.objects), found.skips.n, found.skips.first[0]) == (1, 1, 3)


# --- options that contradict each other, or the file --------------------------------------------


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"text": "a", "smiles": "b"}, "text and smiles exclude each other"),
        ({"text": "a", "values": "b"}, "text and values exclude each other"),
        ({"text": "a", "series": True}, "series is for numbers, and text names a column of text"),
        ({"decimal": ";"}, "decimal must be '.' or ','"),
        ({"on_error": "ignore"}, "on_error must be 'stop' or 'skip'"),
        ({"values": "text,z"}, "has no column 'z'"),
        ({"values": "text"}, "column 'text' holds 'A'"),
        ({"names": "z"}, "has no column 'z'"),
        ({"label": "z"}, "has no column 'z'"),
    ],
)
def test_options_that_cannot_be_met(tmp_path, how, sentence):
    assert sentence in refused(write(tmp_path / "a.csv", "text,y\nA,1\n"), **how)


@pytest.mark.parametrize("name", ["a.npz", "a.ts"])
@pytest.mark.parametrize("option", ["text", "names", "time"])
def test_columns_of_archives_and_series(tmp_path, name, option):
    np.savez(tmp_path / "a.npz", X=np.ones((2, 2)))
    write(tmp_path / "a.ts", "@classLabel false\n@data\n1,2\n")
    assert f"{name} has no columns, so {option}" in refused(tmp_path / name, **{option: "x"})


@pytest.mark.parametrize("option", ["smiles", "values", "names"])
@pytest.mark.parametrize("name", ["a.txt", "a.fasta", "a.ts", "a.smi", "a.npy"])
def test_columns_of_what_has_none(tmp_path, name, option):
    path = write(tmp_path / name, ">a\nAC\n")
    if name == "a.npy":
        np.save(path, np.ones((2, 2)))
    if (name, option) != ("a.smi", "names"):
        assert (
            "no columns" in refused(path, **{option: "x"})
            or "is not a CSV" in refused(path, **{option: "x"})
            or ("holds the names of its records" in refused(path, **{option: "x"}))
        )


@pytest.mark.parametrize(
    ("cells", "labels", "kind"),
    [
        (["1", "0", "-3"], [1, 0, -3], "i"),
        (["5.30", "6.1", "1e-2"], [5.3, 6.1, 0.01], "f"),
        (["1.0", "2", "2"], [1.0, 2.0, 2.0], "f"),
        (["007", "010", "7"], ["007", "010", "7"], "U"),
        (["1_000", "2", "3"], ["1_000", "2", "3"], "U"),
        (["1", "x", "3"], ["1", "x", "3"], "U"),
        (["inf", "1", "2"], ["inf", "1", "2"], "U"),
        (["9223372036854775807", "9223372036854775806", "2"], [2**63 - 1, 2**63 - 2, 2], "i"),
        (
            ["12345678901234567890", "12345678901234567891", "2"],
            ["12345678901234567890", "12345678901234567891", "2"],
            "U",
        ),
    ],
)
def test_labels_that_are_all_numbers_are_numbers_in_files_of_text_too(tmp_path, cells, labels, kind):
    rows = list(zip(["AC", "GT", "CC"], cells, strict=True))
    tables = [
        write(tmp_path / "a.csv", "text,label\n" + "".join(f"{word},{cell}\n" for word, cell in rows)),
        write(tmp_path / "a.fasta", "".join(f">s{i} label={cell}\n{word}\n" for i, (word, cell) in enumerate(rows))),
    ]
    parquet.write_table(pa.table({"text": [word for word, _ in rows], "label": cells}), tmp_path / "a.parquet")
    for table in [*tables, tmp_path / "a.parquet"]:
        found = read_objects(table).labels
        assert (found.tolist(), found.dtype.kind) == (labels, kind)


@pytest.mark.parametrize("other", ["gene-id=7", "gene.id=7", "gene_id=7", "geneid=7"])
def test_the_label_of_a_sequence_is_no_field_whose_name_only_ends_so(tmp_path, other):
    path = write(tmp_path / "a.fasta", f">a {other} id=1\nAC\n>b [id=2 {other}\nGT\n")
    assert read_objects(path, label="id").labels.tolist() == [1, 2]
    assert "there is no id=... in the header" in refused(write(path, f">a {other}\nAC\n"), label="id")


@pytest.mark.parametrize(
    ("cells", "labels", "kind"),
    [
        (["1.00", None, "2.00"], [1, 2], "i"),
        (["1.50", None, "2.00"], [1.5, 2.0], "f"),
        (["9223372036854775808", None, "1"], ["9223372036854775808", "1"], "U"),
    ],
)
def test_labels_of_decimals_are_numbers(tmp_path, cells, labels, kind):
    y = [None if cell is None else Decimal(cell) for cell in cells]
    parquet.write_table(pa.table({"text": ["AC", "GT", "CC"], "label": y}), tmp_path / "a.parquet")
    found = read_objects(tmp_path / "a.parquet", on_error="skip").labels
    assert (found.tolist(), found.dtype.kind) == (labels, kind)


@pytest.mark.parametrize("long", [False, True])
def test_labels_of_parquet_that_fit_only_into_uint64_are_exact(tmp_path, long):
    labels = [2**63 + 1, 2**63 + 2, 5]
    columns = {"text": ["AC", "GT", "CC"], "t": [0, 0, 0], "x": [1.0, 2.0, 3.0], "label": pa.array(labels, pa.uint64())}
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    how = {"names": "text", "time": "t", "values": "x"} if long else {"text": "text"}
    found = read_objects(tmp_path / "a.parquet", **how)
    by_text = dict(zip(found.names or columns["text"], found.labels.tolist(), strict=True))
    assert by_text == dict(zip(columns["text"], labels, strict=True))


def test_a_recipe_takes_numbers_of_a_table_as_numbers(tmp_path):
    values = np.round(np.linspace(4, 9, 60), 2)
    words = ["ACGT"[i % 4] * (2 + i % 7) for i in range(60)]
    table = write(
        tmp_path / "a.csv", "text,label\n" + "".join(f"{w},{y}\n" for w, y in zip(words, values, strict=True))
    )
    found = read_objects(table)
    np.testing.assert_array_equal(found.labels, values)
    with pytest.raises(ValueError, match="class"):
        sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 4, 64, random_state=0).fit(found.objects, found.labels)
