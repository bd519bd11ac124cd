"""Hours that `similia plan` predicts against hours that a run takes, at sizes that were not used to calibrate it.

    python benchmarks/plan.py [--cpu] [gappy levenshtein wl dtw heat]

One calibration for each method, at about 100 letters (nodes, points, numbers) and 300 landmarks or 1024 random objects;
then three runs with 10 to 100 times as many objects, other lengths and other numbers of landmarks: fit, then encode and
write chunk by chunk. With ``--cpu``, both are processor time of one core: what others do on the machine disturbs less.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from measure import Row

import similia as sm
from similia.core.config import limited_to
from similia.objects import take
from similia.planning import forecasts as _calibrate
from similia.planning.forecasts import Method, Objects, plan
from similia.scale.stream import CHUNK, FIT_ON
from similia.storage.store import Store

TITLE = "What `similia plan` predicts against the time that runs take."
BITS = 1024
LARGEST_ERROR = 0.3

# name: method, kind and further facts, (length, size) calibrated at, (n, length, size) predicted
CASES: dict[str, tuple[dict[str, Any], Objects, tuple[int, int], list[tuple[int, int, int]]]] = {
    "gappy": (
        {"kernel": sm.kernels.GappyKmers(k=4, gaps=1)},
        Objects("strings"),
        (100, 300),
        [(100_000, 150, 400), (300_000, 50, 200), (1_000_000, 80, 250)],
    ),
    "levenshtein": (
        {"distance": sm.distances.Levenshtein()},
        Objects("strings"),
        (100, 1024),
        [(50_000, 150, 1500), (100_000, 60, 700), (200_000, 80, 512)],
    ),
    "wl": (
        {"kernel": sm.kernels.WeisfeilerLehman(n_iter=3)},
        Objects("graphs", edges=32 / 30),
        (30, 300),
        [(100_000, 45, 400), (300_000, 20, 200), (500_000, 36, 250)],
    ),
    "dtw": (
        {"distance": sm.distances.DTW()},
        Objects("series"),
        (100, 1024),
        [(20_000, 150, 1500), (50_000, 60, 700), (100_000, 80, 512)],
    ),
    "heat": (
        {"kernel": sm.kernels.HypersphericalHeat()},
        Objects("vectors"),
        (128, 300),
        [(100_000, 200, 400), (300_000, 64, 200), (500_000, 100, 250)],
    ),
}


def run(names: list[str] | None = None, cores: int | None = None) -> list[Row]:
    """Return how far predictions are from runs, as a share of the time that these take."""
    rows = []
    for name in names or CASES:
        how, like, (length, size), targets = CASES[name]
        facts = {"kind": like.kind, "bits": BITS, "letters": like.letters, "cores": cores}
        by = "random" if "distance" in how else "landmarks"
        edges = {"edges": like.edges * length} if like.kind == "graphs" else {}
        costs = plan(10**6, length, **how, **{by: size}, **facts, **edges).costs
        for n, L, s in targets:
            edges = {"edges": like.edges * L} if like.kind == "graphs" else {}
            predicted = plan(n, L, **how, **{by: s}, **facts, **edges, costs=costs).seconds
            with limited_to(cores):
                taken = _run(how, like, n, L, s)
            for step in taken:
                print(f"{name:12} n = {n}, L = {L}, {s}: {step:6} {predicted[step]:8.3g} s, took {taken[step]:8.3g} s")
            ratio = sum(predicted[step] for step in taken) / sum(taken.values())
            print(f"{name:12} n = {n}, L = {L}, {s}: predicted {ratio:.2f} of the time taken")
            what = f"{name}, n = {n}, length {L}, {s} {by}: error of the predicted time"
            rows.append(Row(what, "measured time", abs(ratio - 1), at_most=LARGEST_ERROR))
    return rows


def _run(how: dict[str, Any], like: Objects, n: int, length: int, size: int) -> dict[str, float]:
    """Return the seconds of fit, encode and index."""
    method = Method(how.get("kernel") or how["distance"], "distance" in how, "distance" in how)
    pool = like.sample(FIT_ON, length, seed=2)
    start = _calibrate.clock()
    embedding = method.embedding(size)
    signs = method.signs(BITS).fit(embedding.fit_transform(pool))
    taken = {"fit": _calibrate.clock() - start, "encode": 0.0, "index": 0.0}
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "codes", BITS)
        for first in range(0, n, CHUNK):
            rows = np.random.default_rng(first).integers(FIT_ON, size=min(CHUNK, n - first))
            chunk = take(pool, rows)
            start = _calibrate.clock()
            codes = signs.transform(embedding.transform(chunk))
            middle = _calibrate.clock()
            store.append(codes)
            taken["encode"] += middle - start
            taken["index"] += _calibrate.clock() - middle
    return taken


if __name__ == "__main__":
    if "--cpu" in sys.argv:
        _calibrate.clock = time.process_time
    print(*run([name for name in sys.argv[1:] if name in CASES], 1 if "--cpu" in sys.argv else None), sep="\n")
