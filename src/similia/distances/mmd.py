r"""Maximum mean discrepancy (MMD): how far apart two laws are, as a kernel sees them.

.. math:: \mathrm{MMD}^2(P, Q) = \mathrm{E}\,k(x, x') + \mathrm{E}\,k(y, y') - 2\,\mathrm{E}\,k(x, y),

x, x' from P and y, y' from Q, all independent. Two estimates from n and m samples: the V-statistic, the squared
distance of the two means in feature space, which exceeds it on average by :math:`n^{-1} [\mathrm{E}\,k(x, x) -
\mathrm{E}\,k(x, x')]` and the like for Q; and the unbiased U-statistic, without the terms i = j of
:math:`\sum_{ij} k(x_i, x_j)`, which may be negative.

`mmd2` and `two_sample_test` take objects of any kind, `MMD` is a distance between graphs: that of the laws of their
sampled graphlets. Cost: (n + m)^2 kernel values, and as many multiplications a permutation (by BLAS).

Papers: Gretton et al., "A kernel two-sample test", JMLR 13, 2012; Ghanem, Keriven & Tremblay, "Fast graph kernel with
optical random features", ICASSP 2021, Section 3.2.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.errors import part_from
from similia.core.products import row_product
from similia.core.threads import one_blas_thread
from similia.core.validation import RandomState, check_positive, check_positive_int, generator
from similia.distances._pooled import pooled_gram
from similia.objects import GraphBatch
from similia.objects.graphlets import as_structures, canonical_forms, count_patterns, n_pairs, sample_graphlets
from similia.objects.sequences import as_second
from similia.similarity import Distance, Facts

Array = npt.NDArray[np.float64]
_KERNELS = ("gaussian", "optical", "match", "match_iso")


class TwoSampleResult(NamedTuple):
    """Result of `two_sample_test`.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of MMD^2, in units of the kernel; may be negative.
    p_value : float
        Share of permutations, the one that was observed among them, with a statistic at least as large.
    null : ndarray of float64, shape (n_permutations,)
        Statistics of the permutations.
    """

    statistic: float
    p_value: float
    null: Array

    def __repr__(self) -> str:
        return (
            f"TwoSampleResult(statistic={self.statistic:.6g}, p_value={self.p_value:.6g}, "
            f"null=<{len(self.null)} statistics>)"
        )


def mmd2(X: Any, Y: Any, kernel: Any, unbiased: bool = True) -> float:
    r"""Estimate the squared maximum mean discrepancy of the laws that two collections were drawn from.

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
    Y : sequence of m objects, or the number n if ``kernel="precomputed"``
    kernel : kernel, fitted embedding or "precomputed"
        ``kernel(X, Y=None) -> (n, m)``; or an object with ``transform``, whose inner products are the kernel. With
        ``"precomputed"``, X is the Gram matrix of both collections, the first n objects being the first one.
    unbiased : bool, default=True
        The U-statistic, whose expectation is MMD^2 and which may be negative; otherwise the V-statistic, the squared
        distance of the two means, which is never negative and exceeds MMD^2 on average by
        (E k(x, x) - E k(x, x')) / n + (E k(y, y) - E k(y, y')) / m.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If a collection is empty, or has one object only and `unbiased`, or the kernel returns another shape or NaN.
    TypeError
        If `kernel` is a distance, or can be neither called nor used to transform.

    References
    ----------
    Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Eqs. 3 and 5.

    Examples
    --------
    >>> from similia.distances.mmd import mmd2
    >>> from similia.kernels import Spectrum
    >>> X, Y = ["AAC", "AAG", "AAA"], ["TTC", "TTT", "TTG"]
    >>> round(mmd2(X, Y, Spectrum(k=2)), 3)
    3.333
    >>> round(mmd2(X, Y, Spectrum(k=2), unbiased=False), 3)
    4.0
    """
    K, n = pooled_gram(X, Y, kernel, least=2 if unbiased else 1)
    m = len(K) - n
    shift = 0.0 if unbiased else 1.0
    trace_x, trace_y = K.diagonal()[:n].sum(), K.diagonal()[n:].sum()
    xx = (K[:n, :n].sum() - (1 - shift) * trace_x) / (n * (n - 1 + shift))
    yy = (K[n:, n:].sum() - (1 - shift) * trace_y) / (m * (m - 1 + shift))
    return float(xx + yy - 2 * K[:n, n:].mean())


def two_sample_test(
    X: Any, Y: Any, kernel: Any, n_permutations: int = 1000, random_state: RandomState = None
) -> TwoSampleResult:
    r"""Test whether two collections of objects were drawn from one law.

    If they were, every division of the pooled objects into n and m is as likely as the one observed; the p-value is
    (1 + the number of permutations whose statistic is at least that observed) / (1 + `n_permutations`). It is valid for
    every n and m: under the null hypothesis P(p-value <= a) <= a.

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
    Y : sequence of m objects, or the number n if ``kernel="precomputed"``
    kernel : kernel, fitted embedding or "precomputed"
        As for `mmd2`. Laws that differ only in what the kernel does not see are not told apart.
    n_permutations : int, default=1000
        The smallest p-value is 1 / (1 + n_permutations).
    random_state : int, numpy Generator or None, default=None
        Draws the permutations.

    Returns
    -------
    TwoSampleResult
        ``(statistic, p_value, null)``, the statistic being the unbiased MMD^2.

    Raises
    ------
    ValueError, TypeError
        As `mmd2`; a collection needs two objects at least.

    References
    ----------
    Gretton et al., "A kernel two-sample test", JMLR 13, 2012; Phipson & Smyth, "Permutation p-values should never be
    zero", 2010.

    Examples
    --------
    Do two generators make graphs alike? Here, random graphs with and without a ring in them:

    >>> import networkx as nx
    >>> from similia.distances.mmd import two_sample_test
    >>> from similia.kernels import ShortestPath
    >>> X = [nx.gnp_random_graph(20, 0.2, seed=i) for i in range(30)]
    >>> Y = [nx.watts_strogatz_graph(20, 4, 0.3, seed=i) for i in range(30)]
    >>> two_sample_test(X, Y, ShortestPath(normalize=True), random_state=0).p_value < 0.01
    True
    >>> two_sample_test(X[:15], X[15:], ShortestPath(normalize=True), random_state=0).p_value > 0.05
    True
    """
    n_permutations = check_positive_int(n_permutations, "n_permutations")
    rng = generator(random_state)
    K, n = pooled_gram(X, Y, kernel, least=2)
    N = len(K)
    # A constant added off the diagonal changes no statistic; without their mean the values lose fewer digits.
    np.fill_diagonal(K, 0.0)
    scale = np.abs(K).max()
    K -= K.sum() / (N * (N - 1))
    np.fill_diagonal(K, 0.0)
    labels = np.zeros(N)
    labels[:n] = 1.0
    statistic = float(_u_statistics(K, labels[None])[0])
    null = np.empty(n_permutations)
    step = rows_per_block(24 * N, at_most=256)
    for start in range(0, n_permutations, step):
        rows = null[start : start + step]
        rows[:] = _u_statistics(K, rng.permuted(np.tile(labels, (len(rows), 1)), axis=1))
    # Equal divisions may differ by rounding.
    n_larger = int(np.count_nonzero(null >= statistic - 1e-12 * scale))
    return TwoSampleResult(statistic, (1 + n_larger) / (1 + n_permutations), null)


@one_blas_thread()  # more of them round otherwise
def mmd2_variance(K: npt.ArrayLike, p: npt.ArrayLike, q: npt.ArrayLike, n: int, m: int | None = None) -> float:
    r"""Return the variance of the unbiased MMD^2 of n samples of a law p and m samples of a law q.

    Parameters
    ----------
    K : array-like of shape (r, r)
        Kernel of the r different objects that the laws are on.
    p, q : array-like of shape (r,)
        Probability of each object.
    n : int
        Samples of p, at least 2.
    m : int, optional
        Samples of q; as many as of p if not given.

    Returns
    -------
    float
        Exact for every n and m.

    Raises
    ------
    ValueError
        If the shapes do not fit, p or q is no law, or n or m is below 2.

    Notes
    -----
    With :math:`f(x) = \mathrm{E}\,k(x, x')` and :math:`g(x) = \mathrm{E}\,k(x, y)` the means under p and under q, the
    three parts of the statistic are U-statistics, whose pairs of terms are correlated where they share a sample:

    .. math::
        \mathrm{Var}\,U_{xx} &= \frac{4 (n - 2) \mathrm{Var} f(x) + 2\,\mathrm{Var}\,k(x, x')}{n (n - 1)}, \\
        \mathrm{Var}\,V_{xy} &= \frac{(m - 1) \mathrm{Var}\,g(x) + (n - 1) \mathrm{Var} f(y)
        + \mathrm{Var}\,k(x, y)}{n m}, \\
        \mathrm{Cov}(U_{xx}, V_{xy}) &= \frac{2}{n} \mathrm{Cov}(f(x), g(x)),

    likewise for :math:`U_{yy}`, and Var = Var U_xx + Var U_yy + 4 Var V_xy - 4 Cov(U_xx, V_xy) - 4 Cov(U_yy, V_xy). For
    :math:`p \ne q` it falls as 1 / n, for p = q as 1 / n^2. With the objects of two collections as the support, p and q
    uniform on either, it estimates the squared standard error of `mmd2` (too high for few objects).

    References
    ----------
    Hoeffding, "A class of statistics with asymptotically normal distribution", 1948, Section 5; Gretton et al.,
    "A kernel two-sample test", JMLR 13, 2012, Appendix B (its leading term).

    Examples
    --------
    A coin of 1/2 and one of 1/4, told apart by the kernel k(x, y) = [x = y]:

    >>> import numpy as np
    >>> from similia.distances.mmd import mmd2_variance
    >>> round(mmd2_variance(np.eye(2), [0.5, 0.5], [0.25, 0.75], n=100), 5)
    0.00453
    """
    K, p, q = (np.asarray(values, dtype=np.float64) for values in (K, p, q))
    if K.ndim != 2 or p.shape != (len(K),) or q.shape != p.shape or K.shape != (len(K), len(K)):
        raise ValueError(f"expected K of shape (r, r), p and q of shape (r,), got {K.shape}, {p.shape} and {q.shape}")
    for name, law in (("p", p), ("q", q)):
        if not (law >= 0).all() or abs(law.sum() - 1) > 1e-6:
            raise ValueError(f"{name} must be probabilities that sum to 1, got a least of {law.min()}, sum {law.sum()}")
    n = check_positive_int(n, "n", minimum=2)
    m = n if m is None else check_positive_int(m, "m", minimum=2)
    K = K - p @ K @ q  # the statistic is blind to a constant
    f, g = K @ p, K @ q

    def within(law: Array, mean: Array, size: int) -> float:
        pairs = law @ np.square(K) @ law - (law @ mean) ** 2
        return float((4 * (size - 2) * _covariance(law, mean, mean) + 2 * pairs) / (size * (size - 1)))

    pairs = p @ np.square(K) @ q - (p @ g) ** 2
    across = ((m - 1) * _covariance(p, g, g) + (n - 1) * _covariance(q, f, f) + pairs) / (n * m)
    shared = 2 / n * _covariance(p, f, g) + 2 / m * _covariance(q, f, g)
    return float(within(p, f, n) + within(q, g, m) + 4 * across - 4 * shared)


class MMD(Distance):
    r"""Distance between graphs: the MMD between the laws of their sampled graphlets.

    .. math:: d(G, H)^2 = \frac{1}{s^2} \sum_{i, j = 1}^{s} \big[k(F_i, F_j) + k(F'_i, F'_j) - 2 k(F_i, F'_j)\big],

    with graphlets :math:`F_i` of G and :math:`F'_j` of H: the Euclidean distance of what `similia.GraphletSampling`
    would embed the graphs to with infinitely many features.

    Parameters
    ----------
    size : int, default=6
        Nodes of a graphlet: 2 to 11, or to 7 for ``"match_iso"``.
    n_samples : int, default=2000
        Graphlets drawn from each graph, s.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        As for `similia.objects.graphlets.sample_graphlets`.
    kernel : {"gaussian", "optical", "match", "match_iso"}, default="gaussian"
        Kernel of two graphlets with adjacency bits a and b (size (size - 1) / 2 each):

        - ``"gaussian"``: :math:`e^{-|a - b|^2 / 2 \sigma^2}`, with the number of different bits as :math:`|a - b|^2`;
        - ``"optical"``: :math:`|a|^2 |b|^2 + (a \cdot b)^2`; not characteristic: it sees second moments of the bits;
        - ``"match"``: 1 if a = b, else 0; then d is the Euclidean distance of two histograms;
        - ``"match_iso"``: 1 if the graphlets are isomorphic, else 0.
    bandwidth : float, default=1.0
        :math:`\sigma` of the Gaussian kernel.
    unbiased : bool, default=False
        Leave out the terms i = j within a graph: d^2 then has no bias by the number of samples, but where it is
        negative the distance is 0, so that d has.
    random_state : int, default=0
        Seed of the samples. An integer, since a distance has no ``fit`` in which to draw.
    flyback : float, default=0.15
        Probability that the walk jumps back to its first node, in [0, 1).
    small : {"pad", "raise"}, default="pad"
        What becomes of a graph with fewer than `size` nodes: isolated nodes are added, or an error.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range or a graph is too small and ``small="raise"``.
    TypeError
        If `X` holds no graphs.

    Notes
    -----
    The samples of a graph depend on `random_state` and on its own structure and numbering alone. Hence a graph is at
    distance 0 from itself, in X as in Y, and distances do not depend on what else is in the collection. A graph
    with its nodes renumbered has other samples: it is at a distance of about sqrt(2 (1 - E k) / s), E k the mean kernel
    of two of its graphlets; ``unbiased=True`` takes that off the square.

    Without `unbiased` the triangle inequality holds (a Euclidean distance of means). It is no metric, since
    different graphs may have equal histograms.

    Computed from counts of the distinct patterns, exactly: "optical" from second moments and "match" from counts, both
    integers; "gaussian" from a table of the kernel mean at all :math:`2^D` codes, D 2^D additions a graph, as it is a
    product over bits; where there are few distinct codes or D is large, from Hamming distances of codes. Squares are
    right to about 1e-15, hence distances to 3e-8.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021; Gretton et al., "A
    kernel two-sample test", JMLR 13, 2012.

    Examples
    --------
    >>> import networkx as nx
    >>> from similia.distances.mmd import MMD
    >>> graphs = [nx.cycle_graph(20), nx.cycle_graph(30), nx.star_graph(20)]
    >>> D = MMD(size=4, n_samples=500)(graphs)
    >>> D.diagonal()
    array([0., 0., 0.])
    >>> bool(D[0, 1] < 0.1 * D[0, 2])
    True

    Nearest neighbours by a matrix of distances:

    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> model = KNeighborsClassifier(n_neighbors=1, metric="precomputed").fit(D, ["cycle", "cycle", "star"])
    >>> model.predict(MMD(size=4, n_samples=500)([nx.star_graph(25)], graphs))
    array(['star'], dtype='<U5')
    """

    facts: ClassVar[Facts] = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="s")

    def __init__(
        self,
        size: int = 6,
        n_samples: int = 2000,
        sampling: str = "random_walk",
        kernel: str = "gaussian",
        bandwidth: float = 1.0,
        unbiased: bool = False,
        random_state: int = 0,
        *,
        flyback: float = 0.15,
        small: str = "pad",
    ) -> None:
        self.size = size
        self.n_samples = n_samples
        self.sampling = sampling
        self.kernel = kernel
        self.bandwidth = bandwidth
        self.unbiased = unbiased
        self.random_state = random_state
        self.flyback = flyback
        self.small = small

    def as_objects(self, X: Any) -> GraphBatch:
        """Return `X` as a `GraphBatch`, labels and weights left out."""
        return as_structures(X)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        """Return the distances of the graphs `X` to the graphs `Y`.

        Parameters
        ----------
        X : sequence of n graphs
        Y : sequence of m graphs, optional
            `X` itself if not given.

        Returns
        -------
        ndarray of float64, shape (n, m)
        """
        s = check_positive_int(self.n_samples, "n_samples", minimum=2 if self.unbiased else 1)
        self._check()
        A = self._samples(self.as_objects(X))
        B = None if Y is None else as_second(lambda graphs: self._samples(self.as_objects(graphs)), Y)
        sums, own_a, own_b = self._sums(A, B)
        if self.unbiased:
            sums *= -2.0 * (s - 1)
            own_a = s * (own_a - self._diagonal_sums(A))
            own_b = s * (own_b - self._diagonal_sums(A if B is None else B))
            sums += own_a[:, None] + own_b
            sums /= float(s) ** 2 * (s - 1)
        else:
            sums *= -2.0
            sums += own_a[:, None] + own_b
            sums /= float(s) ** 2
        np.maximum(sums, 0.0, out=sums)
        return np.sqrt(sums, out=sums)

    def _check(self) -> None:
        if self.kernel not in _KERNELS:
            raise ValueError(f"kernel must be one of {', '.join(map(repr, _KERNELS))}, got {self.kernel!r}")
        check_positive(self.bandwidth, "bandwidth")
        check_positive_int(self.random_state, "random_state", minimum=0)
        if self.kernel == "match_iso":
            canonical_forms(self.size)  # refuses sizes that it has no classes for

    def _samples(self, graphs: GraphBatch) -> Any:
        """Return what a kernel asks of the graphlets of each graph.

        For "optical" the sums of a_p a_q (see `second_moments`); otherwise `Patterns` of codes (or classes).
        """
        from similia.distances._mmd import joined
        from similia.objects.graphlet_moments import second_moments

        parts: list[Any] = []
        step = rows_per_block(32 * int(self.n_samples))
        for start in range(0, len(graphs), step):
            with part_from(start):
                codes = sample_graphlets(
                    graphs[start : start + step], self.size, self.n_samples, self.sampling, self.flyback, self.small,
                    int(self.random_state),
                )  # fmt: skip
            if self.kernel == "match_iso":
                codes = canonical_forms(self.size).table[codes.astype(np.int64)].astype(np.uint64)
            if self.kernel == "optical":
                parts.append(np.rint(second_moments(codes, self.size) * self.n_samples))
            else:
                parts.append(count_patterns(codes))
        return np.concatenate(parts) if self.kernel == "optical" else joined(parts)

    def _diagonal_sums(self, A: Any) -> Array:
        """Return the sum of k(a, a) over the samples of each graph."""
        if self.kernel == "optical":  # k(a, a) is 2 |a|^4, and |a|^2 the sum of the bits
            return np.asarray(2 * (A @ self._multiplicities()))
        return np.full(len(A.offsets) - 1, float(self.n_samples))

    def _sums(self, A: Any, B: Any) -> tuple[Array, Array, Array]:
        """Return the sums of the kernel over the samples of each pair of graphs, and over those of each graph."""
        if self.kernel == "optical":
            # |a|^2 |b|^2 + (a.b)^2 is tr S tr T + <S, T> of S = a a^T and T = b b^T: integers, exact in any order.
            w = self._multiplicities()
            U = np.column_stack([A[:, w == 1].sum(axis=1), A])
            V = U if B is None else np.column_stack([B[:, w == 1].sum(axis=1), B])
            w = np.concatenate(([1.0], w))
            return (U * w) @ V.T, np.square(U) @ w, np.square(V) @ w
        from similia.distances._mmd import pattern_sums

        with np.errstate(under="ignore"):  # patterns that differ count as little as they do
            rho = float(np.exp(-0.5 / float(self.bandwidth) ** 2)) if self.kernel == "gaussian" else 0.0
            return pattern_sums(A, B, n_pairs(self.size), rho)

    def _multiplicities(self) -> Array:
        """Return how often each second moment stands in the matrix of all: once on the diagonal, else twice."""
        p, q = np.triu_indices(n_pairs(self.size))
        return np.where(p == q, 1.0, 2.0)


def _covariance(law: Array, f: Array, g: Array) -> float:
    return float(law @ ((f - law @ f) * (g - law @ g)))


def _u_statistics(K: Array, labels: Array) -> Array:
    """Return the unbiased MMD^2 for each row of labels (1: first collection, 0: second) of a K with zero diagonal."""
    N, n = len(K), labels[0].sum()
    m = N - n
    degrees = K.sum(axis=1)
    xx = np.einsum("ij,ij->i", row_product(labels, K), labels)
    of_x = labels @ degrees
    xy = of_x - xx
    yy = degrees.sum() - of_x - xy
    return np.asarray(xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m))
