r"""Maximum mean discrepancy (MMD): of two collections, with a permutation test, and as a distance between graphs.

.. math:: \mathrm{MMD}^2(P, Q) = \mathrm{E}\,k(x, x') + \mathrm{E}\,k(y, y') - 2\,\mathrm{E}\,k(x, y),

with x, x' from P and y, y' from Q, all independent. There are two estimates from n samples of P and m of Q. The
V-statistic is the squared distance of the two means in feature space; on average it exceeds MMD^2 by :math:`n^{-1}
[\mathrm{E}\,k(x, x) - \mathrm{E}\,k(x, x')]` plus the same term for Q and m. The U-statistic leaves out the terms with
i = j in the sums of :math:`k(x_i, x_j)` and :math:`k(y_i, y_j)`; it is unbiased and may be negative. Cost: (n + m)^2
kernel values, and as many multiplications for each permutation.

The distance of two graphs, `MMD`, is the V-statistic of their sampled graphlets, computed from histograms of graphlet
codes (the D adjacency bits of a graphlet). n(b) is the number of a graph's samples with code b. For each group of
`LANES` graphs, a table holds the sum of n(b) k(a, b) over b for each code a (row) and each graph of the group (column).
The kernel sum of a pair of graphs is then a sum over the codes of the second graph. The Gaussian kernel is a product
over bits, so a table for all 2^D codes takes D 2^D additions per graph; with few distinct codes or a large D, Hamming
distances of codes are used instead. The order of each sum in a call depends on its two histograms only, so equal
histograms give equal numbers, to the last bit.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import n_threads, rows_per_block, run_in_ranges, settings
from similia.core.hashing import popcount
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.text import short
from similia.core.validation import (
    BadValue,
    RandomState,
    as_second,
    check_choice,
    check_positive,
    check_positive_int,
    generator,
    pairs_named,
    part_from,
)
from similia.objects import GraphBatch, concatenate, n_objects
from similia.objects.graphlets import (
    Patterns,
    as_structures,
    canonical_forms,
    count_patterns,
    n_pairs,
    sample_graphlets,
    second_moments,
)
from similia.objects.sequences import as_csr
from similia.similarity import Distance, Facts, as_floats, as_objects, check_kernel, evaluate

Array = npt.NDArray[np.float64]
# Measured times, in one unit: to compare a pair of codes; to process one bit of a table entry.
_PAIR_COST, _TABLE_COST = 3, 1
_IN_CACHE = 2**14  # float64 values of a table: 128 KiB
LANES = 8  # graphs per tile: their entries of one row fill a cache line


class MMD(Distance):
    r"""Distance between graphs: the maximum mean discrepancy (MMD) of their sampled graphlets.

    .. math:: d(G, H)^2 = \frac{1}{s^2} \sum_{i, j = 1}^{s} \big[k(F_i, F_j) + k(F'_i, F'_j) - 2 k(F_i, F'_j)\big].

    A graphlet is the subgraph induced by `size` nodes. From G, s graphlets :math:`F_i` are drawn, and from H, s
    graphlets :math:`F'_j`. The distance d is the Euclidean distance between the vectors that `similia.GraphletSampling`
    would compute for G and H with infinitely many features.

    Parameters
    ----------
    size : int, default=6
        Number of nodes of a graphlet: 2 to 11, or 2 to 7 for ``"match_iso"``.
    n_samples : int, default=2000
        Number s of graphlets drawn from each graph.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        How to draw the nodes of a graphlet: the first nodes that a random walk visits, or nodes chosen uniformly. For
        details see `similia.objects.sample_graphlets`.
    kernel : {"gaussian", "optical", "match", "match_iso"}, default="gaussian"
        Kernel k of two graphlets. a and b are their adjacency bits, one for each of the size (size - 1) / 2 pairs of
        nodes:

        - ``"gaussian"``: :math:`e^{-|a - b|^2 / 2 \sigma^2}`, where :math:`|a - b|^2` counts the bits that differ;
        - ``"optical"``: :math:`|a|^2 |b|^2 + (a \cdot b)^2`; with this kernel, d depends only on how often each bit is
          1 in a graph's graphlets, and how often each pair of bits is 1 in the same graphlet;
        - ``"match"``: 1 if a = b, else 0; then d is the Euclidean distance between the histograms of the graphlets;
        - ``"match_iso"``: 1 if the graphlets are isomorphic, else 0.
    bandwidth : float, default=1.0
        :math:`\sigma` of the Gaussian kernel.
    unbiased : bool, default=False
        Whether to leave out the terms i = j of k(F_i, F_j) and k(F'_i, F'_j), and to divide the sums of the other terms
        by s (s - 1). The formula then estimates the squared MMD without bias. The distance d itself stays biased: it is
        the square root of this estimate, or 0 if the estimate is negative.
    random_state : int, default=0
        Seed of the samples. It must be an integer, so that every call draws the same samples.
    flyback : float, default=0.15
        Probability, in [0, 1), that a step of ``"random_walk"`` leads back to the node where the walk last started.
    small : {"pad", "raise"}, default="pad"
        How to treat a graph with fewer than `size` nodes: add isolated nodes, or raise an error.

    Notes
    -----
    The samples of a graph depend only on `random_state` and on the edges and node numbers of the graph. Hence a graph
    that occurs in both X and Y has distance 0 to itself. Except for rounding, the distance between two graphs does not
    depend on the other graphs in X and Y. Renumbering the nodes of a graph changes its samples. By default, the
    distance between the graph and its renumbered copy is about sqrt(2 (1 - E k) / s), where E k is the mean of k over
    pairs of graphlets of the graph. (For ``"optical"``, the mean of k(F, F) takes the place of 1.)

    d is not a metric, since different graphs may have the same graphlets equally often. The triangle inequality holds
    unless `unbiased` is True.

    The rounding error of d^2 is about 1e-15, so the rounding error of d is at most about 3e-8.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021, Section 3.2; Gretton et
    al., "A kernel two-sample test", JMLR 13, 2012.

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
    """

    facts = Facts(symmetric=True, identity=True, metric=False, unequal_length=True, cost="s")

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
        return as_structures(X)

    def __call__(self, X: Any, Y: Any = None) -> Array:
        s = check_positive_int(self.n_samples, "n_samples", minimum=2 if self.unbiased else 1)
        self._check()
        A = self._samples(self.as_objects(X))
        B = None if Y is None else as_second(lambda graphs: self._samples(self.as_objects(graphs)), Y)
        sums, own_a, own_b = self._sums(A, B)
        factor = 1
        if self.unbiased:  # without the s terms i = j, there are s (s - 1) terms within a graph
            factor = s - 1
            own_a = s * (own_a - self._diagonal_sums(A))
            own_b = s * (own_b - self._diagonal_sums(A if B is None else B))
        sums *= -2.0 * factor
        sums += own_a[:, None] + own_b
        sums /= float(s) ** 2 * factor
        np.maximum(sums, 0.0, out=sums)
        return np.sqrt(sums, out=sums)

    def _check(self) -> None:
        check_choice(self.kernel, "kernel", ("gaussian", "optical", "match", "match_iso"))
        check_positive(self.bandwidth, "bandwidth")
        check_positive_int(self.random_state, "random_state", minimum=0)
        if self.kernel == "match_iso":
            canonical_forms(self.size)  # raises for sizes without isomorphism classes

    def _samples(self, graphs: GraphBatch) -> Any:
        """Sample each graph; return how often each code occurs or, for "optical", how often two bits are both 1."""
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
        return np.concatenate(parts) if self.kernel == "optical" else Patterns.concatenate(parts)

    def _diagonal_sums(self, A: Any) -> Array:
        """Return the sum of k(a, a) over the sampled graphlets a of each graph."""
        if self.kernel == "optical":  # k(a, a) = 2 |a|^4, where |a|^2 is the sum of the bits
            return np.asarray(2 * (A @ self._multiplicities()))
        return np.full(len(A.offsets) - 1, float(self.n_samples))

    def _sums(self, A: Any, B: Any) -> tuple[Array, Array, Array]:
        """Return the kernel sums (sums, own_a, own_b) that `pattern_sums` describes, for any `kernel`."""
        if self.kernel == "optical":
            # |a|^2 |b|^2 + (a.b)^2 is tr S tr T + <S, T>, with S = a a^T and T = b b^T.
            w = self._multiplicities()
            U = np.column_stack([A[:, w == 1].sum(axis=1), A])
            V = U if B is None else np.column_stack([B[:, w == 1].sum(axis=1), B])
            w = np.concatenate(([1.0], w))
            own_a, own_b = ([row_product((u * w)[None], u[:, None])[0, 0] for u in side] for side in (U, V))
            return row_product(U * w, V.T), np.array(own_a), np.array(own_b)
        rho = 0.0
        with np.errstate(all="ignore"):  # a bandwidth near 0 or infinity: rho is 0 or 1
            if self.kernel == "gaussian":
                rho = float(np.exp(-0.5 / np.float64(self.bandwidth) ** 2))
        with np.errstate(under="ignore"):  # very different patterns: 0
            return pattern_sums(A, B, n_pairs(self.size), rho)

    def _multiplicities(self) -> Array:
        """Return the weight of each pair of bits p <= q in a sum over all pairs (p, q): 1 if p = q, otherwise 2."""
        p, q = np.triu_indices(n_pairs(self.size))
        return np.where(p == q, 1.0, 2.0)


class TwoSampleResult(NamedTuple):
    """Result of `two_sample_test`.

    Attributes
    ----------
    statistic : float
        Unbiased estimate of the squared maximum mean discrepancy; may be negative.
    p_value : float
        (1 + r) / (1 + n_permutations), where r is the number of permutations with a statistic of at least `statistic`.
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
    r"""Estimate the squared maximum mean discrepancy (MMD^2) between the distributions of two collections.

    The MMD measures how far apart two distributions are: it is the distance between the means of the distributions in
    the feature space of the kernel.

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
        The first collection. With ``"precomputed"``, the Gram matrix of both collections together, in which the first n
        rows and columns belong to the first collection and the other m to the second.
    Y : sequence of m objects, or int if ``kernel="precomputed"``
        The second collection. With ``"precomputed"``, the number n of objects in the first collection.
    kernel : kernel, fitted embedding or "precomputed"
        A kernel ``k(X, Y=None) -> (n, m)``; or a fitted embedding, a transformer of objects to vectors: the kernel is
        then the inner product of the vectors that ``transform`` returns (packed bits count as vectors of -1 and 1).
        Settings such as ``gamma="median"`` are computed from all n + m objects.
    unbiased : bool, default=True
        True returns the U-statistic, whose expectation is MMD^2; it may be negative. False returns the V-statistic: the
        squared distance between the means of the two collections in the feature space of the kernel. On average, it is
        too large. It is never negative (except by rounding) if the kernel is positive semi-definite.

    Returns
    -------
    float
        The estimate of MMD^2.

    Raises
    ------
    ValueError
        If a collection is empty; if a collection has only one object, and `unbiased` is True; if the kernel returns a
        wrong shape or NaN; or if the estimate is too large for float64.
    TypeError
        If `kernel` is a distance, or is neither callable nor has ``transform``.

    References
    ----------
    Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Eqs. 3 and 5.

    Examples
    --------
    >>> from similia.distances import mmd2
    >>> from similia.kernels import Spectrum
    >>> X, Y = ["AAC", "AAG", "AAA"], ["TTC", "TTT", "TTG"]
    >>> round(mmd2(X, Y, Spectrum(k=2)), 3)
    3.333
    >>> round(mmd2(X, Y, Spectrum(k=2), unbiased=False), 3)
    4.0
    """
    K, n = pooled_gram(X, Y, kernel, least=2 if unbiased else 1)
    exponent = _scale(K)
    m = len(K) - n
    left_out = 1.0 if unbiased else 0.0  # the terms i = j
    trace_x, trace_y = K.diagonal()[:n].sum(), K.diagonal()[n:].sum()
    xx = (K[:n, :n].sum() - left_out * trace_x) / (n * (n - left_out))
    yy = (K[n:, n:].sum() - left_out * trace_y) / (m * (m - left_out))
    return float(_scaled_back(xx + yy - 2 * K[:n, n:].mean(), exponent))


def two_sample_test(
    X: Any, Y: Any, kernel: Any, n_permutations: int = 1000, random_state: RandomState = None
) -> TwoSampleResult:
    r"""Test whether two collections of objects come from the same distribution.

    The statistic is an unbiased estimate of the squared maximum mean discrepancy (MMD^2), which measures how far apart
    the two distributions are; see `mmd2`. A permutation divides the pooled objects at random into two collections of
    the sizes of `X` and `Y`. If the distributions are equal, each division is as likely as the observed one, so
    P(p-value <= a) <= a for each a. The p-value is therefore valid, whatever n and m are.

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
        The first collection. With ``"precomputed"``, the Gram matrix of both collections together, in which the first n
        rows and columns belong to the first collection and the other m to the second.
    Y : sequence of m objects, or int if ``kernel="precomputed"``
        The second collection. With ``"precomputed"``, the number n of objects in the first collection.
    kernel : kernel, fitted embedding or "precomputed"
        The kernel, in the forms that `mmd2` accepts. The test cannot detect differences that the kernel ignores.
    n_permutations : int, default=1000
        Number of permutations. The smallest possible p-value is 1 / (1 + n_permutations).
    random_state : int, numpy Generator or None, default=None
        Seed or generator for drawing the permutations.

    Returns
    -------
    TwoSampleResult
        A named tuple of `statistic`, `p_value` and `null` (the statistics of the permutations).

    References
    ----------
    Gretton et al., "A kernel two-sample test", JMLR 13, 2012; Phipson & Smyth, "Permutation p-values should never be
    zero", 2010.

    Examples
    --------
    Compare random graphs with and without an underlying ring:

    >>> import networkx as nx
    >>> from similia.distances import two_sample_test
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
    # Adding a constant off the diagonal changes no statistic; subtracting the mean reduces rounding errors.
    np.fill_diagonal(K, 0.0)
    exponent = _scale(K)
    scale = np.abs(K).max()
    K -= K.sum() / (N * (N - 1))
    np.fill_diagonal(K, 0.0)
    labels = np.zeros(N)
    labels[:n] = 1.0
    statistic = _u_statistics(K, labels[None])[0]
    null = np.empty(n_permutations)
    step = rows_per_block(24 * N, at_most=256)
    for start in range(0, n_permutations, step):
        rows = null[start : start + step]
        rows[:] = _u_statistics(K, rng.permuted(np.tile(labels, (len(rows), 1)), axis=1))
    # Statistics of equal divisions may differ by rounding.
    n_larger = int(np.count_nonzero(null >= statistic - 1e-12 * scale))
    statistic, null = float(_scaled_back(statistic, exponent)), _scaled_back(null, exponent)
    return TwoSampleResult(statistic, (1 + n_larger) / (1 + n_permutations), null)


def _scale(K: Array) -> int:
    """Divide `K`, in place, by the power of two that makes its largest number less than 1; return the exponent."""
    exponent = int(np.frexp(np.abs(K).max())[1])
    np.ldexp(K, -exponent, out=K)
    return exponent


def _scaled_back(statistics: Any, exponent: int) -> Any:
    """Return `statistics` times 2**exponent; raise if one exceeds the largest float64."""
    with np.errstate(over="ignore", under="ignore"):
        found = np.ldexp(statistics, exponent)
    if np.isinf(found).any():
        raise ValueError("the squared maximum mean discrepancy exceeds the largest float64; scale the kernel")
    return found


def _u_statistics(K: Array, labels: Array) -> Array:
    """Return the unbiased MMD^2 for each row of `labels` (1: first collection, 0: second); `K` must have diagonal 0."""
    N, n = len(K), labels[0].sum()
    m = N - n
    degrees = K.sum(axis=1)
    xx = np.einsum("ij,ij->i", row_product(labels, K), labels)
    of_x = labels @ degrees
    xy = of_x - xx
    yy = degrees.sum() - of_x - xy
    return np.asarray(xx / (n * (n - 1)) + yy / (m * (m - 1)) - 2 * xy / (n * m))


def pooled_gram(X: Any, Y: Any, kernel: Any, least: int) -> tuple[Array, int]:
    """Return (K, n): a new Gram matrix of both collections, whose first n rows belong to the first collection.

    `X` and `Y` are as in `mmd2`. Raise if a collection has fewer than `least` objects.
    """
    if isinstance(kernel, str):
        if kernel != "precomputed":
            raise ValueError(f'kernel must be a kernel, a fitted embedding or "precomputed", got {kernel!r}')
        K = np.array(as_floats(X, "X of kernel='precomputed' holds"), dtype=np.float64)
        if not isinstance(Y, Integral):
            raise TypeError(
                f"Y must be the number of objects of the first collection, since kernel='precomputed' takes the Gram "
                f"matrix X of both; got {type(Y).__name__} ({short(Y)})"
            )
        n = check_positive_int(Y, "Y (with kernel='precomputed', the number of objects of the first collection)")
        if K.ndim != 2 or K.shape[0] != K.shape[1] or n > len(K):
            raise ValueError(
                f'kernel="precomputed" needs the square Gram matrix of both collections, of which Y={n} rows belong to '
                f"the first; got shape {K.shape}"
            )
        _check_sizes(n, len(K) - n, least)
        if not np.allclose(K, K.T, equal_nan=True):
            raise ValueError('X is not symmetric, expected a Gram matrix, since kernel="precomputed"')
    else:
        if not hasattr(kernel, "transform") or isinstance(kernel, type):
            check_kernel(kernel)
        n, m = n_objects(X), as_second(n_objects, Y)
        _check_sizes(n, m, least)
        K = np.empty((n + m, n + m))
        if hasattr(kernel, "transform"):
            Z = np.concatenate([_vectors(kernel.transform(X)), as_second(lambda Y: _vectors(kernel.transform(Y)), Y)])
            row_product(Z, Z.T, K)
        else:
            X, Y = as_objects(kernel, X), as_second(partial(as_objects, kernel), Y)
            kernel = _decided_by_both(kernel, X, Y)
            with pairs_named(range(n), range(n), "X[{}] and X[{}]"):
                K[:n, :n] = evaluate(kernel, X)
            with pairs_named(range(m), range(m), "Y[{}] and Y[{}]"):
                K[n:, n:] = as_second(partial(evaluate, kernel), Y)
            K[:n, n:] = evaluate(kernel, X, Y)
            K[n:, :n] = K[:n, n:].T
    if not np.isfinite(K).all():
        i, j = np.argwhere(~np.isfinite(K))[0]
        raise ValueError(f"the kernel is {K[i, j]} for the pooled objects {i} and {j}, expected finite numbers")
    return K, n


def _vectors(made: Any) -> Array:
    """Return what an embedding made of objects as float64 rows, packed bits as rows of -1 and 1."""
    if isinstance(made, np.ndarray) and made.ndim == 2 and made.dtype == np.uint8:
        return 2 * np.unpackbits(made, axis=1).astype(np.float64) - 1
    return as_floats(made, "the embedding returned").astype(np.float64)


def _decided_by_both(kernel: Any, X: Any, Y: Any) -> Any:
    """Return `kernel` with settings such as ``gamma="median"`` computed from the objects of both collections."""
    if not hasattr(kernel, "decided"):
        return kernel
    if sp.issparse(X) or sp.issparse(Y):
        X, Y = as_csr(X), as_csr(Y)
    try:
        return kernel.decided(concatenate([X, Y]))
    except (TypeError, ValueError):
        evaluate(kernel, X, Y)  # says why X and Y cannot be compared
        if kernel.decided(X) is not kernel:
            raise
        return kernel  # it has no such settings


def _check_sizes(n: int, m: int, least: int) -> None:
    for name, size in (("X", n), ("Y", m)):
        if size < least:
            raise BadValue(None, f"has {size} objects", f"at least {least}", collection=name)


class _Histograms(NamedTuple):
    """Graphlet codes of several graphs with counts, as in `Patterns`; ``rows[e]`` is the row of code e in `_Tables`."""

    codes: npt.NDArray[np.uint64]
    rows: npt.NDArray[np.int64]
    counts: Array
    offsets: npt.NDArray[np.int64]


def pattern_sums(A: Patterns, B: Patterns | None, n_bits: int, rho: float) -> tuple[Array, Array, Array]:
    """Return (sums, own_a, own_b): sums of rho**(Hamming distance of the codes) over pairs of samples.

    ``sums[i, j]`` pairs the samples of graph i of A with those of graph j of B (of A, if B is None). ``own_a[i]`` pairs
    the samples of graph i of A with one another and with themselves; so does ``own_b[j]`` for graph j of B.
    """
    tables, n = _Tables(A, B, n_bits, rho), len(A.offsets) - 1
    sums, own_a = np.empty((n, n if B is None else len(B.offsets) - 1)), np.empty(n)
    tables.fill(sums, own_a, tables.a, tables.b, same=B is None)
    if B is None:
        return sums, own_a, own_a
    own_b = np.empty(sums.shape[1])
    tables.fill(None, own_b, tables.b, tables.b, same=False)
    return sums, own_a, own_b


class _Tables:
    """Tables of kernel sums, with a row for each distinct or, if that is faster, each possible code."""

    def __init__(self, A: Patterns, B: Patterns | None, n_bits: int, rho: float) -> None:
        codes = A.codes if B is None else np.concatenate([A.codes, B.codes])
        distinct, places = np.unique(codes, return_inverse=True)
        n_graphs = len(A.offsets) - 1 + (0 if B is None else len(B.offsets) - 1)
        self.rho, self.powers = rho, rho ** np.arange(n_bits + 1.0)
        self.all_codes = rho > 0 and _whole_table_pays(n_bits, n_graphs, len(distinct), len(codes))
        self.distinct, self.n_rows = distinct, 1 << n_bits if self.all_codes else len(distinct)
        places = codes if self.all_codes else places
        self.a = _histograms(A, places[: len(A.codes)])
        self.b = self.a if B is None else _histograms(B, places[len(A.codes) :])

    def fill(self, out: Array | None, own: Array, A: _Histograms, B: _Histograms, *, same: bool) -> None:
        """Fill ``out[i, j]`` with the kernel sum of graph i of A and graph j of B, and ``own[i]`` with that of i and i.

        `out` may be None. If `same`, A is B and `out` is symmetric.
        """
        by_pairs = self.rho > 0 and not self.all_codes
        last = np.full(self.n_rows if by_pairs else 0, -1)  # last graph of B that needs each row
        if by_pairs:
            last[B.rows] = np.repeat(np.arange(len(B.offsets) - 1), np.diff(B.offsets))

        def tiles(start: int, stop: int) -> None:
            table = np.empty((self.n_rows, LANES))
            for first in range(start, stop, LANES):
                lanes = (first, min(LANES, stop - first))  # the first graph of the group, and their number
                if by_pairs:
                    own_pairs(self.powers, A.codes, A.counts, A.offsets, *lanes, own)
                    if out is not None:
                        rows = np.flatnonzero(last >= (first if same else 0))
                        smooth_pairs(
                            self.distinct[rows], rows, self.powers, A.codes, A.counts, A.offsets, *lanes, table
                        )
                else:
                    scatter(A.rows, A.counts, A.offsets, *lanes, table)
                    if self.all_codes:
                        smooth_all(table, self.rho)
                    gather_own(table, A.rows, A.counts, A.offsets, *lanes, own)
                if out is not None:
                    gather(table, B.rows, B.counts, B.offsets, *lanes, first if same else 0, same, out)

        run_in_ranges(tiles, len(own), LANES)


def _whole_table_pays(n_bits: int, n_graphs: int, n_distinct: int, n_entries: int) -> bool:
    """Return whether a table of all possible codes fits into memory and is faster than comparing pairs of codes."""
    n_bytes = 64 * n_threads() * 2.0**n_bits
    pairs = _PAIR_COST * float(n_distinct) * n_entries
    return n_bytes <= settings().max_memory and n_graphs * 2.0**n_bits * n_bits * _TABLE_COST < pairs


def _histograms(A: Patterns, rows: npt.NDArray) -> _Histograms:
    return _Histograms(
        np.ascontiguousarray(A.codes), np.ascontiguousarray(rows, np.int64), A.counts.astype(np.float64), A.offsets
    )


@njit()
def scatter(places, counts, offsets, first, count, table):  # type: ignore[no-untyped-def]
    """Write the counts of graph ``first + j`` to column j < `count` of `table`, in rows `places`; set the rest to 0."""
    table[:] = 0.0
    for lane in range(count):
        for e in range(offsets[first + lane], offsets[first + lane + 1]):
            table[places[e], lane] = counts[e]


@njit()
def smooth_all(table, rho):  # type: ignore[no-untyped-def]
    """Multiply `table`, one row for each possible code, in place by the matrix with entries rho**hamming(a, b).

    The matrix is a Kronecker product of 2 x 2 matrices, one for each bit of a code.
    """
    flat = table.ravel()
    piece = len(flat)
    while piece > _IN_CACHE:  # once a block fits in the cache, all its remaining bits are processed together
        piece //= 4
        _smooth_two_bits(flat, piece, rho)
    for begin in range(0, len(flat), piece):
        part = flat[begin : begin + piece]
        span = piece
        while span >= 4 * LANES:
            span //= 4
            _smooth_two_bits(part, span, rho)
        if span == 2 * LANES:
            for i in range(0, piece, 2 * LANES):
                for j in range(i, i + LANES):
                    part[j], part[j + LANES] = part[j] + rho * part[j + LANES], rho * part[j] + part[j + LANES]


@njit()
def _smooth_two_bits(values, span, rho):  # type: ignore[no-untyped-def]
    """Apply the matrix [[1, rho], [rho, 1]] to `values`, in place, for each of two adjacent bits of the code.

    Values whose codes differ only in the lower bit are `span` apart; only in the higher bit, 2 `span`.
    """
    for begin in range(0, len(values), 4 * span):
        a, b = values[begin : begin + span], values[begin + span : begin + 2 * span]
        c, d = values[begin + 2 * span : begin + 3 * span], values[begin + 3 * span : begin + 4 * span]
        for i in range(span):
            ab, ba, cd, dc = a[i] + rho * b[i], rho * a[i] + b[i], c[i] + rho * d[i], rho * c[i] + d[i]
            a[i], b[i], c[i], d[i] = ab + rho * cd, ba + rho * dc, rho * ab + cd, rho * ba + dc


@njit()
def smooth_pairs(wanted, rows, powers, codes, counts, offsets, first, count, table):  # type: ignore[no-untyped-def]
    """Fill ``table[rows[c], j]``, for each c and each j < `count`, with a sum over the samples of graph ``first + j``.

    A sample adds ``powers[d]``, where d is the Hamming distance of its code to ``wanted[c]``.
    """
    for lane in range(count):
        begin, end = offsets[first + lane], offsets[first + lane + 1]
        whole = len(wanted) - len(wanted) % 4
        for c in range(0, whole, 4):  # four independent sums at a time
            c0, c1, c2, c3 = wanted[c], wanted[c + 1], wanted[c + 2], wanted[c + 3]
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for e in range(begin, end):
                code, n = codes[e], counts[e]
                s0 += n * powers[popcount(c0 ^ code)]
                s1 += n * powers[popcount(c1 ^ code)]
                s2 += n * powers[popcount(c2 ^ code)]
                s3 += n * powers[popcount(c3 ^ code)]
            table[rows[c], lane], table[rows[c + 1], lane] = s0, s1
            table[rows[c + 2], lane], table[rows[c + 3], lane] = s2, s3
        for c in range(whole, len(wanted)):
            table[rows[c], lane] = _kernel_sum(wanted[c], powers, codes, counts, begin, end)


@njit()
def own_pairs(powers, codes, counts, offsets, first, count, out):  # type: ignore[no-untyped-def]
    """Fill ``out[g]``, from g = `first` on, with ``powers[Hamming distance]`` summed over the pairs of samples of g."""
    for g in range(first, first + count):
        total = 0.0
        for e in range(offsets[g], offsets[g + 1]):
            total += counts[e] * _kernel_sum(codes[e], powers, codes, counts, offsets[g], offsets[g + 1])
        out[g] = total


@njit()
def _kernel_sum(wanted, powers, codes, counts, begin, end):  # type: ignore[no-untyped-def]
    total = 0.0
    for e in range(begin, end):
        total += counts[e] * powers[popcount(wanted ^ codes[e])]
    return total


@njit()
def gather(table, places, counts, offsets, first, count, start, same, out):  # type: ignore[no-untyped-def]
    """Fill ``out[first + j, h]``, h >= `start`, with the dot product of column j of `table` and the counts of graph h.

    ``counts[e]`` belongs to row ``places[e]`` of `table`. If `same`, ``out[h, first + j]`` is filled as well.
    """
    total = np.empty(LANES)
    for h in range(start, len(offsets) - 1):
        total[:] = 0.0
        for e in range(offsets[h], offsets[h + 1]):
            row, n = places[e], counts[e]
            for lane in range(LANES):
                total[lane] += n * table[row, lane]
        for lane in range(count):
            g = first + lane
            if not same:
                out[g, h] = total[lane]
            elif h >= g:
                out[g, h] = out[h, g] = total[lane]


@njit()
def gather_own(table, places, counts, offsets, first, count, out):  # type: ignore[no-untyped-def]
    """Fill ``out[g]``, g = first + j, j < `count`, with the dot product of column j of `table` and the counts of g."""
    for lane in range(count):
        total = 0.0
        for e in range(offsets[first + lane], offsets[first + lane + 1]):
            total += counts[e] * table[places[e], lane]
        out[first + lane] = total
