"""Random small graphs for the tests of graph kernels, as dense matrices and as a `GraphBatch`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from similia.objects import GraphBatch, as_graphs


@dataclass
class Sample:
    """A graph as dense arrays: ``weights[u, v] > 0`` is an arc."""

    weights: np.ndarray
    labels: np.ndarray
    attributes: np.ndarray
    edge_labels: np.ndarray

    def relabelled(self, order):
        pairs = np.ix_(order, order)
        return Sample(self.weights[pairs], self.labels[order], self.attributes[order], self.edge_labels[pairs])

    def neighbours(self, edge_labels):
        """For each node, (edge label, neighbour) pairs."""
        return [
            [(str(self.edge_labels[v, u]) if edge_labels else "", u) for u in np.flatnonzero(row)]
            for v, row in enumerate(self.weights)
        ]


def sample(rng, directed=False, weighted=False):
    """Return a graph of 0 to 9 nodes, with isolated nodes and self-loops now and then."""
    n = int(rng.integers(0, 10))
    arcs = np.triu(rng.random((n, n)) < rng.choice([0.0, 0.3, 0.9]))
    arcs &= ~np.eye(n, dtype=bool) | (rng.random((n, n)) < 0.1)
    if directed:
        arcs = arcs ^ arcs.T & (rng.random((n, n)) < 0.5)
    weights = np.where(arcs, rng.integers(1, 9, (n, n)) / 7 if weighted else 1.0, 0.0)
    edge_labels = rng.integers(-2, 2, (n, n))
    if not directed:
        weights, edge_labels = np.maximum(weights, weights.T), np.maximum(edge_labels, edge_labels.T)
    return Sample(weights, rng.integers(-3, 4, n), rng.normal(size=(n, 3)).round(2), edge_labels)


def samples(seed, n=6, **kind):
    rng = np.random.default_rng(seed)
    return [sample(rng, **kind) for _ in range(n)]


def batch(graphs, *, labels=True, attributes=False, edge_labels=False, weighted=False) -> GraphBatch:
    def form(g):
        arcs = np.array(np.nonzero(g.weights))
        side = {"edge_index": arcs, "n_nodes": len(g.labels)}
        if labels:
            side["node_labels"] = g.labels
        if attributes:
            side["node_attributes"] = g.attributes
        if edge_labels:
            side["edge_labels"] = g.edge_labels[tuple(arcs)]
        if weighted:
            side["edge_weights"] = g.weights[tuple(arcs)]
        return side

    return as_graphs([form(g) for g in graphs])
