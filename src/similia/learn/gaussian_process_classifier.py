r"""Gaussian-process classification, by Laplace's approximation, of any objects with any kernel.

For two classes, a function f with the covariance s^2 k gives the probability 1 / (1 + exp(-f(x))) of the second class.
Here f is a weighted sum of the Nyström features of x. Its posterior, given the labels, is replaced by the normal
distribution with the same mode and the same curvature there (Rasmussen & Williams, 2006, Sections 3.4, 3.5). The
evidence in this approximation chooses s^2 and parameters of the kernel.

Cost of `fit` for n objects, m landmarks and r <= m features: about 2 n m kernel values, then for each class 2 n r^2
operations for a step of Newton's method, with a few steps for each of 11 values of s^2. Several combinations of
parameters take n m more kernel values for each part of the kernel with each of its values
(`similia.learn.kernel_grid`).
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import cho_solve, cholesky, solve_triangular
from scipy.special import expit, log_expit, ndtr, softmax
from sklearn.base import ClassifierMixin

from similia.core.config import check_memory, one_blas_thread, track
from similia.core.estimators import all_at_once, check_fitted, computed
from similia.core.products import row_product
from similia.core.state import Sizes, array, labels, objects, reads, state
from similia.core.validation import BadParameter, RandomState
from similia.embeddings.nystroem import Nystroem
from similia.learn.gaussian_process import GaussianProcess, number_of_landmarks
from similia.learn.kernel_grid import KernelGrid, own_values
from similia.learn.targets import checked_labels
from similia.objects import n_objects
from similia.objects.sequences import at_least_one
from similia.sources.dask import ScoresParts, from_parts, lazily

Floats = npt.NDArray[np.float64]

_LANDMARKS = 500  # number that "auto" stands for
_WIDTHS = np.arange(-2.0, 9.0) / 2  # decimal logarithms of the variance of f that are tried
_HERMITE, _LAGUERRE = np.polynomial.hermite.hermgauss(40), np.polynomial.laguerre.laggauss(40)  # points, weights
_NARROW = 2.0  # largest variance for Gauss-Hermite quadrature
_LOST = 1e-6  # sum of the probabilities of all classes below which errors of 1e-10 matter
_STEPS = 100  # maximum number of steps of Newton's method


def _classifier_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    machines = 1 if sizes["c"] == 2 else sizes["c"]
    return sizes["c"] > 1 and sizes["p"] == machines and reads(state["kernel_"], state["objects_"])


@state(
    fits=_classifier_fits, classes_=labels("c"), objects_=objects("s"), indices_=array("i8", "s"),
    weights_=array("f8", "s", "p"), components_=array("f8", "s", "r"), spreads_=array("f8", "p", "r", "r"),
    scale_="number", log_marginal_likelihood_="number",
)  # fmt: skip
class GaussianProcessClassifier(ScoresParts, ClassifierMixin, GaussianProcess):
    r"""Gaussian-process classification of strings, graphs, series, sets or vectors, with any kernel.

    For two classes, the model is a random function f: the probability of the second class is 1 / (1 + exp(-f(x))). The
    training labels leave f uncertain, so `predict_proba` averages this probability over the distribution of f given the
    labels. The result is near 1/2 for objects that resemble no training object. For more than two classes, there is one
    such model for each class; it separates the class from all other classes. The probabilities of an object are then
    divided by their sum.

    Parameters
    ----------
    kernel : callable or list of callables
        A kernel, or a list of kernels to choose from, as for `GaussianProcessRegressor`.
    parameters : dict of str to list, optional
        Parameters of the kernel and the values to try, as for `GaussianProcessRegressor`, but without ``{"weights":
        "auto"}``. All combinations are compared with the same landmarks (see `n_landmarks`).
    n_landmarks : int, "auto" or None, default="auto"
        Number of landmarks, the training objects with which all objects are compared. They are chosen in the same way
        as by `similia.Nystroem` with ``landmarks="rpcholesky"`` (randomly pivoted Cholesky). "auto": 500, or all
        training objects if there are fewer. None: all training objects.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for the choice of landmarks.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    kernel_ : callable
        The kernel with all its parameters set.
    evidences_ : ndarray of float64, shape (n_kernels,)
        Logarithm of the evidence (the likelihood of the labels) of each kernel of a list; empty for a single kernel.
    scale_ : float
        Factor of the kernel, the same for all classes: the covariance of f is ``scale_ * k``. `fit` tries 11 factors
        and chooses the one with the largest evidence (the likelihood of the labels).
    log_marginal_likelihood_ : float
        Logarithm of the evidence in Laplace's approximation; for more than two classes, the sum over the classes.
    objects_ : collection of n_kept objects
        The landmarks.
    indices_ : ndarray of int64, shape (n_kept,)
        Positions of the landmarks in the training objects.
    weights_ : ndarray of float64, shape (n_kept, n_machines)
        The most probable f(x) is ``k(x, objects_) @ weights_``: one column for each class, or a single column for two
        classes.
    components_ : ndarray of float64, shape (n_kept, rank)
        The features of x are ``k(x, objects_) @ components_``, as for `similia.Nystroem`.
    spreads_ : ndarray of float64, shape (n_machines, rank, rank)
        One matrix R for each column of `weights_`. It tells how uncertain f is: for an object x with the features z,
        the variance of f(x), given the training labels, is ``np.square(z @ R).sum() + scale_ * (k(x, x) - z @ z)``.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    References
    ----------
    Rasmussen & Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006: Sections 3.4, 3.5.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["ACACAC", "CACACA", "ACACCA", "GGTTGG", "TTGGTT", "GTTGGG"], ["repeat"] * 3 + ["pairs"] * 3
    >>> model = sm.GaussianProcessClassifier(sm.kernels.Spectrum(k=2, normalize=True)).fit(X, y)
    >>> model.predict(["ACACACAC", "GGTT"])
    array(['repeat', 'pairs'], dtype='<U6')
    >>> model.predict_proba(["ACACAC", "ATATAT"])[1]  # the second shares no pair of letters with the training objects
    array([0.5, 0.5])
    """

    def __init__(
        self, kernel: Any, parameters: dict[str, Any] | None = None, n_landmarks: int | str | None = "auto",
        random_state: RandomState = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.parameters = parameters
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the kernel, its parameters and its scale for n objects with labels `y`, and fit the model to them.

        `X` may be a Dask collection: its workers compute the features of the objects, and all features are then loaded.
        """
        number_of_landmarks(self.n_landmarks, 1, 1)  # raises before any work
        grid = KernelGrid(self._chosen(X, y), self.parameters)
        if grid.open:
            remedy = "only GaussianProcessRegressor finds weights by gradients"
            raise BadParameter("parameters", "a dictionary of lists of values to try", "weights='auto'", remedy)
        steps = track(range(len(grid) + 1), "Gaussian process", len(grid) + 1)
        with closing(steps), one_blas_thread():
            combinations = [*grid.read(self, X)]
            n = at_least_one(combinations[0][1])
            self.classes_, codes = np.unique(self._targets(y, n), return_inverse=True)
            machines = [1] if len(self.classes_) == 2 else [*range(len(self.classes_))]
            positives = [codes == number for number in machines]
            m = number_of_landmarks(self.n_landmarks, n, _LANDMARKS) or n

            def evidence(embedding: Nystroem, objects: Any) -> float:
                next(steps)
                return _posteriors(embedding, objects, positives)[0]

            self.kernel_, objects, _ = (
                combinations[0] if len(grid) == 1 else self._best_by_landmarks(grid, combinations, m, evidence)
            )
            next(steps)
            embedding = self._embedding(self.kernel_, objects, m)
            self.log_marginal_likelihood_, self.scale_, posteriors = _posteriors(embedding, objects, positives)
        self.objects_, self.indices_ = embedding.landmarks_, embedding.landmark_indices_
        self.components_ = embedding.components_
        self.weights_ = self.components_ @ np.column_stack([one.weights for one in posteriors])
        with one_blas_thread():
            self.spreads_ = np.stack([_spread(one.hessian) for one in posteriors])
        return self

    def _targets(self, y: Any, n: int) -> npt.NDArray:
        return checked_labels(y, n, two=True)

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the most probable label of each object, shape (m,)."""
        check_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @lazily
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for m objects, shape (m, n_classes)."""
        check_fitted(self)
        rank, machines = self.components_.shape[1], self.weights_.shape[1]
        found = self._over_blocks(X, self.objects_, self._means_and_variances, 2 * rank + 2 * machines + 1)
        unknown = self.scale_ * np.maximum(self._self_values(X) - found[:, -1], 0.0)
        mean, variance = found[:, :machines], found[:, machines:-1] + unknown[:, None]
        shares = _averaged_logistic(mean, variance)
        if machines == 1:
            return np.hstack([1.0 - shares, shares])
        total = shares.sum(axis=1, keepdims=True)
        rough = softmax(log_expit(mean / np.sqrt(1 + np.pi * variance / 8)), axis=1)  # MacKay's; does not underflow
        return np.where(total < _LOST, rough, shares / np.maximum(total, _LOST))

    def _means_and_variances(self, K: npt.NDArray) -> Floats:
        """Return for each row of kernel values the means of f, its variances from the weights, and |phi|^2."""
        features = row_product(K, self.components_)
        spreads = [(row_product(features, spread) ** 2).sum(axis=1) for spread in self.spreads_]
        return np.column_stack([row_product(K, self.weights_), *spreads, (features**2).sum(axis=1)])


