"""Principal directions from sampled rows and columns: the computations behind `GeneralizedNystroemPCA`.

C (c x d) holds the sampled rows, centred, and W = C[:, I] (c x r) their sampled columns. With the SVD W = V S U^T, the
paper's directions are C^T V S^-1 = (C^T W) U S^-2. V, S and U come from the eigenvectors of the smaller of W^T W and
W W^T, in float64. If the k-th singular value is below 1e-4 of the first, squaring loses too many digits, and an SVD of
W is computed instead. If C does not fit into memory, one pass over blocks of rows sums P = C^T W (d x r), whose rows I
are W^T W.

All dense products of a fit are cut into tiles of fixed shapes. One BLAS thread computes each tile, and the tiles are
spread over the cores, so the result does not depend on the number of threads. `transform` uses `projected`, which adds
terms in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from similia.core.config import one_blas_thread, run_in_ranges, settings
from similia.core.products import row_product
from similia.core.validation import BadParameter, BadValue
from similia.sources.matrices import MatrixSource, check_rows, check_squares

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

TILE = 256  # rows or columns of one BLAS call
_WINDOW = 1024  # rows converted to float64 at a time
_WORTH_THREADS = 2**24  # multiplications that justify threads
_GRAM_IS_ENOUGH = 1e-8  # eigenvalues of a Gram matrix above this fraction of the largest have 8 correct digits
_SMALLEST = 1e-290  # smallest eigenvalue that is safe to divide by
_LARGEST = 1e30  # largest coefficient that is safe in float32


def _windows(n: int) -> Iterator[slice]:
    for start in range(0, n, _WINDOW):
        yield slice(start, start + _WINDOW)


def in_tiles(fill: Callable[[int, int], None], n: int, tile: int, work: int) -> None:
    """Call ``fill(start, stop)`` on ranges that cover 0 to n and start at multiples of `tile`.

    The calls run in threads if `work`, the number of multiplications, is large enough.
    """
    if work < _WORTH_THREADS:
        fill(0, n)
    else:
        run_in_ranges(fill, n, tile)


def by_tiles(product: Callable[[slice], Floats], out: Floats, work: int, tile: int = TILE) -> Floats:
    """Return `out` after ``out[rows] = product(rows)`` for slices of `tile` rows; uses threads if `work` is large."""

    def fill(start: int, stop: int) -> None:
        for i in range(start, stop, tile):
            rows = slice(i, min(stop, i + tile))
            out[rows] = product(rows)

    in_tiles(fill, len(out), tile, work)
    return out


def tiled_product(A: npt.NDArray, B: Floats, dtype: npt.DTypeLike = np.float64) -> Floats:
    """Return ``A @ B`` as float64, computed in `dtype`."""
    B = B.astype(dtype, copy=False)
    out = np.empty((len(A), B.shape[1]))
    return by_tiles(lambda part: A[part].astype(dtype, copy=False) @ B, out, A.size * B.shape[1])


def _too_few(model: Any, usable: int, c: int, r: int) -> BadParameter:
    """Return the error to raise if c sampled rows and r sampled features give only `usable` directions."""
    found = (
        f"{model.n_components}, but the {c} sampled rows have only {usable} usable directions in the {r} sampled "
        "features"
    )
    if not usable:
        return BadParameter("n_components", "", found, "are all of them equal?")
    shares = {"sample_fraction": model.sample_fraction, "feature_fraction": model.feature_fraction}
    more = " or ".join(name for name, share in shares.items() if isinstance(share, Integral) or share < 1)
    cure = f", or raise {more}" if more else ""
    return BadParameter("n_components", "", found, f"use n_components={usable}{cure}")


class DenseSample:
    """The sample ``(rows - mean) * weights``, one weight per row, as a dense matrix; overwrites `rows`."""

    def __init__(self, rows: Any, mean: Floats | None, weights: Floats | None = None) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype
        for part in _windows(len(rows)):
            block = rows[part]
            if mean is not None:
                block[:] = block - mean
            if weights is not None:
                block *= weights[part, None]

    def window(self, rows: slice, columns: Indices) -> Floats:
        """Return the given rows and columns of the sample in float64."""
        return np.take(self.rows[rows], columns, axis=1).astype(np.float64)

    def combine(self, coefficients: Floats, dtype: np.dtype) -> Floats:
        """Return the sample's transpose times `coefficients` as float64, computed in `dtype`."""
        return tiled_product(self.rows.T, coefficients, dtype)

    def project(self, basis: Floats, dtype: np.dtype) -> Floats:
        """Return the sample times `basis` as float64, computed in `dtype`."""
        return tiled_product(self.rows, basis, dtype)

    def largest_sums(self) -> tuple[float, float]:
        """Return the largest sum of absolute values in any row of the sample, and the largest in any column."""
        columns, row = np.zeros(self.shape[1]), 0.0
        for part in _windows(self.shape[0]):
            block = self.window(part, np.arange(self.shape[1]))
            np.abs(block, out=block)
            columns += block.sum(axis=0)
            row = max(row, float(block.sum(axis=1).max()))
        return row, float(columns.max())

    def column_energies(self) -> Floats:
        energies = np.zeros(self.shape[1])
        for part in _windows(self.shape[0]):
            energies += np.square(self.rows[part], dtype=np.float64).sum(axis=0)
        return energies


