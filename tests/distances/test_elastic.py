"""DTW, ERP, MSM, TWE, LCSS, ADTW and soft-DTW against worked values, recursive twins, their laws and aeon."""

import csv
import itertools
import json
import math
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from naive import series as naive_series
from naive import similarities as naive
from similia import alignments
from similia.core import config as _threads
from similia.core.lanes import LANES
from similia.distances import ADTW, DTW, ERP, LCSS, MSM, TWE, SoftDTW
from similia.objects import SeriesBatch

laws = settings(max_examples=20, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
WINDOWS = st.sampled_from([None, 0, 1, 2, 0.5])
DISTANCES = [
    ERP(),
    ERP(gap=1.0),
    MSM(c=0.5),
    TWE(nu=0.1, lmbda=0.5),
    LCSS(),
    ADTW(penalty=0.5),
    SoftDTW(),
    SoftDTW(gamma=0.5, divergence=False),
]
METRICS = [ERP(), ERP(gap=1.0), MSM(c=0.1), MSM(c=1.0), TWE(nu=0.01, lmbda=0.0), TWE(nu=1.0, lmbda=0.5)]
each_distance = pytest.mark.parametrize("distance", DISTANCES, ids=str)


def twin(distance, x, y):
    """One value by definition; x and y are (length, p)."""
    window = np.inf if distance.window is None else distance.window
    if isinstance(window, float) and window <= 1:
        window = math.floor(window * max(len(x), len(y)))
    band = max(window, abs(len(x) - len(y)))
    if isinstance(distance, ERP):
        return naive_series.erp(x, y, [distance.gap] * x.shape[1], band)
    if isinstance(distance, TWE):
        return naive_series.twe(x, y, distance.nu, distance.lmbda, band)
    if isinstance(distance, MSM):
        return sum(naive_series.msm(x[:, k], y[:, k], distance.c, band) for k in range(x.shape[1]))
    if isinstance(distance, ADTW):
        return naive_series.adtw(x, y, distance.penalty, band)
    if isinstance(distance, LCSS):
        return naive_series.lcss(x, y, distance.epsilon, band)
    pairs = [(x, y), (x, x), (y, y)]
    across, own, other = (naive_series.soft_dtw(*pair, distance.gamma, band) for pair in pairs)
    return across - (own + other) / 2 if distance.divergence else across


def collection(seed, n=3, longest=5, channels=None, dtype=np.float64):
    """Series of short lengths; half of the collections have few values, so that there are ties."""
    rng = np.random.default_rng(seed)
    p = channels or int(rng.integers(1, 3))
    shapes = [(int(rng.integers(1, longest + 1)), p) for _ in range(n)]
    if rng.random() < 0.5:
        return [rng.integers(-2, 3, size=shape).astype(dtype) for shape in shapes]
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


@each_distance
@laws
@given(SEEDS, WINDOWS)
def test_equals_the_recursive_twin(distance, seed, window):
    distance = clone(distance).set_params(window=window)
    X = collection(seed, n=4)
    expected = [[twin(distance, x, y) for y in X[1:]] for x in X[:2]]
    np.testing.assert_allclose(distance(X[:2], X[1:]), expected, rtol=1e-12, atol=1e-12)


@each_distance
@laws
@given(SEEDS, WINDOWS)
def test_laws(distance, seed, window):
    distance = clone(distance).set_params(window=window)
    X = SeriesBatch.from_arrays(collection(seed, n=6, longest=9))
    D = distance(X)
    np.testing.assert_array_equal(D, D.T)
    np.testing.assert_array_equal(distance(X, X), D)
    np.testing.assert_array_equal(distance(X[2:4], X[1:]), D[2:4, 1:])
    if distance.facts.identity:
        assert (np.diag(D) == 0).all()
        assert (D >= 0).all()


@pytest.mark.parametrize("distance", METRICS, ids=str)
@laws
@given(SEEDS)
def test_triangle_inequality(distance, seed):
    assert distance.facts.metric
    D = distance(collection(seed, n=12, longest=4))
    excess = D[:, None, :] - D[:, :, None] - D[None, :, :]
    assert excess.max() <= 1e-12 * max(1.0, D.max())


def test_a_window_ends_the_triangle_inequality():
    """x, y, z are one peak, shifted by a step each: two steps are more than a window of one."""
    x, y, z = [0, 0, 0, 3.0, 0], [0, 0, 3.0, 0, 0], [0, 3.0, 0, 0, 0]
    for distance in (ERP(window=1), MSM(c=0.1, window=1), TWE(nu=0.01, lmbda=0.1, window=1)):
        D = distance([x, y, z])
        assert D[0, 2] > D[0, 1] + D[1, 2] + 1
        assert not distance.facts.metric
        assert clone(distance).set_params(window=None).facts.metric
        assert type(distance).facts.metric


def test_facts_of_the_others():
    assert SoftDTW().facts.identity
    assert not SoftDTW(divergence=False).facts.identity
    for distance in (LCSS(), SoftDTW()):
        assert not distance.facts.metric
    whole, part, other = [0.0, 5.0], [0.0], [0.0, 9.0]
    D = LCSS()([whole, part, other])
    assert (D[0, 1], D[1, 2], D[0, 2]) == (0, 0, 0.5)
    D = SoftDTW(gamma=0.01)([[0.0], [1.0], [2.0]])
    assert D[0, 2] == pytest.approx(4)
    assert D[0, 2] > D[0, 1] + D[1, 2] + 1


def test_distance_zero_only_of_equal_series():
    X = [list(map(float, x)) for n in (1, 2, 3) for x in itertools.product((0, 1), repeat=n)]
    for distance in (MSM(), TWE(), TWE(nu=1e-9, lmbda=0.0)):
        np.testing.assert_array_equal(distance(X) == 0, np.eye(len(X), dtype=bool))
    without_gaps = [tuple(value for value in x if value) for x in X]
    np.testing.assert_array_equal(ERP()(X) == 0, [[x == y for y in without_gaps] for x in without_gaps])


@laws
@given(SEEDS)
def test_adding_a_constant(seed):
    X = collection(seed, n=4)
    moved = [x + 8.0 for x in X]
    for distance in (MSM(), TWE(), LCSS(), SoftDTW()):
        np.testing.assert_allclose(distance(moved), distance(X), atol=1e-12 * 8**2)
    np.testing.assert_allclose(ERP(gap=8.0)(moved), ERP(gap=0.0)(X), atol=1e-12)


def test_known_values():
    assert MSM(c=1.0)([[1.0, 3.0]], [[1.0, 2.0, 3.0]]) == 2.0  # split 1 (1), move one 1 to 2 (1); merge costs alike
    assert ERP()([[1.0, 2.0, 4.0]], [[2.0, 5.0]]) == 2.0  # delete 1, match 2, move 4 to 5
    assert ADTW(penalty=0.25)([[1.0, 4.0]], [[1.0, 1.0, 6.0]]) == 0.25 + 4  # one step warps; move 4 to 6
    assert LCSS(epsilon=0.0)([[1.0, 2.0, 3.0, 4.0]], [[2.0, 4.0, 1.0]]) == 1 - 2 / 3
    assert LCSS(epsilon=0.0, window=0)([[1.0, 2.0, 9.0]], [[1.0, 2.0, 3.0]]) == 1 - 2 / 3
    assert TWE(nu=0.25, lmbda=2.0)([[1.0]], [[4.0, 6.0]]) == 3 + (2 + 0.25 + 2)  # match 1, 4; delete the step 4 to 6


@laws
@given(SEEDS, WINDOWS)
def test_amerced_warping_is_between_warping_and_the_squared_euclidean_distance(seed, window):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(4, 6))
    np.testing.assert_allclose(ADTW(0.0, window)(X), DTW(window, "sqeuclidean")(X), rtol=1e-12)
    np.testing.assert_allclose(ADTW(1e6, window)(X), [[np.sum((x - y) ** 2) for y in X] for x in X], rtol=1e-12)
    penalties = np.array([ADTW(penalty, window)(X) for penalty in (0.0, 0.1, 1.0, 10.0)])
    assert (np.diff(penalties, axis=0) >= 0).all()


