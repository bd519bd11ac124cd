"""Dask collections: what is learnt and returned is that of the same objects in memory, however they are parted."""

import os
import signal

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.delayed import delayed
from distributed import Client, LocalCluster
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import similia as sm
from similia.codes import SignCodes
from similia.sources.dask import Distributed, as_partitions

RNG = np.random.default_rng(0)
WORDS = ["".join(RNG.choice(list("ACGT"), n)) for n in RNG.integers(5, 12, size=60)]
WORDS += WORDS[:20] + [word[:-1] + "A" for word in WORDS[:20]]  # ties and near ties
WORDS += [word[::-1] for word in WORDS[:20]]
LABELS = np.array(["a", "b", "c"])[RNG.integers(3, size=len(WORDS))]
CODES = RNG.integers(256, size=(120, 2), dtype=np.uint8)
CODES[40:80] = CODES[:40]
VECTORS = RNG.normal(size=(120, 16)) @ RNG.normal(size=(16, 16))
VECTORS[60:90] = -VECTORS[:30]
KERNEL = sm.kernels.GappyKmers(k=4, gaps=1)

cuts = st.lists(st.integers(0, 120), max_size=6).map(sorted)


def pieces(X, at):
    return [X[a:b] for a, b in zip([0, *at], [*at, len(X)], strict=True)]


def bag(X, at):
    return db.from_delayed([delayed(piece, traverse=False) for piece in pieces(X, at)])


def array(X, at, columns=-1):
    return da.from_array(X, chunks=(tuple(len(piece) for piece in pieces(X, at)), columns))


def assert_same(model, other):
    """Compare what two models learnt, bit for bit."""
    learnt = {name: value for name, value in vars(model).items() if isinstance(value, np.ndarray)}
    assert learnt
    for name, value in learnt.items():
        assert np.array_equal(value, getattr(other, name)), name


@pytest.mark.same_bits
@settings(max_examples=15, deadline=None)
@given(at=cuts, landmarks=st.sampled_from(["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"]))
def test_nystroem(at, landmarks):
    local, remote = (sm.Nystroem(KERNEL, 20, landmarks=landmarks, random_state=1) for _ in range(2))
    there = bag(WORDS, at)
    assert_same(local.fit(WORDS), remote.fit(there))
    assert type(remote.landmarks_) is type(local.landmarks_)  # in the layout the kernel works on
    Z = remote.transform(there)
    assert Z.shape == (len(WORDS), remote.rank_)  # known since fit has counted
    assert np.array_equal(Z.compute(scheduler="sync"), local.transform(WORDS))


def test_a_part_of_few_objects_does_not_warn_for_the_whole():
    model = sm.Nystroem(KERNEL, 20, random_state=1).fit(WORDS)
    few, many = bag([*WORDS, ""], [120]), bag(["", "A"] * 20, [])
    assert not model.transform(few).compute(scheduler="sync")[-1].any()  # warnings are errors
    with pytest.warns(UserWarning, match="40 of 40 objects have similarity 0"):
        model.transform(many).compute(scheduler="sync")
    with pytest.warns(UserWarning, match="1 of 1 objects have similarity 0"):
        model.transform([""])
    counted = bag([*WORDS, *["", "A"] * 20], [120])
    as_partitions(counted).lengths  # noqa: B018
    with pytest.warns(UserWarning, match=r"40 of the objects 120 to 159 have similarity 0 .* X\[120\]"):
        model.transform(counted).compute(scheduler="sync")


@pytest.mark.same_bits
@settings(max_examples=8, deadline=None)
@given(at=cuts, init=st.sampled_from([("zeros", 4), ("bundle", 0), ("bundle", 3)]))
def test_nyshd(at, init):
    local, remote = (sm.recipes.nyshd(KERNEL, n_landmarks=20, n_bits=64, random_state=0) for _ in range(2))
    for model in (local, remote):
        model[-1].set_params(init=init[0], max_iter=init[1])
    there = bag(WORDS, at)
    local.fit(WORDS, LABELS)
    remote.fit(there, da.from_array(LABELS, chunks=50))
    assert_same(local[-1], remote[-1])
    assert np.array_equal(remote[:-1].transform(there).compute(), local[:-1].transform(WORDS))
    assert np.array_equal(remote.predict(there).compute(), local.predict(WORDS))
    margins = sm.scale.apply(remote.decision_function, there)
    assert np.array_equal(margins.compute(), local.decision_function(WORDS))


