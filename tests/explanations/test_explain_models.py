"""Explanations of predictions; how explanations are shown; what has none."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import similia as sm
from samples.explain import ALL, by_name, check_sums
from similia import distances, kernels
from similia.explanations import Explanation, explain
from similia.objects import GraphBatch

# --- predictions --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def promoters():
    X, y = sm.datasets.load_promoters(return_X_y=True)
    return list(X), np.asarray(y)


def linear_models():
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_selection import SelectKBest, chi2
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, Normalizer, RobustScaler, StandardScaler
    from sklearn.svm import SVC, LinearSVC

    gappy = kernels.GappyKmers(k=4, gaps=1)
    both = kernels.Normalized(
        kernels.Sum([kernels.WeightedDegree(degree=3, normalize=True), gappy], weights=[3.0, 0.1])
    )
    few = 2**10 - 1  # collisions, and halves of different size
    nystroem = sm.Nystroem(both, n_components=30, random_state=0)
    rbf = kernels.DistanceRBF(distances.Levenshtein(), 0.001)
    return [
        make_pipeline(sm.KernelFeatures(gappy, few), LinearSVC()),
        make_pipeline(sm.KernelFeatures(both, few), MaxAbsScaler(), LogisticRegression()),
        make_pipeline(sm.KernelFeatures(gappy, few), Normalizer(), RidgeClassifier()),
        make_pipeline(
            sm.KernelFeatures(gappy, few), SelectKBest(chi2, k=50), StandardScaler(with_mean=False), LinearSVC()
        ),
        make_pipeline(sm.KernelFeatures(gappy, few), TruncatedSVD(10, random_state=0), SVC(kernel="linear")),
        make_pipeline(nystroem, StandardScaler(), LogisticRegression()),
        make_pipeline(nystroem, RobustScaler(), MinMaxScaler(), LinearSVC()),
        make_pipeline(sm.Nystroem(rbf, n_components=20, random_state=0), "passthrough", LinearSVC()),
        make_pipeline(sm.D2KE(distances.Levenshtein(), 16, random_state=0), StandardScaler(), LinearSVC()),
    ]


@pytest.mark.parametrize("which", range(len(linear_models())))
def test_parts_are_the_decision(promoters, which):
    X, y = promoters
    model = linear_models()[which].fit(X, y)
    for x in X[:3] + X[-3:]:
        found = explain(model, x, top=7)
        score = model.decision_function([x])[0]
        assert found.value == pytest.approx(abs(score))
        assert found.title.endswith(f"for {model.predict([x])[0]} against {'+' if score > 0 else '-'}")
        assert len(found.parts) <= 8
        assert abs(found.unexplained) < 1e-5 * max(1, abs(found.value))
        assert sum(p.contribution for p in found.parts) + found.residual == pytest.approx(found.value)


@pytest.mark.parametrize(
    "kernel",
    [
        kernels.Spectrum(k=3),
        kernels.Intersection(kernels.Spectrum(k=2)),
        kernels.Intersection(kernels.Mismatch(k=2, alphabet="acgt"), normalize=True),
        kernels.Intersection(
            kernels.Sum(
                [kernels.Spectrum(k=3), kernels.Sum([kernels.Spectrum(k=1), kernels.Spectrum(k=2)], [4, 0])], [1, 9]
            ),
            normalize=True,
        ),
        kernels.Sum([kernels.Spectrum(k=1), kernels.Intersection(kernels.Sum([kernels.Spectrum(k=2)], [4]))], [2, 0.5]),
    ],
    ids=repr,
)
def test_nystroem_weights_pulled_back_are_those_of_the_features(promoters, kernel):
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline

    X, _y = promoters
    X, target = X[:40], np.array([len(x.replace("a", "")) for x in X[:40]], dtype=float)
    direct = make_pipeline(sm.KernelFeatures(kernel), Ridge(alpha=10, fit_intercept=False, tol=1e-12)).fit(X, target)
    pulled = make_pipeline(sm.Nystroem(kernel, n_components=40), Ridge(alpha=10, fit_intercept=False)).fit(X, target)
    a, b = (explain(model, X[3], top=ALL) for model in (direct, pulled))
    assert a.kind == b.kind == "prediction"
    assert by_name(a) == pytest.approx(by_name(b), abs=1e-6)  # ridge sees the span of the training objects only


def test_the_best_class_is_explained_against_the_second():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    X = ["".join(rng.choice(list("ACGT"), 20, p=p)) for p in np.eye(4) * 0.6 + 0.1 for _ in range(12)]
    y = np.repeat(["a", "c", "g", "t"], 12)
    features = sm.KernelFeatures(kernels.Spectrum(k=1), 2**12)
    model = make_pipeline(features, LogisticRegression()).fit(X, y)
    machine = make_pipeline(features, SVC(kernel="linear", decision_function_shape="ovo")).fit(X, y)
    dual = sm.learn.kernel_machines.KernelSVC(kernels.Spectrum(k=1)).fit(X, y)
    pairs = list(itertools.combinations("acgt", 2))
    for x in X[::5]:
        found = explain(model, x)
        scores = np.sort(model.decision_function([x])[0])
        assert found.value == pytest.approx(scores[-1] - scores[-2])
        check_sums(found)
        assert set(by_name(found)) <= {"A", "C", "G", "T", "intercept"}
        for what in (machine, dual):
            found = explain(what, x)
            check_sums(found)
            winner, other = found.title.split(", for ")[1].split(" against ")
            if what is machine:
                place = pairs.index(tuple(sorted((winner, other))))
                score = machine.decision_function([x])[0][place]
                assert found.value == pytest.approx(score if winner < other else -score)


def test_a_machine_on_objects_is_explained_by_features_or_support_vectors(promoters):
    X, y = promoters
    rbf = kernels.DistanceRBF(distances.Levenshtein(), 0.001)
    for kernel, name in ((kernels.Spectrum(k=3, normalize=True), "aaa"), (rbf, "like training object")):
        model = sm.learn.kernel_machines.KernelSVC(kernel, C=10.0).fit(X, y)
        found = explain(model, X[0])
        assert found.value == pytest.approx(abs(model.decision_function(X[:1])[0]))
        check_sums(found, rounding=1e-6)
        assert any(name in part.name for part in explain(model, X[0], top=ALL).parts)


def test_machines_on_cosines_are_explained_by_columns_of_dense_and_sparse_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.7), np.arange(40) % 2
    X[y == 1, 2] += 3
    dense, sparse = (sm.learn.KernelSVC(kernels.Cosine()).fit(A, y) for A in (X, sp.csr_array(X)))
    decide, unit = dense.decision_function, X[3] / np.linalg.norm(X[3])
    slopes = (decide(np.eye(6)) - decide(-np.eye(6))) / 2  # the decision is linear in unit vectors
    for model, x in ((dense, X[3]), (sparse, sp.csr_array(X)[3]), (sparse, sp.csr_matrix(X)[3])):
        found = explain(model, x, top=ALL)
        check_sums(found)
        parts = {f"column {k}": slope * u for k, (slope, u) in enumerate(zip(slopes, unit, strict=True)) if u}
        named = by_name(found)
        assert {name: named[name] for name in parts} == pytest.approx(parts)
        assert set(named) <= {*parts, "intercept"}
    with pytest.raises(ValueError, match="x is a sparse array of 2 rows, expected one row"):
        explain(sparse, sp.csr_array(X)[:2])


@pytest.mark.parametrize("update", ["perceptron", "ridge"])
def test_bits_are_explained_by_their_best_linear_prediction(promoters, update):
    X, y = promoters
    model = sm.recipes.nyshd(kernels.GappyKmers(k=4, gaps=1), n_landmarks=60, update=update, random_state=0).fit(X, y)
    values, surrogates = [], []
    for x in X[::4]:
        found = explain(model, x, top=5)
        check_sums(found, exact=False)
        assert found.value == pytest.approx(abs(model.decision_function([x])[0]))
        values.append(found.value)
        surrogates.append(found.value - found.unexplained)
    assert np.corrcoef(values, surrogates)[0, 1] > 0.75
    assert np.mean(np.array(surrogates) > 0) > 0.9  # for the predicted class, as the decision
    assert "best linear prediction" in found.note


def test_vectors_are_explained_by_their_difference_from_the_mean():
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3)) + 5
    y = X @ [1.0, 0.0, -2.0]
    model = make_pipeline(StandardScaler(), Ridge(alpha=1e-9)).fit(X, y)
    found = explain(model, X[0])
    parts = by_name(found)
    assert parts.pop("intercept") == pytest.approx(y.mean())
    assert sorted(parts.values()) == pytest.approx(
        sorted([X[0, 0] - X[:, 0].mean(), -2 * (X[0, 2] - X[:, 2].mean()), 0.0]), abs=1e-6
    )
    check_sums(found)
    check_sums(explain(Ridge().fit(X, y), X[0]))


def test_the_first_step_gets_a_vector_as_it_does_in_predict():
    from sklearn.decomposition import PCA
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline, make_union
    from sklearn.preprocessing import FunctionTransformer

    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X @ [1.0, 0.0, -2.0]
    for first in (FunctionTransformer(lambda X: X[:, [0, 2]]), make_union(PCA(2), "passthrough")):
        model = make_pipeline(first, Ridge()).fit(X, y)
        found = explain(model, X[0])
        check_sums(found)
        assert found.value == pytest.approx(model.predict(X[:1])[0])


def test_a_linear_model_of_one_class_makes_no_decision():
    from sklearn.linear_model import RidgeClassifier

    with pytest.raises(ValueError, match="fitted to one class"):
        explain(RidgeClassifier().fit(np.eye(3), [1, 1, 1]), np.ones(3))


def test_graphs_are_explained_by_trees(data_folder):
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    G, y = sm.objects.read_tudataset(data_folder / "graphs" / "MUTAG.zip")
    kernel = kernels.WeisfeilerLehman(n_iter=2, normalize=True)
    for first in (sm.KernelFeatures(kernel), sm.Nystroem(kernel, n_components=50, random_state=0)):
        model = make_pipeline(first, LinearSVC()).fit(G, y)
        found = explain(model, G[0], label_names=dict(enumerate(["C", "N", "O", "F", "I", "Cl", "Br"])))
        assert found.value == pytest.approx(abs(model.decision_function(G[:1])[0]))
        check_sums(found)
        assert any("C([0]C" in part.name for part in found.parts)
        assert found.shares_x.sum() + by_name(found)["intercept"] == pytest.approx(found.value)


# --- what is shown ------------------------------------------------------------------------------

HOSTILE = ["<script>alert(1)</script>&'\"", "\x1b[31mred\x1b[0m\x00\x07", "\ud800x\udfff", "$\\frac{1}{2}$", "\n\r\t"]


class Tags(HTMLParser):
    """Check that tags are closed in order, and collect them."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag != "br":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_shown(found: Explanation, draw: bool = True) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    text, html = found.to_text(), found.to_html()
    assert all(c.isprintable() or c == "\n" for c in text)
    tags = Tags()
    tags.feed(html)
    assert tags.open == []
    assert "script" not in tags.seen
    html.encode(), text.encode()
    assert html == found._repr_html_()
    assert "src=" not in html
    assert "http" not in html
    ax = found.plot()
    if draw:
        ax.figure.canvas.draw()
    assert found.plot(ax) is ax
    plt.close("all")
    assert "Explanation" in repr(found)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_hostile_text_is_escaped(text):
    check_shown(explain(kernels.Spectrum(k=2), text, text))
    check_shown(explain(distances.Levenshtein(), text, "plain"), draw=False)
    graph = nx.Graph([(0, 1)])
    nx.set_node_attributes(graph, {0: text, 1: "b"}, "label")
    check_shown(explain(kernels.WeisfeilerLehman(n_iter=1), graph, graph), draw="$" in text)


