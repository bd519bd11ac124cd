"""Distances of series or point sets that hold very large or very small numbers.

If the largest number of a pair is out of range, both objects are divided by a power of two, which is exact, and their
distance is multiplied back. The power depends only on the two objects, so a distance does not depend on other objects
in the call. float32 objects outside the smaller range of float32 are compared in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from similia.core.config import run_in_ranges
from similia.core.validation import BadPairValue, as_second
from similia.objects import SeriesBatch, SetBatch
from similia.objects.sequences import named, named_pairs
from similia.similarity import Distance

Array = npt.NDArray[Any]
Batch = TypeVar("Batch", SeriesBatch, SetBatch)
Pairs = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
# find(A, B, pairs, shift) returns the distances of objects divided by 2**shift, for all pairs or for index pairs.
Find = Callable[[Any, Any, Pairs | None, int], Array]

# A pair is not scaled if its largest number has an exponent in this range; otherwise it is shifted, in float64.
_RANGES = {np.dtype(np.float32): (-20, 50), np.dtype(np.float64): (-400, 400)}
_SHIFT, _SMALL_SHIFT = 600, 64
_WORTH_A_RANGE = 2**17  # minimum numbers per thread
_NONE = -(2**14)  # stands for the exponent of an object whose numbers are all 0


class ScaledDistance(Distance):
    """Base class of distances of series or point sets; scales a pair that holds very large or very small numbers."""

    _noun: ClassVar[str] = "series"

    def _read(self, X: Any, Y: Any) -> tuple[Any, Any]:
        """Return X and Y (X again if Y is None) as comparable batches."""
        raise NotImplementedError

    def _find(self, A: Any, B: Any, pairs: Pairs | None, shift: int) -> Array:
        """Return distances of objects already divided by 2**shift: of the index pairs `pairs`, or of all pairs."""
        raise NotImplementedError

    def _degree(self) -> int:
        """Return d: multiplying all numbers by s, and parameters accordingly, multiplies the distances by s**d."""
        return 1

    def _unit(self) -> float:
        """Return the parameter of the distance that is a number on the scale of the objects, such as a gap, or 0."""
        return 0.0

    def __call__(self, X: Any, Y: Any = None) -> Array:
        return self._distances(*self._read(X, Y))

    def paired(self, X: Any, Y: Any, rows: npt.ArrayLike, columns: npt.ArrayLike) -> Array:
        """Return the distances of the pairs (X[rows[k]], Y[columns[k]]) only, shape (n_pairs,)."""
        A, B, *pairs = named_pairs(self.as_objects(X), as_second(self.as_objects, Y), rows, columns)
        A, B = self._read(A, B)
        if not len(pairs[0]):  # one object of each is enough to check the parameters
            A, B = A[:1], B[:1]
        return self._distances(A, B, (pairs[0], pairs[1]))

    def _distances(self, A: Any, B: Any, pairs: Pairs | None = None) -> Array:
        """Return the distances of `A` to `B` (which may be `A`): of the index pairs `pairs`, or of all if None."""
        return distances_of(A, B, self._find, self._degree(), pairs=pairs, unit=self._unit(), noun=self._noun)


def distances_of(
    A: Batch, B: Batch, find: Find, degree: int, *, pairs: Pairs | None = None, unit: float = 0.0, noun: str = "series"
) -> Array:
    """Return the distances of `A` to `B` in the dtype of `B`; raise if a distance is outside the range of that dtype.

    `find` gets objects that are already divided by a power of two; its results are multiplied back. `degree`, `unit`
    and `noun` are `_degree`, `_unit` and `_noun` of `ScaledDistance`; `pairs` are index pairs, None for all pairs.
    """
    dtype, shifts = B.values.dtype, _shifts(A, B, pairs, unit)

    def found(A: Batch, B: Batch, pairs: Pairs | None, shift: int) -> Array:
        left = _divided(A, shift, dtype)
        values = find(left, left if A is B else _divided(B, shift, dtype), pairs, shift)
        return _multiplied(values, degree * shift, dtype)

    different = np.unique(shifts).tolist() or [0]  # without pairs, `find` still checks the parameters
    if len(different) == 1:
        out = found(A, B, pairs, different[0])
        _check(out, pairs, noun)
        return out
    out = np.empty(shifts.shape, dtype)
    for shift in different:
        chosen = shifts == shift
        if pairs is None:
            rows, columns = np.flatnonzero(chosen.any(axis=1)), np.flatnonzero(chosen.any(axis=0))
            left = A[rows]
            right = left if A is B and np.array_equal(rows, columns) else B[columns]
            out[chosen] = found(left, right, None, shift)[chosen[np.ix_(rows, columns)]]
        else:
            (left, i), (right, j) = named(A, pairs[0][chosen]), named(B, pairs[1][chosen])
            out[chosen] = found(left, right, (i, j), shift)
    _check(out, pairs, noun)
    return out


def _shifts(A: Any, B: Any, pairs: Pairs | None, unit: float) -> Array:
    """Return for each pair the e of its divisor 2**e, shape (n, m) or (n_pairs,), or [0] if no pair needs scaling."""
    least, most = _RANGES[B.values.dtype]
    a, b = _both_exponents(A, B, unit)
    if not _any_scaled(a, b, B.values.dtype):
        return np.zeros(1, np.int16)
    largest = np.maximum.outer(a, b) if pairs is None else np.maximum(a[pairs[0]], b[pairs[1]])
    large, small = largest > most, (largest < least) & (largest > _NONE)
    far = np.abs(largest) > _RANGES[np.dtype(np.float64)][1]
    return np.where(far, _SHIFT, _SMALL_SHIFT).astype(np.int16) * (large.astype(np.int16) - small)


def needs_scaling(A: Any, B: Any, unit: float = 0.0) -> bool:
    """Return whether a pair of an object of `A` and one of `B` is scaled before it is compared in the dtype of `B`.

    `unit` is as in `distances_of`.
    """
    return _any_scaled(*_both_exponents(A, B, unit), B.values.dtype)


def _both_exponents(A: Any, B: Any, unit: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the exponents of the objects of `A` and of `B`, or that of `unit` where it is larger."""
    own = np.frexp(abs(unit))[1] if unit else _NONE
    a = np.maximum(_exponents(A), own)
    return a, a if A is B else np.maximum(_exponents(B), own)


