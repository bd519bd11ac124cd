"""Parameters of the kernel of a Gaussian process: grids that share work, weights by gradients, fits on Dask."""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor as TheirRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import ParameterGrid

import similia as sm
from similia.kernels import Normalized, Product, Spectrum, Sum
from similia.learn.evidence import AllPairs, integrated, most_likely, weight_slopes
from similia.learn.kernel_grid import KernelGrid
from similia.similarity import Kernel
from tests.learn.test_gaussian_process import points, strings


class Counted(Kernel):
    """A spectrum kernel that notes its Gram matrices, and how often it was decided for a collection."""

    grams, decisions, pairs = [], [], Counter()

    def __init__(self, k=1):
        self.k = k

    def __call__(self, X, Y=None):
        if Y is None and len(X) > 2:
            self.grams.append(self.k)
        self.pairs[self.k] += len(X) * len(X if Y is None else Y)
        return Spectrum(self.k)(X, Y)

    def diag(self, X):
        return Spectrum(self.k).diag(X)

    def decided(self, X):
        self.decisions.append(self.k)
        return self


@pytest.fixture(autouse=True)
def _forget():
    Counted.grams.clear()
    Counted.decisions.clear()
    Counted.pairs.clear()


def pair(first=1, second=3):
    return Sum([Counted(first), Counted(second)])


GRIDS = [  # kernel, parameters, the parts that are computed
    (pair(), {"weights": [[1, 0], [1, 1], [1, 5]]}, [1, 3]),
    (pair(), {"k0__k": [1, 2], "weights": [[1, 1], [1, 5]]}, [1, 2, 3]),
    (pair(), {"k0__k": [1, 2], "k1__k": [3, 4, 5]}, [1, 2, 3, 4, 5]),
    (pair(), {"k1": [Counted(2), Spectrum(k=4)], "weights": [[1, 1], [1, 5]]}, [1, 2]),
    (Product([Counted(1), Counted(2)]), {"k1__k": [2, 3]}, [1, 2, 3]),
    (Sum([Product([Counted(1), Counted(2)]), Counted(4)]), {"k0__k1__k": [2, 3], "k1__k": [4, 5]}, [1, 2, 3, 4, 5]),
    (Sum([pair(1, 2), Counted(4)]), {"k0__weights": [[1, 2], [2, 1]], "k1__k": [4, 5]}, [1, 2, 4, 5]),
    (Sum([pair(1, 2), Counted(4)]), {"weights": [[1, 2], [2, 1]]}, [1, 2, 4]),
    (pair(), {"kernels": [[Counted(1), Counted(2)], [Counted(1), Counted(4)]]}, [1, 1, 2, 4]),
    (Sum([Normalized(pair(1, 2)), Counted(4)]), {"k0__kernel__k0__k": [1, 3]}, [1, 2, 2, 3, 4]),
    (Counted(), {"k": [2, 3]}, [2, 3]),
]


@pytest.mark.parametrize(("kernel", "parameters", "computed"), GRIDS)
def test_combinations_share_the_gram_matrices_of_parts(kernel, parameters, computed):
    X, y = strings(40)
    alone = [
        sm.GaussianProcessRegressor(clone(kernel).set_params(**values)).fit(X, y)
        for values in ParameterGrid(parameters)
    ]
    best = max(alone, key=lambda model: model.log_marginal_likelihood_)
    Counted.grams.clear()
    model = sm.GaussianProcessRegressor(kernel, parameters).fit(X, y)
    assert sorted(Counted.grams) == computed
    assert model.log_marginal_likelihood_ == best.log_marginal_likelihood_
    assert repr(model.kernel_) == repr(best.kernel_)
    np.testing.assert_array_equal(model.predict(X), best.predict(X))


