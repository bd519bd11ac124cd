r"""Ridge regression of classes on samples of unit length, in closed form.

Let u_i be the n samples, scaled to unit length, w_i their weights, and y_ij = 1 if sample i is of class j, else 0. The
prototypes H_j and the intercepts b_j minimise::

    sum_ij w_i (y_ij - b_j - H_j . u_i)^2 + alpha sum_j ||H_j||^2

With S = diag(sqrt(w)), and K the Gram matrix of the samples, centred at their weighted mean, the solution is
``H_j = sum_i A_ij u_i`` with ``A = S (S K S + alpha I)^-1 S (Y - mean(Y))``. The solution takes memory for n^2 numbers
and about n^3 / 6 multiplications in float32; the result is refined to the precision of float64. For thousands of packed
samples of few classes, conjugate gradients are faster: they need no K, only 50 to 150 products with the samples for
each class except one. If there are at least 0.8 d samples of dimension d, equivalent equations with d x d numbers are
solved instead. For packed bits, K and the sums of products are integers, so they are exact on every processor.
Products of packed bits with vectors are sums from tables (`SignMatrix`).

If sample i is left out of the fit, its error is that in the fit to all samples, divided by alpha times a diagonal entry
of the inverse [1]_. Alpha is chosen by the sum of squared errors over at most 600 samples (and, if there are more,
possibly only some of their dimensions): from 0.3 times the mean weight, it is changed by factors of 10^(1/2) as long as
the sum falls. The scores of these samples, each left out in turn, calibrate the probabilities. If prototypes are
rounded, leaving a sample out changes its score for class j by kappa_j times the change without rounding [2]_. Here
kappa_j = R_j . H_j / ||H_j||^2, where R_j is the multiple of the rounded prototype that is nearest to H_j. For the
signs of Gaussian numbers, kappa_j is 2 / pi.

.. [1] Rifkin & Lippert, "Notes on regularized least squares", MIT-CSAIL-TR-2007-025, 2007.
.. [2] Bussgang, "Crosscorrelation functions of amplitude-distorted Gaussian signals", MIT, 1952.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import blas, lapack

from similia.codes import inner_products
from similia.core.config import check_memory, in_threads, n_threads, one_blas_thread, track
from similia.core.jit import njit
from similia.learn.prototypes import HeldOut, add_samples, dimension, lengths, products, signs, small_rows_up

Floats = npt.NDArray[np.float64]
_ALPHAS = 10.0 ** np.arange(-4.0, 3.5, 0.5)
_START = 7  # index of the alpha that is tried first, 0.3
_TRIED, _LEAST = 600, 256  # maximum number of samples that choose alpha, minimum number of their dimensions
_ROWS, _COLUMNS = 1024, 2048  # number of samples, and of columns of their products, in memory at a time
_REFINEMENTS = 10  # maximum number
_RESIDUAL = 1e-13  # of conjugate gradients, in units of the right side
_GRAM, _FACTOR = 0.042, 0.15  # seconds of K / n, and of its factor d / n^2, in units of a product with the system
_TOO_SMALL = "alpha is too small for these samples: the equations have no unique solution; raise alpha"
_FEWEST = 100  # products with the system for each class; if K and its factor take less time, they are computed
_WORTH_THREADS = 2**20  # minimum number of bytes


class Machine(NamedTuple):
    """The score of class j for a sample x is ``prototypes[j] @ (x / ||x|| - mean) + shares[j]``."""

    prototypes: Floats  # (n_classes, d)
    alpha: float
    mean: Floats  # (d,): weighted mean of the samples of unit length
    shares: Floats  # (n_classes,): of the weight
    held_out: HeldOut  # some samples, each left out in turn


def fit(
    X: npt.NDArray,
    targets: npt.NDArray,
    n_classes: int,
    weights: Floats,
    alpha: float | None,
    rng: np.random.Generator,
    rounded: Callable[[Floats], Floats] | None = None,
) -> Machine:
    """Fit a machine to packed bits or other vectors `X`, of classes 0 to ``n_classes - 1``, and their weights.

    With ``alpha=None``, alpha is chosen by leave-one-out errors. `rounded`, if given, turns exact prototypes into the
    vectors that replace them in predictions; `held_out` then holds the scores that these vectors give.
    """
    n, d = len(X), dimension(X)
    few = n < 0.8 * d
    needed = 12 * (n if few else d) ** 2
    check_memory(f"update='ridge' for {n} samples of dimension {d} takes", needed, "take update='margin'")
    Y = (targets[:, None] == np.arange(n_classes)).astype(np.float64)
    some = np.sort(rng.permutation(n)[:_TRIED])
    moments = None if few else _moments(X, weights)
    with one_blas_thread():  # so that prototypes do not depend on the number of threads
        K, chosen = _gram(X[some]), (Y[some], weights[some])
        if alpha is None:
            n_columns = max(_LEAST * X.shape[1] // d, X.shape[1] * len(some) // n)
            columns = np.sort(rng.permutation(X.shape[1])[:n_columns])
            alpha = _chosen(K if len(columns) == X.shape[1] else _gram(X[some][:, columns]), *chosen)
        left_out, coefficients = _left_out(K, *chosen, alpha)
        if rounded is not None:
            left_out = _rounded_left_out(X[some], *chosen, alpha, left_out, coefficients, rounded)
        if moments is None:
            found = _by_iteration(X, Y, weights, alpha) if X.dtype == np.uint8 else None
            prototypes, mean = _by_samples(X, Y, weights, alpha) if found is None else found
        else:
            prototypes, mean = _by_dimensions(moments, X, Y, weights, alpha)
        held_out = HeldOut(left_out, targets[some], weights[some])
        return Machine(prototypes, alpha, mean, weights @ Y / weights.sum(), held_out)


def _chosen(K: Floats, Y: Floats, weights: Floats) -> float:
    """Return the alpha with the least squared error of leaving out each sample."""
    alphas, errors = _ALPHAS * weights.mean(), dict[int, float]()

    def error(i: int) -> float:
        if i not in errors:
            errors[i] = float(weights @ np.square(_left_out(K, Y, weights, alphas[i])[0] - Y).sum(axis=1))
        return errors[i]

    best = _START
    for step in (1, -1):
        while 0 <= best + step < len(alphas) and error(best + step) < error(best):
            best += step
    return float(alphas[best])


def _left_out(K: Floats, Y: Floats, weights: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return the scores of each sample by the machine that is fitted to the others, and A (see above) for all."""
    M, right, roots = _system(K.copy(), Y, weights, alpha)
    factor, failed = lapack.dpotrf(_by_columns(M), lower=1, overwrite_a=1)
    if failed:
        raise ValueError(_TOO_SMALL)
    solution = lapack.dpotrs(factor, right, lower=1)[0]
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    diagonal = np.square(inverse).sum(axis=0) - weights / weights.sum() / alpha  # the intercept is not penalised
    return Y - solution / (diagonal * roots)[:, None], solution * roots[:, None]


