"""Exponential, logarithm, cosine and sine, with equal bits on every processor and for any array layout.

Results of numpy and of the C library differ between processors, and numpy's also between the middle and the ends of an
array. So these functions are built only from sums, products and quotients. The polynomials of log, cosine and sine are
fdlibm's, and that of exp is its Taylor series. The functions of one float64 (`exp_of`, `log_of`, `cos_sin`, `fma`) are
for compiled loops; the others take arrays.

The errors, in units of the last place, are 1 for exp and log, and 2 for the cosine and sine of angles in quarter turns.
float32 is computed in float64 and rounded once. Cost: 2 ns per number; numpy takes 0.5 to 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from similia.core.config import run_in_ranges
from similia.core.jit import njit

Floats = npt.NDArray[Any]

_GRAIN = 2**16
_LOG2_E = 1.4426950408889634
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 20 zeros at its end
_ROUND = 1.5 * 2.0**52  # adding and subtracting it rounds to the nearest integer, halves to even
_HALF_PI = 1.5707963267948966
_SQRT_2 = 1.4142135623730951


def exp(values: Floats, out: Floats | None = None) -> Floats:
    """Return e^x of float32 or float64 numbers; `out`, which may be `values`, must be C-contiguous."""
    return _each(write_exp, values, out)


def log(values: Floats, out: Floats | None = None) -> Floats:
    """Return the natural logarithms of float32 or float64 numbers: -inf for 0, NaN for negative numbers."""
    return _each(write_log, values, out)


def cos(angles: Floats, out: Floats | None = None) -> Floats:
    """Return the cosines of angles in radians; one float64 product first converts the angles to quarter turns."""
    none = np.empty(0, angles.dtype)
    return _each(lambda x, y: write_waves(x, 2 / np.pi, y, none), angles, out)


def cos_sin_of_quarters(turns: Floats, dtype: npt.DTypeLike = np.float64) -> tuple[Floats, Floats]:
    """Return the cosines and the sines of angles in quarter turns; at whole quarter turns, the results are exact."""
    flat = np.ascontiguousarray(turns).reshape(-1)
    cosines, sines = np.empty(flat.shape, dtype), np.empty(flat.shape, dtype)

    def work(start: int, stop: int) -> None:
        write_waves(flat[start:stop], 1.0, cosines[start:stop], sines[start:stop])

    run_in_ranges(work, len(flat), _GRAIN)
    return cosines.reshape(turns.shape), sines.reshape(turns.shape)


def _each(write: Callable[[Floats, Floats], None], values: Floats, out: Floats | None) -> Floats:
    flat = np.ascontiguousarray(values).reshape(-1)
    if out is None:
        out = np.empty(values.shape, values.dtype)
    elif not out.flags.c_contiguous:
        raise ValueError("out must be C-contiguous")
    found = out.reshape(-1)
    run_in_ranges(lambda start, stop: write(flat[start:stop], found[start:stop]), len(flat), _GRAIN)
    return out


@intrinsic
def _bits_of(_typing, number):  # type: ignore[no-untyped-def]
    """Return the bits of a float64 as int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


@intrinsic
def _float_of(_typing, bits):  # type: ignore[no-untyped-def]
    """Return the float64 that has the bits of an int64."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


@intrinsic
def fma(_typing, a, b, c):  # type: ignore[no-untyped-def]
    """Return a * b + c for numbers of one type, rounded once; processors without this instruction use the C library."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), generate


