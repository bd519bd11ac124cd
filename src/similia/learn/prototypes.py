"""Predictions of `HDClassifier`: its prototypes scaled, rounded to a few bits, and compared with samples.

The score of a class is an inner product plus an intercept. The factors of the product are the sample, scaled to unit
length, and a vector made from the prototype.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from similia.core.estimators import check_columns, offered_if
from similia.learn.samples import (
    add_samples,
    as_hypervectors,
    check_dimension,
    dimension,
    of_unit_length,
    probabilities,
    products,
    small_rows_up,
)
from similia.sources.dask import ScoresParts, lazily

Floats = npt.NDArray[np.float64]

_ZERO = 1e-10  # a number smaller than this times the largest number of its prototype is a rounding error


def directions(prototypes: Floats, bits: int | None = None, ridge: bool = False) -> Floats:
    """Return the vectors (n_classes, d) whose products with a sample of unit length are its scores, before intercepts.

    They are the prototypes, scaled to length 1 unless `ridge` is set. With `bits`, each prototype is replaced by its
    projection on the rounded prototype.
    """
    exact = prototypes if ridge else of_unit_length(small_rows_up(prototypes))
    if bits is None:
        return exact
    units = of_unit_length(rounded(exact, bits))
    return units * np.einsum("ij,ij->i", exact, units)[:, None]


def rounded(prototypes: Floats, bits: int) -> Floats:
    """Return each prototype scaled and rounded to whole numbers of `bits` bits; for one bit, its signs.

    The sign of 0 is +1, even if rounding errors turn the 0 into a tiny number. Ridge regression gives such a number
    where a bit is the same in all samples; the sign of that number would depend on the processor.
    """
    largest = np.abs(prototypes).max(axis=1, keepdims=True)
    if bits == 1:
        return np.where(prototypes >= -_ZERO * largest, 1.0, -1.0)
    return np.rint(prototypes / np.where(largest > 0, largest, 1.0) * (2 ** (bits - 1) - 1))


def best(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the index of the largest score in each row, or of the first score that is at most `TIE` below it."""
    from similia.learn._hd_classifier import TIE

    return np.argmax(scores >= scores.max(axis=1, keepdims=True) - TIE, axis=1)


def unit_sums(X: npt.NDArray, weights: Floats, before: Floats | None = None) -> Floats:
    """Return the weighted sum of samples of unit length, then the sum of weights; add `before`, if given."""
    sums = np.zeros(dimension(X) + 1) if before is None else before.copy()
    sums[:-1] = add_samples(X, weights[:, None], sums[None, :-1])[0]
    sums[-1] += weights.sum()
    return sums


def mean_of(sums: Floats) -> Floats:
    """Return the weighted mean of the samples of unit length, from `unit_sums`."""
    return sums[:-1] / (sums[-1] or 1.0)


def _check_probabilities(model: Any) -> None:
    """Raise AttributeError if the fitted model, or one of these parameters, has no probabilities."""
    if hasattr(model, "prototypes_"):
        has = model.sharpness_ is not None
    else:
        own_folds = model.update == "margin" and isinstance(model.margin, str)
        has = model.probability or own_folds or model.update in ("ridge", "auto")
    if not has:
        raise AttributeError(
            "predict_proba needs a call of fit with probability=True, update='ridge' or margin='auto'; after "
            "partial_fit, use scikit-learn's CalibratedClassifierCV on samples that the model has not seen"
        )


