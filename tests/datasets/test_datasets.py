"""Bundled data, and fetch against a server in this process: whole, truncated, corrupted, missing, flaky."""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import json
import os
import threading
import tomllib
import zipfile
from collections import Counter
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pooch
import pytest

from similia import datasets
from similia.datasets import available, fetch, load_promoters, load_splice, loaders
from similia.objects import GraphBatch

# --- bundled ----------------------------------------------------------------------------------


def test_promoters():
    bunch = load_promoters()
    assert len(bunch.data) == 106
    assert Counter(bunch.target) == {"+": 53, "-": 53}
    assert {len(s) for s in bunch.data} == {57}
    assert "".join(sorted(set("".join(bunch.data)))) == "acgt"
    assert len(set(bunch.data)) == 106
    assert bunch.target_names.tolist() == ["+", "-"]
    assert "10.24432/C5S01D" in bunch.DESCR
    X, y = load_promoters(return_X_y=True)
    assert bunch.data == X
    assert (y == bunch.target).all()


def test_splice_and_what_its_description_says():
    bunch = load_splice()
    assert Counter(bunch.target) == {"ei": 767, "ie": 765, "n": 1654}
    assert {len(s) for s in bunch.data} == {60}
    assert "".join(sorted(set("".join(bunch.data)))) == "ACGT"
    counts = Counter(bunch.data)
    repeated = [n for n in counts.values() if n > 1]
    assert (len(counts), len(repeated), sum(repeated), max(repeated)) == (3001, 125, 310, 5)
    labels = {}
    for string, label in zip(bunch.data, bunch.target, strict=True):
        labels.setdefault(string, set()).add(label)
    assert sum(len(found) > 1 for found in labels.values()) == 1
    for number in ("3001 sequences", "125 of them", "310 rows", "one occurs with two labels", "10.24432/C5M888"):
        assert number in bunch.DESCR
    # an exon-intron boundary has GT after the middle, an intron-exon boundary AG before it, nearly always
    assert np.mean([s[30:32] == "GT" for s in np.array(bunch.data)[bunch.target == "ei"]]) > 0.95
    assert np.mean([s[28:30] == "AG" for s in np.array(bunch.data)[bunch.target == "ie"]]) > 0.95


def test_messages_are_those_of_uci_without_words_for_adults(data_folder):
    bunch = datasets.load_messages()
    assert Counter(bunch.target) == {"ham": 714, "spam": 86}
    assert len(set(bunch.data)) == 800
    assert not [text for text in bunch.data if "sex" in text.lower() or "xxx" in text.lower()]
    with gzip.open(data_folder / "strings" / "sms_spam.tsv.gz", "rt", encoding="utf-8") as file:
        lines = set(file.read().splitlines())
    assert {f"{label}\t{text}" for label, text in zip(bunch.target, bunch.data, strict=True)} <= lines


@pytest.mark.parametrize(("name", "source", "counts", "tolerance"), [
    ("movements", "libras", dict.fromkeys(map(str, range(1, 16)), 12), 0.0005),
    ("vowels", "japanese_vowels", dict.fromkeys(map(str, range(1, 10)), 15), 0.005),
])  # fmt: skip
def test_series_are_those_of_the_archive(name, source, counts, tolerance, data_folder):
    bunch = fetch(name)
    assert Counter(bunch.target) == counts
    with np.load(data_folder / "series" / f"{source}.npz") as arrays:
        values, lengths, y = arrays["values"], arrays["lengths"], arrays["y"]
    starts, at = np.cumsum(lengths) - lengths, {label: iter(np.flatnonzero(y == int(label))) for label in counts}
    for x, label in zip(bunch.data, bunch.target, strict=True):  # the first ones of each class, in order
        i = next(at[label])
        np.testing.assert_allclose(x, values[starts[i] : starts[i] + lengths[i]], atol=tolerance + 1e-6)


