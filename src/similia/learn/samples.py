"""Samples of `HDClassifier`: their checks, lengths, sums and products, training on them, and calibrated scores.

Samples of dtype uint8 are packed bits, 8 dimensions of +1 or -1 in each byte; others hold one number per dimension.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import softmax

from similia.core.errors import BadValue
from similia.core.validation import check_codes, check_vectors, unmasked, wrong_width

Floats = npt.NDArray[np.float64]

_SMALL = 2.0**-150  # samples whose numbers are all smaller are scaled up, so that products of squares do not underflow
_SMALLEST_SQUARED_NORM = 1e-200
_LARGEST_SQUARED_NORM = 1e150  # leaves room for sums of such vectors times the largest learning rate
_LOG_SHARPNESS = (-3.0, 14.0)  # range of the logarithm of `HDClassifier.sharpness_`


def as_hypervectors(X: Any) -> npt.NDArray:
    """Return packed bits (uint8) unchanged, other integers and floats as a float array; raise for anything else."""
    if hasattr(X, "toarray"):
        raise BadValue(None, f"is a sparse {type(X).__name__}", "dense hypervectors", "give X.toarray()")
    X = np.asarray(unmasked(X))
    if X.dtype == object and not any(isinstance(value, Integral | str | bytes) for value in X.ravel()):
        X = X.astype(np.float64)  # floats cannot be packed bits
    if X.dtype.kind not in "iufc":
        remedy = "numpy.packbits makes packed bits"
        raise BadValue(None, f"has dtype {X.dtype}", "packed bits (uint8), integers or floats", remedy)
    if X.dtype == np.uint8 and X.ndim == 2 and X.size > 0:
        return check_codes(X, "X")
    return check_vectors(X.astype(np.float32) if X.dtype.itemsize <= 2 else X)  # raises if X is empty or not 2-D


def check_dimension(X: npt.NDArray, d: int, by: Any) -> None:
    """Raise if the dimension of the samples is not d, the dimension of the estimator `by`."""
    if dimension(X) != d:
        packed = f"X is packed in {X.shape[1]} bytes" if X.dtype == np.uint8 else ""
        raise wrong_width(dimension(X), d, by, remedy=packed)


def dimension(X: npt.NDArray) -> int:
    """Return the number of dimensions of the samples."""
    return X.shape[1] * 8 if X.dtype == np.uint8 else X.shape[1]


def squared_norms(X: npt.NDArray) -> Floats:
    """Return the squared length of each sample; raise if one is too large or too small for float64."""
    if X.dtype == np.uint8:
        return np.full(len(X), float(dimension(X)))
    squared = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    if not (squared < _LARGEST_SQUARED_NORM).all():
        row = int(np.argmax(squared >= _LARGEST_SQUARED_NORM))
        raise BadValue(row, f"has norm {np.sqrt(squared[row]):.3g}", "less than 1e75", "scale X down")
    tiny = squared < _SMALLEST_SQUARED_NORM
    if tiny.any() and (tiny := tiny & X.any(axis=1)).any():
        found = "is smaller than another hypervector, or than the prototypes, by a factor of 1e100 or more"
        raise BadValue(np.argmax(tiny), found, remedy="scale it up or drop it")
    return squared


def of_unit_length(rows: Floats) -> Floats:
    """Return rows divided by their lengths; zeros stay."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1.0)


def add_samples(X: npt.NDArray, coefficients: Floats, before: Floats | None = None) -> Floats:
    """Return sums of samples of unit length, weighted by each column of `coefficients`; add `before`, if given."""
    from similia.learn import _hd_classifier as loops

    X, packed = small_rows_up(X), X.dtype == np.uint8
    sums = np.zeros((coefficients.shape[1], dimension(X))) if before is None else before
    sums = loops.by_bit(sums) if packed else sums.copy()
    loops.combine(X, coefficients / lengths(X)[:, None], sums)
    return loops.by_byte(sums) if packed else sums


def signs(X: npt.NDArray, dtype: npt.DTypeLike) -> npt.NDArray:
    """Return packed bits as +1 and -1."""
    found = np.unpackbits(X, axis=1).astype(dtype)
    found *= 2
    found -= 1
    return found


def lengths(X: npt.NDArray) -> Floats:
    """Return the length of each sample, 1 for zeros."""
    squared = squared_norms(X)
    return np.sqrt(np.where(squared > 0, squared, 1.0))


def products(X: npt.NDArray, directions: Floats) -> Floats:
    """Return the products of the samples, scaled to unit length, with the rows of `directions`."""
    from similia.learn import _hd_classifier as loops

    out = np.empty((len(X), len(directions)))
    X = small_rows_up(X)
    arranged = loops.by_bit(directions) if X.dtype == np.uint8 else np.ascontiguousarray(directions)
    loops.products(X, squared_norms(X), arranged, out)
    return out


