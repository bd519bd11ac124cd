"""Masked arrays: what is masked is never taken for data, by any estimator, kernel or distance."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import similia as sm
from similia import distances, kernels
from similia.objects import GraphBatch, as_graphs

rng = np.random.default_rng(0)
VECTORS = np.abs(rng.normal(size=(24, 8)))
MASKED = np.ma.array(VECTORS, mask=np.arange(24 * 8).reshape(24, 8) == 13)  # X[1, 5]
LABELS = np.arange(24) % 2
CODES = rng.integers(0, 256, (24, 2), dtype=np.uint8)
WHOLE = np.ma.array(VECTORS, mask=False)

READERS = {
    "Optical": lambda X: kernels.Optical()(X),
    "Optical second": lambda X: kernels.Optical()(VECTORS, X),
    "Cosine": lambda X: kernels.Cosine()(X),
    "HypersphericalHeat": lambda X: kernels.HypersphericalHeat()(X),
    "suggest_contrast": lambda X: kernels.suggest_contrast(X),
    "Nystroem": lambda X: sm.Nystroem(kernels.Optical(), n_components=4, random_state=0).fit_transform(X),
    "KernelFeatures": lambda X: sm.KernelFeatures(kernels.Optical(), 64).fit_transform(X).toarray(),
    "FeatureWeights": lambda X: sm.FeatureWeights().fit_transform(X),
    "OpticalRandomFeatures": lambda X: sm.OpticalRandomFeatures(8, random_state=0).fit_transform(X),
    "HeatRandomFeatures": lambda X: sm.HeatRandomFeatures(n_components=8, random_state=0).fit_transform(X),
    "SignRandomProjection": lambda X: sm.SignRandomProjection(64, random_state=0).fit_transform(X),
    "LevelEncoder": lambda X: sm.LevelEncoder(64, random_state=0).fit_transform(X),
    "FractionalPowerEncoder": lambda X: sm.FractionalPowerEncoder(64, random_state=0).fit_transform(X),
    "SequenceEncoder": lambda X: sm.SequenceEncoder(64, random_state=0).fit_transform(X),
    "GeneralizedNystroemPCA": lambda X: sm.GeneralizedNystroemPCA(3, random_state=0).fit_transform(X),
    "chunks": lambda X: sm.GeneralizedNystroemPCA(3, random_state=0).fit([X]).transform(VECTORS),
    "ITQ": lambda X: sm.ITQ(8, max_iter=2, random_state=0).fit_transform(X),
    "SignCodes": lambda X: sm.codes.SignCodes().fit_transform(X),
    "HDClassifier": lambda X: sm.HDClassifier(random_state=0).fit(X, LABELS).predict(X),
    "HeatSVC": lambda X: sm.HeatSVC().fit(X, LABELS).predict(X),
    "KernelSVC": lambda X: sm.KernelSVC(kernels.Cosine()).fit(X, LABELS).predict(X),
    "KNeighborsClassifier": lambda X: sm.KNeighborsClassifier(kernels.Cosine(), 1).fit(X, LABELS).predict(X),
    "DTW": lambda X: distances.DTW()(X),
    "DTW of a list": lambda X: distances.DTW()(list(X)),
    "MSM": lambda X: distances.MSM()(X),
    "ModifiedHausdorff": lambda X: distances.ModifiedHausdorff()([X[:3], X[3:5]]),
    "D2KE": lambda X: sm.D2KE(distances.DTW(), n_components=4, random_state=0).fit_transform(X),
    "PseudoEuclidean": lambda X: sm.PseudoEuclidean(distances.DTW(), n_components=2).fit_transform(X),
    "adjacency": lambda X: as_graphs([X[:8]]).edge_weights,
    "attributes": lambda X: as_graphs([([[0], [1]], 24, {"node_attributes": X})]).node_attributes,
    "weights": lambda X: as_graphs([(np.zeros((2, 8), int), 1, {"edge_weights": X[1]})]).edge_weights,
    "batch attributes": lambda X: GraphBatch.from_arrays([0, 24], [[0], [1]], node_attributes=X).node_attributes,
    "heat_profile": lambda X: kernels.heat_profile(X / 10, n=8, t=0.1),
    "rows in a list": lambda X: kernels.Optical()(list(X)),
    "search": lambda X: sm.SimilaritySearch(
        make_pipeline(sm.HeatRandomFeatures(n_components=8, random_state=0), sm.SignRandomProjection(8, random_state=0))
    ).fit(X).kneighbors(X, 1)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_masked_numbers_are_refused(name):
    with pytest.raises(ValueError, match=r"mask|\bnan\b|NaN"):
        READERS[name](MASKED)


@pytest.mark.parametrize("name", READERS)
def test_a_mask_that_hides_nothing_changes_nothing(name):
    np.testing.assert_array_equal(np.asarray(READERS[name](WHOLE)), np.asarray(READERS[name](VECTORS)))


LABELLED = {
    "HDClassifier": lambda y: sm.HDClassifier(random_state=0).fit(CODES, y),
    "HeatSVC": lambda y: sm.HeatSVC().fit(VECTORS, y),
    "KernelSVC": lambda y: sm.KernelSVC(kernels.Cosine()).fit(VECTORS, y),
    "KNeighborsClassifier": lambda y: sm.KNeighborsClassifier(kernels.Cosine(), 1).fit(VECTORS, y),
    "KNeighborsRegressor": lambda y: sm.KNeighborsRegressor(kernels.Cosine(), 1).fit(VECTORS, y),
    "KernelRidge": lambda y: sm.KernelRidge(kernels.Cosine()).fit(VECTORS, y),
}


@pytest.mark.parametrize("name", LABELLED)
def test_masked_labels_are_refused(name):
    with pytest.raises(ValueError, match=r"y\[3\] is masked, expected data without gaps; fill masked values"):
        LABELLED[name](np.ma.array(LABELS, mask=np.arange(24) == 3))
    LABELLED[name](np.ma.array(LABELS, mask=False))


def test_the_sentence_names_the_place():
    with pytest.raises(ValueError, match=r"^X\[1\], entry 5 is masked, expected data without gaps; fill masked values"):
        kernels.Optical()(MASKED)
    with pytest.raises(ValueError, match=r"^Y\[1\], entry 5 is masked"):
        kernels.Optical()(VECTORS, MASKED)
    with pytest.raises(ValueError, match=r"^codes\[0\], entry 1 is masked"):
        sm.codes.unpack_signs(np.ma.array(CODES, mask=np.arange(48).reshape(24, 2) == 1))


def test_masked_labels_of_graphs_are_refused():
    labels = np.ma.array([1, 2, 3], mask=[0, 1, 0])
    for make in (
        lambda: as_graphs([([[0], [1]], 3, {"node_labels": labels})]),
        lambda: GraphBatch.from_arrays([0, 3], [[0], [1]], node_labels=labels),
        lambda: as_graphs([(np.ma.array([[0], [1]], mask=[[0], [1]]), 3)]),
    ):
        with pytest.raises(ValueError, match="mask"):
            make()
    with pytest.raises(TypeError, match="missing"):
        kernels.Spectrum()(np.ma.array(["AC", "CA"], mask=[0, 1]))
