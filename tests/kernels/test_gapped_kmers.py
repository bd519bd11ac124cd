"""Gapped k-mers: three ways to one matrix, both strands, weights of the middle, explicit features."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import similarities as naive
from similia.checks.laws import check_kernel
from similia.core.config import limited_to
from similia.kernels import GappedKmers, Spectrum, gapped
from similia.kernels.counts import inner_products
from similia.kernels.gapped import masks

LAW = settings(max_examples=30, deadline=None)
DNA = st.lists(st.text("ACGTRNS", max_size=12), min_size=1, max_size=4)
TEXT = st.lists(st.text(st.sampled_from("\0Aaé中𝒜"), max_size=12), min_size=1, max_size=4)
SIZES = st.sampled_from([(1, 1), (3, 2), (4, 2), (4, 4), (5, 3), (6, 2)])
CENTERS = st.sampled_from([{}, {"center_weight": 50, "half_life": 2}, {"center_weight": 3, "half_life": 0.7}])


def gram(strings, features_of):
    features = [features_of(x) for x in strings]
    return np.array([[naive.sparse_inner_product(a, b) for b in features] for a in features], dtype=float)


def ways(kernel, strings):
    """The same matrix from counts, mask by mask (one triangle, and all of it), and pair by pair."""
    X, Y = kernel.as_objects(strings), kernel.as_objects(strings)
    rows, columns = np.indices((len(X), len(X))).reshape(2, -1)
    counts = kernel._counts(X)
    return {
        "counts": inner_products(counts, counts),
        "triangle": kernel._by_masks(X, X),
        "masks": kernel._by_masks(X, Y),
        "pairs": kernel._of_pairs(X, Y, rows, columns).reshape(len(X), len(X)),
    }


@LAW
@given(TEXT, SIZES, CENTERS)
def test_every_way_is_the_definition(strings, sizes, center):
    twin = gram(strings, lambda x: naive.gapped_kmers(x, *sizes, False, *center.values()))
    kernel = GappedKmers(*sizes, **center)
    for name, found in ways(kernel, strings).items():
        np.testing.assert_array_equal(found, twin, name)
    np.testing.assert_array_equal(kernel(strings), twin)
    np.testing.assert_array_equal(kernel.diag(strings), twin.diagonal())


@LAW
@given(DNA, SIZES, CENTERS)
def test_every_way_is_the_definition_on_both_strands(strings, sizes, center):
    twin = gram(strings, lambda x: naive.gapped_kmers(x, *sizes, True, *center.values()))
    kernel = GappedKmers(*sizes, reverse_complement=True, **center)
    for name, found in ways(kernel, strings).items():
        np.testing.assert_array_equal(found, twin, name)
    np.testing.assert_array_equal(kernel.diag(strings), twin.diagonal())


@LAW
@given(DNA, st.sampled_from([(3, 2), (4, 3), (5, 2)]))
def test_forgotten_positions_on_both_strands(strings, sizes):
    def features(x):
        found = naive.collections.Counter()
        for i in range(len(x) - sizes[0] + 1):
            words = map("".join, itertools.combinations(x[i : i + sizes[0]], sizes[1]))
            found.update({min(word, naive.reverse_complement(word)) for word in words})
        return found

    kernel = GappedKmers(*sizes, "forgotten", reverse_complement=True)
    np.testing.assert_array_equal(kernel(strings), gram(strings, features))


def test_by_hand():
    # windows ACG and CGT of ACGT: at two of three positions AC., A.G, .CG; CG., C.T, .GT
    assert GappedKmers(3, 2)(["ACGT", "ACTT"]).tolist() == [[6.0, 2.0], [2.0, 6.0]]
    # A.G of one strand is C.T of the other, AC. is .GT, .CG is CG.: three features, each twice
    assert GappedKmers(3, 2, reverse_complement=True)(["ACGT"]).tolist() == [[12.0]]
    # windows of ACGTA: middle one has weight 8, the others floor(8 / 2) + 1 = 5
    kernel = GappedKmers(3, 3, center_weight=8, half_life=1)
    assert kernel(["ACGTA"], ["ACG", "CGT", "GTA"]).tolist() == [[40.0, 64.0, 40.0]]
    assert kernel(["ACG"]).tolist() == [[64.0]]
    # forgotten: AAA holds AA once, ABA holds AB, AA, BA
    assert GappedKmers(3, 2, "forgotten")(["AAA", "ABA"]).tolist() == [[1.0, 1.0], [1.0, 3.0]]
    assert GappedKmers(3, 2, "forgotten", center_weight=8, half_life=1)(["AAAAA"]).tolist() == [[18.0**2]]


@LAW
@given(st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n))))
def test_masks_are_all_and_differ_by_one_position(sizes):
    table = [tuple(row) for row in masks(*sizes).tolist()]
    assert sorted(table) == sorted(itertools.combinations(range(sizes[0]), sizes[1]))
    assert all(len(set(a) - set(b)) == 1 for a, b in itertools.pairwise(table))


@LAW
@given(DNA, st.sampled_from([{}, {"center_weight": 20, "half_life": 3}]), st.data())
def test_a_strand_may_be_replaced_by_the_other(strings, center, data):
    kernel = GappedKmers(5, 3, reverse_complement=True, **center)
    turned = [naive.reverse_complement(x) if data.draw(st.booleans()) else x for x in strings]
    np.testing.assert_array_equal(kernel(strings, turned), kernel(strings, strings))
    assert (kernel.features(turned) != kernel.features(strings)).nnz == 0


@pytest.mark.parametrize("n_features", [1, 1000, 1024, 2**20, 2**31 - 1])
@pytest.mark.parametrize("options", [{}, {"reverse_complement": True, "center_weight": 200, "half_life": 4}], ids=str)
def test_features_are_the_counts_in_hashed_columns(n_features, options):
    strings = ["GATTACAGATTACACC", "", "ACG", "AAAAAAAAAAAAAA", "CCCGGGTTT", "GATTACA"] * 8
    kernel = GappedKmers(6, 4, **options)
    fast, slow = kernel.features(strings, n_features), kernel._counts(kernel.as_objects(strings)).hashed(n_features)
    for name in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(fast, name), getattr(slow, name))
    assert fast.indices.dtype == np.int32


@pytest.mark.same_bits
@pytest.mark.parametrize("options", [{}, {"reverse_complement": True, "center_weight": 9}], ids=str)
def test_blocks_threads_and_company_change_nothing(options):
    rng = np.random.default_rng(0)
    strings = ["".join(rng.choice(list("ACGT"), n)) for n in rng.integers(0, 60, 40)]
    kernel = GappedKmers(6, 4, normalize=True, **options)
    K, F = kernel(strings), kernel.features(strings)
    for n_threads, memory in ((1, 2**30), (2, 2**16), (3, 2**12)):
        with limited_to(n_threads), sm.config(max_memory=memory):
            np.testing.assert_array_equal(kernel(strings), K)
            np.testing.assert_array_equal(kernel(strings[:3], strings), K[:3])
            np.testing.assert_array_equal(kernel.against(strings[:1], kernel.as_objects(strings)), K[:1])
            np.testing.assert_array_equal(kernel.paired(strings, strings, [5, 0], [9, 0]), [K[5, 9], K[0, 0]])
            assert (kernel.features(strings) != F).nnz == 0


def test_laws_of_a_kernel():
    strings = ["GATTACA", "TGTAATC", "", "A", "ACGTACGTACGT", "ACGTACGTACGT", "NNNN", "TTTTTTTTTAC"]
    for kernel in (
        GappedKmers(4, 2, normalize=True),
        GappedKmers(5, 3, reverse_complement=True, center_weight=7, half_life=2),
        GappedKmers(4, 3, "forgotten", reverse_complement=True, ignore_case=True, normalize=True),
    ):
        check_kernel(kernel, strings)


def test_special_cases_meet():
    strings = ["GATTACAGATTACA", "ACACACGTAC", "GATTTACA"]
    for both in (False, True):
        plain = Spectrum(4, reverse_complement=both)(strings)
        np.testing.assert_array_equal(GappedKmers(4, 4, reverse_complement=both)(strings), plain)
    n = sum(len(x) - 4 for x in strings[:1])
    assert GappedKmers(5, 1).diag(["ABCDEFGHIJKLMN"])[0] == n * comb(5, 1)


def test_case_and_letters():
    lower = ["gattacagatt", "ACGTACGTacgt"]
    same = GappedKmers(5, 3, ignore_case=True)(lower)
    np.testing.assert_array_equal(same, GappedKmers(5, 3)([x.upper() for x in lower]))
    assert GappedKmers(5, 3)(["ACGTA"], ["acgta"]).tolist() == [[0.0]]
    rna = GappedKmers(5, 3, reverse_complement=True)(["GAUUACA"], ["GATTACA"])
    assert rna == GappedKmers(5, 3, reverse_complement=True)(["GATTACA"])
    with pytest.raises(ValueError, match=r"X\[1\] holds 'E' at position 2, which has no complement"):
        GappedKmers(reverse_complement=True)(["ACGT", "ACEF"])


def test_it_is_explained_as_motifs():
    found = sm.explain(GappedKmers(4, 3), "ACGT", "TACCTACGA", top=100)
    parts = {part.name: part for part in found.parts}
    # ACGT meets ACCT (AC.T) and ACGA (ACG); TACC, CTAC, TACG, CCTA meet it nowhere
    assert {name: part.contribution for name, part in parts.items()} == {"AC.T": 1.0, "ACG": 1.0}
    assert parts["AC.T"].in_x.tolist() == [0, 1, 3]
    assert parts["AC.T"].in_y.tolist() == [1, 2, 4]
    both = sm.explain(GappedKmers(4, 3, reverse_complement=True), "AACT", "AGTT", top=100)
    assert {part.name for part in both.parts} == {"AAC/GTT", "A.TT/AA.T", "A.CT/AG.T", "ACT/AGT"}
    # the same motif at two positions of the window is one part
    shifted = sm.explain(GappedKmers(4, 2), "ACGT", "ACGT", top=100)
    assert len({part.name for part in shifted.parts}) == len(shifted.parts) == 6


def test_a_search_needs_no_counts_of_all_strings():
    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(60)]
    kernel = GappedKmers(6, 4, normalize=True)
    encoder = sm.Pipeline(
        [("n", sm.Nystroem(kernel, 30, random_state=0)), ("s", sm.SignRandomProjection(256, random_state=0))]
    )
    search = sm.SimilaritySearch(encoder, rerank=kernel, n_candidates=60).fit(X)
    _, ids = search.kneighbors(X[:5], 3)
    np.testing.assert_array_equal(ids, np.argsort(-kernel(X[:5], X), axis=1, kind="stable")[:, :3])


def test_no_letter_is_read_beyond_the_end_of_a_short_string():
    letters, weights = np.ones(12, np.uint64), np.ones(12)
    for size in range(5):  # numpy checks the bounds
        for a, b in ((letters, letters[:size]), (letters[:size], letters)):
            assert gapped._windows.py_func(a, b, weights[: len(a)], weights[: len(b)], np.ones(6), 5) == 0


def test_a_window_of_thousands_of_letters_is_refused():
    with pytest.raises(ValueError, match="length must be at most 500, got 2000"):
        GappedKmers(2000, 1)(["ACGT"])
    assert GappedKmers(500, 1)(["A" * 500])[0, 0] == 500
