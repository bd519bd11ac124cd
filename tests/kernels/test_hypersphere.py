"""Maps to the hypersphere, versines and the cosine kernel: twins, laws, what is refused, small angles."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

import similia as sm
from naive import sphere as naive_sphere
from similia.kernels import Normalized, Product, Sum, hypersphere
from similia.kernels.hypersphere import Cosine, map_pair, resolve_mapping, to_hypersphere, versines
from similia.sources.dask import as_partitions

laws = settings(max_examples=30, deadline=None)
SEEDS = st.integers(0, 2**32 - 1)
MAPPINGS = ["sqrt", "projection"]


def rows(n, d, seed=0, mapping="projection", density=1.0):
    """Rows of numbers of either sign, or of counts, without zero rows."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) if mapping == "projection" else rng.poisson(2.0, (n, d)).astype(float)
    X *= rng.random((n, d)) < density
    X[np.arange(n), rng.integers(0, d, n)] += 3.0
    return X


# ---- the map


@laws
@given(seed=SEEDS, d=st.integers(2, 9), mapping=st.sampled_from(MAPPINGS))
def test_map_is_that_of_each_row(seed, d, mapping):
    X = rows(5, d, seed, mapping)
    expected = np.array([naive_sphere.unit_row(x, mapping) for x in X])
    np.testing.assert_allclose(to_hypersphere(X, mapping), expected, rtol=1e-15, atol=1e-16)
    np.testing.assert_allclose(to_hypersphere(sp.csr_matrix(X), mapping).toarray(), expected, rtol=1e-15, atol=1e-16)


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("factor", [1e-300, 1e-100, 3.0, 1e120, 1e307])
def test_map_does_not_depend_on_the_length_of_a_row(mapping, factor):
    X = rows(4, 6, 1, mapping)
    X /= X.sum(axis=1, keepdims=True) if mapping == "sqrt" else np.abs(X).max()
    for Z in (X * factor, sp.csr_array(X * factor)):
        mapped = to_hypersphere(Z, mapping)
        mapped = mapped.toarray() if sp.issparse(mapped) else mapped
        np.testing.assert_allclose(mapped, to_hypersphere(X, mapping), rtol=1e-13)


def test_auto_is_the_root_unless_an_entry_is_negative():
    counts, signed = rows(3, 4, 0, "sqrt"), rows(3, 4)
    np.testing.assert_array_equal(to_hypersphere(counts), to_hypersphere(counts, "sqrt"))
    np.testing.assert_array_equal(to_hypersphere(signed), to_hypersphere(signed, "projection"))
    assert resolve_mapping(sp.csr_array(signed), "auto") == "projection"
    assert resolve_mapping(-np.zeros((2, 2)), "auto") == "sqrt"


def test_the_reference_of_a_pair_decides():
    counts, signed = rows(3, 4, 0, "sqrt"), rows(3, 4)
    A, B = map_pair(counts, signed, Cosine())
    np.testing.assert_array_equal(A, to_hypersphere(counts, "projection"))
    np.testing.assert_array_equal(B, to_hypersphere(signed, "projection"))
    i, j = np.argwhere(signed < 0)[0]
    with pytest.raises(ValueError, match=rf'X\[{i}\], column {j} is -.*chosen by "auto" for Y.*mapping="projection"'):
        Cosine()(signed, counts)


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_types_in_and_out(mapping):
    X = rows(4, 5, 2, mapping, density=0.5)
    X = np.rint(X)
    X[:, 0] = 1
    expected = to_hypersphere(X, mapping)
    for Z in (X.tolist(), X.astype(np.int8), X.astype(np.float16), np.asfortranarray(X), X.astype(">f8")):
        mapped = to_hypersphere(Z, mapping)
        assert mapped.dtype == np.float64
        np.testing.assert_array_equal(mapped, expected)
    single = to_hypersphere(X.astype(np.float32), mapping)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, expected.astype(np.float32))
    for form in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.csc_matrix, sp.lil_array):
        mapped = to_hypersphere(form(X), mapping)
        assert isinstance(mapped, sp.csr_array)
        assert mapped.dtype == np.float64
        np.testing.assert_allclose(mapped.toarray(), expected, rtol=1e-15)
    assert to_hypersphere(sp.csr_array(X.astype(np.float32)), mapping).dtype == np.float32


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_uniform_zero_rows(form):
    X = rows(5, 4)
    X[[1, 3]] = 0
    mapped = to_hypersphere(form(X), "projection", zero_rows="uniform")
    mapped = mapped.toarray() if sp.issparse(mapped) else mapped
    np.testing.assert_array_equal(mapped[[1, 3]], np.full((2, 4), 0.5))
    kept = [0, 2, 4]
    np.testing.assert_allclose(mapped[kept], to_hypersphere(X[kept]), rtol=1e-15)


