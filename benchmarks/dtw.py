"""DTW from long series to short random ones against aeon, tslearn and the floating-point limit.

SIMILIA_RIVALS_PYTHON names an interpreter that has aeon and tslearn; their rows are skipped without it. All get
the same 500 series (109-205 time points x 3 channels) and 256 random series (2-25), as D2KE does. Both rivals
sum squared costs, tslearn then takes the root, so results are compared with ``local="sqeuclidean"``; what is
timed is the default, a Euclidean distance in each cell, which costs more::

    SIMILIA_RIVALS_PYTHON=/path/to/python python benchmarks/dtw.py
"""

from __future__ import annotations

import statistics
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Rival, Row, in_turns
from threadpoolctl import threadpool_limits

from similia.core import config as _threads
from similia.distances import DTW
from similia.objects import SeriesBatch

N, R, CHANNELS, SGEMM = 500, 256, 3, 2048
TSLEARN_SHARE = 25  # tslearn takes minutes: it gets every 25th of the long series

RIVAL = """
import json, sys, time
import aeon, numpy as np, tslearn
from aeon.distances import dtw_pairwise_distance
from tslearn.metrics import cdist_dtw
from tslearn.utils import to_time_series_dataset
data, n_jobs, share = np.load(sys.argv[1]), int(sys.argv[3]), int(sys.argv[4])
X, Y = (np.split(data[name], data[name + "_offsets"][1:-1]) for name in "XY")
seconds, results = {}, {}


def timed(name, call, rounds):
    results[name] = call()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    seconds[name] = sorted(taken)[rounds // 2]


A, B = ([np.ascontiguousarray(x.T) for x in side] for side in (X, Y))
timed("aeon", lambda: dtw_pairwise_distance(A, B, n_jobs=n_jobs), 5)
timed("aeon_1", lambda: dtw_pairwise_distance(A, B, n_jobs=1), 5)
timed("aeon_all", lambda: dtw_pairwise_distance(A[::4], n_jobs=n_jobs), 3)
A, B = to_time_series_dataset(X[::share]), to_time_series_dataset(Y)
timed("tslearn", lambda: cdist_dtw(A, B), 1)
np.savez(sys.argv[2], **results)
print(json.dumps(seconds | {"aeon_version": aeon.__version__, "tslearn_version": tslearn.__version__}))
"""


def run() -> list[Row]:
    """Return speeds against both rivals, cells a second against sgemm, the second core's gain and the error."""
    X, Y = _series(0, N, 109, 205), _series(1, R, 2, 25)
    rival = Rival("SIMILIA_RIVALS_PYTHON")
    return [*_limits(X, Y), *(_against_rivals(rival, X, Y) if rival else [])]


def _series(seed: int, n: int, shortest: int, longest: int) -> SeriesBatch:
    random = np.random.default_rng(seed)
    lengths = random.integers(shortest, longest + 1, n)
    return SeriesBatch.from_arrays(random.standard_normal((k, CHANNELS), dtype=np.float32) for k in lengths)


def _limits(X: SeriesBatch, Y: SeriesBatch) -> list[Row]:
    distance, A = DTW(), np.ones((SGEMM, SGEMM), np.float32)

    def on_one_core() -> npt.NDArray:
        with patch.object(_threads, "cpu_count", return_value=1):
            return distance(X, Y)

    with threadpool_limits(cpu_count()):
        ours, one = in_turns(lambda: distance(X, Y), on_one_core, rounds=15)
        (product,) = in_turns(lambda: A @ A)  # apart: idle threads of BLAS spin on the second core
    rate, flops = len(X.values) * len(Y.values) / ours, 2 * SGEMM**3 / product
    print(
        f"DTW: {rate:.3g} cells/s in {cpu_count()} threads, {rate * ours / one:.3g} in one; sgemm: {flops:.3g} FLOP/s"
    )
    exact = distance(X.astype(np.float64), Y)
    error = np.abs(distance(X, Y) / exact - 1).max()
    shape = f"DTW, {N} series (109-205 x {CHANNELS}) to {R} (2-25 x {CHANNELS}), float32"
    return [
        Row(f"{shape}: cells/s", "FLOP/s of sgemm", rate / flops, at_least=0.022),
        Row(f"{shape}: speed of {cpu_count()} cores", "one core", one / ours, at_least=1.8),
        Row(f"{shape}: largest relative error", "float64", float(error), at_most=1e-4),
    ]


def _against_rivals(rival: Rival, X: SeriesBatch, Y: SeriesBatch) -> list[Row]:
    distance, fewer = DTW(), X[::4]
    calls = (lambda: distance(X, Y), lambda: distance(fewer))
    before = in_turns(*calls)
    arrays = {"X": X.values, "X_offsets": X.offsets, "Y": Y.values, "Y_offsets": Y.offsets}
    seconds, results = rival.run(RIVAL, arrays, cpu_count(), TSLEARN_SHARE)
    ours, ours_all = (statistics.mean(pair) for pair in zip(before, in_turns(*calls), strict=True))
    squares = DTW(local="sqeuclidean")(X, Y)
    for name, expected in (("aeon", squares), ("aeon_1", squares), ("tslearn", np.sqrt(squares[::TSLEARN_SHARE]))):
        gap = np.abs(results[name] / expected - 1).max()
        print(f"{name}: {seconds[name]:.3g} s; largest relative difference {gap:.2g}")
    print(f"similia: {ours:.3g} s")
    aeon, tslearn = f"aeon {seconds['aeon_version']}", f"tslearn {seconds['tslearn_version']}"
    shape = f"DTW, {N} series to {R} short ones: speed"
    part = len(X.values) / len(X[::TSLEARN_SHARE].values)
    return [
        Row(shape, f"{aeon}, n_jobs={cpu_count()}", seconds["aeon"] / ours, at_least=12),
        Row(shape, f"{aeon}, n_jobs=1", seconds["aeon_1"] / ours, at_least=22),
        Row(shape, f"{tslearn} on 1/{part:.0f} of the cells, scaled", seconds["tslearn"] * part / ours, at_least=800),
        Row(
            f"DTW, {len(fewer)} series, all pairs: speed",
            f"{aeon}, n_jobs={cpu_count()}",
            seconds["aeon_all"] / ours_all,
        ),
    ]


if __name__ == "__main__":
    print(*run(), sep="\n")
