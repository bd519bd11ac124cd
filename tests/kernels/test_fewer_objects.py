"""A model that was made for many objects is fitted to few: all of them are used, and that is said."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

import similia as sm
from samples.select import choose, rows, sample
from similia.learn import KNeighborsClassifier, KNeighborsRegressor

WORDS = ["ACGT", "ACGA", "TTTT", "TTTA", "GGCC", "GGCA"]
KERNEL = sm.kernels.Spectrum(k=2, normalize=True)


@pytest.mark.parametrize("landmarks", ["uniform", "kmeans++", "leverage", "rpcholesky", "adaptive", "ensemble"])
def test_landmarks_are_all_objects_if_more_are_asked_for(landmarks):
    said = "n_components=20 is more than the 6 training objects: all 6 are used"
    with pytest.warns(UserWarning, match=said):
        few = sm.Nystroem(KERNEL, 20, landmarks=landmarks, random_state=0).fit(WORDS)
    asked = sm.Nystroem(KERNEL, 6, landmarks=landmarks, random_state=0).fit(WORDS)
    np.testing.assert_array_equal(few.transform(WORDS), asked.transform(WORDS))
    assert few.n_components == 20  # the parameter stays as it was given
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sm.Nystroem(KERNEL, 6).fit(WORDS)
        sm.Nystroem(KERNEL, "auto").fit(WORDS)


def test_a_precomputed_kernel_too():
    with pytest.warns(UserWarning, match="n_components=9 is more than the 6 training objects"):
        few = sm.Nystroem("precomputed", 9, random_state=0).fit(KERNEL(WORDS))
    np.testing.assert_allclose(few.transform(KERNEL(WORDS)) @ few.transform(KERNEL(WORDS)).T, KERNEL(WORDS), atol=1e-12)


def test_landmarks_of_distances():
    edit = sm.distances.Levenshtein()
    with pytest.warns(UserWarning, match="n_landmarks=50 is more than the 6 training objects"):
        few = sm.PseudoEuclidean(edit, n_landmarks=50, random_state=0).fit(WORDS)
    np.testing.assert_array_equal(few.landmark_indices_, np.arange(6))


@pytest.mark.parametrize("machine", [KNeighborsClassifier, KNeighborsRegressor])
def test_neighbours(machine):
    edit, y = sm.distances.Levenshtein(), [0, 0, 1, 1, 2, 2]
    with pytest.warns(UserWarning, match="n_neighbors=15 is more than the 6 training objects: all 6 are used"):
        few = machine(edit, 15).fit(WORDS, y)
    np.testing.assert_array_equal(few.predict(WORDS), machine(edit, 6).fit(WORDS, y).predict(WORDS))
    assert few.kneighbors(WORDS[:1])[1].shape == (1, 6)
    assert few.kneighbors()[1].shape == (6, 5)  # each one's neighbours without itself
    with pytest.raises(ValueError, match="n_neighbors=7 is more than the 6 training objects to choose from"):
        few.kneighbors(WORDS, 7)  # as many columns were asked for


@pytest.mark.parametrize("kind", ["strings", "texts", "graphs", "sets", "series"])
@pytest.mark.filterwarnings("ignore:.*is more than the:UserWarning")
def test_what_select_chose_is_fitted_to_fewer_objects(kind):
    X, y = sample(kind, 60)
    found = choose(X, y, budget=2, cv=3, max_voters=1, nested=False, random_state=0)
    part = sm.objects.take(X, np.arange(20))
    assert set(clone(found.best_estimator_).fit(part, y[:20]).predict(part)) <= {"even", "odd"}
    for row in rows(found):
        if row["name"].split(" · ")[1:2] == ["landmarks"]:
            clone(row["estimator"]).fit(part, y[:20])
            break


def test_folds_of_a_chosen_pipeline():
    X, y = sample("strings", 40)
    model = sm.Pipeline([("nystroem", sm.Nystroem(KERNEL, 40, random_state=0)), ("learner", SVC())])
    with pytest.warns(UserWarning, match="n_components=40 is more than the 30 training objects"):
        assert np.isfinite(cross_val_score(model, X, y, cv=4)).all()


def test_what_would_mislead_is_still_refused():
    with pytest.raises(ValueError, match="landmark index 8 is out of range"):
        sm.Nystroem(KERNEL, landmarks=[0, 8]).fit(WORDS)
    with pytest.raises(ValueError, match="n_components must be an integer >= 1"):
        sm.Nystroem(KERNEL, 0).fit(WORDS)
