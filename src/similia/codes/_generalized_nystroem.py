"""Principal directions from sampled rows and columns: the sample, products of its matrices, the rotation.

C (c x d) holds the sampled rows, centred, and W = C[:, I] (c x r) the sampled columns. With W = V S U^T the paper's
directions are C^T V S^-1 = (C^T W) U S^-2. V, S, U come from the smaller of W^T W and W W^T in float64. If the k-th
singular value is below 1e-4 of the first, squaring has lost its digits, and an SVD of W is used instead. If C does not
fit into memory, one pass sums P = C^T W (d x r) over blocks of rows; W^T W is its part P[I].

All products of a fit are cut into tiles of one fixed shape. One BLAS thread computes each tile, and the tiles are
spread over the cores, so the result does not depend on the number of threads. `projected`, behind `transform`, uses
`core.products`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse as sp

from similia.codes._row_sources import RowSource, ceil_share, check_rows, check_squares, gather
from similia.core.config import settings
from similia.core.errors import BadParameter, BadValue
from similia.core.products import row_product
from similia.core.threads import one_blas_thread, run_in_ranges

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

ROWS_FOR_EACH, FEATURES_FOR_EACH = 4, 1.5  # at least, per direction: 5 % of digits had 20 features for 32
TILE = 256  # rows or columns of one BLAS call
_WINDOW = 1024  # rows of W in float64 at a time
_WORTH_THREADS = 2**24  # multiplications that justify threads
_GRAM_IS_ENOUGH = 1e-8  # eigenvalue relative to the largest above which the Gram matrix gives 8 digits
_SMALLEST = 1e-290  # smallest eigenvalue that is safe to divide by


def in_tiles(fill: Callable[[int, int], None], n: int, tile: int, work: int) -> None:
    """Call `fill` on ranges that begin at multiples of `tile`, in threads if `work` multiplications justify them."""
    if work < _WORTH_THREADS:
        fill(0, n)
    else:
        run_in_ranges(fill, n, tile)


def by_tiles(product: Callable[[slice], Floats], out: Floats, work: int, tile: int = TILE) -> Floats:
    """Fill rows of `out` with `product` of each tile of rows; return `out`."""

    def fill(start: int, stop: int) -> None:
        for i in range(start, stop, tile):
            rows = slice(i, min(stop, i + tile))
            out[rows] = product(rows)

    in_tiles(fill, len(out), tile, work)
    return out


class TooFewDirections(Exception):
    """The sample has only `usable` directions."""

    def __init__(self, usable: int) -> None:
        self.usable = usable


def too_few(model: Any, usable: int, c: int, r: int) -> BadParameter:
    """Return the error for a sample of c rows and r features that is too small for a `GeneralizedNystroemPCA`."""
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


def least_sample(share: Any, for_each: float, k: int, least: int) -> int:
    """Return the minimum number of sampled rows or features; for a fractional `share`, `for_each` per direction."""
    return least if isinstance(share, Integral) else max(least, ceil_share(for_each, k))


class DenseSample:
    """Sampled rows, centred in place."""

    def __init__(self, rows: Any, mean: Floats | None, weights: Floats | None = None) -> None:
        self.rows, self.shape, self.dtype = rows, rows.shape, rows.dtype
        for start in range(0, len(rows), _WINDOW):
            block = rows[start : start + _WINDOW]
            if mean is not None:
                block[:] = block - mean
            if weights is not None:
                block *= weights[start : start + _WINDOW, None]

    def window(self, rows: slice, columns: Indices) -> Floats:
        """Return a block of C in float64."""
        return np.take(self.rows[rows], columns, axis=1).astype(np.float64)

    def combine(self, coefficients: Floats, work: np.dtype) -> Floats:
        """Return C^T `coefficients`, accumulated in floats of type `work`."""
        coefficients = coefficients.astype(work)
        return by_tiles(
            lambda part: self.rows[:, part].astype(work, copy=False).T @ coefficients,
            np.empty((self.shape[1], coefficients.shape[1])),
            self.rows.size * coefficients.shape[1],
        )

    def project(self, basis: Floats, work: np.dtype) -> Floats:
        """Return C `basis`, accumulated in floats of type `work`."""
        basis = basis.astype(work)
        return by_tiles(
            lambda part: self.rows[part].astype(work, copy=False) @ basis,
            np.empty((self.shape[0], basis.shape[1])),
            self.rows.size * basis.shape[1],
        )

    def largest_sums(self) -> tuple[float, float]:
        """Return the largest sum of magnitudes over a row and over a column."""
        columns, row = np.zeros(self.shape[1]), 0.0
        for start in range(0, self.shape[0], _WINDOW):
            block = self.window(slice(start, start + _WINDOW), np.arange(self.shape[1]))
            np.abs(block, out=block)
            columns += block.sum(axis=0)
            row = max(row, float(block.sum(axis=1).max()))
        return row, float(columns.max())

    def column_energies(self) -> Floats:
        """Return the sum of squares of each column."""
        energies = np.zeros(self.shape[1])
        for start in range(0, self.shape[0], _WINDOW):
            energies += np.square(self.rows[start : start + _WINDOW], dtype=np.float64).sum(axis=0)
        return energies


class SparseSample(DenseSample):
    """Sampled CSR rows; centring and weights are applied only in products: C = S - a m^T."""

    def __init__(self, rows: sp.csr_array, mean: Floats | None, weights: Floats | None = None) -> None:
        self.shape, self.dtype = rows.shape, rows.dtype
        self.a = np.ones(rows.shape[0]) if weights is None else weights
        self.rows = sp.csr_array(rows.astype(np.float64).multiply(self.a[:, None]))
        self.mean = np.zeros(rows.shape[1]) if mean is None else mean

    def window(self, rows: slice, columns: Indices) -> Floats:
        return self.rows[rows][:, columns].toarray() - self.a[rows, None] * self.mean[columns]

    def combine(self, coefficients: Floats, work: np.dtype) -> Floats:
        return self.rows.T @ coefficients - np.outer(self.mean, self.a @ coefficients)

    def project(self, basis: Floats, work: np.dtype) -> Floats:
        return self.rows @ basis - np.outer(self.a, self.mean @ basis)

    def column_energies(self) -> Floats:
        squares = self.rows.multiply(self.rows).sum(axis=0)
        return squares - 2 * self.mean * (self.rows.T @ self.a) + self.mean**2 * (self.a @ self.a)


def sample_of(rows: Any, mean: Floats | None, weights: Floats | None = None) -> DenseSample:
    """Wrap dense or CSR rows as a sample."""
    return (SparseSample if sp.issparse(rows) else DenseSample)(rows, mean, weights)


def mean_of(rows: Any) -> Floats:
    """Return the mean row in float64."""
    if sp.issparse(rows):
        return np.asarray(rows.sum(axis=0, dtype=np.float64)) / rows.shape[0]
    total = np.zeros(rows.shape[1])
    with np.errstate(invalid="ignore", over="ignore"):
        for start in range(0, len(rows), _WINDOW):
            total += rows[start : start + _WINDOW].sum(axis=0, dtype=np.float64)
    return total / len(rows)


@dataclass
class Directions:
    """Rows of `components` are the directions; `singular_values` are those of the sample, unscaled."""

    components: Floats
    singular_values: Floats


def directions(
    sample: DenseSample,
    columns: Indices,
    k: int,
    rotate: bool,
    offset: float = 0.0,
    weights: Floats | None = None,
    floor: Callable[[float], float] | None = None,
) -> Directions:
    """Return k directions from a sample in memory; `rotate` makes them orthonormal, by Rayleigh-Ritz on the sample.

    `offset` is the mean square of the subtracted means; it bounds rounding errors, which must not count as directions.
    `weights` scale the sampled columns; `floor` maps ||W||_F^2 to the least squared singular value allowed.
    """
    with one_blas_thread():
        coefficients, values = _left_vectors(sample, columns, k, offset, weights, floor)
        precise = sample.dtype == np.float64 or values[-1] < 1e-3 * values[0]
        work = np.dtype(np.float64 if precise else np.float32)
        raw = sample.combine(coefficients, work)
        return Directions(*rotated(raw, sample, work)) if rotate else Directions(raw.T, values)


def rotated(raw: Floats, sample: DenseSample, work: np.dtype) -> tuple[Floats, Floats]:
    """Return an orthonormal basis (k, d) of the columns of `raw`, rotated to the principal axes of the sample."""
    basis = np.linalg.qr(raw)[0]
    triangle = np.linalg.qr(sample.project(basis, work), mode="r")
    _, values, axes = np.linalg.svd(triangle)
    return (basis @ axes.T).T, values


def _left_vectors(
    sample: DenseSample,
    columns: Indices,
    k: int,
    offset: float,
    weights: Floats | None,
    floor: Callable[[float], float] | None,
) -> tuple[Floats, Floats]:
    """Return V S^-1 (c, k) and S (k,) of W."""
    c, r = sample.shape[0], len(columns)
    scale = np.ones(r) if weights is None else weights
    tall = r <= c
    gram = _gram_of_columns(sample, columns, scale) if tall else _gram_of_rows(sample, columns, scale)
    energy, largest_k = float(np.trace(gram)), min(k, len(gram))
    squares, vectors = top_eigenvectors(gram, largest_k)
    if largest_k == k and squares[-1] > max(_GRAM_IS_ENOUGH * squares[0], _SMALLEST):
        values = np.sqrt(squares)
        if tall:
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
            raise TooFewDirections(usable)
        values = values[:k]
        coefficients = left[:, :k] / values
    if floor is not None and (usable := int(np.count_nonzero(np.square(values) >= floor(energy)))) < k:
        raise TooFewDirections(usable)
    return coefficients, values


def top_eigenvectors(gram: Floats, k: int) -> tuple[Floats, Floats]:
    """Return the k largest eigenvalues, largest first, and their vectors as columns; reads only the lower part."""
    wanted = (len(gram) - k, len(gram) - 1)
    values, vectors = scipy.linalg.eigh(  # the transpose is already in LAPACK's order
        gram.T, lower=False, subset_by_index=wanted, overwrite_a=True, check_finite=False
    )
    return values[::-1], vectors[:, ::-1]


def _gram_of_columns(sample: DenseSample, columns: Indices, scale: Floats) -> Floats:
    gram = np.zeros((len(columns), len(columns)))
    for start in range(0, sample.shape[0], _WINDOW):
        W = sample.window(slice(start, start + _WINDOW), columns) * scale
        _add_products(gram, W)
    return gram


def _gram_of_rows(sample: DenseSample, columns: Indices, scale: Floats) -> Floats:
    gram = np.zeros((sample.shape[0], sample.shape[0]))
    for start in range(0, len(columns), _WINDOW):
        part = slice(start, start + _WINDOW)
        _add_products(gram, np.ascontiguousarray((sample.window(slice(None), columns[part]) * scale[part]).T))
    return gram


def _add_products(gram: Floats, W: Floats) -> None:
    """Add the lower tiles of W^T W to `gram`."""
    side = TILE // 2
    tiles = [(i, j) for i in range(0, len(gram), side) for j in range(0, i + 1, side)]

    def fill(start: int, stop: int) -> None:
        for i, j in tiles[start:stop]:
            gram[i : i + side, j : j + side] += W[:, i : i + side].T @ W[:, j : j + side]

    in_tiles(fill, len(tiles), 1, W.size * len(gram))


class CrossProducts:
    """Sum P = C^T W over blocks of rows in one pass, for samples that do not fit into memory.

    Rows are shifted by the mean of the first block. The exact mean, known only at the end, can then be removed without
    cancellation. The rows of smallest priority, as many as fit, are kept for the rotation.
    """

    def __init__(self, d: int, columns: Indices, k: int, dtype: np.dtype, center: bool) -> None:
        self.columns, self.dtype, self.center = columns, dtype, center
        self.P = np.zeros((d, len(columns)))
        self.count, self.total = 0, np.zeros(d)
        self._shift: npt.NDArray | None = None
        self._kept: list[tuple[npt.NDArray, Floats]] = []
        self._below, self._room = 1.0, max(2 * k, settings().max_memory // (4 * d * dtype.itemsize))

    def add(self, rows: npt.NDArray, priorities: Floats) -> None:
        """Add a block of rows."""
        if not len(rows):
            return
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
        """Return the mean of all added rows."""
        assert self._shift is not None
        return self._shift + self.total / self.count

    @one_blas_thread()
    def directions(self, k: int, rotate: bool) -> tuple[Directions, int]:
        """Return k directions and the number of rows used to rotate them (all rows if none were)."""
        delta = self.total / self.count * self.center
        gram = self.P[self.columns]
        gram -= self.count * np.outer(delta[self.columns], delta[self.columns])
        gram = (gram + gram.T) / 2
        largest_k = min(k, len(gram))
        squares, vectors = top_eigenvectors(gram, largest_k)
        usable = int(np.count_nonzero(squares > 16 * np.finfo(self.dtype).eps * max(squares[0], 0.0)))
        if usable < k:
            raise TooFewDirections(usable)
        vectors = vectors / squares
        raw = by_tiles(lambda part: self.P[part] @ vectors, np.empty((len(self.P), k)), self.P.size * k)
        raw -= np.outer(self.count * delta, delta[self.columns] @ vectors)
        if not rotate:
            return Directions(raw.T, np.sqrt(squares)), self.count
        rows = np.concatenate([rows for rows, _ in self._kept])
        self._kept = []
        sample = DenseSample(rows, delta if self.center else None)
        return Directions(*rotated(raw, sample, self.dtype)), len(rows)


def check_products_fit(source: RowSource, r: int, k: int, least_rows: int, streaming: bool) -> None:
    """Raise, naming numbers that fit, if P with r columns does not fit into half of max_memory."""
    d, half = source.n_features, settings().max_memory // 2
    if 8 * d * r <= half:
        return
    ways = [f"feature_fraction={half // (8 * d)}"] if half // (8 * d) >= k else []
    rows = int(half // source.row_bytes)
    if not streaming and source.n_rows and rows >= least_rows:
        ways.append(f"sample_fraction={rows}")
    raise ValueError(
        f"neither the sampled rows nor their products of {d} with {r} features fit into half of max_memory; "
        f"use {' or '.join([*ways, 'similia.config(max_memory=...)'])}"
    )


@dataclass
class WeightedSample:
    """Rows and columns drawn with replacement; C and W are scaled so that C C^T and W^T W are unbiased."""

    sample: DenseSample
    rows: Indices
    columns: Indices
    column_weights: Floats
    mean: Floats | None
    offset: float


def norm_sample(source: RowSource, n: int, c: int, r: int, center: bool, random: np.random.Generator) -> WeightedSample:
    """Draw c rows by squared norm, then r columns by squared norm within them: ConstantTimeSVD."""
    mean = None
    if center:
        total = np.zeros(source.n_features)
        for block in source.blocks():
            total += np.asarray(block.sum(axis=0, dtype=np.float64))
        mean = total / n
    norms = row_norms(source.blocks(), mean)
    rows = _draw_weighted(norms, c, random)
    unique, copies = np.unique(rows, return_inverse=True)
    weights = np.sqrt(norms.sum() / (c * norms[rows]))
    sample = sample_of(gather(source, unique)[copies], mean, weights)
    energies = np.maximum(sample.column_energies(), 0.0)
    columns = _draw_weighted(energies, r, random)
    column_weights = np.sqrt(energies.sum() / (r * energies[columns]))
    offset = 0.0 if mean is None else float(np.mean(mean**2) * np.mean(weights**2))
    return WeightedSample(sample, rows, columns, column_weights, mean, offset)


def row_norms(blocks: Iterator[Any], mean: Floats | None) -> Floats:
    """Return the squared distances of all rows from `mean`, or raise naming the first row that is not finite."""
    norms, first = [], 0
    for block in blocks:
        squares = np.empty(block.shape[0])
        for start in range(0, len(squares), _WINDOW):
            part = slice(start, start + _WINDOW)
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


def _draw_weighted(weights: Floats, count: int, random: np.random.Generator) -> Indices:
    """Draw `count` sorted positions with replacement, with probabilities proportional to `weights`."""
    sums = np.cumsum(weights)
    if not sums[-1] > 0:
        raise ValueError("all rows are equal (or zero, with center=False), expected at least two different ones")
    drawn = np.searchsorted(sums, random.random(count) * sums[-1], side="right")  # never draws a position of weight 0
    return np.sort(np.minimum(drawn, np.flatnonzero(weights)[-1])).astype(np.int64)


def projected(
    source: RowSource, components: npt.NDArray, offset: Floats, out: npt.NDArray | None = None
) -> Iterator[npt.NDArray]:
    """Yield ``rows @ components.T - offset`` of each block; if `out` is given, write each to its part of it."""
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


def offset_of(components: npt.NDArray, mean: Floats) -> Floats:
    """Return ``components @ mean`` in float64."""
    return row_product(components, mean[:, None])[:, 0]
