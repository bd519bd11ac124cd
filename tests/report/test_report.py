"""Reports: every kind of model and object makes a page; nothing hostile gets out of it; a browser finds it in order."""

from __future__ import annotations

import io
import json
import re
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from jinja2 import UndefinedError
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, LinearSVC

import similia as sm
from samples.report import HOSTILE, SECTIONS, Opened, Page, graphs, nyshd, pipelines, series, written
from similia.embeddings import Representatives
from similia.kernels import Spectrum
from similia.learn import KernelSVC
from similia.objects import AttributeScaler, GraphToSets
from similia.report import _context as scores
from similia.report import write_report
from similia.report._context import for_page, look_at
from similia.report._model import unfrozen
from similia.report._render import charts, templates


@pytest.fixture(scope="module")
def promoters() -> tuple[list[str], np.ndarray]:
    X, y = sm.datasets.load_promoters(return_X_y=True)
    return list(X), np.asarray(y)


@pytest.mark.parametrize("name", [*pipelines()])
def test_every_kind_of_model_makes_a_whole_page(
    tmp_path: Path, name: str, promoters: tuple[list[str], np.ndarray]
) -> None:
    model, data = pipelines()[name]
    X, y = promoters if data == "promoters" else data
    page = written(tmp_path, model.fit(X, y), X, y, cv=2)
    assert tuple(page.sections) == SECTIONS
    n = len(y)
    assert len(page.payload["objects"]) == len(page.payload["x"]) == len(page.payload["mark"]) == n
    assert all(len(values) == n for _, values in page.payload["facts"])
    if name == "pca_itq":
        assert "makes no predictions" in page.sections["accuracy"]
    else:
        assert "Scoring stopped" not in page.sections["accuracy"]
        assert "copy of the model fitted without it" in page.sections["accuracy"]
        assert "could not be compared" not in page.sections["neighbours"]
    assert ("flipped" in page.sections["bits"]) == (name in ("nyshd", "ngrams", "graphhd"))
    assert ("that a search chose" in page.sections["accuracy"]) == (name in ("d2ke-tuned", "heat_svm"))


def test_without_labels(tmp_path: Path, promoters: tuple[list[str], np.ndarray]) -> None:
    encoder = make_pipeline(sm.Nystroem(sm.kernels.Spectrum(k=3), 20, random_state=0), sm.SignRandomProjection(64))
    page = written(tmp_path, encoder, promoters[0])
    assert "No targets were given" in page.sections["accuracy"]
    assert "No targets were given" in page.sections["confusion"]
    assert page.payload["facts"] == []
    assert "rank" in page.sections["spectrum"]
    assert "landmarks" in page.sections["approximation"]


def test_numbers_as_targets(tmp_path: Path) -> None:
    X, _ = series()
    y = np.array([float(len(x)) + 0.1 * x[0] for x in X])
    model = sm.recipes.d2ke(sm.distances.DTW(), n_components=32, task="regression", random_state=0)
    page = written(tmp_path, model, X, y)
    assert "R²" in page.sections["accuracy"]
    assert not {"confusion", "calibration"} & set(page.sections)  # these are for classes
    assert dict(page.payload["facts"]).keys() == {"target", "predicted"}


# what the numbers are


def _table(page: Page, start: str) -> list[list[str]]:
    """Return the rows of the table of the section of sets whose caption begins with `start`, without the head."""
    section = page.text.split('<section id="sets">')[1].split("</section>")[0]
    found = next(table for table in section.split("<table")[1:] if re.search(rf"<caption[^>]*>{start}", table))
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S) for row in found.split("<tr")[2:]]
    return [[re.sub(r"<[^>]*>", "", cell).strip() for cell in row] for row in rows]


