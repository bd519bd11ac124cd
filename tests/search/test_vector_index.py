"""`VectorIndex` against dense rotations and definitions, its laws as an index, and as the candidates of a search."""

import pickle
import threading
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import vectors as naive
from similia.search import VectorIndex
from similia.search import _vector_index as loops
from similia.search.automatic import LowRecall
from similia.search.on_disk import SearchFolder
from similia.sources.files import open_objects
from similia.sources.matrices import open_matrix

BITS = (1, 2, 4, 8)
COSINES = {1: 0.80, 2: 0.94, 4: 0.994, 8: 0.99997}  # of codes and vectors, as the docstring says


def vectors(n=200, width=40, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, width)) * rng.gamma(2.0, 1.0, width) + 3


def fitted(bits=4, X=None, **options):
    return VectorIndex(bits, random_state=0, **options).fit(vectors() if X is None else X)


def rotated(index, X):
    """Return the vectors as the index rotates them, in float64."""
    X = X / np.linalg.norm(X, axis=1, keepdims=True) if index.normalize else X / 2.0**index.exponent_
    R = naive.rotation(index.signs_)
    return np.array([R @ naive.padded(x - index.center_, len(R)) for x in X])


# ---- codes
@pytest.mark.parametrize("width", [1, 5, 16, 40, 64, 100, 300])
@pytest.mark.parametrize("bits", BITS)
def test_rows_hold_levels_of_the_rotated_vectors(width, bits):
    X = vectors(70, width)
    index = fitted(bits, X)
    D = index.signs_.shape[1]
    assert index.n_bits == D * bits + 64
    for row, y in zip(index.encode(X), rotated(index, X), strict=True):
        w, norm, factor = naive.levels(row, bits, D)
        assert norm == pytest.approx(np.linalg.norm(y), rel=1e-6)
        assert factor * (w @ y) == pytest.approx(norm**2, rel=1e-5)
        assert ((w > 0) == (y > 0))[np.abs(y) > 1e-5 * norm].all()


@pytest.mark.parametrize("bits", BITS)
def test_codes_are_nearly_the_best(bits):
    X = np.concatenate([vectors(20, 60), np.random.default_rng(1).standard_t(2, (20, 60))])
    index = fitted(bits, X)
    for row, y in zip(index.encode(X), rotated(index, X), strict=True):
        w, _, _ = naive.levels(row, bits, len(y))
        cosine = w @ y / np.linalg.norm(w) / np.linalg.norm(y)
        assert cosine >= naive.best_cosine(y, bits) - 0.002


@pytest.mark.parametrize("bits", BITS)
def test_the_cosines_of_codes_are_those_of_the_docstring(bits):
    X = np.random.default_rng(0).standard_normal((300, 256))
    index = fitted(bits, X)
    Y = rotated(index, X)
    cosines = [
        w @ y / np.linalg.norm(w) / np.linalg.norm(y)
        for w, y in ((naive.levels(row, bits, 256)[0], y) for row, y in zip(index.encode(X), Y, strict=True))
    ]
    assert np.mean(cosines) == pytest.approx(COSINES[bits], abs=0.005 if bits < 4 else 0.001)


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("normalize", [False, True])
def test_distances_follow_the_definition(bits, normalize):
    X, Q = vectors(150), vectors(9, seed=1)
    index = fitted(bits, X, normalize=normalize)
    rows = [naive.levels(row, bits, index.signs_.shape[1]) for row in index.encode(X)]
    distances, ids = index.kneighbors(Q, len(X))
    for y, found, order in zip(rotated(index, Q), distances, ids, strict=True):
        expected = np.array([naive.squared_distance(*row, y) for row in rows])[order]
        expected = np.sqrt(np.maximum(0, expected)) * 2.0**index.exponent_
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-3)
        assert [*zip(found.tolist(), order.tolist(), strict=True)] == sorted(zip(found, order, strict=True))


