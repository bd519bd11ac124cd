"""The algebra of packed hypervectors against ±1 integers, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from naive import similarities as naive
from similia import codes

seeds = st.integers(0, 2**32 - 1)
# widths on both sides of a 64-bit word
widths = st.sampled_from([8, 56, 64, 72, 120, 128, 136, 1000])
laws = settings(max_examples=40, deadline=None)


@laws
@given(seeds, widths, st.integers(1, 5))
def test_bind_is_the_product_of_signs(seed, n_bits, n):
    a, b = codes.random(n, n_bits, seed), codes.random(n, n_bits, seed + 1)
    np.testing.assert_array_equal(naive.signs(codes.bind(a, b)), naive.signs(a) * naive.signs(b))


@laws
@given(seeds, widths)
def test_bind_laws(seed, n_bits):
    a, b, c = codes.random(3, n_bits, seed)[:, None]
    np.testing.assert_array_equal(codes.bind(a, b), codes.bind(b, a))
    np.testing.assert_array_equal(codes.bind(codes.bind(a, b), c), codes.bind(a, codes.bind(b, c)))
    np.testing.assert_array_equal(codes.bind(codes.bind(a, b), b), a)
    assert codes.similarity(codes.bind(a, c), codes.bind(b, c)) == codes.similarity(a, b)


def test_bind_takes_one_row_with_many():
    many, one = codes.random(3, 16, 0), codes.random(1, 16, 1)
    expected = naive.signs(many) * naive.signs(one)
    np.testing.assert_array_equal(naive.signs(codes.bind(many, one)), expected)
    np.testing.assert_array_equal(naive.signs(codes.bind(one, many)), expected)


@laws
@given(seeds, widths, st.integers(-3000, 3000))
def test_permute_is_a_cyclic_shift_that_can_be_undone(seed, n_bits, shift):
    a, b = codes.random(2, n_bits, seed)[:, None]
    moved = codes.permute(a, shift)
    np.testing.assert_array_equal(naive.signs(moved), np.roll(naive.signs(a), shift, axis=1))
    np.testing.assert_array_equal(codes.permute(moved, -shift), a)
    np.testing.assert_array_equal(codes.permute(codes.bind(a, b), shift), codes.bind(moved, codes.permute(b, shift)))
    assert codes.similarity(moved, codes.permute(b, shift)) == codes.similarity(a, b)


@laws
@given(seeds, widths, st.integers(1, 40))
def test_bundle_is_the_majority_with_seeded_ties(seed, n_bits, n):
    members = codes.random(n, n_bits, seed)
    sums = naive.signs(members).sum(axis=0, keepdims=True)
    counts = codes.bundle(members, output="counts")
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, sums)
    bits = codes.bundle(members, random_state=7)
    ties = naive.signs(codes.random(1, n_bits, 7))
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(sums, ties))
    np.testing.assert_array_equal(bits, codes.bundle(members[::-1], random_state=7))


@pytest.mark.parametrize("n", [255, 256, 257, 1023, 1024])
def test_bundle_of_equal_codes_carries_through_all_planes(n):
    code = codes.random(1, 72, 0)
    np.testing.assert_array_equal(codes.bundle(np.repeat(code, n, axis=0), output="counts"), n * naive.signs(code))


@laws
@given(seeds, st.lists(st.integers(-5, 5), min_size=1, max_size=9))
def test_weighted_bundle_is_the_weighted_sum(seed, weights):
    members = codes.random(len(weights), 72, seed)
    sums = np.array(weights)[None] @ naive.signs(members)
    np.testing.assert_array_equal(codes.bundle(members, weights, output="counts"), sums)
    ties = naive.signs(codes.random(1, 72, 7))
    bits = codes.bundle(members, weights, random_state=7)
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(sums, ties))


def test_ties_differ_between_seeds():
    members = codes.random(2, 1024, 0)
    assert (codes.bundle(members, random_state=1) != codes.bundle(members, random_state=2)).any()


def test_bundle_is_like_each_member_and_unlike_others():
    drawn = codes.random(6, 10_000, 0)
    likeness = codes.similarity(codes.bundle(drawn[:5]), drawn)[0]
    # for five members each agrees with the majority with probability 11 / 16: cosine 3 / 8
    np.testing.assert_allclose(likeness[:5], 0.375, atol=0.05)
    assert abs(likeness[5]) < 0.05


@laws
@given(seeds, widths)
def test_similarity_is_the_cosine(seed, n_bits):
    a, b = codes.random(3, n_bits, seed), codes.random(4, n_bits, seed + 1)
    np.testing.assert_allclose(codes.similarity(a, b), naive.signs(a) @ naive.signs(b).T / n_bits, rtol=1e-15)
    assert (np.diag(codes.similarity(a)) == 1).all()
    assert (np.diag(codes.similarity(a, ~a)) == -1).all()


def test_random_codes_are_unlike_on_average():
    drawn = codes.similarity(codes.random(200, 1024, 0))
    pairs = drawn[np.triu_indices(200, 1)]
    # 19,900 nearly independent pairs of standard deviation 1 / 32
    assert abs(pairs.mean()) < 5 / 32 / np.sqrt(len(pairs))
    assert abs(pairs.std() * 32 - 1) < 0.03


@laws
@given(seeds, st.integers(2, 30), st.sampled_from([8, 64, 1000, 1024]))
def test_levels_fall_linearly_from_one_to_zero(seed, n, n_bits):
    likeness = codes.similarity(codes.level(n, n_bits, seed))
    steps = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    # both ends of the difference are rounded to whole bits, and a bit weighs 2 / n_bits
    np.testing.assert_allclose(likeness, 1 - steps / (n - 1), atol=2.001 / n_bits)
    assert likeness[0, -1] == 0


def test_one_level_is_one_code():
    assert codes.level(1, 64, 0).shape == (1, 8)


def test_seeds_reproduce():
    for draw in (codes.random, codes.level):
        np.testing.assert_array_equal(draw(4, 64, 3), draw(4, 64, np.random.default_rng(3)))
        assert (draw(4, 64, 3) != draw(4, 64, 4)).any()


def test_arguments_are_not_changed_and_may_be_read_only():
    a, b = codes.random(2, 72, 0)[:, None]
    for array in (a, b):
        array.flags.writeable = False
    before = a.copy()
    results = codes.bind(a, b), codes.permute(a, 8), codes.permute(a, 0), codes.bundle(a), codes.similarity(a, b)
    for result in results:
        assert not np.shares_memory(result, a)
    np.testing.assert_array_equal(a, before)


A = codes.random(2, 64, 0)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: codes.random(0, 64), "n must be an integer >= 1, got 0"),
        (lambda: codes.random(3, 10), "n_bits must be a multiple of 8 .* use n_bits=16"),
        (lambda: codes.level(2.5, 64), "n must be an integer >= 1, got 2.5"),
        (lambda: codes.bind(A, codes.random(2, 72)), "B have 72 bits, expected 64"),
        (lambda: codes.bind(A, codes.random(3, 64)), "got 2 and 3 rows"),
        (lambda: codes.bind(A.astype(float), A), "A must be packed bits, .* got dtype float64"),
        (lambda: codes.bind(A[0], A), r"A must be packed bits, .* shape \(8,\); write one code as codes\[:1\]"),
        (lambda: codes.permute(A[0]), r"write one code as codes\[:1\]"),
        (lambda: codes.bundle(A[0]), r"write one code as codes\[:1\]"),
        (lambda: codes.similarity(A, A[0]), r"B must be packed bits, .* write one code as codes\[:1\]"),
        (lambda: codes.permute(A, 1.5), "shift must be an integer number of bit positions, got 1.5"),
        (lambda: codes.similarity(A, codes.random(1, 8)), "B have 8 bits, expected 64"),
        (lambda: codes.bundle(A[:0]), "codes is empty: found 0 codes"),
        (lambda: codes.bundle(A, output="bit"), "output must be 'bits' .* got 'bit'"),
        (lambda: codes.bundle(A, [1]), r"weights must be 2 integers, .* got shape \(1,\)"),
        (lambda: codes.bundle(A, [0.5, 1]), "weights must be 2 integers, .* of float64; scale and round"),
        (lambda: codes.bundle(A, [2**30, 2**30]), "add up to 2\\*\\*31 or more"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
