"""Loops of `VectorIndex`: vectors to small integers after a random rotation, and the rows nearest to a query.

A row of the index is a code of `width` bytes and two float32: the norm r of the vector y that it encodes, and a factor.
Byte j holds coordinates j, j + width, j + 2 width ..., `bits` bits each, the first in the lowest bits. So a loop over
bytes reads each share of the query from contiguous numbers, and the compiler vectorises it.

**Codes** (Gao et al. 2024). Let o be the rotated y / r, D its length. Coordinate o_j becomes the odd integer

    w_j = 2 min(max(floor(t o_j), -2^(bits-1)), 2^(bits-1) - 1) + 1,

stored as (w_j + 2^bits - 1) / 2. Of `STEPS` values of t, the one with the greatest cosine of w and o is kept; the paper
tries all values of t at which a coordinate changes, at D 2^bits times the cost, for a cosine that is larger by 1e-3 at
most. <w, v> / <w, o> is an unbiased estimate of <o, v> for any v, because a random rotation makes the part of w that is
orthogonal to o a random direction. So the factor is r / <w, o>.

**Queries** become integers v_j of 16 bits, few enough for all sums <w, v> to fit into 32 bits.

Nothing here depends on the order of sums: they are of integers, or run along one vector in the order of its
coordinates; vectors are lanes of a loop. Cost: rows x D multiplications of 16-bit integers for a query.

**One query** and 4 bits: words of 16 bits hold four levels, which are multiplied without widening bytes first, and the
estimates of eight rows stay in registers until one is near enough. So 100,000 rows with D = 64 take 0.2 ms in one
thread, a third of the time of the loop for several queries.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core import lanes as simd
from similia.core.config import run_in_ranges
from similia.core.jit import njit
from similia.core.products import hadamard
from similia.search.scan import replace_last

LANES = 64  # vectors rotated together
FACTORS = 8  # bytes of the norm and the factor of a row
_MOST = np.float64(2**31 - 1)
_ROOT_HALF = np.float32(np.sqrt(0.5))
_GROUP, _GROUPS = simd.HALF, 32  # rows compared with one query at once, and groups of them with one near enough
_TILE = 2**15  # bytes of a tile of rows, which stays in cache for all queries
# Steps of the levels, in standard deviations of a coordinate; the best for Gaussian ones, and others for other vectors.
_BEST_STEP = {1: 1.6, 2: 0.996, 4: 0.335, 8: 0.031}
_RATIOS = np.array([0.5, 0.6, 0.7, 0.8, 0.88, 0.95, 1.0, 1.05, 1.12, 1.2, 1.35, 1.6, 2.0, 3.0])

Floats = npt.NDArray[np.float64]


def steps(bits: int) -> npt.NDArray[np.float32]:
    """Return the steps between levels that `encode` tries for `bits` bits."""
    ratios = _RATIOS if bits > 1 else np.ones(1)
    return np.asarray(_BEST_STEP[bits] * ratios, np.float32)


def encode(
    X: npt.NDArray, center: Floats, signs: npt.NDArray[np.int8], bits: int
) -> tuple[npt.NDArray[np.uint8], Floats]:
    """Return the rows of the vectors `X` minus `center`, shape (n, width + FACTORS), and their norms in float64."""
    n, D = len(X), signs.shape[1]
    width = D * bits // 8
    codes = np.zeros((n, width + FACTORS), np.uint8)
    norms, factors = np.empty(n), np.empty(n)
    flips, tried = signs.astype(np.float32), np.float32(np.sqrt(D)) / steps(bits)

    def work(start: int, stop: int) -> None:
        _encode(X, center, flips, bits, tried, codes[:, :width], norms, factors, start, stop)

    run_in_ranges(work, n, LANES)
    with np.errstate(over="ignore"):  # the caller refuses norms that are too large
        codes[:, width:].view(np.float32)[:] = np.stack([norms, factors], axis=1)
    return codes, norms


def encode_queries(
    X: npt.NDArray, center: Floats, signs: npt.NDArray[np.int8], bits: int
) -> tuple[npt.NDArray[np.int16], npt.NDArray[np.int64], Floats, Floats]:
    """Return queries as integers v of shape (q, D), (2^bits - 1) sum(v), what multiplies <w, v>, and squared norms."""
    q, D = len(X), signs.shape[1]
    V, shifts, scales, squares = np.empty((q, D), np.int16), np.empty(q, np.int64), np.empty(q), np.empty(q)
    flips = signs.astype(np.float32)

    def work(start: int, stop: int) -> None:
        _encode_queries(X, center, flips, 2**bits - 1, V, shifts, scales, squares, start, stop)

    run_in_ranges(work, q, LANES)
    return V, shifts, scales, squares


@njit()
def unit_rows(X, out):  # type: ignore[no-untyped-def]
    """Fill `out` with the rows of `X`, scaled to Euclidean length 1; a zero row stays zero."""
    for i in range(len(X)):
        out[i] = X[i]
        norm = _norm(out[i])
        if norm > 0:
            for j in range(out.shape[1]):
                out[i, j] /= norm


@njit()
def _norm(x):  # type: ignore[no-untyped-def]
    """Return the Euclidean norm of `x`, without overflow of a square."""
    largest, total = 0.0, 0.0
    for value in x:
        largest = max(largest, abs(value))
    if largest == 0.0 or largest == np.inf:
        return largest
    for value in x:
        total += (value / largest) * (value / largest)
    return largest * np.sqrt(total)


@njit()
def _load(X, center, first, count, lanes, work, norms, y):  # type: ignore[no-untyped-def]
    """Fill `lanes` of `work` with `count` rows of `X` from `first` on, minus `center` and divided by their `norms`."""
    work[:] = np.float32(0.0)
    for lane in range(count):
        for j in range(len(center)):
            y[j] = X[first + lane, j] - center[j]
        norm = norms[lane] = _norm(y)
        if norm > 0 and norm < np.inf:
            for j in range(len(center)):
                work[j * lanes + lane] = np.float32(y[j] / norm)


@njit()
def _rotate(work, flips):  # type: ignore[no-untyped-def]
    """Rotate the vectors in the lanes of `work` by signs, Hadamard products of as many coordinates as fit, and halves.

    If D is no power of two, the products take the first and the last coordinates in turns, and after each one, the
    sums and differences of the halves mix both (the rotation of the authors' library, after M. Kac).
    """
    D = flips.shape[1]
    p = 1
    while 2 * p <= D:
        p *= 2
    lanes, half, scale = len(work) // D, len(work) // 2, np.float32(1.0 / np.sqrt(np.float64(p)))
    for turn in range(len(flips)):
        for i in range(D):
            sign = flips[turn, i]
            for lane in range(i * lanes, (i + 1) * lanes):
                work[lane] *= sign
        first = 0 if turn % 2 == 0 else (D - p) * lanes
        part = work[first : first + p * lanes]
        hadamard(part, lanes)
        for i in range(len(part)):
            part[i] *= scale
        if p < D:
            left, right = work[:half], work[half:]
            for i in range(half):
                a, b = left[i] + right[i], left[i] - right[i]
                left[i], right[i] = a * _ROOT_HALF, b * _ROOT_HALF


@njit()
def _encode(X, center, flips, bits, tried, codes, norms, factors, start, stop):  # type: ignore[no-untyped-def]
    D, width = flips.shape[1], codes.shape[1]
    work, y = np.empty(D * LANES, np.float32), np.empty(len(center))
    best, kept = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    dots, squares = np.empty(LANES, np.float32), np.empty(LANES, np.float32)
    low, high = np.float32(-(2 ** (bits - 1))), np.float32(2 ** (bits - 1) - 1)
    half = np.float32(0.5)
    for first in range(start, stop, LANES):
        count = min(LANES, stop - first)
        _load(X, center, first, count, LANES, work, norms[first : first + count], y)
        _rotate(work, flips)
        best[:] = np.float32(-1.0)
        for t in tried:
            dots[:] = np.float32(0.0)
            squares[:] = np.float32(0.0)
            for i in range(D):
                o = work[i * LANES : (i + 1) * LANES]
                for lane in range(LANES):
                    level = min(max(np.floor(o[lane] * t), low), high) + half
                    dots[lane] += o[lane] * level
                    squares[lane] += level * level
            for lane in range(LANES):
                score = dots[lane] * dots[lane] / squares[lane]
                if score > best[lane]:
                    best[lane], kept[lane] = score, t
        for lane in range(count):
            row, dot = codes[first + lane], 0.0
            for i in range(D):
                o, byte = work[i * LANES + lane], i % width
                level = min(max(np.floor(o * kept[lane]), low), high)
                dot += np.float64(o) * (2.0 * np.float64(level) + 1.0)
                row[byte] |= np.uint8((np.int64(level) - np.int64(low)) << (bits * (i // width)))
            factors[first + lane] = norms[first + lane] / dot if dot > 0 else 0.0


@njit()
def _encode_queries(X, center, flips, top, V, shifts, scales, squares, start, stop):  # type: ignore[no-untyped-def]
    D, lanes = flips.shape[1], min(LANES, stop - start)
    work, norms, y = np.empty(D * lanes, np.float32), np.empty(lanes), np.empty(len(center))
    for first in range(start, stop, lanes):
        count = min(lanes, stop - first)
        _load(X, center, first, count, lanes, work, norms, y)
        _rotate(work, flips)
        for lane in range(count):
            largest, total = 0.0, 0.0
            for i in range(D):
                size = abs(np.float64(work[i * lanes + lane]))
                largest = max(largest, size)
                total += size
            # |v_j| <= 32767, and top * sum(|v_j|) < 2^31 although each v_j is rounded by up to 1/2
            step = max(largest / 32767.0, total / (_MOST / top - D))
            sums = 0
            for i in range(D):
                v = np.int16(np.rint(np.float64(work[i * lanes + lane]) / step)) if step > 0 else np.int16(0)
                V[first + lane, i] = v
                sums += np.int64(v)
            shifts[first + lane] = np.int64(top) * sums
            scales[first + lane] = 2.0 * step * norms[lane]
            squares[first + lane] = norms[lane] * norms[lane]


@njit()
def scan(codes, factors, ids, dead, bits, queries, bounds, distances, found):  # type: ignore[no-untyped-def]
    """Put the rows nearest to each query into its heap (`distances`, `found`); `bounds` bound the k-th distances.

    `codes` are the rows, (n, width + FACTORS), and `factors` the same bytes as float32; `queries` is the result of
    `encode_queries`.
    """
    V, shifts, scales, squares = queries
    width = codes.shape[1] - FACTORS
    if len(V) == 1 and bits == 4 and len(codes) > 0:
        numbers = np.float64(shifts[0]), scales[0], squares[0]
        _scan_for_one(codes, factors, ids, dead, V[0], numbers, bounds, distances[0], found[0])
        return
    tile = max(64, _TILE // codes.shape[1])
    pair, flat, last = np.empty((2, tile), np.int32), codes.reshape(-1), factors.shape[1] - 1
    for first in range(0, len(codes), tile):
        n = min(tile, len(codes) - first)
        for i in range(len(V)):
            if i % 2 == 0:
                few = min(2, len(V) - i)
                _products(
                    flat, first * codes.shape[1], codes.shape[1], width, bits, V[i], V[i + few - 1], pair[:few, :n]
                )
            sums = pair[i % 2]
            bound, scale, square, shift = bounds[i], scales[i], squares[i], shifts[i]
            limit = bound * bound * (1.0 + 1e-15)
            for j in range(n):
                norm, factor = np.float64(factors[first + j, last - 1]), np.float64(factors[first + j, last])
                estimate = norm * norm + square - scale * factor * np.float64(2 * np.int64(sums[j]) - shift)
                if estimate > limit or dead[first + j]:
                    continue
                distance = np.sqrt(max(0.0, estimate))
                if distance > bound:
                    continue
                worst = distances[i, 0]
                if distance < worst or (distance == worst and ids[first + j] < found[i, 0]):
                    replace_last(distances[i], found[i], distance, ids[first + j])
                    bound = min(bound, distances[i, 0])
                    limit = bound * bound * (1.0 + 1e-15)
            bounds[i] = min(bounds[i], bound)


@njit()
def _scan_for_one(codes, factors, ids, dead, v, numbers, bounds, distances, found):  # type: ignore[no-untyped-def]
    """Do the work of `scan` for one query and codes of 4 bits; `numbers` are the query's shift, scale and square.

    Groups of rows read up to 16 bytes of the row after them, so the last rows are compared in a copy.
    """
    n_bytes, fit = codes.shape[1], (len(codes) - 1) // _GROUP * _GROUP
    query, rest = _in_order(v, n_bytes - FACTORS), np.zeros((_GROUP + 1, n_bytes), np.uint8)
    rest[: len(codes) - fit] = codes[fit:]
    words, floats, n = codes.reshape(-1).view(np.uint16), factors.reshape(-1), fit
    for part in range(2):
        if part == 1:
            words, floats = rest.reshape(-1).view(np.uint16), rest.reshape(-1).view(np.float32)
            n, ids, dead = _GROUP, ids[fit:], dead[fit:]
        _compare(words, floats, n, n_bytes, ids, dead, query, numbers, bounds, distances, found)


@njit()
def _compare(words, floats, n, n_bytes, ids, dead, query, numbers, bounds, distances, found):  # type: ignore[no-untyped-def]
    """Compare the first `n` rows, whole groups, and put the nearest into the heap; rows beyond `ids` do not count.

    Rows are looked at one by one only in groups in which at least one estimate is within the bound. `words` and
    `floats` are the bytes of the rows as 16-bit and float32 numbers.
    """
    estimates, starts = np.empty(_GROUP * _GROUPS), np.empty(_GROUPS, np.int64)
    first, bound = 0, bounds[0]
    while first < n:
        limit = bound * bound * (1.0 + 1e-15)
        first, n_groups = _next_groups(words, floats, first, n, n_bytes, query, numbers, limit, estimates, starts)
        for i in range(_GROUP * n_groups):
            row = starts[i // _GROUP] + i % _GROUP
            if estimates[i] > limit or row >= len(ids) or dead[row]:
                continue
            distance = np.sqrt(max(0.0, estimates[i]))
            if distance > bound:
                continue
            if distance < distances[0] or (distance == distances[0] and ids[row] < found[0]):
                replace_last(distances, found, distance, ids[row])
                bound = min(bound, distances[0])
    bounds[0] = min(bounds[0], bound)


@njit()
def _next_groups(words, floats, first, stop, n_bytes, query, numbers, limit, estimates, starts):  # type: ignore[no-untyped-def]
    """Collect groups of rows of which at least one estimate is within `limit`, from `first` on, until `starts` is full.

    Return where to go on, and the number of groups. Their first rows are written to `starts`, and the estimates of all
    their rows to `estimates`. The other arguments are those of `_compare`.
    """
    two, shift = simd.splat_half(2.0), simd.splat_half(numbers[0])
    scale, square = simd.splat_half(numbers[1]), simd.splat_half(numbers[2])
    length, n = n_bytes // 2, 0
    for row in range(first, stop, _GROUP):
        at = row * length
        a = b = c = d = e = f = g = h = simd.no_counts()
        for start in range(0, len(query), 4 * simd.LANES):
            a = _add_chunk(a, words, at, query, start)
            b = _add_chunk(b, words, at + length, query, start)
            c = _add_chunk(c, words, at + 2 * length, query, start)
            d = _add_chunk(d, words, at + 3 * length, query, start)
            e = _add_chunk(e, words, at + 4 * length, query, start)
            f = _add_chunk(f, words, at + 5 * length, query, start)
            g = _add_chunk(g, words, at + 6 * length, query, start)
            h = _add_chunk(h, words, at + 7 * length, query, start)
            at += simd.LANES
        sums = simd.widened(simd.totals(a, b, c, d, e, f, g, h))
        norms, factors = simd.load_pairs(floats, (row + 1) * (n_bytes // 4) - 2, n_bytes // 4)
        near = norms * norms + square - scale * factors * (two * sums - shift)  # rounded as in `scan`
        if simd.any_at_most(near, limit):
            simd.store(estimates, _GROUP * n, near)
            starts[n] = row
            n += 1
            if n == len(starts):
                return row + _GROUP, n
    return stop, n


@njit()
def _add_chunk(sums, words, at, query, start):  # type: ignore[no-untyped-def]
    """Return `sums` plus products of the four levels in each of ``words[at : at + LANES]`` and the query's numbers."""
    word, n = simd.load(words, at), simd.LANES
    sums = simd.add_products(sums, simd.bits_at(word, 0, 4), simd.load(query, start))
    sums = simd.add_products(sums, simd.bits_at(word, 4, 4), simd.load(query, start + n))
    sums = simd.add_products(sums, simd.bits_at(word, 8, 4), simd.load(query, start + 2 * n))
    return simd.add_products(sums, simd.bits_at(word, 12, 4), simd.load(query, start + 3 * n))


@njit()
def _in_order(v, width):  # type: ignore[no-untyped-def]
    """Return the numbers of a query in the order of `_add_chunk`, with zeros for what is beyond the code of a row.

    Each chunk of `LANES` words has the numbers for the lowest 4 bits of all words, then for the next 4 bits, and so on.
    """
    n_bytes = 2 * simd.LANES
    query = np.zeros((-(-width // n_bytes), 4, simd.LANES), np.int16)
    for j in range(len(v)):
        byte, high = j % width, j // width
        query[byte // n_bytes, byte % 2 * 2 + high, byte % n_bytes // 2] = v[j]
    return query.reshape(-1)


@njit()
def _products(flat, start, stride, width, bits, v, w, pair):  # type: ignore[no-untyped-def]
    """Fill `pair` with the products of two queries (or one) and codes, from ``flat[start]`` on, `stride` apart."""
    if bits == 4:
        _products_4(flat, start, stride, width, v, w, pair[0], pair[-1])
        return
    for i in range(len(pair)):
        query, sums = v if i == 0 else w, pair[i]
        if bits == 8:
            _products_8(flat, start, stride, width, query, sums)
        elif bits == 2:
            _products_2(flat, start, stride, width, query, sums)
        else:
            _products_1(flat, start, stride, width, query, sums)


@njit()
def _times(level, number):  # type: ignore[no-untyped-def]
    """Return the product in 32 bits of a level of at most 8 bits and a 16-bit number."""
    return np.int32(np.int32(np.int16(level)) * np.int32(number))


@njit()
def _products_8(flat, start, stride, width, v, sums):  # type: ignore[no-untyped-def]
    for row in range(len(sums)):
        code, total = flat[start + row * stride : start + row * stride + width], np.int32(0)
        for j in range(width):
            total += _times(code[j], v[j])
        sums[row] = total


@njit()
def _products_4(flat, start, stride, width, v, w, sums, others):  # type: ignore[no-untyped-def]
    """Fill `sums` and `others` as `_products` does, with the products of the codes and two queries."""
    whole = width - width % simd.LANES
    for row in range(len(sums)):
        at = start + row * stride
        a, b, c, d = simd.no_counts(), simd.no_counts(), simd.no_counts(), simd.no_counts()
        for j in range(0, whole, simd.LANES):
            code = simd.load(flat, at + j)
            low, high = simd.low_bits(code), simd.high_bits(code)
            a = simd.add_products(a, low, simd.load(v, j))
            b = simd.add_products(b, high, simd.load(v, width + j))
            c = simd.add_products(c, low, simd.load(w, j))
            d = simd.add_products(d, high, simd.load(w, width + j))
        total, other = simd.total(a) + simd.total(b), simd.total(c) + simd.total(d)
        for j in range(whole, width):
            low, high = flat[at + j] & np.uint8(15), flat[at + j] >> np.uint8(4)
            total += _times(low, v[j]) + _times(high, v[width + j])
            other += _times(low, w[j]) + _times(high, w[width + j])
        sums[row], others[row] = total, other


@njit()
def _products_2(flat, start, stride, width, v, sums):  # type: ignore[no-untyped-def]
    a, b, c, d = v[:width], v[width : 2 * width], v[2 * width : 3 * width], v[3 * width : 4 * width]
    mask = np.uint8(3)
    for row in range(len(sums)):
        code, total = flat[start + row * stride : start + row * stride + width], np.int32(0)
        for j in range(width):
            e = code[j]
            total += _times(e & mask, a[j]) + _times((e >> np.uint8(2)) & mask, b[j])
            total += _times((e >> np.uint8(4)) & mask, c[j]) + _times(e >> np.uint8(6), d[j])
        sums[row] = total


@njit()
def _products_1(flat, start, stride, width, v, sums):  # type: ignore[no-untyped-def]
    one = np.uint8(1)
    for row in range(len(sums)):
        code, total = flat[start + row * stride : start + row * stride + width], np.int32(0)
        for bit in range(8):
            part, shift = v[bit * width : (bit + 1) * width], np.uint8(bit)
            for j in range(width):
                total += _times((code[j] >> shift) & one, part[j])
        sums[row] = total


def finite_factors(codes: Any) -> bool:
    """Return whether the norms and factors in rows of an index are finite and not negative."""
    factors = np.ascontiguousarray(codes[:, -FACTORS:]).view(np.float32)
    return bool(((factors >= 0) & np.isfinite(factors)).all())
