"""Streams against the same work in memory: bit for bit, whatever the chunks, the workers and the stops."""

import copy
import csv
import gzip
import os
import threading
import time
import warnings
from itertools import islice

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from similia.core.validation import ObjectsWarning
from similia.scale import workers as _workers
from similia.scale.stream import add_stream, bounds, encode_stream, partial_of, predict_stream
from similia.search.on_disk import SearchFolder
from similia.sources.streams import ObjectStream, open_stream
from similia.storage.disk import Journal

N = 103
RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("ACGT"), RNG.integers(6, 30))) for _ in range(N)]
VECTORS = RNG.standard_normal((N, 12))
ENCODER = make_pipeline(
    sm.Nystroem(sm.kernels.Spectrum(k=2, normalize=True), 16, random_state=0),
    sm.SignRandomProjection(64, random_state=0),
).fit(WORDS)
MODEL = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 16, 256, random_state=0).fit(WORDS, np.arange(N) % 3)
CODES = ENCODER.transform(WORDS)


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def sources(folder):
    """The same words in every form."""
    fasta = "".join(f">w{i} and more\n{word}\n" for i, word in enumerate(WORDS))
    (folder / "a.fasta").write_text(fasta)
    with gzip.open(folder / "a.fasta.gz", "wt") as file:
        file.write(fasta)
    (folder / "a.csv").write_text("id,text\n" + "".join(f'{i},"{word}"\n' for i, word in enumerate(WORDS)))
    yield from (folder / name for name in ("a.fasta", "a.fasta.gz", "a.csv"))
    yield WORDS
    yield (word for word in WORDS)
    yield sm.objects.as_strings(WORDS)
    yield (sm.objects.as_strings(part) for part in (WORDS[:50], WORDS[50:51], WORDS[51:]))


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # scikit-learn gets parts as arrays
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_with_other_columns_than_in_fit_is_refused(library, tmp_path):
    frames = pytest.importorskip(library)
    X = frames.DataFrame({name: VECTORS[:, i] for i, name in enumerate("abc")})
    encoder = make_pipeline(StandardScaler(), sm.SignRandomProjection(64, random_state=0)).fit(X)
    encode_stream(encoder, X, tmp_path / "codes.npy", chunk=10)
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), encoder.transform(X))
    model = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, np.arange(N) % 2)
    predict_stream(model, X, tmp_path / "p.csv", chunk=10)
    with pytest.raises(ValueError, match="but in another order"):
        encode_stream(encoder, X[["c", "b", "a"]], tmp_path / "other.npy")
    with pytest.raises(ValueError, match="but in another order"):
        predict_stream(model, X[["c", "b", "a"]], tmp_path / "other.csv")
    assert not [*tmp_path.glob("other*")]


@pytest.mark.same_bits
def test_as_in_memory_for_any_chunk_and_source(tmp_path):
    for chunk in (1, 10, 102, 103, 10_000):
        for number, source in enumerate(sources(tmp_path)):
            output = tmp_path / f"{number}.npy"
            assert encode_stream(ENCODER, source, output, chunk=chunk) == N
            np.testing.assert_array_equal(np.load(output), CODES)
            assert not partial_of(output).exists()
    mapped = np.load(output, mmap_mode="r")
    assert (mapped.dtype, mapped.shape, mapped.offset) == (np.uint8, (N, 8), 128)


