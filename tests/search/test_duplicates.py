"""Near-duplicates: against all pairs, plans, laws of the keys, bad input, the command."""

import csv
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import similia as sm
from similia.distances import DTW, Levenshtein
from similia.kernels import Cosine, MinMax, Normalized, Spectrum, WeisfeilerLehman
from similia.search import _join, near_duplicates
from similia.search._join import Join, Limit, Signs, plan
from similia.search.duplicates import has_hashes
from similia.similarity import metric_from

SHINGLES = MinMax(Spectrum(4))


def brute(X, similarity, threshold, relative=False):
    """Return all pairs that pass, by the matrix of all values."""
    values = np.asarray(similarity(X), np.float64)
    shares = values
    if relative:
        lengths = np.array([len(x) for x in X])
        shares = values / np.maximum(1, np.maximum(lengths[:, None], lengths))
    good = shares <= threshold if isinstance(similarity, sm.similarity.Distance) else values >= threshold
    left, right = np.nonzero(np.triu(good, 1))
    return {(int(i), int(j)): values[i, j] for i, j in zip(left, right, strict=True)}


def edited(rng, text, n, letters):
    text = list(text)
    for what in rng.integers(3, size=n):
        at, letter = int(rng.integers(len(text) + 1)), letters[rng.integers(len(letters))]
        if what == 0 or not text:
            text.insert(at, letter)
        elif what == 1:
            del text[min(at, len(text) - 1)]
        else:
            text[min(at, len(text) - 1)] = letter
    return "".join(text)


