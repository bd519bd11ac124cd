r"""Numbers behind the pictures: spectra, errors of approximation, accuracy of damaged bits, recall, maps.

Nyström error: the kernel among objects, and between them and the landmarks, is computed once; each number of landmarks
takes a subset of columns, so that the curve costs one fit. Random features: a kernel value is a mean of R terms, whose
variance, over r, is the squared error of r of them.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone

from similia.codes import flip_bits
from similia.core.threads import one_blas_thread
from similia.core.validation import generator
from similia.embeddings import spectrum as _spectrum
from similia.objects import n_objects, take
from similia.report._model import Parts, embedded, sampled
from similia.search.metric import shares_found
from similia.similarity import as_objects, evaluate

Floats = npt.NDArray[np.float64]
_FEW_COLUMNS = 2000


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues, largest first, those kept, the share of their sizes that is negative, and of which matrix."""

    eigenvalues: Floats
    rank: int
    clipped: float
    of: str


@dataclass(frozen=True)
class ErrorCurve:
    """Relative errors of a kernel matrix in the Frobenius norm; `found` says against what."""

    sizes: npt.NDArray[np.int64]
    errors: Floats
    of: str
    against: str


def spectrum(parts: Parts, X: Any = None, most: int = 300, random_state: int = 0) -> Spectrum:
    """Return the eigenvalues of the landmark kernel, or of inner products of the vectors of a few objects."""
    nystroem = parts.nystroem
    if nystroem is not None and not isinstance(nystroem.kernel_, str) and len(nystroem.weights_) == 1:
        H = evaluate(nystroem.kernel_, nystroem.landmarks_, nystroem.landmarks_).astype(np.float64)
        with one_blas_thread():  # small matrices: more threads wait for one another
            eigenvalues: Floats = np.linalg.eigvalsh((H + H.T) / 2)[::-1].astype(np.float64)
        below = eigenvalues < -max(len(H) * np.finfo(np.float64).eps, 1e-10) * eigenvalues[0]  # more than rounding
        clipped = float(np.abs(eigenvalues[below]).sum() / np.abs(eigenvalues).sum())
        return Spectrum(eigenvalues, nystroem.rank_, clipped, f"the kernel of {len(H)} landmarks")
    if nystroem is not None:  # the matrix is not there any more, or there is one for each expert
        eigenvalues = np.sort(nystroem.eigenvalues_)[::-1].astype(np.float64)
        return Spectrum(eigenvalues, len(eigenvalues), 0.0, "the kernel of the landmarks, as kept")
    if X is None:
        raise ValueError(f"{parts} has no landmark kernel; give X=, objects whose vectors are looked at")
    chosen = sampled(X, most, generator(random_state))
    vectors = embedded(parts, take(X, chosen), random_state).vectors
    wide = vectors.astype(np.float64)
    product = wide @ wide.T
    gram = np.asarray(product.todense() if sp.issparse(product) else product, dtype=np.float64)
    with one_blas_thread():
        eigenvalues = np.maximum(np.linalg.eigvalsh((gram + gram.T) / 2)[::-1], 0.0)
    rounding = max((max(vectors.shape) * np.finfo(vectors.dtype).eps) ** 2, len(gram) * np.finfo(np.float64).eps)
    rank = int((eigenvalues > eigenvalues[:1] * rounding).sum())
    return Spectrum(
        eigenvalues.astype(np.float64), rank, 0.0, f"inner products of the vectors of {len(chosen)} objects"
    )


def _without_empty_columns(vectors: Any) -> Any:
    """Return hashed features without the columns that no object has, dense where few are left."""
    if not sp.issparse(vectors):
        return vectors
    vectors = vectors.tocsc()[:, np.flatnonzero(np.diff(vectors.tocsc().indptr))]
    return vectors.toarray() if vectors.shape[1] <= _FEW_COLUMNS else vectors.tocsr()


def steps_to(n: int, most: int = 8, least: int = 5) -> npt.NDArray[np.int64]:
    """Return numbers from `least` to n in about equal ratios."""
    return np.unique(np.geomspace(min(least, n), n, most).round().astype(np.int64))


def nystroem_errors(
    nystroem: Any, X: Any, sizes: Sequence[int] | None = None, most: int = 400, random_state: int = 0
) -> ErrorCurve:
    """Return the error of a fitted Nyström's kernel on pairs of `X` against the number of its landmarks."""
    if isinstance(nystroem.kernel_, str):
        raise ValueError("the kernel is precomputed: without it, no held-out pairs can be compared")
    rng = generator(random_state)
    X = as_objects(nystroem.kernel_, X)
    X = take(X, sampled(X, most, rng))
    landmarks = nystroem.landmarks_
    K = evaluate(nystroem.kernel_, X, X).astype(np.float64)
    C = evaluate(nystroem.kernel_, X, landmarks).astype(np.float64)
    H = evaluate(nystroem.kernel_, landmarks, landmarks)
    eps = float(np.finfo(H.dtype).eps)
    H = H.astype(np.float64)
    found = np.asarray(steps_to(len(H)) if sizes is None else sizes, dtype=np.int64)
    order = rng.permutation(len(H))  # strategies may choose the best landmarks first
    norm, errors = np.linalg.norm(K), []
    for s in found:
        some = np.sort(order[:s])
        with one_blas_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of what is clipped
            try:
                part = (H[np.ix_(some, some)] + H[np.ix_(some, some)].T) / 2
                _, components = _spectrum.decompose(part, nystroem.spectrum, s * eps, eps)
            except ValueError:  # these landmarks are similar to nothing
                errors.append(1.0)
                continue
        theta = C[:, some] @ components
        errors.append(float(np.linalg.norm(K - theta @ theta.T) / norm) if norm else 0.0)
    pairs = n_objects(X)
    return ErrorCurve(found, np.array(errors), "landmarks", f"the kernel between {pairs} objects")


