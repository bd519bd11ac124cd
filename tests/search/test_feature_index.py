"""The inverted index of features against dictionaries of counts, alone and as the candidates of a search."""

import pickle
import threading
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import features as naive
from similia.kernels import Intersection, MinMax, Normalized, Spectrum, Sum
from similia.search import FeatureIndex, feature_index
from similia.search.automatic import LowRecall, name_of
from similia.search.on_disk import SearchFolder

KERNELS = {
    "minmax": MinMax(Spectrum(2)),
    "intersection": Intersection(Spectrum(2)),
    "cosine": Spectrum(2, normalize=True),
    "product": Spectrum(2),
}


def texts(n, seed=0, longest=14, letters="abc"):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list(letters), rng.integers(0, longest + 1))) for _ in range(n)]


def by_hand(queries, objects, ids, k, how):
    counts = [[naive.kmers(one, 2) for one in some] for some in (queries, objects)]
    return naive.nearest(*counts, ids, k, how)


def assert_same(answer, expected):
    distances, ids = answer
    assert ids.tolist() == [[i for _, i in row] for row in expected]
    assert distances.tolist() == [[d for d, _ in row] for row in expected]


# ---- exact
@pytest.mark.same_bits
@pytest.mark.parametrize("how", KERNELS)
@pytest.mark.parametrize(("block", "chunk"), [(2**13, 64), (32, 8)])
def test_neighbours_are_those_of_all_pairs(how, block, chunk, monkeypatch):
    X, queries, ids = texts(400), [*texts(12, 1), ""], np.random.default_rng(2).permutation(999)[:400]
    if block != feature_index._BLOCK:  # compiled loops hold constants: run the loops as Python
        for name in ("search_segment", "_search", "_add_lists", "_compare_rows", "_as_bits"):
            monkeypatch.setattr(feature_index, name, getattr(feature_index, name).py_func)
        monkeypatch.setattr(feature_index, "_BLOCK", block)
        monkeypatch.setattr(feature_index, "_CHUNK", chunk)
    index = FeatureIndex(KERNELS[how]).fit(X, ids=ids)
    for k in (1, 7, 400):
        assert_same(index.kneighbors(queries, k), by_hand(queries, X, ids.tolist(), k, how))


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_adding_and_removing_in_any_order(data):
    how = data.draw(st.sampled_from(sorted(KERNELS)))
    words = st.text("ab", max_size=6)
    held = {}
    index = FeatureIndex(KERNELS[how]).fit(first := data.draw(st.lists(words, min_size=1, max_size=8)))
    held.update(enumerate(first))
    for _ in range(data.draw(st.integers(0, 4))):
        if len(held) > 1 and data.draw(st.booleans()):
            gone = data.draw(st.lists(st.sampled_from(sorted(held)), min_size=1, max_size=len(held) - 1, unique=True))
            index.remove(gone)
            for i in gone:
                del held[i]
        else:
            more = data.draw(st.lists(words, min_size=1, max_size=8))
            before = set(index.ids.tolist())
            new = [i for i in index.add(more).ids.tolist() if i not in before]
            held.update(zip(new, more, strict=True))
    assert index.ids.tolist() == list(held)
    queries = data.draw(st.lists(words, min_size=1, max_size=3))
    k = data.draw(st.integers(1, len(held)))
    assert_same(index.kneighbors(queries, k), by_hand(queries, held.values(), held, k, how))


def test_distances_are_those_of_the_kernel_for_other_kernels():
    strings = [x for x in texts(90, 3) if len(x) > 2]
    n = len(strings)
    kernels = [Normalized(Spectrum(2)), Sum([Spectrum(1, normalize=True), Spectrum(2)]), MinMax(Spectrum((1, 3)))]
    for kernel in kernels:
        distances, ids = FeatureIndex(kernel).fit(strings).kneighbors(strings[:9], n)
        K = kernel(strings)
        own = np.diag(K)
        true = np.sqrt(np.maximum(own[:9, None] + own - 2 * K[:9], 0))
        np.testing.assert_allclose(distances, np.take_along_axis(true, ids, axis=1), atol=1e-7)
        np.testing.assert_allclose(np.sort(true, axis=1), distances, atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [
        Sum([Spectrum(3, normalize=True), Spectrum(1)], weights=[2.5, 1]),
        Normalized(Sum([Normalized(Spectrum(3)), Sum([Spectrum(2, normalize=True)])])),
    ],
    ids=["sum", "normalised"],
)
def test_objects_without_features_in_a_normalised_part(kernel):
    strings = [*texts(60, 8, longest=4), "ad", "", ""]  # most are too short for 3-mers
    index = FeatureIndex(kernel).fit(strings[:30]).add(strings[30:]).remove([2, 40])
    held = np.delete(np.arange(len(strings)), [2, 40])
    true = np.sqrt(kernel.diag(strings)[:, None] + kernel.diag(strings) - 2 * kernel(strings, [*strings]))
    for one in (index, pickle.loads(pickle.dumps(index))):
        distances, ids = one.kneighbors(strings, len(held))
        np.testing.assert_allclose(distances, np.take_along_axis(true, ids, axis=1), atol=1e-7)
        np.testing.assert_allclose(distances, np.sort(true[:, held], axis=1), atol=1e-7)
        np.testing.assert_allclose(one.kneighbors(strings, 3)[0], distances[:, :3], atol=1e-12)


