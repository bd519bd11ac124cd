"""GeneralizedNystroemPCA: the paper's formulas, one sample for arrays, files, streams; exact bits; memory; errors."""

import copy
import csv
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import GeneratorType

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from threadpoolctl import threadpool_limits

import similia as sm
from naive import hashing as naive
from samples.hashing import (
    Rows,
    assert_same_fit,
    chunks,
    decaying,
    low_rank,
    parquet,
    projector,
    same_up_to_sign,
)
from similia.codes import _generalized_nystroem as core
from similia.codes.generalized_nystroem import GeneralizedNystroemPCA, Reservoir, smallest

# ---- the mathematics


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("orthonormalize", [True, False])
@pytest.mark.parametrize(("c", "r"), [(60, 15), (20, 40), (30, 30), (200, 50)])
def test_equals_the_slow_twin(c, r, orthonormalize, center):
    X = decaying(200, 50)
    pca = GeneralizedNystroemPCA(6, c, r, center=center, orthonormalize=orthonormalize, random_state=3).fit(X)
    random = np.random.default_rng(3)
    assert pca.feature_indices_.tolist() == naive.gn_smallest(random, 50, r)
    assert pca.sample_indices_.tolist() == naive.gn_smallest(random, 200, c)
    B, S, mean = naive.gn_directions(X, pca.sample_indices_, pca.feature_indices_, 6, center, orthonormalize)
    same_up_to_sign(pca.components_, B, atol=1e-9)
    np.testing.assert_allclose(pca.singular_values_, S, rtol=1e-9)
    np.testing.assert_allclose(pca.mean_, mean, atol=1e-12)
    assert pca.projection_error(X) == pytest.approx(naive.gn_projection_error(X, B, mean), rel=1e-9)
    np.testing.assert_allclose(pca.transform(X), (X - mean) @ pca.components_.T, atol=1e-10)
    np.testing.assert_allclose(pca.inverse_transform(pca.transform(X[:5])), (X[:5] - mean) @ B @ B.T + mean, atol=1e-8)


def test_norm_sampling_equals_constant_time_svd():
    X = decaying(150, 40) * np.random.default_rng(1).exponential(size=(150, 1))
    raw = GeneralizedNystroemPCA(4, 60, 20, sampling="norm", orthonormalize=False, random_state=0).fit(X)
    B, S = naive.gn_norm_directions(X, raw.sample_indices_, raw.feature_indices_, 4)
    same_up_to_sign(raw.components_, B, atol=1e-9)
    np.testing.assert_allclose(raw.singular_values_, S, rtol=1e-9)
    np.testing.assert_allclose(raw.mean_, X.mean(axis=0), atol=1e-12)
    pca = clone(raw).set_params(orthonormalize=True).fit(X)
    np.testing.assert_allclose(pca.components_ @ pca.components_.T, np.eye(4), atol=1e-12)
    np.testing.assert_allclose(projector(pca), projector(raw), atol=1e-9)


def test_norm_sampling_follows_the_norms_and_leaves_out_zero_rows():
    norms = np.array([0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 4.0])
    X = norms[:, None] * np.linalg.qr(np.random.default_rng(0).standard_normal((7, 7)))[0]
    seen = np.zeros(7)
    for seed in range(300):
        pca = GeneralizedNystroemPCA(1, 5, 0.9, sampling="norm", center=False, random_state=seed).fit(X)
        seen += np.bincount(pca.sample_indices_, minlength=7)
    assert not seen[[0, 4, 5]].any()
    used = np.flatnonzero(norms)
    assert chisquare(seen[used], 1500 * norms[used] ** 2 / (norms**2).sum()).pvalue > 1e-3


@cache
def reference_errors():
    found = {}
    with open(Path(__file__).parents[1] / "reference" / "G_projection_error.csv") as file:
        for row in csv.DictReader(file):
            found.setdefault(row["method"], []).append(float(row["rel_proj_error_F"]))
    return found


def errors_like_the_reference(**options):
    """Rows of 60 features whose singular values fall as i^-0.904: the best rank-8 error is 0.309, as there."""
    random = np.random.default_rng(0)
    U = np.linalg.qr(random.standard_normal((800, 60)))[0]
    X = U * np.arange(1, 61) ** -0.904 @ np.linalg.qr(random.standard_normal((60, 60)))[0]
    options = {"feature_fraction": 30, "center": False, **options}
    models = (GeneralizedNystroemPCA(8, 120, random_state=seed, **options).fit(X) for seed in range(20))
    return [model.projection_error(X) for model in models]