@pytest.mark.parametrize("width", [24, 100, 256])
@pytest.mark.parametrize("bits", BITS)
def test_estimates_are_unbiased_with_the_error_that_is_promised(width, bits):
    rng = np.random.default_rng(width)
    X, Q = rng.standard_t(3, (6, width)), rng.standard_normal((4, width))  # a few large coordinates
    X[0], Q[0] = np.eye(width)[0], np.eye(width)[1]
    true, errors, promised = cdist(Q, X, "sqeuclidean"), [], []
    for seed in range(300):
        index = VectorIndex(bits, random_state=seed).fit(X)
        found = np.empty_like(true)
        for row, (distances, ids) in zip(found, zip(*index.kneighbors(Q, len(X)), strict=True), strict=True):
            row[ids] = distances**2
        rows = [naive.levels(row, bits, index.signs_.shape[1]) for row in index.encode(X)]
        D, scale = index.signs_.shape[1], 2.0**index.exponent_
        cosines = np.array([norm / factor / np.linalg.norm(w) for w, norm, factor in rows])
        norms = np.linalg.norm(X - index.center_ * scale, axis=1)
        of_queries = np.linalg.norm(Q - index.center_ * scale, axis=1)
        promised.append(2 * norms * of_queries[:, None] * np.sqrt(np.maximum(0, 1 - cosines**2) / cosines**2 / (D - 1)))
        errors.append(found - true)
    mean, spread, promised = np.mean(errors, axis=0), np.std(errors, axis=0), np.mean(promised, axis=0)
    assert (np.abs(mean) < 5 * spread / np.sqrt(len(errors)) + 1e-9).all()
    assert np.median(spread / promised) == pytest.approx(1, abs=0.3)
    assert (np.abs(errors) < 6 * promised + 1e-9).mean() > 0.995


