"""The kernel of D2KE (Equation 4): its value, its error, and that it works wherever kernels do."""

import csv
import itertools
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import similia as sm
from naive.similarities import d2ke_kernel, edit_distance
from similia.checks.laws import check_kernel
from similia.embeddings import RandomSeries, RandomSets, RandomStrings, Representatives
from similia.kernels import FromDistance, Product, Spectrum, Sum

edit = lru_cache(edit_distance)


def LEV(X, Y=None):
    return np.array([[float(edit(x, y)) for y in (X if Y is None else Y)] for x in X])


ALL = ["", "a", "b", "aa", "ab", "ba", "bb"]  # all strings of at most two letters
TABLE = list(csv.DictReader((Path(__file__).parents[1] / "reference" / "E_d2ke_discrete.csv").read_text().splitlines()))
STRINGS = ["abba", "", "ab", "baab", "bbbb", "a", "abab"]


def uniform_on_all(X, n, rng):
    return [ALL[i] for i in rng.integers(len(ALL), size=n)]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['gamma']}-{row['x']}-{row['y']}")
def test_exact_values_where_all_random_objects_are_given(row):
    kernel = FromDistance(LEV, ALL, gamma=float(row["gamma"]))
    assert kernel([row["x"]], [row["y"]])[0, 0] == pytest.approx(float(row["k_exact"]), rel=1e-14)


@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_monte_carlo_agrees_with_the_exact_kernel(gamma):
    rows = [row for row in TABLE if float(row["gamma"]) == gamma]
    assert rows
    kernel = FromDistance(LEV, uniform_on_all, gamma, n_components=20_000, random_state=1)
    X, Y = [row["x"] for row in rows], [row["y"] for row in rows]
    difference = np.diag(kernel(X, Y)) - [float(row["k_exact"]) for row in rows]
    error = np.diag(kernel.standard_error(X, Y))
    assert (np.abs(difference) < 5 * error).all()
    assert (error < 1.5 / np.sqrt(20_000)).all()  # a wide error would agree with anything


def test_unbiased_with_the_variance_that_the_standard_error_says():
    R, exact = 64, FromDistance(LEV, ALL, 0.7)(ALL)
    draws = [FromDistance(LEV, uniform_on_all, 0.7, R, seed) for seed in range(150)]
    values = np.stack([kernel(ALL) for kernel in draws])
    errors = np.stack([kernel.standard_error(ALL) for kernel in draws])
    variance = values.var(axis=0, ddof=1)
    assert (np.abs(values.mean(axis=0) - exact) < 5 * np.sqrt(variance / len(draws))).all()
    assert (variance <= 1 / (4 * R)).all()
    np.testing.assert_allclose(np.square(errors).mean(axis=0), variance, rtol=0.6)  # chi-square of 149: 5 sigma
    assert np.mean(np.square(errors).mean(axis=0) / variance) == pytest.approx(1, abs=0.1)


def test_standard_error_of_a_feature_written_out():
    kernel = FromDistance(LEV, ALL, 0.5)
    F = np.exp(-0.5 * LEV(STRINGS, ALL))
    products = F[0] * F[3]
    expected = products.std(ddof=1) / np.sqrt(len(ALL))
    assert kernel.standard_error(STRINGS)[0, 3] == pytest.approx(expected, rel=1e-9)
    with pytest.raises(ValueError, match="at least two random objects"):
        FromDistance(LEV, ["a"]).standard_error(STRINGS)


def test_for_large_gamma_the_distance_comes_back():
    pairs = list(itertools.combinations(ALL, 2))
    d = np.array([edit(x, y) for x, y in pairs])
    gaps = []
    for gamma in (5.0, 20.0, 80.0):
        K = FromDistance(LEV, ALL, gamma)(ALL)
        estimate = np.array([-np.log(K[ALL.index(x), ALL.index(y)]) / gamma for x, y in pairs])
        gaps.append(np.abs(estimate - d).max())
        if gamma >= 20:  # k / exp(-gamma d) is not 1 but the share of random objects between x and y
            share = [np.mean([edit(x, w) + edit(w, y) == edit(x, y) for w in ALL]) for x, y in pairs]
            np.testing.assert_allclose(np.exp(gamma * (d - estimate)), share, rtol=1e-6)
    assert gaps[0] > gaps[1] > gaps[2]
    assert gaps[2] < np.log(7) / 80 + 1e-6


def test_against_the_definition():
    kernel = FromDistance(LEV, ["ab", "bba", ""], 0.3)
    expected = [[d2ke_kernel(edit_distance, x, y, ["ab", "bba", ""], 0.3) for y in STRINGS[:3]] for x in STRINGS]
    np.testing.assert_allclose(kernel(STRINGS, STRINGS[:3]), expected, rtol=1e-12)
    np.testing.assert_allclose(kernel.diag(STRINGS), np.diag(kernel(STRINGS)), rtol=1e-14)


