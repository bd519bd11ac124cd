r"""Hash objects by the signs of random projections of their features, if their similarity is a cosine (SimHash).

Signs of x and y agree with probability 1 - theta / pi, theta = arccos k(x, y) (Charikar, "Similarity estimation
techniques from rounding algorithms", STOC 2002). Directions are Gaussian. For rows with zeros, features share 2**14 of
them, so two features may have one direction, with random signs; this moves a cosine of m features each by about
m / 2**14 at most, and only candidates depend on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.codes.sign_projection import SignRandomProjection
from similia.core.config import rows_per_block
from similia.core.errors import part_from
from similia.core.hashing import mix
from similia.core.jit import njit
from similia.core.threads import run_in_ranges
from similia.core.validation import generator
from similia.kernels.combine import Normalized, Sum
from similia.kernels.features import FeatureKernel
from similia.kernels.hypersphere import Cosine, to_hypersphere
from similia.kernels.minmax import Intersection
from similia.objects import n_objects, take
from similia.search.metric import Floats

_SLOTS = 2**14  # directions that the features of sparse rows share
_GRAIN = 64  # objects worth a call in a thread


def is_cosine(function: Any) -> bool:
    """Return whether a similarity is the cosine of the angle between explicit features."""
    if isinstance(function, Normalized):
        return _has_features(function.kernel)
    return type(function) is Cosine or (_has_features(function) and getattr(function, "normalize", False) is True)


def _has_features(kernel: Any) -> bool:
    """Return whether a kernel has explicit features, as far as its type says; those of `Intersection` are of counts."""
    if isinstance(kernel, Sum | Normalized):
        return all(map(_has_features, kernel._parts() if isinstance(kernel, Sum) else [kernel.kernel]))
    return hasattr(kernel, "features") and (not isinstance(kernel, Intersection) or _counts_whole(kernel.kernel))


def _counts_whole(kernel: Any) -> bool:
    """Return whether the features of a kernel are whole numbers, as far as its type says."""
    if isinstance(kernel, Sum):
        return kernel.weights is None and all(map(_counts_whole, kernel._parts()))
    return isinstance(kernel, FeatureKernel) and kernel.normalize is False


def agreement_of_signs(cosines: Floats) -> Floats:
    """Return the probability that the signs of a projection of two vectors agree."""
    return 1 - np.arccos(np.clip(cosines, -1.0, 1.0)) / np.pi


class Signs:
    """Turns objects into signs of random projections, as hashes of one bit each."""

    def __init__(self, function: Any, n_hashes: int, random_state: Any) -> None:
        self.function, self.n_hashes = function, n_hashes
        self._random = generator(random_state)

    def fit(self, X: Any) -> Signs:
        """Draw the directions."""
        rows = self._rows(take(X, [0]))
        self._dense: SignRandomProjection | None = None
        if not sp.issparse(rows):
            n_bits = -(-self.n_hashes // 8) * 8
            self._dense = SignRandomProjection(n_bits, random_state=self._random).fit(rows)
            return self
        self._seed = np.uint64(self._random.integers(2**63))
        self._directions = self._random.standard_normal((_SLOTS, self.n_hashes), dtype=np.float32)
        return self

    def bands(self, X: Any, rows: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
        """Return a key for each band of `rows` hashes, the hashes (0 or 1), and which objects have no features."""
        n, bands = n_objects(X), self.n_hashes // rows
        keys, hashes = np.empty((n, bands), np.uint64), np.empty((n, self.n_hashes), np.uint8)
        empty = np.zeros(n, np.bool_)
        step = rows_per_block(64 * self.n_hashes, at_most=4096)
        for start in range(0, n, step):
            stop = min(n, start + step)
            with part_from(start):
                features = self._rows(take(X, np.arange(start, stop)))
            hashes[start:stop] = self._hashes(features)
            if sp.issparse(features):
                empty[start:stop] = np.diff(features.indptr) == 0
            words = np.zeros((stop - start, bands, 64), np.uint8)
            words[:, :, :rows] = hashes[start:stop].reshape(stop - start, bands, rows)
            keys[start:stop] = np.packbits(words, axis=2).view(np.uint64)[:, :, 0]
        return keys, hashes, empty

    def _rows(self, X: Any) -> Any:
        if isinstance(self.function, Cosine):
            return to_hypersphere(X, self.function.mapping, zero_rows=self.function.zero_rows)
        return self.function.features(X)

    def _hashes(self, features: Any) -> npt.NDArray[np.uint8]:
        if self._dense is not None:
            return np.unpackbits(self._dense.transform(features), axis=1)[:, : self.n_hashes]
        out = np.empty((features.shape[0], self.n_hashes), np.uint8)
        columns, values = features.indices.astype(np.int64), features.data.astype(np.float64)

        def fill(first: int, last: int) -> None:
            _signs(features.indptr, columns, values, self._seed, self._directions, out, first, last)

        run_in_ranges(fill, len(out), _GRAIN)
        return out


@njit()
def _signs(bounds, columns, values, seed, directions, out, first, last):  # type: ignore[no-untyped-def]
    """Fill row i of `out` with the signs (0 or 1) of the projections of row i of a sparse matrix."""
    n_slots, n = directions.shape
    sums = np.empty(n, np.float64)
    for i in range(first, last):
        sums[:] = 0.0
        for k in range(bounds[i], bounds[i + 1]):
            word = mix(np.uint64(columns[k]) ^ seed)
            slot = np.int64(word % np.uint64(n_slots))
            value = values[k] if word >> np.uint64(63) else -values[k]
            for h in range(n):
                sums[h] += value * directions[slot, h]
        for h in range(n):
            out[i, h] = np.uint8(sums[h] >= 0)
