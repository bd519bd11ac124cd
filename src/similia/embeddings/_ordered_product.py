"""The matrix product C W with every sum taken in one fixed order.

BLAS adds the terms of an entry in an order that changes with the number of rows, of threads and
with the position of the row, so the last bits of an embedding, and now and then a bit of a code,
would depend on the block an object came in. Here out[i, j] = ((C[i, 0] W[0, j] + C[i, 1] W[1, j]) + ...)
whatever surrounds row i; the columns j are the SIMD lanes, and four rows share each load of W.
Cost: 2 n s r operations, at about the speed of BLAS for s up to a few hundred.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from similia._jit import njit
from similia._threads import n_threads

_ROWS_PER_TASK = 1024


def ordered_product(C: npt.NDArray, W: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return C @ W in float64; a row of the result depends on that row of C and on W only.

    Parameters
    ----------
    C : ndarray, shape (n, s)
    W : ndarray of float64, shape (s, r)

    Returns
    -------
    ndarray of float64, shape (n, r)
    """
    if C.ndim != 2 or W.ndim != 2 or C.shape[1] != len(W):  # the loop does not look at bounds
        raise ValueError(f"kernel values of shape {C.shape} do not fit components of shape {W.shape}; fit again")
    C = np.ascontiguousarray(C, dtype=np.float64)
    W = np.ascontiguousarray(W, dtype=np.float64)
    out = np.empty((C.shape[0], W.shape[1]))
    if len(C) <= _ROWS_PER_TASK or n_threads() == 1:
        _multiply(C, W, out)
        return out
    tasks = [slice(i, i + _ROWS_PER_TASK) for i in range(0, len(C), _ROWS_PER_TASK)]
    with ThreadPoolExecutor(min(len(tasks), n_threads())) as threads:
        list(threads.map(lambda rows: _multiply(C[rows], W, out[rows]), tasks))
    return out


@njit()
def _multiply(C, W, out):  # type: ignore[no-untyped-def]
    # No fast-math: the compiler may neither reorder a sum nor fuse a product into it, so that
    # the loop over four rows and the one over single rows give the same bits.
    n, s = C.shape
    r = W.shape[1]
    out[:] = 0.0
    for i in range(0, n - n % 4, 4):
        for k in range(0, s - s % 4, 4):
            a0, a1, a2, a3 = C[i, k], C[i, k + 1], C[i, k + 2], C[i, k + 3]
            b0, b1, b2, b3 = C[i + 1, k], C[i + 1, k + 1], C[i + 1, k + 2], C[i + 1, k + 3]
            c0, c1, c2, c3 = C[i + 2, k], C[i + 2, k + 1], C[i + 2, k + 2], C[i + 2, k + 3]
            d0, d1, d2, d3 = C[i + 3, k], C[i + 3, k + 1], C[i + 3, k + 2], C[i + 3, k + 3]
            for j in range(r):
                w0, w1, w2, w3 = W[k, j], W[k + 1, j], W[k + 2, j], W[k + 3, j]
                out[i, j] = out[i, j] + a0 * w0 + a1 * w1 + a2 * w2 + a3 * w3
                out[i + 1, j] = out[i + 1, j] + b0 * w0 + b1 * w1 + b2 * w2 + b3 * w3
                out[i + 2, j] = out[i + 2, j] + c0 * w0 + c1 * w1 + c2 * w2 + c3 * w3
                out[i + 3, j] = out[i + 3, j] + d0 * w0 + d1 * w1 + d2 * w2 + d3 * w3
    for i in range(n):
        for k in range(0 if i >= n - n % 4 else s - s % 4, s):
            for j in range(r):
                out[i, j] += C[i, k] * W[k, j]
