"""What the hashing experiments share: descriptors of pictures, the methods of Figure 1, mean average precision.

Protocol of Gong & Lazebnik (CVPR 2011), which the paper follows: 1000 queries drawn from all pictures, the rest is
searched and learnt from; relevant is (a) what has the query's class, or (b) what lies within the mean distance from a
training picture to its 50th neighbour. All training pictures are ranked by Hamming distance. Only n_bits + 1 distances
exist: pictures at one distance are in random order, and the expected average precision follows from counts (McSherry &
Najork, "Computing information retrieval performance measures efficiently in the presence of tied scores", ECIR 2008).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import cpu_count
from sklearn.decomposition import PCA
from sklearn.random_projection import GaussianRandomProjection
from threadpoolctl import threadpool_limits

from similia.codes import ITQ, GeneralizedNystroemPCA, SignCodes, SignRandomProjection, hamming_distances
from similia.core.config import run_in_ranges
from similia.core.jit import njit
from similia.core.products import row_product
from similia.datasets import fetch

Floats = npt.NDArray[np.float64]
Vectors = npt.NDArray[np.float32]
Codes = npt.NDArray[np.uint8]

N_QUERIES, NEIGHBOUR = 1000, 50
MOST_BITS = 256
ITQ_ROWS = 20_000  # the rotation is learnt from so many training rows, for every method
SAMPLES, FEATURES = 0.05, 0.3  # shares of Figure 1
TRUTHS = ("class", "near")

GRID, GRADIENTS, GABORS, SCALES = 6, 12, 8, 4
N_FEATURES = GRID**2 * (GRADIENTS + SCALES * GABORS)  # 1584, as many as the paper's for CIFAR-10
_PICTURES = 256  # one block
_ROWS = 200  # queries whose distances to all training rows are held at once

_ITQ_AFTER = {
    "full PCA": "full PCA + ITQ",
    "uniform": "Nyström, uniform + ITQ",
    "norm": "Nyström, norms + ITQ",
    "random": "random projection + ITQ",
}
FULL, UNIFORM, NORMS, RANDOM = _ITQ_AFTER.values()
PCA_SIGNS, RANDOM_SIGNS = "signs of full PCA", "signs of random projection"
METHODS = (FULL, UNIFORM, NORMS, RANDOM, PCA_SIGNS, RANDOM_SIGNS)


@dataclass(frozen=True)
class PictureSet:
    """One data set: its name, and those for `similia.datasets.fetch` whose pictures are put together."""

    name: str
    sources: tuple[str, ...]


PICTURES = (PictureSet("CIFAR-10", ("cifar10_gray16",)), PictureSet("MNIST", ("mnist_train", "mnist_test")))


def load(pictures: PictureSet) -> tuple[Vectors, npt.NDArray]:
    """Return the descriptors and classes of all pictures of a set."""
    parts = [fetch(source) for source in pictures.sources]
    images = np.concatenate([np.asarray(part.data) for part in parts])
    return descriptors(images), np.concatenate([np.asarray(part.target) for part in parts])


# ---- descriptors


def descriptors(images: npt.NDArray) -> Vectors:
    """Return 1584 numbers for each picture: histograms of gradients and sizes of Gabor responses, on a 6 x 6 grid.

    Gradients by central differences fall into 12 directions of 30 degrees each, shared linearly between the two
    nearest, and into windows that fall linearly to 0 at the next points of the grid. Gabor filters, without mean, have
    wavelengths of 1, sqrt 2, 2 and 2 sqrt 2 spacings of the grid, an envelope of half a wavelength, and 8 directions.
    Gradients, and each scale of Gabor filters, are divided by their sum, and the root is taken: five parts of length 1
    (of length 0 where a picture is blank).

    Parameters
    ----------
    images : ndarray, shape (n, side, side)

    Returns
    -------
    ndarray of float32, shape (n, 1584)
        The same bits for any number of threads.
    """
    n, side = len(images), images.shape[1]
    windows, filters = _windows(side), _gabor_filters(side)
    out = np.empty((n, N_FEATURES), np.float32)
    first_gabor = GRID**2 * GRADIENTS

    def fill(start: int, stop: int) -> None:
        for i in range(start, stop, _PICTURES):
            block = images[i : min(stop, i + _PICTURES)].astype(np.float32)
            block -= block.mean(axis=(1, 2), keepdims=True)  # leaves exactly 0 of a blank picture
            rows = out[i : i + len(block)]
            rows[:, :first_gabor] = _gradients(block, windows)
            real, imaginary = (row_product(block.reshape(len(block), -1), part, threads=False) for part in filters)
            rows[:, first_gabor:] = np.hypot(real, imaginary)
            edges = np.linspace(first_gabor, N_FEATURES, SCALES + 1).astype(int)
            for part in np.split(rows, edges[:-1], axis=1):
                part /= np.maximum(part.sum(axis=1, keepdims=True), np.float32(1e-6))
            np.sqrt(rows, out=rows)

    run_in_ranges(fill, n, _PICTURES)
    return out


def _centres(side: int) -> Floats:
    return (np.arange(GRID) + 0.5) * side / GRID - 0.5


def _windows(side: int) -> Vectors:
    """Return the windows of the grid's points, shape (side**2, GRID**2)."""
    line = np.maximum(0, 1 - np.abs(np.arange(side) - _centres(side)[:, None]) * GRID / side)
    return np.kron(line, line).T.astype(np.float32)


