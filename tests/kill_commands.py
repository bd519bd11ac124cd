"""Kill ``similia encode``, ``index build`` and ``index add`` at random moments, run them again, count what is wrong.

    python tests/kill_commands.py [number of kills, 200] [number of objects, 300]

A process that has imported everything forks one child for each run, so that kills fall on the work, not on imports.
After the kills each command is run to its end; its result must be that of a run that was never killed. Lost or doubled
objects, and indexes that do not open, are counted.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from similia.cli import search as commands
from similia.search.on_disk import SearchFolder, is_search

OPTIONS = {"kernel": "Spectrum(k=2)", "distance": None, "bits": 64, "landmarks": 8, "text": "text", "seed": 0}
BUILD = {"rerank": "Levenshtein()", "kind": "exact", "candidates": 5}


def write_words(path: Path, n: int, seed: int) -> None:
    """Write a FASTA file of random words."""
    letters = np.random.default_rng(seed).choice(list("ACGT"), (n, 12))
    path.write_text("".join(f">{path.stem}{i}\n{''.join(word)}\n" for i, word in enumerate(letters)))


def run(command: str, folder: Path, chunk: int) -> None:
    """Run one command to its end."""
    first, second = str(folder / "first.fasta"), str(folder / "second.fasta")
    if command == "encode":
        commands.encode(first, folder / "codes.npy", model=None, **OPTIONS, chunk=chunk)
    elif command == "build":
        commands.build_index(first, folder / "index", **OPTIONS, **BUILD, chunk=chunk)
    else:
        commands.add_to_index(second, folder / "index", text="text", again=False, chunk=chunk)


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
        folders = [Path(parent) / name for name in ("killed", "whole")]
        for folder in folders:
            folder.mkdir()
            write_words(folder / "first.fasta", n_words, seed=1)
            write_words(folder / "second.fasta", n_words, seed=2)
        took = {}
        for command in ("encode", "build", "add"):
            start = time.monotonic()
            killed(command, folders[1], chunk, 600)  # in a child too: one that has computed must not fork
            took[command] = time.monotonic() - start
        while counts["kills"] + counts["finished before the kill"] < n_kills:
            for command in ("encode", "build", "add"):
                if command == "add" and not is_search(folders[0] / "index"):
                    continue
                ended = killed(command, folders[0], chunk, delays.uniform(0, 0.4 * took[command]))
                counts["finished before the kill" if ended else "kills"] += 1
                if is_search(folders[0] / "index"):
                    try:
                        SearchFolder.open(folders[0] / "index").store.verify()
                    except ValueError as error:
                        print(error)
                        counts["unreadable"] += 1
        for command in ("encode", "build", "add"):
            assert killed(command, folders[0], chunk, 600)
        reader, writer = os.pipe()
        if os.fork() == 0:
            found, expected = contents(folders[0]), contents(folders[1])
            ids, objects = found[1], sorted(zip(found[3], found[4].values(), strict=False))
            true = sorted(zip(expected[3], expected[4].values(), strict=True))
            lost, doubled = len(set(true) - set(objects)), len(ids) - len(set(objects))
            os.write(writer, f"{lost} {doubled} {int(found[0] != expected[0]) + int(objects != true)}".encode())
            os._exit(0)
        os.wait()
        counts |= dict(zip(("lost", "doubled", "wrong"), map(int, os.read(reader, 100).split()), strict=True))
    return counts


if __name__ == "__main__":
    found = trial(*map(int, sys.argv[1:] or ["200"]))
    print(", ".join(f"{name} {count}" for name, count in found.items()))
    sys.exit(any(found[name] for name in ("unreadable", "lost", "doubled", "wrong")))
