"""The planners for sampled graphlets: values by hand, and against Monte-Carlo, where a bound must hold."""

import numpy as np
import pytest

from similia.objects.graphlets import canonical_forms, unpack_graphlets
from similia.planning import graphlet_samples, mmd_error

# Theorem 4 for (eps, delta) = (0.1, 0.05) and (0.05, 0.1), computed apart from this library.
SAMPLES = {
    2: (877, 2952),
    3: (1154, 4061),
    4: (2125, 7942),
    5: (5313, 20696),
    6: (22226, 88347),
    7: (145329, 580759),
}


def test_graphlet_samples_reference_values():
    for size, expected in SAMPLES.items():
        assert (graphlet_samples(size, 0.1, 0.05), graphlet_samples(size, 0.05, 0.1)) == expected
    # 12,346 graphs on 8 nodes (Harary & Palmer), 2^6 patterns of 4 nodes.
    assert graphlet_samples(8, 1.0, 0.5) == int(np.ceil(2 * (12346 * np.log(2) + np.log(2))))
    assert graphlet_samples(4, 0.1, 0.05, features="match") == int(np.ceil(200 * (64 * np.log(2) + np.log(20))))


def test_graphlet_samples_counts_classes_as_the_library_does():
    for size in range(2, 7):
        n_classes = len(canonical_forms(size).representatives)
        assert graphlet_samples(size, 1.0, 0.5) == int(np.ceil(2 * (n_classes + 1) * np.log(2)))


def test_graphlet_samples_against_monte_carlo():
    rng, eps, delta = np.random.default_rng(0), 0.1, 0.05
    for size, n_classes in ((2, 2), (4, 11)):
        law = np.full(n_classes, 1 / n_classes)  # the law with the largest errors
        s = graphlet_samples(size, eps, delta)
        errors = np.abs(rng.multinomial(s, law, 4000) / s - law).sum(axis=1)
        assert (errors >= eps).mean() <= delta
        assert 1.2 < eps / np.quantile(errors, 1 - delta) < 2  # a union bound over sets, not far off


def test_mmd_error_by_hand():
    m, s, delta = 500, 2000, 0.1
    features = 4 * np.sqrt(np.log(60)) / np.sqrt(500)
    samples = 8 * (1 + np.sqrt(2 * np.log(30))) / np.sqrt(2000)
    assert mmd_error(m, s, delta) == pytest.approx(features + samples, rel=1e-14)
    assert mmd_error(m, s, delta, features="gaussian") == pytest.approx(2 * (features + samples), rel=1e-14)
    for exact in ("gaussian_complex", "gaussian", "match", "match_iso"):
        assert mmd_error(None, s, delta, features=exact) == pytest.approx(samples, rel=1e-14)
    assert mmd_error(4 * m, 4 * s, delta) == pytest.approx(mmd_error(m, s, delta) / 2, rel=1e-14)


@pytest.mark.parametrize("features", ["gaussian_complex", "gaussian"])
def test_mmd_error_against_monte_carlo(features):
    rng, m, s, delta, sigma = np.random.default_rng(0), 400, 900, 0.05, 1.0
    bits = unpack_graphlets(np.arange(64), 4).astype(float)
    p, q = rng.dirichlet(np.full(64, 0.2)), rng.dirichlet(np.full(64, 0.2))
    hamming = (bits[:, None] != bits[None]).sum(axis=2)
    K = np.exp(-hamming / (2 * sigma**2))
    true = (p - q) @ K @ (p - q)
    errors = []
    for _ in range(300):
        angles = bits @ rng.standard_normal((6, m)) / sigma
        if features == "gaussian":
            phi = np.sqrt(2 / m) * np.cos(angles + rng.uniform(0, 2 * np.pi, m))
        else:
            phi = np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(m)
        gap = (rng.multinomial(s, p) - rng.multinomial(s, q)) / s @ phi
        errors.append(abs(gap @ gap - true))
    bound = mmd_error(m, s, delta, features=features)
    assert max(errors) < bound
    assert bound / np.quantile(errors, 1 - delta) > 20  # loose, so that holding proves little


def test_bad_numbers():
    for size in (1, 12, 3.5, True):
        with pytest.raises(ValueError, match="size must be"):
            graphlet_samples(size, 0.1, 0.05)
    for eps in (0, 2, -0.1, "a", np.nan):
        with pytest.raises(ValueError, match="eps must lie between 0 and 2"):
            graphlet_samples(3, eps, 0.05)
    with pytest.raises(ValueError, match="eps=1e-200 needs more than 1e308 samples or features"):
        graphlet_samples(3, 1e-200, 0.05)
    for delta in (0, 1, np.nan, None):
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            graphlet_samples(3, 0.1, delta)
        with pytest.raises(ValueError, match="delta must lie between 0 and 1"):
            mmd_error(100, 100, delta)
    with pytest.raises(ValueError, match="features must be 'match_iso' or 'match'"):
        graphlet_samples(3, 0.1, 0.05, features="gaussian")
    with pytest.raises(ValueError, match="n_components must be an integer >= 1, got 0"):
        mmd_error(0, 100, 0.1)
    with pytest.raises(ValueError, match="n_samples must be an integer >= 1"):
        mmd_error(100, 0, 0.1)
    with pytest.raises(ValueError, match=r"optical features .* are not bounded"):
        mmd_error(100, 100, 0.1, features="optical")
    with pytest.raises(ValueError, match="give n_components=None"):
        mmd_error(100, 100, 0.1, features="match")
    with pytest.raises(ValueError, match="features must be 'gaussian_complex', 'gaussian'"):
        mmd_error(100, 100, 0.1, features="gaussian_eig")
