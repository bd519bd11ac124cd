"""Compute the matrix W that turns kernel values into coordinates, from the kernel matrix H of s landmarks.

With H = Q diag(lambda) Q^T and f the policy for negative eigenvalues, W = Q diag(f(lambda))^(-1/2). Only eigenvalues
with f(lambda) > rcond max f(lambda) are kept. If H is positive semi-definite and C holds the kernel values of objects
(rows) and landmarks (columns), the coordinates Z = C W satisfy Z Z^T = C H^+ C^T. Callers run this in float64 and on
one BLAS thread, since the last bits and signs of eigenvectors depend on the number of threads. Cost: O(s^3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.errors import warn_user

Floats = npt.NDArray[np.float64]
POLICIES = ("clip", "flip", "shift", "raise")
_SHIFT = 1.5  # multiple of |smallest eigenvalue|; with 1.0 the most negative directions are divided by almost 0


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