def _numbers() -> tuple[np.ndarray, np.ndarray]:
    """Return vectors, and three classes that overlap, of which the last is rare."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((240, 3))
    return X, np.where(X[:, 1] > 1.3, "rare", np.where(X[:, 0] + rng.standard_normal(240) > 0, "b", "a"))


@pytest.mark.parametrize("method", ["split", "cross"])
@pytest.mark.parametrize("by_class", [False, True])
def test_coverage_and_sizes_of_sets_are_those_of_cross_validation_by_hand(
    tmp_path: Path, method: str, by_class: bool
) -> None:
    X, y = _numbers()
    model = sm.ConformalClassifier(SVC(), method, by_class=by_class, cv=3, random_state=0)
    page = written(tmp_path, model, X, y, cv=4)
    sets = {coverage: np.zeros((240, 3), bool) for coverage in (0.8, 0.9, 0.95)}
    for train, test in StratifiedKFold(4, shuffle=True, random_state=0).split(X, y):
        copy = clone(model).fit(X[train], y[train])
        for coverage, found in sets.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a rare class has too few calibration objects
                found[test] = copy.predict_set(X[test], coverage)
    held = {coverage: found[np.arange(240), np.searchsorted(["a", "b", "rare"], y)] for coverage, found in sets.items()}
    for row, (coverage, found) in zip(_table(page, "Coverage and size"), sets.items(), strict=True):
        sizes = found.sum(axis=1)
        assert row[:2] == [f"{100 * coverage:g} %", f"{100 * held[coverage].mean():.1f} %"]
        assert float(row[3]) == pytest.approx(sizes.mean(), abs=1e-3)
        assert row[4:] == [f"{100 * (sizes == k).mean():.1f} %" for k in range(4)]
    by_hand = {c: [f"{100 * held[level][y == c].mean():.1f} %" for level in sets] for c in ("a", "b", "rare")}
    assert {row[0]: row[2:] for row in _table(page, "Coverage by class")} == by_hand
    assert ("promised within each class." in page.sections["sets"]) == by_class
    assert "coverage, 90 % asked" in page.text


def test_intervals_of_a_given_test_part(tmp_path: Path) -> None:
    X, _ = _numbers()
    y = X[:, 0] + 0.3 * np.random.default_rng(1).standard_normal(240)
    model = sm.ConformalRegressor(Ridge(), "cross", cv="loo").fit(X[:80], y[:80])
    page = written(tmp_path, model, X[80:], y[80:], unseen=True)
    assert "You stated" in page.sections["sets"]
    order, quarters = np.argsort(model.predict(X[80:])), _table(page, "Coverage by predicted")
    for i, (row, coverage) in enumerate(zip(_table(page, "Coverage and size"), (0.8, 0.9, 0.95), strict=True)):
        low, high = model.predict_interval(X[80:], coverage).T
        held = (low <= y[80:]) & (y[80:] <= high)
        assert row[1] == f"{100 * held.mean():.1f} %"
        widths = [float(np.mean(high - low)), *np.quantile(high - low, [0, 0.5, 1])]
        assert list(map(float, row[3:])) == pytest.approx(widths, rel=1e-3)
        assert [q[2 + i] for q in quarters] == [f"{100 * held[part].mean():.1f} %" for part in np.split(order, 4)]


def test_only_conformal_models_show_sets_and_too_few_objects_are_a_reason(tmp_path: Path) -> None:
    X, y = _numbers()
    assert "sets" not in written(tmp_path, SVC(), X, y).sections
    few = written(tmp_path, sm.ConformalClassifier(SVC(), random_state=0), X[:40], y[:40] == "a", cv=2).sections
    assert "coverage=0.95 needs 19 calibration objects, found 5" in few["sets"]
    assert "80 %" in few["sets"]
    none = written(tmp_path, sm.ConformalClassifier(SVC(), random_state=0), X[:12], y[:12] == "a", cv=2).sections
    assert "Not with so few objects: coverage=0.8 needs 4" in none["sets"]
    assert "No targets were given" in written(tmp_path, sm.ConformalClassifier(SVC()).fit(X, y), X).sections["sets"]


def test_a_class_that_the_model_does_not_know_is_in_no_set(tmp_path: Path) -> None:
    X, y = _numbers()
    model = sm.ConformalClassifier(SVC(), random_state=0).fit(X[y != "rare"], y[y != "rare"])
    page = written(tmp_path, model, X, y, unseen=True)
    assert {row[0]: row[2:] for row in _table(page, "Coverage by class")}["rare"] == ["0.0 %"] * 3


def test_the_accuracy_is_that_of_cross_validation_by_hand(
    tmp_path: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    X, y = promoters
    assert len(set(X)) == len(X)
    right = 0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=3).split(X, y):
        fitted = clone(nyshd()).fit([X[i] for i in train], y[train])
        right += int((fitted.predict([X[i] for i in test]) == y[test]).sum())
    page = written(tmp_path, nyshd(), X, y, random_state=3)
    assert f"{100 * right / len(y):.1f} %" in page.sections["accuracy"]


def test_a_model_that_knows_its_objects_by_heart_is_not_believed(tmp_path: Path) -> None:
    """Random labels: the fitted model is right about all it has seen, its copies about half of what they have not."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 5)), rng.integers(2, size=200)
    model = make_pipeline(StandardScaler(), SVC(C=1e6, gamma=50.0)).fit(X, y)
    assert model.score(X, y) == 1.0
    found = re.search(r"accuracy([\d.]+) %", written(tmp_path, model, X, y).sections["accuracy"])
    assert found is not None
    assert 35 < float(found[1]) < 65
    page = written(tmp_path, model, X, y, unseen=True)
    assert "accuracy100.0 %" in page.sections["accuracy"]
    assert "you stated that it has seen none" in page.sections["accuracy"]


