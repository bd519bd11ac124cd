"""ITQ and SignCodes: the Procrustes step, falling losses, bits and rotations that depend on nothing else."""

import csv
import json
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from threadpoolctl import ThreadpoolController, threadpool_limits

import similia as sm
import similia.codes.itq as itq_module
from naive import itq as naive_itq
from naive import similarities as naive
from similia.codes.bits import unpack_signs
from similia.codes.itq import ITQ, SignCodes
from similia.core.config import limited_to

REFERENCE = Path(__file__).parents[1] / "reference"


def clustered(n, k, seed=0, dtype=np.float64):
    """Rows around a few centres, with a mean far from 0 and directions of unequal length."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((5, k)) * 2
    rows = centres[random.integers(5, size=n)] + random.standard_normal((n, k))
    return (rows * np.linspace(2, 0.2, k) + 3).astype(dtype)


def first_rotation(k, seed):
    return itq_module.random_rotation(np.random.default_rng(seed).standard_normal((k, k)))


def blas_threads():
    return {library.filepath: library.num_threads for library in ThreadpoolController().lib_controllers}


def blas_limits():
    """Threads of the BLAS of numpy and scipy; faiss, where a test has loaded it, has one of its own."""
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return {library.num_threads for library in found if "faiss" not in library.filepath}


# ---- one step


def reference():
    with open(REFERENCE / "G_itq_example.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", reference(), ids=["2 bits", "3 bits"])
def test_nearest_rotation_beside_the_reference(row):
    Y, Z = (np.array(json.loads(row[name]), dtype=float).T for name in "YZ")  # columns are samples there
    expected = np.array(json.loads(row["Q_correct"].replace("'", '"')), dtype=float)
    Q, trace = itq_module.nearest_rotation(Y.T @ Z)
    np.testing.assert_allclose(Q, expected, atol=1e-12)
    assert naive_itq.loss(Y, Z, Q) == pytest.approx(float(row["obj_correct"]))
    assert naive_itq.loss(Y, Z, Q.T) == pytest.approx(float(row["obj_transposed"]))
    assert Y.size + np.sum(Z**2) - 2 * trace == pytest.approx(float(row["obj_correct"]))


def test_nearest_rotation_of_a_rank_deficient_product_is_orthogonal():
    Q, trace = itq_module.nearest_rotation(np.outer(np.arange(8.0), np.ones(8)))
    np.testing.assert_allclose(Q @ Q.T, np.eye(8), atol=1e-12)
    assert trace == pytest.approx(np.sqrt(140 * 8))


def test_the_first_rotation_is_uniform():
    """Without the rule R_ii > 0 the mean of Q_11 is not 0."""
    drawn = np.array([first_rotation(3, seed) for seed in range(2000)])
    np.testing.assert_allclose(drawn @ drawn.transpose(0, 2, 1), np.broadcast_to(np.eye(3), drawn.shape), atol=1e-12)
    assert np.abs(drawn.mean(axis=0)).max() < 5 / np.sqrt(3 * 2000)


# ---- the iteration


@pytest.mark.parametrize("n", [5, 300, 1025, 5000])
def test_fit_is_the_slow_iteration(n):
    Z = clustered(n, 16, seed=n)
    itq = ITQ(16, max_iter=6, tol=0, random_state=3).fit(Z)
    np.testing.assert_allclose(itq.mean_, Z.mean(axis=0), rtol=1e-12)
    centred = Z - Z.mean(axis=0)
    Q, losses = naive_itq.itq(centred, first_rotation(16, 3), itq.n_iter_)
    np.testing.assert_allclose(centred @ itq.rotation_, centred @ Q, atol=1e-4)  # 5 rows leave Q free elsewhere
    np.testing.assert_allclose(itq.losses_, losses, rtol=1e-6)
    np.testing.assert_allclose(itq.rotation_.T @ itq.rotation_, np.eye(16), atol=1e-12)


def test_zeros_count_as_plus_one_in_fit():
    Z = np.random.default_rng(0).integers(-1, 2, size=(50, 8)).astype(float)
    Q, losses = itq_module.learn_rotation(Z, np.eye(8), np.zeros(8), 1.0, 1, 0.0)  # mean 0, starts from the identity
    expected, expected_losses = naive_itq.itq(Z, np.eye(8), 1)
    np.testing.assert_allclose(Q, expected, atol=1e-6)
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-6)


def test_losses_are_those_of_the_definition():
    Z = clustered(60, 8)
    Q, centred = first_rotation(8, 0), Z - Z.mean(axis=0)
    for n_iter in range(1, 5):
        itq = ITQ(8, max_iter=n_iter, tol=0, random_state=0).fit(Z)
        Y = naive_itq.signs(centred @ Q)
        assert itq.losses_[-1] == pytest.approx(naive_itq.loss(Y, centred, itq.rotation_), rel=1e-6)
        assert len(itq.losses_) == itq.n_iter_ == n_iter
        Q = itq.rotation_


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.sampled_from([8, 16]), st.integers(0, 2**20), st.integers(-40, 40))
def test_losses_never_grow_and_units_do_not_matter(n, k, seed, exponent):
    Z = np.random.default_rng(seed).integers(-4, 5, size=(n, k)).astype(float)  # ties and equal rows abound
    Z[0], Z[-1] = 5, -5
    itq = ITQ(k, random_state=seed).fit(Z)
    assert (np.diff(itq.losses_) <= 1e-6 * itq.losses_[:-1].max(initial=1)).all()
    scaled = ITQ(k, random_state=seed).fit(np.ldexp(Z, exponent))
    np.testing.assert_array_equal(scaled.rotation_, itq.rotation_)
    np.testing.assert_array_equal(scaled.transform(np.ldexp(Z, exponent)), itq.transform(Z))


def test_the_rotation_lowers_the_loss_of_a_random_one():
    Z = PCA(16, random_state=0).fit_transform(clustered(2000, 60))
    Z /= Z.std()
    start = ITQ(16, max_iter=0, random_state=0).fit(Z)
    np.testing.assert_array_equal(start.rotation_, first_rotation(16, 0))
    assert start.n_iter_ == len(start.losses_) == 0
    centred = Z - Z.mean(axis=0)

    def own_loss(itq):
        Y = unpack_signs(itq.transform(Z)).astype(float)
        return np.sum((Y - centred @ itq.rotation_) ** 2)

    assert own_loss(ITQ(16, random_state=0).fit(Z)) < 0.9 * own_loss(start)


def test_it_finds_a_cube_again():
    """Corners of a cube, turned: the loss can reach 0, and two bits differ where two coordinates do."""
    corners = naive_itq.signs(np.random.default_rng(0).standard_normal((400, 8)))
    Z = (corners - corners.mean(axis=0)) @ first_rotation(8, 5)
    losses = [ITQ(8, max_iter=200, random_state=seed).fit(Z).losses_[-1] for seed in range(8)]
    floor = np.sum(corners.mean(axis=0) ** 2) * len(Z)
    assert min(losses) == pytest.approx(floor, rel=1e-3)


def test_early_stop():
    Z = clustered(500, 8)
    exact = ITQ(8, max_iter=500, tol=0, random_state=0).fit(Z)
    assert exact.n_iter_ < 500  # signs that stay as they are end it
    loose = ITQ(8, max_iter=500, tol=1e-2, random_state=0).fit(Z)
    assert loose.n_iter_ < exact.n_iter_
    np.testing.assert_array_equal(loose.losses_, exact.losses_[: loose.n_iter_])
    traces = (8 * 500 + np.sum((Z - Z.mean(axis=0)) ** 2) - exact.losses_) / 2
    growth = np.diff(traces) / traces[1:]
    assert growth[loose.n_iter_ - 2] <= 1e-2
    assert (growth[: loose.n_iter_ - 2] > 1e-2).all()


# ---- the same rotation, whatever the way


def as_memmap(Z, path):
    np.save(path / "Z.npy", Z)
    return np.load(path / "Z.npy", mmap_mode="r")


@pytest.mark.same_bits
def test_rotation_does_not_depend_on_threads_memory_layout_or_float_type(tmp_path):
    Z = clustered(9000, 24, dtype=np.float32)
    assert len(Z) > 2 * itq_module._GROUP_ROWS
    assert len(Z) % itq_module._BLOCK_ROWS
    fit = lambda X: ITQ(24, max_iter=5, random_state=1).fit(X)  # noqa: E731
    expected = fit(Z)
    wide = np.zeros((2 * len(Z), 24), np.float32)
    wide[::2] = Z
    forms = [Z.astype(np.float64), np.asfortranarray(Z), wide[::2], as_memmap(Z, tmp_path), Z.astype(">f4"), Z.tolist()]
    for threads in (1, 2):
        with threadpool_limits(threads), sm.config(max_memory=50_000):
            for X in forms if threads == 2 else [Z]:
                itq = fit(X)
                for name in ("rotation_", "mean_", "losses_"):
                    np.testing.assert_array_equal(getattr(itq, name), getattr(expected, name))


def test_float16_and_integers_are_the_numbers_they_hold():
    for Z in (clustered(400, 8, dtype=np.float16), np.round(clustered(400, 8) * 10).astype(np.int8)):
        narrow = ITQ(8, random_state=0).fit(Z)
        wide = ITQ(8, random_state=0).fit(Z.astype(float))
        np.testing.assert_array_equal(narrow.rotation_, wide.rotation_)
        np.testing.assert_array_equal(narrow.transform(Z), wide.transform(Z.astype(float)))


def test_a_far_mean_does_no_harm():
    Z = np.round(clustered(500, 8) * 64) / 64
    near, far = (ITQ(8, random_state=0).fit(X) for X in (Z, Z + 2.0**30))
    np.testing.assert_allclose(far.rotation_, near.rotation_, atol=1e-5)
    assert np.mean(near.transform(Z) != far.transform(Z + 2.0**30)) < 0.01


def test_the_seed_decides():
    Z = clustered(300, 16)
    make = lambda seed: ITQ(16, max_iter=3, random_state=seed).fit(Z).rotation_  # noqa: E731
    np.testing.assert_array_equal(make(5), make(np.random.default_rng(5)))
    assert not np.allclose(make(5), make(6))


def test_a_sample_is_enough_to_fit():
    Z = clustered(3000, 8)
    itq = ITQ(8, random_state=0, max_samples=500).fit(Z)
    random = np.random.default_rng(0)
    random.standard_normal((8, 8))
    rows = np.sort(random.choice(3000, 500, replace=False))
    np.testing.assert_array_equal(itq.rotation_, ITQ(8, random_state=0).fit(Z[rows]).rotation_)
    assert itq.transform(Z).shape == (3000, 1)
    everything = ITQ(8, random_state=0, max_samples=3000).fit(Z)
    np.testing.assert_array_equal(everything.rotation_, ITQ(8, random_state=0).fit(Z).rotation_)


def test_concurrent_fits_agree_and_leave_blas_as_it_was():
    Z = clustered(5000, 16)
    with threadpool_limits(2), ThreadPoolExecutor(4) as pool:
        before = blas_threads()
        expected = ITQ(16, max_iter=4, random_state=0).fit(Z).rotation_
        for itq in pool.map(lambda _: ITQ(16, max_iter=4, random_state=0).fit(Z), range(6)):
            np.testing.assert_array_equal(itq.rotation_, expected)
        assert blas_threads() == before


def test_blas_has_one_thread_while_sums_are_made(monkeypatch):
    """However little work there is: the order of a sum may change with the threads of BLAS."""
    seen, step = [], itq_module.nearest_rotation
    monkeypatch.setattr(itq_module, "nearest_rotation", lambda product: (seen.append(blas_limits()), step(product))[1])
    with threadpool_limits(2):
        ITQ(8, max_iter=2, random_state=0).fit(clustered(20, 8))
    assert seen == [{1}, {1}]


def test_an_interrupted_fit_leaves_everything_as_it_was(monkeypatch):
    Z = clustered(300, 8)
    itq = ITQ(8, max_iter=5, tol=0, random_state=0).fit(Z)
    state = {name: np.copy(value) for name, value in vars(itq).items() if name.endswith("_")}
    step, calls = itq_module.nearest_rotation, []

    def interrupted(product):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return step(product)

    with monkeypatch.context() as patch, threadpool_limits(2):
        before = blas_threads()
        patch.setattr(itq_module, "nearest_rotation", interrupted)
        with pytest.raises(KeyboardInterrupt):
            itq.set_params(random_state=1).fit(Z * 2)
        assert blas_threads() == before
    for name, value in state.items():
        np.testing.assert_array_equal(getattr(itq, name), value)
    assert itq.fit(Z).n_iter_ == 5


def test_fit_and_transform_make_no_array_of_n_rows():
    Z = clustered(60_000, 32, dtype=np.float32)
    itq = ITQ(32, max_iter=2, random_state=0).fit(Z[:5000])
    itq.transform(Z[:3000])
    with sm.config(max_memory="1MiB"):
        tracemalloc.start()
        try:
            codes = itq.fit(Z).transform(Z)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak - codes.nbytes < 0.5 * Z.nbytes


@pytest.mark.parametrize("form", [np.asarray, lambda Z: da.from_array(Z, chunks=(300, 8))])
def test_fit_holds_the_products_of_a_few_groups_at_once(form, monkeypatch):
    made, alive = [], []

    def products(*args, product=itq_module._sign_products):
        made.append(weakref.ref(found := product(*args)))
        alive.append(sum(one() is not None for one in made))
        return found

    monkeypatch.setattr(itq_module, "_sign_products", products)
    monkeypatch.setattr(itq_module, "_GROUP_ROWS", 16)
    monkeypatch.setattr(itq_module, "_PART_ROWS", 32)
    with limited_to(2):
        ITQ(8, max_iter=1, random_state=0).fit(form(clustered(16 * 200, 8)))
    assert len(alive) == 200
    assert max(alive) <= 20  # eight for each thread (Dask: of four parts), and some that are being added


# ---- the same bits, whatever the way


def awkward_rows(itq, random):
    """Rows whose products are 0 up to rounding for some bits, exact zeros, repeated rows, whole numbers."""
    k = itq.n_bits
    some = random.integers(-1, 2, (150, k)).astype(float)
    ties = some @ itq.rotation_.T  # products are `some`, up to rounding
    whole = random.integers(-3, 4, (100, k)).astype(float)
    rows = np.vstack([ties, ties * 2.0**-30, np.zeros((2, k)), np.eye(k), whole, whole[:20]]) + itq.mean_
    return random.permutation(rows)


@pytest.mark.same_bits
@pytest.mark.parametrize("k", [8, 24, 64])
def test_bits_do_not_depend_on_blocks_threads_or_other_rows(k, tmp_path):
    itq = ITQ(k, max_iter=3, random_state=0).fit(clustered(500, k))
    itq.mean_ = np.round(itq.mean_)  # so that rows at the mean are exact ties
    random = np.random.default_rng(1)
    X = awkward_rows(itq, random)
    X = X[random.integers(len(X), size=3000)]
    codes = itq.transform(X)
    assert codes.shape == (3000, k // 8)
    assert codes.dtype == np.uint8
    assert codes.flags.c_contiguous
    np.testing.assert_array_equal(np.vstack([itq.transform(x[None]) for x in X[:60]]), codes[:60])
    np.testing.assert_array_equal(np.vstack([itq.transform(X[i : i + 7]) for i in range(0, 400, 7)])[:400], codes[:400])
    some = random.permutation(len(X))
    np.testing.assert_array_equal(itq.transform(X[some]), codes[some])
    for threads in (1, 2):
        for memory in (2**30, 1, 40_000):
            part = X if memory > 1 else X[:200]
            with threadpool_limits(threads), sm.config(max_memory=memory):
                np.testing.assert_array_equal(itq.transform(part), codes[: len(part)])
    for other in (np.asfortranarray(X), as_memmap(X, tmp_path), X.astype(np.longdouble)):
        np.testing.assert_array_equal(itq.transform(other), codes)


@pytest.mark.same_bits
def test_bits_are_the_signs_of_sums_in_one_order():
    itq = ITQ(8, max_iter=3, random_state=0).fit(clustered(500, 8))
    X = awkward_rows(itq, np.random.default_rng(2))
    expected = np.packbits(naive.product_in_order(X - itq.mean_, itq.rotation_) >= 0, axis=1)
    np.testing.assert_array_equal(itq.transform(X), expected)
    assert (itq.transform(itq.mean_[None]) == 255).all()


def test_the_largest_and_smallest_floats_have_signs():
    itq = ITQ(8, random_state=0).fit(clustered(500, 8))
    itq.mean_ = np.zeros(8)
    X = np.random.default_rng(0).choice([-1.0, 1.0], (50, 8))
    for size in (1.7e308, 1e-280):
        np.testing.assert_array_equal(itq.transform(X * size), itq.transform(X))


@pytest.mark.parametrize("size", [1e-300, 1e150, 1e300])
def test_fit_takes_numbers_of_any_size(size):
    Z = clustered(200, 8)
    rotation = ITQ(8, max_iter=3, random_state=0).fit(Z).rotation_
    np.testing.assert_allclose(ITQ(8, max_iter=3, random_state=0).fit(Z * size).rotation_, rotation, atol=1e-5)


# ---- SignCodes


def test_sign_codes_are_the_signs_of_centred_numbers(tmp_path):
    X = np.round(clustered(5000, 24))
    coder = SignCodes().fit(X)
    expected = np.packbits(X - X.mean(axis=0) >= 0, axis=1)
    for other in (X, X.astype(np.float32), as_memmap(X, tmp_path), X.astype(np.int16)):
        np.testing.assert_array_equal(coder.transform(other), expected)
    with sm.config(max_memory=1000):
        np.testing.assert_array_equal(SignCodes().fit_transform(X), expected)
    np.testing.assert_array_equal(np.vstack([coder.transform(x[None]) for x in X[:30]]), expected[:30])
    plain = SignCodes(center=False).fit(X)
    assert not plain.mean_.any()
    np.testing.assert_array_equal(plain.transform(X), np.packbits(X >= 0, axis=1))


def test_sign_codes_at_the_mean_are_ones():
    X = np.array([[1.0] * 8, [3.0] * 8, [2.0] * 8])
    np.testing.assert_array_equal(SignCodes().fit_transform(X), [[0], [255], [255]])


def test_sign_codes_names_what_is_wrong():
    with pytest.raises(ValueError, match=r"X has 13 features, expected a multiple of 8 .* reduce them to 8"):
        SignCodes().fit(np.ones((2, 13)))
    with pytest.raises(ValueError, match=r"X has 0 feature\(s\)"):
        SignCodes().fit(np.ones((2, 0)))
    with pytest.raises(ValueError, match=r"X\[1\] holds NaN"):
        SignCodes().fit(np.array([[1.0] * 8, [np.nan] * 8]))
    coder = SignCodes().fit(np.ones((2, 8)))
    with pytest.raises(ValueError, match=r"X has 16 features, but \w+ is expecting 8 features"):
        coder.transform(np.ones((2, 16)))
    coder.mean_ = coder.mean_[:1]
    with pytest.raises(ValueError, match="fit again"):
        coder.transform(np.ones((2, 8)))
    with pytest.raises(NotFittedError):
        SignCodes().transform(np.ones((2, 8)))


# ---- bad input


def with_bad_row(row, value, n=6000):
    X = np.zeros((n, 8))
    X[:, 0] = np.arange(n)
    X[row, 3] = value
    return X


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (with_bad_row(0, np.nan), r"X\[0\] holds NaN or infinity"),
        (with_bad_row(5000, -np.inf), r"X\[5000\] holds NaN or infinity"),
        (np.ones(8), r"2-D array .* got shape \(8,\)"),
        (np.ones((0, 8)), "X is empty"),
        (np.ones((4, 9)), r"X has 9 features, expected n_bits=8.* n_components=8 before ITQ"),
        (np.full((4, 8), 0.1), "X has 4 equal rows, expected at least two different"),
        (np.zeros((1, 8)), "X has 1 equal rows"),
        (with_bad_row(0, 1.7e308, 2) + with_bad_row(1, 1.7e308, 2), r"numbers up to 1.7e\+308, too large to add"),
        (np.outer([1.7e308, -1.7e308, -1.7e308], np.ones(8)), r"numbers up to 1.7e\+308, too large to centre"),
        (np.full((2, 8), "NaT", "M8[D]"), r"X holds dates or times \(datetime64\[D\]\), expected numbers"),
        (sp.csr_array(np.eye(8)), "sparse"),
        (np.ones((3, 8)) * 1j, "complex"),
    ],
)
def test_fit_names_what_is_wrong(X, message):
    with pytest.raises(ValueError, match=message):
        ITQ(8).fit(X)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bits": 12}, "multiple of 8 .* use n_bits=16"),
        ({"n_bits": 8, "max_iter": -1}, "max_iter must be an integer >= 0"),
        ({"n_bits": 8, "tol": np.nan}, "tol must be a number >= 0"),
        ({"n_bits": 8, "max_samples": 1}, "max_samples must be an integer >= 2"),
        ({"n_bits": 8, "random_state": "seed"}, "random_state must be"),
    ],
)
def test_parameters_are_checked_in_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        ITQ(**parameters).fit(clustered(20, 8))


def test_transform_names_what_is_wrong():
    with pytest.raises(NotFittedError):
        ITQ(8).transform(np.ones((1, 8)))
    itq = ITQ(8, random_state=0).fit(clustered(50, 8))
    with pytest.raises(ValueError, match=r"X has 16 features, but \w+ is expecting 8 features"):
        itq.transform(np.ones((2, 16)))
    with sm.config(max_memory=1000), pytest.raises(ValueError, match=r"X\[50\] holds NaN"):
        itq.transform(with_bad_row(50, np.nan, 100))
    itq.rotation_ = itq.rotation_[:, :4]
    with pytest.raises(ValueError, match="fit again"):
        itq.transform(np.ones((2, 8)))


# ---- scikit-learn


def test_is_a_transformer():
    Z = clustered(100, 16)
    before = Z.copy()
    itq = ITQ(n_bits=16, max_iter=3, random_state=3, max_samples=50)
    assert itq.fit(Z) is itq
    np.testing.assert_array_equal(Z, before)
    fresh = clone(itq)
    assert fresh.get_params() == itq.get_params()
    assert not hasattr(fresh, "rotation_")
    np.testing.assert_array_equal(fresh.fit_transform(Z), itq.transform(Z))
    assert list(itq.get_feature_names_out()) == ["itq0", "itq1"]
    frame = clone(itq).set_output(transform="pandas").fit_transform(Z)
    assert list(frame.columns) == ["itq0", "itq1"]
    assert list(SignCodes().fit(Z).get_feature_names_out()) == ["signcodes0", "signcodes1"]


def test_grid_search_over_a_pipeline():
    X, y = load_digits(return_X_y=True)
    pipeline = Pipeline(
        [("pca", PCA(32, random_state=0)), ("codes", ITQ(32, random_state=0)), ("hd", sm.HDClassifier())]
    )
    search = GridSearchCV(pipeline, {"codes": [ITQ(32, random_state=0), SignCodes()], "hd__max_iter": [5]}, cv=2)
    search.fit(X[:600], y[:600])
    assert search.best_score_ > 0.6
    assert len(search.cv_results_["params"]) == 2


def test_progress_is_drawn_when_asked_for(capsys):
    with sm.config(progress=True):
        ITQ(8, max_iter=3, tol=0, random_state=0).fit(clustered(50, 8))
    assert "ITQ: 3/3" in capsys.readouterr().err


def test_pipelines_of_the_docstring():
    X = clustered(200, 40)
    for encoder in (ITQ(16, random_state=0), SignCodes()):
        codes = make_pipeline(PCA(16, random_state=0), encoder).fit_transform(X)
        assert codes.shape == (200, 2)
