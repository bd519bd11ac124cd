"""Kill ``similia encode``, ``index build`` and ``index add`` at random moments, run them again, count what is wrong.

    python tests/kill_commands.py [number of kills, 200] [number of objects, 300]

A process that has imported everything forks one child for each run, so that kills fall on the work, not on imports.
Each command is killed and run again until a run ends before its kill; the result must be that of a run that was never
killed. Lost or doubled objects, and indexes that do not open, are counted; then all begins anew, until there were so
many kills.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from similia.cli import index as commands
from similia.cli.encode import encode
from similia.search.on_disk import SearchFolder, is_search

OPTIONS = {"kernel": "Spectrum(k=2)", "distance": None, "bits": 64, "landmarks": 8, "seed": 0}
TABLE: dict[str, Any] = {"text": "text"}
COMMANDS = ("encode", "build", "add")
BUILD = {"rerank": "Levenshtein()", "kind": "exact", "candidates": 5}


def write_words(path: Path, n: int, seed: int) -> None:
    """Write a FASTA file of random words."""
    letters = np.random.default_rng(seed).choice(list("ACGT"), (n, 12))
    path.write_text("".join(f">{path.stem}{i}\n{''.join(word)}\n" for i, word in enumerate(letters)))


def run(command: str, folder: Path, chunk: int) -> None:
    """Run one command to its end."""
    first, second = str(folder / "first.fasta"), str(folder / "second.fasta")
    if command == "encode":
        encode(first, TABLE, folder / "codes.npy", **OPTIONS, chunk=chunk)
    elif command == "build":
        commands.build(first, TABLE, folder / "index", **OPTIONS, **BUILD, chunk=chunk)
    else:
        commands.add(second, TABLE, folder / "index", chunk=chunk)


def killed(command: str, folder: Path, chunk: int, delay: float) -> bool:
    """Run a command in a child and kill it after `delay` seconds; return whether it had ended before."""
    child = os.fork()
    if child == 0:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        os.dup2(quiet, 2)
        code = 1
        try:
            run(command, folder, chunk)
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + delay
    while time.monotonic() < end:
        if os.waitpid(child, os.WNOHANG)[0]:
            return True
        time.sleep(0.001)
    os.kill(child, signal.SIGKILL)
    return not os.WIFSIGNALED(os.waitpid(child, 0)[1])


def contents(folder: Path) -> tuple[Any, ...]:
    """Return what a finished run left."""
    opened = SearchFolder.open(folder / "index")
    search = opened.load()
    return (
        np.load(folder / "codes.npy").tolist(),
        search.ids_.tolist(),
        search.index_.reconstruct().tolist(),
        search.objects_.tolist(),
        opened.load_named()[1],
    )


def trial(n_kills: int, n_words: int = 300, chunk: int = 7, seed: int = 0) -> dict[str, int]:
    """Return how many kills there were, and how many codes or objects were lost, doubled or wrong."""
    delays = random.Random(seed)
    counts = {"kills": 0, "finished before the kill": 0, "unreadable": 0, "lost": 0, "doubled": 0, "wrong": 0}
    with tempfile.TemporaryDirectory() as parent:
        whole, took = new_folder(parent, "whole", n_words), {}
        for command in COMMANDS:
            start = time.monotonic()
            killed(command, whole, chunk, 600)  # in a child too: one that has computed must not fork
            took[command] = time.monotonic() - start
        for number in count():
            if counts["kills"] >= n_kills:
                break
            folder, unfinished = new_folder(parent, f"killed {number}", n_words), [*COMMANDS]
            patience = dict.fromkeys(COMMANDS, 0.8)  # grows, or a busy machine would kill each run before it commits
            while unfinished:
                for command in [*unfinished]:
                    if command == "add" and "build" in unfinished:
                        continue
                    ended = killed(command, folder, chunk, delays.uniform(0, patience[command] * took[command]))
                    patience[command] *= 1.1
                    counts["finished before the kill" if ended else "kills"] += 1
                    if ended:
                        unfinished.remove(command)
                    if is_search(folder / "index"):
                        try:
                            SearchFolder.open(folder / "index").store.verify()
                        except ValueError as error:
                            print(error)
                            counts["unreadable"] += 1
            for command in COMMANDS:
                assert killed(command, folder, chunk, 600)  # finds that all is done
            for name, found in compared(folder, whole).items():
                counts[name] += found
    return counts


def new_folder(parent: str, name: str, n_words: int) -> Path:
    """Make a folder with what is encoded and indexed."""
    folder = Path(parent) / name
    folder.mkdir()
    write_words(folder / "first.fasta", n_words, seed=1)
    write_words(folder / "second.fasta", n_words, seed=2)
    return folder


def compared(folder: Path, whole: Path) -> dict[str, int]:
    """Return how many objects and codes of a folder are not as in one that was never killed; a child looks."""
    reader, writer = os.pipe()
    if os.fork() == 0:
        found, expected = contents(folder), contents(whole)
        ids, objects = found[1], sorted(zip(found[3], found[4].values(), strict=False))
        true = sorted(zip(expected[3], expected[4].values(), strict=True))
        lost, doubled = len(set(true) - set(objects)), len(ids) - len(set(objects))
        os.write(writer, f"{lost} {doubled} {int(found[0] != expected[0]) + int(objects != true)}".encode())
        os._exit(0)
    os.wait()
    return dict(zip(("lost", "doubled", "wrong"), map(int, os.read(reader, 100).split()), strict=True))


if __name__ == "__main__":
    found = trial(*map(int, sys.argv[1:] or ["200"]))
    print(", ".join(f"{name} {number}" for name, number in found.items()))
    sys.exit(any(found[name] for name in ("unreadable", "lost", "doubled", "wrong")))
