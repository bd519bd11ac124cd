"""Loops of `HDClassifier`: one perceptron epoch, sums of classes, products with prototypes.

Samples are rows of floats, or packed bits (uint8). Packed bits are expanded one row at a time, to int8 signs; 10,000
signs stay in the first-level cache. Slower alternatives: expanding to floats (longer rows), expanding all samples at
once (eight times the memory traffic), and looking bits up inside the sum (no vector instructions). The signs of a row
are ordered by bit (first bit 0 of every byte, then bit 1, ...), because this takes only a few vector instructions.
Prototypes for packed bits have their dimensions in the same order; see `by_bit` and `by_byte`.

For each sample, an epoch first computes in float32 how much closer the sample is to its own class than to the others.
If rounding could hide a mistake, it computes the cosines in float64, so no result depends on float32.

The mean of the prototypes after each of T steps is H - U / T, where H holds the prototypes after the last step, and
each correction c, made after t steps, was added to U as t c. So a step without a correction costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import overload

from similia.core import lanes as lane
from similia.core.jit import njit

Array = npt.NDArray[Any]

TIE = 1e-12
"""Cosines that differ by less than this count as equal: rounding errors are 1e-15 and depend on the processor."""

_SAFE_NORMS = (1e-15, 1e15)  # norms of samples that float32 can hold
_SAFE_SQUARES = (1e-290, 1e290)  # products of squared norms that float64 holds with all digits


def by_bit(prototypes: Array) -> Array:
    """Return a copy with the columns reordered: those of the first bit of all bytes, then of the second, and so on."""
    return prototypes.reshape(len(prototypes), -1, 8).transpose(0, 2, 1).copy().reshape(prototypes.shape)


def by_byte(prototypes: Array) -> Array:
    """Undo `by_bit`: return a copy with the columns ordered by byte, then by bit."""
    return prototypes.reshape(len(prototypes), 8, -1).transpose(0, 2, 1).copy().reshape(prototypes.shape)


def _row(X: Array, i: int, scratch: Array) -> Array:
    """Return row `i` of `X`; packed bits are returned as signs, written to `scratch` in the order of `by_bit`."""
    raise NotImplementedError("compiled code only")


@overload(_row)
def _row_of_type(X: Any, i: Any, scratch: Any) -> Callable[..., Any]:
    def packed(X: Any, i: Any, scratch: Any) -> Array:
        n_bytes = X.shape[1]
        for k in range(8):
            signs = scratch[k * n_bytes : (k + 1) * n_bytes]
            mask = np.uint8(128 >> k)
            for b in range(n_bytes):
                signs[b] = np.int8(1) if X[i, b] & mask else np.int8(-1)
        return scratch

    def dense(X: Any, i: Any, scratch: Any) -> Array:
        return X[i]

    return packed if X.dtype == types.uint8 else dense


@njit(reassociate=True)
def _dot(row: Array, h: Array) -> Any:
    """Return the inner product of `row` and `h`, computed in the dtype of `h`."""
    number = h.dtype.type
    total = number(0.0)
    for k in range(h.shape[0]):
        total += number(row[k]) * h[k]
    return total


@njit()
def _add(a: float, row: Array, h: Array) -> None:
    """Add a * row to h in place."""
    for k in range(h.shape[0]):
        h[k] += a * row[k]


@njit()
def _squared_norm(h):  # type: ignore[no-untyped-def]
    """Return the sum of squares, in one fixed order: it is the same whether a sequence of samples is cut or not."""
    whole = h.shape[0] // lane.LANES * lane.LANES
    squares = lane.splat(0.0)
    for k in range(0, whole, lane.LANES):
        row = lane.load(h, k)
        squares = lane.multiply_add(row, row, squares)
    sums = np.empty(lane.LANES)
    lane.store(sums, 0, squares)
    total = 0.0
    for j in range(lane.LANES):
        total += sums[j]
    for k in range(whole, h.shape[0]):
        total += h[k] * h[k]
    return total


@njit()
def _set_apart(prototypes: Array, squared_norms: Array, j: int, apart: Array) -> None:
    """Set apart[j] to the unit vector of prototype j minus the unit vector of prototype 0."""
    h, h0 = prototypes[j], prototypes[0]
    scale = 1.0 / np.sqrt(squared_norms[j]) if squared_norms[j] > 0.0 else 0.0
    scale0 = 1.0 / np.sqrt(squared_norms[0]) if squared_norms[0] > 0.0 else 0.0
    for k in range(h.shape[0]):
        apart[j, k] = h[k] * scale - h0[k] * scale0


@njit()
def _cosines(row: Array, squared_norm: float, prototypes: Array, squared_norms: Array, out: Array) -> None:
    for j in range(out.shape[0]):
        squared = squared_norm * squared_norms[j]
        scale = np.sqrt(squared)
        if not _SAFE_SQUARES[0] < squared < _SAFE_SQUARES[1]:
            scale = np.sqrt(squared_norm) * np.sqrt(squared_norms[j])
        out[j] = _dot(row, prototypes[j]) / scale if scale > 0.0 else 0.0


@njit()
def _first_best(cosines: Array) -> int:
    enough = cosines.max() - TIE
    j = 0
    while cosines[j] < enough:
        j += 1
    return j


@njit()
def _surely_right(row: Array, norm: float, right: int, margin: float, apart: Array) -> bool:
    """Return whether float32 products with `apart` (see `_set_apart`) prove that `right` leads by over `margin`."""
    if not _SAFE_NORMS[0] < norm < _SAFE_NORMS[1]:
        return False
    # a float32 sum of d products, in any order, is off by less than d 2^-23 times both norms: here norm and 2
    slack = (2.0**-21 * (row.shape[0] + 8) + 10 * TIE + margin) * norm
    mine = _dot(row, apart[right]) if right > 0 else np.float32(0.0)
    certain = True
    for j in range(apart.shape[0]):
        if j != right:
            other = _dot(row, apart[j]) if j > 0 else np.float32(0.0)
            certain = certain and mine - other > slack
    return certain


@njit()
def _rival(cosines: Array, right: int, margin: float) -> int:
    """Return the class whose prototype is to be corrected with that of `right`; -1 if `right` leads by `margin`."""
    predicted = _first_best(cosines)
    if predicted != right or margin == 0.0:
        return predicted if predicted != right else -1
    best = -1
    for j in range(cosines.shape[0]):
        if j != right and (best < 0 or cosines[j] > cosines[best] + TIE):
            best = j
    return best if cosines[right] - cosines[best] < margin - TIE else -1


@njit()
def epoch(
    X: Array, squared_norms_of_X: Array, y: Array, weights: Array, order: Array, rate: float, margin: float,
    prototypes: Array, later: Array, n_steps: int,
) -> int:  # fmt: skip
    """Visit the samples in `order`, correct the prototypes in place, and return the number of corrected samples.

    If `later` is as large as the prototypes, each correction is also added to it, times the number of steps before it:
    `n_steps` and the samples visited here.
    """
    scratch = np.empty(prototypes.shape[1], np.int8)
    n_classes = prototypes.shape[0]
    q = np.empty(n_classes)
    squared_norms = np.array([_squared_norm(h) for h in prototypes])
    apart = np.empty(prototypes.shape, np.float32)
    for j in range(1, n_classes):
        _set_apart(prototypes, squared_norms, j, apart)
    mistakes = 0
    for step in range(order.shape[0]):
        i = order[step]
        row = _row(X, i, scratch)
        right = y[i]
        if _surely_right(row, np.sqrt(squared_norms_of_X[i]), right, margin, apart):
            continue
        _cosines(row, squared_norms_of_X[i], prototypes, squared_norms, q)
        rival = _rival(q, right, margin)
        if rival < 0:
            continue
        mistakes += 1
        for j in (right, rival):
            a = rate * weights[i] * (1.0 - q[j]) * (1.0 if j == right else -1.0)
            _add(a, row, prototypes[j])
            squared_norms[j] = _squared_norm(prototypes[j])
            if later.shape[0] > 0:
                _add(a * (n_steps + step), row, later[j])
        for j in range(1, n_classes):
            if j in (right, rival) or 0 in (right, rival):
                _set_apart(prototypes, squared_norms, j, apart)
    return mistakes


@njit()
def bundle(X: Array, y: Array, weights: Array, prototypes: Array) -> None:
    """Add each sample, times its weight, to the prototype of its class, in place."""
    scratch = np.empty(prototypes.shape[1], np.int8)
    for i in range(X.shape[0]):
        _add(weights[i], _row(X, i, scratch), prototypes[y[i]])


@njit()
def combine(X: Array, coefficients: Array, sums: Array) -> None:
    """Add each sample, times its coefficients (n_samples, k), to the k rows of `sums`, in place."""
    scratch = np.empty(sums.shape[1], np.int8)
    for i in range(X.shape[0]):
        row = _row(X, i, scratch)
        for j in range(sums.shape[0]):
            _add(coefficients[i, j], row, sums[j])


@njit()
def products(X: Array, squared_norms_of_X: Array, directions: Array, out: Array) -> None:
    """Fill `out` (n_samples, n_classes) with products of samples, scaled to unit length, and directions."""
    scratch = np.empty(directions.shape[1], np.int8)
    for i in range(X.shape[0]):
        row = _row(X, i, scratch)
        scale = 1.0 / np.sqrt(squared_norms_of_X[i]) if squared_norms_of_X[i] > 0.0 else 0.0
        for j in range(out.shape[1]):
            out[i, j] = _dot(row, directions[j]) * scale
