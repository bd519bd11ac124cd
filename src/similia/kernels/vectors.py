"""Kernels of vectors: the Gaussian kernel, and the optical kernel.

The optical kernel is the expected product of the random features ``|W x + b|^2`` of two vectors, with complex Gaussian
W and b. Its explicit features are all products of two coordinates, and the squared norm. Cost: one matrix product per
block.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from similia.core import functions
from similia.core.config import rows_per_block
from similia.core.errors import BadValue, as_second
from similia.core.products import row_product
from similia.core.validation import check_positive, check_positive_int, check_vectors
from similia.kernels.counts import scale_by_norms
from similia.kernels.from_distance import suggest_gamma
from similia.similarity import Kernel, as_objects

_PLAIN = 900  # sums of exponents below it need no check
_FAR = 600  # rows are divided by two to this power if the square of a distance overflows
_LEAST, _LEAST_NORM = 2.0**-1022, 1e-290  # smallest kernel value and smallest norm of features with full precision


class RBF(Kernel):
    r"""Gaussian kernel of vectors, :math:`k(x, y) = \exp(-\gamma |x - y|^2)`.

    Parameters
    ----------
    gamma : float or "median", default="median"
        The factor :math:`\gamma`, above 0. "median" means 1 / (2 m^2), where m is the median distance between at most
        1000 random vectors or, if this median is 0, the median of the positive distances. An estimator with this kernel
        draws the vectors from the training data. A direct call draws them from `X`, so gamma then depends on `X`.
    scale : float, default=1.0
        Number above 0 that multiplies `gamma`; 4 halves the width of the kernel.

    Notes
    -----
    Differences are squared and added in float64, so kernel values are accurate far from the origin, too.
    ``sklearn.metrics.pairwise.rbf_kernel``, which uses inner products, loses accuracy there.
    `similia.FractionalPowerEncoder` with ``output="floats"`` returns random features of this kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import RBF
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [3.0, 4.0]])
    >>> RBF(gamma=0.5)(X).round(3)
    array([[1.   , 0.368, 0.   ],
           [0.368, 1.   , 0.002],
           [0.   , 0.002, 1.   ]])
    >>> round(RBF().decided(X).gamma, 4)  # distances 1.41, 3.61, 5
    0.0385
    """

    def __init__(self, gamma: float | Literal["median"] = "median", scale: float = 1.0) -> None:
        self.gamma = gamma
        self.scale = scale

    def as_objects(self, X: Any) -> npt.NDArray[np.floating]:
        return check_vectors(X)

    def decided(self, X: Any) -> RBF:
        """Return this kernel with ``gamma="median"`` replaced by its value for the vectors `X`."""
        if self.gamma != "median":
            return self
        return RBF(suggest_gamma(_euclidean, as_objects(self, X), 1000), self.scale)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        X = self.as_objects(X)
        Y = X if Y is None else as_second(self.as_objects, Y)
        if X.shape[1] != Y.shape[1]:
            raise BadValue(None, f"has {X.shape[1]} features and Y has {Y.shape[1]}", "as many in both")
        root = np.sqrt(self.decided(X)._gamma())
        K = np.empty((len(X), len(Y)))
        step = rows_per_block(8 * len(Y), at_most=256)
        for start in range(0, len(X), step):
            rows = K[start : start + step]
            rows[:] = _euclidean(X[start : start + step], Y)
            with np.errstate(over="ignore", under="ignore"):  # root first: the square of a distance may overflow
                rows *= root
                np.square(rows, out=rows)
            np.negative(rows, out=rows)
            functions.exp(rows, out=rows)
        return K

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        return np.ones(len(self.as_objects(X)))

    def _gamma(self) -> float:
        scale = check_positive(self.scale, "scale")
        gamma = scale * check_positive(self.gamma, "gamma", hint=' (or "median")')
        if not 0 < gamma < np.inf:
            raise ValueError(f"gamma={self.gamma!r} * scale={scale!r} is out of range for float64; scale the vectors")
        return gamma


def _euclidean(X: npt.NDArray[np.floating], Y: npt.NDArray[np.floating] | None = None) -> npt.NDArray[np.float64]:
    Y = X if Y is None else Y
    D: npt.NDArray[np.float64] = np.asarray(cdist(X, Y))
    far = np.isinf(D)
    if far.any():  # the square of a distance overflows
        with np.errstate(over="ignore", under="ignore"):
            D[far] = np.ldexp(cdist(np.ldexp(X, -_FAR), np.ldexp(Y, -_FAR))[far], _FAR)
    return D


class Optical(Kernel):
    r"""Kernel of optical random features ``|W x + b|^2`` with complex Gaussian W and b.

    K(x, y) is the expected product of a feature of x and the same feature of y, over random W and b. Inner products of
    the features of `similia.OpticalRandomFeatures` estimate K(x, y).

    .. math:: K(x, y) = \varsigma^4 \big[(\|x\|^2 + q)(\|y\|^2 + q) + (x^T y + q)^2\big],
              \qquad q = \tau^2 / \varsigma^2,

    which is :math:`\varsigma^4 (\|x'\|^2 \|y'\|^2 + (x'^T y')^2)` with :math:`x' = (x, \sqrt q)`.

    Parameters
    ----------
    scale : float, default=1.0
        Standard deviation :math:`\varsigma` of an entry of W. Without bias, the kernel is proportional to its fourth
        power.
    bias : float, default=0.0
        Standard deviation :math:`\tau` of an entry of b. At 0 the kernel cannot distinguish x and -x.
    normalize : bool, default=False
        Divide by sqrt(K(x, x) K(y, y)). K is then (1 + c^2) / 2, where c is the cosine of the angle between x' and y'.
        Without bias, a zero vector has kernel 0 with all others and 1 with itself.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, `X` is not a finite 2-D array or, without `normalize`, a kernel
        value is out of range for float64.

    Notes
    -----
    The kernel is not characteristic: it cannot distinguish two distributions with the same second moments E x x^T (and,
    if `bias` is above 0, the same means E x). Their maximum mean discrepancy is 0.

    The formula is for Gaussian b. If the entries of b instead have random phases but all the same magnitude
    :math:`\tau`, the mean product is smaller by :math:`\tau^4`.

    References
    ----------
    Saade et al., "Random projections through multiple optical scattering", ICASSP 2016; Ohana et al., "Kernel
    computations from large-scale random features obtained by optical processing units", ICASSP 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels.vectors import Optical
    >>> X = np.array([[1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])
    >>> Optical()(X)
    array([[18., 13.],
           [13., 18.]])
    >>> Optical(bias=1.0)(X)
    array([[32., 25.],
           [25., 32.]])
    """

    def __init__(self, scale: float = 1.0, bias: float = 0.0, normalize: bool = False) -> None:
        self.scale = scale
        self.bias = bias
        self.normalize = normalize

    def as_objects(self, X: Any) -> npt.NDArray[np.floating]:
        return check_vectors(X)

    def __call__(self, X: Any, Y: Any = None) -> npt.NDArray[np.float64]:
        _, _, power = self._parameters()
        X = self.as_objects(X)
        same = Y is None
        Y = X if same else as_second(self.as_objects, Y)
        if X.shape[1] != Y.shape[1]:
            raise BadValue(None, f"has {X.shape[1]} features and Y has {Y.shape[1]}", "as many in both")
        A, a = self._in_units(X)
        B, b = (A, a) if same else self._in_units(Y)
        K = row_product(A, B.T)
        norms_a, norms_b = _squared_norms(A), _squared_norms(B)
        step = rows_per_block(8 * len(B), at_most=256)
        for start in range(0, len(A), step):
            rows = K[start : start + step]
            np.square(rows, out=rows)
            rows += np.outer(norms_a[start : start + step], norms_b)
            if not self.normalize:
                rows *= power**4
                left = a[start : start + step]
                if np.abs(left).max() + np.abs(b).max() < _PLAIN:  # the same bits in less time
                    rows *= np.ldexp(1.0, left)[:, None]
                    rows *= np.ldexp(1.0, b)
                else:
                    rows[:] = _scaled_back(rows, np.add.outer(left, b), start, "k(X[{}], Y[{}])")
        if self.normalize:
            scale_by_norms(K, 2 * norms_a**2, 2 * norms_b**2, same=same)
        return K

    def diag(self, X: Any) -> npt.NDArray[np.float64]:
        """Return k(x, x) = 2 (scale^2 norm(x)^2 + bias^2)^2, or 1 with `normalize`, per vector, shape (n,)."""
        _, _, power = self._parameters()
        A, a = self._in_units(self.as_objects(X))
        if self.normalize:
            return np.ones(len(A))
        return _scaled_back(2 * power**4 * _squared_norms(A) ** 2, 2 * a, 0, "k(X[{0}], X[{0}])")

    def _self_values(self, X: Any) -> npt.NDArray[np.float64]:
        values = self.diag(X)
        return values * (_squared_norms(self._in_units(self.as_objects(X))[0]) > 0)

    def features(self, X: Any, n_features: int = 2**20) -> sp.csr_array:
        """Return explicit features whose inner products are the kernel: products of two coordinates, and squared norms.

        Parameters
        ----------
        X : array-like of shape (n, d)
        n_features : int, default=2**20
            Number of columns of the result, at least d' (d' + 1) / 2 + 1, where d' is d, or d + 1 with a bias. There is
            one column for each product of two coordinates, and one for the squared norm. Any further columns are empty.

        Returns
        -------
        scipy.sparse.csr_array of float64, shape (n, n_features)
        """
        _, _, power = self._parameters()
        A, exponents = self._in_units(self.as_objects(X))
        p, r = np.triu_indices(A.shape[1])
        if check_positive_int(n_features, "n_features") < len(p) + 1 or n_features > 2**31 - 1:
            raise ValueError(
                f"n_features must be from {len(p) + 1} (for {A.shape[1]} coordinates) to 2**31 - 1, got {n_features}"
            )
        weights = np.where(p == r, 1.0, np.sqrt(2.0))
        parts = []
        step = rows_per_block(32 * len(p))
        for start in range(0, len(A), step):
            rows = A[start : start + step]
            norms = _squared_norms(rows)
            products = np.column_stack([rows[:, p] * rows[:, r] * weights, norms])
            if self.normalize:
                products /= np.sqrt(2) * np.where(norms > 0, norms, 1.0)[:, None]
            else:
                products *= power**2
                to = exponents[start : start + step, None]
                _scaled_back(products[:, -1:], to, start, "the norm of the features of X[{}]", _LEAST_NORM)
                with np.errstate(under="ignore"):  # coordinates far below the largest one
                    products = np.ldexp(products, to)
            parts.append(sp.csr_array(products))
        features = sp.csr_array(sp.vstack(parts, format="csr"))
        features.resize((len(A), n_features))
        return features

    def _parameters(self) -> tuple[float, int, float]:
        """Check the parameters; return (bias / scale, exponent, factor), where scale = factor * 2**exponent."""
        scale, bias = check_positive(self.scale, "scale"), check_positive(self.bias, "bias", zero=True)
        if bias > 0 and not 0 < bias / scale < np.inf:
            raise ValueError(f"bias={bias!r} / scale={scale!r} is out of range for float64; scale the vectors")
        factor, exponent = np.frexp(scale)
        return bias / scale, int(exponent), float(factor)

    def _in_units(self, X: npt.NDArray[np.floating]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """Divide each row (x, bias / scale) by a power of two 2**e that brings its largest entry close to 1.

        Return (divided rows, a): the kernel of divided rows i and j must be multiplied by ``2**(a[i] + a[j])``.
        """
        q, exponent, _ = self._parameters()
        A = X.astype(np.float64, order="C")
        if q > 0:
            A = np.column_stack([A, np.full(len(A), q)])
        powers = np.frexp(np.abs(A).max(axis=1))[1]
        with np.errstate(under="ignore"):
            A = np.ldexp(A, -powers[:, None])
        return A, 2 * (powers.astype(np.int64) + exponent)


def _scaled_back(
    values: npt.NDArray, exponents: npt.NDArray[np.int64], first: int, what: str, least: float = _LEAST
) -> npt.NDArray[np.float64]:
    """Return values times 2**exponents; if one is out of range, raise an error that calls it `what`.

    `what` is such as "k(X[{}], X[{}])". Row 0 of `values` belongs to the object with index `first`.
    """
    with np.errstate(over="ignore", under="ignore"):
        found: npt.NDArray[np.float64] = np.ldexp(values, exponents)
    bad = np.isinf(found) | ((found <= least) & (values > 0))
    if bad.any():
        place = np.argwhere(bad)[0]
        how = "exceeds the largest" if np.isinf(found[tuple(place)]) else "is below the smallest"
        raise ValueError(
            f"{what.format(place[0] + first, *place[1:])} {how} float64; scale the vectors, or set normalize=True"
        )
    return found


def _squared_norms(A: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.einsum("ij,ij->i", A, A)
