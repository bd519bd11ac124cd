"""The features of kernels made of kernels: blocks, each of one kernel that counts, with what scales it.

For `Sum` and `Normalized` of kernels that count, k(x, y) = sum_b u_b s_b(x) s_b(y) <phi_b(x), phi_b(y)>: u_b the
product of the weights, s_b that of the norms above block b. Columns are those of ``features``: part i of p of a sum
gets (n_features + i) // p of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from similia.explanations._found import Floats
from similia.explanations._occurrences import Ids, counts_of, lookup, totals
from similia.kernels.combine import Normalized, Sum
from similia.kernels.features import FeatureKernel
from similia.similarity import as_objects, diagonal, name_of

Columns = Callable[[int], tuple[int, int]]  # of n_features, those of a block: (first, how many)


@dataclass(frozen=True, eq=False)
class Block:
    """Features of one kernel that counts.

    Attributes
    ----------
    kernel : FeatureKernel
    weight : float
        Of the block in the kernel.
    normed : tuple of kernels
        Those whose norm divides the features.
    prefix : str
        Before the names of the features.
    """

    kernel: FeatureKernel
    weight: float
    normed: tuple[Any, ...]
    prefix: str

    def as_objects(self, X: Any) -> Any:
        """Return a collection in the layout of the kernel."""
        return as_objects(self.kernel, X)

    def scale(self, X: Any) -> Floats:
        """Return what the norms divide by, as a factor for each object; 0 for an object without features."""
        factor = np.ones(len(X))
        for kernel in self.normed:
            if isinstance(kernel, FeatureKernel):
                squares = kernel.counted(X).squared_norms()
            else:
                squares = diagonal(kernel, as_objects(kernel, X))
            factor *= np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 0.0)
        return factor


def blocks_of(kernel: Any) -> list[tuple[Block, Columns]] | None:
    """Return the blocks of a kernel with the columns of each, or None if a part of it does not count."""
    if isinstance(kernel, FeatureKernel):
        return [(Block(kernel, 1.0, (kernel,) if kernel.normalize else (), ""), lambda n: (0, n))]
    if isinstance(kernel, Normalized):
        inner = blocks_of(kernel.kernel)
        if inner is None:
            return None
        return [(replace(block, normed=(*block.normed, kernel.kernel)), columns) for block, columns in inner]
    if not isinstance(kernel, Sum):
        return None
    found = []
    parts, weights = kernel._parts(), kernel._weights()
    for i, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        inner = blocks_of(part)
        if inner is None:
            return None
        for block, columns in inner:
            new = replace(block, weight=block.weight * float(weight), prefix=f"{name_of(part)}: {block.prefix}")
            found.append((new, _shifted(columns, i, len(parts))))
    return found


def _shifted(columns: Columns, i: int, n_parts: int) -> Columns:
    def of_sum(n: int) -> tuple[int, int]:
        widths = [(n + j) // n_parts for j in range(i + 1)]
        first, width = columns(widths[i])
        return sum(widths[:i]) + first, width

    return of_sum


def coefficients_by_column(block: Block, columns: Columns, ids: Ids, n_features: int, weights: Floats) -> Floats:
    """Return what a count of each feature adds to a linear function of hashed features, before the norms."""
    first, width = columns(n_features)
    places = first + (ids % np.uint64(width)).astype(np.int64)
    return np.sqrt(block.weight * _feature_weights(block, ids)) * weights[places]


def coefficients_by_objects(block: Block, ids: Ids, landmarks: Any, alpha: Floats) -> Floats:
    """Return sum_l alpha_l w_f c_f(l) for each of the features `ids`."""
    counts, weights = counts_of(block.kernel, landmarks)
    amounts = counts.values * weights * np.repeat(alpha, np.diff(counts.offsets))
    distinct, rows = np.unique(counts.ids, return_inverse=True)
    return lookup(ids, distinct, totals(rows, amounts, len(distinct)))


def _feature_weights(block: Block, ids: Ids) -> Floats:
    """Return the weight of features in inner products, which only the weighted degree kernel has."""
    from similia.kernels._strings import DEGREE_SHIFT
    from similia.kernels.strings import WeightedDegree

    if isinstance(block.kernel, WeightedDegree):
        return block.kernel.degree + 1 - (ids >> np.uint64(DEGREE_SHIFT)).astype(np.float64)
    return np.ones(len(ids))
