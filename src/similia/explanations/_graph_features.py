"""Features of graph kernels as named substructures, with the nodes that each occurrence covers.

Names, with labels 6 and 7 (or what the user calls them):

====================  =========================================================================================
label                 ``6``; ``degree 3`` for graphs without labels
edge                  ``6-7``, with an edge label ``6-[1]-7``, in molecules ``C=O``
Weisfeiler-Lehman     a rooted tree of labels: ``7(6, 8×2)`` is a node 7 among one node 6 and two nodes 8; the trees of
                      more rounds are nested, ``6([1]7(6, 8×2))`` with an edge label, in molecules ``C(=O, -O)``;
                      long names are cut; ``[C;H3;X4]`` is an atom with its details, see `atom_text`
shortest path         ``6..7, 3 apart``; ``6->7, 3 apart`` in directed graphs
graphlet              ``triangle``, ``star of 4``, or nodes, edges and degrees
propagation           ``step 2, bin 3dc8 (6/7)``: nodes 6 or 7 whose surroundings of two steps fall into one bin
Morgan                a SMILES with all hydrogens, from the centre: ``[CH3][C]`` is a methyl beside another carbon
====================  =========================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import chain, combinations, pairwise
from math import comb, inf
from typing import Any

import numpy as np
import numpy.typing as npt

from similia.core.hashing import combine
from similia.explanations._features import Occurrences
from similia.explanations._views import node_names
from similia.kernels import (
    EdgeHistogram,
    Graphlet,
    Morgan,
    Propagation,
    ShortestPath,
    VertexHistogram,
    WeisfeilerLehman,
)
from similia.kernels.graphs import (
    GraphKernel,
    arcs_of,
    detailed_ids,
    edge_ids,
    edge_labels_of,
    node_labels_of,
    refined_ids,
    vertex_ids,
)
from similia.objects import GraphBatch
from similia.objects.graph_batch import BONDS, atom_text
from similia.objects.graphlets import canonical_forms
from similia.objects.molecules import SmilesBatch, parse_smiles
from similia.objects.sequences import offsets_of

_LONGEST_NAME = 72
_MOST_PLACED = 200_000  # maximum number of subsets, or pairs of nodes, whose places are computed
_MOST_COVERED = 5_000_000  # maximum total of nodes that trees cover; beyond it, trees are placed at their roots
_KNOWN = {
    (2, (0, 0)): "no edge", (2, (1, 1)): "edge", (3, (0, 0, 0)): "3 nodes, no edge", (3, (0, 1, 1)): "edge and a node",
    (3, (1, 1, 2)): "path of 3", (3, (2, 2, 2)): "triangle", (4, (0, 0, 0, 0)): "4 nodes, no edge",
    (4, (0, 0, 1, 1)): "edge and 2 nodes", (4, (1, 1, 1, 1)): "2 edges apart",
    (4, (0, 1, 1, 2)): "path of 3 and a node", (4, (1, 1, 1, 3)): "star of 4",
    (4, (1, 1, 2, 2)): "path of 4", (4, (0, 2, 2, 2)): "triangle and a node",
    (4, (2, 2, 2, 2)): "cycle of 4", (4, (1, 2, 2, 3)): "triangle with a tail", (4, (2, 2, 3, 3)): "diamond",
    (4, (3, 3, 3, 3)): "complete graph of 4",
}  # fmt: skip

Names = dict[int, str]
Index = npt.NDArray[np.int64]


def of_graphs(kernel: GraphKernel, graph: GraphBatch, label_names: Names, directed: bool = False) -> Occurrences | None:
    """Return a graph's features, or None for a kernel unknown here; if `directed`, a path differs from its reverse."""
    if graph.node_labels is None:
        labels = [f"degree {degree}" for degree in graph.degrees.tolist()]
    else:
        labels = node_names(graph, label_names)
    if isinstance(kernel, ShortestPath):
        return _paths(kernel, graph, labels, directed)
    if isinstance(kernel, VertexHistogram):
        ids = vertex_ids(node_labels_of(graph))
        return Occurrences.of_width(ids, np.arange(len(ids))[:, None], lambda v: labels[v], len(ids))
    return next((read(kernel, graph, labels) for kind, read in _READERS if isinstance(kernel, kind)), None)