@pytest.mark.parametrize("bits", BITS)
@pytest.mark.parametrize("width", [64, 2048])
def test_sums_fit_into_32_bits(bits, width):
    rng = np.random.default_rng(0)
    signs = (2 * rng.integers(0, 2, (4, width)) - 1).astype(np.int8)
    Q = np.concatenate([np.eye(width)[:3], np.ones((1, width)), rng.standard_normal((3, width)), np.zeros((1, width))])
    V, shifts, _, _ = loops.encode_queries(Q, np.zeros(width), signs, bits)
    top = 2**bits - 1
    assert (top * np.abs(V.astype(np.int64)).sum(axis=1) < 2**31).all()
    assert shifts.tolist() == (top * V.astype(np.int64).sum(axis=1)).tolist()
    assert np.abs(V[:-1].astype(int)).max(axis=1).min() > 1000  # precise enough
    code = np.full(width * bits // 8, 255, np.uint8)  # the largest level everywhere
    sums = np.empty((2, 1), np.int32)
    for v, w in pairwise(V):
        loops._products(code, 0, len(code), len(code), bits, v, w, sums)
        assert sums.ravel().tolist() == [top * int(v.astype(int).sum()), top * int(w.astype(int).sum())]


# ---- an index
@pytest.mark.same_bits
@pytest.mark.parametrize("bits", BITS)
def test_nearest_are_the_first_of_all(bits):
    X, Q = vectors(1000, 20), vectors(30, 20, seed=1)
    X[500:600] = X[:100]  # ties
    ids = np.random.default_rng(2).permutation(5000)[: len(X)]
    index = VectorIndex(bits, random_state=0).fit(X, ids=ids)
    distances, found = index.kneighbors(Q, len(X))
    assert (np.lexsort((found, distances), axis=1) == np.arange(len(X))).all()
    for k in (1, 7, 100):
        few = index.kneighbors(Q, k)
        np.testing.assert_array_equal(few[0], distances[:, :k])
        np.testing.assert_array_equal(few[1], found[:, :k])


@pytest.mark.same_bits
def test_bits_depend_on_nothing_else_in_the_call(monkeypatch):
    X, Q = vectors(300, 70).astype(np.float32), vectors(90, 70, seed=1)
    index = fitted(4, X)
    codes, (distances, ids) = index.encode(X), index.kneighbors(Q, 9)
    with sm.config(max_memory="64KiB"):
        np.testing.assert_array_equal(index.encode(X), codes)
        np.testing.assert_array_equal(index.kneighbors(Q, 9)[0], distances)
    for i in (0, 63, 64, 299):
        np.testing.assert_array_equal(index.encode(X[i : i + 1].astype(float)), codes[i : i + 1])
    for i in (0, 64, 89):
        np.testing.assert_array_equal(index.kneighbors(Q[i : i + 1], 9)[0], distances[i : i + 1])
    for name in ("_GRAIN", "_BYTES_OF_A_THREAD"):  # several threads
        monkeypatch.setattr(f"similia.search.vector_index.{name}", 16)
    np.testing.assert_array_equal(index.kneighbors(Q, 9)[0], distances)
    np.testing.assert_array_equal(index.kneighbors(Q, 9)[1], ids)
    for i in (0, 64, 89):
        np.testing.assert_array_equal(index.kneighbors(Q[i : i + 1], 9)[0], distances[i : i + 1])
        np.testing.assert_array_equal(index.kneighbors(Q[i : i + 1], 9)[1], ids[i : i + 1])


# ---- one query
def all_distances(index, q):
    """Return the distance of one query to each row, by the formula and in the order of its roundings."""
    queries = loops.encode_queries(index._scaled(q[None]), index.center_, index.signs_, index.bits)
    v, scale, square = queries[0][0].astype(int), queries[2][0], queries[3][0]
    found = []
    for row in index.reconstruct(index.ids):
        w, norm, factor = naive.levels(row, index.bits, len(v))
        estimate = norm * norm + square - scale * factor * float(w @ v)
        found.append(np.ldexp(np.sqrt(max(0.0, estimate)), index.exponent_))
    return np.array(found)


def check_one_query(index, q, k):
    """Assert that the nearest to one query are those of a batch, and those of a loop over all rows."""
    found, batch = index.kneighbors(q[None], k), index.kneighbors(np.stack([q, q]), k)
    expected = all_distances(index, q)
    order = np.lexsort((index.ids, expected))[:k]
    for one, other, naive_one in zip(found, batch, (expected[order], index.ids[order]), strict=True):
        assert one.shape == (1, k)
        np.testing.assert_array_equal(one[0].view(np.int64), other[1].view(np.int64))
        np.testing.assert_array_equal(one[0].view(np.int64), naive_one.view(np.int64))


@pytest.mark.same_bits
@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 40) | st.sampled_from([63, 64, 65, 100, 128, 130, 300]), st.integers(1, 60), st.integers(0, 40),
    st.integers(1, 60), st.sampled_from(["float32", "float64"]), st.booleans(), st.sampled_from(BITS),
    st.integers(0, 99),
)  # fmt: skip
def test_one_query_finds_what_a_loop_over_all_rows_finds(width, n, n_more, k, dtype, normalize, bits, seed):
    rng = np.random.default_rng(seed)
    X = vectors(n + n_more, width, seed)[rng.integers(0, n + n_more, n + n_more)].astype(dtype)  # with ties
    ids = rng.permutation(1000)[: n + n_more]
    index = VectorIndex(bits, normalize=normalize, random_state=0).fit(X[:n], ids=ids[:n])
    if n_more:
        index.add(X[n:], ids=ids[n:])
    gone = rng.permutation(ids)[: rng.integers(0, n + n_more)]
    index = index.remove(gone) if len(gone) else index
    check_one_query(index, X[0] if seed % 2 else vectors(1, width, seed + 1)[0].astype(dtype), min(k, len(index)))


@pytest.mark.same_bits
@pytest.mark.parametrize("k", [1, 10, 700])
@pytest.mark.parametrize("order", ["any", "nearest first", "nearest last"])
def test_one_query_whatever_the_order_of_rows(order, k):
    X, q = vectors(2000, 20), vectors(1, 20, seed=1)[0]
    if order != "any":
        near = np.argsort(np.linalg.norm(X - q, axis=1))
        X = X[near if order == "nearest first" else near[::-1]]
    check_one_query(fitted(4, X), q, k)


# ---- vectors that are not in memory
def equal(index, other):
    assert vars(index).keys() == vars(other).keys()
    for name in ("center_", "exponent_", "signs_", "ids", "n_features_in_"):
        np.testing.assert_array_equal(getattr(index, name), getattr(other, name))
    np.testing.assert_array_equal(index.reconstruct(index.ids), other.reconstruct(other.ids))


