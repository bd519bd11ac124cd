"""Choose landmarks: one small function for each strategy.

A strategy is a function ``f(gram, n_components, rng)`` that returns the positions of at most `n_components` landmarks:
an int64 array of distinct numbers, in the order of choice (``ensemble``: a list of such arrays). `rng` is a numpy
Generator. `gram` gives access to the kernel matrix K of n objects, by `gram.n`, `gram.diagonal()`,
`gram.columns(indices)` and `gram.block(rows, columns)`. With s = n_components:

============== ========================================================= ============================
name           probability that an object is chosen                      kernel values, memory
============== ========================================================= ============================
``uniform``    the same for each object                                  none
``kmeans++``   by squared distance in feature space to chosen landmarks  n s, O(n)
``leverage``   by approximate ridge leverage scores                      about 3 n s, O(n s)
``rpcholesky`` by the part of k(x, x) that chosen landmarks leave over   n s, O(n s)
``adaptive``   by the part of its row that chosen landmarks leave over   n s, O(n s)
``ensemble``   the same for each object; landmarks are split in groups   none here
============== ========================================================= ============================

``kmeans++`` and ``rpcholesky`` return fewer landmarks if these already explain every object up to rounding.

The rest of this module serves these strategies, and the embeddings and learners that use kernel or distance matrices.
The landmark strategies and ``Nystroem.fit`` read kernel values only through a `Gram`, which returns a block of given
rows and columns, whole columns, or the diagonal. The n x n matrix is never formed.

`decompose` turns the kernel matrix H of s landmarks into the matrix W that turns kernel values into coordinates. With H
= Q diag(lambda) Q^T and f the policy for negative eigenvalues, W = Q diag(f(lambda))^(-1/2). Only eigenvalues with
f(lambda) > rcond max f(lambda) are kept. If H is positive semi-definite and C holds the kernel values of objects (rows)
and landmarks (columns), the coordinates Z = C W satisfy Z Z^T = C H^+ C^T. Callers run this in float64 and on one BLAS
thread, since the last bits and signs of eigenvectors depend on the number of threads. Cost: O(s^3).

Papers: Kumar, Mohri & Talwalkar, "Sampling methods for the Nyström method", JMLR 13, 2012; Musco & Musco, "Recursive
sampling for the Nyström method", NIPS 2017; Chen, Epperly, Tropp & Webber, "Randomly pivoted Cholesky: practical
approximation of a kernel matrix with few entry evaluations", Communications on Pure and Applied Mathematics 78, 2025;
Epperly, Tropp & Webber, "Embrace rejection: kernel matrix approximation by accelerated randomly pivoted Cholesky", 2025
(arXiv:2410.03969).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from similia.core.config import row_blocks
from similia.core.validation import warn_user
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import (
    Kernel,
    as_objects,
    check_finite,
    kernel_values,
    precision,
    self_values,
)
from similia.sources.dask import Distributed

__all__ = ["adaptive", "ensemble", "kmeans_plusplus", "leverage", "rpcholesky", "uniform"]  # the strategies
Index = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
POLICIES = ("clip", "flip", "shift", "raise")
_SHIFT = 1.5  # multiple of |smallest eigenvalue|; with 1.0 the most negative directions are divided by almost 0


class Gram:
    """The kernel matrix of a collection of objects under a callable kernel, computed only where it is read."""

    def __init__(self, kernel: Callable[..., Any], X: Any) -> None:
        self.kernel = kernel
        self.X = as_objects(kernel, X)  # in the layout that the kernel uses
        self.n = at_least_one(self.X)  # number of objects
        self._eps: float | None = None

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        """Return k(X[rows], X[columns]), shape (n_rows, n_columns), float32 or float64."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        objects = take(self.X, rows)
        others = objects if columns is rows else take(self.X, columns)
        return kernel_values(self.kernel, objects, others, rows, columns, "X[{}] and X[{}]")

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray:
        """Return k(X, X[indices]), shape (n, n_indices), computed in blocks of rows."""
        indices = np.asarray(indices)
        if isinstance(self.X, Distributed):
            return np.concatenate([*self.X.map(_columns, self.kernel, take(self.X, indices), indices)])
        blocks = [self.block(rows, indices) for rows in row_blocks(self.n, 8 * max(1, len(indices)))]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def diagonal(self) -> npt.NDArray:
        """Return k(x, x) for all objects as `block` returns it, float64 (n,)."""
        if isinstance(self.X, Distributed):
            return np.concatenate([*self.X.map(_diagonal, self.kernel)])
        return _diagonal(self.X, 0, self.kernel)

    def eps(self, values: npt.NDArray | None = None) -> float:
        """Return the machine precision of the kernel, found once, from `values` of it if there are some."""
        if self._eps is None:
            self._eps = precision(self.kernel, self.X, values)
        return self._eps