def test_molecules_are_what_their_names_say():
    Chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    from rdkit.Chem.rdMolDescriptors import CalcMolFormula

    bunch = datasets.load_molecules()
    molecules = [Chem.MolFromSmiles(smiles) for smiles in bunch.data]
    assert len({Chem.MolToSmiles(m) for m in molecules}) == len(set(bunch.names)) == 122
    formulas = dict(zip(bunch.names, map(CalcMolFormula, molecules), strict=True))
    known = {"caffeine": "C8H10N4O2", "cholesterol": "C27H46O", "aspirin": "C9H8O4", "sucrose": "C12H22O11",
             "tryptophan": "C11H12N2O2", "adenosine": "C10H13N5O4", "arachidonic acid": "C20H32O2",
             "thiopental": "C11H18N2O2S", "sulfathiazole": "C9H9N3O2S2", "salbutamol": "C13H21NO3",
             "farnesol": "C15H26O", "diclofenac": "C14H11Cl2NO2"}  # fmt: skip
    assert {name: formulas[name] for name in known} == known
    skeletons = {
        "amino acid": "NC(*)C(=O)O", "barbiturate": "C1C(=O)NC(=[O,S])NC1=O", "sulfonamide": "Nc1ccc(S(=O)(=O)N)cc1",
        "phenethylamine": "NCCc1ccccc1", "methylxanthine": "O=c1nc(=O)c2ncnc2n1", "fatty acid": "C~C~CC(=O)[OH]",
    }  # fmt: skip
    patterns = {family: Chem.MolFromSmarts(smarts) for family, smarts in skeletons.items()}
    any_bonds = Chem.AdjustQueryParameters.NoAdjustments()
    any_bonds.makeBondsGeneric = any_bonds.makeAtomsGeneric = True
    gonane = Chem.MolFromSmiles("C1CCC2C(C1)CCC1C2CCC2CCCC12")
    patterns["steroid"] = Chem.AdjustQueryProperties(gonane, any_bonds)
    for m, name, family in zip(molecules, bunch.names, bunch.target, strict=True):
        if family in patterns and name != "glycine":
            assert m.HasSubstructMatch(patterns[family]), f"{name} is no {family}"


def test_the_description_of_molecules_counts_their_families():
    bunch = datasets.load_molecules()
    assert f"in {len(set(bunch.target))} families" in bunch.DESCR


def test_bundled_sequences_are_those_of_uci(data_folder):
    def read(name):
        with gzip.open(data_folder / "strings" / f"{name}.tsv.gz", "rt") as file:
            return [tuple(line.rstrip("\n").split("\t")) for line in file]

    promoters = load_promoters()
    assert sorted(zip(promoters.target, promoters.data, strict=True)) == sorted(read("promoters"))
    uci = [(label.lower(), string) for label, string in read("splice")]
    kept = [(label, string.replace("N", "G")) for label, string in uci if not set(string) & set("DRS")]
    assert (len(uci), len(kept)) == (3190, 3186)
    assert sum("N" in string for _, string in uci) == 11
    splice = load_splice()
    assert Counter(zip(splice.target.tolist(), splice.data, strict=True)) == Counter(kept)


def test_the_licence_of_the_data_is_shipped_and_declared():
    text = files("similia.datasets").joinpath("data", "LICENSE.txt").read_text()
    for needed in ("CC BY 4.0", "10.24432/C5S01D", "10.24432/C5M888", "Changes:"):
        assert needed in text
    project = Path(__file__).parents[2]
    declared = tomllib.loads((project / "pyproject.toml").read_text())["project"]["license-files"]
    assert "src/similia/datasets/data/LICENSE.txt" in declared


# --- a small set, served by this process -------------------------------------------------------

FILES = {
    "TINY/TINY_A.txt": "1,2\n2,1\n3,4\n4,3\n",
    "TINY/TINY_graph_indicator.txt": "1\n1\n2\n2\n",
    "TINY/TINY_graph_labels.txt": "-1\n1\n",
    "TINY/TINY_node_labels.txt": "1\n2\n3\n4\n",
}