def test_positive_semi_definite_even_where_the_distance_is_anything():
    rng = np.random.default_rng(0)
    table = rng.exponential(size=(30, 12))  # no metric, not symmetric, not zero on the diagonal
    kernel = FromDistance(lambda X, Y: table[np.ix_(X, Y)], np.arange(12), gamma=2.0)
    K = kernel(np.arange(30))
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K).min() > -1e-14
    check_kernel(FromDistance(LEV, RandomStrings((0, 3), "ab"), 0.5, 32), STRINGS)


@pytest.mark.same_bits
@pytest.mark.parametrize("method", ["__call__", "standard_error"])
def test_values_do_not_depend_on_other_objects(method):
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), size)) for size in rng.integers(0, 9, 203)]
    values = getattr(
        FromDistance(sm.distances.Levenshtein(), RandomStrings((1, 5), "ab"), 0.1, n_components=301), method
    )
    K = values(words)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(values(words, words), K)
    np.testing.assert_array_equal(values(words, words[:37]), K[:, :37])
    for i in range(0, 203, 29):
        np.testing.assert_array_equal(values(words[i : i + 1], words), K[i : i + 1])
        np.testing.assert_array_equal(values(words[i : i + 7], words[::-1]), K[i : i + 7, ::-1])


def test_features_are_those_of_d2ke():
    objects = RandomStrings((0, 4), "ab")
    kernel = FromDistance(LEV, objects, 0.4, n_components=300, random_state=7)
    d2ke = sm.D2KE(LEV, 300, objects, 0.4, random_state=7)
    np.testing.assert_array_equal(kernel.features(STRINGS), d2ke.fit_transform(STRINGS))
    again = FromDistance(LEV, d2ke.random_objects_, d2ke.gamma_)
    np.testing.assert_array_equal(again(STRINGS), kernel(STRINGS))


def test_stateless_and_growing():
    kernel = FromDistance(LEV, RandomStrings((1, 3), "ab"), n_components=300, random_state=2)
    before = kernel.get_params()
    first = kernel.features(STRINGS)
    np.testing.assert_array_equal(clone(kernel).features(STRINGS[2:4]), first[2:4])
    assert kernel.get_params() == before
    fewer = clone(kernel).set_params(n_components=20).features(STRINGS)
    np.testing.assert_allclose(fewer * np.sqrt(20), first[:, :20] * np.sqrt(300), rtol=1e-14)
    assert (clone(kernel).set_params(random_state=3).features(STRINGS) != first).any()
    longer = clone(kernel).set_params(objects__length=(5, 5))
    assert set(map(len, longer._random_objects(STRINGS))) == {5}


def test_in_svc_nystroem_sum_product_and_kernel_ridge():
    y = np.array([len(s) > 2 for s in STRINGS])
    kernel = FromDistance(LEV, ALL, 0.5)
    K = kernel(STRINGS)
    assert (SVC(kernel=kernel, C=100).fit(STRINGS, y).predict(STRINGS) == y).all()
    Z = sm.Nystroem(kernel, n_components=len(STRINGS), random_state=0).fit_transform(STRINGS)
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-8)
    spectrum = Spectrum(k=1)
    np.testing.assert_allclose(Sum([kernel, spectrum], [2, 1])(STRINGS), 2 * K + spectrum(STRINGS))
    np.testing.assert_allclose(Product([kernel, spectrum])(STRINGS), K * spectrum(STRINGS))
    ridge = KernelRidge(kernel="precomputed", alpha=0.1).fit(K, y)
    linear = Ridge(alpha=0.1, fit_intercept=False).fit(kernel.features(STRINGS), y)
    np.testing.assert_allclose(ridge.predict(K), linear.predict(kernel.features(STRINGS)), atol=1e-8)


def test_gaussian_process_of_the_kernel_by_its_features():
    y = np.array([float(len(s)) for s in STRINGS])
    process = GaussianProcessRegressor(DotProduct(0, "fixed") + WhiteKernel(0.1, "fixed"), optimizer=None)
    model = make_pipeline(sm.D2KE(LEV, objects=ALL, gamma=0.5), process).fit(STRINGS, y)
    mean, deviation = model.predict(["aba", "bb"], return_std=True)
    kernel = FromDistance(LEV, ALL, 0.5)
    new = kernel(["aba", "bb"], STRINGS)
    inverse = np.linalg.inv(kernel(STRINGS) + 0.1 * np.eye(len(STRINGS)))
    np.testing.assert_allclose(mean, new @ inverse @ y, atol=1e-8)
    variance = kernel.diag(["aba", "bb"]) + 0.1 - np.diag(new @ inverse @ new.T)
    np.testing.assert_allclose(deviation**2, variance, atol=1e-8)


