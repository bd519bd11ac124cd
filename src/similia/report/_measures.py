r"""Compute what displays and reports show: spectra, approximation errors, robustness of bits, recall, maps.

Nyström error: the kernels among the objects and between objects and landmarks are computed once. Each number of
landmarks takes a subset of columns, so the curve costs one fit. Random features: a kernel value is a mean of R terms;
their variance over r is the squared error of r of them.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold
from threadpoolctl import threadpool_limits

from similia.codes import flip_bits
from similia.core import intervals
from similia.core.intervals import wilson
from similia.core.threads import one_blas_thread
from similia.core.validation import generator
from similia.embeddings import spectrum as _spectrum
from similia.objects import n_objects, take
from similia.pipelines import members_of
from similia.report._model import Embedded, Parts, embedded, fitted_through, parts_of, sampled
from similia.search.metric import shares_found
from similia.similarity import as_objects, evaluate

Floats = npt.NDArray[np.float64]
_FEW_COLUMNS = 2000


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues, largest first, the number kept, the negative share of their sizes, and the name of the matrix."""

    eigenvalues: Floats
    rank: int
    clipped: float
    of: str


@dataclass(frozen=True)
class ErrorCurve:
    """Relative errors of a kernel matrix in the Frobenius norm; `found` names the reference."""

    sizes: npt.NDArray[np.int64]
    errors: Floats
    of: str
    against: str


def spectrum(parts: Parts, X: Any = None, most: int = 300, random_state: int = 0) -> Spectrum:
    """Return the eigenvalues of the landmark kernel, or of the inner products of a few objects' vectors."""
    nystroem = parts.nystroem
    if nystroem is not None and not isinstance(nystroem.kernel_, str) and len(nystroem.weights_) == 1:
        H = evaluate(nystroem.kernel_, nystroem.landmarks_, nystroem.landmarks_).astype(np.float64)
        with one_blas_thread():  # on small matrices, more threads wait for one another
            eigenvalues: Floats = np.linalg.eigvalsh((H + H.T) / 2)[::-1].astype(np.float64)
        below = eigenvalues < -max(len(H) * np.finfo(np.float64).eps, 1e-10) * eigenvalues[0]  # beyond rounding
        clipped = float(np.abs(eigenvalues[below]).sum() / np.abs(eigenvalues).sum())
        return Spectrum(eigenvalues, nystroem.rank_, clipped, f"the kernel of {len(H)} landmarks")
    if nystroem is not None:  # the matrix is no longer kept, or each expert has its own
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
    """Drop the columns of hashed features that no object has; return a dense array if few are left."""
    if not sp.issparse(vectors):
        return vectors
    vectors = vectors.tocsc()[:, np.flatnonzero(np.diff(vectors.tocsc().indptr))]
    return vectors.toarray() if vectors.shape[1] <= _FEW_COLUMNS else vectors.tocsr()


def steps_to(n: int, most: int = 8, least: int = 5) -> npt.NDArray[np.int64]:
    """Return numbers from `least` to n in approximately equal ratios."""
    return np.unique(np.geomspace(min(least, n), n, most).round().astype(np.int64))