def test_fingerprints_by_tanimoto_distance():
    rng = np.random.default_rng(4)
    bits = (rng.random((300, 64)) < 0.2).astype(np.uint8)
    distances, ids = FeatureIndex(MinMax()).fit(sp.csr_array(bits)).kneighbors(bits[:20], 9)
    index = sm.HammingIndex(64, metric="jaccard").fit(np.packbits(bits, axis=1))
    theirs, same = index.kneighbors(np.packbits(bits[:20], axis=1), 9)
    np.testing.assert_array_equal(ids, same)
    np.testing.assert_allclose(distances, np.sqrt(2 * theirs), atol=1e-12)


@pytest.mark.parametrize("scale", [1, 300, 0.37, 1e100])
def test_magnitudes_of_any_size(scale):
    rows = scale * np.random.default_rng(5).integers(0, 4, (120, 30))
    dictionaries = [{j: float(v) for j, v in enumerate(row) if v} for row in rows]
    distances, ids = FeatureIndex(MinMax()).fit(rows).kneighbors(rows[:9], 8)
    true = naive.nearest(dictionaries[:9], dictionaries, range(120), 8, "minmax")
    np.testing.assert_allclose(distances, [[d for d, _ in row] for row in true], atol=1e-7)
    if scale in (1, 300):
        assert ids.tolist() == [[i for _, i in row] for row in true]


@pytest.mark.parametrize("scale", [1e-170, 1e-120, 1e150])
def test_cosines_of_any_size(scale):
    rows = np.random.default_rng(6).integers(1, 4, (40, 30)).astype(np.float64)
    rows[:, 20:] *= np.random.default_rng(7).random((40, 10)) < 0.5
    rows = np.tile(rows, (1, 4000)) if scale > 1 else rows  # the product of two sums is above the largest number
    index, scaled = FeatureIndex(Intersection(normalize=True)), rows / 3 * scale
    true, expected = index.fit(rows).kneighbors(rows[:9], 8)
    distances, ids = index.fit(scaled).kneighbors(scaled[:9], 8)
    np.testing.assert_allclose(distances, true, atol=1e-6)
    assert ids[:, 0].tolist() == expected[:, 0].tolist() == list(range(9))


def test_everything_within_a_radius():
    X, queries = texts(300), texts(6, 1)
    index = FeatureIndex(KERNELS["minmax"]).fit(X)
    all_of_them = by_hand(queries, X, range(300), 300, "minmax")
    for radius in (0.0, 1.0, 1.5):
        distances, ids = index.radius_neighbors(queries, radius)
        for row, near, found in zip(all_of_them, distances, ids, strict=True):
            assert [(d, i) for d, i in row if d <= radius] == list(zip(near.tolist(), found.tolist(), strict=True))


@pytest.mark.same_bits
def test_blocks_threads_and_copies_change_nothing(tmp_path):
    X, queries = texts(500), texts(30, 1)
    index = FeatureIndex(KERNELS["minmax"]).fit(X[:400]).add(X[400:])
    true = index.kneighbors(queries, 9)
    with sm.config(max_memory=1000):
        answers = [index.kneighbors(queries, 9)]
    answers.append(pickle.loads(pickle.dumps(index)).kneighbors(queries, 9))
    sm.save(index, tmp_path / "index.similia")
    answers.append(sm.load(tmp_path / "index.similia").kneighbors(queries, 9))
    answers.append([np.concatenate(part) for part in zip(*(index.kneighbors([q], 9) for q in queries), strict=True)])
    for answer in answers:
        for mine, other in zip(true, answer, strict=True):
            np.testing.assert_array_equal(mine, other)


