"""Laws of feature counts: the dense twin, empty objects, weights, folded features, blocks."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import similarities as naive
from similia.core.hashing import combine, mix
from similia.kernels.counts import (
    Counts,
    count,
    inner_products,
    number_ids,
    paired_products,
    products_with,
    scale_by_norms,
)

# Small ids (all in one region of the hash table), ids near 2**64, and a few that repeat often.
ID = st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1), st.integers(2**64 - 4, 2**64 - 1))
OBJECTS = st.lists(st.lists(ID, max_size=12), min_size=1, max_size=9)
laws = settings(max_examples=40, deadline=None)


def counted(objects):
    offsets = np.cumsum([0, *map(len, objects)])
    return count(np.array([i for x in objects for i in x], dtype=np.uint64), offsets)


def weigh(i):
    return i % 7 + 1


def weighted(objects, weight=weigh):
    c = counted(objects)
    return Counts(c.offsets, c.ids, c.values, np.array([weight(int(i)) for i in c.ids], dtype=np.float64))


def expected(X, Y, weight=None):
    weights = weight and {i: weight(i) for x in X for i in x}
    return np.array([[naive.sparse_inner_product(x, y, weights) for y in Y] for x in X], dtype=float)


@laws
@given(OBJECTS)
def test_count_is_a_histogram_of_each_object(objects):
    c = counted(objects)
    for i, ids in enumerate(objects):
        part = slice(c.offsets[i], c.offsets[i + 1])
        assert dict(zip(c.ids[part].tolist(), c.values[part], strict=True)) == naive.collections.Counter(ids)
        assert len(set(ids)) == c.offsets[i + 1] - c.offsets[i]


@laws
@given(st.lists(ID))
def test_number_ids(ids):
    distinct, numbers = number_ids(np.array(ids, dtype=np.uint64))
    assert distinct.tolist() == list(dict.fromkeys(ids))
    assert distinct[numbers].tolist() == ids


@laws
@given(OBJECTS, OBJECTS)
def test_inner_products_equal_sums_over_dictionaries(X, Y):
    np.testing.assert_array_equal(inner_products(counted(X), counted(Y)), expected(X, Y))
    A = counted(X)
    np.testing.assert_array_equal(inner_products(A, A), expected(X, X))
    np.testing.assert_array_equal(A.squared_norms, np.diag(expected(X, X)))


@laws
@given(OBJECTS, OBJECTS)
def test_weights_count_once(X, Y):
    A, B = weighted(X), weighted(Y)
    np.testing.assert_array_equal(inner_products(A, B), expected(X, Y, weigh))
    np.testing.assert_array_equal(inner_products(A, A), expected(X, X, weigh))
    np.testing.assert_array_equal(A.squared_norms, np.diag(expected(X, X, weigh)))


@laws
@given(OBJECTS)
def test_fractional_weights(X):
    A = weighted(X, lambda i: 1 / weigh(i))
    np.testing.assert_allclose(inner_products(A, A), expected(X, X, lambda i: 1 / weigh(i)), rtol=1e-12)


@pytest.mark.parametrize("cost", [0, 3, 10**9], ids=["all sparse", "both", "all dense"])
def test_dense_and_sparse_columns_agree(cost, monkeypatch):
    rng = np.random.default_rng(0)
    X = [rng.zipf(1.5, rng.integers(0, 40)).clip(0, 60).tolist() for _ in range(50)]
    monkeypatch.setattr("similia.kernels.counts._SPARSE_TO_DENSE_COST", cost)
    np.testing.assert_array_equal(inner_products(counted(X), counted(X[:7])), expected(X, X[:7]))


@pytest.mark.parametrize("repeats", [10, 3000, 5000])
def test_counts_stay_exact_beyond_float32(repeats):
    """4096**2 = 2**24: above it float32 has holes, so an odd value shows which dtype was used."""
    X = [[1] * repeats + [2], [1] * (repeats + 1) + [2] * 3] * 3
    np.testing.assert_array_equal(inner_products(counted(X), counted(X)), expected(X, X))


@pytest.mark.same_bits
def test_blocks_do_not_change_values():
    rng = np.random.default_rng(1)
    A = counted([rng.integers(0, 30, 25).tolist() for _ in range(600)])
    whole = inner_products(A, A)
    with sm.config(max_memory="4KiB"):
        np.testing.assert_array_equal(inner_products(A, A), whole)


@laws
@given(OBJECTS, OBJECTS, st.data())
def test_products_of_chosen_pairs(X, Y, data):
    rows = np.array(data.draw(st.lists(st.integers(0, len(X) - 1))), dtype=np.int64)
    columns = np.array([data.draw(st.integers(0, len(Y) - 1)) for _ in rows], dtype=np.int64)
    whole = expected(X, Y)
    np.testing.assert_array_equal(paired_products(counted(X), counted(Y), rows, columns), whole[rows, columns])


@pytest.mark.parametrize("wrong", [-1, 2])
def test_positions_of_pairs_are_checked(wrong):
    A = counted([[1], [2]])
    with pytest.raises(ValueError, match="rows must be positions of 2 objects"):
        paired_products(A, A, np.array([0, wrong]), np.array([0, 0]))


@laws
@given(OBJECTS, OBJECTS, st.booleans())
def test_products_of_one_object_with_an_index(X, Y, normalize):
    products = products_with(counted(Y), normalize)
    for x in X:
        own, norms = expected([x], [x])[0, 0], np.diag(expected(Y, Y))
        row = expected([x], Y)
        if normalize:
            row = row / np.where(own * norms > 0, np.sqrt(own * norms), 1.0)
        np.testing.assert_allclose(products(np.array(x, dtype=np.uint64)), row, rtol=1e-15)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_values_are_scaled_by_norms_whose_product_under_or_overflows(size):
    K = size * np.array([[4.0, 3.0, 0.0], [3.0, 9.0, 0.0], [0.0, 0.0, 0.0]])
    kxx = np.diag(K).copy()
    scale_by_norms(K, kxx, kxx, same=True)
    np.testing.assert_allclose(K, [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]], rtol=1e-15)


def test_objects_without_features():
    nothing = counted([[], []])
    some = counted([[1, 2], []])
    np.testing.assert_array_equal(inner_products(nothing, nothing), np.zeros((2, 2)))
    np.testing.assert_array_equal(inner_products(some, nothing), np.zeros((2, 2)))
    np.testing.assert_array_equal(some.squared_norms, [2, 0])
    assert nothing.hashed(8).nnz == 0


@laws
@given(OBJECTS, st.integers(1, 40))
def test_folded_features_add_up_ids_of_one_column(X, n_features):
    c = weighted(X)
    folded = np.zeros((len(X), n_features))
    for i, ids in enumerate(X):
        for x in ids:
            folded[i, x % n_features] += np.sqrt(weigh(x))
    features = c.hashed(n_features)
    np.testing.assert_allclose(features.toarray(), folded, rtol=1e-12)
    assert features.indices.dtype == np.int32
    assert features.has_canonical_format


def test_folding_leaves_the_counts_alone():
    c = counted([[8, 0, 8]])
    values = c.values.copy()
    c.hashed(4).data[:] = 0
    np.testing.assert_array_equal(c.values, values)


def test_inputs_may_be_read_only_and_stay_as_they_are():
    ids = np.array([3, 1, 3], dtype=np.uint64)
    offsets = np.array([0, 3])
    ids.setflags(write=False)
    offsets.setflags(write=False)
    c = count(ids, offsets)
    assert inner_products(c, c).tolist() == [[5.0]]


@laws
@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_hashes_are_splitmix(x, y):
    assert int(mix(np.uint64(x))) == naive.splitmix(x)
    assert int(combine(np.uint64(x), np.uint64(y))) == naive.combined(x, y)


def test_splitmix_known_values():
    """First outputs of the splitmix64 generator from state 0, as printed in many implementations."""
    assert [naive.splitmix(k * 0x9E3779B97F4A7C15 % 2**64) for k in range(3)] == [
        0xE220A8397B1DCDAF,
        0x6E789E6AA1B965F4,
        0x06C45D188009454F,
    ]
