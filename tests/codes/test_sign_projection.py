"""SignRandomProjection: exact bits, the arcsine law, its structured twin, bad input, scikit-learn."""

import csv
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import ThreadpoolController, threadpool_limits

import similia as sm
from naive import similarities as naive
from similia.codes import SignRandomProjection
from similia.codes import sign_projection as dense
from similia.core import config as _threads
from similia.core.products import padded

REFERENCE = Path(__file__).parents[1] / "reference"
METHODS = ["gaussian", "structured", "hadamard"]


def awkward_rows(n_features, random):
    """Rows whose products are ties or close to ties in floats, zero rows, duplicates, multiples, random ones."""
    I = np.eye(n_features)
    i, j = random.integers(0, n_features, (2, 60))
    whole = random.integers(-3, 4, (60, n_features)).astype(float)
    rows = [np.zeros((2, n_features)), I[i], -I[i], I[i] - I[j], I[i] + I[j] * (1 + 2.0**-20), whole, whole * 4]
    rows += [random.standard_normal((200, n_features)), np.ones((3, n_features)), whole / 3]
    return random.permutation(np.vstack(rows).astype(np.float32))


@cache
def fitted(method, n_features, n_bits=3000):
    return SignRandomProjection(n_bits, method, random_state=0).fit(np.ones((1, n_features)))


@pytest.mark.same_bits
# ---- the same bits, whatever the way
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_features", [3, 50, 300])
def test_bits_do_not_depend_on_blocks_threads_or_other_rows(method, n_features):
    X = awkward_rows(n_features, np.random.default_rng(1))
    encoder = fitted(method, n_features)
    codes = encoder.transform(X)
    some = np.random.default_rng(2).permutation(len(X))[:97]
    np.testing.assert_array_equal(encoder.transform(X[some]), codes[some])
    np.testing.assert_array_equal(np.vstack([encoder.transform(x[None]) for x in X[:40]]), codes[:40])
    for threads in (1, 2):
        with threadpool_limits(threads), sm.config(max_memory=400_000):
            np.testing.assert_array_equal(encoder.transform(X), codes)


@pytest.mark.parametrize("tile", [(7, 64), (100, 8), (4000, 3000)])
def test_bits_do_not_depend_on_the_shape_of_tiles(monkeypatch, tile):
    X = awkward_rows(300, np.random.default_rng(1))
    expected = fitted("gaussian", 300).transform(X)
    monkeypatch.setattr(dense, "_TILE_ROWS", tile[0])
    monkeypatch.setattr(dense, "_TILE_BITS", tile[1])
    some = slice(0, 100)
    np.testing.assert_array_equal(fitted("gaussian", 300).transform(X[some]), expected[some])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_features", [5, 200])
def test_float_type_and_layout_do_not_matter(method, n_features):
    X = awkward_rows(n_features, np.random.default_rng(3))
    expected = fitted(method, n_features).transform(X)
    wide = np.zeros((2 * len(X), n_features))
    wide[::2] = X
    frozen = X.copy()
    frozen.flags.writeable = False
    scaled = [X * np.float32(2.0**-40), X.astype(float) * 2.0**900]
    for other in [X.astype(float), np.asfortranarray(X), wide[::2], frozen, *scaled]:
        np.testing.assert_array_equal(fitted(method, n_features).transform(other), expected)


def blas_threads():
    return {library.filepath: library.num_threads for library in ThreadpoolController().lib_controllers}


def test_concurrent_calls_agree_and_leave_blas_as_it_was():
    X = np.random.default_rng(4).standard_normal((1500, 300))
    encoder = fitted("gaussian", 300)
    before = blas_threads()
    assert encoder.projection_.size * len(X) > _threads._WORTH_THREADS
    expected = np.vstack([encoder.transform(x) for x in np.split(X, 50)])
    with ThreadPoolExecutor(4) as pool:
        for codes in pool.map(encoder.transform, [X] * 8):
            np.testing.assert_array_equal(codes, expected)
    assert blas_threads() == before


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides(method):
    X = np.random.default_rng(0).standard_normal((20, 150))
    make = lambda seed: SignRandomProjection(800, method, random_state=seed).fit_transform(X)  # noqa: E731
    np.testing.assert_array_equal(make(5), make(5))
    np.testing.assert_array_equal(make(5), make(np.random.default_rng(5)))
    assert not np.array_equal(make(5), make(6))


