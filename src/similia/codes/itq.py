"""Iterative quantisation: the rotation under which vectors lie closest to the corners of a cube.

For n centred vectors, the rows of Z (n x k), each iteration computes (Gong & Lazebnik, 2011; Yun, Kim & Choi, 2012,
Algorithm 1, lines 5 to 10)

    Y = sgn(Z Q),    the SVD Y^T Z = M Omega M~^T,    Q = M~ M^T.

No step increases the loss ||Y - Z Q||_F^2 = n k + ||Z||_F^2 - 2 tr Omega. The code of a vector z is sgn(Q^T z), with
sgn(0) = +1. An iteration costs 4 n k^2 operations for the products and k^3 for the SVD.

An iteration reads Z once, in blocks of 1024 rows. A block is centred, scaled into float32, multiplied by Q and turned
into signs Y in place, and Y^T Z is accumulated, all while the block stays in cache; no array of n rows is allocated.
Threads process groups of blocks, with one BLAS thread each. Their float64 sums are added in the order of the rows, so Q
has the same bits for any number of threads. The k x k matrix Y^T Z is decomposed in float64.

At k = 64, centring and taking signs add to the time of the two products: 45 % with numpy's subtract and copysign, 31 %
with bits 0/1 and sums over the ones, 8 % with compiled loops (used here). Blocks of 256 to 2048 rows are equally fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.codes.sign_projection import SignEncoder
from similia.core.config import in_threads, one_blas_thread, rows_per_block, track
from similia.core.estimators import all_at_once, example_of
from similia.core.jit import njit
from similia.core.products import row_product
from similia.core.state import array, count, state
from similia.core.validation import (
    BadValue,
    as_array,
    check_n_bits,
    check_positive,
    check_positive_int,
    check_vectors,
    generator,
    wrong_width,
)
from similia.objects import take
from similia.sources.dask import Distributed, from_parts
from similia.sources.matrices import check_rows

_BLOCK_ROWS = 1024  # three float32 blocks of 64 columns are 768 KiB: the second-level cache of one core
_GROUP_ROWS = 4 * _BLOCK_ROWS  # rows of one task
_PART_ROWS = 16 * _GROUP_ROWS  # rows per task of a Dask collection
Floats = npt.NDArray[np.float64]
Map = Callable[[Callable[[int], Any], range], Iterable[Any]]
# Scaling by a power of two changes no sign. _DOWN keeps sums of the largest floats finite, _UP saves the digits of
# rows with numbers below _SMALL.
_DOWN, _UP, _SMALL = 2.0**-64, 2.0**200, 2.0**-800


class _CentredSigns(SignEncoder):
    """Base class of encoders that subtract `mean_`, multiply by `rotation_` if there is one, and pack the signs."""

    mean_: Floats

    def _encode(self, X: Any) -> npt.NDArray[np.uint8]:
        X = _as_matrix(X, self.n_features_in_, self)
        k, mean, rotation = X.shape[1], self.mean_, getattr(self, "rotation_", None)
        for name, learnt, expected in (("mean_", mean, (k,)), ("rotation_", rotation, (k, k))):
            if learnt is not None and np.shape(learnt) != expected:  # the compiled loops do not check bounds
                raise ValueError(f"{name} has shape {np.shape(learnt)}, expected {expected}; fit again")
        codes = np.empty((len(X), k // 8), np.uint8)
        step = rows_per_block(32 * k, at_most=2**14)
        for start in range(0, len(X), step):
            rows = _rows(X, start, start + step)
            check_rows(rows, start)
            positive = rows >= mean if rotation is None else row_product(_centred(rows, mean), rotation) >= 0
            codes[start : start + step] = np.packbits(positive, axis=1)
        return codes

    def _keep(self, mean: Floats, X: Any) -> None:
        self.mean_ = mean
        self._learn_columns(X)
        self.n_features_in_ = len(mean)
        self._n_features_out = len(mean) // 8


@state(
    n_features_in_=count("d", least=1), _n_features_out=count(least=1), rotation_=array("f8", "d", "d"),
    mean_=array("f8", "d"),
)  # fmt: skip
class ITQ(_CentredSigns):
    """Rotate vectors and pack their signs into bits; `fit` learns a rotation that moves vectors close to their signs.

    ITQ (iterative quantization) is the last step of a pipeline; the steps before it produce vectors of n_bits numbers.
    Yun et al. (see References) compare these methods in Figure 1:

    ================================== ====================================================================
    full PCA + ITQ                     ``make_pipeline(PCA(64), ITQ(64))``, from ``sklearn.decomposition``
    generalized Nyström PCA + ITQ      ``make_pipeline(GeneralizedNystroemPCA(64), ITQ(64))``; for the non-uniform
                                       sampling of Yun et al., set ``sampling="norm"`` in the first step
    random projection + ITQ            ``make_pipeline(GaussianRandomProjection(64), ITQ(64))``, from
                                       ``sklearn.random_projection``
    signs of principal components      ``make_pipeline(PCA(64), SignCodes())``
    signs of random projections        ``SignRandomProjection(64)``
    ================================== ====================================================================

    Parameters
    ----------
    n_bits : int
        Length of the codes, a multiple of 8, and number of features of the vectors.
    max_iter : int, default=50
        Maximum number of iterations; 0 keeps the random initial rotation.
    tol : float, default=1e-6
        Stop when an iteration increases tr(Y^T Z Q) by at most this fraction (`losses_` defines Y, Z and Q). The loss
        depends on the rotation only through this trace.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the initial rotation and, with `max_samples`, the sample.
    max_samples : int, optional
        Maximum number of vectors that `fit` uses. If `X` has more, `fit` draws a random sample without replacement.

    Attributes
    ----------
    rotation_ : ndarray of float64, shape (n_bits, n_bits)
        The orthogonal matrix Q; it may include a reflection. The code of a vector z holds the signs of
        ``(z - mean_) @ rotation_``.
    mean_ : ndarray of float64, shape (n_bits,)
        Mean of the vectors that `fit` uses (see `max_samples`). It is always subtracted, so that each bit is 1 in about
        half of the codes.
    losses_ : ndarray of float64, shape (`n_iter_`,)
        The loss ||Y - Z Q||_F^2 after each iteration. Z holds the centred vectors, Q is the new rotation, and Y
        holds the signs of Z Q', where Q' is the previous rotation. The loss never grows, except by the rounding of
        float32 products (about 1e-7).
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in `fit`, equal to `n_bits`.

    Notes
    -----
    `fit` reads the vectors twice and then once per iteration; `transform` reads them once. Both methods read blocks of
    rows, and allocate no array of n rows except the codes, so a memory map may be larger than RAM.

    The rotation depends neither on the number of threads nor on ``similia.config(max_memory=...)``. The bits of a row
    depend only on that row and the fitted model. Scaling all vectors by a power of two changes neither the rotation nor
    the bits.

    If the vectors span fewer than n_bits dimensions, the rotation is arbitrary in the remaining dimensions, but still
    orthogonal.

    References
    ----------
    Gong and Lazebnik, "Iterative quantization: a Procrustean approach to learning binary codes", CVPR 2011. Yun, Kim
    and Choi, "Hashing with generalized Nyström approximation", ICDM 2012, Algorithm 1.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from similia.codes import ITQ
    >>> X = np.random.default_rng(0).standard_normal((500, 4)) @ np.random.default_rng(1).standard_normal((4, 30))
    >>> encoder = make_pipeline(PCA(8, random_state=0), ITQ(n_bits=8, random_state=0))
    >>> codes = encoder.fit_transform(X)
    >>> codes.dtype, codes.shape
    (dtype('uint8'), (500, 1))
    >>> losses = encoder[-1].losses_
    >>> bool(losses[-1] < losses[0])
    True
    """

    def __init__(
        self,
        n_bits: int,
        max_iter: int = 50,
        tol: float = 1e-6,
        random_state: Any = None,
        *,
        max_samples: int | None = None,
    ) -> None:
        self.n_bits = n_bits
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.max_samples = max_samples

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the mean that is subtracted from vectors and the matrix that rotates them before signs are taken.

        `X` holds finite vectors, shape (n, n_bits), of which at least two must differ.
        """
        n_bits = check_n_bits(self.n_bits)
        max_iter = check_positive_int(self.max_iter, "max_iter", minimum=0)
        tol = check_positive(self.tol, "tol", zero=True)
        most = None if self.max_samples is None else check_positive_int(self.max_samples, "max_samples", minimum=2)
        random = generator(self.random_state)
        Z = _matrices(X)
        width = example_of(Z).shape[1]
        if width != n_bits:
            before = f"GeneralizedNystroemPCA, sklearn's PCA or GaussianRandomProjection with n_components={n_bits}"
            raise BadValue(
                None, f"has {width} features", f"n_bits={n_bits}, one for each bit", f"put {before} before ITQ"
            )
        Z = Z.kept() if isinstance(Z, Distributed) else Z
        gaussian = random.standard_normal((n_bits, n_bits))
        if most is not None and most < len(Z):
            Z = take(Z, np.sort(random.choice(len(Z), most, replace=False)))
        mean, low, high = column_means(Z)
        if np.array_equal(low, high):
            expected = f"at least two different ones (n_samples = {len(Z)}): no rotation fits better"
            raise BadValue(None, f"has {len(Z)} equal rows", expected)
        with np.errstate(over="ignore"):
            spread = float(np.maximum(high - mean, mean - low).max())
        if not np.isfinite(spread):
            raise _too_large(low, high, "centre")
        self.rotation_, self.losses_ = learn_rotation(Z, gaussian, mean, spread, max_iter, tol)
        self.n_iter_ = len(self.losses_)
        self._keep(mean, X)
        return self


