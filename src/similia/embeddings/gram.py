"""Kernel and distance matrices: their entries, computed on demand or precomputed, checks, and coordinates from them.

The landmark strategies and ``Nystroem.fit`` read kernel values only through a `Gram`, which returns a block of given
rows and columns, whole columns, or the diagonal. The n x n matrix is never formed.

`decompose` turns the kernel matrix H of s landmarks into the matrix W that turns kernel values into coordinates. With H
= Q diag(lambda) Q^T and f the policy for negative eigenvalues, W = Q diag(f(lambda))^(-1/2). Only eigenvalues with
f(lambda) > rcond max f(lambda) are kept. If H is positive semi-definite and C holds the kernel values of objects (rows)
and landmarks (columns), the coordinates Z = C W satisfy Z Z^T = C H^+ C^T. Callers run this in float64 and on one BLAS
thread, since the last bits and signs of eigenvectors depend on the number of threads. Cost: O(s^3).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.errors import BadPairValue, numbered, pairs_named, warn_user
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import Kernel, as_objects, evaluate, precision, self_values
from similia.sources.dask import Distributed

Index = npt.NDArray[np.int64]
Numbers = npt.ArrayLike | range  # positions of objects, for messages
Floats = npt.NDArray[np.float64]
POLICIES = ("clip", "flip", "shift", "raise")
_SHIFT = 1.5  # multiple of |smallest eigenvalue|; with 1.0 the most negative directions are divided by almost 0


class Gram:
    """The kernel matrix of a collection of objects under a callable kernel, computed only where it is read."""

    def __init__(self, kernel: Callable[..., Any], X: Any) -> None:
        self.kernel = kernel
        self.X = as_objects(kernel, X)  # in the layout that the kernel uses
        self.n = at_least_one(self.X)  # number of objects
        self._eps: float | None = None

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        """Return k(X[rows], X[columns]), shape (n_rows, n_columns), float32 or float64."""
        rows, columns = np.asarray(rows), np.asarray(columns)
        objects = take(self.X, rows)
        others = objects if columns is rows else take(self.X, columns)
        return kernel_values(self.kernel, objects, others, rows, columns, "X[{}] and X[{}]")

    def columns(self, indices: npt.ArrayLike) -> npt.NDArray:
        """Return k(X, X[indices]), shape (n, n_indices), computed in blocks of rows."""
        indices = np.asarray(indices)
        if isinstance(self.X, Distributed):
            return np.concatenate([*self.X.map(_columns, self.kernel, take(self.X, indices), indices)])
        blocks = [self.block(rows, indices) for rows in row_blocks(self.n, 8 * max(1, len(indices)))]
        return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)

    def diagonal(self) -> npt.NDArray:
        """Return k(x, x) for all objects as `block` returns it, float64 (n,)."""
        if isinstance(self.X, Distributed):
            return np.concatenate([*self.X.map(_diagonal, self.kernel)])
        return _diagonal(self.X, 0, self.kernel)

    def eps(self, values: npt.NDArray | None = None) -> float:
        """Return the machine precision of the kernel, found once, from `values` of it if there are some."""
        if self._eps is None:
            self._eps = precision(self.kernel, self.X, values)
        return self._eps


class PrecomputedGram(Gram):
    """A precomputed kernel matrix of n objects: all columns, or only those of the objects at positions `columns`."""

    kernel: Any

    def __init__(self, K: npt.NDArray, columns: Index | None = None) -> None:
        self.kernel = "precomputed"
        self.X = K
        self.n = len(K)
        self._position = np.arange(self.n)
        if columns is not None:
            self._position[columns] = np.arange(len(columns))

    def block(self, rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray:
        rows, columns = np.asarray(rows), np.asarray(columns)
        values = self.X[np.ix_(rows, self._position[columns])]
        return check_finite(values, rows, columns, "objects {} and {}")

    def diagonal(self) -> npt.NDArray:
        values = self.X.diagonal()[:, None]
        return check_finite(values, range(self.n), [0], "object {} and itself")[:, 0].astype(np.float64)

    def eps(self, values: npt.NDArray | None = None) -> float:
        return float(np.finfo(self.X.dtype).eps)


def landmark_columns(M: npt.NDArray, indices: Index, n_train: int, name: str) -> Index:
    """Return the columns of `M` that belong to landmarks: `indices`, or all if `M` has columns for landmarks only."""
    if M.shape[1] not in (len(indices), n_train):
        raise ValueError(
            f"{name} has {M.shape[1]} columns, expected {n_train} (all training objects) or {len(indices)} "
            "(the landmarks)"
        )
    return indices if M.shape[1] == n_train else np.arange(len(indices))


def check_symmetric(M: npt.NDArray, indices: Index, tolerance: float, what: str) -> None:
    """Raise if `M`, a matrix of `what` ("kernel" or "distance"), is not symmetric.

    The message calls the object in row i ``X[indices[i]]``. `tolerance` is relative to the largest entry of `M`.
    """
    gap = np.abs(M - M.T)
    i, j = np.unravel_index(gap.argmax(), M.shape)
    if gap[i, j] > tolerance * np.abs(M).max():
        f = what[0]
        raise ValueError(
            f"the {what} is not symmetric: {f}(X[{indices[i]}], X[{indices[j]}]) = {M[i, j]:.6g} but "
            f"{f}(X[{indices[j]}], X[{indices[i]}]) = {M[j, i]:.6g}, expected equal values; use "
            f"({f}(x, y) + {f}(y, x)) / 2"
        )


def _columns(part: Any, start: int, kernel: Any, landmarks: Any, indices: Index) -> npt.NDArray:
    blocks = row_blocks(n_objects(part), 8 * max(1, len(indices)))
    pair = "X[{}] and object {}"
    return np.concatenate([kernel_values(kernel, take(part, rows), landmarks, rows, indices, pair) for rows in blocks])


def _diagonal(part: Any, start: int, kernel: Any) -> npt.NDArray:
    values = self_values(kernel, part)
    return check_finite(values[:, None], range(len(values)), [0], "X[{}] and itself")[:, 0]


def row_blocks(n: int, bytes_per_row: int, at_most: int | None = None) -> Iterator[Index]:
    """Yield ``arange(n)`` in blocks of as many rows as ``config(max_memory)`` allows, and of at most `at_most` rows."""
    step = rows_per_block(bytes_per_row, at_most)
    for start in range(0, n, step):
        yield np.arange(start, min(start + step, n))


def kernel_values(kernel: Any, X: Any, Y: Any, rows: Numbers, columns: Numbers, pair: str) -> npt.NDArray:
    """Return k(X, Y), or k(X) if `Y` is None; raise if a value is not finite.

    Error messages name two objects by the template `pair`, such as ``"X[{}] and X[{}]"``. Its placeholders are filled
    with the numbers of the objects, from `rows` and `columns`.
    """
    with pairs_named(rows, columns, pair), numbered(rows):
        values = evaluate(kernel, X, Y)
    return check_finite(values, rows, columns, pair)


def check_finite(values: npt.NDArray, rows: Numbers, columns: Numbers, pair: str) -> npt.NDArray:
    """Return `values`, or raise if a value is NaN or infinite; see `kernel_values` for the other arguments."""
    finite = np.isfinite(values)
    if not finite.all():
        i, j = np.argwhere(~finite)[0]
        expected = f" is {values[i, j]}, expected a finite number; look at these two objects (empty? NaN inside?)"
        index = int(np.asarray(rows)[i]), int(np.asarray(columns)[j])
        raise BadPairValue("the kernel value of", index, expected, pair)
    return values


class DistancePairs:
    """A distance between positions in a collection: it looks up the entries of a precomputed matrix `values`."""

    def __init__(self, values: npt.NDArray) -> None:
        self.values = values

    def __call__(self, X: npt.NDArray, Y: npt.NDArray | None = None) -> npt.NDArray:
        return self.values[np.ix_(X, X if Y is None else Y)]


class KernelPairs(DistancePairs, Kernel):
    """A kernel between positions in a collection: it looks up the entries of a precomputed matrix `values`."""

    def diag(self, X: npt.NDArray) -> npt.NDArray:
        return self.values[X, X]


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
