"""Near-duplicates of sources and Dask collections: as in memory, in bounded memory, and after any interruption."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import connected_components

import similia as sm
from similia.core.validation import spawn_seeds
from similia.distances import DTW, Levenshtein
from similia.kernels import Cosine, MinMax, Normalized, Spectrum
from similia.search import _duplicates_on_disk as disk
from similia.search import near_duplicates
from similia.search._join import Limit, fitted_to, flatten, graph_of, unite
from similia.similarity import metric_from
from similia.sources.files import open_objects
from similia.sources.matrices import open_matrix
from similia.sources.streams import open_stream
from similia.storage.disk import Journal

RNG = np.random.default_rng(0)
SHINGLES = MinMax(Spectrum(4))
CASES = [
    (SHINGLES, {"threshold": 0.6}),
    (Levenshtein(), {"threshold": 4}),
    (Levenshtein(), {"threshold": 0.1, "relative": True}),
    (Spectrum(4, normalize=True), {"threshold": 0.95}),
]
LITTLE = {False: "100KB", True: "2MB"}  # memory; True: of cosines, which have more bands
NORMALIZED = Normalized(Spectrum(4)), {"threshold": 0.95}
NAMES = ["shingles", "edits", "relative", "cosines"]


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def families(n: int, length: int = 50) -> list[str]:
    """Return strings of which four each differ in a few letters, some short ones, and one that is no ASCII."""
    ancestors = RNG.choice(list("acgt"), (n // 4, length))
    rows = np.repeat(ancestors, 4, axis=0)
    changed = RNG.random(rows.shape) < RNG.choice([0.0, 0.03, 0.08], (len(rows), 1))
    rows[changed] = RNG.choice(list("acgt"), int(changed.sum()))
    return [*("".join(row) for row in RNG.permutation(rows)), "a", "ac", "", "acg", "acgπ", "a"]


TEXTS = families(2400)
CELLS = [text or "t" for text in TEXTS]  # a table has no empty texts; FASTA has


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(found.pairs, expected.pairs)
    np.testing.assert_array_equal(found.values, expected.values)
    np.testing.assert_array_equal(found.groups, expected.groups)
    assert found.recall == expected.recall
    assert (found.threshold, found.relative, found.method) == (expected.threshold, expected.relative, expected.method)


def fasta(path: Path, texts: list[str]) -> Path:
    path.write_text("".join(f">t{i}\n{text}\n" for i, text in enumerate(texts)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fasta(tmp_path_factory.mktemp("texts") / "texts.fasta", TEXTS)


@pytest.mark.same_bits
@pytest.mark.parametrize(("similarity", "options"), CASES, ids=NAMES)
def test_a_file_gives_what_a_list_gives_for_any_chunks_and_memory(
    table: Path, similarity: Any, options: dict[str, Any]
) -> None:
    expected = near_duplicates(TEXTS, similarity, **options, random_state=0)
    assert len(expected.pairs) > 300
    for chunk, memory in ((10_000, "1GB"), (113, LITTLE[similarity is CASES[3][0]])):
        with sm.config(max_memory=memory):
            source = open_stream(table, chunk=chunk)
            same(near_duplicates(source, similarity, **options, random_state=0), expected)


def test_other_objects_and_sources(tmp_path: Path) -> None:
    flags = np.repeat((RNG.random((700, 60)) < 0.3).astype(float), 4, axis=0)
    vectors = np.where(RNG.random(flags.shape) < 0.01, 1 - flags, flags)
    np.save(tmp_path / "v.npy", vectors)
    expected = near_duplicates(vectors, MinMax(), 0.8, random_state=1)
    assert len(expected.pairs) > 1000
    with sm.config(max_memory="200KB"):
        same(near_duplicates(open_objects(tmp_path / "v.npy", chunk=100), MinMax(), 0.8, random_state=1), expected)
    few = TEXTS[:50]
    (tmp_path / "few.txt").write_text("".join(f"{text}\n" for text in few))
    same(
        near_duplicates(open_stream(tmp_path / "few.txt"), SHINGLES, 0.6),
        near_duplicates(few, SHINGLES, 0.6),
    )


@pytest.mark.same_bits
@pytest.mark.parametrize("form", ["dense", "sparse", "proportions"])
def test_cosines_of_any_source_are_those_in_memory(form: str) -> None:
    rng = np.random.default_rng(4)
    X: Any = np.repeat(rng.normal(size=(300, 20)), 3, axis=0) + 0.1 * rng.normal(size=(900, 20))
    kernel: Any = Cosine("projection")
    if form == "sparse":
        X = sp.csr_array(np.where(np.repeat(rng.random((300, 20)) < 0.5, 3, axis=0), X, 0.0) + 1e-9 * np.eye(900, 20))
    elif form == "proportions":  # "auto" is decided by all rows: only the last one is negative
        X, kernel = np.abs(X), Cosine()
        X[-1, 3] = -1e-6
    expected = near_duplicates(X, kernel, 0.97, method="hashes", random_state=0)
    assert len(expected.pairs) > 100
    da = pytest.importorskip("dask.array")
    with sm.config(max_memory="1MB"):
        same(near_duplicates(open_matrix(X), kernel, 0.97, method="hashes", random_state=0), expected)
    if form != "sparse":
        same(near_duplicates(da.from_array(X, (800, 20)), kernel, 0.97, method="hashes", random_state=0), expected)
    if form == "proportions":
        assert expected.similarity.mapping == "projection"


def test_strings_none_of_which_is_short(tmp_path: Path) -> None:
    X = [text for text in TEXTS if len(text) > 40]
    path = fasta(tmp_path / "x.fasta", X)
    expected = near_duplicates(X, Levenshtein(), 4, random_state=0)
    with sm.config(max_memory="300KB"):
        same(near_duplicates(open_stream(path), Levenshtein(), 4, random_state=0), expected)


def test_strings_that_are_all_short(tmp_path: Path) -> None:
    X = ["a", "b", "", "a", "c"] * 500
    path = fasta(tmp_path / "x.fasta", X)
    expected = near_duplicates(X, Levenshtein(), 0, method="hashes", random_state=0)
    with sm.config(max_memory="300KB"):
        same(near_duplicates(open_stream(path), Levenshtein(), 0, random_state=0), expected)


@pytest.mark.parametrize(("similarity", "options"), [*CASES[:2], NORMALIZED], ids=["shingles", "edits", "normalized"])
def test_dask_gives_the_same_for_any_partitions(similarity: Any, options: dict[str, Any]) -> None:
    bag = pytest.importorskip("dask.bag")
    expected = near_duplicates(TEXTS, similarity, **options, random_state=0)
    for n_parts in (1, 7):
        X = bag.from_sequence(TEXTS, npartitions=n_parts)
        same(near_duplicates(X, similarity, **options, random_state=0), expected)
    checked = expected.check(X, n_checked=30, random_state=2)
    assert checked == expected.check(TEXTS, n_checked=30, random_state=2)
    assert checked.n_true > 10


def test_a_collection_of_another_length_is_not_checked(tmp_path: Path) -> None:
    bag = pytest.importorskip("dask.bag")
    found = near_duplicates(TEXTS[:40], Levenshtein(), 1)
    for X in (TEXTS[:30], TEXTS[:50]):
        for collection in (X, open_stream(fasta(tmp_path / "x.fasta", X)), bag.from_sequence(X, npartitions=3)):
            with pytest.raises(ValueError, match=f"has {len(X)} objects, expected the 40 in which near-dup"):
                found.check(collection, n_checked=3)


# ---- any similarity
class Locked:
    """A distance that cannot be pickled."""

    def __init__(self) -> None:
        self.lock = threading.Lock()

    def __call__(self, x: str, y: str) -> float:
        with self.lock:
            return float(x != y)


@pytest.mark.parametrize("named", [False, True])
def test_a_function_that_cannot_be_pickled_needs_no_digest(named: bool, tmp_path: Path) -> None:
    (tmp_path / "x.txt").write_text("aa\nbb\ncc\naa\n")
    folder = tmp_path / "run" if named else None
    for _ in range(2):
        source = open_stream(tmp_path / "x.txt")
        found = near_duplicates(source, sm.distances.FromFunction(Locked()), 0, method="exact", folder=folder)
        assert found.pairs.tolist() == [[0, 3]]


def series(n: int, length: int = 24, each: int = 3) -> Any:
    """Return random walks of which `each` in a row are nearly the same."""
    rng = np.random.default_rng(3)
    walks = np.repeat(np.cumsum(rng.normal(size=(n // each, length)), axis=1), each, axis=0)
    return walks + 0.05 * rng.normal(size=walks.shape)


SERIES = series(720)[np.random.default_rng(4).permutation(720)]
ALIKE: dict[str, Any] = {"similarity": DTW(0.1), "threshold": 3.0, "random_state": 0}


def npy(folder: Path, X: Any) -> Path:
    np.save(folder / "x.npy", X)
    return folder / "x.npy"


@pytest.mark.parametrize("method", ["exact", "neighbours"])
def test_series_of_a_file_give_what_those_in_memory_give(tmp_path: Path, method: str) -> None:
    expected = near_duplicates(SERIES, **ALIKE, method=method)
    assert len(expected.pairs) == 720
    assert expected.recall == 1.0
    for chunk, memory in ((10_000, "1GB"), (100, "200KB")):
        with sm.config(max_memory=memory):
            same(near_duplicates(open_objects(npy(tmp_path, SERIES), chunk=chunk), **ALIKE, method=method), expected)


def test_auto_takes_neighbours_for_many_objects_without_hashes(tmp_path: Path) -> None:
    X = series(2100, 8)
    found = near_duplicates(open_objects(npy(tmp_path, X)), DTW(0.1), 0.9, random_state=0)
    assert found.method == "neighbours"
    same(found, near_duplicates(X, DTW(0.1), 0.9, random_state=0))
    true = near_duplicates(X, DTW(0.1), 0.9, method="exact")
    assert set(map(tuple, found.pairs.tolist())) <= set(map(tuple, true.pairs.tolist()))
    assert len(found.pairs) >= 0.98 * len(true.pairs) > 1000


def test_graphs_sets_and_kernels_of_a_file_or_of_dask() -> None:
    bag = pytest.importorskip("dask.bag")
    rng = np.random.default_rng(5)
    sets = [points + 0.01 * rng.normal(size=points.shape) for points in rng.normal(size=(60, 5, 2)) for _ in range(3)]
    for similarity, threshold, X in (
        (sm.distances.ModifiedHausdorff(), 0.05, sets),
        (sm.kernels.MeanMap(sm.kernels.RBF(gamma=1.0)), 0.42, sets),
        (Spectrum(3), 40, families(200)),
    ):
        for method in ("exact", "neighbours"):
            expected = near_duplicates(X, similarity, threshold, method=method, random_state=0)
            assert len(expected.pairs) > 20
            with sm.config(max_memory="100KB"):
                lazy = bag.from_sequence(X, npartitions=4)
                found = near_duplicates(lazy, similarity, threshold, method=method, random_state=0)
            np.testing.assert_array_equal(found.pairs, expected.pairs)
            np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_a_parameter_that_the_objects_decide_is_that_of_a_sample(tmp_path: Path) -> None:
    X = np.repeat(RNG.normal(size=(500, 6)), 3, axis=0) + 0.01 * RNG.normal(size=(1500, 6))
    found = near_duplicates(open_matrix(X), sm.kernels.RBF(), 0.99, method="neighbours", random_state=0)
    decided = sm.kernels.RBF().decided(X)
    assert found.similarity.gamma == pytest.approx(decided.gamma, rel=0.1)
    same(found, near_duplicates(X, found.similarity, 0.99, method="neighbours", random_state=0))


@pytest.mark.parametrize("method", ["exact", "neighbours"])
def test_an_error_names_the_position_of_the_object(method: str) -> None:
    X = series(2100, 8)
    even = np.linspace(0, 2099, 1024).astype(int)
    for i in (int(even[900]), int(even[900]) + 1):  # one of the sample, and perhaps another
        Y = X.copy()
        Y[i, 3] = np.inf
        with pytest.raises(ValueError, match=f"series {i}, time point 3"):
            near_duplicates(open_matrix(Y), DTW(), 0.1, method=method, random_state=0)


@pytest.mark.parametrize("method", ["exact", "neighbours"])
def test_an_error_names_the_positions_of_a_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.setattr(sm.search._join, "FIT_ON", 200)
    sample = fitted_to(400, spawn_seeds(0, 2)[0])
    i, j = np.setdiff1d(np.arange(400), sample)[100:102].tolist()  # the encoder does not compare them
    words = [f"{k:03d}" for k in range(400)]
    (tmp_path / "x.txt").write_text("\n".join(words))

    def apart(x: str, y: str) -> float:
        return np.nan if {int(x), int(y)} == {i, j} else float(abs(int(x) - int(y)))

    with sm.config(max_memory="50KB"):
        for X in (words, open_stream(tmp_path / "x.txt", chunk=50)):
            with pytest.raises(ValueError, match=rf"returned nan for X\[{i}\] and X\[{j}\]"):
                near_duplicates(X, sm.distances.FromFunction(apart), 1, method=method, random_state=0)


@pytest.mark.parametrize("most", [200, 10])
def test_groups_larger_than_the_neighbours_are_compared(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    X = series(240, 8, each=60)
    monkeypatch.setattr(sm.search._join, "NEAR", 5)
    monkeypatch.setattr(sm.search._join, "_IN_GROUPS", most)
    monkeypatch.setattr(disk, "_IN_BATCH", 2000)  # one group in a batch
    some = pytest.warns(UserWarning, match="near_duplicates found about") if most == 10 else nullcontext()
    with some:
        expected = near_duplicates(X, DTW(), 2.0, method="neighbours", random_state=0)
    some = pytest.warns(UserWarning, match="near_duplicates found about") if most == 10 else nullcontext()
    with sm.config(max_memory="50KB"), some:
        same(near_duplicates(open_matrix(X), DTW(), 2.0, method="neighbours", random_state=0), expected)
    assert (len(expected.pairs) == 4 * 60 * 59 // 2) == (most == 200)
    assert (expected.recall == 1.0) == (most == 200)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 9)), min_size=1, max_size=40), st.integers(1, 30))
@settings(deadline=None)
def test_a_component_is_in_one_tile_if_it_fits_else_in_tiles_in_order(parts: list[tuple[int, int]], fit: int) -> None:
    root, sizes = np.array(parts, np.int64).T
    tile = disk._tiles_of(root, sizes, fit)
    assert sorted(set(tile)) == list(range(tile.max() + 1))
    assert (np.bincount(tile, sizes) <= max(2 * fit, fit + sizes.max())).all()
    for component in set(root):
        assert (np.diff(tile[root == component]) >= 0).all()
        if sizes.sum() <= 2 * fit:
            assert len(set(tile[root == component])) == 1


@pytest.mark.parametrize("chunk", [7, 50])
def test_objects_of_batches_are_read_in_order(tmp_path: Path, chunk: int) -> None:
    X, rng = np.arange(100.0)[:, None] * np.ones(3), np.random.default_rng(0)
    source, none = open_objects(npy(tmp_path, X), chunk=chunk), np.zeros(0, np.int64)
    reader = disk._Reader(Limit(metric_from(DTW(), "similarity"), 1.0), source)
    for _ in range(30):
        rows = np.sort(rng.choice(100, 20, replace=False))
        cut = int(rng.integers(1, 20))
        tile = rows[:cut]
        for others in (none, rows[cut:], rows[cut:][::2]):
            found = reader.objects(disk._Batch(tile, others, none, none))
            assert [row[0] for row in found] == [*tile, *others]


# ---- interruptions
class Stopped(Exception):
    """Raised in place of a power cut."""


STOPPED = [*CASES[:2], CASES[3], (DTW(0.1), {"threshold": 3.0, "method": "neighbours"})]


@pytest.mark.parametrize(("similarity", "options"), STOPPED, ids=[*NAMES[:2], NAMES[3], "series"])
def test_a_run_that_stops_at_any_commit_goes_on(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, similarity: Any, options: dict[str, Any]
) -> None:
    X: Any = TEXTS
    if type(similarity) is DTW:
        X, table = SERIES, npy(tmp_path, SERIES)
        monkeypatch.setattr(sm.search._join, "NEAR", 1)  # so that groups are compared
        monkeypatch.setattr(sm.search.duplicates, "QUERIES", 100)
        monkeypatch.setattr(disk, "QUERIES", 100)
    expected = near_duplicates(X, similarity, **options, random_state=0)
    append, finish, count = Journal.append, Journal.finish, itertools.count()
    stops_at = {k * (k + 1) // 2 for k in range(2, 100)}  # after 2 commits more, then 3, then 4: between all steps
    signed: list[int] = []
    real = disk._signed

    def stops(function: Any) -> Any:
        def stopping(*arguments: Any) -> None:
            function(*arguments)
            if next(count) in stops_at:
                raise Stopped

        return stopping

    def signing(objects: Any, *rest: Any) -> Any:
        signed.append(len(objects))
        return real(objects, *rest)

    monkeypatch.setattr(Journal, "append", stops(append))
    monkeypatch.setattr(Journal, "finish", stops(finish))
    monkeypatch.setattr(disk, "_signed", signing)
    folder = tmp_path / "work"
    with sm.config(max_memory=LITTLE[similarity is CASES[3][0]]):
        for tries in range(200):  # noqa: B007
            try:
                source = open_stream(table, chunk=len(X) // 5 + 1)
                found = near_duplicates(source, similarity, **options, random_state=0, folder=folder)
            except Stopped:
                continue
            break
    assert tries > 5
    assert (folder / "within").exists() == (X is SERIES)
    assert sum(signed) < 2 * len(X)  # what was committed is not done again
    same(found, expected)
    before = len(signed)
    same(near_duplicates(source, similarity, **options, random_state=0, folder=folder), expected)
    assert len(signed) == before
    disk.discard(folder)
    assert not folder.exists()


def test_a_run_that_goes_on_with_other_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X = ["acgtacgtacgt"] * 350 + TEXTS[:50]
    source, folder = open_stream(fasta(tmp_path / "x.fasta", X)), tmp_path / "work"
    append, options = Journal.append, {"threshold": 0.6, "method": "hashes", "random_state": 0}

    def stopping(self: Journal, data: Any, stop: int) -> None:
        append(self, data, stop)
        if stop == 2 and self.folder.name == "candidates.partial":
            raise Stopped

    with monkeypatch.context() as patched, sm.config(max_memory="1MB"):
        patched.setattr(Journal, "append", stopping)
        with pytest.raises(Stopped):
            near_duplicates(source, SHINGLES, **options, folder=folder)
    with sm.config(max_memory="4MB"):
        same(near_duplicates(source, SHINGLES, **options, folder=folder), near_duplicates(X, SHINGLES, **options))


def test_files_of_others_are_kept(table: Path, tmp_path: Path) -> None:
    (tmp_path / "pairs").write_text("mine")
    with pytest.raises(ValueError, match="holds other files than those of near_duplicates"):
        near_duplicates(open_stream(table), SHINGLES, 0.6, random_state=0, folder=tmp_path)
    few = open_objects(["abcdef", "abcdeg", "xyz"])  # which are compared in memory
    for folder, words in ((tmp_path, "holds other files"), (tmp_path / "pairs", "is a file, expected a folder")):
        with pytest.raises(ValueError, match=words):
            near_duplicates(few, SHINGLES, 0.6, folder=folder)
    with pytest.raises(TypeError, match="expected the name of a folder"):
        near_duplicates(few, SHINGLES, 0.6, folder=5)
    assert [path.name for path in tmp_path.iterdir()] == ["pairs"]
    assert (tmp_path / "pairs").read_text() == "mine"


def test_numbers_of_numpy_are_numbers(table: Path) -> None:
    recall, threshold = np.float32(0.75), np.float32(0.5)
    found = near_duplicates(open_stream(table), SHINGLES, threshold, recall=recall, random_state=np.int64(0))
    same(found, near_duplicates(TEXTS, SHINGLES, 0.5, recall=0.75, random_state=0))


@pytest.mark.parametrize("n_blocks", [1, 2, 4])
def test_tiles_hold_each_pair_once(n_blocks: int) -> None:
    rows, sizes = np.arange(0, 24, 2), np.full(12, 100)
    work = object.__new__(disk._Work)
    work.max_memory = 16 * (1200 // n_blocks + 1) if n_blocks > 1 else 10**6
    found = [(a, b) for one in work._tiles(rows, sizes) for a in one.left for b in one.right if a < b]
    assert sorted(found) == list(itertools.combinations(rows.tolist(), 2))


def test_a_folder_of_other_objects_or_parameters_starts_again(table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    source = open_stream(table)
    near_duplicates(source, SHINGLES, 0.9, random_state=0, folder=folder)
    for threshold, seed in ((0.6, 0), (0.6, 1)):
        found = near_duplicates(source, SHINGLES, threshold, random_state=seed, folder=folder)
        same(found, near_duplicates(TEXTS, SHINGLES, threshold, random_state=seed))
    (folder / "run.json").write_text("{half a fi")
    same(near_duplicates(source, SHINGLES, 0.6, random_state=1, folder=folder), found)


def test_a_full_disk_keeps_what_is_done(table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Journal.append

    def full(self: Journal, data: Any, stop: int) -> None:
        if self.done >= 1000:
            raise OSError(28, "No space left on device")
        append(self, data, stop)

    source, folder = open_stream(table, chunk=500), tmp_path / "work"
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        with pytest.raises(OSError, match="No space left"):
            near_duplicates(source, SHINGLES, 0.6, random_state=0, folder=folder)
    found = near_duplicates(source, SHINGLES, 0.6, random_state=0, folder=folder)
    same(found, near_duplicates(TEXTS, SHINGLES, 0.6, random_state=0))


# ---- memory
PEAK = r"""
import re, sys
import similia as sm
from similia.kernels import MinMax, Spectrum
from similia.search import near_duplicates
from similia.sources.files import read_objects
from similia.sources.streams import open_stream
small, large, how = sys.argv[1:]
def run(path):
    if how == "memory":
        return near_duplicates(read_objects(path).objects, MinMax(Spectrum(5)), 0.7, random_state=0, method="hashes")
    with sm.config(max_memory="5MB"):
        source = open_stream(path, chunk=1000, max_bytes=2**20)
        return near_duplicates(source, MinMax(Spectrum(5)), 0.7, random_state=0, method="hashes")