def _rounded_left_out(
    X: npt.NDArray, Y: Floats, weights: Floats, alpha: float, left_out: Floats, coefficients: Floats,
    rounded: Callable[[Floats], Floats],
) -> Floats:  # fmt: skip
    """Return the scores that rounded prototypes give to each sample if they are fitted to the others."""
    shares = weights / weights.sum()
    *sums, mean = add_samples(X, np.column_stack([coefficients, shares]))
    exact = np.array(sums)
    directions = rounded(exact)
    squares = np.einsum("ij,ij->i", exact, exact)
    kappa = np.einsum("ij,ij->i", directions, exact) / np.where(squares > 0, squares, 1.0)
    fitted = Y - alpha * coefficients / weights[:, None]
    return products(X, directions) + (shares @ Y - directions @ mean) + kappa * (left_out - fitted)


def _system(K: Floats, Y: Floats, weights: Floats, alpha: float) -> tuple[Floats, Floats, Floats]:
    """Return (S K S + alpha I, S (Y - mean(Y)), diagonal of S), with `K` centred; overwrites `K`."""
    shares, roots = weights / weights.sum(), np.sqrt(weights)
    means = K @ shares
    K -= means
    K -= (means - means @ shares)[:, None]
    if (weights != 1.0).any():
        K *= roots
        K *= roots[:, None]
    K.flat[:: len(K) + 1] += alpha
    return K, roots[:, None] * (Y - shares @ Y), roots