def families(n, length=60, letters="ACGT", most=8, seed=0):
    rng = np.random.default_rng(seed)
    ancestors = ["".join(row) for row in rng.choice(list(letters), (n // 4, length))]
    return [edited(rng, ancestors[i % len(ancestors)], rng.integers(most), letters) for i in range(n)]


@pytest.mark.parametrize(
    ("similarity", "threshold", "options"),
    [
        (SHINGLES, 0.7, {}),
        (SHINGLES, 0.35, {}),
        (Levenshtein(), 6, {}),
        (Levenshtein(), 0.1, {"relative": True}),
    ],
)
@pytest.mark.parametrize("letters", ["ACGT", "abcdefgπλ"])
def test_hashes_find_the_planned_share_of_all_pairs_and_no_other(similarity, threshold, options, letters):
    X = [*families(1200, letters=letters), "A", "AC", "", "ACG"]
    true = brute(X, similarity, threshold, **options)
    found = near_duplicates(X, similarity, threshold, method="hashes", random_state=0, **options)
    pairs = [tuple(pair) for pair in found.pairs.tolist()]
    assert pairs == sorted(set(pairs))
    assert set(pairs) <= set(true)
    assert len(true) > 250
    share = len(pairs) / len(true)
    assert share >= 0.96
    assert abs(found.recall - share) <= 0.03
    np.testing.assert_array_equal(found.values, [true[pair] for pair in pairs])


@pytest.mark.parametrize("at_once", [1, 2**20])
def test_candidates_are_the_pairs_with_an_equal_key_and_enough_equal_hashes_each_once(at_once, monkeypatch):
    from similia.search import duplicates

    monkeypatch.setattr(duplicates, "_BUFFER", at_once)
    random, n, bands, least = np.random.default_rng(0), 60, 7, 3
    keys = random.integers(0, 4, (n, bands)).astype(np.uint64)
    hashes = random.integers(0, 3, (n, 9)).astype(np.uint8)
    rows = np.flatnonzero(random.random(n) < 0.9)
    parts = [*duplicates._with_equal_keys(keys, hashes, least, rows)]
    found = [pair for left, right in parts for pair in zip(left.tolist(), right.tolist(), strict=True)]
    alike = lambda i, j: (keys[i] == keys[j]).any() and (hashes[i] == hashes[j]).sum() >= least  # noqa: E731
    assert sorted(found) == [(i, j) for i in rows for j in rows if i < j and alike(i, j)]
    assert len(found) > 10 * n
    assert (len(parts) > bands) == (at_once == 1)


@pytest.mark.parametrize("method", ["exact", "auto"])
def test_all_pairs_are_compared_if_asked_or_few(method):
    X = families(300)
    for similarity, threshold in ((SHINGLES, 0.5), (Levenshtein(), 5)):
        found = near_duplicates(X, similarity, threshold, method=method)
        assert {tuple(pair) for pair in found.pairs.tolist()} == set(brute(X, similarity, threshold))
        assert found.recall == 1.0


def test_a_pair_at_the_threshold_passes():
    X = ["abcd", "abce", "abxy"]
    assert near_duplicates(X, Levenshtein(), 1).pairs.tolist() == [[0, 1]]
    assert near_duplicates(X, Levenshtein(), 0.25, relative=True).pairs.tolist() == [[0, 1]]
    X = ["a" * 100, "a" * 71 + "b" * 29, "", ""]
    assert near_duplicates(X, Levenshtein(), 0.29, relative=True).pairs.tolist() == [[0, 1], [2, 3]]
    limit = Limit(metric_from(Levenshtein(), "similarity"), 0.29, True)
    assert [limit.edits(71), limit.edits(0)] == [29, 0]
    assert near_duplicates([[1, 1, 0], [1, 1, 1]], MinMax(), 2 / 3).pairs.tolist() == [[0, 1]]


def test_strings_shorter_than_a_k_mer_are_compared_too():
    X = [*families(800, length=40, most=3), *["A", "AT", "AC", "T", ""] * 2]
    found = near_duplicates(X, Levenshtein(), 1, method="hashes", random_state=0)
    pairs = {tuple(pair) for pair in found.pairs.tolist()}
    short = {pair for pair in brute(X, Levenshtein(), 1) if pair[0] >= 800}
    assert len(short) > 20
    assert short <= pairs


def test_strings_of_one_letter_are_all_compared():
    X = ["a", "b", "", "a"] * 3
    found = near_duplicates(X, Levenshtein(), 0, method="hashes", random_state=0)
    assert {tuple(pair) for pair in found.pairs.tolist()} == set(brute(X, Levenshtein(), 0))
    assert found.recall == 1.0


def test_some_short_strings_do_not_stop_the_hashes(monkeypatch):
    compared = []
    real = Join.all_pairs
    monkeypatch.setattr(Join, "all_pairs", lambda self, *some: (compared.append(some), real(self, *some)))
    X = [*["a", "b", ""] * 60, *families(800, length=40, most=3)]
    found = near_duplicates(X, Levenshtein(), 1, method="hashes", random_state=0)
    assert [len(rows) for rows, _ in compared] == [180]  # the short ones
    true = brute(X, Levenshtein(), 1)
    assert {tuple(pair) for pair in found.pairs.tolist()} <= set(true)
    assert len(found.pairs) > 0.95 * len(true)


def test_the_plan_of_edits_is_made_for_strings_of_all_lengths_though_they_are_sorted():
    X = [*families(800, length=200, most=3), *families(800, length=20, most=3, seed=1)]
    found = near_duplicates(X, Levenshtein(), 4, method="hashes", random_state=0)
    true = brute(X, Levenshtein(), 4)
    assert len(found.pairs) > 0.95 * len(true)


@pytest.mark.filterwarnings("ignore:hashes find about")
@pytest.mark.parametrize(("threshold", "relative"), [(1e12, False), (1e300, False), (1 - 1e-12, True)])
def test_thresholds_beyond_any_length(threshold, relative):
    X = [*families(100, length=10), "", "a"]
    found = near_duplicates(X, Levenshtein(), threshold, relative=relative, method="hashes", random_state=0)
    assert len(found.pairs) > 0.8 * len(brute(X, Levenshtein(), threshold, relative))


def test_objects_without_features_are_no_duplicates_of_each_other():
    X = [*families(600), "", "", "ab", "ab"]
    assert near_duplicates(X, SHINGLES, 0.9, method="hashes", random_state=0).groups[600:].tolist() == [
        *(600, 601, 602, 603)
    ]


def test_equal_objects_far_smaller_than_the_others_are_found():
    X = np.random.default_rng(0).random((2500, 50))
    X[:100] *= 1e-6  # their features would all be rounded to 0
    X[1], X[2001] = X[0], X[2000]
    found = near_duplicates(X, MinMax(), 0.9, random_state=0)
    assert [0, 1] in found.pairs.tolist()
    assert [2000, 2001] in found.pairs.tolist()


def test_groups_are_connected_components_named_by_their_first_object():
    X = ["abcdef", "zzzzzz", "abcdeg", "abcdhg", "zzzzzy"]
    found = near_duplicates(X, Levenshtein(), 1)
    assert found.pairs.tolist() == [[0, 2], [1, 4], [2, 3]]
    assert found.groups.tolist() == [0, 1, 0, 0, 1]
    assert found.kept.tolist() == [0, 1]


def test_the_result_is_shown_as_a_summary():
    words = ["abcdefgh", "abcdefgx", "abcdefgy", "pqrstuvw", "pqrstuvx", "zzzz"]
    found = near_duplicates(words, Levenshtein(), 1)
    assert repr(found) == ("<Duplicates among 6 objects: 4 pairs in 2 groups of 5 objects; method='exact', recall 1>")
    none = near_duplicates([f"{i}" * 30 for i in range(9)], Levenshtein(), 1, method="neighbours", random_state=0)
    assert repr(none) == "<Duplicates among 9 objects: 0 pairs; method='neighbours', recall unknown>"


def test_any_similarity_by_neighbours():
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(150, 30))
    X = np.repeat(centres, 4, axis=0) + 0.02 * rng.normal(size=(600, 30))
    true = brute(X, Cosine(mapping="projection"), 0.99)
    found = near_duplicates(X, Cosine(mapping="projection"), 0.99, method="neighbours", random_state=0)
    assert {tuple(pair) for pair in found.pairs.tolist()} == set(true)
    assert found.recall == 1.0
    series = np.cumsum(X[:200], axis=1)
    found = near_duplicates(series, DTW(0.1), 1.5, method="neighbours", random_state=0)
    assert {tuple(pair) for pair in found.pairs.tolist()} <= set(brute(series, DTW(0.1), 1.5))
    assert len(found.pairs) > 50


def test_objects_with_more_near_duplicates_than_neighbours_are_compared_within_their_group(monkeypatch):
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(4, 30)), 50, axis=0) + 0.02 * rng.normal(size=(200, 30))
    similarity, true = Cosine(mapping="projection"), brute(X, Cosine(mapping="projection"), 0.99)
    assert len(true) == 4 * 50 * 49 / 2
    monkeypatch.setattr(_join, "NEAR", 20)
    found = near_duplicates(X, similarity, 0.99, method="neighbours", random_state=0)
    assert {tuple(pair) for pair in found.pairs.tolist()} == set(true)
    assert found.recall == 1.0
    monkeypatch.setattr(_join, "_IN_GROUPS", 10)  # room for one of the four groups
    with pytest.warns(UserWarning, match=r"near_duplicates found about \d\d% of the pairs, below recall=0.9"):
        found = near_duplicates(X, similarity, 0.99, method="neighbours", recall=0.9, random_state=0)
    assert len(found.pairs) < len(true)
    assert 0.4 < found.recall < 0.9
    assert len(set(found.groups)) == 4


