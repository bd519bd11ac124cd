"""Copies of an object, and objects of a group, are on one side of every fold: a copy knows the answer."""

import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.neighbors import KNeighborsClassifier

import similia as sm
from samples.select import MAKERS, choose, sample
from similia.objects import as_strings, take
from similia.objects.identical import are_among, identical
from similia.selection import auto as _select
from similia.selection import folds as module
from similia.selection._ladder import Group, each_once, ladder
from similia.selection.folds import (
    again,
    held_out,
    joined,
    kept_together,
    near_copies,
    number_of_folds,
    ordered,
    recognised,
)


@pytest.mark.parametrize("kind", MAKERS)
def test_copies_are_found_in_every_kind(kind):
    _, X = recognised(sample(kind, 12)[0])
    rows = np.array([0, 1, 2, 3, 1, 4, 0, 1])
    assert identical(take(X, rows)).tolist() == [0, 1, 2, 3, 1, 4, 0, 1]
    assert are_among(take(X, [1, 7]), take(X, [7, 8])).tolist() == [False, True]


def test_copies_in_other_clothes():
    rows = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    assert identical(rows).tolist() == [0, 0, 1]
    unsorted = sp.csr_array((np.array([2.0, 1.0, 0.0, 1.0, 2.0]), np.array([2, 0, 1, 0, 2]), np.array([0, 2, 5])))
    assert identical(unsorted).tolist() == [0, 0]
    points = [np.array([[1.0, 2], [3, 4]]), np.array([[3.0, 4], [1, 2]]), np.array([[1.0, 4], [3, 2]])]
    assert identical(sm.objects.as_sets(points)).tolist() == [0, 0, 1]
    assert identical(sm.objects.as_series(points)).tolist() == [0, 1, 2]
    labelled = [nx.path_graph(3), nx.path_graph(3), nx.star_graph(2)]
    assert identical(sm.objects.as_graphs(labelled)).tolist() == [0, 0, 1]
    assert identical([{1, 2}, {1, 2}, np.arange(3), np.arange(3)]).tolist() == [0, 0, 1, 1]


def test_equal_sets_are_copies_whatever_the_order_in_which_they_were_filled():
    one, other = frozenset([0, 64]), frozenset([64, 0])
    assert ([*one], one) == ([*other][::-1], other)
    assert identical([one, other, frozenset([0, 65])]).tolist() == [0, 0, 1]
    assert identical([(one, "a"), (other, "a"), [one, "a"]]).tolist() == [0, 0, 1]
    assert identical([{"a": one, "b": 1}, {"b": 1, "a": other}, {"a": one}]).tolist() == [0, 0, 1]
    assert identical([{"a": 1}, {("a", 1)}, ["set", "a"], ("set", "a"), "['set', 'a']"]).tolist() == [0, 1, 2, 3, 4]


def test_arrays_of_another_shape_or_dtype_or_with_one_other_value_are_no_copies():
    assert identical([np.zeros((2, 3)), np.zeros((3, 2)), np.zeros((2, 3))]).tolist() == [0, 1, 0]
    assert identical([np.zeros(2), np.zeros(2, np.int64), np.zeros(2)]).tolist() == [0, 1, 0]
    long = np.arange(5000.0)
    other = np.where(long == 2500, long + 1e-12, long)
    assert identical([(long, "a"), (other, "a"), (long.copy(), "a")]).tolist() == [0, 1, 0]
    logs = [pd.DataFrame({"event": ["a"] * 50 + [x] + ["a"] * 50}) for x in "bcb"]  # shown by their ends only
    assert identical(logs).tolist() == identical([log["event"] for log in logs]).tolist() == [0, 1, 0]
    assert identical([logs[0], logs[0].set_axis(["name"], axis=1)]).tolist() == [0, 1]


def test_objects_are_among_others_of_another_dtype():
    wide = as_strings(["ACGT", "é"])
    assert are_among(as_strings(["ACGT", "AC"]), wide).tolist() == [True, False]
    assert are_among(wide, as_strings(["ACGT", "AC"])).tolist() == [True, False]
    rows = np.array([[1.0, 2.0], [0.0, 3.0]])
    for convert in (np.asarray, sp.csr_array, sm.objects.as_series):
        assert are_among(convert(rows.astype(np.float32)), convert(rows[1:])).tolist() == [False, True]