def peak():  # of this process alone; ru_maxrss begins at that of the process that started it
    with open("/proc/self/status") as file:
        return int(re.search(r"VmHWM:\s*(\d+) kB", file.read())[1]) * 1024
run(small)
before = peak()
found = run(large)
print(len(found.pairs), peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")
def test_the_peak_of_memory_is_bounded_for_a_file_of_several_times_that(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    n, length = 48_000, 540
    letters = rng.choice(np.frombuffer(b"acgtu ", np.uint8), (n // 2, length))
    with open(tmp_path / "large.txt", "wb") as file:
        for row in letters:
            file.write(row.tobytes().replace(b" u", b"uu") + b".\n" + row.tobytes().replace(b"  ", b" u") + b".\n")
    with open(tmp_path / "large.txt", "rb") as file, open(tmp_path / "small.txt", "wb") as small:
        small.writelines(itertools.islice(file, 6000))
    size = (tmp_path / "large.txt").stat().st_size
    peaks = {}
    for how in ("disk", "memory"):
        command = [sys.executable, "-c", PEAK, str(tmp_path / "small.txt"), str(tmp_path / "large.txt"), how]
        done = subprocess.run(command, capture_output=True, text=True, timeout=500)
        assert done.returncode == 0, done.stderr
        peaks[how] = tuple(map(int, done.stdout.split()))
    assert peaks["disk"][0] == peaks["memory"][0]
    limit = 5_000_000
    assert size > 5 * limit
    assert peaks["disk"][1] < 3 * limit < peaks["memory"][1]


# ---- parts
@given(st.integers(1, 30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=60), st.integers(0, 60))
@settings(deadline=None)
def test_components_are_those_of_scipy(n: int, pairs: list[tuple[int, int]], cut: int) -> None:
    edges = np.array([(min(p), max(p)) for p in pairs if max(p) < n and p[0] != p[1]], np.int64).reshape(-1, 2)
    root = np.arange(n)
    for part in (edges[:cut], edges[cut:]):
        unite(root, np.ascontiguousarray(part[:, 0]), np.ascontiguousarray(part[:, 1]))
    flatten(root)
    _, label = connected_components(graph_of(edges, n), directed=False)
    smallest = [min(j for j in range(n) if label[j] == label[i]) for i in range(n)]
    assert root.tolist() == smallest


@given(st.sets(st.integers(0, 999), min_size=1), st.integers(1, 400), st.integers(1, 400))
@settings(deadline=None)
def test_records_are_read_by_position(tmp_path_factory: Any, wanted: set[int], run: int, gap: int) -> None:
    row = np.dtype([("a", "<i8"), ("b", "u1", (3,))])
    path = tmp_path_factory.getbasetemp() / "records"
    if not path.exists():
        records = np.zeros(1000, row)
        records["a"], records["b"] = np.arange(1000) ** 2, np.arange(3000).reshape(1000, 3) % 256
        path.write_bytes(records.tobytes())
    positions = np.array(sorted(wanted))
    with pytest.MonkeyPatch.context() as patched, open(path, "rb", buffering=0) as file:
        patched.setattr(disk, "_RUN_OF", run * row.itemsize)
        patched.setattr(disk, "_GAP", gap * row.itemsize)
        found = disk._read(file, row, positions)
    np.testing.assert_array_equal(found, np.fromfile(path, row)[positions])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"X": (text for text in TEXTS)}, "objects that can be read several times"),
        (
            {"similarity": Spectrum(4), "method": "hashes"},
            "method must be 'auto', 'exact' or 'neighbours' for Spectrum",
        ),
        (
            {"similarity": sm.pairwise(lambda x, y: abs(len(x) - len(y)))},
            "similarity must be a kernel, with large values",
        ),
        ({"X": TEXTS, "folder": "work"}, "folder must be None for objects in memory"),
    ],
)
def test_what_cannot_be_done_is_said(table: Path, change: dict[str, Any], words: str) -> None:
    arguments: dict[str, Any] = {"X": open_stream(table), "similarity": SHINGLES, "threshold": 0.6}
    arguments |= change
    if not isinstance(arguments["X"], list | sm.sources.streams.ObjectStream):
        arguments["X"] = open_stream(arguments["X"])
    with pytest.raises(ValueError, match=words):
        near_duplicates(**arguments)