class PrecomputedGram(Gram):
    """A precomputed kernel matrix of n objects: all columns, or only those of the objects at positions `columns`."""

    kernel: Any

    def __init__(self, K: npt.NDArray, columns: Index | None = None) -> None:
        self.kernel = "precomputed"
        self.X = K
        self.n = len(K)
        self._position = np.arange(self.n)
        if columns is not None:
            self._position[columns] = np.arange(len(columns))

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        rows, columns = np.asarray(rows), np.asarray(columns)
        values = self.X[np.ix_(rows, self._position[columns])]
        return check_finite(values, rows, columns, "objects {} and {}")

    def diagonal(self) -> npt.NDArray:
        values = self.X.diagonal()[:, None]
        return check_finite(values, range(self.n), [0], "object {} and itself")[:, 0].astype(np.float64)

    def eps(self, values: npt.NDArray | None = None) -> float:
        return float(np.finfo(self.X.dtype).eps)


def landmark_columns(M: npt.NDArray, indices: Index, n_train: int, name: str) -> Index:
    """Return the columns of `M` that belong to landmarks: `indices`, or all if `M` has columns for landmarks only."""
    if M.shape[1] not in (len(indices), n_train):
        raise ValueError(
            f"{name} has {M.shape[1]} columns, expected {n_train} (all training objects) or {len(indices)} "
            "(the landmarks)"
        )
    return indices if M.shape[1] == n_train else np.arange(len(indices))


def check_symmetric(M: npt.NDArray, indices: Index, tolerance: float, what: str) -> None:
    """Raise if `M`, a matrix of `what` ("kernel" or "distance"), is not symmetric.

    The message calls the object in row i ``X[indices[i]]``. `tolerance` is relative to the largest entry of `M`.
    """
    gap = np.abs(M - M.T)
    i, j = np.unravel_index(gap.argmax(), M.shape)
    if gap[i, j] > tolerance * np.abs(M).max():
        f = what[0]
        raise ValueError(
            f"the {what} is not symmetric: {f}(X[{indices[i]}], X[{indices[j]}]) = {M[i, j]:.6g} but "
            f"{f}(X[{indices[j]}], X[{indices[i]}]) = {M[j, i]:.6g}, expected equal values; use "
            f"({f}(x, y) + {f}(y, x)) / 2"
        )


def _columns(part: Any, start: int, kernel: Any, landmarks: Any, indices: Index) -> npt.NDArray:
    blocks = row_blocks(n_objects(part), 8 * max(1, len(indices)))
    pair = "X[{}] and object {}"
    return np.concatenate([kernel_values(kernel, take(part, rows), landmarks, rows, indices, pair) for rows in blocks])


def _diagonal(part: Any, start: int, kernel: Any) -> npt.NDArray:
    values = self_values(kernel, part)
    return check_finite(values[:, None], range(len(values)), [0], "X[{}] and itself")[:, 0]


