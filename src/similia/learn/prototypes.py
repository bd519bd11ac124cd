"""Prototypes of `HDClassifier`: trained on samples, scaled, rounded to a few bits, and compared with samples.

Samples of dtype uint8 are packed bits, 8 dimensions of +1 or -1 in each byte; others hold one number per dimension.

The score of a class is an inner product plus an intercept. The factors of the product are the sample, scaled to unit
length, and a vector made from the prototype.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin

from similia.core.estimators import check_columns, check_fitted, offered_if
from similia.core.validation import BadValue, as_array, check_codes, check_vectors, wrong_width
from similia.sources.dask import ScoresParts, lazily

Floats = npt.NDArray[np.float64]
_SMALL = 2.0**-150  # samples whose numbers are all smaller are scaled up, so that products of squares do not underflow
_SMALLEST_SQUARED_NORM = 1e-200
_LARGEST_SQUARED_NORM = 1e150  # leaves room for sums of such vectors times the largest learning rate
_LOG_SHARPNESS = (-3.0, 14.0)  # range of the logarithm of `HDClassifier.sharpness_`
_ZERO = 1e-10  # a number smaller than this times the largest number of its prototype is a rounding error


def as_hypervectors(X: Any) -> npt.NDArray:
    """Return packed bits (uint8) unchanged, other integers and floats as a float array; raise for anything else."""
    if hasattr(X, "toarray"):
        raise BadValue(None, f"is a sparse {type(X).__name__}", "dense hypervectors", "give X.toarray()")
    X = as_array(X)
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
        own_folds = model.update in ("margin", "auto") and isinstance(model.margin, str)
        has = model.probability or own_folds or model.update == "ridge"
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
        """Return the score of each class for n samples, shape (n, n_classes).

        A score is the cosine of the sample and the prototype of the class; with ridge regression, the score is the
        value that the regression predicts for the class. For two classes, the shape is (n,): the score of
        ``classes_[1]`` minus the score of ``classes_[0]``, 0 for a tie.
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

        The probabilities are the softmax of `sharpness_` times the scores of the classes (see `decision_function`). So
        the predicted class has the largest probability, unless scores tie. `fit` chooses `sharpness_` to maximise the
        likelihood of held-out samples: for "ridge", up to 600 samples, each left out in turn; otherwise all samples in
        3-fold cross-validation or, if there are more than 3000 samples, 1000 samples that are set aside.

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
        check_fitted(self, "prototypes_")
        if self.bits_ is None:
            raise AttributeError("the prototypes are not rounded; set prototype_bits to 8, 4 or 1 before fit")
        whole = rounded(self.prototypes_, self.bits_)
        return np.packbits(whole > 0, axis=1) if self.bits_ == 1 else whole.astype(np.int8)

    def in_integers(self) -> tuple[npt.NDArray[np.int8], Floats, Floats, int]:
        """Return (R, f, b, bits): prototypes as integers R, scale factors f, constants b, and bits per integer.

        The number of bits is `prototype_bits`, or 8 if `prototype_bits` is None. The scores of a sample x of unit
        length are ``f * (R @ x) + b``, up to rounding; R has shape (n_classes, d), f and b have shape (n_classes,).
        """
        check_fitted(self, "prototypes_")
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
        check_fitted(self, "prototypes_")
        return self._directions(), self.intercept_.copy()

    def _scores(self, X: npt.ArrayLike) -> Floats:
        check_fitted(self, "prototypes_")
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