@pytest.mark.same_bits
@settings(max_examples=8, deadline=None)
@given(at=cuts, columns=st.integers(1, 16), dtype=st.sampled_from([np.float32, np.float64]))
@pytest.mark.parametrize(
    "make",
    [
        lambda: sm.ITQ(16, max_iter=4, random_state=0),
        lambda: sm.ITQ(16, max_iter=4, random_state=0, max_samples=50),
        SignCodes,
        lambda: sm.GeneralizedNystroemPCA(4, random_state=0),
        lambda: sm.GeneralizedNystroemPCA(4, 60, sampling="norm", random_state=0),
        lambda: sm.SignRandomProjection(64, random_state=0),
        lambda: sm.SignRandomProjection(64, "structured", random_state=0),
    ],
    ids=["itq", "itq-sample", "signs", "pca", "pca-norm", "projection", "structured"],
)
def test_of_vectors(make, at, columns, dtype):
    X = VECTORS.astype(dtype)
    local, remote, there = make().fit(X), make(), array(X, at, columns)
    remote.fit(there)
    if not isinstance(local, sm.SignRandomProjection) or local.method == "gaussian":
        assert_same(local, remote)
    Z = remote.transform(there)
    assert Z.shape == local.transform(X).shape
    assert Z.dtype == local.transform(X).dtype
    assert np.array_equal(Z.compute(), local.transform(X))


def test_itq_groups_of_many_rows():
    X = RNG.normal(size=(70_000, 8)).astype(np.float32)
    local = sm.ITQ(8, max_iter=3, random_state=0).fit(X)
    assert_same(local, sm.ITQ(8, max_iter=3, random_state=0).fit(da.from_array(X, chunks=(9_999, 8))))


@pytest.mark.same_bits
def test_pca_of_more_rows_than_fit_into_memory():
    X = RNG.normal(size=(20_000, 32)).astype(np.float32)
    with sm.config(max_memory=2**20):
        local = sm.GeneralizedNystroemPCA(4, 0.5, random_state=0).fit(X)
        assert_same(local, sm.GeneralizedNystroemPCA(4, 0.5, random_state=0).fit(da.from_array(X, chunks=(7_000, 32))))


def test_pca_of_sparse_rows():
    rows = np.where(RNG.random((300, 40)) < 0.2, RNG.random((300, 40)), 0.0)
    X, there = sp.csr_array(rows), da.from_array(rows, chunks=(77, 40)).map_blocks(sp.csr_array)
    local, remote = (sm.GeneralizedNystroemPCA(4, 0.5, random_state=0) for _ in range(2))
    assert_same(local.fit(X), remote.fit(there))
    assert np.array_equal(remote.transform(there).compute(), local.transform(X))


def test_pca_of_frames_and_bags():
    X = VECTORS[:, :4]
    local = sm.GeneralizedNystroemPCA(2, random_state=0).fit(X)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")), npartitions=3)
    for there in (frame, bag([*X], [50]), bag(X.tolist(), [50])):
        remote = sm.GeneralizedNystroemPCA(2, random_state=0).fit(there)
        assert_same(local, remote)
        assert np.array_equal(remote.transform(there).compute(), local.transform(X))
    with pytest.raises(ValueError, match="must be a 2-D array"):
        sm.GeneralizedNystroemPCA(2).fit(bag([1.0, 2.0, 3.0], [2]))