class DistancePairs:
    """A distance between positions in a collection: it looks up the entries of a precomputed matrix `values`."""

    def __init__(self, values: npt.NDArray) -> None:
        self.values = values

    def __call__(self, X: npt.NDArray, Y: npt.NDArray | None = None) -> npt.NDArray:
        return self.values[np.ix_(X, X if Y is None else Y)]


class KernelPairs(DistancePairs, Kernel):
    """A kernel between positions in a collection: it looks up the entries of a precomputed matrix `values`."""

    def diag(self, X: npt.NDArray) -> npt.NDArray:
        return self.values[X, X]


def decompose(H: Floats, policy: str, rcond: float, eps: float) -> tuple[Floats, Floats]:
    """Return the kept eigenvalues of `H`, (rank,), largest first, and the matrix W of coordinates, (s, rank).

    `H` is the kernel matrix of s landmarks. The kernel values of objects with these landmarks, times W, are the
    coordinates of the objects. `policy` is the parameter `spectrum` of `Nystroem`. After it is applied, eigenvalues
    above `rcond` times the largest are kept. `eps` is the machine precision of the kernel values. A negative eigenvalue
    counts as rounding error if its absolute value is at most max(s * eps, 1e-10) times the largest eigenvalue.
    """
    if not H.any():
        raise ValueError(
            "all similarities among the landmarks are 0: are the objects too short or too small for this kernel "
            "(strings shorter than k, graphs without edges)?"
        )
    values, vectors = np.linalg.eigh(H)
    values, vectors = values[::-1], vectors[:, ::-1]
    if values[0] <= 0:
        raise ValueError(
            f"the kernel has no positive eigenvalue on the landmarks (largest: {values[0]:.3g}), expected "
            "a similarity with k(x, x) > 0 for some landmark; drop objects that are similar to nothing, and turn "
            "a distance d into a similarity, e.g. exp(-d)"
        )
    values = _repair(values, policy, max(len(H) * eps, 1e-10))
    order = np.argsort(-values, kind="stable")  # flipping changes the order
    kept = order[values[order] > rcond * values.max()]
    values, vectors = values[kept], vectors[:, kept]
    return values, with_signs(vectors) / np.sqrt(values)


