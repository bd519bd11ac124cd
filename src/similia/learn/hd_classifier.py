r"""Class prototypes on hypervectors: corrected at mistakes (NysHD, Algorithm 1), averaged, with a margin, or by ridge.

The classifier has one prototype vector H_j for each class j. For each sample x of class y, in the order of the epoch,
let q_j = cos(H_j, x) (0 if either is zero) and p the class with the largest q_j (the lowest class on ties). If p
differs from y::

    H_y += learning_rate (1 - q_y) x        H_p -= learning_rate (1 - q_p) x

Earlier corrections count for later samples. With a margin m > 0, p is the best of the other classes, and the same
corrections are made if q_y - q_p < m. The mean of the prototypes after each sample generalises better than the last
ones (Freund & Schapire, 1999). Cost: one pass over d numbers per class and sample, two more per correction, or four
for the mean. Packed bits are expanded one sample at a time.
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadValue, warn_user
from similia.core.estimators import all_at_once, check_columns, offered_if
from similia.core.progress import track
from similia.core.state import array, count, labels, one_of, optional, state
from similia.core.validation import (
    check_positive,
    check_positive_int,
    generator,
)
from similia.learn.samples import (
    HeldOut,
    Trainer,
    add_samples,
    as_hypervectors,
    check_dimension,
    dimension,
    of_unit_length,
    probabilities,
    products,
    small_rows_up,
    squared_norms,
)
from similia.learn.targets import check_two_classes, checked_labels, checked_weights, weights_of_classes
from similia.sources.dask import Distributed, from_parts, lazily

Floats = npt.NDArray[np.float64]

_LEARNT = ("perceptron", "averaged", "margin", "ridge")
_UPDATES = (*_LEARNT, "auto")
_MARGINS = (0.2, 0.1, 0.05, 0.02, 0.0)  # cosines tried by margin="auto"
_ZERO = 1e-10  # smaller parts of the largest number of a prototype are rounding errors
_FOLDS, _MOST_HELD_OUT, _EPOCHS = 3, 1000, 5  # parts of few samples, held out of many, epochs that try a margin


def _check_parts(model: Any) -> None:
    """Raise AttributeError if learning needs all samples at once."""
    if model.update in ("ridge", "auto"):
        raise AttributeError(
            f"update={model.update!r} learns from all samples at once; for partial_fit, take 'averaged' or 'perceptron'"
        )
    if model.update == "margin" and isinstance(model.margin, str):
        raise AttributeError("margin='auto' needs all samples at once; for partial_fit, give a number, such as 0.05")
    if model.probability:
        raise AttributeError("probability=True needs all samples at once; for partial_fit, take probability=False")


def _check_probabilities(model: Any) -> None:
    """Raise AttributeError if the fitted model, or one of these parameters, has no probabilities."""
    if hasattr(model, "prototypes_"):
        has = model.sharpness_ is not None
    else:
        own_folds = model.update == "margin" and isinstance(model.margin, str)
        has = model.probability or own_folds or model.update in ("ridge", "auto")
    if not has:
        raise AttributeError(
            "predict_proba needs a call of fit with probability=True, update='ridge' or margin='auto', since "
            "partial_fit holds no sample out; or use scikit-learn's CalibratedClassifierCV"
        )


@state(
    may_lack=["running_", "sums_"], update_=one_of(*_LEARNT), classes_=labels("c"), n_features_in_=count(least=1),
    prototypes_=array("f8", "c", "d"), intercept_=array("f8", "c"), sharpness_=optional("number"),
    running_=array("f8", 2, "c", "d"), sums_=array("f8", None), bits_=optional(count(least=1)),
)  # fmt: skip
class HDClassifier(ClassifierMixin, BaseEstimator):
    r"""Classifier with one prototype hypervector per class.

    A hypervector is a long vector, such as d signs ±1. A new one gets the class of the most similar prototype. The
    perceptrons visit the training hypervectors (samples) in several epochs. They correct two prototypes at each
    mistake: a sample x is subtracted from the prototype that was most similar, and added to that of the right class.
    Each time x is multiplied by learning_rate (1 - q), where q is the cosine of x and that prototype.

    Parameters
    ----------
    update : {"perceptron", "averaged", "margin", "ridge", "auto"}, default="perceptron"
        How prototypes are learnt:

        - "perceptron": corrected at mistakes, as in Zhao et al.
        - "averaged": the same, and the result is the mean of the prototypes after each visited sample. It is more
          accurate than the last prototypes, for little more time.
        - "margin": the same mean, but samples are also corrected if the right class leads by less than `margin`.
        - "ridge": least squares on samples of unit length, with an intercept; no epochs. It is as accurate as a tuned
          linear support vector machine on the same bits. For n samples the time grows with n^3 and the memory with
          n^2; if n > d, with n d^2 and d^2.
        - "auto": "ridge" for fewer samples than dimensions, otherwise "margin".

        Take "auto", unless samples come in batches ("averaged") or you compare with the paper ("perceptron").
    init : {"zeros", "bundle"}, default="zeros"
        Prototypes before the first epoch: zero, as in Algorithm 1 in the supplement of Zhao et al., or the sum of the
        samples of each class, as in the main text of Zhao et al. Not used by "ridge".
    max_iter : int, default=20
        Maximum number of epochs. Training stops after an epoch without a correction, since later epochs would make
        none either. With ``init="bundle"``, 0 means no epoch: the prototypes are the sums.
    learning_rate : float, default=0.5
        Size of a correction, in [1e-50, 1e50]. With ``init="zeros"`` there is no need to tune the rate: it only scales
        all prototypes, and cosines do not depend on the scale, so the rate changes no prediction.
    margin : float or "auto", default="auto"
        A sample is corrected if the cosine of its own class does not exceed all others by this number, in [0, 2]. Only
        used with ``update="margin"``. "auto" takes the one of 0, 0.02, 0.05, 0.1 and 0.2 with the best accuracy in
        3-fold cross-validation or, for more than 3000 samples, on 1000 that are held out; each is trained for 5 epochs.
    alpha : float or "auto", default="auto"
        Regularisation of ``update="ridge"``, above 0; 0.1 to 1 is usual, whatever d is. "auto" minimises the squared
        error for samples that are left out in turn.
    shuffle : bool, default=True
        Whether `fit` visits the samples in a new random order in each epoch; False keeps the given order.
    class_weight : dict of label to float, "balanced" or None, default=None
        Factors of the weights of samples by class. "balanced" gives all classes the same weight in total.
    prototype_bits : {None, 8, 4, 1}, default=None
        Bits of each number of the prototypes that predictions use. None: float64. With 8 and 4, each prototype is
        scaled and rounded to the integers up to 127 or 7 in absolute value; with 1, to its signs, and packed samples
        are compared by Hamming distance. The intercepts are set such that the mean score of each class stays the same.
        Training itself does not change. The guide states what it costs in accuracy.
    probability : bool, default=False
        Whether to enable `predict_proba` where that takes time: True trains at most three more times, on parts of the
        samples. "ridge" and ``margin="auto"`` have probabilities at no cost, whatever this is.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the sample order, one permutation per epoch, and of the samples that choose `margin`, `alpha` or
        `sharpness_`.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        Labels, sorted.
    prototypes_ : ndarray of float64 (n_classes, d)
        Learnt prototypes, before rounding to `prototype_bits`.
    intercept_ : ndarray of float64 (n_classes,)
        Added to the scores of the classes: 0, except with ``update="ridge"`` or rounded prototypes.
    update_ : str
        The update used.
    margin_, alpha_ : float or None
        The margin and the regularisation used, if any.
    sharpness_ : float or None
        Factor of the scores in `predict_proba`; None without probabilities.
    prototype_codes_ : ndarray of uint8 (n_classes, ceil(d / 8)) or int8 (n_classes, d)
        The rounded prototypes, only with `prototype_bits`: packed signs, or integers. A device needs these and
        `intercept_`; a saved model also holds `prototypes_`, so it is not smaller.
    running_ : ndarray of float64 (2, n_classes, d)
        Only with "averaged" and "margin", for `partial_fit`: the last prototypes, and the sum of all corrections, each
        times the number of samples before it.
    sums_ : ndarray of float64 (d + 1,)
        Only with `prototype_bits`, for `partial_fit`: sums of the samples, scaled to unit length, and of their weights.
    bits_ : int or None
        The `prototype_bits` used.
    n_updates_ : list of int
        Number of corrected samples in each epoch; [0] for ridge. Each call of `partial_fit` appends one number.
    n_iter_, n_steps_ : int
        Number of epochs, and of visits to samples.
    converged_ : bool
        Whether the last epoch made no correction.
    n_features_in_ : int
        Number of columns of the training data: bytes for packed bits, d otherwise.

    Notes
    -----
    Samples of dtype uint8 are packed bits: 8 dimensions of ±1 in each byte, bit 1 for +1. Samples of any other integer
    or float dtype hold one dimension per column. A fitted classifier accepts both kinds if d agrees. Arithmetic is
    float64. Scores that differ by less than 1e-12 count as equal, so ties do not depend on the processor or the
    learning rate.

    The result of the perceptrons depends on the sequence of the samples, but not on how `partial_fit` cuts it.

    The norm of a sample must be below 1e75, but may be as small as float64 allows: small samples are scaled up by
    powers of two.

    References
    ----------
    Zhao, Thomas, Brin, Yu & Rosing, "Bridging the gap between hyperdimensional computing and kernel methods via the
    Nyström method" (NysHD), supplement, Algorithm 1. The last line of its pseudo-code has a misplaced parenthesis; the
    correction above is the intended one. Hernández-Cano et al., "OnlineHD: Robust, efficient, and single-pass online
    learning using hyperdimensional system", DATE 2021. Freund & Schapire, "Large margin classification using the
    perceptron algorithm", Machine Learning 37, 1999 (means). Guo et al., "On calibration of modern neural networks",
    ICML 2017, section 4.2, temperature scaling, whose 1 / T is `sharpness_`. Platt, "Probabilistic outputs for support
    vector machines", Advances in Large Margin Classifiers, 1999, section 2.2 (its targets, between 0 and 1).

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
    >>> HDClassifier("ridge", alpha=1.0).fit(codes, ["low", "low", "high"]).predict_proba(codes).argmax(axis=1)
    array([1, 1, 0])
    """

    margin_: float | None
    alpha_: float | None
    sharpness_: Any

    def __init__(
        self,
        update: Literal["perceptron", "averaged", "margin", "ridge", "auto"] = "perceptron",
        *,
        init: Literal["zeros", "bundle"] = "zeros",
        max_iter: int = 20,
        learning_rate: float = 0.5,
        margin: float | Literal["auto"] = "auto",
        alpha: float | Literal["auto"] = "auto",
        shuffle: bool = True,
        class_weight: Any = None,
        prototype_bits: int | None = None,
        probability: bool = False,
        random_state: Any = None,
    ) -> None:
        self.update = update
        self.init = init
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.margin = margin
        self.alpha = alpha
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.prototype_bits = prototype_bits
        self.probability = probability
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: npt.ArrayLike, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Learn prototypes from the hypervectors `X` and their labels `y`, of at least two classes.

        `X` is packed bits, uint8 of shape (n, n_bits // 8), or (n, d) of any other integer or float dtype.
        `sample_weight`, n numbers of at least 0, multiplies corrections or squared errors; samples of weight 0 are left
        out.
        """
        self._check_parameters()
        if isinstance(X, Distributed):
            return self._fit_parts(X, y, sample_weight)
        given, X = X, as_hypervectors(X)
        check_columns(self, given, reset=True)
        if X.dtype == np.uint8 and X.shape[1] >= 16 and X[:100].max() <= 1:
            warn_user(
                "X is uint8 and holds 0 and 1 only, and is read as packed bits; for bits, give np.packbits(X, axis=1)"
            )
        classes, targets = _classes(y, len(X))
        weights = checked_weights(sample_weight, len(X)) * weights_of_classes(
            self.class_weight, classes[targets], classes
        )
        if (weights == 0).any():
            X, targets, weights = X[weights > 0], targets[weights > 0], weights[weights > 0]
            if len(np.unique(targets)) < len(classes):
                lost = classes[np.setdiff1d(np.arange(len(classes)), targets)[0]]
                raise ValueError(
                    f"all samples of class {lost!r} have weight 0; drop them, or give them a larger weight"
                )
        rng = generator(self.random_state)
        self.update_ = self.update
        if self.update == "auto":
            self.update_ = "ridge" if len(X) < dimension(X) else "margin"
        if self.update_ == "ridge":
            return self._fit_ridge(X, classes, targets, weights, rng)
        margin, held_out = (
            float(self.margin) if self.update_ == "margin" and not isinstance(self.margin, str) else 0.0,
            None,
        )
        if self.update_ == "margin" and isinstance(self.margin, str):
            margin, held_out = self._best_margin(X, targets, weights, _MARGINS, rng, _EPOCHS)
        trainer = Trainer(X, targets, weights, self._start(len(classes), X))
        n_updates = self._train(trainer, margin, rng)
        if held_out is None and self.probability:
            _, held_out = self._best_margin(X, targets, weights, (margin,), rng)
        self._learnt(classes, trainer, n_updates, margin, self._sums(X, weights))
        self.sharpness_ = None if held_out is None else held_out.sharpness()
        return self

    def _train(self, trainer: Trainer, margin: float, rng: np.random.Generator, most: int | None = None) -> list[int]:
        """Train for at most `max_iter` epochs, or `most`; return the number of corrected samples in each."""
        if self.init == "bundle":
            trainer.bundle()
        n_updates: list[int] = []
        n_epochs = self.max_iter if most is None else min(most, self.max_iter)
        for _ in track(range(n_epochs), "HDClassifier", total=n_epochs):
            order = rng.permutation(trainer.n) if self.shuffle else np.arange(trainer.n)
            n_updates.append(trainer.epoch(order, self.learning_rate, margin))
            if n_updates[-1] == 0:
                break
        return n_updates

    def _fit_ridge(
        self, X: npt.NDArray, classes: npt.NDArray, targets: npt.NDArray, weights: Floats, rng: np.random.Generator
    ) -> Self:
        from similia.learn import ridge

        X = small_rows_up(X)
        squared_norms(X)  # raises for samples that are too long
        alpha = None if isinstance(self.alpha, str) else float(self.alpha)
        rounded = None if self.prototype_bits is None else partial(_directions, bits=self.prototype_bits, ridge=True)
        found = ridge.fit(X, targets, len(classes), weights, alpha, rng, rounded)
        self._store(classes, found.prototypes, [0])
        self.alpha_, self.sharpness_ = found.alpha, found.held_out.sharpness()
        self.intercept_ = found.shares - self._directions() @ found.mean
        return self

    def _fit_parts(self, X: Distributed, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Self:
        """Fit to a Dask collection: add packed bits part by part if no epoch follows, else copy all to a file first."""
        one_pass = self.update == "perceptron" and self.max_iter == 0 and sample_weight is None and not self.probability
        if not one_pass or self.class_weight is not None or X.example().dtype != np.uint8:
            with X.spooled() as rows:
                return self.fit(rows, y, sample_weight)
        classes, targets = _classes(y, len(X))
        self.n_features_in_, self.update_ = X.example().shape[1], self.update
        bundles, sums = zip(*X.map(_bundles, len(classes), along=[targets]), strict=True)
        self._store(classes, sum(bundles), [])
        return self._centre(None if self.prototype_bits is None else sum(sums))

    @offered_if(_check_parts)
    @all_at_once
    def partial_fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        classes: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
    ) -> Self:
        """Make one pass over a batch of samples, in the given order, starting from the current prototypes.

        With ``init="bundle"``, the samples of the first call are added to the prototypes of their classes before the
        pass. With ``init="bundle", max_iter=0``, each call adds its samples and makes no correction, so successive
        batches give the same result as one `fit` on all samples. Other values of `max_iter` have no effect here.

        Batches should hold all classes in random order: of samples sorted by class, little is learnt. Several passes
        over the data, with several calls, come near to `fit`. Not with ``update="ridge"``, ``"auto"`` or
        ``probability=True``; "margin" needs a number for `margin`.

        The model then has no `predict_proba`, since all samples may have been learnt. For probabilities, calibrate it
        on others: ``CalibratedClassifierCV(FrozenEstimator(model)).fit(X_others, y_others)``, both of scikit-learn.

        Parameters
        ----------
        X : array (n, n_bits // 8) of uint8, or (n, d) of any other integer or float dtype
        y : array-like (n,)
            Labels; a batch may lack some classes.
        classes : array-like (n_classes,), optional
            The labels that any batch may hold. Required at the first call; later calls may repeat the same labels.
        sample_weight : array-like (n,), optional
            Factors of the corrections.
        """
        self._check_parameters()
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all samples at once; for partial_fit, give a dictionary")
        first = not hasattr(self, "prototypes_")
        given = X
        if first:
            self.update_ = self.update
        else:
            self._check_unchanged()
            check_columns(self, given, reset=False)  # names before numbers
        X = as_hypervectors(X)
        if first:
            check_columns(self, given, reset=True)
        y = checked_labels(y, len(X))
        check_classification_targets(y)
        known = self._known_classes(classes)
        targets = _positions(y, known)
        weights = checked_weights(sample_weight, len(X)) * weights_of_classes(self.class_weight, y, known)
        if first:
            start, n_updates = self._start(len(known), X), []
        else:
            check_dimension(X, self._learnt_dimension(), self)
            start, n_updates = self._current(), list(self.n_updates_)
        sums = self._sums(X, weights, None if first or self.prototype_bits is None else self.sums_)
        trainer = Trainer(X, targets, weights, start, 0 if first else self.n_steps_)
        if self.init == "bundle" and (first or self.max_iter == 0):
            trainer.bundle()
        margin = float(self.margin) if self.update == "margin" else 0.0
        if self.max_iter > 0:
            n_updates.append(trainer.epoch(np.arange(len(X)), self.learning_rate, margin))
        return self._learnt(known, trainer, n_updates, margin, sums)

    def _sums(self, X: npt.NDArray, weights: Floats, before: Floats | None = None) -> Floats | None:
        """Return `sums_`, with `X` added to those `before`; None if prototypes are not rounded."""
        return None if self.prototype_bits is None else _sums(X, weights, before)

    def _start(self, n_classes: int, X: npt.NDArray) -> Floats:
        """Return the first prototypes, (1, n_classes, d), or (2, n_classes, d) with sums for their mean."""
        return np.zeros((1 if self.update_ == "perceptron" else 2, n_classes, dimension(X)))

    def _current(self) -> Floats:
        """Return what `_start` returns, after the samples seen before."""
        return self.prototypes_[None] if self.update_ == "perceptron" else self.running_

    def _check_unchanged(self) -> None:
        """Raise if a parameter has changed since the samples seen before, so that these would count differently."""
        if self.update_ != self.update:
            raise ValueError(f"the model was learnt with update={self.update_!r}; start a new HDClassifier")
        if self.bits_ != self.prototype_bits:
            raise ValueError(f"the model was learnt with prototype_bits={self.bits_}; start a new HDClassifier")

    def _best_margin(
        self, X: npt.NDArray, targets: npt.NDArray, weights: Floats, margins: tuple[float, ...],
        rng: np.random.Generator, most: int | None = None,
    ) -> tuple[float, HeldOut]:  # fmt: skip
        """Return the margin that predicts held-out samples best, and their scores with it, in `most` epochs."""
        order, n_classes, n = rng.permutation(len(X)), int(targets.max()) + 1, len(X)
        folds, size = (_FOLDS, -(-n // _FOLDS)) if n <= _FOLDS * _MOST_HELD_OUT else (1, _MOST_HELD_OUT)
        right, scores = np.zeros(len(margins)), [np.zeros((0, n_classes)) for _ in margins]
        for fold in range(folds):
            test = order[fold * size : (fold + 1) * size]
            train = np.sort(np.delete(order, np.s_[fold * size : (fold + 1) * size]))
            sums = self._sums(X[train], weights[train])
            for i, margin in enumerate(margins):
                trainer = Trainer(X[train], targets[train], weights[train], self._start(n_classes, X))
                self._train(trainer, margin, np.random.default_rng(fold), most)
                exact = _directions(trainer.result()[0])
                found = products(X[test], exact)
                right[i] += weights[test] @ (_best(found) == targets[test])
                if sums is not None:
                    rounded = _directions(exact, self.prototype_bits)
                    found = products(X[test], rounded) + (exact - rounded) @ _mean(sums)
                scores[i] = np.vstack([scores[i], found])
        best, tested = int(np.argmax(right)), order[: folds * size]
        return margins[best], HeldOut(scores[best], targets[tested], weights[tested])

    @lazily
    def decision_function(self, X: npt.ArrayLike) -> Floats:
        """Return the scores of the classes, shape (n, n_classes): cosines to the prototypes, or predictions of ridge.

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

        They are the softmax of the scores times `sharpness_`, so the predicted class has the largest probability.
        `sharpness_` maximises the likelihood of training samples that were not learnt: with "ridge", at most 600, each
        left out in turn; otherwise those held out in 3-fold cross-validation, or 1000 of more than 3000.

        Only after `fit` with ``update="ridge"``, ``margin="auto"`` or ``probability=True``.
        """
        return probabilities(self._scores(X), self.sharpness_)

    @lazily
    def predict(self, X: npt.ArrayLike) -> npt.NDArray:
        """Return the label with the largest score, shape (n,); ties go to the first label in ``classes_``."""
        best = _best(self._scores(X))
        return self.classes_[best]

    @property
    def prototype_codes_(self) -> npt.NDArray:
        """Rounded prototypes, of `prototype_bits`: packed signs, uint8 (n_classes, ceil(d / 8)), or else int8."""
        check_is_fitted(self, "prototypes_")
        if self.bits_ is None:
            raise AttributeError("the prototypes are not rounded; set prototype_bits to 8, 4 or 1 before fit")
        rounded = _rounded(self.prototypes_, self.bits_)
        return np.packbits(rounded > 0, axis=1) if self.bits_ == 1 else rounded.astype(np.int8)

    def in_integers(self) -> tuple[npt.NDArray[np.int8], Floats, Floats, int]:
        """Return prototypes as whole numbers: (R, f, b, bits), of 8 bits if `prototype_bits` is None.

        The scores of a sample x of unit length are ``f * (R @ x) + b``, up to rounding; R has shape (n_classes, d), f
        and b have shape (n_classes,).
        """
        check_is_fitted(self, "prototypes_")
        bits = self.bits_ or 8
        exact = self._directions(rounded=False)
        whole = _rounded(exact, bits)
        squares = np.einsum("ij,ij->i", whole, whole)
        factors = np.einsum("ij,ij->i", exact, whole) / np.where(squares > 0, squares, 1.0)
        return whole.astype(np.int8), factors, self.intercept_.copy(), bits

    def in_floats(self) -> tuple[Floats, Floats]:
        """Return prototypes as they are scored: (R, b) of shapes (n_classes, d) and (n_classes,).

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

    def _directions(self, rounded: bool = True) -> Floats:
        """Return the vectors of `_directions` for the prototypes of this model."""
        return _directions(self.prototypes_, self.bits_ if rounded else None, self.update_ == "ridge")

    def _learnt(
        self, classes: npt.NDArray, trainer: Trainer, n_updates: list[int], margin: float, sums: Floats | None
    ) -> Self:
        prototypes, running, n_steps = trainer.result()
        self._store(classes, prototypes, n_updates)
        self._centre(sums)
        self.n_steps_ = n_steps
        if len(running) > 1:
            self.running_ = running
        if self.update_ == "margin":
            self.margin_ = margin
        return self

    def _store(self, classes: npt.NDArray, prototypes: Floats, n_updates: list[int]) -> Self:
        """Store the results of training and return the estimator."""
        for name in ("running_", "sums_"):
            if hasattr(self, name):
                delattr(self, name)
        self.classes_, self.prototypes_, self.intercept_ = classes, prototypes, np.zeros(len(classes))
        self.n_updates_, self.n_iter_, self.n_steps_ = n_updates, len(n_updates), 0
        self.bits_ = self.prototype_bits
        self.converged_ = bool(n_updates) and n_updates[-1] == 0
        self.margin_ = self.alpha_ = self.sharpness_ = None
        return self

    def _centre(self, sums: Floats | None) -> Self:
        """Set the intercepts such that rounding the prototypes does not change the scores of the mean sample."""
        if sums is not None:
            self.sums_ = sums
            self.intercept_ = (self._directions(rounded=False) - self._directions()) @ _mean(sums)
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
                raise ValueError(
                    "classes is missing; the first call of partial_fit needs all labels that any batch may hold"
                )
            known = np.unique(checked_labels(classes, len(np.asarray(classes))))
            check_two_classes(known, "classes")
            return known
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes={classes!r} differ from those learnt before, {self.classes_.tolist()}")
        return self.classes_

    def _check_parameters(self) -> None:
        if self.update not in _UPDATES:
            raise ValueError(f"update must be one of {', '.join(map(repr, _UPDATES))}, got {self.update!r}")
        if self.prototype_bits not in (None, 1, 4, 8) or isinstance(self.prototype_bits, bool):
            raise ValueError(f"prototype_bits must be None, 8, 4 or 1, got {self.prototype_bits!r}")
        margin, is_auto = self.margin, isinstance(self.margin, str) and self.margin == "auto"
        if not is_auto and (isinstance(margin, bool) or not isinstance(margin, Real) or not 0 <= margin <= 2):
            raise ValueError(f"margin must be 'auto' or a number in [0, 2], got {margin!r}")
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            check_positive(self.alpha, "alpha", hint='; or "auto"')
        if self.init not in ("zeros", "bundle"):
            raise ValueError(f"init must be 'zeros' or 'bundle', got {self.init!r}")
        if not isinstance(self.probability, bool | np.bool_):
            raise ValueError(f"probability must be True or False, got {self.probability!r}")
        check_positive_int(self.max_iter, "max_iter", minimum=0)
        if self.max_iter == 0 and self.init == "zeros":
            raise ValueError("max_iter=0 learns nothing from init='zeros', use init='bundle'")
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 1e-50 <= rate <= 1e50:
            raise ValueError(f"learning_rate must be a number in [1e-50, 1e50], got {rate!r}")


def _bundles(codes: npt.NDArray, start: int, targets: npt.NDArray, n_classes: int) -> tuple[Floats, Floats]:
    """Return the sum of the samples of each class, with bits as ±1, and `_sums`, for one part of a Dask collection."""
    codes, weights = as_hypervectors(codes), np.ones(len(codes))
    trainer = Trainer(codes, targets, weights, np.zeros((1, n_classes, dimension(codes))))
    trainer.bundle()
    return trainer.result()[0], _sums(codes, weights)


def _sums(X: npt.NDArray, weights: Floats, before: Floats | None = None) -> Floats:
    """Return the weighted sum of the samples of unit length, then the sum of the weights, added to those `before`."""
    sums = np.zeros(dimension(X) + 1) if before is None else before.copy()
    sums[:-1] = add_samples(X, weights[:, None], sums[None, :-1])[0]
    sums[-1] += weights.sum()
    return sums


def _mean(sums: Floats) -> Floats:
    """Return the weighted mean of the samples of unit length, from `_sums`."""
    return sums[:-1] / (sums[-1] or 1.0)


def _directions(prototypes: Floats, bits: int | None = None, ridge: bool = False) -> Floats:
    """Return the vectors, (n_classes, d), whose products with a sample of unit length are its scores.

    They are the prototypes, scaled to length 1 but for `ridge`. With `bits`, each is projected on its rounded
    prototype.
    """
    exact = small_rows_up(prototypes)
    exact = exact if ridge else of_unit_length(exact)
    if bits is None:
        return exact
    units = of_unit_length(_rounded(exact, bits))
    return units * np.einsum("ij,ij->i", exact, units)[:, None]


def _rounded(prototypes: Floats, bits: int) -> Floats:
    """Return whole numbers that fit into `bits`, proportional to each prototype as nearly as possible, or its signs.

    The sign of 0 is +1, also if rounding errors make the 0 a tiny number, as ridge does for a bit that all samples
    share: its sign would depend on the processor.
    """
    largest = np.abs(prototypes).max(axis=1, keepdims=True)
    if bits == 1:
        return np.where(prototypes >= -_ZERO * largest, 1.0, -1.0)
    return np.rint(prototypes / np.where(largest > 0, largest, 1.0) * (2 ** (bits - 1) - 1))


def _best(scores: Floats) -> npt.NDArray[np.intp]:
    """Return the index of the largest score in each row; of scores that differ by less than `TIE`, the first."""
    from similia.learn._hd_classifier import TIE

    return np.argmax(scores >= scores.max(axis=1, keepdims=True) - TIE, axis=1)


def _classes(y: Any, n: int) -> tuple[npt.NDArray, npt.NDArray[np.int64]]:
    """Return the sorted classes and each label's position in them; raise if `y` is invalid or holds one class."""
    labels = checked_labels(y, n, two=True)
    check_classification_targets(labels)
    classes, targets = np.unique(labels, return_inverse=True)
    return classes, targets


def _positions(y: npt.NDArray, classes: npt.NDArray) -> npt.NDArray[np.int64]:
    """Return the position of each label in the sorted `classes`; raise for a label that is not among them."""
    unseen = ~np.isin(y, classes)
    if unseen.any():
        i = int(np.argmax(unseen))
        found = f"is {y.tolist()[i]!r}, not one of the classes {classes.tolist()} of the first call"
        raise BadValue(i, found, remedy="start a new HDClassifier with all of them", collection="y")
    return np.searchsorted(classes, y)
