"""ERP, MSM, TWE, LCSS, ADTW and soft-DTW against recursive twins, their laws and aeon."""

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
    monkeypatch.setattr("similia.core.threads.cpu_count", lambda: 4)
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
            "erp": left(alignments._erp, sides(lambda side: np.linalg.norm(side, axis=1)), 2),
            "twe": left(alignments._twe, sides(steps), 2, 0.1, extra=[garbage(LANES * 7)]),
            "lcss": 1 + left(alignments._lcss, sides(), 2, 1.0) / 3,
            "msm": left(alignments._msm, sides(), 1, 0.5),
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
