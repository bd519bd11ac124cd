"""The global alignment kernel against the sum over all alignments, its laws and tslearn."""

import itertools
import json
import math
import os
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from naive import series as naive_series
from similia import alignments
from similia.kernels import GlobalAlignment
from similia.kernels.series import suggest_bandwidth
from similia.objects import SeriesBatch, as_series

laws = settings(max_examples=25, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
KERNELS = [
    GlobalAlignment(),
    GlobalAlignment(bandwidth=0.5, normalize=False),
    GlobalAlignment(bandwidth=2.0, triangular=3),
    GlobalAlignment(triangular=2, normalize=False),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=str)


def collection(seed, n, longest, p=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    p = p or int(rng.integers(1, 4))
    return [rng.normal(size=(int(rng.integers(1, longest + 1)), p)).astype(dtype) for _ in range(n)]


@each_kernel
@laws
@given(SEEDS)
def test_equals_the_sum_over_alignments(kernel, seed):
    X = collection(seed, n=3, longest=5)
    K = np.array([[naive_series.global_alignment(x, y, kernel.bandwidth, kernel.triangular) for y in X] for x in X])
    raw = clone(kernel).set_params(normalize=False)
    np.testing.assert_allclose(raw(X[:1], X), K[:1], rtol=1e-12)
    np.testing.assert_allclose(raw.diag(X), np.diag(K), rtol=1e-12)
    if kernel.normalize:
        K = K / np.sqrt(np.outer(np.diag(K), np.diag(K)))
    np.testing.assert_allclose(kernel(X), K, rtol=1e-12)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(kernel.log_values(X), np.log(K), rtol=1e-9, atol=1e-12)


def test_one_time_point_and_hand_values():
    """One point each: the local similarity e / (2 - e) itself, k(x, x) = 1."""
    e = math.exp(-(3.0**2) / (2 * 2.0**2))
    for normalize in (True, False):
        K = GlobalAlignment(bandwidth=2.0, normalize=normalize)([[0.0], [3.0]])
        np.testing.assert_allclose(K, [[1, e / (2 - e)], [e / (2 - e), 1]], rtol=1e-14)
    assert GlobalAlignment(normalize=False)([[1.0] * 4]) == pytest.approx(63)  # Delannoy number of a 3 x 3 grid
    assert GlobalAlignment(triangular=1, normalize=False)([[1.0] * 9]) == pytest.approx(1)  # the diagonal alone


@each_kernel
@laws
@given(SEEDS)
def test_positive_semi_definite_and_block_by_block(kernel, seed):
    kernel = clone(kernel).set_params(normalize=True)
    X = SeriesBatch.from_arrays(collection(seed, n=25, longest=12))
    K = kernel(X)
    assert np.linalg.eigvalsh(K)[0] >= -1e-12 * len(X)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel(X, X), K)
    np.testing.assert_array_equal(kernel(X[3:7], X[5:]), K[3:7, 5:])
    np.testing.assert_array_equal(np.diag(K), kernel.diag(X))
    assert K.max() == 1


def test_other_local_similarities_are_not_positive_definite():
    """With exp(-z) for kappa, or a band in place of triangular weights, the sum is not positive definite."""
    grid = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    A = as_series([list(x) for n in (1, 2, 3) for x in itertools.product(grid, repeat=n)]).astype(np.float64)

    def smallest(divisible, triangular, band):
        logs = alignments.log_sums(A, A, (0.5, divisible, triangular, band, 0.0), same=True, centre=True)
        return np.linalg.eigvalsh(np.exp(logs))[0]

    assert smallest(True, 0, 99) > -1e-10
    assert smallest(True, 2, 1) > -1e-10
    assert smallest(False, 0, 99) < -0.1
    assert smallest(True, 0, 1) < -0.05


def test_lengths_that_differ_by_triangular_have_similarity_zero():
    X = [[0.0] * n for n in (2, 4, 5)]
    K = GlobalAlignment(triangular=3)(X)
    assert (K[0, 1] > 0, K[0, 2]) == (True, 0)
    assert GlobalAlignment(triangular=3).log_values(X)[2, 0] == -np.inf
    np.testing.assert_allclose(GlobalAlignment(triangular=10**9)(X), GlobalAlignment()(X), rtol=1e-7)


def test_long_series_stay_in_logarithms():
    rng = np.random.default_rng(0)
    x = rng.normal(size=500).cumsum()
    X = [x, x + 0.01, -x]
    for bandwidth in (1e-3, 1.0, 1e6):
        logs = GlobalAlignment(bandwidth=bandwidth).log_values(X)
        assert np.isfinite(logs).all()
        assert logs[0, 2] < logs[0, 1] <= logs[0, 0] == 0
    noise = 1e-9 * rng.normal(size=(12, 200))
    many = list(x[:200] + noise)  # alike up to rounding, which must not lead above 1
    assert GlobalAlignment(bandwidth=10.0)(many).max() == 1
    raw = GlobalAlignment(bandwidth=100.0, normalize=False)
    assert raw.log_values(X)[0, 0] > 710
    for call in (raw, raw.diag):
        with pytest.raises(ValueError, match=r"k\(X\[0\], .* exceeds .*; use GlobalAlignment\(normalize=True\), or"):
            call(X)
    with pytest.raises(ValueError, match=r"k\(X\[1\], Y\[2\]\) = exp\(1756\.97\) exceeds"):
        raw([[0.0], [0.0] * 1000], [[0.0], [0.0], [0.0] * 1000])


@pytest.mark.parametrize("bandwidth", [1e-140, 1e-3, 0.3, 10.0, 1e6])
@pytest.mark.parametrize("triangular", [0, 40])
def test_long_series_against_the_recurrence_in_logarithms(bandwidth, triangular):
    """Cells of one row differ by far more than the range of float64, and the path that counts begins low."""
    rng = np.random.default_rng(5)
    walk = rng.normal(size=(130, 2)).cumsum(axis=0)
    late = np.vstack([walk[:1] + 30.0, walk[:110]])
    X = [walk, late, rng.normal(size=(118, 2)), walk[:3]]
    band = triangular - 1 if triangular else np.inf
    rate = 0.5 / bandwidth**2
    expected = [[naive_series.log_alignment_sum(x, y, rate, True, triangular, band) for y in X] for x in X[:2]]
    kernel = GlobalAlignment(bandwidth=bandwidth, triangular=triangular, normalize=False)
    got = kernel.log_values(X[:2], X)
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-10)
    np.testing.assert_array_equal(got, kernel.log_values(X, X[:2]).T)