def with_signs(vectors: Floats) -> Floats:
    """Return `vectors`, each column multiplied by 1 or -1 to make its entry of largest absolute value positive."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.sign(largest)


def _repair(values: Floats, policy: str, tolerance: float) -> Floats:
    """Return `values`, eigenvalues in descending order, changed by `policy` if some are negative.

    Negative means below -`tolerance` times the largest. If some are, "raise" raises, and "clip" only warns.
    """
    ratio = -values[-1] / values[0]
    if ratio <= tolerance:
        return values
    found = (
        f"the kernel is not positive semi-definite on the landmarks: its smallest eigenvalue "
        f"is {values[-1]:.3g}, {ratio:.2g} times its largest in size"
    )
    if policy == "raise":
        raise ValueError(f'{found}; pass spectrum="clip", "flip" or "shift", or another kernel')
    if policy == "flip":
        return np.abs(values)
    if policy == "shift":
        return values - _SHIFT * values[-1]
    warn_user(f'{found}; negative directions are dropped (spectrum="flip" or "shift" keeps them)')
    return values


def uniform(gram: Gram, n_components: int, rng: np.random.Generator) -> Index:
    """Return the positions of `n_components` landmarks, drawn uniformly without replacement."""
    return rng.choice(gram.n, n_components, replace=False)


def kmeans_plusplus(gram: Gram, n_components: int, rng: np.random.Generator) -> Index:
    """Return at most `n_components` landmarks, chosen in the feature space as k-means++ chooses initial centres.

    Object x becomes the next landmark with probability proportional to k(x, x) - 2 k(x, z) + k(z, z), the squared
    distance of x to the nearest landmark z so far (Arthur & Vassilvitskii, 2007). Landmarks are drawn in batches:
    objects are proposed with the probabilities that hold before the batch. Each is accepted with probability (its
    squared distance now) / (its squared distance before the batch). This gives the same distribution as one landmark at
    a time, with fewer kernel calls.
    """
    diagonal = gram.diagonal()
    noise = 8 * gram.eps() * np.abs(diagonal).max()
    chosen = rng.integers(gram.n, size=1)
    distance = np.full(gram.n, np.inf)
    new = chosen
    while True:
        columns = gram.columns(new)
        squared = (diagonal[:, None] - 2.0 * columns + diagonal[new]).min(axis=1)
        distance = np.minimum(distance, squared)
        distance[distance <= noise] = 0.0
        distance[chosen] = 0.0
        if len(chosen) >= n_components or not distance.any():
            return chosen
        proposals = _propose(distance, n_components, rng)
        within = gram.block(proposals, proposals)
        squared = diagonal[proposals][:, None] - 2.0 * within + diagonal[proposals]
        accepted = _accept_far(distance[proposals], squared, proposals, rng)
        new = proposals[accepted][: n_components - len(chosen)]
        chosen = np.concatenate([chosen, new])


def _accept_far(before: Floats, squared: Floats, proposals: Index, rng: np.random.Generator) -> list[int]:
    """Return the positions of the proposals that rejection sampling accepts; see `kmeans_plusplus`.

    `before` holds the squared distance of each proposal to its nearest landmark before the batch, `squared` the squared
    distances between proposals.
    """
    now = before.copy()
    accepted = []
    for i, u in enumerate(rng.random(len(before))):
        if u * before[i] < now[i]:
            accepted.append(i)
            now = np.minimum(now, squared[:, i])
            now[proposals == proposals[i]] = 0.0
    return accepted


def rpcholesky(gram: Gram, n_components: int, rng: np.random.Generator) -> Index:
    """Return at most `n_components` landmarks, chosen by randomly pivoted Cholesky factorisation.

    With K the kernel matrix and F F^T its Nystroem approximation on the pivots (landmarks) chosen so far, object i
    becomes the next pivot with probability proportional to (K - F F^T)_ii. For any rank r and e > 0, after r / e + r
    log(1 / (e h)) pivots, E tr(K - F F^T) is at most (1 + e) times the trace error of the best rank-r approximation.
    Here h is that trace error divided by tr K (Chen, Epperly, Tropp & Webber, 2025, Theorem 2.3). Pivots are drawn in
    batches by rejection, with the same distribution as if they were drawn one at a time (Epperly, Tropp & Webber,
    2025). The function stops early if the diagonal of K - F F^T is only rounding noise. If no k(x, x) is positive, the
    pivot is object 0, for which `Nystroem` then raises an error.
    """
    residual = np.maximum(gram.diagonal(), 0.0)
    noise = n_components * gram.eps() * residual.max()
    F = np.zeros((gram.n, n_components))
    pivots = np.zeros(0, dtype=np.int64)
    while True:
        residual[residual <= noise] = 0.0
        k = len(pivots)
        if k >= n_components or not residual.any():
            return pivots if k else np.zeros(1, dtype=np.int64)
        proposals = _propose(residual, n_components, rng)
        R = gram.block(proposals, proposals) - F[proposals, :k] @ F[proposals, :k].T
        residual[proposals] = np.minimum(residual[proposals], R.diagonal())
        accepted, L = _accept_unexplained(residual[proposals], R, noise, rng)
        new = proposals[accepted][: n_components - k]
        if len(new) == 0:  # the pivots explain all proposals, whose residual is now 0
            continue
        G = gram.columns(new) - F[:, :k] @ F[new, :k].T
        F[:, k : k + len(new)] = solve_triangular(L[: len(new), : len(new)], G.T, lower=True).T
        residual -= (F[:, k : k + len(new)] ** 2).sum(axis=1)
        residual[new] = 0.0
        pivots = np.concatenate([pivots, new])


def _accept_unexplained(before: Floats, R: Floats, noise: float, rng: np.random.Generator) -> tuple[list[int], Floats]:
    """Return the positions of the proposals that rejection sampling accepts, and the Cholesky factor of R at these.

    `R` is the matrix K - F F^T of `rpcholesky` between the proposals, `before` its diagonal before the batch.
    """
    R = (R + R.T) / 2
    accepted, factor = [], []
    for i, u in enumerate(rng.random(len(before))):
        if R[i, i] > noise and u * before[i] < R[i, i]:
            accepted.append(i)
            factor.append(R[:, i] / np.sqrt(R[i, i]))
            R = R - np.outer(factor[-1], factor[-1])
    return accepted, np.array(factor).reshape(len(accepted), len(before)).T[accepted]


def leverage(gram: Gram, n_components: int, rng: np.random.Generator) -> Index:
    """Return `n_components` landmarks chosen by ridge leverage scores, estimated from part of the kernel matrix.

    With K the kernel matrix and sigma_j its eigenvalues in descending order, the score of object i is
    l_i = (K (K + lambda I)^-1)_ii, where lambda = (1/k) sum_{j>k} sigma_j. The scores are estimated from a sample of a
    random half of the objects. This sample is drawn with the scores of the objects within the half; these scores are
    estimated from a sample of a quarter of the objects, and so on. With S the matrix that selects and weights the
    sample, l_i is about (1/lambda) (K - K S (S^T K S + lambda I)^-1 S^T K)_ii (Musco & Musco, 2017, Algorithm 3). With
    s = n_components, k is s / (4 log s), and a sample takes object i with probability min(1, l_i log s), as in the
    authors' code.
    """
    n, s = gram.n, n_components
    diagonal = np.maximum(gram.diagonal(), 0.0)
    oversampling = max(1.0, math.log(s))
    n_levels = math.ceil(math.log2(n / s)) if s < n else 0
    order = rng.permutation(n)
    sizes = [math.ceil(n / 2**level) for level in range(n_levels + 1)]
    sample, weights = order[: sizes[-1]], np.ones(sizes[-1])
    for size in reversed(sizes[1:-1]):
        objects = order[:size]
        scores = _ridge_scores(gram, diagonal, objects, sample, weights, math.ceil(s / (4 * oversampling)))
        probability = np.minimum(1.0, oversampling * scores)
        drawn = np.flatnonzero(rng.random(size) < probability)
        if len(drawn) == 0:  # all scores are 0, so any sample will do
            drawn, probability = rng.choice(size, min(s, size), replace=False), np.ones(size)
        sample, weights = objects[drawn], 1.0 / np.sqrt(probability[drawn])
    scores = _ridge_scores(gram, diagonal, np.arange(n), sample, weights, math.ceil(s / (4 * oversampling)))
    return _without_replacement(np.minimum(1.0, scores), s, rng)


def _ridge_scores(gram: Gram, diagonal: Floats, objects: Index, sample: Index, weights: Floats, rank: int) -> Floats:
    """Return approximate ridge leverage scores of `objects`, given a weighted sample; `rank` is k in `leverage`."""
    SKS = gram.block(sample, sample) * weights[:, None] * weights
    values, vectors = np.linalg.eigh((SKS + SKS.T) / 2)
    values = np.maximum(values[::-1], 0.0)
    noise = max(len(sample) * gram.eps() * values[0], np.finfo(np.float64).tiny)
    ridge = max(values[rank:].sum() / rank, noise)
    KS = gram.block(objects, sample) * weights
    explained = np.square(KS @ (vectors[:, ::-1] / np.sqrt(values + ridge))).sum(axis=1)
    return np.maximum(diagonal[objects] - explained, 0.0) / ridge


def adaptive(gram: Gram, n_components: int, rng: np.random.Generator, n_rounds: int = 10) -> Index:
    """Return `n_components` landmarks chosen in rounds, by what the landmarks of earlier rounds leave unexplained.

    Let C be the columns of the kernel matrix at the landmarks so far, H the rows of C at these landmarks, and Q the
    leading half of the eigenvectors of H. An object is drawn with probability proportional to the squared norm of its
    row of C - C Q Q^T, the part of C that a Nystroem approximation of half the rank misses. The first round is uniform
    (Kumar, Mohri & Talwalkar, 2012, Section 4, "adaptive-partial" sampling). An object that is not similar to any
    landmark so far has a zero row in C, and is drawn only if too few other objects are left. If the kernel has isolated
    groups of objects, use ``rpcholesky`` or ``kmeans++``. Each of the `n_rounds` rounds draws about the same number of
    landmarks.
    """
    sizes = [len(part) for part in np.array_split(np.arange(n_components), min(n_rounds, n_components))]
    chosen = uniform(gram, sizes[0], rng)
    C = np.empty((gram.n, n_components))
    before = 0
    for size in sizes[1:]:
        k = len(chosen)
        C[:, before:k] = gram.columns(chosen[before:])
        before = k
        H = (C[chosen, :k] + C[chosen, :k].T) / 2
        trailing = np.linalg.eigh(H)[1][:, : k - k // 2]
        left = C[:, :k] @ trailing
        left = np.ldexp(left, -np.frexp(np.abs(left).max())[1])  # lest squares overflow or underflow
        unexplained = np.square(left).sum(axis=1)
        unexplained[chosen] = 0.0
        chosen = np.concatenate([chosen, _without_replacement(unexplained, size, rng, exclude=chosen)])
    return chosen


def ensemble(gram: Gram, n_components: int, rng: np.random.Generator, n_experts: int = 4) -> list[Index]:
    """Return a list with the landmarks of each of `n_experts` experts, uniformly drawn, `n_components` in total.

    Expert r is a Nystroem approximation K_r of the kernel matrix on its own landmarks only. `Nystroem` fits weights
    mu_r and concatenates the embeddings of the experts, times sqrt(mu_r), so that the Gram matrix of the result is the
    mixture sum_r mu_r K_r (Kumar, Mohri & Talwalkar, 2012, Section 5). An ensemble is less exact than one approximation
    on all s = n_components landmarks, but cheaper if s is large: with p experts, fitting costs O(s^3 / p^2) instead of
    O(s^3), and embedding n objects costs n s^2 / p operations instead of n s^2.
    """
    return np.array_split(uniform(gram, n_components, rng), min(n_experts, n_components))


STRATEGIES: dict[str, Callable[[Gram, int, np.random.Generator], Index | list[Index]]] = {
    "uniform": uniform,
    "kmeans++": kmeans_plusplus,
    "leverage": leverage,
    "rpcholesky": rpcholesky,
    "adaptive": adaptive,
    "ensemble": ensemble,
}


def _propose(mass: Floats, n_components: int, rng: np.random.Generator) -> Index:
    """Draw positions with replacement, with probability proportional to `mass`; `n_components` sets their number."""
    batch = min(max(8, n_components // 4), 256)
    return rng.choice(len(mass), batch, p=mass / mass.sum())


def _without_replacement(mass: Floats, size: int, rng: np.random.Generator, exclude: npt.ArrayLike = ()) -> Index:
    """Draw `size` distinct positions not in `exclude`, with probability proportional to `mass`.

    If too few positions have positive mass, the rest are drawn uniformly from the others.
    """
    allowed = np.ones(len(mass), dtype=bool)
    allowed[np.asarray(exclude, dtype=np.int64)] = False
    positive = np.flatnonzero(allowed & (mass > 0))
    others = np.flatnonzero(allowed & ~(mass > 0))
    n_drawn = min(size, len(positive))
    p = mass[positive] / mass[positive].sum() if n_drawn else None
    drawn = rng.choice(positive, n_drawn, replace=False, p=p) if n_drawn else positive
    return np.concatenate([drawn, rng.choice(others, size - n_drawn, replace=False)])
