r"""Pseudo-Euclidean embedding: vectors whose signed squared differences add up to the squared distances.

With D the matrix of distances between s landmarks, D^(2) the matrix of their squares and J = I - 11^T / s, classical
scaling decomposes

.. math:: B = -\tfrac12 J D^{(2)} J = Q \Lambda Q^T, \qquad Z = Q_k |\Lambda_k|^{1/2},

keeping the k eigenvalues of largest absolute value; the rows of Z are the vectors of the landmarks. Only a
non-Euclidean distance has negative eigenvalues; squared differences along their eigenvectors are subtracted. With p
positive and q negative eigenvalues, the space is R^(p, q). The inner products of a new object x with the landmarks are
b = -(delta - mean(D^(2))) J / 2, where delta holds the squared distances of x to the landmarks. The vector z of x
solves Z M z = b with M = sign(Lambda_k), so z = M |Lambda_k|^(-1/2) Q_k^T b. For a landmark, z is its row of Z; for
other objects, z is the projection of x. As Q_k^T 1 = 0, the matrix J drops out, and z is linear in delta minus the mean
of D^(2).

Cost: s^2 distances and O(s^3) to fit; s distances and 2 s k operations to transform an object.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from similia.core.config import one_blas_thread, row_blocks, track
from similia.core.estimators import Transformer, all_at_once, check_fitted, check_table, detached
from similia.core.products import row_product
from similia.core.state import array, count, objects, state
from similia.core.validation import RandomState, at_most, check_positive_int, generator, pairs_named
from similia.embeddings.landmarks import Index, check_symmetric, landmark_columns, with_signs
from similia.objects import take
from similia.objects.sequences import at_least_one
from similia.similarity import (
    ComparesObjects,
    as_objects,
    check_distance,
    distance_matrix,
    distances_between,
    read_objects,
)
from similia.sources.dask import from_parts, lazily, refuse_lazy

Floats = npt.NDArray[np.floating]
_SMALLEST, _LARGEST = 1e-140, np.float64(1e150)  # range of distances whose squares fit into float64


@state(
    distance="kernel", distance_="kernel", landmarks_=objects("s"), landmark_indices_=array("i8", "s"),
    mean_=array("f8", "s"), components_=array("f8", "s", "r"), rank_=count("r"), _n_features_out=count("r"),
    eigenvalues_=array("f8", "r"), _n_train=count(),
)  # fmt: skip
class PseudoEuclidean(ComparesObjects, Transformer):
    """Embed objects in a pseudo-Euclidean space that reproduces their distances.

    In such a space, differences in some coordinates lower the distance of two vectors instead of raising it (see
    Notes). So it can reproduce distances that no points of a Euclidean space have.

    Parameters
    ----------
    distance : callable or "precomputed"
        A function ``distance(X, Y=None)`` that returns an (n, m) array: one of `similia.distances`, such as
        ``FromFunction(f)``, or a symmetric function of your own. With ``"precomputed"``, X is a matrix of distances:
        `fit` takes the (n, n) matrix of the training objects; `transform` takes the distances of new objects to all
        training objects, (m, n), or to the landmarks only, (m, n_landmarks).
    n_components : int or None, default=64
        Maximum number of columns. Each column belongs to an eigenvector of the matrix of centred squared distances;
        the eigenvectors with the largest absolute eigenvalues are kept. None keeps all eigenvectors whose eigenvalues
        exceed rounding error.
    n_landmarks : int or None, default=None
        Number of landmarks: training objects, drawn uniformly, whose distances define the space. If there are fewer
        training objects, all are taken, with a warning. With None, all n training objects are landmarks; `fit` then
        computes n^2 distances, and decomposes their matrix in a time proportional to n^3.
    random_state : int, numpy Generator or None, default=None
        Seed or generator from which `fit` draws the landmarks.

    Attributes
    ----------
    distance_ : callable or "precomputed"
        Copy of `distance` made by `fit`.
    landmarks_ : collection of objects, length n_landmarks
        The landmarks, converted for the distance, for example to a `similia.objects.StringBatch`; or, if the distance
        is precomputed, the indices of the landmarks.
    landmark_indices_ : ndarray of int64, shape (n_landmarks,)
        Positions of the landmarks in the training collection.
    eigenvalues_ : ndarray of float64, shape (`rank_`,)
        Kept eigenvalues with their signs, in descending order of absolute value.
    signature_ : tuple of int
        ``(p, q)``, the number of positive and of negative eigenvalues kept.
    components_ : ndarray of float64, shape (n_landmarks, `rank_`)
        Matrix that maps centred squared distances to coordinates; see `mean_`.
    mean_ : ndarray of float64, shape (n_landmarks,)
        Mean squared distance of each landmark to all landmarks. An object x has the coordinates
        ``(distance(x, landmarks_)**2 - mean_) @ components_``.
    rank_ : int
        Number of columns of the embedding.

    Raises
    ------
    ValueError
        In `fit`, if the distance is not symmetric, or if all distances are 0. In `fit` and `transform`, if a distance
        is negative, not finite or too large to square.

    Notes
    -----
    In a pseudo-Euclidean space, two vectors z and w have the squared distance
    ``np.square(z - w) @ np.sign(eigenvalues_)``: squared differences in columns with a negative eigenvalue are
    subtracted. For two landmarks, this is the square of their distance, unless `n_components` leaves out columns. A
    Euclidean distance has no negative eigenvalues; the vectors are then the original points, centred and rotated. A
    linear model does not use the signs of the eigenvalues: it treats all coordinates as ordinary features.

    `transform` projects new objects into the space of the training objects. A training object gets the same coordinates
    from `transform` as from `fit_transform`. The method GDK_LED of Wu et al. embeds training and test objects together,
    so it cannot embed objects that come later. The class method `transductive` does the same, for comparisons.

    The arithmetic is in float64; the output is float32 if the distances are float32, otherwise float64. The row of an
    object depends, bit for bit, only on its distances to the landmarks, not on other objects in the call or on the
    number of threads.

    References
    ----------
    Goldfarb, "A unified approach to pattern recognition", 1984. Pekalska, Paclik & Duin, "A generalized kernel
    approach to dissimilarity-based classification", JMLR 2, 2001, Section 3.5. Wu, Yen, Xu, Ravikumar & Witbrock,
    "D2KE: From Distance to Kernel and Embedding", 2018 (GDK_LED).

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
        """Choose the landmarks (all training objects by default), and decompose their matrix of squared distances.

        `X` holds n objects. If the distance is precomputed, `X` is their (n, n) distance matrix.
        """
        self._fit(X)
        return self

    @all_at_once
    @from_parts
    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[np.floating]:
        """Fit and embed the training objects; without `n_landmarks`, each distance is computed only once."""
        D = self._fit(X)
        return self.transform(X) if self.n_landmarks is not None else self._project(D)

    @lazily
    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Return the vectors of n objects, shape (n, `rank_`): float32 if the distances are float32, else float64.

        For a precomputed distance, `X` holds the distances of the n objects to all training objects, (n, n_train), or
        to the landmarks only, (n, n_landmarks).
        """
        check_fitted(self)
        s = len(self.landmark_indices_)
        if self._fitted_to_matrix:
            X = distance_matrix(X)
            columns = landmark_columns(X, self.landmark_indices_, self._n_train, "D")
        else:
            X = read_objects(self, self.distance_, X, reset=False)
        n = at_least_one(X)
        out: npt.NDArray[np.floating] = np.empty((0, self.rank_))
        for rows in track(row_blocks(n, 8 * (3 * s + self.rank_)), "PseudoEuclidean"):
            if self._fitted_to_matrix:
                D = X[np.ix_(rows, columns)]
            else:
                part = X if len(rows) == n else take(X, rows)
                D = distances_between(self.distance_, part, self.landmarks_, rows[0], "X[{}] and landmark {}")
            if len(out) == 0:
                out = np.empty((n, self.rank_), dtype=D.dtype)
            out[rows[0] : rows[-1] + 1] = self._project(D)
        return out

    @classmethod
    def transductive(
        cls, distance: Any, X_train: Any, X_test: Any, n_components: int | None = 64
    ) -> tuple[Floats, Floats]:
        """Embed training and test objects together, and return the vectors of both as two arrays.

        This is the method GDK_LED of Wu et al. ("D2KE: From Distance to Kernel and Embedding", 2018). Training vectors
        depend on the test objects, so scores do not estimate the performance on new objects. With the matrix D of all
        distances, ``PseudoEuclidean("precomputed", n_components).fit_transform(D)`` gives the same vectors.
        """
        A, B = as_objects(distance, X_train), as_objects(distance, X_test)
        across = distances_between(distance, A, B)
        D = np.block([[distances_between(distance, A), across], [across.T, distances_between(distance, B)]])
        Z = cls("precomputed", n_components).fit_transform(D)
        return Z[: len(across)], Z[len(across) :]

    def _example(self) -> Any:
        return np.zeros((1, len(self.landmarks_))) if self._fitted_to_matrix else take(self.landmarks_, [0])

    def _fit(self, X: Any) -> npt.NDArray[np.floating]:
        """Learn the embedding; return the matrix of distances between the landmarks."""
        if self.n_components is not None:
            check_positive_int(self.n_components, "n_components")
        self.distance_ = detached(self.distance)
        if self._precomputed:
            refuse_lazy(X, "the matrix of distances is needed here, as a numpy array; fit to X.compute()")
            X = distance_matrix(X, square=True)
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
            X = read_objects(self, self.distance_, X, reset=True)
        n = at_least_one(X)
        chosen = np.arange(n)
        if self.n_landmarks is not None:
            s = at_most(check_positive_int(self.n_landmarks, "n_landmarks"), n, "n_landmarks")
            chosen = np.sort(generator(self.random_state).choice(n, s, replace=False))
        if self._precomputed:
            self.landmarks_, D = chosen, X[np.ix_(chosen, chosen)]
        else:
            self.landmarks_ = take(X, chosen) if self.n_landmarks is not None else X
            with pairs_named(chosen, chosen, "X[{}] and X[{}]"):
                D = distances_between(self.distance_, self.landmarks_)
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
    """Return `mean_`, `eigenvalues_`, `components_` for the distances `D` between the landmarks at `indices`."""
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
    """Return the squares of the entries of `D`; raise if an entry is too large to square and add."""
    if D.max(initial=0) > _LARGEST:
        raise ValueError(f"a distance is {D.max():.3g}, too large to square; scale the objects")
    return np.square(D, dtype=np.float64)