# ---- dense arithmetic
@pytest.mark.parametrize("n_features", [1, 2, 40])
@pytest.mark.parametrize("method", METHODS[:2])
def test_dense_codes_are_the_exact_integer_signs(method, n_features):
    X = awkward_rows(n_features, np.random.default_rng(4))[::9]
    encoder = fitted(method, n_features, 64)
    rows = dense.integer_rows(X, encoder.row_length_)
    expected = naive.integer_product_bits(rows, encoder.projection_)
    np.testing.assert_array_equal(encoder.transform(X), expected)


def finite_rows(n_features):
    numbers = st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, 1e-310, 1e308])
    return hnp.arrays(np.float64, (3, n_features), elements=numbers)


@settings(max_examples=50, deadline=None)
@given(finite_rows(7))
def test_integer_rows_obey_their_bound_and_are_odd(X):
    projection = fitted("gaussian", 7, 64).projection_
    rows = dense.integer_rows(X, dense.exact_length(projection)).astype(np.int64)
    lengths = np.linalg.norm(rows, axis=1)
    assert lengths.max() * np.linalg.norm(projection.astype(float), axis=1).max() < 2**24
    zero = ~X.any(axis=1)
    assert not rows[zero].any()
    assert (rows[~zero].sum(axis=1) % 2 == 1).all()
    assert (projection % 2 == 1).all()
    unit = X[~zero] / np.abs(X[~zero]).max(axis=1, keepdims=True)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    assert np.abs(rows[~zero] - unit * dense.exact_length(projection)).max(initial=0) <= 1.5 + 1e-6


@settings(max_examples=50, deadline=None)
@given(finite_rows(7))
def test_dense_code_of_the_opposite_is_the_complement(X):
    encoder = fitted("gaussian", 7, 64)
    zero = ~X.any(axis=1)
    codes = encoder.transform(X)
    np.testing.assert_array_equal(encoder.transform(-X)[~zero], ~codes[~zero])
    assert (codes[zero] == 255).all()


@pytest.mark.parametrize("n_features", [1, 6, 128])
def test_blocks_of_the_structured_method_are_orthogonal(n_features):
    projection = fitted("structured", n_features, 1000).projection_.astype(float)
    block = projection[:n_features] / np.linalg.norm(projection[:n_features], axis=1, keepdims=True)
    np.testing.assert_allclose(block @ block.T, np.eye(n_features), atol=4e-3)


