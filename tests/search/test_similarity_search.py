"""Search of any objects against brute force, with every way to sort the candidates."""

import copy
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn import config_context
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import similia as sm
from naive import similarities as naive
from similia.core.estimators import twin_of
from similia.distances import DTW, FromFunction, Levenshtein
from similia.kernels import RBF, Cosine, MinMax, Spectrum, WeisfeilerLehman
from similia.objects import StringBatch, as_graphs, as_series, as_strings
from similia.pipelines import as_metric, metric_of
from similia.search import _queries, similarity_search
from similia.search.answers import shares_found, sorted_candidates
from similia.search.similarity_search import true_metric
from similia.similarity import Metric
from similia.similarity import feature_distances as distances_of_features

laws = settings(max_examples=15, deadline=None)


def words(n=120, seed=0):
    rng = np.random.default_rng(seed)
    roots = ["".join(rng.choice(list("abcd"), 12)) for _ in range(12)]
    found = []
    for i in range(n):
        letters = list(roots[i % 12])
        letters[rng.integers(12)] = rng.choice(list("abcd"))
        found.append("".join(letters))
    return found


def string_encoder(n_bits=256):
    nystroem = sm.Nystroem(Spectrum(k=2), n_components=32, random_state=0)
    return make_pipeline(nystroem, sm.SignRandomProjection(n_bits, random_state=1))


def bits_of(codes):
    return np.unpackbits(codes, axis=1).astype(int)


def brute_order(values, ids, k):
    """Return the ids of the k smallest values, the smaller id first among equals."""
    return [i for _, i in sorted(zip(values, ids, strict=True))[:k]]


def feature_distances(kernel, X, Y):
    K = kernel(X, Y)
    own = [np.array([kernel([x])[0, 0] for x in objects]) for objects in (X, Y)]
    return np.sqrt(own[0][:, None] + own[1] - 2 * K)


# ---- answers
def test_hamming_order_without_rerank():
    X, Q = words(), words(7, seed=1)
    search = sm.SimilaritySearch(string_encoder()).fit(X)
    distances, ids = search.kneighbors(Q, 9)
    codes = [bits_of(search.encoder_.transform(part)) for part in (Q, X)]
    true = (codes[0][:, None] != codes[1]).sum(axis=2)
    assert ids.tolist() == [brute_order(row, range(120), 9) for row in true]
    np.testing.assert_array_equal(distances, np.take_along_axis(true, ids, axis=1))
    assert search.objects_ is None
    assert search.vectors_ is None


@pytest.mark.parametrize("rerank", ["kernel", "distance"])
def test_all_candidates_sorted_once_more_are_brute_force(rerank):
    X, Q = words(), words(6, seed=2)
    metric = Levenshtein() if rerank == "distance" else "kernel"
    search = sm.SimilaritySearch(string_encoder(), rerank=metric, n_candidates=120).fit(X)
    distances, ids = search.kneighbors(Q, 10)
    true = Levenshtein()(Q, X) if rerank == "distance" else feature_distances(Spectrum(k=2), Q, X)
    assert ids.tolist() == [brute_order(row, range(120), 10) for row in true]
    np.testing.assert_array_equal(np.take_along_axis(true, ids, axis=1), distances)
    if rerank == "kernel":
        values, same = search.kneighbors(Q, 10, return_similarity=True)
        np.testing.assert_array_equal(same, ids)
        np.testing.assert_array_equal(values, np.take_along_axis(Spectrum(k=2)(Q, X), ids, axis=1))
    np.testing.assert_array_equal(search.kneighbors(Q, 10, return_distance=False), ids)


@pytest.mark.parametrize("rerank", [None, "projected", "kernel", Levenshtein()], ids=str)
def test_radius_neighbors_are_the_neighbours_within_the_radius(rerank):
    X, Q = words(), words(6, seed=2)
    search = sm.SimilaritySearch(string_encoder(), rerank, n_candidates=120).fit(X, ids=np.arange(120) * 2)
    distances, ids = search.kneighbors(Q, 120)
    for radius in (0, float(distances[2, 9]), 1e9):
        found = search.radius_neighbors(Q, radius)
        for i in range(6):
            inside = distances[i] <= radius
            np.testing.assert_array_equal(found[0][i], distances[i][inside])
            np.testing.assert_array_equal(found[1][i], ids[i][inside])
        alone = search.radius_neighbors(Q, radius, return_distance=False)
        assert [row.tolist() for row in alone] == [row.tolist() for row in found[1]]
    if rerank in ("kernel", "projected"):
        values, _ = search.radius_neighbors(Q, 1e9, return_similarity=True)
        np.testing.assert_array_equal(values[0], search.kneighbors(Q, 120, return_similarity=True)[0][0])
    else:
        for method in (search.kneighbors, search.radius_neighbors):
            with pytest.raises(ValueError, match="return_similarity needs rerank='projected' or a kernel"):
                method(Q, 3, return_similarity=True)
    for radius in (-1, np.nan, True, "1"):
        with pytest.raises(ValueError, match="radius must be a number >= 0"):
            search.radius_neighbors(Q, radius)


