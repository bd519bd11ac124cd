"""MinHash: its slow twin, unbiased estimates with their errors, bits that depend on nothing else, wrong input."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from naive import similarities as naive
from samples.graphs import batch, samples
from similia.codes import minhash, similarity
from similia.kernels import MinMax, Product, Spectrum, Sum, WeisfeilerLehman
from similia.planning import minhash_n_hashes

laws = settings(max_examples=30, deadline=None)
ROWS = st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=4)
# Pairs of sets: of one element, smaller than the number of samplers, and so large that one round suffices.
PAIRS = {
    "one": [[1, 0, 0], [1, 0, 0], [1, 1, 0]],
    "few": [[3, 2, 0, 5], [1, 2, 4, 5], [0, 0, 7, 1]],
    "many": [[300, 0, 40, 500], [300, 200, 0, 400], [0, 20, 600, 100]],
}
FRACTIONS = np.array([[0.3, 0.0, 1.25, 0.07], [0.1, 0.6, 1.0, 0.0], [2.5, 0.2, 0.0, 0.4]])


@laws
@given(ROWS, st.sampled_from([8, 24, 40]), st.integers(0, 2**63 - 1))
def test_hashes_equal_the_twin(rows, n_hashes, seed):
    model = sm.MinHash(None, n_hashes, 8).fit(rows)
    model.seed_ = seed
    columns = [{j: c for j, c in enumerate(row) if c} for row in rows]
    expected = [[value % 256 for value in naive.min_hashes(x, n_hashes, seed, minhash._ROUNDS)] for x in columns]
    np.testing.assert_array_equal(model.transform(rows), expected)
    ones = sm.MinHash(None, n_hashes).fit(rows)
    ones.seed_ = seed
    np.testing.assert_array_equal(np.unpackbits(ones.transform(rows), axis=1), np.array(expected) % 2)


def estimates(X, n_hashes, n_seeds, bits=1, output="bits"):
    """Estimates of the min-max kernel of X[0] with X[1], X[1] with X[2] and X[0] with X[2], one row for each seed."""
    found = []
    for seed in range(n_seeds):
        Z = sm.MinHash(None, n_hashes, bits, output, random_state=seed).fit_transform(X)
        p, q = ((Z @ Z.T).toarray(), 2.0**-bits) if output == "onehot" else (similarity(Z), 0.0)
        found.append(((p - q) / (1 - q))[[0, 1, 0], [1, 2, 2]])
    return np.array(found)


@pytest.mark.parametrize("bits", [1, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_estimates_are_unbiased_with_the_stated_error(name, bits):
    """The mean is within 4 standard errors, the variance at most 1.5 times the stated one: 4 deviations of chi^2."""
    X, n, n_seeds = np.array(PAIRS[name], float), 64, 130
    J = MinMax()(X)[[0, 1, 0], [1, 2, 2]]
    q = 2.0**-bits
    p = q + (1 - q) * J
    stated = {"bits": (1 - J) * (J + 1 / bits) / n, "onehot": p * (1 - p) / n / (1 - q) ** 2}
    for output, variance in stated.items():
        found = estimates(X, n, n_seeds, bits, output)
        assert (np.abs(found.mean(axis=0) - J) <= 4 * np.sqrt(variance / n_seeds) + 1e-12).all()
        assert (found.var(axis=0) <= 1.5 * variance + 1e-12).all()


def test_estimates_of_features_that_are_no_counts():
    """The bias is within 4 standard errors; what rounding adds is far below the error of the hashes."""
    J = MinMax()(FRACTIONS)[[0, 1, 0], [1, 2, 2]]
    found = estimates(FRACTIONS, 64, 400)
    assert (np.abs(found.mean(axis=0) - J) <= 4 * np.sqrt((1 - J**2) / 64 / 400)).all()
    assert (found.var(axis=0) <= 1.3 * (1 - J**2) / 64).all()


def test_rounding_keeps_the_expected_minimum():
    counts = sm.kernels.Intersection().counted(FRACTIONS * 3)
    a, b = counts.values[0], counts.values[3]  # the first feature of two objects
    rounded = np.array([minhash._rounded(counts.ids, counts.values, 1.0, np.uint64(s))[[0, 3]] for s in range(4000)])
    assert (rounded >= np.floor([a, b])).all()
    assert (rounded <= np.ceil([a, b])).all()
    for found, expected in ((rounded.min(axis=1), min(a, b)), (rounded[:, 0], a), (rounded[:, 1], b)):
        assert abs(found.mean() - expected) < 4 * 0.5 / np.sqrt(4000)


def test_small_objects_keep_an_element_and_only_those_without_features_have_none():
    X = np.random.default_rng(0).random((300, 40))
    X[:100] *= 1e-9
    X[100] = 0
    model = sm.MinHash(None, 64, random_state=0).fit(X)
    numbers = minhash._numbers_of_elements(model.kernel_.counted(X), model.scale_, model.seed_)
    sums = np.add.reduceat(numbers, np.arange(0, 299 * 40, 40))  # 40 features each, but for the object of zeros
    assert (sums[:100] == 1).all()
    assert (sums[100:] > 64).all()
    codes = model.transform(X)
    np.testing.assert_array_equal(codes[:100], model.transform(X[:100]))
    assert len(np.unique(codes[:100], axis=0)) > 1  # objects without features are all alike


@pytest.mark.parametrize(
    ("rows", "n_hashes", "least", "most"),
    [
        ([[1, 2], [3, 0]], 64, 1, 1),  # counts
        ([[5000, 0], [5000, 1], [1, 0]], 64, 256 / 5000, 512 / 5000),  # counts above 64 n_hashes in the median
        ([[0.5, 0.25], [0, 0], [0.5, 0.25]], 8, 32 / 0.75, 64 / 0.75),  # the median of objects with features
        ([[0, 0], [0, 0]], 8, 1, 1),
        ([[1e-306, 1e-306], [1e-306, 0]], 1024, 2.0**1023, 2.0**1023),  # the largest power of two
    ],
)
def test_the_scale_gives_the_median_object_enough_elements(rows, n_hashes, least, most):
    scale = sm.MinHash(None, n_hashes).fit(np.array(rows, float)).scale_
    assert least <= scale <= most
    assert np.log2(scale) == round(np.log2(scale))


KINDS = {
    "strings": (Spectrum(2), ["ACACAC", "GTT", "", "ACAC", "TTTTTTGT"] * 5),
    "fractions": (Sum([Spectrum(1), Spectrum(2, normalize=True)], weights=[1, 0.5]), ["ACACAC", "GTT", "", "AC"] * 5),
    "graphs": (WeisfeilerLehman(2), batch(samples(1, n=20))),
    "rows": (None, np.random.default_rng(0).gamma(0.3, size=(20, 30))),
}


@pytest.mark.same_bits
@pytest.mark.parametrize("output", ["bits", "onehot"])
@pytest.mark.parametrize("name", KINDS)
def test_an_object_has_the_same_code_in_any_company(name, output):
    kernel, X = KINDS[name]
    model = sm.MinHash(kernel, 64, 2, output, random_state=0).fit(X)
    together = _dense(model.transform(X))
    n = len(together)
    for rows in ([3], list(range(n - 1, -1, -1)), [0, 0, 5]):
        np.testing.assert_array_equal(_dense(model.transform(sm.objects.take(X, rows))), together[rows])
    with sm.config(max_memory="8KiB"):
        np.testing.assert_array_equal(_dense(model.transform(X)), together)


def _dense(Z):
    return Z.toarray() if sp.issparse(Z) else Z


def test_threads_give_the_same_codes():
    X = sp.random_array((700, 300), density=0.1, random_state=np.random.default_rng(0), format="csr")
    model = sm.MinHash(None, 128, random_state=0).fit(X)
    codes = model.transform(X)  # in threads
    np.testing.assert_array_equal(np.concatenate([model.transform(X[[i]]) for i in range(700)]), codes)
    np.testing.assert_array_equal(model.transform(X.toarray()), codes)


def test_objects_without_features_agree():
    model = sm.MinHash(Spectrum(2), 4096, random_state=0).fit(["ACGT", "", "A"])
    agreement = similarity(model.transform(["ACGT", "", "A"]))
    assert agreement[1, 2] == 1
    assert (np.abs(agreement[0, 1:]) < 4 / 64).all()  # 4 standard errors


def test_onehot_has_one_entry_for_each_hash():
    Z = sm.MinHash(Spectrum(1), 10, 3, "onehot", random_state=0).fit_transform(["ACG", "TT"])
    assert (type(Z), Z.shape, Z.dtype) == (sp.csr_array, (2, 80), np.float64)
    blocks = Z.toarray().reshape(2, 10, 8)
    np.testing.assert_array_equal((blocks > 0).sum(axis=2), 1)
    np.testing.assert_allclose((Z * Z).sum(axis=1), 1)
    assert Z.has_canonical_format
    assert Z.indices.dtype == Z.indptr.dtype == np.int32


def test_codes_serve_classifiers_and_indexes(tmp_path):
    rng = np.random.default_rng(0)
    letters = np.array(list("ACGT"))
    X = ["".join(rng.choice(letters, 60, p=p)) for p in ([0.4, 0.1, 0.1, 0.4], [0.1, 0.4, 0.4, 0.1]) for _ in range(30)]
    y = np.repeat([0, 1], 30)
    for model in (
        make_pipeline(sm.MinHash(Spectrum(2), 512, random_state=0), sm.HDClassifier(random_state=0)),
        make_pipeline(sm.MinHash(Spectrum(2), 256, 4, "onehot", random_state=0), LinearSVC()),
    ):
        model.fit(X[::2], y[::2])
        assert model.score(X[1::2], y[1::2]) >= 0.9
        sm.save(model, tmp_path / "model")
        np.testing.assert_array_equal(sm.load(tmp_path / "model").predict(X), model.predict(X))
    codes = sm.MinHash(Spectrum(2), 512, random_state=0).fit_transform(X)
    distances, found = sm.HammingIndex(512).fit(codes).kneighbors(codes[:5], 1)
    assert (distances[:, 0] == 0).all()
    assert found[:, 0].tolist() == [0, 1, 2, 3, 4]


def fitted(kernel, X):
    return sm.MinHash(kernel, 8).fit(X)


def test_a_search_reranks_by_the_estimated_kernel():
    X = ["ACACACAC", "ACACACGT", "GTGTGTGT", "ACAC", "TTTTACAC"]
    search = sm.SimilaritySearch(sm.MinHash(Spectrum(2), 256, random_state=0), "kernel", n_candidates=5).fit(X)
    distances, found = search.kneighbors(["ACACACA"], 5)
    K = MinMax(Spectrum(2))(["ACACACA"], X)[0]
    np.testing.assert_allclose(distances[0], np.sqrt(2 - 2 * K[found[0]]), atol=1e-12)
    assert (np.diff(K[found[0]]) <= 0).all()


REFUSED = {
    "bits": (lambda: sm.MinHash(None, 8, 9).fit([[1, 2]]), ValueError, "bits must be an integer from 1 to 8, got 9"),
    "hashes": (lambda: sm.MinHash(None, 12).fit([[1, 2]]), ValueError, r"multiple of 8 .*, got 12; use n_hashes=16"),
    "output": (lambda: sm.MinHash(None, 8, output="codes").fit([[1, 2]]), ValueError, "output must be .* got 'codes'"),
    "columns": (lambda: sm.MinHash(None, 2**24, 8, "onehot").fit([[1, 2]]), ValueError, "must be below 8388608, as"),
    "negative": (lambda: sm.MinHash().fit([[1, 2], [-1, 0]]), ValueError, r"^X\[1\] has a feature -1"),
    "later": (lambda: fitted(None, [[1, 2]]).transform(np.eye(5000, 2) - 3 * np.eye(5000, 2, -4500)),
        ValueError, r"^X\[4500\] has a feature -3"),
    "kernel": (lambda: sm.MinHash(Product([Spectrum()]), 8).fit(["A"]), TypeError, "has no explicit features"),
    "huge": (lambda: fitted(None, [[1, 2]]).transform([[1, 2], [1e9, 0]]), ValueError,
        r"^X\[1\] has features that add up to 1e\+09, expected at most"),
    "labels": (lambda: fitted(WeisfeilerLehman(), batch(samples(0))).transform(batch(samples(0), labels=False)),
        ValueError, "would compare degrees of unlabelled nodes of X with node labels of the training objects"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"n_hashes": 60}, r"multiple of 8 .*, got 60; use n_hashes=64"),
        ({"n_hashes": 0}, "n_hashes must be an integer >= 1, got 0"),
        ({"bits": 9}, "bits must be an integer from 1 to 8, got 9"),
        ({"output": "x"}, "output must be .* got 'x'"),
    ],
)
def test_parameters_that_were_changed_after_fit_are_checked(changed, message):
    model = sm.MinHash(None, 64, random_state=0).fit(FRACTIONS).set_params(**changed)
    with pytest.raises(ValueError, match=message):
        model.transform(FRACTIONS)


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_input_gets_one_sentence(name):
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_the_planned_number_of_hashes_suffices():
    """Hoeffding's bound by hand, and the share of larger errors on 300 seeds."""
    # log(2 / 0.05) / (2 (0.1 / 2)^2) = 737.8
    assert minhash_n_hashes(0.1, 0.05) == 744
    # 8 bits: log(2 * 10 / 0.05) / (2 (0.1 * 255 / 256)^2) = 301.9
    assert minhash_n_hashes(0.1, 0.05, n_pairs=10, bits=8) == 304
    X = np.array(PAIRS["few"], float)
    J = MinMax()(X)[[0, 1, 0], [1, 2, 2]]
    errors = np.abs(estimates(X, minhash_n_hashes(0.2, 0.1, n_pairs=3), 300) - J).max(axis=1)
    assert (errors > 0.2).mean() <= 0.1
    with pytest.raises(ValueError, match="n_pairs must be an integer >= 1"):
        minhash_n_hashes(0.1, 0.05, n_pairs=0)
    with pytest.raises(ValueError, match="eps=1e-200 needs more than 1e308 samples or features"):
        minhash_n_hashes(1e-200, 0.05)
