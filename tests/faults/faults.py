"""Faults at random moments: is anything lost, doubled or wrong, and does every refusal say what is the matter?

python tests/faults/run.py faults --inputs 300
python tests/faults/faults.py "two writers" 7 12      # one trial again: kind, seed, number of the trial
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

TITLE = "Faults"
TEXT = """
Each fault comes at a random moment of a run, uniform over the time that an undisturbed run takes. A run that ends
before its fault comes is counted under *ended before*, not as a fault. Then the work is run again, if need be, without
a fault. Codes, labels, objects with their codes and names, nearest neighbours and what models learnt are compared, bit
for bit, with an undisturbed run in one process. *Lost* and *doubled* count rows or objects,
*wrong* counts results that differ, and *hangs* counts runs of more than 180 s. *Unclear* counts runs that end in any
way other than success, an error of one sentence (one line, at most 500 characters) or, for Ctrl-C, exit code 130.

*Worker killed*: `kill -9` ends one of the two processes of a `LocalCluster` during encoding and predicting (functions
and commands; some with `--cluster local:2`), fits (NysHD with RPCholesky landmarks and bundled prototypes, ITQ,
GeneralizedNystroemPCA), work with a `ShardedIndex` (building it, nearest and radius neighbours) or `index build`.
*Scheduler*: `dask scheduler` is killed and started again, or another client restarts the workers; a run that has lost
its scheduler ends with one sentence and resumes when it is run again. *Disk full*: RLIMIT_FSIZE at a random byte, and a
tmpfs of random size (left out where none may be mounted), for encode, predict, index build and add. *Damaged partial
file*: after `kill -9` or Ctrl-C, a bit of `data` or `journal` is flipped, or the file is cut or deleted. *Damaged
index*: the same is done to any file of an index. Loading into memory and `verify()` compare checksums of everything;
opening compares the checksum of the manifest and the sizes of all files; **memory maps are not read when they are
opened, so a flipped bit in mapped codes or ids (`load(mmap=True)` in Python; `index search` verifies first) is only
found by `verify()`, by a load into memory, or by a merge or compaction, which check what they copy**. *Two writers*:
two or three of `index add`, `remove`, `build` and `encode` work on one index or output at the same time. *Readers*: two
processes open and search an index, in memory and mapped, while 70 additions, removals, merges and compactions are
committed; each opening counts as a run; it must show a committed state, and its answers must equal those of brute
force. *Kernel raises*: a user's callable raises an error of one of six types, with chunks of 1,000 to 10,000 objects,
in this process or on the cluster. The message must name X[73421], and all chunks before it must be kept. Power failures
and disks that lie about `fsync` are not covered, nor is Windows.
"""
INPUTS = 300
MUST_BE_ZERO = ("lost", "doubled", "wrong", "hangs", "unclear")


def kinds() -> dict[str, Any]:
    """Return the kinds of faults."""
    from _faults_cluster import Raising, Scheduler, WorkerOfFit, WorkerOfIndex, WorkerOfStream
    from _faults_disk import DamagedIndex, DamagedPartial, FullDisk, SmallDisk, Stopped
    from _faults_together import Readers, TwoWriters

    on_cluster = WorkerOfStream, WorkerOfFit, WorkerOfIndex, Scheduler, Raising
    on_disk = Stopped, FullDisk, SmallDisk, DamagedPartial, DamagedIndex
    found = (*on_cluster, *on_disk, TwoWriters, Readers)
    return {kind.name: kind for kind in found}


def run(n: int, seed: int, only: str = "") -> list[dict[str, Any]]:
    """Return a row for each kind and one for all, with `n` faults in all; `only` has words of names, after commas."""
    from _faults_runs import Tally, start_server

    start_server()
    chosen = {name: kind for name, kind in kinds().items() if any(word in name for word in only.split(","))}
    shares = _shares(n, [kind.weight for kind in chosen.values()])
    rows, total = [], Tally()
    with tempfile.TemporaryDirectory() as folder:
        for number, (name, kind) in enumerate(chosen.items()):
            share = shares[number]
            start = time.perf_counter()
            tally = _tried(kind, Path(folder) / str(number), share, seed)
            print(f"{name}: {time.perf_counter() - start:.0f} s, {tally.row(name)}", file=sys.stderr, flush=True)
            rows.append(tally.row(name))
            total = total + tally
    return [*rows, total.row("all")]


def _shares(n: int, weights: list[int]) -> list[int]:
    """Return how many of `n` faults are of each kind."""
    limits = [round(n * sum(weights[:i]) / sum(weights)) for i in range(len(weights) + 1)]
    return [max(1, b - a) for a, b in pairwise(limits)]


def _tried(kind: Any, folder: Path, n: int, seed: int, first: int = 0) -> Any:
    from _faults_runs import Tally

    made, tally = kind(folder), Tally()
    try:
        for trial in range(first, first + 10 * n):
            if tally.faults >= n:
                break
            before, tally.note = tally.bad(), ""
            made.trial(random.Random(f"{kind.name} {seed} {trial}"), tally)
            if tally.bad() != before:
                print(f"    {kind.name}, seed {seed}, trial {trial} {tally.note}: {tally}", file=sys.stderr, flush=True)
    finally:
        made.close()
    return tally


if __name__ == "__main__":
    import _faults_runs

    _faults_runs.start_server()
    with tempfile.TemporaryDirectory() as parent:
        which, seed, trial = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
        print(_tried(kinds()[which], Path(parent) / "again", 1, seed, trial))
