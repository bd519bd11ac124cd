"""Maps phi of graphlets, and their means over the graphlets sampled from each graph.

Each map is made for graphlets of one size and has ``means(codes)``: codes (n_graphs, n_samples) in, array
(n_graphs, n_features) out. Means of what is quadratic in the adjacency bits come from their second moments; other
maps are computed once for each distinct pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from similia.core import functions
from similia.core.config import rows_per_block
from similia.core.threads import run_in_ranges
from similia.objects.graphlets import canonical_forms, count_patterns, n_pairs, unpack_graphlets

Codes = npt.NDArray[np.uint64]
_GRAIN = 16  # graphs that are worth a call
_LARGEST_TABLE = 21  # bits up to which patterns are found by a table of all


class Histograms(NamedTuple):
    """Patterns of a batch: entry e of graph g says that ``shares[e]`` of its samples are ``codes[places[e]]``."""

    codes: Codes
    offsets: npt.NDArray[np.int64]
    places: npt.NDArray[np.int64]
    shares: npt.NDArray[np.float32]

    def add_to(self, out: npt.NDArray, features: npt.NDArray, start: int, stop: int) -> None:
        """Add each graph's share of the mean from the patterns start..stop, with these feature rows, one by one.

        Sums have one order, wherever the patterns of other graphs cut them into blocks.
        """
        from similia.embeddings._graphlet_sums import add_shares

        inside = (self.places >= start) & (self.places < stop)
        offsets = np.concatenate(([0], np.cumsum(inside)))[self.offsets].astype(np.int64)
        weights = self.shares[inside].astype(features.dtype)
        places, rows = self.places[inside] - start, np.ascontiguousarray(features)

        def work(first: int, last: int) -> None:
            add_shares(offsets, places, weights, rows, first, last, out)

        run_in_ranges(work, len(out), _GRAIN)


def histograms(codes: Codes, n_bits: int) -> Histograms:
    """Return the distinct patterns of all graphs and how often each graph has which."""
    found = count_patterns(codes)
    shares = (found.counts / codes.shape[1]).astype(np.float32)
    if n_bits > _LARGEST_TABLE:
        distinct, places = np.unique(found.codes, return_inverse=True)
        return Histograms(distinct, found.offsets, places, shares)
    met = np.zeros(1 << n_bits, dtype=np.int64)
    met[found.codes] = 1
    distinct = np.flatnonzero(met).astype(np.uint64)
    return Histograms(distinct, found.offsets, (np.cumsum(met) - 1)[found.codes], shares)


@dataclass
class Match:
    """Histogram of patterns, sparse."""

    size: int

    @property
    def n_features(self) -> int:
        """One for each pattern."""
        return 1 << n_pairs(self.size)

    def means(self, codes: Codes) -> csr_array:
        """Return the share of each pattern."""
        found = count_patterns(codes)
        columns, offsets = found.codes.astype(np.int32), found.offsets.astype(np.int32)  # what scikit-learn takes
        return csr_array((found.counts / codes.shape[1], columns, offsets), shape=(len(codes), self.n_features))


@dataclass
class MatchClasses:
    """Histogram of isomorphism classes."""

    size: int

    @property
    def n_features(self) -> int:
        """One for each class."""
        return len(canonical_forms(self.size).representatives)

    def means(self, codes: Codes) -> npt.NDArray[np.float64]:
        """Return the share of each class."""
        found, m = count_patterns(codes), self.n_features
        graph = np.repeat(np.arange(len(codes)), np.diff(found.offsets))
        column = canonical_forms(self.size).table[found.codes.astype(np.int64)]
        counts = np.bincount(graph * m + column, weights=found.counts, minlength=len(codes) * m)
        return np.asarray(counts.reshape(len(codes), m) / codes.shape[1], dtype=np.float64)


@dataclass
class Quadratic:
    """Anything quadratic in the adjacency bits: second moments times one small matrix, plus constants."""

    size: int
    matrix: npt.NDArray[np.floating]
    constants: npt.NDArray[np.floating]

    @property
    def n_features(self) -> int:
        """Columns of the matrix."""
        return int(self.matrix.shape[1])

    def means(self, codes: Codes) -> npt.NDArray[np.floating]:
        """Return moments times matrix."""
        from similia.core.products import row_product
        from similia.objects.graphlets import second_moments

        moments = second_moments(codes, self.size)
        out = row_product(moments, self.matrix)
        out += self.constants
        return out


@dataclass
class Waves:
    """Fourier features of the adjacency bits: cosines with phases, or cosine and sine pairs."""

    size: int
    frequencies: npt.NDArray[np.float64]
    phases: npt.NDArray[np.float64]
    pairs: bool

    @property
    def n_features(self) -> int:
        """One for each frequency, two with pairs."""
        return len(self.phases) * (1 + self.pairs)

    def means(self, codes: Codes) -> npt.NDArray[np.float32]:
        """Return the mean waves."""
        from similia.embeddings._fourier_patterns import mean_waves

        found = histograms(codes, n_pairs(self.size))
        out = mean_waves(*found, self.frequencies, self.phases, self.pairs)
        out *= np.float32(np.sqrt((1.0 if self.pairs else 2.0) / len(self.phases)))
        return out


@dataclass
class PerPattern:
    """Any function or transformer of flattened adjacency matrices, asked once for each distinct pattern."""

    size: int
    function: Any
    n_features: int

    def means(self, codes: Codes) -> npt.NDArray[np.floating]:
        """Return the mean of the function, in blocks of patterns."""
        found = histograms(codes, n_pairs(self.size))
        block = rows_per_block(16 * max(self.n_features, n_pairs(self.size)))
        out: Any = None
        for start in range(0, len(found.codes), block):
            stop = min(start + block, len(found.codes))
            rows = self.rows(found.codes[start:stop])
            out = np.zeros((len(codes), self.n_features), rows.dtype) if out is None else out
            found.add_to(out, rows, start, stop)
        return np.asarray(out)

    def rows(self, codes: Codes) -> npt.NDArray[np.floating]:
        """Return the function's value for each code, checked."""
        rows = np.asarray(apply(self.function, unpack_graphlets(codes, self.size).astype(np.float32)))
        if rows.shape != (len(codes), self.n_features) or rows.dtype.kind not in "fiu":
            raise ValueError(
                f"features returned an array of shape {rows.shape} and dtype {rows.dtype} for {len(codes)} flattened "
                f"adjacency matrices, expected numbers of shape ({len(codes)}, {self.n_features})"
            )
        if not np.isfinite(rows).all():
            raise ValueError("features returned NaN or infinity for some graphlets, expected finite numbers")
        return rows if rows.dtype.kind == "f" else rows.astype(np.float64)