class Trainer:
    """Train prototypes on one batch by the compiled loops, with numbers scaled and dimensions reordered for them.

    `start` has shape (1, n_classes, d) or (2, n_classes, d). Its first part holds the prototypes after `n_steps`
    samples; the second, if there, the sum of all corrections, each multiplied by the number of samples before it.
    """

    def __init__(self, X: npt.NDArray, targets: npt.NDArray, weights: Floats, start: Floats, n_steps: int = 0) -> None:
        from similia.learn import _hd_classifier as loops

        self._loops = loops
        self._packed = X.dtype == np.uint8
        self._exponent = 0 if self._packed else _exponent(X, start[0])
        X, start = _divided(X, self._exponent), _divided(start, self._exponent)
        self.n, self._X = len(X), X
        self._squared_norms = squared_norms(X)
        self._targets = np.ascontiguousarray(targets, dtype=np.int64)
        self._weights = weights
        self._running = [loops.by_bit(part) if self._packed else part.copy() for part in start]
        self._later = self._running[1] if len(start) > 1 else np.empty((0, start.shape[2]))
        self._n_steps = n_steps

    def bundle(self) -> None:
        """Add each sample, times its weight, to the prototype of its class."""
        self._loops.bundle(self._X, self._targets, self._weights, self._running[0])

    def epoch(self, order: npt.NDArray[np.int64], rate: float, margin: float) -> int:
        """Correct the prototypes, sample by sample; return the number of corrections. Ctrl-C waits for the end."""
        mistakes = self._loops.epoch(
            self._X, self._squared_norms, self._targets, self._weights, order, float(rate), float(margin),
            self._running[0], self._later, self._n_steps,
        )  # fmt: skip
        self._n_steps += len(order)
        return int(mistakes)

    def result(self) -> tuple[Floats, Floats, int]:
        """Return (prototypes, `start` for the next trainer, number of samples seen)."""
        by_byte = self._loops.by_byte
        running = np.array(
            [by_byte(part) if self._packed else _divided(part, -self._exponent) for part in self._running]
        )
        prototypes = running[0]
        if len(running) > 1 and self._n_steps > 0:
            prototypes = running[0] - running[1] / self._n_steps
        return prototypes, running, self._n_steps


def _exponent(X: npt.NDArray, prototypes: Floats) -> int:
    """Return e such that division by 2**e brings very small numbers to at most 1; 0 if they are not very small."""
    most = max(_largest(X).max(), _largest(prototypes).max())
    return int(np.frexp(most)[1]) if 0 < most < _SMALL else 0


def small_rows_up(X: npt.NDArray) -> npt.NDArray:
    """Return `X` with very small rows multiplied by powers of two, which does not change their cosines."""
    if X.dtype.kind != "f" or (most := _largest(X)).min() >= _SMALL:
        return X
    return np.ldexp(X, -np.where((most > 0) & (most < _SMALL), np.frexp(most)[1], 0)[:, None])


def _largest(X: npt.NDArray) -> npt.NDArray:
    """Return the largest absolute value in each row."""
    return np.maximum(X.max(axis=1), -X.min(axis=1))


def _divided(X: npt.NDArray, exponent: int) -> npt.NDArray:
    return X if exponent == 0 else np.ldexp(X, -exponent)


def probabilities(scores: Floats, sharpness: float) -> Floats:
    """Return the softmax of each row of scores times `sharpness`."""
    with np.errstate(under="ignore"):
        return softmax(sharpness * scores, axis=1)


class HeldOut(NamedTuple):
    """Samples that the prototypes were not fitted to: their scores (m, n_classes), classes (m,) and weights (m,)."""

    scores: Floats
    targets: npt.NDArray[np.int64]
    weights: Floats

    def sharpness(self) -> float:
        """Return the factor of the scores that gives their softmax the largest likelihood (Guo et al., 2017).

        As in Platt (1999), a class of n samples counts as n + 1 samples of its label and one of another, so that the
        factor is finite even if all predictions are right.
        """
        n_classes = self.scores.shape[1]
        counts = np.bincount(self.targets, minlength=n_classes)[self.targets][:, None]
        right = self.targets[:, None] == np.arange(n_classes)
        wanted = np.where(right, counts + 1, 1 / (n_classes - 1)) / (counts + 2)

        def slope(log: float) -> float:  # of the loss, which is convex in the factor
            surplus = probabilities(self.scores, np.exp(log)) - wanted
            return float(self.weights @ (surplus * self.scores).sum(axis=1))

        low, high = _LOG_SHARPNESS
        if slope(low) >= 0.0:
            return float(np.exp(low))
        return float(np.exp(high if slope(high) <= 0.0 else brentq(slope, low, high, xtol=1e-12)))