@pytest.mark.same_bits
@pytest.mark.parametrize("normalize", [False, True])
def test_sources_and_dask_collections_give_what_an_array_gives(monkeypatch, tmp_path, normalize):
    monkeypatch.setattr("similia.search.vector_index._BLOCK", 64)
    X, more, ids = vectors(300, 9), vectors(50, 9, seed=1), range(7, 307)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "more.npy", more)
    made = VectorIndex(2, normalize=normalize, random_state=0)
    expected = clone(made).fit(X, ids=ids).add(more)
    total = np.zeros(9)  # as the sums in blocks of 64 are defined
    for start in range(0, 300, 64):
        block = X[start : start + 64]
        total += (block / np.linalg.norm(block, axis=1)[:, None] if normalize else block).sum(axis=0)
    np.testing.assert_allclose(np.ldexp(expected.center_, expected.exponent_), total / 300, rtol=1e-12)
    for chunk in (7, 64, 100, 1000):
        first, second = (open_objects(tmp_path / f"{name}.npy", chunk=chunk) for name in ("X", "more"))
        equal(clone(made).fit(first, ids=ids).add(second), expected)
    once = open_matrix(iter([more[:20], more[20:]]))  # can be read only once
    equal(clone(made).fit(X, ids=ids).add(once), expected)
    da, bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    for parts in ((300,), (100, 1, 199), (64, 64, 64, 108)):
        equal(clone(made).fit(da.from_array(X, chunks=(parts, 4)), ids=ids).add(da.from_array(more, 13)), expected)
    equal(clone(made).fit(bag.from_sequence([*X], npartitions=4), ids=ids).add(more), expected)


def test_bad_vectors_of_sources_are_named(monkeypatch):
    monkeypatch.setattr("similia.search.vector_index._BLOCK", 16)
    da, bag = pytest.importorskip("dask.array"), pytest.importorskip("dask.bag")
    X = vectors(100, 5)
    index = fitted(4, X)
    X[71, 2] = np.nan
    lazy = da.from_array(X, chunks=(30, 5))
    for call in (index.fit, index.add):
        with pytest.raises(ValueError, match=r"X\[71\] holds NaN"):
            call(lazy)
        with pytest.raises(ValueError, match=r"X\[71\] holds NaN"):
            call(open_matrix(X))
    X[71] = 1e25
    with pytest.raises(ValueError, match=r"X\[71\] is 1e15 times as far"):
        index.add(da.from_array(X, chunks=(30, 5)))
    with pytest.raises(ValueError, match="objects that can be read several times"):
        index.fit(open_matrix(iter([X])))
    with pytest.raises(ValueError, match=r"X\[48\] has 4 numbers, expected 5, as the first"):
        index.fit(bag.from_sequence([*X[:48], *X[:10, :4]], npartitions=2))
    for query in (lazy, open_matrix(X)):
        with pytest.raises(TypeError, match="expected vectors in memory"):
            index.kneighbors(query, 1)
    equal(index, fitted(4, vectors(100, 5)))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_history_answers_as_a_new_index(data):
    X = vectors(60, 9)
    index, held, used = fitted(4, X[:20]), dict(enumerate(range(20))), 20  # id: position in X
    for _ in range(data.draw(st.integers(1, 6))):
        if held and data.draw(st.booleans()):
            gone = data.draw(st.lists(st.sampled_from(sorted(held)), unique=True, max_size=len(held)))
            index.remove(gone)
            held = {i: row for i, row in held.items() if i not in gone}
        else:
            rows = data.draw(st.lists(st.integers(0, 59), min_size=1, max_size=9))
            index.add(X[rows])
            held |= dict(zip(range(used, used + len(rows)), rows, strict=True))
            used += len(rows)
    assert index.ids.tolist() == [*held]
    assert len(index) == len(held)
    if held:
        new = fitted(4, X[:20]).remove(range(20)).add(X[[*held.values()]], ids=[*held])
        for one, other in zip(index.kneighbors(X[:5], len(held)), new.kneighbors(X[:5], len(held)), strict=True):
            np.testing.assert_array_equal(one, other)
        again = pickle.loads(pickle.dumps(index))
        np.testing.assert_array_equal(again.kneighbors(X[:5], 1)[1], index.kneighbors(X[:5], 1)[1])
        assert again.add(X[:1]).ids[-1] == used
        np.testing.assert_array_equal(index.reconstruct([*held]), new.reconstruct([*held]))