def test_projection_errors_of_the_reference():
    expected = reference_errors()
    ours, paper = errors_like_the_reference(), errors_like_the_reference(orthonormalize=False)
    assert np.mean(ours) == pytest.approx(np.mean(expected["qr(Utilde)"]), abs=0.005)
    assert max(ours) == pytest.approx(max(expected["qr(Utilde)"]), abs=0.01)
    assert np.mean(paper) == pytest.approx(np.mean(expected["paper_Utilde"]), abs=0.08)
    assert all(p > o > 0.309 for p, o in zip(paper, ours, strict=True))
    svd = errors_like_the_reference(feature_fraction=1.0)  # W = C: the SVD of the sampled rows
    assert np.mean(svd) == pytest.approx(np.mean(expected["svd(C) column-sampling"]), abs=0.005)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_rows_and_features_give_pca(dtype):
    X = decaying(120, 30, dtype)
    ours, pca = GeneralizedNystroemPCA(5, 1.0, 1.0).fit(X), PCA(5, svd_solver="full").fit(X)
    tolerance = 1e-4 if dtype == np.float32 else 1e-9
    same_up_to_sign(ours.components_, pca.components_.T, atol=tolerance)
    np.testing.assert_allclose(ours.singular_values_, pca.singular_values_, rtol=tolerance)
    assert ours.components_.dtype == dtype


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 6), st.integers(10, 60), st.integers(8, 30), st.integers(0, 2**16))
def test_laws(k, n, d, seed):
    X = low_rank(n, d, k, seed)
    pca = GeneralizedNystroemPCA(k, 0.3, 0.3, random_state=seed).fit(X)
    B = pca.components_
    np.testing.assert_allclose(B @ B.T, np.eye(k), atol=1e-9)
    assert pca.projection_error(X) < 1e-6  # exact at rank k: few rows and features span everything
    assert (B[np.arange(k), np.abs(B).argmax(axis=1)] > 0).all()
    assert (np.diff(pca.singular_values_) <= 0).all()
    assert len(pca.sample_indices_) == min(n, max(4 * k, int(np.ceil(round(0.3 * n, 9)))))
    assert len(pca.feature_indices_) == min(d, max(int(np.ceil(1.5 * k)), int(np.ceil(round(0.3 * d, 9)))))
    order = np.random.default_rng(seed).permutation(n)
    np.testing.assert_array_equal(pca.transform(X[order]), pca.transform(X)[order])


@pytest.mark.parametrize("orthonormalize", [True, False])
def test_ill_conditioned_directions_are_found(orthonormalize):
    """Standard deviations 1, 1e-2, ..., 1e-10: the Gram matrix has lost the last ones, the SVD has not."""
    random = np.random.default_rng(0)
    axes = np.linalg.qr(random.standard_normal((40, 40)))[0][:, :6]
    X = random.standard_normal((300, 6)) * 10.0 ** -np.arange(0, 12, 2) @ axes.T
    pca = GeneralizedNystroemPCA(6, 60, 15, orthonormalize=orthonormalize, random_state=0).fit(X)
    # Rounding of the products, about 1e-16 / 1e-10, is what may be left of an exact subspace.
    np.testing.assert_allclose(projector(pca), axes @ axes.T, atol=1e-4)
    assert pca.singular_values_[-1] == pytest.approx(np.sqrt(300) * 1e-10, rel=0.9)


def test_truncation_is_that_of_section_5b():
    X = decaying(100, 20)
    pca = GeneralizedNystroemPCA(3, 40, 10, random_state=0, orthonormalize=False).fit(X)
    C = np.sqrt(100 / 40) * (X[pca.sample_indices_] - pca.mean_).T
    share = pca.singular_values_[2] ** 2 / (np.linalg.norm(C, 1) * np.linalg.norm(C, np.inf))
    clone(pca).set_params(truncation=share * 0.999).fit(X)
    with pytest.raises(ValueError, match="only 2 usable directions"):
        clone(pca).set_params(truncation=share * 1.001).fit(X)
    norm = GeneralizedNystroemPCA(3, 40, 10, sampling="norm", random_state=0, truncation=0.9)
    with pytest.raises(ValueError, match=r"only [01] usable directions"):
        norm.fit(X)


