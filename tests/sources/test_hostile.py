"""Hostile input: archives that are bombs or lie, objects that are none, and a short run of the fuzzer.

The long run, counted, is ``python tests/faults/run.py fuzz``.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import similia as sm
from samples.hostile import peak_of

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

TINY = {"A": b"1, 2\n2, 1\n", "graph_indicator": b"1\n1\n2\n", "graph_labels": b"1\n-1\n", "node_labels": b"1\n2\n1\n"}


def tu_zip(path, files, prefix="NAME/NAME_", method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(f"{prefix}{name}.txt", data)
    return path


# --- archives of graphs -----------------------------------------------------------------------


def test_a_whole_zip_is_read(tmp_path):
    graphs, y = sm.objects.read_tudataset(tu_zip(tmp_path / "n.zip", TINY))
    assert (len(graphs), y.tolist(), graphs.n_nodes) == (2, [1, -1], 3)


def test_a_bomb_is_refused_by_its_size_without_being_unpacked(tmp_path):
    bomb = TINY | {"node_attributes": b"0\n" * 2**25}
    path = tu_zip(tmp_path / "bomb.zip", bomb, method=zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 2**18
    with sm.config(max_memory="8MiB"):
        said, peak = peak_of(lambda: sm.objects.read_tudataset(path))
    assert "more than 8388608 bytes" in said
    assert "config(max_memory=...)" in said
    assert peak < 2**22


def test_a_bomb_that_claims_to_be_small_is_not_unpacked_either(tmp_path):
    bomb = TINY | {"node_attributes": b"0\n" * 2**25}
    path = tu_zip(tmp_path / "liar.zip", bomb, method=zipfile.ZIP_DEFLATED)
    data = path.read_bytes()
    claimed = struct.pack("<I", 2**26)
    assert data.count(claimed) == 2  # in the header of the member and in the list at the end
    path.write_bytes(data.replace(claimed, struct.pack("<I", 6)))
    said, peak = peak_of(lambda: sm.objects.read_tudataset(path))
    assert "liar.zip" in said
    assert peak < 2**22


def test_the_limit_counts_all_files_of_a_folder_together(tmp_path):
    for name, data in TINY.items():
        (tmp_path / f"NAME_{name}.txt").write_bytes(data)
    with sm.config(max_memory=sum(map(len, TINY.values()))):
        assert len(sm.objects.read_tudataset(tmp_path)[0]) == 2
    with sm.config(max_memory=sum(map(len, TINY.values())) - 1), pytest.raises(ValueError, match="more than 26 bytes"):
        sm.objects.read_tudataset(tmp_path)


@pytest.mark.parametrize("prefix", ["../NAME_", "/tmp/NAME_", "a/../../NAME_", "..\\NAME_"])
def test_names_that_climb_out_are_refused_and_nothing_is_written(tmp_path, prefix):
    (tmp_path / "in").mkdir()
    path = tu_zip(tmp_path / "in" / "climb.zip", TINY, prefix=prefix)
    with pytest.raises(ValueError, match=r"climb\.zip holds .*, which leads outside the archive"):
        sm.objects.read_tudataset(path)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")) == ["in", "in/climb.zip"]


def test_links_in_a_zip_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("1\n1\n")
    path = tmp_path / "link.zip"
    with zipfile.ZipFile(path, "w") as archive:
        link = zipfile.ZipInfo("NAME_graph_indicator.txt")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, str(secret))
        archive.writestr("NAME_A.txt", "1, 2\n")
    with pytest.raises(ValueError, match="leads outside the archive"):
        sm.objects.read_tudataset(path)


def test_pipes_and_devices_in_a_folder_are_left_alone(tmp_path):
    for name, data in TINY.items():
        (tmp_path / f"NAME_{name}.txt").write_bytes(data)
    os.mkfifo(tmp_path / "NAME_edge_labels.txt")
    (tmp_path / "NAME_node_attributes.txt").symlink_to("/dev/zero")
    graphs, _ = sm.objects.read_tudataset(tmp_path)
    assert graphs.node_attributes is None
    assert graphs.edge_labels is None


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("graph_indicator", b"1\n1\n9\n", r"graph_labels\.txt has 2 lines for 9 graphs"),
        ("graph_indicator", b"1\n1\n0\n", r"graph_indicator\.txt, line 3: graphs are numbered from 1, found 0"),
        (
            "graph_indicator",
            b"1\n1\n9223372036854775808\n",
            r"graph_indicator\.txt, line 3: found '9223372036854775808', expected an integer of 64 bits",
        ),
        ("node_labels", b"1\n2\n", r"node_labels\.txt has 2 lines for 3 nodes"),
        ("A", b"1, 2\n0, 1\n", r"A\.txt, line 2: edge \[0, 1\] joins a node that does not exist"),
        ("A", b"1, 2\n2, -1\n", r"A\.txt, line 2: edge \[2, -1\] joins a node that does not exist"),
        (
            "A",
            b"1, 9223372036854775808\n",
            r"A\.txt, line 1: found '9223372036854775808', expected an integer of 64 bits",
        ),
        (
            "A",
            b"1, 9223372036854775807\n",
            r"A\.txt, line 1: edge \[1, 9223372036854775807\] joins a node that does not exist",
        ),
        ("A", b"1, 3\n", r"joins graph 1 to graph 2"),
    ],
)
def test_counts_that_lie(tmp_path, name, data, words):
    with pytest.raises(ValueError, match=words):
        sm.objects.read_tudataset(tu_zip(tmp_path / "n.zip", TINY | {name: data}))


def test_a_graph_number_alone_takes_no_memory(tmp_path):
    files = {"A": b"1, 2\n", "graph_indicator": b"1\n1\n1000000000000\n"}
    path = tu_zip(tmp_path / "n.zip", files)
    said, peak = peak_of(lambda: sm.objects.read_tudataset(path))
    assert "line 3: graph number 1000000000000, but there are 3 nodes" in said
    assert peak < 2**20


def test_two_files_of_one_role(tmp_path):
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in TINY.items():
            archive.writestr(f"a/NAME_{name}.txt", data)
        archive.writestr("b/NAME_A.txt", b"2, 3\n")
    with pytest.raises(ValueError, match=r"two files named 'NAME_A.txt'"):
        sm.objects.read_tudataset(path)


# --- graphs, series ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (([[0], [2**63]], 2), r"graph 0,? .*arc|graph 0 has edge_index"),
        ((np.array([[0], [2**63]], dtype=np.uint64), 2), "graph 0, arc 0 joins nodes"),
        (([[0], [-1]], 2), r"graph 0, arc 0 joins nodes \[0, -1\]"),
        (([[0], [1]], 2**62), r"graph 0 has 4611686018427387904 nodes and 1 arcs"),
        (([[0], [1]], 10**30), r"graph 0 has 1000000000000000000000000000000 nodes"),
        ({"edge_index": [[0], [1]], "n_nodes": 2, "edge_weights": [10**400]}, "graph 0 has edge weights"),
        (sp.coo_array((np.ones(1), ([0], [2**40])), shape=(2**41, 2**41)), r"graph 0 has 2199023255552 nodes"),
    ],
)
def test_graphs_with_indices_that_no_node_has(graph, words):
    said, peak = peak_of(lambda: sm.objects.as_graphs([graph]))
    assert re.search(words, said), said
    assert peak < 2**24


def test_many_graphs_that_each_claim_a_little_are_counted_together():
    graphs = [([[0], [1]], 10**6)] * 20
    assert len(sm.objects.as_graphs(graphs)) == 20
    with sm.config(max_memory="64MB"), pytest.raises(ValueError, match="graph 8 has 1000000 nodes and 1 arcs"):
        sm.objects.as_graphs(graphs)
    labelled = [([[0], [1]], 10**6, {"node_labels": np.zeros(10**6, np.int64)})] * 9
    with sm.config(max_memory="64MB"):
        assert len(sm.objects.as_graphs(labelled)) == 9  # nodes that rows bear out are no claim


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_series_and_sets_with_numbers_that_are_none(value):
    with pytest.raises(ValueError, match="series 1, time point 1, channel 0 is"):
        sm.objects.as_series([[1.0], [1.0, value]])
    with pytest.raises(ValueError, match="set 1, point 0, coordinate 1 is"):
        sm.objects.as_sets([[[1.0, 2.0]], [[1.0, value]]])


@pytest.mark.parametrize("distance", [sm.distances.DTW(), sm.distances.ERP(), sm.distances.MSM(), sm.distances.TWE()])
def test_series_of_the_largest_numbers_are_refused_where_they_are_compared(distance):
    series = [[1e308, -1e308], [0.0, 1.0], [-1e308, 1e308, 1e308]]
    assert sm.objects.as_series(series).values.max() == 1e308
    with pytest.raises(ValueError, match=r"X\[\d\] and"):
        sm.D2KE(distance, objects=series[:2], gamma=1.0).fit(series).transform(series)


def test_ranges_without_end_are_refused():
    for read in (sm.objects.as_strings, sm.objects.as_graphs, sm.objects.as_series, sm.objects.as_sets):
        with pytest.raises(TypeError, match="is range"):
            read(range(2**62))
    with pytest.raises(ValueError, match="more numbers than fit"):
        sm.objects.as_series([[1.0], range(2**62)])
    np.testing.assert_array_equal(sm.objects.as_series([range(3)])[0].ravel(), [0, 1, 2])


# --- text and tables: public behaviour --------------------------------------------------------


@pytest.mark.parametrize("data", [b"\xff\xfe>\0a\0\n\0", b">a\nAC\xc3", b">\xed\xa0\x80\nA\n"])
def test_wrong_encodings(tmp_path, data):
    for name, read in (("x.fa", sm.sources.read_fasta), ("x.csv", lambda p: sm.sources.read_columns(p, 0))):
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(ValueError, match=rf"{name}.* UTF-8"):
            read(path)


def test_parquet_of_another_kind(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"text": [[1], [2, 3]]}), path)
    with pytest.raises(TypeError, match=r"X\[0\] is list"):
        sm.objects.as_strings(sm.sources.read_columns(path, "text")[0])
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match=r"x\.parquet"):
        sm.sources.read_columns(path, "text")


# --- folders of an index ----------------------------------------------------------------------


def test_a_forged_manifest_cannot_name_one_array_for_another(tmp_path):
    index = sm.HammingIndex(8).fit(np.arange(8, dtype=np.uint8)[:, None])
    index.save(tmp_path)
    manifest = json.loads((tmp_path / "index.json").read_text())
    manifest.pop("crc32", None)
    manifest["segments"][0]["codes"] = manifest["segments"][0]["ids"]
    (tmp_path / "index.json").write_text(json.dumps(manifest))
    for mmap in (False, True):
        with pytest.raises(ValueError, match="is damaged"):
            sm.HammingIndex.load(tmp_path, mmap=mmap)


# --- the fuzzer, shortly ----------------------------------------------------------------------


@pytest.fixture(scope="module")
def fuzz():
    return pytest.importorskip("fuzz")


def test_two_thousand_inputs(fuzz, tmp_path):
    targets = fuzz.targets()
    total = sum(target.share for target in targets)
    trial, seen, wrong = fuzz.Trial(7, tmp_path), set(), []
    for target in targets:
        for index in range(max(3, round(2000 * target.share / total))):
            verdict = trial.judge(target, trial.item(target, index))
            seen.add(verdict)
            if verdict not in ("accepted", "refused"):
                wrong.append((target.name, index, verdict))
    assert wrong == []
    assert seen == {"accepted", "refused"}


def test_the_fuzzer_finds_what_is_there(fuzz, tmp_path):
    """A reader that is wrong in each way that is judged."""
    import warnings

    def raises(error):
        raise error

    cases = {
        "KeyError": lambda item, folder: {}[item],
        "not ours": lambda item, folder: int("x"),
        "several lines": lambda item, folder: sm.codes.SignCodes().fit("a\nb"),
        "MemoryError": lambda item, folder: raises(MemoryError()),
        "RuntimeWarning": lambda item, folder: warnings.warn("x", RuntimeWarning, stacklevel=1),
        "accepted": lambda item, folder: None,
        "refused": lambda item, folder: sm.objects.as_strings([]),
        "names neither": lambda item, folder: sm.objects.as_strings([]),
    }
    for word, call in cases.items():
        words = ("nothing",) if word == "names neither" else ()
        target = fuzz.Target(word, 1, lambda: (), lambda rng, corpus: "x", call, words)
        verdict = fuzz.Trial(0, tmp_path).judge(target, "x")
        assert word in verdict or word == "several lines", (word, verdict)


def test_inputs_depend_on_seed_target_and_number_alone(fuzz, tmp_path):
    def items(order):
        trial = fuzz.Trial(3, tmp_path)
        target = next(target for target in fuzz.targets() if target.name == "read_ts")
        return {i: trial.item(target, i) for i in order}

    assert items(range(50)) == items(reversed(range(50)))


def test_sections_of_the_document_are_replaced_one_at_a_time():
    run = pytest.importorskip("run")
    first = run.updated("", "soak", "## Soak\nold")
    both = run.updated(first, "fuzz", "## Fuzz\ntable")
    again = run.updated(both, "soak", "## Soak\nnew")
    assert again.index("## Fuzz\ntable") < again.index("## Soak\nnew")
    assert "old" not in again
    assert again.count("# Reliability") == 1
    assert run.updated(again, "soak", "## Soak\nnew") == again
