"""Quantiles of intervals against their definition, laws and aeon."""

import os
import subprocess

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import similia as sm
from naive import intervals as naive
from similia import IntervalQuantiles
from similia.core.config import limited_to
from similia.objects import as_series

laws = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)


def collection(seed=0, n=12, channels=1, longest=60, shortest=1):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(size, channels)) for size in rng.integers(shortest, longest + 1, n)]


@laws
@given(SEEDS, st.integers(3, 140), st.integers(1, 3), st.integers(1, 8), st.integers(1, 6), st.booleans())
def test_agrees_with_the_twin(seed, length, channels, depth, divisor, integers):
    rng = np.random.default_rng(seed)
    X = rng.integers(-2, 3, (3, length, channels)) if integers else rng.normal(size=(3, length, channels))
    X = X.astype(np.float32)
    expected = [
        np.concatenate([naive.features(x[:, c].astype(float), depth, divisor) for c in range(channels)]) for x in X
    ]
    found = IntervalQuantiles(depth, divisor).fit_transform([*X])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


_AEON = """
import sys
import numpy as np
from aeon.transformations.collection.interval_based import QUANTTransformer
given, out = np.load(sys.argv[1]), {}
for name, X in given.items():
    depth, divisor = map(int, name.split())
    out[name] = QUANTTransformer(depth, divisor).fit_transform(X)
np.savez(sys.argv[2], **out)
"""


@pytest.mark.ecosystem
def test_aeon_agrees(tmp_path):
    python = os.environ.get("SIMILIA_RIVALS_PYTHON")
    if not python:
        pytest.skip("SIMILIA_RIVALS_PYTHON is not set: it names a Python that has aeon and torch")
    shapes = {"6 4": (8, 1, 100), "7 4": (8, 1, 64), "5 3": (8, 1, 9), "3 2": (8, 3, 47)}
    series = {name: np.random.default_rng(3).normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    source, target = tmp_path / "in.npz", tmp_path / "out.npz"
    np.savez(source, **series)
    subprocess.run([python, "-c", _AEON, str(source), str(target)], check=True, capture_output=True)
    for name, expected in np.load(target).items():
        found = IntervalQuantiles(*map(int, name.split())).fit_transform(as_series(series[name], axes="channel, time"))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_by_hand():
    """Four points: one interval; the points 0, 1 and 2, 3; no later halves, as aeon has them (1, 2 is one)."""
    Z = IntervalQuantiles(depth=2, divisor=2).fit_transform([[1.0, 5.0, 2.0, 8.0]])
    series = [1, 8 - 4, 3, 5, 3.5]  # smallest and, minus the mean, largest; medians of halves, of the middle
    assert Z[0, :5].tolist() == series
    steps = [4, -3, 6]  # smoothed, with ends repeated: (4, 4, 4, -3, 6) / 5, (4, 4, -3, 6, 6) / 5, (4, -3, 6, 6, 6) / 5
    smoothed = np.array([15, 17, 19]) / 5
    np.testing.assert_allclose(Z[0, 5:9], [smoothed[0], smoothed[2] - smoothed.mean(), smoothed[0], Z[0, 8]], rtol=1e-6)
    assert np.isclose(Z[0, 8], smoothed[1:].mean())
    second = np.diff(steps)
    np.testing.assert_allclose(Z[0, 9:12], [second.mean(), *second], rtol=1e-6)


def test_of_equal_parts_long_and_short_series_have_equal_quantiles():
    """A series whose points are repeated has the same medians in all intervals of the series itself."""
    X = collection(2, 5, longest=64, shortest=64)
    model = IntervalQuantiles(depth=4, divisor=1000).fit(X)  # medians only
    n = (1 + 2 + 4 + 8) + (1 + 3 + 7)  # intervals, and those that lie half an interval later
    short, long = model.transform(X), model.transform([np.repeat(x, 3, axis=0) for x in X])
    np.testing.assert_array_equal(long[:, :n], short[:, :n])
    assert not np.allclose(long[:, n:], short[:, n:])  # differences are those of neighbours


def test_a_wave_has_the_same_amplitude_in_a_long_series():
    wave = np.sin(2 * np.pi * np.arange(960) / 8)
    model = IntervalQuantiles(depth=1, divisor=1).fit([wave[:240]])
    # The last column is the largest amplitude: quantile 120 of 0 to 120, from which no mean is subtracted.
    short, long = (model.transform([wave[:size]])[0, -1] for size in (240, 960))
    assert short == pytest.approx(120, rel=1e-5)
    assert long == pytest.approx(120, rel=1e-5)


@laws
@given(SEEDS, st.integers(1, 60), st.integers(1, 60), st.integers(1, 2), st.integers(1, 7))
def test_series_of_any_lengths_have_finite_features(seed, short, long, channels, depth):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(size, channels)) for size in (short, long, short)]
    model = IntervalQuantiles(depth).fit(X)
    assert model.length_ == sorted([short, long, short])[1]
    Z = model.transform(X)
    assert np.isfinite(Z).all()
    assert (Z[:, 0] >= [x[:, 0].min() - 1e-6 for x in X]).all()
    assert len(set(model.get_feature_names_out())) == Z.shape[1]


