"""The commands on streams: options of memory and clusters, progress, samples, what is known of an unfinished file."""

import gzip
import re
import sys

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import similia as sm
from similia.cli import encoders
from similia.cli import index as commands
from similia.cli.app import app
from similia.cli.encode import encode as cli_encode
from similia.cli.encoders import sample_of
from similia.cli.inputs import open_objects, read_objects
from similia.cli.options import parse_workers
from similia.cli.predict import predict
from similia.core import config as _progress
from similia.search.on_disk import SearchFolder
from similia.sources.source import Held
from similia.sources.streams import open_stream
from similia.storage.disk import Journal

runner = CliRunner()
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (90, 20))]
OPTIONS = ["--kernel", "Spectrum(k=2)", "--bits", 64, "--landmarks", 16]


def fasta(path, words=WORDS):
    path.write_text("".join(f">{path.stem}{i} of many\n{word}\n" for i, word in enumerate(words)))
    return str(path)


def invoke(*arguments, code=0):
    result = runner.invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def refused(*arguments):
    return str(runner.invoke(app, [str(a) for a in arguments]).exception)


def stopping_at(call, method):
    calls = []

    def stopping(*arguments):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return method(*arguments)

    return stopping


# ---- clusters and memory
def test_a_local_cluster_makes_the_same_codes(tmp_path):
    pytest.importorskip("distributed")
    data = fasta(tmp_path / "a.fasta")
    invoke("encode", data, "-o", tmp_path / "here.npy", *OPTIONS)
    encoder = tmp_path / "here.encoder.similia"
    invoke("encode", data, "-o", tmp_path / "there.npy", "--model", encoder, "--cluster", "local:2", "--chunk", 9)
    np.testing.assert_array_equal(np.load(tmp_path / "here.npy"), np.load(tmp_path / "there.npy"))
    np.testing.assert_array_equal(np.load(tmp_path / "here.npy"), sm.load(encoder).transform(WORDS))


def test_results_do_not_depend_on_memory(tmp_path):
    data = fasta(tmp_path / "a.fasta")
    for name, memory in [("large", "1GiB"), ("small", "256KiB")]:
        invoke("encode", data, "-o", tmp_path / f"{name}.npy", *OPTIONS, "--max-memory", memory)
        invoke("index", "build", data, tmp_path / name, *OPTIONS, "--max-memory", memory)
    np.testing.assert_array_equal(np.load(tmp_path / "large.npy"), np.load(tmp_path / "small.npy"))
    large, small = (SearchFolder.open(tmp_path / name) for name in ("large", "small"))
    assert len(large.store.manifest["segments"]) == 1
    assert len(small.store.manifest["segments"]) == 23  # 4 objects each
    np.testing.assert_array_equal(large.load().index_.reconstruct(), small.load().index_.reconstruct())
    assert "is not a size" in refused("encode", data, "-o", tmp_path / "x.npy", "--max-memory", "much")


def test_which_workers_are_asked_for(monkeypatch, tmp_path):
    assert parse_workers(None, None) is None
    assert parse_workers("local:3", None) == 3
    assert parse_workers("local", None) >= 1
    assert parse_workers(None, "tcp://10.0.0.1:8786") == "tcp://10.0.0.1:8786"
    data = fasta(tmp_path / "a.fasta")
    for command in (["encode", data, "-o", tmp_path / "x.npy"], ["index", "build", data, tmp_path / "index"]):
        assert "drop one of them" in refused(*command, "--cluster", "local", "--scheduler", "tcp://a:1")
        for wrong in ("remote", "local:0", "local:x", "local:"):
            assert f"must be local or local:N, such as local:4, got {wrong}" in refused(*command, "--cluster", wrong)
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, "distributed", None)
            assert "pip install 'similia[dask]'" in refused(*command, "--cluster", "local:2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.fasta"]