def test_sums_of_channels_and_euclidean_ground():
    X = collection(5, n=4, channels=3)
    by_channel = sum(MSM(c=0.3)([x[:, k] for x in X]) for k in range(3))
    np.testing.assert_allclose(MSM(c=0.3)(X), by_channel, rtol=1e-14)
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for distance in (ERP(), TWE(), SoftDTW()):  # none of them sees a rotation of the channels
        np.testing.assert_allclose(distance([x @ turn for x in X]), distance(X), atol=1e-12)


def test_soft_dtw_approaches_dtw():
    def dtw(x, y):
        costs = (
            sum(naive_series.euclidean(x[i], y[j]) ** 2 for i, j in p) for p in naive_series.alignments(len(x), len(y))
        )
        return min(costs)

    X = collection(7, n=5)
    expected = [[dtw(x, y) for y in X] for x in X]
    for divergence in (True, False):
        got = SoftDTW(gamma=1e-4, divergence=divergence)(X)
        np.testing.assert_allclose(got, expected, atol=1e-4 * np.log(len(naive_series.alignments(5, 5))))


def test_soft_dtw_of_long_series_is_finite():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=n) for n in (700, 900)]
    for gamma in (1e-8, 1.0, 1e8):
        D = SoftDTW(gamma=gamma)(X)
        assert np.isfinite(D).all()
        assert D[0, 1] > 0
    raw = SoftDTW(divergence=False, gamma=2.0)([np.zeros(900)])
    a, b = 1, 3  # Delannoy numbers: alignments of two series of length 1 and 2
    for n in range(2, 900):
        a, b = b, (3 * (2 * n - 1) * b - (n - 1) * a) // n
    assert raw[0, 0] == pytest.approx(-2 * math.log(b), rel=1e-12)