@pytest.mark.parametrize("wrapper", [sm.ConformalClassifier, CalibratedClassifierCV])
def test_a_frozen_model_is_not_believed_either(tmp_path: Path, wrapper: Any) -> None:
    """The wrapper only calibrates, so a copy that stays frozen would know all objects of all folds."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 5)), rng.integers(2, size=200)
    model = wrapper(FrozenEstimator(SVC(C=1e6, gamma=50.0).fit(X, y))).fit(X, y)
    assert model.score(X, y) == 1.0
    found = re.search(r"accuracy([\d.]+) %", written(tmp_path, model, X, y).sections["accuracy"])
    assert found is not None
    assert 35 < float(found[1]) < 65


def test_a_frozen_search_is_not_searched_again() -> None:
    X, y = np.random.default_rng(0).standard_normal((60, 3)), np.arange(60) % 2
    search = GridSearchCV(SVC(), {"C": [0.1, 7.0]}, cv=2).fit(X, y)
    copy = unfrozen(sm.ConformalClassifier(FrozenEstimator(search)).fit(X, y))
    assert isinstance(copy.estimator, SVC)
    assert search.best_params_["C"] == copy.estimator.C


def test_a_report_leaves_frozen_steps_as_they_are(tmp_path: Path, promoters: tuple[list[str], np.ndarray]) -> None:
    X, y = promoters
    nystroem = sm.Nystroem(sm.kernels.Spectrum(k=3), 100, random_state=0).fit(X)
    before = nystroem.landmark_indices_
    written(tmp_path, make_pipeline(FrozenEstimator(nystroem), LinearSVC()).fit(X, y), X, y, cv=2)
    assert nystroem.n_components == 100
    assert nystroem.landmark_indices_ is before


def test_unseen_is_doubted_where_landmarks_are_among_the_objects(
    tmp_path: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    X, y = promoters
    model = nyshd().fit(X[::2], y[::2])
    assert "landmarks of the model" in written(tmp_path, model, X, y, unseen=True).sections["accuracy"]
    assert "landmarks of the model" not in written(tmp_path, model, X[1::2], y[1::2], unseen=True).sections["accuracy"]


def test_landmarks_behind_other_steps_are_known(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arcs = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
    X = [{"edge_index": arcs, "n_nodes": 3, "node_attributes": rng.standard_normal((3, 2))} for _ in range(40)]
    y = np.arange(40) % 2
    nystroem = sm.Nystroem(sm.kernels.MeanMap(sm.kernels.RBF(1.0)), 30, random_state=0)
    model = make_pipeline(AttributeScaler(), GraphToSets(n_iter=1), nystroem, LinearSVC())
    page = written(tmp_path, model.fit(X, y), X, y, cv=2)
    assert "with as many landmarks as there were objects" in page.sections["accuracy"]
    assert "the kernel of 30 landmarks" in page.sections["spectrum"]
    assert "Objects that are landmarks are left out" in page.sections["approximation"]
    model.set_params(nystroem__n_components=20).fit(X[:20], y[:20])
    assert "But 20 of these objects equal landmarks" in written(tmp_path, model, X, y, unseen=True).sections["accuracy"]


def test_a_learner_that_compares_bits_does_not_compare_the_vectors_before_them(tmp_path: Path) -> None:
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    X = rng.normal(y[:, None], 0.2, (40, 5))

    def bits_that_differ(A: Any, B: Any) -> Any:
        assert 5 not in (A.shape[1], B.shape[1])  # which are the numbers before the bits
        return sm.codes.hamming_distances(A.astype(np.uint8), B.astype(np.uint8))

    by_bits = sm.KNeighborsClassifier(sm.distances.FromFunction(bits_that_differ, pairwise=True))
    model = make_pipeline(sm.SignRandomProjection(64, random_state=0), by_bits).fit(X, y)
    assert np.array_equal(scores.cross_validated(model, X, y, np.arange(40), 2, False).neighbours, y)
    for n in (40, 20):
        page = written(tmp_path, model, X[:n], y[:n], unseen=True)
        assert "Scoring stopped" not in page.sections["accuracy"]
        assert "could not be compared" not in page.sections["neighbours"]


def test_decisions_between_pairs_of_classes_are_no_lead_of_a_class() -> None:
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 3
    for shape, leads in [("ovr", True), ("ovo", False)]:
        model = make_pipeline(StandardScaler(), SVC(decision_function_shape=shape)).fit(X, y)
        folds, whole = (
            scores.cross_validated(model, X, y, np.arange(60), 2, False),
            scores.as_it_stands(model, X, y, False),
        )
        assert (folds.values is not None) == (whole.values is not None) == leads


def test_a_learner_compares_the_objects_that_other_steps_made(tmp_path: Path) -> None:
    y, rng = np.arange(40) % 2, np.random.default_rng(0)
    nodes = [rng.normal(label, 0.1, (2 + i % 3, 2)) for i, label in enumerate(y)]
    arc = np.array([[0], [1]])
    X = sm.objects.as_graphs([{"edge_index": arc, "n_nodes": len(A), "node_attributes": A} for A in nodes])
    steps: list[Any]
    for steps in (
        [AttributeScaler(), sm.KernelSVC(sm.kernels.Propagation())],
        [GraphToSets(n_iter=1), sm.KernelSVC(sm.kernels.MeanMap(sm.kernels.RBF(1.0)))],
        [AttributeScaler(), GraphToSets(n_iter=1), sm.KNeighborsClassifier(sm.distances.ModifiedHausdorff())],
        [AttributeScaler(), sm.GraphHDEncoder(n_bits=512), sm.HDClassifier()],
    ):
        model = make_pipeline(*steps)
        if not isinstance(steps[-1], sm.HDClassifier):  # whose bits do not depend on attributes
            found = scores.cross_validated(model, X, y, np.arange(40), 2, False)
            assert found.neighbours is not None
            assert np.array_equal(found.neighbours, y)
        for unseen in (False, True):
            page = written(tmp_path, model.fit(X, y), X, y, cv=2, unseen=unseen)
            assert "Scoring stopped" not in page.sections["accuracy"]
            assert "could not be compared" not in page.sections["neighbours"]


def test_equal_objects_share_a_fold(tmp_path: Path) -> None:
    """Labels are random, each object is there four times: whoever has seen a twin is always right."""
    rng = np.random.default_rng(0)
    X, y = np.repeat(rng.standard_normal((60, 4)), 4, axis=0), np.repeat(rng.integers(2, size=60), 4)
    page = written(tmp_path, SVC(C=1e6, gamma=50.0), X, y)
    found = re.search(r"accuracy([\d.]+) %", page.sections["accuracy"])
    assert found is not None
    assert float(found[1]) < 70
    assert "objects equal to an earlier one180" in page.sections["data"]


def test_variants_of_a_text_share_a_fold(tmp_path: Path) -> None:
    """Labels of sentences are noise, each sentence is there three times with another name."""
    rng = np.random.default_rng(0)
    sentences = [" ".join(f"w{i}" for i in rng.choice(300, 12)) for _ in range(40)]
    X, y = [f"{text} {name}" for text in sentences for name in "abc"], np.repeat(rng.integers(2, size=40), 3)
    model = sm.KernelSVC(sm.kernels.Spectrum(3, normalize=True))
    for groups, fair in ((None, True), (np.arange(120), False)):
        text = written(tmp_path, model, X, y, groups=groups).sections["accuracy"]
        accuracy = re.search(r"accuracy([\d.]+) %", text)
        assert accuracy is not None
        assert (float(accuracy[1]) < 75) == fair
        assert ("at least 80 % of their words in common were in the same fold" in text) == fair


def test_the_objects_of_a_group_share_a_fold(tmp_path: Path) -> None:
    """Objects of a patient are near each other, and labels are noise: neighbours know only the patient's others."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(30), 6)
    X, y = rng.normal(size=(30, 4))[patient] + 1e-3 * rng.normal(size=(180, 4)), rng.integers(2, size=30)[patient]
    found = {}
    for groups in (None, patient, patient.astype(str).astype(object)):
        page = written(tmp_path, SVC(C=1e6, gamma=50.0), X, y, groups=groups)
        accuracy = re.search(r"accuracy([\d.]+) %", page.sections["accuracy"])
        assert accuracy is not None
        found[type(groups).__name__ + str(getattr(groups, "dtype", ""))] = float(accuracy[1])
    assert found["NoneType"] > 95
    assert found["ndarrayint64"] < 75
    assert found["ndarrayobject"] == found["ndarrayint64"]
    with pytest.raises(ValueError, match=r"groups must be one name or number per object, shape \(180,\)"):
        written(tmp_path, SVC(), X, y, groups=[1, 2])


