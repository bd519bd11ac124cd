"""Numbers, series and vectors as hypervectors."""

from __future__ import annotations

from dataclasses import replace

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import similia as sm
from experiments import nyshd_shift
from experiments.nyshd_shift import bumps
from naive import similarities as naive
from similia import codes, config
from similia.checks import laws as checks
from similia.objects import SeriesBatch

laws = settings(max_examples=25, deadline=None)
seeds = st.integers(0, 2**32 - 1)


def tied(encoder):
    return naive.signs(encoder.ties_)[0]


def series_of(rng, lengths, n_channels, dtype=np.float64):
    return SeriesBatch.from_arrays([rng.normal(size=(length, n_channels)).astype(dtype) for length in lengths])


# ---- levels


@laws
@given(seeds, st.integers(1, 5), st.integers(2, 9), st.sampled_from([64, 200]), st.booleans())
def test_rows_are_sums_of_roles_times_levels(seed, n_features, n_levels, n_bits, given_range):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(2, 7, n_features))
    X[:, 0] = 3.0  # a constant feature
    ends = {"low": X.min(axis=0) - 0.1, "high": 4.0} if given_range else {}
    encoder = codes.LevelEncoder(n_levels, n_bits, output="counts", random_state=seed, **ends).fit(X)
    low, high = ends.get("low", X.min(axis=0)), np.broadcast_to(ends.get("high", X.max(axis=0)), n_features)
    vector, roles = naive.signs(encoder.levels_), naive.signs(encoder.roles_)
    levels = [[naive.nearest_level(*number, n_levels) for number in zip(row, low, high, strict=True)] for row in Y]
    sums = np.array([naive.record_sums(row, vector, roles) for row in levels])
    counts = encoder.transform(Y)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, sums)
    bits = encoder.set_params(output="bits").transform(Y)
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(sums, tied(encoder)))


def test_likeness_of_numbers_falls_linearly_with_their_difference():
    x = np.arange(101.0)  # 2 * 100 steps of 5 bits
    likeness = codes.similarity(codes.LevelEncoder(101, 1000, random_state=0).fit_transform(x))
    np.testing.assert_allclose(likeness, 1 - np.abs(x[:, None] - x) / 100, atol=1e-12)


def test_likeness_of_rows_is_the_sum_over_features():
    X = np.random.default_rng(0).uniform(size=(20, 3))
    counts = codes.LevelEncoder(1001, 20_000, 0, 1, "counts", random_state=0).fit_transform(X)
    expected = 3 - np.abs(X[:, None] - X).sum(axis=2)
    np.testing.assert_allclose(counts.astype(float) @ counts.T / 20_000, expected, atol=0.06)


def test_numbers_outside_the_range_are_its_ends():
    encoder = codes.LevelEncoder(5, 64, random_state=0).fit([0.0, 2.0])
    np.testing.assert_array_equal(encoder.transform([-1e300, 1e300, 0.9]), encoder.levels_[[0, 4, 2]])


def test_numbers_in_all_containers():
    encoder = codes.LevelEncoder(9, 64, random_state=0)
    expected = encoder.fit_transform(np.array([1.0, 2.0, 5.0]))
    for column in ([1, 2, 5], [[1], [2], [5]], pd.Series([1, 2, 5], index=list("abc")), np.float32([1, 2, 5])):
        np.testing.assert_array_equal(encoder.fit_transform(column), expected)
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 0.0]})
    np.testing.assert_array_equal(encoder.fit_transform(frame), encoder.fit_transform(frame.to_numpy()))


@pytest.mark.parametrize("container", ["frame", "tuples"])
def test_numbers_are_a_part_of_records(container):
    names, weights, ages = ["ann", "bob", "cleo"], [50.0, 80.0, 65.0], [20, 40, 40]
    records = list(zip(names, weights, ages, strict=True))
    if container == "frame":
        records = pd.DataFrame(records, columns=[0, 1, 2])
    bundle = codes.RecordEncoder(
        [
            (0, codes.NGramEncoder(2, 512, random_state=0)),
            (1, codes.LevelEncoder(n_bits=512, random_state=0)),
            ([1, 2], codes.LevelEncoder(n_bits=512, output="counts", random_state=1)),
        ],
        output="counts",
        random_state=0,
    )
    counts = bundle.fit_transform(records)
    text, one, two = (
        e.transform(x) for e, x in zip(bundle.encoders_, [names, weights, np.c_[weights, ages]], strict=True)
    )
    two = two / np.sqrt(np.mean(two**2.0, axis=1, keepdims=True))
    parts = zip(naive.signs(bundle.roles_), [naive.signs(text), naive.signs(one), two], strict=True)
    np.testing.assert_allclose(counts, sum(role * part for role, part in parts))


