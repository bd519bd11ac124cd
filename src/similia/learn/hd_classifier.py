r"""A classifier of hypervectors by one prototype for each class, learnt by perceptrons or by ridge regression.

Perceptron (NysHD, Algorithm 1): for each sample x of class y, in the order of the epoch, let q_j = cos(H_j, x), where
H_j is the prototype of class j (q_j = 0 if either is zero), and let p be the class with the largest q_j (the first
class on ties). If p differs from y::

    H_y += learning_rate (1 - q_y) x        H_p -= learning_rate (1 - q_p) x

Later samples see the corrected prototypes. With a margin m > 0, p is the best of the other classes, and the same
corrections are made if q_y - q_p < m. The mean of the prototypes after each sample generalises better than the last
prototypes (Freund & Schapire, 1999). Cost: one pass over d numbers per class and sample, two more per correction, or
four for the mean. Packed bits are expanded one sample at a time.
"""

from __future__ import annotations

from functools import partial
from numbers import Real
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets

from similia.core.config import track
from similia.core.estimators import all_at_once, check_columns, offered_if
from similia.core.state import array, count, labels, one_of, optional, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    check_choice,
    check_positive,
    check_positive_int,
    generator,
    numbered,
    warn_user,
)
from similia.learn.prototypes import (
    ByPrototypes,
    HeldOut,
    Trainer,
    as_hypervectors,
    best,
    check_dimension,
    dimension,
    directions,
    mean_of,
    products,
    small_rows_up,
    squared_norms,
    unit_sums,
)
from similia.learn.targets import (
    check_two_classes,
    checked_labels,
    checked_weights,
    classes_of,
    positions_among,
    weights_of_classes,
)
from similia.sources.dask import Distributed, from_parts

Floats = npt.NDArray[np.float64]

_LEARNT = ("perceptron", "averaged", "margin", "ridge")
_MARGINS = (0.2, 0.1, 0.05, 0.02, 0.0)  # cosines tried by margin="auto"
_FOLDS, _MOST_HELD_OUT = 3, 1000  # up to 3 x 1000 samples are split into 3 folds; of more, 1000 are held out once
_EPOCHS = 5  # maximum number of epochs for each margin that "auto" tries


def _check_parts(model: Any) -> None:
    """Raise AttributeError if a parameter of the model needs all samples at once, so that `partial_fit` cannot work."""
    if model.update in ("ridge", "auto"):
        raise AttributeError(
            f"update={model.update!r} needs all samples at once; for partial_fit, take 'averaged' or 'perceptron'"
        )
    if model.update == "margin" and isinstance(model.margin, str):
        raise AttributeError("margin='auto' needs all samples at once; for partial_fit, give a number, such as 0.05")
    if model.probability:
        raise AttributeError("probability=True needs all samples at once; for partial_fit, take probability=False")


