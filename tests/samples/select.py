"""Small collections of every kind with two classes (or numbers) that can be told apart, for tests of selection."""

import networkx as nx
import numpy as np

import similia as sm
from similia.learn.targets import task_of
from similia.selection.budget import rows_of


def _strings(rng, n):
    return [
        "".join(rng.choice(list("ACGT"), size=30, p=[0.4, 0.1, 0.1, 0.4] if i % 2 else [0.1, 0.4, 0.4, 0.1]))
        for i in range(n)
    ]


def _texts(rng, n):
    words = (["red", "green", "sun"], ["blue", "moon", "sun"])
    return [" ".join(rng.choice(words[i % 2], size=rng.integers(3, 7))) for i in range(n)]


def _graphs(rng, n):
    made = []
    for i in range(n):
        graph = nx.gnp_random_graph(10, 0.5, seed=int(rng.integers(1000))) if i % 2 else nx.cycle_graph(8 + i % 5)
        nx.set_node_attributes(graph, {v: int(graph.degree(v) > 2) for v in graph}, "label")
        nx.set_node_attributes(graph, {v: [float(graph.degree(v)), float(rng.normal())] for v in graph}, "where")
        made.append(graph)
    return sm.objects.as_graphs(made, node_label="label", node_attributes="where")


def _series(rng, n):
    return sm.objects.as_series([np.sin(np.arange(20) * (0.4 + 0.5 * (i % 2)) + rng.normal()) for i in range(n)])


def _sets(rng, n):
    return sm.objects.as_sets([rng.normal(size=(rng.integers(3, 8), 3)) + 1.5 * (i % 2) for i in range(n)])


def _vectors(rng, n):
    return rng.normal(size=(n, 6)) + 1.5 * (np.arange(n) % 2)[:, None] * np.array([1, -1, 1, 0, 0, 0])


MAKERS = {
    "strings": _strings, "texts": _texts, "graphs": _graphs, "series": _series, "sets": _sets, "vectors": _vectors,
}  # fmt: skip


def sample(kind, n=30, task="classification", seed=0):
    """Return n objects of a kind (or of strings of many lengths, "texts"), and labels or numbers."""
    rng = np.random.default_rng(seed)
    X, classes = MAKERS[kind](rng, n), np.arange(n) % 2
    if task == "regression":
        return X, classes + 0.3 * rng.random(n)
    return X, np.array(["even", "odd"])[classes]


def choose(X, y, *, groups=None, task="auto", **options):
    """Return a fitted `AutoClassifier`, or `AutoRegressor` where y holds numbers to predict."""
    decided = task_of(y, task, options.get("scoring"))
    auto = sm.AutoClassifier if decided == "classification" else sm.AutoRegressor
    return auto(**options).fit(X, y, groups=groups)


def rows(found):
    """Return `cv_results_` as a dict for each candidate."""
    return rows_of(found.cv_results_)
