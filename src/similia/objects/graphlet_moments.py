"""Second moments of graphlet bits: how often two edges of a graphlet are there at once.

Entry (p, q) of a graph is the mean of a_p a_q over its s graphlets, an integer divided by s. Samples are
turned into bit planes, 64 at a time, so that one AND and one popcount serve 64 samples. Cost for
D bits: s (D**2 / 128 + 9) word operations a graph.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.threads import run_in_ranges
from similia.objects.graphlets import n_pairs

_GRAIN = 2**14  # samples worth a call


def second_moments(codes: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.float64]:
    """Return the mean of a_p a_q over the samples of each graph, for p <= q.

    Parameters
    ----------
    codes : ndarray of uint64, shape (n, s)
        Graphlets, see `similia.objects.graphlets.sample_graphlets`; s at least 1.
    size : int
        Nodes of a graphlet.

    Returns
    -------
    ndarray of float64, shape (n, D (D + 1) / 2)
        D = size (size - 1) / 2, pairs in the order of ``np.triu_indices(D)``. Exact integers over s.
    """
    codes = np.ascontiguousarray(codes)
    n, s = codes.shape
    n_bits = n_pairs(size)
    moments = np.empty((n, n_bits * (n_bits + 1) // 2))

    def work(start: int, stop: int) -> None:
        _second_moments(codes[start:stop], n_bits, moments[start:stop])

    run_in_ranges(work, n, max(1, _GRAIN // s))
    return moments


@njit(reassociate=True)
def _second_moments(codes, n_bits, moments):  # type: ignore[no-untyped-def]
    n_samples = codes.shape[1]
    n_words = (n_samples + 63) // 64
    planes, block = np.empty((n_bits, n_words), dtype=np.uint64), np.empty(64, dtype=np.uint64)
    for i in range(len(codes)):
        for word in range(n_words):
            here = min(64, n_samples - 64 * word)
            block[here:] = 0
            block[:here] = codes[i, 64 * word : 64 * word + here]
            _transpose(block)
            for p in range(n_bits):
                planes[p, word] = block[p]
        pair = 0
        for p in range(n_bits):
            for q in range(p, n_bits):
                both = np.uint64(0)
                for word in range(n_words):
                    both += popcount(planes[p, word] & planes[q, word])
                moments[i, pair] = np.float64(both) / np.float64(n_samples)
                pair += 1


@njit()
def _transpose(block):  # type: ignore[no-untyped-def]
    """Transpose 64 x 64 bits in place: swap quarters, then quarters of quarters."""
    mask, width = np.uint64(0x00000000FFFFFFFF), 32
    while width:
        shift = np.uint64(width)
        for first in range(0, 64, 2 * width):
            for k in range(first, first + width):
                swap = ((block[k] >> shift) ^ block[k + width]) & mask
                block[k] ^= swap << shift
                block[k + width] ^= swap
        width >>= 1
        mask ^= mask << np.uint64(width)