# ---- series


@laws
@given(
    seeds,
    st.sampled_from([None, 1, 2, 3, 9]),
    st.integers(1, 3),
    st.sampled_from([8, 64, 200]),
    st.sampled_from([np.float32, np.float64]),
)
def test_series_are_sums_of_shifted_levels(seed, n, n_channels, n_bits, dtype):
    rng = np.random.default_rng(seed)
    lengths = [*rng.integers(1, 20, size=4), 80]  # the last has more places than 64 bits
    X, Y = (series_of(rng, lengths, n_channels, dtype) for _ in range(2))
    encoder = codes.SequenceEncoder(6, n, n_bits, output="counts", random_state=seed).fit(X)
    low, high = X.values.min(axis=0).astype(float), X.values.max(axis=0).astype(float)
    vector, roles = naive.signs(encoder.levels_), naive.signs(encoder.roles_)
    sums = []
    for series in Y:
        levels = [[naive.nearest_level(*v, 6) for v in zip(map(float, row), low, high, strict=True)] for row in series]
        sums.append(naive.sequence_sums(np.array(levels), vector, roles, n))
    counts = encoder.transform(Y)
    assert counts.dtype == np.int32
    np.testing.assert_array_equal(counts, sums)
    bits = encoder.set_params(output="bits").transform(Y)
    assert bits.flags.c_contiguous
    np.testing.assert_array_equal(naive.signs(bits), naive.majority(np.array(sums), tied(encoder)))


@pytest.mark.parametrize("n", [None, 2])
def test_inner_products_of_series_estimate_a_kernel(n):
    rng = np.random.default_rng(0)
    x, y = rng.uniform(size=(2, 12))
    likeness = []
    for seed in range(20):
        counts = codes.SequenceEncoder(1001, n, 5_000, 0, 1, "counts", seed).fit_transform([x, y]).astype(float)
        likeness.append(counts[0] @ counts[1] / 5_000)
    error = np.std(likeness, ddof=1) / np.sqrt(20)
    expected = naive.sequence_kernel(x, y, n)
    assert abs(np.mean(likeness) - expected) < 4 * error
    assert error < 0.03 * expected


@pytest.mark.parametrize("n", [None, 6])
def test_a_shift_breaks_codes_by_place_and_spares_ngrams(n):
    rng = np.random.default_rng(0)
    whole = rng.choice([0.0, 1.0], size=300)  # equal or unlike, nothing between
    shifts = [whole[s : s + 200] for s in (0, 1, 5, 20)]
    counts = codes.SequenceEncoder(2, n, output="counts", random_state=0).fit_transform(shifts).astype(float)
    cosines = counts[0] @ counts.T / np.linalg.norm(counts[0]) / np.linalg.norm(counts, axis=1)
    if n is None:  # half of the places agree
        np.testing.assert_allclose(cosines[1:], 0.5, atol=0.15)
    else:  # all n-grams but the first ones stay, and new ones are not all new
        assert (cosines > 1 - np.array([0, 1, 5, 20]) / 195 - 0.01).all()


def test_channels_do_not_mix():
    rng = np.random.default_rng(0)
    a, b = rng.uniform(size=(2, 200))
    both = [np.c_[a, b], np.c_[b, a]]
    likeness = codes.similarity(codes.SequenceEncoder(2, n=5, random_state=0).fit_transform(both))[0, 1]
    assert abs(likeness) < 0.2


# ---- vectors


def quarters(encoder, X):
    """Signs of cosine and sine from the definition, each sum in Python floats."""
    return signs_of_quarters(naive.product_in_order(X, encoder.frequencies_) + encoder.phases_)


def signs_of_quarters(turned):
    quarter = np.floor(turned).astype(int) % 4
    return np.stack([np.isin(quarter, [0, 3]), np.isin(quarter, [0, 1])], axis=2).reshape(len(turned), -1)


