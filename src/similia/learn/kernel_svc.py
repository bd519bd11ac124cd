r"""A support-vector machine straight on objects, with any kernel.

.. math:: f(x) = \sum_i \alpha_i y_i\, k(x_i, x) + b, \qquad 0 \le \alpha_i \le C,

trained by libsvm on the n x n Gram matrix of the training objects; only the support vectors are kept, as objects.

Cost: n^2 kernel values and libsvm's O(n^2) to O(n^3); a prediction takes as many kernel values as there are support
vectors, in blocks of rows. Memory: 8 n^2 bytes in `fit`, which is refused where it does not fit.

Paper: Cortes & Vapnik, "Support-vector networks", Machine Learning 20, 1995; the solver is libsvm's.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from similia._config import rows_per_block, settings
from similia._lazily import lazily, refuse_lazy
from similia._validation import check_positive
from similia.embeddings._gram import check_finite
from similia.kernels._evaluate import check_kernel, decided, evaluate, read_objects, takes_sparse
from similia.learn._heat_svc import coded, confidences, fit_machine, most_confident
from similia.learn.heat_svc import _checked_labels
from similia.objects import take
from similia.objects._sequences import at_least_one


class KernelSVC(ClassifierMixin, BaseEstimator):
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
    n_features_in_ : int
        Only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, `y` has one class or holds
        fractions, a kernel value is not finite, or a parameter is out of range.
    TypeError
        If `kernel` is a distance or cannot be called.

    Notes
    -----
    Where the kernel is not positive semi-definite (`DistanceRBF` of DTW), libsvm ends in a stationary point, which need
    not be the optimum; `similia.Nystroem` with ``spectrum="clip"`` and a linear machine is the way without that doubt.

    A kernel whose values grow with the size of objects wants ``normalize=True``; C means little otherwise.

    Predictions follow `decision_function`, as those of ``SVC(break_ties=True)`` do. For probabilities wrap the
    classifier into scikit-learn's ``CalibratedClassifierCV``. Within the default ``max_memory`` of 1 GiB there is room
    for 11,500 objects; more take ``make_pipeline(Nystroem(kernel), LinearSVC())``.

    References
    ----------
    Cortes & Vapnik, "Support-vector networks", Machine Learning 20, 1995.

    Examples
    --------
    >>> from similia.kernels import Spectrum
    >>> from similia.learn.kernel_svc import KernelSVC
    >>> X, y = ["ACACAC", "CACACA", "GGTTGG", "TTGGTT"], ["repeat", "repeat", "pairs", "pairs"]
    >>> KernelSVC(Spectrum(k=2, normalize=True)).fit(X, y).predict(["ACACACAC", "GGTT"])
    array(['repeat', 'pairs'], dtype='<U6')
    """

    def __init__(self, kernel: Any, C: float = 1.0, class_weight: Any = None) -> None:
        self.kernel = kernel
        self.C = C
        self.class_weight = class_weight

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
        refuse_lazy(X, "the kernel of all pairs of objects is needed; take Nystroem(kernel) and a linear model")
        check_kernel(self.kernel)
        C = check_positive(self.C, "C")
        kernel = decided(self.kernel, X)
        objects = read_objects(self, kernel, X, reset=True)
        n = at_least_one(objects)
        labels = _checked_labels(y, n)
        needed = 8 * n**2
        if needed > settings().max_memory:
            raise ValueError(
                f"the Gram matrix of {n} objects takes {needed / 2**20:.0f} MiB, and max_memory is "
                f"{settings().max_memory / 2**20:.0f} MiB; take make_pipeline(similia.Nystroem(kernel), LinearSVC()), "
                "or allow more with similia.config(max_memory=...)"
            )
        codes, self.classes_, class_weight = coded(labels, self.class_weight)
        K = check_finite(evaluate(kernel, objects), range(n), range(n), "X[{}] and X[{}]")
        machine = fit_machine(K.astype(np.float64, copy=False), codes, C, class_weight)
        self.kernel_ = kernel
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
        objects = read_objects(self, self.kernel_, X, reset=False)
        m, n_classes, s = at_least_one(objects), len(self.classes_), len(self.support_)
        parts, step = [], rows_per_block(3 * 8 * max(1, s))
        for start in range(0, m, step):
            rows = np.arange(start, min(start + step, m))
            part = objects if step >= m else take(objects, rows)
            K = check_finite(evaluate(self.kernel_, part, self.support_objects_), rows, range(s), "X[{}] and object {}")
            parts.append(confidences(K, self.pair_coef_, self.pair_intercept_, n_classes))
        return np.concatenate(parts)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the label predicted for each object, shape (m,).

        Parameters
        ----------
        X : sequence of m objects
        """
        confidence = self.decision_function(X)
        return self.classes_[most_confident(confidence)]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.sparse = takes_sparse(self.kernel)
        return tags