def test_unit_rows_are_returned_as_they_are():
    X = to_hypersphere(rows(3, 4))
    assert to_hypersphere(X, None) is X
    single = (X * (1 + 5e-5)).astype(np.float32)
    np.testing.assert_array_equal(to_hypersphere(single, None), single)
    np.testing.assert_allclose(versines(single), versines(X), atol=1e-7)  # angles, not products
    for wrong, shown in ((X * (1 + 2e-6), "1.000002"), ((X * 1.0002).astype(np.float32), "1.0002")):
        with pytest.raises(ValueError, match=rf"X\[0\] has norm {shown}.*, expected 1 within .*mapping=None"):
            to_hypersphere(wrong, None)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("block", [1, 2**18])
def test_what_is_refused(form, block, monkeypatch):
    monkeypatch.setattr("similia.kernels.hypersphere._BLOCK", block)

    def changed(row, column, value):
        X = np.eye(5) + 0.5
        if row >= 0:
            X[row, column] = value
        return form(X)

    X = changed(-1, 0, 0.0)
    for value, shown in ((np.nan, "nan"), (np.inf, "inf"), (-np.inf, "-inf")):
        with pytest.raises(ValueError, match=rf"X\[3\], column 2 is {shown}, expected finite numbers"):
            Cosine()(changed(3, 2, value))
        with pytest.raises(ValueError, match=rf"Y\[3\], column 2 is {shown}, expected finite numbers"):
            Cosine()(X, changed(3, 2, value))
    with pytest.raises(ValueError, match=r'data\[2\], column 4 is -0.25, but the map is "sqrt"'):
        to_hypersphere(changed(2, 4, -0.25), "sqrt", name="data")
    zero = np.eye(5)
    zero[3] = 0
    with pytest.raises(ValueError, match=r"Y\[3\] is zero in all 5 columns and has no direction.*uniform"):
        Cosine()(X, form(zero))
    with pytest.raises(ValueError, match=r"X\[1\] has norm 2, expected 1 within 1e-06"):
        Cosine(mapping=None)(form(np.diag([1.0, 2.0])))
    with pytest.raises(ValueError, match=r"X\[3\] has norm 0, expected 1"):
        Cosine(mapping=None, zero_rows="uniform")(form(zero))
    with pytest.raises(ValueError, match="X has 5 features and Y has 2, expected as many in both"):
        Cosine()(X, form(np.eye(2)))
    with pytest.raises(ValueError, match=r"X has 1 feature\(s\) .*while a minimum of 2 is required"):
        Cosine()(form(np.ones((3, 1))))
    with pytest.raises(ValueError, match="X is empty: found 0 vectors, expected at least one"):
        Cosine()(form(np.ones((0, 3))))
    with pytest.raises(ValueError, match="X holds complex numbers"):
        Cosine()(form(np.ones((2, 2)) * 1j))
    with pytest.raises(ValueError, match="mapping must be 'auto', 'sqrt', 'projection' or None, got 'l2'"):
        Cosine(mapping="l2")(X)
    with pytest.raises(ValueError, match="zero_rows must be 'raise' or 'uniform', got 'drop'"):
        Cosine(zero_rows="drop")(X)