# ---- the command
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_the_command_reads_a_large_file_in_chunks_and_writes_the_same(
    tmp_path: Path, similia: Any, ending: str
) -> None:
    data = tmp_path / "texts.csv"
    data.write_text("id,text\n" + "".join(f't{i},"{text}"\n' for i, text in enumerate(CELLS)), encoding="utf-8")
    for name, memory in (("large", "200KB"), ("small", "1GB")):
        outputs = [tmp_path / f"{name}{what}" for what in (f".{ending}", f".groups.{ending}", ".html")]
        options = [f"-o {outputs[0]}", f"--groups {outputs[1]}", f"--report {outputs[2]}", f"--max-memory {memory}"]
        done = similia("duplicates", data, "--id", "id", *" ".join(options).split())
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / f"large.{ending}.partial").exists()
    for what in (f".{ending}", f".groups.{ending}"):
        if ending == "csv":
            assert (tmp_path / f"large{what}").read_text() == (tmp_path / f"small{what}").read_text()
        else:
            parquet = pytest.importorskip("pyarrow.parquet")
            assert parquet.read_table(tmp_path / f"large{what}").equals(parquet.read_table(tmp_path / f"small{what}"))
    large, small = ((tmp_path / f"{name}.html").read_text() for name in ("large", "small"))
    assert large == small