def archive(**changes):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as target:
        for name, text in {**FILES, **changes}.items():
            target.writestr(name, text)
    return stream.getvalue()


ENTRY = loaders.Entry(
    "graphs", "TINY: two edges.", {-1: 1, 1: 1}, "http://unused.invalid/TINY.zip", n_nodes=4, n_arcs=4,
    sha256={Path(name).name: hashlib.sha256(text.encode()).hexdigest() for name, text in FILES.items()},
)  # fmt: skip


class Server:
    """Answers each request with the next of `answers` (the last one for ever); counts requests."""

    def __init__(self):
        self.answers, self.requests = [], []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.requests.append(self.path)
                status, body, length = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                self.send_response(status)
                if length is not None:
                    self.send_header("Content-Length", str(length))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setitem(loaders.REGISTRY, "TINY", ENTRY)
    monkeypatch.delenv("SIMILIA_DATA", raising=False)
    monkeypatch.delenv("SIMILIA_MIRROR", raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pooch.core.time.sleep", lambda seconds: None)
    server = Server()
    yield server
    server.close()


def ok(body):
    return (200, body, len(body))


WHOLE = archive()


def test_download_then_cache(server, tmp_path):
    server.answers = [ok(WHOLE)]
    bunch = fetch("TINY", cache=tmp_path, base_url=server.url + "/mirror/")
    assert isinstance(bunch.data, GraphBatch)
    assert bunch.data.node_labels.tolist() == [1, 2, 3, 4]
    assert bunch.target.tolist() == bunch.target_names.tolist() == [-1, 1]
    assert server.requests == ["/mirror/TINY.zip"]
    assert [path.name for path in tmp_path.iterdir()] == ["TINY.zip"]
    X, y = fetch("TINY", cache=tmp_path, base_url="http://127.0.0.1:1", return_X_y=True)  # from the cache
    assert (len(X), len(y)) == (2, 2)
    assert len(server.requests) == 1


def test_mirror_from_the_environment(server, tmp_path, monkeypatch):
    server.answers = [ok(WHOLE)]
    monkeypatch.setenv("SIMILIA_MIRROR", server.url)
    assert len(fetch("TINY", cache=tmp_path).data) == 2
    assert server.requests == ["/TINY.zip"]


def test_a_repacked_archive_is_as_good(server, tmp_path):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:  # stored, another order, another file beside
        for name in reversed(FILES):
            target.writestr(name, FILES[name])
        target.writestr("TINY/README.txt", "about")
    server.answers = [ok(stream.getvalue())]
    assert len(fetch("TINY", cache=tmp_path, base_url=server.url).data) == 2


CORRUPT = bytearray(WHOLE)
CORRUPT[45] ^= 0xFF  # inside the compressed edges
BAD_ANSWERS = {
    "connection cut": ((200, WHOLE[:200], len(WHOLE)), "IncompleteRead|Connection broken"),
    "truncated file": (ok(WHOLE[:-40]), "not a zip file|not a whole zip"),
    "truncated without length": ((200, WHOLE[:200], None), "not a zip file|not a whole zip"),
    "empty": (ok(b""), "not a zip file|not a whole zip"),
    "error page": (ok(b"<html>please log in</html>"), "not a zip file|not a whole zip"),
    "flipped byte": (ok(bytes(CORRUPT)), "damaged|not a zip file|not a whole zip"),
    "other edges": (
        ok(archive(**{"TINY/TINY_A.txt": "1,2\n2,1\n"})),
        r"TINY_A\.txt: sha256 is [0-9a-f]{64}, expected",
    ),
    "file emptied": (ok(archive(**{"TINY/TINY_node_labels.txt": ""})), r"TINY_node_labels\.txt: sha256 is"),
    "another set": (ok(archive().replace(b"TINY", b"TONY")), "has no file TINY_A.txt"),
    "server error": ((503, b"busy", 4), "503"),
}


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_bad_answers_are_tried_again_then_refused_and_leave_nothing(server, tmp_path, case):
    answer, sentence = BAD_ANSWERS[case]
    server.answers = [answer]
    with pytest.raises(ConnectionError, match=sentence) as raised:
        fetch("TINY", cache=tmp_path, base_url=server.url)
    assert server.url in str(raised.value)
    assert "3 attempts" in str(raised.value)
    assert len(server.requests) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("case", BAD_ANSWERS)
def test_one_bad_answer_is_forgiven(server, tmp_path, case):
    server.answers = [BAD_ANSWERS[case][0], ok(WHOLE)]
    assert len(fetch("TINY", cache=tmp_path, base_url=server.url).data) == 2
    assert len(server.requests) == 2
    assert (tmp_path / "TINY.zip").read_bytes() == WHOLE


def test_a_missing_file_is_not_asked_for_again(server, tmp_path):
    server.answers = [(404, b"no", 2)]
    with pytest.raises(FileNotFoundError, match=r"TINY.zip is not there \(HTTP 404\)"):
        fetch("TINY", cache=tmp_path, base_url=server.url)
    assert len(server.requests) == 1
    assert list(tmp_path.iterdir()) == []


def test_nobody_answers(server, tmp_path):
    url = server.url
    server.server.server_close()
    with pytest.raises(ConnectionError, match=r"TINY could not be downloaded from .* in 3 attempts"):
        fetch("TINY", cache=tmp_path, base_url=url)


def test_a_damaged_cache_is_downloaded_again(server, tmp_path):
    server.answers = [ok(WHOLE)]
    for damaged in (WHOLE[:100], bytes(CORRUPT), archive(**{"TINY/TINY_A.txt": "1,2\n"})):
        (tmp_path / "TINY.zip").write_bytes(damaged)
        assert len(fetch("TINY", cache=tmp_path, base_url=server.url).data) == 2
        assert (tmp_path / "TINY.zip").read_bytes() == WHOLE


def test_a_file_that_another_process_downloads_meanwhile_is_read(server, tmp_path, monkeypatch):
    create = pooch.create

    def late(folder, **options):
        (tmp_path / "TINY.zip").write_bytes(WHOLE)
        return create(folder, **options)

    monkeypatch.setattr(pooch, "create", late)
    assert len(fetch("TINY", cache=tmp_path, base_url=server.url).data) == 2
    assert server.requests == []


def test_a_damaged_file_that_another_process_removes_is_downloaded_again(server, tmp_path, monkeypatch):
    def removed(path, entry, *, checksums):
        monkeypatch.setattr(loaders, "load", load)
        path.unlink()
        raise ValueError("damaged")

    load = loaders.load
    monkeypatch.setattr(loaders, "load", removed)
    (tmp_path / "TINY.zip").write_bytes(WHOLE[:100])
    server.answers = [ok(WHOLE)]
    assert len(fetch("TINY", cache=tmp_path, base_url=server.url).data) == 2


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"n_nodes": 5}, "holds 4 nodes, expected 5"),
        ({"n_arcs": 6}, "holds 4 arcs, expected 6"),
        ({"classes": {-1: 2}}, "holds classes {-1: 1, 1: 1}, expected {-1: 2}"),
    ],
)
def test_without_checksums_the_counts_must_agree(server, tmp_path, monkeypatch, change, sentence):
    monkeypatch.setitem(loaders.REGISTRY, "TINY", replace(ENTRY, sha256={}, **change))
    server.answers = [ok(WHOLE)]
    with pytest.raises(ConnectionError, match=sentence):
        fetch("TINY", cache=tmp_path, base_url=server.url)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "TINY.zip").write_bytes(WHOLE)
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=sentence):
        fetch("TINY")


