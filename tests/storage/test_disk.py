"""The journal of a growing file: whatever is cut off, flipped or full, what it says is done is there, bit for bit."""

import errno
import json
import os
import re
import resource
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from similia.storage import disk as _journal
from similia.storage.disk import DATA, JOURNAL, Journal

HEADER = {"data": "of a file", "row": ["|u1", 4]}
CHUNKS = [(bytes(range(20)), 5), (bytes(range(100, 112)), 8), (b"", 8), (bytes(range(200, 240)), 18)]
FIRST = b"head"


@pytest.fixture(autouse=True)
def _no_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def written(folder, chunks=CHUNKS):
    """Write chunks as a run does that is killed after the last."""
    with Journal(folder) as journal:
        journal.start(HEADER, len(FIRST))
        for data, stop in chunks:
            journal.append(data, stop)
    return folder


def finished(folder, output, start=0):
    """Go on from wherever the journal is, and return the file."""
    with Journal(folder) as journal:
        assert journal.header == HEADER
        said = journal.resume()
        assert journal.done in (0, 5, 8, 18)
        done = journal.done
        for data, stop in CHUNKS:
            if stop > journal.done:
                journal.append(data, stop)
        journal.finish(output, FIRST)
    return output.read_bytes(), done, said


WHOLE = FIRST + b"".join(data for data, _ in CHUNKS)


def test_a_file_in_one_run_and_in_two(tmp_path):
    output, folder = tmp_path / "out", tmp_path / "out.partial"
    for n in range(len(CHUNKS) + 1):
        written(folder, CHUNKS[:n])
        assert not output.exists()
        found, done, said = finished(folder, output)
        assert (found, done, said) == (WHOLE, CHUNKS[n - 1][1] if n else 0, None)
        assert not folder.exists()
        output.unlink()


def test_nothing_started_leaves_no_folder_and_another_header_is_kept_until_started_anew(tmp_path):
    folder = tmp_path / "x.partial"
    with Journal(folder) as journal:
        assert journal.header is None
    assert not folder.exists()
    written(folder)
    with Journal(folder) as journal:
        assert journal.header == HEADER
        journal.start({"other": 1}, 0)
        journal.append(b"abc", 1)
    with Journal(folder) as journal:
        assert journal.header == {"other": 1}
        assert journal.resume() is None
        assert journal.done == 1
        journal.finish(tmp_path / "x", b"")
    assert (tmp_path / "x").read_bytes() == b"abc"


@pytest.mark.parametrize("name", [DATA, JOURNAL])
def test_cut_at_every_place(name, tmp_path):
    """A torn line is silent; data that are missing are said to be done again."""
    folder, output = tmp_path / "out.partial", tmp_path / "out"
    size = (written(folder) / name).stat().st_size
    first_line = len((folder / JOURNAL).read_bytes().split(b"\n")[0]) + 1
    for length in range(size):
        written(folder)
        os.truncate(folder / name, length)
        if name == JOURNAL and length < first_line:
            with Journal(folder) as journal:
                assert journal.header is None
            continue
        found, done, said = finished(folder, output)
        assert found == WHOLE
        if name == JOURNAL:
            assert said is None
        else:
            kept = max(stop for end, stop in zip([4, 24, 36], [0, 5, 8], strict=True) if end <= max(length, 4))
            assert done == kept
            assert said == f"{folder} is damaged after object {kept}; the {18 - kept} objects after it are done again"


@pytest.mark.parametrize("name", [DATA, JOURNAL])
def test_a_flipped_byte_at_every_place(name, tmp_path):
    folder, output = tmp_path / "out.partial", tmp_path / "out"
    content = (written(folder) / name).read_bytes()
    lines = content.splitlines(keepends=True)
    for place in range(len(content)):
        written(folder)
        flipped = bytearray(content)
        flipped[place] ^= 1 << (place % 8)
        (folder / name).write_bytes(flipped)
        if name == JOURNAL and place < len(lines[0]):
            with Journal(folder) as journal:
                assert journal.header is None
            continue
        found, done, said = finished(folder, output)
        assert found == WHOLE
        if name == DATA:
            assert (done, said is None) == next(
                pair
                for end, pair in [(4, (18, True)), (24, (0, False)), (36, (5, False)), (76, (8, False))]
                if place < end
            )
        elif place < len(content) - 1:  # the last line break flipped is half a line
            number = next(i for i in range(5) if place < sum(map(len, lines[: i + 1])))
            assert done == [None, 0, 5, 8, 8][number]
            assert re.search(r"is damaged after object \d+; (the \d+|all) objects after it are done again", said)


