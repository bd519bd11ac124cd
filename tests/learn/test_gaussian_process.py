"""Gaussian processes: evidence, posterior, leaving one out, samples, suggestions, classes; beside their definitions.

`test_integrated_process.py` tests the average over hyperparameters.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx
from scipy.stats import norm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.gaussian_process import GaussianProcessClassifier as TheirClassifier
from sklearn.gaussian_process import GaussianProcessRegressor as TheirRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

import similia as sm
from similia.learn.gaussian_process_classifier import _averaged_logistic
from tests.naive import gaussian_process as naive

maximized = partial(sm.GaussianProcessRegressor, hyperparameters="maximized")
SPECTRUM = sm.kernels.Spectrum(k=2, normalize=True)
GAMMA = 0.3
CURVE = sm.kernels.RBF(gamma=GAMMA)


def strings(n, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice([*"abc"], size=rng.integers(3, 12))) for _ in range(n)]
    return X, np.array([x.count("ab") - 0.5 * x.count("ca") for x in X]) + noise * rng.normal(size=n)


def points(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.1 * rng.normal(size=n)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 30), noise=st.sampled_from(["auto", 0.2, 3.0]))
def test_predictions_are_those_of_the_joint_distribution(seed, n, noise):
    X, y = strings(n + 4, seed)
    model = maximized(SPECTRUM, noise=noise).fit(X[:n], y[:n])
    K, known, asked = model.scale_ * SPECTRUM(X), range(n), range(n, n + 4)
    if noise != "auto":
        assert model.noise_ == pytest.approx(noise)
    assert model.log_marginal_likelihood_ == pytest.approx(
        naive.evidence(K[:n, :n], y[:n], model.intercept_, model.noise_), rel=1e-6, abs=1e-6
    )
    mean, covariance = naive.conditioned(K, known, asked, y[:n], model.intercept_, model.noise_)
    found, cov = model.predict(X[n:], return_cov=True, with_noise=False)
    scale = np.abs(y).max()
    np.testing.assert_allclose(found, mean, atol=1e-6 * scale)
    np.testing.assert_allclose(cov, covariance, atol=1e-6 * model.scale_)
    std = model.predict(X[n:], return_std=True)[1]
    np.testing.assert_allclose(std**2, covariance.diagonal() + model.noise_**2, atol=1e-6 * model.scale_)
    np.testing.assert_array_equal(model.predict(X[n:]), found)


@pytest.mark.parametrize("n_landmarks", [None, 40])
def test_leaving_one_out_is_a_fit_without_that_object(n_landmarks):
    X, y = strings(40)
    model = maximized(SPECTRUM, n_landmarks=n_landmarks, random_state=0).fit(X, y)
    K = model.scale_ * SPECTRUM(X)
    for i in (0, 7, 39):
        others = np.delete(np.arange(40), i)
        mean, covariance = naive.conditioned(K, others, [i], y[others], model.intercept_, model.noise_)
        assert model.loo_mean_[i] == pytest.approx(mean[0], abs=1e-6)
        assert model.loo_std_[i] == pytest.approx(np.sqrt(covariance[0, 0] + model.noise_**2), rel=1e-6)


@pytest.mark.parametrize("n_landmarks", [None, 80])
def test_no_scale_noise_or_mean_has_a_larger_evidence(n_landmarks):
    X, y = points(80)
    model = maximized(CURVE, n_landmarks=n_landmarks, random_state=0).fit(X, y)
    K = CURVE(X)

    def at(scale, noise, mean=model.intercept_):
        return naive.evidence(scale * K, y, mean, noise)

    best = at(model.scale_, model.noise_)
    rng = np.random.default_rng(0)
    for mean in model.intercept_ + np.array([-0.3, -0.01, 0.01, 0.3]):
        assert at(model.scale_, model.noise_, mean) < best
    tries = [at(model.scale_ * np.exp(a), model.noise_ * np.exp(b)) for a, b in rng.normal(0, 0.5, (60, 2))]
    assert max(tries) < best + 1e-3 * abs(best)
    assert np.mean(np.array(tries) < best) > 0.9


def test_scikit_learn_has_the_same_process():
    X, y = points(80)
    model = maximized(CURVE).fit(X[:60], y[:60])
    curve = RBF(1 / np.sqrt(2 * GAMMA), "fixed")
    kernel = ConstantKernel(model.scale_) * curve + WhiteKernel(model.noise_**2)
    theirs = TheirRegressor(kernel, optimizer=None, alpha=0).fit(X[:60], y[:60] - model.intercept_)
    assert model.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_)
    (mean, std), (their_mean, their_std) = (m.predict(X[60:], return_std=True) for m in (model, theirs))
    np.testing.assert_allclose(mean, their_mean + model.intercept_, atol=1e-9)
    np.testing.assert_allclose(std, their_std, atol=1e-9)
    tuned = TheirRegressor(ConstantKernel() * curve + WhiteKernel(0.1), alpha=0).fit(X[:60], y[:60] - model.intercept_)
    assert model.log_marginal_likelihood_ > tuned.log_marginal_likelihood_value_ - 0.05


def test_landmarks_are_exact_if_all_objects_are_landmarks_and_a_lower_bound_if_not():
    X, y = points(120)
    exact = maximized(CURVE).fit(X[:100], y[:100])
    whole = maximized(CURVE, n_landmarks=100, random_state=0).fit(X[:100], y[:100])
    assert whole.log_marginal_likelihood_ == pytest.approx(exact.log_marginal_likelihood_)
    for one, other in zip(*(m.predict(X[100:], return_std=True) for m in (exact, whole)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-7)
    bounds = []
    for m in (10, 30, 60):
        few = maximized(CURVE, n_landmarks=m, random_state=0).fit(X[:100], y[:100])
        assert len(few.objects_) == len(few.dual_coef_) == m
        bounds.append(few.log_marginal_likelihood_)
        K = few.scale_ * CURVE(X[:100])
        assert few.log_marginal_likelihood_ <= naive.evidence(K, y[:100], few.intercept_, few.noise_)
        assert few.predict(X[100:], return_std=True)[1].min() > few.noise_
    assert bounds == sorted(bounds)


def test_the_bound_is_that_of_titsias():
    X, y = points(50)
    model = maximized(CURVE, n_landmarks=12, random_state=0).fit(X, y)
    Z = model.objects_
    Q = CURVE(X, Z) @ np.linalg.solve(CURVE(Z), CURVE(Z, X))
    lost = model.scale_ * (50 - np.trace(Q)) / (2 * model.noise_**2)
    bound = naive.evidence(model.scale_ * Q, y, model.intercept_, model.noise_) - lost
    assert model.log_marginal_likelihood_ == pytest.approx(bound, rel=1e-6)


def test_the_evidence_chooses_parameters_of_the_kernel():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice([*"abc"], size=9)) for _ in range(80)]
    y = np.array([float(x.count("abc")) for x in X]) + 0.05 * rng.normal(size=80)
    grid = {"k": [1, 2, 3, 5]}
    model = sm.GaussianProcessRegressor(sm.kernels.Spectrum(normalize=True), grid).fit(X, y)
    assert model.kernel_.k == 3
    alone = [sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=k, normalize=True)).fit(X, y) for k in grid["k"]]
    assert model.log_marginal_likelihood_ == max(one.log_marginal_likelihood_ for one in alone)
    np.testing.assert_array_equal(model.predict(X[:5]), alone[2].predict(X[:5]))
    classes = sm.GaussianProcessClassifier(sm.kernels.Spectrum(normalize=True), grid).fit(X, y > 0.5)
    assert classes.kernel_.k == 3


def test_scale_of_kernel_and_targets_does_not_matter():
    X, y = strings(40)
    one = sm.GaussianProcessRegressor(SPECTRUM).fit(X, y)
    other = sm.GaussianProcessRegressor(sm.kernels.Sum([SPECTRUM], weights=[8.0])).fit(X, 10 * y + 5)
    mean, std = one.predict(X[:6], return_std=True)
    found, its_std = other.predict(X[:6], return_std=True)
    np.testing.assert_allclose(found, 10 * mean + 5, rtol=1e-7)
    np.testing.assert_allclose(its_std, 10 * std, rtol=1e-7)
    assert other.scale_ == pytest.approx(100 * one.scale_ / 8)


def test_far_from_all_objects_nothing_is_known():
    X, y = strings(40)
    model = maximized(SPECTRUM).fit(X, y)
    with pytest.warns(UserWarning, match="similarity 0"):
        mean, std = model.predict(["xyxyxy"], return_std=True, with_noise=False)
    assert (mean[0], std[0]) == (pytest.approx(model.intercept_), pytest.approx(np.sqrt(model.scale_)))


def test_samples_have_the_mean_and_covariance_of_the_posterior():
    X, y = points(40)
    model = maximized(CURVE).fit(X[:30], y[:30])
    mean, covariance = model.predict(X[30:], return_cov=True, with_noise=False)
    samples = model.sample_y(X[30:], 20_000, random_state=1)
    assert samples.shape == (10, 20_000)
    error = np.sqrt(covariance.diagonal() / 20_000)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * error).all()
    most = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()) / 20_000)
    assert (np.abs(np.cov(samples) - covariance) < 8 * most).all()
    noisy = model.sample_y(X[30:], 20_000, random_state=1, with_noise=True)
    assert noisy.var() - samples.var() == pytest.approx(model.noise_**2, rel=0.2)
    np.testing.assert_array_equal(model.sample_y(X[30:], 3), model.sample_y(X[30:], 3))


@pytest.mark.filterwarnings("ignore:.*similarity 0")
def test_samples_where_nothing_varies():
    X, y = strings(20)
    model = maximized(sm.kernels.Spectrum(k=2), noise=0.3).fit(X, y)
    np.testing.assert_array_equal(model.sample_y(["", ""], 3), np.full((2, 3), model.intercept_))
    assert model.suggest(["", ""], method="thompson").tolist() == [0]
    drawn = sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=2), noise=0.3).fit(X, y).sample_y(["", ""], 3)
    np.testing.assert_allclose(drawn[0], drawn[1], atol=1e-3)  # only the intercept varies
    assert np.ptp(drawn[0]) > 1e-2


def improvement(mean, std, best):
    gain, z = mean - best, (mean - best) / std
    return gain * norm.cdf(z) + std * norm.pdf(z)


@pytest.mark.parametrize("maximize", [True, False])
def test_suggestions_go_to_the_best_and_do_not_repeat_what_is_known(maximize):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(60, 1))
    y = np.sin(X[:, 0])
    model = maximized(sm.kernels.RBF(gamma=1.0), noise=0.01).fit(X[:8], y[:8])
    pool = np.linspace(-3, 3, 61)[:, None]
    best = np.pi / 2 if maximize else -np.pi / 2
    for method in ("improvement", "thompson"):
        chosen = model.suggest(pool, 4, method, maximize=maximize)
        assert len(set(chosen.tolist())) == 4
        assert np.abs(pool[chosen, 0] - best).min() < 0.5
    first = model.suggest(pool, 1, maximize=maximize)[0]
    mean, std = model.predict(pool, return_std=True, with_noise=False)
    sign = 1 if maximize else -1
    gains = improvement(sign * mean, std, (sign * y[:8]).max())
    assert gains[first] == pytest.approx(gains.max())
    chosen = model.suggest(pool, 2, maximize=maximize)
    fantasy = maximized(sm.kernels.RBF(gamma=1.0), noise=0.01)
    fantasy.fit(np.vstack([X[:8], pool[chosen[:1]]]), np.append(y[:8], mean[chosen[0]]))
    # With the same scale, the variance after the supposed measurement is the one that chooses the second object.
    std2 = fantasy.predict(pool, return_std=True, with_noise=False)[1] * np.sqrt(model.scale_ / fantasy.scale_)
    gains = improvement(sign * mean, std2, max((sign * y[:8]).max(), sign * mean[chosen[0]]))
    gains[chosen[0]] = -1
    assert gains[chosen[1]] == pytest.approx(gains.max(), rel=0.05)


@pytest.mark.parametrize("maximize", [True, False])
def test_suggestions_where_all_improvements_are_smaller_than_any_float(maximize):
    X = np.linspace(0, 10, 60)[:, None]
    y = X[:, 0] + 0.05 * np.random.default_rng(0).normal(size=60)
    model = sm.GaussianProcessRegressor(sm.kernels.RBF(gamma=0.5), noise=0.05).fit(X, y)
    pool = np.array([4.0, 3.5, 6.0, 5.0, 6.5])[:, None]
    mean, std = model.predict(pool, return_std=True, with_noise=False)
    z = (y.max() - mean if maximize else mean - y.min()) / std
    assert (improvement(-z, np.ones(5), 0) == 0).all()
    logs = np.log(std) + norm.logpdf(z) + np.log1p(-z * np.sqrt(np.pi / 2) * erfcx(z / np.sqrt(2)))
    chosen = model.suggest(pool, 5, maximize=maximize)
    assert chosen[0] == np.argmax(logs)
    assert sorted(chosen) == [*range(5)]


def test_intervals_cover_what_they_say():
    X, y = load_diabetes(return_X_y=True)
    X = X / X.std(axis=0)
    inside = []
    for seed in range(4):
        order = np.random.default_rng(seed).permutation(len(X))
        train, test = order[:300], order[300:]
        model = sm.GaussianProcessRegressor(sm.kernels.RBF(), {"gamma": [0.003, 0.01, 0.03]}).fit(X[train], y[train])
        mean, std = model.predict(X[test], return_std=True)
        inside.append(np.abs(y[test] - mean) < 1.96 * std)
        assert model.score(X[test], y[test]) > 0.3
    assert 0.92 < np.mean(inside) < 0.98


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_are_those_of_scikit_learn(n_classes):
    X, y = points(150)
    labels = np.array(["low", "middle", "top"])[np.digitize(y, np.quantile(y[:100], [0.33, 0.66][: n_classes - 1]))]
    model = sm.GaussianProcessClassifier(CURVE).fit(X[:100], labels[:100])
    assert model.classes_.tolist() == ["low", "middle", "top"][:n_classes]
    for j in range(n_classes if n_classes > 2 else 1):
        positive = labels[:100] == model.classes_[j if n_classes > 2 else 1]
        kernel = ConstantKernel(model.scale_) * RBF(1 / np.sqrt(2 * GAMMA))
        theirs = TheirClassifier(kernel, optimizer=None).fit(X[:100], positive)
        mean, variance = theirs.latent_mean_and_variance(X[100:])
        K = CURVE(X[100:], model.objects_)
        np.testing.assert_allclose(K @ model.weights_[:, j], mean, atol=1e-5 * np.abs(mean).max())
        if n_classes == 2:
            assert model.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-3)
            exact = [naive.averaged_logistic(a, v) for a, v in zip(mean, variance, strict=True)]
            np.testing.assert_allclose(model.predict_proba(X[100:])[:, 1], exact, atol=1e-4)
    shares = model.predict_proba(X[100:])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert np.mean(model.predict(X[100:]) == labels[100:]) > 0.75


@pytest.mark.parametrize("variance", [1e-30, 0.3, 1.99, 2.01, 30.0, 1e4])
def test_the_averaged_logistic_function(variance):
    means = np.array([-30.0, -3.0, -0.7, 0.0, 0.1, 2.0, 12.0])
    found = _averaged_logistic(means, np.full(7, variance))
    np.testing.assert_allclose(found, [naive.averaged_logistic(m, variance) for m in means], atol=1e-9)


def test_probabilities_know_what_they_do_not_know():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    labels = rng.random(300) < 1 / (1 + np.exp(-2 * X[:, 0]))
    model = sm.GaussianProcessClassifier(CURVE, n_landmarks=50, random_state=0).fit(X[:200], labels[:200])
    machine = sm.KernelSVC(CURVE, probability=True).fit(X[:200], labels[:200])
    ours, theirs = (log_loss(labels[200:], m.predict_proba(X[200:])) for m in (model, machine))
    assert ours < theirs + 0.05
    far = model.predict_proba(np.array([[60.0, 60.0]]))
    assert far[0, 0] == pytest.approx(0.5, abs=1e-6)


def test_probabilities_of_an_object_that_is_far_on_the_wrong_side_of_every_class():
    y = np.append(np.arange(5800) % 29, np.full(400, 29))  # class 29 is twice as frequent as each other
    model = sm.GaussianProcessClassifier(sm.kernels.Spectrum(k=1), n_landmarks=1, random_state=0).fit(["A"] * 6200, y)
    shares = model.predict_proba(["A", "A" * 300])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert shares[0].argmax() == 29
    np.testing.assert_allclose(shares[1, :29], shares[1, 0])


def test_the_explanation_adds_up_and_names_the_deviation():
    X, y = strings(30)
    model = sm.GaussianProcessRegressor(SPECTRUM).fit(X, y)
    found = sm.explain(model, X[3])
    total = sum(part.contribution for part in found.parts) + (found.omitted or 0.0)
    assert found.value == pytest.approx(model.predict(X[3:4])[0])
    assert total == pytest.approx(found.value, abs=1e-6)
    assert f"standard deviation is {model.predict(X[3:4], return_std=True)[1][0]:.3g}" in found.note


def test_knowledge_adds_up_to_the_variance_that_is_gone():
    X, y = points(60)
    for n_landmarks in (None, 12):
        model = maximized(CURVE, n_landmarks=n_landmarks, random_state=0).fit(X[:50], y[:50])
        shares = model.knowledge(X[50:])
        std = model.predict(X[50:], return_std=True, with_noise=False)[1]
        assert shares.shape == (10, len(model.indices_))
        np.testing.assert_allclose(1 - shares.sum(axis=1), std**2 / model.scale_, atol=1e-9)
        np.testing.assert_allclose(CURVE(X[model.indices_], model.objects_).diagonal(), 1.0)


def test_a_decision_between_classes_is_explained():
    X, y = strings(30)
    for targets in (y > 0, np.digitize(y, [0, 1])):
        model = sm.GaussianProcessClassifier(SPECTRUM).fit(X, targets)
        found = sm.explain(model, X[4])
        column = 0 if len(model.classes_) == 2 else list(model.classes_).index(model.predict(X[4:5])[0])
        latent = (SPECTRUM(X[4:5], model.objects_) @ model.weights_)[0, column]
        assert abs(found.value) == pytest.approx(abs(latent))
        assert sum(part.contribution for part in found.parts) + (found.omitted or 0) == pytest.approx(found.value)
        K = SPECTRUM(X[4:5], model.objects_)[0]
        z, R, before = K @ model.components_, model.spreads_[column], model.scale_ * SPECTRUM(X[4:5])[0, 0]
        std = np.sqrt(before - model.scale_ * z @ z + np.square(z @ R).sum())
        assert f"this score is {std:.3g}, before training it was {np.sqrt(before):.3g};" in found.note
        solved = model.components_ @ (model.scale_ * np.eye(len(z)) - R @ R.T) @ z  # known variance: K @ solved
        assert K @ solved == pytest.approx(before - std**2)
        most = np.argmax(K * solved)
        assert f"reduce it most are {model.indices_[most]} ({(K * solved)[most] / before:.0%})" in found.note


def test_saved_and_loaded(tmp_path):
    X, y = strings(25)
    for model, targets in [
        (sm.GaussianProcessRegressor(SPECTRUM, {"k": [1, 2]}), y),
        (sm.GaussianProcessRegressor(SPECTRUM, n_landmarks=5, random_state=0), y),
        (sm.GaussianProcessClassifier(SPECTRUM, n_landmarks=7, random_state=0), y > 0),
    ]:
        sm.save(model.fit(X, targets), tmp_path / "model.similia")
        loaded = sm.load(tmp_path / "model.similia")
        np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        else:
            np.testing.assert_array_equal(loaded.predict(X, return_std=True)[1], model.predict(X, return_std=True)[1])
        assert clone(model).get_params().keys() == model.get_params().keys()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"noise": 0}, "noise must be"),
        ({"noise": "some"}, "noise must be"),
        ({"parameters": {}}, "parameters must be a dictionary"),
        ({"parameters": {"h": [1]}}, "Invalid parameter 'h'"),
        ({"parameters": {"k": "auto"}}, r"lists of values to try, got 'auto' for 'k'; 'auto' is for 'weights', if"),
        ({"parameters": {"k": 3}}, r"lists of values to try, got 3 for 'k'$"),
        ({"n_landmarks": 0}, "n_landmarks must be"),
        ({"kernel": sm.distances.DTW()}, "is a distance, expected a kernel"),
        ({"kernel": "auto"}, r"kernel is 'auto', .* list of kernels, such as similia.kernels.suggest_kernels\(X\)$"),
        ({"kernel": "spectrm"}, r"did you mean similia.kernels.Spectrum\(\)\?"),
    ],
)
def test_parameters_are_checked(change, message):
    X, y = strings(10)
    with pytest.raises((TypeError, ValueError), match=message):
        sm.GaussianProcessRegressor(SPECTRUM).set_params(**change).fit(X, y)


def test_bad_calls():
    X, y = strings(10)
    model = sm.GaussianProcessRegressor(SPECTRUM).fit(X, y)
    with pytest.raises(ValueError, match="both True"):
        model.predict(X, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="pool has 10 objects"):
        model.suggest(X, 11)
    with pytest.raises(ValueError, match="method must be"):
        model.suggest(X, 1, "best")
    with pytest.raises(ValueError, match=r"y must be one number per object, shape \(10,\), got shape \(10, 2\)"):
        model.fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="y has 9 numbers for 10 objects; give one number per object"):
        model.log_density(X, y[:9])
    with pytest.raises(ValueError, match="GaussianProcessRegressor requires y to be passed"):
        model.fit(X, None)
    for longer in (
        sm.GaussianProcessRegressor(sm.kernels.Spectrum(k=90), n_landmarks=3),
        sm.GaussianProcessClassifier(sm.kernels.Spectrum(k=90)),
    ):
        with pytest.raises(ValueError, match=r"all similarities among the landmarks are 0: .*strings shorter than k"):
            longer.fit(X, np.arange(10) % 5)
    with sm.config(max_memory="16KiB"), pytest.raises(ValueError, match="set n_landmarks=1000"):
        sm.GaussianProcessRegressor(SPECTRUM).fit(*strings(60))
    with pytest.raises(ValueError, match="two or more"):
        sm.GaussianProcessClassifier(SPECTRUM).fit(X, ["a"] * 10)


def test_an_indefinite_kernel_is_refused_or_cut():
    def indefinite(A, B=None):
        B = A if B is None else B
        return np.array([[-10.0 if a != b else 1.0 for b in B] for a in A])

    X, y = [f"w{i}" for i in range(12)], np.arange(12.0)
    with pytest.raises(ValueError, match="eigenvalues too far below 0"):
        sm.GaussianProcessRegressor(indefinite).fit(X, y)


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: sm.GaussianProcessRegressor(SPECTRUM).fit(["ab", "bc", "ca"], [2, 2, 2]), "y is 2 for all of the 3"),
        (
            lambda: sm.GaussianProcessRegressor(SPECTRUM).fit(["ab", "b"], [0, 1e-155]),
            "a range of 1e-155.*another unit",
        ),
        (lambda: sm.GaussianProcessRegressor(SPECTRUM, noise=1).fit(["ab", "b"], [0, 1e154]), "has a range of 1e.154"),
        (lambda: sm.GaussianProcessRegressor(SPECTRUM).fit(["ab"], [2]), "y has 1 sample"),
        (lambda: sm.GaussianProcessRegressor(SPECTRUM, noise=0).fit(["ab", "b"], [1, 2]), "for exact targets, give a"),
        (
            lambda: maximized(SPECTRUM, n_landmarks=0).fit(["ab", "b"], [1, 2]),
            "n_landmarks must be an integer >= 1, 'auto', or None",
        ),
        (
            lambda: sm.GaussianProcessClassifier(SPECTRUM, n_landmarks="all").fit(["ab", "b"], [1, 2]),
            "n_landmarks must be an integer >= 1, 'auto', or None",
        ),
    ],
)
def test_bad_input_of_both_processes(fit, words):
    with pytest.raises(ValueError, match=words):
        fit()


def test_constant_targets_are_possible_with_a_given_noise():
    model = sm.GaussianProcessRegressor(SPECTRUM, noise=0.1).fit(["ab", "bc", "ca"], [2, 2, 2])
    mean, std = model.predict(["ab", "xy"], return_std=True)
    np.testing.assert_allclose(mean, 2)
    assert (std >= 0.1).all()


def test_the_classifier_takes_all_objects_as_landmarks():
    X, y = ["ACAC", "CACA", "ACCA", "GGTT", "TTGG", "GTTG"], [0, 0, 0, 1, 1, 1]
    models = [
        sm.GaussianProcessClassifier(SPECTRUM, n_landmarks=m, random_state=0).fit(X, y) for m in (None, "auto", 6)
    ]
    for model in models[1:]:
        np.testing.assert_allclose(model.predict_proba(X), models[0].predict_proba(X))


@pytest.mark.parametrize("kernel", [rbf_kernel, sm.kernels.Sum([rbf_kernel])])  # a sum returns float64
def test_samples_of_a_kernel_with_float32_values(kernel):
    X = np.linspace(0, 1, 100, dtype=np.float32)[:, None]
    y = np.sin(6 * X[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=100)
    model = maximized(kernel).fit(X, y)
    samples = model.sample_y(X, 50)
    mean, std = model.predict(X, return_std=True, with_noise=False)
    assert (np.abs(samples.mean(axis=1) - mean) < 5 * (std + np.sqrt(1e-4 * model.scale_)) / np.sqrt(50)).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_stored_gram_matrix_is_not_overwritten(order):
    X, y = points(30)
    K = np.array(CURVE(X), order=order)
    kept = K.copy()
    model = maximized(lambda A, B=None: K if B is None else K[np.ix_(A[:, 0], B[:, 0])]).fit(np.arange(30)[:, None], y)
    np.testing.assert_array_equal(K, kept)
    np.testing.assert_allclose(model.predict(np.arange(30)[:, None]), maximized(CURVE).fit(X, y).predict(X), rtol=1e-6)