def nystroem_errors(
    nystroem: Any, X: Any, sizes: Sequence[int] | None = None, most: int = 400, random_state: int = 0
) -> ErrorCurve:
    """Return the error of a fitted Nyström kernel on pairs of `X` for each number of landmarks."""
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
    """Return the expected error of a kernel estimate for each number of independent, identical random features.

    The estimate is a mean of r terms, one for each feature, so its squared error is the variance of a term over r. The
    variance is estimated from the R terms of the model. Orthogonal features have a smaller error.
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
    """Accuracies of damaged and of shortened codes on `n` held-out objects."""

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
    """Measure accuracy with flipped bits of held-out codes, and of learners retrained on the first bits of codes."""
    (A, y), (B, truth) = train, test
    longest = 8 * A.shape[1]
    lengths = np.unique([max(8, longest // 2**i // 8 * 8) for i in range(9)]) if n_bits is None else np.unique(n_bits)
    if (lengths % 8).any() or lengths.min() < 8 or lengths.max() > longest:
        raise ValueError(
            f"n_bits must be multiples of 8 from 8 to the {longest} bits of a code, got {lengths.tolist()}"
        )
    full = learner if fitted else clone(learner).fit(A, y)
    undamaged = float(np.mean(full.predict(B) == truth))
    flipped = [
        float(np.mean(full.predict(flip_bits(B, share, random_state)) == truth)) if share else undamaged
        for share in shares
    ]
    shortened = []
    for bits in lengths:
        first = [np.ascontiguousarray(codes[:, : bits // 8]) for codes in (A, B)]
        shortened.append(
            undamaged if bits == longest else float(np.mean(clone(learner).fit(first[0], y).predict(first[1]) == truth))
        )
    return Robustness(len(truth), np.array(shares), np.array(flipped), lengths, np.array(shortened))


def recalls(values: npt.NDArray, rows: npt.NDArray[np.int64], k: int, candidates: npt.ArrayLike) -> Floats:
    """Return recall@k if the first candidates (columns of `rows`, nearest codes first) are sorted by true values.

    `values` (q, n) are true distances or negated similarities.
    """
    found = []
    for c in np.asarray(candidates).tolist():
        of_candidates = np.take_along_axis(values, rows[:, :c], axis=1)
        best = np.argsort(of_candidates, axis=1, kind="stable")[:, :k]
        found.append(float(shares_found(values, np.take_along_axis(rows[:, :c], best, axis=1)).mean()))
    return np.array(found)


def plane(vectors: Any, random_state: int = 0) -> tuple[Floats, Floats]:
    """Return the first two principal coordinates (n, 2), with fixed signs, and their shares of the variance."""
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
    with one_blas_thread(), np.errstate(invalid="ignore", divide="ignore"):  # if all vectors are equal
        points = pca.fit_transform(vectors).astype(np.float64)
        shares = np.nan_to_num(pca.explained_variance_ratio_)
    signs = np.sign(points[np.abs(points).argmax(axis=0), [0, 1]])
    return points * np.where(signs == 0, 1, signs), shares.astype(np.float64)


_NEIGHBOURS = 5


@dataclass
class Scored:
    """Predictions of objects by models that have not seen them (or, as the user asserts, have not).

    Attributes
    ----------
    truth, predicted, floor, neighbours : ndarray, shape (n,)
        True targets; predictions; constant predictions (the most frequent class, the mean); predictions of the 5
        nearest neighbours (None if there was no training set).
    rows : ndarray of int, shape (n,)
        Positions of the predicted objects.
    values : ndarray of float or None
        Probabilities (n, n_classes), or decision values (n,) or (n, n_classes).
    probabilities : bool
        Whether `values` are probabilities.
    classes : ndarray
        Classes of the columns of `values`.
    how : str
        How the predictions were made, as the page says it.
    """

    truth: npt.NDArray
    predicted: npt.NDArray
    floor: npt.NDArray
    neighbours: npt.NDArray | None
    rows: npt.NDArray[np.int64]
    values: Floats | None
    probabilities: bool
    classes: npt.NDArray
    how: str
    n_folds: int = 0
    fit_seconds: list[float] = field(default_factory=list)  # for one object
    robustness: Robustness | None = None


def cross_validated(
    recipe: Any, X: Any, y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int = 0, vote: Any = None
) -> Scored:
    """Predict each object by a copy of the recipe, or of the vote that it leads, fitted to the other folds."""
    n = len(y)
    splits = list(_splits(y, groups, cv, regression, seed))
    kind = np.float64 if regression else y.dtype
    predicted, floor, neighbours = np.empty(n, kind), np.empty(n, kind), np.empty(n, kind)
    classes = np.zeros(0) if regression else np.unique(y)
    values: Floats | None = None
    probabilities, robust, lowered = False, None, False
    seconds: list[float] = []
    for number, (train, test) in enumerate(splits):
        X_train, start = take(X, train), time.perf_counter()
        parts = parts_of(clone(recipe))
        lowered |= _fewer_landmarks(parts, len(train))
        inside = fitted_through(parts, X_train, y[train])
        seconds.append((time.perf_counter() - start) / len(train))
        outside = _inside(parts, take(X, test))
        learner, Z = parts.learner, outside.last
        if vote is not None:
            learner, Z = _refitted(vote, X_train, y[train]), take(X, test)
        predicted[test] = learner.predict(Z)
        floor[test] = y[train].mean() if regression else _most_frequent(y[train])
        neighbours[test] = _voted(_nearest(parts, inside, outside), y[train], regression)
        found, probabilities = (None, False) if regression else _values(learner, Z)
        if found is not None and np.array_equal(learner.classes_, classes):
            values = np.full((n, *found.shape[1:]), np.nan) if values is None else values
            values[test] = found
        codes = inside.codes, outside.codes
        bits_last = inside.last is codes[0]  # no step lies between them and the learner
        if number == 0 and not regression and bits_last and codes[0] is not None and codes[1] is not None:
            robust = robustness(parts.learner, (codes[0], y[train]), (codes[1], y[test]), fitted=True)
    how = f"{len(splits)} folds: each object was predicted by a copy of the model fitted without it"
    how += " (if the model was chosen among others by these same objects, what is found here is a little too good)"
    how += ", with as many landmarks as there were objects" if lowered else ""
    rows = np.arange(n)
    scored = Scored(y, predicted, floor, neighbours, rows, values, probabilities, classes, how, len(splits), seconds)
    scored.robustness = robust
    return scored


def _refitted(vote: Any, X: Any, y: npt.NDArray) -> Any:
    """Return a copy of a vote, fitted to objects."""
    vote = clone(vote)
    for voter in members_of(vote):
        _fewer_landmarks(parts_of(voter), len(y))
    return vote.fit(X, y)


def _fewer_landmarks(parts: Parts, n: int) -> bool:
    """Reduce the number of landmarks to the number of objects if it is larger; return whether it was."""
    first = parts.nystroem
    if first is None or not isinstance(first.n_components, Integral) or first.n_components <= n:
        return False
    first.set_params(n_components=n)
    return True


def as_it_stands(model: Any, X: Any, y: npt.NDArray, regression: bool) -> Scored:
    """Predict all objects by a fitted model that has, as the user asserts, seen none of them."""
    parts = parts_of(model)
    learner, last = (parts.learner, _inside(parts, X).last) if parts.vote is None else (parts.vote, X)
    predicted = learner.predict(last)
    floor = np.full(len(y), y.mean() if regression else _most_frequent(y))
    values, probabilities = (None, False) if regression else _values(learner, last)
    classes = np.zeros(0) if regression else learner.classes_
    how = "all objects were predicted by the model as it is, which by your word has seen none of them"
    return Scored(y, predicted, floor, None, np.arange(len(y)), values, probabilities, classes, how)


def _splits(y: npt.NDArray, groups: npt.NDArray, cv: int, regression: bool, seed: int) -> Iterator[tuple[Any, Any]]:
    """Yield training and test positions; identical objects share the fold of the first."""
    _, firsts, members = np.unique(groups, return_index=True, return_inverse=True)
    if len(firsts) < 2:
        raise ValueError("all objects are the same, which leaves nothing to fit to when one is held out")
    counts = np.unique(y[firsts], return_counts=True)[1]
    folds = min(cv, len(firsts) if regression else max(2, counts.max()))
    folder = KFold if regression else StratifiedKFold
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of classes with fewer objects than folds
        for _, test in folder(folds, shuffle=True, random_state=seed).split(firsts, y[firsts]):
            held_out = np.zeros(len(firsts), dtype=bool)
            held_out[test] = True
            outside = held_out[members]
            yield np.flatnonzero(~outside), np.flatnonzero(outside)


def _inside(parts: Parts, X: Any) -> Embedded:
    """Return objects after the transformers, or unchanged if there are none."""
    return embedded(parts, X) if parts.transformers else Embedded(X, None, "", X)


def _nearest(parts: Parts, inside: Embedded, outside: Embedded) -> npt.NDArray[np.int64]:
    """Return the positions of the nearest training objects, nearest first."""
    if not parts.transformers and parts.metric is not None:
        values = parts.metric.between(parts.metric.as_objects(outside.last), parts.metric.as_objects(inside.last))
        values = -values if parts.metric.is_kernel else values
        return np.argsort(values, axis=1, kind="stable")[:, :_NEIGHBOURS]
    from sklearn.neighbors import NearestNeighbors

    with threadpool_limits(1):  # threads would wait longer than a single one computes
        found = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, inside.vectors.shape[0])).fit(inside.vectors)
        return found.kneighbors(outside.vectors, return_distance=False)


def _voted(nearest: npt.NDArray[np.int64], y: npt.NDArray, regression: bool) -> npt.NDArray:
    if regression:
        return y[nearest].mean(axis=1)
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.zeros((len(nearest), len(classes)))
    for place, column in enumerate(nearest.T):
        votes[np.arange(len(nearest)), codes[column]] += 1 - 1e-3 * place  # nearer neighbours break ties
    return classes[votes.argmax(axis=1)]


def _most_frequent(y: npt.NDArray) -> Any:
    classes, counts = np.unique(y, return_counts=True)
    return classes[np.argmax(counts)]


def _values(learner: Any, Z: Any) -> tuple[Floats | None, bool]:
    for name, probabilities in (("predict_proba", True), ("decision_function", False)):
        if hasattr(learner, name):
            found = np.asarray(getattr(learner, name)(Z), dtype=np.float64)
            return found, probabilities
    return None, False


def balanced(truth: npt.NDArray, predicted: npt.NDArray) -> tuple[float, float, float]:
    """Return balanced accuracy and its 95 % interval."""
    _, labels, counts = np.unique(truth, return_inverse=True, return_counts=True)
    return intervals.balanced(np.bincount(labels, predicted == truth, len(counts)), counts)


def errors(truth: Floats, predicted: Floats) -> dict[str, float]:
    """Return R squared, mean absolute and root mean squared errors."""
    measured = {"R²": _r2, "mean absolute error": _mae, "root mean squared error": _rmse}
    return {name: measure(truth, predicted) for name, measure in measured.items()}


def regression_scores(truth: Floats, predicted: Floats) -> dict[str, tuple[float, float, float]]:
    """Return the scores of `errors` with 95 % intervals.

    All three are functions of a ratio of means: squared or absolute errors, over squared distances from the mean or 1.
    """
    wrong, away = np.abs(truth - predicted), np.abs(truth - truth.mean())
    scale = float(max(wrong.max(), away.max())) or 1.0  # prevents overflow and underflow of squares
    wrong, away, ones = wrong / scale, away / scale, np.ones(len(truth))
    pairs = (wrong**2, away**2), (wrong, ones), (wrong**2, ones)
    unexplained, mean, square = (intervals.ratio(a, b, np.random.default_rng(0)) for a, b in pairs)
    ends = [
        (1 - unexplained[1], 1 - unexplained[0]),
        (scale * mean[0], scale * mean[1]),
        (scale * float(np.sqrt(square[0])), scale * float(np.sqrt(square[1]))),
    ]
    values = errors(truth, predicted)
    return {name: (value, *end) for (name, value), end in zip(values.items(), ends, strict=True)}


def _r2(truth: Floats, predicted: Floats) -> float:
    spread = np.square(truth - truth.mean()).sum()
    return float(1 - np.square(truth - predicted).sum() / spread) if spread else float("nan")


def _mae(truth: Floats, predicted: Floats) -> float:
    return float(np.abs(truth - predicted).mean())


def _rmse(truth: Floats, predicted: Floats) -> float:
    return float(np.sqrt(np.square(truth - predicted).mean()))


def lead(scored: Scored) -> Floats | None:
    """Return the margin of the predicted class; None if the learner gives no values or a fold lacked a class."""
    values = scored.values
    if values is None or np.isnan(values).any():
        return None
    ordered = np.sort(values, axis=1) if values.ndim == 2 else None
    leads: Floats = np.abs(values) if ordered is None else ordered[:, -1] - ordered[:, -2]
    return leads


def reliability(scored: Scored, bins: int = 10) -> tuple[Floats, Floats, npt.NDArray[np.int64], Floats] | None:
    """Return mean confidence, accuracy, size and intervals (groups, 2) of groups with similar confidence.

    Confidence is the largest probability, in ten bins of equal width. Without probabilities it is the margin of the
    decision value as a quantile, in ten bins of equal size. None if there is neither, or a fold lacked a class.
    """
    values, leads = scored.values, lead(scored)
    if values is None or leads is None:
        return None
    right = (scored.predicted == scored.truth).astype(float)
    if scored.probabilities:
        confidence = values.max(axis=1)
    else:
        confidence = (np.argsort(np.argsort(leads, kind="stable"), kind="stable") + 0.5) / len(leads)
    group = np.minimum((confidence * bins).astype(int), bins - 1)
    used = [members for g in range(bins) if (members := group == g).any()]
    sizes = np.array([members.sum() for members in used])
    means = np.array([confidence[members].mean() for members in used])
    accuracies = np.array([right[members].mean() for members in used])
    bounds = np.array([wilson(float(right[members].mean()), int(members.sum())) for members in used])
    return means, accuracies, sizes, bounds