def test_more_data_or_lines_than_committed(tmp_path):
    folder, output = tmp_path / "out.partial", tmp_path / "out"
    for name, more in [
        (DATA, b"rows of a chunk that no line names"),
        (JOURNAL, b'{"start": 18, "sto'),
        (JOURNAL, bytes(50)),
    ]:
        written(folder)
        with (folder / name).open("ab") as file:
            file.write(more)
        assert finished(folder, output) == (WHOLE, 18, None)
    written(folder)
    line = (folder / JOURNAL).read_bytes().splitlines(keepends=True)[1]
    with (folder / JOURNAL).open("ab") as file:
        file.write(line)  # whole, but not the next
    assert finished(folder, output)[:2] == (WHOLE, 18)
    written(folder)
    (folder / DATA).unlink()
    with Journal(folder) as journal:
        assert journal.header is None


def test_one_writer_at_a_time(tmp_path):
    folder = tmp_path / "out.partial"
    with Journal(folder) as journal:
        journal.start(HEADER, 0)
        with pytest.raises(
            ValueError, match=r"another process is writing to .*out\.partial, or .*; wait until it has finished"
        ):
            Journal(folder)
        journal.append(b"abcd", 1)
        journal.finish(tmp_path / "out", b"")
        with Journal(folder) as second:  # the lock of the folder that is gone holds nobody up
            second.start(HEADER, 0)
            journal.close()
            with pytest.raises(ValueError, match="another process"):
                Journal(folder)


@pytest.mark.parametrize("step", ["write", "fsync", "ftruncate"])
@pytest.mark.parametrize("call", range(4))
def test_a_disk_that_is_full(step, call, tmp_path, monkeypatch):
    """Whichever call fails, what was committed stays, and the sentence says how to go on."""
    folder, output, calls = tmp_path / "out.partial", tmp_path / "out", []
    real = getattr(os, step)

    def failing(*arguments):
        calls.append(1)
        if len(calls) <= call:
            return real(*arguments)
        if step == "write":
            real(arguments[0], arguments[1][:3])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    written(folder, CHUNKS[:1])
    with Journal(folder) as journal:
        journal.resume()
        with monkeypatch.context() as patch:
            patch.setattr(_journal.os, step, failing)
            said = "^the disk is full .*keeps the [58] objects that are done: make room and run the same again$"
            with nullcontext() if step == "ftruncate" else pytest.raises(OSError, match=said):
                for data, stop in CHUNKS[1:]:
                    journal.append(data, stop)
        done = journal.done
    found, resumed, said = finished(folder, output)
    assert (found, resumed, said) == (WHOLE, done, None)


