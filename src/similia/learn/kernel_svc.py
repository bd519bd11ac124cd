r"""A support-vector machine straight on objects, with any kernel.

.. math:: f(x) = \sum_i \alpha_i y_i\, k(x_i, x) + b, \qquad 0 \le \alpha_i \le C,

trained by libsvm on the n x n Gram matrix of the training objects; only the support vectors are kept, as objects.

Cost: n^2 kernel values and libsvm's O(n^2) to O(n^3); a prediction takes as many kernel values as there are support
vectors, in blocks of rows. Memory: 8 n^2 bytes in `fit`, which is refused where it does not fit.

Paper: Cortes & Vapnik, "Support-vector networks", Machine Learning 20, 1995; the solver is libsvm's.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.svm import SVC
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from similia.core.fitting import all_at_once
from similia.core.validation import check_positive
from similia.learn._heat_svc import check_pairs_fit, coded, confidences, fit_machine, most_confident
from similia.learn.heat_svc import _checked_labels
from similia.learn.kernel_machine import KernelMachine
from similia.objects import n_objects, take
from similia.sources.lazily import lazily

_FOLDS = 5  # of the calibration


def _has_probability(machine: KernelSVC) -> bool:
    """Return whether there is `predict_proba`, or raise AttributeError with what to do."""
    if not machine.probability:
        raise AttributeError("predict_proba needs KernelSVC(..., probability=True); decision_function needs nothing")
    return True


class KernelSVC(ClassifierMixin, KernelMachine):
    r"""Support-vector classifier of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        ``k(X, Y=None) -> (n, m)``: a kernel of `similia.kernels` or `similia.adapters`, a combination of such, or
        `similia.pairwise` of a function. ``similia.kernels.DistanceRBF(distance)`` makes one of a distance.
    C : float, default=1.0
        Inverse regularisation, above 0.
    class_weight : dict of label to float, or "balanced", optional
        As in scikit-learn's SVC.
    probability : bool, default=False
        Whether `predict_proba` is there. The fit then takes at most five more fits on parts of the Gram matrix, as
        ``CalibratedClassifierCV(SVC(), ensemble=False)`` does, which scikit-learn recommends.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
    kernel_ : callable
        The kernel, with what it leaves to the data decided by the training objects.
    support_ : ndarray of int64, shape (n_support,)
        Positions of the training objects that the classifier keeps.
    support_objects_ : collection of n_support objects
        These, in the layout the kernel works on.
    pair_coef_, pair_intercept_ : ndarray of float64, shapes (n_pairs, n_support) and (n_pairs,)
        One-vs-one machines, for the pairs of classes (0, 1), (0, 2), ..., (1, 2), ...: positive for the first class.
    calibration_ : ndarray of float64, shape (1, 2) or (n_classes, 2), or None
        With `probability`: (a, b) of the sigmoids 1 / (1 + exp(a f + b)) of the columns f of `decision_function`.
    n_features_in_ : int
        Only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, `y` has one class or holds
        fractions, a kernel value is not finite, a parameter is out of range, or with `probability` a class has one
        object only.
    TypeError
        If `kernel` is a distance or cannot be called.

    Notes
    -----
    Where the kernel is not positive semi-definite (`DistanceRBF` of DTW), libsvm ends in a stationary point, which need
    not be the optimum; `similia.Nystroem` with ``spectrum="clip"`` and a linear machine is the way without that doubt.

    A kernel whose values grow with the size of objects wants ``normalize=True``; C means little otherwise.

    Predictions follow `decision_function`, as those of ``SVC(break_ties=True)`` do; close to the border between two
    classes the most probable one may be the other. Within the default ``max_memory`` of 1 GiB there is room for 11,500
    objects; more take ``make_pipeline(Nystroem(kernel), LinearSVC())``.

    References
    ----------
    Cortes & Vapnik, "Support-vector networks", Machine Learning 20, 1995. Platt, "Probabilistic outputs for support
    vector machines", Advances in Large Margin Classifiers, 1999 (the sigmoids).

    Examples
    --------
    >>> from similia.kernels import Spectrum
    >>> from similia.learn.kernel_svc import KernelSVC
    >>> X, y = ["ACACAC", "CACACA", "GGTTGG", "TTGGTT"], ["repeat", "repeat", "pairs", "pairs"]
    >>> KernelSVC(Spectrum(k=2, normalize=True)).fit(X, y).predict(["ACACACAC", "GGTT"])
    array(['repeat', 'pairs'], dtype='<U6')
    """

    def __init__(self, kernel: Any, C: float = 1.0, class_weight: Any = None, probability: bool = False) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight
        self.probability = probability

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix and fit the classifier.

        Parameters
        ----------
        X : sequence of n objects
        y : array-like of n labels

        Returns
        -------
        KernelSVC
            The fitted estimator itself.
        """
        C = check_positive(self.C, "C")
        kernel, objects, n = self._read(X)
        codes, classes, class_weight = coded(_checked_labels(y, n), self.class_weight)
        check_pairs_fit(len(classes), n)
        K = self._gram(kernel, objects, n)
        machine = fit_machine(K, codes, C, class_weight)
        calibration = _sigmoids(K, codes, classes, C, class_weight) if self.probability else None
        self.classes_, self.kernel_, self.calibration_ = classes, kernel, calibration
        self.support_ = machine.support
        self.support_objects_ = take(objects, machine.support)
        self.pair_coef_, self.pair_intercept_ = machine.weights, machine.intercepts
        return self

    @lazily
    def decision_function(self, X: Any) -> npt.NDArray[np.float64]:
        """Return confidences, shape (m,) for two classes (above 0: the second one), else (m, n_classes).

        Parameters
        ----------
        X : sequence of m objects
        """
        check_is_fitted(self)
        weights, intercepts, n_classes = self.pair_coef_, self.pair_intercept_, len(self.classes_)
        widest = len(intercepts) + 2 * n_classes
        of = partial(confidences, weights=weights, intercepts=intercepts, n_classes=n_classes)
        return self._over_blocks(X, self.support_objects_, of, widest)

    @available_if(_has_probability)
    @lazily
    def predict_proba(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the probability of each class, shape (m, n_classes); only with ``probability=True``.

        Parameters
        ----------
        X : sequence of m objects
        """
        check_is_fitted(self)
        if self.calibration_ is None:
            raise NotFittedError("this KernelSVC was fitted with probability=False; fit it again")
        decisions = self.decision_function(X).reshape(n_objects(X), -1)
        shares = expit(-(self.calibration_[:, 0] * decisions + self.calibration_[:, 1]))
        if len(self.classes_) == 2:
            return np.hstack([1.0 - shares, shares])
        sums = shares.sum(axis=1, keepdims=True)
        return np.divide(shares, sums, out=np.full_like(shares, 1 / shares.shape[1]), where=sums > 0)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label predicted for each object, shape (m,).

        Parameters
        ----------
        X : sequence of m objects
        """
        confidence = self.decision_function(X)
        return self.classes_[most_confident(confidence)]


def _sigmoids(
    K: npt.NDArray[np.float64], codes: npt.NDArray, classes: npt.NDArray, C: float, class_weight: Any
) -> npt.NDArray[np.float64]:
    """Return (a, b) of the sigmoid of each column of the decision, fitted to decisions out of fold."""
    counts = np.bincount(codes)
    if counts.min() < 2:
        rare = classes[counts.argmin()]
        raise ValueError(
            f"class {rare!s} has one object, and probability=True needs two or more of each class; drop that class, or "
            "take probability=False"
        )
    svc = SVC(kernel="precomputed", C=C, class_weight=class_weight, random_state=0)  # None would draw from numpy's
    calibrated = CalibratedClassifierCV(svc, ensemble=False, cv=int(min(_FOLDS, counts.min()))).fit(K, codes)
    return np.array([[c.a_, c.b_] for c in calibrated.calibrated_classifiers_[0].calibrators], dtype=np.float64)
