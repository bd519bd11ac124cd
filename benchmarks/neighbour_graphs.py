"""Graphs of nearest neighbours: series under DTW against aeon, DNA under Levenshtein against pynndescent.

DNA: families of 20 strings of 60 letters. Each letter of a family's ancestor is drawn anew, doubled or left out with a
probability of 15 % in all. pynndescent gets the bit-parallel recurrence of Myers as its numba function. It counts an
object as its own neighbour, so it is asked for one more than the graph holds, and for twice as many. By bits, the graph
is made of n and 2 n strings: an exponent of 1 means that the time is linear in n::

    SIMILIA_RIVALS_PYTHON=... SIMILIA_PYNNDESCENT_PYTHON=... python benchmarks/neighbour_graphs.py
"""

from __future__ import annotations

import time

import numpy as np
from measure import Rival, Row

from similia.distances import DTW, Levenshtein
from similia.search import knn_graph

N_SERIES, LENGTH, N_QUERIES, N_STRINGS, K = 20_000, 100, 50, 100_000, 10
N_BY_BITS = 50_000

AEON = """
import json, sys, time
import numpy as np
from aeon.distances import dtw_pairwise_distance as dtw
X, q = np.load(sys.argv[1])["X"][:, None], int(sys.argv[3])
dtw(X[:4], X[:4], window=0.1, n_jobs=2)
start = time.perf_counter()
D = dtw(X[:q], X, window=0.1, n_jobs=2)
seconds = time.perf_counter() - start
D[np.arange(q), np.arange(q)] = np.inf
np.savez(sys.argv[2], D=D)
print(json.dumps({"seconds": seconds}))
"""

PYNNDESCENT = """
import json, sys, time
import numba, numpy as np
from pynndescent import NNDescent
@numba.njit
def myers(x, y):
    places, one = np.zeros(4, np.uint64), np.uint64(1)
    for i in range(len(x)):
        places[int(x[i])] |= one << np.uint64(i)
    plus, minus, last, found = ~np.uint64(0), np.uint64(0), np.uint64(len(x) - 1), len(x)
    for j in range(len(y)):
        equal = places[int(y[j])]
        vertical = equal | minus
        horizontal = (((equal & plus) + plus) ^ plus) | equal
        up, down = minus | ~(horizontal | plus), plus & horizontal
        found += np.int64((up >> last) & one) - np.int64((down >> last) & one)
        up, down = (up << one) | one, down << one
        plus, minus = down | ~(vertical | up), up & vertical
    return np.float32(found)
X, n = np.load(sys.argv[1])["X"], int(sys.argv[3])
NNDescent(X[:1000], metric=myers, n_neighbors=n, random_state=0)
start = time.perf_counter()
graph = NNDescent(X, metric=myers, n_neighbors=n, random_state=0).neighbor_graph[0]
seconds = time.perf_counter() - start
np.savez(sys.argv[2], graph=graph)
print(json.dumps({"seconds": seconds}))
"""


def run() -> list[Row]:
    """Return speeds of `knn_graph` against both rivals, recalls, and the exponent of n in the time by bits."""
    aeon, pynndescent = Rival("SIMILIA_RIVALS_PYTHON"), Rival("SIMILIA_PYNNDESCENT_PYTHON")
    return [*(_series(aeon) if aeon else []), *(_strings(pynndescent) if pynndescent else []), *_by_bits()]


