"""Perceptron-corrected class prototypes on hypervectors (NysHD: main text and supplement, Algorithm 1).

The classifier has one prototype vector H_j for each class j. For each sample x of class y, in the order of the epoch,
let q_j = cos(H_j, x) (0 if either is zero) and p = argmax_j q_j (the lowest class on ties). If p differs from y::

    H_y += learning_rate (1 - q_y) x        H_p -= learning_rate (1 - q_p) x

Earlier corrections count for later samples. Cost: one pass over d numbers per class and sample, two more per mistake.
Packed bits are expanded one sample at a time.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadValue
from similia.core.estimators import all_at_once, check_columns
from similia.core.progress import track
from similia.core.state import array, count, labels, state
from similia.core.validation import (
    check_codes,
    check_positive_int,
    check_vectors,
    generator,
    unmasked,
    wrong_width,
)
from similia.learn.targets import check_two_classes, checked_labels
from similia.sources.dask import Distributed, from_parts, lazily

_SMALL = 2.0**-150  # smaller numbers are scaled up, so that products of squares do not underflow
_SMALLEST_SQUARED_NORM = 1e-200
_LARGEST_SQUARED_NORM = 1e150  # leaves room for sums of such vectors times the largest learning rate


@state(
    classes_=labels("c"), n_features_in_=count(least=1), prototypes_=array("f8", "c", None),
    prototype_codes_=array("u1", "c", None), binary_prototypes="flag",
)  # fmt: skip
class HDClassifier(ClassifierMixin, BaseEstimator):
    """Classifier with one prototype hypervector per class, corrected at each mistake.

    A hypervector is a long vector, such as d signs ±1. Each epoch visits all training hypervectors (samples). If the
    prototype with the largest cosine q to a sample x is of a wrong class, learning_rate (1 - q) x is subtracted from
    it, and learning_rate (1 - r) x is added to the prototype of the right class, whose cosine to x is r.

    Parameters
    ----------
    init : {"zeros", "bundle"}, default="zeros"
        Prototypes before the first epoch: zero, as in Algorithm 1 in the supplement of Zhao et al., or the sum of the
        samples of each class, as in the main text of Zhao et al.
    max_iter : int, default=20
        Maximum number of epochs. Training stops after an epoch without a correction, since later epochs would make
        none either. With ``init="bundle"``, 0 means no epoch: the prototypes are the sums.
    learning_rate : float, default=0.5
        Size of a correction, in [1e-50, 1e50]. With ``init="zeros"`` there is no need to tune the rate: it only scales
        all prototypes, and cosines do not depend on the scale, so the rate changes no prediction.
    shuffle : bool, default=True
        Whether `fit` visits the samples in a new random order in each epoch; False keeps the given order.
    binary_prototypes : bool, default=False
        Whether predictions use ``prototype_codes_``, the signs of the learnt prototypes. Packed samples are then
        compared by Hamming distance. Training does not change.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the sample order; one permutation is drawn per epoch. Only used with ``shuffle=True``.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        Labels, sorted.
    prototypes_ : ndarray of float64 (n_classes, d)
        Learnt prototypes.
    prototype_codes_ : ndarray of uint8 (n_classes, ceil(d / 8))
        Signs of the prototypes as packed bits (1 for +1), used if ``binary_prototypes=True``.
    n_updates_ : list of int
        Number of corrected samples in each epoch. Each call of `partial_fit` is one epoch.
    n_iter_ : int
        Number of epochs.
    converged_ : bool
        Whether the last epoch made no correction.
    n_features_in_ : int
        Number of columns of the training data: bytes for packed bits, d otherwise.

    Notes
    -----
    Samples of dtype uint8 are packed bits: 8 dimensions of ±1 in each byte, bit 1 for +1. Samples of any other integer
    or float dtype hold one dimension per column. A fitted classifier accepts both kinds if d agrees. Arithmetic is
    float64. Cosines that differ by less than 1e-12 count as equal, so ties do not depend on the processor or the
    learning rate.

    The norm of a sample must be below 1e75, but may be as small as float64 allows: small samples are scaled up by
    powers of two.

    References
    ----------
    Zhao, Thomas, Brin, Yu & Rosing, "Bridging the gap between hyperdimensional computing and kernel methods via the
    Nyström method" (NysHD), supplement, Algorithm 1. The last line of its pseudo-code has a misplaced parenthesis; the
    correction above is the intended one. Hernández-Cano et al., "OnlineHD: Robust, efficient, and single-pass online
    learning using hyperdimensional system", DATE 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.learn import HDClassifier
    >>> bits = np.array([[1, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 1, 1, 0]])
    >>> codes = np.packbits(bits, axis=1)
    >>> model = HDClassifier(init="bundle", shuffle=False).fit(codes, ["low", "low", "high"])
    >>> model.predict(np.packbits([[1, 0, 1, 1, 0, 0, 0, 0]], axis=1))
    array(['low'], dtype='<U4')
    >>> model.n_updates_, model.converged_
    ([0], True)
    """

    def __init__(
        self,
        init: str = "zeros",
        max_iter: int = 20,
        learning_rate: float = 0.5,
        shuffle: bool = True,
        binary_prototypes: bool = False,
        random_state: Any = None,
    ) -> None:
        self.init = init
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.shuffle = shuffle
        self.binary_prototypes = binary_prototypes
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike) -> Self:
        """Learn prototypes from the hypervectors `X` and their labels `y`, of at least two classes.

        `X` is packed bits, uint8 of shape (n, n_bits // 8), or (n, d) of any other integer or float dtype.
        """
        self._check_parameters()
        if isinstance(X, Distributed):
            return self._fit_parts(X, y)
        given, X = X, _as_hypervectors(X)
        check_columns(self, given, reset=True)
        classes, targets = _classes(y, len(X))
        rng = generator(self.random_state)
        trainer = _Trainer(X, targets, np.zeros((len(classes), _dimension(X))))
        if self.init == "bundle":
            trainer.bundle()
        n_updates = []
        for _ in track(range(self.max_iter), "HDClassifier", total=self.max_iter):
            order = rng.permutation(len(X)) if self.shuffle else np.arange(len(X))
            n_updates.append(trainer.epoch(order, self.learning_rate))
            if n_updates[-1] == 0:
                break
        return self._learnt(classes, trainer.prototypes(), n_updates)

    def _fit_parts(self, X: Distributed, y: npt.ArrayLike) -> Self:
        """Fit to a Dask collection: add packed bits part by part if no epoch follows, else copy all to a file first."""
        if self.init == "zeros" or self.max_iter > 0 or X.example().dtype != np.uint8:
            with X.spooled() as rows:
                return self.fit(rows, y)
        classes, targets = _classes(y, len(X))
        self.n_features_in_ = X.example().shape[1]
        return self._learnt(classes, sum(X.map(_bundles, len(classes), along=[targets])), [])

    @all_at_once
    def partial_fit(self, X: npt.ArrayLike, y: npt.ArrayLike, classes: npt.ArrayLike | None = None) -> Self:
        """Make one pass over a batch of samples, in the given order, starting from the current prototypes.

        With ``init="bundle"``, the samples of the first call are added to the prototypes of their classes before the
        pass. With ``init="bundle", max_iter=0``, each call adds its samples and makes no correction, so successive
        batches give the same result as one `fit` on all samples. Other values of `max_iter` have no effect here.

        Parameters
        ----------
        X : array (n, n_bits // 8) of uint8, or (n, d) of any other integer or float dtype
        y : array-like (n,)
            Labels; a batch may lack some classes.
        classes : array-like (n_classes,), optional
            The labels that any batch may hold. Required at the first call; later calls may repeat the same labels.
        """
        self._check_parameters()
        first = not hasattr(self, "prototypes_")
        given = X
        if not first:
            check_columns(self, given, reset=False)  # names before numbers
        X = _as_hypervectors(X)
        if first:
            check_columns(self, given, reset=True)
        y = checked_labels(y, len(X))
        check_classification_targets(y)
        known = self._known_classes(classes)
        targets = _positions(y, known)
        if first:
            start, n_updates = np.zeros((len(known), _dimension(X))), []
        else:
            _check_dimension(X, self._learnt_dimension(), self)
            start, n_updates = self.prototypes_, list(self.n_updates_)
        trainer = _Trainer(X, targets, start)
        if self.init == "bundle" and (first or self.max_iter == 0):
            trainer.bundle()
        if self.max_iter > 0:
            n_updates.append(trainer.epoch(np.arange(len(X)), self.learning_rate))
        return self._learnt(known, trainer.prototypes(), n_updates)

    @lazily
    def decision_function(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return cosine similarities to the prototypes, shape (n, n_classes).

        For two classes, the shape is (n,): the cosine for ``classes_[1]`` minus that for ``classes_[0]``, 0 for a tie.
        """
        scores = self._similarities(X)
        if len(self.classes_) > 2:
            return scores
        from similia.learn._hd_classifier import TIE

        margin = scores[:, 1] - scores[:, 0]
        margin[np.abs(margin) <= TIE] = 0.0
        return margin

    @lazily
    def predict(self, X: npt.ArrayLike) -> npt.NDArray:
        """Return the label of the most similar prototype, shape (n,); ties go to the first label in ``classes_``."""
        scores = self._similarities(X)
        from similia.learn._hd_classifier import TIE

        return self.classes_[np.argmax(scores >= scores.max(axis=1, keepdims=True) - TIE, axis=1)]

    def _similarities(self, X: npt.ArrayLike) -> npt.NDArray[np.float64]:
        check_is_fitted(self, "prototypes_")
        check_columns(self, X, reset=False)
        X = _as_hypervectors(X)
        d = self._learnt_dimension()
        _check_dimension(X, d, self)
        if not self.binary_prototypes:
            return _cosines(X, self.prototypes_)
        if X.dtype == np.uint8:
            from similia.codes import hamming_distances

            return 1.0 - (2.0 / d) * hamming_distances(X, self.prototype_codes_)
        return _cosines(X, np.unpackbits(self.prototype_codes_, axis=1, count=d) * 2.0 - 1.0)

    def _learnt(self, classes: npt.NDArray, prototypes: npt.NDArray, n_updates: list[int]) -> Self:
        """Store the results of training and return the estimator; `n_updates` holds the mistakes per epoch."""
        self.classes_, self.prototypes_ = classes, prototypes
        self.prototype_codes_ = np.packbits(prototypes >= 0, axis=1)
        self.n_updates_, self.n_iter_ = n_updates, len(n_updates)
        self.converged_ = bool(n_updates) and n_updates[-1] == 0
        return self

    def _learnt_dimension(self) -> int:
        """Return the dimension of `prototypes_`; raise if its shape is wrong, as compiled loops do not check bounds."""
        shape = np.shape(self.prototypes_)
        if len(shape) != 2 or shape[0] != len(self.classes_):
            raise ValueError(f"prototypes_ has shape {shape} for {len(self.classes_)} classes; fit again")
        return shape[1]

    def _known_classes(self, classes: npt.ArrayLike | None) -> npt.NDArray:
        if not hasattr(self, "prototypes_"):
            if classes is None:
                raise ValueError("classes is missing; the first call of partial_fit needs all labels to come")
            known = np.unique(np.asarray(classes))
            check_two_classes(known, "classes")
            return known
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes={classes!r} differ from those learnt before, {self.classes_.tolist()}")
        return self.classes_

    def _check_parameters(self) -> None:
        if self.init not in ("zeros", "bundle"):
            raise ValueError(f"init must be 'zeros' or 'bundle', got {self.init!r}")
        check_positive_int(self.max_iter, "max_iter", minimum=0)
        if self.max_iter == 0 and self.init == "zeros":
            raise ValueError("max_iter=0 learns nothing from init='zeros', use init='bundle'")
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 1e-50 <= rate <= 1e50:
            raise ValueError(f"learning_rate must be a number in [1e-50, 1e50], got {rate!r}")


def _bundles(codes: npt.NDArray, start: int, targets: npt.NDArray, n_classes: int) -> npt.NDArray[np.float64]:
    """Return the sum of the samples of each class, with bits as ±1; `codes` is one part of a Dask collection."""
    codes = _as_hypervectors(codes)
    trainer = _Trainer(codes, targets, np.zeros((n_classes, _dimension(codes))))
    trainer.bundle()
    return trainer.prototypes()


class _Trainer:
    """Runs the compiled loops on one batch, with numbers scaled and dimensions reordered as the loops need."""

    def __init__(self, X: npt.NDArray, targets: npt.NDArray, prototypes: npt.NDArray) -> None:
        from similia.learn import _hd_classifier as loops

        self._loops = loops
        self._packed = X.dtype == np.uint8
        self._exponent = 0 if self._packed else _exponent(X, prototypes)
        X, prototypes = _divided(X, self._exponent), _divided(prototypes, self._exponent)
        self._X = X
        self._squared_norms = _squared_norms(X)
        self._targets = np.ascontiguousarray(targets, dtype=np.int64)
        self._prototypes = loops.by_bit(prototypes) if self._packed else prototypes.copy()

    def bundle(self) -> None:
        self._loops.bundle(self._X, self._targets, self._prototypes)

    def epoch(self, order: npt.NDArray[np.int64], rate: float) -> int:
        """Correct the prototypes, sample by sample, without reacting to Ctrl-C; return the number of mistakes."""
        mistakes = self._loops.epoch(self._X, self._squared_norms, self._targets, order, float(rate), self._prototypes)
        return int(mistakes)

    def prototypes(self) -> npt.NDArray[np.float64]:
        return self._loops.by_byte(self._prototypes) if self._packed else _divided(self._prototypes, -self._exponent)


def _cosines(X: npt.NDArray, prototypes: npt.NDArray) -> npt.NDArray[np.float64]:
    from similia.learn import _hd_classifier as loops

    out = np.empty((len(X), len(prototypes)))
    X, prototypes = _small_rows_up(X), _small_rows_up(prototypes)
    arranged = loops.by_bit(prototypes) if X.dtype == np.uint8 else np.ascontiguousarray(prototypes)
    squared_norms = np.einsum("ij,ij->i", prototypes, prototypes)
    loops.cosines(X, _squared_norms(X), arranged, squared_norms, out)
    return out


def _squared_norms(X: npt.NDArray) -> npt.NDArray[np.float64]:
    if X.dtype == np.uint8:
        return np.full(len(X), float(_dimension(X)))
    squared = np.einsum("ij,ij->i", X, X, dtype=np.float64)
    if not (squared < _LARGEST_SQUARED_NORM).all():
        row = int(np.argmax(squared >= _LARGEST_SQUARED_NORM))
        raise BadValue(row, f"has norm {np.sqrt(squared[row]):.3g}", "less than 1e75", "scale X down")
    tiny = squared < _SMALLEST_SQUARED_NORM
    if tiny.any() and (tiny := tiny & X.any(axis=1)).any():
        found = "is smaller than other hypervectors or the prototypes learnt before by a factor of 1e100 or more"
        raise BadValue(np.argmax(tiny), found, remedy="scale it up or drop it")
    return squared


def _exponent(X: npt.NDArray, prototypes: npt.NDArray) -> int:
    """Return e such that division by 2**e brings the largest absolute value to about 1; 0 if it is not very small."""
    most = max(_largest(X).max(), _largest(prototypes).max())
    return int(np.frexp(most)[1]) if 0 < most < _SMALL else 0


def _small_rows_up(X: npt.NDArray) -> npt.NDArray:
    """Return `X` with very small rows multiplied by powers of two, which does not change their cosines."""
    if X.dtype.kind != "f" or (most := _largest(X)).min() >= _SMALL:
        return X
    return np.ldexp(X, -np.where((most > 0) & (most < _SMALL), np.frexp(most)[1], 0)[:, None])


def _largest(X: npt.NDArray) -> npt.NDArray:
    """Return the largest absolute value in each row."""
    return np.maximum(X.max(axis=1), -X.min(axis=1))


def _divided(X: npt.NDArray, exponent: int) -> npt.NDArray:
    return X if exponent == 0 else np.ldexp(X, -exponent)


def _dimension(X: npt.NDArray) -> int:
    return X.shape[1] * 8 if X.dtype == np.uint8 else X.shape[1]


def _as_hypervectors(X: Any) -> npt.NDArray:
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


def _classes(y: Any, n: int) -> tuple[npt.NDArray, npt.NDArray[np.int64]]:
    """Return the sorted classes and each label's position in them; raise if `y` is invalid or holds one class."""
    labels = checked_labels(y, n, two=True)
    check_classification_targets(labels)
    classes, targets = np.unique(labels, return_inverse=True)
    return classes, targets


def _check_dimension(X: npt.NDArray, d: int, by: Any) -> None:
    """Raise if the dimension of the samples is not d, the dimension of the estimator `by`."""
    if _dimension(X) != d:
        packed = f"X is packed in {X.shape[1]} bytes" if X.dtype == np.uint8 else ""
        raise wrong_width(_dimension(X), d, by, remedy=packed)


def _positions(y: npt.NDArray, classes: npt.NDArray) -> npt.NDArray[np.int64]:
    """Return the position of each label in the sorted `classes`; raise for a label that is not among them."""
    unseen = ~np.isin(y, classes)
    if unseen.any():
        i = int(np.argmax(unseen))
        found = f"is {y.tolist()[i]!r}, not one of the classes {classes.tolist()} of the first call"
        raise BadValue(i, found, remedy="start a new HDClassifier with all of them", collection="y")
    return np.searchsorted(classes, y)