def test_weights_alone_decide_nothing_anew_and_little_memory_keeps_nothing():
    X, y = strings(40)
    model = sm.GaussianProcessRegressor(pair(), {"weights": [[1, 1], [1, 5], [5, 1]]}).fit(X, y)
    assert Counted.decisions == [1, 3]
    Counted.grams.clear()
    with sm.config(max_memory=5 * 8 * 40**2):
        again = sm.GaussianProcessRegressor(pair(), {"weights": [[1, 1], [1, 5], [5, 1]]}).fit(X, y)
    assert sorted(Counted.grams) == [1, 1, 1, 3, 3, 3]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    Counted.decisions.clear()
    few = sm.GaussianProcessRegressor(pair(), {"weights": [[1, 1], [1, 5]]}, n_landmarks=9, random_state=0).fit(X, y)
    assert Counted.decisions[:2] == [1, 3]
    assert len(few.objects_) == 9


@pytest.mark.parametrize("kind", [sm.GaussianProcessRegressor, sm.GaussianProcessClassifier])
@pytest.mark.parametrize("m", [12, 90])
@pytest.mark.parametrize(("kernel", "parameters"), [(kernel, values) for kernel, values, _ in GRIDS])
def test_combinations_share_columns_and_the_best_is_then_fitted_alone(kind, kernel, parameters, m):
    X, y = strings(90)
    y = y if kind is sm.GaussianProcessRegressor else y > y.mean()

    def fit(kernel, parameters=None):
        Counted.pairs.clear()
        return kind(kernel, parameters, n_landmarks=m, random_state=0).fit(X, y), Counter(Counted.pairs)

    model, pairs = fit(kernel, parameters)
    alone = [fit(clone(kernel).set_params(**values)) for values in ParameterGrid(parameters)]
    evidences = [one.log_marginal_likelihood_ for one, _ in alone]
    same, own = next(pair for pair in alone if repr(pair[0].kernel_) == repr(model.kernel_))
    assert model.log_marginal_likelihood_ == same.log_marginal_likelihood_
    assert model.log_marginal_likelihood_ >= max(evidences) - (0.01 if m == len(X) else 5)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    each = dict.fromkeys(pairs, 1) | {k: 2 for k in (1, 2) if "kernels" in parameters}  # `kernels` replaces all parts
    each |= {2: 2} if isinstance(kernel, Sum) and isinstance(kernel.kernels[0], Normalized) else {}
    for k, n_pairs in (pairs - own).items():
        assert n_pairs <= each[k] * (len(X) * m + 8 * 8 * m)  # columns, and blocks of 8 proposals


@pytest.mark.parametrize(("kernel", "parameters"), [(kernel, values) for kernel, values, _ in GRIDS])
def test_columns_that_are_kept_give_the_bits_of_the_kernel_at_the_same_landmarks(kernel, parameters):
    X, estimator = strings(60)[0], sm.GaussianProcessRegressor(kernel)
    grid = KernelGrid(kernel, parameters)
    combinations = [*grid.read(estimator, X)]
    found = [*grid.at_common_landmarks(combinations, 9, 0)]
    with sm.config(max_memory=8 * 60 * 9 * 3 - 1):  # not a single part
        plain = [*grid.at_common_landmarks(combinations, 9, 0)]
    residuals, bound = [], 0.0
    for (columns, positions), (embedding, objects), (own, _, _) in zip(found, plain, combinations, strict=True):
        assert isinstance(positions, np.ndarray)
        assert not isinstance(objects, np.ndarray)
        assert embedding.kernel_ is not columns.kernel_
        np.testing.assert_array_equal(columns.landmark_indices_, found[0][0].landmark_indices_)
        np.testing.assert_array_equal(embedding.landmark_indices_, columns.landmark_indices_)
        np.testing.assert_array_equal(columns.transform(positions), embedding.transform(objects))
        K, landmarks = own(X) / own.diag(X).mean(), columns.landmark_indices_
        residuals.append(np.trace(K - K[:, landmarks] @ np.linalg.pinv(K[np.ix_(landmarks, landmarks)]) @ K[landmarks]))
        bound = bound + K
    left = bound - bound[:, landmarks] @ np.linalg.pinv(bound[np.ix_(landmarks, landmarks)]) @ bound[landmarks]
    assert sum(residuals) <= np.trace(left) * (1 + 1e-9)