# ---- what a model says
def test_an_encoder_makes_no_predictions_and_says_how_bits_are_made(tmp_path):
    encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, 128, random_state=0).fit(WORDS, ["a", "b"] * 45)[:-1]
    model, data = sm.save(encoder, tmp_path / "encoder.similia"), fasta(tmp_path / "w.fasta")
    assert "cannot predict (is it an encoder?)" in refused("predict", model, data)
    output = tmp_path / "x.npy"
    options = {"kernel": "Spectrum()", "distance": "DTW()", "bits": 256, "landmarks": 9, "seed": 0}
    for option, value in options.items():
        said = refused("encode", data, "-o", output, "--model", model, f"--{option}", value)
        assert said.startswith(f"--{option} is for fitting an encoder")
        assert said.endswith(f"drop --{option} or --model")
    assert not output.exists()


def test_a_note_where_another_run_left_something(tmp_path, monkeypatch):
    data, output = fasta(tmp_path / "w.fasta"), tmp_path / "x.npy"
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stopping_at(3, Journal.append))
        invoke("encode", data, "-o", output, "--chunk", 10, code=130)
    assert "this run starts again" in invoke("encode", data, "-o", output, "--seed", 1).output
    assert len(np.load(output)) == len(WORDS)


# ---- predictions
def test_predictions_are_complete_or_not_there(tmp_path, monkeypatch, capsys):
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, 128, random_state=0).fit(WORDS, ["a", "b"] * 45)
    sm.save(model, tmp_path / "m.similia")
    data, output = fasta(tmp_path / "w.fasta"), tmp_path / "p.csv"
    expected = ["name,label", *(f"w{i},{label}" for i, label in enumerate(model.predict(WORDS)))]
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stopping_at(4, Journal.append))
        with pytest.raises(KeyboardInterrupt):
            predict(tmp_path / "m.similia", data, {"text": "text"}, output, chunk=8)
    assert not output.exists()
    assert capsys.readouterr().err == "similia: stopped after 24 objects; run the same command again to resume\n"
    shown = invoke("predict", tmp_path / "m.similia", data, "-o", output, "--chunk", 9).output
    assert "resuming after 24 objects" in shown
    assert "wrote 90 predictions to" in shown
    assert output.read_text().split() == expected
    assert invoke("predict", tmp_path / "m.similia", data, "--chunk", 7).output.split() == expected


def test_damage_is_a_warning(tmp_path, monkeypatch):
    data, output = fasta(tmp_path / "a.fasta"), tmp_path / "codes.npy"
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stopping_at(4, Journal.append))
        invoke("encode", data, "-o", output, *OPTIONS, "--chunk", 10, code=130)
    file = tmp_path / "codes.npy.partial" / "data"
    file.write_bytes(file.read_bytes()[:-1])
    done = invoke("encode", data, "-o", output, *OPTIONS)
    assert "warning:" in done.stderr
    assert "is damaged after object 20; the 10 objects after it are done again" in " ".join(done.stderr.split())
    assert "resuming after 20 of 90" in done.output
    np.testing.assert_array_equal(np.load(output), sm.load(tmp_path / "codes.encoder.similia").transform(WORDS))


# ---- an addition of unknown length
def test_an_unfinished_addition_whose_length_is_not_known(tmp_path, monkeypatch, capsys):
    first, second, folder = (
        fasta(tmp_path / "a.fasta", WORDS[:60]),
        fasta(tmp_path / "b.fasta", WORDS),
        tmp_path / "index",
    )
    invoke("index", "build", first, folder, *OPTIONS)
    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", stopping_at(3, SearchFolder._append))
        with pytest.raises(KeyboardInterrupt):
            commands.add(second, {"text": "text"}, folder, chunk=13)
    assert "stopped after 26 objects" in capsys.readouterr().err
    assert re.search("26 objects.*not finished: run the same command again", invoke("index", "info", folder).output)
    done = invoke("index", "search", folder, first, "-k", 1, "-o", tmp_path / "x.csv")
    assert "it holds 26 objects from" in " ".join(done.stderr.split())
    same = tmp_path / "renamed.fa"
    same.write_bytes((tmp_path / "b.fasta").read_bytes())
    shown = invoke("index", "add", same, folder).output
    assert "resuming after 26 objects" in shown
    assert "150 objects" in shown
    assert "--again adds its 90 strings again" in invoke("index", "add", second, folder).output
    assert "90 of 90" in invoke("index", "info", folder).output


