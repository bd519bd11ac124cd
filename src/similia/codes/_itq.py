"""The arithmetic of `itq`: passes over the rows of Z in small blocks, and the rotation that fits given signs.

One iteration needs Z (n x k) once. A block of 1024 rows is centred and scaled into float32, multiplied by Q,
turned into signs Y in place, and Y^T Z is added up, all while the block stays in cache: 4 n k^2 operations in two
sgemm of one thread each, and no array of n rows. Groups of blocks go to the threads; their float64 sums are added
in the order of the rows, so that Q has the same bits whatever the threads. A singular value decomposition of
Y^T Z (k x k) in float64 follows.

Centring and signs measured beside the two products at k = 64: numpy's subtract and copysign 45 % of their time, bits
as 0/1 and sums over positive bits 31 %, compiled loops (used here) 8 %; blocks of 256 to 2048 rows are alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.progress import track
from similia.core.threads import in_threads, one_blas_thread
from similia.objects.distributed import Distributed

_BLOCK_ROWS = 1024  # three float32 blocks of 64 columns are 768 KiB: the second-level cache of one core
_GROUP_ROWS = 4 * _BLOCK_ROWS  # rows of one task
_PART_ROWS = 16 * _GROUP_ROWS  # of a collection on other machines

Floats = npt.NDArray[np.float64]
Map = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


def learn_rotation(
    Z: Any, gaussian: Floats, mean: Floats, spread: float, max_iter: int, tol: float
) -> tuple[Floats, Floats]:
    """Alternate Y = sgn(Z Q) and Q = argmin ||Y - Z Q||_F; return the last Q and all losses.

    The first Q is ``random_rotation(gaussian)``. `spread` is the largest |Z - mean|; a power of two
    brings it near 1, which changes neither signs nor Q.
    """
    n, k = len(Z), len(gaussian)
    scale = float(np.ldexp(1.0, -int(np.clip(np.frexp(spread)[1], -1020, 1020))))
    losses: list[float] = []
    last = 0.0
    with one_blas_thread() as workers:
        of_groups = each_group(Z, partial(in_threads, workers=workers))
        norm = sum(of_groups(_squares, mean))
        rotation = random_rotation(gaussian)
        for _ in track(range(max_iter), "ITQ", total=max_iter):
            product = np.zeros((k, k))
            for part in of_groups(_sign_products, rotation.astype(np.float32), mean, scale):
                product += part
            rotation, agreement = nearest_rotation(product)
            losses.append(n * k + norm - 2 * agreement / scale)
            if agreement - last <= tol * agreement:
                break
            last = agreement
    return rotation, np.array(losses)


def random_rotation(gaussian: Floats) -> Floats:
    """Return Q of the QR decomposition with R_ii > 0: uniform among rotations and reflections."""
    q, r = np.linalg.qr(gaussian)
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def nearest_rotation(product: Floats) -> tuple[Floats, float]:
    """Return the orthogonal Q that minimises ||Y - Z Q||_F, from ``product = Y.T @ Z``, and tr(Q product).

    With the singular value decomposition Y^T Z = M Omega M~^T it is Q = M~ M^T, and the trace is that of Omega.
    """
    M, omega, M_tilde_T = np.linalg.svd(product)
    return M_tilde_T.T @ M.T, float(omega.sum())


def column_means(Z: Any) -> tuple[Floats, Floats, Floats]:
    """Return mean, minimum and maximum of each column, summed in the order of the rows; refuse what is not finite."""
    total, low, high = np.zeros(1), np.array([np.inf]), np.array([-np.inf])
    for sums, lowest, highest in each_group(Z)(_moments):
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + sums
    if not np.isfinite(total).all():
        raise ValueError(f"X holds numbers up to {max(-low.min(), high.max()):.3g}, too large to add; scale it down")
    return total / len(Z), low, high


def sign_codes(X: npt.NDArray, mean: Floats, rotation: Floats | None = None) -> npt.NDArray[np.uint8]:
    """Return the packed signs of ``(X - mean) @ rotation``; the bits of a row depend on that row alone."""
    codes = np.empty((len(X), X.shape[1] // 8), np.uint8)
    step = rows_per_block(32 * X.shape[1], at_most=2**14)
    for start in range(0, len(X), step):
        rows = _rows(X, start, start + step)
        _check_finite(rows, start)
        if rotation is None:
            positive = rows >= mean
        else:
            centred = np.empty(rows.shape)
            _centre(rows, mean, _DOWN, centred)
            if _reach(mean[None])[0] < _SMALL and (small := _reach(rows) < _SMALL).any():
                up = np.empty((int(small.sum()), rows.shape[1]))
                _centre(rows[small], mean, _UP, up)
                centred[small] = up
            positive = row_product(centred, rotation) >= 0
        codes[start : start + step] = np.packbits(positive, axis=1)
    return codes


# Powers of two change no sign: sums of the largest floats stay finite, and of the smallest ones keep their digits.
_DOWN, _UP, _SMALL = 2.0**-64, 2.0**200, 2.0**-800


def _reach(rows: npt.NDArray) -> Floats:
    """Return the largest magnitude of each row."""
    return np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)


def each_group(Z: Any, mapped: Map = map) -> Callable[..., Iterable[Any]]:
    """Return a function that gives ``f(rows, start, *args)`` of each group of rows, in their order.

    Groups are the same wherever the rows are, and so are sums of what is found of them.
    """
    if isinstance(Z, Distributed):
        parts = Z.blocks(_PART_ROWS).kept()
        return lambda f, *args: chain.from_iterable(parts.map(_groups_of_part, f, args))
    starts = range(0, len(Z), _GROUP_ROWS)
    return lambda f, *args: mapped(lambda start: f(_rows(Z, start, start + _GROUP_ROWS), start, *args), starts)


def _groups_of_part(part: npt.NDArray, start: int, f: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    part = np.asarray(part)
    return [f(_rows(part, i, i + _GROUP_ROWS), i, *args) for i in range(0, len(part), _GROUP_ROWS)]


def _moments(rows: npt.NDArray, start: int) -> tuple[Floats, Floats, Floats]:
    """Return sum, minimum and maximum of each column of a group."""
    _check_finite(rows, start)
    with np.errstate(over="ignore", invalid="ignore"):
        return rows.sum(axis=0, dtype=np.float64), rows.min(axis=0), rows.max(axis=0)


def _sign_products(group: npt.NDArray, start: int, Q: npt.NDArray[np.float32], mean: Floats, scale: float) -> Floats:
    """Return ``Y.T @ Z`` for the signs Y of ``Z @ Q``, Z the rows of a group, centred and scaled."""
    k = len(Q)
    blocks = np.empty((2, _BLOCK_ROWS, k), np.float32)
    part, total = np.empty((k, k), np.float32), np.zeros((k, k))
    for first in range(0, len(group), _BLOCK_ROWS):
        rows = group[first : first + _BLOCK_ROWS]
        centred, signs = blocks[:, : len(rows)]
        _centre(rows, mean, scale, centred)
        np.matmul(centred, Q, out=signs)
        _to_signs(signs)
        total += np.matmul(signs.T, centred, out=part)
    return total


def _squares(group: npt.NDArray, start: int, mean: Floats) -> float:
    """Return the sum of squares of a group of centred rows."""
    with np.errstate(over="ignore"):
        centred = group - mean
        return float(np.square(centred, out=centred).sum())


def _rows(Z: npt.NDArray, start: int, stop: int) -> npt.NDArray:
    """Return rows of Z in C order, float64 if they are neither float32 nor float64."""
    rows = Z[start:stop]
    keep = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
    return np.ascontiguousarray(rows, dtype=rows.dtype if keep else np.float64)


def _check_finite(rows: npt.NDArray, start: int) -> None:
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        row = start + int(np.argmin(finite))
        raise ValueError(f"X[{row}] holds NaN or infinity, expected finite numbers; drop or impute that row")


@njit()
def _centre(Z, mean, scale, out):  # type: ignore[no-untyped-def]
    """Write (Z - mean) scale, computed in float64, so that float32 and float64 rows give the same numbers."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[i, j] = Z[i, j] * scale - mean[j] * scale


@njit()
def _to_signs(values):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = np.float32(1) if values[i, j] >= 0 else np.float32(-1)