def test_hostile_labels_are_escaped():
    label = "<script>alert(1)</script>\x1b"
    words, y = ["ACGTACGT", "ACGTAAGT", "TTTTGGGG", "TTTTGGCG", "CCAACCAA", "CCAACCAT"], np.repeat([label, "b", "c"], 2)
    kernel = kernels.DistanceRBF(distances.Levenshtein(), 0.1)
    found = explain(sm.GaussianProcessClassifier(kernel).fit(words, y), words[0])
    assert label in found.left_out.of
    check_shown(found)


def test_each_kind_is_shown():
    rng = np.random.default_rng(0)
    check_shown(explain(kernels.Spectrum(k=2), b"GATTACA", b"ATTA"))
    check_shown(explain(kernels.Spectrum(k=2), "", "ATTA"))
    check_shown(explain(kernels.Spectrum(k=2), "GATTACA" * 500, "ATTA" * 20))
    check_shown(explain(distances.DTW(), rng.normal(size=20), rng.normal(size=30)))
    check_shown(explain(distances.TWE(), rng.normal(size=(20, 2)), np.zeros((3, 2))))
    check_shown(explain(kernels.GlobalAlignment(), rng.normal(size=9), rng.normal(size=8)))
    check_shown(explain(distances.Chamfer(), rng.normal(size=(5, 2)), rng.normal(size=(4, 2))))
    check_shown(explain(distances.Chamfer(), rng.normal(size=(5, 1)), np.empty((0, 1))))
    check_shown(explain(kernels.Graphlet(size=3), nx.empty_graph(1), nx.cycle_graph(4, nx.DiGraph)))
    check_shown(explain(kernels.ShortestPath(), nx.path_graph(500), nx.star_graph(5)))
    check_shown(explain(kernels.Cosine(), np.array([1.0, 2.0]), np.array([1.0, 1.0])))