@njit()
def exp_of(x):  # type: ignore[no-untyped-def]
    """Return e^x, computed as 2^k e^r, where x = k ln 2 + r and |r| <= ln(2) / 2."""
    x = np.float64(x)
    x = -750.0 if x < -750.0 else x
    x = 720.0 if x > 720.0 else x
    shifted = x * _LOG2_E + _ROUND
    k = shifted - _ROUND
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    q = 1 / 6227020800.0
    q = q * r + 1 / 479001600.0
    q = q * r + 1 / 39916800.0
    q = q * r + 1 / 3628800.0
    q = q * r + 1 / 362880.0
    q = q * r + 1 / 40320.0
    q = q * r + 1 / 5040.0
    q = q * r + 1 / 720.0
    q = q * r + 1 / 120.0
    q = q * r + 1 / 24.0
    q = q * r + 1 / 6.0
    q = q * r + 0.5
    value = 1.0 + (r + (r * r) * q)
    # Split 2^k into two factors, as k may exceed the exponents of normal numbers.
    whole = _bits_of(shifted) - _bits_of(_ROUND)
    half = whole >> 1
    return (value * _float_of((half + 1023) << 52)) * _float_of((whole - half + 1023) << 52)


@njit()
def log_of(x):  # type: ignore[no-untyped-def]
    """Return the natural logarithm of x = 2^k (1 + f), computed as k ln 2 + log(1 + f) with 1 + f near 1."""
    x = np.float64(x)
    shift = 0.0
    if x < 2.2250738585072014e-308:  # subnormal
        x, shift = x * 2.0**54, 54.0
    bits = _bits_of(x)
    mantissa = _float_of((bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000)
    k = np.float64((bits >> 52) - 1023) - shift
    if mantissa > _SQRT_2:
        mantissa, k = 0.5 * mantissa, k + 1.0
    f = mantissa - 1.0
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    even = z * (
        6.666666666666735130e-01
        + w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01))
    )
    half = 0.5 * f * f
    value = k * _LN2_HIGH - ((half - (s * (half + (odd + even)) + k * _LN2_LOW)) - f)
    if x > 1.7976931348623157e308:
        return np.inf
    return value if x > 0.0 else (-np.inf if x == 0.0 else np.nan)


@njit()
def cos_sin(turns):  # type: ignore[no-untyped-def]
    """Return the cosine and the sine of an angle in quarter turns; whole quarters are subtracted without rounding."""
    nearest = (turns + _ROUND) - _ROUND  # exact below 2^51; larger numbers are whole
    nearest = turns if abs(turns) >= 2.0**51 else nearest
    x = (turns - nearest) * _HALF_PI
    quarter = np.int64(nearest - 4.0 * np.floor(0.25 * nearest))
    z = x * x
    q = 1.58969099521155010221e-10
    q = q * z - 2.50507602534068634195e-08
    q = q * z + 2.75573137070700676789e-06
    q = q * z - 1.98412698298579493134e-04
    q = q * z + 8.33333333332248946124e-03
    q = q * z - 1.66666666666666324348e-01
    sine = x + x * (z * q)
    q = -1.13596475577881948265e-11
    q = q * z + 2.08757232129817482790e-09
    q = q * z - 2.75573143513906633035e-07
    q = q * z + 2.48015872894767294178e-05
    q = q * z - 1.38888888888741095749e-03
    q = q * z + 4.16666666666666019037e-02
    half = 0.5 * z
    w = 1.0 - half
    cosine = w + (((1.0 - w) - half) + (z * z) * q)
    swapped = (quarter & 1) != 0
    c, s = (sine if swapped else cosine), (cosine if swapped else sine)
    return (-c if ((quarter + 1) & 2) != 0 else c), (-s if (quarter & 2) != 0 else s)


@njit()
def write_exp(x, out):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        out[i] = exp_of(x[i])


@njit()
def write_log(x, out):  # type: ignore[no-untyped-def]
    for i in range(len(x)):
        out[i] = log_of(x[i])


@njit()
def write_waves(x, factor, cosines, sines):  # type: ignore[no-untyped-def]
    """Fill `cosines` and `sines` for angles of ``factor * x`` quarter turns; if `sines` is empty, only `cosines`."""
    if len(sines):
        for i in range(len(x)):
            cosines[i], sines[i] = cos_sin(np.float64(x[i]) * factor)
    else:
        for i in range(len(x)):
            cosines[i], _ = cos_sin(np.float64(x[i]) * factor)