def test_threads_search_while_one_adds():
    X, queries = texts(200), texts(5, 1)
    index = FeatureIndex(KERNELS["minmax"]).fit(X)
    wrong = []

    def search():
        for _ in range(30):
            distances, ids = index.kneighbors(queries, 5)
            if (np.diff(distances) < 0).any() or ids.min() < 0:
                wrong.append(ids)

    threads = [threading.Thread(target=search) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(20):
        index.add(texts(3, i + 10))
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(index) == 260


# ---- as the candidates of a search
def test_search_compares_the_candidates_again(tmp_path):
    X, queries = texts(300), texts(9, 1)
    index = FeatureIndex(KERNELS["minmax"])
    search = sm.SimilaritySearch(index, sm.distances.Levenshtein(), n_candidates=40).fit(X[:250], ids=range(500, 750))
    search.add(X[250:]).remove([510, 511])
    distances, ids = search.kneighbors(queries, 6)
    held = {500 + i: x for i, x in enumerate(X) if i not in (10, 11)}
    candidates = by_hand(queries, held.values(), held, 40, "minmax")
    D = sm.distances.Levenshtein()(queries, X)
    for i, row in enumerate(candidates):
        best = sorted((D[i, c - 500], c) for _, c in row)[:6]
        assert list(zip(distances[i].tolist(), ids[i].tolist(), strict=True)) == best
    search.save(tmp_path / "search")
    folder = SearchFolder.open(tmp_path / "search")
    for loaded in (sm.SimilaritySearch.load(tmp_path / "search", mmap=True), folder.load()):
        for mine, other in zip(search.kneighbors(queries, 6), loaded.kneighbors(queries, 6), strict=True):
            np.testing.assert_array_equal(mine, other)
    folder.add([queries[0]])
    folder.remove([500])
    grown = folder.load()
    assert len(grown) == 298
    assert grown.kneighbors(queries[:1], 1)[0][0, 0] == 0
    assert search.objects([500]).tolist() == X[:1]


def test_without_rerank_the_order_is_that_of_the_features():
    X, queries = texts(200), texts(4, 1)
    search = sm.SimilaritySearch(FeatureIndex(KERNELS["cosine"])).fit(X)
    assert_same(search.kneighbors(queries, 5), by_hand(queries, X, range(200), 5, "cosine"))
    assert search.recall(queries, 5).recall == 1


# ---- bad input
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: FeatureIndex(sm.kernels.RBF(1.0)).fit(np.eye(3)), "has no explicit features"),
        (lambda: FeatureIndex(MinMax()).fit(-np.eye(3)), "features >= 0"),
        (lambda: FeatureIndex(MinMax()).fit(np.eye(3)).kneighbors(np.eye(4), 1), "4 features, but FeatureIndex is"),
        (lambda: FeatureIndex(Spectrum(2)).fit(["ab"]).kneighbors(["ab"], 2), "more than the 1 objects"),
        (lambda: FeatureIndex(Spectrum(2)).fit(["ab"]).add(["ab"], ids=[0]), "id 0 is in the index already"),
        (lambda: FeatureIndex(Spectrum(2)).fit(["ab"]).remove([3]), "id 3 is not in the index"),
        (lambda: FeatureIndex(Spectrum(2)).fit(["ab"], ids=[1, 2]), "2 entries for 1"),
        (
            lambda: sm.SimilaritySearch(FeatureIndex(Spectrum(2)), index=sm.HammingIndex(8)).fit(["ab"]),
            "leave index out",
        ),
    ],
)
def test_bad_input(make, words):
    with pytest.raises((TypeError, ValueError), match=words):
        make()


def test_copies_keep_the_columns_of_a_table_that_commands_store():
    index = FeatureIndex(Spectrum(2)).fit(["abc", "abd"])
    index.table_columns_ = {"text": "read"}
    assert pickle.loads(pickle.dumps(index)).table_columns_ == {"text": "read"}


def test_copies_refuse_columns_in_another_order(tmp_path):
    X = pytest.importorskip("pandas").DataFrame(np.eye(3) + 1, columns=[*"abc"])
    index, search = FeatureIndex(MinMax()).fit(X), sm.SimilaritySearch(FeatureIndex(MinMax()), "kernel").fit(X)
    sm.save(index, tmp_path / "index.similia")
    folder = SearchFolder.open(search.save(tmp_path / "search"))
    for one in (index, pickle.loads(pickle.dumps(index)), sm.load(tmp_path / "index.similia"), search, folder.load()):
        assert one.n_features_in_ == 3
        assert one.kneighbors(X, 1, return_distance=False).ravel().tolist() == [0, 1, 2]
        for call in (partial(one.kneighbors, n_neighbors=1), one.add):
            with pytest.raises(ValueError, match=r"^X has the columns to which .* was fitted, but in another"):
                call(X[[*"cba"]])
    with pytest.raises(ValueError, match="but in another order"):
        folder.add(X[[*"cba"]])
    assert folder.add(X).tolist() == [3, 4, 5]
    assert not hasattr(index.fit(np.eye(2)), "feature_names_in_")
    assert not hasattr(FeatureIndex(Spectrum(2)).fit(["abc"]), "n_features_in_")


