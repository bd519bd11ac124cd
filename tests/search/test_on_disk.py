"""A search in a folder: the same answers as in memory, and nothing half-added whatever happens."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.core.validation import BadFile
from similia.distances import DTW, FromFunction, Levenshtein
from similia.kernels import Spectrum, WeisfeilerLehman
from similia.objects import as_series
from similia.search import FeatureIndex, VectorIndex, on_disk
from similia.search.on_disk import SearchFolder, is_search
from similia.storage.disk import take_lock


def words(n=60, seed=0):
    return ["".join(letters) for letters in np.random.default_rng(seed).choice(list("abcd"), (n, 10))]


def string_search(rerank, **more):
    nystroem = sm.Nystroem(Spectrum(k=2), n_components=16, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(128, random_state=1))
    return sm.SimilaritySearch(encoder, rerank=rerank, n_candidates=20, **more)


def series_search():
    d2ke = sm.D2KE(DTW(), n_components=32, random_state=0)
    encoder = make_pipeline(d2ke, sm.SignRandomProjection(64, random_state=1))
    rng = np.random.default_rng(0)
    X = as_series([rng.standard_normal((rng.integers(3, 9), 2)) for _ in range(30)])
    return sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=9), X


def graph_search():
    paths = [([[*range(n - 1), *range(1, n)], [*range(1, n), *range(n - 1)]], n) for n in range(2, 40)]
    nystroem = sm.Nystroem(WeisfeilerLehman(n_iter=2), n_components=8, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=1))
    return sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=9), paths


def assert_same_answers(one, other, Q, k=5):
    for found, expected in zip(one.kneighbors(Q, k), other.kneighbors(Q, k), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("rerank", [None, "projected", "kernel", Levenshtein()], ids=str)
def test_strings_come_back_the_same(rerank, mmap, tmp_path):
    X = words()
    search = string_search(rerank).fit(X[:50]).add(X[50:], ids=np.arange(70, 80)).remove([4, 72])
    search.save(tmp_path / "folder")
    loaded = sm.SimilaritySearch.load(tmp_path / "folder", mmap)
    assert_same_answers(loaded, search, X[::5])
    np.testing.assert_array_equal(loaded.ids_, search.ids_)
    loaded.add(["abcdabcdab"])
    assert loaded.ids_[-1] == 80


def test_a_generator_of_the_index_is_not_written(tmp_path):
    index = sm.HammingIndex(128, kind="ivf", random_state=np.random.default_rng(0))
    string_search(None, index=index).fit(words()).save(tmp_path / "folder")
    assert sm.SimilaritySearch.load(tmp_path / "folder").index_.random_state is None


@pytest.mark.parametrize("made", [series_search, graph_search])
def test_series_and_graphs_come_back_the_same(made, tmp_path):
    search, X = made()
    search.fit(X).save(tmp_path / "folder")
    assert_same_answers(sm.SimilaritySearch.load(tmp_path / "folder"), search, X[:4])


@pytest.mark.parametrize("rerank", [None, "projected", Levenshtein()], ids=str)
def test_adding_on_disk_is_adding_in_memory(rerank, tmp_path):
    X = words()
    search = string_search(rerank).fit(X[:30])
    search.save(tmp_path / "folder")
    opened = SearchFolder.open(tmp_path / "folder")
    np.testing.assert_array_equal(opened.add(X[30:45]), np.arange(30, 45))
    opened.remove([7, 31])
    opened.add(X[45:], names=[f"word {i}" for i in range(45, 60)])
    search.add(X[30:45]).remove([7, 31]).add(X[45:])
    assert len(opened) == len(search) == 58
    assert_same_answers(SearchFolder.open(tmp_path / "folder").load(), search, X[::7])
    assert opened.load_named()[1] == {i: f"word {i}" for i in range(45, 60)}


def test_an_addition_that_was_not_committed_does_not_count(tmp_path, monkeypatch):
    X = words()
    search = string_search(Levenshtein()).fit(X[:30])
    search.save(tmp_path / "folder")
    opened = SearchFolder.open(tmp_path / "folder")
    with monkeypatch.context() as patch:
        patch.setattr(type(opened.store), "append", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            opened.add(["abcabcabca"] * 3, names=["a", "b", "c"])
    left = len(list((tmp_path / "folder" / "objects").iterdir()))
    opened = SearchFolder.open(tmp_path / "folder")
    assert (len(opened), opened.load_named()[1], left) == (30, {}, 2)
    assert_same_answers(opened.load(), search, X[:9])
    opened.remove([3])  # moves the number of the last commit on: what was left must not be taken for committed
    opened.add(X[30:32])
    search.remove([3]).add(X[30:32])
    assert opened.load_named()[1] == {}
    assert_same_answers(SearchFolder.open(tmp_path / "folder").load(), search, X[:9])


def test_objects_that_do_not_fit_are_refused(tmp_path):
    """A batch that cannot be laid beside the others would keep the folder from being loaded."""
    nystroem = sm.Nystroem(WeisfeilerLehman(n_iter=1), n_components=4, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=1))
    path, labels = np.array([[0, 1, 1, 2], [1, 0, 2, 1]]), np.array([1, 2, 1])
    labelled = [{"edge_index": path, "n_nodes": 3, "node_labels": np.roll(labels, i)} for i in range(8)]
    sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=4).fit(labelled).save(tmp_path / "folder")
    opened = SearchFolder.open(tmp_path / "folder")
    with pytest.raises(ValueError, match=r"batches\[.\] has no node_labels, but batches\[.\] has"):
        opened.add([{"edge_index": path, "n_nodes": 3}])
    opened.add(labelled[:2])
    assert len(opened.load()) == 10


def test_a_killed_create_is_gone_on_with(tmp_path, monkeypatch):
    search = string_search(None).fit(words())
    folder = tmp_path / "folder"
    with monkeypatch.context() as patch:
        patch.setattr(on_disk.Store, "begin", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            SearchFolder.create(folder, search)
    (folder / ".search.similia.abc").write_bytes(b"half")
    assert not is_search(folder)
    with pytest.raises(FileNotFoundError, match="no index at"):
        SearchFolder.open(folder)
    assert len(SearchFolder.create(folder, search)) == 0


def test_other_folders_are_refused(tmp_path):
    search = string_search(None).fit(words())
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="exists and is not an empty folder"):
        search.save(tmp_path)
    search.save(tmp_path / "folder")
    loaded = sm.SimilaritySearch.load(tmp_path / "folder").add(["abcd"])
    where = r"in place with similia\.search\.SearchFolder\.open\('(.*)'\)\.add\(X\), or with: similia index"
    with pytest.raises(ValueError, match=where) as error:
        loaded.save(tmp_path / "folder")
    assert len(SearchFolder.open(re.search(where, str(error.value))[1]).add(["abcd"])) == 1
    assert len(sm.load(tmp_path / "folder")) == len(search) + 1
    with pytest.raises(FileNotFoundError, match="no index at"):
        sm.SimilaritySearch.load(tmp_path)


def test_missing_objects_are_noticed(tmp_path):
    string_search(Levenshtein()).fit(words()).save(tmp_path / "folder")
    opened = SearchFolder.open(tmp_path / "folder")
    opened.add(words(5, seed=3))
    max((tmp_path / "folder" / "objects").iterdir()).unlink()
    with pytest.raises(ValueError, match="objects of the search are missing"):
        opened.load()
    with pytest.raises(ValueError, match="there are 1 names for 2 objects"):
        opened.add(["ab", "cd"], names=["x"])


def test_files_of_objects_that_are_all_missing_are_noticed(tmp_path):
    for rerank in ("projected", Levenshtein()):
        string_search(rerank).fit(words()).save(tmp_path / str(rerank))
        for path in (tmp_path / str(rerank) / "objects").iterdir():
            path.unlink()
        with pytest.raises(ValueError, match="objects of the search are missing"):
            sm.SimilaritySearch.load(tmp_path / str(rerank))


@pytest.mark.parametrize("rerank", ["projected", Levenshtein()], ids=str)
def test_what_rerank_no_longer_compares_is_not_saved(rerank, tmp_path):
    search = string_search(rerank).fit(words()).set_params(rerank=None)
    search.save(tmp_path / "folder")
    opened = SearchFolder.open(tmp_path / "folder")
    opened.add(words(5, seed=3))
    assert_same_answers(opened.load(), search.add(words(5, seed=3)), words(9))
    search = string_search(None).fit(words()).set_params(rerank=rerank)
    with pytest.raises(ValueError, match="that were not kept; fit again"):
        search.save(tmp_path / "other")
    assert not (tmp_path / "other").exists()
    search.remove(search.ids_).save(tmp_path / "empty")  # nothing was kept that new objects could be joined to
    SearchFolder.open(tmp_path / "empty").add(words(30))
    assert_same_answers(sm.SimilaritySearch.load(tmp_path / "empty"), search.add(words(30)), words(9))


def test_names_in_any_sequence(tmp_path):
    folder = SearchFolder.create(tmp_path / "a", string_search(Levenshtein()).fit(words()))
    folder.add(words(2), names=("a", "b"))
    folder.add(words(2), names=pd.Series(["c", "d"], index=[7, 9]))
    assert folder.load_named()[1] == dict(enumerate("abcd", start=0))


def test_a_save_that_fails_leaves_no_search(tmp_path, monkeypatch):
    def interrupted(*given, **more):
        raise KeyboardInterrupt

    search = string_search(Levenshtein()).fit(words())
    with monkeypatch.context() as patch:
        patch.setattr(on_disk.Store, "change", interrupted)
        with pytest.raises(KeyboardInterrupt):
            search.save(tmp_path / "folder")
    assert list((tmp_path / "folder").iterdir()) == []
    search.save(tmp_path / "folder")
    assert len(sm.SimilaritySearch.load(tmp_path / "folder")) == 60


def test_a_search_that_is_replaced_while_it_is_open_is_refused(tmp_path, monkeypatch):
    """The encoder of one search would be put together with the codes of the other."""
    folder = tmp_path / "folder"
    searches = [string_search(Levenshtein()).fit(words(n, seed=n)) for n in (60, 30)]
    searches[0].save(folder)
    opened = SearchFolder.open(folder)
    searches[1].save(folder, overwrite=True)
    for change in (opened.load, lambda: opened.add(["abcd"]), lambda: opened.remove([0])):
        with pytest.raises(ValueError, match="another search has replaced the one in"):
            change()

    def meanwhile(path):
        monkeypatch.undo()
        found = on_disk.load_of_index(path)
        searches[0].save(folder, overwrite=True)
        return found

    monkeypatch.setattr(on_disk, "load_of_index", meanwhile)
    with pytest.raises(ValueError, match="another search has replaced the one in"):
        SearchFolder.open(folder)
    assert len(sm.SimilaritySearch.load(folder)) == 60


def test_temporary_files_go_and_files_of_others_stay(tmp_path):
    search = string_search(Levenshtein()).fit(words())
    search.save(tmp_path / "a")
    objects = tmp_path / "a" / "objects"
    for name in (".000000000005.similia.1-ab.tmp", "notes.similia"):
        (objects / name).write_text("half")
    opened = SearchFolder.open(tmp_path / "a")
    opened.add(["abcd"])
    assert len(opened.load()) == 61
    assert sorted(path.name for path in objects.iterdir() if path.name[0] != "0") == ["notes.similia"]
    other = tmp_path / "b" / "objects"
    other.mkdir(parents=True)
    (other / "notes.txt").write_text("mine")
    with pytest.raises(ValueError, match="is not an empty folder"):
        search.save(tmp_path / "b")


@pytest.mark.parametrize("windows", [False, True])
def test_a_search_is_replaced_without_the_lock_on_windows(windows, tmp_path, monkeypatch):
    """Windows renames no folder that holds an open file."""
    search, free = string_search(None).fit(words()), []
    search.save(tmp_path / "a")
    rename = Path.rename

    def renamed(path, target):
        if path == tmp_path / "a":
            try:
                take_lock(path / "codes").close()
                free.append(True)
            except ValueError:
                free.append(False)
        return rename(path, target)

    monkeypatch.setattr(on_disk, "_WINDOWS", windows)
    monkeypatch.setattr(Path, "rename", renamed)
    search.save(tmp_path / "a", overwrite=True)
    assert free == [windows]


def test_a_search_in_one_file(tmp_path):
    search = string_search(Levenshtein()).fit(words()).remove([5])
    loaded = sm.load(sm.save(search, tmp_path / "search.similia"))
    assert_same_answers(loaded.add(["abcdabcdab"]), search.add(["abcdabcdab"]), words(6, seed=4))


def test_what_a_file_may_not_hold_is_refused(tmp_path):
    search = string_search(FromFunction(lambda x, y: float(x != y))).fit(words())
    with pytest.raises(ValueError, match="which a saved file may not contain"):
        search.save(tmp_path / "folder")
    vectors = np.random.default_rng(0).standard_normal((40, 8))
    encoder = make_pipeline(PCA(4), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="projected", n_candidates=9).fit(vectors)
    search.save(tmp_path / "vectors")
    assert_same_answers(sm.SimilaritySearch.load(tmp_path / "vectors"), search, vectors[:3])


def test_overwrite_replaces_a_search_and_nothing_else(tmp_path, monkeypatch):
    folder, other = tmp_path / "index", tmp_path / "notes"
    first, second = (string_search(Levenshtein()).fit(words(n)) for n in (26, 29))
    first.save(folder)
    with pytest.raises(ValueError, match=r"holds a search already.*overwrite=True"):
        second.save(folder)
    assert second.save(folder, overwrite=True) == folder
    assert len(sm.SimilaritySearch.load(folder)) == 29
    mapped = sm.SimilaritySearch.load(folder, mmap=True).remove([0])
    mapped.save(folder, overwrite=True)  # what is mapped from the old folder is written to the new one
    assert sm.SimilaritySearch.load(folder).objects_.tolist() == mapped.objects_.tolist()
    assert first.save(tmp_path / "new", overwrite=True) == tmp_path / "new"
    other.mkdir()
    (other / "text").write_text("mine")
    with pytest.raises(ValueError, match="is not an empty folder"):
        second.save(other, overwrite=True)

    def full(*given):
        raise OSError("the disk is full")

    monkeypatch.setattr(SearchFolder, "_write", full)
    with pytest.raises(OSError, match="full"):
        second.save(folder, overwrite=True)
    assert len(sm.SimilaritySearch.load(folder)) == 28
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index", "new", "notes"]


@pytest.mark.parametrize("mmap", [False, True])
def test_an_index_is_not_saved_onto_the_codes_of_a_search(mmap, tmp_path):
    X = words()
    string_search(Levenshtein()).fit(X).save(tmp_path / "mine")
    (tmp_path / "link").symlink_to(tmp_path / "mine" / "codes")
    search = sm.SimilaritySearch.load(tmp_path / "mine", mmap=mmap).add(["abcd"])
    other = sm.HammingIndex(search.index_.n_bits).fit(search.index_.reconstruct()[:3])
    for index in (search.index_, other):
        for folder in (tmp_path / "mine" / "codes", tmp_path / "link"):
            with pytest.raises(ValueError, match=r"holds the codes of the search in .*save the whole search"):
                index.save(folder)
    assert sm.SimilaritySearch.load(tmp_path / "mine").objects_.tolist() == list(X)
    assert search.index_.save(tmp_path / "codes") == tmp_path / "codes"


def every_search():
    nystroem = sm.Nystroem(Spectrum(k=2), n_components=8, random_state=0)
    features = FeatureIndex(sm.kernels.MinMax(Spectrum(2)))
    return {
        "codes": string_search(None),
        "kernel": string_search("kernel"),
        "projected": string_search("projected"),
        "features": sm.SimilaritySearch(features),
        "vectors": sm.SimilaritySearch(make_pipeline(nystroem, VectorIndex(random_state=0))),
    }


@pytest.mark.parametrize("search", every_search().values(), ids=every_search())
def test_a_search_without_objects_comes_back_empty(search, tmp_path):
    X = words(20)
    search.fit(X)
    search.remove(search.ids_)
    for name in "ab":  # a loaded search, too
        search.save(tmp_path / name)
        search = sm.SimilaritySearch.load(tmp_path / name)
        assert len(search) == 0
    SearchFolder.open(tmp_path / "b").add(X[:9])
    loaded = sm.SimilaritySearch.load(tmp_path / "b")
    np.testing.assert_array_equal(loaded.ids_, search.add(X[:9]).ids_)
    np.testing.assert_array_equal(loaded.ids_, np.arange(20, 29))
    assert_same_answers(loaded, search, X)


@pytest.mark.parametrize("search", every_search().values(), ids=every_search())
def test_an_id_that_was_removed_is_not_given_again(search, tmp_path):
    search.fit(words(20)).remove([19]).save(tmp_path / "a")
    folder = SearchFolder.open(tmp_path / "a")
    assert folder.add(words(1)).tolist() == [20]
    folder.remove([20])
    assert folder.load().add(words(1)).ids_[-1] == 21


@pytest.mark.parametrize("search", every_search().values(), ids=every_search())
def test_a_name_is_not_that_of_an_earlier_object_of_the_id(search, tmp_path):
    folder = SearchFolder.create(tmp_path / "a", search.fit(words()))
    folder.add(words(2), ["a", "b"], ids=[5, 6])
    folder.remove([5])
    folder.add(words(1, seed=1), ids=[5])
    assert folder.load_named()[1] == {6: "b"}


@pytest.mark.parametrize("search", every_search().values(), ids=every_search())
def test_a_killed_save_leaves_no_search_and_can_be_repeated(search, tmp_path, monkeypatch):
    search.fit(words(20)).remove([2, 19])
    copies, fsync = [], os.fsync

    def copied(descriptor):
        copies.append(tmp_path / f"{len(copies)}")
        shutil.copytree(tmp_path / "a", copies[-1])  # what a process that is killed here leaves
        fsync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", copied)
        search.save(tmp_path / "a")
    whole = [is_search(folder) for folder in copies]
    assert whole == sorted(whole)
    assert not whole[3]
    other = string_search(None).fit(words())
    other.save(shutil.copytree(copies[-2], tmp_path / "other"))  # what was left of objects goes
    assert sm.load(tmp_path / "other").objects_ is None
    for folder in copies:
        if not is_search(folder):
            with pytest.raises(FileNotFoundError, match=r"no (model|index) at"):
                sm.load(folder)
            search.save(folder)
        opened = SearchFolder.open(folder)
        assert_same_answers(opened.load(), search, words(9))
        assert opened.add(words(1)).tolist() == [20]


# ---- inverted lists
def of_features(n=40):
    X = ["".join(np.random.default_rng(i).choice(list("abcd"), 5 + i % 7)) for i in range(n)]
    features = FeatureIndex(sm.kernels.MinMax(sm.kernels.Spectrum(2)))
    return X, sm.SimilaritySearch(features, sm.distances.Levenshtein(), n_candidates=20).fit(X)


def same_answers(one, other, X):
    for name in ("ids_", "objects_"):
        assert list(getattr(one, name)) == list(getattr(other, name))
    np.testing.assert_array_equal(one.index_.ids, other.index_.ids)
    for left, right in zip(one.index_.kneighbors(X, 9), other.index_.kneighbors(X, 9), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("mmap", [False, True])
def test_loading_counts_no_features_again(mmap, tmp_path, monkeypatch):
    X, search = of_features()
    search.save(tmp_path / "a")
    monkeypatch.setattr(FeatureIndex, "_counted", None)
    loaded = sm.SimilaritySearch.load(tmp_path / "a", mmap=mmap)
    (segment,) = loaded.index_._segments
    assert not segment.rows.flags.writeable
    monkeypatch.undo()
    same_answers(loaded, search, X)


@pytest.mark.parametrize("mmap", [False, True])
def test_lists_of_objects_that_come_and_go(mmap, tmp_path):
    X, search = of_features()
    search.save(tmp_path / "a")
    folder = SearchFolder.open(tmp_path / "a")
    for start in range(0, 40, 20):  # then single objects, whose lists are not worth a segment
        folder.add([x[::-1] for x in X[start : start + 20]])
        search.add([x[::-1] for x in X[start : start + 20]])
    folder.add(X[:1])
    search.add(X[:1])
    for ids in ([3, 5, 50], [*range(60, 75), 80]):
        folder.remove(ids)
        search.remove(ids)
    folder.add(X[:2], ids=[3, 70])  # ids in use before
    search.add(X[:2], ids=[3, 70])
    assert len(list((tmp_path / "a" / "objects").glob("*.lists"))) == 5
    loaded = folder.load(mmap)
    same_answers(loaded, search, X)
    same_answers(loaded.add(X[5:9], [200, 201, 202, 203]), search.add(X[5:9], [200, 201, 202, 203]), X)
    for path in (tmp_path / "a" / "objects").glob("*.lists"):  # a folder of before
        path.unlink()
    folder.add(X[5:9], ids=[200, 201, 202, 203])
    same_answers(folder.load(mmap), search, X)


@pytest.mark.parametrize("file", ["search.similia", "objects/000000000000.similia"])
@pytest.mark.parametrize("damage", ["cut", "empty", "flipped"])
def test_a_damaged_file_asks_for_a_copy_of_the_index(file, damage, tmp_path):
    string_search(Levenshtein()).fit(words()).save(tmp_path / "folder")
    whole = (path := tmp_path / "folder" / file).read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 3] ^= 4
    path.write_bytes({"cut": whole[:-40], "empty": b"", "flipped": flipped}[damage])
    with pytest.raises(BadFile, match=r"; restore the index from a copy, or build it again$") as caught:
        sm.SimilaritySearch.load(tmp_path / "folder")
    assert str(caught.value).startswith(f"{path} is ")


def test_damaged_lists_are_refused(tmp_path):
    X, search = of_features()
    search.save(tmp_path / "a")
    (path,) = (tmp_path / "a" / "objects").glob("*.lists")
    whole = path.read_bytes()
    start = 8 + int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8:start])
    at = {name: start + place for name, (_, _, place, _) in header["arrays"].items()}
    other = json.dumps({**header, "version": 2}).encode().ljust(start - 8)
    damages = [
        b"", whole[:-1], whole[:100], bytes(len(whole)), b"\xff" * 8 + whole[8:], whole[:8] + other + whole[start:],
        *(whole[: at[name]] + b"\xff" * 8 + whole[at[name] + 8 :] for name in ("rows", "held", "starts", "limits")),
        *(whole[: at[name]] + bytes(16) + whole[at[name] + 16 :] for name in ("features", "ids")),
        *(whole.replace(*pair, 1) for pair in ((b'"u1"', b'"i8"'), (b'"i4"', b'"O8"'), (b'"rows": [', b'"rows": {'))),
    ]  # fmt: skip
    for damaged in damages:
        assert damaged != whole
        path.write_bytes(damaged)
        for mmap in (False, True):
            with pytest.raises(BadFile, match="does not hold the inverted lists"):
                sm.SimilaritySearch.load(tmp_path / "a", mmap=mmap)
    n = header["arrays"]["starts"][1]
    starts = np.frombuffer(whole[at["starts"] : at["starts"] + 8 * n], "<i8")
    place = at["rows"] + 4 * int(starts[:-1][np.diff(starts) > 1][0])  # of a list of two rows or more
    path.write_bytes(whole[:place] + whole[place + 4 : place + 8] + whole[place : place + 4] + whole[place + 8 :])
    with pytest.raises(BadFile, match="does not hold the inverted lists"):
        sm.SimilaritySearch.load(tmp_path / "a", mmap=True)
    changed = whole[: at["counts"]] + b"\x09" + whole[at["counts"] + 1 :]
    path.write_bytes(changed)  # fits, but is not what was written
    with pytest.raises(BadFile, match="inverted lists"):
        sm.SimilaritySearch.load(tmp_path / "a")
    path.write_bytes(whole)
    same_answers(sm.SimilaritySearch.load(tmp_path / "a"), search, X)