def random_graph(rng, directed, numbers):
    """Return a random graph of up to 5 nodes with few labels, and weights; with attributes if `numbers`."""
    G = nx.gnp_random_graph(int(rng.integers(0, 6)), 0.5, seed=int(rng.integers(2**31)), directed=directed)
    for node in G:
        G.nodes[node].update(label=int(rng.integers(2)), **({"x": float(rng.integers(2)) - 1} if numbers else {}))
    for edge in G.edges:
        G.edges[edge].update(label=int(rng.integers(2)), weight=float(rng.integers(1, 3)))
    return G


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
def test_graphs_are_among_others_if_one_of_these_is_isomorphic(directed, numbers):
    rng = np.random.default_rng(5)
    graphs = [random_graph(rng, directed, numbers) for _ in range(150)]
    renamed = [nx.relabel_nodes(G, dict(zip(G, rng.permutation(len(G)).tolist(), strict=True))) for G in graphs]
    shuffled = []
    for G in renamed:
        shuffled.append(G.__class__())
        shuffled[-1].add_nodes_from((node, G.nodes[node]) for node in sorted(G))
        shuffled[-1].add_edges_from(G.edges(data=True))
    names = {"node_attributes": ["x"]} if numbers else {}
    read = [sm.objects.as_graphs(part, **names) for part in (shuffled, graphs[:30])]
    expected = [
        any(nx.is_isomorphic(G, H, node_match=dict.__eq__, edge_match=dict.__eq__) for H in graphs[:30])
        for G in shuffled
    ]
    assert 40 < sum(expected) < 140
    assert are_among(*read).tolist() == expected


def test_symmetric_graphs_and_those_that_colours_do_not_tell_apart():
    two_triangles, ring = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3)), nx.cycle_graph(6)
    star = nx.relabel_nodes(nx.star_graph(40), {0: 7, 7: 0})
    star = nx.convert_node_labels_to_integers(star, ordering="sorted")
    graphs = sm.objects.as_graphs([two_triangles, star, nx.star_graph(39), nx.empty_graph(0)])
    assert are_among(graphs, sm.objects.as_graphs([ring, nx.star_graph(40)])).tolist() == [False, True, False, False]
    assert are_among(graphs, sm.objects.as_graphs([nx.empty_graph(0)])).tolist() == [False, False, False, True]
    assert are_among(graphs, graphs.take([])).tolist() == [False] * 4
    labelled = nx.path_graph(2)
    nx.set_node_attributes(labelled, 1, "label")
    assert are_among(sm.objects.as_graphs([labelled]), sm.objects.as_graphs([nx.path_graph(2)])).tolist() == [False]


@pytest.mark.parametrize("task", ["classification", "regression"])
@pytest.mark.parametrize("sizes", [(2,), (1, 1, 1, 2), (1, 5, 9), (30, 1)])
def test_a_group_is_in_one_fold_and_folds_are_even(task, sizes):
    rng = np.random.default_rng(0)
    group = np.repeat(np.arange(60), rng.choice(sizes, 60))
    y = (group % 3)[rng.permutation(len(group))] if task == "classification" else rng.random(len(group))
    shuffled = rng.permutation(len(group))
    group, y = group[shuffled], y[shuffled]
    order = ordered(y, task, 5, np.random.default_rng(1), group)
    assert sorted(order.objects) == [*range(len(y))]
    fold = np.empty(len(y), dtype=int)
    fold[order.objects] = order.fold
    for assigned in (fold, again(y, task, 5, 7, group)):
        assert all(len(set(assigned[group == g])) == 1 for g in range(60))
        groups = [len(set(group[assigned == f])) for f in range(5)]
        assert max(groups) - min(groups) <= 3
    assert len(set(group[order.objects[:60]])) == 60  # a beginning has something of every group


