r"""Graphlets: small induced subgraphs of graphs, each stored as one integer.

A graphlet of k nodes v_0 .. v_{k-1} (k from 2 to 11), in the order they were drawn, is the uint64 *code*

.. math:: c = \sum_{0 \le i < j < k} A[v_i, v_j] \, 2^{j (j - 1) / 2 + i},

so it has D = k (k - 1) / 2 bits, and the low bits are the code of the first nodes. Graphs become simple and
undirected: an arc in either direction is an edge, self-loops are dropped, weights and labels are ignored.

Cost: a uniform graphlet takes k draws, a random walk as many steps as it needs to see k nodes; both take
k (k - 1) / 2 lookups in a bit matrix. Memory: n**2 / 8 bytes for a graph of n nodes, at most 4 MiB for each
thread; larger graphs look edges up among sorted neighbours, with the same results.
Source: Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021.
"""

from __future__ import annotations

from functools import cache, partial
from math import comb
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from similia.core.config import rows_per_block
from similia.core.errors import BadValue
from similia.core.progress import track
from similia.core.threads import run_in_ranges
from similia.core.validation import check_positive_int
from similia.objects.graph_batch import GraphBatch
from similia.objects.graphs import as_graphs
from similia.objects.sequences import runs

_GRAIN = 2048  # minimum number of graphlets per call of the compiled loop
_MOMENT_GRAIN = 2**14  # the same for the loop of moments
_MOST_SUBSETS = 2 * 10**8
SAMPLINGS = ("uniform", "random_walk")


class Patterns(NamedTuple):
    """Counts of each code in each of n rows.

    Attributes
    ----------
    codes : ndarray of uint64, shape (n_patterns,)
        Row i has the codes ``codes[offsets[i]:offsets[i + 1]]``, distinct and ascending.
    counts : ndarray of int64, shape (n_patterns,)
    offsets : ndarray of int64, shape (n + 1,)
    """

    codes: npt.NDArray[np.uint64]
    counts: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


class CanonicalForms(NamedTuple):
    """Isomorphism classes of the graphs on k nodes.

    Attributes
    ----------
    table : ndarray of uint32, shape (2**D,)
        Class number of each code.
    representatives : ndarray of uint64, shape (n_classes,)
        Smallest code of each class, ascending.
    """

    table: npt.NDArray[np.uint32]
    representatives: npt.NDArray[np.uint64]


class _Simple(NamedTuple):
    """Simple undirected graphs, neighbours numbered within their graph."""

    offsets: npt.NDArray[np.int64]
    indptr: npt.NDArray[np.int64]
    neighbours: npt.NDArray[np.int32]


def as_structures(X: Any) -> GraphBatch:
    """Return graphs like `as_graphs`, without labels, attributes and weights (a batch is returned unchanged).

    Labels and attributes that are not compared may be missing in some graphs or have any type.
    """
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
    """Draw graphlets from each graph, independently and with replacement.

    Parameters
    ----------
    graphs : sequence of n graphs
        Anything that `similia.objects.as_graphs` reads.
    size : int
        Number of nodes k of a graphlet, 2 to 11.
    n_samples : int
        Number of graphlets to draw from each graph.
    sampling : {"random_walk", "uniform"}
        ``"uniform"``: k distinct nodes in random order. ``"random_walk"``: the first k distinct nodes of a
        walk, in the order of the first visit. The walk starts at a uniform node among those in components of at least
        k nodes. Each step returns to the start with probability `flyback`, or else goes to a uniform neighbour. If no
        component has k nodes, the walk starts at any node; when it has seen its whole component, it restarts at a
        uniform unvisited node.
    flyback : float, default=0.15
        Probability of a jump back to the start, at least 0 and below 1. Not used by ``"uniform"``.
    small : {"pad", "raise"}
        How to treat a graph with fewer than k nodes: add isolated nodes, or raise an error.
    seed : int, default=0
        The graphlets of a graph depend only on the seed and on the graph's edges and number of nodes, not on other
        graphs or threads. A smaller `n_samples` gives the first graphlets of a larger one. Equal graphs get equal
        graphlets.

    Returns
    -------
    ndarray of uint64, shape (n, n_samples)
        Codes.

    Raises
    ------
    ValueError
        If `size` is above 11 (a code would need more than 64 bits) or below 2, another parameter is out of
        range, or ``small="raise"`` and a graph has too few nodes; the message names the graph.

    Notes
    -----
    `flyback` is exact to 2**-32, and each probability of a uniform choice among d nodes to d 2**-32. If a walk takes 64
    steps without a new node (a flyback near 1, a long path), its next new node is drawn from the exact distribution of
    the node by which the walk leaves the visited ones. So any flyback takes bounded time.

    References
    ----------
    Ghanem, Keriven & Tremblay, "Fast graph kernel with optical random features", ICASSP 2021; Lovász, "Random
    walks on graphs: a survey", 1993.

    Examples
    --------
    Three nodes of a path of three always form the path, numbered in the order of the walk:

    >>> from similia.objects.graphlets import sample_graphlets, unpack_graphlets
    >>> path = ([[0, 1, 1, 2], [1, 0, 2, 1]], 3)
    >>> codes = sample_graphlets([path], size=3, n_samples=1000)
    >>> codes.shape, sorted({int(code) for code in codes[0]})
    ((1, 1000), [3, 5])
    >>> unpack_graphlets([3, 5], size=3)  # edges (0, 1), (0, 2), (1, 2)
    array([[1, 1, 0],
           [1, 0, 1]], dtype=uint8)
    """
    from similia.objects import _graphlets as loops

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
        start_offsets, starts = loops.starting_nodes(simple.offsets, sizes, size)
        threshold = np.uint64(min(round(float(flyback) * 2**32), 2**32 - 1))

        def draw(first: int, last: int) -> None:
            loops.draw_walks(first, last, size, threshold, *simple, sizes, start_offsets, starts, keys, codes)

    run_in_ranges(draw, codes.size, _GRAIN)
    return codes