def _by_iteration(X: npt.NDArray, Y: Floats, weights: Floats, alpha: float) -> tuple[Floats, Floats] | None:
    """Return (prototypes, mean) by conjugate gradients, without a Gram matrix.

    Return None if `_by_samples` takes less time, or if the iteration does not converge in the time that `_by_samples`
    takes. The columns of Y add up to a vector of ones and those of the solution to zeros, so one of them need not be
    solved for.
    """
    n, d = len(X), dimension(X)
    most = int(n * (_GRAM + _FACTOR * n / d) / (Y.shape[1] - 1))
    if most < _FEWEST:
        return None
    S, shares, roots = SignMatrix(X), weights / weights.sum(), np.sqrt(weights)

    def sums(v: Floats) -> Floats:  # of centred samples, d^(1/2) times
        v = roots * v
        return S.transposed_times(v - v.sum() * shares)

    def system(v: Floats) -> Floats:
        found = S.times(sums(v))
        return roots * (found - found @ shares) / d + alpha * v

    columns = [_conjugate_gradients(system, roots * (y - shares @ y), most) for y in Y.T[:-1]]
    solved = [column for column in columns if column is not None]
    if len(solved) < len(columns):
        return None
    prototypes = np.array([sums(column) for column in (*solved, -np.sum(solved, axis=0))])
    return prototypes / d**0.5, S.transposed_times(shares) / d**0.5


def _conjugate_gradients(system: Callable[[Floats], Floats], right: Floats, most: int) -> Floats | None:
    """Return M^-1 times `right`, given the products with M, or None if that takes `most` products or more.

    The residual of the result is at most `_RESIDUAL` times as long as `right` (Hestenes & Stiefel, 1952).
    """
    found, rest, direction = np.zeros_like(right), right.copy(), right.copy()
    squared = rest @ rest
    enough = _RESIDUAL**2 * squared
    for _ in range(most):
        if squared <= enough:
            return found
        product = system(direction)
        step = squared / (direction @ product)
        found += step * direction
        rest -= step * product
        before, squared = squared, rest @ rest
        direction = rest + squared / before * direction
    return None


