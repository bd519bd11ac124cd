"""``similia encode`` and ``similia index`` on files; killed, they go on where they were."""

import csv
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import similia as sm
from similia.cli import search as commands
from similia.cli.app import app
from similia.cli.inputs import read_objects
from similia.search.on_disk import SearchFolder

runner = CliRunner()
LETTERS = np.random.default_rng(0).choice(list("ACGT"), (90, 20))
WORDS = ["".join(word) for word in LETTERS]


def fasta(path, words):
    path.write_text("".join(f">{path.stem}{i}\n{word}\n" for i, word in enumerate(words)))
    return str(path)


def invoke(*arguments, code=0):
    result = runner.invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path):
    return fasta(tmp_path / "first.fasta", WORDS[:60]), fasta(tmp_path / "second.fasta", WORDS[60:]), tmp_path / "index"


def table(path):
    with path.open() as file:
        return list(csv.reader(file))


def test_build_add_search_info(files, tmp_path):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 32)
    invoke("index", "add", second, folder)
    invoke("index", "search", folder, second, "-k", 2, "--output", tmp_path / "found.csv")
    rows = table(tmp_path / "found.csv")
    assert rows[0] == ["query", "rank", "id", "name", "score"]
    assert rows[1::2] == [[f"second{i}", "1", str(60 + i), f"second{i}", "0"] for i in range(30)]
    assert all(float(row[4]) > 0 and row[1] == "2" for row in rows[2::2])
    shown = invoke("index", "info", folder).output
    for words in ("90 strings", "Spectrum(k=4)", "Levenshtein()", "60 of 60", "30 of 30"):
        assert words in shown
    distances = sm.distances.Levenshtein()(WORDS[60:], WORDS)
    again = invoke("index", "search", folder, second, "-k", 2, "--candidates", 90, "-o", tmp_path / "all.csv")
    assert again.exit_code == 0
    second_best = [float(row[4]) for row in table(tmp_path / "all.csv")[2::2]]
    np.testing.assert_array_equal(second_best, np.sort(distances, axis=1)[:, 1])


def test_a_file_is_added_once_unless_asked(files):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 32)
    assert "in the index already" in invoke("index", "build", first, folder, "--landmarks", 32).output
    assert "in the index already" in invoke("index", "add", first, folder).output
    invoke("index", "add", second, folder)
    assert len(SearchFolder.open(folder)) == 90
    invoke("index", "add", second, folder, "--again")
    assert len(SearchFolder.open(folder)) == 120
    assert "2 times" in invoke("index", "info", folder).output
    with pytest.raises(ValueError, match="is an index already; add to it with"):
        commands.build_index(second, folder, **OPTIONS, **BUILD)


def test_another_column_is_another_source(tmp_path):
    data, folder, output = tmp_path / "two.csv", tmp_path / "index", tmp_path / "codes.npy"
    data.write_text("a,b\n" + "".join(f"{x},{y}\n" for x, y in zip(WORDS[:40], WORDS[40:80], strict=True)))
    invoke("index", "build", data, folder, "--text", "a", "--landmarks", 16)
    invoke("index", "add", data, folder, "--text", "b")
    assert SearchFolder.open(folder).load().objects_.tolist() == WORDS[:80]
    same = tmp_path / "renamed.csv"
    same.write_bytes(data.read_bytes())
    assert "in the index already" in invoke("index", "add", same, folder, "--text", "a").output
    invoke("encode", data, "-o", output, "--text", "a", "--model", folder)
    first = np.load(output)
    invoke("encode", data, "-o", output, "--text", "b", "--model", folder)
    assert (first != np.load(output)).any()