def test_candidates_are_the_nearest_codes():
    X, Q = words(), words(5, seed=3)
    plain = sm.SimilaritySearch(string_encoder()).fit(X)
    sorted_again = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein(), n_candidates=15).fit(X)
    _, shortlist = plain.kneighbors(Q, 15)
    distances, found = sorted_again.kneighbors(Q, 15)
    assert [sorted(row) for row in found.tolist()] == [sorted(row) for row in shortlist.tolist()]
    assert (np.diff(distances, axis=1) >= 0).all()


def test_projected_vectors_are_compared_by_their_cosine():
    rng = np.random.default_rng(0)
    X, Q = rng.standard_normal((60, 20)), rng.standard_normal((4, 20))
    encoder = make_pipeline(PCA(8, random_state=0), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="projected", n_candidates=60).fit(X)
    distances, ids = search.kneighbors(Q, 5)
    scores, _ = search.kneighbors(Q, 5, return_similarity=True)
    V, W = (search.encoder_[0].transform(part) for part in (X, Q))
    cosines = (W @ V.T) / np.linalg.norm(W, axis=1)[:, None] / np.linalg.norm(V, axis=1)
    assert ids.tolist() == [brute_order(row, range(60), 5) for row in -cosines]
    np.testing.assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :5], atol=1e-6)
    np.testing.assert_allclose(distances, np.sqrt(2 - 2 * scores))
    assert search.objects_ is None


@pytest.mark.parametrize("scale", [1e-25, 1e-21, 1e25, 1e37])
def test_the_size_of_projected_vectors_does_not_matter(scale):
    X = np.random.default_rng(1).standard_normal((50, 6)).astype(np.float32)
    X[7] = 0
    encoder = make_pipeline(FunctionTransformer(), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="projected", n_candidates=50)
    scores, ids = search.fit(X).kneighbors(X[:5], 9, return_similarity=True)
    scaled, same = search.fit(X * np.float32(scale)).kneighbors(X[:5] * np.float32(scale), 9, return_similarity=True)
    assert same.tolist() == ids.tolist()
    np.testing.assert_allclose(scaled, scores, atol=1e-6)


def test_a_zero_vector_has_cosine_zero():
    X = np.vstack([np.zeros(4), np.eye(4)])
    encoder = make_pipeline(FunctionTransformer(), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="projected", n_candidates=5).fit(X)
    scores, ids = search.kneighbors(np.eye(4)[:1], 5, return_similarity=True)
    assert ids[0, 0] == 1
    np.testing.assert_allclose(scores[0], [1, 0, 0, 0, 0])


@laws
@given(st.integers(0, 1000), st.integers(1, 40), st.integers(1, 8))
def test_order_of_candidates(seed, n, n_values):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, n_values, (3, n)).astype(float)
    ids = np.stack([rng.permutation(10 * n)[:n] for _ in range(3)])
    order = sorted_candidates(values, ids)
    for row in range(3):
        assert ids[row][order[row]].tolist() == brute_order(values[row], ids[row].tolist(), n)


@pytest.mark.parametrize("kind", ["strings", "series", "graphs", "list"])
def test_values_of_candidates_are_those_of_all_pairs(kind):
    rng = np.random.default_rng(0)
    candidates = np.stack([rng.permutation(9)[:4] for _ in range(40)])
    if kind == "strings":
        metric, X, Y = Metric(Levenshtein(), False), as_strings(words(40)), as_strings(words(9, seed=5))
    elif kind == "series":
        X, Y = (as_series([rng.standard_normal((rng.integers(2, 9), 2)) for _ in range(n)]) for n in (40, 9))
        metric = Metric(DTW(), False)
    elif kind == "graphs":
        paths = [([[*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)]], n) for n in range(2, 60)]
        X, Y = as_graphs(paths[:40]), as_graphs(paths[-9:])
        metric = Metric(WeisfeilerLehman(n_iter=2), True)
    else:
        X, Y = [{1, 2, int(i)} for i in range(40)], [{1, int(i)} for i in range(9)]
        metric = Metric(FromFunction(lambda x, y: float(len(x ^ y))), False)
    found = metric.of_candidates(X, Y, candidates)
    np.testing.assert_allclose(found, np.take_along_axis(metric.between(X, Y), candidates, axis=1), rtol=1e-6)