def test_vectors_and_little_memory(tmp_path):
    np.save(tmp_path / "v.npy", VECTORS)
    encoder = sm.SignRandomProjection(64, random_state=0).fit(VECTORS)
    with sm.config(max_memory=2**18):
        assert bounds(10_000)["chunk"] == 4
        encode_stream(encoder, tmp_path / "v.npy", tmp_path / "codes.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), encoder.transform(VECTORS))
    fourier = sm.OpticalRandomFeatures(5, random_state=0).fit(VECTORS)
    encode_stream(fourier, VECTORS, tmp_path / "f.npy", chunk=11)
    found = np.load(tmp_path / "f.npy")
    assert found.dtype == fourier.transform(VECTORS).dtype
    np.testing.assert_allclose(found, fourier.transform(VECTORS), rtol=1e-5, atol=1e-6)


def test_bounds_hold_memory_whatever_the_workers():
    with sm.config(max_memory="1GiB"):
        assert bounds(10_000) == {"chunk": 10_000, "max_bytes": 2**24}
        assert bounds(10_000, 7)["max_bytes"] == 2**22
        assert bounds(10_000, "tcp://somewhere:1")["max_bytes"] == 2**21
        assert bounds(10**9)["chunk"] == 2**14


def test_predictions_with_names_or_numbers(tmp_path):
    expected = MODEL.predict(WORDS).tolist()
    for source in sources(tmp_path):
        named = str(source).endswith((".fasta", ".gz"))
        for chunk in (9, 1000):
            assert (
                predict_stream(
                    MODEL, source if not hasattr(source, "send") else iter(WORDS), tmp_path / "p.csv", chunk=chunk
                )
                == N
            )
            with (tmp_path / "p.csv").open(newline="") as file:
                rows = list(csv.reader(file))
            assert rows[0] == ["name" if named else "row", "label"]
            assert rows[1:] == [[f"w{i}" if named else str(i), str(label)] for i, label in enumerate(expected)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_no_output(tmp_path):
    os.mkfifo(tmp_path / "p.csv")
    with pytest.raises(ValueError, match=r"p\.csv is a folder, a pipe or a device"):
        predict_stream(MODEL, WORDS, tmp_path / "p.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_columns_of_what_is_open_or_has_none_are_refused(tmp_path):
    bag = pytest.importorskip("dask.bag").from_sequence(WORDS)
    table = tmp_path / "w.csv"
    table.write_text("id,text\n" + "".join(f"w{i},{word}\n" for i, word in enumerate(WORDS)))
    np.savez(tmp_path / "w.npz", X=np.array(WORDS))
    for source, found in [
        (bag, "is for files; give it to"), (open_stream(table), "is for files; give it to"),
        (tmp_path / "w.npz", "has no columns"), (iter(WORDS), "has no columns"),
    ]:  # fmt: skip
        for option in ("names", "text"):
            with pytest.raises(ValueError, match=found):
                predict_stream(MODEL, source, tmp_path / "p.csv", **{option: "id"})
    assert predict_stream(MODEL, open_stream(table, names="id", text="text"), tmp_path / "p.csv") == N
    assert (tmp_path / "p.csv").read_text().startswith("id,label\nw0,")


def test_the_columns_of_a_table_are_those_to_which_the_model_was_fitted(tmp_path):
    encoder, table = copy.copy(ENCODER), tmp_path / "w.csv"
    encoder.table_columns_ = {"text": "read", "label": "text"}
    table.write_text("text,read\n" + "".join(f"AC,{word}\n" for word in WORDS))
    encode_stream(encoder, table, tmp_path / "c.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "c.npy"), CODES)


# ---- interrupted and resumed
class Stopping:
    """`Journal.append` that is interrupted at one call, before or after it has done its work."""

    def __init__(self, call, error, after=False):
        self.call, self.error, self.after, self.calls, self.append = call, error, after, 0, Journal.append

    def __get__(self, journal, owner):
        def append(*arguments):
            self.calls += 1
            if self.calls == self.call and not self.after:
                raise self.error
            self.append(journal, *arguments)
            if self.calls == self.call:
                raise self.error

        return append


def interrupted(monkeypatch, stopping, work, *arguments, owner=Journal, method="append", **options):
    """Call `work` with a method that stops."""
    with monkeypatch.context() as patch:
        patch.setattr(owner, method, stopping)
        with pytest.raises(type(getattr(stopping, "error", KeyboardInterrupt()))):
            work(*arguments, **options)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("cut"), MemoryError()])
def test_stopped_at_each_chunk_and_gone_on_with_other_chunks(error, after, tmp_path, monkeypatch):
    for source in list(sources(tmp_path))[:3]:
        for call in range(1, 12):
            output = tmp_path / f"{call}.npy"
            interrupted(monkeypatch, Stopping(call, error, after), encode_stream, ENCODER, source, output, chunk=10)
            assert not output.exists()
            stopped = Stopping(0, error)
            with monkeypatch.context() as patch:
                patch.setattr(Journal, "append", stopped)
                encode_stream(ENCODER, source, output, chunk=7)
            assert stopped.calls == -(-max(0, N - 10 * (call - 1 + after)) // 7)
            np.testing.assert_array_equal(np.load(output), CODES)
            output.unlink()


def test_what_is_no_longer_the_same_work_starts_anew(tmp_path, monkeypatch):
    path, output = tmp_path / "a.fasta", tmp_path / "p.csv"
    other = sm.recipes.nyshd(sm.kernels.Spectrum(k=1), 4, 256, random_state=1).fit(WORDS, ["x", "y"] * 51 + ["x"])
    for change in ("model", "file", "iterable"):
        list(sources(tmp_path))
        source = iter(WORDS) if change == "iterable" else path
        interrupted(monkeypatch, Stopping(4, KeyboardInterrupt()), predict_stream, MODEL, source, output, chunk=10)
        assert partial_of(output).exists()
        words = WORDS[:40] if change == "file" else WORDS
        if change == "file":
            path.write_text("".join(f">w{i}\n{word}\n" for i, word in enumerate(words)))
        model = other if change == "model" else MODEL
        assert predict_stream(model, iter(WORDS) if change == "iterable" else path, output, chunk=10) == len(words)
        found = [line.split(",")[1] for line in output.read_text().split()[1:]]
        assert found == [str(label) for label in model.predict(words)]


def test_damage_is_said_and_done_again(tmp_path, monkeypatch):
    path, output = next(iter(sources(tmp_path))), tmp_path / "codes.npy"
    interrupted(monkeypatch, Stopping(8, KeyboardInterrupt()), encode_stream, ENCODER, path, output, chunk=10)
    data = partial_of(output) / "data"
    content = bytearray(data.read_bytes())
    content[128 + 8 * 35] ^= 64
    data.write_bytes(content)
    with pytest.warns(UserWarning, match="damaged after object 30; the 40 objects after it are done again"):
        encode_stream(ENCODER, path, output, chunk=10)
    np.testing.assert_array_equal(np.load(output), CODES)


@pytest.mark.parametrize("rerank", [None, "kernel", "projected"])
def test_an_index_stopped_at_each_chunk(rerank, tmp_path, monkeypatch):
    path = next(iter(sources(tmp_path)))
    expected = sm.SimilaritySearch(ENCODER, rerank).fit(WORDS)
    for call in (1, 3, 5):
        folder, append, calls = SearchFolder.create(tmp_path / f"index {call}", expected), SearchFolder._append, []

        def stopping(*arguments, call=call, append=append, calls=calls):
            calls.append(1)
            if len(calls) == call:
                raise KeyboardInterrupt
            return append(*arguments)

        stream = open_stream(path, chunk=20)
        interrupted(monkeypatch, stopping, add_stream, folder, stream, owner=SearchFolder, method="_append")
        said = []
        folder = SearchFolder.open(tmp_path / f"index {call}")
        assert len(folder) == 20 * (call - 1)
        assert add_stream(folder, open_stream(path, chunk=9), say=said.append)
        assert said == ([f"resuming after {20 * (call - 1)} objects"] if call > 1 else [])
        assert not add_stream(folder, open_stream(path, chunk=9))
        found, names = SearchFolder.open(tmp_path / f"index {call}").load_named()
        np.testing.assert_array_equal(found.ids_, np.arange(N))
        np.testing.assert_array_equal(found.index_.reconstruct(), expected.index_.reconstruct())
        assert list(names.values()) == [f"w{i}" for i in range(N)]
        assert (found.objects_ is None) == (rerank != "kernel")
        if rerank == "projected":
            np.testing.assert_allclose(found.vectors_, expected.vectors_, atol=1e-6)
    assert add_stream(folder, open_stream(path), again=True)
    assert len(folder) == 2 * N


# ---- the object that fails
class Refusing(TransformerMixin, BaseEstimator):
    """Encodes a string as its length, but not some."""

    def __init__(self, bad, error):
        self.bad, self.error = bad, error

    def transform(self, X):
        words = list(X)
        if self.bad in words:
            raise self.error
        return np.array([[len(word)] for word in words], np.uint8)


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ZeroDivisionError("by zero"), ValueError, r"^X\[73\]: ZeroDivisionError: by zero$"),
        (ValueError("no word"), ValueError, r"^X\[73\]: no word$"),
        (TypeError("of another type"), TypeError, r"^X\[73\]: of another type$"),
        (MemoryError("4 GB"), OSError, r"^objects \d+ to \d+ do not fit into memory together \(4 GB\); lower chunk"),
    ],
)
@pytest.mark.parametrize("chunk", [1, 8, 10, 1000])
def test_the_failing_object_is_named_by_its_number_in_the_stream(error, kind, said, chunk, tmp_path):
    words = ["A" * (1 + i % 9) for i in range(N)]
    words[73] = "bad"
    output = tmp_path / "x.npy"
    with pytest.raises(kind, match=said):
        encode_stream(Refusing("bad", error), iter(words), output, chunk=chunk)
    assert not output.exists()
    if chunk < 73:
        with Journal(partial_of(output)) as journal:  # what came before it is kept
            journal.resume()
            assert journal.done == 73 // chunk * chunk


