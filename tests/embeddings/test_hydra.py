"""Hydra against its definition, laws and aeon; the scaler against its formula."""

import os
import re
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import hydra as naive
from similia.core.config import limited_to
from similia.embeddings import Hydra, SparseScaler
from similia.embeddings.vectors import moments
from similia.objects import as_series

laws = settings(max_examples=25, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def collection(seed=0, n=12, channels=1, longest=40, shortest=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, channels)) for size in rng.integers(shortest, longest + 1, n)]


def with_weights(model, X, weights):
    """Fit a model, then give it other weights of the same shape."""
    model.fit(X)
    model.weights_ = weights(model.weights_.shape).astype(np.float32)
    return model


@laws
@given(SEEDS, st.integers(1, 3), st.integers(1, 5), st.integers(1, 4), st.integers(1, 70))
def test_agrees_with_the_twin(seed, channels, n_groups, n_kernels, longest):
    """In small integers, where sums are exact and kernels are often equal: the first of them wins."""
    rng = np.random.default_rng(seed)
    X = [rng.integers(-2, 3, (size, channels)).astype(float) for size in rng.integers(1, longest + 1, 4)]
    model = with_weights(Hydra(n_groups, n_kernels, 0), X, lambda shape: rng.integers(-3, 4, shape))
    expected = [naive.features(x, model.weights_, model.channels_).ravel() for x in X]
    np.testing.assert_array_equal(model.transform(X), expected)


@pytest.mark.parametrize("channels", [1, 5])
def test_agrees_with_the_twin_on_gaussian_weights(channels):
    X = collection(1, 6, channels, longest=50)
    model = Hydra(6, 4, random_state=2).fit(X)
    expected = [naive.features(x, model.weights_, model.channels_).ravel() for x in X]
    np.testing.assert_allclose(model.transform(X), expected, rtol=2e-5, atol=2e-5)


_AEON = """
import sys
import numpy as np
import torch
from aeon.transformations.collection.convolution_based._hydra import _HydraInternal
given, out = np.load(sys.argv[1]), {}
for i in "0123":
    X, weights, channels = given["X" + i], given["weights" + i], given["channels" + i]
    d, g, k = weights.shape[:3]
    model = _HydraInternal(X.shape[2], X.shape[1], k=k, g=g)
    model.W = torch.tensor(weights.reshape(d, 2, g // 2 * k, 1, 9))
    model.idx = [torch.tensor(one.reshape(2, g // 2, -1)) for one in channels]
    with torch.no_grad():
        Z = model(torch.tensor(X)).numpy()
    out[i] = Z.reshape(len(X), d, 2, 2, g // 2, k).transpose(0, 1, 2, 4, 3, 5).reshape(len(X), -1)
np.savez(sys.argv[2], **out)
"""


@pytest.mark.ecosystem
def test_aeon_agrees(tmp_path):
    python = os.environ.get("SIMILIA_RIVALS_PYTHON")
    if not python:
        pytest.skip("SIMILIA_RIVALS_PYTHON is not set: it names a Python that has aeon and torch")
    given, found = {}, {}
    for i, shape in enumerate([(8, 1, 9), (8, 1, 100), (8, 4, 65), (8, 7, 33)]):
        X = np.random.default_rng(i).normal(size=shape).astype(np.float32)
        series = as_series(X, axes="channel, time")
        model = Hydra(8, 4, random_state=0).fit(series)
        given |= {f"X{i}": X, f"weights{i}": model.weights_, f"channels{i}": model.channels_}
        found[str(i)] = model.transform(series)
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, **given)
    subprocess.run([python, "-c", _AEON, str(source), str(target)], check=True, capture_output=True)
    for i, expected in np.load(target).items():
        np.testing.assert_allclose(found[i], expected, rtol=1e-5, atol=1e-4, err_msg=i)


@pytest.mark.parametrize(("longest", "n_dilations"), [(1, 1), (8, 1), (16, 1), (17, 2), (32, 2), (33, 3), (500, 6)])
def test_the_kernels_of_the_largest_dilation_fit_into_the_longest_series(longest, n_dilations):
    model = Hydra(3, 2, random_state=0).fit([np.zeros(1), np.zeros(longest)])
    assert model.weights_.shape == (n_dilations, 3, 2, 9)
    assert model.transform([np.ones(4)]).shape == (1, n_dilations * 3 * 2 * 2)


def test_weights_have_mean_0_and_absolute_sum_1():
    weights = Hydra(8, 4, random_state=0).fit(collection()).weights_.astype(float)
    np.testing.assert_allclose(weights.sum(axis=-1), 0, atol=1e-6)
    np.testing.assert_allclose(np.abs(weights).sum(axis=-1), 1, atol=1e-6)


@pytest.mark.parametrize(("channels", "n_drawn"), [(1, 1), (2, 2), (3, 2), (9, 4), (40, 8)])
def test_groups_see_half_of_the_channels(channels, n_drawn):
    drawn = Hydra(10, 2, random_state=0).fit(collection(channels=channels)).channels_
    assert drawn.shape == (3, 10, n_drawn)
    assert set(drawn.ravel().tolist()) == set(range(channels))


