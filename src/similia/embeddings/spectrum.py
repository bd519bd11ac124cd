"""From the landmarks' kernel matrix H to the matrix that turns kernel values into coordinates.

H = Q diag(lambda) Q^T; with f the policy for negative eigenvalues, components = Q f(lambda)^(-1/2) over the eigenvalues
f(lambda) > rcond max f(lambda), so that (C components)(C components)^T = C H^+ C^T for a positive semi-definite H.
Always run in float64 and on one BLAS thread, since the last bits and signs of eigenvectors depend on the number of
threads. Cost: O(s^3).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.errors import warn_user

Floats = npt.NDArray[np.float64]
POLICIES = ("clip", "flip", "shift", "raise")
_SHIFT = 1.5  # of |smallest eigenvalue|; with 1.0 the most negative directions are divided by almost 0


def decompose(H: Floats, policy: str, rcond: float, eps: float) -> tuple[Floats, Floats]:
    """Return (eigenvalues (rank,), components (s, rank)) of a symmetric matrix, largest eigenvalue first.

    `policy` is the `spectrum` of `Nystroem`. `eps` is the precision of the kernel values: negative eigenvalues below
    s * eps count as rounding.
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
    """Return eigenvectors with their largest entry positive, since LAPACK does not fix their signs."""
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return vectors * np.sign(largest)


def _repair(values: Floats, policy: str, tolerance: float) -> Floats:
    """Apply the policy for negative eigenvalues to a descending spectrum."""
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
