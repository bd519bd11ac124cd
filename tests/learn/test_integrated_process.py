"""Gaussian processes averaged over mean, scale and noise: beside numerical integrals, and laws of the average."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare, norm, t

import similia as sm
from similia.learn.evidence import gauss_rule
from tests.learn.test_gaussian_process import CURVE, SPECTRUM, points, strings
from tests.naive import integrated_process as naive

NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)  # of Gauss's quadrature on [-1, 1]


@pytest.mark.parametrize("noise", [None, 0.3])
def test_densities_are_those_of_a_numerical_integral(noise):
    rng = np.random.default_rng(3)
    X = np.vstack([rng.normal(size=(6, 2)), rng.normal(size=(1, 2))])
    X[1] = X[0]  # measured twice, so that the noise matters
    y = np.array([1.0, 1.4, -0.3, 2.0, 0.2, 1.1])
    model = sm.GaussianProcessRegressor(CURVE, noise="auto" if noise is None else noise).fit(X[:6], y)
    assert model.degrees_of_freedom_ == (5 if noise is None else None)
    for target in (0.5, 2.0, 6.0):
        exact = naive.log_density(CURVE(X), y, target, noise)
        assert model.log_density(X[6:], [target])[0] == pytest.approx(exact, abs=2e-3)
    log_evidence = np.log(naive.evidence(CURVE(X[:6]), y, noise))
    assert model.log_marginal_likelihood_ == pytest.approx(log_evidence, abs=2e-3)


@pytest.mark.parametrize("how", ["integrated", "maximized"])
def test_far_from_all_objects_exact_targets_say_little(how):
    x = np.sort(np.random.default_rng(0).uniform(0, 10, 40))[:, None]
    kernel = sm.kernels.RBF(gamma=0.5)
    model = sm.GaussianProcessRegressor(kernel, noise=1e-6, hyperparameters=how).fit(x, np.sin(x[:, 0]))
    assert 0.4 < model.predict([[100.0]], return_std=True)[1][0] < 0.7
    with pytest.raises(ValueError, match="noise must be larger for this kernel and these targets, got 1e-170; give"):
        model.set_params(noise=1e-170).fit(x, np.sin(x[:, 0]))


@pytest.mark.parametrize("noise", [0.1, 1e-3, 1e-6])
def test_a_mean_within_the_span_of_few_features_leaves_nothing_outside(noise):
    X, y = ["AAAA", "AAAC", "AACC", "ACCC", "CCCC"], np.arange(5.0)
    model = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=1), noise=noise).fit(X, y)
    mean, std = model.predict(["CCAA"], return_std=True)
    assert mean[0] == pytest.approx(2, abs=1e-6)
    assert noise < std[0] < 1.3 * noise


def test_one_value_of_the_noise_gives_the_student_t_of_the_textbook():
    X, y = points(14)
    model = sm.GaussianProcessRegressor(CURVE).fit(X[:12], y[:12])
    n, K, one = 12, CURVE(X), np.ones(12)
    expected = 0.0
    for weight, noise, scale in zip(model.weights_, model.noises_, model.scales_, strict=True):
        a = noise**2 / scale
        G = np.linalg.inv(K[:n, :n] + a * np.eye(n))
        mean = one @ G @ y[:n] / (one @ G @ one)
        s2 = (y[:n] - mean) @ G @ (y[:n] - mean) / (n - 1)
        assert scale == pytest.approx(s2 * (n - 1) / (n - 3), rel=1e-6)
        k = K[n, :n]
        variance = s2 * (1 + a - k @ G @ k + (1 - k @ G @ one) ** 2 / (one @ G @ one))
        expected += weight * t.pdf(1.5, n - 1, loc=mean + k @ G @ (y[:n] - mean), scale=np.sqrt(variance))
    assert model.log_density(X[n : n + 1], [1.5])[0] == pytest.approx(np.log(expected), rel=1e-8)


@pytest.mark.parametrize("n_landmarks", [None, 30])
def test_mean_deviation_quantiles_and_samples_are_of_one_distribution(n_landmarks):
    X, y = points(36)
    model = sm.GaussianProcessRegressor(CURVE, n_landmarks=n_landmarks, random_state=0).fit(X[:30], y[:30])
    mean, std = model.predict(X[30:], return_std=True)
    for i in range(30, 33):

        def integral(low, high, power=0, i=i):
            values, weights = (high - low) / 2 * NODES + (high + low) / 2, (high - low) / 2 * WEIGHTS
            densities = np.exp(model.log_density(X[np.full(len(values), i)], values))
            return weights @ (values**power * densities)

        parts = [mean[i - 30] + std[i - 30] * z for z in (-60, -8, -1, 1, 8, 60)]
        moments = [sum(integral(a, b, power) for a, b in pairwise(parts)) for power in (0, 1, 2)]
        assert moments[0] == pytest.approx(1, abs=1e-6)
        assert moments[1] == pytest.approx(mean[i - 30], abs=1e-5)
        assert np.sqrt(moments[2] - moments[1] ** 2) == pytest.approx(std[i - 30], rel=1e-3)
        low, high = model.predict_interval(X[i : i + 1], 0.8)[0]
        assert integral(low, high) == pytest.approx(0.8, abs=1e-6)
    np.testing.assert_allclose(model.predict_quantiles(X[30:], [0.1, 0.9]), model.predict_interval(X[30:], 0.8))
    covariance = model.predict(X[30:], return_cov=True)[1]
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), std, rtol=1e-9)
    samples = model.sample_y(X[30:], 40_000, with_noise=True)
    np.testing.assert_allclose(samples.mean(axis=1), mean, atol=6 * std.max() / 200)
    np.testing.assert_allclose(np.cov(samples), covariance, atol=0.05 * covariance.max())
    assert np.mean(samples[0] < model.predict_quantiles(X[30:31], [0.2])[0, 0]) == pytest.approx(0.2, abs=0.01)


def test_targets_drawn_from_the_prior_are_covered_as_often_as_said():
    rng = np.random.default_rng(0)
    below = []
    for _ in range(400):
        X = rng.normal(size=(13, 2))
        share = rng.uniform()
        K = 0.01 * (CURVE(X) + min(share / (1 - share), 100) * np.eye(13))
        y = 70 + np.linalg.cholesky(K) @ rng.normal(size=13)
        model = sm.GaussianProcessRegressor(CURVE).fit(X[:12], y[:12])
        below.append((model.predict_quantiles(X[12:], np.arange(1, 10) / 10)[0] < y[12]).sum())
    assert chisquare(np.bincount(below, minlength=10)).pvalue > 1e-3


@pytest.mark.parametrize(("noise", "n_landmarks"), [("auto", None), (0.4, None), ("auto", 25)])
def test_leaving_one_out_is_a_fit_without_that_object(noise, n_landmarks):
    X, y = strings(25)
    X[1], y[1] = X[0], y[0] + 1.0
    model = sm.GaussianProcessRegressor(SPECTRUM, None, noise, n_landmarks, 0).fit(X, y)
    for i in (0, 1, 7, 24):
        others = np.delete(np.arange(25), i)
        without = sm.GaussianProcessRegressor(SPECTRUM, noise=noise).fit([X[j] for j in others], y[others])
        mean, std = without.predict(X[i : i + 1], return_std=True)
        assert model.loo_mean_[i] == pytest.approx(mean[0], abs=1e-3)
        assert model.loo_std_[i] == pytest.approx(std[0], rel=1e-3)


def test_landmarks_are_exact_if_all_objects_are_landmarks():
    X, y = points(60)
    exact, whole = (
        sm.GaussianProcessRegressor(CURVE, n_landmarks=m, random_state=0).fit(X[:50], y[:50]) for m in (None, 50)
    )
    assert whole.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_, abs=1e-5)
    np.testing.assert_allclose(whole.predict_quantiles(X), exact.predict_quantiles(X), atol=1e-5)
    np.testing.assert_allclose(whole.loo_std_, exact.loo_std_, rtol=1e-4)


def test_many_targets_leave_little_to_average():
    X, y = points(700)
    both = [
        sm.GaussianProcessRegressor(CURVE, hyperparameters=h).fit(X[:600], y[:600]) for h in ("integrated", "maximized")
    ]
    for one, other in zip(*(m.predict(X[600:], return_std=True) for m in both), strict=True):
        np.testing.assert_allclose(one, other, rtol=0.03, atol=0.02)
    np.testing.assert_allclose(both[0].noise_, both[1].noise_, rtol=0.03)
    mean, std = both[1].predict(X[600:], return_std=True)
    np.testing.assert_allclose(both[1].log_density(X[600:], y[600:]), norm.logpdf(y[600:], mean, std))
    ends = both[1].predict_interval(X[600:], 0.95)
    np.testing.assert_allclose(ends, np.column_stack([mean - norm.ppf(0.975) * std, mean + norm.ppf(0.975) * std]))


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(5, 20), factor=st.sampled_from([1e-6, 3.0, 1e5]))
def test_units_of_targets_and_kernel_do_not_matter(seed, n, factor):
    X, y = strings(n, seed)
    one = sm.GaussianProcessRegressor(SPECTRUM).fit(X, y)
    other = sm.GaussianProcessRegressor(sm.kernels.Sum([SPECTRUM], weights=[8.0])).fit(X, factor * y + 5 * factor)
    np.testing.assert_allclose(
        other.predict_quantiles(X) / factor, one.predict_quantiles(X) + 5, atol=1e-5 * np.abs(y).max()
    )
    np.testing.assert_allclose(other.loo_std_ / factor, one.loo_std_, rtol=1e-5)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 60), size=st.integers(1, 12))
def test_quadrature_keeps_the_averages_of_polynomials(seed, n, size):
    rng = np.random.default_rng(seed)
    x, weights = rng.uniform(-7, 3, n), rng.dirichlet(np.ones(n))
    nodes, shares = gauss_rule(x, weights, size)
    assert len(nodes) <= min(n, size)
    for degree in range(2 * min(n, size)):
        exact = weights @ ((x + 2) / 5) ** degree
        assert shares @ ((nodes + 2) / 5) ** degree == pytest.approx(exact, abs=1e-9)


def test_a_contradiction_between_equal_objects_does_not_make_the_others_certain():
    """Two equal objects with targets far apart leave room for noise, and the density of a third is not negligible."""
    X, y = strings(40, noise=0.0)
    X, y = [*X, X[0]], np.append(y, y[0] + 3.0)
    models = [sm.GaussianProcessRegressor(SPECTRUM, hyperparameters=h) for h in ("integrated", "maximized")]
    ours, theirs = (m.fit(X[:40], y[:40]).log_density(X[40:], y[40:])[0] for m in models)
    assert ours > theirs + 2


def test_the_same_bits_for_any_block_and_company():
    X, y = points(40)
    model = sm.GaussianProcessRegressor(CURVE).fit(X[:30], y[:30])
    whole = model.predict_quantiles(X), model.predict(X, return_std=True)[1], model.log_density(X, y)
    for i in (0, 17, 39):
        alone = X[i : i + 1]
        np.testing.assert_array_equal(model.predict_quantiles(alone)[0], whole[0][i])
        assert model.predict(alone, return_std=True)[1][0] == whole[1][i]
        assert model.log_density(alone, y[i : i + 1])[0] == whole[2][i]


def test_partitions_of_dask_give_the_same():
    array = pytest.importorskip("dask.array")
    X, y = points(40)
    model = sm.GaussianProcessRegressor(CURVE).fit(X[:30], y[:30])
    lazy = array.from_array(X, chunks=(13, 3))
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(X))
    np.testing.assert_array_equal(model.predict_interval(lazy, 0.8).compute(), model.predict_interval(X, 0.8))
    for noise in (True, False):
        found = model.predict(lazy, return_std=True, with_noise=noise)
        for part, expected in zip(found, model.predict(X, return_std=True, with_noise=noise), strict=True):
            np.testing.assert_array_equal(part.compute(), expected)
    with pytest.raises(TypeError, match="covariances need all objects at once"):
        model.predict(lazy, return_cov=True)


def test_a_standard_deviation_needs_no_second_look_at_the_objects():
    calls = []

    def kernel(X, Y=None):
        calls.append(Y is not None and len(Y) == 30)  # with the objects of fit; others are for the variances of priors
        return CURVE(X, Y)

    X, y = points(40)
    model = sm.GaussianProcessRegressor(kernel).fit(X[:30], y[:30])
    calls.clear()
    expected, looks = model.predict(X), sum(calls)
    mean, _ = model.predict(X, return_std=True)
    assert sum(calls) == 2 * looks > 0
    np.testing.assert_array_equal(mean, expected)


def test_suggestions_use_the_whole_mixture():
    X, y = points(30)
    model = sm.GaussianProcessRegressor(CURVE).fit(X[:12], y[:12])
    draws = np.maximum(model.sample_y(X[12:], 200_000, random_state=1) - y[:12].max(), 0)
    first = model.suggest(X[12:], 3)
    means = draws.mean(axis=1)
    assert means[first[0]] > means.max() - 6 * draws[first[0]].std() / 450
    assert len(set(first.tolist())) == 3


@pytest.mark.parametrize(
    ("settings", "n", "words"),
    [
        ({}, 4, "y has 4 samples, expected at least 5"),
        ({"noise": 0.1}, 1, "y has 1 sample, expected at least 2"),
        ({"hyperparameters": "best"}, 9, "hyperparameters must be"),
    ],
)
def test_what_cannot_be_integrated_is_refused(settings, n, words):
    X, y = strings(n)
    with pytest.raises(ValueError, match=words):
        sm.GaussianProcessRegressor(SPECTRUM, **settings).fit(X, y)


@pytest.mark.parametrize("levels", [[0.0], [0.5, 1.0], "middle", [[0.5]], [None]])
def test_levels_are_checked(levels):
    X, y = strings(9)
    model = sm.GaussianProcessRegressor(SPECTRUM).fit(X, y)
    with pytest.raises(ValueError, match="levels must be numbers above 0 and below 1"):
        model.predict_quantiles(X, levels)
    with pytest.raises(ValueError, match="coverage must be"):
        model.predict_interval(X, 1.0)
