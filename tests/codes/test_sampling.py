"""Rows of arrays, memory maps, files and streams: one sample for all, and no row read that is not in it."""

import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import similia as sm
from samples.hashing import (
    Rows,
    assert_same_fit,
    chunks,
    decaying,
    parquet,
)
from similia.codes.generalized_nystroem import GeneralizedNystroemPCA, Reservoir, smallest

# ---- one sample, whatever the source


def sources(X, folder):
    np.save(folder / "X.npy", X)
    yield "path", folder / "X.npy"
    yield "str", str(folder / "X.npy")
    yield "memmap", np.load(folder / "X.npy", mmap_mode="r")
    yield "fortran order", np.asfortranarray(X)
    yield "rows", Rows(X)
    yield "rows in chunks", Rows(X, 16)
    yield "parquet", parquet(X, folder / "X.parquet")
    yield "parquet of lists", parquet(X, folder / "L.parquet", lists=True)
    for size in (1, 7, 64, 1000):
        yield f"chunks of {size}", chunks(X, size)
    yield "list of chunks", [X[:100], X[100:101], X[101:]]
    yield "sparse chunks", (sp.csr_array(chunk) for chunk in chunks(X, 50))


@pytest.mark.same_bits
@pytest.mark.parametrize("fraction", [0.1, 40, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_sources_give_the_same_bits(dtype, fraction, tmp_path):
    X = decaying(400, 40, dtype)
    model = GeneralizedNystroemPCA(5, fraction, 0.5, random_state=7)
    expected = clone(model).fit(X)
    Z = expected.transform(X)
    for name, source in sources(X, tmp_path):
        fitted = clone(model).fit(source)
        assert_same_fit(fitted, expected)
        assert fitted.n_samples_seen_ == 400, name
    for name, source in sources(X, tmp_path):
        found = expected.transform(source)
        assert found.dtype == dtype, name
        np.testing.assert_array_equal(found, Z, err_msg=name)
    for name, source in sources(X, tmp_path):
        np.testing.assert_array_equal(np.concatenate(list(expected.transform_chunks(source))), Z, err_msg=name)
    for name, source in sources(X, tmp_path):
        assert expected.projection_error(source) == pytest.approx(expected.projection_error(X), rel=1e-9), name


def test_streams_of_vectors_are_read_like_arrays(tmp_path):
    X = decaying(300, 8, np.float64)
    np.savetxt(tmp_path / "X.csv", X, fmt="%.17g", delimiter=",", header=",".join("abcdefgh"), comments="")
    model = GeneralizedNystroemPCA(3, 0.2, 0.9, random_state=0)
    expected = clone(model).fit(X)
    assert_same_fit(clone(model).fit(sm.sources.open_stream(tmp_path / "X.csv", chunk=70)), expected)
    found = expected.transform(sm.sources.open_stream(tmp_path / "X.csv", chunk=70))
    np.testing.assert_array_equal(found, expected.transform(X))
    with pytest.raises(ValueError, match="X holds strings, expected vectors"):
        clone(model).fit(sm.sources.open_stream(["a", "b"]))


def test_long_streams_are_sampled_like_arrays():
    """Rows of a long stream are forgotten on the way; the sample is that of the array all the same."""
    X = decaying(20_000, 6, np.float32)
    for fraction in (0.01, 0.3, 25):
        model = GeneralizedNystroemPCA(2, fraction, 0.9, random_state=1)
        expected = clone(model).fit(X)
        for size in (333, 5000):
            assert_same_fit(clone(model).fit(chunks(X, size)), expected)


def test_reservoir_stays_small():
    for share, most in [(50, 50), (0.05, 2500)]:
        reservoir = Reservoir(np.random.default_rng(0), share, 1)
        for _ in range(50):
            reservoir.add(np.zeros((1000, 1)))
        assert most <= reservoir.nbytes / 8 <= 1.5 * (most + 8 * np.sqrt(most) + 64)


@pytest.mark.parametrize("size", [1, 13, 100, 500])
@pytest.mark.parametrize("fraction", [0.1, 30])
def test_partial_fit_equals_fit(fraction, size):
    X = decaying(500, 30)
    model = GeneralizedNystroemPCA(4, fraction, 0.5, random_state=5)
    streamed, quiet = clone(model), clone(model)
    for chunk in chunks(X, size):
        streamed.partial_fit(chunk, refit=size > 1)
        quiet.partial_fit(chunk, refit=False)
    assert_same_fit(streamed.partial_fit(X[:0]), model.fit(X))
    assert not hasattr(quiet, "components_")
    half = clone(model)
    for chunk in chunks(X[:250], 50):
        half.partial_fit(chunk)
    assert_same_fit(half, clone(model).fit(X[:250]))


def test_partial_fit_waits_and_says_when_it_cannot_go_on():
    X = decaying(60, 10)
    model = GeneralizedNystroemPCA(4, 0.5, random_state=0)
    model.partial_fit(X[:3])
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.partial_fit(X[3:])
    for other in (pickle.loads(pickle.dumps(model)), GeneralizedNystroemPCA(4, 0.5).fit(X)):
        np.testing.assert_array_equal(other.transform(X).shape, (60, 4))
        with pytest.raises(ValueError, match="keeps no rows"):
            other.partial_fit(X)
    with pytest.raises(ValueError, match=r"X has 9 features, but \w+ is expecting 10 features"):
        model.partial_fit(X[:, :9])
    with pytest.raises(ValueError, match="sampling='uniform'"):
        GeneralizedNystroemPCA(4, sampling="norm").partial_fit(X)
    with sm.config(max_memory=2000), pytest.raises(ValueError, match="smaller sample_fraction"):
        GeneralizedNystroemPCA(4, 0.5).partial_fit(X)


def test_sample_is_uniform():
    rows, columns = np.zeros(40), np.zeros(12)
    X = decaying(40, 12)
    for seed in range(1000):
        pca = GeneralizedNystroemPCA(2, 0.2, 0.25, random_state=seed)
        pca.fit(X if seed % 2 else chunks(X, 9))
        assert len(np.unique(pca.sample_indices_)) == 8
        rows[pca.sample_indices_] += 1
        columns[pca.feature_indices_] += 1
    # Without replacement, counts vary less than chi-square's by (n - c) / (n - 1).
    for seen in (rows, columns):
        share = seen.mean() / 1000
        statistic = ((seen - seen.mean()) ** 2).sum() / (1000 * share * (1 - share)) * (len(seen) - 1) / len(seen)
        assert abs(statistic - (len(seen) - 1)) < 4 * np.sqrt(2 * (len(seen) - 1))


def test_fractions_in_single_precision_give_one_sample():
    X = decaying(1000, 20)
    model = GeneralizedNystroemPCA(5, np.float32(0.05), random_state=0)
    assert_same_fit(clone(model).fit(chunks(X, 64)), clone(model).fit(X))


def test_smallest():
    assert smallest(np.array([0.5, 0.1, 0.9, 0.2]), 2).tolist() == [1, 3]
    assert smallest(np.array([0.5, 0.1]), 9).tolist() == [0, 1]


@pytest.mark.parametrize("chunk", [None, 10])
def test_only_sampled_rows_are_read(chunk):
    X = decaying(1000, 20)
    source = Rows(X, chunk)
    pca = GeneralizedNystroemPCA(4, 0.05, random_state=0).fit(source)
    assert len(pca.sample_indices_) == 50
    if chunk is None:
        assert source.rows_read <= 1.1 * 50
    else:  # from the first to the last sampled row of a chunk
        assert source.rows_read <= 10 * len(np.unique(pca.sample_indices_ // 10))
    X[np.setdiff1d(np.arange(1000), pca.sample_indices_)] = np.nan  # never looked at
    assert_same_fit(GeneralizedNystroemPCA(4, 0.05, random_state=0).fit(X), pca)


@pytest.mark.parametrize(("fraction", "features"), [(0.3, 0.2), (20, 0.9)])
@pytest.mark.parametrize("options", [{}, {"sampling": "norm"}, {"orthonormalize": False}, {"center": False}])
def test_sparse_equals_dense(fraction, features, options):
    X = decaying(200, 60, offset=0.1) * (np.random.default_rng(0).random((200, 60)) < 0.3)
    model = GeneralizedNystroemPCA(5, fraction, features, random_state=0, **options)
    dense, sparse = clone(model).fit(X), clone(model).fit(sp.csc_matrix(X))
    np.testing.assert_array_equal(sparse.sample_indices_, dense.sample_indices_)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-8)
    np.testing.assert_allclose(sparse.singular_values_, dense.singular_values_, rtol=1e-8)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-8)
    assert sparse.projection_error(sp.csr_array(X)) == pytest.approx(dense.projection_error(X), rel=1e-8)


def test_sparse_rows_are_read_alike_in_any_order_and_with_repeated_entries():
    X = sp.csr_array(np.where(np.random.default_rng(0).random((40, 12)) < 0.4, decaying(40, 12), 0))
    halves = X.tocoo()
    order = np.random.default_rng(1).permutation(2 * X.nnz)
    places = tuple(np.tile(axis, 2)[order] for axis in (halves.row, halves.col))
    repeated = sp.coo_array((np.tile(halves.data / 2, 2)[order], places), shape=X.shape)
    unsorted = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    for start, stop in pairwise(X.indptr):
        unsorted.data[start:stop] = X.data[start:stop][::-1]
        unsorted.indices[start:stop] = X.indices[start:stop][::-1]
    model = GeneralizedNystroemPCA(3, random_state=0)
    expected = clone(model).fit(X)
    for form in (repeated, unsorted):
        assert_same_fit(clone(model).fit(form), expected)
        np.testing.assert_array_equal(expected.transform(form), expected.transform(X))
