"""Displays: their numbers against slow twins, what they draw, and that pyplot knows of it but reports do without."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import similia as sm
from similia.codes import flip_bits
from similia.report import (
    ApproximationErrorDisplay,
    EmbeddingDisplay,
    RecallDisplay,
    RobustnessDisplay,
    SpectrumDisplay,
)
from similia.report.bits import recalls_of
from similia.report.displays import COLOURS, LINES, MARKS, line, mark, plane


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    yield
    plt.close("all")


KERNEL = sm.kernels.GappyKmers(k=4, gaps=1)


@pytest.fixture(scope="module")
def data() -> tuple[list[str], np.ndarray]:
    X, y = sm.datasets.load_promoters(return_X_y=True)
    return list(X), np.asarray(y)


@pytest.fixture(scope="module")
def nystroem(data: tuple[list[str], np.ndarray]) -> Any:
    return sm.Nystroem(KERNEL, 40, random_state=0).fit(data[0][:60])


def displays(data: tuple[list[str], np.ndarray], nystroem: Any) -> list[Any]:
    X, y = data
    codes = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=0))
    return [
        ApproximationErrorDisplay.from_estimator(nystroem, X[60:]),
        SpectrumDisplay.from_estimator(nystroem),
        RobustnessDisplay.from_estimator(sm.recipes.nyshd(KERNEL, 30, 256, random_state=0), X, y),
        RecallDisplay.from_estimator(sm.SimilaritySearch(codes, rerank="kernel").fit(X[:60]), X[60:], k=(1, 3)),
        EmbeddingDisplay.from_estimator(nystroem, X, y),
    ]


# the numbers


def test_approximation_error_with_all_landmarks_is_that_of_the_model(
    data: tuple[list[str], np.ndarray], nystroem: Any
) -> None:
    X = data[0][60:]
    display = ApproximationErrorDisplay.from_estimator(nystroem, X)
    theta, K = nystroem.transform(X), KERNEL(X)
    assert display.sizes[-1] == 40
    assert display.errors[-1] == pytest.approx(np.linalg.norm(K - theta @ theta.T) / np.linalg.norm(K))
    assert display.errors[-1] == pytest.approx(nystroem.approximation_error(X))
    assert (np.diff(display.errors) < 0).all()
    all_landmarks = sm.Nystroem(KERNEL, len(X)).fit(X)
    assert ApproximationErrorDisplay.from_estimator(all_landmarks, X).errors[-1] < 1e-6


def test_approximation_error_of_landmarks_behind_a_step_that_makes_sets() -> None:
    rng = np.random.default_rng(0)
    X = [rng.standard_normal(9 + i % 4) for i in range(40)]
    nystroem = sm.Nystroem(sm.kernels.MeanMap(sm.kernels.RBF(1.0)), 10, random_state=0)
    model = make_pipeline(sm.objects.SeriesToSets(length=3), nystroem).fit(X)
    display = ApproximationErrorDisplay.from_estimator(model, X)
    alone = ApproximationErrorDisplay.from_estimator(model[1], model[0].transform(X))
    assert display.of == "landmarks"
    np.testing.assert_array_equal(display.errors, alone.errors)


def test_approximation_error_knows_rounding_in_float32_as_the_model_does() -> None:
    X = np.random.default_rng(0).normal(size=(120, 10)).astype(np.float32)
    nystroem = sm.Nystroem(sm.kernels.Cosine("projection"), 100, spectrum="raise", random_state=0).fit(X)
    assert ApproximationErrorDisplay.from_estimator(nystroem, X).errors[-1] < 1e-5


def test_error_of_random_features_against_the_exact_kernel() -> None:
    """Random Fourier features, whose kernel is known: the curve against the true errors of many draws."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 3))
    K = np.exp(-np.square(X[:, None] - X[None]).sum(axis=2) / 2)
    R, sizes, estimated, true = 512, [8, 32, 128, 512], [], []
    for _ in range(60):
        W, b = rng.standard_normal((3, R)), rng.uniform(0, 2 * np.pi, R)
        V = np.sqrt(2 / R) * np.cos(X @ W + b)
        curve = ApproximationErrorDisplay._of_features(V, sizes)
        estimated.append(curve.errors)
        true.append([np.linalg.norm(R / r * V[:, :r] @ V[:, :r].T - K) / np.linalg.norm(K) for r in sizes])
    rms = np.sqrt(np.mean(np.square(true), axis=0))
    np.testing.assert_allclose(np.mean(estimated, axis=0), rms, rtol=0.1)
    np.testing.assert_allclose(np.array(estimated), np.tile(rms, (60, 1)), rtol=0.25)  # one draw tells it


