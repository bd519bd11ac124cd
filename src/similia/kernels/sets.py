r"""Mean map kernel: two sets of points are as similar as their points are on average.

.. math:: K(U, V) = \frac{1}{|U| |V|} \sum_{u \in U} \sum_{v \in V} k(u, v)
          = \Big\langle \frac{1}{|U|} \sum_u \phi(u),\ \frac{1}{|V|} \sum_v \phi(v) \Big\rangle

for a kernel k of two points, the ground kernel, with feature map :math:`\phi`: the inner product of the mean embeddings
of the two sets. :math:`K(U, U) + K(V, V) - 2 K(U, V)` is the squared maximum mean discrepancy of the sets
(`similia.distances.mmd2` with ``unbiased=False``).

Cost: |U| |V| ground kernels for each pair of sets. `similia.MeanMapFeatures` is linear in the number of points.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.errors import BadParameter, BadValue, as_second
from similia.core.text import short
from similia.core.threads import run_tasks
from similia.kernels._pair_sums import pair_sums
from similia.objects import SetBatch, as_sets
from similia.objects.sequences import offsets_of, runs
from similia.objects.vectors import check_finite
from similia.similarity import Kernel, check_kernel, decided, evaluate

_POINTS = 256  # of a run of sets: the ground kernels of two runs take 512 KiB
_WORK = 64  # multiplications that take as long as one ground kernel

Floats = npt.NDArray[np.float64]


class MeanMap(Kernel):
    r"""Mean of a kernel over all pairs of points of two sets: the inner product of their mean embeddings.

    .. math:: K(U, V) = \frac{1}{|U| |V|} \sum_{u \in U} \sum_{v \in V} k(u, v)

    Parameters
    ----------
    ground : kernel
        Kernel k of points: any callable ``k(X, Y=None) -> (n, m)`` of two arrays of vectors, such as
        `similia.kernels.RBF`. Set its parameters as ``ground__name``.
    reduce : {"mean", "sum"}, default="mean"
        "sum" leaves out the division by the sizes, so that large sets have large kernel values.

    Raises
    ------
    ValueError
        When called, if `reduce` is unknown, if the points of X and Y differ in dimension, if X or Y holds no set, or if
        a point has NaN or infinity.

    Notes
    -----
    K is positive semi-definite if the ground kernel is. With ``reduce="mean"`` and `RBF`, two sets have the same
    embedding only if each point has the same share in both. An empty set has kernel 0 with every set.

    For a support-vector machine, wrap this kernel in `similia.kernels.Normalized`: the mean embedding of a set whose
    points are far apart has a small norm. A kernel value depends, to the last bit, only on its two sets if values of
    the ground kernel depend only on their two points. Those of ``RBF(gamma="median")``, called directly, depend on all
    points.

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
        """Return the sets `X` as one `SetBatch`."""
        return as_sets(X)

    def decided(self, X: Any) -> MeanMap:
        """Return this kernel with settings of `ground` such as ``gamma="median"`` fixed from the points of `X`."""
        check_kernel(self.ground, "ground")
        found = decided(self.ground, self.as_objects(X).values)
        return self if found is self.ground else MeanMap(found, self.reduce)

    def __call__(self, X: Any, Y: Any = None) -> Floats:
        A = self._read(X)
        B = A if Y is None else as_second(self._read, Y)
        if A.n_dims != B.n_dims:
            found = f"holds points of dimension {A.n_dims} and Y of dimension {B.n_dims}"
            raise BadValue(None, found, "one dimension for both")
        K = self._sums(decided(self.ground, A.values), A, B)
        if self.reduce == "mean":
            K /= np.multiply.outer(np.maximum(A.lengths, 1), np.maximum(B.lengths, 1))
        return K

    def diag(self, X: Any) -> Floats:
        A = self._read(X)
        ground = decided(self.ground, A.values)
        sums = np.array([self._sums(ground, one, one)[0, 0] for one in (A[i : i + 1] for i in range(len(A)))])
        return sums if self.reduce == "sum" else sums / np.maximum(A.lengths, 1) ** 2

    def _read(self, X: Any) -> SetBatch:
        check_kernel(self.ground, "ground")
        if self.reduce not in ("mean", "sum"):
            raise BadParameter("reduce", "'mean' or 'sum'", short(self.reduce))
        sets = self.as_objects(X)
        check_finite(sets)
        return sets

    @staticmethod
    def _sums(ground: Any, A: SetBatch, B: SetBatch) -> Floats:
        """Return the sum of the ground kernel over all pairs of points of each set of A and each of B.

        Large sets are cut into pieces of `_POINTS`; the sums of pairs of pieces are added in the end.
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
                    P[rows, columns] = pair_sums(k, *(cut - cut[0] for cut in cuts))

        run_tasks(fill, range(len(tiles)), _WORK * len(A.values) * len(B.values))
        if A is B:
            P = np.triu(P) + np.triu(P, 1).T
        small = len(P) == len(A) and P.shape[1] == len(B)
        return P if small else pair_sums(P, pieces_a, pieces_b)


def _pieces(sets: SetBatch) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the offsets of pieces of at most `_POINTS` points, counted from the start of each set, and those of sets.

    Points of piece p are ``first[p]:first[p + 1]``; pieces of set i are ``second[i]:second[i + 1]``. An empty set is
    one piece.
    """
    counts = np.maximum(1, -(-sets.lengths // _POINTS))
    of_sets = offsets_of(counts)
    within = np.arange(of_sets[-1]) - np.repeat(of_sets[:-1], counts)
    starts = np.repeat(sets.offsets[:-1], counts) + _POINTS * within
    return np.append(starts, sets.offsets[-1]), of_sets