@dataclass(frozen=True)
class _Posterior:
    """Laplace's approximation for one class against the others: the mode of the weights, and the Hessian there."""

    evidence: float
    weights: Floats
    hessian: Floats


def _laplace(features: Floats, positive: npt.NDArray[np.bool_], scale: float, start: Floats) -> _Posterior:
    """Return the posterior of weights with the prior N(0, scale I) and logistic likelihoods, by Newton's method."""
    signs, r = np.where(positive, 1.0, -1.0), features.shape[1]

    def height(weights: Floats) -> float:
        return float(log_expit(signs * (features @ weights)).sum()) - float(weights @ weights) / (2 * scale)

    weights, value = start, height(start)
    for _ in range(_STEPS):
        shares = expit(features @ weights)
        hessian = features.T @ (features * (shares * (1 - shares))[:, None])
        hessian[np.diag_indices(r)] += 1 / scale
        factor = cholesky(hessian, lower=True)
        step = cho_solve((factor, True), features.T @ (positive - shares) - weights / scale)
        while height(weights + step) < value and np.abs(step).max() > np.finfo(float).eps * np.abs(weights).max():
            step = step / 2
        weights, before, value = weights + step, value, max(value, height(weights + step))
        if value - before <= 1e-10 * (1 + abs(value)):
            break
    evidence = value - float(np.log(factor.diagonal()).sum()) - 0.5 * r * float(np.log(scale))
    return _Posterior(evidence, weights, hessian)


