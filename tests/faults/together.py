"""First searches by eight threads at once, and by a forked child: does the process die, hang or answer wrongly?

python tests/faults/run.py together --inputs 1000
"""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import similia as sm

TITLE = "Threads and forks"
TEXT = """
Eight threads search one index for the first time, all at once: an index of each kind, just fitted, loaded, mapped,
unpickled, copied, added to or removed from, and a `SimilaritySearch` that reranks candidates. In further rows one
thread adds and removes while the others search, and a forked child searches an index that its parent has searched. Each
round compares all answers with those of one thread. Every row runs in a process of its own. *Died* counts rounds in
which this process died, *wrong* counts rounds with an answer or an error that one thread would not have given, and
*hung* counts rounds of more than 60 s.
"""
INPUTS = 1000
MUST_BE_ZERO = ("died", "wrong", "hung")

KINDS = ("exact", "ivf", "multihash")
STARTS = ("fit", "add", "loaded", "mapped", "unpickled", "copied", "removed from")
_THREADS, _ROWS, _BITS, _K = 8, 400, 64, 5
_PATIENCE = 60  # seconds without an answer
_CALM = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}  # threads of faiss that wait in a loop take ten times as long


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each kind of index and way to start; `n` rounds of each."""
    cases = [(kind, start) for kind in KINDS for start in STARTS]
    cases += [(kind, start) for start in ("changed meanwhile", "forked") for kind in KINDS]
    cases += [("search", start) for start in ("fit", "unpickled", "loaded", "changed meanwhile")]
    return [_row(kind, start, n if start != "forked" else max(1, n // 10), seed) for kind, start in cases]


def _row(kind: str, start: str, rounds: int, seed: int) -> dict[str, Any]:
    """Run all rounds of a case; after a death or a hang go on in another process."""
    died = hung = wrong = done = 0
    while done < rounds:
        command = [sys.executable, __file__, kind, start, str(done), str(rounds), str(seed)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_CALM)
        assert process.stdout is not None
        hung_up = threading.Event()

        def give_up(process: Any = process, hung_up: Any = hung_up) -> None:
            hung_up.set()
            process.kill()

        clock = threading.Timer(2 * _PATIENCE, give_up)  # the first round compiles
        clock.start()
        for line in process.stdout:
            clock.cancel()
            wrong, done = wrong + int(json.loads(line)), done + 1
            clock = threading.Timer(_PATIENCE, give_up)
            clock.start()
        clock.cancel()
        if process.wait() and done < rounds:
            died, hung, done = died + (not hung_up.is_set()), hung + hung_up.is_set(), done + 1
    return {"index": kind, "first search": start, "rounds": rounds, "died": died, "wrong": wrong, "hung": hung}


def main(kind: str, start: str, done: int, rounds: int, seed: int) -> None:
    """Run some rounds; print whether each was wrong."""
    for i in range(done, rounds):
        rng = np.random.default_rng([seed, i])
        with tempfile.TemporaryDirectory() as folder:
            wrong = (_search_round if kind == "search" else _index_round)(kind, start, rng, Path(folder))
        print(json.dumps(bool(wrong)), flush=True)


def _index_round(kind: str, start: str, rng: np.random.Generator, folder: Path) -> bool:
    codes = rng.integers(256, size=(_ROWS, _BITS // 8), dtype=np.uint8)
    queries = codes[rng.integers(_ROWS, size=3 * _THREADS)] ^ rng.integers(2, size=_BITS // 8, dtype=np.uint8)
    index, twin = (_started(sm.HammingIndex(_BITS, kind, random_state=0), codes, start, folder) for _ in "ab")
    if start == "forked":
        return _in_a_child(twin, queries)
    if start == "changed meanwhile":
        far = ~np.zeros((20, _BITS // 8), np.uint8)
        return _while_changing(index, queries, far, np.arange(_ROWS, _ROWS + 20))
    answers = _asked_together([lambda i=i: index.kneighbors(queries[i : i + 3], _K) for i in range(3 * _THREADS - 2)])
    return any(_differ(answer, twin.kneighbors(queries[i : i + 3], _K)) for i, answer in enumerate(answers))


def _started(index: Any, codes: Any, start: str, folder: Path) -> Any:
    """Return an index of all codes that nobody has searched yet."""
    if start in ("fit", "forked", "changed meanwhile"):
        return index.fit(codes)
    if start in ("loaded", "mapped"):
        sm.HammingIndex(**index.get_params()).add(codes).save(folder / "index")
        return sm.HammingIndex.load(folder / "index", mmap=start == "mapped")
    index.fit(codes[:300]).kneighbors(codes[:2], _K)
    index.add(codes[300:])
    if start == "removed from":
        index.remove(np.arange(0, _ROWS, 3))
    return {"unpickled": lambda: pickle.loads(pickle.dumps(index)), "copied": lambda: copy.deepcopy(index)}.get(
        start, lambda: index
    )()


def _search_round(kind: str, start: str, rng: np.random.Generator, folder: Path) -> bool:
    words = ["".join(word) for word in rng.choice(list("ACGT"), (60, 8))]
    encoder = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), 8, 64, random_state=0)[:-1]
    search = sm.SimilaritySearch(encoder, "kernel", n_candidates=20).fit(words)
    if start == "changed meanwhile":
        far = ["T" * 40, "T" * 41]
        return _while_changing(search, [word for word in words if set(word) - {"T"}], far, np.arange(60, 62))
    twin = pickle.loads(pickle.dumps(search))
    if start == "unpickled":
        search = pickle.loads(pickle.dumps(search))
    if start == "loaded":
        search.save(folder / "search")
        search = sm.SimilaritySearch.load(folder / "search")
    answers = _asked_together([lambda i=i: search.kneighbors(words[i : i + 3], _K) for i in range(3 * _THREADS)])
    return any(_differ(answer, twin.kneighbors(words[i : i + 3], _K)) for i, answer in enumerate(answers))


def _asked_together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Return the answers of calls that eight threads begin at the same moment; an error is an answer too."""
    answers: list[Any] = [None] * len(calls)
    barrier = threading.Barrier(_THREADS)

    def ask(first: int) -> None:
        barrier.wait()
        for i in range(first, len(calls), _THREADS):
            try:
                answers[i] = calls[i]()
            except Exception as error:
                answers[i] = error

    threads = [threading.Thread(target=ask, args=(first,)) for first in range(_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _differ(one: Any, other: Any) -> bool:
    return isinstance(one, Exception) or not all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def _while_changing(target: Any, queries: Any, far: Any, ids: Any) -> bool:
    """Add and remove what is near to no query, while seven threads search; their answers must not change."""
    find = target.kneighbors
    exact = getattr(target, "kind", "exact") == "exact"
    expected = [find(queries[i : i + 3], _K) for i in range(6)]

    def change() -> bool:
        for _ in range(10):
            target.add(far, ids).remove(ids)
        return False

    def ask(i: int) -> bool:
        found = [find(queries[i : i + 3], _K) for _ in range(10)]
        # What an approximate kind finds depends on all it holds; the distances it reports must be possible ones.
        return any(_differ(one, expected[i]) if exact else one[0].shape != expected[i][0].shape for one in found)

    calls = [change, *(lambda i=i: ask(i % 6) for i in range(_THREADS - 1))]
    return any(isinstance(answer, Exception) or answer for answer in _asked_together(calls))


def _in_a_child(index: Any, queries: Any) -> bool:
    """Search here, then in a forked child, which must find the same."""
    expected = index.kneighbors(queries, _K)
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(index.kneighbors(queries, _K)))
    child.start()
    answered = receiver.poll(_PATIENCE)
    wrong = not answered or _differ(receiver.recv(), expected)
    if not answered:
        child.kill()
    child.join()
    return wrong


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