def test_models_without_an_approximation_are_refused(data: tuple[list[str], np.ndarray]) -> None:
    X, _ = data
    with pytest.raises(ValueError, match="neither landmarks nor random features"):
        ApproximationErrorDisplay.from_estimator(sm.KernelFeatures(sm.kernels.Spectrum(k=2)).fit(X), X)
    few = sm.D2KE(sm.distances.Levenshtein(), 8, random_state=0).fit(X)
    with pytest.raises(ValueError, match="at least 16"):
        ApproximationErrorDisplay.from_estimator(few, X)


def test_spectrum_is_that_of_the_landmark_kernel(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    display = SpectrumDisplay.from_estimator(nystroem)
    expected = np.linalg.eigvalsh(KERNEL(nystroem.landmarks_))[::-1]
    np.testing.assert_allclose(display.eigenvalues, expected, atol=1e-9 * expected[0])
    assert (display.rank, display.clipped) == (nystroem.rank_, 0.0)


@pytest.mark.filterwarnings("ignore:the kernel is not positive")
def test_the_clipped_share_of_an_indefinite_similarity() -> None:
    """The matrix [[0, 1, 0], [1, 0, 0], [0, 0, 2]] has eigenvalues 2, 1 and -1: a quarter is negative."""
    table = {("a", "b"): 1.0, ("b", "a"): 1.0, ("c", "c"): 2.0}

    def kernel(X: Any, Y: Any) -> np.ndarray:
        return np.array([[table.get((x, y), 0.0) for y in Y] for x in X])

    display = SpectrumDisplay.from_estimator(sm.Nystroem(kernel, 3).fit(["a", "b", "c"]))
    np.testing.assert_allclose(display.eigenvalues, [2.0, 1.0, -1.0], atol=1e-12)
    assert display.clipped == pytest.approx(0.25)
    assert display.rank == 2


def test_spectrum_of_vectors(data: tuple[list[str], np.ndarray]) -> None:
    X = data[0][:30]
    d2ke = sm.D2KE(sm.distances.Levenshtein(), 20, random_state=0).fit(X)
    with pytest.raises(ValueError, match="pass objects X"):
        SpectrumDisplay.from_estimator(d2ke)
    display = SpectrumDisplay.from_estimator(d2ke, X)
    singular = np.linalg.svd(d2ke.transform(X).astype(float), compute_uv=False)
    np.testing.assert_allclose(display.eigenvalues[:20], singular**2, atol=1e-6 * singular[0] ** 2)
    assert display.rank <= 20
    assert len(display.eigenvalues) == 30


def test_robustness_against_the_steps_done_one_by_one(data: tuple[list[str], np.ndarray]) -> None:
    from sklearn.model_selection import train_test_split

    X, y = data
    model = sm.recipes.nyshd(KERNEL, 30, 256, random_state=0)
    display = RobustnessDisplay.from_estimator(model, X, y, shares=(0.0, 0.3), n_bits=(64, 256), random_state=5)
    train, test = train_test_split(np.arange(len(y)), test_size=0.3, random_state=5, stratify=y)
    train, test = np.sort(train), np.sort(test)
    fitted = sm.recipes.nyshd(KERNEL, 30, 256, random_state=0).fit([X[i] for i in train], y[train])
    codes, learner = fitted[:-1].transform([X[i] for i in test]), fitted[-1]
    expected = [np.mean(learner.predict(flip_bits(codes, share, 5)) == y[test]) for share in (0.0, 0.3)]
    np.testing.assert_array_equal(display.flipped, expected)
    short = np.ascontiguousarray(fitted[:-1].transform([X[i] for i in train])[:, :8])
    learner = sm.HDClassifier("auto", random_state=learner.random_state).fit(short, y[train])
    assert display.shortened[0] == np.mean(learner.predict(np.ascontiguousarray(codes[:, :8])) == y[test])
    assert display.shortened[1] == expected[0]
    assert display.n == len(test)
    assert not hasattr(model[-1], "prototypes_")


def test_robustness_refuses_what_has_no_bits(data: tuple[list[str], np.ndarray]) -> None:
    X, y = data
    with pytest.raises(ValueError, match="does not take packed bits"):
        RobustnessDisplay.from_estimator(sm.recipes.d2ke(sm.distances.Levenshtein(), 20, random_state=0), X, y)
    with pytest.raises(ValueError, match="multiples of 8"):
        RobustnessDisplay.from_estimator(sm.recipes.nyshd(KERNEL, 20, 64, random_state=0), X, y, n_bits=(7,))


def naive_recall(values: np.ndarray, rows: np.ndarray, k: int, c: int) -> float:
    found = []
    for true, candidates in zip(values, rows, strict=True):
        answers = sorted(candidates[:c], key=lambda j: true[j])[:k]
        farthest = sorted(true)[k - 1]
        found.append(sum(true[j] <= farthest for j in answers) / k)
    return sum(found) / len(found)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5))