def _neighbours(graph: GraphBatch) -> list[list[int]]:
    indptr, indices = arcs_of(graph)
    return [indices[start:stop].tolist() for start, stop in pairwise(indptr.tolist())]


def _edges(kernel: EdgeHistogram, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return an occurrence for each edge, placed at its two nodes, in the order of ids that `edge_ids` uses."""
    indptr, indices = arcs_of(graph)
    edge_labels = edge_labels_of(graph, kernel.edge_labels)
    ids, offsets = np.empty(len(indices), dtype=np.uint64), np.zeros(2, dtype=np.int64)
    edge_ids(node_labels_of(graph), graph.node_offsets, indptr, indices, edge_labels, ids, offsets)
    sources = np.repeat(np.arange(graph.n_nodes), np.diff(indptr))
    marks = edge_labels.tolist() or [None] * len(indices)
    arcs = list(zip(sources.tolist(), indices.tolist(), marks, strict=True))
    known = set(arcs)
    kept = [(v, u, mark) for v, u, mark in arcs if v <= u or (u, v, mark) not in known]

    def name(o: int) -> str:
        v, u, mark = kept[o]
        low, high = sorted((labels[v], labels[u]))
        return f"{low}-{high}" if mark is None else f"{low}{BONDS.get(mark, f'-[{mark}]-')}{high}"

    places = np.array([edge[:2] for edge in kept], dtype=np.int64).reshape(-1, 2)
    return Occurrences.of_width(ids[: offsets[1]], places, name, graph.n_nodes)


def _trees(kernel: WeisfeilerLehman, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return each node's colour after r = 0, 1, ... rounds as a feature, placed at the nodes within r steps of it.

    A node's pair (label, detail) is a feature placed at the node; it comes after the colours of all rounds.
    """
    indptr, indices = arcs_of(graph)
    edge_labels = edge_labels_of(graph, kernel.edge_labels)
    n, rounds = graph.n_nodes, kernel.n_iter + 1
    first = vertex_ids(node_labels_of(graph))
    ids = refined_ids(first, indptr, indices, edge_labels, kernel.n_iter).ravel()
    details = [] if graph.node_details is None or not kernel.details else graph.node_details.tolist()
    if details:
        ids = np.concatenate([ids, detailed_ids(first, graph.node_details)])
    neighbours = _neighbours(graph)
    marks = [edge_labels[indptr[v] : indptr[v + 1]].tolist() if len(edge_labels) else [] for v in range(n)]
    runs, covered = [], 0
    for v in range(n):
        runs += _balls(v, rounds, neighbours) if covered <= _MOST_COVERED else [[v]] * rounds
        covered += sum(map(len, runs[-rounds:]))
    if covered > _MOST_COVERED:
        runs = [[v] for v in range(n) for _ in range(rounds)]
    runs += [[v] for v in range(len(details))]
    offsets = offsets_of([len(run) for run in runs])
    places = np.fromiter(chain.from_iterable(runs), dtype=np.int64)

    def name(o: int) -> str:
        v = o - n * rounds
        return (
            atom_text(labels[v], details[v])
            if v >= 0
            else _tree_name(o // rounds, o % rounds, labels, neighbours, marks)
        )

    return Occurrences(ids, np.ones(len(ids)), offsets, places, name, n)


def _balls(v: int, rounds: int, neighbours: list[list[int]]) -> list[list[int]]:
    """Return the numbers of all nodes within r steps of node `v`, ascending, for each r from 0 to `rounds` - 1."""
    reached = _distances(v, neighbours, rounds - 1)
    return [sorted(u for u, d in reached if d <= steps) for steps in range(rounds)]


def _tree_name(v: int, rounds: int, labels: list[str], neighbours: list[list[int]], marks: list[list[int]]) -> str:
    """Return the tree of labels around node `v` as text, cut if too long; ``marks[u]`` are the labels of u's edges."""
    name, text = labels[v], labels
    for _ in range(rounds):
        # Trees of all nodes grow together: a tree consists of the trees of the neighbours with one level less.
        text = [_grown(labels[u], [text[w] for w in neighbours[u]], marks[u]) for u in range(len(labels))]
        if len(text[v]) > _LONGEST_NAME:
            return f"{name} ... to depth {rounds}"
        name = text[v]
    return name


def _grown(label: str, children: list[str], marks: list[int]) -> str:
    """Return a tree as text: label(children), the children sorted; `marks` are the labels of the edges to them."""
    if not children or len(label) > _LONGEST_NAME:
        return label
    if marks:
        children = [f"{BONDS.get(mark, f'[{mark}]')}{child}" for mark, child in zip(marks, children, strict=True)]
    counted = sorted(Counter(children).items())
    text = label + "(" + ", ".join(child if n == 1 else f"{child}×{n}" for child, n in counted) + ")"
    return text[: _LONGEST_NAME + 1]  # longer names are not shown, and must not grow without bound


def _paths(kernel: ShortestPath, graph: GraphBatch, labels: list[str], directed: bool) -> Occurrences:
    """Return pairs of nodes joined by a path as features (two labels and the distance), placed at both nodes."""
    numbers = node_labels_of(graph) if kernel.with_labels else np.zeros(graph.n_nodes, dtype=np.uint64)
    if graph.n_nodes**2 > _MOST_PLACED:
        counts = kernel._counts(graph)
        return Occurrences.without_places(counts, lambda o: f"pairs of kind {counts.ids[o]:x}", graph.n_nodes)
    neighbours = _neighbours(graph)
    triples = [(v, u, d) for v in range(graph.n_nodes) for u, d in _distances(v, neighbours) if d]
    v, u, d = np.array(triples, dtype=np.int64).reshape(-1, 3).T
    ids = _path_ids(numbers[v], numbers[u], d)

    def name(o: int) -> str:
        if not kernel.with_labels:
            return f"two nodes {d[o]} apart"
        ends = [labels[v[o]], labels[u[o]]]
        return f"{'->'.join(ends) if directed else '..'.join(sorted(ends))}, {d[o]} apart"

    found = Occurrences.of_width(ids, np.column_stack([v, u]), name, graph.n_nodes)
    low, high = np.minimum(numbers[v], numbers[u]), np.maximum(numbers[v], numbers[u])
    groups = ids if directed else _path_ids(low, high, d)
    return replace(found, groups=groups)


def _path_ids(first: npt.NDArray, last: npt.NDArray, distances: Index) -> npt.NDArray[np.uint64]:
    """Return the ids that the kernel gives to (first label, last label, distance), one for each pair of nodes."""
    ends = lru_cache(None)(lambda label, distance: np.uint64(combine(label, distance)))
    triples = zip(first, last, distances.astype(np.uint64), strict=True)
    return np.array([combine(ends(a, d), b) for a, b, d in triples], dtype=np.uint64)


def _distances(source: int, neighbours: list[list[int]], most: float = inf) -> list[tuple[int, int]]:
    """Return (node, steps) for each node that is at most `most` steps away from `source`."""
    seen, reached = {source}, [(source, 0)]
    for v, d in reached:
        if d < most:
            new = dict.fromkeys(u for u in neighbours[v] if u not in seen)
            seen.update(new)
            reached += [(u, d + 1) for u in new]
    return reached


def is_directed(graph: GraphBatch) -> bool:
    """Return whether some arc of the graph has no reverse arc."""
    indptr, indices = arcs_of(graph)
    sources = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    arcs = set(zip(sources.tolist(), indices.tolist(), strict=True))
    return any((u, v) not in arcs for v, u in arcs)


def _graphlets(kernel: Graphlet, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return the subgraph on each set of `kernel.size` nodes as a feature; unplaced if sets are sampled or too many."""
    n, size = graph.n_nodes, kernel.size
    table, representatives = canonical_forms(size)
    class_ids = vertex_ids(representatives | np.uint64(size) << np.uint64(32))
    if kernel.n_samples is not None or comb(n, size) > _MOST_PLACED:
        counts = kernel._counts(graph)
        order = np.argsort(class_ids)
        classes = order[np.searchsorted(class_ids, counts.ids, sorter=order)]
        return Occurrences.without_places(counts, lambda o: graphlet_name(representatives[classes[o]], size), n)
    indptr, indices = arcs_of(graph)
    adjacent = np.zeros((n, n), dtype=np.int64)
    adjacent[np.repeat(np.arange(n), np.diff(indptr)), indices] = 1
    adjacent |= adjacent.T
    subsets = np.array(list(combinations(range(n), size)), dtype=np.int64).reshape(-1, size)
    codes = np.zeros(len(subsets), dtype=np.int64)
    for bit, (i, j) in enumerate(_pairs_of(size)):
        codes |= adjacent[subsets[:, i], subsets[:, j]] << bit
    classes = table[codes].astype(np.int64)
    return Occurrences.of_width(
        class_ids[classes], subsets, lambda o: graphlet_name(representatives[classes[o]], size), n
    )


def graphlet_name(code: np.uint64, size: int) -> str:
    """Return the usual name of the graphlet that `code` encodes or, if it has none, its size, edges and degrees."""
    edges = [pair for bit, pair in enumerate(_pairs_of(size)) if int(code) >> bit & 1]
    degrees = sorted(sum(v in pair for pair in edges) for v in range(size))
    listed = " ".join(map(str, degrees[::-1]))
    known = _KNOWN.get((size, tuple(degrees)))
    return known or f"{size} nodes, {len(edges)} edges, degrees {listed} (no. {int(code)})"


def _pairs_of(size: int) -> list[tuple[int, int]]:
    """Return all pairs of `size` nodes; bit b of the number that encodes a graphlet is 1 if pair b is an edge."""
    return [(i, j) for j in range(1, size) for i in range(j)]


def _bins(kernel: Propagation, graph: GraphBatch, labels: list[str]) -> Occurrences:
    """Return the bin of each node after each propagation step, placed at the node."""
    ids = kernel._node_ids(graph)
    n_terms = ids.shape[1]
    places = np.repeat(np.arange(len(ids)), n_terms)[:, None]

    def name(o: int) -> str:
        v, step = divmod(o, n_terms)
        return f"step {step}, bin {int(ids[v, step]) & 0xFFFF:04x}"

    kinds = [label for label in labels for _ in range(n_terms)] if kernel._used(graph) == "labels" else None
    return replace(Occurrences.of_width(ids.ravel(), places, name, len(ids)), kinds=kinds)


def of_molecules(kernel: Morgan, batch: SmilesBatch) -> Occurrences:
    """Return the neighbourhoods that RDKit counts in a molecule, each placed at its atoms."""
    from rdkit.Chem import MolFragmentToSmiles
    from rdkit.Chem.rdFingerprintGenerator import AdditionalOutput

    (molecule,) = parse_smiles(batch)
    output = AdditionalOutput()
    output.AllocateBitInfoMap()
    kernel._generator().GetSparseCountFingerprint(molecule, additionalOutput=output)
    found = [(number, *where) for number, centres in output.GetBitInfoMap().items() for where in centres]
    bonds = [_bonds_within(molecule, atom, radius) for _, atom, radius in found]
    atoms = [
        sorted({atom, *(end for bond in near for end in _ends(molecule, bond))})
        for (_, atom, _), near in zip(found, bonds, strict=True)
    ]

    def name(o: int) -> str:
        centre: int = found[o][1]
        text: str = MolFragmentToSmiles(molecule, atoms[o], bonds[o], rootedAtAtom=centre, allHsExplicit=True)
        return text

    ids = vertex_ids(np.array([number for number, *_ in found], dtype=np.uint64))
    places = np.fromiter(chain.from_iterable(atoms), dtype=np.int64)
    return Occurrences(
        ids, np.ones(len(ids)), offsets_of([len(a) for a in atoms]), places, name, molecule.GetNumAtoms()
    )


def _bonds_within(molecule: Any, atom: int, radius: int) -> list[int]:
    """Return the numbers of the bonds within `radius` bonds of an atom of an RDKit molecule."""
    from rdkit.Chem import FindAtomEnvironmentOfRadiusN

    return [*FindAtomEnvironmentOfRadiusN(molecule, radius, atom, useHs=True, enforceSize=False)] if radius else []


def _ends(molecule: Any, bond: int) -> tuple[int, int]:
    found = molecule.GetBondWithIdx(bond)
    return found.GetBeginAtomIdx(), found.GetEndAtomIdx()


_READERS: tuple[tuple[type, Callable[..., Occurrences]], ...] = (
    (EdgeHistogram, _edges),
    (WeisfeilerLehman, _trees),
    (Graphlet, _graphlets),
    (Propagation, _bins),
)
