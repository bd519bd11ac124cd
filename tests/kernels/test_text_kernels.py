"""Kernels on text: substrings of several lengths, within words, and words, as scikit-learn's vectorizers count them."""

import gzip
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.feature_extraction.text import CountVectorizer

import similia as sm
from naive import similarities as naive
from similia.checks.laws import check_kernel
from similia.kernels import Spectrum, Sum, Words

LAW = settings(max_examples=60, deadline=None)
TEXT = st.lists(st.text(st.sampled_from("abB  \n\t.é_1中"), max_size=16), min_size=1, max_size=5)
LENGTHS = st.sampled_from([(1, 1), (2, 2), (1, 3), (2, 5), (4, 4), (9, 10)])
KERNELS = [
    Spectrum(k=(1, 3)),
    Spectrum(k=(2, 4), reverse_complement=True, ignore_case=True),
    Spectrum(k=(1, 3), boundaries="words"),
    Spectrum(k=2, boundaries="words", ignore_case=True),
    Words(),
    Words(n=(1, 2), min_letters=1, ignore_case=True),
]


def counted(vectorizer, texts):
    """The inner products of scikit-learn's counts; zeros if no text has any."""
    try:
        counts = vectorizer.fit_transform(texts)
    except ValueError as error:
        assert "empty vocabulary" in str(error)  # noqa: PT017
        return np.zeros((len(texts), len(texts)))
    return (counts @ counts.T).toarray()


@LAW
@given(TEXT, LENGTHS)
def test_lengths_within_words_are_char_wb(texts, lengths):
    expected = counted(CountVectorizer(analyzer="char_wb", ngram_range=lengths, lowercase=False), texts)
    np.testing.assert_array_equal(Spectrum(lengths, boundaries="words")(texts), expected)
    if lengths[0] == lengths[1]:
        np.testing.assert_array_equal(Spectrum(lengths[0], boundaries="words")(texts), expected)


@LAW
@given(TEXT, LENGTHS)
def test_lengths_are_char(texts, lengths):
    texts = [" ".join(text.split()) for text in texts]  # scikit-learn reads white space so
    expected = counted(CountVectorizer(analyzer="char", ngram_range=lengths, lowercase=False), texts)
    np.testing.assert_array_equal(Spectrum(lengths)(texts), expected)


@LAW
@given(TEXT, st.sampled_from([(1, 1), (1, 2), (2, 3)]), st.booleans())
def test_words_are_words(texts, lengths, ignore_case):
    expected = counted(CountVectorizer(ngram_range=lengths, lowercase=ignore_case), texts)
    np.testing.assert_array_equal(Words(lengths, ignore_case=ignore_case)(texts), expected)
    short = CountVectorizer(ngram_range=lengths, lowercase=False, token_pattern=r"(?u)\b\w+\b")
    np.testing.assert_array_equal(Words(lengths, min_letters=1)(texts), counted(short, texts))


@LAW
@given(st.lists(st.text("ACGTN", max_size=12), min_size=1, max_size=4), st.booleans())
def test_lengths_add_up(strings, both):
    parts = [Spectrum(k, reverse_complement=both) for k in (2, 3, 4)]
    np.testing.assert_array_equal(Spectrum((2, 4), reverse_complement=both)(strings), Sum(parts)(strings))