def feature_errors(vectors: npt.NDArray, sizes: Sequence[int] | None = None, most: int = 400) -> ErrorCurve:
    """Return the expected error of a kernel's estimate by so many random features, independent and of one law.

    The estimate is a mean of r terms, one for each feature, so that its squared error is a term's variance over r; the
    variance is that of the R terms there are. Features drawn to be orthogonal do better than this.
    """
    V = vectors[:most].astype(np.float64)
    R = V.shape[1]
    if R < 16:
        raise ValueError(f"there are {R} random features, expected 16 or more for an estimate of their error")
    found = np.asarray(steps_to(R) if sizes is None else sizes, dtype=np.int64)
    with one_blas_thread():
        estimate = V @ V.T
        terms = R * (np.square(V) @ np.square(V).T)  # their mean square
    spread = float(np.maximum(terms - estimate**2, 0).sum()) * R / (R - 1)
    norm = max(float(np.square(estimate).sum()) - spread / R, np.finfo(float).tiny)
    return ErrorCurve(
        found,
        np.sqrt(spread / found / norm),
        "random features",
        f"the kernel they estimate, by the spread of {R} features",
    )


@dataclass(frozen=True)
class Robustness:
    """Accuracies of damaged and of shortened codes, on `n` objects that nothing was learnt from."""

    n: int
    shares: Floats
    flipped: Floats
    n_bits: npt.NDArray[np.int64]
    shortened: Floats


def robustness(
    learner: Any,
    train: tuple[npt.NDArray[np.uint8], npt.NDArray],
    test: tuple[npt.NDArray[np.uint8], npt.NDArray],
    shares: Sequence[float] = (0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45),
    n_bits: Sequence[int] | None = None,
    random_state: int = 0,
    fitted: bool = False,
) -> Robustness:
    """Train a learner on codes, unless it is; flip bits of others, and train it anew on the first bits of each code."""
    (A, y), (B, truth) = train, test
    longest = 8 * A.shape[1]
    lengths = np.unique([max(8, longest // 2**i // 8 * 8) for i in range(9)]) if n_bits is None else np.unique(n_bits)
    if (lengths % 8).any() or lengths.min() < 8 or lengths.max() > longest:
        raise ValueError(
            f"n_bits must be multiples of 8 from 8 to the {longest} bits of a code, got {lengths.tolist()}"
        )
    full = learner if fitted else clone(learner).fit(A, y)
    flipped = [float(np.mean(full.predict(flip_bits(B, share, random_state)) == truth)) for share in shares]
    shortened = []
    for bits in lengths:
        if bits == longest:
            shortened.append(float(np.mean(full.predict(B) == truth)))
            continue
        first = np.ascontiguousarray(A[:, : bits // 8]), np.ascontiguousarray(B[:, : bits // 8])
        shortened.append(float(np.mean(clone(learner).fit(first[0], y).predict(first[1]) == truth)))
    return Robustness(len(truth), np.array(shares), np.array(flipped), lengths, np.array(shortened))


def recalls(values: npt.NDArray, rows: npt.NDArray[np.int64], k: int, candidates: npt.ArrayLike) -> Floats:
    """Return recall@k when so many candidates (columns of `rows`, nearest codes first) are sorted by true values.

    `values` (q, n) are true distances, or similarities with their sign turned.
    """
    found = []
    for c in np.asarray(candidates).tolist():
        of_candidates = np.take_along_axis(values, rows[:, :c], axis=1)
        best = np.argsort(of_candidates, axis=1, kind="stable")[:, :k]
        found.append(float(shares_found(values, np.take_along_axis(rows[:, :c], best, axis=1)).mean()))
    return np.array(found)


def plane(vectors: Any, random_state: int = 0) -> tuple[Floats, Floats]:
    """Return the first two principal coordinates (n, 2), signs settled, and their shares of the variance."""
    from sklearn.decomposition import PCA

    vectors = _without_empty_columns(vectors)
    n, d = vectors.shape
    solver = "arpack" if sp.issparse(vectors) else "covariance_eigh" if d <= 1500 else "randomized"
    if min(n, d) <= 8:
        vectors, solver = vectors.toarray() if sp.issparse(vectors) else vectors, "full"
    if min(n, d) < 2:
        centred = vectors[:, :1] - vectors[:, :1].mean(axis=0) if d else np.zeros((n, 1))
        return np.column_stack([centred, np.zeros(n)]).astype(np.float64), np.array([1.0, 0.0])
    pca = PCA(2, svd_solver=solver, random_state=random_state)
    with one_blas_thread(), np.errstate(invalid="ignore", divide="ignore"):  # vectors that are all alike
        points = pca.fit_transform(vectors).astype(np.float64)
        shares = np.nan_to_num(pca.explained_variance_ratio_)
    signs = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])
    return points * np.where(signs == 0, 1, signs), shares.astype(np.float64)
