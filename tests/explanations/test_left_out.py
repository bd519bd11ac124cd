"""Stretches of strings that matter to models whose parts have no places: planted motifs, and pipelines that predict."""

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import similia as sm
from similia.embeddings import Representatives
from similia.explanations import explain

MOTIFS = {"a": "GLAKHFEC", "b": "WWPDSTGY", "c": "MMNQRLKE"}


@pytest.fixture(scope="module")
def planted():
    """Random strings with the motif of their class at a random place; returns strings, classes and places."""
    rng, X, y, places = np.random.default_rng(0), [], [], []
    for i in range(90):
        letters, label = "".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 25)), "abc"[i % 3]
        place = int(rng.integers(26))
        X.append(letters[:place] + MOTIFS[label] + letters[place:])
        y.append(label)
        places.append(place)
    return X, np.array(y), places


@pytest.fixture(scope="module")
def model(planted):
    X, y, _ = planted
    made = sm.recipes.d2ke(sm.distances.Levenshtein(), 90, objects=Representatives(), random_state=0)
    return made.fit(X, y)


def test_the_motif_is_the_stretch_without_which_the_decision_falls_most(planted, model):
    X, _, places = planted
    hits = 0
    for i in range(6):
        found = explain(model, X[i], top=4)
        best = found.left_out.parts[0]
        hits += len({*best.in_x.tolist()} & {*range(places[i], places[i] + 8)}) >= 5
        winner, other = (list(model.classes_).index(name) for name in found.title.split(", for ")[1].split(" against "))
        for part in found.left_out.parts:
            a, b = int(part.in_x[0]), int(part.in_x[-1]) + 1
            scores = model.decision_function([X[i], X[i][:a] + X[i][b:]])
            assert part.name == X[i][a:b]
            assert part.contribution == pytest.approx(float(np.subtract(*(scores[:, winner] - scores[:, other]))))
    assert hits >= 5


def test_windows_are_left_out_one_by_one(planted, model):
    """Each letter has the mean fall over the windows of three letters that cover it."""
    x = planted[0][3]
    found = explain(model, x)
    winner, other = (list(model.classes_).index(name) for name in found.title.split(", for ")[1].split(" against "))
    n = len(x)
    scores = model.decision_function([x] + [x[:i] + x[i + 3 :] for i in range(n - 2)])
    fall = -(np.diff(scores[:, [other, winner]])[1:, 0] - np.diff(scores[:, [other, winner]])[0, 0])
    expected = [np.mean([fall[i] for i in range(n - 2) if i <= j < i + 3]) for j in range(n)]
    np.testing.assert_allclose(found.left_out.amounts, expected, rtol=1e-5, atol=1e-7)


def test_text_and_page_show_the_stretches(planted, model):
    found = explain(model, planted[0][0], top=2)
    text = found.to_text()
    assert "by how much the decision falls if a stretch of x is left out" in text
    assert text.splitlines()[4].startswith("a  ")
    assert any("aaaaa" in line for line in text.splitlines())
    assert "background:#" in found.to_html()
    assert "--kernel 'MinMax(Spectrum(3))'" in text


def test_objects_of_d2ke_are_named_for_what_they_are(planted, model):
    X, y, _ = planted
    found = explain(model, X[0], top=90)
    for part in found.parts[:5]:
        number, text = part.name.split("training object ")[1].split(" (near: ")[0], part.name.split("'")[1]
        assert X[int(number)] == text
        assert part.name.startswith(f"distance {sm.distances.Levenshtein()([X[0]], [text])[0, 0]:.3g} to training")
    near = [part for part in found.parts if "(near: " in part.name]
    winner = found.title.split(", for ")[1].split(" against ")[0]
    assert any(f"(near: {winner})" in part.name for part in near)
    drawn = sm.recipes.d2ke(sm.distances.Levenshtein(), 20, random_state=0).fit(X, y)
    assert " to random object (near: " in explain(drawn, X[0]).parts[0].name


def test_numbers_are_taken_back_into_their_units(planted):
    X, y, _ = planted
    targets = np.array([1000.0 * "abc".index(label) for label in y])
    d2ke = sm.D2KE(sm.distances.Levenshtein(), 40, random_state=0)
    model = make_pipeline(d2ke, TransformedTargetRegressor(Ridge(alpha=1e-3), transformer=StandardScaler()))
    model.fit(X, targets)
    found = explain(model, X[2])
    best = found.left_out.parts[0]
    a, b = int(best.in_x[0]), int(best.in_x[-1]) + 1
    whole, without = model.predict([X[2], X[2][:a] + X[2][b:]])
    assert best.contribution == pytest.approx(whole - without, rel=1e-4)
    assert found.left_out.of == "the prediction"


def test_models_of_strings_of_one_length_say_why_there_are_no_stretches():
    X = ["AACC", "AAGG", "CCAA", "GGAA"]
    hamming = sm.pairwise(lambda x, y: float(sum(a != b for a, b in zip(x, y, strict=True))))
    model = make_pipeline(sm.D2KE(hamming, 4, objects=X, random_state=0), Ridge()).fit(X, [0.0, 0.0, 1.0, 1.0])
    found = explain(model, X[0])
    assert found.left_out is None
    assert "stretches of x cannot be left out" in found.note


def test_models_with_stretches_and_short_strings_leave_nothing_out(planted, model):
    X, y, _ = planted
    assert explain(sm.KernelSVC(sm.kernels.Spectrum(k=2)).fit(X, y), X[0]).left_out is None
    assert explain(model, "ACD").left_out is None


def test_classes_are_explained_without_leaving_anything_out(planted, model, monkeypatch):
    from similia.explanations import _explain, explain_classes

    monkeypatch.setattr(_explain, "with_left_out", None)  # which fails if it is called
    assert set(explain_classes(model, planted[0], n_members=2)) == {*"abc"}
    with pytest.raises(TypeError, match="not callable"):
        explain(model, planted[0][0])