@laws
@given(seeds, st.integers(1, 9), st.integers(1, 11), st.sampled_from([8, 1032, 2056]))
def test_bits_are_signs_of_cosine_and_sine(seed, n, n_features, n_bits):
    X = np.random.default_rng(seed).normal(size=(n, n_features))
    encoder = codes.FractionalPowerEncoder(0.7, n_bits, random_state=seed).fit(X)
    bits = encoder.transform(X)
    np.testing.assert_array_equal(np.unpackbits(bits, axis=1), quarters(encoder, X))
    turned = (X @ encoder.frequencies_ + encoder.phases_) * np.pi / 2
    waves = np.stack([np.cos(turned), np.sin(turned)], axis=2).reshape(n, -1)
    assert (np.unpackbits(bits, axis=1) == (waves >= 0))[np.abs(waves) > 1e-9].all()
    floats = encoder.set_params(output="floats").transform(X)
    np.testing.assert_allclose(floats, waves * np.sqrt(2 / n_bits), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(floats, axis=1), 1, rtol=1e-12)


@pytest.mark.same_bits
def test_phases_on_the_edge_of_a_quarter_never_flip_with_the_block():
    rng = np.random.default_rng(0)
    X = rng.permuted(np.tile(np.arange(1, 16) / 10, (300, 1)), axis=1)  # each row adds up to 12, give or take rounding
    encoder = codes.FractionalPowerEncoder(n_bits=264, random_state=0).fit(X)
    encoder.frequencies_[:] = 1.0
    encoder.phases_[:] = 0.0
    one = naive.product_in_order(X, encoder.frequencies_[:, :1]) + encoder.phases_[:1]  # all columns are equal
    expected = np.tile(signs_of_quarters(one), 132)
    assert 0.1 < expected[:, 1].mean() < 0.9  # the order of the terms decides on which side of the edge
    for max_memory in (1, 2_000, "1GiB"):
        with config(max_memory=max_memory):
            np.testing.assert_array_equal(np.unpackbits(encoder.transform(X), axis=1), expected)
            np.testing.assert_array_equal(np.unpackbits(encoder.transform(X[7:8]), axis=1), expected[7:8])


@pytest.mark.parametrize("s", [0.0, 0.01, 0.39, 0.399999, 0.400001, 0.41, 0.8, 1.0, 2.0, 5.0, 100.0])
def test_expected_similarity_is_the_mean_of_a_triangle_wave(s):
    encoder = codes.FractionalPowerEncoder(2.0)
    (found,) = encoder.kernel([[1.0, 1.0]], [[1.0, 1.0 + 2 * s]])[0]
    assert found == pytest.approx(naive.triangle_mean(s)[0], abs=2e-8 if s < 50 else 1e-3)


def test_expected_similarity_is_the_sum_of_a_series():
    s = np.linspace(0.02, 3, 150)
    k = np.arange(1, 1001, 2)[:, None]
    series = 8 / np.pi**2 * (np.exp(-((k * s) ** 2) / 2) / k**2).sum(axis=0)
    found = codes.FractionalPowerEncoder().kernel([[0.0]], s[:, None])[0]
    np.testing.assert_allclose(found, series, rtol=0, atol=1e-14)


def test_similarities_have_the_documented_mean_and_variance():
    rng = np.random.default_rng(0)
    n_bits, n_seeds = 64, 1500
    directions = rng.normal(size=(6, 3))
    distances = np.array([0.05, 0.3, 0.6, 1.0, 1.6, 2.5])
    X = np.vstack([np.zeros(3), distances[:, None] * directions / np.linalg.norm(directions, axis=1)[:, None]]) * 3
    found = []
    for seed in range(n_seeds):
        encoder = codes.FractionalPowerEncoder(3.0, n_bits, random_state=seed).fit(X)
        found.append(codes.similarity(encoder.transform(X))[0, 1:])
    K, size = np.transpose([naive.triangle_mean(s) for s in distances])
    variance = (size - K**2) / (n_bits / 2)
    z = (np.mean(found, axis=0) - encoder.kernel(X)[0, 1:]) / np.sqrt(variance / n_seeds)
    assert np.abs(z).max() < 4
    np.testing.assert_allclose(np.var(found, axis=0), variance, rtol=0.2)


def test_floats_estimate_the_gaussian_kernel():
    X = np.random.default_rng(0).normal(size=(30, 4))
    encoder = codes.FractionalPowerEncoder(1.5, 40_000, "floats", random_state=0)
    features = encoder.fit_transform(X)
    gaussian = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / (2 * 1.5**2))
    np.testing.assert_allclose(encoder.kernel(X), gaussian, atol=1e-14)
    np.testing.assert_allclose(features @ features.T, gaussian, atol=5 / np.sqrt(40_000))
    single = encoder.transform(X.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, features, atol=1e-6)