@pytest.mark.parametrize("method", ["neighbours", "exact"])
def test_the_command_reads_a_large_file_of_series_in_chunks(
    tmp_path: Path, similia: Any, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    taken: list[str] = []
    find = disk.find
    monkeypatch.setattr(disk, "find", lambda *given: taken.append(given[3]) or find(*given))
    data = npy(tmp_path, SERIES)
    for name, memory in (("large", "300KB"), ("small", "1GB")):
        options = ["--distance", "DTW(0.1)", "--threshold", "3", "--method", method, "--max-memory", memory]
        done = similia("duplicates", data, *options, "-o", tmp_path / f"{name}.csv")
        assert done.returncode == 0, done.stderr
        assert not (tmp_path / f"{name}.csv.partial").exists()
    large, small = ((tmp_path / f"{name}.csv").read_text() for name in ("large", "small"))
    assert large == small
    assert len(large.splitlines()) == 721
    assert taken == [method]


def test_the_command_lists_all_skipped_rows(tmp_path: Path, similia: Any) -> None:
    data, output = tmp_path / "texts.csv", tmp_path / "pairs.csv"
    rows = [f't{i},"{text}"\n' for i, text in enumerate(CELLS)]
    data.write_text("id,text\n" + "".join([rows[0], "one cell\n", *rows[1:], "another\n"]), encoding="utf-8")
    done = similia(
        "duplicates", data, "--id", "id", "--max-memory", "200KB", "-o", output, "--on-error", "skip",
        "--groups", tmp_path / "groups.csv",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed = (tmp_path / "pairs.csv.skipped.csv").read_text().splitlines()
    assert [line.split(",")[0] for line in listed] == ["line", "3", str(len(CELLS) + 3)]
    expected = near_duplicates(CELLS, MinMax(Spectrum(5)), 0.7, random_state=0)
    place = [0, *range(2, len(CELLS) + 1)]  # of the objects in the file, where row 1 has one cell
    found = list(csv.DictReader(output.read_text().splitlines()))
    assert [(int(row["first"]), int(row["second"])) for row in found] == [
        (place[i], place[j]) for i, j in expected.pairs.tolist()
    ]
    assert [(row["first_id"], row["second_id"]) for row in found] == [(f"t{i}", f"t{j}") for i, j in expected.pairs]
    groups = list(csv.DictReader((tmp_path / "groups.csv").read_text().splitlines()))
    assert [(row["row"], row["id"], row["group"], row["kept"]) for row in groups] == [
        (str(place[i]), f"t{i}", str(place[group]), str(i == group)) for i, group in enumerate(expected.groups.tolist())
    ]


def test_a_command_that_was_killed_goes_on(tmp_path: Path, similia: Any) -> None:
    data, output = tmp_path / "texts.csv", tmp_path / "pairs.csv"
    data.write_text("id,text\n" + "".join(f't{i},"{text}"\n' for i, text in enumerate(CELLS)), encoding="utf-8")
    killer = (
        "import os, signal, sys\nfrom similia.storage.disk import Journal\nfrom similia.cli.app import app\n"
        "append, count = Journal.append, iter(range(9))\n"
        "def dies(*arguments):\n    append(*arguments)\n    next(count, None) is None and os.kill(os.getpid(), 9)\n"
        "Journal.append = dies\nsys.argv = ['similia', *sys.argv[1:]]\napp()"
    )
    options = ["--id", "id", "--max-memory", "200KB", "-o", output]
    line = [sys.executable, "-c", killer, "duplicates", data, *options]
    assert subprocess.run(line, capture_output=True, timeout=300).returncode == -9
    assert not output.exists()
    assert (tmp_path / "pairs.csv.partial").exists()
    done = similia("duplicates", data, *options)
    assert done.returncode == 0, done.stderr
    expected = near_duplicates(CELLS, MinMax(Spectrum(5)), 0.7, random_state=0)
    assert len(output.read_text().splitlines()) == 1 + len(expected.pairs)
    assert not (tmp_path / "pairs.csv.partial").exists()