def _series(rival: Rival) -> list[Row]:
    rng, t = np.random.default_rng(0), np.linspace(0, 1, LENGTH)
    shapes = rng.normal(size=(N_SERIES // 50, LENGTH)).cumsum(axis=1)
    delays = [np.clip(t + 0.04 * np.sin(2 * np.pi * (t + shift)), 0, 1) for shift in rng.random(N_SERIES)]
    X = np.stack([np.interp(delay, t, shapes[i % len(shapes)]) for i, delay in enumerate(delays)])
    X += 0.3 * rng.normal(size=X.shape)
    distance = DTW(0.1, local="sqeuclidean")
    graph, seconds = _timed(X, distance, "exact")
    told, results = rival.run(AEON, {"X": X}, N_QUERIES)
    assert np.array_equal(np.argsort(results["D"], axis=1, kind="stable")[:, :K], _neighbours(graph)[:N_QUERIES])
    theirs = told["seconds"] * N_SERIES / N_QUERIES / 2  # each pair once
    what = f"{N_SERIES} series of {LENGTH}, DTW, window 10 %, exact, equal neighbours: speed"
    return [Row(what, f"aeon, all pairs once, scaled from {N_QUERIES} rows", theirs / seconds, at_least=20)]


def _strings(rival: Rival) -> list[Row]:
    strings = families(N_STRINGS)
    graph, seconds = _timed(strings, Levenshtein(), "kmers")
    letters = np.array([["ACGT".index(letter) for letter in string] for string in strings], np.float32)
    what, found = f"{N_STRINGS:,} strings", _recall(strings, _neighbours(graph))
    rows = [Row(f"{what} of DNA, Levenshtein: recall", "brute force", found, at_least=0.95)]
    for n_neighbors in (2 * K, K + 1):
        told, results = rival.run(PYNNDESCENT, {"X": letters}, n_neighbors)
        theirs = np.array([row[row != i][:K] for i, row in enumerate(results["graph"])])
        goal = 5 if n_neighbors == 2 * K else None  # with fewer, pynndescent finds fewer
        named = f"pynndescent, n_neighbors={n_neighbors}"
        rows.append(Row(f"{what}: recall of {named}", "brute force", _recall(strings, theirs)))
        speed = "speed" if goal else "speed beside fewer neighbours"  # the picture of the README takes the first
        rows.append(Row(f"{what}: {speed}", named, told["seconds"] / seconds, at_least=goal))
    return rows


def _by_bits() -> list[Row]:
    times, recalls, sizes = [], [], (N_BY_BITS, 2 * N_BY_BITS)
    for n in sizes:
        strings = families(n)
        graph, seconds = _timed(strings, Levenshtein(), "bits")
        times.append(seconds)
        recalls.append(_recall(strings, _neighbours(graph)))
    what = f"{sizes[0]:,} and {sizes[1]:,} strings by bits"
    return [
        Row(f"{what}: exponent of n in the time", "time in proportion to n", float(np.log2(times[1] / times[0]))),
        Row(f"{what}: least recall", "brute force", min(recalls)),
    ]


def families(n: int) -> list[str]:
    rng, letters = np.random.default_rng(0), "ACGT"
    strings = []
    for ancestor in rng.integers(4, size=(n // 20, 60)):
        for what in rng.random((20, 60)) / 0.15 * 3:
            parts = [
                letters[rng.integers(4)] if u < 1 else 2 * letters[a] if u < 2 else "" if u < 3 else letters[a]
                for a, u in zip(ancestor, what, strict=True)
            ]
            rest = "".join(letters[j] for j in rng.integers(4, size=60))
            strings.append(("".join(parts) + rest)[:60])
    return [strings[i] for i in rng.permutation(n)]


def _timed(X: object, distance: object, method: str) -> tuple[object, float]:
    """Return a graph and the seconds that it took, after a small one that compiles."""
    knn_graph(X[:1000], distance, K, method=method, random_state=0)  # type: ignore[index]
    start = time.perf_counter()
    graph = knn_graph(X, distance, K, method=method, symmetric=False, random_state=0)
    return graph, time.perf_counter() - start


def _neighbours(graph: object) -> np.ndarray:
    return graph.indices.reshape(-1, K)  # type: ignore[attr-defined]


def _recall(strings: list[str], neighbours: np.ndarray) -> float:
    rows = np.arange(200)
    D = Levenshtein()(strings[:200], strings)
    D[rows, rows] = np.inf
    return float(np.mean(np.take_along_axis(D, neighbours[:200], 1) <= np.partition(D, K - 1, axis=1)[:, K - 1 : K]))


if __name__ == "__main__":
    print(*run(), sep="\n")
