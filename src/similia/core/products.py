"""The product X W in float32 or float64, with equal bits on every processor and for any neighbouring rows.

BLAS adds the terms of an entry in an order that depends on the number of rows, the position of a row, the number of
threads and the processor. So the features of an object, and sometimes a bit of its code, would change with its block.
Here the entry of a row x and a column w is always ``fma(x[K-1], w[K-1], ... fma(x[1], w[1], x[0] w[0]))``, rounded once
per step. Hence x.y = y.x, and the product of a matrix with its transpose is symmetric, both exactly. Cost: 2 n K m
operations, shared among threads by rows, or by columns if there are few rows.

Columns are SIMD lanes, and six rows share each load of W. Processors without fused multiply-adds (x86 before 2013)
compute the same bits with the C library, about fifty times slower.

Products with a Hadamard matrix (`hadamard`) need no matrix. Rows, real or complex, are interleaved as *lanes*:
``work[i * lanes : (i + 1) * lanes]`` holds entry i of each of `lanes` rows, so a butterfly is a vector operation
without shuffles. A radix-4 pass fuses two radix-2 stages in registers. The compiler checks at most four slices for
overlap, so a pass of radix 8 would stay scalar and run 12 times slower. Each lane adds in the order of the radix-2
transform. A complex row is transformed as its real and imaginary parts. Cost: p log2 p additions for a row of p.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core import lanes as lane
from similia.core.config import rows_per_block, run_in_ranges, run_tasks
from similia.core.jit import njit
from similia.core.lanes import LANES

Floats = npt.NDArray[np.floating]

_FEW_ROWS = 24  # up to this many rows, W is not copied
_ROWS = 96  # rows that stay in cache while the panels of W pass
_AHEAD = 8  # vectors
_WORTH_A_THREAD = 2**21  # minimum number of multiplications per thread
_IN_CACHE = 8192  # numbers of a Hadamard product: 32 KiB of float32
_TILE = 2**20  # size in bytes of a block of products that stays in cache until it is used


class Panels(NamedTuple):
    """A matrix W of shape (K, m), read in panels of `LANES` columns.

    The next row of a panel is `row` numbers further on in `values`. If W is `copied`, panel j begins at
    ``values[j * K * LANES]``, and the last panel is padded with zeros. Otherwise panel j begins at
    ``values[j * LANES]``, but the last panel ends with column m - 1, so it may overlap the one before.
    """

    values: Floats
    shape: tuple[int, int]
    row: int
    copied: bool

    def first(self, columns: int) -> Panels:
        """Return the panels of the first `columns` columns of W, which must be `copied`."""
        return self._replace(shape=(self.shape[0], columns))


def panels(W: Floats, n: int | None = None) -> Panels:
    """Return W, float32 or float64, in the layout of `row_product`; no copy is made if few rows (`n`) use it."""
    K, m = W.shape
    if n is not None and n <= _FEW_ROWS and m >= LANES and W.flags.c_contiguous:
        return Panels(W.reshape(-1), (K, m), m, False)
    copy = np.empty((-(-m // LANES), K, LANES), W.dtype)
    for p, panel in enumerate(copy):
        columns = W[:, p * LANES : (p + 1) * LANES]
        panel[:, : columns.shape[1]] = columns
        panel[:, columns.shape[1] :] = 0
    return Panels(copy.reshape(-1), (K, m), LANES, True)


def row_product(
    X: npt.NDArray, W: Floats | Panels, out: npt.NDArray | None = None, *, threads: bool = True
) -> npt.NDArray:
    """Return X @ W, shape (n, m), in the dtype of W; an entry has the same bits whatever the other rows and columns.

    `X`, shape (n, K), may have any type and layout; `W` is float32 or float64, shape (K, m). If W is used many times,
    pass ``panels(W)``, which copies it once into the layout of the loop. `out` is a C-contiguous array for the product.
    Pass ``threads=False`` if the caller runs in one of several threads.
    """
    if X.ndim != 2 or len(W.shape) != 2 or X.shape[1] != W.shape[0]:  # the loop does not look at bounds
        raise ValueError(f"rows of shape {X.shape} do not fit a matrix of shape {W.shape}; fit again")
    n, (K, m) = len(X), W.shape
    if not isinstance(W, Panels):
        W = panels(W, n)
    dtype = W.values.dtype
    out = np.empty((n, m), dtype) if out is None else out
    if out.shape != (n, m) or out.dtype != dtype or not out.flags.c_contiguous:
        raise ValueError(
            f"out has shape {out.shape} and dtype {out.dtype}, expected {(n, m)} and {dtype}, C-contiguous"
        )
    n_panels = -(-m // LANES)

    def rows(start: int, stop: int) -> None:
        for i in range(start, stop, _ROWS):
            part = slice(i, min(stop, i + _ROWS))
            multiply(np.ascontiguousarray(X[part], dtype), W.values, W.row, W.copied, 0, n_panels, out[part])

    def columns(start: int, stop: int) -> None:
        if n == 1 and not W.copied and (start, stop) == (0, n_panels):
            multiply_one(few[0], W.values, out[0])
            return
        multiply(few, W.values, W.row, W.copied, start, stop, out)

    if n <= _ROWS:
        few = np.ascontiguousarray(X, dtype)
        run, total, work = columns, n_panels, n * K * LANES
    else:
        run, total, work = rows, n, K * m
    if threads and total * work >= 2 * _WORTH_A_THREAD:
        grain = -(-_WORTH_A_THREAD // max(1, work))
        run_in_ranges(run, total, -(-grain // _ROWS) * _ROWS if run is rows else grain)
    else:
        run(0, total)
    return out


def use_products(X: Any, W: Floats, use: Callable[[int, npt.NDArray], None]) -> None:
    """Call ``use(start, X[start:stop] @ W)`` for blocks of rows that stay in cache, in threads if there is much work.

    `X` is dense or sparse, of the dtype of W. An entry of a product has the same bits whatever the other rows.
    """
    n, n_bytes = X.shape[0], W.shape[1] * W.dtype.itemsize
    step = rows_per_block(n_bytes, at_most=max(16, _TILE // n_bytes))
    copy = None if hasattr(X, "toarray") else panels(W, n)

    def block(start: int) -> None:
        rows = X[start : start + step]
        use(start, np.asarray(rows @ W) if copy is None else row_product(rows, copy, threads=False))

    run_tasks(block, range(0, n, step), n * X.shape[1] * W.shape[1])


def chosen_products(vectors: Floats, rows: npt.NDArray[np.int64], queries: npt.NDArray) -> npt.NDArray:
    """Return the inner products of each query i and the vectors at ``rows[i]``, in the shape and order of `rows`.

    The dtype is that of `vectors`. Each product depends, bit for bit, only on its two vectors.
    """
    if rows.size and not 0 <= rows.min() <= rows.max() < len(vectors):  # the loop does not look at bounds
        raise ValueError(f"rows must be positions of {len(vectors)} vectors, got {rows.min()} to {rows.max()}")
    out = np.empty(rows.shape, vectors.dtype)
    vectors, queries = np.ascontiguousarray(vectors), np.ascontiguousarray(queries, vectors.dtype)
    rows = np.ascontiguousarray(rows, np.int64)

    def work(start: int, stop: int) -> None:
        multiply_chosen(vectors, rows[start:stop], queries[start:stop], out[start:stop])

    grain = max(1, _WORTH_A_THREAD // max(1, rows.shape[1] * vectors.shape[1]))
    run_in_ranges(work, len(rows), grain)
    return out


def padded(n_features: int) -> int:
    """Return the power of two to which `n_features` numbers are padded."""
    return 1 << (n_features - 1).bit_length()


@njit()
def multiply(X, values, step, copied, start, stop, out):  # type: ignore[no-untyped-def]
    """Write panels ``start:stop`` of X @ W to `out`; `values`, `step` (`row`) and `copied` come from `Panels`."""
    n, K = X.shape
    m = out.shape[1]
    flat, room = out.reshape(-1), np.empty(6 * LANES, out.dtype)
    zero = lane.splat(out.dtype.type(0))
    for first in range(start * LANES, min(m, stop * LANES), LANES):
        column = first if copied else min(first, m - LANES)
        base, skip, width = first * K if copied else column, first - column, min(LANES, m - column)
        for i in range(0, n - n % 6, 6):
            a, b, c, d, e, f = zero, zero, zero, zero, zero, zero
            at = base
            for k in range(K):
                w = lane.load(values, at)
                a = lane.multiply_add(lane.splat(X[i, k]), w, a)
                b = lane.multiply_add(lane.splat(X[i + 1, k]), w, b)
                c = lane.multiply_add(lane.splat(X[i + 2, k]), w, c)
                d = lane.multiply_add(lane.splat(X[i + 3, k]), w, d)
                e = lane.multiply_add(lane.splat(X[i + 4, k]), w, e)
                f = lane.multiply_add(lane.splat(X[i + 5, k]), w, f)
                at += step
            lane.store(room, 0, a)
            lane.store(room, LANES, b)
            lane.store(room, 2 * LANES, c)
            lane.store(room, 3 * LANES, d)
            lane.store(room, 4 * LANES, e)
            lane.store(room, 5 * LANES, f)
            for row in range(6):
                for j in range(skip, width):
                    flat[(i + row) * m + column + j] = room[row * LANES + j]
        for i in range(n - n % 6, n):
            a = zero
            at = base
            for k in range(K):
                a = lane.multiply_add(lane.splat(X[i, k]), lane.load(values, at), a)
                at += step
            lane.store(room, 0, a)
            for j in range(skip, width):
                flat[i * m + column + j] = room[j]


@njit()
def multiply_one(x, values, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the product of the row `x` and W, of at least `LANES` columns; `values` is ``W.reshape(-1)``.

    W, which no other row shares, is read once, from its first number to its last. The terms of an entry are added in
    the order of `multiply`.
    """
    K, m = len(x), len(out)
    whole, zero = m - m % LANES, lane.splat(out.dtype.type(0))
    out[:] = 0
    for k in range(0, K - K % 4, 4):
        a, b, c, d = lane.splat(x[k]), lane.splat(x[k + 1]), lane.splat(x[k + 2]), lane.splat(x[k + 3])
        for j in range(0, whole, LANES):
            at = k * m + j
            total = lane.multiply_add(a, lane.load(values, at), lane.load(out, j))
            total = lane.multiply_add(b, lane.load(values, at + m), total)
            total = lane.multiply_add(c, lane.load(values, at + 2 * m), total)
            lane.store(out, j, lane.multiply_add(d, lane.load(values, at + 3 * m), total))
    for k in range(K - K % 4, K):
        a = lane.splat(x[k])
        for j in range(0, whole, LANES):
            lane.store(out, j, lane.multiply_add(a, lane.load(values, k * m + j), lane.load(out, j)))
    if whole < m:
        last, room = zero, np.empty(LANES, out.dtype)
        for k in range(K):
            last = lane.multiply_add(lane.splat(x[k]), lane.load(values, k * m + m - LANES), last)
        lane.store(room, 0, last)
        out[whole:] = room[whole - m + LANES :]


