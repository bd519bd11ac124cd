"""Optical random features and their kernel: the closed form, unbiasedness, variance, structure, the device's limits."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import graphlets as naive_graphlets
from similia.embeddings import random_features as module
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.kernels.vectors import Optical

REFERENCE = Path(__file__).parents[1] / "reference" / "F_opu_kernel.csv"
SEEDS = st.integers(0, 2**32 - 1)
laws = settings(max_examples=25, deadline=None)
each_structure = pytest.mark.parametrize("structured", [False, True])


def vectors(n, d, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal((n, d)).astype(dtype)


def reference_rows():
    with REFERENCE.open() as file:
        return list(csv.DictReader(file))


# ---- the kernel


def test_reference_values():
    rows = reference_rows()
    assert len(rows) == 24
    for row in rows:
        x, y = (np.array([json.loads(row[name])]) for name in "xy")
        bias = 0.0 if row["bias"] == "none" else 1.0
        constant = bias if row["bias"].startswith("fixed") else 0.0  # tau^4: of a beam that does not vary
        K = Optical(scale=np.sqrt(float(row["sigma2"])), bias=bias)(x, y)
        np.testing.assert_allclose(K - constant, [[float(row["K_closed"])]], rtol=1e-12, atol=1e-12)


@laws
@given(seed=SEEDS, d=st.integers(1, 6), scale=st.sampled_from([0.5, 1.0, 1.7]), bias=st.sampled_from([0.0, 0.6, 2.0]))
def test_kernel_laws(seed, d, scale, bias):
    X, Y = vectors(5, d, seed), vectors(4, d, seed + 1)
    X[0] = 0.0
    kernel = Optical(scale, bias)
    K = kernel(X, Y)
    q = (bias / scale) ** 2
    expected = [[scale**4 * ((x @ x + q) * (y @ y + q) + (x @ y + q) ** 2) for y in Y] for x in X]
    np.testing.assert_allclose(K, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(kernel(X), kernel(X, X), rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(X), kernel(X).diagonal(), rtol=1e-12, atol=1e-12)
    assert np.linalg.eigvalsh(kernel(X)).min() > -1e-9 * kernel(X).max()
    F, G = kernel.features(X, 64), kernel.features(Y, 64)
    assert F.shape == (5, 64)
    np.testing.assert_allclose((F @ G.T).toarray(), K, rtol=1e-10, atol=1e-10)
    if bias == 0:
        np.testing.assert_allclose(kernel(-X, Y), K, rtol=1e-12)


def test_complex_vectors_are_refused():
    with pytest.raises(ValueError, match="X holds complex numbers, expected real ones"):
        OpticalRandomFeatures(8).fit(np.ones((3, 2)) * 1j)


@pytest.mark.parametrize("bias", [0.0, 0.5])
def test_normalised_kernel(bias):
    X = np.vstack([np.zeros(3), vectors(4, 3)])
    kernel = Optical(1.5, bias, normalize=True)
    K = kernel(X)
    plain = Optical(1.5, bias)
    with np.errstate(invalid="ignore"):
        expected = plain(X) / np.sqrt(np.outer(plain.diag(X), plain.diag(X)))
    if bias == 0:
        expected[0], expected[:, 0], expected[0, 0] = 0, 0, 1
    np.testing.assert_allclose(K, expected, rtol=1e-12)
    np.testing.assert_array_equal(kernel.diag(X), np.ones(5))
    F = kernel.features(X)
    np.testing.assert_allclose((F @ F.T).toarray()[1:, 1:], K[1:, 1:], rtol=1e-12)


def test_kernel_in_other_rooms():
    X = vectors(40, 3, dtype=np.float32)
    features = sm.KernelFeatures(Optical(), n_features=7).fit_transform(X)  # 6 products and the norm
    np.testing.assert_allclose((features @ features.T).toarray(), Optical()(X), rtol=1e-6)
    Z = sm.Nystroem(Optical(), n_components=12, landmarks=np.arange(12)).fit_transform(X)
    assert Z.shape[0] == 40
    np.testing.assert_allclose(Z @ Z.T, Optical()(X), rtol=1e-3, atol=1e-3)  # rank 6, so that 12 landmarks are exact
    assert sm.kernels.Sum([Optical(), Optical()])(X).shape == (40, 40)


def test_kernel_refuses_bad_input():
    with pytest.raises(ValueError, match="scale must be a positive number, got 0"):
        Optical(scale=0)(vectors(2, 2))
    with pytest.raises(ValueError, match="bias must be a number >= 0, got -1"):
        Optical(bias=-1).diag(vectors(2, 2))
    with pytest.raises(ValueError, match="X has 2 features and Y has 3"):
        Optical()(vectors(2, 2), vectors(2, 3))
    with pytest.raises(ValueError, match=r"n_features must be from 7 .*got 6"):
        Optical().features(vectors(2, 3), 6)
    with pytest.raises(ValueError, match=r"X\[1\] holds NaN"):
        Optical()([[0.0], [np.nan]])


# ---- the features


@each_structure
@laws
@given(
    seed=SEEDS,
    d=st.sampled_from([1, 5, 63, 64, 65]),
    m=st.sampled_from([1, 63, 64, 200]),
    bias=st.sampled_from([0.0, 0.7]),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_agrees_with_the_twin(structured, seed, d, m, bias, dtype):
    X = vectors(35, d, seed % 1000, dtype)
    embedding = OpticalRandomFeatures(m, seed, scale=1.3, bias=bias, structured=structured).fit(X)
    Z = embedding.transform(X)
    assert Z.shape == (35, m)
    assert Z.dtype == dtype
    W, b = embedding.weights_, embedding.bias_
    rows = X.astype(np.float64)
    if structured:
        assert W is None
        p = embedding.turns_.shape[2]
        assert p == (128 if d + (bias > 0) > 64 else 64)
        c = 1.3 * (1 - 1 / p + 1 / p**2) ** -0.25 / p
        full = np.vstack([naive_graphlets.sign_hadamard_matrix(turns) for turns in embedding.turns_])[:m]
        W, b = c * full[:, :d], c * full[:, d % p] * bias / 1.3
    else:
        W = W.T
    expected = naive_graphlets.optical_features(rows[:3], W.astype(np.complex128), b.astype(np.complex128))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(Z[:3], expected, rtol=0, atol=(3e-6 if dtype == np.float32 else 1e-12) * scale)


def kernel_estimates(x, y, m, repeats, **parameters):
    """Independent estimates of k(x, y), each from m features."""
    X = np.array([x, y], dtype=np.float64)
    found = []
    for seed in range(repeats):
        Z = OpticalRandomFeatures(m, seed, **parameters).fit_transform(X)
        found.append(Z[0] @ Z[1])
    return np.array(found)


def test_unbiased_against_the_closed_form():
    for row in reference_rows()[::2]:
        if row["bias"].startswith("fixed"):
            continue
        x, y = json.loads(row["x"]), json.loads(row["y"])
        bias = 0.0 if row["bias"] == "none" else 1.0
        found = kernel_estimates(x, y, 500, 400, scale=np.sqrt(float(row["sigma2"])), bias=bias)
        error = found.std(ddof=1) / np.sqrt(len(found))
        assert abs(found.mean() - float(row["K_closed"])) < 4.5 * error + 1e-12


def test_variance_of_one_feature():
    x, y = np.array([1.0, 0.0, 2.0]), np.array([1.0, -1.0, 0.5])
    r = (x @ y) ** 2 / ((x @ x) * (y @ y))
    m = 400_000
    Z = OpticalRandomFeatures(m, 0, scale=1.2).fit_transform(np.array([x, y]))
    products = m * Z[0] * Z[1]
    expected = 1.2**8 * (x @ x) ** 2 * (y @ y) ** 2 * (3 + 14 * r + 3 * r**2)
    assert abs(products.var() / expected - 1) < 0.06  # fourth powers of exponentials: a standard error near 2 %


def test_structured_bias_and_variance():
    # The worst case of the bias, a vector of one number.
    one, p = np.eye(1, 64)[0], 64
    found = kernel_estimates(one, one, 64, 4000, structured=True)
    assert abs(found.mean() - (2.0 - 1 / (p**2 - p + 1))) < 4 * found.std() / np.sqrt(len(found))
    # Dense vectors: without the factor 1 - 1/p + 1/p^2 the bias would be 1 / 64 = 0.016.
    x, y = np.random.default_rng(0).random((2, 64))
    K = Optical()([x], [y])[0, 0]
    found, independent = (kernel_estimates(x, y, 64, 2000, structured=s) / K for s in (True, False))
    assert abs(found.mean() - 1) < 4 * found.std() / np.sqrt(2000)
    assert found.std() / np.sqrt(2000) < 0.0035
    assert found.var() < 0.4 * independent.var()


def test_structured_mean_is_exact_at_small_size():
    """The formula for the mean, against all signs of a block of p = 2 (four powers of i, six signs)."""
    x, y = np.array([1.0, 0.5]), np.array([-0.3, 2.0])
    p, total, count = 2, 0.0, 0
    for code in range(4**6):
        turns = np.array([code >> 2 * i & 3 for i in range(6)]).reshape(3, 2)
        W = naive_graphlets.sign_hadamard_matrix(turns) / p**1.5 * np.sqrt(p)
        total += np.mean(np.abs(W @ x) ** 2 * np.abs(W @ y) ** 2)
        count += 1
    K = (x @ x) * (y @ y) + (x @ y) ** 2
    c4 = 1 / (1 - 1 / p + 1 / p**2)
    np.testing.assert_allclose(c4 * total / count, K - np.sum(x**2 * y**2) / (p**2 - p + 1), rtol=1e-12)


@each_structure
def test_depends_on_seed_and_nothing_else(structured):
    X = vectors(200, 20, dtype=np.float32)
    embedding = OpticalRandomFeatures(300, 3, structured=structured, bias=1.0)
    Z = embedding.fit_transform(X)
    np.testing.assert_array_equal(Z, clone(embedding).fit(vectors(7, 20, 9, np.float32)).transform(X))
    assert not np.array_equal(Z, clone(embedding).set_params(random_state=4).fit_transform(X))
    with sm.config(max_memory=1):
        np.testing.assert_allclose(embedding.transform(X), Z, rtol=2e-5)
    np.testing.assert_allclose(embedding.transform(X[::-1][:5]), Z[::-1][:5], rtol=2e-5)
    fewer = OpticalRandomFeatures(100, 3, structured=structured, bias=1.0).fit_transform(X)
    if not structured:
        np.testing.assert_allclose(fewer * np.sqrt(100), Z[:, :100] * np.sqrt(300), rtol=2e-4)
    double = embedding.transform(X.astype(np.float64))
    assert double.dtype == np.float64
    np.testing.assert_allclose(double, Z, rtol=1e-3, atol=1e-5)


@each_structure
def test_sparse_input(structured):
    dense = np.random.default_rng(0).random((60, 30)) * (np.random.default_rng(1).random((60, 30)) < 0.1)
    embedding = OpticalRandomFeatures(80, 0, structured=structured, bias=0.5)
    for matrix in (sp.csr_array(dense), sp.coo_matrix(dense)):
        np.testing.assert_allclose(embedding.fit_transform(matrix), embedding.fit_transform(dense), rtol=1e-10)


@each_structure
@pytest.mark.parametrize("bits", [1, 8, 16])
def test_quantised(structured, bits):
    X = (np.random.default_rng(0).random((300, 40)) < 0.4).astype(np.float32)
    plain = OpticalRandomFeatures(500, 0, structured=structured)
    camera = OpticalRandomFeatures(500, 0, structured=structured, quantize=bits, binary_input=True).fit(X)
    Z, exact = camera.transform(X), plain.fit_transform(X)
    assert Z.dtype == np.float32
    top = 2**bits - 1
    np.testing.assert_allclose(camera.step_, exact.max() / top, rtol=1e-6)
    levels = np.rint(Z / camera.step_)
    np.testing.assert_allclose(Z, levels * camera.step_, rtol=1e-5)
    assert (levels.min(), levels.max()) == (0, top)
    assert np.abs(Z - exact).max() <= 0.51 * camera.step_
    np.testing.assert_array_equal(camera.transform(3 * X * 0 + X), Z)
    if bits == 8:
        assert 8 < levels.mean() < 30
        np.testing.assert_allclose(Z @ Z.T, exact @ exact.T, rtol=0.02)
        assert (Z - exact).var() < 1e-3 * exact.var()


def test_camera_clips_what_it_has_not_seen():
    X = vectors(50, 8)
    camera = OpticalRandomFeatures(100, 0, quantize=8).fit(X)
    assert camera.transform(100 * X).max() == pytest.approx(255 * camera.step_)
    assert camera.fit(np.zeros((3, 8))).transform(np.zeros((2, 8))).max() == 0


def test_camera_keeps_the_levels_of_fit():
    X = vectors(50, 8)
    camera = OpticalRandomFeatures(100, 0, quantize=8).fit(X)
    expected = camera.transform(X)
    for quantize in (None, 2):
        np.testing.assert_array_equal(camera.set_params(quantize=quantize).transform(X), expected)


def test_exposure_is_learnt_from_some_vectors(monkeypatch):
    monkeypatch.setattr(module, "_EXPOSURE_ROWS", 10)
    X = vectors(50, 8)
    camera = OpticalRandomFeatures(100, 0, quantize=8).fit(X)
    Z = OpticalRandomFeatures(100, 0).fit_transform(X)
    assert np.sum(Z.max(axis=1) <= 255 * camera.step_ * (1 + 1e-12)) >= 10
    assert Z.max() > 255 * camera.step_


def test_refuses_bad_input():
    X = vectors(4, 3)
    for name, value, sentence in (
        ("n_components", 0, "n_components must be an integer >= 1, got 0"),
        ("scale", 0.0, "scale must be a positive number, got 0.0"),
        ("bias", -0.5, "bias must be a number >= 0, got -0.5"),
        ("quantize", np.int8(17), "quantize is a number of bits from 1 to 16"),
        ("quantize", 0, "quantize must be an integer >= 1"),
        ("random_state", "seed", "random_state must be"),
    ):
        with pytest.raises(ValueError, match=sentence):
            OpticalRandomFeatures(**{name: value}).fit(X)
    bits = np.array([[0, 1], [1, 1], [0, 0.5]])
    with pytest.raises(ValueError, match=r"X\[2\] holds 0.5, but binary_input=True takes 0 and 1 only"):
        OpticalRandomFeatures(binary_input=True).fit(bits)
    with pytest.raises(ValueError, match=r"X\[2\] holds 0.5, but binary_input=True"):
        OpticalRandomFeatures(binary_input=True).fit(sp.csr_array(bits))
    fitted = OpticalRandomFeatures(5).fit(X)
    with pytest.raises(ValueError, match=r"X has 4 features, but \w+ is expecting 3 features"):
        fitted.transform(vectors(2, 4))
    with pytest.raises(ValueError, match=r"X has 4 features, but \w+ is expecting 3 features"):
        fitted.transform(sp.csr_array(vectors(2, 4)))
    with pytest.raises(ValueError, match=r"X\[1\] holds NaN"):
        OpticalRandomFeatures(5).fit(sp.csr_array([[0.0, 1.0], [np.inf, 0.0]]))
    with pytest.raises(ValueError, match="X is empty"):
        fitted.transform(sp.csr_array((0, 3)))
    with pytest.raises(ValueError, match=r"X has 0 feature\(s\)"):
        fitted.fit(np.zeros((3, 0)))


@each_structure
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 1e17), (np.float64, 1e145)])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rows_are_refused_before_features_overflow(structured, dtype, most, scale):
    X = np.full((40, 1000), most / np.sqrt(1000) / scale, dtype)
    model = OpticalRandomFeatures(300, 0, structured=structured, scale=scale)
    Z = model.fit_transform(X * dtype(0.99))
    assert np.isfinite(Z).all()
    assert (Z.mean(axis=1) > 0).all()
    with pytest.raises(ValueError, match=r"X\[0\] holds numbers up to .*; scale X so that they are between"):
        model.fit(X * dtype(1.01))


@pytest.mark.parametrize("bias", [0.0, 0.7])
@pytest.mark.parametrize("power", [-90, 90])
def test_structured_features_do_not_depend_on_the_unit(power, bias):
    X = vectors(40, 70, dtype=np.float32)
    Z, moved = (
        OpticalRandomFeatures(150, 0, structured=True, bias=bias, scale=2.0**-p).fit_transform(np.ldexp(X, p))
        for p in (0, power)
    )
    np.testing.assert_array_equal(moved, Z)


def test_bits_of_any_type_of_integer():
    X = vectors(9, 3)
    Z = OpticalRandomFeatures(20, 0, quantize=8).fit_transform(X)
    np.testing.assert_array_equal(OpticalRandomFeatures(20, 0, quantize=np.int8(8)).fit_transform(X), Z)


def test_in_a_pipeline():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    y = np.linalg.norm(X, axis=1) > 2  # not linear, but quadratic
    model = make_pipeline(OpticalRandomFeatures(200, 0), LogisticRegression(max_iter=2000))
    assert model.fit(X[:300], y[:300]).score(X[300:], y[300:]) > 0.9
    names = model[0].get_feature_names_out()
    assert (len(names), names[0]) == (200, "opticalrandomfeatures0")


def test_repeated_entries_of_a_sparse_matrix_are_summed_before_they_are_looked_at():
    dense = np.array([[0.0, 1.0, 0.0], [1.0, 1.0, 0.0]])
    halves = sp.coo_array(([0.5, 0.5, 1, 1], ([0, 0, 1, 1], [1, 1, 1, 0])), shape=(2, 3))
    csr = sp.csr_array(([0.5, 0.5, 1, 1], [1, 1, 1, 0], [0, 2, 4]), shape=(2, 3))  # repeated and unsorted
    model = OpticalRandomFeatures(8, binary_input=True, random_state=0).fit(dense)
    for form in (halves, csr):
        np.testing.assert_array_equal(model.transform(form), model.transform(sp.csr_array(dense)))
    assert csr.nnz == 4
