"""Estimators of objects that Dask holds: fitted state and results are those of the same objects here, bit for bit."""

import dask
import dask.array as da
import dask.bag as db
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from dask.delayed import delayed
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from samples.graphs import batch, samples
from similia import kernels
from similia.codes import RecordEncoder
from similia.embeddings import (
    Hydra,
    Mixture,
    Mosaics,
    RandomSeries,
    RandomSets,
    RandomStrings,
    Representatives,
    SparseScaler,
)
from similia.embeddings.random_features import OpticalRandomFeatures
from similia.embeddings.vectors import FeatureScaler
from similia.learn.d2ke_search import D2KESearch
from similia.objects import n_objects
from similia.objects.sequences import Batch
from similia.sources.dask import as_partitions

RNG = np.random.default_rng(0)
N = 300  # a little more than a block of moments

WORDS = ["".join(RNG.choice(list("ACGT"), size)) for size in RNG.integers(1, 12, N // 3)]
WORDS += WORDS[: N // 3] + [word[:-1] + "é" for word in WORDS]  # ties and near ties
SERIES = [RNG.normal(1e3, 1e-2, (size, 2)) for size in RNG.integers(1, 9, N // 2)]
SERIES += [-series[::-1] for series in SERIES]
SETS = [*RNG.normal(size=(N // 2, 4, 3)).astype(np.float32), *np.ones((N // 2, 1, 3), np.float32)]
GRAPHS = [*batch(samples(1, N // 6))] * 2
VECTORS = RNG.normal(size=(N, 21))
VECTORS[N // 3 : N // 2] = -VECTORS[: N // 2 - N // 3]
VECTORS[N // 2 :] = np.nextafter(VECTORS[: N // 2], np.inf)
SINGLE = np.ascontiguousarray(VECTORS.astype(np.float32))
COUNTS = RNG.integers(0, 3, (N, 21)) + np.eye(N, 21, dtype=int)
COUNTS[:, 0] += 1
SPARSE = sp.csr_array(COUNTS)
RECORDS = [*zip(WORDS, map(len, WORDS), strict=True)]
LABELS = np.arange(N) % 3
EDIT = sm.distances.Levenshtein()


def unlike(X, Y):
    return np.array([[len(set(x) ^ set(y)) for y in Y] for x in X], dtype=float)


def product_of_lengths(X, Y):
    lengths = [[np.nan if x == "!" else len(x) for x in objects] for objects in (X, Y)]
    return np.outer(*lengths).astype(float)


def signs(bits):
    return np.column_stack([bits.sum(axis=1), bits[:, 0]])


def d2ke(distance, objects="auto", R=80):
    return sm.D2KE(distance, R, objects, random_state=3)


ESTIMATORS = {
    "D2KE strings": (d2ke(EDIT), WORDS),
    "D2KE lists": (d2ke(unlike, RandomStrings(3), 70), WORDS),
    "D2KE series": (d2ke(sm.distances.DTW()), SERIES),
    "D2KE sets": (d2ke(sm.distances.Hausdorff()), SETS),
    "D2KE representatives": (d2ke(unlike, "auto", 30), WORDS),
    "D2KE mosaics": (d2ke(EDIT, Mosaics(3)), WORDS),
    "D2KE mixture": (d2ke(EDIT, Mixture([RandomStrings(4), Mosaics(2, length=3)])), WORDS),
    "D2KE given": (d2ke(EDIT, WORDS[:9]), WORDS),
    "PseudoEuclidean": (sm.PseudoEuclidean(EDIT, None, 30, 3), WORDS),
    "GraphletSampling optical": (sm.GraphletSampling(4, 60, n_components=45, random_state=3), GRAPHS),
    "GraphletSampling exact": (sm.GraphletSampling(4, 60, n_components=None, random_state=3), GRAPHS),
    "GraphletSampling waves": (sm.GraphletSampling(5, 60, "uniform", "gaussian", 40, 3), GRAPHS),
    "GraphletSampling spectra": (sm.GraphletSampling(5, 60, "uniform", "gaussian_eig", 40, 3), GRAPHS),
    "GraphletSampling match": (sm.GraphletSampling(4, 60, features="match", random_state=3), GRAPHS),
    "GraphletSampling function": (sm.GraphletSampling(4, 60, features=signs, random_state=3), GRAPHS),
    "GraphletSampling camera": (
        sm.GraphletSampling(5, 60, features=OpticalRandomFeatures(33, 3, quantize=8), random_state=3),
        GRAPHS,
    ),
    "KernelFeatures": (sm.KernelFeatures(kernels.Spectrum(k=2), 100), WORDS),
    "MinHash": (sm.MinHash(kernels.Spectrum(k=2), 64, random_state=3), WORDS),
    "MinHash onehot": (sm.MinHash(kernels.Spectrum(k=2, normalize=True), 64, 2, "onehot", 3), WORDS),
    "MinHash counts": (sm.MinHash(None, 64, random_state=3), COUNTS),
    "FeatureScaler": (FeatureScaler(), VECTORS),
    "FeatureScaler single": (FeatureScaler(), SINGLE),
    "FeatureScaler sparse": (FeatureScaler(), SPARSE),
    "Optical": (OpticalRandomFeatures(65, 3, bias=1.0), VECTORS),
    "Optical single": (OpticalRandomFeatures(65, 3, quantize=8), SINGLE),
    "Optical structured": (OpticalRandomFeatures(65, 3, structured=True), SINGLE),
    "Optical sparse": (OpticalRandomFeatures(65, 3, quantize=8), SPARSE),
    "Heat": (sm.HeatRandomFeatures(66, random_state=3), VECTORS),
    "Heat counts": (sm.HeatRandomFeatures(66, random_state=3), COUNTS),
    "Heat single": (sm.HeatRandomFeatures(66, random_state=3), SINGLE),
    "Heat sparse": (sm.HeatRandomFeatures(66, random_state=3), SPARSE),
    "MeanMapFeatures": (sm.MeanMapFeatures(66, random_state=3), SETS),
    "Hydra": (Hydra(4, 3, 3), SERIES),
    "SparseScaler": (SparseScaler(), VECTORS),
    "IntervalQuantiles": (sm.IntervalQuantiles(3, 2), SERIES),
    "NGram": (sm.NGramEncoder(3, 64, random_state=3), WORDS),
    "NGram add": (sm.NGramEncoder(2, 64, "add", "counts", random_state=3), WORDS),
    "GraphHD": (sm.GraphHDEncoder(64, random_state=3), GRAPHS),
    "Level": (sm.LevelEncoder(9, 64, random_state=3), VECTORS),
    "Level column": (sm.LevelEncoder(9, 64, random_state=3), [*VECTORS[:, 0].tolist()]),
    "Sequence": (sm.SequenceEncoder(9, 2, 64, random_state=3), SERIES),
    "FractionalPower": (sm.FractionalPowerEncoder(2.0, 64, random_state=3), VECTORS),
    "FractionalPower floats": (sm.FractionalPowerEncoder(2.0, 64, "floats", 3), SINGLE),
    "RecordEncoder": (
        RecordEncoder(
            [(0, sm.NGramEncoder(2, 64, random_state=3)), ([1], sm.LevelEncoder(9, 64, random_state=3))], random_state=3
        ),
        RECORDS,
    ),
}
cuts = st.lists(st.integers(0, N), max_size=5).map(sorted)


def parted(X, at):
    """Return a Dask collection with parts that end at the numbers in `at`."""
    ends = [min(cut, n_objects(X)) for cut in (*at, N)]
    pieces = [X[a:b] for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    if isinstance(X, np.ndarray):
        return da.from_array(X, chunks=(tuple(map(len, pieces)), 13))
    if sp.issparse(X):
        parts = [delayed(piece, traverse=False) for piece in pieces]
        arrays = [
            da.from_delayed(part, piece.shape, meta=sp.csr_array((0, 0), dtype=X.dtype))
            for part, piece in zip(parts, pieces, strict=True)
        ]
        return da.concatenate(arrays)
    return db.from_delayed([delayed(piece, traverse=False) for piece in pieces])


def column(X, at):
    """Return objects as a column of a Dask dataframe."""
    ends = [min(cut, n_objects(X)) for cut in (*at, N)]
    frames = delayed(lambda a, b: pd.DataFrame({"x": pd.Series([*X[a:b]], dtype=object)}))
    pieces = [frames(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return dd.from_delayed(pieces, meta=pd.DataFrame({"x": pd.Series(dtype=object)}), verify_meta=False)["x"]


def check_equal(a, b, where="X"):
    """Compare two values, whatever they are made of, bit for bit."""
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype, where
        assert np.array_equal(a, b), where
    elif sp.issparse(a):
        for name in ("data", "indices", "indptr"):
            assert np.array_equal(getattr(a, name), getattr(b, name)), where
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            check_equal(x, y, f"{where}[{i}]")
    elif isinstance(a, BaseEstimator | Batch) or hasattr(a, "__dataclass_fields__"):
        for name in vars(a):
            check_equal(vars(a)[name], vars(b)[name], f"{where}.{name}")
    elif isinstance(a, dict):
        check_equal([*a.items()], [*b.items()], where)
    else:
        assert a is b or a == b, where


def check_same(local, remote, X, there, scheduler="synchronous"):
    check_equal(local.fit(X), remote.fit(there))
    expected = local.transform(X)
    result = remote.transform(there)
    assert isinstance(result, da.Array)
    assert result.dtype == expected.dtype
    found = result.compute(scheduler=scheduler)
    check_equal(expected, type(expected)(found) if sp.issparse(expected) else found)


@pytest.mark.same_bits
@pytest.mark.filterwarnings("ignore:.* vary so little")
@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=3, deadline=None)
@given(at=cuts, scheduler=st.sampled_from(["synchronous", "threads"]))
def test_fitted_state_and_results_are_those_of_objects_that_are_here(name, at, scheduler):
    estimator, X = ESTIMATORS[name]
    check_same(clone(estimator), clone(estimator), X, parted(X, at), scheduler)


@settings(max_examples=4, deadline=None)
@given(at=cuts, name=st.sampled_from(["D2KE strings", "NGram", "KernelFeatures", "PseudoEuclidean", "D2KE series"]))
def test_a_column_of_a_frame_holds_objects(name, at):
    estimator, X = ESTIMATORS[name]
    with dask.config.set({"dataframe.convert-string": False}):  # Dask would write arrays as strings
        check_same(clone(estimator), clone(estimator), X, column(X, at))


@settings(max_examples=4, deadline=None)
@given(at=cuts)
def test_a_column_of_a_frame_holds_numbers(at):
    values = VECTORS[:, 3]
    encoder = sm.LevelEncoder(9, 64, random_state=3)
    check_same(clone(encoder), clone(encoder), values, dd.from_pandas(pd.Series(values), npartitions=7))
    check_same(clone(encoder), clone(encoder), values, da.from_array(values, chunks=37))


@pytest.mark.parametrize(
    "estimator",
    [
        FeatureScaler(),
        sm.HeatRandomFeatures(66, random_state=3),
        sm.Nystroem(kernels.RBF(), 5, random_state=3),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_columns_of_a_frame_are_vectors_and_keep_their_names(estimator):
    frame = pd.DataFrame(VECTORS, columns=[f"column {j}" for j in range(VECTORS.shape[1])])
    there = dd.from_pandas(frame, npartitions=7)
    check_same(clone(estimator), clone(estimator), frame, there)
    assert [*clone(estimator).fit(there).feature_names_in_] == [*frame.columns]


def test_names_and_widths_are_learnt_by_all_that_compares_rows():
    frame = pd.DataFrame(COUNTS[:, :8], columns=list("abcdefgh"))
    there = dd.from_pandas(frame, npartitions=3)
    for model in (
        sm.Nystroem(kernels.RBF(), 5, random_state=0),
        sm.PseudoEuclidean(euclidean_distances, 3, 20, 0),
        d2ke(euclidean_distances, "auto", 20),
        sm.KernelFeatures(kernels.Intersection(), 100),
        sm.KernelKMeans(kernels.RBF(), 3, 20, random_state=0),
    ):
        model.fit(VECTORS if not isinstance(model, sm.KernelFeatures) else COUNTS)
        assert [*model.fit(there).feature_names_in_] == [*frame.columns]
        assert model.n_features_in_ == 8
        with pytest.raises(ValueError, match="feature names should match"):
            model.transform(frame[[*frame.columns[::-1]]])
        assert model.fit(da.from_array(COUNTS, chunks=(77, 13))).n_features_in_ == 21
        assert not hasattr(model, "feature_names_in_")


def test_kernel_features_are_fitted_without_reading_an_array():
    read = []

    def sparse(block):
        read.append(block)
        return sp.csr_array(block)

    there = da.from_array(COUNTS, chunks=(77, 21)).map_blocks(sparse, meta=sp.csr_array((0, 0), dtype=COUNTS.dtype))
    model = sm.KernelFeatures(kernels.Intersection(), 100).fit(there)
    assert not read
    assert model.n_features_in_ == 21
    found = model.transform(there).compute(scheduler="synchronous")
    np.testing.assert_array_equal(found.toarray(), model.transform(COUNTS).toarray())


def test_kernel_features_are_those_of_files_that_grew(tmp_path):
    (tmp_path / "words.txt").write_text("\n".join(WORDS[:9]))
    there = db.read_text(tmp_path / "words.txt").map(str.strip)
    assert len(as_partitions(there)) == 9
    (tmp_path / "words.txt").write_text("\n".join(WORDS[:12]))
    model = sm.KernelFeatures(kernels.Spectrum(k=2), 100)
    with dask.config.set(scheduler="synchronous"):
        check_equal(model.fit_transform(WORDS[:12]), model.fit_transform(there))


def test_rows_of_a_frame_are_records():
    frame = pd.DataFrame(RECORDS, columns=["word", "length"])
    words = ("word", sm.NGramEncoder(2, 64, random_state=3))
    lengths = make_pipeline(StandardScaler(), sm.FractionalPowerEncoder(1.0, 64, random_state=3))
    bundle = RecordEncoder([words, (["length"], sm.LevelEncoder(9, 64, random_state=3))], random_state=3)
    check_same(bundle, clone(bundle), frame, dd.from_pandas(frame, npartitions=7))
    mixed = RecordEncoder([words, (["length"], lengths)], random_state=3)
    with pytest.raises(TypeError, match=r"the encoder of column \['length'\] cannot be fitted to a Dask"):
        mixed.fit(dd.from_pandas(frame, npartitions=7))
    local = mixed.fit(frame)  # what was learnt here is applied there
    assert np.array_equal(local.transform(dd.from_pandas(frame, npartitions=7)).compute(), local.transform(frame))


@pytest.mark.same_bits
@settings(max_examples=4, deadline=None)
@given(at=cuts, name=st.sampled_from(["Optical single", "Heat single", "GraphletSampling optical", "D2KE series"]))
def test_codes_of_features_are_the_same(name, at):
    """Features of single precision that differ in their last place make codes that differ."""
    estimator, X = ESTIMATORS[name]
    local, remote = (make_pipeline(clone(estimator), sm.SignRandomProjection(2048, random_state=3)) for _ in range(2))
    there = parted(X, at)
    codes = local.fit(X).transform(X)
    found = remote.fit(there).transform(there).compute()
    assert np.array_equal(found, codes)
    assert len(np.unique(codes, axis=0)) > 5  # they tell objects apart


@pytest.mark.same_bits
@settings(max_examples=6, deadline=None)
@given(
    at=cuts,
    data=st.sampled_from(["VECTORS", "SINGLE", "COUNTS", "SPARSE"]),
    two=st.booleans(),
    scheduler=st.sampled_from(["synchronous", "threads"]),
)
def test_heat_svc_predicts(at, data, two, scheduler):
    X = globals()[data]
    model = sm.HeatSVC(4.0, 1.0).fit(X, LABELS > 0 if two else LABELS)
    there = parted(X, at)
    for method in ("decision_function", "predict"):
        expected = getattr(model, method)(X)
        check_equal(expected, getattr(model, method)(there).compute(scheduler=scheduler))


@pytest.mark.parametrize(
    ("objects", "grid"),
    [("auto", {"d2ke__gamma": ["median", "4*median"]}), (Representatives(hold_out=True), {}), (Mosaics(2), {})],
)
def test_d2ke_search(objects, grid):
    embedding = sm.D2KE(EDIT, 40, objects, random_state=3)
    model = D2KESearch(make_pipeline(embedding, StandardScaler(), RidgeClassifier()), grid, cv=3)
    there = parted(WORDS, [0, 100, 101, 290])
    local, remote = clone(model).fit(WORDS, LABELS), clone(model).fit(there, da.from_array(LABELS, chunks=77))
    check_equal(local.pipeline_[0], remote.pipeline_[0])
    check_equal(local.best_params_, remote.best_params_)
    assert np.array_equal(remote.predict(there).compute(), local.predict(WORDS))
    # scikit-learn's products are BLAS's, whose sums have no fixed order
    np.testing.assert_allclose(
        remote.decision_function(there).compute(), local.decision_function(WORDS), rtol=0, atol=1e-5
    )


@settings(max_examples=4, deadline=None)
@given(at=cuts, name=st.sampled_from(["D2KE strings", "D2KE representatives", "D2KE mosaics"]))
def test_d2ke_is_extended_with_objects_elsewhere(name, at):
    estimator, X = ESTIMATORS[name]
    there = parted(X, at)
    local, remote = clone(estimator).fit(X).extend(270, X), clone(estimator).fit(there).extend(270, there)
    check_equal(local, remote)
    assert np.array_equal(local.distances(X, start=60), remote.distances(there, start=60).compute())


def test_distances_given_as_rows_are_embedded():
    D = EDIT(WORDS, WORDS)
    model = sm.PseudoEuclidean("precomputed", 20).fit(D)
    assert np.array_equal(model.transform(parted(D, [0, 77])).compute(), model.transform(D))
    D[290, 7] = np.nan
    with pytest.raises(ValueError, match="holds nan for objects 290 and 7"):
        model.transform(parted(D, [0, 77])).compute(scheduler="synchronous")


def test_a_transformer_of_graphlets_learns_from_the_patterns_of_all_parts():
    sampling = sm.GraphletSampling(4, 60, features=StandardScaler(), random_state=3)
    local, remote = clone(sampling).fit(GRAPHS), clone(sampling).fit(parted(GRAPHS, [3, 30]))
    check_equal(local, remote)


BAD = [
    ("D2KE strings", WORDS, None, r"X\[290\] is missing"),
    ("NGram", WORDS, 7, r"X\[290\] is int"),
    ("FeatureScaler", VECTORS, np.nan, r"X\[290\] holds NaN"),
    ("Optical", VECTORS, np.inf, r"X\[290\] holds NaN or infinity"),
    ("Heat", VECTORS, np.inf, r"X\[290\], column 0 is inf"),
    ("Heat counts", COUNTS, 0, r"X\[290\] is zero in all 21 columns"),
    ("FractionalPower", VECTORS, np.nan, r"X\[290\] holds NaN"),
    ("Level", VECTORS, np.nan, r"X\[290\] holds NaN"),
    ("Sequence", SERIES, np.array([[1.0, np.nan]]), r"series 290, time point 0, channel 1 is nan"),
    ("Hydra", SERIES, np.array([[1.0, 1e31]]), r"series 290 holds numbers up to 1e\+31"),
    ("IntervalQuantiles", SERIES, np.array([[1.0, 1e31]]), r"series 290 holds numbers up to 1e\+31"),
]


@pytest.mark.filterwarnings("ignore:.* vary so little")
@pytest.mark.parametrize(("name", "X", "value", "message"), BAD, ids=[name for name, *_ in BAD])
def test_a_bad_object_is_named_by_its_number_in_the_whole(name, X, value, message):
    bad = X.copy()
    bad[290] = value
    model = clone(ESTIMATORS[name][0]).fit(parted(X, [100, 280]))
    if name == "FeatureScaler":  # scikit-learn's passes NaN on
        with pytest.raises(ValueError, match=message):
            model.fit(parted(bad, [100, 280]))
        return
    there = parted(bad, [100, 280])
    as_partitions(there).lengths  # noqa: B018  (counted, as fit does; parts of a bag are numbered else)
    with pytest.raises((TypeError, ValueError), match=message):
        model.transform(there).compute(scheduler="synchronous")
    if name in ("Heat", "Level", "Sequence", "D2KE strings", "Hydra", "IntervalQuantiles"):  # which look at all objects
        synchronous = dask.config.set(scheduler="synchronous")  # no thread goes on, and warns, in the next test
        with synchronous, pytest.raises((TypeError, ValueError), match=message):
            clone(model).fit(there)


@pytest.mark.parametrize("embedding", [Hydra(2), sm.IntervalQuantiles(2)])
def test_a_warning_names_the_series_by_its_number_in_the_whole(embedding):
    X = [np.sin(np.arange(20.0))] * N
    X[290] = X[290] + 1e8
    there = parted(X, [100, 280])
    with pytest.warns(UserWarning, match=r"^1 of the objects 256 to 299 vary so little .*, e.g. X\[290\]"):
        embedding.fit(there)


def test_a_bad_kernel_value_is_named_by_its_number_in_the_whole():
    nystroem = sm.Nystroem(product_of_lengths, 5, [0, 3, 5, 7, 9]).fit(WORDS)
    there = parted([*WORDS[:290], "!", *WORDS[291:]], [100, 280])
    as_partitions(there).lengths  # noqa: B018
    with pytest.raises(ValueError, match=r"kernel value of X\[290\] and landmark 0 is nan"):
        nystroem.transform(there).compute(scheduler="synchronous")
    with pytest.raises(ValueError, match=r"kernel value of X\[290\] and itself is nan"):
        sm.Nystroem(product_of_lengths, 5, "rpcholesky").fit(there)


@pytest.mark.parametrize(
    ("fit", "message"),
    [
        (lambda: sm.HeatSVC().fit(parted(VECTORS, [9]), LABELS), "compares all pairs .* take HeatRandomFeatures"),
        (lambda: sm.PseudoEuclidean(EDIT).fit(parted(WORDS, [9])), "distances of all pairs are needed; give n_landm"),
        (lambda: sm.PseudoEuclidean(EDIT).fit_transform(parted(WORDS, [9])), "distances of all pairs are needed"),
        (lambda: sm.PseudoEuclidean("precomputed").fit(parted(VECTORS, [9])), r"matrix of distances is needed here"),
        (
            lambda: sm.recipes.d2ke(EDIT, 9, "tune", objects=Mosaics(), cv=2).fit(parted(WORDS, [9]), LABELS),
            "Mosaics draws random objects from the training objects of each fold",
        ),
        (lambda: d2ke(EDIT).fit(db.from_sequence([], npartitions=1)), "X is empty"),
        (lambda: d2ke(unlike, RandomStrings()).fit(parted([*WORDS[:9], *map(str.encode, WORDS)], [9])), "str and b"),
    ],
)
def test_what_needs_objects_here_says_so(fit, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fit()


def test_random_objects_learn_the_moments_of_numpy():
    series = [RNG.normal(1e4, [1e-2, 1.0, 0.0], (size, 3)) for size in RNG.integers(1, 30, 2000)]
    learned = RandomSeries().complete(series)
    values = np.concatenate(series)
    exact = values.astype(np.longdouble)
    np.testing.assert_allclose(learned.mean, exact.mean(axis=0).astype(float), rtol=1e-14)
    np.testing.assert_allclose(learned.scale, exact.std(axis=0).astype(float), rtol=1e-12, atol=1e-14)
    sets = RandomSets().complete(SETS)
    norms = np.linalg.norm(np.concatenate(SETS, dtype=float), axis=1)
    np.testing.assert_allclose(sets.radius, norms.mean(), rtol=1e-14)


@pytest.mark.parametrize(
    "X", [VECTORS, SINGLE, VECTORS * 1e-3 + 1e3, SPARSE], ids=["double", "single", "far", "sparse"]
)
def test_the_scaler_is_that_of_scikit_learn(X):
    constant = X.copy() if sp.issparse(X) else np.column_stack([X, np.full(len(X), 0.1, X.dtype)])
    ours, theirs = FeatureScaler().fit(constant).scaler_, StandardScaler(with_mean=not sp.issparse(X)).fit(constant)
    assert vars(ours).keys() == vars(theirs).keys()
    for name in ("mean_", "var_", "scale_"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, atol=1e-12)
    assert np.isclose(ours.scale_[-1], theirs.scale_[-1])


def test_sparse_features_of_a_bag_reach_a_linear_model():
    y = [i % 2 for i in range(len(WORDS))]
    there = db.from_sequence(WORDS, npartitions=4)
    steps = [("features", sm.KernelFeatures(kernels.Spectrum(k=2), 100)), ("learner", LinearSVC(random_state=0))]
    local = sm.Pipeline(steps).fit(WORDS, y)
    for kind in (sm.Pipeline, Pipeline):
        remote = clone(kind(steps)).fit(there, y)
        np.testing.assert_array_equal(remote[-1].coef_, local[-1].coef_)
        np.testing.assert_array_equal(remote[0].met_, local[0].met_)
        labels = remote.predict(there) if kind is sm.Pipeline else sm.scale.apply(remote.predict, there)
        assert isinstance(labels, da.Array)
        np.testing.assert_array_equal(labels.compute(), local.predict(WORDS))
    with pytest.raises(TypeError, match=r"sparse rows of a Dask collection.*similia.scale.apply\(pipe"):
        remote.predict(there)  # scikit-learn's pipeline hands the rows to LinearSVC