# ---- memory


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-8)])
@pytest.mark.parametrize("center", [True, False])
def test_little_memory_gives_the_same_directions(dtype, tolerance, center):
    X = decaying(3000, 60, dtype)
    model = GeneralizedNystroemPCA(4, 0.2, 0.2, center=center, random_state=0)
    raw = clone(model).set_params(orthonormalize=False)
    streams = (lambda: X, lambda: chunks(X, 100), lambda: Rows(X, 64), lambda: sp.csr_array(X))
    for of in (model, raw):
        plenty = clone(of).fit(X)
        for source in streams:
            with sm.config(max_memory=24_000):
                little = clone(of).fit(source())
            np.testing.assert_array_equal(little.sample_indices_, plenty.sample_indices_)
            np.testing.assert_allclose(projector(little), projector(plenty), atol=tolerance)
            np.testing.assert_allclose(little.mean_, plenty.mean_, atol=1e-5)
            if of is raw:
                np.testing.assert_allclose(little.components_, plenty.components_, atol=tolerance)
            else:  # turned by a part of the rows: the same subspace, nearly the same axes
                np.testing.assert_allclose(little.components_ @ little.components_.T, np.eye(4), atol=1e-6)
                np.testing.assert_allclose(little.singular_values_, plenty.singular_values_, rtol=0.3)


def test_what_would_fit_is_named():
    X = decaying(3000, 60)
    with (
        sm.config(max_memory=12_000),
        pytest.raises(ValueError, match="feature_fraction=12 or sample_fraction=12 or"),
    ):
        GeneralizedNystroemPCA(4, 0.2, 0.5).fit(X)
    with sm.config(max_memory=12_000):
        GeneralizedNystroemPCA(4, 12, 0.5).fit(X)
        GeneralizedNystroemPCA(4, 0.2, 12).fit(X)
        with pytest.raises(ValueError, match="half of max_memory; use feature_fraction=12 or"):
            GeneralizedNystroemPCA(4, 0.2, 0.5).fit(chunks(X, 100))
        with pytest.raises(ValueError, match="sampling='norm' keeps them all"):
            GeneralizedNystroemPCA(4, 0.2, 0.2, sampling="norm").fit(X)
        with pytest.raises(ValueError, match="truncation needs"):
            GeneralizedNystroemPCA(4, 0.2, 0.2, truncation=1e-9).fit(X)
        with pytest.raises(ValueError, match="rows of a stream must fit"):
            GeneralizedNystroemPCA(4, 600, 0.2).fit(chunks(X, 100))


def test_low_memory_knows_its_rank():
    X = low_rank(3000, 60, 3)
    with sm.config(max_memory=24_000), pytest.raises(ValueError, match="only 3 usable directions"):
        GeneralizedNystroemPCA(4, 0.2, 0.2, random_state=0).fit(X)


# ---- exact bits


def awkward_rows(d, random):
    """Small integers (ties), repeated rows, rows near the mean, and random ones."""
    whole = random.integers(-3, 4, (90, d)).astype(float)
    rows = [whole, whole[:20], np.zeros((3, d)), np.eye(d), random.standard_normal((300, d)), whole * (1 + 2.0**-20)]
    return random.permutation(np.vstack(rows)).astype(np.float32)


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("d", "k"), [(33, 1), (40, 8), (300, 17), (700, 64)])
def test_transform_does_not_depend_on_other_rows_blocks_or_threads(d, k, dtype):
    X = awkward_rows(d, np.random.default_rng(0)).astype(dtype)
    pca = GeneralizedNystroemPCA(k, 0.5, 0.9, random_state=0).fit(X)
    Z = pca.transform(X)
    np.testing.assert_allclose(Z, (X - pca.mean_) @ pca.components_.T, atol=1e-3 if dtype == np.float32 else 1e-10)
    some = np.random.default_rng(1).permutation(len(X))
    for threads in (1, 2):
        with threadpool_limits(threads):
            np.testing.assert_array_equal(pca.transform(X[some]), Z[some])
            np.testing.assert_array_equal(np.concatenate([pca.transform(c) for c in chunks(X[:70], 7)]), Z[:70])
            np.testing.assert_array_equal(np.concatenate([pca.transform(x[None]) for x in X[:20]]), Z[:20])
            np.testing.assert_array_equal(pca.transform(np.asfortranarray(X)), Z)
            with sm.config(max_memory=100_000):
                np.testing.assert_array_equal(np.concatenate(list(pca.transform_chunks(X))), Z)


