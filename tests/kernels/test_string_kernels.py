"""String kernels: reference values, slow twins, and the laws of kernels with features."""

from __future__ import annotations

import csv
import gzip
import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import similia as sm
from naive import similarities as naive
from similia.checks.laws import check_kernel
from similia.cli.options import parse_kernel
from similia.kernels import GappedKmers, GappyKmers, MinMax, Mismatch, Spectrum, Sum, WeightedDegree, Words

LAW = settings(max_examples=40, deadline=None)
# few letters, so that k-mers repeat; one beyond a byte, one beyond 16 bits, and the zero byte
LETTERS = st.sampled_from("\0Aaé中𝒜")
STRINGS = st.lists(st.text(LETTERS, max_size=14), min_size=1, max_size=5)
DNA = st.lists(st.text("ACGTN", max_size=14), min_size=1, max_size=4)
KERNELS = [
    Spectrum(k=2),
    GappyKmers(k=4, gaps=1),
    GappyKmers(k=2, gaps=3, merge=False),
    GappedKmers(4, 2),
    GappedKmers(4, 2, "forgotten"),
    Mismatch(k=3, mismatches=1),
    WeightedDegree(degree=3),
]

with open(Path(__file__).parents[1] / "reference" / "C_string_kernels.csv", newline="") as file:
    ROWS = list(csv.DictReader(file))
KERNEL_OF_ROW = {
    "spectrum": lambda k, g: Spectrum(k),
    "mismatch": lambda k, g: Mismatch(k, g),
    "leslie_kuang_gappy": lambda k, g: GappedKmers(k + g, k, "forgotten"),
    "gappy_pair_merged": lambda k, g: GappyKmers(k, g),
    "gappy_pair_half4_merged": lambda k, g: GappyKmers(k, g),
    "gappy_pair_distinct": lambda k, g: GappyKmers(k, g, merge=False),
}
TWIN_OF_ROW = {  # definitions the library leaves out; their rows show that the twins count rightly
    "leslie_kuang_gappy_multiplicity": lambda x, k, g: naive.gappy_windows(x, k, g, once=False),
    "gappy_span": naive.gappy_spans,
}


def gram(strings, features_of):
    """Gram matrix of a slow twin that gives the features of one string."""
    features = [features_of(x) for x in strings]
    return np.array([[naive.sparse_inner_product(a, b) for b in features] for a in features], dtype=float)


def values_of(row):
    return [[float(row["K_xx"]), float(row["value"])], [float(row["value"]), float(row["K_yy"])]]


@pytest.mark.parametrize("name", KERNEL_OF_ROW)
def test_reference_values(name):
    rows = [row for row in ROWS if row["kernel"] == name]
    assert rows
    for row in rows:
        kernel = KERNEL_OF_ROW[name](int(row["k"]), int(row["g"]))
        assert kernel([row["x"], row["y"]]).tolist() == values_of(row), row


@pytest.mark.parametrize("name", TWIN_OF_ROW)
def test_reference_values_of_the_twins(name):
    rows = [row for row in ROWS if row["kernel"] == name]
    assert rows
    for row in rows:
        twin = gram([row["x"], row["y"]], lambda s, r=row: TWIN_OF_ROW[name](s, int(r["k"]), int(r["g"])))
        assert twin.tolist() == values_of(row), row


def test_pairs_at_the_end_of_a_string_are_not_dropped_as_a_known_package_does():
    rows = [row for row in ROWS if row["kernel"] == "gappy_pair_distinct_strkernel_bug"]
    ours = [GappyKmers(k=4, gaps=1, merge=False).diag([row["x"]])[0] for row in rows]
    theirs = [float(row["K_xx"]) for row in rows]
    assert all(a >= b for a, b in zip(ours, theirs, strict=True))
    assert ours != theirs


def test_every_row_of_the_reference_is_used():
    used = {*KERNEL_OF_ROW, *TWIN_OF_ROW, "gappy_pair_distinct_strkernel_bug"}
    assert {row["kernel"] for row in ROWS} == used


@LAW
@given(STRINGS, st.integers(1, 11))
def test_spectrum_is_its_definition(strings, k):
    np.testing.assert_array_equal(Spectrum(k)(strings), gram(strings, lambda x: naive.kmers(x, k)))


@LAW
@given(STRINGS, st.sampled_from([2, 4, 10]), st.integers(0, 3), st.booleans())
def test_gappy_pairs_are_their_definition(strings, k, gaps, merge):
    twin = gram(strings, lambda x: naive.gappy_pairs(x, k, gaps, merge))
    np.testing.assert_array_equal(GappyKmers(k, gaps, merge=merge)(strings), twin)


