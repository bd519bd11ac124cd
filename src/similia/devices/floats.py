"""The stages of a quantised model in float32, with the operations in a fixed order.

Each operation rounds to float32. So the C of ``templates/model.c.jinja`` and the classes here give the same bits on
every processor with IEEE 754, unless a compiler joins a product and a sum (FMA). Similarities that are counts, and
prototypes of 8, 4 or 1 bits, stay whole numbers. Sums run over ascending indices:

    t = gamma * q,  k = exp(-t)            `Decay` of a squared or edit distance q
    z_i = (((A_i1 k_1) + A_i2 k_2) + ...) + c_i        `FloatLinear`
    b = [P z >= 0]                         `FloatSigns`, or `FloatHadamard` with steps 1, 2, ..., p / 2
    score_j = ((x_1 R_j1) + x_2 R_j2 + ...) + c_j      `FloatPrototypes`: x is the code as +-1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.errors import BadValue
from similia.core.validation import check_vectors
from similia.devices.stages import check_factors, hadamard

Floats = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]
LARGEST = np.float32(86)  # for larger t, exp(-t) counts as 0, before it is so small that some devices take it for 0
LOG2_E = np.float32(1.44269504)
LN2, LN2_REST = np.float32(0.693359375), np.float32(-2.12194440e-4)  # sum: ln 2; n LN2 is exact for n < 2^15
SERIES = tuple(np.float32(1 / n) for n in (720, 120, 24, 6, 2, 1, 1))  # coefficients of exp, highest power first


def exp_minus(t: Floats) -> Floats:
    """Return exp(-t) for t >= 0: 2^-n times a polynomial of r = n ln 2 - t, where n is t / ln 2 rounded."""
    near = np.where(t < LARGEST, t, np.float32(0))
    n = (near * LOG2_E + np.float32(0.5)).astype(np.int32)
    whole = n.astype(np.float32)
    r = (whole * LN2 - near) + whole * LN2_REST
    total = np.full_like(r, SERIES[0])
    for coefficient in SERIES[1:]:
        total = total * r + coefficient
    return np.where(t < LARGEST, np.ldexp(total, -n), np.float32(0))


@dataclass(frozen=True)
class Decay:
    """The function exp(-gamma q) of a distance d, where q is d or, if `square`, d^2."""

    limit: ClassVar[int] = 1
    gamma: float
    square: bool = False

    def __call__(self, d: npt.NDArray) -> Floats:
        """Return the function in float32, with gamma rounded to float32."""
        with np.errstate(over="ignore"):
            return exp_minus(np.float32(self.gamma) * (d * d if self.square else d).astype(np.float32))

    def exact(self, d: npt.NDArray) -> npt.NDArray[np.float64]:
        """Return the function in float64."""
        return np.exp(-self.gamma * (d * d if self.square else d))


@dataclass(frozen=True)
class FloatVectors:
    """The input that passes on the numbers of a vector unchanged, as float32."""

    kind: ClassVar[str] = "vector"
    n_features: int

    @property
    def width(self) -> int:
        return self.n_features

    def read(self, X: Any) -> Floats:
        """Return vectors as float32, shape (n, n_features); raise if a number is too large for it."""
        X = check_vectors(X, n_features=self.n_features)
        with np.errstate(over="ignore"):
            found = X.astype(np.float32)
        if not np.isfinite(found).all():
            i, j = np.argwhere(~np.isfinite(found))[0]
            raise BadValue(i, f"holds {X[i, j]:g} in column {j}", "numbers of float32", "scale the column down")
        return found

    def numbers(self, objects: Floats) -> Floats:
        return objects

    def arguments(self, objects: Floats) -> list[Floats]:
        """Return the arguments of the C function for each object."""
        return list(objects)


@dataclass(frozen=True)
class FloatGaussian(FloatVectors):
    """Values of a Gaussian kernel with landmarks, from vectors of float32."""

    kind: ClassVar[str] = "gaussian"
    landmarks: Floats
    curve: Decay

    limit: ClassVar[int] = 1

    @property
    def width(self) -> int:
        return len(self.landmarks)

    def numbers(self, objects: Floats) -> Floats:
        total = np.zeros((len(objects), len(self.landmarks)), np.float32)
        with np.errstate(over="ignore"):
            for x, landmark in zip(objects.T, self.landmarks.T, strict=True):
                difference = x[:, None] - landmark
                total += difference * difference
        return self.curve(total)


@dataclass(frozen=True)
class FloatLinear:
    """Coordinates z = A k + c; `A` has the shape (r, m), or (r,) if z_i depends on k_i only."""

    A: Floats
    c: Floats

    @classmethod
    def of(cls, A: npt.NDArray, c: npt.NDArray) -> FloatLinear:
        """Scale by a power of two that brings the largest factor near 1, then round `A` and `c` to float32."""
        check_factors(A, c)
        scale = -int(np.ceil(np.log2(np.abs(A).max())))
        return cls(np.ldexp(A, scale).astype(np.float32), np.ldexp(c, scale).astype(np.float32))

    def __call__(self, k: npt.NDArray) -> Floats:
        k = k.astype(np.float32)
        return (k * self.A if self.A.ndim == 1 else _products(k, self.A)) + self.c


@dataclass(frozen=True)
class FloatSigns:
    """Signs of the products with the rows of P, float32 (n_bits, r)."""

    P: Floats

    @property
    def n_bits(self) -> int:
        return len(self.P)

    def __call__(self, z: Floats) -> Codes:
        return np.packbits(_products(z, self.P) >= 0, axis=1)


@dataclass(frozen=True)
class FloatHadamard:
    """The same as `similia.devices.stages.HadamardSigns`, but without shifts; `flips` is bool (n_blocks, 3, p)."""

    flips: npt.NDArray[np.bool_]
    n_bits: int

    def __call__(self, z: Floats) -> Codes:
        n_blocks, _, p = self.flips.shape
        bits = np.empty((len(z), n_blocks * p), bool)
        for block in range(n_blocks):
            work = np.zeros((len(z), p), np.float32)
            work[:, : z.shape[1]] = z
            for flip in self.flips[block]:
                work = hadamard(np.where(flip, -work, work))
            bits[:, block * p : (block + 1) * p] = work >= 0  # also for -0
        return np.packbits(bits[:, : self.n_bits], axis=1)


@dataclass(frozen=True)
class FloatPrototypes:
    """Scores R_j x + c_j of the classes for a code x of +-1; `R` has the shape (n_classes, n_bits)."""

    R: Floats
    c: Floats
    bits: ClassVar[int] = 32

    def __call__(self, codes: Codes) -> Floats:
        scores = np.empty((len(codes), len(self.R)), np.float32)
        for start in range(0, len(codes), step := rows_per_block(8 * self.R.shape[1])):
            x = np.float32(2) * np.unpackbits(codes[start : start + step], axis=1) - np.float32(1)
            scores[start : start + step] = _products(x, self.R) + self.c
        return scores


def _products(x: Floats, rows: Floats) -> Floats:
    """Return the products of the rows of x (n, m) with `rows` (r, m), added over ascending columns."""
    total = np.zeros((len(x), len(rows)), np.float32)
    columns = np.ascontiguousarray(rows.T)
    for numbers, factors in zip(x.T, columns, strict=True):
        total += numbers[:, None] * factors
    return total
