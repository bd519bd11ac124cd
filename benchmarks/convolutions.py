"""Features of random convolutions of series, against aeon's MiniRocket and MultiRocket.

SIMILIA_RIVALS_PYTHON names an interpreter that has aeon. Both get the same 500 random walks of 500 points and make the
same number of features, in all cores; the kernels of MiniRocket are those that aeon drew::

    SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/convolutions.py
"""

from __future__ import annotations

import statistics

import numpy as np
from joblib import cpu_count
from measure import Rival, Row, in_turns

import similia as sm
from similia.embeddings.convolutions import DilatedKernels
from similia.objects import SeriesBatch

N, LENGTH, MINI, MULTI = 500, 500, 10_000, 50_000
MULTI_ROWS = 100  # of the series

RIVAL = """
import json, sys, time
import aeon, numpy as np
from aeon.transformations.collection.convolution_based import MiniRocket, MultiRocket
X, n_jobs, mini, multi, rows = np.load(sys.argv[1])["X"][:, None], *map(int, sys.argv[3:])
seconds = {}


def timed(name, call, rounds):
    result, taken = call(), []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    seconds[name] = sorted(taken)[rounds // 2]
    return result


model = MiniRocket(n_kernels=mini, n_jobs=n_jobs, random_state=0).fit(X)
Z = timed("mini", lambda: model.transform(X), 5)
names = ("sizes", "channels", "dilations", "counts", "biases")
larger = MultiRocket(n_kernels=multi // 8, n_jobs=n_jobs, random_state=0).fit(X)
timed("multi", lambda: larger.transform(X[:rows]), 3)
np.savez(sys.argv[2], Z=Z, **dict(zip(names, model.parameters)))
print(json.dumps(seconds | {"version": aeon.__version__}))
"""


def run() -> list[Row]:
    """Return speeds against aeon, and the largest difference of features of the same kernels."""
    random = np.random.default_rng(0)
    X = random.standard_normal((N, LENGTH)).cumsum(axis=1).astype(np.float32)
    batch = SeriesBatch.from_arrays(x[:, None] for x in X)
    mini = sm.RandomConvolutions(MINI, random_state=0).fit(batch)
    multi = sm.RandomConvolutions(MULTI, "multirocket", random_state=0).fit(batch)
    calls = (lambda: mini.transform(batch), lambda: multi.transform(batch[:MULTI_ROWS]))
    rival = Rival("SIMILIA_RIVALS_PYTHON")
    before = in_turns(*calls)
    print(f"similia: MiniRocket {before[0]:.3g} s, MultiRocket {before[1]:.3g} s in {cpu_count()} threads")
    if not rival:
        return []
    seconds, found = rival.run(RIVAL, {"X": X}, cpu_count(), MINI, MULTI, MULTI_ROWS)
    ours = [statistics.mean(pair) for pair in zip(before, in_turns(*calls), strict=True)]
    print(f"aeon: MiniRocket {seconds['mini']:.3g} s, MultiRocket {seconds['multi']:.3g} s")
    limits = np.concatenate([[0], np.cumsum(found["sizes"])])
    whole = [np.asarray(a, np.int64) for a in (found["dilations"], found["counts"], found["channels"], limits)]
    mini.exponent_ = 0
    mini.kernels_ = DilatedKernels(1, whole[0], whole[1], found["biases"], whole[2], whole[3])
    gap = float(np.abs(mini.transform(batch) - found["Z"]).max())
    aeon = f"aeon {seconds['version']}, n_jobs={cpu_count()}"
    shape = f"{N} series of {LENGTH} points, {found['Z'].shape[1]} features of MiniRocket"
    fewer = f"{MULTI_ROWS} series of {LENGTH} points, {multi.transform(batch[:1]).shape[1]} features of MultiRocket"
    return [
        Row(f"{shape}: speed", aeon, seconds["mini"] / ours[0], at_least=2),
        Row(f"{shape}: largest difference", aeon, gap, at_most=1e-5),
        Row(f"{fewer}: speed", aeon, seconds["multi"] / ours[1], at_least=2),
    ]


if __name__ == "__main__":
    print(*run(), sep="\n")