def test_encode_does_not_go_on_with_another_model(files, tmp_path, monkeypatch):
    first, _, _ = files
    model, output = tmp_path / "model.similia", tmp_path / "codes.npy"
    encoders = [
        commands.default_encoder(read_objects(first, text="text", label=None), "Spectrum(k=2)", None, 64, 16, seed)[1]
        for seed in (0, 1)
    ]
    append, calls = commands.Store.append, []

    def interrupted(*arguments, **more):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return append(*arguments, **more)

    sm.save(encoders[0].fit(WORDS), model)
    with monkeypatch.context() as patch:
        patch.setattr(commands.Store, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            commands.encode(first, output, model=model, **OPTIONS, chunk=8)
    sm.save(encoders[1].fit(WORDS), model)
    commands.encode(first, output, model=model, **OPTIONS, chunk=8)
    np.testing.assert_array_equal(np.load(output), encoders[1].transform(WORDS[:60]))


def test_more_neighbours_than_candidates(files, tmp_path):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 16, "--candidates", 5)
    invoke("index", "search", folder, second, "-k", 20, "-o", tmp_path / "found.csv")
    assert len(table(tmp_path / "found.csv")) == 1 + 30 * 20


OPTIONS = {"kernel": "Spectrum(k=2)", "distance": None, "bits": 64, "landmarks": 16, "text": "text", "seed": 0}
BUILD = {"rerank": "kernel", "kind": "exact", "candidates": 20}


def stopping_at(call):
    """Return `SearchFolder.add` as it is, but interrupted at one call."""
    add, calls = SearchFolder.add, []

    def interrupted(*arguments, **more):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return add(*arguments, **more)

    return interrupted


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_an_interrupted_run_is_gone_on_with(files, stop, monkeypatch, tmp_path):
    first, second, folder = files
    commands.build_index(first, tmp_path / "whole", **OPTIONS, **BUILD)
    commands.add_to_index(second, tmp_path / "whole", text="text", again=False)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "add", stopping_at(stop))
        with pytest.raises(KeyboardInterrupt):
            commands.build_index(first, folder, **OPTIONS, **BUILD, chunk=13)
    assert len(SearchFolder.open(folder)) == 13 * (stop - 1)
    commands.build_index(first, folder, **OPTIONS, **BUILD, chunk=8)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "add", stopping_at(stop))
        with pytest.raises(KeyboardInterrupt):
            commands.add_to_index(second, folder, text="text", again=False, chunk=7)
    assert len(SearchFolder.open(folder)) == 60 + 7 * (stop - 1)
    commands.add_to_index(second, folder, text="text", again=False, chunk=10)
    found, expected = SearchFolder.open(folder).load(), SearchFolder.open(tmp_path / "whole").load()
    assert found.objects_.tolist() == expected.objects_.tolist() == WORDS
    np.testing.assert_array_equal(found.index_.reconstruct(), expected.index_.reconstruct())
    np.testing.assert_array_equal(found.ids_, np.arange(90))


def test_encode_with_an_encoder_of_its_own_and_with_a_given_one(files, tmp_path):
    first, second, folder = files
    invoke("encode", first, "-o", tmp_path / "first.npy", "--bits", 64, "--landmarks", 16)
    encoder = sm.load(tmp_path / "first.encoder.similia")
    np.testing.assert_array_equal(np.load(tmp_path / "first.npy"), encoder.transform(WORDS[:60]))
    invoke("encode", second, "-o", tmp_path / "second.npy", "--model", tmp_path / "first.encoder.similia")
    np.testing.assert_array_equal(np.load(tmp_path / "second.npy"), encoder.transform(WORDS[60:]))
    invoke("index", "build", first, folder, "--landmarks", 16)
    invoke("encode", second, "-o", tmp_path / "third.npy", "--model", folder)
    search = SearchFolder.open(folder).search
    np.testing.assert_array_equal(np.load(tmp_path / "third.npy"), search.encoder_.transform(WORDS[60:]))
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, 128, random_state=0).fit(WORDS[:60], [0, 1] * 30)
    sm.save(model, tmp_path / "nyshd.similia")
    invoke("encode", second, "-o", tmp_path / "fourth.npy", "--model", tmp_path / "nyshd.similia")
    np.testing.assert_array_equal(np.load(tmp_path / "fourth.npy"), model[:-1].transform(WORDS[60:]))
    assert not list(tmp_path.glob("*.partial"))