def test_a_kernel_that_is_zero_among_the_common_landmarks_gets_others():
    X = ["abc"] * 40 + ["xyzxyzxyzxyz", "xyzxyzxyzxyy"]
    kernel, found = Spectrum(k=1), []
    for seed in range(6):
        grid = KernelGrid(kernel, {"k": [1, 10]})
        combinations = [*grid.read(sm.GaussianProcessRegressor(kernel), X)]
        pair = [*grid.at_common_landmarks(combinations, 1, seed)]
        found.append(pair[0][0].landmark_indices_[0] < 40)
        assert pair[1][0].landmark_indices_[0] >= 40
    assert any(found)


@pytest.mark.parametrize("kind", [sm.GaussianProcessRegressor, sm.GaussianProcessClassifier])
def test_of_several_kernels_the_one_of_largest_evidence_is_fitted(kind, tmp_path):
    X, y = strings(60)
    y = y if kind is sm.GaussianProcessRegressor else np.where(y > y.mean(), "up", "down")
    kernels = [Spectrum(k=5), pair(1, 2), Spectrum(k=2, normalize=True)]
    model = kind(kernels, random_state=0).fit(X, y)
    alone = [kind(kernel, random_state=0).fit(X, y) for kernel in kernels]
    np.testing.assert_array_equal(model.evidences_, [one.log_marginal_likelihood_ for one in alone])
    best = alone[int(np.argmax(model.evidences_))]
    assert repr(model.kernel_) == repr(best.kernel_)
    np.testing.assert_array_equal(model.predict(X), best.predict(X))
    assert len(best.evidences_) == 0
    plain = kind([Spectrum(k=5), Spectrum(k=2)], random_state=0).fit(X, y)
    sm.save(plain, tmp_path / "m.similia")
    again = sm.load(tmp_path / "m.similia")
    np.testing.assert_array_equal(again.evidences_, plain.evidences_)
    np.testing.assert_array_equal(again.predict(X), plain.predict(X))
    assert repr(again.kernel) == repr(plain.kernel)


@pytest.mark.parametrize("kind", [sm.GaussianProcessRegressor, sm.GaussianProcessClassifier])
def test_several_kernels_are_compared_on_a_sample_with_all_kinds_of_targets(kind, monkeypatch):
    monkeypatch.setattr("similia.learn.gaussian_process._SAMPLE", 20)
    X, y = strings(101)
    y = y if kind is sm.GaussianProcessRegressor else np.arange(101) == 40  # a class of one object
    kernels = [Spectrum(k=1), Spectrum(k=2)]
    model = kind(kernels, random_state=0).fit(X, y)
    rows = np.sort(np.argsort(y, kind="stable")[[int(i) for i in np.linspace(0, 100, 20)]])
    sample = [kind(kernel, random_state=0).fit([X[i] for i in rows], y[rows]) for kernel in kernels]
    np.testing.assert_array_equal(model.evidences_, [one.log_marginal_likelihood_ for one in sample])
    whole = kind(kernels[int(np.argmax(model.evidences_))], random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), whole.predict(X))
    bags = pytest.importorskip("dask.bag")
    there = clone(model).fit(bags.from_sequence(X, npartitions=3), y)
    np.testing.assert_array_equal(there.evidences_, model.evidences_)


def three_parts(n, seed):
    rng = np.random.default_rng(seed)
    factors = [rng.normal(size=(n, size)) for size in (n + 2, n, n + 5)]
    return [F @ F.T / F.shape[1] * scale for F, scale in zip(factors, (1, 20, 0.3), strict=True)], rng.normal(size=n)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, 20), noise=st.sampled_from([None, 0.3]), average=st.booleans())
