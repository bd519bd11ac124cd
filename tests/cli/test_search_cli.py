"""``similia encode`` and ``similia index`` on files; killed, they go on where they were."""

import csv
import gzip
import itertools
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

import similia as sm
from similia.cli import encoders
from similia.cli import index as commands
from similia.cli.app import app
from similia.cli.encode import encode
from similia.cli.inputs import read_objects
from similia.search.on_disk import SearchFolder
from similia.serve import Service
from similia.storage.disk import Journal

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


def test_nothing_is_added_to_an_index_with_damaged_codes(files):
    first, second, folder = files
    invoke("index", "build", first, folder)
    (path,) = (folder / "codes").glob("codes-*")
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:])
    held = sorted(file.name for file in folder.rglob("*"))
    for options in ([first, folder, "--again"], [second, folder]):
        error = str(invoke("index", "add", *options, code=1).exception)
        assert error.startswith(f"{path} has a checksum other than ")
        assert error.endswith("restore the index from a copy")
    assert sorted(file.name for file in folder.rglob("*")) == held
    path.write_bytes(whole)
    invoke("index", "add", second, folder)
    assert len(SearchFolder.open(folder)) == 90


@pytest.mark.parametrize("by", ["features", "auto"])
def test_candidates_by_features(files, tmp_path, by):
    first, second, folder = files
    assert "candidates by features of MinMax" in invoke("index", "build", first, folder, "--by", by).output
    invoke("index", "build", first, folder, "--by", by)  # again: nothing is added
    invoke("index", "add", second, folder)
    invoke("index", "search", folder, second, "-k", 2, "--output", tmp_path / "found.csv")
    assert table(tmp_path / "found.csv")[1::2] == [
        [f"second{i}", "1", str(60 + i), f"second{i}", "0"] for i in range(30)
    ]
    shown = " ".join(invoke("index", "info", folder).output.split())
    assert ("recall at candidates" in shown) == (by == "auto")
    assert "bits" not in shown or by == "auto"
    error = invoke("index", "build", first, tmp_path / "other", "--by", by, "--kind", "ivf", code=1).exception
    assert "--kind ivf says how bits are searched" in str(error)


VECTORS = np.random.default_rng(1).normal(size=(90, 12))


@pytest.mark.parametrize(("bits", "rerank"), [(None, None), (1, "projected"), (8, "none")])
def test_candidates_by_vectors_are_those_of_the_library(tmp_path, bits, rerank):
    folder, options = tmp_path / "index", ["--by", "vectors"]
    options += [] if bits is None else ["--bits", bits]
    options += [] if rerank is None else ["--rerank", rerank]
    for name, rows in (("first", slice(60)), ("second", slice(60, None))):
        np.save(tmp_path / f"{name}.npy", VECTORS[rows])
    said = invoke("index", "build", tmp_path / "first.npy", folder, *options).output
    assert f"candidates by vectors, {bits or 4} bits a number (as they are)" in said
    invoke("index", "build", tmp_path / "first.npy", folder, *options)  # again: nothing is added
    invoke("index", "add", tmp_path / "second.npy", folder)
    sort = None if rerank == "none" else "projected"
    index = sm.search.VectorIndex(bits or 4, normalize=sort is not None, random_state=0)
    search = sm.SimilaritySearch(make_pipeline("passthrough", index), sort).fit(VECTORS[:60]).add(VECTORS[60:])
    distances, ids = search.kneighbors(VECTORS, 3)
    invoke("index", "search", folder, tmp_path / "second.npy", "-k", 3, "--output", tmp_path / "found.csv")
    rows = table(tmp_path / "found.csv")[1:]
    assert [int(row[2]) for row in rows] == ids[60:].ravel().tolist()
    np.testing.assert_allclose([float(row[3]) for row in rows], distances[60:].ravel(), rtol=1e-5)
    answers = Service(folder).answer("neighbors", [row.tolist() for row in VECTORS[60:]], n_neighbors=3)
    assert [answer["ids"] for answer in answers] == ids[60:].tolist()


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        (["--landmarks", 8], "(5-mers and PCA)"),
        ([], "(kernel Spectrum(k=5, normalize=True))"),
        (["--kernel", "Mismatch(k=3)"], "(kernel Mismatch(k=3))"),
    ],
)
def test_vectors_of_strings(files, options, spec):
    first, _, folder = files
    build = ["index", "build", first, folder, "--by", "vectors", "--rerank", "Levenshtein()", *options]
    assert spec in " ".join(invoke(*build).output.split())
    found = SearchFolder.open(folder).load().kneighbors(WORDS[:60], 1)
    np.testing.assert_array_equal(found[1].ravel(), np.arange(60))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "vectors", "--bits", 3], "--bits must be 1, 2, 4 or 8 of each number with --by vectors, got 3"),
        (["--by", "vectors", "--kind", "ivf"], "--kind ivf says how bits are searched, but --by is vectors"),
        (["--by", "vectors", "--distance", "LCSS()"], "holds strings, which LCSS() does not compare; use e.g. "),
        (["--by", "vector"], "--by must be bits, features, vectors or auto, got vector"),
        (["--bits", 4], "--bits must be a multiple of 8 and at least 8, got 4"),
    ],
)
def test_options_of_candidates_that_do_not_fit(files, options, words):
    assert words in str(invoke("index", "build", files[0], files[2], *options, code=1).exception)


