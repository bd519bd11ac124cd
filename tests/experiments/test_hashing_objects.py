"""The experiment on retrieval of objects: its search against `SimilaritySearch`, measures by hand, and end to end."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import experiments
import similia as sm
from experiments import hashing_objects
from experiments.hashing_objects import fitted_coder, measured, not_possible, rank_of, search
from similia.distances import Levenshtein
from similia.embeddings import Nystroem
from similia.kernels import Spectrum
from similia.objects import as_strings
from similia.search.answers import shares_found
from similia.similarity import Metric


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(hashing_objects, "BITS", (8, 16, 256))
    monkeypatch.setattr(hashing_objects, "N_CANDIDATES", 20)
    monkeypatch.setattr(hashing_objects, "N_COMPONENTS", 24)


def _strings(n, seed=0):
    rng = np.random.default_rng(seed)
    return as_strings(["".join(rng.choice(list("ACGT"), rng.integers(8, 20))) for _ in range(n)])


def _by_kernel(seed):
    return Nystroem(Spectrum(k=2), 24, random_state=seed)


def test_answers_are_those_of_similarity_search():
    objects, queries = _strings(80), _strings(7, seed=1)
    found = list(search(_by_kernel(3), objects, queries, Metric(Levenshtein(), False), seed=3))
    assert len(found) == 3 * 3 * 2
    vectors = _by_kernel(3).fit(objects)
    V = vectors.transform(objects)
    compared = 0
    for answer in found:
        encoder, note = fitted_coder(answer.code, answer.n_bits, V, rank_of(V), 3)
        assert answer.note == note
        if encoder is None:
            assert answer.rows is None
            continue
        whole = FrozenEstimator(make_pipeline(vectors, *(step for _, step in encoder.steps)))
        rerank = Levenshtein() if answer.n_candidates else None
        engine = sm.SimilaritySearch(whole, rerank=rerank, n_candidates=20).fit(objects)
        np.testing.assert_array_equal(answer.rows, engine.kneighbors(queries, 10)[1])
        assert answer.seconds > 0
        compared += 1
    assert compared == 2 * 3 + 2 * 2 + 2 * 2  # ITQ makes no 256 bits of 16 directions


def test_shares_count_ties_as_right():
    D = np.array([[1.0, 2, 2, 3], [4, 3, 2, 1]])
    np.testing.assert_array_equal(shares_found(D, np.array([[0, 2], [0, 3]])), [1, 0.5])


def test_rank_is_that_of_the_centred_vectors():
    V = np.random.default_rng(0).standard_normal((30, 3)) @ np.random.default_rng(1).standard_normal((3, 10)) + 7
    assert rank_of(V) == 3
    assert rank_of(V.astype(np.float32)) == 3


def test_codes_beyond_the_rank_are_not_made():
    V = np.random.default_rng(0).standard_normal((60, 12))
    for code in hashing_objects.CODES:
        encoder, note = fitted_coder(code, 16, V, rank_of(V), 0)
        assert (encoder is not None) == (code == "signs")
        assert note == ("" if code == "signs" else "the vectors have rank 12")
        encoder, note = fitted_coder(code, 8, V, rank_of(V), 0)
        assert encoder.transform(V).shape == (60, 1)
        assert note == ""


def test_a_sample_of_lower_rank_is_named():
    V = np.zeros((2000, 24))
    V[:30] = np.random.default_rng(0).standard_normal((30, 24))  # 64 sampled rows hold a row or two of these
    encoder, note = fitted_coder("GN PCA, ITQ", 16, V, rank_of(V), 0)
    assert encoder is None
    assert "usable directions" in note


def test_numbers_and_notes_are_told_apart():
    records = [
        {"set": "a", "bits": 8, "recall": 50.0, "note": ""},
        {"set": "a", "bits": 16, "recall": "", "note": "why"},
        {"set": "a", "bits": 32, "recall": "", "note": "why"},
    ]
    assert measured(records, "recall", set="a") == [50.0]
    (table,) = not_possible(records, ["set"])
    assert table.rows == [["a", "16, 32", "why"]]
    assert not_possible(records[:1], ["set"]) == []


def _task(name, metric, make):
    return hashing_objects.Task(name, "splice", metric, {"Nystroem": make}, most=150)


def test_end_to_end_by_distance_and_by_kernel(monkeypatch, tmp_path):
    kernel = Spectrum(k=2, normalize=True)
    tasks = (
        _task("edits", Metric(Levenshtein(), False), _by_kernel),
        _task("2-mers", Metric(kernel, True), _by_kernel),
    )
    monkeypatch.setattr(hashing_objects, "TASKS", tasks)
    section = experiments.run("hashing-objects", seeds=2)
    assert len(section.records) == 2 * 2 * 18
    for record in section.records:
        possible = record["code"] == "signs" or record["bits"] == 8  # 16 counts whose sum is always 59: rank 15
        assert (record["recall"] != "") == (record["speed"] != "") == (record["note"] == "") == possible
    # codes of the kernel find its neighbours, more of them among candidates, and better with more bits
    recall = {
        (bits, n): np.mean(measured(section.records, "recall", set="2-mers", code="signs", bits=bits, candidates=n))
        for bits in (8, 256)
        for n in (0, 20)
    }
    assert recall[256, 20] > 80
    assert recall[8, 0] < recall[256, 0] < recall[256, 20]
    assert recall[8, 0] < recall[8, 20]
    section.write(tmp_path)
    text = (tmp_path / "reproduction" / "hashing-objects.md").read_text()
    assert "not possible" in text
    assert "<svg" in (tmp_path / "reproduction" / "hashing-objects.svg").read_text()
    tables, _ = hashing_objects.present(section.records)
    assert [table.title.split(":")[0] for table in tables] == ["edits", "2-mers", "Not possible"]


def test_queries_are_a_tenth_and_are_not_searched(monkeypatch):
    seen = []

    def spy(embedding, objects, queries, metric, seed):
        seen.append((objects.tolist(), queries.tolist()))
        return iter(())

    monkeypatch.setattr(hashing_objects, "search", spy)
    task = _task("edits", Metric(Levenshtein(), False), _by_kernel)
    hashing_objects.measure(task, seeds=2)
    strings = sorted(hashing_objects.load(task).tolist())
    for objects, queries in seen:
        assert len(queries) == 15
        assert sorted(objects + queries) == strings
    assert seen[0] != seen[1]


@pytest.mark.parametrize("name", [task.name for task in hashing_objects.TASKS])
def test_every_task_loads(data_folder, name):
    (task,) = (task for task in hashing_objects.TASKS if task.name == name)
    X = hashing_objects.load(task)
    sizes = {"splice": 3186, "NCI1": 4110, "REDDIT": 2000, "characters": 1429, "Auslan": 3000, "style": 2184}
    assert len(X) == sizes.get(name, 10_000)
    if name == "proteins":
        assert set(map(len, X.tolist())) == {60}
        assert X[1][:-4] == X[0][4:]