def test_numbers_in_sentences_are_those_of_the_stream(tmp_path):
    vectors = VECTORS.copy()
    vectors[73, 3] = np.nan
    encoder = sm.SignRandomProjection(64, random_state=0).fit(VECTORS)
    for chunk in (1, 10, 500):
        with pytest.raises(ValueError, match=r"^X\[73\] holds NaN or infinity, expected finite numbers"):
            encode_stream(encoder, vectors, tmp_path / "x.npy", chunk=chunk)


class Warning73(Refusing):
    def transform(self, X):
        if self.bad in list(X):
            for _ in range(2):
                odd = ObjectsWarning(1, len(X), "are odd", list(X).index(self.bad), "X[999] is no object")
                warnings.warn(odd, stacklevel=2)
        return np.zeros((len(X), 1), np.uint8)


def test_warnings_have_the_numbers_of_the_stream_too(tmp_path):
    with pytest.warns(ObjectsWarning) as caught:
        encode_stream(Warning73(WORDS[73], ObjectsWarning), WORDS, tmp_path / "x.npy", chunk=10)
    [warning] = caught
    assert (warning.message.index, warning.message.start) == (73, 70)
    assert str(warning.message) == "1 of the objects 70 to 79 are odd, e.g. X[73]; X[999] is no object"