class SparseSample(DenseSample):
    """The sample ``(rows - mean) * weights`` of CSR rows, kept as S - a m^T: weighted rows S, weights a, mean m."""

    def __init__(self, rows: sp.csr_array, mean: Floats | None, weights: Floats | None = None) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        self.a = np.ones(rows.shape[0]) if weights is None else weights
        self.rows = sp.csr_array(rows.astype(np.float64).multiply(self.a[:, None]))
        self.mean = np.zeros(rows.shape[1]) if mean is None else mean

    def window(self, rows: slice, columns: Indices) -> Floats:
        return self.rows[rows][:, columns].toarray() - self.a[rows, None] * self.mean[columns]

    def combine(self, coefficients: Floats, dtype: np.dtype) -> Floats:
        return self.rows.T @ coefficients - np.outer(self.mean, self.a @ coefficients)

    def project(self, basis: Floats, dtype: np.dtype) -> Floats:
        return self.rows @ basis - np.outer(self.a, self.mean @ basis)

    def column_energies(self) -> Floats:
        squares = self.rows.multiply(self.rows).sum(axis=0)
        return squares - 2 * self.mean * (self.rows.T @ self.a) + self.mean**2 * (self.a @ self.a)


def sample_of(rows: Any, mean: Floats | None, weights: Floats | None = None) -> DenseSample:
    """Return ``(rows - mean) * weights``, one weight per row: a `DenseSample`, or a `SparseSample` for CSR rows."""
    return (SparseSample if sp.issparse(rows) else DenseSample)(rows, mean, weights)


