"""What services do: one object at a time through a fitted model, by ways of its own, with the bits of all at once."""

import gc

import numpy as np
import pytest

import similia as sm
from similia.codes.sign_projection import exact_length, gaussian_projection, sign_codes
from similia.kernels import counts as features
from similia.kernels.strings import StringKernel

WORDS = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (60, 20))]
GRAPHS = [
    {"edge_index": np.array([[*range(n - 1)], [*range(1, n)]]), "n_nodes": n, "node_labels": np.arange(n) % 3}
    for n in range(3, 33)
]
KERNELS = [
    sm.kernels.Spectrum(k=2), sm.kernels.Spectrum(k=3, normalize=True), sm.kernels.GappyKmers(k=4, gaps=1),
    sm.kernels.GappedKmers(4, 3, "forgotten"), sm.kernels.GappedKmers(5, 3), sm.kernels.Mismatch(k=3),
    sm.kernels.WeightedDegree(degree=3),
    sm.kernels.WeisfeilerLehman(), sm.kernels.ShortestPath(), sm.kernels.VertexHistogram(), sm.kernels.Propagation(),
    sm.kernels.MinMax(sm.kernels.WeisfeilerLehman()),
    sm.kernels.Intersection(sm.kernels.WeisfeilerLehman(normalize=True)),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: repr(kernel)[:30])
def test_an_object_alone_has_the_bits_it_has_among_others(kernel):
    X = WORDS if isinstance(kernel, StringKernel) else GRAPHS
    model = sm.Nystroem(kernel, 12, random_state=0).fit(X)
    together = model.transform(X)
    for n in (1, 5):
        parts = [model.transform(X[start : start + n]) for start in range(0, len(X), n)]
        np.testing.assert_array_equal(np.concatenate(parts), together)
    X = kernel.as_objects(X)
    some = sm.objects.take(X, [3, 4])
    np.testing.assert_array_equal(kernel.against(some, X), kernel(some, X))


def test_what_is_kept_of_landmarks_is_of_these_and_of_this_kernel():
    kernel, few = sm.kernels.Spectrum(k=2), sm.objects.as_strings(WORDS[:3])
    for _ in range(40):  # collections come and go, and their addresses with them
        words = sm.objects.as_strings(["".join(np.random.permutation(list(word))) for word in WORDS[:9]])  # noqa: NPY002
        np.testing.assert_array_equal(kernel.against(few, words), kernel(few, words))
        kernel.set_params(k=3 if kernel.k == 2 else 2)
        np.testing.assert_array_equal(kernel.against(few, words), kernel(few, words))
    assert len(features._kept) <= features._SLOTS
    del words
    gc.collect()
    assert any(entry[0]() is None for entry in features._kept.values())  # nothing is kept alive


@pytest.mark.parametrize("n_features", [1, 7, 64, 300])
def test_signs_of_few_vectors_are_those_of_many(n_features):
    rng = np.random.default_rng(0)
    projection = gaussian_projection(1000, n_features, rng)
    X = rng.normal(size=(50, n_features))
    X[3] = 0
    X[5] = -X[4]
    length = exact_length(projection)
    together = sign_codes(X, projection, length)
    for n in (1, 4):
        parts = [sign_codes(X[start : start + n], projection, length) for start in range(0, 50, n)]
        np.testing.assert_array_equal(np.concatenate(parts), together)