def test_percentages_are_shares_of_absolute_amounts():
    """Amounts of one sign are shares of the value, negative ones, too; of two signs, of the sum of absolute amounts."""
    negative = kernels.NegativeDistance(distances.Levenshtein())
    lines = explain(negative, "GATTACA", "GTCA").to_text().splitlines()
    assert [line.split("  ")[-1].split() for line in lines[2:3]] == [["in", "x"]]
    assert [line.split()[-3:-1] for line in lines[3:5]] == [["-6", "67"], ["-3", "33"]]
    weights = kernels.Sum([kernels.Spectrum(k=1), kernels.Spectrum(k=2)], weights=[1, 2])
    model = sm.KernelRidge(weights, alpha=1.0).fit(["AA", "CC", "GG"], [1.0, -1.0, 0.5])
    found = explain(model, "AACC", top=3)
    sizes = sorted((abs(part.contribution) for part in explain(model, "AACC").parts), reverse=True)
    assert found.absolute_sum == pytest.approx(sum(sizes))
    assert found.listed_share == pytest.approx(sum(sizes[:3]) / sum(sizes))
    lines = found.to_text().splitlines()
    assert "% of sum |adds|" in lines[2]
    shown = [float(line.split()[-2 if "smaller" not in line else -1]) for line in lines[3:7]]
    expected = [*sizes[:3], sum(sizes[3:])]
    assert shown == pytest.approx([round(100 * size / sum(sizes)) for size in expected])