def test_build_add_search_info(files, tmp_path):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 32)
    invoke("index", "add", second, folder)
    invoke("index", "search", folder, second, "-k", 2, "--output", tmp_path / "found.csv")
    rows = table(tmp_path / "found.csv")
    assert rows[0] == ["query", "rank", "id", "name", "distance"]
    assert rows[1::2] == [[f"second{i}", "1", str(60 + i), f"second{i}", "0"] for i in range(30)]
    assert all(float(row[4]) > 0 and row[1] == "2" for row in rows[2::2])
    shown = invoke("index", "info", folder).output
    for words in ("90 strings", "Spectrum(k=5, normalize=True)", "Levenshtein()", "60 of 60", "30 of 30"):
        assert words in shown
    distances = sm.distances.Levenshtein()(WORDS[60:], WORDS)
    again = invoke("index", "search", folder, second, "-k", 2, "--candidates", 90, "-o", tmp_path / "all.csv")
    assert again.exit_code == 0
    second_best = [float(row[4]) for row in table(tmp_path / "all.csv")[2::2]]
    np.testing.assert_array_equal(second_best, np.sort(distances, axis=1)[:, 1])


def test_the_time_of_a_query_is_without_start_up(files, monkeypatch, tmp_path):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 32)
    search, clock = (
        sm.SimilaritySearch.kneighbors,
        itertools.count(0, 0.05),
    )  # seconds, one step each time it is looked at
    asked = []

    def slow_at_first(self, X, n_neighbors=10):
        asked.append(len(X))
        for _ in range(1000 if len(asked) == 1 else 0):
            next(clock)
        return search(self, X, n_neighbors)

    monkeypatch.setattr(sm.SimilaritySearch, "kneighbors", slow_at_first)
    monkeypatch.setattr(encoders.time, "perf_counter", lambda: next(clock))
    said = invoke("index", "search", folder, second, "-k", 2, "-o", tmp_path / "found.csv").output
    assert asked == [1, 30]
    assert re.search(r"1\.67 ms per query, for 30 queries among 60 objects, without start-up", said)  # 50 ms for 30


def test_recall_is_measured_or_it_is_said_how_to_measure_it(tmp_path):
    vectors = np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32)
    np.save(tmp_path / "v.npy", vectors)
    measured = invoke("index", "build", tmp_path / "v.npy", tmp_path / "a.index", "--bits", 64).output
    assert re.search(r"recall \d\.\d\d: with all 60 objects as queries, the share of their 10 nearest", measured)
    said = invoke("index", "build", tmp_path / "v.npy", tmp_path / "b.index", "--bits", 64, "--rerank", "none").output
    call = re.search(r"in Python: (SimilaritySearch.*\))", said.replace("\n", ""))[1]
    names = {"SimilaritySearch": sm.SimilaritySearch, "similia": sm, "queries": vectors[:9], "all_of_them": vectors}
    assert 0 < eval(call, names).recall <= 1