def test_a_disk_that_is_full_while_an_index_grows(tmp_path, monkeypatch):
    first, folder = fasta(tmp_path / "a.fasta"), tmp_path / "index"
    append, calls = SearchFolder._append, []

    def full(*arguments):
        calls.append(1)
        if len(calls) == 3:
            raise OSError(28, "No space left on device")
        return append(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(SearchFolder, "_append", full)
        said = refused("index", "build", first, folder, *OPTIONS, "--chunk", 10)
    assert said == (
        f"the disk is full (No space left on device); {folder} keeps the 20 objects that are done: "
        "make room and run the same again"
    )
    assert "resuming after 20 of 90" in invoke("index", "build", first, folder, *OPTIONS).output
    assert SearchFolder.open(folder).load().ids_.tolist() == list(range(90))


# ---- samples
@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(encoders, "FIT_ON", 12)


def test_a_sample_does_not_depend_on_chunks(small, tmp_path):
    path = fasta(tmp_path / "a.fasta")
    samples = [sample_of(open_stream(path, chunk=chunk), seed=3) for chunk in (1, 2, 7, 30, 89, 90, 1000)]
    for n, sample, numbers in samples:
        assert n == 90
        assert sample.objects.tolist() == samples[0][1].objects.tolist() == [WORDS[i] for i in numbers]
    rows = [WORDS.index(word) for word in samples[0][1].objects.tolist()]
    assert (len(rows), rows) == (12, sorted(set(rows)))
    drawn = np.random.default_rng(3).random(90)
    assert rows == sorted(np.argsort(drawn)[:12].tolist())
    n, few, _ = sample_of(open_stream(WORDS[:12], chunk=5), seed=3)
    assert (n, few.objects.tolist()) == (12, WORDS[:12])


def test_a_sample_of_long_objects_is_smaller(small, monkeypatch):
    monkeypatch.setattr(encoders, "FIT_BYTES", 100)
    lengths = np.random.default_rng(0).integers(1, 60, 200).tolist()
    words = ["A" * length for length in lengths]
    order = np.argsort(np.random.default_rng(1).random(200))
    most = next(k for k in range(1, 13) if sum(lengths[i] for i in order[: k + 1]) > 100)
    for chunk in (1, 13, 200):
        assert sample_of(open_stream(words, chunk=chunk), 1)[1].objects.tolist() == [
            words[i] for i in np.sort(order[:most])
        ]
    assert len(sample_of(open_stream(["A" * 101, "A" * 102], chunk=1), 1)[1].objects) == 1


def test_each_object_is_as_likely_in_a_sample(small):
    counts = np.zeros(60, int)
    for seed in range(400):
        vectors = np.arange(60.0)[:, None]
        counts[sample_of(open_stream(vectors, chunk=7), seed)[1].objects[:, 0].astype(int)] += 1
    assert counts.sum() == 400 * 12
    assert np.sum((counts - 80) ** 2 / 80) < 59 + 4 * np.sqrt(2 * 59)  # chi squared


# ---- what is opened
def test_small_collections_are_streams_too(tmp_path):
    read = read_objects("promoters")
    stream = open_objects("promoters", chunk=40)
    assert isinstance(stream, Held)
    assert (stream.n, stream.kind) == (106, "strings")
    assert [(chunk.start, chunk.stop) for chunk in stream.chunks(30)] == [(30, 70), (70, 106)]
    assert [word for chunk in stream.chunks() for word in chunk.objects.tolist()] == read.objects.tolist()
    other = Held(read_objects("splice"), 10)
    assert len({stream.fingerprint(), other.fingerprint(), open_objects("promoters", chunk=1).fingerprint()}) == 2


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", "", "a.csv is empty"),
        ("a.csv", "x,y\nB,A\n", "has no column 'text' and 2 columns of text: 'x', 'y'"),
        ("a.csv", "x,y\n,\n", "has no column 'text'; it has 'x', 'y'"),
        ("a.fasta", "ACGT\n", "expected '>name'"),
        ("a.npy", "no", "an array that numpy.save wrote"),
        ("a.xyz", "no", "has an unknown ending"),
    ],
)
def test_what_cannot_be_read_is_refused_before_anything_is_made(name, content, said, tmp_path):
    (tmp_path / name).write_text(content)
    for command in (["encode", "-o", tmp_path / "x.npy"], ["index", "build", tmp_path / "index"]):
        assert said in refused(*command, tmp_path / name) or said in refused(
            *command[:2], tmp_path / name, *command[2:]
        )
        assert [path.name for path in tmp_path.iterdir()] == [name]


