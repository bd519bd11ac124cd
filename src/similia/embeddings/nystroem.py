"""Nyström: coordinates of any objects from their similarities to a few training objects, the landmarks.

Let Z be the s landmarks, H = K(Z, Z) = Q diag(lambda) Q^T and C = K(X, Z), and let the index k mean the eigenvalues
that are kept. The embedding Theta = C Q_k diag(lambda_k)^(-1/2) satisfies Theta Theta^T = C H^+ C^T, the Nyström
approximation of K(X, X). It is exact on the landmarks and never above K in the Loewner order (Williams & Seeger, 2001;
NysHD, Section 3).
Cost: s^2 kernel values and O(s^3) to fit; s kernel values and 2 s r operations to transform an object, where r is
`rank_`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls
from sklearn.utils import Tags

from similia.core.config import one_blas_thread, row_blocks, track
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, detached
from similia.core.products import multiply_one, panels, row_product
from similia.core.state import Sizes, array, count, objects, reads, state
from similia.core.validation import RandomState, at_most, check_positive_int, generator, pairs_named
from similia.embeddings.landmarks import (
    POLICIES,
    STRATEGIES,
    Gram,
    Index,
    PrecomputedGram,
    check_symmetric,
    decompose,
    landmark_columns,
)
from similia.kernels.counts import CountsKernel
from similia.objects import n_objects, take
from similia.objects.sequences import Batch, at_least_one
from similia.similarity import (
    ComparesObjects,
    Kernel,
    as_floats,
    check_finite,
    check_kernel,
    decided,
    evaluate,
    read_objects,
    spelled_out,
    warn_of_strangers,
)
from similia.sources.dask import Distributed, from_parts, lazily

Floats = npt.NDArray[np.float64]
_FEW_OBJECTS = 16  # for at most this many objects, `transform` keeps the feature counts of the landmarks between calls
_LARGE = 2**21  # a product with more numbers in `components_` may be worth threads
_WEIGHED = 256  # number of objects used to fit the weights of an ensemble's experts
_PAIR = "X[{}] and landmark {}"
_NO_LANDMARK = "have similarity 0 to all landmarks and get the zero vector"
_BLOCK = 2**14  # objects per block, so that counts and kernel values stay in cache: 20 % faster than all at once


def _state_fits(state: dict[str, Any], sizes: Sizes) -> bool:
    """Return whether a saved `state` fits together: kernel and landmarks, the experts' blocks and ``components_``."""
    corners = state["_corners"]
    if len(corners) < 2 or (corners[0] != 0).any() or (np.diff(corners, axis=0) < 0).any():
        return False
    return tuple(corners[-1]) == (sizes["s"], sizes["r"]) and reads(state["kernel_"], state["landmarks_"])