def apply(function: Any, bits: npt.NDArray[np.float32]) -> Any:
    """Return what a fitted transformer or a function makes of flattened adjacency matrices."""
    return function.transform(bits) if hasattr(function, "transform") else function(bits)


@dataclass
class Spectra:
    """Cosine features of the sorted eigenvalues of adjacency matrices."""

    size: int
    frequencies: npt.NDArray[np.float32]
    phases: npt.NDArray[np.float32]

    def __call__(self, bits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """Return sqrt(2 / m) cos(w . eigenvalues + b)."""
        from similia.core.products import row_product

        angles = row_product(spectra(bits, self.size), self.frequencies)
        angles += self.phases
        return functions.cos(angles, out=angles) * np.float32(np.sqrt(2 / len(self.phases)))


def spectra(bits: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float64]:
    """Return the eigenvalues of adjacency matrices in ascending order, shape (n, size)."""
    A = np.zeros((len(bits), size, size))
    column, row = np.tril_indices(size, -1)
    A[:, row, column] = A[:, column, row] = bits
    return np.asarray(np.linalg.eigvalsh(A), dtype=np.float64)


def exact_optical(size: int, scale: float) -> Quadratic:
    r"""Return the map whose inner products are the optical kernel's exact mean kernel without bias.

    :math:`\varsigma^4 (\mathrm{tr} M \, \mathrm{tr} M' + \langle M, M' \rangle)`, M the matrix of second moments: the
    diagonal block has the Gram matrix I + 11^T, whose square root is I + c 11^T.
    """
    D = n_pairs(size)
    p, q = np.triu_indices(D)
    matrix = np.diag(np.where(p == q, 1.0, np.sqrt(2.0)))
    diagonal = np.flatnonzero(p == q)
    matrix[np.ix_(diagonal, diagonal)] += (np.sqrt(1.0 + D) - 1.0) / max(D, 1)
    return Quadratic(size, scale**2 * matrix, np.zeros(len(p)))


def optical(size: int, weights: npt.NDArray[np.complex128], bias: npt.NDArray[np.complex128]) -> Quadratic:
    """Return |W a + b|^2 / sqrt(m) of bits a as a product with their second moments; `weights` has shape (D, m)."""
    p, q = np.triu_indices(n_pairs(size))
    m = weights.shape[1]
    matrix = (weights[p] * weights[q].conj()).real * np.where(p == q, 1.0, 2.0)[:, None]
    matrix[p == q] += 2 * (weights * bias.conj()).real
    constants = np.abs(bias) ** 2
    return Quadratic(size, (matrix / np.sqrt(m)).astype(np.float32), (constants / np.sqrt(m)).astype(np.float32))