def test_encode_goes_on_where_it_was(files, tmp_path, monkeypatch):
    first, _, _ = files
    output = tmp_path / "codes.npy"
    calls, store_append = [], commands.Store.append

    def append(*arguments, **more):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return store_append(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(commands.Store, "append", append)
        with pytest.raises(KeyboardInterrupt):
            commands.encode(first, output, model=None, **OPTIONS, chunk=8)
    assert not output.exists()
    calls.clear()
    monkeypatch.setattr(commands.Store, "append", lambda *a, **b: (calls.append(1), store_append(*a, **b))[1])
    commands.encode(first, output, model=None, **OPTIONS, chunk=8)
    assert len(calls) == 5  # of 60 words, 24 were there
    np.testing.assert_array_equal(np.load(output), sm.load(tmp_path / "codes.encoder.similia").transform(WORDS[:60]))


def test_kills_at_random_moments_lose_and_double_nothing():
    if not hasattr(sys, "getwindowsversion"):
        script = Path(__file__).with_name("kill_commands.py")
        done = subprocess.run([sys.executable, str(script), "9", "100"], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "unreadable 0, lost 0, doubled 0, wrong 0" in done.stdout


@pytest.mark.parametrize(("kind", "options"), [("vectors", []), ("series", []), ("graphs", ["--rerank", "none"])])
def test_other_objects(kind, options, tmp_path):
    rng = np.random.default_rng(0)
    if kind == "vectors":
        data = tmp_path / "vectors.npy"
        np.save(data, rng.standard_normal((80, 70)))
        options = ["--bits", 32]
    elif kind == "series":
        data = tmp_path / "series.ts"
        lines = [",".join(f"{value:.3f}" for value in rng.standard_normal(12)) + ":a" for _ in range(40)]
        data.write_text("@problemName made\n@classLabel true a\n@data\n" + "\n".join(lines) + "\n")
    else:
        data = tmp_path / "MADE"
        data.mkdir()
        edges = [(v, v + 1) for g in range(30) for v in range(5 * g + 1, 5 * g + 3 + g % 3)]
        arcs = [*edges, *((b, a) for a, b in edges)]
        (data / "MADE_A.txt").write_text("".join(f"{a}, {b}\n" for a, b in sorted(arcs)))
        (data / "MADE_graph_indicator.txt").write_text("".join(f"{1 + v // 5}\n" for v in range(150)))
        (data / "MADE_graph_labels.txt").write_text("1\n" * 30)
    invoke("index", "build", data, tmp_path / "index", "--landmarks", 16, *options)
    invoke("index", "search", tmp_path / "index", data, "-k", 1, "-o", tmp_path / "found.csv")
    rows = table(tmp_path / "found.csv")[1:]
    if kind != "graphs":  # of which many are alike
        assert [int(row[2]) for row in rows] == list(range(len(rows)))
    else:
        assert {row[3] for row in rows} == {"0"}


def test_clear_sentences(files, tmp_path):
    first, _, folder = files
    with pytest.raises(FileNotFoundError, match="no search at"):
        commands.show_info(folder)
    with pytest.raises(ValueError, match="exclude each other"):
        commands.build_index(first, folder, **{**OPTIONS, "distance": "Levenshtein()"}, **BUILD)
    with pytest.raises(ValueError, match=r"no kernel or distance is called 'Nothing'"):
        commands.build_index(first, folder, **OPTIONS, **{**BUILD, "rerank": "Nothing()"})
    assert not folder.exists()
    np.save(tmp_path / "v.npy", np.zeros((3, 2)))
    commands.build_index(first, folder, **OPTIONS, **BUILD)
    with pytest.raises(ValueError, match=r"holds vectors, and .* is an index of strings"):
        commands.add_to_index(str(tmp_path / "v.npy"), folder, text="text", again=False)
    with pytest.raises(ValueError, match=r"must be a \.npy file in a folder that exists"):
        commands.encode(first, tmp_path / "codes.csv", model=None, **OPTIONS)
    np.save(tmp_path / "cube.npy", np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match=r"expected numbers of shape \(n, n_features\)"):
        read_objects(str(tmp_path / "cube.npy"), text="text", label=None)
    (tmp_path / "no.npy").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"is not an array that numpy\.save wrote"):
        read_objects(str(tmp_path / "no.npy"), text="text", label=None)
    fit = ["fit", str(tmp_path / "v.npy"), "-o", str(tmp_path / "m.similia")]
    with pytest.raises(ValueError, match="holds vectors, which similia fit does not take"):
        runner.invoke(app, fit, catch_exceptions=False)
