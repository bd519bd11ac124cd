"""Mixtures of Student t and normal distributions, beside scipy's distributions and numerical integrals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm, t

from similia.learn.evidence import StudentMixture

LEVELS = [1e-6, 0.025, 0.3, 0.5, 0.9, 0.999]


def theirs(mixture, i):
    """The distribution of each component of mixture i."""
    kind = norm if np.isinf(mixture.dof) else t(mixture.dof).dist
    given = () if np.isinf(mixture.dof) else (mixture.dof,)
    return [kind(*given, loc=a, scale=b) for a, b in zip(mixture.location[i], mixture.width[i], strict=True)]


def drawn(seed, m, k, dof):
    rng = np.random.default_rng(seed)
    width = np.exp(rng.normal(0, 2, (m, k)))
    return StudentMixture(rng.dirichlet(np.ones(k)), rng.normal(0, 3, (m, k)), width, dof)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(1, 6), dof=st.sampled_from([3.0, 4.0, 29.0, 5000.0, np.inf]))
@example(seed=9700245, k=6, dof=5000.0)  # Newton's method alone ran in a circle
def test_densities_quantiles_and_moments_are_those_of_scipy(seed, k, dof):
    mixture = drawn(seed, 3, k, dof)
    y = np.random.default_rng(seed).normal(0, 5, 3)
    found = {level: mixture.quantiles(level) for level in LEVELS}
    for i in range(3):
        parts = theirs(mixture, i)
        logs = [np.log(p) + part.logpdf(y[i]) for p, part in zip(mixture.weights, parts, strict=True)]
        assert mixture.log_density(y)[i] == pytest.approx(np.logaddexp.reduce(logs))
        for level in LEVELS:
            below = sum(p * part.cdf(found[level][i]) for p, part in zip(mixture.weights, parts, strict=True))
            assert below == pytest.approx(level, rel=1e-8)
        mean = sum(p * part.mean() for p, part in zip(mixture.weights, parts, strict=True))
        square = sum(p * (part.var() + part.mean() ** 2) for p, part in zip(mixture.weights, parts, strict=True))
        assert mixture.mean()[i] == pytest.approx(mean)
        assert mixture.std()[i] == pytest.approx(np.sqrt(square - mean**2))


@pytest.mark.parametrize("dof", [3.0, 12.0, np.inf])
@pytest.mark.parametrize("best", [-4.0, 0.0, 1.3, 9.0])
def test_expected_improvement_is_the_mean_of_the_gain(dof, best):
    mixture = drawn(0, 2, 3, dof)
    for i in range(2):
        exact = sum(
            p * quad(lambda y, part=part: (y - best) * part.pdf(y), best, np.inf, limit=500)[0]
            for p, part in zip(mixture.weights, theirs(mixture, i), strict=True)
        )
        assert mixture.improvement(best)[i] == pytest.approx(exact, rel=1e-6)


def test_without_width_improvement_is_the_gain():
    known = StudentMixture(np.ones(1), np.array([[0.5], [-0.5], [0.0]]), np.zeros((3, 1)), np.inf)
    np.testing.assert_array_equal(known.improvement(0.0), [0.5, 0.0, 0.0])


def test_quantiles_do_not_depend_on_the_other_mixtures():
    mixture = drawn(1, 50, 4, 7.0)
    together = mixture.quantiles(0.05)
    alone = [
        StudentMixture(mixture.weights, mixture.location[i : i + 1], mixture.width[i : i + 1], 7.0).quantiles(0.05)[0]
        for i in range(50)
    ]
    np.testing.assert_array_equal(together, alone)