def test_slopes_are_finite_differences(seed, n, noise, average):
    grams, y = three_parts(n, seed)
    y -= y.mean()
    logs, units = np.random.default_rng(seed).normal(size=3), np.array([np.trace(K) / n for K in grams])
    estimate = partial(integrated if average else most_likely, noise=noise)

    def at(logs):
        prior = AllPairs(sum(np.exp(log) / unit * K for log, unit, K in zip(logs, units, grams, strict=True)), y)
        return prior, estimate(prior)

    prior, found = at(logs)
    weights = np.exp(logs) / units
    slopes = weights * weight_slopes(prior, found.components, grams)
    slopes -= weights * units / (weights @ units) * slopes.sum()
    step = 1e-4
    expected = [(at(logs + one)[1].evidence - at(logs - one)[1].evidence) / (2 * step) for one in step * np.eye(3)]
    np.testing.assert_allclose(slopes, expected, atol=2e-5 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("how", ["integrated", "maximized"])
@pytest.mark.parametrize("seed", range(4))
def test_no_weights_of_a_grid_have_a_larger_evidence(how, seed):
    X, y = strings(60, seed)
    kernel = Sum([Spectrum(k=k, normalize=True) for k in (1, 2, 3)])
    found = sm.GaussianProcessRegressor(kernel, {"weights": "auto"}, hyperparameters=how).fit(X, y)
    grid = [[a, b, 10 - a - b] for a in range(0, 11, 2) for b in range(0, 11 - a, 2)]
    tried = sm.GaussianProcessRegressor(kernel, {"weights": grid}, hyperparameters=how).fit(X, y)
    assert found.log_marginal_likelihood_ >= tried.log_marginal_likelihood_ - 1e-3
    alone = sm.GaussianProcessRegressor(found.kernel_, hyperparameters=how).fit(X, y)
    assert alone.log_marginal_likelihood_ == pytest.approx(found.log_marginal_likelihood_)
    assert np.mean(found.kernel_.diag(X)) == pytest.approx(1)
    assert kernel.weights is None


def test_scikit_learn_finds_the_same_weights():
    X, y = points(80)
    lengths = (0.7, 4.0)
    kernel = Sum([sm.kernels.RBF(gamma=1 / (2 * length**2)) for length in lengths])
    model = sm.GaussianProcessRegressor(kernel, {"weights": "auto"}, hyperparameters="maximized").fit(X, y)
    parts = [ConstantKernel(1.0, (1e-4, 1e6)) * RBF(length, "fixed") for length in lengths]
    theirs = TheirRegressor(parts[0] + parts[1] + WhiteKernel(0.1), alpha=0, n_restarts_optimizer=3, random_state=0)
    theirs.fit(X, y - model.intercept_)
    assert model.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, abs=1e-3)
    factors = [theirs.kernel_.k1.k1.k1.constant_value, theirs.kernel_.k1.k2.k1.constant_value]
    np.testing.assert_allclose(np.array(model.kernel_.weights) * model.scale_, factors, rtol=0.02)


def test_a_useless_part_gets_no_weight_and_a_saved_model_keeps_the_weights(tmp_path):
    rng = np.random.default_rng(0)
    X, _ = strings(80)
    y = np.array([float(x.count("ab")) for x in X]) + 0.05 * rng.normal(size=80)
    kernel = Sum([Spectrum(k=2), Product([Spectrum(k=7), Spectrum(k=7)]), Spectrum(k=30)])  # the last is always 0
    model = sm.GaussianProcessRegressor(kernel, {"weights": "auto", "k0__k": [1, 2]}).fit(X, y)
    assert model.kernel_.kernels[0].k == 2
    assert model.kernel_.weights[0] > 0 == model.kernel_.weights[1] == model.kernel_.weights[2]
    sm.save(model, tmp_path / "model.similia")
    np.testing.assert_array_equal(sm.load(tmp_path / "model.similia").predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (sm.GaussianProcessRegressor(Spectrum(), {"weights": "auto"}), "weights of a similia.kernels.Sum"),
        (sm.GaussianProcessRegressor(pair(), {"weights": "auto"}, n_landmarks=5), "set n_landmarks=None"),
        (sm.GaussianProcessClassifier(pair(), {"weights": "auto"}), "only GaussianProcessRegressor finds weights"),
        (sm.GaussianProcessRegressor(pair(), {"weights": [[1, 2, 3]]}), "one number for each of 2 kernels"),
        (sm.GaussianProcessRegressor([]), "a list of one or more"),
        (sm.GaussianProcessClassifier([Spectrum(), 3]), r"kernel\[1\] is 3"),
        (sm.GaussianProcessRegressor([Spectrum()], {"k": [1]}), "with each combination into the list"),
        (sm.GaussianProcessRegressor(pair(), {"h__weights": [[1, 2]]}), "Invalid parameter 'h'"),
    ],
)
def test_what_has_no_weights_to_find_is_refused(model, words):
    X, y = strings(12)
    with pytest.raises((ValueError, TypeError), match=words):
        model.fit(X, y > y.mean() if hasattr(model, "predict_proba") else y)