@pytest.mark.same_bits
@each_distance
def test_threads_change_no_bit(distance, monkeypatch):
    rng = np.random.default_rng(3)
    X = SeriesBatch.from_arrays([rng.normal(size=(int(n), 2)) for n in rng.integers(1, 30, size=40)])
    Y = X[5:17]
    whole, square = distance(X, Y), distance(X)
    monkeypatch.setattr(alignments, "_WORTH_A_RANGE", 1)
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 4)
    np.testing.assert_array_equal(distance(X, Y), whole)
    np.testing.assert_array_equal(distance(X), square)


def test_what_is_left_in_working_memory_does_not_matter():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 2)), rng.normal(size=(5, 2))

    def lanes(side, costs=None):
        """Series and deletion costs in lane 0, garbage elsewhere."""
        values = side if costs is None else np.column_stack([side, costs])
        packed = np.full((values.size, LANES), np.nan)
        packed[:, 0] = values.ravel()
        return packed.ravel(), values.shape[1]

    def garbage(*shape):
        return np.full(shape, np.nan)

    for (x, y), band in itertools.product([(a, b), (b, a)], (2, 9)):
        widths = np.full(LANES, float(band))

        def sides(costs=None, x=x, y=y):
            values = x if costs is None else np.column_stack([x, costs(x)])
            packed, stride = lanes(y, None if costs is None else costs(y))
            return values.ravel(), 0, len(x), packed, 0, len(y), stride

        def left(loop, first, *options, extra=(), widths=widths, y=y):
            room = garbage(LANES * 8)
            loop(first, *options, widths, room, *extra)
            return room[LANES * len(y)]

        def steps(side):
            return np.r_[0, np.linalg.norm(np.diff(side, axis=0), axis=1)] + 0.6

        lengths = [np.full(LANES, len(side)) for side in (x, y)]
        how, found = (1.0, False, 0, band, 0.0), garbage(LANES)
        one, other = ((lanes(side)[0], 0, length) for side, length in zip((x, y), lengths, strict=True))
        alignments._log_sum(one, other, 2, how, widths, garbage(2, 8 * LANES), found)
        got = {
            "erp": left(alignments._erp, sides(lambda side: np.linalg.norm(side, axis=1)), 2, extra=[None]),
            "twe": left(alignments._twe, sides(steps), 2, 0.1, extra=[garbage(LANES * 7), None]),
            "lcss": 1 + left(alignments._lcss, sides(), 2, 1.0) / 3,
            "msm": left(alignments._msm, sides(), 1, 0.5, extra=[None]),
            "soft": -found[0],
        }
        expected = {
            "erp": naive_series.erp(x, y, [0.0] * 2, band),
            "twe": naive_series.twe(x, y, 0.1, 0.5, band),
            "lcss": naive_series.lcss(x, y, 1.0, band),
            "msm": naive_series.msm(x[:, 1], y[:, 1], 0.5, band),
            "soft": naive_series.soft_dtw(x, y, 1.0, band),
        }
        assert got == pytest.approx(expected)