@pytest.mark.same_bits
@pytest.mark.parametrize("update", ["perceptron", "averaged", "margin", "ridge"])
def test_float_hypervectors(update):
    model = sm.HDClassifier(update, init="bundle", max_iter=2, probability=True, random_state=0)
    local, remote = clone(model).fit(VECTORS, LABELS), clone(model).fit(array(VECTORS, [7, 70]), LABELS)
    assert_same(local, remote)
    assert remote.sharpness_ is not None


def test_rows_of_parts_have_one_dtype_and_one_width():
    rows = [[1, 0, 1], [0, 2, 2], [0.5, 1, 1], [1, 0.5, 0.5]]
    with as_partitions(db.from_sequence(rows, npartitions=2)).spooled() as found:
        np.testing.assert_array_equal(found, rows)
    objects = pd.DataFrame({"a": [True, False] * 4, "b": np.arange(8.0)})
    for X, sentence in (
        (bag([[1, 2, 3], [3, 2, 1], [1, 2], [2, 1]], [2]), r"X\[2\] has shape \(2,\), but X\[0\] has shape \(3,\)"),
        (dd.from_pandas(objects, npartitions=2), "a part of type DataFrame and dtype object, expected dense rows"),
        (array(np.eye(8), [4]).map_blocks(sp.csr_array), "a part of type csr_array and dtype float64, expected dense"),
    ):
        with pytest.raises(ValueError, match=sentence):
            sm.HDClassifier().fit(X, np.arange(len(objects)) % 2)


def test_epochs_over_a_frame_keep_the_names_of_its_columns():
    frame = pd.DataFrame(VECTORS[:, :2], columns=["a", "b"])
    model = sm.HDClassifier().fit(dd.from_pandas(frame, npartitions=3), LABELS)
    assert [*model.feature_names_in_] == ["a", "b"]
    assert not hasattr(model.fit(array(VECTORS[:, :2], [50]), LABELS), "feature_names_in_")


def test_bundles_of_frames_and_bags():
    frame = pd.DataFrame(VECTORS[:, :2], columns=["a", "b"])
    model = sm.HDClassifier(init="bundle", max_iter=0)
    local = clone(model).fit(VECTORS[:, :2], LABELS)
    for X in (dd.from_pandas(frame, npartitions=3), bag(VECTORS[:, :2].tolist(), [50])):
        np.testing.assert_array_equal(model.fit(X, LABELS).prototypes_, local.prototypes_)
    model.fit(pd.DataFrame(CODES, columns=["a", "b"]), LABELS)
    assert not hasattr(model.fit(array(CODES, [50]), LABELS), "feature_names_in_")


def test_bundles_of_parts_have_probabilities_if_asked():
    model = sm.HDClassifier(init="bundle", max_iter=0, probability=True, random_state=0)
    local, remote = clone(model).fit(CODES, LABELS), clone(model).fit(array(CODES, [7, 70]), LABELS)
    there = remote.predict_proba(array(CODES, [7, 70]))
    np.testing.assert_array_equal(there.compute(), local.predict_proba(CODES))