@laws
@given(st.lists(st.text("abé\U0001f600", max_size=80), min_size=2, max_size=8), st.integers(0, 99))
def test_paired_edit_distances(strings, seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(0, len(strings), (2, 12))
    found = Levenshtein().paired(strings, strings[::-1], rows, columns)
    np.testing.assert_array_equal(found, Levenshtein()(strings, strings[::-1])[rows, columns])
    short = [s[:4] for s in strings]
    expected = [naive.edit_distance(short[i], short[j]) for i, j in zip(rows, columns, strict=True)]
    np.testing.assert_array_equal(Levenshtein().paired(short, short, rows, columns), expected)


# ---- changes
def test_add_and_remove_are_a_search_fitted_to_what_is_left():
    X = words(100)
    encoder = string_encoder().fit(X[:50])
    search = sm.SimilaritySearch(FrozenEstimator(encoder), rerank=Levenshtein(), n_candidates=40).fit(X[:50])
    search.add(X[50:70]).remove([3, 60, 0]).add(X[70:], ids=np.arange(1000, 1030))
    left = [i for i in range(70) if i not in (0, 3, 60)]
    ids = np.array([*left, *range(1000, 1030)])
    objects = [*(X[i] for i in left), *X[70:]]
    other = sm.SimilaritySearch(FrozenEstimator(encoder), rerank=Levenshtein(), n_candidates=40).fit(objects, ids=ids)
    for found, expected in zip(search.kneighbors(X[::7], 8), other.kneighbors(X[::7], 8), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert len(search) == 97
    np.testing.assert_array_equal(search.ids_, ids)


def test_ids_in_any_order():
    X = words(40)
    ids = np.random.default_rng(0).permutation(100)[:40]
    search = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein(), n_candidates=40).fit(X, ids=ids)
    distances, found = search.kneighbors(X, 3)
    rows = np.argsort(ids)[np.searchsorted(np.sort(ids), found)]
    np.testing.assert_array_equal(distances, np.take_along_axis(Levenshtein()(X, X), rows, axis=1))
    np.testing.assert_array_equal(distances[:, 0], 0)


def test_objects_that_do_not_fit_are_not_half_added():
    search = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein(), n_candidates=20).fit(words())
    with pytest.raises(TypeError, match="some batches hold str and others bytes"):
        search.add([word.encode() for word in words(5, seed=1)])
    assert len(search) == len(search.index_) == len(search.objects_) == 120


def test_large_ids_of_any_type_are_compared_exactly():
    far = np.arange(2**60, 2**60 + 100)
    ids = np.concatenate([np.arange(20), far[::2]])
    search = sm.SimilaritySearch(string_encoder(), Levenshtein(), n_candidates=20).fit(words(70), ids=ids)
    with pytest.raises(ValueError, match=f"no object with the id {far[1]}"):
        search.objects(far[1::2].astype(np.uint64))
    search.remove(np.concatenate([[0], far[:40:2], far[60::2]]).astype(np.uint64))
    assert search.ids_.tolist() == sorted(search.index_.ids.tolist()) == [*range(1, 20), *far[40:60:2].tolist()]


def test_projected_vectors_follow_adding_and_removing():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    encoder = FrozenEstimator(make_pipeline(PCA(4), sm.SignRandomProjection(64, random_state=0)).fit(X))
    with pytest.raises(ValueError, match="vectors before the last step of a pipeline"):
        sm.SimilaritySearch(encoder, rerank="projected").fit(X)
    encoder = make_pipeline(FrozenEstimator(PCA(4).fit(X)), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="projected", n_candidates=29).fit(X[:20]).add(X[20:]).remove([5])
    _, ids = search.kneighbors(X[[7, 25]], 1)
    assert ids[:, 0].tolist() == [7, 25]
    assert search.vectors_.shape == (29, 4)


def test_candidates_are_sorted_by_a_lambda():
    X = words(60)
    distance = FromFunction(lambda x, y: abs(x.count("a") - y.count("a")) + abs(x.count("b") - y.count("b")))
    nystroem = sm.Nystroem(sm.pairwise(lambda x, y: len({*x} & {*y})), 8, random_state=0)
    for encoder, rerank in [
        (string_encoder(), distance),
        (make_pipeline(nystroem, sm.SignRandomProjection(64)), "kernel"),
    ]:
        search = sm.SimilaritySearch(encoder, rerank=rerank, n_candidates=60).fit(X)
        metric = as_metric(rerank, encoder, "rerank")
        np.testing.assert_allclose(search.kneighbors(X[:3], 60)[0], np.sort(metric.distances(X[:3], X), axis=1))


def test_another_function_as_kernel_counts_at_once():
    def inner(X, Y=None):
        return np.asarray(X) @ np.asarray(X if Y is None else Y).T

    def near(X, Y=None, scale=1.0):
        return np.exp(-scale * cdist(X, X if Y is None else Y))

    X = np.random.default_rng(0).normal(size=(50, 4))
    encoder = make_pipeline(sm.Nystroem(inner, 8, random_state=0), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=50).fit(X)
    for kernel in (inner, near, partial(near, scale=2.0), partial(near, scale=3.0)):
        search.set_params(encoder__nystroem__kernel=kernel)
        np.testing.assert_allclose(
            search.kneighbors(X[:3], 50)[0], np.sort(feature_distances(kernel, X[:3], X), axis=1), atol=1e-6
        )


