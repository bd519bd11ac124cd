"""Thousands of small fits and transforms in one process: does memory grow, do threads, files or processes stay?

python tests/faults/run.py soak --inputs 10000
"""

from __future__ import annotations

import gc
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import similia as sm

TITLE = "Soak"
TEXT = """
One process does many rounds of small work, as a service does in a day. Each round is a fresh fit, transform,
prediction, save and load, or changes an index, on new random data. After a tenth of the rounds (compiled code and pools
of memory are there by then) resident memory, threads and open files are noted, and again at the end. *Grown* counts
which of the three have grown since: memory by more than 1 KiB a round, threads or open files by one or more.
"""
INPUTS = 10_000
MUST_BE_ZERO = ("grown",)


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for each kind of work; `n` rounds in all."""
    kinds = {"strings to labels": _nyshd, "distances to labels": _d2ke, "vectors to bits": _bits, "an index": _index}
    return [_soaked(name, work, max(10, n // len(kinds)), seed) for name, work in kinds.items()]


def _soaked(name: str, work: Callable[[np.random.Generator, Path], None], rounds: int, seed: int) -> dict[str, Any]:
    rng, before = np.random.default_rng(seed), (0, 0, 0)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(rounds):
            work(rng, Path(folder))
            if i == rounds // 10:
                before = _held()
        after = _held()
    memory = after[0] - before[0]
    grown = int(memory > 1024 * rounds) + int(after[1] > before[1]) + int(after[2] > before[2])
    megabytes = [value / 2**20 for value in (before[0], after[0])]
    return {"work": name, "rounds": rounds, "MiB early": megabytes[0], "MiB at the end": megabytes[1], "grown": grown}


def _held() -> tuple[int, int, int]:
    """Return bytes of resident memory, threads and open files."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize(), threading.active_count(), len(os.listdir("/proc/self/fd"))


def _strings(rng: np.random.Generator, n: int) -> list[str]:
    return ["".join(rng.choice(list("ACGT"), size)) for size in rng.integers(5, 30, n)]


def _nyshd(rng: np.random.Generator, folder: Path) -> None:
    X, y = _strings(rng, 40), rng.permutation(np.arange(40) % 2)
    model = sm.recipes.nyshd(sm.kernels.GappyKmers(k=4, gaps=1), n_landmarks=10, n_bits=128, random_state=0).fit(X, y)
    path = sm.save(model, folder / "model.similia")
    assert np.array_equal(sm.load(path).predict(X), model.predict(X))


def _d2ke(rng: np.random.Generator, folder: Path) -> None:
    X, y = _strings(rng, 40), rng.permutation(np.arange(40) % 2)
    d2ke = sm.D2KE(sm.distances.Levenshtein(), 32, random_state=0)
    codes = sm.SignRandomProjection(128, random_state=0).fit_transform(d2ke.fit_transform(X))
    sm.HDClassifier(random_state=0).fit(codes, y).predict(codes)


def _bits(rng: np.random.Generator, folder: Path) -> None:
    X = rng.normal(size=(200, 24)).astype(np.float32)
    sm.recipes.pca_itq(8, 0.5, 0.5, random_state=0).fit(X).transform(X)
    sm.HeatRandomFeatures(16, random_state=0).fit_transform(np.abs(X))


def _index(rng: np.random.Generator, folder: Path) -> None:
    codes = rng.integers(256, size=(100, 4), dtype=np.uint8)
    index = sm.HammingIndex(32).fit(codes).remove([3, 5])
    index.save(folder / "index")
    again = sm.HammingIndex.load(folder / "index", mmap=True)
    assert np.array_equal(again.kneighbors(codes[:5], 3)[1], index.kneighbors(codes[:5], 3)[1])
