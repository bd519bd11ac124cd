r"""Kernels made of a distance d: positive definite ones by random objects, and d in the place of the Euclidean one.

`FromDistance`, the kernel of D2KE: objects are similar if they are equally far from random objects,

.. math:: k(x, y) = \int p(\omega)\, e^{-\gamma d(x, \omega)} e^{-\gamma d(\omega, y)}\, d\omega
          \approx \frac{1}{R} \sum_{j=1}^{R} e^{-\gamma d(x, \omega_j)} e^{-\gamma d(y, \omega_j)}

for random objects omega_1, ..., omega_R drawn from p. It is an inner product of features, hence positive semi-definite
for any d, and unbiased, with variance at most 1 / (4 R). Cost: R distances for each object.

Distance substitution, one distance for each pair: `DistanceRBF` and `NegativeDistance`,

.. math:: \exp(-\gamma\, d(x, y)^2), \qquad -d(x, y)^p, \qquad
          \tfrac12 \left( d(x, o)^p + d(y, o)^p - d(x, y)^p \right).

These are positive semi-definite (-d^p conditionally, which is enough for a support vector machine) where d^2, or d^p,
is of negative type, as the square of a Euclidean distance is. For alignment, edit and Hausdorff distances they are
indefinite: `similia.Nystroem` has a parameter for the negative eigenvalues.

Papers: Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Equation 4 and Algorithm 1;
Haasdonk & Bahlmann, "Learning with distance substitution kernels", DAGM 2004, Section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core import functions
from similia.core.config import rows_per_block
from similia.core.errors import BadValue, pairs_named
from similia.core.products import row_product
from similia.core.progress import track
from similia.core.validation import RandomState, check_positive, check_positive_int, generator
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, at_least_one
from similia.objects.series import SeriesBatch
from similia.objects.vectors import VectorsBatch
from similia.similarity import Kernel, as_objects, check_distance, diagonal, distances_between

F = TypeVar("F", bound=np.floating)
# Random objects come in blocks, each with its own generator: object j depends on (seed, j) only.
BLOCK = 256
# Rows of distances that exist twice, once as the distance returned them: few, so that memory is that of the result.
_MOST_ROWS = 4096


class FromDistance(Kernel):
    r"""The kernel of D2KE: inner products of exp(-gamma d(x, omega)) over random objects omega.

    Parameters
    ----------
    distance : callable
        ``d(X, Y) -> (n, m)``, non-negative: one of `similia.distances` or a function of your own.
    objects : sampler or collection of objects
        The distribution p of the random objects, with all its parameters given, since a kernel learns
        nothing: such as ``RandomStrings(alphabet="ACGT")``. Or a collection, taken as it is.
    gamma : float, default=1.0
        Decay of a feature with distance, in 1 / (unit of the distance).
    n_components : int, default=1024
        Number R of random objects; not used where `objects` is a collection.
    random_state : int, default=0
        Seed of the random objects. An integer, since a kernel has no ``fit`` in which to draw.

    Raises
    ------
    ValueError, TypeError
        When called, if a parameter is out of range, the sampler lacks a parameter, or the distance returns
        NaN, infinity, a negative number or another shape; the sentence names the pair.

    Notes
    -----
    `similia.D2KE` with the same distance, objects, gamma, n_components and integer random_state has the same
    features, and is the faster way to a linear model; ``FromDistance(distance, d2ke.random_objects_, d2ke.gamma_)``
    is the kernel of one that has been fitted.

    Anything that takes a matrix of kernel values takes ``k(X)``: ``KernelRidge(kernel="precomputed")``, and ``SVC``
    and `similia.Nystroem` also take the kernel itself. scikit-learn's Gaussian processes take neither; there,
    ``make_pipeline(D2KE(...), GaussianProcessRegressor(DotProduct(0, "fixed") + WhiteKernel()))`` is the same model.

    References
    ----------
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Equation 4.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.kernels import FromDistance
    >>> unlike = sm.pairwise(lambda x, y: float(len(set(x) ^ set(y))))
    >>> kernel = FromDistance(unlike, objects=["a", "b", "ab"], gamma=1.0)
    >>> kernel(["aa", "bb", "ab"]).round(3)
    array([[0.385, 0.135, 0.262],
           [0.135, 0.385, 0.262],
           [0.262, 0.262, 0.424]])
    """

    def __init__(
        self, distance: Any, objects: Any, gamma: float = 1.0, n_components: int = 1024, random_state: int = 0
    ) -> None:
        self.distance = distance
        self.objects = objects
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        F = self._features(X)
        return row_product(F, (F if Y is None else self._features(Y)).T)

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) for each object, shape (n,)."""
        F = self._features(X)
        return np.einsum("ij,ij->i", F, F)

    def as_objects(self, X: Any) -> Any:
        """Return `X` in the layout the distance works on."""
        return as_objects(self.distance, X)

    def features(self, X: Any, n_features: int | None = None) -> npt.NDArray[np.float64] | sp.csr_array:
        """Return the features R^(-1/2) exp(-gamma d(x, omega_j)), whose inner products are the kernel.

        Parameters
        ----------
        X : sequence of n objects
        n_features : int, optional
            Return a sparse matrix with this many columns, those beyond R empty, as the kernels that count
            do: for ``Sum([...]).features`` and `similia.KernelFeatures`.

        Returns
        -------
        ndarray of float64, shape (n, R), or scipy.sparse.csr_array, shape (n, n_features)

        Raises
        ------
        ValueError
            If `n_features` is below R.
        """
        F = self._features(X)
        if n_features is None:
            return F
        n, R = F.shape
        if check_positive_int(n_features, "n_features") < R:
            raise ValueError(f"n_features={n_features} is below the {R} random objects; lower n_components")
        indices = np.tile(np.arange(R, dtype=np.int32), n)
        return sp.csr_array((F.ravel(), indices, np.arange(0, n * R + 1, R)), shape=(n, n_features))

    def standard_error(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the standard error of each kernel value as an estimate of Equation 4.

        It is the standard deviation of the R products of which the value is the mean, over sqrt(R); where
        `objects` is a collection, as if its objects had been drawn independently.

        Parameters
        ----------
        X : sequence of n objects
        Y : sequence of m objects, optional
            `X` itself if not given.

        Returns
        -------
        ndarray of float64, shape (n, m)

        Raises
        ------
        ValueError
            If there is only one random object.
        """
        F = self._features(X)
        G = F if Y is None else self._features(Y)
        R = F.shape[1]
        if R < 2:
            raise ValueError("a standard error needs at least two random objects, found one; raise n_components")
        squares, values = row_product(np.square(F), np.square(G).T), row_product(F, G.T)
        variance = R * squares - np.square(values)  # of one product, times (R - 1) / R
        return np.sqrt(np.maximum(variance, 0) / (R - 1))

    def _features(self, X: Any) -> npt.NDArray[np.float64]:
        check_distance(self.distance)
        gamma, X = check_positive(self.gamma, "gamma"), self.as_objects(X)
        D = distance_matrix(self.distance, X, self._random_objects(X))
        return exp_features(D.astype(np.float64, copy=False), gamma)

    def _random_objects(self, X: Any) -> Any:
        if not is_sampler(self.objects):
            return self.as_objects(self.objects)
        n = check_positive_int(self.n_components, "n_components")
        seed = check_positive_int(self.random_state, "random_state", minimum=0)
        # In float64 for all X: the type of one object must not change the features of another.
        return joined([*draw(self.objects, None, 0, n, seed)], self.distance, X, single=False)


def is_sampler(objects: Any) -> bool:
    """Return whether `objects` draws objects, rather than being a collection of them."""
    if isinstance(objects, type):
        raise TypeError(f"objects is the class {objects.__name__}; write {objects.__name__}(...)")
    return (hasattr(objects, "sample") and not hasattr(objects, "iloc")) or callable(objects)


def draw(sampler: Any, X: Any, start: int, stop: int, seed: int) -> Iterator[Any]:
    """Yield the random objects start, ..., stop - 1 of a seed, a block at a time."""
    for first in range(start // BLOCK * BLOCK, stop, BLOCK):
        rng = random_stream(seed, 0, first // BLOCK)
        drawn = sampler.sample(X, BLOCK, rng) if hasattr(sampler, "sample") else sampler(X, BLOCK, rng)
        if n_objects(drawn) != BLOCK:
            raise ValueError(
                f"the sampler {getattr(sampler, '__name__', type(sampler).__name__)} returned {n_objects(drawn)} "
                f"objects, expected the {BLOCK} it was asked for"
            )
        yield take(drawn, np.arange(max(start - first, 0), min(stop - first, BLOCK)))


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Return the generator of one purpose (0: random objects, with their block; 1: rows for gamma)."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def joined(parts: list[Any], distance: Any, X: Any, *, single: bool = True) -> Any:
    """Return parts of a collection as one, in the form in which the distance sees the objects of `X`."""
    if not isinstance(X, Batch):
        parts = [_unpacked(part, take(X, [0])[0]) if isinstance(part, Batch) else part for part in parts]
    if len(parts) == 1:
        whole = parts[0]
    elif all(isinstance(part, np.ndarray) for part in parts):
        whole = np.concatenate(parts)
    else:
        whole = [item for part in parts for item in part]
    whole = as_objects(distance, whole)
    if single and isinstance(whole, VectorsBatch) and isinstance(X, VectorsBatch):
        return whole.astype(X.values.dtype)  # single precision stays single
    return whole


def _unpacked(batch: Batch, like: Any) -> list[Any]:
    """Return the objects of a batch as a list, for a function that takes objects such as `like`."""
    flat = isinstance(batch, SeriesBatch) and np.ndim(like) == 1
    return [item[:, 0] for item in batch] if flat else list(batch)


def distance_matrix(distance: Any, X: Any, objects: Any) -> npt.NDArray[np.floating]:
    """Return d(X, objects) as a fresh array, computed in blocks of rows; float32 if the distance returns that.

    Raises
    ------
    ValueError, TypeError
        As `similia.similarity.distances_between`, naming the object and the random object.
    """
    n, R = at_least_one(X), at_least_one(objects, "objects")
    step = rows_per_block(16 * R, at_most=_MOST_ROWS)
    D: npt.NDArray[np.floating] = np.empty((0, R))
    for start in track(range(0, n, step), "distances", total=-(-n // step)):
        rows = np.arange(start, min(start + step, n))
        part = X if len(rows) == n else take(X, rows)
        values = distances_between(distance, part, objects, start, "X[{}] and random object {}")
        if start == 0:
            D = np.empty((n, R), dtype=values.dtype)
        D[start : start + step] = values
    return D


def exp_features(D: npt.NDArray[F], gamma: float) -> npt.NDArray[F]:
    """Turn distances into features R^(-1/2) exp(-gamma D), in place."""
    D *= -gamma
    functions.exp(D, out=D)
    D /= np.sqrt(D.shape[1]).astype(D.dtype)
    return D


class _Substitution(Kernel):
    """Base of the kernels with a parameter `distance`."""

    distance: Any

    def as_objects(self, X: Any) -> Any:
        """Return `X` in the layout the distance works on."""
        return as_objects(self.distance, X)

    def _self_distances(self, X: Any) -> npt.NDArray[np.float64]:
        """Return d(x, x) for each object: 0 where the distance is known for it, else computed in small blocks."""
        check_distance(self.distance)
        facts = getattr(self.distance, "facts", None)
        if facts is not None and facts.identity:
            return np.zeros(n_objects(X))
        return diagonal(self.distance, X, distances_between)


class DistanceRBF(_Substitution):
    r"""Gaussian kernel of any distance, :math:`k(x, y) = \exp(-\gamma\, d(x, y)^2)`.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)`` array: one of `similia.distances`, one of
        ``sklearn.metrics.pairwise``, ``similia.pairwise(f)`` or a function of your own. Its parameters are
        reached as ``distance__name``.
    gamma : float, default=1.0
        Above 0. `suggest_gamma` gives one that fits the scale of the distances.

    Raises
    ------
    ValueError, TypeError
        When called, if `gamma` is not a positive number, or `distance` returns another shape than (n, m) or
        a value that is NaN, infinite or negative.

    Notes
    -----
    The values are float32 where the distances are, so that `Nystroem` knows their precision. For a
    Euclidean distance k is positive semi-definite; for DTW, edit and Hausdorff distances it is in general not.
    ``Nystroem(kernel, n_components=len(X), spectrum=...)`` makes vectors all the same: with "clip" and
    "flip" the inner products of those of the training objects are exactly the matrix K with its eigenvalues repaired
    ("shift" gives K (K + a I)^(-1) K), and an object seen later gets coordinates by the same rule, linear in
    its kernel values, so that a training object met again has its own. With fewer components than objects
    the cost is linear in their number.

    References
    ----------
    Haasdonk & Bahlmann, "Learning with distance substitution kernels", 2004 (k_rbf); DSK_RBF in
    Wu et al., "D2KE: From Distance to Kernel and Embedding", Section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.svm import LinearSVC
    >>> import similia as sm
    >>> from similia.distances import DTW
    >>> X = [np.sin(np.arange(8 + i)) for i in range(5)] + [np.arange(8.0 + i) / 8 for i in range(5)]
    >>> y = [0] * 5 + [1] * 5
    >>> gamma = sm.kernels.suggest_gamma(DTW(), X)
    >>> kernel = sm.kernels.DistanceRBF(DTW(), gamma)
    >>> model = make_pipeline(sm.Nystroem(kernel, n_components=len(X), spectrum="flip"), LinearSVC()).fit(X, y)
    >>> model.predict([np.sin(np.arange(20.0)), np.arange(15.0) / 9])
    array([0, 1])
    """

    def __init__(self, distance: Any, gamma: float = 1.0) -> None:
        self.distance = distance
        self.gamma = gamma

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray:
        root = np.sqrt(check_positive(self.gamma, "gamma"))
        D = distances_between(self.distance, X, Y)
        K = np.empty(D.shape, D.dtype)
        with np.errstate(over="ignore", under="ignore"):  # far apart: 0
            for d, k in zip(D, K, strict=True):  # the root of gamma, since the square of a distance may be no float
                k[:] = functions.exp(-np.square(d * root, dtype=np.float64))
        return K

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) for each object, shape (n,): 1 wherever d(x, x) = 0."""
        root = np.sqrt(check_positive(self.gamma, "gamma"))
        with np.errstate(over="ignore", under="ignore"):
            return functions.exp(-np.square(self._self_distances(X) * root))