@pytest.mark.parametrize("form", ["dense", "sparse", "strings", "normalized", "proportions"])
def test_cosines_by_signs(form):
    rng = np.random.default_rng(2)
    centres = np.repeat(rng.normal(size=(400, 40)), 3, axis=0)
    X = centres + rng.choice([0.05, 0.2, 0.35], (1200, 1)) * rng.normal(size=(1200, 40))
    kernel, threshold = Cosine(mapping="projection"), 0.93
    if form == "sparse":
        X = sp.csr_array(np.where(np.repeat(rng.random((400, 40)) < 0.5, 3, axis=0), X, 0.0))
    elif form in ("strings", "normalized"):
        X = [*families(1200, most=4), "", "a", "", "a"]
        kernel = Spectrum(4, normalize=True) if form == "strings" else Normalized(Spectrum(4))
        threshold = 0.85
    elif form == "proportions":
        X, kernel = np.abs(X), Cosine()
        threshold = 0.95
    true = brute(X, kernel, threshold)
    assert len(true) > 200
    found = near_duplicates(X, kernel, threshold, method="hashes", random_state=0)
    pairs = {tuple(pair) for pair in found.pairs.tolist()}
    assert pairs <= set(true)
    assert len(pairs) >= 0.95 * len(true)
    assert abs(found.recall - len(pairs) / len(true)) <= 0.03
    assert found.method == "hashes"