@pytest.mark.parametrize("bits", [8, 1])
def test_rounded_bundles_of_parts(bits):
    model = sm.HDClassifier(init="bundle", max_iter=0, prototype_bits=bits)
    local, remote = clone(model).fit(CODES, LABELS), clone(model).fit(array(CODES, [7, 70]), LABELS)
    np.testing.assert_array_equal(remote.prototype_codes_, local.prototype_codes_)
    np.testing.assert_allclose(remote.intercept_, local.intercept_, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(remote.predict(CODES), local.predict(CODES))


@pytest.mark.same_bits
def test_map_of_the_sphere_is_decided_by_all_rows():
    X = np.abs(VECTORS)
    X[100, 3] = -1e-3
    kernel = sm.kernels.Sum([sm.kernels.HypersphericalHeat(), sm.kernels.Cosine()])
    local, remote = (sm.Nystroem(kernel, 10, random_state=0) for _ in range(2))
    assert_same(local.fit(X), remote.fit(array(X, [30, 60, 90])))
    assert remote.kernel_.kernels[0].mapping == "projection"
    there = array(X, [50]).map_blocks(sp.csr_array)
    sparse = sm.Nystroem(sm.kernels.Cosine(), 10, random_state=0).fit(there)
    assert sparse.kernel_.mapping == "projection"


def test_column_of_a_frame():
    frame = dd.from_pandas(pd.DataFrame({"text": WORDS, "y": LABELS}), npartitions=5)
    model = sm.recipes.nyshd(KERNEL, n_landmarks=20, n_bits=64, random_state=0).fit(frame["text"], frame["y"])
    local = sm.recipes.nyshd(KERNEL, n_landmarks=20, n_bits=64, random_state=0).fit(WORDS, LABELS)
    assert np.array_equal(model.predict(frame["text"]).compute(), local.predict(WORDS))


def test_kernel_of_a_users_own_objects():
    def shared(X, Y):
        return np.array([[float(len(set(x) & set(y))) for y in Y] for x in X])

    objects = [set(word) for word in WORDS]
    local, remote = (sm.Nystroem(shared, 4, random_state=3) for _ in range(2))
    assert_same(local.fit(objects), remote.fit(bag(objects, [10, 50])))


def test_nothing_is_computed_before_it_is_asked_for():
    model = sm.Nystroem(KERNEL, 10, random_state=0).fit(WORDS)
    computed = []

    def read(piece):
        computed.append(len(piece))
        return piece

    there = db.from_delayed([delayed(read)(piece) for piece in pieces(WORDS, [30])])
    Z = model.transform(there)
    signs = sm.SignRandomProjection(64, random_state=0).fit(Z).transform(Z)
    assert not computed
    assert np.isnan(Z.shape[0])
    assert Z.shape[1] == model.rank_
    assert signs.compute(scheduler="sync").shape == (len(WORDS), 8)
    assert sorted(computed) == [30, len(WORDS) - 30]


def test_a_model_that_is_not_fitted_says_so_before_anything_is_computed():
    def read(piece):
        raise AssertionError("a partition was computed")

    there = db.from_delayed([delayed(read)(piece) for piece in pieces(WORDS, [30])])
    nystroem, edits = sm.Nystroem(KERNEL, 10), sm.distances.Levenshtein()
    for method in (
        nystroem.transform,
        sm.D2KE(edits, 10).distances,
        sm.KernelSVC(KERNEL).predict,
        sm.learn.KNeighborsClassifier(edits, 3).predict,
        sm.KernelKMeans(KERNEL, 3).predict,
        sm.Pipeline([("features", sm.KernelFeatures(KERNEL)), ("learner", RidgeClassifier())]).predict,
    ):
        for ask in (method, lambda X, method=method: sm.scale.apply(method, X)):
            with dask.config.set(scheduler="sync"), pytest.raises(NotFittedError, match="is not fitted yet"):
                ask(there)


def test_models_that_need_no_fit_take_a_collection_at_once():
    class Doubled:
        def transform(self, X):
            return np.array([[2.0 * len(word)] for word in X])

    there, features = bag(WORDS, [30]), sm.KernelFeatures(KERNEL)
    np.testing.assert_array_equal(sm.scale.apply(KERNEL.diag, there), KERNEL.diag(WORDS))
    assert (features.transform(there).compute() != features.transform(WORDS)).nnz == 0
    np.testing.assert_array_equal(sm.scale.apply(Doubled().transform, there), Doubled().transform(WORDS))


def test_a_collection_that_changes_is_counted_anew(tmp_path):
    def lines(path):
        return path.read_text().split()

    def words():
        return db.from_sequence([tmp_path / "words.txt"], npartitions=1).map(lines).flatten()

    (tmp_path / "words.txt").write_text(" ".join(WORDS[:100]))
    there, model = words(), sm.Nystroem(KERNEL, 10, random_state=0)
    before = model.fit(there).transform(there)
    assert before.shape == (100, model.rank_)
    (tmp_path / "words.txt").write_text(" ".join(WORDS))
    with pytest.raises(ValueError, match=r"X has changed: .* object 0 holds 120 objects, expected 100, as when"):
        before.compute(scheduler="sync")
    blocks = as_partitions(there).blocks(60)
    with pytest.raises(ValueError, match="X has changed"):
        dask.compute(*blocks.parts, scheduler="sync")
    assert words().name == there.name
    assert model.transform(words()).compute(scheduler="sync").shape == (120, model.rank_)
    assert model.fit(there).transform(there).shape == (120, model.rank_)


def test_the_object_that_a_method_is_tried_on_may_be_of_the_collection():
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    far, letters = VECTORS + 1000, RNG.integers(5, 9, (120, 2))
    for model, X in (
        (sm.HeatRandomFeatures(66, mapping=None, random_state=0), unit),
        (sm.Nystroem(sm.kernels.Cosine(mapping=None), 5, random_state=0), unit),
        (sm.Nystroem(sm.kernels.RBF(), 5, random_state=0), far),  # warnings are errors
        (sm.Nystroem(rbf_kernel, 5, random_state=0), unit.astype(np.float32)),
        (OneHotEncoder(sparse_output=False), letters),
    ):
        there = array(X, [50])
        lazy = sm.scale.apply(model.fit(X if isinstance(model, OneHotEncoder) else there).transform, there)
        found, expected = lazy.compute(scheduler="sync"), model.transform(X)
        assert lazy.dtype == found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    single = sm.Nystroem(rbf_kernel, 5, random_state=0).fit(unit.astype(np.float32))
    assert single.transform(array(unit, [50])).dtype == single.transform(unit).dtype == np.float64
    cosines = make_pipeline(sm.Nystroem(sm.kernels.Cosine(mapping=None), 5), nyshd_steps()[0])
    record = sm.codes.RecordEncoder([([0, 1], cosines)])
    flat = unit[:, :2] / np.linalg.norm(unit[:, :2], axis=1, keepdims=True)
    assert record.fit(array(flat, [50])).transform(flat).shape == (120, 8)


def test_a_landmark_is_tried_before_a_row_is_computed():
    unit = VECTORS / np.linalg.norm(VECTORS, axis=1, keepdims=True)
    model, computed = sm.Nystroem(sm.kernels.Cosine(mapping=None), 5, random_state=0).fit(unit), []
    there = array(unit, [50]).map_blocks(lambda block: (computed.append(1), block)[1], meta=np.empty((0, 0)))
    assert model.transform(there).shape == (120, 5)
    assert not computed


def test_scores_of_collections_that_were_not_counted():
    y = db.from_sequence(LABELS.tolist(), npartitions=2)
    y_array = da.from_array(LABELS, chunks=50)[da.from_array(np.ones(120, bool), chunks=50)]  # of unknown length
    weights = np.arange(1.0, 121)
    codes = array(CODES, [50])[da.from_array(np.ones(120, bool), chunks=50)]
    learner = sm.HDClassifier(init="bundle", max_iter=0).fit(CODES, LABELS)
    assert np.isnan(codes.shape[0])
    assert learner.score(codes, y_array, da.from_array(weights, chunks=50)) == learner.score(CODES, LABELS, weights)
    for model in (
        sm.KernelSVC(KERNEL),
        sm.learn.KNeighborsClassifier(sm.distances.Levenshtein(), 3),
        sm.recipes.nyshd(KERNEL, n_landmarks=20, n_bits=64, random_state=0),
        sm.recipes.d2ke(sm.distances.Levenshtein(), 20, "tune", cv=2, random_state=0),
    ):
        expected = model.fit(WORDS, LABELS).score(WORDS, LABELS)
        for labels in (LABELS, y, y_array):
            assert model.score(bag(WORDS, [50]), labels) == expected
    regressor = sm.learn.KernelRidge(KERNEL).fit(WORDS, weights)
    assert np.isclose(regressor.score(bag(WORDS, [50]), bag(weights.tolist(), [7])), regressor.score(WORDS, weights))


def test_labels_in_a_bag_reach_a_learner_of_scikit_learn():
    local = sm.Pipeline([("nystroem", sm.Nystroem(KERNEL, 20, random_state=0)), ("learner", RidgeClassifier())])
    remote = clone(local).fit(bag(WORDS, [50]), db.from_sequence(LABELS.tolist(), npartitions=2))
    np.testing.assert_array_equal(remote[-1].coef_, local.fit(WORDS, LABELS)[-1].coef_)
    with pytest.raises(ValueError, match="y holds fractions"):
        local.fit(bag(WORDS, [50]), bag((np.arange(120) / 7).tolist(), [50]))


PROCESS = sm.GaussianProcessRegressor(KERNEL, noise=0.3).fit(
    [word[2:] + "G" for word in WORDS[:30]], [word.count("AC") - word.count("T") / 2 for word in WORDS[:30]]
)


@pytest.mark.same_bits
@settings(max_examples=25)
@given(at=cuts, n=st.integers(1, 8), maximize=st.booleans())
@example(at=[], n=8, maximize=True)
def test_suggestions_are_the_best_of_what_each_part_suggests(at, n, maximize):
    def suggest(pool, n):
        return PROCESS.suggest(pool, n, maximize=maximize).tolist()

    found, in_memory = suggest(bag(WORDS, at), n), suggest(WORDS, n)
    parts = [range(a, b) for a, b in zip([0, *at], [*at, len(WORDS)], strict=True) if a < b]
    best = sorted(part[i] for part in parts for i in suggest([WORDS[j] for j in part], min(n, len(part))))
    assert found == [best[i] for i in suggest([WORDS[i] for i in best], n)]
    assert found[0] == in_memory[0]
    if len(parts) == 1:
        assert found == in_memory


def test_pools_of_every_form():
    model = sm.GaussianProcessRegressor(sm.kernels.RBF(gamma=0.01)).fit(VECTORS[:20], VECTORS[:20, 0])
    assert model.suggest(array(VECTORS[20:], [40, 70]))[0] == model.suggest(VECTORS[20:])[0]
    frame = pd.DataFrame(VECTORS, columns=[f"v{i}" for i in range(16)])
    named = clone(model).fit(frame[:20], VECTORS[:20, 0])
    assert named.suggest(dd.from_pandas(frame[20:], npartitions=3))[0] == named.suggest(frame[20:])[0]
    column = dd.from_pandas(pd.DataFrame({"text": WORDS}), npartitions=3)["text"]
    assert PROCESS.suggest(column)[0] == PROCESS.suggest(WORDS)[0]
    with pytest.raises(ValueError, match="n=121, but the pool has 120 objects"):
        PROCESS.suggest(column, 121)
    with pytest.raises(TypeError, match=r"pool is a Dask collection, .* take method='improvement'"):
        PROCESS.suggest(column, 2, "thompson")
    with pytest.raises(TypeError, match="joint sample needs all objects at once"):
        PROCESS.sample_y(column)


def test_apply_of_any_estimator():
    model = make_pipeline(StandardScaler(), sm.ITQ(16, random_state=0)).fit(VECTORS)
    there = array(VECTORS, [0, 7, 7, 100])
    assert np.array_equal(sm.scale.apply(model.transform, there).compute(), model.transform(VECTORS))
    with pytest.raises(TypeError, match="a method of a fitted model"):
        sm.scale.apply(np.linalg.norm, there)


def test_apply_of_methods_with_several_results():
    model = KNeighborsClassifier(3).fit(VECTORS, VECTORS[:, 0] > 0)
    there = array(VECTORS, [0, 7, 7, 100])
    found = sm.scale.apply(model.kneighbors, there)
    assert [part.shape for part in found] == [(len(VECTORS), 3)] * 2
    for part, expected in zip(dask.compute(*found), model.kneighbors(VECTORS), strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-6)


def test_results_that_are_not_one_row_per_object_are_refused():
    model = GaussianProcessRegressor().fit(VECTORS[:20], VECTORS[:20, 0])
    _, covariance = sm.scale.apply(model.predict, array(VECTORS[:14], [7]), return_cov=True)
    with pytest.raises(ValueError, match=r"an array of shape \(7, 7\) for 7 objects, expected \(7, 1\)"):
        covariance.compute(scheduler="sync")


def test_fewer_parts_at_once_when_results_are_large():
    there = as_partitions(array(CODES, list(range(1, 120, 3))))
    with there.spooled() as rows:
        assert np.array_equal(rows, CODES)
    assert np.array_equal(there.take([119, 3, 3, -1]), CODES[[119, 3, 3, 119]])


@settings(max_examples=30, deadline=None)
@given(at=cuts, size=st.integers(1, 130))
@example(at=[120], size=120)
def test_blocks_are_the_same_objects(at, size):
    blocks = as_partitions(bag(WORDS, at)).blocks(size)
    assert isinstance(blocks, Distributed)
    parts = dask.compute(*blocks.parts, scheduler="sync")
    assert list(map(len, parts)) == blocks.lengths == [len(WORDS[i : i + size]) for i in range(0, len(WORDS), size)]
    assert [word for part in parts for word in part] == WORDS


def test_the_example_of_converted_vectors_is_converted():
    there = array(VECTORS, [50])
    signs = sm.SignRandomProjection(64, random_state=0)
    bundle = sm.codes.RecordEncoder([([0, 1], signs), ([2, 3], signs)], random_state=0).fit(there)
    assert np.array_equal(bundle.transform(there).compute(), bundle.transform(VECTORS))


def test_errors_name_the_object_by_its_number_among_all():
    broken = [*WORDS[:100], None, *WORDS[100:]]
    with pytest.raises(TypeError, match=r"X\[100\] is missing"):
        sm.Nystroem(KERNEL, 10, landmarks="kmeans++", random_state=0).fit(bag(broken, [33, 66]))
    model = sm.Nystroem(KERNEL, 10, random_state=0).fit(WORDS)
    with pytest.raises(TypeError, match=r"partition 2: X\[34\] is missing"):
        model.transform(bag(broken, [33, 66])).compute()
    X = VECTORS.copy()
    X[77, 0] = np.nan
    with pytest.raises(ValueError, match=r"X\[77\] holds NaN"):
        sm.ITQ(16, random_state=0).fit(array(X, [50]))


def test_refusals():
    K = VECTORS @ VECTORS.T
    with pytest.raises(TypeError, match="the matrix here"):
        sm.Nystroem("precomputed", 4).fit(array(K, [50]))
    with pytest.raises(TypeError, match="ShardedIndex"):
        sm.HammingIndex(16).fit(array(CODES, [50]))
    with pytest.raises(TypeError, match="ShardedIndex"):
        sm.SimilaritySearch(sm.SignRandomProjection(16)).fit(array(VECTORS, [50]))
    with pytest.raises(ValueError, match="X is empty"):
        sm.Nystroem(KERNEL, 4).fit(bag([], []))
    svc = sm.KernelSVC(KERNEL)
    for model in (sm.learn.VoteClassifier([svc]), sm.ConformalClassifier(svc), sm.AutoClassifier()):
        with pytest.raises(TypeError, match=r"give X\.compute\(\)"):
            model.fit(bag(WORDS, [50]), LABELS)
    with pytest.raises(TypeError, match="Dask Delayed"):
        sm.Nystroem(KERNEL, 4).fit(delayed(WORDS))
    with pytest.raises(ValueError, match="2-D"):
        sm.ITQ(16).fit(da.zeros((3, 16, 2)))


@pytest.mark.same_bits
@settings(max_examples=10, deadline=None)
@given(at=cuts, k=st.integers(1, 120), radius=st.integers(0, 9), shuffled=st.booleans())
def test_sharded_index(at, k, radius, shuffled):
    ids = np.random.default_rng(0).permutation(1000)[:120] if shuffled else None
    one = sm.HammingIndex(16).fit(CODES, ids)
    many = sm.scale.ShardedIndex(16).fit(array(CODES, at), ids)
    assert len(many) == 120
    for mine, right in zip(many.kneighbors(CODES[::7], k), one.kneighbors(CODES[::7], k), strict=True):
        assert np.array_equal(mine, right)
    within = [index.radius_neighbors(CODES[::7], radius) for index in (many, one)]
    for mine, right in zip(*within, strict=True):
        assert all(map(np.array_equal, mine, right))


def test_a_sharded_index_without_codes_finds_nothing():
    distances, ids = sm.scale.ShardedIndex(16).fit(array(CODES[:0], [])).radius_neighbors(CODES[:3], 2)
    assert [len(row) for row in (*distances, *ids)] == [0] * 6


def test_sharded_index_refuses():
    index = sm.scale.ShardedIndex(16)
    with pytest.raises(TypeError, match="for arrays in memory, use HammingIndex"):
        index.fit(CODES)
    with pytest.raises(ValueError, match="expected 24"):
        sm.scale.ShardedIndex(24).fit(array(CODES, []))
    index.fit(array(CODES, [50]))
    with pytest.raises(ValueError, match="more than the 120 codes"):
        index.kneighbors(CODES, 121)
    with pytest.raises(ValueError, match="radius must be"):
        index.radius_neighbors(CODES, -1)


@pytest.fixture(scope="module")
def client():
    """Two processes of one thread each."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with LocalCluster(2, **options) as cluster, Client(cluster) as client:
        yield client


def test_processes_learn_and_answer_the_same(client):
    landmarks = sm.Nystroem(KERNEL, 20, landmarks="rpcholesky", random_state=0)
    local, remote = (make_pipeline(clone(landmarks), *nyshd_steps()) for _ in range(2))
    there = bag(WORDS, [31, 31, 70])
    assert_same(local.fit(WORDS, LABELS)[-1], remote.fit(there, LABELS)[-1])
    assert np.array_equal(remote.predict(there).compute(), local.predict(WORDS))
    vectors = array(VECTORS, [50])
    assert_same(sm.ITQ(16, random_state=0).fit(VECTORS), sm.ITQ(16, random_state=0).fit(vectors))
    index = sm.scale.ShardedIndex(16).fit(array(CODES, [30, 90]))
    assert np.array_equal(index.kneighbors(CODES, 9)[1], sm.HammingIndex(16).fit(CODES).kneighbors(CODES, 9)[1])


@pytest.mark.faults  # Dask 2024.11 itself may wait for a dead worker for ever
def test_shards_of_dead_workers_are_built_anew(client):
    index = sm.scale.ShardedIndex(16).fit(array(CODES, [30, 60, 90]))
    right = sm.HammingIndex(16).fit(CODES).kneighbors(CODES, 9)[1]
    assert np.array_equal(index.kneighbors(CODES, 9)[1], right)
    for process in client.run(os.getpid).values():
        os.kill(process, signal.SIGKILL)
    assert np.array_equal(index.kneighbors(CODES, 9)[1], right)


def nyshd_steps():
    return [sm.SignRandomProjection(64, random_state=0), sm.HDClassifier(init="bundle", max_iter=0)]


@pytest.mark.same_bits
@pytest.mark.parametrize(
    "kernel",
    [
        sm.kernels.Optical(bias=0.5),
        sm.kernels.HypersphericalHeat(mapping="projection"),
        sm.kernels.Cosine(mapping="projection"),
    ],
    ids=lambda kernel: type(kernel).__name__,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_of_vectors_do_not_depend_on_the_block(kernel, dtype):
    X = VECTORS.astype(dtype)
    K = kernel(X, X[:37])
    for size in (1, 7, 50):
        blocks = [kernel(X[i : i + size], X[:37]) for i in range(0, len(X), size)]
        assert np.array_equal(np.concatenate(blocks), K)
