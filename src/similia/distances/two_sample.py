r"""Two-sample statistics: the maximum mean discrepancy (MMD) of two collections, and a permutation test.

.. math:: \mathrm{MMD}^2(P, Q) = \mathrm{E}\,k(x, x') + \mathrm{E}\,k(y, y') - 2\,\mathrm{E}\,k(x, y),

with x, x' from P and y, y' from Q, all independent. There are two estimates from n samples of P and m of Q. The
V-statistic is the squared distance of the two means in feature space; on average it exceeds MMD^2 by :math:`n^{-1}
[\mathrm{E}\,k(x, x) - \mathrm{E}\,k(x, x')]` plus the same term for Q and m. The U-statistic leaves out the terms with
i = j in the sums of :math:`k(x_i, x_j)` and :math:`k(y_i, y_j)`; it is unbiased and may be negative.

Cost: (n + m)^2 kernel values, and as many multiplications for each permutation.
"""

from __future__ import annotations

from functools import partial
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from similia.core.config import rows_per_block
from similia.core.errors import BadValue, as_second
from similia.core.products import row_product
from similia.core.text import short
from similia.core.validation import RandomState, check_positive_int, generator
from similia.objects import concatenate, n_objects
from similia.objects.sequences import as_csr
from similia.similarity import as_floats, as_objects, check_kernel, evaluate

Array = npt.NDArray[np.float64]


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

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
    Y : sequence of m objects, or the number n if ``kernel="precomputed"``
    kernel : kernel, fitted embedding or "precomputed"
        A kernel ``k(X, Y=None) -> (n, m)``; or a fitted embedding: the kernel is then the inner product of the vectors
        that ``transform`` returns (packed bits count as vectors of -1 and 1). With ``"precomputed"``, X is the Gram
        matrix of all n + m objects, where the n objects of the first collection come first, and Y is n. Settings such
        as ``gamma="median"`` are computed from all n + m objects.
    unbiased : bool, default=True
        True returns the U-statistic, whose expectation is MMD^2; it may be negative. False returns the V-statistic, the
        squared distance between the two mean embeddings; for a positive semi-definite kernel it is never negative,
        except by rounding, but too large on average.

    Returns
    -------
    float
        The estimate of MMD^2.

    Raises
    ------
    ValueError
        If a collection is empty or, with `unbiased`, has only one object, if the kernel returns a wrong shape or NaN,
        or if the estimate is too large for float64.
    TypeError
        If `kernel` is a distance, or is neither callable nor has ``transform``.

    References
    ----------
    Gretton et al., "A kernel two-sample test", JMLR 13, 2012, Eqs. 3 and 5.

    Examples
    --------
    >>> from similia.distances.two_sample import mmd2
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

    The statistic is the unbiased estimate of MMD^2 that `mmd2` returns. A permutation divides the pooled objects at
    random into two collections of the sizes of `X` and `Y`. If the distributions are equal, each division is as likely
    as the observed one, so P(p-value <= a) <= a for each a. The p-value is therefore valid, whatever n and m are.

    Parameters
    ----------
    X : sequence of n objects, or ndarray of shape (n + m, n + m) if ``kernel="precomputed"``
    Y : sequence of m objects, or the number n if ``kernel="precomputed"``
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
    >>> from similia.distances.two_sample import two_sample_test
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
            K[:n, :n], K[n:, n:], K[:n, n:] = evaluate(kernel, X), evaluate(kernel, Y), evaluate(kernel, X, Y)
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
