"""scikit-learn's own estimator checks for every public estimator that takes vectors; none is forgotten."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel
from sklearn.utils import estimator_checks as checks
from sklearn.utils import get_tags
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

import similia as sm
from similia.codes import SignCodes
from similia.embeddings import SparseScaler
from similia.learn.kernel_machines import KernelSVC
from similia.learn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from similia.recipes import FeatureScaler


class Widened(TransformerMixin, BaseEstimator):
    """An encoder of eight numbers behind a fixed linear map: the checks give 1 to 10 of them."""

    def __init__(self, encoder):
        self.encoder = encoder

    def fit(self, X, y=None):
        X = validate_data(self, X, ensure_min_samples=2)
        self.map_ = np.random.default_rng(0).normal(size=(X.shape[1], 8))
        self.encoder_ = clone(self.encoder).fit(X @ self.map_)
        return self

    def transform(self, X):
        check_is_fitted(self)
        return np.asarray(self.encoder_.transform(validate_data(self, X, reset=False) @ self.map_))

    def get_feature_names_out(self, input_features=None):
        check_is_fitted(self)
        _check_feature_names_in(self, input_features)
        return self.encoder_.get_feature_names_out()

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


TINY = {"contrast": 0.5, "zero_rows": "uniform"}  # of few columns, some rows of zeros
VECTORS = [
    sm.Nystroem(rbf_kernel, "auto"),
    sm.Nystroem(sm.kernels.Optical(), "auto"),
    sm.Nystroem(sm.kernels.Cosine(zero_rows="uniform"), "auto", landmarks="kmeans++"),
    sm.KernelFeatures(sm.kernels.Optical(), n_features=128),
    sm.FeatureWeights(),
    sm.D2KE(euclidean_distances, n_components=16),
    sm.PseudoEuclidean(euclidean_distances),
    sm.SimilarityMap(sm.kernels.Optical(), n_landmarks=8),
    sm.OpticalRandomFeatures(16),
    sm.OpticalRandomFeatures(16, structured=True, bias=1.0, quantize=8),
    sm.HeatRandomFeatures(16, **TINY),
    sm.SignRandomProjection(64),
    sm.SignRandomProjection(64, method="structured"),
    sm.SignRandomProjection(64, method="hadamard"),
    sm.GeneralizedNystroemPCA(1, sample_fraction=1.0),
    Widened(sm.ITQ(8, random_state=0)),
    Widened(SignCodes()),
    sm.MinHash(None, 64),
    sm.MinHash(None, 64, output="onehot"),
    sm.LevelEncoder(n_levels=8, n_bits=64),
    sm.LevelEncoder(n_levels=8, n_bits=64, output="counts"),
    sm.FractionalPowerEncoder(n_bits=64),
    sm.FractionalPowerEncoder(n_bits=64, output="floats"),
    FeatureScaler(),
    SparseScaler(),
    sm.HDClassifier(),
    sm.HDClassifier("averaged", prototype_bits=8),
    sm.HDClassifier("averaged", probability=True),
    sm.HDClassifier("margin"),
    sm.HDClassifier("ridge", alpha=1.0),
    sm.HeatSVC([0.5, 1.0], [1.0, 10.0], zero_rows="uniform", cv=2),
    sm.recipes.heat_svm(0.5, 1.0, zero_rows="uniform"),
    KernelSVC(rbf_kernel),
    KernelSVC(rbf_kernel, probability=True),
    sm.KernelRidge(rbf_kernel),
    sm.KernelRidge(rbf_kernel, alpha="auto"),
    sm.KernelSVR(rbf_kernel),
    sm.GaussianProcessRegressor(rbf_kernel),
    sm.GaussianProcessRegressor(rbf_kernel, n_landmarks=100, random_state=0),
    sm.GaussianProcessClassifier(rbf_kernel),
    sm.KernelKMeans(rbf_kernel),
    sm.HDBSCAN(sm.kernels.RBF(1.0)),
    KNeighborsClassifier(euclidean_distances),
    KNeighborsRegressor(euclidean_distances),
    sm.NearestNeighbors(euclidean_distances),
    sm.OutlierDetector(euclidean_distances),
    sm.OutlierDetector(euclidean_distances, novelty=True),
    sm.OutlierDetector(rbf_kernel, "reconstruction"),
    sm.VoteClassifier([KernelSVC(rbf_kernel), KNeighborsClassifier(euclidean_distances), KernelSVC(rbf_kernel, 0.1)]),
    sm.VoteRegressor([KNeighborsRegressor(euclidean_distances), KNeighborsRegressor(euclidean_distances, 1)]),
    sm.ConformalClassifier(KernelSVC(rbf_kernel)),
    sm.ConformalClassifier(KNeighborsClassifier(euclidean_distances), "cross", "aps", by_class=True, cv=2),
    sm.ConformalRegressor(sm.KernelRidge(rbf_kernel)),
    sm.ConformalRegressor(sm.KernelRidge(rbf_kernel), "cross", cv=2),
    sm.recipes.d2ke(euclidean_distances, 8, gamma="tune", cv=2, random_state=0),
    sm.SimilaritySearch(sm.SignRandomProjection(64)),
    sm.search.VectorIndex(),
    sm.SimilaritySearch(sm.search.VectorIndex()),
]
EXPECTED = {  # four at most in the whole library
    ("GeneralizedNystroemPCA", "check_fit_score_takes_y"): "partial_fit after fit: of the rows of fit none is kept",
    ("LevelEncoder", "check_fit1d"): "a 1-D array is documented as one column of numbers",
    ("HDClassifier", "check_sample_weight_equivalence_on_dense_data"): "perceptrons depend on the sequence of samples, "
    "and probabilities of ridge on leaving out single samples",
    ("HDClassifier", "check_class_weight_classifiers"): "cosines in two dimensions cannot favour a class everywhere",
}
# Estimators that no vector can be given to; tests/test_structured_checks.py holds them against our own check.
OTHERS = {
    "AutoClassifier": "any objects; a fit takes seconds, and the checks make hundreds (tests/selection/test_auto.py)",
    "AutoRegressor": "as AutoClassifier",
    "NGramEncoder": "strings",
    "GraphHDEncoder": "graphs",
    "GraphletSampling": "graphs",
    "AttributeScaler": "graphs in, graphs out",
    "GraphToSets": "graphs in, sets out",
    "SeriesToSets": "series in, sets out",
    "MeanMapFeatures": "sets of points",
    "SequenceEncoder": "time series",
    "SeriesVectors": "time series of one length",
    "Hydra": "time series",
    "IntervalQuantiles": "time series",
    "RandomConvolutions": "time series",
    "RecordEncoder": "records of several kinds of data",
    "HammingIndex": "packed bits: uint8 rows of n_bits / 8 bytes",
    "FeatureIndex": "objects of a kernel with features",
    "ShardedIndex": "packed bits, in files or of Dask",
    "FromColumn": "one column of objects",
    "Pipeline": "what its steps take",
}
NAMES = [  # those that scikit-learn does not count among the checks of an estimator, though it runs them on its own
    checks.check_dataframe_column_names_consistency,
    checks.check_get_feature_names_out_error,
    checks.check_transformer_get_feature_names_out,
    checks.check_transformer_get_feature_names_out_pandas,
    checks.check_set_output_transform,
    checks.check_set_output_transform_pandas,
    checks.check_global_output_transform_pandas,
    checks.check_set_output_transform_polars,
    checks.check_global_set_output_transform_polars,
]


def expected_failures(estimator):
    name = type(estimator).__name__
    expected = {check: reason for (owner, check), reason in EXPECTED.items() if owner == name}
    if getattr(estimator, "update", None) == "ridge":  # the only one with an intercept
        del expected["check_class_weight_classifiers"]
    return expected


def named(value):
    """Return scikit-learn's name of a check without addresses, which differ between processes that share the tests."""
    name = CHECKS.kwargs["ids"](value)
    return name and re.sub(r"at0x[0-9a-f]+", "", name)


