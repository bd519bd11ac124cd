"""A mixture of several Nyström approximations, each on its own landmarks.

K is about sum_r mu_r K_r with K_r = C_r H_r^+ C_r^T (Kumar, Mohri & Talwalkar, 2012, Section 5). The weights
minimise ||sum_r mu_r K_r - K||_F on a sample of objects (the paper's regression weights), here under
mu >= 0, so that the mixture is the Gram matrix of an embedding.
Cost: m^2 + m s kernel values for a sample of m objects.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from similia.embeddings.gram import Gram, Index

Floats = npt.NDArray[np.float64]
_N_SAMPLES = 256


def mixture_weights(gram: Gram, experts: list[Index], components: list[Floats], rng: np.random.Generator) -> Floats:
    """Return the weight of each expert, shape (n_experts,); equal ones where the sample shows no similarity.

    Parameters
    ----------
    gram : Gram
    experts : list of ndarray of int64
        Landmarks of each expert.
    components : list of ndarray of float64, shapes (n_landmarks_r, rank_r)
    rng : numpy.random.Generator
    """
    sample = rng.choice(gram.n, min(gram.n, _N_SAMPLES), replace=False)
    target = gram.block(sample, sample).astype(np.float64)
    parts = []
    for indices, W in zip(experts, components, strict=True):
        theta = gram.block(sample, indices).astype(np.float64) @ W
        parts.append((theta @ theta.T).ravel())
    q, r = np.linalg.qr(np.stack(parts, axis=1))
    weights = nnls(r, q.T @ target.ravel())[0]
    return weights if weights.any() else np.full(len(experts), 1.0 / len(experts))


def block_diagonal(blocks: list[Floats]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the block-diagonal matrix and its corners, shape (n_blocks + 1, 2)."""
    corners = np.cumsum([(0, 0), *(block.shape for block in blocks)], axis=0)
    matrix = np.zeros(corners[-1])
    for (i, a), (j, b), block in zip(corners[:-1], corners[1:], blocks, strict=True):
        matrix[i:j, a:b] = block
    return matrix, corners
