"""HDClassifier against a hand-checked trace, its naive twin, and its laws."""

from __future__ import annotations

import ast
import csv
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import log_loss
from sklearn.utils.class_weight import compute_sample_weight

import similia as sm
from naive import similarities as naive
from similia import HDClassifier
from similia.core.config import limited_to
from similia.learn import hd_classifier, ridge
from similia.learn.prototypes import HeldOut

TRACE = Path(__file__).parents[1] / "reference" / "onlinehd_trace.csv"
laws = settings(max_examples=30, deadline=None)


def signs_of(codes):
    return naive.signs(codes).astype(float)


def random_problem(seed, n=60, n_bytes=12, n_classes=3, noise=0.35):
    """Codes around one centre per class with flipped bits; every class occurs."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(0, 2, (n_classes, 8 * n_bytes))
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    bits = centres[y] ^ (rng.random((n, 8 * n_bytes)) < noise)
    return np.packbits(bits, axis=1), y


problems = st.builds(
    random_problem,
    seed=st.integers(0, 10**6),
    n=st.integers(5, 60),
    n_bytes=st.sampled_from([1, 7, 8, 9, 40]),
    n_classes=st.integers(2, 5),
    noise=st.sampled_from([0.2, 0.35, 0.5]),
)
inits = st.sampled_from(["zeros", "bundle"])
updates = st.sampled_from(["perceptron", "averaged", "margin", "ridge"])


# ---- values known from elsewhere


def test_trace_of_algorithm_1():
    rows = list(csv.DictReader(TRACE.read_text().splitlines()))
    X = np.array([ast.literal_eval(row["enc"]) for row in rows[:5]])
    y = np.array([int(row["label"]) for row in rows[:5]])
    model = HDClassifier(learning_rate=0.5, shuffle=False)
    for start in range(0, 15, 5):
        model.partial_fit(X, y, classes=[0, 1, 2])
        last = rows[start + 4]
        expected = [[float(v) for v in ast.literal_eval(last[f"HV{j}_after"])] for j in range(3)]
        np.testing.assert_allclose(model.prototypes_, expected, rtol=0, atol=1e-12)
    mistakes = [sum(int(r["predict"]) != int(r["label"]) for r in rows[s : s + 5]) for s in (0, 5, 10)]
    assert model.n_updates_ == mistakes
    fitted = HDClassifier(max_iter=3, learning_rate=0.5, shuffle=False).fit(X, y)
    np.testing.assert_array_equal(fitted.prototypes_, model.prototypes_)


def test_worked_by_hand():
    # x0 (class 0): all cosines 0, so class 0 wins: no correction. x1 (class 1): class 0 wins, wrongly:
    # H1 += 0.5 x1, H0 -= 0.5 x1. x2 = -x1 (class 0): cosines 1 and -1, right.
    X = np.array([[1, 1, 1, 1], [1, -1, 1, 1], [-1, 1, -1, -1]])
    model = HDClassifier(max_iter=1, shuffle=False).fit(X, ["a", "b", "a"])
    assert model.prototypes_.tolist() == [[-0.5, 0.5, -0.5, -0.5], [0.5, -0.5, 0.5, 0.5]]
    assert model.n_updates_ == [1]
    assert not model.converged_
    # the difference of the cosines with H1 and H0: 2 * <x, x1> / 4
    assert model.decision_function(X).tolist() == [1.0, 2.0, -2.0]
    assert model.predict(X).tolist() == ["b", "b", "a"]


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(5))
def test_ties_go_to_the_first_class(rate, seed):
    # H1 = rate x1 = -H0, and x0 is orthogonal to x1: a tie for every rate, however its sum is rounded
    rng = np.random.default_rng(seed)
    x1 = rng.choice([-1, 1], 1000)
    x0 = x1 * rng.permutation(np.repeat([-1, 1], 500))
    assert x0 @ x1 == 0
    model = HDClassifier(max_iter=1, shuffle=False, learning_rate=rate).fit([x1, x0], [1, 0])
    assert model.n_updates_ == [1]
    assert model.decision_function([x0]).tolist() == [0.0]
    assert model.predict([x0, x1]).tolist() == [0, 1]


def test_single_pass_classifier_is_the_bundle():
    codes, y = random_problem(0, n_classes=4)
    model = HDClassifier(init="bundle", max_iter=0).fit(codes, y)
    signs = signs_of(codes)
    np.testing.assert_array_equal(model.prototypes_, [signs[y == j].sum(axis=0) for j in range(4)])
    assert (model.n_iter_, model.n_updates_, model.converged_) == (0, [], False)


def test_products_of_small_lengths_do_not_underflow():
    X = [[0, 1e-99], [1, 0], [0, 1e-99]]
    assert HDClassifier(shuffle=False, max_iter=1).fit(X, [1, 0, 1]).n_updates_ == [1]


def test_small_prototypes_of_ridge_stay_small():
    X = np.eye(6)
    assert np.abs(HDClassifier("ridge", alpha=1e60).fit(X, LABELS % 2).in_floats()[0]).max() < 1e-59


def test_ridge_takes_small_parts_of_samples():
    X, y = np.eye(700, 1000) + 1e-110, np.arange(700) % 2
    assert HDClassifier("ridge", random_state=0).fit(X, y).score(X, y) > 0.9


def test_zero_vectors_have_cosine_zero():
    X = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]])
    model = HDClassifier(init="bundle", max_iter=3).fit(X, [0, 0, 1])
    assert model.decision_function(X[:1]).tolist() == [0.0]
    assert model.n_updates_[-1] == 0


# ---- the naive twin


@pytest.mark.parametrize("init", ["zeros", "bundle"])
@pytest.mark.parametrize("dtype", ["packed", np.float32, np.float64, np.int8, np.int64])
def test_equals_naive_twin_over_20_epochs(init, dtype):
    codes, y = random_problem(3, n=150, n_bytes=128, n_classes=3, noise=0.47)
    signs = signs_of(codes)
    X = codes if dtype == "packed" else signs.astype(dtype)
    model = HDClassifier(init=init, shuffle=False, learning_rate=0.5).fit(X, y)
    start = np.zeros((3, 1024)) if init == "zeros" else [signs[y == j].sum(axis=0) for j in range(3)]
    expected, mistakes = naive.hd_perceptron(signs, y, start, [np.arange(150)] * model.n_iter_, 0.5)
    assert model.n_updates_ == mistakes
    np.testing.assert_allclose(model.prototypes_, expected, rtol=0, atol=1e-10)
    cosines = signs @ expected.T / np.linalg.norm(expected, axis=1) / 32.0
    np.testing.assert_allclose(model.decision_function(X), cosines, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), cosines.argmax(axis=1))


def test_sample_order_is_one_permutation_per_epoch():
    codes, y = random_problem(5, n=40, noise=0.48)
    model = HDClassifier(max_iter=4, random_state=7).fit(codes, y)
    rng = np.random.default_rng(7)
    orders = [rng.permutation(40) for _ in range(model.n_iter_)]
    expected, mistakes = naive.hd_perceptron(signs_of(codes), y, np.zeros((3, 96)), orders, 0.5)
    assert model.n_updates_ == mistakes
    np.testing.assert_allclose(model.prototypes_, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("gap", "scale"), [(1e-7, 1.0), (1e-8, 1.0), (1e-9, 1e10), (1e-3, 1e-43), (0.1, 1e60)])
def test_what_float32_cannot_tell_is_decided_in_float64(seed, gap, scale):
    rng = np.random.default_rng(seed)
    H = rng.standard_normal((2, 300))
    H /= np.linalg.norm(H, axis=1, keepdims=True)
    across = H[1] - H[0]
    x = rng.standard_normal(300)
    x -= (x @ across) / (across @ across) * across  # equally far from both
    x += gap * rng.choice([-1, 1]) * across
    y = int(x @ H[1] > x @ H[0])
    model = HDClassifier(init="bundle", max_iter=0).fit(H, [0, 1])
    model.set_params(max_iter=1).partial_fit(x[None] * scale, [y])
    assert model.n_updates_ == [0]
    model.partial_fit(x[None] * scale, [1 - y])
    assert model.n_updates_ == [0, 1]


@pytest.mark.parametrize("dtype", ["packed", np.float64])
@pytest.mark.parametrize(("update", "margin"), [("averaged", 0.0), ("margin", 0.01), ("margin", 0.1), ("margin", 0.5)])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_means_equal_the_naive_twin(update, margin, n_classes, dtype):
    codes, y = random_problem(8, n=90, n_bytes=64, n_classes=n_classes, noise=0.46)
    signs, weights = signs_of(codes), np.random.default_rng(0).uniform(0.5, 2.0, 90)
    model = HDClassifier(update, margin=margin, max_iter=4, shuffle=False)
    model.fit(codes if dtype == "packed" else signs, y, sample_weight=weights)
    start, orders = np.zeros((n_classes, 512)), [np.arange(90)] * model.n_iter_
    expected, corrections = naive.hd_perceptron(signs, y, start, orders, 0.5, margin, weights, mean=True)
    assert model.n_updates_ == corrections
    assert model.n_steps_ == 90 * model.n_iter_
    assert model.margin_ == (margin if update == "margin" else None)
    np.testing.assert_allclose(model.prototypes_, expected, rtol=0, atol=1e-10)


def ridge_problem(packed, wide, weighted):
    """Samples of unit length beside what `fit` takes; more dimensions than samples if `wide`."""
    codes, y = random_problem(2, n=150, n_bytes=40 if wide else 6, n_classes=3, noise=0.4)
    signs, rng = signs_of(codes), np.random.default_rng(1)
    weights = rng.uniform(0.2, 3.0, 150) if weighted else np.ones(150)
    X = codes if packed else signs * rng.uniform(0.1, 5.0, (150, 1))
    return X, y, weights, signs / np.sqrt(signs.shape[1])


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_ridge_equals_that_of_scikit_learn(packed, wide, weighted):
    X, y, weights, units = ridge_problem(packed, wide, weighted)
    model = HDClassifier("ridge", alpha=0.3).fit(X, y, weights if weighted else None)
    witness = Ridge(0.3).fit(units, np.eye(3)[y], sample_weight=weights)
    np.testing.assert_allclose(model.prototypes_, witness.coef_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, witness.intercept_, rtol=0, atol=1e-12)
    np.testing.assert_allclose(model.decision_function(X), witness.predict(units), rtol=0, atol=1e-12)
    assert (model.n_iter_, model.converged_, model.alpha_) == (1, True, 0.3)


def test_ridge_leaves_out_each_sample():
    _, y, weights, units = ridge_problem(packed=True, wide=True, weighted=True)
    Y = np.eye(3)[y]
    found, coefficients = ridge._left_out(units @ units.T, Y, weights, 0.3)
    for i in (0, 7, 149):
        rest = np.arange(150) != i
        witness = Ridge(0.3).fit(units[rest], Y[rest], sample_weight=weights[rest])
        np.testing.assert_allclose(found[i], witness.predict(units[[i]])[0], rtol=0, atol=1e-12)
    witness = Ridge(0.3).fit(units, Y, sample_weight=weights)
    np.testing.assert_allclose(coefficients.T @ units, witness.coef_, rtol=0, atol=1e-12)


@pytest.mark.parametrize("bits", [8, 4, 1])
def test_ridge_leaves_out_each_sample_of_rounded_prototypes(bits):
    """A sample that is left out changes its score by kappa times as much: nearly, and without it far from that."""
    codes, y = random_problem(2, n=120, n_bytes=500, n_classes=3, noise=0.46)
    codes &= np.random.default_rng(0).integers(0, 256, codes.shape, np.uint8)  # so that the mean is far from 0
    weights, Y = np.random.default_rng(1).uniform(0.5, 2.0, 120), np.eye(3)[y]
    model = HDClassifier("ridge", alpha=0.3, prototype_bits=bits)
    machine = ridge.fit(codes, y, 3, weights, 0.3, np.random.default_rng(0), lambda H: rounded_by(H, bits))
    expected = []
    for i in range(120):
        rest = np.arange(120) != i
        expected.append(clone(model).fit(codes[rest], y[rest], weights[rest])._scores(codes[[i]])[0])
    np.testing.assert_array_equal(Y[:, 1], machine.held_out.targets == 1)
    fitted = clone(model).fit(codes, y, weights)._scores(codes)
    far = np.abs(fitted - expected).mean()
    assert np.abs(machine.held_out.scores - expected).mean() < 0.1 * far
    assert abs((machine.held_out.scores - expected)[Y > 0].mean()) < 0.05 * far


def rounded_by(prototypes, bits):
    """The multiples of the rounded prototypes that are nearest to the prototypes."""
    most = 2 ** (bits - 1) - 1
    whole = np.sign(prototypes)
    if bits > 1:
        whole = np.rint(prototypes / np.abs(prototypes).max(axis=1, keepdims=True) * most)
    return whole * (whole * prototypes).sum(axis=1, keepdims=True) / (whole**2).sum(axis=1, keepdims=True)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), columns=st.integers(1, 4), exponent=st.floats(-12, 3))
def test_equations_are_solved_to_the_precision_of_float64(seed, n, columns, exponent):
    """Condition numbers up to 1e13: float32 with refinement, float64 if that does not converge."""
    rng = np.random.default_rng(seed)
    half = rng.standard_normal((n, max(1, n // 2)))
    M, right = half @ half.T / n + 10**exponent * np.eye(n), rng.standard_normal((n, columns))
    lower = np.asfortranarray(np.tril(M) + np.triu(np.full((n, n), np.nan), 1))
    found = ridge._solved(lower, right)
    error = np.abs(M @ found - right).max(axis=0)
    assert (error <= 1e-14 * n * (np.abs(M).max() * n * np.abs(found).max(axis=0) + 1)).all()


def test_ridge_takes_the_alpha_of_the_least_error():
    X, y, _, units = ridge_problem(packed=True, wide=True, weighted=False)
    witness = RidgeCV(ridge._ALPHAS, fit_intercept=True, scoring=None).fit(units, np.eye(3)[y])
    assert HDClassifier("ridge", random_state=0).fit(X, y).alpha_ == pytest.approx(witness.alpha_)


# ---- laws


@laws
@given(
    problem=problems, cut=st.floats(0.1, 0.9), update=st.sampled_from(["perceptron", "averaged", "margin"]), init=inits
)
def test_cutting_a_sequence_changes_no_bit(problem, cut, update, init):
    codes, y = problem
    model, whole = (HDClassifier(update, init="zeros", margin=0.1, shuffle=False) for _ in range(2))
    middle, n = int(cut * len(y)), np.arange(y.max() + 1)
    model.partial_fit(codes[:middle], y[:middle], n) if middle else None
    model.partial_fit(codes[middle:], y[middle:], n)
    whole.partial_fit(codes, y, n)
    np.testing.assert_array_equal(model.prototypes_, whole.prototypes_)
    np.testing.assert_array_equal(whole.prototypes_, clone(whole).set_params(max_iter=1).fit(codes, y).prototypes_)
    assert model.n_steps_ == whole.n_steps_ == len(y)


@laws
@given(problem=problems, update=updates, init=inits)
def test_weight_0_leaves_a_sample_out(problem, update, init):
    codes, y = problem
    weights = np.r_[1, 1, np.random.default_rng(codes.ravel()).integers(0, 2, len(y) - 2)]  # other classes may go
    kept = weights > 0
    model = HDClassifier(update, init=init, margin=0.1, alpha=0.5, random_state=0)
    found = clone(model).fit(codes, y, weights)
    np.testing.assert_array_equal(found.prototypes_, clone(model).fit(codes[kept], y[kept]).prototypes_)
    if hasattr(model, "partial_fit"):
        found, other = (clone(model).partial_fit(*part) for part in (
            (codes, y, np.unique(y), weights), (codes[kept], y[kept], np.unique(y))
        ))  # fmt: skip
        np.testing.assert_array_equal(found.prototypes_, other.prototypes_)
        assert (found.n_updates_, found.n_steps_) == (other.n_updates_, other.n_steps_)


@laws
@given(problem=problems, update=updates)
@example(problem=random_problem(219, n=49, n_bytes=1, noise=0.5), update="perceptron")
@example(problem=random_problem(582, n=52, n_bytes=1, n_classes=5, noise=0.5), update="perceptron")
def test_class_weights_are_weights_of_samples(problem, update):
    codes, y = problem
    model = HDClassifier(update, margin=0.1, alpha=0.5, random_state=0)
    by_class = clone(model).set_params(class_weight="balanced").fit(codes, y)
    by_sample = clone(model).fit(codes, y, compute_sample_weight("balanced", y))  # a perceptron may magnify rounding
    np.testing.assert_array_equal(by_class.prototypes_, by_sample.prototypes_)
    named = clone(model).set_params(class_weight={0: 2.0}).fit(codes, y)
    by_sample = clone(model).fit(codes, y, np.where(y == 0, 2.0, 1.0))
    np.testing.assert_array_equal(named.prototypes_, by_sample.prototypes_)


def test_balance_counts_samples_of_weight_above_0():
    codes, y = random_problem(1)
    weights = (np.arange(len(y)) % 3 > 0) | (y == 0)
    model = HDClassifier("ridge", alpha=0.5, class_weight="balanced", random_state=0)
    found = clone(model).fit(codes, y, weights.astype(float)).prototypes_
    np.testing.assert_array_equal(found, model.fit(codes[weights], y[weights]).prototypes_)


def test_a_bag_of_samples_may_lack_a_rare_class():
    codes, y = random_problem(1)
    y[1:] = np.where(y[1:] == 0, 1, y[1:])
    bag = BaggingClassifier(HDClassifier(class_weight={0: 3.0}, random_state=0), 10, random_state=0).fit(codes, y)
    assert {len(model.classes_) for model in bag.estimators_} == {2, 3}
    assert bag.score(codes, y) > 0.8


@laws
@given(problem=problems, copies=st.integers(2, 3))
def test_ridge_reads_whole_weights_as_copies(problem, copies):
    codes, y = problem
    weights = np.where(np.arange(len(y)) % 2, copies, 1)
    model = HDClassifier("ridge", alpha=0.5)
    weighted = clone(model).fit(codes, y, weights)
    copied = clone(model).fit(*(np.repeat(a, weights, axis=0) for a in (codes, y)))
    np.testing.assert_allclose(weighted.prototypes_, copied.prototypes_, rtol=0, atol=1e-11)
    np.testing.assert_allclose(weighted.intercept_, copied.intercept_, rtol=0, atol=1e-11)


@laws
@given(problem=problems, update=updates, init=inits, bits=st.sampled_from([8, 4, 1]))
def test_rounded_prototypes_make_the_predictions(problem, update, init, bits):
    codes, y = problem
    model = HDClassifier(update, init=init, margin=0.1, alpha=0.5, max_iter=3, random_state=0)
    exact = clone(model).fit(codes, y)
    model = model.set_params(prototype_bits=bits).fit(codes, y)
    np.testing.assert_array_equal(model.prototypes_, exact.prototypes_)
    integers = model.prototype_codes_
    integers = signs_of(integers) if bits == 1 else integers.astype(float)
    assert bits == 1 or (np.abs(integers).max(axis=1) == (2 ** (bits - 1) - 1) * exact.prototypes_.any(axis=1)).all()
    x = signs_of(codes) / np.sqrt(8 * codes.shape[1])
    lengths = 1.0 if update == "ridge" else np.linalg.norm(exact.prototypes_, axis=1)
    scores = np.zeros((len(y), y.max() + 1))
    for j, (integer, prototype) in enumerate(zip(integers, exact.prototypes_, strict=True)):
        if prototype.any():  # the multiple of the integers that is nearest to the prototype
            scores[:, j] = x @ integer * (integer @ prototype) / (integer @ integer)
    scores /= lengths if update == "ridge" else np.where(lengths > 0, lengths, 1.0)
    scores += (exact._scores(codes) - scores).mean(axis=0)  # no mean score changes
    two = scores[:, 1] - scores[:, 0]
    np.testing.assert_allclose(model.decision_function(codes), scores if y.max() > 1 else two, rtol=0, atol=1e-11)
    np.testing.assert_allclose(model.decision_function(signs_of(codes)), model.decision_function(codes), atol=1e-11)


@pytest.mark.parametrize("shared", [0, 255])
def test_bits_that_all_samples_share_have_sign_plus(shared):
    """Their prototypes by ridge are 0, but for rounding errors, which depend on the processor."""
    codes, y = random_problem(2, n=80, n_bytes=60, n_classes=3)
    codes[:, 20:40] = shared
    model = HDClassifier("ridge", alpha=0.3, prototype_bits=1).fit(codes, y)
    assert 0 < np.abs(model.prototypes_[:, 160:320]).max() < 1e-14
    assert (model.prototype_codes_[:, 20:40] == 255).all()


@laws
@given(problem=problems, cut=st.floats(0.1, 0.9), update=st.sampled_from(["perceptron", "averaged"]))
def test_rounded_prototypes_of_batches(problem, cut, update):
    codes, y = problem
    model, whole = (HDClassifier(update, prototype_bits=4) for _ in range(2))
    middle, known = 1 + int(cut * (len(y) - 1)), np.arange(y.max() + 1)
    model.partial_fit(codes[:middle], y[:middle], known)
    if middle < len(y):
        model.partial_fit(codes[middle:], y[middle:])
    whole.partial_fit(codes, y, known)
    np.testing.assert_array_equal(model.intercept_, whole.intercept_)
    one_epoch = HDClassifier(update, prototype_bits=4, max_iter=1, shuffle=False).fit(codes, y)
    np.testing.assert_array_equal(one_epoch.intercept_, whole.intercept_)


def with_probabilities(update, **parameters):
    return HDClassifier(update, probability=update in ("perceptron", "averaged"), random_state=0, **parameters)


@laws
@given(problem=problems, update=updates, bits=st.sampled_from([None, 4, 1]))
def test_probabilities_order_as_the_scores_do(problem, update, bits):
    codes, y = problem
    model = with_probabilities(update, prototype_bits=bits, max_iter=3).fit(codes, y)
    p = model.predict_proba(codes)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    scores = model._scores(codes)
    shares = np.exp(model.sharpness_ * (scores - scores.max(axis=1, keepdims=True)))
    np.testing.assert_allclose(p, shares / shares.sum(axis=1, keepdims=True), rtol=0, atol=1e-12)
    assert (p[np.arange(len(y)), np.searchsorted(model.classes_, model.predict(codes))] >= p.max(axis=1) - 1e-6).all()


@pytest.mark.parametrize("bits", [None, 1])
@pytest.mark.parametrize("update", ["perceptron", "averaged", "margin", "ridge"])
def test_probabilities_are_calibrated(update, bits):
    codes, y = random_problem(4, n=3400, n_bytes=16, n_classes=2, noise=0.46)
    p = with_probabilities(update, prototype_bits=bits).fit(codes[:1000], y[:1000]).predict_proba(codes[1000:])[:, 1]
    for low, high in ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0)):
        part = (p >= low) & (p < high)
        assert part.sum() > 100
        assert abs(p[part].mean() - y[1000:][part].mean()) < 0.02 + 3 * 0.5 / np.sqrt(part.sum())


@pytest.mark.parametrize("bits", [None, 8, 1])
@pytest.mark.parametrize("update", ["perceptron", "averaged", "margin", "ridge"])
def test_calibration_lowers_the_loss_of_new_samples(update, bits):
    """Beside the softmax of the scores as they are, and the factor that suits scores of samples that were learnt."""
    codes, y = random_problem(3, n=2300, n_bytes=60, n_classes=3, noise=0.47)
    model = with_probabilities(update, prototype_bits=bits).fit(codes[:300], y[:300])
    scores, rest = model._scores(codes[300:]), y[300:]
    loss = {name: log_loss(rest, softmax(factor * scores, axis=1)) for name, factor in {
        "ours": model.sharpness_, "none": 1.0,
        "learnt": HeldOut(model._scores(codes[:300]), y[:300], np.ones(300)).sharpness(),
        "best": HeldOut(scores, rest, np.ones(2000)).sharpness(),
    }.items()}  # fmt: skip
    assert loss["ours"] == pytest.approx(log_loss(rest, model.predict_proba(codes[300:])))
    assert loss["ours"] < min(loss["none"], loss["learnt"]) - 0.05
    assert loss["ours"] < loss["best"] + 0.02


@pytest.mark.parametrize(("update", "margin"), [("perceptron", 0.0), ("averaged", 0.0), ("margin", 0.05)])
@pytest.mark.parametrize("bits", [None, 4, 1])
def test_sharpness_is_fitted_to_scores_of_held_out_samples(update, margin, bits):
    """The same by hand: three folds, each scored by a model of the others, then the likelihood on a fine grid."""
    codes, y = random_problem(3, n=91, n_bytes=60, n_classes=3, noise=0.45)
    parameters = {"margin": margin, "max_iter": 4, "prototype_bits": bits}
    model = HDClassifier(update, probability=True, random_state=5, **parameters).fit(codes, y)
    rng = np.random.default_rng(5)
    for _ in model.n_updates_:
        rng.permutation(91)
    order, scores, held_out = rng.permutation(91), [], []
    for fold, test in enumerate(np.split(order, [31, 62])):
        train = np.setdiff1d(np.arange(91), test)
        part = HDClassifier(update, random_state=fold, **parameters).fit(codes[train], y[train])
        scores.append(part._scores(codes[test]))
        held_out.append(y[test])
    scores, held_out = np.concatenate(scores), np.concatenate(held_out)
    n_of = np.bincount(held_out)[held_out]
    wanted = np.where(np.eye(3)[held_out] > 0, ((n_of + 1) / (n_of + 2))[:, None], (0.5 / (n_of + 2))[:, None])
    grid = model.sharpness_ * np.linspace(0.9, 1.1, 201)
    losses = [-(wanted * log_softmax(factor * scores, axis=1)).sum() for factor in grid]
    assert np.argmin(losses) in (99, 100, 101)
    plain = HDClassifier(update, random_state=5, **parameters).fit(codes, y)
    np.testing.assert_array_equal(plain.prototypes_, model.prototypes_)
    assert plain.sharpness_ is None


def test_sharpness_has_bounds_and_counts_weights():
    scores, targets = np.array([[3.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), np.array([0, 0, 1])
    assert 0.1 < HeldOut(scores, targets, np.ones(3)).sharpness() < 10  # all are right
    assert HeldOut(scores, 1 - targets, np.ones(3)).sharpness() == pytest.approx(np.exp(-3.0))  # all are wrong
    assert HeldOut(0 * scores, targets, np.ones(3)).sharpness() == pytest.approx(np.exp(-3.0))
    wrong = np.array([0, 1, 1])
    assert HeldOut(scores, wrong, np.ones(3)).sharpness() < HeldOut(scores, wrong, np.array([9.0, 1, 9])).sharpness()
    large = HeldOut(1e-9 * scores, targets, np.ones(3)).sharpness()
    assert large == pytest.approx(np.exp(14.0))


def test_large_samples_are_held_out_once(monkeypatch):
    monkeypatch.setattr(hd_classifier, "_MOST_HELD_OUT", 30)
    codes, y = random_problem(3, n=91, n_bytes=60, n_classes=3, noise=0.45)
    seen = []
    monkeypatch.setattr(HeldOut, "sharpness", lambda held_out: seen.append(held_out) or 1.0)
    HDClassifier("averaged", probability=True, random_state=0).fit(codes, y)
    HDClassifier("averaged", probability=True, random_state=0).fit(codes[:90], y[:90])
    assert [len(held_out.targets) for held_out in seen] == [30, 90]


def test_margins_are_chosen_by_folds():
    codes, y = random_problem(6, n=300, n_bytes=64, n_classes=3, noise=0.47)
    model = HDClassifier("margin", random_state=0).fit(codes, y)
    assert model.margin_ in (0.0, 0.02, 0.05, 0.1, 0.2)
    again = HDClassifier("margin", margin=model.margin_, random_state=0)
    assert again.fit(codes, y).n_updates_ != HDClassifier("averaged", random_state=0).fit(codes, y).n_updates_


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("update", ["margin", "averaged", "perceptron"])
def test_few_samples_fill_fewer_folds(n, update):
    X, y = np.array([[1.0, 0], [0, 1], [1, 1], [0, 0.5], [2, 1]])[:n], [0, 1, 0, 1, 0][:n]
    model = HDClassifier(update, probability=update != "margin", random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_who_has_probabilities_and_who_learns_from_batches():
    has = {
        HDClassifier(): False, HDClassifier(probability=True): True, HDClassifier("ridge"): True,
        HDClassifier("margin"): True, HDClassifier("margin", margin=0.1): False, HDClassifier("auto"): True,
    }  # fmt: skip
    for model, expected in has.items():
        assert hasattr(model, "predict_proba") == expected
        assert hasattr(model, "partial_fit") != expected
        assert hasattr(clone(model).fit(CODES, LABELS), "predict_proba") == expected
    auto, many = HDClassifier("auto", margin=0.1), (np.repeat(CODES, 20, axis=0), np.repeat(LABELS, 20))
    assert not hasattr(auto, "predict_proba")  # of many samples, it has none
    assert not hasattr(auto.fit(*many), "predict_proba")
    assert StackingClassifier([("hd", clone(auto))], cv=2).fit(*many).stack_method_ == ["decision_function"]
    assert hasattr(auto.fit(CODES, LABELS), "predict_proba")  # of few, by ridge, it has
    assert hasattr(auto.set_params(probability=True), "predict_proba")
    with pytest.raises(AttributeError, match="predict_proba") as error:
        _ = HDClassifier("averaged").predict_proba
    assert "needs a call of fit with probability=True" in str(error.value)
    with pytest.raises(AttributeError, match="partial_fit") as error:
        _ = HDClassifier(probability=True).partial_fit
    assert "take probability=False" in str(error.value)


def test_a_batch_ends_probabilities_and_scikit_learn_calibrates_on_others():
    codes, y = random_problem(4, n=300, n_bytes=8, n_classes=2, noise=0.44)
    model = HDClassifier("margin", random_state=0).fit(codes[:150], y[:150])
    model.set_params(margin=0.1).partial_fit(codes[:150], y[:150])
    assert not hasattr(model, "predict_proba")
    others = CalibratedClassifierCV(FrozenEstimator(model)).fit(codes[150:], y[150:])
    assert log_loss(y[150:], others.predict_proba(codes[150:])) < np.log(2)


def test_prototype_codes_need_bits():
    with pytest.raises(AttributeError, match="set prototype_bits"):
        _ = FITTED.prototype_codes_


def test_small_samples_count_in_rounded_prototypes():
    """Samples are scaled to unit length, so a factor of 2**-600 changes no intercept."""
    codes, y = random_problem(2, n_classes=2)
    model = HDClassifier(prototype_bits=4, random_state=0)
    small = clone(model).fit(np.ldexp(signs_of(codes), -600), y)
    np.testing.assert_array_equal(small.intercept_, clone(model).fit(signs_of(codes), y).intercept_)


def test_bits_in_bytes_are_warned_of():
    with pytest.warns(UserWarning, match="packbits"):
        HDClassifier(max_iter=1).fit(np.unpackbits(CODES, axis=1), LABELS)
    HDClassifier(max_iter=1).fit(np.repeat(CODES, 8, axis=1) % 3, LABELS)  # a 2 cannot be one bit: no warning


def test_rounding_is_that_of_the_fit():
    model = HDClassifier(prototype_bits=4, random_state=0).fit(CODES, LABELS)
    before = model.decision_function(CODES)
    np.testing.assert_array_equal(model.set_params(prototype_bits=1).decision_function(CODES), before)


@laws
@given(problem=problems, rate=st.floats(1e-3, 1e3))
def test_learning_rate_changes_nothing_from_zeros(problem, rate):
    codes, y = problem
    one = HDClassifier(max_iter=5, learning_rate=1.0, random_state=0).fit(codes, y)
    other = HDClassifier(max_iter=5, learning_rate=rate, random_state=0).fit(codes, y)
    assert one.n_updates_ == other.n_updates_
    np.testing.assert_array_equal(one.predict(codes), other.predict(codes))
    np.testing.assert_allclose(other.prototypes_, rate * one.prototypes_, rtol=1e-9, atol=1e-12 * rate)


def test_learning_rate_matters_from_the_bundle():
    codes, y = random_problem(1, noise=0.45)
    small, large = (HDClassifier(init="bundle", learning_rate=r, random_state=0).fit(codes, y) for r in (0.01, 100))
    assert small.n_updates_ != large.n_updates_


@laws
@given(problem=problems, init=inits)
def test_packed_bits_equal_their_signs(problem, init):
    codes, y = problem
    packed = HDClassifier(init=init, max_iter=5, random_state=1).fit(codes, y)
    dense = HDClassifier(init=init, max_iter=5, random_state=1).fit(signs_of(codes), y)
    assert packed.n_updates_ == dense.n_updates_
    np.testing.assert_allclose(packed.prototypes_, dense.prototypes_, rtol=0, atol=1e-11)
    np.testing.assert_array_equal(packed.predict(codes), dense.predict(codes))
    np.testing.assert_array_equal(packed.predict(signs_of(codes)), packed.predict(codes))


@laws
@given(problem=problems, permutation_seed=st.integers(0, 99))
def test_renaming_classes_renames_predictions(problem, permutation_seed):
    # from the bundle, and away from ties, the numbers of the classes carry no meaning
    codes, y = problem
    new_name = np.random.default_rng(permutation_seed).permutation(y.max() + 1)
    a = HDClassifier(init="bundle", max_iter=0).fit(codes, y)
    b = HDClassifier(init="bundle", max_iter=0).fit(codes, new_name[y])
    np.testing.assert_array_equal(b.prototypes_[new_name], a.prototypes_)
    signs = signs_of(codes)
    cosines = signs @ a.prototypes_.T / np.maximum(np.linalg.norm(a.prototypes_, axis=1), 1e-300)
    best_two = np.sort(cosines, axis=1)[:, -2:]
    clear = best_two[:, 1] - best_two[:, 0] > 1e-9
    np.testing.assert_array_equal(b.predict(codes)[clear], new_name[a.predict(codes)][clear])


@pytest.mark.parametrize("dtype", [int, bool])
def test_labels_in_an_array_of_objects_are_those_labels(dtype):
    X, y = np.random.default_rng(0).standard_normal((50, 33)), (np.arange(50) % 2).astype(dtype)
    as_objects = y.astype(object)
    for fit in (lambda y: HDClassifier(random_state=0).fit(X, y), lambda y: HDClassifier().partial_fit(X, y, y[:2])):
        np.testing.assert_array_equal(fit(as_objects).predict(X), fit(y).predict(X), strict=True)


@pytest.mark.parametrize("seed", range(5))
def test_renaming_classes_renames_a_trained_classifier(seed):
    # odd dimensions and noisy floats: no ties after the first epoch begins from bundles
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((50, 33)), np.r_[0, 1, 2, 3, rng.integers(0, 4, 46)]
    new_name = rng.permutation(4)
    a = HDClassifier(init="bundle", random_state=0).fit(X, y)
    b = HDClassifier(init="bundle", random_state=0).fit(X, new_name[y])
    assert a.n_updates_ == b.n_updates_
    assert sum(a.n_updates_) > 0
    np.testing.assert_array_equal(b.prototypes_[new_name], a.prototypes_)
    np.testing.assert_array_equal(b.predict(X), new_name[a.predict(X)])


@laws
@given(problem=problems, init=inits, binary=st.booleans())
def test_partial_fit_over_epochs_equals_fit_in_given_order(problem, init, binary):
    codes, y = problem
    whole = HDClassifier(init=init, max_iter=4, shuffle=False, prototype_bits=1 if binary else None).fit(codes, y)
    steps = clone(whole)
    for _ in range(whole.n_iter_):
        steps.partial_fit(codes, y, classes=np.unique(y))
    np.testing.assert_array_equal(steps.prototypes_, whole.prototypes_)
    assert (steps.n_updates_, steps.n_iter_) == (whole.n_updates_, whole.n_iter_)
    assert steps.converged_ == whole.converged_
    np.testing.assert_array_equal(steps.predict(codes), whole.predict(codes))


@laws
@given(problem=problems, cut=st.floats(0.1, 0.9))
def test_single_pass_over_batches_equals_one_fit(problem, cut):
    codes, y = problem
    k = max(1, int(cut * len(y)))
    model = HDClassifier(init="bundle", max_iter=0)
    model.partial_fit(codes[:k], y[:k], classes=np.unique(y)).partial_fit(codes[k:], y[k:])
    np.testing.assert_array_equal(model.prototypes_, clone(model).fit(codes, y).prototypes_)


def test_binary_prototypes_of_a_dimension_that_fills_no_byte():
    X = np.array([[1.0, 2.0, -3.0], [-1.0, -2.0, 3.0], [-1.0, -2.5, 3.0]])
    model = HDClassifier(init="bundle", prototype_bits=1).fit(X, [0, 1, 1])
    assert model.prototype_codes_.tolist() == [[0b11000000], [0b00100000]]
    # prototypes (1, 2, -3) and (-2, -4.5, 6) become multiples of s = (1, 1, -1) and -s; the mean sample is that of X[2]
    a, b, s = np.array([1, 2, -3]) / np.sqrt(14), np.array([-2, -4.5, 6]) / np.sqrt(60.25), np.array([1, 1, -1]) / 3
    first, second, mean = (a @ s) * 3 * s, (b @ s) * 3 * s, np.array([-1, -2.5, 3]) / np.sqrt(16.25) / 3
    expected = (second - first) @ a + (b - second - a + first) @ mean
    np.testing.assert_allclose(model.decision_function(X[:1]), [expected], rtol=0, atol=1e-14)


@laws
@given(problem=problems, init=inits)
def test_stopping_early_changes_nothing(problem, init):
    codes, y = problem
    model = HDClassifier(init=init, max_iter=30, shuffle=False).fit(codes, y)
    if model.converged_:
        again = clone(model).fit(codes, y).partial_fit(codes, y)
        np.testing.assert_array_equal(again.prototypes_, model.prototypes_)
        assert model.n_updates_[-1] == 0
        assert 0 not in model.n_updates_[:-1]
        np.testing.assert_array_equal(model.predict(codes), y)
    else:
        assert model.n_iter_ == 30


def test_two_classes_follow_the_sign_of_the_decision():
    codes, y = random_problem(8, n_classes=2, noise=0.5)
    model = HDClassifier(max_iter=1).fit(codes, np.array(["no", "yes"])[y])
    decision = model.decision_function(codes)
    assert decision.shape == (60,)
    np.testing.assert_array_equal(model.predict(codes) == "yes", decision > 0)


def test_same_seed_same_result_and_input_untouched():
    codes, y = random_problem(9, noise=0.48)
    codes.setflags(write=False)
    y.setflags(write=False)
    wide = np.asfortranarray(np.repeat(codes, 2, axis=0))[::2]
    a, b = (HDClassifier(random_state=3).fit(X, y) for X in (codes, wide))
    np.testing.assert_array_equal(a.prototypes_, b.prototypes_)
    assert a.n_updates_ != HDClassifier(random_state=4).fit(codes, y).n_updates_
    signs = signs_of(codes)
    signs.setflags(write=False)
    np.testing.assert_array_equal(a.predict(signs), b.predict(codes))


def test_partial_fit_after_fit_leaves_old_prototypes_alone():
    codes, y = random_problem(2, n_bytes=1, noise=0.5)
    model = HDClassifier(max_iter=1).fit(codes, y)
    before, copy = model.prototypes_, model.prototypes_.copy()
    model.partial_fit(codes, y)
    np.testing.assert_array_equal(before, copy)
    assert not np.array_equal(model.prototypes_, copy)


def test_clones_have_the_parameters():
    model = HDClassifier(init="bundle", learning_rate=0.2, random_state=5)
    assert clone(model).get_params() == model.get_params()


# ---- bad input

CODES, LABELS = random_problem(0, n=6, n_bytes=4)
FITTED = HDClassifier().fit(CODES, LABELS)
NAN = np.ones((6, 4))
NAN[4, 2] = np.nan
LONG = np.diag([1, 1, 1, 1, 1, 1e80])
MANY = np.random.default_rng(0).normal(size=(60, 4))
BAD = [
    ("unknown init", lambda: HDClassifier(init="ones").fit(CODES, LABELS), "init must be 'zeros' or 'bundle'"),
    ("update", lambda: HDClassifier("adam").fit(CODES, LABELS), "update must be 'perceptron', 'averaged'"),
    ("bits", lambda: HDClassifier(prototype_bits=2).fit(CODES, LABELS), "prototype_bits must be None, 8, 4 or 1"),
    ("margin", lambda: HDClassifier("margin", margin=-1).fit(CODES, LABELS), r"margin must be 'auto' or a number in"),
    ("probability", lambda: HDClassifier(probability="yes").fit(CODES, LABELS), "probability must be True or False"),
    ("alpha", lambda: HDClassifier("ridge", alpha=0).fit(CODES, LABELS), "alpha must be a positive number"),
    ("weight < 0", lambda: HDClassifier().fit(CODES, LABELS, [1, 1, -1, 1, 1, 1]), r"sample_weight\[2\] is -1.0"),
    ("weights", lambda: HDClassifier().fit(CODES, LABELS, [1, 1]), r"sample_weight has shape \(2,\) for 6 objects"),
    ("no weight", lambda: HDClassifier().fit(CODES, LABELS, np.zeros(6)), "sample_weight is zero for all objects"),
    ("one class of weight", lambda: HDClassifier().fit(CODES, LABELS, LABELS == 0), "of weight 0 holds one class"),
    ("batch balance", lambda: HDClassifier(class_weight="balanced").partial_fit(CODES, LABELS, [0, 1]), "dictionary"),
    ("other update", lambda: clone_of_fitted().set_params(update="averaged").partial_fit(CODES, LABELS), "start a new"),
    ("bits later", lambda: clone_of_fitted().set_params(prototype_bits=4).partial_fit(CODES, LABELS), "learnt"),
    ("class weight < 0", lambda: HDClassifier(class_weight={0: -2}).fit(CODES, LABELS), r"class_weight\[0\] is -2"),
    ("class weight NaN", lambda: HDClassifier(class_weight={0: np.nan}).fit(CODES, LABELS), r"class_weight\[0\] is n"),
    ("class weight text", lambda: HDClassifier(class_weight={0: "2"}).fit(CODES, LABELS), r"class_weight\[0\] is '2'"),
    ("unknown class", lambda: HDClassifier(class_weight={"x": 2}).fit(CODES, LABELS), "class_weight holds 'x'"),
    ("class weight typo", lambda: HDClassifier(class_weight="balance").fit(CODES, LABELS), "must be a dictionary of"),
    ("weights of text", lambda: HDClassifier().fit(CODES, LABELS, ["a"] * 6), "sample_weight must hold numbers"),
    ("classes of floats", lambda: HDClassifier().partial_fit(CODES, LABELS, [0, 0.5]), "continuous|0.5"),
    ("memory", lambda: of_too_many(), "update='ridge' for 6 samples of dimension 32 takes 0 MiB"),
    ("negative max_iter", lambda: HDClassifier(max_iter=-1).fit(CODES, LABELS), "max_iter must be an integer >= 0"),
    ("nothing to learn", lambda: HDClassifier(max_iter=0).fit(CODES, LABELS), "take init='bundle'"),
    ("rate 0", lambda: HDClassifier(learning_rate=0).fit(CODES, LABELS), "learning_rate must be a number in"),
    ("rate NaN", lambda: HDClassifier(learning_rate=float("nan")).fit(CODES, LABELS), "learning_rate must be"),
    ("rate text", lambda: HDClassifier(learning_rate="0.5").fit(CODES, LABELS), "learning_rate must be"),
    ("seed", lambda: HDClassifier(random_state="x").fit(CODES, LABELS), "random_state must be"),
    ("NaN", lambda: HDClassifier().fit(NAN, LABELS), r"X\[4\] holds NaN or infinity"),
    ("too long", lambda: HDClassifier().fit(np.diag([1, 1, 1e80, 1, 1, 1]), LABELS), r"X\[2\] has norm 1e\+80"),
    ("too long, of a part", lambda: HDClassifier("margin").fit(LONG, LABELS), r"X\[5\] has norm"),
    ("too long, of some", lambda: HDClassifier().fit(LONG, LABELS, [0, 1, 1, 1, 1, 1]), r"X\[5\] has norm"),
    ("weight 1e160", lambda: HDClassifier().fit(CODES, LABELS, [1e160] * 6), r"is 1e\+160 .*in \[1e-50, 1e50\]"),
    ("weight 1e-160", lambda: HDClassifier().fit(CODES, LABELS, [1e-160] * 6), r"is 1e-160 .*in \[1e-50, 1e50\]"),
    ("weight times rate", lambda: HDClassifier(learning_rate=1e40).fit(CODES, LABELS, [1e40] * 6), r"rate 1e\+80, exp"),
    ("tiny alpha", lambda: HDClassifier("ridge", alpha=1e-17).fit(MANY, np.arange(60) % 2), "raise alpha"),
    ("set of classes", lambda: HDClassifier().partial_fit(CODES, LABELS, {0, 1, 2}), "classes must be a list or array"),
    ("one number", lambda: HDClassifier().partial_fit(CODES, LABELS, 3), "classes must be a list or array of labels"),
    ("1-D", lambda: HDClassifier().fit(CODES[0], LABELS), r"write one vector v as \[v\]"),
    ("empty", lambda: HDClassifier().fit(CODES[:0], LABELS[:0]), r"X is empty: found 0 vectors"),
    ("booleans", lambda: HDClassifier().fit(CODES > 9, LABELS), "dtype bool, expected packed bits"),
    ("text", lambda: HDClassifier().fit([["a"]] * 6, LABELS), "expected packed bits"),
    ("y too short", lambda: HDClassifier().fit(CODES, LABELS[:5]), "y has 5 labels for 6 objects"),
    ("y 2-D", lambda: HDClassifier().fit(CODES, np.eye(6)), "one label per object"),
    ("y of reals", lambda: HDClassifier().fit(CODES, LABELS + 0.5), "continuous"),
    ("y NaN", lambda: HDClassifier().fit(CODES, [0, 1, np.nan, 1, 0, 0]), r"y\[2\] is nan, expected a class label"),
    ("y None", lambda: HDClassifier().fit(CODES, ["a", "b", "a", None, "a", "b"]), r"y\[3\] is None, expected a class"),
    ("y mixed", lambda: HDClassifier().fit(CODES, np.array(["a", 1] * 3, object)), r"y\[1\] is 1, but y\[0\] is 'a'"),
    ("y complex", lambda: HDClassifier().fit(CODES, LABELS * 1j), "y has dtype complex128"),
    ("one class", lambda: HDClassifier().fit(CODES, ["a"] * 6), r"y holds one class, \['a'\], expected two or more"),
    ("predict: width", lambda: FITTED.predict(CODES[:, :3]), r"has 24 features, but \w+ is expecting 32 .*in 3 bytes"),
    ("predict: floats", lambda: FITTED.predict(np.ones((2, 4))), "X has 4 features, but HDClassifier is expecting 32"),
    ("predict: 1-D", lambda: FITTED.predict(CODES[0]), r"got shape \(4,\)"),
    ("no classes", lambda: HDClassifier().partial_fit(CODES, LABELS), "the first call of partial_fit needs the"),
    ("one known class", lambda: HDClassifier().partial_fit(CODES, LABELS, [0]), "classes holds one class"),
    ("unseen at once", lambda: HDClassifier().partial_fit(CODES, LABELS, [0, 1]), r"y\[2\] is 2, not one of the"),
    ("unseen later", lambda: clone_of_fitted().partial_fit(CODES[:2], [1, 7]), r"y\[1\] is 7, not one of the"),
    ("other classes", lambda: clone_of_fitted().partial_fit(CODES, LABELS, [0, 1]), "differs from the first call"),
    ("later width", lambda: clone_of_fitted().partial_fit(CODES[:, :3], LABELS), "X has 24 features"),
]  # fmt: skip


def of_too_many():
    with sm.config(max_memory=100):
        HDClassifier("ridge").fit(CODES, LABELS)


def clone_of_fitted():
    return clone(FITTED).fit(CODES, LABELS)


@pytest.mark.parametrize(("call", "sentence"), [pytest.param(*case[1:], id=case[0]) for case in BAD])
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as error:
        call()
    assert "\n" not in str(error.value)


def test_sparse_input_is_named():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(ValueError, match=r"sparse csr_array, .* X.toarray\(\)"):
        HDClassifier().fit(sparse.csr_array(np.eye(6)), LABELS)


def test_failed_partial_fit_leaves_the_model_as_it_was():
    model = clone_of_fitted()
    before = model.prototypes_.copy()
    with pytest.raises(ValueError, match="not one of"):
        model.partial_fit(CODES, [0, 1, 2, 0, 1, 9])
    np.testing.assert_array_equal(model.prototypes_, before)
    assert list(model.classes_) == [0, 1, 2]


@pytest.mark.parametrize("texts_first", [False, True])
def test_numbers_are_not_classes_of_the_same_digits_as_text(texts_first):
    """Text and numbers sort differently, so a position among the classes could be beyond the last prototype."""
    codes, numbers = np.random.default_rng(0).integers(0, 256, (300, 8), np.uint8), np.arange(300) % 30
    first, second = (numbers.astype(str), numbers) if texts_first else (numbers, numbers.astype(str))
    model = HDClassifier("averaged").partial_fit(codes, first, np.unique(first))
    for y in (second, second[:1]):
        with pytest.raises(ValueError, match=r"y\[0\] is '?0'?, not one of the classes"):
            model.partial_fit(codes[: len(y)], y)


@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("name", ["prototypes_", "classes_"])
def test_learnt_arrays_that_do_not_fit_are_refused(name, binary):
    """A file may hold anything; the compiled loops must not read or write beyond an array."""
    model = clone(FITTED).set_params(prototype_bits=1 if binary else None).fit(CODES, LABELS)
    setattr(model, name, getattr(model, name)[:1] if name == "classes_" else getattr(model, name)[:, :-1])
    with pytest.raises(ValueError, match=r"expecting .* features as input|fit again|bits, expected"):
        model.predict(CODES)
    with pytest.raises(ValueError, match=r"expecting .* features as input|fit again|not one of the classes"):
        model.partial_fit(CODES, LABELS)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        HDClassifier().predict(CODES)


# ---- real data


def test_atoms_of_real_molecules(data_folder):
    """Sign codes of the atom counts of MUTAG do better than the majority class."""
    archive = data_folder / "graphs" / "MUTAG.zip"
    with zipfile.ZipFile(archive) as content:
        graph_of_node = np.loadtxt(content.open("MUTAG/MUTAG_graph_indicator.txt"), dtype=int) - 1
        atom = np.loadtxt(content.open("MUTAG/MUTAG_node_labels.txt"), dtype=int)
        y = np.loadtxt(content.open("MUTAG/MUTAG_graph_labels.txt"), dtype=int)
    counts = np.zeros((len(y), atom.max() + 1))
    np.add.at(counts, (graph_of_node, atom), 1)
    rng = np.random.default_rng(0)
    codes = np.packbits((counts - counts.mean(axis=0)) @ rng.standard_normal((counts.shape[1], 2000)) >= 0, axis=1)
    order = rng.permutation(len(y))
    train, test = order[:150], order[150:]
    model = HDClassifier(random_state=0).fit(codes[train], y[train])
    assert model.score(codes[test], y[test]) > max(np.mean(y[test] == label) for label in (-1, 1))


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_names_of_columns_are_remembered_and_forgotten_by_the_next_fit(method):
    pandas = pytest.importorskip("pandas")
    narrow = pandas.DataFrame({"a": [1.0, 2.0, 3.0], "b": [3.0, 1.0, 2.0]})
    classes = {"classes": [0, 1]} if method == "partial_fit" else {}
    model = getattr(HDClassifier(random_state=0), method)(narrow, [0, 1, 0], **classes)
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(narrow.rename(columns={"b": "c"}))
    if method == "partial_fit":
        with pytest.raises(ValueError, match="feature names"):
            model.partial_fit(narrow.rename(columns={"b": "c"}), [0, 1, 0])
    assert model.fit(narrow.assign(c=1.0), [0, 1, 0]).feature_names_in_.tolist() == ["a", "b", "c"]


def test_alpha_suits_as_many_samples_as_dimensions(monkeypatch):
    """Noise of n near d dimensions can be fitted exactly, so that a small alpha fails, as it does not for n << d."""
    monkeypatch.setattr(ridge, "_TRIED", 150)
    monkeypatch.setattr(ridge, "_LEAST", 8)
    codes, y = random_problem(3, n=1100, n_bytes=100, n_classes=3, noise=0.46)
    model = HDClassifier("ridge", random_state=0).fit(codes[:800], y[:800])
    witness = RidgeCV(ridge._ALPHAS).fit(signs_of(codes[:800]) / np.sqrt(800), np.eye(3)[y[:800]])
    assert 0.3 < model.alpha_ / witness.alpha_ < 3.3
    small = HDClassifier("ridge", alpha=1e-3).fit(codes[:800], y[:800])
    assert model.score(codes[800:], y[800:]) > small.score(codes[800:], y[800:]) + 0.1


@pytest.mark.parametrize(("n_bytes", "update"), [(40, "ridge"), (4, "margin")])
def test_auto_counts_samples_and_dimensions(n_bytes, update):
    codes, y = random_problem(7, n=100, n_bytes=n_bytes)
    chosen = HDClassifier("auto", random_state=0).fit(codes, y)
    assert chosen.update_ == update
    assert chosen.predict_proba(codes).shape == (100, 3)
    named = HDClassifier(update, random_state=0).fit(codes, y)
    np.testing.assert_array_equal(chosen.decision_function(codes), named.decision_function(codes))


@pytest.mark.parametrize(("n_bytes", "weighted"), [(130, False), (130, True), (20, False), (20, True)])
def test_threads_change_no_bit_of_ridge(n_bytes, weighted):
    codes, y = random_problem(9, n=900, n_bytes=n_bytes, noise=0.45)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, 900) if weighted else None
    found = HDClassifier("ridge", random_state=0).fit(codes, y, weights)
    with limited_to(1):
        alone = HDClassifier("ridge", random_state=0).fit(codes, y, weights)
    np.testing.assert_array_equal(found.prototypes_, alone.prototypes_)
    assert (found.alpha_, found.sharpness_) == (alone.alpha_, alone.sharpness_)