def mean_of(rows: Any) -> Floats:
    """Return the mean of dense or CSR rows in float64."""
    if sp.issparse(rows):
        return np.asarray(rows.sum(axis=0, dtype=np.float64)) / rows.shape[0]
    total = np.zeros(rows.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        for part in _windows(len(rows)):
            total += rows[part].sum(axis=0, dtype=np.float64)
    return total / len(rows)


@one_blas_thread()
def directions(
    model: Any,
    sample: DenseSample,
    columns: Indices,
    offset: float = 0.0,
    weights: Floats | None = None,
    least_square: float = 0.0,
    least_share: float = 0.0,
) -> tuple[Floats, Floats]:
    """Return the directions (k, d) and singular values (k,) of a sample in memory; raise if there are fewer than k.

    `model` is the `GeneralizedNystroemPCA` whose parameters apply; k is its `n_components`. Let W hold the `columns` of
    the sample, each times its weight. A singular value of W gives no direction if it is below the rounding error, or
    if its square is below `least_square` or ``least_share * ||W||_F^2``. To estimate the rounding error, `offset` is
    the mean square of the numbers that centring has subtracted from the entries of the sample.
    """
    (c, _), r, k = sample.shape, len(columns), model.n_components
    scale = np.ones(r) if weights is None else weights
    gram = _gram(sample, columns, scale)
    energy, largest_k = float(np.trace(gram)), min(k, len(gram))
    squares, vectors = top_eigenvectors(gram, largest_k)
    if largest_k == k and squares[-1] > max(_GRAM_IS_ENOUGH * squares[0], _SMALLEST):
        values = np.sqrt(squares)
        if r <= c:
            right = scale[:, None] * vectors / squares
            coefficients = by_tiles(lambda rows: sample.window(rows, columns) @ right, np.empty((c, k)), c * right.size)
        else:
            coefficients = vectors / values
    else:
        W = sample.window(slice(None), columns) * scale
        left, values, _ = scipy.linalg.svd(W, full_matrices=False, overwrite_a=True)
        rounding = np.finfo(sample.dtype).eps / 2 * np.sqrt(energy / (c * r) + offset) * (np.sqrt(c) + np.sqrt(r))
        rounding += np.finfo(np.float64).eps * np.sqrt(offset * r) * c  # of the mean, a sum of c; equal in all rows
        cut = max(max(c, r) * np.finfo(np.float64).eps * values[0], rounding)
        if (usable := int(np.count_nonzero(values > cut))) < k:
            raise _too_few(model, usable, c, r)
        values = values[:k]
        coefficients = left[:, :k] / values
    least = max(least_square, least_share * energy)
    if (usable := int(np.count_nonzero(np.square(values) >= least))) < k:
        raise _too_few(model, usable, c, r)
    precise = sample.dtype == np.float64 or values[-1] < 1e-3 * values[0] or np.abs(coefficients).max() > _LARGEST
    dtype = np.dtype(np.float64 if precise else np.float32)
    raw = sample.combine(coefficients, dtype)
    return _rotated(raw, sample, dtype) if model.orthonormalize else (raw.T, values)


def _rotated(raw: Floats, sample: DenseSample, dtype: np.dtype) -> tuple[Floats, Floats]:
    """Return an orthonormal basis of the span of raw's columns, as rows (k, d), and the sample's singular values in it.

    Within that span, the basis is rotated to the principal axes of the sample.
    """
    basis = np.linalg.qr(raw)[0]
    triangle = np.linalg.qr(sample.project(basis, dtype), mode="r")
    _, values, axes = np.linalg.svd(triangle)
    return (basis @ axes.T).T, values


def top_eigenvectors(gram: Floats, k: int) -> tuple[Floats, Floats]:
    """Return gram's k largest eigenvalues, descending, and eigenvectors (columns); only its lower triangle is read."""
    wanted = (len(gram) - k, len(gram) - 1)
    values, vectors = scipy.linalg.eigh(  # the transpose is already in LAPACK's order
        gram.T, lower=False, subset_by_index=wanted, overwrite_a=True, check_finite=False
    )
    return values[::-1], vectors[:, ::-1]


def _gram(sample: DenseSample, columns: Indices, scale: Floats) -> Floats:
    """Return the lower triangle of W^T W or W W^T, whichever is smaller; W is the sample's `columns` times `scale`."""
    (c, _), r = sample.shape, len(columns)
    gram = np.zeros((min(c, r), min(c, r)))
    for part in _windows(max(c, r)):
        if r <= c:
            _add_products(gram, sample.window(part, columns) * scale)
        else:
            W = sample.window(slice(None), columns[part]) * scale[part]
            _add_products(gram, np.ascontiguousarray(W.T))
    return gram


def _add_products(gram: Floats, W: Floats) -> None:
    """Add W^T W to `gram`, but only the tiles on and below the diagonal."""
    side = TILE // 2
    tiles = [(i, j) for i in range(0, len(gram), side) for j in range(0, i + 1, side)]

    def fill(start: int, stop: int) -> None:
        for i, j in tiles[start:stop]:
            gram[i : i + side, j : j + side] += W[:, i : i + side].T @ W[:, j : j + side]

    in_tiles(fill, len(tiles), 1, W.size * len(gram))


class CrossProducts:
    """Sum P = C^T W, where W = C[:, columns], in one pass over blocks of a sample C that does not fit into memory.

    Rows are shifted by the mean of the first block, so that the exact mean, known only at the end, can be removed
    without cancellation. The rows with the smallest priorities, as many as fit, are kept to rotate the directions.
    """

    def __init__(self, d: int, columns: Indices, k: int, dtype: np.dtype, center: bool) -> None:
        self.columns, self.dtype, self.center = columns, dtype, center
        self.P = np.zeros((d, len(columns)))
        self.count, self.total = 0, np.zeros(d)
        self.added: list[Indices] = []  # positions of the rows in the source, by block
        self._shift: npt.NDArray | None = None
        self._kept: list[tuple[npt.NDArray, Floats]] = []
        self._below, self._room = 1.0, max(2 * k, settings().max_memory // (4 * d * dtype.itemsize))

    def add(self, rows: npt.NDArray, priorities: Floats, where: Indices) -> None:
        """Check a block of rows for NaN and add its products; `where` holds the rows' positions in the source."""
        if not len(rows):
            return
        check_squares(rows, where)
        self.added.append(where)
        if self._shift is None:
            self._shift = rows.mean(axis=0, dtype=np.float64) * self.center
        step = max(TILE, int(settings().max_memory // (16 * self.P.shape[0] * self.dtype.itemsize)))
        for start in range(0, len(rows), step):
            block = (rows[start : start + step] - self._shift).astype(self.dtype)
            self._add_block(block)
            self._keep(block, priorities[start : start + step])

    def _add_block(self, block: npt.NDArray) -> None:
        W = np.ascontiguousarray(block[:, self.columns])
        with one_blas_thread():
            by_tiles(lambda part: self.P[part] + block[:, part].T @ W, self.P, block.size * W.shape[1], 2 * TILE)
        self.total += block.sum(axis=0, dtype=np.float64)
        self.count += len(block)

    def _keep(self, block: npt.NDArray, priorities: Floats) -> None:
        low = priorities < self._below
        if low.any():
            self._kept.append((block[low], priorities[low]))
        while sum(len(p) for _, p in self._kept) > self._room:
            self._below = float(np.median(np.concatenate([p for _, p in self._kept])))
            self._kept = [(rows[p < self._below], p[p < self._below]) for rows, p in self._kept]

    def mean(self) -> Floats:
        assert self._shift is not None
        return self._shift + self.total / self.count

    @one_blas_thread()
    def directions(self, model: Any) -> tuple[Floats, Floats, int]:
        """Return the directions (k, d), the singular values (k,), and the number of rows they were computed from."""
        k = model.n_components
        delta = self.total / self.count * self.center
        gram = self.P[self.columns]
        gram -= self.count * np.outer(delta[self.columns], delta[self.columns])
        gram = (gram + gram.T) / 2
        largest_k = min(k, len(gram))
        squares, vectors = top_eigenvectors(gram, largest_k)
        usable = int(np.count_nonzero(squares > 16 * np.finfo(self.dtype).eps * max(squares[0], 0.0)))
        if usable < k:
            raise _too_few(model, usable, self.count, len(self.columns))
        vectors = vectors / squares
        raw = tiled_product(self.P, vectors)
        raw -= np.outer(self.count * delta, delta[self.columns] @ vectors)
        if not model.orthonormalize:
            return raw.T, np.sqrt(squares), self.count
        rows = np.concatenate([rows for rows, _ in self._kept])
        self._kept = []
        sample = DenseSample(rows, delta if self.center else None)
        return *_rotated(raw, sample, self.dtype), len(rows)


def row_norms(blocks: Iterator[Any], mean: Floats | None) -> Floats:
    """Return the squared distance of each row from `mean` (from 0 if it is None); raise if a row is not finite."""
    norms, first = [], 0
    for block in blocks:
        squares = np.empty(block.shape[0])
        for part in _windows(len(squares)):
            with np.errstate(invalid="ignore", over="ignore"):
                squares[part] = _squared_distances(block[part].astype(np.float64), mean)
        if not np.isfinite(squares).all():
            check_squares(block, first)
        norms.append(squares)
        first += len(squares)
    return np.concatenate(norms)


def _squared_distances(rows: Any, mean: Floats | None) -> Floats:
    if not sp.issparse(rows):
        rows = rows if mean is None else rows - mean
        return np.einsum("ij,ij->i", rows, rows)
    squares = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    return squares if mean is None else np.maximum(squares - 2 * (rows @ mean) + np.square(mean).sum(), 0.0)


def draw_weighted(weights: Floats, count: int, random: np.random.Generator) -> Indices:
    """Draw `count` positions with replacement, with probabilities proportional to `weights`, and return them sorted."""
    sums = np.cumsum(weights)
    if not sums[-1] > 0:
        raise ValueError("all rows are equal (or zero, with center=False), expected at least two different ones")
    drawn = np.searchsorted(sums, random.random(count) * sums[-1], side="right")  # never draws a position of weight 0
    return np.sort(np.minimum(drawn, np.flatnonzero(weights)[-1])).astype(np.int64)


def projected(
    source: MatrixSource, components: npt.NDArray, offset: Floats, out: npt.NDArray | None = None
) -> Iterator[npt.NDArray]:
    """Yield ``rows @ components.T - offset`` for each block of rows: new arrays, or views of `out` if it is given."""
    shift, start = offset.astype(components.dtype), 0
    for block in source.blocks(whole=out is not None):
        n = block.shape[0]
        Z = np.empty((n, len(components)), components.dtype) if out is None else out[start : start + n]
        if sp.issparse(block):
            Z[:] = block.astype(Z.dtype, copy=False) @ components.T
        else:
            row_product(block, components.T, Z)
        with np.errstate(all="ignore"):  # non-finite values are reported below
            Z -= shift
        if not np.isfinite(Z).all():
            bad = int(np.argmin(np.isfinite(Z).all(axis=1)))
            check_rows(block[bad : bad + 1], start + bad)
            raise BadValue(start + bad, f"is too large for sums in {Z.dtype}", remedy="scale the data")
        yield Z
        start += n