def test_radius_is_a_cut_of_all_neighbours():
    X, Q = vectors(300), vectors(5, seed=1)
    index = fitted(4, X)
    distances, ids = index.kneighbors(Q, 300)
    for radius in (0, distances[0, 70], distances[2, 3], 1e9):
        near, found = index.radius_neighbors(Q, radius)
        for i in range(len(Q)):
            inside = distances[i] <= radius
            assert near[i].tolist() == distances[i][inside].tolist()
            assert found[i].tolist() == ids[i][inside].tolist()


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_the_scale_of_vectors_does_not_matter(scale):
    X = vectors(80)
    power = 2.0 ** np.round(np.log2(scale))
    small, large = fitted(4, X), fitted(4, X * power)
    one, other = small.kneighbors(X[:5], 9), large.kneighbors(X[:5] * power, 9)
    np.testing.assert_array_equal(one[1], other[1])
    np.testing.assert_array_equal(one[0] * power, other[0])


def test_equal_vectors_and_zeros():
    index = fitted(4, np.zeros((3, 5)))
    np.testing.assert_array_equal(index.kneighbors(np.zeros((1, 5)), 3), [[[0, 0, 0]], [[0, 1, 2]]])
    assert index.kneighbors(np.full((1, 5), 2.0), 1)[0][0, 0] == pytest.approx(np.sqrt(20))
    same = fitted(2, np.ones((1, 3)), normalize=True).add(np.zeros((1, 3)))
    assert same.kneighbors(np.ones((1, 3)), 2)[1].tolist() == [[0, 1]]


def test_normalised_vectors_are_ordered_by_their_cosines():
    X, Q = vectors(400, 30), vectors(20, 30, seed=1)
    ids = fitted(8, X, normalize=True).kneighbors(Q, 10)[1]
    true = np.argsort(cdist(Q, X, "cosine"), axis=1)[:, :10]
    assert np.mean([len({*a} & {*b}) for a, b in zip(ids.tolist(), true.tolist(), strict=True)]) > 9.5
    np.testing.assert_array_equal(fitted(8, X, normalize=True).kneighbors(Q * 7.5, 10)[1], ids)


def test_more_bits_find_more():
    X, Q = vectors(3000, 64), vectors(50, 64, seed=1)
    true = np.argsort(cdist(Q, X), axis=1)[:, :10]

    def answers(bits):
        return fitted(bits, X).kneighbors(Q, 10)[1].tolist()

    recall = [np.mean([len({*a} & {*b}) / 10 for a, b in zip(answers(b), true.tolist(), strict=True)]) for b in BITS]
    assert recall == sorted(recall)
    assert recall[2] > 0.85
    assert recall[3] > 0.98


# ---- the candidates of a search
STRINGS = ["".join(np.random.default_rng(i).choice(list("acgt"), 20)) for i in range(150)]


def search_of(rerank, bits=4, n_candidates=30):
    embedding = sm.Nystroem(sm.kernels.Spectrum(3, normalize=True), 64, random_state=0)
    encoder = make_pipeline(embedding, VectorIndex(bits, random_state=0))
    return sm.SimilaritySearch(encoder, rerank, n_candidates=n_candidates)