@pytest.mark.parametrize("distance", [MSM(c=1e200), TWE(nu=1e-3, lmbda=1e200), TWE(nu=1e200, lmbda=0.0)], ids=repr)
def test_large_costs_of_small_series(distance):
    x, y = [1e-200], [1e-200, 1e-200]
    assert distance([x], [y])[0, 0] == 1e200
    assert distance([x], [[3e-200]])[0, 0] == pytest.approx(2e-200, rel=1e-15)


@each_distance
def test_float32_lists_and_read_only_series(distance):
    X = SeriesBatch.from_arrays(collection(11, n=5, dtype=np.float32))
    D = distance(X)
    assert D.dtype == np.float64
    np.testing.assert_array_equal(D, distance(X.astype(np.float64)))
    np.testing.assert_array_equal(D, distance([np.asarray(x, dtype=np.float64) for x in X]))
    before = X.values.copy()
    X.values.setflags(write=False)
    X.offsets.setflags(write=False)
    np.testing.assert_array_equal(distance(X, X), D)
    np.testing.assert_array_equal(X.values, before)
    assert isinstance(distance.as_objects(list(X)), SeriesBatch)


@pytest.mark.parametrize(
    ("distance", "sentence"),
    [
        (ERP(gap=np.inf), "gap must be a finite number, got inf"),
        (ERP(gap="0"), "gap must be a finite number, got '0'"),
        (MSM(c=0), "c must be a positive number, got 0"),
        (ERP(gap=10**400), "gap must be a finite number, got 1000"),
        (MSM(c=True), "c must be a positive number, got True"),
        (MSM(c=10**400), r"c must be a positive number, got 1000.*"),
        (TWE(nu=0.0), r"nu must be a positive number, got 0\.0"),
        (TWE(lmbda=-1), "lmbda must be a number >= 0, got -1"),
        (ADTW(penalty=-1), "penalty must be a number >= 0, got -1"),
        (LCSS(epsilon=np.nan), "epsilon must be a number >= 0, got nan"),
        (SoftDTW(gamma=0), "gamma must be a positive number, got 0"),
        (SoftDTW(window=1.5), r"window must be None, an integer >= 0 \(steps\) or a float .* got 1\.5"),
        (ERP(window=True), "window must be None, .* got True"),
        (LCSS(window=-1), "window must be None, .* got -1"),
    ],
)
def test_wrong_parameters_are_refused(distance, sentence):
    with pytest.raises(ValueError, match=sentence):
        distance([[1.0, 2.0]])


@each_distance
def test_batches_that_no_reader_would_make_are_refused(distance):
    X = SeriesBatch.from_arrays([np.zeros((3, 2)), np.array([[0.0, 0.0], [0.0, np.nan]])])
    empty = SeriesBatch(np.zeros((3, 2)), np.array([0, 3, 3]))
    with pytest.raises(ValueError, match="X is empty: found 0 objects"):
        distance(X[:0])
    with pytest.raises(ValueError, match=r"Y\[1\] has length 0, expected at least one time point"):
        distance(X[:1], empty)
    with pytest.raises(ValueError, match=r"X\[1\], time point 1, channel 1 is nan, expected a finite number"):
        distance(X)


@each_distance
def test_other_channels_are_refused(distance):
    with pytest.raises(ValueError, match="X have 1 channel and those of Y have 2"):
        distance([np.zeros((3, 1))], [np.zeros((3, 2))])


_AEON = """
import json, sys
import numpy as np
from aeon import distances as aeon
sets = [[np.array(x).T for x in X] for X in json.load(sys.stdin)]
out = {}
for name, options in json.loads(sys.argv[1]).items():
    distance = getattr(aeon, name + "_distance")
    out[name] = [[[float(distance(x, y, **options)) for y in X] for x in X] for X in sets]
print(json.dumps(out))
"""