@pytest.mark.parametrize("output", ["bits", "floats"])
def test_expected_similarity_is_a_kernel(output):
    X = np.random.default_rng(0).normal(size=(25, 3))
    X[3] = X[4]
    checks.check_kernel(codes.FractionalPowerEncoder(0.8, output=output).kernel, X)
    with config(max_memory=1):
        blocks = codes.FractionalPowerEncoder(0.8, output=output).kernel(X)
    np.testing.assert_array_equal(blocks, codes.FractionalPowerEncoder(0.8, output=output).kernel(X))


# ---- all three

rng = np.random.default_rng(5)
NUMBERS = rng.normal(size=(600, 4))
SERIES = series_of(rng, [7, 1, 90, 2, 33] * 12, 2)
ENCODERS = [
    (codes.LevelEncoder(7, 264, random_state=3), NUMBERS),
    (codes.LevelEncoder(7, 264, random_state=3), NUMBERS[:, 0]),
    (codes.SequenceEncoder(7, 4, 264, random_state=3), SERIES),
    (codes.SequenceEncoder(7, None, 264, random_state=3), SERIES),
    (codes.FractionalPowerEncoder(2.0, 264, random_state=3), NUMBERS),
]
all_encoders = pytest.mark.parametrize(("encoder", "X"), ENCODERS)


@all_encoders
def test_codes_keep_the_laws_of_encoders(encoder, X):
    checks.check_codes(encoder, X)
    first = clone(encoder).fit_transform(X)
    assert (clone(encoder).set_params(random_state=4).fit_transform(X) != first).any()


@pytest.mark.same_bits
@all_encoders
def test_codes_do_not_depend_on_blocks_or_threads(encoder, X):
    encoder = clone(encoder).fit(X)
    for output in ("bits", "floats" if isinstance(encoder, codes.FractionalPowerEncoder) else "counts"):
        whole = encoder.set_params(output=output).transform(X)
        for memory in (1, 30_000):
            with config(max_memory=memory):
                blocks = encoder.transform(X)
            np.testing.assert_array_equal(blocks, whole)
        np.testing.assert_array_equal(encoder.transform(X[5:6]), whole[5:6])


@pytest.mark.parametrize("encoder", [codes.LevelEncoder, codes.FractionalPowerEncoder])
def test_columns_have_names(encoder):
    fitted = encoder(n_bits=16, random_state=0).fit(NUMBERS)
    assert len(fitted.get_feature_names_out()) == fitted.transform(NUMBERS).shape[1] == 2


def test_codes_of_series_are_classified_in_a_pipeline():
    X = np.sin(rng.uniform(0, 6, size=(60, 1)) + np.outer(np.repeat([0.3, 0.9], 30), np.arange(50)))
    y = np.repeat(["slow", "fast"], 30)
    model = make_pipeline(sm.SequenceEncoder(n=4, n_bits=2000, random_state=0), sm.HDClassifier(random_state=0))
    assert model.fit(list(X[::2]), y[::2]).score(list(X[1::2]), y[1::2]) > 0.9