OWNERS = [
    (sm.KernelSVC(Cosine()), "Cosine"),
    (sm.KernelSVC(sm.kernels.HypersphericalHeat(2.0)), "HypersphericalHeat"),
    (sm.HeatSVC(2.0, 1.0), "HeatSVC"),
    (sm.HeatRandomFeatures(8, contrast=2.0, random_state=0), "HeatRandomFeatures"),
]


@pytest.mark.parametrize(("model", "owner"), OWNERS, ids=[owner for _, owner in OWNERS])
def test_errors_about_rows_name_the_class_with_the_parameter(model, owner):
    X, y = rows(6, 5, mapping="sqrt"), [0, 1] * 3
    zero = np.vstack([X[:-1], np.zeros((1, 5))])
    remedy = rf'drop it, or use {owner}\(zero_rows="uniform"\) to put'
    fitted = clone(model).fit(X, y)
    call = fitted.predict if hasattr(fitted, "predict") else fitted.transform
    with pytest.raises(ValueError, match=remedy):
        call(zero)
    if owner != "HeatRandomFeatures":  # its `fit` maps no rows
        with pytest.raises(ValueError, match=remedy):
            clone(model).fit(zero, y)
    with pytest.raises(ValueError, match=rf'; use {owner}\(mapping="projection"\)$'):
        call(-X)


def test_errors_of_the_function_name_its_parameter_alone():
    with pytest.raises(ValueError, match=r'drop it, or use zero_rows="uniform" to put'):
        to_hypersphere(np.zeros((1, 3)))


def test_one_vector_is_refused():
    with pytest.raises(ValueError, match=r"X must be a 2-D .*, got shape \(3,\); Reshape your data: write one vector"):
        Cosine()([1.0, 2.0, 3.0])


def test_many_uniform_rows_of_many_columns_are_refused():
    X = sp.csr_array((100, 10**6))
    with (
        sm.config(max_memory="100MB"),
        pytest.raises(ValueError, match=r"X has 100 zero rows \(the first is 0\).*max_memory"),
    ):
        to_hypersphere(X, zero_rows="uniform")


def test_uniform_rows_may_fill_the_memory_exactly():
    X = sp.csr_array((2, 10))
    with sm.config(max_memory=16 * 10 * 2):
        assert to_hypersphere(X, zero_rows="uniform").nnz == 20
    with sm.config(max_memory=16 * 10 * 2 - 1), pytest.raises(ValueError, match="2 zero rows"):
        to_hypersphere(X, zero_rows="uniform")


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("row", [0, 4, 6])
def test_the_mapping_of_a_distributed_collection_is_that_of_its_rows_in_memory(row, sparse):
    dask_array = pytest.importorskip("dask.array")
    X = np.ones((7, 3))
    X[row, 1] = -1
    parts = dask_array.from_array(X, chunks=(4, 3))
    parts = parts.map_blocks(sp.csr_array) if sparse else parts
    assert Cosine().decided(as_partitions(parts)).mapping == "projection"
    assert Cosine().decided(as_partitions(abs(dask_array.from_array(X, chunks=(4, 3))))).mapping == "sqrt"


def test_the_mapping_of_blocks_of_zeros_is_decided(monkeypatch):
    dask_array = pytest.importorskip("dask.array")
    monkeypatch.setattr(hypersphere, "_ROWS", 2)
    X = np.zeros((5, 3))
    for value, mapping in ((0, "sqrt"), (-1, "projection")):
        X[4, 1] = value
        parts = as_partitions(dask_array.from_array(X, chunks=(2, 3)).map_blocks(sp.csr_array))
        assert Cosine(zero_rows="uniform").decided(parts).mapping == mapping


