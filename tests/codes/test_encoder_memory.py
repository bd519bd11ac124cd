"""Encoders and classifiers hold to max_memory: temporary arrays do not grow with the number of objects."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import similia as sm
from similia.learn.heat_svc import HeatSVC
from similia.learn.kernel_machines import KernelSVC
from similia.objects import as_graphs, as_series, as_strings

RNG = np.random.default_rng(0)
LIMIT = 2**20


def vectors(n):
    return RNG.normal(size=(n, 16))


def strings(n):
    return as_strings(["".join(row) for row in RNG.choice(list("ACGT"), (n, 40))])


def rings(n):
    ring = np.stack([np.arange(12), np.roll(np.arange(12), 1)])
    return as_graphs([(np.concatenate([ring, ring[::-1]], axis=1), 12)] * n)


ENCODERS = {
    "levels": (sm.LevelEncoder(8, 64, random_state=0), vectors, 40_000),
    "levels of a frame": (sm.LevelEncoder(8, 64, random_state=0), lambda n: pd.DataFrame(vectors(n)), 40_000),
    "fractional": (sm.FractionalPowerEncoder(n_bits=64, random_state=0), vectors, 40_000),
    "fractional floats": (sm.FractionalPowerEncoder(n_bits=8, output="floats", random_state=0), vectors, 40_000),
    "n-grams": (sm.NGramEncoder(3, 64, random_state=0), strings, 20_000),
    "min-hashes": (sm.MinHash(sm.kernels.Spectrum(k=3), 64, random_state=0), strings, 40_000),
    "sequences": (
        sm.SequenceEncoder(8, n_bits=64, random_state=0),
        lambda n: as_series(RNG.normal(size=(n, 50))),
        8000,
    ),
    "graphs": (sm.GraphHDEncoder(64, random_state=0), rings, 8000),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_working_memory_does_not_grow_with_the_objects(name):
    encoder, made, n = ENCODERS[name]
    X = made(n)
    expected = encoder.fit(X).transform(X)
    with sm.config(max_memory=LIMIT):
        encoder.transform(X)  # compiled and loaded
        tracemalloc.start()
        found = encoder.fit(X).transform(X)
        peak = tracemalloc.get_traced_memory()[1] - found.nbytes
        tracemalloc.stop()
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert peak < 1.25 * LIMIT


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame])
@pytest.mark.parametrize("name", ["levels", "fractional"])
def test_the_block_has_no_say_in_what_an_error_names(name, kind):
    encoder, X = ENCODERS[name][0], vectors(3000)
    encoder.fit(X)
    X[2345, 3] = np.nan
    with sm.config(max_memory=16 * 1024), pytest.raises(ValueError, match=r"^X\[2345\](, column '3')? holds NaN"):
        encoder.transform(kind(X))
    X[2345, 3] = 1e300
    if name == "fractional":
        with sm.config(max_memory=16 * 1024), pytest.raises(ValueError, match=r"^X\[2345\] is 1e\+300 bandwidths"):
            encoder.transform(kind(X))
    with sm.config(max_memory=16 * 1024), pytest.raises(ValueError, match="expecting 16 features"):
        encoder.transform(np.zeros((3000, 3)))
    with sm.config(max_memory=16 * 1024), pytest.raises(ValueError, match=r"got shape \(30, 16, 2\)"):
        encoder.transform(np.zeros((30, 16, 2)))


def test_machines_of_too_many_pairs_of_classes_are_refused_before_they_are_made():
    words, y = [f"{i:b}" for i in range(400)], range(400)
    asked = []

    def kernel(X, Y=None):
        asked.append(1)
        return np.eye(len(X))

    # 400 * 399 / 2 pairs of 400 weights of 8 bytes are 244 MiB, the Gram matrix 1.2 MiB
    with sm.config(max_memory="200MiB"):
        with pytest.raises(ValueError, match=r"^y has 400 classes, expected fewer: 79800 machines.*244 MiB.*LinearSVC"):
            KernelSVC(kernel).fit(words, y)
        with pytest.raises(ValueError, match=r"^y has 400 classes"):
            HeatSVC(contrast=1.0, C=1.0).fit(np.abs(vectors(400)), y)
    assert not asked
