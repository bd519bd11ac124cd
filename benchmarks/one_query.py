"""One query in a warm process: milliseconds of `SimilaritySearch` and of indexes among 100,000 objects.

    SIMILIA_DATA=... python benchmarks/one_query.py

Medians of thousands of queries, one after another, each other than the last. The time of a scan is that of reading and
counting 3.2 MB of codes (256 bits); faiss's scan of the same codes, in one thread, is a row too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import faiss
import numpy as np
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


def run() -> list[Row]:
    """Return the times as multiples of their limits, and the scan beside that of faiss."""
    return [*_of_codes(), *_of_levels(), *_of_vectors(), *_of_strings()]


def milliseconds(call: Callable[[Any], object], queries: Sequence[Any]) -> float:
    """Return the median time of a call on one of the queries, after each query was asked once."""
    for query in queries:
        call(query)
    taken = []
    for query in [*queries] * ROUNDS:
        start = time.perf_counter()
        call(query)
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def _row(what: str, taken: float, limit: float) -> Row:
    print(f"{what}: {taken:.3f} ms")
    return Row(f"one query, {what}: time", f"{limit} ms", taken / limit, at_most=1)


def _of_codes() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for n_bits in (128, 256):
        codes, queries = (rng.integers(0, 256, (n, n_bits // 8), dtype=np.uint8) for n in (N, 500))
        ones = [queries[i : i + 1] for i in range(len(queries))]
        index, flat = HammingIndex(n_bits).fit(codes), faiss.IndexBinaryFlat(n_bits)
        flat.add(codes)
        ours = milliseconds(lambda query, index=index: index.kneighbors(query, K), ones)
        faiss.omp_set_num_threads(1)
        theirs = milliseconds(lambda query, flat=flat: flat.search(query, K), ones)
        yield _row(f"HammingIndex, {N:,} codes of {n_bits} bits", ours, VECTORS)
        yield Row(f"one query, HammingIndex, {N:,} codes of {n_bits} bits: time", "IndexBinaryFlat", ours / theirs)


def _of_levels() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for n_features, limit in LEVELS.items():
        X = rng.standard_normal((N, n_features), dtype=np.float32)
        Q = X[:500] + 0.3 * rng.standard_normal((500, n_features), dtype=np.float32)
        index = VectorIndex(random_state=0).fit(X)
        taken = milliseconds(lambda x, index=index: index.kneighbors(x, K), [Q[i : i + 1] for i in range(len(Q))])
        yield _row(f"VectorIndex, {N:,} vectors of {n_features} numbers, 4 bits each", taken, limit)


def _of_vectors() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, N_FEATURES), dtype=np.float32)
    Q = X[:500] + 0.3 * rng.standard_normal((500, N_FEATURES), dtype=np.float32)
    for n_bits, rerank in ((128, None), (256, None), (128, "projected"), (256, "projected")):
        encoder = make_pipeline("passthrough", sm.SignRandomProjection(n_bits, random_state=0))
        search = sm.SimilaritySearch(encoder, rerank=rerank).fit(X)
        taken = milliseconds(lambda x, search=search: search.kneighbors(x, K), [Q[i : i + 1] for i in range(len(Q))])
        yield _row(f"{N:,} vectors of {N_FEATURES} numbers, {n_bits} bits, rerank={rerank!r}", taken, VECTORS)


def _of_strings() -> Iterator[Row]:
    if data_folder() is None:
        return
    strings = windows(KINDS["protein"])
    nystroem = sm.Nystroem(Spectrum(k=4), 256, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(256, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank=Levenshtein()).fit(strings)
    queries = [[query] for query in mutated(strings, 0.15, half=1)]
    taken = milliseconds(lambda query: search.kneighbors(query, K), queries)
    yield _row(f"{len(strings):,} strings of 60 letters, 256 bits, rerank=Levenshtein()", taken, STRINGS)


if __name__ == "__main__":
    for row in run():
        print(row)