@LAW
@given(STRINGS, st.integers(1, 4), st.integers(0, 3))
def test_gappy_windows_are_their_definition(strings, k, gaps):
    twin = gram(strings, lambda x: naive.gappy_windows(x, k, gaps))
    np.testing.assert_array_equal(GappedKmers(k + gaps, k, "forgotten")(strings), twin)


@LAW
@given(DNA, st.integers(1, 4), st.integers(0, 2))
def test_mismatch_is_its_definition(strings, k, mismatches):
    mismatches = min(k, mismatches)
    twin = gram(strings, lambda x: naive.mismatch(x, k, mismatches, "ACGT"))
    np.testing.assert_array_equal(Mismatch(k, mismatches)(strings), twin)


@pytest.mark.parametrize("alphabet", ["中Aé", "A中", b"AB\xff"])
def test_mismatch_over_another_alphabet(alphabet):
    letters = alphabet if isinstance(alphabet, str) else alphabet.decode("latin-1")
    strings = [letters * 3, letters[::-1] * 2 + "?" + letters, "???"]
    X = strings if isinstance(alphabet, str) else [s.encode("latin-1") for s in strings]
    for k, m in ((2, 1), (3, 2), (9, 1)):
        expected = [[sum_over_neighbours(x, y, k, m, letters) for y in strings] for x in strings]
        np.testing.assert_array_equal(Mismatch(k, m, alphabet)(X), expected)


def sum_over_neighbours(x, y, k, m, letters):
    """Mismatch kernel from pairs of windows: how many k-mers are close to both."""
    windows = [[s[i : i + k] for i in range(len(s) - k + 1) if set(s[i : i + k]) <= set(letters)] for s in (x, y)]
    balls = [[set(ball(w, m, letters)) for w in side] for side in windows]
    return sum(len(a & b) for a in balls[0] for b in balls[1])


def ball(word, m, letters):
    yield word
    if m > 0:
        for i in range(len(word)):
            for letter in letters:
                yield from ball(word[:i] + letter + word[i + 1 :], m - 1, letters)


@LAW
@given(STRINGS, st.integers(1, 10))
def test_weighted_degree_is_its_definition(strings, degree):
    twin = [[naive.weighted_degree(x, y, degree) for y in strings] for x in strings]
    np.testing.assert_array_equal(WeightedDegree(degree)(strings), twin)


