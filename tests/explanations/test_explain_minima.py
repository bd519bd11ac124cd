"""Machines on min-max and intersection kernels are explained by the features of the object, such as atoms."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import similia as sm
from samples.explain import ALL, by_name, check_sums, quick, words
from samples.graphs import batch, samples
from similia.explanations import explain
from similia.explanations._comparisons import feature_occurrences
from similia.explanations._views import shade
from similia.kernels import (
    DistanceRBF,
    Graphlet,
    Intersection,
    MinMax,
    Morgan,
    Normalized,
    Product,
    Propagation,
    ShortestPath,
    Spectrum,
    Sum,
    WeightedDegree,
    WeisfeilerLehman,
)
from similia.learn.vote import VoteRegressor
from similia.similarity import name_of

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O", "CC(=O)Nc1ccc(O)cc1", "CCO", "CCCO", "Cc1ccccc1", "CC(=O)[O-]", "C[C@H](N)C(=O)O",
    "C1CC1N", "C[C@@H](N)C(=O)O", "F/C=C/F", "[Na+].[Cl-]", "N#CCC=C",
]  # fmt: skip
STRANGE = pytest.mark.filterwarnings("ignore:1 of 1 objects have similarity 0 to all")
STRINGS = ["GATTACA", "ATTACC", "CCGG", "TACCGA", "GGGATT", "ACACAC", "A"]


def kmers(text, k):
    return Counter(text[i : i + k] for i in range(len(text) - k + 1))


def shares(x, others, alpha, kernel):
    """The part of each k-mer of x in the sum of alpha times kernel values, pair by pair from the definition."""
    k, a, total = kernel.kernel.k, kmers(x, kernel.kernel.k), Counter()
    for other, weight in zip(others, alpha, strict=True):
        b = kmers(other, k)
        divisor = 1.0
        if isinstance(kernel, MinMax):
            divisor = sum(max(a[f], b[f]) for f in {*a, *b})
        elif kernel.normalize:
            divisor = (sum(a.values()) * sum(b.values())) ** 0.5
        for f in a.keys() & b.keys():
            total[f] += weight * min(a[f], b[f]) / divisor
    return {f: value for f, value in total.items() if value}


def without_intercept(found):
    return {name: value for name, value in by_name(found).items() if name != "intercept"}


KERNELS = [MinMax(Spectrum(k=2)), Intersection(Spectrum(k=1)), Intersection(Spectrum(k=2), normalize=True)]


@STRANGE
@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
@given(x=words, others=st.lists(words, min_size=2, max_size=6, unique=True), seed=st.integers(0, 99))
@quick
def test_parts_are_minima_over_the_sizes_of_training_objects(kernel, x, others, seed):
    targets = np.random.default_rng(seed).normal(size=len(others))
    ridge = sm.KernelRidge(kernel, alpha=0.1).fit(others, targets)
    found = explain(ridge, x, top=ALL)
    assert by_name(found) == pytest.approx(shares(x, others, ridge.dual_coef_, kernel), abs=1e-12)
    assert found.value == pytest.approx(float(ridge.predict([x])[0]), abs=1e-12)
    assert found.shares_x.sum() == pytest.approx(found.value, abs=1e-9)
    check_sums(found)
    for part in found.parts:
        starts = [i for i in range(len(x)) if x[i : i + len(part.name)] == part.name]
        assert part.in_x.tolist() == sorted({i + j for i in starts for j in range(len(part.name))})


@pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
def test_support_vectors_and_landmarks_split_as_training_objects_do(kernel):
    numbers, labels = np.array([len(x) - 2.0 * x.count("A") for x in STRINGS]), ["a", "b", "c", "a", "b", "c", "a"]
    svr = sm.KernelSVR(kernel, C=5.0).fit(STRINGS, numbers)
    svc = sm.KernelSVC(kernel, C=5.0).fit(STRINGS, labels)
    embedded = make_pipeline(sm.Nystroem(kernel, 5, random_state=0), StandardScaler(), Ridge()).fit(STRINGS, numbers)
    nystroem, scaler, ridge = (step for _, step in embedded.steps)
    for x in ["GATTACC", "CCCATTA"]:
        kept = [STRINGS[i] for i in svr.support_]
        assert without_intercept(explain(svr, x)) == pytest.approx(shares(x, kept, svr.dual_coef_, kernel), abs=1e-12)
        found = explain(svc, x, top=ALL)
        winner, other = re.search(r"for (\w) against (\w)", found.title).groups()
        pair = ["ab", "ac", "bc"].index("".join(sorted(winner + other)))
        alpha = svc.pair_coef_[pair] * (1 if winner < other else -1)
        kept = [STRINGS[i] for i in svc.support_]
        assert without_intercept(found) == pytest.approx(shares(x, kept, alpha, kernel), abs=1e-12)
        found = explain(embedded, x, top=ALL)
        assert found.value == pytest.approx(float(embedded.predict([x])[0]), abs=1e-9)
        check_sums(found)
        landmarks = [STRINGS[i] for i in nystroem.landmark_indices_]
        alpha = nystroem.components_ @ (ridge.coef_ / scaler.scale_)
        assert without_intercept(found) == pytest.approx(shares(x, landmarks, alpha, kernel), abs=1e-9)


def test_a_sum_splits_by_part_and_a_part_without_features_by_training_object():
    one, two, edits = MinMax(Spectrum(k=1)), Intersection(Spectrum(k=2)), DistanceRBF(sm.distances.Levenshtein(), 0.1)
    model = sm.KernelRidge(Sum([one, edits, two], weights=[2.0, 3.0, 0.5])).fit(STRINGS, np.arange(7.0))
    x, alpha = "GATACC", model.dual_coef_
    expected = {f"MinMax: {f}": value for f, value in shares(x, STRINGS, 2 * alpha, one).items()}
    expected |= {f"Intersection: {f}": value for f, value in shares(x, STRINGS, alpha / 2, two).items()}
    found = explain(model, x, top=ALL)
    features = {name: value for name, value in by_name(found).items() if " like training object " not in name}
    assert features == pytest.approx(expected, abs=1e-12)
    others = [
        part for part in found.parts if part.name.startswith("DistanceRBF: ") and " like training object " in part.name
    ]
    assert len(others) == len(STRINGS)
    assert sum(part.contribution for part in others) == pytest.approx(float(3 * alpha @ edits([x], STRINGS)[0]))
    check_sums(found)
    plain = explain(sm.KernelRidge(Sum([edits, edits])).fit(STRINGS, np.arange(7.0)), x, top=ALL)
    assert len(plain.parts) == len(STRINGS)  # one part for each object, not one for each object and kernel


class Letters:
    """Features of a user: a column for each of four letters, without names or places."""

    def __init__(self, letters="ACGT"):
        self.letters = letters

    def features(self, X, n_features):
        return sp.csr_array(np.array([[x.count(letter) / 3 for letter in self.letters] for x in X]))

    def __call__(self, X, Y=None):
        A, B = self.features(X, 4), self.features(X if Y is None else Y, 4)
        return (A @ B.T).toarray()


def test_a_feature_that_several_kernels_of_a_sum_count_is_one_part():
    graph = sm.objects.as_graphs([{"edge_index": [[0, 1, 1, 2], [1, 0, 2, 1]], "n_nodes": 3, "node_labels": [7, 8, 7]}])
    once, twice = WeisfeilerLehman(n_iter=0, normalize=True), WeisfeilerLehman(n_iter=1)
    found = explain(Sum([once, twice], weights=[10, 1]), graph, graph, top=ALL)  # counts 2, 1 and 2, 1, 2, 1
    each = [("7", 8 + 4), ("7(8)", 4), ("8", 2 + 1), ("8(7×2)", 1)]
    assert [(part.name, part.contribution) for part in found.parts] == [
        (f"WeisfeilerLehman: {name}", pytest.approx(value)) for name, value in each
    ]
    model = sm.KernelRidge(MinMax(Sum([clone(once).set_params(normalize=False), twice])), alpha=0).fit(graph, [9.0])
    found = explain(model, graph, top=ALL)  # MinMax divides the minima by the number of all features, 9
    each = [("7", 4), ("7(8)", 2), ("8", 2), ("8(7×2)", 1)]
    assert by_name(found) == pytest.approx({f"WeisfeilerLehman: {name}": count for name, count in each})
    assert len(found.parts) == 4
    assert found.shares_x == pytest.approx([2 + 0.5 + 1 / 3, 2 + 1 + 1 / 3, 2 + 0.5 + 1 / 3])


def test_features_that_differ_are_never_one_part():
    graphs = batch(samples(1, n=1), edge_labels=True)
    wl, plain = (WeisfeilerLehman(n_iter=1, edge_labels=labels) for labels in (True, False))
    for kernel in (
        Sum([wl, plain]),
        Sum([wl, Normalized(wl)]),
        Sum([wl, MinMax(wl)]),
        Sum([MinMax(wl), MinMax(plain)]),
    ):
        apart = [explain(part, graphs, graphs, top=ALL) for part in kernel.kernels]
        assert len(explain(kernel, graphs, graphs, top=ALL).parts) == sum(len(found.parts) for found in apart)
    model = sm.KernelRidge(Sum([MinMax(Letters()), MinMax(Letters("CATG"))])).fit(STRINGS, np.arange(7.0))
    assert len(explain(model, "GATTACA", top=ALL).parts) == 8  # four letters, each with a number in either kernel


COMPOSED = [
    MinMax(WeightedDegree(degree=3)),
    MinMax(Sum([Spectrum(k=1, normalize=True), Spectrum(k=2)], weights=[0.5, 0])),
    MinMax(Intersection(Intersection(Spectrum(k=1)))),
    MinMax(Intersection(Sum([Spectrum(k=1), Spectrum(k=2)], weights=[4, 1]))),
    MinMax(Normalized(Sum([Spectrum(k=1), Intersection(Spectrum(k=2))], weights=[0.3, 2.0]))),
    Intersection(Sum([Spectrum(k=1), Sum([Spectrum(k=2), WeightedDegree(2)])], weights=[4, 0.5]), normalize=True),
    Normalized(Sum([MinMax(Spectrum(k=1)), Intersection(Spectrum(k=2)), Spectrum(k=3)], weights=[1, 2, 3])),
    Sum([Normalized(Intersection(Spectrum(k=2))), Spectrum(k=1, normalize=True), MinMax(Letters())]),
    MinMax(Letters()),
]


@STRANGE
@pytest.mark.parametrize("kernel", COMPOSED, ids=name_of)
def test_parts_of_composed_kernels_are_the_decision(kernel):
    model = sm.KernelSVC(kernel, C=10.0).fit(STRINGS, [0, 1, 0, 1, 0, 1, 0])
    for x in ["GATTACC", "CCCATTA", "T", ""]:
        found = explain(model, x, top=ALL)
        assert found.value == pytest.approx(abs(float(model.decision_function([x])[0])), abs=1e-12)
        check_sums(found, rounding=1e-12)
        assert not any("like training object" in part.name for part in found.parts)


GRAPH_KERNELS = [
    MinMax(WeisfeilerLehman(n_iter=3)),
    MinMax(Sum([WeisfeilerLehman(n_iter=1), ShortestPath()])),
    Sum([MinMax(Propagation(n_iter=2, use="labels")), MinMax(Graphlet(size=3))]),
    Intersection(WeisfeilerLehman(n_iter=2), normalize=True),
]


@pytest.mark.parametrize("kernel", GRAPH_KERNELS, ids=name_of)
@pytest.mark.parametrize("directed", [False, True])
def test_parts_of_graphs_are_the_decision_and_all_of_them_have_nodes(kernel, directed):
    graphs = batch(samples(3, n=14, directed=directed))
    machine = sm.KernelRidge(kernel).fit(graphs[3:], np.arange(11.0))
    embedded = make_pipeline(sm.Nystroem(kernel, 6, random_state=0), LinearSVC(random_state=0))
    embedded.fit(graphs[3:], np.arange(11) % 2)
    for graph in graphs[:3]:
        for model, value in ((machine, machine.predict), (embedded, embedded.decision_function)):
            found = explain(model, graph, top=ALL)
            assert abs(found.value) == pytest.approx(abs(float(value([graph])[0])), abs=1e-9)
            check_sums(found)
            features = [part for part in found.parts if part.name != "intercept"]
            assert all(len(part.in_x) for part in features)
            assert found.shares_x.sum() == pytest.approx(sum(part.contribution for part in features), abs=1e-9)


def test_explicit_features_of_a_sum_are_named_and_placed_one_by_one():
    graphs = batch(samples(5, n=14))
    kernel = Intersection(Sum([WeisfeilerLehman(n_iter=1), ShortestPath()], weights=[4, 1]), normalize=True)
    model = make_pipeline(sm.KernelFeatures(kernel, 2**11 - 1), LinearSVC(random_state=0)).fit(
        graphs, np.arange(14) % 2
    )
    for graph in graphs:
        found = explain(model, graph, top=ALL)
        assert found.value == pytest.approx(abs(float(model.decision_function([graph])[0])))
        check_sums(found)
        features = [part for part in found.parts if part.name != "intercept"]
        assert all(re.match("(WeisfeilerLehman|ShortestPath): ", part.name) for part in features)
        assert found.shares_x.sum() == pytest.approx(sum(part.contribution for part in features), abs=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_columns_of_vectors_add_their_minima(form):
    X = np.array([[1.0, 0, 2], [0, 3, 1], [2, 2, 0], [0, 0, 1]])
    model = sm.KernelRidge(MinMax()).fit(form(X), [1.0, 2, 3, 4])
    x = np.array([2.0, 0, 1])
    low = np.minimum(x, X) * (model.dual_coef_ / np.maximum(x, X).sum(axis=1))[:, None]
    expected = {"column 0": low[:, 0].sum(), "column 2": low[:, 2].sum()}
    assert by_name(explain(model, x)) == pytest.approx(expected)


# molecules


MODELS = {
    "graphs": (sm.objects.from_smiles, MinMax(WeisfeilerLehman(n_iter=2))),
    "smiles": (list, MinMax(Morgan(radius=2))),
}


@pytest.mark.parametrize("form", MODELS)
def test_atoms_of_a_molecule_are_coloured_by_what_they_add(form):
    pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")
    read, kernel = MODELS[form]
    X, y = read(SMILES), np.arange(float(len(SMILES)))
    ridge = sm.KernelRidge(kernel, alpha=0.01)
    outside = TransformedTargetRegressor(sm.Pipeline([("ridge", ridge)]), transformer=StandardScaler())
    models = [
        outside,
        make_pipeline(TransformedTargetRegressor(ridge, transformer=StandardScaler())),
        VoteRegressor([outside, sm.KernelSVR(kernel)]),
        make_pipeline(sm.Nystroem(kernel, 8, random_state=0), Ridge()),
        sm.KernelRidge(Sum([kernel, Normalized(kernel)])),
    ]
    for model in models:
        found = explain(model.fit(X, y), X[0], top=ALL)
        if "mean is" not in found.note:
            assert found.value == pytest.approx(float(model.predict(X[:1])[0]), abs=1e-9)
        check_sums(found)
        intercept = sum(part.contribution for part in found.parts if part.name == "intercept")
        assert found.shares_x.sum() == pytest.approx(found.value - intercept, abs=1e-9)
        assert {group.name for group in found.groups} == {"methyl", "ester", "benzene ring", "carboxyl"}
        assert sum(group.contribution for group in found.groups) == pytest.approx(found.shares_x.sum(), abs=1e-9)
        html = found.to_html()
        for v, share in enumerate(found.shares_x / np.abs(found.shares_x).max()):
            assert shade(share).upper() in re.findall(rf"class='atom-{v}'[^>]*fill:(#\w{{6}})", html)


@pytest.mark.parametrize("kernel", [Morgan(), Morgan(0), Morgan(3, use_chirality=False), Morgan(invariants="features")])
def test_neighbourhoods_of_morgan_have_names_and_atoms(kernel):
    pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")
    for text in [*SMILES, "", "[H][H]", "[2H]OC"]:
        found = feature_occurrences(kernel, kernel.as_objects([text]), {})
        counts = kernel.counted([text])
        assert Counter(found.ids.tolist()) == dict(zip(counts.ids.tolist(), counts.values.tolist(), strict=True))
        assert found.n_places == len(set(found.places.tolist()))  # every atom is in its own neighbourhood
    ethanol = explain(Morgan(radius=1), "CCO", "CCO")
    places = {part.name: part.in_x.tolist() for part in ethanol.parts}
    assert places == {
        "[CH3]": [0], "[CH2]": [1], "[OH]": [2], "[CH3][CH2]": [0, 1], "[CH2]([CH3])[OH]": [0, 1, 2],
        "[OH][CH2]": [1, 2],
    }  # fmt: skip


def test_molecules_without_atoms_or_common_features_have_no_parts():
    pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")
    model = sm.KernelRidge(MinMax(Morgan())).fit(SMILES, np.arange(float(len(SMILES))))
    for text in ["", "[U]"]:
        found = explain(model, text)
        assert (found.value, found.parts, found.groups) == (0.0, [], [])
    product = sm.KernelRidge(Product([Morgan(), Morgan(radius=1)])).fit(SMILES, np.arange(float(len(SMILES))))
    assert any(part.name.endswith(" like training object 'CCO'") for part in explain(product, "CCC", top=ALL).parts)


# real sets


def test_decisions_about_real_molecules_are_the_sums_of_their_parts(data_folder):
    pytest.importorskip("rdkit", reason="RDKit is not installed: pip install 'similia[molecules]'")
    both = Sum([MinMax(Sum([WeisfeilerLehman(n_iter=n) for n in range(4)])), MinMax(ShortestPath())])
    ridge = TransformedTargetRegressor(sm.KernelRidge(both, alpha="auto"), transformer=StandardScaler())
    models = {"MUTAG": sm.KernelSVC(MinMax(WeisfeilerLehman(n_iter=3)), C=10.0), "ESOL": ridge}
    for name, model in models.items():
        X, y = sm.datasets.fetch(name, return_X_y=True)
        X, y = X[:160] if name == "MUTAG" else sm.objects.from_smiles(X[:160]), np.asarray(y)[:160]
        model.fit(X[30:], y[30:])
        for x, value in zip(X[:10], getattr(model, "decision_function", model.predict)(X[:10]), strict=True):
            found = explain(model, x, top=ALL)
            assert found.value == pytest.approx(abs(value) if name == "MUTAG" else value, abs=1e-9)
            intercept = next(part.contribution for part in found.parts if part.name == "intercept")
            assert found.shares_x.sum() == pytest.approx(found.value - intercept, abs=1e-9)
            check_sums(found)
            assert len(found.groups) or name == "MUTAG"  # whose atoms are numbers


def test_features_without_places_give_no_shares_but_places_to_leave_out():
    kernel = MinMax(Intersection(Spectrum(2), normalize=True))
    assert explain(kernel, "GATTACA", "ATTACC").shares_x is None
    found = explain(sm.KernelSVC(kernel).fit(["ACAC", "CACA", "GTGT", "TGTG"], [0, 0, 1, 1]), "ACACACAC")
    assert found.shares_x is None
    assert found.left_out is not None
