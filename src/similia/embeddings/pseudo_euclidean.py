r"""Pseudo-Euclidean embedding: vectors whose signed squared differences add up to the squared distances.

With D the distances of s landmarks and J = I - 11^T / s, classical scaling decomposes

.. math:: B = -\tfrac12 J D^{(2)} J = Q \Lambda Q^T, \qquad Z = Q_k |\Lambda_k|^{1/2},

keeping the k eigenvalues of largest size. Only a non-Euclidean distance has negative eigenvalues; squared differences
in their directions count negative. With p positive and q negative eigenvalues, D^(2) is that of R^(p, q). A new object
x with squared distances delta to the landmarks has the inner products b = -(delta - mean(D^(2))) J / 2 with them, and
Z M z = b with M = sign(Lambda) gives z = M |Lambda_k|^(-1/2) Q_k^T b. This is exact for landmarks, and the projection
of x for other objects. It is linear in delta, the constant terms vanish (Q_k^T 1 = 0), and J drops out.

Cost: s^2 distances and O(s^3) to fit; s distances and 2 s k operations to transform an object.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from similia.core.estimators import Transformer, all_at_once, check_table
from similia.core.products import row_product
from similia.core.progress import track
from similia.core.state import array, count, objects, state
from similia.core.threads import one_blas_thread
from similia.core.validation import RandomState, at_most, check_positive_int, generator
from similia.embeddings.gram import Index, check_symmetric, landmark_columns, row_blocks
from similia.embeddings.spectrum import with_signs
from similia.objects import take
from similia.objects.sequences import at_least_one
from similia.similarity import ComparesObjects, as_floats, as_objects, check_distance, distances_between, read_objects
from similia.sources.dask import from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.floating]
_SMALLEST, _LARGEST = 1e-140, np.float64(1e150)  # range of distances whose squares fit into float64


@state(
    distance="comparison", landmarks_=objects("s"), landmark_indices_=array("i8", "s"), mean_=array("f8", "s"),
    components_=array("f8", "s", "r"), rank_=count("r"), _n_features_out=count("r"), eigenvalues_=array("f8", "r"),
    _n_train=count(),
)  # fmt: skip
class PseudoEuclidean(ComparesObjects, Transformer):
    """Embed objects in a pseudo-Euclidean space that reproduces their distances.

    Parameters
    ----------
    distance : callable or "precomputed"
        ``distance(X, Y=None) -> (n, m)`` array: one of `similia.distances`, ``similia.pairwise(f)`` or a symmetric
        function of your own. With ``"precomputed"``, X is a matrix of distances: `fit` takes the square matrix (n, n)
        of the training objects, `transform` rows against all of them (m, n) or the landmarks only (m, n_landmarks).
    n_components : int or None, default=64
        Maximum number of directions, those with the largest absolute eigenvalues. None keeps all above rounding.
    n_landmarks : int or None, default=None
        Number of training objects, drawn uniformly, whose distances define the space; all, with a warning, if there are
        fewer. None takes all, at quadratic cost; with a fixed number the cost is linear.
    random_state : int, numpy Generator or None, default=None
        Draws the landmarks, in `fit`.

    Attributes
    ----------
    landmarks_ : collection of objects, length n_landmarks
        The landmarks, in the layout that the distance uses; their indices if it is precomputed.
    landmark_indices_ : ndarray of int64, shape (n_landmarks,)
        Their positions in the training collection.
    eigenvalues_ : ndarray of float64, shape (`rank_`,)
        Kept eigenvalues with their signs, largest in size first.
    signature_ : tuple of int
        ``(p, q)``, the number of positive and of negative eigenvalues kept.
    components_ : ndarray of float64, shape (n_landmarks, `rank_`)
    mean_ : ndarray of float64, shape (n_landmarks,)
        Mean squared distance of each landmark to the landmarks: x has coordinates
        ``(distance(x, landmarks_)**2 - mean_) @ components_``.
    rank_ : int
        Number of columns of the embedding.

    Raises
    ------
    ValueError
        In `fit`, if the distance is not symmetric, or 0 everywhere.

    Notes
    -----
    With all directions kept, ``np.square(z - w) @ np.sign(eigenvalues_)`` is d(x, y)^2 for landmarks x and y. A
    Euclidean distance has no negative eigenvalue, and the vectors are the objects themselves, centred and rotated. A
    linear model ignores the signs, as if the eigenvalues were flipped.

    The embedding is inductive: new objects are projected, training objects get the same coordinates again. The D2KE
    paper embeds training and test objects together for GDK_LED, which no deployed model can do; `transductive` does
    that.

    The arithmetic is in float64; the output is float32 if the distances are, else float64. The row of an object has
    the same bits in any block and number of threads, as long as its distances have.

    References
    ----------
    Goldfarb, "A unified approach to pattern recognition", 1984. Pekalska, Paclik & Duin, "A generalized kernel
    approach to dissimilarity-based classification", JMLR 2, 2001, Section 3.5.

    Examples
    --------
    >>> import numpy as np
    >>> import similia as sm
    >>> words = ["tree", "trees", "free", "bush", "bushes"]
    >>> embedding = sm.PseudoEuclidean(sm.distances.Levenshtein(), n_components=None)
    >>> Z = embedding.fit_transform(words)
    >>> embedding.signature_
    (3, 1)
    >>> squared = np.square(Z[0] - Z[4]) @ np.sign(embedding.eigenvalues_)  # tree, bushes: d = 5
    >>> round(float(squared), 3)
    25.0
    """

    _by = "distance"

    def __init__(
        self,
        distance: Any,
        n_components: int | None = 64,
        n_landmarks: int | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.distance = distance
        self.n_components = n_components
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    @all_at_once
    @from_parts
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the landmarks and decompose their distances; `X` holds n objects or (n, n) distances."""
        self._fit(X)
        return self

    @all_at_once
    @from_parts
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.floating]:
        """Fit and embed the training objects; if all are landmarks, no distance is computed twice."""
        D = self._fit(X)
        return self.transform(X) if self.n_landmarks is not None else self._project(D)

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of n objects, shape (n, `rank_`), float32 if the distances are, else float64.

        For a precomputed distance, `X` is the matrix (n, n_train) or (n, n_landmarks).
        """
        check_is_fitted(self)
        s = len(self.landmark_indices_)
        if self._precomputed:
            X = _as_matrix(X)
            columns = landmark_columns(X, self.landmark_indices_, self._n_train, "D")
        else:
            X = read_objects(self, self.distance, X, reset=False)
        n = at_least_one(X)
        out: npt.NDArray[np.floating] = np.empty((0, self.rank_))
        for rows in track(row_blocks(n, 8 * (3 * s + self.rank_)), "PseudoEuclidean"):
            if self._precomputed:
                D = X[np.ix_(rows, columns)]
            else:
                part = X if len(rows) == n else take(X, rows)
                D = distances_between(self.distance, part, self.landmarks_, rows[0], "X[{}] and landmark {}")
            if len(out) == 0:
                out = np.empty((n, self.rank_), dtype=D.dtype)
            out[rows[0] : rows[-1] + 1] = self._project(D)
        return out

    @classmethod
    def transductive(
        cls, distance: Any, X_train: Any, X_test: Any, n_components: int | None = 64
    ) -> tuple[Floats, Floats]:
        """Embed training and test objects together, as the D2KE paper does for GDK_LED; return both arrays of vectors.

        Training vectors then depend on the test objects, so scores do not estimate the performance on new objects. With
        a matrix D of all distances, ``PseudoEuclidean("precomputed", n_components).fit_transform(D)`` is the same.
        """
        A, B = as_objects(distance, X_train), as_objects(distance, X_test)
        across = distances_between(distance, A, B)
        D = np.block([[distances_between(distance, A), across], [across.T, distances_between(distance, B)]])
        Z = cls("precomputed", n_components).fit_transform(D)
        return Z[: len(across)], Z[len(across) :]

    def _example(self) -> Any:
        """Return a collection of one object that `transform` takes."""
        return np.zeros((1, len(self.landmarks_))) if self._precomputed else take(self.landmarks_, [0])

    def _fit(self, X: Any) -> npt.NDArray[np.floating]:
        """Learn the space and return the distances among the landmarks."""
        if self.n_components is not None:
            check_positive_int(self.n_components, "n_components")
        if self._precomputed:
            refuse_lazy(X, "the matrix of distances is needed here, as a numpy array; fit to X.compute()")
            X = _as_matrix(X, square=True)
            check_table(self, X, reset=True)
        else:
            if self.n_landmarks is None:
                refuse_lazy(X, "without n_landmarks the distances of all pairs are needed; give n_landmarks")
            if isinstance(self.distance, str):
                raise ValueError(
                    f'distance must be a callable d(X, Y) -> (n, m) or "precomputed", got {self.distance!r}; '
                    "see similia.distances"
                )
            check_distance(self.distance)
            X = read_objects(self, self.distance, X, reset=True)
        n = at_least_one(X)
        chosen = np.arange(n)
        if self.n_landmarks is not None:
            s = at_most(check_positive_int(self.n_landmarks, "n_landmarks"), n, "n_landmarks")
            chosen = np.sort(generator(self.random_state).choice(n, s, replace=False))
        if self._precomputed:
            self.landmarks_, D = chosen, X[np.ix_(chosen, chosen)]
        else:
            self.landmarks_ = take(X, chosen) if self.n_landmarks is not None else X
            D = distances_between(self.distance, self.landmarks_)
        self.landmark_indices_, self._n_train = chosen, n
        self.mean_, self.eigenvalues_, self.components_ = _decompose(D, chosen, self.n_components)
        positive = int((self.eigenvalues_ > 0).sum())
        self.rank_ = self._n_features_out = len(self.eigenvalues_)
        self.signature_ = (positive, self.rank_ - positive)
        return D

    def _project(self, D: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
        squares = _squares(D)
        squares -= self.mean_
        return row_product(squares, self.components_).astype(D.dtype, copy=False)


def _decompose(D: Floats, indices: Index, n_components: int | None) -> tuple[Floats, Floats, Floats]:
    """Return (mean, eigenvalues, components) of distances among the objects `indices`; see `PseudoEuclidean`."""
    eps = float(np.finfo(D.dtype).eps)
    check_symmetric(D, indices, np.sqrt(eps), "distance")
    if 0 < D.max() < _SMALLEST:
        raise ValueError(f"the distances are at most {D.max():.3g}, too small to square; scale the objects")
    squares = _squares(D)
    squares = (squares + squares.T) / 2
    mean = squares.mean(axis=0)
    B = -(squares - mean - mean[:, None] + mean.mean()) / 2
    # One BLAS thread: eigenvectors change in their last bits, or by a sign, with the number of threads.
    with one_blas_thread():
        values, Q = np.linalg.eigh(B)
    size = np.abs(values)
    order = np.argsort(-size, kind="stable")
    kept = order[size[order] > len(D) * eps * size.max()][:n_components]
    if len(kept) == 0:
        raise ValueError(
            f"all distances among {len(D)} objects are 0 (n_samples = {len(D)}), expected different objects"
        )
    values, Q = values[kept], Q[:, kept]
    return mean, values, -with_signs(Q) * (np.sign(values) / np.sqrt(np.abs(values)) / 2)


def _squares(D: Floats) -> npt.NDArray[np.float64]:
    """Return squared distances, or raise if they are too large to add."""
    if D.max(initial=0) > _LARGEST:
        raise ValueError(f"a distance is {D.max():.3g}, too large to square; scale the objects")
    return np.square(D, dtype=np.float64)


def _as_matrix(D: Any, square: bool = False) -> npt.NDArray[np.floating]:
    """Return precomputed distances as a 2-D float array, or raise."""
    D = as_floats(D, "D has")
    if D.ndim != 2 or len(D) == 0 or (square and D.shape[0] != D.shape[1]):
        kind = "a square matrix" if square else "a matrix"
        raise ValueError(f'distance="precomputed" needs {kind} of distances, got shape {D.shape}')
    bad = ~(D >= 0) | np.isinf(D)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise ValueError(f"the distance of objects {i} and {j} is {D[i, j]:.6g}, expected a finite number >= 0")
    return D