def test_by_hand():
    assert naive.kmers("aba", 1) + naive.kmers("aba", 2) == {"a": 2, "b": 1, "ab": 1, "ba": 1}
    assert Spectrum((1, 2))(["aba"]).tolist() == [[7.0]]
    # words " a " and " bc ": three letters are " a ", " bc" and "bc "; five, each word as a whole
    assert Spectrum(3, boundaries="words")(["a bc"], [" a ", "bc", "abc"]).tolist() == [[1.0, 2.0, 1.0]]
    assert Spectrum(5, boundaries="words")(["a  bc"], ["bc a a", "bcd"]).tolist() == [[3.0, 0.0]]
    # "to be" twice, to and be twice each; x is too short
    assert Words((1, 2))(["to be to be"], ["to x be"]).tolist() == [[6.0]]
    assert Words((1, 2), min_letters=1)(["to be to be"], ["to x be"]).tolist() == [[4.0]]


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("normalize", [False, True])
def test_laws_of_a_kernel(kernel, normalize):
    kernel = clone(kernel).set_params(normalize=normalize)
    texts = ["ACGT ACGT", "ACGT acgt", "", "A", "TTTT N", "ACGT ACGT", "A C G"]
    check_kernel(kernel, [text.replace(" ", "N") for text in texts] if kernel_of_dna(kernel) else texts)


def kernel_of_dna(kernel):
    return getattr(kernel, "reverse_complement", False)


@pytest.mark.same_bits
@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_values_depend_neither_on_memory_nor_on_company(kernel):
    texts = ["GATTACA", "ACG TAC G" * 9, "", "TTTT GATTACA", "GAT\tTACA"]
    texts = [text.replace(" ", "").replace("\t", "") for text in texts] if kernel_of_dna(kernel) else texts
    features = kernel.features(texts)
    alone = [kernel.features([text]) for text in texts]
    for i, row in enumerate(alone):
        assert (features[[i]] != row).nnz == 0
    assert (kernel.features([text.encode() for text in texts]) != features).nnz == 0
    with sm.config(max_memory=500):
        assert (kernel.features(texts) != features).nnz == 0


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Spectrum(k=(3, 2)), r"k must be a pair \(least, largest\) that ascends, got \(3, 2\)"),
        (Spectrum(k=(1, 2, 3)), r"k must be a length or a pair \(least, largest\), got \(1, 2, 3\)"),
        (Spectrum(k=(0, 2)), "k must be an integer >= 1, got 0"),
        (Spectrum(boundaries="lines"), "boundaries must be None or 'words', got 'lines'"),
        (Spectrum(boundaries="words", reverse_complement=True), "use only one of them"),
        (Words(n=0), "n must be an integer >= 1, got 0"),
        (Words(min_letters=0), "min_letters must be an integer >= 1, got 0"),
    ],
)
def test_a_wrong_parameter_is_named(kernel, message):
    for use in (kernel, kernel.diag, kernel.features):
        with pytest.raises(ValueError, match=message):
            use(["ACGT", "GATTACA"])


def test_parts_have_their_words():
    found = sm.explain(Words(n=(1, 2)), "To be, or not to be", "not to be", top=100)
    places = {part.name: (part.contribution, part.in_x.tolist()) for part in found.parts}
    assert places["be"] == (2.0, [3, 4, 17, 18])
    assert places["not to"] == (1.0, [10, 11, 12, 13, 14, 15])
    assert set(places) == {"be", "not", "to", "not to", "to be"}
    inside = sm.explain(Spectrum(k=(2, 4), boundaries="words"), "a bee", "bees", top=100)
    assert {part.name: part.in_x.tolist() for part in inside.parts} == {
        "_b": [2], "be": [2, 3], "ee": [3, 4], "_be": [2, 3], "bee": [2, 3, 4], "_bee": [2, 3, 4],
    }  # fmt: skip


def test_real_text(data_folder):
    with gzip.open(data_folder / "strings" / "sms_spam.tsv.gz", "rt", encoding="utf-8") as file:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in itertools.islice(file, 0, 600, 3)]
    ascii_only = [text.encode("ascii", "ignore").decode() for text in texts]  # where both change case alike
    words = CountVectorizer(ngram_range=(1, 2))
    np.testing.assert_array_equal(Words((1, 2), ignore_case=True)(ascii_only), counted(words, ascii_only))
    inside = CountVectorizer(analyzer="char_wb", ngram_range=(1, 5))
    kernel = Spectrum((1, 5), boundaries="words", ignore_case=True)
    np.testing.assert_array_equal(kernel(ascii_only), counted(inside, ascii_only))
