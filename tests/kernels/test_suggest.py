"""Kernels suggested for a kind of objects: what they take, and that a Gaussian process can choose among them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import similia as sm
from similia.kernels import suggest_kernels

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice([*"abcd "], RNG.integers(4, 12))) for _ in range(24)]
GRAPHS = [np.triu(RNG.random((n, n)) < 0.4, 1) * 1 for n in range(3, 27)]
WALKS = RNG.normal(size=(24, 9, 2)).cumsum(axis=1)
TABLE = RNG.normal(size=(24, 5))
KINDS = {
    "strings": WORDS,
    "strings of one length": [word[:4] for word in WORDS],
    "graphs": sm.objects.as_graphs([A + A.T for A in GRAPHS]),
    "series": sm.objects.as_series([*WALKS]),
    "series of rare events": sm.objects.as_series([*(RNG.random((24, 30)) < 0.1) * 1.0]),
    "sets": sm.objects.as_sets([*WALKS]),
    "vectors": TABLE,
    "one column": TABLE[:, :1],
    "counts": np.abs(TABLE).round(),
    "sparse": sp.csr_array(np.maximum(TABLE, 0)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kernel_is_positive_semi_definite_and_bounded_and_the_evidence_chooses(kind):
    X = KINDS[kind]
    kernels = suggest_kernels(X)
    assert len({repr(kernel) for kernel in kernels}) == len(kernels) > 1
    for kernel in kernels:
        K = kernel(X)
        np.testing.assert_allclose(K, K.T, atol=1e-12)
        assert np.linalg.eigvalsh(K)[0] > -1e-9 * len(K)
        assert K.max() <= kernel.diag(X).max() * (1 + 1e-9)
        np.testing.assert_allclose(kernel.diag(X), kernel.diag(X)[0], rtol=1e-9)
    model = sm.GaussianProcessRegressor(kernels).fit(X, RNG.normal(size=24))
    assert len(model.evidences_) == len(kernels)


def test_large_graphs_are_not_compared_by_shortest_paths():
    large = sm.objects.as_graphs([np.eye(201, k=1) + np.eye(201, k=-1)] * 2)
    assert not any("ShortestPath" in repr(kernel) for kernel in suggest_kernels(large))
    assert any("ShortestPath" in repr(kernel) for kernel in suggest_kernels(KINDS["graphs"]))


@pytest.mark.parametrize("X", [[{1, 2}, {3}], [3.0, 4.0]])
def test_other_objects_are_refused(X):
    with pytest.raises(TypeError, match="expected a string, or objects in a batch, or a matrix of numbers"):
        suggest_kernels(X)


def test_a_sparse_column_is_refused():
    with pytest.raises(ValueError, match=r"sparse matrix of shape \(24, 1\), expected a dense array; call \.toarray"):
        suggest_kernels(KINDS["sparse"][:, :1])
