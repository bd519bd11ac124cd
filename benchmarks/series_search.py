"""Exact search under DTW: a pattern in a long series, and the nearest of many series.

All find the stretch nearest to the pattern, both standardised. Under DTW with a window of 10 %, dtaidistance
(`subsequence_search` with its lower bounds, compiled) gets a 50th of the stretches, already standardised and in an
array; its time is scaled, and so is that of comparing every stretch by `DTW`. stumpy's MASS computes Euclidean
distances, so it is compared with ``DTW(window=0)``. The series is the sum of normal steps; so is the pattern.
The nearest of 100,000 such series of 128 points, standardised, is found for 40 queries by the search of
`KNeighborsClassifier`, by computing all distances with `DTW`, and by aeon's, which gets 1 of 50 series. Under ERP, MSM
and TWE, with a window of 10 % and without one, the nearest of 4,000 is found for 512 queries by the search that
abandons comparisons, and by computing all distances.
SIMILIA_RIVALS_PYTHON names an interpreter that has aeon and dtaidistance, SIMILIA_STUMPY_PYTHON one that has stumpy;
their rows are skipped without::

    SIMILIA_RIVALS_PYTHON=/path/to/python SIMILIA_STUMPY_PYTHON=/path/to/python python benchmarks/series_search.py
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Rival, Row, in_turns

from similia.distances import DTW, ERP, MSM, TWE
from similia.learn import KNeighborsClassifier
from similia.search import find

N, M, PART = 10_000_000, 128, 50
SERIES, QUERIES, WALKS = 100_000, 40, 4_000
SQUARED = DTW(window=0.1, local="sqeuclidean")
WARPED, RIGID = (DTW(window=window, local="sqeuclidean", root=True) for window in (0.1, 0))

DTAIDISTANCE = """
import json, sys, time
import numpy as np, dtaidistance
from dtaidistance.subsequence.subsequencesearch import subsequence_search
data = np.load(sys.argv[1])
pattern, stretches = data["pattern"], data["stretches"]
options = {"window": int(sys.argv[3]) + 1, "use_c": True}
subsequence_search(pattern, stretches[:10], dists_options=dict(options), use_lb=True).best_match().idx
start = time.perf_counter()
found = subsequence_search(pattern, stretches, dists_options=dict(options), use_lb=True).best_match()
seconds = time.perf_counter() - start
result = {"seconds": seconds, "start": int(found.idx), "distance": float(found.distance)}
print(json.dumps(result | {"version": dtaidistance.__version__}))
"""

AEON = """
import json, sys, time
import numpy as np, aeon
from aeon.distances import dtw_pairwise_distance
data, n_jobs = np.load(sys.argv[1]), int(sys.argv[3])
X, Y = data["X"], data["Y"]
dtw_pairwise_distance(X[:2], Y[:2], window=0.1, n_jobs=n_jobs)
seconds = []
for _ in range(3):
    start = time.perf_counter()
    found = dtw_pairwise_distance(X, Y, window=0.1, n_jobs=n_jobs)
    seconds.append(time.perf_counter() - start)
np.savez(sys.argv[2], found=found)
print(json.dumps({"seconds": sorted(seconds)[1], "version": aeon.__version__}))
"""

STUMPY = """
import json, sys, time
import numpy as np, stumpy
data = np.load(sys.argv[1])
stumpy.mass(data["pattern"], data["series"][:1000])
seconds = []
for _ in range(3):
    start = time.perf_counter()
    found = stumpy.mass(data["pattern"], data["series"])
    seconds.append(time.perf_counter() - start)