# ---- Hadamard products
@pytest.mark.parametrize(("n_features", "n_bits"), [(129, 1000), (256, 256), (300, 1320), (600, 8)])
def test_hadamard_codes_are_those_of_the_matrix(n_features, n_bits):
    """Small integers (largest 64) stay integers throughout: ties included, floats are exact."""
    random = np.random.default_rng(5)
    X = random.integers(-64, 65, (70, n_features)).astype(float)
    X[:, 0] = 64
    X[:5, 1:] = random.integers(-1, 2, (5, n_features - 1)) * 64 * (random.random((5, n_features - 1)) < 0.02)
    encoder = SignRandomProjection(n_bits, "structured", random_state=1).fit(X)
    assert encoder.projection_ is None
    p = padded(n_features)
    assert p / 2 < n_features <= p
    assert encoder.signs_.shape == (-(-n_bits // p), 3, p)
    np.testing.assert_array_equal(encoder.transform(X), naive.hd3_bits(X / 64, encoder.signs_, n_bits))
    same = SignRandomProjection(n_bits, "hadamard", random_state=1).fit(X)
    np.testing.assert_array_equal(same.transform(X), encoder.transform(X))


@pytest.mark.parametrize("n_features", [1, 7, 128])
def test_hadamard_codes_of_few_features_pad_them_to_256(n_features):
    X = np.random.default_rng(5).integers(-64, 65, (70, n_features)).astype(float)
    X[:, 0] = 64
    encoder = SignRandomProjection(600, "hadamard", random_state=1).fit(X)
    assert encoder.projection_ is None
    assert encoder.signs_.shape == (3, 3, 256)
    np.testing.assert_array_equal(encoder.transform(X), naive.hd3_bits(X / 64, encoder.signs_, 600))


@pytest.mark.parametrize(("kind", "k"), [("dense", 4), ("dense", 60), ("sparse", 4), ("sparse", 60)])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_hadamard_codes_of_few_features_keep_the_arcsine_law(kind, k, rho):
    bias, error, variance = law("hadamard", kind, k, rho, 1024)
    assert abs(bias) < 0.012 + 4 * error
    assert variance < 1.3


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_features", [1, 128, 129, 1000])
def test_a_zero_row_has_all_ones(method, n_features):
    assert (fitted(method, n_features, 80).transform(np.zeros((2, n_features))) == 255).all()


# ---- the arcsine law
def pairs(kind, n, k, rho, random):
    """n pairs of cosine rho: x random and y random beside it, or both in the plane of two axes."""
    if kind == "dense":
        x, z = np.linalg.qr(random.standard_normal((n, k, 2)))[0].transpose(2, 0, 1)
    else:
        x, z = np.eye(k)[np.argsort(random.random((n, k)), axis=1)[:, :2].T]
    return x, rho * x + np.sqrt(1 - rho**2) * z


@cache
def law(method, kind, k, rho, n_bits, n_seeds=20, n_pairs=60):
    """Mean error, its standard error, and variance over that of independent directions."""
    errors = np.empty((n_seeds, n_pairs))
    for seed in range(n_seeds):
        x, y = pairs(kind, n_pairs, k, rho, np.random.default_rng(seed))
        encoder = SignRandomProjection(n_bits, method, random_state=1000 + seed).fit(x)
        differ = np.bitwise_count(encoder.transform(x) ^ encoder.transform(y)).sum(axis=1, dtype=int)
        errors[seed] = np.pi / 2 - np.pi * differ / n_bits - np.arcsin(rho)
    expected = ((np.pi / 2) ** 2 - np.arcsin(rho) ** 2) / n_bits
    return errors.mean(), errors.mean(axis=1).std(ddof=1) / np.sqrt(n_seeds), errors.var() / expected


def reference(name):
    with open(REFERENCE / name, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", reference("B_sign_projection.csv"), ids=lambda r: "-".join(list(r.values())[:5]))
def test_bias_and_variance_beside_the_reference(row):
    """256 inputs, 2048 bits; block-orthogonal rows are met at 64 inputs, where that method is used."""
    kind, rho = row["pair"], float(row["rho"])
    method = "gaussian" if row["projection"] == "gaussian" else "structured"
    k = 64 if row["projection"] == "block_orthogonal" else 256
    bias, error, ratio = law(method, kind, k, rho, 2048)
    known = 0.013 if row["projection"] == "HD3" and kind == "axis" else 0.0015
    assert abs(bias) < known + 4 * error
    if method == "gaussian":
        assert 0.85 < ratio < 1.15
    else:
        assert ratio < (1.0 if rho < 0.9 else 1.15)
        assert ratio < law("gaussian", kind, 256, rho, 2048)[2] * 1.1


@pytest.mark.parametrize("row", reference("B_HD3_bias_small_s.csv"), ids=lambda r: "-".join(list(r.values())[:3]))
def test_small_inputs_avoid_the_bias_of_hadamard_products(row):
    kind, k, rho = row["pair"], int(row["s"]), float(row["rho"])
    bias, error, _ = law("structured", kind, k, rho, 1024)
    if k >= 256:
        assert abs(bias - float(row["bias_of_estimate"])) < 4 * (error + float(row["se"]))
    else:
        assert abs(bias) < 0.001 + 4 * error


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
def test_gaussian_is_unbiased_at_300_features(rho):
    bias, error, ratio = law("gaussian", "dense", 300, rho, 2000, n_seeds=20, n_pairs=400)
    assert abs(bias) < 4 * error < 0.008
    assert 0.9 < ratio < 1.1


# ---- bad input
@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.array([[1.0, 2.0], [np.nan, 1.0]]), r"X\[1\] holds NaN"),
        (np.array([[1.0, np.inf]]), r"X\[0\] holds NaN or infinity"),
        (np.ones(3), r"2-D array .* got shape \(3,\)"),
        (np.ones((2, 0)), r"X has 0 feature\(s\)"),
        (np.ones((0, 3)), "X is empty"),
        (np.broadcast_to(np.float32(1), (1, 2**18 + 1)), "method='structured'"),
        (sp.csr_array(np.eye(2)), "sparse"),
    ],
)
def test_fit_names_what_is_wrong(X, message):
    with pytest.raises(ValueError, match=message):
        SignRandomProjection().fit(X)


