"""DTW against the worked values, a twin that goes cell by cell, and its laws."""

import csv
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

from naive import similarities as naive
from similia import alignments
from similia.core import threads as _threads
from similia.distances import DTW
from similia.objects import SeriesBatch

REFERENCE = Path(__file__).parents[1] / "reference"
SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(1, 35)  # groups of 16 lanes: 15, 16, 17, 31, 32, 33
CHANNELS = st.integers(1, 5)
WINDOWS = st.sampled_from([None, 0, 1, 3, 12, 10**15, 0.05, 0.1, 0.29, 0.5, 1.0])
DTYPES = st.sampled_from([np.float32, np.float64])
LOCALS = st.sampled_from(["euclidean", "sqeuclidean"])
laws = settings(max_examples=40, deadline=None)


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


@laws
@given(SEEDS, COUNTS, COUNTS, CHANNELS, WINDOWS, DTYPES, LOCALS)
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


@laws
@given(SEEDS, COUNTS, COUNTS, CHANNELS, WINDOWS, DTYPES, LOCALS)
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
def test_threads_change_no_bit(monkeypatch, cores):
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


@laws
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