def test_input_is_not_changed():
    X = rows(4, 6, 0, "sqrt", density=0.5)
    S = sp.csr_array((np.ones(4), [2, 0, 0, 1], [0, 2, 4]), shape=(2, 3))  # unsorted, and one column twice
    before = X.copy(), S.indices.copy(), S.data.copy()
    X.flags.writeable = S.data.flags.writeable = S.indices.flags.writeable = False
    Cosine()(X)
    np.testing.assert_allclose(Cosine()(S), Cosine()(S.toarray()))
    for now, then in zip((X, S.indices, S.data), before, strict=True):
        np.testing.assert_array_equal(now, then)


# ---- versines


@laws
@given(seed=SEEDS, n=st.integers(1, 9), d=st.integers(2, 12), mapping=st.sampled_from(MAPPINGS))
def test_versines_of_all_pairs(seed, n, d, mapping):
    A, B = (to_hypersphere(rows(k, d, seed + k, mapping, 0.6), mapping) for k in (n, 7))
    expected = naive_sphere.versine_matrix(A, B)
    a, b = sp.csr_array(A), sp.csr_array(B)
    for V in (versines(A, B), versines(a, b), versines(a, B), versines(A, b)):
        assert V.dtype == np.float64
        np.testing.assert_allclose(V, expected, rtol=1e-12, atol=1e-15)
    for V in (versines(A), versines(a)):
        np.testing.assert_allclose(V, naive_sphere.versine_matrix(A, A), rtol=1e-12, atol=1e-15)
        np.testing.assert_array_equal(V, V.T)
        assert not V.diagonal().any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse", [False, True])
def test_small_versines_have_all_digits(dtype, sparse):
    rng = np.random.default_rng(5)
    base = rows(1, 40, 3) * (rng.random(40) < 0.7)
    near = base + 10.0 ** -rng.integers(1, 9, (39, 1)) * rng.standard_normal((39, 40)) * (rng.random((39, 40)) < 0.8)
    A = to_hypersphere(np.vstack([base, near]).astype(dtype), "projection")
    expected = np.zeros((40, 40))
    for i in range(40):
        for j in range(i):
            expected[i, j] = expected[j, i] = naive_sphere.exact_versine(A[i], A[j])
    small = (expected < 0.99e-3) & (expected > 0)
    assert small.sum() > 500
    assert expected[small].min() < 1e-14
    V = versines(sp.csr_array(A)) if sparse else versines(A)
    np.testing.assert_array_equal(V, V.T)
    # Norms are known to 1e-16, and errors of a norm are at right angles to the difference.
    np.testing.assert_allclose(V[small], expected[small], rtol=1e-13, atol=1e-31)
    np.testing.assert_allclose(V, expected, rtol=1e-13, atol=1e-6 if dtype == np.float32 else 1e-15)


@pytest.mark.same_bits
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equal_rows_are_at_zero(dtype, form):
    A = to_hypersphere(np.repeat(rows(40, 9, 2, "sqrt", 0.5), 20, axis=0).astype(dtype))
    V, W = versines(form(A)), versines(form(A), form(A[::-1].copy()))
    equal = (A[:, None] == A[None]).all(axis=2)
    assert equal.sum() == 40 * 20**2
    np.testing.assert_array_equal(V == 0, equal)
    np.testing.assert_array_equal(W[:, ::-1] == 0, equal)


@pytest.mark.parametrize("density", [1.0, 0.05])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tiles_agree_with_one_tile(density, dtype, monkeypatch):
    A = to_hypersphere(rows(300, 50, 4, "projection", density).astype(dtype))
    A[37] = A[290]
    monkeypatch.setattr(hypersphere, "_TILE", 1000)
    expected, crossed = versines(A), versines(A, A[:211])
    tolerance = {"rtol": 0, "atol": 3e-7 if dtype == np.float32 else 1e-15}
    for tile, width in ((64, 48), (33, 1000), (1, 7)):
        monkeypatch.setattr(hypersphere, "_TILE", tile)
        monkeypatch.setattr(hypersphere, "_TILE_COLUMNS", width)
        for a in (A, sp.csr_array(A)):
            V = versines(a)
            np.testing.assert_allclose(V, expected, **tolerance)
            np.testing.assert_array_equal(V, V.T)
            np.testing.assert_allclose(versines(a, a[:211]), crossed, **tolerance)