def test_a_stream_may_come_from_another_model():
    """Nothing that a source may need itself is held while it is read; concurrent calls wait for each other."""
    X = decaying(600, 30)
    first = GeneralizedNystroemPCA(10, 0.5, 0.5, random_state=0).fit(X)
    second = GeneralizedNystroemPCA(3, 0.2, 0.9, random_state=0)
    lazy = clone(second).fit(first.transform(chunk) for chunk in chunks(X, 50))
    assert_same_fit(lazy, clone(second).fit(first.transform(X)))
    with sm.config(max_memory=3000):
        clone(second).fit(first.transform(chunk) for chunk in chunks(X, 50))
    with ThreadPoolExecutor(4) as pool:
        for Z in pool.map(first.transform, [X] * 8):
            np.testing.assert_array_equal(Z, first.transform(X))


@pytest.mark.same_bits
def test_fit_does_not_depend_on_threads():
    X = decaying(3000, 300, np.float32)
    model = GeneralizedNystroemPCA(20, 0.5, 0.5, random_state=0)
    with threadpool_limits(1):
        expected = clone(model).fit(X)
    with threadpool_limits(2):
        assert_same_fit(clone(model).fit(X), expected)
    before, after = X.copy(), clone(model).set_params(sample_fraction=1.0).fit(X)
    np.testing.assert_array_equal(X, before)
    assert len(after.sample_indices_) == 3000


# ---- bad input


def partly(model, X):
    for chunk in chunks(X, 50):
        model.partial_fit(chunk, refit=False)
    return model.partial_fit(X[:0])