def test_only_cosines_of_explicit_features_are_hashed():
    by_distance = sm.kernels.DistanceRBF(Levenshtein())
    assert has_hashes(Normalized(sm.kernels.Sum([Spectrum(3), Spectrum(4)])))
    assert not has_hashes(Normalized(sm.kernels.Sum([Spectrum(3), by_distance])))
    assert has_hashes(sm.kernels.Intersection(Spectrum(3), normalize=True))
    for inner in (None, Normalized(Spectrum(3)), Spectrum(3, normalize=True), sm.kernels.Sum([Spectrum(3)], [2.0])):
        assert not has_hashes(sm.kernels.Intersection(inner, normalize=True))  # of numbers that may be fractions


def test_of_an_asymmetric_distance_that_to_the_later_object_counts():
    shorter = sm.distances.FromFunction(lambda x, y: max(len(x) - len(y), 0), symmetric=False)
    for X, n in ((["abc", "a"], 0), (["a", "abc"], 1)):
        found = near_duplicates(X, shorter, 0)
        assert len(found.pairs) == n
        checked = found.check(X)
        assert (checked.n_true, checked.n_found) == (2 * n, 2 * n)


@pytest.mark.same_bits
def test_the_cosine_of_sparse_rows_depends_on_the_two_alone():
    rng = np.random.default_rng(0)
    kept = rng.random((300, 400)) < np.where(rng.random(400) < 0.1, 1.0, 0.05)
    X = sp.csr_array(kept * rng.normal(size=(300, 400)))
    metric = metric_from(Cosine("projection"), "similarity")
    rows, columns = np.repeat([0, 7], 290), np.tile(np.arange(10, 300), 2)
    together = metric.pairs(X, rows, columns, {})
    assert np.abs(together - Cosine("projection")(X)[rows, columns]).max() < 1e-12
    for size in (1, 5, 37):
        parts = [metric.pairs(X, rows[i : i + size], columns[i : i + size], {}) for i in range(0, len(rows), size)]
        np.testing.assert_array_equal(np.concatenate(parts), together)


def test_signs_agree_as_often_as_the_angle_says():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30, 50))
    expected = 1 - np.arccos(np.clip(Cosine("projection")(X), -1, 1)) / np.pi
    for rows in (X, sp.csr_array(X)):
        signs = Signs(Cosine("projection"), 6000, 0).fit(rows)
        keys, hashes, empty = signs.bands(rows, 2)
        assert keys.shape == (30, 3000)
        assert not empty.any()
        error = np.sqrt(expected * (1 - expected) / 6000)
        assert (np.abs((hashes[:, None] == hashes[None]).mean(axis=2) - expected) <= 5 * error + 0.003).all()
        both = (hashes.reshape(30, 3000, 2)[:, None] == hashes.reshape(30, 3000, 2)[None]).all(axis=3)
        np.testing.assert_array_equal(keys[:, None] == keys[None], both)