@pytest.mark.parametrize("rerank", [None, "projected", "kernel", sm.distances.Levenshtein()])
def test_a_search_takes_its_candidates_from_the_index(rerank, tmp_path):
    search = search_of(rerank).fit(STRINGS[:100]).add(STRINGS[100:]).remove([3, 120])
    kept = [i for i in range(150) if i not in (3, 120)]
    V = search.encoder_[0].transform(STRINGS)
    index = VectorIndex(random_state=0).fit(V[:100]).add(V[100:]).remove([3, 120])
    candidates = index.kneighbors(V[:9], 30)[1]
    distances, ids = search.kneighbors(STRINGS[:9], 5)
    if rerank is None:
        np.testing.assert_array_equal(ids, candidates[:, :5])
    elif rerank == "projected":
        U = V / np.linalg.norm(V, axis=1, keepdims=True)
        for i in range(9):
            expected = np.sort(np.linalg.norm(U[i] - U[candidates[i]], axis=1))[:5]
            np.testing.assert_allclose(distances[i], expected, atol=1e-3)
    elif rerank != "kernel":
        for i in range(9):
            of_all = rerank([STRINGS[i]], [STRINGS[j] for j in candidates[i]])[0]
            expected = sorted(zip(of_all.tolist(), candidates[i].tolist(), strict=True))[:5]
            assert [*zip(distances[i], ids[i], strict=True)] == expected
    assert search.ids_.tolist() == kept
    near = search.radius_neighbors(STRINGS[:2], 0.5, return_distance=False)
    sm.save(search, tmp_path / "search.similia")
    search.save(tmp_path / "search")
    for again in (
        sm.load(tmp_path / "search.similia"),
        sm.SimilaritySearch.load(tmp_path / "search"),
        sm.SimilaritySearch.load(tmp_path / "search", mmap=True),
    ):
        assert isinstance(again.index_, VectorIndex)
        np.testing.assert_array_equal(again.kneighbors(STRINGS[:9], 5), (distances, ids))
        for one, other in zip(again.radius_neighbors(STRINGS[:2], 0.5, return_distance=False), near, strict=True):
            np.testing.assert_array_equal(one, other)
        assert again.add(STRINGS[:1]).kneighbors(STRINGS[:1], 2)[1][0, 0] in (0, 150)


def test_a_folder_takes_more_objects(tmp_path):
    folder = SearchFolder.create(tmp_path / "search", search_of(sm.distances.Levenshtein()).fit(STRINGS[:100]))
    assert folder.add(STRINGS[:100]).tolist() == list(range(100))
    folder.add(STRINGS[100:])
    folder.remove([7])
    expected = search_of(sm.distances.Levenshtein()).fit(STRINGS[:100]).add(STRINGS[100:]).remove([7])
    for one, other in zip(folder.load().kneighbors(STRINGS[:9], 4), expected.kneighbors(STRINGS[:9], 4), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_search_of_vectors_needs_no_pipeline():
    X = vectors(300)
    search = sm.SimilaritySearch(
        VectorIndex(1, normalize=True, random_state=0), sm.kernels.Cosine("projection"), n_candidates=60
    ).fit(X)
    assert search.recall(X[:40], 5).recall > 0.95
    curve = search.recall_curve(X[:40], 5, n_candidates=(5, 60, 300))
    assert curve[300].recall == 1
    assert curve[5].recall < curve[60].recall


def test_a_frozen_pipeline_is_used_as_it_is(tmp_path):
    X = vectors(300)
    frozen = make_pipeline(PCA(8), VectorIndex(random_state=0)).fit(X)
    before, center = frozen.steps[-1][1].ids, frozen.steps[-1][1].center_.copy()
    search = sm.SimilaritySearch(FrozenEstimator(frozen)).fit(X[:50] + 1).add(X[50:] + 1)
    np.testing.assert_array_equal(frozen.steps[-1][1].ids, before)
    np.testing.assert_array_equal(frozen.steps[-1][1].center_, center)
    expected = frozen.steps[-1][1].unfilled().add(frozen[:-1].transform(X + 1)).kneighbors(frozen[:-1].transform(X), 5)
    search.save(tmp_path / "search")
    for one in (search, sm.SimilaritySearch.load(tmp_path / "search")):
        np.testing.assert_array_equal(one.kneighbors(X, 5), expected)


def test_auto_takes_vectors_where_bits_find_less():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 12))
    with pytest.warns(LowRecall):  # ten candidates are few
        search = sm.SimilaritySearch("auto", sm.kernels.RBF(0.05), n_candidates=10).fit(X)
    at_10 = {one["candidates"]: one for one in search.trials_ if one["n_candidates"] == 10}
    bits, by_vectors = "bits: Nystroem -> StandardScaler -> SignRandomProjection", "vectors: Nystroem -> VectorIndex"
    assert [*at_10] == [bits, by_vectors]
    assert at_10[by_vectors]["recall"] > at_10[bits]["recall"] + 0.1
    assert isinstance(search.index_, VectorIndex)


