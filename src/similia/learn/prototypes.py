"""Prototypes of `HDClassifier` as predictions use them: scaled, rounded to a few bits, and compared with samples.

The score of a class is the product of one vector, made from its prototype, with the sample scaled to unit length, plus
an intercept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from similia.learn.samples import add_samples, dimension, of_unit_length, small_rows_up

Floats = npt.NDArray[np.float64]

_ZERO = 1e-10  # a number smaller than this times the largest number of its prototype is a rounding error


def directions(prototypes: Floats, bits: int | None = None, ridge: bool = False) -> Floats:
    """Return the vectors (n_classes, d) whose products with a sample of unit length are its scores, before intercepts.

    They are the prototypes, scaled to length 1 unless `ridge` is set. With `bits`, each is projected on its rounded
    prototype.
    """
    exact = small_rows_up(prototypes)
    exact = exact if ridge else of_unit_length(exact)
    if bits is None:
        return exact
    units = of_unit_length(rounded(exact, bits))
    return units * np.einsum("ij,ij->i", exact, units)[:, None]


def rounded(prototypes: Floats, bits: int) -> Floats:
    """Return each prototype scaled and rounded to whole numbers of `bits` bits; for one bit, its signs.

    The sign of 0 is +1, also if rounding errors made the 0 a tiny number. Ridge regression gives such a number for a
    bit that all samples share, and its sign would depend on the processor.
    """
    largest = np.abs(prototypes).max(axis=1, keepdims=True)
    if bits == 1:
        return np.where(prototypes >= -_ZERO * largest, 1.0, -1.0)
    return np.rint(prototypes / np.where(largest > 0, largest, 1.0) * (2 ** (bits - 1) - 1))


def best(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the index of the largest score in each row; of scores that differ by less than `TIE`, the first."""
    from similia.learn._hd_classifier import TIE

    return np.argmax(scores >= scores.max(axis=1, keepdims=True) - TIE, axis=1)


def unit_sums(X: npt.NDArray, weights: Floats, before: Floats | None = None) -> Floats:
    """Return `before`, if given, plus d + 1 numbers: the weighted sum of samples of unit length, and of the weights."""
    sums = np.zeros(dimension(X) + 1) if before is None else before.copy()
    sums[:-1] = add_samples(X, weights[:, None], sums[None, :-1])[0]
    sums[-1] += weights.sum()
    return sums


def mean_of(sums: Floats) -> Floats:
    """Return the weighted mean of the samples of unit length, from `unit_sums`."""
    return sums[:-1] / (sums[-1] or 1.0)
