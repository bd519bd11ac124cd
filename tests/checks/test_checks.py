"""The checks: good ones pass, and each law can fail with a sentence that names it."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.checks.laws import check_codes, check_distance, check_embedding, check_kernel

X = np.random.default_rng(0).normal(size=(7, 3))


def linear(X, Y=None):
    return X @ (X if Y is None else Y).T


def absolute(X, Y=None):
    return np.abs(X[:, None] - (X if Y is None else Y)[None]).sum(axis=2)


class Broken:
    """A kernel or distance with one fault, given as a function of (values, is Y given, number of calls)."""

    def __init__(self, function, fault):
        self.function, self.fault, self.calls = function, fault, 0

    def __call__(self, X, Y=None):
        self.calls += 1
        return self.fault(self.function(X, Y), Y is not None, self.calls)


KERNEL_FAULTS = {
    "array: kernel": lambda K, block, calls: K.tolist(),
    "shape: kernel": lambda K, block, calls: K[:, :-1],
    "finite: kernel": lambda K, block, calls: np.where(K.max() == K, np.nan, K),
    "repeatable: ": lambda K, block, calls: K + calls,
    "symmetric: ": lambda K, block, calls: K + np.arange(K.shape[1]),
    "positive semi-definite: ": lambda K, block, calls: -K,
    "blocks: ": lambda K, block, calls: K * (2 if block else 1),
}


def test_a_kernel_passes():
    check_kernel(linear, X)
    check_kernel(lambda X, Y=None: linear(X, Y).astype(np.int8), np.full((3, 1), 9, np.int8))  # 81 + 81 > 127
    check_kernel(sm.pairwise(lambda x, y: float(x @ y)), list(X))
    check_distance(absolute, X)


@pytest.mark.parametrize("law", KERNEL_FAULTS)
def test_a_kernel_fails(law):
    with pytest.raises(AssertionError, match=law):
        check_kernel(Broken(linear, KERNEL_FAULTS[law]), X)


def test_a_kernel_with_transposed_blocks_fails():
    square = X[:2]  # shapes alone cannot show it: A and B have one object each
    asymmetric = Broken(linear, lambda K, block, calls: np.full_like(K, 7.0) if block else K)
    with pytest.raises(AssertionError, match="blocks: "):
        check_kernel(asymmetric, square)


def test_a_wrong_diagonal_fails():
    kernel = Broken(linear, lambda K, block, calls: K)
    kernel.diag = lambda X: np.arange(len(X), dtype=float)
    with pytest.raises(AssertionError, match=r"diagonal: at \(\d,\), kernel\(X\).diagonal\(\) is .* but"):
        check_kernel(kernel, X)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        (lambda D, block, calls: -D, "non-negative: "),
        (lambda D, block, calls: D + 1, r"zero to itself: distance\(X\)\[0, 0\] is 1"),
        (lambda D, block, calls: np.triu(D), "symmetric: "),
        (lambda D, block, calls: D + block, "blocks: "),
    ],
)
def test_a_distance_fails(fault, law):
    with pytest.raises(AssertionError, match=law):
        check_distance(Broken(absolute, fault), X)


def test_one_object_is_not_enough():
    with pytest.raises(ValueError, match="X must hold at least two, got 1"):
        check_kernel(linear, X[:1])


class Embedding(BaseEstimator):
    """A linear embedding with faults to choose from."""

    def __init__(self, fault="", random_state=None):
        self.fault = fault
        self.random_state = random_state

    def fit(self, X, y=None):
        seed = None if self.fault == "seed" else self.random_state
        self.components_ = np.random.default_rng(seed).normal(size=(X.shape[1], 4))
        self.calls_ = 0
        if self.fault == "parameter":
            self.random_state = 7
        return None if self.fault == "self" else self

    def transform(self, X):
        self.calls_ += 1
        out = (X - X.mean(axis=0) if self.fault == "batch" else X) @ self.components_
        if self.fault == "order":
            out = out[np.argsort(out[:, 0])]
        if self.fault == "call":
            out = out + self.calls_
        if self.fault == "rows":
            out = out[1:]
        if self.fault == "nan":
            out[-1, 0] = np.nan
        return out.astype(np.int64) if self.fault == "dtype" else out


EMBEDDING_FAULTS = {
    "parameter": "fit: it changes the parameter 'random_state'",
    "self": "fit: it does not return the estimator itself",
    "rows": r"shape: transform\(X\) has shape \(6, 4\), expected \(7, None\)",
    "nan": r"finite: transform\(X\) is nan at \(6, 0\)",
    "dtype": r"dtype: transform\(X\) has dtype int64",
    "call": "repeatable: ",
    "batch": "blocks: ",
    "order": "blocks: ",
    "seed": "seed: ",
}


def test_an_embedding_passes_and_stays_unfitted():
    embedding = Embedding()
    check_embedding(embedding, X)
    check_embedding(PCA(n_components=2), X)
    assert not hasattr(embedding, "components_")
    assert embedding.random_state is None


def test_pipelines_pass_and_their_steps_get_a_seed():
    drawn = sm.SignRandomProjection(n_bits=64, random_state=None)
    check_embedding(make_pipeline(StandardScaler(), make_pipeline(Embedding())), X)
    check_codes(make_pipeline(StandardScaler(), drawn), X)


@pytest.mark.parametrize("fault", EMBEDDING_FAULTS)
def test_an_embedding_fails(fault):
    with pytest.raises(AssertionError, match=EMBEDDING_FAULTS[fault]):
        check_embedding(Embedding(fault), X)


class Encoder(Embedding):
    """Signs of the embedding, with faults to choose from."""

    n_bits = 8

    def transform(self, X):
        values = super().transform(X)
        bits = np.concatenate([values, -values], axis=1) >= 0
        if self.fault == "unpacked":
            return bits.astype(np.int8)
        if self.fault == "fortran":
            return np.asfortranarray(np.packbits(np.tile(bits, 2), axis=1))
        return np.packbits(np.tile(bits, 2) if self.fault == "n_bits" else bits, axis=1)


def test_an_encoder_passes():
    check_codes(Encoder(), X)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("unpacked", "packed bits: .* has dtype int8"),
        ("fortran", "packed bits: .* C-contiguous: False"),
        ("n_bits", r"n_bits: transform\(X\) has 16 bits, encoder.n_bits is 8"),
        ("batch", "blocks: "),
        ("seed", "seed: "),
    ],
)
def test_an_encoder_fails(fault, law):
    with pytest.raises(AssertionError, match=law):
        check_codes(Encoder(fault), X)