def test_a_damaged_state_is_refused():
    state = FeatureIndex(Spectrum(2)).fit(["abc", "abd"]).__getstate__()
    for name, value in (("limits_", np.array([0, 9])), ("counts_", -state["counts_"]), ("ids_", np.array([0, 0]))):
        with pytest.raises(ValueError, match=r"features that do not fit|unique"):
            FeatureIndex(Spectrum(2)).__setstate__({**state, name: value})


# ---- encoder="auto"
def roots(n, length=30, letters="abcdefghij", seed=0):
    """Return strings in families of ten, whose members differ in a few letters."""
    rng = np.random.default_rng(seed)
    families = rng.choice(list(letters), (n // 10, length))
    found = []
    for i in range(n):
        one = families[i % len(families)].copy()
        one[rng.integers(length, size=3)] = rng.choice(list(letters), 3)
        found.append("".join(one))
    return found


def test_auto_keeps_the_way_that_was_measured_best(tmp_path):
    X = roots(600)
    search = sm.SimilaritySearch("auto", sm.distances.Levenshtein(), n_candidates=20).fit(X)
    trials = {}
    for one in search.trials_:
        trials.setdefault(one["candidates"], []).append((one["recall"], one["operations"]))
    assert len(trials) == 5
    best = max(curve[1][0] for curve in trials.values())  # the recall at 20 candidates
    kept = name_of(search.encoder_)
    assert trials[kept][1][0] >= best - 0.05
    assert all(a <= b for curve in trials.values() for (a, _), (b, _) in pairwise(curve))
    again = sm.SimilaritySearch("auto", sm.distances.Levenshtein(), n_candidates=20).fit(X)
    assert again.trials_ == search.trials_
    assert repr(again.encoder_) == repr(search.encoder_)
    search.save(tmp_path / "search")
    loaded = sm.SimilaritySearch.load(tmp_path / "search")
    assert loaded.trials_ == search.trials_
    np.testing.assert_array_equal(loaded.kneighbors(X[:5], 3)[1], search.kneighbors(X[:5], 3)[1])


def test_auto_warns_if_the_candidates_miss_many_neighbours():
    rng = np.random.default_rng(0)
    X = ["".join(word) for word in rng.choice(list("acgt"), (600, 30))]  # no two are near
    search = sm.SimilaritySearch("auto", sm.distances.Levenshtein(), n_candidates=20)
    with pytest.warns(LowRecall, match=r"^n_candidates=20 candidates find (\d+) % of the 10 nearest objects") as told:
        search.fit(X)
    kept = {
        one["n_candidates"]: one["recall"] for one in search.trials_ if one["candidates"] == name_of(search.encoder_)
    }
    enough = min([c for c in kept if kept[c] >= 0.9], default=400)
    assert str(told[0].message).startswith(
        f"n_candidates=20 candidates find {100 * kept[20]:.0f} % of the 10 nearest objects, as measured on a sample, "
        f"{enough} find {100 * kept[enough]:.0f} %; raise n_candidates"
    )


def test_auto_takes_the_features_of_a_kernel_and_bits_for_others():
    rng = np.random.default_rng(0)
    bits = (rng.random((300, 64)) < 0.2).astype(float)
    search = sm.SimilaritySearch("auto", MinMax(), n_candidates=30).fit(bits)
    assert isinstance(search.encoder_, FeatureIndex)
    assert search.recall(bits[:20], 5).recall == 1
    with pytest.warns(LowRecall):
        other = sm.SimilaritySearch("auto", sm.kernels.RBF(1.0), n_candidates=30).fit(bits)
    assert not isinstance(other.encoder_, FeatureIndex)
    assert {one["candidates"].split(":")[0] for one in other.trials_} == {"bits", "vectors"}


@pytest.mark.parametrize("rerank", [None, "kernel", "projected"])
def test_auto_needs_a_similarity(rerank):
    with pytest.raises(ValueError, match="needs the kernel or distance"):
        sm.SimilaritySearch("auto", rerank).fit(["ab", "cd"])


def test_the_curve_rises_to_all_neighbours():
    X = roots(400)
    search = sm.SimilaritySearch(FeatureIndex(Spectrum(3)), sm.distances.Levenshtein()).fit(X)
    curve = search.recall_curve(X[:20], 5, n_candidates=(2, 5, 50, 400))
    assert list(curve) == [5, 50, 400]
    recalls = [one.recall for one in curve.values()]
    assert recalls == sorted(recalls)
    assert recalls[-1] == 1
    assert search.recall(X[:20], 5).recall == search.recall_curve(X[:20], 5, n_candidates=[100])[100].recall
    assert search.n_candidates == 100