class NegativeDistance(_Substitution):
    r"""Minus the distance to a power, :math:`k(x, y) = -d(x, y)^p`, or an inner product made of it.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)`` array, as for `DistanceRBF`.
    power : float, default=2
        p above 0. The square is the paper's; p <= 1 is gentler on outliers.
    origin : object, optional
        One object o. With it the kernel is
        :math:`(d(x, o)^p + d(y, o)^p - d(x, y)^p) / 2`, which for the Euclidean distance and p = 2 is the
        inner product of x - o and y - o.

    Raises
    ------
    ValueError, TypeError
        When called, if `power` is not a positive number, or `distance` returns another shape than (n, m) or
        a value that is NaN, infinite or negative.

    Notes
    -----
    -d^p is never positive semi-definite (its diagonal is 0), at best conditionally: c^T K c >= 0 for
    coefficients that sum to 0, as those of a support vector machine with an intercept do. The kernel with an
    origin is positive semi-definite exactly where -d^p is conditionally so (Schölkopf, "The kernel trick for
    distances", 2001), and is the better input for `Nystroem`, which would otherwise spend its largest
    eigenvalue on repairing the diagonal. The values are float32 where the distances are.

    References
    ----------
    Haasdonk & Bahlmann, "Learning with distance substitution kernels", 2004 (k_nd and, with an
    origin and p = 2, k_lin); DSK_ND in Wu et al., "D2KE: From Distance to Kernel and Embedding", Section 5.

    Examples
    --------
    >>> import similia as sm
    >>> steps = sm.pairwise(lambda x, y: abs(len(x) - len(y)))
    >>> sm.kernels.NegativeDistance(steps)(["A", "AC", "ACGT"])
    array([[-0., -1., -9.],
           [-1., -0., -4.],
           [-9., -4., -0.]])
    >>> sm.kernels.NegativeDistance(steps, origin="")(["A", "AC", "ACGT"])  # products of lengths
    array([[ 1.,  2.,  4.],
           [ 2.,  4.,  8.],
           [ 4.,  8., 16.]])
    """

    def __init__(self, distance: Any, power: float = 2, origin: Any = None) -> None:
        self.distance = distance
        self.power = power
        self.origin = origin

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray:
        K = -self._powers(distances_between(self.distance, X, Y), "X[{}] and Y[{}]")
        if self.origin is None:
            return K
        to_x = self._from_origin(X)
        K += to_x[:, None]
        K += to_x if Y is None else self._from_origin(Y)
        return K / 2

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) for each object, shape (n,): 0 or, with an origin, d(x, o)^p, wherever d(x, x) = 0."""
        values = -self._powers(self._self_distances(X), "X[{0}] and X[{0}]")
        return values if self.origin is None else values / 2 + self._from_origin(X)

    def _from_origin(self, X: Any) -> npt.NDArray:
        return self._powers(distances_between(self.distance, X, [self.origin])[:, 0], "X[{}] and the origin")

    def _powers(self, D: npt.NDArray, pair: str) -> npt.NDArray:
        """Return d^p, or raise naming the first pair for which it is too large or too small a number."""
        power = check_positive(self.power, "power")
        with np.errstate(over="ignore", under="ignore"):
            powers: npt.NDArray = D**power
        bad = np.isinf(powers) | ((powers == 0) & (D > 0))
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            raise ValueError(
                f"the distance of {pair.format(*where)} is {D[where]:.3g}, whose power {power:g} is no {D.dtype}; "
                "scale the objects"
            )
        return powers


def suggest_gamma(distance: Any, X: Any, n: int = 200, random_state: RandomState = 0, *, power: float = 2) -> float:
    r"""Return a gamma for :math:`\exp(-\gamma\, d^p)` that fits the scale of the distances: the median heuristic.

    gamma = 1 / (p m^p) with m the median distance between two different objects: 1 / (2 m^2), the usual
    Gaussian of bandwidth m, for `DistanceRBF` (p = 2), and 1 / m for the exponential features of `D2KE` (p = 1).

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)``.
    X : sequence of objects
        At least two.
    n : int, default=200
        Objects drawn from `X`, without replacement, for the median; all if there are fewer. It takes n^2 distances.
    random_state : int, numpy Generator or None, default=0
        Draws them.
    power : float, default=2
        p above 0.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If there are fewer than two objects, all distances are 0, or so large or small that gamma is no float64.

    Notes
    -----
    Where more than half of the pairs have distance 0, m is the median of the others.

    Examples
    --------
    >>> import similia as sm
    >>> steps = sm.pairwise(lambda x, y: abs(len(x) - len(y)))
    >>> sm.kernels.suggest_gamma(steps, ["A", "AC", "ACGTA"])  # distances 1, 3, 4
    0.05555555555555555
    """
    power = check_positive(power, "power")
    check_positive_int(n, "n", minimum=2)
    X = as_objects(distance, X)
    total = at_least_one(X)
    if total == 1:
        raise BadValue(None, "holds 1 object", "at least two: gamma comes from the distances between them")
    chosen = np.arange(total)
    if n < total:
        chosen = generator(random_state).choice(total, n, replace=False)
        X = take(X, chosen)
    with pairs_named(chosen, chosen, "X[{}] and X[{}]"):
        D = distances_between(distance, X)
    pairs = D[np.triu_indices(len(D), 1)].astype(np.float64)
    median = np.median(pairs) or np.median(pairs[pairs > 0]) if pairs.any() else 0.0
    if median == 0:
        raise ValueError(f"all distances among {len(D)} objects are 0; gamma needs objects that differ")
    with np.errstate(all="ignore"):
        gamma = float(1 / (power * np.float64(median) ** power))
    if not 0 < gamma < np.inf:
        raise ValueError(
            f"the median distance is {median:.3g}, and no float64 is 1 / ({power:g} d^{power:g}); scale the objects"
        )
    return gamma