@pytest.mark.same_bits
def test_threads_agree():
    A = to_hypersphere(rows(700, 30, 4, "projection", 0.3))
    with threadpool_limits(1):
        expected = [(versines(a), versines(a, a[:300])) for a in (A, sp.csr_array(A))]
    with threadpool_limits(2):
        again = [(versines(a), versines(a, a[:300])) for a in (A, sp.csr_array(A))]
    for (V, W), (V2, W2) in zip(expected, again, strict=True):
        np.testing.assert_array_equal(V, V2)
        np.testing.assert_array_equal(W, W2)


def test_a_million_columns():
    rng = np.random.default_rng(0)
    n, d, nnz = 40, 10**6, 30
    columns = np.concatenate([rng.choice(d, nnz, replace=False) for _ in range(n)])
    columns[::nnz] = 7  # one column that all share
    S = sp.csr_array((rng.random(n * nnz) + 0.1, columns, np.arange(0, n * nnz + 1, nnz)), shape=(n, d))
    used = np.unique(S.indices)
    expected = Cosine()(sp.csc_array(S)[:, used].toarray())
    for indices in (np.int32, np.int64):
        S.indices, S.indptr = S.indices.astype(indices), S.indptr.astype(indices)
        np.testing.assert_allclose(Cosine()(S), expected, atol=1e-14)


# ---- the cosine kernel


@laws
@given(seed=SEEDS, d=st.integers(2, 9), mapping=st.sampled_from(["auto", *MAPPINGS]))
def test_cosine_laws(seed, d, mapping):
    X = rows(8, d, seed, "projection" if mapping == "projection" else "sqrt")
    X[3] = X[5]
    kernel = Cosine(mapping)
    K = kernel(X)
    A = np.sqrt(X / X.sum(axis=1, keepdims=True)) if mapping != "projection" else X
    A = A / np.linalg.norm(A, axis=1, keepdims=True)
    np.testing.assert_allclose(K, A @ A.T, atol=1e-14)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K.diagonal(), kernel.diag(X))
    assert K[3, 5] == 1
    assert np.abs(K).max() <= 1
    assert np.linalg.eigvalsh(K).min() > -1e-13
    np.testing.assert_allclose(kernel(X, X), K, atol=1e-15)
    lengths = np.random.default_rng(seed).uniform(0.1, 10, (8, 1))
    np.testing.assert_allclose(kernel(X * lengths), K, atol=1e-14)
    order = np.random.default_rng(seed).permutation(8)
    np.testing.assert_allclose(kernel(X[order]), K[np.ix_(order, order)], atol=1e-15)
    np.testing.assert_allclose(np.vstack([kernel(X[:3], X), kernel(X[3:], X)]), K, atol=1e-15)
    np.testing.assert_allclose(kernel(X[:, ::-1]), K, atol=1e-14)
    np.testing.assert_allclose(kernel(sp.csc_array(X)), K, atol=1e-15)
    np.testing.assert_allclose(kernel(sp.csr_array(X), X[:4]), K[:, :4], atol=1e-15)
    single = kernel(X.astype(np.float32))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, K, atol=5e-7)


def test_opposite_vectors():
    X = np.array([[1.0, 2.0, -2.0], [-1.0, -2.0, 2.0], [3.0, 6.0, -6.0]])
    np.testing.assert_array_equal(Cosine()(X), [[1, -1, 1], [-1, 1, -1], [1, -1, 1]])
    A = to_hypersphere(rows(200, 17))
    assert (A @ -A.T).min() < -1  # by rounding
    for a in (A, sp.csr_array(A)):
        assert versines(a, -a).max() == 2


def test_proportions_give_the_bhattacharyya_coefficient():
    assert Cosine()([[1, 3]], [[1, 1]])[0, 0] == pytest.approx(np.sqrt(1 / 8) + np.sqrt(3 / 8))


