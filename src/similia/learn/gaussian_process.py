r"""Gaussian-process regression with any kernel of any objects: predictions with their standard deviations.

The model is y_i = mu + f(x_i) + e_i, where f has the covariance s^2 k and e_i is noise of variance s^2 a. With
G = (K + a I)^-1,

.. math::
    \mathrm E\, f(x) = k_x^T G\,(y - \mu), \qquad \mathrm{var}\, f(x) = s^2 \left(k(x, x) - k_x^T G\, k_x\right).

The evidence, the likelihood of all y under the model, chooses mu, a, s^2 and, among given values, parameters of the
kernel (Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006, Sections 2.3, 5.4); see
`similia.learn.evidence`.

With m landmarks Z in place of all n objects, the Nyström approximation q = phi . phi replaces k. Predictions then are

.. math::
    \mathrm E f(x) = \phi^T (\Phi^T\Phi + a I)^{-1} \Phi^T (y - \mu), \qquad
    \mathrm{var}\, f(x) = s^2 \left(k(x, x) - \phi^T \Phi^T\Phi\, (\Phi^T\Phi + a I)^{-1} \phi\right).

In both cases the mean is k(x, Z) w and the variance s^2 (k(x, x) - |k(x, Z) A|^2), with a vector w and a matrix A that
`fit` computes; Z holds all training objects, or the landmarks.

Cost of `fit`: n^2 kernel values and 6 n^3 operations, or n m kernel values and 2 n m^2 operations in blocks. A
prediction takes one kernel value for each object in Z; its variance takes two operations for each entry of A.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr
from sklearn.base import RegressorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from similia.core.config import check_memory
from similia.core.errors import BadParameter, BadValue
from similia.core.estimators import all_at_once
from similia.core.products import row_product
from similia.core.state import Sizes, array, objects, reads, state
from similia.core.text import short
from similia.core.threads import one_blas_thread
from similia.core.validation import (
    RandomState,
    check_choice,
    check_labels,
    check_positive,
    check_positive_int,
    generator,
)
from similia.embeddings.gram import kernel_values
from similia.embeddings.nystroem import Nystroem
from similia.learn.evidence import AllPairs, Landmarks, cholesky_factor, most_likely
from similia.learn.kernel_machines import KernelMachine
from similia.learn.targets import checked_targets
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import check_kernel, decided, diagonal, read_objects
from similia.sources.dask import lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_EXACT = 5000  # maximum number of objects for an exact fit, if `n_landmarks` is "auto"
_LANDMARKS = 1000  # number of landmarks for more objects
_JITTER = 1e-10  # added to the diagonal of a covariance before its factorisation, in units of the prior variance


class GaussianProcess(KernelMachine):
    """Base of the Gaussian processes: tries parameters of the kernel, reads objects, takes landmarks."""

    parameters: Any
    n_landmarks: Any
    random_state: RandomState
    objects_: Any
    indices_: Index

    def _kernels(self) -> list[Any]:
        """Return copies of the kernel with each combination of `parameters`."""
        check_kernel(self.kernel)
        if self.parameters is None:
            return [self.kernel]
        if not isinstance(self.parameters, dict) or not self.parameters or not hasattr(self.kernel, "set_params"):
            raise BadParameter(
                "parameters", "a dictionary of parameters of the kernel and lists of values to try",
                short(self.parameters), "such as {'k': [2, 3, 4]}",
            )  # fmt: skip
        return [clone(self.kernel).set_params(**values) for values in ParameterGrid(self.parameters)]

    def _objects(self, kernel: Any, X: Any) -> tuple[Any, Any, int]:
        """Return (kernel with all parameters set, objects in its layout, their number)."""
        refuse_lazy(X, "several passes over the objects are needed")
        kernel = decided(kernel, X)
        objects = read_objects(self, kernel, X, reset=True)
        return kernel, objects, at_least_one(objects)

    def _embedding(self, kernel: Any, objects: Any, n_landmarks: int) -> Nystroem:
        return Nystroem(kernel, n_landmarks, "rpcholesky", random_state=self.random_state).fit(objects)

    def _self_values(self, X: Any) -> Floats:
        """Return k(x, x) of m objects, shape (m,)."""
        return diagonal(self.kernel_, read_objects(self, self.kernel_, X, reset=False))


def _regressor_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    return reads(state["kernel_"], state["objects_"]) and state["scale_"] >= 0 and state["noise_"] >= 0


@state(
    fits=_regressor_fits, objects_=objects("s"), indices_=array("i8", "s"),
    dual_coef_=array("f8", "s"), whitening_=array("f8", "s", "r"),
    scale_="number", noise_="number", intercept_="number", log_marginal_likelihood_="number",
    targets_=array("f8", "n"), loo_mean_=array("f8", "n"), loo_std_=array("f8", "n"),
)  # fmt: skip
class GaussianProcessRegressor(RegressorMixin, GaussianProcess):
    r"""Gaussian-process regression of strings, graphs, series, sets or vectors, with any kernel.

    Parameters
    ----------
    kernel : callable
        ``k(X, Y=None) -> (n, m)``, positive semi-definite: a kernel of `similia.kernels`, a combination of these, or
        `similia.pairwise` of a function. `fit` chooses a factor by which it multiplies the kernel, so the scale of the
        kernel does not matter.
    parameters : dict of str to list, optional
        Parameters of the kernel and the values to try, as for scikit-learn's `ParameterGrid`: ``{"k": [2, 3, 4]}``.
        `fit` takes the combination with the largest evidence (the likelihood of the targets), without cross-validation.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, in units of the targets. "auto" takes the value with the largest evidence.
    n_landmarks : int, None or "auto", default="auto"
        Number of landmarks: training objects, chosen by randomly pivoted Cholesky, with which all objects are compared.
        The cost then grows linearly with the number of objects. None: compare all pairs of objects. "auto": compare all
        pairs of up to 5,000 objects; for more objects, take 1,000 landmarks.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for the choice of landmarks.

    Attributes
    ----------
    kernel_ : callable
        The kernel with all its parameters set.
    scale_ : float
        Factor by which the kernel is multiplied, in squared units of the targets.
    noise_ : float
        Standard deviation of the noise, in units of the targets.
    intercept_ : float
        Mean of the process: the prediction for an object that resembles no training object.
    log_marginal_likelihood_ : float
        Logarithm of the evidence; with landmarks, a lower bound of it.
    objects_ : collection of n_kept objects
        The landmarks or, without landmarks, all training objects.
    indices_ : ndarray of int64, shape (n_kept,)
        Positions of `objects_` in the training objects.
    dual_coef_ : ndarray of float64, shape (n_kept,)
        Coefficients: the predicted mean for x is ``k(x, objects_) @ dual_coef_ + intercept_``.
    whitening_ : ndarray of float64, shape (n_kept, rank)
        Matrix from which variances are computed. The variance of the prediction for x, without noise, is
        ``scale_ * (k(x, x) - |k(x, objects_) @ whitening_|^2)``.
    targets_ : ndarray of float64, shape (n,)
        The targets that `fit` saw.
    loo_mean_, loo_std_ : ndarray of float64, shape (n,)
        Mean and standard deviation of each target, predicted from all other targets, with the same `scale_` and
        `noise_`.
    n_features_in_ : int
        Number of columns; only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, or the kernel has eigenvalues
        so far below 0 that no noise makes up for them.

    Notes
    -----
    The prediction for an object with k(x, x) = 0, such as an empty string, is `intercept_`; its variance is that of the
    noise alone. If k(x, x) grows with the size of objects, predictions for small objects seem too certain: set
    ``normalize=True`` in the kernel.

    The standard deviations are right if the targets come from a Gaussian process with this kernel. To check, count the
    `targets_` within ``loo_mean_ +- 1.96 loo_std_``: 95 % of them should be. `similia.ConformalRegressor` makes
    intervals that need no such assumption.

    References
    ----------
    Rasmussen & Williams, "Gaussian Processes for Machine Learning", MIT Press, 2006: algorithm 2.1; equations 5.10 to
    5.12 (leaving one out). Titsias, "Variational learning of inducing variables in sparse Gaussian processes", AISTATS
    2009.

    Examples
    --------
    >>> import similia as sm
    >>> X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], [0.1, 0.9, 2.0, 3.1, 3.9]
    >>> model = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=1), noise=0.1).fit(X, y)
    >>> mean, std = model.predict(["CCAA", "GGGG"], return_std=True)
    >>> mean.round(1), std.round(1)
    (array([2., 2.]), array([0.1, 2. ]))
    """

    def __init__(
        self, kernel: Any, parameters: dict[str, Any] | None = None, noise: float | str = "auto",
        n_landmarks: int | str | None = "auto", random_state: RandomState = None,
    ) -> None:  # fmt: skip
        self.kernel = kernel
        self.parameters = parameters
        self.noise = noise
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @all_at_once
    def fit(self, X: Any, y: Any) -> Self:
        """Choose scale, noise and parameters of the kernel for n objects with the targets `y`, n numbers."""
        noise = None
        if not (isinstance(self.noise, str) and self.noise == "auto"):
            hint = '; "auto" estimates it; for exact targets, give a thousandth of their standard deviation'
            noise = check_positive(self.noise, "noise", hint=hint)
        best: tuple[Any, ...] | None = None
        with one_blas_thread():  # so that the choice does not depend on the number of threads
            for kernel in self._kernels():
                kernel, objects, n = self._objects(kernel, X)
                targets = checked_targets(check_labels(y, n), n, "GaussianProcessRegressor")
                if noise is None and targets.min() == targets.max():
                    same = f"is {targets[0]:g} for all of the {n} objects" if n > 1 else "has 1 sample"
                    remedy = "scale and noise cannot be estimated from it; give more objects, or set noise to a number"
                    raise BadValue(None, same, "different targets", remedy, collection="y")
                m = number_of_landmarks(self.n_landmarks, n, None if n <= _EXACT else _LANDMARKS)
                prior: Landmarks | AllPairs
                if m:
                    prior = Landmarks(self._embedding(kernel, objects, m), objects)
                else:
                    all_pairs = f"a Gaussian process of all pairs of {n} objects takes"
                    check_memory(all_pairs, 32 * n**2, "set n_landmarks=1000")
                    prior = AllPairs(self._gram(kernel, objects, n))
                found = most_likely(prior, targets - targets.mean(), noise)
                if best is None or found.evidence > best[0].evidence:
                    best = found, kernel, objects, prior
                del prior
        assert best is not None
        found, self.kernel_, objects, prior = best
        self.intercept_ = float(targets.mean()) + found.mean
        with one_blas_thread():
            kept, self.dual_coef_, self.whitening_, loo = prior.posterior(found.ratio, targets - self.intercept_)
        self.objects_, self.indices_ = (objects, np.arange(n)) if kept is None else kept
        self.scale_, self.noise_ = found.scale, float(np.sqrt(found.scale * found.ratio))
        self.log_marginal_likelihood_ = found.evidence
        self.targets_, self.loo_mean_ = targets, loo[0] + self.intercept_
        self.loo_std_ = np.sqrt(found.scale * loo[1])
        return self

    @lazily
    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False, *, with_noise: bool = True) -> Any:
        """Return the predicted mean for each of m objects and, on request, standard deviations or covariances.

        Parameters
        ----------
        X : collection of m objects
        return_std : bool, default=False
            Whether to return standard deviations, in units of the targets.
        return_cov : bool, default=False
            Whether to return the covariance matrix of the m objects.
        with_noise : bool, default=True
            If True, the standard deviations and covariances are those of measurements, which have noise; if False,
            those of the function f.

        Returns
        -------
        mean : ndarray of float64, shape (m,)
        std : ndarray of float64, shape (m,)
            Only with `return_std`.
        covariance : ndarray of float64, shape (m, m)
            Only with `return_cov`.
        """
        check_is_fitted(self)
        if return_std and return_cov:
            raise ValueError("return_std and return_cov are both True; ask for one of them")
        if not (return_std or return_cov):
            return self._over_blocks(X, self.objects_, self._means)
        added = self.noise_**2 if with_noise else 0.0
        if return_cov:
            mean, covariance = self._joint(X)
            covariance[np.diag_indices_from(covariance)] += added
            return mean, covariance
        found = self._over_blocks(X, self.objects_, self._means_and_known, self.whitening_.shape[1] + 2)
        latent = self.scale_ * np.maximum(self._self_values(X) - found[:, 1], 0.0)
        return found[:, 0], np.sqrt(latent + added)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: RandomState = 0, *, with_noise: bool = False
    ) -> Floats:
        """Draw values of the function at m objects from their joint distribution, shape (m, n_samples).

        With `with_noise`, the values are those of measurements, which have noise.
        """
        check_is_fitted(self)
        check_positive_int(n_samples, "n_samples")
        mean, covariance = self._joint(X)
        prior = self.scale_ * self._self_values(X).mean()
        covariance[np.diag_indices_from(covariance)] += _JITTER * prior + (self.noise_**2 if with_noise else 0.0)
        with one_blas_thread():
            factor = cholesky_factor(covariance)
        if factor is None:
            raise ValueError(
                "the covariance of these objects is not positive definite; take a positive semi-definite kernel"
            )
        draws = generator(random_state).standard_normal((len(mean), n_samples))
        return mean[:, None] + row_product(factor, draws)

    def suggest(
        self, pool: Any, n: int = 1, method: str = "improvement", *, maximize: bool = True,
        random_state: RandomState = 0,
    ) -> Index:  # fmt: skip
        """Return the positions in a pool of the objects to measure next, to find one with a large target.

        Parameters
        ----------
        pool : collection of m objects
            Candidates. They should not include objects that are measured already, nor any object twice.
        n : int, default=1
            Number of objects to choose, at most m.
        method : {"improvement", "thompson"}, default="improvement"
            "improvement" takes the object of largest expected improvement over the best target so far (Jones, Schonlau
            & Welch, 1998). To choose another, it supposes that the target of the first is as predicted (Ginsbourger, Le
            Riche & Carraro, 2010). "thompson" draws n functions from the posterior and takes the best object of each
            (Thompson, 1933); this needs memory for m x m numbers.
        maximize : bool, default=True
            Whether to search for large targets; False searches for small ones.
        random_state : int, numpy Generator or None, default=0
            Source of randomness for "thompson".

        Returns
        -------
        ndarray of int64, shape (n,)
            Distinct positions in the pool, the most promising first.
        """
        check_is_fitted(self)
        m = at_least_one(read_objects(self, self.kernel_, pool, reset=False), "pool")
        check_positive_int(n, "n")
        if n > m:
            raise ValueError(f"n={n}, but the pool has {m} objects; ask for fewer")
        sign = 1.0 if maximize else -1.0
        check_choice(method, "method", ("improvement", "thompson"))
        if method == "thompson":
            return _winners(sign * self.sample_y(pool, n, random_state))
        return self._most_improving(pool, n, sign)

    def knowledge(self, X: Any) -> Floats:
        """Return by how much each of `objects_` reduces the variance of f at m objects, shape (m, n_kept).

        Reductions are shares of the variance before training, s^2 k(x, x). The row of x sums to 1 - V / (s^2 k(x, x)),
        where V is the variance of f at x. A share may be negative if several of `objects_` resemble each other.
        """
        check_is_fitted(self)
        n, rank = self.whitening_.shape
        transposed = np.ascontiguousarray(self.whitening_.T)
        shares = self._over_blocks(
            X, self.objects_, lambda K: K * row_product(row_product(K, self.whitening_), transposed), n + rank
        )
        prior = self._self_values(X)
        return np.divide(shares, prior[:, None], out=np.zeros_like(shares), where=prior[:, None] > 0)

    def _means(self, K: npt.NDArray) -> Floats:
        return row_product(K, self.dual_coef_[:, None])[:, 0] + self.intercept_

    def _means_and_known(self, K: npt.NDArray) -> Floats:
        """Return, for each row of kernel values, the mean of f and |k(x, Z) A|^2, by which its variance shrinks."""
        return np.column_stack([self._means(K), (row_product(K, self.whitening_) ** 2).sum(axis=1)])

    def _means_and_whitened(self, X: Any) -> tuple[Floats, Floats]:
        """Return the mean of f and the vector k(x, Z) A for m objects, shapes (m,) and (m, rank)."""
        found = self._over_blocks(
            X, self.objects_, lambda K: np.column_stack([self._means(K), row_product(K, self.whitening_)]),
            self.whitening_.shape[1] + 1,
        )  # fmt: skip
        return found[:, 0], found[:, 1:]

    def _joint(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and covariance of f at m objects."""
        objects = read_objects(self, self.kernel_, X, reset=False)
        m = at_least_one(objects)
        check_memory(f"the covariance of {m} objects takes", 24 * m**2, "take fewer objects")
        mean, known = self._means_and_whitened(X)
        prior = self._gram(self.kernel_, objects, m)
        return mean, self.scale_ * (prior - row_product(known, np.ascontiguousarray(known.T)))

    def _most_improving(self, pool: Any, n: int, sign: float) -> Index:
        """Return the positions of the n objects that `suggest` chooses by expected improvement."""
        objects = read_objects(self, self.kernel_, pool, reset=False)
        m, rank = n_objects(objects), self.whitening_.shape[1]
        check_memory(f"a pool of {m} objects takes", 8 * m * (rank + n + 2), "take a smaller pool")
        mean, known = self._means_and_whitened(pool)
        mean *= sign
        variance = self.scale_ * np.maximum(diagonal(self.kernel_, objects) - (known**2).sum(axis=1), 0.0)
        best, updates, chosen = float((sign * self.targets_).max()), np.empty((n, m)), np.empty(n, np.int64)
        for t in range(n):
            gain = _expected_improvement(mean - best, np.sqrt(variance))
            gain[chosen[:t]] = -np.inf
            j = chosen[t] = int(np.argmax(gain))
            values = kernel_values(
                self.kernel_, objects, take(objects, chosen[t : t + 1]), range(m), [j], "X[{}] and X[{}]"
            )
            column = self.scale_ * (values[:, 0] - row_product(known, known[j][:, None])[:, 0])
            column -= updates[:t].T @ updates[:t, j]
            updates[t] = column / np.sqrt(max(column[j], 0.0) + max(self.noise_**2, np.finfo(float).tiny))
            variance = np.maximum(variance - updates[t] ** 2, 0.0)
            best = max(best, float(mean[j]))
        return chosen


def number_of_landmarks(wanted: Any, n: int, auto: int | None) -> int | None:
    """Return the number of landmarks, or None for all n objects; `auto` is the value that "auto" stands for."""
    if isinstance(wanted, str) and wanted == "auto":
        wanted = auto
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or wanted < 1:
        raise BadParameter("n_landmarks", "an integer >= 1, 'auto', or None for all objects", repr(wanted))
    return min(n, int(wanted))


def _expected_improvement(gain: Floats, std: Floats) -> Floats:
    """Return E max(0, gain + std z) for a standard normal z (Jones, Schonlau & Welch 1998, equation 15)."""
    z = np.divide(gain, std, out=np.where(gain > 0, np.inf, -np.inf), where=std > 0)
    density = np.exp(-0.5 * np.square(z)) / np.sqrt(2 * np.pi)
    return np.where(std > 0, gain * ndtr(z) + std * density, np.maximum(gain, 0.0))


def _winners(samples: Floats) -> Index:
    """Return for each column the row of its largest value among the rows that no earlier column took."""
    chosen: list[int] = []
    for column in samples.T.copy():
        column[chosen] = -np.inf
        chosen.append(int(np.argmax(column)))
    return np.array(chosen, dtype=np.int64)