@LAW
@given(DNA)
def test_special_cases_meet(strings):
    spectrum = Spectrum(k=4)(strings)
    np.testing.assert_array_equal(GappyKmers(k=4, gaps=0)(strings), spectrum)
    np.testing.assert_array_equal(GappyKmers(k=4, gaps=0, merge=False)(strings), spectrum)
    np.testing.assert_array_equal(GappedKmers(4, 4, "forgotten")(strings), spectrum)
    np.testing.assert_array_equal(Mismatch(k=4, mismatches=0, alphabet="ACGTN")(strings), spectrum)
    equal = [[sum(p == q for p, q in zip(x, y, strict=False)) for y in strings] for x in strings]
    np.testing.assert_array_equal(WeightedDegree(degree=1)(strings), equal)
    ids = Spectrum(k=4).features(strings)
    for same in (GappyKmers(gaps=0), GappyKmers(gaps=0, merge=False), GappedKmers(4, 4, "forgotten")):
        assert (same.features(strings) != ids).nnz == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_laws_of_a_kernel(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    strings = ["GATTACA", "GATTTACA", "", "A", "ACGTACGTACGT", "GATTACA", "TTTTTTTT", "NNNN"]
    check_kernel(kernel, strings)
    K = kernel(strings)
    assert K.dtype == np.float64
    if normalize:
        np.testing.assert_array_equal(K.diagonal(), 1.0)
        np.testing.assert_array_equal(K[2, :2], 0.0)
        assert K.max() <= 1 + 1e-12


@pytest.mark.same_bits
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_do_not_depend_on_the_working_memory(kernel):
    strings = ["GATTACA", "", "GATTTACAGATTACA" * 5, "ACGT", "TTTTTTTT"]
    whole = kernel(strings)
    features = kernel.features(strings)
    with sm.config(max_memory=2000):
        np.testing.assert_array_equal(kernel(strings), whole)
        assert (kernel.features(strings) != features).nnz == 0


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_features_give_the_gram_matrix(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    strings = ["GATTACA", "GATTTACA", "ACGTACGTACGT", "CCCC"]
    features = kernel.features(strings, n_features=2**31 - 1)
    assert features.shape == (4, 2**31 - 1)
    assert features.indices.dtype == np.int32
    dense = np.zeros((4, len(columns := np.unique(features.indices))))
    for i in range(4):
        row = slice(features.indptr[i], features.indptr[i + 1])
        dense[i, np.searchsorted(columns, features.indices[row])] = features.data[row]
    np.testing.assert_allclose(dense @ dense.T, kernel(strings), rtol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_text_and_bytes_are_alike_in_any_company(kernel):
    strings = ["GATTACA", "ACGTéé", "\x00A\x00AA"]
    alone = kernel.features(strings)
    as_bytes = kernel.features([s.encode("latin-1") for s in strings])
    in_company = kernel.features([*strings, "𝒜中"])[:3]  # four bytes for each letter
    assert (alone != as_bytes).nnz == 0
    assert (alone != in_company).nnz == 0


@pytest.mark.parametrize("kernel", [*KERNELS, MinMax(Sum([Spectrum(1), Spectrum(2)]))], ids=repr)
def test_text_is_compared_with_ascii_bytes_only(kernel):
    X, Y = ["GATTACA", "ACGT"], [b"GATT"]
    np.testing.assert_array_equal(kernel(X, Y), kernel(X, ["GATT"]))
    for strings in (["GATTACA", "é"], ["GATTACA"]):
        with pytest.raises(TypeError, match=r"X holds str and Y bytes, expected one kind; use bytes\.decode"):
            kernel(strings, ["é".encode()])
    with pytest.raises(TypeError, match="X holds str and Y bytes"):
        kernel.paired(["é"], [b"GATTACA"], [0], [0])
    model = sm.Nystroem(kernel, 2, random_state=0).fit(X)
    with pytest.raises(TypeError, match="X holds bytes and Y str"):
        model.transform(["é".encode()])
    fast = kernel._for_one(model.landmarks_) if hasattr(kernel, "_for_one") else None
    assert fast is None or fast(kernel.as_objects(["GATTé".encode()])) is None  # and so the call above decides


def test_features_are_the_same_in_another_process():
    kernels = (
        "Spectrum(2)", "GappyKmers()", "GappedKmers(5, 4)", "GappedKmers(5, 4, 'forgotten')", "Mismatch()",
        "WeightedDegree()",
    )  # fmt: skip
    print_them = (
        "from similia import kernels\n"
        f"for k in ({', '.join('kernels.' + kernel for kernel in kernels)}):\n"
        "    print(*k.features(['GATTACA', 'ACGTé中é中', 'ACGT' * 5], 10**9).indices)"
    )
    output = subprocess.run([sys.executable, "-c", print_them], capture_output=True, text=True, check=True).stdout
    here = [
        " ".join(map(str, parse_kernel(kernel).features(["GATTACA", "ACGTé中é中", "ACGT" * 5], 10**9).indices))
        for kernel in kernels
    ]
    assert output.splitlines() == here


def test_short_byte_kmers_never_collide():
    pairs = [bytes([a, b]) for a in range(256) for b in range(0, 256, 5)]
    ids = Spectrum(k=2)._counts(Spectrum(k=2).as_objects(pairs)).ids
    assert len(np.unique(ids)) == len(pairs)
    # The digits of 2**64 in base 257, which would be 0 there.
    assert Spectrum(k=8)([bytes([249, 27, 201, 69, 201, 27, 249, 1])], [bytes(8)]).tolist() == [[0.0]]


def test_kmers_that_bytes_cannot_hold_are_told_apart():
    # in base 256, nine letters lose the first one, and A中 (0x41, 0x4E2D) carries over to 0x8F, 0x2D
    assert Spectrum(k=9)(["AXXXXXXXX"], ["BXXXXXXXX"]).tolist() == [[0.0]]
    assert Spectrum(k=2)(["A中"], ["\x8f\x2d"]).tolist() == [[0.0]]
    assert Spectrum(k=2)(["A中"], ["xA中"]).tolist() == [[1.0]]


def test_case_is_kept_and_mixed_case_is_allowed():
    assert Spectrum(k=2)(["AC"], ["ac"]).tolist() == [[0.0]]
    assert Mismatch(k=2, mismatches=0)(["ACGTacgt", "", "NN"]).tolist() == [[3, 0, 0], [0, 0, 0], [0, 0, 0]]
    with pytest.raises(ValueError, match=r"X\[2\] has no letter of Mismatch\(alphabet='ACGT'\), but such"):
        Mismatch()(["ACGTacgt", "NN", "nacgt"])


def test_letters_outside_the_alphabet_are_skipped_by_mismatch_alone():
    assert Mismatch(k=2, mismatches=0)(["ACNGT"]).tolist() == [[2.0]]
    assert Spectrum(k=2)(["ACNGT"]).tolist() == [[4.0]]


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Spectrum(k=0), "k must be an integer >= 1, got 0"),
        (Spectrum(k=2.5), "k must be an integer >= 1, got 2.5"),
        (GappyKmers(k=3), r"k must be even \(two halves\), got 3; use k=4 or GappedKmers"),
        (GappyKmers(gaps=-1), "gaps must be an integer >= 0, got -1"),
        (GappedKmers(positions="both"), "positions must be 'kept' or 'forgotten', got 'both'"),
        (GappedKmers(20, 10), "gives each window 184756 features, expected at most 5000"),
        (GappedKmers(3, 4), "informative must be at most length=3, got 4"),
        (GappedKmers(0, 0), "length must be an integer >= 1, got 0"),
        (GappedKmers(center_weight=256), "center_weight must be at most 255, got 256"),
        (GappedKmers(half_life=0), "half_life must be a positive number, got 0"),
        (Mismatch(k=2, mismatches=3), "mismatches must be at most k=2, got 3"),
        (Mismatch(alphabet="ACCA"), r"Mismatch\(alphabet=\.\.\.\) must hold each letter once, got 'ACCA'"),
        (Mismatch(alphabet=""), r"Mismatch\(alphabet=\.\.\.\) must be a string of letters such as 'ACGT', got ''"),
        (Mismatch(k=20, mismatches=6), "neighbours, expected at most 100000"),
        (
            Mismatch(alphabet="acgt"),
            r"X\[0\] has no letter of .*; use Mismatch\(alphabet='ACGT'\) or Mismatch\(ignore_case=True\)$",
        ),
        (WeightedDegree(degree=0), "degree must be an integer >= 1, got 0"),
        (WeightedDegree(degree=256), "degree must be at most 255, got 256"),
    ],
)
def test_a_wrong_parameter_is_named(kernel, message):
    for use in (kernel, kernel.diag, kernel.features):
        with pytest.raises(ValueError, match=message):
            use(["ACGT", "GATTACA"])


