r"""Gaussian processes on strings, graphs, series, sets or vectors, with any kernel: predictions that know their error.

The model is y_i = mu + f(x_i) + e_i, where f has the covariance s^2 k and e_i is noise of variance s^2 a. With
G = (K + a I)^-1,

.. math::
    \mathrm E\, f(x) = k_x^T G\,(y - \mu), \qquad \mathrm{var}\, f(x) = s^2 \left(k(x, x) - k_x^T G\, k_x\right).

The evidence, the likelihood of all y under the model, chooses mu, a, s^2 and, among given values, parameters of the
kernel (Rasmussen & Williams, "Gaussian Processes for Machine Learning", 2006, Sections 2.3, 5.4). For each a, the best
mu is 1^T G y / 1^T G 1, and the best s^2 is (y - mu)^T G (y - mu) / n. So the search has one dimension: 16 Cholesky
factorisations, in threads.

With m landmarks Z in place of all n objects, k is replaced by its Nyström approximation q = phi . phi, and the evidence
by the bound of Titsias ("Variational learning of inducing variables in sparse Gaussian processes", AISTATS 2009). The
bound subtracts tr(K - Q) / (2 a), so that noise may not explain what landmarks lose. Predictions then are

.. math::
    \mathrm E f(x) = \phi^T (\Phi^T\Phi + a I)^{-1} \Phi^T (y - \mu), \qquad
    \mathrm{var}\, f(x) = s^2 \left(k(x, x) - \phi^T \Phi^T\Phi\, (\Phi^T\Phi + a I)^{-1} \phi\right).

In both cases the mean is k(x, Z) w and the variance s^2 (k(x, x) - |k(x, Z) A|^2), with a vector w and a matrix A that
`fit` computes; Z holds all training objects, or the landmarks.

Cost of `fit`: n^2 kernel values and 6 n^3 operations, or n m kernel values and 2 n m^2 operations in blocks. A
prediction takes a kernel value for each object in Z; its variance twice as many operations as A has entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy.linalg import LinAlgError, cho_solve, cholesky, eigh, solve_triangular
from scipy.special import expit, log_expit, ndtr
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from similia.core.errors import BadParameter, BadValue
from similia.core.estimators import all_at_once
from similia.core.products import row_product
from similia.core.state import Sizes, array, labels, objects, reads, state
from similia.core.text import short
from similia.core.threads import in_threads, one_blas_thread
from similia.core.validation import RandomState, check_labels, check_positive, check_positive_int, generator
from similia.embeddings.gram import kernel_values, row_blocks
from similia.embeddings.nystroem import Nystroem
from similia.learn.gram_svm import check_memory
from similia.learn.kernel_machines import KernelMachine
from similia.learn.targets import checked_labels, checked_targets
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import check_kernel, decided, diagonal, read_objects
from similia.sources.dask import lazily, refuse_lazy

Floats = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]
_EXACT = 5000  # most objects for an exact fit, if `n_landmarks` is "auto"
_LANDMARKS, _LANDMARKS_TO_CLASSIFY = 1000, 500  # what "auto" stands for, above and at any number of objects
_COARSE = np.arange(-6.0, 3.0)  # decimal logarithms of a, in units of the mean k(x, x)
_FINE = np.array([-0.75, -0.5, -0.25, 0.25, 0.5, 0.75])
_WIDTHS = np.arange(-2.0, 9.0) / 2  # decimal logarithms of the variance of f, for classes
_JITTER = 1e-10  # added to the diagonal of a covariance before its factorisation, in units of the prior variance
_HERMITE, _LAGUERRE = np.polynomial.hermite.hermgauss(40), np.polynomial.laguerre.laggauss(40)  # points, weights
_NARROW = 2.0  # largest variance for Gauss-Hermite quadrature
_STEPS = 100  # of Newton's method


# ---- regression
@dataclass(frozen=True)
class _Fit:
    """The posterior over coefficients for one kernel.

    Attributes
    ----------
    evidence : float
        Logarithm of the likelihood of all targets, or its lower bound with landmarks.
    scale : float
        s^2.
    ratio : float
        a, the variance of the noise in units of s^2.
    mean : float
        mu, less the mean of the targets.
    """

    evidence: float
    scale: float
    ratio: float
    mean: float


class _Evidence(NamedTuple):
    """The terms of the logarithm of the evidence for one ratio a."""

    mean: float  # mu
    square: float  # (y - mu)^T G (y - mu)
    logdet: float  # of K + a I
    lost: float  # tr(K - Q) / (2 a)


class GaussianProcess(KernelMachine):
    """Base of the Gaussian processes: choose parameters of the kernel, read objects, take landmarks."""

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
        embedding = Nystroem(kernel, n_landmarks, "rpcholesky", random_state=self.random_state)
        return embedding.fit(objects)


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
        `similia.pairwise` of a function. Its scale does not matter; `fit` chooses a factor.
    parameters : dict of str to list, optional
        Parameters of the kernel and the values to try, as for scikit-learn's `ParameterGrid`: ``{"k": [2, 3, 4]}``. The
        combination with the largest evidence is taken, without cross-validation.
    noise : float or "auto", default="auto"
        Standard deviation of the noise, in units of the targets. "auto" chooses it by the evidence.
    n_landmarks : int, None or "auto", default="auto"
        None computes with all pairs of objects. A number takes as many landmarks, chosen by randomly pivoted Cholesky,
        for a cost that grows linearly with the number of objects. "auto" takes all pairs of up to 5,000 objects, and
        1,000 landmarks for more.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for the landmarks.

    Attributes
    ----------
    kernel_ : callable
        The kernel with all its parameters set.
    scale_ : float
        Factor s^2 of the kernel, in squared units of the targets.
    noise_ : float
        Standard deviation of the noise, in units of the targets.
    intercept_ : float
        Mean mu of the process. Predictions far from all training objects return to it.
    log_marginal_likelihood_ : float
        Logarithm of the evidence; with landmarks, its lower bound.
    objects_ : collection of n_kept objects
        The training objects or the landmarks.
    indices_ : ndarray of int64, shape (n_kept,)
        Their positions in the training objects.
    dual_coef_ : ndarray of float64, shape (n_kept,)
        The mean at x is ``k(x, objects_) @ dual_coef_ + intercept_``.
    whitening_ : ndarray of float64, shape (n_kept, rank)
        The variance of f at x is ``scale_ * (k(x, x) - |k(x, objects_) @ whitening_|^2)``.
    targets_ : ndarray of float64, shape (n,)
        The targets that `fit` saw.
    loo_mean_, loo_std_ : ndarray of float64, shape (n,)
        Mean and standard deviation of each target, predicted from all others, with `scale_` and `noise_` unchanged.
    n_features_in_ : int
        Number of columns; only if objects are rows of a table.

    Raises
    ------
    ValueError
        In `fit`, if the Gram matrix does not fit into ``similia.config(max_memory=...)``, or the kernel has eigenvalues
        so far below 0 that no noise makes up for them.

    Notes
    -----
    An object whose k(x, x) is 0, such as an empty string, gets the mean of the process, with no variance but the noise.
    If k(x, x) grows with the size of objects, small ones seem certain: set ``normalize=True`` in the kernel.

    The variance is right if the targets come from such a process. Look at the shares of `targets_` within ``loo_mean_
    +- 1.96 loo_std_``, or take `similia.ConformalRegressor` for intervals that need no such assumption.

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
        """Choose scale, noise and parameters of the kernel for n objects and their targets `y`, n numbers."""
        noise = None
        if not (isinstance(self.noise, str) and self.noise == "auto"):
            hint = '; or "auto" (for exact targets a small number, such as a thousandth of their standard deviation)'
            noise = check_positive(self.noise, "noise", hint=hint)
        best: tuple[Any, ...] | None = None
        with one_blas_thread():  # so that the choice does not depend on the number of threads
            for kernel in self._kernels():
                kernel, objects, n = self._objects(kernel, X)
                targets = checked_targets(check_labels(y, n), n, "GaussianProcessRegressor")
                if noise is None and targets.min() == targets.max():
                    same = f"is {targets[0]:g} for all of the {n} objects" if n > 1 else "has 1 sample"
                    remedy = "scale and noise cannot be estimated; give more, or the noise"
                    raise BadValue(None, same, "different targets", remedy, collection="y")
                m = _n_landmarks(self.n_landmarks, n, None if n <= _EXACT else _LANDMARKS)
                prior = _Landmarks(self._embedding(kernel, objects, m), objects) if m else _AllPairs(
                    self._gram(kernel, objects, _fitting(n)))  # fmt: skip
                found = _chosen(prior, targets - targets.mean(), noise)
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
        """Return the mean for each of m objects, with the standard deviation or the covariance if asked.

        Parameters
        ----------
        X : collection of m objects
        return_std : bool, default=False
            Whether to return standard deviations, in units of the targets.
        return_cov : bool, default=False
            Whether to return the covariance matrix of the m objects.
        with_noise : bool, default=True
            Whether these are of measurements, which have noise, or of the function f.

        Returns
        -------
        mean : ndarray of float64, shape (m,)
        std : ndarray of float64, shape (m,), or covariance, shape (m, m)
            Only if asked.
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
        rank = self.whitening_.shape[1]
        found = self._over_blocks(X, self.objects_, self._means_and_known, rank + 2)
        objects = read_objects(self, self.kernel_, X, reset=False)
        latent = self.scale_ * np.maximum(diagonal(self.kernel_, objects) - found[:, 1], 0.0)
        return found[:, 0], np.sqrt(latent + added)

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: RandomState = 0, *, with_noise: bool = False
    ) -> Floats:
        """Draw from the joint distribution of the function, or of measurements, at m objects: shape (m, n_samples)."""
        check_is_fitted(self)
        check_positive_int(n_samples, "n_samples")
        mean, covariance = self._joint(X)
        prior = self.scale_ * diagonal(self.kernel_, read_objects(self, self.kernel_, X, reset=False)).mean()
        covariance[np.diag_indices_from(covariance)] += _JITTER * prior + (self.noise_**2 if with_noise else 0.0)
        with one_blas_thread():
            factor = _factor(covariance)
        if factor is None:
            raise ValueError("the covariance of these objects is not positive definite; is the kernel, on all of them?")
        draws = generator(random_state).standard_normal((len(mean), n_samples))
        return mean[:, None] + row_product(factor, draws)

    def suggest(
        self, pool: Any, n: int = 1, method: str = "improvement", *, maximize: bool = True,
        random_state: RandomState = 0,
    ) -> Index:  # fmt: skip
        """Return the positions of the objects of a pool to measure next, in search of a large (or small) target.

        Parameters
        ----------
        pool : collection of m objects
            Without objects that are measured already, and each object once.
        n : int, default=1
            How many, at most m.
        method : {"improvement", "thompson"}, default="improvement"
            "improvement" takes the object of largest expected improvement over the best target so far (Jones, Schonlau
            & Welch, 1998). For the next ones, it supposes that the target was as predicted (Ginsbourger, Le Riche &
            Carraro, 2010). "thompson" draws n functions, and takes the best object of each (Thompson, 1933); this needs
            memory for m x m numbers.
        maximize : bool, default=True
            Whether large targets are wanted.
        random_state : int, numpy Generator or None, default=0
            For "thompson".

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
        if method == "thompson":
            return _winners(sign * self.sample_y(pool, n, random_state))
        if method == "improvement":
            return self._most_improving(pool, n, sign)
        raise BadParameter("method", '"improvement" or "thompson"', repr(method))

    def knowledge(self, X: Any) -> Floats:
        """Return what each kept object tells of f at m objects, as shares of the prior variance, shape (m, n_kept).

        With V the variance that remains at x, a row adds up to 1 - V / (s^2 k(x, x)). A share may be negative, if
        similar objects tell the same.
        """
        check_is_fitted(self)
        n, rank = self.whitening_.shape
        transposed = np.ascontiguousarray(self.whitening_.T)
        shares = self._over_blocks(
            X, self.objects_, lambda K: K * row_product(row_product(K, self.whitening_), transposed), n + rank
        )
        prior = diagonal(self.kernel_, read_objects(self, self.kernel_, X, reset=False))
        return np.divide(shares, prior[:, None], out=np.zeros_like(shares), where=prior[:, None] > 0)

    # ---- private
    def _means(self, K: npt.NDArray) -> Floats:
        return row_product(K, self.dual_coef_[:, None])[:, 0] + self.intercept_

    def _means_and_known(self, K: npt.NDArray) -> Floats:
        """Return, for each row of kernel values, the mean and the part of k(x, x) that the training objects tell."""
        return np.column_stack([self._means(K), (row_product(K, self.whitening_) ** 2).sum(axis=1)])

    def _joint(self, X: Any) -> tuple[Floats, Floats]:
        """Return mean and covariance of f at m objects."""
        objects = read_objects(self, self.kernel_, X, reset=False)
        m = at_least_one(objects)
        check_memory(f"the covariance of {m} objects takes", 24 * m**2, "take fewer objects")
        rank = self.whitening_.shape[1]
        found = self._over_blocks(
            X, self.objects_, lambda K: np.column_stack([self._means(K), row_product(K, self.whitening_)]), rank + 1
        )
        known = found[:, 1:]
        prior = kernel_values(self.kernel_, objects, None, range(m), range(m), "X[{}] and X[{}]")
        return found[:, 0], self.scale_ * (prior - row_product(known, np.ascontiguousarray(known.T)))

    def _most_improving(self, pool: Any, n: int, sign: float) -> Index:
        """Return the objects of largest expected improvement, one after the other."""
        objects = read_objects(self, self.kernel_, pool, reset=False)
        m, rank = n_objects(objects), self.whitening_.shape[1]
        check_memory(f"a pool of {m} objects takes", 8 * m * (rank + n + 2), "take a smaller pool")
        found = self._over_blocks(
            pool, self.objects_, lambda K: np.column_stack([self._means(K), row_product(K, self.whitening_)]), rank + 1
        )
        mean, known = sign * found[:, 0], found[:, 1:]
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


def _n_landmarks(wanted: Any, n: int, auto: int | None) -> int | None:
    """Return the number of landmarks, or None for all objects; `auto` is what "auto" stands for."""
    if isinstance(wanted, str) and wanted == "auto":
        wanted = auto
    if wanted is None:
        return None
    if isinstance(wanted, bool) or not isinstance(wanted, Integral) or wanted < 1:
        raise BadParameter("n_landmarks", "an integer >= 1, 'auto', or None for all objects", repr(wanted))
    return min(n, int(wanted))


def _fitting(n: int) -> int:
    """Return `n`; raise if an exact fit does not fit into memory."""
    check_memory(f"a Gaussian process of all pairs of {n} objects takes", 32 * n**2, "set n_landmarks=1000")
    return n


class _AllPairs:
    """Exact inference from the Gram matrix of n objects."""

    def __init__(self, K: Floats) -> None:
        self.K = K
        self.unit = float(np.trace(K)) / len(K) or 1.0

    def evidence(self, y: Floats, ratio: float) -> _Evidence | None:
        """Return the terms of the evidence; None if K + a I is not positive definite."""
        factor = self._factor(ratio)
        if factor is None:
            return None
        white = solve_triangular(factor, np.column_stack([y, np.ones(len(y))]), lower=True)
        return _Evidence(*_best_mean(white.T @ white), 2 * float(np.log(factor.diagonal()).sum()), 0.0)

    def posterior(self, ratio: float, y: Floats) -> tuple[None, Floats, Floats, tuple[Floats, Floats]]:
        """Return (None, w, A, (mean, variance / s^2 of each target given the others))."""
        factor = self._factor(ratio)
        assert factor is not None  # it was for the evidence
        whitening = np.ascontiguousarray(solve_triangular(factor, np.eye(len(y)), lower=True, overwrite_b=True).T)
        coefficients = cho_solve((factor, True), y)
        precision = (whitening**2).sum(axis=1)  # the diagonal of G
        return None, coefficients, whitening, (y - coefficients / precision, 1 / precision)

    def _factor(self, ratio: float) -> Floats | None:
        M = self.K.copy()
        M[np.diag_indices_from(M)] += ratio
        return _factor(M)


class _Landmarks:
    """Inference with the Nyström approximation of the kernel, from sums over blocks of objects."""

    def __init__(self, embedding: Nystroem, objects: Any) -> None:
        self.embedding, self.objects = embedding, objects
        self.diagonal = diagonal(embedding.kernel_, objects)
        self.unit = float(self.diagonal.mean()) or 1.0
        products, lost = np.zeros((embedding.rank_, embedding.rank_)), []
        for _, features in self._blocks():
            products += features.T @ features
            lost.append((features**2).sum(axis=1))
        self.lost = np.maximum(self.diagonal - np.concatenate(lost), 0.0)  # by the approximation: k(x, x) - q(x, x)
        values, self.vectors = eigh(products)
        self.values = np.maximum(values, 0.0)
        self.sums: tuple[Floats, Floats] | None = None  # targets, and what `_projected` returns for them

    def evidence(self, y: Floats, ratio: float) -> _Evidence:
        """Return the terms of the bound of the evidence."""
        b, values = self._projected(y), self.values
        both = np.column_stack([y, np.ones(len(y))])
        products = (both.T @ both - (b / (values + ratio)[:, None]).T @ b) / ratio
        logdet = float(np.log(values + ratio).sum()) + (len(y) - len(values)) * float(np.log(ratio))
        return _Evidence(*_best_mean(products), logdet, float(self.lost.sum()) / (2 * ratio))

    def posterior(self, ratio: float, y: Floats) -> tuple[Any, Floats, Floats, tuple[Floats, Floats]]:
        """Return ((landmarks, their positions), w, A, (mean, variance / s^2 of each target given the others))."""
        shares = 1 / (self.values + ratio)
        weights = self.vectors @ (self._projected(y)[:, 0] * shares)
        fitted, leverage = np.empty(len(y)), np.empty(len(y))
        for rows, features in self._blocks():
            fitted[rows] = features @ weights
            leverage[rows] = (features @ self.vectors) ** 2 @ shares
        unfitted = 1 - leverage  # (1 - leverage) times the residual when an object is left out is that of the fit
        components = self.embedding.components_
        whitening = components @ (self.vectors * np.sqrt(self.values * shares))
        loo = y - (y - fitted) / unfitted, ratio / unfitted + self.lost
        kept = self.embedding.landmarks_, self.embedding.landmark_indices_
        return kept, components @ weights, whitening, loo

    def _projected(self, y: Floats) -> Floats:
        """Return the products of features with targets and with ones, (rank, 2), in the basis of eigenvectors."""
        if self.sums is None or self.sums[0] is not y:
            total = np.zeros((len(self.values), 2))
            for rows, features in self._blocks():
                total += features.T @ np.column_stack([y[rows], np.ones(len(rows))])
            self.sums = y, self.vectors.T @ total
        return self.sums[1]

    def _blocks(self) -> Any:
        for rows in row_blocks(n_objects(self.objects), 8 * 3 * len(self.embedding.components_), 2**13):
            yield rows, np.asarray(self.embedding.transform(take(self.objects, rows)), dtype=np.float64)


def _best_mean(products: Floats) -> tuple[float, float]:
    """Return (mu, (y - mu)^T G (y - mu)) from the matrix of y^T G y, y^T G 1 and 1^T G 1."""
    mean = float(products[0, 1] / products[1, 1])
    return mean, max(float(products[0, 0]) - mean * float(products[0, 1]), 0.0)


def _chosen(prior: Any, y: Floats, noise: float | None) -> _Fit:
    """Return the ratio of largest evidence: from a grid, then a finer one about the best, then a parabola."""
    n, logs = len(y), dict[float, _Fit | None]()

    def tried(log: float) -> _Fit | None:
        ratio = prior.unit * 10.0**log
        found = prior.evidence(y, ratio)
        if found is None:
            return None
        scale = max(found.square / n, np.finfo(float).tiny) if noise is None else noise**2 / ratio
        value = n * np.log(2 * np.pi * scale) + found.logdet + found.square / scale
        return _Fit(-0.5 * float(value) - found.lost, scale, ratio, found.mean)

    def try_all(points: npt.NDArray) -> float:
        points = np.array([point for point in points if point not in logs])
        logs.update(zip(points.tolist(), in_threads(tried, points.tolist()), strict=True))
        known = {log: fit.evidence for log, fit in logs.items() if fit is not None}
        if not known:
            raise ValueError(
                "the kernel has eigenvalues too far below 0 for a Gaussian process; take a positive semi-definite "
                "kernel, or n_landmarks=..., which drops them"
            )
        return max(known, key=lambda log: (known[log], log))

    prior.evidence(y, prior.unit)  # so that threads share what it keeps
    best = try_all(_COARSE)
    best = try_all(best + _FINE)
    sides = [logs.get(best + step) for step in (-0.25, 0.25)]
    if all(side is not None for side in sides):
        left, middle, right = sides[0].evidence, logs[best].evidence, sides[1].evidence  # type: ignore[union-attr]
        bend = left - 2 * middle + right
        if bend < 0:
            best = try_all(np.array([best + 0.125 * (left - right) / bend]))
    found = logs[best]
    assert found is not None
    return found


def _factor(M: Floats) -> Floats | None:
    """Return the lower Cholesky factor of `M`, which is overwritten; None if it is not positive definite."""
    try:
        return cholesky(M, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None


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


# ---- classification
def _classifier_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    machines = 1 if sizes["c"] == 2 else sizes["c"]
    return sizes["c"] > 1 and sizes["p"] == machines and reads(state["kernel_"], state["objects_"])


@state(
    fits=_classifier_fits, classes_=labels("c"), objects_=objects("s"), indices_=array("i8", "s"),
    weights_=array("f8", "s", "p"), components_=array("f8", "s", "r"), spreads_=array("f8", "p", "r", "r"),
    scale_="number", log_marginal_likelihood_="number",
)  # fmt: skip
class GaussianProcessClassifier(ClassifierMixin, GaussianProcess):
    r"""Gaussian-process classification of strings, graphs, series, sets or vectors, with any kernel.

    The probability of a class is the logistic function of f(x), averaged over what is not known about f: it goes to 1/2
    far from all training objects. Laplace's approximation of the posterior. Of more than two classes, each is compared
    with all others, and their probabilities are divided by their sum.

    Parameters
    ----------
    kernel, parameters : callable, dict
        As for `GaussianProcessRegressor`.
    n_landmarks : int, "auto" or None, default="auto"
        Number of landmarks, chosen by randomly pivoted Cholesky. "auto": 500, or all training objects if there are no
        more; None: all of them.
    random_state : int, numpy Generator or None, default=None
        Source of randomness for the landmarks.

    Attributes
    ----------
    classes_ : ndarray, shape (n_classes,)
        Sorted labels.
    kernel_ : callable
        The kernel with all its parameters set.
    scale_ : float
        Variance of f, a factor of the kernel, chosen by the evidence; the same for all classes.
    log_marginal_likelihood_ : float
        Logarithm of the evidence in Laplace's approximation, summed over the classes.
    objects_ : collection of n_kept objects
        The landmarks.
    indices_ : ndarray of int64, shape (n_kept,)
        Their positions in the training objects.
    weights_ : ndarray of float64, shape (n_kept, n_machines)
        The most probable f of each class is ``k(x, objects_) @ weights_``. One machine for two classes.
    components_ : ndarray of float64, shape (n_kept, rank)
        As for `similia.Nystroem`.
    spreads_ : ndarray of float64, shape (n_machines, rank, rank)
        Factors R of the posterior covariances R R^T of the weights of the features.
    n_features_in_ : int
        Number of columns; only if objects are rows of a table.

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
    def fit(self, X: Any, y: Any) -> Self:
        """Choose the scale and the parameters of the kernel for n objects, and approximate the posterior."""
        _n_landmarks(self.n_landmarks, 1, 1)  # raises before any work
        best: tuple[Any, ...] | None = None
        with one_blas_thread():
            for kernel in self._kernels():
                kernel, objects, n = self._objects(kernel, X)
                self.classes_, codes = np.unique(checked_labels(y, n, two=True), return_inverse=True)
                m = _n_landmarks(self.n_landmarks, n, min(n, _LANDMARKS_TO_CLASSIFY)) or n
                embedding = self._embedding(kernel, objects, m)
                check_memory(f"the features of {n} objects take", 24 * n * embedding.rank_, "take fewer landmarks")
                features = np.asarray(embedding.transform(objects), dtype=np.float64)
                machines = [1] if len(self.classes_) == 2 else [*range(len(self.classes_))]
                unit = float(diagonal(kernel, objects).mean()) or 1.0
                found = _best_scale(features, [codes == number for number in machines], unit)
                if best is None or found[0] > best[0][0]:
                    best = found, kernel, embedding
        assert best is not None
        (evidence, scale, posteriors), self.kernel_, embedding = best
        self.log_marginal_likelihood_, self.scale_ = evidence, scale
        self.objects_, self.indices_ = embedding.landmarks_, embedding.landmark_indices_
        self.components_ = embedding.components_
        self.weights_ = self.components_ @ np.column_stack([one.weights for one in posteriors])
        with one_blas_thread():
            self.spreads_ = np.stack([_spread(one.hessian) for one in posteriors])
        return self

    @lazily
    def predict(self, X: Any) -> npt.NDArray:
        """Return the most probable label of each object, shape (m,)."""
        check_is_fitted(self)
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    @lazily
    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class for m objects, shape (m, n_classes)."""
        check_is_fitted(self)
        rank, machines = self.components_.shape[1], self.weights_.shape[1]
        found = self._over_blocks(X, self.objects_, self._means_and_variances, 2 * rank + 2 * machines + 1)
        objects = read_objects(self, self.kernel_, X, reset=False)
        unknown = self.scale_ * np.maximum(diagonal(self.kernel_, objects) - found[:, -1], 0.0)
        shares = _averaged_logistic(found[:, :machines], found[:, machines:-1] + unknown[:, None])
        if machines == 1:
            return np.hstack([1.0 - shares, shares])
        return shares / shares.sum(axis=1, keepdims=True)

    def _means_and_variances(self, K: npt.NDArray) -> Floats:
        """Return for each row of kernel values the means of f, its variances from the weights, and |phi|^2."""
        features = row_product(K, self.components_)
        spreads = [(row_product(features, spread) ** 2).sum(axis=1) for spread in self.spreads_]
        return np.column_stack([row_product(K, self.weights_), *spreads, (features**2).sum(axis=1)])


@dataclass(frozen=True)
class _Posterior:
    """Laplace's approximation for one class against the others: the mode of the weights and the Hessian there."""

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
    """Return E 1 / (1 + exp(-f)) for f with normal distribution, to 1e-10.

    Narrow distributions: Gauss-Hermite quadrature. Wide ones: the logistic function is the step at 0 plus a term that
    decays like exp(-|f|), so that the expectation is P(f > 0) plus a Gauss-Laguerre quadrature.
    """
    is_narrow = variance < _NARROW
    spread = np.sqrt(2 * np.where(is_narrow, variance, 0.0))[..., None]
    narrow = expit(mean[..., None] + spread * _HERMITE[0]) @ _HERMITE[1] / np.sqrt(np.pi)
    std = np.sqrt(np.where(is_narrow, _NARROW, variance))
    below, above = (np.exp(-0.5 * ((sign * _LAGUERRE[0] - mean[..., None]) / std[..., None]) ** 2) for sign in (-1, 1))
    wide = ndtr(mean / std) + (below - above) @ (_LAGUERRE[1] * expit(_LAGUERRE[0])) / (std * np.sqrt(2 * np.pi))
    return np.where(is_narrow, narrow, wide)