def _gradients(block: Vectors, windows: Vectors) -> Vectors:
    """Return the histograms of a block, directions first: shape (n, GRADIENTS * GRID**2)."""
    dy, dx = np.gradient(block, axis=(1, 2))
    size = np.hypot(dx, dy)
    turn = np.arctan2(dy, dx) * np.float32(GRADIENTS / (2 * np.pi)) % GRADIENTS
    maps = np.empty((len(block), GRADIENTS, size[0].size), np.float32)
    for direction in range(GRADIENTS):
        away = np.abs(turn - direction)
        share = np.maximum(0, 1 - np.minimum(away, GRADIENTS - away))
        maps[:, direction] = (share * size).reshape(len(block), -1)
    return row_product(maps.reshape(-1, maps.shape[2]), windows, threads=False).reshape(len(block), -1)


def _gabor_filters(side: int) -> tuple[Vectors, Vectors]:
    """Return the real and the imaginary parts, each of shape (side**2, SCALES * GABORS * GRID**2)."""
    away = np.arange(side) - _centres(side)[:, None]  # (GRID, side)
    dy, dx = away[:, None, :, None], away[None, :, None, :]
    filters = []
    for scale in range(SCALES):
        wavelength = side / GRID * 2 ** (scale / 2)
        envelope = np.exp(-(dx**2 + dy**2) / (2 * (wavelength / 2) ** 2))
        for angle in np.arange(GABORS) * np.pi / GABORS:
            wave = envelope * np.exp(2j * np.pi / wavelength * (np.cos(angle) * dx + np.sin(angle) * dy))
            mean = wave.sum(axis=(2, 3), keepdims=True) / envelope.sum(axis=(2, 3), keepdims=True)
            filters.append((wave - mean * envelope).reshape(GRID**2, -1))
    bank = np.concatenate(filters).T
    return np.ascontiguousarray(bank.real, np.float32), np.ascontiguousarray(bank.imag, np.float32)


# ---- queries, training rows and what is relevant


@dataclass
class Split:
    """Queries and training rows, centred by the mean of the latter, and what is relevant to each query.

    Attributes
    ----------
    train, query : ndarray of float32, shape (n, d) and (n_queries, d)
    relevance : ndarray of uint8, shape (n_queries, n)
        1 for the same class, plus 2 for a near row.
    """

    train: Vectors
    query: Vectors
    relevance: npt.NDArray[np.uint8]

    @cached_property
    def full_pca(self) -> PCA:
        """All principal components that are needed, from the covariance of all training rows."""
        n_components = min(MOST_BITS, *self.train.shape)
        with threadpool_limits(cpu_count(), "blas"):
            return PCA(n_components, svd_solver="covariance_eigh").fit(self.train)

    @cached_property
    def principal(self) -> tuple[Vectors, Vectors]:
        """Training rows and queries projected on `full_pca`."""
        return self.full_pca.transform(self.train), self.full_pca.transform(self.query)


def split(X: Vectors, y: npt.NDArray, seed: int, n_queries: int = N_QUERIES) -> Split:
    """Draw the queries; find what is relevant to each among the other rows."""
    order = np.random.default_rng(seed).permutation(len(X))
    queries, rest = order[:n_queries], np.sort(order[n_queries:])
    train = X[rest]
    mean = train.mean(axis=0, dtype=np.float64).astype(np.float32)
    train -= mean
    query = X[queries] - mean
    some = np.random.default_rng([seed, 1]).choice(len(train), min(n_queries, len(train)), replace=False)
    with threadpool_limits(cpu_count(), "blas"):
        squares = np.einsum("ij,ij->i", train, train)
        blocks = _squared_distances(train[some], train, squares)
        nearest = [np.partition(d2, NEIGHBOUR, axis=1)[:, NEIGHBOUR] for d2 in blocks]  # the 0th is the row itself
        radius = np.sqrt(np.concatenate(nearest)).mean()
        relevance = (y[queries, None] == y[rest]).astype(np.uint8)
        first = 0
        for d2 in _squared_distances(query, train, squares):
            relevance[first : first + len(d2)] += np.uint8(2) * (d2 <= radius**2)
            first += len(d2)
    return Split(train, query, relevance)


