"""Landmarks of NysX: a k-DPP, a sample of k objects that repels similar ones, drawn from a uniform pool of objects.

Given a positive semi-definite matrix L, a k-DPP (determinantal point process of k objects) draws the set S of k objects
with probability det(L_S) / e_k(lambda). Here lambda are the eigenvalues of L, and e_k, their k-th elementary symmetric
polynomial, is the sum of det(L_S) over all sets of k objects. The draw is exact: first k eigenvectors, then k objects
(Kulesza & Taskar, 2012, Algorithms 7, 8 and 1). With a pool of p objects it takes p^2 kernel values and O(p^3)
operations. Neither gets smaller with the number of landmarks.

Draws of two processors are equal unless a random number is within rounding error of a boundary, or an eigenvalue occurs
several times. LAPACK may then return other eigenvectors: the law stays the same, a draw does not. Kernels that count,
such as that of ENZYMES, have such eigenvalues.

Papers: Arockiaraj, Parikh & Prasanna, "NysX: an accurate and energy-efficient FPGA accelerator for hyperdimensional
graph classification at the edge", 2025 (arXiv:2512.08089); Kulesza & Taskar, "Determinantal point processes for machine
learning", Foundations and Trends in Machine Learning 5, 2012, Section 5.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.embeddings.landmarks import Gram, Index

Floats = npt.NDArray[np.float64]


def pooled_k_dpp(gram: Gram, n_components: int, rng: np.random.Generator, n_pool: int) -> Index:
    """Return at most `n_components` landmarks: a k-DPP on the kernel matrix of `n_pool` objects drawn uniformly.

    If the pool has fewer directions (eigenvalues above rounding noise) than `n_components`, there are as many landmarks
    as directions; they explain the pool.
    """
    pool = rng.choice(gram.n, min(n_pool, gram.n), replace=False)
    return pool[k_dpp(gram.block(pool, pool), n_components, rng, gram.eps())]


def k_dpp(L: npt.NDArray, k: int, rng: np.random.Generator, eps: float = 2.0**-52) -> Index:
    """Draw k objects by the k-DPP of `L`, or as many as the rank of `L` if that is less.

    Eigenvalues up to ``len(L) * eps`` times the largest count as zero.
    """
    values, vectors = np.linalg.eigh((L + L.T) / 2)
    kept = values > max(0.0, len(L) * eps * values[-1])
    chosen = _eigenvectors(np.log(values[kept]), min(k, int(kept.sum())), rng)
    return _projection_dpp(vectors[:, kept][:, chosen], rng)


def _eigenvectors(log_values: Floats, k: int, rng: np.random.Generator) -> list[int]:
    """Draw a set J of k eigenvectors with probability prod_{j in J} lambda_j / e_k(lambda).

    ``log_e[l, j]`` is the logarithm of e_l of the first j eigenvalues: the polynomials leave the range of floats.
    """
    n = len(log_values)
    log_e = np.full((k + 1, n + 1), -np.inf)
    log_e[0] = 0.0
    for j in range(n):
        log_e[1:, j + 1] = np.logaddexp(log_e[1:, j], log_values[j] + log_e[:-1, j])
    chosen: list[int] = []
    for j, u in zip(reversed(range(n)), rng.random(n), strict=True):
        missing = k - len(chosen)
        if missing and u < np.exp(log_values[j] + log_e[missing - 1, j] - log_e[missing, j + 1]):
            chosen.append(j)
    return chosen


def _projection_dpp(V: Floats, rng: np.random.Generator) -> Index:
    """Draw as many objects as `V` has columns, which are orthonormal, by the DPP of P = V V^T.

    The next object is i with probability proportional to (P - F F^T)_ii, where F F^T is the Nyström approximation of P
    on the objects so far: randomly pivoted Cholesky of a projection.
    """
    n, k = V.shape
    chosen = np.zeros(k, dtype=np.int64)
    F = np.zeros((n, k))
    residual = np.square(V).sum(axis=1)
    for j in range(k):
        i = chosen[j] = rng.choice(n, p=residual / residual.sum())
        F[:, j] = (V @ V[i] - F[:, :j] @ F[i, :j]) / np.sqrt(residual[i])
        residual = np.maximum(residual - np.square(F[:, j]), 0.0)
        residual[chosen[: j + 1]] = 0.0
    return chosen
