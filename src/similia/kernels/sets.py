"""Mean map kernel: two sets of points are as similar as their points are on average.

Cost: |U| |V| values of the ground kernel for each pair of sets U and V. `similia.MeanMapFeatures` is linear in the
number of points. K(U, U) + K(V, V) - 2 K(U, V) is the squared maximum mean discrepancy of the two sets, which
`similia.distances.mmd2` with ``unbiased=False`` computes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadValue, as_second
from similia.core.jit import njit
from similia.core.threads import run_tasks
from similia.core.validation import check_choice
from similia.objects import SetBatch, as_sets
from similia.objects.sequences import offsets_of, runs
from similia.objects.vectors import check_finite
from similia.similarity import Kernel, as_objects, check_kernel, decided, evaluate
from similia.sources.dask import Distributed

_POINTS = 256  # per run of sets; the kernel values between two runs take 512 KiB
_WORK = 64  # number of multiplications that take as long as one value of the ground kernel

Floats = npt.NDArray[np.float64]


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
    K is positive semi-definite if k is. With ``reduce="mean"`` and `RBF`, two sets have the same mean embedding only if
    each point has the same relative frequency in both. An empty set has kernel 0 with every set.

    For a support vector machine, wrap this kernel in `similia.kernels.Normalized`, since the mean embedding of a set
    whose points are far apart has a small norm. K(U, V) is the same, to the last bit, whatever other sets are in the
    call. The exception is a k that depends on other points, such as ``RBF(gamma="median")`` in a direct call, outside
    an estimator: its gamma depends on all points of `X`.

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
        """Return this kernel with settings of `ground` such as ``gamma="median"`` replaced by their values for `X`."""
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
        sums = np.array([self._sums(ground, one, one)[0, 0] for one in (A[i : i + 1] for i in range(len(A)))])
        return sums if self.reduce == "sum" else sums / np.maximum(A.lengths, 1) ** 2

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
        """Return the sum of `ground` over all pairs of points, for each set of A and each set of B.

        Sets are cut into pieces of at most `_POINTS` points; the sums of pairs of pieces are added in the end.
        """
        a, pieces_a = _pieces(A)
        b, pieces_b = (a, pieces_a) if A is B else _pieces(B)
        P = np.zeros((len(a) - 1, len(b) - 1))
        tiles = list(runs(a, _POINTS))

        def fill(number: int) -> None:
            rows = tiles[number]
            points = A.values[a[rows.start] : a[rows.stop]]
            for columns in tiles[number:] if A is B else runs(b, _POINTS):
                others = B.values[b[columns.start] : b[columns.stop]]
                if len(points) and len(others):
                    k = np.ascontiguousarray(evaluate(ground, points, others), np.float64)
                    cuts = a[rows.start : rows.stop + 1], b[columns.start : columns.stop + 1]
                    P[rows, columns] = _pair_sums(k, *(cut - cut[0] for cut in cuts))

        run_tasks(fill, range(len(tiles)), _WORK * len(A.values) * len(B.values))
        if A is B:
            P = np.triu(P) + np.triu(P, 1).T
        small = len(P) == len(A) and P.shape[1] == len(B)
        return P if small else _pair_sums(P, pieces_a, pieces_b)


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