# ---- progress
def test_a_log_gets_lines_with_rate_and_time_left(tmp_path, monkeypatch):
    monkeypatch.setattr(_progress, "_EVERY", 0.0)
    data = fasta(tmp_path / "a.fasta")
    said = invoke("encode", data, "-o", tmp_path / "x.npy", *OPTIONS, "--chunk", 10).stderr.splitlines()
    assert re.fullmatch(r"objects: 10 of 90, [\d,]+/s, \d+ s left", said[-9])
    assert re.fullmatch(r"objects: 90 of 90, [\d,]+/s, 0 s left", said[-1])
    assert re.fullmatch(r"sample: 90, [\d,]+/s.*", said[-10])
    shown = invoke("encode", data, "-o", tmp_path / "y.npy", "--model", tmp_path / "x.encoder.similia", "--chunk", 10)
    lines = shown.stderr.splitlines()  # bytes tell how far it is
    assert re.fullmatch(r"objects: 10, [\d,]+/s", lines[0])
    assert re.fullmatch(r"objects: 90, [\d,]+/s(, 0 s left)?", lines[-1])


def test_time_left_by_number_or_bytes(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(_progress.time, "monotonic", lambda: clock[0])
    by_number, by_bytes = _progress._Pace(1000, 5000, None), _progress._Pace(0, None, 4000)
    clock[0] += 10
    assert by_number.update(2000, 0) == "2,000 of 5,000, 100/s, 30 s left"
    assert by_bytes.update(50, 1000) == "50, 5/s"
    clock[0] += 10
    assert by_bytes.update(100, 2000) == "100, 5/s, 20 s left"
    assert by_bytes.fraction == 0.5
    assert [_progress._duration(s) for s in (7, 99, 100, 5900, 7300)] == ["7 s", "99 s", "2 min", "98 min", "2 h 2 min"]


def test_a_bar_on_a_terminal_and_loops_inside_are_lines_of_it(monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with sm.config(progress=True), _progress.meter("objects", total=30) as update:
        assert list(_progress.track([1, 2], "inside")) == [1, 2]
        update(10, 0)
        bar = _progress._display.tasks[0]
        assert (bar.percentage, bar.fields["said"][:8]) == (pytest.approx(100 / 3), "10 of 30")
    assert _progress._display is None
    with _progress.meter("objects") as update:
        assert _progress._display is None  # switched off
        update(1, 1)


@pytest.mark.parametrize("name", ["b.csv", "b.csv.gz", "b.fasta", "b.parquet"])
def test_a_bad_object_is_named_by_its_file_and_line(name, tmp_path):
    words = [*WORDS[:40]]
    kernel = ("--kernel", "Spectrum(k=2,reverse_complement=True)")
    good, bad = tmp_path / "good.csv", tmp_path / name
    good.write_text("id,text,label\n" + "".join(f"r{i},{word},{i % 2}\n" for i, word in enumerate(words)))
    invoke("fit", good, *kernel, "-o", tmp_path / "model", "--test", 0)
    invoke("index", "build", good, tmp_path / "index", *kernel)
    words[30] = "AC-GT"
    text = "id,text\n" + "".join(f"r{i},{word}\n" for i, word in enumerate(words))
    place = "line 32"
    if name == "b.parquet":
        parquet.write_table(pa.table({"text": words}), bad)
        place = "object 30 (counted from 0)"
    elif name == "b.fasta":
        bad.write_text("".join(f">r{i}\n{word}\n" for i, word in enumerate(words)))
        place = "object 30 (counted from 0), 'r30'"
    else:
        bad.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    for command in (
        ("predict", tmp_path / "model", bad),
        ("predict", tmp_path / "model", bad, "--chunk", 7, "-o", tmp_path / "labels.csv"),
        ("encode", bad, "-o", tmp_path / "codes.npy", "--model", tmp_path / "index", "--chunk", 7),
        ("encode", bad, "-o", tmp_path / "more.npy", *kernel),
        ("index", "build", bad, tmp_path / "other", *kernel),
        ("index", "add", bad, tmp_path / "index"),
        ("index", "search", tmp_path / "index", bad),
    ):
        assert f"{bad}, {place}: it holds '-' at position 2" in refused(*command), command


# ---- a run begun in Python goes on from the command line, and the other way round
def stopped(monkeypatch, call, run):
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", stopping_at(call, Journal.append))
        with pytest.raises(KeyboardInterrupt):
            run()


def appended(monkeypatch):
    """Return a list that grows with the numbers of the objects that are committed from now on."""
    stops, append = [], Journal.append
    monkeypatch.setattr(Journal, "append", lambda self, data, stop: (stops.append(stop), append(self, data, stop))[1])
    return stops


@pytest.mark.parametrize("began", ["python", "command"])
def test_codes_go_on_from_the_other_side(began, tmp_path, monkeypatch):
    data, codes = fasta(tmp_path / "a.fasta"), tmp_path / "codes.npy"
    invoke("encode", data, "-o", tmp_path / "whole.npy", *OPTIONS)
    encoder = tmp_path / "whole.encoder.similia"

    def python():
        sm.scale.encode_stream(sm.load(encoder), data, codes, chunk=10)

    def command():
        cli_encode(data, {}, codes, model=encoder, chunk=10)

    stopped(monkeypatch, 4, python if began == "python" else command)
    stops = appended(monkeypatch)
    (command if began == "python" else python)()
    assert stops == [40, 50, 60, 70, 80, 90]
    assert codes.read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_python_finishes_codes_of_an_encoder_that_the_command_fitted(tmp_path, monkeypatch):
    data, codes = fasta(tmp_path / "a.fasta"), tmp_path / "codes.npy"
    options = {"kernel": "Spectrum(k=2)", "bits": 64, "landmarks": 16}
    stopped(monkeypatch, 3, lambda: cli_encode(data, {}, codes, chunk=10, **options))
    encoder = sm.load(tmp_path / "codes.encoder.similia")
    stopped(monkeypatch, 3, lambda: sm.scale.encode_stream(encoder, data, codes, chunk=10))
    stops = appended(monkeypatch)
    cli_encode(data, {}, codes, chunk=10, **options)
    assert stops == [50, 60, 70, 80, 90]
    np.testing.assert_array_equal(np.load(codes), encoder.transform(WORDS))


@pytest.mark.parametrize("began", ["python", "command"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_predictions_go_on_from_the_other_side(began, ending, tmp_path, monkeypatch):
    data, labels = fasta(tmp_path / "a.fasta"), tmp_path / f"labels.{ending}"
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 8, 64, random_state=0).fit(WORDS, np.arange(90) % 2)
    sm.save(model, tmp_path / "model.similia")

    def python():
        sm.scale.predict_stream(sm.load(tmp_path / "model.similia"), data, labels, scores=True, chunk=10)

    def command():
        predict(tmp_path / "model.similia", data, {}, labels, scores=True, chunk=10)

    python()
    whole = labels.read_bytes()
    labels.unlink()
    stopped(monkeypatch, 4, python if began == "python" else command)
    stops = appended(monkeypatch)
    (command if began == "python" else python)()
    assert stops == [40, 50, 60, 70, 80, 90]
    assert labels.read_bytes() == whole


def test_other_data_or_another_model_start_again(tmp_path, monkeypatch):
    data, codes = fasta(tmp_path / "a.fasta"), tmp_path / "codes.npy"
    invoke("encode", data, "-o", tmp_path / "whole.npy", *OPTIONS)
    invoke("encode", data, "-o", tmp_path / "other.npy", *OPTIONS, "--seed", 1)
    encoder, other = (sm.load(tmp_path / f"{name}.encoder.similia") for name in ("whole", "other"))
    for model, words in [(other, WORDS), (encoder, WORDS[::-1])]:
        stopped(monkeypatch, 4, lambda: sm.scale.encode_stream(encoder, data, codes, chunk=10))
        path = fasta(tmp_path / "a.fasta", words)
        sm.scale.encode_stream(model, path, codes, chunk=10)
        np.testing.assert_array_equal(np.load(codes), model.transform(words))
        fasta(tmp_path / "a.fasta")
