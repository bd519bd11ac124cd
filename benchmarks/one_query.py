"""One query in a warm process: milliseconds of `SimilaritySearch` and of indexes among 100,000 objects.

    SIMILIA_DATA=... python benchmarks/one_query.py

In each of ten rounds, every index answers 500 queries or more, one after another, each other than the last; the median
time of the least disturbed round counts. On a shared machine, other guests slow all code by half for seconds; rounds of
one index are several seconds apart. The time of a scan is that of reading and counting 3.2 MB of codes (256 bits);
faiss's scan of the same codes, in one thread, is a row too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import faiss
import numpy as np
import numpy.typing as npt
from measure import Row, data_folder
from similarity_search import KINDS, mutated, windows
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.distances import Levenshtein
from similia.kernels import Spectrum
from similia.search import HammingIndex, VectorIndex

N, N_FEATURES, K, ROUNDS = 100_000, 128, 10, 10
STRINGS, VECTORS = 0.3, 0.1  # limits in milliseconds
LEVELS = {64: 0.3, 128: 0.5}  # limits for vectors of so many numbers, with 4 bits for each


class Asked(NamedTuple):
    """An index that is asked one query at a time."""

    what: str
    call: Callable[[Any], object]
    queries: Sequence[Any]
    limit: float | None = None  # in milliseconds; None for a rival of the row before


def run() -> list[Row]:
    """Return the times as multiples of their limits, and the scan beside that of faiss."""
    asked = [*_of_codes(), *_of_levels(), *_of_vectors(), *_of_strings()]
    medians = [[_median(one) for one in asked] for _ in range(ROUNDS)]
    rows: list[Row] = []
    for k, (one, taken) in enumerate(zip(asked, map(min, zip(*medians, strict=True)), strict=True)):
        print(f"{one.what}: {taken:.3f} ms; medians of rounds {min(m[k] for m in medians):.3f} to", end=" ")
        print(f"{max(m[k] for m in medians):.3f}")
        if one.limit is None:
            rows.append(Row(rows[-1].what, one.what, rows[-1].ratio * asked[k - 1].limit / taken))
        else:
            rows.append(Row(f"one query, {one.what}: time", f"{one.limit} ms", taken / one.limit, at_most=1))
    return rows


def _median(asked: Asked) -> float:
    """Return the median milliseconds of a call on one of the queries, after the first ten were asked."""
    for query in asked.queries[:10]:
        asked.call(query)
    taken = []
    for query in asked.queries:
        start = time.perf_counter()
        asked.call(query)
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def _of_codes() -> Iterator[Asked]:
    rng = np.random.default_rng(0)
    for n_bits in (128, 256):
        codes, queries = (rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8) for n in (N, 500))
        ones = _ones(queries)
        index, flat = HammingIndex(n_bits).fit(codes), faiss.IndexBinaryFlat(n_bits)
        flat.add(codes)
        what = f"HammingIndex, {N:,} codes of {n_bits} bits"
        yield Asked(what, lambda query, index=index: index.kneighbors(query, K), ones, VECTORS)
        faiss.omp_set_num_threads(1)
        yield Asked("IndexBinaryFlat", lambda query, flat=flat: flat.search(query, K), ones)


def _of_levels() -> Iterator[Asked]:
    rng = np.random.default_rng(0)
    for n_features, limit in LEVELS.items():
        X = rng.standard_normal((N, n_features), dtype=np.float32)
        Q = X[:500] + 0.3 * rng.standard_normal((500, n_features), dtype=np.float32)
        index = VectorIndex(random_state=0).fit(X)
        what = f"VectorIndex, {N:,} vectors of {n_features} numbers, 4 bits each"
        yield Asked(what, lambda x, index=index: index.kneighbors(x, K), _ones(Q), limit)


def _of_vectors() -> Iterator[Asked]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, N_FEATURES), dtype=np.float32)
    Q = X[:500] + 0.3 * rng.standard_normal((500, N_FEATURES), dtype=np.float32)
    for n_bits, rerank in ((128, None), (256, None), (128, "projected"), (256, "projected")):
        encoder = make_pipeline("passthrough", sm.SignRandomProjection(n_bits, random_state=0))
        search = sm.SimilaritySearch(encoder, rerank=rerank).fit(X)
        what = f"{N:,} vectors of {N_FEATURES} numbers, {n_bits} bits, rerank={rerank!r}"
        yield Asked(what, lambda x, search=search: search.kneighbors(x, K), _ones(Q), VECTORS)


def _of_strings() -> Iterator[Asked]:
    if data_folder() is None:
        return
    strings = windows(KINDS["protein"])
    nystroem = sm.Nystroem(Spectrum(k=4), 256, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(256, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank=Levenshtein()).fit(strings)
    queries = [[query] for query in mutated(strings, 0.15, half=1)]
    what = f"{len(strings):,} strings of 60 letters, 256 bits, rerank=Levenshtein()"
    yield Asked(what, lambda query: search.kneighbors(query, K), queries, STRINGS)


def _ones(Q: npt.NDArray) -> list[npt.NDArray]:
    """Return the rows, each as an array of one row."""
    return [Q[i : i + 1] for i in range(len(Q))]


if __name__ == "__main__":
    for row in run():
        print(row)
