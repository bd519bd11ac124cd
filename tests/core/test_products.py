"""Products whose rows do not depend on other rows: values, and bits, wherever a row stands."""

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import similarities as naive
from samples.graphs import batch, samples
from similia.core.config import limited_to
from similia.core.products import panels, row_product
from similia.kernels.hypersphere import to_hypersphere, versines


@pytest.mark.same_bits
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(0, 40),
    k=st.integers(0, 70),
    m=st.integers(1, 70),
    single=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_are_those_of_the_product_and_the_same_alone(n, k, m, single, seed):
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    X, W = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
    out = row_product(X, panels(W, n))
    assert out.dtype == dtype
    bound = (k + 1) * np.finfo(dtype).eps * (np.abs(X).astype(float) @ np.abs(W).astype(float))
    assert (np.abs(out - X.astype(float) @ W.astype(float)) <= bound).all()
    for i in range(0, n, 5):
        assert np.array_equal(row_product(X[i : i + 1], panels(W, 1)), out[i : i + 1])
    assert np.array_equal(row_product(X[::-1], panels(np.asfortranarray(W), 10**6)), out[::-1])


@pytest.mark.same_bits
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 27), st.integers(1, 11), st.integers(1, 35), st.booleans(), st.integers(0, 2**16))
def test_entries_are_sums_in_order_with_each_term_rounded_once(n, k, m, single, seed):
    rng = np.random.default_rng(seed)
    dtype = np.float32 if single else np.float64
    X, W = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
    np.testing.assert_array_equal(row_product(X, W), naive.product_in_order(X, W))


_ON_A_PROCESSOR = """
import sys
import numpy as np
from similia.core.products import row_product
rng = np.random.default_rng(0)
for dtype in (np.float32, np.float64):
    X, W = rng.normal(size=(20, 33)).astype(dtype), rng.normal(size=(33, 40)).astype(dtype)
    sys.stdout.write(row_product(X, W).tobytes().hex())
"""


def _bits(**settings):
    command = [sys.executable, "-c", _ON_A_PROCESSOR]
    return subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def here():
    return _bits()


@pytest.mark.parametrize("processor", ["generic", pytest.param("nehalem", marks=pytest.mark.long), "haswell"])
def test_a_processor_without_fused_multiply_adds_gives_the_same_bits(processor, here, tmp_path):
    there = _bits(NUMBA_CPU_NAME=processor, NUMBA_CPU_FEATURES="", NUMBA_CACHE_DIR=str(tmp_path))
    assert len(here) > 10_000
    assert there == here


@pytest.mark.same_bits
@pytest.mark.parametrize("shape", [(5, 300, 20_000), (700, 300, 70), (1, 64, 64)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_places_change_no_bit(shape, dtype):
    rng = np.random.default_rng(0)
    n, k, m = shape
    X, W = rng.normal(size=(n, k)).astype(dtype), rng.normal(size=(k, m)).astype(dtype)
    out = row_product(X, W)
    with limited_to(1):
        assert np.array_equal(row_product(X, W), out)
    assert np.array_equal(row_product(np.asfortranarray(X), np.asfortranarray(W)), out)
    into = np.full((n, m), np.nan, dtype)
    assert row_product(X, W, into, threads=False) is into
    assert np.array_equal(into, out)
    assert np.array_equal(row_product(W.T, X.T).T, out)  # x.y = y.x
    assert np.array_equal(row_product(X, panels(W).first(m // 2)), out[:, : m // 2])


def test_a_place_for_the_result_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match=r"out has shape \(2, 5\) and dtype float32, expected \(2, 5\) and float64"):
        row_product(np.ones((2, 4)), np.ones((4, 5)), np.ones((2, 5), np.float32))


def test_rows_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"rows of shape \(2, 3\) do not fit a matrix of shape \(4, 5\)"):
        row_product(np.ones((2, 3)), panels(np.ones((4, 5)), 2))


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "estimator",
    [
        sm.OpticalRandomFeatures(700, 0, bias=1.0),
        sm.HeatRandomFeatures(700, random_state=0),
        sm.HeatRandomFeatures(700, random_state=0, mapping="sqrt"),
    ],
)
def test_features_do_not_depend_on_other_vectors(estimator, dtype):
    X = np.abs(np.random.default_rng(0).normal(size=(150, 300))).astype(dtype)
    Z = estimator.fit(X).transform(X)
    for start, stop in ((0, 1), (1, 8), (40, 149), (149, 150)):
        assert np.array_equal(estimator.transform(X[start:stop]), Z[start:stop])
    with sm.config(max_memory="64KiB"):
        assert np.array_equal(estimator.transform(X), Z)


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_versines_to_landmarks_do_not_depend_on_other_rows(sparse, dtype):
    rng = np.random.default_rng(0)
    counts = (rng.poisson(np.geomspace(1e-3, 2, 500), (400, 500)) + np.eye(400, 500)).astype(dtype)  # rare and common
    counts[::2, :250] = 0
    rows = to_hypersphere(sp.csr_array(counts) if sparse else counts)
    landmarks = rows[np.arange(0, 400, 7)]
    V = versines(rows, landmarks)
    assert (V.argmin(axis=1)[::7] == np.arange(58)).all()
    for start, stop in ((0, 1), (1, 8), (130, 399), (399, 400)):
        part = to_hypersphere((sp.csr_array(counts) if sparse else counts)[start:stop])
        assert np.array_equal(versines(part, landmarks), V[start:stop])


@pytest.mark.same_bits
@pytest.mark.parametrize("features", ["gaussian_eig", "gaussian", "optical", np.sin])
def test_means_over_graphlets_do_not_depend_on_other_graphs(features):
    graphs = [*batch(samples(0, 60))]
    sampling = sm.GraphletSampling(6, 50, "uniform", features, 40, 0).fit(graphs)
    Z = sampling.transform(graphs)
    with sm.config(max_memory="16KiB"):  # blocks of some patterns
        assert np.array_equal(sampling.transform(graphs), Z)
        assert np.array_equal(sampling.transform(graphs[30:]), Z[30:])
    assert np.array_equal(sampling.transform(graphs[3:4]), Z[3:4])