def test_strings_show_their_stretches_if_the_listed_parts_hold_little(promoters):
    X, y = promoters
    model = sm.KernelSVC(kernels.GappedKmers(6, 4, reverse_complement=True, normalize=True)).fit(X, y)
    found = explain(model, X[0])
    assert found.listed_share < 0.2
    covered = np.zeros(len(X[0]), int)
    for part in found.groups:
        shares = found.shares_x[part.in_x]
        assert part.name == X[0][part.in_x[0] : part.in_x[-1] + 1]
        assert part.contribution == pytest.approx(shares.sum())
        assert len(np.unique(np.sign(shares))) == len(np.unique(np.abs(shares) > np.abs(found.shares_x).mean())) == 1
        covered[part.in_x] += 1
    assert (covered == 1).all()
    lines = found.to_text().splitlines()
    heads = [i for i, line in enumerate(lines) if line.split()[:1] in (["stretch"], ["part"])]
    assert lines[heads[0] + 1].split()[0] == found.groups[0].name
    assert lines[heads[1] + 1].split()[1] == found.parts[0].name
    row = next(line for line in lines if "smaller parts" in line)
    rest = re.search(r"smaller parts +\S+ +(\d+)", row).group(1)
    listed = re.search("the 10 listed parts hold ([0-9.]+) % of the sum of absolute amounts; ", lines[-1])
    intercept = next(line.split()[3] for line in lines[heads[1] :] if " intercept " in line)
    assert float(listed.group(1)) + float(rest) + float(intercept) == pytest.approx(100, abs=1)  # as in the column
    for shown in (lines[-1], found.to_html()):
        assert f"{listed.group(0)}shares_x, to_html() and logo() show where all of it lies" in shown
    assert found.to_text("its page").endswith("; its page shows where all of it lies")
    assert lines[-3] == "below a letter: the row of its largest listed part"
    few = explain(kernels.Spectrum(k=3), "GATTACA", "ATTACC")
    assert "note" not in few.to_text()
    assert "stretch" not in few.to_text()
    assert "the 1 listed part holds " in explain(kernels.Spectrum(k=3), X[0], X[1], top=1).to_text()