def test_many_queries_are_answered_in_parts(monkeypatch):

    X = words(60)
    search = sm.SimilaritySearch(string_encoder(), rerank="kernel", n_candidates=20).fit(X)
    whole = search.kneighbors(X, 4)
    monkeypatch.setattr(_queries, "_QUERIES", 7)
    for found, expected in zip(search.kneighbors(X, 4), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("ids", [None, np.random.default_rng(0).permutation(200)[:100]])
def test_objects_by_their_ids(ids):
    X = words(100)
    search = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein(), n_candidates=40).fit(X, ids=ids)
    true = dict(zip(search.ids_.tolist(), X, strict=True))
    gone = search.ids_[[0, 7]].tolist()
    search.remove(gone)
    distances, found = search.kneighbors(X[50:55], 3)
    for query, row, values in zip(X[50:55], found, distances, strict=True):
        assert search.objects(row).tolist() == [true[i] for i in row.tolist()]
        np.testing.assert_array_equal(Levenshtein()([query], search.objects(row))[0], values)
    twice = found[0, [1, 1, 0]].tolist()
    assert search.objects(twice).tolist() == [true[i] for i in twice]
    assert len(search.objects([])) == 0
    with pytest.raises(ValueError, match=f"there is no object with the id {gone[1]}$"):
        search.objects([twice[0], gone[1], gone[0]])
    with pytest.raises(ValueError, match=r"1-D array of integers, got dtype int64 and shape \(5, 3\); pass ids.ravel"):
        search.objects(found)
    with pytest.raises(ValueError, match="keeps no objects, since rerank=None needs none"):
        sm.SimilaritySearch(string_encoder()).fit(X).objects([0])


def test_another_rerank_after_fit():
    X = words(60)
    search = sm.SimilaritySearch(string_encoder(), n_candidates=60).fit(X)
    for rerank, missing in [(Levenshtein(), "objects"), ("kernel", "objects"), ("projected", "vectors")]:
        search.set_params(rerank=rerank)
        for call in (search.kneighbors, search.add, lambda X: search.recall(X, objects=words(60))):
            with pytest.raises(ValueError, match=f"compares {missing} that were not kept; fit again"):
                call(X[:2])
    assert len(search) == 60
    assert search.set_params(rerank=None).kneighbors(X[:3], 1)[1].tolist() == [[0], [1], [2]]
    search = sm.SimilaritySearch(string_encoder(), rerank="kernel", n_candidates=60).fit(X)
    by_distance = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein(), n_candidates=60).fit(X)
    search.set_params(rerank=Levenshtein())
    np.testing.assert_array_equal(search.kneighbors(X[:9])[1], by_distance.kneighbors(X[:9])[1])
    alone = sm.SimilaritySearch(FrozenEstimator(string_encoder().fit(X))).fit(X).set_params(rerank="projected")
    with pytest.raises(ValueError, match="vectors before the last step of a pipeline"):
        alone.kneighbors(X[:1])


def test_trials_are_those_of_the_last_fit():
    X = words(60)
    search = sm.SimilaritySearch("auto", rerank=Levenshtein()).fit(X)
    assert hasattr(search, "trials_")
    assert not hasattr(search.set_params(encoder=string_encoder()).fit(X), "trials_")


def test_the_index_has_the_length_of_the_codes():
    index = sm.HammingIndex(64)
    with pytest.raises(ValueError, match="index has n_bits=64, but the encoder makes codes of 256 bits"):
        sm.SimilaritySearch(string_encoder(), index=index).fit(words(40))
    search = sm.SimilaritySearch(string_encoder(64), index=index).fit(words(40))
    assert search.index_ is not index


@pytest.mark.parametrize("rerank", [None, "projected", "kernel", Levenshtein()], ids=str)
def test_fit_parses_strings_once_and_each_step_transforms_once(monkeypatch, rerank):
    calls = {"parse": 0, "Nystroem": 0, "SignRandomProjection": 0}

    def counted(name, function):
        def call(*args, **options):
            calls[name] += 1
            return function(*args, **options)

        return call

    monkeypatch.setattr(StringBatch, "from_list", counted("parse", StringBatch.from_list))
    for cls in (sm.Nystroem, sm.SignRandomProjection):
        monkeypatch.setattr(cls, "transform", counted(cls.__name__, cls.transform))
    X = words(200)
    search = sm.SimilaritySearch(string_encoder(), rerank, n_candidates=50).fit(X)
    assert calls == {"parse": 1, "Nystroem": 1, "SignRandomProjection": 1}
    codes = string_encoder().fit(X).transform(X)
    np.testing.assert_array_equal(search.index_.reconstruct(), codes)