def test_codes_given_as_vectors_are_told(tmp_path):
    codes = np.random.default_rng(0).integers(0, 256, (60, 16), np.uint8)
    np.save(tmp_path / "codes.npy", codes)
    np.save(tmp_path / "vectors.npy", codes.astype(float))
    for name, told in (("codes", True), ("vectors", False)):
        said = invoke("index", "build", tmp_path / f"{name}.npy", tmp_path / name, "--bits", 64).output
        assert ("holds bytes, read as numbers" in said) is told


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
    with pytest.raises(
        ValueError, match=r"is an index already, and 30 of 30 from .*second.* were added to it; its opt"
    ):
        commands.build(second, TABLE, folder, **OPTIONS, **BUILD)
    fasta(Path(second), WORDS[59:])
    with pytest.raises(ValueError, match=r"is an index already; to add to it: similia index add .*second"):
        commands.build(second, TABLE, folder, **OPTIONS, **BUILD)
    assert len(SearchFolder.open(folder)) == 120


@pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")  # of two, by 16 landmarks
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
    made = [
        encoders.default_encoder(read_objects(first, text="text", label=None), "Spectrum(k=2)", None, 64, 16, seed)[1]
        for seed in (0, 1)
    ]
    append, calls = Journal.append, []

    def interrupted(*arguments, **more):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return append(*arguments, **more)

    sm.save(made[0].fit(WORDS), model)
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            encode(first, {}, output, model=model, chunk=8)
    sm.save(made[1].fit(WORDS), model)
    encode(first, {}, output, model=model, chunk=8)
    np.testing.assert_array_equal(np.load(output), made[1].transform(WORDS[:60]))


def test_more_neighbours_than_candidates_or_objects(files, tmp_path):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 16, "--candidates", 5)
    done = invoke("index", "search", folder, second, "-k", 20, "-o", tmp_path / "found.csv")
    assert len(table(tmp_path / "found.csv")) == 1 + 30 * 20
    assert "note: 20 candidates are compared instead of 5, because -k is 20" in done.stderr
    done = invoke("index", "search", folder, second, "-k", 200, "--candidates", 300, "-o", tmp_path / "found.csv")
    assert len(table(tmp_path / "found.csv")) == 1 + 30 * 60
    assert done.stderr.count("note:") == 1
    assert "note: the index holds only 60 objects, fewer than -k 200; all are listed" in done.stderr
    assert "note:" not in invoke("index", "search", folder, second, "-k", 5).output


# ---- what is not overwritten, and where it goes
def test_no_command_overwrites_what_it_reads(tmp_path, files):
    data, given = tmp_path / "d.npy", tmp_path / "link.npy"
    np.save(data, np.random.default_rng(0).standard_normal((40, 16)))
    given.symlink_to(data)
    before = data.read_bytes()
    fasta_file = files[0]
    model = tmp_path / "d.encoder.similia"
    for arguments in (
        ["encode", data, "-o", data],
        ["encode", data, "-o", given],
        ["encode", tmp_path / ".." / tmp_path.name / "d.npy", "-o", data],
    ):
        result = runner.invoke(app, [str(a) for a in arguments])
        assert "is an input of this command and would be overwritten" in str(result.exception)
        assert data.read_bytes() == before
        assert not model.exists()
    invoke("index", "build", data, tmp_path / "index", "--bits", 8)
    for arguments in (["index", "search", tmp_path / "index", data, "-o", data], ["fit", fasta_file, "-o", fasta_file]):
        result = runner.invoke(app, [str(a) for a in arguments])
        assert "would be overwritten" in str(result.exception)
    sm.save(sm.SignRandomProjection(8, random_state=0).fit(np.load(data)), tmp_path / "model.npy")
    with pytest.raises(ValueError, match="would be overwritten"):
        encode(str(data), {}, tmp_path / "model.npy", model=tmp_path / "model.npy")
    assert data.read_bytes() == before


def test_the_encoder_beside_the_codes_is_no_input(tmp_path):
    data = tmp_path / "d.encoder.similia"
    data.write_text("data of another program")
    with pytest.raises(ValueError, match=r"d\.encoder\.similia is an input of this command"):
        encode(str(data), TABLE, tmp_path / "d.npy", **OPTIONS)


