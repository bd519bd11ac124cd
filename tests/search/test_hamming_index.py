"""`HammingIndex`: against brute force and a dict, ties, errors, files, and how much the approximate kinds find."""

from __future__ import annotations

import io
import pickle
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jaccard
from sklearn.base import clone

import similia as sm
from similia.core import config as _threads
from similia.search import HammingIndex
from similia.search import scan as _scan
from similia.search.exports import write_faiss
from similia.storage.store import Store

KINDS = ("exact", "ivf", "multihash")


def slow_distances(A, B):
    """Count differing bits one pair at a time."""
    return np.array([[int(np.unpackbits(a ^ b).sum()) for b in B] for a in A], dtype=np.int64).reshape(len(A), len(B))


def slow_neighbors(stored, query, k=None, radius=None):
    """Sort a dict of id to code by (distance, id); keep the first k, or all in the radius."""
    ids = list(stored)
    pairs = sorted(zip(slow_distances([query], [stored[i] for i in ids])[0].tolist(), ids, strict=True))
    return pairs[:k] if radius is None else [pair for pair in pairs if pair[0] <= radius]


def random_codes(n, n_bits, seed=0, distinct=256):
    return np.random.default_rng(seed).integers(0, distinct, (n, n_bits // 8)).astype(np.uint8)


def clustered_codes(n, n_bits, n_clusters, seed=0, flips=0.1):
    random = np.random.default_rng(seed)
    bits = random.integers(0, 2, (n_clusters, n_bits))[random.integers(n_clusters, size=n)]
    return np.packbits(bits ^ (random.random(bits.shape) < flips), axis=1)


def longer():
    return HammingIndex(64).fit(random_codes(3, 64)).set_params(n_bits=128)


def pairs(found, row):
    return list(zip(found[0][row].tolist(), found[1][row].tolist(), strict=True))


@pytest.mark.parametrize("n_bits", [8, 16, 56, 64, 72, 256, 264, 320, 1000])
@pytest.mark.parametrize("n_queries", [1, 2, 9])
def test_neighbours_are_those_of_brute_force(n_bits, n_queries):
    codes = random_codes(700, n_bits, distinct=3)  # few values: many ties
    ids = np.random.default_rng(1).permutation(10_000)[: len(codes)]
    queries = random_codes(n_queries, n_bits, seed=2, distinct=3)
    index = HammingIndex(n_bits).fit(codes, ids)
    stored = dict(zip(ids.tolist(), codes, strict=True))
    for k in (1, 10, 699, 700):
        found = index.kneighbors(queries, k)
        assert found[0].dtype == np.int32
        assert found[1].dtype == np.int64
        assert found[0].shape == found[1].shape == (n_queries, k)
        for row in range(min(n_queries, 2)):
            assert pairs(found, row) == slow_neighbors(stored, queries[row], k)
    for radius in (0, n_bits // 16, n_bits):
        found = index.radius_neighbors(queries, radius)
        assert found[0][0].dtype == np.int32
        assert found[1][0].dtype == np.int64
        assert pairs(found, -1) == slow_neighbors(stored, queries[-1], radius=radius)


@pytest.mark.same_bits
def test_equal_distances_are_cut_by_the_smaller_id_in_any_order_of_rows():
    codes = np.zeros((5000, 8), np.uint8)
    codes[::2, 0] = 1
    ids = np.random.default_rng(0).permutation(5000)
    for n_queries in (1, 3):
        distances, found = HammingIndex(64).fit(codes, ids).kneighbors(np.zeros((n_queries, 8), np.uint8), 7)
        assert (distances == 0).all()
        assert (found == np.sort(ids[1::2])[:7]).all()


@pytest.mark.parametrize("removed", [0, 150])
@pytest.mark.parametrize("kind", ["ivf", "multihash"])
def test_approximate_kinds_that_meet_all_codes_cut_ties_as_the_exact_one_does(kind, removed):
    codes = random_codes(400, 16, distinct=2)  # four different codes, a hundred of each
    ids = np.random.default_rng(1).permutation(10_000)[:400]
    index = HammingIndex(16, kind=kind, n_lists=4, n_probes=4, n_hashes=8, random_state=0).fit(codes, ids)
    index.remove(ids[:removed])
    stored = dict(zip(ids[removed:].tolist(), codes[removed:], strict=True))
    for k in (1, 7, 90, 250):
        found = index.kneighbors(codes[:5], k)
        for row in range(5):
            assert pairs(found, row) == slow_neighbors(stored, codes[row], k)


@pytest.mark.same_bits
@pytest.mark.parametrize("n_queries", [1, 40])
def test_results_do_not_depend_on_threads_order_or_memory(n_queries):
    codes, queries = random_codes(70_000, 64, distinct=4), random_codes(n_queries, 64, seed=1, distinct=4)
    ids = np.random.default_rng(2).permutation(len(codes))
    expected = HammingIndex(64).fit(codes, ids).kneighbors(queries, 25)
    order = np.random.default_rng(3).permutation(len(codes))
    shuffled = HammingIndex(64)
    for start in range(0, len(codes), 9_999):
        shuffled.add(codes[order[start : start + 9_999]], ids[order[start : start + 9_999]])
    for cores in (1, 3):
        with patch.object(_threads, "cpu_count", return_value=cores), sm.config(max_memory=10_000):
            for mine, theirs in zip(shuffled.kneighbors(queries, 25), expected, strict=True):
                np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("k", [20, 300])
def test_few_codes_in_an_array_before_many_sorted_by_distance_are_found(k):
    many, query = random_codes(40_000, 64), np.zeros((1, 8), np.uint8)
    counts = np.unpackbits(many, axis=1).sum(axis=1)
    few = np.repeat(np.arange(3, dtype=np.uint8)[:, None], 8, axis=1)
    few.flags.writeable = False  # so that it stays an array of its own
    index = HammingIndex(64).fit(few).add(many[np.argsort(counts, kind="stable")])
    expected = np.concatenate([[0, 8, 8], np.sort(counts)])
    order = np.argsort(expected, kind="stable")[:k]
    distances, ids = index.kneighbors(query, k)
    assert (ids[0] == order).all()
    assert (distances[0] == expected[order]).all()


@pytest.mark.parametrize("n_bits", [16, 64])
def test_a_radius_that_holds_more_rows_than_the_buffer(n_bits):
    codes = random_codes(30_000, n_bits, distinct=2)
    index = HammingIndex(n_bits).fit(codes)
    for n_queries in (1, 9):
        distances, ids = index.radius_neighbors(codes[:n_queries], n_bits)
        true = slow_distances(codes[:n_queries], codes[:50])
        for row in range(n_queries):
            assert len(ids[row]) == len(codes)
            assert (np.lexsort((ids[row], distances[row])) == np.arange(len(codes))).all()
            assert (distances[row][np.argsort(ids[row])][:50] == true[row]).all()


def test_ids_of_removed_codes_are_not_given_again(tmp_path):
    index = HammingIndex(8).fit(random_codes(10, 8)).remove(np.arange(3, 10))
    index.save(tmp_path)
    for one in (index, HammingIndex.load(tmp_path), HammingIndex.load(tmp_path, mmap=True)):
        assert one.add(random_codes(1, 8)).ids.tolist() == [0, 1, 2, 10]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(["add", "count on", "remove", "update", "kneighbors", "radius", "reload", "map", "fit"]),
        st.lists(st.integers(0, 30), max_size=8, unique=True),
        st.integers(0, 2**32 - 1),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(OPERATIONS)
def test_any_sequence_of_operations_agrees_with_a_dict(tmp_path_factory, operations):
    folder = tmp_path_factory.mktemp("index") / "folder"
    index, stored, next_id = HammingIndex(16).fit(np.empty((0, 2), np.uint8)), {}, 0
    for name, ids, seed in operations:
        codes = random_codes(len(ids), 16, seed, distinct=3)
        here = [i for i in ids if i in stored]
        if name == "fit":
            index.fit(codes, np.array(ids, dtype=np.int64))
            stored, next_id = dict(zip(ids, codes, strict=True)), max(ids, default=-1) + 1
        elif name == "add":
            if here:
                with pytest.raises(ValueError, match=f"id {here[0]} is in the index already"):
                    index.add(codes, np.array(ids))
            else:
                index.add(codes, np.array(ids, dtype=np.int64))
                stored |= zip(ids, codes, strict=True)
                next_id = max([next_id, *(i + 1 for i in ids)])
        elif name == "count on":
            index.add(codes)
            stored |= zip(range(next_id, next_id + len(codes)), codes, strict=True)
            next_id += len(codes)
        elif name in ("remove", "update"):
            arguments = (ids,) if name == "remove" else (codes, ids)
            if len(here) < len(ids):
                with pytest.raises(ValueError, match="is not in the index, so it cannot be"):
                    getattr(index, name)(*arguments)
            elif name == "remove":
                index.remove(ids)
                stored = {i: code for i, code in stored.items() if i not in ids}
            else:
                index.update(codes, ids)
                stored |= zip(ids, codes, strict=True)
        elif name in ("reload", "map"):
            index.save(folder)
            index = HammingIndex.load(folder, mmap=name == "map")
        elif stored:
            query = random_codes(1, 16, seed, distinct=3)
            k, radius = 1 + seed % len(stored), seed % 5
            if name == "kneighbors":
                assert pairs(index.kneighbors(query, k), 0) == slow_neighbors(stored, query[0], k)
            else:
                assert pairs(index.radius_neighbors(query, radius), 0) == slow_neighbors(
                    stored, query[0], radius=radius
                )
        assert len(index) == len(stored)
        assert sorted(index.ids.tolist()) == sorted(stored)
        some = sorted(stored)[::2]
        np.testing.assert_array_equal(index.reconstruct(some), np.array([stored[i] for i in some]).reshape(-1, 2))


@pytest.mark.parametrize("kind", KINDS)
def test_ids_start_at_0_and_continue_after_the_largest(kind):
    codes = random_codes(9, 64)
    index = HammingIndex(64, kind, random_state=0).add(codes[:4]).add(codes[4:5], [7]).add(codes[5:])
    assert index.ids.tolist() == [0, 1, 2, 3, 7, 8, 9, 10, 11]
    assert index.kneighbors(codes[:1], 1)[1].tolist() == [[0]]


def test_adding_one_by_one_with_ids_in_disorder():
    ids = np.random.default_rng(0).permutation(5000)
    codes = random_codes(5000, 64)
    index = HammingIndex(64)
    for i, code in zip(ids, codes, strict=True):
        index.add(code[None], [i])
    with pytest.raises(ValueError, match=f"id {ids[17]} is in the index already"):
        index.add(codes[:1], ids[17:18])
    np.testing.assert_array_equal(index.reconstruct(ids[::7]), codes[::7])
    index.remove(ids[::2]).add(codes[::2], ids[::2])
    np.testing.assert_array_equal(index.reconstruct(ids), codes)


@pytest.mark.parametrize(("kind", "recall"), [("exact", 1.0), ("ivf", 0.95), ("multihash", 0.95)])
def test_recall_on_clustered_codes(kind, recall):
    codes = clustered_codes(6000, 256, 200)
    queries = clustered_codes(6100, 256, 200)[6000:]
    index = HammingIndex(256, kind, random_state=0).fit(codes[:5000])
    index.add(codes[5000:])
    index.remove(np.arange(0, 6000, 3))
    exact = HammingIndex(256).fit(codes).remove(np.arange(0, 6000, 3))
    (distances, ids), (true_distances, true) = index.kneighbors(queries, 10), exact.kneighbors(queries, 10)
    found = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(ids, true, strict=True)])
    assert found >= recall
    assert (distances >= true_distances).all()
    for row, query in enumerate(queries[:5]):
        assert (slow_distances([query], exact.reconstruct(ids[row]))[0] == distances[row]).all()
        assert (np.lexsort((ids[row], distances[row])) == np.arange(10)).all()
    for mine, theirs in zip(
        index.radius_neighbors(queries, 40)[1], exact.radius_neighbors(queries, 40)[1], strict=True
    ):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("kind", KINDS[1:])
def test_approximate_kinds_repeat_and_fill_up(kind):
    codes, queries = clustered_codes(3000, 128, 50), random_codes(20, 128, seed=5)
    index = HammingIndex(128, kind, n_probes=1, random_state=3).fit(codes)
    first = index.kneighbors(queries, 10)
    with patch.object(_threads, "cpu_count", return_value=1):
        again = HammingIndex(128, kind, n_probes=1, random_state=3).fit(codes).kneighbors(queries, 10)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])
    distances, ids = index.kneighbors(queries, 3000)  # more than one list, one walk or one bucket holds
    assert (np.sort(ids, axis=1) == np.arange(3000)).all()
    assert (np.diff(distances, axis=1) >= 0).all()
    index.remove(np.arange(2999))  # more than half: built anew
    assert index.kneighbors(queries, 1)[1].tolist() == [[2999]] * 20


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_save_and_load(kind, mmap, tmp_path):
    codes = clustered_codes(2000, 72, 30)
    index = HammingIndex(72, kind, n_hashes=4, random_state=0).fit(codes, np.arange(2000) * 3)
    index.remove([0, 30])
    expected = index.kneighbors(codes[:50], 10)
    index.save(tmp_path / "folder")
    loaded = HammingIndex.load(tmp_path / "folder", mmap=mmap)
    assert loaded.get_params() == index.get_params()
    assert len(loaded) == 1998
    for mine, theirs in zip(loaded.kneighbors(codes[:50], 10), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    loaded.update(codes[:1], [33]).add(codes[:3]).remove([60])
    loaded.save(tmp_path / "folder")
    again = HammingIndex.load(tmp_path / "folder", mmap=not mmap)
    assert again.ids[-3:].tolist() == [5998, 5999, 6000]
    np.testing.assert_array_equal(again.ids, loaded.ids)
    np.testing.assert_array_equal(again.reconstruct(), loaded.reconstruct())
    for mine, theirs in zip(again.kneighbors(codes[:50], 10), loaded.kneighbors(codes[:50], 10), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_saving_to_where_it_came_from_writes_only_what_changed(tmp_path):
    HammingIndex(64).fit(random_codes(1000, 64)).save(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    index = HammingIndex.load(tmp_path, mmap=True)
    index.add(random_codes(5, 64, seed=1)).remove([3]).save(tmp_path)
    index.add(random_codes(5, 64, seed=2)).save(tmp_path)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("*.npy")}
    assert before.items() <= after.items()
    assert len(HammingIndex.load(tmp_path)) == 1009
    index.remove(np.arange(10, 900)).save(tmp_path)  # most are dead: compacted
    assert sum(len(np.load(path)) for path in tmp_path.glob("ids-*.npy")) == 119
    np.testing.assert_array_equal(HammingIndex.load(tmp_path).ids, index.ids)
    index.add(random_codes(2, 64, seed=3)).save(tmp_path)
    assert index.ids[-2:].tolist() == [1010, 1011]
    np.testing.assert_array_equal(HammingIndex.load(tmp_path).ids, index.ids)
    for part in index._rows.parts():  # what was added is mapped too, and no longer in memory
        assert isinstance(part.codes.base.base, np.memmap)


def test_an_index_whose_only_code_was_removed_is_saved_anew(tmp_path):
    codes = random_codes(3, 64)
    index = HammingIndex(64).fit(codes[:1])
    index.save(tmp_path)
    index.remove([0]).add(codes[1:]).save(tmp_path)
    loaded = HammingIndex.load(tmp_path)
    assert loaded.ids.tolist() == [1, 2]
    np.testing.assert_array_equal(loaded.reconstruct(), codes[1:])


def test_a_structure_does_not_outlive_the_row_numbers_it_is_made_of(tmp_path):
    codes = random_codes(50, 64)
    HammingIndex(64, "multihash").fit(codes).remove(np.arange(20)).save(tmp_path)
    Store.open(tmp_path).compact()
    assert HammingIndex.load(tmp_path).kneighbors(codes[20:], 1)[1].ravel().tolist() == list(range(20, 50))


def test_a_mapped_index_is_searched_where_it_lies(tmp_path):
    codes = random_codes(20_000, 128)
    HammingIndex(128).fit(codes).save(tmp_path)
    index = HammingIndex.load(tmp_path, mmap=True)
    seen = []
    real = _scan._scan_nearest

    def spy(words, *rest):
        seen.append(words)
        return real(words, *rest)

    with patch.object(_scan, "_scan_nearest", spy):
        found = index.kneighbors(codes[:2], 3)[1]
    assert found[:, 0].tolist() == [0, 1]
    for words in seen:
        owner = words
        while not isinstance(owner, np.memmap):
            assert not owner.flags.owndata
            owner = owner.base
        assert not words.flags.writeable


def test_a_read_only_array_is_searched_in_place_and_others_are_copied():
    codes = random_codes(100, 64)
    index = HammingIndex(64).fit(codes)
    codes[0] ^= 255
    assert index.kneighbors(codes[:1] ^ np.uint8(255), 1)[0][0, 0] == 0
    codes.flags.writeable = False
    assert np.shares_memory(HammingIndex(64).fit(codes)._rows.parts()[0].codes, codes)


def test_a_read_only_array_of_which_most_is_removed_is_saved_again(tmp_path):
    codes = random_codes(10, 64)
    codes.flags.writeable = False
    index = HammingIndex(64).fit(codes).remove(np.arange(6))
    for ids in ([6, 7, 8, 9], [7, 8, 9], [7, 8, 9, 10]):
        index.save(tmp_path)
        loaded = HammingIndex.load(tmp_path)
        assert loaded.ids.tolist() == ids
        np.testing.assert_array_equal(loaded.reconstruct(), index.reconstruct())
        index = index.remove([6]) if len(ids) == 4 and 6 in ids else index.add(codes[:1])


@pytest.mark.parametrize("mmap", [False, True])
def test_a_structure_is_that_of_the_kind(mmap, tmp_path):
    codes = random_codes(300, 64)
    index = HammingIndex(64, "ivf", random_state=0).fit(codes)
    for kind in ("multihash", "exact", "ivf", "multihash"):
        index.set_params(kind=kind).save(tmp_path)  # the structure in memory and on disk is that of before
        index = HammingIndex.load(tmp_path, mmap=mmap)
        expected = HammingIndex(64, kind, random_state=0).fit(codes).kneighbors(codes[:50] ^ np.uint8(1), 5)
        for mine, theirs in zip(index.kneighbors(codes[:50] ^ np.uint8(1), 5), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        index.save(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_that_are_numbers_of_numpy_are_saved(kind, tmp_path):
    numbers = {"n_lists": np.int32(2), "n_probes": np.int64(8), "n_hashes": np.uint8(4), "random_state": np.int64(3)}
    index = HammingIndex(np.int64(64), kind, **numbers).fit(random_codes(10, 64))
    found = index.kneighbors(random_codes(4, 64), 2)[1]
    index.save(tmp_path)
    loaded = HammingIndex.load(tmp_path)
    assert loaded.get_params() == index.get_params()
    assert loaded.kneighbors(random_codes(4, 64), 2)[1].tolist() == found.tolist()


def test_a_folder_that_others_changed_is_not_overwritten(tmp_path):
    HammingIndex(64).fit(random_codes(10, 64)).save(tmp_path)
    mine, theirs = HammingIndex.load(tmp_path), HammingIndex.load(tmp_path)
    theirs.add(random_codes(1, 64)).save(tmp_path)
    with pytest.raises(ValueError, match=r"was changed after this index was loaded from it; load it again"):
        mine.add(random_codes(1, 64)).save(tmp_path)
    theirs.remove([1, 2]).save(tmp_path)
    HammingIndex(8).fit(random_codes(3, 8)).save(tmp_path)  # another index replaces it
    assert HammingIndex.load(tmp_path).n_bits == 8
    assert HammingIndex.load(tmp_path).ids.tolist() == [0, 1, 2]


def test_a_folder_that_others_changed_is_not_overwritten_by_rows_with_other_numbers(tmp_path):
    codes = random_codes(10, 64)
    codes.flags.writeable = False
    fixed = HammingIndex(64).fit(codes).remove(np.arange(6))
    fixed.save(tmp_path)  # most are removed: the folder numbers the others anew
    loaded, theirs = HammingIndex.load(tmp_path).remove([6, 7, 8]), HammingIndex.load(tmp_path)
    theirs.add(codes[:1]).save(tmp_path)
    for mine in (fixed, loaded, loaded.add(codes[:1]).remove([9])):
        with pytest.raises(ValueError, match=r"was changed after this index was loaded from it; load it again"):
            mine.save(tmp_path)
    assert HammingIndex.load(tmp_path).ids.tolist() == [6, 7, 8, 9, 10]
    for change in (lambda: theirs.remove([6, 7, 8]), lambda: theirs.add(codes[:2]), lambda: theirs.remove([9, 11])):
        change().save(tmp_path)
        assert HammingIndex.load(tmp_path).ids.tolist() == theirs.ids.tolist()


@pytest.mark.parametrize("place", [io.BytesIO(), 3, None], ids=["BytesIO", "int", "None"])
def test_a_folder_must_be_named(place):
    index = HammingIndex(64).fit(random_codes(10, 64))
    said = f"expected the name of a folder \\(a str or a path\\), got {type(place).__name__}"
    for call in (index.save, HammingIndex.load, sm.SimilaritySearch.load):
        with pytest.raises(TypeError, match=said):
            call(place)
    with pytest.raises(TypeError, match="expected the name of a file"):
        write_faiss(index, place)


@pytest.mark.parametrize("kind", KINDS)
def test_pickle_and_clone(kind):
    index = HammingIndex(64, kind, random_state=0).fit(clustered_codes(500, 64, 5)).remove([499])
    copy = pickle.loads(pickle.dumps(index))
    assert copy.get_params() == index.get_params()
    np.testing.assert_array_equal(copy.ids, index.ids)
    assert copy.add(random_codes(1, 64)).ids[-1] == 500
    assert len(clone(index)) == 0


FITTED = HammingIndex(16).fit(random_codes(3, 16), [4, 5, 6])


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: HammingIndex(12).fit([[1]]), "n_bits must be a multiple of 8"),
        (lambda: HammingIndex(8, "flat").fit(random_codes(1, 8)), "kind must be one of 'exact', 'ivf', 'multihash'"),
        (lambda: HammingIndex(8, "multihash", n_hashes=9).fit(random_codes(1, 8)), "n_hashes=9 is more than n_bits=8"),
        (lambda: HammingIndex(8, n_probes=0).add(random_codes(1, 8)), "n_probes must be an integer >= 1"),
        (lambda: HammingIndex(8).fit([[1.0]]), "codes must be packed bits"),
        (lambda: HammingIndex(8).kneighbors(random_codes(1, 8)), "the index is empty; call fit or add first"),
        (lambda: HammingIndex(8).remove([1]), "the index is empty; call fit or add first"),
        (lambda: HammingIndex(8).ids, "the index is empty"),
        (lambda: FITTED.add(random_codes(1, 8)), "codes have 8 bits, expected 16"),
        (lambda: FITTED.kneighbors(random_codes(1, 8)), "codes have 8 bits, expected 16"),
        (lambda: FITTED.kneighbors(random_codes(1, 16), 4), "n_neighbors=4 is more than the 3 codes in the index"),
        (lambda: FITTED.kneighbors(random_codes(1, 16), 0), "n_neighbors must be an integer >= 1"),
        (lambda: FITTED.kneighbors(random_codes(1, 16)[0], 1), r"write one code as codes\[:1\]"),
        (lambda: FITTED.radius_neighbors(random_codes(1, 16), -1), "radius must be a number >= 0, got -1"),
        (lambda: FITTED.radius_neighbors(random_codes(1, 16), np.nan), "radius must be a number >= 0, got nan"),
        (lambda: FITTED.add(random_codes(2, 16), [7, 7]), r"ids\[0\] and ids\[1\] are both 7; ids must be unique"),
        (lambda: FITTED.add(random_codes(2, 16), [7, 5]), "id 5 is in the index already"),
        (lambda: FITTED.add(random_codes(1, 16), [4]), "id 4 is in the index already"),
        (lambda: FITTED.add(random_codes(2, 16), [7, -1]), r"ids\[1\] is -1, expected ids >= 0"),
        (lambda: FITTED.add(random_codes(2, 16), [7]), "ids has 1 entries for 2 codes"),
        (lambda: FITTED.add(random_codes(1, 16), [0.5]), "ids must be a 1-D array of integers"),
        (lambda: FITTED.add(random_codes(1, 16), np.array([2**63], np.uint64)), r"expected at most 2\*\*63 - 1"),
        (lambda: FITTED.remove([4, 9]), "id 9 is not in the index, so it cannot be removed"),
        (lambda: FITTED.remove(4), r"ids must be a list or a 1-D array of integers, got 4; for one id, write \[4\]"),
        (lambda: FITTED.remove([4, 4]), "are both 4; ids must be unique"),
        (lambda: FITTED.update(random_codes(1, 16), [9]), "id 9 is not in the index, so it cannot be updated"),
        (lambda: FITTED.reconstruct([9]), "id 9 is not in the index, so it cannot be looked up"),
        (lambda: longer().kneighbors(random_codes(1, 128), 1), "n_bits must be 64, the length of the codes in the"),
        (lambda: longer().radius_neighbors(random_codes(1, 128), 1), "got 128; fit again"),
        (lambda: longer().add(random_codes(1, 128)), "n_bits must be 64"),
        (lambda: longer().save("nowhere"), "n_bits must be 64"),
        (lambda: sm.save(longer(), io.BytesIO()), "n_bits must be 64"),
        (lambda: pickle.dumps(HammingIndex(8).fit(random_codes(1, 8)).set_params(kind="flat")), "kind must be one of"),
    ],
)
def test_bad_input_is_one_sentence_and_changes_nothing(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
    assert FITTED.ids.tolist() == [4, 5, 6]
    np.testing.assert_array_equal(FITTED.reconstruct(), random_codes(3, 16))


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"kind": "IVF"}, "kind must be one of 'exact', 'ivf', 'multihash', got 'IVF'"),
        ({"metric": "cosine"}, "metric must be 'hamming' or 'jaccard', got 'cosine'"),
        ({"metric": "jaccard", "kind": "ivf"}, "use kind='exact'"),
        ({"kind": "ivf", "n_probes": 0}, "n_probes must be an integer >= 1"),
        ({"kind": "multihash", "n_hashes": 0}, "n_hashes must be an integer >= 1"),
    ],
)
def test_parameters_that_were_changed_after_fit_are_checked(changed, sentence):
    codes = random_codes(3, 8)
    index = HammingIndex(8).fit(codes).set_params(**changed)
    for call in (partial(index.radius_neighbors, radius=8), partial(index.kneighbors, n_neighbors=2)):
        with pytest.raises(ValueError, match=sentence):
            call(codes)


