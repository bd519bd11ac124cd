r"""Graphlets: small induced subgraphs of graphs, each stored as one integer.

A graphlet of k nodes v_0, ..., v_{k-1} (k from 2 to 11), in the order in which they were drawn, has the uint64 *code*

.. math:: c = \sum_{0 \le i < j < k} A[v_i, v_j] \, 2^{j (j - 1) / 2 + i},

where A is the adjacency matrix. A code has D = k (k - 1) / 2 bits; its low bits are the code of the first nodes. Graphs
are read as simple and undirected: an arc in either direction is an edge; self-loops, weights and labels are ignored.

Cost of a graphlet: k random numbers (more in a graph of few nodes), or as many steps as a random walk takes to see k
nodes; then D lookups in a bit matrix of n**2 / 8 bytes for a graph of n nodes (or among sorted neighbours, if the
matrix would exceed 4 MiB).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from math import comb
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block, run_in_ranges, track
from similia.core.validation import BadValue, check_choice, check_positive_int
from similia.objects import _graphlets as loops
from similia.objects.graph_batch import GraphBatch
from similia.objects.graphs import as_graphs
from similia.objects.sequences import offsets_of, runs

_GRAIN = 2048  # minimum number of graphlets per call of the compiled loop
_MOST_SUBSETS = 2 * 10**8  # limit for one graph, and for the graphs between two updates of the progress


class Patterns(NamedTuple):
    """The distinct graphlet codes of each of n graphs, and how often each code was found.

    A graphlet is a small induced subgraph. Its code is an integer with one bit for each pair of its nodes; the bit is 1
    if an edge joins the two nodes. See `sample_graphlets` for the order of the bits.

    Attributes
    ----------
    codes : ndarray of uint64, shape (n_patterns,)
        The codes of graph i are ``codes[offsets[i]:offsets[i + 1]]``, distinct and ascending.
    counts : ndarray of int64, shape (n_patterns,)
        For each code, how often it was found in its graph.
    offsets : ndarray of int64, shape (n + 1,)
        Position in `codes` at which the codes of each graph begin; the last entry is n_patterns.
    """

    codes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]

    @classmethod
    def concatenate(cls, parts: Sequence[Patterns]) -> Patterns:
        """Return the patterns of one or more collections of graphs, one collection after another."""
        return _joined([part[:2] for part in parts], np.concatenate([np.diff(part.offsets) for part in parts]))


class CanonicalForms(NamedTuple):
    """Isomorphism classes of the graphs on k nodes, as returned by `canonical_forms`.

    The code of a graph is an integer of D = k (k - 1) / 2 bits, one for each pair of nodes. A bit is 1 if an edge joins
    the two nodes of its pair; see `sample_graphlets` for the order of the bits.

    Attributes
    ----------
    table : ndarray of uint32, shape (2**D,)
        ``table[code]`` is the number of the class of the graph with this code.
    representatives : ndarray of uint64, shape (n_classes,)
        Smallest code in each class. Classes are numbered in ascending order of these codes.
    """

    table: npt.NDArray[np.uint32]
    representatives: npt.NDArray[np.uint64]


class _Simple(NamedTuple):
    """Simple undirected graphs; neighbours are numbered within their graph."""

    offsets: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int32]


def as_structures(X: Any) -> GraphBatch:
    """Read graphs without labels, attributes and weights; a `GraphBatch` is returned unchanged, labels included."""
    return as_graphs(X, node_label=None, node_attributes=None, edge_label=None, edge_weight=None)


def sample_graphlets(
    graphs: Any,
    size: int,
    n_samples: int,
    sampling: str = "random_walk",
    flyback: float = 0.15,
    small: str = "pad",
    seed: int = 0,
) -> npt.NDArray[np.uint64]:
    """Draw graphlets (small induced subgraphs) from each graph, independently and with replacement.

    Parameters
    ----------
    graphs : sequence of n graphs
        In any form that `similia.objects.as_graphs` reads.
    size : int
        Number of nodes k of a graphlet, 2 to 11.
    n_samples : int
        Number of graphlets to draw from each graph.
    sampling : {"random_walk", "uniform"}, default="random_walk"
        ``"uniform"`` takes k distinct nodes in random order. ``"random_walk"`` takes the first k distinct nodes of a
        random walk. The walk starts at a random node of a component with at least k nodes. In a graph without such a
        component, the walk starts at any node; when it has visited a whole component, it restarts at a random unvisited
        node.
    flyback : float, default=0.15
        Probability, at least 0 and below 1, that a step of a random walk leads back to the node where the walk last
        started. Any other step leads to a random neighbour.
    small : {"pad", "raise"}, default="pad"
        How to treat a graph with fewer than k nodes: add isolated nodes, or raise an error.
    seed : int, default=0
        Seed of the random numbers. The graphlets of a graph depend only on the seed and on the graph's edges and number
        of nodes. With a larger `n_samples`, the first graphlets stay the same.

    Returns
    -------
    ndarray of uint64, shape (n, n_samples)
        Code of each graphlet: bit j (j - 1) / 2 + i is 1 if an edge joins nodes i < j, which are numbered in the order
        in which they were drawn.

    Notes
    -----
    Some walks rarely reach new nodes, for example if `flyback` is near 1. To bound the time, a walk that is not
    finished after 64 steps jumps to an unvisited node. This node is drawn at random, with the same probabilities as if
    the walk had gone on until it reached an unvisited node. So jumps do not change the distribution of the graphlets.
    After a jump, the walk goes on, and jumps again whenever it is not finished after another 64 steps.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021; Lovász, "Random
    walks on graphs: a survey", 1993.

    Examples
    --------
    >>> from similia.objects.graphlets import sample_graphlets
    >>> path = ([[0, 1, 1, 2], [1, 0, 2, 1]], 3)
    >>> codes = sample_graphlets([path], size=3, n_samples=1000)
    >>> codes.shape, sorted({int(code) for code in codes[0]})  # 3: edges 0-1 and 0-2; 5: edges 0-1 and 1-2
    ((1, 1000), [3, 5])
    """
    size, n_samples = _check_size(size), check_positive_int(n_samples, "n_samples")
    _check_sampling(sampling, flyback, small, seed)
    simple = _simple(graphs, size, small)
    keys = loops.graph_keys(*simple, np.uint64(int(seed) % 2**64))
    codes = np.empty((len(keys), n_samples), dtype=np.uint64)
    if sampling == "uniform":

        def draw(first: int, last: int) -> None:
            loops.draw_uniform(first, last, size, *simple, keys, codes)
    else:
        sizes = loops.component_sizes(*simple)
        start_offsets, starts = _starting_nodes(simple.offsets, sizes, size)
        threshold = np.uint64(min(round(float(flyback) * 2**32), 2**32 - 1))

        def draw(first: int, last: int) -> None:
            loops.draw_walks(first, last, size, threshold, *simple, sizes, start_offsets, starts, keys, codes)

    run_in_ranges(draw, codes.size, _GRAIN)
    return codes


def count_patterns(codes: npt.ArrayLike) -> Patterns:
    """Count how often each graphlet code occurs in each row.

    Parameters
    ----------
    codes : array-like of uint64, shape (n, n_samples)
        One row for each of n graphs: the codes of its sampled graphlets (small induced subgraphs), as
        `sample_graphlets` returns them.

    Returns
    -------
    Patterns
        A named tuple p. The distinct codes of row i are ``p.codes[p.offsets[i]:p.offsets[i + 1]]``, and the same slice
        of ``p.counts`` says how often each code occurs.

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.graphlets import count_patterns
    >>> patterns = count_patterns(np.array([[3, 1, 3], [0, 0, 0]], dtype=np.uint64))
    >>> patterns.codes, patterns.counts, patterns.offsets
    (array([1, 3, 0], dtype=uint64), array([1, 2, 3]), array([0, 2, 3]))
    """
    codes = np.ascontiguousarray(_as_codes(codes, 2))
    n, n_samples = codes.shape
    small = codes.max(initial=0) >> np.uint64(loops.TABLE_BITS) == 0
    lengths = np.zeros(n, dtype=np.int64)
    parts = []
    step = rows_per_block(24 * n_samples)
    for first in range(0, n, step):
        rows = slice(first, first + step)
        distinct, counts = np.empty(codes[rows].shape, np.uint64), np.empty(codes[rows].shape, np.int64)

        def work(start: int, stop: int, first: int = first, out: tuple = (distinct, counts)) -> None:
            part, there = codes[first + start : first + stop], slice(start, stop)
            count = loops.count_small if small else loops.count_sorted
            part = part if small else np.sort(part, axis=1)
            count(part, out[0][there], out[1][there], lengths[first + start : first + stop])

        run_in_ranges(work, len(distinct), max(1, _GRAIN // max(1, n_samples)))
        kept = np.arange(n_samples) < lengths[rows, None]
        parts.append((distinct[kept], counts[kept]))
    return _joined(parts, lengths)


def enumerate_graphlets(graphs: Any, size: int) -> Patterns:
    """Count the graphlets of each graph: the subgraphs induced by all its subsets of `size` nodes.

    Graphlets are counted by their code, an integer with one bit for each pair of nodes; see `sample_graphlets`. The
    nodes of a graphlet keep the order that they have in the graph, so isomorphic graphlets can have different codes.

    Parameters
    ----------
    graphs : sequence of n graphs
        In any form that `as_graphs` reads. A graph with more than 2e8 subsets of `size` nodes raises an error.
    size : int
        Number of nodes of a subset, 2 to 11.

    Returns
    -------
    Patterns
        A named tuple p. The distinct codes of graph i are ``p.codes[p.offsets[i]:p.offsets[i + 1]]``, and the same
        slice of ``p.counts`` says how often each code was found. A graph with fewer than `size` nodes has no codes.

    Examples
    --------
    >>> from similia.objects.graphlets import enumerate_graphlets
    >>> path = ([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]], 4)
    >>> patterns = enumerate_graphlets([path], size=3)
    >>> patterns.codes, patterns.counts  # 5: a path of three nodes; 1 and 4: an edge and a single node
    (array([1, 4, 5], dtype=uint64), array([1, 1, 2]))
    """
    return count_subsets(graphs, _check_size(size), f"sample_graphlets(graphs, size={size}, n_samples=...)")


def count_subsets(graphs: Any, size: int, instead: str) -> Patterns:
    """Do as `enumerate_graphlets`; the error for a graph with too many subsets recommends the call `instead`."""
    simple = _simple(graphs, 0, "pad")
    subsets = [comb(int(n), size) for n in np.diff(simple.offsets)]
    for g, n_subsets in enumerate(subsets):
        if n_subsets > _MOST_SUBSETS:
            too_many = f"has {np.diff(simple.offsets)[g]} nodes, hence {n_subsets:.1e} subsets of {size}"
            raise BadValue(g, too_many, f"at most {_MOST_SUBSETS:.0e}", f"draw some of them: {instead}", kind="graph")
    found: list[tuple] = [()] * (len(simple.offsets) - 1)

    def work(first: int, start: int, stop: int) -> None:
        for g in range(first + start, first + stop):
            low, high = simple.offsets[g], simple.offsets[g + 1]
            if high - low < size:
                found[g] = np.empty(0, np.uint64), np.empty(0, np.int64)
                continue
            indptr = simple.indptr[low : high + 1] - simple.indptr[low]
            codes, counts = loops.enumerate_codes(size, indptr, simple.neighbours[simple.indptr[low] :])
            order = np.argsort(codes)
            found[g] = codes[order], counts[order]

    batches = runs(offsets_of(subsets), _MOST_SUBSETS)  # about a second each
    for batch in track(batches, "graphlets", len(batches)):
        run_in_ranges(partial(work, batch.start), batch.stop - batch.start, 1)
    return _joined(found, [len(codes) for codes, _ in found])


def _joined(parts: list[tuple], lengths: npt.ArrayLike) -> Patterns:
    """Concatenate pairs (codes, counts) of one or more graphs each; `lengths` is the number of codes of each graph."""
    codes, counts = zip((np.empty(0, np.uint64), np.empty(0, np.int64)), *parts, strict=True)
    return Patterns(np.concatenate(codes), np.concatenate(counts), offsets_of(lengths))


def unpack_graphlets(codes: npt.ArrayLike, size: int) -> npt.NDArray[np.uint8]:
    """Return the bits of graphlet codes, one column for each pair of nodes.

    Parameters
    ----------
    codes : array-like of uint64, shape (n,)
        Codes of graphlets (small induced subgraphs), as `sample_graphlets` returns them.
    size : int
        Number of nodes of each graphlet, 2 to 11.

    Returns
    -------
    ndarray of uint8, shape (n, size (size - 1) / 2)
        Entry j (j - 1) / 2 + i of a row is 1 if an edge joins the nodes i < j of the graphlet, else 0.

    Examples
    --------
    >>> from similia.objects.graphlets import unpack_graphlets
    >>> unpack_graphlets([5], size=3)
    array([[1, 0, 1]], dtype=uint8)
    """
    n_bits = n_pairs(size)
    codes = _as_codes(codes, 1)
    bad = codes >> np.uint64(n_bits) != 0
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"code {i} is {codes[i]}, expected below 2**{n_bits} for size={size}; pass their own size")
    octets = codes.astype("<u8").view(np.uint8).reshape(len(codes), 8)
    return np.unpackbits(octets, axis=1, count=n_bits, bitorder="little")


def second_moments(codes: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.float64]:
    """Return, for each row of `codes` and all p <= q, the share of the codes in which bits p and q are both 1.

    `codes` has shape (n, s): one row for each graph. For codes of D bits, the result has shape (n, D (D + 1) / 2), with
    pairs (p, q) in the order of ``np.triu_indices(D)``. Each share is an exact integer divided by s.
    """
    codes = np.ascontiguousarray(codes)
    n, s = codes.shape
    n_bits = n_pairs(size)
    moments = np.empty((n, n_bits * (n_bits + 1) // 2))

    def work(start: int, stop: int) -> None:
        loops.second_moments(codes[start:stop], n_bits, moments[start:stop])

    run_in_ranges(work, n, max(1, 8 * _GRAIN // s))
    return moments


@cache
def canonical_forms(size: int) -> CanonicalForms:
    """Return the isomorphism class of each graph on `size` nodes.

    A graph is represented by its code, an integer with one bit for each pair of nodes. A bit is 1 if an edge joins the
    two nodes of its pair; see `sample_graphlets` for the order of the bits.

    Parameters
    ----------
    size : int
        Number of nodes, from 2 to 7. The numbers of classes for these sizes are 2, 4, 11, 34, 156 and 1044.

    Returns
    -------
    CanonicalForms
        A named tuple of two read-only arrays, which are computed once for each size. ``table[code]`` is the number of
        the class of the graph with this code, and ``representatives`` holds the smallest code of each class.

    Notes
    -----
    The array ``table`` has an entry for each of the 2**(size (size - 1) / 2) codes. For size 7, there are 2**21
    entries; size 8 would need 2**28 entries.

    Examples
    --------
    >>> from similia.objects.graphlets import canonical_forms
    >>> forms = canonical_forms(3)
    >>> forms.representatives, forms.table  # graphs with 0, 1, 2 and 3 edges
    (array([0, 1, 3, 7], dtype=uint64), array([0, 1, 1, 2, 1, 2, 2, 3], dtype=uint32))
    """
    if not 2 <= check_positive_int(size, "size") <= 7:
        raise ValueError(f"isomorphism classes are known for sizes 2 to 7, got size={size}; choose a smaller size")
    nodes = [*range(size)]
    generators = [[1, 0, *nodes[2:]], [*nodes[1:], 0]]
    n_bits = n_pairs(size)
    low_bits = min(n_bits, 11)
    tables = np.zeros((2, 2, 2**11), dtype=np.uint32)
    for p, image in enumerate(generators):
        for j in range(1, size):
            for i in range(j):
                a, b = sorted((image[i], image[j]))
                bit, to = j * (j - 1) // 2 + i, b * (b - 1) // 2 + a
                half, place = (0, bit) if bit < low_bits else (1, bit - low_bits)
                tables[p, half, np.arange(2**11) >> place & 1 == 1] |= np.uint32(1 << to)
    forms = CanonicalForms(*loops.orbits(size, tables, low_bits))
    for array in forms:
        array.flags.writeable = False
    return forms


def n_pairs(size: int) -> int:
    """Return size (size - 1) / 2, the number of bits of a code; raise unless `size` is from 2 to 11."""
    size = _check_size(size)
    return size * (size - 1) // 2


def _check_size(size: Any) -> int:
    size = check_positive_int(size, "size", minimum=2)
    if size > 11:
        raise ValueError(f"size={size} needs {size * (size - 1) // 2} bits, but codes have 64; use a size up to 11")
    return size


def _check_sampling(sampling: Any, flyback: Any, small: Any, seed: Any) -> None:
    check_choice(sampling, "sampling", ("uniform", "random_walk"))
    check_choice(small, "small", ("pad", "raise"))
    if isinstance(flyback, bool) or not isinstance(flyback, Real) or not 0 <= float(flyback) < 1:
        raise ValueError(f"flyback must be a probability, at least 0 and below 1, got {flyback!r}")
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise ValueError(f"seed must be an integer, got {seed!r}; draw one from a generator: int(rng.integers(2**63))")


def _as_codes(codes: npt.ArrayLike, ndim: int) -> npt.NDArray[np.uint64]:
    codes = np.asarray(codes)
    if codes.ndim != ndim or not (np.issubdtype(codes.dtype, np.integer) or codes.size == 0):
        raise ValueError(f"codes must be a {ndim}-D array of uint64, got shape {codes.shape} of {codes.dtype}")
    return codes.astype(np.uint64, copy=False)


def _starting_nodes(offsets: npt.NDArray, sizes: npt.NDArray, size: int) -> tuple[npt.NDArray, npt.NDArray]:
    """Return (starts, nodes): walks in graph g may start at the nodes ``nodes[starts[g]:starts[g + 1]]``.

    These are the nodes in components of at least `size` nodes, or all nodes of a graph without such a component.
    """
    n_nodes = np.diff(offsets)
    small = np.maximum.reduceat(sizes, offsets[:-1]) < size  # no graph is empty here
    suits = (sizes >= size) | np.repeat(small, n_nodes)
    starts = (np.arange(offsets[-1]) - np.repeat(offsets[:-1], n_nodes))[suits].astype(np.int32)
    return offsets_of(np.add.reduceat(suits, offsets[:-1], dtype=np.int64)), starts


def _simple(graphs: Any, size: int, small: str) -> _Simple:
    """Return simple undirected graphs; if one has fewer than `size` nodes, add isolated nodes or, by `small`, raise."""
    graphs = as_structures(graphs)
    n_nodes = np.diff(graphs.node_offsets)
    if small == "raise" and (n_nodes < size).any():
        g = int(np.argmax(n_nodes < size))
        found, expected = f"has {n_nodes[g]} nodes", f"at least size={size}"
        raise BadValue(g, found, expected, "small='pad' adds nodes", kind="graph")
    offsets = offsets_of(np.maximum(n_nodes, size))
    arrays = [np.ascontiguousarray(a, np.int64) for a in (graphs.node_offsets, graphs.indptr, graphs.indices)]
    return _Simple(offsets, *loops.simple_adjacency(*arrays, offsets))
