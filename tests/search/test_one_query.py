"""One query at a time: the answers of a batch, without locks and without the wrappers of scikit-learn."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline

import similia as sm
from similia.core.config import lock_of
from similia.core.estimators import present
from similia.distances import JaroWinkler, Levenshtein
from similia.kernels import Spectrum
from similia.pipelines import transformed
from similia.search import HammingIndex
from similia.search import scan as _scan
from similia.search._queries import unit


def words(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return ["".join(rng.choice(list("abcd"), rng.integers(6, 12))) for _ in range(n)]


def vectors(n=200, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 40)).astype(np.float32)


def of_strings(rerank, **options):
    nystroem = sm.Nystroem(Spectrum(k=2), n_components=24, random_state=0)
    return sm.SimilaritySearch(make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=1)), rerank, **options)


def of_vectors(rerank):
    return sm.SimilaritySearch(make_pipeline("passthrough", sm.SignRandomProjection(64, random_state=1)), rerank)


# ---- answers
@pytest.mark.parametrize(
    ("search", "objects"),
    [
        (of_strings(Levenshtein()), words),
        (of_strings("kernel"), words),
        (of_strings(None), words),
        (of_strings("projected"), words),
        (of_vectors(None), vectors),
        (of_vectors("projected"), vectors),
    ],
    ids=["Levenshtein", "kernel", "bits", "projected", "bits of vectors", "vectors"],
)
@pytest.mark.same_bits
def test_one_query_is_a_row_of_the_batch(search, objects):
    queries = objects(80, seed=1)  # more than pipelines pass on without cutting
    search = search.fit(objects(), ids=np.arange(200)[::-1] * 3 if search.rerank == "kernel" else None)
    distances, ids = search.kneighbors(queries, 7)
    for i in range(len(queries)):
        found = search.kneighbors(queries[i : i + 1], 7)
        np.testing.assert_array_equal(found[0][0].view(np.int64), distances[i].view(np.int64))
        np.testing.assert_array_equal(found[1][0], ids[i])


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 33) | st.sampled_from([64, 96, 128]), st.integers(1, 300), st.integers(1, 40),
    st.sampled_from([1, 2, 200]), st.integers(0, 99),
)  # fmt: skip
def test_the_scan_for_one_query_is_brute_force(n_bytes, n, k, n_values, seed):
    rng, k = np.random.default_rng(seed), min(n, k)
    codes = rng.integers(0, n_values, (n, n_bytes)).astype(np.uint8)
    query = rng.integers(0, n_values, n_bytes).astype(np.uint8)
    ids, removed = rng.permutation(1000)[:n], rng.permutation(n)[: (n - k) // 2]
    index = HammingIndex(8 * n_bytes).fit(codes, ids)
    if len(removed):
        index.remove(ids[removed])
    stored = [(int(np.unpackbits(codes[i] ^ query).sum()), int(ids[i])) for i in range(n) if i not in removed]
    distances, found = index.kneighbors(query[None], k)
    assert list(zip(distances[0].tolist(), found[0].tolist(), strict=True)) == sorted(stored)[:k]


@pytest.mark.parametrize("n_bits", [128, 256, 320])
def test_a_scan_whose_rows_get_nearer_and_nearer(n_bits):
    """Each row is nearer than all before it, so that rows wait in vain, and thousands are equally near."""
    n = 3 * _scan._WAITING
    bits = np.arange(n_bits)[None] < np.sort(np.arange(n) % (n_bits // 2))[::-1, None]
    ids = np.random.default_rng(0).permutation(n)
    index = HammingIndex(n_bits).fit(np.packbits(bits, axis=1), ids)
    distances, found = index.kneighbors(np.zeros((1, n_bits // 8), np.uint8), 500)
    order = np.lexsort((ids, bits.sum(axis=1)))[:500]
    np.testing.assert_array_equal(found[0], ids[order])
    np.testing.assert_array_equal(distances[0], bits.sum(axis=1)[order])


@pytest.mark.same_bits
@pytest.mark.parametrize("order", ["any", "nearest first", "nearest last", "few first"])
@pytest.mark.parametrize("n_words", [1, 2, 3, 4, 8])
def test_the_first_rows_only_guess_how_far_the_nearest_are(order, n_words):
    rng, k = np.random.default_rng(n_words), 100
    codes = rng.integers(0, 2**63, (40_000, n_words)).astype(np.uint64)
    query = rng.integers(0, 2**63, (1, n_words)).astype(np.uint64)
    distances = np.bitwise_count(codes ^ query).sum(axis=1)
    near = np.argsort(distances, kind="stable")
    if order == "few first":  # 20 near rows among the first let expect 640 in all, but there are only these
        codes[near[20:]] = ~query
    if order != "any":
        codes = codes[near[::-1] if order == "nearest last" else near]
    distances, ids = np.bitwise_count(codes ^ query).sum(axis=1), rng.permutation(len(codes))
    index = HammingIndex(64 * n_words).fit(codes.view(np.uint8), ids).remove(ids[::3])
    kept = np.setdiff1d(np.arange(len(codes)), np.arange(0, len(codes), 3))
    expected = kept[np.lexsort((ids[kept], distances[kept]))[:k]]
    found = index.kneighbors(query.view(np.uint8), k)
    np.testing.assert_array_equal(found[1][0], ids[expected])
    np.testing.assert_array_equal(found[0][0], distances[expected])


def test_parameters_changed_after_a_query_count():
    X, query = words(), words(1, seed=2)
    search = of_strings(JaroWinkler(0.1), n_candidates=50).fit(X)
    for weight in (0.0, 0.25):
        search.kneighbors(query, 3)
        search.rerank.prefix_weight = weight
        rows = search.kneighbors(query, 50)
        np.testing.assert_array_equal(rows[0][0], JaroWinkler(weight)(query, [X[i] for i in rows[1][0]])[0])


def test_a_search_that_was_emptied_gives_no_objects():
    search = of_strings(Levenshtein()).fit(words()).remove(np.arange(200))
    assert len(search.objects(np.zeros(0, np.int64))) == 0


# ---- the plan of one query
def a_batch(search, queries, k):
    """Return what a search answers to many queries at once, which no plan serves; a query more makes two of one."""
    distances, ids = search.kneighbors([*queries, queries[0]], k)
    return distances[:-1], ids[:-1]


ENCODERS = {
    "normalised": Spectrum(k=2, normalize=True),
    "lengths": Spectrum(k=(1, 3), normalize=True, ignore_case=True),
    "words": Spectrum(k=2, boundaries="words"),
    "gappy": sm.kernels.GappyKmers(k=2, normalize=True),
    "positions": sm.kernels.WeightedDegree(3),
    "strands": Spectrum(k=2, reverse_complement=True),
}


@pytest.mark.parametrize("kernel", ENCODERS.values(), ids=ENCODERS)
@pytest.mark.same_bits
def test_one_query_is_encoded_as_many_are(kernel):
    letters = "ACGT" if "strands" in ENCODERS and kernel is ENCODERS["strands"] else "abAé "
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list(letters), n)) for n in rng.integers(4, 12, 40)]
    nystroem = sm.Nystroem(kernel, 20, random_state=0)
    encoder = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=1))
    search = sm.SimilaritySearch(encoder, "projected", n_candidates=30).fit(X[:30])
    for distances, ids, query in zip(*a_batch(search, X[20:], 5), X[20:], strict=True):
        found = search.kneighbors([query], 5)
        np.testing.assert_array_equal(found[0][0].view(np.int64), distances.view(np.int64))
        np.testing.assert_array_equal(found[1][0], ids)


def test_the_plan_of_strings_needs_no_general_path(monkeypatch):
    search, query = of_strings(Levenshtein()).fit(words()), words(1, seed=2)
    before = search.kneighbors(query, 5)
    for name in ("_encode", "_compared", "_parsed"):
        monkeypatch.setattr(search, name, None)
    monkeypatch.setattr(HammingIndex, "kneighbors", None)
    after = search.kneighbors(query, 5)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])


@pytest.mark.parametrize("rerank", [None, "projected"])
def test_the_plan_is_made_before_the_first_query(rerank, monkeypatch):
    X = vectors()
    search = of_vectors(rerank).fit(X[:150]).add(X[150:])
    monkeypatch.setattr("similia.search.similarity_search.OneQuery", None)
    assert search.kneighbors(X[170:171], 1)[1].tolist() == [[170]]


def test_what_a_query_reports_is_reported():
    strings, numbers = of_strings(Levenshtein()).fit(words()), of_vectors(None).fit(vectors())
    for search, query in ((strings, words(1)), (numbers, vectors(1))):
        search.kneighbors(query, 3)  # makes the plan
    with pytest.warns(UserWarning, match="similarity 0 to all landmarks"):
        strings.kneighbors(["zzzz"], 3)
    with pytest.raises(ValueError, match=r"X\[0\] .*NaN|X\[0\] .*nan|not finite"):
        numbers.kneighbors(np.full((1, 40), np.nan, np.float32), 3)
    with pytest.raises(ValueError, match="39 features"):
        numbers.kneighbors(np.zeros((1, 39), np.float32), 3)
    with pytest.raises(TypeError, match="bytes"):
        strings.kneighbors([b"abcd"], 3)
    for query in (np.arange(40)[None], np.asfortranarray(vectors(2))[:1], vectors(1).tolist()):
        twice = numbers.kneighbors(np.repeat(query, 2, axis=0), 3)
        np.testing.assert_array_equal(numbers.kneighbors(query, 3)[1][0], twice[1][0])


def test_a_plan_ends_when_a_part_of_the_search_is_replaced():
    X, query = words(), words(1, seed=2)
    search = of_strings(Levenshtein()).fit(X)
    other = of_strings(Levenshtein()).set_params(encoder__nystroem__random_state=5).fit(X)
    assert (search._encode(query)[0] != other._encode(query)[0]).any()
    changes = [
        lambda: vars(search.encoder_.steps[1][1]).update(vars(other.encoder_.steps[1][1])),
        lambda: search.encoder_.steps.__setitem__(0, other.encoder_.steps[0]),
        lambda: setattr(search, "rerank", JaroWinkler()),
        lambda: search.set_params(n_candidates=20),
        lambda: search.add(query, [1000]),
        lambda: search.remove([1000]),
        lambda: search.encoder_.steps[0][1].kernel_.set_params(k=3),
    ]
    for change in changes:
        search.kneighbors(query, 7)
        change()
        one, many = search.kneighbors(query, 7), a_batch(search, query, 7)
        np.testing.assert_array_equal(one[0], many[0])
        np.testing.assert_array_equal(one[1], many[1])


def test_a_plan_ends_when_a_step_is_fitted_again():
    search, query = of_strings(None).fit(words()), words(1, seed=2)
    before = search.kneighbors(query, 50)
    search.encoder_[0].fit(["".join(text[::-1]) + "abcd" * 9 for text in words(seed=9)])
    one, many = search.kneighbors(query, 50), a_batch(search, query, 50)
    assert (one[1] != before[1]).any()
    np.testing.assert_array_equal(one[0], many[0])
    np.testing.assert_array_equal(one[1], many[1])


# ---- readers take no lock
@pytest.mark.parametrize("rerank", [None, "projected", Levenshtein()])
def test_a_query_does_not_wait_for_a_change(rerank):
    search, found = of_strings(rerank).fit(words()), []
    with lock_of(search).writing(), lock_of(search.index_).writing():
        reader = threading.Thread(target=lambda: found.append(search.kneighbors(["abcabcab"], 3)), daemon=True)
        reader.start()
        reader.join(timeout=60)
    assert found, "the query waited for the lock"


def test_a_reader_keeps_the_state_it_began_with():
    search = of_strings(Levenshtein()).fit(words())
    before, now = search.kneighbors(words(5, seed=3), 4), present(search)
    search.add(words(50, seed=3)).remove(np.arange(100))
    after = now.kneighbors(words(5, seed=3), 4)
    np.testing.assert_array_equal(after[0], before[0])
    np.testing.assert_array_equal(after[1], before[1])
    assert len(search) == 150
    assert (search.kneighbors(words(5, seed=3), 4)[0][:, 0] == 0).all()


def test_readers_see_states_before_or_after_changes():
    X, Q = words(), words(1, seed=5)
    search, errors, stop = of_strings(Levenshtein()).fit(X), [], threading.Event()
    answers = {tuple(search.kneighbors(Q, 3)[1][0].tolist())}
    answers.add(tuple(search.add(Q, [1000]).kneighbors(Q, 3)[1][0].tolist()))
    search.remove([1000])

    def read():
        while not stop.is_set():
            found = tuple(search.kneighbors(Q, 3)[1][0].tolist())
            if found not in answers:
                errors.append(found)

    readers = [threading.Thread(target=read, daemon=True) for _ in range(3)]
    for reader in readers:
        reader.start()
    for _ in range(30):
        search.add(Q, [1000])
        search.remove([1000])
    stop.set()
    for reader in readers:
        reader.join(timeout=60)
    assert not errors


# ---- pipelines without their wrappers
def test_transformed_is_transform():
    X = vectors()
    bits, pca = sm.SignRandomProjection(64, random_state=0), PCA(8, random_state=0)
    for model in (
        make_pipeline(pca, bits), make_pipeline("passthrough", make_pipeline(pca, "passthrough", bits)), bits,
        sm.Pipeline([("pca", pca), ("bits", bits)]), make_pipeline(pca, bits).set_output(transform="pandas"),
    ):  # fmt: skip
        model.fit(X)
        for one in (model, FrozenEstimator(model)):
            np.testing.assert_array_equal(transformed(one, X[:3]), one.transform(X[:3]))
            np.testing.assert_array_equal(transformed(one, X), one.transform(X))
    with pytest.raises(NotFittedError):
        transformed(sm.SignRandomProjection(64), X[:1])
    with pytest.raises(ValueError, match="39 features"):
        transformed(bits, X[:1, 1:])


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=3, max_size=3), min_size=1, max_size=6),
    st.sampled_from([1e-320, 1e-200, 1.0, 1e200, 1e308]), st.sampled_from([np.float32, np.float64]),
)  # fmt: skip
def test_unit_vectors_have_length_1_at_any_scale(rows, scale, dtype):
    V = np.array(rows) * scale if dtype is np.float64 else np.array(rows).astype(dtype)
    found = unit(V)
    assert found.dtype == np.float32
    for x, y in zip(V.astype(np.longdouble), found, strict=True):
        largest = np.abs(x).max()
        exact = x / largest / np.sqrt(((x / largest) ** 2).sum()) if largest else x
        np.testing.assert_allclose(y, exact.astype(np.float64), rtol=1e-6, atol=1e-7)