def test_messages_are_read_from_the_archive_of_uci(server, tmp_path, monkeypatch):
    text = 'ham\tHi "you", ok?\nspam\tWin £1\tnow\n'
    entry = replace(
        loaders.REGISTRY["sms_spam"], classes={"ham": 1, "spam": 1},
        sha256={"SMSSpamCollection": hashlib.sha256(text.encode()).hexdigest()},
    )  # fmt: skip
    monkeypatch.setitem(loaders.REGISTRY, "sms_spam", entry)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as target:
        target.writestr("SMSSpamCollection", text)
        target.writestr("readme", "about")
    server.answers = [ok(stream.getvalue())]
    bunch = fetch("sms_spam", cache=tmp_path, base_url=server.url)
    assert bunch.data == ['Hi "you", ok?', "Win £1\tnow"]
    assert bunch.target.tolist() == ["ham", "spam"]
    assert server.requests == ["/sms+spam+collection.zip"]


def test_the_folder_comes_first(server, tmp_path, monkeypatch):
    (tmp_path / "graphs").mkdir()
    (tmp_path / "graphs" / "TINY.zip").write_bytes(WHOLE)
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    assert len(fetch("TINY", base_url=server.url).data) == 2
    assert server.requests == []


@pytest.mark.parametrize(
    "data", [b"", b"ham\tHi\n", gzip.compress(b"ham\tHi\n" * 99, mtime=0)[:-20], gzip.compress(b"no tab\n", mtime=0)]
)
def test_a_broken_file_in_the_folder_is_named(server, tmp_path, monkeypatch, data):
    (tmp_path / "strings").mkdir()
    path = tmp_path / "strings" / "sms_spam.tsv.gz"
    path.write_bytes(data)
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    with pytest.raises(ValueError, match=r"damaged|no tab") as raised:
        fetch("sms_spam")
    assert str(path) in str(raised.value)