def test_a_beginning_of_pairs_has_both_classes_whichever_object_is_listed_first():
    y, pair = np.tile(["control", "case"], 400), np.repeat(np.arange(400), 2)
    first = ordered(y, "classification", 5, np.random.default_rng(0), pair).objects[:300]
    assert 100 < np.sum(y[first] == "case") < 200
    before_and_after = np.tile([0.0, 1.0], 400)
    first = ordered(before_and_after, "regression", 5, np.random.default_rng(0), pair).objects[:300]
    assert 100 < before_and_after[first].sum() < 200


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("folds", [3, 5])
def test_numbers_are_scored_on_two_objects_or_more_wherever_groups_allow_it(folds, seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 4, rng.integers(5, 13)).tolist()
    group = np.repeat(np.arange(len(sizes)), sizes)
    possible = sum(size > 1 for size in sizes) + sizes.count(1) // 2 >= folds
    fold = again(np.arange(len(group)) * 1.0, "regression", folds, seed, group)
    assert all(len(set(fold[group == g])) == 1 for g in range(len(sizes)))
    assert (np.bincount(fold, minlength=folds).min() > 1) == possible


def test_a_fold_of_one_object_is_refused_if_the_score_needs_two(monkeypatch):
    rng = np.random.default_rng(0)
    X, y, group = rng.normal(size=(21, 2)), rng.random(21), [*np.repeat(range(4), 5), 4]
    monkeypatch.setattr(_select, "ladder", lambda *given: ladder(*given)[:1])
    options = {"budget": None, "nested": False, "random_state": 0, "progress": False}
    with pytest.raises(ValueError, match="a fold would hold only one object, but r2 needs two; lower cv=5, or join"):
        sm.AutoRegressor(cv=5, **options).fit(X, y, groups=group)
    for parameters in ({"cv": 4}, {"cv": 5, "scoring": "neg_mean_absolute_error"}):
        assert np.isfinite(sm.AutoRegressor(**parameters, **options).fit(X, y, groups=group).predict(X)).all()


def test_without_copies_nothing_changes():
    y = np.random.default_rng(0).integers(3, size=50)
    one, other = (ordered(y, "classification", 5, np.random.default_rng(2), g) for g in (None, np.arange(50)))
    np.testing.assert_array_equal(one.objects, other.objects)
    np.testing.assert_array_equal(one.fold, other.fold)


def test_groups_with_an_object_in_common_are_one():
    X = np.array([[1.0], [2], [2], [3], [4], [5]])
    together, notes = joined(X, ["a", "a", "b", "b", "c", "d"])
    assert together.tolist() == [0, 0, 0, 0, 1, 2]
    assert notes == ["1 of 6 objects are copies of others; all copies are kept on one side of a fold"]
    with pytest.raises(ValueError, match=r"X has 3 groups .* and cv=4 folds need at least 4"):
        number_of_folds(X[:, 0], "regression", 4, together, "group")
    with pytest.raises(ValueError, match="X has 2 different objects, and cv=3 folds need at least 3"):
        number_of_folds(np.arange(5.0), "regression", 3, joined(X[[0, 0, 1, 1, 1]], None)[0])
    with pytest.raises(ValueError, match=r"groups must be one name or number per object, shape \(6,\)"):
        joined(X, ["a"])
    with pytest.raises(ValueError, match=r"groups\[1\] is None, expected a name or number"):
        joined(X, ["a", None, "b", "b", "c", "d"])


def test_a_class_counts_the_objects_that_may_be_in_different_folds():
    y, X = np.repeat(["a", "b"], 12), np.arange(24.0)[:, None]
    patients = np.r_[np.arange(12), np.repeat([12, 13, 14, 15], 3)]
    with pytest.raises(
        ValueError, match=r"class 'b' has 1 different object; .* two classes of at least 3 different obj"
    ):
        sm.AutoClassifier().fit(np.minimum(X, 12), y)
    with pytest.raises(ValueError, match=r"class 'b' is in 2 groups; .* two classes of at least 3 groups each"):
        sm.AutoClassifier().fit(X, y, groups=np.minimum(patients, 13))
    with pytest.warns(UserWarning, match=r"class 'b' is in 4 groups, so there are 4 folds instead of 5"):
        assert number_of_folds(y, "classification", 5, patients, "group") == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        both = np.arange(24) % 6  # each patient has objects of both classes
        assert number_of_folds(y, "classification", 5, both, "group") == 5