level, sequence, power = codes.LevelEncoder(4, 64), codes.SequenceEncoder(4, n_bits=64), codes.FractionalPowerEncoder()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: codes.LevelEncoder(1).fit([1.0]), "n_levels must be an integer >= 2, got 1"),
        (lambda: codes.LevelEncoder(n_bits=9).fit([1.0]), "n_bits must be a multiple of 8"),
        (lambda: codes.LevelEncoder(output="floats").fit([1.0]), "output must be 'bits' .* got 'floats'"),
        (lambda: codes.LevelEncoder(low=2, high=1).fit([1.0]), "low must be below high.* got 2 and 1 for number 0 of"),
        (lambda: codes.LevelEncoder(low=2).fit([1.0, 2.0]), "low must be below high.* got 2 and 2 for number 0"),
        (lambda: codes.LevelEncoder(low=[1, 2]).fit([1.0]), r"low must be a finite number or 1 of them.*got \[1, 2\]"),
        (lambda: codes.LevelEncoder(high=np.nan).fit([1.0]), "high must be a finite number"),
        (lambda: codes.LevelEncoder(high="1").fit([1.0]), "high must be a finite number .* got '1'"),
        (lambda: level.fit([-1e308, 1e308]), "fits into float64, got -1e[+]308 and 1e[+]308"),
        (lambda: level.fit([]), "X is empty"),
        (lambda: level.fit(["a"]), "X must hold numbers .* encode strings with NGramEncoder"),
        (
            lambda: level.fit(np.array(["NaT"], "M8[D]")),
            r"X holds dates or times \(datetime64\[D\]\)",
        ),
        (lambda: power.fit(np.array([[3]], "m8[s]")), r"X holds dates or times .*, expected numbers"),
        (lambda: level.fit([1.0, np.nan]), r"X\[1\] holds NaN or infinity"),
        (lambda: level.fit([[1.0], [np.inf]]), r"X\[1\] holds NaN or infinity"),
        (lambda: level.fit(np.zeros((2, 0))), r"X has 0 feature\(s\)"),
        (lambda: level.fit(np.zeros((2, 2, 2))), r"X must be a 2-D array .* got shape \(2, 2, 2\)"),
        (lambda: level.fit([[1.0, 2.0]]).transform([1.0]), r"got shape \(1,\); Reshape your data"),
        (lambda: codes.SequenceEncoder(n=0).fit([[1.0]]), "n must be an integer >= 1, got 0"),
        (lambda: codes.SequenceEncoder(0).fit([[1.0]]), "n_levels must be an integer >= 2, got 0"),
        (lambda: codes.SequenceEncoder(low=[0, 0]).fit([[1.0]]), "low must be a finite number or 1 of them, one for"),
        (lambda: sequence.fit(SERIES).transform([[1.0, 2.0]]), "the series have 1 channel, expected 2 as in fit"),
        (lambda: sequence.fit(SERIES[:0]), "X is empty: found 0"),
        (
            lambda: sequence.fit(SeriesBatch.from_arrays([np.ones((2, 1)), np.array([[1.0], [np.nan]])])),
            r"X\[1\], time point 1, channel 0 is nan, expected a finite number",
        ),
        (
            lambda: sequence.fit(SERIES).transform(SeriesBatch(SERIES.values[:2], np.array([0, 0, 2]))),
            "series 0 has length 0, expected at least one time point",
        ),
        (lambda: codes.FractionalPowerEncoder(0.0).fit([[1.0]]), "bandwidth must be a positive number, got 0.0"),
        (lambda: codes.FractionalPowerEncoder("median").fit([[1.0]]), "bandwidth must be a positive number"),
        (lambda: codes.FractionalPowerEncoder(n_bits=4).fit([[1.0]]), "n_bits must be a multiple of 8"),
        (lambda: codes.FractionalPowerEncoder(output="counts").fit([[1.0]]), "output must be 'bits' .* 'floats'"),
        (lambda: power.fit([1.0]), "X must be a 2-D array"),
        (lambda: power.fit([[np.nan]]), r"X\[0\] holds NaN"),
        (lambda: power.fit(np.zeros((2, 0))), r"X has 0 feature\(s\)"),
        (lambda: power.fit([[1.0]]).transform([[1.0, 2.0]]), r"X has 2 features, but \w+ is expecting 1 features"),
        (lambda: power.fit([[1.0]]).transform([[0.0], [1e13]]), r"X\[1\] is 1e[+]13 bandwidths from 0"),
        (lambda: power.kernel([[1.0]], [[1.0, 2.0]]), "Y has 2 features, expected 1 as in X"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence) as caught:
        call()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("encoder", "parameters", "sentence"),
    [
        (codes.LevelEncoder(), {"output": "bit"}, "output must be 'bits' .* got 'bit'"),
        (codes.SequenceEncoder(), {"output": "bit"}, "output must be 'bits' .* got 'bit'"),
        (codes.SequenceEncoder(), {"n": -1}, "n must be an integer >= 1, got -1"),
        (codes.FractionalPowerEncoder(), {"output": "float"}, "output must be 'bits' .* got 'float'"),
        (codes.FractionalPowerEncoder(), {"bandwidth": -1}, "bandwidth must be a positive number, got -1"),
    ],
)
def test_parameters_set_after_fit_are_checked(encoder, parameters, sentence):
    X = [[1.0, 2.0], [2.0, 3.0]]
    encoder = clone(encoder).set_params(n_bits=64).fit(X).set_params(**parameters)
    with pytest.raises(ValueError, match=sentence):
        encoder.transform(X)


