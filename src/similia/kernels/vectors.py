"""Kernels of vectors (Gaussian, optical), and the mean map kernel of sets of vectors.

Cost of the optical kernel: one matrix product per block. Cost of the mean map kernel K: |U| |V| values of the ground
kernel for each pair of sets U and V; `similia.MeanMapFeatures` is linear in the number of points. K(U, U) + K(V, V) - 2
K(U, V) is the squared maximum mean discrepancy of the two sets, which `similia.distances.mmd2` with ``unbiased=False``
computes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from similia.core import functions
from similia.core.config import rows_per_block, run_tasks
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.validation import (
    BadItem,
    BadPair,
    BadValue,
    as_second,
    check_choice,
    check_positive,
    check_positive_int,
    check_vectors,
    part_from,
)
from similia.kernels.counts import scale_by_norms
from similia.kernels.from_distance import suggest_gamma
from similia.objects import SetBatch, as_sets
from similia.objects.sequences import offsets_of, runs
from similia.objects.vectors import check_finite
from similia.similarity import Kernel, as_objects, check_kernel, decided, evaluate, precision
from similia.sources.dask import Distributed

_PLAIN = 900  # sums of exponents below it need no check
_FAR = 600  # rows are divided by two to this power if the square of a distance overflows
_LEAST, _LEAST_NORM = 2.0**-1022, 1e-290  # smallest kernel value and smallest norm of features with full precision
_POINTS = 256  # per run of sets; the kernel values between two runs take 512 KiB
_WORK = 64  # number of multiplications that take as long as one value of the ground kernel
Floats = npt.NDArray[np.float64]


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
        Standard deviation :math:`\varsigma` of an entry of W. Without bias, the kernel is proportional to the fourth
        power of the scale.
    bias : float, default=0.0
        Standard deviation :math:`\tau` of an entry of b. At 0 the kernel cannot distinguish x and -x.
    normalize : bool, default=False
        Divide K(x, y) by sqrt(K(x, x) K(y, y)). The result is (1 + c^2) / 2, where c is the cosine of the angle between
        x' and y'.
        Without bias, a zero vector has kernel 0 with all others and 1 with itself.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range; if `X` is not a finite 2-D array; or if, without `normalize`, a
        kernel value is out of range for float64.

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
            f"{what.format(place[0] + first, *place[1:])} {how} float64; scale the vectors, or use "
            "Optical(normalize=True)"
        )
    return found


def _squared_norms(A: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.einsum("ij,ij->i", A, A)


class MeanMap(Kernel):
    r"""Mean of a kernel k over all pairs of points, one from each of two sets.

    .. math:: K(U, V) = \frac{1}{|U| |V|} \sum_{u \in U} \sum_{v \in V} k(u, v)

    K(U, V) is the inner product of the mean embeddings of U and V. The mean embedding of a set is the mean of its
    points in the feature space of k.

    Parameters
    ----------
    ground : kernel
        Kernel k of points: any callable ``k(X, Y=None) -> (n, m)`` of two arrays of vectors, such as
        `similia.kernels.RBF`. In `set_params`, the parameters of `ground` are named ``ground__name``.
    reduce : {"mean", "sum"}, default="mean"
        "sum" does not divide by the sizes, so large sets have large kernel values.

    Raises
    ------
    ValueError
        When called, if `reduce` is unknown, if the points of X and Y differ in dimension, if X or Y holds no set, or if
        a point has NaN or infinity.

    Notes
    -----
    If k is positive semi-definite, K is positive semi-definite, too. With ``reduce="mean"`` and `RBF`, two sets have
    the same mean embedding only if each point has the same relative frequency in both sets. An empty set has kernel 0
    with every set.

    For a support vector machine, wrap this kernel in `similia.kernels.Normalized`, since the mean embedding of a set
    whose points are far apart has a small norm. The other sets in a call do not change K(U, V), not even in its last
    bit, unless k itself depends on the other points. For example, if you call this kernel with
    ``RBF(gamma="median")`` yourself, gamma depends on all points of `X`. In an estimator, gamma is computed only in
    `fit` and then stays fixed.

    `similia.objects.GraphToSets` and `similia.objects.SeriesToSets` turn graphs and series into sets.

    References
    ----------
    Haussler, "Convolution kernels on discrete structures", 1999; Gretton et al., "A kernel two-sample test", JMLR 13,
    2012, Section 2; Muandet et al., "Kernel mean embedding of distributions: a review and beyond", 2017, Section 3.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.kernels import RBF, MeanMap
    >>> sets = [np.array([[0.0], [1.0]]), np.array([[1.0], [0.0], [1.0], [0.0]]), np.array([[5.0]])]
    >>> MeanMap(RBF(gamma=1.0))(sets).round(3)
    array([[0.684, 0.684, 0.   ],
           [0.684, 0.684, 0.   ],
           [0.   , 0.   , 1.   ]])
    """

    def __init__(self, ground: Any, reduce: str = "mean") -> None:
        self.ground = ground
        self.reduce = reduce

    def as_objects(self, X: Any) -> SetBatch:
        return as_sets(X)

    def decided(self, X: Any) -> MeanMap:
        """Return this kernel with the data-dependent settings of `ground` replaced by their values for all points."""
        check_kernel(self.ground, "ground")
        sets = as_objects(self, X)
        points = Distributed(sets.lazy(_points)) if isinstance(sets, Distributed) else _points(sets)
        found = decided(self.ground, points)
        return self if found is self.ground else MeanMap(found, self.reduce)

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        A = self._read(X)
        B = A if Y is None else as_second(self._read, Y)
        if A.n_dims != B.n_dims:
            found = f"holds points of dimension {A.n_dims} and Y of dimension {B.n_dims}"
            raise BadValue(None, found, "one dimension for both")
        K = self._sums(self._ground(A), A, B)
        if self.reduce == "mean":
            K /= np.multiply.outer(np.maximum(A.lengths, 1), np.maximum(B.lengths, 1))
        return K

    def diag(self, X: Any) -> Floats:
        A = self._read(X)
        ground = self._ground(A)
        sums = np.empty(len(A))
        for i in range(len(A)):
            with part_from(i):
                one = A[i : i + 1]
                sums[i] = self._sums(ground, one, one)[0, 0]
        return sums if self.reduce == "sum" else sums / np.maximum(A.lengths, 1) ** 2

    def _precision(self, X: Any) -> float:
        sets = self.as_objects(X)
        point = sets.values[:1] if len(sets.values) else np.ones((1, sets.n_dims), sets.values.dtype)
        return precision(self.ground, point)

    def _ground(self, sets: SetBatch) -> Any:
        """Return `ground`, decided by the points of `sets`; without points it is never called, so left undecided."""
        return decided(self.ground, sets.values) if len(sets.values) else self.ground

    def _read(self, X: Any) -> SetBatch:
        check_kernel(self.ground, "ground")
        check_choice(self.reduce, "reduce", ("mean", "sum"))
        sets = self.as_objects(X)
        check_finite(sets)
        return sets

    @staticmethod
    def _sums(ground: Any, A: SetBatch, B: SetBatch) -> Floats:
        """Return the sum of `ground` over all pairs of points, for each set of A and each set of B."""
        a, pieces_a = _pieces(A)
        b, pieces_b = (a, pieces_a) if A is B else _pieces(B)
        P = np.zeros((len(a) - 1, len(b) - 1))
        tiles = runs(a, _POINTS)

        def fill(number: int) -> None:
            rows = tiles[number]
            points = A.values[a[rows.start] : a[rows.stop]]
            for columns in tiles[number:] if A is B else runs(b, _POINTS):
                others = B.values[b[columns.start] : b[columns.stop]]
                if len(points) and len(others):
                    with _points_named(A, a[rows.start], B, b[columns.start]):
                        k = np.ascontiguousarray(evaluate(ground, points, others), np.float64)
                    cuts = a[rows.start : rows.stop + 1], b[columns.start : columns.stop + 1]
                    P[rows, columns] = _pair_sums(k, *(cut - cut[0] for cut in cuts))

        run_tasks(fill, range(len(tiles)), _WORK * len(A.values) * len(B.values))
        if A is B:
            P = np.triu(P) + np.triu(P, 1).T
        small = len(P) == len(A) and P.shape[1] == len(B)
        return P if small else _pair_sums(P, pieces_a, pieces_b)


@contextmanager
def _points_named(A: SetBatch, first_a: int, B: SetBatch, first_b: int) -> Iterator[None]:
    """Context manager that names sets, and points in them, in errors about points of A and B, from the first on."""

    def found(sets: SetBatch, point: int) -> tuple[int, int]:
        i = int(np.searchsorted(sets.offsets, point, "right")) - 1
        return i, point - sets.offsets[i]

    try:
        yield
    except BadPair as error:
        (i, p), (j, q) = found(A, first_a + error.index[0]), found(B, first_b + error.index[1])
        raise error.changed(index=(i, j), expected=f" (points {p} and {q}){error.expected}") from error.__cause__
    except BadItem as error:
        if error.index is None:
            raise
        i, p = found(B, first_b + error.index) if error.collection == "Y" else found(A, first_a + error.index)
        name, place = "X" if A is B else error.collection, f"point {p}, {error.place}".removesuffix(", ")
        raise error.changed(index=i, collection=name, kind="set", place=place) from error.__cause__


def _points(sets: Any, start: int = 0) -> npt.NDArray[np.floating]:
    """Return the finite points of some sets; `Distributed.lazy` passes `start`, unused here, and parts without sets."""
    if not isinstance(sets, SetBatch):
        return np.empty((0, 1))
    check_finite(sets)
    return sets.values


def _pieces(sets: SetBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut each set into pieces of at most `_POINTS` points; return (offsets of pieces, offsets of sets).

    Piece p has the points ``first[p]:first[p + 1]``, set i the pieces ``second[i]:second[i + 1]``. An empty set is one
    piece.
    """
    counts = np.maximum(1, -(-sets.lengths // _POINTS))
    of_sets = offsets_of(counts)
    within = np.arange(of_sets[-1]) - np.repeat(of_sets[:-1], counts)
    starts = np.repeat(sets.offsets[:-1], counts) + _POINTS * within
    return np.append(starts, sets.offsets[-1]), of_sets


@njit()
def _pair_sums(k, rows, columns):  # type: ignore[no-untyped-def]
    """Return the sum of ``k[rows[i] : rows[i + 1], columns[j] : columns[j + 1]]`` for all i and j.

    It is the mean of a sum row by row and a sum column by column, so the transpose of `k` gives the same bits.
    """
    out = np.empty((len(rows) - 1, len(columns) - 1))
    for i in range(len(rows) - 1):
        for j in range(len(columns) - 1):
            by_rows, by_columns = 0.0, 0.0
            for r in range(rows[i], rows[i + 1]):
                total = 0.0
                for c in range(columns[j], columns[j + 1]):
                    total += k[r, c]
                by_rows += total
            for c in range(columns[j], columns[j + 1]):
                total = 0.0
                for r in range(rows[i], rows[i + 1]):
                    total += k[r, c]
                by_columns += total
            out[i, j] = 0.5 * by_rows + 0.5 * by_columns
    return out