@pytest.mark.ecosystem
def test_aeon_agrees():
    """On series that all start at one far value: aeon's ERP overcharges alignments that delete the first points."""
    python = os.environ.get("SIMILIA_RIVALS_PYTHON")
    if not python:
        pytest.skip("SIMILIA_RIVALS_PYTHON is not set: it names a Python that has aeon")
    ours = {
        "erp": (ERP(gap=0.25), {"g": 0.25}),
        "msm": (MSM(c=0.3), {"c": 0.3}),
        "twe": (TWE(nu=0.05, lmbda=0.4), {"nu": 0.05, "lmbda": 0.4}),
        "adtw": (ADTW(penalty=0.7), {"warp_penalty": 0.7}),
        "lcss": (LCSS(epsilon=0.7), {"epsilon": 0.7}),
        "soft_dtw": (SoftDTW(gamma=0.5, divergence=False), {"gamma": 0.5}),
    }
    sets = [[np.vstack([np.full((1, p), 1e3), x]) for x in collection(p, n=6, longest=12, channels=p)] for p in (1, 3)]
    options = json.dumps({name: keywords for name, (_, keywords) in ours.items()})
    given = json.dumps([[x.tolist() for x in X] for X in sets])
    run = subprocess.run([python, "-c", _AEON, options], input=given, capture_output=True, text=True, check=True)
    for name, blocks in json.loads(run.stdout).items():
        for X, theirs in zip(sets, blocks, strict=True):
            D, E = ours[name][0](X), np.array(theirs)
            if name == "soft_dtw":  # aeon drops the sign, and takes plain DTW for a series and itself
                D, E = np.abs(D[np.triu_indices(6, 1)]), E[np.triu_indices(6, 1)]
            np.testing.assert_allclose(D, E, rtol=1e-9, atol=1e-9, err_msg=name)


REFERENCE = Path(__file__).parents[1] / "reference"
COUNTS = st.integers(1, 35)  # groups of 16 lanes: 15, 16, 17, 31, 32, 33
CHANNELS = st.integers(1, 5)
DTW_WINDOWS = st.sampled_from([None, 0, 1, 3, 12, 10**15, 0.05, 0.1, 0.29, 0.5, 1.0])
DTYPES = st.sampled_from([np.float32, np.float64])
LOCALS = st.sampled_from(["euclidean", "sqeuclidean"])
dtw_laws = settings(max_examples=40, deadline=None)


def series(random, n, p, dtype=np.float64, longest=40):
    """Random walks: neighbouring steps are alike, as where warping matters."""
    lengths = random.integers(1, longest + 1, n)
    return [random.standard_normal((length, p)).cumsum(axis=0).astype(dtype) for length in lengths]


def worked_values():
    with (REFERENCE / "E_dtw.csv").open() as file:
        return [(json.loads(row["x"]), json.loads(row["y"]), row) for row in csv.DictReader(file)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("distance", "column"),
    [
        (DTW(), "dtw_euclidean"),
        (DTW(local="sqeuclidean"), "dtw_squared_sum"),
        (DTW(local="sqeuclidean", root=True), "sqrt_of_squared_sum"),
    ],
)
def test_worked_values(distance, column, dtype):
    for x, y, row in worked_values():
        for a, b in ((x, y), (y, x)):
            value = distance([np.array(a, dtype)], [np.array(b, dtype)])
            assert value.dtype == dtype
            assert value[0, 0] == pytest.approx(float(row[column]), rel=8 * float(np.finfo(dtype).eps))


@dtw_laws
@given(SEEDS, COUNTS, COUNTS, CHANNELS, DTW_WINDOWS, DTYPES, LOCALS)
@example(0, 33, 17, 3, None, np.float32, "euclidean")
@example(0, 17, 33, 1, 3, np.float32, "euclidean")
@example(0, 16, 16, 2, 0.29, np.float64, "sqeuclidean")
def test_values_equal_the_twin(seed, n, m, p, window, dtype, local):
    random = np.random.default_rng(seed)
    X, Y = series(random, n, p, dtype), series(random, m, p, dtype)
    values = DTW(window, local)(X, Y)
    assert values.shape == (n, m)
    assert values.dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-13
    for i, j in {(random.integers(n), random.integers(m)) for _ in range(6)}:
        expected = naive.dtw(X[i], Y[j], window, local == "sqeuclidean")
        assert values[i, j] == pytest.approx(expected, rel=tolerance, abs=1e-30)