def test_graphs_and_vectors_by_hashes():
    rng = np.random.default_rng(1)
    X = (rng.random((300, 80)) < 0.2).astype(float)
    X = np.repeat(X, 3, axis=0)
    flips = rng.random(X.shape) < 0.01
    X = np.where(flips, 1 - X, X)
    found = near_duplicates(X, MinMax(), 0.7, method="hashes", random_state=0)
    true = brute(X, MinMax(), 0.7)
    assert {tuple(pair) for pair in found.pairs.tolist()} <= set(true)
    assert len(found.pairs) >= 0.97 * len(true)
    smiles = ["C" * i + "O" for i in range(1, 40)] * 2
    pytest.importorskip("rdkit")
    graphs = sm.objects.from_smiles(smiles)
    kernel = MinMax(WeisfeilerLehman())
    pairs = near_duplicates(graphs, kernel, 1.0, method="hashes", random_state=0).pairs.tolist()
    assert {tuple(pair) for pair in pairs} == set(brute(graphs, kernel, 1.0))


@pytest.mark.parametrize("similarity", [SHINGLES, Levenshtein()])
def test_results_depend_neither_on_memory_nor_on_threads(similarity):
    X = families(2500)
    options = {"threshold": 0.6 if similarity is SHINGLES else 5, "method": "hashes", "random_state": 3}
    first = near_duplicates(X, similarity, **options)
    with sm.config(max_memory="1MB"):
        blocks = near_duplicates(X, similarity, **options)
    with threadpool_limits(1):
        one_thread = near_duplicates(X, similarity, **options)
    for other in (blocks, one_thread):
        np.testing.assert_array_equal(first.pairs, other.pairs)
        np.testing.assert_array_equal(first.values, other.values)


@given(st.lists(st.text("abc", min_size=4, max_size=12), min_size=2, max_size=6), st.integers(0, 99))
@settings(deadline=None, max_examples=30)
def test_equal_features_have_equal_keys_and_keys_agree_as_often_as_the_kernel_says(X, seed):
    kernel = Spectrum(2)
    hashing = sm.MinHash(kernel, n_hashes=2048, random_state=seed).fit(X)
    J = MinMax(kernel)(X)
    for rows in (1, 2):
        keys, hashes = hashing.bands(X, rows)
        assert ((hashes[:, None] == hashes[None]).mean(axis=2) >= J - 0.08).all()
        assert keys.shape == (len(X), 2048 // rows)
        agree = (keys[:, None] == keys[None]).mean(axis=2)
        expected = J**rows
        error = np.sqrt(np.maximum(expected * (1 - expected), 1e-12) / keys.shape[1])
        assert (np.abs(agree - expected) <= 6 * error + 1e-9).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"threshold": np.nan}, "threshold must be a finite number"),
        ({"threshold": "0.5"}, "threshold must be a finite number"),
        ({"threshold": 0}, "threshold must be above 0 and at most 1 for MinMax"),
        ({"threshold": 70}, "threshold must be above 0 and at most 1 for MinMax"),
        ({"relative": True}, "relative must be False, except for Levenshtein, got True"),
        (
            {"similarity": sm.distances.Levenshtein(), "relative": True, "threshold": 5},
            "threshold must be below 1 with relative=True: a share .*, got 5; for a number of edits, leave rel",
        ),
        ({"similarity": Levenshtein(), "threshold": -1}, "threshold must be a distance >= 0"),
        ({"method": "lsh"}, "method must be 'auto', 'exact', 'hashes' or 'neighbours'"),
        ({"method": "hashes", "similarity": Spectrum(2)}, "method must be 'auto', 'exact' or 'neighbours'"),
        ({"recall": 1}, "recall must be a number above 0 and below 1"),
    ],
)
def test_bad_parameters(options, words):
    arguments = {"X": ["abcdef", "abcdeg"], "similarity": SHINGLES, "threshold": 0.5} | options
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        near_duplicates(**arguments)


def test_bad_collections():
    with pytest.raises(ValueError, match=r"X is empty|no objects|empty"):
        near_duplicates([], SHINGLES, 0.5)
    with pytest.raises(TypeError, match=r"X\[1\]"):
        near_duplicates(["abcd", 3], SHINGLES, 0.5)
    with pytest.raises(ValueError, match="divisor of n_hashes"):
        sm.MinHash(Spectrum(2), n_hashes=10, output="onehot").fit(["abc"]).bands(["abc"], 3)


