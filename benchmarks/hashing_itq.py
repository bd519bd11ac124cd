"""ITQ against the sgemm it contains, and PCA with ITQ against faiss' ITQTransform trained on all rows.

The vectors are float32, low-rank clusters plus noise, from a seed. Quality is the mean average precision (mAP)
of held-out queries, relevant is what comes from the same cluster. That of faiss is the one of a random rotation
here, so that full PCA with ITQ is the measure of quality::

    python benchmarks/hashing_itq.py
"""

from __future__ import annotations

import faiss
import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from measure import Row, in_turns
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

from similia.codes import hamming_distances
from similia.codes.generalized_nystroem import GeneralizedNystroemPCA
from similia.codes.itq import ITQ, SignCodes

N, N_QUERIES, N_FEATURES, N_BITS, N_ITER = 60_000, 500, 1584, 64, 50
RANK, N_CLUSTERS, CLUSTER_SPREAD, NOISE = 200, 50, 1.2, 0.5

Vectors = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]


def run() -> list[Row]:
    """Return times over those of the rivals, and the mean average precision of both."""
    X, labels = clusters(N + N_QUERIES, np.random.default_rng(0))
    with threadpool_limits(cpu_count()):
        return [*_against_sgemm(X[:N]), *_against_faiss(X, labels)]


def clusters(n: int, random: np.random.Generator) -> tuple[Vectors, Labels]:
    """Draw n vectors: clusters in RANK directions of falling length, noise in all, and a mean."""
    labels = random.integers(N_CLUSTERS, size=n)
    lengths = np.arange(1, RANK + 1) ** -0.5
    centres = random.standard_normal((N_CLUSTERS, RANK))
    inner = (centres[labels] + CLUSTER_SPREAD * random.standard_normal((n, RANK))) * lengths
    X = inner.astype(np.float32) @ random.standard_normal((RANK, N_FEATURES), dtype=np.float32)
    for row in range(0, n, 1000):
        part = X[row : row + 1000]
        part += NOISE * random.standard_normal(part.shape, dtype=np.float32) + 1
    return X, labels


def mean_average_precision(codes: npt.NDArray, queries: npt.NDArray, labels: Labels, wanted: Labels) -> float:
    """Rank all codes by Hamming distance to each query, equal ones by their number."""
    precisions = []
    ranks = np.arange(1, len(codes) + 1)
    for distances, label in zip(hamming_distances(queries, codes), wanted, strict=True):
        relevant = labels[np.argsort(distances, kind="stable")] == label
        precisions.append((np.cumsum(relevant) / ranks)[relevant].mean())
    return float(np.mean(precisions))


def _against_sgemm(X: Vectors) -> list[Row]:
    """Compare all iterations with their two products over all rows at once, on all cores or on one."""
    Z = GeneralizedNystroemPCA(N_BITS, random_state=0).fit_transform(X).astype(np.float32)
    itq = ITQ(N_BITS, max_iter=N_ITER, tol=0, random_state=0).fit(Z)
    Q = itq.rotation_.astype(np.float32)
    Y, product = np.sign(Z @ Q), np.empty_like(Z)

    def sgemm() -> None:
        for _ in range(itq.n_iter_):
            np.matmul(Z, Q, out=product)
            np.matmul(Y.T, Z)

    def sgemm_on_one_core() -> None:
        with threadpool_limits(1):
            sgemm()

    ours, rival, one = in_turns(lambda: itq.fit(Z), sgemm, sgemm_on_one_core, rounds=5)
    print(f"ITQ: {ours:.3g} s, its products on all cores {rival:.3g} s, on one {one:.3g} s")
    what = f"ITQ, {itq.n_iter_} iterations, {len(Z):,} x {N_BITS}: time"
    best = min(rival, one)
    return [Row(what, "its two sgemm over all rows, faster of one core and all", ours / best, at_most=1.5)]


def _against_faiss(X: Vectors, labels: Labels) -> list[Row]:
    train, queries = X[:N], X[N:]
    encoder = make_pipeline(
        GeneralizedNystroemPCA(N_BITS, random_state=0), ITQ(N_BITS, max_iter=N_ITER, tol=0, random_state=0)
    )
    rivals = []

    def train_rival() -> None:
        rivals[:] = [faiss.ITQTransform(N_FEATURES, N_BITS, True)]
        rivals[0].max_train_per_dim = N  # else 10 rows for each feature
        rivals[0].itq.max_iter = N_ITER
        rivals[0].train(train)

    ours, theirs = in_turns(lambda: encoder.fit(train), train_rival, rounds=1)
    others = {
        "full PCA + ITQ": make_pipeline(PCA(N_BITS, svd_solver="covariance_eigh"), encoder[1]),
        "PCA + random rotation": make_pipeline(encoder[0], ITQ(N_BITS, max_iter=0, random_state=0)),
        "PCA signs": make_pipeline(encoder[0], SignCodes()),
    }

    def quality(encode) -> float:  # type: ignore[no-untyped-def]
        return mean_average_precision(encode(train), encode(queries), labels[:N], labels[N:])

    mine = quality(encoder.transform)
    other = quality(lambda V: np.packbits(rivals[0].apply(V) >= 0, axis=1))
    print(f"PCA + ITQ: {ours:.3g} s, faiss {theirs:.3g} s; mAP {mine:.4f}, faiss {other:.4f}", end="")
    precision = {name: quality(clone(pipeline).fit(train).transform) for name, pipeline in others.items()}
    print(*(f", {name} {value:.4f}" for name, value in precision.items()), sep="")
    what = f"generalized Nyström PCA + ITQ, {N:,} x {N_FEATURES}, {N_BITS} bits"
    full = "full PCA + ITQ"
    return [
        Row(f"{what}: speed", "faiss ITQTransform, all rows", theirs / ours, at_least=4),
        Row(f"{what}: mAP", "faiss ITQTransform, all rows", mine / other, at_least=1),
        Row(f"{what}: mAP lost", f"{full} (difference)", precision[full] - mine, at_most=0.01),
    ]


if __name__ == "__main__":
    print(*run(), sep="\n")