def count_patterns(codes: npt.ArrayLike) -> Patterns:
    """Count the distinct codes of each row.

    Parameters
    ----------
    codes : array-like of uint64, shape (n, n_samples)

    Returns
    -------
    Patterns

    Examples
    --------
    >>> import numpy as np
    >>> from similia.objects.graphlets import count_patterns
    >>> patterns = count_patterns(np.array([[3, 1, 3], [0, 0, 0]], dtype=np.uint64))
    >>> patterns.codes, patterns.counts, patterns.offsets
    (array([1, 3, 0], dtype=uint64), array([1, 2, 3]), array([0, 2, 3]))
    """
    from similia.objects import _graphlets as loops

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
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    if not parts:
        return Patterns(np.empty(0, np.uint64), np.empty(0, np.int64), offsets)
    return Patterns(np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts]), offsets)


def enumerate_graphlets(graphs: Any, size: int) -> Patterns:
    """Count the codes of all subsets of `size` nodes of each graph, with nodes in ascending order.

    Parameters
    ----------
    graphs : sequence of n graphs
    size : int
        2 to 11.

    Returns
    -------
    Patterns
        Counts of the codes; a graph with fewer than `size` nodes has none.

    Raises
    ------
    ValueError
        If `size` is out of range or a graph has more than 2e8 subsets; the message names the graph.

    Examples
    --------
    A path of four nodes has four subsets of three: two are paths (code 5), two an edge and a node (codes 1 and 4):

    >>> from similia.objects.graphlets import enumerate_graphlets
    >>> path = ([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]], 4)
    >>> patterns = enumerate_graphlets([path], size=3)
    >>> patterns.codes, patterns.counts
    (array([1, 4, 5], dtype=uint64), array([1, 1, 2]))
    """
    return count_subsets(graphs, _check_size(size), f"sample_graphlets(graphs, size={size}, n_samples=...)")


def count_subsets(graphs: Any, size: int, instead: str) -> Patterns:
    """Return `enumerate_graphlets` of a checked size; `instead` is the advice in the error for too large graphs."""
    from similia.objects import _graphlets as loops

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

    batches = list(runs(np.concatenate(([0], np.cumsum(subsets))), _MOST_SUBSETS))  # about a second each
    for batch in track(batches, "graphlets", len(batches)):
        run_in_ranges(partial(work, batch.start), batch.stop - batch.start, 1)
    offsets = np.concatenate(([0], np.cumsum([len(codes) for codes, _ in found]))).astype(np.int64)
    return Patterns(np.concatenate([codes for codes, _ in found]), np.concatenate([n for _, n in found]), offsets)