def test_a_wrong_object_is_named():
    with pytest.raises(TypeError, match=r"X\[1\] is int"):
        Spectrum()(["ACGT", 3])
    with pytest.raises(TypeError, match="is one string"):
        Spectrum()("ACGT")
    with pytest.raises(ValueError, match="empty"):
        Spectrum()([])


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_collections_without_any_feature(kernel):
    np.testing.assert_array_equal(kernel(["", ""]), np.zeros((2, 2)))
    np.testing.assert_array_equal(kernel(["", ""], ["ACGTACGT"]), np.zeros((2, 1)))
    np.testing.assert_array_equal(kernel.diag([""]), [0.0])
    assert kernel.features([""]).nnz == 0


@pytest.mark.parametrize("large", [50, 10**12, 10**30])
def test_lengths_beyond_those_of_all_strings_take_no_memory(large):
    X = ["GATTACA", "", "ACGTACGT"]
    for kernel in (Spectrum(large), GappyKmers(large), GappyKmers(large, large), Mismatch(large, 0)):
        np.testing.assert_array_equal(kernel(X), np.zeros((3, 3)))
    for bounds in ({}, {"boundaries": "words"}, {"reverse_complement": True}):
        for pair, same in (((1, large), (1, 10)), ((large, large), (20, 20))):
            np.testing.assert_array_equal(Spectrum(pair, **bounds)(X), Spectrum(same, **bounds)(X))
    for merge in (False, True):
        np.testing.assert_array_equal(GappyKmers(4, large, merge)(X), GappyKmers(4, 4, merge)(X))
    np.testing.assert_array_equal(Words((1, large))(["to be or not to be"]), Words((1, 6))(["to be or not to be"]))


@pytest.mark.parametrize("name", ["promoters", "splice", "sms_spam", "multiloc_proteins"])
def test_real_strings_against_the_twins(data_folder, name):
    with gzip.open(data_folder / "strings" / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        strings = [line.rstrip("\n").split("\t", 1)[1] for line in itertools.islice(file, 0, 100, 5)]
    pairs = gram(strings, lambda x: naive.gappy_pairs(x, 4, 1, merge=True))
    windows = gram(strings, lambda x: naive.gappy_windows(x, 4, 1))
    np.testing.assert_array_equal(GappyKmers(k=4, gaps=1)(strings), pairs)
    np.testing.assert_array_equal(GappedKmers(5, 4, "forgotten")(strings), windows)


@pytest.mark.parametrize("positions", ["kept", "forgotten"])
@pytest.mark.parametrize("normalize", [True, False])
def test_gapped_self_values_are_those_of_blocks(positions, normalize):
    kernel = sm.kernels.GappedKmers(5, 4, positions, normalize=normalize)
    X = ["GATTACA", "ACA", "", "GATTAC", "ACCGTTGA"]
    np.testing.assert_allclose(kernel._self_values(X), np.diag(kernel(X, list(X))), rtol=1e-12)
    with pytest.raises((TypeError, ValueError), match="length"):
        sm.kernels.GappedKmers("5", 4, positions, normalize=normalize)._self_values(X)