@njit()
def multiply_chosen(vectors, rows, queries, out):  # type: ignore[no-untyped-def]
    """Fill ``out[i]`` with the inner products of query i and the vectors ``rows[i]``, all C-contiguous of one type."""
    n = vectors.shape[1]
    whole = n - n % LANES
    x, y = vectors.reshape(-1), queries.reshape(-1)
    x_rest, y_rest = np.zeros(LANES, out.dtype), np.zeros(LANES, out.dtype)
    for i in range(len(rows)):
        y_rest[: n - whole] = y[i * n + whole : (i + 1) * n]
        for j in range(rows.shape[1]):
            if j + _AHEAD < rows.shape[1]:  # rows are far apart in memory, so reading one takes longer than multiplying
                for k in range(0, n, LANES):
                    lane.prefetch(x, rows[i, j + _AHEAD] * n + k)
            at = rows[i, j] * n
            total = lane.splat(out.dtype.type(0))
            for k in range(0, whole, LANES):
                total = lane.multiply_add(lane.load(x, at + k), lane.load(y, i * n + k), total)
            if whole < n:
                x_rest[: n - whole] = x[at + whole : at + n]
                total = lane.multiply_add(lane.load(x_rest, 0), lane.load(y_rest, 0), total)
            out[i, j] = lane.total(total)


