r"""A distance put where a kernel has the Euclidean one: distance substitution kernels.

.. math:: \exp(-\gamma\, d(x, y)^2), \qquad -d(x, y)^p, \qquad
          \tfrac12 \left( d(x, o)^p + d(y, o)^p - d(x, y)^p \right).

They are positive semi-definite, or for -d^p conditionally so (which a support vector machine needs no more than),
where d^2, or d^p, is of negative type, as the square of a Euclidean distance is; for alignment, edit and Hausdorff
distances they are indefinite. Nystroem says what becomes of the negative eigenvalues and makes vectors of
them, of objects seen later too; D2KE is positive semi-definite for every distance.

Cost: one distance for each pair of objects.
Paper: Haasdonk & Bahlmann, "Learning with distance substitution kernels", DAGM 2004, Section 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core import functions
from similia.core.errors import pairs_named
from similia.core.validation import RandomState, check_positive, check_positive_int, generator
from similia.objects import n_objects, take
from similia.objects.sequences import at_least_one
from similia.similarity import Kernel, as_objects, check_distance, diagonal, distances_between


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
        raise ValueError("X holds 1 object, expected at least two: gamma comes from the distances between them")
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
