"""Edit distances against reference values, slow twins and their laws; adapters of other libraries' functions."""

import csv
import pickle
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import process
from scipy.spatial.distance import cdist
from sklearn.base import clone

import similia as sm
from naive import similarities as naive
from similia.distances import DamerauLevenshtein, FromFunction, Hamming, JaroWinkler, Levenshtein
from similia.distances import edit as module
from similia.objects import SeriesBatch, as_strings

REFERENCE = Path(__file__).parents[1] / "reference"
laws = settings(max_examples=40, deadline=None)
TWINS = [
    (Levenshtein(), naive.edit_distance),
    (Hamming(), naive.hamming_padded),
    (DamerauLevenshtein(), naive.damerau_levenshtein),
    (JaroWinkler(), naive.jaro_winkler),
    (JaroWinkler(prefix_weight=0.25), partial(naive.jaro_winkler, weight=0.25)),
]
each_distance = pytest.mark.parametrize("distance", [distance for distance, _ in TWINS], ids=str)
each_twin = pytest.mark.parametrize(("distance", "twin"), TWINS, ids=[str(distance) for distance, _ in TWINS])
SHORT = st.lists(st.text("abé", max_size=4), min_size=1, max_size=4)


def words(seed, n, shortest, longest, letters="ACGT"):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), rng.integers(shortest, longest + 1))) for _ in range(n)]


def by_rows(x, y):
    """Levenshtein distance by its table, for strings too long for the definition."""
    before = range(len(y) + 1)
    for i, a in enumerate(x, 1):
        row = [i]
        for j, b in enumerate(y, 1):
            row.append(min(before[j] + 1, row[-1] + 1, before[j - 1] + (a != b)))
        before = row
    return before[-1]


