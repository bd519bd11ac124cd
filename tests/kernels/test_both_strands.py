"""Kernels on DNA whose strand is not known: a word and its reverse complement are one feature; case can be ignored."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import similia as sm
from naive import similarities as naive
from similia.checks.laws import check_kernel
from similia.cli.options import parse_kernel
from similia.kernels import GappedKmers, Mismatch, Normalized, Spectrum, Sum
from similia.objects import as_strings

LAW = settings(max_examples=40, deadline=None)
LETTERS = "ACGTRYKMBDHVSWNacgtn"
DNA = st.lists(st.text(LETTERS, max_size=14), min_size=1, max_size=4)
PLAIN = st.lists(st.text("ACGTN", max_size=12), min_size=1, max_size=4)
KERNELS = [
    Spectrum(k=3, reverse_complement=True),
    Spectrum(k=9, normalize=True, reverse_complement=True, ignore_case=True),
    Mismatch(k=3, mismatches=1, reverse_complement=True),
    Mismatch(k=4, mismatches=2, alphabet="ACGTN", reverse_complement=True, ignore_case=True, normalize=True),
]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def gram(strings, features_of):
    features = [features_of(x) for x in strings]
    return np.array([[naive.sparse_inner_product(a, b) for b in features] for a in features], dtype=float)


def upper(x):
    return "".join(c.upper() if "a" <= c <= "z" else c for c in x)


@LAW
@given(DNA, st.integers(1, 10))
def test_spectrum_is_its_definition(strings, k):
    twin = gram(strings, lambda x: naive.both_strands(naive.kmers(x, k)))
    np.testing.assert_array_equal(Spectrum(k, reverse_complement=True)(strings), twin)
    folded = gram(strings, lambda x: naive.both_strands(naive.kmers(upper(x), k)))
    np.testing.assert_array_equal(Spectrum(k, reverse_complement=True, ignore_case=True)(strings), folded)


@LAW
@given(PLAIN, st.integers(1, 4), st.integers(0, 2), st.sampled_from(["ACGT", "TGCA", "ACGTN"]))
def test_mismatch_is_its_definition(strings, k, mismatches, alphabet):
    mismatches = min(k, mismatches)
    twin = gram(strings, lambda x: naive.both_strands(naive.mismatch(x, k, mismatches, alphabet)))
    np.testing.assert_array_equal(Mismatch(k, mismatches, alphabet, reverse_complement=True)(strings), twin)


def test_by_hand():
    # AAGCTT: AAG and CTT are one word, AGC and GCT another; GAATTC is its own reverse complement
    assert Spectrum(k=3, reverse_complement=True)(["AAGCTT", "CTTA"]).tolist() == [[8.0, 2.0], [2.0, 2.0]]
    assert Spectrum(k=6, reverse_complement=True)(["GAATTC"]).tolist() == [[1.0]]
    assert Spectrum(k=1, reverse_complement=True)(["AT", "CG"]).tolist() == [[4.0, 0.0], [0.0, 4.0]]
    # with one mismatch, AC is near {A, C, G, T}C and A{A, G, T}: GC and AT alone are their own reverse complements
    assert Mismatch(k=2, mismatches=1, reverse_complement=True)(["AC", "GT"]).tolist() == [[7.0, 7.0], [7.0, 7.0]]


@each_kernel
@LAW
@given(strings=DNA, data=st.data())
def test_a_strand_may_be_replaced_by_the_other(kernel, strings, data):
    turned = [naive.reverse_complement(x) if data.draw(st.booleans()) else x for x in strings]
    if not kernel.get_params().get("alphabet") or kernel.ignore_case:
        np.testing.assert_array_equal(kernel(strings, turned), kernel(strings, strings))
        assert (kernel.features(turned) != kernel.features(strings)).nnz == 0


@each_kernel
def test_laws_of_a_kernel(kernel):
    check_kernel(kernel, ["GATTACA", "TGTAATC", "", "A", "ACGTACGTACGT", "ACGTACGTACGT", "NNNN", "TTTTTTTTTAC"])


@each_kernel
def test_u_is_t_and_bytes_are_text(kernel):
    dna, rna = ["GATTACAGATTACA", "TTTCCCAAAGGG"], ["GAUUACAGAUUACA", "UUUCCCAAAGGG"]
    for same in (rna, [x.encode() for x in dna], as_strings(dna)):
        np.testing.assert_array_equal(kernel(same), kernel(dna))
    np.testing.assert_array_equal(kernel(dna, rna), kernel(dna))
    pair = [Mismatch(2, 1, alphabet, reverse_complement=True)(rna) for alphabet in ("ACGU", "ACGT")]
    np.testing.assert_array_equal(*pair)


def test_case():
    assert Spectrum(k=2)(["AC"], ["ac"]).tolist() == [[0.0]]
    for kernel in (Spectrum(k=2, ignore_case=True), Mismatch(k=2, mismatches=0, ignore_case=True)):
        assert kernel(["ACac", "acAC"]).tolist() == [[5.0, 5.0], [5.0, 5.0]]  # AC twice, CA once
    assert Mismatch(k=2, mismatches=0, alphabet="acgt", ignore_case=True)(["AC"], ["ac"]).tolist() == [[1.0]]
    assert Spectrum(k=1, ignore_case=True)(["é[@"], ["É{`"]).tolist() == [[0.0]]  # a to z only
    strings = ["aCgT", "ACGT"]
    np.testing.assert_array_equal(Spectrum(2, ignore_case=True)(strings), Spectrum(2)(["ACGT"] * 2))


def test_letters_without_a_complement():
    kernel = Spectrum(k=2, reverse_complement=True)
    sentence = r"\[1\] holds 'E' at position 2, which has no complement; reverse_complement=True takes DNA or RNA: A, C"
    with pytest.raises(ValueError, match="X" + sentence):
        kernel(["ACGT", "ACEF"])
    with pytest.raises(ValueError, match="Y" + sentence):
        kernel(["ACGT"], ["ACGT", "ACEF"])
    with pytest.raises(ValueError, match="X" + sentence):
        sm.Nystroem(kernel, n_components=2).fit(["ACGT", "ACEF"])
    for bad in "-*Z中\0":
        with pytest.raises(ValueError, match="has no complement"):
            kernel([f"A{bad}"])
    assert Mismatch(k=2, mismatches=0, reverse_complement=True)(["ACEF-AC"]).tolist() == [[4.0]]  # skipped, as ever
    for alphabet, bad in (("ACG", "'A'"), ("A中", "'A'|'中'"), ("ACDEFGHIKLMNPQRSTVWY", "'B'|'C'|'A'|'D'|'E'")):
        with pytest.raises(
            ValueError, match=rf"^Mismatch\(alphabet='{alphabet}'\) holds ({bad}) without its complement"
        ):
            Mismatch(alphabet=alphabet, reverse_complement=True)(["ACGT"])
    for alphabet, options in (("Aa", {"ignore_case": True}), ("ACGTU", {"reverse_complement": True})):
        with pytest.raises(ValueError, match="must hold each letter once"):
            Mismatch(k=2, alphabet=alphabet, **options)(["ACGT"])


def family_on_both_strands(n=60, length=120, seed=0):
    """Sequences that hold one of six motifs, every other one on the other strand; and their families."""
    rng = np.random.default_rng(seed)
    motifs = ["".join(rng.choice(list("ACGT"), 40)) for _ in range(6)]
    X, y = [], rng.integers(0, 6, n)
    for i, family in enumerate(y):
        letters = rng.choice(list("ACGT"), length)
        letters[30:70] = list(motifs[family])
        x = "".join(letters)
        X.append(naive.reverse_complement(x) if i % 2 else x)
    return X, y


def test_a_family_on_both_strands_is_found():
    X, y = family_on_both_strands()
    other = (np.arange(60)[:, None] - np.arange(60)) % 2 == 1
    found = {}
    for both in (False, True):
        K = Spectrum(k=6, normalize=True, reverse_complement=both)(X)
        nearest = np.where(other, K, -1).argmax(axis=1)  # on the other strand
        found[both] = np.mean(y[nearest] == y)
    assert found[True] == 1.0
    assert found[False] < 0.5


def test_in_every_room(tmp_path):
    X, y = family_on_both_strands()
    kernel = Spectrum(k=6, reverse_complement=True, ignore_case=True)
    turned = [naive.reverse_complement(x).lower() for x in X]
    models = {
        "nystroem": sm.Nystroem(kernel, n_components=30, random_state=0),
        "features": sm.KernelFeatures(Normalized(kernel), 2**12),
        "sum": sm.KernelFeatures(Sum([kernel, Mismatch(3, 1, reverse_complement=True, ignore_case=True)]), 2**12),
    }
    for name, model in models.items():
        pipeline = make_pipeline(model, LogisticRegression(C=100, max_iter=1000)).fit(X, y)
        loaded = sm.load(sm.save(pipeline, tmp_path / f"{name}.similia"))
        np.testing.assert_array_equal(loaded.predict(turned), y)
    encoder = make_pipeline(models["nystroem"], sm.SignRandomProjection(256, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank=kernel, n_candidates=10).fit(X)
    _, ids = search.kneighbors(turned, 1)
    np.testing.assert_array_equal(ids[:, 0], np.arange(60))


def test_on_the_command_line():
    kernel = parse_kernel("Spectrum(k=4, reverse_complement=True)")
    assert kernel.get_params() == Spectrum(k=4, reverse_complement=True).get_params()
    assert parse_kernel("Mismatch(reverse_complement=True, ignore_case=True)").ignore_case is True


def test_explained_at_the_places_of_both_strands():
    shown = sm.explain(Spectrum(k=3, reverse_complement=True), "AAGCGAATT", "cTTGAATC".upper())
    parts = {part.name: part for part in shown.parts}
    word = parts["AAG/CTT"]
    assert word.contribution == 1.0
    assert (list(word.in_x), list(word.in_y)) == ([0, 1, 2], [0, 1, 2])
    assert sum(part.contribution for part in parts.values()) == shown.value
    assert "AAT/ATT" in parts
    palindrome = sm.explain(Spectrum(k=4, reverse_complement=True), "GATC", "GATC").parts
    assert [part.name for part in palindrome] == ["GATC"]
    near = sm.explain(Mismatch(k=3, mismatches=1, reverse_complement=True, ignore_case=True), "aagc", "GCTT", top=100)
    assert {part.name for part in near.parts} >= {"AAG/CTT ±1", "AGC/GCT ±1"}
    kernel = Mismatch(k=3, mismatches=1, reverse_complement=True)
    assert near.value == kernel(["AAGC"], ["GCTT"])[0, 0]


def test_an_n_matches_only_another_n():
    spectrum = Spectrum(k=3, reverse_complement=True)
    assert spectrum(["GANTA"], ["GANTA", "GATTA", "GARTA"]).tolist() == [[3, 0, 0]]
    assert spectrum(["NNNN"], ["NNNN", "ACGT"]).tolist() == [[4, 0]]  # two runs of N look alike
    gapped = GappedKmers(5, 3, reverse_complement=True)
    assert gapped(["GANTA"], ["GANTA", "GATTA"]).tolist() == [[10, 4]]  # the choices of 3 of 5 letters; without the N
    assert Mismatch(k=3, mismatches=0)(["GANTA", "GATTA"]).diagonal().tolist() == [0, 3]  # skips windows with N
