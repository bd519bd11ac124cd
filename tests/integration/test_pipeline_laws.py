"""Laws that hold across the rooms, from objects to codes: bits depend on the object alone; E of bits is arcsin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from threadpoolctl import threadpool_limits

import similia as sm
from naive import similarities as naive
from samples.graphs import Sample, batch, samples
from similia import kernels
from similia.objects import take

STRING_KERNELS = {
    "spectrum": kernels.Spectrum(k=2),
    "pairs": kernels.GappyKmers(k=2, gaps=1),
    "windows": kernels.GappedKmers(3, 2, "forgotten"),
    "gapped": kernels.GappedKmers(4, 2),
    "mismatch": kernels.Mismatch(k=2),
    "weighted degree": kernels.WeightedDegree(degree=3),
    "sum": kernels.Sum([kernels.Spectrum(k=1), kernels.Normalized(kernels.Spectrum(k=2))], weights=[0.1, 0.7]),
}
GRAPH_KERNELS = {
    "vertices": kernels.VertexHistogram(),
    "edges": kernels.EdgeHistogram(),
    "refined colours": kernels.WeisfeilerLehman(n_iter=2),
    "paths": kernels.ShortestPath(),
    "propagated labels": kernels.Propagation(n_iter=2, use="labels"),
    "propagated roots": kernels.Propagation(n_iter=2, use="labels", metric="hellinger"),
    "propagated attributes": kernels.Propagation(n_iter=2, use="attributes", bin_width=0.5),
}
KERNELS = STRING_KERNELS | GRAPH_KERNELS


def objects(name, n, seed):
    """Return n objects for a kernel, short strings or graphs; the first has features, some are empty or repeated."""
    random = np.random.default_rng(seed)
    if name in GRAPH_KERNELS:
        path = Sample(np.eye(3, k=1) + np.eye(3, k=-1), np.arange(3), np.ones((3, 3)), np.zeros((3, 3), dtype=int))
        some = batch([path, *samples(seed, n, weighted=True)], attributes=True, edge_labels=True, weighted=True)
    else:
        some = ["GATTACA", *("".join(random.choice(list("ACGT"), size)) for size in random.integers(0, 12, n))]
    return take(some, [0, *random.integers(0, n + 1, n - 1)])


def some_landmarks(n, seed):
    """Return indices of about half of the objects; the first, so that not all are without features."""
    return np.append(0, np.random.default_rng(seed).choice(np.arange(1, n), n // 2))


def kernel_of(name, normalize):
    return kernels.Normalized(KERNELS[name]) if normalize else KERNELS[name]


def encoder(kernel, method, n_bits=256, **parameters):
    nystroem = sm.Nystroem(kernel, random_state=1, **parameters)
    return make_pipeline(nystroem, sm.SignRandomProjection(n_bits=n_bits, method=method, random_state=2))


# ---- the bits of an object


@pytest.mark.same_bits
@pytest.mark.filterwarnings("ignore:.* similarity 0 to all landmarks")
@pytest.mark.parametrize("method", ["gaussian", "structured"])
@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=3, deadline=None)
@given(seed=st.integers(0, 2**32), n=st.integers(2, 40), normalize=st.booleans(), memory=st.sampled_from([1, 3000]))
def test_bits_depend_on_the_object_alone(name, method, seed, n, normalize, memory):
    X, kernel = objects(name, n, seed), kernel_of(name, normalize)
    model = encoder(kernel, method, landmarks=some_landmarks(n, seed))
    codes = model.fit_transform(X)
    order = np.random.default_rng(seed).integers(0, n, 2 * n)
    np.testing.assert_array_equal(model.transform(take(X, order)), codes[order])
    for i in range(0, n, 7):
        np.testing.assert_array_equal(model.transform(take(X, [i])), codes[i : i + 1])
    for limit in (1, 2):
        with sm.config(max_memory=memory), threadpool_limits(limit):
            np.testing.assert_array_equal(model.transform(X), codes)
            np.testing.assert_array_equal(clone(model).fit_transform(X), codes)


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["gaussian", "structured"])
@pytest.mark.parametrize(("name", "landmarks"), [("pairs", "rpcholesky"), ("refined colours", "leverage")])
def test_bits_of_many_landmarks_depend_on_the_object_alone(name, landmarks, method):
    """Enough landmarks for Hadamard products, and enough work for threads."""
    X = objects(name, 2500, seed=5)
    model = encoder(kernel_of(name, True), method, n_bits=2048, n_components=200, landmarks=landmarks)
    codes = model.fit_transform(X)
    for limit in (1, 2):
        with sm.config(max_memory="64KiB"), threadpool_limits(limit):
            np.testing.assert_array_equal(model.transform(take(X, np.arange(300))), codes[:300])
        with threadpool_limits(limit):
            np.testing.assert_array_equal(clone(model).fit_transform(X), codes)


def products(X, Y):
    """Linear kernel; each entry is one sum in one order, which BLAS does not promise."""
    return (X[:, None] * Y).sum(axis=2)


def on_the_edge(model, n, random):
    """Vectors whose embeddings are orthogonal to a direction, or halfway between two roundings, up to rounding."""
    nystroem, projection = model[0], model[1]
    directions = projection.projection_[:n].astype(float)
    ties = random.normal(size=directions.shape)
    ties -= directions * ((ties * directions).sum(axis=1) / np.square(directions).sum(axis=1))[:, None]
    halves = random.normal(size=directions.shape)
    halves /= np.linalg.norm(halves, axis=1)[:, None]
    first = (np.floor(halves[:, 0] * projection.row_length_) + 0.5) / projection.row_length_
    halves *= np.sqrt((1 - first**2) / (1 - halves[:, 0] ** 2))[:, None]
    halves[:, 0] = first
    images = nystroem.transform(np.eye(nystroem.rank_))
    return np.vstack([ties, halves]) @ np.linalg.inv(images)


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["gaussian", "structured"])
def test_bits_on_the_edge_depend_on_the_object_alone(method):
    """Here the last bit of a float decides; random objects come near such an edge once in 10**8 bits."""
    random = np.random.default_rng(3)
    model = encoder(products, method, n_bits=2048, landmarks=np.arange(50)).fit(random.normal(size=(60, 6)))
    X = on_the_edge(model, 1000, random)
    codes = model.transform(X)
    np.testing.assert_array_equal(model.transform(X[::-1]), codes[::-1])
    np.testing.assert_array_equal(np.vstack([model.transform(X[i : i + 1]) for i in range(0, 2000, 5)]), codes[::5])
    for limit in (1, 2):
        with sm.config(max_memory=3000), threadpool_limits(limit):
            np.testing.assert_array_equal(model.transform(X[::3]), codes[::3])


# ---- what the bits mean


def cosines(K, landmarks):
    """Normalised Nyström kernel, by its definition; an object like no landmark is like itself only."""
    approximation = naive.nystroem(K, landmarks)
    norms = np.sqrt(np.maximum(approximation.diagonal(), 0))
    known = norms > 1e-6 * norms.max()
    scaled = np.where(known, norms, 1.0)
    rho = approximation / np.outer(scaled, scaled) * np.outer(known, known)
    np.fill_diagonal(rho, 1.0)
    rho[np.ix_(~known, ~known)] = 1.0  # all of them have the code of ones
    return rho.clip(-1, 1)


@pytest.mark.parametrize("method", ["gaussian", "structured"])
@settings(max_examples=8, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(["spectrum", "weighted degree", "sum", "refined colours", "propagated attributes"]),
    seed=st.integers(0, 2**32),
    normalize=st.booleans(),
)
def test_codes_agree_as_the_arcsine_of_the_nystroem_kernel_says(method, name, seed, normalize):
    n, n_bits, n_seeds = 12, 1024, 40
    X, kernel = objects(name, n, seed), kernel_of(name, normalize)
    nystroem = sm.Nystroem(kernel, landmarks=some_landmarks(n, seed))
    embedding = nystroem.fit_transform(X)
    mean = np.zeros((n, n))
    for random_state in range(n_seeds):
        projection = sm.SignRandomProjection(n_bits=n_bits, method=method, random_state=random_state)
        mean += sm.codes.inner_products(projection.fit_transform(embedding)) / (n_bits * n_seeds)
    expected = 2 / np.pi * np.arcsin(cosines(kernel(X, X), nystroem.landmark_indices_))
    sigma = np.sqrt((1 - expected**2) / (n_bits * n_seeds))
    np.testing.assert_array_less(np.abs(mean - expected), 5 * sigma + 1e-3)  # 1e-3: rows become integers