def test_names(monkeypatch, tmp_path):
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    assert len(fetch("splice").data) == 3186
    with pytest.raises(ValueError, match=r"unknown data set 'nci1' \(did you mean NCI1\?\); .*available"):
        fetch("nci1")
    with pytest.raises(FileNotFoundError, match=r"no public download; put strings/multiloc_proteins\.tsv\.gz"):
        fetch("multiloc_proteins", cache=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no public download; put strings/splice\.tsv\.gz"):
        fetch("splice_uci", cache=tmp_path)
    assert set(datasets.__all__) == {"available", "fetch", "splits", *(f"load_{name}" for name in loaders.BUNDLED)}


def test_the_registry_is_complete():
    for name, entry in loaders.REGISTRY.items():
        assert entry.kind in ("graphs", "strings")
        assert entry.url is None or entry.url.startswith("https://")
        assert all(len(digest) == 64 for digest in entry.sha256.values())
        if entry.kind == "graphs":
            guarded = {f"{name}_{part}.txt" for part in ("A", "graph_indicator", "graph_labels")}
            assert guarded <= set(entry.sha256) or name in ("DD", "REDDIT-BINARY")
    assert set(loaders.available()) >= {"promoters", "splice", "messages", "molecules", "movements", "vowels"}


@pytest.mark.parametrize("name", available())
def test_real_sets(data_folder, name):
    files = (loaders.REGISTRY | loaders.ARCHIVES)[name].files(name) if name not in loaders.BUNDLED else []
    if not all(loaders.data_file(file) for file in files):
        pytest.skip(f"no folder of SIMILIA_DATA has {' and '.join(files)}")
    X, y = fetch(name, return_X_y=True)
    assert len(X) == len(y)
    if name in loaders.REGISTRY and loaders.REGISTRY[name].kind == "graphs":  # the checksums are of these files
        loaders._check_sha256(data_folder / "graphs" / f"{name}.zip", loaders.REGISTRY[name])


# ---- series, sets and pictures: numpy archives in the folder
@pytest.fixture
def gunpoint(tmp_path, monkeypatch):
    """A folder with a file that looks like GunPoint, and a function that writes it with changes."""
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    (tmp_path / "series").mkdir()

    def write(**changes):
        columns = {
            "values": np.arange(30000, dtype=np.float32)[:, None],
            "lengths": np.full(200, 150, np.int32),
            "y": np.tile([1, 2], 100),
            "split": np.repeat([0, 1], [50, 150]),
        } | changes
        np.savez(tmp_path / "series" / "gunpoint.npz", **{k: v for k, v in columns.items() if v is not None})
        return tmp_path / "series" / "gunpoint.npz"

    return write


def test_series_come_as_a_batch_with_their_split(gunpoint):
    gunpoint()
    bunch = fetch("gunpoint")
    assert bunch.data[1][:2].tolist() == [[150.0], [151.0]]
    assert (bunch.data.lengths.tolist(), bunch.split.sum()) == ([150] * 200, 150)
    X, y = fetch("gunpoint", return_X_y=True)
    assert (len(X), y.tolist()) == (200, [1, 2] * 100)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.ones(200, int)}, "200 objects of 1 classes and 30000 values, expected 200, 2 and 30000"),
        ({"lengths": np.full(200, 149)}, "holds 200 objects of 2 classes and 29800 values"),
        ({"lengths": np.full(100, 300)}, "holds 100 lengths, expected 200"),
        ({"lengths": np.repeat([-150, 450], 100)}, "damaged or of another kind: offsets must"),
        ({"values": np.zeros(30000, np.float32)}, "damaged or of another kind: values must be a 2-D array"),
        ({"lengths": None}, "damaged or of another kind"),
        ({"y": np.array([{}] * 200)}, "damaged or of another kind"),  # a pickle, which is not loaded
    ],
)
def test_an_archive_that_is_not_what_it_should_be(gunpoint, changes, words):
    gunpoint(**changes)
    with pytest.raises(ValueError, match=words):
        fetch("gunpoint")


