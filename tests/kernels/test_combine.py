"""Sum, Product, Normalized and wrapped Python functions."""

from __future__ import annotations

import dask
import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from dask.delayed import delayed
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

import similia as sm
from similia.checks.laws import check_kernel
from similia.distances import Levenshtein
from similia.embeddings.landmarks import Gram
from similia.kernels import (
    RBF,
    Cosine,
    GappedKmers,
    GappyKmers,
    Graphlet,
    MeanMap,
    NegativeDistance,
    Normalized,
    Optical,
    Product,
    Spectrum,
    Sum,
    WeightedDegree,
    WeisfeilerLehman,
)
from similia.objects import StringBatch, as_strings
from similia.similarity import without_addresses
from similia.sources.dask import Distributed

LAW = settings(max_examples=25, deadline=None)
STRINGS = ["GATTACA", "ACA", "TTTTT", "GATTTACA", "ACA", "C"]
WEIGHTS = st.sampled_from([0.0, 0.25, 1.0, 3.0])


def common_letters(x, y):
    return len(set(x) & set(y))


def length_kernel(X, Y=None):
    """A plain callable, with no diag and no hook."""
    lengths = [np.array([len(x) for x in objects], dtype=np.float32) for objects in (X, X if Y is None else Y)]
    return np.outer(*lengths)


@LAW
@given(st.lists(st.text("ACGT", max_size=9), min_size=1, max_size=5), WEIGHTS, WEIGHTS)
def test_a_sum_is_the_sum_and_a_product_the_product(strings, v, w):
    a, b = Spectrum(2)(strings), length_kernel(strings)
    kernels = [Spectrum(2), length_kernel]
    np.testing.assert_allclose(Sum(kernels, weights=[v, w])(strings), v * a + w * b)
    np.testing.assert_array_equal(Sum(kernels)(strings), a + b)
    np.testing.assert_array_equal(Product(kernels)(strings), a * b)
    np.testing.assert_allclose(Sum(kernels, weights=[v, w]).diag(strings), (v * a + w * b).diagonal())
    np.testing.assert_array_equal(Product(kernels).diag(strings), (a * b).diagonal())


def test_normalized_by_hand():
    # 1-mers: AAAT = (3, 1), AT = (1, 1): 4 / sqrt(10 * 2)
    K = Normalized(Spectrum(1))(["AAAT", "AT", ""])
    np.testing.assert_allclose(K, [[1, 4 / 20**0.5, 0], [4 / 20**0.5, 1, 0], [0, 0, 1]], rtol=1e-14)
    np.testing.assert_array_equal(Normalized(Spectrum(1))(["", "A"], ["", "A"]), [[0, 0], [0, 1]])
    np.testing.assert_array_equal(Normalized(Spectrum(1)).diag(["", "A"]), [1, 1])


def test_normalized_is_0_where_an_object_has_kernel_0_with_itself():
    kernel = Normalized(NegativeDistance(Levenshtein()))  # whose other values are not 0
    np.testing.assert_array_equal(kernel(["A", "CC"]), np.eye(2))
    np.testing.assert_array_equal(kernel(["A", "CC"], ["A", "G"]), np.zeros((2, 2)))


def test_normalized_takes_all_settings_from_x():
    X, Y = [[[0.0], [1.0]]], [[[0.0], [0.01]]]
    kernel = Normalized(MeanMap(RBF()))
    np.testing.assert_array_equal(kernel(X, Y), kernel.decided(X)(X, Y))
    np.testing.assert_array_equal(kernel([np.empty((0, 1))], Y), [[0]])
    np.testing.assert_array_equal(Normalized(Cosine())([[1.0, 0.0]], [[1.0, -1.0]]), Cosine()([[1, 0]], [[1, -1]]))


@pytest.mark.parametrize(
    "part", [Spectrum(2), GappedKmers(5, 4), GappedKmers(5, 4, "forgotten"), WeightedDegree(3)], ids=repr
)
def test_normalized_is_normalize(part):
    strings = [*STRINGS, ""]
    np.testing.assert_array_equal(Normalized(part)(strings), clone(part).set_params(normalize=True)(strings))


