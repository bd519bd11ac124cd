r"""Gaussian-process regression with any kernel of any objects: predictions with their standard deviations.

The model is y_i = mu + f(x_i) + e_i, where f has the covariance s^2 k and e_i is noise of variance s^2 a. Given mu,
s^2 and a, with G = (K + a I)^-1,

.. math::
    \mathrm E\, [\mu + f(x)] = \mu + k_x^T G\,(y - \mu), \qquad \mathrm{var}\, f(x) = s^2 \left(k(x, x) - k_x^T G\,
    k_x\right).

The targets say how likely each mu, s^2 and a are (`similia.learn.evidence`). A prediction averages over them: it is a
mixture of Student t distributions, one for each of at most 30 values of a. As mu is not known, the variance of each
component grows by s^2 (1 - 1^T G k_x)^2 / 1^T G 1 (Rasmussen & Williams, "Gaussian Processes for Machine Learning",
2006, Section 2.7). With ``hyperparameters="maximized"`` there is one normal component, of largest likelihood.

With m landmarks in place of all n objects, the Nyström approximation q replaces k, except in k(x, x).

Let U diag(l) U^T be the eigendecomposition of K, or of its Nyström approximation, and z = U^T k_x. Then z = k(x, Z) B,
where Z holds all training objects, or the landmarks, and B is a matrix that `fit` computes. In all components, means
are linear in z, and k_x^T G k_x = sum_j z_j^2 / (l_j + a). So all components share the product with B, and the mean of
the mixture is k(x, Z) w plus a constant, with one vector w.

Cost of `fit`: n^2 kernel values and about 10 n^3 operations (for open weights of a sum of p kernels, p n^2 values, and
(10 + 2 p) n^3 operations in each of 20 to 40 steps), or about 3 n m kernel values and 10 n m^2 operations in
blocks. A prediction takes one kernel value for each object in Z; its variance takes two operations for each entry of B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import RegressorMixin, clone

from similia.core.config import check_memory, one_blas_thread, part_of_more, track
from similia.core.estimators import all_at_once, check_fitted, detached, is_lazy
from similia.core.products import row_product
from similia.core.state import NAMED, Sizes, array, count, each, objects, optional, reads, state
from similia.core.text import short
from similia.core.validation import (
    BadParameter,
    BadType,
    BadValue,
    RandomState,
    check_choice,
    check_positive,
    check_positive_int,
    generator,
)
from similia.embeddings.nystroem import Nystroem
from similia.learn.conformal import checked_coverage
from similia.learn.evidence import (
    AllPairs,
    Decomposition,
    Landmarks,
    Posterior,
    StudentMixture,
    best_weights,
    cholesky_factor,
    inflation,
    integrated,
    left_out,
    most_likely,
)
from similia.learn.kernel_grid import KernelGrid
from similia.learn.kernel_machines import KernelMachine
from similia.learn.targets import checked_numbers
from similia.objects import concatenate, n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import as_objects, check_kernel, diagonal, kernel_values, precision, read_objects, spelled_out
from similia.sources.dask import Distributed, ScoresParts, as_parts, from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
Estimate = Callable[[Decomposition], Posterior]
_EXACT = 5000  # maximum number of objects for an exact fit, if `n_landmarks` is "auto"
_LANDMARKS = 1000  # number of landmarks for more objects
_SAMPLE = 1000  # maximum number of objects on which several kernels are compared
_WIDEST = 1e150  # largest range of targets; the inverse of the smallest one
_LEAST = 5  # smallest number of targets to integrate over scale and noise: with fewer, variances are infinite
_JITTER = 1e-10  # added to the diagonal of a covariance before its factorisation, in units of the prior variance


def _one_or_several(value: Any, sizes: Sizes) -> bool:
    several = isinstance(value, list | tuple)
    return (each("__call__", least=1) if several else NAMED["kernel"])(value, sizes)


@state(kernel=_one_or_several, evidences_=array("f8", None))
class GaussianProcess(KernelMachine):
    """Base of regression and classification: parameters that both have, the choice of the kernel, k(x, x)."""

    parameters: Any
    n_landmarks: Any
    random_state: RandomState
    objects_: Any
    indices_: Index

    def _targets(self, y: Any, n: int) -> npt.NDArray:
        """Return the targets of n objects, or raise; those of classes are labels."""
        raise NotImplementedError

    def _chosen(self, X: Any, y: Any) -> Any:
        """Return the kernel or, of several, the one of largest evidence on a sample; set `evidences_`."""
        self.evidences_ = np.zeros(0)
        if not isinstance(self.kernel, list | tuple):
            if not callable(self.kernel):
                several = "or a list of kernels, such as similia.kernels.suggest_kernels(X)"
                hint = spelled_out(self.kernel, "kernels")
                raise TypeError(f"kernel is {short(self.kernel)}, expected a kernel, {several}{hint}")
            return self.kernel
        if not self.kernel:
            raise BadParameter("kernel", "a kernel, or a list of one or more", short(self.kernel))
        if self.parameters is not None:
            remedy = "put a kernel with each combination into the list, or give one kernel"
            raise BadParameter("parameters", "None for a list of kernels", short(self.parameters), remedy)
        for i, kernel in enumerate(self.kernel):
            check_kernel(kernel, f"kernel[{i}]")
        found = [self._evidence_on_a_sample(kernel, X, y) for kernel in self.kernel]
        self.evidences_ = np.array(found)
        return self.kernel[int(np.argmax(found))]

    def _evidence_on_a_sample(self, kernel: Any, X: Any, y: Any) -> float:
        objects = as_objects(kernel, X)
        targets = self._targets(y, at_least_one(objects))
        order, n = np.argsort(targets, kind="stable"), len(targets)  # evenly spaced, the first and the last included
        rows = np.sort(order[np.linspace(0, n - 1, min(n, _SAMPLE)).astype(np.int64)])
        fitted = clone(self).set_params(kernel=kernel).fit(take(objects, rows), targets[rows])
        return float(fitted.log_marginal_likelihood_)

    def _embedding(self, kernel: Any, objects: Any, n_landmarks: int) -> Nystroem:
        return Nystroem(kernel, n_landmarks, "rpcholesky", random_state=self.random_state).fit(objects)

    def _self_values(self, X: Any) -> Floats:
        """Return k(x, x) of m objects, shape (m,)."""
        return diagonal(self.kernel_, read_objects(self, self.kernel_, X, reset=False))

    def _best_by_landmarks(
        self, grid: KernelGrid, combinations: list[Any], n_landmarks: int, evidence: Callable[[Nystroem, Any], float]
    ) -> Any:
        """Return the combination of largest evidence, where all are compared at the same landmarks."""
        triples = [combination[:3] for combination in combinations]
        found = grid.at_common_landmarks(triples, n_landmarks, self.random_state)
        return combinations[int(np.argmax([evidence(embedding, objects) for embedding, objects in found]))]


class Candidate(NamedTuple):
    """A kernel to try, objects in its layout, its combination of parameters, and the targets."""

    kernel: Any
    objects: Any
    values: dict[str, Any]
    targets: Floats


class Fitted(NamedTuple):
    """The fit of one kernel to the objects."""

    posterior: Posterior
    prior: AllPairs | Landmarks
    kernel: Any
    objects: Any


def _regressor_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    dof, positive = state["degrees_of_freedom_"], (state["scales_"] > 0).all() and (state["noises_"] > 0).all()
    ratios = state["noises_"] ** 2 / np.maximum(state["scales_"], np.finfo(float).tiny)
    definite = state["eigenvalues_"].min(initial=0.0) + ratios.min(initial=np.inf) > 0
    return positive and definite and (dof is None or dof > 2) and reads(state["kernel_"], state["objects_"])


@state(
    fits=_regressor_fits, objects_=objects("s"), indices_=array("i8", "s"), dual_coef_=array("f8", "s"),
    basis_=array("f8", "s", "r"), eigenvalues_=array("f8", "r"), coordinates_=array("f8", "r", 2),
    weights_=array("f8", "c"), scales_=array("f8", "c"), noises_=array("f8", "c"), intercepts_=array("f8", "c"),
    intercept_variances_=array("f8", "c"), degrees_of_freedom_=optional(count()),
    scale_="number", noise_="number", intercept_="number", log_marginal_likelihood_="number",
    targets_=array("f8", "n"), loo_mean_=array("f8", "n"), loo_std_=array("f8", "n"),
)  # fmt: skip
class GaussianProcessRegressor(ScoresParts, RegressorMixin, GaussianProcess):
    r"""Gaussian-process regression of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable or list of callables
        ``k(X, Y=None) -> (n, m)``, positive semi-definite: a kernel of `similia.kernels`, a combination of these, or
        `similia.pairwise` of a function. `fit` chooses a factor by which it multiplies the kernel, so the scale of the
        kernel does not matter. From a list of kernels, such as `similia.kernels.suggest_kernels` returns, `fit` chooses
        the kernel with the largest evidence (the likelihood of the targets). It compares the kernels on at most 1,000
        objects, whose targets are spread like the targets of all objects.
    parameters : dict of str to list, optional
        Parameters of the kernel and the values to try, as for scikit-learn's `ParameterGrid`: ``{"k": [2, 3, 4]}``.
        `fit` chooses the combination with the largest evidence on all objects, without cross-validation. If the kernel
        is a `Sum` or `Product`, the kernel values of a part are computed only once for all combinations that do not
        change this part. With landmarks, all combinations are compared with the same landmarks, and the best
        combination is then fitted with landmarks of its own. For a `Sum`, ``{"weights": "auto"}`` finds the weights by
        gradient ascent on the evidence. This works only without landmarks, and takes 20 to 40 steps, each with an
        eigendecomposition of the Gram matrix. The weights are scaled so that the mean of k(x, x) over the training
        objects is 1; the weight of a part that does not help is 0.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, in units of the targets. "auto" estimates it.
    n_landmarks : int, None or "auto", default="auto"
        Number of landmarks, the training objects with which all objects are compared. They are chosen by randomly
        pivoted Cholesky, as in `similia.Nystroem`. The cost then grows linearly with the number of objects. None:
        compare all pairs of objects. "auto": compare all pairs of up to 5,000 objects; for more objects, use 1,000
        landmarks.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for the choice of landmarks.
    hyperparameters : {"integrated", "maximized"}, default="integrated"
        How to treat the mean of the process, the scale (the factor of the kernel) and, with ``noise="auto"``, the
        noise. "integrated": predictions average over all possible values of these numbers, weighted by the
        probabilities of the values given the targets. So a prediction is a mixture of several distributions, called
        components. Each component stands for one ratio of the variance of the noise to the scale. "maximized":
        predictions use the most likely values only, so there is one component. Such predictions are too certain if the
        targets do not show whether differences between similar objects are noise, for instance because few objects are
        measured more than once.

    Attributes
    ----------
    kernel_ : callable
        The kernel with all its parameters set.
    evidences_ : ndarray of float64, shape (n_kernels,)
        Logarithm of the evidence of each kernel of a list, computed from the objects on which `fit` compares the
        kernels; empty for a single kernel.
    scale_ : float
        Factor by which the kernel is multiplied, in squared units of the targets; the average over all components.
    noise_ : float
        Standard deviation of the noise, in units of the targets. The variance of the noise is averaged over all
        components; `noise_` is the square root of this average.
    intercept_ : float
        Mean of the process: the prediction for an object that resembles no training object.
    log_marginal_likelihood_ : float
        Logarithm of the evidence; with landmarks, a lower bound of this logarithm. Use it to compare kernels that are
        fitted to the same targets with the same `hyperparameters`.
    objects_ : collection of n_kept objects
        The landmarks or, without landmarks, all training objects.
    indices_ : ndarray of int64, shape (n_kept,)
        Positions of `objects_` in the training objects.
    dual_coef_ : ndarray of float64, shape (n_kept,)
        Coefficients: the predicted mean for x is ``k(x, objects_) @ dual_coef_ + intercept_``.
    weights_ : ndarray of float64, shape (n_components,)
        Probabilities of the components, given the targets.
    scales_, noises_, intercepts_ : ndarray of float64, shape (n_components,)
        `scale_`, `noise_` and `intercept_` of each component.
    intercept_variances_ : ndarray of float64, shape (n_components,)
        Variance of each entry of `intercepts_`, divided by the same entry of `scales_`; 0 for "maximized".
    degrees_of_freedom_ : int or None
        Degrees of freedom of the Student t distributions of the components; None if they are normal.
    basis_ : ndarray of float64, shape (n_kept, rank)
        Matrix that turns kernel values into coordinates in the basis of the eigenvectors of the Gram matrix: ``z = k(x,
        objects_) @ basis_``.
    eigenvalues_ : ndarray of float64, shape (rank,)
        The eigenvalues of the Gram matrix or, with landmarks, of its approximation. They give the variance that
        component c predicts for an object x, without noise and for a known intercept: ``scales_[c] * (k(x, x) -
        sum(z**2 / (eigenvalues_ + a)))``, where ``a = noises_[c]**2 / scales_[c]``, and z holds the coordinates of x
        (see `basis_`).
    coordinates_ : ndarray of float64, shape (rank, 2)
        Two vectors in the basis of the eigenvectors: the targets minus `intercept_`, and a vector of ones.
    targets_ : ndarray of float64, shape (n,)
        The targets that `fit` saw.
    loo_mean_, loo_std_ : ndarray of float64, shape (n,)
        Mean and standard deviation of each target, predicted from all other targets. With "integrated", the values of
        noise, scale and mean are weighted by their probabilities given only these other targets. With "maximized", the
        predictions use `scale_`, `noise_` and `intercept_`, which `fit` estimates from all targets, including the
        target to predict.
    n_features_in_ : int
        Number of columns; exists only if the objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if

        - there are too few targets for "integrated": fewer than five with ``noise="auto"``, fewer than two otherwise;
        - all targets are equal and `noise` is "auto", or their range is so small or large that squares of it are 0 or
          infinite;
        - there are no landmarks, and five Gram matrices do not fit into ``similia.config(max_memory=...)``
          (``"weights": "auto"`` needs room for p + 6 matrices for a `Sum` of p kernels);
        - `parameters` holds ``"weights": "auto"``, but the kernel is not a `Sum`, or there are landmarks;
        - both a list of kernels and `parameters` are given;
        - the kernel is far from positive semi-definite: the Gram matrix has negative eigenvalues even after the
          largest variance of the noise that `fit` tries is added to its diagonal;
        - `noise` is too small for the targets: even at the largest scale that `fit` tries, signal and noise together
          explain at most a tenth of the variance of the targets.

    Notes
    -----
    If several combinations share a part of a `Sum` or `Product`, `fit` keeps the Gram matrix of the part, as long as it
    fits into ``config(max_memory=...)`` together with the five matrices that every fit needs. With landmarks, it keeps
    the kernel values between all objects and the landmarks instead. With ``"weights": "auto"``, the search
    starts from weights with which every part contributes equally to the mean of k(x, x) over the training objects. If
    weights with which a single part contributes almost all of this mean have a larger evidence, the search starts from
    these instead. It finds a local maximum of the evidence.

    The share of the noise in the variance of a target has a uniform prior between 0 and 1; the mean and the logarithm
    of the scale have flat priors. Without landmarks, nothing in `fit` is random.

    The prediction for an object with k(x, x) = 0, such as an empty string, is `intercept_`. The variance of this
    prediction is the variance of the noise, plus, with "integrated", the variance of the intercept. If k(x, x) grows
    with the size of objects, predictions for small objects are too certain: set ``normalize=True`` in the kernel.

    The standard deviations are right if the targets come from a Gaussian process with this kernel. To check this, count
    the `targets_` that lie within ``loo_mean_ +- 1.96 loo_std_``: they should be 95 % of all targets. If `noise_` is
    about the standard deviation of the targets, the kernel explains little of the targets, and another kernel may
    predict better. The intervals of `similia.ConformalRegressor` do not rely on the assumption that the targets come
    from a Gaussian process.

    References
    ----------
    Rasmussen & Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006: Sections 2.7 (unknown mean), 5.2
    (integration over hyperparameters) and 5.4.2 (leave-one-out errors). O'Hagan, "Curve fitting and optimal design
    for prediction", JRSS B 40, 1978. Titsias, "Variational learning of inducing variables in sparse Gaussian
    processes", AISTATS 2009.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.1, 0.9, 2.0, 3.1, 3.9]
    >>> model = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=1), noise=0.1).fit(X, y)
    >>> mean, std = model.predict(["CCAA"], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([2.]), array([0.1]))
    >>> model.predict_interval(["CCAA"], coverage=0.95).round(1)
    array([[1.8, 2.2]])
    >>> letters = sm.kernels.Sum([sm.kernels.Spectrum(k=1), sm.kernels.Spectrum(k=3)])
    >>> model = sm.GaussianProcessRegressor(letters, {"weights": "auto"}, noise=0.1).fit(X, y)
    >>> model.kernel_.weights[1]  # words of three letters do not help
    0.0
    >>> model = sm.GaussianProcessRegressor([sm.kernels.Spectrum(k=1), sm.kernels.Spectrum(k=3)], noise=0.1).fit(X, y)
    >>> model.kernel_
    Spectrum(k=1)
    """

    def __init__(
        self, kernel: Any, parameters: dict[str, Any] | None = None, noise: float | str = "auto",
        n_landmarks: int | str | None = "auto", random_state: RandomState = None, hyperparameters: str = "integrated",
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.parameters = parameters
        self.noise = noise
        self.n_landmarks = n_landmarks
        self.random_state = random_state
        self.hyperparameters = hyperparameters

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any) -> Self:
        """Estimate the noise, and the scale and parameters of the kernel, from n objects and their targets `y`.

        `X` may be a Dask collection. With landmarks, its workers compare the objects with the landmarks, and return
        only sums over the objects. `X` is then read several times, so call its method ``persist`` first if reading is
        slow. Without landmarks, all objects are loaded.
        """
        noise = None
        if not (isinstance(self.noise, str) and self.noise == "auto"):
            hint = '; "auto" estimates it; for exact targets, give a thousandth of their standard deviation'
            noise = check_positive(self.noise, "noise", hint=hint)
        check_choice(self.hyperparameters, "hyperparameters", ("integrated", "maximized"))
        estimate = partial(integrated if self.hyperparameters == "integrated" else most_likely, noise=noise)
        grid, best = KernelGrid(self._chosen(X, y), self.parameters), None
        steps = track(range(2 * len(grid) + 1), "Gaussian process", 2 * len(grid) + 1)
        with closing(steps), one_blas_thread():  # so that the choice does not depend on the number of threads
            candidates = (self._candidate(y, noise, *combination) for combination in grid.read(self, X))
            for candidate in self._worth_a_fit(grid, candidates, estimate, steps):
                found = self._fitted(grid, candidate, estimate, steps)
                if best is None or found.posterior.evidence > best.posterior.evidence:
                    best = found
                del found
            assert best is not None
            next(steps)
            posterior, prior, self.kernel_, objects = best
            targets = candidate.targets
            self.objects_, self.indices_ = (objects, np.arange(prior.n)) if prior.kept is None else prior.kept
            self._keep(posterior, prior, targets, noise)
            mean, self.loo_std_ = left_out(prior, posterior.grid)
        self.targets_, self.loo_mean_ = targets, mean + targets.mean()
        return self

    def _targets(self, y: Any, n: int) -> Floats:
        return checked_numbers(y, n, "GaussianProcessRegressor")

    def _candidate(self, y: Any, noise: float | None, kernel: Any, objects: Any, values: dict[str, Any]) -> Candidate:
        targets = self._targets(y, at_least_one(objects))
        self._check_targets(targets, noise)
        return Candidate(kernel, objects, values, targets)

    def _worth_a_fit(
        self, grid: KernelGrid, candidates: Iterator[Candidate], estimate: Estimate, steps: Iterator[int]
    ) -> Iterator[Candidate]:
        """Yield the candidates to fit: all of them or, with landmarks, the one that is best at common landmarks."""
        first = next(candidates)
        m = self._number_of_landmarks(len(first.targets))
        if m is None or grid.open or len(grid) == 1:
            yield first
            yield from candidates
            return

        def evidence(embedding: Nystroem, objects: Any) -> float:
            next(steps)
            return estimate(Landmarks(embedding, objects, centred(first.targets))).evidence

        yield self._best_by_landmarks(grid, [first, *candidates], m, evidence)

    def _number_of_landmarks(self, n: int) -> int | None:
        return number_of_landmarks(self.n_landmarks, n, None if n <= _EXACT else _LANDMARKS)

    def _check_targets(self, targets: Floats, noise: float | None) -> None:
        n = len(targets)
        if noise is None and targets.min() == targets.max():
            same = f"is {targets[0]:g} for all of the {n} objects" if n > 1 else "has 1 sample"
            remedy = "scale and noise cannot be estimated from it; give more objects, or set noise to a number"
            raise BadValue(None, same, "different targets", remedy, collection="y")
        spread = float(targets.max()) - float(targets.min())
        if spread > _WIDEST or (noise is None and spread < 1 / _WIDEST):  # squares of others over- or underflow
            wanted = f"between {1 / _WIDEST:g} and {_WIDEST:g}"
            raise BadValue(None, f"has a range of {spread:g}", wanted, "give it in another unit", collection="y")
        least = 1 if self.hyperparameters == "maximized" else _LEAST if noise is None else 2
        if n < least:
            has, instead = f"has {n} sample{'s' * (n > 1)}", 'set hyperparameters="maximized"'
            instead += " or noise to a number" * (noise is None and n > 1)
            wanted = f"at least {least}, to integrate over scale and noise"
            raise BadValue(None, has, wanted, f"give more objects, or {instead}", collection="y")

    def _fitted(self, grid: KernelGrid, candidate: Candidate, estimate: Estimate, steps: Iterator[int]) -> Fitted:
        """Return the fit of one kernel of the grid, which takes two `steps`."""
        (kernel, objects, values), y = candidate[:3], centred(candidate.targets)
        n, m = len(y), self._number_of_landmarks(len(y))
        next(steps)
        if m:
            if grid.open:
                remedy = "set n_landmarks=None, or give lists of weights to try"
                raise BadParameter("parameters", "lists of values if there are landmarks", "weights='auto'", remedy)
            embedding = self._embedding(kernel, objects, m)
            next(steps)
            landmarks = Landmarks(embedding, objects, y)
            return Fitted(estimate(landmarks), landmarks, kernel, objects)
        matrices = 5 + (len(kernel.kernels) + 1 if grid.open else 0)
        needed, instead = 8 * matrices * n**2, "give lists of weights to try" if grid.open else "set n_landmarks=1000"
        check_memory(f"a Gaussian process of all pairs of {n} objects takes", needed, instead)
        objects = take(objects, np.arange(n)) if isinstance(objects, Distributed) else objects
        if grid.open:
            grams = grid.parts(kernel, objects, values)
            next(steps)
            weights, posterior, prior = best_weights(grams, y, estimate)
            return Fitted(posterior, prior, detached(kernel).set_params(weights=weights.tolist()), objects)
        K = grid.gram(kernel, objects, values).astype(np.float64, copy=False)
        next(steps)
        prior = AllPairs(K, y)
        return Fitted(estimate(prior), prior, kernel, objects)

    def _keep(self, found: Posterior, prior: Landmarks | AllPairs, targets: Floats, noise: float | None) -> None:
        """Set the attributes of the components, and those of their average."""
        c = found.components
        mean = float(c.weights @ c.means)
        self.weights_, self.scales_ = c.weights, c.scales * inflation(c.dof)
        self.noises_ = np.sqrt(self.scales_ * c.ratios) if noise is None else np.full(len(c.weights), noise)
        self.intercept_, self.intercepts_ = float(targets.mean()) + mean, targets.mean() + c.means
        self.intercept_variances_ = c.mean_variances
        self.degrees_of_freedom_ = int(c.dof) if np.isfinite(c.dof) else None
        self.scale_ = float(self.weights_ @ self.scales_)
        self.noise_ = float(np.sqrt(self.weights_ @ self.noises_**2)) if noise is None else noise
        self.log_marginal_likelihood_ = found.evidence
        self.basis_, self.eigenvalues_ = np.ascontiguousarray(prior.basis), prior.values
        self.coordinates_ = prior.coordinates - np.outer(prior.coordinates[:, 1], [mean, 0.0])
        self.dual_coef_ = self.basis_ @ (self._slopes() @ self.weights_)

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, *, with_noise: bool = True) -> Any:
        """Return the predicted mean for each of m objects and, on request, standard deviations or covariances.

        Parameters
        ----------
        X : collection of m objects
            A Dask collection gives lazy arrays; with `return_cov`, it raises an error.
        return_std : bool, default=False
            Whether to return standard deviations, in units of the targets.
        return_cov : bool, default=False
            Whether to return the covariance matrix of the m objects.
        with_noise : bool, default=True
            If True, standard deviations and covariances are for noisy measurements; if False, they are for the
            noise-free function.

        Returns
        -------
        mean : ndarray of float64, shape (m,)
        std : ndarray of float64, shape (m,)
            Only with `return_std`. A prediction is a mixture of distributions, called its components (see
            `hyperparameters`). Its variance is the average variance of the components plus the variance of their means.
        covariance : ndarray of float64, shape (m, m)
            Only with `return_cov`.
        """
        check_fitted(self)
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True; ask for one of them")
        if return_cov:
            refuse_lazy(X, "covariances need all objects at once; take return_std=True, or call predict for each part")
            covariance = self._covariance(X)
            covariance[np.diag_indices_from(covariance)] += self.noise_**2 if with_noise else 0.0
            return self._mean(X), covariance
        return self._mean_and_std(X, with_noise) if return_std else self._mean(X)

    @lazily
    def predict_quantiles(self, X: Any, levels: Any = (0.05, 0.5, 0.95), *, with_noise: bool = True) -> Floats:
        """Return quantiles of the prediction for each of m objects, shape (m, n_levels).

        Parameters
        ----------
        X : collection of m objects
        levels : sequence of n_levels floats, default=(0.05, 0.5, 0.95)
            For each quantile, the probability that the target lies below it; above 0 and below 1.
        with_noise : bool, default=True
            If True, the quantiles are for noisy measurements; if False, they are for the noise-free function.
        """
        check_fitted(self)
        levels = np.atleast_1d(np.asarray(levels))
        if levels.dtype.kind != "f" or levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
            raise BadParameter("levels", "numbers above 0 and below 1", short(levels.tolist(), 80))
        mixture = self._mixture(X, with_noise)
        return np.column_stack([mixture.quantiles(float(level)) for level in levels])

    @lazily
    def predict_interval(self, X: Any, coverage: float = 0.9, *, with_noise: bool = True) -> Floats:
        """Return the lower and the upper end of an interval for each of m objects, shape (m, 2).

        The target lies in the interval with the probability `coverage`, a number above 0 and below 1. The target is as
        likely to lie below the interval as above it. With ``with_noise=False``, the interval is for the noise-free
        function instead of a noisy measurement.
        """
        outside = (1 - float(checked_coverage(coverage))) / 2
        return self.predict_quantiles(X, [outside, 1 - outside], with_noise=with_noise)

    def log_density(self, X: Any, y: Any) -> Floats:
        """Return the logarithm of the predicted probability density at the target of each of m objects, shape (m,).

        `y` holds the targets. The mean of the returned numbers over held-out objects scores the predicted means and
        uncertainties together; larger is better.
        """
        check_fitted(self)
        refuse_lazy(X, "its targets must be at hand, too; call log_density for each part")
        mixture = self._mixture(X, with_noise=True)
        m = len(mixture.location)
        return mixture.log_density(checked_numbers(y, m, "GaussianProcessRegressor"))

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: RandomState = 0, *, with_noise: bool = False
    ) -> Floats:
        """Draw values of the function at m objects from their joint distribution, shape (m, n_samples).

        A prediction is a mixture of distributions, called its components (see `hyperparameters`). Each sample comes
        from one component, drawn with the probabilities `weights_`. With ``with_noise=True``, noise is added, as in
        measurements. Each component that is drawn costs one Cholesky factorisation of an m x m matrix.
        """
        check_fitted(self)
        refuse_lazy(X, "a joint sample needs all objects at once; give X.compute(), or a part of it")
        check_positive_int(n_samples, "n_samples")
        z, means, prior, rounding = self._joint(X)
        rng, m, dof = generator(random_state), len(means), self._dof
        components = rng.choice(len(self.weights_), n_samples, p=self.weights_)
        draws = rng.standard_normal((m, n_samples))
        if self.degrees_of_freedom_ is not None:
            draws *= np.sqrt(dof / rng.chisquare(dof, n_samples))
        shares, tilts, samples = self._shares(), self._tilts(z), np.empty((m, n_samples))
        for c in np.unique(components):
            half = z * np.sqrt(shares[:, c])
            covariance = prior - row_product(half, np.ascontiguousarray(half.T)) + np.outer(tilts[:, c], tilts[:, c])
            unit = prior.diagonal().mean() or covariance.diagonal().mean()  # all k(x, x) may be 0, as of empty strings
            added = max(_JITTER, rounding) * unit + (self._ratios()[c] if with_noise else 0.0)
            covariance[np.diag_indices_from(covariance)] += added
            covariance *= self.scales_[c] / inflation(dof)
            with one_blas_thread():
                factor = cholesky_factor(covariance) if covariance.any() else covariance
            if factor is None:
                raise ValueError(
                    "the covariance of these objects is not positive definite; take a positive semi-definite kernel"
                )
            drawn = components == c
            samples[:, drawn] = means[:, c : c + 1] + row_product(factor, np.ascontiguousarray(draws[:, drawn]))
        return samples

    def suggest(
        self, pool: Any, n: int = 1, method: str = "improvement", *, maximize: bool = True,
        random_state: RandomState = 0,
    ) -> Index:  # fmt: skip
        """Suggest which objects of a pool to measure next, to find an object with a large target; return positions.

        Parameters
        ----------
        pool : collection of m objects
            Candidates. They should not include objects that were already measured, which this method suggests like any
            others (the command ``similia suggest`` leaves them out), nor any object twice. For a Dask collection,
            workers choose n objects of each partition, and the result is chosen from these objects. The result is the
            same as for objects in memory if there is one partition or ``n=1``; otherwise, all choices but the first may
            differ.
        n : int, default=1
            Number of objects to choose, at most m.
        method : {"improvement", "thompson"}, default="improvement"
            "improvement" chooses the object with the largest expected improvement over the best target so far (Jones,
            Schonlau & Welch, 1998). Each further choice assumes that the objects chosen so far were measured, with
            their predicted means as targets (Ginsbourger, Le Riche & Carraro, 2010). "thompson" draws n functions from
            the posterior and chooses the best object for each function (Thompson, 1933). It needs memory for m x m
            numbers, and does not accept Dask collections.
        maximize : bool, default=True
            Whether to search for large targets; False searches for small ones.
        random_state : int, numpy Generator or None, default=0
            Source of randomness for "thompson".

        Returns
        -------
        ndarray of int64, shape (n,)
            Distinct positions in the pool; with "improvement", the most promising first.
        """
        check_fitted(self)
        if method == "thompson" and is_lazy(pool):
            found = "is a Dask collection, and method='thompson' draws all its objects jointly in memory"
            raise BadType(None, found, remedy="take method='improvement'", collection="pool")
        pool = as_parts(pool)
        parted = isinstance(pool, Distributed)
        m = at_least_one(pool if parted else read_objects(self, self.kernel_, pool, reset=False), "pool")
        check_positive_int(n, "n")
        if n > m:
            raise ValueError(f"n={n}, but the pool has {m} objects; ask for fewer")
        sign = 1.0 if maximize else -1.0
        check_choice(method, "method", ("improvement", "thompson"))
        if method == "thompson":
            return _winners(sign * self.sample_y(pool, n, random_state))
        if parted:
            best, at = zip(*pool.map(_best_of_part, self, n, sign), strict=True)
            with part_of_more(lazy=True):
                return np.concatenate(at)[self._most_improving(concatenate(best), n, sign)]
        return self._most_improving(pool, n, sign)

    def knowledge(self, X: Any) -> Floats:
        """Return how much each training object tells about each of m objects, shape (m, n_kept).

        With landmarks, the columns stand for the landmarks instead of all training objects, as in `objects_`. Before
        training, the variance at an object x is ``scale_ * k(x, x)``. Entry (i, j) is the share of the variance at
        object i that object j of `objects_` removes. Shares are computed as if mean, scale and noise were known, and
        averaged over the components of the prediction (see `hyperparameters`). With "maximized", the entries of a row
        add up to the share of the variance that training removes in total. An entry may be negative if several of the
        `objects_` resemble each other.
        """
        check_fitted(self)
        n, rank = self.basis_.shape
        back = np.ascontiguousarray((self.basis_ * self._mean_shares()).T)
        shares = self._over_blocks(
            X, self.objects_, lambda K: K * row_product(row_product(K, self.basis_), back), n + rank
        )
        prior = self._self_values(X)
        return np.divide(shares, prior[:, None], out=np.zeros_like(shares), where=prior[:, None] > 0)

    # ---- components; z = k(x, objects_) @ basis_

    @property
    def _dof(self) -> float:
        return np.inf if self.degrees_of_freedom_ is None else float(self.degrees_of_freedom_)

    def _ratios(self) -> Floats:
        return self.noises_**2 / self.scales_

    def _shares(self) -> Floats:
        """Return 1 / (l_j + a_c), shape (rank, n_components)."""
        return 1 / (self.eigenvalues_[:, None] + self._ratios())

    def _mean_shares(self) -> Floats:
        """Return the average of s_c^2 / (l_j + a_c) in units of `scale_`, shape (rank,)."""
        return (self._shares() * (self.weights_ * self.scales_)).sum(axis=1) / self.scale_

    def _slopes(self) -> Floats:
        """Return the factors of z in the mean of each component, shape (rank, n_components)."""
        offsets = self.intercepts_ - self.intercept_
        return self._shares() * (self.coordinates_[:, :1] - offsets * self.coordinates_[:, 1:])

    def _tilts(self, z: Floats) -> Floats:
        """Return the standard deviations that the mean of the process adds, in units of s, (m, n_components)."""
        return (1 - row_product(z, self._shares() * self.coordinates_[:, 1:])) * np.sqrt(self.intercept_variances_)

    @lazily
    def _mean(self, X: Any) -> Floats:
        found = self._over_blocks(X, self.objects_, lambda K: row_product(K, self.dual_coef_[:, None]))
        return found[:, 0] + self.intercept_

    @lazily
    def _mean_and_std(self, X: Any, with_noise: bool) -> tuple[Floats, Floats]:
        mean, mixture = self._mean_and_mixture(X, with_noise)
        return mean, mixture.std()

    def _mixture(self, X: Any, with_noise: bool) -> StudentMixture:
        """Return the distributions of the targets, or of f, at m objects."""
        return self._mean_and_mixture(X, with_noise)[1]

    def _mean_and_mixture(self, X: Any, with_noise: bool) -> tuple[Floats, StudentMixture]:
        """Return what `_mean` and `_mixture` return, from the same kernel values."""
        k, shares, scale = len(self.weights_), self._shares(), np.sqrt(self.intercept_variances_)
        linear = np.hstack([self._slopes(), shares * self.coordinates_[:, 1:]])

        def of(K: npt.NDArray) -> Floats:
            z = row_product(K, self.basis_)
            found = row_product(z, linear)
            known = row_product(z**2, shares) - ((1 - found[:, k:]) * scale) ** 2
            return np.hstack([found[:, :k], known, row_product(K, self.dual_coef_[:, None])])

        found = self._over_blocks(X, self.objects_, of, 2 * len(shares) + 6 * k)
        variance = self.scales_ * np.maximum(self._self_values(X)[:, None] - found[:, k:-1], 0.0)
        variance += self.noises_**2 if with_noise else 0.0
        width = np.sqrt(variance / inflation(self._dof))
        mixture = StudentMixture(self.weights_, found[:, :k] + self.intercepts_, width, self._dof)
        return found[:, -1] + self.intercept_, mixture

    def _joint(self, X: Any) -> tuple[Floats, Floats, Floats, float]:
        """Return z (m, rank), means of the components (m, n_components), k (m, m) and its rounding for m objects."""
        objects = read_objects(self, self.kernel_, X, reset=False)
        m = at_least_one(objects)
        check_memory(f"the covariance of {m} objects takes", 24 * m**2, "take fewer objects")
        z = self._over_blocks(X, self.objects_, lambda K: row_product(K, self.basis_), self.basis_.shape[1])
        prior = kernel_values(self.kernel_, objects, None, range(m), range(m), "X[{}] and X[{}]")
        rounding = m * precision(self.kernel_, objects, prior)  # of the eigenvalues, in units of the prior variance
        return z, row_product(z, self._slopes()) + self.intercepts_, prior.astype(np.float64, copy=False), rounding

    def _covariance(self, X: Any) -> Floats:
        """Return the covariance of f at m objects: the average within components, plus that of their means."""
        z, means, prior, _ = self._joint(X)
        half = z * np.sqrt(self._mean_shares() * self.scale_)
        spread = (means - (self.weights_ * means).sum(axis=1, keepdims=True)) * np.sqrt(self.weights_)
        added = np.column_stack([self._tilts(z) * np.sqrt(self.weights_ * self.scales_), spread])
        products = (row_product(part, np.ascontiguousarray(part.T)) for part in (half, added))
        return self.scale_ * prior - next(products) + next(products)

    def _most_improving(self, pool: Any, n: int, sign: float) -> Index:
        """Return the positions of the n objects that `suggest` chooses by expected improvement."""
        objects = read_objects(self, self.kernel_, pool, reset=False)
        m, rank, k = n_objects(objects), self.basis_.shape[1], len(self.weights_)
        needed, instead = 8 * m * (rank + k * (n + 6)), "take a smaller pool or, of a Dask bag, smaller partitions"
        check_memory(f"a pool of {m} objects takes", needed, instead)
        z = self._over_blocks(pool, self.objects_, lambda K: row_product(K, self.basis_), rank)
        shares, tilts = self._shares(), self._tilts(z)
        means = sign * (row_product(z, self._slopes()) + self.intercepts_)
        mean = (self.weights_ * means).sum(axis=1)
        known = row_product(z**2, shares) - tilts**2
        variance = self.scales_ * np.maximum(diagonal(self.kernel_, objects)[:, None] - known, 0.0)
        best, updates, chosen = float((sign * self.targets_).max()), np.empty((n, m, k)), np.empty(n, np.int64)
        for t in range(n):
            gain = StudentMixture(self.weights_, means, np.sqrt(variance / inflation(self._dof)), self._dof)
            gains = gain.improvement(best)
            if np.delete(gains, chosen[:t]).max() == 0:  # too small for float64; larger for fewer standard deviations
                least = np.full_like(means, -np.finfo(float).max)
                gains = np.divide(means - best, gain.width, out=least, where=gain.width > 0).max(axis=1)
            gains[chosen[:t]] = -np.inf
            j = chosen[t] = int(np.argmax(gains))
            values = kernel_values(
                self.kernel_, objects, take(objects, chosen[t : t + 1]), range(m), [j], "X[{}] and X[{}]"
            )
            column = self.scales_ * (values - row_product(z, shares * z[j][:, None]) + tilts * tilts[j])
            column -= (updates[:t] * updates[:t, j : j + 1]).sum(axis=0)
            updates[t] = column / np.sqrt(np.maximum(column[j], 0.0) + self.noises_**2)
            variance = np.maximum(variance - updates[t] ** 2, 0.0)
            best = max(best, float(mean[j]))
        return chosen


def _best_of_part(part: Any, start: int, model: GaussianProcessRegressor, n: int, sign: float) -> tuple[Any, Index]:
    """Return the n objects that `suggest` would choose of one part of a pool, and their positions in the pool."""
    with part_of_more(lazy=True, start=start):
        chosen = model._most_improving(part, min(n, n_objects(part)), sign)
    return take(part, chosen), start + chosen


def centred(targets: Floats) -> Floats:
    return targets - targets.mean()


def _winners(samples: Floats) -> Index:
    """Return for each column the row of its largest value among the rows that no earlier column took."""
    chosen: list[int] = []
    for column in samples.T.copy():
        column[chosen] = -np.inf
        chosen.append(int(np.argmax(column)))
    return np.array(chosen, dtype=np.int64)


def number_of_landmarks(wanted: Any, n: int, auto: int | None) -> int | None:
    """Return the number of landmarks, or None for all n objects; `auto` is the value that "auto" stands for."""
    if isinstance(wanted, str) and wanted == "auto":
        wanted = auto
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or wanted < 1:
        raise BadParameter("n_landmarks", "an integer >= 1, 'auto', or None for all objects", repr(wanted))
    return min(n, int(wanted))