def _posteriors(
    embedding: Nystroem, objects: Any, positives: list[npt.NDArray[np.bool_]]
) -> tuple[float, float, list[_Posterior]]:
    """Return (evidence, scale, posterior of each machine) with the Nyström features of n objects."""
    n = n_objects(objects)
    check_memory(f"the features of {n} objects take", 24 * n * embedding.rank_, "take fewer landmarks")
    features = np.asarray(computed(embedding.transform(objects)), dtype=np.float64)
    return _best_scale(features, positives, float(own_values(embedding.kernel_, objects).mean()) or 1.0)


def _best_scale(
    features: Floats, positives: list[npt.NDArray[np.bool_]], unit: float
) -> tuple[float, float, list[_Posterior]]:
    """Return (evidence, scale, posterior of each machine) of the scale of largest evidence on a grid."""
    starts = [np.zeros(features.shape[1])] * len(positives)
    best: tuple[float, float, list[_Posterior]] | None = None
    for log in _WIDTHS:
        scale = 10.0**log / unit
        found = [_laplace(features, one, scale, start) for one, start in zip(positives, starts, strict=True)]
        starts = [one.weights for one in found]
        evidence = sum(one.evidence for one in found)
        if best is None or evidence > best[0]:
            best = evidence, scale, found
    assert best is not None
    return best


def _spread(hessian: Floats) -> Floats:
    """Return R such that R R^T is the inverse of `hessian`."""
    return np.ascontiguousarray(
        solve_triangular(cholesky(hessian, lower=True), np.eye(len(hessian)), lower=True, overwrite_b=True).T
    )


def _averaged_logistic(mean: Floats, variance: Floats) -> Floats:
    """Return the mean of 1 / (1 + exp(-f)) for normally distributed f, with an error of at most 1e-10.

    For narrow distributions, this is Gauss-Hermite quadrature. For wide ones, the logistic function is split into the
    step at 0 and a rest that decays like exp(-|f|): the mean is P(f > 0) plus a Gauss-Laguerre quadrature of the rest.
    """
    is_narrow = variance < _NARROW
    spread = np.sqrt(2 * np.where(is_narrow, variance, 0.0))[..., None]
    narrow = expit(mean[..., None] + spread * _HERMITE[0]) @ _HERMITE[1] / np.sqrt(np.pi)
    std = np.sqrt(np.where(is_narrow, _NARROW, variance))
    below, above = (np.exp(-0.5 * ((sign * _LAGUERRE[0] - mean[..., None]) / std[..., None]) ** 2) for sign in (-1, 1))
    wide = ndtr(mean / std) + (below - above) @ (_LAGUERRE[1] * expit(_LAGUERRE[0])) / (std * np.sqrt(2 * np.pi))
    return np.where(is_narrow, narrow, wide)