@pytest.mark.parametrize(
    "kernel",
    [
        Sum([Spectrum(1), Normalized(Spectrum(2)), length_kernel], weights=[1, 0.5, 0.1]),
        Product([Spectrum(1), Sum([Spectrum(2), GappyKmers()]), length_kernel]),
        Normalized(Product([Spectrum(1), sm.pairwise(common_letters)])),
        Normalized(length_kernel),
        sm.pairwise(common_letters),
    ],
    ids=["sum", "product", "nested", "callable", "pairwise"],
)
def test_laws_of_a_kernel(kernel):
    check_kernel(kernel, STRINGS)
    check_kernel(kernel, as_strings(STRINGS))


def test_a_user_kernel_is_not_written_to():
    K = np.array([[4.0, 2.0], [2.0, 9.0]])
    K.flags.writeable = False
    result = Normalized(lambda X, Y=None: K if len(X) == 2 else np.array([[X[0] ** 2]]))([2.0, 3.0])
    np.testing.assert_allclose(result, [[1, 1 / 3], [1 / 3, 1]])
    assert K[0, 0] == 4.0


@pytest.mark.parametrize(
    ("combine", "parts"),
    [
        (lambda k: k, 1),
        (lambda k: Sum([k, k]), 2),
        (Normalized, 1),
        (lambda k: Normalized(Product([k, Sum([k, k])])), 3),
        (lambda k: Sum([Normalized(k), k]), 2),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_each_part_is_called_once_for_what_an_object_has_with_itself(combine, parts, lazy):
    sizes, reads = [], []

    def counted(X, Y=None):
        sizes.append(len(X))
        return length_kernel(X, Y)

    def read(part):
        reads.append(part)
        return part

    X = [delayed(read, pure=False)(part) for part in (STRINGS[:4], STRINGS[4:])] if lazy else STRINGS
    with dask.config.set(scheduler="synchronous"):
        gram = Gram(combine(counted), Distributed(X) if lazy else X)
        reads.clear()  # which counted the objects
        assert gram.eps() == gram.eps(np.ones((1, 1))) == np.finfo(np.float32).eps
        assert (sizes, len(reads)) == ([1] * parts, int(lazy))
        diagonal = gram.diagonal()
    assert sum(sizes) == parts + parts * len(STRINGS)
    np.testing.assert_array_equal(diagonal, np.diagonal(combine(length_kernel)(STRINGS, STRINGS)))


def test_parameters_of_parts_are_reached():
    kernel = Sum([Spectrum(2), Normalized(GappyKmers(4))], weights=[1.0, 2.0])
    assert kernel.get_params()["k1__kernel__gaps"] == 1
    assert Sum([Spectrum]).get_params() == {"kernels": [Spectrum], "weights": None, "k0": Spectrum}  # refused later
    assert sorted(kernel.get_params(deep=False)) == ["kernels", "weights"]
    changed = clone(kernel).set_params(k0__k=3, k1__kernel__gaps=0, weights=[3.0, 4.0])
    expected = 3 * Spectrum(3)(STRINGS) + 4 * GappyKmers(4, 0, normalize=True)(STRINGS)
    np.testing.assert_allclose(changed(STRINGS), expected)
    assert kernel.kernels[0].k == 2  # the clone shares nothing
    replaced = clone(kernel).set_params(k0=length_kernel)
    assert replaced.kernels[0] is length_kernel
    assert kernel.kernels[0].k == 2
    assert kernel.set_params(kernels=[Spectrum(5)], weights=None).get_params()["k0__k"] == 5


def test_an_unknown_parameter_is_refused():
    with pytest.raises(ValueError, match="k2"):
        Sum([Spectrum(2), Spectrum(3)]).set_params(k2__k=1)


def test_grid_search_reaches_a_part():
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    class ByKernel(sm.kernels.Kernel):
        """A transformer of strings to rows of a kernel against the training strings."""

        def __init__(self, kernel):
            self.kernel = kernel

        def fit(self, X, y=None):
            self.X_ = X
            return self

        def transform(self, X):
            return self.kernel(X, self.X_)

    # the label is the order of two letters: 1-mers do not see it, 2-mers do
    X, y = ["AC", "CA"] * 6, [0, 1] * 6
    pipeline = make_pipeline(ByKernel(Sum([Spectrum(1), Spectrum(1)])), SVC(kernel="linear"))
    search = GridSearchCV(pipeline, {"bykernel__kernel__k1__k": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"bykernel__kernel__k1__k": 2}
    assert search.best_score_ == 1.0
    assert len(ParameterGrid(search.param_grid)) == 2


def test_strings_are_converted_once_for_all_parts():
    assert isinstance(Sum([Spectrum(1), GappyKmers()]).as_objects(STRINGS), StringBatch)
    assert Sum([Spectrum(1), length_kernel]).as_objects(STRINGS) is STRINGS
    assert Product([Spectrum(1), sm.pairwise(common_letters)]).as_objects(STRINGS) is STRINGS
    assert isinstance(Normalized(Spectrum(1)).as_objects(STRINGS), StringBatch)
    kernel = Sum([Spectrum(1), length_kernel])  # a function gets the column of a table, as it does alone
    np.testing.assert_array_equal(kernel(pd.DataFrame({"s": STRINGS})), kernel(STRINGS))


class Lengths:
    """A kernel of a user whose hook makes plain arrays: `power` differs, the type does not."""

    def __init__(self, power):
        self.power = power

    def as_objects(self, X):
        return X if isinstance(X, np.ndarray) else np.array([len(x) ** self.power for x in X], dtype=float)

    def __call__(self, X, Y=None):
        return np.outer(self.as_objects(X), self.as_objects(X if Y is None else Y))


def test_arrays_of_one_type_are_not_taken_for_one_layout():
    K = Sum([Lengths(1), Lengths(2)])(["AC", "A"])
    np.testing.assert_array_equal(K, [[2 * 2 + 4 * 4, 2 + 4], [2 + 4, 2]])


@pytest.mark.parametrize("n_features", [3, 4001, 2**20])
def test_features_of_a_sum_stand_side_by_side(n_features):
    a, b, c = Spectrum(2), Normalized(GappyKmers()), WeightedDegree(2)
    kernel = Sum([a, b, c], weights=[1.0, 4.0, 0.0])
    features = kernel.features(STRINGS, n_features)
    assert features.shape == (6, n_features)
    assert features.indices.dtype == np.int32
    shares = [n_features // 3, (n_features + 1) // 3, (n_features + 2) // 3]
    assert sum(shares) == n_features
    blocks = [part.features(STRINGS, share).toarray() for part, share in zip((a, b, c), shares, strict=True)]
    expected = blocks[0] @ blocks[0].T + 4 * blocks[1] @ blocks[1].T
    np.testing.assert_allclose((features @ features.T).toarray(), expected)


def test_features_of_normalized():
    features = Normalized(Spectrum(2)).features([*STRINGS, ""])
    np.testing.assert_array_equal(
        features.toarray()[:, np.unique(features.indices)],
        Spectrum(2, normalize=True).features([*STRINGS, ""]).toarray()[:, np.unique(features.indices)],
    )


@pytest.mark.parametrize(
    ("kernel", "error", "message"),
    [
        (Sum([]), ValueError, r"Sum takes a list of kernels as Sum\(\[Spectrum\(3\), Spectrum\(4\)\]\), got \[\]"),
        (Product(Spectrum()), ValueError, r"Product takes a list of kernels"),
        (Sum([Spectrum(), 3]), TypeError, r"kernels\[1\] is 3, expected a kernel"),
        (Product([Spectrum]), TypeError, r"kernels\[0\] is the class Spectrum, .* write Spectrum\(...\)"),
        (Sum([Spectrum()], weights=[1, 2]), ValueError, r"one number for each of 1 kernels, got shape \(2,\)"),
        (Sum([Spectrum()], weights=[-1]), ValueError, r"weights must be finite and >= 0, .*, got \[-1\]"),
        (Sum([lambda X, Y=None: np.ones(3)]), ValueError, r"shape \(3,\) for 6 x 6 objects, expected \(6, 6\); wrap"),
        (Normalized(lambda X, Y=None: -np.ones((len(X), len(X)))), ValueError, r"X\[0\] has kernel -1.0 with itself"),
    ],
)
def test_a_wrong_part_is_named(kernel, error, message):
    with pytest.raises(error, match=message):
        kernel(STRINGS)


def test_a_part_without_features_is_named():
    for kernel in (Sum([Spectrum(), length_kernel]), Sum([Spectrum(), Product([Spectrum()])])):
        with pytest.raises(TypeError, match=r"kernels\[1\] .* has no explicit features; similia.Nystroem"):
            kernel.features(STRINGS)
    assert not hasattr(Product([Spectrum()]), "features")


# ---- pairwise


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 33, 50])
def test_pairwise_is_the_double_loop(n):
    rng = np.random.default_rng(n)
    xs, ys = rng.integers(0, 9, n).tolist(), rng.integers(0, 9, 7).tolist()
    calls = []

    def function(x, y):
        calls.append((x, y))
        return 10 * min(x, y)

    np.testing.assert_array_equal(sm.pairwise(function)(xs), 10 * np.minimum.outer(xs, xs))
    assert len(calls) == n * (n + 1) // 2
    np.testing.assert_array_equal(sm.pairwise(function)(xs, ys), 10 * np.minimum.outer(xs, ys))
    np.testing.assert_array_equal(sm.pairwise(function).diag(xs), 10 * np.array(xs))


def test_an_asymmetric_function_is_called_for_all_pairs():
    difference = sm.pairwise(lambda x, y: x - y, symmetric=False)
    np.testing.assert_array_equal(difference([1, 2, 5]), np.subtract.outer([1, 2, 5], [1, 2, 5]))


@pytest.mark.same_bits
@pytest.mark.parametrize("symmetric", [True, False])
def test_processes_give_the_same_values(symmetric):
    factor = 0.1  # a closure, which plain pickle refuses
    kernel = sm.pairwise(lambda x, y: factor * common_letters(x, y) - (0 if symmetric else len(x)), symmetric)
    strings = STRINGS * 5
    alone = kernel(strings)
    np.testing.assert_array_equal(kernel.set_params(n_jobs=2)(strings), alone)
    with sm.config(n_jobs=2):
        np.testing.assert_array_equal(kernel.set_params(n_jobs=None)(strings), alone)


@pytest.mark.parametrize("kind", [tuple, as_strings, pd.Series, pl.Series, pa.array, np.array], ids=without_addresses)
def test_any_collection_of_objects(kind):
    expected = sm.pairwise(common_letters)(STRINGS)
    np.testing.assert_array_equal(sm.pairwise(common_letters)(kind(STRINGS)), expected)
    shuffled = pd.Series(STRINGS, index=[5, 4, 3, 2, 1, 0])  # positions count, not labels
    np.testing.assert_array_equal(sm.pairwise(common_letters)(shuffled, kind(STRINGS)), expected)


@pytest.mark.parametrize("form", ["bsr", "coo", "csc", "csr", "dia", "lil"])
def test_sparse_matrices_are_collections_of_rows(form):
    rows = sp.random(5, 4, 0.5, format=form, random_state=0)
    expected = sm.pairwise(lambda x, y: float(x @ y))(rows.toarray())
    np.testing.assert_allclose(sm.pairwise(lambda x, y: (x @ y.T).sum())(rows), expected)


def divide(x, y):
    return 1 / (y - x) if (x, y) == (3, 3) else x * y


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (divide, ValueError, r"divide failed for the pair \(3, 3\): ZeroDivisionError: division by zero"),
        (lambda x, y: np.nan if x + y > 4 else 1.0, ValueError, r"returned nan for the pair \(1, 4\), .* finite"),
        (lambda x, y: 10 ** (80 * (x + y)), ValueError, r"too large for float64 for the pair \(0, 4\), .* finite"),
        (lambda x, y: "5", TypeError, r"returned str for the pair \(0, 0\), expected one real number"),
        (lambda x, y: np.ones(2), TypeError, r"returned ndarray for the pair \(0, 0\)"),
        (lambda x, y: None, TypeError, r"returned NoneType for the pair \(0, 0\)"),
        (lambda x, y: 1j, TypeError, r"returned complex for the pair \(0, 0\)"),
    ],
)
def test_the_pair_that_fails_is_named(function, error, message, n_jobs):
    with pytest.raises(error, match=message):
        sm.pairwise(function, n_jobs=n_jobs)([0, 1, 2, 3, 4])