def unpack_graphlets(codes: npt.ArrayLike, size: int) -> npt.NDArray[np.uint8]:
    """Return the bits of codes: entry j (j - 1) / 2 + i is 1 if nodes i < j are joined.

    Parameters
    ----------
    codes : array-like of uint64, shape (n,)
    size : int
        2 to 11.

    Returns
    -------
    ndarray of uint8, shape (n, D)
        D = size (size - 1) / 2.

    Raises
    ------
    ValueError
        If a code has more than D bits.

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
        raise ValueError(f"code {i} is {codes[i]}, expected below 2**{n_bits} for size={size}; give their own size")
    octets = codes.astype("<u8").view(np.uint8).reshape(len(codes), 8)
    return np.unpackbits(octets, axis=1, count=n_bits, bitorder="little")


def second_moments(codes: npt.NDArray[np.uint64], size: int) -> npt.NDArray[np.float64]:
    """Return how often two edges of a graphlet occur together: the mean of a_p a_q over a graph's samples, p <= q.

    Samples become bit planes, 64 at a time, so one AND and one popcount handle 64 samples. Cost for D bits:
    s (D**2 / 128 + 9) word operations per graph.

    Parameters
    ----------
    codes : ndarray of uint64, shape (n, s)
        Graphlets, see `similia.objects.graphlets.sample_graphlets`; s at least 1.
    size : int
        Nodes of a graphlet.

    Returns
    -------
    ndarray of float64, shape (n, D (D + 1) / 2)
        D = size (size - 1) / 2, pairs in the order of ``np.triu_indices(D)``. Exact integers over s.
    """
    from similia.objects import _graphlets as loops

    codes = np.ascontiguousarray(codes)
    n, s = codes.shape
    n_bits = n_pairs(size)
    moments = np.empty((n, n_bits * (n_bits + 1) // 2))

    def work(start: int, stop: int) -> None:
        loops.second_moments(codes[start:stop], n_bits, moments[start:stop])

    run_in_ranges(work, n, max(1, _MOMENT_GRAIN // s))
    return moments


@cache
def canonical_forms(size: int) -> CanonicalForms:
    """Return the isomorphism class of each code.

    Parameters
    ----------
    size : int
        2 to 7: 2, 4, 11, 34, 156, 1044 classes.

    Returns
    -------
    CanonicalForms
        Read-only arrays, computed once and cached.

    Raises
    ------
    ValueError
        If `size` is out of range: at 8 the table would have 2**28 entries.

    Notes
    -----
    Classes are orbits of the codes under permutations of the nodes, generated by swapping the first two nodes and
    rotating all.

    Examples
    --------
    >>> from similia.objects.graphlets import canonical_forms
    >>> forms = canonical_forms(3)
    >>> forms.representatives, forms.table
    (array([0, 1, 3, 7], dtype=uint64), array([0, 1, 1, 2, 1, 2, 2, 3], dtype=uint32))
    """
    from similia.objects import _graphlets as loops

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
    """Return D = size (size - 1) / 2, the number of bits of a code, or raise if the size is out of range."""
    size = _check_size(size)
    return size * (size - 1) // 2


def _check_size(size: Any) -> int:
    size = check_positive_int(size, "size", minimum=2)
    if size > 11:
        raise ValueError(f"size={size} needs {size * (size - 1) // 2} bits, more than a 64-bit code has; at most 11")
    return size


def _check_sampling(sampling: Any, flyback: Any, small: Any, seed: Any) -> None:
    for name, value, known in (("sampling", sampling, SAMPLINGS), ("small", small, ("pad", "raise"))):
        if value not in known:
            raise ValueError(f"{name} must be one of {known}, got {value!r}")
    if isinstance(flyback, bool) or not isinstance(flyback, Real) or not 0 <= float(flyback) < 1:
        raise ValueError(f"flyback must be a probability, at least 0 and below 1, got {flyback!r}")
    if isinstance(seed, bool) or not isinstance(seed, Integral):
        raise ValueError(f"seed must be an integer, got {seed!r}; draw one from a generator: int(rng.integers(2**63))")


def _as_codes(codes: npt.ArrayLike, ndim: int) -> npt.NDArray[np.uint64]:
    codes = np.asarray(codes)
    if codes.ndim != ndim or not (np.issubdtype(codes.dtype, np.integer) or codes.size == 0):
        raise ValueError(f"codes must be a {ndim}-D array of uint64, got shape {codes.shape} of {codes.dtype}")
    return codes.astype(np.uint64, copy=False)


def _simple(graphs: Any, size: int, small: str) -> _Simple:
    """Return the graphs without directions and loops, padded to at least `size` nodes."""
    from similia.objects import _graphlets as loops

    graphs = as_structures(graphs)
    n_nodes = np.diff(graphs.node_offsets)
    if small == "raise" and (n_nodes < size).any():
        g = int(np.argmax(n_nodes < size))
        found, expected = f"has {n_nodes[g]} nodes", f"at least size={size}"
        raise BadValue(g, found, expected, "small='pad' adds nodes", kind="graph")
    offsets = np.concatenate(([0], np.cumsum(np.maximum(n_nodes, size)))).astype(np.int64)
    arrays = [np.ascontiguousarray(a, np.int64) for a in (graphs.node_offsets, graphs.indptr, graphs.indices)]
    return _Simple(offsets, *loops.simple_adjacency(*arrays, offsets))