def test_the_text_marks_the_letters_of_each_part():
    lines = explain(kernels.Spectrum(k=3), "GATTACA", "ATTACC").to_text().splitlines()
    assert lines[0] == "similarity of x and y by Spectrum(): 3"
    assert lines[-7:-5] == ["x     0  GATTACA", "          11123"]


def test_top_lists_the_largest_parts_and_adds_up_the_others():
    x, y = "GATTACAGATTACA", "GATTGATTCC"
    everything, few = explain(kernels.Spectrum(k=2), x, y, top=ALL), explain(kernels.Spectrum(k=2), x, y, top=2)
    assert [p.name for p in few.parts] == [p.name for p in everything.parts[:2]]
    assert few.residual == few.omitted == sum(p.contribution for p in everything.parts[2:])
    assert few.n_omitted == len(everything.parts) - 2
    assert [p.contribution for p in everything.parts] == sorted(
        [p.contribution for p in everything.parts], reverse=True
    )


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "objects", "said"),
    [
        (kernels.Spectrum(), (nx.path_graph(3), "ACGT"), "x is not an object that Spectrum compares"),
        (kernels.Spectrum(), (["ACGT", "AC"], "ACGT"), r"for several objects, explain one: x\[0\]"),
        (kernels.Spectrum(), ("ACGT", 3.0), "y is not an object that Spectrum compares"),
        (kernels.WeisfeilerLehman(), (nx.path_graph(3), "ACGT"), "y is not an object that WeisfeilerLehman compares"),
        (distances.DTW(), ([1.0, 2.0], "ACGT"), "y is not an object that DTW compares"),
        (kernels.Spectrum, ("A", "C"), "is the class Spectrum"),
        (kernels.Spectrum(), ("A",), "compares two objects, got one"),
        (kernels.HypersphericalHeat(), (np.ones(3), np.ones(3)), "has no parts to name; explain takes"),
        (distances.JaroWinkler(), ("A", "C"), "JaroWinkler has no parts to name; explain takes"),
        (distances.MMD(), (nx.path_graph(9), nx.path_graph(8)), "with kernel='match'"),
        (sm.pairwise(lambda x, y: 1.0), ("A", "C"), "has no parts to name"),
        (sm.KernelFeatures(kernels.Spectrum()), ("A",), "not a fitted model that predicts"),
        (kernels.NegativeDistance(distances.Levenshtein(), origin=""), ("A", "C"), "is a sum of three distances"),
    ],
)
def test_what_has_no_parts_is_one_sentence(what, objects, said):
    with pytest.raises((TypeError, ValueError), match=said.replace("(", "\\(")) as error:
        explain(what, *objects)
    assert "\n" not in str(error.value)


