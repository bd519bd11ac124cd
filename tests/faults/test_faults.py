"""Things that break while work goes on: the faults of tests/faults/faults.py, and what they have taught."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import similia as sm
from similia.cli import app, main, voice
from similia.scale import workers as _workers
from similia.search import HammingIndex, on_disk
from similia.search.on_disk import SearchFolder
from similia.storage import store as _store
from similia.storage.disk import replacing
from similia.storage.store import Store

RELIABILITY = Path(__file__).parent
WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (90, 8))]


def codes_of(n, seed=0):
    return np.random.default_rng(seed).integers(256, size=(n, 4), dtype=np.uint8)


def add_one_by_one(store, n):
    for i in range(n):
        store.append(codes_of(1, i))


def search_of(seed=0):
    encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 4, 64, random_state=seed).fit(WORDS, np.arange(90) % 2)[:-1]
    return sm.SimilaritySearch(encoder, sm.distances.Levenshtein(), n_candidates=5).fit(WORDS[:10])


@pytest.mark.faults
@pytest.mark.long
@pytest.mark.parametrize("kinds", ["disk,damaged,two,readers", "Ctrl,worker,scheduler,kernel"])
def test_a_few_faults_of_each_kind(kinds):
    options = ["--inputs", "6", "--seed", "1", "--only", kinds]
    done = subprocess.run([sys.executable, RELIABILITY / "run.py", "faults", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n| ") == 6 + 3  # two lines of the head, and all together


def test_a_folder_that_was_opened_before_others_added_to_it(tmp_path):
    SearchFolder.create(tmp_path / "index", search_of()).add(WORDS[:5])
    opened = SearchFolder.open(tmp_path / "index")
    SearchFolder.open(tmp_path / "index").add(WORDS[5:9])
    assert opened.load().objects_.tolist() == WORDS[:9]


@pytest.mark.parametrize("mmap", [False, True])
def test_an_index_is_read_again_if_its_files_are_merged_away_meanwhile(tmp_path, monkeypatch, mmap):
    index = HammingIndex(32).fit(codes_of(9))
    index.save(tmp_path / "index")
    Store.open(tmp_path / "index").remove([1])
    old, read = _store.read_manifest(tmp_path / "index"), _store.read_manifest
    Store.open(tmp_path / "index").compact()
    answers = iter([old])
    monkeypatch.setattr(_store, "read_manifest", lambda folder: next(answers, None) or read(folder))
    assert HammingIndex.load(tmp_path / "index", mmap=mmap).ids.tolist() == [0, 2, 3, 4, 5, 6, 7, 8]
    answers = iter([old, old])  # but what is missing without a change is missing
    with pytest.raises(ValueError, match="is missing"):
        HammingIndex.load(tmp_path / "index", mmap=mmap)


@pytest.mark.parametrize("name", ["codes", "ids"])
def test_damage_does_not_get_the_checksum_of_rows_written_anew(tmp_path, name):
    HammingIndex(32).fit(codes_of(9)).save(tmp_path / "index")
    store = Store.open(tmp_path / "index")
    path = next((tmp_path / "index").glob(f"{name}-*.npy"))
    path.write_bytes(path.read_bytes()[:-1] + b"\x77")
    with pytest.raises(ValueError, match=rf"{name}-.* has a checksum other"):
        store.compact()
    with pytest.raises(ValueError, match=rf"{name}-.* has a checksum other"):
        add_one_by_one(store, 70)  # segments that are merged


def test_every_flipped_bit_of_a_manifest_is_seen(tmp_path):
    folder = tmp_path / "index"
    HammingIndex(32).fit(codes_of(9)).save(folder)
    path, whole = folder / "index.json", Store.open(folder).manifest
    content = path.read_bytes()
    for i in range(len(content)):
        path.write_bytes(content[:i] + bytes([content[i] ^ 1 << i % 8]) + content[i + 1 :])
        try:
            found = Store.open(folder).manifest
        except ValueError:
            continue
        assert {
            name: found[name] for name in whole
        } == whole  # the name of the checksum, without which it is not looked at


def test_what_could_not_be_written_leaves_no_file(tmp_path):
    with pytest.raises(OSError, match="full"), replacing(tmp_path / "file"):
        raise OSError(errno.ENOSPC, "full")
    assert not list(tmp_path.iterdir())


def test_of_two_that_make_one_index_the_encoder_is_that_of_the_first(tmp_path, monkeypatch):
    first, second, save = search_of(0), search_of(1), on_disk.save

    def interrupted(content, path):
        monkeypatch.setattr(on_disk, "save", save)
        save(content, path)
        with pytest.raises(ValueError, match="another process is writing"):
            SearchFolder.create(tmp_path / "index", second)

    monkeypatch.setattr(on_disk, "save", interrupted)
    SearchFolder.create(tmp_path / "index", first)
    kept = SearchFolder.open(tmp_path / "index").search.encoder_
    assert np.array_equal(kept.transform(WORDS), first.encoder_.transform(WORDS))


def test_a_full_disk_is_a_sentence(monkeypatch, capsys):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process is not the command's
    monkeypatch.setattr(voice, "own_process", lambda: None)
    for number, sentence in ((errno.ENOSPC, "the disk is full (no room); make room and run"), (errno.EIO, "no room")):
        monkeypatch.setattr(app, "app", lambda number=number: (_ for _ in ()).throw(OSError(number, "no room")))
        with pytest.raises(SystemExit) as stopped:
            main()
        assert stopped.value.code == 2
        assert sentence in capsys.readouterr().err


SWALLOWS = """
import signal, sys
from similia.cli import main
class Swallows:  # an import that goes on after Ctrl-C, as compiled code does
    @staticmethod
    def find_spec(name, *_):
        if name == "similia.cli.app":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                print("swallowed", file=sys.stderr)
sys.meta_path.insert(0, Swallows)
signal.signal(signal.SIGINT, {handler})
sys.argv = ["similia", "--version"]
main()
"""


@pytest.mark.parametrize(
    ("handler", "code", "said"),
    [
        ("signal.default_int_handler", 130, "similia: stopped before anything was written\n"),
        ("signal.SIG_IGN", 0, ""),  # as shells do for processes in the background
    ],
)
def test_ctrl_c_while_commands_are_imported(handler, code, said):
    script = SWALLOWS.format(handler=handler)
    ended = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (code, said)


def test_processes_that_die_while_a_cluster_starts(monkeypatch):
    import distributed

    def fails(*args, **kwargs):
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr(distributed, "LocalCluster", fails)
    with pytest.raises(ConnectionError, match=r"cannot start the processes .*; run the same again"), _workers.OnDask(2):
        pass