# ---- recall
def test_recall_is_that_of_brute_force():
    X, Q = words(), words(30, seed=4)
    search = sm.SimilaritySearch(string_encoder(64), rerank=Levenshtein(), n_candidates=12).fit(X)
    report = search.recall(Q, 10)
    D = Levenshtein()(Q, X)
    _, ids = search.kneighbors(Q, 10)
    shares = [np.mean(row[found] <= np.sort(row)[9]) for row, found in zip(D, ids, strict=True)]
    assert report.recall == pytest.approx(np.mean(shares))
    assert 0 < report.recall < 1
    assert report.standard_error == pytest.approx(np.std(shares, ddof=1) / np.sqrt(30))
    assert report.seconds > 0
    assert report.brute_force_seconds > 0
    assert search.set_params(n_candidates=120).recall(Q, 10).recall == 1


def test_brute_force_is_timed_without_the_count_of_what_was_found(monkeypatch):
    now = [0.0]

    def slowly(*arguments):
        now[0] += 1
        return shares_found(*arguments)

    monkeypatch.setattr(similarity_search, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    monkeypatch.setattr(similarity_search, "shares_found", slowly)
    search = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein()).fit(words())
    assert search.recall(words(30, seed=4), 10).brute_force_seconds == 0


def test_recall_of_a_search_without_objects():
    X, Q = words(), words(10, seed=4)
    search = sm.SimilaritySearch(string_encoder()).fit(X)
    with pytest.raises(ValueError, match="keeps none; give objects="):
        search.recall(Q)
    with pytest.raises(ValueError, match="with all 120 objects, but 119 are given"):
        search.recall(Q, objects=X[1:])
    by_kernel, by_distance = (search.recall(Q, objects=X, metric=m).recall for m in ("kernel", Levenshtein()))
    assert by_kernel != by_distance
    assert 0 < by_kernel <= 1


def test_recall_decides_the_kernel_from_all_objects():
    """Blocks of queries must not each have a width of their own."""
    X = np.random.default_rng(0).normal(size=(90, 4)) * np.repeat([[1], [9]], 45, axis=0)
    search = sm.SimilaritySearch(sm.SignRandomProjection(64, random_state=0), RBF("median"), n_candidates=90).fit(X)
    found = true_metric(search, "kernel", search.objects_)
    assert found.function.gamma == RBF("median").decided(X).gamma
    distances = similarity_search._by_metric(search, X, RBF("median"), None)
    blocks = [distances(np.arange(i, i + 9)) for i in range(0, 90, 9)]
    np.testing.assert_allclose(np.concatenate(blocks), distances(np.arange(90)), atol=1e-6)


def test_recall_among_the_projected_vectors():
    X, Q = words(), words(10, seed=4)
    search = sm.SimilaritySearch(string_encoder(), "projected", n_candidates=120).fit(X)
    assert search.recall(Q, metric="projected").recall == 1
    assert search.set_params(n_candidates=10).recall(Q, metric="projected").recall < 1
    with pytest.raises(ValueError, match="vectors that only rerank='projected' keeps"):
        sm.SimilaritySearch(string_encoder()).fit(X).recall(Q, metric="projected")
    assert search.set_params(rerank=None).recall(Q, metric="projected").recall < 1  # the vectors are still there


def test_recall_of_vectors_by_a_metric_that_the_sentence_names():
    random = np.random.default_rng(0)
    X = random.standard_normal((80, 12))
    search = sm.SimilaritySearch(make_pipeline(PCA(8), sm.SignRandomProjection(256, random_state=0))).fit(X)
    with pytest.raises(ValueError, match=r"PCA has no kernel or distance .* for vectors metric=similia") as error:
        search.recall(X[:20], 5, objects=X)
    assert "rerank" not in str(error.value)
    assert "metric=similia.kernels.Cosine('projection')" in str(error.value)
    assert "similia.distances.FromFunction(cdist, pairwise=True)" in str(error.value)
    _, ids = search.kneighbors(X[:20], 5)
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for metric, D in [
        (Cosine("projection"), -unit[:20] @ unit.T),
        (FromFunction(cdist, pairwise=True), cdist(X[:20], X)),
    ]:
        share = np.mean([np.isin(row, brute_order(values, range(80), 5)) for row, values in zip(ids, D, strict=True)])
        report = search.recall(X[:20], 5, objects=X, metric=metric)
        assert isinstance(report, sm.search.Recall)
        assert report.recall == pytest.approx(share)
    with pytest.raises(ValueError, match="metric must be 'kernel', or a kernel or distance of similia, got 'cosine'"):
        search.recall(X[:20], objects=X, metric="cosine")
    strings = sm.SimilaritySearch(string_encoder(), rerank=Levenshtein()).fit(words())
    with pytest.raises(ValueError, match="metric must be 'kernel', or a kernel"):
        strings.recall(words(3), metric="levenshtein")