def test_open_weights_need_memory_for_the_parts():
    with sm.config(max_memory=6 * 8 * 40**2), pytest.raises(ValueError, match="give lists of weights"):
        sm.GaussianProcessRegressor(pair(), {"weights": "auto"}).fit(*strings(40))


@pytest.mark.parametrize("parameters", [None, {"k": [1, 2]}])
def test_a_dask_collection_gives_the_fit_in_memory(parameters):
    bags = pytest.importorskip("dask.bag")
    X, y = strings(150)
    lazy = bags.from_sequence(X, npartitions=4)
    kernel = Spectrum(k=2, normalize=True)
    few = sm.GaussianProcessRegressor(kernel, parameters, n_landmarks=20, random_state=0)
    pairs = sm.GaussianProcessRegressor(kernel, parameters)
    for model in (few, pairs):
        here = clone(model).fit(X, y)
        there = model.fit(lazy, y)
        np.testing.assert_array_equal(there.indices_, here.indices_)
        np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(there.loo_std_, here.loo_std_, rtol=1e-7)
        assert there.log_marginal_likelihood_ == pytest.approx(here.log_marginal_likelihood_, rel=1e-9)
    classes = sm.GaussianProcessClassifier(kernel, parameters, n_landmarks=20, random_state=0)
    here = classes.fit(X, y > 0).predict_proba(X)
    np.testing.assert_allclose(classes.fit(lazy, y > 0).predict_proba(X), here, rtol=1e-9)


@pytest.mark.parametrize("memory", [2**30, 8 * 90 * 9 * 4 - 1, 8 * 90 * 9 * 3 - 1])  # for both parts, one, or none
def test_workers_and_little_memory_choose_the_same_weights(memory):
    bags = pytest.importorskip("dask.bag")
    X, y = strings(90)
    model = sm.GaussianProcessRegressor(pair(), {"weights": [[1, 0], [1, 1], [1, 9]]}, n_landmarks=9, random_state=0)
    here = clone(model).fit(X, y)
    with sm.config(max_memory=memory):
        there = model.fit(bags.from_sequence(X, npartitions=3), y)
    assert there.kernel_.weights == here.kernel_.weights
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-9, atol=1e-9)


def test_blocks_of_dask_are_those_in_memory():
    arrays = pytest.importorskip("dask.array")
    X, y = points(900)
    model = sm.GaussianProcessRegressor(sm.kernels.RBF(gamma="median"), n_landmarks=30, random_state=0)
    with sm.config(max_memory=8 * (3 * 30 + 6 * 64) * 200):  # blocks of 200 objects
        here = model.fit(X, y).predict(X, return_std=True)
        there = model.fit(arrays.from_array(X, chunks=(370, 3)), arrays.from_array(y)).predict(X, return_std=True)
        left_out = model.loo_mean_
    np.testing.assert_allclose(left_out, model.fit(X, y).loo_mean_, rtol=1e-9, atol=1e-9)  # in one block
    assert model.n_features_in_ == 3
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_progress_shows_combinations_and_steps(capfd):
    X, y = strings(30)
    with sm.config(progress=True):
        sm.GaussianProcessRegressor(pair(), {"k0__k": [1, 2]}).fit(X, y)
        assert "Gaussian process: 4/5" in capfd.readouterr().err
        sm.GaussianProcessClassifier(pair(), {"k0__k": [1, 2]}).fit(X, y > 0)
        assert "Gaussian process: 2/3" in capfd.readouterr().err
