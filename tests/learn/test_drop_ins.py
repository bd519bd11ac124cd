"""Nearest neighbours and support-vector machines straight on objects: exact, tie by tie, for any kernel or distance."""

from __future__ import annotations

import pickle
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier as VectorNeighbors
from sklearn.neighbors import KNeighborsRegressor as VectorNeighborsRegressor
from sklearn.neighbors import NearestNeighbors as VectorSearch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.estimator_checks import check_estimator

import similia as sm
from naive import similarities as naive
from similia.core import config as _threads
from similia.distances import DTW, ERP, FromFunction, Levenshtein
from similia.kernels import DistanceRBF, Spectrum, WeisfeilerLehman
from similia.learn.kernel_machines import KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor

BY_VECTORS = FromFunction(euclidean_distances, pairwise=True)


def nearest_by_sorting(D, k):
    """The k nearest by the definition: all pairs sorted by (distance, position)."""
    indices = np.array([sorted(range(len(row)), key=lambda j: (row[j], j))[:k] for row in D])
    return np.take_along_axis(D, indices, axis=1), indices


def series(random, n, p, longest, whole, dtype=np.float64):
    lengths = random.integers(1, longest + 1, n)
    draw = (lambda shape: random.integers(-2, 3, shape)) if whole else random.standard_normal
    return [draw((length, p)).astype(dtype) for length in lengths]


def words(random, n):
    return ["".join(random.choice(list("ab"), size)) for size in random.integers(1, 6, n)]


def beats(n, seed=0):
    random = np.random.default_rng(seed)
    X = [np.sin(np.linspace(0, turns, random.integers(20, 40))) for turns in np.tile([6, 12], n)]
    return X, np.tile(["slow", "fast"], n)


# ---- the search under dynamic time warping


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.sampled_from([1, 20, 150, 400]), p=st.integers(1, 4),
    longest=st.sampled_from([1, 3, 12, 33]), whole=st.booleans(), single=st.booleans(),
    window=st.sampled_from([None, 0, 2, 0.1, 0.5, 1.0]),
    how=st.sampled_from([("euclidean", False), ("sqeuclidean", False), ("sqeuclidean", True)]), k=st.integers(1, 40),
    scale=st.sampled_from([1, 1e-5, 1e5]), first=st.sampled_from([1, 64]),
)  # fmt: skip
def test_dtw_search_is_sorting_all_distances_bit_for_bit(
    seed, n, p, longest, whole, window, single, how, k, scale, first
):
    from similia.learn import series_neighbors as loops

    random, dtype = np.random.default_rng(seed), np.float32 if single else np.float64
    X, Y = series(random, 5, p, longest, whole, dtype), series(random, n, p, longest, whole, dtype)
    X = [(scale * x).astype(dtype) for x in X]
    distance, k = DTW(window, *how), min(k, n)
    model = KNeighborsClassifier(distance).fit(Y, np.zeros(n, int))
    with patch.multiple(loops, _FIRST=first, _MANY=2):  # 1: a second search among those within the first limit
        distances, indices = model.kneighbors(X, k)
    expected, order = nearest_by_sorting(distance(X, Y), k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(distances, expected)
    assert distances.dtype == dtype


@pytest.mark.parametrize(("dtype", "tiny"), [(np.float32, 0.75 * 2.0**-74.5), (np.float64, 0.75 * 2.0**-537)])
def test_bounds_of_differences_whose_squares_are_subnormal(dtype, tiny):
    Y = np.array([[1, 0, -0.2 * tiny, 0]] * 39 + [[1, 0, 0, 0]], dtype)
    x = np.array([[1, 0, tiny, 0]], dtype)
    model = KNeighborsClassifier(DTW(1), 1).fit([*Y], np.zeros(40, int))
    distances, indices = model.kneighbors([*x])
    assert (indices[0, 0], distances[0, 0]) == (39, DTW(1)(x, Y).min())


def test_series_that_are_too_long_are_compared_with_all():
    from similia.learn import series_neighbors as loops
    from similia.learn.series_neighbors import search_for

    Y = [*np.zeros((2, 5, 3))]
    assert search_for(DTW(), Y, Y) is loops.nearest_by_warping
    with patch.object(loops, "MOST", 14):
        assert search_for(DTW(), Y, Y) is None


def test_of_many_series_at_distance_0_the_first_is_nearest():
    Y = [np.zeros(length) for length in range(60, 10, -1)]  # lanes take the short ones first
    assert KNeighborsClassifier(DTW(), 2).fit(Y, range(50)).kneighbors([np.zeros(5)])[1].tolist() == [[0, 1]]


def test_dtw_search_agrees_with_the_recurrence_written_out():
    random = np.random.default_rng(0)
    X, Y = series(random, 4, 1, 15, False), series(random, 30, 1, 15, False)
    D = np.array([[naive.dtw(x, y, window=3) for y in Y] for x in X])
    distances, indices = KNeighborsClassifier(DTW(3), 4).fit(Y, range(30)).kneighbors(X)
    expected, order = nearest_by_sorting(D, 4)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-12)


@pytest.mark.same_bits
@pytest.mark.parametrize("k", [1, 3])
def test_dtw_search_does_not_depend_on_threads(k):
    random = np.random.default_rng(1)
    X, Y = series(random, 60, 2, 60, True), series(random, 300, 2, 60, True)
    model = KNeighborsClassifier(DTW(0.2), k).fit(Y, range(300))
    both = model.kneighbors(X)
    with patch.object(_threads, "cpu_count", return_value=1):
        one = model.kneighbors(X)
    for a, b in zip(both, one, strict=True):
        np.testing.assert_array_equal(a, b)