def test_balanced_accuracy_and_reliability_on_cases_done_by_hand() -> None:
    truth, predicted = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 0, 0, 1, 1, 0])
    assert scores.balanced(truth, predicted)[0] == pytest.approx((3 / 4 + 1 / 2) / 2)
    values = np.array([[0.95, 0.05], [0.93, 0.07], [0.35, 0.65], [0.62, 0.38]])
    found = scores.Scored(np.array([0, 1, 1, 0]), np.array([0, 0, 1, 0]), np.zeros(4), None, values, True, "")
    groups = scores.reliability(found)
    assert groups is not None
    means, accuracies, sizes, _ = groups
    np.testing.assert_allclose(means, [0.635, 0.94])
    np.testing.assert_allclose(accuracies, [1.0, 0.5])
    assert sizes.tolist() == [2, 2]


def test_neighbours_are_the_nearest_in_the_space_of_the_kernel(
    tmp_path: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    X, y = promoters
    page = written(tmp_path, nyshd(), X, y)
    K = sm.kernels.GappyKmers(k=4, gaps=1)(X)
    D = np.sqrt(np.maximum(np.diag(K)[:, None] + np.diag(K) - 2 * K, 0))
    np.fill_diagonal(D, np.inf)
    shown = re.findall(r"<h3>object (\d+) · .*?<ol class=\"near\">(.*?)</ol>", page.text, re.S)
    assert len(shown) == 6
    for query, near in shown:
        numbers = [int(i) for i in re.findall(r'class="who">object (\d+)', near)]
        best = np.sort(D[int(query)])[: len(numbers)]
        np.testing.assert_allclose(D[int(query), numbers], best)
        told = [float(value) for value in re.findall(r'<span class="n">([\d.]+)</span>', near)]
        np.testing.assert_allclose(told, best, rtol=1e-3)


def test_a_model_that_cannot_be_saved_says_why(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    page = written(tmp_path, make_pipeline(FunctionTransformer(lambda rows: rows), StandardScaler()).fit(X), X)
    assert "the model, which cannot be saved–" in page.sections["cost"]
    assert "similia.save refuses the model: " in page.sections["cost"]
    assert "pickle refuses it, too: " in page.sections["cost"]


# what is refused, and what is only said


def test_bad_input_is_refused_at_once(tmp_path: Path, promoters: tuple[list[str], np.ndarray]) -> None:
    X, y = promoters
    with pytest.raises(ValueError, match=r"y must be one label .*, got 'x.html'; .* give path='x.html'"):
        write_report(nyshd(), X, "x.html")
    with pytest.raises(ValueError, match="y has 3 labels for 106 objects"):
        written(tmp_path, nyshd(), X, y[:3])
    with pytest.raises(ValueError, match="names has 2 entries for 106 objects"):
        written(tmp_path, nyshd(), X, y, names=["a", "b"])
    with pytest.raises(ValueError, match="is not fitted"):
        written(tmp_path, nyshd(), X, y, unseen=True)
    with pytest.raises(ValueError, match="cv must be an integer >= 2"):
        written(tmp_path, nyshd(), X, y, cv=1)
    with pytest.raises(ValueError, match="precomputed"):
        written(tmp_path, sm.Nystroem("precomputed", 3), np.eye(5))
    with pytest.raises(ValueError, match="model must be an estimator that predicts or"):
        write_report(sm.SimilaritySearch("auto", sm.distances.Levenshtein()).fit(X[:9]), X, y, tmp_path / "report.html")
    with pytest.raises(FileNotFoundError, match="does not exist"):
        write_report(nyshd(), X, y, tmp_path / "nowhere" / "report.html")
    assert not [*tmp_path.iterdir()]


def test_more_landmarks_than_a_fold_has_objects(tmp_path: Path, promoters: tuple[list[str], np.ndarray]) -> None:
    X, y = promoters
    page = written(tmp_path, nyshd(n_landmarks=100).fit(X, y), X, y, cv=2)
    assert "with as many landmarks as there were objects" in page.sections["accuracy"]


@pytest.mark.parametrize("name", ["targets scaled", "d2ke tuned", "a search", "numbers in lists"])
def test_unfitted_searches_and_learners_alone_are_scored(
    tmp_path: Path, name: str, promoters: tuple[list[str], np.ndarray]
) -> None:
    X, y = promoters
    X, y = X[::2], y[::2]
    kernel = sm.kernels.Spectrum(k=2, normalize=True)
    model: Any = sm.recipes.d2ke(sm.distances.Levenshtein(), 16, gamma="tune", cv=2, random_state=0)
    if name == "targets scaled":
        learner = TransformedTargetRegressor(sm.KernelRidge(kernel), transformer=StandardScaler())
        model, y = sm.Pipeline([("learner", learner)]), np.array([float(x.count("a")) for x in X])
    elif name == "a search":
        features = make_pipeline(sm.Nystroem(kernel, 20, random_state=0), LinearSVC())
        model = GridSearchCV(features, {"linearsvc__C": [0.1, 1.0]}, cv=2)
    elif name == "numbers in lists":
        X = np.random.default_rng(0).standard_normal((len(y), 3)).tolist()
        model = make_pipeline(SVC()).fit(X, y)
    page = written(tmp_path, model, X, y, cv=2)
    assert "copy of the model fitted without it" in page.sections["accuracy"]
    assert ("–" in page.sections["accuracy"]) == (name == "numbers in lists")  # without predictions by neighbours


def test_a_report_holds_out_the_representatives_in_each_fold(tmp_path: Path) -> None:
    X, y = series()
    held_out = Representatives(hold_out=True)
    model = sm.recipes.d2ke(sm.distances.DTW(), n_components=8, objects=held_out, random_state=0).fit(X, y)
    frozen = sm.ConformalClassifier(FrozenEstimator(model.pipeline_)).fit(X, y)
    for one in (model, model.pipeline_, frozen):
        page = written(tmp_path, one, X, y, cv=2)
        assert "copy of the model fitted without it" in page.sections["accuracy"]
        assert "that a search chose" not in page.sections["accuracy"]


def test_one_class_two_objects_and_empty_ones_make_pages(tmp_path: Path) -> None:
    kernel = sm.kernels.Spectrum(k=1)
    encoder = sm.Nystroem(kernel, 2, random_state=0)
    page = written(tmp_path, encoder, ["a", "b"])
    assert "too few to show neighbours" in page.sections["neighbours"]
    words = ["ab", "", "ba", "bb", "aab", ""]
    page = written(tmp_path, make_pipeline(encoder, LinearSVC()).fit(words, [0, 1] * 3), words, [1] * 6)
    assert "All objects have the same class, 1" in page.sections["accuracy"]
    assert "empty objects2" in page.sections["data"]


def test_missing_values_are_scored_but_have_no_place_on_a_map(tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    X[::5, 1] = np.nan
    page = written(tmp_path, HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5), X, y, cv=2)
    assert tuple(page.sections) == SECTIONS
    assert "By neighbours" in page.sections["accuracy"]
    for name in ("map", "neighbours", "spectrum"):
        assert "some numbers of the vectors are missing (NaN)" in page.sections[name]
    assert page.payload["objects"][0]["c"] == for_page(look_at(X[:1, [0, 2]]))[0]["c"]


def test_more_objects_than_wanted_are_drawn_and_this_is_said(
    tmp_path: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    X, y = promoters
    names = [f"record {i}" for i in range(len(X))]
    page = written(tmp_path, nyshd(n_landmarks=20).fit(X, y), X, y, names=names, max_objects=50)
    assert "This page is about 50 of them, drawn at random" in page.sections["data"]
    assert len(page.payload["objects"]) == 50
    for name, shown in zip(page.payload["names"], page.payload["objects"], strict=True):
        assert shown["t"] == X[names.index(name)]


def test_the_same_page_twice_but_for_times(tmp_path: Path, promoters: tuple[list[str], np.ndarray]) -> None:
    pages = [written(tmp_path, nyshd(), *promoters, cv=2) for _ in range(2)]
    assert pages[0].payload == pages[1].payload
    drawn = [re.findall(r"<svg.*?</svg>", page.text, re.S) for page in pages]
    assert len(drawn[0]) > 5
    assert drawn[0] == drawn[1]
    for name in SECTIONS[:-1]:
        assert pages[0].sections[name] == pages[1].sections[name]


@pytest.mark.parametrize("model", [nyshd(), KernelSVC(Spectrum(3))], ids=["bits", "kernel"])
def test_the_same_page_where_transformers_make_data_frames(
    model: Any, tmp_path: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    page = written(tmp_path, clone(model), *promoters, cv=2)
    with config_context(transform_output="pandas"):
        framed = written(tmp_path, clone(model), *promoters, cv=2)
    assert framed.payload == page.payload
    for name in SECTIONS[:-1]:
        assert framed.sections[name] == page.sections[name]


# hostile text


def rendered(template: str, **values: Any) -> str:
    return templates().from_string(template).render(**values)


def test_templates_escape_every_text_and_refuse_unknown_names() -> None:
    text = rendered("<i title='{{ t }}'>{{ t }}</i>", t="<a b=\"c\" d='e'>&\x00\ud800")
    safe = "&lt;a b=&#34;c&#34; d=&#39;e&#39;&gt;&amp;�?"
    assert text == f"<i title='{safe}'>{safe}</i>"
    data = rendered("{{ data|tojson }}", data=[HOSTILE])
    assert not set("<>&\u2028") & set(data)
    assert json.loads(data) == [HOSTILE]
    with pytest.raises(ValueError, match="not JSON compliant"):
        rendered("{{ data|tojson }}", data=[float("nan")])
    with pytest.raises(UndefinedError):
        rendered("{{ unknown }}")


def test_charts_are_the_same_bytes_in_the_colours_of_the_page() -> None:
    def draw(left: Any, right: Any) -> None:
        for axis, colour in ((left, "#0072B2"), (right, "0.45")):
            axis.plot([1, 2, 3], [0.123, 10, 5], color=colour, marker="o")
            axis.fill_between([1, 2, 3], [0, 1, 2], color="#D55E00", alpha=0.2, linewidth=0)
            axis.set(xlabel="<x>", title="left out")

    first, again = charts(draw, "One & two", "Two"), charts(draw, "One & two", "Two")
    assert [chart.svg for chart in first] == [chart.svg for chart in again]
    svg = first[0].svg
    root = ElementTree.fromstring(svg.replace("xlink:", ""))
    assert root.findtext("title") == "One & two"
    assert {element.text for element in root.iter("text")} >= {"<x>", "0", "10"}
    assert "left out" not in svg
    assert "var(--k0)" in svg
    assert "fill: var(--k1); fill-opacity: 0.2" in svg
    assert "var(--soft)" in first[1].svg
    assert not re.search(r"#[0-9a-f]{6}\b|url\(|font-family|<g id|clip-path|<metadata|https?:", svg)
    ids = [set(re.findall(r' id="([^"]*)"', chart.svg)) for chart in first]
    assert not ids[0] & ids[1]
    for chart, names in zip(first, ids, strict=True):
        assert names == set(re.findall(r'href="#([^"]*)"', chart.svg))


def hostile_page(tmp_path: Path) -> Page:
    rng = np.random.default_rng(0)
    y = np.array([HOSTILE + "0", "$1" + HOSTILE])[np.arange(40) % 2]
    X = [HOSTILE * (1 + i % 2) + "".join(rng.choice([*"<>&\"'ab"], 10)) for i in range(40)]
    model = sm.recipes.nyshd(sm.kernels.Spectrum(k=2), n_landmarks=20, n_bits=64, random_state=0)
    return written(tmp_path, model, X, y, names=[f"{HOSTILE}{i}" for i in range(40)], title=HOSTILE)


def test_objects_labels_names_and_titles_stay_text(tmp_path: Path) -> None:
    page = hostile_page(tmp_path)
    assert [tag for tag, _ in page.tags].count("script") == 2  # the data, and the page's own
    assert not {"img", "iframe", "object", "embed"} & {tag for tag, _ in page.tags}
    for _, attributes in page.tags:
        assert not [name for name in attributes if name.startswith("on")]
        assert not {"src", "action", "formaction"} & attributes.keys()
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert "default-src 'none'" in policy
    assert "alert(1)" in page.sections["confusion"]


def test_nothing_is_fetched(tmp_path: Path) -> None:
    page = written(tmp_path, nyshd(), *sm.datasets.load_promoters(return_X_y=True))
    links = [a[name] for _, a in page.tags for name in ("href", "src") if name in a]
    assert all(link.startswith("#") or link == "data:," for link in links)
    assert not re.findall(r"url\(|@import|https?://(?!www\.w3\.org/2000/svg)", page.text)


# the command


def test_command(tmp_path: Path, promoters: tuple[list[str], np.ndarray], capsys: pytest.CaptureFixture[str]) -> None:
    from similia.cli.report import report

    X, y = promoters
    model, data, output = tmp_path / "m.similia", tmp_path / "d.csv", tmp_path / "r.html"
    sm.save(nyshd().fit(X, y), model)
    data.write_text("text,kind\n" + "".join(f"{x},{label}\n" for x, label in zip(X, y, strict=True)))
    report(model, str(data), {"text": "text", "label": "kind"}, output, seed=0, folds=2)
    assert "accuracy" in Page(output).sections["accuracy"]
    assert "r.html" in capsys.readouterr().out
    report(model, str(data), {"text": "text", "label": None}, output, seed=0)  # there is no column named label
    assert "No targets were given" in Page(output).sections["accuracy"]
    with pytest.raises(ValueError, match="no column"):
        report(model, str(data), {"text": "text", "label": "class"}, output, seed=0)
    with pytest.raises(ValueError, match="would be overwritten"):
        report(model, str(data), {"text": "text", "label": "kind"}, data, seed=0)
    fasta = tmp_path / "d.fasta"
    fasta.write_text("".join(f">seq{i} label={label}\n{x}\n" for i, (x, label) in enumerate(zip(X, y, strict=True))))
    report(model, str(fasta), {"text": "text", "label": None}, output, seed=0, folds=2)
    assert Page(output).payload["names"][3] == "seq3"
    assert "copy of the model" in Page(output).sections["accuracy"]


def test_smiles_are_drawn_like_the_graphs_of_the_same_molecules() -> None:
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    smiles = ["CC(=O)O", "", "C[C@H](N)C(=O)O", "c1ccccc1/C=C/Cl", "[Na+].[Cl-]", "C" * 60]
    texts = look_at(sm.kernels.MinMax(sm.kernels.Morgan()).as_objects(smiles))
    assert (texts.kind, texts.sizes.tolist()) == ("molecules", [*map(len, smiles)])
    for chosen in ([True] * 6, [False, True, True, False, False, True], [False] * 6):
        drawn = for_page(texts, np.array(chosen))
        assert [shown.pop("t") for shown in drawn] == [text or "(empty)" for text in smiles]
        graphs = for_page(look_at(sm.objects.from_smiles(smiles)), np.array(chosen))
        assert drawn == [{name: part for name, part in shown.items() if name != "t"} for shown in graphs]
    assert for_page(look_at(smiles)) == [{"t": text or "(empty)"} for text in smiles]  # nothing says what they are


# in a browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, promoters: tuple[list[str], np.ndarray]) -> Path:
    X, y = promoters
    return write_report(nyshd(), X, y, tmp_path_factory.mktemp("report") / "report.html")


def test_it_loads_in_silence_and_shows_every_section(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    assert opened.said == []
    assert opened.page.locator("section h2").count() == len(SECTIONS)
    for name in SECTIONS:
        opened.page.click(f'nav a[href="#{name}"]')
        assert opened.page.locator(f"#{name}").is_visible()
    assert opened.widths()[0] <= 1200
    assert opened.said == []
    opened.page.close()


def test_pointing_at_the_map_shows_the_object(
    browser: Any, report: Path, promoters: tuple[list[str], np.ndarray]
) -> None:
    opened = Opened(browser, report)
    payload = Page(report).payload
    for i in (0, 17, 105):
        twins = [j for j in range(106) if (payload["x"][j], payload["y"][j]) == (payload["x"][i], payload["y"][i])]
        opened.point_at(i)
        panel = opened.page.locator(".shown")
        assert panel.locator("h3").inner_text() == payload["names"][twins[0]]
        assert promoters[0][twins[0]] in panel.inner_text()
    opened.page.locator(".map > svg").focus()
    opened.page.keyboard.press("ArrowLeft")
    opened.page.keyboard.press("ArrowRight")
    opened.page.keyboard.press("ArrowRight")
    assert panel.locator("h3").inner_text() == payload["names"][0]  # after the last comes the first
    keys = opened.page.locator("button.key")
    keys.nth(int(payload["mark"][0])).click()
    opened.page.locator(".map > svg").focus()
    opened.page.keyboard.press("ArrowRight")
    shown = payload["names"].index(panel.locator("h3").inner_text())
    assert payload["mark"][shown] != payload["mark"][0]
    assert opened.said == []
    opened.page.close()


def test_headers_sort_tables_both_ways(browser: Any, report: Path) -> None:
    opened = Opened(browser, report)
    table = opened.page.locator("#confusion table").first

    def column(j: int) -> list[str]:
        return table.locator(f"tbody tr > :nth-child({j + 1})").all_inner_texts()

    recall = [float(text.removesuffix(" %")) for text in column(3)]
    head = table.locator("thead th").nth(3)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text.removesuffix(" %")) for text in column(3)] == sorted(recall, reverse=True)
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    assert [float(text.removesuffix(" %")) for text in column(3)] == sorted(recall)
    for _ in range(2):
        before = column(0)
        table.locator("thead th button").first.click()
    assert column(0) == before[::-1]
    assert head.get_attribute("aria-sort") is None
    mistakes = opened.page.locator("#confusion table").nth(1)
    mistakes.locator("thead th button").first.click()
    names = mistakes.locator("tbody th").all_inner_texts()
    assert names == sorted(names, key=lambda name: int(name.split()[1]))
    opened.page.close()


@pytest.mark.parametrize("kind", ["strings", "graphs", "series", "hostile"])
def test_a_phone_has_room_for_it(browser: Any, tmp_path: Path, report: Path, kind: str) -> None:
    path = report
    if kind == "hostile":
        hostile_page(tmp_path)
        path = tmp_path / "report.html"
    elif kind != "strings":
        model = pipelines()["graphs" if kind == "graphs" else "d2ke"][0]
        path = write_report(model, *(graphs() if kind == "graphs" else series()), tmp_path / "report.html")
    opened = Opened(browser, path, viewport={"width": 360, "height": 740}, has_touch=True)
    assert opened.widths() == (360, 360)
    assert opened.said == []
    opened.page.locator(".map > svg").tap()
    drawn = opened.page.locator("ol.drawn svg").count()
    assert (drawn > 0) == (kind in ("graphs", "series"))
    opened.page.close()


def test_hostile_text_runs_nothing(browser: Any, tmp_path: Path) -> None:
    page = hostile_page(tmp_path)
    opened = Opened(browser, tmp_path / "report.html")
    assert opened.page.title().startswith("</script><script>alert(1)</script>")
    for i in range(3):
        opened.point_at(i)
    assert "alert(2)" in opened.page.locator(".shown").inner_text()
    assert opened.page.locator("img").count() == 0
    assert opened.said == []
    assert page.payload["names"][0].startswith("</script>")
    opened.page.close()


def test_it_prints_and_it_has_a_dark_side(browser: Any, report: Path) -> None:
    opened = Opened(browser, report, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = opened.page.evaluate(paper)
    data = opened.page.pdf(format="A4")
    assert data.startswith(b"%PDF")
    assert 2 <= data.count(b"/Type /Page\n") + data.count(b"/Type /Page/") <= 40
    opened.page.emulate_media(color_scheme="light")
    assert (
        sum(map(int, re.findall(r"\d+", dark)))
        < 150
        < 700
        < sum(map(int, re.findall(r"\d+", opened.page.evaluate(paper))))
    )
    opened.page.emulate_media(media="print", color_scheme="dark")
    assert opened.page.evaluate(paper) == "rgb(255, 255, 255)"
    assert not opened.page.locator("nav").is_visible()
    opened.page.close()


def length_gap(x: np.ndarray, y: np.ndarray) -> float:
    return float(abs(len(x) - len(y)))


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about series by a function that cannot tell them apart."""
    kernel = sm.kernels.DistanceRBF(sm.distances.FromFunction(length_gap, axes="time, channel"))
    model = sm.recipes.nyshd(kernel, n_landmarks=5, n_bits=64, random_state=0)
    return write_report(model, *series(), tmp_path_factory.mktemp("mistaken") / "report.html", cv=2)


def test_a_function_is_called_by_its_name(mistaken: Path) -> None:
    page = Page(mistaken)
    assert "distance=FromFunction(" in page.sections["neighbours"]
    assert "function=length_gap" in page.sections["neighbours"]
    assert re.findall(r".*\b0x[0-9a-f]{6,}.*", page.text) == []


def test_mistakes_are_drawn_where_objects_are(browser: Any, mistaken: Path) -> None:
    opened = Opened(browser, mistaken)
    rows = opened.page.locator("#confusion .scroll:last-child tbody tr")
    assert rows.count() > 0
    assert opened.page.locator("#confusion .scroll:last-child td.wide .object svg polyline").count() == rows.count()
    assert "time points" in rows.first.inner_text()
    assert opened.said == []
    opened.page.close()


def test_what_scrolls_sideways_is_shaded_on_the_side_where_more_is(browser: Any, mistaken: Path) -> None:
    from matplotlib.image import imread

    opened = Opened(browser, mistaken, viewport={"width": 300, "height": 700})
    table = opened.page.locator("#accuracy .scroll")
    assert table.evaluate("e => e.scrollWidth - e.clientWidth") > 40

    def edges() -> tuple[float, float]:
        """How dark most pixels are at the left and at the right edge."""
        pixels = imread(io.BytesIO(table.screenshot()))[..., :3].mean(axis=2)
        return float(1 - np.median(pixels[:, 1])), float(1 - np.median(pixels[:, -2]))

    left, right = edges()
    assert left < 0.03 < 0.1 < right
    table.evaluate("e => e.scrollLeft = 1e6")
    left, right = edges()
    assert right < 0.03 < 0.1 < left
    opened.page.close()


def test_atoms_are_drawn_with_their_symbols(browser: Any, tmp_path: Path) -> None:
    pytest.importorskip("rdkit.Chem", reason="RDKit is not installed (extra: molecules)")
    X = sm.objects.from_smiles(["C" * n + end for n in range(1, 11) for end in ("O", "N=O")])
    model = sm.recipes.nyshd(sm.kernels.VertexHistogram(), n_landmarks=5, n_bits=64, random_state=0)
    opened = Opened(browser, write_report(model, X, [0, 1] * 10, tmp_path / "report.html", cv=2))
    opened.point_at(3)
    assert opened.page.locator(".shown .atoms text").all_text_contents() == ["N", "O"]  # carbons are corners
    assert "graph of 4 nodes (C2 N O) and 3 edges" in opened.page.locator(".shown").inner_text()
    opened.page.close()


def test_a_page_is_written_to_a_file_that_is_open_for_text(tmp_path: Path) -> None:
    X, y = series()
    model = sm.KNeighborsClassifier(sm.distances.DTW())
    expected = write_report(model, X, y, tmp_path / "page.html", cv=2).read_text(encoding="utf-8")
    out = io.StringIO()
    assert write_report(model, X, y, out, cv=2) is out
    hidden = re.compile(r"[\d.]+ (?:[µm]?s|seconds)\b")  # times that were measured
    assert hidden.sub("", out.getvalue()) == hidden.sub("", expected)
    with pytest.raises(TypeError, match=r"expected the name of a file \(a str or a path\), got BytesIO"):
        write_report(model, X, y, io.BytesIO())
