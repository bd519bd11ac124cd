"""Sums over the columns of embeddings of series, split by time: by twins, by their sum, and what is refused."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import similia as sm
from naive import time_shares as naive
from similia.embeddings import Hydra
from similia.embeddings.intervals import differences

EMBEDDINGS = [
    sm.RandomConvolutions(2 * 84, random_state=0),
    sm.RandomConvolutions(2 * 672, "multirocket", 0),
    Hydra(3, 4, random_state=0),
    sm.IntervalQuantiles(4),
]


def numbers(embedding, X, seed=0):
    """Weights, and means of the columns in training."""
    weights = np.random.default_rng(seed).normal(size=embedding._n_features_out)
    return weights, embedding.transform(X).astype(np.float64).mean(axis=0)


@pytest.mark.parametrize("family", ["minirocket", "multirocket"])
@pytest.mark.parametrize("n_channels", [1, 3])
def test_poolings_are_split_as_by_the_twin(family, n_channels):
    rng = np.random.default_rng(0)
    X = [rng.integers(-4, 5, (n, n_channels)) * 1.0 for n in (30, 1, 2, 21)]  # whole numbers: equal outputs
    X[-1][10:18] = 3
    embedding = sm.RandomConvolutions(84 if family == "minirocket" else 672, family, 0).fit(X)
    embedding.exponent_ = 0  # the twin reads the numbers as they are
    weights, centre = numbers(embedding, X)
    kernels, steps = embedding.kernels_, embedding.difference_kernels_
    for x in X:
        width = len(weights) // (1 if steps is None else 2)
        halves = [np.reshape(a[:width], (-1, len(kernels.biases))) for a in (weights, centre)]
        expected = naive.of_convolutions(x, kernels, *halves)
        if steps is not None:
            halves = [np.reshape(a[width:], (-1, len(steps.biases))) for a in (weights, centre)]
            found = naive.of_convolutions(differences(x), steps, *halves)
            expected += naive.halved(found) if len(x) > 1 else found
        np.testing.assert_allclose(embedding.time_shares([x], weights, centre), expected, atol=1e-5)


@pytest.mark.parametrize("n_channels", [1, 3])
def test_wins_are_split_as_by_the_twin(n_channels):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, n_channels)).astype(np.float32) for n in (40, 2, 7, 25)]
    embedding = Hydra(3, 4, random_state=0).fit(X)
    weights, centre = numbers(embedding, X)
    shape = (*embedding.weights_.shape[:2], 2, 4)
    for x in X:
        arrays = embedding.weights_, embedding.channels_, weights.reshape(shape), centre.reshape(shape)
        np.testing.assert_allclose(embedding.time_shares([x], weights, centre), naive.of_hydra(x, *arrays), atol=1e-4)


def test_quantiles_are_split_as_their_names_say():
    X = np.random.default_rng(0).normal(size=(5, 33, 2))
    embedding = sm.IntervalQuantiles(4).fit(list(X))
    weights, centre = numbers(embedding, list(X))
    amounts = (embedding.transform(list(X[:1]))[0] - centre) * weights
    expected = naive.of_intervals(X[0], embedding.get_feature_names_out(), amounts)
    np.testing.assert_allclose(embedding.time_shares(list(X[:1]), weights, centre), expected, atol=1e-5)
    frames = embedding.set_output(transform="pandas")
    np.testing.assert_allclose(frames.time_shares(list(X[:1]), weights, centre), expected, atol=1e-5)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(EMBEDDINGS), st.integers(1, 3), st.integers(1, 50), st.integers(0, 99), st.booleans())
def test_shares_add_up_to_the_weighted_sum_of_columns(embedding, n_channels, length, seed, flat):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(n, n_channels)).cumsum(axis=0) for n in rng.integers(1, 50, 6)]
    x = np.ones((length, n_channels)) if flat else rng.normal(size=(length, n_channels))
    embedding.fit(X)
    weights, centre = numbers(embedding, X, seed)
    row = embedding.transform([x])[0].astype(np.float64)
    for terms, shares in (
        ((row - centre) * weights, embedding.time_shares([x], weights, centre)),
        (row * weights, embedding.time_shares(sm.objects.as_series([x]), weights)),
    ):
        assert shares.shape == x.shape
        assert abs(shares.sum() - terms.sum()) <= 1e-6 * max(1.0, np.abs(terms).sum())


@pytest.mark.parametrize("embedding", EMBEDDINGS, ids=lambda e: type(e).__name__)
def test_what_cannot_be_split_is_one_sentence(embedding):
    X = [np.arange(20.0), np.arange(30.0) ** 0.5]
    embedding.fit(X)
    n = embedding._n_features_out
    with pytest.raises(ValueError, match="X has 2 series, expected one"):
        embedding.time_shares(X, np.ones(n))
    with pytest.raises(ValueError, match=rf"weights has shape \(3,\), expected one number for each of {n} columns"):
        embedding.time_shares(X[:1], [1, 2, 3])
    with pytest.raises(ValueError, match=r"centre\[4\] is NaN or infinity, expected a finite number"):
        embedding.time_shares(X[:1], np.ones(n), np.where(np.arange(n) == 4, np.nan, 0))
    with pytest.raises(ValueError, match=r"2 channels.*1 as in fit"):
        embedding.time_shares([np.ones((9, 2))], np.ones(n))