@state(
    may_lack=["running_", "sums_"], update_=one_of(*_LEARNT), classes_=labels("c"), n_features_in_=count(least=1),
    prototypes_=array("f8", "c", "d"), intercept_=array("f8", "c"), sharpness_=optional("number"),
    running_=array("f8", 2, "c", "d"), sums_=array("f8", None), bits_=optional(count(least=1)),
)  # fmt: skip
class HDClassifier(ByPrototypes):
    r"""Classifier with one prototype hypervector per class.

    A hypervector is a long vector of d numbers, often signs ±1. `predict` returns the class whose prototype is most
    similar to a given hypervector. `fit` learns prototypes from labelled hypervectors, called samples. All training
    rules (see `update`) except ridge regression are perceptrons: they visit the samples in several epochs (passes). If
    the prototype most similar to a sample x belongs to the wrong class, two prototypes are corrected: the prototype of
    the wrong class moves away from x, and the prototype of the right class moves towards x. To move a prototype, the
    rule subtracts or adds learning_rate (1 - q) x, where q is the cosine of x and this prototype.

    Parameters
    ----------
    update : {"perceptron", "averaged", "margin", "ridge", "auto"}, default="perceptron"
        How prototypes are learnt:

        - "perceptron": corrections after wrong predictions, as in Zhao et al. The result is the prototypes after the
          last sample.
        - "averaged": the same corrections, but the result is the mean of the prototypes over all visits to samples. The
          mean predicts more accurately and takes little more time.
        - "margin": like "averaged", but prototypes are also corrected if the right class leads by less than `margin`.
        - "ridge": ridge regression that predicts the classes from the samples. The samples are scaled to unit length;
          there is an intercept, and there are no epochs. "ridge" is as accurate as a tuned linear support vector
          machine on the same bits. If the number of samples n is at least 0.8 d, time grows with n d^2 and memory with
          d^2. If n is below 0.8 d, time grows with n^3 and memory with n^2. There is one exception: if n is below 0.8 d
          and `fit` gets thousands of packed samples of few classes, it usually uses conjugate gradients, whose time
          grows only with n d.
        - "auto": "ridge" if there are fewer samples than dimensions d, otherwise "margin".

        Use "averaged" if samples come in batches, "perceptron" to compare with Zhao et al., and otherwise "auto".
    init : {"zeros", "bundle"}, default="zeros"
        Prototypes before the first epoch. "zeros": vectors of zeros, as in Algorithm 1 in the supplement of Zhao et al.
        "bundle": the sum of the samples of each class, as in their main text. "ridge" does not use this parameter.
    max_iter : int, default=20
        Maximum number of epochs. Training stops after an epoch without a correction, because later epochs would change
        nothing either. With ``init="bundle"``, `max_iter` may be 0: each prototype is then the sum of the samples of
        its class.
    learning_rate : float, default=0.5
        Factor of all corrections, in [1e-50, 1e50]. With ``init="zeros"``, the learning rate needs no tuning: it scales
        all prototypes alike, and predictions do not depend on the scale of the prototypes.
    margin : float or "auto", default="auto"
        With ``update="margin"``: number in [0, 2]. A sample leads to a correction unless its cosine with the prototype
        of its own class exceeds its cosines with all other prototypes by at least this number. "auto" tries 0, 0.02,
        0.05, 0.1 and 0.2, each for up to 5 epochs, and chooses the most accurate one in 3-fold cross-validation or, if
        there are more than 3000 samples, on 1000 held-out samples.
    alpha : float or "auto", default="auto"
        With ``update="ridge"``: the regularisation, above 0; values from 0.1 to 1 are usual for any d. "auto" chooses
        the value with the smallest squared leave-one-out error on up to 600 samples.
    shuffle : bool, default=True
        Whether `fit` visits the samples in a new random order in each epoch; False keeps the given order.
    class_weight : dict of label to float, "balanced" or None, default=None
        For each class, a factor that multiplies the weights of its samples. "balanced" gives all classes the same total
        weight if no `sample_weight` is given.
    prototype_bits : {None, 8, 4, 1}, default=None
        Number of bits of each entry of the prototypes in predictions; training always uses float64. None: float64. 8 or
        4: each prototype is scaled and rounded to integers, whose absolute values are at most 127 for 8 bits and 7 for
        4 bits. 1: only the signs are kept; packed samples are compared with them by Hamming distance. For 8, 4 and 1
        bits, `intercept_` corrects the scores so that each class keeps its mean score over the training samples. The
        page "Bits" of the guide gives the loss of accuracy.
    probability : bool, default=False
        Whether to enable `predict_proba`; `fit` then trains up to three more models on parts of the samples. With ridge
        regression, or with ``update="margin"`` and ``margin="auto"``, `predict_proba` is always available, and `fit`
        trains no more models for it.
    random_state : int, Generator, RandomState or None, default=None
        Source of randomness for the order of the samples in each epoch, and for drawing the samples with which
        `margin`, `alpha` and `sharpness_` are chosen.

    Attributes
    ----------
    classes_ : ndarray (n_classes,)
        Labels, sorted.
    prototypes_ : ndarray of float64 (n_classes, d)
        Learnt prototypes, before rounding to `prototype_bits`.
    intercept_ : ndarray of float64 (n_classes,)
        Constants that are added to the scores of the classes: 0, except with ``update="ridge"`` or `prototype_bits`.
    update_ : str
        The update used, never "auto".
    margin_, alpha_ : float or None
        The margin and the regularisation used; each is None if `update_` does not use it.
    sharpness_ : float or None
        Factor by which `predict_proba` multiplies the scores; None if the model has no `predict_proba`.
    prototype_codes_ : ndarray of uint8 (n_classes, ceil(d / 8)) or int8 (n_classes, d)
        The rounded prototypes, only with `prototype_bits`: packed signs for 1 bit, otherwise integers. Predictions on a
        small device need only the rounded prototypes, `intercept_` and a scale factor for each class; the method
        `in_integers` returns these three. A saved model contains `prototypes_`, too, so rounding does not make it
        smaller.
    running_ : ndarray of float64 (2, n_classes, d)
        State of `partial_fit`, only with "averaged" and "margin". ``running_[0]`` holds the prototypes after the last
        sample. ``running_[1]`` is the sum of all corrections, each multiplied by the number of samples visited before
        the correction. The mean of the prototypes is ``running_[0] - running_[1] / n_steps_``.
    sums_ : ndarray of float64 (d + 1,)
        State of `partial_fit`, only with `prototype_bits`: the weighted sum of the samples, each scaled to unit length;
        the last entry is the sum of the weights.
    bits_ : int or None
        The `prototype_bits` used.
    n_updates_ : list of int
        For each epoch, the number of samples that led to a correction; [0] for ridge. `partial_fit` appends one number,
        unless `max_iter` is 0.
    n_iter_, n_steps_ : int
        Number of epochs, and number of samples visited in all epochs together.
    converged_ : bool
        Whether the last epoch made no correction.
    n_features_in_ : int
        Number of columns of the training data: the number of bytes for packed bits, d otherwise.

    Notes
    -----
    Samples of dtype uint8 are packed bits: each byte holds 8 dimensions, bit 1 for +1 and bit 0 for -1. Samples of any
    other integer or float dtype hold one dimension per column. A fitted classifier accepts both kinds if the number of
    dimensions agrees. Sums are computed in float64. Scores that differ by less than 1e-12 count as equal, so ties do
    not depend on the processor or the learning rate.

    The prototypes of the perceptrons depend on the order of the samples. With ``init="zeros"``, they do not depend on
    how a sequence of samples is divided into batches for `partial_fit`. With ``init="bundle"``, they also depend on
    which samples are in the first batch, unless `max_iter` is 0.

    The norm of a sample must be below 1e75. There is no lower limit, with one exception: the perceptrons raise an error
    if another sample, or a prototype, is 1e100 times as long as a nonzero sample.

    References
    ----------
    Zhao, Thomas, Brin, Yu & Rosing, "Bridging the gap between hyperdimensional computing and kernel methods via the
    Nyström method" (NysHD), supplement, Algorithm 1; the last line of its pseudo-code has a misplaced parenthesis, and
    this class implements the intended correction. Hernández-Cano et al., "OnlineHD: Robust, efficient, and single-pass
    online learning using hyperdimensional system", DATE 2021. Freund & Schapire, "Large margin classification using the
    perceptron algorithm", Machine Learning 37, 1999 (averages). Guo et al., "On calibration of modern neural networks",
    ICML 2017, section 4.2, temperature scaling, whose 1 / T is `sharpness_`. Platt, "Probabilistic outputs for support
    vector machines", Advances in Large Margin Classifiers, 1999, section 2.2 (smoothed targets).

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
        """Learn prototypes from n hypervectors and their labels.

        Parameters
        ----------
        X : array (n, d / 8) of uint8, or (n, d) of any other integer or float dtype
            Packed bits, or one column for each dimension.
        y : array-like (n,)
            Labels, of at least two classes.
        sample_weight : array-like (n,), optional
            Numbers of at least 0 that multiply the corrections, or the squared errors of ridge. Samples of weight 0 are
            left out; classes whose samples all have weight 0 are left out, too. Every other weight, times the weight of
            its class in `class_weight`, must be in [1e-50, 1e50], both before and after multiplication by
            `learning_rate`.
        """
        self._check_parameters()
        if isinstance(X, Distributed):
            return self._fit_parts(X, y, sample_weight)
        given, X = X, as_hypervectors(X)
        check_columns(self, given, reset=True)
        if X.dtype == np.uint8 and X.shape[1] >= 16 and X[:100].max() <= 1:
            warn_user(
                "X is uint8 and is read as packed bits, but holds only 0 and 1; if each number is one bit, give "
                "np.packbits(X, axis=1)"
            )
        known, targets = classes_of(y, len(X))
        weights = checked_weights(sample_weight, len(X))
        rows = np.flatnonzero(weights)
        left, targets = np.unique(targets[rows], return_inverse=True)
        classes = known[left]
        check_two_classes(classes, "y without the samples of weight 0")
        if len(rows) < len(X):
            X, weights = X[rows], weights[rows]
        weights = weights * weights_of_classes(self.class_weight, classes[targets], known)
        _check_size(weights, self.learning_rate)
        with numbered(rows):
            return self._fit_rows(X, classes, targets, weights)

    def _fit_rows(self, X: npt.NDArray, classes: npt.NDArray, targets: npt.NDArray, weights: Floats) -> Self:
        """Fit to checked samples, all of weights above 0."""
        rng = generator(self.random_state)
        self.update_ = self.update
        if self.update == "auto":
            self.update_ = "ridge" if len(X) < dimension(X) else "margin"
        if self.update_ == "ridge":
            return self._fit_ridge(X, classes, targets, weights, rng)
        trainer = Trainer(X, targets, weights, self._start(len(classes), X))  # raises for samples of a wrong length
        margin, held_out = 0.0, None
        if self.update_ == "margin" and self.margin == "auto":
            margin, held_out = self._best_margin(X, targets, weights, _MARGINS, rng, _EPOCHS)
        elif self.update_ == "margin":
            margin = float(self.margin)
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
        bits = self.prototype_bits
        rounding = None if bits is None else partial(directions, bits=bits, ridge=True)
        found = ridge.fit(X, targets, len(classes), weights, alpha, rng, rounding)
        self._store(classes, found.prototypes, [0])
        self.alpha_, self.sharpness_ = found.alpha, found.held_out.sharpness()
        self.intercept_ = found.shares - self._directions() @ found.mean
        return self

    def _fit_parts(self, X: Distributed, y: npt.ArrayLike, sample_weight: npt.ArrayLike | None) -> Self:
        """Fit to a Dask collection, in one pass if sums of packed bits suffice, else from a local copy."""
        one_pass = self.update == "perceptron" and self.max_iter == 0 and not self.probability
        example = X.example() if one_pass and sample_weight is None and self.class_weight is None else None
        if example is None or as_hypervectors(example).dtype != np.uint8:
            with X.spooled() as rows:
                self.fit(rows, y, sample_weight)
            check_columns(self, X.example(), reset=True)
            return self
        classes, targets = classes_of(y, len(X))
        check_columns(self, example, reset=True)
        self.update_ = self.update
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
        """Train for one pass over a batch of hypervectors (samples) in the given order; keep what was learnt before.

        With ``init="bundle"``, the first call adds the samples to the prototypes of their classes before the pass. With
        ``init="bundle", max_iter=0``, each call only adds its samples, without corrections, so several batches give the
        same result as one `fit` on all samples. Other values of `max_iter` have no effect here.

        Each batch should contain all classes in random order, because the model learns little from samples sorted by
        class. Several passes over the data, with one call for each batch, reach nearly the accuracy of `fit`. The
        method does not exist for ``update="ridge"``, ``update="auto"``, ``margin="auto"`` with ``update="margin"``, or
        ``probability=True``.

        After `partial_fit`, the model has no `predict_proba`, because no samples are held out to calibrate it. To get
        probabilities, calibrate the model with scikit-learn on samples that `partial_fit` has not seen:
        ``CalibratedClassifierCV(FrozenEstimator(model)).fit(X_others, y_others)``.

        Parameters
        ----------
        X : array (n, d / 8) of uint8, or (n, d) of any other integer or float dtype
            Packed bits, or one column for each dimension.
        y : array-like (n,)
            Labels; a batch may lack some classes.
        classes : array-like (n_classes,), optional
            The labels that any batch may hold. Required at the first call; later calls may repeat the same labels.
        sample_weight : array-like (n,), optional
            Numbers of at least 0 that multiply the corrections. Samples of weight 0 are left out.
        """
        self._check_parameters()
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all samples at once; for partial_fit, give a dictionary")
        first = not hasattr(self, "prototypes_")
        given = X
        if first:
            self.update_ = self.update
            X = as_hypervectors(X)
            check_columns(self, given, reset=True)
        else:
            self._check_unchanged()
            check_columns(self, given, reset=False)  # wrong names are reported before wrong numbers
            X = as_hypervectors(X)
        y = checked_labels(y, len(X))
        check_classification_targets(y)
        known = self._known_classes(classes)
        targets = positions_among(y, known)
        weights = checked_weights(sample_weight, len(X)) * weights_of_classes(self.class_weight, y, known)
        if first:
            start, n_updates = self._start(len(known), X), []
        else:
            check_dimension(X, self._learnt_dimension(), self)
            start = self.prototypes_[None] if self.update_ == "perceptron" else self.running_
            n_updates = list(self.n_updates_)
        _check_size(weights, self.learning_rate)
        sums = self._sums(X, weights, None if first or self.prototype_bits is None else self.sums_)
        trainer = Trainer(X, targets, weights, start, 0 if first else self.n_steps_)
        if self.init == "bundle" and (first or self.max_iter == 0):
            trainer.bundle()
        margin = float(self.margin) if self.update == "margin" else 0.0
        if self.max_iter > 0:
            n_updates.append(trainer.epoch(np.flatnonzero(weights), self.learning_rate, margin))
        return self._learnt(known, trainer, n_updates, margin, sums)

    def _sums(self, X: npt.NDArray, weights: Floats, before: Floats | None = None) -> Floats | None:
        """Return `sums_` after the samples `X`, given the sums `before` them; None if prototypes are not rounded."""
        return None if self.prototype_bits is None else unit_sums(X, weights, before)

    def _start(self, n_classes: int, X: npt.NDArray) -> Floats:
        """Return zeros for a `Trainer` to start from: prototypes and, unless for "perceptron", the sums for a mean."""
        return np.zeros((1 if self.update_ == "perceptron" else 2, n_classes, dimension(X)))

    def _check_unchanged(self) -> None:
        """Raise if a parameter differs from the one that the samples seen before were learnt with."""
        if self.update_ != self.update:
            raise ValueError(f"the model was learnt with update={self.update_!r}; start a new HDClassifier")
        if self.bits_ != self.prototype_bits:
            raise ValueError(f"the model was learnt with prototype_bits={self.bits_}; start a new HDClassifier")

    def _best_margin(
        self, X: npt.NDArray, targets: npt.NDArray, weights: Floats, margins: tuple[float, ...],
        rng: np.random.Generator, most: int | None = None,
    ) -> tuple[float, HeldOut]:  # fmt: skip
        """Return the most accurate of `margins`, trained for up to `most` epochs, and its held-out scores."""
        order, n_classes, n = rng.permutation(len(X)), int(targets.max()) + 1, len(X)
        all_in_turn = n <= _FOLDS * _MOST_HELD_OUT
        size = -(-n // _FOLDS) if all_in_turn else _MOST_HELD_OUT
        folds = -(-n // size) if all_in_turn else 1  # 2 or 4 samples fill only two folds
        right, scores = np.zeros(len(margins)), [np.zeros((0, n_classes)) for _ in margins]
        for fold in range(folds):
            test = order[fold * size : (fold + 1) * size]
            train = np.sort(np.delete(order, np.s_[fold * size : (fold + 1) * size]))
            sums = self._sums(X[train], weights[train])
            for i, margin in enumerate(margins):
                trainer = Trainer(X[train], targets[train], weights[train], self._start(n_classes, X))
                self._train(trainer, margin, np.random.default_rng(fold), most)
                exact = directions(trainer.result()[0])
                found = products(X[test], exact)
                right[i] += weights[test] @ (best(found) == targets[test])
                if sums is not None:
                    coarse = directions(exact, self.prototype_bits)
                    found = products(X[test], coarse) + (exact - coarse) @ mean_of(sums)
                scores[i] = np.vstack([scores[i], found])
        i, tested = int(np.argmax(right)), order[: folds * size]
        return margins[i], HeldOut(scores[i], targets[tested], weights[tested])

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
        """Set the intercepts so that the mean sample has the same scores as with prototypes that are not rounded."""
        if sums is not None:
            self.sums_ = sums
            self.intercept_ = (self._directions(exact=True) - self._directions()) @ mean_of(sums)
        return self

    def _known_classes(self, classes: npt.ArrayLike | None) -> npt.NDArray:
        if classes is not None and np.ndim(classes) != 1:
            raise BadParameter("classes", "a list or array of labels", short(classes))
        if not hasattr(self, "prototypes_"):
            if classes is None:
                raise ValueError(
                    "classes is missing; the first call of partial_fit needs the labels of all batches to come"
                )
            known = np.unique(checked_labels(classes, len(np.asarray(classes))))
            check_two_classes(known, "classes")
            return known
        if classes is not None and not np.array_equal(np.unique(np.asarray(classes)), self.classes_):
            raise ValueError(f"classes={classes!r} differs from the first call, which gave {self.classes_.tolist()}")
        return self.classes_

    def _check_parameters(self) -> None:
        check_choice(self.update, "update", (*_LEARNT, "auto"))
        if self.prototype_bits not in (None, 1, 4, 8) or isinstance(self.prototype_bits, bool):
            raise ValueError(f"prototype_bits must be None, 8, 4 or 1, got {self.prototype_bits!r}")
        margin, is_auto = self.margin, isinstance(self.margin, str) and self.margin == "auto"
        if not is_auto and (isinstance(margin, bool) or not isinstance(margin, Real) or not 0 <= margin <= 2):
            raise ValueError(f"margin must be 'auto' or a number in [0, 2], got {margin!r}")
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            check_positive(self.alpha, "alpha", hint='; or "auto"')
        check_choice(self.init, "init", ("zeros", "bundle"))
        if not isinstance(self.probability, bool | np.bool_):
            raise ValueError(f"probability must be True or False, got {self.probability!r}")
        check_positive_int(self.max_iter, "max_iter", minimum=0)
        if self.max_iter == 0 and self.init == "zeros":
            raise ValueError("max_iter=0 learns nothing with init='zeros'; take init='bundle' or a larger max_iter")
        rate = self.learning_rate
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 1e-50 <= rate <= 1e50:
            raise ValueError(f"learning_rate must be a number in [1e-50, 1e50], got {rate!r}")


def _check_size(weights: Floats, rate: float) -> None:
    """Raise if squares of corrections by these weights might be too small or large for float64."""
    for weight in (weights[weights > 0].min(initial=weights.max()), weights.max()):
        if not all(1e-50 <= size <= 1e50 for size in (weight, weight * rate)):
            found = f"is {weight:.3g} for a sample, times learning_rate {weight * rate:.3g}"
            raise ValueError(f"sample_weight times class_weight {found}, expected numbers in [1e-50, 1e50]")


def _bundles(codes: npt.NDArray, start: int, targets: npt.NDArray, n_classes: int) -> tuple[Floats, Floats]:
    """Return the sum of the samples of each class, and their `unit_sums`, for one part of a Dask collection."""
    codes, weights = as_hypervectors(codes), np.ones(len(codes))
    trainer = Trainer(codes, targets, weights, np.zeros((1, n_classes, dimension(codes))))
    trainer.bundle()
    return trainer.result()[0], unit_sums(codes, weights)