class Folds(ClassifierMixin, BaseEstimator):
    """Remembers pairs of what it was fitted to and asked about."""

    seen: list = []  # noqa: RUF012

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        self.known_ = {*np.asarray(X)[:, 0].tolist()}
        return self

    def predict(self, X):
        Folds.seen.append((self.known_, {*np.asarray(X)[:, 0].tolist()}))
        return np.zeros(len(X), dtype=int)


@pytest.mark.parametrize("given", [False, True])
def test_no_model_is_asked_about_what_it_has_seen_a_copy_of(monkeypatch, given):
    Folds.seen.clear()
    rng = np.random.default_rng(0)
    name = rng.integers(25, size=80)
    X = np.column_stack([name, rng.random(80) if given else name]).astype(float)
    monkeypatch.setattr(_select, "ladder", lambda *a: [Group("one", (), (("", (("learner", Folds()),)),), slow=False)])
    found = choose(X, rng.integers(2, size=80), groups=name if given else None, budget=None, cv=4, random_state=0)
    assert found.n_outer_folds_ == 4
    assert Folds.seen
    assert not any(known & asked for known, asked in Folds.seen)
    assert any("copies" in note for note in found.notes_) != given


def test_twins_with_labels_of_noise_are_found_to_be_noise(monkeypatch):
    nearest = KNeighborsClassifier(1, algorithm="brute")
    monkeypatch.setattr(_select, "ladder", lambda *a: [Group("1", (), (("", (("learner", nearest),)),), slow=False)])
    scores, above = [], 0
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(60, 5)), rng.integers(2, size=60)
        found = choose(np.repeat(X, 2, axis=0), np.repeat(y, 2), budget=None, cv=5, random_state=seed)
        scores.append(found.best_score_)
        above += found.best_score_interval_[0] > 0.5
    assert abs(np.mean(scores) - 0.5) < 0.07  # without care 1.0: the twin is the nearest
    assert above <= 1


@pytest.mark.parametrize("stratify", [True, False])
def test_a_held_out_part_holds_no_copy_of_what_is_trained_on(stratify):
    rng = np.random.default_rng(0)
    X = rng.integers(30, size=100)[:, None].astype(float)
    y = (X[:, 0] % 2).astype(int)
    train, test = held_out(X, y, 0.25, 0, stratify=stratify)
    assert sorted([*train, *test]) == [*range(100)]
    assert not {*X[train, 0]} & {*X[test, 0]}
    assert 0.15 < len(test) / 100 < 0.35
    with pytest.raises(ValueError, match=r"1 different object cannot be split .* each part needs at least one; give"):
        held_out(np.zeros((5, 1)), y[:5], 0.2, 0, stratify=False)


def test_too_few_objects_to_hold_some_out_of_each_class_are_refused():
    X, y = np.arange(6.0)[:, None], np.array([0, 0, 1, 1, 2, 2])
    with pytest.raises(ValueError, match=r"6 different objects cannot be split .* 2 held-out .* each of the 3 classes"):
        held_out(X, y, 0.3, 0, stratify=True)
    assert [len(part) for part in held_out(X, y, 0.5, 0, stratify=True)] == [3, 3]


@pytest.mark.parametrize("stratify", [True, False])
def test_a_held_out_part_holds_no_variant_of_a_text_that_is_trained_on(stratify):
    X, y, sentence = _sentences(40, np.random.default_rng(0))
    train, test = held_out(as_strings(X), y, 0.2, 0, stratify=stratify)
    assert sorted([*train, *test]) == [*range(120)]
    assert not {*sentence[train]} & {*sentence[test]}
    assert len(test) == 24


# two own similarities whose names are cut off alike


def test_own_similarities_whose_names_agree_are_both_tried():
    X = recognised(sample("strings", 30)[0])[1]
    long = [sm.kernels.Spectrum(k=3) for _ in range(60)]
    first = sm.kernels.Sum([*long, sm.kernels.Spectrum(k=2)], weights=[*np.ones(60), 1.0])
    second = sm.kernels.Sum([*long, sm.kernels.Spectrum(k=4)], weights=[*np.ones(60), 2.0])
    groups = ladder("objects", X, "classification", 0, [first, second])
    assert len(groups) == 6  # neighbours, features and landmarks of each
    assert len({group.named(0) for group in groups}) == 6
    assert len(each_once([*groups, *groups])) == 6