def test_powers_of_two():
    """2^r by its series, and numbers taken apart and put together, against numpy."""
    from numba import njit

    from similia.core import lanes as lane

    @njit
    def taken_apart(numbers, out):
        number = lane.load(numbers, 0)
        whole = lane.nearest_integer(number)
        lane.store(out[0], 0, alignments._small_power(number - whole))
        lane.store(out[1], 0, lane.mantissa(number))
        lane.store(out[2], 0, lane.power_of_two(lane.exponent(number)))
        lane.store(out[3], 0, lane.power_of_two(lane.maximum(lane.splat(0.0) - whole, lane.splat(-1023.0))))

    rng = np.random.default_rng(0)
    for scale in (1.0, 30.0, 1e4, 1e100):
        numbers, out = np.abs(scale * rng.normal(size=lane.LANES)), np.empty((4, lane.LANES))
        taken_apart(numbers, out)
        m, e = np.frexp(numbers)
        np.testing.assert_allclose(out[0], np.exp2(numbers - np.rint(numbers)), rtol=5e-16)
        np.testing.assert_array_equal(out[1], 2 * m)
        np.testing.assert_array_equal(out[2], np.ldexp(1.0, e - 1))
        tiny = np.exp2(np.maximum(-np.rint(numbers), -2000))
        np.testing.assert_array_equal(out[3], np.where(tiny < np.finfo(float).tiny, 0, tiny))


def test_diagonal_dominance_grows_with_length():
    """-log k(x, y) of unlike series is about proportional to their length, unless the bandwidth follows it."""
    rng = np.random.default_rng(0)
    above = np.triu_indices(20, 1)
    fixed, suggested = [], []
    for length in (25, 50, 100):
        X = list(rng.normal(size=(20, length)))
        fixed.append(-GlobalAlignment(bandwidth=1.0).log_values(X)[above].mean())
        suggested.append(-GlobalAlignment(bandwidth=suggest_bandwidth(X)).log_values(X)[above].mean())
    assert 1.6 < fixed[1] / fixed[0] < 2.2
    assert 1.6 < fixed[2] / fixed[1] < 2.2
    assert max(suggested) < 1