def test_single_precision_on_long_series():
    random = np.random.default_rng(0)
    X, Y = ([random.standard_normal((n, 3)).astype(np.float32) for n in lengths] for lengths in ((205, 190), (400, 25)))
    expected = [[naive.dtw(x, y) for y in Y] for x in X]
    np.testing.assert_allclose(DTW()(X, Y), expected, rtol=2e-6)


@dtw_laws
@given(SEEDS, COUNTS, COUNTS, CHANNELS, DTW_WINDOWS, DTYPES, LOCALS)
@example(1, 33, 1, 2, 3, np.float32, "euclidean")  # the one series becomes the row
@example(1, 1, 33, 2, 3, np.float32, "euclidean")
def test_a_value_depends_on_its_pair_only_bit_for_bit(seed, n, m, p, window, dtype, local):
    random = np.random.default_rng(seed)
    X, Y = series(random, n, p, dtype), series(random, m, p, dtype)
    distance = DTW(window, local)
    values = distance(X, Y)
    np.testing.assert_array_equal(distance(Y, X), values.T)
    for i, j in {(random.integers(n), random.integers(m)) for _ in range(4)}:
        assert distance([X[i]], [Y[j]]) == values[i, j]
    together = distance(X + Y)
    np.testing.assert_array_equal(together, together.T)
    np.testing.assert_array_equal(np.diagonal(together), 0)
    np.testing.assert_array_equal(together[:n, n:], values)
    np.testing.assert_array_equal(distance(list(X), list(X)), together[:n, :n])


@pytest.mark.same_bits
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_threads_change_no_bit_of_dtw(monkeypatch, cores):
    random = np.random.default_rng(3)
    X, Y = series(random, 60, 2, np.float32), series(random, 37, 2, np.float32)
    expected, own = DTW()(X, Y), DTW(window=4)(X)
    ranges = []

    def counted(work, n, grain):
        _threads.run_in_ranges(lambda *run: (ranges.append(run), work(*run)), n, grain)

    monkeypatch.setattr(_threads, "cpu_count", lambda: cores)
    monkeypatch.setattr(alignments, "_WORTH_A_RANGE", 1)
    monkeypatch.setattr(alignments, "run_in_ranges", counted)
    np.testing.assert_array_equal(DTW()(X, Y), expected)
    assert len(ranges) == 1 if cores == 1 else len(ranges) > cores
    np.testing.assert_array_equal(DTW(window=4)(X), own)


@given(st.integers(1, 300))
def test_turns_are_all_numbers_once(n):
    assert sorted(alignments._turns(n)) == list(range(n))


@dtw_laws
@given(SEEDS, CHANNELS, LOCALS)
def test_a_wider_window_is_never_farther(seed, p, local):
    random = np.random.default_rng(seed)
    X, Y = series(random, 5, p), series(random, 18, p)
    values = [DTW(window, local)(X, Y) for window in (0, 1, 2, 5, 10, 40, None)]
    for narrow, wide in itertools.pairwise(values):
        assert (wide <= narrow).all()
    for window in (40, 1.0):
        np.testing.assert_array_equal(DTW(window, local)(X, Y), values[-1])


def test_a_window_of_0_compares_step_with_step():
    x, y = np.random.default_rng(0).standard_normal((2, 30, 2))
    assert DTW(0)([x], [y]) == pytest.approx(np.linalg.norm(x - y, axis=1).sum())
    assert DTW(0)([x], [y[:20]]) == DTW(10)([x], [y[:20]])  # widened: otherwise no path


def test_a_share_is_rounded_down_as_in_decimal_numbers():
    x, y = np.random.default_rng(0).standard_normal((2, 100, 1)).cumsum(axis=1)
    assert DTW(0.29)([x], [y]) == DTW(29)([x], [y])  # 0.29 * 100 is 28.999999999999996 in floats
    assert DTW(0.296)([x], [y]) == DTW(29)([x], [y])
    assert DTW(29)([x], [y]) != DTW(28)([x], [y])