def test_as_an_estimator():
    kernel = Cosine(mapping="sqrt", zero_rows="uniform")
    assert kernel.get_params() == {"mapping": "sqrt", "zero_rows": "uniform"}
    X = rows(30, 6, 0, "sqrt")
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(clone(kernel)))(X), kernel(X))
    y = X[:, 0] > X[:, 1]
    assert SVC(kernel=kernel, C=100).fit(X, y).score(X, y) > 0.9
    Z = sm.Nystroem(kernel, n_components=30, random_state=0).fit_transform(X)
    np.testing.assert_allclose(Z @ Z.T, kernel(X), atol=1e-6)


def test_whoever_learns_decides_the_map_once():
    """One negative row among many: landmarks, batches and folds that lack it must not be mapped otherwise."""
    rng = np.random.default_rng(0)
    X = rng.poisson(2.0, (60, 8)).astype(float) + 0.1
    X[7, 3] = -1.0
    projected = Cosine("projection")
    assert Cosine().decided(X).mapping == "projection"
    assert Cosine().decided(X[10:]).mapping == "sqrt"
    assert projected.decided(X) is projected
    for kernel, twin in (
        (Cosine(), projected),
        (Sum([Cosine(), Cosine()], [1, 2]), Sum([projected, projected], [1, 2])),
        (Product([projected, Cosine()]), Product([projected, projected])),
        (Normalized(Cosine()), Normalized(projected)),
    ):
        nystroem = sm.Nystroem(kernel, landmarks=[20, 30, 40, 50]).fit(X)
        expected = sm.Nystroem(twin, landmarks=[20, 30, 40, 50]).fit(X)
        np.testing.assert_array_equal(nystroem.transform(X[10:20]), expected.transform(X[10:20]))
        np.testing.assert_array_equal(nystroem.transform(X), expected.transform(X))
        assert nystroem.kernel is kernel


@pytest.mark.parametrize(
    ("X", "error", "found"),
    [
        ([["a", "b"], ["c", "d"]], ValueError, "X cannot be read as a table of numbers .*; drop or encode"),
        (np.array([["1", "2"]]), ValueError, "X cannot be read as a table of numbers .found <U1."),
        ([[1.0, 2.0], [3.0]], ValueError, r"X\[1\] has the shape \(1,\), unlike X\[0\] of shape \(2,\)"),
        (np.array([[1, {}]], dtype=object), TypeError, "X cannot be read as a table of numbers"),
        (
            np.ma.array([[1.0, 5.0]], mask=[[0, 1]]),
            ValueError,
            r"X\[0\], entry 1 is masked, expected data without gaps; fill",
        ),
    ],
)
def test_what_is_no_table_of_numbers(X, error, found):
    with pytest.raises(error, match=found):
        Cosine()(X)


def test_numbers_in_object_arrays_and_of_other_types():
    X = np.array([[1, 2], [3, 5]])
    for same in (X.astype(object), X.astype(np.int8), X.tolist(), X.astype(np.float64)):
        np.testing.assert_array_equal(Cosine()(same), Cosine()(X))
    np.testing.assert_array_equal(Cosine()(X > 1), Cosine()((X > 1).astype(int)))


def test_wrong_parameters_fail_before_the_product(monkeypatch):
    monkeypatch.setattr("similia.kernels.hypersphere.versines", lambda *rows: pytest.fail("the product was computed"))
    with pytest.raises(ValueError, match="contrast must be below"):
        sm.kernels.HypersphericalHeat(9.0)(np.eye(4))


def test_a_row_is_named_by_its_number_in_the_whole():
    X = rows(40, 5)
    vectors, machine = sm.Nystroem(Cosine(), 5, random_state=0).fit(X), sm.KernelSVC(Cosine()).fit(X, np.arange(40) % 2)
    X[30] = 0
    for method in (vectors.transform, machine.predict):
        with sm.config(max_memory="1KB"), pytest.raises(ValueError, match=r"^X\[30\] is zero in all 5 columns"):
            method(X)