def test_suggested_bandwidth():
    X = [np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([[3.0, 4.0], [6.0, 8.0], [0.0, 0.0], [9.0, 12.0]])]
    points = np.concatenate(X)
    pairs = [naive_series.euclidean(u, v) for u, v in itertools.combinations(points, 2)]
    assert suggest_bandwidth(X) == pytest.approx(np.median(pairs) * np.sqrt(3))
    many = list(np.random.default_rng(1).normal(size=(20, 100)))
    # |u - v| of two standard normals has median 0.954; 1000 points leave a few per cent of error
    assert suggest_bandwidth(many) == pytest.approx(9.54, rel=0.08)
    assert suggest_bandwidth(many, n_points=2000) == pytest.approx(9.54, rel=0.05)
    assert suggest_bandwidth(many) == suggest_bandwidth(many, random_state=0) != suggest_bandwidth(many, random_state=1)
    rare = [np.eye(16)[3] * 5, np.zeros(16)]  # most pairs of points are equal, the others differ by 5
    assert suggest_bandwidth(rare) == pytest.approx(5 * 4)
    for constant in ([[1.0, 1.0, 1.0]], [[2.0]]):
        with pytest.raises(ValueError, match="all distances of time points are 0"):
            suggest_bandwidth(constant)


@pytest.mark.same_bits
@each_kernel
def test_threads_change_no_bit(kernel, monkeypatch):
    X = SeriesBatch.from_arrays(collection(3, n=30, longest=25))
    Y = X[5:17]
    whole, square, diagonal = kernel(X, Y), kernel(X), kernel.diag(X)
    monkeypatch.setattr(alignments, "_WORTH_A_RANGE", 1)
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 4)
    np.testing.assert_array_equal(kernel(X, Y), whole)
    np.testing.assert_array_equal(kernel(X), square)
    np.testing.assert_array_equal(kernel.diag(X), diagonal)


@each_kernel
def test_float32_and_read_only_series(kernel):
    X = SeriesBatch.from_arrays(collection(4, n=5, longest=6, dtype=np.float32))
    K = kernel(X)
    assert K.dtype == np.float64
    np.testing.assert_array_equal(K, kernel(X.astype(np.float64)))
    X.values.setflags(write=False)
    np.testing.assert_array_equal(kernel(X, list(X)), K)
    assert isinstance(kernel.as_objects(list(X)), SeriesBatch)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"bandwidth": 0}, r"bandwidth must be a positive number, got 0; .*suggest_bandwidth\(X\) gives one"),
        ({"bandwidth": None}, "bandwidth must be a positive number, got None"),
        ({"bandwidth": np.nan}, "bandwidth must be a positive number, got nan"),
        ({"triangular": -1}, "triangular must be an integer >= 0, got -1"),
        ({"triangular": 2.5}, r"triangular must be an integer >= 0, got 2\.5"),
    ],
)
def test_wrong_parameters_are_refused(parameters, sentence):
    with pytest.raises(ValueError, match=sentence):
        GlobalAlignment(**parameters)([[1.0, 2.0]])


def test_other_channels_are_refused():
    with pytest.raises(ValueError, match="X have 1 channel and those of Y have 2"):
        GlobalAlignment()([np.zeros((3, 1))], [np.zeros((3, 2))])


_TSLEARN = """
import json, sys
import numpy as np
from tslearn.metrics import gak
X = [np.array(x) for x in json.load(sys.stdin)]
print(json.dumps([[float(gak(x, y, sigma=float(sys.argv[1]))) for y in X] for x in X]))
"""


@pytest.mark.ecosystem
def test_tslearn_agrees():
    """Its local similarity is the same e / (2 - e) (its documentation says e)."""
    python = os.environ.get("SIMILIA_RIVALS_PYTHON")
    if not python:
        pytest.skip("SIMILIA_RIVALS_PYTHON is not set: it names a Python that has tslearn")
    X = collection(8, n=5, longest=15, p=2)
    given = json.dumps([x.tolist() for x in X])
    run = subprocess.run([python, "-c", _TSLEARN, "1.3"], input=given, capture_output=True, text=True, check=True)
    np.testing.assert_allclose(GlobalAlignment(bandwidth=1.3)(X), json.loads(run.stdout), rtol=1e-9)