@state(
    fits=_state_fits, kernel="kernel", kernel_="kernel", components_=array("f8", "s", "r"), rank_=count("r"),
    _n_features_out=count("r"), landmark_indices_=array("i8", "s"), landmarks_=objects("s"),
    eigenvalues_=array("f8", "r"), _n_train=count(), _corners=array("i8", None, 2), weights_=array("f8", None),
)  # fmt: skip
class Nystroem(ComparesObjects, Transformer):
    """Embed objects of any kind, with any kernel, by their similarities to some training objects, the landmarks.

    Parameters
    ----------
    kernel : callable or "precomputed"
        A function ``kernel(X, Y)`` that returns an (n, m) array of similarities: a kernel of `similia.kernels`, one of
        ``sklearn.metrics.pairwise``, ``similia.pairwise(f)`` or a function of your own. Each call passes both X and Y.
        With ``"precomputed"``, X is a matrix of kernel values: `fit` takes the (n, n) matrix of the training objects;
        `transform` takes the similarities of new objects to all training objects, (m, n), or to the landmarks only,
        (m, n_landmarks), in the order of `landmark_indices_`; n columns are always those of all training objects, in
        their order. If `landmarks` is one array of indices, `fit` also accepts the columns of the landmarks alone,
        an (n, n_landmarks) matrix. Cross-validation slices a square matrix correctly, and refuses a matrix that is not
        square.
    n_components : int or "auto", default=300
        Number of landmarks. If there are fewer training objects, all are taken, with a warning. ``"auto"`` means min(n,
        max(300, 0.02 n)) for n training objects, the choice of Zhao et al. Not used if `landmarks` are indices.
    landmarks : str, array of int, list of arrays of int, or callable, default="uniform"
        How to choose landmarks among the training objects: one of the rules ``"uniform"``, ``"kmeans++"``,
        ``"leverage"``, ``"rpcholesky"``, ``"adaptive"`` and ``"ensemble"`` (see `similia.embeddings.landmarks`); the
        indices of the landmarks; or a function ``f(X, kernel, n_components, rng)`` that returns indices. A list of
        index arrays makes an ensemble: each array holds the landmarks of one expert, a separate Nyström approximation.
    spectrum : {"clip", "flip", "shift", "raise"}, default="clip"
        What to do with negative eigenvalues of H, the kernel matrix of the landmarks; only an indefinite similarity has
        them. "clip" drops them, with a warning if they exceed rounding error. "flip" takes their absolute values.
        "shift" adds 1.5 times the absolute value of the smallest eigenvalue to all eigenvalues, so none is close to 0
        (Ray, Monath, McCallum & Musco, 2022). "raise" raises ValueError. If all negative eigenvalues are within
        rounding error, they are dropped in any case.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the landmarks.
    rcond : float, optional
        Eigenvalues below ``rcond`` times the largest eigenvalue are dropped. By default, `rcond` is n_landmarks times
        the machine precision of the dtype of the kernel values, float32 or float64. Some kernels of similia return
        float64, but are only as precise as float32, such as `similia.kernels.Cosine` of float32 vectors, or a
        `similia.kernels.Sum` or `similia.kernels.MeanMap` of a kernel in float32. For these kernels, the default uses
        the machine precision of float32. If a function of your own computes in float32 but returns float64, set a
        larger `rcond`.

    Attributes
    ----------
    kernel_ : kernel
        Copy of `kernel` made by `fit`, with settings such as ``mapping="auto"`` and ``gamma="median"`` replaced by
        their values.
    landmarks_ : collection of objects, length n_landmarks
        The landmarks, converted for the kernel, for example to a `similia.objects.StringBatch`; or, if the kernel is
        precomputed, the indices of the landmarks.
    landmark_indices_ : ndarray of int64, shape (n_landmarks,)
        Positions of the landmarks in the training collection.
    eigenvalues_ : ndarray of float64, shape (`rank_`,)
        Kept eigenvalues of H, as changed by `spectrum`, largest first (within each expert of an ensemble).
    components_ : ndarray of float64, shape (n_landmarks, `rank_`)
        The embedding of x is ``k(x, landmarks_) @ components_``; block-diagonal for an ensemble.
    rank_ : int
        Number of columns of the embedding, at most n_landmarks.
    weights_ : ndarray of float64, shape (n_experts,)
        Positive weights of the experts; ``[1.0]`` without an ensemble.

    Raises
    ------
    ValueError
        In `fit`, if the kernel is not symmetric, or has no positive eigenvalue on the landmarks. In `fit` and
        `transform`, if a kernel value is not finite (the message names the pair of objects) or if the array of kernel
        values has the wrong shape.

    Notes
    -----
    All arithmetic after the kernel is in float64; the output is float32 if the kernel values are float32, otherwise
    float64. The row of an object depends, bit for bit, only on its kernel values, not on the other objects, blocks or
    threads.

    An object with similarity 0 to all landmarks, such as an empty string, gets the zero vector; `transform` warns if
    more than half of the objects get the zero vector. Identical landmarks are harmless: they only lower `rank_`.

    References
    ----------
    Williams & Seeger, "Using the Nyström method to speed up kernel machines", NIPS 2000 (printed 2001). Zhao et al.,
    "Bridging the gap between hyperdimensional computing and kernel methods via the Nyström method" (NysHD), AAAI 2025,
    Section 3. Ray, Monath, McCallum & Musco, "Sublinear time approximation of text similarity matrices", AAAI 2022.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> def shared_letters(X, Y):
    ...     return np.array([[len(set(x) & set(y)) for y in Y] for x in X], dtype=float)
    >>> words = ["tree", "trees", "bush", "bushes"]
    >>> Z = sm.Nystroem(shared_letters, n_components=4).fit_transform(words)
    >>> np.allclose(Z @ Z.T, shared_letters(words, words))
    True
    """

    def __init__(
        self,
        kernel: Callable[..., Any] | str,
        n_components: int | Literal["auto"] = 300,
        landmarks: str | npt.ArrayLike | Sequence[npt.ArrayLike] | Callable[..., Any] = "uniform",
        spectrum: str = "clip",
        random_state: RandomState = None,
        *,
        rcond: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.n_components = n_components
        self.landmarks = landmarks
        self.spectrum = spectrum
        self.random_state = random_state
        self.rcond = rcond

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks, some of the training objects, and decompose their kernel matrix.

        `X` holds n objects; of `y`, only the length is checked. If the kernel is precomputed, `X` is the (n, n) kernel
        matrix; if the parameter `landmarks` is one array of indices, the columns of these landmarks, (n, n_landmarks),
        are enough.
        """
        self._fit(X, y)
        return self

    @all_at_once
    @from_parts
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.floating]:
        """Fit to objects and return their vectors, as `fit` and then `transform` do, but read the objects only once."""
        objects = self._fit(X, y)
        return self.transform(objects) if isinstance(objects, Distributed) else self._embed(objects)

    def _fit(self, X: Any, y: Any) -> Any:
        """Learn the embedding from the objects `X`; return the objects in the layout that the kernel uses."""
        precomputed = self._check_parameters()
        rng = generator(self.random_state)
        # One BLAS thread: a sum that differs in its last bit can choose another landmark or flip an eigenvector.
        with one_blas_thread():
            kernel = self.kernel if precomputed else detached(decided(self.kernel, X))
            gram = self._gram(kernel, X)
            if y is not None and n_objects(y) != gram.n:
                raise ValueError(f"y has {n_objects(y)} labels for {gram.n} objects; give one label per object")
            experts = self._choose(gram, kernel, rng)
            if precomputed and len(experts) == 1 and len(experts[0]) == gram.n:  # both readings of n columns are one
                experts[0].sort()
            fitted = list(map(partial(self._decompose, gram), experts))
            weights = np.ones(1)
            if len(experts) > 1:
                weights = _mixture_weights(gram, experts, [components for _, components in fitted], rng)
        check_table(self, gram.X, X, reset=True)
        kept = np.flatnonzero(weights)
        self.kernel_ = kernel
        self.weights_ = weights[kept]
        self.landmark_indices_ = np.concatenate([experts[r] for r in kept])
        self.eigenvalues_ = np.concatenate([fitted[r][0] for r in kept])
        self.components_, self._corners = _block_diagonal([np.sqrt(weights[r]) * fitted[r][1] for r in kept])
        self.rank_ = self._n_features_out = len(self.eigenvalues_)
        self._n_train = gram.n
        self.landmarks_ = self.landmark_indices_ if precomputed else take(gram.X, self.landmark_indices_)
        return gram.X

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of n objects, shape (n, `rank_`): float32 if the kernel values are float32, else float64.

        For a precomputed kernel, `X` holds the similarities of the n objects to all training objects, (n, n_train), or
        to the landmarks only, (n, n_landmarks).

        Warns
        -----
        UserWarning
            If more than half of the objects have similarity 0 to all landmarks. For a part of a Dask collection, there
            is a warning only if the part also holds at least 20 objects. Another rule applies while a file or an
            iterator is read in parts: the first object with similarity 0 to all landmarks causes a warning, and later
            such objects cause no further warning.
        """
        check_fitted(self)
        return self._embed(
            _as_matrix(X) if self._fitted_to_matrix else read_objects(self, self.kernel_, X, reset=False)
        )

    def _embed(self, objects: Any) -> npt.NDArray[np.floating]:
        """Return the coordinates of objects that are already in the layout of the kernel."""
        n, s, precomputed = at_least_one(objects), len(self.landmark_indices_), self._fitted_to_matrix
        if n <= _FEW_OBJECTS and not precomputed:
            return self._embed_few(objects, n, s)
        columns: Any = range(s)
        if precomputed:
            columns = landmark_columns(objects, self.landmark_indices_, self._n_train, "K")
        out: npt.NDArray[np.floating] = np.empty((0, self.rank_))
        alone: list[int] = []
        for rows in track(row_blocks(n, 8 * (2 * s + self.rank_), at_most=max(_BLOCK, 16 * s)), "Nystroem"):
            if precomputed:
                C = objects[np.ix_(rows, columns)]
            else:
                with pairs_named(rows, range(s), _PAIR):
                    C = self._kernel_values(objects if len(rows) == n else take(objects, rows))
            check_finite(C, rows, range(s), _PAIR)
            if len(out) == 0:
                out = np.empty((n, self.rank_), dtype=C.dtype)
            alone.extend(rows[~C.any(axis=1)].tolist())
            for (i, a), (j, b) in itertools.pairwise(self._corners.tolist()):
                out[rows[0] : rows[-1] + 1, a:b] = row_product(C[:, i:j], self.components_[i:j, a:b])
        warn_of_strangers(alone, n, _NO_LANDMARK)
        return out

    def _embed_few(self, objects: Any, n: int, s: int) -> npt.NDArray[np.floating]:
        """Return what `_embed` returns, for few objects: in one block, with as few calls as one query can do with."""
        rows = range(n)
        with pairs_named(rows, range(s), _PAIR):
            C = self._kernel_values(objects)
        check_finite(C, rows, range(s), _PAIR)
        if not C.any(axis=1).all():
            warn_of_strangers(np.flatnonzero(~C.any(axis=1)).tolist(), n, _NO_LANDMARK)
        out: npt.NDArray[np.floating] = np.empty((n, self.rank_), dtype=C.dtype)
        for (i, a), (j, b) in itertools.pairwise(self._corners.tolist()):
            out[:, a:b] = row_product(C[:, i:j], self.components_[i:j, a:b])
        return out

    def _for_one(self) -> Callable[[Any], npt.NDArray[np.floating] | None] | None:
        if self._fitted_to_matrix or len(self._corners) != 2 or not hasattr(self.kernel_, "_for_one"):
            return None
        values, W = self.kernel_._for_one(self.landmarks_), panels(self.components_, 1)
        if values is None or W.copied or W.values.dtype != np.float64 or W.values.size > _LARGE:
            return None

        def embed(X: Any) -> npt.NDArray[np.floating] | None:
            C = values(X)
            if C is None or not C.any():
                return None
            out = np.empty((1, W.shape[1]))
            multiply_one(C[0], W.values, out[0])
            return out

        return embed

    def approximation_error(self, X: Any, n_samples: int | None = 1000, random_state: RandomState = 0) -> float:
        """Return ||K - Z Z^T||_F / ||K||_F, where K is the kernel matrix of a sample of objects and Z their embedding.

        Parameters
        ----------
        X : collection of n objects, or ndarray (n_train, n_train) for a precomputed kernel
        n_samples : int or None, default=1000
            Number of objects drawn from `X`; None uses all n objects, and computes n^2 kernel values.
        random_state : int, numpy Generator or None, default=0
            Seed or generator from which the sample is drawn.
        """
        check_fitted(self)
        if self._fitted_to_matrix and np.shape(X) != (self._n_train, self._n_train):
            n = self._n_train
            raise ValueError(f"the error needs the kernel matrix of fit, of shape {(n, n)}, got {np.shape(X)}")
        gram = self._gram(self.kernel_, X)
        sample = np.arange(gram.n)
        if n_samples is not None and check_positive_int(n_samples, "n_samples") < gram.n:
            sample = np.sort(generator(random_state).choice(gram.n, n_samples, replace=False))
        theta = np.asarray(self.transform(take(gram.X, sample)), dtype=np.float64)
        error = norm = 0.0
        for rows in row_blocks(len(sample), 3 * 8 * len(sample)):
            K = gram.block(sample[rows], sample).astype(np.float64)
            norm += np.square(K).sum()
            error += np.square(K - theta[rows] @ theta.T).sum()
        return float(np.sqrt(error / norm)) if norm else 0.0

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if isinstance(self.kernel, Kernel):  # kernels of this library return float64
            tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def _example(self) -> Any:
        s = len(self.landmark_indices_)
        return np.zeros((1, s)) if self._fitted_to_matrix else take(self.landmarks_, [0])

    def _check_parameters(self) -> bool:
        """Raise if a parameter is wrong; otherwise return whether the kernel is precomputed."""
        precomputed = self._precomputed
        if not precomputed:
            if not callable(self.kernel):
                hint = spelled_out(self.kernel, "kernels") or "; see similia.kernels and sklearn.metrics.pairwise"
                raise ValueError(
                    f'kernel must be a callable k(X, Y) -> (n, m) or "precomputed", got {self.kernel!r}{hint}'
                )
            check_kernel(self.kernel)
        if isinstance(self.landmarks, str) and self.landmarks not in STRATEGIES:
            raise ValueError(f"landmarks={self.landmarks!r} is unknown; choose one of {[*STRATEGIES]}")
        if self.spectrum not in POLICIES:
            raise ValueError(f"spectrum={self.spectrum!r} is unknown; choose one of {[*POLICIES]}")
        if self.rcond is not None and not 0 <= self.rcond < 1:
            raise ValueError(f"rcond must be at least 0 and below 1, got {self.rcond!r}")
        return precomputed

    @property
    def _landmarks_given(self) -> bool:
        return not isinstance(self.landmarks, str) and not callable(self.landmarks)

    def _gram(self, kernel: Any, X: Any) -> Gram:
        if not isinstance(kernel, str):
            return Gram(kernel, X)
        if isinstance(X, Distributed):
            raise TypeError('kernel="precomputed" needs the matrix here, as a numpy array; fit to X.compute()')
        K = _as_matrix(X)
        if K.shape[0] == K.shape[1]:
            return PrecomputedGram(K)
        if not self._landmarks_given:
            raise ValueError(
                f"K has shape {K.shape}, expected a square kernel matrix; a block of landmark columns needs "
                'their row numbers: Nystroem("precomputed", landmarks=indices)'
            )
        columns, *others = _as_experts(self.landmarks, len(K))
        if others:
            raise ValueError(
                f"K has shape {K.shape}, expected a square kernel matrix to weight the experts of an ensemble"
            )
        if len(columns) != K.shape[1]:
            raise ValueError(f"K has {K.shape[1]} columns for {len(columns)} landmarks, expected one for each")
        return PrecomputedGram(K, columns)

    def _choose(self, gram: Gram, kernel: Any, rng: np.random.Generator) -> list[Index]:
        """Return a list with the landmark indices of each expert; without an ensemble, there is one expert."""
        if self._landmarks_given:
            return _as_experts(self.landmarks, gram.n)
        if self.n_components == "auto":
            s = min(gram.n, max(300, gram.n // 50))
        else:
            s = at_most(check_positive_int(self.n_components, "n_components"), gram.n, "n_components")
        if isinstance(self.landmarks, str):
            return _as_experts(STRATEGIES[self.landmarks](gram, s, rng), gram.n)
        return _as_experts(self.landmarks(gram.X, kernel, s, rng), gram.n)  # type: ignore[operator]

    def _decompose(self, gram: Gram, indices: Index) -> tuple[Floats, Floats]:
        H = gram.block(indices, indices)
        eps = gram.eps(H)
        check_symmetric(H, indices, np.sqrt(eps), "kernel")
        H = H.astype(np.float64)
        rcond = len(H) * eps if self.rcond is None else self.rcond
        return decompose((H + H.T) / 2, self.spectrum, rcond, eps)

    def _kernel_values(self, X: Any) -> npt.NDArray:
        """Return k(X, landmarks_); for few objects and a kernel that counts features, keep the landmarks' counts."""
        counts = isinstance(self.kernel_, CountsKernel) and type(self.kernel_).__call__ is CountsKernel.__call__
        if n_objects(X) <= _FEW_OBJECTS and counts and isinstance(self.landmarks_, Batch):
            return self.kernel_.against(X, self.landmarks_)  # type: ignore[union-attr]
        return evaluate(self.kernel_, X, self.landmarks_)


def _as_matrix(K: Any) -> npt.NDArray:
    """Return a precomputed kernel matrix as a 2-D float array; raise if it is not 2-D or has no rows."""
    K = as_floats(K, "K has")
    if K.ndim != 2 or len(K) == 0:
        raise ValueError(f'kernel="precomputed" needs a matrix with at least one row, got shape {K.shape}')
    return K


def _as_experts(landmarks: Any, n: int) -> list[Index]:
    """Return landmark indices as int64 arrays, one for each expert; raise if an index is not in 0 to n - 1."""
    many = isinstance(landmarks, list | tuple) and len(landmarks) > 0 and all(np.ndim(part) == 1 for part in landmarks)
    experts = []
    for part in map(np.asarray, landmarks if many else [landmarks]):
        if part.ndim != 1 or len(part) == 0 or part.dtype.kind not in "iu":
            raise ValueError(
                f"landmarks must be a non-empty 1-D array of integer indices (or a list of such arrays), got "
                f"shape {part.shape} of dtype {part.dtype}; turn a mask into indices with numpy.flatnonzero"
            )
        bad = (part < 0) | (part >= n)
        if bad.any():
            raise ValueError(f"landmark index {part[bad][0]} is out of range, expected 0 to {n - 1} for {n} objects")
        experts.append(part.astype(np.int64))
    return experts


def _mixture_weights(gram: Gram, experts: list[Index], components: list[Floats], rng: np.random.Generator) -> Floats:
    """Return the weights mu >= 0 of experts that minimise ||sum_r mu_r K_r - K||_F on a sample of objects.

    K_r is the Nystroem approximation of expert r (as in Kumar, Mohri & Talwalkar, 2012, Section 5, where weights may be
    negative). If the best weights are all 0, equal weights are returned.
    """
    sample = rng.choice(gram.n, min(gram.n, _WEIGHED), replace=False)
    target = gram.block(sample, sample).astype(np.float64)
    parts = []
    for indices, W in zip(experts, components, strict=True):
        theta = gram.block(sample, indices).astype(np.float64) @ W
        parts.append((theta @ theta.T).ravel())
    q, r = np.linalg.qr(np.stack(parts, axis=1))
    weights = nnls(r, q.T @ target.ravel())[0]
    return weights if weights.any() else np.full(len(experts), 1.0 / len(experts))


def _block_diagonal(blocks: list[Floats]) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return the block-diagonal matrix, and (row, column) of each block's start and of the end: (n_blocks + 1, 2)."""
    corners = np.cumsum([(0, 0), *(block.shape for block in blocks)], axis=0)
    matrix = np.zeros(corners[-1])
    for (i, a), (j, b), block in zip(corners[:-1], corners[1:], blocks, strict=True):
        matrix[i:j, a:b] = block
    return matrix, corners