@pytest.mark.parametrize(("threshold", "recall"), [(0.98, 0.98), (0.98, 0.999), (0.7, 0.98), (0.4, 0.9)])
def test_pairs_at_the_threshold_are_compared_as_often_as_planned(threshold, recall):
    rng = np.random.default_rng(0)
    some = sm.objects.as_strings(["".join(rng.choice(list("abcdef"), 60)) for _ in range(100)])
    found = plan(Limit(metric_from(SHINGLES, "similarity"), threshold), some, 100_000, recall, rng)
    n = 200_000
    equal = rng.random((n, found.bands, found.rows)) < threshold  # which hashes of n such pairs agree
    compared = equal.all(axis=2).any(axis=1) & (equal.sum(axis=(1, 2)) >= found.least)
    error = 4 * np.sqrt(recall * (1 - recall) / n)
    assert compared.mean() >= recall - error
    assert recall <= float(found.p(threshold)) == pytest.approx(equal.all(axis=2).any(axis=1).mean(), abs=error)
    assert found.least > 0


def test_a_plan_that_cannot_reach_the_recall_warns():
    rng = np.random.default_rng(0)
    X = ["".join(chr(c) for c in row) for row in rng.integers(32, 10_000, (300, 30))]
    with pytest.warns(UserWarning, match="method='exact' finds all"):
        near_duplicates(X, Levenshtein(), 90, method="hashes", random_state=0)


def test_the_command(tmp_path, similia):
    texts = ["the cat sat on the mat", "a dog ran", "the cat sat on the mat!", "another thing"]
    data, pairs, groups = (tmp_path / name for name in ("texts.csv", "pairs.parquet", "groups.csv"))
    data.write_text("id,text\n" + "".join(f"t{i},{text}\n" for i, text in enumerate(texts)))
    done = similia("duplicates", data, "--text", "text", "--id", "id", "-o", pairs, "--groups", groups)
    assert done.returncode == 0, done.stderr
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(pairs).to_pylist() == [
        {"first": 0, "second": 2, "similarity": pytest.approx(18 / 19), "first_id": "t0", "second_id": "t2"}
    ]
    rows = list(csv.DictReader(groups.read_text().splitlines()))
    assert [row["group"] for row in rows] == ["0", "1", "0", "3"]
    assert [row["kept"] for row in rows] == ["True", "True", "False", "True"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("-o", "pairs.txt"), "as CSV or Parquet"),
        (("-o", "texts.csv"), "is an input of this command"),
        (("-o", "p.csv", "--threshold", "7"), "at most 1 for MinMax"),
        (("-o", "p.csv", "--distance", "Levenshtein()"), "--relative --threshold 0.1"),
    ],
)
def test_the_command_refuses(options, words, tmp_path, monkeypatch, similia):
    (tmp_path / "texts.csv").write_text("text\nthe cat sat\na dog ran\n")
    monkeypatch.chdir(tmp_path)
    failed = similia("duplicates", "texts.csv", "--text", "text", *options)
    assert failed.returncode == 2
    assert words in " ".join(failed.stderr.split())
    assert not (tmp_path / "p.csv").exists()


def test_sequences_in_both_cases_are_told(tmp_path):
    words = families(40, 30)
    mixed = [word.lower() if i % 2 else word for i, word in enumerate(words)]
    (tmp_path / "w.txt").write_text("\n".join(mixed))
    source = sm.sources.open_objects(tmp_path / "w.txt", chunk=7)
    distance, kernel = Levenshtein(), MinMax(Spectrum(3))
    for similarity, at, remedy in ((distance, 3, "convert the strings to one"), (kernel, 0.5, "set ignore_case=True")):
        for X in (mixed, source):
            for method in ("auto", "hashes", "neighbours"):
                with pytest.warns(UserWarning, match=f"as small letters, .*{remedy}") as told:
                    near_duplicates(X, similarity, at, method=method, random_state=0)
                assert len(told) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        near_duplicates(mixed, MinMax(Spectrum(3, ignore_case=True)), 0.5)
        near_duplicates(words, distance, 3)
