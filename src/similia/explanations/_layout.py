r"""Places for the nodes of a small graph: distances on paper like those along edges.

Classical scaling of the path lengths, then stress majorisation: minimises sum_ij w_ij (||p_i - p_j|| - d_ij)^2 with
w_ij = d_ij^-2. No randomness: a graph is drawn alike each time. Cost: n^3 once and n^2 for each of 60 rounds.

Paper: Gansner, Koren & North, "Graph drawing by stress majorization", Graph Drawing 2004.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

_ROUNDS = 60
MOST_NODES = 400  # above which a drawing would be a blot


def positions(n: int, arcs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return places of n nodes within [0, 1] x [0, 1], shape (n, 2)."""
    if n <= 1:
        return np.full((n, 2), 0.5)
    weights = np.ones(arcs.shape[1])
    D = shortest_path(csr_array((weights, (arcs[0], arcs[1])), shape=(n, n)), directed=False, unweighted=True)
    reach = D[np.isfinite(D)].max()
    D[~np.isfinite(D)] = reach + 2  # components lie side by side
    P = _scaled(D)
    with np.errstate(divide="ignore"):
        W = np.where(D > 0, 1.0 / D**2, 0.0)
    V = -W
    np.fill_diagonal(V, W.sum(axis=1))
    inverse = np.linalg.pinv(V)
    for _ in range(_ROUNDS):
        gaps = np.linalg.norm(P[:, None] - P[None], axis=2)
        B = -W * D / np.where(gaps > 1e-9, gaps, 1.0)
        B[gaps <= 1e-9] = 0.0
        np.fill_diagonal(B, 0.0)
        np.fill_diagonal(B, -B.sum(axis=1))
        P = inverse @ (B @ P)
    P -= P.min(axis=0)
    size = P.max() or 1.0
    P /= size
    centred: npt.NDArray[np.float64] = P + (1.0 - P.max(axis=0)) / 2
    return centred


def _scaled(D: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return coordinates by classical scaling, with a small turn that keeps coinciding nodes apart."""
    n = len(D)
    centre = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centre @ D**2 @ centre)
    P = vectors[:, -2:][:, ::-1] * np.sqrt(np.maximum(values[-2:][::-1], 0.0))
    if P.shape[1] < 2:
        P = np.column_stack([P, np.zeros(n)])
    angles = 2.399963 * np.arange(n)  # the golden angle
    return P + 0.05 * np.column_stack([np.cos(angles), np.sin(angles)])