def heard(*arguments, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        encode_stream(*arguments, **options)
    return [str(warning.message) for warning in caught if "similarity" in str(warning.message)]


@pytest.mark.parametrize("chunk", [1, 10, 1000])
def test_few_objects_like_no_landmark_are_heard_of_once(chunk, tmp_path):
    words = [word.lower() if i in (13, 14, 60, 61) else word for i, word in enumerate(WORDS)]
    first = 13 // chunk * chunk
    stop = min(N, first + chunk)
    alone = sum(first <= i < stop for i in (13, 14, 60, 61))
    [text] = heard(ENCODER, words, tmp_path / "x.npy", chunk=chunk)
    assert text.startswith(
        f"{alone} of the objects {first} to {stop - 1} have similarity 0 to all landmarks and get the"
    )
    assert "e.g. X[13]; are they of the same kind" in text
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy")[[13, 60]], 255)
    assert heard(ENCODER, words, tmp_path / "x.npy", chunk=chunk) == [text]  # of each run
    assert heard(ENCODER, WORDS, tmp_path / "x.npy", chunk=chunk) == []
    with warnings.catch_warnings(action="error"):
        ENCODER.transform(words)  # in memory, few are not worth a word


class Together(Refusing):
    def transform(self, X):
        if len(X) > 4 and self.bad in list(X):
            raise self.error
        return np.zeros((len(X), 1), np.uint8)


def test_an_error_of_no_object_alone_names_the_chunk(tmp_path):
    with pytest.raises(ValueError, match=r"^objects 70 to 79: too many$"):
        encode_stream(Together(WORDS[73], ValueError("too many")), WORDS, tmp_path / "x.npy", chunk=10)


def test_an_input_that_fails_keeps_what_came_before(tmp_path):
    def words():
        yield from WORDS[:25]
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        encode_stream(ENCODER, words(), tmp_path / "x.npy", chunk=10)
    with Journal(partial_of(tmp_path / "x.npy")) as journal:
        assert journal.resume() is None
        assert journal.done == 20
    with pytest.raises(ValueError, match="holds no objects"):
        encode_stream(ENCODER, iter([]), tmp_path / "y.npy")
    path = tmp_path / "cut.csv"
    path.write_text("text\n" + "".join(f"{word}\n" for word in WORDS[:30]) + '"AC')
    with pytest.raises(ValueError, match=r"cut\.csv, line 32"):
        encode_stream(ENCODER, path, tmp_path / "z.npy", chunk=10)


def test_what_an_encoder_must_make(tmp_path):
    class Growing(Refusing):
        def transform(self, X):
            return np.zeros((len(X), self.bad.pop()))

    with pytest.raises(ValueError, match=r"shape \(10, 3\) for objects 20 to 29, expected <f8 of shape \(10, 2\)"):
        encode_stream(Growing([3, 2, 2], None), WORDS, tmp_path / "x.npy", chunk=10)
    for made in (lambda X: len(X), lambda X: [["a"]] * len(X), lambda X: np.zeros(len(X))):
        encoder = Refusing(None, None)
        encoder.transform = made
        with pytest.raises(TypeError, match=r"the encoder returned .*, expected an array of numbers"):
            encode_stream(encoder, WORDS, tmp_path / "y.npy")
        assert not partial_of(tmp_path / "y.npy").exists()


# ---- who works
def readers():
    return [thread for thread in threading.enumerate() if thread.name == "similia-reader"]


def test_what_predicts_or_is_no_encoder_is_refused_before_reading(tmp_path):
    def unread():
        raise AssertionError("an object is read")
        yield

    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 3, 64, random_state=0).fit(["AAA", "CCC", "GCC"], [0, 1, 1])
    with pytest.raises(TypeError, match=r"encoder predicts and does not encode.*pass model\[:-1\]"):
        encode_stream(model, unread(), tmp_path / "codes.npy")
    with pytest.raises(TypeError, match=r"encoder is Spectrum\(k=2\), expected an encoder"):
        encode_stream(sm.kernels.Spectrum(k=2), unread(), tmp_path / "codes.npy")
    with pytest.raises(FileNotFoundError, match=r"no file named 'ACGT'.* pass a list"):
        encode_stream(model[:-1], "ACGT", tmp_path / "codes.npy")
    assert not list(tmp_path.iterdir())