@pytest.mark.parametrize(
    "fitted", [{"levels_": np.zeros((0, 8), np.uint8)}, {"low_": np.array([-1.7e308]), "high_": np.array([1.7e308])}]
)
def test_levels_that_compiled_loops_would_not_find_are_refused_by_files(fitted, tmp_path):
    encoder = codes.LevelEncoder(4, 64).fit([1.0, 2.0])
    vars(encoder).update(fitted)
    with pytest.raises(ValueError, match="attributes that do not fit each other"):
        sm.save(encoder, tmp_path / "model")


def test_floats_of_a_distributed_frame_have_the_type_of_its_numbers():
    frame = pd.DataFrame(NUMBERS[:9].astype(np.float32))
    encoder = codes.FractionalPowerEncoder(n_bits=16, output="floats", random_state=0).fit(frame)
    found = encoder.transform(dd.from_pandas(frame, npartitions=2))
    assert found.dtype == found.compute().dtype == np.float32


@pytest.mark.parametrize("n_bits", [64, 256])
@pytest.mark.parametrize("encoder", [codes.LevelEncoder(), codes.SequenceEncoder(), codes.FractionalPowerEncoder()])
def test_another_length_after_fit_is_refused(encoder, n_bits):
    encoder = clone(encoder).set_params(n_bits=128).fit([[1.0, 2.0], [2.0, 3.0]]).set_params(n_bits=n_bits)
    with pytest.raises(ValueError, match=f"n_bits is {n_bits}, but fit drew vectors of 128 bits; fit again"):
        encoder.transform([[1.0, 2.0]])


# ---- experiment: shift and stretch


def test_series_are_shifted_and_stretched():
    X = SeriesBatch.from_arrays([np.arange(10.0)[:, None]] * 20)
    moved = [x[:, 0].tolist() for x in nyshd_shift.shifted(X, 0.2, np.random.default_rng(0))]
    late, early = [0.0, 0.0, *range(8)], [*range(2, 10), 9.0, 9.0]
    assert all(x in (late, early) for x in moved)
    assert late in moved
    assert early in moved
    double = nyshd_shift.stretched(X[:1], 1.9)
    np.testing.assert_allclose(double[0][:, 0], np.arange(19) / 2)
    half = nyshd_shift.stretched(X.astype(np.float32)[:1], 0.4)
    np.testing.assert_allclose(half[0][:, 0], [0, 3, 6, 9])
    assert half.values.dtype == np.float32
    np.testing.assert_array_equal(nyshd_shift.stretched(X, 1.0).values, X.values)


def test_likeness_by_hand():
    made = np.array([[0b11111111], [0b11110000], [0b11110000]], dtype=np.uint8)
    changed = np.array([[0b11111100], [0b11110000], [0b00001111]], dtype=np.uint8)
    own, others = nyshd_shift.likeness(made, changed)
    assert own == pytest.approx((0.5 + 1 - 1) / 3)
    assert others == pytest.approx((0 + 0 + 1) / 3)


def test_shift_experiment_on_made_series(monkeypatch):
    monkeypatch.setattr(nyshd_shift, "SHIFTS", (0, 30))
    monkeypatch.setattr(nyshd_shift, "STRETCHES", (100,))
    monkeypatch.setattr(nyshd_shift, "N_RANDOM_SERIES", 64)
    methods = {name: replace(m, grid=m.grid[:1]) for name, m in nyshd_shift.METHODS.items()}
    monkeypatch.setattr(nyshd_shift, "METHODS", methods)
    monkeypatch.setattr(nyshd_shift, "bumps", lambda n, rng: bumps(n, rng, length=40))
    records = nyshd_shift.measure(nyshd_shift.TASKS[0], seeds=2)
    tables, figure = nyshd_shift.present(records)
    assert [len(table.rows) for table in tables] == [4, 4, 4, 4]
    assert figure is not None
    kept = {row[1]: [float(cell.split()[0]) for cell in row[2:]] for row in tables[2].rows}
    assert all(first == 100 for first, _ in kept.values())
    assert kept["by place"][1] < 20
    unchanged = {row[1]: float(row[2].split()[0]) for row in tables[0].rows}
    assert unchanged["by place"] > 90
    assert unchanged["alignment"] > 90