def test_recall_against_a_slow_twin(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(5, size=(4, 12)).astype(float)  # with ties
    rows = np.array([rng.permutation(12) for _ in range(4)])
    found = recalls_of(values, rows, k, [k, 8, 12])
    assert found.tolist() == [naive_recall(values, rows, k, c) for c in (k, 8, 12)]
    assert found[-1] == 1.0


def test_recall_of_a_search_is_what_the_search_says(data: tuple[list[str], np.ndarray]) -> None:
    X, _ = data
    encoder = make_pipeline(sm.Nystroem(KERNEL, 30, random_state=0), sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(encoder, rerank="kernel", n_candidates=10).fit(X[:80], ids=np.arange(80)[::-1] + 7)
    display = RecallDisplay.from_estimator(search, X[80:], k=3, candidates=(5, 10, 80))
    expected = search.recall(X[80:], 3).recall
    assert display.recalls[3][1] == pytest.approx(expected)
    assert display.recalls[3][2] == 1.0
    assert display.n_queries == 26


def test_recall_of_an_index() -> None:
    rng = np.random.default_rng(0)
    codes, queries = (rng.integers(256, size=(n, 8), dtype=np.uint8) for n in (300, 20))
    exact = sm.HammingIndex(64).fit(codes, ids=rng.permutation(300))
    assert all(RecallDisplay.from_estimator(exact, queries, k=(1, 5)).recalls[5] == 1.0)
    cells = sm.HammingIndex(64, "ivf", n_lists=10, n_probes=2, random_state=0).fit(codes)
    shares = RecallDisplay.from_estimator(cells, queries, k=1, candidates=(1, 20)).recalls[1]
    nearest = exact.kneighbors(queries, 1)[0][:, 0]
    found = cells.kneighbors(queries, 1)[0][:, 0]
    assert shares[0] == pytest.approx(np.mean(found == nearest))
    with pytest.raises(ValueError, match="more than the 300 objects"):
        RecallDisplay.from_estimator(exact, queries, k=301)
    with pytest.raises(ValueError, match="candidates must be from"):
        RecallDisplay.from_estimator(exact, queries, k=5, candidates=(2,))


def test_recall_of_an_index_of_jaccard_distances_is_1() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(256, size=(300, 8), dtype=np.uint8) & rng.integers(256, size=(300, 8), dtype=np.uint8)
    codes[:2] = 0
    index = sm.HammingIndex(64, metric="jaccard").fit(codes[1:280])
    display = RecallDisplay.from_estimator(index, codes[[0, *range(280, 300)]], k=(1, 5))
    assert all((recalls == 1.0).all() for recalls in display.recalls.values())


def test_the_map_is_that_of_principal_components(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    X, y = data
    display = EmbeddingDisplay.from_estimator(nystroem, X, y)
    Z = nystroem.transform(X).astype(float)
    U, S, _ = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    np.testing.assert_allclose(np.abs(display.points), np.abs(U[:, :2] * S[:2]), atol=1e-6 * S[0])
    assert (display.points[np.abs(display.points).argmax(axis=0), [0, 1]] > 0).all()
    assert f"({100 * S[0] ** 2 / (S**2).sum():.2g} %)" in display.names[0]


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (5, 1), (6, 2), (3, 0)])
def test_maps_of_little(shape: tuple[int, int]) -> None:
    points, shares = plane(np.arange(shape[0] * shape[1], dtype=float).reshape(shape))
    assert points.shape == (shape[0], 2)
    assert np.isfinite(points).all()
    assert shares.shape == (2,)


def test_a_map_by_another_method(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    from sklearn.decomposition import TruncatedSVD

    X, _ = data
    display = EmbeddingDisplay.from_estimator(nystroem, X, method=TruncatedSVD(2, random_state=0))
    np.testing.assert_allclose(display.points, TruncatedSVD(2, random_state=0).fit_transform(nystroem.transform(X)))
    with pytest.raises(ValueError, match="method must be"):
        EmbeddingDisplay.from_estimator(nystroem, X, method="umap")


# how displays are called


def test_displays_take_a_model_objects_and_labels_as_those_of_scikit_learn(
    data: tuple[list[str], np.ndarray], nystroem: Any
) -> None:
    X, y = data
    codes = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(codes, rerank="kernel").fit(X[:80])
    approximation = ApproximationErrorDisplay.from_estimator(nystroem, X[60:], y[60:])
    spectrum = SpectrumDisplay.from_estimator(nystroem, X, y)
    recall = RecallDisplay.from_estimator(search, X[80:], y[80:], k=1)
    assert approximation.errors.tolist() == ApproximationErrorDisplay.from_estimator(nystroem, X[60:]).errors.tolist()
    assert spectrum.eigenvalues.tolist() == SpectrumDisplay.from_estimator(nystroem, X).eigenvalues.tolist()
    assert recall.recalls[1].tolist() == RecallDisplay.from_estimator(search, X[80:], k=1).recalls[1].tolist()
    for display in (approximation, spectrum, recall):
        assert display.ax_.figure is display.figure_
    for kind in (ApproximationErrorDisplay, SpectrumDisplay, RobustnessDisplay, RecallDisplay, EmbeddingDisplay):
        names = list(inspect.signature(kind.from_estimator).parameters)
        assert names[:3] == ["estimator", "X", "y"]


def test_a_recall_is_that_of_a_search(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    X, y = data
    for model in (make_pipeline(nystroem, LinearSVC()).fit(X, y), sm.KernelSVC(KERNEL).fit(X, y), nystroem):
        with pytest.raises(TypeError, match="is not a search; give a fitted"):
            RecallDisplay.from_estimator(model, X, y)
    unfitted = sm.SimilaritySearch(make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=0)))
    with pytest.raises(NotFittedError, match="SimilaritySearch"):
        RecallDisplay.from_estimator(unfitted, X, y)


@pytest.mark.parametrize("kind", [ApproximationErrorDisplay, SpectrumDisplay, EmbeddingDisplay])
def test_displays_of_fitted_models_refuse_others(kind: Any, data: tuple[list[str], np.ndarray]) -> None:
    X, y = data
    with pytest.raises(NotFittedError, match="Pipeline"):
        kind.from_estimator(make_pipeline(sm.Nystroem(KERNEL, 9), LinearSVC()), X, y)
    with pytest.raises(TypeError, match="the model is None, expected an estimator"):
        kind.from_estimator(None, X, y)
    with pytest.raises(TypeError, match="the model is the class Nystroem"):
        kind.from_estimator(sm.Nystroem, X, y)


def test_of_a_search_the_encoder_is_shown(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    X, y = data
    codes = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(codes).fit(X[:80])
    shown = EmbeddingDisplay.from_estimator(search, X, y).points
    np.testing.assert_array_equal(shown, EmbeddingDisplay.from_estimator(search.encoder_, X, y).points)


# the pictures


def test_every_display_draws_and_draws_again_on_given_axes(
    data: tuple[list[str], np.ndarray], nystroem: Any, tmp_path: Any
) -> None:
    for i, display in enumerate(displays(data, nystroem)):
        display.figure_.savefig(tmp_path / f"{i}.png")
        figure = Figure()
        n = len(display.ax_) if isinstance(display.ax_, list) else 1
        axes = figure.subplots(1, n)
        assert display.plot(axes) is display
        assert display.figure_ is figure
        drawn = axes if n > 1 else [axes]
        for axis in drawn:
            assert axis.get_xlabel()
            assert axis.get_ylabel()
            assert axis.has_data()
        assert display._repr_html_().startswith(f'<img alt="{type(display).__name__}"')
        if n > 1:
            with pytest.raises(ValueError, match="must hold 2 axes"):
                display.plot(Figure().subplots())


def test_keywords_reach_the_lines(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    display = ApproximationErrorDisplay.from_estimator(nystroem, data[0][60:], color="red", label="mine")
    assert (display.line_.get_color(), display.line_.get_label()) == ("red", "mine")
    assert EmbeddingDisplay(points=np.eye(2)).plot(s=99).ax_.collections[0].get_sizes() == [99]


def test_many_classes_numbers_and_odd_labels() -> None:
    rng = np.random.default_rng(0)
    points = rng.standard_normal((200, 2))
    many = EmbeddingDisplay(points=points, y=np.arange(200) % 30).plot()
    labels = [text.get_text() for text in many.ax_.get_legend().get_texts()]
    assert len(labels) == 21
    assert "10 other classes" in labels
    assert len(EmbeddingDisplay(points=points, y=rng.random(200)).plot().figure_.axes) == 2
    odd = np.array([r"$\frac{", "_hidden", "$", "a" * 200])
    EmbeddingDisplay(points=points, y=odd[np.arange(200) % 4]).plot().figure_.canvas.draw()


def test_series_differ_in_more_than_colour() -> None:
    marks = [(mark(i)["color"], mark(i)["marker"]) for i in range(49)]
    assert len(set(marks)) == 49
    lines = [(line(i)["marker"], line(i)["linestyle"]) for i in range(7)]
    assert len(set(lines)) == 7
    assert len(set(COLOURS)) == len(COLOURS) == len(MARKS)
    assert len(set(LINES)) == len(LINES)


def test_colours_stay_apart_for_the_colour_blind() -> None:
    """Vienot, Brettel & Mollon, Color Research & Application 1999: what protanopes and deuteranopes see of a colour."""
    lms = np.array([[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]])
    protanope = np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]])
    deuteranope = np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]])
    colours = np.array([to_rgb(colour) for colour in COLOURS]) ** 2.2
    for seen in (np.eye(3), protanope, deuteranope):
        shown = np.clip(colours @ lms.T @ seen.T @ np.linalg.inv(lms).T, 0, 1) ** (1 / 2.2)
        gaps = [np.linalg.norm(a - b) for a, b in combinations(shown, 2)]
        assert min(gaps) > 0.1