def test_readers_see_the_index_before_or_after_a_change():
    X = vectors(400, 16)
    index, wrong = fitted(4, X[:200]), []
    before = index.kneighbors(X[:3], 5)[1].tolist()
    after = fitted(4, X[:200]).add(X[200:]).kneighbors(X[:3], 5)[1].tolist()

    def read():
        answers = [index.kneighbors(X[:3], 5)[1].tolist() for _ in range(50)]
        wrong.extend(answer for answer in answers if answer not in (before, after))

    threads = [threading.Thread(target=read) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(10):
        index.add(X[200:], ids=range(200, 400))
        index.remove(range(200, 400))
    for thread in threads:
        thread.join()
    assert not wrong


# ---- bad input
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: VectorIndex(3).fit(np.eye(3)), "bits must be 1, 2, 4 or 8, got 3"),
        (lambda: VectorIndex().fit(["ab"]), "numbers"),
        (lambda: VectorIndex().reconstruct([0]), "not fitted yet"),
        (lambda: VectorIndex().fit(np.full((2, 2), np.nan)), r"X\[0\] holds NaN"),
        (lambda: VectorIndex().fit(np.eye(3)).kneighbors(np.eye(4), 1), "4 features"),
        (lambda: VectorIndex().fit(np.eye(3)).kneighbors(np.eye(3), 4), "more than the 3 vectors"),
        (lambda: VectorIndex().fit(np.eye(3)).add(np.eye(3), ids=[0, 7, 8]), "id 0 is in the index already"),
        (lambda: VectorIndex().fit(np.eye(3)).remove([3]), "id 3 is not in the index, so it cannot be removed"),
        (lambda: VectorIndex().fit(np.eye(3), ids=[1]), "1 entries for 3|3"),
        (lambda: VectorIndex().fit(np.eye(3)).remove([0, 1, 2]).kneighbors(np.eye(3), 1), "the index is empty"),
        (lambda: VectorIndex(4).fit(np.eye(3)).set_params(bits=1).kneighbors(np.eye(3), 1), "bits must be 4, as"),
        (lambda: VectorIndex(1).fit(np.eye(3)).set_params(bits=8).add(np.eye(3)), "bits must be 1, as in fit, got 8"),
        (lambda: pickle.dumps(VectorIndex(4).fit(np.eye(3)).set_params(bits=8)), "bits must be 4, as in fit, got 8"),
        (lambda: VectorIndex().fit(np.eye(3)).radius_neighbors(np.eye(3), -1), "radius must be a number >= 0"),
        (lambda: VectorIndex().fit(np.eye(3)).add(1e20 * np.eye(3)), r"X\[0\] is 1e15 times as far"),
        (lambda: VectorIndex().fit(np.eye(3)).kneighbors(np.eye(3)[:, :3] * [[1], [1e300], [1]], 1), r"X\[1\] is 1e15"),
        (
            lambda: sm.SimilaritySearch(VectorIndex(), index=sm.HammingIndex(8)).fit(np.eye(3)),
            "the encoder ends with an index of its own; leave index out",
        ),
        (lambda: sm.SimilaritySearch(VectorIndex(), "projected").fit(np.eye(3)), "rerank='projected' compares"),
        (
            lambda: sm.search.exports.to_pgvector(sm.SimilaritySearch(VectorIndex()).fit(np.eye(3))),
            "a search by vectors has no bits to export",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


@pytest.mark.parametrize("change", ["codes", "nan", "ids", "signs", "bits"])
def test_a_damaged_state_is_refused(change, tmp_path):
    index = fitted(4, vectors(9, 5))
    state = index.__getstate__()
    if change == "codes":
        state["codes_"] = state["codes_"][:, 1:]
    elif change == "nan":
        state["codes_"] = state["codes_"].copy()
        state["codes_"][3, -4:] = 255
    elif change == "ids":
        state["ids_"] = state["ids_"] * 0
    elif change == "signs":
        state["signs_"] = state["signs_"][:, :-8]
    else:
        state["bits"] = 8
    with pytest.raises(ValueError, match=r"codes|ids|bits"):
        VectorIndex().__setstate__(state)
    if change in ("signs", "bits"):
        index.__dict__[{"signs": "signs_", "bits": "bits"}[change]] = state[{"signs": "signs_", "bits": "bits"}[change]]
        with pytest.raises(ValueError, match=r"bits must be \d, as in fit"):
            sm.save(index, tmp_path / "index.similia")