@pytest.mark.parametrize("copied", [copy.copy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_without_the_rows_of_the_first_chunks_takes_no_more(copied):
    X = decaying(100, 20)
    model = GeneralizedNystroemPCA(3, random_state=0).partial_fit(X[:50], refit=False)
    with pytest.raises(ValueError, match="keeps no rows to continue from"):
        copied(model).partial_fit(X[50:])
    assert clone(model).partial_fit(X[50:]).n_samples_seen_ == 50
    assert model.partial_fit(X[50:]).n_samples_seen_ == 100


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", [np.asarray, lambda X: chunks(X, 30), sp.csr_array])
def test_bad_rows_are_named(bad, form):
    X = decaying(600, 20)
    model = GeneralizedNystroemPCA(3, 0.2, 0.5, random_state=0).fit(X)
    row = int(model.sample_indices_[17])
    X[row, 5] = bad
    message = rf"X\[{row}\] holds NaN or infinity"
    for little in (False, True):
        with sm.config(max_memory=9_000 if little else None), pytest.raises(ValueError, match=message):
            clone(model).fit(form(X))
    for call in (model.transform, model.projection_error, lambda X: list(model.transform_chunks(X))):
        with pytest.raises(ValueError, match=message):
            call(form(X))
    if not isinstance(form(X), GeneratorType):
        with pytest.raises(ValueError, match=message):
            clone(model).set_params(sampling="norm").fit(form(X))


def test_overflow_is_no_nan():
    X = decaying(100, 20, np.float32)
    model = GeneralizedNystroemPCA(3, 0.5, 0.5, random_state=0).fit(X)
    X[41] = 3e38 * np.sign(model.components_[0])
    with pytest.raises(ValueError, match=r"X\[41\] is too large for sums in float32"):
        model.transform(X)


def test_the_smallest_numbers_of_single_precision_have_directions():
    X = np.random.default_rng(0).integers(-9, 10, (200, 20)).astype(np.float32)
    model = GeneralizedNystroemPCA(3, center=False, random_state=0)
    expected = clone(model).fit(X).components_
    np.testing.assert_allclose(clone(model).fit(X * np.float32(2.0**-149)).components_, expected, atol=1e-4)


@pytest.mark.parametrize("orthonormalize", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("rank", [0, 1, 5])
def test_too_few_directions(rank, dtype, orthonormalize):
    X = low_rank(200, 30, rank).astype(dtype)
    model = GeneralizedNystroemPCA(8, 0.5, 0.5, orthonormalize=orthonormalize, random_state=0)
    with pytest.raises(
        ValueError, match=rf"only {rank} usable directions .*; {f'use n_components={rank},' * bool(rank)}"
    ):
        model.fit(X)
    if rank:
        Xc = X - X.mean(axis=0)
        np.testing.assert_allclose(Xc @ projector(model.set_params(n_components=rank).fit(X)), Xc, atol=1e-4)


@pytest.mark.parametrize("feed", [lambda m, X: m.fit(X), lambda m, X: m.fit(chunks(X, 50)), partly])
def test_a_fraction_of_few_rows_and_features_is_enough_of_them(feed):
    """5 % of 200 rows and 30 % of 40 features would be 10 and 12: no 8 directions of either are near those of all."""
    X = decaying(200, 40)
    pca = feed(GeneralizedNystroemPCA(8, random_state=0), X)
    assert (len(pca.sample_indices_), len(pca.feature_indices_)) == (32, 12)
    pca = feed(GeneralizedNystroemPCA(16, random_state=0), X)
    assert (len(pca.sample_indices_), len(pca.feature_indices_)) == (64, 24)
    pca = feed(GeneralizedNystroemPCA(32, random_state=0), X)
    assert (len(pca.sample_indices_), len(pca.feature_indices_)) == (128, 40)
    pca = feed(GeneralizedNystroemPCA(8, 9, 8, random_state=0), X)
    assert (len(pca.sample_indices_), len(pca.feature_indices_)) == (9, 8)


def test_a_fraction_of_many_rows_is_that_fraction():
    X = np.broadcast_to(np.float32(0), (60_000, 1584))
    model = GeneralizedNystroemPCA(256)
    assert (model._count_rows(len(X)), model._count_columns(X.shape[1])) == (3000, 476)


def test_what_to_raise_is_named():
    X = low_rank(200, 30, 5)
    for shares, cure in [
        ((0.5, 0.5), "sample_fraction or feature_fraction"),
        ((1.0, 20), "feature_fraction"),
        ((9, 1.0), "sample_fraction"),
    ]:
        with pytest.raises(ValueError, match=f"use n_components=5, or raise {cure}$"):
            GeneralizedNystroemPCA(8, *shares, random_state=0).fit(X)
    with pytest.raises(ValueError, match=r"use n_components=5$"):
        GeneralizedNystroemPCA(8, 1.0, 1.0).fit(X)


def test_32_bits_of_digits():
    X = load_digits().data[:1600]
    codes = sm.recipes.pca_itq(32, random_state=0).fit_transform(X)
    assert len(np.unique(codes, axis=0)) > 1200


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.zeros(5), "must be a 2-D array"),
        (np.zeros((0, 5)), "X is empty"),
        (np.zeros((5, 0)), "0 feature"),
        ([], "must be a 2-D array"),
        (iter([]), "found no chunk"),
        (iter([np.zeros(3)]), "chunk 0 has shape"),
        (iter([np.zeros((3, 9)), np.zeros((3, 8))]), "chunk 1 has 8 features, expected 9"),
        (np.zeros((9, 9), complex), "complex"),
        (np.full((9, 9), "a"), "expected numbers"),
        ([[1.0, 2.0], [3.0]], "different lengths"),
        (Rows(np.zeros((3, 4, 5))), "2-D"),
        (3.0, "X is a float, expected"),
        (Path("rows.csv"), "expected .npy or .parquet"),
        (np.zeros((2, 9)), "needs at least 3 rows, found 2; use n_components=1"),
        (np.zeros((9, 1)), "needs at least 2 features, found 1; use n_components=1"),
    ],
)
def test_bad_sources(X, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedNystroemPCA(2).fit(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 0}, "n_components must be"),
        ({"sample_fraction": 0.0}, r"sample_fraction must be a float in \(0, 1\]"),
        ({"sample_fraction": 1.5}, "sample_fraction must be"),
        ({"feature_fraction": 0}, "feature_fraction must be"),
        ({"feature_fraction": True}, "feature_fraction must be"),
        ({"sample_fraction": 51}, "sample_fraction=51 rows are more than the 50"),
        ({"feature_fraction": 11}, "feature_fraction=11 features are more than the 10"),
        ({"sampling": "leverage"}, "sampling must be one of"),
        ({"truncation": -1.0}, "truncation must be"),
        ({"random_state": "a"}, "random_state must be"),
    ],
)
def test_bad_parameters(options, message):
    with pytest.raises(ValueError, match=message):
        GeneralizedNystroemPCA(**{"n_components": 2, **options}).fit(decaying(50, 10))