@pytest.mark.parametrize("command", [["index", "search", "INDEX", "FILE", "-o"], ["encode", "FILE", "-o"]])
def test_a_folder_that_is_not_there_is_named_at_once(command, tmp_path):
    output = tmp_path / "nodir" / ("f.npy" if command[0] == "encode" else "f.csv")
    result = runner.invoke(app, [*command, str(output)])  # neither INDEX nor FILE exists
    assert str(result.exception) == f"the folder {tmp_path / 'nodir'} does not exist; make it first"


# ---- names, removal, tables of numbers
def test_names_are_first_words_where_distinct(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text(">P1 tumour protein\nACGT\n>P2 other protein\nACGA\n")
    assert read_objects(str(path), text="text", label=None).names == ["P1", "P2"]
    path.write_text(">read 1\nACGT\n>read 2\nACGA\n>\nAC\n")
    assert read_objects(str(path), text="text", label=None).names == ["read 1", "read 2", ""]


def test_remove_by_id_and_name(files):
    first, _, folder = files
    invoke("index", "build", first, folder, "--landmarks", 16)
    shown = invoke("index", "remove", folder, 3, "first7", 3, "first59").output
    assert "removed 3" in shown
    assert "57 objects" in shown
    assert sorted(set(range(60)) - set(SearchFolder.open(folder).load().ids_.tolist())) == [3, 7, 59]
    for wanted in ("first7", "7", "nobody", "-3", "1.5"):
        with pytest.raises(ValueError, match=f"holds no object with the id or name {wanted}; nothing was removed"):
            commands.remove(folder, ["5", wanted])
    assert len(SearchFolder.open(folder)) == 57


def test_a_name_that_is_another_objects_id_is_not_removed(tmp_path):
    path = tmp_path / "x.fasta"
    path.write_text("".join(f">{9 - i}\n{word}\n" for i, word in enumerate(WORDS[:10])))
    invoke("index", "build", path, tmp_path / "index")
    with pytest.raises(ValueError, match="3 is the id of one object and the name of another, whose id is 6"):
        commands.remove(tmp_path / "index", ["3"])
    assert len(SearchFolder.open(tmp_path / "index")) == 10


def test_a_table_of_numbers_holds_vectors(tmp_path):
    rows = np.random.default_rng(0).normal(size=(40, 3)).round(3)
    text = "\n".join(["x,y,z", *(",".join(map(str, row)) for row in rows.tolist())])
    (tmp_path / "a.csv").write_text(text)
    with gzip.open(tmp_path / "b.csv.gz", "wt") as file:
        file.write(text)
    for name in ("a.csv", "b.csv.gz"):
        done = runner.invoke(
            app, ["index", "build", str(tmp_path / name), str(tmp_path / name) + ".index", "--bits", "8"]
        )
        assert "the objects are vectors of 3 numbers: 'x', 'y', 'z'" in done.stderr
        assert "40 vectors" in done.output
        assert read_objects(str(tmp_path / name)).objects.tolist() == rows.tolist()


# ---- unfinished indexes
def interrupted_build(files, monkeypatch):
    first, _, folder = files
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(2))
        with pytest.raises(KeyboardInterrupt):
            commands.build(first, TABLE, folder, **OPTIONS, **BUILD, chunk=13)


def test_an_interrupted_build_says_how_far_it_is_and_how_to_go_on(files, monkeypatch, capsys, tmp_path):
    first, second, folder = files
    interrupted_build(files, monkeypatch)
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "similia: stopped after 13 of 60; run the same command again to resume"
    with pytest.raises(ValueError, match=r"index is not finished \(it holds 13 of 60 from .*first\.fasta\)") as error:
        commands.build(first, TABLE, folder, **{**OPTIONS, "bits": 128}, **BUILD)
    for words in (
        "kernel Spectrum(k=2)",
        "--bits 64",
        "--landmarks 16",
        "--rerank kernel",
        "--kind exact",
        "--candidates 20",
    ):
        assert words in str(error.value)
    for command in (["search", folder, second, "-o", tmp_path / "found.csv"], ["add", second, folder]):
        done = invoke("index", *command)
        assert "is not finished: it holds 13 of 60 from" in " ".join(done.stderr.split())
    assert "note:" not in invoke("index", "add", first, folder).stderr  # which goes on
    assert "note:" not in invoke("index", "search", folder, second, "-o", tmp_path / "found.csv").stderr
    assert len(SearchFolder.open(folder)) == 90