def _any_scaled(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64], dtype: np.dtype) -> bool:
    """Return whether a pair needs scaling; `a` and `b` are exponents of objects. Two objects that are 0 do not."""
    least, most = _RANGES[dtype]
    small = np.concatenate([a[a < least], b[b < least]])
    return bool(max(a.max(), b.max()) > most or (max(a.min(), b.min()) < least and small.max() > _NONE))


def _exponents(batch: Any) -> npt.NDArray[np.int64]:
    """Return the binary exponent of the largest absolute number in each object, shape (n,); no object is empty."""
    flat, places = batch.values.reshape(-1), batch.offsets * batch.values.shape[1]
    most = np.empty(len(batch), flat.dtype)

    def find(first: int, last: int) -> None:
        part, starts = flat[places[first] : places[last]], places[first:last] - places[first]
        most[first:last] = np.maximum(np.maximum.reduceat(part, starts), -np.minimum.reduceat(part, starts))

    run_in_ranges(find, len(most), grain=max(1, _WORTH_A_RANGE * len(most) // max(1, len(flat))))
    return np.where(most > 0, np.frexp(most)[1], _NONE).astype(np.int64)


def _divided(batch: Any, shift: int, dtype: npt.DTypeLike) -> Any:
    if shift == 0:
        return batch.astype(dtype)
    return type(batch)(np.ldexp(batch.values.astype(np.float64), -shift), batch.offsets)


def scaled_back(values: Array, exponent: int, dtype: npt.DTypeLike, pairs: Pairs | None) -> Array:
    """Return values times 2**exponent in `dtype`; raise if a value is out of range, and name the first such pair."""
    out = _multiplied(values, exponent, dtype)
    _check(out, pairs, "series")
    return out


def _multiplied(values: Array, exponent: int, dtype: npt.DTypeLike) -> Array:
    """Return values times 2**exponent in `dtype`; infinity marks an overflow, NaN an underflow."""
    if exponent == 0 and values.dtype == dtype:
        return values
    with np.errstate(over="ignore", under="ignore"):
        out: Array = np.ldexp(values, exponent).astype(dtype)
    out[(out == 0) & (values != 0)] = np.nan
    return out


def _check(out: Array, pairs: Pairs | None, noun: str) -> None:
    """Raise if a distance is infinite (an overflow) or NaN (which marks an underflow); name the first such pair."""
    if np.isfinite(out).all():
        return
    where = tuple(np.argwhere(~np.isfinite(out))[0].tolist())
    size = "exceeds the largest" if np.isinf(out[where]) else "is below the smallest"
    remedy = f"scale the {noun}{' or give them as float64' if out.dtype == np.float32 else ''}"
    if pairs is not None:
        raise ValueError(f"the distance of pair {where[0]} {size} {out.dtype}; {remedy}")
    raise BadPairValue("the distance of", where, f" {size} {out.dtype}; {remedy}", "X[{}] and Y[{}]")