def test_models_that_decide_otherwise_leave_places_out_or_are_one_sentence(promoters):
    from sklearn.exceptions import NotFittedError
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PowerTransformer, StandardScaler
    from sklearn.svm import SVC, LinearSVC
    from sklearn.tree import DecisionTreeClassifier

    X, y = promoters
    nystroem = sm.Nystroem(kernels.Spectrum(), n_components=5, random_state=0)
    Z = nystroem.fit_transform(X)
    for said, *steps in (
        ("DecisionTreeClassifier has no coefficients", DecisionTreeClassifier(random_state=0)),
        ("SVC has no coefficients", SVC(kernel=lambda X, Y: X @ Y.T)),
        ("PowerTransformer is not affine", PowerTransformer(), LinearSVC()),
    ):
        found = explain(make_pipeline(nystroem, *steps).fit(X, y), X[0])
        assert found.note.startswith(f"the decision has no parts: {said}")
        assert found.left_out.parts or "no stretches of x change the decision if they are left out" in found.note
        assert "not explained" not in found.to_text()
        assert found.to_html().count("<table") == bool(found.left_out.parts)
        model = make_pipeline(StandardScaler(), *steps).fit(Z, y)  # vectors have no places to leave out
        with pytest.raises(TypeError, match=said):
            explain(model, Z[0])
    with pytest.raises(NotFittedError, match="not fitted"):
        explain(make_pipeline(nystroem, LinearSVC()), X[0])


@pytest.mark.parametrize("task", ["two classes", "three classes", "numbers"])
@pytest.mark.parametrize("name", ["ExtraTrees", "RandomForest"])
def test_trees_add_up_and_name_what_each_split_asks(task, name):
    """The twin walks down each tree from split to split."""
    from sklearn import ensemble
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(1)
    V, y = rng.normal(size=(60, 5)), {"two classes": 2, "three classes": 3, "numbers": 60}[task]
    target = np.floor(y * rng.permutation(60) / 60) + V[:, 1].round() * (task == "numbers")
    kind = "Regressor" if task == "numbers" else "Classifier"
    forest = getattr(ensemble, name + kind)(15, random_state=0)
    model = make_pipeline(StandardScaler(), forest).fit(V, target)
    x, scaled = V[:1], np.float32(StandardScaler().fit(V).transform(V[:1]))
    found = explain(model, V[0], top=5)
    if task == "numbers":
        direction = np.ones(1)
        assert found.value == pytest.approx(model.predict(x)[0])
    else:
        shares = model.predict_proba(x)[0]
        first, second = np.argsort(-shares, kind="stable")[:2]
        direction = np.eye(len(shares))[first] - np.eye(len(shares))[second]
        assert found.value == pytest.approx(shares[first] - shares[second])
    expected = np.zeros(6)
    for tree in (estimator.tree_ for estimator in forest.estimators_):
        mean = [float(v @ direction / (1 if task == "numbers" else v.sum())) for v in tree.value[:, 0, :]]
        node, expected[5] = 0, expected[5] + mean[0] / 15
        while tree.children_left[node] >= 0:
            column = tree.feature[node]
            below = tree.children_left if scaled[0, column] <= tree.threshold[node] else tree.children_right
            expected[column] += (mean[below[node]] - mean[node]) / 15
            node = below[node]
    parts = {part.name: part.contribution for part in found.parts}
    for k in range(5):
        told = next((amount for name, amount in parts.items() if name.startswith(f"x{k} =")), 0.0)
        assert told == pytest.approx(expected[k], abs=1e-12)
    assert parts.get("intercept", 0.0) == pytest.approx(expected[5])
    check_sums(found)