def test_an_interrupted_addition_is_not_resumed_by_building(files, monkeypatch):
    first, second, folder = files
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(2))
        with pytest.raises(KeyboardInterrupt):
            commands.add(second, TABLE, folder, chunk=13)
    rest = f"and 13 objects from {second} were added to it; to add the rest: similia index add {second} {folder};"
    with pytest.raises(ValueError, match=re.escape(rest)):
        commands.build(second, TABLE, folder, **OPTIONS, **BUILD)
    invoke("index", "add", second, folder)
    assert len(SearchFolder.open(folder)) == 90


def test_a_build_that_is_stopped_while_it_learns(files, monkeypatch, capsys):
    first, _, folder = files
    with monkeypatch.context() as patch:
        patch.setattr(sm.SimilaritySearch, "fit", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    assert "stopped after 0 of 60" in capsys.readouterr().err
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    capsys.readouterr()
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    shown = capsys.readouterr().out
    assert f"already; to add its objects again: similia index add --again {first} {folder}" in shown


def test_a_build_is_not_resumed_with_another_file_even_if_it_holds_nothing_yet(files, monkeypatch):
    first, second, folder = files
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(1))
        with pytest.raises(KeyboardInterrupt):
            commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    with pytest.raises(ValueError, match=r"index is not finished \(it holds nothing yet\)"):
        commands.build(second, TABLE, folder, **OPTIONS, **BUILD)
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    assert len(SearchFolder.open(folder)) == 60


def test_an_index_of_piped_objects_says_so(files):
    first, second, folder = files
    build = ["index", "build", "-", str(folder), "--landmarks", "16", "--bits", "64"]
    for _ in range(2):
        shown = runner.invoke(app, build, input=Path(first).read_text()).output
    assert (
        f"standard input is in the index already; to add its objects again: similia index add --again - {folder}"
        in (shown)
    )
    other = runner.invoke(app, build, input=Path(second).read_text())
    assert f"similia index add - {folder}" in str(other.exception)
    invoke("index", "add", second, folder)
    sources = SearchFolder.open(folder).store.progress.values()
    assert [source["name"] for source in sources] == ["standard input", second]


def test_lines_on_the_terminal_end_as_lines_of_text_do(files):
    first, second, folder = files
    invoke("index", "build", first, folder, "--landmarks", 16, "--bits", 64)
    assert b"\r" not in invoke("index", "search", folder, second, "-k", 1).stdout_bytes