# ---- what is refused
def test_what_does_not_fit():
    X = words()
    with pytest.raises(ValueError, match=r"rerank is .*pairwise\(f\) if .*distances\.FromFunction\(f\) if"):
        sm.SimilaritySearch(string_encoder(), rerank=lambda x, y: 0.0).fit(X)
    with pytest.raises(ValueError, match=r"rerank must be a kernel.*distances\.FromFunction"):
        sm.SimilaritySearch(string_encoder(), rerank=sm.pairwise(lambda x, y: float(x != y))).fit(X)
    with pytest.raises(
        ValueError, match="rerank must be None, 'projected', 'kernel', or a kernel or distance of similia"
    ):
        sm.SimilaritySearch(string_encoder(), rerank="hamming").fit(X)
    with pytest.raises(
        ValueError, match=r"SignRandomProjection has no kernel .* rerank=similia.* or take rerank='proj"
    ):
        sm.SimilaritySearch(sm.SignRandomProjection(64), rerank="kernel").fit(np.eye(3))
    with pytest.raises(ValueError, match="packed bits"):
        sm.SimilaritySearch(sm.Nystroem(Spectrum(k=2), 8, random_state=0)).fit(X)
    with pytest.raises(ValueError, match="X is empty"):
        sm.SimilaritySearch(string_encoder()).fit([])
    with pytest.raises(TypeError, match="index must be a HammingIndex"):
        sm.SimilaritySearch(string_encoder(), index="exact").fit(X)
    search = sm.SimilaritySearch(string_encoder(), rerank="kernel", n_candidates=20).fit(X)
    with pytest.raises(ValueError, match="n_neighbors=121 is more than the 120 objects"):
        search.kneighbors(X[:1], 121)
    with pytest.raises(ValueError, match="n_neighbors=21 is more than the n_candidates=20"):
        search.kneighbors(X[:1], 21)
    with pytest.raises(ValueError, match="id 5 is in the index already"):
        search.add(["abcd"], ids=[5])
    with pytest.raises(ValueError, match="500"):
        search.remove([3, 500])
    assert len(search) == len(search.objects_) == 120  # nothing half-done


def test_what_makes_no_codes_is_refused_with_what_to_pass():
    X, y = words(), np.arange(120) % 2
    for encoder in (Spectrum(k=3), Levenshtein(), len):
        with pytest.raises(TypeError, match=r"encoder is .*, expected an encoder.*Nystroem.*SignRandomProjection"):
            sm.SimilaritySearch(encoder).fit(X)
    model = sm.recipes.nyshd(Spectrum(k=2), 8, 64, random_state=0)
    for labels in (None, y):
        with pytest.raises(TypeError, match=r"encoder predicts and does not encode.*pass model\[:-1\]"):
            sm.SimilaritySearch(model).fit(X, labels)
    with pytest.raises(TypeError, match=r"encoder predicts and does not encode"):
        sm.SimilaritySearch(sm.KernelSVC(Spectrum(k=2))).fit(X, y)
    assert len(sm.SimilaritySearch(model[:-1]).fit(X)) == 120


def test_the_largest_kernel_values_have_distances():
    largest = 1.5e308
    assert distances_of_features(np.array([largest, largest / 2]), largest, largest).tolist() == [0, largest**0.5]


def test_the_metric_of_an_encoder():
    assert metric_of(string_encoder()).is_kernel
    assert not metric_of(make_pipeline(sm.D2KE(Levenshtein()), sm.SignRandomProjection(64))).is_kernel
    dtw = DTW()
    assert metric_of(make_pipeline(make_pipeline(sm.D2KE(dtw)), sm.SignRandomProjection(64))).function is dtw
    assert as_metric(Levenshtein(), None, "rerank").is_kernel is False
    assert as_metric(Spectrum(k=3), None, "rerank").is_kernel
    with pytest.raises(ValueError, match="has no kernel or distance"):
        metric_of(make_pipeline(sm.Nystroem("precomputed"), sm.SignRandomProjection(64)))


@pytest.mark.parametrize("kind", ["exact", "ivf"])
def test_a_copy_and_its_original_each_keep_what_they_add(kind):
    X = words(40)
    first = sm.SimilaritySearch(string_encoder(), index=sm.HammingIndex(256, kind, random_state=0)).fit(X[:39])
    first.add(X[39:]).kneighbors(X[:1], 1)  # the array of codes has room for more
    second = copy.copy(first)
    first.add(["aaaaaaaa", "bbbbbbbb"])
    assert first.kneighbors(["aaaaaaaa"], 1)[0].item() == 0.0
    second.add(["cdcdcdcd"])
    for search, own in ((first, ["aaaaaaaa", "bbbbbbbb"]), (second, ["cdcdcdcd"])):
        distances, ids = search.kneighbors(own, 1)
        assert ids[:, 0].tolist() == [40, 41][: len(own)]
        assert (distances == 0).all()
        distances, _ = search.kneighbors(["aaaaaaaa", "cdcdcdcd"], len(search))
        wanted = brute_bits(search, ["aaaaaaaa", "cdcdcdcd"], [*X, *own])
        np.testing.assert_array_equal(distances, np.sort(wanted, axis=1))