@laws
@given(SEEDS, st.integers(1, 3), st.integers(1, 5))
def test_each_time_point_has_a_smallest_response(seed, channels, n_groups):
    X = collection(seed, 5, channels)
    Z = Hydra(n_groups, 3, random_state=seed).fit(X).transform(X).reshape(5, -1, n_groups, 2, 3)
    lengths = as_series(X).lengths
    plain = (n_groups + 1) // 2
    for g in range(n_groups):
        np.testing.assert_array_equal(Z[:, :, g, 1].sum(axis=-1).T, np.tile(lengths - (g >= plain), (Z.shape[1], 1)))


@laws
@given(SEEDS, st.integers(-20, 20))
def test_counts_do_not_depend_on_the_scale_and_sums_are_proportional_to_it(seed, power):
    X = collection(seed, 4)
    model = Hydra(4, 3, random_state=0).fit(X)
    before, after = (model.transform(some).reshape(4, -1, 2, 3) for some in (X, [x * 2.0**power for x in X]))
    np.testing.assert_array_equal(after[:, :, 1], before[:, :, 1])
    np.testing.assert_array_equal(after[:, :, 0], before[:, :, 0] * np.float32(2.0**power))


@pytest.mark.parametrize("channels", [1, 3])
def test_laws_of_embeddings(channels):
    sm.checks.check_embedding(Hydra(4, 3), collection(channels=channels))


@pytest.mark.same_bits
@pytest.mark.parametrize("channels", [1, 3])
def test_equal_bits_in_any_company_and_number_of_threads(channels):
    X = collection(4, 40, channels, longest=300)
    model = Hydra(12, 8, random_state=0).fit(X)
    with limited_to(1):
        expected = model.transform(X)
    np.testing.assert_array_equal(model.transform(X), expected)
    for i in (0, 7, 39):
        np.testing.assert_array_equal(model.transform(X[i : i + 1])[0], expected[i])
    np.testing.assert_array_equal(model.transform([x.astype(np.float32) for x in X]), expected)


def test_a_seed_gives_the_same_kernels_and_another_seed_others():
    X = collection()
    one, same, other = (Hydra(4, 3, random_state=seed).fit_transform(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)


def test_wrong_input():
    X = collection(channels=2)
    with pytest.raises(ValueError, match="n_groups"):
        Hydra(0).fit(X)
    with pytest.raises(ValueError, match="n_kernels"):
        Hydra(n_kernels=-1).fit(X)
    model = Hydra(2, 2, 0).fit(X)
    with pytest.raises(ValueError, match=r"^X has 1 channel, expected 2 as in fit$"):
        model.transform([np.zeros(5)])
    for size in (1e31, 1e-31):
        said = f"series 1 holds numbers up to {size:.0e}, expected between 1e-30 and 1e+30; scale the series"
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            model.transform([X[0], X[1] / np.abs(X[1]).max() * size])
    assert np.isfinite(model.transform([np.zeros((3, 2))])).all()


def test_a_file_cannot_name_channels_that_do_not_exist(tmp_path):
    model = Hydra(2, 2, 0).fit(collection(channels=2))
    sm.save(model, tmp_path / "m.similia")
    np.testing.assert_array_equal(sm.load(tmp_path / "m.similia").channels_, model.channels_)
    model.channels_[0, 1, 0] = 2
    with pytest.raises(ValueError, match="Hydra has attributes that do not fit each other"):
        sm.save(model, tmp_path / "m.similia")  # which checks what loading checks


# ---- the scaler


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("exponent", [4.0, 1.0])
def test_the_scaler_is_its_formula(dtype, exponent):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((600, 9)) < np.linspace(0, 1, 9), 0, rng.normal(2, 2, (600, 9))).astype(dtype)
    scaler = SparseScaler(exponent).fit(X[:500])
    expected = naive.scaled(X[:500].astype(float), X.astype(float), exponent)
    found = scaler.transform(X)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert (found[X <= 0] == 0).all()


def test_columns_without_spread_do_not_amplify_rounding():
    X = np.full((7, 2), 0.1, np.float32) * [1, 0]
    np.testing.assert_array_equal(SparseScaler().fit_transform(X), np.zeros((7, 2)))
    np.testing.assert_array_equal(SparseScaler().fit_transform(X[:1]), np.zeros((1, 2)))


def test_rounding_makes_no_variance_negative():
    n, mean, variance = moments(np.full((666_111, 1), np.sqrt(2.0)), lambda X, start: X)
    assert (n, mean, variance) == (666_111, pytest.approx(np.sqrt(2.0)), 0.0)


def test_the_scaler_refuses_what_is_not_finite():
    scaler = SparseScaler().fit(np.eye(3))
    for call in (scaler.transform, SparseScaler().fit):
        with pytest.raises(ValueError, match=r"X\[1\] holds NaN or infinity"):
            call([[0, 1, 2], [0, np.nan, 1]])
    with pytest.raises(ValueError, match="exponent"):
        SparseScaler(0).fit(np.eye(3))
    with pytest.raises(ValueError, match="X has 1 features, but SparseScaler is expecting 3 features as input"):
        scaler.transform([[1.0], [4.0]])