class ByPrototypes(ScoresParts, ClassifierMixin, BaseEstimator):
    """The predictions of `HDClassifier`, from what it has learnt: prototypes, intercepts, and bits to round to."""

    classes_: npt.NDArray
    prototypes_: Floats
    intercept_: Floats
    bits_: int | None
    sharpness_: float | None  # None if there are no probabilities
    update_: str

    @lazily
    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Return the score of each class, shape (n, n_classes): cosines with the prototypes, or predictions of ridge.

        For two classes, the shape is (n,): the score of ``classes_[1]`` minus that of ``classes_[0]``, 0 for a tie.
        """
        scores = self._scores(X)
        if scores.shape[1] > 2:
            return scores
        from similia.learn._hd_classifier import TIE

        margin = scores[:, 1] - scores[:, 0]
        margin[np.abs(margin) <= TIE] = 0.0
        return margin

    @offered_if(_check_probabilities)
    @lazily
    def predict_proba(self, X: npt.ArrayLike) -> Floats:
        """Return the probabilities of the classes, shape (n, n_classes).

        They are the softmax of the scores times `sharpness_`, so the predicted class has the largest probability,
        unless scores tie. `fit` chooses `sharpness_` to maximise the likelihood of held-out samples: for "ridge", up to
        600 samples, each left out in turn; otherwise all samples in 3-fold cross-validation or, if there are more than
        3000 samples, 1000 of them.

        A fitted model has this method only if `fit` used ridge regression, the update "margin" with ``margin="auto"``,
        or ``probability=True``.
        """
        scores = self._scores(X)
        assert self.sharpness_ is not None  # otherwise the method is not offered
        return probabilities(scores, self.sharpness_)

    @lazily
    def predict(self, X: npt.ArrayLike) -> npt.NDArray:
        """Return the label with the largest score, shape (n,); ties go to the first label in ``classes_``."""
        scores = self._scores(X)  # raises if the model is not fitted
        return self.classes_[best(scores)]

    @property
    def prototype_codes_(self) -> npt.NDArray:
        """The prototypes rounded to `prototype_bits`: for 1 bit, packed signs (uint8); otherwise integers (int8)."""
        check_is_fitted(self, "prototypes_")
        if self.bits_ is None:
            raise AttributeError("the prototypes are not rounded; set prototype_bits to 8, 4 or 1 before fit")
        whole = rounded(self.prototypes_, self.bits_)
        return np.packbits(whole > 0, axis=1) if self.bits_ == 1 else whole.astype(np.int8)

    def in_integers(self) -> tuple[npt.NDArray[np.int8], Floats, Floats, int]:
        """Return (R, f, b, bits): prototypes R as integers of `prototype_bits` bits, or 8 if that is None.

        The scores of a sample x of unit length are ``f * (R @ x) + b``, up to rounding; R has shape (n_classes, d), f
        and b have shape (n_classes,).
        """
        check_is_fitted(self, "prototypes_")
        bits = self.bits_ or 8
        exact = self._directions(exact=True)
        whole = rounded(exact, bits)
        squares = np.einsum("ij,ij->i", whole, whole)
        factors = np.einsum("ij,ij->i", exact, whole) / np.where(squares > 0, squares, 1.0)
        return whole.astype(np.int8), factors, self.intercept_.copy(), bits

    def in_floats(self) -> tuple[Floats, Floats]:
        """Return scaled prototypes R and constants b, of shapes (n_classes, d) and (n_classes,).

        The scores of a sample x of unit length are ``R @ x + b``.
        """
        check_is_fitted(self, "prototypes_")
        return self._directions(), self.intercept_.copy()

    def _scores(self, X: npt.ArrayLike) -> Floats:
        check_is_fitted(self, "prototypes_")
        check_columns(self, X, reset=False)
        X = as_hypervectors(X)
        d = self._learnt_dimension()
        check_dimension(X, d, self)
        if self.bits_ == 1 and X.dtype == np.uint8:
            from similia.codes import hamming_distances

            sizes = np.linalg.norm(self._directions(), axis=1)
            return (1.0 - (2.0 / d) * hamming_distances(X, self.prototype_codes_)) * sizes + self.intercept_
        return products(X, self._directions()) + self.intercept_

    def _directions(self, exact: bool = False) -> Floats:
        """Return the vectors whose products with samples are the scores; with `exact`, those before rounding."""
        return directions(self.prototypes_, None if exact else self.bits_, self.update_ == "ridge")

    def _learnt_dimension(self) -> int:
        """Return the dimension of `prototypes_`; raise if its shape is wrong, as compiled loops do not check bounds."""
        shape = np.shape(self.prototypes_)
        if len(shape) != 2 or shape[0] != len(self.classes_):
            raise ValueError(f"prototypes_ has shape {shape} for {len(self.classes_)} classes; fit again")
        return shape[1]