def brute_bits(search, queries, X):
    a, b = (bits_of(search.encoder_.transform(objects)) for objects in (queries, X))
    return (a[:, None] != b).sum(axis=2)


def test_an_older_view_of_an_index_finds_no_rows_that_were_added_to_the_shared_structure():
    codes = np.random.default_rng(0).integers(0, 256, (50, 8), np.uint8)
    old = sm.HammingIndex(64, "ivf", random_state=0).fit(codes[:40])
    old.kneighbors(codes[:1], 1)
    new = twin_of(old).add(codes[40:])
    new.kneighbors(codes[:1], 1)  # adds rows to the structure that both hold
    distances, ids = old.kneighbors(codes[40:], 40)
    assert set(ids.ravel()) == set(range(40))
    np.testing.assert_array_equal(distances, np.sort((bits_of(codes[40:])[:, None] != bits_of(codes[:40])).sum(2), 1))


def test_the_metric_gets_the_objects_themselves_whatever_the_encoder_leaves_of_them():
    def triangle(labels):
        return [[0, 1, 1, 2], [1, 0, 2, 1]], 3, {"node_labels": labels}

    X = [triangle([6, 6, 6]), triangle([7, 7, 7]), triangle([6, 6, 7])]
    index = sm.search.FeatureIndex(sm.kernels.Graphlet(3))  # reads no labels
    search = sm.SimilaritySearch(index, rerank=sm.kernels.VertexHistogram()).fit(X)
    for queries in (X[1:2], X[1:]):  # one query has a way of its own
        distances, ids = search.kneighbors(queries, 3)
        assert ids[0].tolist() == [1, 2, 0]
        np.testing.assert_allclose(distances[0], [0, np.sqrt(8), np.sqrt(18)], rtol=1e-12)
    search.add([triangle([7, 7, 6])])
    assert search.kneighbors([triangle([7, 6, 7])], 1)[1].item() == 3


def test_a_function_of_the_user_gets_objects_as_they_are():
    def total_variation(x):
        return float(np.abs(np.diff(x)).sum())

    distance = FromFunction(lambda x, y: abs(total_variation(x) - total_variation(y)))
    X = [[0.0, 0, 0, 0], [0, 5, 0, 5], [0, 1, 2, 3]]
    encoder = make_pipeline(sm.D2KE(DTW(), 8, random_state=0), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank=distance).fit(X)
    for queries in ([X[1]], X):
        distances, _ = search.kneighbors(queries, 3)
        np.testing.assert_array_equal(distances, np.sort(distance(queries, X), axis=1))


def test_the_automatic_choice_leaves_out_features_that_some_object_makes_negative():
    X = np.random.default_rng(0).random((600, 3))
    X[1, 0] = -1  # one row with a negative feature
    search = sm.SimilaritySearch("auto", rerank=sm.kernels.Optical()).fit(X)
    assert search.kneighbors(X[:5], 1)[1].ravel().tolist() == [0, 1, 2, 3, 4]


def test_the_automatic_choice_tries_the_features_of_the_kernel_that_reranks_strings():
    kernel = sm.kernels.MinMax(sm.kernels.GappedKmers(4, 2))
    X = words(600)
    search = sm.SimilaritySearch("auto", rerank=kernel, n_candidates=10).fit(X)
    shares = {trial["candidates"]: trial["recall"] for trial in search.trials_ if trial["n_candidates"] == 10}
    name = "features of MinMax(kernel=GappedKmers(informative=2, length=4))"
    assert shares[name] == 1.0, shares  # these features compare strings as the kernel does


@pytest.mark.filterwarnings("ignore::similia.search.automatic.LowRecall")
@pytest.mark.parametrize("compared", [RBF(0.5), DTW(0.2), Levenshtein()], ids=lambda f: type(f).__name__)
def test_the_automatic_choice_is_the_same_in_each_run(compared):
    X = words(400) if isinstance(compared, Levenshtein) else list(np.random.default_rng(1).normal(size=(400, 6)))
    one, other = (sm.SimilaritySearch("auto", compared, n_candidates=20).fit(X) for _ in range(2))
    assert one.trials_ == other.trials_
    for found, again in zip(one.kneighbors(X, 5), other.kneighbors(X, 5), strict=True):
        np.testing.assert_array_equal(found, again)


