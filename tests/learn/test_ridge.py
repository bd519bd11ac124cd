"""Ridge regression of packed bits by conjugate gradients, and the products of signs that it takes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge

from similia import HDClassifier
from similia.core.config import limited_to
from similia.learn import ridge
from similia.learn.ridge import SignMatrix


def problem(n):
    """Codes of 1040 bits, near one of three centres; their classes; their signs."""
    rng = np.random.default_rng(0)
    y, centres = rng.integers(0, 3, n), rng.integers(0, 256, (3, 130), np.uint8)
    codes = centres[y] ^ np.packbits(rng.random((n, 1040)) < 0.45, axis=1)
    return codes, y, 2.0 * np.unpackbits(codes, axis=1) - 1


def iterate_always(monkeypatch, fewest=0):
    monkeypatch.setattr(ridge, "_FEWEST", fewest)
    monkeypatch.setattr(ridge, "_GRAM", 1000.0)
    monkeypatch.setattr(ridge, "_by_samples", None)  # so that it cannot take over


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 200), n_bytes=st.integers(1, 20), seed=st.integers(0, 99))
def test_tables_multiply_signs(n, n_bytes, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 256, (n, n_bytes), np.uint8)
    S, v, u = 2.0 * np.unpackbits(codes, axis=1) - 1, rng.standard_normal(8 * n_bytes), rng.standard_normal(n)
    found = SignMatrix(codes)
    assert found.shape == S.shape
    np.testing.assert_allclose(found.times(v), S @ v, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.transposed_times(u), S.T @ u, rtol=0, atol=1e-12)


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("alpha", [1e-3, 0.3])
def test_conjugate_gradients_solve_the_equations_of_ridge(monkeypatch, weighted, alpha):
    iterate_always(monkeypatch)
    codes, y, S = problem(150)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, 150) if weighted else np.ones(150)
    model = HDClassifier("ridge", alpha=alpha).fit(codes, y, weights)
    witness = Ridge(alpha).fit(S / np.sqrt(1040), np.eye(3)[y], sample_weight=weights)
    np.testing.assert_allclose(model.prototypes_, witness.coef_, rtol=0, atol=1e-11)
    np.testing.assert_allclose(model.intercept_, witness.intercept_, rtol=0, atol=1e-11)


def test_threads_change_no_bit_of_conjugate_gradients(monkeypatch):
    iterate_always(monkeypatch)
    monkeypatch.setattr("similia.learn.ridge._WORTH_THREADS", 1)
    codes, y, _ = problem(300)
    found = HDClassifier("ridge", random_state=0).fit(codes, y)
    with limited_to(1):
        alone = HDClassifier("ridge", random_state=0).fit(codes, y)
    np.testing.assert_array_equal(found.prototypes_, alone.prototypes_)


def test_equations_that_take_too_many_steps_are_solved_by_a_factor(monkeypatch):
    codes, y, _ = problem(300)
    expected = HDClassifier("ridge", alpha=0.3).fit(codes, y)
    monkeypatch.setattr(ridge, "_FEWEST", 0)
    monkeypatch.setattr(ridge, "_GRAM", 0.02)  # at most six steps
    found = HDClassifier("ridge", alpha=0.3).fit(codes, y)
    np.testing.assert_array_equal(found.prototypes_, expected.prototypes_)