def _overlap(x, y):
    """Share of the words of two texts that both have: the definition, word by word."""
    words = {*x, *y}
    least, most = (sum(f(x.count(w), y.count(w)) for w in words) for f in (min, max))
    return least / most if most else 0.0


@pytest.mark.parametrize("few", [500, 0])  # all pairs, or those with equal hashes
@pytest.mark.parametrize("seed", range(6))
def test_near_copies_share_four_words_in_five(seed, few, monkeypatch):
    monkeypatch.setattr(module, "_FEW", few)
    rng = np.random.default_rng(seed)
    texts = [[*rng.choice(list("abcdefgh"), size=rng.integers(0, 7))] for _ in range(40)]
    group = near_copies(as_strings([" ".join(words) for words in texts]))
    linked = nx.Graph([(i, j) for i in range(40) for j in range(i) if _overlap(texts[i], texts[j]) >= 0.8])
    linked.add_nodes_from(range(40))
    parts = {frozenset(part) for part in nx.connected_components(linked)}
    assert {frozenset(np.flatnonzero(group == g).tolist()) for g in set(group)} == parts
    assert 1 < len(parts) < 40


def _sentences(n, rng):
    """Return three variants of each of n sentences, the random label that they share, and the sentence's number."""
    vocabulary = [f"word{i}" for i in range(400)]
    texts = [[*rng.choice(vocabulary, size=12), "NAME", "OTHER"] for _ in range(n)]
    variants = [" ".join([*words, extra]) for words in texts for extra in ("alpha", "beta", "gamma")]
    return variants, np.repeat(rng.integers(2, size=n), 3), np.repeat(np.arange(n), 3)


def test_sequences_in_both_cases_are_noted():
    words = ["".join(word) for word in np.random.default_rng(0).choice(list("ACGT"), (40, 12))]
    mixed = [word.lower() if i % 4 < 2 else word for i, word in enumerate(words)]
    y, options = np.arange(40) % 2, {"budget": 1, "cv": 3, "max_voters": 1, "nested": False, "random_state": 0}
    ignores = sm.kernels.Spectrum(k=2, ignore_case=True)
    for X, similarity, told in ((mixed, sm.kernels.Spectrum(k=2), 1), (mixed, ignores, 0), (words, None, 0)):
        notes = choose(X, y, similarity=similarity, **options).notes_
        assert sum("capitals and as small letters" in note for note in notes) == told


def test_near_copies_are_in_one_fold_and_their_labels_are_not_given_away():
    X, y, sentence = _sentences(40, np.random.default_rng(0))
    options = {"budget": 6, "max_voters": 1, "random_state": 0}
    alone = choose(X, y, groups=np.arange(len(X)), **options)
    assert alone.best_score_ > 0.95  # the other variants of a sentence are in the training part
    found = choose(X, y, **options)
    assert found.best_score_ < 0.75
    assert any("80 of 120 texts are near copies of others" in note for note in found.notes_)
    assert not any("near copies" in note for note in alone.notes_)
    together, _ = kept_together(as_strings(X), np.arange(len(X)), y, 5, True)
    assert len({*zip(together.tolist(), sentence.tolist(), strict=True)}) == len({*together.tolist()}) == 40


@pytest.mark.parametrize(
    ("texts", "y"),
    [
        (["ACGT"] * 6 + ["ACGA"] * 6, [0, 1] * 6),  # no words
        ([f"the same five words {i}" for i in range(12)], [0, 1] * 6),  # one group of all
        ([*(f"a b c d e f {i}" for i in range(3)), *(f"{i}{i} x{i} y{i}" for i in range(21))], [0] * 3 + [1] * 21),
    ],
)
def test_texts_stay_apart_where_one_class_or_most_texts_would_be_in_one_group(texts, y):
    apart = np.arange(len(texts))
    groups, notes = kept_together(as_strings(texts), apart, np.array(y), 3, True)
    assert groups.tolist() == apart.tolist()
    assert notes == []