def test_it_is_no_metric():
    x, y, z = [2.0, 2.0, 2.0], [2.0], [0.0]
    D = DTW()([x, y, z])
    assert D[0, 1] == 0  # though x and y differ
    assert D[0, 2] == 6 > D[0, 1] + D[1, 2] == 2
    assert not DTW.facts.metric
    assert DTW.facts.symmetric
    assert DTW.facts.identity


def test_types_of_input():
    singles = [np.float32([[0], [1.5]]), np.float32([[2]])]
    doubles = [x.astype(np.float64) for x in singles]
    assert DTW()(singles, doubles).dtype == np.float64
    assert DTW()([[0, 1], [2]]).dtype == np.float64
    batch = SeriesBatch.from_arrays(singles)
    read_only = SeriesBatch(np.frombuffer(batch.values.tobytes(), np.float32).reshape(-1, 1), batch.offsets)
    np.testing.assert_array_equal(DTW()(read_only), DTW()(batch))
    both = np.random.default_rng(0).standard_normal((6, 2))
    columns = SeriesBatch(np.asfortranarray(both), np.array([0, 2, 6]))
    np.testing.assert_array_equal(DTW()(columns), DTW()([both[:2], both[2:]]))
    assert repr(clone(DTW(window=0.1))) == "DTW(window=0.1)"


@pytest.mark.parametrize(
    ("distance", "X", "Y", "message"),
    [
        (DTW(), [np.zeros((3, 2))], [np.zeros((3, 3))], "series of X have 2 channels and those of Y have 3"),
        (DTW(-1), [[0.0]], None, "window must be None, an integer >= 0 .* got -1"),
        (DTW(0.0), [[0.0]], None, "window must be .* got 0.0"),
        (DTW(1.5), [[0.0]], None, "window must be .* got 1.5"),
        (DTW(True), [[0.0]], None, "window must be .* got True"),
        (DTW("auto"), [[0.0]], None, "window must be .* got 'auto'"),
        (DTW(local="manhattan"), [[0.0]], None, "local must be 'euclidean' or 'sqeuclidean', got 'manhattan'"),
        (DTW(root=True), [[0.0]], None, "root=True .* set local='sqeuclidean'"),
        (DTW(), [[0.0], [1e200, 0.0]], [[-1e200, 1.0]], None),
        (DTW(local="sqeuclidean"), [[0.0], [1e200]], [[1.0]], r"X\[1\] and Y\[0\] exceeds the largest float64; scale"),
        (DTW(local="sqeuclidean"), [np.float32([[1e30]])], [np.float32([[1]])], "float32; .* or give them as float64"),
        (DTW(), SeriesBatch(np.zeros((1, 1)), np.array([0, 1, 1])), None, r"X\[1\] has length 0"),
        (
            DTW(),
            SeriesBatch(np.array([[0, 1], [2, np.nan]]), np.array([0, 1, 2])),
            None,
            r"X\[1\], .* channel 1 is nan",
        ),
        (DTW(), [[0.0]], [[0.0, np.inf]], "series 0, time point 1, channel 0 is inf"),
        (DTW(), SeriesBatch(np.zeros((0, 1)), np.array([0])), None, "X is empty: found 0 objects"),
    ],
)
def test_bad_input(distance, X, Y, message):
    if message is None:
        assert np.isfinite(distance(X, Y)).all()
        return
    with pytest.raises(ValueError, match=message):
        distance(X, Y)


def test_input_is_not_changed():
    X = series(np.random.default_rng(0), 20, 2)
    copies = [x.copy() for x in X]
    DTW(window=2)(X)
    for x, copy in zip(X, copies, strict=True):
        np.testing.assert_array_equal(x, copy)


def test_the_error_of_long_series_in_float32_is_the_one_stated():
    x, y = np.zeros(100_000, np.float32), np.full(100_000, 0.1, np.float32)
    exact = 100_000 * float(y[0])
    [[found]] = DTW(window=0)([x], [y])
    assert abs(found / exact - 1) < 2e-4 < (len(x) + len(y)) * 2.0**-24
    [[found]] = DTW(window=0)([x[:300]], [y[:300]])
    assert abs(found / (300 * float(y[0])) - 1) < 3e-6