@laws
@given(SEEDS, st.integers(-20, 20))
def test_features_are_proportional_to_the_scale(seed, power):
    X = collection(seed, 4)
    model = IntervalQuantiles().fit(X)
    np.testing.assert_array_equal(
        model.transform([x * 2.0**power for x in X]), model.transform(X) * np.float32(2.0**power)
    )


@laws
@given(SEEDS, st.integers(2, 50))
def test_the_smallest_the_mean_and_the_largest(seed, length):
    assume(length > 4)
    x = np.random.default_rng(seed).integers(-9, 9, length).astype(float)
    first, second, *_ = IntervalQuantiles(depth=1, divisor=length - 1).fit_transform([x])[0]
    assert first == x.min()
    assert second == pytest.approx(x.max() - x.mean(), rel=1e-6)


@pytest.mark.parametrize("channels", [1, 3])
def test_laws_of_embeddings(channels):
    sm.checks.check_embedding(IntervalQuantiles(4, 3), collection(channels=channels))


@pytest.mark.same_bits
@pytest.mark.parametrize("channels", [1, 3])
def test_equal_bits_in_any_company_block_and_number_of_threads(channels):
    X = [*collection(4, 70, channels, longest=90), *collection(5, 70, channels, longest=90, shortest=90)]
    model = IntervalQuantiles().fit(X)
    with limited_to(1):
        expected = model.transform(X)
    np.testing.assert_array_equal(model.transform(X), expected)
    for i in (0, 7, 139):
        np.testing.assert_array_equal(model.transform(X[i : i + 1])[0], expected[i])
    with sm.config(max_memory="16KiB"):
        np.testing.assert_array_equal(model.transform(X[::-1])[::-1], expected)
    np.testing.assert_array_equal(model.transform([x.astype(np.float32) for x in X]), expected)


def test_both_zeros_are_one():
    """Otherwise a median would depend on the order in which sorting leaves equal numbers."""
    model = IntervalQuantiles(1, 9)
    assert model.fit_transform([[-0.0, -0.0, -0.0]]).tobytes() == model.fit_transform([[0.0, 0.0, 0.0]]).tobytes()


def test_wrong_input():
    X = collection(channels=2)
    for name, value in (("depth", 0), ("depth", 17), ("divisor", 0), ("divisor", 2.5)):
        with pytest.raises((ValueError, TypeError), match=name):
            clone(IntervalQuantiles()).set_params(**{name: value}).fit(X)
    model = IntervalQuantiles().fit(X)
    with pytest.raises(ValueError, match=r"^X has 1 channel, expected 2 as in fit$"):
        model.transform([np.zeros(5)])
    with pytest.raises(ValueError, match=r"series 2 holds numbers up to 1e\+40.*scale the series"):
        model.transform([X[0], X[1], [[0.0, 1e40]]])
    model.set_params(depth=1)
    for call in (lambda: model.transform(X), model.get_feature_names_out):
        with pytest.raises(ValueError, match=r"^depth=1 and divisor=4 give \d+ features, expected \d+ .*; fit again$"):
            call()


def test_a_file_holds_as_many_features_as_the_length_gives(tmp_path):
    X = collection(longest=30)
    model = IntervalQuantiles().fit(X)
    sm.save(model, tmp_path / "m.similia")
    np.testing.assert_array_equal(sm.load(tmp_path / "m.similia").transform(X), model.transform(X))
    model.length_ += 8
    with pytest.raises(ValueError, match="IntervalQuantiles has attributes that do not fit each other"):
        sm.save(model, tmp_path / "m.similia")  # which checks what loading checks


@given(st.integers(1, 70), st.integers(1, 7), st.integers(1, 6), st.integers(1, 2))
@settings(max_examples=40)
def test_each_column_has_a_name_of_its_own(length, depth, divisor, n_channels):
    embedding = sm.IntervalQuantiles(depth, divisor).fit([np.zeros((length, n_channels))])
    names = embedding.get_feature_names_out()
    assert len({*names}) == len(names) == embedding.transform([np.zeros((length, n_channels))]).shape[1]


def test_names_say_which_points_a_column_is_of():
    """A step at one point changes only columns of the series and its derivatives whose points are near it."""
    x = np.random.default_rng(0).normal(size=(40, 2))
    other = x.copy()
    other[17, 1] += 5.0
    embedding = sm.IntervalQuantiles(4).fit([x])
    changed = np.flatnonzero(np.diff(embedding.transform([x, other]), axis=0)[0])
    names = embedding.get_feature_names_out()[changed]
    assert len(names) > 0
    assert all(name.startswith("channel 1, ") for name in names)
    for name in names:
        kind, span = name.split(", ")[1].split(" (")[0].rsplit(" ", 1)
        low, high = map(int, span.split("-"))
        if kind != "frequencies":
            assert low - 4 <= 17 <= high + 4, name
