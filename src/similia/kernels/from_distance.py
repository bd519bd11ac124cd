r"""Kernels from a distance d: by distances to random objects, or by substituting d for the Euclidean distance.

`FromDistance` is positive semi-definite for any d and computes the distances of each object to R random objects.
`DistanceRBF` and `NegativeDistance` compute one distance per pair. For a Euclidean distance they are positive
semi-definite (`NegativeDistance` for powers up to 2, and without origin only conditionally, see its Notes). For
alignment, edit and Hausdorff distances they are generally indefinite; the parameter `spectrum` of `similia.Nystroem`
determines how negative eigenvalues are treated.

When called, all kernels raise a ValueError or TypeError if a parameter is out of range, or if the distance returns NaN,
infinity, a negative number or the wrong shape. For a wrong number, the message names the two objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core import functions
from similia.core.config import rows_per_block, track
from similia.core.products import row_product
from similia.core.validation import (
    BadParameter,
    BadValue,
    RandomState,
    as_second,
    check_positive,
    check_positive_int,
    generator,
    pairs_named,
)
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, at_least_one, item
from similia.objects.series import SeriesBatch
from similia.objects.vectors import VectorsBatch
from similia.similarity import Kernel, as_objects, check_distance, diagonal, distances_between

F = TypeVar("F", bound=np.floating)
BLOCK = 256  # random objects per generator, so that object j depends on (seed, j) only
_MOST_ROWS = 4096  # maximum number of rows of distances computed at a time


class FromDistance(Kernel):
    r"""Kernel made from any distance (D2KE): objects are similar if their distances to random objects are similar.

    .. math:: k(x, y) = \int p(\omega)\, e^{-\gamma d(x, \omega)} e^{-\gamma d(\omega, y)}\, d\omega
              \approx \frac{1}{R} \sum_{j=1}^{R} e^{-\gamma d(x, \omega_j)} e^{-\gamma d(y, \omega_j)}

    for random objects :math:`\omega_1, ..., \omega_R` drawn from a distribution p. The sum is an unbiased estimate of
    the integral, with variance at most 1 / (4 R). As an inner product of features, the kernel is positive semi-definite
    for any distance.

    Parameters
    ----------
    distance : callable
        ``d(X, Y) -> (n, m)``, non-negative: one of `similia.distances` or your own function.
    objects : sampler or collection of objects
        A sampler, such as ``RandomStrings(alphabet="ACGT")``, draws the random objects from a distribution p. Set all
        parameters of the sampler, since a kernel has no training objects from which to learn them. If a collection is
        given, its objects are used instead of random ones.
    gamma : float, default=1.0
        The factor :math:`\gamma` in the exponent, above 0. Its unit is the inverse of the distance's unit.
    n_components : int, default=1024
        Number R of random objects; ignored if `objects` is a collection.
    random_state : int, default=0
        Seed of the random objects. It must be an integer, so that every call draws the same objects.

    Notes
    -----
    `similia.D2KE` with the same distance, objects, gamma, n_components and integer random_state computes the same
    features, but in float32 if the distances are float32. A linear model on these features is faster than a kernel
    method with this kernel. The kernel of a fitted `similia.D2KE` is
    ``FromDistance(distance, d2ke.random_objects_, d2ke.gamma_)``.

    scikit-learn's Gaussian processes do not accept this kernel. Use the equivalent ``make_pipeline(D2KE(...),
    GaussianProcessRegressor(DotProduct(0, "fixed") + WhiteKernel()))``.

    References
    ----------
    Wu, Yen, Xu, Ravikumar & Witbrock, "D2KE: From Distance to Kernel and Embedding", Equation 4 and Algorithm 1.

    Examples
    --------
    >>> import similia as sm
    >>> from similia.kernels import FromDistance
    >>> unlike = sm.distances.FromFunction(lambda x, y: float(len(set(x) ^ set(y))))
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
        F, G = self._features_of_both(X, Y)
        return row_product(F, G.T)

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        F = self._features(X)
        return np.einsum("ij,ij->i", F, F)

    def as_objects(self, X: Any) -> Any:
        return as_objects(self.distance, X)

    def features(self, X: Any, n_features: int | None = None) -> npt.NDArray[np.float64] | sp.csr_array:
        """Return explicit features whose inner products are the kernel.

        For the distance d and R random objects omega_j, feature j of x is exp(-gamma d(x, omega_j)) / sqrt(R).

        Parameters
        ----------
        X : sequence of n objects
        n_features : int, optional
            If given, return a sparse matrix with this many columns, at least R; columns beyond the first R are empty.
            `Sum` and `similia.KernelFeatures` need this form.

        Returns
        -------
        ndarray of float64, shape (n, R), or scipy.sparse.csr_array, shape (n, n_features)
        """
        F = self._features(X)
        if n_features is None:
            return F
        n, R = F.shape
        if check_positive_int(n_features, "n_features") < R:
            raise ValueError(f"n_features={n_features} is below the {R} random objects; raise n_features")
        indices = np.tile(np.arange(R, dtype=np.int32), n)
        indptr = np.arange(0, n * R + 1, R, dtype=np.int32 if n * R < 2**31 else np.int64)
        return sp.csr_array((F.ravel(), indices, indptr), shape=(n, n_features))

    def standard_error(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        """Return the standard error of each kernel value, shape (n, m), due to the finite number of random objects.

        A kernel value is the mean of R products exp(-gamma d(x, omega)) exp(-gamma d(y, omega)), one for each random
        object omega. The standard error is the standard deviation of these products divided by sqrt(R). R must be at
        least 2. If `objects` is a collection, its objects are treated as independent draws.
        """
        F, G = self._features_of_both(X, Y)
        R = F.shape[1]
        if R < 2:
            raise ValueError(
                "a standard error needs at least two random objects, found one; raise n_components or give more objects"
            )
        squares, values = row_product(np.square(F), np.square(G).T), row_product(F, G.T)
        variance = R * squares - np.square(values)  # of one product, times (R - 1) / R
        return np.sqrt(np.maximum(variance, 0) / (R - 1))

    def _features_of_both(self, X: Any, Y: Any) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        F = self._features(X)
        return F, F if Y is None else as_second(partial(self._features, name="Y"), Y)

    def _features(self, X: Any, name: str = "X") -> npt.NDArray[np.float64]:
        check_distance(self.distance)
        gamma, X = check_positive(self.gamma, "gamma"), self.as_objects(X)
        at_least_one(X)
        D = distance_matrix(self.distance, X, self._random_objects(X), name)
        return exp_features(D.astype(np.float64, copy=False), gamma)

    def _random_objects(self, X: Any) -> Any:
        if not is_sampler(self.objects):
            return as_second(self.as_objects, self.objects, "objects")
        n = check_positive_int(self.n_components, "n_components")
        seed = check_positive_int(self.random_state, "random_state", minimum=0)
        # Always in float64, so that the dtype of one object does not change the features of another.
        return joined([*draw(self.objects, None, 0, n, seed)], self.distance, X, single=False)


def is_sampler(objects: Any) -> bool:
    """Return whether `objects` is a sampler rather than a collection, which has a length; raise if it is a class."""
    if isinstance(objects, type):
        raise TypeError(f"objects is the class {objects.__name__}; write {objects.__name__}(...)")
    return (hasattr(objects, "sample") and not hasattr(objects, "__len__")) or callable(objects)


def draw(sampler: Any, X: Any, start: int, stop: int, seed: int) -> Iterator[Any]:
    """Yield, in blocks, objects `start` to `stop` - 1 of the sequence that `sampler` draws for `X` and `seed`."""
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
    """Return a generator; the key is (0, i) for block i of random objects, (1,) for the rows that determine gamma."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def joined(parts: list[Any], distance: Any, X: Any, *, single: bool = True) -> Any:
    """Concatenate collections of objects like those of `X` into one, in the memory layout of `distance`.

    If `single` and `X` holds vectors, the result has the dtype of `X`.
    """
    if not isinstance(X, Batch):
        parts = [_unpacked(part, item(X, 0)) if isinstance(part, Batch) else part for part in parts]
    if len(parts) == 1:
        whole = parts[0]
    elif all(isinstance(part, np.ndarray) for part in parts):
        whole = np.concatenate(parts)
    else:
        whole = [x for part in parts for x in part]
    whole = as_objects(distance, whole)
    if single and isinstance(whole, VectorsBatch) and isinstance(X, VectorsBatch):
        return whole.astype(X.values.dtype)  # single precision stays single
    return whole


def _unpacked(batch: Batch, like: Any) -> list[Any]:
    """Return the objects of a batch as a list; series become 1-D arrays if the object `like` is 1-D."""
    flat = isinstance(batch, SeriesBatch) and np.ndim(like) == 1
    return [x[:, 0] for x in batch] if flat else list(batch)


def distance_matrix(distance: Any, X: Any, objects: Any, name: str = "X") -> npt.NDArray[np.floating]:
    """Return the distances of `X` to `objects`, in blocks of rows; if one is invalid, the error names the pair."""
    n, R = at_least_one(X), at_least_one(objects, "objects")
    step = rows_per_block(16 * R, at_most=_MOST_ROWS)
    D: npt.NDArray[np.floating] = np.empty((0, R))
    for start in track(range(0, n, step), "distances", total=-(-n // step)):
        rows = np.arange(start, min(start + step, n))
        part = X if len(rows) == n else take(X, rows)
        values = distances_between(distance, part, objects, start, f"{name}[{{}}] and random object {{}}")
        if start == 0:
            D = np.empty((n, R), dtype=values.dtype)
        D[start : start + step] = values
    return D


def exp_features(D: npt.NDArray[F], gamma: float) -> npt.NDArray[F]:
    """Turn the distances D to R random objects into features R^(-1/2) exp(-gamma D), in place."""
    most = float(np.finfo(D.dtype).max)
    if gamma > most:
        raise BadParameter("gamma", f"at most {most:.6g} for {D.dtype} distances", f"{gamma:.6g}")
    D *= -gamma
    functions.exp(D, out=D)
    D /= np.sqrt(D.shape[1]).astype(D.dtype)
    return D


class _Substitution(Kernel):
    """Base class of the kernels that replace the Euclidean distance by another one."""

    distance: Any

    def as_objects(self, X: Any) -> Any:
        return as_objects(self.distance, X)

    def _self_distances(self, X: Any) -> npt.NDArray[np.float64]:
        """Return d(x, x) for each object: 0 if the distance declares so (``facts.identity``), otherwise computed."""
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
        ``distance(X, Y=None) -> (n, m)`` array: one of `similia.distances`, such as ``FromFunction(f)``, one of
        ``sklearn.metrics.pairwise``, or your own function. In `set_params`, the parameters of `distance` are named
        ``distance__name``.
    gamma : float, default=1.0
        The factor :math:`\gamma` in the exponent, above 0. `similia.kernels.suggest_gamma` returns a value that fits
        the scale of the distances.

    Notes
    -----
    The values are float32 if the distances are float32, otherwise float64. For a Euclidean distance k is positive
    semi-definite; for DTW, edit and Hausdorff distances it is generally not.
    ``similia.Nystroem(kernel, n_components=len(X), spectrum=...)`` still embeds the objects as vectors. For the
    training objects, the inner products of these vectors are the kernel matrix K with its negative eigenvalues set to 0
    (``spectrum="clip"``) or made positive ("flip"). With "shift", the inner products are K (K + a I)^(-1) K, where a is
    1.5 times the absolute value of the smallest eigenvalue.

    References
    ----------
    Haasdonk & Bahlmann, "Learning with distance substitution kernels", DAGM 2004, Section 3 (k_rbf); DSK_RBF in Wu et
    al., "D2KE: From Distance to Kernel and Embedding", Section 5.

    Examples
    --------
    >>> from similia.distances import Levenshtein
    >>> from similia.kernels import DistanceRBF
    >>> DistanceRBF(Levenshtein(), gamma=0.5)(["AC", "AG", "TTT"]).round(3)
    array([[1.   , 0.607, 0.011],
           [0.607, 1.   , 0.011],
           [0.011, 0.011, 1.   ]], dtype=float32)
    """

    def __init__(self, distance: Any, gamma: float = 1.0) -> None:
        self.distance = distance
        self.gamma = gamma

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray:
        root = np.sqrt(check_positive(self.gamma, "gamma"))
        D = distances_between(self.distance, X, Y)
        K = np.empty(D.shape, D.dtype)
        with np.errstate(over="ignore", under="ignore"):  # distant objects have kernel 0
            for d, k in zip(D, K, strict=True):  # multiply before squaring, since d^2 may overflow
                k[:] = functions.exp(-np.square(d * root, dtype=np.float64))
        return K

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        root = np.sqrt(check_positive(self.gamma, "gamma"))
        with np.errstate(over="ignore", under="ignore"):
            return functions.exp(-np.square(self._self_distances(X) * root))


class NegativeDistance(_Substitution):
    r"""Negated power of a distance, :math:`k(x, y) = -d(x, y)^p`, or an inner product relative to an `origin`.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)`` array: one of `similia.distances`, such as ``FromFunction(f)``, one of
        ``sklearn.metrics.pairwise``, or your own function. In `set_params`, the parameters of `distance` are named
        ``distance__name``.
    power : float, default=2
        Exponent p, above 0. Haasdonk & Bahlmann use 2; p <= 1 is more robust to outliers.
    origin : object, optional
        One object o. If given, the kernel is :math:`(d(x, o)^p + d(y, o)^p - d(x, y)^p) / 2`, which for the Euclidean
        distance and p = 2 is the inner product of x - o and y - o.

    Notes
    -----
    The kernel -d^p is not positive semi-definite, since its diagonal is 0. It can be *conditionally* positive
    semi-definite: c^T K c >= 0 for all coefficients c that sum to 0. This is enough for a support vector machine with
    an intercept. The kernel with an origin is positive semi-definite if and only if -d^p is conditionally
    positive semi-definite (Schölkopf, "The kernel trick for distances", 2001). For `similia.Nystroem`, set an origin.
    Without one, the eigenvalue of largest absolute value is negative, and `Nystroem` drops it, changes it or raises an
    error, depending on its parameter `spectrum`. The values are float32 if the distances are float32, otherwise
    float64.

    References
    ----------
    Haasdonk & Bahlmann, "Learning with distance substitution kernels", DAGM 2004, Section 3 (k_nd and, with an origin
    and p = 2, k_lin); DSK_ND in Wu et al., "D2KE: From Distance to Kernel and Embedding", Section 5.

    Examples
    --------
    >>> import similia as sm
    >>> steps = sm.distances.FromFunction(lambda x, y: abs(len(x) - len(y)))
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
        K /= 2  # before adding: sums may overflow
        to_x = self._from_origin(X) / 2
        K += to_x[:, None]
        K += to_x if Y is None else self._from_origin(Y, "Y") / 2
        return K

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        values = -self._powers(self._self_distances(X), "X[{0}] and X[{0}]")
        return values if self.origin is None else values / 2 + self._from_origin(X)

    def _from_origin(self, X: Any, name: str = "X") -> npt.NDArray:
        pair = f"{name}[{{}}] and the origin"
        origin = as_second(self.as_objects, [self.origin], "origin")
        return self._powers(distances_between(self.distance, X, origin, pair=pair)[:, 0], pair)

    def _powers(self, D: npt.NDArray, pair: str) -> npt.NDArray:
        """Return D**power; if a power is out of range, raise an error that names the objects by `pair`."""
        power = check_positive(self.power, "power")
        with np.errstate(over="ignore", under="ignore"):
            powers: npt.NDArray = D**power
        bad = np.isinf(powers) | ((powers == 0) & (D > 0))
        if bad.any():
            where = tuple(np.argwhere(bad)[0])
            raise ValueError(
                f"the distance of {pair.format(*where)} is {D[where]:.3g}, whose power {power:g} is out of range for "
                f"{D.dtype}; scale the objects"
            )
        return powers


def suggest_gamma(distance: Any, X: Any, n: int = 200, random_state: RandomState = 0, *, power: float = 2) -> float:
    r"""Suggest a gamma for :math:`\exp(-\gamma\, d^p)` that fits the scale of the distances (median heuristic).

    gamma = 1 / (p m^p), where m is the median distance between two objects. If this median is 0, m is the median of the
    positive distances. For `DistanceRBF`, use p = 2: gamma = 1 / (2 m^2) gives the usual Gaussian of bandwidth m. For
    `D2KE`, use p = 1: gamma = 1 / m.

    Parameters
    ----------
    distance : callable
        ``distance(X, Y=None) -> (n, m)``.
    X : sequence of objects
        At least two objects.
    n : int, default=200
        Maximum number of objects to compare, drawn at random if `X` has more. All n^2 distances between them are
        computed.
    random_state : int, numpy Generator or None, default=0
        Seed or generator for drawing the objects.
    power : float, default=2
        Exponent p of the distance, above 0.

    Returns
    -------
    float

    Examples
    --------
    >>> import similia as sm
    >>> steps = sm.distances.FromFunction(lambda x, y: abs(len(x) - len(y)))
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
    if n < total or getattr(X, "elsewhere", False) is True:
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
            f"the median distance m is {median:.3g}, so 1 / ({power:g} m^{power:g}) is out of range for float64; scale "
            "the objects"
        )
    return gamma