def first_bounds(loops, how, one, segments, n, room, rooted, tight):
    """Return the bounds by segments of `n` series in ascending order of length, before or after they are raised."""
    groups = -(-n // loops.LANES)
    bounds, minima = np.empty(groups * loops.LANES, np.float32), np.empty(groups, np.float32)
    loops._bound_all(how, *one, *segments, bounds, minima, *room[:2])
    np.testing.assert_array_equal(minima, bounds.reshape(groups, -1).min(axis=1))
    assert (bounds[n:] == np.inf).all()
    if tight:
        order = np.empty(n, np.int64)
        size = loops._tighten(how, *one, *segments, bounds, np.inf, np.inf, order, *room[:2])
        np.testing.assert_array_equal(order[:size], np.arange(n))
    return bounds[:n].astype(float) * (segments[-1] if rooted else segments[-1] ** 2)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32), p=st.integers(1, 3), rooted=st.booleans(), single=st.booleans(), whole=st.booleans(),
    window=st.sampled_from([None, 0, 1, 3, 0.2]), longest=st.sampled_from([2, 20, 70]),
    scale=st.sampled_from([1, 1e-5, 1e5]),
)  # fmt: skip
def test_bounds_are_below_the_distances(seed, p, rooted, single, whole, window, longest, scale):
    from similia.learn import series_neighbors as loops

    random, dtype = np.random.default_rng(seed), np.float32 if single else np.float64
    draw = lambda n: [(scale * x).astype(dtype) for x in series(random, n, p, longest, whole, dtype)]  # noqa: E731
    Y, x = sm.objects.as_series(draw(40)), sm.objects.as_series(draw(1))
    columns = np.argsort(Y.lengths, kind="stable")
    band, flat, largest = loops.window_band(window), Y.values.reshape(-1), float(np.abs(Y.values).max())
    room = loops._room(p, max(Y.lengths.max(), x.lengths[0]), np.dtype(dtype))
    lows, highs, moved, inside, _, ends, row, widths, found = room
    one, m, how = (x.values.reshape(-1), 0, x.lengths[0]), x.lengths[0], (p, rooted, False, *band)
    segments = loops._segments(flat, Y.offsets, columns, p, max(largest, float(np.abs(x.values).max())))
    first, second = (first_bounds(loops, how, one, segments, 40, room, rooted, tight) for tight in (False, True))
    third, fourth = np.empty(40), np.empty(40)
    for begin in range(0, 40, loops.LANES):
        chosen = columns[begin : begin + loops.LANES]
        n, reach = loops._half_widths(m, Y.offsets, chosen, *band, widths)
        loops.envelope(*one, p, n, reach, lows, highs)
        sums = np.zeros(loops.LANES, dtype)
        for k, j in enumerate(chosen):
            size, at = p * Y.lengths[j], k * (len(moved) // loops.LANES)
            sums[k] = loops._bound(flat, p * Y.offsets[j], Y.lengths[j], p, rooted, lows, highs, moved, at)
            if rooted and p > 1:
                moved[at : at + size] = flat[p * Y.offsets[j] :][:size]
        loops._bound_back(how, *one, moved, chosen, Y.offsets, sums, inside, ends, row, widths, found)
        third[begin : begin + len(chosen)], fourth[begin : begin + len(chosen)] = (
            sums[: len(chosen)],
            found[: len(chosen)],
        )
    distances = DTW(window, "euclidean" if rooted else "sqeuclidean")(x, Y)[0, columns].astype(float)
    error = 1e-4 if single else 1e-12  # of distances and of the bounds that are lowered only later
    assert (first <= second).all()
    for bounds, above in ((first, third), (third, fourth), (fourth, distances)):
        assert (bounds <= above * (1 + error)).all()
    exact = DTW(window, "euclidean" if rooted else "sqeuclidean")(
        [x[0].astype(float)], [Y[j].astype(float) for j in columns]
    )[0]
    for bounds in (first, second):
        assert (bounds <= exact).all()


def extremes(a: np.ndarray, reach: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least and the greatest number within `reach` steps of each."""
    from scipy.ndimage import maximum_filter1d, minimum_filter1d

    lows, highs = (f(a, 2 * reach + 1, mode="nearest") for f in (minimum_filter1d, maximum_filter1d))
    return lows, highs


def squares(a: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> float:
    """Return the sum of squared distances of numbers from ranges."""
    return float((np.maximum(np.maximum(lows - a, a - highs), 0) ** 2).sum())


def test_the_second_bound_is_that_of_lemire_by_segments():
    from similia.learn import series_neighbors as loops

    random, reach, n, width = np.random.default_rng(0), 8, 48, loops.WIDTH
    x, Y = random.normal(size=n).cumsum(), random.normal(size=(40, n)).cumsum(axis=1)
    room, how = loops._room(1, n, np.dtype(float)), (1, False, False, *loops.window_band(reach))
    segments = loops._segments(Y.reshape(-1), n * np.arange(41), np.arange(40), 1, float(np.abs([x, *Y]).max()))
    found = first_bounds(loops, how, (x, 0, n), segments, 40, room, False, True)
    lows, highs = extremes(x, reach)
    lows, highs = lows.reshape(-1, width).min(axis=1), highs.reshape(-1, width).max(axis=1)
    for y, bound in zip(Y, found, strict=True):
        parts = y.reshape(-1, width)
        least, _ = extremes(np.clip(parts.min(axis=1), lows, highs), reach // width)
        _, most = extremes(np.clip(parts.max(axis=1), lows, highs), reach // width)
        first, second = (
            squares(parts.mean(axis=1), lows, highs),
            squares(x.reshape(-1, width).mean(axis=1), least, most),
        )
        assert bound == pytest.approx(width * (first + second), rel=1e-4)


def test_the_last_bound_is_that_of_lemire():
    from similia.learn import series_neighbors as loops

    random, reach, n = np.random.default_rng(0), 3, 30
    x, Y = random.normal(size=n).cumsum(), random.normal(size=(loops.LANES, n)).cumsum(axis=1)
    lows, highs, moved, inside, _, ends, row, widths, found = loops._room(1, n, np.dtype(float))
    loops.envelope(x, 0, n, 1, n, reach, lows, highs)
    sums, all_of_them = np.empty(loops.LANES), np.arange(loops.LANES)
    for k in all_of_them:
        at = k * (len(moved) // loops.LANES)
        sums[k] = loops._bound(Y.reshape(-1), n * k, n, 1, False, lows, highs, moved, at)
    how = (1, False, False, *loops.window_band(reach))
    places = n * np.arange(loops.LANES + 1)
    loops._bound_back(how, x, 0, n, moved, all_of_them, places, sums, inside, ends, row, widths, found)
    for y, bound in zip(Y, found, strict=True):
        around = extremes(x, reach)
        assert bound == pytest.approx(squares(y, *around) + squares(x, *extremes(np.clip(y, *around), reach)))


def test_a_series_too_far_for_the_type_is_refused():
    model = KNeighborsClassifier(DTW(local="sqeuclidean")).fit(np.zeros((2, 3), np.float32), [0, 1])
    with pytest.raises(ValueError, match=r"X\[1\] and .*0\]? exceeds the largest float32.*float64"):
        model.predict(np.array([[0, 0, 0], [0, 1e30, 0]], np.float32))


def test_neighbours_under_dtw_of_very_large_and_very_small_numbers():
    large = [np.float32([1e20 * (1000 - i)]) for i in range(1000)]
    found = KNeighborsClassifier(DTW()).fit(large, [0, 1] * 500).kneighbors([np.float32([0])])
    assert (found[0].tolist(), found[1].tolist()) == ([[np.float32(1e20)]], [[999]])
    small = [np.float32([[1e-24, 0]]), np.float32([[0, 0]]), np.float32([[3e-24, 0]])]
    model = KNeighborsClassifier(DTW()).fit(small, [0, 1, 2])
    assert model.predict([[[2.9e-24, 0]], [[1e-25, 0]], [[1.1e-24, 0]]]).tolist() == [2, 1, 0]
    graph = sm.search.knn_graph(small, DTW(), 1, method="exact", symmetric=False)
    assert graph.indices.tolist() == [1, 0, 0]


def test_series_of_zeros_and_of_ordinary_numbers_are_searched_with_bounds():
    from similia.learn.series_neighbors import nearest_by_warping, search_for

    Y = np.array([[0.0, 0.0], [1.0, 2.0], [1e-300, 1e-300]])
    assert search_for(DTW(), Y[:2], Y[:2]) is search_for(DTW(), Y[1:2], Y) is nearest_by_warping
    assert search_for(DTW(), Y, Y) is search_for(DTW(), Y[:1], Y[2:]) is search_for(DTW(), Y[1:], Y * 1e150) is None


# ---- any distance, any kernel


@pytest.mark.same_bits
@pytest.mark.filterwarnings("ignore:.*have similarity 0 to all training objects")  # words without a common letter
@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32), n=st.integers(1, 30), k=st.integers(1, 30), memory=st.sampled_from([1, 2000, 2**30]),
    distance=st.sampled_from(["edits", "series", "kernel"]),
)  # fmt: skip
def test_neighbours_are_those_of_sorting_whatever_the_block(seed, n, k, memory, distance):
    random, k = np.random.default_rng(seed), min(k, n)
    if distance == "series":
        X, Y, d = series(random, 6, 1, 8, True), series(random, n, 1, 8, True), ERP()
        D = d(X, Y)
    else:
        X, Y = words(random, 6), words(random, n)
        d = Levenshtein() if distance == "edits" else Spectrum(k=1)
        D = Levenshtein()(X, Y)
        if distance == "kernel":
            counts = lambda Z: np.array([[z.count(c) for c in "ab"] for z in Z], float)  # noqa: E731
            D = np.sqrt(((counts(X)[:, None] - counts(Y)) ** 2).sum(axis=2))
    model = KNeighborsClassifier(d, k).fit(Y, np.zeros(n, int))
    with sm.config(max_memory=memory):
        distances, indices = model.kneighbors(X)
    expected, order = nearest_by_sorting(D, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_allclose(distances, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:n_neighbors=|.*have similarity 0 to all training objects")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.text("abc", min_size=1, max_size=6), min_size=4, max_size=12), st.integers(1, 3), st.booleans())
def test_a_lifted_kernel_searches_as_its_own_class(X, k, normalize):
    kernel, new = Spectrum(k=1, normalize=normalize), ["abc", "cc", "a"]
    lifted = sm.pairwise(lambda x, y: float(kernel([x], [y])[0, 0]))
    y = np.arange(len(X)) % 3
    for make in (
        lambda by: KNeighborsClassifier(by, k).fit(X, y).predict_proba(new),
        lambda by: sm.NearestNeighbors(by, k).fit(X).kneighbors(new),
        lambda by: sm.NearestNeighbors(by, k).fit(X).kneighbors()[0],
        lambda by: sm.OutlierDetector(by, n_neighbors=k, novelty=True).fit(X).score_samples(new),
        lambda by: sm.search.knn_graph(X, by, k).toarray(),
        lambda by: sm.search.near_duplicates(X, by, 0.9, method="exact").pairs,
    ):
        np.testing.assert_allclose(make(lifted), make(kernel), atol=1e-12)


def test_a_function_of_one_of_the_two_kinds_is_refused_where_it_has_the_other():
    X, y = np.random.default_rng(0).normal(size=30).tolist(), np.arange(30) % 2

    def gap(a, b):
        return abs(a - b)

    def alike(a, b):
        return float(np.exp(-((a - b) ** 2)))

    def all_alike(A, B=None):
        return np.array([[alike(a, b) for b in (A if B is None else B)] for a in A])

    by_encoder = make_pipeline(sm.Nystroem(sm.pairwise(alike), 5, random_state=0), sm.SignRandomProjection(64))
    comparing = {
        "distance": [KNeighborsClassifier, KNeighborsRegressor, sm.NearestNeighbors],
        "similarity": [
            sm.OutlierDetector, lambda by: sm.KernelKMeans(by, 2), sm.SimilarityMap, lambda by: sm.HDBSCAN(by, 2),
            lambda by: lambda: sm.search.knn_graph(X, by, 3),
            lambda by: lambda: sm.search.near_duplicates(X, by, 0.5),
        ],
        "rerank": [lambda by: sm.SimilaritySearch(by_encoder, rerank=by)],
        "kernel": [KernelSVC, sm.KernelRidge, sm.GaussianProcessRegressor],
    }  # fmt: skip
    for name, makes in comparing.items():
        for make in makes:
            told = rf"^{name} must be a kernel.*, got gap, .*distance, give similia\.distances\.FromFunction\(f\)$"
            with pytest.raises(ValueError, match=told):
                fitted(make(sm.pairwise(gap)), X, y)
            fitted(make(sm.pairwise(alike)), X, y)
            if name == "kernel" or make is comparing["similarity"][1]:  # k-means of a distance draws objects, not pairs
                continue
            told = rf"^{name} must be a distance.*, got alike, .*kernel, give similia\.pairwise\(f\)$"
            with pytest.raises(ValueError, match=told):
                fitted(make(FromFunction(alike)), X, y)
    for make in comparing["distance"]:
        with pytest.raises(ValueError, match=r"got all_alike.*give similia\.kernels\.Sum\(\[f\]\)"):
            make(all_alike).fit(X, y)
        own, lifted = (make(by).fit(X, y) for by in (sm.kernels.Sum([all_alike]), sm.pairwise(alike)))
        np.testing.assert_allclose(own.kneighbors()[0], lifted.kneighbors()[0], atol=1e-12)
    with pytest.raises(ValueError, match=r"FromFunction\(f, pairwise=True\)$"):
        KernelSVC(lambda A, B=None: np.abs(np.subtract.outer(A, A if B is None else B))).fit(X, y)
    for take in (sm.D2KE, sm.PseudoEuclidean, DistanceRBF):
        with pytest.raises(TypeError, match=r"Pairwise\(function=gap\) is a kernel.*FromFunction\(f\) instead of"):
            fitted(take(sm.pairwise(gap)), X, y)


def fitted(model, X, y):
    return model.fit(X, y) if hasattr(model, "fit") else model(X) if isinstance(model, DistanceRBF) else model()


def test_equal_objects_and_rounding_do_not_make_a_kernel_of_a_distance():
    """Of equal objects, means of values with an object itself and with others differ by rounding."""
    X = ["ab"] * 9
    for value in (0.1, 1 / 3, 1e-8):
        kernel = sm.NearestNeighbors(sm.pairwise(lambda x, y, v=value: v)).fit(X)
        distance = sm.NearestNeighbors(FromFunction(lambda x, y, v=value: v)).fit(X)
        np.testing.assert_allclose(kernel.kneighbors(X)[0], 0.0, atol=1e-7)
        np.testing.assert_allclose(distance.kneighbors(X)[0], value)
        nearly = np.full((9, 9), value, np.float32) + np.eye(9, dtype=np.float32) * np.float32(value) * 1e-7
        rounded = sm.NearestNeighbors(lambda A, B=None, D=nearly: D[: len(A), : len(A if B is None else B)]).fit(X)
        np.testing.assert_array_equal(rounded.kneighbors(X)[0], np.sort(nearly, axis=1)[:, :5])


def test_neighbours_by_a_lifted_kernel_are_pickled_and_explained():
    X, y = ["aab", "aac", "zzx", "zzy"], [0, 0, 1, 1]
    model = pickle.loads(pickle.dumps(KNeighborsClassifier(sm.pairwise(letters_in_common)).fit(X, y)))
    assert model.predict(["aad", "zzz"]).tolist() == [0, 1]
    found = sm.explain(model, "aad")
    assert found.value == 1
    assert "the nearest by distance in the feature space of letters_in_common; " in found.note
    assert found.parts[0].contribution == 1


def letters_in_common(x, y):
    return float(len(set(x) & set(y)))


@pytest.mark.parametrize("distance", [DTW(), ERP(), DTW(local="sqeuclidean", root=True)])
@pytest.mark.parametrize("k", [1, 4, 10])
def test_neighbours_of_the_training_objects_leave_each_one_out(distance, k):
    X = [*series(np.random.default_rng(0), 20, 1, 6, True)]
    X.append(X[3])
    D = distance(X)
    np.fill_diagonal(D, np.inf)
    distances, indices = KNeighborsClassifier(distance).fit(X, np.arange(21)).kneighbors(n_neighbors=k)
    expected, order = nearest_by_sorting(D, k)
    np.testing.assert_array_equal(indices, order)
    np.testing.assert_array_equal(distances, expected)
    assert 21 - 1 in indices[3, :1] or distances[3, 0] == 0


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("k", [1, 3, 12])
def test_votes_are_those_of_scikit_learn_on_vectors(weights, k):
    random = np.random.default_rng(0)
    X, y = random.standard_normal((80, 3)), random.integers(0, 3, 80)
    Q = np.vstack([random.standard_normal((20, 3)), X[:5]])  # some at distance 0
    theirs = VectorNeighbors(k, weights=weights, algorithm="brute").fit(X, y)
    ours = KNeighborsClassifier(FromFunction(lambda a, b: np.linalg.norm(a - b)), k, weights).fit(X, y)
    np.testing.assert_allclose(ours.predict_proba(Q), theirs.predict_proba(Q), atol=1e-12)
    np.testing.assert_array_equal(ours.predict(Q), theirs.predict(Q))
    targets = np.column_stack([y, random.standard_normal(80)])
    theirs = VectorNeighborsRegressor(k, weights=weights, algorithm="brute").fit(X, targets)
    ours = KNeighborsRegressor(ours.distance, k, weights).fit(X, targets)
    np.testing.assert_allclose(ours.predict(Q), theirs.predict(Q), atol=1e-12)
    np.testing.assert_allclose(ours.fit(X, targets[:, 0]).predict(Q), theirs.predict(Q)[:, 0], atol=1e-12)


@pytest.mark.parametrize("memory", ["256 MB", "20 kB"])
def test_searches_without_labels_are_those_of_scikit_learn(memory):
    random = np.random.default_rng(0)
    X = random.standard_normal((70, 3))
    Q = np.vstack([random.standard_normal((20, 3)), X[:5], np.full((1, 3), 50.0)])  # some at distance 0, one far away
    theirs = VectorSearch(n_neighbors=4, radius=0.8, algorithm="brute").fit(X)
    ours = sm.NearestNeighbors(FromFunction(lambda a, b: np.linalg.norm(a - b)), n_neighbors=4).fit(X, y="ignored")
    with sm.config(max_memory=memory):
        for some in (Q, None):
            for mine, expected in zip(ours.kneighbors(some), theirs.kneighbors(some), strict=True):
                np.testing.assert_allclose(mine, expected, atol=1e-12)
            for mode in ("connectivity", "distance"):
                mine, expected = (one.kneighbors_graph(some, 6, mode=mode) for one in (ours, theirs))
                np.testing.assert_allclose(mine.toarray(), expected.toarray(), atol=1e-12)
            found = ours.radius_neighbors(some, 0.8)
            for mine, expected in zip(found, theirs.radius_neighbors(some, sort_results=True), strict=True):
                assert [len(row) for row in mine] == [len(row) for row in expected]
                np.testing.assert_allclose(np.concatenate(mine), np.concatenate(expected), atol=1e-12)
    assert len(ours.radius_neighbors(Q, 0.8, return_distance=False)[-1]) == 0


def test_no_object_is_its_own_neighbour_at_any_radius():
    search = sm.NearestNeighbors(Levenshtein()).fit(["ab", "b", "b", "xyz"])
    found = search.radius_neighbors(radius=np.inf, return_distance=False)
    assert [row.tolist() for row in found] == [[1, 2, 3], [2, 0, 3], [1, 0, 3], [0, 1, 2]]


def test_series_are_searched_as_by_the_classifier_and_by_all_distances():
    X, Q = [*series(np.random.default_rng(0), 60, 1, 20, True)], [*series(np.random.default_rng(1), 9, 1, 20, True)]
    search = sm.NearestNeighbors(DTW(window=3)).fit(X)
    classifier = KNeighborsClassifier(DTW(window=3), 5).fit(X, range(60))
    for mine, his in zip(search.kneighbors(Q), classifier.kneighbors(Q), strict=True):
        np.testing.assert_array_equal(mine, his)
    D = DTW(window=3)(Q, X)
    radius = float(np.median(D))
    distances, indices = search.radius_neighbors(Q, radius)
    for row, near, found in zip(D, distances, indices, strict=True):
        order = np.argsort(row, kind="stable")
        np.testing.assert_array_equal(found, order[row[order] <= radius])
        np.testing.assert_array_equal(near, row[found])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda search: search.kneighbors(["a"], 4), "n_neighbors=4 is more than the 3 training objects"),
        (lambda search: search.kneighbors_graph(["a"], 1, mode="length"), "mode must be"),
        (lambda search: search.radius_neighbors(["a"], -1.0), "radius must be a number >= 0"),
        (lambda search: search.set_params(n_neighbors=0).fit(["a"]), "n_neighbors"),
        (lambda search: search.fit(["a"]).kneighbors(), "the only training object has no neighbours"),
    ],
)
def test_bad_input_of_a_search(call, words):
    with pytest.raises(ValueError, match=words):
        call(sm.NearestNeighbors(Levenshtein(), 2).fit(["a", "b", "cc"]))


def test_ties_are_decided_by_position_and_by_the_order_of_classes():
    model = KNeighborsClassifier(Levenshtein(), 1).fit(["ab", "ba", "ab"], ["z", "y", "x"])
    assert model.predict(["ab"]) == ["z"]  # of two at distance 0 the first
    assert model.predict(["bb"]) == ["z"]  # all at distance 1
    model.set_params(n_neighbors=2).fit(["ab", "ba", "aaaa"], ["z", "y", "x"])
    assert model.predict(["bb"]) == ["y"]  # one vote each: the first class
    np.testing.assert_array_equal(model.predict_proba(["bb"]), [[0, 0.5, 0.5]])
    model.set_params(n_neighbors=4, weights="distance").fit(["x", *["yyy"] * 3], ["b", "a", "a", "a"])
    assert model.predict(["z"]) == ["a"]  # 3 / 3 votes, with rounding errors, against 1


def test_grid_search_reaches_the_distance():
    X, y = beats(12)
    search = GridSearchCV(
        KNeighborsClassifier(DTW()), {"distance__window": [None, 0, 3], "n_neighbors": [1, 3]}, cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert search.score(*beats(5, seed=1)) > 0.9


def test_regression_on_strings():
    X = words(np.random.default_rng(0), 60)
    model = KNeighborsRegressor(Levenshtein(), 3, "distance").fit(X, [len(x) for x in X])
    assert model.score(X, [len(x) for x in X]) == 1.0
    assert model.predict(["abab"]).dtype == np.float64


def test_rows_of_a_frame_are_objects():
    frame = pd.DataFrame({"colour": ["red", "blue", "red", "blue"], "age": [3.0, 5.0, 90.0, 80.0]})
    gower = FromFunction(lambda x, y: float(x["colour"] != y["colour"]) + abs(x["age"] - y["age"]) / 100)
    model = KNeighborsClassifier(gower).fit(frame, ["a", "b", "c", "d"])
    assert model.predict(frame.iloc[::-1]).tolist() == ["d", "c", "b", "a"]
    assert sm.OutlierDetector(gower, n_neighbors=1).fit(frame).train_scores_.tolist() == [-0.87, -0.75, -0.87, -0.75]
    frame = frame[["age"]].assign(height=1.0)
    by_age = FromFunction(lambda x, y: abs(x["age"] - y["age"]))
    assert KNeighborsClassifier(by_age).fit(frame, range(4)).predict(frame).tolist() == [0, 1, 2, 3]
    frame.loc[2, "height"] = np.nan
    with pytest.raises(ValueError, match=r"X\[2\], column 'height' holds NaN or infinity"):
        KNeighborsClassifier(by_age).fit(frame, range(4))


def test_numeric_frames_become_arrays_for_kernels_of_vectors(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), columns=list("abc"))
    model = KNeighborsClassifier(sm.kernels.Sum([sm.kernels.RBF(0.1), sm.kernels.RBF(1.0)]), 1).fit(frame, range(20))
    assert isinstance(model.objects_, np.ndarray)
    sm.save(model, tmp_path / "m.similia")
    assert sm.load(tmp_path / "m.similia").predict(frame.to_numpy()[:3]).tolist() == [0, 1, 2]


def under(max_memory, function, *args):
    with sm.config(max_memory=max_memory):
        return function(*args)


WRONG = {
    "a class": (lambda: KNeighborsClassifier(DTW).fit([[0, 1]], [0]), TypeError, r"is the class DTW.*write DTW\(...\)"),
    "a name": (lambda: KNeighborsClassifier("dtw").fit([[0, 1]], [0]), TypeError, "must be a distance or kernel"),
    "too many later": (
        lambda: KNeighborsClassifier(DTW()).fit([[0, 1], [1, 1]], [0, 1]).kneighbors(n_neighbors=2),
        ValueError, "n_neighbors=2 is more than the 1 training objects to choose from",
    ),
    "weights": (lambda: KNeighborsClassifier(DTW(), 1, "far").fit([[0, 1]], [0]), ValueError, "weights must be"),
    "fractions": (lambda: KNeighborsClassifier(DTW()).fit([[0, 1]] * 2, [0.5, 1.2]), ValueError, "y holds fractions"),
    "labels": (lambda: KNeighborsRegressor(DTW()).fit([[0, 1]] * 2, ["a", "b"]), ValueError, "no number.*classifier"),
    "targets": (lambda: KNeighborsRegressor(DTW()).fit([[0, 1]] * 2, [1, np.nan]), ValueError, r"y\[1\] is nan"),
    "too few": (lambda: KNeighborsRegressor(DTW()).fit([[0, 1]] * 2, [1]), ValueError, r"shape \(1,\) for 2 objects"),
    "empty": (lambda: KNeighborsClassifier(Levenshtein()).fit([], []), ValueError, "X is empty"),
    "vectors": (lambda: KNeighborsClassifier(BY_VECTORS).fit(np.array([[0], [np.nan]]), [0, 1]), ValueError, "NaN"),
    "missing": (lambda: KNeighborsClassifier(Levenshtein()).fit(["a", None], [0, 1]), TypeError, r"X\[1\] is missing"),
    "a distance": (lambda: KernelSVC(DTW()).fit([[0, 1]] * 2, [0, 1]), TypeError, "is a distance.*DistanceRBF"),
    "C": (lambda: KernelSVC(Spectrum(k=1), C=0).fit(["a", "b"], [0, 1]), ValueError, "C must be a positive number"),
    "class weight": (
        lambda: KernelSVC(Spectrum(k=1), class_weight={1: -1}).fit(["a", "b"], [0, 1]),
        ValueError, r"class_weight\[1\] is -1, expected a positive number",
    ),
    "class weights": (
        lambda: KernelSVC(Spectrum(k=1), class_weight="equal").fit(["a", "b"], [0, 1]),
        ValueError, "class_weight must be a dictionary of labels, 'balanced' or None, got 'equal'",
    ),
    "one class": (lambda: KernelSVC(Spectrum(k=1)).fit(["a", "b"], [0, 0]), ValueError, "one class"),
    "one of a class": (
        lambda: KernelSVC(Spectrum(k=1), probability=True).fit(["a", "b", "a"], ["x", "x", "y"]),
        ValueError, "class y has one object, but probability=True needs two",
    ),
    "alpha": (lambda: sm.KernelRidge(Spectrum(k=1), -1.0).fit(["a"], [0]), ValueError, "alpha must be a number >= 0"),
    "epsilon": (lambda: sm.KernelSVR(Spectrum(k=1), 1, -1).fit(["a"], [0]), ValueError, "epsilon must be a number"),
    "distance, numbers": (lambda: sm.KernelRidge(DTW()).fit([[0, 1]], [0]), TypeError, "is a distance.*DistanceRBF"),
    "labels, for numbers": (
        lambda: sm.KernelSVR(Spectrum(k=1)).fit(["a", "b"], ["x", "y"]), ValueError, "; KernelSVR predicts numbers"
    ),
    "infinite targets": (
        lambda: sm.KernelRidge(Spectrum(k=1)).fit(["a", "b"], [0, np.inf]), ValueError, r"y\[1\] is inf"
    ),
    "too many objects": (
        lambda: under(31, sm.KernelRidge(Spectrum(k=1)).fit, ["a", "b"], [0, 1]),
        ValueError, r"2 objects.*Nystroem\(kernel\), Ridge",
    ),
    "not finite": (
        lambda: KernelSVC(lambda X, Y=None: np.full((2, 2), np.nan)).fit(["a", "b"], [0, 1]),
        ValueError, r"X\[0\] and X\[0\] is nan",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_told_in_one_sentence(case):
    call, error, sentence = WRONG[case]
    with pytest.raises(error, match=sentence):
        call()


@pytest.mark.parametrize(
    "model",
    [
        KNeighborsClassifier(DTW()), KNeighborsRegressor(DTW()), KernelSVC(Spectrum(k=1)),
        sm.KernelRidge(Spectrum(k=1)), sm.KernelSVR(Spectrum(k=1)),
    ],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_unfitted_models_say_so(model):
    with pytest.raises(NotFittedError):
        model.predict([[1.0, 2.0]])


# ---- support-vector machines


def test_svc_is_scikit_learns_on_the_same_gram_matrix():
    X, y = sm.datasets.load_promoters(return_X_y=True)
    kernel = Spectrum(k=3, normalize=True)
    theirs = SVC(kernel="precomputed", C=2.0).fit(kernel(X[::2]), y[::2])
    ours = KernelSVC(kernel, C=2.0).fit(X[::2], y[::2])
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    decision = theirs.decision_function(kernel(X[1::2], X[::2]))
    np.testing.assert_allclose(ours.decision_function(X[1::2]), decision, atol=1e-10)
    np.testing.assert_array_equal(ours.predict(X[1::2]), theirs.predict(kernel(X[1::2], X[::2])))
    with sm.config(max_memory=53**2 * 8):
        np.testing.assert_array_equal(ours.decision_function(X[1::2]), ours.decision_function(X)[1::2])


def test_svc_of_three_classes_of_graphs_and_the_sentence_about_memory():
    import networkx as nx

    makers = (nx.path_graph, nx.cycle_graph, nx.complete_graph)
    X = [make(n) for n in range(4, 14) for make in makers]
    y = np.tile(["path", "cycle", "complete"], 10)
    kernel = WeisfeilerLehman(n_iter=2, normalize=True)
    model = KernelSVC(kernel, class_weight="balanced").fit(X[:24], y[:24])
    theirs = SVC(kernel="precomputed", class_weight="balanced", break_ties=True).fit(kernel(X[:24]), y[:24])
    K = kernel(X[24:], X[:24])
    np.testing.assert_allclose(model.decision_function(X[24:]), theirs.decision_function(K), atol=1e-10)
    np.testing.assert_array_equal(model.predict(X[24:]), theirs.predict(K))
    too_much = pytest.raises(ValueError, match=r"24 objects.*Nystroem\(kernel\), LinearSVC")
    with sm.config(max_memory=8 * 24**2 - 1), too_much:
        model.fit(X[:24], y[:24])


def test_svc_of_a_distance_with_its_parameter_tuned_and_calibrated():
    X, y = beats(10)
    search = GridSearchCV(KernelSVC(DistanceRBF(DTW())), {"kernel__gamma": [1e3, 0.1], "C": [1.0, 10.0]}, cv=2)
    assert search.fit(X, y).best_params_["kernel__gamma"] == 0.1
    assert cross_val_score(search.best_estimator_, X, y, cv=3).mean() > 0.9
    chances = CalibratedClassifierCV(search.best_estimator_, cv=2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)


@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 1.0, "c": 1.0}])
@pytest.mark.parametrize("classes", ["ab", "abc"])
def test_probabilities_are_those_of_scikit_learns_calibration(classes, class_weight):
    if isinstance(class_weight, dict) and classes == "ab":
        class_weight = {"a": 3.0, "b": 1.0}
    rng = np.random.default_rng(0)
    y = rng.choice([*classes], size=60)
    X = ["".join(rng.choice([*"abc"], size=12)) + 3 * label for label in y]
    kernel = Spectrum(k=1, normalize=True)
    ours = KernelSVC(kernel, class_weight=class_weight, probability=True).fit(X[:45], y[:45])
    codes = np.unique(y, return_inverse=True)[1]  # their calibration takes weights of 0, 1, ... only
    weights = dict(enumerate(class_weight.values())) if isinstance(class_weight, dict) else class_weight
    svc = SVC(kernel="precomputed", class_weight=weights)
    theirs = CalibratedClassifierCV(svc, ensemble=False).fit(kernel(X[:45]), codes[:45])
    chances = ours.predict_proba(X[45:])
    np.testing.assert_allclose(chances, theirs.predict_proba(kernel(X[45:], X[:45])), atol=1e-9)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    one_by_one = np.concatenate([ours.predict_proba([x]) for x in X[45:]])
    np.testing.assert_array_equal(chances, one_by_one)
    without = KernelSVC(kernel, class_weight=class_weight).fit(X[:45], y[:45])
    np.testing.assert_array_equal(ours.decision_function(X), without.decision_function(X))
    assert not hasattr(without, "predict_proba")
    with pytest.raises(AttributeError) as told:
        without.predict_proba(X)
    assert "probability=True" in str(told.value)
    with pytest.raises(NotFittedError, match="fitted with probability=False"):
        without.set_params(probability=True).predict_proba(X)


def test_scorers_of_probabilities_work_with_few_of_a_class():
    X, y = ["abab", "baba", "aab", "ccd", "dcdc", "cdd", "ab", "cd"], [0, 0, 0, 1, 1, 1, 0, 1]
    search = GridSearchCV(KernelSVC(Spectrum(k=1), probability=True), {"C": [0.1, 1.0]}, cv=2, scoring="neg_log_loss")
    assert search.fit(X, y).best_score_ < 0
    assert search.predict_proba(X).shape == (8, 2)


# ---- regression with a kernel


def numbers(n, outputs=None):
    rng = np.random.default_rng(1)
    X = ["".join(rng.choice([*"abc"], size=rng.integers(3, 12))) for _ in range(n)]
    y = np.array([x.count("a") - 0.5 * x.count("b") for x in X]) + 0.01 * rng.normal(size=n)
    return X, y if outputs is None else np.column_stack([y, -2 * y])


@pytest.mark.parametrize("outputs", [None, 2])
def test_ridge_regression_solves_its_equations(outputs):
    X, y = numbers(40, outputs)
    kernel = Spectrum(k=2)
    model = sm.KernelRidge(kernel, alpha=0.3).fit(X[:30], y[:30])
    K = kernel(X[:30]).astype(float)
    np.testing.assert_allclose((K + 0.3 * np.eye(30)) @ model.dual_coef_, y[:30], atol=1e-8)
    np.testing.assert_allclose(model.predict(X[30:]), kernel(X[30:], X[:30]) @ model.dual_coef_, atol=1e-10)
    assert model.predict(X[30:]).shape == y[30:].shape


def test_support_vector_regression_is_scikit_learns_on_the_same_gram_matrix():
    X, y = numbers(40)
    kernel = Spectrum(k=2, normalize=True)
    ours = sm.KernelSVR(kernel, C=5.0, epsilon=0.05).fit(X[:30], y[:30])
    theirs = SVR(kernel="precomputed", C=5.0, epsilon=0.05).fit(kernel(X[:30]), y[:30])
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    assert len(ours.support_objects_) == len(ours.support_) < 30
    np.testing.assert_allclose(ours.predict(X[30:]), theirs.predict(kernel(X[30:], X[:30])), atol=1e-10)
    flat = sm.KernelSVR(kernel).fit(X[:5], np.full(5, 7.0))  # within epsilon without any support vector
    assert len(flat.support_) == 0
    assert flat.predict(X[:2]).tolist() == [7.0, 7.0]


@pytest.mark.parametrize("model", [sm.KernelRidge(Spectrum(k=2), 0.1), sm.KernelSVR(Spectrum(k=2))], ids=repr)
def test_regression_of_an_object_does_not_depend_on_the_others(model):
    X, y = numbers(60)
    model = clone(model).fit(X[:30], y[:30])
    together = model.predict(X)
    np.testing.assert_array_equal(together[::-1], model.predict(X[::-1]))
    np.testing.assert_array_equal(together, np.concatenate([model.predict([x]) for x in X]))
    with sm.config(max_memory=3 * 8 * 30 * 4):  # four objects in a block
        np.testing.assert_array_equal(together, model.predict(X))


def test_regression_is_tuned_scaled_and_explained():
    X, y = numbers(40)
    search = GridSearchCV(sm.KernelRidge(Spectrum(k=1)), {"kernel__k": [1, 3], "alpha": [1e-3, 1e3]}, cv=3)
    assert search.fit(X, y).best_params_ == {"alpha": 1e-3, "kernel__k": 1}
    assert cross_val_score(search.best_estimator_, X, y, cv=3).mean() > 0.99
    for machine in (sm.KernelRidge(Spectrum(k=1), 1e-3), sm.KernelSVR(Spectrum(k=1), 100.0, 1e-3)):
        adds = {part.name: part.contribution for part in sm.explain(clone(machine).fit(X, y), "aab").parts}
        assert adds["a"] == pytest.approx(2.0, abs=0.05)  # each a adds 1 to y, each b takes half of that
        assert adds["b"] == pytest.approx(-0.5, abs=0.05)
        scaled = TransformedTargetRegressor(clone(machine), transformer=StandardScaler()).fit(X, 50 + 9 * y)
        found = sm.explain(scaled, "aab")
        assert found.value == pytest.approx(float(scaled.predict(["aab"])[0]))
        assert abs(found.unexplained) < 1e-6
        assert sm.explain(scaled, "aab", "ab").value == 3.0  # the kernel: a twice with a, b with b
    by_objects = sm.KernelRidge(DistanceRBF(Levenshtein(), 0.1)).fit(X, y)
    assert "like training object" in sm.explain(by_objects, "aab").parts[0].name


def test_regression_of_a_bag_is_that_of_its_objects():
    bags = pytest.importorskip("dask.bag")
    X, y = numbers(40)
    for machine in (
        sm.KernelRidge(Spectrum(k=2)),
        sm.KernelSVR(Spectrum(k=2)),
        KernelSVC(Spectrum(k=2), probability=True),
    ):
        labels = y > 0 if isinstance(machine, KernelSVC) else y
        bag = bags.from_sequence(X, npartitions=3)
        with pytest.raises(TypeError, match=r"X is a Dask collection.*Nystroem"):
            machine.fit(bag, labels)
        machine.fit(X, labels)
        np.testing.assert_array_equal(machine.predict(bag).compute(), machine.predict(X))
        if isinstance(machine, KernelSVC):
            np.testing.assert_array_equal(machine.predict_proba(bag).compute(), machine.predict_proba(X))


# ---- what scikit-learn asks of all


@pytest.mark.parametrize(
    "model", [KNeighborsClassifier(BY_VECTORS), KNeighborsRegressor(BY_VECTORS), KernelSVC(rbf_kernel)],
    ids=lambda model: type(model).__name__,
)  # fmt: skip
def test_scikit_learns_checks_on_vectors(model):
    results = check_estimator(model, on_skip=None, on_fail=None)
    failed = [(result["check_name"], result["exception"]) for result in results if result["status"] == "failed"]
    assert failed == []


def test_sparse_rows_are_taken_where_the_kernel_takes_them():
    X = sp.csr_array(np.random.default_rng(0).integers(0, 3, (20, 5)).astype(float))
    y = np.arange(20) % 2
    model = KernelSVC(rbf_kernel).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), KernelSVC(rbf_kernel).fit(X.toarray(), y).predict(X.toarray()))


MODELS = {
    "neighbours, series": (KNeighborsClassifier(DTW(0.2), 3), beats(8)),
    "neighbours, kernel": (KNeighborsClassifier(Spectrum(k=2, normalize=True)), (["abab", "baba", "aabb"], [0, 0, 1])),
    "regression": (KNeighborsRegressor(Levenshtein(), 2), (["a", "ab", "bbb"], [1.0, 2.0, 3.0])),
    "vectors": (KernelSVC(sm.kernels.Cosine()), (np.random.default_rng(0).random((12, 3)), np.arange(12) % 3)),
    "machine": (KernelSVC(Spectrum(k=2)), (["abab", "baba", "aabb", "bbaa"], ["x", "x", "y", "y"])),
    "chances": (KernelSVC(Spectrum(k=2), probability=True), (["abab", "baba", "aabb", "bbaa"], ["x", "x", "y", "y"])),
    "ridge": (sm.KernelRidge(Spectrum(k=2)), (["abab", "baba", "aabb"], [1.0, 2.0, 3.0])),
    "two numbers": (sm.KernelRidge(Spectrum(k=2)), (["abab", "baba", "aabb"], [[1.0, 0.0], [2.0, 5.0], [3.0, 1.0]])),
    "support vectors": (sm.KernelSVR(Spectrum(k=2)), (["abab", "baba", "aabb"], [1.0, 2.0, 3.0])),
    "no support vectors": (sm.KernelSVR(Spectrum(k=2)), (["abab", "baba", "aabb"], [1.0, 1.0, 1.0])),
    "ridge on graphs": (
        sm.KernelRidge(WeisfeilerLehman()),
        (sm.objects.as_graphs([1 - np.eye(2), 1 - np.eye(3)]), [1.0, 2.0]),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_models_predict_the_same(name, tmp_path):
    model, (X, y) = MODELS[name]
    model = clone(model).fit(X, y)
    loaded = sm.load(sm.save(model, tmp_path / "model.similia"))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    if hasattr(model, "kneighbors"):
        for a, b in zip(loaded.kneighbors(X), model.kneighbors(X), strict=True):
            np.testing.assert_array_equal(a, b)
