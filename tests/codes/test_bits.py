"""Packed bits: packing, distances against a slow twin, and the kernel read back against its exact law."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import similia as sm
from naive import similarities as naive
from similia.codes import hamming_distances, inner_products, kernel_from_codes, pack_signs, unpack_signs

REFERENCE = Path(__file__).parents[1] / "reference"


def random_codes(n, n_bytes, seed):
    return np.random.default_rng(seed).integers(0, 256, (n, n_bytes), dtype=np.uint8)


def ladder(n_bits):
    """Codes at distance 0, 1, ..., n_bits from the code of zeros."""
    return np.packbits(np.tri(n_bits + 1, n_bits, -1, dtype=bool), axis=1)


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 5), st.integers(1, 20), st.integers(0, 2**32))
def test_packing_and_unpacking_are_inverse(n, n_bytes, seed):
    codes = random_codes(n, n_bytes, seed)
    signs = unpack_signs(codes)
    assert signs.dtype == np.int8
    assert (np.abs(signs) == 1).all()
    np.testing.assert_array_equal(pack_signs(signs), codes)
    np.testing.assert_array_equal(pack_signs(unpack_signs(codes, np.float32) * 0.25), codes)


def test_bit_order_and_zero():
    np.testing.assert_array_equal(pack_signs([[-0.0] + [-1] * 7, [-1] * 6 + [0, -2]]), [[128], [2]])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 5), st.integers(0, 70), st.sampled_from([1, 7, 8, 9, 63, 64, 65]), st.integers(0, 2**32))
def test_distances_are_those_of_the_slow_twin(n, m, n_bytes, seed):
    A, B = random_codes(n, n_bytes, seed), random_codes(m, n_bytes, seed + 1)
    distances = hamming_distances(A, B)
    assert distances.dtype == np.int32
    np.testing.assert_array_equal(distances, np.array([[naive.hamming(a, b) for b in B] for a in A]).reshape(n, m))
    products = unpack_signs(A, int) @ unpack_signs(B, int).T
    np.testing.assert_array_equal(inner_products(A, B), products)


@pytest.mark.same_bits
def test_distances_in_threads_and_on_awkward_memory():
    A = random_codes(300, 1250, 0)
    expected = np.bitwise_count(A[:, None] ^ A[None]).sum(axis=2, dtype=np.int32)
    np.testing.assert_array_equal(hamming_distances(A), expected)
    shifted = np.frombuffer(b"\0" + random_codes(9, 16, 1).tobytes(), np.uint8)[1:].reshape(9, 16)  # read-only
    np.testing.assert_array_equal(hamming_distances(shifted), hamming_distances(shifted.copy()))
    np.testing.assert_array_equal(hamming_distances(A[::2], A[:, ::1][5:]), expected[::2, 5:])


@pytest.mark.parametrize("d", [64, 256, 1000, 10000])
@pytest.mark.parametrize("rho", [-0.5, 0.0, 0.5, 0.9, 0.99, 1.0])
def test_bias_of_the_kernel_read_back_is_the_exact_one(rho, d):
    """Over independent directions the distance is binomial, so the mean of the estimate is a finite sum."""
    with open(REFERENCE / "B_arcsine_law.csv", newline="") as file:
        row = next(r for r in csv.DictReader(file) if float(r["rho"]) == rho and int(r["d"]) == d)
    codes = ladder(d)
    law = binom.pmf(np.arange(d + 1), d, np.arccos(rho) / np.pi)
    raw = kernel_from_codes(codes[:1], codes, correct=False)[0]
    corrected, std = (a[0] for a in kernel_from_codes(codes[:1], codes, return_std=True))
    assert raw @ law == pytest.approx(float(row["E_sin_inner(exact)"]), abs=2e-11)
    assert corrected @ law == pytest.approx(float(row["E_corrected"]), abs=2e-11)
    assert np.abs(corrected).max() <= 1
    sd = np.sqrt(max(0.0, corrected**2 @ law - (corrected @ law) ** 2))
    assert std @ law == pytest.approx(sd, rel=0.1 if d < 1000 else 0.02, abs=1e-7)


def test_kernel_by_hand():
    """Of 8 bits 2 differ: S = pi / 4, V = (pi^2 / 4 - pi^2 / 16) / 8."""
    A, B = np.array([[0b11110000]], dtype=np.uint8), np.array([[0b11111100], [0b11110000]], dtype=np.uint8)
    V = np.pi**2 * 3 / 16 / 8
    kernel, std = kernel_from_codes(A, B, return_std=True)
    np.testing.assert_allclose(kernel, [[np.sqrt(0.5) * (1 + V / 2), 1.0]], rtol=1e-14)
    np.testing.assert_allclose(std, [[np.sqrt(0.5 * V), 0.0]], rtol=1e-14)
    np.testing.assert_allclose(kernel_from_codes(A, B, correct=False)[0, 0], np.sqrt(0.5), rtol=1e-14)


@pytest.mark.same_bits
def test_kernel_in_blocks():
    codes = random_codes(50, 16, 0)
    kernel, std = kernel_from_codes(codes, return_std=True)
    np.testing.assert_array_equal(kernel, kernel.T)
    assert (np.diag(kernel) == 1).all()
    with sm.config(max_memory=700):
        again, std_again = kernel_from_codes(codes, return_std=True)
    np.testing.assert_array_equal(again, kernel)
    np.testing.assert_array_equal(std_again, std)


def test_kernel_of_encoded_vectors_is_their_cosine():
    X = np.random.default_rng(0).standard_normal((60, 3))
    codes = sm.SignRandomProjection(n_bits=20_000, random_state=0).fit_transform(X)
    kernel, std = kernel_from_codes(codes, return_std=True)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    z = (kernel - unit @ unit.T)[np.triu_indices(60, 1)] / std[np.triu_indices(60, 1)]
    assert np.abs(z).max() < 5
    assert 0.7 < np.sqrt(np.mean(z**2)) < 1.3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pack_signs(np.ones(8)), r"2-D \(n, n_bits\), got shape \(8,\)"),
        (lambda: pack_signs(np.ones((2, 9))), "multiple of 8"),
        (lambda: pack_signs(np.array([[1.0] * 8, [np.nan] * 8])), r"values\[1\] holds NaN"),
        (lambda: pack_signs(np.ma.masked_equal(np.eye(8), 1)), r"values\[0\], entry 0 is masked"),
        (lambda: pack_signs(np.ones((1, 8)) * 1j), "values must be real numbers, got dtype complex128"),
        (lambda: pack_signs([["a"] * 8]), "values must be real numbers, got dtype <U1"),
        (lambda: unpack_signs(np.ones((2, 8))), "packed bits"),
        (lambda: hamming_distances(random_codes(2, 3, 0), random_codes(2, 4, 0)), "B have 32 bits, expected 24"),
        (lambda: inner_products(np.ones((2, 8), bool)), "A must be packed bits"),
        (lambda: kernel_from_codes(np.ones((2, 8), np.float32)), "SignRandomProjection makes them"),
        (lambda: kernel_from_codes(np.ones((2, 0), np.uint8)), "codes of 0 bits"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_flipped_bits_are_the_wanted_share_and_nothing_at_zero():
    codes = random_codes(40, 250, 3)
    before = codes.copy()
    shares = hamming_distances(codes, sm.codes.flip_bits(codes, 0.3, random_state=1)).diagonal() / 2000
    assert abs(shares.mean() - 0.3) < 5 * np.sqrt(0.3 * 0.7 / (40 * 2000))
    np.testing.assert_array_equal(sm.codes.flip_bits(codes, 0.0), before)
    np.testing.assert_array_equal(sm.codes.flip_bits(codes, 1.0), ~before)
    np.testing.assert_array_equal(codes, before)
    with pytest.raises(ValueError, match=r"share must be between 0 and 1, got 1.5"):
        sm.codes.flip_bits(codes, 1.5)


def test_a_tiny_share_flips_nearly_nothing():
    """Of 2e7 bits, 0.02 are expected; one of the 2**24 possible draws in single precision is 0, below any share."""
    assert not sm.codes.flip_bits(np.zeros((2000, 1250), np.uint8), 1e-9, random_state=0).any()