def _squared_distances(A: Vectors, B: Vectors, squares_of_B: Vectors) -> Any:
    """Yield the squared distances of blocks of rows of `A` from all rows of `B`."""
    for start in range(0, len(A), _ROWS):
        block = A[start : start + _ROWS]
        distances = -2 * (block @ B.T)
        distances += squares_of_B
        distances += np.einsum("ij,ij->i", block, block)[:, None]
        yield np.maximum(distances, 0, out=distances)


# ---- the methods


def encode(method: str, data: Split, n_bits: int, seed: int) -> tuple[Codes, Codes]:
    """Learn codes from the training rows; return those of the training rows and of the queries."""
    rows: Sequence[Vectors] = (data.train, data.query)
    if method == RANDOM_SIGNS:
        quantiser: Any = SignRandomProjection(n_bits, random_state=seed)
    else:
        rows = _projected(method, data, n_bits, seed)
        quantiser = SignCodes() if method == PCA_SIGNS else itq(n_bits, seed)
    quantiser.fit(rows[0])
    return quantiser.transform(rows[0]), quantiser.transform(rows[1])


def itq(n_bits: int, seed: int) -> ITQ:
    """Return the quantiser that all methods share."""
    return ITQ(n_bits, random_state=seed, max_samples=ITQ_ROWS)


def _projected(method: str, data: Split, n_bits: int, seed: int) -> Sequence[Vectors]:
    if method in (FULL, PCA_SIGNS):
        return [Z[:, :n_bits] for Z in data.principal]
    if method == RANDOM:
        projection = GaussianRandomProjection(n_bits, random_state=seed).fit(data.train)
    else:
        sampling = "uniform" if method == UNIFORM else "norm"
        projection = GeneralizedNystroemPCA(n_bits, SAMPLES, FEATURES, sampling, random_state=seed).fit(data.train)
    with threadpool_limits(cpu_count(), "blas"):
        return projection.transform(data.train), projection.transform(data.query)


# ---- mean average precision


def mean_average_precision(codes: Codes, queries: Codes, relevance: npt.NDArray[np.uint8]) -> dict[str, float]:
    """Return the mean over queries of the expected average precision, for each truth; queries with nothing relevant
    are left out (NaN if all are).

    Parameters
    ----------
    codes : ndarray of uint8, shape (n, n_bits // 8)
    queries : ndarray of uint8, shape (n_queries, n_bits // 8)
    relevance : ndarray of uint8, shape (n_queries, n)
        As in `Split`.
    """
    counts = np.zeros((len(queries), 8 * codes.shape[1] + 1, 4), np.int64)
    for start in range(0, len(queries), _ROWS):
        part = slice(start, start + _ROWS)
        distances = hamming_distances(queries[part], codes)
        run_in_ranges(lambda i, j: _count(distances[i:j], relevance[part][i:j], counts[part][i:j]), len(distances), 8)  # noqa: B023
    totals = counts.sum(axis=2)
    scores = {}
    for bit, truth in enumerate(TRUTHS):
        relevant = counts[:, :, [value for value in range(4) if value >> bit & 1]].sum(axis=2)
        some = relevant.any(axis=1)
        found = expected_average_precision(totals[some], relevant[some]).mean() if some.any() else np.nan
        scores[truth] = float(found)
    return scores


@njit()
def _count(distances, relevance, counts):  # type: ignore[no-untyped-def]
    for i in range(distances.shape[0]):
        for j in range(distances.shape[1]):
            counts[i, distances[i, j], relevance[i, j]] += 1


def expected_average_precision(totals: npt.NDArray[np.int64], relevant: npt.NDArray[np.int64]) -> Floats:
    """Return the average precision of each query, items at one distance being in random order.

    With N items and R relevant ones before, the i-th of n items at a distance, r of them relevant, is relevant with
    probability r / n, and the precision there is then (R + 1 + (i - 1) (r - 1) / (n - 1)) / (N + i) on average.

    Parameters
    ----------
    totals, relevant : ndarray of int64, shape (n_queries, n_levels)
        Items and relevant items at each distance, nearest first; something is relevant to each query.

    Returns
    -------
    ndarray of float64, shape (n_queries,)
    """
    after = np.cumsum(totals, axis=1)
    before, found = after - totals, np.cumsum(relevant, axis=1) - relevant
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, after.max() + 1))])
    inverse = harmonic[after] - harmonic[before]  # the sum of 1 / (N + i) over i = 1 .. n
    slope = np.maximum(relevant - 1, 0) / np.maximum(totals - 1, 1)
    sums = (found + 1) * inverse + slope * (totals - (before + 1) * inverse)
    return (relevant / np.maximum(totals, 1) * sums).sum(axis=1) / relevant.sum(axis=1)