@state(n_features_in_=count("d", least=1), _n_features_out=count(least=1), mean_=array("f8", "d"))
class SignCodes(_CentredSigns):
    """Pack the signs of vectors into bits: one bit per feature, 1 where the feature is at least its mean.

    Applied after sklearn's PCA, it gives the plain PCA codes that `ITQ` improves on.

    Parameters
    ----------
    center : bool, default=True
        Whether to subtract the mean of the vectors seen in `fit`; if False, use the signs of the numbers as they are.

    Attributes
    ----------
    mean_ : ndarray of float64, shape (n_features,)
        The vector that `transform` subtracts; zeros if `center` is False.
    n_features_in_ : int
        Number of features seen in `fit`, a multiple of 8.

    Examples
    --------
    >>> from similia.codes import SignCodes
    >>> SignCodes(center=False).fit_transform([[1, -1, -1, -1, -1, -1, 0, 2.5]])
    array([[131]], dtype=uint8)
    """

    def __init__(self, center: bool = True) -> None:
        self.center = center

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the mean of `X`, finite vectors of shape (n, n_features); n_features must be a multiple of 8."""
        vectors = _matrices(X)
        k = example_of(vectors).shape[1]
        if k % 8:
            expected = "a multiple of 8 (one bit each, packed into bytes)"
            raise BadValue(None, f"has {k} features", expected, f"reduce them to {max(8, k - k % 8)}")
        mean = column_means(vectors)[0]  # even if not `center`: it checks that all numbers are finite
        self._keep(mean if self.center else np.zeros(k), X)
        return self


def _matrices(X: Any) -> Any:
    return X.converted(_as_matrix) if isinstance(X, Distributed) else _as_matrix(X)


def _as_matrix(X: Any, n_features: int | None = None, by: Any = None) -> npt.NDArray:
    """Return `X` as a 2-D array (`X` itself if it is a 2-D array of real numbers); raise if it is empty or not 2-D.

    This does not look for NaN and infinity: `check_rows` does so later, block by block.
    """
    matrix = X if hasattr(X, "toarray") else as_array(X)
    if hasattr(X, "toarray") or matrix.ndim != 2 or matrix.size == 0 or matrix.dtype.kind not in "fiu":
        return check_vectors(X, "X", n_features, by)
    if n_features is not None and matrix.shape[1] != n_features:
        raise wrong_width(matrix.shape[1], n_features, by)
    return matrix


def learn_rotation(
    Z: Any, gaussian: Floats, mean: Floats, spread: float, max_iter: int, tol: float
) -> tuple[Floats, Floats]:
    """Return Q, a rotation that brings C = Z - mean close to its signs, and the loss after each iteration.

    Start from Q = ``random_rotation(gaussian)``; alternate Y = sgn(C Q) and Q = argmin ||Y - C Q||_F. First, C, whose
    largest magnitude is `spread`, is scaled by a power of two to about 1. This changes neither the signs nor Q.
    """
    n, k = len(Z), len(gaussian)
    scale = float(np.ldexp(1.0, -int(np.clip(np.frexp(spread)[1], -1020, 1020))))
    losses: list[float] = []
    last = 0.0
    with one_blas_thread() as workers:
        of_groups = each_group(Z, partial(_in_windows, workers=workers))
        norm = sum(of_groups(_squares, mean))
        rotation = random_rotation(gaussian)
        for _ in track(range(max_iter), "ITQ", total=max_iter):
            product = np.zeros((k, k))
            for part in of_groups(_sign_products, rotation.astype(np.float32), mean, scale):
                product += part
            rotation, agreement = nearest_rotation(product)
            losses.append(n * k + norm - 2 * agreement / scale)
            if agreement - last <= tol * agreement:
                break
            last = agreement
    return rotation, np.array(losses)


def random_rotation(gaussian: Floats) -> Floats:
    """Return Q of the QR decomposition of `gaussian` with R_ii > 0: a uniformly random orthogonal matrix."""
    q, r = np.linalg.qr(gaussian)
    return q * np.where(np.diagonal(r) < 0, -1.0, 1.0)


def nearest_rotation(product: Floats) -> tuple[Floats, float]:
    """Return (Q, tr(Y^T Z Q)): Q minimises ||Y - Z Q||_F among orthogonal matrices; `product` is ``Y.T @ Z``."""
    M, omega, M_tilde_T = np.linalg.svd(product)
    return M_tilde_T.T @ M.T, float(omega.sum())


def column_means(Z: Any) -> tuple[Floats, Floats, Floats]:
    """Return mean, minimum and maximum of each column; rows are summed in order. Raise if a number is not finite."""
    total, low, high = np.zeros(1), np.array([np.inf]), np.array([-np.inf])
    for sums, lowest, highest in each_group(Z)(_moments):
        low, high = np.minimum(low, lowest), np.maximum(high, highest)
        with np.errstate(over="ignore", invalid="ignore"):
            total = total + sums
    if not np.isfinite(total).all():
        raise _too_large(low, high, "add")
    return total / len(Z), low, high


def _too_large(low: Floats, high: Floats, to: str) -> BadValue:
    found = f"holds numbers up to {max(-low.min(), high.max()):.3g}, too large to {to}"
    return BadValue(None, found, remedy="scale it down")


def _centred(rows: npt.NDArray, mean: Floats) -> Floats:
    """Return ``rows - mean``, each row times its own power of two, which avoids overflow and changes no sign."""
    centred = np.empty(rows.shape)
    _centre(rows, mean, _DOWN, centred)
    if np.abs(mean).max() < _SMALL and (small := np.abs(rows).max(axis=1).astype(np.float64) < _SMALL).any():
        up = np.empty((int(small.sum()), rows.shape[1]))
        _centre(rows[small], mean, _UP, up)
        centred[small] = up
    return centred


def each_group(Z: Any, mapped: Map = map) -> Callable[..., Iterable[Any]]:
    """Return a function g such that ``g(f, *args)`` yields ``f(rows, start, *args)`` for each group of rows of `Z`.

    Groups come in order; `start` is the position of the first row of a group. Arrays and Dask collections are cut into
    the same groups, so the sums of their results are the same. `mapped` is `map`, or a version of it with threads. Only
    a few results are in memory at once.
    """
    if isinstance(Z, Distributed):
        parts = Z.blocks(_PART_ROWS).kept()
        return lambda f, *args: chain.from_iterable(parts.map(_groups_of_part, f, args, few=True))
    starts = range(0, len(Z), _GROUP_ROWS)
    return lambda f, *args: mapped(lambda start: f(_rows(Z, start, start + _GROUP_ROWS), start, *args), starts)


def _in_windows(task: Callable[[int], Any], starts: range, workers: int) -> Iterator[Any]:
    """Yield the results of `in_threads` in order; at most eight for each thread are in memory at once."""
    for first in range(0, len(starts), 8 * workers):
        yield from in_threads(task, starts[first : first + 8 * workers], workers)


def _groups_of_part(part: npt.NDArray, start: int, f: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
    part = np.asarray(part)
    return [f(_rows(part, i, i + _GROUP_ROWS), i, *args) for i in range(0, len(part), _GROUP_ROWS)]


def _moments(rows: npt.NDArray, start: int) -> tuple[Floats, Floats, Floats]:
    """Return the sum, minimum and maximum of each column of a group of rows; raise if a number is not finite."""
    check_rows(rows, start)
    with np.errstate(over="ignore", invalid="ignore"):
        return rows.sum(axis=0, dtype=np.float64), rows.min(axis=0), rows.max(axis=0)


def _sign_products(group: npt.NDArray, start: int, Q: npt.NDArray[np.float32], mean: Floats, scale: float) -> Floats:
    """Return ``Y.T @ Z``, where Z is ``(group - mean) * scale`` and Y holds the signs of ``Z @ Q``."""
    k = len(Q)
    blocks = np.empty((2, _BLOCK_ROWS, k), np.float32)
    part, total = np.empty((k, k), np.float32), np.zeros((k, k))
    for first in range(0, len(group), _BLOCK_ROWS):
        rows = group[first : first + _BLOCK_ROWS]
        centred, signs = blocks[:, : len(rows)]
        _centre(rows, mean, scale, centred)
        np.matmul(centred, Q, out=signs)
        _to_signs(signs)
        total += np.matmul(signs.T, centred, out=part)
    return total


def _squares(group: npt.NDArray, start: int, mean: Floats) -> float:
    with np.errstate(over="ignore"):
        centred = group - mean
        return float(np.square(centred, out=centred).sum())


def _rows(Z: npt.NDArray, start: int, stop: int) -> npt.NDArray:
    """Return ``Z[start:stop]`` in C order, converted to float64 unless it is float32 or float64."""
    rows = Z[start:stop]
    keep = rows.dtype in (np.float32, np.float64) and rows.dtype.isnative
    return np.ascontiguousarray(rows, dtype=rows.dtype if keep else np.float64)


@njit()
def _centre(Z, mean, scale, out):  # type: ignore[no-untyped-def]
    """Fill `out` with ``(Z - mean) * scale``, computed in float64 so that results do not depend on the dtype of Z."""
    for i in range(Z.shape[0]):
        for j in range(Z.shape[1]):
            out[i, j] = Z[i, j] * scale - mean[j] * scale


@njit()
def _to_signs(values):  # type: ignore[no-untyped-def]
    for i in range(values.shape[0]):
        for j in range(values.shape[1]):
            values[i, j] = np.float32(1) if values[i, j] >= 0 else np.float32(-1)
