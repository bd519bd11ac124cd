"""Nearest codes: `HammingIndex` against the exact searches of faiss, and its approximate kinds against its exact one.

    python benchmarks/hamming_search.py

All times are medians of calls that take turns in one process. Random codes are the hard case for the rule of ties
(equal distances by id, at the cut too); its cost is in the times of `HammingIndex`, while faiss keeps any of them.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import faiss
import numpy as np
from measure import Row, in_turns

from similia.search import HammingIndex

N_CODES, N_BITS, N_QUERIES, K = 1_000_000, 256, 1000, 10
N_CLUSTERED, N_CLUSTERS, FLIPS = 100_000, 2000, 0.1
SECONDS_TO_ADD = 1.0
GOALS = {"ivf": 0.9}  # recall; multihash is for nearer duplicates


def run() -> list[Row]:
    """Return costs of exact search and of adding, then speed and recall of the approximate kinds."""
    codes, queries = _random_codes(N_CODES, 0), _random_codes(N_QUERIES, 1)
    return [*_exact(codes, queries), *_changes(codes), *_approximate()]


def _exact(codes: np.ndarray, queries: np.ndarray) -> list[Row]:
    flat = faiss.IndexBinaryFlat(N_BITS)
    flat.add(codes)
    index = HammingIndex(N_BITS).fit(codes)
    shape = f"{N_CODES:,} x {N_BITS} bits"
    rows = []
    for n, k, rounds in ((N_QUERIES, K, 5), (100, 100, 5), (1, K, 25)):
        few = queries[:n]
        (distances, ids), (theirs, others) = index.kneighbors(few, k), flat.search(few, k)
        assert np.array_equal(distances, theirs)
        print(f"{n} queries, k = {k}: {np.mean(ids == others):.4f} of the ids as faiss gives them")
        ours, *rivals = in_turns(
            lambda few=few, k=k: index.kneighbors(few, k),
            lambda few=few, k=k: flat.search(few, k),
            lambda few=few, k=k: faiss.knn_hamming(few, codes, k),
            lambda few=few, k=k: faiss.knn_hamming(few, codes, k, variant="mc"),
            rounds=rounds,
        )
        names = ("IndexBinaryFlat.search", "knn_hamming, heaps", "knn_hamming, counters")
        for name, seconds in zip(names, rivals, strict=True):
            goal = 1.05 if n == N_QUERIES and name == names[0] else None
            what = f"exact search, {shape}, {n} quer{'y' if n == 1 else 'ies'}, k = {k}: time"
            rows.append(Row(what, f"faiss {name}", ours / seconds, at_most=goal))
    with tempfile.TemporaryDirectory() as folder:
        mapped = HammingIndex.load(index.save(Path(folder) / "index"), mmap=True)
        from_files, from_memory = in_turns(
            lambda: mapped.kneighbors(queries, K), lambda: index.kneighbors(queries, K), rounds=3
        )
    rows.append(Row(f"exact search, {shape}, mapped from files: time", "the same in memory", from_files / from_memory))
    return rows


def _changes(codes: np.ndarray) -> list[Row]:
    ids = np.random.default_rng(2).permutation(len(codes))
    index = HammingIndex(N_BITS).fit(codes, ids)

    def add() -> None:
        HammingIndex(N_BITS).add(codes)

    def remove_and_add(some: np.ndarray = ids[:1000]) -> None:
        index.remove(some).add(codes[:1000], some)

    index.remove(ids[:1]).add(codes[:1], ids[:1])  # sorts the ids
    all_at_once, thousand = in_turns(add, remove_and_add)
    start = time.perf_counter()
    for code in codes[:10_000]:
        index.add(code[None])
    one_by_one = time.perf_counter() - start
    return [
        Row(f"adding {N_CODES:,} x {N_BITS} bits: time", "1 s", all_at_once / SECONDS_TO_ADD, at_most=1),
        Row("removing and adding 1000 of them, ids in disorder: time", "1 s", thousand),
        Row("adding 10,000 codes one by one: time", "1 s", one_by_one),
    ]


def _approximate() -> list[Row]:
    random = np.random.default_rng(3)
    bits = random.integers(0, 2, (N_CLUSTERS, N_BITS), dtype=np.uint8)
    bits = bits[random.integers(N_CLUSTERS, size=N_CLUSTERED + N_QUERIES)]
    for start in range(0, len(bits), 10_000):
        block = bits[start : start + 10_000]
        block ^= (random.random(block.shape, dtype=np.float32) < FLIPS).astype(np.uint8)
    codes = np.packbits(bits, axis=1)
    queries, codes = codes[:N_QUERIES], codes[N_QUERIES:]
    exact = HammingIndex(N_BITS).fit(codes)
    true = exact.kneighbors(queries, K)[1]
    rows = []
    for kind in ("ivf", "multihash"):
        start = time.perf_counter()
        index = HammingIndex(N_BITS, kind, random_state=0).fit(codes)
        print(f"{kind}: built in {time.perf_counter() - start:.3g} s")
        found = index.kneighbors(queries, K)[1]
        recall = np.mean([len(np.intersect1d(a, b)) / K for a, b in zip(found, true, strict=True)])
        fast, slow = in_turns(
            lambda index=index: index.kneighbors(queries, K), lambda: exact.kneighbors(queries, K), rounds=3
        )
        what = f"{kind}, {N_CLUSTERED:,} codes in {N_CLUSTERS} clusters"
        rows += [
            Row(f"{what}: speed", "exact", slow / fast),
            Row(f"{what}: recall@{K}", "exact", float(recall), at_least=GOALS.get(kind)),
        ]
    return rows


def _random_codes(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (n, N_BITS // 8), dtype=np.uint8)


if __name__ == "__main__":
    print(*run(), sep="\n")