def test_reference_values():
    with (REFERENCE / "E_levenshtein.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12
    D = Levenshtein()([row["x"] for row in rows], [row["y"] for row in rows])
    assert D.diagonal().tolist() == [int(row["d"]) for row in rows]


@each_twin
@laws
@given(X=SHORT, Y=SHORT)
def test_agrees_with_the_twin(distance, twin, X, Y):
    D = distance(X, Y)
    expected = np.array([[twin(x, y) for y in Y] for x in X])
    if distance._counts_edits:
        np.testing.assert_array_equal(D, expected)
    else:
        np.testing.assert_allclose(D, expected, rtol=1e-12, atol=1e-12)


# Lengths on both sides of the change from registers to words, and of the width of a byte.
@pytest.mark.parametrize(
    "lengths", [((0, 9), (0, 9)), ((60, 68), (60, 68)), ((1, 20), (120, 130)), ((250, 300), (0, 9))]
)
def test_long_strings(lengths):
    X, Y = words(0, 5, *lengths[0]), words(1, 4, *lengths[1])
    assert (Levenshtein()(X, Y) == [[by_rows(x, y) for y in Y] for x in X]).all()
    assert (Levenshtein()(X) == [[by_rows(x, y) for y in X] for x in X]).all()


@pytest.mark.parametrize("n", [255, 256, 65_535, 65_536, 70_000])
def test_nothing_wraps(n):
    for distance in (Levenshtein(), Hamming()):
        assert distance(["a" * n, ""], ["b" * n, "b"]).tolist() == [[n, n], [n, 1]]


def test_dtypes():
    for distance in (Levenshtein(), Hamming(), DamerauLevenshtein()):
        assert distance(["a"], ["b"]).dtype == np.float32
    assert JaroWinkler()(["a"], ["b"]).dtype == np.float64
    assert Hamming()(["a" * (2**24 + 1)], ["b"]).tolist() == [[2**24 + 1]]


def test_a_prefix_weight_of_a_quarter_looks_at_four_letters():
    assert JaroWinkler(prefix_weight=0.25)(["abcd1"], ["abcd2"]).item() == 0
    assert JaroWinkler(prefix_weight=0.24)(["abcd1"], ["abcd2"]).item() > 0


@each_distance
@laws
@given(X=st.lists(st.text(max_size=8), min_size=2, max_size=6), Y=SHORT)
def test_laws(distance, X, Y):
    D = distance(X)
    assert (D >= 0).all()
    assert (D == D.T).all()
    assert (D.diagonal() == 0).all()
    equal = [[x == y for y in X] for x in X]
    if getattr(distance, "prefix_weight", 0) == 0.25:  # four equal letters at the beginning may be enough
        equal = [[x[:4] == y[:4] for y in X] for x in X]
        assert (D[np.logical_not(equal)] > 0).all()
    else:
        assert ((D == 0) == equal).all()
    assert (distance(X, Y) == distance(Y, X).T).all()
    assert (distance(X[1:], Y) == distance(X, Y)[1:]).all()
    assert (distance(as_strings(X), as_strings(Y)) == distance(X, Y)).all()


@pytest.mark.same_bits
@each_distance
def test_blocks_and_threads_change_nothing(distance, monkeypatch):
    X, Y = words(0, 40, 0, 90), words(1, 30, 0, 20)
    expected, own = distance(X, Y), distance(X)
    assert (own == distance(X, list(X))).all()
    assert (expected == distance(Y, X).T).all()
    assert expected.flags.c_contiguous
    monkeypatch.setattr(module, "_BLOCK", 100)
    monkeypatch.setattr(module, "_WORTH_THREADS", 0)
    monkeypatch.setattr("similia.core.config.cpu_count", lambda: 3)
    assert (distance(X, Y) == expected).all()
    assert (distance(Y, X) == expected.T).all()
    assert (distance(X) == own).all()
    monkeypatch.setattr(module, "_SHORT", -1)
    assert (distance(X) == own).all()
    with sm.config(max_memory=1):
        assert (distance(X, Y) == expected).all()


def test_blocks_fit_the_memory_they_may_take(monkeypatch):
    sizes, original = [], process.cdist

    def watched(*arguments, **options):
        values = original(*arguments, **options)
        sizes.append(values.nbytes)
        return values

    monkeypatch.setattr("rapidfuzz.process.cdist", watched)
    with sm.config(max_memory=4000):
        Levenshtein()(words(0, 50, 5, 9), words(1, 100, 1, 4))
    assert max(sizes) <= 4000


@each_distance
def test_bytes_are_compared_by_byte(distance):
    X = [b"ab\xff", b"", b"a\xff"]
    as_text = [x.decode("latin-1") for x in X]
    assert (distance(X) == distance(as_text)).all()
    assert (distance(X, X[:2]) == distance(as_text, as_text[:2])).all()


def test_damerau_levenshtein_is_the_unrestricted_one():
    # CA, AC, ABC; optimal string alignment, which edits no letter twice, takes 3 steps.
    assert DamerauLevenshtein()(["CA"], ["ABC"]).tolist() == [[2]] == [[naive.damerau_levenshtein("CA", "ABC")]]


def test_code_points_not_bytes():
    assert Levenshtein()(["é", "😀", "\ud800"], ["e"]).tolist() == [[1], [1], [1]]


@each_distance
def test_bad_input(distance):
    with pytest.raises(TypeError, match="X holds str and Y bytes, expected one kind"):
        distance(["a"], [b"a"])
    with pytest.raises(TypeError, match=r"X\[1\] is int"):
        distance(["a", 3])
    with pytest.raises(TypeError, match=r"^Y\[1\] is int"):
        distance(["a"], ["a", 3])
    with pytest.raises(TypeError, match="is one string"):
        distance("abc")
    with pytest.raises(ValueError, match="empty"):
        distance([])


@pytest.mark.parametrize("weight", [-0.1, 0.3, np.nan, "a", True])
def test_bad_prefix_weight(weight):
    with pytest.raises(ValueError, match="prefix_weight must be a number from 0 to"):
        JaroWinkler(prefix_weight=weight)(["a"])


def test_jaro_winkler_published_values():
    # Winkler 1990 and 1994, Table of examples.
    pairs = {("MARTHA", "MARHTA"): 0.961, ("DIXON", "DICKSONX"): 0.813, ("DWAYNE", "DUANE"): 0.840}
    for (x, y), similarity in pairs.items():
        assert 1 - JaroWinkler()([x], [y])[0, 0] == pytest.approx(similarity, abs=6e-4)


def test_jaro_winkler_is_no_metric():
    D = JaroWinkler()(["a", "aa", "ba"])
    assert D[0, 2] > D[0, 1] + D[1, 2] + 0.4


# ---- adapters
def length_gap(x, y):
    return abs(len(x) - len(y))


def series(seed, n, p=2):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((length, p)) for length in rng.integers(1, 7, n)]


def mean_gaps(X, Y):
    """A pairwise function in the style of tslearn: lists of (length, channels) arrays."""
    return np.array([[np.abs(x.mean(axis=0) - y.mean(axis=0)).sum() for y in Y] for x in X])