def _by_samples(X: npt.NDArray, Y: Floats, weights: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return (prototypes, mean) by the equations over the samples."""
    M, right, roots = _system(_gram(X), Y, weights, alpha)
    sums = add_samples(X, np.column_stack([roots[:, None] * _solved(M, right), weights / weights.sum()]))
    return sums[:-1], sums[-1]


def _by_dimensions(moments: Floats, X: npt.NDArray, Y: Floats, weights: Floats, alpha: float) -> tuple[Floats, Floats]:
    """Return (prototypes, mean) by the equations over the dimensions; overwrites `moments`, those of `_moments`."""
    total, sums = weights.sum(), add_samples(X, np.column_stack([Y * weights[:, None], weights]))
    mean = sums[-1] / total
    M = blas.dsyr(-total, mean, a=moments, lower=1, overwrite_a=1)
    M.flat[:: len(M) + 1] += alpha
    return _solved(M, (sums[:-1] - np.outer(weights @ Y, mean)).T).T, mean


def _moments(X: npt.NDArray, weights: Floats) -> Floats:
    """Return the lower half of the weighted sum of the outer products of all samples of unit length with themselves.

    For packed bits of weight 1, these are whole numbers below 2**24 times a factor, so float32 holds them exactly and
    the number of threads does not matter.
    """
    d = dimension(X)
    packed = X.dtype == np.uint8
    exact = packed and bool((weights == 1.0).all()) and len(X) < 2**24
    dtype: type[np.floating] = np.float32 if exact else np.float64
    scale = 1.0 / d if exact else 1.0
    factors = weights / np.square(lengths(X))
    found = np.zeros((d, d), order="F")
    with nullcontext() if exact else one_blas_thread():
        for start in track(range(0, d, _COLUMNS), "HDClassifier", total=-(-d // _COLUMNS)):
            part = np.zeros((d - start, min(_COLUMNS, d - start)), dtype)
            for first in range(0, len(X), _ROWS):
                rows = slice(first, first + _ROWS)
                right: npt.NDArray[np.floating] = signs(X[rows], dtype) if packed else X[rows].astype(dtype)
                left = right if exact else right * factors[rows, None]
                part += left[:, start:].T @ right[:, start : start + _COLUMNS]
            found[start:, start : start + _COLUMNS] = part
    found *= scale
    return found


def _solved(M: Floats, right: Floats) -> Floats:
    """Return M^-1 times `right` for a positive definite M, whose lower half is read and overwritten.

    A Cholesky factor in float32 takes half the time. As in LAPACK's dsposv, residuals in float64 refine the result
    until they are rounding errors: three or four steps, unless alpha is tiny. If that fails, M is factored in float64.
    """
    M = _by_columns(M)
    largest = float(M.diagonal().max())
    failed, found, rest = not 1e-30 < largest < 1e30, np.zeros_like(right), right  # numbers that float32 can hold
    enough = largest * np.finfo(float).eps * len(M) ** 0.5
    if not failed:
        with np.errstate(under="ignore"):
            single = M.astype(np.float32)
        factor, failed = lapack.spotrf(single, lower=1, overwrite_a=1, clean=0)
    for _ in range(0 if failed else _REFINEMENTS):
        scales = np.abs(rest).max(axis=0)
        close = (scales <= enough * np.abs(found).max(axis=0)).all()
        scales[scales == 0] = 1.0  # of a column that is solved exactly
        found = found + scales * lapack.spotrs(factor, (rest / scales).astype(np.float32), lower=1)[0]
        if close:
            return np.ascontiguousarray(found)
        rest = right - blas.dsymm(1.0, M, found, lower=1)
    factor, failed = lapack.dpotrf(M, lower=1, overwrite_a=1, clean=0)
    if failed:
        raise ValueError(_TOO_SMALL)
    return np.ascontiguousarray(lapack.dpotrs(factor, right, lower=1)[0])


def _by_columns(M: Floats) -> Floats:
    """Return a symmetric matrix in the layout of LAPACK, without a copy."""
    return M if M.flags.f_contiguous else M.T


def _gram(X: npt.NDArray) -> Floats:
    """Return the cosines between all samples."""
    if X.dtype == np.uint8:
        return inner_products(X) / (8.0 * X.shape[1])
    X = small_rows_up(X)
    units = X / lengths(X)[:, None]
    return units @ units.T


class SignMatrix:
    """The signs S, +1 and -1, of packed bits, shape (n, d), with products by tables ("method of the four Russians").

    Eight signs times eight numbers have 256 possible sums. For each byte of a row, a table holds these sums, so a
    product with n rows of d signs takes n d / 8 look-ups and additions, in an order that no processor changes. The
    transposed product reads the transposed bits, which are made once.
    """

    def __init__(self, codes: npt.NDArray[np.uint8]) -> None:
        n, n_bytes = codes.shape
        self.shape = n, 8 * n_bytes
        self._workers = n_threads() if codes.size >= _WORTH_THREADS else 1  # asked once, as the answer takes 0.2 ms
        whole = np.pad(codes, ((0, 0), (0, -n_bytes % 8)))
        self._rows = np.ascontiguousarray(whole.view("<u8").T, np.uint64)
        self._columns = np.zeros((-(-n // 64), 8 * n_bytes), np.uint64)
        self._in_parts(lambda start, stop: _transpose(whole, start, stop, self._columns), n_bytes)

    def times(self, v: Floats) -> Floats:
        """Return S v, shape (n,)."""
        return self._product(self._rows, v)

    def transposed_times(self, u: Floats) -> Floats:
        """Return S^T u, shape (d,)."""
        return self._product(self._columns, u)

    def _product(self, words: npt.NDArray[np.uint64], values: Floats) -> Floats:
        padded, out = np.zeros(64 * len(words)), np.zeros(words.shape[1])
        padded[: len(values)] = values
        self._in_parts(lambda start, stop: _multiply(words, padded, start, stop, out), len(out))
        return out

    def _in_parts(self, work: Callable[[int, int], None], n: int) -> None:
        """Call ``work(start, stop)`` for two parts of ``range(n)`` in each thread, as each part makes all tables."""
        if self._workers == 1:
            work(0, n)
            return
        step = -(-n // (2 * self._workers))
        in_threads(lambda start: work(start, min(n, start + step)), range(0, n, step), self._workers)


@njit()
def _transpose(codes, start, stop, words):  # type: ignore[no-untyped-def]
    """Fill ``words[:, j]`` with bit j of all rows, the first eight in the lowest byte; j is in bytes ``start:stop``."""
    n = codes.shape[0]
    for b in range(start, stop):
        for c in range(words.shape[0]):
            found = words[c, 8 * b : 8 * b + 8]
            for g in range(8):
                x = np.uint64(0)
                for s in range(8):
                    i = 64 * c + 8 * g + s
                    x = x << np.uint64(8) | (np.uint64(codes[i, b]) if i < n else np.uint64(0))
                x = _transposed(x)
                for k in range(8):
                    found[k] |= (x >> np.uint64(56 - 8 * k) & np.uint64(255)) << np.uint64(8 * g)


@njit()
def _transposed(x):  # type: ignore[no-untyped-def]
    """Return an 8 x 8 matrix of bits, one row in each byte, transposed (Warren, "Hacker's Delight", Section 7-3)."""
    t = (x ^ (x >> np.uint64(7))) & np.uint64(0x00AA00AA00AA00AA)
    x = x ^ t ^ (t << np.uint64(7))
    t = (x ^ (x >> np.uint64(14))) & np.uint64(0x0000CCCC0000CCCC)
    x = x ^ t ^ (t << np.uint64(14))
    t = (x ^ (x >> np.uint64(28))) & np.uint64(0x00000000F0F0F0F0)
    return x ^ t ^ (t << np.uint64(28))


@njit()
def _multiply(words, values, start, stop, out):  # type: ignore[no-untyped-def]
    """Add the products of the signs in ``words[:, i]`` and `values` to ``out[i]``, for i in ``start:stop``."""
    sums, low = np.empty(8 * 256), np.uint64(255)
    for c in range(words.shape[0]):
        for k in range(8):
            table, v = sums[256 * k : 256 * k + 256], values[64 * c + 8 * k : 64 * c + 8 * k + 8]
            table[0] = -(((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7])))
            for bit in range(8):
                size, twice = 1 << bit, 2.0 * v[7 - bit]
                for j in range(size):
                    table[size + j] = table[j] + twice
        for i in range(start, stop):
            w = words[c, i]
            a = sums[w & low] + sums[np.uint64(256) + (w >> np.uint64(8) & low)]
            b = sums[np.uint64(512) + (w >> np.uint64(16) & low)] + sums[np.uint64(768) + (w >> np.uint64(24) & low)]
            d = sums[np.uint64(1024) + (w >> np.uint64(32) & low)] + sums[np.uint64(1280) + (w >> np.uint64(40) & low)]
            e = sums[np.uint64(1536) + (w >> np.uint64(48) & low)] + sums[np.uint64(1792) + (w >> np.uint64(56))]
            out[i] += (a + b) + (d + e)
