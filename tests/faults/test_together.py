"""Several threads and forked children use one object: tests/faults/together.py in small, and the locks it rests on."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from similia.core.config import SharedLock, lock_of
from similia.search import HammingIndex

PROGRAM = Path(__file__).with_name("together.py")
IN_THREADS = [("ivf", "add"), ("exact", "unpickled"), ("multihash", "unpickled"), ("search", "unpickled")]
LONG = [pytest.param(*case, marks=pytest.mark.long) for case in (("ivf", "unpickled"), ("multihash", "add"))]


def answers(kind, start, rounds):
    """Run rounds in a process of their own, which may die; return whether each was wrong."""
    command = [sys.executable, str(PROGRAM), kind, start, "0", str(rounds), "0"]
    # Threads of faiss that wait in a loop take ten times as long.
    calm = os.environ | {"OMP_WAIT_POLICY": "PASSIVE"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=calm)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(("kind", "start"), [*IN_THREADS, *LONG])
def test_first_searches_of_eight_threads_are_those_of_one(kind, start):
    assert answers(kind, start, 10) == ["false"] * 10


@pytest.mark.parametrize("kind", ["exact", pytest.param("multihash", marks=pytest.mark.long), "search"])
def test_one_thread_may_change_what_others_search(kind):
    assert answers(kind, "changed meanwhile", 3) == ["false"] * 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.parametrize("kind", ["exact", "multihash", pytest.param("ivf", marks=pytest.mark.long)])
def test_a_forked_child_searches_as_its_parent(kind):
    assert answers(kind, "forked", 1) == ["false"]


def test_an_error_while_a_structure_is_built_leaves_none(monkeypatch):
    codes = np.random.default_rng(0).integers(256, size=(100, 4), dtype=np.uint8)
    index = HammingIndex(32, kind="multihash").fit(codes[:50]).add(codes[50:])
    from similia.search import _faiss

    def interrupted(structure, codes):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_faiss, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            index.kneighbors(codes[:3], 2)
    expected = HammingIndex(32, kind="multihash").fit(codes).kneighbors(codes[:3], 2)
    np.testing.assert_array_equal(index.kneighbors(codes[:3], 2), expected)


def test_a_writer_waits_for_readers_and_goes_before_new_ones():
    lock, events, reader_is_in = SharedLock(), [], threading.Event()

    def write():
        with lock.writing():
            events.append("written")

    def read_later():
        with lock.reading():
            events.append("read later")

    with lock.reading():
        writer = threading.Thread(target=write)
        writer.start()
        while not lock._waiting:
            reader_is_in.wait(0.001)
        later = threading.Thread(target=read_later)
        later.start()
        events.append("read first")
    writer.join()
    later.join()
    assert events == ["read first", "written", "read later"]


def test_readers_share_a_lock_and_an_error_gives_it_back():
    lock, together = SharedLock(), threading.Barrier(3, timeout=10)

    def read():
        with lock.reading():
            together.wait()  # passes only if all three are inside at once

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not together.broken
    for held in (lock.reading, lock.writing):
        with pytest.raises(OSError, match="inside"), held():
            raise OSError("inside")
    with lock.writing():
        pass


def test_all_threads_are_given_the_same_lock():
    class Owner:
        pass

    for _ in range(50):
        owner, start, found = Owner(), threading.Barrier(8), []

        def ask(owner=owner, start=start, found=found):
            start.wait()
            found.append(lock_of(owner))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(lock) for lock in found}) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
def test_a_lock_held_by_another_thread_is_free_in_a_child():
    program = (
        "import os, threading, similia.core.config as l\n"
        "lock, inside, leave = l.SharedLock(), threading.Event(), threading.Event()\n"
        "def hold():\n"
        "    with lock.writing():\n"
        "        inside.set(); leave.wait()\n"
        "threading.Thread(target=hold).start(); inside.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    with lock.writing():\n"
        "        os._exit(7)\n"
        "leave.set()\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "7\n"
