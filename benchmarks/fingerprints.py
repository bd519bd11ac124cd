"""Tanimoto search of fingerprints: `HammingIndex(metric="jaccard")` against RDKit and against Hamming search.

    SIMILIA_DATA=... python benchmarks/fingerprints.py

A million fingerprints of 2048 bits made from the Morgan fingerprints (radius 2) of the molecules of BBBP and ESOL: each
takes a random share of up to a half of its bits from another molecule. Queries are made in the same way. On codes of
random bits nothing can be ruled out, so that both distances read the same bytes. RDKit compares 100,000 fingerprints,
and its time counts tenfold. faiss has no Jaccard distance of packed bits.
"""

from __future__ import annotations

import importlib.util

import numpy as np
from measure import Row, data_folder, in_turns

from similia.datasets import fetch
from similia.search import HammingIndex

N_CODES, N_BITS, N_QUERIES, K = 1_000_000, 2048, 64, 10
N_UNIFORM, N_RDKIT = 200_000, 100_000


def run() -> list[Row]:
    """Return the time per byte, the gain from pruning, and the speed beside RDKit; none without data or RDKit."""
    if data_folder() is None:
        return []
    if importlib.util.find_spec("rdkit") is None:
        print("skipped: RDKit is not installed")
        return []
    return [*_per_byte(), *_molecules()]


def _per_byte() -> list[Row]:
    random = np.random.default_rng(0)
    codes = random.integers(0, 256, (N_UNIFORM + N_QUERIES, N_BITS // 8), dtype=np.uint8)
    jaccard, hamming = _seconds(codes[:N_UNIFORM], codes[N_UNIFORM:])
    what = f"{N_UNIFORM:,} codes of {N_BITS} random bits, {N_QUERIES} queries, k = {K}: time"
    return [Row(what, "Hamming search", jaccard / hamming, at_most=1.2)]


def _seconds(codes: np.ndarray, queries: np.ndarray) -> tuple[float, float]:
    """Return the seconds of exact search by Jaccard and by Hamming distance."""
    by = [HammingIndex(N_BITS, metric=metric).fit(codes) for metric in ("jaccard", "hamming")]
    jaccard, hamming = in_turns(*(lambda index=index: index.kneighbors(queries, K) for index in by), rounds=9)
    return jaccard, hamming


def _molecules() -> list[Row]:
    from rdkit import DataStructs

    own = morgan_fingerprints()
    codes, queries = resampled(own, N_CODES, 1), resampled(own, N_QUERIES, 2)
    jaccard, hamming = _seconds(codes, queries)
    index, by_hamming = HammingIndex(N_BITS, metric="jaccard").fit(codes), HammingIndex(N_BITS).fit(codes)
    single, single_hamming = in_turns(
        lambda: [index.kneighbors(query[None], K) for query in queries[:8]],
        lambda: [by_hamming.kneighbors(query[None], K) for query in queries[:8]],
        rounds=3,
    )
    vectors = [DataStructs.CreateFromFPSText(code.tobytes().hex()) for code in codes[:N_RDKIT]]
    few = [DataStructs.CreateFromFPSText(code.tobytes().hex()) for code in queries[:8]]

    def rdkit() -> list[np.ndarray]:
        answers = [np.array(DataStructs.BulkTanimotoSimilarity(query, vectors)) for query in few]
        return [np.argpartition(-values, K)[:K] for values in answers]

    [bulk] = in_turns(rdkit, rounds=3)
    some = HammingIndex(N_BITS, metric="jaccard").fit(codes[:N_RDKIT]).kneighbors(queries[:8], K)[0]
    true = [np.sort(1 - np.array(DataStructs.BulkTanimotoSimilarity(query, vectors)))[:K] for query in few]
    same = float(np.abs(some - true).max() < 1e-12)
    distances = index.kneighbors(queries, K)[0]
    bits = np.unpackbits(codes[:10_000], axis=1).sum(axis=1)
    print(f"bits: {np.percentile(bits, [5, 50, 95])}; mean distance of the 10th: {distances[:, -1].mean():.2f}")
    print(f"a query in a batch: {1000 * jaccard / N_QUERIES:.2f} ms; alone: {1000 * single / 8:.2f} ms")
    what = f"{N_CODES:,} Morgan fingerprints, {N_QUERIES} queries, k = {K}"
    scale = (N_CODES / N_RDKIT) * (N_QUERIES / len(few))
    return [
        Row(f"{what}: speed", "Hamming search", hamming / jaccard, at_least=3),
        Row(f"{what}: speed", "RDKit BulkTanimotoSimilarity", bulk * scale / jaccard),
        Row(f"{N_RDKIT:,} of them: distances equal", "RDKit BulkTanimotoSimilarity", same, at_least=1),
        Row(f"{what}, one query at a time: speed", "Hamming search", single_hamming / single),
        Row(f"{what}, one query at a time: speed", "RDKit BulkTanimotoSimilarity", bulk * (N_CODES / N_RDKIT) / single),
    ]


def morgan_fingerprints() -> np.ndarray:
    """Return the fingerprints of molecules as rows of 0 and 1."""
    from rdkit import Chem, RDLogger
    from rdkit.Chem import rdFingerprintGenerator

    RDLogger.DisableLog("rdApp.*")
    made = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=N_BITS)
    molecules = [Chem.MolFromSmiles(text) for name in ("BBBP", "ESOL") for text in fetch(name).data]
    return np.array([made.GetFingerprintAsNumPy(one) for one in molecules if one is not None], dtype=bool)


def resampled(own: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Return `n` packed fingerprints: a random share, up to a half, of the bits of one comes from another."""
    random, parts = np.random.default_rng(seed), []
    for start in range(0, n, 20_000):
        size = min(20_000, n - start)
        left, right = (own[random.integers(len(own), size=size)] for _ in range(2))
        other = random.random((size, N_BITS), dtype=np.float32) < random.random((size, 1), dtype=np.float32) / 2
        parts.append(np.packbits(np.where(other, right, left), axis=1))
    return np.concatenate(parts)


if __name__ == "__main__":
    print(*run(), sep="\n")