def test_values_that_are_numbers_of_any_kind():
    for value in (True, 2, np.float32(2), np.array(2.0), np.int8(2)):
        np.testing.assert_array_equal(sm.pairwise(lambda x, y, v=value: v)([0]), [[float(value)]])


def test_wrong_use_of_pairwise():
    with pytest.raises(TypeError, match="takes a function"):
        sm.pairwise(3)
    with pytest.raises(ValueError, match="X is empty"):
        sm.pairwise(common_letters)([])
    with pytest.raises(ValueError, match="Y is empty"):
        sm.pairwise(common_letters)(["A"], [])


def test_progress_is_drawn_on_request_only(capsys):
    sm.pairwise(common_letters)(STRINGS)
    assert capsys.readouterr().err == ""
    with sm.config(progress=True):
        K = sm.pairwise(common_letters)(STRINGS)
    np.testing.assert_array_equal(K, sm.pairwise(common_letters)(STRINGS))


def test_a_part_that_leaves_out_labels_does_not_hide_them():
    X = [nx.path_graph(4), nx.path_graph(4)]
    nx.set_node_attributes(X[0], "C", "label")
    nx.set_node_attributes(X[1], "N", "label")
    parts = [Graphlet(3), WeisfeilerLehman(1)]
    expected = parts[0](X) + parts[1](X)
    assert parts[1](X)[0, 1] == 0
    for kernel in (Sum(parts), Sum(parts[::-1]), Sum([Sum(parts)])):
        np.testing.assert_array_equal(kernel(X), expected)
        np.testing.assert_array_equal(kernel(kernel.as_objects(X)), expected)