def test_a_figure_of_its_own_is_that_of_pyplot_as_with_scikit_learn(nystroem: Any, tmp_path: Path) -> None:
    display = SpectrumDisplay.from_estimator(nystroem)
    assert plt.gcf() is display.figure_
    plt.savefig(tmp_path / "by_pyplot.png")
    display.figure_.savefig(tmp_path / "by_hand.png")
    by_pyplot = plt.imread(tmp_path / "by_pyplot.png")
    assert by_pyplot.min() < 0.5 < by_pyplot.max()  # not blank
    np.testing.assert_array_equal(by_pyplot, plt.imread(tmp_path / "by_hand.png"))
    plt.figure()  # another, which stays the current one
    assert display._repr_html_() is None  # a notebook shows it as one of pyplot's
    assert plt.gcf() is not display.figure_
    plt.close("all")
    assert display._repr_html_().startswith("<img")
    assert plt.get_fignums() == []


def test_given_axes_make_no_figure(nystroem: Any) -> None:
    SpectrumDisplay.from_estimator(nystroem, ax=Figure().subplots())
    assert plt.get_fignums() == []


def test_importing_does_without_matplotlib_and_writing_a_report_without_pyplot(tmp_path: Path) -> None:
    script = """
import sys
import similia as sm
import similia.report as report
from similia.report import displays, page
assert not {"matplotlib", "jinja2"} & sys.modules.keys(), "importing the room"
X, y = sm.datasets.load_promoters(return_X_y=True)
model = sm.Nystroem(sm.kernels.Spectrum(k=2), 10, random_state=0).fit(X)
page.write_report(model, X, y, sys.argv[1])
assert "matplotlib.pyplot" not in sys.modules, "writing a report"
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "r.html")], check=True, timeout=120)


def test_spectrum_of_counts() -> None:
    X = ["a b", "cc dd", "ee", "aa cc"]
    model = make_pipeline(CountVectorizer(), LinearSVC()).fit(X, [0, 1, 0, 1])
    assert SpectrumDisplay.from_estimator(model, X).rank == 3


@pytest.mark.parametrize("sizes", [[], [0, 3], [-1], [2.5], [10, 1000]])
def test_impossible_numbers_of_landmarks_are_refused(
    sizes: Any, data: tuple[list[str], np.ndarray], nystroem: Any
) -> None:
    with pytest.raises(ValueError, match="sizes must be"):
        ApproximationErrorDisplay.from_estimator(nystroem, data[0][60:], sizes=sizes)


def test_a_recall_of_no_numbers_is_refused(data: tuple[list[str], np.ndarray], nystroem: Any) -> None:
    codes = make_pipeline(nystroem, sm.SignRandomProjection(64, random_state=0))
    search = sm.SimilaritySearch(codes, rerank="kernel").fit(data[0][:60])
    with pytest.raises(ValueError, match="k must be at least one integer"):
        RecallDisplay.from_estimator(search, data[0][60:], k=[])
    with pytest.raises(ValueError, match="candidates must be"):
        RecallDisplay.from_estimator(search, data[0][60:], candidates=[])
