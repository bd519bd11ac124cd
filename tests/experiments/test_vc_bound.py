import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.vc_bound import enclosing_radius, vc_effective_sample_size


def random_gram(seed, n, d, scale=1.0):
    X = np.random.default_rng(seed).normal(size=(n, d)) * scale
    return X @ X.T, X


def labels(seed, n):
    y = np.random.default_rng(seed + 1).integers(0, 2, n)
    y[:2] = 0, 1
    return y


def slow_radius(K):
    """The dual of the smallest ball, by a general solver."""
    n = len(K)
    found = scipy.optimize.minimize(
        lambda b: b @ K @ b - b @ K.diagonal(),
        np.full(n, 1 / n),
        jac=lambda b: 2 * K @ b - K.diagonal(),
        bounds=[(0, 1)] * n,
        constraints={"type": "eq", "fun": lambda b: b.sum() - 1, "jac": lambda b: np.ones(n)},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert found.status in (0, 8)  # 8: as exact as rounding lets it be
    return np.sqrt(-found.fun)


def slow_squared_norm(K, y, C):
    """||w||^2 of the soft-margin machine, by a general solver of its dual."""
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    Q = signs[:, None] * K * signs
    found = scipy.optimize.minimize(
        lambda a: a @ Q @ a / 2 - a.sum(),
        np.zeros(len(K)),
        jac=lambda a: Q @ a - 1,
        bounds=[(0, C)] * len(K),
        constraints={"type": "eq", "fun": lambda a: a @ signs, "jac": lambda a: signs},
        options={"ftol": 1e-14, "maxiter": 2000},
    )
    assert found.status in (0, 8)  # 8: as exact as rounding lets it be
    return found.x @ Q @ found.x


# ---- the ball


@given(seed=st.integers(0, 10**6), n=st.integers(1, 14), d=st.integers(1, 6))
@settings(max_examples=40, deadline=None)
def test_radius_equals_that_of_a_general_solver(seed, n, d):
    K, _ = random_gram(seed, n, d)
    if n == 1:
        assert enclosing_radius(K) == 0
    else:
        assert enclosing_radius(K) == pytest.approx(slow_radius(K), rel=2e-6)


@pytest.mark.parametrize("n", [2, 3, 10, 400])
def test_orthonormal_objects_have_the_radius_of_a_simplex(n):
    assert enclosing_radius(np.eye(n)) == pytest.approx(np.sqrt(1 - 1 / n), rel=1e-6)


def test_points_in_a_ball_with_a_diameter_among_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    X *= 0.9 * rng.random((500, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    X[[17, 400]] = [[0.6, 0.8, 0.0], [-0.6, -0.8, 0.0]]
    assert enclosing_radius(2.25 * X @ X.T) == pytest.approx(1.5, rel=1e-6)


@given(seed=st.integers(0, 10**6), n=st.integers(2, 200), log_width=st.floats(-3, 3))
@settings(max_examples=30, deadline=None)
def test_radius_of_a_normalised_kernel_is_at_most_one(seed, n, log_width):
    _, X = random_gram(seed, n, 4)
    K = np.exp(-np.square(X[:, None] - X).sum(axis=2) / 10**log_width)
    assert enclosing_radius(K) <= 1
    far = K.copy()
    np.fill_diagonal(far, 0)
    closest_pair = np.sqrt((2 - 2 * K.min()) / 4)  # half the largest distance
    assert enclosing_radius(K) >= closest_pair * (1 - 1e-6)


def test_a_shift_of_all_objects_leaves_the_radius():
    K, X = random_gram(3, 60, 5)
    shifted = X + 100.0
    assert enclosing_radius(shifted @ shifted.T) == pytest.approx(enclosing_radius(K), rel=2e-6)


def test_equal_objects_have_radius_zero():
    assert enclosing_radius(np.full((7, 7), 0.1)) == 0
    assert enclosing_radius(np.zeros((3, 3))) == 0


# ---- the machine


@given(seed=st.integers(0, 10**6), n=st.integers(4, 14), C=st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=25, deadline=None)
def test_all_numbers_equal_those_of_general_solvers(seed, n, C):
    K, _ = random_gram(seed, n, 16, scale=0.3)
    y = labels(seed, n)
    norm2, radius = slow_squared_norm(K, y, C), slow_radius(K)
    found = vc_effective_sample_size(K, y, C)
    assert found.radius == pytest.approx(radius, rel=2e-6)
    assert found.margin == pytest.approx(1 / np.sqrt(norm2), rel=1e-3)
    assert found.vc_bound == pytest.approx(radius**2 * norm2, rel=2e-3)
    assert found.effective_sample_size == pytest.approx(n / found.vc_bound, rel=1e-12)


def test_two_clusters_on_a_line():
    x = np.array([-3.0, -2.0, 1.0, 5.0])  # margin 1.5, around -0.5; radius 4
    found = vc_effective_sample_size(np.outer(x, x), ["a", "a", "b", "b"], C=1e3)
    np.testing.assert_allclose(found, (1.5, 4, 64 / 9, 9 / 16), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-4, 7.0, 1e6])
def test_scale_of_the_kernel_goes_with_that_of_c(scale):
    K, _ = random_gram(5, 80, 200, scale=0.1)
    y = labels(5, 80)
    a, b = vc_effective_sample_size(K, y, 10.0), vc_effective_sample_size(scale * K, y, 10.0 / scale)
    assert b.radius == pytest.approx(np.sqrt(scale) * a.radius, rel=2e-6)
    assert b.margin == pytest.approx(np.sqrt(scale) * a.margin, rel=1e-4)
    assert b.vc_bound == pytest.approx(a.vc_bound, rel=2e-4)


def test_order_of_objects_and_names_of_classes_do_not_matter():
    K, _ = random_gram(6, 60, 100, scale=0.1)
    y = labels(6, 60)
    order = np.random.default_rng(0).permutation(60)
    a = vc_effective_sample_size(K, y, 5.0)
    b = vc_effective_sample_size(K[np.ix_(order, order)], np.array(["yes", "no"])[y[order]], 5.0)
    np.testing.assert_allclose(a, b, rtol=2e-4)


def test_more_classes_are_means_over_pairs():
    K, _ = random_gram(7, 90, 100, scale=0.1)
    y = np.random.default_rng(1).integers(0, 3, 90)
    pairs = [np.isin(y, pair) for pair in ([0, 1], [0, 2], [1, 2])]
    expected = np.mean([vc_effective_sample_size(K[np.ix_(p, p)], y[p], 2.0) for p in pairs], axis=0)
    np.testing.assert_allclose(vc_effective_sample_size(K, y, 2.0), expected, rtol=1e-12)


def test_classes_with_one_mean_have_no_margin_to_speak_of():
    x = np.array([-1.0, 1.0, -1.0, 1.0])
    found = vc_effective_sample_size(np.outer(x, x), [0, 0, 1, 1], C=1.0)
    assert found.radius == pytest.approx(1.0)
    assert found.effective_sample_size > 1e6


def test_the_gram_matrix_is_not_written_to():
    K, _ = random_gram(8, 20, 5)
    before, expected = K.copy(), vc_effective_sample_size(K.copy(), labels(8, 20), 1.0)
    K.setflags(write=False)
    assert vc_effective_sample_size(K, labels(8, 20), 1.0) == expected
    np.testing.assert_array_equal(K, before)


# ---- bad input

BAD = [
    ("not square", np.ones((2, 3)), [0, 1], 1.0, r"K must be a square Gram matrix \(n, n\), got shape \(2, 3\)"),
    ("vector", np.ones(3), [0, 1, 1], 1.0, "K must be a square Gram matrix"),
    ("empty", np.ones((0, 0)), [], 1.0, r"got shape \(0, 0\)"),
    ("NaN", np.diag([1.0, np.nan]), [0, 1], 1.0, r"K\[1\] holds NaN"),
    ("not symmetric", np.array([[1.0, 0.5], [0.2, 1.0]]), [0, 1], 1.0, r"0.5 at \[0, 1\] and 0.2 at \[1, 0\]"),
    ("labels", np.eye(3), [0, 1], 1.0, "y has 2 labels for 3 objects"),
    ("one class", np.eye(3), ["a"] * 3, 1.0, "y holds one class, .*'a'.*, expected at least two"),
    ("C of zero", np.eye(2), [0, 1], 0.0, "C must be a positive number, got 0.0"),
    ("C as text", np.eye(2), [0, 1], "tune", "C must be a positive number, got 'tune'"),
    ("same objects", np.ones((3, 3)), [0, 1, 1], 1.0, "are the same to the kernel"),
]


@pytest.mark.parametrize(("K", "y", "C", "message"), [case[1:] for case in BAD], ids=[case[0] for case in BAD])
def test_bad_input(K, y, C, message):
    with pytest.raises(ValueError, match=message):
        vc_effective_sample_size(K, y, C)
