"""Nearest vectors by codes of `VectorIndex`, against signs of as many bytes and against faiss's 4-bit codes.

    SIMILIA_DATA=... python benchmarks/vector_search.py

True neighbours are those of brute force in float64. Images are CIFAR-10 in grey, 16 x 16 pixels; the other vectors are
normal, which is hard, as all neighbours are nearly equally far. Candidates are sorted by exact distances in the rows
that say so. Times are of one thread, medians of calls that take turns.
"""

from __future__ import annotations

from collections.abc import Iterator

import faiss
import numpy as np
from measure import Row, data_folder, in_turns
from scipy.spatial.distance import cdist

import similia as sm
from similia.core.config import limited_to
from similia.search import HammingIndex, VectorIndex

K, N_CANDIDATES, N_QUERIES = 10, 50, 200
N, WIDTH = 50_000, 256


def run() -> list[Row]:
    """Return recall at equal bytes, memory, and the time of a scan."""
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((N + N_QUERIES, WIDTH), dtype=np.float32)
    rows = [*_recall("normal vectors", normal), *_time(normal)]
    if folder := data_folder():
        X = np.load(folder / "vectors" / "cifar10_gray16.npz")["x"].reshape(-1, WIDTH)
        X = X[rng.permutation(len(X))[: N + N_QUERIES]].astype(np.float32)
        rows += _recall("images", X)
    return rows


def _recall(name: str, X: np.ndarray) -> Iterator[Row]:
    Q, X = X[:N_QUERIES], X[N_QUERIES:]
    for metric in ("cosine", "euclidean"):
        D = cdist(Q, X, metric)
        for bits in (1, 2, 4, 8):
            index = VectorIndex(bits, normalize=metric == "cosine", random_state=0).fit(X)
            found = index.kneighbors(Q, N_CANDIDATES, return_distance=False)
            ours = [_share(D, found[:, :K]), _share(D, _sorted(D, found))]
            n_bits, what = index.n_bits, f"{name}, {metric}, {bits} bits a coordinate"
            if metric == "cosine":
                Y, centre = _unit(X), _unit(X).mean(0)
                signs = sm.SignRandomProjection(n_bits, method="structured", random_state=0).fit(Y)
                codes, queries = signs.transform(Y - centre), signs.transform(_unit(Q) - centre)
                found = HammingIndex(n_bits).fit(codes).kneighbors(queries, N_CANDIDATES, return_distance=False)
                theirs, rival = [_share(D, found[:, :K]), _share(D, _sorted(D, found))], f"{n_bits} signs"
            else:
                if bits not in (4, 8):
                    continue
                kind = getattr(faiss.ScalarQuantizer, f"QT_{bits}bit")
                rival_index = faiss.IndexScalarQuantizer(X.shape[1], kind, faiss.METRIC_L2)
                rival_index.train(X)
                rival_index.add(X)
                found = rival_index.search(Q, N_CANDIDATES)[1]
                theirs = [_share(D, found[:, :K]), _share(D, _sorted(D, found))]
                rival = f"faiss QT_{bits}bit, {X.shape[1] * bits // 8} bytes"
            how = f"recall@{K}", f"recall@{K} of {N_CANDIDATES} candidates, sorted exactly"
            for one, other, word in zip(ours, theirs, how, strict=True):
                print(f"{what}, {n_bits // 8} bytes: {word} {one:.3f}, {rival} {other:.3f}")
                goal = 1.0 if bits == 4 else None
                yield Row(f"{what}, {n_bits // 8} bytes: {word} ({one:.2f})", rival, one / other, at_least=goal)


def _unit(X: np.ndarray) -> np.ndarray:
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def _sorted(D: np.ndarray, found: np.ndarray) -> np.ndarray:
    order = np.argsort(np.take_along_axis(D, found, axis=1), axis=1, kind="stable")[:, :K]
    return np.take_along_axis(found, order, axis=1)


def _share(D: np.ndarray, found: np.ndarray) -> float:
    farthest = np.partition(D, K - 1, axis=1)[:, K - 1 : K]
    return float((np.take_along_axis(D, found, axis=1) <= farthest).mean())


def _time(X: np.ndarray) -> Iterator[Row]:
    Q, X = X[:N_QUERIES], X[N_QUERIES:]
    faiss.omp_set_num_threads(1)
    rival = faiss.IndexScalarQuantizer(WIDTH, faiss.ScalarQuantizer.QT_4bit, faiss.METRIC_L2)
    rival.train(X)
    rival.add(X)
    index = VectorIndex(4, random_state=0).fit(X)
    same, signs = (sm.SignRandomProjection(n, method="structured", random_state=0).fit(X) for n in (index.n_bits, 256))
    long, short = (HammingIndex(8 * one.transform(Q).shape[1]).fit(one.transform(X)) for one in (same, signs))
    queries_long, queries_short = same.transform(Q), signs.transform(Q)
    for n in (N_QUERIES, 1):
        with limited_to(1):
            ours, theirs, equal, less = in_turns(
                lambda n=n: index.kneighbors(Q[:n], K),
                lambda n=n: rival.search(Q[:n], K),
                lambda n=n: long.kneighbors(queries_long[:n], K),
                lambda n=n: short.kneighbors(queries_short[:n], K),
            )
        print(f"{n} queries: {1e9 * ours / n / N:.1f} ns for a row of 256 coordinates")
        what = f"{N:,} x {WIDTH} numbers, 4 bits, {n} quer{'y' if n == 1 else 'ies'}: "
        yield Row(f"{what}speed", "faiss IndexScalarQuantizer QT_4bit", theirs / ours, at_least=1)
        yield Row(f"{what}time", f"HammingIndex({index.n_bits}), the same bytes", ours / equal)
        yield Row(f"{what}time", "HammingIndex(256)", ours / less)
    yield Row("memory of a vector, 4 bits, with its id", "float32", (index.n_bits / 8 + 8) / (4 * WIDTH), at_most=0.15)


if __name__ == "__main__":
    print(*run(), sep="\n")
