"""``KernelRidge(alpha="auto")``: the regularisation of least leave-one-out error."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.kernels import Spectrum
from tests.naive.kernel_ridge import leave_one_out_errors

ALPHAS = [10 ** (2 - i / 4) for i in range(25)]


def linear(X, Y=None):
    """The inner product of vectors, in a fixed order of sums."""
    return np.einsum("id,jd->ij", X, X if Y is None else Y)


def noisy(n, outputs=None, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice([*"abc"], size=rng.integers(3, 12))) for _ in range(n)]
    y = np.array([x.count("a") - 0.5 * x.count("b") for x in X]) + noise * rng.normal(size=n)
    return X, y if outputs is None else np.column_stack([y, rng.normal(size=n) - 2 * y])


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 25), outputs=st.sampled_from([None, 2]))
def test_alpha_has_the_least_error_of_leaving_one_out(seed, n, outputs):
    X, y = noisy(n, outputs, seed, noise=float(seed % 7))
    kernel = Spectrum(k=2)
    model = sm.KernelRidge(kernel, alpha="auto").fit(X, y)
    K = kernel(X)
    scale = np.diag(K).mean()
    errors = [np.mean(leave_one_out_errors(K, y, alpha * scale) ** 2) for alpha in ALPHAS]
    assert model.loo_error_ == pytest.approx(min(errors), rel=1e-6)
    chosen = int(np.argmin(np.abs(np.log(np.array(ALPHAS) * scale / model.alpha_))))
    assert model.alpha_ == pytest.approx(ALPHAS[chosen] * scale)
    assert errors[chosen] == pytest.approx(min(errors), rel=1e-6)


def test_the_fit_is_that_with_this_alpha():
    X, y = noisy(40, 2)
    auto = sm.KernelRidge(Spectrum(k=2), alpha="auto").fit(X[:30], y[:30])
    by_hand = sm.KernelRidge(Spectrum(k=2), alpha=auto.alpha_).fit(X[:30], y[:30])
    np.testing.assert_array_equal(auto.dual_coef_, by_hand.dual_coef_)
    assert (by_hand.alpha_, by_hand.loo_error_) == (auto.alpha_, None)
    assert clone(auto).alpha == "auto"


def test_noise_raises_alpha():
    alphas = [sm.KernelRidge(Spectrum(k=1), "auto").fit(*noisy(60, noise=noise)).alpha_ for noise in (0.0, 1.0, 30.0)]
    assert alphas[0] < alphas[1] < alphas[2]


def test_scikit_learn_chooses_the_same_alpha():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    y = X @ [1.0, -2.0, 0.5, 0.0] + rng.normal(size=50)
    model = sm.KernelRidge(linear, alpha="auto").fit(X, y)
    scale = (X**2).sum(axis=1).mean()
    theirs = RidgeCV(alphas=np.array(ALPHAS) * scale, fit_intercept=False).fit(X, y)
    assert model.alpha_ == pytest.approx(theirs.alpha_)
    assert model.loo_error_ == pytest.approx(-theirs.best_score_)
    np.testing.assert_allclose(model.predict(X), theirs.predict(X), atol=1e-8)


def test_the_scale_of_kernel_and_targets_does_not_matter():
    X, y = noisy(40)
    one = sm.KernelRidge(Spectrum(k=2), "auto").fit(X, y)
    eight = sm.KernelRidge(sm.kernels.Sum([Spectrum(k=2)], weights=[8.0]), "auto").fit(X, 10 * y)
    assert eight.alpha_ == pytest.approx(8 * one.alpha_)
    assert eight.loo_error_ == pytest.approx(100 * one.loo_error_)
    np.testing.assert_allclose(eight.predict(X), 10 * one.predict(X), rtol=1e-8)


def test_kernels_that_are_not_positive_semi_definite():
    swap = np.array([[0.0, -1.0], [-1.0, 0.0]])  # eigenvalues 1 and -1; its diagonal is 0, so alpha is 1e-4 to 100
    alpha = sm.KernelRidge(lambda X, Y=None: swap, "auto").fit(["a", "b"], [1.0, -1.0]).alpha_
    assert alpha > 2  # below, the matrix K + alpha I would not be safely positive definite
    with pytest.raises(ValueError, match=r"eigenvalue -1e.*set alpha to a number, or take a positive semi-definite"):
        sm.KernelRidge(lambda X, Y=None: 1e5 * swap, "auto").fit(["a", "b"], [1.0, -1.0])


def test_few_and_strange_objects():
    X, y = ["a"], [3.0]
    assert sm.KernelRidge(Spectrum(k=1), "auto").fit(X, y).loo_error_ == pytest.approx(9.0)  # predicted by 0
    nothing_alike = sm.KernelRidge(lambda X, Y=None: np.zeros((3, 3)), "auto")
    assert nothing_alike.fit(["a", "b", "c"], [1.0, 2.0, 3.0]).predict(["a", "b", "c"]).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ValueError, match=r'alpha must be a number >= 0, got .*"auto"'):
        sm.KernelRidge(Spectrum(k=1), "loo").fit(X, y)
    with sm.config(max_memory=31 * 8), pytest.raises(ValueError, match=r"alpha='auto' for 4 objects.*set alpha to a"):
        sm.KernelRidge(Spectrum(k=1), "auto").fit(["a", "b", "c", "d"], [1.0, 2.0, 3.0, 4.0])


def test_it_is_saved_and_explained(tmp_path):
    X, y = noisy(40, noise=0.01)
    machine = TransformedTargetRegressor(sm.KernelRidge(Spectrum(k=1), "auto"), transformer=StandardScaler())
    machine.fit(X, 50 + 9 * y)
    loaded = sm.load(sm.save(machine, tmp_path / "m.similia"))
    np.testing.assert_array_equal(loaded.predict(X), machine.predict(X))
    assert loaded.regressor_.alpha_ == machine.regressor_.alpha_
    assert loaded.regressor_.loo_error_ == machine.regressor_.loo_error_
    assert sm.explain(machine, "aab").value == pytest.approx(float(machine.predict(["aab"])[0]))
