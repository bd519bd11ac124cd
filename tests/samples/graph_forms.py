"""Graphs in the forms of other libraries, for tests, without these libraries."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

SIDES = ("node_labels", "node_attributes", "edge_labels", "edge_weights")

# One graph by hand: 0 -1.5- 1 -2.0- 2, a self-loop at 2 (weight 1.0)
EDGES = [(0, 1, 1.5), (1, 2, 2.0), (2, 2, 1.0)]
INDEX = np.array([[0, 1, 1, 2, 2], [1, 0, 2, 1, 2]])
WEIGHTS = np.array([1.5, 1.5, 2.0, 2.0, 1.0])
DENSE = np.array([[0, 1.5, 0], [1.5, 0, 2.0], [0, 2.0, 1.0]])
OK = ([[0], [1]], 2)


def same(a, b):
    """Whether two batches hold the same arrays."""
    pairs = [(getattr(a, name), getattr(b, name)) for name in ("node_offsets", "indptr", "indices", *SIDES)]
    return all((x is None) == (y is None) and (x is None or np.array_equal(x, y)) for x, y in pairs)


class Igraph:
    """The attributes of an igraph graph that are used."""

    def __init__(self, n, edges, directed=False, nodes=None, data=None):
        self.n, self.edges, self.directed = n, edges, directed
        self.vs = [SimpleNamespace(attributes=lambda d=d: d) for d in (nodes or [{} for _ in range(n)])]
        self.es = [SimpleNamespace(attributes=lambda d=d: d) for d in (data or [{} for _ in edges])]

    def vcount(self):
        return self.n

    def get_edgelist(self):
        return self.edges

    def is_directed(self):
        return self.directed


class Tensor:
    """What numpy asks of a tensor."""

    def __init__(self, values):
        self.values = np.array(values)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


def pyg(**values):
    values = {key: Tensor(value) if key != "num_nodes" else value for key, value in values.items()}
    return SimpleNamespace(**{"x": None, "edge_attr": None, **values})