def test_trees_after_a_projection_are_refused():
    from sklearn.decomposition import PCA
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    V = np.random.default_rng(0).normal(size=(20, 3))
    with pytest.raises(TypeError, match="PCA mixes columns before the trees"):
        explain(make_pipeline(MaxAbsScaler(), PCA(2), ExtraTreesClassifier(5)).fit(V, V[:, 0] > 0), V[0])


def drawn_letters(ax):
    """The lower and upper end of each drawn letter, by the position at which it stands."""
    boxes = [path.get_extents() for collection in ax.collections for path in collection.get_paths()]
    return {int(box.x0): (box.y0, box.y1) for box in boxes}


def test_letters_of_a_logo_are_as_high_as_what_they_add(promoters):
    import matplotlib.pyplot as plt
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    X, y = promoters
    gapped = kernels.GappedKmers(6, 4, reverse_complement=True, normalize=True)
    model = make_pipeline(sm.KernelFeatures(gapped, 2**14), LinearSVC()).fit(X, y)
    found = explain(model, X[0])
    ax = found.logo()
    letters = drawn_letters(ax)
    shares = found.shares_x
    assert {*letters} == {*np.flatnonzero(shares).tolist()}
    assert (shares > 0).any() and (shares < 0).any()  # noqa: PT018 - both directions are drawn
    for i, (low, high) in letters.items():
        assert (low, high) == pytest.approx((min(0.0, shares[i]), max(0.0, shares[i])), abs=1e-9)
        assert ax.get_ylim()[0] <= low <= high <= ax.get_ylim()[1]
    assert ax.get_xlim() == (0, len(X[0]))
    plt.close(ax.figure)


def test_a_logo_of_two_strings_has_two_rows_and_of_graphs_is_refused():
    import matplotlib.pyplot as plt

    found = explain(kernels.Spectrum(k=2), "GAT$A", "ATTA")
    ax = found.logo()
    above, below = ax.figure.axes
    assert ax is above
    assert {*drawn_letters(above)} == {*np.flatnonzero(found.shares_x).tolist()}
    assert {*drawn_letters(below)} == {*np.flatnonzero(found.shares_y).tolist()}
    plt.close(ax.figure)
    own = plt.figure().subplots()
    assert found.logo(own) is own
    plt.close(own.figure)
    with pytest.raises(ValueError, match="a logo shows the contribution of each letter"):
        explain(kernels.WeisfeilerLehman(1), nx.path_graph(3), nx.path_graph(4)).logo()


def test_a_logo_of_letters_that_all_speak_against_is_as_high_as_they_are():
    import matplotlib.pyplot as plt

    found = explain(kernels.Spectrum(k=2), "GATTA", "ATTA")
    against = replace(found, shares_x=-0.01 * found.shares_x)
    low, high = against.logo().get_ylim()
    assert low == pytest.approx(1.05 * against.shares_x.min())
    assert high == 0
    plt.close("all")


