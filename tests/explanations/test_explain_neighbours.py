"""Decisions of nearest neighbours: parts are neighbours, and add up to what the model says."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import euclidean_distances

import similia as sm

STRINGS = ["GATTACA", "ATTAC", "CCGCGG", "CGCGC", "TTACAT", "GCGC", "TATTAG", "GGCC", "ACATTA", "CGGCG"]
LABELS = np.array(list("abcbcabcab"))


@pytest.mark.filterwarnings("ignore:.* have similarity 0 to all training objects")  # of strings shorter than k
@settings(max_examples=30, deadline=None)
@given(st.text("ACGT", max_size=8), st.integers(1, 10), st.sampled_from(["uniform", "distance"]), st.booleans())
def test_the_votes_add_up_to_the_lead_of_the_class(x, k, weights, by_kernel):
    compare = sm.kernels.Spectrum(k=2) if by_kernel else sm.distances.Levenshtein()
    model = sm.KNeighborsClassifier(compare, k, weights).fit(STRINGS, LABELS)
    found = sm.explain(model, x, top=20)
    shares = model.predict_proba([x])[0]
    lead = np.sort(shares)[::-1]
    assert found.value == pytest.approx(lead[0] - lead[1], abs=1e-12)
    assert sum(part.contribution for part in found.parts) + found.residual == pytest.approx(found.value, abs=1e-12)
    assert found.residual == pytest.approx(0.0, abs=1e-12)
    assert f"for {model.predict([x])[0]} against " in found.title
    for part in found.parts:
        number = int(re.search(r"training object (\d+)", part.name)[1])
        assert part.name.startswith(f"{LABELS[number]}: ")
        assert number in model.kneighbors([x], return_distance=False)[0]


def test_of_one_class_there_is_nothing_to_explain():
    model = sm.KNeighborsClassifier(sm.distances.Levenshtein()).fit(["A", "C"], ["x", "x"])
    with pytest.raises(ValueError, match="fitted to the one class x"):
        sm.explain(model, "A")


def test_a_mean_is_that_of_the_targets():
    targets = np.arange(10.0) ** 2
    model = sm.KNeighborsRegressor(sm.distances.Levenshtein(), 4, "distance").fit(STRINGS, targets)
    found = sm.explain(model, "GATT")
    assert found.value == pytest.approx(model.predict(["GATT"])[0])
    assert sum(part.contribution for part in found.parts) == pytest.approx(found.value)
    with pytest.raises(ValueError, match="predicts 2 numbers, expected one"):
        sm.explain(model.fit(STRINGS, np.column_stack([targets, targets])), "GATT")


def test_vectors_and_series_are_named_by_number():
    X = np.random.default_rng(0).normal(size=(10, 3))
    found = sm.explain(sm.KNeighborsClassifier(euclidean_distances, 1).fit(X, LABELS), X[4])
    assert [part.name for part in found.parts] == ["c: training object 4, at 0"]
    series = [np.sin(np.arange(5 + i)) for i in range(10)]
    found = sm.explain(sm.KNeighborsClassifier(sm.distances.DTW(), 1).fit(series, LABELS), series[2])
    assert [part.name for part in found.parts] == ["c: training object 2 (7 time points), at 0"]
    assert "training object 2" in found.to_html()
