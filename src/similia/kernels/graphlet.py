r"""Graphlet kernel: how often each small graph, up to isomorphism, is an induced subgraph.

.. math:: K(G, H) = \sum_{F} c_F(G) \, c_F(H), \quad
          c_F(G) = \#\{S \subseteq V(G) : |S| = k, \, G[S] \cong F\}.

Cost: one to a few nanoseconds for each of the C(n, k) subsets of a graph of n nodes, or `n_samples` draws.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from similia.core.config import rows_per_block
from similia.core.validation import check_positive_int
from similia.kernels.counts import Counts
from similia.kernels.graph_labels import vertex_ids
from similia.kernels.graphs import GraphKernel
from similia.objects import GraphBatch
from similia.objects.graphlets import (
    Patterns,
    as_structures,
    canonical_forms,
    count_patterns,
    count_subsets,
    sample_graphlets,
)


class Graphlet(GraphKernel):
    r"""Graphlet kernel: induced subgraphs on k nodes, counted by isomorphism class.

    Parameters
    ----------
    size : int, default=4
        Nodes k of a graphlet, 2 to 7: 2, 4, 11, 34, 156, 1044 classes.
    n_samples : int or None, default=None
        Graphlets drawn from each graph; None counts all subsets of k nodes.
    sampling : {"uniform", "random_walk"}, default="uniform"
        How they are drawn, see `similia.objects.graphlets.sample_graphlets`.
    normalize : bool, default=False
        Divide by sqrt(K(G, G) K(H, H)).
    seed : int, default=0
        Of the samples. A graph gets the same ones whichever graphs are beside it.

    Raises
    ------
    ValueError
        When called, if a parameter is out of range, or if all subsets are to be counted and a graph has more
        than 2e8 of them; the sentence names the graph.

    Notes
    -----
    Structure alone is compared: directions, weights, self-loops and labels are ignored. A graph with fewer
    than k nodes has no graphlet and K = 0 (normalised: 0 to others, 1 to itself). Feature ids are hashes of
    (k, smallest code of the class), the same in any process.

    With samples, c_F estimates ``n_samples`` times the share of F under uniform sampling. Graphs that differ
    are sampled independently, so K(G, H) is unbiased between them, K(G, G) is above its mean over
    independent samples by about the number of samples.

    References
    ----------
    Shervashidze, Vishwanathan, Petri, Mehlhorn & Borgwardt, "Efficient graphlet kernels for large graph
    comparison", AISTATS 2009.

    Examples
    --------
    A path of four nodes has two paths of three and two pairs of an edge and a node; a star has three paths
    of three and one empty triple:

    >>> from similia.kernels.graphlet import Graphlet
    >>> path = ([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]], 4)
    >>> star = ([[0, 1, 0, 2, 0, 3], [1, 0, 2, 0, 3, 0]], 4)
    >>> Graphlet(size=3)([path, star])
    array([[ 8.,  6.],
           [ 6., 10.]])
    """

    def __init__(
        self,
        size: int = 4,
        n_samples: int | None = None,
        sampling: str = "uniform",
        normalize: bool = False,
        seed: int = 0,
    ) -> None:
        self.size = size
        self.n_samples = n_samples
        self.sampling = sampling
        self.normalize = normalize
        self.seed = seed

    def as_objects(self, X: Any) -> GraphBatch:
        """Return `X` as a `GraphBatch`, labels and weights left out."""
        return as_structures(X)

    def _compared_nodes(self, graphs: GraphBatch) -> str:
        return "structure"

    def _counts(self, objects: GraphBatch) -> Counts:
        canonical_forms(self.size)  # a wrong size is refused before work is done
        if self.n_samples is None:
            return self._by_class(
                objects, count_subsets(objects, self.size, f"Graphlet(size={self.size}, n_samples=...)")
            )
        n_samples = check_positive_int(self.n_samples, "n_samples")
        step = rows_per_block(64 * n_samples)
        return Counts.concatenate([self._sampled(objects[g : g + step]) for g in range(0, len(objects), step)])

    def _sampled(self, graphs: GraphBatch) -> Counts:
        codes = sample_graphlets(graphs, self.size, self.n_samples, self.sampling, seed=self.seed)  # type: ignore[arg-type]
        return self._by_class(graphs, count_patterns(codes))

    def _by_class(self, graphs: GraphBatch, patterns: Patterns) -> Counts:
        """Return the counts of patterns, those of one class added up."""
        table, representatives = canonical_forms(self.size)
        lengths = np.diff(patterns.offsets)
        # What was drawn from a smaller graph has nodes that are not the graph's.
        real = np.diff(graphs.node_offsets) >= self.size
        kept = np.repeat(real, lengths)
        offsets = np.concatenate(([0], np.cumsum(np.where(real, lengths, 0))))
        entries = (patterns.counts[kept].astype(np.float64), table[patterns.codes[kept]].astype(np.int64), offsets)
        counts = csr_array(entries, shape=(len(graphs), len(representatives)))
        counts.sum_duplicates()
        ids = vertex_ids(representatives | np.uint64(self.size) << np.uint64(32))
        return Counts(counts.indptr.astype(np.int64), ids[counts.indices], counts.data)