@njit()
def hadamard(work, lanes):  # type: ignore[no-untyped-def]
    """Apply the Walsh-Hadamard transform (natural order, not normalised) to each row ``work[r::lanes]``, in place."""
    span = len(work)
    while span > _IN_CACHE and span >= 4 * lanes:  # full passes until pieces fit into the cache
        span //= 4
        _radix4(work, span)
    for begin in range(0, len(work), span):
        _transform_piece(work[begin : begin + span], lanes)


@njit()
def _transform_piece(work, lanes):  # type: ignore[no-untyped-def]
    span = len(work)
    while span >= 4 * lanes:
        span //= 4
        _radix4(work, span)
    if span == 2 * lanes:
        _radix2(work, lanes)


@njit()
def _radix4(work, span):  # type: ignore[no-untyped-def]
    """Run two butterfly stages at once, on quadruples of blocks of `span` numbers."""
    for begin in range(0, len(work), 4 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        c = work[begin + 2 * span : begin + 3 * span]
        d = work[begin + 3 * span : begin + 4 * span]
        for i in range(span):
            ac, bd, a_c, b_d = a[i] + c[i], b[i] + d[i], a[i] - c[i], b[i] - d[i]
            a[i], b[i], c[i], d[i] = ac + bd, ac - bd, a_c + b_d, a_c - b_d


@njit()
def _radix2(work, span):  # type: ignore[no-untyped-def]
    """Run one butterfly stage, on pairs of blocks of `span` numbers."""
    for begin in range(0, len(work), 2 * span):
        a = work[begin : begin + span]
        b = work[begin + span : begin + 2 * span]
        for i in range(span):
            a[i], b[i] = a[i] + b[i], a[i] - b[i]
