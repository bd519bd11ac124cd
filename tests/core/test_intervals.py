"""Intervals said to hold in 95 % of cases do: simulated, with fixed seeds, beside what the literature has."""

import numpy as np
import pytest

from similia.core.intervals import balanced, ratio, wilson
from similia.report import _context as scores
from similia.selection.auto import _WIDER


def test_wilson_against_the_literature():
    """Newcombe, Statistics in Medicine 1998, Table I: Wilson score intervals of 81/263, 15/148, 0/20 and 1/29."""
    table = ((81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0, 0.1611), (1, 29, 0.0061, 0.1718))
    for right, n, low, high in table:
        assert wilson(right / n, n) == pytest.approx((low, high), abs=5e-5)
    assert wilson(0.0, 0) == (0.0, 1.0)


CLASSES = {
    "few of the second": ((15, 5), (0.9, 0.7)),
    "few of both": ((10, 10), (0.8, 0.8)),
    "three": ((30, 4, 4), (0.9, 0.6, 0.6)),
    "four of five each": ((5, 5, 5, 5), (0.7, 0.8, 0.9, 0.6)),
    "rare": ((90, 10), (0.97, 0.6)),
    "nearly all right": ((20, 20), (0.99, 0.95)),
    "many": ((100, 100), (0.9, 0.9)),
    "ten": ((8,) * 10, (0.95,) * 10),
    "ten by chance": ((8,) * 10, (0.5,) * 10),
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_interval_of_a_balanced_accuracy_holds(name):
    sizes, recalls = map(np.array, CLASSES[name])
    rng = np.random.default_rng(0)
    hits = 0
    for right in rng.binomial(sizes, recalls, size=(1000, len(sizes))):
        mean, low, high = balanced(right, sizes)
        assert low <= mean <= high
        assert mean == pytest.approx(np.mean(right / sizes))
        hits += low <= recalls.mean() <= high
    assert hits / 1000 > 0.925  # by normal law with smoothed variances: 0.82 to 0.90 in half of these


def test_balanced_with_as_many_of_each_class_is_wilson_but_for_student():
    mean, low, high = balanced(np.array([800, 800]), np.array([1000, 1000]))
    assert (low, high) == pytest.approx(wilson(0.8, 2000), abs=1e-4)
    assert mean == 0.8
    assert balanced(np.array([5, 5]), np.array([5, 5]))[2] == 1.0
    one = balanced(np.array([3]), np.array([4]))
    assert 0.0 <= one[1] < 0.75 < one[2] <= 1.0


LAWS = {
    # law of errors, n, and the least coverage: mean square, mean size, R squared
    "normal, 20": (lambda rng, n: rng.normal(size=n), 20, (0.91, 0.92, 0.89)),
    "normal, 100": (lambda rng, n: rng.normal(size=n), 100, (0.92, 0.92, 0.91)),
    "Laplace, 20": (lambda rng, n: rng.laplace(size=n), 20, (0.86, 0.91, 0.86)),
    "uniform, 30": (lambda rng, n: rng.uniform(-1, 1, size=n), 30, (0.92, 0.92, 0.90)),
}


@pytest.mark.parametrize("name", LAWS)
def test_intervals_of_errors_hold(name, monkeypatch):
    law, n, least = LAWS[name]
    monkeypatch.setattr("similia.core.intervals._ROUNDS", 200)
    rng = np.random.default_rng(0)
    many = law(rng, 400_000)
    truth_of = np.array([np.mean(many**2), np.mean(np.abs(many)), np.mean(many**2) / (4 + np.var(many))])
    hits = np.zeros(3)
    for _ in range(200):
        predicted = 2 * rng.normal(size=n)
        truth = predicted + law(rng, n)
        found = scores.regression_scores(truth, predicted)
        ends = [found["root mean squared error"][1:], found["mean absolute error"][1:], found["R²"][1:]]
        hits += [
            ends[0][0] ** 2 <= truth_of[0] <= ends[0][1] ** 2,
            ends[1][0] <= truth_of[1] <= ends[1][1],
            1 - ends[2][1] <= truth_of[2] <= 1 - ends[2][0],
        ]
    assert (hits / 200 > least).all(), hits / 200  # quantiles of resampled values: 0.65 to 0.87 at n = 20


def test_errors_at_the_ends():
    truth = np.array([1.0, 2.0, 4.0, 8.0])
    found = scores.regression_scores(truth, truth)
    assert found["R²"] == (1.0, 1.0, 1.0)
    assert found["root mean squared error"] == found["mean absolute error"] == (0.0, 0.0, 0.0)
    constant = scores.regression_scores(np.ones(5), np.zeros(5))
    assert constant["mean absolute error"][0] == 1.0
    assert np.isnan(constant["R²"]).all()
    assert np.isnan(ratio(np.ones(1), np.ones(1), np.random.default_rng(0))).all()
    huge, small = (scores.regression_scores(truth * f, truth[::-1] * f) for f in (1e150, 1e-150))
    for name, (_, low, high) in huge.items():
        factor = 1.0 if name == "R²" else 1e300
        assert (low, high) == pytest.approx((small[name][1] * factor, small[name][2] * factor))
    units = scores.regression_scores(truth, truth[::-1])
    assert units["R²"][1:] == pytest.approx(huge["R²"][1:])


def test_the_interval_of_a_ratio_is_that_of_its_mean_for_many_objects():
    rng = np.random.default_rng(0)
    values = rng.gamma(2.0, size=5000)
    low, high = ratio(values, np.ones(5000), rng)
    half = 1.96 * values.std() / np.sqrt(5000)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=half / 4)


def nested_accuracies(rng, n, repeated):
    """Return the accuracy of the best of four numbers of neighbours for labels of noise, chosen on other folds."""
    y, X = rng.permutation(np.arange(n) % 2), rng.normal(size=(n, 5))
    D, fold = np.square(X[:, None] - X[None]).sum(axis=2), rng.permutation(np.arange(n) % 5)

    def right(train, test):
        order = np.argsort(D[np.ix_(test, train)], axis=1)
        return np.array([(y[train][order[:, :k]].mean(axis=1) > 0.5) == y[test] for k in (1, 3, 5, 9)])

    inside = [np.flatnonzero(fold == i) for i in range(5)]
    found = [right(np.flatnonzero(fold != i), inside[i]) for i in range(5)]
    total = 0
    for i in range(5):
        others = [j for j in range(5) if j != i]
        if repeated:
            without = [right(np.flatnonzero((fold != i) & (fold != j)), inside[j]) for j in others]
        else:
            without = [found[j] for j in others]
        total += found[i][np.argmax(np.mean([part.mean(axis=1) for part in without], axis=0))].sum()
    return total / n


@pytest.mark.parametrize("repeated", [True, False])
def test_the_interval_of_what_select_reports_holds_for_noise(repeated):
    rng = np.random.default_rng(0)
    shares = [nested_accuracies(rng, 40, repeated) for _ in range(300)]

    def holds(factor):
        return np.mean([low <= 0.5 <= high for low, high in (wilson(share, 40 / factor) for share in shares)])

    assert holds(_WIDER[repeated]) > 0.93
    assert holds(1) < 0.92  # as if answers were independent