@pytest.mark.parametrize("rerank", [None, Cosine()])
def test_an_encoder_finds_the_columns_of_a_data_frame_by_their_names(rerank, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=[*"abc"])
    some = ColumnTransformer([("some", StandardScaler(), ["a", "b"])])
    search = sm.SimilaritySearch(make_pipeline(some, sm.SignRandomProjection(256, random_state=0)), rerank).fit(X)
    assert search.feature_names_in_.tolist() == [*"abc"]
    for queries in (X, X[:1]):
        np.testing.assert_array_equal(search.kneighbors(queries, 1)[1][:, 0], np.arange(len(queries)))
    turned = X[[*"cba"]]
    if rerank is None:  # only the encoder reads them
        np.testing.assert_array_equal(search.kneighbors(turned, 1)[1][:, 0], np.arange(30))
        return
    scaled = make_pipeline(StandardScaler(), sm.SignRandomProjection(256, random_state=0))
    saved = sm.SimilaritySearch(scaled, rerank).fit(X).save(tmp_path / "f")  # scikit-learn 1.6: no ColumnTransformer
    folder = sm.search.SearchFolder.open(saved)
    for call in (search.kneighbors, search.add, folder.add, folder.load().kneighbors):
        for queries in (turned, turned[:1]):
            with pytest.raises(ValueError, match=r"^X has the columns to which SimilaritySearch was fitted, but in"):
                call(queries)
    assert len(search.fit(turned)) == 30


@pytest.mark.parametrize(
    ("encoder", "rerank"),
    [
        (sm.SignRandomProjection(64), None),
        (sm.SignRandomProjection(64), RBF(1.0)),
        (make_pipeline(sm.Nystroem(RBF(1.0), 4), sm.SignRandomProjection(64)), "projected"),
        (sm.search.VectorIndex(), None),
        (sm.search.VectorIndex(), Cosine()),
        (sm.search.FeatureIndex(MinMax()), None),
        (sm.search.FeatureIndex(MinMax()), "kernel"),
    ],
)
def test_no_objects_are_within_a_radius_if_all_were_removed(encoder, rerank):
    X = np.random.default_rng(0).random((8, 3))
    search = sm.SimilaritySearch(encoder, rerank).fit(X).remove(range(8))
    for n in (1, 2):
        for found in search.radius_neighbors(X[:n], 9.0):
            assert [len(one) for one in found] == [0] * n
    found = search.add(X).radius_neighbors(X[:1], 64.0, return_distance=False)[0]
    assert sorted(found.tolist()) == [*range(8, 16)]


@pytest.mark.parametrize("output", ["default", "pandas"])
def test_the_automatic_choice_makes_no_frames(output):
    X = words(40)
    with config_context(transform_output=output):
        search = sm.SimilaritySearch("auto", rerank=Levenshtein()).fit(X)
    assert (search.kneighbors(X[:5], 1)[0] == 0).all()


def test_what_one_kernel_leaves_out_is_kept_for_the_other(tmp_path):
    def graph(labels):
        return [[0, 1], [1, 0]], 2, {"node_labels": labels}

    X = [graph([i % 3, i % 5]) for i in range(30)]
    index = sm.search.FeatureIndex(sm.kernels.VertexHistogram())
    search = sm.SimilaritySearch(index, rerank=sm.kernels.Graphlet(3)).fit(X)  # reads no labels
    search.add(as_graphs(X[:1]))
    search.save(tmp_path / "f")
    folder = sm.search.SearchFolder.open(tmp_path / "f")
    assert folder.add(X[:2]).tolist() == [31, 32]
    folder.remove(range(20))
    loaded = sm.load(tmp_path / "f")
    assert len(loaded) == 13
    np.testing.assert_array_equal(loaded.kneighbors(X[20:22], 1)[0], 0)
    loaded.set_params(rerank=sm.kernels.VertexHistogram())
    assert loaded.kneighbors(X[20:21], 1)[0].item() == 0


def test_trials_on_copies_do_not_double_the_memory_each_time():
    search = sm.SimilaritySearch(string_encoder()).fit(words(40))
    for i in range(12):
        copy.copy(search).add(["abcd" * 3])
        search.add(["dcba" * 3])
        assert len(search.index_._rows._ids) <= 4 * len(search), i


def test_a_copy_whose_structure_another_has_changed_is_saved_without_it(tmp_path):
    X = words(40)
    first = sm.SimilaritySearch(string_encoder(), index=sm.HammingIndex(256, "ivf", random_state=0)).fit(X)
    first.kneighbors(X[:1], 1)
    second = copy.copy(first)
    first.add(["abcdabcd"]).kneighbors(X[:1], 1)
    second.index_.save(tmp_path / "f")
    assert len(sm.HammingIndex.load(tmp_path / "f")) == 40