def test_transform_names_what_is_wrong():
    with pytest.raises(NotFittedError):
        SignRandomProjection().transform(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"X has 4 features, but \w+ is expecting 3 features"):
        fitted("gaussian", 3).transform(np.ones((2, 4)))
    with pytest.raises(ValueError, match=r"X\[2\] holds NaN"):
        fitted("structured", 200).transform(np.where(np.arange(3)[:, None] == 2, np.nan, np.ones((3, 200))))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 100}, "multiple of 8 .* use n_bits=104"),
        ({"n_bits": 0}, "n_bits must be an integer >= 1"),
        ({"n_bits": 80.0}, "n_bits must be an integer >= 1, got 80.0"),
        ({"method": "haar"}, "one of 'gaussian', 'structured', 'hadamard', got 'haar'"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
def test_parameters_are_checked_in_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        SignRandomProjection(**parameters).fit(np.ones((2, 3)))


# ---- scikit-learn
def test_is_a_transformer():
    X = np.random.default_rng(0).standard_normal((12, 200))
    before = X.copy()
    encoder = clone(SignRandomProjection(n_bits=160, method="structured", random_state=3))
    codes = make_pipeline(StandardScaler(), encoder).fit_transform(X)
    assert codes.shape == (12, 20)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    assert encoder.n_features_in_ == 200
    assert list(encoder.get_feature_names_out())[-1] == "signrandomprojection19"
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize("dtype", [">f4", ">f8", "<f4", "<f8"])
def test_numbers_of_any_byte_order_make_one_code(dtype):
    X = np.random.default_rng(0).normal(size=(1, 9)).astype(np.float32)
    encoder = SignRandomProjection(80, random_state=0).fit(X)
    found = encoder._for_one()(X.astype(dtype))
    np.testing.assert_array_equal(encoder.transform(X.astype(dtype)) if found is None else found, encoder.transform(X))


def test_a_second_fit_forgets_the_first():
    encoder = SignRandomProjection(n_bits=80, random_state=0).fit(np.ones((1, 300)))
    encoder.set_params(method="structured").fit(np.ones((1, 300)))
    assert encoder.projection_ is None
    encoder.fit(np.ones((1, 5)))
    assert encoder.signs_ is None
    assert encoder.transform(np.ones((2, 5))).shape == (2, 10)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("part", [np.s_[:1], np.s_[:, :1], np.s_[..., :8]], ids=["rows", "columns", "last axis"])
def test_directions_that_do_not_fit_are_refused(method, part):
    """A file may hold anything; the compiled loop must not read beyond an array."""
    encoder = SignRandomProjection(n_bits=1024, method=method, random_state=0).fit(np.ones((1, 200)))
    name = "projection_" if method == "gaussian" else "signs_"
    setattr(encoder, name, getattr(encoder, name)[part])
    with pytest.raises(ValueError, match="fit again"):
        encoder.transform(np.ones((3, 200)))