def test_a_limit_of_the_system_on_the_size_of_a_file(tmp_path):
    folder = tmp_path / "out.partial"
    script = (
        "import resource, sys; from pathlib import Path; from similia.storage.disk import Journal\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))\n"
        "with Journal(Path(sys.argv[1])) as journal:\n"
        "    journal.start({}, 0)\n"
        "    for i in range(100): journal.append(bytes([i]) * 700, i + 1)\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    done = subprocess.run([sys.executable, "-c", script, str(folder)], capture_output=True, text=True)
    assert "OSError: the disk is full (File too large); " in done.stderr
    with Journal(folder) as journal:
        assert journal.resume() is None
        assert journal.done == 14
        for i in range(14, 100):
            journal.append(bytes([i]) * 700, i + 1)
        journal.finish(tmp_path / "out", b"")
    assert (tmp_path / "out").read_bytes() == b"".join(bytes([i]) * 700 for i in range(100))


def test_each_chunk_costs_the_same(tmp_path, monkeypatch):
    """As many bytes are written for the thousandth chunk as for the first."""
    sizes, write = [], os.write
    with Journal(tmp_path / "x") as journal:
        journal.start(HEADER, 0)
        monkeypatch.setattr(_journal.os, "write", lambda d, data: (sizes.append(len(data)), write(d, data))[1])
        for i in range(1000):
            journal.append(b"x" * 10, i + 1)
    assert sum(sizes[-20:]) <= sum(sizes[:20]) + 200
    assert len(sizes) == 2000


def test_what_can_be_asked_to_finish(tmp_path):
    output = tmp_path / "out"
    output.write_bytes(b"before")
    output.chmod(0o640)
    with Journal(written(tmp_path / "out.partial")) as journal:
        journal.resume()
        with pytest.raises(ValueError, match="3 bytes come before the first chunk, but start reserved 4"):
            journal.finish(output, b"abc")
        journal.append(memoryview(np.arange(3.0)), 19)
        journal.finish(output, FIRST)
    assert output.read_bytes() == WHOLE + np.arange(3.0).tobytes()
    assert output.stat().st_mode & 0o777 == 0o640


def test_lines_are_json_with_a_checksum(tmp_path):
    lines = (written(tmp_path / "x") / JOURNAL).read_text().splitlines()
    header, entry = (json.loads(line.rpartition("\t")[0]) for line in lines[:2])
    assert header == {"format": "similia-journal", "version": 1, "offset": 4, "header": HEADER}
    assert {name: entry[name] for name in ("start", "stop", "bytes")} == {"start": 0, "stop": 5, "bytes": 20}


@pytest.mark.parametrize("step", ["start", "finish"])
def test_a_disk_that_is_full_at_the_beginning_or_the_end(step, tmp_path, monkeypatch):
    folder, output = tmp_path / "out.partial", tmp_path / "out"

    def full(*_):
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    if step == "finish":
        written(folder)
    with Journal(folder) as journal, monkeypatch.context() as patch:
        patch.setattr(_journal.os, "write", full)
        done = 18 if step == "finish" else 0
        said = f"the disk is full .*keeps the {done} objects that are done: make room and run the same again$"
        journal.resume() if step == "finish" else None
        with pytest.raises(OSError, match=said):
            journal.start(HEADER, 4) if step == "start" else journal.finish(output, FIRST)
    assert not output.exists()
    with Journal(folder) as journal:
        assert journal.header == (HEADER if step == "finish" else None)
        if step == "finish":
            journal.resume()
            journal.finish(output, FIRST)
            assert output.read_bytes() == WHOLE


def test_rows_are_on_the_disk_before_their_line(tmp_path, monkeypatch):
    with Journal(tmp_path / "x") as journal:
        journal.start(HEADER, 0)
        names, write = {number: name for name, number in journal._files.items()}, os.write
        done = []
        monkeypatch.setattr(
            os, "write", lambda number, data: (done.append(("write", names[number])), write(number, data))[1]
        )
        monkeypatch.setattr(os, "fsync", lambda number: done.append(("fsync", names[number])))
        journal.append(b"abc", 1)
    assert done == [("write", DATA), ("fsync", DATA), ("write", JOURNAL), ("fsync", JOURNAL)]


def test_a_line_that_is_missing(tmp_path):
    folder = written(tmp_path / "x")
    lines = (folder / JOURNAL).read_bytes().splitlines(keepends=True)
    (folder / JOURNAL).write_bytes(b"".join(lines[:2] + lines[3:]))  # of a chunk without bytes, so that sums agree
    assert finished(folder, tmp_path / "out") == (
        WHOLE,
        5,
        f"{folder} is damaged after object 5; the 13 objects after it are done again",
    )


def test_the_lock_of_a_folder_that_disappears_meanwhile_is_none(tmp_path, monkeypatch):
    calls, take_lock = [], _journal.take_lock

    def late(folder):
        lock = take_lock(folder)
        calls.append(1)
        if len(calls) == 1:  # the run before has just finished
            (folder / _journal.LOCK).unlink()
            folder.rmdir()
        if len(calls) == 2:
            lock.close()
            raise FileNotFoundError
        return lock

    monkeypatch.setattr(_journal, "take_lock", late)
    with Journal(tmp_path / "x") as journal:
        assert len(calls) == 3
        journal.start(HEADER, 0)
        with pytest.raises(ValueError, match="another process"):
            Journal(tmp_path / "x")