def test_sparse_features_for_sums():
    kernel = FromDistance(LEV, ALL, 0.5)
    wide = kernel.features(STRINGS, n_features=20)
    assert wide.shape == (len(STRINGS), 20)
    np.testing.assert_array_equal(wide.toarray()[:, :7], kernel.features(STRINGS))
    assert wide.indices.dtype == wide.indptr.dtype == np.int32  # scikit-learn refuses int64
    total = Sum([kernel, Spectrum(k=1)])
    F = sm.KernelFeatures(total, n_features=2**12).fit_transform(STRINGS)
    np.testing.assert_allclose((F @ F.T).toarray(), total(STRINGS))
    with pytest.raises(ValueError, match="n_features=3 is below the 7 random objects"):
        kernel.features(STRINGS, n_features=3)


def test_series_and_sets_in_single_precision_give_a_double_kernel():
    def distance(X, Y):
        return np.array([[abs(x.mean() - y.mean()) for y in Y] for x in X], dtype=np.float32)

    X = sm.objects.as_series([np.arange(3, dtype=np.float32), np.ones(2, np.float32)])
    kernel = FromDistance(distance, RandomSeries((2, 4), 1.0, 0.0, 1), n_components=16)
    assert kernel._random_objects(X).values.dtype == np.float64
    assert kernel(X).dtype == np.float64
    sets = sm.objects.as_sets([np.ones((2, 3)), np.ones((1, 3))])
    assert FromDistance(distance, RandomSets(3, 1.0, 3, True), n_components=16)(sets).shape == (2, 2)


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (partial(FromDistance, objects=RandomStrings()), ValueError, "RandomStrings takes alphabet from training"),
        (partial(FromDistance, objects=Representatives()), ValueError, "give a collection of objects instead"),
        (partial(FromDistance, objects=RandomStrings), TypeError, r"class RandomStrings; write RandomStrings\(...\)"),
        (partial(FromDistance, objects=[]), ValueError, "objects is empty"),
        (partial(FromDistance, objects=ALL, gamma=0), ValueError, "gamma must be a positive number, got 0"),
        (partial(FromDistance, objects=ALL, gamma="median"), ValueError, "gamma must be a positive number"),
        (partial(FromDistance, objects=lambda X, n, rng: ["a"]), ValueError, "returned 1 objects, expected the 256"),
        (partial(FromDistance, objects=uniform_on_all, random_state=None), ValueError, "random_state must be"),
        (partial(FromDistance, objects=uniform_on_all, n_components=0), ValueError, "n_components must be"),
    ],
)
def test_bad_parameters(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel(LEV)(STRINGS)


def test_bad_distances():
    with pytest.raises(TypeError, match="distance must be a callable"):
        FromDistance("levenshtein", ALL)(STRINGS)
    with pytest.raises(TypeError, match="distance is the class RandomStrings"):
        FromDistance(RandomStrings, ALL)(STRINGS)
    with pytest.raises(ValueError, match=r"returned -1 for X\[1\] and random object 0, expected a finite number >= 0"):
        FromDistance(lambda X, Y: np.array([[1.0], [-1.0]]), ["a"])(["a", "b"])

    def below(x, y, value):
        return value

    for value, found in (
        (-1.0, r"returned -1 for X\[0\] and "),
        (np.nan, r"returned nan for X\[0\] and random object 0"),
    ):
        function = partial(below, value=value)
        with pytest.raises(ValueError, match=f"below {found}"):
            FromDistance(sm.distances.FromFunction(function), ["a"])(["a", "b"])
    with pytest.raises(ValueError, match=r"shape \(2,\) for 2 x 1 objects"):
        FromDistance(lambda X, Y: np.ones(2), ["a"])(["a", "b"])
    for objects in (ALL, RandomStrings(alphabet="AC")):
        with pytest.raises(ValueError, match="X is empty"):
            FromDistance(sm.distances.FromFunction(partial(below, value=1.0)), objects)([])


def test_errors_about_y_name_it():
    def below(x, y):
        return -1.0 if x == "b" else 1.0

    kernel = FromDistance(sm.distances.FromFunction(below), ["a", "c"])
    for use in (kernel, kernel.standard_error):
        with pytest.raises(ValueError, match=r"below returned -1 for Y\[1\] and random object 0"):
            use(["a"], ["a", "b"])
        with pytest.raises(ValueError, match="Y is empty"):
            use(["a"], [])
    with pytest.raises(TypeError, match=r"Y\[1\] is int"):
        FromDistance(sm.distances.Levenshtein(), ["a"])(["a"], ["a", 3])
