"""`paired` of distances and kernels: the matrix at some positions, without the others."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz import distance, process
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import similarities as naive
from similia import alignments
from similia.distances import (
    ADTW,
    DTW,
    ERP,
    LCSS,
    MSM,
    TWE,
    Chamfer,
    DamerauLevenshtein,
    Hamming,
    Hausdorff,
    JaroWinkler,
    Levenshtein,
    ModifiedHausdorff,
    SlicedWasserstein,
    SoftDTW,
    Wasserstein,
)
from similia.kernels import (
    GappedKmers,
    GappyKmers,
    GlobalAlignment,
    Graphlet,
    MinMax,
    Mismatch,
    Propagation,
    ShortestPath,
    Spectrum,
    WeightedDegree,
    WeisfeilerLehman,
)
from similia.objects import as_series, as_strings

laws = settings(max_examples=25, deadline=None)

OF_SERIES = [
    DTW(),
    DTW(window=3),
    DTW(window=0.2, local="sqeuclidean", root=True),
    ERP(gap=0.5),
    MSM(),
    TWE(window=4),
    ADTW(penalty=0.5),
    LCSS(),
    SoftDTW(),
    SoftDTW(window=2),
    GlobalAlignment(3.0),
    GlobalAlignment(3.0, normalize=False),
]
OF_STRINGS = [
    Levenshtein(),
    Spectrum(k=2),
    Spectrum(k=2, normalize=True),
    GappyKmers(k=2, gaps=1, normalize=True),
    GappedKmers(3, 2, normalize=True),
    GappedKmers(3, 2, "forgotten"),
    Mismatch(k=3, alphabet="abc"),
    WeightedDegree(degree=2),
]
ALPHABETS = [
    "abcd",
    "abé\u4e00😀",
    "".join(map(chr, range(0x4E00, 0x4E80))),
    "".join(chr(0x100 * i) for i in range(1, 60)),  # the same low bits
]
OF_GRAPHS = [WeisfeilerLehman(n_iter=2), WeisfeilerLehman(n_iter=2, normalize=True), ShortestPath(), Graphlet(size=3)]
OF_GRAPHS += [Propagation(n_iter=2)]


def series(rng, n, dtype=np.float64):
    return as_series([rng.standard_normal((rng.integers(1, 30), 2)).astype(dtype) for _ in range(n)])


def graphs(rng, n):
    found = []
    for _ in range(n):
        size = int(rng.integers(1, 9))
        A = np.triu(rng.random((size, size)) < 0.4, 1)
        found.append({"edge_index": np.array(np.nonzero(A | A.T)), "n_nodes": size})
    return found


def assert_paired(function, X, Y, rng, n_pairs):
    rows, columns = rng.integers(0, len(X), n_pairs), rng.integers(0, len(Y), n_pairs)
    found = function.paired(X, Y, rows, columns)
    expected = function(X, Y)[rows, columns]
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("function", OF_SERIES, ids=repr)
def test_of_series(function):
    @laws
    @given(st.integers(0, 10**6), st.integers(1, 120), st.sampled_from([1, 2**10, 2**24]))
    def law(seed, n_pairs, packed):
        rng = np.random.default_rng(seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(alignments, "_PACKED", packed)
            assert_paired(function, series(rng, 20), series(rng, 15), rng, n_pairs)

    law()


def test_of_single_precision():
    rng = np.random.default_rng(0)
    assert_paired(DTW(), series(rng, 9, np.float32), series(rng, 7, np.float32), rng, 50)


@pytest.mark.parametrize("function", OF_STRINGS, ids=repr)
def test_of_strings(function):
    rng = np.random.default_rng(0)
    X, Y = (["".join(rng.choice(list("abc"), rng.integers(3, 15))) for _ in range(n)] for n in (12, 9))
    assert_paired(function, X, Y, rng, 70)


@laws
@given(st.integers(0, 10**6), st.sampled_from([3, 62, 64, 66, 130, 300]), st.sampled_from(["ab", "abcdefgh", "aé😀"]))
def test_of_strings_of_any_length(seed, length, letters):
    """Around the 64 letters of a word, empty ones, and other alphabets than ASCII."""
    rng = np.random.default_rng(seed)
    X, Y = (["".join(rng.choice(list(letters), rng.integers(0, length + 3))) for _ in range(7)] for _ in range(2))
    X[0], Y[0] = "", ""
    X[1] = Y[1][: len(Y[1]) // 2] + "a" + Y[1][len(Y[1]) // 2 :]
    rows, columns = np.arange(49) // 7, np.arange(49) % 7
    found = Levenshtein().paired(X, Y, rows, columns)
    np.testing.assert_array_equal(found.reshape(7, 7), Levenshtein()(X, Y))
    if length < 10:
        expected = [naive.edit_distance(X[i], Y[j]) for i, j in zip(rows, columns, strict=True)]
        np.testing.assert_array_equal(found, expected)
    shuffled = rng.permutation(49)
    np.testing.assert_array_equal(Levenshtein().paired(X, Y, rows[shuffled], columns[shuffled]), found[shuffled])


@laws
@given(st.integers(0, 10**6), st.sampled_from([5, 64, 200]), st.sampled_from(ALPHABETS), st.sampled_from(ALPHABETS))
def test_of_strings_of_many_letters(seed, length, letters, others):
    """Letters that meet in a hash table of those of a string, and one side that has only ASCII."""
    rng = np.random.default_rng(seed)
    X = ["".join(rng.choice([*letters], rng.integers(0, length + 3))) for _ in range(6)]
    Y = ["".join(rng.choice([*others], rng.integers(0, length + 3))) for _ in range(20)]
    Y[:3] = [x + "a" for x in X[:3]]
    rows, columns = np.arange(120) // 20, np.arange(120) % 20
    expected = process.cdist(X, Y, scorer=distance.Levenshtein.distance)
    np.testing.assert_array_equal(Levenshtein().paired(X, Y, rows, columns).reshape(6, 20), expected)
    one = Levenshtein()._for_one(as_strings(Y))
    for x, row in zip(X, expected, strict=True):
        np.testing.assert_array_equal(one(as_strings([x]), np.arange(20)), row)


@pytest.mark.parametrize("function", OF_GRAPHS, ids=repr)
def test_of_graphs(function):
    rng = np.random.default_rng(0)
    X, Y = graphs(rng, 12), graphs(rng, 9)
    assert_paired(function, X, Y, rng, 70)
    rows, columns = rng.integers(0, 9, (2, 40))
    counts = function.counted(Y)
    expected = function(X, Y)[rows, columns]
    np.testing.assert_array_equal(function.paired(X, Y, rows, columns, counts=counts), expected)


@pytest.mark.parametrize("distance", [ModifiedHausdorff, Hausdorff, Chamfer])
@pytest.mark.parametrize(
    ("n_dims", "ground"), [(2, "euclidean"), (9, "euclidean"), (9, "sqeuclidean"), (9, "manhattan")]
)
def test_of_sets(distance, n_dims, ground):
    rng = np.random.default_rng(0)
    X, Y = ([rng.standard_normal((rng.integers(0, 12), n_dims)) for _ in range(n)] for n in (12, 9))
    Y[3] = X[2]
    function = distance(ground=ground) if ground in distance._grounds else distance()
    rows, columns = rng.integers(0, 12, 200), rng.integers(0, 9, 200)
    found = function.paired(X, Y, rows, columns)
    np.testing.assert_allclose(found, function(X, Y)[rows, columns], rtol=1e-12)
    assert (found[(rows == 2) & (columns == 3)] == 0).all()


@pytest.mark.parametrize("p", [1, 2])
def test_of_sets_by_projections(p):
    rng = np.random.default_rng(0)
    X, Y = ([rng.standard_normal((rng.integers(0, 12), 3)) for _ in range(n)] for n in (12, 9))
    assert_paired(SlicedWasserstein(5, p), X, Y, rng, 200)


@pytest.mark.same_bits
def test_products_of_pairs_do_not_depend_on_threads(monkeypatch):
    from similia.kernels import counts as _counts

    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("abc"), rng.integers(0, 40))) for _ in range(30)]
    rows, columns = rng.integers(0, 30, (2, 2000))
    expected = Spectrum(k=2)(X)[rows, columns]
    for grain in (1, 7, 10**6):
        monkeypatch.setattr(_counts, "_PAIRS_OF_A_THREAD", grain)
        np.testing.assert_array_equal(Spectrum(k=2).paired(X, X, rows, columns), expected)


@pytest.mark.parametrize(
    "kernel",
    [
        Spectrum(), Spectrum(normalize=True), GappedKmers(3, 2), GappedKmers(3, 2, positions="forgotten"),
        MinMax(Spectrum()),
    ],
    ids=str,
)  # fmt: skip
def test_no_pairs_of_strings(kernel):
    for kept in ({}, {"counts": kernel.counted(["cd"])}):
        assert kernel.paired(["ab"], ["cd"], [], [], **kept).shape == (0,)


@pytest.mark.parametrize("kernel", [Graphlet(3), Graphlet(3, n_samples=9), WeisfeilerLehman()], ids=str)
def test_no_pairs_of_graphs(kernel):
    graphs = [{"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 3}]
    assert kernel.paired(graphs, graphs, [], []).shape == (0,)


@pytest.mark.parametrize(
    ("distance", "parameter"),
    [
        (DTW(window=-1), "window"), (DTW(local="x"), "local"), (MSM(c=-1), "c"), (TWE(nu=-1), "nu"),
        (LCSS(epsilon=-1), "epsilon"), (ADTW(penalty=-1), "penalty"), (SoftDTW(gamma=0), "gamma"),
        (ERP(gap=np.nan), "gap"), (ERP(window=-1), "window"),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("value", [1.0, 1e200])
def test_no_pairs_check_parameters(distance, parameter, value):
    with pytest.raises(ValueError, match=f"^{parameter} must be"):
        distance.paired([[value, 2.0]], [[value]], [], [])


def test_no_pairs_of_series():
    assert GlobalAlignment().paired([[1.0, 2.0]], [[3.0]], [], []).shape == (0,)
    with pytest.raises(ValueError, match="bandwidth must be a positive number"):
        GlobalAlignment(-1.0).paired([[1.0, 2.0]], [[3.0]], [], [])


def test_graphs_that_cannot_be_compared():
    plain = [{"edge_index": np.array([[0, 1], [1, 0]]), "n_nodes": 2}]
    labelled = [plain[0] | {"node_labels": np.array([1, 2])}]
    kernel = WeisfeilerLehman(n_iter=1)
    for kept in ({}, {"counts": kernel.counted(labelled)}):
        with pytest.raises(ValueError, match="would compare degrees of unlabelled nodes of X with node labels"):
            kernel.paired(plain, labelled, [0], [0], **kept)


def test_bad_pairs_are_named():
    X, Y = [[0.0], [1e200]], [[1.0]]
    with pytest.raises(ValueError, match="the distance of pair 2 exceeds the largest float64; scale"):
        DTW(local="sqeuclidean").paired(X, Y, [0, 0, 1], [0, 0, 0])
    long = [np.zeros(1000)]
    with pytest.raises(ValueError, match="k of pair 1 = exp"):
        GlobalAlignment(1.0, normalize=False).paired([[0.0], *long], long, [0, 1], [0, 0])
    with pytest.raises(IndexError):
        DTW().paired(X, Y, [0], [1])


SERIES, SETS, GRAPHS = [[1.0, 2.0], [3.0]], [np.ones((2, 2)), np.ones((1, 2))], graphs(np.random.default_rng(0), 2)
FEW = [(function, SERIES) for function in OF_SERIES]
FEW += [(function, ["abcab", "acé"]) for function in (Hamming(), DamerauLevenshtein(), JaroWinkler())]
FEW += [(function, ["abcab", "abc"]) for function in OF_STRINGS]
FEW += [
    (function, SETS) for function in (ModifiedHausdorff(), Hausdorff(), Chamfer(), Wasserstein(), SlicedWasserstein())
]
FEW += [(function, GRAPHS) for function in OF_GRAPHS]


@pytest.mark.parametrize(("function", "X"), FEW, ids=lambda value: repr(value)[:60])
def test_pairs_are_as_many_rows_as_columns_and_may_be_none(function, X):
    for rows, columns in (([0, 1], [0]), ([0], [0, 1]), ([0, 1], []), ([], [1])):
        with pytest.raises(ValueError, match=f"{len(rows)} rows and {len(columns)} columns, expected as many of both"):
            function.paired(X, X, rows, columns)
    for rows, columns in (([0, 2], [0, 0]), ([0, 0], [0, 2])):
        with pytest.raises((IndexError, ValueError), match="2"):
            function.paired(X, X, rows, columns)
    found = function.paired(X, X, [], [])
    assert (found.shape, found.dtype) == ((0,), function(X, X).dtype)


def search_of(X, rerank):
    encoder = make_pipeline(
        sm.Nystroem(Spectrum(k=1), n_components=3, random_state=0), sm.SignRandomProjection(64, random_state=0)
    )
    return sm.SimilaritySearch(encoder, rerank=rerank, n_candidates=20).fit(X)


def test_kept_counts_follow_the_objects_and_the_kernel():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("abc"), rng.integers(3, 15))) for _ in range(60)]
    search, kernel = search_of(X[:40], Spectrum(k=2)), Spectrum(k=2)

    def assert_scores(kernel, objects):
        for start in range(0, 12, 4):  # few candidates, and later more than objects
            scores, ids = search.kneighbors(X[start : start + 4], 20, return_similarity=True)
            np.testing.assert_array_equal(scores, np.take_along_axis(kernel(X[start : start + 4], objects), ids, 1))

    assert_scores(kernel, X[:40])
    assert_scores(kernel, search.add(X[40:]).objects_.tolist())
    search.set_params(rerank__k=3)
    assert_scores(Spectrum(k=3), X)
    search.set_params(rerank=GappyKmers(k=2, gaps=1))
    assert_scores(GappyKmers(k=2, gaps=1), X)
    search.remove([0, 1])
    scores, ids = search.kneighbors(X[2:6], 20, return_similarity=True)
    np.testing.assert_array_equal(
        scores, [GappyKmers(k=2, gaps=1)([x], [X[i] for i in found])[0] for x, found in zip(X[2:6], ids, strict=True)]
    )


@pytest.mark.parametrize("kernel", [sm.kernels.Cosine(), sm.kernels.HypersphericalHeat(2.0)], ids=repr)
def test_the_map_of_vectors_is_decided_by_all_objects(kernel):
    """Whichever candidates a query has: few of these rows have a negative entry."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (200, 12)) + 0.1
    X[::40, 5] = -1.0
    encoder = make_pipeline(sm.Nystroem(kernel, n_components=12, random_state=0), sm.SignRandomProjection(64))
    search = sm.SimilaritySearch(encoder, rerank=kernel, n_candidates=4).fit(X)
    projected = kernel.decided(X)
    assert projected.mapping == "projection"
    scores, ids = search.kneighbors(X, 4, return_similarity=True)
    np.testing.assert_allclose(scores, np.take_along_axis(projected(X, X), ids, axis=1), atol=1e-12)
    rest = search.remove(np.arange(0, 200, 40)).objects_
    scores, ids = search.kneighbors(X[1:9], 4, return_similarity=True)
    rows = np.searchsorted(search.ids_, ids)
    np.testing.assert_allclose(scores, np.take_along_axis(kernel(X[1:9], rest), rows, axis=1), atol=1e-12)
    assert kernel.decided(rest).mapping == "sqrt"