def test_a_search_draws_nothing_from_the_random_state():
    random, codes = np.random.RandomState(0), random_codes(3, 8)
    index = HammingIndex(8, random_state=random).fit(codes)
    before = random.get_state()[2]
    index.kneighbors(codes, 1)
    assert random.get_state()[2] == before


def test_ids_cannot_be_counted_beyond_the_last():
    index = HammingIndex(8).fit(random_codes(1, 8), [2**63 - 1])
    assert index.kneighbors(random_codes(1, 8), 1)[1].tolist() == [[2**63 - 1]]
    with pytest.raises(ValueError, match=r"ids after 9223372036854775808 would exceed"):
        index.add(random_codes(1, 8))


@pytest.mark.parametrize(("kind", "smallest"), [("ivf", {"n_lists": 1}), ("multihash", {"n_hashes": 8})])
def test_parameters_at_their_limits(kind, smallest):
    codes = random_codes(20, 8)
    index = HammingIndex(8, kind, random_state=0, **smallest).fit(codes)
    distances, ids = index.kneighbors(codes, 1)
    assert (distances[ids[:, 0] == np.arange(20)] == 0).all()
    np.testing.assert_array_equal(index.kneighbors(codes, 1, return_distance=False), ids)


def test_a_radius_without_distances():
    distances, ids = FITTED.radius_neighbors(FITTED.reconstruct(), 16)
    alone = FITTED.radius_neighbors(FITTED.reconstruct(), 16, return_distance=False)
    assert [row.tolist() for row in alone] == [row.tolist() for row in ids]
    assert [len(row) for row in distances] == [3, 3, 3]


