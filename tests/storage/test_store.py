"""The folder of an index: killed at any moment it is as before or after, and nothing else is taken for an index."""

from __future__ import annotations

import copy
import json
import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest

from similia.search import HammingIndex, _faiss
from similia.storage import disk as _disk
from similia.storage import store as _store
from similia.storage.store import Store


def codes_of(n, n_bits=64, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, n_bits // 8)).astype(np.uint8)


def contents(folder, mmap=False):
    """Live ids and codes by id, read from the folder."""
    store = Store.open(folder)
    alive = np.ones(store.n_rows, bool)
    alive[store.dead_rows()] = False
    ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in store.arrays(mmap))])[alive]
    codes = np.concatenate([np.empty((0, store.n_bits // 8), np.uint8), *(codes for codes, _ in store.arrays(mmap))])
    return dict(zip(ids.tolist(), map(bytes, codes[alive]), strict=True))


def files(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_append_remove_and_read_back(tmp_path):
    store = Store.create(tmp_path / "index", 64, meta={"encoder": "letters"})
    codes = codes_of(10)
    assert store.append(codes[:4]).tolist() == [0, 1, 2, 3]
    assert store.append(codes[4:6], [20, 10], progress={"line": 6}).tolist() == [20, 10]
    assert store.append(codes[6:]).tolist() == [21, 22, 23, 24]
    store.remove([20, 1])
    expected = dict(zip([0, 2, 3, 10, 21, 22, 23, 24], map(bytes, codes[[0, 2, 3, 5, 6, 7, 8, 9]]), strict=True))
    for mmap in (False, True):
        assert contents(tmp_path / "index", mmap) == expected
    again = Store.open(tmp_path / "index")
    assert (len(again), again.n_rows, again.n_dead) == (8, 10, 2)
    assert again.meta == {"encoder": "letters"}
    assert again.progress == {"line": 6}
    assert again.find(np.array([24, 20, 0])).tolist() == [9, -1, 0]
    again.append(codes[:1], [20])  # removed before, so free
    again.compact()
    again.verify()
    assert contents(tmp_path / "index") == expected | {20: bytes(codes[0])}
    names = [name.partition("-")[0] for name in files(tmp_path / "index")]
    assert names == ["codes", "ids", "index.json", "index.lock"]


def test_more_dead_rows_than_live_ones_are_dropped(tmp_path):
    store = Store.create(tmp_path / "index", 64)
    store.append(codes_of(100))
    store.remove(np.arange(50))
    assert store.n_rows == 100
    store.remove([50])
    assert (store.n_rows, store.n_dead, len(store)) == (49, 0, 49)
    store.remove(np.arange(51, 100))
    assert (store.n_rows, len(store), contents(store.folder)) == (0, 0, {})
    assert store.append(codes_of(1)).tolist() == [100]


def test_a_removal_is_done_though_there_is_no_space_to_compact(tmp_path):
    store = Store.create(tmp_path / "index", 64)
    store.append(codes_of(4))
    with (
        patch.object(Store, "_write_segment", side_effect=OSError(28, "No space left on device")),
        pytest.warns(UserWarning, match="still holds the removed rows .*No space left on device.*; make space"),
    ):
        store.remove([0, 1, 2])
    assert (store.n_dead, [*contents(store.folder)]) == (3, [3])
    store.remove([3])
    assert (store.n_rows, contents(store.folder)) == (0, {})


@pytest.mark.parametrize("mmap", [False, True])
def test_an_index_that_could_not_be_compacted_is_saved_again(mmap, tmp_path):
    codes = codes_of(10)
    codes.flags.writeable = False
    index = HammingIndex(64).fit(codes)
    index.save(tmp_path / "index")
    index = HammingIndex.load(tmp_path / "index", mmap=True) if mmap else index
    index.remove(np.arange(6))
    failing = patch.object(Store, "compact", side_effect=OSError(28, "No space left on device"))
    with failing, pytest.warns(UserWarning, match="still holds the removed rows"):
        index.save(tmp_path / "index")
    assert [*contents(tmp_path / "index")] == [6, 7, 8, 9]
    index.add(codes[:1])
    index.save(tmp_path / "index")
    assert contents(tmp_path / "index") == {i: bytes(codes[i % 10]) for i in range(6, 11)}


@pytest.mark.parametrize("sizes", [[1] * 70, [50, 1] * 30, list(range(1, 50)), [500, *[1] * 50]])
def test_many_small_appends_stay_few_segments(tmp_path, monkeypatch, sizes):
    limit = 64 if len(sizes) > 64 else 8
    monkeypatch.setattr(_store, "_MAX_SEGMENTS", limit)
    with patch.object(_disk.os, "fsync"):
        store, codes, written = Store.create(tmp_path / "index", 64), codes_of(sum(sizes)), 0
        with store.writing():
            for n in sizes:
                start = len(store)
                store.append(codes[start : start + n])
                written += sum(s["rows"] for s in store.manifest["segments"][-1:])
                assert len(store.manifest["segments"]) <= limit
    assert contents(tmp_path / "index") == dict(enumerate(map(bytes, codes)))
    assert written <= 12 * sum(sizes)
    for i in range(10):
        store.remove([i])
    assert len(store.manifest["dead"]) <= limit
    assert contents(tmp_path / "index") == {i: bytes(code) for i, code in enumerate(codes) if i >= 10}


class Crash(BaseException):
    """Stands for the end of the process."""


CHANGES = {
    "append": lambda store: store.append(codes_of(3, seed=1), progress={"line": 8}),
    "remove": lambda store: store.remove([0, 3]),
    "remove most": lambda store: store.remove([0, 1, 3]),
    "compact": lambda store: store.compact(),
    "merge": lambda store: store.append(codes_of(2, seed=2)),
    "save": lambda store: HammingIndex.load(store.folder).add(codes_of(4)).remove([3]).save(store.folder),
    "replace": lambda store: HammingIndex(16).fit(codes_of(4, 16)).save(store.folder),
}


class CrashAt:
    """Let the n-th call of a function of `os` be the last thing that happens, before it does anything."""

    def __init__(self, function, step):
        self.n_calls, self.step, self.real = 0, step, getattr(os, function)
        self.patch = patch.object(os, function, self)

    def __call__(self, *arguments, **keywords):
        self.n_calls += 1
        if self.n_calls > self.step:
            raise Crash
        return self.real(*arguments, **keywords)

    def __enter__(self):
        self.patch.start()
        return self

    def __exit__(self, kind, *_):
        self.patch.stop()
        return kind is Crash


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("function", ["fsync", "unlink"])
def test_a_crash_at_any_step_leaves_before_or_after(tmp_path, monkeypatch, change, function):
    monkeypatch.setattr(_store, "_MAX_SEGMENTS", 4)
    original = Store.create(tmp_path / "original", 64)
    for start in range(4 if change == "merge" else 2):
        original.append(codes_of(2, seed=start), progress={"line": start})
    original.remove([2])
    finished = tmp_path / "finished"
    shutil.copytree(original.folder, finished)
    CHANGES[change](Store.open(finished))
    before, after = (contents(original.folder), original.progress), (contents(finished), Store.open(finished).progress)
    seen = []
    for step in range(1000):
        folder = tmp_path / f"{step}"
        shutil.copytree(original.folder, folder)
        with CrashAt(function, step) as crash:
            CHANGES[change](Store.open(folder))
        now = contents(folder), Store.open(folder).progress
        assert now in (before, after)
        seen.append(now == after)
        store = Store.open(folder)
        store.append(codes_of(1, store.n_bits))  # works, and cleans up
        named = {entry["file"] for entry in store._entries()}
        assert set(files(folder)) == named | {"index.json", "index.lock"}
        if crash.n_calls <= step:
            break
    assert seen == sorted(seen)  # before, until one step makes it after
    assert seen[-1]
    assert len(seen) > 3 or function == "unlink"
    assert not seen[0] or function == "unlink" or before == after  # compacting changes nothing that can be seen


def test_a_crash_while_the_folder_is_made_can_be_repeated(tmp_path):
    for step in range(5):
        with CrashAt("fsync", step) as crash:
            Store.create(tmp_path / f"{step}", 64)
        store = Store.open(tmp_path / f"{step}") if step > 1 else Store.create(tmp_path / f"{step}", 64)
        store.append(codes_of(1))
        assert len(files(store.folder)) == 4
    assert crash.n_calls == 3


@pytest.mark.parametrize("function", ["fsync", "unlink"])
def test_a_crash_in_the_first_save_leaves_no_index_or_all_of_it(tmp_path, function):
    seen = []
    for step in range(1000):
        folder = tmp_path / f"{step}"
        with CrashAt(function, step) as crash:
            HammingIndex(64).fit(codes_of(9)).remove([3]).save(folder)
        seen.append((folder / "index.json").exists())
        if seen[-1]:
            assert len(HammingIndex.load(folder)) == 8
        else:
            with pytest.raises(ValueError, match="holds no similia index"):
                HammingIndex.load(folder)
        HammingIndex(64).fit(codes_of(9)).remove([3]).save(folder)
        assert len(contents(folder)) == 8
        assert len(files(folder)) == 5
        if crash.n_calls <= step:
            break
    assert seen == sorted(seen)
    assert seen[-1]
    assert len(seen) > 3 or function == "unlink"


WRITER = """
import sys, zlib
import numpy as np
from similia.storage.store import Store
store = Store.open(sys.argv[1])
with store.writing():
    print("ready", flush=True)
    while True:
        done = store.progress.get("done", 0)
        rows = np.arange(done, done + 1 + done % 7)
        codes = np.array([list(zlib.crc32(b"%d" % row).to_bytes(4, "big")) for row in rows], dtype=np.uint8)
        store.append(codes, progress={"done": int(rows[-1]) + 1})
        print(int(rows[-1]) + 1, flush=True)
        if done % 5 == 0:
            store.compact()
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL is of POSIX systems")
def test_killed_twenty_times_nothing_is_lost_or_doubled(tmp_path):
    folder, moments = tmp_path / "index", random.Random(0)
    Store.create(folder, 32)
    done = n_acknowledged = 0
    for _ in range(20):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            for _ in range(moments.randrange(6)):  # counted in commits, so that a busy machine does as many
                n_acknowledged = int(writer.stdout.readline())
            time.sleep(moments.uniform(0.0, 0.02))
            writer.send_signal(signal.SIGKILL)
        assert writer.returncode == -signal.SIGKILL
        store = Store.open(folder)
        assert store.progress.get("done", 0) == len(store) >= max(done, n_acknowledged)
        done = len(store)
    assert n_acknowledged > 50
    store.verify()
    uninterrupted = {row: zlib.crc32(b"%d" % row).to_bytes(4, "big") for row in range(done)}
    assert contents(folder) == uninterrupted


def test_a_second_writer_is_refused_and_readers_are_not(tmp_path):
    store = Store.create(tmp_path / "index", 32)
    store.append(codes_of(3, 32))
    with store.writing():
        store.append(codes_of(1, 32))  # the holder itself goes on
        other = Store.open(store.folder)
        assert len(other) == 4
        for change in (lambda: other.append(codes_of(1, 32)), lambda: HammingIndex(32).save(store.folder)):
            with pytest.raises(
                ValueError, match=r"another process is writing to .*index, or .*; wait until it has finished"
            ):
                change()
    assert other.append(codes_of(1, 32)).tolist() == [4]
    assert store.append(codes_of(1, 32)).tolist() == [5]  # reads the manifest anew
    with subprocess.Popen([sys.executable, "-c", WRITER, str(store.folder)], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(ValueError, match="another process is writing"):
            store.compact()
        writer.kill()
    store.compact()


def test_threads_that_share_a_store_write_one_after_the_other(tmp_path):
    store = Store.create(tmp_path / "index", 64)
    with ThreadPoolExecutor(1) as pool:
        with store.writing():
            ids = store.new_ids(None, 3)
            other = pool.submit(store.append, codes_of(2))
            wait([other], timeout=0.2)
            store.change([(codes_of(3), ids)])
        assert (ids.tolist(), other.result().tolist()) == ([0, 1, 2], [3, 4])
    with store.writing():
        copies = [copy.copy(store), copy.deepcopy(store), pickle.loads(pickle.dumps(store))]
        for one in copies:  # another store of the folder, outside of the block
            with pytest.raises(ValueError, match="another process is writing"):
                one.append(codes_of(1))
    assert [int(one.append(codes_of(1))[0]) for one in copies] == [5, 6, 7]


@pytest.fixture
def windows(monkeypatch):
    """What `disk` sees of Windows: its locks, here made by those of POSIX, and its name."""
    fcntl = pytest.importorskip("fcntl", reason="this is Windows")

    def locking(descriptor, mode, n_bytes):
        assert (mode, n_bytes) == ("LK_NBLCK", 1)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    monkeypatch.setattr(_disk, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(_disk, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK="LK_NBLCK"), raising=False)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_and_devices_are_not_replaced_and_links_to_files_are(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "device").symlink_to(os.devnull)
    (tmp_path / "dev").mkdir()
    monkeypatch.setattr(_disk, "_DEVICES", tmp_path / "dev")
    for path in (tmp_path / "pipe", tmp_path / "device", tmp_path / "dev" / "stdout", tmp_path):
        with pytest.raises(ValueError, match=f"^{path} is a folder, a pipe or a device, which a file must not replace"):
            _disk.write_atomically(path, b"")
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")
    _disk.write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").read_bytes() == b"new"
    assert files(tmp_path) == ["dev", "device", "link", "old", "pipe"]


def test_folders_are_locked_on_windows_too(windows, tmp_path):
    store = Store.create(tmp_path / "index", 32)
    with store.writing(), pytest.raises(ValueError, match="another process is writing to"):
        Store.open(store.folder).append(codes_of(1, 32))
    assert store.append(codes_of(1, 32)).tolist() == [0]


def test_a_file_that_windows_does_not_replace_while_it_is_read_is_replaced_after(windows, tmp_path, monkeypatch):
    replace, refusals = os.replace, [PermissionError(), PermissionError()]

    def busy(source, target):
        if refusals:
            raise refusals.pop()
        replace(source, target)

    monkeypatch.setattr(_disk.time, "sleep", lambda seconds: None)
    monkeypatch.setattr(_disk.os, "replace", busy)
    (tmp_path / "x").write_text("old")
    _disk.write_atomically(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_text() == "new"
    refusals += [PermissionError("read by others")] * 21
    with pytest.raises(PermissionError, match="read by others"):
        _disk.write_atomically(tmp_path / "x", b"newer")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "new"


def spoil(folder, **fields):
    path = folder / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields, "crc32": None}))


def first(folder, name):
    return sorted(folder.glob(f"{name}-*.npy"))[0]


def other_array(folder):
    path = first(folder, "ids")
    data = bytearray(path.read_bytes())
    path.write_bytes(data.replace(b"<i8", b"<f8"))


def flipped_bit(folder):
    path = first(folder, "codes")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda f: (f / "index.json").unlink(), r"holds no similia index \(no index.json\)"),
        (lambda f: (f / "index.json").write_text("{"), "was not written by similia"),
        (lambda f: (f / "index.json").write_text("[1]"), "was not written by similia"),
        (lambda f: (f / "index.json").write_text('{"format": "other", "version": 1}'), "was not written by similia"),
        (lambda f: spoil(f, version=2), "has format 2, but this similia reads formats up to 1; upgrade similia"),
        (lambda f: spoil(f, segments=[{"rows": 1}]), "index.json is damaged"),
        (lambda f: spoil(f, dead=[{"file": "../x.npy", "rows": 1, "bytes": 1, "crc32": 1}]), "index.json is damaged"),
        (lambda f: spoil(f, n_bits=65), "index.json is damaged"),
        (lambda f: spoil(f, progress=3), "index.json is damaged"),
        (lambda f: spoil(f, settings={"kind": "other"}), "settings that this similia does not know"),
        (
            lambda f: spoil(f, settings={"colour": 1}),
            r"does not know: HammingIndex.__init__\(\) got an unexpected keyword argument .colour.$",
        ),
        (lambda f: first(f, "codes").unlink(), r"codes-\d+.npy is missing, expected \d+ bytes"),
        (lambda f: os.truncate(first(f, "codes"), 150), r"codes-\d+.npy has 150 bytes, expected \d+ bytes"),
        (other_array, r"ids-\d+.npy is not the array that index.json names"),
        (flipped_bit, r"codes-\d+.npy has a checksum other than index.json states"),
    ],
)
def test_damaged_and_foreign_files_are_refused(tmp_path, damage, sentence):
    HammingIndex(64).fit(codes_of(10)).remove([3]).save(tmp_path / "index")
    damage(tmp_path / "index")
    with pytest.raises(ValueError, match=sentence):
        HammingIndex.load(tmp_path / "index")


def test_dead_rows_that_do_not_exist_are_refused(tmp_path):
    HammingIndex(64).fit(codes_of(10)).remove([3]).save(tmp_path / "index")
    store = Store.open(tmp_path / "index")
    store.change(dead=np.array([10]))
    with pytest.raises(ValueError, match="removes rows that do not exist"):
        HammingIndex.load(tmp_path / "index")


def test_a_structure_of_another_index_is_refused(tmp_path):
    index = HammingIndex(64, "multihash").fit(codes_of(10))
    index.save(tmp_path / "index")
    other = HammingIndex(64, "multihash").fit(codes_of(5))
    for data in (_faiss.to_bytes(other._structure), np.zeros(100, np.uint8)):
        Store.open(tmp_path / "index").change(structure=(data, 10))
        with pytest.raises(ValueError, match="is no multihash of 10 codes of 64 bits"):
            HammingIndex.load(tmp_path / "index")


def test_a_folder_of_something_else_stays_as_it_is(tmp_path):
    (tmp_path / "letter.txt").write_text("dear")
    (tmp_path / "codes-000001.npy").write_text("mine")
    for path in (tmp_path, tmp_path / "letter.txt"):
        with pytest.raises(ValueError, match="exists and is not an empty folder"):
            HammingIndex(64).fit(codes_of(3)).save(path)
    assert files(tmp_path) == ["codes-000001.npy", "letter.txt"]
    HammingIndex(64).fit(codes_of(3)).save(tmp_path / "index")
    (tmp_path / "index" / "notes.txt").write_text("mine")
    Store.open(tmp_path / "index").compact()
    assert (tmp_path / "index" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda store: store.append(codes_of(1), [1]), "id 1 is in the index already"),
        (lambda store: store.append(codes_of(1, 8)), "codes have 8 bits, expected 64"),
        (lambda store: store.append(codes_of(1), progress={"when": np.int64(3)}), "must be JSON"),
        (lambda store: store.remove([1, 77]), "id 77 is not in the index, so it cannot be removed"),
    ],
)
def test_a_refused_change_changes_nothing(tmp_path, call, sentence):
    store = Store.create(tmp_path / "index", 64)
    store.append(codes_of(3))
    before = contents(store.folder)
    with pytest.raises(ValueError, match=sentence):
        call(store)
    assert contents(store.folder) == before
    assert store.append(codes_of(1)).tolist() == [3]
    assert len(files(store.folder)) == 6