def test_models_that_are_linear_only_up_to_a_link_have_no_parts(promoters):
    from sklearn.ensemble import ExtraTreesClassifier
    from sklearn.linear_model import PoissonRegressor, Ridge
    from sklearn.pipeline import make_pipeline

    X = promoters[0][:30]
    counts = np.array([x.count("a") for x in X], dtype=float)
    features = sm.KernelFeatures(kernels.Spectrum(2), 64)
    poisson = PoissonRegressor(max_iter=1000)
    found = explain(make_pipeline(features, poisson).fit(X, counts), X[0])
    assert "PoissonRegressor does not predict a linear function" in found.note
    assert found.value == pytest.approx(poisson.predict(features.transform(X[:1]))[0])
    part = found.left_out.parts[0]
    without = X[0][: part.in_x[0]] + X[0][part.in_x[-1] + 1 :]
    assert part.contribution == pytest.approx(found.value - poisson.predict(features.transform([without]))[0])
    with pytest.raises(TypeError, match="PoissonRegressor does not predict a linear function"):
        explain(poisson.fit(features.transform(X), counts), features.transform(X[:1]))
    check_sums(explain(make_pipeline(features, Ridge()).fit(X, counts), X[0]))
    with pytest.raises(ValueError, match="fitted to one class"):
        explain(make_pipeline(features, ExtraTreesClassifier(3)).fit(X, np.zeros(30)), X[0])


def test_an_alignment_that_does_not_fit_is_refused():
    with sm.config(max_memory=10_000), pytest.raises(ValueError, match="max_memory"):
        explain(distances.DTW(), np.zeros(100), np.zeros(100))


def test_a_batch_of_one_is_an_object_and_of_two_is_not():
    batch = sm.objects.as_strings(["GAT", "ATT"])
    assert explain(kernels.Spectrum(k=2), batch[:1], "GA").value == 1
    with pytest.raises(ValueError, match=r"x is a batch of 2 objects, expected one object; write x\[0\]"):
        explain(kernels.Spectrum(k=2), batch, "GA")


def test_objects_are_not_changed():
    arcs = np.array([[0, 1], [1, 0]])
    graph = GraphBatch.from_arrays([0, 2], arcs, node_labels=[1, 2])
    before = [graph.indices.copy(), graph.node_labels.copy()]
    explain(kernels.WeisfeilerLehman(), graph, graph).to_html()
    assert all(np.array_equal(a, b) for a, b in zip(before, [graph.indices, graph.node_labels], strict=True))


# --- the command --------------------------------------------------------------------------------


def test_the_command_explains_pairs_and_predictions(promoters, tmp_path, capsys):
    import json

    from sklearn.pipeline import make_pipeline
    from sklearn.svm import LinearSVC

    from similia.cli import explain as command
    from similia.cli.voice import speaking

    X, y = promoters
    model = make_pipeline(sm.KernelFeatures(kernels.Spectrum(k=3)), LinearSVC()).fit(X, y)
    path = sm.save(model, tmp_path / "model.similia")
    data = tmp_path / "data.csv"
    data.write_text("text\n" + "\n".join(X[:4]) + "\n")
    with speaking(json=True):
        command.explain(path, str(data), {}, ("0", "2"))
    shown = json.loads(capsys.readouterr().out)
    assert shown["value"] == explain(kernels.Spectrum(k=3), X[0], X[2]).value
    command.explain(path, str(data), {}, one="1", top=3)
    assert "decision of KernelFeatures and LinearSVC" in capsys.readouterr().out
    command.explain(path, str(data), {}, one="1", output=tmp_path / "why.html")
    capsys.readouterr()
    assert (tmp_path / "why.html").read_text().startswith("<!doctype html>")
    encoder = make_pipeline(
        sm.Nystroem(kernels.Spectrum(k=3), 4, random_state=0), sm.SignRandomProjection(64, random_state=0)
    )
    sm.SimilaritySearch(encoder).fit(X[:20]).save(tmp_path / "search")
    with speaking(json=True):
        command.explain(tmp_path / "search", str(data), {}, ("0", "2"))
    assert json.loads(capsys.readouterr().out)["value"] == shown["value"]
    with pytest.raises(ValueError, match="numbered from 0 to 3; there is no number 9"):
        command.explain(path, str(data), {}, one="9")
    with pytest.raises(ValueError, match="--labels must be like"):
        command.explain(path, str(data), {}, ("0", "1"), labels="C")