def test_rows_are_compacted_once_more_than_half_are_removed():
    codes = random_codes(8, 16)
    index = HammingIndex(16).fit(codes).remove([0, 1, 2, 3])
    assert (len(index), index._rows.n_rows, index._rows.n_dead) == (4, 8, 4)
    assert index.remove([4])._rows.n_rows == len(index) == 3
    np.testing.assert_array_equal(index.reconstruct([5, 6, 7]), codes[5:])


def test_no_queries_and_no_codes():
    distances, ids = FITTED.kneighbors(np.empty((0, 2), np.uint8), 2)
    assert distances.shape == ids.shape == (0, 2)
    assert FITTED.radius_neighbors(np.empty((0, 2), np.uint8), 2)[0].shape == (0,)
    empty = HammingIndex(16, "multihash").fit(np.empty((0, 2), np.uint8))
    assert len(empty) == 0
    with pytest.raises(ValueError, match="the index is empty"):
        empty.kneighbors(random_codes(1, 16), 1)
    assert empty.add(random_codes(3, 16)).kneighbors(random_codes(1, 16), 1)[1].tolist() == [[0]]


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_an_index_that_was_loaded_grows_as_its_original(kind, mmap, tmp_path):
    codes = random_codes(1500, 64)
    index = HammingIndex(64, kind, random_state=0).fit(codes[:500]).add(codes[500:1000])
    index.save(tmp_path)
    loaded = HammingIndex.load(tmp_path, mmap=mmap)
    queries = random_codes(100, 64)
    for new in (codes[:0], codes[1000:1200], codes[1200:]):
        for one in (index, loaded):
            one.add(new)
        for mine, theirs in zip(loaded.kneighbors(queries, 5), index.kneighbors(queries, 5), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    loaded.save(tmp_path)
    np.testing.assert_array_equal(
        HammingIndex.load(tmp_path, mmap=mmap).kneighbors(queries, 5), index.kneighbors(queries, 5)
    )


# ---- Jaccard distances
def by_jaccard(queries, codes):
    """Return the share of bits that only one code has among those that either has, by sets."""
    sets = [[set(np.flatnonzero(np.unpackbits(code)).tolist()) for code in some] for some in (queries, codes)]
    return np.array([[len(x ^ y) / len(x | y) if x | y else 0.0 for y in sets[1]] for x in sets[0]])


@pytest.mark.same_bits
@pytest.mark.parametrize(("n_bits", "density"), [(2048, 0.02), (2048, 0.3), (200, 0.1), (64, 0.5), (8, 0.3)])
def test_jaccard_neighbours_are_those_of_sets(tmp_path, n_bits, density):
    rng = np.random.default_rng(n_bits)
    bits = rng.random((700, n_bits)) < 2 * density * rng.random((700, 1))
    bits[3] = False
    codes, ids = np.packbits(bits, axis=1), rng.permutation(5000)[:700]
    queries = codes[:25] ^ np.packbits(rng.random((25, n_bits)) < density / 4, axis=1)
    queries[0] = 0
    index = HammingIndex(n_bits, metric="jaccard").fit(codes[:500], ids[:500]).add(codes[500:], ids[500:])
    index.remove(ids[100:150])
    kept = np.r_[:100, 150:700]
    D = by_jaccard(queries, codes[kept])
    order = np.array([np.lexsort((ids[kept], row)) for row in D])
    index.save(tmp_path / "index")
    for one in (index, HammingIndex.load(tmp_path / "index", mmap=True), HammingIndex.load(tmp_path / "index")):
        for some in (slice(None), slice(5, 6)):  # a single query takes another loop
            distances, found = one.kneighbors(queries[some], 11)
            np.testing.assert_array_equal(found, ids[kept][order[some, :11]])
            np.testing.assert_array_equal(distances, np.take_along_axis(D[some], order[some, :11], axis=1))
    for row, near, found in zip(D, *index.radius_neighbors(queries, 0.75), strict=True):
        inside = np.lexsort((ids[kept], row))[: np.count_nonzero(row <= 0.75)]
        np.testing.assert_array_equal(found, ids[kept][inside])
        np.testing.assert_array_equal(near, row[inside])


@pytest.mark.same_bits
@pytest.mark.parametrize(("n_bits", "density"), [(2048, 0.03), (1024, 0.06), (320, 0.15), (2048, 0.2), (2048, 0.5)])
def test_jaccard_neighbours_among_many_tiles(n_bits, density):
    rng = np.random.default_rng(n_bits)
    families = rng.random((40, n_bits)) < 2 * density * rng.random((40, 1))
    own = families[rng.integers(40, size=17_030)]  # a bound is sought before the search from 32 tiles of 512 rows on
    bits = own & (rng.random(own.shape) < 0.7) | (rng.random(own.shape) < density / 5)  # neighbours that share folds
    bits[5000:5600] = bits[4400:5000]
    rows, queries = bits[30:].astype(np.float32), bits[:30].astype(np.float32)
    queries[:5] = rows[4300:4305]
    shared = queries @ rows.T
    union = queries.sum(axis=1)[:, None] + rows.sum(axis=1) - shared
    D = (union - shared).astype(np.float64) / union
    removed = np.r_[4302:4304, np.arange(0, len(rows), 7)]
    D[:, removed] = np.inf
    index = HammingIndex(n_bits, metric="jaccard").fit(np.packbits(rows > 0, axis=1)).remove(np.unique(removed))
    packed = np.packbits(queries > 0, axis=1)
    for k, some in ((9, slice(None)), (9, slice(7, 8)), (700, slice(4))):
        order = np.argsort(D[some], axis=1, kind="stable")[:, :k]
        distances, found = index.kneighbors(packed[some], k)
        np.testing.assert_array_equal(found, order)
        np.testing.assert_array_equal(distances, np.take_along_axis(D[some], order, axis=1))


@pytest.mark.same_bits
def test_the_first_bound_of_a_jaccard_search_keeps_all_neighbours():
    rng = np.random.default_rng(0)
    rows = np.zeros((32 * 512, 1024), bool)  # all of the same size, so that the first tile gives the bound
    np.put_along_axis(rows, rng.random(rows.shape).argpartition(60, axis=1)[:, :60], True, axis=1)
    query = rows[0].copy()
    for i in range(20):  # ever more of its bits are others
        rows[i] = query
        rows[i, np.flatnonzero(query)[: 2 * i]] = False
        rows[i, np.flatnonzero(~query)[: 2 * i]] = True
    index = HammingIndex(1024, metric="jaccard").fit(np.packbits(rows, axis=1)).remove(np.arange(0, 20, 2))
    kept = np.arange(1, 20, 2)
    for k in (1, 4, 9):
        distances, found = index.kneighbors(np.packbits(query)[None], k)
        np.testing.assert_array_equal(found[0], kept[:k])
        np.testing.assert_array_equal(distances[0], 4 * kept[:k] / (60 + 2 * kept[:k]))


def test_a_jaccard_radius_is_met_by_the_distance_that_scipy_computes():
    x, y = np.zeros((2, 64), bool)
    x[:10] = y[:7] = True
    index = HammingIndex(64, metric="jaccard").fit(np.packbits(y)[None])
    assert index.radius_neighbors(np.packbits(x)[None], 0.3)[1][0].tolist() == [0]  # 1 - 7 / 10 is above 0.3 in floats
    assert index.kneighbors(np.packbits(x)[None], 1)[0].item() == jaccard(x, y) == 0.3


def test_jaccard_is_exact_only():
    with pytest.raises(ValueError, match="use kind='exact'"):
        HammingIndex(64, "ivf", metric="jaccard").fit(np.zeros((3, 8), np.uint8))
    with pytest.raises(ValueError, match="'hamming' or 'jaccard'"):
        HammingIndex(64, metric="tanimoto").fit(np.zeros((3, 8), np.uint8))