def test_other_refusals():
    X = decaying(50, 10)
    with pytest.raises(NotFittedError):
        GeneralizedNystroemPCA(2).transform(X)
    model = GeneralizedNystroemPCA(2).fit(X)
    with pytest.raises(ValueError, match=r"X has 9 features, but \w+ is expecting 10 features"):
        model.transform(X[:, :9])
    with pytest.raises(ValueError, match=r"Z has shape \(50, 10\), expected \(n, 2\)"):
        model.inverse_transform(X)
    with pytest.raises(ValueError, match="all rows are equal"):
        GeneralizedNystroemPCA(2, sampling="norm").fit(np.ones((50, 10)))
    with pytest.raises(ValueError, match="is read once"):
        GeneralizedNystroemPCA(2, sampling="norm").fit(chunks(X, 10))


def test_parquet_needs_pyarrow_and_numbers(tmp_path, monkeypatch):
    path = parquet(decaying(20, 3), tmp_path / "X.parquet")
    pa = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    write_table(pa.table({"a": [1.0], "name": ["x"]}), tmp_path / "names.parquet")
    with pytest.raises(ValueError, match=r"has no numbers in column 'name'"):
        GeneralizedNystroemPCA(1).fit(tmp_path / "names.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        GeneralizedNystroemPCA(1).fit(path)


def test_tables_and_integers():
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).integers(0, 255, (80, 12), dtype=np.uint8)
    model = GeneralizedNystroemPCA(3, 0.5, random_state=0)
    expected = clone(model).fit(X.astype(float))
    for source in (X, pandas.DataFrame(X), X.tolist()):
        fitted = clone(model).fit(source)
        assert_same_fit(fitted, expected)
        np.testing.assert_array_equal(fitted.transform(source), expected.transform(X.astype(float)))
    assert expected.get_feature_names_out()[0] == "generalizednystroempca0"


def test_gram_is_used_where_it_is_enough(monkeypatch):
    """Both ways to V, S give the same directions: the cheap one is chosen for well-conditioned samples only."""
    X = decaying(300, 40)
    model = GeneralizedNystroemPCA(5, 0.5, 0.5, random_state=0)
    expected = clone(model).fit(X)
    monkeypatch.setattr(core, "_GRAM_IS_ENOUGH", 2.0)
    np.testing.assert_allclose(model.fit(X).components_, expected.components_, atol=1e-9)


# ---- one sample, whatever the source


def sources(X, folder):
    np.save(folder / "X.npy", X)
    yield "path", folder / "X.npy"
    yield "str", str(folder / "X.npy")
    yield "memmap", np.load(folder / "X.npy", mmap_mode="r")
    yield "fortran order", np.asfortranarray(X)
    yield "rows", Rows(X)
    yield "rows in chunks", Rows(X, 16)
    yield "parquet", parquet(X, folder / "X.parquet")
    yield "parquet of lists", parquet(X, folder / "L.parquet", lists=True)
    for size in (1, 7, 64, 1000):
        yield f"chunks of {size}", chunks(X, size)
    yield "list of chunks", [X[:100], X[100:101], X[101:]]
    yield "sparse chunks", (sp.csr_array(chunk) for chunk in chunks(X, 50))


