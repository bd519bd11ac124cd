"""Distances of points as matrix products, for the distances between sets that join those of nearest points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from similia._threads import run_blas_tasks
from similia.distances import _sets as loops
from similia.objects import SetBatch
from similia.objects._base import runs

LANES, ROWS = 1024, 512  # points of a tile: two megabytes of float32

Array = npt.NDArray[np.floating]


def fill_by_products(A: SetBatch, B: SetBatch, kind: int, root: bool, same: bool, out: Array) -> None:
    """Write the distances of the sets `A` to the sets `B`; squared distances of points are tiles of a product."""
    dtype = A.values.dtype
    _, _, right, centre, b_squares = sides_of(A, B)
    tiles = list(runs(A.offsets, LANES))

    def fill(tile: int) -> None:
        a_sets = tiles[tile]
        first, last = A.offsets[a_sets.start], A.offsets[a_sets.stop]
        left, a_squares = _factors(A.values[first:last], centre, left=True)
        room = np.empty((max(ROWS, int(B.lengths.max())), last - first), dtype)
        b_first = a_sets.start if same else 0
        for run in runs(B.offsets[b_first:], ROWS):
            b_sets = slice(run.start + b_first, run.stop + b_first)
            points = slice(B.offsets[b_sets.start], B.offsets[b_sets.stop])
            products = np.matmul(right[points], left.T, out=room[: points.stop - points.start])
            loops.join_tile(
                products, products.view(integer_of(products)), A.values, A.offsets, a_squares, B.values, B.offsets,
                b_squares, (a_sets.start, a_sets.stop), (b_sets.start, b_sets.stop), kind, root, same, out,
            )  # fmt: skip

    run_blas_tasks(fill, range(len(tiles)), len(A.values) * len(B.values) * A.n_dims // (2 if same else 1))


def join_by_product(
    A: SetBatch, B: SetBatch, right: Array, centre: Array, b_squares: Array, kind: int, root: bool, a: int
) -> Callable[[int, Array], None]:
    """Return what writes the distance of set a of `A` to set b of `B`, the other arguments being those of `_sides`."""
    mine = slice(A.offsets[a], A.offsets[a + 1])
    left, a_squares = _factors(A.values[mine], centre, left=True)

    def join(b: int, out: Array) -> None:
        products = right[B.offsets[b] : B.offsets[b + 1]] @ left.T
        loops.join_tile(
            products, products.view(integer_of(products)), A.values, A.offsets[a : a + 2], a_squares, B.values,
            B.offsets[b : b + 2], b_squares, (0, 1), (0, 1), kind, root, False, out,
        )  # fmt: skip

    return join


def sides_of(A: SetBatch, B: SetBatch) -> tuple[SetBatch, SetBatch, Array, Array, Array]:
    """Return both batches, and of `B` the factors, the centre they are relative to, and the squared norms."""
    centre = B.values.mean(axis=0, dtype=np.float64).astype(A.values.dtype)
    right, b_squares = _factors(B.values, centre, left=False)
    return A, B, right, centre, b_squares


def integer_of(values: Array) -> npt.DTypeLike:
    """Return the integer type of the width of the values."""
    return np.int32 if values.itemsize == 4 else np.int64


def _factors(values: Array, centre: Array, *, left: bool) -> tuple[Array, Array]:
    """Return rows whose products left.right are squared distances, and the squared norms of the centred points.

    left = (u, |u|^2, 1), right = (-2 v, 1, |v|^2).
    """
    n, p = values.shape
    factors = np.empty((n, p + 2), values.dtype)
    points = np.subtract(values, centre, out=factors[:, :p])
    squares = np.einsum("ij,ij->i", points, points)
    factors[:, p], factors[:, p + 1] = (squares, 1) if left else (1, squares)
    if not left:
        points *= -2
    return factors, squares