def mean_gaps_by_channel(X, Y):
    """A pairwise function in the style of aeon: lists of (channels, length) arrays, as compiled code takes them."""
    assert all(x.flags.c_contiguous and x.shape[0] == 2 for x in [*X, *Y])
    return np.array([[np.abs(x.mean(axis=1) - y.mean(axis=1)).sum() for y in Y] for x in X])


def test_function_of_two_objects():
    X, Y = ["kitten", "", "cat"], ["sitting", "a"]
    D = FromFunction(length_gap)
    assert D(X, Y).tolist() == [[abs(len(x) - len(y)) for y in Y] for x in X]
    assert D(X).tolist() == [[abs(len(x) - len(y)) for y in X] for x in X]


def test_symmetric_functions_are_called_for_half_of_the_pairs():
    calls = []

    def counted(x, y):
        calls.append((x, y))
        return 0.0

    FromFunction(counted)([1, 2, 3])
    assert len(calls) == 6
    FromFunction(counted, symmetric=False)([1, 2, 3])
    assert len(calls) == 6 + 9


@pytest.mark.parametrize("make", [list, lambda X: SeriesBatch.from_arrays(X)])
def test_layouts(make):
    X, Y = series(0, 4), series(1, 3)
    expected, own = mean_gaps(X, Y), mean_gaps(X, X)
    X, Y = make(X), make(Y)
    for distance in (
        FromFunction(mean_gaps, pairwise=True, axes="time, channel"),
        FromFunction(mean_gaps_by_channel, pairwise=True, axes="channel, time"),
        FromFunction(lambda x, y: mean_gaps_by_channel([x], [y])[0, 0], axes="channel, time"),
    ):
        np.testing.assert_allclose(distance(X, Y), expected)
        np.testing.assert_allclose(distance(X), own, atol=1e-15)
        np.testing.assert_allclose(distance(distance.as_objects(X), distance.as_objects(Y)), expected)


def test_pairwise_functions_of_vectors():
    X = np.random.default_rng(0).standard_normal((5, 3))
    distance = FromFunction(partial(cdist, metric="cityblock"), pairwise=True)
    np.testing.assert_array_equal(distance(X, X[:2]), cdist(X, X[:2], "cityblock"))
    assert distance(X).shape == (5, 5)


def test_float32_stays():
    assert FromFunction(lambda X, Y: np.ones((len(X), len(Y)), np.float32), pairwise=True)([1, 2]).dtype == np.float32


def test_errors_of_the_second_collection_name_it():
    with pytest.raises(ValueError, match=r"^Y, series 1, time point 0, channel 0 is nan"):
        FromFunction(mean_gaps, pairwise=True, axes="time, channel")([[1.0]], [[1.0], [np.nan]])
    with pytest.raises(TypeError, match=r"^Y is int"):
        FromFunction(length_gap)(["a"], 3)


def test_can_be_cloned_and_pickled():
    distance = FromFunction(mean_gaps, pairwise=True, axes="time, channel")
    X = series(0, 3)
    for copy in (clone(distance), pickle.loads(pickle.dumps(distance))):
        assert (copy(X) == distance(X)).all()


def negative(x, y):
    return -1.0


@pytest.mark.parametrize(
    ("distance", "error", "message"),
    [
        (FromFunction(negative), ValueError, r"the distance negative returned -1 for X\[0\] and Y\[0\], expected"),
        (FromFunction(partial(negative)), ValueError, "the distance negative returned -1"),
        (FromFunction(lambda x, y: float("nan")), ValueError, r"<lambda> returned nan for the pair \(0, 0\)"),
        (FromFunction(lambda x, y: "far"), TypeError, "returned str for the pair"),
        (FromFunction(length_gap, pairwise=True), ValueError, r"length_gap returned shape \(\) for 2 x 2 objects"),
        (FromFunction(lambda X, Y: [[0, 1], [np.inf, 0]], pairwise=True), ValueError, r"inf for X\[1\] and Y\[0\]"),
        (FromFunction("cosine"), TypeError, "FromFunction takes a function d"),
        (FromFunction(length_gap, axes="wide"), ValueError, "axes must be None, 'time, channel' or 'channel"),
    ],
)
def test_bad_functions(distance, error, message):
    with pytest.raises(error, match=message):
        distance(["a", "b"])