def test_reading_ahead_ends_with_the_stream_or_before(tmp_path):
    path = next(iter(sources(tmp_path)))
    read = []

    def chunks():
        for chunk in open_stream(path, chunk=10).chunks():
            read.append(chunk.stop)
            yield chunk

    ahead = _workers._read_ahead(chunks())
    assert [chunk.start for chunk in islice(ahead, 3)] == [0, 10, 20]
    time.sleep(0.3)
    assert read[-1] <= 60  # not the whole file
    ahead.close()
    assert not readers()
    assert [chunk.stop for chunk in _workers._read_ahead(chunks())][-1] == N
    assert not readers()
    with pytest.raises(ZeroDivisionError):
        list(_workers._read_ahead(1 // 0 for _ in range(2)))


def test_a_client_of_dask_does_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    path = next(iter(sources(tmp_path)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Dask's own
        with distributed.Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
            encode_stream(ENCODER, path, tmp_path / "x.npy", chunk=10, workers=client)
            np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), CODES)
            lower = [word.lower() for word in WORDS]
            [text] = heard(ENCODER, lower, tmp_path / "x.npy", chunk=10, workers=client)
            assert text.startswith("10 of the objects 0 to 9 have similarity 0")
            words = ["A"] * N
            words[73] = "bad"
            with pytest.raises(TypeError, match=r"^X\[73\]: no$"):
                encode_stream(Refusing("bad", TypeError("no")), words, tmp_path / "y.npy", chunk=10, workers=client)
            with Journal(partial_of(tmp_path / "y.npy")) as journal:
                journal.resume()
                assert journal.done == 70
            assert client.status == "running"  # it is the caller's


def test_a_cluster_that_is_not_there_is_one_sentence_within_patience(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(_workers, "PATIENCE", 1.0)
    with pytest.raises(OSError, match=r"the cluster cannot be reached or has no workers .*; start it and run the same"):
        encode_stream(ENCODER, WORDS, tmp_path / "x.npy", workers="tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("name", "value"), [("chunk", 0), ("chunk", "3"), ("workers", -1), ("workers", 0), ("workers", True)]
)
def test_chunk_and_workers_are_checked_before_anything_is_read(tmp_path, name, value):
    with pytest.raises(ValueError, match=f"{name} must be an integer >= 1, got {value!r}"):
        encode_stream(ENCODER, iter(WORDS), tmp_path / "x.npy", **{name: value})


def test_a_run_that_goes_on_reads_on_where_the_last_chunk_ended(tmp_path, monkeypatch):
    path, chunks, begun = next(iter(sources(tmp_path))), ObjectStream.chunks, []
    monkeypatch.setattr(ObjectStream, "chunks", lambda self, *a: (begun.append(a), chunks(self, *a))[1])
    interrupted(monkeypatch, Stopping(4, KeyboardInterrupt()), encode_stream, ENCODER, path, tmp_path / "x", chunk=10)
    encode_stream(ENCODER, path, tmp_path / "x", chunk=10)
    folder = SearchFolder.create(tmp_path / "index", sm.SimilaritySearch(ENCODER).fit(WORDS))
    append = SearchFolder._append
    stopping = lambda *a: append(*a) if len(folder) < 40 else (_ for _ in ()).throw(KeyboardInterrupt)  # noqa: E731
    stream = open_stream(path, chunk=10)
    interrupted(monkeypatch, stopping, add_stream, folder, stream, owner=SearchFolder, method="_append")
    add_stream(folder, stream)
    assert begun == [(0,), (30,), (0,), (40,)]


def test_any_object_is_found_in_chunks_of_any_size():
    def refuse(bad, X):
        if bad in list(X):
            raise KeyError(bad)

    for n in range(1, 18):
        for bad in range(n):
            with pytest.raises(ValueError, match=rf"^X\[{100 + bad}\]: KeyError: {bad}$"):
                _workers._worked(refuse, bad, np.arange(n), 100)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1", "not the address of a scheduler"),
        ("tcp://127.0.0.1", "not the address of a scheduler"),
        ("http://127.0.0.1:8786/", "not the address of a scheduler"),
        ("tcp://nosuchhost.invalid:8786", "names an unknown machine"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_at_once(address, said, tmp_path):
    pytest.importorskip("distributed")
    with pytest.raises(ValueError, match=said):
        encode_stream(ENCODER, WORDS, tmp_path / "x.npy", workers=address)


SETS = [RNG.standard_normal((RNG.integers(2, 6), 3)) for _ in range(30)]
ROWS = [*RNG.standard_normal((30, 5))]
HAUSDORFF = sm.distances.ModifiedHausdorff()
ARRAY_MODELS = {
    "sets, D2KE": (make_pipeline(sm.D2KE(HAUSDORFF, 16, random_state=0), sm.SignRandomProjection(64)), SETS),
    "sets, neighbours": (sm.KNeighborsClassifier(HAUSDORFF), SETS),
    "sets, machine": (sm.KernelSVC(sm.kernels.DistanceRBF(HAUSDORFF)), SETS),
    "sets, search": (GridSearchCV(sm.KNeighborsClassifier(HAUSDORFF), {"n_neighbors": [1]}, cv=2), SETS),
    "sets, vote": (sm.VoteClassifier([sm.KNeighborsClassifier(HAUSDORFF)]), SETS),
    "vectors, Nystroem": (sm.Nystroem(sm.kernels.Cosine(), 4, random_state=0), ROWS),
    "vectors, levels": (sm.LevelEncoder(64, random_state=0), ROWS),
    "vectors, scikit-learn": (make_pipeline("passthrough", StandardScaler(), LinearSVC()), ROWS),
    "series, DTW": (sm.Nystroem(sm.kernels.DistanceRBF(sm.distances.DTW()), 4, random_state=0), ROWS),
    "series as vectors": (make_pipeline(sm.embeddings.SeriesVectors(), sm.SignRandomProjection(64)), ROWS),
}


@pytest.mark.parametrize("name", ARRAY_MODELS)
def test_a_generator_of_arrays_is_read_as_what_the_model_was_fitted_on(name, tmp_path):
    model, objects = ARRAY_MODELS[name]
    y = np.arange(len(objects)) % 2
    model = clone(model).fit(objects, y)
    output = tmp_path / "out.npy"
    if hasattr(model, "predict"):
        table = output.with_suffix(".csv")
        predict_stream(model, (item for item in objects), table, chunk=7)
        written = [int(line.split(",")[1]) for line in table.read_text().split()[1:]]
        assert written == model.predict(objects).tolist()
    else:
        encode_stream(model, (item for item in objects), output, chunk=7)
        np.testing.assert_array_equal(np.load(output), model.transform(objects))


def test_a_lost_scheduler_ends_the_run_and_the_next_one_resumes(tmp_path):
    distributed = pytest.importorskip("distributed")
    path, part = tmp_path / "x.npy", partial_of(tmp_path / "x.npy")
    cluster = distributed.LocalCluster(1, threads_per_worker=1, dashboard_address=":0", silence_logs=50)

    def words():
        for i, word in enumerate(WORDS):
            if i == 60:
                cluster.close()
            yield word

    with pytest.raises(OSError, match=r"the cluster was lost .*run the same again to resume"):
        encode_stream(ENCODER, words(), path, chunk=10, workers=cluster.scheduler_address)
    assert part.is_dir()
    assert not path.exists()