STRICT = (
    {"xfail_strict": True} if "xfail_strict" in inspect.signature(checks.parametrize_with_checks).parameters else {}
)  # scikit-learn 1.8
CHECKS = checks.parametrize_with_checks(VECTORS, expected_failed_checks=expected_failures, **STRICT)
CASES = list(CHECKS.args[1])
ARRAYS = "SCIPY_ARRAY_API"  # scipy reads this variable when it is imported; without it, checks of other arrays skip


def of_arrays(case):
    name = named((case.values if hasattr(case, "values") else case)[1])
    return name.startswith("check_array_api")


@pytest.mark.filterwarnings("ignore")  # the checks feed noise; that estimators warn of it is tested elsewhere
@pytest.mark.parametrize(
    CHECKS.args[0], [case for case in CASES if of_arrays(case) == (ARRAYS in os.environ)], ids=named
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.skipif(not any(map(of_arrays, CASES)), reason="this scikit-learn has no such check")
def test_checks_of_arrays_in_a_process_of_their_own():
    test = [f"{__file__}::test_scikit_learn_checks", "-q", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *test]
    done = subprocess.run(command, env=os.environ | {ARRAYS: "1"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert re.search(r"^\d\d+ passed in", done.stdout, re.MULTILINE), done.stdout


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("check", NAMES, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", VECTORS, ids=lambda estimator: type(estimator).__name__)
def test_names_of_columns(estimator, check):
    if check is not checks.check_dataframe_column_names_consistency and not hasattr(estimator, "transform"):
        return  # only a transformer makes columns
    if check is checks.check_get_feature_names_out_error and not get_tags(estimator).requires_fit:
        return
    check(type(estimator).__name__, clone(estimator))


def public_estimators(package=sm):
    """Return the names of all public classes with a `fit`, of all rooms."""
    found = set()
    for room in (getattr(package, name) for name, home in package._NAMES.items() if home == ""):
        for name in getattr(room, "__all__", None) or [name for name in vars(room) if not name.startswith("_")]:
            value = getattr(room, name)
            if inspect.isclass(value) and hasattr(value, "fit") and value.__module__.startswith("similia."):
                found.add(value.__name__)
    return found


def test_no_public_estimator_is_forgotten():
    tested = {type(getattr(estimator, "encoder", estimator)).__name__ for estimator in VECTORS}
    tested |= {type(estimator).__name__ for estimator in VECTORS} - {"Widened"}
    assert public_estimators() <= tested | set(OTHERS)
    assert not tested & set(OTHERS)
    assert len(EXPECTED) <= 4


@pytest.mark.parametrize("kind", ["strings", "vectors"])
def test_width_belongs_to_vectors_only(kind):
    """Strings have no columns, and what was learnt of columns is forgotten by the next fit."""
    model = sm.Nystroem(lambda X, Y: np.array([[float(len(set(x) & set(y))) for y in Y] for x in X]), 2)
    if kind == "strings":
        assert not hasattr(model.fit(["ab", "bc", "c"]), "n_features_in_")
        return
    model.set_params(kernel=rbf_kernel).fit(np.eye(3))
    assert model.n_features_in_ == 3
    model.set_params(kernel=sm.kernels.Spectrum(k=1)).fit(["ab", "bc", "c"])
    assert not hasattr(model, "n_features_in_")
    series = sm.Nystroem(sm.kernels.DistanceRBF(sm.distances.DTW()), 2, random_state=0)
    assert series.fit(np.eye(4)).transform(np.ones((1, 6))).shape == (1, 2)  # series of another length


@pytest.mark.parametrize("m", [1, 7])
def test_an_odd_number_of_heat_features_is_unbiased(m):
    X = np.array([[1.0, 0, 0], [0.8, 0.6, 0], [0, 0.6, 0.8]])
    fitted = partial(sm.HeatRandomFeatures, m, contrast=1.0, mapping="projection", orthogonal=False)
    estimates = [(Z @ Z.T)[np.triu_indices(3)] for Z in (fitted(random_state=i).fit_transform(X) for i in range(3000))]
    assert Z_shape(fitted, X) == (3, m)
    exact = sm.kernels.HypersphericalHeat(1.0, mapping="projection")(X)[np.triu_indices(3)]
    error = np.std(estimates, axis=0) / np.sqrt(len(estimates))
    assert (np.abs(np.mean(estimates, axis=0) - exact) < 4 * error).all()


def Z_shape(fitted, X):
    return fitted(random_state=0).fit_transform(X).shape