@pytest.mark.parametrize("combined", [Sum, Product])
def test_objects_in_a_column_of_a_data_frame_are_its_entries(combined):
    kernel, texts = combined([sm.pairwise(common_letters)]), ["ACGT", "AC", "G"]
    model = sm.learn.KNeighborsClassifier(kernel).fit(texts, texts)
    assert model.predict(pd.DataFrame({"text": texts})).tolist() == texts


def inner_products(X, Y=None):
    return np.asarray(X) @ np.asarray(X if Y is None else Y).T


@pytest.mark.parametrize("part", [Optical(), inner_products])
@pytest.mark.parametrize("name", ["__call__", "diag", "_self_values"])
def test_a_product_too_large_for_float64_is_refused(name, part):
    X = np.array([[1.0, 0.0], [1e45, 0.0], [0.0, 1e45]])
    with pytest.raises(ValueError, match=r"^the product of the kernels of X\[1\] and [XY]\[1\] exceeds the largest"):
        getattr(Product([Optical(), Optical(), part]), name)(X)


@pytest.mark.filterwarnings("error")
def test_infinity_times_0_is_too_large():
    X, Y = np.array([[1e45, 0.0]]), np.array([[0.0, 1e45]])
    with pytest.raises(ValueError, match=r"of X\[0\] and Y\[0\] exceeds the largest float64"):
        Product([Optical(), Optical(), inner_products])(X, Y)