def test_ctrl_c_ends_with_one_line_and_130(files, tmp_path):
    first, _, _ = files
    script = tmp_path / "stopped.py"
    script.write_text(
        "import sys\n"
        "from similia.cli import main\n"
        "from similia.storage.disk import Journal\n"
        "append, calls = Journal.append, []\n"
        "def stopping(*a, **b):\n"
        "    calls.append(1)\n"
        "    if len(calls) == 3:\n"
        "        raise KeyboardInterrupt\n"
        "    return append(*a, **b)\n"
        "Journal.append = stopping\n"
        f"sys.argv = ['similia', 'encode', {first!r}, '-o', {str(tmp_path / 'codes.npy')!r}, '--chunk', '8']\n"
        "sys.argv += ['--bits', '32']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == "similia: stopped after 16 of 60; run the same command again to resume\n"
    assert "resuming after 16 of 60" in invoke("encode", first, "-o", tmp_path / "codes.npy", "--bits", 32).output


def test_info_of_a_folder_that_python_saved(tmp_path):
    encoder = make_pipeline(sm.Nystroem(sm.kernels.Spectrum(k=2), 8, random_state=0), sm.SignRandomProjection(64))
    index = sm.HammingIndex(64, kind="ivf")
    search = sm.SimilaritySearch(encoder, rerank=sm.distances.Levenshtein(), n_candidates=7, index=index).fit(WORDS)
    search.save(tmp_path / "saved")
    shown = invoke("index", "info", tmp_path / "saved").output
    for words in ("90 strings", "Spectrum(k=2)", "SignRandomProjection", "Levenshtein()", "7", "ivf"):
        assert words in shown
    sm.SimilaritySearch(encoder).fit(WORDS).save(tmp_path / "bits")
    shown = invoke("index", "info", tmp_path / "bits").output
    assert re.search(r"objects +│ 90 +│", shown)
    assert re.search(r"rerank +│ none +│", shown)


OPTIONS = {"kernel": "Spectrum(k=2)", "distance": None, "bits": 64, "landmarks": 16, "seed": 0}
TABLE = {"text": "text"}
BUILD = {"rerank": "kernel", "kind": "exact", "candidates": 20}


def stopping_at(call):
    """Return `SearchFolder._append` as it is, but interrupted at one call."""
    add, calls = SearchFolder._append, []

    def interrupted(*arguments, **more):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return add(*arguments, **more)

    return interrupted


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_an_interrupted_run_is_gone_on_with(files, stop, monkeypatch, tmp_path):
    first, second, folder = files
    commands.build(first, TABLE, tmp_path / "whole", **OPTIONS, **BUILD)
    commands.add(second, TABLE, tmp_path / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(stop))
        with pytest.raises(KeyboardInterrupt):
            commands.build(first, TABLE, folder, **OPTIONS, **BUILD, chunk=13)
    assert len(SearchFolder.open(folder)) == 13 * (stop - 1)
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD, chunk=8)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(stop))
        with pytest.raises(KeyboardInterrupt):
            commands.add(second, TABLE, folder, chunk=7)
    assert len(SearchFolder.open(folder)) == 60 + 7 * (stop - 1)
    commands.add(second, TABLE, folder, chunk=10)
    found, expected = SearchFolder.open(folder).load(), SearchFolder.open(tmp_path / "whole").load()
    assert found.objects_.tolist() == expected.objects_.tolist() == WORDS
    np.testing.assert_array_equal(found.index_.reconstruct(), expected.index_.reconstruct())
    np.testing.assert_array_equal(found.ids_, np.arange(90))


@pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")
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
    calls, store_append = [], Journal.append

    def append(*arguments, **more):
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return store_append(*arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", append)
        with pytest.raises(KeyboardInterrupt):
            encode(first, TABLE, output, **OPTIONS, chunk=8)
    assert not output.exists()
    calls.clear()
    monkeypatch.setattr(Journal, "append", lambda *a, **b: (calls.append(1), store_append(*a, **b))[1])
    encode(first, TABLE, output, **OPTIONS, chunk=8)
    assert len(calls) == 5  # of 60 words, 24 were there
    np.testing.assert_array_equal(np.load(output), sm.load(tmp_path / "codes.encoder.similia").transform(WORDS[:60]))


@pytest.mark.long
def test_kills_at_random_moments_lose_and_double_nothing():
    if not hasattr(sys, "getwindowsversion"):
        script = Path(__file__).parents[1] / "faults" / "kill_commands.py"
        command = [sys.executable, str(script), "30", "100"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=900)
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
    with pytest.raises(FileNotFoundError, match="no index at"):
        commands.info(folder)
    with pytest.raises(ValueError, match="exclude each other"):
        commands.build(first, TABLE, folder, **{**OPTIONS, "distance": "Levenshtein()"}, **BUILD)
    with pytest.raises(ValueError, match=r"no kernel or distance is called 'Nothing'"):
        commands.build(first, TABLE, folder, **OPTIONS, **{**BUILD, "rerank": "Nothing()"})
    assert not folder.exists()
    np.save(tmp_path / "v.npy", np.zeros((3, 2)))
    commands.build(first, TABLE, folder, **OPTIONS, **BUILD)
    with pytest.raises(ValueError, match=r"holds vectors, but .* is an index of strings"):
        commands.add(str(tmp_path / "v.npy"), {}, folder)
    with pytest.raises(ValueError, match=r"codes are written as \.npy; give"):
        encode(first, TABLE, tmp_path / "codes.csv", **OPTIONS)
    np.save(tmp_path / "cube.npy", np.zeros((3, 2, 2)))
    with pytest.raises(ValueError, match=r"expected numbers of shape \(n, n_features\)"):
        read_objects(str(tmp_path / "cube.npy"))
    (tmp_path / "no.npy").write_bytes(b"text")
    with pytest.raises(ValueError, match=r"is not an array that numpy\.save wrote"):
        read_objects(str(tmp_path / "no.npy"))
    fit = ["fit", str(tmp_path / "v.npy"), "-o", str(tmp_path / "m.similia")]
    with pytest.raises(ValueError, match=r"holds vectors without labels; write both with numpy\.savez"):
        runner.invoke(app, fit, catch_exceptions=False)


def unlike(n, seed):
    """Return random strings without near neighbours, of which codes find few."""
    return ["".join(row) for row in np.random.default_rng(seed).choice(list("ACGT"), (n, 24))]


def test_small_collections_get_as_many_candidates_as_find_the_neighbours(tmp_path):
    """The first number of candidates whose recall, counted here by hand, is 0.9; the search and the folder say it."""
    X, folder = unlike(300, 1), tmp_path / "index"
    said = invoke("index", "build", fasta(tmp_path / "a.fasta", X), folder, "--bits", 64, "--landmarks", 32)
    opened = SearchFolder.open(folder)
    search, seen = opened.load(), opened.store.meta["recall"]
    rows = np.sort(np.random.default_rng(0).permutation(300)[:100])
    distances = sm.distances.Levenshtein()([X[row] for row in rows], X)
    recalls = {}
    for count in (100, 200, 500):
        ids = search.set_params(n_candidates=count).kneighbors([X[row] for row in rows], 11)[1]
        limits = np.sort(distances, axis=1)[:, 10]
        near = sum(distances[q, i] <= limits[q] for q, found in enumerate(ids.tolist()) for i in found if i != rows[q])
        recalls[count] = near / 1000
    chosen = next((count for count, recall in recalls.items() if recall >= 0.9), 500)
    assert chosen > 100  # or the test shows nothing
    assert opened.search.n_candidates == opened.store.meta["candidates"] == seen["candidates"] == chosen
    assert seen["recall"] == pytest.approx(recalls[chosen])
    assert f"recall {recalls[chosen]:.2f}: " in said.output
    assert f"found among {min(300, chosen)} candidates" in " ".join(said.output.split())
    assert f"{recalls[chosen]:.2f} of the 10 nearest" in " ".join(invoke("index", "info", folder).output.split())
    again = invoke("index", "build", tmp_path / "a.fasta", folder, "--bits", 64, "--landmarks", 32)
    assert "in the index already" in again.output


def test_a_search_with_a_low_recall_says_so(tmp_path):
    data, folder = fasta(tmp_path / "a.fasta", unlike(300, 1)), tmp_path / "index"
    built = invoke("index", "build", data, folder, "--bits", 64, "--landmarks", 32, "--candidates", 20)
    query = fasta(tmp_path / "q.fasta", unlike(1, 2))
    told = invoke("index", "search", folder, query, "-k", 2, "-o", tmp_path / "found.csv")
    for said in (built, told):
        assert "similia index search --candidates NUMBER, without building again" in " ".join(said.output.split())
    assert "warning: neighbours may be missing (found: 0." in told.output
    assert f"wrote {tmp_path / 'found.csv'}: 2 neighbours" in "".join(told.output.splitlines())
    more = invoke("index", "search", folder, query, "-k", 2, "--candidates", 300, "-o", tmp_path / "found.csv")
    assert "warning" not in more.output


def test_the_recall_of_one_candidate_is_not_measured(files):
    said = " ".join(invoke("index", "build", files[0], files[2], "--landmarks", 16, "--candidates", 1).output.split())
    assert "recall not measured, because the one candidate of an object is itself" in said


def test_the_recall_without_a_kernel_or_distance_is_not_measured(tmp_path):
    np.save(tmp_path / "x.npy", np.random.default_rng(0).normal(size=(30, 8)))
    build = ("index", "build", tmp_path / "x.npy", tmp_path / "index", "--by", "vectors", "--rerank", "none")
    said = " ".join(invoke(*build).output.split())
    assert "recall not measured, because no kernel or distance says what is near" in said


def test_an_index_in_a_folder_that_is_not_there(tmp_path):
    error = invoke("index", "build", fasta(tmp_path / "a.fasta", WORDS), tmp_path / "no/sub/index", code=1).exception
    assert str(error) == f"the folder {tmp_path / 'no/sub'} does not exist; make it first"
    assert not (tmp_path / "no").exists()
