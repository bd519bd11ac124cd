"""Files in .ts format: what read_ts gives back, and which line it names when it refuses one."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from similia.objects import SeriesBatch
from similia.sources import read_objects, read_ts

HEADER = {
    "problemName": "Two",
    "timeStamps": "false",
    "missing": "false",
    "univariate": "false",
    "dimensions": "2",
    "equalLength": "false",
    "classLabel": "true up down",
}
LINES = ["1,2,3:4,5,6:up", "2,1:0,0:down"]


def text(lines=LINES, /, leave_out=(), **header):
    """The text of a file: HEADER with changes, then the lines."""
    names = [f"@{name} {value}" for name, value in (HEADER | header).items() if name not in leave_out]
    return "\n".join([*names, "@data", *lines]) + "\n"


def read(tmp_path, content, name="two.ts"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_ts(path)


def first_data_line(content):
    return content.splitlines().index("@data") + 2


# what is read


def test_series_and_labels(tmp_path):
    series, y = read(tmp_path, text())
    assert isinstance(series, SeriesBatch)
    assert series.values.dtype == np.float64
    assert [x.tolist() for x in series] == [[[1, 4], [2, 5], [3, 6]], [[2, 0], [1, 0]]]
    assert y.dtype.kind == "U"
    assert y.tolist() == ["up", "down"]


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_what_is_written_is_read(tmp_path_factory, data):
    p = data.draw(st.integers(1, 3))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    arrays = [
        np.array(data.draw(st.lists(st.lists(finite, min_size=n, max_size=n), min_size=p, max_size=p))).T
        for n in data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    ]
    kind = data.draw(st.sampled_from(["class", "target", "none"]))
    labels = {
        "class": data.draw(st.lists(st.sampled_from(["up", "down"]), min_size=len(arrays), max_size=len(arrays))),
        "target": [repr(x) for x in data.draw(st.lists(finite, min_size=len(arrays), max_size=len(arrays)))],
        "none": [None] * len(arrays),
    }[kind]
    lines = []
    for array, label in zip(arrays, labels, strict=True):
        parts = [",".join(map(repr, channel.tolist())) for channel in array.T]
        lines.append(":".join(parts if label is None else [*parts, label]))
    head = {"class": {}, "target": {"targetLabel": "true"}, "none": {"classLabel": "false"}}[kind]
    content = text(lines, leave_out=["classLabel"] * (kind == "target"), dimensions=p, **head)
    series, y = read(tmp_path_factory.mktemp("ts"), content)
    for one, array in zip(series, arrays, strict=True):
        np.testing.assert_array_equal(one, array)
    if kind == "none":
        assert y is None
    elif kind == "target":
        assert y.dtype == np.float64
        assert y.tolist() == [float(label) for label in labels]
    else:
        assert y.tolist() == labels


def test_header_in_any_case_comments_blank_lines_spaces_and_windows_lines(tmp_path):
    content = text(["# a comment", "", *LINES]).replace("@classLabel", "@CLASSLABEL").replace("@data", "@Data")
    content = "# é comment\n\n  # indented\n" + content.replace(",", " , ").replace("\n", "\r\n")
    series, y = read(tmp_path, b"\xef\xbb\xbf" + content.encode())
    assert series.lengths.tolist() == [3, 2]
    assert y.tolist() == ["up", "down"]


def test_gzip(tmp_path):
    series, y = read(tmp_path, gzip.compress(text().encode()), "two.ts.gz")
    assert (series.lengths.tolist(), y.tolist()) == ([3, 2], ["up", "down"])


def test_one_dimension_without_a_word_of_dimensions(tmp_path):
    series, y = read(tmp_path, text(["1,2:up", "3:down"], leave_out=["dimensions"], univariate="true"))
    assert (series.n_dims, series.values.ravel().tolist(), y.tolist()) == (1, [1, 2, 3], ["up", "down"])


def test_labels_of_other_scripts(tmp_path):
    _, y = read(tmp_path, text(["1:2:größer", "1:2:小"], classLabel="true größer 小"))
    assert y.tolist() == ["größer", "小"]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_other_encodings(tmp_path, encoding):
    path = tmp_path / "a.ts"
    path.write_bytes(text(["1:2:größer"], classLabel="true größer").encode(encoding))
    assert read_ts(path, encoding)[1].tolist() == ["größer"]
    assert read_objects(path, encoding=encoding).labels.tolist() == ["größer"]
    with pytest.raises(ValueError, match="name another encoding"):
        read_ts(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match="is not text: it is truncated or not utf-16 text"):
        read_ts(path, "utf-16")


def test_labels_keep_their_case(tmp_path):
    _, y = read(tmp_path, text(["1:2:Up", "1:2:up"], classLabel="true Up up"))
    assert y.tolist() == ["Up", "up"]


# what is refused, and where

BAD_LINES = {
    "missing value": ("1,?:1,2:up", "[?]"),
    "NaN": ("1,2:1,NaN:up", "NaN"),
    "infinity": ("1,inf:1,2:up", "inf"),
    "a word": ("1,x:1,2:up", "x"),
    "a number with an underscore": ("1,1_0:1,2:up", "value 1 of dimension 0 is '1_0'"),
    "an empty value": ("1,,2:1,2,3:up", "value 1"),
    "an empty dimension": (":1,2:up", "dimension 0"),
    "time stamps": ("(0,1),(1,2):(0,1),(1,3):up", r"\(0"),
    "dimensions of different length": ("1,2:1,2,3:up", "dimension 1 has 3 values"),
    "too few dimensions": ("1,2:up", "1 dimension.*expected 2"),
    "too many dimensions": ("1:2:3:up", "3 dimension.*expected 2"),
    "no label": ("1:2:", "label"),
    "an unknown label": ("1:2:sideways", "sideways.*up"),
    "a cut line": ("1,2", "0 dimension.*expected 2|label"),
}


@pytest.mark.parametrize("case", BAD_LINES)
def test_a_bad_line_is_named(tmp_path, case):
    line, sentence = BAD_LINES[case]
    content = text([*LINES, "", "# one more", line])
    with pytest.raises(ValueError, match=sentence) as caught:
        read(tmp_path, content)
    assert f"two.ts, line {first_data_line(content) + 4}:" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


BAD_FILES = {
    "empty": ("", "two.ts.*@data"),
    "no @data": (text().split("@data")[0], "two.ts.*@data"),
    "no series": (text([]), "no series"),
    "no header": ("1,2,3:up\n", "line 1:.*@data"),
    "series before @data": ("@classLabel false\n1,2,3\n@data\n1,2\n", "line 2:.*@data"),
    "time stamps": (text(timeStamps="true"), "line 2:.*time stamps"),
    "unclear flag": (text(equalLength="maybe"), "line 6:.*maybe"),
    "unclear number": (text(dimensions="two"), "line 5:.*two"),
    "no dimensions": (text(dimensions="0"), "0"),
    "nothing of labels": (text(leave_out=["classLabel"]), "classLabel"),
    "unequal length": (text(equalLength="true"), "line 10:.*length 2, expected 3"),
    "another length than declared": (
        text(LINES[:1], equalLength="true", seriesLength="4"),
        "line 10:.*length 3, expected 4",
    ),
    "univariate but two": (text(univariate="true", leave_out=["dimensions"]), "line 8:.*2 dimension.*expected 1"),
    "a label where none is declared": (text(classLabel="false"), "line 9:.*3 dimension.*expected 2"),
    "a target of letters": (text(leave_out=["classLabel"], targetLabel="true"), "line 9:.*up"),
    "not UTF-8": (text().encode("utf-16"), "UTF-8"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_file_is_refused(tmp_path, case):
    content, sentence = BAD_FILES[case]
    with pytest.raises(ValueError, match=sentence) as caught:
        read(tmp_path, content)
    assert "two.ts" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_a_gzip_file_that_is_cut(tmp_path):
    data = gzip.compress(text(LINES * 1000).encode())
    with pytest.raises(ValueError, match="truncated"):
        read(tmp_path, data[: len(data) // 2], "two.ts.gz")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_ts(tmp_path / "none.ts")


def test_a_number_of_many_digits_does_not_make_a_long_sentence(tmp_path):
    path = tmp_path / "x.ts"
    path.write_text(f"@problemName x\n@equalLength true\n@seriesLength 1{'0' * 400}\n@classLabel false\n@data\n1,2,3\n")
    with pytest.raises(ValueError, match=r"line 6: found length 3, expected 1000") as caught:
        read_ts(path)
    assert len(str(caught.value)) < 500