@pytest.mark.same_bits
@pytest.mark.parametrize("fraction", [0.1, 40, 1.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_all_sources_give_the_same_bits(dtype, fraction, tmp_path):
    X = decaying(400, 40, dtype)
    model = GeneralizedNystroemPCA(5, fraction, 0.5, random_state=7)
    expected = clone(model).fit(X)
    Z = expected.transform(X)
    for name, source in sources(X, tmp_path):
        fitted = clone(model).fit(source)
        assert_same_fit(fitted, expected)
        assert fitted.n_samples_seen_ == 400, name
    for name, source in sources(X, tmp_path):
        found = expected.transform(source)
        assert found.dtype == dtype, name
        np.testing.assert_array_equal(found, Z, err_msg=name)
    for name, source in sources(X, tmp_path):
        np.testing.assert_array_equal(np.concatenate(list(expected.transform_chunks(source))), Z, err_msg=name)
    for name, source in sources(X, tmp_path):
        assert expected.projection_error(source) == pytest.approx(expected.projection_error(X), rel=1e-9), name


def test_streams_of_vectors_are_read_like_arrays(tmp_path):
    X = decaying(300, 8, np.float64)
    np.savetxt(tmp_path / "X.csv", X, fmt="%.17g", delimiter=",", header=",".join("abcdefgh"), comments="")
    model = GeneralizedNystroemPCA(3, 0.2, 0.9, random_state=0)
    expected = clone(model).fit(X)
    assert_same_fit(clone(model).fit(sm.sources.open_stream(tmp_path / "X.csv", chunk=70)), expected)
    found = expected.transform(sm.sources.open_stream(tmp_path / "X.csv", chunk=70))
    np.testing.assert_array_equal(found, expected.transform(X))
    with pytest.raises(ValueError, match="X holds strings, expected vectors"):
        clone(model).fit(sm.sources.open_stream(["a", "b"]))


def test_long_streams_are_sampled_like_arrays():
    """Rows of a long stream are forgotten on the way; the sample is that of the array all the same."""
    X = decaying(20_000, 6, np.float32)
    for fraction in (0.01, 0.3, 25):
        model = GeneralizedNystroemPCA(2, fraction, 0.9, random_state=1)
        expected = clone(model).fit(X)
        for size in (333, 5000):
            assert_same_fit(clone(model).fit(chunks(X, size)), expected)


def test_reservoir_stays_small():
    for share, most in [(50, 50), (0.05, 2500)]:
        reservoir = Reservoir(np.random.default_rng(0), share, 1)
        for _ in range(50):
            reservoir.add(np.zeros((1000, 1)))
        assert most <= reservoir.nbytes / 8 <= 1.5 * (most + 8 * np.sqrt(most) + 64)


@pytest.mark.parametrize("size", [1, 13, 100, 500])
@pytest.mark.parametrize("fraction", [0.1, 30])
def test_partial_fit_equals_fit(fraction, size):
    X = decaying(500, 30)
    model = GeneralizedNystroemPCA(4, fraction, 0.5, random_state=5)
    streamed, quiet = clone(model), clone(model)
    for chunk in chunks(X, size):
        streamed.partial_fit(chunk, refit=size > 1)
        quiet.partial_fit(chunk, refit=False)
    assert_same_fit(streamed.partial_fit(X[:0]), model.fit(X))
    assert not hasattr(quiet, "components_")
    half = clone(model)
    for chunk in chunks(X[:250], 50):
        half.partial_fit(chunk)
    assert_same_fit(half, clone(model).fit(X[:250]))


def test_partial_fit_waits_and_says_when_it_cannot_go_on():
    X = decaying(60, 10)
    model = GeneralizedNystroemPCA(4, 0.5, random_state=0)
    model.partial_fit(X[:3])
    with pytest.raises(NotFittedError):
        model.transform(X)
    model.partial_fit(X[3:])
    for other in (pickle.loads(pickle.dumps(model)), GeneralizedNystroemPCA(4, 0.5).fit(X)):
        np.testing.assert_array_equal(other.transform(X).shape, (60, 4))
        with pytest.raises(ValueError, match="keeps no rows"):
            other.partial_fit(X)
    with pytest.raises(ValueError, match=r"X has 9 features, but \w+ is expecting 10 features"):
        model.partial_fit(X[:, :9])
    with pytest.raises(ValueError, match="sampling='uniform'"):
        GeneralizedNystroemPCA(4, sampling="norm").partial_fit(X)
    with sm.config(max_memory=2000), pytest.raises(ValueError, match="smaller sample_fraction"):
        GeneralizedNystroemPCA(4, 0.5).partial_fit(X)


def test_sample_is_uniform():
    rows, columns = np.zeros(40), np.zeros(12)
    X = decaying(40, 12)
    for seed in range(1000):
        pca = GeneralizedNystroemPCA(2, 0.2, 0.25, random_state=seed)
        pca.fit(X if seed % 2 else chunks(X, 9))
        assert len(np.unique(pca.sample_indices_)) == 8
        rows[pca.sample_indices_] += 1
        columns[pca.feature_indices_] += 1
    # Without replacement, counts vary less than chi-square's by (n - c) / (n - 1).
    for seen in (rows, columns):
        share = seen.mean() / 1000
        statistic = ((seen - seen.mean()) ** 2).sum() / (1000 * share * (1 - share)) * (len(seen) - 1) / len(seen)
        assert abs(statistic - (len(seen) - 1)) < 4 * np.sqrt(2 * (len(seen) - 1))


def test_fractions_in_single_precision_give_one_sample():
    X = decaying(1000, 20)
    model = GeneralizedNystroemPCA(5, np.float32(0.05), random_state=0)
    assert_same_fit(clone(model).fit(chunks(X, 64)), clone(model).fit(X))


def test_smallest():
    assert smallest(np.array([0.5, 0.1, 0.9, 0.2]), 2).tolist() == [1, 3]
    assert smallest(np.array([0.5, 0.1]), 9).tolist() == [0, 1]


@pytest.mark.parametrize("chunk", [None, 10])
def test_only_sampled_rows_are_read(chunk):
    X = decaying(1000, 20)
    source = Rows(X, chunk)
    pca = GeneralizedNystroemPCA(4, 0.05, random_state=0).fit(source)
    assert len(pca.sample_indices_) == 50
    if chunk is None:
        assert source.rows_read <= 1.1 * 50
    else:  # from the first to the last sampled row of a chunk
        assert source.rows_read <= 10 * len(np.unique(pca.sample_indices_ // 10))
    X[np.setdiff1d(np.arange(1000), pca.sample_indices_)] = np.nan  # never looked at
    assert_same_fit(GeneralizedNystroemPCA(4, 0.05, random_state=0).fit(X), pca)


@pytest.mark.parametrize(("fraction", "features"), [(0.3, 0.2), (20, 0.9)])
@pytest.mark.parametrize("options", [{}, {"sampling": "norm"}, {"orthonormalize": False}, {"center": False}])
def test_sparse_equals_dense(fraction, features, options):
    X = decaying(200, 60, offset=0.1) * (np.random.default_rng(0).random((200, 60)) < 0.3)
    model = GeneralizedNystroemPCA(5, fraction, features, random_state=0, **options)
    dense, sparse = clone(model).fit(X), clone(model).fit(sp.csc_matrix(X))
    np.testing.assert_array_equal(sparse.sample_indices_, dense.sample_indices_)
    np.testing.assert_allclose(sparse.components_, dense.components_, atol=1e-8)
    np.testing.assert_allclose(sparse.singular_values_, dense.singular_values_, rtol=1e-8)
    np.testing.assert_allclose(sparse.transform(sp.csr_array(X)), dense.transform(X), atol=1e-8)
    assert sparse.projection_error(sp.csr_array(X)) == pytest.approx(dense.projection_error(X), rel=1e-8)


def test_sparse_rows_are_read_alike_in_any_order_and_with_repeated_entries():
    X = sp.csr_array(np.where(np.random.default_rng(0).random((40, 12)) < 0.4, decaying(40, 12), 0))
    halves = X.tocoo()
    order = np.random.default_rng(1).permutation(2 * X.nnz)
    places = tuple(np.tile(axis, 2)[order] for axis in (halves.row, halves.col))
    repeated = sp.coo_array((np.tile(halves.data / 2, 2)[order], places), shape=X.shape)
    unsorted = sp.csr_array((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
    for start, stop in pairwise(X.indptr):
        unsorted.data[start:stop] = X.data[start:stop][::-1]
        unsorted.indices[start:stop] = X.indices[start:stop][::-1]
    model = GeneralizedNystroemPCA(3, random_state=0)
    expected = clone(model).fit(X)
    for form in (repeated, unsorted):
        assert_same_fit(clone(model).fit(form), expected)
        np.testing.assert_array_equal(expected.transform(form), expected.transform(X))