def test_a_truncated_archive(gunpoint):
    path = gunpoint()
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(ValueError, match="damaged or of another kind"):
        fetch("gunpoint")


def test_an_archive_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setenv("SIMILIA_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"put sets/style_sift\.npz into a folder that SIMILIA_DATA names"):
        fetch("style_sift")


@pytest.mark.parametrize("name", ["character_trajectories", "japanese_vowels", "style_sift", "mnist_test"])
def test_real_archives(name, data_folder):
    bunch = fetch(name)
    assert len(bunch.data) == len(bunch.target)
    assert bunch.DESCR


# ---- several folders, published parts and folds
FOLDS = [{"test": [0, 2], "train": [3], "validation": [1]}, {"test": [1], "train": [2, 0], "validation": [3]}]


@pytest.fixture
def two_folders(tmp_path, monkeypatch):
    """Two folders named by SIMILIA_DATA, and a function that writes a text file into one of them."""
    monkeypatch.setenv("SIMILIA_DATA", f"{tmp_path / 'one'}{os.pathsep}{tmp_path / 'two'}")
    words = loaders.Archive("strings", "WORDS.", n=3, n_classes=2, n_values=6, n_train=2)
    monkeypatch.setitem(loaders.ARCHIVES, "WORDS", words)
    monkeypatch.setitem(loaders.ARCHIVES, "MOLS", loaders.Archive("molecules", "MOLS.", 3, 3, 6))
    monkeypatch.setitem(loaders.REGISTRY, "TINY", replace(ENTRY, classes={-1: 2, 1: 2}))
    monkeypatch.setitem(loaders.FOLDS, "TINY", "usual")

    def write(file, content):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_bytes(gzip.compress(content.encode()) if file.endswith("gz") else content.encode())

    return write


def test_parts_in_two_files_follow_each_other(two_folders):
    two_folders("one/strings/WORDS.train.tsv.gz", "b\tx\na\tyy\n")
    with pytest.raises(FileNotFoundError, match=r"WORDS.train.tsv.gz and strings/WORDS.test.tsv.gz into a folder"):
        fetch("WORDS")
    two_folders("two/strings/WORDS.test.tsv.gz", "b\tzzz\n")
    found = fetch("WORDS")
    assert (found.data, found.target.tolist(), found.split.tolist()) == (["x", "yy", "zzz"], ["b", "a", "b"], [0, 0, 1])
    test = fetch("WORDS", subset="test")
    assert (test.data, test.target.tolist(), test.target_names.tolist()) == (["zzz"], ["b"], ["a", "b"])
    X, y = fetch("WORDS", subset="train", return_X_y=True)
    assert (X, y.tolist()) == (["x", "yy"], ["b", "a"])
    assert [[part.tolist() for part in pair] for pair in datasets.splits("WORDS")] == [[[0, 1], [2]]]


def test_the_first_folder_that_has_a_file_is_taken(two_folders):
    two_folders("two/molecules/MOLS.tsv.gz", "1.5\tCC\n-2\tO\n3\tCCC\n")
    assert fetch("MOLS").target.tolist() == [1.5, -2, 3]
    assert "target_names" not in fetch("MOLS")
    two_folders("one/molecules/MOLS.tsv.gz", "7\tCC\n8\tO\n9\tCCC\n")
    assert fetch("MOLS").target.tolist() == [7, 8, 9]
    two_folders("one/molecules/MOLS.tsv.gz", "7\tCC\nsoluble\tO\n9\tCCC\n")
    with pytest.raises(ValueError, match=r"one.*MOLS.tsv.gz holds a target that is not a number: .*'soluble'"):
        fetch("MOLS")
    two_folders("one/molecules/MOLS.tsv.gz", "7\tCC\n8\tO\n9\tCCCC\n")
    with pytest.raises(ValueError, match="holds 3 objects of 3 classes and 7 values, expected 3, 3 and 6"):
        fetch("MOLS")


def test_folds_are_read_with_the_validation_part_in_training(two_folders):
    with pytest.raises(
        FileNotFoundError, match=r"splits/TINY.json is missing; put it into a folder that SIMILIA_DATA names"
    ):
        datasets.splits("TINY")
    two_folders("two/splits/TINY.json", json.dumps({"variants": {"usual": {"folds": FOLDS}}}))
    found = [[part.tolist() for part in pair] for pair in datasets.splits("TINY")]
    assert found == [[[1, 3], [0, 2]], [[0, 2, 3], [1]]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"variants": {"usual": {"folds": [*FOLDS, {**FOLDS[0], "test": [0, 1]}]}}}, "fold 2: does not hold each of 4"),
        ({"variants": {"usual": {"folds": [{**FOLDS[0], "test": [0, 4]}]}}}, "fold 0: does not hold each of 4 objects"),
        ({"variants": {"other": {"folds": FOLDS}}}, "is damaged or of another kind: 'usual'"),
        ([], "is damaged or of another kind"),
    ],
)
def test_damaged_folds_are_refused(two_folders, content, words):
    two_folders("one/splits/TINY.json", json.dumps(content))
    with pytest.raises(ValueError, match=words):
        datasets.splits("TINY")


def test_sets_without_published_parts(monkeypatch):
    with pytest.raises(ValueError, match="promoters has no published training and test parts; split it yourself"):
        fetch("promoters", subset="train")
    with pytest.raises(ValueError, match="subset is 'half'; expected one of all, train, test"):
        fetch("promoters", subset="half")


@pytest.mark.parametrize(("name", "n", "n_test"), [("CTCF", 4000, 2000), ("Wine", 111, 54), ("NCI1", 4110, 412)])
def test_real_splits(data_folder, name, n, n_test):
    if not loaders.data_file(f"splits/{name}.json", f"strings/{name}.test.tsv.gz", f"series/{name}.npz"):
        pytest.skip(f"no folder of SIMILIA_DATA has the parts of {name}")
    train, test = datasets.splits(name)[0]
    assert len(test) == n_test
    assert sorted([*train, *test]) == list(range(n))