result = {"seconds": sorted(seconds)[1], "start": int(found.argmin()), "distance": float(found.min())}
print(json.dumps(result | {"version": stumpy.__version__}))
"""


def run() -> list[Row]:
    """Return the ratios of times to each rival."""
    rng = np.random.default_rng(0)
    series, pattern = rng.normal(size=N).cumsum(), rng.normal(size=M).cumsum()
    part = _standardised(np.lib.stride_tricks.sliding_window_view(series[: N // PART + M - 1], M))
    own = _standardised(pattern[None])
    warped, rigid = in_turns(
        lambda: find(pattern, series, 1, WARPED), lambda: find(pattern, series, 1, RIGID), rounds=3
    )
    WARPED(own, part[:100])  # compiles
    start = time.perf_counter()
    every = WARPED(own, part)[0]
    unpruned = (time.perf_counter() - start) * PART
    nearest, at = find(pattern, series[: N // PART + M - 1], 1, WARPED)
    assert at[0] == every.argmin()
    what = f"pattern of {M} in {N} points"
    rows = [Row(f"{what}, DTW: speed", "comparing every stretch", unpruned / warped, at_least=10)]
    if rival := Rival("SIMILIA_RIVALS_PYTHON"):
        theirs, _ = rival.run(DTAIDISTANCE, {"pattern": own[0], "stretches": part}, int(0.1 * M))
        assert (theirs["start"], round(theirs["distance"], 6)) == (at[0], round(nearest[0], 6)), theirs
        name = f"dtaidistance {theirs['version']}"
        rows.append(Row(f"{what}, DTW: speed", name, theirs["seconds"] * PART / warped, at_least=10))
    if rival := Rival("SIMILIA_STUMPY_PYTHON"):
        theirs, _ = rival.run(STUMPY, {"pattern": pattern, "series": series})
        (distance,), (place,) = find(pattern, series, 1, RIGID)
        assert theirs["start"] == place, (theirs, place, distance)
        rows.append(
            Row(f"{what}, without warping: speed", f"stumpy {theirs['version']} MASS", theirs["seconds"] / rigid)
        )
    return rows + _nearest(rng) + _abandoning(rng)


def _abandoning(rng: np.random.Generator) -> list[Row]:
    """Return the ratios of times to a comparison with all series, under edit distances."""
    rows, m = [], 512
    X, Y = (_standardised(rng.normal(size=(n, M)).cumsum(axis=1)) for n in (m, WALKS))
    for distance in (edits(window=window) for window in (None, 0.1) for edits in (ERP, MSM, TWE)):
        model = KNeighborsClassifier(distance, 1).fit(Y, np.zeros(WALKS, int))
        found, every = model.kneighbors(X[:128])[1][:, 0], distance(X[:128], Y)  # also compiles
        assert (found == every.argmin(axis=1)).all()
        pruned, unpruned = in_turns(lambda m=model: m.kneighbors(X), lambda d=distance: d(X, Y), rounds=1)
        name = type(distance).__name__ + ("" if distance.window is None else f" with a window of {distance.window:.0%}")
        what = f"nearest of {WALKS} series of {M}, {name}, {m} queries: speed"
        rows.append(Row(what, "computing all distances", unpruned / pruned, at_least=1))
    return rows


def _nearest(rng: np.random.Generator) -> list[Row]:
    """Return the ratios of times of a search among whole series."""
    X, Y = (_standardised(rng.normal(size=(n, M)).cumsum(axis=1)) for n in (QUERIES, SERIES))
    model = KNeighborsClassifier(SQUARED, 1).fit(Y, np.zeros(SERIES, int))
    objects = SQUARED.as_objects(X), SQUARED.as_objects(Y)
    pruned, unpruned = in_turns(lambda: model.kneighbors(X), lambda: SQUARED(*objects), rounds=9)
    assert (model.kneighbors(X)[1][:, 0] == SQUARED(*objects).argmin(axis=1)).all()
    what = f"nearest of {SERIES} series of {M}, DTW, {QUERIES} queries: speed"
    rows = [Row(what, "computing all distances", unpruned / pruned, at_least=10)]
    if rival := Rival("SIMILIA_RIVALS_PYTHON"):
        theirs, found = rival.run(AEON, {"X": X, "Y": Y[::PART]}, cpu_count())
        np.testing.assert_allclose(found["found"], SQUARED(X, Y[::PART]))
        rows.append(Row(what, f"aeon {theirs['version']}", theirs["seconds"] * PART / pruned, at_least=10))
    return rows


def _standardised(stretches: npt.NDArray) -> npt.NDArray:
    return (stretches - stretches.mean(axis=1, keepdims=True)) / stretches.std(axis=1, keepdims=True)


if __name__ == "__main__":
    print(*run(), sep="\n")
