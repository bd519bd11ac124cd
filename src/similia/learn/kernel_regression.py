r"""Regression straight on objects, with any kernel: kernel ridge regression and support-vector regression.

.. math:: f(x) = \sum_i \alpha_i\, k(x_i, x) \;(+\, b)

`KernelRidge` minimises :math:`\|y - K\alpha\|^2 + \lambda\, \alpha^\top K \alpha` (no b), `KernelSVR` the
epsilon-insensitive loss. Both are scikit-learn's on the n x n Gram matrix of the training objects.

Cost: n^2 kernel values; then O(n^3) of a Cholesky factorisation, or O(n^2) to O(n^3) of libsvm. A prediction takes n
kernel values, or as many as there are support vectors, in blocks of rows. Memory: 8 n^2 bytes in `fit`, which is
refused where it does not fit.

Papers: Saunders, Gammerman & Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998; Drucker et al.,
"Support vector regression machines", NIPS 1996.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn import kernel_ridge
from sklearn.base import RegressorMixin
from sklearn.svm import SVR
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from similia.core.fitting import all_at_once
from similia.core.products import row_product
from similia.core.threads import one_blas_thread
from similia.core.validation import check_labels, check_positive
from similia.learn.kernel_machine import KernelMachine
from similia.learn.neighbors import checked_targets
from similia.objects import take
from similia.sources.lazily import lazily


class KernelRidge(RegressorMixin, KernelMachine):
    r"""Ridge regression on strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        ``k(X, Y=None) -> (n, m)``: a kernel of `similia.kernels` or `similia.adapters`, a combination of such, or
        `similia.pairwise` of a function. ``similia.kernels.DistanceRBF(distance)`` makes one of a distance.
    alpha : float, default=1.0
        Regularisation, 0 or more; it is added to the diagonal of the Gram matrix.

    Attributes
    ----------
    kernel_ : callable
        The kernel, with what it leaves to the data decided by the training objects.
    objects_ : collection of n objects
        The training objects, in the layout the kernel works on.
    dual_coef_ : ndarray of float64, shape (n,) or (n, n_outputs)
        Coefficient of each training object.
    n_features_in_ : int
        Only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, a target or a kernel value is
        not finite, or a parameter is out of range.
    TypeError
        If `kernel` is a distance or cannot be called.

    See Also
    --------
    KernelSVR : Keeps support vectors only.

    Notes
    -----
    There is no intercept, as in scikit-learn's KernelRidge: centre the targets first, with
    ``TransformedTargetRegressor(KernelRidge(kernel), transformer=StandardScaler())``.

    A kernel whose values grow with the size of objects wants ``normalize=True``; alpha means little otherwise. Within
    the default ``max_memory`` of 1 GiB there is room for 11,500 objects; more take
    ``make_pipeline(Nystroem(kernel), Ridge())``.

    References
    ----------
    Saunders, Gammerman & Vovk, "Ridge regression learning algorithm in dual variables", ICML 1998.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> model = sm.KernelRidge(sm.kernels.Spectrum(k=1), alpha=0.01).fit(X, y)
    >>> model.predict(["CCAA", "CCCA"]).round(2)
    array([2., 3.])
    """

    _linear_model = "Ridge()"

    def __init__(self, kernel: Any, alpha: float = 1.0) -> None:
        self.kernel = kernel
        self.alpha = alpha

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix and solve for the coefficients.

        Parameters
        ----------
        X : sequence of n objects
        y : array-like of numbers, shape (n,) or (n, n_outputs)

        Returns
        -------
        KernelRidge
            The fitted estimator itself.
        """
        alpha = check_positive(self.alpha, "alpha", zero=True)
        kernel, objects, n = self._read(X)
        targets = checked_targets(y, n, "KernelRidge")
        K = self._gram(kernel, objects, n)
        with one_blas_thread():  # the same coefficients for any number of threads
            ridge = kernel_ridge.KernelRidge(alpha=alpha, kernel="precomputed").fit(K, targets)
        self.kernel_, self.objects_ = kernel, objects
        self.dual_coef_ = np.asarray(ridge.dual_coef_, dtype=np.float64)
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the target predicted for each object, shape (m,) or (m, n_outputs).

        Parameters
        ----------
        X : sequence of m objects
        """
        check_is_fitted(self)
        weights = self.dual_coef_.reshape(len(self.dual_coef_), -1)
        sums = self._over_blocks(X, self.objects_, lambda K: row_product(K, weights))
        return sums if self.dual_coef_.ndim == 2 else sums[:, 0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class KernelSVR(RegressorMixin, KernelMachine):
    r"""Support-vector regression of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        As for `KernelRidge`.
    C : float, default=1.0
        Inverse regularisation, above 0. It bounds what one training object can add: in units of the targets.
    epsilon : float, default=0.1
        Errors of at most so much cost nothing: 0 or more, in units of the targets.

    Attributes
    ----------
    kernel_ : callable
        The kernel, with what it leaves to the data decided by the training objects.
    support_ : ndarray of int64, shape (n_support,)
        Positions of the training objects that the regressor keeps.
    support_objects_ : collection of n_support objects
        These, in the layout the kernel works on.
    dual_coef_ : ndarray of float64, shape (n_support,)
    intercept_ : float
    n_features_in_ : int
        Only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, a target or a kernel value is
        not finite, or a parameter is out of range.
    TypeError
        If `kernel` is a distance or cannot be called.

    See Also
    --------
    KernelRidge : Takes several targets at once, keeps all training objects.

    Notes
    -----
    C and epsilon are in units of the targets. ``TransformedTargetRegressor(KernelSVR(kernel), transformer=
    StandardScaler())`` makes their defaults mean the same for any data.

    References
    ----------
    Drucker, Burges, Kaufman, Smola & Vapnik, "Support vector regression machines", NIPS 1996.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.0, 1.0, 2.0, 3.0, 4.0]
    >>> model = sm.KernelSVR(sm.kernels.Spectrum(k=1), C=10.0, epsilon=0.01).fit(X, y)
    >>> model.predict(["CCAA", "CCCA"]).round(1)
    array([2., 3.])
    """

    _linear_model = "Ridge()"

    def __init__(self, kernel: Any, C: float = 1.0, epsilon: float = 0.1) -> None:
        self.kernel = kernel
        self.C = C
        self.epsilon = epsilon

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Compute the Gram matrix and fit the regressor.

        Parameters
        ----------
        X : sequence of n objects
        y : array-like of n numbers

        Returns
        -------
        KernelSVR
            The fitted estimator itself.
        """
        C, epsilon = check_positive(self.C, "C"), check_positive(self.epsilon, "epsilon", zero=True)
        kernel, objects, n = self._read(X)
        targets = checked_targets(check_labels(y, n), n, "KernelSVR")
        machine = SVR(kernel="precomputed", C=C, epsilon=epsilon)
        machine.random_state = 0  # which libsvm does not use here; None would draw from numpy's global state
        machine.fit(self._gram(kernel, objects, n), targets)
        support = machine.support_.astype(np.int64)
        self.kernel_, self.support_, self.support_objects_ = kernel, support, take(objects, support)
        self.dual_coef_ = np.asarray(machine.dual_coef_, dtype=np.float64).reshape(-1)
        self.intercept_ = float(machine.intercept_[0])
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray[np.float64]:
        """Return the target predicted for each object, shape (m,).

        Parameters
        ----------
        X : sequence of m objects
        """
        check_is_fitted(self)
        weights = self.dual_coef_[:, None]
        sums = self._over_blocks(X, self.support_objects_, lambda K: row_product(K, weights))
        return sums[:, 0] + self.intercept_
